"""How a convex fit came to its optimum, and how near it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.plot.canvas import BLUE, INK, ORANGE, add_legend, by_name, history_of, plain_axes

_LATENT = "its objective is not convex and has no lower bound: draw it with tacit.plot.descent"


def convergence(model: Any, ax: Any = None) -> Any:
    """Objective and lower bound by step: the optimum lies in the shaded band.

    Parameters
    ----------
    model : a fitted learner, or a list of `tacit.solvers.Step`
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.solvers import Step
    >>> axes = convergence([Step(0, 0.0, 9.0, 0.0, 1), Step(1, 0.1, 5.0, 4.0, 2)])
    >>> axes.get_xlabel()
    'oracle passes'
    """
    steps = history_of(model, "bound", _LATENT)
    ax = plain_axes(ax)
    i, objective, bound = (np.array([getattr(s, name) for s in steps]) for name in ("iteration", "objective", "bound"))
    ax.fill_between(i, bound, objective, color=BLUE, alpha=0.12, lw=0)
    ax.plot(i, objective, color=BLUE, lw=1.8)
    ax.plot(i, bound, color=ORANGE, lw=1.8)
    last = float(objective[-1])
    seen = float(objective[min(len(objective) - 1, len(objective) // 6)])
    ax.set_ylim(max(0.0, last - 1.2 * max(seen - last, 0.05 * last)), last + 1.2 * max(seen - last, 0.05 * last))
    middle = len(i) // 3
    ax.annotate("objective", (i[middle], objective[middle]), (4, 8), textcoords="offset points", color=BLUE)
    ax.annotate("lower bound", (i[middle], bound[middle]), (4, -14), textcoords="offset points", color=ORANGE)
    ax.annotate(f"{last:.4g}", (i[-1], last), (4, 0), textcoords="offset points", va="center", color=INK)
    ax.set(xlabel="oracle passes", ylabel="objective", title="The optimum lies between the lines")
    return ax


def gap(models: Any, tol: float | None = None, ax: Any = None, by: str = "iteration") -> Any:
    """The certified relative gap on a logarithmic scale, for one model or for several by name.

    Parameters
    ----------
    models : a fitted learner, a list of `tacit.solvers.Step`, or a dict of those by name
    tol : drawn as a dotted line
    ax : matplotlib axes; None makes new ones
    by : "iteration", or "seconds" to compare solvers, whose iterations differ in length

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.solvers import Step
    >>> axes = gap({"bundle": [Step(0, 0.0, 9.0, 0.0, 1), Step(1, 0.1, 5.0, 4.0, 2)]}, tol=1e-3)
    >>> axes.get_yscale()
    'log'
    """
    if by not in ("iteration", "seconds"):
        raise ValueError(f"by must be 'iteration' or 'seconds', got {by!r}")
    ax = plain_axes(ax)
    for name, model, color in by_name(models):
        steps = history_of(model, "bound", _LATENT)
        share = np.array([s.gap / max(abs(s.objective), 1e-300) for s in steps])
        i = np.array([getattr(s, by) for s in steps])
        ax.plot(i, np.where(share > 0, share, np.nan), color=color, lw=1.8, label=name)
    add_legend(ax, models)
    if tol is not None:
        ax.axhline(tol, color=INK, lw=0.8, ls=":")
        ax.annotate(f"tol = {tol:g}", (0, tol), (2, 4), textcoords="offset points", color=INK)
    unit = "oracle passes" if by == "iteration" else "seconds"
    ax.set(yscale="log", xlabel=unit, ylabel="gap / objective", title="Certified distance from the optimum")
    return ax

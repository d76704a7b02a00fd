"""Progress of a fit: objective, lower bound and gap of convex ones, rounds of latent ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.parameters import entries
from tacit.plot.canvas import (
    BLUE,
    INK,
    ORANGE,
    add_legend,
    by_name,
    column,
    history_of,
    plain_axes,
    pyplot,
    whole_numbers,
)

_LATENT = "its objective is not convex and lacks a lower bound: draw it with tacit.plot.descent"


def convergence(model: Any, ax: Any = None) -> Any:
    """Draw objective and lower bound by iteration: the optimum lies between them.

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
    i, objective, bound = (column(steps, name) for name in ("iteration", "objective", "bound"))
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
    """Draw the certified relative gap on a logarithmic scale, for one model or for several by name.

    Parameters
    ----------
    models : a fitted learner, a list of `tacit.solvers.Step`, or a dict of those by name
    tol : drawn as a dotted line
    ax : matplotlib axes; None makes new ones
    by : "iteration", or "seconds" to compare solvers, whose iterations take different times

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
        objective = column(steps, "objective")
        share = (objective - column(steps, "bound")) / np.maximum(np.abs(objective), 1e-300)
        ax.plot(column(steps, by), np.where(share > 0, share, np.nan), color=color, lw=1.8, label=name)
    add_legend(ax, models)
    if tol is not None:
        ax.axhline(tol, color=INK, lw=0.8, ls=":")
        ax.annotate(f"tol = {tol:g}", (0, tol), (2, 4), textcoords="offset points", color=INK)
    unit = "oracle passes" if by == "iteration" else "seconds"
    ax.set(yscale="log", xlabel=unit, ylabel="gap / objective", title="Certified distance from the optimum")
    return ax


def descent(models: Any, axes: Any = None) -> Any:
    """Draw the objective and the number of samples used, by round; other starts are thin lines.

    All samples are always used, unless the fit is self-paced. While some are left out, the objective may rise: it is
    always that of all samples.

    Parameters
    ----------
    models : a fitted `tacit.LatentSVM`, `tacit.HiddenCRF` or `tacit.MinEntropySVM`, its ``history_``, or a dict of
        those by name
    axes : two matplotlib axes, for the objective and for the samples; None makes them

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.learners.latent_svm import Iteration
    >>> lines = [Iteration(i, 0.1, 9.0 / i, 0.1, 1, 1, np.array([i > 1, True]), np.zeros(2)) for i in (1, 2, 3)]
    >>> upper, lower = descent({"self-paced": lines})
    >>> upper.get_ylabel(), lower.get_ylabel()
    ('objective', 'samples used')
    """
    if axes is None:
        figure = pyplot().figure(figsize=(6.4, 5.2), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    upper, lower = map(plain_axes, entries("axes", axes, "two matplotlib axes, or None", 2))
    most, has_others, what = 0.0, False, ROUND
    for name, model, color in by_name(models):
        lines = history_of(model, "samples_in", "draw it with tacit.plot.convergence")
        most = max(most, column(lines, "samples_in").max())
        what = ROUND if hasattr(lines[0], "is_in") else "step"
        for other in getattr(model, "runs_", ()):
            if other.history is not model.history_:
                has_others = True
                _draw(upper, other.history, "objective", color=color, lw=0.8, alpha=0.35)
                _draw(lower, other.history, "samples_in", color=color, lw=0.8, alpha=0.35)
        _draw(upper, lines, "objective", color=color, lw=2, marker="o", ms=3.5, label=name)
        _draw(lower, lines, "samples_in", color=color, lw=2, marker="o", ms=3.5)
    add_legend(upper, models)
    upper.set(ylabel="objective", title="What learning minimises" + has_others * " (thin: other random starts)")
    lower.set(xlabel=what, ylabel="samples used", ylim=(0, 1.08 * most))
    for ax in (upper, lower):
        whole_numbers(ax)
    return upper, lower


ROUND = "round: impute hidden values, learn from them"


def _draw(ax: Any, lines: Any, name: str, **style: Any) -> None:
    ax.plot(column(lines, "iteration"), column(lines, name), **style)

"""How a fit with hidden values went down: outer iteration by outer iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.plot.canvas import add_legend, by_name, history_of, plain_axes, pyplot, whole_numbers


def descent(models: Any, axes: Any = None) -> Any:
    """The objective and the number of samples used, by outer iteration ("round"); other starts are thin lines.

    All samples are used all the time, unless the fit is self-paced. While some are left out the objective, which is
    always that of all samples, may rise.

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
    upper, lower = (plain_axes(ax) for ax in axes)
    most, has_others, what = 0, False, ROUND
    for name, model, color in by_name(models):
        lines = history_of(model, "samples_in", "draw it with tacit.plot.convergence")
        most = max(most, *(line.samples_in for line in lines))
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
    ax.plot([line.iteration for line in lines], np.array([getattr(line, name) for line in lines]), **style)

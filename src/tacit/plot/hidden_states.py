"""Which hidden states a model uses, and how many it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.plot.canvas import BLUE, GREY, ORANGE, by_name, plain_axes, pyplot, whole_numbers


def group_norms(model: Any, axes: Any = None) -> Any:
    """The norm of the weights of every hidden state, one row of bars per label; states that are zero have no bar.

    The picture is figure 1 of Chen, Batra, Freeman & Johnson (2011).

    Parameters
    ----------
    model : a fitted `tacit.GroupNormSVM` with groups by label and state
    axes : one matplotlib axes per label; None makes them

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import GroupNormSVM
    >>> from tacit.datasets import drawn_digits
    >>> from tacit.problems import Transforms, rotations
    >>> X, y, _ = drawn_digits(100)
    >>> problem = Transforms(rotations(-60, 60, 5), n_components=8, blocks="class and state")
    >>> len(group_norms(GroupNormSVM(problem, C=10).fit(X, y)))
    10
    """
    norms = norms_by_label(model)
    if axes is None:
        size = (6.4, 0.6 + 1.1 * len(norms))
        axes = pyplot().figure(figsize=size, layout="constrained").subplots(len(norms), 1, sharex=True, sharey=True)
    axes = [plain_axes(ax) for ax in np.ravel(axes)]
    states = model.schema_.facts["states"]
    width = 0.8 * (float(np.min(np.diff(np.sort(states)))) if len(states) > 1 else 1.0)
    for ax, label, own, color in zip(axes, model.classes_, norms, np.resize([BLUE, ORANGE], len(norms)), strict=True):
        ax.bar(states, own, width=width, color=color)
        ax.set_ylabel(str(label), rotation=0, ha="right", va="center")
        ax.plot(states[own == 0], np.zeros(np.count_nonzero(own == 0)), "x", color=GREY, ms=4, clip_on=False)
    axes[0].set_title(f"Norm of the weights per state: {np.count_nonzero(norms)} of {norms.size} are used (× is zero)")
    axes[-1].set_xlabel("hidden state")
    axes[-1].set_xticks(states)
    return axes


def norms_by_label(model: Any) -> Array:
    """(labels, states) norms of the weights of a fitted `tacit.GroupNormSVM`."""
    if not hasattr(model, "group_norms_"):
        raise ValueError(f"a fitted GroupNormSVM is needed, got {model!r}; call fit first")
    return np.asarray(model._by_label(model.group_norms_))


def states_path(paths: Any, X: Any, y: Any, axes: Any = None) -> Any:
    """Accuracy and prediction time against the number of states used, one point per value of C.

    Both are measured on X and y, which should be held out. The picture is figure 2 of Chen et al. (2011).

    Parameters
    ----------
    paths : what `tacit.group_norm_path` returns, or a dict of those by name
    X, y : samples to measure on
    axes : two matplotlib axes; None makes them

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import GroupNormSVM, group_norm_path
    >>> from tacit.datasets import drawn_digits
    >>> from tacit.problems import Transforms, rotations
    >>> X, y, _ = drawn_digits(100)
    >>> problem = Transforms(rotations(-60, 60, 5), n_components=8, blocks="class and state")
    >>> left, right = states_path(group_norm_path(GroupNormSVM(problem), X, y, [1, 10]), X, y)
    >>> left.get_ylabel(), right.get_xlabel()
    ('accuracy, %', 'states used')
    """
    if axes is None:
        axes = pyplot().figure(figsize=(8.6, 3.6), layout="constrained").subplots(1, 2)
    left, right = (plain_axes(ax) for ax in axes)
    for name, models, color in by_name(paths):
        order = np.argsort(models.n_states, kind="stable")
        used = models.n_states[order]
        left.plot(used, 100 * models.score(X, y)[order], "o-", color=color, ms=4, label=name)
        right.plot(used, 1e3 * models.prediction_seconds(X)[order], "o-", color=color, ms=4, label=name)
        if name:
            left.legend(frameon=False, labelcolor="linecolor", loc="lower right")
    left.set(xlabel="states used", ylabel="accuracy, %")
    right.set(xlabel="states used", ylabel="prediction, ms of CPU", ylim=(0, None))
    for ax in (left, right):
        whole_numbers(ax)
    return left, right

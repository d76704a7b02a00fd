"""Fewer and fewer hidden states: a `GroupNormSVM` for many values of C."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten, whole_number
from tacit.learners.group_norm_svm import GroupNormSVM
from tacit.learners.path import Path, fit_path


class GroupNormPath(Path):
    """Fitted models, one per value of C: what `tacit.group_norm_path` returns; see `tacit.learners.path.Path`."""

    @property
    def n_states(self) -> Array:
        """(m,) how many groups, such as pairs of label and hidden state, each model uses."""
        return np.array([np.count_nonzero(model.group_norms_) for model in self.models])

    def prediction_seconds(self, X: Any, repeats: int = 5) -> Array:
        """(m,) seconds of CPU that the pruned models take to predict X: the least of some repetitions."""
        repeats = whole_number("repeats", repeats)
        return np.array([_least_seconds(model.prune(), X, repeats) for model in self.models])

    def sparsest(self, within: float = 0.002) -> Any:
        """The model with the fewest states whose mean score over the folds is at most ``within`` below the best."""
        if self.scores is None:
            raise ValueError("no scores to choose by: call tacit.group_norm_path(..., cv=5)")
        mean = self.scores.mean(axis=1)
        near = np.flatnonzero(mean >= mean.max() - within)
        return self.models[min(near, key=lambda place: (self.n_states[place], -mean[place]))]


def group_norm_path(
    estimator: GroupNormSVM,
    X: Any,
    y: Any,
    Cs: Any,
    *,
    hidden: Any = None,
    sample_weight: Any = None,
    cv: Any = None,
) -> GroupNormPath:
    """Fit a `GroupNormSVM` for many values of C, from the largest down: states leave one after the other.

    Each fit starts from the weights of the last one, and makes ``n_init`` − 1 other starts. `tacit.plot.states_path`
    draws accuracy and prediction time against the number of states.

    Parameters
    ----------
    estimator : a `GroupNormSVM`; it is copied, never changed
    X, y, hidden, sample_weight : as in its ``fit``
    Cs : the values of C
    cv : folds to choose C by, a number or a splitter of scikit-learn; None for no folds

    >>> from tacit.datasets import drawn_digits
    >>> from tacit.problems import Transforms, rotations
    >>> X, y, _ = drawn_digits(300)
    >>> X, y = X[(y == 2) | (y == 7)], y[(y == 2) | (y == 7)]
    >>> problem = Transforms(rotations(-60, 60, 5), n_components=8, blocks="class and state")
    >>> models = group_norm_path(GroupNormSVM(problem), X, y, [0.1, 10.0])
    >>> bool(models.n_states[0] < models.n_states[1] <= 10)
    True
    """
    if not isinstance(estimator, GroupNormSVM):
        raise TypeError(f"group_norm_path needs a GroupNormSVM, got {shorten(estimator)}; for others use tacit.path")
    parts = fit_path(estimator, X, y, Cs, hidden=hidden, sample_weight=sample_weight, cv=cv, largest_first=True)
    return GroupNormPath(*parts)


def _least_seconds(model: Any, X: Any, repeats: int) -> float:
    seconds = []
    for _ in range(repeats + 1):  # the first warms up
        began = time.process_time()
        model.predict(X)
        seconds.append(time.process_time() - began)
    return min(seconds[1:])

"""Regularisation paths: one learner for many values of C, each fit warm-started; cross-validation to choose C."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from tacit.data.arrays import Array
from tacit.data.labels import kind_of_label
from tacit.data.parameters import has_length, is_list, is_whole, numbers, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.learners.group_norm_svm import GroupNormSVM
from tacit.learners.learner import Learner
from tacit.runtime import Status

Pair = tuple[Any, Any]


class Path(Sequence[Any]):
    """Fitted models, one per value of `Cs` and in their order: what `tacit.path` returns.

    Attributes
    ----------
    Cs : (m,) the values of C
    models : the fitted learners
    scores : (m, folds) `score` on the held-out part of every fold; None without ``cv``
    """

    def __init__(self, Cs: Array, models: list[Any], scores: Array | None = None) -> None:
        self.Cs, self.models, self.scores = Cs, models, scores

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, key: Any) -> Any:
        return self.models[key]

    @property
    def best(self) -> Any:
        """The model of the C with the best mean score over the folds, the smaller C if two are equal."""
        if self.scores is None:
            raise ValueError("best needs scores: call tacit.path(..., cv=5), or score(X, y) on held-out data")
        mean = self.scores.mean(axis=1)
        ahead = np.flatnonzero(mean == mean.max())
        return self.models[ahead[np.argmin(self.Cs[ahead])]]

    def score(self, X: Any, y: Any) -> Array:
        """The score of every model on held-out data."""
        return np.array([model.score(X, y) for model in self.models])


def path(
    estimator: Learner, X: Any, y: Any, Cs: Any, *, hidden: Any = None, sample_weight: Any = None, cv: Any = None
) -> Path:
    """Fit a learner for many values of C, from the smallest up; each fit starts from the result of the last one.

    A convex learner gives the same results as separate fits, within their gaps, for a fraction of the oracle passes. A
    latent learner takes the hidden values of the last fit as its first start, and makes ``n_init`` − 1 others. Ctrl-C
    ends the path.

    Parameters
    ----------
    estimator : a learner with a C, such as `tacit.StructuredSVM`; it is copied, never changed
    X, y, hidden, sample_weight : as in the learner's ``fit``
    Cs : the values of C
    cv : folds to choose C by, a number or a splitter of scikit-learn; every fold is one more path. None for no folds

    >>> from sklearn.datasets import load_iris
    >>> from tacit import StructuredSVM
    >>> from tacit.problems import Multiclass
    >>> X, y = load_iris(return_X_y=True)
    >>> models = path(StructuredSVM(Multiclass()), X, y, [1, 10, 100], cv=3)
    >>> [model.C for model in models], bool(models.best.score(X, y) > 0.9)
    ([1.0, 10.0, 100.0], True)
    """
    return Path(*_fit_path(estimator, X, y, Cs, {"hidden": hidden, "sample_weight": sample_weight}, cv))


class GroupNormPath(Path):
    """Fitted models, one per value of C: what `tacit.group_norm_path` returns; see `tacit.learners.path.Path`."""

    @property
    def n_states(self) -> Array:
        """(m,) how many groups, such as pairs of label and hidden state, each model uses."""
        return np.array([np.count_nonzero(model.group_norms_) for model in self.models])

    def prediction_seconds(self, X: Any, repeats: int = 5) -> Array:
        """(m,) CPU seconds that the pruned models take to predict X: the minimum over repetitions."""
        repeats = whole_number("repeats", repeats)
        return np.array([_least_seconds(model.prune(), X, repeats) for model in self.models])

    def sparsest(self, within: float = 0.002) -> Any:
        """The model with the fewest states whose mean score over the folds is at most ``within`` below the best."""
        if self.scores is None:
            raise ValueError("sparsest needs scores: call tacit.group_norm_path(..., cv=5)")
        mean = self.scores.mean(axis=1)
        near = np.flatnonzero(mean >= mean.max() - within)
        return self.models[min(near, key=lambda i: (self.n_states[i], -mean[i]))]


def group_norm_path(
    estimator: GroupNormSVM, X: Any, y: Any, Cs: Any, *, hidden: Any = None, sample_weight: Any = None, cv: Any = None
) -> GroupNormPath:
    """Fit a `GroupNormSVM` for many values of C, from the largest down: the hidden states become fewer.

    Each fit starts from the weights of the last one, and makes ``n_init`` − 1 other starts.

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
        raise TypeError(f"estimator must be a GroupNormSVM, got {shorten(estimator)}; for others use tacit.path")
    known = {"hidden": hidden, "sample_weight": sample_weight}
    return GroupNormPath(*_fit_path(estimator, X, y, Cs, known, cv, largest_first=True))


def _fit_path(
    estimator: Learner, X: Any, y: Any, Cs: Any, known: dict[str, Any], cv: Any, largest_first: bool = False
) -> tuple[Array, list[Any], Array | None]:
    """The values of C, a fitted model for each, and their scores by fold; see `path`."""
    Cs = _read_values(estimator, Cs)
    known = {name: values for name, values in known.items() if values is not None}
    scores = None
    if cv is not None:
        scores = np.array(
            [
                [model.score(*test) for model in _fit_each(estimator, *train, Cs, inside, largest_first)]
                for train, inside, test in cut_folds(cv, X, y, known)
            ]
        ).T
    return Cs, _fit_each(estimator, X, y, Cs, known, largest_first), scores


def _fit_each(estimator: Learner, X: Any, y: Any, Cs: Array, known: dict[str, Any], largest_first: bool) -> list[Any]:
    model = clone(estimator).set_params(warm_start=True)
    models: list[Any] = [None] * len(Cs)
    for i in np.argsort(-Cs if largest_first else Cs, kind="stable"):
        model.set_params(C=float(Cs[i])).fit(X, y, **known)
        if getattr(model, "status_", None) is Status.INTERRUPTED:
            raise KeyboardInterrupt  # neither half a path nor the score of an interrupted fit is a result
        models[i] = model.copy_fitted(warm_start=estimator.get_params()["warm_start"])
    return models


def _read_values(estimator: Any, Cs: Any) -> Array:
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be a learner, got the class {estimator.__name__}; call it: add (...)")
    offered = estimator.get_params() if hasattr(estimator, "get_params") else {}
    missing = [name for name in ("C", "warm_start") if name not in offered]
    if missing:
        raise TypeError(
            f"estimator must be a learner with the parameter {' and '.join(missing)}, got {shorten(estimator)}; in "
            "place of a pipeline, transform X first and pass the last step"
        )
    if offered.get("checkpoint") is not None:
        raise ValueError("checkpoint must be None: a path is many fits, and a checkpoint holds one")
    values = np.atleast_1d(numbers("Cs", Cs, "a list of numbers"))
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"Cs must be a list of numbers, got {shorten(Cs)}; try np.logspace(-1, 3, 9)")
    wrong = np.flatnonzero(~((values > 0) & np.isfinite(values)))
    if wrong.size:
        raise ValueError(f"Cs must be positive numbers, got Cs[{wrong[0]}]={values[wrong[0]]}")
    return values


def _least_seconds(model: Any, X: Any, repeats: int) -> float:
    seconds = []
    for _ in range(repeats + 1):  # the first warms up
        began = time.process_time()
        model.predict(X)
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


def cut_folds(cv: Any, X: Any, y: Any, known: dict[str, Any]) -> Iterator[tuple[Pair, dict[str, Any], Pair]]:
    """Per fold of cross-validation ``(X, y)`` to learn from, what is known of these samples, and ``(X, y)`` to test on.

    ``known`` are values with one entry per sample, by name. Folds of single labels are stratified.
    """
    labels = _single_labels(y)
    n = len(y)
    known = {name: one_each(name, values, n) for name, values in known.items()}
    is_listed = has_length(X) and not isinstance(X, str | bytes | dict | set)
    if n != (X.shape[0] if getattr(X, "shape", ()) else len(X) if is_listed else -1):
        raise ValueError(f"X must hold one entry for each of the {n} labels, got {shorten(X)}")
    for train, test in _split(cv, labels, n):
        inside = {name: _safe_indexing(values, train) for name, values in known.items()}
        data, held_out = ((_safe_indexing(X, part), _safe_indexing(y, part)) for part in (train, test))
        yield data, inside, held_out


def _split(cv: Any, labels: Array | None, n: int) -> list[tuple[Array, Array]]:
    """The indices of training and test samples, fold by fold."""
    message = f"cv must be a number of folds, a splitter of scikit-learn, or pairs of indices, got {shorten(cv)}"
    if isinstance(cv, str | bytes):  # which have a method split
        raise ValueError(message)
    if isinstance(cv, Iterable) and not hasattr(cv, "split"):
        cv = list(cv) if is_list(cv) else [cv]
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in cv):
            raise ValueError(message)
    elif not (cv is None or is_whole(cv) or hasattr(cv, "split")):  # scikit-learn would print it
        raise ValueError(message)
    try:
        folds = check_cv(cv, labels, classifier=labels is not None).split(np.zeros(n), labels)
        return [(np.arange(n)[train], np.arange(n)[test]) for train, test in folds]
    except (TypeError, IndexError) as error:
        raise ValueError(message) from error


def one_each(name: str, values: Any, n: int) -> Any:
    """The values, if there is one for each of n samples."""
    if not has_length(values) or isinstance(values, Set | dict) or len(values) != n:  # a set has no order
        raise ValueError(f"{name} must hold one entry for each of the {n} samples, got {shorten(values)}")
    return values


def _single_labels(y: Any) -> Array | None:
    """The labels if each is a single number or string, so that folds can be stratified; else None."""
    if not has_length(y):
        raise ValueError(f"y must hold one label per sample, got {shorten(y)}")
    if isinstance(y, Ragged):
        return None
    values = list(y)
    return np.array(values) if all(kind_of_label(value) for value in values) else None

"""Which order of entropy, and which C: by cross-validation inside a fit."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, shorten
from tacit.learners.folds import check_size, count_labels, one_each, plain_labels, splits

__all__ = ["CurvePoint", "choose_entropy", "read_grid"]

DEFAULT_ALPHAS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, np.inf)


class CurvePoint(NamedTuple):
    """One point of the curve of cross-validation: the mean score of held-out folds, and their standard deviation."""

    alpha: float
    C: float
    score: float
    spread: float


def read_grid(learner: Any) -> tuple[Array, Array]:
    """The values of α and C of a learner, checked; one each unless α is chosen by cross-validation."""
    is_chosen = isinstance(learner.alpha, str)
    if is_chosen and learner.alpha != "cv":
        raise ValueError(f"alpha must be a number above 0, inf included, or 'cv', got alpha={shorten(learner.alpha)}")
    wished = learner.alpha
    if is_chosen:
        wished = DEFAULT_ALPHAS if learner.alphas is None else learner.alphas
    alphas = np.atleast_1d(numbers("alphas" if is_chosen else "alpha", wished, "a number above 0, or a list of them"))
    if alphas.ndim != 1 or not alphas.size or not (alphas > 0).all():
        name = "alphas" if is_chosen else "alpha"
        raise ValueError(f"{name} must be above 0, inf included, got {name}={shorten(wished)}")
    Cs = np.atleast_1d(numbers("C", learner.C, "a positive number, or with alpha='cv' a list of them"))
    if Cs.ndim != 1 or not Cs.size or not ((Cs > 0) & np.isfinite(Cs)).all():
        raise ValueError(f"C must be positive and finite, got C={shorten(learner.C)}")
    if not is_chosen and (alphas.size > 1 or Cs.size > 1):
        raise ValueError("several values of alpha or C are chosen from by cross-validation: give alpha='cv'")
    return np.sort(alphas), np.sort(Cs)


def choose_entropy(
    learner: Any, X: Any, y: Any, alphas: Array, Cs: Array, hidden: Any, sample_weight: Any
) -> list[CurvePoint]:
    """The curve: for every C and α the score of held-out folds; along α each fit starts from the last one's weights."""
    n = count_labels(y)
    check_size(X, n)
    known = {"hidden": hidden, "sample_weight": sample_weight}
    known = {name: one_each(name, values, n) for name, values in known.items() if values is not None}
    scores = np.empty((Cs.size, alphas.size, 0))
    for train, test in splits(learner.cv, plain_labels(y), n):
        inside = {name: _safe_indexing(values, train) for name, values in known.items()}
        data = _safe_indexing(X, train), _safe_indexing(y, train)
        held_out = _safe_indexing(X, test), _safe_indexing(y, test)
        found = np.empty((Cs.size, alphas.size))
        for i, C in enumerate(Cs):
            model = clone(learner).set_params(
                warm_start=True, checkpoint=None, resume=False, callbacks=None, C=float(C)
            )
            for j, alpha in enumerate(alphas):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model.set_params(alpha=float(alpha)).fit(*data, **inside)
                found[i, j] = model.score(*held_out)
        scores = np.concatenate([scores, found[:, :, None]], axis=2)
    means, spreads = (
        scores.mean(axis=2),
        scores.std(axis=2, ddof=1) if scores.shape[2] > 1 else np.zeros(scores.shape[:2]),
    )
    return [
        CurvePoint(float(alpha), float(C), float(means[i, j]), float(spreads[i, j]))
        for i, C in enumerate(Cs)
        for j, alpha in enumerate(alphas)
    ]

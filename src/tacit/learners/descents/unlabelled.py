"""Samples without a label: self-training imputes missing labels like hidden values, certain ones first."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, shorten
from tacit.learners.descents.pacing import SelfPaced

MAX_ROUNDS = 20

L = TypeVar("L", bound=Any)


def self_train(learner: L, X: Any, y: Any, is_missing: Array, hidden: Any, sample_weight: Any) -> L:
    """Fit a learner to samples some of which have no label.

    A first fit learns from the labelled samples. Each round imputes the missing labels, takes those with the largest
    margins between the best label and the next, and fits again from the present weights. The share that is taken
    begins at ``start`` and grows by the factor ``mu`` of the learner's pace, or of `SelfPaced()` where it has none.
    The rounds end when all are taken and no imputed label changes. The unlabelled samples together count at most as
    much as the labelled ones.
    """
    _check(learner, X, is_missing)
    missing, labelled = np.flatnonzero(is_missing), np.flatnonzero(~is_missing)
    weights = np.ones(is_missing.size) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.shape != is_missing.shape:
        raise ValueError(f"sample_weight must hold one number per sample ({is_missing.size}), got {weights.size}")
    factor = min(1.0, float(weights[labelled].sum()) / max(float(weights[missing].sum()), 1e-300))
    weights = np.where(is_missing, factor * weights, weights)
    given = [label for label in y if label is not None]

    def fit_part(chosen: Array, labels: Array) -> None:
        order = np.sort(np.append(labelled, chosen))
        known = None if hidden is None else _safe_indexing(hidden, order)
        learner.fit(_safe_indexing(X, order), labels[order], hidden=known, sample_weight=weights[order])

    first = np.array([given[0] if label is None else label for label in y])
    fit_part(np.zeros(0, np.int64), first)
    pace = getattr(learner, "pace", None) or SelfPaced()
    share, rest = float(pace.start), _safe_indexing(X, missing)
    with _continuing(learner):
        for _ in range(MAX_ROUNDS):
            imputed, margins = _impute_labels(learner, rest)
            labels = first.astype(np.result_type(first, imputed))
            labels[missing] = imputed
            chosen = np.argsort(-margins, kind="stable")[: int(np.ceil(share * missing.size))]
            is_same = hasattr(learner, "labels_") and np.array_equal(learner.labels_, labels)
            if is_same:
                return learner
            fit_part(missing[chosen], labels)
            if chosen.size == missing.size:
                learner.labels_ = labels
            share = min(1.0, share * float(pace.mu))
    warnings.warn(
        f"{type(learner).__name__}: labels that are missing in y still changed after {MAX_ROUNDS} rounds of "
        "self-training; the last ones are in labels_",
        ConvergenceWarning,
        stacklevel=4,
    )
    return learner


def _impute_labels(learner: Any, X: Any) -> tuple[Array, Array]:
    """The best label of every sample, and by how much its score exceeds that of the next one."""
    scores = learner.decision_function(X)
    if scores.ndim == 1:
        return learner.classes_[(scores > 0).astype(np.int64)], np.abs(scores)
    top = np.sort(scores, axis=1)[:, -2:]
    return learner.classes_[scores.argmax(axis=1)], top[:, 1] - top[:, 0]


@contextmanager
def _continuing(learner: Any) -> Iterator[None]:
    """The learner with one start, from its present weights where it can begin there."""
    changes = {name: value for name, value in (("warm_start", True), ("n_init", 1)) if hasattr(learner, name)}
    before = {name: getattr(learner, name) for name in changes}
    try:
        learner.__dict__.update(changes)
        yield
    finally:
        learner.__dict__.update(before)


def _check(learner: Any, X: Any, is_missing: Array) -> None:
    name, n = type(learner).__name__, is_missing.size
    size = X.shape[0] if getattr(X, "shape", ()) else len(X) if has_length(X) else -1
    if size != n:
        raise ValueError(f"X must hold one entry for each of the {n} labels, got {shorten(X)}")
    if getattr(learner, "checkpoint", None) is not None:
        raise ValueError(f"checkpoint must be None where labels are missing (y[{int(np.argmax(is_missing))}] is None)")
    init = getattr(learner, "init", "auto")
    if not isinstance(init, str | Mapping | list | None):
        raise ValueError(f"init must be a name or weights for {name} where labels are missing, got {shorten(init)}")

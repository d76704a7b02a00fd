"""Samples without a label: self-training imputes missing labels like hidden values, certain ones first."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from tacit.data.arrays import Array, locate
from tacit.data.labels import kind_of_label
from tacit.data.parameters import has_length, shorten
from tacit.data.ragged import Ragged
from tacit.learners.descents.pacing import SelfPaced
from tacit.problems.chain.tags import read_tags

MAX_ROUNDS = 20

L = TypeVar("L", bound=Any)


def self_train(learner: L, X: Any, y: Any, is_missing: Array, hidden: Any, sample_weight: Any, **more: Any) -> L:
    """Fit a learner to samples some of which have no label: no class, or no tags of a sequence.

    A first fit learns from the labelled samples. Each round imputes the missing labels, takes those with the largest
    margins between the best label and the next, and fits again from the present weights. The share that is taken
    begins at ``start`` and grows by the factor ``mu`` of the learner's pace, or of `SelfPaced()` where it has none.
    The rounds end when all are taken and no imputed label changes. The unlabelled samples together count at most as
    much as the labelled ones. ``more`` are other arguments of the learner's `fit` with an entry per sample, or None.
    """
    given = {name: values for name, values in {"hidden": hidden, **more}.items() if values is not None}
    _check(learner, {"X": X, **given}, is_missing)
    missing, labelled = np.flatnonzero(is_missing), np.flatnonzero(~is_missing)
    weights = np.ones(is_missing.size) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.shape != is_missing.shape:
        raise ValueError(f"sample_weight must hold one number per sample ({is_missing.size}), got {weights.size}")
    factor = min(1.0, float(weights[labelled].sum()) / max(float(weights[missing].sum()), 1e-300))
    weights = np.where(is_missing, factor * weights, weights)
    first = _read_labels(learner, X, y, is_missing)

    def fit_part(chosen: Array, labels: Any) -> None:
        order = np.sort(np.append(labelled, chosen))
        parts = {name: _safe_indexing(values, order) for name, values in given.items()}
        learner.fit(_safe_indexing(X, order), labels[order], sample_weight=weights[order], **parts)

    fit_part(np.zeros(0, np.int64), first)
    pace = getattr(learner, "pace", None) or SelfPaced()
    share, rest = float(pace.start), _safe_indexing(X, missing)
    with _continuing(learner):
        for _ in range(MAX_ROUNDS):
            imputed, margins = _impute_labels(learner, rest, isinstance(first, Ragged))
            labels = _fill(first, is_missing, imputed)
            chosen = np.argsort(-margins, kind="stable")[: int(np.ceil(share * missing.size))]
            if hasattr(learner, "labels_") and np.array_equal(_flatten(learner.labels_), _flatten(labels)):
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


def _read_labels(learner: Any, X: Any, y: Any, is_missing: Array) -> Any:
    """The labels with any value where one is missing: an array, or a Ragged of tags if they are sequences."""
    if all(label is None or kind_of_label(label) for label in y):
        given = y[int(np.argmin(is_missing))]
        return np.array([given if label is None else label for label in y])
    lengths = learner.problem.read(X).lengths
    tags = read_tags([[None] * n if label is None else label for label, n in zip(y, lengths, strict=True)], lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    gaps = np.flatnonzero(tags.missing & ~np.repeat(is_missing, lengths))
    if gaps.size:
        (i, t), whole = locate(offsets, gaps[0]), int(np.argmax(is_missing))
        raise ValueError(
            f"y[{i}][{t}] is missing, and y[{whole}] is None. Give all tags of sequence {i}, or None for the whole "
            f"sequence; or give one None per token in y[{whole}], and nothing is learned from it"
        )
    return Ragged(tags.values, offsets)


def _flatten(labels: Any) -> Array:
    """All labels in one array: those of samples, or the tags of all tokens."""
    return np.asarray(labels.values if isinstance(labels, Ragged) else labels)


def _fill(first: Any, is_missing: Array, imputed: Array) -> Any:
    """The labels with imputed ones, a label or a tag per token, where they are missing."""
    if isinstance(first, Ragged):
        return Ragged(_fill(first.values, np.repeat(is_missing, first.lengths), imputed), first.offsets)
    labels = first.astype(np.result_type(first, imputed))
    labels[is_missing] = imputed
    return labels


def _impute_labels(learner: Any, X: Any, are_sequences: bool) -> tuple[Array, Array]:
    """The best label of every sample, or its best tags one after the other; and by how much its score exceeds that of
    the next one."""
    if are_sequences:
        tags, ranked = learner.predict_best(X, k=2)
        margins = [best[0] - best[1] if best.size > 1 else np.inf for best in ranked]
        return np.concatenate([table[0] for table in tags]), np.array(margins)
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


def _check(learner: Any, samples: Mapping[str, Any], is_missing: Array) -> None:
    name, n = type(learner).__name__, is_missing.size
    for what, values in samples.items():
        size = values.shape[0] if getattr(values, "shape", ()) else len(values) if has_length(values) else -1
        if size != n:
            raise ValueError(f"{what} must hold one entry for each of the {n} labels, got {shorten(values)}")
    if getattr(learner, "checkpoint", None) is not None:
        raise ValueError(f"checkpoint must be None where labels are missing (y[{int(np.argmax(is_missing))}] is None)")
    init = getattr(learner, "init", "auto")
    if not isinstance(init, str | Mapping | list | None):
        raise ValueError(f"init must be a name or weights for {name} where labels are missing, got {shorten(init)}")

"""C of a ranker by cross-validation over queries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.data.arrays import Array
from tacit.ranking.measures import ndcg
from tacit.ranking.oracle import Training, count_right, score_judged
from tacit.ranking.ranker import rank_rows

CS = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
"""Values of C that "cv" compares."""

FOLDS = 5
"""Folds of the queries."""

DEPTH = 10
"""NDCG is measured on this many items."""


def choose_C(training: Training, weigh: Callable[[Array, Array, float], Array]) -> tuple[float, Array]:
    """The C of the highest quality on held-out queries, the smaller one among equals, and the mean of each of `CS`.

    ``weigh(kept, held, C)`` learns from the queries ``kept`` and returns the weights (queries, m) of those ``held``.
    """
    n = training.triplets.n_queries
    if n < 2:
        raise ValueError("C='cv' needs at least two queries with triplets; give C as a number")
    folds = np.random.RandomState(0).permutation(n) % min(FOLDS, n)
    found = np.empty((CS.size, n))
    for fold in range(min(FOLDS, n)):
        kept, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part = training.take(held)
        for row, C in zip(found, CS.tolist(), strict=True):
            row[held] = measure_quality(part, weigh(kept, held, C))
    means = found.mean(axis=1)
    return float(CS[means.argmax()]), means


def measure_quality(training: Training, weights: Array) -> Array:
    """(queries,) NDCG at 10 where triplets have gains; else the share of triplets in the right order."""
    triplets = training.triplets
    if triplets.gains is None:
        return np.asarray(count_right(training, weights) / triplets.per_query)
    ranking = rank_rows(score_judged(training, weights), triplets.offsets, DEPTH)
    return ndcg(ranking, triplets.gains, DEPTH, group=np.diff(triplets.offsets))

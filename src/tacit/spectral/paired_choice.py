"""Which rank and which smoothing a tagger takes, by sequences that are held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array

RANKS = (2, 4, 8, 12, 16, 20, 24, 32)
"""Ranks that "auto" compares."""

STRENGTHS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Smoothing that "auto" compares."""

HELD_OUT = 0.1
"""Share of the sequences that many data are compared by."""

MAX_FOLDED, FOLDS = 50_000, 5
"""Tokens up to which every sequence is held out once, in one of so many folds: a tenth of few data says little."""


class Choice(NamedTuple):
    """A rank, a smoothing, and the share of wrong tags of each rank that was compared, with its best smoothing."""

    rank: int
    smoothing: float
    held_out: dict[int, float]


def choose(settings: Sequence[tuple[int, float]], count: Callable[[Array], Array], parts: list[Array]) -> Choice:
    """The setting with the fewest errors, the smaller rank among equals.

    ``count(held)`` has the share of errors of every setting, learned without the sequences held out, on those.

    >>> choose([(2, 1.0), (4, 1.0)], lambda held: np.array([0.5, 0.25]), [np.array([True, False])])
    Choice(rank=4, smoothing=1.0, held_out={2: 0.5, 4: 0.25})
    """
    errors = np.mean([count(held) for held in parts], axis=0)
    rank, smoothing = settings[min(range(len(settings)), key=lambda i: (errors[i], settings[i]))]
    by_rank: dict[int, float] = {}
    for setting, error in zip(settings, errors.tolist(), strict=True):
        by_rank[setting[0]] = min(error, by_rank.get(setting[0], np.inf))
    return Choice(rank, smoothing, by_rank)


def hold_out(sizes: Array, seed: int) -> list[Array]:
    """Which sequences are held out, of sequences of these sizes: once a tenth, or each once in folds of few data.

    >>> [part.sum() for part in hold_out(np.array([3, 4, 5, 3, 3, 4]), 0)]
    [np.int64(2), np.int64(1), np.int64(1), np.int64(1), np.int64(1)]
    """
    n = sizes.size
    if n < 2:
        raise ValueError("one sequence is too few to choose rank or smoothing by; give both as numbers")
    order = np.random.default_rng(seed).permutation(n)
    few = [order[: max(1, int(HELD_OUT * n))]]
    chosen = few if sizes.sum() > MAX_FOLDED else np.array_split(order, min(FOLDS, n))
    return [np.isin(np.arange(n), part) for part in chosen]

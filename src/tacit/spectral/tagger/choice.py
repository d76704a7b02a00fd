"""Which rank, smoothing and contexts a tagger takes, by sequences that are held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array

RANKS = (2, 4, 8, 12, 16, 20, 24, 32)
"""Ranks that "auto" compares."""

STRENGTHS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Smoothing that "auto" compares."""

HELD_OUT = 0.1
"""Share of the sequences that many data are compared by."""

MAX_FOLDED, FOLDS = 50_000, 5
"""Tokens up to which every sequence is held out once, in one of so many folds: a tenth of few data says little."""


class Setting(NamedTuple):
    """A rank, a smoothing, and what contexts are."""

    rank: int
    smoothing: float
    context: str


def choose(
    settings: Sequence[Setting], count: Callable[[Array], list[float]], parts: list[Array]
) -> tuple[Setting, dict[int, float]]:
    """The setting with the fewest errors, the smaller rank among equals, and the share of wrong tags by rank.

    ``count(held)`` has the share of errors of every setting, learned without the sequences held out, on those.

    >>> settings = [Setting(2, 1.0, "tags"), Setting(4, 1.0, "tags")]
    >>> choose(settings, lambda held: [0.5, 0.25], [np.array([True, False])])
    (Setting(rank=4, smoothing=1.0, context='tags'), {2: 0.5, 4: 0.25})
    """
    errors = np.mean([count(held) for held in parts], axis=0)
    best = settings[min(range(len(settings)), key=lambda i: (errors[i], settings[i]))]
    by_rank: dict[int, float] = {}
    for setting, error in zip(settings, errors.tolist(), strict=True):
        by_rank[setting.rank] = min(error, by_rank.get(setting.rank, np.inf))
    return best, dict(sorted(by_rank.items()))


def hold_out(sizes: Array, seed: int) -> list[Array]:
    """Which sequences are held out, of sequences of these sizes: once a tenth, or each once in folds of few data.

    >>> [part.sum() for part in hold_out(np.array([3, 4, 5, 3, 3, 4]), 0)]
    [np.int64(2), np.int64(1), np.int64(1), np.int64(1), np.int64(1)]
    """
    n = sizes.size
    if n < 2:
        raise ValueError("one sequence is too few to choose by; give rank and smoothing as numbers, and a context")
    order = np.random.default_rng(seed).permutation(n)
    few = [order[: max(1, int(HELD_OUT * n))]]
    chosen = few if sizes.sum() > MAX_FOLDED else np.array_split(order, min(FOLDS, n))
    return [np.isin(np.arange(n), part) for part in chosen]

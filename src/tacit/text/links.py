"""Links between the words of two sentences, some of them sure, others merely possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import is_list, shorten

MAX_WORDS = 10_000
"""Words of a sentence, at the most: a position beyond is a mistake in a file, and would ask for too much memory."""


@dataclass(frozen=True, eq=False)
class Links:
    """Word links of one sentence pair: pairs (source position, target position), counted from 0.

    Parameters
    ----------
    sure : links that any good alignment has
    possible : links that are as good as none; the sure ones are always possible, whether they are listed or not

    >>> Links([(0, 0), (1, 2)], possible=[(1, 1)])
    Links(2 sure, 3 possible)
    """

    sure: Any
    possible: Any = ()

    def __post_init__(self) -> None:
        sure = read_pairs(self.sure)
        object.__setattr__(self, "sure", sure)
        object.__setattr__(self, "possible", sort_pairs(np.concatenate([sure, read_pairs(self.possible)])))

    def __repr__(self) -> str:
        return f"Links({len(self.sure)} sure, {len(self.possible)} possible)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Links):
            return False
        return np.array_equal(self.sure, other.sure) and np.array_equal(self.possible, other.possible)

    def __hash__(self) -> int:
        return hash((self.sure.tobytes(), self.possible.tobytes()))


def read_pairs(pairs: Any) -> Array:
    """(k, 2) different positions, sorted, from whatever lists them.

    >>> read_pairs([(1, 0), (0, 2), (1, 0)])
    array([[0, 2],
           [1, 0]])
    """
    listed = pairs
    if isinstance(pairs, set | frozenset):
        listed = sorted(pairs)
    if isinstance(listed, str | bytes | dict) or not is_list(listed):
        raise ValueError(f"links are pairs (source position, target position), got {shorten(pairs)}")
    try:
        table = np.asarray(listed)
    except (ValueError, OverflowError):
        table = np.empty(1)
    if table.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
        raise ValueError(f"links are pairs (source position, target position), got {shorten(pairs)}")
    if table.min() < 0 or table.max() >= MAX_WORDS:
        wrong = table[((table < 0) | (table >= MAX_WORDS)).any(axis=1)][0]
        raise ValueError(f"a link is {wrong.tolist()}; positions are counted from 0 and stay below {MAX_WORDS}")
    return sort_pairs(table.astype(np.int64))


def sort_pairs(pairs: Array) -> Array:
    """Different pairs in ascending order."""
    return np.unique(pairs, axis=0).reshape(-1, 2)

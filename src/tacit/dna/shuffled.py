"""Sequences shuffled so that every pair of neighbours occurs as often as before: what chance looks like."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.ragged import Ragged


def shuffle_pairs(sequences: Ragged, seed: int = 0) -> Ragged:
    """Every sequence in a random order of its letters with the same first and last letter and the same pairs.

    All such orders are as likely (Altschul & Erickson 1985): a random spanning tree into the last letter, by the walk
    of Wilson (1996), then a random Eulerian path that leaves every letter by its tree edge last. O(letters).

    Parameters
    ----------
    sequences : letter codes, from `tacit.dna.motif.sequences.read_sequences`
    seed : of the random numbers

    >>> codes = np.array([0, 0, 1, 1, 0, 2, 0, 1, 3], np.uint8)
    >>> shuffled = shuffle_pairs(Ragged(codes, np.array([0, 9])), seed=1).values
    >>> pairs = lambda codes: sorted(zip(codes[:-1].tolist(), codes[1:].tolist()))
    >>> pairs(shuffled) == pairs(codes)
    True
    """
    values = np.ascontiguousarray(sequences.values)
    out = values.copy()
    rng = np.random.default_rng(seed)
    _shuffle(values, sequences.offsets, rng.random(values.size + 1), int(rng.integers(1, 2**62)), out)
    return sequences.with_values(out)


@kernel
def _shuffle(values: Array, offsets: Array, draws: Array, state: int, out: Array) -> None:
    """One sequence after the other; ``draws`` has a random number per letter, ``state`` seeds those of the walks."""
    letters = 16
    order = np.empty(values.size, np.int64)
    begin = np.empty(letters + 1, np.int64)
    tree = np.empty(letters, np.int64)
    is_in = np.empty(letters, np.bool_)
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1]
        n = last - first - 1
        if n < 2:
            continue
        begin[:] = 0
        for p in range(first, last - 1):
            begin[values[p] + 1] += 1
        for c in range(letters):
            begin[c + 1] += begin[c]
        fill = begin[:letters].copy()
        for p in range(first, last - 1):
            order[fill[values[p]]] = values[p + 1]
            fill[values[p]] += 1
        end = values[last - 1]
        is_in[:] = False
        is_in[end] = True
        for c in range(letters):
            if begin[c + 1] == begin[c]:
                is_in[c] = True
        for c in range(letters):  # loop-erased random walks into the tree
            at = c
            while not is_in[at]:
                state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
                size = begin[at + 1] - begin[at]
                tree[at] = begin[at] + (state >> 20) % size
                at = order[tree[at]]
            at = c
            while not is_in[at]:
                is_in[at] = True
                at = order[tree[at]]
        for c in range(letters):
            low, high = begin[c], begin[c + 1]
            if high - low < 1:
                continue
            if c != end:  # the edge of the tree is the last that leaves the letter
                order[tree[c]], order[high - 1] = order[high - 1], order[tree[c]]
                high -= 1
            for k in range(high - 1, low, -1):
                j = low + int(draws[first + k] * (k - low + 1))
                order[k], order[j] = order[j], order[k]
        fill = begin[:letters].copy()
        at = values[first]
        out[first] = at
        for p in range(first + 1, last):
            following = order[fill[at]]
            fill[at] += 1
            out[p] = following
            at = following

"""P-values of motif scores: their exact distribution in random sequences with the dinucleotides of a sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

STEPS = 8192
"""Steps from the lowest to the highest score of a motif; scores are rounded to them."""

MAX_GROUPS = 5
"""Groups of stretches of the sample by their share of G and C, each with its own dinucleotides."""

STRETCH = 1000
"""Letters of a stretch."""

LEAST_LETTERS = 1 << 16
"""Letters of a group: with fewer, its dinucleotides are not known well enough."""

MIX = 0.01
"""Share of the background that is mixed into a matrix, so that no letter is impossible."""


class Background(NamedTuple):
    """Random sequences: a mixture of Markov chains, one per group of stretches with a similar share of G and C.

    Parameters
    ----------
    shares : (groups,) of all letters
    first : (groups, 4) probabilities of letters
    following : (groups, 4, 4) probabilities of letters after each letter
    """

    shares: Array
    first: Array
    following: Array

    @property
    def letters(self) -> Array:
        """(4,): shares of A, C, G and T."""
        return np.asarray(self.shares @ self.first)


def learn_background(samples: Iterable[Array], strands: int = 2) -> Background:
    """Learn a background from letter codes; letters other than A, C, G, T are skipped.

    With two strands, a sequence and its reverse complement are equally likely.

    >>> background = learn_background([np.array([0, 1] * 50, np.uint8)], strands=1)
    >>> background.following[0, 0].round(2)
    array([0.02, 0.94, 0.02, 0.02])
    """
    counts = [np.zeros((0, 16))]
    for codes in samples:
        stretch = np.zeros((codes.size // STRETCH + 1, 16))
        _count_pairs(codes, STRETCH, stretch)
        counts.append(stretch)
    pairs = np.concatenate(counts).reshape(-1, 4, 4)
    if strands == 2:
        pairs = pairs + pairs.transpose(0, 2, 1)[:, ::-1, ::-1]
    sizes = pairs.sum(axis=(1, 2))
    pairs, sizes = pairs[sizes > 0], sizes[sizes > 0]
    gc = pairs[:, :, 1:3].sum(axis=(1, 2)) / np.maximum(sizes, 1)
    n_groups = int(np.clip(sizes.sum() // (strands * LEAST_LETTERS), 1, MAX_GROUPS))
    place = np.cumsum(sizes[np.argsort(gc, kind="stable")]) - 1
    group = np.zeros(gc.size, np.int64)
    group[np.argsort(gc, kind="stable")] = np.minimum(place * n_groups // max(sizes.sum(), 1), n_groups - 1)
    sums = np.stack([pairs[group == g].sum(axis=0) for g in range(n_groups)]) + 1.0
    total = sums.sum(axis=(1, 2))
    first = sums.sum(axis=2) / total[:, None]
    return Background(total / total.sum(), first, sums / sums.sum(axis=2, keepdims=True))


@kernel
def _count_pairs(codes: Array, stretch: int, out: Array) -> None:
    for p in range(codes.size - 1):
        if codes[p] < 4 and codes[p + 1] < 4:
            out[p // stretch, 4 * codes[p] + codes[p + 1]] += 1.0


class Tail(NamedTuple):
    """The scores of a motif in whole steps, and their probabilities in random sequences.

    Parameters
    ----------
    steps : (width, 4) what every letter adds, in steps, from 0
    p_values : (STEPS + width + 1,) probability of a score of at least this many steps
    """

    steps: Array
    p_values: Array


def score_tail(weights: Array, background: Background) -> Tail:
    """The exact distribution of the score of a window, by dynamic programming (Staden 1989); O(width · STEPS).

    >>> background = Background(np.ones(1), np.full((1, 4), 0.25), np.full((1, 4, 4), 0.25))
    >>> tail = score_tail(np.eye(4)[[0, 1, 2]], background)
    >>> float(tail.p_values[tail.steps.max(axis=1).sum()]) * 64
    1.0
    """
    low = weights - weights.min(axis=1, keepdims=True)
    span = float(low.max(axis=1).sum())
    steps = np.rint(low * (STEPS / span if span > 0 else 0.0)).astype(np.int32)
    tail = np.zeros(STEPS + len(weights) + 1)
    for share, first, following in zip(*background, strict=True):
        density = _distribute(steps, first, following, tail.size)
        tail += share * density[::-1].cumsum()[::-1]
    return Tail(steps, np.minimum(tail, 1.0))


@kernel
def _distribute(steps: Array, first: Array, following: Array, size: int) -> Array:
    """The probabilities of all scores of a window in a Markov chain."""
    now = np.zeros((4, size))
    for a in range(4):
        now[a, steps[0, a]] = first[a]
    top = steps[0].max()
    for j in range(1, steps.shape[0]):
        after = np.zeros((4, size))
        for b in range(4):
            add = steps[j, b]
            for a in range(4):
                p = following[a, b]
                for s in range(top + 1):
                    after[b, s + add] += p * now[a, s]
        top += steps[j].max()
        now = after
    out = np.zeros(size)
    for a in range(4):
        for s in range(size):
            out[s] += now[a, s]
    return out


def log_odds(shares: Array, letters: Array) -> Array:
    """(width, 4): how much each letter speaks for a motif, in bits, against the shares of letters outside.

    >>> log_odds(np.eye(4)[:1], np.full(4, 0.25)).round(2)
    array([[ 1.99, -6.64, -6.64, -6.64]])
    """
    return np.asarray(np.log2((1 - MIX) * shares / letters + MIX))

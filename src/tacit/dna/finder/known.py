"""Is a motif a known one? The best alignment with each, on either strand, against shuffled columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.motif_files import Matrix

LEAST_OVERLAP = 5
"""Positions that two motifs share in an alignment; fewer where one of them is shorter."""

SHUFFLES = 4999
"""Shuffles of the columns of a found motif that its matches are compared with."""

LIKENESS = 0.05
"""Matches with a p-value below this are called alike."""


class Match(NamedTuple):
    """The known motif that is most like a found one.

    Parameters
    ----------
    name : of the known motif
    correlation : of all letters in the positions that overlap, at the best alignment
    p_value : how often the found motif with its columns shuffled has as good a match, times the number of known motifs
    offset : where the known motif begins in the found one
    strand : 1 if the known motif is turned around
    overlap : positions in common
    """

    name: str
    correlation: float
    p_value: float
    offset: int
    strand: int
    overlap: int


def match_known(shares: Array, known: Sequence[Matrix], seed: int = 0, shuffles: int = SHUFFLES) -> list[Match]:
    """The matches of one motif, the best first (by p-value, then by correlation).

    Parameters
    ----------
    shares : (width, 4)
    known : from `tacit.dna.motif_files.read_motifs`
    seed, shuffles : of the p-values; 0 shuffles leave them out (they are 1)

    >>> one = np.eye(4)[[3, 2, 0, 1, 3, 1, 0]] * 0.9 + 0.025
    >>> other = np.eye(4)[[0, 0, 0, 0, 0, 0, 0]] * 0.9 + 0.025
    >>> best = match_known(one, [Matrix("other", other), Matrix("turned", one[::-1, ::-1])])[0]
    >>> best.name, round(best.correlation, 3), best.strand
    ('turned', 1.0, 1)
    """
    rng = np.random.default_rng(seed)
    shuffled = np.stack([shares[rng.permutation(len(shares))] for _ in range(shuffles)] or [shares])
    matches = []
    for motif in known:
        correlation, offset, strand, overlap = _best_alignment(shares[None], motif.shares)
        p = 1.0
        if shuffles:
            rivals = _best_alignment(shuffled, motif.shares)[0]
            p = (1 + int((rivals >= correlation[0] - 1e-12).sum())) / (shuffles + 1)
        matches.append(
            Match(
                motif.name,
                float(correlation[0]),
                min(1.0, p * len(known)),
                int(offset[0]),
                int(strand[0]),
                int(overlap[0]),
            )
        )
    return sorted(matches, key=lambda match: (match.p_value, -match.correlation))


def _best_alignment(many: Array, other: Array) -> tuple[Array, Array, Array, Array]:
    """Correlation, offset, strand and overlap of the best alignment of each of many motifs with another one."""
    n, width = len(many), many.shape[1]
    least = min(LEAST_OVERLAP, width, len(other))
    best = np.full(n, -np.inf)
    offset, strand, overlap = (np.zeros(n, np.int64) for _ in range(3))
    for turn, known in enumerate((other, other[::-1, ::-1])):
        for shift in range(least - len(known), width - least + 1):
            low, high = max(shift, 0), min(shift + len(known), width)
            a = many[:, low:high].reshape(n, -1) - 0.25
            b = known[low - shift : high - shift].ravel() - 0.25
            scale = np.sqrt((a**2).sum(axis=1) * (b**2).sum())
            value = np.divide(a @ b, scale, out=np.zeros(n), where=scale > 1e-12)
            value = value * np.sqrt((high - low) / min(width, len(other)))  # short overlaps are easy to match
            is_better = value > best
            best[is_better] = value[is_better]
            offset[is_better], strand[is_better], overlap[is_better] = shift, turn, high - low
    return best, offset, strand, overlap

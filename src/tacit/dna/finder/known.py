"""Known motifs that are similar to a found one: p-values and E-values by the method of Tomtom, and the alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.dna.files import Matrix
from tacit.dna.finder.shapes import FoundMotif, write_consensus
from tacit.dna.sequences import DNA, Alphabet

LEAST_OVERLAP = 5
"""Positions in which aligned motifs must overlap; fewer where one of them is shorter."""

LIKENESS = 0.05
"""A known motif with an E-value below this is called similar."""

BINS = 100
"""Steps between the lowest and the highest score of two columns (Gupta et al. 2007)."""

LEAST_COLUMNS = 1000
"""Columns that the null distribution needs. Where the known motifs have fewer, random ones are added."""

CONCENTRATION = 0.3
"""Of the Dirichlet distribution of random columns: most have one or two frequent letters, as those of databases."""


class Match(NamedTuple):
    """A known motif, aligned with a found one.

    Parameters
    ----------
    name : of the known motif
    correlation : of all letters in the positions that overlap
    p_value : the probability of an alignment that scores as well with a motif of random columns
    e_value : p-value times the number of known motifs
    offset : position in the found motif where the known one starts
    strand : 1 if the reverse complement of the known motif matches
    overlap : positions in common
    alignment : consensus of the found motif and of the known one, with blanks that align them
    """

    name: str
    correlation: float
    p_value: float
    e_value: float
    offset: int
    strand: int
    overlap: int
    alignment: tuple[str, str]


def match_known(shares: Array, known: Sequence[Matrix], alphabet: Alphabet = DNA) -> list[Match]:
    """The matches of one motif, the best first.

    The method of Tomtom (Gupta et al. 2007) with complete scores (Tanaka et al. 2011). The score of two columns is the
    negative Euclidean distance, less the median of the found column's scores with all known columns. An alignment has
    the sum of its columns; columns outside the overlap count 0. The null distribution draws each known column
    independently; its sums are computed exactly, and the p-value is that of the best of all offsets and strands.

    >>> one = np.eye(4)[[3, 2, 0, 1, 3, 1, 0]] * 0.9 + 0.025
    >>> other = np.eye(4)[[0, 0, 0, 0, 0, 0, 0]] * 0.9 + 0.025
    >>> best = match_known(one, [Matrix("other", other), Matrix("reverse", one[::-1, ::-1])])[0]
    >>> best.name, best.strand, best.alignment, best.e_value < 0.01
    ('reverse', 1, ('TGACTCA', 'TGACTCA'), True)
    """
    if not known:
        return []
    check_known(known, alphabet)
    null = _NullScores(shares, known, alphabet)
    matches = [_match_one(shares, motif, null, len(known), alphabet) for motif in known]
    return sorted(matches, key=lambda match: (match.p_value, -match.correlation))


def match_motifs(motifs: Sequence[FoundMotif], known: Sequence[Matrix], alphabet: Alphabet = DNA) -> list[list[Match]]:
    """The matches of every motif, the best first; an empty list where no motifs are known."""
    return [match_known(one.probabilities, known, alphabet) for one in motifs] if known else []


def check_known(known: Sequence[Matrix], alphabet: Alphabet) -> None:
    """Refuse known motifs of another alphabet."""
    wrong = [motif for motif in known if motif.shares.shape[1] != alphabet.size]
    if wrong:
        raise ValueError(
            f"known motif {shorten(wrong[0].name)} has {wrong[0].shares.shape[1]} letters, and {alphabet.name} has "
            f"{alphabet.size}; give known motifs of the same alphabet"
        )


def _match_one(shares: Array, motif: Matrix, null: _NullScores, n_known: int, alphabet: Alphabet) -> Match:
    best, place, log_below = -np.inf, (0, 0, 0, 0), 0.0
    offsets = _offsets(len(shares), len(motif.shares))
    sides = (motif.shares, motif.shares[::-1, ::-1])[: 1 + alphabet.has_complement]
    for strand, known in enumerate(sides):
        steps = null.steps_of(known)
        for offset in offsets:
            low, high = max(offset, 0), min(offset + len(known), len(shares))
            at = np.arange(low, high)
            score = int(steps[at, at - offset].sum())
            if score > best:
                best, place = score, (offset, strand, low, high)
    for offset in offsets:
        low, high = max(offset, 0), min(offset + len(motif.shares), len(shares))
        log_below += len(sides) * np.log1p(-min(null.tail(low, high, int(best)), 1 - 1e-16))
    offset, strand, low, high = place
    known = motif.shares[::-1, ::-1] if strand else motif.shares
    p = float(np.clip(-np.expm1(log_below), 1e-300, 1.0))
    correlation = _correlate(shares[low:high], known[low - offset : high - offset])
    alignment = align_consensus(shares, known, offset, alphabet)
    return Match(motif.name, correlation, p, p * n_known, offset, strand, high - low, alignment)


def align_consensus(shares: Array, known: Array, offset: int, alphabet: Alphabet = DNA) -> tuple[str, str]:
    """The consensus of both motifs, with blanks so that aligned letters are below each other.

    >>> align_consensus(np.eye(4)[[0, 1, 2]], np.eye(4)[[3, 0, 1]], -1)
    (' ACG', 'TAC ')
    """
    first, second = " " * max(-offset, 0), " " * max(offset, 0)
    one, other = first + write_consensus(shares, alphabet), second + write_consensus(known, alphabet)
    width = max(len(one), len(other))
    return one.ljust(width), other.ljust(width)


def find_correlation(shares: Array, known: Array, strands: int = 2) -> float:
    """The highest correlation of two motifs over all alignments; short overlaps count less, because they match easily.

    >>> one = np.eye(4)[[3, 2, 0, 1, 3, 1, 0]]
    >>> round(find_correlation(one, one[::-1, ::-1]), 6)
    1.0
    """
    best = -np.inf
    for other in (known, known[::-1, ::-1])[:strands]:
        for offset in _offsets(len(shares), len(other)):
            low, high = max(offset, 0), min(offset + len(other), len(shares))
            value = _correlate(shares[low:high], other[low - offset : high - offset])
            best = max(best, value * float(np.sqrt((high - low) / min(len(shares), len(other)))))
    return best


def _offsets(width: int, known_width: int) -> range:
    least = min(LEAST_OVERLAP, width, known_width)
    return range(least - known_width, width - least + 1)


def _correlate(one: Array, other: Array) -> float:
    chance = 1 / one.shape[1]
    a, b = one.ravel() - chance, other.ravel() - chance
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 1e-12 else 0.0


class _NullScores:
    """Scores of the columns of a found motif in whole steps, and the distributions of their sums."""

    def __init__(self, shares: Array, known: Sequence[Matrix], alphabet: Alphabet = DNA) -> None:
        sides = 1 + alphabet.has_complement
        columns = np.concatenate([part for one in known for part in (one.shares, one.shares[::-1, ::-1])[:sides]])
        if len(columns) < LEAST_COLUMNS:
            spread = np.full(alphabet.size, CONCENTRATION * 4 / alphabet.size)
            drawn = np.random.default_rng(0).dirichlet(spread, LEAST_COLUMNS - len(columns))
            columns = np.concatenate([columns, drawn])
        self._shares = shares
        scores = self._score(columns)
        self._median = np.median(scores, axis=1)
        centred = scores - self._median[:, None]
        self._step = max(float(np.ptp(centred)), 1e-12) / BINS
        steps = np.rint(centred / self._step).astype(np.int64)
        self._low = steps.min(axis=1)
        size = int((steps - self._low[:, None]).max()) + 1
        self._density = [np.bincount(row - row.min(), minlength=size) / row.size for row in steps]
        self._tails: dict[tuple[int, int], tuple[int, Array]] = {}

    def steps_of(self, known: Array) -> Array:
        """(width, known width): the scores of all pairs of columns, in steps."""
        return np.asarray(np.rint((self._score(known) - self._median[:, None]) / self._step), dtype=np.int64)

    def tail(self, low: int, high: int, score: int) -> float:
        """The probability that the columns from ``low`` to ``high`` sum to ``score`` or more with random columns."""
        if (low, high) not in self._tails:
            density = np.ones(1)
            for j in range(low, high):
                density = np.convolve(density, self._density[j])
            self._tails[low, high] = int(self._low[low:high].sum()), density[::-1].cumsum()[::-1]
        least, tail = self._tails[low, high]
        at = score - least
        return 1.0 if at <= 0 else float(tail[at]) if at < tail.size else 0.0

    def _score(self, columns: Array) -> Array:
        return np.asarray(-np.linalg.norm(self._shares[:, None] - columns[None], axis=2))

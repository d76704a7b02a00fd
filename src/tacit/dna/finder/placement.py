"""Where the sites of motifs lie: sites per sequence, distance from the middle, spacing of pairs, and doubtful sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom, fisher_exact, norm

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.ragged import Ragged
from tacit.dna.finder.files import MotifInput
from tacit.dna.finder.shapes import LONGEST_MOTIF, FoundMotif, Sites
from tacit.dna.motif.site_oracle import pad
from tacit.dna.sequences import ALPHABETS, DNA, Alphabet, append_flank, read_sequences

LONGEST_DISTANCE = 100
"""Letters between the starts of two motifs up to which their spacing is tested."""

SITES_PER_SEQUENCE = ("zero-or-one", "one", "any")
"""Numbers of sites per sequence that can be asked for."""

MORE_THAN_ONE = 0.2
"""Share of the positives with a site that have several, above which sequences are said to hold any number."""

FIXED_DISTANCE = 1e-3
"""P-value of a distance below which two motifs are said to keep it."""

POWER_STEP = 1e-3
"""Step of the central difference that takes the mean score from log-sums."""


class Placement(NamedTuple):
    """The sites of one motif in the positive sequences.

    Parameters
    ----------
    none, one, several : shares of sequences with as many sites that do not overlap
    centre : mean distance of the best site from the middle, 0 in the middle, 1 at the ends; 0.5 by chance
    centre_p_value : probability of sites as close to the middle, if all positions are equally likely
    """

    none: float
    one: float
    several: float
    centre: float
    centre_p_value: float

    @property
    def model(self) -> str:
        """Sites per sequence: "zero-or-one", "one" or "any"."""
        if self.several > MORE_THAN_ONE * (1 - self.none):
            return "any"
        return "one" if self.none < 0.05 else "zero-or-one"


class SiteList(NamedTuple):
    """Sites of one motif: (sites,) each. ``start`` counts from the first letter of the sequence in ``row``."""

    row: Array
    start: Array
    strand: Array
    value: Array


class Pair(NamedTuple):
    """Two motifs, numbered from 1, in the positive sequences.

    Parameters
    ----------
    first, second : their numbers
    together : sequences with sites of both
    expected : the same, if the motifs were independent
    p_value : of Fisher's exact test, one-sided: they occur together more often
    distance : letters from the start of the first to that of the second, along the strand of the first, which is the
        most frequent one; None without sequences that have both
    at_distance : sequences with this distance
    distance_p_value : probability of so many at one distance by chance, times the number of distances
    """

    first: int
    second: int
    together: int
    expected: float
    p_value: float
    distance: int | None
    at_distance: int
    distance_p_value: float


def place_motif(
    sequences: Ragged,
    sites: Sites,
    is_positive: Array,
    m: int,
    motif: FoundMotif,
    weights: Array,
    strands: int,
    overhang: int,
) -> Placement:
    """Describe where the sites of the motif in column ``m`` of ``sites`` lie."""
    rows = np.flatnonzero(is_positive)
    own = sequences[rows]
    found = find_sites(own, weights, motif.least_score, strands, overhang, alphabet=ALPHABETS[motif.alphabet])
    counts = np.bincount(found.row, minlength=len(own))
    has_site = sites.value[rows, m] > motif.least_score
    room = own.lengths - sites.width
    usable = has_site & (room > 0)
    place = np.clip(sites.start[rows, m][usable] / room[usable], 0.0, 1.0)
    centre, p = measure_centre(place)
    none, one, several = (float(np.mean(part)) for part in (counts == 0, counts == 1, counts > 1))
    return Placement(none, one, several, centre, p)


def choose_sites(
    sequences: Ragged,
    sites: Sites,
    is_positive: Array,
    m: int,
    motif: FoundMotif,
    weights: Array,
    strands: int,
    overhang: int,
    most: str,
) -> SiteList:
    """The sites of a motif in positive sequences, the best first, for "zero-or-one", "one" or "any" per sequence."""
    rows = np.flatnonzero(is_positive)
    if most == "zero-or-one":
        rows = rows[sites.value[rows, m] > motif.least_score]
        found = SiteList(rows, *(part[rows, m] for part in sites[:3]))
    else:
        alphabet = ALPHABETS[motif.alphabet]
        found = find_sites(sequences[rows], weights, motif.least_score, strands, overhang, most, alphabet)
        found = found._replace(row=rows[found.row])
    order = np.argsort(-found.value, kind="stable")
    return SiteList(*(part[order] for part in found))


def measure_centre(place: Array) -> tuple[float, float]:
    """The mean distance of places (0 to 1) from the middle, and its one-sided p-value against a uniform distribution.

    >>> centre, p = measure_centre(np.linspace(0.4, 0.6, 50))
    >>> round(centre, 2), p < 1e-6
    (0.1, True)
    """
    if not place.size:
        return 0.5, 1.0
    distance = np.abs(2 * place - 1)
    z = (distance.mean() - 0.5) * np.sqrt(12 * distance.size)
    return float(distance.mean()), max(float(norm.cdf(z)), float(np.finfo(np.float64).tiny))


def find_sites(
    sequences: Ragged,
    weights: Array,
    least: float,
    strands: int,
    overhang: int = 0,
    most: str = "any",
    alphabet: Alphabet = DNA,
) -> SiteList:
    """The sites of a motif in sequences: windows that score above ``least``, of overlapping ones the best.

    With ``most="one"`` every sequence has exactly one, its best window, whatever its score.

    >>> from tacit.dna.sequences import read_sequences
    >>> found = find_sites(read_sequences(["ACGTTACGTT", "TTTTT"]), np.eye(4)[[0, 1, 2]], 2.5, 1)
    >>> found.row, found.start
    (array([0, 0]), array([0, 5]))
    """
    width = len(weights)
    padded = pad(sequences, overhang, alphabet.any_code)
    codes = padded.values
    last = max(codes.size - width + 1, 0)
    best, side = np.full(codes.size, -np.inf), np.zeros(codes.size, np.int64)
    for strand, table in enumerate((weights, weights[::-1, ::-1])[:strands]):
        letters = np.ascontiguousarray(table @ alphabet.shares.T)
        scores = np.zeros(last)
        for j in range(width):
            scores += letters[j][codes[j : j + last]]
        is_better = scores > best[:last]
        best[:last][is_better], side[:last][is_better] = scores[is_better], strand
    at = np.empty(codes.size, np.int64)
    at = at[: _choose_apart(best, padded.offsets, width, -np.inf if most == "one" else least, most == "one", at)]
    row = np.searchsorted(padded.offsets, at, side="right") - 1
    return SiteList(row, at - padded.offsets[row] - overhang, side[at], best[at])


@kernel
def _choose_apart(best: Array, offsets: Array, width: int, least: float, is_one: bool, out: Array) -> int:
    """Positions of windows above ``least`` that do not overlap a better one to their right; returns how many."""
    n = 0
    for i in range(offsets.size - 1):
        p, end = offsets[i], offsets[i + 1] - width + 1
        if is_one:
            if p < end:
                top = p
                for q in range(p + 1, end):
                    if best[q] > best[top]:
                        top = q
                out[n] = top
                n += 1
            continue
        while p < end:
            if best[p] > least:
                q = p + 1
                while q < min(p + width, end):
                    if best[q] > best[p]:
                        p = q
                    q += 1
                out[n] = p
                n += 1
                p += width
            else:
                p += 1
    return n


def pair_motifs(
    sequences: Ragged, sites: Sites, is_positive: Array, order: Sequence[int], motifs: Sequence[FoundMotif]
) -> list[Pair]:
    """All pairs of motifs: do they occur together, and at one distance?"""
    rows = np.flatnonzero(is_positive)
    has = [sites.value[rows, m] > motif.least_score for m, motif in zip(order, motifs, strict=True)]
    length = float(np.median(sequences.lengths[rows]))
    pairs = []
    for a in range(len(order)):
        for b in range(a + 1, len(order)):
            both = has[a] & has[b]
            n_both, n_a, n_b = int(both.sum()), int(has[a].sum()), int(has[b].sum())
            table = [[n_both, n_a - n_both], [n_b - n_both, rows.size - n_a - n_b + n_both]]
            p = float(fisher_exact(table, alternative="greater").pvalue)
            kept = rows[both]
            shift = sites.start[kept, order[b]] - sites.start[kept, order[a]]
            shift = np.where(sites.strand[kept, order[a]] == 1, -shift, shift)
            distance, at, chance = find_distance(shift, sites.width, length)
            expected = n_a * n_b / max(rows.size, 1)
            pairs.append(Pair(a + 1, b + 1, n_both, expected, p, distance, at, chance))
    return pairs


def describe_pair(pair: Pair, width: int) -> str:
    """A sentence about two motifs that keep one distance without an overlap; empty where they do not.

    >>> print(describe_pair(Pair(1, 2, 80, 20.0, 1e-9, 14, 70, 1e-20), 10))
    motifs 1 and 2 start 14 letters apart in 70 of the 80 sequences that hold both: perhaps one motif; try --width 24
    """
    is_fixed = pair.distance_p_value < FIXED_DISTANCE and 2 * pair.at_distance >= pair.together
    if pair.distance is None or not is_fixed or abs(pair.distance) < width:
        return ""
    whole = width + abs(pair.distance)
    text = (
        f"motifs {pair.first} and {pair.second} start {abs(pair.distance)} letters apart in {pair.at_distance:,} of the"
    )
    text += f" {pair.together:,} sequences that hold both: perhaps one motif"
    return text + (f"; try --width {whole}" if whole <= LONGEST_MOTIF else "")


def find_distance(shift: Array, width: int, length: float) -> tuple[int | None, int, float]:
    """The most frequent distance, how often it occurs, and its p-value times the number of distances.

    By chance, two windows of this width in a sequence of this length have one distance with a probability of at most
    1 / (length − width + 1).

    >>> find_distance(np.array([12] * 9 + [40, -7]), 8, 100)[:2]
    (12, 9)
    """
    near = shift[np.abs(shift) <= LONGEST_DISTANCE]
    if not near.size:
        return None, 0, 1.0
    values, counts = np.unique(near, return_counts=True)
    k = int(counts.argmax())
    chance = 1 / max(length - width + 1, 1)
    p = float(binom.sf(int(counts[k]) - 1, shift.size, min(chance, 1.0)))
    return int(values[k]), int(counts[k]), min(1.0, p * (2 * LONGEST_DISTANCE + 1))


class Doubts(NamedTuple):
    """Names of sequences, the entropies of their sites in nats, and the best site of the first motif in each."""

    names: list[str]
    usefulness: Array
    guesses: list[str]


def find_doubtful_sites(finder: Any, data: MotifInput, k: int) -> Doubts:
    """The k positive sequences whose sites are least certain, by the entropy of p(sites) ∝ exp(score).

    With ``L(t) = log Σ exp(t·score)`` over all sites, the entropy is ``L(1) − L'(1)``.
    """
    positive = np.arange(len(data.letters)) if data.labels is None else np.flatnonzero(data.labels == 1)
    own = read_sequences([data.letters[i] for i in positive], finder.letters_)
    sequences = append_flank(own, finder.flank, finder.letters_)
    oracle = finder.problem_.bind(sequences, np.full(positive.size, finder.classes_[1]), finder.schema_)
    sums = [
        oracle.expectations(finder.coef_, None, truth=0.0, power=power).truth
        for power in (1 - POWER_STEP, 1.0, 1 + POWER_STEP)
    ]
    entropies = np.maximum(sums[1] - (sums[2] - sums[0]) / (2 * POWER_STEP), 0.0)
    order = np.argsort(-entropies, kind="stable")[:k]
    m, sites = int(finder.motif_order_[0]), finder.sites_
    guesses = []
    for i in positive[order].tolist():
        start = int(sites.start[i, m])
        guesses.append(
            f"{start} {start + sites.width} {'+-'[int(sites.strand[i, m])]}" if sites.value[i, m] > 0 else ""
        )
    return Doubts([data.names[i] for i in positive[order]], entropies[order], guesses)

"""The width of a motif from data: it grows over letters beside its sites that are conserved too, also behind a gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import chi2, ttest_1samp, ttest_ind

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.finder.shapes import (
    LEAST_BITS,
    LEAST_SPACER,
    LONGEST_MOTIF,
    NEGATIVES_WITH_SITE,
    PART_BITS,
    Sites,
    share_letters,
    site_letters,
)
from tacit.dna.sequences import DNA, Alphabet
from tacit.oracle import Schema

REACH = 20
"""Letters on each side of a site that are looked at."""

LONGEST_SPACER = 10
"""Letters without information between two parts of one motif."""

PART_LETTERS = 10
"""Letters behind a gap whose conserved ones together have the information of a part."""

LEAST_SITES = 20
"""Sites that are needed to see whether letters beside them are conserved."""

CONSERVED = 1e-2
"""The p-value of a conserved position is below this, divided by the number of positions."""

GROWTH_P_VALUE = 0.01
"""A motif grows if the p-value of the letters beside its sites, in sequences that were left out, is below this."""

MIXTURE_STEPS, SHARES = 10, (0.05, 0.95)
"""Of the mixture of sites and of windows that only look like one: steps, and bounds of the share of sites."""

FOLDS = 10
"""Parts of the sites: the letters beside those of each are scored by the others."""

ROUNDS = 3
"""How often a motif may grow."""

FLANK_WEIGHT = 0.3
"""The weight of a new position starts at its log-odds times this."""


class Extent(NamedTuple):
    """Where conserved letters begin and end, counted from the first letter of a site, and log-odds of all letters.

    Parameters
    ----------
    start, end : half-open; ``start`` is negative where letters before the site are conserved
    log_odds : (end − start, 4)
    """

    start: int
    end: int
    log_odds: Array

    @property
    def width(self) -> int:
        return self.end - self.start


def find_extent(
    sequences: Ragged, sites: Sites, is_positive: Array, longest: int = LONGEST_MOTIF, alphabet: Alphabet = DNA
) -> Extent | None:
    """The conserved letters at and beside the sites of the first motif in positive sequences; None with few sites.

    A position is conserved by a G-test against the letters of these sequences. Positions beyond a gap of up to
    `LONGEST_SPACER` letters belong to the motif. An extent that reaches beyond the window has at least its width.
    """
    rows = np.flatnonzero((sites.value[:, 0] > least_score(sites, is_positive)) & is_positive)
    if rows.size < LEAST_SITES:
        return None
    width = sites.width
    letters = letters_around(sequences, sites, rows, (-REACH, width + REACH), alphabet)
    counts = mark_letters(letters, alphabet).sum(axis=0)
    background = share_letters(sequences[rows], alphabet)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    shares = (counts + background) / (totals + 1)
    nats = (shares * np.log(shares / background)).sum(axis=1)
    p = chi2.sf(2 * totals[:, 0] * nats, alphabet.size - 1)
    is_conserved = (p < CONSERVED / p.size) & (nats > LEAST_BITS * np.log(2)) & (totals[:, 0] >= LEAST_SITES)
    low, high = _connect(np.where(is_conserved, nats / np.log(2), 0.0), REACH, REACH + width, longest)
    if low < REACH:  # a window that lies beside the motif is shifted, not made shorter
        high = max(high, low + width)
    elif high > REACH + width:
        low = min(low, high - width)
    return Extent(low - REACH, high - REACH, np.log(shares / background)[low:high])


def least_score(sites: Sites, is_positive: Array) -> float:
    """The score that a site of the first motif must exceed: nine of ten negatives are without one."""
    return max(0.0, float(np.quantile(sites.value[~is_positive, 0], 1 - NEGATIVES_WITH_SITE)))


def _connect(bits: Array, first: int, last: int, longest: int) -> tuple[int, int]:
    """The range of positions with bits above 0 that are connected with the site, gaps allowed."""
    inside = first + np.flatnonzero(bits[first:last])
    if not inside.size:
        return first, last
    low, high = int(inside[0]), int(inside[-1]) + 1
    while True:
        new_low = low - _reach_over(bits[:low][::-1])
        new_high = high + _reach_over(bits[high:])
        if new_low < low and high - new_low <= longest:
            low = new_low
        elif new_high > high and new_high - low <= longest:
            high = new_high
        else:
            return low, high


def _reach_over(bits: Array) -> int:
    """Letters up to the next conserved position and with it, the nearest first; 0 where nothing is connected.

    Behind a gap there must be a part: two conserved positions, at most one letter apart, and some information in all.
    """
    for position in np.flatnonzero(bits[: LONGEST_SPACER + 1]).tolist():
        part = bits[position : position + PART_LETTERS]
        if position < LEAST_SPACER or (part[1:3].any() and part.sum() >= PART_BITS):
            return position + 1
    return 0


def widen(schema: Schema, w: Array, wider: Schema, extent: Extent, motif: int) -> Array:
    """The weights of a model of wider motifs, one of them over an extent.

    That has its own weights where it had some, and a part of the log-odds at new positions. All others stay in the
    middle, with zeros beside them; all do if ``motif`` is −1.
    """
    grown = np.zeros(wider.n_params)
    old, new = schema.views(w), wider.views(grown)
    for name, block in old.items():
        if name != "motif":
            new[name][...] = block
    for m, table in enumerate(old["motif"]):
        low, inside = (extent.width - len(table)) // 2, np.arange(len(table))
        if m == motif:
            new["motif"][m] = FLANK_WEIGHT * extent.log_odds
            low, inside = -extent.start, inside[max(extent.start, 0) : max(extent.end, 0)]
        new["motif"][m][inside + low] = table[inside]
    return grown


def measure_growth(
    sequences: Ragged, sites: Sites, is_positive: Array, extent: Extent, seed: int, alphabet: Alphabet = DNA
) -> float:
    """The p-value of the conserved letters beside the sites of the first motif, by cross-validation.

    The sites are cut into folds. The evidence of a site is the log-likelihood of the letters beside it, by the mixture
    (`learn_mixture`) of the sites of the other folds, less that by the background. It must be above 0 in positives, and
    above that of sites in negatives; the p-value is the larger one of both tests. The motif itself did not see these
    letters. Labels alone would say less: where few positives hold the motif, more weights raise the held-out loss
    although every letter is right.
    """
    has_site = sites.value[:, 0] > least_score(sites, is_positive)
    rows = np.flatnonzero(has_site)
    labels = is_positive[rows]
    letters = letters_around(sequences, sites, rows, extent[:2], alphabet)
    background = share_letters(sequences[rows[labels]], alphabet)
    positions = np.arange(extent.start, extent.end)
    beside = mark_letters(letters[:, (positions < 0) | (positions >= sites.width)], alphabet)
    fold = np.random.default_rng(seed).permutation(rows.size) % FOLDS
    evidence = np.zeros(rows.size)
    for k in range(FOLDS):
        evidence[fold == k] = learn_mixture(beside[labels & (fold != k)], background).score(beside[fold == k])
    return compare_evidence(evidence, labels)


class Mixture(NamedTuple):
    """Letters at positions, of which a share of the rows has some of its own and the rest those of the background.

    Parameters
    ----------
    share : of rows with letters of their own
    log_odds : (positions, letters) of these against the background
    """

    share: float
    log_odds: Array

    def score(self, marks: Array) -> Array:
        """(rows,): the log-likelihood of the letters less that by the background."""
        ratio = np.einsum("npc,pc->n", marks, self.log_odds)
        return np.asarray(np.logaddexp(np.log1p(-self.share), np.log(self.share) + ratio))


def learn_mixture(marks: Array, background: Array) -> Mixture:
    """A mixture by expectation maximisation, from (rows, positions, letters) marks.

    Some of the windows that score as sites hold none. Their letters make conserved ones look weak, one position at a
    time; together the positions tell which rows these are.

    >>> conserved, others = np.tile(np.eye(4)[[0, 1, 2, 3]], (30, 1, 1)), np.eye(4)[np.arange(40).reshape(10, 4) % 4]
    >>> round(learn_mixture(np.concatenate([conserved, others[::2] * 0.5]), np.full(4, 0.25)).share, 1)
    0.9
    """
    share, odds = 0.5, np.zeros(len(marks))
    weight = np.ones(len(marks))
    for _ in range(MIXTURE_STEPS):
        counts = np.einsum("n,npc->pc", weight, marks)
        letters = (counts + background) / (counts.sum(axis=1, keepdims=True) + 1)
        log_odds = np.log(letters / background)
        odds = np.einsum("npc,pc->n", marks, log_odds)
        weight = expit(odds + logit(share))
        share = float(np.clip(weight.mean(), *SHARES)) if weight.size else 0.5
    return Mixture(share, log_odds)


def compare_evidence(evidence: Array, is_positive: Array) -> float:
    """The larger p-value of two t-tests: the evidence of positives is above 0, and above that of negatives.

    >>> rng = np.random.default_rng(0)
    >>> evidence, is_positive = rng.standard_normal(80), np.arange(80) < 60
    >>> compare_evidence(evidence + 2 * is_positive, is_positive) < 1e-6, compare_evidence(evidence, is_positive) > 0.01
    (True, True)
    """
    positive, negative = evidence[is_positive], evidence[~is_positive]
    if positive.size < 2 or np.ptp(positive) == 0:
        return 1.0
    p = float(ttest_1samp(positive, 0.0, alternative="greater").pvalue)
    if negative.size < 2 or np.ptp(negative) == 0:
        return p
    return max(p, float(ttest_ind(positive, negative, equal_var=False, alternative="greater").pvalue))


def letters_around(
    sequences: Ragged, sites: Sites, rows: Array, extent: tuple[int, int], alphabet: Alphabet = DNA
) -> Array:
    """(rows, width) letter codes from the start to the end of an extent, at the sites of the first motif."""
    low, high = extent
    start, strand = sites.start[rows, :1], sites.strand[rows, :1]
    first = np.where(strand == 1, start + sites.width - high, start + low)
    return site_letters(sequences[rows], first, strand, high - low, alphabet)[:, 0]


def mark_letters(letters: Array, alphabet: Alphabet = DNA) -> Array:
    """(..., letters): 1 for the plain letter at each position; other letters do not count."""
    return np.asarray(np.where((letters < alphabet.size)[..., None], alphabet.shares[letters], 0.0))

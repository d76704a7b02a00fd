"""The width of a motif from data: it grows over letters beside its sites that are conserved too, also behind a gap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.finder import models
from tacit.dna.finder.shapes import LEAST_BITS, LONGEST_MOTIF, NEGATIVES_WITH_SITE, Sites, find_best_sites, site_letters
from tacit.dna.kmers import find_enriched_kmers
from tacit.dna.motif.sites import MotifSites
from tacit.dna.sequences import SHARES
from tacit.oracle import Schema
from tacit.runtime import Status
from tacit.runtime.loop import Deadline

REACH = 20
"""Letters on each side of a site that are looked at."""

LONGEST_SPACER = 10
"""Letters without information between two parts of one motif."""

LEAST_SITES = 20
"""Sites that are needed to see whether letters beside them are conserved."""

CONSERVED = 1e-4
"""The p-value of a conserved position is below this, divided by the number of positions."""

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


def find_extent(sequences: Ragged, sites: Sites, is_positive: Array, longest: int = LONGEST_MOTIF) -> Extent | None:
    """The conserved letters at and beside the sites of the first motif in positive sequences; None with few sites.

    A position is conserved by a G-test against the letters of all sequences. Positions beyond a gap of up to
    `LONGEST_SPACER` letters belong to the motif.
    """
    least = max(0.0, float(np.quantile(sites.value[~is_positive, 0], 1 - NEGATIVES_WITH_SITE)))
    rows = np.flatnonzero((sites.value[:, 0] > least) & is_positive)
    if rows.size < LEAST_SITES:
        return None
    start, strand, width = sites.start[rows, :1], sites.strand[rows, :1], sites.width
    letters = site_letters(sequences[rows], start - REACH, strand, width + 2 * REACH)[:, 0]
    known = np.where((letters < 4)[..., None], SHARES[letters], 0.0)
    counts = known.sum(axis=0)
    background = np.bincount(sequences.values, minlength=len(SHARES)) @ SHARES
    background = (background + background[::-1] + 1.0) / (2 * background.sum() + 4.0)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    shares = (counts + background) / (totals + 1)
    nats = (shares * np.log(shares / background)).sum(axis=1)
    p = chi2.sf(2 * totals[:, 0] * nats, 3)
    is_conserved = (p < CONSERVED / p.size) & (nats > LEAST_BITS * np.log(2)) & (totals[:, 0] >= LEAST_SITES)
    low, high = _connect(is_conserved, REACH, REACH + width, longest)
    return Extent(low - REACH, high - REACH, np.log(shares / background)[low:high])


def _connect(is_conserved: Array, first: int, last: int, longest: int) -> tuple[int, int]:
    """The range of conserved positions that are connected with the site, gaps allowed."""
    inside = first + np.flatnonzero(is_conserved[first:last])
    if not inside.size:
        return first, last
    low, high = int(inside[0]), int(inside[-1]) + 1
    while True:
        before = np.flatnonzero(is_conserved[max(low - 1 - LONGEST_SPACER, 0) : low])
        after = np.flatnonzero(is_conserved[high : high + LONGEST_SPACER + 1])
        new_low = max(low - 1 - LONGEST_SPACER, 0) + int(before[-1]) if before.size else low
        new_high = high + int(after[0]) + 1 if after.size else high
        if new_low < low and high - new_low <= longest:
            low = new_low
        elif new_high > high and new_high - low <= longest:
            high = new_high
        else:
            return low, high


def widen(schema: Schema, w: Array, wider: Schema, extent: Extent) -> Array:
    """The weights of one motif over an extent: its own where it has some, a part of the log-odds at new positions."""
    grown = np.zeros(wider.n_params)
    old, new = schema.views(w), wider.views(grown)
    for name, block in old.items():
        if name != "motif":
            new[name][...] = block
    table = FLANK_WEIGHT * extent.log_odds
    positions = np.arange(extent.start, extent.end)
    inside = (positions >= 0) & (positions < len(old["motif"][0]))
    table[inside] = old["motif"][0][positions[inside]]
    new["motif"][0] = table
    return grown


def measure_gain(
    finder: Any, sequences: Ragged, labels: Array, width: int, C: float, seed: int, deadline: Deadline
) -> float:
    """By how much conserved letters beside a motif of this width lower the held-out loss, by cross-validation.

    In every fold the motif is learned without the fold, then widened by the letters beside its sites there. Negative
    infinity when the time is over.
    """
    rng = np.random.default_rng(seed)
    if len(sequences) > models.MAX_LEARNED_FROM:
        rows = np.sort(rng.choice(len(sequences), models.MAX_LEARNED_FROM, replace=False))
        sequences, labels = sequences[rows], labels[rows]
    fold = rng.permutation(len(sequences)) % models.FOLDS
    limits = {"max_iter": models.STEPS, "n_jobs": finder.n_jobs, "callbacks": [deadline]}
    gains = []
    for k in range(models.FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        own, is_positive = sequences[train], labels[train]
        problem = models.make_problem(finder, 1, width)
        schema = problem.schema(own, is_positive)
        kmers = find_enriched_kmers(own, is_positive, width, models.count_strands(finder), models.STARTS)
        if not kmers:
            return -np.inf
        init = [models.start_from_kmer(schema, letters, 0) for letters in kmers]
        found = models.descend(problem, own, is_positive, init, C, **limits)
        nearby = find_extent(own, find_best_sites(problem, schema, found.w, own), is_positive)
        if nearby is None or nearby.width <= width:
            return -np.inf
        wide = models.make_problem(finder, 1, nearby.width)
        wide_schema = wide.schema(own, is_positive)
        start = widen(schema, found.w, wide_schema, nearby)
        wider = models.descend(wide, own, is_positive, [start], C, **limits)
        for one in (found, wider):
            if one.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if one.status is Status.STOPPED:
                return -np.inf
        held = sequences[test], labels[test]
        gains.append(_loss(problem, schema, found.w, *held) - _loss(wide, wide_schema, wider.w, *held))
    return float(np.mean(gains))


def _loss(problem: MotifSites, schema: Schema, w: Array, sequences: Ragged, labels: Array) -> float:
    """The mean logistic loss; both classes count equally."""
    score = problem.bind(sequences, None, schema).label_scores(w)[:, 1]
    return models.balanced_loss(score, labels)

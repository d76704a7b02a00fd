"""Long and gapped motifs that were planted: is the whole motif found, with the right length and spacer?"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, keep
from tacit.apps import MotifFinder
from tacit.dna.finder.known import find_correlation

SEQUENCES, LENGTH, NOISE = 400, 100, 0.2

SEEDS = (2, 3)
"""Data sets that no setting was chosen on; 0 and 1 were seen."""

CASES = [(width, spacer, share) for width in (15, 20, 25) for spacer in (0, 4, 8) for share in (0.3, 0.7)]
"""Conserved letters, the letters of the spacer in their middle, and the share of positives that hold the motif."""


def run() -> Page:
    page = Page(
        "Motifs: long and gapped ones",
        f"{SEQUENCES} positive and {SEQUENCES} negative random sequences of {LENGTH} letters. A random word is planted "
        f"in a share of the positives, on either strand, each letter drawn anew with probability {NOISE}; a spacer of "
        f"random letters cuts it in the middle. {len(SEEDS)} data sets per row. Found: a significant motif has a "
        "correlation of at least 0.75 with the whole. Length: its informative positions, spacer included, are as many "
        "as were planted, ±1. `MotifFinder()` (width auto) and, for comparison, `MotifFinder(width=10)`.",
        [
            *("letters", "spacer", "share of positives", "found", "length ±1", "spacer ±1", "one motif"),
            *("width 10: found", "width 10: length ±1", "seconds"),
        ],
    )
    totals = np.zeros(6, np.int64)
    with threadpool_limits(1, user_api="blas"):
        for case in CASES:
            counts, seconds = np.zeros(6, np.int64), []
            for seed in SEEDS:
                *found, spent = keep("motif_long", (*case, seed), partial(measure, case, seed))
                counts += np.array(found, np.int64)
                seconds.append(spent)
            totals += counts
            shown = [f"{count} of {len(SEEDS)}" for count in counts]
            page.rows.append([str(case[0]), str(case[1]), f"{case[2]:g}", *shown, f"{np.mean(seconds):.1f}"])
            print(page.rows[-1], flush=True)
    n = len(SEEDS) * len(CASES)
    page.rows.append(["all", "", "", *(f"{total} of {n}" for total in totals), ""])
    page.notes.append(
        "Settings of the growth (conserved from 0.15 bits, gaps of up to 10 letters) were set before the first run. "
        "Data sets 0 and 1 of every row were then looked at three times: with the held-out loss as the test the length "
        "was right in 18 of 18 where 70 % of the positives hold the motif, and in 3 of 18 at 30 %; with a test of the "
        "letters beside the sites in 18 and 14. The four misses showed that half of the windows that score as sites "
        "hold none, so the test learns a mixture now, and other starts may grow too. This page has data sets 2 and 3, "
        "which nothing was chosen on. Seconds of processor time per fit."
    )
    return page


def measure(case: tuple[int, int, float], seed: int) -> list[float]:
    """What `judge` says with width auto, and its first two with width 10; seconds of the first fit."""
    X, y, truth = plant(*case, np.random.default_rng([seed, *map(int, case[:2]), int(10 * case[2])]))
    began = time.process_time()
    finder = MotifFinder(verbose=0).fit(X, y)
    seconds = time.process_time() - began
    given = MotifFinder(width=10, verbose=0).fit(X, y)
    return [*map(int, judge(finder, truth, case[1]) + judge(given, truth, case[1])[:2]), seconds]


def judge(finder: MotifFinder, truth: np.ndarray, spacer: int) -> list[bool]:
    """Found, length right, spacer right, a single motif."""
    values = [find_correlation(motif.probabilities, truth) for motif in finder.motifs_]
    if not values or max(values) < 0.75:
        return [False] * 4
    motif = finder.motifs_[int(np.argmax(values))]
    strong = np.flatnonzero(motif.bits_by_position >= 0.15)
    gap = motif.spacer
    is_spacer = gap is None if spacer == 0 else gap is not None and abs(gap.length - spacer) <= 1
    return [True, abs(int(np.ptp(strong)) + 1 - len(truth)) <= 1, is_spacer, len(values) == 1]


def plant(width: int, spacer: int, share: float, rng: np.random.Generator) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Sequences, labels, and the planted motif as a matrix, spacer included."""
    codes = rng.integers(0, 4, (2 * SEQUENCES, LENGTH))
    word, half = rng.integers(0, 4, width), width // 2
    shares = np.eye(4)[word] * (1 - NOISE) + NOISE / 4
    truth = np.concatenate([shares[:half], np.full((spacer, 4), 0.25), shares[half:]])
    for i in np.flatnonzero(rng.random(SEQUENCES) < share):
        letters = np.where(rng.random(width) < NOISE, rng.integers(0, 4, width), word)
        site = np.concatenate([letters[:half], rng.integers(0, 4, spacer), letters[half:]])
        site = 3 - site[::-1] if rng.random() < 0.5 else site
        start = rng.integers(0, LENGTH - site.size + 1)
        codes[i, start : start + site.size] = site
    X = ["".join("ACGT"[c] for c in row) for row in codes]
    return X, np.repeat([1, -1], SEQUENCES), truth

"""Motifs that were planted: are there as many as were put in, and are they those?"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page
from tacit.apps import MotifFinder
from tacit.dna.files import Matrix
from tacit.dna.finder.known import find_correlation

SEQUENCES, LENGTH, NOISE, RUNS = 500, 200, 0.15, 3

CASES = [
    (),
    *(((width, rate),) for width in (6, 10, 16) for rate in (0.3, 0.6, 1.0)),
    *(((8, rate), (14, rate)) for rate in (0.3, 0.6, 1.0)),
]
"""Per data set the motifs: width, and share of the positives that hold it."""


def run() -> Page:
    page = Page(
        "Motifs: planted ones",
        f"{SEQUENCES} positive and {SEQUENCES} negative random sequences of {LENGTH} letters; random words are planted "
        f"in a share of the positives, on either strand, each letter drawn anew with probability {NOISE}. "
        f"`MotifFinder(width=(6, 16))`, {RUNS} data sets per row. A planted motif is found if a significant motif has "
        "a correlation of at least 0.75 with it.",
        ["planted widths", "share of positives", "significant motifs, mean", "right number", "planted ones found"],
    )
    with threadpool_limits(1, user_api="blas"):
        for case in CASES:
            counts, hits = [], 0
            for seed in range(RUNS):
                X, y, truth = plant(case, np.random.default_rng(seed))
                finder = MotifFinder(width=(6, 16), verbose=0).fit(X, y)
                counts.append(len(finder.motifs_))
                for matrix in truth:
                    found = [find_correlation(one.probabilities, matrix.shares) for one in finder.motifs_]
                    hits += any(value >= 0.75 for value in found)
            right = sum(count == len(case) for count in counts)
            page.rows.append(
                [
                    " and ".join(str(width) for width, _ in case) or "none",
                    f"{case[0][1]:g}" if case else "–",
                    f"{np.mean(counts):.1f}",
                    f"{right} of {RUNS}",
                    f"{hits} of {RUNS * len(case)}" if case else "–",
                ]
            )
            print(page.rows[-1], flush=True)
    return page


def plant(case: tuple, rng: np.random.Generator) -> tuple[list[str], np.ndarray, list[Matrix]]:
    """Sequences, labels, and the planted motifs as matrices."""
    codes = rng.integers(0, 4, (2 * SEQUENCES, LENGTH))
    truth = []
    half = LENGTH // max(len(case), 1)
    for number, (width, rate) in enumerate(case):
        word = rng.integers(0, 4, width)
        truth.append(Matrix(f"planted {number}", np.eye(4)[word] * (1 - NOISE) + NOISE / 4))
        for i in np.flatnonzero(rng.random(SEQUENCES) < rate):
            site = np.where(rng.random(width) < NOISE, rng.integers(0, 4, width), word)
            site = 3 - site[::-1] if rng.random() < 0.5 else site
            start = number * half + rng.integers(0, half - width + 1)
            codes[i, start : start + width] = site
    X = ["".join("ACGT"[c] for c in row) for row in codes]
    return X, np.repeat([1, -1], SEQUENCES), truth

"""Known witnesses of a tenth of planted bags: what they add to BagClassifier."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import stats
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from benchmarks.bags import piece, planted
from benchmarks.harness import Page
from tacit import BagClassifier

DRAWS = range(10, 20)
"""Draws 0 to 9, and those from 1,000, were in view while it was decided what known witnesses change."""

SHIFT, SIZE, TESTED = 2.5, 10, 3000


def rates(seed: int) -> list[float]:
    """Accuracy on new bags without known witnesses, and with those of 20 of the 100 positive bags."""
    bags, y, witness = planted(200, SIZE, seed, SHIFT)
    hidden = np.full(200, -1)
    given = np.random.default_rng(seed).permutation(np.flatnonzero(y == 1))[:20]
    hidden[given] = witness[given]
    test_bags, test_y, _ = planted(TESTED, SIZE, 100 + seed, SHIFT)
    with threadpool_limits(1):
        models = [BagClassifier(verbose=0).fit(bags, y, hidden=known) for known in (None, hidden)]
    return [model.score(test_bags, test_y) for model in models]


def best_rate(seed: int) -> float:
    """Accuracy of the likelihood ratio, which knows how the bags were made."""
    bags, y, _ = planted(TESTED, SIZE, 100 + seed, SHIFT)
    log_odds = logsumexp(SHIFT * bags.values[:, 0].reshape(-1, SIZE) - SHIFT**2 / 2, axis=1) - np.log(SIZE)
    return float(np.mean((log_odds > 0) == y))


def run() -> Page:
    found = {seed: own for seed in DRAWS for own in piece("bag_witnesses", (seed,), partial(rates, seed))}
    page = Page(
        "Bags: known witnesses",
        f"Planted bags: 200 of {SIZE} instances with 20 columns; one column of one instance of a positive bag is "
        f"shifted by {SHIFT}. BagClassifier with its defaults, without known witnesses, and with "
        f"those of 20 bags (10 %). Accuracy in % on {TESTED:,} new bags. Must: a gain above 0.",
        ["draw", "without", "with 20 known witnesses", "gain", "likelihood ratio of the true model"],
    )
    table = 100 * np.array([[*own, best_rate(seed)] for seed, own in found.items()])
    for seed, (without, known, best) in zip(found, table.tolist(), strict=True):
        page.rows.append([seed, f"{without:.1f}", f"{known:.1f}", f"{known - without:+.1f}", f"{best:.1f}"])
    gain, (without, known, best) = table[:, 1] - table[:, 0], table.mean(axis=0).tolist()
    half = stats.t.ppf(0.975, gain.size - 1) * gain.std(ddof=1) / np.sqrt(gain.size)
    page.rows.append(
        ["mean", f"{without:.1f}", f"{known:.1f}", f"{gain.mean():+.1f} ± {half:.1f} (95 % t-interval)", f"{best:.1f}"]
    )
    if gain.size < len(DRAWS):
        page.notes.append(f"{len(DRAWS)} draws are the protocol; {gain.size} fit into the time so far.")
    return page

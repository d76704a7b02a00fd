"""Self-paced learning against CCCP over values of C, on blocks of documents of LitBank (Kumar 2013, figure 2.1)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.coreference import _mitre
from benchmarks.harness import Page, keep, real_data
from tacit import LatentSVM, SelfPaced
from tacit.data.arrays import Array
from tacit.problems import Coreference
from tacit.runtime import Status
from tacit.text import coreference_scores, mention_pairs, read_conll

BLOCK, BLOCKS = 20, 3
CS: dict[str, tuple[float, ...]] = {"left": (0.1, 0.3, 1.0, 3.0), "forest": (0.1, 0.3, 1.0, 3.0)}
"""Values of C by kind of links."""
EPSILON, MAX_ITER = 1.0, 100
LEARNERS = {"CCCP": None, "self-paced": SelfPaced()}


class Fit(NamedTuple):
    objective: float
    iterations: int
    is_converged: bool
    train: tuple[float, float]
    test: tuple[float, float]
    seconds: float


def run() -> Page:
    page = Page(
        "Coreference: self-paced learning against CCCP over C",
        f"LitBank, mentions given, the first {BLOCK * BLOCKS} documents in {BLOCKS} blocks of {BLOCK} (Kumar 2013 has "
        "30 training documents of MUC6). Each block is learned from once, and the next block tests. "
        f"`LatentSVM(Coreference(links), C, tol={EPSILON:g}, max_iter={MAX_ITER})` without and with `SelfPaced()`, "
        "from the same start. A win is an objective that is lower by more than C·ε, his criterion. Relative gain: "
        "(CCCP − self-paced) / CCCP, mean over blocks. MITRE loss (1 − MUC) and pairwise loss are means over documents "
        "and blocks, in %. CPU seconds of one fit, one BLAS thread.",
        [
            *("links", "C", "objective: CCCP", "self-paced", "relative gain, %", "wins, ties, losses"),
            *("iterations: CCCP", "self-paced", "test MITRE loss: CCCP", "self-paced"),
            *("test pairwise loss: CCCP", "self-paced", "CPU seconds: CCCP", "self-paced"),
        ],
    )
    documents = read_conll(sorted((real_data() / "litbank").glob("*.conll")))
    y = [np.asarray(document.clusters) for document in documents]
    X = mention_pairs(documents)
    fits: dict[tuple[str, float, str], list[Fit]] = {}
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted below
        for links, values in CS.items():
            for C in values:
                for name, pace in LEARNERS.items():
                    fits[links, C, name] = [
                        Fit(
                            *keep(
                                "coreference_sweep",
                                (links, C, pace, block, BLOCK, EPSILON, MAX_ITER),
                                partial(_fit, links, C, pace, block, X, y),
                            )
                        )
                        for block in range(BLOCKS)
                    ]
                page.rows.append(_row(links, C, *(fits[links, C, name] for name in LEARNERS)))
                print(*page.rows[-1], sep=" | ", flush=True)
    for links in CS:
        page.notes.append(_summarise(fits, links))
        page.notes.append(_lowest(fits, links))
    stopped = [key for key, own in fits.items() for fit in own if not fit.is_converged]
    page.notes.append(
        f"Runs that did not converge: {len(stopped)} of {sum(map(len, fits.values()))}"
        + (f" ({', '.join(' '.join(map(str, key)) for key in stopped)})." if stopped else ".")
    )
    page.notes.append(
        "Kumar (2013) on MUC6, which is not free: 20 values of C and two losses (MITRE, pairwise); self-paced learning "
        "is lower in 11 of 40 runs, CCCP in one."
    )
    return page


def _fit(links: str, C: float, pace: SelfPaced | None, block: int, X: Any, y: Sequence[Array]) -> Fit:
    train = np.arange(BLOCK * block, BLOCK * (block + 1))
    test = (train + BLOCK) % (BLOCK * BLOCKS)
    model = LatentSVM(Coreference(links), C=C, tol=EPSILON, max_iter=MAX_ITER, pace=pace, init="proposed", verbose=0)
    began = time.process_time()
    model.fit(X[train], [y[i] for i in train])
    seconds = time.process_time() - began
    losses = []
    for part in (train, test):
        truth, said = [y[i] for i in part], [np.asarray(clusters) for clusters in model.predict(X[part])]
        losses.append((100 * _mitre(truth, said), 100 * float(coreference_scores(truth, said).pairwise)))
    fit = Fit(model.objective_, model.n_iter_, model.status_ is Status.CONVERGED, losses[0], losses[1], seconds)
    print(links, C, pace, block, fit, flush=True)
    return fit


def _count(cccp: list[Fit], paced: list[Fit], C: float) -> Array:
    """Wins, ties and losses of self-paced learning by objective."""
    gains = np.array([a.objective - b.objective for a, b in zip(cccp, paced, strict=True)])
    room = C * EPSILON
    return np.array([(gains > room).sum(), (np.abs(gains) <= room).sum(), (gains < -room).sum()])


def _row(links: str, C: float, cccp: list[Fit], paced: list[Fit]) -> tuple[Any, ...]:
    gain = np.mean([1 - b.objective / a.objective for a, b in zip(cccp, paced, strict=True)])
    wins, ties, losses = _count(cccp, paced, C)
    both = cccp, paced
    return (
        *(links, f"{C:g}", *(" ".join(f"{fit.objective:.1f}" for fit in own) for own in both)),
        *(f"{100 * gain:+.2f}", f"{wins}, {ties}, {losses}"),
        *(" ".join(str(fit.iterations) for fit in own) for own in both),
        *(f"{np.mean([fit.test[kind] for fit in own]):.1f}" for kind in (0, 1) for own in both),
        *(f"{np.mean([fit.seconds for fit in own]):.1f}" for own in both),
    )


def _summarise(fits: dict[tuple[str, float, str], list[Fit]], links: str) -> str:
    counts = sum(_count(*(fits[links, C, name] for name in LEARNERS), C) for C in CS[links])
    gains = np.array(
        [
            [1 - b.objective / a.objective for a, b in zip(*(fits[links, C, name] for name in LEARNERS), strict=True)]
            for C in CS[links]
        ]
    )
    return (
        f"Links `{links}`, objectives over C and blocks: {counts[0]} wins of self-paced learning, {counts[1]} ties, "
        f"{counts[2]} losses; mean relative gain {100 * gains.mean():+.2f} %, from {100 * gains.min():+.2f} to "
        f"{100 * gains.max():+.2f} %."
    )


def _lowest(fits: dict[tuple[str, float, str], list[Fit]], links: str) -> str:
    """The lowest losses over C, as the caption of the figure has them."""
    parts = []
    for kind, loss in enumerate(("MITRE loss", "pairwise loss")):
        for half in ("train", "test"):
            lowest = (
                min(np.mean([getattr(fit, half)[kind] for fit in fits[links, C, name]]) for C in CS[links])
                for name in LEARNERS
            )
            parts.append(f"{half} {loss} " + " and ".join(f"{value:.1f}" for value in lowest))
    return f"Links `{links}`, lowest over C by CCCP and self-paced, C chosen on the loss itself: {', '.join(parts)}."

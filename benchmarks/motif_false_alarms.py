"""How often a motif is called significant where there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page
from tacit.apps import MotifFinder
from tacit.dna.sequences import read_sequences, shuffle_pairs

RUNS, SEQUENCES, LENGTH = 100, 600, 60


def run() -> Page:
    page = Page(
        "Motifs: false alarms",
        f"{RUNS} data sets of {SEQUENCES} sequences of {LENGTH} letters without any motif, `MotifFinder(width=8, "
        "n_motifs=1, C=1000)`: how often the p-value of its motif, from the held-out half, is below a level. Random "
        "labels: on sequences of one composition. Shuffles: both classes are shuffles of the same sequences. GC: "
        "the share of G and C differs from sequence to sequence, and labels are drawn with odds that rise with it. "
        "Beside it the area under the ROC curve of the same motif on the half that it was learned from.",
        ["labels", "p < 0.05, %", "p < 0.01, %", "p < 0.001, %", "AUROC, training half"],
    )
    kinds: dict[str, Callable[[np.random.Generator], tuple[list[str], np.ndarray]]] = {
        "random": random_labels,
        "shuffles against shuffles": shuffles,
        "confounded with GC": gc_labels,
    }
    with threadpool_limits(1, user_api="blas"):
        for name, make in kinds.items():
            p_values, areas = [], []
            for seed in range(RUNS):
                X, y = make(np.random.default_rng(seed))
                finder = MotifFinder(width=8, n_motifs=1, C=1000, random_state=seed, verbose=0).fit(X, y)
                p_values.append(finder.motifs_[0].p_value)
                areas.append(training_area(finder, X, y))
            p = np.array(p_values)
            shares = [f"{100 * (p < level).mean():.0f}" for level in (0.05, 0.01, 0.001)]
            page.rows.append([name, *shares, f"{np.mean(areas):.2f}"])
            print(page.rows[-1], flush=True)
    return page


def training_area(finder: MotifFinder, X: list[str], y: np.ndarray) -> float:
    """The area on sequences that the motif was learned from: how far pure noise is learned by heart."""
    from sklearn.metrics import roc_auc_score

    held = np.zeros(len(X), dtype=bool)
    held[finder.held_out_["rows"]] = True
    score = finder.set_params(motif_only=True).decision_function(X)
    return float(roc_auc_score(y[~held], score[~held]))


def random_labels(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    return draw(rng, np.full(SEQUENCES, 0.5)), rng.permutation(np.arange(SEQUENCES) % 2 * 2 - 1)


def shuffles(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    sequences = read_sequences(draw(rng, rng.beta(4, 4, SEQUENCES // 2)))
    letters = np.frombuffer(b"ACGT", np.uint8)
    X = []
    for seed in rng.integers(2**31, size=2):
        shuffled = shuffle_pairs(sequences, int(seed))
        X += [letters[codes].tobytes().decode() for codes in shuffled]
    return X, np.repeat([1, -1], SEQUENCES // 2)


def gc_labels(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    share = rng.beta(6, 6, SEQUENCES)
    odds = 1 / (1 + np.exp(-12 * (share - 0.5)))
    return draw(rng, share), np.where(rng.random(SEQUENCES) < odds, 1, -1)


def draw(rng: np.random.Generator, gc: np.ndarray) -> list[str]:
    """Random sequences with these shares of G and C."""
    strong = rng.random((gc.size, LENGTH)) < gc[:, None]
    first = rng.random((gc.size, LENGTH)) < 0.5
    letters = np.where(strong, np.where(first, "G", "C"), np.where(first, "A", "T"))
    return ["".join(row) for row in letters]

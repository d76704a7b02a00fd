"""How often a motif is called significant where there is none."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, keep, real_data
from tacit.apps import MotifFinder
from tacit.dna.sequences import read_sequences, shuffle_pairs, write_letters

RUNS, SEQUENCES, LENGTH = 100, 400, 100

Data = tuple[list[str], np.ndarray | None]


def run() -> Page:
    page = Page(
        "Motifs: false alarms",
        f"{RUNS} data sets per row of {SEQUENCES} sequences of {LENGTH} letters without any motif, half of them "
        "positive, and `MotifFinder(n_motifs=1)`, all else as it comes: how often the p-value of its motif, from the "
        "held-out half, is below a level. In brackets the 95 % interval (Clopper–Pearson). Where classes differ, they "
        "differ in composition alone. Genomic: real unbound sequences of five ChIP-seq sets, with random labels.",
        ["null", "negatives", "p < 0.05, %", "p < 0.001, %", "0.05 inside its interval"],
    )
    kinds: dict[str, tuple[str, Callable[[np.random.Generator], Data]]] = {
        "one composition, random labels": ("given", random_labels),
        "shuffles of the same sequences": ("given", shuffles),
        "shuffles": ("their shuffles", lambda rng: (shuffles(rng)[0], None)),
        "Markov chain of order 1": ("their shuffles", lambda rng: (markov(rng, 1), None)),
        "Markov chain of order 2": ("given", lambda rng: (markov(rng, 2), halves())),
        "GC-shifted: 55 % against 45 %": ("given", gc_shifted),
        "odds of the label rise with GC": ("given", gc_labels),
        "CpG-depleted positives": ("given", lambda rng: (cpg(rng, 0.2) + cpg(rng, 1.0), halves())),
        "CpG-depleted": ("their shuffles", lambda rng: (cpg(rng, 0.2), None)),
        "repeat-masked positives": ("given", masked),
        "genomic": ("given", genomic),
    }
    total = 0
    values = np.empty((len(kinds), RUNS))
    with threadpool_limits(1, user_api="blas"):
        for seed in range(RUNS):
            for k, (name, (_, make)) in enumerate(kinds.items()):
                values[k, seed] = keep("motif_false_alarms", (name, seed), lambda: [p_value(make, seed)])[0]
            print(seed, np.round(values[:, seed], 3), flush=True)
    if True:
        for (name, (negatives, _)), p in zip(kinds.items(), values, strict=True):
            counts = [int((p < level).sum()) for level in (0.05, 0.001)]
            low, high = binomtest(counts[0], RUNS).proportion_ci()
            shown = [show(count) for count in counts]
            page.rows.append([name, negatives, *shown, "yes" if low <= 0.05 <= high else "no"])
            total += counts[0]
            print(page.rows[-1], flush=True)
    n = RUNS * len(kinds)
    low, high = binomtest(total, n).proportion_ci()
    page.notes.append(f"All rows: {total} of {n} below 0.05, {total / n:.1%} ({low:.1%} to {high:.1%}).")
    return page


def show(count: int) -> str:
    low, high = binomtest(count, RUNS).proportion_ci()
    return f"{100 * count / RUNS:.0f} ({100 * low:.0f} to {100 * high:.0f})"


def p_value(make: Callable[[np.random.Generator], Data], seed: int) -> float:
    """The p-value that `MotifFinder.fit` gives the motif, without the models of k-mers and the last fit."""
    X, y = make(np.random.default_rng([seed, 7]))
    finder = MotifFinder(n_motifs=1, random_state=seed, verbose=0)
    search, _ = finder.prepare_search(X, y)
    search.run()
    return search.p_values[0]


def halves() -> np.ndarray:
    return np.repeat([1, -1], SEQUENCES // 2)


def random_labels(rng: np.random.Generator) -> Data:
    return draw(rng, np.full(SEQUENCES, 0.5)), rng.permutation(halves())


def shuffles(rng: np.random.Generator) -> Data:
    sequences = read_sequences(draw(rng, rng.beta(4, 4, SEQUENCES // 2)))
    return [
        x for seed in rng.integers(2**31, size=2) for x in write_letters(shuffle_pairs(sequences, int(seed)))
    ], halves()


def gc_shifted(rng: np.random.Generator) -> Data:
    return draw(rng, np.repeat([0.55, 0.45], SEQUENCES // 2)), halves()


def gc_labels(rng: np.random.Generator) -> Data:
    share = rng.beta(6, 6, SEQUENCES)
    odds = 1 / (1 + np.exp(-12 * (share - 0.5)))
    return draw(rng, share), np.where(rng.random(SEQUENCES) < odds, 1, -1)


def masked(rng: np.random.Generator) -> Data:
    """A run of N in every positive, in place of a repeat."""
    X = draw(rng, np.full(SEQUENCES, 0.42))
    for i in range(SEQUENCES // 2):
        length = int(rng.integers(10, 50))
        start = int(rng.integers(0, LENGTH - length))
        X[i] = X[i][:start] + "N" * length + X[i][start + length :]
    return X, halves()


def markov(rng: np.random.Generator, order: int) -> list[str]:
    """Sequences of a random chain: half as many for order 1, where shuffles are added."""
    n = SEQUENCES // 2 if order == 1 else SEQUENCES
    return chain(rng, rng.dirichlet(np.full(4, 4.0), 4**order), n, order)


def cpg(rng: np.random.Generator, share: float) -> list[str]:
    """Half of the sequences, from a chain in which G follows C with this share of its probability."""
    table = np.full((4, 4), 0.25)
    table[1, 2] *= share
    return chain(rng, table / table.sum(axis=1, keepdims=True), SEQUENCES // 2, 1)


def chain(rng: np.random.Generator, table: np.ndarray, n: int, order: int) -> list[str]:
    codes = rng.integers(0, 4, (n, LENGTH))
    cumulative = table.cumsum(axis=1)
    for j in range(order, LENGTH):
        before = codes[:, j - order : j] @ 4 ** np.arange(order - 1, -1, -1)
        codes[:, j] = np.minimum((rng.random(n)[:, None] > cumulative[before]).sum(axis=1), 3)
    return ["".join(row) for row in np.array(list("ACGT"))[codes]]


def genomic(rng: np.random.Generator) -> Data:
    """Unbound sequences of all factors."""
    pool = []
    for path in sorted((real_data() / "chip").glob("*_B.tsv.gz")):
        with gzip.open(path, "rt") as lines:
            pool += [row["seq"] for row in csv.DictReader(lines, delimiter="\t") if row["Bound"] != "1"]
    return [pool[i] for i in rng.choice(len(pool), SEQUENCES, replace=False)], rng.permutation(halves())


def draw(rng: np.random.Generator, gc: np.ndarray) -> list[str]:
    """Random sequences with these shares of G and C."""
    strong = rng.random((gc.size, LENGTH)) < gc[:, None]
    first = rng.random((gc.size, LENGTH)) < 0.5
    letters = np.where(strong, np.where(first, "G", "C"), np.where(first, "A", "T"))
    return ["".join(row) for row in letters]

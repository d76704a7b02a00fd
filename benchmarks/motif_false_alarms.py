"""How often a motif is called significant where there is none."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, keep, real_data
from tacit.apps import MotifFinder
from tacit.dna.finder.evidence import motif_p_value, share_masks
from tacit.dna.finder.finder import choose_composition, read_classes
from tacit.dna.finder.models import make_problem
from tacit.dna.finder.search import MotifSearch
from tacit.dna.finder.shapes import find_best_sites
from tacit.dna.sequences import read_sequences, shuffle_pairs, write_letters
from tacit.runtime.loop import Deadline

HALF, LENGTH = 200, 100

Data = tuple[list[str], np.ndarray | None]

Null = Callable[[np.random.Generator, int], Data]


def run() -> Page:
    page = Page(
        "Motifs: false alarms",
        f"Sequences of {LENGTH} letters without any motif, half of them positive. Each motif is learned from {HALF} "
        f"sequences as `MotifFinder()` learns its first one, and tested on other sets of {HALF}: how often the p-value "
        "is below a level. In brackets the 95 % interval (Clopper–Pearson). Where classes differ, they differ in "
        "composition alone. Genomic: real unbound sequences of five ChIP-seq sets, with random labels, tested on as "
        "many sets as there are.",
        ["null", "negatives", "motifs", "tests", "p < 0.05, %", "p < 0.001, %", "0.05 inside its interval"],
    )
    nulls: dict[str, tuple[str, int, int, Null]] = {
        "one composition, random labels": ("given", 12, 60, random_labels),
        "shuffles of the same sequences": ("given", 12, 60, shuffles),
        "shuffles": ("their shuffles", 8, 60, lambda rng, n: (shuffles(rng, n)[0][: n // 2], None)),
        "Markov chain of order 1": ("their shuffles", 5, 60, lambda rng, n: (markov(rng, n // 2, 1), None)),
        "Markov chain of order 2": ("given", 4, 60, lambda rng, n: (markov(rng, n, 2), halves(n))),
        "GC-shifted: 55 % against 45 %": ("given", 3, 30, gc_shifted),
        "odds of the label rise with GC": ("given", 10, 60, gc_labels),
        "CpG-depleted positives": ("given", 3, 30, cpg_in_negatives),
        "CpG-depleted": ("their shuffles", 3, 30, lambda rng, n: (cpg(rng, n // 2, 0.2), None)),
        "repeat-masked positives": ("given", 3, 30, masked),
        "repeat-masked negatives": ("given", 3, 30, masked_negatives),
        "genomic": ("given", 3, 30, genomic),
    }
    inside, every = 0, []
    with threadpool_limits(1, user_api="blas"):
        for name, (negatives, n_motifs, n_tests, make) in nulls.items():
            found: list[float] = []
            for seed in range(n_motifs):
                measure = partial(p_values, make, seed, n_tests)
                found += keep("motif_false_alarms", (name, n_tests, seed), measure)
            low, high = binomtest(sum(p < 0.05 for p in found), len(found)).proportion_ci()
            is_inside = low <= 0.05 <= high
            inside += is_inside
            shown = [show(found, level) for level in (0.05, 0.001)]
            page.rows.append([name, negatives, n_motifs, len(found), *shown, "yes" if is_inside else "no"])
            every += found
            print(page.rows[-1], flush=True)
    page.notes += [
        f"All rows: {show(every, 0.05)} % below 0.05 and {show(every, 0.001)} % below 0.001, of {len(every):,} tests. "
        f"0.05 is inside its interval on {inside} of {len(nulls)} rows. Tests of one motif are not independent, so "
        "intervals of rows with few motifs are too narrow where a motif has a bias of its own.",
        "Masked sequences have fewer windows, so their best sites are worse. The page of masks says how the test takes "
        "that out.",
        "On these CpG-depleted positives (90 tests) 32 % were below 0.05 and 6.7 % below 0.001 before pairs of "
        "letters were part of the composition with as few sequences. That, and the factor n / (n − covariates) of the "
        "variance, were decided on three motifs per row of this page. Rows have different sizes because the run was "
        "cut short; the row of odds that rise with GC had 9.6 % with three motifs and was then extended to ten.",
    ]
    return page


def p_values(make: Null, seed: int, n_tests: int, shares_masks: bool = True) -> list[float]:
    """The p-values of one motif on all sets that it was not learned from; with masks shared, as a finder tests it."""
    finder = MotifFinder(n_motifs=1, random_state=seed, verbose=0)
    X, y = make(np.random.default_rng([seed, 7]), HALF * (n_tests + 1))
    finder.composition_ = choose_composition(finder.alphabet, y is not None)
    sequences, is_positive, _ = read_classes(X, y, seed)
    n = HALF // 2
    sides = [np.flatnonzero(is_positive == kind) for kind in (True, False)]
    sets = [np.concatenate([side[i : i + n] for side in sides]) for i in range(0, min(map(len, sides)) - n + 1, n)]
    is_held_out = np.ones(len(sequences), bool)
    is_held_out[sets[0]] = False
    search = MotifSearch(finder, sequences, is_positive, is_held_out, seed, Deadline(None))
    search.run()
    problem, found = make_problem(finder, 1, search.width), []
    assert search.w is not None
    for rows in sets[1:]:
        held_out = sequences[rows]
        if shares_masks:
            held_out = share_masks(held_out, is_positive[rows], seed)
        value = find_best_sites(problem, search.schema, search.w, held_out).value
        found.append(motif_p_value(value[:, 0], value[:, 1:], held_out, is_positive[rows], 2))
    return found


def show(found: list[float], level: float) -> str:
    n_below = sum(p < level for p in found)
    low, high = binomtest(n_below, len(found)).proportion_ci()
    return f"{100 * n_below / len(found):.1f} ({100 * low:.1f} to {100 * high:.1f})"


def halves(n: int) -> np.ndarray:
    return np.repeat([1, -1], n // 2)


def random_labels(rng: np.random.Generator, n: int) -> Data:
    return draw(rng, np.full(n, 0.5)), rng.permutation(halves(n))


def shuffles(rng: np.random.Generator, n: int) -> Data:
    """Two shuffles of every sequence."""
    sequences = read_sequences(draw(rng, rng.beta(4, 4, n // 2)))
    seeds = rng.integers(2**31, size=2)
    return [x for seed in seeds for x in write_letters(shuffle_pairs(sequences, int(seed)))], halves(n)


def gc_shifted(rng: np.random.Generator, n: int) -> Data:
    return draw(rng, np.repeat([0.55, 0.45], n // 2)), halves(n)


def gc_labels(rng: np.random.Generator, n: int) -> Data:
    share = rng.beta(6, 6, n)
    odds = 1 / (1 + np.exp(-12 * (share - 0.5)))
    return draw(rng, share), np.where(rng.random(n) < odds, 1, -1)


def masked(rng: np.random.Generator, n: int) -> Data:
    """A run of N in every positive, in place of a repeat."""
    X = draw(rng, np.full(n, 0.42))
    for i in range(n // 2):
        length = int(rng.integers(10, 50))
        start = int(rng.integers(0, LENGTH - length))
        X[i] = X[i][:start] + "N" * length + X[i][start + length :]
    return X, halves(n)


def masked_negatives(rng: np.random.Generator, n: int) -> Data:
    X, y = masked(rng, n)
    return X[::-1], y


def markov(rng: np.random.Generator, n: int, order: int) -> list[str]:
    """Sequences of a random chain."""
    return chain(rng, rng.dirichlet(np.full(4, 4.0), 4**order), n, order)


def cpg_in_negatives(rng: np.random.Generator, n: int) -> Data:
    return cpg(rng, n // 2, 0.2) + cpg(rng, n // 2, 1.0), halves(n)


def cpg(rng: np.random.Generator, n: int, share: float) -> list[str]:
    """A chain in which G follows C with this share of its probability."""
    table = np.full((4, 4), 0.25)
    table[1, 2] *= share
    return chain(rng, table / table.sum(axis=1, keepdims=True), n, 1)


def chain(rng: np.random.Generator, table: np.ndarray, n: int, order: int) -> list[str]:
    codes = rng.integers(0, 4, (n, LENGTH))
    cumulative = table.cumsum(axis=1)
    for j in range(order, LENGTH):
        before = codes[:, j - order : j] @ 4 ** np.arange(order - 1, -1, -1)
        codes[:, j] = np.minimum((rng.random(n)[:, None] > cumulative[before]).sum(axis=1), 3)
    return ["".join(row) for row in np.array(list("ACGT"))[codes]]


def genomic(rng: np.random.Generator, n: int) -> Data:
    """Unbound sequences of all factors: all of them, which are fewer."""
    pool = []
    for path in sorted((real_data() / "chip").glob("*_B.tsv.gz")):
        with gzip.open(path, "rt") as lines:
            pool += [row["seq"] for row in csv.DictReader(lines, delimiter="\t") if row["Bound"] != "1"]
    return [pool[i] for i in rng.permutation(len(pool))], rng.permutation(halves(len(pool)))


def draw(rng: np.random.Generator, gc: np.ndarray) -> list[str]:
    """Random sequences with these shares of G and C."""
    strong = rng.random((gc.size, LENGTH)) < gc[:, None]
    first = rng.random((gc.size, LENGTH)) < 0.5
    letters = np.where(strong, np.where(first, "G", "C"), np.where(first, "A", "T"))
    return ["".join(row) for row in letters]

"""How often a motif is called significant where there is none."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import t
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, keep, real_data
from tacit.apps import MotifFinder
from tacit.dna.finder.evidence import motif_p_value
from tacit.dna.finder.finder import choose_composition, read_classes
from tacit.dna.finder.models import make_problem
from tacit.dna.finder.search import MotifSearch
from tacit.dna.finder.shapes import find_best_sites
from tacit.dna.sequences import read_sequences, shuffle_pairs, write_letters
from tacit.runtime.loop import Deadline

MOTIFS, TESTS, HALF, LENGTH = 8, 60, 200, 100

Data = tuple[list[str], np.ndarray | None]

Null = Callable[[np.random.Generator, int], Data]


def run() -> Page:
    page = Page(
        "Motifs: false alarms",
        f"Sequences of {LENGTH} letters without any motif, half of them positive. Per row {MOTIFS} motifs, each "
        f"learned from {HALF} sequences as `MotifFinder()` learns its first one, and tested on {TESTS} other sets of "
        f"{HALF}: how often the p-value is below a level, of {MOTIFS * TESTS} tests. In brackets the 95 % interval, "
        "from the differences between motifs. Where classes differ, they differ in composition alone. Genomic: real "
        "unbound sequences of five ChIP-seq sets, with random labels, tested on as many sets as there are.",
        ["null", "negatives", "p < 0.05, %", "p < 0.001, %", "0.05 inside its interval"],
    )
    nulls: dict[str, tuple[str, Null]] = {
        "one composition, random labels": ("given", random_labels),
        "shuffles of the same sequences": ("given", shuffles),
        "shuffles": ("their shuffles", lambda rng, n: (shuffles(rng, n)[0][: n // 2], None)),
        "Markov chain of order 1": ("their shuffles", lambda rng, n: (markov(rng, n // 2, 1), None)),
        "Markov chain of order 2": ("given", lambda rng, n: (markov(rng, n, 2), halves(n))),
        "GC-shifted: 55 % against 45 %": ("given", gc_shifted),
        "odds of the label rise with GC": ("given", gc_labels),
        "CpG-depleted positives": ("given", lambda rng, n: (cpg(rng, n // 2, 0.2) + cpg(rng, n // 2, 1.0), halves(n))),
        "CpG-depleted": ("their shuffles", lambda rng, n: (cpg(rng, n // 2, 0.2), None)),
        "repeat-masked positives": ("given", masked),
        "genomic": ("given", genomic),
    }
    inside, every = 0, []
    with threadpool_limits(1, user_api="blas"):
        for name, (negatives, make) in nulls.items():
            tests = [
                keep("motif_false_alarms", (name, seed), lambda m=make, s=seed: p_values(m, s))
                for seed in range(MOTIFS)
            ]
            below = {level: [np.mean(np.array(p) < level) for p in tests] for level in (0.05, 0.001)}
            low, high = interval(below[0.05])
            is_inside = low <= 0.05 <= high
            inside += is_inside
            page.rows.append([name, negatives, *map(show, below.values()), "yes" if is_inside else "no"])
            every += tests
            print(page.rows[-1], flush=True)
    shares = [f"{np.mean(np.concatenate(every) < level):.2%} below {level}" for level in (0.05, 0.001)]
    page.notes.append(
        f"All rows: {', '.join(shares)} of {sum(map(len, every)):,} tests. 0.05 is inside its interval on {inside} of "
        f"{len(nulls)} rows."
    )
    return page


def p_values(make: Null, seed: int) -> list[float]:
    """The p-values of one motif on all sets that it was not learned from."""
    finder = MotifFinder(n_motifs=1, random_state=seed, verbose=0)
    X, y = make(np.random.default_rng([seed, 7]), HALF * (TESTS + 1))
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
        value = find_best_sites(problem, search.schema, search.w, held_out).value
        found.append(motif_p_value(value[:, 0], value[:, 1:], held_out, is_positive[rows], 2))
    return found


def interval(shares: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean of a share per motif."""
    reach = t.ppf(0.975, len(shares) - 1) * np.std(shares, ddof=1) / np.sqrt(len(shares))
    return max(float(np.mean(shares) - reach), 0.0), float(np.mean(shares) + reach)


def show(shares: Sequence[float]) -> str:
    low, high = interval(shares)
    return f"{100 * np.mean(shares):.1f} ({100 * low:.1f} to {100 * high:.1f})"


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


def markov(rng: np.random.Generator, n: int, order: int) -> list[str]:
    """Sequences of a random chain."""
    return chain(rng, rng.dirichlet(np.full(4, 4.0), 4**order), n, order)


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

"""One pass of the motif oracle over UniPROBE-sized data: sliding while searching against a table and plain NumPy."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Page, interleave, milliseconds, ratio
from tacit.datasets import planted_motif
from tacit.dna.sequences import read_sequences
from tacit.oracle import EnumerableOracle, Oracle
from tacit.problems import Motif
from tacit.runtime import parallel

SEQUENCES, LENGTH, WIDTH, BACKGROUND = 20_950, 60, 10, 3


def run() -> Page:
    page = Page(
        "One pass of the motif scan",
        f"{SEQUENCES} sequences of {LENGTH} letters, width {WIDTH}, background {BACKGROUND}; one thread. Plain NumPy "
        "adds one array of letter weights per motif position and one of word weights. For scale: NumPy's sum of the "
        "two arrays of word numbers that a scan reads.",
        ["what", "strands", "ms (lowest / median)", "by plain NumPy"],
    )
    for strands in ("one", "both"):
        page.rows += _measure(strands)
    page.notes.append(
        "`table` writes the scores of all windows block by block and searches them, as `EnumerableOracle` does unless "
        "a problem overrides it; `sliding` keeps the best window instead. Both give the same codes and values, bit by "
        "bit."
    )
    return page


def _measure(strands: str) -> list[tuple[str, ...]]:
    X, y, _ = planted_motif(SEQUENCES, LENGTH, "TGACTCAGCA", noise=0.3, strands=strands)
    problem = Motif(WIDTH, BACKGROUND, strands)
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    codes = read_sequences(X).values.reshape(SEQUENCES, LENGTH)
    words = oracle._words.ids.reshape(SEQUENCES, LENGTH)[:, : LENGTH - BACKGROUND].astype(np.intp)
    losses, prefer, ones = oracle._loss_table(), oracle.predict_augmented(w).code, np.ones(SEQUENCES)
    motifs = [schema.views(w)["motif"], schema.views(w)["motif"][::-1, ::-1]][: 1 if strands == "one" else 2]
    background = schema.views(w)["background"]
    calls = {
        "plain NumPy, augmented": lambda: _plain(codes, words, motifs, background, y),
        "table, augmented": lambda: EnumerableOracle._argmax(oracle, w, None, losses),
        "sliding, augmented": lambda: oracle.predict_augmented(w),
        "table, impute": lambda: EnumerableOracle.impute(oracle, w, prefer=prefer),
        "sliding, impute": lambda: oracle.impute(w, prefer=prefer),
        "score of given windows": lambda: oracle.score(w, prefer),
        "features": lambda: oracle.features(prefer, ones),
        "sum of the word numbers": lambda: (
            oracle._words.ids.sum(dtype=np.uint64),
            oracle._parts.ids.sum(dtype=np.uint64),
        ),
        "schema and bind": lambda: problem.bind(X, y, problem.schema(X, y)),
    }
    np.testing.assert_allclose(calls["plain NumPy, augmented"](), oracle.predict_augmented(w).value)
    seconds = interleave(calls, rounds=20)
    with parallel(oracle, 2) as shards:
        seconds |= interleave({"sliding, augmented, n_jobs=2": lambda: _predict_augmented(shards, w)})
    reference = "plain NumPy, augmented"
    return [(name, strands, milliseconds(s), f"{ratio(seconds, name, reference):.3f}") for name, s in seconds.items()]


def _predict_augmented(oracle: Oracle, w: np.ndarray) -> np.ndarray:
    return oracle.predict_augmented(w).value


def _plain(
    codes: np.ndarray, words: np.ndarray, motifs: list[np.ndarray], background: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """The value of the loss-augmented argmax of every sequence, all sequences having one length."""
    starts = LENGTH - WIDTH - BACKGROUND
    sums = np.concatenate([np.zeros((len(codes), 1)), np.cumsum(background[words], axis=1)], axis=1)
    outside = sums[:, -1:] - (sums[:, WIDTH : WIDTH + starts] - sums[:, :starts])
    best = np.full(len(codes), -np.inf)
    for motif in motifs:
        scores = outside.copy()
        for j in range(WIDTH):
            scores += motif[j][codes[:, j : j + starts]]
        best = np.maximum(best, scores.max(axis=1))
    return np.maximum(sums[:, -1] + (y == 1), best + (y != 1))

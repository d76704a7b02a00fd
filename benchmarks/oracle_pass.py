"""One pass of the bag oracle (argmax and summed features) against the bare matrix product."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, interleave, milliseconds, ratio
from tacit import Ragged
from tacit.oracle import Oracle
from tacit.problems import Candidates
from tacit.runtime import parallel

BAGS, SIZE, WIDTH, CLASSES = 2000, 50, 100, 5


def run() -> Page:
    page = Page(
        "One oracle pass over bags",
        f"{BAGS} bags × {SIZE} candidates × {WIDTH} numbers, {CLASSES} classes: loss-augmented argmax of every bag and "
        "the summed features, against the bare product of all candidates with all classes in the faster of its two "
        "layouts, same precision and threads. Must reach: at most 1.3 ×.",
        ["precision", "BLAS threads", "GEMM, ms", "pass, ms", "pass / GEMM", "pass with n_jobs=2 / GEMM"],
    )
    for dtype in (np.float64, np.float32):
        for threads in (1, 2):
            page.rows.append(_measure(dtype, threads))
    page.notes.append("n_jobs=2 puts row shards on two threads, each with one BLAS thread.")
    return page


def _measure(dtype: type, threads: int) -> tuple[str, ...]:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((BAGS * SIZE, WIDTH)).astype(dtype)
    y = rng.integers(0, CLASSES, BAGS)
    bags = Ragged(values, np.arange(BAGS + 1) * SIZE)
    problem = Candidates(fit_intercept=False)
    oracle = problem.bind(bags, y, problem.schema(bags, y))
    w = rng.standard_normal(oracle.n_params)
    # the same memory for both, so that neither finds the cache filled by the other
    W, columns = w.reshape(CLASSES, WIDTH).astype(dtype), oracle._columns
    calls = {"by columns": lambda: W @ columns, "by rows": lambda: values @ W.T, "pass": lambda: _pass(oracle, w)}
    with threadpool_limits(threads):
        seconds = interleave(calls, rounds=40)
        fastest = min(("by columns", "by rows"), key=lambda name: min(seconds[name]))
        with parallel(oracle, 2) as shards:
            sharded_times = interleave({"pass": lambda: _pass(shards, w)}, rounds=40)["pass"]
    return (
        dtype.__name__,
        str(threads),
        f"{milliseconds(seconds[fastest])} ({fastest})",
        milliseconds(seconds["pass"]),
        f"{ratio(seconds, 'pass', fastest):.2f}",
        f"{min(sharded_times) / min(seconds[fastest]):.2f}",
    )


def _pass(oracle: Oracle, w: np.ndarray) -> np.ndarray:
    return oracle.features(oracle.predict_augmented(w).code, np.ones(BAGS))

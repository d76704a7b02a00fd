"""Passes over a million frames and 50 states: the kernels of sequences beside bare loops under Numba."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, interleave, ratio
from tacit.problems.chain.forward_backward import sum_paths
from tacit.problems.chain.viterbi import viterbi
from tacit.problems.transcript.automata import Layout, expand, free_segments
from tacit.problems.transcript.walks import best_walks, sum_walks

STATES, LENGTH = 50, 100
SIZES = (100_000, 1_000_000)
LAYOUT = Layout(10, 5, 1, False)
"""Ten labels of five states, which a step may skip one of."""

SEARCH, SUMS = "bare loops: Viterbi", "bare loops: forward–backward"
KERNELS: dict[str, str] = {
    SEARCH: SEARCH,
    "Chain, SequenceClass: best path": SEARCH,
    "Transcript: best path of 10 labels × 5 states": SEARCH,
    SUMS: SUMS,
    "Chain, SequenceClass: log-partition and expectations": SUMS,
    "Chain, SequenceClass: log-partition": SUMS,
    "Transcript: log-partition and expectations": SUMS,
}
"""Every row, and the row that it is compared with."""


def run() -> Page:
    page = Page(
        "Passes over a million frames",
        f"{STATES} states, recordings of {LENGTH} frames, random scores, double precision. Bare loops are the "
        "textbook algorithms under Numba, whose inner loops run along rows: Viterbi with a table of pointers, and "
        "scaled forward–backward with probabilities of states and sums of those of pairs. They read scores of every "
        "frame and of every pair of states; so do the kernels of Chain and SequenceClass. Transcript follows the edges "
        "of its automaton. CPU seconds of one thread, the least of three. Must: best paths within 1.3 × of the bare "
        "loop, sums within 1.6 ×, and linear growth.",
        ["what", *(f"{size:,} frames" for size in SIZES), "growth for 10 × the frames", "× bare loops"],
    )
    with threadpool_limits(1):
        seconds = [interleave(_calls(size), rounds=3, clock=time.process_time) for size in SIZES]
    for name, reference in KERNELS.items():
        small, large = (min(times[name]) for times in seconds)
        times = "–" if name == reference else f"{ratio(seconds[-1], name, reference):.2f}"
        page.rows.append((name, f"{small:.3f}", f"{large:.3f}", f"{large / small:.1f}", times))
    return page


def _calls(size: int) -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    starts = np.arange(0, size + 1, LENGTH)
    unary, transition = rng.standard_normal((size, STATES)), rng.standard_normal((STATES, STATES))
    work, nodes = np.empty_like(unary), np.zeros_like(unary)
    code, other = np.empty((2, size), dtype=np.int64)
    value, log, coef = np.empty(starts.size - 1), np.empty(starts.size - 1), np.ones(starts.size - 1)
    pairs, sums = np.zeros((2, STATES, STATES))
    nothing, column, free = np.zeros((1, STATES)), np.zeros(size, np.int64), np.empty(0, np.int64)
    automata, steps = expand(LAYOUT, free_segments(LAYOUT)), rng.standard_normal(LAYOUT.n_scores)
    which, factor = np.zeros(starts.size - 1, np.int64), np.zeros(starts.size - 1)
    given = starts, automata, which, steps, free, factor

    def search() -> None:
        np.copyto(work, unary)  # the kernel writes into its scores
        viterbi(work, starts, transition, nothing, column, free, np.eye(STATES, dtype=bool), code, value)

    def add(coef: np.ndarray) -> None:
        np.copyto(work, unary)
        pairs[:] = 0
        sum_paths(work, starts, transition, coef, log, pairs)

    def walk() -> None:
        nodes[:] = 0
        sum_walks(unary, *given, coef, log, nodes, np.zeros(steps.size))

    def follow() -> None:
        sums[:] = 0
        bare_sums(unary, starts, transition, value, nodes, sums)

    search()
    bare_viterbi(unary, starts, transition, other, log)
    assert np.array_equal(code, other)
    add(coef)
    follow()
    assert np.allclose(work, nodes, rtol=1e-9, atol=1e-12)
    assert np.allclose(log, value, rtol=1e-12)
    assert np.allclose(pairs, sums, rtol=1e-9)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: bare_viterbi(unary, starts, transition, code, value),
        search,
        lambda: best_walks(unary, *given, code, value),
        follow,
        lambda: add(coef),
        lambda: add(0 * coef),
        walk,
    )
    return dict(zip(KERNELS, calls, strict=True))


@numba.njit
def bare_viterbi(
    unary: np.ndarray, starts: np.ndarray, transition: np.ndarray, code: np.ndarray, value: np.ndarray
) -> None:
    """The best path of every sequence, with a pointer per frame and state."""
    k = transition.shape[0]
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    score, came = np.empty((longest, k)), np.empty((longest, k), np.int32)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        for j in range(k):
            score[0, j] = unary[first, j]
        for t in range(1, size):
            now, pointer = score[t], came[t]
            for j in range(k):
                now[j] = -np.inf
            for i in range(k):
                before = score[t - 1, i]
                for j in range(k):
                    v = before + transition[i, j]
                    if v > now[j]:
                        now[j] = v
                        pointer[j] = i
            for j in range(k):
                now[j] += unary[first + t, j]
        state = np.argmax(score[size - 1])
        value[s] = score[size - 1, state]
        for t in range(size - 1, -1, -1):
            code[first + t] = state
            state = came[t, state]


@numba.njit
def bare_sums(
    unary: np.ndarray,
    starts: np.ndarray,
    transition: np.ndarray,
    log: np.ndarray,
    nodes: np.ndarray,
    pairs: np.ndarray,
) -> None:
    """Log-partition of every sequence, probabilities of states, and sums of those of pairs; scaled at every frame."""
    k = transition.shape[0]
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    ways = np.exp(transition)
    back = ways.T.copy()
    forward, scale = np.empty((longest, k)), np.empty(longest)
    ahead, behind = np.empty(k), np.empty(k)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        log[s] = 0.0
        for t in range(size):
            row, now, weight = unary[first + t], forward[t], nodes[first + t]
            top = row.max()
            now[:] = 1.0 if t == 0 else 0.0
            if t > 0:
                for i in range(k):
                    before = forward[t - 1, i]
                    for j in range(k):
                        now[j] += before * ways[i, j]
            total = 0.0
            for j in range(k):
                weight[j] = np.exp(row[j] - top)
                now[j] *= weight[j]
                total += now[j]
            for j in range(k):
                now[j] /= total
            scale[t] = total
            log[s] += top + np.log(total)
        behind[:] = 1.0
        for t in range(size - 1, -1, -1):
            weight = nodes[first + t]
            for j in range(k):
                ahead[j] = weight[j] * behind[j] / scale[t]
                weight[j] = forward[t, j] * behind[j]
            if t == 0:
                continue
            behind[:] = 0.0
            for j in range(k):
                for i in range(k):
                    behind[i] += back[j, i] * ahead[j]
            for i in range(k):
                before = forward[t - 1, i]
                for j in range(k):
                    pairs[i, j] += before * ways[i, j] * ahead[j]

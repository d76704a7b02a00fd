"""A pass over a million frames and 50 states, beside bare Numba loops of the textbook; how the time grows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page
from tacit import Ragged
from tacit.data.kernels import kernel
from tacit.problems import Chain, SequenceClass, Transcript

STATES, FEATURES, FRAMES, ROUNDS = 50, 13, 1_000_000, 3


def run() -> Page:
    page = Page(
        f"A pass over frames with {STATES} states",
        f"Recordings of 1,000 frames with {FEATURES} features. The bare loops are those of a textbook in Numba: scores "
        "of all frames by one product of matrices, then Viterbi with back pointers, or forward–backward with scaled "
        "sums and expected pairs. Both sides begin with features and weights; the best paths or the expected features "
        "come out. Lowest CPU seconds of three interleaved rounds, one thread. SequenceClass has two labels, and so "
        "twice the work of the bare loop, which runs twice. Must: within 1.3 × of the bare Viterbi, sums within 1.6 × "
        "of the bare sums; time per frame does not grow.",
        ["frames", "pass", "CPU s", "bare CPU s", "× bare", "ns per frame and pair of states"],
    )
    for frames in (FRAMES // 100, FRAMES // 10, FRAMES):
        for name, own, bare, loops in _calls(frames):
            seconds = _interleave(own, bare)
            each = 1e9 * seconds[0] / (frames * STATES**2 * loops)
            ratio = f"{seconds[0] / seconds[1]:.2f}"
            page.rows.append((f"{frames:,}", name, f"{seconds[0]:.3f}", f"{seconds[1]:.3f}", ratio, f"{each:.3f}"))
            print(page.rows[-1], flush=True)
    page.rows.append(_transcript(FRAMES // 100))
    page.rows.append(_transcript(FRAMES))
    page.notes.append("Transcript has 10 labels of 5 states and silence; its paths have fewer pairs, and no bare loop.")
    return page


def _calls(frames: int) -> list[tuple[str, Callable[[], Any], Callable[[], Any], int]]:
    rng = np.random.default_rng(0)
    starts = np.arange(0, frames + 1, 1000)
    X = Ragged(rng.standard_normal((frames, FEATURES)), starts)
    tags = Ragged(rng.integers(0, STATES, frames), starts)
    tags.values[:STATES] = np.arange(STATES)
    chain = Chain()
    oracle = chain.bind(X, tags, chain.schema(X, tags))
    w = 0.3 * rng.standard_normal(oracle.n_params)
    views = oracle._views(w)
    emission, transition = np.ascontiguousarray(views["emission"].T), views["transition"].copy()
    path = SequenceClass(states=STATES, fit_intercept=False)
    labels = np.arange(starts.size - 1) % 2
    classes = path.bind(X, labels, path.schema(X, labels))
    v = 0.3 * rng.standard_normal(classes.n_params)
    own = classes._views(v)
    both = [(np.ascontiguousarray(own["emission"][j].T), own["transition"][j].copy()) for j in range(2)]
    ones = np.ones(starts.size - 1)

    def search(weights: list[tuple[np.ndarray, np.ndarray]]) -> None:
        for columns, pairs in weights:
            code, value = np.empty(frames, np.int64), np.empty(starts.size - 1)
            bare_viterbi(X.values @ columns, starts, pairs, code, value)

    def add(weights: list[tuple[np.ndarray, np.ndarray]]) -> None:
        for columns, pairs in weights:
            nodes, sums, logs = np.empty((frames, STATES)), np.zeros((STATES, STATES)), np.empty(starts.size - 1)
            bare_sums(X.values @ columns, starts, pairs, nodes, sums, logs)
            nodes.T @ X.values

    single = [(emission, transition)]
    return [
        ("Chain, best paths", lambda: oracle.predict(w), lambda: search(single), 1),
        ("Chain, best by score plus loss", lambda: oracle.predict_augmented(w), lambda: search(single), 1),
        ("Chain, sums", lambda: oracle.expectations(w, free=ones), lambda: add(single), 1),
        ("SequenceClass, scores of labels", lambda: classes.label_scores(v), lambda: search(both), 2),
        ("SequenceClass, sums", lambda: classes.expectations(v, free=ones), lambda: add(both), 2),
    ]


def _transcript(frames: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    starts = np.arange(0, frames + 1, 1000)
    X = Ragged(rng.standard_normal((frames, FEATURES)), starts)
    y = [rng.permutation(10).tolist() for _ in range(starts.size - 1)]
    problem = Transcript(states=5)
    oracle = problem.bind(X, y, problem.schema(X, y))
    w = 0.3 * rng.standard_normal(oracle.n_params)
    seconds = _interleave(lambda: oracle.predict(w), lambda: None)[0]
    return f"{frames:,}", "Transcript, best paths", f"{seconds:.3f}", "–", "–", "–"


def _interleave(*calls: Callable[[], Any]) -> list[float]:
    """The lowest processor seconds of every call, after a round that compiles."""
    lowest = [np.inf] * len(calls)
    with threadpool_limits(1):
        for turn in range(ROUNDS + 1):
            for i, call in enumerate(calls):
                began = time.process_time()
                call()
                if turn:
                    lowest[i] = min(lowest[i], time.process_time() - began)
    return lowest


@kernel
def bare_viterbi(
    unary: np.ndarray, starts: np.ndarray, transition: np.ndarray, code: np.ndarray, value: np.ndarray
) -> None:
    """The textbook's loop, with back pointers; the inner one runs along rows, so that it is vectorised."""
    k = transition.shape[0]
    back = np.empty(unary.shape, np.uint8)
    best, now, which = np.empty(k), np.empty(k), np.empty(k, np.uint8)
    for s in range(starts.size - 1):
        for j in range(k):
            best[j] = unary[starts[s], j]
        for t in range(starts[s] + 1, starts[s + 1]):
            for j in range(k):
                now[j] = -np.inf
            for i in range(k):
                for j in range(k):
                    v = best[i] + transition[i, j]
                    if v > now[j]:
                        now[j] = v
                        which[j] = i
            for j in range(k):
                best[j] = now[j] + unary[t, j]
                back[t, j] = which[j]
        tag = 0
        for j in range(k):
            if best[j] > best[tag]:
                tag = j
        value[s] = best[tag]
        for t in range(starts[s + 1] - 1, starts[s], -1):
            code[t] = tag
            tag = back[t, tag]
        code[starts[s]] = tag


@kernel
def bare_sums(
    unary: np.ndarray,
    starts: np.ndarray,
    transition: np.ndarray,
    nodes: np.ndarray,
    pairs: np.ndarray,
    logs: np.ndarray,
) -> None:
    """Forward–backward with scaled sums (Rabiner 1989): probabilities of states and expected pairs."""
    k = transition.shape[0]
    ways = np.empty((k, k))
    back = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            ways[i, j] = math.exp(transition[i, j])
            back[j, i] = ways[i, j]
    behind, ahead = np.empty(k), np.empty(k)
    counts = np.zeros((k, k))
    for s in range(starts.size - 1):
        first, last = starts[s], starts[s + 1]
        scales = np.empty(last - first)
        forward = np.empty((last - first, k))
        logs[s] = 0.0
        for t in range(last - first):
            now = forward[t]
            if t == 0:
                for j in range(k):
                    now[j] = 1.0
            else:
                for j in range(k):
                    now[j] = 0.0
                for i in range(k):
                    for j in range(k):
                        now[j] += forward[t - 1, i] * ways[i, j]
            total = 0.0
            for j in range(k):
                unary[first + t, j] = math.exp(unary[first + t, j])
                now[j] *= unary[first + t, j]
                total += now[j]
            for j in range(k):
                now[j] /= total
            scales[t] = total
            logs[s] += math.log(total)
        for j in range(k):
            behind[j] = 1.0
        for t in range(last - first - 1, -1, -1):
            for j in range(k):
                nodes[first + t, j] = forward[t, j] * behind[j]
                ahead[j] = unary[first + t, j] * behind[j] / scales[t]
            if t == 0:
                continue
            for i in range(k):
                for j in range(k):
                    counts[i, j] += forward[t - 1, i] * ahead[j]
            for i in range(k):
                behind[i] = 0.0
            for j in range(k):
                for i in range(k):
                    behind[i] += ahead[j] * back[j, i]
    for i in range(k):
        for j in range(k):
            pairs[i, j] = counts[i, j] * ways[i, j]

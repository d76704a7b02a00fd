"""Viterbi and forward–backward on 10,000 sequences of 8 to 20 tokens and 26 tags."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, interleave, milliseconds, ratio
from tacit.problems.chain.forward_backward import forward_backward
from tacit.problems.chain.viterbi import viterbi

TAGS = 26
PLAIN = 22 / 23
"""Viterbi in plain C++ × liblinear's fit of the digits, milliseconds of one machine."""
NO_PAIRS = np.zeros((0, TAGS, TAGS)), np.zeros(0), np.zeros((TAGS, TAGS))
"""Neither pair probabilities nor sums of them."""


def run() -> Page:
    rng = np.random.default_rng(0)
    lengths = rng.integers(8, 21, 10_000)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    n = int(starts[-1])
    unary, transition = rng.standard_normal((n, TAGS)), rng.standard_normal((TAGS, TAGS))
    code, value, work = np.empty(n, np.int64), np.empty(len(lengths)), np.empty_like(unary)
    nothing, column, free = np.zeros((1, TAGS)), np.zeros(n, np.int64), np.empty(0, np.int64)
    nodes, no_nodes = np.zeros((n, TAGS)), np.zeros((0, TAGS))

    def search() -> None:
        np.copyto(work, unary)  # the kernel writes into its scores
        viterbi(work, starts, transition, nothing, column, free, np.eye(TAGS, dtype=bool), code, value)

    X, y = load_digits(return_X_y=True)
    X = np.hstack([X / 16, np.ones((len(X), 1))])
    liblinear = LinearSVC(multi_class="crammer_singer", C=100 / 1797, fit_intercept=False, tol=1e-2)
    calls = {
        "liblinear": lambda: liblinear.fit(X, y),
        "Viterbi": search,
        "log-partition": lambda: forward_backward(unary, starts, transition, value, no_nodes, *NO_PAIRS),
        "and tag marginals": lambda: forward_backward(unary, starts, transition, value, nodes, *NO_PAIRS),
    }
    with threadpool_limits(1):
        seconds = interleave(calls, rounds=10)
    page = Page(
        "Chains: 10,000 sequences of 8 to 20 tokens, 26 tags",
        "One thread. Times are compared with liblinear's fit of the digits. Must reach: Viterbi ≤ 2.5 × "
        f"{PLAIN:.2f} × liblinear; marginals right to 1e-10 at scores × 1, × 100 and × 400 "
        "(largest error against log space, 300 sequences).",
        ["what", "ms (lowest / median)", "× liblinear", "× plain C++"],
    )
    for name in calls:
        times = ratio(seconds, name, "liblinear")
        shown = f"{times / PLAIN:.2f}" if name == "Viterbi" else "–"
        page.rows.append((name, milliseconds(seconds[name]), f"{times:.2f}", shown))
    for scale in (1, 100, 400):
        error = _error(unary[: starts[300]] * scale, starts[:301], transition * scale)
        page.rows.append((f"marginals, scores × {scale}", "–", "–", f"error {error:.1e}"))
    return page


def _error(unary: np.ndarray, starts: np.ndarray, transition: np.ndarray) -> float:
    """The largest difference of tag and pair marginals, and of the log-partition (relative), from log space."""
    log_partition, nodes = np.empty(starts.size - 1), np.zeros_like(unary)
    edges = np.zeros((len(unary), TAGS, TAGS))
    forward_backward(unary, starts, transition, log_partition, nodes, edges, *NO_PAIRS[1:])
    worst = 0.0
    for s in range(starts.size - 1):
        scores = unary[starts[s] : starts[s + 1]]
        forward, backward = np.empty_like(scores), np.zeros_like(scores)
        forward[0] = scores[0]
        for t in range(1, len(scores)):
            forward[t] = scores[t] + logsumexp(forward[t - 1][:, None] + transition, axis=0)
        for t in range(len(scores) - 2, -1, -1):
            backward[t] = logsumexp(transition + scores[t + 1] + backward[t + 1], axis=1)
        whole = logsumexp(forward[-1])
        both = forward + backward
        expected = np.exp(both - logsumexp(both, axis=1, keepdims=True))
        pairs = forward[:-1, :, None] + transition + (scores[1:] + backward[1:])[:, None, :]
        pairs = np.exp(pairs - logsumexp(pairs, axis=(1, 2), keepdims=True))
        worst = max(
            worst,
            float(np.abs(nodes[starts[s] : starts[s + 1]] - expected).max()),
            float(np.abs(edges[starts[s] + 1 : starts[s + 1]] - pairs).max()),
            abs(log_partition[s] / whole - 1),
        )
    return worst

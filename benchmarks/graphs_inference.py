"""Inference in graphs with cycles: messages, search, alpha-expansion and a linear program on the same graphs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.spatial import Delaunay
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page
from tacit.problems.graph import inference
from tacit.problems.graph.inference import Pairs, Shape, best_labels, score_labels
from tacit.vision.regions.cuts import Graphs as Cuts
from tacit.vision.regions.cuts import best_labels as expand

N_GRAPHS, N, K = 10, 30, 4
MANY_STATES = 20_000
"""States of the search that gives the reference."""


def run() -> Page:
    page = Page(
        "Inference in graphs with cycles",
        f"{N_GRAPHS} planar graphs of {N} random points and {K} labels per row, seed 7, one thread. Numbers are means "
        "in percent of the best score: how far a bound is above it, and how far labels are below it. The best score is "
        f"that of a search with {MANY_STATES} states; 'proven' counts the graphs where its bound meets it. "
        "LP: the linear program over locally consistent marginals by HiGHS (SciPy). Messages: "
        "tree-reweighted messages along chains (Kolmogorov 2006), no search. Then a search of at most "
        f"{inference.MAX_STATES} states, which is what `Graph` does. Milliseconds are CPU time per graph.",
        ["pairs", "proven", "bound: LP", "bound: messages", "bound: messages and search", "labels: messages",
         "labels: messages and search", "labels: alpha-expansion", "ms: LP", "ms: messages", "ms: with search",
         "ms: alpha-expansion"],
    )  # fmt: skip
    with threadpool_limits(1):
        for name, strength, kind in (
            ("Potts, attract, strength 1", 1.0, "attract"),
            ("Potts, attract, strength 3", 3.0, "attract"),
            ("Potts, both signs, strength 1", 1.0, "mixed"),
            ("tables, strength 1", 1.0, "tables"),
            ("tables, strength 2", 2.0, "tables"),
        ):
            page.rows.append(_compare(name, strength, kind))
    page.notes.append(
        "All decompositions into trees that cover all edges have the same best bound, that of the linear program. So "
        "cutting a graph into other trees where sub-problems disagree can gain at most the difference between the "
        "columns 'messages' and 'LP'. That is nothing where Potts terms attract. Where pairs have both signs or free "
        "tables, messages stop early, above the linear program: re-cutting was not tried there."
    )
    return page


def _compare(name: str, strength: float, kind: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(7)
    sums: dict[str, list[float]] = {}
    for _ in range(N_GRAPHS):
        corners = Delaunay(rng.random((N, 2))).simplices
        sides = np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
        edges = np.unique(np.sort(sides, axis=1), axis=0).astype(np.int64)
        shape = Shape.of(np.array([0, N]), np.array([0, len(edges)]), edges)
        unary = rng.standard_normal((N, K))
        drawn = strength * rng.standard_normal(len(edges))
        drawn = np.abs(drawn) if kind == "attract" else drawn
        tables = drawn[:, None, None] * np.eye(K)
        pairs = Pairs.potts(drawn, K)
        if kind == "tables":
            tables = strength * rng.standard_normal((len(edges), K, K))
            pairs = Pairs(np.zeros(0), tables, np.arange(len(edges)))
        found = {"LP": _timed(lambda u=unary, t=tables, e=edges: (None, _relax(u, t, e)))}
        for way, states in (("messages", 0), ("search", inference.MAX_STATES), ("best", MANY_STATES)):
            found[way] = _timed(lambda s=shape, u=unary, p=pairs, m=states: _infer(s, u, p, m))
        if kind == "attract":
            cuts = Cuts(shape.starts, shape.edge_starts, edges)
            found["expansion"] = _timed(lambda c=cuts, u=unary, d=drawn: (expand(c, u, d), np.nan))
        scores = {
            way: np.nan if labels is None else float(score_labels(shape, unary, pairs, labels)[0])
            for way, (labels, _, _) in found.items()
        }
        best = max(value for value in scores.values() if value == value)
        for way, (_, bound, seconds) in found.items():
            sums.setdefault(f"bound {way}", []).append(100 * (bound - best) / abs(best))
            sums.setdefault(f"labels {way}", []).append(100 * (best - scores[way]) / abs(best))
            sums.setdefault(f"ms {way}", []).append(1e3 * seconds)
        sums.setdefault("proven", []).append(float(found["best"][1] <= best + 1e-6 * abs(best)))
    means = {key: float(np.mean(values)) for key, values in sums.items()}
    shown = [f"{means[f'bound {way}']:.3f}" for way in ("LP", "messages", "search")]
    shown += [f"{means[f'labels {way}']:.3f}" for way in ("messages", "search")]
    shown.append(f"{means['labels expansion']:.3f}" if "labels expansion" in means else "–")
    shown += [f"{means[f'ms {way}']:.2f}" for way in ("LP", "messages", "search")]
    shown.append(f"{means['ms expansion']:.2f}" if "ms expansion" in means else "–")
    return name, f"{sum(sums['proven']):.0f} of {N_GRAPHS}", *shown


def _timed(call: Any) -> tuple[Any, float, float]:
    call()  # compiles
    began = time.process_time()
    labels, bound = call()
    return labels, float(bound), time.process_time() - began


def _infer(shape: Shape, unary: np.ndarray, pairs: Pairs, max_states: int) -> tuple[np.ndarray, float]:
    kept = inference.MAX_STATES
    inference.MAX_STATES = max_states
    try:
        found = best_labels(shape, unary.copy(), pairs)
    finally:
        inference.MAX_STATES = kept
    return found.labels, float(found.bounds[0])


def _relax(unary: np.ndarray, tables: np.ndarray, edges: np.ndarray) -> float:
    """The linear program: marginals of nodes and pairs that agree, by HiGHS."""
    (n, k), m = unary.shape, len(edges)
    once = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, k))), sparse.csr_matrix((n, m * k * k))])
    rows = []
    for end, sums in ((0, np.kron(np.eye(k), np.ones((1, k)))), (1, np.kron(np.ones((1, k)), np.eye(k)))):
        of_node = sparse.csr_matrix((np.ones(m), (np.arange(m), edges[:, end])), shape=(m, n))
        rows.append(sparse.hstack([-sparse.kron(of_node, np.eye(k)), sparse.kron(sparse.eye(m), sums)]))
    right = np.concatenate([np.ones(n), np.zeros(2 * m * k)])
    gains = np.concatenate([unary.ravel(), tables.ravel()])
    return -float(
        linprog(-gains, A_eq=sparse.vstack([once, *rows]).tocsr(), b_eq=right, bounds=(0, None), method="highs").fun
    )

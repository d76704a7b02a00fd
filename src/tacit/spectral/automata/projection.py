"""The probabilistic automaton nearest to a spectral one: prefixes with like futures become one state.

A spectral automaton maps every prefix to a vector, its state scaled to weight one, and prefixes with the same future
have the same vector. k-means puts the vectors of the training prefixes into groups; the groups are the states, and
counts of moves between them the probabilities. What comes out is a proper distribution, and where Baum–Welch starts.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.spectral.em import Expected
from tacit.spectral.strings.next_symbol import NextSymbol
from tacit.spectral.strings.prefix_tree import PrefixTree

MAX_CLUSTERED_PREFIXES = 30_000
"""How many prefixes, the most frequent, k-means looks at."""


def project(tree: PrefixTree, model: NextSymbol, n_states: int, seed: int) -> Expected:
    """Counts of the moves between at most ``n_states`` groups of prefixes; O(nodes · (rank² + rank · n_states))."""
    chosen = np.sort(np.lexsort((np.arange(tree.passing.size), -tree.passing))[:MAX_CLUSTERED_PREFIXES])
    row = np.full(tree.parent.size, -1, dtype=np.int32)
    row[chosen] = np.arange(chosen.size)
    vectors = np.empty((chosen.size, model.initial.size))
    labels = np.zeros(tree.parent.size, dtype=np.int32)
    none = np.empty((0, model.initial.size))
    _place(tree, model, row, none, np.inf, vectors, labels)
    sizes = np.linalg.norm(vectors, axis=1)
    largest = float(np.quantile(sizes, 0.99))
    vectors *= np.minimum(1.0, largest / np.maximum(sizes, 1e-300))[:, None]
    n_states = min(n_states, len(np.unique(vectors.round(8), axis=0)))
    groups = KMeans(n_states, n_init=1, max_iter=50, random_state=seed)
    groups.fit(vectors, sample_weight=tree.passing[chosen])
    row[:] = -1
    _place(tree, model, row, np.ascontiguousarray(groups.cluster_centers_), largest, vectors, labels)
    return _count(tree, labels, n_states, len(model.transitions))


def _place(
    tree: PrefixTree, model: NextSymbol, row: Array, centres: Array, largest: float, vectors: Array, labels: Array
) -> None:
    deepest = int(tree.depth.max()) + 1
    _walk(
        tree.symbol,
        tree.depth,
        model.initial,
        model.transitions,
        model.going_on,
        model.fresh,
        row,
        centres,
        largest,
        np.empty((deepest, model.initial.size)),
        vectors,
        labels,
    )


def _count(tree: PrefixTree, labels: Array, n: int, k: int) -> Expected:
    """Starts, moves and ends of the groups, as if every prefix were in its group for sure."""
    initial = np.zeros(n)
    initial[labels[0]] = tree.passing[0]
    keys = (tree.symbol[1:].astype(np.int64) * n + labels[tree.parent[1:]]) * n + labels[1:]
    moves = np.bincount(keys, tree.passing[1:], minlength=k * n * n).reshape(k, n, n)
    return Expected(initial, moves, np.bincount(labels, tree.ending, minlength=n), 0.0)


@kernel
def _walk(
    symbol: Array,
    depth: Array,
    initial: Array,
    transitions: Array,
    going_on: Array,
    fresh: Array,
    row: Array,
    centres: Array,
    largest: float,
    path: Array,
    vectors: Array,
    labels: Array,
) -> None:
    """The vector of every node: written to ``vectors`` where it has a row, and compared with the centres."""
    n = initial.size
    for node in range(symbol.size):
        level = depth[node]
        weight = 0.0
        if level > 0:
            s = symbol[node]
            for j in range(n):
                path[level, j] = 0.0
            for i in range(n):
                share = path[level - 1, i]
                for j in range(n):
                    path[level, j] += share * transitions[s, i, j]
            for j in range(n):
                weight += path[level, j] * going_on[j]
            if weight > 1e-6:
                for j in range(n):
                    path[level, j] /= weight
            else:
                for j in range(n):
                    path[level, j] = fresh[s, j]
        else:
            for j in range(n):
                path[0, j] = initial[j]
        if row[node] >= 0:
            for j in range(n):
                vectors[row[node], j] = path[level, j]
        if centres.shape[0] > 0:
            size = 0.0
            for j in range(n):
                size += path[level, j] * path[level, j]
            shrink = min(1.0, largest / np.sqrt(size)) if size > 0.0 else 1.0
            best = np.inf
            for c in range(centres.shape[0]):
                distance = 0.0
                for j in range(n):
                    gap = path[level, j] * shrink - centres[c, j]
                    distance += gap * gap
                if distance < best:
                    best = distance
                    labels[node] = c

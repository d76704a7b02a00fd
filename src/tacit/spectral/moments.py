"""Counts of strings, and the spectral automata that follow from them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.ragged import Ragged
from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.em import Expected
from tacit.spectral.hankel import Factors, Hankel, count, factorise, operators
from tacit.spectral.next_symbol import Conditional, conditional
from tacit.spectral.ngram import NGram, count_ngrams
from tacit.spectral.prefix_tree import PrefixTree, grow

MAX_CLUSTERED_PREFIXES = 30_000
"""Prefixes for k-means, at most: the most frequent."""


class Counting(NamedTuple):
    """What is counted; the fields are parameters of `SpectralAutomaton`."""

    statistics: str
    length: int
    size: int | None
    basis: tuple[Ragged, Ragged] | None
    scaling: float


class Moments:
    """Counts of strings over an alphabet, each computed when it is first used.

    Parameters
    ----------
    strings : codes
    symbols : the alphabet
    weights : of the strings; None for one each
    counting : what is counted
    rank : the largest that will be used
    seed : of the SVD of large blocks
    """

    def __init__(
        self, strings: Ragged, symbols: Array, weights: Array | None, counting: Counting, rank: int, seed: int
    ) -> None:
        self.strings, self.symbols, self.weights = strings, symbols, weights
        self.counting, self.rank, self.seed = counting, rank, seed

    @functools.cached_property
    def hankel(self) -> Hankel:
        return count(
            self.strings,
            len(self.symbols),
            statistics=self.counting.statistics,
            length=self.counting.length,
            size=self.counting.size,
            basis=self.counting.basis,
            weights=self.weights,
        )

    @functools.cached_property
    def factors(self) -> Factors:
        return factorise(self.hankel, self.rank, scaling=self.counting.scaling, seed=self.seed)

    @functools.cached_property
    def tree(self) -> PrefixTree:
        return grow(self.strings, self.weights)

    def ngram(self, order: int) -> NGram:
        """The n-gram of the strings."""
        return count_ngrams(self.strings, len(self.symbols), order, self.weights)

    def automaton(self, rank: int) -> WeightedAutomaton:
        """The spectral automaton of whole strings, whose values may be negative."""
        initial, transitions, final = operators(self.hankel, self.factors, rank)
        rest = np.eye(initial.size) - transitions.sum(axis=0)
        if self.counting.statistics != "string":
            final = rest @ final
        if self.counting.statistics == "substring":
            initial = initial @ rest
        return WeightedAutomaton(initial, transitions, final, self.symbols)

    def conditional(self, rank: int) -> Conditional:
        """The next-symbol distributions of the spectral automaton.

        The weight of a prefix and the average state come from counts, too: inverting I − Σ_σ A_σ, the exact way, would
        fail where noise makes the sum of the automaton's values infinite.
        """
        automaton = self.automaton(rank)
        initial, _, final = operators(self.hankel, self.factors, rank)
        is_string, is_substring = (self.counting.statistics == kind for kind in ("string", "substring"))
        going_on = self.factors.rows[:rank] @ self.hankel.row_totals if is_string else final
        everywhere = initial if is_substring else self.hankel.column_totals @ self.factors.columns[:, :rank]
        parts = (automaton.initial, automaton.transitions, automaton.final)
        return conditional(*parts, going_on, everywhere)

    def project(self, rank: int, seed: int) -> Expected:
        """`project` of the spectral automaton of this rank, to as many states."""
        return project(self.tree, self.conditional(rank), rank, seed)


def project(tree: PrefixTree, model: Conditional, n_states: int, seed: int) -> Expected:
    """The probabilistic automaton nearest to a spectral one, as counts of moves between at most ``n_states`` states.

    A spectral automaton maps every prefix to a vector, its state scaled to weight one, and prefixes with the same
    future have the same vector. The clusters of these vectors by k-means are the states. The result is a distribution,
    and the start of Baum–Welch. O(nodes · (rank² + rank · n_states)).
    """
    chosen = np.sort(np.lexsort((np.arange(tree.passing.size), -tree.passing))[:MAX_CLUSTERED_PREFIXES])
    row = np.full(tree.parent.size, -1, dtype=np.int32)
    row[chosen] = np.arange(chosen.size)
    vectors = np.empty((chosen.size, model.initial.size))
    labels = np.zeros(tree.parent.size, dtype=np.int32)
    none, path = np.empty((0, model.initial.size)), np.empty((int(tree.depth.max()) + 1, model.initial.size))
    fixed = tree.symbol, tree.depth, model.initial, model.transitions, model.going_on, model.fresh
    _walk(*fixed, row, none, np.inf, path, vectors, labels)
    sizes = np.linalg.norm(vectors, axis=1)
    largest = float(np.quantile(sizes, 0.99))
    vectors *= np.minimum(1.0, largest / np.maximum(sizes, 1e-300))[:, None]
    n_states = min(n_states, len(np.unique(vectors.round(8), axis=0)))
    groups = KMeans(n_states, n_init=1, max_iter=50, random_state=seed)
    groups.fit(vectors, sample_weight=tree.passing[chosen])
    row[:] = -1
    _walk(*fixed, row, np.ascontiguousarray(groups.cluster_centers_), largest, path, vectors, labels)
    return _count(tree, labels, n_states, len(model.transitions))


def _count(tree: PrefixTree, labels: Array, n: int, k: int) -> Expected:
    """Numbers of starts, moves and ends of the clusters."""
    initial = np.zeros(n)
    initial[labels[0]] = tree.passing[0]
    keys = (tree.symbol[1:].astype(np.int64) * n + labels[tree.parent[1:]]) * n + labels[1:]
    moves = np.bincount(keys, tree.passing[1:], minlength=k * n * n).reshape(k, n, n)
    return Expected(initial, moves, np.bincount(labels, tree.ending, minlength=n), 0.0)


@kernel
def _walk(
    symbol: Array, depth: Array, initial: Array, transitions: Array, going_on: Array, fresh: Array, row: Array,
    centres: Array, largest: float, path: Array, vectors: Array, labels: Array,
) -> None:  # fmt: skip
    """The vector of every node: written to ``vectors`` where it has a row, and compared with the centres."""
    n = initial.size
    for node in range(symbol.size):
        level = depth[node]
        weight = 0.0
        if level > 0:
            s = symbol[node]
            path[level] = 0.0
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
            path[0] = initial
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

"""Kneser–Ney n-grams of strings, as a tree whose nodes are the n-grams that occurred.

The context of a symbol is the longest end of the string so far that occurred in training. The probability of a symbol
there is the discounted share of its occurrences, and for the rest that after the context without its first symbol.
Shorter contexts count not occurrences but the different symbols before them (Kneser & Ney 1995). Each order has its own
discounts for n-grams that occur once, twice, or more often (Chen & Goodman 1999). The lowest order is interpolated with
the uniform distribution, so every symbol is possible everywhere. An n-gram is a deterministic automaton over contexts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.kernels import kernel
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.runtime.archive import storable
from tacit.spectral.prefix_tree import grow
from tacit.spectral.symbols import check_codes

DISCOUNTS = np.array([0.5, 1.0, 1.5])
"""Discounts where too few n-grams occur once to four times to estimate them."""
MAX_LEVEL = 15
"""Levels of contexts, by the logarithm to the base 2 of their occurrences: 0 to this."""


@storable
class NGram(NamedTuple):
    """An n-gram model of strings over the symbols 0 … k − 1; k is the end, k + 1 the beginning of a string.

    Node 0 is the empty context. Children of a node, its continuations by one symbol, are contiguous and in the order of
    their symbols; a node comes before its children.

    Attributes
    ----------
    symbol : (nodes,) the last symbol; of node 0 it has no meaning
    first : (nodes + 1,) the first child; the children of v are ``first[v]`` to ``first[v + 1] − 1``
    suffix : (nodes,) the n-gram without its first symbol
    chance : (nodes,) the probability of the last symbol after the others
    backoff : (nodes,) after this context, what a symbol without a node gets of its probability after the suffix
    level : (nodes,) the logarithm to the base 2 of the occurrences, at most `MAX_LEVEL`
    n_symbols : k
    """

    symbol: Array
    first: Array
    suffix: Array
    chance: Array
    backoff: Array
    level: Array
    n_symbols: int

    def check(self) -> None:
        """Refuse parts that are not those of an n-gram: kernels rely on them."""
        kinds = {"symbol": "i4", "first": "i8", "suffix": "i4", "chance": "f8", "backoff": "f8", "level": "i4"}
        for name, kind in kinds.items():
            part = getattr(self, name)
            if not (isinstance(part, np.ndarray) and is_table(part, 1, kind[0]) and part.dtype == np.dtype(kind)):
                raise ValueError(f"{name} of an n-gram must be a vector of type {kind}, got {shorten(part)}")
        n, k = self.symbol.size, self.n_symbols
        sizes = {len(getattr(self, name)) - (name == "first") for name in kinds}
        if not isinstance(k, int) or k < 1 or n == 0 or sizes != {n}:
            raise ValueError(f"parts of an n-gram must have one entry per node, got {n} nodes and {k} symbols")
        children = np.diff(self.first)
        if self.first[0] != 1 or self.first[-1] != n or (children < 0).any() or (self.first[:-1] <= np.arange(n)).any():
            raise ValueError("first must be the positions of children, which come after their node")
        parent = np.repeat(np.arange(n), children)
        below, symbol = self.suffix[1:], self.symbol[1:]
        if symbol.size and not 0 <= symbol.min() <= symbol.max() <= k + 1:
            raise ValueError(f"symbol must be from 0 to {k + 1}")
        if self.suffix[0] != 0 or (below < 0).any() or (below >= np.arange(1, n)).any():
            raise ValueError("suffix must be a shorter n-gram")
        deep = np.flatnonzero(parent > 0) + 1
        above = np.concatenate([[0], parent])
        if (self.symbol[self.suffix[deep]] != self.symbol[deep]).any() or (
            above[self.suffix[deep]] != self.suffix[above[deep]]
        ).any():
            raise ValueError("suffix must be the n-gram without its first symbol")
        if ((parent[1:] == parent[:-1]) & (symbol[1:] <= symbol[:-1])).any():
            raise ValueError("children must be in the order of their symbols")
        if not (self.level.min() >= 0 and self.level.max() <= MAX_LEVEL):
            raise ValueError(f"level must be from 0 to {MAX_LEVEL}")
        if min(self.chance.min(), self.backoff.min()) < 0 or np.abs(self._row_sums(parent) - 1).max() > 1e-6:
            raise ValueError("chances after a context must be probabilities that sum to one")

    def _row_sums(self, parent: Array) -> Array:
        """Σ_s p(s | context) of all contexts that have children, and of the empty one."""
        below = np.where(parent == 0, 1 / (self.n_symbols + 1), self.chance[self.suffix[1:]])
        below[self.symbol[1:] > self.n_symbols] = 0.0
        seen, rest = (np.bincount(parent, part, minlength=self.symbol.size) for part in (self.chance[1:], below))
        sums = seen + self.backoff * (1 - rest)
        return np.asarray(sums[(np.diff(self.first) > 0) | (np.arange(sums.size) == 0)])

    @property
    def start(self) -> int:
        """The context at the beginning of a string."""
        begin = self.n_symbols + 1
        top = self.symbol[1 : self.first[1]]
        return top.size if top.size and top[-1] == begin else 0

    def follow(self, strings: Ragged, contexts: Array, ends: bool = True) -> tuple[Array, Array, Array]:
        """Probability and level of every symbol of the strings and of their ends; and the contexts after them."""
        check_codes(strings, self.n_symbols)
        contexts = np.array(contexts)
        n = strings.values.size + (len(strings) if ends else 0)
        chances, levels = np.zeros(n), np.zeros(n, dtype=np.int32)
        model = self.symbol, self.first, self.suffix, self.chance, self.backoff, self.level
        _follow(strings.values, strings.offsets, self.n_symbols, *model, ends, contexts, chances, levels)
        return chances, levels, contexts

    def next_proba(self, contexts: Array) -> Array:
        """(contexts, symbols + 1) probabilities of the next symbol, the end last."""
        out = np.empty((contexts.size, self.n_symbols + 1))
        _fill_rows(contexts, self.symbol, self.first, self.suffix, self.chance, self.backoff, out)
        return out


def count_ngrams(strings: Ragged, n_symbols: int, order: int, weights: Array | None = None) -> NGram:
    """The Kneser–Ney model of this order, which is the length of the longest n-grams; O(symbols · order).

    >>> model = count_ngrams(Ragged([0, 1, 0], [0, 2, 3]), 2, order=2)
    >>> model.next_proba(np.array([0, model.start])).round(2)
    array([[0.29, 0.29, 0.42],
           [0.65, 0.15, 0.21]])
    """
    lengths = strings.lengths + 2
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    padded = np.full(offsets[-1], n_symbols + 1, dtype=np.int32)
    inside = np.arange(strings.values.size) + np.repeat(2 * np.arange(len(strings)) + 1, strings.lengths)
    padded[inside] = strings.values
    padded[offsets[1:] - 1] = n_symbols
    tree = grow(Ragged(padded, offsets), weights, longest=order, everywhere=True)
    by_depth = np.argsort(tree.depth, kind="stable")
    rank = np.empty(by_depth.size, dtype=np.int64)
    rank[by_depth] = np.arange(by_depth.size)
    parent = rank[tree.parent[by_depth][1:]]
    symbol, depth, times = tree.symbol[by_depth], tree.depth[by_depth], tree.passing[by_depth]
    symbol[0] = 0
    first = 1 + np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=by_depth.size))])
    suffix, begins = np.zeros(by_depth.size, dtype=np.int32), np.zeros(by_depth.size, dtype=bool)
    _link_suffixes(symbol, first, n_symbols + 1, suffix, begins)
    kinds = np.bincount(suffix[first[1] :], minlength=by_depth.size).astype(np.float64)
    counts = np.where((depth == order) | begins, times, kinds)
    counts[begins & (depth == 1)] = 0.0
    discounts = np.zeros(counts.size)
    for d in range(1, order + 1):
        own = np.flatnonzero((depth == d) & (counts > 0))
        discounts[own] = np.minimum(_find_discounts(counts[own]), counts[own])
    total, rest = (np.bincount(parent, part[1:], minlength=counts.size) for part in (counts, discounts))
    used = np.where(total > 0, total, 1.0)
    backoff = np.where(total > 0, rest / used, 1.0)
    chance = np.zeros(counts.size)
    _interpolate(first, suffix, counts - discounts, used, backoff, 1 / (n_symbols + 1), chance)
    chance[begins & (depth == 1)] = 0.0
    level = np.minimum(np.log2(np.maximum(times, 1.0)), MAX_LEVEL).astype(np.int32)
    return NGram(symbol, first, suffix, chance, backoff, level, n_symbols)


def _find_discounts(counts: Array) -> Array:
    """The discount of every count, by how many there are of one, two, three and four (Chen & Goodman 1999, eq. 26)."""
    found = DISCOUNTS
    n = [float((counts == times).sum()) for times in (1, 2, 3, 4)]
    if min(n) > 0:
        share = n[0] / (n[0] + 2 * n[1])
        estimate = np.array([i + 1 - (i + 2) * share * n[i + 1] / n[i] for i in range(3)])
        found = np.where((estimate > 0) & (estimate < np.arange(1, 4)), estimate, DISCOUNTS)
    return np.asarray(found[np.clip(np.ceil(counts), 1, 3).astype(int) - 1])


@kernel
def _link_suffixes(symbol: Array, first: Array, begin: int, suffix: Array, begins: Array) -> None:
    """The suffix of every node, and whether it begins with the beginning of a string."""
    for node in range(symbol.size):
        for child in range(first[node], first[node + 1]):
            if node == 0:
                begins[child] = symbol[child] == begin
                continue
            begins[child] = begins[node]
            low, high = first[suffix[node]], first[suffix[node] + 1] - 1
            while low < high:
                middle = (low + high) // 2
                if symbol[middle] < symbol[child]:
                    low = middle + 1
                else:
                    high = middle
            suffix[child] = low


@kernel
def _interpolate(
    first: Array, suffix: Array, discounted: Array, total: Array, backoff: Array, uniform: float, chance: Array
) -> None:
    """The probability of every n-gram: its discounted share, and the rest by the probability of its suffix."""
    for node in range(backoff.size):
        for child in range(first[node], first[node + 1]):
            below = uniform if node == 0 else chance[suffix[child]]
            chance[child] = discounted[child] / total[node] + backoff[node] * below


@kernel
def _follow(
    codes: Array, offsets: Array, n_symbols: int, symbol: Array, first: Array, suffix: Array, chance: Array,
    backoff: Array, level: Array, ends: bool, contexts: Array, chances: Array, levels: Array,
) -> None:  # fmt: skip
    """Walk every string from its context on; probability and level of the context of each symbol, then of the end."""
    at = 0
    for i in range(offsets.size - 1):
        context = contexts[i]
        for t in range(offsets[i], offsets[i + 1] + (1 if ends else 0)):
            s = codes[t] if t < offsets[i + 1] else n_symbols
            levels[at] = level[context]
            node, share = context, 1.0
            following = 0
            while s >= 0:
                low, high = first[node], first[node + 1] - 1
                while low < high:
                    middle = (low + high) // 2
                    if symbol[middle] < s:
                        low = middle + 1
                    else:
                        high = middle
                if low == high and symbol[low] == s:
                    chances[at] = share * chance[low]
                    following = low
                    break
                share *= backoff[node]
                if node == 0:
                    chances[at] = share / (n_symbols + 1)
                    break
                node = suffix[node]
            at += 1
            if t < offsets[i + 1]:
                while following > 0 and first[following] == first[following + 1]:
                    following = suffix[following]
                context = following
        contexts[i] = context


@kernel
def _fill_rows(
    contexts: Array, symbol: Array, first: Array, suffix: Array, chance: Array, backoff: Array, out: Array
) -> None:
    """The distribution after every context, from the empty suffix up to the whole context."""
    n = out.shape[1]
    for i in range(contexts.size):
        out[i] = 1.0 / n
        depth, node = 0, contexts[i]
        while node > 0:
            node = suffix[node]
            depth += 1
        while depth >= 0:
            node = contexts[i]
            for _ in range(depth):
                node = suffix[node]
            for s in range(n):
                out[i, s] *= backoff[node]
            for child in range(first[node], first[node + 1]):
                if symbol[child] < n:
                    out[i, symbol[child]] = chance[child]
            depth -= 1

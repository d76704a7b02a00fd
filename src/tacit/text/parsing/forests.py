"""Packed forests: all trees that a sentence may have, as nodes and the pairs of children that they may have.

A coarse pass by inside and outside probabilities decides which symbols a span may have; the forest of the whole grammar
is built from those alone (Charniak & Johnson 2005). Everything that depends on weights walks over forests: that of a
given tree has one pair of children per node.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.text.parsing.charts import Index, build_forest, index_rules, make_room, prune_spans
from tacit.text.parsing.grammar import Grammar

MAX_PAIRS = 1 << 24
"""Pairs of children in the forest of one sentence: half a gigabyte while it is built."""


class Forest(NamedTuple):
    """Forests of sentences, one after the other; children come before their parents.

    Attributes
    ----------
    offsets : where the nodes of each sentence begin
    symbol, first, last : of every node, and the words that it spans (``last`` exclusive)
    leaf : the number of its leaf rule, −1 for a node above others, −2 for a leaf that the grammar does not have
    edges : where the pairs of children of each node begin
    left, right : nodes, counted from the first of the sentence
    rule : of every pair, −1 for one that has no weight
    is_top : whether a node may be the root
    """

    offsets: Array
    symbol: Array
    first: Array
    last: Array
    leaf: Array
    edges: Array
    left: Array
    right: Array
    rule: Array
    is_top: Array


class ForestBuilder:
    """Builds forests of sentences by a grammar.

    Parameters
    ----------
    grammar : the grammar
    threshold : the lowest posterior of a coarse symbol that is kept; 0 keeps all
    """

    def __init__(self, grammar: Grammar, threshold: float) -> None:
        self.threshold = threshold
        n_tags, n_coarse = grammar.tags.size, grammar.coarse_symbols.size
        numbers = np.arange(len(grammar.coarse_rules))
        self.indexes: list[tuple[Index, Index]] = []
        """Rules of the coarse and the fine grammar: those that were seen, and all."""
        for few, some in ((grammar.coarse_seen, grammar.is_seen), (slice(None), slice(None))):
            coarse = index_rules(grammar.coarse_rules[few], numbers[few], grammar.coarse_leaves, n_coarse, n_tags)
            given = grammar.rules[some], grammar.rows[some], grammar.leaves
            self.indexes.append((coarse, index_rules(*given, grammar.n_symbols, n_tags)))
        self.scores = np.exp(grammar.rule_logs), np.exp(grammar.leaf_logs + grammar.scale), np.exp(grammar.top_logs)
        self.unseen = grammar.n_rows - 1
        self.of = grammar.coarse
        self.is_root = np.zeros(grammar.n_symbols, dtype=np.bool_)
        self.is_root[grammar.tops] = True
        self.n_coarse = n_coarse
        self._room = make_room(1 << 14, 1 << 16)
        self._size = 0

    def _resize(self, n: int) -> None:
        if n <= self._size:
            return
        self._size = n
        shape = n, n + 1, self.n_coarse
        self._inside, self._outside = np.empty(shape), np.empty(shape)
        self._active, self._n_active = np.empty(shape, dtype=np.int32), np.empty(shape[:2], dtype=np.int32)

    def build(self, tags: Array, truth: list[Array] | None = None) -> tuple[list[Array], bool]:
        """The forest of a sentence: the arrays of `Forest` after `offsets`, and whether fragments had to be joined.

        ``truth`` has the arrays of a forest all trees of which the forest must have.
        """
        n = tags.size
        self._resize(n)
        keep = np.zeros((n, n + 1, self.n_coarse), dtype=np.bool_)
        charts = self._inside, self._outside, self._active, self._n_active
        indexes = self.indexes
        if truth is not None:
            symbol, first, last, rule = truth[0], truth[1], truth[2], truth[7]
            keep[first, last, self.of[symbol]] = True
            indexes = indexes[1:] if (rule == self.unseen).any() else indexes
        for (coarse, fine), threshold in itertools.product(indexes, (self.threshold, 1e-3 * self.threshold)):
            total = prune_spans(tags, coarse, *self.scores, threshold, keep, *charts)
            if total > 0.0 or truth is not None:
                found = self._fill(tags, fine, keep, self.is_root)
                if found[0].size:
                    return found, False
        return self._build_fragments(tags), True

    def build_known(self, tags: Array, mask: Array) -> list[Array]:
        """The forest of the trees whose symbols a mask [first, last, coarse symbol] allows; empty if there are none.
        What the coarse pass keeps of it is taken, unless that is nothing."""
        self._resize(tags.size)
        charts = self._inside, self._outside, self._active, self._n_active
        for coarse, fine in self.indexes:
            keep = np.zeros_like(mask)
            prune_spans(tags, coarse, *self.scores, self.threshold, keep, *charts)
            for allowed in (keep & mask, mask):
                found = self._fill(tags, fine, allowed, self.is_root)
                if found[0].size:
                    return found
        return found

    def _build_fragments(self, tags: Array) -> list[Array]:
        """The forests of the fewest fragments that the coarse rules derive, under nodes of the last symbol."""
        (coarse, fine), n = self.indexes[0], tags.size
        charts = self._inside, self._outside, self._active, self._n_active
        prune_spans(tags, coarse, *self.scores, 0.0, np.zeros((n, n + 1, self.n_coarse), dtype=np.bool_), *charts)
        is_derived = self._n_active[:n, : n + 1] > 0
        fewest, ending = np.full(n + 1, n + 1), np.zeros(n + 1, dtype=np.int64)
        fewest[n] = 0
        for i in range(n - 1, -1, -1):
            ends = np.flatnonzero(is_derived[i])[::-1]
            ending[i] = ends[np.argmin(fewest[ends])]
            fewest[i] = fewest[ending[i]] + 1
        pieces, at = [], 0
        while at < n:
            last = int(ending[at])
            own = self._build_fragment(tags[at:last], coarse, fine)
            pieces += (
                [(at, own)]
                if own[0].size
                else [(k, self._build_fragment(tags[k : k + 1], coarse, fine)) for k in range(at, last)]
            )
            at = last
        return self._glue(pieces, n)

    def _build_fragment(self, tags: Array, coarse: Index, fine: Index) -> list[Array]:
        """The forest of a fragment, whose root may have any symbol."""
        n, (rule, leaf, top) = tags.size, self.scores
        keep = np.zeros((n, n + 1, self.n_coarse), dtype=np.bool_)
        charts = self._inside, self._outside, self._active, self._n_active
        prune_spans(tags, coarse, rule, leaf, np.ones_like(top), self.threshold, keep, *charts)
        return self._fill(tags, fine, keep, np.ones_like(self.is_root))

    def _glue(self, pieces: list[tuple[int, list[Array]]], n: int) -> list[Array]:
        """Forests of fragments, which begin at these words, as one: each is joined to all that follow."""
        columns: list[list[Any]] = [[] for _ in range(9)]
        tops: list[Array] = []
        n_nodes, n_pairs = 0, 0
        for at, own in pieces:
            shifts = 0, at, at, 0, n_pairs, n_nodes, n_nodes, 0, 0
            for k, (values, shift) in enumerate(zip(own, shifts, strict=True)):
                columns[k].append((values[:-1] if k == 4 else values) + (shift if k < 8 else False))
            tops.append(n_nodes + np.flatnonzero(own[8]))
            n_nodes, n_pairs = n_nodes + own[0].size, n_pairs + own[5].size
        following = tops[-1]
        for (at, _), top in zip(pieces[-2::-1], tops[-2::-1], strict=True):
            left, right = np.repeat(top, following.size), np.tile(following, top.size)
            added: Any = [self.of.size - 1], [at], [n], [-1], [n_pairs], left, right, np.full(left.size, -1), [False]
            for column, one in zip(columns, added, strict=True):
                column.append(one)
            following = np.array([n_nodes])
            n_nodes, n_pairs = n_nodes + 1, n_pairs + left.size
        columns[4].append([n_pairs])
        kinds: Any = *[np.int32] * 4, np.int64, *[np.int32] * 3, np.bool_
        found = [np.concatenate(column).astype(kind) for column, kind in zip(columns, kinds, strict=True)]
        found[8][:] = False
        found[8][following] = True
        return found

    def _fill(self, tags: Array, fine: Index, keep: Array, is_root: Array) -> list[Array]:
        n = tags.size
        while True:
            numbers = np.full((n, n + 1, self.of.size), -1, dtype=np.int32)
            n_nodes, n_pairs = build_forest(tags, fine, self.of, keep, is_root, numbers, self._room)
            if n_nodes >= 0:
                break
            if self._room.left.size >= MAX_PAIRS:
                raise ValueError(
                    f"a sentence of {n} words has more than {MAX_PAIRS:,} pairs of constituents; raise prune (now "
                    f"{self.threshold:g}), or split the sentence"
                )
            self._room = make_room(2 * self._room.symbol.size, 2 * self._room.left.size)
        room = self._room
        nodes = [one[:n_nodes].copy() for one in room[:4]]
        return [
            *nodes,
            room.edges[: n_nodes + 1].copy(),
            *(one[:n_pairs].copy() for one in room[6:9]),
            room.is_top[:n_nodes].copy(),
        ]


def join_forests(parts: list[list[Array]]) -> Forest:
    """Forests of single sentences in one."""
    sizes = [part[0].size for part in parts]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shifts = np.concatenate([[0], np.cumsum([part[5].size for part in parts])]).astype(np.int64)
    edges = [part[4][:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
    columns: Any = [np.concatenate([part[k] for part in parts]) for k in (0, 1, 2, 3)]
    pairs: Any = [np.concatenate([part[k] for part in parts]) for k in (5, 6, 7)]
    tops = np.concatenate([part[8] for part in parts])
    joined: Any = offsets, *columns, np.concatenate([*edges, shifts[-1:]]), *pairs, tops
    return Forest(*joined)

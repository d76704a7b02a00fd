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
from tacit.data.kernels import kernel
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


class Index(NamedTuple):
    """Rules by their left child, and leaf rules by their tag."""

    starts: Array
    rules: Array
    table: Array
    leaf_starts: Array
    leaf_rules: Array
    leaves: Array


def index_rules(rules: Array, rows: Array, leaves: Array, n_symbols: int, n_tags: int) -> Index:
    """The tables that charts are filled by; ``rows`` has the number of every rule."""
    order, above = np.argsort(rules[:, 1], kind="stable"), np.argsort(leaves[:, 1], kind="stable")
    starts = np.searchsorted(rules[order, 1], np.arange(n_symbols + 1))
    leaf_starts = np.searchsorted(leaves[above, 1], np.arange(n_tags + 1))
    return Index(
        starts, rows[order], np.ascontiguousarray(rules[order]), leaf_starts, above, np.ascontiguousarray(leaves[above])
    )


@kernel
def prune_spans(
    tags: Array,
    index: Index,
    rule_scores: Array,
    leaf_scores: Array,
    top_scores: Array,
    threshold: float,
    keep: Array,
    inside: Array,
    outside: Array,
    active: Array,
    n_active: Array,
) -> float:
    """Set ``keep[first, last, symbol]`` where the posterior of a coarse symbol is above the threshold; returns Σ p.

    Scores are probabilities times a factor per word, so that products neither vanish nor overflow. All tables are
    cleared here.
    """
    starts, rules, table, leaf_starts, leaf_rules, leaves = index
    n = tags.size
    inside[:n, : n + 1] = 0.0
    n_active[:n, : n + 1] = 0
    for i in range(n):
        for p in range(leaf_starts[tags[i]], leaf_starts[tags[i] + 1]):
            symbol = leaves[p, 0]
            inside[i, i + 1, symbol] = leaf_scores[leaf_rules[p]]
            active[i, i + 1, n_active[i, i + 1]] = symbol
            n_active[i, i + 1] += 1
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            into = inside[i, j]
            for m in range(i + 1, j):
                if n_active[m, j] == 0:
                    continue
                own, other = inside[i, m], inside[m, j]
                for a in range(n_active[i, m]):
                    symbol = active[i, m, a]
                    score = own[symbol]
                    for p in range(starts[symbol], starts[symbol + 1]):
                        right = other[table[p, 2]]
                        if right > 0.0:
                            into[table[p, 0]] += score * right * rule_scores[rules[p]]
            count = 0
            for symbol in range(into.size):
                if into[symbol] > 0.0:
                    active[i, j, count] = symbol
                    count += 1
            n_active[i, j] = count
    total = 0.0
    for a in range(n_active[0, n]):
        symbol = active[0, n, a]
        total += inside[0, n, symbol] * top_scores[symbol]
    if not (total > 0.0 and total < np.inf):
        return 0.0
    outside[:n, : n + 1] = 0.0
    for symbol in range(top_scores.size):
        outside[0, n, symbol] = top_scores[symbol]
    for width in range(n, 0, -1):
        for i in range(n - width + 1):
            j = i + width
            above, here = outside[i, j], inside[i, j]
            alive = False
            for a in range(n_active[i, j]):
                symbol = active[i, j, a]
                if above[symbol] * here[symbol] > threshold * total:
                    keep[i, j, symbol] = True
                    alive = True
                else:
                    above[symbol] = 0.0
            if not alive or width == 1:
                continue
            for m in range(i + 1, j):
                own, other = inside[i, m], inside[m, j]
                for a in range(n_active[i, m]):
                    symbol = active[i, m, a]
                    for p in range(starts[symbol], starts[symbol + 1]):
                        score = above[table[p, 0]]
                        if score > 0.0 and other[table[p, 2]] > 0.0:
                            score *= rule_scores[rules[p]]
                            outside[i, m, symbol] += score * other[table[p, 2]]
                            outside[m, j, table[p, 2]] += score * own[symbol]
    return total


class Room(NamedTuple):
    """Room for the forest of one sentence while it is built."""

    symbol: Array
    first: Array
    last: Array
    leaf: Array
    edges: Array
    is_top: Array
    left: Array
    right: Array
    rule: Array
    found: Array


def make_room(n_nodes: int, n_edges: int) -> Room:
    """Room for so many nodes and pairs of children."""
    nodes: Any = [np.empty(n_nodes, dtype=np.int32) for _ in range(4)]
    pairs: Any = [np.empty(n_edges, dtype=np.int32) for _ in range(3)]
    edges, is_top = np.zeros(n_nodes + 1, dtype=np.int64), np.zeros(n_nodes, dtype=np.bool_)
    parts: Any = *nodes, edges, is_top, *pairs, np.empty((n_edges, 4), dtype=np.int32)
    return Room(*parts)


@kernel
def build_forest(
    tags: Array, index: Index, coarse: Array, keep: Array, is_root: Array, numbers: Array, room: Room
) -> tuple[int, int]:
    """The forest of one sentence, all nodes below its roots; their number and that of pairs, −1 if there is no room.

    Parameters
    ----------
    tags : of its words
    index : rules
    coarse : the coarse symbol of every symbol
    keep : [first, last, coarse symbol] what a span may be
    is_root : symbols that may be roots
    numbers : [first, last, symbol] all −1, for the numbers of nodes
    room : what is filled
    """
    starts, rules, table, leaf_starts, leaf_rules, leaves = index
    symbol, first, last, leaf, edges, is_top, left, right, rule, found = room
    n, n_symbols = tags.size, coarse.size
    begins, ends = np.zeros((n, n + 1), dtype=np.int64), np.zeros((n, n + 1), dtype=np.int64)
    n_nodes, n_edges = 0, 0
    count = np.zeros(n_symbols + 1, dtype=np.int64)
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
            begins[i, j] = n_nodes
            n_found = 0
            if width == 1:
                for p in range(leaf_starts[tags[i]], leaf_starts[tags[i] + 1]):
                    if keep[i, j, coarse[leaves[p, 0]]] and n_found < len(found):
                        found[n_found, 0], found[n_found, 3] = leaves[p, 0], leaf_rules[p]
                        n_found += 1
            else:
                for m in range(i + 1, j):
                    if begins[m, j] == ends[m, j]:
                        continue
                    for a in range(begins[i, m], ends[i, m]):
                        for p in range(starts[symbol[a]], starts[symbol[a] + 1]):
                            b = numbers[m, j, table[p, 2]]
                            if b >= 0 and keep[i, j, coarse[table[p, 0]]] and n_found < len(found):
                                found[n_found, 0], found[n_found, 1] = table[p, 0], a
                                found[n_found, 2], found[n_found, 3] = b, rules[p]
                                n_found += 1
            if n_found == len(found) or n_edges + n_found > left.size or n_nodes + n_symbols + n > symbol.size:
                return -1, -1
            # sorted by symbol, otherwise as found
            count[:] = 0
            for e in range(n_found):
                count[found[e, 0] + 1] += 1
            for s in range(n_symbols):
                if count[s + 1] > 0:
                    symbol[n_nodes], first[n_nodes], last[n_nodes], leaf[n_nodes] = s, i, j, -1
                    numbers[i, j, s] = n_nodes
                    n_nodes += 1
                    edges[n_nodes] = n_edges if width == 1 else n_edges + count[s] + count[s + 1]
                count[s + 1] += count[s]
            for e in range(n_found):
                s = found[e, 0]
                if width == 1:
                    leaf[numbers[i, j, s]] = found[e, 3]
                else:
                    where = n_edges + count[s]
                    count[s] += 1
                    left[where], right[where], rule[where] = found[e, 1], found[e, 2], found[e, 3]
            n_edges += n_found if width > 1 else 0
            ends[i, j] = n_nodes
    used = np.zeros(n_nodes + n, dtype=np.bool_)
    is_top[: n_nodes + n] = False
    for a in range(begins[0, n], ends[0, n]):
        if is_root[symbol[a]]:
            used[a], is_top[a] = True, True
    for a in range(n_nodes - 1, -1, -1):
        if used[a]:
            for e in range(edges[a], edges[a + 1]):
                used[left[e]], used[right[e]] = True, True
    # what is used, numbered anew
    number = np.empty(n_nodes, dtype=np.int32)
    n_kept, n_pairs = 0, 0
    for a in range(n_nodes):
        if used[a]:
            start, stop = edges[a], edges[a + 1]
            number[a] = n_kept
            symbol[n_kept], first[n_kept], last[n_kept], leaf[n_kept] = symbol[a], first[a], last[a], leaf[a]
            is_top[n_kept] = is_top[a]
            for e in range(start, stop):
                left[n_pairs], right[n_pairs], rule[n_pairs] = number[left[e]], number[right[e]], rule[e]
                n_pairs += 1
            n_kept += 1
            edges[n_kept] = n_pairs
    return n_kept, n_pairs


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

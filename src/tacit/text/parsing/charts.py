"""Compiled passes over charts: what a coarse grammar leaves possible, and the forest of the whole grammar in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


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

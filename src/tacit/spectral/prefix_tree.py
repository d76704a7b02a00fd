"""Prefix tree (trie) of many strings, over which counting and Baum–Welch run instead of the strings.

Node 0 is the empty prefix; a node is its parent's prefix and one symbol more. Nodes are in depth-first order, children
by symbol: the tree does not depend on the order of the strings, and parents come before children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.ragged import Ragged


class PrefixTree(NamedTuple):
    """The distinct prefixes of weighted strings.

    Attributes
    ----------
    parent, symbol, depth : of every node; −1, −1 and 0 for the root
    passing : total weight of the strings that begin with the prefix
    ending : total weight of the strings that are the prefix
    cut : total weight of the longer strings that were cut here
    """

    parent: Array
    symbol: Array
    depth: Array
    passing: Array
    ending: Array
    cut: Array


def grow(
    strings: Ragged,
    weights: Array | None = None,
    *,
    longest: int | None = None,
    everywhere: bool = False,
    reverse: bool = False,
) -> PrefixTree:
    """The prefix tree of strings of small non-negative integers; O(symbols walked over).

    Parameters
    ----------
    strings : one row per symbol
    weights : of the strings; None for one each
    longest : cut the strings after this many symbols
    everywhere : insert all suffixes of every string, the empty one included; ``passing`` then counts the occurrences of
        substrings
    reverse : insert the strings read from their ends

    >>> strings = Ragged([0, 1, 0, 1, 1], [0, 2, 4, 4, 5])
    >>> tree = grow(strings)
    >>> tree.parent.tolist(), tree.symbol.tolist(), tree.passing.tolist(), tree.ending.tolist()
    ([-1, 0, 1, 0], [-1, 0, 1, 1], [4.0, 2.0, 2.0, 1.0], [1.0, 0.0, 2.0, 1.0])
    >>> grow(strings, longest=1, everywhere=True).passing.tolist()
    [9.0, 2.0, 3.0]
    """
    return _grow(strings, weights, longest, everywhere, reverse)[0]


def sort_order(strings: Ragged) -> Array:
    """The order that sorts strings; equal ones keep their order.

    >>> sort_order(Ragged([1, 0, 1, 0], [0, 1, 3, 4, 4])).tolist()
    [3, 2, 1, 0]
    """
    return np.argsort(_grow(strings, None, None, False, False)[1], kind="stable")


def _grow(
    strings: Ragged, weights: Array | None, longest: int | None, everywhere: bool, reverse: bool
) -> tuple[PrefixTree, Array]:
    """The tree, and the node where each string ended."""
    values = strings.values.astype(np.int32, copy=False)
    offsets = strings.offsets
    weights = np.ones(len(strings)) if weights is None else weights
    reach = int(strings.lengths.max(initial=0))
    reach = reach if longest is None else min(longest, reach)
    capacity = 1 << max(int(min(values.size, 1 << 16)).bit_length(), reach.bit_length() + 1)
    parent, symbol = np.full(capacity, -1, dtype=np.int32), np.full(capacity, -1, dtype=np.int32)
    passing, ending, cut = (np.zeros(capacity) for _ in range(3))
    last = np.zeros(len(strings), dtype=np.int32)
    string, position, size = 0, 0, 1
    while True:
        table = np.full(2 * parent.size, -1, dtype=np.int32)
        hash_nodes(parent[:size], symbol[:size], table)
        string, position, size = _insert(
            values, offsets, weights, reach, everywhere, reverse, table, parent, symbol, passing, ending, cut, last,
            string, position, size,
        )  # fmt: skip
        if string == len(strings):
            break
        parent, symbol = (np.concatenate([old, np.full_like(old, -1)]) for old in (parent, symbol))
        passing, ending, cut = (np.concatenate([old, np.zeros_like(old)]) for old in (passing, ending, cut))
    del table
    tree, rank = _in_order(*(column[:size] for column in (parent, symbol, passing, ending, cut)))
    return tree, rank[last]


def find(tree: PrefixTree, strings: Ragged) -> Array:
    """The node of every string, −1 where it is not a prefix in the tree.

    >>> find(grow(Ragged([0, 1, 1], [0, 2, 3])), Ragged([1, 0, 0, 0, 1], [0, 0, 1, 3, 5])).tolist()
    [0, 3, -1, 2]
    """
    width = int(max(tree.symbol.max(initial=0), strings.values.max(initial=0))) + 1
    keys = tree.parent[1:].astype(np.int64) * width + tree.symbol[1:]
    order = np.argsort(keys)
    keys = np.append(keys[order], -1)
    nodes, lengths = np.zeros(len(strings), dtype=np.int64), strings.lengths
    for step in range(int(lengths.max(initial=0))):
        on = np.flatnonzero((lengths > step) & (nodes >= 0))
        wanted = nodes[on] * width + strings.values[strings.offsets[on] + step]
        at = np.searchsorted(keys[:-1], wanted)
        nodes[on] = np.where(keys[at] == wanted, np.append(order, 0)[at] + 1, -1)
    return nodes


def _in_order(parent: Array, symbol: Array, passing: Array, ending: Array, cut: Array) -> tuple[PrefixTree, Array]:
    """The tree with its nodes in depth-first order, and their new numbers."""
    first, following, position, rank, depth = (np.full(parent.size, -1, dtype=np.int32) for _ in range(5))
    _link(parent, np.argsort(symbol, kind="stable"), first, following)
    _preorder(parent, first, following, position, rank, depth)
    parent = parent[position]
    parent[1:] = rank[parent[1:]]
    return PrefixTree(parent, symbol[position], depth, passing[position], ending[position], cut[position]), rank


@kernel
def hash_nodes(parent: Array, symbol: Array, table: Array) -> None:
    """Put all nodes but the root into an empty hash table, by parent and symbol."""
    mask = table.size - 1
    for node in range(1, parent.size):
        mixed = np.uint64(parent[node]) * np.uint64(0x9E3779B97F4A7C15)
        mixed += np.uint64(symbol[node]) * np.uint64(0xC2B2AE3D27D4EB4F)
        position = np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(mask))
        while table[position] >= 0:
            position = (position + 1) & mask
        table[position] = node


@kernel
def _insert(
    values: Array, offsets: Array, weights: Array, reach: int, everywhere: bool, reverse: bool, table: Array,
    parent: Array, symbol: Array, passing: Array, ending: Array, cut: Array, last: Array, string: int, position: int,
    size: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Insert strings, from ``position`` of ``string`` on, until the arrays are too short for the next one.

    Returns the string and position to continue at, and the number of nodes.
    """
    mask = table.size - 1
    while string < offsets.size - 1:
        length = offsets[string + 1] - offsets[string]
        while position <= (length if everywhere else 0):
            steps = min(reach, length - position)
            if size + steps > parent.size:
                return string, position, size
            node = 0
            passing[0] += weights[string]
            for step in range(steps):
                t = position + step
                s = values[offsets[string + 1] - 1 - t] if reverse else values[offsets[string] + t]
                mixed = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(s) * np.uint64(0xC2B2AE3D27D4EB4F)
                slot = np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(mask))
                while table[slot] >= 0 and (parent[table[slot]] != node or symbol[table[slot]] != s):
                    slot = (slot + 1) & mask
                if table[slot] < 0:
                    table[slot] = size
                    parent[size] = node
                    symbol[size] = s
                    size += 1
                node = table[slot]
                passing[node] += weights[string]
            last[string] = node
            if position + steps == length:
                ending[node] += weights[string]
            else:
                cut[node] += weights[string]
            position += 1
        string += 1
        position = 0
    return string, position, size


@kernel
def _link(parent: Array, order: Array, first: Array, following: Array) -> None:
    """First child and next sibling of every node, children by symbol; ``order`` has the nodes by symbol."""
    for k in range(order.size - 1, -1, -1):
        node = order[k]
        if node > 0:
            following[node] = first[parent[node]]
            first[parent[node]] = node


@kernel
def _preorder(parent: Array, first: Array, following: Array, position: Array, rank: Array, depth: Array) -> None:
    """``position[k]`` is the k-th node in depth-first order, ``depth[k]`` its depth, ``rank`` the inverse."""
    node, level = 0, 0
    for k in range(position.size):
        position[k] = node
        rank[node] = k
        depth[k] = level
        if first[node] >= 0:
            node = first[node]
            level += 1
        else:
            while node > 0 and following[node] < 0:
                node = parent[node]
                level -= 1
            node = following[node] if node > 0 else 0

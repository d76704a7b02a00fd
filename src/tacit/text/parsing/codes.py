"""Trees as codes: the symbols of a binary tree in preorder, and forests of one tree per code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.text.parsing.brackets import Node
from tacit.text.parsing.forests import Forest
from tacit.text.parsing.grammar import JOIN, PARENT, PART, TAG, Binary, Grammar


def encode_tree(tree: Binary, numbers: Mapping[str, int]) -> list[int]:
    """The symbols of a binary tree in preorder, ``2 · symbol`` and one more for a leaf; −1 for one that is unknown."""
    code, todo = [], [tree]
    while todo:
        node = todo.pop()
        number = numbers.get(node.symbol, -1)
        code.append(-1 if number < 0 else 2 * number + (not node.children))
        todo += reversed(node.children)
    return code


def decode_tree(code: Sequence[int], symbols: Sequence[str], words: Sequence[str], tags: Sequence[str]) -> Node:
    """The tree of symbols in preorder: chains unfolded, parts given to their parents.

    >>> node = decode_tree([2, 1, 1], ["/DT", "NP"], ["the", "old"], ["DT", "DT"])
    >>> node.label, [child.word for child in node.children]
    ('NP', ['the', 'old'])
    """
    stack: list[tuple[list[str], list[list[Node]]]] = []
    done: list[Node] = []
    position = 0
    for value in code:
        symbol, is_leaf = symbols[value >> 1], bool(value & 1)
        chain = [] if symbol.startswith((PART, TAG)) else symbol.split(PARENT)[0].split(JOIN)
        if not is_leaf:
            stack.append((chain, []))
            continue
        done = [Node(tags[position], (), words[position])]
        position += 1
        for label in reversed(chain):
            done = [Node(label, tuple(done))]
        while stack:
            stack[-1][1].append(done)
            if len(stack[-1][1]) < 2:
                break
            chain, both = stack.pop()
            done = [node for nodes in both for node in nodes]
            for label in reversed(chain):
                done = [Node(label, tuple(done))]
    return done[0] if len(done) == 1 else Node("ROOT", tuple(done))


@kernel
def unfold_codes(
    code: Array,
    offsets: Array,
    tags: Array,
    n_states: int,
    glue: int,
    rule_keys: Array,
    rows: Array,
    leaf_keys: Array,
    n_symbols: int,
    n_tags: int,
    forest: Forest,
    states: Array,
    stack: Array,
) -> int:
    """Fill the forests of codes, one tree each; −1, or the first sentence whose code is not a tree of its words.

    ``offsets`` cut the code; the words of a sentence of length m begin at ``(offsets + sentence) / 2`` for codes of
    2m − 1 integers. Nodes are in the reverse of preorder, so that children come before parents.
    """
    _, symbol, first, last, leaf, edges, left, right, rule, is_top = forest
    edges[0] = 0
    n_edges = 0
    for s in range(offsets.size - 1):
        start, size = offsets[s], offsets[s + 1] - offsets[s]
        word = (offsets[s + 1] + s + 1) // 2  # words end here
        n = (size + 1) // 2
        depth = 0
        position = n
        for k in range(size - 1, -1, -1):
            value = code[start + k]
            at = start + size - 1 - k
            number = value >> 1
            own = number // n_states
            symbol[at], states[at], is_top[at] = own, number % n_states, k == 0
            if value & 1:
                if position == 0:
                    return s
                position -= 1
                key = own * n_tags + tags[word - n + position]
                p = np.searchsorted(leaf_keys, key)
                if p == leaf_keys.size or leaf_keys[p] != key:
                    return s
                first[at], last[at], leaf[at] = position, position + 1, p
            else:
                if depth < 2:
                    return s
                a, b = stack[depth - 1], stack[depth - 2]
                depth -= 2
                key = (own * n_symbols + symbol[start + a]) * n_symbols + symbol[start + b]
                p = np.searchsorted(rule_keys, key)
                if own == glue:
                    rule[n_edges] = -1
                elif p == rule_keys.size or rule_keys[p] != key:
                    return s
                else:
                    rule[n_edges] = rows[p]
                first[at], last[at], leaf[at] = first[start + a], last[start + b], -1
                left[n_edges], right[n_edges] = a, b
                n_edges += 1
            stack[depth] = at - start
            depth += 1
            edges[at + 1] = n_edges
        if depth != 1 or position != 0:
            return s
    return -1


def forest_of_codes(
    code: Array, offsets: Array, tags: Array, n_states: int, grammar: Grammar
) -> tuple[Forest, Array, int]:
    """Forests of one tree per sentence, the states of their nodes, and the first bad sentence or −1."""
    total, n = int(offsets[-1]), offsets.size - 1
    nodes: Any = [np.empty(total, dtype=np.int32) for _ in range(4)]
    pairs: Any = [np.empty((total - n) // 2, dtype=np.int32) for _ in range(3)]
    edges, tops = np.empty(total + 1, dtype=np.int64), np.empty(total, dtype=np.bool_)
    parts: Any = offsets - offsets[0], *nodes, edges, *pairs, tops
    forest = Forest(*parts)
    n_symbols, n_tags = grammar.n_symbols, max(grammar.tags.size, 1)
    rules = grammar.rules.astype(np.int64)
    rule_keys = (rules[:, 0] * n_symbols + rules[:, 1]) * n_symbols + rules[:, 2]
    leaf_keys = grammar.leaves[:, 0].astype(np.int64) * n_tags + grammar.leaves[:, 1]
    states, stack = np.empty(total, dtype=np.int64), np.empty(total + 2, dtype=np.int64)
    given = tags, n_states, n_symbols - 1, rule_keys, grammar.rows, leaf_keys, n_symbols, n_tags
    bad = unfold_codes(code, offsets, *given, forest, states, stack)
    return forest, states, int(bad)

"""Binary grammars read from trees: rules of symbols, and trees as codes in preorder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.text.parsing.brackets import Node

GLUE = "@@"
"""The symbol above fragments, where a sentence cannot be derived."""

UNSEEN = 0.01
"""How often a longer rule counts that was not seen, but is made of what was."""

JOIN, PARENT, BEFORE, PART, TAG = "+", "^", "|", "@", "/"
"""Marks in names of symbols: unary chains, ancestors, siblings before, a part of a constituent, a tag."""


class Binary(NamedTuple):
    """A node of a binary tree: two children, or the position of a word."""

    symbol: str
    children: tuple[Binary, ...]
    position: int


def binarise(node: Node, vertical: int, horizontal: int) -> Binary:
    """The binary tree of a tree.

    Unary chains become one symbol ("S+VP"). Nodes of more than two children get parts ("@NP"), which take the children
    off from the left. Symbols are followed by ``vertical - 1`` ancestors, and those of parts by the last ``horizontal``
    siblings (Klein & Manning 2003).

    >>> from tacit.text.parsing.brackets import parse_tree
    >>> tree = parse_tree("(NP (DT the) (JJ old) (NN dog))")
    >>> binarise(tree, 1, 1).children[1].symbol
    '@NP|/DT'
    """
    position = 0

    def visit(node: Node, above: tuple[str, ...]) -> Binary:
        nonlocal position
        chain: list[str] = []
        while node.word is None and len(node.children) == 1:
            chain.append(node.label)
            node = node.children[0]
        if node.word is not None:
            position += 1
            symbol = _annotate(JOIN.join(chain), above) if chain else TAG + node.label
            return Binary(symbol, (), position - 1)
        chain.append(node.label)
        ancestors = (node.label, *above)[: max(vertical - 1, 0)]
        children = [visit(child, ancestors) for child in node.children]
        right, base = children[-1], PART + _annotate(node.label, above)
        for k in range(len(children) - 2, 0, -1):
            before = [_plain(child.symbol) for child in children[max(0, k - horizontal) : k]]
            right = Binary(BEFORE.join([base, *before]), (children[k], right), -1)
        return Binary(_annotate(JOIN.join(chain), above), (children[0], right), -1)

    return visit(node, ())


def _annotate(name: str, above: tuple[str, ...]) -> str:
    return PARENT.join([name, *above])


def _plain(symbol: str) -> str:
    """The name of a sibling: the last label of its chain, or its tag."""
    return symbol if symbol.startswith(TAG) else symbol.split(PARENT)[0].split(JOIN)[-1]


def part_name(symbol: str, before: Sequence[str]) -> str:
    """The part of a symbol, or of another part of it, that has these siblings before it."""
    base = symbol.split(BEFORE)[0]
    if not symbol.startswith(PART):
        name, *above = base.split(PARENT)
        base = PART + _annotate(name.split(JOIN)[-1], tuple(above))
    return BEFORE.join([base, *before])


def coarse_name(symbol: str) -> str:
    """A symbol without ancestors and siblings."""
    if symbol == GLUE or symbol.startswith(TAG):
        return symbol
    return symbol.split(BEFORE)[0].split(PARENT)[0]


class Grammar(NamedTuple):
    """A grammar with a coarse form of itself, whose rules have probabilities.

    Attributes
    ----------
    symbols : names, sorted; `GLUE` last
    rules : (n, 3) parent, left and right symbol, sorted
    is_seen : which of the rules were seen; the others are for sentences that those do not derive
    tags : names of tags
    leaves : (n, 2) symbol and tag of what may be above a word, sorted
    tops : symbols that trees may have as their root
    coarse : the coarse symbol of every symbol
    coarse_symbols, coarse_rules, coarse_seen, coarse_leaves : the same for the coarse grammar
    rule_logs, leaf_logs, top_logs : logarithms of their relative frequencies in the coarse grammar, of
        `coarse_rules`, `coarse_leaves` and of all coarse symbols as roots
    scale : minus the mean logarithm per word
    fine_logs : of the rows of rules, `leaves` and all symbols as roots, one after the other: the plain PCFG
    """

    symbols: Array
    rules: Array
    is_seen: Array
    tags: Array
    leaves: Array
    tops: Array
    coarse: Array
    coarse_symbols: Array
    coarse_rules: Array
    coarse_seen: Array
    coarse_leaves: Array
    rule_logs: Array
    leaf_logs: Array
    top_logs: Array
    scale: float
    fine_logs: Array

    @property
    def n_symbols(self) -> int:
        """All symbols, `GLUE` too."""
        return int(self.symbols.size)

    @property
    def rows(self) -> Array:
        """Where the weights of every rule are: all that were not seen share the last row."""
        return np.where(self.is_seen, np.cumsum(self.is_seen) - 1, self.n_rows - 1)

    @property
    def n_rows(self) -> int:
        """Rules that were seen, and one row for all others."""
        return int(np.count_nonzero(self.is_seen)) + 1


class _Counts:
    """How often rules, leaves and roots occur."""

    def __init__(self) -> None:
        self.rules: Counter[tuple[str, str, str]] = Counter()
        self.leaves: Counter[tuple[str, str]] = Counter()
        self.tops: Counter[str] = Counter()
        self.symbols: Counter[str] = Counter()

    def add_unseen(self, rule: tuple[str, str, str]) -> None:
        """Let a rule have a small count if it has none."""
        if rule not in self.rules:
            self.rules[rule] = UNSEEN  # type: ignore[assignment]
            self.symbols[rule[0]] += UNSEEN  # type: ignore[assignment]

    def logs(self, rules: list[Any], leaves: list[Any], names: list[str]) -> tuple[Array, Array, Array]:
        """Logarithms of relative frequencies; −inf for what never occurs."""
        of = self.symbols
        rule = [np.log(self.rules[one] / of[one[0]]) for one in rules]
        leaf = [np.log(self.leaves[one] / of[one[0]]) for one in leaves]
        n = sum(self.tops.values())
        with np.errstate(divide="ignore"):
            top = np.log(np.array([self.tops[name] / n for name in names]))
        return np.array(rule), np.array(leaf), top


def longer_rules(rules: Iterable[tuple[str, str, str]], horizontal: int) -> set[tuple[str, str, str]]:
    """Rules by which a node may repeat a child or, with parts that know no siblings, have more children in any order.

    >>> sorted(longer_rules([("NP", "/DT", "/NN")], 0))
    [('@NP', '/DT', '/NN'), ('@NP', '/DT', '@NP'), ('NP', '/DT', '/NN'), ('NP', '/DT', '@NP')]
    """
    found: set[tuple[str, str, str]] = set()
    for parent, left, right in rules:
        part = ""
        while part != parent:
            parent = part or parent
            before = [*parent.split(BEFORE)[1:], _plain(left)]
            part = part_name(parent, before[max(len(before) - horizontal, 0) :])
            found.add((parent, left, part))
            if not right.startswith(PART):
                found.add((parent, left, right))
    return found


def read_grammar(
    trees: Sequence[Binary], tags: Sequence[Sequence[str]], is_whole: Sequence[bool], every: set[str], horizontal: int
) -> Grammar:
    """The grammar of binary trees and parts of trees, with the tags of their words, and of longer ones: see
    `longer_rules`. ``every`` has all tags, of words outside these trees, too."""
    fine, coarse = _Counts(), _Counts()
    for tree, own, is_root in zip(trees, tags, is_whole, strict=True):
        fine.tops[tree.symbol] += is_root
        coarse.tops[coarse_name(tree.symbol)] += is_root
        todo = [tree]
        while todo:
            node = todo.pop()
            names = node.symbol, *(child.symbol for child in node.children)
            plain = tuple(map(coarse_name, names))
            fine.symbols[names[0]] += 1
            coarse.symbols[plain[0]] += 1
            if node.children:
                fine.rules[names] += 1  # type: ignore[index]
                coarse.rules[plain] += 1  # type: ignore[index]
                todo += node.children
            else:
                fine.leaves[names[0], own[node.position]] += 1
                coarse.leaves[plain[0], own[node.position]] += 1
    for rule in sorted(longer_rules(fine.rules, horizontal)):
        fine.add_unseen(rule)
        coarse.add_unseen(tuple(map(coarse_name, rule)))  # type: ignore[arg-type]
    for tag in every - {tag for _, tag in fine.leaves}:
        for counts in (fine, coarse):
            counts.leaves[TAG + tag, tag] += 1
            counts.symbols[TAG + tag] += 1
    every_tag = sorted(every)
    parts: list[Any] = []
    for counts in (fine, coarse):
        listed_symbols = [*sorted(counts.symbols), GLUE]
        number = {name: i for i, name in enumerate(listed_symbols)}
        tag_number = {tag: i for i, tag in enumerate(every_tag)}
        listed = sorted(counts.rules, key=lambda rule: [number[name] for name in rule])
        above = sorted(counts.leaves, key=lambda leaf: (number[leaf[0]], tag_number[leaf[1]]))
        table = np.array([[number[name] for name in rule] for rule in listed], dtype=np.int32).reshape(-1, 3)
        pairs = np.array([(number[name], tag_number[tag]) for name, tag in above], dtype=np.int32)
        is_seen = np.array([counts.rules[rule] >= 1 for rule in listed], dtype=np.bool_)
        logs = counts.logs(listed, above, listed_symbols)
        parts.append((listed_symbols, table, is_seen, pairs, logs, number))
    (symbols, rules, is_seen, leaves, logs, number), (names, plain_rules, plain_seen, plain_leaves, plain, codes) = (
        parts
    )
    unseen_log = np.mean(logs[0][~is_seen]) if not is_seen.all() else 0.0
    spent = sum(n * np.log(n / coarse.symbols[rule[0]]) for rule, n in coarse.rules.items())
    spent += sum(n * np.log(n / coarse.symbols[leaf[0]]) for leaf, n in coarse.leaves.items())
    return Grammar(
        symbols=np.array(symbols),
        rules=rules,
        is_seen=is_seen,
        tags=np.array(every_tag),
        leaves=leaves,
        tops=np.array(sorted(number[name] for name, n in fine.tops.items() if n), dtype=np.int32),
        coarse=np.array([codes[coarse_name(name)] for name in symbols], dtype=np.int32),
        coarse_symbols=np.array(names),
        coarse_rules=plain_rules,
        coarse_seen=plain_seen,
        coarse_leaves=plain_leaves,
        rule_logs=plain[0],
        leaf_logs=plain[1],
        top_logs=plain[2],
        scale=float(-spent / max(sum(coarse.leaves.values()), 1)),
        fine_logs=np.concatenate([logs[0][is_seen], [unseen_log], *logs[1:]]),
    )


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

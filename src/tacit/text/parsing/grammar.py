"""Binary grammars read from trees: rules of symbols, and trees as codes in preorder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import number, shorten
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


class _Tables(NamedTuple):
    """Symbols with their numbers, rules and leaves of one grammar, and logarithms of relative frequencies."""

    symbols: list[str]
    numbers: dict[str, int]
    rules: Array
    is_seen: Array
    leaves: Array
    rule_logs: Array
    leaf_logs: Array
    top_logs: Array
    scale: float


class _Counts:
    """How often rules, leaves and roots occur; ``rename`` makes a name that is counted from that of a symbol."""

    def __init__(self, rename: Callable[[str], str]) -> None:
        self.rename = rename
        self.rules: Counter[Any] = Counter()
        self.leaves: Counter[tuple[str, str]] = Counter()
        self.tops: Counter[str] = Counter()
        self.symbols: Counter[Any] = Counter()

    def add_tree(self, tree: Binary, tags: Sequence[str], is_root: bool) -> None:
        """Count what a tree has; it is a root's, or a part of another tree."""
        self.tops[self.rename(tree.symbol)] += is_root
        todo = [tree]
        while todo:
            node = todo.pop()
            names = tuple(self.rename(one.symbol) for one in (node, *node.children))
            self.symbols[names[0]] += 1
            if node.children:
                self.rules[names] += 1
                todo += node.children
            else:
                self.leaves[names[0], tags[node.position]] += 1

    def add_unseen(self, rules: Iterable[tuple[str, str, str]], tags: Iterable[str]) -> None:
        """Let rules have a small count if they have none, and tags that of one word."""
        for rule in rules:
            names = tuple(map(self.rename, rule))
            if names not in self.rules:
                self.rules[names] = UNSEEN  # type: ignore[assignment]
                self.symbols[names[0]] += UNSEEN  # type: ignore[assignment]
        for tag in tags:
            self.leaves[TAG + tag, tag] += 1
            self.symbols[TAG + tag] += 1

    def tables(self, tags: Sequence[str]) -> _Tables:
        """All of it as tables, with logarithms of relative frequencies: −inf for what never occurs."""
        symbols, of = [*sorted(self.symbols), GLUE], self.symbols
        numbers, tag_numbers = ({name: i for i, name in enumerate(names)} for names in (symbols, tags))
        rules = sorted(self.rules, key=lambda rule: [numbers[name] for name in rule])
        leaves = sorted(self.leaves, key=lambda leaf: (numbers[leaf[0]], tag_numbers[leaf[1]]))
        n, n_words = sum(self.tops.values()), max(sum(self.leaves.values()), 1)
        with np.errstate(divide="ignore"):
            top_logs = np.log(np.array([self.tops[name] / n for name in symbols]))
        spent = sum(n * np.log(n / of[one[0]]) for counts in (self.rules, self.leaves) for one, n in counts.items())
        return _Tables(
            symbols,
            numbers,
            np.array([[numbers[name] for name in rule] for rule in rules], dtype=np.int32).reshape(-1, 3),
            np.array([self.rules[rule] >= 1 for rule in rules], dtype=np.bool_),
            np.array([(numbers[name], tag_numbers[tag]) for name, tag in leaves], dtype=np.int32),
            np.array([np.log(self.rules[rule] / of[rule[0]]) for rule in rules]),
            np.array([np.log(self.leaves[leaf] / of[leaf[0]]) for leaf in leaves]),
            top_logs,
            float(-spent / n_words),
        )


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
    counts = _Counts(str), _Counts(coarse_name)
    for own in counts:
        for tree, tree_tags, is_root in zip(trees, tags, is_whole, strict=True):
            own.add_tree(tree, tree_tags, is_root)
    longer, seen_tags = sorted(longer_rules(counts[0].rules, horizontal)), {tag for _, tag in counts[0].leaves}
    every_tag = sorted(every)
    for own in counts:
        own.add_unseen(longer, every - seen_tags)
    fine, coarse = (own.tables(every_tag) for own in counts)
    unseen_log = np.mean(fine.rule_logs[~fine.is_seen]) if not fine.is_seen.all() else 0.0
    return Grammar(
        symbols=np.array(fine.symbols),
        rules=fine.rules,
        is_seen=fine.is_seen,
        tags=np.array(every_tag),
        leaves=fine.leaves,
        tops=np.flatnonzero(np.isfinite(fine.top_logs)).astype(np.int32),
        coarse=np.array([coarse.numbers[coarse_name(name)] for name in fine.symbols], dtype=np.int32),
        coarse_symbols=np.array(coarse.symbols),
        coarse_rules=coarse.rules,
        coarse_seen=coarse.is_seen,
        coarse_leaves=coarse.leaves,
        rule_logs=coarse.rule_logs,
        leaf_logs=coarse.leaf_logs,
        top_logs=coarse.top_logs,
        scale=coarse.scale,
        fine_logs=np.concatenate([fine.rule_logs[fine.is_seen], [unseen_log], fine.leaf_logs, fine.top_logs]),
    )


def check_grammar(grammar: Grammar) -> None:
    """Raise an error if a table of a grammar points outside another: kernels go where they say."""
    number("scale", grammar.scale, "a finite number")
    for name in ("symbols", "tags", "coarse_symbols"):
        _check_vector(grammar, name, "U")
    n, m, n_tags = grammar.symbols.size, grammar.coarse_symbols.size, grammar.tags.size
    limits = {
        "rules": (n, n, n),
        "coarse_rules": (m, m, m),
        "leaves": (n, n_tags),
        "coarse_leaves": (m, n_tags),
    }
    for name, limit in limits.items():
        table = getattr(grammar, name)
        is_right = is_table(table, 2, "i") and table.shape[1] == len(limit)
        if not is_right or (table < 0).any() or (table >= limit).any():
            raise ValueError(f"{name} of the schema must have {len(limit)} numbers per row, each below {max(limit)}")
    sizes: dict[str, tuple[str, int | None]] = {
        "is_seen": ("b", len(grammar.rules)),
        "coarse_seen": ("b", len(grammar.coarse_rules)),
        "coarse": ("i", n),
        "tops": ("i", None),
        "rule_logs": ("f", len(grammar.coarse_rules)),
        "leaf_logs": ("f", len(grammar.coarse_leaves)),
        "top_logs": ("f", m),
    }
    for name, (kind, size) in sizes.items():
        _check_vector(grammar, name, kind, size)
    _check_vector(grammar, "fine_logs", "f", grammar.n_rows + len(grammar.leaves) + n)
    for name, most in (("coarse", m), ("tops", n)):
        if (getattr(grammar, name) < 0).any() or (getattr(grammar, name) >= most).any():
            raise ValueError(f"{name} of the schema has a symbol that does not exist")


def _check_vector(grammar: Grammar, name: str, kind: str, size: int | None = None) -> None:
    """Refuse what is not a vector of this kind and size: floats are logarithms, maybe of 0."""
    values: Any = getattr(grammar, name)
    is_vector = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind == kind
    is_log = is_vector and (kind != "f" or (values.dtype == np.float64 and bool((values < np.inf).all())))
    if not is_log or size not in (None, values.size):
        raise ValueError(f"{name} of the schema must be a vector of {size or kind}, got {shorten(values)}")

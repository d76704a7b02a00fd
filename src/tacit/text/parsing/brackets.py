"""Bracketed trees: read and written as text, cut into labelled spans."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tacit.data.parameters import shorten
from tacit.data.reading import MAX_BYTES, find_file, quote
from tacit.data.text_files import TextReader

ROOT = "ROOT"
"""The label of the outermost bracket, which is not a category."""
ROOTS = frozenset(["", ROOT, "TOP"])
"""Labels of an outermost bracket that is left out."""
EMPTY = "-NONE-"
"""The tag of elements without a word, which are removed."""
MAX_DEPTH = 400
"""Brackets inside each other."""
MAX_WORDS = 250
"""Words per sentence: a chart has a cell for each pair of them."""
_PIECES = re.compile(r"[()]|[^\s()]+")
_ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


class Node(NamedTuple):
    """A node of a tree: a category and its children, or a tag and its word."""

    label: str
    children: tuple[Node, ...] = ()
    word: str | None = None


def escape(text: str) -> str:
    """A word or tag as it is written between brackets, where "(" is "-LRB-".

    >>> escape("("), escape("and")
    ('-LRB-', 'and')
    """
    return re.sub(r"[()]", lambda found: _ESCAPES[found[0]], text)


def clean_label(label: str) -> str:
    """A category without its functions and indices: "NP-SBJ=2" is "NP"; "-LRB-" stays."""
    return label if re.fullmatch("-[^-=|^+@/]+-", label) else re.split("[-=|^+@/]", label)[0]


def split_brackets(text: str, name: str) -> Iterator[str]:
    """The text of every outermost bracket."""
    depth, first = 0, 0
    for found in _PIECES.finditer(text):
        piece = found[0]
        if piece == "(":
            if depth == 0:
                first = found.start()
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"{name} has more than {MAX_DEPTH} brackets inside each other; simplify the tree")
        elif depth == 0:
            line = text.count("\n", 0, found.start()) + 1
            what = 'has a ")" without "("' if piece == ")" else f"has {shorten(piece)} outside brackets"
            raise ValueError(f"{name}, line {line}, {what}; write one bracketed tree after the other")
        elif piece == ")":
            depth -= 1
            if depth == 0:
                yield text[first : found.end()]
    if depth:
        line = text.count("\n", 0, first) + 1
        raise ValueError(f'{name}: the tree that begins in line {line} lacks {depth} ")"; close its brackets')


def parse_tree(text: Any, name: str = "the tree") -> Node:
    """The tree of a bracketed text, without outermost bracket, functions of labels and empty elements.

    >>> parse_tree("(ROOT (S (NP-SBJ (PRP it)) (VP (VBZ rains))))").children[0]
    Node(label='NP', children=(Node(label='PRP', children=(), word='it'),), word=None)
    """
    if not isinstance(text, str):
        raise ValueError(f"{name} must be bracketed text, such as '(S (NP (PRP it)) (VBZ rains))', got {shorten(text)}")
    whole = list(split_brackets(text, name))
    if len(whole) != 1:
        raise ValueError(f"{name} must be one bracketed tree, got {len(whole)}: {shorten(text)}")
    stack: list[list[Any]] = [[]]
    for piece in _PIECES.findall(whole[0]):
        if piece == "(":
            stack.append([])
        elif piece == ")":
            parts = stack.pop()
            stack[-1].append(_make_node(parts, name))
        else:
            stack[-1].append(piece)
    node: Node | None = stack[0][0]
    if node is None:
        raise ValueError(f"{name} has no words: {shorten(text)}; leave it out")
    while node.label in ROOTS and len(node.children) == 1:
        node = node.children[0]
    n_words = count_words(node)
    if n_words > MAX_WORDS:
        raise ValueError(f"{name} has {n_words} words, and at most {MAX_WORDS} can be parsed; split the sentence")
    return node


def _make_node(parts: list[Any], name: str) -> Node | None:
    """A node from what is between two brackets; None for an element without words."""
    label = parts[0] if parts and isinstance(parts[0], str) else ""
    rest = parts[1:] if parts and isinstance(parts[0], str) else parts
    if any(isinstance(part, str) for part in rest):
        if len(rest) != 1 or not label:
            found = " ".join(part if isinstance(part, str) else "(…)" for part in parts)
            raise ValueError(f"{name} has ({shorten(found)}), where a tag and one word must be; write (TAG word)")
        return None if label == EMPTY else Node(label, (), rest[0])
    if not rest:
        raise ValueError(f"{name} has ({label}), a bracket without a word; write (TAG word)")
    children = tuple(part for part in rest if part is not None)
    if label and not clean_label(label):
        raise ValueError(f"{name} has the label {shorten(label)}, which does not begin with a category; rename it")
    return Node(clean_label(label) or ROOT, children) if children else None


def count_words(node: Node) -> int:
    """The number of leaves."""
    return 1 if node.word is not None else sum(map(count_words, node.children))


def list_leaves(node: Node) -> list[Node]:
    """The leaves, from left to right."""
    return [node] if node.word is not None else [leaf for child in node.children for leaf in list_leaves(child)]


def format_tree(node: Node) -> str:
    """The tree in one line, in one outermost bracket.

    >>> format_tree(parse_tree("(S (NP (PRP it)) (VP (VBZ rains)))"))
    '(ROOT (S (NP (PRP it)) (VP (VBZ rains))))'
    """

    def write(node: Node) -> str:
        if node.word is not None:
            return f"({escape(node.label)} {escape(node.word)})"
        return f"({node.label} {' '.join(map(write, node.children))})"

    return write(node) if node.label == ROOT else f"({ROOT} {write(node)})"


def list_spans(node: Node, first: int = 0) -> tuple[list[tuple[str, int, int]], int]:
    """Labelled spans of all categories, and where the node ends."""
    if node.word is not None:
        return [], first + 1
    spans: list[tuple[str, int, int]] = []
    end = first
    for child in node.children:
        own, end = list_spans(child, end)
        spans += own
    return [(node.label, first, end), *spans], end


def read_trees(path: str | os.PathLike[str], *, max_bytes: Any = MAX_BYTES) -> list[str]:
    """The trees of a bracketed file (Penn treebank), one line of text each; names that end in .gz are unpacked.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trees.ptb")
    ...     _ = path.write_text("(ROOT (S (NP (PRP it))\\n  (VP (VBZ rains))))")
    ...     read_trees(path)
    ['(ROOT (S (NP (PRP it)) (VP (VBZ rains))))']
    """
    file = find_file(path, "a file of bracketed trees")
    text = "\n".join(line for _, line in TextReader(file, max_bytes=max_bytes).lines())
    trees = list(split_brackets(text, quote(file)))
    if not trees:
        raise ValueError(f"{quote(file)} has no trees; write one bracketed tree after the other")
    return [format_tree(parse_tree(tree, f"{quote(file)}, tree {i}")) for i, tree in enumerate(trees, 1)]

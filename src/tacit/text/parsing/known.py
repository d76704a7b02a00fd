"""What is known of trees: all of one, or some brackets and categories; and states of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, even_table
from tacit.text.parsing.brackets import Node, count_words, list_leaves, parse_tree
from tacit.text.parsing.grammar import GLUE, JOIN, PART, TAG

UNKNOWN = "?"
"""The end of the label of a bracket inside which others are not known; alone, the category is not known either."""


def is_complete(node: Node) -> bool:
    """Whether everything below a node is known.

    >>> is_complete(parse_tree("(S (NP? (DT the) (JJ old) (NN dog)) (VBZ barks))"))
    False
    """
    return not node.label.endswith(UNKNOWN) and all(map(is_complete, node.children)) if node.children else True


def complete_parts(node: Node) -> list[Node]:
    """The largest parts of a tree of which everything is known, without single words."""
    if not node.children or is_complete(node):
        return [node] if node.children else []
    return [part for child in node.children for part in complete_parts(child)]


class KnownPart(NamedTuple):
    """What is known of one tree.

    Attributes
    ----------
    spans : category, first word and last word (exclusive) of the brackets with a category
    chains : by span, the known categories from the outermost inwards
    is_possible : [first, last] whether a span crosses no known bracket
    is_free : [first, last] whether it may also have categories that are not known
    """

    spans: list[tuple[str, int, int]]
    chains: dict[tuple[int, int], list[str]]
    is_possible: Array
    is_free: Array

    def mask(self, names: Sequence[str]) -> Array:
        """[first, last, symbol] what every span may be, for coarse symbols of these names.

        In a binary tree no node of which crosses a span, that span is a node: nothing else makes it one.
        """
        chains = [None if name == GLUE or name.startswith(PART) else _chain(name) for name in names]
        is_part = np.array([name.startswith(PART) and name != GLUE for name in names])
        is_tag = np.array([name.startswith(TAG) for name in names])
        is_category = ~is_part & ~is_tag & (np.array(names) != GLUE)
        keep = self.is_possible[:, :, None] & (is_part | (self.is_free[:, :, None] & is_category))
        at = np.arange(len(keep))
        keep[at, at + 1] = is_tag | (self.is_free[at, at + 1][:, None] & is_category)
        for (first, last), known in self.chains.items():
            free = self.is_free[first, last]
            fits = [own is not None and (_has_in_order(own, known) if free else own == known) for own in chains]
            keep[first, last] = fits
        return np.asarray(keep)


def read_known(tree: Node) -> KnownPart:
    """What a tree with unknown parts says.

    >>> known = read_known(parse_tree("(? (NP (DT the) (NN dog)) (VBZ barks))"))
    >>> known.spans, bool(known.is_possible[1, 3]), bool(known.is_free[0, 3])
    ([('NP', 0, 2)], False, True)
    """
    n = count_words(tree)
    known = KnownPart([], {}, np.ones((n, n + 1), dtype=np.bool_), np.ones((n, n + 1), dtype=np.bool_))

    def visit(node: Node, first: int) -> int:
        last = first + count_words(node)
        if node.word is not None:
            return last
        label = node.label.removesuffix(UNKNOWN)
        is_open = label != node.label
        was_free = known.is_free[first, last]
        known.is_free[first:last, first + 1 : last + 1] = is_open
        known.is_free[first, last] = is_open or was_free
        chain = known.chains.setdefault((first, last), [])
        if label:
            chain.append(label)
            known.spans.append((label, first, last))
        known.is_possible[:first, first + 1 : last] = False
        known.is_possible[first + 1 : last, last + 1 :] = False
        at = first
        for child in node.children:
            at = visit(child, at)
        return last

    known.is_free[0, n] = tree.label.endswith(UNKNOWN)
    visit(tree, 0)
    known.is_free[:] &= known.is_possible
    return known


def _chain(name: str) -> list[str]:
    return [] if name.startswith(TAG) else name.split(JOIN)


def _has_in_order(chain: Sequence[str], wanted: Sequence[str]) -> bool:
    rest = iter(chain)
    return all(label in rest for label in wanted)


def read_true_trees(y: Any, words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> list[Node]:
    """The trees of labels, compared with the words that they are to have."""
    labels = list(y)
    if len(labels) != len(words):
        raise ValueError(f"y must have one tree per sentence ({len(words)}), got {len(labels)}")
    trees = [parse_tree(text, f"y[{i}]") for i, text in enumerate(labels)]
    for i, tree in enumerate(trees):
        leaves = list_leaves(tree)
        if len(leaves) != len(words[i]):
            raise ValueError(f"y[{i}] has {len(leaves)} words, and X[{i}] has {len(words[i])}; give the same ones")
        for k, leaf in enumerate(leaves):
            if leaf.label != tags[i][k]:
                raise ValueError(
                    f"y[{i}] has the tag {leaf.label} at word {k}, and X[{i}] has {tags[i][k]}; give the same tags"
                )
    return trees


def read_states(hidden: Any, starts: Array, n_states: int) -> Array:
    """Known states, one per node, −1 where unknown; None stands for a sentence without any."""
    given = entries("hidden", hidden, "a list of the states of every sentence, None if unknown")
    if len(given) != starts.size - 1:
        raise ValueError(f"hidden must have one entry per sentence ({starts.size - 1}), got {len(given)}")
    out = np.full(int(starts[-1]), -1, dtype=np.int64)
    for i, own in enumerate(given):
        if own is None:
            continue
        values, size = even_table(f"hidden[{i}]", own), int(starts[i + 1] - starts[i])
        is_whole = values.shape == (size,) and values.dtype.kind in "iu"
        if not is_whole or (values < -1).any() or (values >= n_states).any():
            raise ValueError(
                f"hidden[{i}] must have {size} states from 0 to {n_states - 1}, one per node in preorder, -1 if unknown"
            )
        out[starts[i] : starts[i + 1]] = values
    return out

"""Labelled precision, recall and F1 of trees, by the rules of evalb (Sekine & Collins 1997)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries
from tacit.text.parsing.brackets import ROOT, Node, list_leaves, list_spans, parse_tree

PUNCTUATION = frozenset([",", ".", ":", "``", "''"])
"""Tags of words that are left out before spans are compared."""

SAME = {"PRT": "ADVP"}
"""Labels that count as others."""


class SpanScore(NamedTuple):
    """How many labelled spans of a category are true, predicted, and both."""

    label: str
    true: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """Share of the predicted spans that are right; NaN without any."""
        return self.right / self.predicted if self.predicted else float("nan")

    @property
    def recall(self) -> float:
        """Share of the true spans that are found; NaN without any."""
        return self.right / self.true if self.true else float("nan")

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN where there are neither true nor predicted spans."""
        both = self.true + self.predicted
        return 2 * self.right / both if both else float("nan")


class ParseScores(NamedTuple):
    """Quality of trees.

    Attributes
    ----------
    overall : all spans
    by_label : by category, the most frequent first
    exact : share of sentences whose spans are all right
    counts : (sentences, 3) true, predicted and right spans of every sentence
    """

    overall: SpanScore
    by_label: list[SpanScore]
    exact: float
    counts: Array

    def sentence_f1(self) -> Array:
        """F1 of every sentence; 1 where it has no spans at all."""
        both = self.counts[:, 0] + self.counts[:, 1]
        return np.where(both > 0, 2 * self.counts[:, 2] / np.maximum(both, 1), 1.0)


def parse_scores(true: Any, predicted: Any) -> ParseScores:
    """Compare predicted trees with true ones: labelled spans without punctuation and without the outermost bracket.

    The tags of the true trees say what punctuation is.

    >>> true = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks) (. !)))"]
    >>> parse_scores(true, ["(S (NP (DT the) (NN dog)) (VBZ barks) (. !))"]).overall
    SpanScore(label='all', true=3, predicted=2, right=2)
    """
    pairs = [_read(name, given) for name, given in (("true", true), ("predicted", predicted))]
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"predicted must have one tree per true one ({len(pairs[0])}), got {len(pairs[1])}")
    sums: dict[str, Array] = {}
    counts = np.zeros((len(pairs[0]), 3), dtype=np.int64)
    for i, (one, two) in enumerate(zip(*pairs, strict=True)):
        sizes = [len(list_leaves(tree)) for tree in (one, two)]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"predicted[{i}] has {sizes[1]} words, and true[{i}] has {sizes[0]}; compare the same ones"
            )
        is_word = [leaf.label not in PUNCTUATION for leaf in list_leaves(one)]
        spans = _spans(one, is_word), _spans(two, is_word)
        for k, own in enumerate((*spans, spans[0] & spans[1])):
            for (label, _, _), n in own.items():
                sums.setdefault(label, np.zeros(3, dtype=np.int64))[k] += n
                counts[i, k] += n
    by_label = [SpanScore(label, *map(int, own)) for label, own in sums.items()]
    by_label.sort(key=lambda own: (-own.true, own.label))
    exact = float((counts == counts[:, :1]).all(axis=1).mean()) if len(counts) else float("nan")
    return ParseScores(SpanScore("all", *map(int, counts.sum(axis=0))), by_label, exact, counts)


def _read(name: str, given: Any) -> list[Node]:
    texts: Sequence[Any] = entries(name, given, "a list of bracketed trees")
    return [parse_tree(text, f"{name}[{i}]") for i, text in enumerate(texts)]


def _spans(tree: Node, is_word: Sequence[bool]) -> Counter[tuple[str, int, int]]:
    """Labelled spans in words that are not punctuation."""
    at = np.concatenate([[0], np.cumsum(is_word)]).tolist()
    spans = [(SAME.get(label, label), at[i], at[j]) for label, i, j in list_spans(tree)[0] if label != ROOT]
    return Counter(span for span in spans if span[1] < span[2])

"""Sentence pairs: reading, numbering of words, all word pairs, duplicates and folds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.parameters import entries, has_length, shorten
from tacit.text.alignment.links import MAX_WORDS

Corpus = Sequence[Sequence[str]]
"""Sentences as sequences of words."""


def read_sentences(sentences: Any, name: str = "source") -> list[list[str]]:
    """Read sentences as lists of words, from lists of words or lines of text.

    >>> read_sentences(["la maison", ["the", "house"]])
    [['la', 'maison'], ['the', 'house']]
    """
    found = []
    for i, sentence in enumerate(entries(name, sentences, "a list of sentences: lines of text or lists of words")):
        words = sentence.split() if isinstance(sentence, str) else sentence
        if isinstance(words, bytes | dict) or not has_length(words) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{name}[{i}] must be a line of text or a list of words, got {shorten(sentence)}")
        if len(words) > MAX_WORDS:
            raise ValueError(f"{name}[{i}] has {len(words)} words, but the limit is {MAX_WORDS}; split it")
        found.append([str(word) for word in words])
    return found


def read_both(source: Any, target: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Two lists of sentences of equal length, some of which may be empty."""
    sources, targets = read_sentences(source, "source"), read_sentences(target, "target")
    if len(sources) != len(targets):
        raise ValueError(f"source has {len(sources)} sentences, but target has {len(targets)}; give as many of each")
    return sources, targets


def read_pairs_of_sentences(source: Any, target: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Two lists of sentences of equal length, none of them empty."""
    sources, targets = read_both(source, target)
    if not sources:
        raise ValueError("source and target are empty; give at least one sentence pair")
    for name, sentences in (("source", sources), ("target", targets)):
        if [] in sentences:
            raise ValueError(f"{name}[{sentences.index([])}] is empty; drop this sentence pair")
    return sources, targets


def number_types(sentences: Corpus) -> dict[str, int]:
    """Number the different words in the order of first use; upper and lower case are the same."""
    types: dict[str, int] = {}
    for words in sentences:
        for word in words:
            types.setdefault(word.lower(), len(types))
    return types


def number_text(source: Corpus, target: Corpus, source_types: dict[str, int], target_types: dict[str, int]) -> Text:
    """Sentence pairs as numbers of their words."""
    parts = []
    for sentences, types in ((source, source_types), (target, target_types)):
        words = (types.get(word.lower(), -1) for sentence in sentences for word in sentence)
        parts += [np.fromiter(words, np.int64), np.concatenate([[0], np.cumsum([len(own) for own in sentences])])]
    return Text(*parts)


class Text(NamedTuple):
    """Sentence pairs as numbers of words, one sentence after the other, and where the sentences begin."""

    source: Array
    source_begins: Array
    target: Array
    target_begins: Array

    def swap(self) -> Text:
        """The same text with source and target swapped."""
        return Text(self.target, self.target_begins, self.source, self.source_begins)

    def where(self, is_included: Array) -> Text:
        """The sentence pairs for which this holds."""
        parts = []
        for words, begins in (self[:2], self[2:]):
            sizes = np.diff(begins)
            parts += [words[np.repeat(is_included, sizes)], np.concatenate([[0], np.cumsum(sizes[is_included])])]
        return Text(*parts)


def split_blocks(sizes: Array, most: int) -> list[tuple[int, int]]:
    """Cut rows of these sizes into blocks of about ``most`` together, as first and last row (not included).

    >>> split_blocks(np.array([3, 3, 3, 9]), 6)
    [(0, 2), (2, 3), (3, 4)]
    """
    numbers = (np.cumsum(sizes) - 1) // most
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [sizes.size]]).tolist()
    return list(itertools.pairwise(cuts))


class Cells(NamedTuple):
    """All word pairs of many sentence pairs, one after the other, source word after source word.

    Parameters
    ----------
    shapes : (n, 2) words of the two sentences
    bases : (n + 1,) where the word pairs of each sentence pair begin
    owner : the sentence pair of each word pair
    i, j : positions in the two sentences, from 0
    source, target : numbers of the words' types, −1 for a type that is not in the vocabulary
    """

    shapes: Array
    bases: Array
    owner: Array
    i: Array
    j: Array
    source: Array
    target: Array

    def columns(self) -> Array:
        """The number of the target token of every word pair, through all sentences."""
        return np.asarray((np.cumsum(self.shapes[:, 1]) - self.shapes[:, 1])[self.owner] + self.j)

    def rows(self) -> Array:
        """The number of the source token of every word pair, through all sentences."""
        return np.asarray((np.cumsum(self.shapes[:, 0]) - self.shapes[:, 0])[self.owner] + self.i)

    def gap(self) -> Array:
        """The distance of a word pair from the diagonal, as a share of the sentence."""
        lengths = self.shapes[self.owner]
        return np.asarray(np.abs((self.i + 0.5) / lengths[:, 0] - (self.j + 0.5) / lengths[:, 1]))


def lay_out(source: Corpus, target: Corpus, source_types: dict[str, int], target_types: dict[str, int]) -> Cells:
    """All word pairs of these sentence pairs."""
    shapes = np.array([(len(s), len(t)) for s, t in zip(source, target, strict=True)], dtype=np.int64)
    sizes = shapes.prod(axis=1)
    bases = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(shapes)), sizes)
    within = np.arange(bases[-1]) - bases[owner]
    i, j = np.divmod(within, shapes[owner, 1])
    flat = []
    for sentences, types, position, column in ((source, source_types, i, 0), (target, target_types, j, 1)):
        numbers = np.array([types.get(word.lower(), -1) for words in sentences for word in words], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(shapes[:, column])])
        flat.append(numbers[starts[owner] + position])
    return Cells(shapes, bases, owner, i, j, *flat)


def group_duplicates(source: Corpus, target: Corpus) -> Array:
    """Group sentence pairs; pairs that share a source or a target sentence are in one group.

    >>> group_duplicates([["a"], ["b"], ["a"]], [["x"], ["y"], ["z"]]).tolist()
    [0, 1, 0]
    """
    n = len(source)
    kinds: dict[tuple[int, str], int] = {}
    keys = [(side, " ".join(words).lower()) for side, text in enumerate((source, target)) for words in text]
    nodes = n + np.array([kinds.setdefault(key, len(kinds)) for key in keys], dtype=np.int64)
    size = n + len(kinds)
    edges = sparse.coo_array((np.ones(2 * n), (np.tile(np.arange(n), 2), nodes)), shape=(size, size))
    groups = sparse.csgraph.connected_components(edges.tocsr(), directed=False)[1][:n]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def deal_folds(groups: Array, folds: int, rng: np.random.Generator) -> Array:
    """Assign sentence pairs to folds of about equal size, without splitting a group."""
    order = rng.permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)
    fold_of_group = np.empty(order.size, dtype=np.int64)
    filled = np.zeros(min(folds, order.size))
    for group in order[np.argsort(-sizes[order], kind="stable")]:  # the largest first, so that folds stay even
        fold_of_group[group] = int(filled.argmin())
        filled[fold_of_group[group]] += sizes[group]
    return np.asarray(fold_of_group[groups])

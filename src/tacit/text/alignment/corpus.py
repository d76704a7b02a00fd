"""Sentence pairs as arrays: one entry for every pair of a source word and a target word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, is_list, shorten
from tacit.text.links import MAX_WORDS


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
        """A number for the target token of every word pair, and so for every column of every matrix."""
        starts = np.concatenate([[0], np.cumsum(self.shapes[:, 1])])
        return np.asarray(starts[self.owner] + self.j)

    def rows(self) -> Array:
        """The same for source tokens."""
        starts = np.concatenate([[0], np.cumsum(self.shapes[:, 0])])
        return np.asarray(starts[self.owner] + self.i)

    def gap(self) -> Array:
        """How far a word pair is from the diagonal, as a share of the sentence."""
        lengths = self.shapes[self.owner]
        return np.asarray(np.abs((self.i + 0.5) / lengths[:, 0] - (self.j + 0.5) / lengths[:, 1]))

    def matrices(self, values: Array) -> list[Array]:
        """One (I, J) table per sentence pair, from one number (or row) per word pair."""
        return [
            values[first:last].reshape(*shape, *values.shape[1:])
            for first, last, shape in zip(self.bases[:-1], self.bases[1:], self.shapes.tolist(), strict=True)
        ]


def read_sentences(sentences: Any, name: str = "source") -> list[list[str]]:
    """Lists of words, from lists of words or from lines of words between spaces.

    >>> read_sentences(["la maison", ["the", "house"]])
    [['la', 'maison'], ['the', 'house']]
    """
    if isinstance(sentences, str | bytes | dict) or not is_list(sentences):
        raise ValueError(f"{name} holds sentences: lines of text, or lists of words; got {shorten(sentences)}")
    found = []
    for i, sentence in enumerate(sentences):
        words = sentence.split() if isinstance(sentence, str) else sentence
        if isinstance(words, bytes | dict) or not has_length(words) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{name}[{i}] is {shorten(sentence)}; give a line of text, or a list of words")
        if len(words) > MAX_WORDS:
            raise ValueError(f"{name}[{i}] has {len(words)} words, {MAX_WORDS} are possible; cut it into sentences")
        found.append([str(word) for word in words])
    return found


def read_pairs_of_sentences(source: Any, target: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Two lists of sentences of equal length, none of them empty."""
    sources, targets = read_sentences(source, "source"), read_sentences(target, "target")
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} source and {len(targets)} target sentences; give as many of each")
    if not sources:
        raise ValueError("no sentences: there is nothing to align")
    for name, sentences in (("source", sources), ("target", targets)):
        empty = [i for i, words in enumerate(sentences) if not words]
        if empty:
            raise ValueError(f"{name}[{empty[0]}] has no words; drop this sentence pair")
    return sources, targets


def number_types(sentences: Sequence[Sequence[str]]) -> dict[str, int]:
    """A number for every type of word, in the order of first use; upper and lower case are one."""
    types: dict[str, int] = {}
    for words in sentences:
        for word in words:
            types.setdefault(word.lower(), len(types))
    return types


def lay_out(
    source: Sequence[Sequence[str]],
    target: Sequence[Sequence[str]],
    source_types: dict[str, int],
    target_types: dict[str, int],
) -> Cells:
    """All word pairs of these sentence pairs."""
    shapes = np.array([(len(s), len(t)) for s, t in zip(source, target, strict=True)], dtype=np.int64)
    sizes = shapes.prod(axis=1)
    bases = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(shapes)), sizes)
    within = np.arange(bases[-1]) - bases[owner]
    i, j = np.divmod(within, shapes[owner, 1])
    flat = []
    for sentences, types, place, column in ((source, source_types, i, 0), (target, target_types, j, 1)):
        numbers = np.array([types.get(word.lower(), -1) for words in sentences for word in words], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(shapes[:, column])])
        flat.append(numbers[starts[owner] + place])
    return Cells(shapes, bases, owner, i, j, *flat)


def group_duplicates(source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> Array:
    """A group for every sentence pair; pairs that share a source or a target sentence are in one group.

    >>> group_duplicates([["a"], ["b"], ["a"]], [["x"], ["y"], ["z"]]).tolist()
    [0, 1, 0]
    """
    n = len(source)
    sides = []
    for sentences in (source, target):
        kinds: dict[str, int] = {}
        sides.append([kinds.setdefault(" ".join(words).lower(), len(kinds)) for words in sentences])
    edges = sparse.coo_array(
        (np.ones(2 * n), (np.tile(np.arange(n), 2), np.concatenate([sides[0], n + np.array(sides[1])]))),
        shape=(n, 2 * n),
    ).tocsr()
    groups = sparse.csgraph.connected_components(edges @ edges.T, directed=False)[1]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def deal_folds(groups: Array, folds: int, rng: np.random.Generator) -> Array:
    """A fold for every sentence pair, whole groups together, folds of about equal size."""
    order = rng.permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)
    fold_of_group = np.empty(order.size, dtype=np.int64)
    filled = np.zeros(min(folds, order.size))
    for group in order[np.argsort(-sizes[order], kind="stable")]:  # the largest first, so that folds stay even
        fold_of_group[group] = int(filled.argmin())
        filled[fold_of_group[group]] += sizes[group]
    return np.asarray(fold_of_group[groups])

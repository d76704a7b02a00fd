"""Forests with what scores read: properties of spans and of splits, words of leaves, true spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows, positions_of, starts_of
from tacit.data.kernels import kernel
from tacit.text.parsing.forests import Forest
from tacit.text.parsing.grammar import GLUE, JOIN, PARENT, PART, TAG, Grammar, coarse_name

N_WORD, N_TAG, N_PAIR = 4, 4, 4
"""Properties of a span: words, tags, and pairs of tags."""

LENGTHS = np.array([1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 1000])
"""Classes of lengths of spans: the longest of each."""

OTHER, EDGE = 0, 1
"""Numbers of a rare word, and of the edge of a sentence; tags have the edge last."""


class Vocabulary(NamedTuple):
    """Words that have properties of their own, and pairs of leaf rule and word; the sizes that follow."""

    words: Array
    pairs: Array
    n_tags: int

    @property
    def n_words(self) -> int:
        """Numbers of words, with those of rare ones and of the edge."""
        return int(self.words.size + 2)

    @property
    def n_span_rows(self) -> int:
        """Rows of the block "span"."""
        tags = self.n_tags + 1
        return N_WORD * self.n_words + N_TAG * tags + N_PAIR * tags**2 + LENGTHS.size

    @property
    def n_split_rows(self) -> int:
        """Rows of the block "split"."""
        return int(2 * self.n_words + (self.n_tags + 1) ** 2)


class Tokens(NamedTuple):
    """Words and tags of sentences as numbers, one sentence after the other, and where each begins."""

    word: Array
    tag: Array
    offsets: Array


class Packed(NamedTuple):
    """Forests with rows of properties: of nodes in the block "span", of pairs of children in "split".

    ``column`` is the class of a node's symbol in both, −1 for a tag; ``word`` the row of a leaf in "word", or −1.
    """

    forest: Forest
    span: Array
    split: Array
    column: Array
    word: Array

    def take(self, rows: Rows) -> Packed:
        """The forests of these sentences."""
        if rows is None:
            return self
        forest, (_, span, split, column, word) = self.forest, self
        by_sentence = forest.edges[forest.offsets]
        nodes, pairs = positions_of(forest.offsets, rows), positions_of(by_sentence, rows)
        counts = np.diff(forest.edges)[nodes]
        edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        parts: Any = (
            starts_of(forest.offsets, rows),
            *(one[nodes] for one in forest[1:5]),
            edges,
            *(one[pairs] for one in forest[6:9]),
            forest.is_top[nodes],
        )
        own = Forest(*parts)
        has_spans = span.shape[1] > 0
        return Packed(
            own,
            span[nodes] if has_spans else span,
            split[pairs] if has_spans else split,
            column[nodes],
            word[nodes],
        )


def learn_vocabulary(
    words: Sequence[str],
    leaf_words: Sequence[str],
    leaf_rules: Array,
    n_tags: int,
    min_count: int,
    has_spans: bool,
    has_words: bool,
) -> Vocabulary:
    """The words that occur often enough, and the pairs of leaf rule and word that do."""
    counts = Counter(words)
    known = sorted(word for word, count in counts.items() if count >= min_count)
    vocabulary = Vocabulary(np.array(known, dtype=np.str_), np.empty(0, dtype=np.int64), n_tags)
    if has_words:
        numbers = number_words(known, leaf_words)
        keys = leaf_rules * np.int64(vocabulary.n_words) + numbers
        found, often = np.unique(keys[numbers != OTHER], return_counts=True)
        vocabulary = vocabulary._replace(pairs=found[often >= min_count])
    return vocabulary if has_spans or has_words else vocabulary._replace(words=np.empty(0, dtype=np.str_))


def number_words(known: Sequence[str], words: Sequence[str]) -> Array:
    """Numbers of words, `OTHER` for those that are not known."""
    numbers = {word: i + 2 for i, word in enumerate(known)}
    return np.array([numbers.get(word, OTHER) for word in words], dtype=np.int64)


def span_classes(grammar: Grammar) -> tuple[Array, int]:
    """The column of every symbol in "span" and "split": its coarse symbol; −1 for tags and glue."""
    names = [coarse_name(str(name)) for name in grammar.symbols]
    classes = sorted({name for name in names if not name.startswith(TAG) and name != GLUE})
    number = {name: i for i, name in enumerate(classes)}
    return np.array([number.get(name, -1) for name in names], dtype=np.int32), max(len(classes), 1)


def pack(forest: Forest, tokens: Tokens, vocabulary: Vocabulary, columns: Array, has_spans: bool) -> Packed:
    """A forest with its properties."""
    _, symbol, first, last, leaf = forest[:5]
    base = np.repeat(tokens.offsets[:-1], np.diff(forest.offsets))
    word = np.full(symbol.size, -1, dtype=np.int32)
    is_leaf = leaf >= 0
    if vocabulary.pairs.size:
        keys = leaf[is_leaf] * np.int64(vocabulary.n_words) + tokens.word[(base + first)[is_leaf]]
        at = np.searchsorted(vocabulary.pairs, keys)
        hit = vocabulary.pairs[np.minimum(at, vocabulary.pairs.size - 1)] == keys
        word[is_leaf] = np.where(hit, at, -1)
    column = columns[symbol]
    if not has_spans:
        nothing = np.empty((0, 0), dtype=np.int32)
        return Packed(forest, nothing, nothing, column, word)
    length = np.repeat(np.diff(tokens.offsets), np.diff(forest.offsets))
    edge_tag = vocabulary.n_tags

    def read(values: Array, edge: int, base: Array, at: Array, size: Array) -> Array:
        inside = (at >= 0) & (at < size)
        return np.where(inside, values[np.where(inside, base + at, base)], edge)

    at = first, last - 1, first - 1, last
    words = [read(tokens.word, EDGE, base, one, length) for one in at]
    tags = [read(tokens.tag, edge_tag, base, one, length) for one in at]
    n_tags = edge_tag + 1
    pairs = [tags[i] * n_tags + tags[j] for i, j in ((2, 0), (1, 3), (0, 1), (2, 3))]
    sizes = [vocabulary.n_words] * N_WORD + [n_tags] * N_TAG + [n_tags**2] * N_PAIR
    shifts = np.concatenate([[0], np.cumsum(sizes)])
    lengths = np.searchsorted(LENGTHS, last - first)
    span = np.stack([*words, *tags, *pairs, lengths], axis=1) + shifts
    parent = np.repeat(np.arange(symbol.size), np.diff(forest.edges))
    shift = np.repeat(forest.offsets[:-1], np.diff(forest.edges[forest.offsets]))
    middle, where, size = first[forest.right + shift], base[parent], length[parent]
    left_word, right_word = (read(tokens.word, EDGE, where, one, size) for one in (middle - 1, middle))
    left_tag, right_tag = (read(tokens.tag, edge_tag, where, one, size) for one in (middle - 1, middle))
    n_words = vocabulary.n_words
    split = np.stack([left_word, n_words + right_word, 2 * n_words + left_tag * n_tags + right_tag], axis=1)
    return Packed(forest, span.astype(np.int32), split.astype(np.int32), column, word)


@kernel
def score_spans(
    forest: Forest, span: Array, split: Array, column: Array, w_span: Array, w_split: Array, node: Array, pair: Array
) -> None:
    """Add the scores of properties to those of nodes and of pairs of children."""
    edges = forest.edges
    for a in range(column.size):
        c = column[a]
        if c < 0:
            continue
        total = 0.0
        for t in range(span.shape[1]):
            total += w_span[span[a, t], c]
        node[a] += total
        for e in range(edges[a], edges[a + 1]):
            total = 0.0
            for t in range(split.shape[1]):
                total += w_split[split[e, t], c]
            pair[e] += total


@kernel
def add_spans(
    forest: Forest, span: Array, split: Array, column: Array, node: Array, pair: Array, s_span: Array, s_split: Array
) -> None:
    """The transpose of `score_spans`."""
    edges = forest.edges
    for a in range(column.size):
        c = column[a]
        if c < 0 or node[a] == 0.0:
            continue
        for t in range(span.shape[1]):
            s_span[span[a, t], c] += node[a]
        for e in range(edges[a], edges[a + 1]):
            if pair[e] != 0.0:
                for t in range(split.shape[1]):
                    s_split[split[e, t], c] += pair[e]


def label_table(grammar: Grammar) -> tuple[Array, Array, Array]:
    """Categories; and by symbol the categories that it counts as and how often each, −1 and 0 beyond the last."""
    chains: list[list[str]] = []
    for name in map(str, grammar.symbols):
        plain = "" if name == GLUE or name.startswith((PART, TAG)) else name.split(PARENT)[0]
        chains.append(plain.split(JOIN) if plain else [])
    labels = sorted({label for chain in chains for label in chain})
    number = {label: i for i, label in enumerate(labels)}
    width = max([1, *(len(set(chain)) for chain in chains)])
    which, times = np.full((len(chains), width), -1), np.zeros((len(chains), width), dtype=np.int64)
    for i, chain in enumerate(chains):
        for k, (label, count) in enumerate(Counter(chain).items()):
            which[i, k], times[i, k] = number[label], count
    return np.array(labels, dtype=np.str_), which, times


def expect_right(forest: Forest, posterior: Array, which: Array, times: Array) -> Array:
    """The expected number of right labels of every node, from the probabilities of nodes. Nodes of one span and label
    share them, whatever else their symbols say; a label that is there twice is right twice if it is true twice."""
    sentence = np.repeat(np.arange(forest.offsets.size - 1), np.diff(forest.offsets))
    nodes, keys = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for k in range(which.shape[1]):
        count = times[forest.symbol, k]
        for repeat in range(1, int(times.max(initial=0)) + 1):
            at = np.flatnonzero(count >= repeat)
            key = (sentence[at] * 256 + forest.first[at]) * 256 + forest.last[at]
            nodes.append(at)
            keys.append((key * 256 + repeat) * (int(which.max()) + 1) + which[forest.symbol[at], k])
    owner, (_, number) = np.concatenate(nodes), np.unique(np.concatenate(keys), return_inverse=True)
    return np.bincount(owner, np.bincount(number, posterior[owner])[number], minlength=posterior.size)


class TrueSpans:
    """The labelled spans of true trees, to count those that a forest's nodes share with them.

    Parameters
    ----------
    spans : of every sentence: label, first word, last word (exclusive)
    labels, which, times : see `label_table`
    free : of sentences whose tree is not wholly known, [first, last] which spans may have other labels at no loss
    """

    def __init__(
        self,
        spans: Sequence[Sequence[tuple[str, int, int]]],
        labels: Array,
        which: Array,
        times: Array,
        free: Mapping[int, Array],
    ) -> None:
        self._free = free
        number = {label: i for i, label in enumerate(labels.tolist())}
        self._which, self._times = which, times
        self.sizes = np.array([len(own) for own in spans], dtype=np.int64)
        self._n_labels = len(number) + 1
        keys = [self._key(i, a, b, number.get(label, -1)) for i, own in enumerate(spans) for label, a, b in own]
        self._keys, self._counts = np.unique(np.array(keys, dtype=np.int64), return_counts=True)

    def _key(self, sentence: Any, first: Any, last: Any, label: Any) -> Any:
        return ((sentence * 256 + first) * 256 + last) * self._n_labels + label + 1

    def losses(self, forest: Forest, sentences: Array) -> Array:
        """What every node adds to the number of wrong and missed spans: its labels, less two for each that is true.
        Labels that are neither true nor false add nothing."""
        out = self._times[forest.symbol].sum(axis=1).astype(np.float64)
        right = np.zeros_like(out)
        for nodes, at, times in self._matches(forest, sentences):
            np.add.at(right, nodes, np.minimum(times, self._counts[at]))
        for k, i in enumerate(sentences.tolist() if self._free else ()):
            if i in self._free:
                own = slice(forest.offsets[k], forest.offsets[k + 1])
                is_free = self._free[i][forest.first[own], forest.last[own]]
                out[own] = np.where(is_free, right[own], out[own])
        return np.asarray(out - 2.0 * right)

    def count_reachable(self, forest: Forest, sentences: Array) -> int:
        """How many true spans some tree of the forests has."""
        found = np.zeros_like(self._counts)
        for _, at, times in self._matches(forest, sentences):
            np.maximum.at(found, at, times)
        return int(np.minimum(found, self._counts).sum())

    def _matches(self, forest: Forest, sentences: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Nodes with a true label, the number of the true span, and how often the node has the label."""
        owner = np.repeat(sentences, np.diff(forest.offsets)).astype(np.int64)
        for k in range(self._which.shape[1] if self._keys.size else 0):
            label, times = self._which[forest.symbol, k], self._times[forest.symbol, k]
            keys = self._key(owner, forest.first.astype(np.int64), forest.last, label)
            at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
            nodes = np.flatnonzero((self._keys[at] == keys) & (label >= 0))
            yield nodes, at[nodes], times[nodes]

    def digest_parts(self) -> tuple[Array, ...]:
        """What a checksum needs."""
        return self._keys, self._counts, *self._free.values()

"""Clusters of words by their neighbours in unlabelled text, and lists of names: more features for rare words."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import is_list_of_text, random_numbers, shorten
from tacit.data.specs import check_parameters, estimator, parameter, whole
from tacit.runtime.archive import storable
from tacit.text.words import Vocabulary, number_words

MAX_WORDS = 50_000
"""The most words that get a cluster, the most frequent ones."""

MAX_ROUNDS = 30
"""Rounds of k-means."""

SIZES = (4, 16)
"""Clusters of each size are split into so many, on average, for the coarser levels."""


@storable
@estimator
class WordClusters(Vocabulary):
    """Clusters of words that have similar neighbours, learned from sentences without tags.

    Counts of the words before and after each word are scaled as in canonical correlation analysis, and reduced by a
    singular value decomposition (Stratos et al. 2015); k-means clusters the rows. There are three levels: `n_clusters`,
    a quarter and a sixteenth of it. Words are compared in lower case, with all digits equal.

    Parameters
    ----------
    n_clusters : number of clusters of the finest level
    rank : number of dimensions of the decomposition
    min_count : how often a word must occur to have a cluster
    contexts : number of the most frequent words that are counted as neighbours
    random_state : seed

    Attributes
    ----------
    words_ : the words that have clusters, sorted
    codes_ : (words, 3) the cluster of each word at each level, the finest first

    >>> text = [["the", animal, verb] for animal in ("dog", "cat", "cow") for verb in ("runs", "sleeps", "eats")] * 3
    >>> clusters = WordClusters(n_clusters=3, rank=2).fit(text)
    >>> dog, cat, runs = (own[0] for own in clusters.columns([["dog", "cat", "runs"]])[0])
    >>> dog == cat != runs
    True
    """

    n_clusters: int = parameter(whole(2, 1 << 16), default=512)
    rank: int = parameter(whole(1, 1000), default=50)
    min_count: int = parameter(whole(), default=3)
    contexts: int = parameter(whole(1, 1 << 16), default=2000)
    random_state: Any = 0

    def fit(self, X: Any, y: Any = None) -> WordClusters:
        """Learn from sentences, each a list of words."""
        check_parameters(self)
        seed = int(random_numbers(self.random_state).randint(2**31))
        words, ids, offsets = number_words(X)
        forms, of_word = np.unique([plain_form(word) for word in words], return_inverse=True)
        ids = of_word[ids]
        counts = np.bincount(ids, minlength=forms.size)
        order = np.argsort(-counts, kind="stable")
        kept = np.sort(order[:MAX_WORDS][counts[order[:MAX_WORDS]] >= int(self.min_count)])
        if kept.size < 2:
            raise ValueError(
                f"{kept.size} words occur {self.min_count} times or more in the text, which cannot be clustered; give "
                "more text, or lower min_count"
            )
        table = _neighbour_counts(ids, offsets, kept, order[: int(self.contexts)], forms.size)
        with threadpool_limits(limits=1):  # the same sums for any number of threads
            rows = _embed(table, int(self.rank), seed)
            levels = [max(2, int(self.n_clusters) // share) for share in (1, *SIZES)]
            self.codes_ = np.column_stack([_cluster(rows, min(n, kept.size), seed) for n in levels]).astype(np.int64)
        self.words_ = forms[kept]
        return self

    def columns(self, X: Iterable[Sequence[str]]) -> list[list[tuple[str, ...]]]:
        """The clusters of every word as strings, one per level; empty for words without one."""
        table = {
            word: tuple(map(str, codes)) for word, codes in zip(self.words_.tolist(), self.codes_.tolist(), strict=True)
        }
        none = ("",) * (1 + len(SIZES))
        return [[table.get(plain_form(word), none) for word in sentence] for sentence in X]

    def check(self) -> None:
        super().check()
        if hasattr(self, "words_"):
            is_right = is_table(self.words_, 1, "U") and is_table(self.codes_, 2, "i")
            if not is_right or self.codes_.shape != (self.words_.size, 1 + len(SIZES)):
                raise ValueError(f"words_ and codes_ must be words and their clusters, got {shorten(self.words_)}")


def plain_form(word: str) -> str:
    """A word in lower case, with 0 for every digit.

    >>> plain_form("Room-101")
    'room-000'
    """
    return "".join("0" if letter.isdigit() else letter for letter in word.lower())


def _neighbour_counts(ids: Array, offsets: Array, kept: Array, frequent: Array, n_forms: int) -> Any:
    """How often each kept word (row) has each frequent word, or the end of a sentence, before and after it."""
    row_of, column_of = np.full(n_forms, -1), np.full(n_forms + 1, -1)
    row_of[kept] = np.arange(kept.size)
    column_of[frequent] = np.arange(frequent.size)
    column_of[n_forms] = frequent.size  # outside of the sentence
    width = frequent.size + 1
    rows, columns = [], []
    starts, ends = offsets[:-1], offsets[1:] - 1
    for side, edges in ((0, starts), (1, ends)):
        neighbour = np.full(ids.size, n_forms)
        inside = np.ones(ids.size, dtype=bool)
        inside[edges] = False
        at = np.flatnonzero(inside)
        neighbour[at] = ids[at + (1 if side else -1)]
        found = (row_of[ids] >= 0) & (column_of[neighbour] >= 0)
        rows.append(row_of[ids[found]])
        columns.append(column_of[neighbour[found]] + side * width)
    where = (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_array((np.ones(where[0].size), where), shape=(kept.size, 2 * width))


def _embed(table: Any, rank: int, seed: int) -> Array:
    """Rows of length 1 of the left singular vectors of scaled counts."""
    from sklearn.utils.extmath import randomized_svd

    roots = table.sqrt()
    rows, columns = (np.maximum(np.asarray(table.sum(axis=axis)), 1.0) ** -0.25 for axis in (1, 0))
    scaled = sparse.csr_array(sparse.diags_array(rows) @ roots @ sparse.diags_array(columns))
    rank = min(rank, *(side - 1 for side in scaled.shape)) or 1
    left, values, _ = randomized_svd(scaled, rank, random_state=seed)
    found = left * values
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.where(lengths > 0, lengths, 1.0))


def _cluster(rows: Array, n: int, seed: int) -> Array:
    from sklearn.cluster import KMeans

    n = min(n, len(np.unique(rows, axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # words with nearly equal rows: fewer clusters will do
        return np.asarray(KMeans(n, n_init=1, max_iter=MAX_ROUNDS, random_state=seed).fit(rows).labels_)


def read_gazetteers(gazetteers: Any) -> dict[str, list[str]]:
    """Check lists of names: a dict from the type of a list to its names, whose words are separated by spaces."""
    if not isinstance(gazetteers, Mapping):
        raise TypeError(f"gazetteers must be a dict from a type to a list of names, got {shorten(gazetteers)}")
    for kind, names in gazetteers.items():
        if not isinstance(kind, str) or not is_list_of_text(names):
            raise ValueError(f"gazetteers[{shorten(kind)}] must be a list of names, got {shorten(names)}")
    return {str(kind): [str(name) for name in names] for kind, names in gazetteers.items()}


def match_names(sentences: Iterable[Sequence[str]], names: Sequence[str]) -> list[list[str]]:
    """Tags of the longest names of a list in sentences: B and I in their letters, b and i without regard to case.

    >>> match_names([["in", "New", "York", "and", "PARIS"]], ["New York", "Paris"])
    [['', 'B', 'I', '', 'b']]
    """
    exact = {tuple(name.split()) for name in names if name.strip()}
    lower = {tuple(word.lower() for word in name) for name in exact}
    longest = max(map(len, exact), default=0)
    found = []
    for words in sentences:
        tags = [""] * len(words)
        lowered = tuple(word.lower() for word in words)
        position = 0
        while position < len(words):
            sizes = range(min(longest, len(words) - position), 0, -1)
            size = next((size for size in sizes if lowered[position : position + size] in lower), 0)
            if size:
                first, then = "BI" if tuple(words[position : position + size]) in exact else "bi"
                tags[position : position + size] = [first, *[then] * (size - 1)]
            position += size or 1
        found.append(tags)
    return found

"""Vocabularies of symbols: rare words by shape and ending, clusters of feature vectors, hashed words."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import is_table
from tacit.data.parameters import random_numbers, shorten
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.specs import check_parameters, estimator, parameter, whole
from tacit.runtime.archive import storable
from tacit.text.words import MAX_COLUMNS, Vocabulary, number_words, word_shape

MAX_CLUSTER_ROWS = 50_000
"""The most rows that clusters are learned from; of more rows a random sample is drawn."""


@storable
@estimator
class RareWords(Vocabulary):
    """Keep frequent words as symbols; replace others by shape and ending, or by shape if that is rare, too.

    Parameters
    ----------
    min_count : how often a word, or a shape with its ending, must occur in training to be a symbol
    suffix : letters of the ending

    >>> words = RareWords(min_count=2).fit([["the", "the", "walking", "talking"], ["the", "Paris"]])
    >>> words.transform([["the", "parking", "Rome"]]).values.tolist()
    ['the', '<xx ing>', '<Xxx>']
    """

    min_count: int = parameter(whole(), default=3)
    suffix: int = parameter(whole(0, 20), default=3)

    def fit(self, X: Any, y: Any = None) -> RareWords:
        check_parameters(self)
        words, ids, _ = number_words(X)
        counts = np.bincount(ids, minlength=len(words))
        kept, endings = set[str](), Counter[str]()
        for word, count in zip(words, counts.tolist(), strict=True):
            if count >= self.min_count:
                kept.add(word)
            else:
                endings[self._ending(word)] += count
        frequent = [ending for ending, count in endings.items() if count >= self.min_count]
        self.symbols_ = np.array(sorted({*kept, *frequent}) or [""])
        return self

    def transform(self, X: Any) -> Ragged:
        check_is_fitted(self)
        words, ids, offsets = number_words(X)
        known = set(self.symbols_.tolist())
        symbols = []
        for word in words:
            ending = self._ending(word)
            symbols.append(word if word in known else ending if ending in known else f"<{word_shape(word)}>")
        return Ragged(np.array(symbols)[ids], offsets)

    def _ending(self, word: str) -> str:
        return f"<{word_shape(word)} {word[-int(self.suffix) :].lower()}>" if self.suffix else f"<{word_shape(word)}>"

    def check(self) -> None:
        super().check()
        if hasattr(self, "symbols_") and not is_table(self.symbols_, 1, "U"):
            raise ValueError(f"symbols_ must be a vector of words, got {shorten(self.symbols_)}")


@storable
@estimator
class FeatureClusters(Vocabulary):
    """Replace feature vectors (pixels of letters, measurements, ...) by the nearest centre of k-means.

    Parameters
    ----------
    n_clusters : number of symbols
    random_state : seed of k-means

    >>> tables = [[[0.0, 0.1], [5.0, 5.1]], [[0.1, 0.0]]]
    >>> codes = FeatureClusters(2).fit(tables).transform(tables).values
    >>> bool(codes[0] == codes[2] != codes[1])
    True
    """

    n_clusters: int = parameter(whole(), default=200)
    random_state: Any = 0

    def fit(self, X: Any, y: Any = None) -> FeatureClusters:
        from sklearn.cluster import KMeans

        check_parameters(self)
        rows = read_ragged(X, "sequence", "token").values
        rng = random_numbers(self.random_state)
        if rows.shape[0] > MAX_CLUSTER_ROWS:
            rows = rows[np.sort(rng.permutation(rows.shape[0])[:MAX_CLUSTER_ROWS])]
        n = min(int(self.n_clusters), rows.shape[0])
        self.centres_ = np.asarray(KMeans(n, n_init=1, random_state=rng).fit(rows).cluster_centers_, dtype=np.float64)
        return self

    def transform(self, X: Any) -> Ragged:
        from sklearn.metrics import pairwise_distances_argmin

        check_is_fitted(self)
        table = read_ragged(X, "sequence", "token")
        if table.values.shape[1] != self.centres_.shape[1]:
            raise ValueError(f"X must have {self.centres_.shape[1]} features as in fit, got {table.values.shape[1]}")
        return Ragged(pairwise_distances_argmin(table.values, self.centres_), table.offsets)

    def check(self) -> None:
        super().check()
        if hasattr(self, "centres_") and not is_table(self.centres_, 2, "f"):
            raise ValueError(f"centres_ must be a table of finite numbers, got {shorten(self.centres_)}")


@storable
@estimator
class HashedSymbols(Vocabulary):
    """Hash words into at most `columns` symbols; nothing is learned, and words may share a symbol.

    Parameters
    ----------
    columns : the most symbols

    >>> bool((HashedSymbols(10).fit([["a"]]).transform([["cat", "dog"]]).values < 10).all())
    True
    """

    columns: int = parameter(whole(1, MAX_COLUMNS), default=1000)

    def fit(self, X: Any, y: Any = None) -> HashedSymbols:
        self.check()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Ragged:
        words, ids, offsets = number_words(X)
        hashes = [zlib.crc32(word.encode("utf-8", "surrogatepass")) % int(self.columns) for word in words]
        return Ragged(np.array(hashes, dtype=np.int64)[ids], offsets)

"""From what users have to symbols: rare words by their ending, feature vectors by their cluster, anything by a hash.

Each class learns from training sequences (`fit`) and turns sequences into sequences of symbols (`transform`): what
`SpectralTagger(vocabulary=...)` takes.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import is_table
from tacit.data.parameters import random_numbers, shorten, whole_number
from tacit.data.ragged import Ragged, read_ragged
from tacit.text.word_features import number_words
from tacit.text.word_kinds import word_shape

MAX_CLUSTER_ROWS = 50_000
"""Rows that clusters are learned from; of more, so many are drawn."""


class Vocabulary(BaseEstimator):  # type: ignore[misc]
    """Base of the vocabularies: their files."""

    def learned_attributes(self) -> dict[str, Any]:
        """What goes into a file beside the parameters."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}


class RareWords(Vocabulary):
    """Frequent words as they are; others by their shape and their last letters, those of rare endings by shape alone.

    Parameters
    ----------
    min_count : how often a word, or an ending with its shape, must occur in training to be a symbol of its own
    suffix : letters of the ending

    >>> words = RareWords(min_count=2).fit([["the", "the", "walking", "talking"], ["the", "Paris"]])
    >>> words.transform([["the", "parking", "Rome"]]).values.tolist()
    ['the', '<xx ing>', '<Xxx>']
    """

    def __init__(self, min_count: int = 3, suffix: int = 3) -> None:
        self.min_count = min_count
        self.suffix = suffix

    def fit(self, X: Any, y: Any = None) -> RareWords:
        self._check_parameters()
        words, ids, _ = number_words(X)
        counts = np.bincount(ids, minlength=len(words))
        kept = [word for word, count in zip(words, counts.tolist(), strict=True) if count >= self.min_count]
        endings: dict[str, int] = {}
        for word, count in zip(words, counts.tolist(), strict=True):
            if count < self.min_count:
                ending = self._ending(word)
                endings[ending] = endings.get(ending, 0) + count
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

    def _check_parameters(self) -> None:
        whole_number("min_count", self.min_count)
        whole_number("suffix", self.suffix, 0, 20)

    def check(self) -> None:
        self._check_parameters()
        symbols = getattr(self, "symbols_", np.array([""]))
        if not is_table(symbols, 1, "U"):
            raise ValueError(f"symbols_ is {shorten(symbols)}, no vector of words")


class FeatureClusters(Vocabulary):
    """Feature vectors by the nearest of some centres, which k-means finds: pixels of letters, measurements, ...

    Parameters
    ----------
    n_clusters : how many symbols there are
    random_state : of the centres' start

    >>> tables = [[[0.0, 0.1], [5.0, 5.1]], [[0.1, 0.0]]]
    >>> codes = FeatureClusters(2).fit(tables).transform(tables).values
    >>> bool(codes[0] == codes[2] != codes[1])
    True
    """

    def __init__(self, n_clusters: int = 200, random_state: Any = 0) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> FeatureClusters:
        from sklearn.cluster import KMeans

        self._check_parameters()
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
            raise ValueError(
                f"X has {table.values.shape[1]} features, but FeatureClusters learned from {self.centres_.shape[1]}"
            )
        return Ragged(pairwise_distances_argmin(table.values, self.centres_), table.offsets)

    def _check_parameters(self) -> None:
        whole_number("n_clusters", self.n_clusters)

    def check(self) -> None:
        self._check_parameters()
        if hasattr(self, "centres_") and not is_table(self.centres_, 2, "f"):
            raise ValueError(f"centres_ is {shorten(self.centres_)}, no table of finite numbers")


class HashedSymbols(Vocabulary):
    """Words by a hash: nothing is learned, and there are never more symbols than columns; words may share one.

    Parameters
    ----------
    columns : how many symbols there are at the most

    >>> bool((HashedSymbols(10).fit([["a"]]).transform([["cat", "dog"]]).values < 10).all())
    True
    """

    def __init__(self, columns: int = 1000) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> HashedSymbols:
        self.check()
        return self

    def transform(self, X: Any) -> Ragged:
        words, ids, offsets = number_words(X)
        hashes = [zlib.crc32(word.encode("utf-8", "surrogatepass")) % int(self.columns) for word in words]
        return Ragged(np.array(hashes, dtype=np.int64)[ids], offsets)

    def check(self) -> None:
        whole_number("columns", self.columns, 1, 1 << 30)

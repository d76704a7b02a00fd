"""What all rankers share: reading of queries, items and judged rows, ranking in blocks, scores, files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import numbers, shorten, whole_number
from tacit.data.specs import instance, optional, positive, table, whole
from tacit.learners.application import Application
from tacit.ranking.counting import keep_best, score_rows
from tacit.ranking.judgements import read_group_offsets, read_itself, read_query_sizes
from tacit.ranking.oracle import Training, count_right
from tacit.ranking.relevances import ReadTables, Relevances, count_rows, read_table
from tacit.ranking.triplets import Triplets, read_triplets
from tacit.runtime import Status
from tacit.runtime.blocks import check_jobs

MAX_NAMED_WEIGHTS = 100_000
"""Relevances per item, at most: a ranker has a weight for each."""


class Ranker(Application, ABC):
    """Base of the rankers. `fit` of a subclass sets what `query_weights` needs; the methods here follow from that.

    A ranker learns from two kinds of data. *Retrieval*: ``fit(queries, items, triplets)`` takes features of queries and
    of items, which `Relevances` compares; `rank` then finds the best items for other queries. *Judged rows*
    (learning to rank): ``fit(X, y, group=sizes)``, or ``fit(X, y, qid=ids)``, takes one row of features per judged pair
    of a query and an item, those of a query together, and their grades.
    """

    relevances: Relevances | None
    C: float | str
    standardise: bool | str
    gain: str | None
    n_jobs: int | None = None
    needs_groups: ClassVar = True  # whether queries have different weights
    scale_: Array
    items_: dict[str, Array] | None
    n_relevances_: int
    C_: float
    cv_scores_: Array | None

    _not_saved = ("callbacks", "checkpoint", "resume")
    learned: ClassVar = {
        "n_relevances_": whole(1, MAX_NAMED_WEIGHTS),
        "scale_": table(None),
        "items_": optional(instance(dict, "tables by family")),
        "status_": instance(Status, "a Status"),
        "C_": positive,
        "cv_scores_": optional(table(None)),
    }

    @abstractmethod
    def fit(
        self, X: Any, y: Any, triplets: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None
    ) -> Any:
        """Learn from queries, items and triplets, or from judged rows."""

    @abstractmethod
    def query_weights(self, query_features: Array) -> Array:
        """(queries, m) the weights of the relevances for each query, given its features."""

    def rank(
        self,
        X: Any,
        k: int = 10,
        items: Any = None,
        *,
        group: Any = None,
        qid: Any = None,
        query_features: Any = None,
        itself: Any = None,
    ) -> Array:
        """(queries, k) the numbers of the best items of each query, the best first; −1 where there are fewer.

        Ties go to the item of the lower number. Scores are computed in blocks; only the best k of each query are kept.

        Parameters
        ----------
        X : features of queries; or judged rows, whose numbers are then ranked within each query
        k : how many items per query
        items : the items to rank; None for those of `fit`
        group, qid : the number of rows per query, or a query id per row, for judged rows
        query_features : features of the queries themselves, as in `fit`
        itself : per query its own number among the items, which is left out; −1 for none
        """
        k = whole_number("k", k, 1, 10_000_000)
        group = read_query_sizes(group, qid, X)
        if self._is_of_rows(items, group):
            scores, offsets = self._score_rows(X, group, query_features, must_group=True)
            return rank_rows(scores, offsets, k)
        tables, found, weights = self._read_retrieval(X, items, query_features)
        n, n_items = len(weights), count_rows(found)
        own = read_itself(itself, n, n_items)
        best = np.full((n, min(k, max(n_items, 1))), -np.inf)
        numbers_ = np.full(best.shape, -1, dtype=np.int64)
        for rows, columns, block in self._relevances().score_blocks(tables, found, weights):
            keep_best(block, columns.start, own[rows], best[rows], numbers_[rows])
        return np.pad(numbers_, ((0, 0), (0, k - best.shape[1])), constant_values=-1)

    def decision_function(
        self, X: Any, items: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None
    ) -> Array:
        """The score of every item for every query, (queries, items); of judged rows (rows,). Higher is better."""
        group = read_query_sizes(group, qid, X)
        if self._is_of_rows(items, group):
            return self._score_rows(X, group, query_features)[0]
        tables, found, weights = self._read_retrieval(X, items, query_features)
        scores = np.empty((len(weights), count_rows(found)))
        for rows, columns, block in self._relevances().score_blocks(tables, found, weights):
            scores[rows, columns] = block
        return scores

    def score(
        self, X: Any, y: Any, triplets: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None
    ) -> float:
        """The share of triplets in the right order, equal scores counted half; parameters as in `fit`.

        For retrieval ``y`` may be None: the items of `fit`.
        """
        return float(self.score_queries(X, y, triplets, group=group, qid=qid, query_features=query_features)[0])

    def score_queries(
        self, X: Any, y: Any, triplets: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None
    ) -> tuple[float, Array, Array]:
        """The share of triplets in the right order; then per query their number, and the number of triplets."""
        check_is_fitted(self)
        group = read_query_sizes(group, qid, X)
        if group is None and y is None:
            y = self.items_
        training = read_training(self, X, y, triplets, group, query_features, self.scale_)
        right = count_right(training, self.query_weights(training.queries) * self.scale_)
        return float(right.sum() / training.size), right, training.triplets.per_query

    def check_learned(self) -> None:
        """Refuse what is missing, or does not fit the relevances and items of the ranker."""
        super().check_learned()
        m = self.n_relevances_
        check_table("scale_", self.scale_, (m,))
        if not (self.scale_ > 0).all():
            raise ValueError(f"scale_ must be positive, got {self.scale_.min()}")
        if self.items_ is not None:
            tables = self._relevances().read(self.items_, "items_")
            if (found := len(self._relevances()._functions(tables))) != m:
                raise ValueError(f"items_ must make {m} relevances, got {found} from {len(tables)} families")

    def check_parameters(self) -> None:
        super().check_parameters()
        check_jobs(self.n_jobs)
        if self.relevances is not None and not isinstance(self.relevances, Relevances):
            raise TypeError(f"relevances must be None or Relevances(...), got {shorten(self.relevances)}")
        self._relevances().check()

    def _relevances(self) -> Relevances:
        return Relevances() if self.relevances is None else self.relevances

    def _keep(self, training: Training, items: Any, group: Any) -> None:
        """Remember what every ranker needs to rank."""
        self.scale_ = training.scale
        self.n_relevances_ = training.features.shape[1]
        self.items_ = None if group is not None else dict(self._relevances().read(items, "items"))

    def _is_of_rows(self, items: Any, group: Any) -> bool:
        check_is_fitted(self)
        if group is not None and items is not None:
            raise ValueError("give either items or group: judged rows do not need a table of items")
        return group is not None or (self.items_ is None and items is None)

    def _read_retrieval(self, X: Any, items: Any, query_features: Any) -> tuple[ReadTables, ReadTables, Array]:
        """Families of queries and items, and the weights of every query."""
        relevances = self._relevances()
        tables = ReadTables(relevances.read(X, "queries"))
        found = ReadTables(relevances.read(self.items_ if items is None else items, "items"))
        weights = self.query_weights(read_query_features(query_features, tables))
        return tables, found, np.ascontiguousarray(weights)

    def _score_rows(self, X: Any, group: Any, query_features: Any, must_group: bool = False) -> tuple[Array, Array]:
        """Scores of judged rows, and where the rows of each query begin."""
        rows = read_rows(X)
        if rows.shape[1] != self.n_relevances_:
            raise ValueError(f"X must have {self.n_relevances_} columns, as in fit, got {rows.shape[1]}")
        if group is None and must_group:
            raise ValueError("group is missing; give the number of rows per query: rows are ranked within their query")
        if group is None and (self.needs_groups or self.standardise == "query"):
            own = "weights" if self.needs_groups else "scales"
            raise ValueError(f"group is missing; {type(self).__name__} has {own} per query: give the rows per query")
        offsets = read_group_offsets([len(rows)] if group is None else group, len(rows))
        table = read_group_features(query_features, rows, offsets)
        weights = np.ascontiguousarray(self.query_weights(table))
        scores = np.empty(len(rows))
        rows = divide_by_spread(rows, offsets) if self.standardise == "query" else rows
        score_rows(rows, offsets, weights, scores)
        return scores, offsets

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scale_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def read_training(
    ranker: Ranker, X: Any, y: Any, triplets: Any, group: Any, query_features: Any, scale: Array | None = None
) -> Training:
    """Check the arguments of `fit`, compute the relevances of the items of triplets, drop queries without triplets.

    ``scale`` is what relevances are divided by; None computes it if the ranker standardises. With a scale the triplets
    are to be counted, and have no gains.
    """
    if group is not None:
        if triplets is not None:
            raise ValueError("give either triplets or group: with group, triplets follow from the grades y")
        rows = read_rows(X)
        found = Triplets.from_groups(y, group, gain=ranker.gain if scale is None else None)
        if found.items.size != len(rows):
            raise ValueError(f"X has {len(rows)} rows and y {found.items.size} grades; give one grade per row")
        queries = read_group_features(query_features, rows, found.offsets)
        kept, found = _with_triplets(found)
        features = rows if found.items.size == len(rows) else rows[found.items]
        features = divide_by_spread(features, found.offsets) if ranker.standardise == "query" else features
    else:
        if triplets is None:
            raise ValueError("triplets are missing; call fit(queries, items, triplets) or fit(X, y, group=sizes)")
        if ranker.gain is not None or ranker.standardise == "query":
            own = "gain" if ranker.gain is not None else "standardise"
            value = shorten(getattr(ranker, own))
            raise ValueError(f"{own}={value} is for judged rows; call fit(X, y, group=sizes), or leave it out")
        relevances = ranker._relevances()
        tables = ReadTables(relevances.read(X, "queries"))
        items = ReadTables(relevances.read(y, "items"))
        found = read_triplets(triplets, count_rows(tables), count_rows(items))
        queries = read_query_features(query_features, tables)
        kept, found = _with_triplets(found)
        owner = np.repeat(kept, np.diff(found.offsets))
        features = relevances.pairs(tables, items, owner, found.items)
    if not kept.size:
        raise ValueError("triplets are empty: all items of a query are equally good; give items of different grades")
    if scale is None:
        scale = find_scale(features, found.offsets) if ranker.standardise else np.ones(features.shape[1])
    elif scale.size != features.shape[1]:
        raise ValueError(f"the ranker was fitted with {scale.size} relevances, got {features.shape[1]}")
    scaled = features if (scale == 1).all() else features / scale
    return Training(np.ascontiguousarray(scaled), found, queries[kept], scale)


def find_scale(features: Array, offsets: Array) -> Array:
    """The standard deviation of every relevance within a query; one where it is constant.

    >>> find_scale(np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([0, 2]))
    array([1., 1.])
    """
    sizes = np.diff(offsets)
    means = np.add.reduceat(features, offsets[:-1], axis=0) / sizes[:, None]
    deviation = np.sqrt(((features - np.repeat(means, sizes, axis=0)) ** 2).mean(axis=0))
    return _one_where_constant(deviation, features)


def divide_by_spread(rows: Array, offsets: Array) -> Array:
    """Every relevance divided by its standard deviation within the query; unchanged where it is constant there.

    >>> divide_by_spread(np.array([[0.0], [4.0], [0.0], [40.0]]), np.array([0, 2, 4])).ravel()
    array([0., 2., 0., 2.])
    """
    divided = rows.copy()
    for start, end in pairwise(offsets):
        if end > start:
            divided[start:end] /= column_scale(rows[start:end])
    return divided


def column_scale(table: Array) -> Array:
    """The standard deviation of every column; one where it is constant."""
    return _one_where_constant(table.std(axis=0), table)


def _one_where_constant(deviation: Array, table: Array) -> Array:
    return np.where(deviation > 1e-12 * np.abs(table).max(axis=0, initial=0), deviation, 1.0)


def read_rows(X: Any) -> Array:
    """Judged rows: a finite table."""
    return read_table("X", X, "one row per judged item")


def read_query_features(query_features: Any, tables: ReadTables) -> Array:
    """Features of queries: those given, or all families side by side."""
    if query_features is None:
        return np.hstack(list(tables.values()))
    return _read_given(query_features, count_rows(tables))


def read_group_features(query_features: Any, rows: Array, offsets: Array) -> Array:
    """Features of queries: those given, or the mean of the judged rows; zeros for a query without rows."""
    if query_features is not None:
        return _read_given(query_features, offsets.size - 1)
    means = np.zeros((offsets.size - 1, rows.shape[1]))
    sizes = np.diff(offsets)
    filled = np.flatnonzero(sizes)
    if filled.size:
        means[filled] = np.add.reduceat(rows, offsets[filled], axis=0) / sizes[filled, None]
    return means


def check_query_width(query_features: Array, mean: Array) -> Array:
    """Refuse queries that do not have as many features as in training."""
    if query_features.shape[1] != mean.size:
        raise ValueError(f"queries must have {mean.size} features, as in fit, got {query_features.shape[1]}")
    return query_features


def check_table(name: str, values: Any, shape: tuple[int, ...]) -> None:
    """Refuse anything but finite float64 numbers of this shape."""
    if not is_table(values, len(shape), "f") or values.shape != shape or values.dtype != np.float64:
        raise ValueError(f"{name} must be a finite float64 array of shape {shape}, got {shorten(values)}")


def _read_given(query_features: Any, n: int) -> Array:
    table = numbers("query_features", query_features, "a table of numbers, one row per query")
    if table.ndim != 2 or len(table) != n or not np.isfinite(table).all():
        raise ValueError(f"query_features must be a finite table of {n} rows, one per query, got shape {table.shape}")
    return table


def _with_triplets(triplets: Triplets) -> tuple[Array, Triplets]:
    kept = np.flatnonzero(triplets.per_query)
    return kept, triplets if kept.size == triplets.n_queries else triplets.take(kept)


def rank_rows(scores: Array, offsets: Array, k: int) -> Array:
    """The best k rows of each query."""
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    order = np.lexsort((np.arange(scores.size), -scores, owner))
    rank = np.arange(scores.size) - offsets[owner]
    ranked = np.full((offsets.size - 1, k), -1, dtype=np.int64)
    is_in = rank < k
    ranked[owner[is_in], rank[is_in]] = order[is_in]
    return ranked

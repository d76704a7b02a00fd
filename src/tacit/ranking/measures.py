"""Measures of rankings: precision, recall, average precision, NDCG, search length; with bootstrap intervals.

Every measure takes a *ranking*, (queries, k) numbers of items as `rank` returns them (−1 for none), and *relevance*, a
(queries, items) table, NaN where an item was not judged. An item is relevant if its relevance is above zero. For judged
rows relevance is the grades of the rows, and ``group`` the number of rows per query, or ``qid`` a query id per row. A
measure returns one number per query, NaN for queries without a relevant item; `estimate` takes their mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import number, numbers, one_of, random_numbers, shorten, whole_number
from tacit.ranking.judgements import read_groups, read_query_sizes, read_whole_numbers

__all__ = [
    "Estimate", "average_precision", "compare", "estimate", "ndcg", "precision_at", "precision_recall", "recall_at",
    "search_length",
]  # fmt: skip


class Estimate(NamedTuple):
    """A mean over queries with its bootstrap interval; for a comparison also the p-value of a paired test."""

    mean: float
    low: float
    high: float
    n: int
    p: float = float("nan")

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


class _Judged(NamedTuple):
    """The relevance of ranked items in their order, and all relevances of each query, unjudged ones as zero."""

    ranked: Array
    table: Array


def precision_at(ranking: Any, relevance: Any, k: int, *, group: Any = None, qid: Any = None) -> Array:
    """The share of relevant items among the first k.

    >>> precision_at([[2, 0, 1]], [[1, 0, 3]], k=2)
    array([1.])
    """
    judged = _read(ranking, relevance, read_query_sizes(group, qid, relevance), k)
    found = (judged.ranked[:, : int(k)] > 0).sum(axis=1) / int(k)
    return _where_relevant(judged, found)


def recall_at(ranking: Any, relevance: Any, k: int, *, group: Any = None, qid: Any = None) -> Array:
    """The share of the relevant items that are among the first k.

    >>> recall_at([[2, 0, 1]], [[1, 0, 3]], k=1)
    array([0.5])
    """
    judged = _read(ranking, relevance, read_query_sizes(group, qid, relevance), k)
    return _where_relevant(judged, (judged.ranked[:, : int(k)] > 0).sum(axis=1) / _n_relevant(judged))


def average_precision(ranking: Any, relevance: Any, *, group: Any = None, qid: Any = None) -> Array:
    """The mean over all relevant items of the precision at their rank; those that were not ranked count zero.

    >>> average_precision([[2, 1, 0]], [[1, 0, 3]]).round(3)
    array([0.833])
    """
    judged = _read(ranking, relevance, read_query_sizes(group, qid, relevance))
    hits = judged.ranked > 0
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return _where_relevant(judged, (precision * hits).sum(axis=1) / _n_relevant(judged))


def ndcg(
    ranking: Any, relevance: Any, k: int | None = None, *, gain: str = "linear", group: Any = None, qid: Any = None
) -> Array:
    """The normalised discounted cumulative gain of the first k: gain / log₂(1 + rank), relative to the best ranking.

    Parameters
    ----------
    ranking, relevance, group : as in all measures; relevance is not negative
    k : None for all that were ranked
    gain : "linear", as scikit-learn has it, or "exponential" (2^grade − 1), as LETOR and LightGBM have it

    >>> ndcg([[0, 2, 1]], [[1, 0, 3]], k=3).round(3)
    array([0.797])
    """
    one_of("gain", gain, ("linear", "exponential"))
    judged = _read(ranking, relevance, read_query_sizes(group, qid, relevance), k)
    if judged.table.min(initial=0) < 0:
        raise ValueError(f"relevance must not be negative for NDCG, got {judged.table.min()}; shift it to 0")
    most = judged.ranked.shape[1] if k is None else int(k)
    discounts = 1 / np.log2(np.arange(max(most, judged.table.shape[1])) + 2)
    best = -np.sort(-judged.table, axis=1)[:, :most]
    got = _gains(judged.ranked[:, :most], gain) @ discounts[: min(most, judged.ranked.shape[1])]
    return _where_relevant(judged, got / np.maximum(_gains(best, gain) @ discounts[: best.shape[1]], 1e-300))


def search_length(ranking: Any, relevance: Any, r: int, *, group: Any = None, qid: Any = None) -> Array:
    """The number of items down to the r-th relevant one; NaN for queries that have fewer (Cooper's search length).

    >>> search_length([[2, 1, 0]], [[1, 0, 3]], r=2)
    array([3.])
    """
    r = whole_number("r", r)
    judged = _read(ranking, relevance, read_query_sizes(group, qid, relevance))
    length = (np.cumsum(judged.ranked > 0, axis=1) < r).sum(axis=1) + 1.0
    has_enough = (judged.table > 0).sum(axis=1) >= r
    short = np.flatnonzero(has_enough & (length > judged.ranked.shape[1]))
    if short.size:
        raise ValueError(
            f"query {short[0]} has fewer than {r} relevant items among the {judged.ranked.shape[1]} that were ranked; "
            "raise k of rank, up to the number of items"
        )
    return np.where(has_enough, length, np.nan)


def precision_recall(ranking: Any, relevance: Any, *, group: Any = None, qid: Any = None) -> tuple[Array, Array]:
    """(k,) mean precision and recall at each rank, over queries that have relevant items."""
    judged = _read(ranking, relevance, read_query_sizes(group, qid, relevance))
    kept = (judged.table > 0).any(axis=1)
    if not kept.any():
        raise ValueError("relevance is not above 0 for any item, so precision and recall are not defined")
    hits = np.cumsum(judged.ranked[kept] > 0, axis=1)
    precision = hits / np.arange(1, hits.shape[1] + 1)
    return precision.mean(axis=0), (hits / _n_relevant(judged)[kept, None]).mean(axis=0)


def estimate(values: Any, *, level: float = 0.95, n_bootstrap: int = 2000, random_state: Any = 0) -> Estimate:
    """The mean over queries, those without a value left out, and its percentile bootstrap interval.

    >>> found = estimate([0.5, 0.7, float("nan"), 0.6])
    >>> round(found.mean, 3), found.n, found.low <= found.mean <= found.high
    (0.6, 3, True)
    """
    level = number("level", level, "a share between 0 and 1", lambda share: 0 < share < 1)
    n_bootstrap = whole_number("n_bootstrap", n_bootstrap, 1, 1_000_000)
    known = numbers("values", values)
    known = known[~np.isnan(known)]
    if known.ndim != 1 or not known.size:
        raise ValueError(f"values must be one number per query, not all NaN, got {shorten(values)}")
    rng = random_numbers(random_state)
    means = np.array([known[rng.randint(known.size, size=known.size)].mean() for _ in range(n_bootstrap)])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(known.mean()), float(low), float(high), int(known.size))


def compare(
    values: Any, others: Any, *, level: float = 0.95, n_bootstrap: int = 2000, random_state: Any = 0
) -> Estimate:
    """The mean difference of two rankings by query, its interval, and the p-value of Wilcoxon's signed-rank test.

    >>> compare([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0]).mean
    1.5
    """
    from scipy.stats import wilcoxon

    first, second = numbers("values", values), numbers("others", others)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"values and others must be one number per query, got shapes {first.shape} and {second.shape}")
    differences = first - second
    found = estimate(differences, level=level, n_bootstrap=n_bootstrap, random_state=random_state)
    known = differences[~np.isnan(differences)]
    p = float(wilcoxon(known, method="approx").pvalue) if known.any() else 1.0
    return found._replace(p=p)


def _read(ranking: Any, relevance: Any, group: Any, k: Any = None) -> _Judged:
    if k is not None:
        whole_number("k", k)
    order = read_whole_numbers(ranking)
    if order.ndim != 2 or order.dtype.kind not in "iu":
        raise ValueError(f"ranking must be a (queries, k) array of item numbers, see rank, got {shorten(ranking)}")
    if group is not None:
        grades, offsets = read_groups(relevance, group)
        sizes = np.diff(offsets)
        table = np.full((sizes.size, sizes.max(initial=1)), np.nan)
        is_in = np.arange(table.shape[1]) < sizes[:, None]
        table[is_in] = grades
        order = np.where(order >= 0, order - offsets[: len(order), None], -1) if len(order) == sizes.size else order
    else:
        table = numbers("relevance", relevance, "a (queries, items) table of numbers")
    if table.ndim != 2 or len(table) != len(order):
        raise ValueError(f"ranking has {len(order)} rows and relevance has shape {table.shape}; give one row per query")
    if order.size and not -1 <= order.min() <= order.max() < table.shape[1]:
        raise ValueError(f"ranking must have items from -1 to {table.shape[1] - 1}, got {order.min()} to {order.max()}")
    if np.isinf(table).any():
        raise ValueError("relevance contains infinity; give finite numbers, or NaN for items that were not judged")
    listed = np.sort(np.where(order >= 0, order, table.shape[1] + np.arange(order.shape[1])), axis=1)
    for q in np.flatnonzero((listed[:, 1:] == listed[:, :-1]).any(axis=1)):
        raise ValueError(f"the ranking of query {q} contains an item twice")
    filled = np.where(np.isnan(table), 0.0, table)
    ranked = np.where(order >= 0, np.take_along_axis(filled, np.maximum(order, 0), axis=1), 0.0)
    return _Judged(ranked, filled)


def _gains(values: Array, gain: str) -> Array:
    return values if gain == "linear" else np.exp2(values) - 1


def _n_relevant(judged: _Judged) -> Array:
    return np.asarray(np.maximum((judged.table > 0).sum(axis=1), 1))


def _where_relevant(judged: _Judged, values: Array) -> Array:
    return np.where((judged.table > 0).any(axis=1), values, np.nan)

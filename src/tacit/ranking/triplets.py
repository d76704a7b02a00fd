"""`Triplets`: "for query q item a is above item b", millions of them in a few numbers per query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, check_offsets, is_table
from tacit.data.parameters import numbers, shorten, whole_number
from tacit.data.reading import MAX_BYTES
from tacit.ranking.judgements import (
    MAX_GAIN,
    check_rows,
    grade_all,
    grade_within_queries,
    read_gains,
    read_groups,
    read_itself,
    read_query_sizes,
    read_svmlight,
    read_whole_numbers,
    sample_items,
    tag_relevance,
)
from tacit.runtime.archive import storable

MAX_QUERIES = 10**8
"""Queries, at most: each takes memory, and a larger number is almost certainly a typo."""

MAX_LISTED = 200_000_000
"""Triplets that `Triplets.to_array` lists, at most: 4.8 GB."""


class JudgedRows(NamedTuple):
    """The contents of a file of judged rows: features, grades, the number of rows per query, and the triplets."""

    X: Array
    y: Array
    group: Array
    triplets: Triplets


@storable
@dataclass(frozen=True, eq=False)
class Triplets:
    """Constraints ⟨q, a, b⟩, "for query q item a is above item b", kept without listing them.

    Every query has a short list of items. Either every item has a grade, and items of a higher grade are above those of
    a lower one. Then the best K items and L others, K + L numbers, stand for K · L triplets. Or triplets are listed, as
    positions in that list. Make them with one of the ``from_`` methods.

    Parameters
    ----------
    offsets : (queries + 1,) where the items of each query begin in ``items``
    items : the number of each item
    grades : the grade of each item within its query, 0, 1, …; None where triplets are listed
    above, below : positions in ``items`` of the listed triplets, sorted by query; None where there are grades
    gains : the gain of each item, a whole number that rises with its grade: a triplet counts as the difference of the
        gains of its two items. None where all triplets count alike

    >>> Triplets.from_array([[0, 5, 3], [0, 5, 4], [1, 2, 5]])
    Triplets(3 of 2 queries, 5 items to compare)
    >>> relevance = np.array([[3.0, 0, 1, 0, 2], [0, 0, 0, 0, 1]])
    >>> Triplets.from_relevance(relevance).to_array().tolist()[:3]
    [[0, 0, 1], [0, 0, 2], [0, 0, 3]]
    >>> len(Triplets.from_relevance(relevance, top=1, others=2))
    4
    """

    offsets: Array
    items: Array
    grades: Array | None = None
    above: Array | None = None
    below: Array | None = None
    gains: Array | None = None

    @classmethod
    def from_array(cls, triplets: Any, n_queries: int | None = None) -> Triplets:
        """From an (m, 3) array of whole numbers: query, the item above, the item below.

        Parameters
        ----------
        triplets : the array
        n_queries : number of queries; None for one more than the largest number
        """
        table = _whole_table(triplets)
        most = int(table[:, 0].max(initial=-1)) + 1
        remedy = "number the queries from 0 without gaps"
        n = whole_number("n_queries", most if n_queries is None else n_queries, 0, MAX_QUERIES, remedy=remedy)
        if most > n:
            raise ValueError(f"triplets have query {most - 1}, but queries are numbered from 0 to {n - 1}")
        same = np.flatnonzero(table[:, 1] == table[:, 2])
        if same.size:
            raise ValueError(f"triplet {same[0]} has item {table[same[0], 1]} above itself; drop the triplet")
        table = table[np.argsort(table[:, 0], kind="stable")]
        width = int(table[:, 1:].max(initial=0)) + 1
        keys, positions = np.unique(table[:, :1] * width + table[:, 1:], return_inverse=True)
        positions = positions.reshape(-1, 2)
        offsets = np.searchsorted(keys // width, np.arange(n + 1))
        return cls(offsets, keys % width, None, positions[:, 0].copy(), positions[:, 1].copy())

    @classmethod
    def from_relevance(
        cls,
        relevance: Any,
        *,
        top: int | None = None,
        others: int | None = None,
        itself: Any = None,
        random_state: Any = 0,
    ) -> Triplets:
        """From a (queries, items) table of relevances, higher is better; NaN where an item was not judged.

        Parameters
        ----------
        relevance : the table
        top, others : None for all pairs of different relevance. Numbers K and L: the K most relevant items, each above
            L items that are drawn from those less relevant than all of these. A query whose items are all equally
            relevant gets no triplet
        itself : per query its own number among the items, which is left out; −1 for none. None for no query
        random_state : seed of the draw
        """
        table = numbers("relevance", relevance, "a (queries, items) table of numbers")
        if table.ndim != 2:
            raise ValueError(f"relevance must be a (queries, items) table, got shape {table.shape}")
        if np.isinf(table).any():
            q, i = np.argwhere(np.isinf(table))[0]
            raise ValueError(f"relevance[{q}, {i}] is infinite; give a finite number, or NaN for an item to leave out")
        if (top is None) != (others is None):
            raise ValueError(f"give both top and others, or neither; got top={shorten(top)}, others={shorten(others)}")
        own = read_itself(itself, *table.shape)
        if top is None:
            return cls(*grade_all(table, own))
        return cls(*sample_items(lambda rows: table[rows], table.shape, (top, others), own, random_state))

    @classmethod
    def from_tags(
        cls,
        query_tags: Any,
        item_tags: Any,
        *,
        top: int = 10,
        others: int = 16,
        overlap: str = "jaccard",
        itself: Any = None,
        random_state: Any = 0,
    ) -> Triplets:
        """From tags: the more two sets overlap, the more relevant; an item without a common tag is never above.

        Parameters
        ----------
        query_tags, item_tags : a list of tags each; or indicator matrices with a column per tag, dense or sparse
        overlap : "jaccard" is common tags by all tags of the two, "count" is the number of common tags
        top, others, itself, random_state : as in `from_relevance`

        >>> triplets = Triplets.from_tags([["sea", "sky"]], [["sky"], ["sea", "sky"], ["car"]], top=1, others=2)
        >>> sorted(triplets.to_array().tolist())
        [[0, 1, 0], [0, 1, 2]]
        """
        relevance, shape = tag_relevance(query_tags, item_tags, overlap)
        return cls(*sample_items(relevance, shape, (top, others), read_itself(itself, *shape), random_state, least=0.0))

    @classmethod
    def from_similarity(
        cls,
        similarity: Any,
        *,
        top: int = 10,
        others: int = 16,
        n_queries: int | None = None,
        itself: Any = None,
        random_state: Any = 0,
    ) -> Triplets:
        """From similarities that are taken as the truth: the nearest items above some of the others.

        Parameters
        ----------
        similarity : a (queries, items) table; or a function that takes a slice of queries and returns their rows of
            it, so that the table never exists as a whole
        n_queries : number of queries, for a function
        top, others, itself, random_state : as in `from_relevance`
        """
        if callable(similarity):
            n = whole_number("n_queries", n_queries, 0, remedy="a function of slices does not know it")
            source = check_rows(similarity)
            shape = (n, source(slice(0, min(n, 1))).shape[1])
        else:
            table = numbers("similarity", similarity, "a (queries, items) table of numbers")
            source = check_rows(lambda rows: table[rows])
            shape = (table.shape[0], source(slice(None)).shape[1]) if table.ndim else (0, 0)
        return cls(*sample_items(source, shape, (top, others), read_itself(itself, *shape), random_state))

    @classmethod
    def from_groups(cls, y: Any, group: Any = None, *, qid: Any = None, gain: str | None = None) -> Triplets:
        """From graded rows, those of one query one after the other; items are the numbers of rows.

        Parameters
        ----------
        y : (rows,) grades, higher is better
        group : the number of rows per query, as in LightGBM
        qid : a query id per row, as in XGBoost, in place of group
        gain : None, "linear" or "exponential": a triplet counts as the difference of the gains of its items, which are
            the grades, or 2^grade − 1; grades are then whole numbers

        >>> Triplets.from_groups([2, 0, 1, 1], qid=[7, 7, 7, 8], gain="exponential").weight_per_query
        array([6, 0])
        """
        grades, offsets = read_groups(y, read_query_sizes(group, qid, y))
        graded = grade_within_queries(offsets, np.arange(grades.size), grades)
        return cls(*graded, gains=read_gains(grades, gain))

    @staticmethod
    def from_svmlight(path: Any, sizes: Any = None, *, max_bytes: int = MAX_BYTES) -> JudgedRows:
        """Read a file of judged rows: a grade, ``qid:`` and features per line, the format of LETOR.

        Parameters
        ----------
        path : the file, unpacked if its name ends in ``.gz``
        sizes : rows per query for a file without ``qid:``, as numbers, or as a file with one per line
        max_bytes : bytes that are read at the most; the table may have 2^28 numbers
        """
        X, y, group = read_svmlight(path, sizes, max_bytes)
        return JudgedRows(X, y, group, Triplets.from_groups(y, group))

    @property
    def n_queries(self) -> int:
        return self.offsets.size - 1

    @cached_property
    def per_query(self) -> Array:
        """(queries,) the number of triplets of each query."""
        if self.grades is None:
            return np.diff(self.pair_offsets)
        n_grades = self.n_grades
        starts = np.concatenate([[0], np.cumsum(n_grades)])
        owner = np.repeat(np.arange(self.n_queries), np.diff(self.offsets))
        sizes = np.bincount(starts[owner] + self.grades, minlength=starts[-1]).astype(np.int64)
        before = np.concatenate([[0], np.cumsum(sizes)])
        pairs = np.concatenate([[0], np.cumsum(sizes * before[:-1])])
        # Σ_g size_g · (items below g): what lies before the query is subtracted
        rows = np.diff(before[starts])
        return np.asarray(pairs[starts[1:]] - pairs[starts[:-1]] - rows * before[starts[:-1]])

    @cached_property
    def weight_per_query(self) -> Array:
        """(queries,) the weights of the triplets of each query, summed; without gains their number."""
        if self.gains is None:
            return self.per_query
        total: Array = np.zeros(self.n_queries, dtype=np.int64)
        owner = np.repeat(np.arange(self.n_queries), np.diff(self.offsets))
        for steps, high in self.gain_steps():
            n_high = np.bincount(owner, high, minlength=self.n_queries).astype(np.int64)
            total = total + steps * n_high * (np.diff(self.offsets) - n_high)
        return np.asarray(total)

    def gain_steps(self) -> Iterator[tuple[Array, Array]]:
        """For every grade g from 1: (queries,) by how much the gain of g exceeds that of g − 1, and which items have
        grade g or more.

        The weight of a triplet is the sum of the steps between the grades of its items: every step is a problem with
        two grades.
        """
        if self.grades is None or self.gains is None:
            raise ValueError("gain_steps needs grades and gains; make triplets by from_groups(..., gain=...)")
        n, highest = self.n_queries, int(self.n_grades.max(initial=1))
        owner = np.repeat(np.arange(n), np.diff(self.offsets))
        levels = np.zeros((n, highest), dtype=np.int64)
        levels[owner, self.grades] = self.gains
        for grade in range(1, highest):
            steps = np.where(grade < self.n_grades, levels[:, grade] - levels[:, grade - 1], 0)
            yield steps, (self.grades >= grade).astype(np.int64)

    @cached_property
    def n_grades(self) -> Array:
        """(queries,) the number of different grades of the items of a query."""
        if self.grades is None:
            raise ValueError("n_grades needs grades, but these triplets are listed")
        counts = np.zeros(self.n_queries, dtype=np.int64)
        filled = np.flatnonzero(np.diff(self.offsets))
        counts[filled] = np.maximum.reduceat(self.grades, self.offsets[filled]) + 1 if filled.size else 0
        return counts

    @cached_property
    def pair_offsets(self) -> Array:
        """(queries + 1,) where the listed triplets of each query begin."""
        owner = np.searchsorted(self.offsets, self.listed_pairs()[0], side="right") - 1
        return np.searchsorted(owner, np.arange(self.n_queries + 1))

    def listed_pairs(self) -> tuple[Array, Array]:
        """The positions of the better and of the worse item of every listed triplet."""
        if self.above is None or self.below is None:
            raise ValueError("these triplets have grades and are not listed; use to_array()")
        return self.above, self.below

    def __len__(self) -> int:
        return int(self.per_query.sum())

    def __repr__(self) -> str:
        queries = np.count_nonzero(self.per_query)
        return f"Triplets({len(self)} of {queries} queries, {self.items.size} items to compare)"

    def take(self, queries: Any) -> Triplets:
        """The triplets of these queries, in this order: an array of query numbers, or a mask."""
        chosen = np.asarray(queries)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        rows, offsets = find_rows(self.offsets, chosen)
        if self.grades is not None:
            gains = None if self.gains is None else self.gains[rows]
            return Triplets(offsets, self.items[rows], self.grades[rows], gains=gains)
        above, below = self.listed_pairs()
        listed, cuts = find_rows(self.pair_offsets, chosen)
        shift = np.repeat(offsets[:-1] - self.offsets[chosen], np.diff(cuts))
        return Triplets(offsets, self.items[rows], None, above[listed] + shift, below[listed] + shift)

    def to_array(self) -> Array:
        """All triplets, listed: an (m, 3) array of query, item above, item below."""
        if len(self) > MAX_LISTED:
            raise MemoryError(f"to_array lists at most {MAX_LISTED} triplets, got {len(self)}; take fewer queries")
        if self.grades is None:
            above, below = self.listed_pairs()
            owner = np.repeat(np.arange(self.n_queries), np.diff(self.pair_offsets))
            return np.column_stack([owner, self.items[above], self.items[below]])
        parts = [np.zeros((0, 3), dtype=np.int64)]
        for q in np.flatnonzero(self.per_query):
            own = slice(self.offsets[q], self.offsets[q + 1])
            items, grades = self.items[own], self.grades[own]
            a, b = np.nonzero(grades[:, None] > grades)
            parts.append(np.column_stack([np.full(a.size, q), items[a], items[b]]))
        return np.concatenate(parts)

    def check(self) -> None:
        """Refuse arrays that do not fit each other: kernels use them as indices."""
        for name in ("offsets", "items"):
            _check_whole(name, getattr(self, name))
        check_offsets(self.offsets, self.items.size, "offsets of triplets")
        if self.items.min(initial=0) < 0:
            raise ValueError(f"items of triplets must be numbers from 0, got {self.items.min()}")
        if (self.grades is None) == (self.above is None) or (self.above is None) != (self.below is None):
            raise ValueError("triplets must have either grades, or above and below")
        if self.grades is not None:
            _check_whole("grades", self.grades)
            is_dense = self.grades.size == self.items.size and self.grades.min(initial=0) >= 0
            if not is_dense or self.grades.max(initial=0) >= max(self.items.size, 1):
                raise ValueError("grades of triplets must be whole numbers from 0, one per item")
            self._check_gains()
            return
        if self.gains is not None:
            raise ValueError("gains of triplets need grades, but these triplets are listed")
        above, below = self.listed_pairs()
        _check_whole("above", above)
        _check_whole("below", below)
        if above.shape != below.shape:
            raise ValueError(f"above and below of triplets must have one size, got {above.size} and {below.size}")
        for side in (above, below):
            if side.size and not 0 <= side.min() <= side.max() < self.items.size:
                raise ValueError(f"above and below of triplets must be below {self.items.size}, the number of items")
        owner, other = (np.searchsorted(self.offsets, side, side="right") for side in (above, below))
        if not np.array_equal(owner, other) or (np.diff(owner) < 0).any():
            raise ValueError("above and below of a triplet must be items of one query, sorted by query")

    def _check_gains(self) -> None:
        if self.gains is None:
            return
        _check_whole("gains", self.gains)
        gains, grades = self.gains, np.asarray(self.grades)
        if gains.size != grades.size or not 0 <= gains.min(initial=0) <= gains.max(initial=0) <= MAX_GAIN:
            raise ValueError(f"gains of triplets must be whole numbers from 0 to {MAX_GAIN}, one per item")
        owner = np.repeat(np.arange(self.n_queries), np.diff(self.offsets))
        order = np.lexsort((gains, grades, owner))
        is_inside = np.diff(owner[order]) == 0
        if (is_inside & ((np.diff(grades[order]) > 0) != (np.diff(gains[order]) > 0))).any():
            raise ValueError("gains of triplets must rise with the grades of a query, and be one per grade")


def read_triplets(triplets: Any, n_queries: int, n_items: int) -> Triplets:
    """Read triplets of a user and check them against the numbers of queries and items."""
    found = triplets if isinstance(triplets, Triplets) else Triplets.from_array(triplets, n_queries)
    found.check()
    if found.n_queries != n_queries:
        raise ValueError(f"triplets must be of the {n_queries} queries of X, got {found.n_queries}; give n_queries=")
    unknown = np.flatnonzero(found.items >= n_items)
    if unknown.size:
        raise ValueError(f"triplets have item {found.items[unknown[0]]}, but there are only {n_items} items")
    return found


def find_rows(offsets: Array, chosen: Array) -> tuple[Array, Array]:
    """The positions of all entries of the chosen queries, and the offsets of these queries among them."""
    sizes = offsets[chosen + 1] - offsets[chosen]
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(cuts[-1]) + np.repeat(offsets[chosen] - cuts[:-1], sizes), cuts


def _check_whole(name: str, values: Any) -> None:
    if not is_table(values, 1, "i"):
        raise ValueError(f"{name} of triplets must be a vector of whole numbers, got {shorten(values)}")


def _whole_table(triplets: Any) -> Array:
    table = read_whole_numbers(triplets)
    if table.ndim == 2 and not len(table):
        raise ValueError("triplets are empty; give at least one (query, item above, item below)")
    if table.ndim != 2 or table.shape[1] != 3 or table.dtype.kind not in "iu":
        raise ValueError(
            "triplets must be Triplets, or an (m, 3) array of whole numbers: query, item above, item below; "
            f"got {shorten(triplets)}"
        )
    if table.min() < 0:
        raise ValueError(f"triplets must have queries and items numbered from 0, got {table.min()}")
    return table.astype(np.int64)

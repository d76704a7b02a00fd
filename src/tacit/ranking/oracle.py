"""The oracle of ranking: a sample is a query, its output the set of its triplets that count as violated.

With ``Ψ(q, A) = Σ_{(a, b) ∈ A} (k_{q,b} − k_{q,a})`` for a set A of triplets of query q, and as loss the number #A of
triplets in it,

    max_A #A + w·Ψ(q, A) = Σ_{(a, b)} max(0, 1 − w·k_{q,a} + w·k_{q,b}):

the hinge summed over all triplets is the slack of a structured SVM, whose target is the empty set. So every solver of
tacit minimises it, with a certificate. The code of a set is counts: in how many of its triplets each item is the better
one, and in how many the worse. Features and losses follow from these. Counts come from sorting. Where triplets have
weights (gains), #A and the counts are sums of these weights, whole numbers too.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, smallest_integers, span
from tacit.oracle import TARGET, Assignment, Oracle, Task, checksum
from tacit.penalties import Quadratic
from tacit.ranking import counting
from tacit.ranking.triplets import Triplets, find_rows

SORT_COST = 3
"""The cost of a comparison of the sort, in multiplications."""


class RankingOracle:
    """Judged items of queries, and their violated triplets under any weights.

    Parameters
    ----------
    features : (rows, m) the relevances k_{q,a} of the items of `Triplets.items`, row by row
    triplets : every query has at least one
    shares : (queries, classes) the share of each class of a mixture in a query; its weights are then ``shares @ Z``,
        and w is Z, flat. None for one class
    """

    code_offsets: Array
    completes_labels = False
    rescalings = ("margin",)

    def __init__(self, features: Array, triplets: Triplets, shares: Array | None = None) -> None:
        self.table = features
        self.triplets = triplets
        self.shares = shares
        self.n_samples = triplets.n_queries
        self.n_classes = 1 if shares is None else shares.shape[1]
        self.n_params = self.n_classes * features.shape[1]
        self._n_grades = 0 if triplets.grades is None else int(triplets.n_grades.max(initial=2))
        can_win, can_lose = _roles(triplets)
        largest = 1 if triplets.gains is None else int(triplets.gains.max(initial=1))  # weight of a triplet
        self.code_type = smallest_integers(
            int(np.diff(triplets.offsets).max(initial=1)) * largest
            if triplets.grades is not None
            else int(triplets.per_query.max(initial=1))
        )
        places = np.cumsum(np.column_stack([can_win, can_lose]).ravel()).reshape(-1, 2)
        self._better = np.where(can_win, places[:, 0] - 1, -1)
        self._worse = np.where(can_lose, places[:, 1] - 1, -1)
        self.code_offsets = np.concatenate([[0], places[:, 1]])[triplets.offsets]
        n = features.shape[0] / max(self.n_samples, 1)
        self.operations = features.shape[0] * (features.shape[1] + SORT_COST * math.log2(n + 2))
        self._parts: dict[tuple[int, int], RankingOracle] = {}

    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        """The violated triplets of every query, and their hinge losses summed."""
        own = self.part(rows)
        scores = own.score_items(w)
        code, active = own.count(scores, 1.0)
        values = np.empty(own.n_samples)
        counting.sum_hinges(code, scores, own.triplets.offsets, own._better, own._worse, active, values)
        return Assignment(code, values)

    def count(self, scores: Array, margin: float, strict: bool = True) -> tuple[Array, Array]:
        """The triplets whose scores differ by less than the margin (by no more, if not strict), as a code, and their
        number per query; with gains their weight."""
        if self.triplets.gains is not None:
            return self._weigh(scores, margin, strict)
        code = np.zeros(int(self.code_offsets[-1]), dtype=self.code_type)
        active = np.zeros(self.n_samples, dtype=np.int64)
        given, rest = self.triplets, (margin, strict, self._better, self._worse, code, active)
        if given.grades is None:
            above, below = given.listed_pairs()
            counting.count_pairs(scores, given.pair_offsets, above, below, *rest)
        elif self._n_grades == 2:
            counting.count_two_grades(scores, given.offsets, given.grades, *rest)
        else:
            counting.count_graded(scores, given.offsets, given.grades, given.n_grades, *rest)
        return code, active

    def _weigh(self, scores: Array, margin: float, strict: bool) -> tuple[Array, Array]:
        """The same for triplets with gains: the counts of every step between two grades, times the step."""
        given = self.triplets
        owner = np.repeat(np.arange(self.n_samples), np.diff(self.code_offsets))
        code = np.zeros(int(self.code_offsets[-1]), dtype=np.int64)
        active = np.zeros(self.n_samples, dtype=np.int64)
        for steps, high in given.gain_steps():
            counts, number = np.zeros_like(code), np.zeros_like(active)
            counting.count_two_grades(
                scores, given.offsets, high, margin, strict, self._better, self._worse, counts, number
            )
            code += steps[owner] * counts
            active += steps * number
        return code.astype(self.code_type), active

    def score_items(self, w: Array) -> Array:
        """The score of every judged item."""
        if self.shares is None:
            return np.asarray(self.table @ w)
        scores = np.empty(self.table.shape[0])
        counting.score_rows(self.table, self.triplets.offsets, self.shares @ w.reshape(self.n_classes, -1), scores)
        return scores

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        own = self.part(rows)
        coef = own._row_coefficients(code, np.ones(own.n_samples))
        return _sum_by_query(coef * own.score_items(w), own.triplets.offsets)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        own = self.part(rows)
        active = np.zeros(own.n_samples, dtype=np.int64)
        counting.count_active(_without_target(code), own.triplets.offsets, own._better, active)
        return active.astype(np.float64)

    def with_table(self, table: Array) -> RankingOracle:
        """The same triplets with other features of the rows."""
        twin = copy.copy(self)
        twin.table, twin.shares, twin._parts = table, None, {}
        twin.n_classes, twin.n_params = 1, table.shape[1]
        return twin

    def query_slopes(self, weights: Array) -> tuple[float, Array]:
        """Σ of all hinges under weights per query, (queries, columns), and its gradient by each."""
        scores = np.empty(self.table.shape[0])
        counting.score_rows(self.table, self.triplets.offsets, weights, scores)
        code, active = self.count(scores, 1.0)
        slopes = self.features_by_query(code)
        return float(active.sum() + (slopes * weights).sum()), slopes

    def features_by_query(self, code: Array) -> Array:
        """(queries, m) Ψ of every query, before it is divided among classes."""
        sums = np.empty((self.n_samples, self.table.shape[1]))
        counting.sum_rows(
            self.table, self.triplets.offsets, self._row_coefficients(code, np.ones(self.n_samples)), sums
        )
        return sums

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        own = self.part(rows)
        weights = own._row_coefficients(code, coef)
        if own.shares is None:
            return np.asarray(weights @ own.table)
        sums = np.empty((own.n_samples, own.table.shape[1]))
        counting.sum_rows(own.table, own.triplets.offsets, weights, sums)
        return np.asarray((own.shares.T @ sums).ravel())

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ coef_q Ψ(q, code): the target is the empty set, whose features are zero."""
        return self.features(code, coef, rows)

    def accepts(self, code: Array) -> bool:
        """Whether a code could be one of these queries: counts within range, as many better items as worse ones."""
        is_code = (
            isinstance(code, np.ndarray) and code.dtype.kind == "i" and code.shape == (int(self.code_offsets[-1]),)
        )
        if not is_code or code.min(initial=0) < TARGET:
            return False
        counts = _without_target(code).astype(np.int64)
        rows = self._row_coefficients(counts, np.ones(self.n_samples))
        is_even = not _sum_by_query(rows, self.triplets.offsets).any()
        return is_even and bool((self.loss(counts) <= self.triplets.weight_per_query).all())

    def exact(self) -> RankingOracle:
        return self

    def digest(self) -> str:
        given = self.triplets
        gains = [] if given.gains is None else [given.gains]
        return checksum(self.table, given.offsets, given.grades, given.above, given.below, self.shares, *gains)

    def part(self, rows: Rows) -> RankingOracle:
        """The oracle of some of the queries."""
        if rows is None:
            return self
        if not isinstance(rows, slice):
            return self._take(np.asarray(rows))
        first, last = span(rows, self.n_samples)
        if (first, last) == (0, self.n_samples):
            return self
        if (first, last) not in self._parts:
            self._parts[first, last] = self._take(np.arange(first, last))
        return self._parts[first, last]

    def _take(self, queries: Array) -> RankingOracle:
        given = self.triplets
        if queries.size and (np.diff(queries) == 1).all():
            features = self.table[given.offsets[queries[0]] : given.offsets[queries[-1] + 1]]
        else:
            features = self.table[find_rows(given.offsets, queries)[0]]
        return RankingOracle(features, given.take(queries), None if self.shares is None else self.shares[queries])

    def _row_coefficients(self, code: Array, coef: Array) -> Array:
        weights = np.empty(self.table.shape[0])
        counts = _without_target(code)
        counting.row_coefficients(counts, self.triplets.offsets, self._better, self._worse, np.asarray(coef), weights)
        return weights


class Training(NamedTuple):
    """Judged items of queries that have triplets.

    Parameters
    ----------
    features : (rows, m) relevances of the items of ``triplets``, divided by ``scale``
    triplets : of the queries that have any
    queries : (queries, p) features of these queries
    scale : (m,)
    """

    features: Array
    triplets: Triplets
    queries: Array
    scale: Array

    @property
    def size(self) -> int:
        """The number of triplets."""
        return len(self.triplets)

    @property
    def weight(self) -> int:
        """The weights of all triplets, summed; without gains their number."""
        return int(self.triplets.weight_per_query.sum())

    def oracle(self, shares: Array | None = None) -> RankingOracle:
        return RankingOracle(self.features, self.triplets, shares)

    def take(self, queries: Array) -> Training:
        """The part of these queries."""
        part = self.oracle().part(queries)
        return Training(part.table, part.triplets, self.queries[queries], self.scale)


def ranking_task(oracle: RankingOracle, C: float, weight: int) -> Task:
    """The convex task ``½‖z‖² + (C/weight) Σ hinges``: every query is a sample, its target the empty set."""
    target = np.zeros(int(oracle.code_offsets[-1]), dtype=oracle.code_type)
    return Task(cast(Oracle, oracle), np.full(oracle.n_samples, C / weight), target, Quadratic())


def score_judged(training: Training, weights: Array) -> Array:
    """The score of every judged item, under weights (queries, m)."""
    scores = np.empty(len(training.features))
    counting.score_rows(training.features, training.triplets.offsets, np.ascontiguousarray(weights), scores)
    return scores


def count_right(training: Training, weights: Array) -> Array:
    """(queries,) the number of triplets in the right order, under weights (queries, m); equal scores count half."""
    scores = score_judged(training, weights)
    oracle = RankingOracle(training.features, replace(training.triplets, gains=None))
    wrong = oracle.count(scores, 0.0)[1] + oracle.count(scores, 0.0, strict=False)[1]
    return np.asarray(training.triplets.per_query - wrong / 2)


def _roles(triplets: Triplets) -> tuple[Array, Array]:
    """Which rows can be the better item of a triplet, and which the worse."""
    n = triplets.items.size
    if triplets.grades is not None:
        highest = np.repeat(triplets.n_grades - 1, np.diff(triplets.offsets))
        return triplets.grades > 0, triplets.grades < highest
    can_win, can_lose = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    can_win[triplets.above] = True
    can_lose[triplets.below] = True
    return can_win, can_lose


def _without_target(code: Array) -> Array:
    """The empty set where a code says "the target"."""
    return np.where(code == TARGET, 0, code) if code.min(initial=0) < 0 else code


def _sum_by_query(values: Array, offsets: Array) -> Array:
    """Sums over the rows of every query; each must have rows."""
    return np.asarray(np.add.reduceat(values, offsets[:-1])) if offsets.size > 1 else np.zeros(0)

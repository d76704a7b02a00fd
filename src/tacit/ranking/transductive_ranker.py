"""`TransductiveRanker`: a ranker for every query, from the triplets of the training queries next to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import number, whole_number
from tacit.ranking.global_ranker import check_solving, ranking_task, warn_unless_converged
from tacit.ranking.ranker import Ranker, Training, check_table, read_training
from tacit.ranking.relevances import Relevances
from tacit.ranking.triplets import Triplets
from tacit.solvers import Bundle, Solver, minimise

__all__ = ["TransductiveRanker"]


class TransductiveRanker(Ranker):
    """A weight vector for each query that is asked, learned when it is asked from its nearest training queries.

    The objective is that of `GlobalRanker`, on the triplets of the neighbours alone. Neighbours are the nearest in
    standardised query features. A query costs a small fit, some milliseconds; so this is a baseline for `MixtureRanker`
    rather than an index to serve from.

    Parameters
    ----------
    relevances, C, standardise, solver, tol, max_iter : as in `GlobalRanker`
    n_neighbors : how many training queries a query learns from
    verbose : 1 shows progress on a terminal when the first fit takes longer than a second

    Attributes
    ----------
    coef_ : (m,) the weights of all training queries together, from which every small fit starts
    objective_, bound_, status_ : of that fit
    training_ : the judged rows, their triplets and the features of queries that small fits take their part of
    scale_, items_ : as in `GlobalRanker`

    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.random((60, 3)), [6] * 10
    >>> ranker = TransductiveRanker(n_neighbors=3).fit(X, X[:, 0] > 0.5, group=group)
    >>> ranker.rank(X, 2, group=group).shape
    (10, 2)
    """

    def __init__(
        self,
        relevances: Relevances | None = None,
        C: float = 100.0,
        *,
        n_neighbors: int = 50,
        standardise: bool = True,
        solver: Solver | None = None,
        tol: float = 1e-2,
        max_iter: int = 1000,
        verbose: int = 1,
    ) -> None:
        self.relevances = relevances
        self.C = C
        self.n_neighbors = n_neighbors
        self.standardise = standardise
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, triplets: Any = None, *, group: Any = None, query_features: Any = None
    ) -> TransductiveRanker:
        """Learn from queries X, items y and triplets; or from judged rows X, their grades y and group.

        Parameters are those of `GlobalRanker.fit`; ``query_features`` are what neighbours are found by, (queries, p):
        None for the features of the queries, or the mean of their judged rows.
        """
        self._check_parameters()
        training = read_training(self, X, y, triplets, group, query_features)
        solution = self._solve(training, None, self.verbose)
        self._keep(training, y, group)
        self.coef_ = solution.w / self.scale_
        self.objective_, self.bound_, self.status_ = solution.objective, solution.bound, solution.status
        given = training.triplets
        self.query_mean_ = training.queries.mean(axis=0)
        self.query_scale_ = spread(training.queries)
        self.training_: dict[str, Any] = {
            "features": training.features.copy(),  # they may be the caller's own rows
            "queries": (training.queries - self.query_mean_) / self.query_scale_,
            "triplets": Triplets(given.offsets, given.items, given.grades, given.above, given.below),
        }
        warn_unless_converged(self, solution)
        return self

    def query_weights(self, query_features: Array) -> Array:
        from sklearn.neighbors import NearestNeighbors

        stored = self.training_
        known = stored["queries"]
        asked = check_query_width(query_features, self.query_mean_)
        training = Training(stored["features"], stored["triplets"], known, self.scale_)
        k = min(int(self.n_neighbors), len(known))
        near = NearestNeighbors(n_neighbors=k).fit(known)
        places = near.kneighbors((asked - self.query_mean_) / self.query_scale_, return_distance=False)
        start = self.coef_ * self.scale_
        sets, which = np.unique(np.sort(places, axis=1), axis=0, return_inverse=True)
        found = np.empty((len(sets), self.n_relevances_))
        for i, chosen in enumerate(sets):
            found[i] = self._solve(training.take(chosen), start, 0).w
        return np.asarray(found[which.ravel()] / self.scale_)

    def _solve(self, training: Training, start: Array | None, verbose: int) -> Any:
        task = ranking_task(training.oracle(), float(self.C), training.size)
        solver = self.solver or Bundle()
        return minimise(task, solver, tol=float(self.tol), max_iter=int(self.max_iter), start=start, verbose=verbose)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_solving(self)
        whole_number("n_neighbors", self.n_neighbors)

    def _check_facts(self) -> None:
        check_table("coef_", self.coef_, (self.n_relevances_,))
        number("objective_", self.objective_, "a finite number")
        number("bound_", self.bound_, "a finite number")
        stored = self.training_
        if not isinstance(stored, dict) or set(stored) != {"features", "queries", "triplets"}:
            raise ValueError("training_ has features, queries and triplets")
        triplets = stored["triplets"]
        if not isinstance(triplets, Triplets):
            raise ValueError("training_ holds no Triplets")
        triplets.check()
        if not triplets.n_queries or not triplets.per_query.all():
            raise ValueError("every query of training_ has triplets")
        p = self.query_mean_.size if isinstance(self.query_mean_, np.ndarray) else 0
        check_table("query_mean_", self.query_mean_, (p,))
        check_table("query_scale_", self.query_scale_, (p,))
        check_table("the features of training_", stored["features"], (triplets.items.size, self.n_relevances_))
        check_table("the queries of training_", stored["queries"], (triplets.n_queries, p))


def spread(table: Array) -> Array:
    """The standard deviation of every column; one where it is constant."""
    deviation = table.std(axis=0)
    return np.where(deviation > 1e-12 * np.abs(table).max(axis=0, initial=0), deviation, 1.0)


def check_query_width(query_features: Array, mean: Array) -> Array:
    """Features of queries, refused unless there are as many as in training."""
    if query_features.shape[1] != mean.size:
        raise ValueError(f"queries have {query_features.shape[1]} features, and the ranker learned from {mean.size}")
    return query_features

"""Rankers with a convex objective: `GlobalRanker` (one for all queries), `TransductiveRanker` (one per query)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.specs import choice, either, estimator, finite, parameter, positive, switch, whole
from tacit.learners.preparation import check_history, check_long_run
from tacit.oracle import Oracle, Task
from tacit.ranking.judgements import read_query_sizes
from tacit.ranking.oracle import RankingOracle, Training, ranking_task
from tacit.ranking.ranker import Ranker, check_query_width, check_table, column_scale, read_training
from tacit.ranking.relevances import Relevances
from tacit.ranking.selection import choose_C
from tacit.ranking.triplets import Triplets
from tacit.runtime import Status, parallel
from tacit.runtime.checkpoint import Checkpoint
from tacit.solvers import Bundle, Solution, Solver, Step, minimise
from tacit.solvers.loop import fingerprint_task


def _check_solver(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, type) or not hasattr(value, "step")):
        raise TypeError(f"{name} must be None or a solver such as tacit.solvers.Bundle(), got {shorten(value)}")


@estimator
class GlobalRanker(Ranker):
    """RankSVM, one weight vector for all queries: ``R(q, a) = z·k_{q,a}``, hinge loss on triplets (Joachims 2002).

    Minimises ``½‖z‖² + (C/T) Σ max(0, 1 − z·k_{q,a} + z·k_{q,b})`` over all T triplets ⟨q, a, b⟩. The optimum is
    certified to lie between `bound_` and `objective_`. Triplets are never listed: a pass takes O(n log n) for a query
    with n judged items (Joachims 2005).

    Parameters
    ----------
    relevances : how queries and items are compared, for retrieval; None for `Relevances()`. Judged rows need none
    C : factor of the mean loss against ½‖z‖². With a sum over triplets and λ/2 ‖z‖², as in the literature, λ = T/C.
        "cv" chooses it among nine values from 0.01 to 100 by five folds of the queries. It measures NDCG at 10 where
        there is a gain, else the share of triplets in the right order
    standardise : divide every relevance by its standard deviation within a query before learning, pooled over all
        queries. "query" first divides by that of each query by itself, which needs judged rows
    gain : for judged rows, what a triplet counts: None for one each, "linear" for the difference of the two grades,
        "exponential" for the difference of 2^grade, as NDCG counts. The loss is then a weighted mean
    solver : None for `tacit.solvers.Bundle()`, or another solver
    tol : relative gap to reach; see `tacit.solvers.minimise`
    max_iter : iterations, at most
    checkpoint, resume : a file for the state of a long run, and whether to continue from it
    n_jobs : threads that share the queries; the result has the same bits
    verbose : 1 shows progress on a terminal when a fit takes longer than a second
    callbacks : functions called with every `tacit.solvers.Step`; one that returns True ends the fit. Ctrl-C ends it
        too, with a warning, and keeps the best ranker

    Attributes
    ----------
    coef_ : (m,) the weights z of the relevances as they are given; after ``standardise="query"`` as divided
    scale_ : (m,) what relevances were divided by in training; the penalty is on ``coef_ * scale_``
    objective_, bound_, gap_, status_, n_iter_, history_ : the certificate and how it was reached
    items_ : the items of `fit`, by family; None after judged rows
    n_triplets_ : number of triplets
    C_, cv_scores_ : the C that was given or chosen; the mean quality of each of the nine, or None

    >>> rng = np.random.default_rng(0)
    >>> items, queries = rng.random((50, 4)), rng.random((20, 4))
    >>> truth = -np.abs(queries[:, None, :2] - items[None, :, :2]).sum(axis=2)  # the last two columns do not matter
    >>> from tacit.ranking import Relevances, Triplets
    >>> triplets = Triplets.from_similarity(truth, top=5, others=10)
    >>> relevances = Relevances({"right": [0, 1], "wrong": [2, 3]}, ["l1"])
    >>> ranker = GlobalRanker(relevances).fit(queries, items, triplets)
    >>> bool(ranker.coef_[0] > 10 * abs(ranker.coef_[1])), ranker.score(queries, None, triplets) > 0.99
    (True, True)
    """

    relevances: Relevances | None = None
    C: float | str = parameter(either("cv", positive), default=100.0)
    _: KW_ONLY
    standardise: bool | str = parameter(either("query", switch), default=True)
    gain: str | None = parameter(choice(None, "linear", "exponential"), default=None)
    solver: Solver | None = parameter(_check_solver, default=None)
    tol: float = parameter(positive, default=1e-3)
    max_iter: int = parameter(whole(), default=1000)
    checkpoint: Any = None
    resume: bool = False
    n_jobs: int | None = None
    verbose: int = 1
    callbacks: Iterable[Callable[[Step], Any]] | None = None
    learned: ClassVar = {
        "objective_": finite,
        "bound_": finite,
        "n_iter_": whole(0),
        "n_triplets_": whole(0),
        "history_": check_history,
    }

    needs_groups = False

    def fit(
        self, X: Any, y: Any, triplets: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None
    ) -> Self:
        """Learn from queries X, items y and triplets; or from judged rows X, their grades y and group.

        Parameters
        ----------
        X : features of queries: a table, or a dict of tables by family; or judged rows
        y : features of items; or the grades of the rows
        triplets : `Triplets`, or an (m, 3) array of query, item above, item below
        group : the number of rows per query, for judged rows
        qid : a query id per row, in place of group; rows of one query are adjacent
        query_features : ignored; the other rankers use them
        """
        self.check_parameters()
        group = read_query_sizes(group, qid, X)
        training = read_training(self, X, y, triplets, group, query_features)
        C, cv_scores = _find_C(self, training)
        with parallel(cast(Oracle, training.oracle()), self.n_jobs) as shared:
            task = ranking_task(cast(RankingOracle, shared), C, training.weight)
            checkpoint = self._open_checkpoint(task)
            solution = _solve(self, task, self.verbose, callbacks=self.callbacks or (), checkpoint=checkpoint)
        self._keep(training, y, group)
        self.coef_: Array = solution.w / self.scale_
        self.C_, self.cv_scores_ = C, cv_scores
        self.n_triplets_ = training.size
        self.objective_, self.bound_ = solution.objective, solution.bound
        self.status_, self.history_ = solution.status, solution.history
        self.n_iter_ = max(solution.history[-1].iteration, 1)
        warn_unless_converged(self, solution)
        return self

    @property
    def gap_(self) -> float:
        """How far `objective_` may be from the optimum."""
        return max(self.objective_ - self.bound_, 0.0)

    def query_weights(self, query_features: Array) -> Array:
        return np.tile(self.coef_, (len(query_features), 1))

    def _open_checkpoint(self, task: Task) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings = {"C": repr(self.C), "solver": repr(self.solver)}
        return Checkpoint(self.checkpoint, {**fingerprint_task(task), **settings}, self.resume)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_long_run(self)

    def check_learned(self) -> None:
        super().check_learned()
        check_table("coef_", self.coef_, (self.n_relevances_,))


MAX_STEPS_PER_QUERY = 10_000
"""Steps of a fit at prediction time, whatever ``max_iter`` is: a model file may ask for any number."""


@estimator
class TransductiveRanker(Ranker):
    """A weight vector per query, learned at prediction time from its nearest training queries.

    The objective is that of `GlobalRanker`, on the triplets of the neighbours alone. Neighbours are the nearest in
    standardised query features. A query costs a small fit of some milliseconds, so this is a baseline for
    `MixtureRanker` rather than a ranker for production.

    Parameters
    ----------
    relevances, C, standardise, gain, solver, tol, max_iter : as in `GlobalRanker`; "cv" takes the C of that
    n_neighbors : number of training queries that a query learns from
    verbose : 1 shows progress on a terminal when the first fit takes longer than a second

    Attributes
    ----------
    coef_ : (m,) the weights of all training queries together, from which every small fit starts
    objective_, bound_, status_ : of that fit
    training_ : the judged rows, their triplets and the features of queries that small fits take their part of
    scale_, items_, C_, cv_scores_ : as in `GlobalRanker`

    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.random((60, 3)), [6] * 10
    >>> ranker = TransductiveRanker(n_neighbors=3).fit(X, X[:, 0] > 0.5, group=group)
    >>> ranker.rank(X, 2, group=group).shape
    (10, 2)
    """

    relevances: Relevances | None = None
    C: float | str = parameter(either("cv", positive), default=100.0)
    _: KW_ONLY
    n_neighbors: int = parameter(whole(), default=50)
    standardise: bool | str = parameter(either("query", switch), default=True)
    gain: str | None = parameter(choice(None, "linear", "exponential"), default=None)
    solver: Solver | None = parameter(_check_solver, default=None)
    tol: float = parameter(positive, default=1e-2)
    max_iter: int = parameter(whole(), default=1000)
    verbose: int = 1
    learned: ClassVar = {"objective_": finite, "bound_": finite, "C_": positive}

    def fit(
        self, X: Any, y: Any, triplets: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None
    ) -> Self:
        """Learn from queries X, items y and triplets; or from judged rows X, their grades y and group.

        Parameters are those of `GlobalRanker.fit`. Neighbours are found by ``query_features``, (queries, p): None for
        the features of the queries, or the mean of their judged rows.
        """
        self.check_parameters()
        group = read_query_sizes(group, qid, X)
        training = read_training(self, X, y, triplets, group, query_features)
        C, cv_scores = _find_C(self, training)
        solution = _solve(self, ranking_task(training.oracle(), C, training.weight), self.verbose)
        self._keep(training, y, group)
        self.coef_ = solution.w / self.scale_
        self.C_, self.cv_scores_ = C, cv_scores
        self.objective_, self.bound_, self.status_ = solution.objective, solution.bound, solution.status
        given = training.triplets
        self.query_mean_ = training.queries.mean(axis=0)
        self.query_scale_ = column_scale(training.queries)
        self.training_: dict[str, Any] = {
            "features": training.features.copy(),  # they may be the caller's own rows
            "queries": (training.queries - self.query_mean_) / self.query_scale_,
            "triplets": replace(given),
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
        neighbours = near.kneighbors((asked - self.query_mean_) / self.query_scale_, return_distance=False)
        start = self.coef_ * self.scale_
        sets, which = np.unique(np.sort(neighbours, axis=1), axis=0, return_inverse=True)
        found = np.empty((len(sets), self.n_relevances_))
        for i, chosen in enumerate(sets):
            part = training.take(chosen)
            task = ranking_task(part.oracle(), self.C_, part.weight)
            found[i] = _solve(self, task, 0, most=MAX_STEPS_PER_QUERY, start=start).w
        return np.asarray(found[which.ravel()] / self.scale_)

    def check_learned(self) -> None:
        super().check_learned()
        check_table("coef_", self.coef_, (self.n_relevances_,))
        stored = self.training_
        if not isinstance(stored, dict) or set(stored) != {"features", "queries", "triplets"}:
            raise ValueError(f"training_ must have features, queries and triplets, got {shorten(stored)}")
        triplets = stored["triplets"]
        if not isinstance(triplets, Triplets):
            raise ValueError(f"triplets of training_ must be Triplets, got {shorten(triplets)}")
        triplets.check()
        if not triplets.n_queries or not triplets.per_query.all():
            raise ValueError("every query of training_ must have triplets")
        p = self.query_mean_.size if isinstance(self.query_mean_, np.ndarray) else 0
        check_table("query_mean_", self.query_mean_, (p,))
        check_table("query_scale_", self.query_scale_, (p,))
        check_table("the features of training_", stored["features"], (triplets.items.size, self.n_relevances_))
        check_table("the queries of training_", stored["queries"], (triplets.n_queries, p))


def _find_C(ranker: Any, training: Training) -> tuple[float, Array | None]:
    """C as it is given, or as one ranker for all queries has it by cross-validation, with the mean qualities."""
    if not isinstance(ranker.C, str):
        return float(ranker.C), None

    def weigh(kept: Array, held: Array, C: float) -> Array:
        part = training.take(kept)
        solution = _solve(ranker, ranking_task(part.oracle(), C, part.weight), 0)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted while C was chosen; there is no ranker yet")
        return np.tile(solution.w, (held.size, 1))

    return choose_C(training, weigh)


def _solve(ranker: Any, task: Task, verbose: int, most: int | None = None, **options: Any) -> Solution:
    steps = int(ranker.max_iter) if most is None else min(int(ranker.max_iter), most)
    limits: dict[str, Any] = {"tol": float(ranker.tol), "max_iter": steps, "verbose": verbose}
    return minimise(task, ranker.solver or Bundle(), **limits, **options)


def warn_unless_converged(ranker: Any, solution: Solution) -> None:
    if solution.status is not Status.CONVERGED:
        warnings.warn(f"{type(ranker).__name__}: {solution.advice()}", ConvergenceWarning, stacklevel=3)

"""`MixtureRanker`: hidden classes of queries, each with its own weights of the relevances."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from threadpoolctl import threadpool_limits

from tacit.data.arrays import Array
from tacit.data.parameters import random_numbers
from tacit.data.specs import (
    choice,
    either,
    estimator,
    inner_share,
    not_negative,
    optional,
    parameter,
    positive,
    switch,
    table,
    whole,
)
from tacit.learners.descents.multistart import Ended, MultiStart, warn_unless_converged
from tacit.learners.descents.pacing import SelfPaced, optional_pace
from tacit.learners.preparation import check_history, check_long_run
from tacit.oracle import checksum
from tacit.ranking.judgements import read_group_offsets, read_query_sizes
from tacit.ranking.mixture import Mixture, MixtureDescent, MixtureStep, softmax, start_gates
from tacit.ranking.oracle import Training, count_right
from tacit.ranking.ranker import (
    Ranker,
    check_query_width,
    check_table,
    column_scale,
    read_group_features,
    read_query_features,
    read_rows,
    read_training,
)
from tacit.ranking.relevances import ReadTables, Relevances
from tacit.ranking.selection import choose_C
from tacit.runtime import Status, run
from tacit.runtime.checkpoint import Checkpoint


@estimator
class MixtureRanker(Ranker):
    """Hidden classes of queries: ``R(q, a) = Σ_g P(g|q) z_g·k_{q,a}`` with ``P(g|q) = softmax_g(w_g·x_q)``.

    A mixture of experts: classes are not in the training data, the gate w is learned together with the weights z.
    Minimises ``½‖Z‖² + (λ/2)‖W‖² + (C/T) Σ max(0, 1 − R(q, a) + R(q, b))`` over all T triplets, by convex solves for Z
    and gradient steps for W in turn. The objective never rises, and ends in a local optimum; of several starts the
    lowest is kept. One class is `GlobalRanker`.

    Parameters
    ----------
    n_classes : number of classes. "auto" fits 1, 2, … `max_classes` to a part of the queries, and takes the fewest that
        are within one standard error of the best on the triplets of the others
    relevances, C, standardise, gain : as in `GlobalRanker`; C="cv" needs a number of classes
    gate_penalty : λ; the larger, the softer the classes
    n_init : starts: k-means on the features of queries, and on what their triplets prefer, in turn
    max_classes, validation : for "auto": the most classes, and the share of queries that is held out
    tol : a start ends when a step lowers the objective by less than this share of it
    max_iter : steps per start, at most
    pace : None for all queries at once, or `tacit.SelfPaced()`: queries whose triplets have a high mean hinge come in
        later. Classes are hidden for all queries, so that any may be left out
    checkpoint, resume : a file for the state of a long run, and whether to continue from it; "auto" writes it for the
        last fit, to all queries
    random_state : seed of the starts and of the validation queries
    verbose : 1 shows progress on a terminal when a fit takes longer than a second
    callbacks : functions called with every `MixtureStep`; one that returns True ends the fit. Ctrl-C ends it too, with
        a warning, and keeps the best ranker

    Attributes
    ----------
    class_weights_ : (classes, m) the weights z_g of the relevances as they are given; the class of most queries first
    gate_ : (classes, p + 1) the weights w_g of the standardised features of a query, and of a constant
    n_classes_ : number of classes
    validation_scores_ : (max_classes,) for "auto": the share of validation triplets in order; else None
    objective_, status_, n_iter_, history_ : of the best start, and a `MixtureStep` per step of all
    scale_, items_, C_, cv_scores_ : as in `GlobalRanker`

    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(40) % 2  # one kind of queries looks at the first column, the other at the second
    >>> X = rng.random((400, 2))
    >>> y = np.where(np.repeat(kind, 10), X[:, 1], X[:, 0])
    >>> ranker = MixtureRanker(2).fit(X, y, group=[10] * 40, query_features=kind[:, None])
    >>> ranker.class_proba(None, query_features=[[0.0], [1.0]]).round().sum(axis=0)
    array([1., 1.])
    >>> ranker.score(X, y, group=[10] * 40, query_features=kind[:, None]) > 0.95
    True
    """

    n_classes: int | str = parameter(either("auto", whole(1, 1000)), default=2)
    relevances: Relevances | None = None
    C: float | str = parameter(either("cv", positive), default=100.0)
    _: KW_ONLY
    gate_penalty: float = parameter(positive, default=0.1)
    standardise: bool | str = parameter(either("query", switch), default=True)
    gain: str | None = parameter(choice(None, "linear", "exponential"), default=None)
    n_init: int = parameter(whole(1, 1000), default=4)
    max_classes: int = parameter(whole(1, 1000), default=6)
    validation: float = parameter(inner_share, default=0.25)
    tol: float = parameter(positive, default=1e-3)
    max_iter: int = 50
    pace: SelfPaced | None = parameter(optional_pace, default=None)
    checkpoint: Any = None
    resume: bool = False
    random_state: Any = 0
    verbose: int = 1
    callbacks: Iterable[Callable[[MixtureStep], Any]] | None = None
    learned: ClassVar = {
        "n_classes_": whole(1, 1000),
        "query_mean_": table(None),
        "objective_": not_negative,
        "n_iter_": whole(0),
        "history_": check_history,
        "validation_scores_": optional(table(None)),
    }

    def fit(
        self, X: Any, y: Any, triplets: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None
    ) -> Self:
        """Learn from queries X, items y and triplets; or from judged rows X, their grades y and group.

        Parameters are those of `GlobalRanker.fit`. The classes depend on ``query_features``, (queries, p): None for the
        features of the queries, or the mean of their judged rows.
        """
        self.check_parameters()
        group = read_query_sizes(group, qid, X)
        training = read_training(self, X, y, triplets, group, query_features)
        if not isinstance(self.n_classes, str) and self.n_classes > len(training.queries):
            raise ValueError(
                f"n_classes={self.n_classes} must not exceed the number of queries with triplets, "
                f"{len(training.queries)}; lower it, or give more queries"
            )
        mean, scale = training.queries.mean(axis=0), column_scale(training.queries)
        inputs = with_constant((training.queries - mean) / scale)
        seed = int(random_numbers(self.random_state).randint(2**31))
        with threadpool_limits(1):
            C, cv_scores = self._find_C(training, inputs, seed)
            mixture = Mixture(training, inputs, C, float(self.gate_penalty))
            scores, status = None, None
            n_classes = self.n_classes
            if isinstance(n_classes, str):
                scores, n_classes, status = self._choose(mixture, seed)
            checkpoint = self._open_checkpoint(mixture, seed, inputs)
            ended = self._descend(mixture, int(n_classes), seed, checkpoint, self.callbacks)
        self._keep(training, y, group)
        self.query_mean_, self.query_scale_ = mean, scale
        Z, W, self.objective_ = ended.state.Z, ended.state.W, ended.state.objective
        order = np.argsort(-softmax(inputs @ W.T).sum(axis=0), kind="stable")
        self.class_weights_: Array = Z[order] / self.scale_
        self.gate_: Array = W[order]
        self.n_classes_ = len(W)
        self.C_, self.cv_scores_ = C, cv_scores
        self.validation_scores_ = scores
        self.status_: Status = status or ended.status
        self.history_ = [line for start in ended.runs for line in start.history]
        self.n_iter_ = len(self.history_)
        if self.status_ is not Status.STOPPED:
            warn_unless_converged(self, ended._replace(status=self.status_))
        return self

    def class_proba(self, X: Any = None, *, group: Any = None, qid: Any = None, query_features: Any = None) -> Array:
        """(queries, classes) P(g|q) of queries X, of judged rows with group or qid, or of ``query_features`` alone."""
        group = read_query_sizes(group, qid, X)
        table = self._read_queries(X, group, query_features)
        return softmax(self._inputs(table) @ self.gate_.T)

    def query_weights(self, query_features: Array) -> Array:
        return np.asarray(softmax(self._inputs(query_features) @ self.gate_.T) @ self.class_weights_)

    def _read_queries(self, X: Any, group: Any, query_features: Any) -> Array:
        if query_features is not None:
            table = np.asarray(query_features)
            return read_query_features(query_features, ReadTables({"queries": np.zeros((len(table), 1))}))
        if X is None:
            raise ValueError("X is missing; give the queries, or query_features")
        if self._is_of_rows(None, group):
            rows = read_rows(X)
            if group is None:
                raise ValueError("group is missing; give the number of rows per query")
            return read_group_features(None, rows, read_group_offsets(group, len(rows)))
        return read_query_features(None, ReadTables(self._relevances().read(X, "queries")))

    def _inputs(self, query_features: Array) -> Array:
        asked = check_query_width(query_features, self.query_mean_)
        return with_constant((asked - self.query_mean_) / self.query_scale_)

    def _descend(
        self,
        mixture: Mixture,
        n_classes: int,
        seed: int,
        checkpoint: Checkpoint | None = None,
        callbacks: Iterable[Callable[[MixtureStep], Any]] | None = None,
    ) -> Ended:
        gates = start_gates(mixture, n_classes, int(self.n_init), np.random.RandomState(seed))
        descent = MixtureDescent(mixture, gates, float(self.tol), int(self.max_iter), self.pace)
        starts = MultiStart(
            descent, lambda _, start: descent.begin(start), len(gates), descent.max_iter + 1, checkpoint
        )
        end = run(starts, starts.begin(seed), callbacks=callbacks, verbose=self.verbose, checkpoint=checkpoint)
        return starts.conclude(*end)

    def _find_C(self, training: Training, inputs: Array, seed: int) -> tuple[float, Array | None]:
        """C as it is given, or by cross-validation with the given number of classes, and the mean qualities."""
        if not isinstance(self.C, str):
            return float(self.C), None
        if isinstance(self.n_classes, str):
            raise ValueError("C='cv' needs a number of classes, got n_classes='auto'; give one of the two")
        n_classes = int(self.n_classes)

        def weigh(kept: Array, held: Array, C: float) -> Array:
            part = Mixture(training.take(kept), inputs[kept], C, float(self.gate_penalty))
            ended = self._descend(part, min(n_classes, kept.size), seed)
            if ended.status is Status.INTERRUPTED:
                raise KeyboardInterrupt("interrupted while C was chosen; there is no ranker yet")
            return np.asarray(softmax(inputs[held] @ ended.state.W.T) @ ended.state.Z)

        return choose_C(training, weigh)

    def _choose(self, mixture: Mixture, seed: int) -> tuple[Array, int, Status | None]:
        """Validation scores of 1, 2, … classes, and the number to take; INTERRUPTED if Ctrl-C ended the search."""
        training = mixture.training
        n = training.triplets.n_queries
        if n < 2:
            raise ValueError("n_classes='auto' needs at least two queries with triplets; give a number of classes")
        n_held = min(max(round(float(self.validation) * n), 1), n - 1)
        order = np.random.RandomState(seed).permutation(n)
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        part = Mixture(training.take(kept), mixture.inputs[kept], mixture.C, mixture.gate_penalty)
        others = training.take(held)
        shares: list[Array] = []
        for n_classes in range(1, min(int(self.max_classes), kept.size) + 1):
            ended = self._descend(part, n_classes, seed)
            right = count_right(others, softmax(mixture.inputs[held] @ ended.state.W.T) @ ended.state.Z)
            shares.append(right / others.triplets.per_query)
            if ended.status is Status.INTERRUPTED:
                return *_fewest_as_good(shares), ended.status
        return *_fewest_as_good(shares), None

    def _open_checkpoint(self, mixture: Mixture, seed: int, inputs: Array) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        free = (*self._not_saved, "verbose")
        settings = {name: repr(value) for name, value in self.get_params(deep=False).items() if name not in free}
        data = {"relevances of triplets": mixture.training.oracle().digest(), "queries": checksum(inputs)}
        settings["seed"] = str(seed) if self.random_state is not None else "any"
        return Checkpoint(self.checkpoint, {**settings, **data}, self.resume)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_long_run(self)
        if self.pace is not None and self.pace.warmup >= self.max_iter:
            raise ValueError(
                f"{self.pace} begins after {self.pace.warmup} steps, but max_iter={self.max_iter}; raise max_iter"
            )
        random_numbers(self.random_state)

    def check_learned(self) -> None:
        super().check_learned()
        n, p = self.n_classes_, self.query_mean_.size
        check_table("class_weights_", self.class_weights_, (n, self.n_relevances_))
        check_table("gate_", self.gate_, (n, p + 1))
        check_table("query_mean_", self.query_mean_, (p,))
        check_table("query_scale_", self.query_scale_, (p,))


def with_constant(table: Array) -> Array:
    """The table with a column of ones."""
    return np.hstack([table, np.ones((len(table), 1))])


def _fewest_as_good(shares: list[Array]) -> tuple[Array, int]:
    """Mean shares, and the fewest classes within one standard error of the best."""
    means = np.array([share.mean() for share in shares])
    best = shares[int(means.argmax())]
    for n_classes, share in enumerate(shares, start=1):
        lead = best - share
        if lead.mean() <= lead.std() / np.sqrt(lead.size):
            return means, n_classes
    return means, int(means.argmax()) + 1

"""The base of learners that descend by gradients: starts, L-BFGS, and probabilities of hidden values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import softmax

from tacit.data.arrays import Array
from tacit.data.labels import find_missing
from tacit.data.parameters import one_of, random_numbers
from tacit.data.ragged import Ragged
from tacit.learners.descents import multistart
from tacit.learners.descents.starts import find_beginning, given_weights
from tacit.learners.descents.unlabelled import self_train
from tacit.learners.learner import Learner, overflows
from tacit.learners.preparation import (
    LEARNED,
    MARGIN_LEARNED,
    bind_samples,
    describe_scales,
    has_hidden_states,
    open_checkpoint,
    sample_weights,
)
from tacit.oracle import (
    KnownHidden,
    Oracle,
    Schema,
    capability,
    completes_labels,
    has_label_parts,
    has_long_codes,
    hidden_values,
    require,
)
from tacit.oracle.capabilities import (
    DrawsHidden,
    GivesPosteriors,
    GivesTagPosteriors,
    ListsOutputs,
    ScoresLabels,
    SplitsCodes,
)
from tacit.oracle.contracts import Need
from tacit.runtime import Status, parallel, run
from tacit.runtime.archive import record
from tacit.solvers.quasi_newton import Function, Point, begin, step

__all__ = ["QuasiNewton", "SmoothLearner", "SmoothState", "SmoothStep"]

INITS = ("auto", "zero", "hidden", "weights", "warm", "k-means")

CLAMPED_STEPS = 10
"""First steps of a start, in which its first hidden values are fixed."""


class SmoothLearner(Learner, ABC):
    """What learners by gradients share. A subclass names its objective, its method and what it needs."""

    C: Any
    n_init: int
    init: Any
    tol: float
    max_iter: int
    warm_start: bool
    class_weight: Any

    learned = {**MARGIN_LEARNED, "runs_": LEARNED["runs_"]}
    _needs: tuple[Need, ...] = ()
    _instead = ""
    _inits: tuple[str, ...] = INITS

    def _skips_zero(self) -> bool:
        """Whether no start may begin at w = 0."""
        return False

    def _check_bound(self, schema: Schema, oracle: Oracle) -> None:
        """Refuse data that the learner cannot learn from."""

    def _choose(self, X: Any, y: Any, hidden: Any, sample_weight: Any) -> None:
        """Choose parameters by cross-validation; by default there are none to choose."""

    @abstractmethod
    def _objective(self, oracle: Oracle, weights: Array) -> Any:
        """The function to minimise, of an oracle and the weights c_i: its value and gradient at w."""

    @abstractmethod
    def _method(self, objective: Any, oracle: Oracle) -> Any:
        """How it is minimised: a `Method` with ``begin_at(w)``, the first state at given weights."""

    @abstractmethod
    def _bound(self, state: Any) -> float:
        """A lower bound on the objective where every hidden value is known."""

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> Any:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y : samples and labels, in the form that the problem takes; a label that is missing is None, if it is one of
            the classes or a sequence of tags
        hidden : what is known of the hidden values, per sample: the value, −1 if it is unknown, or the values that are
            allowed (a list or a mask)
        sample_weight : a weight of 2 is the sample twice, 0 leaves it out
        """
        if (is_missing := find_missing(y, getattr(self.problem, "has_marginals", False))).any():
            return self_train(self, X, y, is_missing, hidden, sample_weight)
        self._check_parameters()
        schema, oracle = bind_samples(self, X, y, hidden, self._needs, self._instead)
        if self.class_weight is not None and has_label_parts(oracle):
            raise ValueError("class_weight needs one label per sample; for sequences use sample_weight")
        self._check_bound(schema, oracle)
        self._choose(X, y, hidden, sample_weight)
        asked = SimpleNamespace(C=getattr(self, "C_", self.C), class_weight=self.class_weight)
        weights = sample_weights(asked, y, schema.classes, oracle.n_samples, sample_weight)
        seed = int(random_numbers(self.random_state).randint(2**31))
        listed = [self.init] if isinstance(self.init, Mapping) else self.init if isinstance(self.init, list) else []
        given = [given_weights(weights, schema) for weights in listed]
        is_one = self.init == "zero" or not oracle.hidden_unknown().size
        n_starts = len(given) or (1 if is_one else int(self.n_init))
        previous = self._previous_weights(schema)
        checkpoint = open_checkpoint(self, oracle)
        with parallel(oracle.exact(), self.n_jobs) as shards:
            objective = self._objective(shards, weights)
            method = self._method(objective, shards)

            def first(seed: int, start: int) -> Any:
                w = given[start] if given else self._first_weights(objective, shards, weights, previous, seed, start)
                return method.begin_at(w)

            starts = multistart.MultiStart(method, first, n_starts, int(self.max_iter), checkpoint)
            record = starts.begin(seed)
            end = run(starts, record, callbacks=self.callbacks, verbose=self.verbose, checkpoint=checkpoint)
            ended = starts.conclude(*end)
            self._keep(ended, schema, shards, objective)
        stalled = "steps no longer decrease the objective, but its slope is not small; raise tol, or scale the features"
        scale = describe_scales(oracle) if ended.status in (Status.MAX_ITER, Status.STALLED) else ""
        multistart.warn_unless_converged(self, ended, stalled, "steps", scale)
        return self

    def _first_weights(
        self, objective: Any, oracle: Oracle, weights: Array, previous: Array | None, seed: int, start: int
    ) -> Array:
        """The weights that a start begins with.

        A start from hidden values takes a few steps with those values fixed, which gives weights that prefer them.
        """
        zero, unknown = np.zeros(oracle.n_params), oracle.hidden_unknown()
        if start == 0 and previous is not None:
            return previous
        if self.init == "zero" or not unknown.size or (self.init == "smooth" and not start):
            return zero
        rng = np.random.default_rng((seed, start))
        if self.init in ("weights", "smooth"):
            return np.asarray(rng.standard_normal(zero.size) / np.sqrt(zero.size))
        found = find_beginning(self, oracle, weights, start, rng, self.init)
        if found.w is not None:
            return found.w
        code = found.code
        if code is None and self.init == "auto" and start == found.n_proposed:
            w = self._learn_known(objective, oracle, weights, unknown)
            if w.any() or not self._skips_zero():
                return w
        if code is None:
            drawer = capability(oracle, DrawsHidden)
            if drawer is None:
                return np.asarray(rng.standard_normal(zero.size) / np.sqrt(zero.size))
            code = drawer.draw(rng)
        hidden: Any = code
        if not has_long_codes(oracle):
            splitter = capability(oracle, SplitsCodes)
            hidden = oracle.decode(code)[1] if splitter is None else KnownHidden(splitter.split(code)[1])
        return _descend(self._first_objective(objective, oracle.with_hidden(hidden), weights), zero)

    def _first_objective(self, objective: Any, oracle: Oracle, weights: Array) -> Any:
        """What the first steps of a start minimise, its hidden values being fixed in the oracle."""
        return objective.of(oracle, weights)

    def _learn_known(self, objective: Any, oracle: Oracle, weights: Array, unknown: Array) -> Array:
        """Zero; where some hidden values are known, the weights learned from those samples."""
        zero, known = np.zeros(oracle.n_params), weights.copy()
        known[unknown] = 0.0
        if completes_labels(oracle) or not known.any():
            return zero
        return _descend(objective.of(oracle, known * weights.sum() / known.sum()), zero)

    def hidden_proba(self, X: Any, y: Any = None) -> Any:
        """The probability of every hidden value, p(h | x, y), under these labels or the predicted ones.

        A `Ragged` with one row per sample and one number per hidden value, in the problem's order. For sequences the
        missing tags are hidden: a table per sequence, one column per tag, or per state where tags have several.
        """
        oracle = self._bind(X, y)
        if has_hidden_states(oracle):
            is_given = y is not None
            return self._posteriors(oracle, lambda shards: shards.state_posterior(self.coef_, is_given=is_given))
        if completes_labels(oracle):
            return self._tag_posteriors(oracle, is_given=y is not None)
        needs: tuple[Need, ...] = (GivesPosteriors.hidden_posterior, ListsOutputs.known_labels)
        require(f"{type(self).__name__}.hidden_proba", self.problem, oracle, needs)
        with parallel(oracle, self.n_jobs) as shards:
            labels = oracle.known_labels() if y is not None else oracle.labels_of(self._answer(shards))
        found = self._posteriors(oracle, lambda shards: shards.hidden_posterior(self.coef_, labels=labels))
        return found.with_values(oracle.in_user_order(found.values, labels))

    def _label_posteriors(self, oracle: Oracle, power: float) -> Array:
        way_out = "it has a score per label, not one per tagging; predict_best ranks taggings"
        require(f"{type(self).__name__}.label_proba", self.problem, oracle, [ScoresLabels.label_scores], way_out)
        scores = self._compute_scores(oracle, lambda shards: shards.label_scores(self.coef_, power=power), overflows)
        return np.asarray(softmax(scores, axis=1))

    def _tag_posteriors(self, oracle: Oracle, is_given: bool = False) -> Ragged:
        require(f"predict_proba of {type(self).__name__}", self.problem, oracle, GivesTagPosteriors)
        return self._posteriors(oracle, lambda shards: shards.tag_posterior(self.coef_, is_given=is_given))

    def _keep(self, ended: multistart.Ended, schema: Any, oracle: Oracle, objective: Any) -> None:
        """Set the learned attributes."""
        state = ended.state
        self._keep_runs(ended, schema)
        self.coef_, self.objective_ = state.w, state.objective
        self.hidden_ = hidden_values(oracle, oracle.impute(state.w).code)
        self.bound_ = -np.inf if oracle.hidden_unknown().size else self._bound(state)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_list = isinstance(self.init, list) and self.init and all(isinstance(one, Mapping) for one in self.init)
        if not isinstance(self.init, Mapping) and not is_list:
            one_of("init", self.init, self._inits)


def _descend(function: Function, w: Array) -> Array:
    point = begin(function, w)
    for _ in range(CLAMPED_STEPS):
        if point.is_stuck:
            break
        point = step(function, point)
    return point.w


@record
class SmoothStep(NamedTuple):
    """One line of the history of a learner that descends by gradients.

    ``objective`` is the true one, of all samples; ``slope`` is the norm of its gradient (infinite where a method does
    not compute it). ``evaluations`` counts the passes over the data so far, ``samples_in`` the samples that the step
    learned from.
    """

    iteration: int
    seconds: float
    objective: float
    slope: float
    evaluations: int
    samples_in: int


@dataclass(frozen=True)
class SmoothState(multistart.DescentState):
    """The state of a descent by gradients."""

    w: multistart.Weights = field(default_factory=lambda: np.empty(0))
    slope: float = np.inf
    evaluations: int = 0
    samples_in: int = 0


@dataclass(frozen=True)
class QuasiNewtonState(SmoothState):
    """The state of L-BFGS: with the gradient, differences of points and gradients, and the latest objectives."""

    gradient: multistart.Weights = field(default_factory=lambda: np.empty(0))
    moves: multistart.Numbers = field(default_factory=lambda: np.empty((0, 0)))
    changes: multistart.Numbers = field(default_factory=lambda: np.empty((0, 0)))
    recent: multistart.Numbers = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class QuasiNewton(multistart.Method[Any]):
    """L-BFGS until half the squared slope is below ``tol`` times the objective, or steps decrease it too little.

    The objectives of tacit contain ½‖w‖². Where the rest is convex, half the squared slope is a bound on how far the
    objective is above its optimum; otherwise a small one says that the point is nearly stationary.

    Parameters
    ----------
    function : the objective and its gradient
    oracle : the samples
    n_samples : the number of samples in the objective
    tol : when to stop
    significant : where the objective has kinks, its slope need not vanish: a run also ends when `PATIENCE` steps
        together decrease it by less than this, or when no step does. None where it is smooth
    """

    function: Function
    oracle: Oracle
    n_samples: int
    tol: float
    significant: float | None = None

    state: ClassVar[Any] = QuasiNewtonState
    line_type: ClassVar[Any] = SmoothStep

    def begin_at(self, w: Array) -> QuasiNewtonState:
        return self._at(begin(self.function, w), QuasiNewtonState())

    def step(self, now: QuasiNewtonState) -> QuasiNewtonState:
        point = Point(now.w, now.objective, now.gradient, now.moves, now.changes, evaluations=now.evaluations)
        return self._at(step(self.function, point), replace(now, iteration=now.iteration + 1))

    def check(self, state: QuasiNewtonState) -> None:
        d = self.oracle.n_params
        if state.gradient.size != d or state.moves.shape != (len(state.moves), d) or state.recent.ndim != 1:
            raise ValueError(f"gradient and moves must fit {d} weights")
        if state.changes.shape != state.moves.shape:
            raise ValueError(f"changes must have the shape of moves, {state.moves.shape}, got {state.changes.shape}")

    def _at(self, point: Point, before: QuasiNewtonState) -> QuasiNewtonState:
        is_solved = 0.5 * point.slope**2 <= self.tol * abs(point.value)
        recent = np.append(before.recent, point.value)[-PATIENCE - 1 :]
        if self.significant is not None:
            has_gained = recent.size <= PATIENCE or recent[0] - recent[-1] > self.significant
            is_solved = is_solved or point.is_stuck or not has_gained
        is_precise = point.slope <= PRECISION * (1 + float(np.abs(point.w).max(initial=0.0)))
        return replace(
            before,
            w=point.w,
            objective=float(point.value),
            slope=point.slope,
            evaluations=point.evaluations,
            samples_in=self.n_samples,
            is_done=is_solved or point.is_stuck,
            is_solved=is_solved or is_precise,
            gradient=point.gradient,
            moves=point.moves,
            changes=point.changes,
            recent=recent,
        )


PATIENCE = 10
"""Steps that must decrease the objective together where it has kinks."""

PRECISION = 1e-6
"""A slope below this, relative to the weights, is as small as rounding allows: a run that is stuck there has
converged."""

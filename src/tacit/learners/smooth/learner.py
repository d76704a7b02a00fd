"""The base of learners that descend by gradients: binding, starts, the loop, and probabilities of hidden values."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.parameters import is_positive, number, one_of, random_numbers, switch, whole_number
from tacit.data.ragged import Ragged
from tacit.learners.fitted_attributes import MARGIN_ATTRIBUTES, check_fitted
from tacit.learners.latent.runs import RunTable
from tacit.learners.learner import Learner, have_nan, overflows
from tacit.learners.preparation import MAX_STARTS, bind_samples, open_checkpoint, sample_weights
from tacit.learners.smooth.first_weights import FirstWeights
from tacit.learners.smooth.places import Method
from tacit.learners.smooth.starts import Record, Starts, run_starts
from tacit.oracle import completes_labels, has_hidden_states, has_long_codes, hidden_values, require
from tacit.oracle.capabilities import GivesPosteriors, ListsOutputs, Need
from tacit.runtime import Status, sharded

INITS = ("auto", "zero", "hidden", "weights", "warm", "k-means")


class SmoothLearner(Learner, ABC):
    """What hidden CRFs and min-entropy models share. A subclass names its objective, its method and what it needs."""

    C: Any
    n_init: int
    init: str
    tol: float
    max_iter: int
    warm_start: bool
    random_state: Any
    verbose: int
    callbacks: Any
    class_weight: Any
    status_: Status

    _needs: tuple[Need, ...] = ()
    _instead = ""
    _chooses_C = False

    def _skips_zero(self) -> bool:
        """Whether a start at w = 0 would have nothing to go by."""
        return False

    def _choose(self, X: Any, y: Any, hidden: Any, sample_weight: Any) -> None:
        """Choose parameters that are to be chosen in `fit`; here there are none."""

    @abstractmethod
    def _objective(self, oracle: Any, weights: Array) -> Any:
        """The function to minimise, of an oracle and the weights c_i: its value and gradient at w."""

    @abstractmethod
    def _method(self, objective: Any, oracle: Any) -> Method:
        """How it is minimised."""

    @abstractmethod
    def _bound(self, objective: float, slope: float) -> float:
        """A lower bound on the objective where every hidden value is known."""

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> Any:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y : samples and labels, in the form that the problem takes
        hidden : what is known of the hidden values, per sample: the value, −1 if it is unknown, or the values that are
            allowed (a list or a mask)
        sample_weight : a weight of 2 is the sample twice, 0 leaves it out
        """
        self._check_parameters()
        schema, oracle = bind_samples(self, X, y, hidden, self._needs, self._instead)
        if self.class_weight is not None and has_long_codes(oracle):
            raise ValueError("class_weight needs one label per sample; for sequences use sample_weight")
        self._choose(X, y, hidden, sample_weight)
        asked = SimpleNamespace(C=getattr(self, "C_", self.C), class_weight=self.class_weight)
        weights = sample_weights(asked, y, schema.classes, oracle.n_samples, sample_weight)
        seed = int(random_numbers(self.random_state).randint(2**31))
        n_starts = 1 if self.init == "zero" or not oracle.hidden_unknown().size else int(self.n_init)
        checkpoint = open_checkpoint(self, oracle)
        with sharded(oracle.exact(), self.n_jobs) as shards:
            objective = self._objective(shards, weights)
            previous = self._previous(schema)
            first = FirstWeights(
                objective, shards, weights, self.init, int(self.n_init), previous, skips_zero=self._skips_zero()
            )
            starts = Starts(self._method(objective, shards), first, n_starts, int(self.max_iter))
            record, status = run_starts(self, starts, seed, checkpoint)
            self._keep(record, schema, shards)
        if status is not Status.CONVERGED:  # cut short: stopped or interrupted
            self.status_ = status
        if self.status_ is not Status.CONVERGED:
            told = f"objective {self.objective_:.6g} after {record.n_iterations} steps"
            warnings.warn(
                f"{type(self).__name__}: {_ADVICE[self.status_].format(told)}", ConvergenceWarning, stacklevel=2
            )
        return self

    def hidden_proba(self, X: Any, y: Any = None) -> Any:
        """The probability of every hidden value, p(h | x, y), under these labels or under those that are predicted.

        A `Ragged` with one row per sample and one number per hidden value, in the order in which the problem counts
        them. For sequences, what is hidden are the tags that y lacks: a table per sequence, one column per tag, or
        per state where tags have several.
        """
        oracle = self._bind(X, y)
        if has_hidden_states(oracle):
            is_given = y is not None
            return self._posteriors(oracle, lambda shards: shards.state_posterior(self.coef_, is_given=is_given))
        if completes_labels(oracle):
            return self._tag_posteriors(oracle, is_given=y is not None)
        require(
            f"{type(self).__name__}.hidden_proba",
            self.problem,
            oracle,
            [GivesPosteriors.hidden_posterior, ListsOutputs.known_labels],
        )
        with sharded(oracle, self.n_jobs) as shards:
            labels = oracle.known_labels() if y is not None else oracle.labels_of(self._answer(shards))
        found = self._posteriors(oracle, lambda shards: shards.hidden_posterior(self.coef_, labels=labels))
        return found.with_values(oracle.in_user_order(found.values, labels))

    def _label_posteriors(self, oracle: Any, power: float) -> Array:
        scores = self._asked(oracle, lambda shards: shards.label_scores(self.coef_, power=power), overflows)
        return np.asarray(softmax(scores, axis=1))

    def _tag_posteriors(self, oracle: Any, is_given: bool = False) -> Ragged:
        return self._posteriors(oracle, lambda shards: shards.tag_posterior(self.coef_, is_given=is_given))

    def _posteriors(self, oracle: Any, question: Callable[[Any], Array]) -> Ragged:
        """Probabilities of every sample; an error where its scores are beyond double precision."""
        return Ragged(self._asked(oracle, question, lambda found: have_nan(found, oracle.offsets)), oracle.offsets)

    def _keep(self, record: Record, schema: Any, oracle: Any) -> None:
        """Set the learned attributes."""
        place = record.best
        assert place is not None
        best = min(record.runs, key=lambda run: run.objective)
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        self.coef_ = place.w
        self.hidden_ = hidden_values(oracle, oracle.impute(place.w).code)
        self.objective_ = place.objective
        is_open = bool(oracle.hidden_unknown().size)
        self.bound_ = -np.inf if is_open else self._bound(place.objective, place.slope)
        self.status_, self.history_ = best.status, best.history
        self.n_iter_ = len(best.history)
        self.runs_ = RunTable(record.runs)

    def _previous(self, schema: Any) -> Array | None:
        """The present weights, if a warm start is asked for and they are weights of the same things."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        same = self.coef_.size == schema.n_params and np.array_equal(self.schema_.classes, schema.classes)
        return self.coef_ if same else None

    def check(self) -> None:
        self._check_parameters()
        check_fitted(self, (*MARGIN_ATTRIBUTES, "runs_"))

    def _check_parameters(self) -> None:
        if not self._chooses_C:
            number("C", self.C, "a positive number", is_positive)
        number("tol", self.tol, "a positive number", is_positive)
        whole_number("n_init", self.n_init, 1, MAX_STARTS)
        one_of("init", self.init, INITS)
        switch("warm_start", self.warm_start)


_ADVICE = {
    Status.MAX_ITER: "not converged: {}; raise max_iter or tol",
    Status.STALLED: "no step gains any more, and the slope is not yet small: {}; raise tol, or scale the features",
    Status.STOPPED: "stopped by a callback: {}",
    Status.INTERRUPTED: "interrupted: {}; the best model so far is kept",
}

"""Dissimilarity-coefficient learning: losses that depend on the hidden value, when that is not labelled."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, cast

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_missing
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import between, choice, estimator, parameter, positive, switch, table
from tacit.learners.descents.descent import Descent
from tacit.learners.descents.dissimilarity import Dissimilarity, OrderedPosterior, PairState, lowest_point
from tacit.learners.descents.multistart import Ended
from tacit.learners.descents.starts import propose
from tacit.learners.descents.unlabelled import self_train
from tacit.learners.iterative_latent_svm import Rounds
from tacit.learners.latent_svm import LatentSVM
from tacit.learners.preparation import Prepared, check_penalty, resolve_penalty
from tacit.oracle import CapabilityError, Oracle, Problem, Schema, capability, loss_needs_hidden, require
from tacit.oracle.capabilities import (
    GivesPosteriors,
    GivesTagPosteriors,
    ListsOutputs,
    MeasuresCompleted,
    MeasuresHidden,
    MovesPosteriors,
    SumsOutputs,
)
from tacit.oracle.contracts import Need
from tacit.penalties import Penalty, Quadratic
from tacit.runtime.checkpoint import Checkpoint
from tacit.solvers.loop import fingerprint_penalty

_THETA_NEEDS: tuple[Need, ...] = (
    GivesPosteriors.hidden_posterior,
    MovesPosteriors.posterior_slope,
    ListsOutputs.known_labels,
)
_NEEDS = (MeasuresHidden, MovesPosteriors, GivesPosteriors.hidden_posterior, SumsOutputs)


@estimator
class DissimilaritySVM(LatentSVM):
    """Learns w, which predicts (y, h), and θ, a distribution over h where only y is known.

    For losses ``Δ(y_i, h_i, y, h)`` such as the overlap of boxes, when h_i is unknown. ``P_θ(h)``, proportional to
    ``exp θ·Φ(x_i, y_i, h)``, is a distribution over hidden values, and a prediction costs its mean loss over it. The
    features Φ are those of w, or others (`conditional`, `fit(theta_X=)`).
    Minimises ``½‖w‖² + ½J‖θ‖² + (C/n) Σ_i [ξ_i(w, θ) − β H_i(θ)]``. There ``ξ_i = max_{y,h} [s(y, h) + Σ_h' P_θ(h')
    Δ(y_i, h', y, h)] − max_h s(y_i, h)``, and the diversity H_i is the mean loss between two values drawn from P_θ. The
    first term makes the two models agree; the second keeps P_θ diverse where w predicts a wrong label.
    `IterativeLatentSVM` is the special case of a single value in place of P_θ. With a loss that does not depend on h
    this is `LatentSVM`.

    A run alternates between iterations of a latent SVM for w and steps for θ, and ends when a round gains less than
    ``C · tol``. It begins at θ = 0, where all hidden values are equally likely. So the first start of ``init="auto"``
    imputes from the mean features of each label instead of drawing values at random.

    Source: Kumar, Packer & Koller (2012), "Modeling Latent Variable Uncertainty for Loss-based Learning"; Kumar (2013),
    chapter 4, of whose equation 4.17 the gradient is corrected here.

    Parameters
    ----------
    problem : what is predicted; its loss looks at the hidden value, such as ``Candidates(loss="overlap")``, or labels
        have missing parts, as the tags of `Chain` may
    J : coefficient of ½‖θ‖², or of `theta_penalty`
    beta : coefficient of the diversity H, from 0, below 1
    C : coefficient of the mean loss against ½‖w‖²
    conditional : None for Φ = Ψ; another problem, which gives the same samples other features and has the same hidden
        values; or "delta" for the best hidden value in place of P_θ, which is `IterativeLatentSVM`
    theta_step : "joint" makes quasi-Newton steps on the joint objective, which then never rises; proximal gradient
        steps where the penalty of θ is a norm. "text" makes the stochastic steps of the source, corrected; they may
        raise it, so the best pair is kept
    theta_penalty : Ω of θ; None for ½‖θ‖², or a `tacit.penalties.Penalty`: `Quadratic`, `Prior`, or `GroupNorm`, of
        which ``GroupNorm("weight")`` is the L1 norm
    solver, pace, n_init, init, tol, max_iter, max_inner, unknown_weight, rescaling, penalty, class_weight : as in
        `LatentSVM`
    warm_start, escape, shift : as in `LatentSVM`. With a pace the first round goes from easy samples to hard ones
    checkpoint, resume, n_jobs, random_state, verbose, callbacks : as in `LatentSVM`

    Attributes
    ----------
    theta_ : the weights of P_θ
    theta_schema_ : their named blocks, where θ has features of its own
    objective_parts_ : (iterations, 3) what the objective is made of: ``½‖w‖² + (C/n) Σ ξ_i``, ``−β (C/n) Σ H_i`` and
        ``½J‖θ‖²``, or J times `theta_penalty`
    coef_, hidden_, objective_, history_ and the others : as in `LatentSVM`; the objective is that of the pair

    >>> from tacit import Ragged
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 3)
    >>> model = DissimilaritySVM(Candidates(loss="overlap"), C=100, n_init=5).fit(bags, ["x", "y", "x"])
    >>> model.predict(bags), model.predict_hidden(bags)
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    >>> model.conditional_proba(bags, ["x", "y", "x"])[0].argmax()
    np.int64(1)
    """

    asks_for_rows = True
    learned = {"theta_": table(None), "objective_parts_": table(None, 3)}
    _also_compared = ("J", "beta", "theta_step", "conditional")

    _: KW_ONLY
    J: float = parameter(positive, default=0.1)
    beta: float = parameter(between("a number from 0, below 1", 0, math.nextafter(1, 0)), default=0.1)
    conditional: Any = None
    theta_step: str = parameter(choice("joint", "text"), default="joint")
    theta_penalty: Penalty | None = None

    def fit(
        self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None, theta_X: Any = None
    ) -> DissimilaritySVM:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y, hidden, sample_weight : as in `LatentSVM.fit`
        theta_X : the same samples with the features for θ, which may be others than those in X; each sample must have
            as many hidden values as in X, in the same order. None for X
        """
        if (is_missing := find_missing(y, getattr(self.problem, "has_marginals", False))).any():
            return self_train(self, X, y, is_missing, hidden, sample_weight, theta_X=theta_X)
        self._check_parameters()
        if theta_X is not None and isinstance(self.conditional, str):
            raise ValueError("theta_X must be None with conditional='delta', which has no θ; leave it out")
        self._data = X if theta_X is None else theta_X, y, hidden, theta_X is not None
        try:
            super().fit(X, y, hidden=hidden, sample_weight=sample_weight)
        finally:
            for name in ("_data", "_oracle", "_theta_schema"):
                self.__dict__.pop(name, None)
        return self

    def conditional_proba(self, X: Any, y: Any, *, hidden: Any = None, theta_X: Any = None) -> Ragged:
        """P_θ(h | x, y) of every sample: one probability per hidden value, as a `Ragged` of rows of numbers. For
        sequences with missing tags it is a table per sequence, with one column per tag.

        Where ``hidden`` gives a value, or rules some out, the others have probability 0. ``theta_X`` has the features
        for θ, if `fit` was given some.
        """
        oracle = self._bind(X, y, hidden)
        if (theta_X is not None) != getattr(self, "has_theta_X_", False):
            problem = "fit had none: leave it out" if theta_X is not None else "fit had it: give the features for θ"
            raise ValueError(f"theta_X must be given to conditional_proba if it was given to fit; {problem}")
        if isinstance(self.conditional, str):
            require(type(self).__name__, self.problem, oracle, ListsOutputs)
            chances = np.zeros(int(oracle.offsets[-1]))
            chances[oracle.offsets[:-1] + oracle.split(oracle.impute(self.coef_).code)[1]] = 1.0
        elif capability(oracle, MeasuresHidden) is not None and capability(oracle, GivesTagPosteriors) is not None:
            return Ragged(oracle.tag_posterior(self.theta_, is_given=True), oracle.offsets)
        else:
            needs: tuple[Need, ...] = (GivesPosteriors.hidden_posterior, ListsOutputs.known_labels)
            if hasattr(self, "theta_schema_"):
                samples = X if theta_X is None else theta_X, y, hidden, theta_X is not None
                own: Any = self._bind_theta(samples, self.theta_schema_)
                require(type(self).__name__, self._theta_problem, own, needs)
                _compare_sizes(np.diff(own.offsets), np.diff(oracle.offsets), theta_X is not None)
                oracle = own
            require(type(self).__name__, self._theta_problem, oracle, needs)
            chances = oracle.hidden_posterior(self.theta_)
        return Ragged(oracle.in_user_order(chances, oracle.known_labels()), oracle.offsets)

    @property
    def _theta_problem(self) -> Problem:
        return self.conditional if isinstance(self.conditional, Problem) else self.problem

    def _bind_theta(self, samples: tuple[Any, Any, Any, bool], schema: Schema | None = None) -> Any:
        """The oracle of P_θ with this schema; without one, the schema of these samples. Errors name what is wrong."""
        data, y, hidden, is_given = samples
        try:
            if schema is None:
                return self._theta_problem.schema(data, y)
            return self._theta_problem.bind(data, y, schema, hidden=hidden)
        except (ValueError, TypeError) as error:
            if not is_given:
                raise
            remedy = "" if isinstance(self.conditional, Problem) else " (or give θ another problem with conditional=)"
            raise type(error)(f"theta_X: {error}{remedy}") from error

    def check(self) -> None:
        super().check()
        schema: Any = getattr(self, "theta_schema_", None if isinstance(self.conditional, Problem) else self.schema_)
        if not isinstance(schema, Schema):
            raise ValueError(f"theta_schema_ must be a Schema, got {shorten(schema)}")
        schema.check()
        self._theta_problem.check_schema(schema)
        switch("has_theta_X_", getattr(self, "has_theta_X_", False))
        size = 0 if isinstance(self.conditional, str) else schema.n_params
        if self.theta_.dtype != np.float64 or self.theta_.size not in (0, size):
            raise ValueError(f"theta_ must hold {size} weights in double precision, got {shorten(self.theta_)}")
        if self.theta_penalty is not None and size:
            resolve_penalty(self.theta_penalty, schema)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_penalty("theta_penalty", self.theta_penalty)
        if self.theta_penalty is not None and isinstance(self.conditional, str):
            raise ValueError("theta_penalty must be None with conditional='delta', which has no θ; leave it out")
        is_name = isinstance(self.conditional, str)
        if (is_name and self.conditional != "delta") or not (
            is_name or self.conditional is None or isinstance(self.conditional, Problem)
        ):
            raise ValueError(f"conditional must be None, 'delta' or a problem, got {shorten(self.conditional)}")
        if not isinstance(self.rescaling, str) or self.rescaling != "margin":
            raise ValueError("rescaling must be 'margin': the averaged loss is not zero on the truth, as 'slack' needs")

    def _check_loss(self, oracle: Oracle) -> None:
        """Bind the oracle of P_θ, and refuse problems that cannot do what it takes."""
        self._oracle: Any = None
        self._theta_schema: Schema | None = None
        is_given = self._data[-1]
        if isinstance(self.conditional, Problem) or is_given:
            self._theta_schema = self._bind_theta(self._data)
        is_delta = isinstance(self.conditional, str)
        if not loss_needs_hidden(oracle):
            is_open = oracle.hidden_unknown().size and capability(oracle, MeasuresCompleted) is not None
            if is_delta or not is_open:
                return
            self._refuse_completed(oracle)
        require(type(self).__name__, self.problem, oracle, MeasuresHidden)
        if is_delta:
            return
        require(type(self).__name__, self.problem, oracle, _NEEDS)
        self._oracle = oracle
        if self._theta_schema is not None:
            own = self._bind_theta(self._data, self._theta_schema)
            require(type(self).__name__, self._theta_problem, own, _THETA_NEEDS)
            self._oracle = _in_order_of(cast(ListsOutputs, oracle), own, is_given)

    def _resolve_theta_penalty(self, schema: Schema) -> Any:
        """The penalty of θ for its weights, or for those of w where it has no features of its own."""
        return resolve_penalty(self.theta_penalty or Quadratic(), self._theta_schema or schema)

    def _refuse_completed(self, oracle: Oracle) -> None:
        """Refuse labels with missing parts that have no P_θ: the known ones alone would count, as in a latent SVM."""
        if capability(oracle, MovesPosteriors) is not None:
            return
        unknown = oracle.hidden_unknown()
        kind = type(self.problem).__name__
        raise CapabilityError(
            f"DissimilaritySVM needs a distribution over what is unknown, which {kind} does not offer; labels of "
            f"{unknown.size} samples have missing parts (the first is sample {unknown[0]}). Use conditional='delta', "
            "which compares with imputed parts as tacit.IterativeLatentSVM does, or tacit.LatentSVM, which counts the "
            "known ones alone"
        )

    def _begin(self, descent: Descent, oracle: Oracle, y: Any, previous: Array | None, *, seed: int, start: int) -> Any:
        """The first state of a start; the first start of "auto" imputes from mean features over hidden values.

        At θ = 0 all hidden values are equally likely. The mean features of a label minus those of all labels are
        weights that prefer what occurs in many hidden values.
        """
        is_mean = isinstance(descent, Dissimilarity) and isinstance(self.init, str) and self.init == "auto"
        is_mean = is_mean and not start and previous is None and bool(oracle.hidden_unknown().size)
        if not is_mean or self._known_part(oracle) is not None or propose(oracle, int(self.n_init)):
            return super()._begin(descent, oracle, y, previous, seed=seed, start=start)
        weights = descent.weights
        sums = cast(SumsOutputs, oracle).expectations(np.zeros(oracle.n_params), label=weights, free=-weights)
        w = sums.features if sums.features is not None else np.zeros(oracle.n_params)
        return descent.begin(oracle.impute(w).code, seed=seed, start=start)

    def _descent(self, oracle: Oracle, prepared: Any) -> Descent:
        descent = super()._descent(oracle, prepared)
        if isinstance(self.conditional, str):
            return descent.convert(Rounds)
        if self._oracle is None:
            return descent.convert(Descent)
        settings = {"conditional": self._oracle, "J": float(self.J), "beta": float(self.beta)}
        penalty = self._resolve_theta_penalty(prepared.schema)
        return descent.convert(Dissimilarity, **settings, theta_penalty=penalty, step_kind=self.theta_step)

    def _checkpoint(self, prepared: Prepared, seed: int) -> Checkpoint | None:
        """With what distinguishes the features for θ and its penalty, where they are not the default."""
        penalty = self._resolve_theta_penalty(prepared.schema)
        checkpoint = super()._checkpoint(prepared, seed)
        if checkpoint is not None and isinstance(self._oracle, OrderedPosterior):
            checkpoint.require("features for θ", self._oracle.oracle.digest())
        if checkpoint is not None and self._oracle is not None and self.theta_penalty is not None:
            checkpoint.require("theta_penalty", fingerprint_penalty(penalty, self._oracle.n_params))
        return checkpoint

    def _keep(self, ended: Ended, schema: Any, oracle: Oracle) -> None:
        super()._keep(ended, schema, oracle)
        self.__dict__.pop("theta_schema_", None)  # of an earlier fit
        if self._theta_schema is not None:
            self.theta_schema_ = self._theta_schema
        self.has_theta_X_ = self._data[-1]
        best = ended.state
        if isinstance(best, PairState):
            self.theta_, self.objective_parts_ = best.theta, best.parts
            return
        size = 0 if isinstance(self.conditional, str) else (self._theta_schema or schema).n_params
        self.theta_ = lowest_point(self._resolve_theta_penalty(schema), size) if size else np.zeros(0)
        self.objective_parts_ = np.array([[line.objective, 0.0, 0.0] for line in self.history_])


def _in_order_of(oracle: ListsOutputs, own: Any, is_given: bool) -> OrderedPosterior:
    """The oracle of θ with its hidden values in the order of another, which must have as many for every sample."""
    _compare_sizes(np.diff(own.offsets), np.diff(oracle.offsets), is_given)
    labels, positions = oracle.known_labels(), np.arange(int(oracle.offsets[-1]))
    order = np.empty_like(positions)
    order[oracle.in_user_order(positions, labels)] = own.in_user_order(positions, own.known_labels())
    return OrderedPosterior(own, order)


def _compare_sizes(sizes: Array, wanted: Array, is_given: bool) -> None:
    name = "theta_X" if is_given else "conditional"
    if sizes.size != wanted.size:
        raise ValueError(f"{name} must hold the same samples as X ({wanted.size}), got {sizes.size}")
    wrong = np.flatnonzero(sizes != wanted)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"{name} must give every sample as many hidden values as X does; sample {i} has {sizes[i]}, and "
            f"{wanted[i]} in X"
        )

"""Dissimilarity-coefficient learning: losses that depend on the hidden value, when that is not labelled."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from scipy.optimize import minimize

from tacit.data.arrays import Array, checksum
from tacit.data.labels import find_missing
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import between, choice, estimator, parameter, positive, table
from tacit.learners.descents.descent import Descent
from tacit.learners.descents.multistart import Ended, Numbers
from tacit.learners.descents.starts import propose
from tacit.learners.descents.unlabelled import self_train
from tacit.learners.iterative_latent_svm import BestState, Rounds
from tacit.learners.latent_svm import LatentSVM
from tacit.oracle import CapabilityError, Oracle, Problem, Schema, capability, loss_needs_hidden, require
from tacit.oracle.capabilities import (
    GivesPosteriors,
    ListsOutputs,
    MeasuresCompleted,
    MeasuresHidden,
    MovesPosteriors,
    SumsOutputs,
)
from tacit.runtime.blocks import cache_answers

_NEEDS = (MeasuresHidden, MovesPosteriors, GivesPosteriors.hidden_posterior, SumsOutputs)

MAX_THETA_STEPS = 4
"""Maximum number of quasi-Newton steps for θ between two descents for w. With more, P_θ concentrates on what the first
w happened to find: on planted problems 20 steps end higher than 2 or 4."""

MAX_LATER_ITERATIONS = 3
"""Iterations for w between two steps for θ, from the second on: w need not converge while θ changes."""

BATCH = 16
"""Samples per stochastic step for θ."""


@estimator
class DissimilaritySVM(LatentSVM):
    """Learns w, which predicts (y, h), and θ, a distribution over h where only y is known.

    For losses ``Δ(y_i, h_i, y, h)`` such as the overlap of boxes, when h_i is unknown. ``P_θ(h)``, proportional to
    ``exp θ·Φ(x_i, y_i, h)``, is a distribution over hidden values, and a prediction costs its mean loss over it.
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
    problem : what is predicted; its loss looks at the hidden value, such as ``Candidates(loss="overlap")``
    J : coefficient of ½‖θ‖²
    beta : coefficient of the diversity H, from 0, below 1
    C : coefficient of the mean loss against ½‖w‖²
    conditional : None for Φ = Ψ; another problem, which gives the same samples other features and has the same hidden
        values; or "delta" for the best hidden value in place of P_θ, which is `IterativeLatentSVM`
    theta_step : "joint" makes quasi-Newton steps on the joint objective, which then never rises. "text" makes the
        stochastic steps of the source, corrected; they may raise it, so the best pair is kept
    solver, pace, n_init, init, tol, max_iter, max_inner, unknown_weight, rescaling, penalty, class_weight : as in
        `LatentSVM`
    warm_start, escape, shift : as in `LatentSVM`. With a pace the first round goes from easy samples to hard ones
    checkpoint, resume, n_jobs, random_state, verbose, callbacks : as in `LatentSVM`

    Attributes
    ----------
    theta_ : the weights of P_θ
    objective_parts_ : (iterations, 3) what the objective is made of: ``½‖w‖² + (C/n) Σ ξ_i``, ``−β (C/n) Σ H_i`` and
        ``½J‖θ‖²``
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

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> DissimilaritySVM:
        """Learn from labelled samples; the arguments are those of `LatentSVM.fit`."""
        if (is_missing := find_missing(y)).any():
            return self_train(self, X, y, is_missing, hidden, sample_weight)
        self._check_parameters()
        self._data = X, y, hidden
        try:
            super().fit(X, y, hidden=hidden, sample_weight=sample_weight)
        finally:
            del self._data
            self.__dict__.pop("_oracle", None)
        return self

    def conditional_proba(self, X: Any, y: Any, *, hidden: Any = None) -> Ragged:
        """P_θ(h | x, y) of every sample: one probability per hidden value, as a `Ragged` of rows of numbers.

        Where ``hidden`` gives a value, or rules some out, the others have probability 0.
        """
        oracle = self._bind(X, y, hidden)
        if isinstance(self.conditional, str):
            require(type(self).__name__, self.problem, oracle, ListsOutputs)
            chances = np.zeros(int(oracle.offsets[-1]))
            chances[oracle.offsets[:-1] + oracle.split(oracle.impute(self.coef_).code)[1]] = 1.0
            return Ragged(chances, oracle.offsets)
        if self.conditional is not None:
            oracle = self.conditional.bind(X, y, self.theta_schema_, hidden=hidden)
        require(type(self).__name__, self.problem, oracle, [GivesPosteriors.hidden_posterior])
        return Ragged(oracle.hidden_posterior(self.theta_), oracle.offsets)

    def check(self) -> None:
        super().check()
        schema = self.schema_ if self.conditional is None else getattr(self, "theta_schema_", None)
        size = schema.n_params if isinstance(schema, Schema) and not isinstance(self.conditional, str) else 0
        if self.theta_.dtype != np.float64 or self.theta_.size not in (0, size):
            raise ValueError(f"theta_ must hold {size} weights in double precision, got {shorten(self.theta_)}")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_name = isinstance(self.conditional, str)
        if (is_name and self.conditional != "delta") or not (
            is_name or self.conditional is None or isinstance(self.conditional, Problem)
        ):
            raise ValueError(f"conditional must be None, 'delta' or a problem, got {shorten(self.conditional)}")
        if not isinstance(self.rescaling, str) or self.rescaling != "margin":
            raise ValueError("rescaling must be 'margin': the averaged loss is not zero on the truth, as 'slack' needs")

    def _check_loss(self, oracle: Oracle) -> None:
        """Bind the oracle of P_θ, and refuse problems that cannot do what it takes."""
        self._oracle = None
        if not loss_needs_hidden(oracle):
            if not isinstance(self.conditional, str):
                self._refuse_completed(oracle)
            return
        require(type(self).__name__, self.problem, oracle, MeasuresHidden)
        if isinstance(self.conditional, str):
            return
        self._oracle = oracle
        require(type(self).__name__, self.problem, oracle, _NEEDS)
        if self.conditional is None:
            return
        X, y, hidden = self._data
        self.theta_schema_ = self.conditional.schema(X, y)
        self._oracle = self.conditional.bind(X, y, self.theta_schema_, hidden=hidden)
        require(
            type(self).__name__,
            self.conditional,
            self._oracle,
            [GivesPosteriors.hidden_posterior, MovesPosteriors.posterior_slope],
        )
        sizes, own = (np.diff(cast(ListsOutputs, one).offsets) for one in (self._oracle, oracle))
        if not np.array_equal(sizes, own):
            raise ValueError(
                "conditional must give every sample as many hidden values as the problem does; sample "
                f"{int(np.argmax(sizes != own))} differs"
            )

    def _refuse_completed(self, oracle: Oracle) -> None:
        """Refuse labels with missing parts whose loss can be completed: without P_θ over these parts, the known ones
        alone would count, as in a latent SVM."""
        unknown = oracle.hidden_unknown()
        if not unknown.size or capability(oracle, MeasuresCompleted) is None:
            return
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
        return descent.convert(Dissimilarity, **settings, step_kind=self.theta_step)

    def _keep(self, ended: Ended, schema: Any, oracle: Oracle) -> None:
        super()._keep(ended, schema, oracle)
        best = ended.state
        if isinstance(best, PairState):
            self.theta_, self.objective_parts_ = best.theta, best.parts
            return
        size = 0 if isinstance(self.conditional, str) else schema.n_params
        if isinstance(self.conditional, Problem):
            X, y, _ = self._data
            self.theta_schema_ = self.conditional.schema(X, y)
            size = self.theta_schema_.n_params
        self.theta_ = np.zeros(size)
        self.objective_parts_ = np.array([[line.objective, 0.0, 0.0] for line in self.history_])


@dataclass(frozen=True)
class PairState(BestState):
    """The state of a start, with θ, the parts of the objective so far, and the best pair so far."""

    theta: Numbers = field(default_factory=lambda: np.empty(0))
    parts: Numbers = field(default_factory=lambda: np.empty((0, 3)))  # of w, of the diversity and of θ, by iteration
    age: int = 0  # iterations for w since the last step for θ
    round_objective: float = np.inf  # the objective after the last step for θ
    n_theta_steps: int = 0
    best_theta: Numbers = field(default_factory=lambda: np.empty(0))

    def keep_if_best(self, objective: float) -> Self:
        kept = super().keep_if_best(objective)
        return self if kept is self else replace(kept, best_theta=self.theta)

    def back_at_best(self) -> Self:
        return replace(super().back_at_best(), theta=self.best_theta)


class Fixed(NamedTuple):
    """What follows from θ alone: the descent for w under its posterior, and two parts of the objective."""

    descent: Descent
    diversity: float  # −β Σ c_i H_i
    penalty: float  # ½J‖θ‖²

    @property
    def constant(self) -> float:
        """What the objective has beside the part of w."""
        return self.penalty + self.diversity


@dataclass(frozen=True)
class Dissimilarity(Descent):
    """``min Ω(w) + ½J‖θ‖² + Σ_i c_i [ξ_i(w, θ) − β H_i(θ)]``, for w and θ alternately (Kumar 2013, chapter 4).

    ``ξ_i = max_{y,h} [s(y, h) + Σ_h' P_θ(h') Δ(y_i, h', y, h)] − max_h s(y_i, h)`` and ``H_i`` is the mean loss between
    two hidden values drawn from ``P_θ(h) ∝ exp θ·Φ(x_i, y_i, h)``.

    Parameters
    ----------
    conditional : the oracle of P_θ, of the same samples
    J, beta : coefficients of ½‖θ‖² and of the diversity H
    step_kind : "joint" or "text"
    present : what follows from the present θ
    """

    conditional: Any = None
    J: float = 0.1
    beta: float = 0.1
    step_kind: str = "joint"
    present: dict[str, Fixed] = field(default_factory=dict)

    state: ClassVar[Any] = PairState

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> PairState:
        first: PairState = super().begin(target, w, seed=seed, start=start)
        return replace(first, theta=np.zeros(self.conditional.n_params))

    def check(self, state: Any) -> None:
        super().check(state)
        if state.theta.shape != (self.conditional.n_params,) or state.parts.shape[1:] != (3,):
            raise ValueError(f"theta must hold {self.conditional.n_params} numbers, got shape {state.theta.shape}")

    def better(self, best: PairState | None, now: PairState) -> PairState:
        return now.back_at_best() if np.isfinite(now.best_objective) else now

    def step(self, now: PairState) -> PairState:
        """One iteration for w; if it was the last one for this θ, a step for θ follows, or the run ends."""
        fixed = self.fix(now.theta)
        after: PairState = fixed.descent.step(replace(now, objective=now.objective - fixed.constant))
        after = replace(after, age=now.age + 1, objective=after.objective + fixed.constant)
        if after.is_in.all():  # while a pace leaves samples out, objectives cannot be compared
            after = after.keep_if_best(after.objective)
        if self._is_round_over(after):
            after = self._step_theta(after)
        fixed = self.fix(after.theta)
        parts = np.array([[after.objective - fixed.constant, fixed.diversity, fixed.penalty]])
        return replace(after, parts=np.vstack([now.parts, parts]))

    def _is_round_over(self, now: PairState) -> bool:
        """Whether a step for θ comes next."""
        is_pacing = not now.is_in.all() or (self.pace is not None and not np.isfinite(now.threshold))
        return now.is_done or (now.n_theta_steps > 0 and not is_pacing and now.age >= MAX_LATER_ITERATIONS)

    def _step_theta(self, now: PairState) -> PairState:
        """The end of a round: a step for θ, and another round unless this one decreased the objective too little."""
        steps = {"joint": self._joint_step, "text": self._stochastic_steps}
        theta, objective = steps[self.step_kind](now)
        decrease = max(now.round_objective - objective, now.objective - objective)
        is_end = now.is_done and decrease < self.significant
        counts: dict[str, Any] = {"age": 0, "n_theta_steps": now.n_theta_steps + 1, "round_objective": objective}
        after = replace(now, theta=theta, objective=objective, is_done=is_end, **counts).keep_if_best(objective)
        return after.back_at_best() if is_end else after

    # θ

    def _joint_step(self, now: PairState) -> tuple[Array, float]:
        """Quasi-Newton steps on the joint objective, w fixed; the old θ if they do not lower it."""
        own = now.objective - self.theta_objective(now.w, now.theta)[0]  # what does not depend on θ
        found = minimize(
            lambda theta: self.theta_objective(now.w, theta),
            now.theta,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MAX_THETA_STEPS, "maxfun": 2 * MAX_THETA_STEPS},
        )
        theta = np.asarray(found.x, dtype=np.float64)
        objective = own + float(found.fun)
        return (theta, objective) if objective < now.objective else (now.theta, now.objective)

    def theta_objective(self, w: Array, theta: Array) -> tuple[float, Array]:
        """The part of the joint objective that depends on θ, up to terms of w alone, and its gradient.

        At the output that attains ξ_i the maximum is linear in P_θ. So its gradient is a covariance with the features
        Φ: that of the losses of this output, minus β times the gradient of the diversity.
        """
        weights = self.weights
        posterior = self.conditional.hidden_posterior(theta)
        oracle = cast(MovesPosteriors, self.oracle.exact())
        best = cast(MeasuresHidden, oracle).measured_against(posterior=posterior).predict_augmented(w)
        diversity, slope = oracle.diversity(posterior)
        values = oracle.losses_of(best.code) - self.beta * slope
        objective = 0.5 * self.J * float(theta @ theta) + float((weights * (best.value - self.beta * diversity)).sum())
        gradient = self.J * theta + self.conditional.posterior_slope(posterior, values, weights)
        return objective, gradient

    def _stochastic_steps(self, now: PairState) -> tuple[Array, float]:
        """Algorithm 8 of Kumar (2013), corrected: one pass over the samples with steps 1/(λt), λ = J/C.

        The gradient is ``λθ + Cov(v, Φ) − β Cov(LP + LᵀP, Φ)``, of which the text has lost λ, β and a sign; v are the
        losses of the *predicted* output. The first t is C/J: a first step of 1/λ would erase θ.
        """
        weights, oracle = self.weights, cast(MovesPosteriors, self.oracle.exact())
        total = float(weights.sum())
        rate = self.J / total
        predicted = oracle.losses_of(oracle.predict(now.w).code)
        order = now.rng("draw").permutation(weights.size)
        theta, t = now.theta, total / self.J + now.n_theta_steps * np.ceil(weights.size / BATCH)
        for start in range(0, weights.size, BATCH):
            rows = np.sort(order[start : start + BATCH])
            chosen = np.zeros_like(weights)
            chosen[rows] = weights[rows] / max(float(weights[rows].sum()), 1e-300)
            posterior = self.conditional.hidden_posterior(theta)
            values = predicted - self.beta * oracle.diversity(posterior)[1]
            t += 1
            slope = rate * theta + self.conditional.posterior_slope(posterior, values, chosen)
            theta = theta - slope / (rate * t)
        return theta, self.joint_objective(now.w, now.target, theta)

    # measure

    def joint_objective(self, w: Array, target: Array, theta: Array) -> float:
        """The objective of the pair, the hidden values being ``target``."""
        fixed = self.fix(theta)
        return fixed.descent.objective(w, target) + fixed.constant

    def fix(self, theta: Array) -> Fixed:
        """What follows from θ; the same object as long as θ stays."""
        digest = checksum(theta)
        if digest not in self.present:
            posterior = self.conditional.hidden_posterior(theta)
            oracle = cache_answers(cast(MeasuresHidden, self.oracle).measured_against(posterior=posterior))
            diversity = float((self.weights * cast(MovesPosteriors, self.oracle).diversity(posterior)[0]).sum())
            self.present.clear()
            descent = self.convert(Descent, oracle=oracle)
            self.present[digest] = Fixed(descent, -self.beta * diversity, 0.5 * self.J * float(theta @ theta))
        return self.present[digest]

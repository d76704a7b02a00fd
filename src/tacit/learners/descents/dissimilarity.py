"""Alternating steps of dissimilarity-coefficient learning: for w by a latent SVM, for θ by gradients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from scipy.optimize import Bounds, minimize

from tacit.data.arrays import Array, checksum
from tacit.learners.descents.descent import Descent
from tacit.learners.descents.multistart import Numbers
from tacit.learners.iterative_latent_svm import BestState
from tacit.oracle.capabilities import MeasuresHidden, MovesPosteriors
from tacit.penalties import Penalty, Quadratic, without_bounds
from tacit.runtime.blocks import cache_answers

MAX_THETA_STEPS = 4
"""Maximum number of quasi-Newton steps for θ between two descents for w. With more, P_θ concentrates on what the first
w happened to find: on planted problems 20 steps end higher than 2 or 4."""

MAX_LATER_ITERATIONS = 3
"""Iterations for w between two steps for θ, from the second on: w need not converge while θ changes."""

SUFFICIENT_SHARE = 1e-4
"""Share of the predicted decrease that a proximal step must attain."""

BATCH = 16
"""Samples per stochastic step for θ."""


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
    penalty: float  # J Ω(θ)

    @property
    def constant(self) -> float:
        """What the objective has beside the part of w."""
        return self.penalty + self.diversity


@dataclass(frozen=True)
class Dissimilarity(Descent):
    """``min Ω(w) + J Ω'(θ) + Σ_i c_i [ξ_i(w, θ) − β H_i(θ)]``, for w and θ alternately (Kumar 2013, chapter 4).

    ``ξ_i = max_{y,h} [s(y, h) + Σ_h' P_θ(h') Δ(y_i, h', y, h)] − max_h s(y_i, h)`` and ``H_i`` is the mean loss between
    two hidden values drawn from ``P_θ(h) ∝ exp θ·Φ(x_i, y_i, h)``.

    Parameters
    ----------
    conditional : the oracle of P_θ, of the same samples
    J, beta : coefficients of Ω' and of the diversity H
    theta_penalty : Ω', the default is ½‖θ‖²
    step_kind : "joint" or "text"
    present : what follows from the present θ
    """

    conditional: Any = None
    J: float = 0.1
    beta: float = 0.1
    theta_penalty: Penalty = field(default_factory=Quadratic)
    step_kind: str = "joint"
    present: dict[str, Fixed] = field(default_factory=dict)

    state: ClassVar[Any] = PairState
    prefers_path: ClassVar[bool] = False

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> PairState:
        first: PairState = super().begin(target, w, seed=seed, start=start)
        return replace(first, theta=lowest_point(self.theta_penalty, self.conditional.n_params))

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
        """A few steps on the joint objective, w fixed; the old θ if they do not lower it."""
        start, gradient = self.theta_objective(now.w, now.theta)
        own = now.objective - start  # what does not depend on θ
        if self.theta_penalty.is_quadratic:
            theta, value = self._quasi_newton_steps(now)
        else:
            theta, value = self._proximal_steps(now.w, now.theta, start, gradient)
        objective = own + value
        return (theta, objective) if objective < now.objective else (now.theta, now.objective)

    def _quasi_newton_steps(self, now: PairState) -> tuple[Array, float]:
        """L-BFGS, within the lower bounds of the penalty if it has any."""
        lower = without_bounds(self.theta_penalty)[1]
        found = minimize(
            lambda theta: self.theta_objective(now.w, theta),
            now.theta,
            jac=True,
            method="L-BFGS-B",
            bounds=None if lower is None else Bounds(np.broadcast_to(lower, now.theta.shape)),
            options={"maxiter": MAX_THETA_STEPS, "maxfun": 2 * MAX_THETA_STEPS},
        )
        return np.asarray(found.x, dtype=np.float64), float(found.fun)

    def _proximal_steps(self, w: Array, theta: Array, value: float, gradient: Array) -> tuple[Array, float]:
        """Proximal gradient steps, which norms need; their lengths are those of Barzilai & Borwein (1988).

        A step is shortened until it attains a share of the decrease that its model predicts. So the value never rises.
        """
        weight = max(float(np.linalg.norm(gradient)) / self.J, 1e-12)  # the first step has about the length 1
        n_steps = 0
        for _ in range(2 * MAX_THETA_STEPS):
            near = self.theta_penalty.near(theta, weight)
            after = near.primal(gradient / self.J)
            promised = near.value(theta) - near.value(after) - float(gradient @ (after - theta)) / self.J
            if not promised > 0:
                break
            value_after, gradient_after = self.theta_objective(w, after)
            if value_after > value - SUFFICIENT_SHARE * self.J * promised:
                weight *= 4
                continue
            move, change = after - theta, gradient_after - gradient
            weight = max(float(move @ change) / self.J / float(move @ move), weight / 10)
            theta, value, gradient = after, value_after, gradient_after
            n_steps += 1
            if n_steps == MAX_THETA_STEPS:
                break
        return theta, value

    def theta_objective(self, w: Array, theta: Array) -> tuple[float, Array]:
        """The part of the joint objective that depends on θ, up to terms of w alone, and its gradient.

        At the output that attains ξ_i the maximum is linear in P_θ. So its gradient is a covariance with the features
        Φ: that of the losses of this output, minus β times the gradient of the diversity. The gradient is without that
        of a penalty that is a norm.
        """
        weights = self.weights
        posterior = self.conditional.hidden_posterior(theta)
        oracle = cast(MovesPosteriors, self.oracle.exact())
        best = cast(MeasuresHidden, oracle).measured_against(posterior=posterior).predict_augmented(w)
        diversity, slope = oracle.diversity(posterior)
        values = oracle.losses_of(best.code) - self.beta * slope
        objective = self._penalise(theta) + float((weights * (best.value - self.beta * diversity)).sum())
        gradient = self.conditional.posterior_slope(theta, posterior, values, weights)
        if self.theta_penalty.is_quadratic:
            gradient = self.J * quadratic_slope(self.theta_penalty, theta) + gradient
        return objective, gradient

    def _penalise(self, theta: Array) -> float:
        """J Ω(θ)."""
        return self.J * float(self.theta_penalty.value(theta))

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
            slope = self.conditional.posterior_slope(theta, posterior, values, chosen)
            theta = self._stochastic_step(theta, slope, rate, t)
        return theta, self.joint_objective(now.w, now.target, theta)

    def _stochastic_step(self, theta: Array, slope: Array, rate: float, t: float) -> Array:
        """A step of the length 1/(λt), explicit where the penalty is quadratic, else proximal."""
        if not self.theta_penalty.is_quadratic:
            return self.theta_penalty.near(theta, t).primal(slope / rate)
        after = theta - (rate * quadratic_slope(self.theta_penalty, theta) + slope) / (rate * t)
        lower = without_bounds(self.theta_penalty)[1]
        return after if lower is None else np.maximum(after, lower)

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
            self.present[digest] = Fixed(descent, -self.beta * diversity, self._penalise(theta))
        return self.present[digest]


def lowest_point(penalty: Penalty, n_params: int) -> Array:
    """argmin Ω: what a penalty alone prefers.

    >>> lowest_point(Quadratic(), 2)
    array([0., 0.])
    """
    return np.asarray(0.0 + penalty.primal(np.zeros(n_params)))  # no −0.0


def quadratic_slope(penalty: Penalty, theta: Array) -> Array:
    """∇Ω(θ) of a quadratic penalty, without its bounds: its curvature times the way from its lowest point.

    >>> from tacit.penalties import Prior
    >>> quadratic_slope(Prior(np.array([1.0, 0.0]), metric=2.0), np.array([3.0, 1.0]))
    array([4., 2.])
    """
    free = without_bounds(penalty)[0]
    return np.asarray(np.square(free.dual_scale) * (theta - free.primal(np.zeros_like(theta))))


class OrderedPosterior(NamedTuple):
    """The oracle of P_θ, asked in the order in which another oracle has the hidden values of the same samples.

    ``order`` has for every state of the other oracle the position of the same hidden value in this one.
    """

    oracle: Any
    order: Array

    @property
    def n_params(self) -> int:
        return int(self.oracle.n_params)

    def hidden_posterior(self, theta: Array) -> Array:
        return np.asarray(self.oracle.hidden_posterior(theta)[self.order])

    def posterior_slope(self, theta: Array, posterior: Array, values: Array, weights: Array) -> Array:
        there = np.empty((2, self.order.size))
        there[:, self.order] = posterior, values
        return np.asarray(self.oracle.posterior_slope(theta, *there, weights))

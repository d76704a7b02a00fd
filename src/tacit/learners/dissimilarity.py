"""Two models at once: w, which predicts, and θ, which says how sure one can be of the hidden values.

A `Dissimilarity` alternates between a latent descent for w, its loss averaged over P_θ, and a step for θ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize

from tacit.data.arrays import Array
from tacit.learners.descent import Descent, LatentState
from tacit.learners.multistart import Numbers, OptionalCodes, OptionalWeights
from tacit.oracle.digests import checksum
from tacit.runtime.blocks import cache_answers

MAX_THETA_STEPS = 4
"""Quasi-Newton steps for θ between two descents for w, at the most. More would make P_θ sure of what the first w
happened to find: on planted problems 20 steps end higher than 2 or 4."""

MAX_LATER_ITERATIONS = 3
"""Iterations for w between two steps for θ, from the second on: w need not converge while θ moves."""

BATCH = 16
"""Samples per stochastic step for θ."""


@dataclass(frozen=True)
class PairState(LatentState):
    """Where a start is, with θ, the parts of the objective so far, and the best pair so far."""

    theta: Numbers = field(default_factory=lambda: np.empty(0))
    parts: Numbers = field(default_factory=lambda: np.empty((0, 3)))  # of w, of the spread and of θ, by iteration
    age: int = 0  # iterations for w since θ last moved
    round_objective: float = np.inf  # the objective when θ last moved
    n_theta_steps: int = 0
    best_w: OptionalWeights = field(default_factory=lambda: np.empty(0))
    best_target: OptionalCodes = field(default_factory=lambda: np.empty(0, np.int64))
    best_theta: Numbers = field(default_factory=lambda: np.empty(0))
    best_objective: float = np.inf
    best_gap: float = np.inf


class Fixed(NamedTuple):
    """What follows from θ alone: the posterior, the descent for w under it, and the parts of the objective."""

    posterior: Array
    descent: Descent
    spread: float
    penalty: float


@dataclass(frozen=True)
class Dissimilarity(Descent):
    """``min Ω(w) + ½J‖θ‖² + Σ_i c_i [ξ_i(w, θ) − β H_i(θ)]``, by turns (Kumar 2013, chapter 4).

    ``ξ_i = max_{y,h} [s(y, h) + Σ_h' P_θ(h') Δ(y_i, h', y, h)] − max_h s(y_i, h)`` and ``H_i`` is the mean loss between
    two hidden values drawn from ``P_θ(h) ∝ exp θ·Φ(x_i, y_i, h)``.

    Parameters
    ----------
    conditional : the oracle of P_θ, of the same samples
    J, beta : weights of ½‖θ‖² and of the spread H
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
            raise ValueError(f"theta has shape {state.theta.shape} for {self.conditional.n_params} weights")

    def better(self, best: PairState | None, now: PairState) -> PairState:
        return _back_at_best(now) if np.isfinite(now.best_objective) else now

    def step(self, now: PairState) -> PairState:
        """One iteration for w; where that was the last one for this θ, θ moves, or the run ends."""
        fixed = self.fix(now.theta)
        constant = fixed.penalty - self.beta * fixed.spread
        moved: PairState = fixed.descent.step(replace(now, objective=now.objective - constant))
        moved = replace(moved, age=now.age + 1, objective=moved.objective + constant)
        if moved.is_in.all():  # while a pace leaves samples out, objectives do not compare
            moved = _with_best(moved)
        if self._is_due(moved):
            moved = self._move(moved)
        parts = np.array([[moved.objective - self._constant(moved.theta), *self._shown(moved.theta)]])
        return replace(moved, parts=np.vstack([now.parts, parts]))

    def _is_due(self, now: PairState) -> bool:
        """Whether it is θ's turn."""
        is_pacing = not now.is_in.all() or (self.pace is not None and not np.isfinite(now.ease))
        return now.is_done or (now.n_theta_steps > 0 and not is_pacing and now.age >= MAX_LATER_ITERATIONS)

    def _move(self, now: PairState) -> PairState:
        """The end of a round: θ moves, and another round begins unless this one brought next to nothing."""
        steps = {"joint": self._joint_step, "text": self._stochastic_steps}
        theta, objective = steps[self.step_kind](now)
        significant = self.significant
        brought = now.round_objective - objective
        is_end = now.is_done and brought < significant and now.objective - objective < significant
        after = replace(
            now,
            theta=theta,
            objective=objective,
            age=0,
            is_done=is_end,
            round_objective=objective,
            n_theta_steps=now.n_theta_steps + 1,
        )
        after = _with_best(after)
        return _back_at_best(after) if is_end else after

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

        At the output that attains ξ_i the maximum is linear in P_θ, so its slope is a covariance: that of the losses of
        this output, minus β times the gradient of the spread, with the features Φ.
        """
        weights = self.weights
        posterior = self.conditional.hidden_posterior(theta)
        oracle = self.oracle.exact()
        best = oracle.measured_against(posterior=posterior).augmented(w)
        spread, slope = oracle.spread(posterior)
        values = oracle.losses_of(best.code) - self.beta * slope
        objective = 0.5 * self.J * float(theta @ theta) + float((weights * (best.value - self.beta * spread)).sum())
        gradient = self.J * theta + self.conditional.posterior_slope(posterior, values, weights)
        return objective, gradient

    def _stochastic_steps(self, now: PairState) -> tuple[Array, float]:
        """Algorithm 8 of Kumar (2013), corrected: one pass over the samples with steps 1/(λt), λ = J/C.

        The gradient is ``λθ + Cov(v, Φ) − β Cov(LP + LᵀP, Φ)``, of which the text has lost λ, β and a sign; v are the
        losses of the *predicted* output. The first t is C/J: a step of 1/λ would wipe out θ.
        """
        weights, oracle = self.weights, self.oracle.exact()
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
            values = predicted - self.beta * oracle.spread(posterior)[1]
            t += 1
            slope = rate * theta + self.conditional.posterior_slope(posterior, values, chosen)
            theta = theta - slope / (rate * t)
        return theta, self.joint_objective(now.w, now.target, theta)

    # measure

    def joint_objective(self, w: Array, target: Array, theta: Array) -> float:
        """The objective of the pair, the hidden values being ``target``."""
        return self.fix(theta).descent.objective(w, target) + self._constant(theta)

    def fix(self, theta: Array) -> Fixed:
        """What follows from θ; the same object as long as θ stays."""
        digest = checksum(theta)
        if digest not in self.present:
            posterior = self.conditional.hidden_posterior(theta)
            oracle = cache_answers(self.oracle.measured_against(posterior=posterior))
            spread = float((self.weights * self.oracle.spread(posterior)[0]).sum())
            self.present.clear()
            descent = self.turned_into(Descent, oracle=oracle)
            self.present[digest] = Fixed(posterior, descent, spread, 0.5 * self.J * float(theta @ theta))
        return self.present[digest]

    def _constant(self, theta: Array) -> float:
        """What the objective has beside the part of w."""
        fixed = self.fix(theta)
        return fixed.penalty - self.beta * fixed.spread

    def _shown(self, theta: Array) -> tuple[float, float]:
        fixed = self.fix(theta)
        return -self.beta * fixed.spread, fixed.penalty


def _with_best(now: PairState) -> PairState:
    """The same state, kept as the best if it is."""
    if now.objective >= now.best_objective:
        return now
    best: dict[str, Any] = {"best_w": now.w, "best_target": now.target, "best_theta": now.theta}
    return replace(now, **best, best_objective=now.objective, best_gap=now.gap)


def _back_at_best(now: PairState) -> PairState:
    return replace(
        now,
        w=now.best_w,
        target=now.best_target,
        theta=now.best_theta,
        objective=now.best_objective,
        gap=now.best_gap,
    )

"""The objective of min-entropy models, and how it is minimised.

The methods are L-BFGS that leaves kinks, trust regions, and CCCP for finite α ≠ 1. At α = ∞ the descent of latent SVMs
is used, in `tacit.learners.min_entropy_svm`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.kernels import kernel
from tacit.learners.descents.multistart import Method
from tacit.learners.smooth_learner import QuasiNewton, QuasiNewtonState, SmoothState, SmoothStep
from tacit.oracle import Oracle
from tacit.oracle.cell_sums import choose_rivals
from tacit.oracle.entropies import Order, read_order
from tacit.solvers.ball_bundle import minimise_in_ball


@dataclass(frozen=True)
class EntropyMargins:
    """``½‖w‖² + Σ_i c_i ξ_i`` with ``ξ_i = max(0, max_{y ≠ y_i} [Δ(y_i, y) + R_α(y)] − R_α(y_i))``.

    In place of the order α, another entropy of `tacit.oracle.entropies`, whose scores then stand for R_α.

    The margin is against other labels only: ξ_i ≥ 0 is a separate constraint (Kumar 2013, eq. 3.9).
    """

    oracle: Any
    weights: Array
    alpha: Order
    rescaling: str = "margin"

    def __call__(self, w: Array) -> tuple[float, Array]:
        found = self.oracle.renyi_slacks(w, self.weights, self.alpha, rescaling=self.rescaling)
        return 0.5 * float(w @ w) + float((self.weights * found.value).sum()), w + found.features

    def slack(self, w: Array) -> Array:
        """ξ_i(w) of every sample."""
        nothing = np.zeros(self.weights.size)
        value: Array = self.oracle.renyi_slacks(w, nothing, self.alpha, rescaling=self.rescaling).value
        return value

    def inference_gap(self, w: Array) -> float:
        """How much slack a search for rivals may have missed at w; 0 where they are listed."""
        found = self.oracle.renyi_slacks(w, np.zeros(self.weights.size), self.alpha, rescaling=self.rescaling)
        return 0.0 if found.bound is None else float((self.weights * (found.bound - found.value)).sum())

    def of(self, oracle: Oracle, weights: Array) -> EntropyMargins:
        """The same objective of other samples, or with other hidden values known."""
        return EntropyMargins(oracle, weights, self.alpha, self.rescaling)


@dataclass(frozen=True)
class EntropyMethod(Method[Any]):
    """A method for this objective. ``significant`` is the smallest decrease that counts."""

    margins: EntropyMargins
    significant: float
    max_inner: int = 200

    line_type: ClassVar[Any] = SmoothStep

    @property
    def oracle(self) -> Oracle:
        return cast(Oracle, self.margins.oracle)

    def begin_at(self, w: Array) -> Any:
        return self.state(self.margins(w)[0], w=w, evaluations=1, samples_in=self.margins.weights.size)


@dataclass(frozen=True)
class RegionState(SmoothState):
    """The state of a descent in trust regions, with the squared radius of the next one."""

    square: float = 4.0


@dataclass(frozen=True)
class TrustRegion(EntropyMethod):
    """Algorithm 6 of Kumar (2013) with a corrected acceptance: a convex model of all Rényi scores, inside a ball.

    The printed rule never ends at a stationary point. Here the decrease that the model predicts decides. A descent ends
    when that is below ``significant``. A step is taken if the true decrease is at least a tenth of it. The squared
    radius is divided by 4 if it is less than a quarter, and multiplied by 4 if it is more than three quarters and the
    step ends on the rim of the ball.
    """

    state: ClassVar[Any] = RegionState

    def step(self, now: Any) -> Any:
        square = now.square
        model = LinearModel(self.margins, now.w)
        solution = minimise_in_ball(
            model,
            now.w,
            square,
            gap=0.1 * self.significant,
            share=SHARE_OF_FALL,
            needed=self.significant if square > 1.0 else 0.0,
            max_iter=self.max_inner,
        )
        promised = now.objective - solution.objective
        evaluations = now.evaluations + solution.evaluations + 2
        is_rim = float(np.sum((solution.w - now.w) ** 2)) >= 0.8 * square
        count: dict[str, Any] = {"iteration": now.iteration + 1, "evaluations": evaluations}
        if promised < self.significant and (not is_rim or square > 1.0):
            return replace(now, **count, is_done=True, is_solved=solution.gap <= self.significant)
        objective = self.margins(solution.w)[0]
        kept = (now.objective - objective) / max(promised, 1e-300)
        if kept < 0.25:
            square /= 4
        elif kept > 0.75 and is_rim:
            square *= 4
        is_end = square < MIN_SQUARE
        ending: dict[str, Any] = {**count, "square": square, "is_done": is_end, "is_solved": True}
        if kept <= 0.1:
            return replace(now, **ending)
        return replace(now, **ending, w=solution.w, objective=objective)


SHARE_OF_FALL = 0.5
"""A model is minimised until at most this share of its decrease is left: more would be lost on the next model."""

MIN_SQUARE = 1e-8
"""The squared radius below which a start ends."""


@dataclass(frozen=True)
class KinkState(QuasiNewtonState):
    """The state of L-BFGS, whether a kink slows it down, and the squared radius of the next trust region."""

    square: float = 4.0
    at_kink: bool = False


@dataclass(frozen=True)
class KinkedDescent(Method[KinkState]):
    """L-BFGS on the exact subgradient; where kinks slow it down, one step of the trust region leaves them.

    A start ends at a smooth stationary point, or when the trust region predicts a decrease below ``significant``.
    """

    quick: QuasiNewton
    region: TrustRegion

    state: ClassVar[Any] = KinkState
    line_type: ClassVar[Any] = SmoothStep

    @property
    def oracle(self) -> Oracle:
        return self.quick.oracle

    def begin_at(self, w: Array) -> KinkState:
        return self._at(self.quick.begin_at(w))

    def step(self, now: KinkState) -> KinkState:
        if not now.at_kink:
            return self._at(self.quick.step(now), now.square)
        found: KinkState = self.region.step(now)
        if found.is_done or found.w is now.w:  # the end, or a smaller ball next time
            return found
        again = replace(self.quick.begin_at(found.w), iteration=found.iteration, evaluations=found.evaluations + 1)
        return self._at(again, found.square)

    def check(self, state: KinkState) -> None:
        self.quick.check(state)

    def _at(self, point: QuasiNewtonState, square: float = 4.0) -> KinkState:
        is_smooth = 0.5 * point.slope**2 <= self.quick.tol * abs(point.objective)
        kept = {**vars(point), "square": square, "at_kink": point.is_done and not is_smooth, "is_done": is_smooth}
        return KinkState(**kept)


@dataclass(frozen=True)
class ConcaveState(SmoothState):
    """The state of CCCP, and the gap that the next model is solved to."""

    gap: float = 1e300


@dataclass(frozen=True)
class ConvexConcave(EntropyMethod):
    """CCCP for finite α ≠ 1: replace the concave parts of the risk by their tangents, minimise, repeat.

    The model lies above the objective and touches it, so no step ever raises the objective.
    """

    max_inner: int = 300

    state: ClassVar[Any] = ConcaveState

    def step(self, now: ConcaveState) -> ConcaveState:
        model = ConvexModel(self.margins, now.w)
        gap = max(0.1 * self.significant, min(now.gap, 0.01 * now.objective))
        solution = minimise_in_ball(model, now.w, gap=gap, max_iter=self.max_inner)
        objective = self.margins(solution.w)[0]
        fall = now.objective - objective
        evaluations = now.evaluations + solution.evaluations + 2
        count: dict[str, Any] = {"iteration": now.iteration + 1, "evaluations": evaluations}
        is_precise = gap <= 0.1 * self.significant
        is_done = is_precise and fall < self.significant
        count |= {"is_done": is_done, "is_solved": not is_done or solution.gap <= self.significant}
        count["gap"] = 0.3 * max(fall, 0.0) if not is_precise and fall > gap else 0.1 * gap
        if fall <= 0:
            return replace(now, **count)
        return replace(now, **count, w=solution.w, objective=objective)


class TangentModel:
    """The risk Σ c_i ξ_i with some parts replaced by their tangents at ``w``: convex, and exact at ``w``.

    It keeps one number per cell: memory grows with the number of cells.
    """

    of_ruled_out = 0.0
    """The constant for labels that a sample cannot have."""

    def __init__(self, margins: EntropyMargins, w: Array) -> None:
        oracle = margins.oracle
        self.margins = margins
        self.labels, self.losses = oracle.known_labels(), oracle.label_losses(None, oracle.offsets)
        n_labels = self.losses.shape[1]
        self.tangents = np.empty((n_labels, int(oracle.offsets[-1])))
        self.constants = np.empty((oracle.n_samples, n_labels))
        oracle.visit_cells(w, self._begin)

    def _begin(self, scores: Array, starts: Array, rows: Rows) -> None:
        oracle = self.margins.oracle
        scores = oracle.rule_out(scores, rows, starts)
        values, V = self._tangents(scores, starts, rows)
        self.tangents[:, oracle.states(rows)] = V
        linear = self._apply(scores, starts, rows, V)
        self.constants[rows] = np.where(np.isfinite(values), values - linear, self.of_ruled_out)

    def __call__(self, w: Array) -> tuple[float, Array]:
        """The modelled risk and a subgradient."""
        slack = np.empty(self.labels.size)

        def visit(scores: Array, starts: Array, rows: Rows) -> Array:
            T = np.ascontiguousarray(self.tangents[:, self.margins.oracle.states(rows)])
            slack[rows], V, coef = self._slacks(scores, starts, rows, T)
            return self._weigh(V, coef, starts, rows)

        slope = self.margins.oracle.visit_cells(w, visit)
        return float((self.margins.weights * slack).sum()), slope

    def _apply(self, scores: Array, starts: Array, rows: Rows, V: Array) -> Array:
        """(samples, labels): the linear parts of the tangents."""
        return _sum_by_label(scores, starts, V)

    def _choose(self, values: Array, rows: Rows) -> tuple[Array, Array]:
        weights, rescaling = self.margins.weights[rows], self.margins.rescaling
        return choose_rivals(values, self.losses[rows], self.labels[rows], weights, rescaling)

    def _weigh(self, V: Array, coef: Array, starts: Array, rows: Rows) -> Array:
        """The weights of all cells in the subgradient, given the coefficients of labels."""
        return np.asarray(V * np.repeat(coef, np.diff(starts), axis=0).T)

    def _tangents(self, scores: Array, starts: Array, rows: Rows) -> tuple[Array, Array]:
        """The values of the replaced parts, by sample and label, and the weights of their gradients by cell."""
        raise NotImplementedError

    def _slacks(self, scores: Array, starts: Array, rows: Rows, T: Array) -> tuple[Array, Array, Array]:
        """ξ_i of the model, the gradients of label scores by cell, and the coefficients of labels, given tangents."""
        raise NotImplementedError


class LinearModel(TangentModel):
    """The risk with every R_α(y) replaced by its tangent, also of entropies whose gradients have a share of ∂ log Z."""

    of_ruled_out = -np.inf

    def __init__(self, margins: EntropyMargins, w: Array) -> None:
        oracle = margins.oracle
        self.is_shared = not read_order(margins.alpha).is_shifted
        if self.is_shared:
            self.share = np.empty((oracle.n_samples, oracle.n_labels))
            self.posterior = np.empty((oracle.n_labels, int(oracle.offsets[-1])))
        super().__init__(margins, w)

    def _tangents(self, scores: Array, starts: Array, rows: Rows) -> tuple[Array, Array]:
        found = self.margins.oracle.score_entropy(scores, starts, rows, self.margins.alpha)
        if self.is_shared:
            self.share[rows], self.posterior[:, self.margins.oracle.states(rows)] = found.share, found.posterior
        return found.values, found.own(np.ones(found.values.shape))

    def _apply(self, scores: Array, starts: Array, rows: Rows, V: Array) -> Array:
        own = super()._apply(scores, starts, rows, V)
        if not self.is_shared:
            return own
        P = np.ascontiguousarray(self.posterior[:, self.margins.oracle.states(rows)])
        return np.asarray(own - self.share[rows] * _sum_by_label(scores, starts, P).sum(axis=1, keepdims=True))

    def _weigh(self, V: Array, coef: Array, starts: Array, rows: Rows) -> Array:
        own = super()._weigh(V, coef, starts, rows)
        if not self.is_shared:
            return own
        shares = np.repeat((coef * self.share[rows]).sum(axis=1), np.diff(starts))
        return np.asarray(own - shares * self.posterior[:, self.margins.oracle.states(rows)])

    def _slacks(self, scores: Array, starts: Array, rows: Rows, T: Array) -> tuple[Array, Array, Array]:
        values = self._apply(scores, starts, rows, T) + self.constants[rows]
        slack, coef = self._choose(values, rows)
        return slack, T, coef


class ConvexModel(TangentModel):
    """The risk with only its concave parts replaced: it lies above the risk.

    ``R_α = P − N`` with ``P = log Σ exp(p s) / |α − 1|`` and ``N = log Σ exp(q s) / |α − 1|``, both convex; p, q are
    α, 1 for α > 1 and 1, α below. A rival label keeps P and has N replaced, the true one the other way round. At α = 1
    and α = ∞ such a difference does not exist.
    """

    def _tangents(self, scores: Array, starts: Array, rows: Rows) -> tuple[Array, Array]:
        return self._sum_powers(scores, starts, self._powers(self.labels[rows], scores.shape[0], is_tangent=True))

    def _slacks(self, scores: Array, starts: Array, rows: Rows, T: Array) -> tuple[Array, Array, Array]:
        labels = self.labels[rows]
        samples = np.arange(labels.size)
        scores = self.margins.oracle.rule_out(scores, rows, starts)
        values, V = self._sum_powers(scores, starts, self._powers(labels, T.shape[0]))
        values = values - _sum_by_label(scores, starts, T) - self.constants[rows]
        values[samples, labels] *= -1  # of the true label, N − tangent of P: what is subtracted
        slack, coef = self._choose(values, rows)
        coef[samples, labels] *= -1
        return slack, V - T, coef

    def _powers(self, labels: Array, n_labels: int, is_tangent: bool = False) -> Array:
        """(n, labels): p for rivals and q for the true label; the other way round for what tangents replace."""
        high, low = read_order(self.margins.alpha).powers
        rival, own = (high, low) if (high > low) != is_tangent else (low, high)
        powers = np.full((labels.size, n_labels), rival)
        powers[np.arange(labels.size), labels] = own
        return powers

    def _sum_powers(self, scores: Array, starts: Array, powers: Array) -> tuple[Array, Array]:
        """log Σ exp(power · s) / |α − 1| by sample and label, and the weights of its gradient by cell."""
        values, weights = np.empty(powers.shape), np.zeros(scores.shape)
        high, low = read_order(self.margins.alpha).powers
        _log_sums(scores, starts, powers, abs(high - low), values, weights)
        return values, weights


@kernel
def _log_sums(scores: Array, starts: Array, powers: Array, share: float, values: Array, weights: Array) -> None:
    """``log Σ exp(powers[i, label] · s) / share`` by sample and label, and the weights of its gradient by cell."""
    base = starts[0]
    for k in range(scores.shape[0]):
        row, into = scores[k], weights[k]
        for i in range(starts.size - 1):
            power = powers[i, k]
            first, last = starts[i] - base, starts[i + 1] - base
            top = -np.inf
            for j in range(first, last):
                top = row[j] if row[j] > top else top
            values[i, k] = -np.inf
            if top == -np.inf:
                continue
            total = 0.0
            for j in range(first, last):
                into[j] = math.exp(power * (row[j] - top))
                total += into[j]
            for j in range(first, last):
                into[j] *= power / (total * share)
            values[i, k] = (power * top + math.log(total)) / share


def _sum_by_label(scores: Array, starts: Array, V: Array) -> Array:
    """(samples, labels): ``Σ_h V · score`` over the states of each sample."""
    sums = np.empty((starts.size - 1, V.shape[0]))
    _sum_weighted(scores, starts, V, sums)
    return sums


@kernel
def _sum_weighted(scores: Array, starts: Array, V: Array, out: Array) -> None:
    """``out[i, label] = Σ_h V · score`` over the states of sample i; cells with V = 0 do not count, even at −inf."""
    base = starts[0]
    for k in range(scores.shape[0]):
        for i in range(starts.size - 1):
            total = 0.0
            for j in range(starts[i] - base, starts[i + 1] - base):
                if V[k, j] != 0.0:
                    total += V[k, j] * scores[k, j]
            out[i, k] = total

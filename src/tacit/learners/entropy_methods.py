"""How min-entropy models are minimised beside L-BFGS: trust region, CCCP, and self-paced learning."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.descent import Descent, LatentState
from tacit.learners.entropy_margins import ConvexModel, EntropyMargins, LinearModel
from tacit.learners.multistart import Mask, Method
from tacit.learners.pacing import SelfPaced
from tacit.learners.smooth_learner import QuasiNewton, QuasiNewtonState, SmoothState, SmoothStep
from tacit.oracle import TARGET, Assignment, Plane, Task, take_code
from tacit.solvers.ball_bundle import minimise_in_ball
from tacit.solvers.quasi_newton import begin, step


@dataclass(frozen=True)
class RegionState(SmoothState):
    """Where a descent in trust regions is, with the squared radius of the next one."""

    square: float = 4.0


@dataclass(frozen=True)
class TrustRegion(Method[Any]):
    """Algorithm 6 of Kumar (2013) with a corrected acceptance: a convex model of all Rényi scores, inside a ball.

    The printed rule never ends at a stationary point. Here the fall that the model promises decides: below
    ``significant`` it is the end; a step that keeps a tenth of the promise is taken; the squared radius is divided by 4
    if less than a quarter is kept, and multiplied by 4 if more than three quarters are, on the rim of the ball.
    """

    margins: EntropyMargins
    significant: float
    max_inner: int = 200

    state: ClassVar[Any] = RegionState
    line_type: ClassVar[Any] = SmoothStep

    @property
    def oracle(self) -> Any:
        return self.margins.oracle

    def begin_at(self, w: Array) -> RegionState:
        return RegionState(self.margins(w)[0], w=w, evaluations=1, samples_in=self.margins.weights.size)

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
"""A model is minimised until at most this share of what it promises is left: the next model is another one."""

MIN_SQUARE = 1e-8
"""The squared radius below which a start ends."""


@dataclass(frozen=True)
class KinkState(QuasiNewtonState):
    """Where L-BFGS is, whether a kink slows it down, and the squared radius of the next trust region."""

    square: float = 4.0
    at_kink: bool = False


@dataclass(frozen=True)
class KinkedDescent(Method[KinkState]):
    """L-BFGS on the exact subgradient; where kinks slow it down, one step of the trust region leaves them.

    A start ends at a smooth stationary point, or when the trust region promises less than ``significant``.
    """

    quick: QuasiNewton
    region: TrustRegion

    state: ClassVar[Any] = KinkState
    line_type: ClassVar[Any] = SmoothStep

    @property
    def oracle(self) -> Any:
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
    """Where CCCP is, and the gap that the next model is solved to."""

    gap: float = 1e300


@dataclass(frozen=True)
class ConvexConcave(Method[ConcaveState]):
    """CCCP for finite α ≠ 1: replace the concave parts of the risk by their tangents, minimise, repeat.

    The model lies above the objective and touches it, so no step ever raises the objective.
    """

    margins: EntropyMargins
    significant: float
    max_inner: int = 300

    state: ClassVar[Any] = ConcaveState
    line_type: ClassVar[Any] = SmoothStep

    @property
    def oracle(self) -> Any:
        return self.margins.oracle

    def begin_at(self, w: Array) -> ConcaveState:
        return ConcaveState(self.margins(w)[0], w=w, evaluations=1, samples_in=self.margins.weights.size)

    def step(self, now: ConcaveState) -> ConcaveState:
        model = ConvexModel(self.margins, now.w)
        gap = max(0.1 * self.significant, min(now.gap, 0.01 * now.objective))
        solution = minimise_in_ball(model, now.w, gap=gap, max_iter=self.max_inner)
        objective = self.margins(solution.w)[0]
        fall = now.objective - objective
        count: dict[str, Any] = {
            "iteration": now.iteration + 1,
            "evaluations": now.evaluations + solution.evaluations + 2,
        }
        is_precise = gap <= 0.1 * self.significant
        is_done = is_precise and fall < self.significant
        count |= {"is_done": is_done, "is_solved": not is_done or solution.gap <= self.significant}
        count["gap"] = 0.3 * max(fall, 0.0) if not is_precise and fall > gap else 0.1 * gap
        if fall <= 0:
            return replace(now, **count)
        return replace(now, **count, w=solution.w, objective=objective)


@dataclass(frozen=True)
class PacedState(SmoothState):
    """Where self-paced learning is: 1/K, and the samples that are in."""

    ease: float = np.inf
    is_in: Mask = field(default_factory=lambda: np.empty(0, bool))


@dataclass(frozen=True)
class Paced(Method[PacedState]):
    """Self-paced learning by L-BFGS: descend on the samples that are easy, let in more, at last on all of them."""

    margins: EntropyMargins
    pace: SelfPaced
    tol: float
    significant: float
    max_inner: int = 200

    state: ClassVar[Any] = PacedState
    line_type: ClassVar[Any] = SmoothStep

    @property
    def oracle(self) -> Any:
        return self.margins.oracle

    def begin_at(self, w: Array) -> PacedState:
        """A few steps on all samples: the warm-up of the pace."""
        point = begin(self.margins, w)
        for _ in range(WARMUP_STEPS * int(self.pace.warmup)):
            point = step(self.margins, point)
        return self._at(point.w, 0, point.evaluations, np.inf, np.zeros(self.margins.weights.size, dtype=bool))

    def step(self, now: PacedState) -> PacedState:
        weights = self.margins.weights
        is_in = now.is_in
        if is_in.all():
            return self._finish(now)
        unit = float(weights.sum()) / max(1, int(np.count_nonzero(weights)))
        w, evaluations = now.w, now.evaluations
        ease = self.pace.next_ease(unit * self.margins.slack(w), now.ease, None, weights / unit)
        for _ in range(int(self.pace.max_rounds)):
            chosen = self.pace.choose(unit * self.margins.slack(w), ease) | (weights == 0)
            if np.array_equal(chosen, is_in) or not chosen.any():
                break
            is_in = chosen
            part = self.margins.of(self.margins.oracle, weights * chosen)
            method = QuasiNewton(part, self.oracle, int(chosen.sum()), self.tol, self.significant)
            point = method.begin_at(w)
            while not point.is_done and point.iteration < self.max_inner:
                point = method.step(point)
            w, evaluations = point.w, evaluations + point.evaluations + 1
        return self._at(w, now.iteration + 1, evaluations, ease, is_in)

    def _finish(self, now: PacedState) -> PacedState:
        """The descent on all samples, at the end."""
        n = self.margins.weights.size
        method = QuasiNewton(self.margins, self.oracle, n, self.tol, self.significant)
        point = method.begin_at(now.w)
        while not point.is_done and point.iteration < 10 * self.max_inner:
            point = method.step(point)
        evaluations = now.evaluations + point.evaluations
        numbers = point.w, point.slope, evaluations, n, now.ease, now.is_in
        return PacedState(point.objective, now.iteration + 1, True, point.is_done, *numbers)

    def _at(self, w: Array, iteration: int, evaluations: int, ease: float, is_in: Array) -> PacedState:
        objective, gradient = self.margins(w)
        numbers = w, float(np.sqrt(gradient @ gradient)), evaluations + 1, int(is_in.sum()), ease, is_in
        return PacedState(objective, iteration, False, True, *numbers)


WARMUP_STEPS = 10
"""Steps of L-BFGS that stand for one iteration of the warm-up of a pace."""


@dataclass(frozen=True)
class RivalTask(Task):
    """A task whose slack is ``max(0, max over outputs of other labels of [ℓ + score] − score of the target)``.

    It is the convex task of algorithm 5 of Kumar (2013): outputs with the true label do not compete, except the target.
    """

    def augmented(self, w: Array, rows: Any = None) -> Assignment:
        target = take_code(self.oracle, self.target, rows)
        found = self.oracle.augmented(w, rows, rivals=True)
        own = self.oracle.score(w, target, rows)
        is_active = found.value > own
        return Assignment(np.where(is_active, found.code, target), np.where(is_active, found.value, own))

    def plane(self, code: Array, rows: Any = None) -> Plane:
        """As in `Task`; codes of the true label are targets of earlier tasks, and stand for this task's own."""
        oracle: Any = self.oracle
        target = take_code(oracle, self.target, rows)
        labels = oracle.split(np.where(code < 0, target, code), rows)[0]
        is_own = labels == oracle.split(target, rows)[0]
        return super().plane(np.where(is_own, TARGET, code), rows)


@dataclass(frozen=True)
class RivalDescent(Descent):
    """CCCP at α = ∞: the latent SVM's descent, its convex tasks being `RivalTask`; algorithm 5 of Kumar (2013)."""

    line_type: ClassVar[Any] = SmoothStep

    def begin_at(self, w: Array) -> LatentState:
        """The first state, at weights."""
        state: LatentState = self.begin(self.oracle.impute(w).code, w)
        return state

    def better(self, best: Any, now: Any) -> Any:
        return now

    def line(self, now: LatentState, seconds: float) -> Any:
        samples_in = int(now.is_in.sum())
        return SmoothStep(now.iteration, seconds, now.objective, np.inf, now.iteration, samples_in)

    def line_arrays(self, now: LatentState) -> dict[str, Array]:
        return {}

    def restore_line(self, numbers: Any, arrays: Any, now: LatentState) -> Any:
        return SmoothStep(**numbers)

    def slack(self, w: Array, target: Array) -> Array:
        task = RivalTask(self.oracle.exact(), self.weights, target, self.penalty, self.rescaling)
        return task.slack(w)[0]

    def _task(self, target: Array, weights: Array) -> Task:
        return RivalTask(self.oracle, weights, target, self.penalty, self.rescaling)

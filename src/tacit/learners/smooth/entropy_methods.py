"""How min-entropy models are minimised beside L-BFGS: trust region, CCCP, and self-paced learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.latent.descent import Descent, Position
from tacit.learners.pacing import SelfPaced
from tacit.learners.smooth.entropy_margins import ConvexModel, EntropyMargins, LinearModel
from tacit.learners.smooth.places import Place, check_shapes
from tacit.learners.smooth.quasi_newton_method import QuasiNewton
from tacit.oracle import TARGET, Assignment, Plane, Task, take_code
from tacit.penalties import Quadratic
from tacit.solvers import Bundle
from tacit.solvers.ball_bundle import minimise_in_ball
from tacit.solvers.quasi_newton import begin, step


@dataclass(frozen=True)
class TrustRegion:
    """Algorithm 6 of Kumar (2013) with a corrected acceptance: a convex model of all Rényi scores, inside a ball.

    The printed rule never ends at a stationary point. Here the fall that the model promises decides: below
    ``significant`` it is the end; a step that keeps a tenth of the promise is taken; the squared radius is divided by 4
    if less than a quarter is kept, and multiplied by 4 if more than three quarters are, on the rim of the ball.
    """

    margins: EntropyMargins
    significant: float
    max_inner: int = 200

    @property
    def n_params(self) -> int:
        return int(self.margins.oracle.n_params)

    def begin(self, w: Array) -> Place:
        objective = self.margins(w)[0]
        n = self.margins.weights.size
        return Place(w, objective, evaluations=1, samples_in=n, memory={"square": np.array([FIRST_SQUARE])})

    def step(self, now: Place) -> Place:
        square = float(now.memory["square"][0])
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
        memory = {"square": np.array([square])}
        is_end = square < MIN_SQUARE
        ending: dict[str, Any] = {**count, "memory": memory, "is_done": is_end, "is_solved": True}
        if kept <= 0.1:
            return replace(now, **ending)
        return replace(now, **ending, w=solution.w, objective=objective)

    def check(self, memory: Mapping[str, Array]) -> None:
        check_shapes(memory, {"square": (1,)})


SHARE_OF_FALL = 0.5
"""A model is minimised until at most this share of what it promises is left: the next model is another one."""

FIRST_SQUARE, MIN_SQUARE = 4.0, 1e-8
"""The squared radius that a run begins with, and below which it ends."""


@dataclass(frozen=True)
class KinkedDescent:
    """L-BFGS on the exact subgradient; where kinks slow it down, one step of the trust region leaves them.

    A run ends at a smooth stationary point, or when the trust region promises less than ``significant``.
    """

    quick: QuasiNewton
    region: TrustRegion

    @property
    def n_params(self) -> int:
        return self.quick.n_params

    def begin(self, w: Array) -> Place:
        return self._with_square(self.quick.begin(w), FIRST_SQUARE)

    def step(self, now: Place) -> Place:
        square = float(now.memory["square"][0])
        if not now.memory["at_kink"][0]:
            return self._with_square(self.quick.step(now), square)
        found = self.region.step(now)
        square = float(found.memory["square"][0])
        if found.is_done:
            return replace(found, memory={**now.memory, "square": np.array([square])})
        if found.w is now.w:  # a smaller ball, next time
            return replace(found, memory={**now.memory, "square": np.array([square])})
        again = self.quick.begin(found.w)
        again = replace(again, iteration=found.iteration, evaluations=found.evaluations + 1)
        return self._with_square(again, square)

    def _with_square(self, place: Place, square: float) -> Place:
        is_smooth = 0.5 * place.slope**2 <= self.quick.tol * abs(place.objective)
        at_kink = place.is_done and not is_smooth
        memory = {**place.memory, "square": np.array([square]), "at_kink": np.array([float(at_kink)])}
        return replace(place, memory=memory, is_done=is_smooth)

    def check(self, memory: Mapping[str, Array]) -> None:
        self.quick.check(memory)
        self.region.check(memory)
        check_shapes(memory, {"at_kink": (1,)})


@dataclass(frozen=True)
class ConvexConcave:
    """CCCP for finite α ≠ 1: replace the concave parts of the risk by their tangents, minimise, repeat.

    The model lies above the objective and touches it, so no step ever raises the objective.
    """

    margins: EntropyMargins
    significant: float
    max_inner: int = 300

    @property
    def n_params(self) -> int:
        return int(self.margins.oracle.n_params)

    def begin(self, w: Array) -> Place:
        n = self.margins.weights.size
        return Place(w, self.margins(w)[0], evaluations=1, samples_in=n, memory={"gap": np.array([np.float64(1e300)])})

    def step(self, now: Place) -> Place:
        model = ConvexModel(self.margins, now.w)
        gap = max(0.1 * self.significant, min(float(now.memory["gap"][0]), 0.01 * now.objective))
        solution = minimise_in_ball(model, now.w, gap=gap, max_iter=self.max_inner)
        objective = self.margins(solution.w)[0]
        fall = now.objective - objective
        count: dict[str, Any] = {
            "iteration": now.iteration + 1,
            "evaluations": now.evaluations + solution.evaluations + 2,
        }
        is_precise = gap <= 0.1 * self.significant
        memory = {"gap": np.array([0.3 * max(fall, 0.0) if not is_precise and fall > gap else 0.1 * gap])}
        is_done = is_precise and fall < self.significant
        count |= {"is_done": is_done, "is_solved": not is_done or solution.gap <= self.significant, "memory": memory}
        if fall <= 0:
            return replace(now, **count)
        return replace(now, **count, w=solution.w, objective=objective)

    def check(self, memory: Mapping[str, Array]) -> None:
        check_shapes(memory, {"gap": (1,)})


@dataclass(frozen=True)
class Paced:
    """Self-paced learning by L-BFGS: descend on the samples that are easy, let in more, at last on all of them."""

    margins: EntropyMargins
    pace: SelfPaced
    tol: float
    significant: float
    max_inner: int = 200

    @property
    def n_params(self) -> int:
        return int(self.margins.oracle.n_params)

    def begin(self, w: Array) -> Place:
        """A few steps on all samples: the warm-up of the pace."""
        point = begin(self.margins, w)
        for _ in range(WARMUP_STEPS * int(self.pace.warmup)):
            point = step(self.margins, point)
        return self._place(point.w, 0, point.evaluations, np.inf, np.zeros(self.margins.weights.size, dtype=bool))

    def step(self, now: Place) -> Place:
        weights = self.margins.weights
        ease, is_in = float(now.memory["ease"][0]), now.memory["is_in"].astype(bool)
        if is_in.all():
            return self._finish(now)
        unit = float(weights.sum()) / max(1, int(np.count_nonzero(weights)))
        w, evaluations = now.w, now.evaluations
        ease = self.pace.next_ease(unit * self.margins.slack(w), _finite(ease), None, weights / unit)
        for _ in range(int(self.pace.max_rounds)):
            chosen = self.pace.choose(unit * self.margins.slack(w), ease) | (weights == 0)
            if np.array_equal(chosen, is_in) or not chosen.any():
                break
            is_in = chosen
            part = self.margins.of(self.margins.oracle, weights * chosen)
            method = QuasiNewton(part, self.n_params, int(chosen.sum()), self.tol, self.significant)
            place = method.begin(w)
            while not place.is_done and place.iteration < self.max_inner:
                place = method.step(place)
            w, evaluations = place.w, evaluations + place.evaluations + 1
        return self._place(w, now.iteration + 1, evaluations, ease, is_in)

    def _finish(self, now: Place) -> Place:
        """The descent on all samples, at the end."""
        method = QuasiNewton(self.margins, self.n_params, self.margins.weights.size, self.tol, self.significant)
        place = method.begin(now.w)
        while not place.is_done and place.iteration < 10 * self.max_inner:
            place = method.step(place)
        count: dict[str, Any] = {"iteration": now.iteration + 1, "evaluations": now.evaluations + place.evaluations}
        return replace(place, **count, is_done=True, is_solved=place.is_done, memory=now.memory)

    def _place(self, w: Array, iteration: int, evaluations: int, ease: float, is_in: Array) -> Place:
        memory = {"ease": np.array([min(ease, 1e300)]), "is_in": is_in.astype(np.float64)}
        objective, gradient = self.margins(w)
        slope = float(np.sqrt(gradient @ gradient))
        return Place(w, objective, slope, iteration, evaluations + 1, int(is_in.sum()), memory=memory)

    def check(self, memory: Mapping[str, Array]) -> None:
        check_shapes(memory, {"ease": (1,), "is_in": (self.margins.weights.size,)})


WARMUP_STEPS = 10
"""Steps of L-BFGS that stand for one iteration of the warm-up of a pace."""


def _finite(ease: float) -> float:
    return np.inf if ease >= 1e300 else ease


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
    """CCCP at α = ∞: the latent SVM's descent, its convex tasks being `RivalTask`."""

    def slack(self, w: Array, target: Array) -> Array:
        task = RivalTask(self.oracle.exact(), self.weights, target, self.penalty, self.rescaling)
        return task.slack(w)[0]

    def _task(self, target: Array, weights: Array) -> Task:
        return RivalTask(self.oracle, weights, target, self.penalty, self.rescaling)


@dataclass(frozen=True)
class MaxMargins:
    """Runs of a `RivalDescent`: algorithm 5 of Kumar (2013), on all samples at once or self-paced."""

    descent: RivalDescent

    @classmethod
    def of(cls, oracle: Any, weights: Array, tol: float, pace: SelfPaced | None, seed: int) -> MaxMargins:
        return cls(RivalDescent(oracle, weights, Quadratic(), lambda task: Bundle(), tol, 1000, pace=pace, seed=seed))

    @property
    def n_params(self) -> int:
        return int(self.descent.oracle.n_params)

    def begin(self, w: Array) -> Place:
        return self._place(self.descent.begin(self.descent.oracle.impute(w).code, w), 0)

    def step(self, now: Place) -> Place:
        memory: dict[str, Any] = {name: values if values.ndim else values.item() for name, values in now.memory.items()}
        position = Position(
            now.w,
            iteration=now.iteration,
            objective=now.objective,
            is_done=now.is_done,
            is_solved=now.is_solved,
            **memory,
        )
        return self._place(self.descent.step(position), now.evaluations + 1)

    def _place(self, position: Position, evaluations: int) -> Place:
        own = ("w", "objective", "iteration", "is_done", "is_solved")
        memory = {name: np.asarray(value) for name, value in vars(position).items() if name not in own}
        return Place(
            position.w,
            position.objective,
            np.inf,
            position.iteration,
            evaluations,
            int(position.is_in.sum()),
            position.is_done,
            position.is_solved,
            memory,
        )

    def check(self, memory: Mapping[str, Array]) -> None:
        """Refuse codes that these samples do not have: kernels index by them."""
        oracle = self.descent.oracle
        target, planes = memory["target"], memory["planes"]
        if not oracle.accepts(target) or target.min() < 0 or not all(oracle.accepts(code) for code in planes):
            raise ValueError("it holds outputs that these samples do not have")
        check_shapes({"is_in": memory["is_in"]}, {"is_in": (oracle.n_samples,)})

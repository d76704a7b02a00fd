"""A run that descends by L-BFGS, on all samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.smooth.places import Place, check_shapes
from tacit.solvers.quasi_newton import Function, Point, begin, step


@dataclass(frozen=True)
class QuasiNewton:
    """L-BFGS until half the squared slope is below ``tol`` times the objective, or steps gain too little.

    The objectives of tacit hold ½‖w‖². Where the rest is convex, half the squared slope is then a bound on how far the
    objective is above its optimum; elsewhere it says that the place is all but stationary.

    Parameters
    ----------
    function : the objective and its gradient
    n_params, n_samples : the length of w, and the number of samples in the objective
    tol : when to stop
    significant : where the objective has kinks, its slope need not vanish: a run also ends when `PATIENCE` steps
        together gained less than this, or when no step gains anything. None where it is smooth
    """

    function: Function
    n_params: int
    n_samples: int
    tol: float
    significant: float | None = None

    def begin(self, w: Array) -> Place:
        return self._place(begin(self.function, w), 0, np.empty(0))

    def step(self, now: Place) -> Place:
        memory = now.memory
        point = Point(
            now.w, now.objective, memory["gradient"], memory["moves"], memory["turns"], evaluations=now.evaluations
        )
        return self._place(step(self.function, point), now.iteration + 1, memory["recent"])

    def check(self, memory: Mapping[str, Array]) -> None:
        d = self.n_params
        check_shapes(memory, {"gradient": (d,), "moves": (None, d), "turns": (len(memory.get("moves", ())), d)})
        check_shapes(memory, {"recent": (None,)})

    def _place(self, point: Point, iteration: int, recent: Array) -> Place:
        is_solved = 0.5 * point.slope**2 <= self.tol * abs(point.value)
        recent = np.append(recent, point.value)[-PATIENCE - 1 :]
        if self.significant is not None:
            has_gained = recent.size <= PATIENCE or recent[0] - recent[-1] > self.significant
            is_solved = is_solved or point.is_stuck or not has_gained
        is_precise = point.slope <= PRECISION * (1 + float(np.abs(point.w).max(initial=0.0)))
        return Place(
            point.w,
            float(point.value),
            point.slope,
            iteration,
            point.evaluations,
            self.n_samples,
            is_done=is_solved or point.is_stuck,
            is_solved=is_solved or is_precise,
            memory={"gradient": point.gradient, "moves": point.moves, "turns": point.turns, "recent": recent},
        )


PATIENCE = 10
"""Steps that must gain something together where the objective has kinks."""

PRECISION = 1e-6
"""A slope below this, relative to the weights, is as small as rounding lets it be: a run that is stuck there has
converged."""

"""Alternating coordinate and subgradient descent: impute the hidden values, make one subgradient step, repeat."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.descent import Descent, LatentState
from tacit.learners.multistart import Weights
from tacit.oracle import Task
from tacit.penalties import GroupNorm
from tacit.solvers.bundle import overflow_error

STEPS = 100
"""Subgradient steps per outer iteration, which is one line of the history."""


@dataclass(frozen=True)
class SubgradientState(LatentState):
    """The best point so far, the present one, its objective, and how often that has risen."""

    present_w: Weights = field(default_factory=lambda: np.empty(0))
    present_objective: float = np.inf
    rises: int = 0


@dataclass(frozen=True)
class AlternatingSubgradient(Descent):
    """Algorithm 1 of Chen, Batra, Freeman & Johnson (2011), with two corrections.

    Their equation 9 has lost the weights λ_g of the groups, and says nothing of groups that are zero, where 0 is a
    valid subgradient. A step has the length ``1 / (rises + 1)``. It never makes a group exactly zero. Kept is the best
    point; a start ends when `STEPS` steps lower its objective by less than ``C · tol``. The penalty of the task is a
    group norm.
    """

    state: ClassVar[Any] = SubgradientState

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> SubgradientState:
        first: SubgradientState = super().begin(target, w, seed=seed, start=start)
        return replace(first, present_w=first.w)

    def better(self, best: SubgradientState | None, now: SubgradientState) -> SubgradientState:
        return now

    def step(self, now: SubgradientState) -> SubgradientState:
        oracle, penalty = self.oracle.exact(), self.penalty
        assert isinstance(penalty, GroupNorm)
        best, best_target, lowest = now.w, now.target, now.objective
        w, target, last, rises = now.present_w, now.target, now.present_objective, now.rises
        for _ in range(STEPS):
            if w.any():  # at w = 0 all hidden values tie, and those to begin with stay
                target = oracle.impute(w, prefer=target).code
            task = Task(oracle, self.weights, target, penalty, self.rescaling)
            plane = task.plane(task.augmented(w).code)
            objective = penalty.value(w) + plane.value(w)
            if not np.isfinite(objective):
                raise overflow_error()
            rises += objective > last
            last = objective
            if objective < lowest:
                best, best_target, lowest = w, target, objective
            w = w - (_norm_slope(penalty, w) + plane.gradient) / (rises + 1)
        return replace(
            now,
            w=best,
            target=best_target,
            objective=lowest,
            changed=self._changed(best_target, now.target),
            iteration=now.iteration + 1,
            present_w=w,
            present_objective=last,
            rises=rises,
            is_done=now.objective - lowest < self.significant,
        )


def _norm_slope(penalty: GroupNorm, w: Array) -> Array:
    """A subgradient of the norm: λ_g w_g / ‖w_g‖, and 0 for groups that are zero."""
    norms = penalty.norms(w)
    factor = np.zeros_like(norms)
    np.divide(penalty.each_weight, norms, out=factor, where=norms > 0)
    return np.asarray(w * penalty.of_groups(factor))

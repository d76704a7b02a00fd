"""Self-paced learning by gradients: descend on the samples that are easy, then on more, finally on all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.descents.multistart import Mask, Method
from tacit.learners.descents.pacing import SelfPaced
from tacit.learners.smooth_learner import SmoothState, SmoothStep
from tacit.oracle import Oracle


class SumOfTerms(Protocol):
    """An objective ``½‖w‖² + Σ_i c_i ξ_i(w)`` with terms of any kind: hinges, entropies, log-losses."""

    @property
    def weights(self) -> Array:
        """The c_i."""

    def __call__(self, w: Array) -> tuple[float, Array]:
        """The objective and its slope."""

    def slack(self, w: Array) -> Array:
        """ξ_i(w) of every sample."""

    def of(self, oracle: Oracle, weights: Array) -> Any:
        """The same objective with other c_i; those of samples that are left out are 0."""


@dataclass(frozen=True)
class PacedState(SmoothState):
    """The state of self-paced learning: its threshold 1/K, and the samples that are in."""

    threshold: float = np.inf
    is_in: Mask = field(default_factory=lambda: np.empty(0, bool))


@dataclass(frozen=True)
class Paced(Method[PacedState]):
    """Algorithm 4 of Kumar (2013) for any sum of terms: a step descends on the samples that are easy enough now.

    Parameters
    ----------
    objective : of all samples
    oracle : the samples
    descend : the method for a part of them, given its objective and the number of its samples
    pace : which samples are easy
    warm_steps : steps with all samples before the first selection, per iteration of the pace's warm-up
    max_inner : steps per selection; ten times as many once all samples are in
    """

    objective: SumOfTerms
    oracle: Oracle
    descend: Callable[[Any, int], Any]
    pace: SelfPaced
    warm_steps: int = 10
    max_inner: int = 200

    state: ClassVar[Any] = PacedState
    line_type: ClassVar[Any] = SmoothStep

    def begin_at(self, w: Array) -> PacedState:
        """A few steps on all samples: the warm-up of the pace."""
        n = self.objective.weights.size
        method = self.descend(self.objective, n)
        point = method.begin_at(w)
        for _ in range(self.warm_steps * int(self.pace.warmup)):
            point = method.step(point)
        return self._at(point.w, 0, point.evaluations, np.inf, np.zeros(n, dtype=bool))

    def step(self, now: PacedState) -> PacedState:
        weights, is_in = self.objective.weights, now.is_in
        if is_in.all():
            return self._finish(now)
        unit = float(weights.sum()) / max(1, int(np.count_nonzero(weights)))
        paced = self.pace.can_leave_out(self.oracle)
        w, evaluations = now.w, now.evaluations
        risk = unit * self.objective.slack(w)
        threshold = self.pace.next_threshold(risk[paced], now.threshold, is_in[paced], weights[paced] / unit)
        for _ in range(int(self.pace.max_rounds)):
            chosen = self.pace.choose(risk, threshold) | (weights == 0) | ~paced
            if np.array_equal(chosen, is_in) or not chosen.any():
                break
            is_in = chosen
            part = self.objective.of(self.oracle, weights * chosen)
            point = self._descend(part, int(chosen.sum()), w, self.max_inner)
            w, evaluations = point.w, evaluations + point.evaluations + 1
            risk = unit * self.objective.slack(w)
        return self._at(w, now.iteration + 1, evaluations, threshold, is_in)

    def _finish(self, now: PacedState) -> PacedState:
        """A descent on all samples: the last one, unless it needs more steps."""
        n = self.objective.weights.size
        point = self._descend(self.objective, n, now.w, 10 * self.max_inner)
        numbers = point.w, point.slope, now.evaluations + point.evaluations, n, now.threshold, now.is_in
        return PacedState(point.objective, now.iteration + 1, point.is_done, point.is_solved, *numbers)

    def _descend(self, objective: Any, n_samples: int, w: Array, max_iter: int) -> Any:
        method = self.descend(objective, n_samples)
        point = method.begin_at(w)
        while not point.is_done and point.iteration < max_iter:
            point = method.step(point)
        return point

    def _at(self, w: Array, iteration: int, evaluations: int, threshold: float, is_in: Array) -> PacedState:
        objective, gradient = self.objective(w)
        numbers = w, float(np.sqrt(gradient @ gradient)), evaluations + 1, int(is_in.sum()), threshold, is_in
        return PacedState(objective, iteration, False, True, *numbers)

"""Stochastic descent on the latent SVM's own objective: hidden values are imputed at every visit of a sample.

For weight vectors so long that planes of their length do not fit into memory: only a few vectors are as long as w.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.latent.descent import Descent, Iteration, Position
from tacit.learners.latent.online_start import UNEVENNESS


@dataclass(frozen=True)
class OnlinePosition(Position):
    """Where a run is: ``w`` is the average of all points so far, later ones counting more, ``last`` the present one."""

    last: Array = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class OnlineDescent:
    """One pass over the samples per step, with steps 1/t and averaging (Shalev-Shwartz et al. 2011).

    Parameters
    ----------
    descent : the task; its solver is not used
    """

    descent: Descent

    def of_run(self, start: int, seed: int) -> OnlineDescent:
        return OnlineDescent(self.descent.of_run(start, seed))

    def rng(self, purpose: str) -> np.random.Generator:
        return self.descent.rng(purpose)

    def begin(self, target: Array, w: Array | None = None) -> OnlinePosition:
        """The first position: at w, or near zero, where hidden states are not quite alike."""
        if w is None:
            w = UNEVENNESS * float(self.descent.weights.mean()) * self.rng("start").standard_normal(self._n_params)
        first = self.descent.begin(target, w, kind=OnlinePosition)
        return replace(first, last=w)

    def restored(self, parts: dict[str, Any]) -> OnlinePosition:
        return OnlinePosition(**parts)

    def line(self, now: Position, seconds: float) -> Iteration:
        return self.descent.line(now, seconds)

    def better(self, best: OnlinePosition | None, now: OnlinePosition) -> OnlinePosition:
        return self.descent.better(best, now)

    def step(self, now: OnlinePosition) -> OnlinePosition:
        """One pass; the run ends when the objective of the average falls by too little to count."""
        weights, n = self.descent.weights, self.descent.weights.size
        order = self.descent.rng("solve", now.iteration).permutation(n)
        visit = now.iteration * n + np.arange(1, n + 1, dtype=np.float64)
        time = n + visit  # the first steps are no longer than C/n
        oracle = self.descent.oracle
        found = oracle.learn_online(now.last, order, n * weights[order] / time, 1 - 1 / time, visit, margin=1.0)
        before = (visit[0] - 1) * visit[0] / 2
        w = (before * now.w + found.total) / (before + float(visit.sum()))
        target = oracle.impute(w).code
        objective = self.descent.objective(w, target)
        return replace(
            now,
            w=w,
            last=found.w,
            target=target,
            objective=objective,
            changed=self.descent._changed(target, now.target),
            iteration=now.iteration + 1,
            n_warm=now.n_warm + 1,
            is_done=now.objective - objective < self.descent.significant,
        )

    @property
    def _n_params(self) -> int:
        return int(self.descent.oracle.n_params)

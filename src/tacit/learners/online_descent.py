"""Stochastic descent on the latent SVM's own objective: hidden values are imputed at every visit of a sample.

For weight vectors so long that planes of their length do not fit into memory: only a few vectors are as long as w. And
for where other descents begin. States below a label are alike at w = 0, and drawn at random they stay nearly alike: the
descent that follows ends above the one without states. A few averaged passes, sample by sample, from weights that are
not quite equal, tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.descent import Descent, LatentState
from tacit.learners.multistart import Weights

INIT_SCALE = 0.1
"""Standard deviation of the first weights, in units of the mean c_i: less than what one sample moves."""


@dataclass(frozen=True)
class OnlineState(LatentState):
    """Where a start is: ``w`` is the average of all points, later ones counting more, ``last`` the present one."""

    last: Weights = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class OnlineDescent(Descent):
    """One pass over the samples per step, with steps 1/t and averaging (Shalev-Shwartz et al. 2011)."""

    state: ClassVar[Any] = OnlineState

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> OnlineState:
        """The first state: at w, or near zero, where hidden states are not quite alike."""
        if w is None:
            noise = OnlineState(seed=seed, start=start).rng("start").standard_normal(self.oracle.n_params)
            w = INIT_SCALE * float(self.weights.mean()) * noise
        first: OnlineState = super().begin(target, w, seed=seed, start=start)
        return replace(first, last=w)

    def step(self, now: OnlineState) -> OnlineState:
        """One pass; the start ends when the objective of the average falls by too little to count."""
        weights, n = self.weights, self.weights.size
        order = now.rng("solve").permutation(n)
        visit = now.iteration * n + np.arange(1, n + 1, dtype=np.float64)
        time = n + visit  # the first steps are no longer than C/n
        found = self.oracle.learn_online(now.last, order, n * weights[order] / time, 1 - 1 / time, visit, margin=1.0)
        before = (visit[0] - 1) * visit[0] / 2
        w = (before * now.w + found.total) / (before + float(visit.sum()))
        target = self.oracle.impute(w).code
        objective = self.objective(w, target)
        return replace(
            now,
            w=w,
            last=found.w,
            target=target,
            objective=objective,
            changed=self._changed(target, now.target),
            iteration=now.iteration + 1,
            n_warm=now.n_warm + 1,
            is_done=now.objective - objective < self.significant,
        )


EPOCHS = 10
"""Passes over the samples before the descent proper."""

HEAD_START = 0.1
"""Passes that the first step counts as made already. The fewer, the longer the first steps, which tell states apart; on
handwritten words a whole pass ended at an objective of 199 instead of 190."""


def learn_first_weights(oracle: Any, weights: Array, rng: np.random.Generator, epochs: int = EPOCHS) -> Array:
    """The weights of a stochastic subgradient descent on ``½‖w‖² + Σ c_i ξ_i`` (Shalev-Shwartz et al. 2011).

    Hidden values are imputed at every visit. The answer is the average over the last pass.

    Parameters
    ----------
    oracle : offers `tacit.oracle.capabilities.LearnsOnline`
    weights : (n,) the c_i
    rng : draws the first weights and the order of the samples
    epochs : passes over the samples
    """
    n = weights.size
    mean = w = INIT_SCALE * float(weights.mean()) * rng.standard_normal(oracle.n_params)
    for epoch in range(epochs):
        order = rng.permutation(n)
        time = (HEAD_START + epoch) * n + np.arange(1, n + 1, dtype=np.float64)
        found = oracle.learn_online(w, order, n * weights[order] / time, 1 - 1 / time, np.full(n, 1 / n), margin=1.0)
        w, mean = found.w, found.total
    return np.asarray(mean)

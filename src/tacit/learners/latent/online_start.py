"""Where learners begin that find hidden values by maxima: after a short stochastic descent.

States below a label are alike at w = 0, and drawn at random they stay nearly alike: the descent that follows ends above
the one without states. A few averaged passes, sample by sample, from weights that are not quite equal, tell them apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array

EPOCHS = 10
"""Passes over the samples before the descent proper."""

UNEVENNESS = 0.1
"""Standard deviation of the first weights, in units of the mean c_i: less than what one sample moves."""

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
    mean = w = UNEVENNESS * float(weights.mean()) * rng.standard_normal(oracle.n_params)
    for epoch in range(epochs):
        order = rng.permutation(n)
        time = (HEAD_START + epoch) * n + np.arange(1, n + 1, dtype=np.float64)
        found = oracle.learn_online(w, order, n * weights[order] / time, 1 - 1 / time, np.full(n, 1 / n), margin=1.0)
        w, mean = found.w, found.total
    return np.asarray(mean)

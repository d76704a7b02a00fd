"""Where a descent by gradients begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.latent.online_start import learn_first_weights
from tacit.oracle import KnownHidden, capability, completes_labels, has_hidden_states, has_long_codes, require
from tacit.oracle.capabilities import ClustersParts, DrawsHidden, LearnsOnline, ProposesStarts
from tacit.solvers.quasi_newton import begin, step

CLAMPED_STEPS = 10
"""Steps of a start during which the hidden values that it begins with are taken for known."""


@dataclass(frozen=True)
class FirstWeights:
    """The weights that each start begins with.

    A start from hidden values takes a few steps with those values known: the weights then point to them, and the
    descent is free to leave them.

    Parameters
    ----------
    objective : what is minimised; its ``of`` gives the same of other samples
    oracle, weights : the samples
    init : "auto", "zero", "hidden", "weights", "warm" or "k-means"
    n_starts : starts of the fit
    previous : weights that the first start begins with; None for none
    skips_zero : hidden values at random where "auto" would begin with w = 0
    """

    objective: Any
    oracle: Any
    weights: Array
    init: str
    n_starts: int
    previous: Array | None = None
    skips_zero: bool = False

    def __call__(self, start: int, seed: int) -> Array:
        zero = np.zeros(self.oracle.n_params)
        unknown = self.oracle.hidden_unknown()
        if start == 0 and self.previous is not None:
            return self.previous
        if self.init == "zero" or not unknown.size:
            return zero
        rng = np.random.default_rng((seed, start))
        if self.init == "weights":
            return np.asarray(rng.standard_normal(zero.size) / np.sqrt(zero.size))
        if self.init == "warm" or (self.init == "auto" and has_hidden_states(self.oracle)):
            require("init='warm'", "this problem", self.oracle, LearnsOnline, "use init='auto'")
            return learn_first_weights(self.oracle, self.weights, rng)
        if self.init == "k-means":
            require("init='k-means'", "this problem", self.oracle, ClustersParts, "use init='auto'")
            return self._clamped(self.oracle.clusters(rng))
        if self.init == "auto":
            proposer = capability(self.oracle, ProposesStarts)
            proposed = [] if proposer is None else proposer.proposals(self.n_starts)
            if start < len(proposed):
                return self._clamped(proposed[start])
            if start == len(proposed):
                w = self._from_known(unknown)
                if w.any() or not self.skips_zero:
                    return w
        drawer = capability(self.oracle, DrawsHidden)
        if drawer is None:
            return np.asarray(rng.standard_normal(zero.size) / np.sqrt(zero.size))
        return self._clamped(drawer.draw(rng))

    def _from_known(self, unknown: Array) -> Array:
        """Zero, or where some hidden values are known the weights that those samples lead to."""
        zero = np.zeros(self.oracle.n_params)
        known = self.weights.copy()
        known[unknown] = 0.0
        if completes_labels(self.oracle) or not known.any():
            return zero
        return _descend(self.objective.of(self.oracle, known * self.weights.sum() / known.sum()), zero)

    def _clamped(self, code: Array) -> Array:
        """The weights after a few steps with the hidden values of this code."""
        is_long = has_long_codes(self.oracle)
        view = self.oracle.with_hidden(code if is_long else KnownHidden(self.oracle.split(code)[1]))
        return _descend(self.objective.of(view, self.weights), np.zeros(self.oracle.n_params))


def _descend(function: Any, w: Array) -> Array:
    point = begin(function, w)
    for _ in range(CLAMPED_STEPS):
        if point.is_stuck:
            break
        point = step(function, point)
    return point.w

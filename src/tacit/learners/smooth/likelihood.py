"""The objective of hidden CRFs, hidden values summed over, and EM for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.smooth.places import Place
from tacit.solvers.quasi_newton import begin, step


@dataclass(frozen=True)
class Likelihood:
    """``½‖w‖² − Σ_i c_i log p(y_i | x_i)``, with ``p(y | x) = Σ_h exp s(y, h) / Σ_{y,h} exp s(y, h)``.

    Where a hidden value is known, or known to be in a set, the sum runs over what is possible. The gradient of a sample
    is ``E[Ψ] − E[Ψ | y_i]``: one pass of the oracle gives all of it.
    """

    oracle: Any
    weights: Array

    def __call__(self, w: Array) -> tuple[float, Array]:
        found = self.oracle.expectations(w, free=self.weights, truth=-self.weights)
        return 0.5 * float(w @ w) + float((self.weights * (found.free - found.truth)).sum()), w + found.features

    def of(self, oracle: Any, weights: Array) -> Likelihood:
        """The same objective of other samples, or with other hidden values known."""
        return Likelihood(oracle, weights)


@dataclass(frozen=True)
class ExpectedLikelihood:
    """What an M step minimises: ``½‖w‖² + Σ_i c_i log Σ exp s − w·b``, b being the features expected by the E step."""

    oracle: Any
    weights: Array
    expected: Array

    def __call__(self, w: Array) -> tuple[float, Array]:
        found = self.oracle.expectations(w, free=self.weights)
        value = 0.5 * float(w @ w) + float((self.weights * found.free).sum()) - float(w @ self.expected)
        return value, w + found.features - self.expected


@dataclass(frozen=True)
class EM:
    """EM for a `Likelihood`: expect the features given the labels, then fit a CRF in which they are observed.

    The E step is soft (under ``p(h | x_i, y_i)``) or hard (of the best hidden value alone). Soft EM never lowers the
    likelihood (Dempster, Laird & Rubin 1977): it is the bound that L-BFGS minimises from the present weights, as far
    as it pays. Hard EM descends on another objective, with the best hidden value in place of the sum; its places are
    measured by the likelihood all the same.

    Parameters
    ----------
    likelihood : the objective
    is_hard : which E step
    n_params : the length of w
    tol : stop when half the squared slope (of a soft E step's likelihood) is below ``tol`` times the objective
    max_inner : steps of L-BFGS per M step
    """

    likelihood: Likelihood
    is_hard: bool
    n_params: int
    tol: float
    max_inner: int = 50

    def begin(self, w: Array) -> Place:
        return self._place(w, 0, 0)

    def step(self, now: Place) -> Place:
        oracle, weights = self.likelihood.oracle, self.likelihood.weights
        if self.is_hard:
            expected = oracle.features(oracle.impute(now.w).code, weights)
        else:
            expected = oracle.expectations(now.w, truth=weights).features
        bound = ExpectedLikelihood(oracle, weights, expected)
        point = begin(bound, now.w)
        enough = max(M_STEP_GAIN * 0.5 * point.slope**2, 0.1 * self.tol * now.objective)
        for _ in range(self.max_inner):
            if 0.5 * point.slope**2 <= enough or point.is_stuck:
                break
            point = step(bound, point)
        return self._place(point.w, now.iteration + 1, now.evaluations + point.evaluations + 1, now)

    def check(self, memory: Mapping[str, Array]) -> None:
        """There is nothing to check: EM goes on from the weights alone."""

    def _place(self, w: Array, iteration: int, evaluations: int, before: Place | None = None) -> Place:
        objective, gradient = self.likelihood(w)
        slope = float(np.sqrt(gradient @ gradient))
        is_solved = 0.5 * slope**2 <= self.tol * abs(objective)
        is_still = before is not None and bool(np.array_equal(w, before.w))
        if self.is_hard and before is not None:  # the likelihood need not be stationary where hard EM ends
            is_solved = is_still = abs(before.objective - objective) <= self.tol * abs(objective)
        n = self.likelihood.weights.size
        return Place(w, objective, slope, iteration, evaluations + 1, n, is_solved or is_still, is_solved or is_still)


M_STEP_GAIN = 1e-3
"""An M step ends when its own slope has fallen so far (as a square): the next E step moves its optimum anyway."""

"""Stochastic subgradient descent on mini-batches, with a certificate."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.arrays import Array
from tacit.inputs.parameters import whole_number
from tacit.oracle import Task
from tacit.running.checkpoint import stored, stored_codes, stored_number
from tacit.solvers.loop import Warm

RARELY = 1.25
"""Passes from one certificate to the next grow by this factor: one more oracle pass for every four or so."""

TRUST = 10
"""Passes that a warm start counts for: the larger, the shorter the first steps."""

KEPT = 5
"""Codes of certificates kept for warm starts."""


class Subgradient(BaseEstimator):  # type: ignore[misc]
    """Mini-batch subgradient descent with steps 1/t and averaging (Pegasos: Shalev-Shwartz et al. 2011).

    Each mini-batch moves w by 1/t of the way to where its own share of the risk, scaled up, would put it; the average
    of all points so far, later ones counting more, is the answer. A step is one pass over a random permutation of the
    samples. Every sample comes once a pass, so the mean of the passes' planes is a dual point and its value a lower
    bound, at no cost; the objective takes an oracle pass of its own, made every so often and at the end. The simplest
    solver and the slowest to a small gap: for when only a few passes are affordable, and as a baseline.

    Parameters
    ----------
    batch_size : samples a mini-batch; smaller ones learn more a pass, larger ones take less time a pass

    >>> from tacit import problems, testing
    >>> from tacit.solvers import minimise
    >>> task = testing.example_task(problems.Candidates(), seed=1, C=1.0)
    >>> minimise(task, Subgradient(), tol=0.02, max_iter=5000).status.name
    'CONVERGED'
    """

    needs = ("augmented", "features", "loss", "exact")
    is_coarse = True
    """It comes near any optimum, and close to few: the common checks ask for no more."""

    def __init__(self, batch_size: int = 32) -> None:
        self.batch_size = batch_size

    def init(self, task: Task, warm: Warm, rng: np.random.Generator) -> SubgradientState:
        self.check()
        state = SubgradientState(task.oracle.n_params, int(rng.integers(2**31)))
        state.bound = task.floor
        state.meet(task, np.zeros(task.oracle.n_params), *task.origin)
        if warm.w is not None:
            state.certify(task, warm.w)
            state.w, state.mean, state.trust = warm.w, warm.w, TRUST
        return state

    def check(self) -> None:
        """Refuse parameters that cannot be."""
        whole_number("batch_size", self.batch_size)

    def step(self, task: Task, state: SubgradientState) -> SubgradientState:
        state = copy.copy(state)
        state.descend(task, int(self.batch_size))
        if state.passes >= state.next_certificate:
            state.certify(task)
        return state

    def done(self, state: SubgradientState) -> bool:
        return False

    def finish(self, task: Task, state: SubgradientState) -> SubgradientState:
        if state.certified == state.passes:
            return state
        state = copy.copy(state)
        state.certify(task)
        return state

    def restore(self, task: Task, snapshot: Mapping[str, Any]) -> SubgradientState:
        d = task.oracle.n_params
        state = SubgradientState(d, int(stored_number(snapshot, "seed", 0)))
        for name in ("w", "mean", "slope"):
            setattr(state, name, stored(snapshot, name, (d,)))
        for name in ("passes", "certified", "next_certificate", "trust"):
            setattr(state, name, int(stored_number(snapshot, name, 0)))
        state.offset, state.bound = stored_number(snapshot, "offset"), stored_number(snapshot, "bound")
        state.best = stored(snapshot, "best", (d,)), stored_number(snapshot, "objective")
        state.codes = stored_codes(snapshot, "codes", task.oracle.accepts)
        return state


class SubgradientState:
    """The present point, the mean of all, the mean plane of all passes, and the best certificate so far."""

    def __init__(self, d: int, seed: int) -> None:
        self.seed = seed
        self.w, self.mean, self.slope = np.zeros(d), np.zeros(d), np.zeros(d)
        self.offset = 0.0
        self.passes, self.certified, self.next_certificate, self.trust = 0, 0, 1, 0
        self.best: tuple[Array, float] = (np.zeros(d), np.inf)
        self.bound = -np.inf
        self.codes: tuple[Array, ...] = ()

    @property
    def n_planes(self) -> int:
        return len(self.codes)

    def planes(self) -> Array:
        return np.array(self.codes)

    def dual(self) -> None:
        return None

    def variables(self) -> None:
        return None

    def snapshot(self) -> Mapping[str, Any]:
        best, objective = self.best
        names = ("seed", "w", "mean", "slope", "offset", "passes", "certified", "next_certificate", "trust", "bound")
        kept = {name: getattr(self, name) for name in names}
        return {**kept, "best": best, "objective": objective, "codes": self.planes()}

    def descend(self, task: Task, batch_size: int) -> None:
        """One pass: a step for every mini-batch, the mean of the points, and the mean plane of the passes."""
        n = task.oracle.n_samples
        order = np.random.default_rng((self.seed, self.passes)).permutation(n)
        batches = math.ceil(n / batch_size)
        slope, offset = np.zeros_like(self.slope), 0.0
        w, mean = self.w, self.mean.copy()
        t = (self.trust + self.passes) * batches
        for start in range(0, n, batch_size):
            rows = np.sort(order[start : start + batch_size])
            plane = task.plane(task.augmented(w, rows).code, rows)
            slope += plane.gradient
            offset += plane.offset
            t += 1
            w = w + (task.penalty.primal(batches * plane.gradient) - w) / t
            mean += (w - mean) * (2 / (t + 1))
        self.passes += 1
        share = 2 / (self.passes + 1)
        self.w, self.mean = w, mean
        self.slope = self.slope + share * (slope - self.slope)
        self.offset += share * (offset - self.offset)
        lowest = task.penalty.primal(self.slope)
        self.bound = max(self.bound, self.offset + float(self.slope @ lowest) + task.penalty.value(lowest))

    def certify(self, task: Task, w: Array | None = None) -> None:
        """The objective at a point, at the mean if none is given."""
        w = self.mean if w is None else w
        code = task.augmented(w).code
        self.meet(task, w, code, task.plane(code))
        self.certified = self.passes
        self.next_certificate = max(self.passes + 1, math.ceil(RARELY * self.passes))

    def meet(self, task: Task, w: Array, code: Array, plane: Any) -> None:
        objective = task.penalty.value(w) + plane.value(w)
        self.codes = (*self.codes, code)[-KEPT:]
        if not objective >= self.best[1]:
            self.best = w, objective

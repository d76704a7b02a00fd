"""Stochastic subgradient descent on mini-batches, with a certificate."""

from __future__ import annotations

import copy
import math
from typing import cast

import numpy as np

from tacit.data.arrays import Array
from tacit.data.specs import estimator, optional, parameter, whole
from tacit.oracle import Oracle, Task, capability
from tacit.oracle.capabilities import LearnsOnline
from tacit.penalties import without_bounds
from tacit.runtime.archive import storable
from tacit.solvers.loop import Solver, State, WarmStart

CERTIFICATE_GROWTH = 1.25
"""The number of passes at which a certificate is computed grows by this factor: about one more oracle pass in four."""

ONLINE_GROWTH = 2.0
"""The same for samples that are learned from one at a time, where a pass costs as much as its certificate."""

WARM_START_PASSES = 10
"""How many passes a warm start counts for: the larger, the shorter the first steps."""

BATCH_SIZE = 32
"""Samples per mini-batch, unless the caller says otherwise."""


@storable
@estimator
class Subgradient(Solver):
    """Mini-batch subgradient descent with steps 1/t and averaging (Pegasos: Shalev-Shwartz et al. 2011).

    The simplest solver, and the slowest to a small gap: for fits of a few passes, and as a baseline.

    The t-th mini-batch moves w by 1/t of the way to the minimiser of the penalty plus the batch's own plane, scaled up
    to all samples. The answer is the average of all points so far, later ones counting more. A step is one pass over a
    random permutation of the samples. Every sample comes once per pass, so the mean of the passes' planes is a dual
    point, and its value a lower bound at no cost. The objective needs one more oracle pass, which is made after some
    passes and at the end.

    Parameters
    ----------
    batch_size : samples per mini-batch; smaller ones learn more per pass, larger ones take less time per pass. None
        is 32. For sequences, whose problem learns online, None is one sample at a time in compiled code: a pass then
        costs about one Viterbi pass, and memory is a few vectors of the length of w

    >>> from tacit import problems, testing
    >>> from tacit.solvers import minimise
    >>> task = testing.example_task(problems.Candidates(), seed=1, C=1.0)
    >>> minimise(task, Subgradient(), tol=0.02, max_iter=5000).status.name
    'CONVERGED'
    """

    needs = (Oracle.predict_augmented, Oracle.features, Oracle.loss, Oracle.exact)
    is_coarse = True

    batch_size: int | None = parameter(optional(whole()), default=None)

    def init(self, task: Task, warm: WarmStart, rng: np.random.Generator) -> SubgradientState:
        self.check()
        state = SubgradientState(task.oracle.n_params, int(rng.integers(2**31)))
        state.bound = task.floor
        state.record_point(task, np.zeros(task.oracle.n_params), *task.origin)
        if warm.w is not None:
            state.certify(task, warm.w)
            state.w, state.mean, state.trust = warm.w, warm.w, WARM_START_PASSES
        return state

    def step(self, task: Task, state: SubgradientState) -> SubgradientState:
        state = copy.copy(state)
        if self.batch_size is None and _can_learn_online(task):
            state.descend_online(task)
        else:
            state.descend(task, BATCH_SIZE if self.batch_size is None else int(self.batch_size))
        if state.passes >= state.next_certificate:
            state.certify(task)
        return state

    def finish(self, task: Task, state: SubgradientState) -> SubgradientState:
        if state.certified == state.passes:
            return state
        state = copy.copy(state)
        state.certify(task)
        return state


def _can_learn_online(task: Task) -> bool:
    is_plain = task.penalty.is_plain and task.rescaling == "margin" and task.baseline is None
    return is_plain and capability(task.oracle, LearnsOnline) is not None


class SubgradientState(State):
    """The present point, the mean of all, the mean plane of all passes, and the best certificate so far."""

    def __init__(self, d: int, seed: int) -> None:
        super().__init__(np.zeros(d))
        self.seed = seed
        self.w, self.mean, self.slope = np.zeros(d), np.zeros(d), np.zeros(d)
        self.offset = 0.0
        self.passes, self.certified, self.next_certificate, self.trust = 0, 0, 1, 0

    def descend(self, task: Task, batch_size: int) -> None:
        """One pass: a step for every mini-batch, the mean of the points, and the mean plane of the passes."""
        n = task.oracle.n_samples
        order = np.random.default_rng((self.seed, self.passes)).permutation(n)
        batches = math.ceil(n / batch_size)
        slope, offset = np.zeros_like(self.slope), 0.0
        w, mean = self.w, self.mean.copy()
        t = (self.trust + self.passes) * batches
        penalty, lower = without_bounds(task.penalty)
        for start in range(0, n, batch_size):
            rows = np.sort(order[start : start + batch_size])
            plane = task.plane(task.predict_augmented(w, rows).code, rows)
            slope += plane.gradient
            offset += plane.offset
            t += 1
            w = w + (penalty.primal(batches * plane.gradient) - w) / t
            if lower is not None:
                w = np.maximum(w, lower)  # the nearest point within the bounds
            mean += (w - mean) * (2 / (t + 1))
        self._finish_pass(task, w, mean, slope, offset)

    def descend_online(self, task: Task) -> None:
        """One pass in batches of one, by an oracle that learns online.

        After visit t, t·w is the sum of all planes so far, so the plane of a pass is a difference of two such sums.
        """
        n = task.oracle.n_samples
        order = np.random.default_rng((self.seed, self.passes)).permutation(n)
        visit = (self.trust + self.passes) * n + np.arange(1, n + 1, dtype=np.float64)
        time = n + visit  # as if the targets themselves had been one pass: the first steps are no longer than C/n
        steps = n * task.weights[order] / time
        online = cast(LearnsOnline, task.oracle)
        found = online.learn_online(self.w, order, steps, 1 - 1 / time, visit, margin=1.0, target=task.target)
        before = (visit[0] - 1) * visit[0] / 2
        mean = (before * self.mean + found.total) / (before + float(visit.sum()))
        slope = ((time[0] - 1) * self.w - time[-1] * found.w) / n
        self._finish_pass(task, found.w, mean, slope, float((task.weights[order] * found.lost).sum()))

    def _finish_pass(self, task: Task, w: Array, mean: Array, slope: Array, offset: float) -> None:
        """The present point, the mean point, and the plane of a pass in the mean plane and its bound."""
        self.passes += 1
        share = 2 / (self.passes + 1)
        self.w, self.mean = w, mean
        self.slope = self.slope + share * (slope - self.slope)
        self.offset += share * (offset - self.offset)
        lowest = task.penalty.primal(self.slope)
        self.bound = max(self.bound, self.offset + float(self.slope @ lowest) + task.penalty.value(lowest))

    def certify(self, task: Task, w: Array | None = None) -> None:
        """Compute the objective at a point, at the mean if none is given."""
        w = self.mean if w is None else w
        self.record_point(task, w, *task.plane_at(w))
        self.certified = self.passes
        growth = ONLINE_GROWTH if _can_learn_online(task) else CERTIFICATE_GROWTH
        self.next_certificate = max(self.passes + 1, math.ceil(growth * self.passes))

"""The concave–convex procedure: impute the hidden values, solve a convex task, repeat; all samples or a few at a time.

`Descent` is what one run works on, `Position` where it is; `Descent.step` makes the next position. A position holds
everything that the rest of the run depends on, so a run that goes on from a stored one ends as if never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.oracle import Oracle, Task
from tacit.pacing import SelfPaced
from tacit.solvers import Bundle, Solution, Solver, Status, Warm, minimise


class Iteration(NamedTuple):
    """One line of the history of a run: the state after an outer iteration.

    ``objective`` is the true one, hidden values maximised over, of all samples; ``gap`` that of the convex solve;
    ``changed`` counts samples whose hidden value is new, ``samples_in`` those that the convex task held.
    """

    iteration: int
    seconds: float
    objective: float
    gap: float
    changed: int
    samples_in: int


@dataclass(frozen=True)
class Position:
    """Where a run is: the weights, the hidden values that go with them, the planes met, and what the pace remembers."""

    w: Array
    target: Array
    planes: Array
    is_in: Array
    objective: float = np.inf
    gap: float = np.inf
    changed: int = 0
    iteration: int = 0
    ease: float = np.inf  # 1/K of the pace: a sample is in while its share of the risk is at most this
    is_done: bool = False
    is_solved: bool = True  # whether the last convex task reached its gap


@dataclass(frozen=True)
class Descent:
    """One latent task: ``min ½‖w‖² + Σ c_i ξ_i``, ``ξ_i = max_a [ℓ_i(a) + s(a)] − max_h s(y_i, h)``.

    Parameters
    ----------
    oracle, weights, rescaling : as in `Task`
    solver : the solver of a convex task
    tol : a fall of the objective below ``tol · Σ c_i`` is none; convex tasks are solved to the same share of their own
    max_inner : steps of one convex solve
    pace : None for all samples at once
    escape : whether a solve that ends at w = 0 is left by the way its model points
    seed : of solvers that draw samples
    """

    oracle: Oracle
    weights: Array
    solver: Callable[[Task], Solver]
    tol: float
    max_inner: int
    rescaling: str = "margin"
    pace: SelfPaced | None = None
    escape: bool = True
    seed: int = 0

    @property
    def significant(self) -> float:
        """C·ε: the least fall of the objective that counts."""
        return self.tol * float(self.weights.sum())

    def begin(self, target: Array) -> Position:
        """The first position, from hidden values."""
        w = np.zeros(self.oracle.n_params)
        return Position(w, target, np.empty((0, target.size), target.dtype), np.ones(self.weights.size, dtype=bool))

    def step(self, now: Position) -> Position:
        """One outer iteration: convex solves with the present hidden values, then new hidden values."""
        is_paced = self.pace is not None and now.iteration >= self.pace.warmup
        if is_paced and not (now.is_in.all() and np.isfinite(now.ease)):
            return self._paced(now)
        solution = self._solve(now, self.weights, now.w)
        return self._impute(now, solution, np.ones_like(now.is_in), now.ease)

    def _paced(self, now: Position) -> Position:
        """Alternate between the samples that are easy for w and the w that is best for them; then ask for more."""
        assert self.pace is not None
        w, planes, gap = now.w, now.planes, now.gap
        risk = self.risk(w, now.target)
        ease = now.ease * self.pace.mu if np.isfinite(now.ease) else self.pace.first_ease(risk)
        best, is_in = np.inf, np.zeros_like(now.is_in)
        for _ in range(self.pace.max_rounds):
            chosen = self.pace.choose(risk, ease)
            if np.array_equal(chosen, is_in):
                break
            solution = self._solve(replace(now, planes=planes), self.weights * chosen, w)
            found = self.risk(solution.w, now.target)
            value = 0.5 * float(solution.w @ solution.w) + float(found[chosen].sum()) - ease * int(chosen.sum())
            if value < best:
                w, risk, is_in = solution.w, found, chosen
                planes, gap = solution.planes, solution.gap
            if not best - value > self.significant:
                break
            best = value
        if not is_in.any():  # nothing was easy enough: the hidden values stay, more are let in
            return replace(now, ease=ease, iteration=now.iteration + 1, is_in=is_in, changed=0)
        return self._move(now, w, planes, gap, is_in, ease)

    def _solve(self, now: Position, weights: Array, start: Array) -> Solution:
        task = Task(self.oracle, weights, now.target, rescaling=self.rescaling)
        return minimise(
            task,
            self.solver(task),
            tol=1e-12,
            gap=self.significant,
            max_iter=self.max_inner,
            start=start,
            planes=now.planes if len(now.planes) else None,
            rng=np.random.default_rng((self.seed, now.iteration)),
        )

    def _impute(self, now: Position, solution: Solution, is_in: Array, ease: float) -> Position:
        w, is_stuck = solution.w, not solution.w.any()
        if self.escape and is_stuck:
            task = Task(self.oracle, self.weights, now.target, rescaling=self.rescaling)
            model = Bundle().init(task, Warm(planes=solution.planes), np.random.default_rng(0))
            w = task.penalty.primal(model.weigh(task.penalty) @ model.slopes)
        moved = self._move(now, w, solution.planes, solution.gap, is_in, ease)
        is_solved = solution.status is Status.CONVERGED
        is_done = moved.is_done and not (self.escape and is_stuck and moved.changed > 0)
        return replace(moved, is_done=is_done, is_solved=is_solved)

    def _move(self, now: Position, w: Array, planes: Array, gap: float, is_in: Array, ease: float) -> Position:
        """The position at new weights: their hidden values, objective, and whether there is more to gain."""
        target = self.oracle.impute(w, prefer=now.target).code
        objective = self.objective(w, target)
        is_all = bool(is_in.all())
        was_all = now.iteration > 0 and bool(now.is_in.all())
        if is_all and was_all and objective > now.objective:  # within the gap of the solve: the old point stays
            return replace(now, planes=planes, gap=gap, changed=0, iteration=now.iteration + 1, is_done=True)
        changed = self._changed(target, now.target)
        stays = changed == 0 or (was_all and now.objective - objective < self.significant)
        is_done = is_all and stays and (self.pace is None or np.isfinite(ease))
        return Position(w, target, planes, is_in, objective, gap, changed, now.iteration + 1, ease, is_done)

    def objective(self, w: Array, target: Array) -> float:
        """The true objective at w, its hidden values being ``target``."""
        return 0.5 * float(w @ w) + float(self.risk(w, target).sum())

    def risk(self, w: Array, target: Array) -> Array:
        """c_i ξ_i(w), the hidden values fixed."""
        task = Task(self.oracle.exact(), self.weights, target, rescaling=self.rescaling)
        return np.asarray(self.weights * task.slack(w)[0])

    def _changed(self, target: Array, before: Array) -> int:
        differs = target != before
        offsets: Any = getattr(self.oracle, "code_offsets", None)
        return int(np.count_nonzero(differs if offsets is None else np.logical_or.reduceat(differs, offsets[:-1])))

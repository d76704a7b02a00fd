"""The concave–convex procedure: impute the hidden values, solve a convex task, repeat; all samples or a few at a time.

`Descent` is what one run works on, `Position` where it is; `Descent.step` makes the next position. A position holds
everything that the rest of the run depends on, so a run that goes on from a stored one ends as if never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import Array, narrow
from tacit.oracle import Oracle, Task, hidden_values
from tacit.pacing import SelfPaced
from tacit.ragged import Ragged
from tacit.solvers import Bundle, Solution, Solver, Status, Warm, minimise

FIRST, NEXT, FINER = 0.3, 0.5, 0.1
"""Gaps of convex tasks: the first as a share of C, later ones of the last fall; how they shrink when nothing falls."""

ESCAPES = 30
"""Iterations in which a run that is at w = 0 is given other hidden values; after these, that is its end."""


_PURPOSES = ("start", "solve", "draw")


class Iteration(NamedTuple):
    """One line of the history of a run: the state after an outer iteration.

    ``objective`` is the true one, hidden values maximised over, of all samples; ``gap`` that of the convex solve;
    ``changed`` counts samples whose hidden value is new, ``samples_in`` those that the convex task held. Which ones
    those were is in ``is_in``, a mask, and the hidden value of every sample in ``hidden``.
    """

    iteration: int
    seconds: float
    objective: float
    gap: float
    changed: int
    samples_in: int
    is_in: Array
    hidden: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Iteration):
            return False
        return self[:-2] == other[:-2] and all(_is_same(a, b) for a, b in zip(self[-2:], other[-2:], strict=True))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-2])


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
    precision: float = np.inf  # the gap that the next convex task is solved to
    n_warm: int = 0  # iterations away from w = 0
    is_done: bool = False
    is_solved: bool = True  # whether the last convex task reached its gap


@dataclass(frozen=True)
class Descent:
    """One latent task: ``min ½‖w‖² + Σ c_i ξ_i``, ``ξ_i = max_a [ℓ_i(a) + s(a)] − max_h s(y_i, h)``.

    Parameters
    ----------
    oracle, weights, rescaling : as in `Task`
    solver : the solver of a convex task
    tol : a fall of the objective below C·ε, ``tol · Σ c_i``, is none. Early convex tasks, whose targets are about to
        change, are solved to a share of the last fall, the last one to C·ε: no run ends before that
    max_inner : steps of one convex solve
    pace : None for all samples at once
    escape : whether a run at w = 0, which says nothing of the hidden values, gets those that its planes point to
    shift : whether a run that has ended goes on from hidden values that are all moved together, where the oracle knows
        such (`shifted`) and they are better
    seed, start : of the fit, and the number of the run in it: all that is drawn depends on both
    """

    oracle: Oracle
    weights: Array
    solver: Callable[[Task], Solver]
    tol: float
    max_inner: int
    rescaling: str = "margin"
    pace: SelfPaced | None = None
    escape: bool = True
    shift: bool = True
    seed: int = 0
    start: int = 0

    def rng(self, purpose: str, iteration: int = 0) -> np.random.Generator:
        """Other numbers for another start, purpose and iteration."""
        return np.random.default_rng((self.seed, self.start, _PURPOSES.index(purpose), iteration))

    @property
    def significant(self) -> float:
        """C·ε: the least fall of the objective that counts."""
        return self.tol * float(self.weights.sum())

    def begin(self, target: Array) -> Position:
        """The first position, from hidden values."""
        w = np.zeros(self.oracle.n_params)
        planes, is_in = np.empty((0, target.size), target.dtype), np.ones(self.weights.size, dtype=bool)
        return Position(w, target, planes, is_in, precision=self._first_gap)

    @staticmethod
    def restored(parts: dict[str, Any]) -> Position:
        """A position from its stored parts."""
        return Position(**parts)

    def better(self, best: Position | None, now: Position) -> Position:
        """What a run that is cut short now is left with, given what that was before."""
        return now if best is None or now.objective < best.objective else best

    def step(self, now: Position) -> Position:
        """One outer iteration: convex solves with the present hidden values, then new hidden values."""
        is_paced = self.pace is not None and now.n_warm >= self.pace.warmup
        is_partial = is_paced and not (now.is_in.all() and np.isfinite(now.ease))
        moved = self._paced(now) if is_partial else self._whole(now)
        return self._shifted(moved) if self.shift and moved.is_done and moved.w.any() else moved

    def _whole(self, now: Position) -> Position:
        """One convex solve with all samples."""
        solution = self._solve(now, self.weights, now.w)
        now = replace(now, planes=solution.planes, gap=solution.gap, is_solved=solution.status is Status.CONVERGED)
        escapes = self.escape and not solution.w.any() and now.iteration < ESCAPES
        moved = self._move(now, solution.w, np.ones_like(now.is_in), self._pointed(now) if escapes else solution.w)
        return self._drawn(moved) if escapes and moved.is_done else moved

    def _paced(self, now: Position) -> Position:
        """Alternate between the samples that are easy for w and the w that is best for them; then ask for more."""
        assert self.pace is not None
        slack, share, unit = self.slack(now.w, now.target), *self._shares()
        ease = self.pace.next_ease(unit * slack, now.ease, None if now.changed else now.is_in, share)
        best, is_in, found = np.inf, np.zeros_like(now.is_in), replace(now, ease=ease)
        for _ in range(self.pace.max_rounds):
            chosen = self.pace.choose(unit * slack, ease) | (share == 0)
            if np.array_equal(chosen, is_in):
                break
            solution = self._solve(found, self.weights * chosen, found.w)
            slack = self.slack(solution.w, now.target)
            value = 0.5 * float(solution.w @ solution.w) + float((share * (unit * slack - ease))[chosen].sum())
            if value < best:
                is_in = chosen
                is_solved = solution.status is Status.CONVERGED
                found = replace(found, w=solution.w, planes=solution.planes, gap=solution.gap, is_solved=is_solved)
            if not best - value > self.significant:
                break
            best = value
        if not is_in.any():  # nothing was easy enough: the hidden values stay, more are let in
            return replace(found, iteration=now.iteration + 1, is_in=is_in, changed=0)
        return self._move(replace(found, w=now.w), found.w, is_in, found.w)

    def _solve(self, now: Position, weights: Array, start: Array, above: float = np.inf) -> Solution:
        """The convex task of the present hidden values; given up once its optimum is known to be above a limit."""
        task = Task(self.oracle, weights, now.target, rescaling=self.rescaling)
        solution = minimise(
            task,
            self.solver(task),
            tol=1e-12,
            gap=now.precision,
            max_iter=self.max_inner,
            start=start,
            planes=now.planes if len(now.planes) else None,
            callbacks=[lambda step: bool(step.bound > above)],
            rng=self.rng("solve", now.iteration),
        )
        if solution.status is Status.INTERRUPTED:  # half a solve is no position to go on from
            raise KeyboardInterrupt
        return solution

    def _pointed(self, now: Position) -> Array:
        """The minimiser of the model that the planes make: where a solve that ended at w = 0 would have gone on."""
        task = Task(self.oracle, self.weights, now.target, rescaling=self.rescaling)
        model = Bundle().init(task, Warm(planes=now.planes), np.random.default_rng(0))
        return task.penalty.primal(model.weigh(task.penalty) @ model.slopes)

    def _drawn(self, now: Position) -> Position:
        """The same w = 0 with hidden values drawn anew: those that the model points to lead back there."""
        if not hasattr(self.oracle, "draw"):
            return now
        target = self.oracle.draw(self.rng("draw", now.iteration))
        changed = self._changed(target, now.target)
        return replace(now, target=target, changed=changed, precision=self._first_gap, is_done=changed == 0)

    def _shifted(self, end: Position) -> Position:
        """The first position that is better than the end of a run and comes from its hidden values, all moved together.

        A motif that was found a letter beside its place is a local optimum: no sample gains by moving alone. Most
        moves cost a few passes, since the planes that are there prove that their convex task has nothing to offer.
        """
        limit = end.objective - self.significant
        for target in getattr(self.oracle, "shifted", lambda code: ())(end.target):
            if not self._changed(target, end.target):
                continue
            solution = self._solve(replace(end, target=target), self.weights, end.w, above=limit)
            found = self.oracle.impute(solution.w, prefer=target).code
            objective = self.objective(solution.w, found)
            if objective < limit:
                changed = self._changed(found, end.target)
                return replace(
                    end,
                    w=solution.w,
                    target=found,
                    planes=solution.planes,
                    objective=objective,
                    changed=changed,
                    gap=solution.gap,
                    is_done=False,
                )
        return end

    def _move(self, now: Position, w: Array, is_in: Array, pointed: Array) -> Position:
        """The position at w: the hidden values that ``pointed`` asks for, the objective, and how to go on."""
        target = self.oracle.impute(pointed, prefer=now.target).code
        is_all = bool(is_in.all())
        was_all = now.iteration > 0 and bool(now.is_in.all())
        objective = self.objective(w, target)
        if is_all and was_all and objective > now.objective:  # within the gap of the solve: the old point stays
            w, target, objective = now.w, now.target, now.objective
        changed = self._changed(target, now.target)
        fall = now.objective - objective if was_all else np.inf
        is_still = changed == 0 or (fall < self.significant and bool(w.any()))
        precision = now.precision if not 0 < fall < np.inf else NEXT * fall
        if is_still:
            precision = FINER * now.precision
        if self.pace is not None and now.n_warm + bool(w.any()) >= self.pace.warmup:
            precision = 0.0  # which samples are easy shows only in a good solution
        is_paced = self.pace is None or np.isfinite(now.ease) or not w.any()
        is_last = now.precision <= self.significant and is_all and is_paced
        return replace(
            now,
            w=w,
            target=target,
            is_in=is_in,
            objective=objective,
            changed=changed,
            iteration=now.iteration + 1,
            n_warm=now.n_warm + bool(w.any()),
            precision=self._at_least(precision),
            is_done=is_still and is_last,
        )

    @property
    def _first_gap(self) -> float:
        return self._at_least(FIRST * float(self.weights.sum()))

    def _at_least(self, gap: float) -> float:
        return max(gap, self.significant)

    def objective(self, w: Array, target: Array) -> float:
        """The true objective at w, its hidden values being ``target``."""
        return 0.5 * float(w @ w) + float((self.weights * self.slack(w, target)).sum())

    def slack(self, w: Array, target: Array) -> Array:
        """ξ_i(w), the hidden values fixed."""
        task = Task(self.oracle.exact(), self.weights, target, rescaling=self.rescaling)
        return task.slack(w)[0]

    def _shares(self) -> tuple[Array, float]:
        """How many samples each one stands for, and the weight of one: a weight of 2 is a sample twice."""
        unit = float(self.weights.sum()) / max(1, int(np.count_nonzero(self.weights)))
        return self.weights / unit, unit

    def line(self, now: Position, seconds: float) -> Iteration:
        """What the history says of a position."""
        hidden = hidden_values(self.oracle, now.target)
        samples_in = int(np.count_nonzero(now.is_in))
        numbers = (now.objective, now.gap, now.changed, samples_in)
        return Iteration(now.iteration, seconds, *numbers, now.is_in, narrow(hidden))

    def _changed(self, target: Array, before: Array) -> int:
        differs = target != before
        offsets: Any = getattr(self.oracle, "code_offsets", None)
        return int(np.count_nonzero(differs if offsets is None else np.logical_or.reduceat(differs, offsets[:-1])))


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, Ragged) and isinstance(b, Ragged):
        return np.array_equal(a.offsets, b.offsets) and np.array_equal(a.values, b.values)
    return np.array_equal(a, b)

"""The concave–convex procedure: solve a convex task, impute the hidden values, repeat; on all samples or self-paced.

A `Descent` holds what stays the same in a start, a `LatentState` what changes; `Descent.step` makes the next state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from tacit.data.arrays import Array, narrow
from tacit.data.parameters import is_not_negative, number
from tacit.data.ragged import Ragged
from tacit.learners.descents.multistart import Codes, DescentState, Mask, Method, OptionalWeights, Planes, Weights
from tacit.learners.descents.pacing import SelfPaced
from tacit.learners.descents.smoothing import POWERS, minimise_soft
from tacit.oracle import Oracle, Task, capability, code_offsets, hidden_values
from tacit.oracle.capabilities import DrawsHidden, KnownPart, MovesJointly, ScalesLoss
from tacit.penalties import Penalty
from tacit.runtime import Status
from tacit.runtime.archive import record
from tacit.solvers import Bundle, Solution, Solver, WarmStart, minimise

FIRST_GAP, NEXT_GAP, FINER_GAP = 0.3, 0.5, 0.1
"""The gap to which convex tasks are solved: for the first a share of C, for later ones a share of the last decrease of
the objective, or of the last gap if the objective did not decrease."""

MAX_ESCAPES = 30
"""After this many iterations a run that is at w = 0 ends there; before that, it gets other hidden values."""

_PURPOSES = ("start", "solve", "draw")


@record
class Iteration(NamedTuple):
    """One line of the history of a run: the state after an outer iteration.

    ``objective`` is the true one, of all samples, with hidden values maximised over; ``gap`` is that of the convex
    solve. ``changed`` counts the samples whose hidden value is new. ``samples_in`` counts the samples in the convex
    task, and the mask ``is_in`` has them. ``hidden`` has the hidden value of every sample.
    """

    iteration: int
    seconds: float
    objective: float
    gap: float
    changed: int
    samples_in: int
    is_in: Array
    hidden: Any

    def __repr__(self) -> str:
        return (
            f"Iteration({self.iteration}: objective {self.objective:.6g}, gap {self.gap:.2g}, {self.changed} changed, "
            f"{self.samples_in} samples in, {self.seconds:.2f} s)"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Iteration):
            return False
        return self[:-2] == other[:-2] and all(_is_same(a, b) for a, b in zip(self[-2:], other[-2:], strict=True))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-2])


@dataclass(frozen=True)
class LatentState(DescentState):
    """The state of a start: weights, the hidden values imputed with them, the planes so far, and the threshold."""

    seed: int = 0  # of the fit
    start: int = 0  # its number in the fit: all random numbers depend on both
    w: Weights = field(default_factory=lambda: np.empty(0))
    target: Codes = field(default_factory=lambda: np.empty(0, np.int64))
    planes: Planes = field(default_factory=lambda: np.empty((0, 0), np.int64))
    is_in: Mask = field(default_factory=lambda: np.empty(0, bool))
    gap: float = np.inf
    changed: int = 0
    threshold: float = np.inf  # 1/K of the pace: a sample is in while its share of the risk is at most this
    precision: float = np.inf  # the gap that the next convex task is solved to
    n_warm: int = 0  # iterations away from w = 0
    n_powers: int = 0  # powers of the smooth path that are left before CCCP
    bound_slope: OptionalWeights = field(default_factory=lambda: np.empty(0))  # of its bound, if the penalty is a norm

    def as_result(self: P) -> P:
        """The same without its planes, which only the next step needs."""
        return replace(self, planes=self.planes[:0])

    def rng(self, purpose: str) -> np.random.Generator:
        """A random generator of its own for every start, purpose and iteration."""
        return np.random.default_rng((self.seed, self.start, _PURPOSES.index(purpose), self.iteration))


P = TypeVar("P", bound=LatentState)
D = TypeVar("D", bound="Descent")


class Solved(NamedTuple):
    """The solution of a convex task, and which samples were in it."""

    w: Array
    planes: Array
    gap: float
    is_solved: bool
    is_in: Array
    threshold: float
    slope: Array = np.empty(0)


@dataclass(frozen=True)
class Descent(Method[Any]):
    """One latent task: ``min Ω(w) + Σ c_i ξ_i``, ``ξ_i = max_a [ℓ_i(a) + s(a)] − max_h s(y_i, h)``.

    Parameters
    ----------
    oracle, weights, penalty, rescaling : as in `Task`
    solver : the solver of a convex task
    tol : a decrease of the objective below ``tol · Σ c_i`` does not count. Early convex tasks, whose targets will
        change, are solved only to a share of the last decrease; a run ends only after one solved to ``tol · Σ c_i``
    max_inner : steps per convex solve
    pace : None for all samples at once
    escape : if a solve ends at w = 0, impute from the minimiser of the cutting-plane model instead
    shift : when a run has ended, try the oracle's `joint_moves` and go on from one that is better
    """

    oracle: Oracle
    weights: Array
    penalty: Penalty
    solver: Callable[[Task], Solver]
    tol: float
    max_inner: int
    rescaling: str = "margin"
    pace: SelfPaced | None = None
    escape: bool = True
    shift: bool = True

    state: ClassVar[Any] = LatentState
    line_type: ClassVar[Any] = Iteration
    can_follow_path: ClassVar[bool] = True
    prefers_path: ClassVar[bool] = True
    """Whether a start may begin with a smooth path, and whether it does by default; see
    `tacit.learners.descents.smoothing`."""

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> Any:
        """The first state of a start, from hidden values, and weights if there are any."""
        return self.state(
            seed=seed,
            start=start,
            w=np.zeros(self.oracle.n_params) if w is None else w,
            target=target,
            planes=np.empty((0, target.size), target.dtype),
            is_in=np.ones(self.weights.size, dtype=bool),
            precision=self._first_precision(),
        )

    def convert(self, kind: type[D], **more: Any) -> D:
        """Another kind of descent for the same task, with ``more`` settings."""
        return kind(**{**{field.name: getattr(self, field.name) for field in fields(Descent)}, **more})

    def better(self, best: Any, now: Any) -> Any:
        """The lower of the best state so far and the present one: while a pace is on, the objective may rise."""
        return now if best is None or now.objective < best.objective else best

    def check(self, state: LatentState) -> None:
        number("precision", state.precision, "a finite number from 0", is_not_negative)
        if state.n_powers > len(POWERS):
            raise ValueError(f"n_powers must be at most {len(POWERS)}, got {state.n_powers}")

    def step(self, now: Any) -> Any:
        """One outer iteration: solve with the present hidden values, impute new ones, decide how to go on."""
        if now.n_powers:
            return minimise_soft(self, now)
        is_pacing = self._is_pacing(now)
        if is_pacing:
            solved = self._solve_easy(now)
        else:
            everyone = now.is_in if now.is_in.all() else np.ones_like(now.is_in)  # one mask for many lines of history
            task = self._task(now.target, self.weights)
            solution = minimise(task, self.solver(task), start=now.w, planes=now.planes, **self._effort(now))
            solved = _as_solved(solution, everyone, now.threshold)
        if not solved.is_in.any():  # nothing was easy enough: the hidden values stay, the threshold rises
            return replace(now, threshold=solved.threshold, iteration=now.iteration + 1, is_in=solved.is_in, changed=0)
        is_stuck = self.escape and not is_pacing and not solved.w.any() and now.iteration < MAX_ESCAPES
        hint = self._model_minimiser(now.target, solved.planes) if is_stuck else solved.w
        after = self._impute(now, solved, hint)
        after = replace(after, precision=self._next_precision(now, after), is_done=self._is_end(now, after))
        if is_stuck and after.is_done:
            after = self._draw_hidden(after)
        if self.shift and after.is_done and after.w.any():
            after = self._move_jointly(after)
        return after

    # solve

    def _effort(self, now: LatentState, above: float = np.inf) -> dict[str, Any]:
        """How a convex task is solved: to the present precision, or until its optimum is known to be above a limit."""
        return {
            "tol": 1e-12,
            "gap": now.precision,
            "max_iter": self.max_inner,
            "callbacks": [lambda step: bool(step.bound > above)],
            "rng": now.rng("solve"),
            "raise_interrupt": True,
        }

    # pace

    def _is_pacing(self, now: LatentState) -> bool:
        """Whether the pace still leaves samples out: after its warm-up, until all were in once."""
        if self.pace is None or now.n_warm < self.pace.warmup:
            return False
        return not (now.is_in.all() and np.isfinite(now.threshold))

    def _solve_easy(self, now: LatentState) -> Solved:
        """Alternate between the samples that are easy for w and the w that is best for them."""
        assert self.pace is not None
        slack, share, unit = self.slack(now.w, now.target), *self._shares()
        paced = self.pace.can_leave_out(self.oracle)
        is_in = None if now.changed else now.is_in[paced]
        threshold = self.pace.next_threshold((unit * slack)[paced], now.threshold, is_in, share[paced])
        found = Solved(now.w, now.planes, now.gap, now.is_solved, np.zeros_like(now.is_in), threshold)
        best = np.inf
        for _ in range(self.pace.max_rounds):
            chosen = self.pace.choose(unit * slack, threshold) | (share == 0) | ~paced
            if np.array_equal(chosen, found.is_in):
                break
            task = self._task(now.target, self.weights * chosen)
            solution = minimise(task, self.solver(task), start=found.w, planes=found.planes, **self._effort(now))
            slack = self.slack(solution.w, now.target)
            value = self.penalty.value(solution.w) + float((share * (unit * slack - threshold))[chosen].sum())
            if value < best:
                found = _as_solved(solution, chosen, threshold)
            if not best - value > self.significant:
                break
            best = value
        return found

    def _shares(self) -> tuple[Array, float]:
        """The weight of each sample relative to the mean weight, and that mean: a weight of 2 counts as two samples."""
        unit = float(self.weights.sum()) / max(1, int(np.count_nonzero(self.weights)))
        return self.weights / unit, unit

    # impute

    def _impute(self, now: P, solved: Solved, hint: Array) -> P:
        """The state at the solution, with hidden values imputed from ``hint``; the old state if that is lower.

        The old one can be lower by no more than the gap of the solve. Objectives are compared only if all samples are
        in both.
        """
        w, target = solved.w, self.oracle.impute(hint, prefer=now.target).code
        objective = self.objective(w, target)
        if solved.is_in.all() and _held_all(now) and objective > now.objective:
            w, target, objective = now.w, now.target, now.objective
        return replace(
            now,
            w=w,
            target=target,
            planes=solved.planes,
            gap=solved.gap,
            is_solved=solved.is_solved,
            is_in=solved.is_in,
            threshold=solved.threshold,
            bound_slope=solved.slope,
            objective=objective,
            changed=self._count_changed(target, now.target),
            iteration=now.iteration + 1,
            n_warm=now.n_warm + bool(w.any()),
        )

    # stop

    def _is_still(self, before: LatentState, after: LatentState) -> bool:
        """Whether an iteration changed nothing: no new hidden value, or no decrease that counts."""
        return after.changed == 0 or (_decrease(before, after) < self.significant and bool(after.w.any()))

    def _is_end(self, before: LatentState, after: LatentState) -> bool:
        """Whether the run ends: nothing changed, all samples were in, the task was solved to the final precision."""
        is_precise = before.precision <= self.significant
        has_paced = self.pace is None or bool(np.isfinite(after.threshold)) or not after.w.any()
        return self._is_still(before, after) and is_precise and bool(after.is_in.all()) and has_paced

    def _first_precision(self) -> float:
        """The gap of the first convex task: a share of C, or of the objective at w = 0 where that is so small that any
        w would do."""
        first, scaled = FIRST_GAP * float(self.weights.sum()), capability(self.oracle, ScalesLoss)
        if scaled is not None:
            at_zero = float(self.weights @ scaled.loss_levels().most)
            first = FIRST_GAP * at_zero if at_zero <= first else first
        return self._at_least(first)

    def _next_precision(self, before: LatentState, after: LatentState) -> float:
        """The gap that the next convex task is worth solving to."""
        if self.pace is not None and after.n_warm >= self.pace.warmup:
            return self._at_least(0.0)  # which samples are easy shows only in a good solution
        if self._is_still(before, after):
            return self._at_least(FINER_GAP * before.precision)
        decrease = _decrease(before, after)
        return self._at_least(NEXT_GAP * decrease if 0 < decrease < np.inf else before.precision)

    # escape from poor optima

    def _model_minimiser(self, target: Array, planes: Array) -> Array:
        """The minimiser of the cutting-plane model: the next point of a solve that ended at w = 0."""
        task = self._task(target, self.weights)
        model = Bundle().init(task, WarmStart(planes=planes), np.random.default_rng(0))
        return model.minimiser(task.penalty)

    def _draw_hidden(self, now: P) -> P:
        """The same w = 0 with new random hidden values, because those imputed from the model led back to w = 0."""
        drawer = capability(self.oracle, DrawsHidden)
        if drawer is None:
            return now
        target = drawer.draw(now.rng("draw"))
        changed = self._count_changed(target, now.target)
        precision = self._first_precision()
        return replace(now, target=target, changed=changed, precision=precision, is_done=changed == 0)

    def _move_jointly(self, end: P) -> P:
        """Try joint moves of the hidden values at the end of a run: the first better state, else the end itself.

        Most moves cost only a few passes: the planes so far prove that their convex task cannot be better.
        """
        mover = capability(self.oracle, MovesJointly)
        limit = end.objective - self.significant
        for target in () if mover is None else mover.joint_moves(end.target):
            if not self._count_changed(target, end.target):
                continue
            task = self._task(target, self.weights)
            solution = minimise(task, self.solver(task), start=end.w, planes=end.planes, **self._effort(end, limit))
            found = self.oracle.impute(solution.w, prefer=target).code
            objective = self.objective(solution.w, found)
            if objective < limit:
                return replace(
                    end,
                    w=solution.w,
                    target=found,
                    planes=solution.planes,
                    objective=objective,
                    changed=self._count_changed(found, end.target),
                    gap=solution.gap,
                    is_done=False,
                )
        return end

    # begin from what is known

    def solve_known(self, part: KnownPart, seed: int = 0, start: int = 0) -> Array:
        """The weights of a structured SVM on the known part, whose c_i have the sum of all samples'."""
        oracle = part.oracle.exact()
        weights = np.where(part.owner >= 0, self.weights[part.owner], 0.0)
        if not weights.any():
            return np.zeros(oracle.n_params)
        weights *= float(self.weights.sum()) / float(weights.sum())
        target = oracle.impute(np.zeros(oracle.n_params)).code
        task = Task(oracle, weights, target, self.penalty, self.rescaling)
        rng = self.state(seed=seed, start=start).rng("solve")
        limits: dict[str, Any] = {"tol": 1e-3, "max_iter": self.max_inner, "raise_interrupt": True}
        return minimise(task, self.solver(task), rng=rng, **limits).w

    # measure

    @property
    def significant(self) -> float:
        """The smallest decrease of the objective that counts."""
        return self.tol * float(self.weights.sum())

    def objective(self, w: Array, target: Array) -> float:
        """The true objective at w, its hidden values being ``target``."""
        return self.penalty.value(w) + float((self.weights * self.slack(w, target)).sum())

    def slack(self, w: Array, target: Array) -> Array:
        """ξ_i(w), the hidden values fixed."""
        task = Task(self.oracle.exact(), self.weights, target, self.penalty, self.rescaling)
        return task.slack(w)[0]

    def inference_gap(self, w: Array, target: Array) -> float:
        """How far `objective` may be above the true one, where inference finds upper bounds of the ξ_i."""
        task = self._task(target, self.weights)
        return task.certify(w)[1] if task.is_bounded else 0.0

    def line(self, now: LatentState, seconds: float) -> Iteration:
        """The line of the history for a state."""
        hidden = narrow(hidden_values(self.oracle, now.target))
        samples_in = int(np.count_nonzero(now.is_in))
        return Iteration(now.iteration, seconds, now.objective, now.gap, now.changed, samples_in, now.is_in, hidden)

    def line_arrays(self, now: LatentState) -> Mapping[str, Array]:
        return {"target": narrow(now.target), "is_in": np.packbits(now.is_in)}

    def restore_line(self, numbers: Mapping[str, Any], arrays: Mapping[str, Array], now: LatentState) -> Iteration:
        target = arrays["target"].astype(now.target.dtype)
        if not self.oracle.accepts(target):
            raise ValueError("the history must hold outputs of these samples")
        is_in = np.unpackbits(arrays["is_in"], count=now.is_in.size).astype(bool)
        return Iteration(**numbers, is_in=is_in, hidden=narrow(hidden_values(self.oracle, target)))

    def _task(self, target: Array, weights: Array) -> Task:
        return Task(self.oracle, weights, target, self.penalty, self.rescaling)

    def _at_least(self, gap: float) -> float:
        return max(gap, self.significant)

    def _count_changed(self, target: Array, before: Array) -> int:
        """The number of samples whose output differs."""
        differs = target != before
        offsets = code_offsets(self.oracle)
        return int(np.count_nonzero(differs if offsets is None else np.logical_or.reduceat(differs, offsets[:-1])))


def _as_solved(solution: Solution, is_in: Array, threshold: float) -> Solved:
    """A solution with the samples in its task; the slope of the best lower bound is empty if the solver keeps none."""
    slope = (solution.variables or {}).get("slope", np.empty(0))
    is_solved = solution.status is Status.CONVERGED
    return Solved(solution.w, solution.planes, solution.gap, is_solved, is_in, threshold, slope)


def _held_all(now: LatentState) -> bool:
    """Whether the convex task of a state held all samples."""
    return now.iteration > 0 and bool(now.is_in.all())


def _decrease(before: LatentState, after: LatentState) -> float:
    """By how much the objective decreased; infinite where the one before cannot be compared."""
    return before.objective - after.objective if _held_all(before) else np.inf


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, Ragged) and isinstance(b, Ragged):
        return np.array_equal(a.offsets, b.offsets) and np.array_equal(a.values, b.values)
    return np.array_equal(a, b)

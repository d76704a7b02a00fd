"""Convex solves: what a solver brings, and how its answer is certified.

A solver is two methods, `init` (the first state) and `step` (a better one), and a state. A state always holds a point,
its objective, and a lower bound on the optimum, so the gap between the two is known at every step.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.data.parameters import is_not_negative, number, shorten, whole_number
from tacit.data.specs import check_parameters
from tacit.oracle import Oracle, Plane, Task, checksum
from tacit.oracle.contracts import Need
from tacit.penalties import Penalty
from tacit.runtime import Status, run
from tacit.runtime.archive import record
from tacit.runtime.checkpoint import Checkpoint, stored_array, stored_codes, stored_number

ROUNDING = 1e-10
"""An optimum within this share of the objective at w = 0 cannot be distinguished from it."""


@record
class Step(NamedTuple):
    """One line of the history: the objective of the best point, or an upper bound of it, and the best lower bound."""

    iteration: int
    seconds: float
    objective: float
    bound: float
    planes: int

    @property
    def gap(self) -> float:
        return max(self.objective - self.bound, 0.0)


class Solution(NamedTuple):
    """What `minimise` returns: the optimum lies between ``bound`` and ``objective``, the value at ``w``.

    ``planes`` are codes that warm-start another task. So does ``dual``, the last dual point of a solver that keeps one
    (`FrankWolfe`). ``variables`` are the dual variables of ``w`` itself, None if it has none.
    ``in_single_precision`` says that the passes of the solver rounded to single precision. ``inference_gap`` is the
    part of the gap that inference leaves open at ``w``, which no solver can close: 0 where inference is exact.
    """

    w: Array
    status: Status
    objective: float
    bound: float
    planes: Array
    history: list[Step]
    dual: Mapping[str, Array] | None = None
    variables: Mapping[str, Array] | None = None
    in_single_precision: bool = False
    inference_gap: float = 0.0

    @property
    def gap(self) -> float:
        """How far ``objective`` may be from the optimum."""
        return max(self.objective - self.bound, 0.0)

    def advice(self) -> str:
        """One sentence: what happened and what to do next."""
        steps = self.history[-1].iteration if self.history else 0
        gap = abs(self.objective - self.bound)
        share = gap / max(abs(self.objective), 1e-300)
        state = f"gap {gap:.2g} ({share:.2g} of the objective) after {steps} steps"
        if self.inference_gap > 0:
            state += f"; inference leaves {self.inference_gap:.2g} open, because it finds bounds"
        return {
            Status.CONVERGED: f"converged: {state}",
            Status.MAX_ITER: f"not converged: {state}; raise max_iter, raise tol or lower C",
            Status.STALLED: f"no further progress: {state}; scale or centre the features, "
            f"{'pass them in double precision, ' if self.in_single_precision else ''}lower C, or raise tol",
            Status.STOPPED: f"stopped by a callback: {state}",
            Status.INTERRUPTED: f"interrupted: {state}; the best model so far is kept, "
            "fit again with warm_start=True (or resume=True with a checkpoint) to go on",
        }[self.status]


class WarmStart(NamedTuple):
    """Where a solver starts: a point, codes of planes and dual variables of an earlier solution; any may be None."""

    w: Array | None = None
    planes: Array | None = None
    dual: Mapping[str, Array] | None = None


MAX_CODES = 5
"""How many codes of certificates a solver without planes keeps for warm starts."""

MAX_IDLE_STEPS = 300
"""After this many steps without progress a solver is stuck."""

MAX_UNCHANGED_STEPS = 50
"""After this many steps that change nothing at all, not even the model, a solver is stuck: only rounding is left."""

MIN_PROGRESS = 1e-9
"""The share of the objective by which the gap must shrink to count as progress. Rounding moves it by less."""


class State:
    """The state of a solver: always a usable point with its certificate.

    A subclass sets what else it needs in its constructor. Checkpoints keep numbers, and arrays whose shapes do not
    change; not what is in `unsaved` or begins with an underscore: for that, extend `snapshot` and `Solver.restore`.

    Parameters
    ----------
    w, objective : a point and its objective, in `best`. Where inference finds bounds, that is the objective of the
        outputs that were found, a lower bound; ``excess`` is how far the true one may be above it. ``proven`` is the
        point whose objective has the lowest upper bound, and that
    bound : a lower bound on the optimum
    """

    unsaved: ClassVar[tuple[str, ...]] = ()

    def __init__(self, w: Array, objective: float = math.inf, bound: float = -math.inf) -> None:
        self.best: tuple[Array, float] = w, objective
        self.proven = self.best
        self.bound = bound
        self.excess = 0.0
        self.codes: tuple[Array, ...] = ()  # of planes, for warm starts
        self.gap_then, self.idle = math.inf, 0

    def record(self, w: Array, objective: float, excess: float) -> bool:
        """Keep a point if it is the best so far, or has the lowest upper bound; returns whether it is the best.

        ``objective`` is of the outputs that were found at ``w``, ``excess`` what inference leaves open.
        """
        if not objective + excess >= self.proven[1]:
            self.proven = w, objective + excess
        if objective >= self.best[1]:
            return False
        self.best, self.excess = (w, objective), excess
        return True

    def record_point(self, task: Task, w: Array, code: Array, plane: Plane) -> bool:
        """Keep the code for warm starts, and ``w`` as `record` does, with its objective by the plane there."""
        self.codes = (*self.codes, code)[-MAX_CODES:]
        return self.record(w, task.penalty.value(w) + plane.value(w), plane.excess)

    @property
    def n_planes(self) -> int:
        """How many planes it holds."""
        return len(self.codes)

    @property
    def is_stuck(self) -> bool:
        """Whether the gap has not shrunk for very many steps."""
        return self.idle >= MAX_IDLE_STEPS

    def note_progress(self, has_changed: bool = True) -> None:
        """Count a step as idle unless the gap has shrunk; a step that changes nothing counts for several.

        A bound that rises slowly is progress: near the optimum of a task with a large C a hundredth of the gap takes
        hundreds of steps. ``max_iter`` ends such a run.
        """
        gap = max(self.best[1] - self.bound, 0.0)
        if gap < self.gap_then - MIN_PROGRESS * abs(self.best[1]):
            self.gap_then, self.idle = gap, 0
        else:
            self.idle += 1 if has_changed else MAX_IDLE_STEPS // MAX_UNCHANGED_STEPS

    def planes(self) -> Array:
        """(planes, n) codes that warm-start another task."""
        return np.array(self.codes)

    def dual(self) -> Mapping[str, Array] | None:
        """The present dual point, for warm starts; None where the solver keeps none."""
        return None

    def variables(self) -> Mapping[str, Array] | None:
        """The dual variables of the best point, where it has any."""
        return None

    def snapshot(self) -> Mapping[str, Any]:
        """Everything that `Solver.restore` needs to go on, as arrays and numbers."""
        w, objective = self.best
        best = {"best.w": w, "best.objective": objective, "best.excess": self.excess}
        if self.excess:
            best |= {"proven.w": self.proven[0], "proven.objective": self.proven[1]}
        return {**self.simple_fields(), **best, "codes": self.planes()}

    def simple_fields(self) -> dict[str, Any]:
        """What checkpoints keep as it is: numbers, and arrays whose shapes do not change."""
        left_out = ("best", "proven", "excess", "codes", *self.unsaved)
        return {name: value for name, value in vars(self).items() if name not in left_out and name[0] != "_"}

    def restore_fields(self, task: Task, snapshot: Mapping[str, Any]) -> None:
        """Take over the point, the codes and the simple fields of a snapshot; refused unless they are like these."""
        for name, value in self.simple_fields().items():
            if isinstance(value, np.ndarray):
                kinds = "iu" if value.dtype.kind in "iu" else value.dtype.kind
                setattr(self, name, stored_array(snapshot, name, value.shape, kinds).astype(value.dtype, copy=False))
            else:
                is_from_zero = name == "gap_then" or type(value) is int
                setattr(self, name, type(value)(stored_number(snapshot, name, 0 if is_from_zero else -math.inf)))
        w = stored_array(snapshot, "best.w", (task.oracle.n_params,))
        self.best = w, stored_number(snapshot, "best.objective")
        self.excess = stored_number(snapshot, "best.excess", 0) if "best.excess" in snapshot else 0.0
        self.proven = self.best
        if "proven.w" in snapshot:
            w = stored_array(snapshot, "proven.w", (task.oracle.n_params,))
            self.proven = w, stored_number(snapshot, "proven.objective")
        self.codes = stored_codes(snapshot, "codes", task.oracle.accepts)


class Solver(BaseEstimator, ABC):  # type: ignore[misc]
    """A convex solver: hyperparameters only; all that changes is in its state. `init` and `step` must be written."""

    needs: tuple[Need, ...] = (Oracle.predict_augmented, Oracle.features, Oracle.loss, Oracle.accepts, Oracle.exact)
    """The protocols or methods of an oracle that it calls."""
    takes_norms: bool = False
    """Whether it can minimise with penalties that are not quadratic."""
    is_coarse: bool = False
    """Whether it reaches small gaps only slowly: the common checks then require large ones only."""

    @abstractmethod
    def init(self, task: Task, warm: WarmStart, rng: np.random.Generator) -> Any:
        """The first state, from a starting point, old planes and dual variables where there are any."""

    @abstractmethod
    def step(self, task: Task, state: Any) -> Any:
        """A better state; the one given is not changed, so that an interrupted step loses nothing."""

    def is_done(self, state: Any) -> bool:
        """Whether further steps cannot help, whatever the tolerance."""
        return bool(state.is_stuck)

    def finish(self, task: Task, state: Any) -> Any:
        """The last state with an up-to-date certificate: for solvers that do not compute one in every step."""
        return state

    def restore(self, task: Task, snapshot: Mapping[str, Any]) -> Any:
        """The state of a snapshot; refused unless its arrays and numbers are like those of a new state."""
        state = self.init(task, WarmStart(), np.random.default_rng(0))
        state.restore_fields(task, snapshot)
        return state

    def check(self) -> None:
        """Refuse invalid parameters: those that specs do not allow."""
        check_parameters(self)


def minimise(
    task: Task,
    solver: Solver,
    *,
    tol: float = 1e-3,
    gap: float = 0.0,
    max_iter: int = 1000,
    start: Array | None = None,
    planes: Array | None = None,
    dual: Mapping[str, Array] | None = None,
    callbacks: Iterable[Callable[[Step], Any]] = (),
    verbose: int = 0,
    checkpoint: Checkpoint | None = None,
    rng: np.random.Generator | None = None,
    raise_interrupt: bool = False,
) -> Solution:
    """Minimise a task to a relative gap of ``tol``.

    The gap is compared with the objective and with the distance from the trivial objective F(0), whichever is smaller.
    At small C the optimum is close to F(0), and a gap that is small relative to the objective proves nothing. The
    returned objective is computed in double precision. If that opens the gap again, or rounding of the scores could,
    the status is not CONVERGED. Ctrl-C ends the loop with the best point so far.

    Parameters
    ----------
    task, solver : what to minimise, and how
    tol : stop when objective − bound ≤ tol · min(objective, F(0) − bound)
    gap : or when objective − bound ≤ gap
    max_iter : maximum number of steps
    start, planes, dual : a point, codes of planes and dual variables from an earlier solution
    callbacks : each is called with every `Step`; one that returns True (exactly) stops the loop
    verbose : 1 shows progress on a terminal or in a notebook once a run takes longer than a second, 2 writes a line
        every few seconds, 0 nothing
    checkpoint : the file that keeps the run state
    rng : for solvers that draw samples
    raise_interrupt : at Ctrl-C raise KeyboardInterrupt, for a task that is a part of a fit

    >>> from tacit import problems, solvers, testing
    >>> task = testing.example_task(problems.Multiclass(), seed=0)
    >>> solution = minimise(task, solvers.Bundle(), tol=1e-6)
    >>> solution.status.name, bool(solution.gap <= 1e-6 * solution.objective)
    ('CONVERGED', True)
    """
    rng = np.random.default_rng(0) if rng is None else rng
    tol, gap = (number(name, value, "a number from 0", is_not_negative) for name, value in (("tol", tol), ("gap", gap)))
    max_iter = whole_number("max_iter", max_iter)
    if not isinstance(task, Task) or not isinstance(solver, Solver):
        got = f"{shorten(task)} and {shorten(solver)}"
        raise TypeError(f"minimise needs a tacit.oracle.Task and a solver such as tacit.solvers.Bundle(), got {got}")
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"checkpoint must be a tacit.runtime.Checkpoint or None, got {shorten(checkpoint)}")
    solve = Solve(task, solver, tol, gap, max_iter)
    begun = solve.begin(WarmStart(start, planes if planes is not None and len(planes) else None, dual), checkpoint, rng)
    last, status = run(solve, begun, callbacks=callbacks, verbose=verbose, checkpoint=checkpoint)
    if raise_interrupt and status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solve.certify(last, status)


class Solving(NamedTuple):
    """The state of a solver with its history, the last line of which is about this state."""

    state: Any
    history: tuple[Step, ...]


class Solve:
    """One convex solve as a `tacit.runtime.Process`."""

    def __init__(self, task: Task, solver: Solver, tol: float, gap: float, max_iter: int) -> None:
        self.task, self.solver = task, solver
        self.tol, self.gap, self.max_iter = tol, gap, max_iter
        self._began = time.perf_counter()

    def begin(self, warm: WarmStart, checkpoint: Checkpoint | None, rng: np.random.Generator) -> Solving:
        """The first state, or the one that a checkpoint holds, and the history up to it."""
        saved = checkpoint.read() if checkpoint is not None else None
        if saved is None or checkpoint is None:
            return self._with_line(self.solver.init(self.task, warm, rng), ())
        with checkpoint.restoring():
            history = tuple(Step(int(i), float(s), float(f), float(b), int(m)) for i, s, f, b, m in saved["history"])
            self._began -= history[-1].seconds if history else 0.0
            return self._with_line(self.solver.restore(self.task, saved), history)

    def step(self, now: Solving) -> Solving:
        return self._with_line(self.solver.step(self.task, now.state), now.history)

    def report(self, now: Solving) -> Step:
        return now.history[-1]

    def describe(self, now: Solving) -> tuple[int, str]:
        line = now.history[-1]
        return line.iteration, f"objective {line.objective:.5g}, gap {line.gap:.2g}"

    def verdict(self, now: Solving) -> Status | None:
        line = now.history[-1]
        objective = now.state.best[1] + now.state.excess
        if self._is_small(objective, line.bound, now.state.excess):
            return Status.CONVERGED
        above = line.bound - objective
        if self.solver.is_done(now.state) or above > max(self.tol, 1e-12) * abs(objective):
            return Status.STALLED
        return Status.MAX_ITER if line.iteration >= self.max_iter else None

    def snapshot(self, now: Solving) -> dict[str, Any]:
        earlier = now.history[:-1]
        lines = np.array(earlier, dtype=np.float64).reshape(len(earlier), len(Step._fields))
        return {**now.state.snapshot(), "history": lines}

    def certify(self, last: Solving, status: Status) -> Solution:
        """The solution, its objective in double precision, and a status that this objective confirms."""
        task, state = self.task, self.solver.finish(self.task, last.state)
        w, excess = state.best[0], state.excess
        objective = state.best[1] + excess
        history = [*last.history[:-1], last.history[-1]._replace(objective=objective, bound=state.bound)]
        is_single = task.oracle.exact() is not task.oracle
        if is_single or task.is_bounded:
            objective, excess = task.certify(w)
        if status in (Status.CONVERGED, Status.STALLED, Status.MAX_ITER):
            room = 2 if status is Status.CONVERGED else 1  # the exact objective may open a gap that was closed
            is_small = self._is_small(objective, state.bound, excess, room)
            is_proven = is_small and task.rounding(w) <= max(self.tol * abs(objective), self.gap)
            status = Status.CONVERGED if is_proven else Status.STALLED if status is Status.CONVERGED else status
        bound = min(state.bound, objective) if status is Status.CONVERGED else state.bound
        ends = state.planes(), history, state.dual(), state.variables()
        if state.proven[1] < objective and state.proven[0] is not w:  # inference leaves less open there
            w, least = state.proven[0], objective - excess
            objective, excess = task.certify(w)
            excess = max(excess, objective - least)
            history[-1] = history[-1]._replace(objective=objective)
        part = min(excess, max(objective - bound, 0.0))
        return Solution(w, status, objective, bound, *ends, in_single_precision=is_single, inference_gap=part)

    def _with_line(self, state: State, history: tuple[Step, ...]) -> Solving:
        iteration = history[-1].iteration + 1 if history else 0
        objective = min(state.best[1] + state.excess, state.proven[1])
        line = Step(iteration, time.perf_counter() - self._began, objective, state.bound, state.n_planes)
        _check_finite(line)
        return Solving(state, (*history, line))

    def _is_small(self, objective: float, bound: float, excess: float, room: float = 1.0) -> bool:
        """Whether a gap proves the optimum: relative to the objective and the distance from F(0), or by itself.

        A bound that is clearly above the objective proves only that rounding is larger than the gap. What inference
        leaves open (``excess``) does not count: it stays in the certificate, but a solver cannot close it.
        """
        gap, tol = objective - bound, room * self.tol
        gap = max(gap - excess, 0.0) if excess > 0 else gap
        if abs(gap) <= room * self.gap:
            return True
        trivial = self.task.trivial
        return abs(gap) <= max(tol, 1e-12) * abs(objective) and gap <= max(
            tol * (trivial - bound), ROUNDING * abs(trivial)
        )


def _check_finite(line: Step) -> None:
    if not (math.isfinite(line.objective) and math.isfinite(line.bound)):
        raise FloatingPointError(
            f"the objective became {line.objective} (bound {line.bound}) at step {line.iteration}: "
            "numbers overflow; scale the features (StandardScaler) or lower C"
        )


def fingerprint_task(task: Task) -> dict[str, Any]:
    """What distinguishes this task from others, by name."""
    return {
        "samples": task.oracle.n_samples,
        "weights in w": task.oracle.n_params,
        "rescaling": task.rescaling,
        "labels": checksum(task.target),
        "sample weights and C": checksum(task.weights),
        "penalty": fingerprint_penalty(task.penalty, task.oracle.n_params),
        "features, labels and losses": task.oracle.digest(),
    }


def fingerprint_penalty(penalty: Penalty, n_params: int) -> str:
    """What distinguishes this penalty from others: its class, and its value and minimiser at a test point."""
    probe = np.linspace(0.5, 1.5, n_params)
    if not penalty.is_quadratic:
        penalty = penalty.near(np.zeros(n_params), 1.0)
        probe = 10 * probe
    return f"{type(penalty).__name__} {checksum(penalty.primal(probe), np.array(penalty.value(probe)))}"

"""Block-coordinate Frank–Wolfe: the dual raised sample by sample, with exact line search."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.data.specs import check_parameters, estimator, optional, parameter, switch, whole
from tacit.oracle import TARGET, Oracle, Plane, Task
from tacit.oracle.capabilities import KeepsDual
from tacit.oracle.contracts import capability
from tacit.oracle.task import Dual
from tacit.runtime.archive import StorageError, storable
from tacit.runtime.checkpoint import stored, stored_codes, stored_number
from tacit.solvers.block_planes import BlockPlanes
from tacit.solvers.bundle import Bundle, overflow_error
from tacit.solvers.loop import StallCounter, WarmStart

MAX_GAP_SHARE = 0.5
"""The sweeps between two certificates end when the gap has shrunk to this share of what the first of them saw."""

UNIFORM_SHARE = 0.1
"""With gap sampling, this share of the visits goes to blocks chosen uniformly, since the known gaps are old."""

MAX_CODES = 5
"""How many codes of certificates are kept, for warm starts."""


@storable
@estimator
class FrankWolfe(BaseEstimator):  # type: ignore[misc]
    """Block-coordinate Frank–Wolfe with exact line search and duality gap (Lacoste-Julien et al. 2013).

    A visit to a sample finds its most violated output and moves the sample's dual weights towards it. w changes with
    every visit, so the first passes already learn much: this solver wins at small C and loose tolerances. A step is one
    or more sweeps of visits, in random order, to the samples that can still gain. One oracle pass then certifies the
    gap, at the point itself and at a weighted average of the points so far (early on the average is often better).

    Where the oracle offers `dual` (class blocks, everything that can be listed, chains), compiled visits keep dual
    weights on the outputs, and a learner shows them as ``dual_``. Otherwise, or with a ``block_size``, it keeps a few
    planes per block of samples: that works with any oracle, penalty and rescaling, and takes O(blocks · d) memory.

    Parameters
    ----------
    block_size : samples per block; None keeps dual weights if the oracle can, else takes one sample per block if memory
        allows
    gap_sampling : visit blocks in proportion to their last known gaps (Osokin et al. 2016)
    cache : planes kept per block and tried before the oracle is asked (Shah et al. 2015; 0 is the textbook algorithm);
        None for ten if memory allows. A number asks for planes even where dual weights could be kept
    sweeps : sweeps between two certificates, at the most

    >>> from tacit import problems, testing
    >>> from tacit.solvers import minimise
    >>> task = testing.example_task(problems.Candidates(), seed=1)
    >>> solution = minimise(task, FrankWolfe(), tol=1e-6)
    >>> solution.status.name, sorted(solution.variables)
    ('CONVERGED', ['alpha'])
    """

    needs = (Oracle.augmented, Oracle.features, Oracle.loss, Oracle.accepts, Oracle.exact)

    block_size: int | None = parameter(optional(whole()), default=None)
    gap_sampling: bool = parameter(switch, default=False)
    cache: int | None = parameter(optional(whole(0)), default=None)
    sweeps: int = parameter(whole(), default=10)

    def init(self, task: Task, warm: WarmStart, rng: np.random.Generator) -> FrankWolfeState:
        self.check()
        state = FrankWolfeState(self._first_dual(task, warm), int(rng.integers(2**31)))
        state.bound = task.floor
        state.certify(task)  # first, so that of equal points the one with dual variables is kept
        state.record_point(task, np.zeros(task.oracle.n_params), *task.origin)
        if warm.w is not None:
            state.evaluate(task, warm.w)
        return state

    def check(self) -> None:
        """Refuse invalid parameters."""
        check_parameters(self)

    def step(self, task: Task, state: FrankWolfeState) -> FrankWolfeState:
        state = copy.copy(state)
        state.dual_point, state.gaps = state.dual_point.copy(), state.gaps.copy()
        rng = np.random.default_rng((state.seed, state.n_sweeps))
        first = np.inf
        state.n_steps += 1
        for sweep in range(min(int(self.sweeps), state.n_steps)):  # few at first: a loose tolerance may be met at once
            total = state.dual_point.sweep(self._blocks_to_visit(state, rng), state.gaps)
            if not math.isfinite(total):
                raise overflow_error()
            state.n_sweeps += 1
            state.take_average()
            if sweep == 0:
                first = total
            elif total <= MAX_GAP_SHARE * first:
                break
        state.dual_point.refresh()
        state.certify(task)
        state.note_progress()
        return state

    def done(self, state: FrankWolfeState) -> bool:
        return state.is_stuck

    def finish(self, task: Task, state: FrankWolfeState) -> FrankWolfeState:
        return state

    def restore(self, task: Task, snapshot: Mapping[str, Any]) -> FrankWolfeState:
        parts: dict[str, dict[str, Array]] = {"dual": {}, "average": {}, "best": {}}
        for name, values in snapshot.items():
            key, _, rest = name.partition(".")
            if rest:
                parts[key][rest] = values
        dual = _load_dual(self._fresh_dual(task), parts["dual"])
        state = FrankWolfeState(dual, int(stored_number(snapshot, "seed", 0)))
        state.average = _load_dual(state.average, parts["average"])
        if parts["best"]:
            state.best_dual = _load_dual(self._fresh_dual(task), parts["best"])
        state.best = stored(snapshot, "w", (task.oracle.n_params,)), stored_number(snapshot, "objective")
        state.bound = stored_number(snapshot, "bound")
        state.n_steps, state.n_sweeps = (int(stored_number(snapshot, name, 0)) for name in ("n_steps", "n_sweeps"))
        state.is_active = stored(snapshot, "is_active", (dual.n_blocks,), "b")
        state.gaps = np.array(snapshot["gaps"], dtype=np.float64)  # infinite where no sweep has come yet
        if state.gaps.shape != (dual.n_blocks,) or np.isnan(state.gaps).any():
            raise StorageError(f"gaps of shape {state.gaps.shape} for {dual.n_blocks} blocks, or NaN among them")
        state.codes = stored_codes(snapshot, "codes", task.oracle.accepts)
        state.gap_then, state.idle = stored_number(snapshot, "gap_then", 0), int(stored_number(snapshot, "idle", 0))
        return state

    def _first_dual(self, task: Task, warm: WarmStart) -> Any:
        """The first dual point: the old one, the best mixture of the old planes, or all weight on the targets."""
        dual = self._fresh_dual(task, warm.dual)
        if warm.planes is not None and not (warm.dual is not None and dual.fits(warm.dual)):
            model = Bundle().init(task, WarmStart(planes=warm.planes), np.random.default_rng(0))
            codes = [np.where(code == TARGET, task.target, code) for code in model.codes]
            dual.start(codes, list(model.solve_model_dual(task.penalty)))
        return dual

    def _fresh_dual(self, task: Task, start: Mapping[str, Array] | None = None) -> Any:
        is_plain = task.rescaling == "margin" and task.penalty.is_plain and task.baseline is None
        keeper = capability(task.oracle, KeepsDual)
        if keeper is not None and is_plain and self.block_size is None and self.cache is None:
            return keeper.dual(task.weights, task.target, start)
        return BlockPlanes(task, self.block_size, self.cache)

    def _blocks_to_visit(self, state: FrankWolfeState, rng: np.random.Generator) -> Array:
        """The blocks to visit: the active ones in random order, or drawn by their gaps."""
        active = np.flatnonzero(state.is_active)
        if not self.gap_sampling:
            return rng.permutation(active)
        gaps = state.gaps[active]
        if not 0 < gaps.sum() < np.inf:
            return rng.permutation(active)
        chances = UNIFORM_SHARE / active.size + (1 - UNIFORM_SHARE) * gaps / gaps.sum()
        return rng.choice(active, active.size, p=chances / chances.sum())


def _load_dual(dual: Any, parts: Mapping[str, Array]) -> Any:
    """Fill a dual point from its stored parts; refuse parts that do not fit, since kernels would index by them."""
    own = dual.state()
    alike = set(own) == set(parts) and all(
        np.shape(parts[name]) == np.shape(own[name]) and np.asarray(parts[name]).dtype == np.asarray(own[name]).dtype
        for name in own
    )
    fits = (
        dual.fits(parts) if dual.has_variables else alike and not any(np.isnan(part).any() for part in parts.values())
    )
    if not fits:
        raise StorageError("its dual variables are not those of these samples")
    dual.load(parts)
    return dual


class FrankWolfeState(StallCounter):
    """A dual point, the average of all of them, the best primal point and the bound."""

    def __init__(self, dual: Dual, seed: int) -> None:
        super().__init__()
        self.dual_point = dual
        self.average: Any = dual.mean()
        self.best_dual: Dual | None = None
        self.seed = seed
        self.n_steps, self.n_sweeps = 0, 0
        self.gaps = np.full(dual.n_blocks, np.inf)
        self.is_active = np.ones(dual.n_blocks, dtype=bool)
        self.best: tuple[Array, float] = (np.zeros_like(dual.w), np.inf)
        self.bound = -np.inf
        self.codes: tuple[Array, ...] = ()

    @property
    def n_planes(self) -> int:
        return len(self.codes)

    def planes(self) -> Array:
        return np.array(self.codes)

    def dual(self) -> Mapping[str, Array] | None:
        if self.best_dual is not None:
            return self.best_dual.arrays()
        return self.dual_point.arrays() if self.dual_point.has_variables else None

    def variables(self) -> Mapping[str, Array] | None:
        return None if self.best_dual is None else self.best_dual.arrays()

    def snapshot(self) -> Mapping[str, Any]:
        w, objective = self.best
        points = {"dual": self.dual_point, "average": self.average, "best": self.best_dual}
        kept = {key: dual.state() for key, dual in points.items() if dual is not None}
        return {
            **{f"{key}.{name}": values for key, state in kept.items() for name, values in state.items()},
            "seed": self.seed,
            "n_steps": self.n_steps,
            "n_sweeps": self.n_sweeps,
            "gaps": self.gaps,
            "is_active": self.is_active,
            "codes": self.planes(),
            "w": w,
            "objective": objective,
            "bound": self.bound,
            "gap_then": self.gap_then,
            "idle": self.idle,
        }

    def take_average(self) -> None:
        """Move the average towards the present point, by 2 / (sweeps + 1): the later points count more."""
        share = 2 / (self.n_sweeps + 1)
        if share >= 1:
            self.average = self.dual_point.mean()
            return
        self.average = self.average.copy()
        self.average.mix(self.dual_point, share)

    def certify(self, task: Task) -> None:
        """Evaluate the present point and the average; find out which blocks can still gain."""
        self.bound = max(self.bound, self.dual_point.bound())
        code = self.evaluate(task, self.dual_point.w, self.dual_point)
        self.is_active = ~self.dual_point.settled(code)
        if self.n_sweeps > 1:
            self.average.refresh()
            self.bound = max(self.bound, self.average.bound())
            self.evaluate(task, self.average.w, self.average)

    def evaluate(self, task: Task, w: Array, dual: Any = None) -> Array:
        """Ask the oracle at ``w`` for the objective; returns the code of the plane there."""
        code = task.augmented(w).code
        self.record_point(task, w, code, task.plane(code), dual)
        return code

    def record_point(self, task: Task, w: Array, code: Array, plane: Plane, dual: Any = None) -> None:
        """Keep the code, and ``w`` with its dual variables if its objective is the best so far."""
        objective = task.penalty.value(w) + plane.value(w)
        self.codes = (*self.codes, code)[-MAX_CODES:]
        if not objective >= self.best[1]:
            self.best = w.copy(), objective
            self.best_dual = dual.copy() if dual is not None and dual.has_variables else None

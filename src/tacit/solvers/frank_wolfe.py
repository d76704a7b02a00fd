"""Block-coordinate Frank–Wolfe: the dual raised sample by sample, with exact line search."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.specs import estimator, optional, parameter, switch, whole
from tacit.oracle import TARGET, Plane, Task, take_code
from tacit.oracle.capabilities import KeepsDual
from tacit.oracle.contracts import capability
from tacit.oracle.task import Dual
from tacit.runtime.archive import StorageError, storable
from tacit.solvers.bundle import Bundle, overflow_error
from tacit.solvers.loop import Solver, State, WarmStart

MAX_GAP_SHARE = 0.5
"""The sweeps between two certificates end when the gap has shrunk to this share of that of the first sweep."""

UNIFORM_SHARE = 0.1
"""With gap sampling, this share of the visits goes to blocks chosen uniformly, since the known gaps are old."""

MAX_NUMBERS = 1 << 24
"""Numbers in the planes of all blocks together (128 MB) above which blocks become larger than one sample."""

MAX_NUMBERS_GIVEN = 1 << 29
"""The same limit if `cache` is given (4 GB)."""

DEFAULT_CACHE = 10
"""Planes kept per block. Without any, the gap shrinks like 1/passes; with some, by a constant factor per pass."""

MIN_GAP_SHARE = 0.5
"""The oracle is not called if a cached plane offers at least this share of the block's last known gap."""


@storable
@estimator
class FrankWolfe(Solver):
    """Block-coordinate Frank–Wolfe with exact line search and duality gap (Lacoste-Julien et al. 2013).

    A visit to a sample finds its most violated output (loss-augmented inference) and moves the sample's dual variables
    towards it. w changes with every visit, so the first passes already learn much: this solver is fastest at small C
    and loose tolerances. A step is one or more sweeps of visits, in random order, to the samples that can still gain.
    One oracle pass then certifies the gap, at the point itself and at a weighted average of the points so far.

    Where the oracle offers `dual` (class blocks, outputs that can be listed, chains), compiled visits keep dual
    variables of the outputs, and a learner has them in ``dual_``. Otherwise, or with a ``block_size``, it keeps a few
    planes per block of samples: that works with any oracle, penalty and rescaling, and takes O(blocks · d) memory.

    Parameters
    ----------
    block_size : samples per block; None keeps dual variables if the oracle can, else takes one sample per block if
        memory allows
    gap_sampling : visit blocks in proportion to their last known gaps (Osokin et al. 2016)
    cache : planes kept per block and tried before the oracle is called (Shah et al. 2015; 0 is the textbook algorithm);
        None for ten if memory allows. With a number, planes are kept even where dual variables could be
    sweeps : maximum number of sweeps between two certificates

    >>> from tacit import problems, testing
    >>> from tacit.solvers import minimise
    >>> task = testing.example_task(problems.Candidates(), seed=1)
    >>> solution = minimise(task, FrankWolfe(), tol=1e-6)
    >>> solution.status.name, sorted(solution.variables)
    ('CONVERGED', ['alpha'])
    """

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

    def restore(self, task: Task, snapshot: Mapping[str, Any]) -> FrankWolfeState:
        parts: dict[str, dict[str, Array]] = {"dual_point": {}, "average": {}, "best_dual": {}}
        for name, values in snapshot.items():
            key, _, rest = name.partition(".")
            if key in parts:
                parts[key][rest] = values
        state = FrankWolfeState(_load_dual(self._fresh_dual(task), parts["dual_point"]), 0)
        state.restore_fields(task, snapshot)
        state.average = _load_dual(state.average, parts["average"])
        if parts["best_dual"]:
            state.best_dual = _load_dual(self._fresh_dual(task), parts["best_dual"])
        state.gaps = np.array(snapshot["gaps"], dtype=np.float64)  # infinite where no sweep has come yet
        if state.gaps.shape != state.is_active.shape or np.isnan(state.gaps).any():
            raise StorageError(f"gaps must hold one number for each of {state.is_active.size} blocks, without NaN")
        return state

    def _first_dual(self, task: Task, warm: WarmStart) -> Any:
        """The first dual point: the old one, the best mixture of the old planes, or the targets alone."""
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
    has_nan = any(np.isnan(part).any() for part in parts.values())
    if not (dual.fits(parts) if dual.has_variables else alike and not has_nan):
        raise StorageError("its dual variables do not fit these samples")
    dual.load(parts)
    return dual


class FrankWolfeState(State):
    """A dual point, the average of all of them, the best primal point and the bound."""

    unsaved = ("dual_point", "average", "best_dual", "gaps")

    def __init__(self, dual: Dual, seed: int) -> None:
        super().__init__(np.zeros_like(dual.w))
        self.dual_point = dual
        self.average: Any = dual.mean()
        self.best_dual: Dual | None = None
        self.seed = seed
        self.n_steps, self.n_sweeps = 0, 0
        self.gaps = np.full(dual.n_blocks, np.inf)
        self.is_active = np.ones(dual.n_blocks, dtype=bool)

    def dual(self) -> Mapping[str, Array] | None:
        if self.best_dual is not None:
            return self.best_dual.arrays()
        return self.dual_point.arrays() if self.dual_point.has_variables else None

    def variables(self) -> Mapping[str, Array] | None:
        return None if self.best_dual is None else self.best_dual.arrays()

    def snapshot(self) -> Mapping[str, Any]:
        points = {name: getattr(self, name) for name in ("dual_point", "average", "best_dual")}
        kept = {key: dual.state() for key, dual in points.items() if dual is not None}
        parts = {f"{key}.{name}": values for key, state in kept.items() for name, values in state.items()}
        return {**super().snapshot(), **parts, "gaps": self.gaps}

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
        self.is_active = ~self.dual_point.cannot_gain(code)
        if self.n_sweeps > 1:
            self.average.refresh()
            self.bound = max(self.bound, self.average.bound())
            self.evaluate(task, self.average.w, self.average)

    def evaluate(self, task: Task, w: Array, dual: Any = None) -> Array:
        """Compute the objective at ``w``; returns the code of the plane there."""
        code, plane = task.plane_at(w)
        self.record_point(task, w, code, plane, dual)
        return code

    def record_point(self, task: Task, w: Array, code: Array, plane: Plane, dual: Any = None) -> bool:
        """Keep the dual variables with the point."""
        is_best = super().record_point(task, w.copy(), code, plane)
        if is_best:
            self.best_dual = dual.copy() if dual is not None and dual.has_variables else None
        return is_best


class BlockPlanes(Dual):
    """Mixtures of planes: ``Σ_m shares[b, m] (slopes[b, m]·w + levels[b, m])`` lies below the risk of block b.

    Without a cache there is one plane per block. An update moves it towards the oracle's plane at w, by exact line
    search (Lacoste-Julien et al. 2013). With a cache a block keeps several planes. An update then moves a share from
    the lowest plane that has some to the highest one, and calls the oracle only if no cached plane promises enough
    (Shah et al. 2015; Osokin et al. 2016). When the cache is full, the plane that is replaced is averaged into the
    first one.

    Parameters
    ----------
    task : what is minimised
    block_size : samples per block; None for one, or as many as `MAX_NUMBERS` asks for
    cache : planes kept per block; None for `DEFAULT_CACHE`, or as many as `MAX_NUMBERS` allows
    """

    has_variables = False

    def __init__(self, task: Task, block_size: int | None = None, cache: int | None = None) -> None:
        super().__init__(task.weights)
        self.task = task
        n, d = task.oracle.n_samples, task.oracle.n_params
        block_size, cache = (None if size is None else int(size) for size in (block_size, cache))
        if block_size is None:
            block_size = max(1, -(-n * d * (1 + (cache or 0)) // MAX_NUMBERS))
        self.size = min(block_size, n)
        self.n_blocks = -(-n // self.size)
        if cache is None:
            cache = max(0, min(DEFAULT_CACHE, MAX_NUMBERS // (self.n_blocks * d) - 1))
        if self.n_blocks * (1 + cache) * d > MAX_NUMBERS_GIVEN:
            raise ValueError(
                f"cache={shorten(cache)} needs {shorten(1 + cache)} planes of {d} numbers in each of {self.n_blocks} "
                f"blocks, more than {MAX_NUMBERS_GIVEN:.2g} numbers in all; lower cache, or raise block_size"
            )
        self.slopes = np.zeros((self.n_blocks, 1 + cache, d))
        self.levels = np.zeros((self.n_blocks, 1 + cache))
        self.shares = np.zeros((self.n_blocks, 1 + cache))
        self.ages = np.zeros((self.n_blocks, 1 + cache))
        self.calls = 0
        self.shares[:, 0] = 1  # the first plane is that of the targets: it is flat
        level = task.oracle.loss(task.target) - (0.0 if task.baseline is None else task.baseline)
        self.levels[:, 0] = np.add.reduceat(task.weights * level, np.arange(0, n, self.size))
        self.ages[:, 1:] = np.inf  # unused
        self.refresh()

    def arrays(self) -> dict[str, Array]:
        return {"slopes": self.slopes, "levels": self.levels, "shares": self.shares, "ages": self.ages}

    def fits(self, start: Mapping[str, Any]) -> bool:
        """Planes are sums of features with the weights of their own task, so they never fit another."""
        return False

    def start(self, codes: Sequence[Array], shares: Sequence[float]) -> None:
        self.levels[:, 0] = 0.0
        for code, share in zip(codes, shares, strict=True):
            if share > 0:
                self.add(code, float(share))
        self.refresh()

    def add(self, code: Array, share: float) -> None:
        for b in range(self.n_blocks):
            rows = self._rows(b)
            plane = self.task.plane(take_code(self.task.oracle, code, rows), rows)
            self.slopes[b, 0] += share * plane.gradient
            self.levels[b, 0] += share * plane.offset

    def mean(self) -> PlaneSum:
        return PlaneSum(self.task, self.slope.copy(), np.array([self.offset]))

    def refresh(self) -> None:
        self.slope = np.einsum("bm,bmd->d", self.shares, self.slopes)
        self.offset = float((self.shares * self.levels).sum())
        self.w = self.task.penalty.primal(self.slope)

    def bound(self) -> float:
        return self.offset + float(self.slope @ self.w) + self.task.penalty.value(self.w)

    def cannot_gain(self, code: Array) -> Array:
        used = np.add.reduceat(self.weights, np.arange(0, self.weights.size, self.size))
        return np.asarray(used == 0)

    def sweep(self, order: Array, gaps: Array) -> float:
        self.slope = self.slope.copy()
        total = sum(self._update_block(int(b), gaps) for b in order)
        self.offset = float((self.shares * self.levels).sum())
        return total

    def _update_block(self, b: int, gaps: Array) -> float:
        """One step of block b; returns the gap that it saw."""
        shares = self.shares[b]
        values = self.slopes[b] @ self.w + self.levels[b]
        held = float(shares @ values)
        self.ages[b] += 1
        best = int(np.argmax(np.where(np.isfinite(self.ages[b]), values, -np.inf)))
        if best == 0 or not values[best] - held >= MIN_GAP_SHARE * gaps[b] > 0:
            plane = self._call_oracle(b)
            gap = plane.value(self.w) - held
            gaps[b] = max(gap, 0.0)
            if not gap > 0:
                return 0.0
            if len(shares) == 1:
                return self._move_single_plane(b, plane, gap)
            best = self._store_plane(b, plane)
            values = self.slopes[b] @ self.w + self.levels[b]  # the first plane may be another now
        self.ages[b, best] = 0
        lowest = int(np.argmin(np.where(shares > 0, values, np.inf)))
        gain = float(values[best] - values[lowest])
        if not gain > 0:
            return 0.0
        change = self.slopes[b, best] - self.slopes[b, lowest]
        step = min(float(shares[lowest]), _line_search(self.task, change, gain))
        shares[best] += step
        shares[lowest] = 0.0 if step == shares[lowest] else shares[lowest] - step
        self._move_slope(step * change)
        return float(values[best] - held)

    def _call_oracle(self, b: int) -> Plane:
        rows = self._rows(b)
        self.calls += 1
        return self.task.plane(self.task.predict_augmented(self.w, rows).code, rows)

    def _move_single_plane(self, b: int, plane: Plane, gap: float) -> float:
        change = plane.gradient - self.slopes[b, 0]
        step = min(1.0, _line_search(self.task, change, gap))
        self.slopes[b, 0] += step * change
        self.levels[b, 0] += step * (plane.offset - self.levels[b, 0])
        self._move_slope(step * change)
        return gap

    def _store_plane(self, b: int, plane: Plane) -> int:
        """Put a plane into the cache of block b, and return its slot.

        It takes a free slot, else that of the plane with share 0 that was unused the longest, else that of the plane
        with the smallest share, which is then averaged into the first plane.
        """
        shares = self.shares[b]
        idle = np.where(shares[1:] > 0, -1.0, self.ages[b, 1:])
        slot = 1 + int(np.argmax(idle) if idle.max() >= 0 else np.argmin(shares[1:]))
        if shares[slot] > 0:
            total = shares[0] + shares[slot]
            part = shares[slot] / total
            self.slopes[b, 0] += part * (self.slopes[b, slot] - self.slopes[b, 0])
            self.levels[b, 0] += part * (self.levels[b, slot] - self.levels[b, 0])
            shares[0], shares[slot] = total, 0.0
        self.slopes[b, slot], self.levels[b, slot] = plane.gradient, plane.offset
        return slot

    def _move_slope(self, change: Array) -> None:
        self.slope += change
        self.w = self.task.penalty.primal(self.slope)

    def _rows(self, b: int) -> slice:
        return slice(b * self.size, min((b + 1) * self.size, self.weights.size))


def _line_search(task: Task, change: Array, gain: float) -> float:
    """The step along ``change`` at which the dual is highest, given its slope at the start."""
    curve = float(task.penalty.products(change, change)) / task.penalty.stiffness
    if not np.isfinite(curve):
        raise overflow_error()
    return gain / curve if curve > 0 else np.inf


class PlaneSum:
    """The sum of the planes of all blocks: all that the average of many dual points needs."""

    has_variables = False

    def __init__(self, task: Task, slope: Array, offsets: Array) -> None:
        self.task, self.slope, self.offsets = task, slope, offsets
        self.refresh()

    def state(self) -> dict[str, Array]:
        return {"slope": self.slope, "offsets": self.offsets}

    def load(self, state: Mapping[str, Any]) -> None:
        self.slope, self.offsets = state["slope"], state["offsets"]
        self.refresh()

    def copy(self) -> PlaneSum:
        return PlaneSum(self.task, self.slope.copy(), self.offsets.copy())

    def mix(self, other: BlockPlanes, share: float) -> None:
        self.slope += share * (other.slope - self.slope)
        self.offsets += share * (other.offset - self.offsets)

    def refresh(self) -> None:
        self.w = self.task.penalty.primal(self.slope)

    def bound(self) -> float:
        return float(self.offsets[0]) + float(self.slope @ self.w) + self.task.penalty.value(self.w)

"""A dual point kept as a few planes per block of samples. It works with any oracle, penalty and rescaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.oracle import Plane, Task, take_code
from tacit.oracle.task import Dual
from tacit.solvers.bundle import overflow_error

MAX_NUMBERS = 1 << 24
"""Numbers that the planes of all blocks may take together (128 MB) before blocks become larger than one sample."""

MAX_ASKED = 1 << 29
"""Numbers that they may take if `cache` is given (4 GB)."""

DEFAULT_CACHE = 10
"""Planes kept per block. Without any, the gap shrinks like 1/passes; with some, by a constant factor per pass."""

MIN_GAP_SHARE = 0.5
"""The oracle is not called if a cached plane promises at least this share of the block's last known gap."""


class BlockPlanes(Dual):
    """Mixtures of planes: ``Σ_m shares[b, m] (slopes[b, m]·w + levels[b, m])`` lies below the risk of block b.

    Without a cache there is one plane per block. An update moves it towards the oracle's plane at w, by exact line
    search (Lacoste-Julien et al. 2013). With a cache a block keeps several planes. An update then moves weight from the
    lowest plane that has some to the highest one, and calls the oracle only if no cached plane promises enough (Shah et
    al. 2015; Osokin et al. 2016). When the cache is full, the plane that is replaced is averaged into the first one.

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
        if self.n_blocks * (1 + cache) * d > MAX_ASKED:
            raise ValueError(
                f"cache={shorten(cache)} asks for {shorten(1 + cache)} planes of {d} numbers in each of "
                f"{self.n_blocks} blocks, and at most {MAX_ASKED:.2g} are kept; lower cache, or raise block_size"
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

    def settled(self, code: Array) -> Array:
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
        return self.task.plane(self.task.augmented(self.w, rows).code, rows)

    def _move_single_plane(self, b: int, plane: Plane, gap: float) -> float:
        change = plane.gradient - self.slopes[b, 0]
        step = min(1.0, _line_search(self.task, change, gap))
        self.slopes[b, 0] += step * change
        self.levels[b, 0] += step * (plane.offset - self.levels[b, 0])
        self._move_slope(step * change)
        return gap

    def _store_plane(self, b: int, plane: Plane) -> int:
        """Put a plane into the cache of block b, and return its slot.

        It takes a free slot, else that of the plane without weight that was unused the longest, else that of the plane
        with the least weight, which is then averaged into the first plane.
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
        self.slopes[b, slot], self.levels[b, slot] = plane
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

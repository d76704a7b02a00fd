"""A dual point as one plane for each block of samples: for any oracle, penalty and rescaling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.oracle import Task, take_code
from tacit.oracle.dual import Dual

ROOM = 1 << 24
"""Numbers that the planes of all blocks may take together (128 MB) before blocks become larger than one sample."""

WORTH = 0.5
"""A cached plane spares the oracle call if it promises this share of the block's last known gap."""


class BlockPlanes(Dual):
    """Mixtures of planes: ``slopes[b]·w + offsets[b]`` lies below the share of the risk of the samples of block b.

    A visit asks the oracle for the block's plane at w and moves towards it by exact line search.

    Parameters
    ----------
    task : what is minimised
    block_size : samples a block; None for one, or as many as `ROOM` asks for
    cache : planes kept a block; one that still promises enough is used in place of the oracle's
    """

    has_variables = False

    def __init__(self, task: Task, block_size: int | None = None, cache: int = 0) -> None:
        super().__init__(task.weights)
        self.task = task
        n, d = task.oracle.n_samples, task.oracle.n_params
        if block_size is None:
            block_size = max(1, -(-n * d * (1 + cache) // ROOM))
        self.size = min(block_size, n)
        self.n_blocks = -(-n // self.size)
        self.slopes, self.offsets = np.zeros((self.n_blocks, d)), np.zeros(self.n_blocks)
        self.cached_slopes = np.zeros((self.n_blocks, cache, d))
        self.cached_offsets = np.full((self.n_blocks, cache), -np.inf)
        self.cached_ages = np.zeros((self.n_blocks, cache))
        self.calls = 0
        self.refresh()

    def arrays(self) -> dict[str, Array]:
        return {"slopes": self.slopes, "offsets": self.offsets}

    def state(self) -> dict[str, Array]:
        names = ("cached_slopes", "cached_offsets", "cached_ages")
        return {**self.arrays(), **{name: getattr(self, name) for name in names}}

    def fits(self, start: Mapping[str, Any]) -> bool:
        """Planes are sums of features with the weights of their own task, so they never fit another."""
        return False

    def mean(self) -> PlaneSum:
        return PlaneSum(self.task, self.slope.copy(), np.array([self.offset]))

    def add(self, code: Array, share: float) -> None:
        for b in range(self.n_blocks):
            rows = self._rows(b)
            plane = self.task.plane(take_code(self.task.oracle, code, rows), rows)
            self.slopes[b] += share * plane.gradient
            self.offsets[b] += share * plane.offset

    def refresh(self) -> None:
        self.slope = self.slopes.sum(axis=0)
        self.offset = float(self.offsets.sum())
        self.w = self.task.penalty.primal(self.slope)

    def bound(self) -> float:
        return self.offset + float(self.slope @ self.w) + self.task.penalty.value(self.w)

    def settled(self, code: Array) -> Array:
        used = np.add.reduceat(self.weights, np.arange(0, self.weights.size, self.size))
        return np.asarray(used == 0)

    def sweep(self, order: Array, gaps: Array) -> float:
        total = 0.0
        self.slope = self.slope.copy()
        for b in order:
            slope, offset = self._plane(int(b), gaps)
            change = slope - self.slopes[b]
            gain = offset - self.offsets[b] + float(change @ self.w)
            gaps[b] = max(gain, 0.0)
            if not gain > 0:
                continue
            total += gain
            curve = float(self.task.penalty.products(change, change)) / (1 + self.task.penalty.pull)
            share = 1.0 if gain >= curve else gain / curve
            self.slopes[b] += share * change
            self.offsets[b] += share * (offset - self.offsets[b])
            self.slope += share * change
            self.w = self.task.penalty.primal(self.slope)
        return total

    def _plane(self, b: int, gaps: Array) -> tuple[Array, float]:
        """The plane to move to: a cached one that promises enough, else the oracle's, which is then cached."""
        if self.cached_offsets.shape[1]:
            values = self.cached_slopes[b] @ self.w + self.cached_offsets[b]
            best = int(np.argmax(values))
            gain = values[best] - float(self.slopes[b] @ self.w) - self.offsets[b]
            self.cached_ages[b] += 1
            if np.isfinite(gaps[b]) and gain > 0 and gain >= WORTH * gaps[b]:
                self.cached_ages[b, best] = 0
                return self.cached_slopes[b, best], float(self.cached_offsets[b, best])
        rows = self._rows(b)
        plane = self.task.plane(self.task.augmented(self.w, rows).code, rows)
        self.calls += 1
        if self.cached_offsets.shape[1]:
            oldest = int(np.argmax(np.where(np.isfinite(self.cached_offsets[b]), self.cached_ages[b], np.inf)))
            self.cached_slopes[b, oldest], self.cached_offsets[b, oldest] = plane
            self.cached_ages[b, oldest] = 0
        return plane.gradient, plane.offset

    def _rows(self, b: int) -> slice:
        return slice(b * self.size, min((b + 1) * self.size, self.weights.size))


class PlaneSum:
    """The sum of the planes of all blocks: all that an average needs."""

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

"""Dual points of a task, kept as weights on outputs: what block-coordinate Frank–Wolfe moves, sample by sample.

The dual of ``min ½‖w‖² + Σ c_i ξ_i`` (margin rescaling) is::

    max  Σ_i Σ_a α_i(a) ℓ_i(a) − ½ ‖Σ_i Σ_a α_i(a) (Ψ(x_i, t_i) − Ψ(x_i, a))‖²,    α ≥ 0,  Σ_a α_i(a) = c_i

and the vector inside the norm is w. A `Dual` holds α in whatever form its oracle can sum: one number per cell where
outputs can be listed, a few tag sequences with their shares in chains. A *visit* to sample i is one block-coordinate
update: it raises the dual by changing α_i alone.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.data.arrays import Array

if TYPE_CHECKING:
    from tacit.oracle.enumerable import EnumerableOracle

VISIT_STEPS = 2
"""How many times one visit moves weight from one output to another."""


class Dual(ABC):
    """A dual point α, its w, and ``offset = Σ α ℓ``; ``offset − ½‖w‖²`` is a lower bound on the optimum."""

    w: Array
    offset: float
    has_variables = True
    """Whether `arrays` are the dual variables of the task."""

    def __init__(self, weights: Array) -> None:
        self.weights = weights
        self.n_blocks = weights.size

    @abstractmethod
    def sweep(self, order: Array, gaps: Array) -> float:
        """Visit the samples in this order; note the gap of each before its visit, and return their sum."""

    @abstractmethod
    def refresh(self) -> None:
        """Compute w and offset anew from α, without the rounding errors of many small steps."""

    @abstractmethod
    def settled(self, code: Array) -> Array:
        """Which samples have all their weight on this output."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """α in full: what a copy, a checkpoint or a warm start needs. Changing them changes the dual."""

    @abstractmethod
    def add(self, code: Array, share: float) -> None:
        """Put this share of every sample's weight on an output; w and offset are right only after `refresh`."""

    def bound(self) -> float:
        """The value of the dual, a lower bound on the optimum."""
        return self.offset - 0.5 * float(self.w @ self.w)

    def start(self, codes: Sequence[Array], shares: Sequence[float]) -> None:
        """Begin at a mixture of outputs, shares adding up to one."""
        for values in self.arrays().values():
            values[:] = 0.0
        for code, share in zip(codes, shares, strict=True):
            if share > 0:
                self.add(code, float(share))
        self.refresh()

    def state(self) -> dict[str, Array]:
        """Everything that visits change: what a checkpoint keeps."""
        return self.arrays()

    def load(self, state: Mapping[str, Any]) -> None:
        """Go back to a `state`."""
        for name, values in self.state().items():
            values[:] = state[name]
        self.refresh()

    def copy(self) -> Self:
        twin = copy.copy(self)
        for name, values in self.state().items():
            setattr(twin, name, values.copy())
        twin.w = self.w.copy()
        return twin

    def mean(self) -> Any:
        """The first value of an average of many points: it has `copy`, `mix`, `refresh`, `bound`, `state` and w."""
        return self.copy()

    def mix(self, other: Self, share: float) -> None:
        """Move α by ``share`` of the way to another; w and offset are right only after `refresh`."""
        for mine, its in zip(self.arrays().values(), other.arrays().values(), strict=True):
            mine *= 1 - share
            mine += share * its

    def fits(self, start: Mapping[str, Any]) -> bool:
        """Whether arrays from elsewhere have the shape of these, and are finite and not negative."""
        own = self.arrays()
        return set(own) == set(start) and all(
            np.shape(start[name]) == values.shape
            and bool(np.isfinite(start[name]).all())
            and bool((np.asarray(start[name]) >= 0).all())
            for name, values in own.items()
        )


class Mean:
    """An average of dual points under the plain penalty, kept only as w and offset, without the variables α."""

    has_variables = False

    def __init__(self, w: Array, offset: float) -> None:
        self.w, self.offset = w, offset

    def state(self) -> dict[str, Array]:
        return {"w": self.w, "offset": np.array(self.offset)}

    def load(self, state: Mapping[str, Any]) -> None:
        self.w, self.offset = state["w"], float(state["offset"])

    def copy(self) -> Mean:
        return Mean(self.w.copy(), self.offset)

    def mix(self, other: Dual, share: float) -> None:
        self.w += share * (other.w - self.w)
        self.offset += share * (other.offset - self.offset)

    def refresh(self) -> None:
        """Nothing to do: w and offset are all there is."""

    def bound(self) -> float:
        return self.offset - 0.5 * float(self.w @ self.w)


class CellDual(Dual):
    """α on the cells of an enumerable oracle: ``alpha[state, label]``, adding up to c_i over the cells of sample i.

    A visit moves weight from the worst cell that has some to the best cell, by exact line search, up to `VISIT_STEPS`
    times. This class works through `scores` and `adjoint`, for any oracle; subclasses have compiled visits.

    Parameters
    ----------
    oracle, weights, target : those of the task
    start : `arrays` of an earlier dual over the same cells; other weights c_i rescale it
    """

    def __init__(
        self, oracle: EnumerableOracle, weights: Array, target: Array, start: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(weights)
        self.oracle = oracle
        self.target = target
        self.offsets = oracle.offsets
        self.sizes = np.diff(oracle.offsets)
        self.loss, self.column = oracle.loss_rows()
        self.alpha = np.zeros((int(self.offsets[-1]), oracle.n_labels))
        if start is None or not self.fits(start):
            self.start([target], [1.0])
            return
        self.alpha[:] = start["alpha"]
        lost = np.flatnonzero(np.add.reduceat(self.alpha.sum(axis=1), self.offsets[:-1]) <= 0)
        label, state = oracle.split(target)
        self.alpha[self.offsets[lost] + state[lost], label[lost]] = weights[lost]
        self.refresh()

    def add(self, code: Array, share: float) -> None:
        label, state = self.oracle.split(code)
        self.alpha[self.offsets[:-1] + state, label] += share * self.weights

    def arrays(self) -> dict[str, Array]:
        return {"alpha": self.alpha}

    def normalise(self) -> None:
        """Make the weights of every sample add up to c_i again, where rounding has changed their sum."""
        sums = np.add.reduceat(self.alpha.sum(axis=1), self.offsets[:-1])
        off = np.flatnonzero(np.abs(sums - self.weights) > 1e-13 * self.weights)
        if off.size:
            factor = np.ones(sums.size)
            factor[off] = self.weights[off] / np.where(sums[off] > 0, sums[off], 1.0)
            self.alpha *= np.repeat(factor, self.sizes)[:, None]

    def refresh(self) -> None:
        self.normalise()
        slope = self.oracle.adjoint(np.ascontiguousarray(self.alpha.T)) - self.oracle.features(
            self.target, self.weights
        )
        self.w = -slope
        self.offset = float((self.alpha * self.loss[self.column]).sum())

    def settled(self, code: Array) -> Array:
        label, state = self.oracle.split(code)
        return np.asarray(self.alpha[self.offsets[:-1] + state, label] >= (1 - 1e-12) * self.weights)  # c_i = 0 too

    def sweep(self, order: Array, gaps: Array) -> float:
        total = 0.0
        for i in order:
            rows = slice(int(i), int(i) + 1)
            states = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
            alpha, losses = self.alpha[states], self.loss[self.column[states]]
            for move in range(VISIT_STEPS):
                values = self.oracle.scores(self.w, rows).T + losses
                best = np.unravel_index(np.argmax(values), values.shape)
                if move == 0:
                    held = np.where(alpha > 0, values, 0.0)
                    gaps[i] = max(self.weights[i] * values[best] - float((alpha * held).sum()), 0.0)
                    total += gaps[i]
                away = np.unravel_index(np.argmin(np.where(alpha > 0, values, np.inf)), values.shape)
                gain = values[best] - values[away]
                if not gain > 0 or self.weights[i] == 0:
                    break
                V = np.zeros((self.oracle.n_labels, alpha.shape[0]))
                V[best[1], best[0]] += 1
                V[away[1], away[0]] -= 1
                slope = self.oracle.adjoint(V, rows)
                q = float(slope @ slope)
                step = alpha[away] if gain >= q * alpha[away] else gain / q
                alpha[best] += step
                alpha[away] = 0.0 if step == alpha[away] else alpha[away] - step
                self.w -= step * slope
                self.offset += step * (losses[best] - losses[away])
        return total

"""The convex task that solvers minimise, Ω(w) + Σ c_i ξ_i(w), and points of its dual, kept as weights on outputs."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle.capabilities import BoundsMaximum, FusesPlanes, ScalesLoss, ScoresCells, SumsDifferences
from tacit.oracle.contracts import TARGET, Assignment, Oracle, capability, take_code

MAX_CODES = 20_000_000
"""Entries of codes that are sent in one question about planes: few round trips, and bounded memory."""

VISIT_STEPS = 2
"""How many times one visit moves weight from one output to another."""


class Plane(NamedTuple):
    """``gradient·w + offset``, a lower bound on Σ c_i ξ_i(w) at every w.

    ``excess`` is how far Σ c_i ξ_i may be above the plane at the point where inference found it: 0 where that is exact.
    """

    gradient: Array
    offset: float
    excess: float = 0.0

    def value(self, w: Array) -> float:
        return float(self.gradient @ w) + self.offset


@dataclass(frozen=True)
class Task:
    """The convex objective that solvers minimise; see `tacit.oracle` for the formula.

    Parameters
    ----------
    oracle : the bound data, with its loss ℓ
    weights : (n,) the c_i, not negative; zero leaves a sample out
    target : (n,) codes of the t_i
    penalty : Ω
    rescaling : "margin" or "slack"
    baseline : (n,) the b_i, which are subtracted from the ξ_i; None for zeros. A linearised objective puts its constant
        part there
    """

    oracle: Oracle
    weights: Array
    target: Array
    penalty: Penalty
    rescaling: str = "margin"
    baseline: Array | None = None

    @cached_property
    def predict_augmented(self) -> Callable[..., Assignment]:
        """Loss-augmented inference: from w (and rows) to the assignment that attains every ξ_i(w)."""
        return self.oracle.predict_augmented if self.rescaling == "margin" else self._predict_rescaled

    def _predict_rescaled(self, w: Array, rows: Rows = None) -> Assignment:
        target = take_code(self.oracle, self.target, rows)
        return self.oracle.predict_augmented(w, rows, target=target, rescaling=self.rescaling)

    def slack(self, w: Array, rows: Rows = None) -> tuple[Array, Assignment]:
        """ξ_i(w) of every row, or an upper bound where inference gives that, and the assignment that was found."""
        best = self.predict_augmented(w, rows)
        slack = best.value
        if self.rescaling == "margin":
            slack = slack - self.oracle.score(w, take_code(self.oracle, self.target, rows), rows)
        if self.baseline is not None:
            slack = slack - (self.baseline if rows is None else self.baseline[rows])
        return slack, best

    def plane(self, code: Array, rows: Rows = None) -> Plane:
        """The plane of an assignment of these rows, a lower bound on their share of the risk: two sums of features.

        Any code gives a valid plane, from this task or from an earlier one with other weights, targets or losses.
        """
        code, coef, offset = self._measure(code, rows)
        target = take_code(self.oracle, self.target, rows)
        if self._sums is not None:
            return Plane(self._sums.difference(code, target, coef, rows), offset)
        gradient = self.oracle.features(code, coef, rows)
        if coef is self.weights:
            gradient -= self._target_features
        else:
            gradient -= self.oracle.features(target, coef, rows)
        return Plane(gradient, offset)

    def planes(self, codes: Sequence[Array]) -> list[Plane]:
        """The planes of several assignments of all rows; in one question where the rows are elsewhere."""
        fused = self._fused
        if fused is None or not len(codes):
            return [self.plane(code) for code in codes]
        planes: list[Plane] = []
        at_once = max(1, MAX_CODES // max(self.target.size, 1))
        for first in range(0, len(codes), at_once):
            measured = [self._measure(code) for code in codes[first : first + at_once]]
            slopes = fused.slopes([code for code, _, _ in measured], self.weights, self.target, self.rescaling)
            planes += [Plane(slope, offset) for slope, (_, _, offset) in zip(slopes, measured, strict=True)]
        return planes

    def tangent(self, w: Array) -> tuple[Array, Plane]:
        """The assignment that attains every ξ_i(w), and its plane; in one question where the rows are elsewhere."""
        fused = self._fused
        if fused is None:
            best = self.predict_augmented(w)
            return best.code, self._with_excess(self.plane(best.code), best, w)
        best, gradient = fused.tangent(w, self.weights, self.target, self.rescaling)
        return best.code, self._with_excess(Plane(gradient, self._measure(best.code)[2]), best, w)

    def plane_at(self, w: Array) -> tuple[Array, Plane]:
        """The assignment that attains every ξ_i(w), or the best that is found, and its plane."""
        best = self.predict_augmented(w)
        return best.code, self._with_excess(self.plane(best.code), best, w)

    def _with_excess(self, plane: Plane, best: Assignment, w: Array) -> Plane:
        """The plane of an answer, with what its upper bounds leave open."""
        if not self.is_bounded:
            return plane
        most = best.value if self.baseline is None else best.value - self.baseline
        if self.rescaling == "margin":
            most = most - self.oracle.score(w, self.target)
        return plane._replace(excess=max(float((self.weights * most).sum()) - plane.value(w), 0.0))

    @cached_property
    def is_bounded(self) -> bool:
        """Whether answers are upper bounds that their assignments need not attain."""
        if self.rescaling == "slack":
            return capability(self.oracle, ScalesLoss) is not None
        bounding = capability(self.oracle, BoundsMaximum)
        return bounding is not None and bounding.gives_bounds

    def _measure(self, code: Array, rows: Rows = None) -> tuple[Array, Array, float]:
        """An assignment without `TARGET`, the coefficient of every row in its plane, and the offset of that."""
        target = take_code(self.oracle, self.target, rows)
        weights = self.weights if rows is None else self.weights[rows]
        moved = code != target
        if code.min(initial=0) < 0:
            moved &= code != TARGET
            code = np.where(moved, code, target)
        loss = self.oracle.loss(code, rows)
        coef = weights if self.rescaling == "margin" else weights * loss
        if moved.shape == coef.shape:  # one code per sample: those at their target cancel, and cost nothing
            coef = coef * moved
        offset = float((weights * loss).sum())  # not by BLAS, whose threads cost more than the sum
        if self.baseline is not None:
            offset -= float((weights * (self.baseline if rows is None else self.baseline[rows])).sum())
        return code, coef, offset

    @cached_property
    def _fused(self) -> FusesPlanes | None:
        return capability(self.oracle, FusesPlanes)

    @cached_property
    def _sums(self) -> SumsDifferences | None:
        return capability(self.oracle, SumsDifferences)

    @cached_property
    def _target_features(self) -> Array:
        """Σ c_i Ψ(x_i, t_i): the same in every plane of whole sequences."""
        return self.oracle.features(self.target, self.weights)

    @cached_property
    def origin(self) -> tuple[Array, Plane]:
        """The assignment at w = 0, where only losses count, and its plane."""
        return self.tangent(np.zeros(self.oracle.n_params))

    @cached_property
    def floor(self) -> float:
        """A simple lower bound on the objective: ξ_i is at least its value for the target, and Ω at least zero."""
        loss = self.oracle.loss(self.target)
        return float((self.weights * (loss if self.baseline is None else loss - self.baseline)).sum())

    @cached_property
    def trivial(self) -> float:
        """The objective at w = 0."""
        return self.penalty.value(np.zeros(self.oracle.n_params)) + self.origin[1].offset

    def rounding(self, w: Array) -> float:
        """About how far rounding of the scores in double precision can move Σ c_i ξ_i(w)."""
        values = self.oracle.exact().predict_augmented(w).value
        return float(np.finfo(np.float64).eps * (self.weights * np.abs(values)).sum())

    def objective(self, w: Array) -> float:
        """Ω(w) + Σ c_i ξ_i(w) in double precision, or an upper bound of it; see `certify`."""
        return self.certify(w)[0]

    def certify(self, w: Array) -> tuple[float, float]:
        """The objective by one pass of the oracle, and how far it may be above Ω(w) + Σ c_i ξ_i(w)."""
        plane = replace(self, oracle=self.oracle.exact()).plane_at(w)[1]
        return self.penalty.value(w) + plane.value(w) + plane.excess, plane.excess


class Penalty(Protocol):
    """What learners, tasks and solvers need of Ω.

    A solver that works in the dual minimises ``Ω(w) + Σ_m α_m (slope_m·w + offset_m)`` over w, for weights α of planes;
    `primal` gives that w. What is then maximised over α is quadratic: ``α·dual_offsets − ½ αᵀGα / stiffness`` with the
    inner products G of `products`.
    """

    @property
    def is_plain(self) -> bool:
        """Whether this is exactly ½‖w‖²: dual points that are kept as weights on outputs rely on it."""

    @property
    def stiffness(self) -> float:
        """By how much the curvature of the dual is divided."""

    @property
    def dual_scale(self) -> Any:
        """Slopes divided by this have the inner products ``G / stiffness``."""

    @property
    def is_quadratic(self) -> bool:
        """Whether the dual is the quadratic above; of norms solvers ask for proximal steps instead, as `GroupNorm` has
        them."""

    def value(self, w: Array) -> float:
        """Ω(w), not negative."""

    def primal(self, slope: Array) -> Array:
        """argmin_w Ω(w) + slope·w."""

    def near(self, centre: Array, weight: float) -> Penalty:
        """This penalty plus a proximal term of this weight; values are right up to a constant."""

    def products(self, slopes: Array, slope: Array) -> Array:
        """Inner products of slopes in the metric of the dual."""

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        """The linear coefficients of the dual, one per plane."""

    def least(self, slope: Array, offset: float, floor: float) -> float:
        """A lower bound on ``Ω(w) + max(slope·w + offset, floor)`` over all w."""

    def check(self, n_params: int) -> None:
        """Raise if this penalty does not fit so many weights."""


class Dual(ABC):
    """A dual point of a task: what block-coordinate Frank–Wolfe moves, sample by sample.

    The dual of ``min ½‖w‖² + Σ c_i ξ_i`` (margin rescaling) is::

        max  Σ_i Σ_a α_i(a) ℓ_i(a) − ½ ‖Σ_i Σ_a α_i(a) (Ψ(x_i, t_i) − Ψ(x_i, a))‖²,    α ≥ 0,  Σ_a α_i(a) = c_i

    and the vector inside the norm is w. A dual keeps α, its w, and ``offset = Σ α ℓ``, so that ``offset − ½‖w‖²`` is a
    lower bound on the optimum. The form of α depends on the oracle: one number per cell where outputs can be listed, a
    few tag sequences with their shares in chains. A *visit* to sample i is one block-coordinate update: it raises
    the dual by changing α_i alone.
    """

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
        """Compute w and offset again from α, without the rounding errors of many small steps."""

    @abstractmethod
    def cannot_gain(self, code: Array) -> Array:
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
        self, oracle: ScoresCells, weights: Array, target: Array, start: Mapping[str, Any] | None = None
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

    def cannot_gain(self, code: Array) -> Array:
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

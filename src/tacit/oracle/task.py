"""The convex task that solvers minimise: Ω(w) + Σ c_i ξ_i(w)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle.capabilities import FusesPlanes, SumsDifferences, capability
from tacit.oracle.contracts import TARGET, Assignment, Oracle, take_code

MAX_CODES = 20_000_000
"""Entries of codes that are sent in one question about planes: few journeys, and memory that has a bound."""


class Plane(NamedTuple):
    """``gradient·w + offset``, a lower bound on Σ c_i ξ_i(w) at every w."""

    gradient: Array
    offset: float

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

    def augmented(self, w: Array, rows: Rows = None) -> Assignment:
        """The assignment that attains every ξ_i(w)."""
        if self.rescaling == "margin":
            return self.oracle.augmented(w, rows)
        return self.oracle.augmented(
            w, rows, target=take_code(self.oracle, self.target, rows), rescaling=self.rescaling
        )

    def slack(self, w: Array, rows: Rows = None) -> tuple[Array, Assignment]:
        """ξ_i(w) of every row, and the assignment that attains it."""
        best = self.augmented(w, rows)
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
            code = self.augmented(w).code
            return code, self.plane(code)
        best, gradient = fused.tangent(w, self.weights, self.target, self.rescaling)
        return best.code, Plane(gradient, self._measure(best.code)[2])

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
        values = self.oracle.exact().augmented(w).value
        return float(np.finfo(np.float64).eps * (self.weights * np.abs(values)).sum())

    def objective(self, w: Array) -> float:
        """Ω(w) + Σ c_i ξ_i(w) in double precision, by one pass of the oracle."""
        exact = replace(self, oracle=self.oracle.exact())
        return self.penalty.value(w) + exact.plane(exact.augmented(w).code).value(w)


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
        """Raise if this is no penalty for so many weights."""

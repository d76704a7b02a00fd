"""The convex penalty Ω(w) of a task: its value, its minimiser with a linear term added, and its dual."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from tacit.arrays import Array
from tacit.inputs.parameters import is_not_negative, number, numbers, shorten

__all__ = ["Penalty", "Quadratic"]


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

    def check(self, n_params: int) -> None:
        """Raise if this is no penalty for so many weights."""


@dataclass(frozen=True)
class Quadratic:
    """Ω(w) = ½ wᵀMw + ½ρ (w − z)ᵀM(w − z), with a diagonal metric M, a proximal weight ρ and its centre z.

    The default is ½‖w‖². The second part is a proximal term, or the Lagrangian of a ball around z. A metric that is
    constant per block of weights is the variational form of a group norm.

    Parameters
    ----------
    metric : the diagonal of M, one number for all weights or one each, positive
    pull : the proximal weight ρ
    centre : z; None for no proximal term

    >>> Quadratic().value(np.array([3.0, 4.0]))
    12.5
    """

    metric: Any = 1.0
    pull: float = 0.0
    centre: Array | None = None

    @property
    def is_plain(self) -> bool:
        return np.ndim(self.metric) == 0 and self.metric == 1.0 and (not self.pull or self.centre is None)

    @property
    def stiffness(self) -> float:
        return 1.0 + (self.pull if self.centre is not None else 0.0)

    @property
    def dual_scale(self) -> Any:
        return np.sqrt(self.metric * self.stiffness)

    def value(self, w: Array) -> float:
        total = 0.5 * float(w @ (self.metric * w))
        if self.centre is not None and self.pull:
            away = w - self.centre
            total += 0.5 * self.pull * float(away @ (self.metric * away))
        return total

    def primal(self, slope: Array) -> Array:
        """argmin_w Ω(w) + slope·w.

        >>> Quadratic(pull=1.0, centre=np.array([2.0])).primal(np.array([0.0]))
        array([1.])
        """
        free = -slope / self.metric
        if self.centre is None or not self.pull:
            return np.asarray(free)
        return np.asarray((self.pull * self.centre + free) / (1 + self.pull))

    def near(self, centre: Array, weight: float) -> Self:
        """This penalty plus a proximal term.

        >>> Quadratic(pull=1.0, centre=np.array([2.0])).near(np.array([4.0]), 1.0).centre
        array([3.])
        """
        if self.centre is None or not self.pull:
            return replace(self, pull=weight, centre=centre)
        total = self.pull + weight
        return replace(self, pull=total, centre=(self.pull * self.centre + weight * centre) / total)

    def products(self, slopes: Array, slope: Array) -> Array:
        return np.asarray(slopes @ (slope / self.metric))

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        if self.centre is None or not self.pull:
            return offsets
        return np.asarray(offsets + self.pull / self.stiffness * (slopes @ self.centre))

    def check(self, n_params: int) -> None:
        for name, values in (("metric", self.metric), ("centre", 0.0 if self.centre is None else self.centre)):
            table = numbers(f"{name} of the penalty", values, "a number, or one for each weight")
            if table.ndim and table.shape != (n_params,):
                raise ValueError(
                    f"{name} of the penalty has shape {table.shape}, there are {n_params} weights; give one number each"
                )
            if not np.isfinite(table).all():
                raise ValueError(f"{name} of the penalty holds NaN or infinity")
        if self.centre is not None and np.ndim(self.centre) == 0:
            raise ValueError(f"centre of the penalty is one number for each of {n_params} weights, got {self.centre!r}")
        if not np.all(np.asarray(self.metric) > 0):
            raise ValueError(f"the metric of a penalty is positive, got metric={shorten(self.metric)}")
        number("pull", self.pull, "a number from 0", is_not_negative)

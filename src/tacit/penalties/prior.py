"""½‖w − z‖²: weights are pulled to those of another model instead of to zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import numbers
from tacit.penalties.quadratic import Quadratic
from tacit.runtime.archive import record


@record
@dataclass(frozen=True)
class Prior:
    """Ω(w) = ½ (w − z)ᵀM(w − z): a pull to given weights z instead of 0, with a diagonal metric M.

    Where the data say nothing the weights are z, and not between z and 0 as with ``Quadratic(pull=..., centre=z)``.

    Parameters
    ----------
    centre : z, one number for each weight
    metric : the diagonal of M, one number for all weights or one each, positive
    proximal, around : a proximal term ½ proximal (w − around)ᵀM(w − around), which solvers add

    >>> prior = Prior(np.array([2.0, -1.0]))
    >>> prior.value(np.array([3.0, -1.0])), prior.primal(np.zeros(2))
    (0.5, array([ 2., -1.]))
    """

    centre: Any
    metric: Any = 1.0
    proximal: float = 0.0
    around: Array | None = None

    @property
    def is_plain(self) -> bool:
        return False

    @property
    def is_quadratic(self) -> bool:
        return True

    @property
    def stiffness(self) -> float:
        return 1.0 + (self.proximal if self.around is not None else 0.0)

    @property
    def dual_scale(self) -> Any:
        return np.sqrt(self.metric * self.stiffness)

    @property
    def _middle(self) -> Array:
        """Where the penalty and its proximal term together are lowest."""
        centre = np.asarray(self.centre, dtype=np.float64)
        if self.around is None or not self.proximal:
            return centre
        return np.asarray((centre + self.proximal * self.around) / (1 + self.proximal))

    def value(self, w: Array) -> float:
        away = w - np.asarray(self.centre, dtype=np.float64)
        total = 0.5 * float(away @ (self.metric * away))
        if self.around is not None and self.proximal:
            moved = w - self.around
            total += 0.5 * self.proximal * float(moved @ (self.metric * moved))
        return total

    def primal(self, slope: Array) -> Array:
        return np.asarray(self._middle - slope / self.metric / self.stiffness)

    def near(self, centre: Array, weight: float) -> Self:
        if self.around is None or not self.proximal:
            return replace(self, proximal=weight, around=centre)
        total = self.proximal + weight
        return replace(self, proximal=total, around=(self.proximal * self.around + weight * centre) / total)

    def products(self, slopes: Array, slope: Array) -> Array:
        return np.asarray(slopes @ (slope / self.metric))

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        return np.asarray(offsets + slopes @ self._middle)

    def least(self, slope: Array, offset: float, floor: float) -> float:
        w = self.primal(slope)
        return offset + float(slope @ w) + self.value(w)

    def check(self, n_params: int) -> None:
        centre = numbers("centre of the prior", self.centre, "one number for each weight")
        if centre.shape != (n_params,) or not np.isfinite(centre).all():
            raise ValueError(
                f"centre of the prior has shape {centre.shape}; give a finite number for each of {n_params} weights"
            )
        Quadratic(self.metric, self.proximal, self.around).check(n_params)

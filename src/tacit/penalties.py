"""The convex penalty Ω(w) of a task: its value, and the w that a given slope of the rest leads to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.arrays import Array


@dataclass(frozen=True)
class Quadratic:
    """Ω(w) = ½ wᵀMw + ½ρ (w − z)ᵀM(w − z), with a diagonal metric M, a pull ρ and its centre z.

    The default is ½‖w‖². The pull is a proximal term, or the multiplier of a ball around z; a metric that changes by
    blocks is the variational form of a group norm.

    >>> Quadratic().value(np.array([3.0, 4.0]))
    12.5
    """

    metric: Any = 1.0
    pull: float = 0.0
    centre: Array | None = None

    @property
    def is_plain(self) -> bool:
        """Whether this is ½‖w‖² and nothing else."""
        return np.ndim(self.metric) == 0 and self.metric == 1.0 and (not self.pull or self.centre is None)

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

    def pulled(self, pull: float, centre: Array) -> Quadratic:
        """This penalty plus another pull: the same minimisers as the sum, values up to a constant.

        >>> Quadratic(pull=1.0, centre=np.array([2.0])).pulled(1.0, np.array([4.0])).centre
        array([3.])
        """
        if self.centre is None or not self.pull:
            return replace(self, pull=pull, centre=centre)
        total = self.pull + pull
        return replace(self, pull=total, centre=(self.pull * self.centre + pull * centre) / total)

    @property
    def stiffness(self) -> float:
        """1 + ρ, where there is a centre to be pulled to: the dual's curvature is divided by it."""
        return 1.0 + (self.pull if self.centre is not None else 0.0)

    def products(self, slopes: Array, slope: Array) -> Array:
        """Inner products of slopes in the metric of the dual, M⁻¹."""
        return np.asarray(slopes @ (slope / self.metric))

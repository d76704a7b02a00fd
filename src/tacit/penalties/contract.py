"""What learners, tasks and solvers need of a penalty."""

from __future__ import annotations

from typing import Any, Protocol

from tacit.data.arrays import Array


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

"""The small quadratic program inside the bundle where weights have lower bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.penalties import without_bounds
from tacit.solvers.simplex_qp import maximise_on_simplex

MAX_STEPS = 50
"""Changes of the set of weights at their bounds, at the most; three to ten are usual."""


def maximise_with_bounds(
    slopes: Array, offsets: Array, penalty: Any, floor: float, top: float, tolerance: float
) -> Array:
    """Weights α of planes that maximise ``min_{w ≥ lower} Ω(w) + Σ α_j (slopes[j]·w + offsets[j])``.

    A semismooth Newton method (Qi & Sun 1993): with the set of weights at their bounds fixed, the program is that of
    `maximise_on_simplex`, whose solution points to a higher dual value; the set at the highest point on the way there
    is the next one. Any α is a point of the dual, so an early end costs precision and never a valid bound.

    Parameters
    ----------
    slopes, offsets : the planes
    penalty : a quadratic penalty with lower bounds
    floor, top : a lower bound and an objective: the scale of the maximum
    tolerance : how far below the maximum the answer may lie

    >>> from tacit.penalties import Quadratic
    >>> slopes = np.array([[1.0, 0.0], [0.0, -1.0]])
    >>> maximise_with_bounds(slopes, np.zeros(2), Quadratic(lower=0.0), 0.0, 1.0, 1e-9).round(6)
    array([1., 0.])
    """
    free, lower = without_bounds(penalty)
    lower = np.broadcast_to(lower, slopes.shape[1])
    alpha = np.full(len(slopes), 1.0 / len(slopes))
    value, is_bound = -np.inf, np.zeros(slopes.shape[1], dtype=bool)
    for _ in range(MAX_STEPS):
        target = _solve_fixed(slopes, offsets, free, lower, is_bound, floor, top, tolerance)
        if not np.isfinite(value):
            alpha = target
        else:
            alpha = alpha + _best_step(slopes, offsets, penalty, alpha, target - alpha) * (target - alpha)
        w = penalty.primal(alpha @ slopes)
        heights = slopes @ w + offsets
        before, value = value, penalty.value(w) + float(alpha @ heights)
        if float(heights.max()) - float(alpha @ heights) <= tolerance or not value > before:
            break
        is_bound = w <= lower
    return np.asarray(np.maximum(alpha, 0.0) / np.maximum(alpha, 0.0).sum())


def _solve_fixed(
    slopes: Array, offsets: Array, free: Any, lower: Array, is_bound: Array, floor: float, top: float, tolerance: float
) -> Array:
    """The solution with these weights at their bounds and all others free."""
    moving = np.where(is_bound, 0.0, slopes)
    fixed = offsets + slopes[:, is_bound] @ lower[is_bound]
    gains = free.dual_offsets(moving, fixed) - floor
    gram = np.array([free.products(moving, slope) for slope in moving]) / free.stiffness
    return maximise_on_simplex(moving, free.dual_scale, gram, gains, top - floor, tolerance)


def _best_step(slopes: Array, offsets: Array, penalty: Any, alpha: Array, direction: Array) -> float:
    """How far to go along a direction, up to 1: where the slope of the dual changes its sign."""

    def rises(step: float) -> bool:
        w = penalty.primal((alpha + step * direction) @ slopes)
        return float(direction @ (slopes @ w + offsets)) > 0

    if rises(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low

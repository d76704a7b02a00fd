"""L-BFGS: descent of a function given by its value and gradient, one step at a time.

The state is a `Point`, and a step returns a new one, so that the one loop of tacit runs it, a checkpoint keeps it, and
a resumed run has the same bits. The line search uses the weak Wolfe conditions, which also suit functions with kinks
(Lewis & Overton 2013). There the method still descends, until no step along its direction decreases the function.

Source: Liu & Nocedal (1989); Nocedal & Wright (2006), algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array

Function = Callable[[Array], tuple[float, Array]]
"""Value and gradient (or one subgradient) at a point."""

MEMORY = 10
"""Differences of points and gradients that are kept."""

SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9
"""The constants of the Wolfe conditions."""

MAX_TRIALS = 25
"""Evaluations per line search."""


@dataclass(frozen=True)
class Point:
    """The state of a descent: a point, its value and gradient, and what was learned about the curvature.

    ``moves`` and ``changes`` hold the latest differences of points and of gradients, the latest last. ``is_stuck``: no
    step along the direction decreased the function, which happens at kinks and at the limit of precision.
    """

    w: Array
    value: float
    gradient: Array
    moves: Array
    changes: Array
    evaluations: int = 1
    is_stuck: bool = False

    @property
    def slope(self) -> float:
        """The norm of the gradient."""
        return float(np.sqrt(self.gradient @ self.gradient))


def begin(function: Function, w: Array) -> Point:
    """The first point of a descent."""
    value, gradient = function(w)
    nothing = np.empty((0, w.size))
    return Point(w, value, gradient, nothing, nothing)


def step(function: Function, now: Point) -> Point:
    """One step of L-BFGS; if it finds no better point, one of steepest descent; if that fails too, the same point with
    ``is_stuck``.

    >>> def bowl(w):
    ...     return float(w @ w + w.sum()), 2 * w + 1
    >>> point = begin(bowl, np.zeros(3))
    >>> while point.slope > 1e-9:
    ...     point = step(bowl, point)
    >>> point.w
    array([-0.5, -0.5, -0.5])
    """
    if now.slope == 0.0:
        return replace(now, is_stuck=True)
    direction = _direction(now)
    found = _search(function, now, direction, 1.0 if len(now.moves) else min(1.0, 1.0 / now.slope))
    if found.point is None and len(now.moves):  # forget the curvature, and go straight down
        nothing = now.moves[:0]
        now = replace(now, moves=nothing, changes=nothing, evaluations=now.evaluations + found.evaluations)
        found = _search(function, now, -now.gradient, min(1.0, 1.0 / now.slope))
    if found.point is None:
        return replace(now, evaluations=now.evaluations + found.evaluations, is_stuck=True)
    w, value, gradient = found.point
    move, change = w - now.w, gradient - now.gradient
    moves, changes = now.moves, now.changes
    if move @ change > 1e-10 * (change @ change) ** 0.5 * (move @ move) ** 0.5:
        moves, changes = np.vstack([moves, move])[-MEMORY:], np.vstack([changes, change])[-MEMORY:]
    return Point(w, value, gradient, moves, changes, now.evaluations + found.evaluations)


def _direction(now: Point) -> Array:
    """−H·gradient by the two-loop recursion of L-BFGS; H is the inverse Hessian that the latest differences imply."""
    direction = -now.gradient
    if not len(now.moves):
        return direction
    moves, changes = now.moves, now.changes
    products = np.einsum("kd,kd->k", moves, changes)
    shares = np.empty(len(moves))
    for k in range(len(moves) - 1, -1, -1):
        shares[k] = moves[k] @ direction / products[k]
        direction -= shares[k] * changes[k]
    direction *= products[-1] / (changes[-1] @ changes[-1])
    for k in range(len(moves)):
        direction += (shares[k] - changes[k] @ direction / products[k]) * moves[k]
    if not direction @ now.gradient < 0:
        return -now.gradient
    return direction


class _Found(NamedTuple):
    point: tuple[Array, float, Array] | None
    evaluations: int


def _search(function: Function, now: Point, direction: Array, length: float) -> _Found:
    """A step with the weak Wolfe conditions; else the best that decreased the value enough; else None."""
    fall = float(direction @ now.gradient)
    low, high = 0.0, np.inf
    low_value, low_fall = now.value, fall
    best: tuple[Array, float, Array] | None = None
    for trial in range(1, MAX_TRIALS + 1):
        w = now.w + length * direction
        value, gradient = function(w)
        rise = float(direction @ gradient)
        if not value <= now.value + SUFFICIENT_DECREASE * length * fall:
            high = length
            length = _between(low, low_value, low_fall, length, value)
        elif rise < CURVATURE * fall:
            best = w, value, gradient
            wish = length + (length - low) * rise / (low_fall - rise) if rise > low_fall else np.inf
            low, low_value, low_fall = length, value, rise
            if np.isinf(high):
                length = float(np.clip(wish, 1.5 * length, 8.0 * length))
            else:
                length = 0.5 * (low + high)
        else:
            return _Found((w, value, gradient), trial)
        if high - low <= 1e-14 * max(high, 1e-300):
            break
    return _Found(best, trial)


def _between(low: float, low_value: float, low_fall: float, high: float, high_value: float) -> float:
    """The minimum of a parabola through both ends, kept away from the ends."""
    width = high - low
    bend = high_value - low_value - low_fall * width
    share = -0.5 * low_fall * width / bend if np.isfinite(bend) and bend > 0 else 0.5
    return low + width * min(max(share, 0.1), 0.5)

"""Cutting planes for a convex risk that is given by its value and a subgradient, inside a ball or everywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.oracle import Plane
from tacit.penalties import Quadratic
from tacit.solvers.bundle import BundleState
from tacit.solvers.quasi_newton import Function
from tacit.solvers.simplex_qp import maximise_on_simplex

MAX_HALVINGS = 40
"""Trials of the multiplier of the ball: each is one small quadratic program."""

MULTIPLIER_PRECISION = 1e-6
"""Once the multiplier is known so well and its solution still jumps past the rim, digits are missing."""

MAX_ROUNDING = 1e-6
"""The most that rounding may change on the rim of the ball, as a share of the first objective: it limits the radius."""

MAX_UNCHANGED_STEPS = 20
"""The search ends after this many steps that change neither model, best point nor bound: only rounding is left."""

MAX_LOST_STEPS = 5
"""It also ends after this many steps that miss the rim while the gap shrinks by less than `MIN_SHRINKAGE`."""

MIN_SHRINKAGE = 1e-3

DROP_AFTER = 20
"""A plane that carried no weight for so many steps is dropped."""


class BallSolution(NamedTuple):
    """The best point found, its objective ``½‖w‖² + risk(w)``, a lower bound on all points of the ball, and passes."""

    w: Array
    objective: float
    bound: float
    evaluations: int

    @property
    def gap(self) -> float:
        """How far the objective may be from the best one in the ball."""
        return self.objective - self.bound


def minimise_in_ball(
    risk: Function,
    centre: Array,
    square: float = np.inf,
    *,
    gap: float,
    share: float = 0.0,
    needed: float = 0.0,
    max_iter: int = 500,
) -> BallSolution:
    """Minimise ``½‖w‖² + risk(w)`` over ``‖w − centre‖² ≤ square``, from the centre, to a certified gap.

    A gap of a ``share`` of the decrease so far also ends it, and so does a bound that shows that the decrease cannot
    reach what is ``needed``.

    The model of all planes so far is minimised in the ball through its multiplier κ. For a given κ that is the same
    small program with a proximal term. κ is found by bisection on the distance of its solution from the centre.

    >>> risk = lambda w: (abs(3.0 - w[0]) * 9, np.array([-9.0 if w[0] < 3 else 9.0]))
    >>> minimise_in_ball(risk, np.zeros(1), 4.0, gap=1e-9).w, minimise_in_ball(risk, np.zeros(1), gap=1e-9).w
    (array([2.]), array([3.]))
    """
    planes = BundleState(centre.size)
    w, best, bound = centre, (centre, np.inf), -np.inf
    kappa, first = 0.0, np.inf
    evaluations = unchanged = lost = 0
    for evaluations in range(1, max_iter + 1):
        value, slope = risk(w)
        n_planes = len(planes.codes)
        planes.add_if_new(w, Plane(slope, value - float(slope @ w)), Quadratic())
        is_new = len(planes.codes) > n_planes
        objective, before = 0.5 * float(w @ w) + value, (best[1], bound)
        if evaluations == 1:
            first, square = objective, min(square, _widest(objective, slope))
        if objective < best[1]:
            best = w, objective
        w, kappa, lower, is_lost = _minimise_model(planes, centre, square, kappa, best[1], bound)
        bound = max(bound, lower)
        if best[1] - bound <= max(gap, share * (first - best[1])) or first - bound < needed:
            break
        unchanged = 0 if is_new or (best[1], bound) != before else unchanged + 1
        is_idle = best[1] - bound > (1 - MIN_SHRINKAGE) * (before[0] - before[1])
        lost = lost + 1 if is_lost and is_idle else 0
        if unchanged >= MAX_UNCHANGED_STEPS or lost >= MAX_LOST_STEPS:
            break
    return BallSolution(*best, bound, evaluations)


def _widest(objective: float, slope: Array) -> float:
    """The squared radius up to which values along this slope keep enough digits."""
    steepness = float(np.linalg.norm(slope)) * np.finfo(np.float64).eps
    return float(np.square(MAX_ROUNDING * abs(objective) / steepness)) if steepness > 0 else np.inf


def _minimise_model(
    planes: BundleState, centre: Array, square: float, kappa: float, top: float, bound: float
) -> tuple[Array, float, float, bool]:
    """The minimiser of the model in the ball, its multiplier, a lower bound on the objective in the ball, and whether
    the minimiser was lost: no multiplier puts it on the rim. Planes that carried no weight for long are dropped."""

    def solve(kappa: float) -> tuple[Array, Array]:
        penalty = Quadratic(pull=kappa, centre=centre)
        gains = penalty.dual_offsets(planes.slopes, planes.offsets)
        floor = float(gains.min())
        tolerance = 0.05 * (top - bound) if np.isfinite(bound) else 0.05 * abs(top)
        gram, size = planes.gram / penalty.stiffness, max(top - floor, 1e-12)
        alpha = maximise_on_simplex(
            planes.slopes, penalty.dual_scale, gram, gains - floor, size, max(tolerance, 1e-13 * size)
        )
        return penalty.primal(alpha @ planes.slopes), alpha

    def away(found: tuple[Array, Array]) -> float:
        return float(np.sum((found[0] - centre) ** 2))

    low, high, is_lost = 0.0, max(kappa, 1e-3), False
    kappa, found = 0.0, solve(0.0)
    if away(found) > square * (1 + 1e-9):
        # w − centre = −(slope + centre)/(1 + κ), so this κ is enough whatever planes are chosen
        enough = (np.sqrt(planes.gram.diagonal().max()) + np.linalg.norm(centre)) / np.sqrt(square)
        while away(solve(high)) > square and high < enough:
            low, high = high, 4 * high
        for _ in range(MAX_HALVINGS):
            kappa = 0.5 * (low + high)
            found = solve(kappa)
            is_lost = not 0.9 * square <= away(found) <= square * (1 + 1e-9)
            if not is_lost or high - low <= MULTIPLIER_PRECISION * high:
                break
            low, high = (kappa, high) if away(found) > square else (low, kappa)
    w, alpha = found
    lower = 0.5 * float(w @ w) + float(alpha @ (planes.slopes @ w + planes.offsets))
    if kappa:
        lower += 0.5 * kappa * (away(found) - square)
    if away(found) > square:
        w = centre + np.sqrt(square / away(found)) * (w - centre)
    planes.drop(alpha, DROP_AFTER)
    return w, kappa, lower, is_lost

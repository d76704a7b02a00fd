"""The dual of a cutting-plane model under a group norm: smooth and concave, by Newton steps on the simplex."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.penalties import GroupNorm
from tacit.solvers.simplex_qp import maximise_on_simplex

MAX_NEWTON_STEPS = 5
"""Most duals take one or two. Any point of the simplex gives a valid bound and a usable step, so it is better to ask
the oracle again than to go on."""

ASCENT_SHARE = 0.01
"""A step is taken if it brings at least this share of what its slope promises; otherwise half of it is tried."""

MIN_STEP = 1e-8


def maximise_norm_dual(
    slopes: Array, offsets: Array, penalty: GroupNorm, start: Array, scale: float, tolerance: float
) -> Array:
    """The weights α on the simplex that maximise ``min_w Ω(w) + Σ_m α_m (slope_m·w + offset_m)``.

    Ω is a group norm with a proximal term, ``Σ λ_g‖w_g‖ + ½ρ‖w − z‖²``. The minimum over w shrinks every group of
    ``u = z − Σ α_m slope_m / ρ`` by λ_g/ρ, so what is maximised is ``α·offset − ½ρ Σ_g max(‖u_g‖ − λ_g/ρ, 0)²``. Its
    gradient is the height of every plane at that w. Newton's method replaces it by a quadratic, whose maximiser on the
    simplex `maximise_on_simplex` finds; groups that are zero here and not at the end of a step that went too far get
    the curvature that they have there.

    Parameters
    ----------
    slopes, offsets : the planes
    penalty : with its proximal term
    start : weights to begin with, of sum one, or zeros for the middle of the simplex
    scale, tolerance : as in `maximise_on_simplex`

    >>> penalty = GroupNorm([0, 1]).near(np.array([3.0, 0.5]), 1.0)
    >>> maximise_norm_dual(np.zeros((2, 2)), np.array([0.0, 1.0]), penalty, np.zeros(2), 1.0, 1e-9)
    array([0., 1.])
    """
    assert penalty.centre is not None
    alpha = start if start.sum() > 0 else np.full(len(offsets), 1.0 / len(offsets))
    rho, seen = penalty.pull, np.zeros(penalty.n_groups)
    slope = alpha @ slopes
    free = penalty.centre - slope / rho
    for _ in range(MAX_NEWTON_STEPS):
        norms = penalty.norms(free)
        shrinkage = penalty.shrinkage(norms)
        heights = offsets + slopes @ (free * penalty.of_groups(shrinkage))
        gap = float(heights.max() - alpha @ heights)
        if gap <= tolerance:
            break
        V = _curved(slopes, free, norms, np.maximum(shrinkage, seen), penalty)
        H = V @ V.T
        step = maximise_on_simplex(V, 1.0, H, heights + H @ alpha, scale, 0.1 * gap) - alpha
        moved, promised = step @ slopes, float(heights @ step)
        base, length = _value(norms, penalty), 1.0
        while length > MIN_STEP:
            norms = penalty.norms(free - (length / rho) * moved)
            gain = length * float(offsets @ step) + _value(norms, penalty) - base
            if gain >= ASCENT_SHARE * length * promised:
                break
            seen = np.maximum(0.5 * seen, penalty.shrinkage(norms))
            length *= 0.5
        else:
            break
        alpha = np.maximum(alpha + length * step, 0.0)
        alpha /= alpha.sum()
        slope = alpha @ slopes
        free = penalty.centre - slope / rho
    return np.asarray(alpha)


def _value(norms: Array, penalty: GroupNorm) -> float:
    """What the dual loses to the proximal term, for the norms of the groups of u."""
    beyond = np.maximum(norms - penalty.each_weight / penalty.pull, 0.0)
    return -0.5 * penalty.pull * float(beyond @ beyond)


def _curved(slopes: Array, free: Array, norms: Array, shrinkage: Array, penalty: GroupNorm) -> Array:
    """Rows whose inner products are minus the Hessian: per group ``a·I + (1 − a)·ûûᵀ``, a root of it, over √ρ."""
    used = np.flatnonzero(penalty.of_groups(shrinkage > 0))
    if not used.size:
        return np.zeros((len(slopes), 1))
    root = np.sqrt(shrinkage)
    unit = free * penalty.of_groups(1.0 / np.where(norms > 0, norms, 1.0))
    along = penalty.sums(slopes * unit) * (1.0 - root)
    V = slopes[:, used] * penalty.of_groups(root)[used]
    V += penalty.of_groups(along)[:, used] * unit[used]
    V /= np.sqrt(penalty.pull)
    return np.asarray(V)

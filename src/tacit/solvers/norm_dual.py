"""The dual of a cutting-plane model under a group norm: smooth and concave, by Newton steps on the simplex."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.penalties.group_norm import GroupNorm, shrink_groups
from tacit.solvers.simplex_qp import maximise_on_simplex

MAX_NEWTON_STEPS = 5
"""Most duals take one or two. Any point of the simplex gives a valid bound and a usable step, so calling the oracle
again is better than more Newton steps."""

ASCENT_SHARE = 0.01
"""A step is taken if it brings at least this share of what its slope promises; otherwise half of it is tried."""

MIN_STEP = 1e-8


def maximise_norm_dual(
    slopes: Array, offsets: Array, penalty: GroupNorm, start: Array, scale: float, tolerance: float
) -> Array:
    """The weights α on the simplex that maximise ``min_w Ω(w) + Σ_m α_m (slope_m·w + offset_m)``.

    Ω is a group norm with a proximal term, ``Σ λ_g‖w_g‖ + ½ρ‖w − z‖²``. The minimum over w shrinks every group of
    ``u = z − Σ α_m slope_m / ρ`` by λ_g/ρ, so what is maximised is ``α·offset − ½ρ Σ_g max(‖u_g‖ − λ_g/ρ, 0)²``. Its
    gradient is the height of every plane at that w. Newton's method replaces it by a quadratic, which
    `maximise_on_simplex` maximises. A group that is zero here, but not at the end of a step that was too long, has the
    curvature of that end.

    Parameters
    ----------
    slopes, offsets : the planes
    penalty : with its proximal term
    start : weights to begin with, of sum one, or zeros for the middle of the simplex
    scale, tolerance : as in `maximise_on_simplex`

    >>> penalty = GroupNorm([0, 1]).near(np.array([3.0, 0.5]), 1.0)
    >>> maximise_norm_dual(np.zeros((2, 2)), np.array([0.0, 1.0]), penalty, np.zeros(2), 1.0, 1e-9).round(9)
    array([0., 1.])
    """
    assert penalty.centre is not None
    alpha = start if start.sum() > 0 else np.full(len(offsets), 1.0 / len(offsets))
    rho, groups, limits = penalty.pull, penalty.group_of_each, penalty.each_weight / penalty.pull
    free, w = np.empty_like(penalty.centre), np.empty_like(penalty.centre)
    norms, shrinkage, seen = np.empty(limits.size), np.empty(limits.size), np.zeros(limits.size)
    buffer = np.empty(slopes.size)
    for _ in range(MAX_NEWTON_STEPS):
        shrink_groups(alpha @ slopes, penalty.centre, rho, groups, limits, free, norms, shrinkage, w)
        heights = slopes @ w
        gap = raise_heights(heights, offsets, alpha)
        if gap <= tolerance:
            break
        n_used = fill_curved(slopes, free, norms, shrinkage, seen, rho, groups, buffer)
        V = buffer[: len(slopes) * n_used].reshape(len(slopes), n_used)
        H = V @ V.T
        best = maximise_on_simplex(V, 1.0, H, heights + H @ alpha, scale, 0.1 * gap)
        step = best - alpha
        length = find_length(free, step @ slopes, rho, groups, limits, norms, step, offsets, heights, seen)
        if not length:
            break
        if length == 1.0:
            alpha = best
        else:
            alpha = np.maximum(alpha + length * step, 0.0)
            alpha /= alpha.sum()
    return np.asarray(alpha)


@kernel
def raise_heights(heights: Array, offsets: Array, alpha: Array) -> float:
    """Add the offsets to the heights of planes; returns how far the highest lies above their mean by the weights α."""
    highest, mean = -np.inf, 0.0
    for m in range(len(heights)):
        heights[m] += offsets[m]
        highest = heights[m] if heights[m] > highest else highest
        mean += alpha[m] * heights[m]
    return float(highest - mean)


@kernel
def fill_curved(
    slopes: Array, free: Array, norms: Array, shrinkage: Array, seen: Array, rho: float, groups: Array, V: Array
) -> int:
    """Rows whose inner products are minus the Hessian: per group ``a·I + (1 − a)·ûûᵀ``, a root of it, over √ρ.

    ``a`` is the shrinkage of the group, or what was ``seen`` of it at the end of a step that was too long. Groups where
    it is zero are left out. The rows stand one after the other in V; returns how long each is.
    """
    n_groups, whole = norms.size, 1.0 / np.sqrt(rho)
    root, along = np.empty(n_groups), np.empty(n_groups)
    for g in range(n_groups):
        root[g] = np.sqrt((shrinkage[g] if shrinkage[g] > seen[g] else seen[g]) / rho)
    used, n_used = np.empty(free.size, np.int64), 0
    for k in range(free.size):
        if root[groups[k]] > 0:
            used[n_used] = k
            n_used += 1
    for m in range(slopes.shape[0]):
        for g in range(n_groups):
            along[g] = 0.0
        for j in range(n_used):
            along[groups[used[j]]] += slopes[m, used[j]] * free[used[j]]
        for g in range(n_groups):
            along[g] *= (whole - root[g]) / (norms[g] * norms[g]) if norms[g] > 0 else 0.0
        for j in range(n_used):
            k = used[j]
            V[m * n_used + j] = slopes[m, k] * root[groups[k]] + along[groups[k]] * free[k]
    return n_used


@kernel
def find_length(
    free: Array,
    moved: Array,
    rho: float,
    groups: Array,
    limits: Array,
    norms: Array,
    step: Array,
    offsets: Array,
    heights: Array,
    seen: Array,
) -> float:
    """The longest of the steps 1, ½, ¼, … that rises by a share of what its slope promises; 0 if there is none.

    A whole ``step`` of the weights adds its product with the offsets to the linear part of the dual, and moves the
    slope by ``moved``. What is left is ``−½ρ Σ max(‖u_g‖ − λ_g/ρ, 0)²``. The shrinkage at the ends of steps that were
    too long is kept in ``seen``.
    """
    across, squares = np.zeros(norms.size), np.zeros(norms.size)
    before, gain, promised = 0.0, 0.0, 0.0
    for m in range(step.size):
        gain += offsets[m] * step[m]
        promised += heights[m] * step[m]
    for k in range(free.size):
        across[groups[k]] += free[k] * moved[k]
        squares[groups[k]] += moved[k] * moved[k]
    for g in range(norms.size):
        beyond = norms[g] - limits[g]
        before += beyond * beyond if beyond > 0 else 0.0
    length = 1.0
    while length > MIN_STEP:
        share, after = length / rho, 0.0
        for g in range(norms.size):
            norm = norms[g] * norms[g] - 2 * share * across[g] + share * share * squares[g]
            beyond = (np.sqrt(norm) if norm > 0 else 0.0) - limits[g]
            after += beyond * beyond if beyond > 0 else 0.0
        if length * gain - 0.5 * rho * (after - before) >= length * ASCENT_SHARE * promised:
            return length
        for g in range(norms.size):
            norm = norms[g] * norms[g] - 2 * share * across[g] + share * share * squares[g]
            norm = np.sqrt(norm) if norm > 0 else 0.0
            factor = 1.0 - limits[g] / norm if norm > limits[g] else 0.0
            seen[g] = 0.5 * seen[g] if 0.5 * seen[g] > factor else factor
        length *= 0.5
    return 0.0

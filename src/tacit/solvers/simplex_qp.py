"""The small quadratic program inside the bundle: max f·α − ½‖Σ α_j v_j‖² over α ≥ 0, Σα = 1; with bounds on w, too."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg.lapack import dgeqrf, dtrtrs

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.penalties import without_bounds

RIDGE = 1e-14
"""Added to the unit diagonal of the matrix that daqp factors."""

MIN_TOLERANCE = 1e-12
"""The smallest tolerance, as a share of the maximum: no answer is asked to be more precise."""

MAX_BOUND_CHANGES = 50
"""Changes of the set of weights at their bounds, at the most; three to ten are usual."""


def maximise_on_simplex(
    slopes: Array, root: Array | float, H: Array, f: Array, scale: float, tolerance: float
) -> Array:
    """The maximiser α for ``v_j = slopes[j] / root``, whose inner products are H.

    ``scale`` is the size of the maximum, up to a few orders of magnitude. ``tolerance`` is how far below the maximum an
    answer may lie. daqp works on H and is quick, but loses precision on planes of very different steepness (class
    weights from 1e-4 to 1e3, features that were never scaled) and on nearly dependent ones. So its answer is checked;
    where it is not precise enough, `maximise_by_active_set` goes on from it with the slopes themselves. Any answer lies
    on the simplex, so it gives a valid bound.

    >>> maximise_on_simplex(np.eye(2), 1.0, np.eye(2), np.array([0.0, 0.0]), scale=1.0, tolerance=1e-6).round(6)
    array([0.5, 0.5])
    """
    import daqp

    m, d = slopes.shape
    if m == 1:
        return np.ones(1)
    matrix, linear, shrink = np.empty((m, m)), np.empty(m), np.empty((1, m))
    scale = scale_program(H, f, scale, matrix, linear, shrink[0])
    upper, lower, sense = _daqp_constraints(m)
    x, _, flag, _ = daqp.solve(matrix, linear, shrink, upper, lower, sense.copy(), primal_tol=1e-9)
    shrink = shrink[0]
    alpha = np.maximum(x, 0.0) * shrink
    total = float(alpha.sum())
    if flag > 0 and 0.5 < total < 2.0:
        alpha /= total
        if measure_shortfall(H, f, alpha) <= tolerance:
            return np.asarray(alpha)
    else:
        alpha = np.zeros(m)
    V = slopes / root
    with np.errstate(all="ignore"):  # values that overflow lose every comparison
        return maximise_by_active_set(
            np.tril(_triangular_factor(V.T).T) if m < d else V, f, scale, max(tolerance, MIN_TOLERANCE * scale), alpha
        )


@kernel
def scale_program(H: Array, f: Array, scale: float, matrix: Array, linear: Array, shrink: Array) -> float:
    """The program as daqp reads it: weights α are scaled by how far they move w, and the maximum by its size.

    Returns that size, raised to what rounding allows.
    """
    m, scale = len(f), max(scale, 1e-300)
    for i in range(m):
        scale = max(scale, 1e-30 * H[i, i])
    for i in range(m):
        shrink[i] = 1.0 / np.sqrt(1.0 + H[i, i] / scale)
        linear[i] = f[i] * (shrink[i] / -scale)
    for i in range(m):
        for j in range(m):
            matrix[i, j] = H[i, j] * (shrink[i] * (shrink[j] / scale))
        matrix[i, i] += RIDGE
    return scale


@kernel
def measure_shortfall(H: Array, f: Array, alpha: Array) -> float:
    """How far weights may lie below the maximum: by the highest plane at their point, and by rounding."""
    highest, mean, steepest, steepness = -np.inf, 0.0, 0.0, 0.0
    for i in range(len(f)):
        height = 0.0
        for j in range(len(f)):
            height += H[i, j] * alpha[j]
        height, slope = f[i] - height, np.sqrt(H[i, i])
        highest = height if height > highest else highest
        steepest = slope if slope > steepest else steepest
        mean += alpha[i] * height
        steepness += alpha[i] * slope
    return float(highest - mean + 1e-15 * steepest * steepness)


def maximise_by_active_set(V: Array, f: Array, scale: float, tolerance: float, start: Array) -> Array:
    """The maximiser over the rows of V, by an active set: a plane enters, others leave when their weight is used up.

    The planes of the face are columns (√scale, v_j). The constant on top changes nothing on the simplex and keeps d + 1
    planes in d dimensions independent (Kiwiel 1986; with f = 0 this is Wolfe's nearest point, 1976).

    >>> maximise_by_active_set(np.eye(3), np.array([0.0, 0.0, 9.0]), 1.0, 1e-9, np.zeros(3))
    array([0., 0., 1.])
    """
    m = len(f)
    A = np.hstack([np.full((m, 1), np.sqrt(scale)), V])
    norms = np.linalg.norm(V, axis=1)
    alpha = choose_start(V, f, start)
    face, waiting = [], np.flatnonzero(alpha).tolist()
    if len(waiting) > 1 and _are_independent(A[waiting]):
        face, waiting = waiting[:-1], waiting[-1:]
    barred = np.zeros(m, dtype=bool)
    reached, kept = -np.inf, alpha / alpha.sum()
    for _ in range(20 * m):
        entered = waiting.pop(0)
        _add_to_face(A, alpha, face, entered)
        if waiting:
            continue
        planes = np.array(face)
        face[:] = planes[: climb_on_face(A[planes], f[planes], planes, alpha)].tolist()
        total = float(alpha.sum())
        if not 0 < total < np.inf:  # rounding has used up every weight: stay where it was
            return np.asarray(kept)
        alpha /= total
        w = alpha @ V
        heights = f - V @ w
        value = float(alpha @ f - 0.5 * (w @ w))
        barred[entered] = value <= reached  # all that this plane could add is rounding
        kept, reached = alpha.copy(), max(reached, value)
        excess = heights - alpha @ heights - 2e-16 * (alpha @ norms) * norms
        excess[barred | (alpha > 0)] = -np.inf
        best = int(np.argmax(excess))
        if excess[best] <= tolerance:
            break
        waiting.append(best)
    return alpha


def choose_start(V: Array, f: Array, start: Array) -> Array:
    """The weights α to begin with, or the best single plane if that is as high: removing many planes takes many steps.

    >>> choose_start(np.array([[0.0], [1e9]]), np.zeros(2), np.array([0.5, 0.5]))
    array([1., 0.])
    """
    alone = f - 0.5 * np.square(np.linalg.norm(V, axis=1))
    single = int(np.argmax(alone))
    w = start @ V
    if start.sum() > 0 and start @ f - 0.5 * (w @ w) > alone[single]:
        return start.copy()
    return np.asarray(np.arange(len(f)) == single, dtype=np.float64)


def _add_to_face(A: Array, alpha: Array, face: list[int], j: int) -> None:
    """Plane j joins the face; as long as it depends on it, weight moves to it until another plane leaves."""
    while face:
        k = len(face)
        R = _triangular_factor(A[[*face, j]].T)
        if k < A.shape[1] and abs(R[k, k]) > 1e-12 * np.linalg.norm(A[j]):
            break
        share = dtrtrs(R[:k, :k], R[:k, k])[0]
        alpha[j] += _move_weights(alpha, face, -share, np.inf) or 0.0
        face[:] = [i for i in face if alpha[i] > 0]
    face.append(j)
    if len(face) == 1:
        alpha[j] = 1.0


def _are_independent(A: Array) -> bool:
    pivots = np.abs(_triangular_factor(A.T).diagonal())
    return len(A) <= A.shape[1] and bool((pivots > 1e-12 * np.linalg.norm(A, axis=1)).all())


@kernel
def climb_on_face(A: Array, f: Array, planes: Array, alpha: Array) -> int:
    """Move the weights of these planes, the rows of A, to the maximum over their hull, or as far as all stay positive.

    A plane whose weight reaches 0 leaves, and the search goes on with the others. The maximiser over weights of either
    sign that sum to one solves ``RᵀR a = f − λ``, R from a QR factorisation by reflections. Returns how many planes are
    left; they come first in ``planes``.
    """
    k, d = len(A), int(A.shape[1])
    own = np.arange(k)
    R, both = np.empty((k, d)), np.empty((2, k))  # the columns of R are rows here
    size = np.abs(A).max()  # squares of what is divided by it do not overflow
    while k > 0 and 0 < size < np.inf:
        for j in range(k):
            R[j] = A[own[j]] / size
            both[0, j], both[1, j] = f[own[j]] / size / size, 1.0
        for j in range(min(k, d)):
            square = 0.0
            for i in range(j, d):
                square += R[j, i] * R[j, i]
            pivot = -np.sqrt(square) if R[j, j] > 0 else np.sqrt(square)
            scale = square - R[j, j] * pivot  # half of the square of the mirror's normal, (R_jj − pivot, R_j+1, …)
            R[j, j] -= pivot
            for c in range(j + 1, k):
                along = 0.0
                for i in range(j, d):
                    along += R[j, i] * R[c, i]
                along = along / scale if scale > 0 else 0.0
                for i in range(j, d):
                    R[c, i] -= along * R[j, i]
            R[j, j] = pivot
        is_solved = k <= d
        for j in range(k):
            is_solved = is_solved and R[j, j] != 0.0
        if not is_solved:
            return k
        for row in range(2):
            for j in range(k):
                for i in range(j):
                    both[row, j] -= R[j, i] * both[row, i]
                both[row, j] /= R[j, j]
            for j in range(k - 1, -1, -1):
                for c in range(j + 1, k):
                    both[row, j] -= R[c, j] * both[row, c]
                both[row, j] /= R[j, j]
        total = both[1, :k].sum()
        if total == 0.0:
            return k
        share, reach, first = (1.0 - both[0, :k].sum()) / total, np.inf, -1
        for j in range(k):
            both[0, j] += share * both[1, j]
            if not np.isfinite(both[0, j]):
                return k
            weight = alpha[planes[j]]
            if both[0, j] < weight and weight / (weight - both[0, j]) < reach:
                reach, first = weight / (weight - both[0, j]), j
        for j in range(k):
            weight = alpha[planes[j]]
            moved = weight + min(reach, 1.0) * (both[0, j] - weight)
            alpha[planes[j]] = moved if moved > 0 else 0.0
        if reach > 1.0:
            return k
        alpha[planes[first]] = 0.0
        left = 0
        for j in range(k):
            if alpha[planes[j]] > 0:
                planes[left], own[left] = planes[j], own[j]
                left += 1
        k = left
    return k


def _triangular_factor(A: Array) -> Array:
    """R of a QR factorisation; below its diagonal stands what LAPACK left there.

    Faces are small and factored thousands of times, so this calls LAPACK without the checks around it.
    """
    factored = dgeqrf(A)[0]
    return np.asarray(factored[: min(A.shape)])


def _move_weights(alpha: Array, face: list[int], direction: Array, limit: float) -> float | None:
    """Move the weights of the face until one is used up: how far, None if none is within the limit."""
    weights = alpha[face]
    falling = direction < 0
    reach = np.full(len(face), np.inf)
    reach[falling] = -weights[falling] / direction[falling]
    first = int(np.argmin(reach))
    if reach[first] > limit:
        alpha[face] = np.maximum(weights + limit * direction, 0.0)
        return None
    if np.isinf(reach[first]):  # only rounding leaves nothing that falls: the face gives way
        alpha[face] = 0.0
        face.clear()
        return None
    moved = np.maximum(weights + reach[first] * direction, 0.0)
    moved[first] = 0.0
    alpha[face] = moved
    return float(reach[first])


@lru_cache(maxsize=256)
def _daqp_constraints(m: int) -> tuple[Array, Array, Array]:
    """m bounds, then one equation, as daqp takes them."""
    upper, lower = np.full(m + 1, 1e30), np.zeros(m + 1)
    upper[m] = lower[m] = 1.0
    sense = np.zeros(m + 1, dtype=np.int32)
    sense[m] = 5
    return upper, lower, sense


def maximise_with_bounds(
    slopes: Array, offsets: Array, penalty: Any, floor: float, top: float, tolerance: float
) -> Array:
    """Weights α of planes that maximise ``min_{w ≥ lower} Ω(w) + Σ α_j (slopes[j]·w + offsets[j])``.

    A semismooth Newton method (Qi & Sun 1993). With the set of weights at their bounds fixed, the program is that of
    `maximise_on_simplex`, whose solution is the direction of a line search on the dual. The set at the point found is
    the next one. Any α is a point of the dual, so an early end costs precision, but the bound stays valid.

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
    for _ in range(MAX_BOUND_CHANGES):
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

"""The small quadratic program inside the bundle: max f·α − ½ αᵀHα over α ≥ 0, Σα = 1."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tacit.arrays import Array

RIDGES = (1e-14, 1e-12, 1e-9, 1e-6)
"""Tried in turn, relative to the unit diagonal: the dual active set fails on nearly singular matrices."""


def maximise_on_simplex(H: Array, f: Array, scale: float) -> Array | None:
    """The maximiser, None if the library fails at every ridge. Any answer on the simplex gives a valid bound.

    ``scale`` is the size of the maximum, up to a few orders of magnitude. Planes of very different steepness meet in
    one program (class weights from 1e-4 to 1e3 do that), so weights are measured by how far they move w, not by
    themselves: α_j = x_j / √(1 + H_jj / scale).

    >>> maximise_on_simplex(np.eye(2), np.array([0.0, 0.0]), scale=1.0).round(6)
    array([0.5, 0.5])
    """
    import daqp

    m = f.size
    if m == 1:
        return np.ones(1)
    scale = max(scale, 1e-300)
    steepness = np.sqrt(1.0 + H.diagonal() / scale)
    shrink = 1.0 / steepness
    matrix = H * (shrink[:, None] * (shrink / scale))
    gains = f * (shrink / -scale)
    upper, lower, sense = _bounds(m)
    for ridge in RIDGES:
        matrix.ravel()[:: m + 1] += ridge
        x, _, flag, _ = daqp.solve(matrix, gains, shrink[None, :], upper, lower, sense.copy(), primal_tol=1e-9)
        alpha = np.maximum(x, 0.0) * shrink
        total = float(alpha.sum())
        if flag > 0 and 0.5 < total < 2.0:
            return np.asarray(alpha / total)
    return None


@lru_cache(maxsize=256)
def _bounds(m: int) -> tuple[Array, Array, Array]:
    """m bounds, then one equation, as daqp takes them."""
    upper, lower = np.full(m + 1, 1e30), np.zeros(m + 1)
    upper[m] = lower[m] = 1.0
    sense = np.zeros(m + 1, dtype=np.int32)
    sense[m] = 5
    return upper, lower, sense

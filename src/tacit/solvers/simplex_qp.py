"""The small quadratic program inside the bundle: max f·α − ½ αᵀHα over α ≥ 0, Σα = 1."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tacit.arrays import Array

RIDGES = (1e-10, 1e-6, 1e-4)
"""Tried in turn, relative to the mean diagonal: the dual active set fails on nearly singular matrices."""


def maximise_on_simplex(H: Array, f: Array) -> Array | None:
    """The maximiser, None if the library fails at every ridge. Any answer on the simplex gives a valid bound.

    >>> maximise_on_simplex(np.eye(2), np.array([0.0, 0.0])).round(6)
    array([0.5, 0.5])
    """
    import daqp

    m = f.size
    if m == 1:
        return np.ones(1)
    mean = float(np.trace(H)) / m
    scale = max(mean, float(np.abs(f).max()), 1e-300)
    total, upper, lower, sense = _simplex(m)
    for ridge in RIDGES:
        scaled = H / scale
        scaled.ravel()[:: m + 1] += ridge * max(mean / scale, 1e-12)
        alpha, _, flag, _ = daqp.solve(scaled, f / -scale, total, upper, lower, sense.copy())
        alpha = np.maximum(alpha, 0.0)
        weight = float(alpha.sum())
        if flag > 0 and 0.5 < weight < 2.0:
            return np.asarray(alpha / weight)
    return None


@lru_cache(maxsize=256)
def _simplex(m: int) -> tuple[Array, Array, Array, Array]:
    """The constraints as daqp takes them: m bounds, then one equation."""
    upper, lower = np.full(m + 1, 1e30), np.zeros(m + 1)
    upper[m] = lower[m] = 1.0
    sense = np.zeros(m + 1, dtype=np.int32)
    sense[m] = 5
    return np.ones((1, m)), upper, lower, sense

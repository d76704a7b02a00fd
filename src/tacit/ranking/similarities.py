"""Similarities of feature vectors: of listed pairs, and of all pairs of two tables. The higher, the more alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from sklearn.metrics import pairwise

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

MAX_NOTHING = 1e-300
"""Norms and sums below this count as zero: two empty histograms are alike, an empty and another one are not."""


def similarity(kind: str, X: Array, Y: Array, gamma: float | None = None) -> Array:
    """(rows of X, rows of Y) similarities of one kind, by scikit-learn's pairwise functions where it has them."""
    if kind == "rbf":
        return np.asarray(pairwise.rbf_kernel(X, Y, gamma=gamma))
    return SIMILARITIES[kind][0](X, Y)


def paired_similarity(kind: str, x: Array, y: Array, gamma: float | None = None) -> Array:
    """(rows,) similarities of row i of x and row i of y."""
    if kind == "rbf":
        return np.asarray(np.exp(-(1 / x.shape[1] if gamma is None else gamma) * ((x - y) ** 2).sum(axis=1)))
    return SIMILARITIES[kind][1](x, y)


def _intersection(X: Array, Y: Array) -> Array:
    out = np.empty((len(X), len(Y)))
    _sum_minima(X, Y, out)
    return out


@kernel
def _sum_minima(X: Array, Y: Array, out: Array) -> None:
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0.0
            for c in range(X.shape[1]):
                total += X[i, c] if X[i, c] < Y[j, c] else Y[j, c]
            out[i, j] = total


def _paired_chi2(x: Array, y: Array) -> Array:
    total = x + y
    parts = np.divide((x - y) ** 2, total, out=np.zeros_like(total), where=total > MAX_NOTHING)
    return np.asarray(-parts.sum(axis=1))


def _paired_cosine(x: Array, y: Array) -> Array:
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return np.asarray(np.divide((x * y).sum(axis=1), norms, out=np.zeros(len(x)), where=norms > MAX_NOTHING))


Table = Callable[[Array, Array], Array]
SIMILARITIES: Mapping[str, tuple[Table, Table]] = {
    "chi2": (lambda X, Y: np.asarray(pairwise.additive_chi2_kernel(X, Y)), _paired_chi2),
    "intersection": (_intersection, lambda x, y: np.asarray(np.minimum(x, y).sum(axis=1))),
    "rbf": (lambda X, Y: similarity("rbf", X, Y), lambda x, y: paired_similarity("rbf", x, y)),
    "cosine": (lambda X, Y: np.asarray(pairwise.cosine_similarity(X, Y)), _paired_cosine),
    "l1": (lambda X, Y: -np.asarray(pairwise.manhattan_distances(X, Y)), lambda x, y: -np.abs(x - y).sum(axis=1)),
    "l2": (
        lambda X, Y: -np.asarray(pairwise.euclidean_distances(X, Y)),
        lambda x, y: -np.sqrt(((x - y) ** 2).sum(axis=1)),
    ),
}
"""All pairs, and listed pairs, of each kind."""

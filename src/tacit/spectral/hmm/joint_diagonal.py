"""Matrices ``M_σ = A·diag(o_σ)·Bᵀ`` with one A and B for all σ: the state is what they share.

Anandkumar, Ge, Hsu, Kakade & Telgarsky (2014) show that such a decomposition is unique for an HMM whose transition and
emission matrices have full rank. With exact matrices the eigenvectors of one combination suffice; with noise,
alternating least squares over all of them, started there and at random, does far better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array


class Decomposition(NamedTuple):
    """``M[:, σ] ≈ left · diag(middle[σ]) · rightᵀ``, middle not negative; error is the relative Frobenius distance."""

    left: Array
    middle: Array
    right: Array
    error: float


def decompose(tensor: Array, rng: np.random.RandomState, restarts: int, sweeps: int) -> list[Decomposition]:
    """Decompositions of an (n, symbols, n) tensor into n terms from several starts, the best first."""
    n = tensor.shape[0]
    found = [_sweep(tensor, *_eigen_start(tensor, rng), sweeps)]
    for _ in range(restarts):
        middle = rng.dirichlet(np.full(tensor.shape[1], 0.5), n).T
        found.append(_sweep(tensor, middle, rng.standard_normal((n, n)), sweeps))
    return sorted(found, key=lambda result: result.error)


def _eigen_start(tensor: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Middle and right factors from the eigenvectors of the combination with the best separated real eigenvalues."""
    whole = np.linalg.pinv(tensor.sum(axis=1))
    best, vectors = -np.inf, np.eye(tensor.shape[0])
    for _ in range(20):
        values, candidate = np.linalg.eig(np.tensordot(rng.standard_normal(tensor.shape[1]), tensor, (0, 1)) @ whole)
        apart = np.abs(values[:, None] - values) + np.diag(np.full(values.size, np.inf))
        quality = apart.min() / (1e-12 + np.abs(values).max()) - np.abs(values.imag).max() / np.abs(values).max()
        if quality > best:
            best, vectors = quality, candidate
    left = np.linalg.pinv(vectors)
    scaled = np.einsum("ip,psq,qr,ri->si", left, tensor, whole, vectors).real
    right = (left @ tensor.sum(axis=1)).real.T
    return np.maximum(scaled, 0.0), right


def _sweep(tensor: Array, middle: Array, right: Array, sweeps: int) -> Decomposition:
    """Alternating least squares, the middle factor clipped at zero, until it no longer moves."""
    n, k, _ = tensor.shape
    by_left = tensor.reshape(n, -1)
    by_middle = tensor.transpose(1, 0, 2).reshape(k, -1)
    by_right = tensor.transpose(2, 0, 1).reshape(n, -1)
    size = np.linalg.norm(tensor)
    left, error = np.eye(n), np.inf
    for sweep in range(sweeps):
        left = _solve(by_left, middle, right)
        left /= np.maximum(np.linalg.norm(left, axis=0), 1e-300)
        right = _solve(by_right, left, middle)
        right /= np.maximum(np.linalg.norm(right, axis=0), 1e-300)
        middle = _solve(by_middle, left, right)
        signs = np.where(middle.sum(axis=0) < 0, -1.0, 1.0)
        middle, right = np.maximum(middle * signs, 0.0), right * signs
        if sweep % 10 == 9:
            before, error = error, float(np.linalg.norm(by_middle - middle @ _pairs(left, right).T) / size)
            if before - error < 1e-6 * error or error < 1e-13:
                break
    return Decomposition(left, middle, right, error)


def _solve(unfolded: Array, one: Array, two: Array) -> Array:
    """The factor that fits best, given the two others."""
    gram = (one.T @ one) * (two.T @ two)
    ridge = 1e-12 * max(float(np.trace(gram)), 1e-300)
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), (unfolded @ _pairs(one, two)).T).T


def _pairs(one: Array, two: Array) -> Array:
    """The products of all rows of two factors, a column a term."""
    return np.asarray((one[:, None, :] * two[None]).reshape(-1, one.shape[1]))

"""The spaces that the vectors of a weighted automaton span: what it can reach, and strings that tell automata apart."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tacit.data.arrays import Array

Parts: TypeAlias = tuple[Array, Array, Array]
"""Initial vector, transition matrices and final vector."""


def forward_space(initial: Array, transitions: Array, tol: float) -> Array:
    """(n, r) orthonormal: what ``initialᵀ A_w`` spans over all strings w; one column at the least.

    Singular values below ``tol`` of the largest, of vectors scaled to length one, count as zero.
    """
    size = np.linalg.norm(initial)
    if size == 0:
        return np.eye(initial.size)[:, :1]
    spanned = (initial / size)[:, None]
    scale = max(float(np.linalg.norm(transitions, axis=(1, 2)).max()), 1e-300)
    while spanned.shape[1] < initial.size:
        moved = (np.einsum("ir,sij->jsr", spanned, transitions) / scale).reshape(initial.size, -1)
        new = moved - spanned @ (spanned.T @ moved)
        left, singular, _ = np.linalg.svd(new, full_matrices=False)
        fresh = left[:, singular > tol]
        if not fresh.shape[1]:
            break
        spanned = np.linalg.qr(np.hstack([spanned, fresh]))[0]
    return np.asarray(spanned)


def largest_gap(one: Parts, two: Parts) -> tuple[float, float]:
    """The largest difference of two automata, and their largest value, over strings that span both of them."""
    n = one[0].size
    initial, final = np.concatenate([one[0], two[0]]), np.concatenate([one[2], two[2]])
    transitions = np.zeros((len(one[1]), initial.size, initial.size))
    transitions[:, :n, :n], transitions[:, n:, n:] = one[1], two[1]
    rows = _spanning(initial, transitions)
    columns = _spanning(final, transitions.transpose(0, 2, 1))
    blocks = [rows @ columns.T, *(rows @ matrix @ columns.T for matrix in transitions)]
    halves = [(rows[:, :n] @ columns[:, :n].T, rows[:, n:] @ columns[:, n:].T)]
    halves += [
        (rows[:, :n] @ a @ columns[:, :n].T, rows[:, n:] @ b @ columns[:, n:].T)
        for a, b in zip(one[1], two[1], strict=True)
    ]
    gap = max(float(np.abs(f - g).max()) for f, g in halves)
    return gap, max(float(np.abs(block).max()) for block in blocks)


def _spanning(initial: Array, transitions: Array) -> Array:
    """The vectors of short strings, one each for every direction that is reached, shortest first."""
    chosen, basis = [initial], _direction(initial, np.empty((0, initial.size)))
    front = [initial]
    while front and len(basis) < initial.size:
        following = []
        for vector in front:
            for matrix in transitions:
                moved = vector @ matrix
                grown = _direction(moved, basis)
                if len(grown) > len(basis):
                    basis = grown
                    chosen.append(moved)
                    following.append(moved)
        front = following
    return np.array(chosen)


def _direction(vector: Array, basis: Array) -> Array:
    """The orthonormal rows of the basis, and one more if the vector is not among what they span."""
    size = np.linalg.norm(vector)
    rest = vector - basis.T @ (basis @ vector)
    rest -= basis.T @ (basis @ rest)
    if size == 0 or np.linalg.norm(rest) <= 1e-7 * size:
        return basis
    return np.vstack([basis, rest / np.linalg.norm(rest)])

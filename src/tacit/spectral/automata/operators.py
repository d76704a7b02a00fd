"""From a Hankel matrix to an automaton: a thin SVD, and least squares for the operators.

With the top n singular vectors, ``H ≈ U S Vᵀ``: ``A_σ = (HV)⁺ H_σ V``, ``α_1ᵀ = h_{λ,S} V``, ``α_∞ = (HV)⁺ h_{P,λ}``
(Hsu, Kakade & Zhang 2009; Bailly, Denis & Ralaivola 2009; Balle, Carreras, Luque & Quattoni 2014). Rows and columns may
be weighted first: any weights give the same automaton for exact values, and better ones for counts, as rare strings are
noisy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from tacit.data.arrays import Array
from tacit.spectral.strings.hankel import Hankel

MAX_DENSE_SIZE = 700
"""Up to how many rows or columns a whole dense SVD is quicker than an iterative one."""


class Factors(NamedTuple):
    """A Hankel block by its top singular vectors, weights undone.

    Attributes
    ----------
    rows : (r, prefixes) ``S⁻¹ Uᵀ`` with the row weights: what (HV)⁺ is
    columns : (suffixes, r) V with the column weights
    singular_values : (r,), of the weighted block, falling
    shifted : (symbols, prefixes, r) ``H_σ V``
    """

    rows: Array
    columns: Array
    singular_values: Array
    shifted: Array


def factorise(hankel: Hankel, rank: int, *, scaling: float = 0.0, seed: int = 0) -> Factors:
    """The factors of rank ``rank`` or, if that is less, of the rank that the block has.

    Parameters
    ----------
    scaling : rows and columns are divided by this power of their sums; ½ makes the singular values those of a
        canonical correlation analysis
    seed : of the start of the iterative SVD, for large blocks
    """
    rows_weight, columns_weight = weigh(hankel.block, scaling)
    block = sparse.diags_array(rows_weight) @ hankel.block @ sparse.diags_array(columns_weight)
    left, singular, right = thin_svd(block, rank, seed)
    real = singular > 1e-12 * max(singular[0], 1e-300)
    left, singular, right = left[:, real], singular[real], right[:, real]
    columns = columns_weight[:, None] * right
    n_prefixes = hankel.block.shape[0]
    shifted = (hankel.shifted @ columns).reshape(hankel.n_symbols, n_prefixes, -1)
    return Factors((left / singular).T * rows_weight, columns, singular, shifted)


def operators(hankel: Hankel, factors: Factors, rank: int) -> tuple[Array, Array, Array]:
    """Initial vector, transition matrices and final vector of the automaton of the Hankel block's own statistics."""
    rows, columns = factors.rows[:rank], factors.columns[:, :rank]
    transitions = np.matmul(rows, factors.shifted[:, :, :rank])
    initial = np.asarray(hankel.block[[0]] @ columns).ravel()
    return initial, np.ascontiguousarray(transitions), rows @ hankel.block[:, [0]].toarray().ravel()


def weigh(block: Any, scaling: float) -> tuple[Array, Array]:
    """One over a power of the sums of rows and of columns; a little is added, so that rare ones do not explode."""
    sums = np.asarray(block.sum(axis=1)).ravel(), np.asarray(block.sum(axis=0)).ravel()
    rows, columns = ((total + 5e-5 * total.max()) ** -scaling for total in sums)
    return rows, columns


def thin_svd(block: Any, rank: int, seed: int) -> tuple[Array, Array, Array]:
    """The top singular triplets, the largest first; signs are fixed."""
    smaller = min(block.shape)
    if smaller <= MAX_DENSE_SIZE or rank >= smaller:
        left, singular, right = np.linalg.svd(block.toarray(), full_matrices=False)
    else:
        start = np.random.default_rng(seed).standard_normal(smaller)
        left, singular, right = svds(block, k=rank, v0=start)
    order = np.argsort(-singular, kind="stable")[:rank]
    left, singular, right = left[:, order], singular[order], right[order].T
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(order.size)])
    return left * signs, singular, right * signs

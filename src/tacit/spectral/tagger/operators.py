"""Weighted automata over pairs (x, y) from counts of three neighbouring pairs.

With contexts p before a pair c and q behind it: ``H[p, q] = P(p_{t−1}, q_t)`` and ``H_c[p, q] = P(p_{t−1}, c_t = c,
q_{t+1})`` over the same windows with the same denominator. With the top n singular vectors V of H:
``A_c = (HV)⁺ H_c V``, ``α_1ᵀ = h_1ᵀ V`` with the contexts h_1 of first pairs, ``α_∞ = (HV)⁺ h_P`` with h_P the row sums
of H. The matrices H_c are never written down: every window adds one outer product of two vectors of length n to the
operator of its pair.
Rows and columns of H are divided by the roots of their sums first, which changes nothing for exact values and
weights rare contexts as their noise deserves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

MAX_DENSE = 400
"""Contexts up to which the whole SVD is taken; beyond it a randomised one of the top few vectors."""

NEGLIGIBLE = 1e-10
"""Singular values below this share of the largest are noise of rounding: the rank stops before them."""


class Windows(NamedTuple):
    """Neighbouring pairs, three at a time, and their weights in H and in the operators; both sum to about one.

    Attributes
    ----------
    before, after : contexts of the pairs before and behind
    pair : the pair in the middle
    weight, weight_of_three : of the window in H, and in the operator of its pair
    """

    before: Array
    pair: Array
    after: Array
    weight: Array
    weight_of_three: Array


class PairedAutomaton(NamedTuple):
    """``f(c_1 … c_m) = initialᵀ A_{c_1} … A_{c_m} final``, and the average state ``middle`` inside of sequences."""

    initial: Array
    operators: Array
    final: Array
    middle: Array

    @property
    def rank(self) -> int:
        return int(self.initial.size)


class Basis(NamedTuple):
    """The top singular vectors: ``left`` (n, rows) is (HV)⁺, ``right`` (columns, n) is V; best directions first."""

    left: Array
    right: Array
    rows: Array
    columns: Array
    singular_values: Array

    def cut(self, rank: int) -> Basis:
        """The same with fewer vectors."""
        values = self.singular_values[:rank]
        return Basis(self.left[:rank], self.right[:, :rank], self.rows, self.columns, values)


def find_basis(windows: Windows, context: Array, n_contexts: int, rank: int, seed: int) -> Basis:
    """The singular vectors of H; ``context[pair]`` is the context that a pair is for its neighbours."""
    places = windows.before, context[windows.pair]
    H = sparse.coo_array((windows.weight, places), shape=(n_contexts, n_contexts)).tocsr()
    rows, columns = np.asarray(H.sum(axis=1)).ravel(), np.asarray(H.sum(axis=0)).ravel()
    row_scale, column_scale = _inverse_root(rows), _inverse_root(columns)
    scaled = sparse.csr_array(sparse.diags_array(row_scale) @ H @ sparse.diags_array(column_scale))
    if n_contexts <= MAX_DENSE:
        U, values, Vt = np.linalg.svd(scaled.toarray(), full_matrices=False)
    else:
        U, values, Vt = randomized_svd(scaled, min(rank, n_contexts), n_oversamples=10, n_iter=2, random_state=seed)
    n = max(1, min(rank, int((values > NEGLIGIBLE * values[0]).sum())))
    left = (U[:, :n] / values[:n]).T * row_scale
    return Basis(left, Vt[:n].T * column_scale[:, None], rows, columns, values[:n])


def build_operators(windows: Windows, basis: Basis, n_pairs: int, first: Array) -> PairedAutomaton:
    """The automaton of a basis; ``first`` has the share of first pairs of each context. O(windows · n²)."""
    n = basis.left.shape[0]
    operators = np.zeros((n_pairs, n, n))
    left, right = np.ascontiguousarray(basis.left.T), np.ascontiguousarray(basis.right)
    small = np.uint16 if n_pairs <= 1 << 16 else np.int64  # numbers of two bytes are sorted by counting them
    order = np.argsort(windows.pair.astype(small, copy=False), kind="stable")
    _add_products(order, *windows[:3], windows.weight_of_three, left, right, operators)
    return PairedAutomaton(first @ right, operators, basis.left @ basis.rows, basis.columns @ right)


@kernel
def _add_products(
    order: Array, before: Array, pair: Array, after: Array, weight: Array, left: Array, right: Array, out: Array
) -> None:
    """``out[pair] += weight · left[before] ⊗ right[after]`` of every window, pair by pair.

    Four windows of one pair at a time, so that its operator is read and written once for all of them.
    """
    n = left.shape[1]
    place = 0
    while place < order.size:
        t = order[place]
        c = pair[t]
        into = out[c]
        if place + 4 <= order.size and pair[order[place + 3]] == c:
            t1, t2, t3 = order[place + 1], order[place + 2], order[place + 3]
            a, a1, a2, a3 = left[before[t]], left[before[t1]], left[before[t2]], left[before[t3]]
            b, b1, b2, b3 = right[after[t]], right[after[t1]], right[after[t2]], right[after[t3]]
            for i in range(n):
                share, share1, share2, share3 = (
                    weight[t] * a[i],
                    weight[t1] * a1[i],
                    weight[t2] * a2[i],
                    weight[t3] * a3[i],
                )
                row = into[i]
                for j in range(n):
                    row[j] += (share * b[j] + share1 * b1[j]) + (share2 * b2[j] + share3 * b3[j])
            place += 4
            continue
        a = left[before[t]]
        b = right[after[t]]
        for i in range(n):
            share = weight[t] * a[i]
            row = into[i]
            for j in range(n):
                row[j] += share * b[j]
        place += 1


def _inverse_root(sums: Array) -> Array:
    return np.asarray(np.where(sums > 0, 1 / np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0))

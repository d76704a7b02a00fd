"""Sums of rows of dense and sparse tables, by compiled loops."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


def cut_rows(table: Any, states: Any) -> Any:
    """Rows of a CSR table; consecutive ones share its memory."""
    if not isinstance(states, slice):
        return table[states]
    if states == slice(0, table.shape[0]):
        return table
    indptr = table.indptr[states.start : states.stop + 1]
    part = slice(indptr[0], indptr[-1])
    shape = (states.stop - states.start, table.shape[1])
    return sparse.csr_array((table.data[part], table.indices[part], indptr - indptr[0]), shape=shape)


@kernel
def add_rows(table: Array, labels: Array, states: Array, coef: Array, out: Array) -> None:
    """``out[labels[i]] += coef[i] · table[states[i]]`` for all i."""
    width = table.shape[1]
    for i in range(labels.size):
        c = coef[i]
        if c == 0.0:
            continue
        row = table[states[i]]
        into = out[labels[i]]
        for j in range(width):
            into[j] += c * row[j]


@kernel
def add_sparse_rows(
    data: Array, indices: Array, indptr: Array, labels: Array, states: Array, coef: Array, out: Array
) -> None:
    """`add_rows` for a CSR table."""
    for i in range(labels.size):
        c = coef[i]
        if c == 0.0:
            continue
        into = out[labels[i]]
        for p in range(indptr[states[i]], indptr[states[i] + 1]):
            into[indices[p]] += c * data[p]

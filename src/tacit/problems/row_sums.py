"""Sums of rows of tables, dense, sparse or elsewhere, by compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.table import Table

ROWS_AT_A_TIME = 1 << 15
"""Rows of a `Table` that are read at a time."""


def sum_rows(table: Any, labels: Array, rows: Any, coef: Array, out: Array) -> None:
    """``out[labels[i]] += coef[i] · table[rows[i]]`` for all i, one after the other; ``rows`` is a slice or indices."""
    if isinstance(table, Table):
        _sum_lent_rows(table, labels, rows, coef, out)
        return
    places = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    if sparse.issparse(table):
        add_sparse_rows(table.data, table.indices, table.indptr, labels, places, coef, out)
    else:
        add_rows(table, labels, places, coef, out)


def _sum_lent_rows(table: Table, labels: Array, rows: Any, coef: Array, out: Array) -> None:
    if not isinstance(rows, slice):  # rows are picked one by one
        wanted = np.flatnonzero(coef)
        labels, rows, coef = labels[wanted], rows[wanted], coef[wanted]
    for start in range(0, labels.size, ROWS_AT_A_TIME):
        own = slice(start, min(start + ROWS_AT_A_TIME, labels.size))
        places = slice(rows.start + own.start, rows.start + own.stop) if isinstance(rows, slice) else rows[own]
        with table.lend(places) as part:
            add_rows(part, labels[own], np.arange(len(part)), coef[own], out)


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

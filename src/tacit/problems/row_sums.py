"""Sums of rows of dense, sparse and file-backed tables, by compiled loops."""

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
    """``out[labels[i]] += coef[i] · table[rows[i]]`` for all i, in their order; ``rows`` is a slice or indices."""
    if isinstance(table, Table):
        _sum_table_rows(table, labels, rows, coef, out)
        return
    indices = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    if sparse.issparse(table):
        add_sparse_rows(table.data, table.indices, table.indptr, labels, indices, coef, out)
    else:
        add_rows(table, labels, indices, coef, out)


def _sum_table_rows(table: Table, labels: Array, rows: Any, coef: Array, out: Array) -> None:
    if not isinstance(rows, slice):  # rows are picked one by one
        wanted = np.flatnonzero(coef)
        labels, rows, coef = labels[wanted], rows[wanted], coef[wanted]
    for start in range(0, labels.size, ROWS_AT_A_TIME):
        own = slice(start, min(start + ROWS_AT_A_TIME, labels.size))
        part = slice(rows.start + own.start, rows.start + own.stop) if isinstance(rows, slice) else rows[own]
        with table.lend(part) as block:
            add_rows(block, labels[own], np.arange(len(block)), coef[own], out)


@kernel
def add_rows(table: Array, labels: Array, rows: Array, coef: Array, out: Array) -> None:
    """``out[labels[i]] += coef[i] · table[rows[i]]`` for all i."""
    width = table.shape[1]
    for i in range(labels.size):
        c = coef[i]
        if c == 0.0:
            continue
        row = table[rows[i]]
        into = out[labels[i]]
        for j in range(width):
            into[j] += c * row[j]


@kernel
def add_sparse_rows(
    data: Array, indices: Array, indptr: Array, labels: Array, rows: Array, coef: Array, out: Array
) -> None:
    """`add_rows` for a CSR table."""
    for i in range(labels.size):
        c = coef[i]
        if c == 0.0:
            continue
        into = out[labels[i]]
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            into[indices[p]] += c * data[p]

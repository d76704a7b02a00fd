"""Tables of losses, one number per output."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array


class LossTable(NamedTuple):
    """The loss of every output: ``table[label, column[i]]`` for sample i, or ``table[label, state]`` if column is None.

    A cost matrix is ``table`` transposed with the true label of sample i as ``column[i]``; a loss that looks at the
    hidden value has one column per state.
    """

    table: Array
    column: Array | None


def checked_losses(losses: LossTable, n_labels: int, n_rows: int, n_states: int) -> LossTable:
    """The same losses as contiguous arrays; an error if one is not finite, or negative, or if they do not fit.

    There is one column per state, or one of those that there are for each row.
    """
    table = np.ascontiguousarray(losses.table, dtype=np.float64)
    if table.ndim != 2 or len(table) != n_labels or (losses.column is None and table.shape[1] != n_states):
        raise ValueError(f"a loss table of shape {table.shape} for {n_labels} labels and {n_states} states")
    wrong = ~np.isfinite(table) | (table < 0)
    if wrong.any():
        raise ValueError(f"a loss of {table[wrong][0]}: losses must be finite and not negative")
    if losses.column is None:
        return LossTable(table, None)
    column = np.ascontiguousarray(losses.column, dtype=np.int64)
    if column.shape != (n_rows,) or not ((column >= 0) & (column < table.shape[1])).all():
        raise ValueError(f"the columns of a loss table are {n_rows} numbers from 0 to {table.shape[1] - 1}")
    return LossTable(table, column)

"""Tables of losses, one number per output."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import even_table, numbers, shorten


class LossTable(NamedTuple):
    """The loss of every output: ``table[label, column[i]]`` for sample i, or ``table[label, state]`` if column is None.

    A cost matrix is ``table`` transposed with the true label of sample i as ``column[i]``; a loss that looks at the
    hidden value has one column per state.
    """

    table: Array
    column: Array | None

    def cut(self, states: Any, samples: Any) -> LossTable:
        """The losses of some samples, which have these states."""
        table, column = self
        return LossTable(table[:, states], None) if column is None else LossTable(table, column[samples])


def checked_losses(losses: LossTable, n_labels: int, n_rows: int, n_states: int) -> LossTable:
    """The same losses as contiguous arrays; an error if one is not finite, or negative, or if they do not fit.

    There is one column per state, or one of those that there are for each row.
    """
    if not isinstance(losses, LossTable):
        raise TypeError(f"losses are a tacit.oracle.LossTable, got {shorten(losses)}")
    table = np.ascontiguousarray(numbers("the loss table", losses.table))
    if table.ndim != 2 or len(table) != n_labels or (losses.column is None and table.shape[1] != n_states):
        raise ValueError(f"a loss table of shape {table.shape} for {n_labels} labels and {n_states} states")
    wrong = ~np.isfinite(table) | (table < 0)
    if wrong.any():
        raise ValueError(f"a loss of {table[wrong][0]}: losses must be finite and not negative")
    if losses.column is None:
        return LossTable(table, None)
    column = even_table("the columns of a loss table", losses.column)
    is_whole = column.dtype.kind in "iu" and column.shape == (n_rows,)
    if not is_whole or not ((column >= 0) & (column < table.shape[1])).all():
        raise ValueError(f"the columns of a loss table are {n_rows} numbers from 0 to {table.shape[1] - 1}")
    return LossTable(table, np.ascontiguousarray(column, dtype=np.int64))

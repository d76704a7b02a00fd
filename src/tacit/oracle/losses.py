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


def checked_losses(losses: LossTable) -> LossTable:
    """The same losses as contiguous arrays; an error if one is not finite, or negative."""
    table = np.ascontiguousarray(losses.table, dtype=np.float64)
    wrong = ~np.isfinite(table) | (table < 0)
    if wrong.any():
        raise ValueError(f"a loss of {table[wrong][0]}: losses must be finite and not negative")
    column = None if losses.column is None else np.ascontiguousarray(losses.column, dtype=np.int64)
    return LossTable(table, column)

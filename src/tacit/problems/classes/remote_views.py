"""Views of samples whose rows are on workers: each worker makes those of its own samples, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.table import ShardedTable
from tacit.oracle import Schema
from tacit.problems.classes.sharded_blocks import ShardedClassBlocks
from tacit.problems.shared.principal_components import SAMPLES_AT_A_TIME, sample_blocks


class RemoteViews(ShardedClassBlocks):
    """`ShardedClassBlocks` of the table of all views, (n·T, width), which is nowhere as a whole.

    Parameters
    ----------
    rows : the table of samples, one row each, which workers have
    views : makes (samples, T, width) of rows, the first of which has this number
    dtype : of the views
    schema, offsets, supervision : as in `ClassBlocks`
    """

    row_alignment = SAMPLES_AT_A_TIME
    """Views are made of blocks of samples that begin at multiples of this, as in memory."""

    def __init__(
        self,
        rows: Any,
        views: Callable[[Array, int], Array],
        dtype: Any,
        schema: Schema,
        offsets: Array,
        **supervision: Any,
    ) -> None:
        self._views_of = views
        self.row_offsets = np.arange(offsets.size)
        self._skipped = self._begins = 0
        width = int(schema.blocks["weights"][-1])
        super().__init__(_Elsewhere(rows, (int(offsets[-1]), width), dtype), schema, offsets, **supervision)

    def part(self, first: int, last: int) -> Self:
        part = super().part(first, last)
        part._skipped = first % SAMPLES_AT_A_TIME
        part._begins = first - part._skipped
        part.row_offsets = np.arange(last - first + 1)
        return part

    def on_rows(self, table: Any) -> Self:
        """The same oracle with the views of these rows; the first few may belong to the samples before."""
        blocks = enumerate(sample_blocks(table))
        made = np.concatenate([self._views_of(rows, self._begins + k * SAMPLES_AT_A_TIME) for k, rows in blocks])
        own = made[self._skipped : self._skipped + self.n_samples]
        return super().on_rows(ShardedTable([np.ascontiguousarray(own.reshape(-1, own.shape[2]))]))


class _Elsewhere:
    """The shape of a table of views, whose samples are rows of another table."""

    ndim = 2

    def __init__(self, rows: Any, shape: tuple[int, int], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.distribute = rows.distribute
        self.add_to_checksum = rows.add_to_checksum
        self.give_back, self.fetch_behind = rows.give_back, rows.fetch_behind
        self._rows = rows

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __getitem__(self, key: Any) -> Any:
        return self._rows[key]

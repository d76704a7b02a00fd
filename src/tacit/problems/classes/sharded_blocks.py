"""`ClassBlocks` of a table in shards: the same products and sums, to the bit, of rows that are read block by block."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle.capabilities import KeepsDual
from tacit.problems.classes.blocks import ClassBlocks
from tacit.problems.shared.row_sums import add_rows
from tacit.problems.shared.sample_parts import cut_samples

MIN_IN_PLACE = 4_000_000
"""Multiplications from which on a block is multiplied as it is stored. Below a million, BLAS libraries have other
kernels for rows than for columns, which round differently; a copy of so few rows is cheap."""

ROWS_AT_A_TIME = 1 << 15
"""Rows that are copied at a time for a sum of features."""


class ShardedClassBlocks(ClassBlocks):
    """The table is a `tacit.data.shards.ShardedTable`, read in place; its pages are given back after every block.

    It keeps no dual variables for visits of single samples: `tacit.solvers.FrankWolfe` keeps planes instead.
    """

    def _keep(self, table: Any) -> None:
        self._rows = table
        self._columns = None

    lacks = (KeepsDual,)

    @property
    def on_workers(self) -> Any:
        """A function that lets workers answer for this oracle, where they have the rows; else None."""
        return getattr(self._rows, "distribute", None)

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the samples from first to last (exclusive), to be sent to where their rows are."""
        part = cut_samples(self, first, last)
        part._rows = None
        return part

    def on_rows(self, table: Any) -> Self:
        """The same oracle with these rows."""
        view = copy.copy(self)
        view._keep(table)
        return view

    def scores(self, w: Array, rows: Rows = None) -> Array:
        states = self.states(rows)
        if isinstance(states, slice):
            self._rows.fetch_behind(states.stop)
        scores = super().scores(w, rows)
        self._rows.give_back_rows(states)
        return scores

    def _columns_of(self, states: Any) -> Array:
        rows: Array = self._rows[states]
        if not isinstance(states, slice):
            return rows.T  # NumPy lays picked columns out in the same way
        size = self.n_labels * rows.size
        if size >= MIN_IN_PLACE and layouts_agree(self.n_labels, rows.shape[1], np.dtype(self._precision).str):
            return rows.T
        return np.ascontiguousarray(rows.T)

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        out = super().adjoint(V, rows)
        self._rows.give_back_rows(self.states(rows))
        return out

    def _add_rows(self, labels: Array, absolute: Array, coef: Array, out: Array) -> None:
        wanted = np.flatnonzero(coef)
        for start in range(0, wanted.size, ROWS_AT_A_TIME):
            part = wanted[start : start + ROWS_AT_A_TIME]
            rows = self._rows[absolute[part]]
            add_rows(rows, labels[part], np.arange(part.size), coef[part], out)
            self._rows.give_back_rows(absolute[part])


@cache
def layouts_agree(n_labels: int, width: int, dtype: str) -> bool:
    """Whether this BLAS rounds a large product in the same way for rows and for columns; tried out, once.

    A fit from memory multiplies columns. Where the two differ, blocks are copied, so that the result is the same.
    """
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((n_labels, width)).astype(dtype)
    smallest = MIN_IN_PLACE // (n_labels * width) + 1
    rows = rng.standard_normal((smallest + 16, width)).astype(dtype)
    columns = np.ascontiguousarray(rows.T)
    sizes = range(smallest, smallest + 16, 5)
    return all(np.array_equal(weights @ columns[:, :size], weights @ rows[:size].T) for size in sizes)

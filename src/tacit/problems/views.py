"""Views of samples by blocks of them: the same bits from memory, from files and from workers.

Principal components of the samples, all views in a temporary file, and views that workers make of their own samples.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from tacit.data.arrays import Array
from tacit.data.table import MappedArray, Table, lend
from tacit.oracle import Schema
from tacit.problems.classes.blocks import ClassBlocks
from tacit.runtime.blocks import one_blas_thread

SAMPLES_AT_A_TIME = 1024
"""Samples per block. It is part of the result: sums of other blocks round in another way."""

BLOCKS_PER_SUM = 16
"""Blocks that are summed up before they are added to the rest: a sum of products is as large as a thousand samples, and
fewer of them come home from workers."""

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says when a file cannot grow: the disk is full, or a limit of the user or of files is reached."""


class Moments(NamedTuple):
    """The sum of some rows, less one and the same row each, and that of the outer products of these differences."""

    total: Array
    products: Array


def sample_blocks(table: Any) -> Iterator[Array]:
    """The rows of a table, in memory or in shards, a block at a time."""
    n = table.shape[0]
    for first in range(0, n, SAMPLES_AT_A_TIME):
        last = min(first + SAMPLES_AT_A_TIME, n)
        with lend(table, slice(first, last)) as rows:
            yield np.asarray(rows)


def sum_moments(table: Any, origin: Array) -> Moments:
    """The moments of all rows of a table that is one sum of blocks, measured from ``origin``."""
    d = table.shape[1]
    total, products = np.zeros(d), np.zeros((d, d))
    for rows in sample_blocks(table):
        block = np.ascontiguousarray(rows, np.float64) - origin
        total += block.sum(axis=0)
        products += block.T @ block
    return Moments(total, products)


def principal_components(table: Any, kept: int) -> tuple[Array, Array]:
    """The mean of the rows of a table, and the (kept, d) directions of largest variance, in double precision.

    From the eigenvectors of the covariance, which is summed up block by block: O(n·d² + d³), and d² numbers of memory.
    Rows are measured from the first one: squares of numbers that lie far from zero would drown what they differ by. The
    largest entry of every component is positive, as scikit-learn has it. A table whose rows are elsewhere has
    ``moments(size, origin)``, which sums them up there, so many rows at a time.
    """
    n, d = table.shape
    size = SAMPLES_AT_A_TIME * BLOCKS_PER_SUM
    total, products = np.zeros(d), np.zeros((d, d))
    first = table.first_row if hasattr(table, "first_row") else table[0:1]
    origin = np.asarray(first, dtype=np.float64).ravel()
    with one_blas_thread:  # several change the last bits
        for part in table.moments(size, origin) if hasattr(table, "moments") else _moments_here(table, size, origin):
            total += part.total
            products += part.products
        shift = total / n
        covariance = (products - n * np.outer(shift, shift)) / max(n - 1, 1)
        components = np.ascontiguousarray(linalg.eigh(covariance, driver="evr")[1][:, ::-1][:, :kept].T)
    largest = components[np.arange(kept), np.abs(components).argmax(axis=1)]
    return origin + shift, components * np.sign(largest)[:, None]


def _moments_here(table: Any, size: int, origin: Array) -> Iterator[Moments]:
    for first in range(0, table.shape[0], size):
        last = min(first + size, table.shape[0])
        with lend(table, slice(first, last)) as rows:
            yield sum_moments(rows, origin)


def spool_views(table: Table, views: Callable[[Array, int], Array]) -> Table:
    """All views of all samples as one table, (n·T, width), in a temporary file that goes with it.

    Parameters
    ----------
    table : one row per sample
    views : makes (samples, T, width) of rows, the first of which has this number
    """
    folder = Path(tempfile.mkdtemp(prefix="tacit-views-"))
    try:
        _write_views(folder / "views.npy", table, views)
        spooled = Table([MappedArray(folder / "views.npy")])
    except BaseException as error:
        shutil.rmtree(folder)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            told = (
                f"the views of {table.shape[0]} samples do not fit into the temporary folder {folder.parent}: "
                f"{error.strerror}; make room there, or name another folder in the environment variable TMPDIR"
            )
            raise OSError(error.errno, told) from error
        raise
    weakref.finalize(spooled, shutil.rmtree, folder, ignore_errors=True)
    return spooled


def _write_views(path: Path, table: Table, views: Callable[[Array, int], Array]) -> None:
    with path.open("wb") as file:
        for k, rows in enumerate(sample_blocks(table)):
            own = np.ascontiguousarray(views(rows, k * SAMPLES_AT_A_TIME))
            if k == 0:
                shape = table.shape[0] * own.shape[1], own.shape[2]
                kind = np.lib.format.dtype_to_descr(own.dtype)
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(own.data)


class RemoteViews(ClassBlocks):
    """`ClassBlocks` of the table of all views, (n·T, width), which is nowhere as a whole.

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
        return super().on_rows(Table([np.ascontiguousarray(own.reshape(-1, own.shape[2]))]))


class _Elsewhere(Table):
    """The shape of a table of views, whose samples are rows of another table."""

    def __init__(self, rows: Table, shape: tuple[int, int], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.distribute = rows.distribute
        self._rows, self._releases = rows, False

    def add_to_checksum(self, total: int) -> int:
        return self._rows.add_to_checksum(total)

    def __getitem__(self, key: Any) -> Array:
        return self._rows[key]

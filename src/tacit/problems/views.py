"""Views of samples, made block by block: the same bits from memory, from files and from workers.

Principal components of the samples, all views in a temporary file, and views that workers make of their samples.
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
"""Samples per block. It affects the result: sums over other blocks round differently."""

BLOCKS_PER_SUM = 16
"""Blocks that are summed up before they are added to the rest: a sum of products is as large as a thousand samples, so
workers should send few of them."""

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a file that cannot grow: the disk is full, or a limit of the user or of files is reached."""


ViewMaker = Callable[[Array, int], Array]
"""Makes the views of some rows, (samples, T, width); the integer is the number of the first row."""


class Moments(NamedTuple):
    """The sum of some rows less an origin, and the sum of the outer products of these differences."""

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
    """The moments of all rows of a table, summed block by block, measured from ``origin``."""
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
    Rows are measured from the first one, since squares of numbers far from zero would lose their differences to
    rounding. The largest entry of every component is positive, as in scikit-learn. A table on workers has
    ``moments(size, origin)``, which sums up there, ``size`` rows at a time.
    """
    n, d = table.shape
    size = SAMPLES_AT_A_TIME * BLOCKS_PER_SUM
    total, products = np.zeros(d), np.zeros((d, d))
    first = table.first_row if hasattr(table, "first_row") else table[0:1]
    origin = np.asarray(first, dtype=np.float64).ravel()
    with one_blas_thread:  # several change the last bits
        for part in table.moments(size, origin) if hasattr(table, "moments") else _block_moments(table, size, origin):
            total += part.total
            products += part.products
        shift = total / n
        covariance = (products - n * np.outer(shift, shift)) / max(n - 1, 1)
        components = np.ascontiguousarray(linalg.eigh(covariance, driver="evr")[1][:, ::-1][:, :kept].T)
    largest = components[np.arange(kept), np.abs(components).argmax(axis=1)]
    return origin + shift, components * np.sign(largest)[:, None]


def _block_moments(table: Any, size: int, origin: Array) -> Iterator[Moments]:
    for first in range(0, table.shape[0], size):
        last = min(first + size, table.shape[0])
        with lend(table, slice(first, last)) as rows:
            yield sum_moments(rows, origin)


def spool_views(table: Table, views: ViewMaker) -> Table:
    """All views of all samples as one table, (n·T, width), in a temporary file that is deleted with it.

    Parameters
    ----------
    table : one row per sample
    views : makes the views
    """
    folder = Path(tempfile.mkdtemp(prefix="tacit-views-"))
    try:
        _write_views(folder / "views.npy", table, views)
        spooled = Table([MappedArray(folder / "views.npy")])
    except BaseException as error:
        shutil.rmtree(folder)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            cause = f"the views of {table.shape[0]} samples do not fit into {folder.parent}: {error.strerror}"
            raise OSError(error.errno, f"{cause}; free some space, or set TMPDIR to another folder") from error
        raise
    weakref.finalize(spooled, shutil.rmtree, folder, ignore_errors=True)
    return spooled


def _write_views(path: Path, table: Table, views: ViewMaker) -> None:
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
    """`ClassBlocks` of the table of all views, (n·T, width), which workers make of the samples that they hold.

    Parameters
    ----------
    rows : the table of samples, one row each, on the workers
    views : makes the views
    dtype : of the views
    schema, offsets, supervision : as in `ClassBlocks`
    """

    row_alignment = SAMPLES_AT_A_TIME
    """Views are made of blocks of samples that begin at multiples of this, as in memory."""

    def __init__(
        self, rows: Any, views: ViewMaker, dtype: Any, schema: Schema, offsets: Array, **supervision: Any
    ) -> None:
        self._views_of = views
        self.row_offsets = np.arange(offsets.size)
        self._skipped = self._begins = 0
        width = int(schema.blocks["weights"][-1])
        super().__init__(_RemoteTable(rows, (int(offsets[-1]), width), dtype), schema, offsets, **supervision)

    def part(self, first: int, last: int) -> Self:
        part = super().part(first, last)
        part._skipped = first % SAMPLES_AT_A_TIME
        part._begins = first - part._skipped
        part.row_offsets = np.arange(last - first + 1)
        return part

    def on_rows(self, table: Any) -> Self:
        """The same oracle with the views of these rows; the first few may belong to the samples before."""
        blocks = enumerate(sample_blocks(table))
        views = np.concatenate([self._views_of(rows, self._begins + k * SAMPLES_AT_A_TIME) for k, rows in blocks])
        own = views[self._skipped : self._skipped + self.n_samples]
        return super().on_rows(Table([np.ascontiguousarray(own.reshape(-1, own.shape[2]))]))


class _RemoteTable(Table):
    """The shape of a table of views, which are made of the rows of another table."""

    def __init__(self, rows: Table, shape: tuple[int, int], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.distribute = rows.distribute
        self._rows, self._releases = rows, False

    def add_to_checksum(self, total: int) -> int:
        return self._rows.add_to_checksum(total)

    def __getitem__(self, key: Any) -> Array:
        return self._rows[key]

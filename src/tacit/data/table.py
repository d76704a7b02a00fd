"""Tables of rows that are read a block at a time: mapped from files, or on workers.

"Shard" means a file, "block" a range of rows. An oracle takes an array, a CSR table or a `Table`, and asks for rows by
`lend`; so it is the same oracle, with the same bits, wherever the rows are.
"""

from __future__ import annotations

import copy
import math
import mmap
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, read_npy_header

MAX_RESIDENT = 1 << 28
"""Bytes of a mapped table up to which its pages stay: giving them back costs a fault each when they are read again."""

CHUNK_BYTES = 1 << 24
"""Bytes that are read at a time by a walk through the whole table."""

AHEAD_BYTES = 1 << 25
"""Bytes behind a block that the system is asked to read while the block is computed."""


class Table:
    """Rows of several arrays, one after the other, as one table; where they are cut changes nothing.

    Parameters
    ----------
    pieces : arrays of equal width and type, mapped or in memory
    max_resident : see the constant of this module

    >>> table = Table([np.zeros((2, 3)), np.ones((4, 3))])
    >>> table.shape, table[1:3].sum(), table[np.array([0, 5])].sum()
    ((6, 3), np.float64(3.0), np.float64(3.0))
    """

    ndim = 2
    distribute: Callable[[Any], Any] | None = None
    """Lets workers answer for an oracle of these rows, where they have them; see `tacit.dask`."""

    def __init__(self, pieces: Sequence[Array | MappedArray], max_resident: int | None = None) -> None:
        self._pieces = pieces
        self._arrays = [piece.rows if isinstance(piece, MappedArray) else piece for piece in pieces]
        self._starts = np.concatenate([[0], np.cumsum([len(rows) for rows in self._arrays])]).astype(np.int64)
        self.dtype = self._arrays[0].dtype
        self.shape = int(self._starts[-1]), int(self._arrays[0].shape[1])
        most = MAX_RESIDENT if max_resident is None else max_resident
        n_bytes = self.shape[0] * self.shape[1] * self.dtype.itemsize
        self._releases = n_bytes > most and any(isinstance(piece, MappedArray) for piece in pieces)
        self._fetched = 0

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Array:
        """Rows of a slice of step one (a view where they are in one piece), or of an array of indices (a copy)."""
        if isinstance(key, slice):
            first, last, _ = key.indices(len(self))
            parts = [rows for rows, _ in self._runs(first, max(first, last))]
            if len(parts) == 1:
                return parts[0]
            return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)
        if len(self._arrays) == 1:
            return np.asarray(self._arrays[0][key])
        out = np.empty((len(key), self.shape[1]), self.dtype)
        owner = np.searchsorted(self._starts, key, side="right") - 1
        for piece in np.unique(owner).tolist():
            own = owner == piece
            out[own] = self._arrays[piece][key[own] - self._starts[piece]]
        return out

    @property
    def first_row(self) -> Array:
        """(1, width): what a function of rows can be tried on."""
        return self[0:1]

    def chunks(self) -> Iterator[Array]:
        """All rows in order, a few at a time; their pages are given back."""
        step = max(1, CHUNK_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        for first in range(0, len(self), step):
            last = min(first + step, len(self))
            yield from (rows for rows, _ in self._runs(first, last))
            self.release(slice(first, last))

    def add_to_checksum(self, total: int) -> int:
        """The CRC-32 of all rows, from that of what comes before them."""
        for rows in self.chunks():
            total = zlib.crc32(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data, total)
        return total

    @contextmanager
    def lend(self, rows: Any) -> Iterator[Array]:
        """Rows for a short time: the next ones are read in the meantime, and then the pages are released."""
        if isinstance(rows, slice):
            self.prefetch(rows.stop)
        yield self[rows]
        self.release(rows)

    def release(self, rows: Any) -> None:
        """Let the system take the pages of these rows, where the table is large; of indices all from the first to the
        last go."""
        if not self._releases or not (isinstance(rows, slice) or len(rows)):
            return
        span = (rows.start, rows.stop) if isinstance(rows, slice) else (int(rows.min()), int(rows.max()) + 1)
        for _, (piece, start, stop) in self._runs(*span):
            mapped = self._pieces[piece]
            if isinstance(mapped, MappedArray):
                mapped.release(start, stop)

    def prefetch(self, last: int) -> None:
        """Let the system read the rows from this one on, which the next blocks ask for, where the table is large."""
        ahead = max(1, AHEAD_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        if not self._releases or self._fetched - ahead <= last < self._fetched - ahead // 2:
            return  # it was asked for already
        self._fetched = last + ahead
        for _, (piece, start, stop) in self._runs(last, min(last + ahead, len(self))):
            mapped = self._pieces[piece]
            if isinstance(mapped, MappedArray):
                mapped.prefetch(start, stop)

    def _runs(self, first: int, last: int) -> Iterator[tuple[Array, tuple[int, int, int]]]:
        """The rows from first to last (exclusive), piece by piece, and which of which piece they are."""
        piece = int(np.searchsorted(self._starts, first, side="right")) - 1
        while first < last:
            start, end = int(self._starts[piece]), int(self._starts[piece + 1])
            stop = min(last, end)
            if first < stop:
                yield self._arrays[piece][first - start : stop - start], (piece, first - start, stop - start)
            first, piece = max(first, stop), piece + 1


def lend(table: Any, rows: Any) -> AbstractContextManager[Any]:
    """Rows of an array, of a CSR table or of a `Table`, for a short time."""
    return table.lend(rows) if isinstance(table, Table) else nullcontext(cut_rows(table, rows))


def cut_rows(table: Any, rows: Any) -> Any:
    """Rows of a table, dense or CSR; consecutive ones share its memory."""
    if not isinstance(rows, slice) or not sparse.issparse(table):
        return table[rows]
    if rows == slice(0, table.shape[0]):
        return table
    indptr = table.indptr[rows.start : rows.stop + 1]
    part = slice(indptr[0], indptr[-1])
    shape = (rows.stop - rows.start, table.shape[1])
    return sparse.csr_array((table.data[part], table.indices[part], indptr - indptr[0]), shape=shape)


class MappedArray:
    """A ``.npy`` file, read-only and mapped: pages are read when they are touched.

    Parameters
    ----------
    path : the file
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            shape, is_column_major, dtype = read_npy_header(file)
            self._start = file.tell()
            if is_column_major or not shape:
                raise ValueError("it holds a single number, or its rows are not stored one after the other")
            size = math.prod(shape)
            if path.stat().st_size != self._start + size * dtype.itemsize:
                raise ValueError(f"it has {path.stat().st_size} bytes, not those of shape {shape} of {dtype}")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rows: Array = np.frombuffer(self._map, dtype, size, self._start).reshape(shape)
        self._row_bytes = self.rows.itemsize * int(np.prod(shape[1:]))

    def release(self, first: int, last: int) -> None:
        """Let the system take the pages of these rows: they no longer count as memory of this process."""
        self._advise("MADV_DONTNEED", first, last)

    def prefetch(self, first: int, last: int) -> None:
        """Ask the system to read these rows from disk in the meantime, where they are not in its memory."""
        self._advise("MADV_WILLNEED", first, last)

    def _advise(self, advice: str, first: int, last: int) -> None:
        page = mmap.PAGESIZE
        start = (self._start + first * self._row_bytes) // page * page
        stop = self._start + last * self._row_bytes
        if stop > start and hasattr(mmap, advice):
            self._map.madvise(getattr(mmap, advice), start, stop - start)

    def part(self, first: int, last: int) -> MappedArray:
        """The rows from first to last (exclusive), of the same map."""
        own = copy.copy(self)
        own.rows = self.rows[first:last]
        own._start = self._start + first * self._row_bytes
        return own

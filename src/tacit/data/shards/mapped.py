"""NumPy files mapped into memory, whose pages can be given back to the system."""

from __future__ import annotations

import copy
import mmap
from pathlib import Path

import numpy as np

from tacit.data.arrays import Array


class MappedArray:
    """A ``.npy`` file, read-only and mapped: pages are read when they are touched.

    Parameters
    ----------
    path : the file
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, is_column_major, dtype = read(file)
            self._start = file.tell()
            if is_column_major or dtype.hasobject or not shape:
                raise ValueError("it holds objects or a single number, or its rows are not stored one after the other")
            size = int(np.prod(shape))
            if path.stat().st_size != self._start + size * dtype.itemsize:
                raise ValueError(f"it has {path.stat().st_size} bytes, not those of shape {shape} of {dtype}")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rows: Array = np.frombuffer(self._map, dtype, size, self._start).reshape(shape)
        self._row_bytes = self.rows.itemsize * int(np.prod(shape[1:]))

    def give_back(self, first: int, last: int) -> None:
        """Let the system take the pages of these rows: they no longer count as memory of this process."""
        page = mmap.PAGESIZE
        start = (self._start + first * self._row_bytes) // page * page
        stop = self._start + last * self._row_bytes
        if stop > start and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def fetch(self, first: int, last: int) -> None:
        """Ask the system to read these rows from disk in the meantime, where they are not in its memory."""
        page = mmap.PAGESIZE
        start = (self._start + first * self._row_bytes) // page * page
        stop = self._start + last * self._row_bytes
        if stop > start and hasattr(mmap, "MADV_WILLNEED"):
            self._map.madvise(mmap.MADV_WILLNEED, start, stop - start)

    def part(self, first: int, last: int) -> MappedArray:
        """The rows from first to last (exclusive), of the same map."""
        own = copy.copy(self)
        own.rows = self.rows[first:last]
        own._start = self._start + first * self._row_bytes
        return own

"""Checksums of arrays: whether data are the same as before."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from scipy import sparse


def checksum(*arrays: Any) -> str:
    """One checksum of several arrays, dense or CSR, shapes and types included. None counts as a value of its own.

    >>> checksum(np.arange(3), None) == checksum(np.arange(3), None) != checksum(None, np.arange(3))
    True
    """
    total = 0
    flat = [part for a in arrays for part in ((a.data, a.indices, a.indptr) if sparse.issparse(a) else (a,))]
    for array in flat:
        if hasattr(array, "chunks"):  # a table in pieces: the same checksum as that of one in memory
            total = zlib.crc32(f"{array.dtype.str}{array.shape}False".encode(), total)
            for rows in array.chunks():
                total = zlib.crc32(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data, total)
            continue
        values = np.ascontiguousarray(np.zeros(0) if array is None else array)
        total = zlib.crc32(f"{values.dtype.str}{values.shape}{array is None}".encode(), total)
        total = zlib.crc32(values.reshape(-1).view(np.uint8).data, total)
    return f"{total:08x}"

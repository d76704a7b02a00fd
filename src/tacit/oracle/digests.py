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
        if hasattr(array, "add_to_checksum"):  # a table in shards: the same checksum as that of one in memory
            total = array.add_to_checksum(zlib.crc32(f"{array.dtype.str}{array.shape}False".encode(), total))
            continue
        values = np.ascontiguousarray(np.zeros(0) if array is None else array)
        total = zlib.crc32(f"{values.dtype.str}{values.shape}{array is None}".encode(), total)
        total = zlib.crc32(values.reshape(-1).view(np.uint8).data, total)
    return f"{total:08x}"


_POLYNOMIAL = 0xEDB88320  # of CRC-32, its bits reversed


def combine_crc32(first: int, second: int, length: int) -> int:
    """The CRC-32 of two byte strings, one after the other, from that of each and the length of the second.

    >>> combine_crc32(zlib.crc32(b"one "), zlib.crc32(b"shard"), 5) == zlib.crc32(b"one shard")
    True
    """
    shift, power = 1 << 31, 1 << 23  # the polynomials 1 and x⁸, by which a byte shifts what comes before it
    while length:
        if length & 1:
            shift = _multiply(power, shift)
        power = _multiply(power, power)
        length >>= 1
    return _multiply(shift, first) ^ second


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    product = 0
    for place in range(31, -1, -1):
        if a >> place & 1:
            product ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product

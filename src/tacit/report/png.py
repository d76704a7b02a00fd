"""Images as PNG files, without a library for images."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from tacit.data.arrays import Array


def encode_png(image: Array) -> bytes:
    """An image of bytes, grey (rows, columns) or colour (rows, columns, 3), as a PNG file.

    >>> encode_png(np.zeros((2, 3), np.uint8))[:4]
    b'\\x89PNG'
    """

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = image.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if image.ndim == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(image, dtype=np.uint8))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")

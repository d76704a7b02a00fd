"""Handwritten digits in the idx format (LeCun & Cortes), packed by gzip or not."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.datasets.location import MOST_BYTES, find_file, find_folder

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
MOST_DIMENSIONS = 32
DEFLATE = 1032
"""Deflate packs no more than this many bytes into one."""
_PARTS = {"train": "train", "test": "t10k"}


class Images(NamedTuple):
    """Images of one size, (n, height, width), and their labels."""

    X: Array
    y: Array


def mnist(
    folder: str | os.PathLike[str] | None = None, part: str = "train", digits: Sequence[int] | None = None
) -> Images:
    """The digits of MNIST: 60,000 to learn from, 10,000 to test on, 28 × 28 grey values from 0 to 255.

    Parameters
    ----------
    folder : where ``train-images-idx3-ubyte`` and its three companions are, as they are or with ``.gz``; None for
        ``mnist`` below the folder that the environment variable TACIT_DATA names
    part : "train" or "test"
    digits : only these, such as ``(3, 8)``; None for all

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_idx(f"{folder}/t10k-images-idx3-ubyte.gz", np.zeros((3, 28, 28), np.uint8))
    ...     write_idx(f"{folder}/t10k-labels-idx1-ubyte.gz", np.array([3, 8, 1], np.uint8))
    ...     X, y = mnist(folder, "test", digits=(3, 8))
    >>> X.shape, y
    ((2, 28, 28), array([3, 8], dtype=uint8))
    """
    if part not in _PARTS:
        raise ValueError(f"part must be 'train' or 'test', got {part!r}")
    place = find_folder(folder, "mnist")
    X = read_idx(_file(place, f"{_PARTS[part]}-images-idx3-ubyte"))
    y = read_idx(_file(place, f"{_PARTS[part]}-labels-idx1-ubyte"))
    if X.ndim != 3 or y.ndim != 1 or len(X) != len(y):
        raise ValueError(
            f"{str(place)!r} holds {part} images of shape {X.shape} and labels of shape {y.shape}, which do not go "
            "together; MNIST has (n, 28, 28) and (n,)"
        )
    if digits is None:
        return Images(X, y)
    if isinstance(digits, (str, int)):
        raise TypeError(f"digits is a list such as (3, 8), got {digits!r}")
    missing = [digit for digit in digits if digit not in np.unique(y)]
    if missing:
        raise ValueError(f"digits names {missing[0]!r}, which is none of the labels {np.unique(y).tolist()}")
    chosen = np.isin(y, np.asarray(digits))
    return Images(X[chosen], y[chosen])


def read_idx(path: str | os.PathLike[str]) -> Array:
    """One array from an idx file, unpacked if its name ends in ``.gz``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_idx(f"{folder}/few.gz", np.arange(6, dtype=np.uint8).reshape(2, 3))
    ...     read_idx(f"{folder}/few.gz")
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """
    place = find_file(path, "an idx file")
    with gzip.open(place) if place.suffix == ".gz" else place.open("rb") as stream:
        try:
            start = stream.read(4)
            is_idx = len(start) == 4 and start[:2] == b"\0\0" and start[2] in _TYPES
            if not is_idx or not 1 <= start[3] <= MOST_DIMENSIONS:
                raise ValueError(f"{str(place)!r} is not an idx file: it starts with {start!r}")
            sizes = stream.read(4 * start[3])
            if len(sizes) < 4 * start[3]:
                raise ValueError(f"{str(place)!r} is truncated: it ends within its header; fetch it again")
            shape = tuple(np.frombuffer(sizes, ">u4").tolist())
            kind = np.dtype(_TYPES[start[2]])
            expected = math.prod(shape) * kind.itemsize
            room = place.stat().st_size * (DEFLATE if place.suffix == ".gz" else 1)
            if expected > room:
                raise ValueError(f"{str(place)!r} is too short for {expected} bytes of {shape}: truncated or changed")
            if expected > MOST_BYTES:
                raise ValueError(
                    f"{str(place)!r} unpacks to {expected} bytes of {shape}; at most {MOST_BYTES} are read"
                )
            content = stream.read(expected + 1)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{str(place)!r} is truncated or not a gzip file ({error}); fetch it again") from error
    if len(content) != expected:
        have = "more" if len(content) > expected else f"{len(content)}"
        raise ValueError(f"{str(place)!r} has {have} bytes where {shape} needs {expected}: truncated or changed")
    return np.frombuffer(content, kind).reshape(shape).astype(kind.newbyteorder("="))


def write_idx(path: str | os.PathLike[str], array: Array) -> None:
    """Write an array as an idx file, packed if the name ends in ``.gz``: the inverse of `read_idx`."""
    codes = {np.dtype(name).newbyteorder("="): code for code, name in _TYPES.items()}
    if array.dtype.newbyteorder("=") not in codes or not 1 <= array.ndim <= MOST_DIMENSIONS:
        raise ValueError(f"idx files hold {', '.join(map(str, codes))}, got {array.dtype} of {array.ndim} dimensions")
    code = codes[array.dtype.newbyteorder("=")]
    header = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = header + np.ascontiguousarray(array, dtype=_TYPES[code]).tobytes()
    Path(path).write_bytes(gzip.compress(content, mtime=0) if Path(path).suffix == ".gz" else content)


def _file(folder: Path, name: str) -> Path:
    for candidate in (folder / f"{name}.gz", folder / name):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"{str(folder)!r} has neither {name}.gz nor {name}; fetch the four files of MNIST")

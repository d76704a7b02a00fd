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

from tacit.data.arrays import Array
from tacit.data.labels import kind_of_label
from tacit.data.parameters import even_table, file_path, is_list, one_of, reason, shorten
from tacit.data.reading import MAX_BYTES, check_promise, find_file, find_folder, named, opened, unreadable

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
MAX_DIMENSIONS = 32
_PARTS = {"train": "train", "test": "t10k"}


class Images(NamedTuple):
    """Images of one size, (n, height, width), and their labels."""

    X: Array
    y: Array


def mnist(
    folder: str | os.PathLike[str] | None = None,
    part: str = "train",
    digits: Sequence[int] | None = None,
    *,
    max_bytes: int = MAX_BYTES,
) -> Images:
    """The digits of MNIST: 60,000 to learn from, 10,000 to test on, 28 × 28 grey values from 0 to 255.

    Parameters
    ----------
    folder : where ``train-images-idx3-ubyte`` and its three companions are, as they are or with ``.gz``; None for
        ``mnist`` below the folder that the environment variable TACIT_DATA names
    part : "train" or "test"
    digits : only these, such as ``(3, 8)``; None for all
    max_bytes : larger files are refused before they are unpacked

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_idx(f"{folder}/t10k-images-idx3-ubyte.gz", np.zeros((3, 28, 28), np.uint8))
    ...     write_idx(f"{folder}/t10k-labels-idx1-ubyte.gz", np.array([3, 8, 1], np.uint8))
    ...     X, y = mnist(folder, "test", digits=(3, 8))
    >>> X.shape, y
    ((2, 28, 28), array([3, 8], dtype=uint8))
    """
    one_of("part", part, tuple(_PARTS))
    place = find_folder(folder, "mnist")
    X = read_idx(_file(place, f"{_PARTS[part]}-images-idx3-ubyte"), max_bytes)
    y = read_idx(_file(place, f"{_PARTS[part]}-labels-idx1-ubyte"), max_bytes)
    if X.ndim != 3 or y.ndim != 1 or len(X) != len(y):
        raise ValueError(
            f"{named(place)} holds {part} images of shape {X.shape} and labels of shape {y.shape}, which do not go "
            "together; MNIST has (n, 28, 28) and (n,)"
        )
    if digits is None:
        return Images(X, y)
    if not isinstance(digits, list | tuple | range | np.ndarray) or not is_list(digits):
        raise TypeError(f"digits is a list such as (3, 8), got {shorten(digits)}")
    labels = np.unique(y).tolist()
    missing = [digit for digit in list(digits) if not kind_of_label(digit) or digit not in labels]
    if missing:
        raise ValueError(f"digits names {shorten(missing[0])}, which is none of the labels {shorten(labels)}")
    chosen = np.isin(y, np.asarray(digits))
    return Images(X[chosen], y[chosen])


def read_idx(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Array:
    """One array from an idx file, unpacked if its name ends in ``.gz``; at most ``max_bytes`` are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_idx(f"{folder}/few.gz", np.arange(6, dtype=np.uint8).reshape(2, 3))
    ...     read_idx(f"{folder}/few.gz")
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """
    place = find_file(path, "an idx file")
    try:
        with opened(place) as stream:
            start = stream.read(4)
            is_idx = len(start) == 4 and start[:2] == b"\0\0" and start[2] in _TYPES
            if not is_idx or not 1 <= start[3] <= MAX_DIMENSIONS:
                raise ValueError(f"{named(place)} is not an idx file: it starts with {start!r}")
            sizes = stream.read(4 * start[3])
            if len(sizes) < 4 * start[3]:
                raise ValueError(f"{named(place)} is truncated: it ends within its header; fetch it again")
            shape = tuple(np.frombuffer(sizes, ">u4").tolist())
            kind = np.dtype(_TYPES[start[2]])
            expected = math.prod(shape) * kind.itemsize
            if shape[0] and 0 in shape:
                raise ValueError(f"{named(place)} promises {shape[0]} rows of nothing: truncated or changed")
            check_promise(place, expected, max_bytes)
            content = stream.read(expected + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{named(place)} is truncated or not a gzip file ({reason(error)}); fetch it again") from error
    except OSError as error:
        raise unreadable(place, error) from error
    if len(content) != expected:
        have = "more" if len(content) > expected else f"{len(content)}"
        raise ValueError(f"{named(place)} has {have} bytes where {shape} needs {expected}: truncated or changed")
    return np.frombuffer(content, kind).reshape(shape).astype(kind.newbyteorder("="))


def write_idx(path: str | os.PathLike[str], array: Array) -> None:
    """Write an array as an idx file, packed if the name ends in ``.gz``: the inverse of `read_idx`."""
    place, array = file_path("path", path), even_table("array", array)
    codes = {np.dtype(name).newbyteorder("="): code for code, name in _TYPES.items()}
    if array.dtype.newbyteorder("=") not in codes or not 1 <= array.ndim <= MAX_DIMENSIONS:
        raise ValueError(f"idx files hold {', '.join(map(str, codes))}, got {array.dtype} of {array.ndim} dimensions")
    code = codes[array.dtype.newbyteorder("=")]
    header = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = header + np.ascontiguousarray(array, dtype=_TYPES[code]).tobytes()
    try:
        place.write_bytes(gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)
    except OSError as error:
        raise OSError(error.errno, f"{named(place)} could not be written: {error.strerror}") from error


def _file(folder: Path, name: str) -> Path:
    for candidate in (folder / f"{name}.gz", folder / name):
        if os.path.isfile(candidate):
            return candidate
    raise FileNotFoundError(f"{named(folder)} has neither {name}.gz nor {name}; fetch the four files of MNIST")

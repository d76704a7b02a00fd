"""Digits: handwritten ones in the idx format (LeCun & Cortes), and drawn ones, each rotated by a known angle."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import kind_of_label
from tacit.data.parameters import even_table, file_path, is_list, number, one_of, shorten, whole_number
from tacit.data.reading import (
    MAX_BYTES,
    check_promise,
    find_file,
    find_folder,
    find_packed,
    open_unpacked,
    quote,
    reading,
)

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
MAX_DIMENSIONS = 32
_PARTS = {"train": "train", "test": "t10k"}

SHORTEST_SIDE = 12
"""Pixels below which digits cannot be distinguished."""
POINTS = 24
"""Points along a stroke, close enough to be one line."""
ROOM = 1.25
"""Width of the image where the square of the strokes is 1: rotated corners stay inside."""


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
    """The digits of MNIST: 60,000 for training, 10,000 for testing, 28 × 28 grey values from 0 to 255.

    Parameters
    ----------
    folder : with ``train-images-idx3-ubyte`` and its three companions, plain or ``.gz``; None for ``mnist`` below the
        folder that the environment variable TACIT_DATA names
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
    path = find_folder(folder, "mnist")
    names = (f"{_PARTS[part]}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1"))
    X, y = (read_idx(find_packed(path, name, "fetch the four files of MNIST"), max_bytes) for name in names)
    if X.ndim != 3 or y.ndim != 1 or len(X) != len(y):
        raise ValueError(
            f"{quote(path)}: {part} images have shape {X.shape} and labels have shape {y.shape}; MNIST has (n, 28, 28) "
            "and (n,)"
        )
    if digits is None:
        return Images(X, y)
    if not isinstance(digits, list | tuple | range | np.ndarray) or not is_list(digits):
        raise TypeError(f"digits must be a list such as (3, 8), got {shorten(digits)}")
    labels = np.unique(y).tolist()
    missing = [digit for digit in list(digits) if not kind_of_label(digit) or digit not in labels]
    if missing:
        raise ValueError(f"digits must be among the labels {shorten(labels)}, got {shorten(missing[0])}")
    chosen = np.isin(y, np.asarray(digits))
    return Images(X[chosen], y[chosen])


def read_idx(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Array:
    """Read an array from an idx file, unpacked if its name ends in ``.gz``; at most ``max_bytes`` are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_idx(f"{folder}/few.gz", np.arange(6, dtype=np.uint8).reshape(2, 3))
    ...     read_idx(f"{folder}/few.gz")
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """
    path = find_file(path, "an idx file")
    with reading(path), open_unpacked(path) as stream:
        start = stream.read(4)
        is_idx = len(start) == 4 and start[:2] == b"\0\0" and start[2] in _TYPES
        if not is_idx or not 1 <= start[3] <= MAX_DIMENSIONS:
            raise ValueError(f"{quote(path)} is not an idx file: it starts with {start!r}")
        sizes = stream.read(4 * start[3])
        if len(sizes) < 4 * start[3]:
            raise ValueError(f"{quote(path)} is truncated: it ends in its header; fetch it again")
        shape = tuple(np.frombuffer(sizes, ">u4").tolist())
        kind = np.dtype(_TYPES[start[2]])
        expected = math.prod(shape) * kind.itemsize
        if shape[0] and 0 in shape:
            raise ValueError(f"{quote(path)} has {shape[0]} rows without values: truncated or changed")
        check_promise(path, expected, max_bytes)
        content = stream.read(expected + 1)
    if len(content) != expected:
        have = "more" if len(content) > expected else len(content)
        raise ValueError(f"{quote(path)} has {have} bytes, but shape {shape} needs {expected}: truncated or changed")
    return np.frombuffer(content, kind).reshape(shape).astype(kind.newbyteorder("="))


def write_idx(path: str | os.PathLike[str], array: Array) -> None:
    """Write an array as an idx file, packed if the name ends in ``.gz``: the inverse of `read_idx`."""
    path, array = file_path("path", path), even_table("array", array)
    codes = {np.dtype(name).newbyteorder("="): code for code, name in _TYPES.items()}
    if array.dtype.newbyteorder("=") not in codes or not 1 <= array.ndim <= MAX_DIMENSIONS:
        raise ValueError(f"array must be of {', '.join(map(str, codes))}, got {array.dtype} of {array.ndim} dimensions")
    code = codes[array.dtype.newbyteorder("=")]
    header = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = header + np.ascontiguousarray(array, dtype=_TYPES[code]).tobytes()
    try:
        path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    except OSError as error:
        raise OSError(error.errno, f"{quote(path)} cannot be written: {error.strerror}") from error


class DrawnDigits(NamedTuple):
    """Images (n, side, side) of grey values from 0 to 1, digits 0 to 9, and the angle of each image in degrees.

    Angles count counter-clockwise, as in `scipy.ndimage.rotate` and `tacit.problems.rotations`: a rotation of
    image i by ``−angles[i]`` brings it upright.
    """

    X: Array
    y: Array
    angles: Array


def drawn_digits(n: int, *, side: int = 32, max_angle: float = 60.0, seed: int = 0) -> DrawnDigits:
    """The digits 0 to 9 again and again, drawn with a pen of random width, slant, size and shake, at random angles.

    Nothing is downloaded. Strokes are rotated before they are drawn, so images are sharp.

    Parameters
    ----------
    n : number of images
    side : pixels across and down
    max_angle : angles are uniform from −max_angle to max_angle degrees

    >>> X, y, angles = drawn_digits(20, seed=0)
    >>> X.shape, y[:5], bool(np.abs(angles).max() <= 60)
    ((20, 32, 32), array([0, 1, 2, 3, 4]), True)
    """
    n, side = whole_number("n", n, 1, MAX_BYTES), whole_number("side", side, SHORTEST_SIDE, MAX_BYTES)
    if 8 * n * side**2 > MAX_BYTES:
        raise ValueError(f"{n} images of {side} × {side} pixels take more than {MAX_BYTES} bytes; draw fewer at a time")
    max_angle = number("max_angle", max_angle, "degrees from 0 to 180", lambda degrees: 0 <= degrees <= 180)
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    y = np.arange(n) % 10
    angles = rng.uniform(-max_angle, max_angle, len(y)) if max_angle else np.zeros(len(y))
    shapes = [np.concatenate(strokes) for strokes in _STROKES]
    images = [_draw(_shake(shapes[digit], angle, rng), side, rng) for digit, angle in zip(y, angles, strict=True)]
    return DrawnDigits(np.array(images), y, angles)


def _shake(points: Array, angle: float, rng: np.random.Generator) -> Array:
    """A digit as one hand draws it: smooth waves move its points; then it is scaled, slanted and rotated."""
    phase = rng.uniform(0, 2, 2)
    moved = points - 0.5 + np.sin(np.pi * (2 * points + phase)) @ rng.normal(0, 0.035, (2, 2))
    slant = np.array([[rng.uniform(0.8, 1.1), 0.0], [rng.normal(0, 0.12), rng.uniform(0.85, 1.1)]])
    c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    rotation = np.array([[c, -s], [s, c]])  # counter-clockwise on the page, where y points down
    return np.asarray(moved @ slant @ rotation + rng.normal(0, 0.015, 2))


def _draw(points: Array, side: int, rng: np.random.Generator) -> Array:
    """Grey values by the distance of each pixel from the stroke; (0, 0) is the middle of the image."""
    middle = ROOM * ((np.arange(side) + 0.5) / side - 0.5)
    across, down = ((middle[:, None] - part) ** 2 for part in points.T)
    distance = np.sqrt((down[:, None, :] + across[None, :, :]).min(axis=2))
    grey: Array = np.clip((rng.uniform(0.035, 0.06) - distance) * side / ROOM + 0.5, 0.0, 1.0)
    return grey


def _line(x0: float, y0: float, x1: float, y1: float) -> Array:
    return np.linspace([x0, y0], [x1, y1], POINTS)


def _arc(x: float, y: float, across: float, down: float, start: float, end: float) -> Array:
    """An arc of an ellipse, in degrees from three o'clock, clockwise as y points down."""
    angle = np.deg2rad(np.linspace(start, end, POINTS))
    return np.column_stack([x + across * np.cos(angle), y + down * np.sin(angle)])


_STROKES: list[list[Array]] = [
    [_arc(0.5, 0.5, 0.25, 0.36, 0, 180), _arc(0.5, 0.5, 0.25, 0.36, 180, 360)],
    [_line(0.36, 0.28, 0.54, 0.14), _line(0.54, 0.14, 0.54, 0.86)],
    [_arc(0.5, 0.34, 0.23, 0.2, 180, 390), _line(0.7, 0.44, 0.27, 0.86), _line(0.27, 0.86, 0.76, 0.86)],
    [_arc(0.46, 0.32, 0.22, 0.18, 210, 450), _arc(0.46, 0.68, 0.26, 0.18, 270, 500)],
    [_line(0.6, 0.14, 0.24, 0.6), _line(0.24, 0.6, 0.78, 0.6), _line(0.6, 0.14, 0.6, 0.86)],
    [_line(0.72, 0.14, 0.34, 0.14), _line(0.34, 0.14, 0.31, 0.46), _arc(0.48, 0.64, 0.25, 0.22, 230, 500)],
    [_arc(0.78, 0.66, 0.52, 0.54, 180, 260), _arc(0.5, 0.66, 0.23, 0.2, 0, 180), _arc(0.5, 0.66, 0.23, 0.2, 180, 360)],
    [_line(0.25, 0.14, 0.76, 0.14), _line(0.76, 0.14, 0.42, 0.86)],
    [_arc(0.5, 0.32, 0.19, 0.18, 0, 360), _arc(0.5, 0.68, 0.24, 0.18, 0, 180), _arc(0.5, 0.68, 0.24, 0.18, 180, 360)],
    [_arc(0.5, 0.35, 0.22, 0.2, 0, 180), _arc(0.5, 0.35, 0.22, 0.2, 180, 360), _line(0.72, 0.35, 0.62, 0.86)],
]
"""The strokes of 0 to 9 in a square from (0, 0), the upper left corner, to (1, 1)."""

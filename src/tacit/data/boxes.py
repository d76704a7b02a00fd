"""Boxes, four numbers each: which are allowed, and how much two of them share."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.parameters import numbers


def overlap(first: Any, second: Any) -> Array:
    """Intersection over union of boxes (x_min, y_min, x_max, y_max), pair by pair; shapes broadcast as in NumPy.

    Boxes without area share nothing, not even with themselves.

    >>> overlap([0, 0, 2, 2], [[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6]]).round(3)
    array([1.   , 0.333, 0.   ])
    """
    a, b = numbers("first", first), numbers("second", second)
    for name, part in (("first", a), ("second", b)):
        if part.shape[-1:] != (4,):
            raise ValueError(f"{name} has shape {part.shape}; a box is four numbers, x_min, y_min, x_max, y_max")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError as error:
        raise ValueError(f"boxes of the shapes {a.shape} and {b.shape} do not pair up") from error
    low = np.maximum(a[..., :2], b[..., :2])
    high = np.minimum(a[..., 2:], b[..., 2:])
    shared = np.prod(np.maximum(high - low, 0.0), axis=-1)
    areas = np.prod(a[..., 2:] - a[..., :2], axis=-1) + np.prod(b[..., 2:] - b[..., :2], axis=-1)
    return np.asarray(shared / np.where(shared == 0, 1.0, areas - shared))


def check_boxes(boxes: Any, offsets: Array) -> Array:
    """(rows, 4): one box per row of samples, as numbers; a box without area, and what is not finite, is refused."""
    table = numbers("boxes", boxes, "four numbers per row: x_min, y_min, x_max, y_max")
    if table.shape != (offsets[-1], 4):
        raise ValueError(
            f"boxes have shape {table.shape} for {offsets[-1]} rows; give four numbers per row: x_min, y_min, x_max, "
            "y_max"
        )
    good = np.isfinite(table).all(axis=1) & (table[:, 0] < table[:, 2]) & (table[:, 1] < table[:, 3])
    if not good.all():
        row = int(np.argmin(good))
        i, position = locate(offsets, row)
        raise ValueError(
            f"the box of sample {i}, row {position} is {table[row].tolist()}; x_min must be below x_max and "
            "y_min below y_max"
        )
    return table

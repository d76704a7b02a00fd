"""Boxes in images: how much two of them share, and which candidate is nearest to a box that somebody drew."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.ragged import Ragged

__all__ = ["Nearest", "nearest", "overlap"]


def overlap(first: Any, second: Any) -> Array:
    """Intersection over union of boxes (x_min, y_min, x_max, y_max), pair by pair; shapes broadcast as in NumPy.

    Boxes without area share nothing, not even with themselves.

    >>> overlap([0, 0, 2, 2], [[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6]]).round(3)
    array([1.   , 0.333, 0.   ])
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    low = np.maximum(a[..., :2], b[..., :2])
    high = np.minimum(a[..., 2:], b[..., 2:])
    shared = np.prod(np.maximum(high - low, 0.0), axis=-1)
    areas = np.prod(a[..., 2:] - a[..., :2], axis=-1) + np.prod(b[..., 2:] - b[..., :2], axis=-1)
    return np.asarray(shared / np.where(shared == 0, 1.0, areas - shared))


class Nearest(NamedTuple):
    """The candidate of every bag that shares most with a box, and how much."""

    hidden: Array
    overlap: Array


def nearest(bags: Ragged, boxes: Any) -> Nearest:
    """The hidden values that stand for drawn boxes: in every bag the candidate of the highest overlap.

    Parameters
    ----------
    bags : candidates with boxes, such as `tacit.windows` gives
    boxes : (n, 4), one box a bag; a row of NaN for an image in which nobody drew one: its hidden value is −1, as is
        that of a box which no candidate touches

    >>> bags = Ragged([[0.0], [0.0]], [0, 2], boxes=[[0, 0, 4, 4], [2, 0, 6, 4]])
    >>> nearest(bags, [[2, 0, 6, 3]])
    Nearest(hidden=array([1]), overlap=array([0.75]))
    """
    if bags.boxes is None:
        raise ValueError("these bags carry no boxes; give them some with bags.with_boxes(...)")
    drawn = np.asarray(boxes, dtype=np.float64)
    if drawn.shape != (len(bags), 4):
        raise ValueError(f"boxes have shape {drawn.shape} for {len(bags)} bags; give one box a bag, (n, 4)")
    empty = np.flatnonzero((drawn[:, 0] >= drawn[:, 2]) | (drawn[:, 1] >= drawn[:, 3]))
    if empty.size:
        first = int(empty[0])
        raise ValueError(f"box {first} is {drawn[first].tolist()}; x_min must be below x_max and y_min below y_max")
    shared = overlap(np.repeat(drawn, bags.lengths, axis=0), bags.boxes)
    known = ~np.isnan(drawn).any(axis=1)
    hidden, best = np.full(len(bags), -1), np.zeros(len(bags))
    for i in np.flatnonzero(known & (bags.lengths > 0)):
        own = shared[bags.offsets[i] : bags.offsets[i + 1]]
        best[i] = own.max()
        hidden[i] = int(np.argmax(own)) if best[i] > 0 else -1
    return Nearest(hidden, best)

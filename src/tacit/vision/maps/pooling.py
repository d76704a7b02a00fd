"""Pooling: sums of maps over windows whose edges need not lie on edges of cells, and its adjoint (transpose).

A map is constant within a cell, so its sum over all cells above and left of a corner, interpolated between the cells,
is exact for any corner (a *fractional integral image*). The sum over a window is then four look-ups. Pooling is
linear: scores of windows need one map per weight vector, never one row of features per window.

A window may be divided into ``parts × parts`` equal pieces, each with its own weights. What is pooled of a piece is

- ``contrast=None``: its mean,
- ``"ring"``: ``p^¼ (mean of the piece − mean of a ring around the window)``, p the share of the image that the window
  covers. A plain mean is highest in tiny windows; the difference to the surroundings is not,
- ``"image"``: ``p^¼ (mean of the piece − mean of the whole map)``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

CONTRASTS = ("ring", "image", None)
RING = 0.175
"""How far the ring reaches beyond the window on either side, as a share of the window's side: it is 35 % wider."""
POWER = 0.25
"""Exponent of the share of the image that a window covers: a higher one favours larger windows."""


class Pooling(NamedTuple):
    """The coordinates of windows on their maps, in cells, and the factors of their sums.

    Attributes
    ----------
    inner : (m, 4) the windows: left, top, right, bottom
    outer : (m, 4) their surroundings, the window included
    own : (m,) the factor of the sum over a piece of the window
    around : (m,) the factor of the sum over ``outer``
    inside : (m,) the factor of the sum over the whole window
    parts : pieces across, and down
    """

    inner: Array
    outer: Array
    own: Array
    around: Array
    inside: Array
    parts: int

    def take(self, index: Array | slice) -> Pooling:
        """The pooling of some of the windows."""
        inner, outer, own, around, inside, parts = self
        return Pooling(inner[index], outer[index], own[index], around[index], inside[index], parts)


def plan_pooling(
    boxes: Array, offsets: Array, sizes: Array, strides: Array, contrast: str | None = "ring", parts: int = 1
) -> Pooling:
    """The coordinates and factors of the windows of images on their maps.

    Parameters
    ----------
    boxes : (m, 4) the windows of all images, in pixels
    offsets : (n + 1,) where the windows of each image begin
    sizes : (n, 2) width and height of the images
    strides : (n,) pixels per cell
    contrast, parts : see the module
    """
    counts = np.diff(offsets)
    stride = np.repeat(strides, counts)
    corners = np.repeat(sizes.astype(np.float64), counts, axis=0)
    frame = np.hstack([np.zeros_like(corners), corners])
    inner = np.clip(boxes, 0.0, frame[:, [2, 3, 2, 3]])
    sides = inner[:, 2:] - inner[:, :2]
    area, pieces = sides.prod(axis=1) / stride**2, parts * parts
    weight = np.ones(len(boxes)) if contrast is None else (sides / corners).prod(axis=1) ** POWER
    zero = np.zeros(len(boxes))
    outer, around, inside = inner, zero, zero
    if contrast == "image":
        outer, around = frame, -weight / (corners.prod(axis=1) / stride**2)
    elif contrast == "ring":
        room = RING * np.hstack([-sides, sides])
        outer = np.clip(inner + room, 0.0, frame[:, [2, 3, 2, 3]])
        ring = (outer[:, 2:] - outer[:, :2]).prod(axis=1) / stride**2 - area
        has_ring = ring > 1e-6 * area
        weight = np.where(has_ring, weight, 0.0)  # a window that is the whole image has no surroundings
        inside = weight / np.where(has_ring, ring, 1.0)
        around = -inside
    own = weight * pieces / area
    return Pooling(inner / stride[:, None], outer / stride[:, None], own, around, inside, parts)


def pool(scores: Array, cells: Array, grids: Array, plan: Pooling, offsets: Array) -> Array:
    """(m, channels): what every window pools of maps (cells, parts², channels), summed over its pieces.

    Parameters
    ----------
    scores : (all cells, parts², channels), the cells of a map row by row, one map after the other
    cells : (n + 1,) where the cells of each map begin
    grids : (n, 2) rows and columns of the maps
    plan : of the windows
    offsets : (n + 1,) where the windows of each map begin
    """
    out = np.zeros((len(plan.inner), scores.shape[2]))
    _visit_corners(_with_sum(scores), cells, grids, *_look_ups(plan), offsets, out, False)
    return out


def pool_adjoint(values: Array, cells: Array, grids: Array, plan: Pooling, offsets: Array) -> Array:
    """(cells, parts², channels): the transpose of `pool`, from values (m, channels)."""
    pieces = plan.parts**2
    out = np.zeros((int(cells[-1] - cells[0]), pieces + (pieces > 1), values.shape[1]))
    values = np.ascontiguousarray(values, dtype=np.float64)
    _visit_corners(out, cells, grids, *_look_ups(plan), offsets, values, True)
    return out if pieces == 1 else out[:, :pieces] + out[:, pieces:]


def _with_sum(scores: Array) -> Array:
    """Maps of the pieces followed by their sum: the surroundings of a window count the same for all pieces."""
    if scores.shape[1] == 1:
        return np.ascontiguousarray(scores, dtype=np.float64)
    return np.concatenate([scores, scores.sum(axis=1, keepdims=True)], axis=1, dtype=np.float64)


def _look_ups(plan: Pooling) -> tuple[Array, Array, Array, int]:
    """Rectangles (m, 2, 4) and factors (m, 2) on the map of the sum, factors (m,) of the pieces, and their number."""
    boxes = np.stack([plan.inner, plan.outer], axis=1)
    if plan.parts == 1:
        return boxes, np.column_stack([plan.own + plan.inside, plan.around]), np.zeros(len(boxes)), 1
    return boxes, np.column_stack([plan.inside, plan.around]), plan.own, plan.parts


@kernel
def _visit_corners(
    maps: Array,
    cells: Array,
    grids: Array,
    boxes: Array,
    factors: Array,
    own: Array,
    parts: int,
    offsets: Array,
    values: Array,
    is_transpose: bool,
) -> None:
    """Add the maps, read at the corners of windows, to the windows' values; the transpose adds values to the maps."""
    slots, channels = maps.shape[1], maps.shape[2]
    pieces = slots - 1
    for i in range(grids.shape[0]):
        rows, columns = grids[i, 0], grids[i, 1]
        integral = np.zeros((rows + 2, columns + 2, slots, channels))
        first = cells[i] - cells[0]
        if not is_transpose:
            for r in range(rows):
                for c in range(columns):
                    for p in range(slots):
                        for k in range(channels):
                            integral[r + 1, c + 1, p, k] = (
                                maps[first + r * columns + c, p, k]
                                + integral[r, c + 1, p, k]
                                + integral[r + 1, c, p, k]
                                - integral[r, c, p, k]
                            )
        for m in range(offsets[i] - offsets[0], offsets[i + 1] - offsets[0]):
            across = (boxes[m, 0, 2] - boxes[m, 0, 0]) / parts
            down = (boxes[m, 0, 3] - boxes[m, 0, 1]) / parts
            for p in range(pieces + 2):  # the pieces, then the window and its surroundings
                factor = own[m] if p < pieces else factors[m, p - pieces]
                if factor == 0.0:
                    continue
                slot = p if p < pieces else slots - 1
                for corner in range(4):
                    if p < pieces:
                        x = boxes[m, 0, 0] + (p % parts + corner % 2) * across
                        y = boxes[m, 0, 1] + (p // parts + corner // 2) * down
                    else:
                        x = boxes[m, p - pieces, 2 * (corner % 2)]
                        y = boxes[m, p - pieces, 1 + 2 * (corner // 2)]
                    signed = factor if corner == 0 or corner == 3 else -factor
                    r, c = min(int(y), rows - 1), min(int(x), columns - 1)
                    dy, dx = min(y - r, 1.0), min(x - c, 1.0)
                    a, b = signed * (1.0 - dy) * (1.0 - dx), signed * (1.0 - dy) * dx
                    d, e = signed * dy * (1.0 - dx), signed * dy * dx
                    if is_transpose:
                        for k in range(channels):
                            integral[r, c, slot, k] += a * values[m, k]
                            integral[r, c + 1, slot, k] += b * values[m, k]
                            integral[r + 1, c, slot, k] += d * values[m, k]
                            integral[r + 1, c + 1, slot, k] += e * values[m, k]
                    else:
                        for k in range(channels):
                            values[m, k] += (
                                a * integral[r, c, slot, k]
                                + b * integral[r, c + 1, slot, k]
                                + d * integral[r + 1, c, slot, k]
                                + e * integral[r + 1, c + 1, slot, k]
                            )
        if is_transpose:
            for r in range(rows, 0, -1):  # a cell counts in the integrals at its far corner and beyond
                for c in range(columns, 0, -1):
                    for p in range(slots):
                        for k in range(channels):
                            integral[r, c, p, k] += (
                                integral[r + 1, c, p, k] + integral[r, c + 1, p, k] - integral[r + 1, c + 1, p, k]
                            )
                            maps[first + (r - 1) * columns + c - 1, p, k] = integral[r, c, p, k]

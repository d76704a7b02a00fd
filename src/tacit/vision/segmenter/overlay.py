"""Pictures of regions and masks: the borders of regions, overlays, and how imputed masks change. Needs Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.vision.photos import pillow
from tacit.vision.regions.superpixels import as_colours

OBJECT_COLOUR = (1.0, 0.35, 0.1)
BOX_COLOUR = (0.1, 0.45, 1.0)
MAX_SIDE = 480
"""Pictures for a page are not larger than this."""


def draw_regions(image: Array, regions: Array) -> Array:
    """The image with the borders of its regions drawn in, (height, width, 3) uint8.

    >>> draw_regions(np.zeros((2, 4)), np.array([[0, 0, 1, 1]] * 2))[0, :, 0].tolist()
    [0, 255, 0, 0]
    """
    colours, cut = as_colours(np.asarray(image)), np.asarray(regions)
    _same_size(colours, cut, "regions")
    borders = np.zeros(cut.shape, dtype=bool)
    borders[:, :-1] |= cut[:, 1:] != cut[:, :-1]
    borders[:-1] |= cut[1:] != cut[:-1]
    return _as_bytes(np.where(borders[:, :, None], (1.0, 0.9, 0.2), colours))


def draw_mask(image: Array, mask: Array, box: Any = None) -> Array:
    """The image with a mask laid over it, and a box drawn around where it was given, (height, width, 3) uint8.

    >>> draw_mask(np.zeros((2, 2)), np.array([[True, False]] * 2))[0].tolist()
    [[140, 49, 14], [0, 0, 0]]
    """
    colours, taken = as_colours(np.asarray(image)), np.asarray(mask, dtype=bool)
    _same_size(colours, taken, "mask")
    colours = np.where(taken[:, :, None], 0.45 * colours + 0.55 * np.array(OBJECT_COLOUR), colours)
    if box is not None and not np.isnan(np.asarray(box, dtype=float)).any():
        left, top, right, bottom = (round(float(side)) for side in box)
        height, width = taken.shape
        rows, columns = (slice(max(a, 0), max(b, a + 1)) for a, b in ((top, bottom), (left, right)))
        for x in (left, right - 1):
            colours[rows, min(max(x, 0), width - 1)] = BOX_COLOUR
        for y in (top, bottom - 1):
            colours[min(max(y, 0), height - 1), columns] = BOX_COLOUR
    return _as_bytes(colours)


def join_pictures(pictures: Sequence[Array], gap: int = 4) -> Array:
    """Pictures side by side, on white."""
    if not pictures:
        raise ValueError("no pictures to join")
    height = max(picture.shape[0] for picture in pictures)
    parts: list[Array] = []
    for picture in pictures:
        padded = np.full((height, picture.shape[1], 3), 255, dtype=np.uint8)
        padded[: picture.shape[0]] = picture
        parts += [padded, np.full((height, gap, 3), 255, dtype=np.uint8)]
    return np.hstack(parts[:-1])


def as_png(picture: Array) -> bytes:
    """A picture as the content of a PNG file, shrunk where it is taller than `MAX_SIDE`."""
    image = pillow().fromarray(picture)
    if image.height > MAX_SIDE:
        image = image.resize((max(1, image.width * MAX_SIDE // image.height), MAX_SIDE))
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()


def _as_bytes(colours: Array) -> Array:
    return np.asarray(np.round(255 * np.clip(colours, 0, 1)).astype(np.uint8))


def _same_size(colours: Array, other: Array, name: str) -> None:
    if other.shape != colours.shape[:2]:
        raise ValueError(
            f"the image has {colours.shape[:2]} pixels, the {name} {shorten(other.shape)}; they must be the same"
        )

"""Large photos are cut into regions at a smaller working size; labels are enlarged along the edges of the photo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, shape_of, shorten
from tacit.vision.photos import MAX_PIXELS, as_uint8, check_image, image_size, image_sources, pillow
from tacit.vision.regions.graphs import RegionGraphs, read_image_boxes

RADIUS = 4
"""Of the windows of the guided filter, in pixels of the working size: 9 × 9 pixels."""
EPSILON = 1e-4
"""Variance of colours (0 to 1) below which the guided filter sees no edge."""
STRIP = 512
"""Rows of a photo that are labelled at a time."""


def shrink(pixels: Array, max_side: int | None, name: str = "the image") -> Array:
    """The image, with its longest side shrunk to ``max_side`` pixels; as it is if that is None or no less.

    >>> shrink(np.zeros((600, 800, 3), np.uint8), 320).shape
    (240, 320, 3)
    """
    if pixels.ndim not in (2, 3):
        raise ValueError(f"{name} must be pixels (height, width) or (height, width, 3), got shape {pixels.shape}")
    height, width = working_shape(pixels.shape, max_side)
    if (height, width) == pixels.shape[:2]:
        return pixels
    Image = pillow()
    picture = Image.fromarray(as_uint8(pixels, name))
    return np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=3.0))


def working_shape(shape: tuple[int, ...], max_side: int | None) -> tuple[int, int]:
    """Height and width of an image after `shrink`."""
    height, width = shape[:2]
    factor = 1.0 if max_side is None else min(1.0, max_side / max(height, width))
    return max(1, round(height * factor)), max(1, round(width * factor))


def image_shapes(images: Any, max_pixels: int = MAX_PIXELS) -> list[tuple[int, int]]:
    """Height and width of each image, of files from their headers."""
    return [
        source.shape[:2] if isinstance(source, np.ndarray) else image_size(source, max_pixels)[::-1]
        for source in image_sources(images)
    ]


def shrink_labels(
    graphs: RegionGraphs, shapes: Sequence[tuple[int, int]], masks: Sequence[Any], boxes: Any
) -> tuple[list[Any], Any]:
    """Masks and boxes of images, at the size at which these were cut into regions.

    Boxes are a table, or a dict of tables by class per image, or None, as `tacit.weak_labels` takes them. A mask that
    does not have the shape of its image is left as it is, for the reader of masks to refuse.
    """
    assert graphs.maps is not None
    small = [own.shape for own in graphs.maps]
    scales = np.array([[w / width, h / height] * 2 for (h, w), (height, width) in zip(small, shapes, strict=True)])
    found = []
    for mask, own, shape in zip(masks, small, shapes, strict=True):
        is_full = mask is not None and shape_of(mask) == tuple(shape) != own
        found.append(sample(np.asarray(mask), own) if is_full else mask)
    if boxes is None or not isinstance(boxes, list | tuple) or not all(isinstance(own, dict | None) for own in boxes):
        return found, None if boxes is None else read_image_boxes(boxes, len(graphs)) * scales
    if len(boxes) != len(graphs):  # for the reader of boxes to refuse
        return found, boxes
    by_class = [
        {name: _scale_boxes(name, rows, scale) for name, rows in own.items()} if own else own
        for own, scale in zip(boxes, scales, strict=True)
    ]
    return found, by_class


def _scale_boxes(name: Any, rows: Any, scale: Array) -> Any:
    """Boxes of one class at another size; what is not a table of boxes is left for the reader of boxes to refuse."""
    table = numbers(f"boxes of {shorten(name)}", rows)
    return table * scale if table.shape[1:] == (4,) else rows


def sample(table: Array, shape: tuple[int, ...]) -> Array:
    """The entries in the middle of the cells of a grid of this shape: nearest neighbours."""
    rows, columns = ((np.arange(n) * 2 + 1) * size // (2 * n) for n, size in zip(shape, table.shape, strict=True))
    return np.asarray(table[rows[:, None], columns])


def enlarge_labels(image: Any, labels: Array, name: str = "the image") -> Array:
    """The label of every pixel of an image, from labels at its working size: the fast guided filter (He & Sun 2015).

    Every label is a linear function of colour in each small window, so its edges follow those of the full-size image.
    Labels of the size of the image are not changed.

    >>> image = np.zeros((64, 64, 3), np.uint8); image[:, 30:] = 255
    >>> found = enlarge_labels(image, np.repeat([[False, True]], 16, axis=0).repeat(8, axis=1))
    >>> found.shape, found[:, 8:28].any(), found[:, 34:56].all()
    ((64, 64), np.False_, np.True_)
    """
    image = check_image(image, name)
    if labels.shape == image.shape[:2]:
        return labels
    present = np.unique(labels)
    full = as_uint8(image, name)
    if len(present) == 1:
        return np.full(full.shape[:2], present[0], dtype=labels.dtype)
    picture = pillow().fromarray(full)
    small = np.asarray(picture.resize(labels.shape[::-1], pillow().Resampling.BOX)) / 255.0
    wanted = present[1:] if len(present) == 2 else present  # of two labels, one has all the information
    planes = _guided_planes(small, np.stack([labels == label for label in wanted]).astype(np.float64))
    found = np.empty(full.shape[:2], dtype=labels.dtype)
    for first in range(0, len(full), STRIP):
        strip = full[first : first + STRIP].astype(np.float32) / 255
        scores = np.stack([_apply(own, strip, first, full.shape[:2]) for own in planes])
        chosen = (scores[0] > 0.5).astype(np.intp) if len(present) == 2 else scores.argmax(axis=0)
        found[first : first + STRIP] = present[chosen]
    return found


def _guided_planes(guide: Array, targets: Array) -> Array:
    """(targets, 4, height, width) factors of the three colours and a constant, by windows of the guide."""

    def mean(values: Array) -> Array:
        size = (*(1 for _ in range(values.ndim - 2)), 2 * RADIUS + 1, 2 * RADIUS + 1)
        return np.asarray(uniform_filter(values, size=size, mode="nearest"))

    colours = np.moveaxis(guide, 2, 0)
    middle = mean(colours)
    spread = mean(colours[:, None] * colours) - middle[:, None] * middle
    spread = np.moveaxis(spread, (0, 1), (2, 3)) + EPSILON * np.eye(3)
    planes = []
    for target in targets:
        level = mean(target)
        joint = np.moveaxis(mean(colours * target) - middle * level, 0, 2)
        slopes = np.moveaxis(np.linalg.solve(spread, joint[..., None])[..., 0], 2, 0)
        planes.append(mean(np.concatenate([slopes, [level - (slopes * middle).sum(axis=0)]])))
    return np.stack(planes)


def _apply(planes: Array, strip: Array, first: int, shape: tuple[int, ...]) -> Array:
    """The value of a linear function of colours at the rows of an image from ``first`` on."""
    Image = pillow()
    height, width = planes.shape[1:]
    rows = len(strip)
    box = (0, first * height / shape[0], width, min((first + rows) * height / shape[0], height))
    enlarged = [
        np.asarray(Image.fromarray(own.astype(np.float32)).resize((shape[1], rows), Image.Resampling.BILINEAR, box=box))
        for own in planes
    ]
    found = enlarged[3].copy()
    for c in range(3):
        found += enlarged[c] * strip[:, :, c]
    return found

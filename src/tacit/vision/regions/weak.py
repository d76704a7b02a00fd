"""Weak labels of images as constraints on the labels of their regions: masks, scribbles, boxes, labels of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, number, numbers, shorten
from tacit.vision.regions import RegionLabels
from tacit.vision.regions.graphs import RegionGraphs

MIN_INSIDE = 0.5
"""A region is inside a box if at least this share of its pixels is."""

WIDEST_IN_BOX = (0.2, 0.95)
"""Shares of a box that its object covers, as long as fewer than `MIN_MASKS` masks tell."""

WIDEST_IN_IMAGE = (0.02, 0.9)
"""Shares of an image that its object covers, as long as fewer than `MIN_MASKS` masks tell."""

MIN_MASKS = 3


def weak_labels(
    graphs: RegionGraphs,
    masks: Any = None,
    boxes: Any = None,
    contains: Any = None,
    quantiles: tuple[float, float] = (0.25, 0.75),
) -> RegionLabels:
    """What is known of the regions of images, each labelled in its own way: ``y`` for `tacit.problems.Regions`.

    Labels are 0 for the background and 1 for the object. An image may have

    - a mask: every region has the label of most of its pixels. Pixels of −1 are unknown, so a few strokes will do
    - a box: regions outside are background, and the object covers as much of the box as masks of other images cover of
      their own tightest boxes, within these quantiles
    - the word that the object is there: it covers as much of the image as in images with masks; or that it is not:
      all is background
    - nothing at all

    A mask counts before a box, a box before a word.

    Parameters
    ----------
    graphs : of the images, as `tacit.regions` makes them
    masks : per image a table (height, width) of 0, 1 and −1, or None
    boxes : (n, 4) x_min, y_min, x_max, y_max; NaN for an image without one
    contains : per image True, False or None
    quantiles : of the shares in images with masks, the limits for other images

    >>> import tacit
    >>> image = np.zeros((40, 60, 3)); image[10:30, 20:40] = (0.6, 0.3, 0.1)
    >>> graphs = tacit.regions([image, image], "slic", n_segments=20)
    >>> y = weak_labels(graphs, masks=[image[:, :, 0] > 0, None], boxes=[[np.nan] * 4, [18, 8, 42, 32]])
    >>> y, y.limits[1].round(3).tolist()
    (RegionLabels(2 images, limits of 1), [[nan, nan], [0.033, 0.158]])
    """
    n = len(graphs)
    low, high = _read_quantiles(quantiles)
    labels = graphs.mark([None] * n if masks is None else masks)
    for i, own in enumerate(labels):
        if own.max(initial=0) > 1:
            raise ValueError(f"the mask of image {i} holds {own.max()}; write 1 for the object and 0 for all else")
    table = np.full((n, 4), np.nan) if boxes is None else numbers("boxes", boxes, "four numbers per image")
    inside = graphs.shares_inside(table)
    words = _read_words(contains, n)
    in_box, in_image = _limits_from_masks(graphs, labels, low, high)
    limits = np.full((n, 2), np.nan)
    for i, own in enumerate(labels):
        if (own >= 0).any():
            continue
        if not np.isnan(table[i]).any():
            outside = inside[i] < MIN_INSIDE
            refuse_empty_box(i, table[i], ~outside)
            own[outside] = 0
            shares = graphs.areas[graphs.offsets[i] : graphs.offsets[i + 1]]
            limits[i] = np.minimum(in_box, 1.0) * float(shares[~outside].sum() / shares.sum())
        elif words[i] == 0:
            own[:] = 0
        elif words[i] == 1:
            limits[i] = in_image
    return RegionLabels(labels, {1: limits})


def tightest_box(mask: Array) -> Array:
    """x_min, y_min, x_max, y_max around the pixels of a mask that has some.

    >>> tightest_box(np.array([[0, 0, 0], [0, 1, 1]])).tolist()
    [1, 1, 3, 2]
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])


def refuse_empty_box(i: int, box: Array, inside: Array) -> None:
    """A box of image i in which no region counts as inside."""
    if not inside.any():
        raise ValueError(
            f"the box {box.tolist()} of image {i} has no region inside: it lies outside of the image, or is smaller "
            "than the regions"
        )


def _limits_from_masks(graphs: RegionGraphs, labels: list[Array], low: float, high: float) -> tuple[Array, Array]:
    """Quantiles of the share that the object covers of its tightest box, and of the image."""
    in_box, in_image = [], []
    for i, own in enumerate(labels):
        if (own < 0).any() or not own.any():
            continue
        assert graphs.maps is not None
        painted = own[graphs.maps[i]] == 1
        left, top, right, bottom = tightest_box(painted)
        in_box.append(painted.sum() / ((right - left) * (bottom - top)))
        in_image.append(painted.mean())
    if len(in_box) < MIN_MASKS:
        return np.array(WIDEST_IN_BOX), np.array(WIDEST_IN_IMAGE)
    return np.quantile(in_box, (low, high)), np.quantile(in_image, (low, high))


def _read_quantiles(quantiles: Any) -> tuple[float, float]:
    two = entries("quantiles", quantiles, "two numbers from 0 to 1", 2)
    low, high = (number("a quantile", q, "a number from 0 to 1", lambda share: 0 <= share <= 1) for q in two)
    if low > high:
        raise ValueError(f"quantiles are two numbers, the lower one first, got {shorten(quantiles)}")
    return low, high


def _read_words(contains: Any, n: int) -> list[int]:
    """1 for an image with the object, 0 for one without, −1 where nobody says."""
    if contains is None:
        return [-1] * n
    words = entries("contains", contains, f"True, False or None for each of {n} images", n)
    for i, word in enumerate(words):
        if word is not None and not isinstance(word, bool | np.bool_):
            raise ValueError(f"contains[{i}] is {shorten(word)}; write True, False or None")
    return [-1 if word is None else int(word) for word in words]

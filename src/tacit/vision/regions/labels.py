"""Weak labels of regions, from masks, scribbles, boxes or image labels, and limits of the area of a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_labels, kind_of_label
from tacit.data.parameters import entries, has_length, number, numbers, shorten
from tacit.data.ragged import Ragged
from tacit.problems.chain.tags import Tags, read_tags
from tacit.vision.regions.graphs import RegionGraphs, read_image_boxes

OBJECT_LABELS = (0, 1)
"""Background and object, where there are only these two."""
MIN_INSIDE = 0.5
"""A region is inside a box if at least this share of its pixels is."""
WIDEST_IN_BOX = (0.2, 0.95)
"""Limits of the share of a box that its object covers, with fewer than `MIN_MASKS` masks."""
WIDEST_IN_IMAGE = (0.02, 0.9)
"""Limits of the share of an image that its object covers, with fewer than `MIN_MASKS` masks."""
MIN_MASKS = 3


class RegionLabels:
    """Weak labels of images: one label per region, −1 where it is unknown, and limits of the share of a label.

    It behaves like a one-dimensional array of images. `tacit.weak_labels` makes it from masks, boxes and image labels.

    Parameters
    ----------
    labels : per image, one label per region, −1 (or None) where it is unknown
    limits : by label, (n, 2): the least and the largest share of the image's area that the label covers, NaN for
        unknown; None for no limits

    >>> y = RegionLabels([[0, -1, -1], [1, 0]], limits={1: [[0.2, 0.8], [np.nan, np.nan]]})
    >>> y, y[0].tolist(), y[[1]].limits[1].tolist()
    (RegionLabels(2 images, limits of 1), [0, -1, -1], [[nan, nan]])
    """

    def __init__(self, labels: Any, limits: Mapping[Any, Any] | None = None) -> None:
        self.labels = labels if isinstance(labels, Ragged) else _as_ragged(labels)
        if limits is not None and not isinstance(limits, Mapping):
            raise TypeError(f"limits must be a dict from label to (n, 2) shares, got {shorten(limits)}")
        for label in limits or {}:
            if not kind_of_label(label):
                raise ValueError(f"labels of limits must be whole numbers or strings, got {shorten(label)}")
        self.limits = {label: _read_limits(label, pair, len(self.labels)) for label, pair in (limits or {}).items()}

    @staticmethod
    def of(labels: Any) -> RegionLabels:
        """A RegionLabels, from one or from labels of regions."""
        return labels if isinstance(labels, RegionLabels) else RegionLabels(labels)

    @property
    def shape(self) -> tuple[int]:
        return (len(self.labels),)

    @property
    def ndim(self) -> int:
        return 1

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __getitem__(self, key: Any) -> Any:
        chosen = self.labels[key]
        if not isinstance(chosen, Ragged):
            return chosen
        index = Ragged(np.arange(len(self)), np.arange(len(self) + 1))[key].values
        return RegionLabels(chosen, {label: pair[index] for label, pair in self.limits.items()})

    def __repr__(self) -> str:
        limited = f", limits of {', '.join(map(str, self.limits))}" if self.limits else ""
        return f"RegionLabels({len(self)} images{limited})"


def read_region_labels(y: Any, lengths: Array) -> Tags:
    """One label per region, and which are missing; errors say "image" and "region"."""
    labels = y.labels if isinstance(y, RegionLabels) else y
    try:
        return read_tags(labels, lengths)
    except ValueError as error:
        message = str(error)
        for word, ours in (("token", "region"), ("sequence", "image"), ("tag", "label")):
            message = message.replace(word, ours)
        raise ValueError(message) from error


def read_limits(y: Any, classes: Array, n: int) -> Array | None:
    """(n, K, 2): the least and the largest share of every label; None without limits."""
    if not isinstance(y, RegionLabels) or not y.limits:
        return None
    limits = np.empty((n, len(classes), 2))
    limits[:] = 0.0, 1.0
    for label, pair in y.limits.items():
        column = int(find_labels(classes, np.array([label]))[0])
        if column < 0:
            listed = shorten(classes.tolist())
            raise ValueError(
                f"limits name {shorten(label)}, which is not one of the labels {listed}; add it to labels="
            )
        known = ~np.isnan(pair[:, 0])
        limits[known, column] = pair[known]
    return limits


def _as_ragged(labels: Any) -> Ragged:
    own = entries("labels", labels, "a list with the labels of every image")
    if not own:
        raise ValueError("labels must have at least one image, got an empty list")
    for i, part in enumerate(own):
        if isinstance(part, str | bytes | dict) or not has_length(part):
            raise ValueError(f"labels[{i}] must be one label per region, got {shorten(part)}")
    tags = read_tags(own, np.array([len(part) for part in own], dtype=np.int64))
    if tags.values.dtype.kind in "US" and tags.missing.any():
        values = tags.values.astype(object)
        values[tags.missing] = None
    else:
        values = np.where(tags.missing, -1, tags.values) if tags.missing.any() else tags.values
    return Ragged(values, np.cumsum([0] + [len(part) for part in own]))


def _read_limits(label: Any, pair: Any, n: int) -> Array:
    table = numbers(f"limits[{shorten(label)}]", pair, "two shares per image, from 0 to 1, or NaN").astype(np.float64)
    if table.shape != (n, 2):
        raise ValueError(f"limits[{shorten(label)}] must have shape {(n, 2)}, got {table.shape}")
    missing = np.isnan(table).all(axis=1)
    wrong = np.flatnonzero(~missing & ~((table[:, 0] >= 0) & (table[:, 0] <= table[:, 1]) & (table[:, 1] <= 1)))
    if wrong.size:
        raise ValueError(
            f"limits[{shorten(label)}] of image {wrong[0]} must be two shares from 0 to 1, the lower one first, got "
            f"{table[wrong[0]].tolist()}"
        )
    return table


def weak_labels(
    graphs: RegionGraphs,
    masks: Any = None,
    boxes: Any = None,
    contains: Any = None,
    quantiles: tuple[float, float] = (0.25, 0.75),
) -> RegionLabels:
    """Weak labels of the regions of images, from masks, boxes and image labels: ``y`` for `tacit.problems.Regions`.

    Labels are 0 for the background and 1 for the object. An image may have

    - a mask: every region has the label of most of its pixels. Pixels of −1 are unknown, so a few strokes suffice
    - a box: regions outside are background, and the object covers as much of the box as masks of other images cover of
      their own tightest boxes, within these quantiles
    - an image label: True if the image contains the object, which covers as much of it as in images with masks; False
      if all is background
    - nothing at all

    A mask has precedence over a box, a box over an image label.

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
            raise ValueError(f"the mask of image {i} must be 1 for the object and 0 for the rest, got {own.max()}")
    table = read_image_boxes(boxes, n)
    inside = graphs.shares_inside(table)
    image_labels = _read_image_labels(contains, n)
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
        elif image_labels[i] == 0:
            own[:] = 0
        elif image_labels[i] == 1:
            limits[i] = in_image
    return RegionLabels(labels, {1: limits})


def tightest_box(mask: Array) -> Array:
    """x_min, y_min, x_max, y_max around the pixels of a mask that is not empty.

    >>> tightest_box(np.array([[0, 0, 0], [0, 1, 1]])).tolist()
    [1, 1, 3, 2]
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])


def refuse_empty_box(i: int, box: Array, inside: Array) -> None:
    """Refuse a box of image i without a region inside."""
    if not inside.any():
        raise ValueError(
            f"the box {box.tolist()} of image {i} contains no region; it must lie inside the image and be larger than "
            "a region"
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
        raise ValueError(f"quantiles must be two numbers, the lower one first, got {shorten(quantiles)}")
    return low, high


def _read_image_labels(contains: Any, n: int) -> list[int]:
    """1 for an image with the object, 0 for one without, −1 for unknown."""
    if contains is None:
        return [-1] * n
    labels = entries("contains", contains, f"True, False or None for each of {n} images", n)
    for i, label in enumerate(labels):
        if label is not None and not isinstance(label, bool | np.bool_):
            raise ValueError(f"contains[{i}] must be True, False or None, got {shorten(label)}")
    return [-1 if label is None else int(label) for label in labels]

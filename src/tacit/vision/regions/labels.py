"""Weak labels of regions, from masks, scribbles, boxes or image labels; limits of areas; allowed labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.labels import find_labels, kind_of_label
from tacit.data.parameters import entries, even_table, has_length, number, numbers, shorten
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
    """Weak labels of images: one label per region, −1 where it is unknown, limits of the share of a label, and which
    labels unknown regions may have.

    It behaves like a one-dimensional array of images. `tacit.weak_labels` makes it from masks, boxes and image labels.

    Parameters
    ----------
    labels : per image, one label per region, −1 (or None) where it is unknown
    limits : by label, (n, 2): the least and the largest share of the image's area that the label covers, NaN for
        unknown; None for no limits
    allowed : by label, per image one boolean per region: whether it may have this label where its own is unknown.
        Labels that are not named are allowed; None for no restrictions

    >>> y = RegionLabels([[0, -1, -1], [1, 0]], limits={1: [[0.2, 0.8], [np.nan, np.nan]]})
    >>> y, y[0].tolist(), y[[1]].limits[1].tolist()
    (RegionLabels(2 images, limits of 1), [0, -1, -1], [[nan, nan]])
    """

    def __init__(
        self, labels: Any, limits: Mapping[Any, Any] | None = None, allowed: Mapping[Any, Any] | None = None
    ) -> None:
        self.labels = labels if isinstance(labels, Ragged) else _as_ragged(labels)
        _check_mapping("limits", limits, "(n, 2) shares")
        _check_mapping("allowed", allowed, "booleans of every image")
        self.limits = {label: _read_limits(label, pair, len(self.labels)) for label, pair in (limits or {}).items()}
        self.allowed = {label: _read_allowed(label, own, self.labels) for label, own in (allowed or {}).items()}

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
        limits = {label: pair[index] for label, pair in self.limits.items()}
        return RegionLabels(chosen, limits, {label: own[key] for label, own in self.allowed.items()})

    def __repr__(self) -> str:
        limited = f", limits of {', '.join(map(str, self.limits))}" if self.limits else ""
        sets = ", sets of allowed labels" if self.allowed else ""
        return f"RegionLabels({len(self)} images{limited}{sets})"


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
        known = ~np.isnan(pair[:, 0])
        limits[known, _find_named("limits", label, classes)] = pair[known]
    return limits


def read_allowed(y: Any, classes: Array, lengths: Array) -> Array | None:
    """(regions, K): whether every region may have every label, its own where that is known; None if all may."""
    if not isinstance(y, RegionLabels) or not y.allowed:
        return None
    table = np.ones((int(lengths.sum()), len(classes)), dtype=bool)
    for label, own in y.allowed.items():
        table[:, _find_named("allowed", label, classes)] = own.values
    empty = np.flatnonzero(~table.any(axis=1) & read_region_labels(y, lengths).missing)
    if empty.size:
        i, region = locate(np.concatenate([[0], np.cumsum(lengths)]), empty[0])
        raise ValueError(f"no label is allowed for region {region} of image {i}; allow one, or label the region")
    return table


def _find_named(name: str, label: Any, classes: Array) -> int:
    column = int(find_labels(classes, np.array([label]))[0])
    if column < 0:
        listed = shorten(classes.tolist())
        raise ValueError(f"{name} names {shorten(label)}, which is not one of the labels {listed}; add it to labels=")
    return column


def _check_mapping(name: str, values: Any, meaning: str) -> None:
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a dict from label to {meaning}, got {shorten(values)}")
    for label in values or {}:
        if not kind_of_label(label):
            raise ValueError(f"labels of {name} must be whole numbers or strings, got {shorten(label)}")


def _read_allowed(label: Any, own: Any, labels: Ragged) -> Ragged:
    if isinstance(own, Ragged) and own.values.dtype == bool and np.array_equal(own.offsets, labels.offsets):
        return own
    name = f"allowed[{shorten(label)}]"
    tables = entries(name, own, f"booleans for each of {len(labels)} images", len(labels))
    for i, part in enumerate(tables):
        tables[i] = even_table(f"{name}[{i}]", part)
        if tables[i].dtype != bool or tables[i].shape != (labels.lengths[i],):
            raise ValueError(f"{name}[{i}] must be {labels.lengths[i]} booleans, one per region, got {shorten(part)}")
    return Ragged(np.concatenate(tables), labels.offsets)


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
    classes: Any = None,
    generic: Any = None,
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

    With ``classes`` there are as many labels, 0 to K − 1, and all that is said of an image counts together. A pixel of
    a mask may also be generic ("some animal"): its region has one of several labels. Boxes are of a class: outside of
    its boxes the class does not occur, and inside it covers at least the lower quantile of what it covers of its
    tightest box in masks. Image labels say which classes occur and which do not. A class that occurs covers at least
    the lower quantile of its shares in masks.

    Parameters
    ----------
    graphs : of the images, as `tacit.regions` makes them
    masks : per image a table (height, width) of 0, 1 and −1, or None. With classes, tables have the numbers of classes,
        then of generic names; −1 is unknown, and −2 is void, which a `Segmenter` leaves out
    boxes : (n, 4) x_min, y_min, x_max, y_max; NaN for an image without one. With classes, per image a dict from the
        name of a class, or a generic one, to rows of four numbers; or None
    contains : per image True, False or None. With classes, per image a dict from name to True or False; or the list of
        all classes that it contains; or None
    quantiles : of the shares in images with masks, the limits for other images
    classes : the names of the classes; None for background and object
    generic : a dict from a generic name to a list of classes, such as ``{"some animal": ["cow", "sheep"]}``

    >>> import tacit
    >>> image = np.zeros((40, 60, 3)); image[10:30, 20:40] = (0.6, 0.3, 0.1)
    >>> graphs = tacit.regions([image, image], "slic", n_segments=20)
    >>> y = weak_labels(graphs, masks=[image[:, :, 0] > 0, None], boxes=[[np.nan] * 4, [18, 8, 42, 32]])
    >>> y, y.limits[1].round(3).tolist()
    (RegionLabels(2 images, limits of 1), [[nan, nan], [0.033, 0.158]])
    >>> weak_labels(graphs, contains=[["grass", "cow"], {"cow": False}], classes=["grass", "cow", "sheep"])
    RegionLabels(2 images, limits of 0, 1, sets of allowed labels)
    """
    if not isinstance(graphs, RegionGraphs):
        raise TypeError(f"graphs must be RegionGraphs, such as tacit.regions makes of images, got {shorten(graphs)}")
    n = len(graphs)
    low, high = _read_quantiles(quantiles)
    if classes is not None:
        from tacit.vision.regions.class_labels import read_class_names, weak_class_labels  # which imports this module

        return weak_class_labels(graphs, masks, boxes, contains, low, read_class_names(classes, generic))
    if generic is not None:
        raise ValueError("generic needs classes; list their names with classes=")
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

"""What is known of the labels of regions: single regions, and how much of an image a label may cover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_labels, kind_of_label
from tacit.data.parameters import entries, has_length, numbers, shorten
from tacit.data.ragged import Ragged
from tacit.problems.chain.tags import Tags, read_tags


class RegionLabels:
    """Weak labels of images: one label per region, −1 where it is unknown, and limits of the share of a label.

    It behaves like a one-dimensional array of images. `tacit.weak_labels` makes it from masks, boxes and labels of
    images.

    Parameters
    ----------
    labels : per image, one label per region, −1 (or None) where it is unknown
    limits : by label, (n, 2): the least and the largest share of the image's area that the label covers, NaN where
        nothing is known; None for no limits

    >>> y = RegionLabels([[0, -1, -1], [1, 0]], limits={1: [[0.2, 0.8], [np.nan, np.nan]]})
    >>> y, y[0].tolist(), y[[1]].limits[1].tolist()
    (RegionLabels(2 images, limits of 1), [0, -1, -1], [[nan, nan]])
    """

    def __init__(self, labels: Any, limits: Mapping[Any, Any] | None = None) -> None:
        self.labels = labels if isinstance(labels, Ragged) else _as_ragged(labels)
        if limits is not None and not isinstance(limits, Mapping):
            raise TypeError(f"limits are a dict from label to (n, 2) shares, got {shorten(limits)}")
        for label in limits or {}:
            if not kind_of_label(label):
                raise ValueError(f"limits name the label {shorten(label)}; labels are whole numbers or strings")
        self.limits = {label: _read_limits(label, pair, len(self.labels)) for label, pair in (limits or {}).items()}

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
    """One label per region, and which are missing; errors speak of images and regions."""
    labels = y.labels if isinstance(y, RegionLabels) else y
    try:
        return read_tags(labels, lengths)
    except ValueError as error:
        words = str(error).replace("tokens", "regions").replace("token", "region")
        words = words.replace("sequences", "images").replace("sequence", "image")
        raise ValueError(words.replace("tags", "labels").replace("tag", "label")) from error


def read_limits(y: Any, classes: Array, n: int) -> Array | None:
    """(n, K, 2): the least and the largest share of every label; None where y has no limits."""
    if not isinstance(y, RegionLabels) or not y.limits:
        return None
    limits = np.empty((n, len(classes), 2))
    limits[:] = 0.0, 1.0
    for label, pair in y.limits.items():
        place = int(find_labels(classes, np.array([label]))[0])
        if place < 0:
            raise ValueError(
                f"limits name the label {shorten(label)}, but the labels are {shorten(classes.tolist())}; list it in "
                "labels=[...]"
            )
        known = ~np.isnan(pair[:, 0])
        limits[known, place] = pair[known]
    return limits


def _as_ragged(labels: Any) -> Ragged:
    own = entries("labels", labels, "a list with the labels of every image")
    if not own:
        raise ValueError("no images: labels is empty")
    for i, part in enumerate(own):
        if isinstance(part, str | bytes | dict) or not has_length(part):
            raise ValueError(f"labels[{i}] is {shorten(part)}; give one label per region")
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
        raise ValueError(f"limits[{shorten(label)}] have shape {table.shape} for {n} images; give two shares each")
    missing = np.isnan(table).all(axis=1)
    wrong = np.flatnonzero(~missing & ~((table[:, 0] >= 0) & (table[:, 0] <= table[:, 1]) & (table[:, 1] <= 1)))
    if wrong.size:
        raise ValueError(
            f"limits[{shorten(label)}] of image {wrong[0]} are {table[wrong[0]].tolist()}; they are shares of the "
            "image, from 0 to 1, the lower one first"
        )
    return table

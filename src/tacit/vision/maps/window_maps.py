"""Feature maps of images and the windows on them (X of `tacit.problems.Detection`), and boxes from window scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, check_offsets, first_non_finite, states_of
from tacit.data.parameters import is_whole, number, numbers, one_of, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.vision.boxes import overlap
from tacit.vision.maps.pooling import CONTRASTS, Pooling, plan_pooling, pool

SIZES = (0.25, 0.35, 0.5, 0.7, 0.85)
"""Sides of windows as shares of √(width · height) of the image."""
ASPECTS = (0.7, 1.0, 1.5)
"""Width by height, times (width / height)^SHAPE of the image: objects in wide photos tend to be wide."""
SHAPE = 0.5
STEP = 0.4
"""Distance of neighbouring windows, as a share of their side."""
MAX_WINDOWS = 20_000
TEMPERATURE = 0.25
"""Of the probability of windows, as a share of the root mean square of their scores."""
NEAR = 0.25
"""Windows with at least this IoU with the best one are averaged into the box."""
SAME = 0.5
"""Windows with at least this IoU show the same object."""


def place_windows(
    width: int,
    height: int,
    sizes: Sequence[float] = SIZES,
    aspects: Sequence[float] = ASPECTS,
    step: float = STEP,
    pixels: Sequence[tuple[float, float]] | None = None,
    shape: float = SHAPE,
) -> Array:
    """(m, 4) windows of an image, evenly spaced from edge to edge.

    Parameters
    ----------
    width, height : of the image
    sizes : sides, as shares of √(width · height)
    aspects : width by height, times (width / height)^shape of the image; every size comes with every aspect. A window
        that exceeds the image is cut down to it
    step : largest distance of neighbouring windows, as a share of their side
    pixels : (width, height) of windows in pixels, instead of sizes and aspects
    shape : 0 for absolute aspects, 1 for aspects relative to that of the image

    >>> place_windows(50, 50, sizes=[0.5], aspects=[1.0], step=1.0)
    array([[ 0.,  0., 25., 25.],
           [25.,  0., 50., 25.],
           [ 0., 25., 25., 50.],
           [25., 25., 50., 50.]])
    """
    step = number("step", step, "a share above 0 and at most 1", lambda share: 0 < share <= 1)
    if pixels is not None:
        sides = [(float(w), float(h)) for w, h in pixels]
    else:
        power = number("shape", shape, "a number from 0 to 1", lambda v: 0 <= v <= 1)
        root, wide = float(np.sqrt(width * height)), (width / height) ** power
        shapes = [a * wide for a in _shares("aspects", aspects)]
        sides = [(root * s * a**0.5, root * s / a**0.5) for s in _shares("sizes", sizes) for a in shapes]
    cut = dict.fromkeys((min(w, float(width)), min(h, float(height))) for w, h in sides)
    parts, count = [], 0
    for w, h in cut:
        across, down = _count_starts(width, w, step), _count_starts(height, h, step)
        count += across * down
        if count > MAX_WINDOWS:
            raise ValueError(f"more than {MAX_WINDOWS} windows in an image; use larger sizes or a larger step")
        lefts, tops = (np.linspace(0.0, max(room, 0.0), n) for room, n in ((width - w, across), (height - h, down)))
        x, y = (part.ravel() for part in np.meshgrid(lefts, tops))
        parts.append(np.column_stack([x, y, x + w, y + h]))
    boxes = np.concatenate(parts)
    return np.asarray(np.minimum(boxes, [width, height, width, height]))


def place_all(sizes: Array, placing: dict[str, Any]) -> tuple[Array, Array]:
    """The windows of images of these sizes, (m, 4), and the offset of each image."""
    placed = [place_windows(int(w), int(h), **placing) for w, h in sizes]
    return np.concatenate(placed), np.cumsum([0] + [len(own) for own in placed])


def _shares(name: str, values: Any) -> list[float]:
    given = numbers(name, values, "positive numbers")
    if given.ndim != 1 or not given.size or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"{name} must be positive numbers, got {shorten(values)}")
    return [float(value) for value in given]


def _count_starts(room: float, side: float, step: float) -> int:
    steps = max(room - side, 0.0) / max(step * side, np.finfo(float).tiny)
    return int(np.ceil(round(min(steps, MAX_WINDOWS + 1.0), 9))) + 1


class WindowMaps(Ragged):
    """Feature maps of many images, each with its windows; indexed and split like a `Ragged`.

    A cell of a map covers ``stride × stride`` pixels; cells come row by row, and the last ones may exceed the image.

    Parameters
    ----------
    values : (cells, d) the features of all cells of all images
    offsets : (n + 1,) where the cells of each image begin
    grids : (n, 2) rows and columns of each map
    sizes : (n, 2) width and height of each image, in pixels
    stride : pixels per cell: one number, or one per image
    windows : (m, 4) the windows of all images, in pixels
    window_offsets : (n + 1,) where the windows of each image begin

    >>> one = WindowMaps.of_maps([np.ones((3, 4, 2))], sizes=[(40, 30)], stride=10)
    >>> one
    WindowMaps(1 images, 12–12 cells each of 2 numbers, 438–438 windows)
    """

    def __init__(
        self, values: Any, offsets: Any, grids: Any, sizes: Any, stride: Any, windows: Any, window_offsets: Any
    ) -> None:
        super().__init__(values, offsets)
        self.grids, self.sizes = (_read_whole_pairs(*own) for own in (("grids", grids), ("sizes", sizes)))
        self.strides = np.broadcast_to(numbers("stride", stride), (len(self),)).astype(np.float64)
        self.windows = _read_rows("windows", windows, 4)
        self.window_offsets = check_offsets(window_offsets, len(self.windows), "window_offsets")
        self._check()

    def _check(self) -> None:
        n = len(self)
        if self.values.ndim != 2 or self.values.dtype.kind != "f":
            raise ValueError(f"values must be (cells, d) of floats, got {self.values.shape} of {self.values.dtype}")
        if not (len(self.grids) == len(self.sizes) == self.window_offsets.size - 1 == n):
            raise ValueError(f"{n} maps need {n} grids and sizes, got {len(self.grids)} and {len(self.sizes)}")
        is_wrong = ((self.grids < 0) | (self.grids > self.lengths[:, None])).any(axis=1)  # or the product wraps around
        is_wrong |= self.grids.prod(axis=1) != self.lengths
        if is_wrong.any():
            i = int(np.argmax(is_wrong))
            raise ValueError(f"map {i} has {self.lengths[i]} cells, but its grid is {self.grids[i].tolist()}")
        if n and self.sizes.min() < 1:
            raise ValueError(f"sizes must be at least 1 × 1 pixels, got {shorten(self.sizes)}")
        if n and not ((self.strides > 0) & (self.strides < np.inf)).all():
            raise ValueError(f"stride must be a number of pixels above 0, got {shorten(self.strides)}")
        step = self.strides[:, None]
        wide = self.grids[:, ::-1] * step
        is_off = ((wide < self.sizes - 0.5 * step) | (wide > self.sizes + 1.5 * step)).any(axis=1)
        if is_off.any():
            i = int(np.argmax(is_off))
            raise ValueError(
                f"map {i} of {self.grids[i].tolist()} cells of {self.strides[i]:g} pixels does not cover its image of "
                f"{self.sizes[i].tolist()} pixels; stride must be the pixels per cell of the map"
            )
        if (self.window_counts < 1).any():
            raise ValueError(f"image {int(np.argmin(self.window_counts))} needs at least one window")
        corners = np.repeat(self.sizes, self.window_counts, axis=0)
        boxes = self.windows
        good = np.isfinite(boxes).all(axis=1) & (boxes[:, :2] >= -1e-6).all(axis=1)
        good &= (boxes[:, 2:] <= corners + 1e-6).all(axis=1) & (boxes[:, :2] < boxes[:, 2:]).all(axis=1)
        if not good.all():
            raise ValueError(f"the window {boxes[int(np.argmin(good))].tolist()} is empty, or exceeds its image")

    @staticmethod
    def of_maps(
        maps: Sequence[Any],
        sizes: Any,
        stride: Any,
        windows: Sequence[Any] | None = None,
        window_sizes: Sequence[float] = SIZES,
        **placing: Any,
    ) -> WindowMaps:
        """From arrays (rows, columns, d), one per image.

        Parameters
        ----------
        maps : one array per image
        sizes : (n, 2) width and height of the images, in pixels
        stride : pixels per cell
        windows : (m_i, 4) per image, in pixels; None for those of `place_windows`
        window_sizes, placing : ``sizes`` of `place_windows`, and its other parameters
        """
        given = [np.asarray(one) for one in maps]
        wrong = [i for i, one in enumerate(given) if one.ndim != 3 or one.shape[2] != given[0].shape[2]]
        if not given or wrong:
            shape = given[wrong[0]].shape if given else ()
            raise ValueError(f"maps must be arrays (rows, columns, d) with one d, one per image, got shape {shape}")
        pixels = np.asarray(sizes).reshape(-1, 2)
        if windows is None:
            windows = [place_windows(int(w), int(h), window_sizes, **placing) for w, h in pixels]
        tables = [_read_rows("windows", own, 4) for own in windows]
        values = np.concatenate([one.reshape(-1, one.shape[2]) for one in given])
        grids = [one.shape[:2] for one in given]
        offsets, ends = (np.cumsum([0, *n]) for n in ([r * c for r, c in grids], [len(own) for own in tables]))
        return WindowMaps(values, offsets, grids, pixels, stride, np.concatenate(tables), ends)

    @property
    def window_counts(self) -> Array:
        """Windows of each image."""
        return np.diff(self.window_offsets)

    @property
    def boxes_as_bags(self) -> Ragged:
        """The windows alone, as bags with boxes: for `tacit.boxes.nearest` and `tacit.boxes.pick_boxes`."""
        return Ragged(np.zeros((len(self.windows), 0)), self.window_offsets, self.windows)

    def means(self) -> Array:
        """(n, d) the mean of every map: one row for the whole image."""
        return np.add.reduceat(self.values, self.offsets[:-1], axis=0) / self.lengths[:, None]

    def __getitem__(self, key: Any) -> Any:
        if key is Ellipsis or (isinstance(key, tuple) and all(part is Ellipsis for part in key)):
            return self
        if isinstance(key, tuple):
            key = next(part for part in key if part is not Ellipsis)
        if isinstance(key, bool) or is_whole(key):
            if not -len(self) <= key < len(self):
                raise IndexError(f"image {shorten(key)} does not exist; there are {len(self)} images")
            key = [range(len(self))[key]]
        cells = Ragged(np.arange(self.values.shape[0]), self.offsets)[key]
        index = np.arange(len(self))[key if isinstance(key, slice) else np.asarray(key, dtype=None)]
        index = np.atleast_1d(index).astype(np.int64)
        rows, cuts = states_of(self.window_offsets, index)
        grids, sizes, strides = self.grids[index], self.sizes[index], self.strides[index]
        return WindowMaps(self.values[cells.values], cells.offsets, grids, sizes, strides, self.windows[rows], cuts)

    def with_windows(self, **placing: Any) -> WindowMaps:
        """The same maps with other windows, placed by `place_windows`."""
        windows = place_all(self.sizes, placing)
        return WindowMaps(self.values, self.offsets, self.grids, self.sizes, self.strides, *windows)

    def with_values(self, values: Any) -> Self:
        """The same maps and windows with other features, one row per cell."""
        return type(self)(values, self.offsets, self.grids, self.sizes, self.strides, self.windows, self.window_offsets)

    @staticmethod
    def concatenate(parts: Iterable[Any]) -> WindowMaps:
        """The images of several `WindowMaps`, one after the other."""
        names = ("values", "lengths", "grids", "sizes", "strides", "windows", "window_counts")
        several = list(parts)
        joined = {name: np.concatenate([getattr(one, name) for one in several]) for name in names}
        for name in ("lengths", "window_counts"):
            joined[name] = np.concatenate([[0], np.cumsum(joined[name])])
        return WindowMaps(*joined.values())

    def pool_windows(self, contrast: str | None = "ring", parts: int = 1) -> Ragged:
        """One row of features per window, with its box: bags for `tacit.problems.Candidates`.

        `tacit.problems.Detection` pools scores instead. See `pooling` for ``contrast`` and ``parts``.

        >>> maps = WindowMaps.of_maps([np.ones((3, 4, 2))], [(40, 30)], 10, windows=[[[0, 0, 20, 20]]])
        >>> maps.pool_windows(contrast=None).values
        array([[1., 1.]])
        """
        one_of("contrast", contrast, CONTRASTS)
        parts = whole_number("parts", parts, 1, 8)
        plan = plan_pooling(self.windows, self.window_offsets, self.sizes, self.strides, contrast, parts)
        maps, d = self.values[:, None], self.values.shape[1]
        pieces = parts * parts
        step = (plan.inner[:, 2:] - plan.inner[:, :2]) / parts
        position = np.column_stack(np.divmod(np.arange(pieces), parts))[:, ::-1]  # across, down
        low = plan.inner[:, None, :2] + position * step[:, None]
        inner = np.concatenate([low, low + step[:, None]], axis=2).reshape(-1, 4)
        zero = np.zeros(len(inner))
        alone = Pooling(inner, inner, np.repeat(plan.own, pieces), zero, zero, 1)
        out = pool(maps, self.offsets, self.grids, alone, self.window_offsets * pieces).reshape(-1, pieces, d)
        if contrast is not None:
            rest = plan._replace(own=np.zeros(len(step)), parts=1)
            out += pool(maps, self.offsets, self.grids, rest, self.window_offsets)[:, None]
        return Ragged(out.reshape(len(out), -1).astype(self.values.dtype), self.window_offsets, self.windows)

    def __repr__(self) -> str:
        if not len(self):
            return "WindowMaps(0 images)"
        cells, windows = self.lengths, self.window_counts
        return (
            f"WindowMaps({len(self)} images, {cells.min()}–{cells.max()} cells each of {self.values.shape[1]} numbers, "
            f"{windows.min()}–{windows.max()} windows)"
        )


def _read_rows(name: str, values: Any, width: int) -> Array:
    """(rows, width) of numbers."""
    table = numbers(name, values, f"rows of {width} numbers")
    if table.size % width or table.ndim > 2 or (table.ndim == 2 and table.shape[1] != width):
        raise ValueError(f"{name} must be rows of {width} numbers, got shape {table.shape}")
    return table.reshape(-1, width)


def _read_whole_pairs(name: str, values: Any) -> Array:
    """(rows, 2) of whole numbers."""
    table = _read_rows(name, values, 2)
    if not (np.abs(table) < 1 << 53).all() or (table != np.floor(table)).any():
        raise ValueError(f"{name} must be pairs of whole numbers, got {shorten(values)}")
    return table.astype(np.int64)


def read_window_maps(X: Any) -> WindowMaps:
    """Checked maps: finite, at least one image."""
    if not isinstance(X, WindowMaps):
        raise TypeError(f"X must be WindowMaps, which tacit.window_maps makes from images, got {shorten(X)}")
    if not len(X):
        raise ValueError("X has 0 samples, a minimum of 1 is required")
    wrong = first_non_finite(X.values)
    if wrong:
        raise ValueError(f"X contains NaN or infinity, in cell {wrong[0]}; remove its image or replace the value")
    return X


def window_scores(maps: WindowMaps, weights: Array) -> Array:
    """(m,) the score of every window; ``weights`` (n, d) has one row per image, or (d,) one for all."""
    features = maps.values.shape[1]
    kinds, which = np.unique(np.atleast_2d(weights), axis=0, return_inverse=True)  # one per class, not per image
    pieces = kinds.shape[1] // features
    cells = maps.values @ kinds.reshape(-1, features).T.astype(maps.values.dtype)
    own = np.repeat(np.broadcast_to(which.ravel(), (len(maps),)), maps.lengths)
    cells = cells.reshape(-1, len(kinds), pieces)[np.arange(len(cells)), own]
    plan = plan_pooling(maps.windows, maps.window_offsets, maps.sizes, maps.strides, "ring", math.isqrt(pieces))
    return pool(cells[:, :, None], maps.offsets, maps.grids, plan, maps.window_offsets)[:, 0]


def best_windows(maps: WindowMaps, weights: Array) -> Array:
    """(n,) the window of the highest score in every image."""
    return _first_top(maps, window_scores(maps, weights))


def _first_top(maps: WindowMaps, scores: Array) -> Array:
    tops = np.maximum.reduceat(scores, maps.window_offsets[:-1])
    is_top = scores == np.repeat(tops, maps.window_counts)
    best = np.flatnonzero(is_top)
    first = np.searchsorted(best, maps.window_offsets[:-1])
    return np.asarray(best[first] - maps.window_offsets[:-1])


def best_types(maps: WindowMaps, scores: Array) -> Array:
    """(n,) the type of the object in every image, by scores (m, T): that of its best window."""
    best = maps.window_offsets[:-1] + _first_top(maps, scores.max(axis=1))
    return np.asarray(scores[best].argmax(axis=1))


def boxes_of(maps: WindowMaps, windows: Array) -> Array:
    """(n, 4) the boxes of chosen windows."""
    return np.asarray(maps.windows[maps.window_offsets[:-1] + windows])


def expected_boxes(maps: WindowMaps, scores: Array, temperature: float) -> tuple[Array, Array]:
    """The box of every image, (n, 4), and its confidence, (n,) from 0 to 1.

    Windows come in a few sizes and steps, and the object lies between them. So the box is the mean of the best window
    and of those around it, each weighted by its probability. The confidence is the probability of the windows that have
    an IoU of at least one half with the best one.

    Parameters
    ----------
    maps : with windows
    scores : (m,) of all windows
    temperature : of `measure_temperature`

    >>> maps = WindowMaps.of_maps([np.ones((3, 4, 2))], [(40, 30)], 10, windows=[[[0, 0, 20, 20], [4, 0, 24, 20]]])
    >>> expected_boxes(maps, np.array([1.0, 1.0]), 0.5)
    (array([[ 2.,  0., 22., 20.]]), array([1.]))
    """
    starts, counts = maps.window_offsets[:-1], maps.window_counts
    tops = np.repeat(np.maximum.reduceat(scores, starts), counts)
    best = np.repeat(boxes_of(maps, _first_top(maps, scores)), counts, axis=0)
    shared = overlap(best, maps.windows)
    chance = np.exp((scores - tops) / temperature)
    near = chance * (shared >= NEAR)
    boxes = np.add.reduceat(near[:, None] * maps.windows, starts) / np.add.reduceat(near, starts)[:, None]
    return np.asarray(boxes), np.add.reduceat(chance * (shared >= SAME), starts) / np.add.reduceat(chance, starts)


def measure_temperature(maps: WindowMaps, scores: Array) -> float:
    """The difference of scores that makes a window e times as likely as another: a share of their RMS."""
    scale = np.sqrt(np.add.reduceat(scores**2, maps.window_offsets[:-1]) / maps.window_counts)
    return float(max(TEMPERATURE * scale.mean(), 1e-12))


def find_boxes(maps: WindowMaps, weights: Array) -> Array:
    """(n, 4) the boxes by weights (n, d) or (d,) of windows, of many images at once."""
    scores = window_scores(maps, weights)
    return expected_boxes(maps, scores, measure_temperature(maps, scores))[0]

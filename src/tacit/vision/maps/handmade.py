"""Gradients, textures, colours and visual words as feature maps: histograms per cell. `MapStack` joins several."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import entries, whole_number
from tacit.data.specs import check_parameters, estimator, parameter, switch, whole
from tacit.vision.hog_windows import BLOCK, CLIP, EPSILON, ORIENTATIONS, oriented_gradients
from tacit.vision.maps.pooling import plan_pooling, pool
from tacit.vision.photos import as_grey, as_uint8, check_image, scale_image

SIDE, CELL = 160, 8
COLOUR_BINS = 6
PATCH, STEP = 8, 4
MAX_PATCHES_PER_IMAGE = 200


@estimator
class HistogramMap(BaseEstimator):  # type: ignore[misc]
    """Base of maps that are histograms per cell.

    Parameters
    ----------
    cell : pixels across a cell, and down
    side : pixels of the longest side to which images are scaled
    """

    cell: int = parameter(whole(1, 1 << 12), default=CELL)
    side: int = parameter(whole(4, 1 << 14), default=SIDE)

    def check(self) -> None:
        """Refuse invalid parameters."""
        check_parameters(self)

    def digest(self) -> str:
        """All that the numbers depend on, as text."""
        return repr(sorted(self.get_params().items())) + type(self).__name__

    def sum_cells(self, bins: Array, amounts: Array, size: int) -> Array:
        """(rows, columns, size): the mean amount per pixel and bin of every cell; the last cells may be smaller."""
        cell = int(self.cell)
        height, width = bins.shape[:2]
        rows, columns = -(-height // cell), -(-width // cell)
        y, x = np.indices((height, width))
        position = (y // cell) * columns + x // cell
        if bins.ndim == 3:
            position = position[:, :, None]
        flat = (position * size + bins).ravel()
        sums = np.bincount(flat, np.broadcast_to(amounts, bins.shape).ravel(), minlength=rows * columns * size)
        down, across = (np.minimum(cell, n - cell * np.arange(-(-n // cell))) for n in (height, width))
        return np.asarray(sums.reshape(rows, columns, size) / np.outer(down, across)[:, :, None], dtype=np.float32)


@estimator
class GradientMap(HistogramMap):
    """Histograms of oriented gradients (Dalal & Triggs 2005): 9 orientations per cell, as in `tacit.windows`.

    Parameters
    ----------
    cell, side : see `HistogramMap`
    normalised : whether every cell is scaled by the energy of each of its four blocks of 2 × 2 cells, and clipped: 36
        numbers; False for the 9 sums

    >>> GradientMap()(np.zeros((120, 160, 3), np.uint8)).shape
    (15, 20, 36)
    """

    normalised: bool = parameter(switch, default=True)

    def __call__(self, pixels: Array) -> Array:
        size, bins = oriented_gradients(as_grey(pixels))
        sums = self.sum_cells(np.minimum(bins, ORIENTATIONS - 1), size, ORIENTATIONS)
        return _scale_by_blocks(sums) if self.normalised else sums


def _scale_by_blocks(sums: Array) -> Array:
    energy = np.pad((sums.astype(np.float64) ** 2).sum(axis=2), 1, mode="edge")
    blocks = energy[:-1, :-1] + energy[1:, :-1] + energy[:-1, 1:] + energy[1:, 1:]
    rows, columns, _ = sums.shape
    parts = [
        np.minimum(sums / np.sqrt(blocks[i : i + rows, j : j + columns, None] + EPSILON), CLIP)
        for i in range(BLOCK)
        for j in range(BLOCK)
    ]
    return np.concatenate(parts, axis=2).astype(np.float32)


class TextureMap(HistogramMap):
    """Local binary patterns (Ojala et al. 2002): which of the 8 neighbours of a pixel are brighter; 10 patterns.

    >>> TextureMap()(np.zeros((120, 160, 3), np.uint8)).shape
    (15, 20, 10)
    """

    def __call__(self, pixels: Array) -> Array:
        grey = np.pad(as_grey(pixels), 1, mode="edge")
        height, width = pixels.shape[:2]
        middle = grey[1:-1, 1:-1]
        around = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
        bright = np.stack([grey[r : r + height, c : c + width] > middle + 0.01 for r, c in around])
        changes = (bright != np.roll(bright, 1, axis=0)).sum(axis=0)
        kind = np.where(changes <= 2, bright.sum(axis=0), 9)
        return np.asarray(np.sqrt(self.sum_cells(kind, np.ones(1), 10)))


class ColourMap(HistogramMap):
    """Histograms of brightness, red against green, and yellow against blue: 18 numbers.

    >>> ColourMap()(np.zeros((120, 160, 3), np.uint8)).shape
    (15, 20, 18)
    """

    def __call__(self, pixels: Array) -> Array:
        red, green, blue = np.moveaxis(as_uint8(pixels) / 255.0, 2, 0)
        axes = [(red + green + blue) / 3, 0.5 + (red - green), 0.5 + ((red + green) / 2 - blue)]
        parts: list[Any] = []
        for values in axes:
            position = np.clip(values * COLOUR_BINS - 0.5, 0, COLOUR_BINS - 1.001)
            low = position.astype(np.int64)
            bins = np.stack([low, low + 1], axis=2)
            amounts = np.stack([1 - (position - low), position - low], axis=2)
            parts.append(self.sum_cells(bins, amounts, COLOUR_BINS))
        return np.asarray(np.sqrt(np.concatenate(parts, axis=2)))


@estimator
class WordMap(HistogramMap):
    """Bags of visual words: how often each word occurs in a cell (Csurka et al. 2004).

    Visual words are centres of k-means on patches of 8 × 8 grey values, each with mean 0 and length 1. `fit` learns
    them.

    Parameters
    ----------
    cell, side : see `HistogramMap`
    words : number of visual words
    random_state : seed of k-means

    >>> images = [np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)]
    >>> WordMap(words=5, side=40).fit(images)(images[0]).shape
    (5, 5, 5)
    """

    words: int = parameter(whole(2, 10_000), default=48)
    random_state: int = 0

    def check(self) -> None:
        super().check()
        words = int(self.words)
        centres = getattr(self, "centres_", None)
        if centres is not None and (not is_table(centres, 2, "f") or centres.shape != (words, PATCH * PATCH)):
            raise ValueError(f"centres_ must be {words} patches of {PATCH * PATCH} numbers; fit again")

    def learned_attributes(self) -> dict[str, Any]:
        return {"centres_": self.centres_}

    def fit(self, images: Iterable[Array]) -> WordMap:
        """Learn the visual words from images, pixels (height, width, 3) each."""
        from sklearn.cluster import KMeans

        self.check()
        rng = np.random.default_rng(whole_number("random_state", self.random_state, 0))
        parts = []
        for pixels in entries("images", images, "a list of images"):
            found = _patches(pixels)[0]
            parts.append(found[rng.permutation(len(found))[:MAX_PATCHES_PER_IMAGE]])
        table = np.concatenate([np.zeros((0, PATCH * PATCH)), *parts])
        words = int(self.words)
        if len(table) < words:
            raise ValueError(f"words={words} must be at most {len(table)}, the number of patches; give more images")
        means = KMeans(words, n_init=1, random_state=int(self.random_state), max_iter=50, algorithm="lloyd").fit(table)
        self.centres_ = means.cluster_centers_
        return self

    def digest(self) -> str:
        return super().digest() + hashlib.sha256(self.centres_.tobytes()).hexdigest()

    def __call__(self, pixels: Array) -> Array:
        if not hasattr(self, "centres_"):
            raise ValueError("this WordMap is not fitted; call fit(images) first")
        patches, rows, columns = _patches(pixels)
        word = (patches @ self.centres_.T - 0.5 * (self.centres_**2).sum(axis=1)).argmax(axis=1)
        words = np.full(pixels.shape[:2], int(self.words))
        words[rows, columns] = word
        counts = self.sum_cells(words, np.ones(1), int(self.words) + 1)[:, :, : int(self.words)]
        return np.asarray(np.sqrt(counts * STEP**2))


def _patches(pixels: Array) -> tuple[Array, Array, Array]:
    """Normalised patches of every fourth pixel, and the rows and columns of their middles."""
    grey = np.pad(as_grey(pixels), PATCH // 2, mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(grey, (PATCH, PATCH))[:-1:STEP, :-1:STEP]
    flat = views.reshape(-1, PATCH * PATCH)
    flat = flat - flat.mean(axis=1, keepdims=True)
    flat /= np.sqrt((flat**2).sum(axis=1, keepdims=True)) + 0.1
    y, x = np.indices(views.shape[:2])
    return flat, STEP * y.ravel(), STEP * x.ravel()


class MapStack(BaseEstimator):  # type: ignore[misc]
    """The features of several maps, cell by cell; finer ones are averaged over the cells of the coarsest.

    Parameters
    ----------
    maps : map makers; each gets the image scaled to its own `side`

    >>> stack = MapStack([GradientMap(cell=8), ColourMap(cell=16)])
    >>> stack(np.zeros((128, 160, 3), np.uint8)).shape
    (8, 10, 54)
    """

    def __init__(self, maps: Sequence[Any]) -> None:
        self.maps = maps

    @property
    def side(self) -> int:
        """The largest side that one of the maps takes."""
        return max(int(one.side) for one in self.maps)

    @property
    def cell(self) -> float:
        """Pixels per cell of an image scaled to the largest side."""
        return float(max(one.cell * self.side / one.side for one in self.maps))

    def check(self) -> None:
        """Refuse anything but a list of valid map makers."""
        if not isinstance(self.maps, list | tuple) or not self.maps:
            raise TypeError("maps must be a list of map makers, such as [GradientMap(), ColourMap()]")
        for one in self.maps:
            one.check()

    def fit(self, images: Iterable[Array]) -> MapStack:
        """Fit those of the maps that learn from images."""
        given = list(images)
        for one in self.maps:
            if hasattr(one, "fit"):
                one.fit([scale_image(pixels, one.side) for pixels in given])
        return self

    def digest(self) -> str:
        parts = [one.digest() for one in self.maps]
        return " + ".join(parts) if all(parts) else ""

    def __call__(self, pixels: Array) -> Array:
        pixels = check_image(pixels)
        height, width = pixels.shape[:2]
        cell = self.cell
        rows, columns = int(np.ceil(round(height / cell, 6))), int(np.ceil(round(width / cell, 6)))
        parts = []
        for one in self.maps:
            found = one(scale_image(pixels, one.side) if one.side != self.side else pixels)
            own = one.cell * self.side / one.side
            is_same = found.shape[:2] == (rows, columns) and abs(own - cell) < 1e-9
            parts.append(found if is_same else _average_cells(found, own, cell, (rows, columns), (width, height)))
        return np.concatenate(parts, axis=2).astype(np.float32)


def _average_cells(found: Array, own: float, cell: float, grid: tuple[int, int], size: tuple[int, int]) -> Array:
    """A map of cells of ``own`` pixels, averaged to cells of ``cell`` pixels."""
    rows, columns = grid
    y, x = (part.ravel() * cell for part in np.indices(grid))
    boxes = np.column_stack([x, y, np.minimum(x + cell, size[0]), np.minimum(y + cell, size[1])])
    ends = np.array([0, len(boxes)])
    plan = plan_pooling(boxes, ends, np.array([size]), np.array([own]), None)
    flat = found.reshape(-1, 1, found.shape[2])
    pooled = pool(flat, np.array([0, len(flat)]), np.array([found.shape[:2]]), plan, ends)
    return pooled.reshape(rows, columns, -1)


def handmade_maps(random_state: int = 0) -> MapStack:
    """Gradients, textures, colours and visual words together: what `tacit locate` uses where no network is given."""
    return MapStack([GradientMap(), TextureMap(), ColourMap(), WordMap(random_state=random_state)])

"""Gradients, textures and colours as feature maps: histograms of the pixels of every cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.data.parameters import switch, whole_number
from tacit.vision.window_bags import BLOCK, CLIP, EPSILON, ORIENTATIONS, as_grey

SIDE, CELL = 160, 8
COLOUR_BINS = 6


class HistogramMap(BaseEstimator):  # type: ignore[misc]
    """Base of maps that count something per cell.

    Parameters
    ----------
    cell : pixels across a cell, and down
    side : pixels of the longest side to which images are scaled
    """

    def __init__(self, cell: int = CELL, side: int = SIDE) -> None:
        self.cell = cell
        self.side = side

    def check(self) -> None:
        """Refuse invalid parameters."""
        whole_number("cell", self.cell, 1, 1 << 12)
        whole_number("side", self.side, 4, 1 << 14)

    def digest(self) -> str:
        """What the numbers depend on, as text."""
        return repr(sorted(self.get_params().items())) + type(self).__name__

    def sum_cells(self, bins: Array, amounts: Array, size: int) -> Array:
        """(rows, columns, size): the mean amount per pixel and bin of every cell; the last cells may be cut short."""
        cell = int(self.cell)
        height, width = bins.shape[:2]
        rows, columns = -(-height // cell), -(-width // cell)
        y, x = np.indices((height, width))
        place = (y // cell) * columns + x // cell
        if bins.ndim == 3:
            place = place[:, :, None]
        flat = (place * size + bins).ravel()
        sums = np.bincount(flat, np.broadcast_to(amounts, bins.shape).ravel(), minlength=rows * columns * size)
        pixels = np.minimum(cell, height - cell * np.arange(rows))[:, None] * np.minimum(
            cell, width - cell * np.arange(columns)
        )
        return np.asarray(sums.reshape(rows, columns, size) / pixels[:, :, None], dtype=np.float32)


class GradientMap(HistogramMap):
    """Histograms of oriented gradients (Dalal & Triggs 2005): 9 orientations per cell, as in `tacit.windows`.

    Parameters
    ----------
    cell, side : see `HistogramMap`
    normalised : scale every cell by the energy of each of the four blocks of 2 × 2 cells that it is in, and clip: 36
        numbers; False for the 9 sums themselves

    >>> GradientMap()(np.zeros((120, 160, 3), np.uint8)).shape
    (15, 20, 36)
    """

    def __init__(self, cell: int = CELL, side: int = SIDE, normalised: bool = True) -> None:
        super().__init__(cell, side)
        self.normalised = normalised

    def check(self) -> None:
        super().check()
        switch("normalised", self.normalised)

    def __call__(self, pixels: Array) -> Array:
        grey = as_grey(pixels)
        across, down = np.zeros_like(grey), np.zeros_like(grey)
        across[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
        down[1:-1] = grey[2:] - grey[:-2]
        bins = (np.rad2deg(np.arctan2(down, across)) % 180 // (180 / ORIENTATIONS)).astype(np.int64)
        sums = self.sum_cells(np.minimum(bins, ORIENTATIONS - 1), np.hypot(across, down), ORIENTATIONS)
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
    """Local binary patterns (Ojala et al. 2002): which of the 8 neighbours of a pixel are brighter, 10 kinds of pixels.

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
        red, green, blue = np.moveaxis(pixels[:, :, :3] / 255.0, 2, 0)
        axes = [(red + green + blue) / 3, 0.5 + (red - green), 0.5 + ((red + green) / 2 - blue)]
        parts: list[Any] = []
        for values in axes:
            place = np.clip(values * COLOUR_BINS - 0.5, 0, COLOUR_BINS - 1.001)
            low = place.astype(np.int64)
            bins = np.stack([low, low + 1], axis=2)
            amounts = np.stack([1 - (place - low), place - low], axis=2)
            parts.append(self.sum_cells(bins, amounts, COLOUR_BINS))
        return np.asarray(np.sqrt(np.concatenate(parts, axis=2)))

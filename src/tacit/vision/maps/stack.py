"""Several feature maps as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.vision.maps.handmade import ColourMap, GradientMap, TextureMap
from tacit.vision.maps.pooling import plan_pooling, pool
from tacit.vision.maps.words import WordMap
from tacit.vision.scaling import scale_image


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
        """Pixels per cell of an image of the largest side."""
        return float(max(one.cell * self.side / one.side for one in self.maps))

    def check(self) -> None:
        """Refuse what is no list of map makers."""
        if not isinstance(self.maps, list | tuple) or not self.maps:
            raise TypeError("maps must be a list of feature maps, such as [GradientMap(), ColourMap()]")
        for one in self.maps:
            one.check()

    @property
    def needs_fit(self) -> bool:
        """Whether one of the maps still has to learn from images."""
        return any(hasattr(one, "fit") and not hasattr(one, "centres_") for one in self.maps)

    def fit(self, images: Iterable[Array]) -> MapStack:
        """Let those maps learn that can."""
        given = list(images)
        for one in self.maps:
            if hasattr(one, "fit"):
                one.fit([scale_image(pixels, one.side) for pixels in given])
        return self

    def digest(self) -> str:
        parts = [one.digest() for one in self.maps]
        return " + ".join(parts) if all(parts) else ""

    def __call__(self, pixels: Array) -> Array:
        height, width = pixels.shape[:2]
        cell = self.cell
        rows, columns = int(np.ceil(round(height / cell, 6))), int(np.ceil(round(width / cell, 6)))
        parts = []
        for one in self.maps:
            found = one(scale_image(pixels, one.side) if one.side != self.side else pixels)
            own = one.cell * self.side / one.side
            is_same = found.shape[:2] == (rows, columns) and abs(own - cell) < 1e-9
            parts.append(found if is_same else _averaged(found, own, cell, (rows, columns), (width, height)))
        return np.concatenate(parts, axis=2).astype(np.float32)


def _averaged(found: Array, own: float, cell: float, grid: tuple[int, int], size: tuple[int, int]) -> Array:
    """A map of cells of ``own`` pixels as one of ``cell`` pixels."""
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

"""Features of regions from the feature map of an image: principal components of its cells, averaged over regions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from tacit.data.arrays import Array
from tacit.vision.maps.photo_maps import MappedImage, map_photos
from tacit.vision.photos import image_sources
from tacit.vision.regions.graphs import RegionGraphs

COMPONENTS = 64
"""Principal components that describe a region."""
MAX_IMAGES = 200
"""Images whose cells the components are learned from, at equal steps of all images."""


def learn_components(images: Any, maker: Any, **settings: Any) -> Array:
    """(components, d + 1): principal components of the cells of feature maps, and last the component of their mean.

    The components have variance 1 over cells. ``maker`` and ``settings`` are those of `map_photos`.
    """
    sources = image_sources(images)
    n = min(len(sources), MAX_IMAGES)
    chosen = [sources[i * len(sources) // n] for i in range(n)]
    count, total, square = 0, np.zeros(0), np.zeros((0, 0))
    for found in map_photos(chosen, maker, **settings):
        cells = found.map.reshape(-1, found.map.shape[2]).astype(np.float64)
        if not count:
            total, square = np.zeros(cells.shape[1]), np.zeros((cells.shape[1], cells.shape[1]))
        count, total, square = count + len(cells), total + cells.sum(axis=0), square + cells.T @ cells
    mean, d = total / count, total.size
    values, vectors = eigh(square / count - np.outer(mean, mean), subset_by_index=(max(d - COMPONENTS, 0), d - 1))
    varies = values > 1e-9 * max(values[-1], 1e-9)
    axes = (vectors[:, varies] / np.sqrt(values[varies])).T[::-1]
    return np.ascontiguousarray(np.column_stack([axes, axes @ mean]))


def add_components(graphs: RegionGraphs, images: Any, maker: Any, components: Array, **settings: Any) -> RegionGraphs:
    """The same graphs with the components of `learn_components` beside the features of regions."""
    assert graphs.maps is not None  # graphs of `tacit.regions` have them
    parts = []
    for found, regions in zip(map_photos(images, maker, **settings), graphs.maps, strict=True):
        parts.append(average_cells(found, regions) @ components[:, :-1].T - components[:, -1])
    return graphs.with_values(np.hstack([graphs.values, np.concatenate(parts).astype(np.float32)]))


def average_cells(found: MappedImage, regions: Array) -> Array:
    """(regions, d) the map of an image, linear between the middles of its cells, averaged over every region.

    >>> found = MappedImage(np.array([[[0.0], [4.0]]]), (8, 4), 4.0)
    >>> average_cells(found, np.repeat([[0, 0, 1, 1]], 2, axis=0)).ravel()
    array([0.5, 3.5])
    """
    height, width, d = found.map.shape
    (top, bottom, down), (left, right, across) = (
        _between(n_cells, n_pixels, found.stride * n_pixels / size)
        for n_cells, n_pixels, size in zip((height, width), regions.shape, found.size[::-1], strict=True)
    )
    n, flat = int(regions.max()) + 1, regions.ravel()
    weights = np.zeros(n * height * width)
    for row, by_row in ((top, 1 - down), (bottom, down)):
        for column, by_column in ((left, 1 - across), (right, across)):
            places = flat * (height * width) + (row[:, None] * width + column).ravel()
            weights += np.bincount(places, np.outer(by_row, by_column).ravel(), weights.size)
    shares = weights.reshape(n, -1) / np.bincount(flat, minlength=n)[:, None]
    return np.asarray(shares @ found.map.reshape(-1, d))


def _between(n_cells: int, n_pixels: int, stride: float) -> tuple[Array, Array, Array]:
    """The cells before and behind the middle of every pixel, and its distance from the first in cells."""
    at = np.clip((np.arange(n_pixels) + 0.5) / stride - 0.5, 0, n_cells - 1)
    low = np.floor(at).astype(np.int64)
    return low, np.minimum(low + 1, n_cells - 1), at - low

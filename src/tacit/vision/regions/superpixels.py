"""Images cut into regions of even colour (superpixels), and their features; components of feature maps as further ones.

Needs the extra ``vision``.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import is_not_negative, is_positive, number, one_of, whole_number
from tacit.data.ragged import Ragged
from tacit.runtime.archive import StorageError
from tacit.vision.maps.photo_maps import MappedImage, map_photos
from tacit.vision.photos import as_colours, cache_folder, describe_images, image_sources, read_cached, read_image
from tacit.vision.regions.features import EDGE_FEATURES, REGION_FEATURES, Described, describe_regions
from tacit.vision.regions.graphs import RegionGraphs
from tacit.vision.regions.working_size import shrink

KIND = 9
"""Version of the description, a part of every cache key. Raise it when the numbers change."""
MAX_REGIONS = 20_000
"""Limit of regions per image."""


COMPONENTS = 64
"""Principal components that describe a region."""
MAX_IMAGES = 200
"""Images whose cells the components are learned from, at equal steps of all images."""


class _Setting(NamedTuple):
    method: str
    n_segments: int
    compactness: float
    scale: float
    min_size: int


MAX_REGION_PIXELS = 25_000_000
"""Pixels of an image file that is cut into regions; without max_side, cutting takes about 100 bytes per pixel."""


def regions(
    images: Any,
    method: str = "felzenszwalb",
    *,
    n_segments: int = 200,
    compactness: float = 30.0,
    scale: float = 30.0,
    min_size: int = 20,
    cache: str | os.PathLike[str] | None = None,
    max_pixels: int = MAX_REGION_PIXELS,
    max_side: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> RegionGraphs:
    """Cut images into regions of even colour (superpixels), with features: graphs for `tacit.problems.Regions`.

    Features of a region are its colour, texture, location and size, and its difference from its neighbours and from the
    border of the image. Features of a pair of neighbours are similarities. `REGION_FEATURES` and `EDGE_FEATURES` of
    `tacit.vision.regions.features` name the columns. Colour images work better than grey ones. The graphs keep the
    pixels of a region, so ``paint`` converts labels of regions to masks.

    A mask of regions cannot be better than the regions: check the pixel accuracy of ``paint(mark(masks))`` before you
    fit. For SLIC, a compactness below 10 lowers it much.

    Parameters
    ----------
    images : as in `tacit.windows`: an array, a path, a folder, or a list of arrays and paths
    method : "felzenszwalb" (Felzenszwalb & Huttenlocher 2004), regions whose sizes follow the image, or "slic" (Achanta
        et al. 2012), regions of about the same size
    n_segments, compactness : of "slic": approximate number of regions, and the factor of location beside colour
    scale, min_size : of "felzenszwalb": larger scales make larger regions; the least pixels of a region
    cache : a folder that keeps the regions of every image, under a checksum of pixels and settings; None for no cache
    max_pixels : larger image files are refused before they are unpacked
    max_side : larger images are shrunk to this longest side first, and the maps of their regions are of that size;
        `tacit.vision.segmentation.segmenter.enlarge_labels` enlarges labels. None cuts them at full size
    n_jobs : threads that share the images; None for one
    verbose : 1 shows progress on a terminal or in a notebook when it takes longer than a second, 2 writes plain lines

    >>> image = np.zeros((40, 60, 3)); image[10:30, 20:40] = (0.6, 0.3, 0.1)
    >>> graphs = regions(image, "slic", n_segments=20)
    >>> bool(graphs.lengths[0] > 10), int(graphs.paint(graphs.mark([image[:, :, 0] > 0]))[0].sum())
    (True, 400)
    """
    one_of("method", method, ("slic", "felzenszwalb"))
    setting = _Setting(
        method,
        whole_number("n_segments", n_segments, 1, MAX_REGIONS),
        float(number("compactness", compactness, "a positive number", is_positive)),
        float(number("scale", scale, "a number from 0", is_not_negative)),
        whole_number("min_size", min_size, 1, 1 << 31),
    )
    folder = cache_folder(cache)
    side = None if max_side is None else whole_number("max_side", max_side, 16, 1 << 31)

    def describe(source: Any, name: str) -> Described:
        pixels = shrink(source if isinstance(source, np.ndarray) else read_image(source, max_pixels), side, name)
        about = f"{KIND}{setting}{pixels.shape}{pixels.dtype}"

        def make() -> dict[str, Array]:
            colours = as_colours(pixels, name)
            return describe_regions(colours, _cut(colours, setting))._asdict()

        return Described(**read_cached(folder, "regions", about, pixels, name, make, _check_cached))

    parts = describe_images(images, describe, "images cut into regions", n_jobs, verbose)
    values, areas, edges, edge_values, maps = zip(*parts, strict=True)
    offsets, edge_offsets = (np.cumsum([0, *map(len, own)]) for own in (areas, edges))
    nodes = Ragged(np.concatenate(values), offsets)
    tables = {"areas": areas, "edges": edges, "edge_values": edge_values}
    joined = {name: np.concatenate(own) for name, own in tables.items()}
    return RegionGraphs(nodes, **joined, edge_offsets=edge_offsets, maps=maps)


def _check_cached(arrays: dict[str, Array]) -> None:
    """Refuse a file of the cache unless it can be the regions of an image."""
    found = Described(**{name: arrays[name] for name in Described._fields})
    kinds = zip(found, (2, 1, 2, 2, 2), ("f", "f", "i", "f", "iu"), strict=True)
    widths = found.values.shape[1:], found.edges.shape[1:], found.edge_values.shape[1:]
    expected = (len(REGION_FEATURES),), (2,), (len(EDGE_FEATURES),)
    if not all(is_table(table, ndim, kind) for table, ndim, kind in kinds) or widths != expected:
        raise StorageError(f"it contains tables of {widths} columns, not regions")


def _cut(colours: Array, setting: _Setting) -> Array:
    """The region of every pixel, numbered from 0 without gaps."""
    try:
        from skimage.segmentation import felzenszwalb, slic
    except ImportError as error:
        raise ImportError('regions need scikit-image: pip install "tacit[vision]"') from error
    if min(colours.shape[:2]) < 3:
        return np.zeros(colours.shape[:2], dtype=np.int32)  # too small to cut
    if setting.method == "slic":
        cut = slic(colours, n_segments=setting.n_segments, compactness=setting.compactness, start_label=0)
    else:
        cut = felzenszwalb(colours, scale=setting.scale, sigma=0.5, min_size=setting.min_size)
    numbered = np.unique(cut, return_inverse=True)[1].reshape(cut.shape).astype(np.int32)
    if numbered.max() >= MAX_REGIONS:
        raise ValueError(f"an image has {numbered.max() + 1} regions; raise min_size or scale, or shrink the image")
    return numbered


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

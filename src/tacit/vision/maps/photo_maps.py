"""Feature maps of photos, with windows: in memory, or in shards on disk where they exceed it."""

from __future__ import annotations

import copy
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import file_path, reason
from tacit.data.ragged import Ragged
from tacit.data.shard_folder import new_folder, write_shards
from tacit.data.shards import Shards
from tacit.data.table import MappedArray
from tacit.runtime.archive import StorageError
from tacit.vision.maps.network import read_features
from tacit.vision.maps.window_maps import WindowMaps, place_all, place_windows
from tacit.vision.photos import (
    MAX_PIXELS,
    cache_folder,
    describe_images,
    make_folder,
    photo_pixels,
    read_cached,
    scale_image,
)

KIND = 1
"""Version of the maps, a part of every cache key. Raise it when the numbers change."""
SHAPES = "maps.npy"
"""The file beside the shards with rows, columns, width, height and stride of every map."""
PHOTOS_PER_SHARD = 256
CELLS_AT_A_TIME = 1 << 14


def window_maps(
    images: Any,
    features: Any,
    *,
    cache: str | os.PathLike[str] | None = None,
    max_pixels: int = MAX_PIXELS,
    n_jobs: int | None = None,
    verbose: int = 1,
    **placing: Any,
) -> WindowMaps:
    """Feature maps of images, each with windows of several sizes: X of `tacit.problems.Detection`.

    EXIF orientation is applied. Needs the extra ``vision``.

    Parameters
    ----------
    images : an array (height, width) or (height, width, channels), a path, a folder, or a list of arrays and paths
    features : the path of a network (``.onnx``), or a map maker of `tacit.vision.maps`, such as `GradientMap()`;
        `CalledMap` makes one from your own function
    cache : a folder that keeps maps, under a checksum of the pixels and the features; None for no cache
    max_pixels : larger files are refused before they are unpacked
    n_jobs : threads; the result is the same for any number
    verbose : 1 shows progress on a terminal when it takes longer than a second
    placing : sizes, aspects, step or pixels of the windows, see `place_windows`

    >>> from tacit.vision.maps import GradientMap
    >>> window_maps(np.eye(40), GradientMap(side=40), sizes=[0.5], aspects=[1.0], step=0.5)
    WindowMaps(1 images, 25–25 cells each of 36 numbers, 9–9 windows)
    """
    maps, sizes, strides = zip(*map_photos(images, features, cache, max_pixels, n_jobs, verbose), strict=True)
    return WindowMaps.of_maps(maps, sizes, strides, [place_windows(*size, **placing) for size in sizes])


class MappedImage(NamedTuple):
    """The map of one image, its width and height, and pixels per cell."""

    map: Array
    size: tuple[int, int]
    stride: float


def map_photos(
    images: Any, features: Any, cache: Any = None, max_pixels: int = MAX_PIXELS, n_jobs: Any = None, verbose: int = 1
) -> Iterator[MappedImage]:
    """The maps of images, one after the other; parameters as in `window_maps`."""
    maker = read_features(features)
    digest, side = maker.digest(), int(maker.side)
    folder = cache_folder(cache)

    def describe(source: Any, name: str) -> MappedImage:
        pixels = photo_pixels(source, name, max_pixels)
        height, width = pixels.shape[:2]

        def make() -> dict[str, Array]:
            return {"map": np.asarray(maker(scale_image(pixels, side)), dtype=np.float32)}

        about = f"{KIND} {digest} {pixels.shape}"
        found = read_cached(folder if digest else None, "map", about, pixels, name, make, _check_cached)["map"]
        return MappedImage(found, (width, height), float(maker.cell) * max(width, height) / side)

    return describe_images(images, describe, "images described", n_jobs, verbose)


def _check_cached(arrays: dict[str, Array]) -> None:
    """Refuse a file of the cache unless it can be the map of an image."""
    table = arrays["map"]
    if not is_table(table, 3, "f") or table.dtype != np.float32 or not np.isfinite(table).all() or 0 in table.shape:
        raise StorageError(f"it contains {table.shape} numbers, not a map")


class MapShards:
    """Feature maps in a folder of shards, for `tacit.problems.Detection` and `tacit.apps.Locator`.

    Results are those of `WindowMaps`, but only the principal components of the cells are kept in memory.

    Parameters
    ----------
    folder : that `MapShards.write` wrote

    >>> from tacit.vision.maps import GradientMap
    >>> folder = tempfile.TemporaryDirectory()
    >>> maps = MapShards.write(folder.name, [np.eye(40), np.ones((40, 30))], GradientMap(side=40), verbose=0)
    >>> maps
    MapShards(2 images in 1 shards; 45 cells of 36 numbers)
    >>> maps.in_memory()
    WindowMaps(2 images, 20–25 cells each of 36 numbers, 428–433 windows)
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.shards = Shards(folder)
        path = file_path("folder", folder) / SHAPES
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path} is missing; write shards of feature maps with MapShards.write")
        shapes = _read_shapes(path)
        if shapes.shape != (len(self.shards), 5) or not np.array_equal(shapes[:, 0] * shapes[:, 1], self.lengths):
            raise ValueError(f"{path} does not match its {len(self.shards)} maps; write the shards again")
        self.grids, self.sizes = shapes[:, :2].astype(np.int64), shapes[:, 2:4].astype(np.int64)
        self.strides = np.array(shapes[:, 4])
        self._placing: dict[str, Any] = {}

    @staticmethod
    def write(folder: str | os.PathLike[str], images: Any, features: Any, **settings: Any) -> MapShards:
        """Describe images and write their maps to a new folder, a few hundred at a time.

        ``settings`` are cache, max_pixels, n_jobs and verbose of `tacit.window_maps`.
        """
        photos = map_photos(images, features, **settings)
        path = new_folder(folder)
        shapes: list[tuple[float, ...]] = []

        def parts() -> Iterator[Ragged]:
            while block := list(itertools.islice(photos, PHOTOS_PER_SHARD)):
                shapes.extend((*one.map.shape[:2], *one.size, one.stride) for one in block)
                tables = [one.map.reshape(-1, one.map.shape[2]) for one in block]
                yield Ragged(np.concatenate(tables), np.cumsum([0] + [len(table) for table in tables]))

        write_shards(path, parts())
        np.save(path / SHAPES, np.array(shapes, dtype=np.float64), allow_pickle=False)
        return MapShards(path)

    @staticmethod
    def write_in(spool: str | os.PathLike[str], images: Any, features: Any, **settings: Any) -> MapShards:
        """The same in a temporary folder inside ``spool``, which is removed with the maps."""
        folder = Path(tempfile.mkdtemp(prefix="tacit-maps-", dir=make_folder("spool", spool)))
        try:
            maps = MapShards.write(folder, images, features, **settings)
        except BaseException:
            shutil.rmtree(folder)
            raise
        weakref.finalize(maps.shards, shutil.rmtree, folder, ignore_errors=True)
        return maps

    @property
    def values(self) -> Any:
        """(cells, d) the features of all cells, as a table on disk."""
        return self.shards.values

    @property
    def offsets(self) -> Array:
        """(n + 1,) where the cells of each image begin."""
        return self.shards.offsets

    @property
    def lengths(self) -> Array:
        """Cells of each image."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.shards)

    def __repr__(self) -> str:
        cells, d = self.values.shape
        n_shards = len(self.shards.manifest.shards)
        return f"MapShards({len(self)} images in {n_shards} shards; {cells} cells of {d} numbers)"

    def with_windows(self, **placing: Any) -> Self:
        """The same maps with other windows, placed by `place_windows`."""
        other = copy.copy(self)
        other._placing = placing
        return other

    def with_values(self, values: Any) -> WindowMaps:
        """The same maps with other features, one row per cell, in memory, with their windows."""
        windows = place_all(self.sizes, self._placing)
        return WindowMaps(values, self.offsets, self.grids, self.sizes, self.strides, *windows)

    def in_memory(self) -> WindowMaps:
        """The same maps in memory."""
        return self.with_values(np.concatenate(list(self.values.chunks())))

    def means(self) -> Array:
        """(n, d) the mean of every map, read in blocks."""
        found = np.empty((len(self), self.values.shape[1]))
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self.offsets, self.offsets[first] + CELLS_AT_A_TIME, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            start, stop = int(self.offsets[first]), int(self.offsets[last])
            sums = np.add.reduceat(self.values[start:stop], self.offsets[first:last] - start, axis=0)
            found[first:last] = sums / self.lengths[first:last, None]
            self.values.release(slice(start, stop))
            first = last
        return found


def _read_shapes(path: Path) -> Array:
    try:
        shapes = MappedArray(path).rows
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged: {reason(error)}; write the shards again") from error
    if shapes.dtype != np.float64 or not (np.isfinite(shapes) & (shapes > 0)).all():
        raise ValueError(f"{path} is damaged: sizes of maps must be positive; write the shards again")
    return shapes

"""From photos to maps with windows: read, scaled, described, kept on disk."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import reason, shorten, whole_number
from tacit.runtime import Progress
from tacit.runtime.archive import StorageError, read_archive, write_archive
from tacit.vision.maps.network import NetworkMap, network_path
from tacit.vision.maps.window_maps import WindowMaps, place_windows
from tacit.vision.photos import MAX_PIXELS, read_photo
from tacit.vision.scaling import scale_image
from tacit.vision.window_bags import as_grey, cache_folder, image_sources

KIND = 1
"""Of the maps: another number makes every cache anew. Raise it when the numbers change."""
BATCH = 16
"""Images that are described together."""


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
    """Feature maps of images, each with windows of several sizes: what `tacit.problems.Detection` takes.

    Photos are turned as the camera noted (EXIF). Needs the extra ``vision``.

    Parameters
    ----------
    images : an array (height, width) or (height, width, channels), a path, a folder, or a list of arrays and paths
    features : the path of a network (``.onnx``), or a map maker of `tacit.vision.maps`, such as `GradientMap()`;
        `CalledMap` makes one of a function of yours
    cache : a folder in which maps are kept, under a checksum of the pixels and the features; None computes them anew
    max_pixels : larger files are refused before they are unpacked
    n_jobs : threads; the result is the same for any number
    verbose : 1 shows progress on a terminal when it takes longer than a second
    placing : sizes, aspects, step or pixels of the windows, see `place_windows`

    >>> from tacit.vision.maps import GradientMap
    >>> window_maps(np.eye(40), GradientMap(side=40), sizes=[0.5], aspects=[1.0], step=0.5)
    WindowMaps(1 images, 25–25 cells each of 36 numbers, 9–9 windows)
    """
    found = list(describe_images(images, features, cache, max_pixels, n_jobs, verbose))
    sizes = [one.size for one in found]
    strides = [one.stride for one in found]
    windows = [place_windows(*size, **placing) for size in sizes]
    return WindowMaps.of_maps([one.map for one in found], sizes, strides, windows)


def describe_images(
    images: Any, features: Any, cache: Any, max_pixels: int, n_jobs: int | None, verbose: int
) -> Iterator[MappedImage]:
    """The maps of images, one after the other, a few of which are made at a time; all as in `window_maps`."""
    maker = read_features(features)
    sources = image_sources(images)
    folder = None if cache is None else cache_folder(cache)
    jobs = 1 if n_jobs is None else whole_number("n_jobs", n_jobs, 1, 1024)

    def described(i: int) -> MappedImage:
        return map_image(sources[i], maker, folder, max_pixels, name=f"image {i}")

    progress, began = Progress(verbose, len(sources)), time.perf_counter()
    try:
        for start in range(0, len(sources), BATCH):
            last = min(start + BATCH, len(sources))
            yield from _in_threads(described, range(start, last), jobs)
            progress.show(time.perf_counter() - began, last, "images described")
    finally:
        progress.close()


def _in_threads(function: Any, numbers: range, jobs: int) -> list[Any]:
    if jobs == 1:
        return [function(i) for i in numbers]
    from joblib import Parallel, delayed

    return list(Parallel(jobs, prefer="threads")(delayed(function)(i) for i in numbers))


class MappedImage(NamedTuple):
    """The map of one image, its width and height, and pixels per cell."""

    map: Array
    size: tuple[int, int]
    stride: float


def map_image(
    source: Any, maker: Any, folder: Path | None = None, max_pixels: int = MAX_PIXELS, name: str = "the image"
) -> MappedImage:
    """The map of an array or a file, from the cache where it is there."""
    pixels = as_colours(source, name) if isinstance(source, np.ndarray) else read_photo(source, max_pixels)
    height, width = pixels.shape[:2]
    side = int(maker.side)
    stride = float(maker.cell) * max(width, height) / side
    digest = maker.digest()
    kept = None
    if folder is not None and digest:
        key = hashlib.sha256(f"{KIND} {digest} {pixels.shape}".encode() + pixels.tobytes()).hexdigest()[:40]
        kept = folder / f"{key}.map"
        if os.path.exists(kept):
            try:
                return MappedImage(_checked_cache(read_archive(kept, "map")[1]), (width, height), stride)
            except (StorageError, KeyError) as error:
                message = f"the cached map of {name} is broken and made anew ({reason(error)})"
                warnings.warn(message, RuntimeWarning, stacklevel=3)
    made = np.asarray(maker(scale_image(pixels, side)), dtype=np.float32)
    if kept is not None:
        write_archive(kept, "map", {}, {"map": made})
    return MappedImage(made, (width, height), stride)


def as_colours(image: Array, name: str = "the image") -> Array:
    """Pixels (height, width, 3), uint8, of an array: grey or colours, with or without alpha."""
    if image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8:
        return image
    if image.ndim == 3 and image.shape[2] in (3, 4) and image.dtype.kind in "uf":
        planes = [as_grey(image[:, :, k], name) for k in range(image.shape[2])]
        colours = np.stack(planes[:3], axis=2)
        if len(planes) == 4:
            colours = colours * planes[3][:, :, None] + (1 - planes[3][:, :, None])
    else:
        colours = np.repeat(as_grey(image, name)[:, :, None], 3, axis=2)
    return np.asarray(np.round(255 * np.clip(colours, 0, 1)).astype(np.uint8))


def _checked_cache(arrays: dict[str, Array]) -> Array:
    table = arrays["map"]
    if not is_table(table, 3, "f") or not np.isfinite(table).all() or 0 in table.shape:
        raise StorageError(f"it holds {table.shape} numbers, not a map")
    return table.astype(np.float32, copy=False)


def read_features(features: Any) -> Any:
    """A map maker from what users give: a path of a network, a maker, a function."""
    path = network_path(features)
    maker = NetworkMap(path) if path is not None else features
    if not all(hasattr(maker, name) for name in ("side", "cell", "digest", "check")) or isinstance(maker, type):
        told = "wrap a function of yours in tacit.vision.maps.CalledMap" if callable(features) else ""
        raise TypeError(
            f"features must be the path of a network (.onnx) or a map of tacit.vision.maps, got {shorten(features)}"
            f"{told and '; ' + told}"
        )
    maker.check()
    return maker


__all__ = ["MappedImage", "as_colours", "describe_images", "map_image", "read_features", "window_maps"]

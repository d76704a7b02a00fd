"""Windows of images and their gradients: the candidates in which an object may be. Needs the extra ``vision``."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.datasets.images import MAX_PIXELS, image_folder, is_image, read_image
from tacit.datasets.location import find_place
from tacit.ragged import Ragged
from tacit.running import Progress
from tacit.running.archive import StorageError, read_archive, write_archive

ORIENTATIONS, BLOCK = 9, 2
MAX_WINDOWS = 100_000
MAX_PIXEL_VALUE = 1e6
KIND = 1
"""Of the description: another number makes every cache anew. Raise it when the numbers change."""


def windows(
    images: Any,
    sizes: Sequence[tuple[int, int]],
    stride: int,
    *,
    cells: int = 4,
    cache: str | os.PathLike[str] | None = None,
    max_pixels: int = MAX_PIXELS,
    verbose: int = 1,
) -> Ragged:
    """Windows of one image or of many, with their boxes and histograms of oriented gradients: bags for `Candidates`.

    Windows of every size start at every multiple of ``stride`` from which they stay inside the image; a size that
    exceeds the image is cut down to it, so every image has a window. A window is divided into ``cells × cells`` cells,
    whatever its size, and described by `skimage.feature.hog` (Dalal & Triggs 2005): 9 orientations, blocks of 2 × 2
    cells, L2-Hys. Cells have whole pixels, so up to ``cells − 1`` pixels at the right and the lower edge of a window
    may not count. Colours become grey, transparent pixels white. float32.

    Parameters
    ----------
    images : an array (height, width) or (height, width, channels), grey, grey and alpha, RGB or RGBA, of unsigned
        integers or floats; the path of an image; a folder of images or of one subfolder a class (in the order of
        `tacit.datasets.image_folder`); or a list of arrays and paths
    sizes : (width, height) of windows, in pixels, at least ``cells`` either way
    stride : pixels between neighbouring windows
    cells : cells across a window, and down
    cache : a folder in which the windows of every image file are kept, under a checksum of file and settings; None
        computes them anew
    max_pixels : larger image files are refused before they are unpacked
    verbose : 1 shows progress on a terminal when it takes longer than a second

    >>> bags = windows(np.eye(40), sizes=[(32, 32)], stride=8)
    >>> bags
    Ragged(1 samples, 4–4 rows each; 4 × 324 float32)
    >>> bags.boxes[-1]
    array([ 8.,  8., 40., 40.])
    """
    cells = _whole(cells, "cells", BLOCK)
    setting = _Setting(_checked_sizes(sizes, cells), _whole(stride, "stride", 1), cells)
    hog = _hog()
    sources = _sources(images)
    folder = None if cache is None else _cache_folder(cache)
    progress, began = Progress(verbose, len(sources)), time.perf_counter()
    parts = []
    try:
        for i, source in enumerate(sources):
            name = f"image {i}" if isinstance(source, np.ndarray) else repr(str(source))
            parts.append(_described(source, name, setting, hog, folder, max_pixels))
            progress.show(time.perf_counter() - began, i + 1, "images described")
    finally:
        progress.close()
    offsets = np.cumsum([0] + [len(part.boxes) for part in parts])
    return Ragged(np.concatenate([p.hog for p in parts]), offsets, np.concatenate([p.boxes for p in parts]))


class _Setting(NamedTuple):
    sizes: tuple[tuple[int, int], ...]
    stride: int
    cells: int


class _Described(NamedTuple):
    hog: Array
    boxes: Array


def _sources(images: Any) -> list[Any]:
    """Arrays and paths, one an image."""
    if isinstance(images, np.ndarray):
        if images.ndim not in (2, 3):
            raise ValueError(
                f"an image is (height, width) or (height, width, channels), got shape {images.shape}; "
                "for several images give list(images)"
            )
        return [images]
    if isinstance(images, (str, os.PathLike)):
        place = find_place(images)
        if not place.is_dir():
            return [place]
        flat = sorted(file for file in place.iterdir() if is_image(file))
        return list(flat) or list(image_folder(place).files)
    if not isinstance(images, Iterable):
        raise TypeError(f"an image, a path or a list of them is needed, got {images!r}")
    sources = list(images)
    wrong = [i for i, s in enumerate(sources) if not isinstance(s, (str, os.PathLike, np.ndarray))]
    if wrong:
        raise TypeError(f"image {wrong[0]} is a {type(sources[wrong[0]]).__name__}; give arrays or paths")
    if not sources:
        raise ValueError("no images: the list is empty")
    return sources


def _described(source: Any, name: str, setting: _Setting, hog: Any, folder: Path | None, max_pixels: int) -> _Described:
    if isinstance(source, np.ndarray):
        return _describe(source, setting, hog, name)
    pixels = read_image(source, max_pixels)
    if folder is None:
        return _describe(pixels, setting, hog, name)
    key = hashlib.sha256(f"{KIND}{setting}{pixels.shape}{pixels.dtype}".encode() + pixels.tobytes()).hexdigest()[:40]
    kept = folder / f"{key}.windows"
    if kept.exists():
        try:
            arrays = read_archive(kept, "windows")[1]
            return _Described(arrays["hog"], arrays["boxes"])
        except (StorageError, KeyError) as error:
            warnings.warn(f"the cache of {name} is broken and made anew ({error})", RuntimeWarning, stacklevel=4)
    found = _describe(pixels, setting, hog, name)
    write_archive(kept, "windows", {"image": str(source)}, found._asdict())
    return found


def _describe(image: Array, setting: _Setting, hog: Any, name: str) -> _Described:
    grey = as_grey(image, name)
    height, width = grey.shape
    if min(height, width) < setting.cells:
        raise ValueError(
            f"{name} has {width} × {height} pixels; {setting.cells} cells need {setting.cells} pixels either way: "
            "leave it out, or take fewer cells"
        )
    sizes = dict.fromkeys((min(w, width), min(h, height)) for w, h in setting.sizes)
    boxes: list[Array] = []
    parts: list[Array] = []
    for w, h in sizes:
        lefts, tops = np.arange(0, width - w + 1, setting.stride), np.arange(0, height - h + 1, setting.stride)
        if sum(len(box) for box in boxes) + lefts.size * tops.size > MAX_WINDOWS:
            raise ValueError(
                f"{name} of {width} × {height} pixels has more than {MAX_WINDOWS} windows; shrink it, or take a "
                "larger stride"
            )
        x, y = (part.ravel() for part in np.meshgrid(lefts, tops))
        boxes.append(np.column_stack([x, y, x + w, y + h]))
        parts.append(_gradients(grey, (w, h), lefts, tops, setting.cells, hog))
    return _Described(np.concatenate(parts), np.concatenate(boxes).astype(np.float64))


def _gradients(grey: Array, size: tuple[int, int], lefts: Array, tops: Array, cells: int, hog: Any) -> Array:
    """The HOG of windows at all pairs of tops and lefts, row by row.

    Windows whose corners are whole cells apart share one grid of cells: the image is described once for every place
    of a corner within a cell, not once for every window. Every grid begins a cell before the image, which is mirrored
    there: a gradient across the edge of a window is that of the image, and none across the edge of the image.
    """
    across, down = size[0] // cells, size[1] // cells
    blocks = cells - BLOCK + 1
    mirrored = np.pad(grey, ((down, 0), (across, 0)), "reflect")
    out = np.empty((tops.size, lefts.size, blocks * blocks * BLOCK * BLOCK * ORIENTATIONS), np.float32)
    for dy in np.unique(tops % down):
        for dx in np.unique(lefts % across):
            grid = hog(
                mirrored[dy:, dx:],
                orientations=ORIENTATIONS,
                pixels_per_cell=(down, across),
                cells_per_block=(BLOCK, BLOCK),
                block_norm="L2-Hys",
                feature_vector=False,
            )
            rows, columns = np.flatnonzero(tops % down == dy), np.flatnonzero(lefts % across == dx)
            for row in rows:
                top = tops[row] // down + 1
                for column in columns:
                    left = lefts[column] // across + 1
                    out[row, column] = grid[top : top + blocks, left : left + blocks].ravel()
    return out.reshape(-1, out.shape[2])


def as_grey(image: Array, name: str = "the image") -> Array:
    """Grey values in [0, 1], (height, width), from grey or colours, with or without alpha, of 1, 8, 16 bits or floats.

    >>> as_grey(np.array([[[255, 0, 0, 255], [255, 0, 0, 0]]], np.uint8)).round(3)
    array([[0.212, 1.   ]])
    """
    if image.ndim not in (2, 3) or 0 in image.shape or (image.ndim == 3 and image.shape[2] not in (1, 2, 3, 4)):
        raise ValueError(
            f"{name} has shape {image.shape}; an image is (height, width), or (height, width, channels) with 1 to 4"
        )
    if image.dtype.kind == "u":
        pixels = image / np.iinfo(image.dtype).max
    elif image.dtype.kind in "bf":
        pixels = image.astype(np.float64)
    else:
        raise ValueError(f"{name} holds {image.dtype}; use uint8, uint16, bool, or floats from 0 to 1")
    if not np.isfinite(pixels).all():
        raise ValueError(f"{name} holds NaN or infinity; fill the gap")
    if np.abs(pixels).max() > MAX_PIXEL_VALUE:
        raise ValueError(f"{name} holds {np.abs(pixels).max():g}; floats are grey values from 0 to 1: divide them")
    if pixels.ndim == 2:
        return np.asarray(pixels)
    channels = pixels.shape[2]
    colours = pixels[:, :, : channels if channels % 2 else channels - 1]
    grey = colours @ np.array([0.2125, 0.7154, 0.0721]) if colours.shape[2] == 3 else colours[:, :, 0]
    if channels % 2:
        return np.asarray(grey)
    alpha = pixels[:, :, -1]
    return np.asarray(grey * alpha + (1 - alpha))


def _checked_sizes(sizes: Any, cells: int) -> tuple[tuple[int, int], ...]:
    try:
        given = [(w, h) for w, h in sizes]
    except (TypeError, ValueError) as error:
        raise TypeError(f"sizes must be pairs (width, height) such as [(64, 64), (96, 64)], got {sizes!r}") from error
    width, height = (f"a window of {cells} cells: its {side}" for side in ("width", "height"))
    pairs = tuple((_whole(w, width, cells), _whole(h, height, cells)) for w, h in given)
    if not pairs:
        raise ValueError("sizes is empty: give at least one (width, height)")
    return pairs


def _whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _cache_folder(cache: str | os.PathLike[str]) -> Path:
    folder = Path(cache)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"cache={str(folder)!r} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _hog() -> Any:
    try:
        from skimage.feature import hog
    except ImportError as error:
        raise ImportError('windows need scikit-image: pip install "tacit[vision]"') from error
    return hog

"""Windows of images and their gradients: the candidates in which an object may be. Files need the extra ``vision``."""

from __future__ import annotations

import hashlib
import math
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.location import find_place
from tacit.data.parameters import file_path, is_list, reason, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.runtime import Progress
from tacit.runtime.archive import StorageError, read_archive, remove_unfinished, write_archive
from tacit.vision.photos import MAX_PIXELS, image_folder, is_image, read_image

ORIENTATIONS, BLOCK = 9, 2
CLIP, EPSILON = 0.2, 1e-5
"""Of the normalisation L2-Hys: no number of a block is above CLIP; EPSILON is what an even patch is divided by."""
MAX_WINDOWS = 100_000
MAX_NUMBERS = 1 << 28
"""Numbers that the windows of one image are described by at the most: a gigabyte."""
MAX_PIXEL_VALUE = 1e6
KIND = 2
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
    whatever its size, and described as by `skimage.feature.hog` (Dalal & Triggs 2005): 9 orientations, blocks of 2 × 2
    cells, L2-Hys. Cells have whole pixels, so up to ``cells − 1`` pixels at the right and the lower edge of a window
    may not count. Colours become grey, transparent pixels white. float32. All windows are read off running sums of one
    map of gradients, O(pixels + windows · cells²) per image, whatever their sizes and the stride.

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
    max_pixels : larger image files are refused before they are unpacked; more than 100,000 windows of an image, or
        2^28 numbers to describe them, are refused too
    verbose : 1 shows progress on a terminal or in a notebook when it takes longer than a second, 2 writes plain lines

    >>> bags = windows(np.eye(40), sizes=[(32, 32)], stride=8)
    >>> bags
    Ragged(1 samples, 4–4 rows each; 4 × 324 float32)
    >>> bags.boxes[-1]
    array([ 8.,  8., 40., 40.])
    """
    cells = whole_number("cells", cells, BLOCK)
    setting = _Setting(_checked_sizes(sizes, cells), whole_number("stride", stride, 1, 1 << 31), cells)
    sources = image_sources(images)
    folder = None if cache is None else cache_folder(cache)
    progress, began = Progress(verbose, len(sources)), time.perf_counter()
    parts = []
    try:
        for i, source in enumerate(sources):
            name = f"image {i}" if isinstance(source, np.ndarray) else repr(str(source))
            parts.append(_described(source, name, setting, folder, max_pixels))
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


def image_sources(images: Any) -> list[Any]:
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
        if not os.path.isdir(place):
            return [place]
        flat = sorted(file for file in place.iterdir() if is_image(file))
        return list(flat) or list(image_folder(place).files)
    if not is_list(images):
        raise TypeError(f"an image, a path or a list of them is needed, got {shorten(images)}")
    sources = list(images)
    wrong = [i for i, s in enumerate(sources) if not isinstance(s, (str, os.PathLike, np.ndarray))]
    if wrong:
        raise TypeError(f"image {wrong[0]} is a {type(sources[wrong[0]]).__name__}; give arrays or paths")
    if not sources:
        raise ValueError("no images: the list is empty")
    return sources


def _described(source: Any, name: str, setting: _Setting, folder: Path | None, max_pixels: int) -> _Described:
    if isinstance(source, np.ndarray):
        return _describe(source, setting, name)
    pixels = read_image(source, max_pixels)
    if folder is None:
        return _describe(pixels, setting, name)
    key = hashlib.sha256(f"{KIND}{setting}{pixels.shape}{pixels.dtype}".encode() + pixels.tobytes()).hexdigest()[:40]
    kept = folder / f"{key}.windows"
    if os.path.exists(kept):
        try:
            return _checked_cache(read_archive(kept, "windows")[1], setting.cells)
        except (StorageError, KeyError) as error:
            message = f"the cache of {name} is broken and made anew ({reason(error)})"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
    found = _describe(pixels, setting, name)
    write_archive(kept, "windows", {"image": str(source)}, found._asdict())
    return found


def _checked_cache(arrays: dict[str, Array], cells: int) -> _Described:
    """What a file of the cache holds, refused unless it can be the windows of an image."""
    hog, boxes = arrays["hog"], arrays["boxes"]
    width = _numbers_per_window(cells)
    if not is_table(hog, 2, "f") or not is_table(boxes, 2, "f") or (hog.shape, boxes.shape[1:]) != (
        (len(boxes), width), (4,)
    ):  # fmt: skip
        raise StorageError(f"it holds {hog.shape} numbers and {boxes.shape} boxes, not windows of {width} numbers")
    return _Described(hog.astype(np.float32, copy=False), boxes)


class _Grid(NamedTuple):
    """Windows of one size: their corners, and the pixels of their cells."""

    width: int
    height: int
    lefts: Array
    tops: Array
    across: int
    down: int

    @property
    def boxes(self) -> Array:
        x, y = (part.ravel() for part in np.meshgrid(self.lefts, self.tops))
        return np.column_stack([x, y, x + self.width, y + self.height]).astype(np.float64)

    def sum_cells(self, running: Array, cells: int) -> Array:
        """(tops, lefts, cells, cells): sums over the pixels of every cell, from running sums over the image."""
        rows = self.tops[:, None] + self.down * np.arange(cells + 1)
        columns = self.lefts[:, None] + self.across * np.arange(cells + 1)
        corners = running[rows[:, :, None, None], columns]
        return np.diff(np.diff(corners, axis=1), axis=3).transpose(0, 2, 1, 3)


def _describe(image: Array, setting: _Setting, name: str) -> _Described:
    grey = as_grey(image, name)
    height, width = grey.shape
    cells, grids = setting.cells, _grids(height, width, setting, name)
    sums = [np.empty((grid.tops.size, grid.lefts.size, cells, cells, ORIENTATIONS)) for grid in grids]
    for orientation, (running, unit) in enumerate(_running_sums(grey)):
        for grid, out in zip(grids, sums, strict=True):
            out[..., orientation] = grid.sum_cells(running, cells) * (unit / (grid.across * grid.down))
    parts = [_normalised(part.reshape(-1, cells, cells, ORIENTATIONS)) for part in sums]
    return _Described(np.concatenate(parts), np.concatenate([grid.boxes for grid in grids]))


def _grids(height: int, width: int, setting: _Setting, name: str) -> list[_Grid]:
    """The windows of every size; an error if they are too many to describe."""
    cells = setting.cells
    if min(height, width) < cells:
        raise ValueError(
            f"{name} has {width} × {height} pixels; {cells} cells need {cells} pixels either way: "
            "leave it out, or take fewer cells"
        )
    most = min(MAX_WINDOWS, MAX_NUMBERS // _numbers_per_window(cells))
    grids, count = [], 0
    for w, h in dict.fromkeys((min(w, width), min(h, height)) for w, h in setting.sizes):
        lefts, tops = np.arange(0, width - w + 1, setting.stride), np.arange(0, height - h + 1, setting.stride)
        count += lefts.size * tops.size
        if count > most:
            raise ValueError(
                f"{name} of {width} × {height} pixels has more than {most} windows of {cells} × {cells} cells; shrink "
                "it, or take a larger stride or fewer cells"
            )
        grids.append(_Grid(w, h, lefts, tops, w // cells, h // cells))
    return grids


def _running_sums(grey: Array) -> Iterator[tuple[Array, float]]:
    """For each orientation, sums of gradients over all rectangles that begin at the corner, and what 1 stands for.

    Sums are whole numbers, of units so small that they cost no precision, hence exact: a patch has the same
    description wherever it is.
    """
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    across[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    down[1:-1] = grey[2:] - grey[:-2]
    size = np.hypot(across, down)
    bins = (np.rad2deg(np.arctan2(down, across)) % 180 // (180 / ORIENTATIONS)).astype(np.int8)
    exponent = math.ceil(math.log2(max(float(size.max()), 1.5))) + math.ceil(math.log2(size.size + 1)) - 62
    units = np.round(np.ldexp(size, -exponent)).astype(np.int64)
    running = np.zeros((grey.shape[0] + 1, grey.shape[1] + 1), dtype=np.int64)
    for orientation in range(ORIENTATIONS):
        np.cumsum(np.where(bins == orientation, units, 0), axis=0, out=running[1:, 1:])
        np.cumsum(running[1:, 1:], axis=1, out=running[1:, 1:])
        yield running, 2.0**exponent


def _normalised(cells: Array) -> Array:
    """(n, numbers): blocks of 2 × 2 cells, each scaled to length one, clipped, and scaled again (L2-Hys)."""
    n, blocks = len(cells), cells.shape[1] - BLOCK + 1
    out = np.empty((n, blocks, blocks, BLOCK * BLOCK * ORIENTATIONS), dtype=np.float32)
    for i in range(blocks):
        for j in range(blocks):
            block = cells[:, i : i + BLOCK, j : j + BLOCK].reshape(n, -1)
            block = np.minimum(block / _length(block), CLIP)
            out[:, i, j] = block / _length(block)
    return out.reshape(n, -1)


def _length(rows: Array) -> Array:
    return np.asarray(np.sqrt((rows**2).sum(axis=1, keepdims=True) + EPSILON**2))


def _numbers_per_window(cells: int) -> int:
    return (cells - BLOCK + 1) ** 2 * BLOCK * BLOCK * ORIENTATIONS


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
        raise TypeError(
            f"sizes must be pairs (width, height) such as [(64, 64), (96, 64)], got {shorten(sizes)}"
        ) from error
    remedy = f"it has {cells} cells, of a pixel or more"
    pairs = tuple(
        (
            whole_number("the width of a window", w, cells, remedy=remedy),
            whole_number("the height of a window", h, cells, remedy=remedy),
        )
        for w, h in given
    )
    if not pairs:
        raise ValueError("sizes is empty: give at least one (width, height)")
    return pairs


def cache_folder(cache: str | os.PathLike[str]) -> Path:
    folder = folder_of_files("cache", cache)
    remove_unfinished(folder)
    return folder


def folder_of_files(name: str, path: str | os.PathLike[str]) -> Path:
    """The folder that a parameter names, made where it is not there."""
    folder = file_path(name, path)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise ValueError(f"{name}={shorten(str(folder))} is a file; give a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno, f"the folder {name}={shorten(str(folder))} cannot be made: {error.strerror}"
        ) from error
    return folder

"""Windows of images, described by histograms of oriented gradients (HOG): candidates for the object.

Files need the extra ``vision``."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import shorten, switch, whole_number
from tacit.data.ragged import Ragged
from tacit.data.reading import find_folder
from tacit.runtime.archive import StorageError
from tacit.vision import photos
from tacit.vision.box_formats import read_table
from tacit.vision.boxes import BoxTable, check_table, match_rows, nearest, take_boxes

ORIENTATIONS, BLOCK = 9, 2
CLIP, EPSILON = 0.2, 1e-5
"""Of the normalisation L2-Hys: numbers of a block are at most CLIP; EPSILON avoids a division by 0 in an even patch."""
MAX_WINDOWS = 100_000
MAX_NUMBERS = 1 << 28
"""Limit of the numbers that describe the windows of one image: a gigabyte."""
KIND = 2
"""Version of the description, a part of every cache key. Raise it when the numbers change."""


def windows(
    images: Any,
    sizes: Sequence[tuple[int, int]],
    stride: int,
    *,
    cells: int = 4,
    cache: str | os.PathLike[str] | None = None,
    max_pixels: int = photos.MAX_PIXELS,
    verbose: int = 1,
) -> Ragged:
    """Sliding windows of images, with their boxes and histograms of oriented gradients: bags for `Candidates`.

    Windows of every size start at every multiple of ``stride`` from which they stay inside the image; a size that
    exceeds the image is cut down to it, so every image has a window. A window is divided into ``cells × cells`` cells,
    whatever its size, and described as by `skimage.feature.hog` (Dalal & Triggs 2005): 9 orientations, blocks of 2 × 2
    cells, L2-Hys. Cells have whole pixels, so up to ``cells − 1`` pixels at the right and the lower edge of a window
    may not count. Colours become grey, transparent pixels white. Numbers are float32. All windows are computed from
    integral images of gradients, O(pixels + windows · cells²) per image, whatever their sizes and the stride.

    Parameters
    ----------
    images : an array (height, width) or (height, width, channels) of unsigned integers or floats: grey, grey and
        alpha, RGB or RGBA. Or the path of an image; or a folder of images, or of one subfolder per class (in the order
        of `tacit.datasets.image_folder`); or a list of arrays and paths
    sizes : (width, height) of windows, in pixels, each at least ``cells``
    stride : pixels between neighbouring windows
    cells : cells across a window, and down
    cache : a folder that keeps the windows of every image file, under a checksum of file and settings; None for no
        cache
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
    setting = _Setting(_read_sizes(sizes, cells), whole_number("stride", stride, 1, 1 << 31), cells)
    folder = photos.cache_folder(cache)

    def describe(source: Any, name: str) -> _Described:
        if isinstance(source, np.ndarray):
            return _describe(source, setting, name)
        pixels = photos.read_image(source, max_pixels)
        about = f"{KIND}{setting}{pixels.shape}{pixels.dtype}"

        def make() -> dict[str, Array]:
            return _describe(pixels, setting, name)._asdict()

        check = functools.partial(_check_cached, cells=cells)
        return _Described(**photos.read_cached(folder, "windows", about, pixels, name, make, check))

    parts = list(photos.describe_images(images, describe, "images described", verbose=verbose))
    offsets = np.cumsum([0] + [len(part.boxes) for part in parts])
    return Ragged(np.concatenate([p.hog for p in parts]), offsets, np.concatenate([p.boxes for p in parts]))


class _Setting(NamedTuple):
    sizes: tuple[tuple[int, int], ...]
    stride: int
    cells: int


class _Described(NamedTuple):
    hog: Array
    boxes: Array


def _check_cached(arrays: dict[str, Array], cells: int) -> None:
    """Refuse a file of the cache unless it can be the windows of an image."""
    hog, boxes = arrays["hog"], arrays["boxes"]
    width = _numbers_per_window(cells)
    fits = is_table(hog, 2, "f") and hog.dtype == np.float32 and is_table(boxes, 2, "f")
    if not fits or (hog.shape, boxes.shape[1:]) != ((len(boxes), width), (4,)):
        raise StorageError(f"it contains {hog.shape} numbers and {boxes.shape} boxes, not windows of {width} numbers")


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
        """(tops, lefts, cells, cells): sums over the pixels of every cell, from an integral image."""
        rows = self.tops[:, None] + self.down * np.arange(cells + 1)
        columns = self.lefts[:, None] + self.across * np.arange(cells + 1)
        corners = running[rows[:, :, None, None], columns]
        return np.diff(np.diff(corners, axis=1), axis=3).transpose(0, 2, 1, 3)


def _describe(image: Array, setting: _Setting, name: str) -> _Described:
    grey = photos.as_grey(image, name)
    height, width = grey.shape
    cells, grids = setting.cells, _grids(height, width, setting, name)
    sums = [np.empty((grid.tops.size, grid.lefts.size, cells, cells, ORIENTATIONS)) for grid in grids]
    for orientation, (running, unit) in enumerate(_running_sums(grey)):
        for grid, out in zip(grids, sums, strict=True):
            out[..., orientation] = grid.sum_cells(running, cells) * (unit / (grid.across * grid.down))
    parts = [_normalise_blocks(part.reshape(-1, cells, cells, ORIENTATIONS)) for part in sums]
    return _Described(np.concatenate(parts), np.concatenate([grid.boxes for grid in grids]))


def _grids(height: int, width: int, setting: _Setting, name: str) -> list[_Grid]:
    """The windows of every size; an error if they are too many to describe."""
    cells = setting.cells
    if min(height, width) < cells:
        raise ValueError(
            f"{name} has {width} × {height} pixels, but must have at least {cells} across and down for {cells} cells; "
            "remove it, or use fewer cells"
        )
    most = min(MAX_WINDOWS, MAX_NUMBERS // _numbers_per_window(cells))
    grids, count = [], 0
    for w, h in dict.fromkeys((min(w, width), min(h, height)) for w, h in setting.sizes):
        lefts, tops = np.arange(0, width - w + 1, setting.stride), np.arange(0, height - h + 1, setting.stride)
        count += lefts.size * tops.size
        if count > most:
            raise ValueError(
                f"{name} of {width} × {height} pixels has more than {most} windows of {cells} × {cells} cells; shrink "
                "it, or use a larger stride or fewer cells"
            )
        grids.append(_Grid(w, h, lefts, tops, w // cells, h // cells))
    return grids


def oriented_gradients(grey: Array) -> tuple[Array, Array]:
    """The length of the gradient at every pixel, and its orientation from 0; rounding may give `ORIENTATIONS`."""
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    across[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    down[1:-1] = grey[2:] - grey[:-2]
    bins = (np.rad2deg(np.arctan2(down, across)) % 180 // (180 / ORIENTATIONS)).astype(np.int8)
    return np.hypot(across, down), bins


def _running_sums(grey: Array) -> Iterator[tuple[Array, float]]:
    """For each orientation, the integral image of gradients and its unit.

    Sums are whole numbers of a unit so small that no precision is lost. They are exact, so a patch has the same
    description wherever it is.
    """
    size, bins = oriented_gradients(grey)
    exponent = math.ceil(math.log2(max(float(size.max()), 1.5))) + math.ceil(math.log2(size.size + 1)) - 62
    units = np.round(np.ldexp(size, -exponent)).astype(np.int64)
    running = np.zeros((grey.shape[0] + 1, grey.shape[1] + 1), dtype=np.int64)
    for orientation in range(ORIENTATIONS):
        np.cumsum(np.where(bins == orientation, units, 0), axis=0, out=running[1:, 1:])
        np.cumsum(running[1:, 1:], axis=1, out=running[1:, 1:])
        yield running, 2.0**exponent


def _normalise_blocks(cells: Array) -> Array:
    """(n, numbers): blocks of 2 × 2 cells, each scaled to length one, clipped, and scaled again (L2-Hys)."""
    n, blocks = len(cells), cells.shape[1] - BLOCK + 1
    out = np.empty((n, blocks, blocks, BLOCK * BLOCK * ORIENTATIONS), dtype=np.float32)
    for i in range(blocks):
        for j in range(blocks):
            block = cells[:, i : i + BLOCK, j : j + BLOCK].reshape(n, -1)
            block = np.minimum(block / _row_lengths(block), CLIP)
            out[:, i, j] = block / _row_lengths(block)
    return out.reshape(n, -1)


def _row_lengths(rows: Array) -> Array:
    return np.asarray(np.sqrt((rows**2).sum(axis=1, keepdims=True) + EPSILON**2))


def _numbers_per_window(cells: int) -> int:
    return (cells - BLOCK + 1) ** 2 * BLOCK * BLOCK * ORIENTATIONS


def _read_sizes(sizes: Any, cells: int) -> tuple[tuple[int, int], ...]:
    try:
        given = [(w, h) for w, h in sizes]
    except (TypeError, ValueError) as error:
        raise TypeError(f"sizes must be pairs such as [(64, 64), (96, 64)], got {shorten(sizes)}") from error
    remedy = f"each of its {cells} cells needs a pixel"
    pairs = tuple(
        (
            whole_number("the width of a window", w, cells, remedy=remedy),
            whole_number("the height of a window", h, cells, remedy=remedy),
        )
        for w, h in given
    )
    if not pairs:
        raise ValueError("sizes must have at least one (width, height), got an empty list")
    return pairs


class BoxedWindows(NamedTuple):
    """Images as bags of windows, and what is known of each; all in the order of ``files``.

    Attributes
    ----------
    X : bags of windows with their boxes and gradients
    y : (n,) the class of every image
    hidden : (n,) the window of the highest overlap with the drawn box, −1 without a box: for ``fit(X, y, hidden=)``
    boxes : (n, 4) the drawn boxes, NaN where an image has none
    overlap : (n,) the intersection over union of that window and the box, 0 without a box
    files : the paths of the images
    """

    X: Ragged
    y: Array
    hidden: Array
    boxes: Array
    overlap: Array
    files: list[Path]


def boxed_windows(
    folder: str | os.PathLike[str],
    table: Any,
    sizes: Sequence[tuple[int, int]],
    stride: int,
    *,
    several: str = "error",
    check_classes: bool = True,
    cells: int = 4,
    cache: str | os.PathLike[str] | None = None,
    max_pixels: int = photos.MAX_PIXELS,
    verbose: int = 1,
) -> BoxedWindows:
    """Windows of all images of a folder, with the boxes that a table has for them, joined by file name.

    Images without a row are kept, with an unknown hidden value. Errors are: a row without an image, a name that fits
    two images, a class or a size other than the image's, and a box outside its image. Needs the extra ``vision``.

    Parameters
    ----------
    folder : one subfolder per class; or all images in one folder, if the table has the class of each
    table : a `tacit.datasets.BoxTable`, or the path of one: ``.csv``, ``.json`` (COCO), ``.xml`` or a folder (VOC)
    sizes, stride, cells, cache, max_pixels, verbose : of the windows, as in `tacit.windows`
    several : "error", or "largest": what to do about an image with several boxes, see `tacit.datasets.join_boxes`
    check_classes : False where the table's classes are not those of the folder, say species and breeds

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat/1.png", "dog/1.png"):
    ...         (Path(folder) / name).parent.mkdir()
    ...         Image.new("L", (40, 32)).save(f"{folder}/{name}")
    ...     _ = (Path(folder) / "boxes.csv").write_text("file,xmin,ymin,xmax,ymax\\ndog/1.png,7,0,40,32\\n")
    ...     data = boxed_windows(folder, f"{folder}/boxes.csv", sizes=[(32, 32)], stride=8)
    >>> data.y, data.hidden
    (array(['cat', 'dog'], dtype='<U3'), array([-1,  1]))
    """
    check_classes = switch("check_classes", check_classes)
    boxes = check_table(table if isinstance(table, BoxTable) else read_table(table))
    path = find_folder(folder, "images")
    flat = photos.list_images(path)
    files, y = (flat, None) if flat else photos.image_folder(path)
    rows = match_rows(boxes, files, y if check_classes else None, several=several)
    if y is None:
        y = _classes_of_table(boxes, files, rows)
    drawn = take_boxes(boxes, rows, files, lambda i: photos.image_size(files[i], max_pixels))
    X = windows(files, sizes, stride, cells=cells, cache=cache, max_pixels=max_pixels, verbose=verbose)
    hidden, shared = nearest(X, drawn)
    return BoxedWindows(X, y, hidden, drawn, shared, files)


def _classes_of_table(table: BoxTable, files: Sequence[Path], rows: Array) -> Array:
    y = np.where(rows >= 0, table.y[rows], "")
    unknown = np.flatnonzero(y == "")
    if unknown.size:
        raise ValueError(
            f"the class of {str(files[unknown[0]])!r} is missing ({unknown.size} of {len(files)} images); make one "
            "subfolder per class, or list all images with their class in the table"
        )
    return y

"""Photos in folders, one subfolder per class, and the boxes that were drawn in them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import reason
from tacit.data.reading import find_folder, find_path, quote
from tacit.vision.box_files import read_table
from tacit.vision.boxes import match_rows, take_boxes
from tacit.vision.photos import ENDINGS, image_folder, is_image, read_photo

MIN_SIDE = 16
"""Least width and height of a photo, in pixels."""


class Photos(NamedTuple):
    """Photos that can be read, and what is known of them.

    Attributes
    ----------
    files : their paths
    names : relative to the folder, for exports
    y : (n,) their classes; empty strings for new photos
    sizes : (n, 2) width and height after EXIF orientation
    left_out : (path, reason) of those that cannot be read
    """

    files: list[Path]
    names: list[str]
    y: Array
    sizes: Array
    left_out: list[tuple[str, str]]


def read_photo_folder(folder: str | os.PathLike[str]) -> Photos:
    """The photos of a folder that has one subfolder per class; those that cannot be read are left out, with a warning.

    At least two classes are needed.
    """
    path = find_folder(folder, "photos")
    files, y = image_folder(path)
    photos = _keep_readable(files, [file.relative_to(path).as_posix() for file in files], y)
    found = np.unique(photos.y)
    if found.size < 2:
        raise ValueError(
            f"{quote(path)} must have photos of at least two classes, got only {str(found[0])!r}; add a subfolder "
            "none/ with photos that do not show the object"
        )
    return photos


def list_photos(sources: Sequence[str | os.PathLike[str]]) -> Photos:
    """New photos: files, and all photos in folders and their subfolders."""
    files: list[Path] = []
    names: list[str] = []
    for source in sources:
        path = find_path(source)
        if os.path.isdir(path):
            inside = sorted(file for file in path.rglob("*") if is_image(file) and file.is_file())
            files += inside
            names += [file.relative_to(path).as_posix() for file in inside]
        elif os.path.isfile(path):
            files.append(path)
            names.append(path.name)
        else:
            raise FileNotFoundError(f"the photo {quote(path)} does not exist")
    if not files:
        raise FileNotFoundError(f"{quote(sources[0])} contains no photos ({' '.join(ENDINGS)})")
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    return _keep_readable(files, names, np.full(len(files), ""))


def _keep_readable(files: list[Path], names: list[str], y: Array) -> Photos:
    kept: list[int] = []
    sizes: list[tuple[int, int]] = []
    left_out: list[tuple[str, str]] = []
    for i, file in enumerate(files):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # EXIF warnings come when the photo is described
                height, width = read_photo(file).shape[:2]
            if min(width, height) < MIN_SIDE:
                raise ValueError(f"{quote(file)} has {width} × {height} pixels, but {MIN_SIDE} × {MIN_SIDE} are needed")
        except (ValueError, OSError) as error:
            left_out.append((names[i], reason(error)))
            warnings.warn(f"left out: {reason(error)}", RuntimeWarning, stacklevel=3)
            continue
        kept.append(i)
        sizes.append((width, height))
    if not kept:
        raise ValueError(f"none of {len(files)} photos can be read; the first error: {left_out[0][1]}")
    return Photos([files[i] for i in kept], [names[i] for i in kept], y[kept], np.array(sizes), left_out)


def join_drawn_boxes(table: Any, photos: Photos) -> Array:
    """(n, 4) the drawn boxes of photos, joined by file name; NaN for photos without a box.

    Parameters
    ----------
    table : the path of a CSV file, a COCO file (.json), a VOC file (.xml) or a folder of those
    photos : that the boxes belong to; of several boxes in one photo the largest counts
    """
    boxes = read_table(table)
    names = [*photos.names, *(name for name, _ in photos.left_out)]
    rows = match_rows(boxes, names, several="largest")[: len(photos.files)]
    drawn = take_boxes(boxes, rows, photos.names, lambda i: tuple(photos.sizes[i].tolist()))
    limits = np.tile(photos.sizes, 2).astype(np.float64)
    return np.asarray(np.clip(drawn, 0.0, limits))

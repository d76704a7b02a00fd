"""Photos and drawn boxes as users have them: folders, tables of boxes, files that cannot be read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.location import find_folder, find_place
from tacit.data.parameters import reason
from tacit.data.reading import named
from tacit.vision.box_files import match_rows
from tacit.vision.boxed_window_bags import read_table
from tacit.vision.photos import ENDINGS, image_folder, is_image, read_photo

MIN_SIDE = 16
"""Pixels that a photo has either way at the least: smaller ones show nothing."""


class Photos(NamedTuple):
    """Photos that can be read, and what is known of them.

    Attributes
    ----------
    files : their paths
    names : as exports call them: relative to the folder
    y : (n,) their classes; empty strings for new photos
    sizes : (n, 2) width and height as people see them
    left_out : (path, why) of those that cannot be read
    """

    files: list[Path]
    names: list[str]
    y: Array
    sizes: Array
    left_out: list[tuple[str, str]]


def read_photo_folder(folder: str | os.PathLike[str]) -> Photos:
    """The photos of a folder that has one subfolder per class; those that cannot be read are left out, with a warning.

    A folder with photos of one class alone is refused: there is nothing to tell apart.
    """
    place = find_folder(folder, "photos")
    files, y = image_folder(place)
    photos = _readable(files, [file.relative_to(place).as_posix() for file in files], y)
    found = np.unique(photos.y)
    if found.size < 2:
        raise ValueError(
            f"{named(place)} holds photos of one class, {str(found[0])!r}; there is nothing to tell apart: add a "
            "subfolder with photos of something else"
        )
    return photos


def list_photos(sources: Sequence[str | os.PathLike[str]]) -> Photos:
    """New photos: files, and all photos in folders and their subfolders."""
    files: list[Path] = []
    names: list[str] = []
    for source in sources:
        place = find_place(source)
        if os.path.isdir(place):
            inside = sorted(file for file in place.rglob("*") if is_image(file) and file.is_file())
            files += inside
            names += [file.relative_to(place).as_posix() for file in inside]
        elif os.path.isfile(place):
            files.append(place)
            names.append(place.name)
        else:
            raise FileNotFoundError(f"there is no photo {named(place)}")
    if not files:
        raise FileNotFoundError(f"{named(sources[0])} holds no photos, which are {' '.join(ENDINGS)}")
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    return _readable(files, names, np.full(len(files), ""))


def _readable(files: list[Path], names: list[str], y: Array) -> Photos:
    kept: list[int] = []
    sizes: list[tuple[int, int]] = []
    left_out: list[tuple[str, str]] = []
    for i, file in enumerate(files):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # notes on EXIF come when the photo is described
                height, width = read_photo(file).shape[:2]
            if min(width, height) < MIN_SIDE:
                raise ValueError(f"{named(file)} has {width} × {height} pixels, and {MIN_SIDE} either way are needed")
        except (ValueError, OSError) as error:
            left_out.append((names[i], reason(error)))
            warnings.warn(f"left out: {reason(error)}", RuntimeWarning, stacklevel=3)
            continue
        kept.append(i)
        sizes.append((width, height))
    if not kept:
        raise ValueError(f"none of {len(files)} photos can be read; the first: {left_out[0][1]}")
    return Photos([files[i] for i in kept], [names[i] for i in kept], y[kept], np.array(sizes), left_out)


def join_drawn_boxes(table: Any, photos: Photos) -> Array:
    """(n, 4) the drawn boxes of photos, NaN where there is none, joined by file name.

    Parameters
    ----------
    table : the path of a CSV file, a COCO file (.json), a VOC file (.xml) or a folder of those
    photos : what the boxes belong to; of several boxes in one photo the largest counts
    """
    boxes = read_table(table)
    names = [*photos.names, *(name for name, _ in photos.left_out)]
    rows = match_rows(boxes, names, several="largest")[: len(photos.files)]
    drawn = np.where((rows >= 0)[:, None], boxes.boxes[rows], np.nan)
    for i in np.flatnonzero(rows >= 0):
        width, height = photos.sizes[i].tolist()
        noted = tuple(boxes.sizes[rows[i]].tolist())
        if min(noted) > 0 and noted != (width, height):
            raise ValueError(
                f"{photos.names[i]!r} has {width} × {height} pixels as people see it, and the table of boxes says "
                f"{noted[0]} × {noted[1]}: the box belongs to another version of the photo; scale or turn the box"
            )
        left, top, right, bottom = drawn[i].tolist()
        if min(left, top) < -1 or right > width + 1 or bottom > height + 1:
            raise ValueError(
                f"the box {(left, top, right, bottom)} of {photos.names[i]!r} leaves the photo of {width} × {height} "
                "pixels; correct it, or leave it out"
            )
    limits = np.tile(photos.sizes, 2).astype(np.float64)
    return np.asarray(np.clip(drawn, 0.0, limits))

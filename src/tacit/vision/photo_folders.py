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
from tacit.vision.box_formats import read_table
from tacit.vision.boxes import check_table, rows_by_file, take_boxes
from tacit.vision.photos import ENDINGS, OTHER_ENDINGS, image_folder, is_image, list_images, read_photo

MIN_SIDE = 16
"""Least width and height of a photo, in pixels."""
ONE_CLASS = "object"
"""The class of photos that are not in subfolders."""
MAX_WARNED = 5
"""Files that were left out are named in as many warnings; the report has all."""


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


def read_photo_folder(folder: str | os.PathLike[str], has_boxes: bool = False) -> Photos:
    """The photos of a folder that has one subfolder per class; those that cannot be read are left out, with a warning.

    At least two classes are needed. With drawn boxes (``has_boxes``) one class is enough, and photos of one class may
    be in the folder itself: their class is `ONE_CLASS`.
    """
    path = find_folder(folder, "photos")
    direct = list_images(path)
    if direct and has_boxes and not any(list_images(kind, is_deep=True) for kind in path.iterdir() if kind.is_dir()):
        files, y = direct, np.full(len(direct), ONE_CLASS)
    else:
        files, y = image_folder(path)
    photos = _keep_readable(files, [file.relative_to(path).as_posix() for file in files], y)
    left = [(file, "it is outside of the subfolders of classes") for file in direct if file not in files]
    others = [file for file in path.rglob("*") if file.suffix.lower() in OTHER_ENDINGS and file.name[:1] != "."]
    left += [(file, f"{file.suffix} cannot be read; convert it to .jpg or .png") for file in sorted(others)]
    for file, why in left[:MAX_WARNED]:
        warnings.warn(f"left out: {quote(file)}: {why}", RuntimeWarning, stacklevel=2)
    if len(left) > MAX_WARNED:
        warnings.warn(f"left out: {len(left) - MAX_WARNED} more files", RuntimeWarning, stacklevel=2)
    photos = photos._replace(left_out=[*photos.left_out, *((str(file.relative_to(path)), why) for file, why in left)])
    found = np.unique(photos.y)
    if found.size < 2 and not has_boxes:
        raise ValueError(
            f"{quote(path)} must have photos of at least two classes, got only {str(found[0])!r}; add a subfolder "
            "none/ with photos that do not show the object, or boxes drawn in some photos (--boxes)"
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


class DrawnBoxes(NamedTuple):
    """The boxes drawn in photos.

    Attributes
    ----------
    boxes : per photo a table (k, 4), empty for photos without a box
    missing : names of files in the table of boxes that are not among the photos
    other_class : number of boxes of another class than that of their photo, which are left out
    """

    boxes: list[Array]
    missing: list[str]
    other_class: int

    @property
    def notes(self) -> list[str]:
        """What was left out, one sentence each."""
        notes = []
        if self.missing:
            shown = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
            notes.append(f"boxes of {len(self.missing)} files that are not among the photos were left out: {shown}")
        if self.other_class:
            notes.append(f"{self.other_class} boxes of another class than that of their photo were left out")
        return notes


def join_drawn_boxes(table: Any, photos: Photos) -> DrawnBoxes:
    """All boxes drawn in photos, joined by file name.

    Where classes of boxes are classes of photos, only boxes of the photo's own class count.

    Parameters
    ----------
    table : the path of the boxes, in a format of `tacit.vision.box_formats`
    photos : that the boxes belong to; boxes of other photos are left out, unless all are
    """
    known = [(name, *size) for name, size in zip(photos.names, photos.sizes.tolist(), strict=True)]
    boxes = check_table(read_table(table, known))
    names = [*photos.names, *(name for name, _ in photos.left_out)]
    missing: list[int] = []
    rows = rows_by_file(boxes, names, missing)
    if len(missing) == len(boxes.files):
        raise ValueError(
            f"none of {len(missing)} boxes belongs to a photo: the first is of {quote(str(boxes.files[0]))}, the first "
            f"photo is {quote(photos.names[0])}; correct the names"
        )
    kinds = set(photos.y.tolist())
    is_by_class = bool(kinds & set(boxes.y.tolist()))
    found, n_other = [], 0
    for i, (name, kind) in enumerate(zip(photos.names, photos.y.tolist(), strict=True)):
        own = [row for row in rows[i] if not is_by_class or kind == "" or str(boxes.y[row]) in ("", kind)]
        n_other += len(rows[i]) - len(own)
        sizes = dict.fromkeys(range(len(own)), tuple(photos.sizes[i].tolist()))
        checked = take_boxes(boxes, np.array(own, dtype=np.int64), [name] * len(own), sizes.__getitem__)
        limits = np.tile(photos.sizes[i], 2).astype(np.float64)
        found.append(np.asarray(np.clip(checked.reshape(-1, 4), 0.0, limits)))
    left = list(dict.fromkeys(str(boxes.files[row]) for row in missing))
    return DrawnBoxes(found, left, n_other)

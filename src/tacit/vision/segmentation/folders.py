"""Folders of images with masks, boxes and image labels of one object, and what folders of classes share with them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.reading import find_folder, quote
from tacit.data.text_files import CsvTable, read_csv
from tacit.vision.box_files import boxes_coco, boxes_csv, boxes_voc
from tacit.vision.boxes import BoxTable, match_rows, take_boxes
from tacit.vision.photos import MAX_PIXELS, image_size, list_images, open_image, read_image

YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
"""What a row of ``labels.csv`` may say."""


VOID = 255
"""In masks with a palette (Pascal VOC): pixels at the outline, which belong neither to the object nor to the rest."""
SOFT_SHARE = 0.9
"""Share of pixels near black or white above which grey values between them are soft edges, as JPEG leaves them."""
SOFT = 0.1
"""What is near, as a share of the range."""
MAX_LISTED = 8


class LabelledImages(NamedTuple):
    """Images of a folder in the order of their names, and what is known of each."""

    files: list[Path]
    masks: list[Array | None]
    boxes: Array
    contains: list[bool | None]
    inputs: list[Path]


def read_folder(
    folder: str | os.PathLike[str],
    max_pixels: int = MAX_PIXELS,
    objects: Collection[int] | None = None,
    masks_folder: Path | None = None,
    unknown: int | None = None,
) -> LabelledImages:
    """Read ``images/``, ``masks/`` (PNG of the same stem), and where they are ``boxes.csv`` (or ``boxes.json`` of COCO,
    or a folder ``boxes`` of VOC files) and ``labels.csv`` (columns file, contains: yes or no).

    Masks are black and white, or have one value beside 0; where they have more, ``objects`` must say which of them mean
    the object. Of cut-outs, what is not transparent is object. A mask without an image, of another size, or that cannot
    be read is an error that names it. ``masks_folder`` takes the place of ``masks/``. Pixels of the value ``unknown``
    have no label: strokes are masks that are unknown elsewhere.
    """
    path = find_folder(folder, "images with masks")
    files = image_files(path / "images")
    masks = read_drawn_masks(masks_folder or path / "masks", files, max_pixels, objects, unknown)
    table, source = read_boxes(path)
    boxes = np.full((len(files), 4), np.nan)
    if table is not None:
        table = _one_box_each(table)
        rows = match_rows(table, files)
        boxes = take_boxes(table, rows, [file.name for file in files], lambda i: image_size(files[i], max_pixels))
    labels = path / "labels.csv"
    contains: list[bool | None] = [None] * len(files)
    if labels.exists():
        contains = _read_labels(labels, files)
        _refuse_contradictions(files, masks, boxes, contains)
    inputs = [path for path in (source, labels) if path is not None and path.is_file()]
    return LabelledImages(files, masks, boxes, contains, inputs)


def image_files(folder: Path) -> list[Path]:
    """The images of a folder, sorted by name; two with the same stem are an error, since masks go by it."""
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {shorten(str(folder))} does not exist; create it with the images")
    files = list_images(folder)
    if not files:
        raise ValueError(f"the folder {shorten(str(folder))} contains no images; add .jpg or .png files")
    stems: dict[str, Path] = {}
    for file in files:
        if file.stem in stems:
            raise ValueError(
                f"{stems[file.stem].name} and {file.name} would have the same mask, since they have the same stem; "
                "rename one"
            )
        stems[file.stem] = file
    return files


def match_masks(
    folder: Path, files: list[Path], read: Callable[[Path], Array], max_pixels: int = MAX_PIXELS
) -> list[Array | None]:
    """The mask of every image, as ``read`` reads its file; None for images without one. A mask without an image, of
    another size, or beside a second one is an error."""
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {shorten(str(folder))} of masks (PNG files) does not exist; create it")
    masks: list[Array | None] = [None] * len(files)
    positions = {file.stem: i for i, file in enumerate(files)}
    for file in list_images(folder):
        if file.stem not in positions:
            raise ValueError(f"the image {file.stem}.* of the mask {file.name} is missing in images/; rename the mask")
        i = positions[file.stem]
        if masks[i] is not None:
            raise ValueError(f"the image {files[i].name} has two masks; remove one")
        mask = read(file)
        width, height = image_size(files[i], max_pixels)
        if mask.shape != (height, width):
            size = f"{mask.shape[1]} × {mask.shape[0]}"
            raise ValueError(f"the mask {file.name} must have the {width} × {height} pixels of its image, got {size}")
        masks[i] = mask
    return masks


def read_drawn_masks(
    folder: Path,
    files: list[Path],
    max_pixels: int = MAX_PIXELS,
    objects: Collection[int] | None = None,
    unknown: int | None = None,
) -> list[Array | None]:
    """The masks of a folder, PNG files named like the images; None for images without one.

    With a value ``unknown`` they are tables of 1, 0 and −1, without it of True and False.
    """
    values: dict[str, set[int]] = {}

    def read(file: Path) -> Array:
        mask = read_mask_values(file, max_pixels)
        values[file.name] = list_values(mask) - {unknown}
        return mask

    masks = match_masks(folder, files, read, max_pixels)
    if not values:
        raise ValueError(f"the folder {shorten(str(folder))} contains no masks; add PNG files named like the images")
    wanted = list(object_values(values, objects))
    found = [None if mask is None else np.isin(mask, wanted) for mask in masks]
    if unknown is None:
        return found
    return [
        None if own is None else np.where(mask == unknown, -1, own).astype(np.int8)
        for mask, own in zip(masks, found, strict=True)
    ]


def read_boxes(folder: Path) -> tuple[BoxTable | None, Path | None]:
    """The table of boxes of a folder in any of three formats, and its path; None where there is none."""
    readers = {"boxes.csv": boxes_csv, "boxes.json": boxes_coco, "boxes": boxes_voc}
    found = [name for name in readers if (folder / name).exists()]
    if len(found) > 1:
        raise ValueError(f"{shorten(str(folder))} has {' and '.join(found)}; keep only one of them")
    if not found:
        return None, None
    return readers[found[0]](folder / found[0]), folder / found[0]


def stripped_rows(table: CsvTable) -> Iterator[tuple[int, dict[str, str]]]:
    """The line and the cells of every row, without space around them."""
    for line, row in table.rows:
        yield line, {name: (cell or "").strip() for name, cell in zip(table.columns, row, strict=True)}


def _one_box_each(table: BoxTable) -> BoxTable:
    """The box around all boxes of an image: what lies outside of every one of them is background."""
    kinds = sorted({str(kind) for kind in table.y} - {""})
    if len(kinds) > 1:
        raise ValueError(
            f"boxes must be of one class, got {shorten(kinds[0])} and {shorten(kinds[1])}; keep the rows of one class"
        )
    names, first, owner = np.unique(table.files, return_index=True, return_inverse=True)
    boxes = np.asarray(table.boxes, dtype=np.float64)[first]
    np.minimum.at(boxes[:, :2], owner, table.boxes[:, :2])
    np.maximum.at(boxes[:, 2:], owner, table.boxes[:, 2:])
    return BoxTable(names, table.y[first], boxes, table.sizes[first])


def _read_labels(path: Path, files: list[Path]) -> list[bool | None]:
    positions: dict[str, int] = {}
    for i, file in enumerate(files):
        positions[file.name] = positions[file.stem] = i
    labels: list[bool | None] = [None] * len(files)
    table = read_csv(path, ("file", "contains"))
    for line, row in stripped_rows(table):
        name, label = row["file"], row["contains"]
        if name not in positions:
            raise ValueError(f"{path.name}, line {line}: file {shorten(name)} is not one of the images; correct it")
        if label.lower() not in YES_OR_NO:
            raise ValueError(f"{path.name}, line {line}: contains must be yes or no, got {shorten(label)}")
        i, value = positions[name], YES_OR_NO[label.lower()]
        if labels[i] is not None and labels[i] != value:
            raise ValueError(f"{path.name}, line {line}: {files[i].name} has both yes and no; remove one")
        labels[i] = value
    return labels


def _refuse_contradictions(
    files: list[Path], masks: list[Array | None], boxes: Array, contains: list[bool | None]
) -> None:
    """Refuse images that are labelled no and have a box or a mask of the object."""
    for file, mask, box, label in zip(files, masks, boxes, contains, strict=True):
        what = "a mask" if mask is not None and (mask > 0).any() else "a box" if not np.isnan(box).any() else ""
        if label is False and what:
            raise ValueError(f"{file.name} has {what}, but the label no in labels.csv; correct one of them")


def read_mask(path: Path, max_pixels: int = MAX_PIXELS, objects: Collection[int] | None = None) -> Array:
    """Which pixels of a mask are object, (height, width).

    Parameters
    ----------
    path : the image
    max_pixels : larger files are refused before they are unpacked
    objects : the values that mean the object; None where the mask has two, or one beside 0
    """
    values = read_mask_values(path, max_pixels)
    return np.isin(values, list(object_values({path.name: list_values(values)}, objects)))


def read_mask_values(path: Path, max_pixels: int = MAX_PIXELS) -> Array:
    """The value of every pixel: the index, where there is a palette; 0 or 255 where the mask is soft or a cut-out."""
    mode, indices = open_image(path, max_pixels, lambda image: (image.mode, _indices(image)))
    if indices is not None:
        values = np.asarray(indices)
        is_void = values == VOID
        if is_void.any() and len(np.unique(values[~is_void])) > 1:
            warnings.warn(
                f"{quote(path)} has void pixels ({VOID}), which count as outside", RuntimeWarning, stacklevel=3
            )
            return np.asarray(np.where(is_void, 0, values))
        return values
    pixels = read_image(path, max_pixels)
    if pixels.dtype.kind == "f":
        pixels = np.round(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    top = int(np.iinfo(pixels.dtype).max)
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4):
        if (pixels[:, :, -1] != top).any():  # a cut-out: what is transparent is outside
            return np.where(pixels[:, :, -1] > top / 2, 255, 0)
        pixels = pixels[:, :, :-1]
    if pixels.ndim == 3 and pixels.shape[2] == 3:
        pixels = _one_channel(pixels, path)
    values = pixels.reshape(pixels.shape[:2])
    if mode != "1" and _is_soft(values, top):
        return np.where(values > top / 2, 255, 0)
    return np.asarray(values)


def _is_soft(values: Array, top: int) -> bool:
    """Whether a mask is black and white with soft edges: few pixels between, of many values all over the range."""
    if values.max() < (1 - SOFT) * top or values.min() > SOFT * top:
        return False
    between = values[(values > SOFT * top) & (values < (1 - SOFT) * top)]
    if not between.size or between.size > (1 - SOFT_SHARE) * values.size:
        return False
    is_all_over = between.min() < top / 2 < between.max()
    return bool(is_all_over and len(np.unique(values)) > MAX_LISTED)


def _indices(image: Any) -> Array | None:
    return np.array(image) if image.mode == "P" else None


def _one_channel(pixels: Array, path: Path) -> Array:
    """Grey values of three channels; of two colours, which one is black, the other is the object."""
    if (pixels == pixels[:, :, :1]).all():
        return np.asarray(pixels[:, :, 0])
    colours = np.unique(pixels.reshape(-1, 3), axis=0)
    if len(colours) == 2 and not colours[0].any():
        return np.where(pixels.any(axis=2), 255, 0)
    shown = ", ".join(str(tuple(colour)) for colour in colours[:MAX_LISTED].tolist())
    shown += ", …" if len(colours) > MAX_LISTED else ""
    raise ValueError(f"{quote(path)} is a mask of {len(colours)} colours ({shown}); save it with a palette or in grey")


def list_values(values: Array) -> set[int]:
    """The different values of a mask."""
    return {int(value) for value in np.unique(values)}


def object_values(found: Mapping[str, set[int]], objects: Collection[int] | None = None) -> set[int]:
    """The values of masks that mean the object.

    Parameters
    ----------
    found : the values of every mask, by the name of its file
    objects : as given by the user; None to take the only value beside 0

    >>> object_values({"a.png": {0, 1}, "b.png": {0}})
    {1}
    >>> object_values({"a.png": {1, 2, 3}}, [1])
    {1}
    >>> object_values({"a.png": {1, 2, 3}})
    Traceback (most recent call last):
    ValueError: masks have the values 1 (a.png), 2 (a.png), 3 (a.png); say which mean the object, such as --object 1
    """
    present: dict[int, str] = {}
    for name, values in found.items():
        for value in sorted(values):
            present.setdefault(value, name)
    if objects is not None:
        wanted = {int(value) for value in objects}
        missing = sorted(wanted - set(present))
        if missing:
            shown = ", ".join(map(str, sorted(present)[:MAX_LISTED]))
            raise ValueError(f"no mask has the value {missing[0]} of --object; masks have {shown}")
        return wanted
    beside = sorted(value for value in present if value)
    if len(beside) > 1:
        shown = ", ".join(f"{value} ({present[value]})" for value in beside[:MAX_LISTED])
        more = ", …" if len(beside) > MAX_LISTED else ""
        rest, choice = (" beside 0", ",".join(map(str, beside[:2]))) if 0 in present else ("", str(beside[0]))
        raise ValueError(
            f"masks have the values {shown}{more}{rest}; say which mean the object, such as --object {choice}"
        )
    return set(beside)

"""Folders of images with masks, boxes and image labels of one object, and what folders of classes share with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.reading import find_folder
from tacit.data.text_files import CsvTable, read_csv
from tacit.vision.box_files import boxes_coco, boxes_csv, boxes_voc
from tacit.vision.boxes import BoxTable, match_rows, take_boxes
from tacit.vision.photos import MAX_PIXELS, image_size, list_images
from tacit.vision.regions.masks import list_values, object_values, read_mask_values

YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
"""What a row of ``labels.csv`` may say."""


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
) -> LabelledImages:
    """Read ``images/``, ``masks/`` (PNG of the same stem), and where they are ``boxes.csv`` (or ``boxes.json`` of COCO,
    or a folder ``boxes`` of VOC files) and ``labels.csv`` (columns file, contains: yes or no).

    Masks are black and white, or have one value beside 0; where they have more, ``objects`` must say which of them mean
    the object. Of cut-outs, what is not transparent is object. A mask without an image, of another size, or that cannot
    be read is an error that names it. ``masks_folder`` takes the place of ``masks/``.
    """
    path = find_folder(folder, "images with masks")
    files = image_files(path / "images")
    masks = read_drawn_masks(masks_folder or path / "masks", files, max_pixels, objects)
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
    folder: Path, files: list[Path], max_pixels: int = MAX_PIXELS, objects: Collection[int] | None = None
) -> list[Array | None]:
    """The masks of a folder, PNG files named like the images; None for images without one."""
    values: dict[str, set[int]] = {}

    def read(file: Path) -> Array:
        mask = read_mask_values(file, max_pixels)
        values[file.name] = list_values(mask)
        return mask

    masks = match_masks(folder, files, read, max_pixels)
    if not values:
        raise ValueError(f"the folder {shorten(str(folder))} contains no masks; add PNG files named like the images")
    wanted = list(object_values(values, objects))
    return [None if mask is None else np.isin(mask, wanted) for mask in masks]


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
        what = "a mask" if mask is not None and mask.any() else "a box" if not np.isnan(box).any() else ""
        if label is False and what:
            raise ValueError(f"{file.name} has {what}, but the label no in labels.csv; correct one of them")

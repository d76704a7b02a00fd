"""Folders of images with masks, boxes and image labels of several classes, which a table ``classes.csv`` names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.reading import find_folder, quote
from tacit.data.text_files import read_csv
from tacit.vision.boxes import BoxTable, rows_by_file, take_boxes
from tacit.vision.photos import MAX_PIXELS, image_size, open_image
from tacit.vision.regions.class_labels import UNKNOWN, VOID, Classes, read_class_names
from tacit.vision.segmentation.folders import YES_OR_NO, image_files, match_masks, read_boxes, stripped_rows

RESERVED = {"void": VOID, "unknown": UNKNOWN}
"""Names of ``classes.csv`` that are not classes."""


class ClassTable(NamedTuple):
    """What ``classes.csv`` says.

    Attributes
    ----------
    classes : their names, and generic ones
    numbers : by value or colour of a pixel, the number of its class, or of void or unknown
    colours : (K, 3) of every class, for pictures
    values : (K,) of every class, in masks that are written
    """

    classes: Classes
    numbers: dict[Any, int]
    colours: Array
    values: Array

    @property
    def is_coloured(self) -> bool:
        return isinstance(next(iter(self.numbers)), tuple)


class ClassImages(NamedTuple):
    """Images of a folder in the order of their names, and what is known of each, as `tacit.weak_labels` takes it."""

    files: list[Path]
    table: ClassTable
    masks: list[Array | None]
    boxes: list[dict[str, Array] | None]
    contains: list[Any]


def read_class_folder(folder: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> tuple[ClassImages, list[Path]]:
    """Read a folder with ``classes.csv``, and the paths of its tables."""
    path = find_folder(folder, "images with masks")
    table = read_class_table(path / "classes.csv")
    files = image_files(path / "images")
    masks = match_masks(path / "masks", files, lambda file: read_class_mask(file, table, max_pixels), max_pixels)
    boxes, source = read_boxes(path)
    of_image: list[dict[str, Array] | None] = [None] * len(files)
    if boxes is not None:
        of_image = join_class_boxes(boxes, files, max_pixels)
    for i, own in enumerate(of_image):
        for name in own or {}:
            table.classes.position(name, f"the box of {files[i].name}", allows_generic=True)
    labels = path / "labels.csv"
    contains = read_class_labels(labels, files, table.classes) if labels.exists() else [None] * len(files)
    tables = [path / "classes.csv", source, labels]
    inputs = [own for own in tables if own is not None and own.is_file()]
    return ClassImages(files, table, masks, of_image, contains), inputs


def read_class_table(path: Path) -> ClassTable:
    """Read a table with the columns ``name`` and ``value`` or ``colour`` (``#rrggbb``), or both.

    In ``members``, generic names have their classes, with semicolons between. The rows void and unknown name pixels
    without a class.
    """
    table = read_csv(path, ("name",))
    key = "colour" if "value" not in table.columns else "value"
    if key not in table.columns:
        raise ValueError(f"{quote(path)} lacks the column 'value' or 'colour'; add what masks have for every class")
    names, generic, colours = [], {}, {}
    keys: dict[Any, str] = {}
    for line, row in stripped_rows(table):
        where, name = f"{path.name}, line {line}", row["name"]
        number: Any = _read_colour(where, row[key]) if key == "colour" else _read_value(where, row[key])
        if number in keys:
            raise ValueError(f"{where}: {shorten(row[key])} stands for {shorten(keys[number])} already; correct it")
        if not name or name in keys.values():
            raise ValueError(f"{where}: name must be a new name, got {shorten(name)}")
        keys[number] = name
        if row.get("members"):
            generic[name] = [member.strip() for member in row["members"].split(";")]
        elif name not in RESERVED:
            names.append(name)
        if row.get("colour"):
            colours[name] = _read_colour(where, row["colour"])
    try:
        classes = read_class_names(names, generic)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
    known = {name: number for number, name in enumerate([*classes.names, *classes.generic])} | RESERVED
    of_name = {name: number for number, name in keys.items()}
    values = np.arange(len(names)) if key == "colour" else np.array([of_name[name] for name in names])
    if values.max() > 255:
        values = np.arange(len(names))
    drawn = np.array([colours.get(name, default_colour(c + 1)) for c, name in enumerate(names)], dtype=np.uint8)
    return ClassTable(classes, {number: known[name] for number, name in keys.items()}, drawn, values)


def number_classes(names: Sequence[str]) -> ClassTable:
    """Classes whose values in masks count from 0.

    >>> number_classes(["sky", "sea"]).values.tolist()
    [0, 1]
    """
    colours = np.array([default_colour(c + 1) for c in range(len(names))], dtype=np.uint8)
    values = np.arange(len(names))
    return ClassTable(read_class_names(list(names), {}), {c: c for c in values.tolist()}, colours, values)


def default_colour(number: int) -> tuple[int, int, int]:
    """A colour for every number, those of Pascal VOC: bits 0, 1, 2 of the number are the highest of red, green, blue.

    >>> default_colour(1), default_colour(2), default_colour(3)
    ((128, 0, 0), (0, 128, 0), (128, 128, 0))
    """
    channels = [0, 0, 0]
    for step in range(8):
        for channel in range(3):
            channels[channel] |= (number >> channel & 1) << (7 - step)
        number >>= 3
    return channels[0], channels[1], channels[2]


def _read_value(where: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) >= 1 << 16:
        raise ValueError(f"{where}: value must be a whole number from 0 to 65535, got {shorten(text)}")
    return int(text)


def _read_colour(where: str, text: str) -> tuple[int, int, int]:
    if not re.fullmatch("#?[0-9a-fA-F]{6}", text):
        raise ValueError(f"{where}: colour must be like #00ff80, got {shorten(text)}")
    digits = text.removeprefix("#")
    red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    return red, green, blue


def read_class_mask(path: Path, table: ClassTable, max_pixels: int = MAX_PIXELS) -> Array:
    """The number of the class of every pixel of a mask; values or colours that the table lacks are an error."""
    keeps = () if table.is_coloured else ("1", "L", "P", "I", "I;16", "I;16B")
    pixels = open_image(
        path, max_pixels, lambda image: np.array(image if image.mode in keeps else image.convert("RGB"))
    )
    pixels = np.asarray(pixels).astype(np.int64)
    if table.is_coloured:
        flat = pixels[:, :, 0] << 16 | pixels[:, :, 1] << 8 | pixels[:, :, 2]
        keys = {red << 16 | green << 8 | blue: number for (red, green, blue), number in table.numbers.items()}
    else:
        if pixels.ndim == 3:
            if (pixels != pixels[:, :, :1]).any():
                raise ValueError(f"{quote(path)} has colours; give classes.csv a column colour instead of value")
            pixels = pixels[:, :, 0]
        flat, keys = pixels, table.numbers
    found, owner = np.unique(flat, return_inverse=True)
    for key in found.tolist():
        if key not in keys:
            shown = f"the colour #{key:06x}" if table.is_coloured else f"the value {key}"
            raise ValueError(f"the mask {quote(path)} has {shown}, which classes.csv lacks; add a row for it")
    return np.array([keys[key] for key in found.tolist()], dtype=np.int16)[owner].reshape(flat.shape)


def join_class_boxes(boxes: BoxTable, files: list[Path], max_pixels: int) -> list[dict[str, Array] | None]:
    """The boxes of every image, by class."""
    owned = rows_by_file(boxes, files)
    for turn in range(max(map(len, owned), default=0)):  # checks the sizes of images and boxes
        rows = np.array([own[turn] if turn < len(own) else -1 for own in owned])
        take_boxes(boxes, rows, [file.name for file in files], lambda i: image_size(files[i], max_pixels))
    found: list[dict[str, Array] | None] = []
    for own in owned:
        names = [str(boxes.y[row]) for row in own]
        of_name = {name: [row for row in own if str(boxes.y[row]) == name] for name in dict.fromkeys(names)}
        found.append({name: boxes.boxes[rows].astype(np.float64) for name, rows in of_name.items()} or None)
    return found


def read_class_labels(path: Path, files: list[Path], classes: Classes) -> list[Any]:
    """``contains`` of `tacit.weak_labels`, from columns file and classes (all that occur, with semicolons between), or
    file, class and contains (yes or no)."""
    table = read_csv(path, ("file",))
    is_list = "classes" in table.columns
    if not is_list and not {"class", "contains"} <= set(table.columns):
        raise ValueError(f"{quote(path)} must have the columns file,classes or file,class,contains")
    positions = {name: i for i, file in enumerate(files) for name in (file.name, file.stem)}
    labels: list[Any] = [None] * len(files)
    for line, row in stripped_rows(table):
        where = f"{path.name}, line {line}"
        if row["file"] not in positions:
            raise ValueError(f"{where}: file {shorten(row['file'])} is not one of the images; correct it")
        i = positions[row["file"]]
        if is_list:
            if labels[i] is not None:
                raise ValueError(f"{where}: {files[i].name} has two rows; remove one")
            labels[i] = [name.strip() for name in row["classes"].split(";")]
            for name in labels[i]:
                classes.position(name, where)
            continue
        classes.position(row["class"], where)
        word = YES_OR_NO.get(row["contains"].lower())
        if word is None:
            raise ValueError(f"{where}: contains must be yes or no, got {shorten(row['contains'])}")
        own = labels[i] = labels[i] or {}
        if own.setdefault(row["class"], word) != word:
            raise ValueError(f"{where}: {files[i].name} has both yes and no for {row['class']}; remove one")
    return labels

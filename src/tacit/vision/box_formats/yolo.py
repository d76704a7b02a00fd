"""YOLO: one text file per image, a line ``class x_centre y_centre width height`` per box, in shares of the image."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.reading import quote, read_text
from tacit.data.text_files import TextReader
from tacit.vision.box_files import BoxRow, Place, check_rows, make_table, read_number, short_number, write_text
from tacit.vision.boxes import BoxTable, path_parts

NAME_FILES = ("classes.txt", "obj.names", "data.yaml", "dataset.yaml")
"""Files that name classes, beside the boxes or one folder above."""
NOT_BOXES = ("classes.txt", "notes.txt", "train.txt", "val.txt", "test.txt", "readme.txt", "requirements.txt")


def read_yolo(folder: Path, sizes: Mapping[str, tuple[str, int, int]]) -> BoxTable:
    """Boxes from all text files of a folder, at any depth.

    ``sizes`` has the name, width and height of each image by its stem: boxes are in shares of the image. The box of an
    image that is not there is left in shares, under the name of its text file. Lines with polygons become the boxes
    around them, and numbers after the box are ignored.
    """
    names = read_class_names(folder)
    rows = []
    for file in sorted(folder.rglob("*.txt")):
        if file.name.lower() in NOT_BOXES:
            continue
        name, width, height = sizes.get(file.stem, (file.name, 1, 1))
        reader = TextReader(file)
        for number, line in reader.lines(rare_ends=True):
            words = reader.split(line)
            if not words:
                continue
            where = Place(file, "line", number)
            values = [read_number(word, where, "a share") for word in words]
            if len(values) < 5 or values[0] != int(values[0]):
                raise ValueError(f"{where}: a YOLO line is class, x, y, width, height, got {line[:80]!r}")
            corners = _corners(values[1:]) * np.array([width, height, width, height])
            size = [-1, -1] if file.stem not in sizes else [width, height]
            rows.append(BoxRow(where, name, names.get(int(values[0]), str(int(values[0]))), corners.tolist(), size))
    return make_table(folder, rows)


def _corners(values: list[float]) -> Array:
    """Left, top, right, bottom in shares, from centre and sides, or from the points of a polygon."""
    if len(values) >= 6 and len(values) % 2 == 0:
        points = np.array(values).reshape(-1, 2)
        found = np.concatenate([points.min(axis=0), points.max(axis=0)])
    else:
        x, y, width, height = values[:4]
        found = np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])
    return np.asarray(np.clip(found, 0.0, 1.0))


def read_class_names(folder: Path) -> dict[int, str]:
    """The names of classes by number, from the first of `NAME_FILES` that is found; empty where there is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "data.yaml").write_text("nc: 2\\nnames: ['cat', 'dog']\\n")
    ...     read_class_names(Path(folder))
    {0: 'cat', 1: 'dog'}
    """
    for file in (place / name for place in (folder, folder.parent) for name in NAME_FILES):
        if not file.is_file():
            continue
        text = read_text(file)
        if file.suffix != ".yaml":
            return dict(enumerate(line.strip() for line in text.splitlines() if line.strip()))
        block = re.search(r"^names:[ \t]*(\[[^\]]*\]|(?:\n[ \t]+.*|\n-.*)+)", text, re.MULTILINE)
        if block is None:
            raise ValueError(f"{quote(file)} lacks the list of names; write names: [cat, dog]")
        found = block.group(1)
        parts = found[1:-1].split(",") if found.startswith("[") else found.strip().splitlines()
        words = [re.sub(r"^\s*(?:-|\d+\s*:)\s*", "", part).strip().strip("'\"") for part in parts]
        return dict(enumerate(word for word in words if word))
    return {}


def write_yolo(folder: Path, table: BoxTable, scores: Any = None) -> None:
    """Write a text file per image and ``classes.txt``; a score is the sixth number of a line.

    ``cat/1.jpg`` becomes ``cat/1.txt``, so that folders of classes stay apart.
    """
    table, ranks = check_rows(table, scores)
    kinds = {str(name): k for k, name in enumerate(np.unique(table.y).tolist())}
    lines: dict[str, list[str]] = {}
    for i, (file, name) in enumerate(zip(table.files, table.y, strict=True)):
        width, height = table.sizes[i].tolist()
        if min(width, height) <= 0:
            raise ValueError(f"the size of {quote(str(file))} is unknown, and YOLO boxes are in shares of it")
        left, top, right, bottom = table.boxes[i] / np.array([width, height, width, height])
        numbers = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]
        numbers += [] if ranks is None else [float(ranks[i])]
        line = " ".join([str(kinds[str(name)]), *(short_number(round(float(number), 6)) for number in numbers)])
        lines.setdefault(str(Path(*path_parts(file)).with_suffix(".txt")), []).append(line)
    for name, own in lines.items():
        target = folder / name.lstrip("/")
        if ".." in target.parts:
            raise ValueError(f"the name {quote(name)} leads out of its folder; rename it")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, "\n".join(own) + "\n")
    write_text(folder / "classes.txt", "\n".join(kinds) + "\n")

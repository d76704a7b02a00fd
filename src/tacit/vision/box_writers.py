"""Boxes written as CSV, VOC XML or COCO JSON: what `boxes_csv`, `boxes_voc` and `boxes_coco` read back."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, numbers, reason
from tacit.data.reading import named
from tacit.vision.box_files import CORNERS, BoxTable, checked_table, path_parts


def write_boxes_csv(path: str | os.PathLike[str], table: BoxTable, scores: Any = None) -> None:
    """Write a table with the columns file, class, width, height, xmin, ymin, xmax, ymax, and score where given.

    >>> import tempfile
    >>> table = BoxTable(np.array(["a.jpg"]), np.array(["cat"]), np.array([[1, 2, 30, 40.5]]), np.array([[50, 60]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_boxes_csv(f"{folder}/found.csv", table, scores=[0.5])
    ...     print((Path(folder) / "found.csv").read_text())
    file,class,width,height,xmin,ymin,xmax,ymax,score
    a.jpg,cat,50,60,1,2,30,40.5,0.5
    <BLANKLINE>
    """
    table = checked_table(table)
    boxes, sizes, ranks = _checked(table, scores)
    head = ["file", "class", "width", "height", *CORNERS, *([] if ranks is None else ["score"])]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for i, (file, name) in enumerate(zip(table.files, table.y, strict=True)):
        pixels = [side if side > 0 else "" for side in sizes[i].tolist()]
        score = [] if ranks is None else [_short(ranks[i])]
        writer.writerow([file, name, *pixels, *map(_short, boxes[i]), *score])
    _write(file_path("path", path), stream.getvalue())


def write_boxes_voc(folder: str | os.PathLike[str], table: BoxTable, scores: Any = None) -> None:
    """Write one VOC annotation per image into a folder: ``cat/1.jpg`` becomes ``cat_1.xml``.

    VOC counts pixels from 1 and includes the last: 0 … 10 becomes 1 … 10. A score is written as ``confidence``.

    >>> import tempfile
    >>> table = BoxTable(np.array(["a.jpg"]), np.array(["cat"]), np.array([[0, 0, 10, 20.0]]), np.array([[50, 60]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_boxes_voc(folder, table)
    ...     "<xmin>1</xmin>" in (Path(folder) / "a.xml").read_text()
    True
    """
    table = checked_table(table)
    boxes, sizes, ranks = _checked(table, scores)
    rows: dict[str, list[int]] = {}
    for i, file in enumerate(table.files):
        rows.setdefault(str(file), []).append(i)
    names: dict[str, str] = {}
    for file in rows:
        name = Path("_".join(path_parts(file)).strip("/")).stem
        if name in names:
            raise ValueError(
                f"{named(names[name])} and {named(file)} would both be written to {name[:80]}.xml; rename one of them"
            )
        names[name] = file
    place = file_path("folder", folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"the folder {named(place)} cannot be made: {error.strerror}") from error
    for name, file in names.items():
        root = ElementTree.Element("annotation")
        _add(root, "filename", file)
        width, height = sizes[rows[file][0]].tolist()
        if min(width, height) > 0:
            _add(_add(root, "size"), "width", width)
            _add(root[-1], "height", height)
            _add(root[-1], "depth", 3)
        for i in rows[file]:
            thing = _add(root, "object")
            _add(thing, "name", table.y[i])
            if ranks is not None:
                _add(thing, "confidence", _short(ranks[i]))
            corners = _add(thing, "bndbox")
            for corner, value in zip(CORNERS, boxes[i] + [1, 1, 0, 0], strict=True):
                _add(corners, corner, _short(value))
        ElementTree.indent(root)
        _write(place / f"{name}.xml", ElementTree.tostring(root, encoding="unicode") + "\n")


def write_boxes_coco(path: str | os.PathLike[str], table: BoxTable, scores: Any = None) -> None:
    """Write a COCO annotation file: images, categories (sorted by name) and annotations, with a score where given.

    >>> import tempfile
    >>> table = BoxTable(np.array(["a.jpg"]), np.array(["cat"]), np.array([[1, 2, 31, 42.0]]), np.array([[50, 60]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_boxes_coco(f"{folder}/found.json", table)
    ...     json.loads((Path(folder) / "found.json").read_text())["annotations"][0]["bbox"]
    [1.0, 2.0, 30.0, 40.0]
    """
    table = checked_table(table)
    boxes, sizes, ranks = _checked(table, scores)
    images: dict[str, dict[str, Any]] = {}
    kinds = {str(name): k for k, name in enumerate(np.unique(table.y).tolist(), start=1)}
    notes = []
    for i, (file, name) in enumerate(zip(table.files, table.y, strict=True)):
        image = images.setdefault(str(file), {"id": len(images) + 1, "file_name": str(file)})
        if sizes[i].min() > 0:
            image["width"], image["height"] = sizes[i].tolist()
        left, top, right, bottom = boxes[i].tolist()
        note = {"id": i + 1, "image_id": image["id"], "category_id": kinds[str(name)], "iscrowd": 0}
        note |= {"bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)}
        notes.append(note if ranks is None else note | {"score": float(ranks[i])})
    categories = [{"id": k, "name": name} for name, k in kinds.items()]
    content = {"images": list(images.values()), "categories": categories, "annotations": notes}
    _write(file_path("path", path), json.dumps(content, indent=1) + "\n")


def _checked(table: BoxTable, scores: Any) -> tuple[Array, Array, Array | None]:
    """Boxes, sizes and scores of one length, boxes with an area."""
    n, boxes, sizes = len(table.files), table.boxes, table.sizes
    ranks = None if scores is None else numbers("scores", scores, "one number per box")
    if ranks is not None and (ranks.shape != (n,) or not np.isfinite(ranks).all()):
        raise ValueError(f"scores has shape {ranks.shape} for {n} files, not {(n,)} finite numbers")
    good = np.isfinite(boxes).all(axis=1) & (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
    if not good.all():
        i = int(np.argmin(good))
        name = named(str(table.files[i]))
        raise ValueError(f"the box of {name} is {boxes[i].tolist()}; leave out rows without a box")
    return boxes, sizes, ranks


def _write(place: Path, text: str) -> None:
    try:
        place.write_bytes(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ValueError(f"a name holds {error.object[error.start]!r}, which is no character; rename it") from error
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or reason(error)
        raise OSError(getattr(error, "errno", None) or 0, f"{named(place)} could not be written: {told}") from error


def _add(parent: ElementTree.Element, tag: str, text: Any = None) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, tag)
    child.text = None if text is None else str(text)
    return child


def _short(value: Any) -> str:
    """A number with all its digits and no more: 30, not 30.0."""
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)

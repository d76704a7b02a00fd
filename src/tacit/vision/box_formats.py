"""Boxes in all formats: a path, whose ending and content say the format, is read; and YOLO, LabelMe and CVAT.

YOLO has one text file per image, with a line ``class x_centre y_centre width height`` per box, in shares of the image.
LabelMe has one JSON file per image, with shapes of points; of every shape the box around it counts. CVAT for images has
one XML file with the boxes and polygons of all images.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.reading import find_path, quote, read_text
from tacit.data.text_files import TextReader, parse_json
from tacit.vision.box_files import (
    SIDES,
    BoxRow,
    Place,
    add_element,
    boxes_coco,
    boxes_csv,
    boxes_voc,
    check_rows,
    make_table,
    read_number,
    read_size,
    safe_tree,
    short_number,
    write_boxes_coco,
    write_boxes_csv,
    write_boxes_voc,
    write_text,
)
from tacit.vision.boxes import BoxTable, path_parts

NAME_FILES = ("classes.txt", "obj.names", "data.yaml", "dataset.yaml")
"""Files that name classes, beside the boxes or one folder above."""
NOT_BOXES = ("classes.txt", "notes.txt", "train.txt", "val.txt", "test.txt", "readme.txt", "requirements.txt")
CVAT_CORNERS = ("xtl", "ytl", "xbr", "ybr")


Photo = tuple[str, int, int]
"""The name of a photo, its width and its height."""


def read_table(path: Any, photos: Sequence[Photo] | None = None) -> BoxTable:
    """Boxes from a file or folder; its ending and content say in which format.

    A file is CSV, COCO or LabelMe (.json), VOC or CVAT (.xml). A folder has VOC (*.xml), LabelMe (*.json) or YOLO
    (*.txt) files. YOLO needs the ``photos``; LabelMe needs them where photos of several folders have one name.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"table must be a BoxTable or the path of one, got {type(path).__name__}")
    file = find_path(path)
    if os.path.isdir(file):
        return _read_folder(file, photos)
    if file.suffix.lower() == ".xml":
        return read_cvat(file) if os.path.isfile(file) and safe_tree(file).tag == "annotations" else boxes_voc(file)
    if file.suffix.lower() == ".json":
        if os.path.isfile(file):
            content = parse_json(read_text(file), quote(file))
            if isinstance(content, dict) and "shapes" in content:
                return read_labelme(file)
        return boxes_coco(file)
    return boxes_csv(file)


def _read_folder(folder: Path, photos: Sequence[Photo] | None) -> BoxTable:
    if any(folder.glob("*.xml")):
        return boxes_voc(folder)
    if any(folder.rglob("*.json")):
        return read_labelme(folder, photos)
    if any(file.name.lower() not in NOT_BOXES for file in folder.rglob("*.txt")):
        if photos is None:
            raise ValueError(f"{quote(folder)} has YOLO boxes, in shares of photos; give the photos too (tacit locate)")
        return read_yolo(folder, photos)
    raise FileNotFoundError(f"{quote(folder)} contains no boxes: no *.xml (VOC), *.json (LabelMe) or *.txt (YOLO)")


def photo_finder(photos: Sequence[Photo]) -> Callable[[str], Photo | None]:
    """A function from the path of a file of boxes to its photo: that of the same stem, whose folders agree the most.

    >>> find = photo_finder([("cat/1.jpg", 10, 10), ("dog/1.jpg", 20, 20)])
    >>> find("labels/dog/1.txt"), find("2.txt")
    (('dog/1.jpg', 20, 20), None)
    """
    parts = [_reversed_parts(photo[0]) for photo in photos]
    by_stem: dict[str, list[int]] = {}
    for i, own in enumerate(parts):
        by_stem.setdefault(own[0], []).append(i)

    def find(path: str) -> Photo | None:
        own = _reversed_parts(path)
        same = by_stem.get(own[0], [])
        pairs = [zip(own, parts[i], strict=False) for i in same]
        shared = [sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both)) for both in pairs]
        best = [i for i, n in zip(same, shared, strict=True) if n == max(shared)]
        if len(best) > 1:
            first, second = (quote(photos[i][0]) for i in best[:2])
            raise ValueError(f"the boxes of {quote(path)} fit {first} and {second}; put them into folders like theirs")
        return photos[best[0]] if best else None

    return find


def _reversed_parts(path: str) -> list[str]:
    """The stem of a path, then its folders from the last."""
    *folders, name = path_parts(path)
    return [Path(name).stem, *reversed(folders)]


def read_yolo(folder: Path, photos: Sequence[Photo]) -> BoxTable:
    """Boxes from all text files of a folder, at any depth.

    Boxes are in shares of their photo. The box of a photo that is not there is left in shares, under the name of its
    text file. Lines with polygons become the boxes around them, and numbers after the box are ignored.
    """
    names, find = read_class_names(folder), photo_finder(photos)
    rows = []
    for file in sorted(folder.rglob("*.txt")):
        if file.name.lower() in NOT_BOXES:
            continue
        photo = find(file.relative_to(folder).as_posix())
        name, width, height = photo or (file.name, 1, 1)
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
            size = [-1, -1] if photo is None else [width, height]
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


def read_labelme(path: Path, photos: Sequence[Photo] | None = None) -> BoxTable:
    """Boxes from one annotation, or from all ``*.json`` of a folder at any depth."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    find, rows = photo_finder(photos or []), []
    for file in files:
        content = parse_json(read_text(file), quote(file))
        shapes = content.get("shapes") if isinstance(content, dict) else None
        if not isinstance(shapes, list):
            raise ValueError(f"{quote(file)} lacks the list 'shapes' of a LabelMe file; remove it")
        image = path_parts(str(content.get("imagePath") or f"{file.stem}.jpg"))[-1]
        photo = find((file.parent.relative_to(path) / image).as_posix()) if path.is_dir() else None
        size = [read_size(content.get(name), quote(file), name) for name in ("imageWidth", "imageHeight")]
        for i, shape in enumerate(shapes):
            where = Place(file, "shape", i)
            points = shape.get("points") if isinstance(shape, dict) else None
            if (
                not isinstance(points, list)
                or not points
                or not all(isinstance(p, list) and len(p) == 2 for p in points)
            ):
                raise ValueError(f"{where}: points must be pairs of numbers, got {shorten(points)}")
            table = np.array([[read_number(value, where, "a point") for value in point] for point in points])
            if shape.get("shape_type") == "circle" and len(table) == 2:
                radius = float(np.hypot(*(table[1] - table[0])))
                table = np.array([table[0] - radius, table[0] + radius])
            if len(table) < 2:
                continue  # a point has no box
            corners = [*table.min(axis=0).tolist(), *table.max(axis=0).tolist()]
            rows.append(BoxRow(where, photo[0] if photo else image, str(shape.get("label", "")), corners, size))
    return make_table(path, rows)


def write_labelme(folder: Path, table: BoxTable, scores: Any = None) -> None:
    """Write a JSON file per image: ``cat/1.jpg`` becomes ``cat/1.json``. A score is the description of its shape."""
    table, ranks = check_rows(table, scores)
    contents: dict[str, dict[str, Any]] = {}
    for i, (file, name) in enumerate(zip(table.files, table.y, strict=True)):
        parts = path_parts(file)
        if ".." in parts:
            raise ValueError(f"the name {quote(str(file))} leads out of its folder; rename it")
        width, height = (int(side) if side > 0 else None for side in table.sizes[i])
        content = contents.setdefault(
            str(Path(*parts).with_suffix(".json")).lstrip("/"),
            {"version": "5.0.1", "flags": {}, "shapes": [], "imagePath": parts[-1], "imageData": None}
            | {"imageHeight": height, "imageWidth": width},
        )
        left, top, right, bottom = table.boxes[i].tolist()
        shape: dict[str, Any] = {
            "label": str(name),
            "points": [[left, top], [right, bottom]],
            "group_id": None,
            "flags": {},
        }
        note = "" if ranks is None else f"score {float(ranks[i]):.4g}"
        content["shapes"].append(shape | {"shape_type": "rectangle", "description": note})
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / name, json.dumps(content, indent=1) + "\n")


def read_cvat(file: Path) -> BoxTable:
    """Boxes of a file of CVAT for images; polygons become the boxes around them."""
    root = safe_tree(file)
    if root.tag != "annotations":
        raise ValueError(f"{quote(file)} contains <{root.tag[:80]}>, not the <annotations> of CVAT for images")
    rows = []
    for image in root.iter("image"):
        size = [read_size(image.get(name), quote(file), name) for name in SIDES]
        for i, shape in enumerate(image):
            where = Place(file, f"image {image.get('name')!r}, shape", i)
            if shape.tag == "box":
                corners = [read_number(shape.get(name), where, name) for name in CVAT_CORNERS]
            elif shape.tag in ("polygon", "polyline", "points") and shape.get("points"):
                pairs = [point.split(",") for point in (shape.get("points") or "").split(";") if point]
                if not pairs or any(len(pair) != 2 for pair in pairs):
                    raise ValueError(f"{where}: points must be pairs x,y, got {shorten(shape.get('points'))}")
                points = np.array([[read_number(value, where, "points") for value in pair] for pair in pairs])
                corners = [*points.min(axis=0).tolist(), *points.max(axis=0).tolist()]
            else:
                continue
            rows.append(BoxRow(where, image.get("name") or "", shape.get("label") or "", corners, size))
    return make_table(file, rows)


def write_cvat(file: Path, table: BoxTable, scores: Any = None) -> None:
    """Write all boxes into one file; a score is an attribute of its box."""
    table, ranks = check_rows(table, scores)
    root = ElementTree.Element("annotations")
    add_element(root, "version", "1.1")
    images: dict[str, ElementTree.Element] = {}
    for i, (name, kind) in enumerate(zip(table.files, table.y, strict=True)):
        image = images.get(str(name))
        if image is None:
            image = images[str(name)] = add_element(root, "image")
            image.set("id", str(len(images) - 1))
            image.set("name", str(name))
            for side, value in zip(SIDES, table.sizes[i].tolist(), strict=True):
                if value > 0:
                    image.set(side, str(value))
        box = add_element(image, "box")
        box.set("label", str(kind))
        box.set("occluded", "0")
        for corner, value in zip(CVAT_CORNERS, table.boxes[i], strict=True):
            box.set(corner, short_number(value))
        if ranks is not None:
            add_element(box, "attribute", short_number(ranks[i])).set("name", "score")
    ElementTree.indent(root)
    write_text(file, ElementTree.tostring(root, encoding="unicode") + "\n")


WRITERS: dict[str, tuple[str, Any]] = {
    "coco": ("boxes.json", write_boxes_coco),
    "csv": ("boxes.csv", write_boxes_csv),
    "voc": ("voc", write_boxes_voc),
    "yolo": ("yolo", write_yolo),
    "labelme": ("labelme", write_labelme),
    "cvat": ("boxes.xml", write_cvat),
}
"""Per format the name of its file or folder, and the function that writes it."""

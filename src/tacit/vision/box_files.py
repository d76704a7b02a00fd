"""Tables of boxes in files: CSV, VOC XML and COCO JSON, read and written; `tacit.vision.box_formats` has others.

A bounding box is (x_min, y_min, x_max, y_max) in pixels, x to the right, y down, the upper left corner of the image at
(0, 0); it covers ``x_max − x_min`` pixels across. Formats that count otherwise are converted. Relative paths are tried
in the current folder, then below the folder that the environment variable TACIT_DATA names; files are read up to a
limit. The image files that a table names are never opened. Check the names of a table that you do not trust for ``..``
before you join them to a folder.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, numbers, reason, shorten
from tacit.data.reading import MAX_BYTES, find_file, find_path, quote, read_bytes, read_text
from tacit.data.text_files import parse_json, read_csv
from tacit.vision.boxes import MAX_SIDE, BoxTable, check_table, path_parts

CORNERS = ("xmin", "ymin", "xmax", "ymax")
SIDES = ("width", "height")
OTHER_NAMES = {name: name for name in ("file", "class", *CORNERS, *SIDES)} | {
    **dict.fromkeys(("filename", "file_name", "image"), "file"),
    **{"label": "class", "x1": "xmin", "y1": "ymin", "x2": "xmax", "y2": "ymax"},
}
"""Names of columns in tables of other programs, in small letters."""
_MAX_XML = 10_000_000


def boxes_csv(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> BoxTable:
    """Boxes from a table with the columns file, xmin, ymin, xmax, ymax, and optionally class, width, height.

    The first column may be named filename, as in tables of TensorFlow, and corners x1, y1, x2, y2. Commas, semicolons
    or tabs separate columns, with decimal points in numbers. A table of more than ``max_bytes`` bytes is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "boxes.csv").write_text("file,class,xmin,ymin,xmax,ymax\\na.jpg,cat,1,2,30,40.5\\n")
    ...     boxes_csv(f"{folder}/boxes.csv").boxes
    array([[ 1. ,  2. , 30. , 40.5]])
    """
    file = find_file(path, "a table of boxes")
    table = read_csv(file, ("file", *CORNERS), max_bytes=max_bytes, delimiters=",;\t", other_names=OTHER_NAMES)
    at = {name: j for j, name in enumerate(table.columns)}  # of two columns with one name the last counts
    kind, sides = at.get("class"), [at.get(name) for name in ("width", "height")]
    rows = []
    for number, row in table.rows:
        where = Place(file, "line", number)
        corners = [read_number(row[at[name]], where, name) for name in CORNERS]
        size = [read_size(None if j is None else row[j], where, name) for j, name in zip(sides, SIDES, strict=True)]
        rows.append(BoxRow(where, row[at["file"]] or "", "" if kind is None else row[kind] or "", corners, size))
    if rows and max(max(row.corners) for row in rows) <= 1:
        raise ValueError(f"{quote(file)} has no corner above 1; corners must be pixels, not shares of the photo")
    return make_table(file, rows)


def boxes_voc(path: str | os.PathLike[str]) -> BoxTable:
    """Boxes from one Pascal VOC annotation, or from all ``*.xml`` of a folder.

    VOC counts pixels from 1 and includes the last: 1 … 10 becomes 0 … 10. Documents that declare entities or a
    document type are refused: a few bytes of those can expand to gigabytes.

    >>> import tempfile
    >>> text = '''<annotation><filename>a.jpg</filename><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>
    ... <xmax>10</xmax><ymax>20</ymax></bndbox></object></annotation>'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.xml").write_text(text)
    ...     boxes_voc(folder).boxes
    array([[ 0.,  0., 10., 20.]])
    """
    folder = find_path(path)
    files = sorted(folder.glob("*.xml")) if os.path.isdir(folder) else [find_file(folder, "a VOC annotation")]
    if not files:
        raise FileNotFoundError(f"{quote(folder)} contains no *.xml files")
    return make_table(folder, [row for file in files for row in _voc_rows(file)])


def boxes_coco(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> BoxTable:
    """Boxes from a COCO annotation file: its images, categories and annotations.

    A file of more than ``max_bytes`` bytes is refused: its Python objects take ten times as much memory.

    >>> import tempfile
    >>> content = {
    ...     "images": [{"id": 7, "file_name": "a.jpg", "width": 50, "height": 60}],
    ...     "categories": [{"id": 1, "name": "cat"}],
    ...     "annotations": [{"image_id": 7, "category_id": 1, "bbox": [1, 2, 30, 40]}],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "boxes.json").write_text(json.dumps(content))
    ...     boxes_coco(f"{folder}/boxes.json").boxes
    array([[ 1.,  2., 31., 42.]])
    """
    file = find_file(path, "a COCO annotation file")
    text = read_text(file, max_bytes=max_bytes)
    content = parse_json(text, quote(file), max_bytes)
    lists: dict[str, Any] = content if isinstance(content, dict) else {}
    wrong = [name for name in ("images", "categories", "annotations") if not isinstance(lists.get(name), list)]
    if wrong:
        raise ValueError(f"{quote(file)} lacks the list {wrong[0]!r}; COCO has images, categories and annotations")
    try:
        images = {image["id"]: image for image in lists["images"]}
        names = {kind["id"]: str(kind["name"]) for kind in lists["categories"]}
        notes = enumerate(lists["annotations"])
        rows = [_coco_row(Place(file, "annotation", i), note, images, names) for i, note in notes]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{quote(file)} is not a COCO file: {reason(error)} is missing or malformed") from error
    return make_table(file, rows)


class Place(NamedTuple):
    """Where something stands in a file; the text is made for errors alone, as tables can have millions of rows."""

    file: Path
    what: str
    number: int

    def __str__(self) -> str:
        return f"{quote(self.file)}, {self.what} {self.number}"


class BoxRow(NamedTuple):
    where: Any
    file: str
    name: str
    corners: Sequence[float]
    size: Sequence[int]


def _voc_rows(file: Path) -> Iterable[BoxRow]:
    root = safe_tree(file)
    if root.tag != "annotation":
        raise ValueError(f"{quote(file)} contains <{shorten(root.tag)}>, not a VOC <annotation>")
    image = root.findtext("filename") or f"{file.stem}.jpg"
    size = [read_size(root.findtext(f"size/{name}"), quote(file), name) for name in SIDES]
    for i, thing in enumerate(root.iter("object")):
        where = Place(file, "object", i)
        left, top, right, bottom = (read_number(thing.findtext(f"bndbox/{n}"), where, n) for n in CORNERS)
        yield BoxRow(where, image, (thing.findtext("name") or "").strip(), (left - 1, top - 1, right, bottom), size)


def safe_tree(file: Path) -> ElementTree.Element:
    """An XML document without a document type, hence without entities that it defines itself."""
    content = read_bytes(file, _MAX_XML)

    def refuse(*_: Any) -> None:
        raise ValueError("it declares a document type, which annotations do not need")

    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = refuse
    try:
        guard.Parse(content, True)
        return ElementTree.fromstring(content)
    except (expat.ExpatError, ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{quote(file)} is truncated, not XML, or refused ({reason(error)})") from error


def _coco_row(where: Place, note: Any, images: dict[Any, Any], names: dict[Any, str]) -> BoxRow:
    if note["image_id"] not in images or note["category_id"] not in names:
        image, kind = shorten(note["image_id"]), shorten(note["category_id"])
        raise ValueError(f"{where} names image {image} and category {kind}; one of them is not in the file")
    image = images[note["image_id"]]
    box = note["bbox"]
    if not isinstance(box, list) or len(box) != 4:
        raise ValueError(f"{where}: bbox is {shorten(box)}, but must be [x, y, width, height]")
    left, top, width, height = (read_number(value, where, "bbox") for value in box)
    size = [read_size(image.get(name), where, name) for name in SIDES]
    name = names[note["category_id"]]
    return BoxRow(where, str(image["file_name"]), name, (left, top, left + width, top + height), size)


def read_number(text: Any, where: Any, name: str) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):  # not a number, or one of 400 digits
        value = np.nan
    if not math.isfinite(value):
        raise ValueError(f"{where}: {name} is {shorten(text)}, but must be a finite number")
    return value


def read_size(text: Any, where: Any, name: str) -> int:
    """Pixels across or down; −1 where the file has nothing or 0."""
    value = read_number(text or 0, where, name)
    if value > MAX_SIDE:
        raise ValueError(f"{where}: {name} is {value:g} pixels, but must be at most {MAX_SIDE:g}")
    return int(value) if value >= 1 else -1


def make_table(file: Path, rows: list[BoxRow]) -> BoxTable:
    if not rows:
        raise ValueError(f"{quote(file)} contains no boxes")
    for row in rows:
        if not row.file:
            raise ValueError(f"{row.where}: the name of the image file is missing")
        left, top, right, bottom = row.corners
        if not (left < right and top < bottom):
            box = f"{row.where}: the box {tuple(row.corners)}"
            raise ValueError(f"{box} is empty; corners must be left, top, right, bottom")
        width, height = row.size
        if min(left, top) < -1 or (width > 0 and right > width + 1) or (height > 0 and bottom > height + 1):
            box = f"{row.where}: the box {tuple(row.corners)}"
            raise ValueError(f"{box} must lie inside its image of {width:g} × {height:g} pixels")
    longest = max(max(len(row.file), len(row.name)) for row in rows)
    if longest * len(rows) > MAX_BYTES:  # columns of strings are as wide as their longest
        raise ValueError(f"{quote(file)} has a name of {longest} letters; names of files and classes must be shorter")
    return BoxTable(
        np.array([row.file for row in rows]),
        np.array([row.name for row in rows]),
        np.array([row.corners for row in rows], dtype=np.float64),
        np.array([row.size for row in rows], dtype=np.int64),
    )


def write_boxes_csv(
    path: str | os.PathLike[str], table: BoxTable, scores: Any = None, sources: Sequence[str] | None = None
) -> None:
    """Write a table with the columns file, class, width, height, xmin, ymin, xmax, ymax, and score where given.

    ``sources`` says where each box is from, such as "drawn" or "found"; it is the last column where given.

    >>> import tempfile
    >>> table = BoxTable(np.array(["a.jpg"]), np.array(["cat"]), np.array([[1, 2, 30, 40.5]]), np.array([[50, 60]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_boxes_csv(f"{folder}/found.csv", table, scores=[0.5])
    ...     print((Path(folder) / "found.csv").read_text())
    file,class,width,height,xmin,ymin,xmax,ymax,score
    a.jpg,cat,50,60,1,2,30,40.5,0.5
    <BLANKLINE>
    """
    table, ranks = check_rows(table, scores)
    head = ["file", "class", "width", "height", *CORNERS, *([] if ranks is None else ["score"])]
    head += [] if sources is None else ["source"]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for i, (file, name) in enumerate(zip(table.files, table.y, strict=True)):
        pixels = [side if side > 0 else "" for side in table.sizes[i].tolist()]
        score = [] if ranks is None else [short_number(ranks[i])]
        score += [] if sources is None else [sources[i]]
        writer.writerow([file, name, *pixels, *map(short_number, table.boxes[i]), *score])
    write_text(file_path("path", path), stream.getvalue())


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
    table, ranks = check_rows(table, scores)
    rows: dict[str, list[int]] = {}
    for i, file in enumerate(table.files):
        rows.setdefault(str(file), []).append(i)
    names: dict[str, str] = {}
    for file in rows:
        name = Path("_".join(path_parts(file)).strip("/")).stem
        if name in names:
            raise ValueError(
                f"{quote(names[name])} and {quote(file)} would both become {name[:80]}.xml; rename one of them"
            )
        names[name] = file
    path = file_path("folder", folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"the folder {quote(path)} cannot be created: {error.strerror}") from error
    for name, file in names.items():
        root = ElementTree.Element("annotation")
        add_element(root, "filename", file)
        width, height = table.sizes[rows[file][0]].tolist()
        if min(width, height) > 0:
            add_element(add_element(root, "size"), "width", width)
            add_element(root[-1], "height", height)
            add_element(root[-1], "depth", 3)
        for i in rows[file]:
            thing = add_element(root, "object")
            add_element(thing, "name", table.y[i])
            if ranks is not None:
                add_element(thing, "confidence", short_number(ranks[i]))
            corners = add_element(thing, "bndbox")
            for corner, value in zip(CORNERS, table.boxes[i] + [1, 1, 0, 0], strict=True):
                add_element(corners, corner, short_number(value))
        ElementTree.indent(root)
        write_text(path / f"{name}.xml", ElementTree.tostring(root, encoding="unicode") + "\n")


def write_boxes_coco(path: str | os.PathLike[str], table: BoxTable, scores: Any = None) -> None:
    """Write a COCO annotation file: images, categories (sorted by name) and annotations, with a score where given.

    >>> import tempfile
    >>> table = BoxTable(np.array(["a.jpg"]), np.array(["cat"]), np.array([[1, 2, 31, 42.0]]), np.array([[50, 60]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_boxes_coco(f"{folder}/found.json", table)
    ...     json.loads((Path(folder) / "found.json").read_text())["annotations"][0]["bbox"]
    [1.0, 2.0, 30.0, 40.0]
    """
    table, ranks = check_rows(table, scores)
    images: dict[str, dict[str, Any]] = {}
    kinds = {str(name): k for k, name in enumerate(np.unique(table.y).tolist(), start=1)}
    notes = []
    for i, (file, name) in enumerate(zip(table.files, table.y, strict=True)):
        image = images.setdefault(str(file), {"id": len(images) + 1, "file_name": str(file)})
        if table.sizes[i].min() > 0:
            image["width"], image["height"] = table.sizes[i].tolist()
        left, top, right, bottom = table.boxes[i].tolist()
        note = {"id": i + 1, "image_id": image["id"], "category_id": kinds[str(name)], "iscrowd": 0}
        note |= {"bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)}
        notes.append(note if ranks is None else note | {"score": float(ranks[i])})
    categories = [{"id": k, "name": name} for name, k in kinds.items()]
    content = {"images": list(images.values()), "categories": categories, "annotations": notes}
    write_text(file_path("path", path), json.dumps(content, indent=1) + "\n")


def check_rows(table: BoxTable, scores: Any) -> tuple[BoxTable, Array | None]:
    """The table, if every box has an area, and finite scores, one per box."""
    table = check_table(table)
    n, boxes = len(table.files), table.boxes
    ranks = None if scores is None else numbers("scores", scores, "one number per box")
    if ranks is not None and (ranks.shape != (n,) or not np.isfinite(ranks).all()):
        raise ValueError(f"scores must be {n} finite numbers, one per box, got shape {ranks.shape}")
    good = np.isfinite(boxes).all(axis=1) & (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
    if not good.all():
        i = int(np.argmin(good))
        name = quote(str(table.files[i]))
        raise ValueError(f"the box of {name} is {boxes[i].tolist()}, which is empty or not finite; remove the row")
    return table, ranks


def write_text(file: Path, text: str) -> None:
    try:
        file.write_bytes(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise ValueError(f"a name contains {letter!r}, which cannot be written as UTF-8; rename it") from error
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or reason(error)
        raise OSError(getattr(error, "errno", None) or 0, f"{quote(file)} could not be written: {cause}") from error


def add_element(parent: ElementTree.Element, tag: str, text: Any = None) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, tag)
    child.text = None if text is None else str(text)
    return child


def short_number(value: Any) -> str:
    """The shortest text of a number that keeps its value: 30, not 30.0."""
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)

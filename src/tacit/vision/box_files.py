"""Boxes of objects in images: CSV tables, VOC XML, COCO JSON, all read into one table, joined to images by name.

A box is (x_min, y_min, x_max, y_max) in pixels, x to the right, y down, the corner of the image at (0, 0); it covers
``x_max − x_min`` pixels across. Formats that count otherwise are converted. Paths are looked for here, then below the
folder that the environment variable TACIT_DATA names, and read up to a limit (`tacit.data.reading`). Names of
images are handed on as they are written and never opened: before you join names of a table that you do not trust to a
folder, look for ``..`` in them.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from tacit.data.arrays import Array
from tacit.data.lines import one_line
from tacit.data.location import find_file, find_place
from tacit.data.parameters import has_length, is_list, numbers, one_of, reason, shorten
from tacit.data.reading import MAX_BYTES, named, read_bytes, read_text

CORNERS = ("xmin", "ymin", "xmax", "ymax")
_MAX_XML = 10_000_000
_MAX_PIXELS = 1e9


class BoxTable(NamedTuple):
    """One row per object: its file and class, its box (n, 4), and (width, height) of the image, −1 where unknown.

    The order of rows is that of the file they come from; `join_boxes` brings them into the order of the images.
    """

    files: Array
    y: Array
    boxes: Array
    sizes: Array


def boxes_csv(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> BoxTable:
    """Boxes from a table with the columns file, xmin, ymin, xmax, ymax, and perhaps class, width, height.

    A table of more than ``max_bytes`` is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "boxes.csv").write_text("file,class,xmin,ymin,xmax,ymax\\na.jpg,cat,1,2,30,40.5\\n")
    ...     boxes_csv(f"{folder}/boxes.csv").boxes
    array([[ 1. ,  2. , 30. , 40.5]])
    """
    place = find_file(path, "a table of boxes")
    rows = []
    reader = csv.DictReader(io.StringIO(read_text(place, "utf-8-sig", max_bytes), newline=""))
    try:
        columns = list(reader.fieldnames or ())
        missing = [name for name in ("file", *CORNERS) if name not in columns]
        if missing:
            raise ValueError(f"{named(place)} has no column {missing[0]!r}; its columns are {shorten(columns)}")
        for row in reader:
            where = f"{named(place)}, line {reader.line_num}"
            corners = [_number(row[name], f"{where}: {name}") for name in CORNERS]
            size = [_size(row.get(name), f"{where}: {name}") for name in ("width", "height")]
            rows.append(_Row(where, row["file"], row.get("class") or "", corners, size))
    except csv.Error as error:
        raise ValueError(f"{named(place)} is not a table ({reason(error)})") from error
    return _table(place, rows)


def boxes_voc(path: str | os.PathLike[str]) -> BoxTable:
    """Boxes from one VOC annotation, or from all ``*.xml`` of a folder.

    VOC counts pixels from 1 and includes the last: 1 … 10 becomes 0 … 10. Documents that declare entities or a
    document type are refused, because a few bytes of those can grow to gigabytes.

    >>> import tempfile
    >>> text = '''<annotation><filename>a.jpg</filename><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>
    ... <xmax>10</xmax><ymax>20</ymax></bndbox></object></annotation>'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.xml").write_text(text)
    ...     boxes_voc(folder).boxes
    array([[ 0.,  0., 10., 20.]])
    """
    place = find_place(path)
    files = sorted(place.glob("*.xml")) if os.path.isdir(place) else [find_file(place, "a VOC annotation")]
    if not files:
        raise FileNotFoundError(f"{named(place)} has no *.xml files")
    return _table(place, [row for file in files for row in _voc_rows(file)])


def boxes_coco(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> BoxTable:
    """Boxes from a COCO annotation file: its images, categories and annotations.

    A file of more than ``max_bytes`` is refused: as Python objects it takes ten times as much.

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
    place = find_file(path, "a COCO annotation file")
    text = read_text(place, max_bytes=max_bytes)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{named(place)} is truncated or not JSON ({reason(error)})") from error
    lists = {name: content.get(name) if isinstance(content, dict) else None for name in ("images", "categories")}
    notes = content.get("annotations") if isinstance(content, dict) else None
    wrong = [name for name, value in {**lists, "annotations": notes}.items() if not isinstance(value, list)]
    if wrong:
        raise ValueError(f"{named(place)} has no list {wrong[0]!r}; COCO has images, categories and annotations")
    try:
        images = {image["id"]: image for image in lists["images"] or ()}
        names = {kind["id"]: str(kind["name"]) for kind in lists["categories"] or ()}
        rows = [_coco_row(f"{named(place)}, annotation {i}", note, images, names) for i, note in enumerate(notes or ())]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{named(place)} is not a COCO file: {reason(error)} is missing or malformed") from error
    return _table(place, rows)


def join_boxes(table: BoxTable, files: Sequence[Any], y: Any = None, *, several: str = "error") -> Array:
    """The boxes of a table in the order of image files, (n, 4), joined by name; a row of NaN where the table has none.

    A row belongs to the image whose path ends in the row's name: ``cat/1.jpg`` or ``1.jpg`` to ``photos/cat/1.jpg``. A
    row whose image is not there, a name that fits two images, a second box of one image and a class that is not the
    image's are errors: joined by position, such a table would give wrong boxes in silence.

    Parameters
    ----------
    table : boxes by name, in any order
    files : paths of the images, such as those of `image_folder`
    y : the classes of the images, to be compared with those of the table; None compares nothing
    several : what to do about an image with two boxes or more: "error", or "largest" to take the largest one, of the
        image's own class where y is given

    >>> table = BoxTable(np.array(["b.jpg", "a.jpg"]), np.array(["", ""]), np.array([[0, 0, 1, 1], [2, 2, 3, 3.0]]), [])
    >>> join_boxes(table, ["photos/a.jpg", "photos/b.jpg", "photos/c.jpg"])
    array([[ 2.,  2.,  3.,  3.],
           [ 0.,  0.,  1.,  1.],
           [nan, nan, nan, nan]])
    """
    rows = match_rows(table, files, y, several=several)
    return np.where((rows >= 0)[:, None], checked_table(table).boxes[rows], np.nan)


def match_rows(table: BoxTable, files: Sequence[Any], y: Any = None, *, several: str = "error") -> Array:
    """(n,) the row of the table that belongs to every file, −1 where there is none; the rules are `join_boxes`'s."""
    one_of("several", several, ("error", "largest"))
    table = checked_table(table)
    if not isinstance(files, list | tuple | np.ndarray) or not is_list(files):
        raise TypeError(f"files is a list of paths of images, got {shorten(files)}")
    if y is not None and not has_length(y):
        raise TypeError(f"y has the class of every image, or is None, got {shorten(y)}")
    labels = None if y is None else [str(label) for label in y]
    if labels is not None and len(labels) != len(files):
        raise ValueError(f"y has {len(labels)} classes for {len(files)} images; give one each")
    rows = np.full(len(files), -1)
    for i, own in enumerate(_rows_by_file(table, files)):
        if len(own) > 1 and several == "error":
            raise ValueError(
                f"image {named(str(files[i]))} has {len(own)} boxes (rows {own[0]} and {own[1]} of the table), and one "
                "is needed; keep one per image, or take the largest with several='largest'"
            )
        if labels is not None and own:
            same = [row for row in own if str(table.y[row]) in ("", labels[i])]
            if not same:
                raise ValueError(
                    f"image {named(str(files[i]))} is of class {shorten(labels[i])}, and row {own[0]} of the table "
                    f"says {shorten(str(table.y[own[0]]))}; correct one of the two, or join without classes"
                )
            own = same
        if own:
            corners = np.asarray(table.boxes)[own]
            rows[i] = own[int(np.argmax(np.prod(corners[:, 2:] - corners[:, :2], axis=1)))]
    return rows


def _rows_by_file(table: BoxTable, files: Sequence[Any]) -> list[list[int]]:
    """The rows of every file, by the end of its path."""
    paths = [path_parts(file) for file in files]
    by_name: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        by_name.setdefault(path[-1], []).append(i)
    found: list[list[int]] = [[] for _ in files]
    for row, name in enumerate(table.files):
        wanted = path_parts(name)
        fits = [i for i in by_name.get(wanted[-1], ()) if paths[i][-len(wanted) :] == wanted]
        if not fits:
            known = ", ".join(one_line("/".join(path[-2:]), 80) for path in paths[:3])
            raise ValueError(
                f"row {row} of the table has a box of {shorten(str(name))}, which ends none of the {len(files)} paths "
                f"({known}, …); correct the name, or leave the row out"
            )
        if len(fits) > 1:
            both = " and ".join(named(str(files[i])) for i in fits[:2])
            raise ValueError(
                f"row {row} of the table has a box of {shorten(str(name))}, which fits {both}; write more of the path "
                "into the table, such as the subfolder"
            )
        found[fits[0]].append(row)
    return found


def checked_table(table: Any) -> BoxTable:
    """A table whose parts fit each other, as arrays; sizes may be missing altogether."""
    if not isinstance(table, BoxTable):
        raise TypeError(f"a BoxTable is needed, as boxes_csv gives it, got {shorten(table)}")
    names = [_as_names(name, part) for name, part in (("files", table.files), ("y", table.y))]
    n = len(names[0])
    boxes, sizes = numbers("boxes", table.boxes), numbers("sizes", table.sizes)
    sizes = sizes if sizes.size else np.full((n, 2), -1.0)
    for name, part, shape in (("y", names[1], (n,)), ("boxes", boxes, (n, 4)), ("sizes", sizes, (n, 2))):
        if part.shape != shape:
            raise ValueError(f"{name} has shape {part.shape} for {n} files, not {shape}")
    if not (np.abs(sizes) <= _MAX_PIXELS).all():
        raise ValueError(f"sizes are pixels, −1 where unknown, got {shorten(table.sizes)}")
    return BoxTable(names[0], names[1], boxes, sizes.astype(np.int64))


def _as_names(name: str, part: Any) -> Array:
    """A vector of names, whatever they were written as."""
    if isinstance(part, str | bytes | dict | set) or not is_list(part) or getattr(part, "ndim", 1) != 1:
        raise TypeError(f"{name} of a table of boxes is a list of names, got {shorten(part)}")
    names = [str(entry) for entry in part]
    if len(names) * max(map(len, names), default=0) > MAX_BYTES:
        raise ValueError(f"{name} of a table of boxes holds a name of {max(map(len, names))} letters")
    return np.array(names, dtype=np.str_)


def path_parts(name: Any) -> tuple[str, ...]:
    """The parts of a path, written with slashes or backslashes; never empty."""
    return PurePosixPath(str(name).replace("\\", "/")).parts or ("",)


class _Row(NamedTuple):
    where: str
    file: str
    name: str
    corners: Sequence[float]
    size: Sequence[int]


def _voc_rows(file: Path) -> Iterable[_Row]:
    root = _safe_tree(file)
    if root.tag != "annotation":
        raise ValueError(f"{named(file)} holds <{shorten(root.tag)}>, not a VOC <annotation>")
    image = root.findtext("filename") or f"{file.stem}.jpg"
    size = [_size(root.findtext(f"size/{name}"), f"{named(file)}: {name}") for name in ("width", "height")]
    for i, thing in enumerate(root.iter("object")):
        where = f"{named(file)}, object {i}"
        left, top, right, bottom = (_number(thing.findtext(f"bndbox/{n}"), f"{where}: {n}") for n in CORNERS)
        yield _Row(where, image, (thing.findtext("name") or "").strip(), (left - 1, top - 1, right, bottom), size)


def _safe_tree(file: Path) -> ElementTree.Element:
    """An XML document without document type, hence without entities of its own."""
    content = read_bytes(file, _MAX_XML)

    def refuse(*_: Any) -> None:
        raise ValueError("it declares a document type, which annotations do not need")

    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = refuse
    try:
        guard.Parse(content, True)
        return ElementTree.fromstring(content)
    except (expat.ExpatError, ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{named(file)} is truncated, not XML, or refused ({reason(error)})") from error


def _coco_row(where: str, note: Any, images: dict[Any, Any], names: dict[Any, str]) -> _Row:
    if note["image_id"] not in images or note["category_id"] not in names:
        raise ValueError(
            f"{where} names image {shorten(note['image_id'])} and category {shorten(note['category_id'])}; "
            "one of them is not in the file"
        )
    image = images[note["image_id"]]
    box = note["bbox"]
    if not isinstance(box, list) or len(box) != 4:
        raise ValueError(f"{where} has the bbox {shorten(box)}; COCO has [x, y, width, height]")
    left, top, width, height = (_number(value, f"{where}: bbox") for value in box)
    size = [_size(image.get(name), f"{where}: {name}") for name in ("width", "height")]
    name = names[note["category_id"]]
    return _Row(where, str(image["file_name"]), name, (left, top, left + width, top + height), size)


def _number(text: Any, where: str) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):  # no number, or one of 400 digits
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{where} is {shorten(text)}, not a number")
    return value


def _size(text: Any, where: str) -> int:
    """Pixels across or down, −1 where nobody wrote them: nothing, or 0."""
    value = _number(text or 0, where)
    if value > _MAX_PIXELS:
        raise ValueError(f"{where} is {value:g}; no image has that many pixels")
    return int(value) if value >= 1 else -1


def _table(place: Path, rows: list[_Row]) -> BoxTable:
    if not rows:
        raise ValueError(f"{named(place)} holds no boxes")
    for row in rows:
        if not row.file:
            raise ValueError(f"{row.where}: the box has no image; write the name of its file")
        left, top, right, bottom = row.corners
        if not (left < right and top < bottom):
            raise ValueError(
                f"{row.where}: the box {tuple(row.corners)} is empty; corners are left, top, right, bottom"
            )
        width, height = row.size
        if min(left, top) < -1 or (width > 0 and right > width + 1) or (height > 0 and bottom > height + 1):
            raise ValueError(f"{row.where}: the box {tuple(row.corners)} leaves its image of {width:g} × {height:g}")
    longest = max(max(len(row.file), len(row.name)) for row in rows)
    if longest * len(rows) > MAX_BYTES:  # columns of strings are as wide as their longest
        raise ValueError(f"{named(place)} has a name of {longest} letters; names of files and classes are shorter")
    return BoxTable(
        np.array([row.file for row in rows]),
        np.array([row.name for row in rows]),
        np.array([row.corners for row in rows], dtype=np.float64),
        np.array([row.size for row in rows], dtype=np.int64),
    )

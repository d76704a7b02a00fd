"""CVAT for images: one XML file with the boxes and polygons of all images."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tacit.data.parameters import shorten
from tacit.data.reading import quote
from tacit.vision.box_files import (
    BoxRow,
    Place,
    add_element,
    check_rows,
    make_table,
    read_number,
    read_size,
    safe_tree,
    short_number,
    write_text,
)
from tacit.vision.boxes import BoxTable

CORNERS = ("xtl", "ytl", "xbr", "ybr")


def read_cvat(file: Path) -> BoxTable:
    """Boxes of a file of CVAT for images; polygons become the boxes around them."""
    root = safe_tree(file)
    if root.tag != "annotations":
        raise ValueError(f"{quote(file)} contains <{root.tag[:80]}>, not the <annotations> of CVAT for images")
    rows = []
    for image in root.iter("image"):
        size = [read_size(image.get(name), quote(file), name) for name in ("width", "height")]
        for i, shape in enumerate(image):
            where = Place(file, f"image {image.get('name')!r}, shape", i)
            if shape.tag == "box":
                corners = [read_number(shape.get(name), where, name) for name in CORNERS]
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
            for side, value in zip(("width", "height"), table.sizes[i].tolist(), strict=True):
                if value > 0:
                    image.set(side, str(value))
        box = add_element(image, "box")
        box.set("label", str(kind))
        box.set("occluded", "0")
        for corner, value in zip(CORNERS, table.boxes[i], strict=True):
            box.set(corner, short_number(value))
        if ranks is not None:
            add_element(box, "attribute", short_number(ranks[i])).set("name", "score")
    ElementTree.indent(root)
    write_text(file, ElementTree.tostring(root, encoding="unicode") + "\n")

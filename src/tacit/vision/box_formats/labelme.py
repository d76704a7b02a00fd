"""LabelMe: one JSON file per image, with shapes of points; of every shape the box around it counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.parameters import shorten
from tacit.data.reading import quote, read_text
from tacit.data.text_files import parse_json
from tacit.vision.box_files import BoxRow, Place, check_rows, make_table, read_number, read_size, write_text
from tacit.vision.boxes import BoxTable, path_parts


def read_labelme(path: Path) -> BoxTable:
    """Boxes from one annotation, or from all ``*.json`` of a folder at any depth."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    rows = []
    for file in files:
        content = parse_json(read_text(file), quote(file))
        shapes = content.get("shapes") if isinstance(content, dict) else None
        if not isinstance(shapes, list):
            raise ValueError(f"{quote(file)} lacks the list 'shapes' of a LabelMe file; remove it")
        image = str(content.get("imagePath") or f"{file.stem}.jpg")
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
            rows.append(BoxRow(where, path_parts(image)[-1], str(shape.get("label", "")), corners, size))
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

"""Boxes from a path, whose ending and content say the format; and boxes written in all formats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.data.reading import find_path, quote, read_text
from tacit.data.text_files import parse_json
from tacit.vision.box_files import (
    boxes_coco,
    boxes_csv,
    boxes_voc,
    safe_tree,
    write_boxes_coco,
    write_boxes_csv,
    write_boxes_voc,
)
from tacit.vision.box_formats.cvat import read_cvat, write_cvat
from tacit.vision.box_formats.labelme import read_labelme, write_labelme
from tacit.vision.box_formats.yolo import NOT_BOXES, read_yolo, write_yolo
from tacit.vision.boxes import BoxTable

WRITERS: dict[str, tuple[str, Any]] = {
    "coco": ("boxes.json", write_boxes_coco),
    "csv": ("boxes.csv", write_boxes_csv),
    "voc": ("voc", write_boxes_voc),
    "yolo": ("yolo", write_yolo),
    "labelme": ("labelme", write_labelme),
    "cvat": ("boxes.xml", write_cvat),
}
"""Per format the name of its file or folder, and the function that writes it."""


def read_table(path: Any, sizes: Mapping[str, tuple[str, int, int]] | None = None) -> BoxTable:
    """Boxes from a file or folder; its ending and content say in which format.

    A file is CSV, COCO or LabelMe (.json), VOC or CVAT (.xml). A folder has VOC (*.xml), LabelMe (*.json) or YOLO
    (*.txt) files. YOLO needs ``sizes``: the name, width and height of each image by its stem.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"table must be a BoxTable or the path of one, got {type(path).__name__}")
    file = find_path(path)
    if os.path.isdir(file):
        return _read_folder(file, sizes)
    if file.suffix.lower() == ".xml":
        return read_cvat(file) if os.path.isfile(file) and safe_tree(file).tag == "annotations" else boxes_voc(file)
    if file.suffix.lower() == ".json":
        if os.path.isfile(file):
            content = parse_json(read_text(file), quote(file))
            if isinstance(content, dict) and "shapes" in content:
                return read_labelme(file)
        return boxes_coco(file)
    return boxes_csv(file)


def _read_folder(folder: Path, sizes: Mapping[str, tuple[str, int, int]] | None) -> BoxTable:
    if any(folder.glob("*.xml")):
        return boxes_voc(folder)
    if any(folder.rglob("*.json")):
        return read_labelme(folder)
    if any(file.name.lower() not in NOT_BOXES for file in folder.rglob("*.txt")):
        if sizes is None:
            raise ValueError(f"{quote(folder)} has YOLO boxes, in shares of photos; give the photos too (tacit locate)")
        return read_yolo(folder, sizes)
    raise FileNotFoundError(f"{quote(folder)} contains no boxes: no *.xml (VOC), *.json (LabelMe) or *.txt (YOLO)")

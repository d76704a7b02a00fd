"""Boxes of objects in photos, for `tacit locate`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import is_list, number, shorten
from tacit.label.session import Learned
from tacit.vision.box_files import write_boxes_coco, write_boxes_csv
from tacit.vision.boxes import BoxTable
from tacit.vision.locator import Locator
from tacit.vision.photo_folders import read_photo_folder
from tacit.vision.photos import pillow, read_photo, scale_image

MAX_SIDE = 1200
"""Pixels of the longer side of a photo on the page."""


def as_jpeg(pixels: Array, side: int) -> bytes:
    """A photo whose longer side has at most so many pixels."""
    image = pillow().fromarray(scale_image(pixels, min(side, max(pixels.shape[:2]))))
    stream = io.BytesIO()
    image.convert("RGB").save(stream, "JPEG", quality=88)
    return stream.getvalue()


class Boxes:
    """One box per photo of a folder with one subfolder per class; photos of a background class are not asked for."""

    name, quality_name = "locate", "held-out mean IoU"
    nothing = None

    def __init__(self, path: Path, *, features: str = "handmade", cache: Path | None = None, seed: int = 0) -> None:
        self.photos = read_photo_folder(path)
        self.items = self.photos.names
        settings: dict[str, Any] = {"cache": None if cache is None else str(cache), "random_state": seed, "verbose": 0}
        self._locator = Locator(features, **settings)
        self._locator.check_parameters()

    def describe(self) -> dict[str, Any]:
        return {"kind": "boxes", "none": "no object here"}

    def show(self, item: int) -> dict[str, Any]:
        width, height = self.photos.sizes[item].tolist()
        return {"width": width, "height": height, "label": str(self.photos.y[item])}

    def picture(self, item: int) -> bytes:
        """The photo as JPEG, as the camera was held."""
        return as_jpeg(read_photo(self.photos.files[item]), MAX_SIDE)

    def check(self, item: int, answer: Any) -> list[float]:
        """Four corners within the photo, at least a pixel across and down."""
        if not is_list(answer) or len(answer) != 4:
            raise ValueError(f"a box must be four numbers, got {shorten(answer)}")
        corners = np.array([number("a corner", value, "a number") for value in answer])
        box = np.clip(corners, 0, np.tile(self.photos.sizes[item], 2)).round(1)
        if box[2] - box[0] < 1 or box[3] - box[1] < 1:
            raise ValueError(f"a box must be at least a pixel across and down, got {shorten(answer)}")
        return [float(corner) for corner in box]

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        drawn = np.full((len(self.items), 4), np.nan)
        for item, box in answers.items():
            drawn[item] = box
        self._locator.fit(self.photos.files, self.photos.y, boxes=drawn if answers else None)
        boxes = self._locator.found_boxes_.round(1).tolist()
        order = [int(i) for i in self._locator.least_sure_]
        quality = self._locator.evidence_.get(self.quality_name)
        return Learned(order, dict(enumerate(boxes)), None if quality is None else float(quality))

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """boxes.csv and boxes.json (COCO): what ``tacit locate --boxes`` reads."""
        rows = sorted(answers)
        table = BoxTable(
            np.array([self.items[i] for i in rows]),
            self.photos.y[rows],
            np.array([answers[i] for i in rows], dtype=np.float64),
            self.photos.sizes[rows].astype(np.float64),
        )
        write_boxes_csv(folder / "boxes.csv", table)
        write_boxes_coco(folder / "boxes.json", table)
        return ["boxes.csv", "boxes.json"]

"""Masks of objects in photos, for `tacit segment`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit import ask
from tacit.data.arrays import Array
from tacit.data.parameters import is_list, shorten, whole_number
from tacit.label.boxes import as_jpeg
from tacit.label.session import Learned
from tacit.vision.photos import pillow, read_image
from tacit.vision.regions.labels import weak_labels
from tacit.vision.segmentation.folders import image_files, read_drawn_masks
from tacit.vision.segmentation.segmenter import Segmenter

MAX_SIDE = 800
"""Pixels of the longer side of a photo on the page."""

ASKED = 50
"""Photos that are put in order by their usefulness after each fit; the others follow."""


class Masks:
    """The regions of the object, per photo of a folder with images/; photos with a file in masks/ are known."""

    name, quality_name = "segment", "held-out intersection over union"
    nothing: Any = []

    def __init__(self, path: Path, *, cache: Path | None = None, seed: int = 0) -> None:
        self.files = image_files(path / "images")
        drawn: list[Array | None] = [None] * len(self.files)
        if (path / "masks").is_dir() and any((path / "masks").iterdir()):
            drawn = read_drawn_masks(path / "masks", self.files)
        self._drawn = {i: mask for i, mask in enumerate(drawn) if mask is not None}
        self._open = [i for i in range(len(self.files)) if i not in self._drawn]
        if not self._open:
            raise ValueError(f"{path} has a mask of every image, so there is nothing to ask; add images")
        self.items = [self.files[i].name for i in self._open]
        # photos without a mask are left out of the fit: it takes seconds, and is repeated after every batch
        self._segmenter = Segmenter(weak=0.0, cache=cache, random_state=seed, verbose=0)
        self._graphs = self._segmenter.cut(self.files)
        small, _ = self._segmenter.shrink(self._graphs, self.files, drawn)
        self._small = {i: np.asarray(small[i]) > 0 for i in self._drawn}
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        return {"kind": "masks", "none": "no object here"}

    def show(self, item: int) -> dict[str, Any]:
        return {}

    def picture(self, item: int) -> bytes:
        """The photo as JPEG."""
        return as_jpeg(np.asarray(read_image(self.files[self._open[item]])), MAX_SIDE)

    def region_map(self, item: int) -> bytes:
        """The region of every pixel as PNG: its number is red + 256 · green."""
        numbers = self._maps(self._open[item])
        step = max(1, -(-max(numbers.shape) // MAX_SIDE))
        numbers = numbers[::step, ::step]
        pixels = np.stack([numbers % 256, numbers // 256, np.zeros_like(numbers)], axis=-1).astype(np.uint8)
        stream = io.BytesIO()
        pillow().fromarray(pixels).save(stream, "PNG")
        return stream.getvalue()

    def _maps(self, i: int) -> Array:
        assert self._graphs.maps is not None
        return np.asarray(self._graphs.maps[i])

    def check(self, item: int, answer: Any) -> list[int]:
        """Numbers of regions."""
        last = int(self._graphs.lengths[self._open[item]]) - 1
        if not is_list(answer):
            raise ValueError(f"an answer must be a list of regions, got {shorten(answer)}")
        return sorted({whole_number("a region", region, 0, last) for region in answer})

    def _collect_masks(self, answers: Mapping[int, Any]) -> list[Array | None]:
        """The known masks, at the size at which images are cut into regions."""
        masks: list[Array | None] = [self._small.get(i) for i in range(len(self.files))]
        for item, regions in answers.items():
            masks[self._open[item]] = np.isin(self._maps(self._open[item]), regions)
        return masks

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        masks = self._collect_masks(answers)
        open_ = [item for item in range(len(self.items)) if item not in answers and item not in set(closed)]
        drawn = [mask for mask in masks if mask is not None]
        if not any(mask.any() for mask in drawn) or all(mask.all() for mask in drawn):
            order = np.random.default_rng(self._seed).permutation(len(open_)).tolist()
            return Learned([open_[i] for i in order], {}, None)
        y = weak_labels(self._graphs, masks, None, None)
        self._segmenter.fit_regions(self._graphs, y, masks)
        rows = np.array([self._open[item] for item in open_], dtype=np.int64)
        model = self._segmenter.model_
        guesses: dict[int, Any] = {}
        order = list(open_)
        if rows.size:
            found = model.predict(self._graphs[rows])
            guesses = {item: np.flatnonzero(own == 1).tolist() for item, own in zip(open_, found, strict=True)}
            unknown = [np.full(n, -1) for n in self._graphs.lengths[rows]]
            questions = ask(model, self._graphs[rows], unknown, ASKED, random_state=self._seed)
            first = [open_[i] for i in questions.rows.tolist()]
            order = list(dict.fromkeys([*first, *open_]))
        quality = float(self._segmenter.iou_)
        return Learned(order, guesses, quality if np.isfinite(quality) else None)

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """masks/*.png, of the answers and of the folder: what ``tacit segment --masks`` reads."""
        (folder / "masks").mkdir(exist_ok=True)
        for i, (file, small) in enumerate(zip(self.files, self._collect_masks(answers), strict=True)):
            target = folder / "masks" / f"{file.stem}.png"
            if small is None:
                target.unlink(missing_ok=True)  # the answer was taken back
                continue
            mask = self._drawn[i] if i in self._drawn else self._segmenter.enlarge(file, small)
            pillow().fromarray(np.where(mask, 255, 0).astype(np.uint8)).save(target, format="PNG")
        return ["masks/"]

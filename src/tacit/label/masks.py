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
from tacit.label.session import ASKED, Learned, hold_out, list_open, put_asked_first, shuffle
from tacit.vision.photos import pillow, read_image
from tacit.vision.regions.labels import weak_labels
from tacit.vision.segmentation.folders import image_files, read_drawn_masks
from tacit.vision.segmentation.segmenter import Segmenter, learn_regions

MAX_SIDE = 800
"""Pixels of the longer side of a photo on the page."""

UNKNOWN = 127
"""Grey value of the pixels of a written mask whose label nobody gave."""


class Masks:
    """The regions of the object, per photo of a folder with images/; photos with a file in masks/ are known.

    With ``single`` an answer is whether one region belongs to the object. That needs a mask to begin with.
    """

    def __init__(self, path: Path, *, single: bool = False, cache: Path | None = None, seed: int = 0) -> None:
        self.files = image_files(path / "images")
        drawn: list[Array | None] = [None] * len(self.files)
        if (path / "masks").is_dir() and any((path / "masks").iterdir()):
            drawn = read_drawn_masks(path / "masks", self.files)
        self._drawn = {i: mask for i, mask in enumerate(drawn) if mask is not None}
        open_ = [i for i in range(len(self.files)) if i not in self._drawn]
        if not open_:
            raise ValueError(f"{path} has a mask of every image, so there is nothing to ask; add images")
        if single and not self._drawn:
            raise ValueError(f"{path} must have a file in masks/ with --single; leave --single out to draw some")
        self._segmenter = Segmenter(cache=cache, random_state=seed, verbose=0)
        self._graphs = self._segmenter.cut(self.files)
        small, _ = self._segmenter.shrink(self._graphs, self.files, drawn)
        self._small = {i: np.asarray(small[i]) > 0 for i in self._drawn}
        self._is_single, self._seed = single, seed
        n_regions = self._graphs.lengths.tolist()
        self._places = [(i, r) for i in open_ for r in (range(n_regions[i]) if single else [None])]
        self.items = [
            self.files[i].name if r is None else f"{self.files[i].name}, region {r + 1}" for i, r in self._places
        ]
        self.name = "segment, single regions" if single else "segment"
        self.quality_name = "held-out share of right regions" if single else "held-out intersection over union"
        self.nothing: Any = None if single else []

    def describe(self) -> dict[str, Any]:
        return {"kind": "masks", "none": "" if self._is_single else "no object here"}

    def show(self, item: int) -> dict[str, Any]:
        return {"region": self._places[item][1]}

    def picture(self, item: int) -> bytes:
        """The photo as JPEG."""
        return as_jpeg(np.asarray(read_image(self.files[self._places[item][0]])), MAX_SIDE)

    def region_map(self, item: int) -> bytes:
        """The region of every pixel as PNG: its number is red + 256 · green."""
        numbers = self._maps(self._places[item][0])
        step = max(1, -(-max(numbers.shape) // MAX_SIDE))
        numbers = numbers[::step, ::step]
        pixels = np.stack([numbers % 256, numbers // 256, np.zeros_like(numbers)], axis=-1).astype(np.uint8)
        stream = io.BytesIO()
        pillow().fromarray(pixels).save(stream, "PNG")
        return stream.getvalue()

    def _maps(self, i: int) -> Array:
        assert self._graphs.maps is not None
        return np.asarray(self._graphs.maps[i])

    def check(self, item: int, answer: Any) -> Any:
        """Numbers of regions; of a single region 1 if it belongs to the object, else 0."""
        i, region = self._places[item]
        if region is not None:
            return whole_number("an answer", answer, 0, 1)
        if not is_list(answer):
            raise ValueError(f"an answer must be a list of regions, got {shorten(answer)}")
        last = int(self._graphs.lengths[i]) - 1
        return sorted({whole_number("a region", own, 0, last) for own in answer})

    def _collect_masks(self, answers: Mapping[int, Any]) -> dict[int, Array]:
        """What is known of the photos: 1, 0, or −1 for unknown, at the size at which they are cut into regions."""
        masks = {i: own.astype(np.int8) for i, own in self._small.items()}
        for item, answer in answers.items():
            i, region = self._places[item]
            if region is None:
                masks[i] = np.isin(self._maps(i), answer).astype(np.int8)
            else:
                masks.setdefault(i, np.full(self._maps(i).shape, -1, np.int8))[self._maps(i) == region] = answer
        return dict(sorted(masks.items()))

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        masks = self._collect_masks(answers)
        open_ = list_open(len(self.items), answers, closed)
        if not any((own > 0).any() for own in masks.values()) or all((own > 0).all() for own in masks.values()):
            return Learned(shuffle(open_, self._seed), {}, None)
        known = list(masks)  # photos of which nothing is known are left out: a fit is repeated after every batch
        y = weak_labels(self._graphs[known], list(masks.values()))
        self._segmenter.fit_regions(self._graphs[known], y, list(masks.values()))
        quality = self._test(answers) if self._is_single else float(self._segmenter.iou_)
        return Learned(*self._order(open_, answers), quality if quality is not None and np.isfinite(quality) else None)

    def _order(self, open_: list[int], answers: Mapping[int, Any]) -> tuple[list[int], dict[int, Any]]:
        """The open items, the most useful first, and what the model says of them."""
        rows = sorted({self._places[item][0] for item in open_})
        if not rows:
            return [], {}
        masks = self._collect_masks(answers)
        unknown = weak_labels(self._graphs[rows], [masks.get(i) for i in rows])
        model = self._segmenter.model_
        found = dict(
            zip(rows, (np.asarray(own) == 1 for own in model.impute(self._graphs[rows], unknown)), strict=True)
        )
        guesses: dict[int, Any] = {}
        for item in open_:
            i, region = self._places[item]
            guesses[item] = np.flatnonzero(found[i]).tolist() if region is None else int(found[i][region])
        settings: dict[str, Any] = {"parts": self._is_single, "random_state": self._seed}
        asked = ask(model, self._graphs[rows], unknown, ASKED, **settings)
        places = self._places if self._is_single else [i for i, _ in self._places]
        return put_asked_first(open_, places, asked, rows), guesses

    def _test(self, answers: Mapping[int, Any]) -> float | None:
        """The share of held-out regions whose label is right, given the other answers."""
        folds, right = hold_out(sorted(answers)), 0
        for held in folds:
            given = {item: answer for item, answer in answers.items() if item not in held}
            masks = self._collect_masks(given)
            known = list(masks)
            y = weak_labels(self._graphs[known], list(masks.values()))
            C, weak = self._segmenter.C_, self._segmenter.weak_
            model = learn_regions(self._graphs[known], y, list(masks.values()), None, C, weak, verbose=0)[0]
            rows = sorted({self._places[item][0] for item in held})
            unknown = weak_labels(self._graphs[rows], [masks.get(i) for i in rows])
            found = dict(zip(rows, model.impute(self._graphs[rows], unknown), strict=True))
            right += sum(int(found[i][region]) == answers[item] for item in held for i, region in [self._places[item]])
        return right / len(answers) if folds else None

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """masks/*.png, of the answers and of the folder: what ``tacit segment --masks`` reads.

        Pixels without a label have the value `UNKNOWN`, and the command reads them with ``--unknown 127``.
        """
        (folder / "masks").mkdir(exist_ok=True)
        masks = self._collect_masks(answers)
        for i, file in enumerate(self.files):
            target = folder / "masks" / f"{file.stem}.png"
            if i not in masks:
                target.unlink(missing_ok=True)  # the answer was taken back
                continue
            mask = self._drawn[i] if i in self._drawn else self._segmenter.enlarge(file, masks[i])
            pixels = np.select([mask > 0, mask < 0], [255, UNKNOWN], 0).astype(np.uint8)
            pillow().fromarray(pixels).save(target, format="PNG")
        return ["masks/"]

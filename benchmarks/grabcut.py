"""Masks of objects in given boxes: GrabCut, image by image, and the Segmenter, which learns across images."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Page, Skipped, real_data
from benchmarks.whole_objects import BODY, FACE, OBJECTS, read_msrc
from tacit import weak_labels
from tacit.apps import Segmenter
from tacit.vision.photos import read_photo
from tacit.vision.regions.graphs import pixels_inside
from tacit.vision.regions.labels import tightest_box
from tacit.vision.segmentation.folders import read_mask, read_mask_values

MASKS = (5, 20)
N_TEST = 98
STEPS = 5
"""Iterations of GrabCut, as in OpenCV's tutorial."""
Scores = dict[str, list[tuple[float, float]]]


class Data(NamedTuple):
    """Photos, the masks of their objects, and which pixels count."""

    files: list[Path]
    masks: list[np.ndarray]
    counted: list[np.ndarray]


def run() -> Page:
    try:
        import cv2
    except ImportError as error:
        raise Skipped("OpenCV (opencv-python-headless) is not installed; tacit does not need it") from error
    page = Page(
        "Masks in boxes: GrabCut and learning across images",
        f"*horses*: 278 photos of 128 pixels; *msrc*: 281 photos of 320 pixels with objects of one of 14 classes, "
        f"without void pixels. {N_TEST} test photos (`default_rng(0).permutation`), all with the tightest box around "
        "their object. The other photos are a pool. GrabCut (Rother et al. 2004) gets the box of each test photo, as "
        "`cv2.grabCut` with a rectangle. The Segmenter learns from N masks of the pool and from the boxes of the test "
        "photos; it has no masks of these. On msrc it learns one object for all classes together. Means over test "
        "photos in percent, ± half of a 95 % interval over photos; seconds are CPU seconds per photo, with learning.",
        ["data", "method", "IoU, %", "pixels right, %", "CPU s per photo"],
    )
    real_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, data in (("horses", read_horses()), ("msrc", read_objects())):
            scores: Scores = {}
            seconds: dict[str, float] = {}
            _measure(cv2, data, scores, seconds)
            for method, rows in scores.items():
                cost = f"{seconds[method]:.2f}" if method in seconds else "–"
                page.rows.append((name, method, *(_interval(column) for column in 100 * np.array(rows).T), cost))
                print(page.rows[-1], flush=True)
    page.notes += [
        f"OpenCV {cv2.__version__}, {STEPS} iterations, `cv2.setRNGSeed(0)`, one thread. GrabCut may leave a box "
        "empty; such masks count with IoU 0.",
        "*GrabCut from the Segmenter's mask* starts from the found mask in place of the box: probable object inside, "
        "background outside of the box.",
        "Nothing was chosen on this page: all is as `tacit segment` does it. Features and settings of the Segmenter "
        "were chosen on photos of horses (`benchmarks/results/segmentation.md`), never on msrc objects. Of three draws "
        "that were planned, one was measured, for want of time; the horses were looked at once before.",
    ]
    return page


def read_horses() -> Data:
    folder = real_data() / "horses"
    files = sorted((folder / "images").iterdir())
    masks = [read_mask(folder / "masks" / f"{file.stem}.png") for file in files]
    return Data(files, masks, [np.ones_like(mask) for mask in masks])


def read_objects() -> Data:
    data, folder = read_msrc()[0], real_data() / "msrc"
    masks, counted = [], []
    for file, kind in zip(data.files, data.y, strict=True):
        labels = read_mask_values(folder / "labels" / f"{file.stem}.png")
        wanted = [k for k, name in OBJECTS.items() if name == kind] + ([FACE] if OBJECTS[BODY] == kind else [])
        masks.append(np.isin(labels, wanted))
        counted.append(labels > 0)
    return Data(data.files, masks, counted)


def _measure(cv2: Any, data: Data, scores: Scores, seconds: dict[str, float]) -> None:
    order = np.random.default_rng(0).permutation(len(data.files))
    test, pool = order[:N_TEST], order[N_TEST:]
    boxes = [tightest_box(data.masks[i]) for i in test]

    def add(method: str, masks: list[np.ndarray], cost: float | None = None) -> None:
        scores[method] = [_score(mask, data.masks[i], data.counted[i]) for i, mask in zip(test, masks, strict=True)]
        if cost is not None:
            seconds[method] = cost / len(test)

    add("the box", [pixels_inside(data.masks[i].shape, box) for i, box in zip(test, boxes, strict=True)])
    began = time.process_time()
    cut = [_grabcut(cv2, data.files[i], box) for i, box in zip(test, boxes, strict=True)]
    add("GrabCut", cut, time.process_time() - began)
    for n in MASKS:
        began = time.process_time()
        found = _segment(data, pool[:n], test, boxes)
        add(f"**Segmenter, {n} masks**", found, time.process_time() - began)
        triples = zip(test, boxes, found, strict=True)
        both = [_grabcut(cv2, data.files[i], box, mask) for i, box, mask in triples]
        add(f"GrabCut from the Segmenter's mask, {n} masks", both)


def _grabcut(cv2: Any, file: Path, box: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    cv2.setNumThreads(1)
    cv2.setRNGSeed(0)
    pixels = np.ascontiguousarray(read_photo(file)[:, :, ::-1])
    left, top, right, bottom = np.round(box).astype(int).tolist()
    state = np.full(pixels.shape[:2], cv2.GC_BGD, np.uint8)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    if mask is not None:
        state[top:bottom, left:right] = cv2.GC_PR_BGD
        state[mask] = cv2.GC_PR_FGD
    has_both = mask is None or (mask.any() and not mask.all())
    is_whole = (left, top, right, bottom) == (0, 0, pixels.shape[1], pixels.shape[0])
    if not has_both or (mask is None and is_whole):  # no pixels to learn the background from
        return np.ones(state.shape, dtype=bool) if mask is None else mask
    rectangle = (left, top, right - left, bottom - top)
    mode = cv2.GC_INIT_WITH_RECT if mask is None else cv2.GC_INIT_WITH_MASK
    cv2.grabCut(pixels, state, rectangle, *models, STEPS, mode)
    return np.isin(state, (cv2.GC_FGD, cv2.GC_PR_FGD))


def _segment(data: Data, given: np.ndarray, test: np.ndarray, boxes: list[np.ndarray]) -> list[np.ndarray]:
    """Masks of test photos from masks of others and their own boxes, as `tacit segment` makes them."""
    rows = np.concatenate([given, test])
    files = [data.files[i] for i in rows]
    masks = [data.masks[i].astype(int) for i in given] + [None] * len(test)
    table = np.array([[np.nan] * 4] * len(given) + [list(box) for box in boxes])
    app = Segmenter(verbose=0, n_jobs=1)
    graphs = app.cut(files)
    small, small_boxes = app.shrink(graphs, files, masks, table)
    y = weak_labels(graphs, small, small_boxes)
    app.fit_regions(graphs, y, small, small_boxes)
    found = app.complete(graphs, y, small_boxes)[len(given) :]
    full = [app.enlarge(file, mask) for file, mask in zip(files[len(given) :], found, strict=True)]
    return [mask & pixels_inside(mask.shape, box) for mask, box in zip(full, boxes, strict=True)]


def _score(found: np.ndarray, truth: np.ndarray, counted: np.ndarray) -> tuple[float, float]:
    found, truth = found & counted, truth & counted
    return float((found & truth).sum() / max((found | truth).sum(), 1)), float((found == truth)[counted].mean())


def _interval(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {stats.t.ppf(0.975, len(values) - 1) * stats.sem(values):.1f}"

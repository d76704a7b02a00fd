"""Segmentation into 23 classes: generic labels, single kinds of weak labels, CCCP beside self-paced learning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Page
from benchmarks.segmentation_classes import COLUMNS, FACTOR, GROUND, NAMES, Data, add_rows, fit_all, fit_weak
from tacit import LatentSVM, SelfPaced, StructuredSVM
from tacit.vision.regions.class_labels import VOID
from tacit.vision.segmentation.class_segmenter import TOL, class_problem, complete_images, label_classes

MANY = 3
"""Convex tasks of the rows that compare learners."""


def run() -> Page:
    page = Page(
        "Segmentation into classes: kinds of weak labels and learners",
        "Photos, fits and intervals of `segmentation_classes`, on its first fold. Rows with 20 % of the masks have "
        "image labels, boxes or both for the rest; those of CCCP and self-paced learning have at most "
        f"{MANY} convex tasks.",
        COLUMNS,
    )
    data = Data()
    rivals = {
        f"20 %: {name}": "20 %: masks alone"
        for name in ("masks and image labels", "masks and boxes", "CCCP (latent SVM)", "self-paced")
    }
    rivals |= {f"generic: {name}": "generic: only specific labels" for name in ("CCCP", "self-paced")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some convex tasks end at max_iter
        results = {(name, 0): data.result(0, name, fit) for name, fit in _method_rows(data, 0).items()}
    add_rows(page, results, rivals)
    page.notes.append(NOTES)
    return page


NOTES = """\
A smooth start needs sums over all labellings, which graphs with cycles lack, so it does not apply here. Generic \
labels as in Kumar (2013): half of the training photos name objects and have 'some ground' for the rest, half name \
grounds and have 'some object'. 'Only specific labels' leaves generic regions out. 'CCCP (latent SVM)' counts errors \
on known regions alone; the other rows with 20 % of the masks count errors against imputed labels, too \
(`IterativeLatentSVM`)."""


def _method_rows(data: Any, fold: int) -> dict[str, Callable[[], Any]]:
    train = data.train(fold)
    n = round(0.2 * len(train))
    masks = _generic_masks(data, train)
    return {
        "20 %: masks alone": lambda: fit_all(data, train[:n]),
        "generic: only specific labels": lambda: _fit_specific(data, train, masks),
        "generic: CCCP": lambda: _fit_generic(data, train, masks),
        "generic: self-paced": lambda: _fit_generic(data, train, masks, pace=SelfPaced()),
        "20 %: masks and image labels": lambda: fit_weak(data, train, n, has_boxes=False),
        "20 %: masks and boxes": lambda: fit_weak(data, train, n, has_lists=False),
        "20 %: CCCP (latent SVM)": lambda: fit_weak(data, train, n, learner=LatentSVM, max_iter=MANY),
        "20 %: self-paced": lambda: fit_weak(data, train, n, pace=SelfPaced(), max_iter=MANY),
    }


def _generic_masks(data: Any, train: np.ndarray) -> list[np.ndarray]:
    """Masks of which every other has grounds, or objects, by their generic name alone."""
    ground = np.isin(np.arange(len(NAMES)), [NAMES.index(name) for name in GROUND])
    masks = []
    for place, i in enumerate(train):
        mask = data.masks[i]
        is_ground = (mask >= 0) & ground[np.maximum(mask, 0)]
        is_object = (mask >= 0) & ~is_ground
        own = np.where(is_ground, len(NAMES), mask) if place % 2 else np.where(is_object, len(NAMES) + 1, mask)
        masks.append(own)
    return masks


def _fit_specific(data: Any, train: np.ndarray, masks: list[np.ndarray]) -> Any:
    """A structured SVM of the regions with a specific label."""
    specific = [np.where(mask < len(NAMES), mask, VOID) for mask in masks]
    kept = [place for place, mask in enumerate(specific) if (mask >= 0).any()]
    X, y, _ = label_classes(data.graphs[train[kept]], [specific[place] for place in kept], None, None, data.classes)
    known = complete_images(y, [0] * len(kept))
    return StructuredSVM(class_problem(data.classes, "area"), C=FACTOR * known.size, tol=TOL, verbose=0).fit(
        X[known], y[known]
    )


def _fit_generic(data: Any, train: np.ndarray, masks: list[np.ndarray], **settings: Any) -> Any:
    """All regions, the generic ones with a set of labels each; it begins with the model of specific labels."""
    X, y, _ = label_classes(data.graphs[train], masks, None, None, data.classes)
    start = _fit_specific(data, train, masks)
    problem = class_problem(data.classes, "area")
    learner = LatentSVM(
        problem, C=FACTOR * len(train), tol=TOL, max_iter=MANY, init=start.weights_, verbose=0, **settings
    )
    return learner.fit(X, y)

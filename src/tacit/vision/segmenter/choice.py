"""The problem that is learned, the weight of its loss, chosen by cross-validation, and how good masks are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners import StructuredSVM
from tacit.problems import Regions
from tacit.vision.regions.features import REGION_SCALES
from tacit.vision.regions.graphs import RegionGraphs

CHOICES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Values of C that are compared."""

FOLDS = 5

MIN_MASKS = 3
"""With fewer nothing is compared."""

SEGMENTER_LABELS = (0, 1)
"""Background and object."""


def region_problem(graphs: RegionGraphs, weak: float = 1.0) -> Regions:
    """What a Segmenter learns: background and object, the features of `tacit.regions` at their scales, others at 1."""
    is_ours = graphs.nodes.values.shape[1] == len(REGION_SCALES)
    return Regions(labels=SEGMENTER_LABELS, weak=weak, scales=REGION_SCALES if is_ours else None)


def choose_C(app: Any, graphs: RegionGraphs, y: Any, truths: Sequence[Array]) -> tuple[float, tuple[float, float]]:
    """The C for these masks, and the accuracy and IoU that it had on masks that were held out.

    With fewer than `MIN_MASKS` masks ``C`` is as much as there are masks, so that each weighs 1. With more it is one of
    `CHOICES`: of all whose IoU in cross-validation is within one standard error of the best, the nearest to the number
    of masks, by their ratio (see `nearest_good`). A number is taken as it is.
    """
    n = len(graphs)
    candidates = CHOICES if isinstance(app.C, str) else (float(app.C),)
    if n < MIN_MASKS:
        return (float(n) if isinstance(app.C, str) else float(app.C)), (np.nan, np.nan)
    folds = np.array_split(np.random.default_rng(app.random_state).permutation(n), min(FOLDS, n))
    scores = np.empty((len(candidates), n, 2))
    for C, own in zip(candidates, scores, strict=True):
        for fold in folds:
            rest = np.setdiff1d(np.arange(n), fold)
            model = StructuredSVM(region_problem(graphs), C=C, tol=1e-2, verbose=0, n_jobs=app.n_jobs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a poor C may not converge, and is not chosen
                model.fit(graphs[rest], y[rest])
            for i, found in zip(fold, graphs[fold].paint(model.predict(graphs[fold])), strict=True):
                own[i] = share_right([found == 1], [truths[i]])
    best = nearest_good(np.log(candidates), scores[:, :, 1], float(np.log(n)))
    accuracy, iou = scores[best].mean(axis=0)
    return candidates[best], (float(accuracy), float(iou))


def count_filled(C: float, n_masks: int, n_filled: int) -> float:
    """The C for masks and filled boxes, from the one that `choose_C` found for the masks alone.

    It is the geometric mean of that and of how many images there are of both kinds. C grows with the number of images
    that are learned from: for masks alone it is near to their number. A filled box is an image more, though not as good
    as a mask: so half of the way, by ratios. Boxes that fewer than `MIN_MASKS` masks filled are too rough to count.

    >>> count_filled(3.0, 5, 22), count_filled(2.0, 2, 25)
    (9.0, 2.0)
    """
    return float(np.sqrt(C * (n_masks + n_filled))) if n_masks >= MIN_MASKS and n_filled else C


def nearest_good(values: Any, scores: Array, wished: float) -> int:
    """Which of the values is nearest to the wished one among those that are as good as the best.

    ``scores`` has a row per value and a column per image. As good is one whose mean falls short of the best by no more
    than the standard error of the difference, image by image: on five masks chance decides the rest.

    >>> nearest_good([0, 1, 2], np.array([[0.1, 0.2, 0.1], [0.8, 0.6, 0.9], [0.8, 0.7, 0.9]]), 0.9)
    1
    """
    best = int(np.argmax(scores.mean(axis=1)))
    short = scores[best] - scores
    error = short.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    good = np.flatnonzero(short.mean(axis=1) <= error)
    return int(good[np.argmin(np.abs(np.asarray(values)[good] - wished))])


def share_right(found: Sequence[Array], truths: Sequence[Array]) -> tuple[float, float]:
    """Mean share of right pixels, and mean intersection over union (1 where both masks are empty).

    >>> share_right([np.array([[True, False]])], [np.array([[True, True]])])
    (0.5, 0.5)
    """
    accuracy = [float((own == truth).mean()) for own, truth in zip(found, truths, strict=True)]
    iou = [
        float((own & truth).sum() / either) if (either := int((own | truth).sum())) else 1.0
        for own, truth in zip(found, truths, strict=True)
    ]
    return float(np.mean(accuracy)), float(np.mean(iou))

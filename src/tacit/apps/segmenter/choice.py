"""The weight of the loss, chosen by cross-validation on the images with masks; and how good masks are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.learners import StructuredSVM
from tacit.problems import Regions
from tacit.region_graphs import RegionGraphs

CHOICES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Values of C that are compared."""

DEFAULT_C = 3.0
"""Where there are too few masks to compare anything."""

FOLDS = 5
MIN_MASKS = 3


def choose_C(app: Any, graphs: RegionGraphs, y: Any, truths: Sequence[Array]) -> tuple[float, tuple[float, float]]:
    """The C with the best mean IoU on masks that were held out, and the accuracy and IoU that it had there.

    Of choices that are as good within a tenth of a point the smallest is taken. A number is taken as it is.
    """
    n = len(graphs)
    candidates = CHOICES if isinstance(app.C, str) else (float(app.C),)
    if n < MIN_MASKS:
        return (DEFAULT_C if isinstance(app.C, str) else float(app.C)), (np.nan, np.nan)
    folds = np.array_split(np.random.default_rng(app.random_state).permutation(n), min(FOLDS, n))
    table = []
    for C in candidates:
        found: list[Any] = [None] * n
        for fold in folds:
            rest = np.setdiff1d(np.arange(n), fold)
            model = StructuredSVM(Regions(labels=(0, 1)), C=C, tol=1e-2, verbose=0, n_jobs=app.n_jobs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a poor C may not converge, and is not chosen
                model.fit(graphs[rest], y[rest])
            for i, own in zip(fold, graphs[fold].paint(model.predict(graphs[fold])), strict=True):
                found[i] = own == 1
        table.append(share_right(found, truths))
    scores = np.array([iou for _, iou in table])
    best = int(np.argmax(scores >= scores.max() - 1e-3))
    return candidates[best], table[best]


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

"""One model from masks and weak labels: boxes are filled in first, by a model that sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners import IterativeLatentSVM, StructuredSVM
from tacit.vision.regions import RegionLabels
from tacit.vision.regions.graphs import RegionGraphs
from tacit.vision.segmenter.choice import region_problem
from tacit.vision.segmenter.fill_boxes import FilledBoxes, boxed_images, fill_boxes


def learn_regions(
    graphs: RegionGraphs,
    y: RegionLabels,
    masks: Sequence[Any],
    boxes: Array | None,
    C: float,
    weak: float,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> tuple[StructuredSVM | IterativeLatentSVM, FilledBoxes | None]:
    """The model of a Segmenter, and the boxes that were filled in for it, None where there are none.

    ``C`` is the weight of the loss on images with complete masks, ``weak`` how much all others weigh together beside
    them.
    """
    shared: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose, "tol": 1e-2}
    is_known = np.array(
        [mask is not None and bool((np.asarray(own) >= 0).all()) for own, mask in zip(y, masks, strict=True)]
    )
    if is_known.all() or not weak:
        known = np.flatnonzero(is_known)
        return StructuredSVM(region_problem(graphs), C=C, **shared).fit(graphs[known], y[known]), None
    if boxes is None or not boxed_images(masks, boxes).any():
        total = C * (1 + weak)  # so that masks weigh as much as they do alone
        return IterativeLatentSVM(region_problem(graphs, weak), C=total, **shared).fit(graphs, y), None
    filled = fill_boxes(graphs, y, masks, boxes, n_jobs=n_jobs, verbose=verbose)
    each = weak * is_known.sum() / (~is_known).sum()
    weights = np.where(boxed_images(masks, boxes), each, 1.0)
    is_open = np.array([bool((np.asarray(own) < 0).any()) for own in filled.y])
    weak_of_open = each * is_open.sum() / (~is_open).sum()  # so that each of them has the weight of a filled box
    total = C * float(np.where(is_open, each, weights).sum()) / int(is_known.sum())
    problem = region_problem(graphs, weak_of_open)
    learner = IterativeLatentSVM if is_open.any() else StructuredSVM
    return learner(problem, C=total, **shared).fit(graphs, filled.y, sample_weight=weights), filled

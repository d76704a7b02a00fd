"""Masks inside of boxes, by a model that sees the box: what other models learn from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, is_positive, number, numbers, shorten
from tacit.learners import IterativeLatentSVM
from tacit.problems import Regions
from tacit.vision.regions import RegionLabels
from tacit.vision.regions.graphs import RegionGraphs
from tacit.vision.regions.inside_boxes import BoxedRegions, regions_in_boxes
from tacit.vision.regions.weak import MIN_INSIDE, MIN_MASKS, WIDEST_IN_BOX, tightest_box
from tacit.vision.segmenter.choice import SEGMENTER_LABELS

QUANTILES = (0.1, 0.9)
"""Of the shares that masks cover of their tightest boxes, the limits for other boxes: wider than where no model sees
the box (`tacit.weak_labels`)."""


class FilledBoxes(NamedTuple):
    """Boxes that are filled in.

    Attributes
    ----------
    y : what was known before, now with a label for every region of the images with a box
    model : the learner of regions in boxes
    limits : (2,) the least and the largest share of the regions in a box that the object covers
    images : which images the model learned from
    """

    y: RegionLabels
    model: IterativeLatentSVM
    limits: Array
    images: Array


def fill_boxes(
    graphs: RegionGraphs,
    y: Any,
    masks: Any,
    boxes: Any,
    C: float | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> FilledBoxes:
    """Label the regions of images with a box, learning from images with masks what boxes look like inside.

    An image with a mask has a box, too: the tightest around the mask. So a model can be learned of features that exist
    only where a box is known (`tacit.regions_in_boxes`), features that the learner of images without boxes must do
    without (Vapnik & Vashist 2009 call them privileged). It is an `IterativeLatentSVM` of the regions inside, the masks
    known and the others hidden; all boxes together weigh as much as all masks. The object covers as much of a box as
    masks cover of theirs, within the first and the last decile; from 20 % to 95 % where there are fewer than three.

    Parameters
    ----------
    graphs : of the images, as `tacit.regions` makes them
    y : what is known of the regions, as `tacit.weak_labels` makes it
    masks : per image a table (height, width), or None
    boxes : (n, 4) x_min, y_min, x_max, y_max; NaN for an image without one. Those of images with masks are not used
    C : weight of the loss on the masks; None for as much as there are masks, so that each weighs 1
    n_jobs, verbose : as in `tacit.LatentSVM`

    >>> import tacit
    >>> image = np.zeros((40, 60, 3)); image[10:30, 20:40] = (0.6, 0.3, 0.1)
    >>> mask = image[:, :, 0] > 0
    >>> graphs = tacit.regions([image, image], "slic", n_segments=40)
    >>> boxes = np.array([[np.nan] * 4, [18, 8, 42, 32]])
    >>> y = tacit.weak_labels(graphs, [mask, None], boxes)
    >>> filled = fill_boxes(graphs, y, [mask, None], boxes)
    >>> bool((graphs.paint(filled.y)[1] == mask).mean() > 0.9)
    True
    """
    if C is not None:
        number("C", C, "a positive number, or None", is_positive)
    y = y if isinstance(y, RegionLabels) else RegionLabels(y)
    table = numbers("boxes", boxes, "four numbers per image").astype(np.float64)
    if table.shape != (len(graphs), 4):
        raise ValueError(f"boxes have shape {table.shape} for {len(graphs)} images; give four numbers each")
    if not has_length(masks) or not len(graphs) == len(y) == len(masks):
        raise ValueError(f"{len(graphs)} images, labels of {len(y)}, and masks {shorten(masks)}; give one each")
    is_open = boxed_images(masks, table)
    if not is_open.any():
        raise ValueError("no image without a mask has a box, so there is nothing to fill in")
    is_drawn = np.array([_is_drawn(own, mask) for own, mask in zip(y, masks, strict=True)])
    if not is_drawn.any():
        raise ValueError("no image has a complete mask with an object in it, and boxes are filled in like those")
    for i in np.flatnonzero(is_drawn):
        table[i] = tightest_box(np.asarray(masks[i]) > 0)
    images = np.flatnonzero(is_open | is_drawn)
    boxed = regions_in_boxes(graphs[images], table[images])
    labels = [
        np.full(places.size, -1) if is_open[i] else np.asarray(y[i])[places]
        for i, places in zip(images, boxed.places, strict=True)
    ]
    limits = _limits(boxed, labels)
    problem = Regions(labels=SEGMENTER_LABELS, scales=boxed.scales)
    total = 2.0 * (int(is_drawn.sum()) if C is None else C)  # so that masks weigh as much as they do alone
    model = IterativeLatentSVM(problem, C=total, tol=1e-2, n_jobs=n_jobs, verbose=verbose)
    model.fit(boxed.graphs, _within(labels, limits))
    return FilledBoxes(_replaced(graphs, y, images, boxed, labels, model, limits), model, limits, images)


def fill_more_boxes(
    model: IterativeLatentSVM, limits: Array, graphs: RegionGraphs, y: RegionLabels, boxes: Any
) -> RegionLabels:
    """Label the regions of boxes by a model that `fill_boxes` learned; boxes of which y knows a region inside, from a
    mask or a stroke, stay as they are."""
    table = numbers("boxes", boxes, "four numbers per image").astype(np.float64)
    shares = graphs.shares_inside(table)
    is_unknown = [
        bool((np.asarray(own)[inside >= MIN_INSIDE] < 0).all()) for own, inside in zip(y, shares, strict=True)
    ]
    images = np.flatnonzero(np.logical_and(is_unknown, ~np.isnan(table).any(axis=1)))
    if not images.size:
        return y
    boxed = regions_in_boxes(graphs[images], table[images])
    labels = [np.full(places.size, -1) for places in boxed.places]
    return _replaced(graphs, y, images, boxed, labels, model, limits)


def boxed_images(masks: Any, boxes: Array) -> Array:
    """Which images have a box and no mask."""
    return np.array([mask is None for mask in masks]) & ~np.isnan(boxes).any(axis=1)


def _is_drawn(labels: Any, mask: Any) -> bool:
    """Whether a mask is complete and shows an object that regions can show."""
    own = np.asarray(labels)
    return mask is not None and bool((own >= 0).all() and (own > 0).any())


def _limits(boxed: BoxedRegions, labels: list[Array]) -> Array:
    covered = [
        float(graph.areas[own == 1].sum() / graph.areas.sum())
        for graph, own in zip(boxed.graphs, labels, strict=True)
        if (own >= 0).all()
    ]
    return np.quantile(covered, QUANTILES) if len(covered) >= MIN_MASKS else np.array(WIDEST_IN_BOX)


def _within(labels: list[Array], limits: Array) -> RegionLabels:
    rows = np.array([limits if (own < 0).any() else [np.nan, np.nan] for own in labels])
    return RegionLabels(labels, {1: rows})


def _replaced(
    graphs: RegionGraphs,
    y: RegionLabels,
    images: Array,
    boxed: BoxedRegions,
    labels: list[Array],
    model: IterativeLatentSVM,
    limits: Array,
) -> RegionLabels:
    """The same labels, those of images whose boxes are open given by the model."""
    is_open = [bool((own < 0).any()) for own in labels]
    found = boxed.spread(model.impute(boxed.graphs, _within(labels, limits)), graphs.lengths[images])
    complete = [np.asarray(own) for own in y]
    limited = {label: pair.copy() for label, pair in y.limits.items()}
    for i, own, is_new in zip(images, found, is_open, strict=True):
        if is_new:
            complete[i] = own
            for pair in limited.values():
                pair[i] = np.nan
    return RegionLabels(complete, limited)

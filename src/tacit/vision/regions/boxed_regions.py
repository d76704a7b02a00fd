"""The regions inside of boxes as graphs of their own, described beside the box, and boxes that are filled in by a model
which sees them: what other models learn from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, is_positive, number, shorten
from tacit.data.ragged import Ragged
from tacit.learners import IterativeLatentSVM
from tacit.vision.regions.features import (
    FAR,
    OWN_FEATURES,
    REGION_FEATURES,
    REGION_SCALES,
    geodesic_distances,
    likeness_kernels,
    spots,
    spread_by_colour,
    to_unit,
)
from tacit.vision.regions.graphs import RegionGraph, RegionGraphs, read_image_boxes
from tacit.vision.regions.labels import (
    MIN_INSIDE,
    MIN_MASKS,
    OBJECT_LABELS,
    WIDEST_IN_BOX,
    RegionLabels,
    refuse_empty_box,
    tightest_box,
)
from tacit.vision.regions.problem import Regions

IMAGE_SCALE = 0.5
"""How much features of the image count beside those of the box: a box tells more of where the object is."""
MAX_PLACE = 1e9
"""Sides of a box are nearer than this, in pixels."""
QUANTILES = (0.1, 0.9)
"""Of the shares that masks cover of their tightest boxes, the limits for other boxes: wider than where no model sees
the box (`tacit.weak_labels`)."""
MAX_REACH = 1.5
"""Places outside of a box count as no further than this; the box reaches from −1 to 1."""
NEAR_BOX = 0.3
"""Deviation of the distance, in halves of a box, at which what is outside still counts as its surroundings."""
LEAST_LIKENESS = 1e-3
"""Added to likenesses before their ratio is taken: two regions that are like nothing have a ratio of 1."""


class BoxedRegions(NamedTuple):
    """What is inside of the boxes of images.

    Attributes
    ----------
    graphs : per image the regions inside, with the features that they had, then those of the box
    places : per image, which of its regions these are
    scales : per feature, how much it should count (`scales` of `tacit.problems.Regions`)
    """

    graphs: RegionGraphs
    places: Ragged
    scales: Array

    def spread(self, labels: Any, lengths: Array) -> list[Array]:
        """Labels of all regions of the images from labels of those inside: 0 outside."""
        spread = []
        for places, own, length in zip(self.places, labels, lengths, strict=True):
            whole = np.zeros(length, dtype=np.int64)
            whole[places] = own
            spread.append(whole)
        return spread


def regions_in_boxes(graphs: RegionGraphs, boxes: Any) -> BoxedRegions:
    """Cut graphs of images down to the regions inside of a box each, and describe these beside the box, too.

    A region is inside if at least half of its pixels are. Besides the features that it had, it gets its place in the
    box and how much of its border is with the outside; if the features are those of `tacit.regions`, also how alike it
    is to what is outside, which is surely background, and to the middle of the box. None of this is known where there
    is no box: a model of it can fill in boxes (`tacit.vision.segmenter.fill_boxes`), and nothing else.

    Parameters
    ----------
    graphs : of the images, as `tacit.regions` makes them
    boxes : (n, 4) x_min, y_min, x_max, y_max, one for every image

    >>> import tacit
    >>> image = np.zeros((40, 60, 3)); image[10:30, 20:40] = (0.6, 0.3, 0.1)
    >>> graphs = tacit.regions(image, "slic", n_segments=20)
    >>> boxed = regions_in_boxes(graphs, [[18, 8, 42, 32]])
    >>> bool(boxed.graphs.lengths[0] < graphs.lengths[0]), boxed.scales.size == boxed.graphs.nodes.values.shape[1]
    (True, True)
    """
    table = read_image_boxes(boxes, len(graphs))
    shares = graphs.shares_inside(table)
    missing = np.flatnonzero(np.isnan(table).any(axis=1))
    if missing.size:
        raise ValueError(f"image {missing[0]} has no box; leave it out: graphs[images], boxes[images]")
    endless = np.flatnonzero(~(np.abs(table) < MAX_PLACE).all(axis=1))
    if endless.size:
        raise ValueError(f"the box of image {endless[0]} is {table[endless[0]].tolist()}; its sides are pixels")
    d = graphs.nodes.values.shape[1]
    is_coloured = d == len(REGION_FEATURES)
    assert graphs.maps is not None  # shares_inside needs them
    parts, places = [], []
    for i, (graph, cut, box, share) in enumerate(zip(graphs, graphs.maps, table, shares, strict=True)):
        inside = np.asarray(share) >= MIN_INSIDE
        refuse_empty_box(i, box, inside)
        values = np.hstack([graph.values, describe_in_box(graph, cut, box, inside, is_coloured)])
        is_kept = inside[graph.edges].all(axis=1)
        number = np.cumsum(inside) - 1
        parts.append((values[inside], graph.areas[inside], number[graph.edges[is_kept]], graph.edge_values[is_kept]))
        places.append(np.flatnonzero(inside))
    lengths = [own.size for own in places]
    of_image = np.array(REGION_SCALES) if is_coloured else np.ones(d)
    scales = np.concatenate([IMAGE_SCALE * of_image, np.ones(parts[0][0].shape[1] - d)])
    boxed = RegionGraphs.from_list(parts)
    return BoxedRegions(boxed, Ragged(np.concatenate(places), np.cumsum([0, *lengths])), scales)


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
    y = RegionLabels.of(y)
    table = read_image_boxes(boxes, len(graphs))
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
    problem = Regions(labels=OBJECT_LABELS, scales=boxed.scales)
    total = 2.0 * (int(is_drawn.sum()) if C is None else C)  # so that masks weigh as much as they do alone
    model = IterativeLatentSVM(problem, C=total, tol=1e-2, n_jobs=n_jobs, verbose=verbose)
    model.fit(boxed.graphs, _within(labels, limits))
    return FilledBoxes(_replaced(graphs, y, images, boxed, labels, model, limits), model, limits, images)


def fill_more_boxes(
    model: IterativeLatentSVM, limits: Array, graphs: RegionGraphs, y: RegionLabels, boxes: Any
) -> RegionLabels:
    """Label the regions of boxes by a model that `fill_boxes` learned; boxes of which y knows a region inside, from a
    mask or a stroke, stay as they are."""
    table = read_image_boxes(boxes, len(graphs))
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


def describe_in_box(graph: RegionGraph, regions: Array, box: Array, inside: Array, is_coloured: bool) -> Array:
    """Describe the regions of an image beside a box, a row each.

    Parameters
    ----------
    graph : the regions and their neighbours
    regions : (height, width) the region of every pixel
    box : x_min, y_min, x_max, y_max
    inside : per region, whether it counts as inside; all others are background
    is_coloured : whether the features begin with those of `tacit.regions`, so that colours and textures are known

    >>> graph = RegionGraph(np.zeros((2, 1)), np.array([8.0, 8.0]), np.array([[0, 1]]), np.ones((1, 1)))
    >>> cut = np.repeat([[0, 0, 1, 1]], 4, axis=0)
    >>> table = describe_in_box(graph, cut, np.array([2, 0, 4, 4]), np.array([False, True]), is_coloured=False)
    >>> table[:, 6].tolist()  # the share of each region inside
    [0.0, 1.0]
    """
    place = _place(graph.areas, regions, box)
    parts = [place, _borders(graph, inside)]
    if is_coloured:
        parts += _likeness(graph, inside, place[:, 0], place[:, 1])
    return np.hstack(parts)


def _place(areas: Array, regions: Array, box: Array) -> Array:
    """Where regions are in the box, −1 to 1 either way: middle, share inside, ends, size, and nearness to spots."""
    n, flat = len(areas), regions.ravel()
    left, top, right, bottom = (float(side) for side in box)
    rows, columns = (part.ravel() for part in np.mgrid[: regions.shape[0], : regions.shape[1]])
    across = 2 * (columns + 0.5 - left) / (right - left) - 1
    down = 2 * (rows + 0.5 - top) / (bottom - top) - 1
    covered = (np.abs(across) < 1) & (np.abs(down) < 1)
    share = np.bincount(flat, covered, n) / areas
    ends = []
    for place in (across, down):
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(low, flat, place)
        np.maximum.at(high, flat, place)
        ends += [low, high]
    size = 0.5 * np.log(areas * np.maximum(share, 0.01) / max(covered.sum(), 1))
    near_x, near_y = (np.clip(place, -MAX_REACH, MAX_REACH) for place in (across, down))
    x, y = (np.bincount(flat, place, n) / areas for place in (near_x, near_y))
    found = [x, y, x**2, y**2, x * y, np.hypot(x, y), share, *ends, ends[1] - ends[0], ends[3] - ends[2], size]
    return np.column_stack([*found, *(np.bincount(flat, spot, n) / areas for spot in spots(near_x, near_y))])


def _borders(graph: RegionGraph, inside: Array) -> Array:
    """Every feature of pairs, summed over the neighbours outside: relative to the whole border, and to the size."""
    n = len(graph.areas)
    shared, whole = np.zeros((n, graph.edge_values.shape[1])), np.zeros(n)
    for own, other in (graph.edges.T, graph.edges.T[::-1]):
        is_out = ~inside[other]
        np.add.at(shared, own[is_out], graph.edge_values[is_out])
        np.add.at(whole, own, graph.edge_values[:, 0])
    width = np.sqrt(graph.areas / graph.areas.sum())
    return np.hstack([shared / np.maximum(whole, 1e-9)[:, None], shared / width[:, None]])


def _likeness(graph: RegionGraph, inside: Array, x: Array, y: Array) -> list[Array]:
    """How alike a region is to what is outside of the box and to the middle of the box: by colour and texture, and by
    ways through neighbours (Wei et al. 2012; Yang et al. 2013, with the box in place of the border of the image)."""
    own = np.asarray(graph.values[:, :OWN_FEATURES], dtype=np.float64)
    colour = own[:, :3]
    outside = _shares(graph.areas * ~inside)
    middle = _shares(graph.areas * inside * np.exp(-2 * (x**2 + y**2)))
    gap = np.maximum(np.abs(x) - 1, 0) ** 2 + np.maximum(np.abs(y) - 1, 0) ** 2
    around = _shares(outside * np.exp(-0.5 * gap / NEAR_BOX**2))
    witnesses = np.column_stack([middle, _shares(graph.areas * inside), outside, around])
    alike, distance = likeness_kernels(own)
    columns = []
    for kernel in alike:
        to_middle, to_box, to_outside, to_around = np.log(kernel @ witnesses + LEAST_LIKENESS).T
        columns += [to_middle - to_outside, to_box - to_outside, to_outside, to_middle - to_around]
    is_out = np.flatnonzero(~inside)
    nearest = np.sort(distance[:, is_out], axis=1)[:, : max(1, is_out.size // 8)]
    nearest = nearest if is_out.size else np.full((len(x), 1), FAR)
    columns += [nearest.mean(axis=1), nearest[:, 0], distance @ outside, distance @ middle]
    for mean in (outside @ colour, middle @ colour):
        columns += [np.linalg.norm(colour - mean, axis=1), *(colour - mean).T]
    return [np.column_stack(columns), _connections(distance, graph.edges, inside, middle, outside, np.hypot(x, y))]


def _connections(distance: Array, edges: Array, inside: Array, middle: Array, outside: Array, radius: Array) -> Array:
    """Lengths of ways to the outside and to the middle, and how far both spread over the graph."""
    ways = geodesic_distances(distance[edges[:, 0], edges[:, 1]], edges, len(distance))
    seeds = np.column_stack([~inside, inside & (radius < 0.5), outside, middle]).astype(np.float64)
    reached = spread_by_colour(distance, edges) @ seeds
    ratio = np.log((reached[:, 3] + 1e-6) / (reached[:, 2] + 1e-6))
    to_outside = ways[:, ~inside].min(axis=1, initial=FAR)
    return np.column_stack([to_outside, ways @ middle, *(to_unit(column) for column in reached.T), ratio])


def _shares(weights: Array) -> Array:
    """Weights of sum 1; zeros stay zeros."""
    return np.asarray(weights / max(float(weights.sum()), 1e-12))

"""Regions inside boxes as separate graphs, with features relative to the box; a model of these fills in boxes, and
other models learn from the result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, is_positive, number, shorten
from tacit.data.ragged import Ragged
from tacit.learners import IterativeLatentSVM
from tacit.vision.regions import features
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
"""Scale of features of the image beside those of the box, which say more about where the object is."""
MAX_COORDINATE = 1e9
"""Limit of the coordinates of a box, in pixels."""
QUANTILES = (0.1, 0.9)
"""Of the shares that masks cover of their tightest boxes, the limits for other boxes: wider than those of
`tacit.weak_labels`, which serve models without features of the box."""
MAX_REACH = 1.5
"""Coordinates outside a box are clipped to this; the box reaches from −1 to 1."""
NEAR_BOX = 0.3
"""Standard deviation of the distance, in halves of a box, that defines the surroundings of the box."""
MIN_SIMILARITY = 1e-3
"""Added to similarities before their ratio is taken: regions that are similar to nothing have a ratio of 1."""


class BoxedRegions(NamedTuple):
    """The regions inside the boxes of images.

    Attributes
    ----------
    graphs : per image the regions inside, with their features, then those of the box
    members : per image, which of its regions these are
    scales : per feature, the factor of its values (`scales` of `tacit.problems.Regions`)
    """

    graphs: RegionGraphs
    members: Ragged
    scales: Array

    def label_all_regions(self, labels: Any, lengths: Array) -> list[Array]:
        """Labels of all regions of the images, from labels of those inside: 0 outside."""
        complete = [np.zeros(length, dtype=np.int64) for length in lengths]
        for whole, members, own in zip(complete, self.members, labels, strict=True):
            whole[members] = own
        return complete


def regions_in_boxes(graphs: RegionGraphs, boxes: Any) -> BoxedRegions:
    """Restrict graphs of images to the regions inside a box each, and add features relative to the box.

    A region is inside if at least half of its pixels are. The new features are its location in the box and the share of
    its border with the outside. If the features are those of `tacit.regions`, its similarity to the outside, which is
    background for sure, and to the middle of the box are added. A model of these features can only fill in boxes
    (`tacit.vision.segmentation.segmenter.fill_boxes`): images without a box lack them.

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
    if not isinstance(graphs, RegionGraphs):
        raise TypeError(f"graphs must be RegionGraphs, which tacit.regions makes, got {shorten(graphs)}")
    table = read_image_boxes(boxes, len(graphs))
    shares = graphs.shares_inside(table)
    missing = np.flatnonzero(np.isnan(table).any(axis=1))
    if missing.size:
        raise ValueError(f"image {missing[0]} lacks a box; select images with a box: graphs[images], boxes[images]")
    endless = np.flatnonzero(~(np.abs(table) < MAX_COORDINATE).all(axis=1))
    if endless.size:
        raise ValueError(f"the box of image {endless[0]} must be in pixels, got {table[endless[0]].tolist()}")
    d = graphs.nodes.values.shape[1]
    is_coloured = d == len(features.REGION_FEATURES)
    assert graphs.maps is not None  # shares_inside needs them
    parts, members = [], []
    for i, (graph, cut, box, share) in enumerate(zip(graphs, graphs.maps, table, shares, strict=True)):
        inside = np.asarray(share) >= MIN_INSIDE
        refuse_empty_box(i, box, inside)
        values = np.hstack([graph.values, describe_in_box(graph, cut, box, inside, is_coloured)])
        is_kept = inside[graph.edges].all(axis=1)
        number = np.cumsum(inside) - 1
        parts.append((values[inside], graph.areas[inside], number[graph.edges[is_kept]], graph.edge_values[is_kept]))
        members.append(np.flatnonzero(inside))
    offsets = np.cumsum([0, *(own.size for own in members)])
    of_image = np.array(features.REGION_SCALES) if is_coloured else np.ones(d)
    scales = np.concatenate([IMAGE_SCALE * of_image, np.ones(parts[0][0].shape[1] - d)])
    return BoxedRegions(RegionGraphs.from_list(parts), Ragged(np.concatenate(members), offsets), scales)


class FilledBoxes(NamedTuple):
    """Boxes that are filled in.

    Attributes
    ----------
    y : the weak labels, with a label for every region of the images with a box
    model : the learner of regions in boxes
    limits : (2,) the least and the largest share of the regions in a box that the object covers
    images : the images that the model learned from
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
    """Label the regions of images with a box, by a model of boxes that is learned from images with masks.

    An image with a mask also has a box: the tightest around the mask. So a model can learn from features that exist
    only where a box is known (`tacit.regions_in_boxes`): privileged information (Vapnik & Vashist 2009), which images
    without boxes lack. It is an `IterativeLatentSVM` of the regions inside, the masks known and the others hidden; all
    boxes together have the factor of all masks. The share of a box that the object covers is between the first and the
    last decile of the masks' shares of their boxes; from 20 % to 95 % with fewer than three masks.

    Parameters
    ----------
    graphs : of the images, as `tacit.regions` makes them
    y : weak labels of the regions, as `tacit.weak_labels` makes them
    masks : per image a table (height, width), or None
    boxes : (n, 4) x_min, y_min, x_max, y_max; NaN for an image without one. Those of images with masks are not used
    C : factor of the loss on the masks; None for the number of masks
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
        raise ValueError(f"{len(graphs)} images need as many y and masks, got {len(y)} and {shorten(masks)}")
    is_open = boxed_images(masks, table)
    if not is_open.any():
        raise ValueError("boxes must have at least one box of an image without a mask")
    known = [np.asarray(own) if mask is not None else np.empty(0) for own, mask in zip(y, masks, strict=True)]
    is_drawn = np.array([bool((own >= 0).all() and (own > 0).any()) for own in known])
    if not is_drawn.any():
        raise ValueError("masks must have at least one complete mask with an object, to learn from")
    for i in np.flatnonzero(is_drawn):
        table[i] = tightest_box(np.asarray(masks[i]) > 0)
    images = np.flatnonzero(is_open | is_drawn)
    boxed = regions_in_boxes(graphs[images], table[images])
    labels = [
        np.full(members.size, -1) if is_open[i] else np.asarray(y[i])[members]
        for i, members in zip(images, boxed.members, strict=True)
    ]
    limits = _limits_of_masks(boxed, labels)
    problem = Regions(labels=OBJECT_LABELS, scales=boxed.scales)
    total = 2.0 * (int(is_drawn.sum()) if C is None else C)  # so that masks have the factor that they have alone
    model = IterativeLatentSVM(problem, C=total, tol=1e-2, n_jobs=n_jobs, verbose=verbose)
    model.fit(boxed.graphs, _with_limits(labels, limits))
    return FilledBoxes(_fill_labels(graphs, y, images, boxed, labels, model, limits), model, limits, images)


def fill_more_boxes(
    model: IterativeLatentSVM, limits: Array, graphs: RegionGraphs, y: RegionLabels, boxes: Any
) -> RegionLabels:
    """Label the regions of boxes by a model of `fill_boxes`, except boxes in which y has a known region."""
    table = read_image_boxes(boxes, len(graphs))
    shares = graphs.shares_inside(table)
    pairs = zip(y, shares, strict=True)
    is_unknown = [bool((np.asarray(own)[inside >= MIN_INSIDE] < 0).all()) for own, inside in pairs]
    images = np.flatnonzero(np.logical_and(is_unknown, ~np.isnan(table).any(axis=1)))
    if not images.size:
        return y
    boxed = regions_in_boxes(graphs[images], table[images])
    labels = [np.full(members.size, -1) for members in boxed.members]
    return _fill_labels(graphs, y, images, boxed, labels, model, limits)


def boxed_images(masks: Any, boxes: Array) -> Array:
    """Whether each image has a box and no mask."""
    return np.array([mask is None for mask in masks]) & ~np.isnan(boxes).any(axis=1)


def _limits_of_masks(boxed: BoxedRegions, labels: list[Array]) -> Array:
    covered = [
        float(graph.areas[own == 1].sum() / graph.areas.sum())
        for graph, own in zip(boxed.graphs, labels, strict=True)
        if (own >= 0).all()
    ]
    return np.quantile(covered, QUANTILES) if len(covered) >= MIN_MASKS else np.array(WIDEST_IN_BOX)


def _with_limits(labels: list[Array], limits: Array) -> RegionLabels:
    rows = np.array([limits if (own < 0).any() else [np.nan, np.nan] for own in labels])
    return RegionLabels(labels, {1: rows})


def _fill_labels(
    graphs: RegionGraphs,
    y: RegionLabels,
    images: Array,
    boxed: BoxedRegions,
    labels: list[Array],
    model: IterativeLatentSVM,
    limits: Array,
) -> RegionLabels:
    """The same labels, except for images with unknown regions in their boxes, which the model labels."""
    is_open = [bool((own < 0).any()) for own in labels]
    found = boxed.label_all_regions(model.impute(boxed.graphs, _with_limits(labels, limits)), graphs.lengths[images])
    complete = [np.asarray(own) for own in y]
    limited = {label: pair.copy() for label, pair in y.limits.items()}
    for i, own, is_new in zip(images, found, is_open, strict=True):
        if is_new:
            complete[i] = own
            for pair in limited.values():
                pair[i] = np.nan
    return RegionLabels(complete, limited)


def describe_in_box(graph: RegionGraph, regions: Array, box: Array, inside: Array, is_coloured: bool) -> Array:
    """Features of the regions of an image relative to a box, one row per region.

    Parameters
    ----------
    graph : the regions and their neighbours
    regions : (height, width) the region of every pixel
    box : x_min, y_min, x_max, y_max
    inside : per region, whether it counts as inside; all others are background
    is_coloured : whether the features begin with those of `tacit.regions`, hence with colours and textures

    >>> graph = RegionGraph(np.zeros((2, 1)), np.array([8.0, 8.0]), np.array([[0, 1]]), np.ones((1, 1)))
    >>> cut = np.repeat([[0, 0, 1, 1]], 4, axis=0)
    >>> table = describe_in_box(graph, cut, np.array([2, 0, 4, 4]), np.array([False, True]), is_coloured=False)
    >>> table[:, 6].tolist()  # the share of each region inside
    [0.0, 1.0]
    """
    location = _locate(graph.areas, regions, box)
    parts = [location, _share_borders(graph, inside)]
    if is_coloured:
        parts += _compare(graph, inside, location[:, 0], location[:, 1])
    return np.hstack(parts)


def _locate(areas: Array, regions: Array, box: Array) -> Array:
    """The location of regions in the box, from −1 to 1: middle, share inside, ends, size, and nearness to spots."""
    n, flat = len(areas), regions.ravel()
    left, top, right, bottom = (float(side) for side in box)
    rows, columns = (part.ravel() for part in np.mgrid[: regions.shape[0], : regions.shape[1]])
    across = 2 * (columns + 0.5 - left) / (right - left) - 1
    down = 2 * (rows + 0.5 - top) / (bottom - top) - 1
    covered = (np.abs(across) < 1) & (np.abs(down) < 1)
    share = np.bincount(flat, covered, n) / areas
    ends = []
    for at in (across, down):
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(low, flat, at)
        np.maximum.at(high, flat, at)
        ends += [low, high]
    size = 0.5 * np.log(areas * np.maximum(share, 0.01) / max(covered.sum(), 1))
    near_x, near_y = (np.clip(at, -MAX_REACH, MAX_REACH) for at in (across, down))
    x, y = (np.bincount(flat, at, n) / areas for at in (near_x, near_y))
    found = [x, y, x**2, y**2, x * y, np.hypot(x, y), share, *ends, ends[1] - ends[0], ends[3] - ends[2], size]
    return np.column_stack([*found, *(np.bincount(flat, spot, n) / areas for spot in features.spots(near_x, near_y))])


def _share_borders(graph: RegionGraph, inside: Array) -> Array:
    """Features of pairs, summed over the neighbours outside, relative to the whole border and to the size."""
    n = len(graph.areas)
    shared, whole = np.zeros((n, graph.edge_values.shape[1])), np.zeros(n)
    for own, other in (graph.edges.T, graph.edges.T[::-1]):
        is_out = ~inside[other]
        np.add.at(shared, own[is_out], graph.edge_values[is_out])
        np.add.at(whole, own, graph.edge_values[:, 0])
    width = np.sqrt(graph.areas / graph.areas.sum())
    return np.hstack([shared / np.maximum(whole, 1e-9)[:, None], shared / width[:, None]])


def _compare(graph: RegionGraph, inside: Array, x: Array, y: Array) -> list[Array]:
    """Similarity of a region to the outside and to the middle of the box: by colour and texture, and by paths through
    neighbours (Wei et al. 2012; Yang et al. 2013, with the box instead of the border of the image)."""
    own = np.asarray(graph.values[:, : features.OWN_FEATURES], dtype=np.float64)
    colour = own[:, :3]
    outside = _shares(graph.areas * ~inside)
    middle = _shares(graph.areas * inside * np.exp(-2 * (x**2 + y**2)))
    gap = np.maximum(np.abs(x) - 1, 0) ** 2 + np.maximum(np.abs(y) - 1, 0) ** 2
    around = _shares(outside * np.exp(-0.5 * gap / NEAR_BOX**2))
    amounts = np.column_stack([middle, _shares(graph.areas * inside), outside, around])
    witnesses = features.choose_witnesses(own, x, y, graph.areas)
    alike, distance = features.similarity_kernels(own, witnesses.chosen)
    columns = []
    for kernel in alike:
        sums = witnesses.sum_others(kernel, amounts)
        to_middle, to_box, to_outside, to_around = np.log(sums + MIN_SIMILARITY).T
        columns += [to_middle - to_outside, to_box - to_outside, to_outside, to_middle - to_around]
    is_out = features.thin_out(np.flatnonzero(~inside))
    nearest = np.sort(np.linalg.norm(colour[:, None, :] - colour[is_out], axis=2), axis=1)
    nearest = nearest[:, : max(1, is_out.size // 8)] if is_out.size else np.full((len(x), 1), features.FAR)
    sums = distance @ witnesses.gather(np.column_stack([outside, middle]))
    columns += [nearest.mean(axis=1), nearest[:, 0], *sums.T]
    for mean in (outside @ colour, middle @ colour):
        columns += [np.linalg.norm(colour - mean, axis=1), *(colour - mean).T]
    connected = _connections(colour, graph.edges, inside, middle, outside, np.hypot(x, y), witnesses)
    return [np.column_stack(columns), connected]


def _connections(
    colour: Array,
    edges: Array,
    inside: Array,
    middle: Array,
    outside: Array,
    radius: Array,
    witnesses: features.Witnesses,
) -> Array:
    """Lengths of paths to the outside and to the middle, and the manifold ranking of both."""
    paths = features.geodesic_distances(colour, edges, witnesses.chosen)
    to_outside = features.geodesic_distances(colour, edges, np.flatnonzero(~inside), nearest=True)
    seeds = np.column_stack([~inside, inside & (radius < 0.5), outside, middle]).astype(np.float64)
    reached = features.manifold_ranking(colour, edges)(seeds)
    ratio = np.log((reached[:, 3] + 1e-6) / (reached[:, 2] + 1e-6))
    to_middle = paths @ witnesses.gather(middle)[:, 0]
    return np.column_stack([to_outside, to_middle, *(features.to_unit(column) for column in reached.T), ratio])


def _shares(amounts: Array) -> Array:
    """Amounts divided by their sum; zeros stay zeros."""
    return np.asarray(amounts / max(float(amounts.sum()), 1e-12))

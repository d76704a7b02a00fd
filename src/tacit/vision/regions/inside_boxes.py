"""The regions inside of boxes as graphs of their own, described beside the box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import numbers
from tacit.data.ragged import Ragged
from tacit.vision.regions.box_features import describe_in_box
from tacit.vision.regions.features import REGION_FEATURES, REGION_SCALES
from tacit.vision.regions.graphs import RegionGraphs
from tacit.vision.regions.weak import MIN_INSIDE, refuse_empty_box

IMAGE_SCALE = 0.5
"""How much features of the image count beside those of the box: a box tells more of where the object is."""

MAX_PLACE = 1e9
"""Sides of a box are nearer than this, in pixels."""


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
    table = numbers("boxes", boxes, "four numbers per image").astype(np.float64)
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

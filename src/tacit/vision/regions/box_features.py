"""The numbers that describe a region of an image in which a box is drawn: where it lies in the box, and how it compares
with what is outside of the box, which is surely background."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from tacit.data.arrays import Array
from tacit.vision.regions.features import KERNELS, OWN_FEATURES, spots, spread_by_colour, squared_distances, to_unit
from tacit.vision.regions.graphs import RegionGraph

MAX_REACH = 1.5
"""Places outside of a box count as no further than this; the box reaches from −1 to 1."""

NEAR_BOX = 0.3
"""Deviation of the distance, in halves of a box, at which what is outside still counts as its surroundings."""

LEAST_LIKENESS = 1e-3
"""Added to likenesses before their ratio is taken: two regions that are like nothing have a ratio of 1."""

_FAR = 4.0
"""Of regions that no way joins, in differences of colour: more than from black to white."""


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
    colour, texture = own[:, :3], own[:, 6:]
    outside = _shares(graph.areas * ~inside)
    middle = _shares(graph.areas * inside * np.exp(-2 * (x**2 + y**2)))
    gap = np.maximum(np.abs(x) - 1, 0) ** 2 + np.maximum(np.abs(y) - 1, 0) ** 2
    around = _shares(outside * np.exp(-0.5 * gap / NEAR_BOX**2))
    witnesses = np.column_stack([middle, _shares(graph.areas * inside), outside, around])
    squares = {"colour": squared_distances(colour), "texture": squared_distances(texture)}
    squares["colour and texture"] = squares["colour"] + squares["texture"]
    columns = []
    for what, width in KERNELS:
        kernel = np.exp(-0.5 * squares[what] / width**2)
        np.fill_diagonal(kernel, 0.0)  # a region is no witness for itself
        to_middle, to_box, to_outside, to_around = np.log(kernel @ witnesses + LEAST_LIKENESS).T
        columns += [to_middle - to_outside, to_box - to_outside, to_outside, to_middle - to_around]
    distance = np.sqrt(squares["colour"])
    is_out = np.flatnonzero(~inside)
    nearest = np.sort(distance[:, is_out], axis=1)[:, : max(1, is_out.size // 8)]
    nearest = nearest if is_out.size else np.full((len(x), 1), _FAR)
    columns += [nearest.mean(axis=1), nearest[:, 0], distance @ outside, distance @ middle]
    for mean in (outside @ colour, middle @ colour):
        columns += [np.linalg.norm(colour - mean, axis=1), *(colour - mean).T]
    return [np.column_stack(columns), _ways(colour, distance, graph.edges, inside, middle, outside, np.hypot(x, y))]


def _ways(
    colour: Array, distance: Array, edges: Array, inside: Array, middle: Array, outside: Array, radius: Array
) -> Array:
    """Lengths of ways to the outside and to the middle, and how far both spread over the graph."""
    shape = (len(colour), len(colour))
    steps = np.maximum(distance[edges[:, 0], edges[:, 1]] - 0.05, 0) + 1e-4  # small differences are noise
    lengths = csgraph.shortest_path(
        sparse.csr_array((steps, (edges[:, 0], edges[:, 1])), shape=shape), method="D", directed=False
    )
    lengths = np.where(np.isfinite(lengths), lengths, _FAR)
    spread = spread_by_colour(distance, edges)
    seeds = np.column_stack([~inside, inside & (radius < 0.5), outside, middle]).astype(np.float64)
    reached = spread @ seeds
    ratio = np.log((reached[:, 3] + 1e-6) / (reached[:, 2] + 1e-6))
    to_outside = lengths[:, ~inside].min(axis=1, initial=_FAR)
    return np.column_stack([to_outside, lengths @ middle, *(to_unit(column) for column in reached.T), ratio])


def _shares(weights: Array) -> Array:
    """Weights of sum 1; zeros stay zeros."""
    return np.asarray(weights / max(float(weights.sum()), 1e-12))

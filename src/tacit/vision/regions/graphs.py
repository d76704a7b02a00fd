"""Images as graphs of regions (superpixels): features per region, contrast features per pair of neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.graphs import GraphTable
from tacit.data.parameters import entries, even_table, numbers, shape_of, shorten
from tacit.data.ragged import Ragged


class RegionGraph(NamedTuple):
    """One image: the features and areas of its regions, pairs of neighbours, and the features of these pairs."""

    values: Array
    areas: Array
    edges: Array
    edge_values: Array


class RegionGraphs(GraphTable):
    """Graphs of regions, one per image: X of `tacit.problems.Regions`, which `tacit.regions` makes from images.

    It behaves like a one-dimensional array of images: ``shape == (n,)``, an integer selects one `RegionGraph`, slices
    and index arrays a RegionGraphs. So `train_test_split` and `cross_val_score` accept it.

    Parameters
    ----------
    nodes : features per region: a `tacit.Ragged`, or a list of tables
    areas : the area of every region, image after image, positive; None for 1 each
    edges : (pairs, 2) neighbours, numbered within their image, each pair once; image after image; None for none
    edge_values : (pairs, q) contrast features of the pairs, not negative; None for a constant 1
    edge_offsets : where the pairs of each image begin, and where the last end; None for a single image, or without
        pairs
    maps : the region of every pixel, one table (height, width) per image, or None; needed to convert between labels of
        regions and masks

    >>> graphs = RegionGraphs([[[1.0], [2.0], [0.5]]], edges=[[0, 1], [1, 2]])
    >>> graphs, graphs[0].edges.tolist()
    (RegionGraphs(1 images, 3–3 regions each, 2 pairs; 1 + 1 features), [[0, 1], [1, 2]])
    """

    words = ("image", "region", "pair")

    def __init__(
        self,
        nodes: Any,
        areas: Any = None,
        edges: Any = None,
        edge_values: Any = None,
        edge_offsets: Any = None,
        maps: Sequence[Any] | None = None,
    ) -> None:
        self.read_table(nodes, edges, edge_values, edge_offsets)
        _check_contrasts(self.edge_values)
        self.areas = _read_areas(areas, int(self.nodes.offsets[-1]), self.nodes.offsets)
        self.maps: tuple[Array, ...] | None = None if maps is None else _read_maps(maps, self.nodes.lengths)

    @staticmethod
    def from_list(images: Iterable[Any]) -> RegionGraphs:
        """Graphs from a list of `RegionGraph`, or of tuples (values, areas, edges, edge_values).

        >>> RegionGraphs.from_list([(np.ones((2, 3)), [5, 7], [[0, 1]], [[1.0]])])
        RegionGraphs(1 images, 2–2 regions each, 1 pairs; 3 + 1 features)
        """
        graphs = entries("images", images, "a list of graphs")
        for i, graph in enumerate(graphs):
            if not isinstance(graph, tuple | list) or len(graph) != 4:
                raise ValueError(f"image {i} must be (values, areas, edges, edge_values), got {shorten(graph)}")
        parts = []
        for i, (values, areas, edges, edge_values) in enumerate(graphs):
            with RegionGraphs.naming_graph(i):
                parts.append(RegionGraphs([values], areas, edges, None if _is_empty(edge_values) else edge_values))
        return RegionGraphs.concatenate(parts)

    @staticmethod
    def concatenate(parts: Iterable[RegionGraphs]) -> RegionGraphs:
        """The images of several RegionGraphs, one after the other."""
        graphs = list(parts)
        joined = RegionGraphs.join_tables(graphs)
        has_maps = all(part.maps is not None for part in graphs)
        maps = [own for part in graphs for own in part.maps or ()] if has_maps else None
        return RegionGraphs(**joined, areas=np.concatenate([part.areas for part in graphs]), maps=maps)

    @staticmethod
    def of(images: Any) -> RegionGraphs:
        """A RegionGraphs, from one or from a list of graphs."""
        return images if isinstance(images, RegionGraphs) else RegionGraphs.from_list(images)

    @property
    def shares(self) -> Array:
        """The area of every region as a share of its image."""
        totals = np.add.reduceat(self.areas, self.offsets[:-1])
        return np.asarray(self.areas / np.repeat(totals, self.lengths))

    def __getitem__(self, key: Any) -> Any:
        i = self.find(key)
        if isinstance(i, int):
            own, edges = (slice(cut[i], cut[i + 1]) for cut in (self.offsets, self.edge_offsets))
            return RegionGraph(self.nodes[i], self.areas[own], self.edges[edges], self.edge_values[edges])
        chosen, rows = self.select(i)
        chosen.areas = self.areas[rows]
        chosen.maps = None if self.maps is None else tuple(self.maps[k] for k in i)
        return chosen

    def with_values(self, values: Any) -> RegionGraphs:
        """The same graphs with other features of regions, one row each."""
        nodes = self.nodes.with_values(values)
        return RegionGraphs(nodes, self.areas, self.edges, self.edge_values, self.edge_offsets, self.maps)

    def mark(self, masks: Any) -> list[Array]:
        """The label of every region under masks of pixels: that of most of its pixels, of a tie the lower.

        ``masks`` has one table (height, width) of whole numbers or booleans per image, or None, which gives −1 to all
        regions. Pixels of −1 are unknown and do not count in regions with known pixels.
        """
        maps = self._maps("mark")
        masks = entries("masks", masks, f"a mask or None for each of {len(self)} images", len(self))
        return [
            _majorities(own, mask, i) if mask is not None else np.full(self.lengths[i], -1)
            for i, (own, mask) in enumerate(zip(maps, masks, strict=True))
        ]

    def paint(self, labels: Any) -> list[Array]:
        """The label of every pixel, one table per image, from those of the regions."""
        maps = self._maps("paint")
        listed = entries("labels", labels, f"a list of labels for each of {len(self)} images", len(self))
        painted = []
        for i, own in enumerate(maps):
            values = even_table(f"labels[{i}]", listed[i])
            if values.shape != (self.lengths[i],):
                raise ValueError(f"labels[{i}] must have {self.lengths[i]} labels, one per region, got {values.shape}")
            painted.append(values[own])
        return painted

    def shares_inside(self, boxes: Any) -> Ragged:
        """The share of every region's pixels inside a box of its image (1 without a box).

        ``boxes`` has a row (x_min, y_min, x_max, y_max) per image, NaN for an image without a box.
        """
        table = read_image_boxes(boxes, len(self))
        parts = [_inside(own, box) for own, box in zip(self._maps("shares_inside"), table, strict=True)]
        return Ragged(np.concatenate(parts), self.offsets)

    def _maps(self, method: str) -> tuple[Array, ...]:
        if self.maps is None:
            raise ValueError(f"{method} needs the pixels of regions; make the graphs with maps=, as tacit.regions does")
        return self.maps


def read_image_boxes(boxes: Any, n: int) -> Array:
    """(n, 4) one box per image, checked; NaN for an image without one, all NaN for None."""
    if boxes is None:
        return np.full((n, 4), np.nan)
    table = numbers("boxes", boxes, "four numbers per image").astype(np.float64)
    if table.shape != (n, 4):
        raise ValueError(f"boxes must have shape {(n, 4)}, one per image, got {table.shape}")
    return table


def pixels_inside(shape: tuple[int, ...], box: Array) -> Array:
    """(height, width) whether the middle of every pixel of an image lies inside a box."""
    left, top, right, bottom = box
    columns, rows = np.arange(shape[1]) + 0.5, np.arange(shape[0]) + 0.5
    return np.asarray(((rows > top) & (rows < bottom))[:, None] & ((columns > left) & (columns < right)))


def _inside(regions: Array, box: Array) -> Array:
    counts = np.bincount(regions.ravel())
    if np.isnan(box).any():
        return np.ones(counts.size)
    covered = pixels_inside(regions.shape, box)
    return np.asarray(np.bincount(regions.ravel(), covered.ravel(), counts.size) / counts)


def _majorities(regions: Array, mask: Any, i: int) -> Array:
    mask = even_table(f"the mask of image {i}", mask)
    if mask.shape != regions.shape:
        raise ValueError(f"the mask of image {i} must have the shape {regions.shape} of the image, got {mask.shape}")
    if mask.dtype.kind not in "biu":
        raise ValueError(f"the mask of image {i} must have whole numbers, got {mask.dtype}")
    mask = mask.astype(np.int64)
    highest, n = int(mask.max(initial=0)), int(regions.max()) + 1
    if mask.min() < -1 or highest > 10_000:
        raise ValueError(f"the mask of image {i} must have labels 0, 1, 2, …, got {mask.min()} to {highest}")
    known = mask >= 0
    flat = regions[known] * (highest + 1) + mask[known]
    counts = np.bincount(flat, minlength=n * (highest + 1)).reshape(n, highest + 1)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


def _read_areas(areas: Any, rows: int, offsets: Array) -> Array:
    if areas is None:
        return np.ones(rows)
    table = numbers("areas", areas, "one positive number per region")
    if table.shape != (rows,):
        raise ValueError(f"areas must be {rows} numbers, one per region, got shape {table.shape}")
    wrong = np.flatnonzero(~(np.isfinite(table) & (table > 0) & (table < 1e100)))
    if wrong.size:
        i, region = locate(offsets, wrong[0])
        raise ValueError(f"the area of region {region} of image {i} must be positive, got {table[wrong[0]]}")
    return table.astype(np.float64)


def _is_empty(values: Any) -> bool:
    """Whether a list or an array is empty."""
    return 0 in (shape_of(values) or ())


def _check_contrasts(table: Array) -> None:
    """Refuse features of pairs below 0."""
    if table.min(initial=0.0) < 0:
        row = int(np.argmin(table.min(axis=1)))
        raise ValueError(
            f"edge_values of pair {row} must not be negative, got {table[row].min():g}; use exp(-difference), for "
            "example: exact cuts need that"
        )


def _read_maps(maps: Any, lengths: Array) -> tuple[Array, ...]:
    listed = entries("maps", maps, f"one table of regions for each of {len(lengths)} images", len(lengths))
    tables = tuple(even_table(f"maps[{i}]", own) for i, own in enumerate(listed))
    for i, own in enumerate(tables):
        if own.ndim != 2 or own.dtype.kind not in "iu" or not own.size:
            raise ValueError(f"maps[{i}] must be the region of every pixel, got {own.dtype} of shape {own.shape}")
        present = np.unique(own)
        if not np.array_equal(present, np.arange(lengths[i])):
            raise ValueError(
                f"maps[{i}] must have pixels of all regions 0 to {lengths[i] - 1}, got {present.size} regions from "
                f"{present[0]} to {present[-1]}"
            )
    return tables

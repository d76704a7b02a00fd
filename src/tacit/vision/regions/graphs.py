"""Images as graphs of regions (superpixels): features per region, contrast features per pair of neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, first_non_finite, locate, states_of
from tacit.data.parameters import entries, even_table, is_whole, numbers, shorten
from tacit.data.ragged import Ragged, read_ragged


class RegionGraph(NamedTuple):
    """One image: the features and areas of its regions, pairs of neighbours, and the features of these pairs."""

    values: Array
    areas: Array
    edges: Array
    edge_values: Array


class RegionGraphs:
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
    (RegionGraphs(1 images, 3–3 regions each, 2 pairs of neighbours; 1 + 1 features), [[0, 1], [1, 2]])
    """

    def __init__(
        self,
        nodes: Any,
        areas: Any = None,
        edges: Any = None,
        edge_values: Any = None,
        edge_offsets: Any = None,
        maps: Sequence[Any] | None = None,
    ) -> None:
        self.nodes = read_ragged(nodes, "image", "region")
        if not isinstance(self.nodes.values, np.ndarray):
            raise ValueError("nodes must be dense tables; call toarray()")
        n, rows = len(self.nodes), int(self.nodes.offsets[-1])
        self.areas = _read_areas(areas, rows, self.nodes.offsets)
        self.edges = _read_edges(edges)
        self.edge_offsets = _read_edge_offsets(edge_offsets, n, len(self.edges))
        self.edge_values = _read_edge_values(edge_values, len(self.edges))
        _check_neighbours(self.edges, self.edge_offsets, self.nodes.lengths)
        self.maps: tuple[Array, ...] | None = None if maps is None else _read_maps(maps, self.nodes.lengths)

    @staticmethod
    def from_list(images: Iterable[Any]) -> RegionGraphs:
        """Graphs from a list of `RegionGraph`, or of tuples (values, areas, edges, edge_values).

        >>> RegionGraphs.from_list([(np.ones((2, 3)), [5, 7], [[0, 1]], [[1.0]])])
        RegionGraphs(1 images, 2–2 regions each, 1 pairs of neighbours; 3 + 1 features)
        """
        graphs = entries("images", images, "a list of graphs")
        for i, graph in enumerate(graphs):
            if not isinstance(graph, tuple | list) or len(graph) != 4:
                raise ValueError(f"image {i} must be (values, areas, edges, edge_values), got {shorten(graph)}")
        parts = [
            RegionGraphs([values], areas, edges, None if _is_empty(edge_values) else edge_values)
            for values, areas, edges, edge_values in graphs
        ]
        return RegionGraphs.concatenate(parts)

    @staticmethod
    def concatenate(parts: Iterable[RegionGraphs]) -> RegionGraphs:
        """The images of several RegionGraphs, one after the other."""
        graphs = list(parts)
        if not graphs or not all(isinstance(part, RegionGraphs) for part in graphs):
            raise ValueError("parts must be at least one RegionGraphs")
        widths = {part.edge_values.shape[1] for part in graphs if len(part.edges)}
        if len(widths) > 1:
            raise ValueError(f"edge_values must have the same number of features in all parts, got {sorted(widths)}")
        width = widths.pop() if widths else graphs[0].edge_values.shape[1]
        counts = np.concatenate([[0], *(np.diff(part.edge_offsets) for part in graphs)])
        nodes = Ragged.concatenate([part.nodes for part in graphs])
        areas, edges = (np.concatenate([getattr(part, name) for part in graphs]) for name in ("areas", "edges"))
        edge_values = np.concatenate([part.edge_values.reshape(len(part.edges), width) for part in graphs])
        has_maps = all(part.maps is not None for part in graphs)
        maps = [own for part in graphs for own in part.maps or ()] if has_maps else None
        return RegionGraphs(nodes, areas, edges, edge_values, np.cumsum(counts), maps)

    @staticmethod
    def of(images: Any) -> RegionGraphs:
        """A RegionGraphs, from one or from a list of graphs."""
        return images if isinstance(images, RegionGraphs) else RegionGraphs.from_list(images)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def ndim(self) -> int:
        return 1

    @property
    def offsets(self) -> Array:
        """Where the regions of each image begin."""
        return np.asarray(self.nodes.offsets)

    @property
    def lengths(self) -> Array:
        """Regions of each image."""
        return self.nodes.lengths

    @property
    def shares(self) -> Array:
        """The area of every region as a share of its image."""
        totals = np.add.reduceat(self.areas, self.offsets[:-1])
        return np.asarray(self.areas / np.repeat(totals, self.lengths))

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[RegionGraph]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if not isinstance(key, bool) and is_whole(key):
            if not -len(self) <= key < len(self):
                raise IndexError(f"image {shorten(key)} does not exist; there are {len(self)} images")
            i = range(len(self))[key]
            own, edges = (slice(cut[i], cut[i + 1]) for cut in (self.offsets, self.edge_offsets))
            return RegionGraph(self.nodes[i], self.areas[own], self.edges[edges], self.edge_values[edges])
        index = Ragged(np.arange(len(self)), np.arange(len(self) + 1))[key].values
        rows, _ = states_of(self.offsets, index)
        pairs, edge_offsets = states_of(self.edge_offsets, index)
        chosen = object.__new__(RegionGraphs)  # already checked
        chosen.nodes, chosen.areas = self.nodes[index], self.areas[rows]
        chosen.edges, chosen.edge_values = self.edges[pairs], self.edge_values[pairs]
        chosen.edge_offsets = edge_offsets
        chosen.maps = None if self.maps is None else tuple(self.maps[i] for i in index)
        return chosen

    def __repr__(self) -> str:
        lengths = self.lengths
        width = f"{self.nodes.values.shape[1]} + {self.edge_values.shape[1]} features"
        span = f"{lengths.min()}–{lengths.max()} regions each" if len(self) else "no regions"
        return f"RegionGraphs({len(self)} images, {span}, {len(self.edges)} pairs of neighbours; {width})"

    @property
    def values(self) -> Array:
        """The features of all regions, one row each."""
        return np.asarray(self.nodes.values)

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


def _read_edges(edges: Any) -> Array:
    if edges is None or _is_empty(edges):
        return np.zeros((0, 2), dtype=np.int64)
    table = numbers("edges", edges, "pairs of whole numbers, the positions of two neighbours in their image")
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"edges must have shape (pairs, 2), got {table.shape}")
    if not (np.isfinite(table).all() and (table == np.round(table)).all() and (np.abs(table) < 2**53).all()):
        raise ValueError("edges must be whole numbers, the positions of regions in their image")
    return table.astype(np.int64)


def _read_edge_offsets(offsets: Any, n: int, n_edges: int) -> Array:
    if offsets is None:
        if n_edges and n > 1:
            raise ValueError(f"edge_offsets is missing; it assigns the {n_edges} pairs to {n} images")
        return np.append(np.zeros(n, dtype=np.int64), n_edges)
    meaning = f"{n + 1} numbers for {n} images: where the pairs of each begin, and the end"
    return np.asarray(Ragged(np.zeros(n_edges), entries("edge_offsets", offsets, meaning, n + 1)).offsets)


def _is_empty(values: Any) -> bool:
    """Whether a list or an array is empty; numpy refuses rows of several lengths, which are not."""
    try:
        return np.size(values) == 0
    except ValueError:
        return False


def _read_edge_values(values: Any, n_edges: int) -> Array:
    if values is None:
        return np.ones((n_edges, 1))
    table = numbers("edge_values", values, "a row of numbers per pair of neighbours").astype(np.float64)
    if table.ndim != 2 or len(table) != n_edges or not table.shape[1]:
        raise ValueError(f"edge_values must be {n_edges} rows of features, one per pair, got shape {table.shape}")
    if first_non_finite(table) is not None:
        raise ValueError("edge_values must be finite, got NaN or infinity")
    if table.min(initial=0.0) < 0:
        row = int(np.argmin(table.min(axis=1)))
        raise ValueError(
            f"edge_values of pair {row} must not be negative, got {table[row].min():g}; use exp(-difference), for "
            "example: exact cuts need that"
        )
    return table


def _check_neighbours(edges: Array, offsets: Array, lengths: Array) -> None:
    sizes = np.repeat(lengths, np.diff(offsets))
    wrong = np.flatnonzero((edges.min(axis=1, initial=2**60) < 0) | (edges.max(axis=1, initial=-1) >= sizes))
    if wrong.size:
        i, pair = locate(offsets, wrong[0])
        raise ValueError(f"pair {pair} of image {i} is {edges[wrong[0]].tolist()}; regions are 0 to {lengths[i] - 1}")
    own = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if own.size:
        i, pair = locate(offsets, own[0])
        raise ValueError(f"pair {pair} of image {i} connects region {edges[own[0], 0]} to itself; remove it")


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

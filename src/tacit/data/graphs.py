"""Graphs in one container: features per node, pairs of nodes as edges, features per edge."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array, first_non_finite, locate, states_of
from tacit.data.parameters import as_array, entries, is_whole, numbers, shorten, switch
from tacit.data.ragged import Ragged, read_ragged

NEIGHBOURS: dict[int, list[tuple[int, int]]] = {4: [(0, 1), (1, 0)], 8: [(0, 1), (1, 0), (1, 1), (1, -1)]}
"""Steps (down, right) from a cell of a grid to its neighbours, each pair once."""


class GraphParts(NamedTuple):
    """One graph: features of nodes, edges, features of edges, and the type of every node."""

    values: Array
    edges: Array
    edge_values: Array
    types: Array


class GraphTable:
    """Nodes of graphs in one table, and edges between them: what containers of graphs share.

    ``words`` are what a graph, a node and an edge are called in errors. `nodes` is a `tacit.Ragged` of features,
    `edges` has the positions of two nodes in their graph per row, `edge_values` their features, and `edge_offsets`
    says where the edges of each graph begin.
    """

    words: ClassVar[tuple[str, str, str]] = ("graph", "node", "edge")

    nodes: Ragged
    edges: Array
    edge_values: Array
    edge_offsets: Array

    def read_table(self, nodes: Any, edges: Any, edge_values: Any, edge_offsets: Any) -> None:
        """Check and keep nodes and edges."""
        self.nodes = read_ragged(nodes, *self.words[:2])
        if not isinstance(self.nodes.values, np.ndarray):
            raise ValueError("nodes must be dense tables; call toarray()")
        self.edges = _read_edges(edges, *self.words)
        self.edge_offsets = _read_edge_offsets(edge_offsets, len(self.nodes), len(self.edges), *self.words)
        self.edge_values = _read_edge_values(edge_values, len(self.edges), self.words[2])
        _check_edges(self.edges, self.edge_offsets, self.nodes.lengths, *self.words)

    @classmethod
    @contextlib.contextmanager
    def naming_graph(cls, i: int) -> Iterator[None]:
        """Errors of a table of one graph say that it is graph ``i`` of a list."""
        try:
            yield
        except ValueError as error:
            alone, own = (f"of {cls.words[0]} {number}" for number in (0, i))
            message = str(error)
            raise ValueError(message.replace(alone, own) if alone in message else f"{own}: {message}") from error

    @classmethod
    def join_tables(cls, parts: Sequence[Self]) -> dict[str, Any]:
        """Nodes and edges of several tables, one after the other, as arguments of the constructor."""
        if not parts or not all(isinstance(part, cls) for part in parts):
            raise ValueError(f"parts must be at least one {cls.__name__}")
        widths = {part.edge_values.shape[1] for part in parts if len(part.edges)}
        if len(widths) > 1:
            raise ValueError(f"edge_values must have the same number of features in all parts, got {sorted(widths)}")
        width = widths.pop() if widths else parts[0].edge_values.shape[1]
        return {
            "nodes": Ragged.concatenate([part.nodes for part in parts]),
            "edges": np.concatenate([part.edges for part in parts]),
            "edge_values": np.concatenate([part.edge_values.reshape(len(part.edges), width) for part in parts]),
            "edge_offsets": np.cumsum(np.concatenate([[0], *(np.diff(part.edge_offsets) for part in parts)])),
        }

    def find(self, key: Any) -> int | Array:
        """The position of one graph, or an array of positions."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if not isinstance(key, bool) and is_whole(key):
            if not -len(self) <= key < len(self):
                kind = self.words[0]
                raise IndexError(f"{kind} {shorten(key)} does not exist; there are {len(self)} {kind}s")
            return int(range(len(self))[key])
        return np.asarray(Ragged(np.arange(len(self)), np.arange(len(self) + 1))[key].values)

    def select(self, index: Array) -> tuple[Self, Array]:
        """The chosen graphs without what a subclass adds, already checked, and the positions of their nodes."""
        rows, _ = states_of(self.offsets, index)
        pairs, edge_offsets = states_of(self.edge_offsets, index)
        chosen = object.__new__(type(self))
        chosen.nodes, chosen.edge_offsets = self.nodes[index], edge_offsets
        chosen.edges, chosen.edge_values = self.edges[pairs], self.edge_values[pairs]
        return chosen, rows

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def ndim(self) -> int:
        return 1

    @property
    def offsets(self) -> Array:
        """Where the nodes of each graph begin."""
        return np.asarray(self.nodes.offsets)

    @property
    def lengths(self) -> Array:
        """Nodes of each graph."""
        return self.nodes.lengths

    @property
    def values(self) -> Array:
        """The features of all nodes, one row each."""
        return np.asarray(self.nodes.values)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        lengths, (graph, node, edge) = self.lengths, self.words
        width = f"{self.nodes.values.shape[1]} + {self.edge_values.shape[1]} features"
        span = f"{lengths.min()}–{lengths.max()} {node}s each" if len(self) else f"no {node}s"
        return f"{type(self).__name__}({len(self)} {graph}s, {span}, {len(self.edges)} {edge}s; {width})"


class Graphs(GraphTable):
    """Graphs: X of `tacit.problems.Graph`. Features per node, and pairs of nodes (edges) with features of their own.

    It behaves like a one-dimensional array of graphs: ``shape == (n,)``, an integer selects one graph, slices and index
    arrays a Graphs. So `train_test_split` and `cross_val_score` accept it. Types of edges are columns of
    ``edge_values``: 1 for the type of the edge and 0 for the others, or the features of an edge in the columns of its
    type.

    Parameters
    ----------
    nodes : features per node: a `tacit.Ragged`, or a list of tables
    edges : (edges, 2) positions of nodes in their graph, each pair once; graph after graph; None for none
    edge_values : (edges, q) features of the edges; None for a constant 1
    edge_offsets : where the edges of each graph begin, and where the last end; None for a single graph, or without
        edges
    types : the type of every node, 0, 1, ..., graph after graph; None for a single type

    >>> graphs = Graphs([[[1.0], [2.0], [0.5]]], edges=[[0, 1], [1, 2]])
    >>> graphs, graphs[0].edges.tolist()
    (Graphs(1 graphs, 3–3 nodes each, 2 edges; 1 + 1 features), [[0, 1], [1, 2]])
    """

    def __init__(
        self, nodes: Any, edges: Any = None, edge_values: Any = None, edge_offsets: Any = None, types: Any = None
    ) -> None:
        self.read_table(nodes, edges, edge_values, edge_offsets)
        self.types = _read_types(types, int(self.nodes.offsets[-1]))

    @staticmethod
    def from_list(graphs: Iterable[Any]) -> Graphs:
        """Graphs from a list of tuples: (values, edges), (values, edges, edge_values), or these and types.

        >>> Graphs.from_list([(np.ones((2, 3)), [[0, 1]]), (np.ones((1, 3)), [])])
        Graphs(2 graphs, 1–2 nodes each, 1 edges; 3 + 1 features)
        """
        listed = entries("graphs", graphs, "a list of graphs")
        for i, graph in enumerate(listed):
            if not isinstance(graph, tuple | list) or not 2 <= len(graph) <= 4:
                raise ValueError(f"graph {i} must be (values, edges, edge_values, types), got {shorten(graph)}")
        parts = []
        for i, (values, edges, *rest) in enumerate(listed):
            given, types = (*rest, None, None)[:2]
            with Graphs.naming_graph(i):
                edge_values = None if given is None else numbers("edge_values", given, "a table of numbers")
                is_empty = edge_values is not None and not edge_values.size
                parts.append(Graphs([values], edges, None if is_empty else edge_values, None, types))
        return Graphs.concatenate(parts)

    @staticmethod
    def concatenate(parts: Iterable[Graphs]) -> Graphs:
        """The graphs of several Graphs, one after the other."""
        graphs = list(parts)
        joined = Graphs.join_tables(graphs)
        return Graphs(**joined, types=np.concatenate([part.types for part in graphs]))

    @staticmethod
    def grids(tables: Any, neighbours: int = 4, is_directional: bool = False) -> Graphs:
        """A grid per table (height, width, features): a node per cell, row by row, and edges between neighbours.

        Edges go to the right and downwards, with ``neighbours=8`` also along the diagonals. Where ``is_directional``,
        each direction is a type of edge, with a column of ``edge_values``; otherwise all edges have one constant.

        >>> Graphs.grids([np.zeros((2, 3, 1))], is_directional=True)
        Graphs(1 graphs, 6–6 nodes each, 7 edges; 1 + 2 features)
        """
        if not is_whole(neighbours) or neighbours not in NEIGHBOURS:
            raise ValueError(f"neighbours must be 4 or 8, got {shorten(neighbours)}")
        is_directional = switch("is_directional", is_directional)
        steps, parts = NEIGHBOURS[neighbours], []
        for i, table in enumerate(entries("tables", tables, "a list of tables (height, width, features)")):
            cells = numbers(f"tables[{i}]", table, "a table (height, width, features)")
            if cells.ndim != 3 or not cells.size:
                raise ValueError(f"tables[{i}] must have shape (height, width, features), got {cells.shape}")
            height, width = cells.shape[:2]
            place = np.arange(height * width).reshape(height, width)
            edges, kinds = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
            for kind, (down, right) in enumerate(steps):
                here = place[: height - down, max(-right, 0) : width - max(right, 0)].ravel()
                there = place[down:, max(right, 0) : width + min(right, 0)].ravel()
                edges.append(np.column_stack([here, there]))
                kinds.append(np.full(here.size, kind))
            flat = np.concatenate(kinds)
            values = np.eye(len(steps))[flat] if is_directional else np.ones((flat.size, 1))
            parts.append((cells.reshape(height * width, -1), np.concatenate(edges), values))
        width = len(steps) if is_directional else 1
        joined = Graphs.from_list(parts)
        if not len(joined.edges):  # single cells
            joined.edge_values = np.zeros((0, width))
        return joined

    @staticmethod
    def of(graphs: Any) -> Graphs:
        """A Graphs, from one or from a list of graphs."""
        return graphs if isinstance(graphs, Graphs) else Graphs.from_list(graphs)

    def with_values(self, values: Any) -> Graphs:
        """The same graphs with other features of nodes, one row each."""
        return Graphs(self.nodes.with_values(values), self.edges, self.edge_values, self.edge_offsets, self.types)

    def __getitem__(self, key: Any) -> Any:
        i = self.find(key)
        if isinstance(i, int):
            own, edges = (slice(cut[i], cut[i + 1]) for cut in (self.offsets, self.edge_offsets))
            return GraphParts(self.nodes[i], self.edges[edges], self.edge_values[edges], self.types[own])
        chosen, rows = self.select(i)
        chosen.types = self.types[rows]
        return chosen


class GraphLabels:
    """Labels of graphs that say more than one label per node: sets of allowed labels, and labels that must occur.

    It behaves like a one-dimensional array of graphs. `tacit.problems.Graph` also takes plain lists with sets.

    Parameters
    ----------
    labels : per graph, for every node its label, −1 (or None) if it is unknown, or a set of labels one of which is
        right, such as ``{"cat", "dog"}``
    present : per graph a list of labels that must occur, or None; None for no such labels

    >>> y = GraphLabels([["cat", {"cat", "dog"}, None], ["sky", "dog"]], present=[["dog"], None])
    >>> y, y[[1]].present
    (GraphLabels(2 graphs, 1 sets of labels), [()])
    """

    def __init__(self, labels: Any, present: Any = None) -> None:
        self.sets: list[tuple[Any, ...]] = []
        self.set_of = np.zeros(0, dtype=np.int64)
        if isinstance(labels, Ragged):
            self.labels: Any = labels
            self.set_of = np.full(int(labels.offsets[-1]), -1, dtype=np.int64)
        else:
            self.labels = self._read_sets(entries("labels", labels, "a list with the labels of every graph"))
        n = len(self.labels)
        listed = [None] * n if present is None else entries("present", present, f"a list for each of {n} graphs", n)
        for i, own in enumerate(listed):
            if own is not None and not isinstance(own, list | tuple | set | frozenset | np.ndarray):
                raise ValueError(f"present[{i}] must be a list of labels or None, got {shorten(own)}")
        self.present = [
            () if own is None else tuple(entries(f"present[{i}]", own, "a list of labels or None"))
            for i, own in enumerate(listed)
        ]

    def _read_sets(self, listed: list[Any]) -> list[Any]:
        """The labels, None in the place of a set; the sets are kept apart."""
        plain: list[Any] = []
        positions: list[Array] = []
        known: dict[Any, int] = {}
        for i, own in enumerate(listed):
            if isinstance(own, np.ndarray) and own.ndim == 1 and own.dtype.kind in "iuUS":
                plain.append(own)
                positions.append(np.full(own.size, -1, dtype=np.int64))
                continue
            items = entries(f"labels[{i}]", own, "one label per node")
            at = np.full(len(items), -1, dtype=np.int64)
            for v, item in enumerate(items):
                if isinstance(item, set | frozenset):
                    if not item:
                        raise ValueError(
                            f"the set of allowed labels of node {v} of graph {i} is empty; write −1 if "
                            "its label is unknown"
                        )
                    key = tuple(sorted(item, key=repr))
                    at[v] = known.setdefault(key, len(known))
            positions.append(at)
            plain.append(
                [None if a >= 0 else item for a, item in zip(at, items, strict=True)]
                if (at >= 0).any() or not hasattr(own, "__len__")
                else own
            )
        self.sets = list(known)
        self.set_of = np.concatenate(positions) if positions else np.zeros(0, dtype=np.int64)
        return plain

    @staticmethod
    def of(labels: Any) -> GraphLabels:
        """A GraphLabels, from one or from labels of nodes."""
        return labels if isinstance(labels, GraphLabels) else GraphLabels(labels)

    @property
    def shape(self) -> tuple[int]:
        return (len(self.labels),)

    @property
    def ndim(self) -> int:
        return 1

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        lengths = np.array([len(own) for own in self.labels], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        if not isinstance(key, bool) and is_whole(key):
            i = range(len(self))[key]
            sets = self.set_of[offsets[i] : offsets[i + 1]]
            if (sets < 0).all():
                return self.labels[i]
            return [set(self.sets[s]) if s >= 0 else own for s, own in zip(sets, self.labels[i], strict=True)]
        index = Ragged(np.arange(len(self)), np.arange(len(self) + 1))[key].values
        chosen = object.__new__(GraphLabels)
        chosen.labels = self.labels[index] if isinstance(self.labels, Ragged) else [self.labels[i] for i in index]
        chosen.sets, chosen.set_of = self.sets, self.set_of[states_of(offsets, index)[0]]
        chosen.present = [self.present[i] for i in index]
        return chosen

    def __repr__(self) -> str:
        return f"GraphLabels({len(self)} graphs, {np.count_nonzero(self.set_of >= 0)} sets of labels)"


def _read_edges(edges: Any, graph: str, node: str, edge: str) -> Array:
    if edges is None or (isinstance(edges, list | tuple | np.ndarray) and not np.atleast_1d(as_array(edges)).size):
        return np.zeros((0, 2), dtype=np.int64)
    table = numbers("edges", edges, f"pairs of whole numbers, the positions of two {node}s in their {graph}")
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"edges must have shape ({edge}s, 2), got {table.shape}")
    if not (np.isfinite(table).all() and (table == np.round(table)).all() and (np.abs(table) < 2**53).all()):
        raise ValueError(f"edges must be whole numbers, the positions of {node}s in their {graph}")
    return np.ascontiguousarray(table.astype(np.int64))


def _read_edge_offsets(offsets: Any, n: int, n_edges: int, graph: str, node: str, edge: str) -> Array:
    if offsets is None:
        if n_edges and n > 1:
            raise ValueError(f"edge_offsets is missing; it assigns the {n_edges} {edge}s to {n} {graph}s")
        return np.append(np.zeros(n, dtype=np.int64), n_edges)
    meaning = f"{n + 1} numbers for {n} {graph}s: where the {edge}s of each begin, and the end"
    return np.asarray(Ragged(np.zeros(n_edges), entries("edge_offsets", offsets, meaning, n + 1)).offsets)


def _read_edge_values(values: Any, n_edges: int, edge: str) -> Array:
    if values is None:
        return np.ones((n_edges, 1))
    table = numbers("edge_values", values, f"a row of numbers per {edge}").astype(np.float64)
    if table.ndim != 2 or len(table) != n_edges or not table.shape[1]:
        raise ValueError(f"edge_values must be {n_edges} rows of features, one per {edge}, got shape {table.shape}")
    if first_non_finite(table) is not None:
        raise ValueError("edge_values must be finite, got NaN or infinity")
    return table


def _check_edges(edges: Array, offsets: Array, lengths: Array, graph: str, node: str, edge: str) -> None:
    """Refuse edges to missing nodes, of a node to itself, and between two nodes that have an edge already."""
    sizes = np.repeat(lengths, np.diff(offsets))
    wrong = np.flatnonzero((edges.min(axis=1, initial=2**60) < 0) | (edges.max(axis=1, initial=-1) >= sizes))
    if wrong.size:
        i, e = locate(offsets, wrong[0])
        raise ValueError(f"{edge} {e} of {graph} {i} is {edges[wrong[0]].tolist()}; {node}s are 0 to {lengths[i] - 1}")
    own = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if own.size:
        i, e = locate(offsets, own[0])
        raise ValueError(f"{edge} {e} of {graph} {i} connects {node} {edges[own[0], 0]} to itself; remove it")
    owner = np.repeat(np.arange(lengths.size), np.diff(offsets))
    order = np.lexsort((edges.max(axis=1), edges.min(axis=1), owner))
    low, high, owner = edges.min(axis=1)[order], edges.max(axis=1)[order], owner[order]
    twice = np.flatnonzero((np.diff(low) == 0) & (np.diff(high) == 0) & (np.diff(owner) == 0))
    if twice.size:
        position = int(order[twice[0] + 1])
        i, e = locate(offsets, position)
        raise ValueError(
            f"{edge} {e} of {graph} {i}, {edges[position].tolist()}, is doubled; give one per pair of {node}s, and "
            "several features of it in edge_values"
        )


def _read_types(types: Any, n_nodes: int) -> Array:
    if types is None:
        return np.zeros(n_nodes, dtype=np.int64)
    table = numbers("types", types, "one whole number from 0 per node")
    if table.shape != (n_nodes,):
        raise ValueError(f"types must be {n_nodes} numbers, one per node, got shape {table.shape}")
    if not ((table >= 0) & (table < 1000) & (table == np.round(table))).all():
        raise ValueError("types must be whole numbers from 0 to 999")
    return table.astype(np.int64)

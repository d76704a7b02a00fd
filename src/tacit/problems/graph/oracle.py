"""Inference over graphs as an oracle: exact on forests and by minimum cuts, with upper bounds elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from tacit.data.arrays import Array, Codes, Rows, checksum, positions_of, starts_of
from tacit.data.graphs import Graphs
from tacit.data.labels import find_labels
from tacit.data.ragged import Ragged
from tacit.oracle import TARGET, Assignment, LossTable, Schema
from tacit.oracle.capabilities import (
    Expectations,
    GivesLogPartition,
    GivesTagPosteriors,
    KnownPart,
    ScalesLoss,
    SumsOutputs,
)
from tacit.oracle.cells import one_coef_each, spread_coefficients
from tacit.oracle.losses import check_losses
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.oracle.slack_search import LossLevels, sum_levels
from tacit.problems.chain.tags import read_tags
from tacit.problems.graph.forests import sum_forests
from tacit.problems.graph.inference import Labelling, Pairs, Shape, best_labels, keep_nodes, score_changes, score_labels
from tacit.problems.row_sums import add_rows

MAX_TABLE = 1 << 22
"""Numbers in the tables of pairs of a block of graphs (32 MB)."""


class Block(NamedTuple):
    """Some graphs under some weights: slices of the answer and of the code, edges, shape, and scores."""

    out: slice
    nodes: slice
    edges: Any
    shape: Shape
    unary: Array
    pairs: Pairs


class GraphOracle(PartsOracle):
    """The best labels of the nodes of graphs, with upper bounds of their scores; a code is one label per node.

    Parameters
    ----------
    graphs : the graphs
    table : (nodes, d) features of nodes, with a constant column where there is an intercept
    schema : labels and dimensions
    possible : (types, K) which labels the nodes of each type may have
    labels : (nodes,) the true labels, −1 where unknown, K for a label that is not in the schema; None when predicting
    allowed : (nodes, K) labels that nodes with an unknown label may have; None for all of their type
    present : (n, K) labels that must occur; None for none
    losses : (nodes, K) the loss of every label
    """

    nouns = Nouns("Graph", "graphs", "node")
    completes_labels = True

    def __init__(
        self,
        graphs: Graphs,
        table: Array,
        schema: Schema,
        possible: Array,
        *,
        labels: Array | None = None,
        allowed: Array | None = None,
        present: Array | None = None,
        losses: Array | None = None,
    ) -> None:
        super().__init__(
            schema, graphs.offsets, len(schema.classes), labels=labels, losses=losses, precision=table.dtype
        )
        self.table = np.ascontiguousarray(table)
        self.edge_offsets = graphs.edge_offsets
        self.shape = Shape.of(graphs.offsets, graphs.edge_offsets, graphs.edges)
        self.edge_values = np.ascontiguousarray(graphs.edge_values)
        self._possible = None if possible.all() else np.ascontiguousarray(possible[graphs.types])
        self._allowed, self._present = allowed, present
        self._pair_shape = schema.blocks.get("pairs")
        self._set_kinds()

    def _set_kinds(self) -> None:
        """Edges with equal features share a table of pair scores where that makes the tables small."""
        k = self.n_labels
        self.kind_values, self.kinds = self.edge_values, np.arange(len(self.edge_values))
        if self._has_tables and len(self.edge_values) * k * k > MAX_TABLE // 64:
            values, kinds = np.unique(self.edge_values, axis=0, return_inverse=True)
            if len(values) * k * k <= MAX_TABLE:
                self.kind_values, self.kinds = values, kinds.reshape(-1)
        self._shares_tables = len(self.kind_values) * k * k <= MAX_TABLE
        per_node = len(self.edge_values) / max(int(self.offsets[-1]), 1)
        is_wide = self._has_tables and not self._shares_tables
        self.n_states = int(k + k * k * per_node) if is_wide else k

    block_cells = MAX_TABLE

    @property
    def _has_tables(self) -> bool:
        return self._pair_shape is not None and len(self._pair_shape) > 1

    @property
    def gives_bounds(self) -> bool:
        """See `tacit.oracle.capabilities.BoundsMaximum`: whether there is a graph with a cycle."""
        return self._pair_shape is not None and not bool(self.shape.is_forest.all())

    @property
    def slack_obstacle(self) -> str:  # type: ignore[override]
        """Why slack rescaling is impossible."""
        return "it needs exact inference, and some graphs have cycles" if self.gives_bounds else ""

    @property
    def lacks(self) -> tuple[type, ...]:
        """Capabilities that are missing: sums and multiples of the loss need graphs without cycles."""
        sums = (SumsOutputs, GivesLogPartition, GivesTagPosteriors)
        if self.gives_bounds:
            return (ScalesLoss, *sums)
        return sums if self._present is not None else ()

    @property
    def remedy(self) -> str:
        """See `tacit.oracle.contracts.AdvisesUsers`."""
        return "sums are offered for graphs without cycles and without `present`; use tacit.LatentSVM"

    # maximise

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._assign(self._maximise(w, rows))

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        losses = self._loss_table()[self._positions(rows)]
        if factor is not None:
            losses = losses * np.repeat(factor, np.diff(self._starts(rows)))[:, None]
        return self._assign(self._maximise(w, rows, extra=losses))

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`."""
        losses = self._loss_table()[self._positions(rows)]
        return sum_levels(losses, np.arange(len(losses)), self._starts(rows))

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        """The best labels that were found among those that agree with y; the value is their score.

        Labels that must occur get nodes of their own where they would be missing. ``prefer`` is kept where it is
        allowed and not worse, so repeated imputation never lowers a score.
        """
        mask = self._agreeing(rows)
        present = None if self._present is None else self._present if rows is None else self._present[rows]
        labels = self._maximise(w, rows, mask=mask).labels
        if present is not None:
            labels = self._with_present(w, rows, mask.copy(), present, labels)
        value = self.score(w, labels, rows)
        code = labels.astype(self._code_type)
        if prefer is None:
            return Assignment(code, value)
        prefer, starts = np.asarray(prefer), self._starts(rows)
        wished = self._read(np.maximum(prefer, 0), rows).astype(np.int64)
        fits = np.logical_and.reduceat((prefer >= 0) & mask[np.arange(wished.size), wished], starts[:-1])
        if present is not None:
            fits &= ~self._lacking(wished, starts, present).any(axis=1)
        wished_value = self.score(w, wished, rows)
        keep = fits & (wished_value >= value)
        return Assignment(self._pick(keep, prefer, code, rows), np.where(keep, wished_value, value))

    def _with_present(self, w: Array, rows: Rows, mask: Array, present: Array, labels: Array) -> Array:
        """Labels in which those that must occur do. In a graph that lacks one, each gets a node of its own, where that
        costs least; the other nodes then get their best labels."""
        starts = self._starts(rows)
        lacking = np.flatnonzero(self._lacking(labels, starts, present).any(axis=1))
        if not lacking.size:
            return labels
        changes = np.concatenate(
            [score_changes(b.shape, b.unary, b.pairs, labels[b.nodes]) for b in self._score_blocks(w, rows)]
        )
        for i in lacking:
            own, held = np.arange(starts[i], starts[i + 1]), np.flatnonzero(present[i])
            gains = changes[own][:, held] - changes[own, labels[own]][:, None]
            nodes, which = linear_sum_assignment(np.where(mask[own][:, held], gains, -np.inf), maximize=True)
            mask[own[nodes]] = held[which][:, None] == np.arange(self.n_labels)
        return self._maximise(w, rows, mask=mask).labels

    def _lacking(self, labels: Array, starts: Array, present: Array) -> Array:
        """(n, K): which labels must occur and do not."""
        owner = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        counts = np.bincount(owner * self.n_labels + labels, minlength=present.size)
        return np.asarray(present & (counts.reshape(present.shape) == 0))

    def draw(self, rng: np.random.Generator) -> Array:
        """See `tacit.oracle.capabilities.DrawsHidden`."""
        mask = self._agreeing(None)
        drawn = np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=1)
        return np.asarray(drawn.astype(self._code_type))

    # measure

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        code = self._read(code, rows)
        parts = [score_labels(b.shape, b.unary, b.pairs, code[b.nodes]) for b in self._score_blocks(w, rows)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        code = self._read(code, rows)
        losses = self._loss_table()[self._positions(rows)]
        return np.asarray(np.add.reduceat(losses[np.arange(code.size), code], self._starts(rows)[:-1]))

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        code, starts = self._read(code, rows), self._starts(rows)
        coef = one_coef_each(coef, starts.size - 1)
        chosen = self._positions(rows)
        places = np.arange(chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen
        unary = np.zeros((self.n_labels, self.table.shape[1]))
        add_rows(self.table, code, places, np.repeat(coef, np.diff(starts)), unary)
        if self._pair_shape is None:
            return self._flat(unary, None)
        pairs, edge_starts = self._edges(rows), starts_of(self.edge_offsets, rows)
        shift, each = (np.repeat(a, np.diff(edge_starts)) for a in (starts[:-1], coef))
        a, b = (code[self.shape.edges[pairs][:, end] + shift] for end in (0, 1))
        values = self.edge_values[pairs]
        if not self._has_tables:
            return self._flat(unary, values.T @ np.where(a == b, each, 0.0))
        k = self.n_labels
        sums = np.zeros((k * k, values.shape[1]))
        add_rows(values, a * k + b, np.arange(a.size), each, sums)
        return self._flat(unary, sums.T.reshape(-1, k, k))

    def _flat(self, unary: Array, pairs: Array | None) -> Array:
        """Sums of features as one vector: of nodes (K, d + 1), and of edges: (q,), or (q, K, K)."""
        out = np.zeros(self.n_params)
        views = self._views(out)
        width = views["unary"].shape[1]
        views["unary"][:] = unary[:, :width]
        if "intercept" in views:
            views["intercept"][:] = unary[:, width]
        if pairs is not None:
            if self._is_symmetric:
                low, high = np.triu_indices(self.n_labels)
                pairs = pairs[:, low, high] + np.where(low != high, pairs[:, high, low], 0.0)
            views["pairs"][:] = pairs
        return out

    def units(self) -> Array:
        """The number of known labels of every graph, the denominator of a mean loss."""
        known = self._true_labels(None, unseen=True) != TARGET
        return np.add.reduceat(known.astype(np.float64), self.offsets[:-1])

    # sum

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ_y exp s(y) of every graph."""
        return np.asarray(self.expectations(w, rows, free=0.0).free)

    def tag_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(nodes, K): probabilities of labels; where ``is_given``, of those that agree with y."""
        starts = self._starts(rows)
        nodes = np.empty((int(starts[-1]), self.n_labels))
        mask = self._agreeing(rows) if is_given else None
        self._sum(w, rows, np.zeros(starts.size - 1), nodes, mask=mask)
        return nodes

    def expectations(
        self,
        w: Array,
        rows: Rows = None,
        *,
        free: Any = None,
        label: Any = None,
        truth: Any = None,
        power: float = 1.0,
        augmented: bool = False,
    ) -> Expectations:
        """See `tacit.oracle.capabilities.SumsOutputs`: unknown labels stand for all that are allowed."""
        starts = self._starts(rows)
        n = starts.size - 1
        coefs, has_features = spread_coefficients(n, free, label, truth)
        total = np.zeros(self.n_params)
        logs: list[Array | None] = []
        nodes = np.empty((int(starts[-1]), self.n_labels))
        chosen = self._positions(rows)
        for at, coef in enumerate(coefs):
            if coef is None:
                logs.append(None)
                continue
            mask = None if at == 0 else self._agreeing(rows)
            extra = self._loss_table()[chosen] if augmented and at == 0 else None
            found, pairs = self._sum(w, rows, coef, nodes, mask, power, extra)
            logs.append(found)
            if coef.any():
                unary = (nodes * np.repeat(coef, np.diff(starts))[:, None]).T @ self.table[chosen].astype(np.float64)
                total += self._flat(unary, pairs)
        return Expectations(logs[0], logs[1], logs[2], total if has_features else None)

    def _sum(
        self,
        w: Array,
        rows: Rows,
        coef: Array,
        nodes: Array,
        mask: Array | None = None,
        power: float = 1.0,
        extra: Array | None = None,
    ) -> tuple[Array, Array | None]:
        """Log-partitions, probabilities of labels in ``nodes``, and the sum of features of edges."""
        logs, k = np.empty(coef.size), self.n_labels
        total = (
            None if self._pair_shape is None else np.zeros((self.edge_values.shape[1], *((k, k) * self._has_tables)))
        )
        for b in self._score_blocks(w, rows, mask, extra):
            pairs = Pairs(power * b.pairs.agreement, power * b.pairs.tables, b.pairs.kinds)
            agreeing, sums = np.zeros(len(b.shape.edges)), np.zeros(b.pairs.tables.shape)
            shape = b.shape.starts, b.shape.edges, b.shape.order, b.shape.parents
            sum_forests(*shape, power * b.unary, *pairs, coef[b.out], logs[b.out], nodes[b.nodes], agreeing, sums)
            if total is None or not agreeing.size:
                continue
            if not self._has_tables:
                total += self.edge_values[b.edges].T @ agreeing
            else:
                values = self.kind_values if self._shares_tables else self.edge_values[b.edges]
                total += np.tensordot(values, sums, axes=(0, 0))
        return logs, total

    # views and facts

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same data with the unknown labels of a code; None leaves them unknown."""
        return self if hidden is None else self._with(_labels=self._complete(hidden), _present=None)

    def with_loss(self, losses: LossTable) -> Self:
        n = int(self.offsets[-1])
        table, column = check_losses(losses, self.n_labels, n, n)
        return self._with(_losses=np.ascontiguousarray((table if column is None else table[:, column]).T))

    def _complete(self, code: Array) -> Array:
        given = self._true_labels(None)
        return np.where(given < 0, self._read(code), given)

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: the nodes with a known label and the edges between them; None
        where some label is never known, as that of hidden states."""
        given = self._true_labels(None)
        known = given >= 0
        if known.all() or np.unique(given[known]).size < self.n_labels:
            return None
        shape, inside, owner = keep_nodes(self.shape, known)
        view = self._recut(
            shape.starts,
            edge_offsets=shape.edge_starts,
            shape=shape,
            table=self.table[known],
            edge_values=self.edge_values[inside],
            _labels=given[known],
            _losses=self._loss_table()[known],
            _possible=None if self._possible is None else self._possible[known],
            _allowed=None,
            _present=None,
        )
        view._set_kinds()
        return KnownPart(view, owner)

    def hidden_unknown(self) -> Array:
        return np.flatnonzero(np.logical_or.reduceat(self._agreeing(None).sum(axis=1) > 1, self.offsets[:-1]))

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly; ten sweeps of messages."""
        per_edge = self.n_labels ** (2 if self._has_tables else 1)
        return float(self.table.size * self.n_labels + 40.0 * len(self.edge_values) * per_edge)

    def digest(self) -> str:
        return checksum(
            *(self.table, self.edge_values, self.shape.edges, self.offsets, self.edge_offsets, self._possible),
            *(self._labels, self._allowed, self._present, self._losses),
        )

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        tags = read_tags(labels, np.diff(self._starts(rows)))
        found = find_labels(self.classes, tags.values)
        wrong = np.flatnonzero(tags.missing | (found < 0))
        if wrong.size:
            raise ValueError(f"label {wrong[0]} of these graphs is missing or unknown; a code needs complete labels")
        return found.astype(self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Ragged, None]:
        return Ragged(self.classes[self._read(code, rows)], self._starts(rows)), None

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        code = self._read(code, rows)
        if self._possible is None:
            return True
        return bool(self._possible[self._positions(rows)][np.arange(code.size), code].all())

    # parts

    @property
    def _is_symmetric(self) -> bool:
        return self._pair_shape is not None and len(self._pair_shape) == 2

    def _edges(self, rows: Rows) -> Any:
        return positions_of(self.edge_offsets, rows)

    def _agreeing(self, rows: Rows) -> Array:
        """(nodes, K): the labels that agree with y."""
        given, chosen, k = self._true_labels(rows), self._positions(rows), self.n_labels
        open_labels = np.ones((given.size, k), dtype=bool)
        for mask in (self._possible, self._allowed):
            if mask is not None:
                open_labels &= mask[chosen]
        return np.where((given >= 0)[:, None], given[:, None] == np.arange(k), open_labels)

    def _score_blocks(
        self, w: Array, rows: Rows, mask: Array | None = None, extra: Array | None = None
    ) -> Iterator[Block]:
        """Blocks of graphs with their scores; ``mask`` has the labels that count, ``extra`` is added."""
        views = self._views(w)
        weights = views["unary"]
        if "intercept" in views:
            weights = np.hstack([weights, views["intercept"][:, None]])
        weights = np.ascontiguousarray(weights.T.astype(self._precision, copy=False))
        tables = self._tables(views)
        for out, nodes, part, cuts in self._blocks(rows):
            chosen, edges = self._positions(part), self._edges(part)
            unary = np.ascontiguousarray(
                self.table[chosen].astype(self._precision, copy=False) @ weights, dtype=np.float64
            )
            if extra is not None:
                unary += extra[nodes]
            if self._possible is not None:
                unary[~self._possible[chosen]] = -np.inf
            if mask is not None:
                unary[~mask[nodes]] = -np.inf
            graphs = slice(None) if part is None else part
            shape = self.shape.select(chosen, edges, graphs, cuts, starts_of(self.edge_offsets, part))
            yield Block(out, nodes, edges, shape, unary, self._pairs(views, edges, tables))

    def _tables(self, views: dict[str, Array]) -> Array | None:
        """The scores of pairs by kind of edge, if these are few enough."""
        if not self._has_tables or not self._shares_tables:
            return None
        return self._pair_scores(views, self.kind_values)

    def _pair_scores(self, views: dict[str, Array], values: Array) -> Array:
        weights, k = views["pairs"], self.n_labels
        if self._is_symmetric:
            full = np.empty((len(weights), k, k))
            low, high = np.triu_indices(k)
            full[:, low, high] = full[:, high, low] = weights
            weights = full
        return np.ascontiguousarray((values @ weights.reshape(len(weights), -1)).reshape(-1, k, k))

    def _pairs(self, views: dict[str, Array], edges: Any, tables: Array | None) -> Pairs:
        values, k = self.edge_values[edges], self.n_labels
        if self._pair_shape is None or not len(values):
            return Pairs.potts(np.zeros(len(values)), k)
        if not self._has_tables:
            return Pairs.potts(np.asarray(values @ views["pairs"]), k)
        if tables is not None:
            return Pairs(np.zeros(0), tables, np.ascontiguousarray(self.kinds[edges]))
        return Pairs(np.zeros(0), self._pair_scores(views, values), np.arange(len(values)))

    def _maximise(self, w: Array, rows: Rows, mask: Array | None = None, extra: Array | None = None) -> Labelling:
        starts = self._starts(rows)
        labels = np.empty(int(starts[-1]), dtype=np.int64)
        bounds, sweeps = np.empty(starts.size - 1), np.zeros(starts.size - 1, dtype=np.int64)
        for b in self._score_blocks(w, rows, mask, extra):
            labels[b.nodes], bounds[b.out], sweeps[b.out] = best_labels(b.shape, b.unary, b.pairs)
        return Labelling(labels, bounds, sweeps)

    def _assign(self, found: Labelling) -> Assignment:
        return Assignment(found.labels.astype(self._code_type), found.bounds)

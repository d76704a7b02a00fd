"""Inference over graphs of regions: minimum cuts for two labels, messages with upper bounds for more."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, checksum, positions_of, starts_of
from tacit.data.kernels import kernel
from tacit.data.labels import find_labels
from tacit.data.ragged import Ragged
from tacit.oracle import TARGET, Assignment, LossTable, Schema
from tacit.oracle.capabilities import KnownPart, ScalesLoss
from tacit.oracle.cells import one_coef_each
from tacit.oracle.losses import check_losses
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.oracle.slack_search import LossLevels, sum_levels
from tacit.problems.graph import inference
from tacit.problems.graph.inference import Pairs, Shape, keep_nodes
from tacit.problems.row_sums import add_rows
from tacit.vision.regions.cuts import best_labels, best_within_limits, cover, label_values, violations
from tacit.vision.regions.graphs import RegionGraphs
from tacit.vision.regions.labels import read_region_labels


class RegionOracle(PartsOracle):
    """The best labels of regions; a code is one label per region.

    Two labels have an exact minimum cut. With more, `predict` and `predict_augmented` give labels and upper bounds of
    their scores, as graphs do (`tacit.problems.graph`); imputation uses the labels alone.

    Parameters
    ----------
    images : the graphs
    table : (regions, d) their features, every row times the region's share of its image's area
    schema : labels and dimensions
    pair_table : (pairs, q) features of the pairs
    labels : (regions,) the true labels, −1 for unknown, K for a label that is not in the schema; None when predicting
    limits : (n, K, 2) the least and the largest share of every label; None for no limits
    allowed : (regions, K) the labels that regions of unknown label may have; None for all
    losses : ``table[label, region]``
    loss : "area" or "overlap", the loss that is measured against other labels
    weak : factor of all images with unknown regions together, relative to the others
    """

    nouns = Nouns("Regions", "images", "region")
    completes_labels = True
    measures_completed = True
    """`measured_against` changes the loss even where it does not need the hidden labels."""

    def __init__(
        self,
        images: RegionGraphs,
        table: Array,
        schema: Schema,
        pair_table: Array,
        *,
        labels: Array | None = None,
        limits: Array | None = None,
        allowed: Array | None = None,
        losses: Array | None = None,
        loss: str = "area",
        weak: float = 1.0,
    ) -> None:
        super().__init__(
            schema, images.offsets, len(schema.classes), labels=labels, losses=losses, precision=table.dtype
        )
        self.shares = images.shares
        self.table = np.ascontiguousarray(table)
        self.pair_table = np.ascontiguousarray(pair_table, dtype=np.float64)
        self.shape = Shape.of(images.offsets, images.edge_offsets, images.edges)
        self.edge_offsets = images.edge_offsets
        self.weak = weak
        self._loss_kind = loss
        self._finds_bounds = self.n_labels > 2 and "pairwise" in schema.blocks
        if self._finds_bounds:
            self.slack_obstacle = "its inference is not exact with more than two labels"
        self._limits = limits
        self._allowed = allowed
        if labels is not None and limits is not None:
            self._refuse_impossible(labels, limits)

    @property
    def loss_needs_hidden(self) -> bool:
        """The overlap with the truth is undefined while a part of the truth is unknown."""
        is_open = self._labels is not None and bool((self._labels == TARGET).any())
        return self._loss_kind == "overlap" and is_open

    @property
    def gives_bounds(self) -> bool:
        """See `tacit.oracle.capabilities.BoundsMaximum`: whether there are more than two labels, and a cycle."""
        return self._finds_bounds and not bool(self.shape.is_forest.all())

    # maximise

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        if self._finds_bounds:
            return self._find_bounds(self._scores(w, rows), w, rows)
        scores, costs = self._scores(w, rows), self._costs(w, rows)
        return self._answer(best_labels(self._graphs(rows), scores, costs), w, rows)

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        losses, graphs = self._loss_table()[self._positions(rows)], self._graphs(rows)
        if factor is not None:
            losses = losses * np.repeat(factor, np.diff(graphs.starts))[:, None]
        if self._finds_bounds:
            return self._find_bounds(self._scores(w, rows) + losses, w, rows)
        found = self._answer(best_labels(graphs, self._scores(w, rows) + losses, self._costs(w, rows)), w, rows)
        loss = self.loss(found.code, rows)
        return Assignment(found.code, found.value + (loss if factor is None else factor * loss))

    def _find_bounds(self, scores: Array, w: Array, rows: Rows) -> Assignment:
        """Labels of a high score, and upper bounds of the highest; ``scores`` are changed."""
        costs, graphs = self._costs(w, rows), self._graphs(rows)
        found = inference.best_labels(graphs, scores, Pairs.potts(costs, self.n_labels))
        owner = np.repeat(np.arange(len(graphs.starts) - 1), np.diff(graphs.edge_starts))
        total = np.bincount(owner, costs, len(graphs.starts) - 1)
        return Assignment(found.labels.astype(self._code_type), found.bounds - total)

    @property
    def lacks(self) -> tuple[type, ...]:
        """Capabilities that are missing: multiples of the loss need exact inference."""
        return (ScalesLoss,) if self.slack_obstacle else ()

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`."""
        losses = self._loss_table()[self._positions(rows)]
        return sum_levels(losses, np.arange(len(losses)), self._starts(rows))

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        """The best labels that agree with the known ones and meet the limits.

        With limits this is solved approximately: ``prefer`` is kept where it is allowed and not worse, so repeated
        imputation never lowers a score.
        """
        given, graphs = self._true_labels(rows), self._graphs(rows)
        scores = self._rule_out(self._scores(w, rows), given, rows)
        costs, limits = self._costs(w, rows), self._limits
        limits = limits if limits is None or rows is None else limits[rows]
        shares = self.shares[self._positions(rows)]
        if limits is None:
            code, miss = best_labels(graphs, scores, costs), np.zeros(len(graphs.starts) - 1)
        else:
            code = best_within_limits(graphs, scores, costs, shares, limits)
            miss = violations(shares, code, graphs.starts, limits)
        found = self._answer(code, w, rows)
        if prefer is None:
            return found
        prefer = np.asarray(prefer)
        wished = np.maximum(prefer, 0)
        value = self.score(w, wished, rows)
        is_free = given < 0
        if self._allowed is not None:
            is_free &= self._allowed[self._positions(rows)][np.arange(given.size), wished]
        fits = np.logical_and.reduceat((prefer >= 0) & (is_free | (prefer == given)), graphs.starts[:-1])
        if limits is not None:
            fits &= violations(shares, wished, graphs.starts, limits) <= miss
        keep = fits & (value >= found.value)
        kept = np.repeat(keep, np.diff(graphs.starts))
        code = np.where(kept, prefer, found.code).astype(self._code_type)
        return Assignment(code, np.where(keep, value, found.value))

    def draw(self, rng: np.random.Generator) -> Array:
        """The known labels, and random ones for the unknown."""
        given = self._true_labels(None)
        scores = self._rule_out(rng.random((given.size, self.n_labels)) * self.shares[:, None], given, None)
        found = scores.argmax(axis=1)
        if self._limits is not None:
            nothing = np.zeros(len(self.pair_table))
            found = best_within_limits(self._graphs(None), scores, nothing, self.shares, self._limits)
        return np.asarray(found.astype(self._code_type))

    # measure

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        code = self._read(code, rows)
        return label_values(self._graphs(rows), self._scores(w, rows), self._costs(w, rows), code)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        code, starts = self._read(code, rows), self._graphs(rows).starts
        losses = self._loss_table()[self._positions(rows)]
        return np.add.reduceat(losses[np.arange(code.size), code], starts[:-1])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        code, graphs = self._read(code, rows), self._graphs(rows)
        coef = one_coef_each(coef, len(graphs.starts) - 1)
        chosen = self._positions(rows)
        places = np.arange(chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen
        unary = np.zeros((self.n_labels, self.table.shape[1]))
        add_rows(self.table, code, places, np.repeat(coef, np.diff(graphs.starts)), unary)
        out = np.zeros(self.n_params)
        views = self._views(out)
        width = views["unary"].shape[1]
        views["unary"][:] = unary[:, :width]
        if "intercept" in views:
            views["intercept"][:] = unary[:, width]
        if "pairwise" in views:
            values = self.pair_table[self._pairs(rows)]
            _add_contrasts(graphs.starts, graphs.edge_starts, graphs.edges, values, code, coef, views["pairwise"])
        return out

    def units(self) -> Array:
        """What a mean loss is taken over: the share of every image of which something is known."""
        if self._loss_kind == "overlap":
            return np.ones(self.n_samples)
        known = self._true_labels(None, unseen=True) != TARGET
        if self._allowed is not None:
            known |= ~self._allowed.all(axis=1)
        return np.add.reduceat(self.shares * known, self.offsets[:-1])

    # views and facts

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same data with the unknown labels of a code; None leaves them unknown."""
        return self if hidden is None else self._with(_labels=self._complete(hidden))

    def with_loss(self, losses: LossTable) -> Self:
        n = int(self.offsets[-1])
        table, column = check_losses(losses, self.n_labels, n, n)
        return self._with(_losses=np.ascontiguousarray((table if column is None else table[:, column]).T))

    def measured_against(self, code: Array | None = None, *, posterior: Array | None = None) -> Self:
        """The same data with the loss measured against complete labels."""
        if code is None:
            raise ValueError("Regions needs a code to measure losses against, not a posterior")
        full = self._complete(code)
        return self._with(_losses=region_losses(self._loss_kind, full, self.shares, self.offsets, self.n_labels))

    def _complete(self, code: Array) -> Array:
        """The known labels, and those of a code where they are unknown."""
        given = self._true_labels(None)
        return np.where(given < 0, self._read(code), given)

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: the images with all labels known; without such images, the
        regions with a known label, and the pairs between them."""
        given = self._true_labels(None)
        is_open = np.logical_or.reduceat(given < 0, self.offsets[:-1])
        if not is_open.any() or not (given >= 0).any():
            return None
        regions = given >= 0 if is_open.all() else np.repeat(~is_open, np.diff(self.offsets))
        return KnownPart(*self._cut_out(regions))

    def hidden_unknown(self) -> Array:
        return np.flatnonzero(np.logical_or.reduceat(self._true_labels(None) < 0, self.offsets[:-1]))

    def open_parts(self) -> Array:
        return np.flatnonzero(self._true_labels(None) < 0)

    def sample_factors(self) -> Array:
        """See `tacit.oracle.capabilities.WeighsSamples`."""
        factors = np.ones(self.n_samples)
        unknown = self.hidden_unknown()
        n_known = self.n_samples - unknown.size
        if unknown.size and n_known:
            factors[unknown] = self.weak * n_known / unknown.size
        return factors

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly; a cut takes about a hundred per pair of neighbours."""
        return float(self.table.size * self.n_labels + 100.0 * len(self.pair_table) * max(1, self.n_labels - 1))

    def digest(self) -> str:
        return checksum(
            *(self.table, self.pair_table, self.shape.edges, self.offsets, self.edge_offsets),
            *(self._labels, self._limits, self._losses),
            *(() if self._allowed is None else (self._allowed,)),
        )

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        tags = read_region_labels(labels, np.diff(self._graphs(rows).starts))
        found = find_labels(self.classes, tags.values)
        wrong = np.flatnonzero(tags.missing | (found < 0))
        if wrong.size:
            raise ValueError(f"label {wrong[0]} of these images is missing or unknown; a code needs complete labels")
        return found.astype(self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Ragged, None]:
        return Ragged(self.classes[self._read(code, rows)], self._graphs(rows).starts), None

    # parts

    def _pairs(self, rows: Rows) -> Any:
        return positions_of(self.edge_offsets, rows)

    def _graphs(self, rows: Rows) -> Shape:
        if rows is None:
            return self.shape
        cuts = self._starts(rows), starts_of(self.edge_offsets, rows)
        return self.shape.select(self._positions(rows), self._pairs(rows), rows, *cuts)

    def _scores(self, w: Array, rows: Rows) -> Array:
        """(regions, K): a fresh table in double precision."""
        views = self._views(w)
        weights = views["unary"]
        if "intercept" in views:
            weights = np.hstack([weights, views["intercept"][:, None]])
        table = self.table[self._positions(rows)].astype(self._precision, copy=False)
        return np.ascontiguousarray(table @ weights.astype(self._precision, copy=False).T, dtype=np.float64)

    def _costs(self, w: Array, rows: Rows) -> Array:
        """The cost of different labels of the two regions of a pair."""
        views = self._views(w)
        pairs = self.pair_table[self._pairs(rows)]
        if "pairwise" not in views:
            return np.zeros(len(pairs))
        weights = views["pairwise"]
        if weights.size and weights.min() < 0:
            raise ValueError(
                f"weights of pairs must not be negative for minimum cuts, got {weights.min():g}; bound them with "
                "tacit.penalties.Quadratic(lower={'pairwise': 0})"
            )
        return np.asarray(pairs @ weights)

    def _answer(self, code: Array, w: Array, rows: Rows) -> Assignment:
        return Assignment(code.astype(self._code_type), self.score(w, code, rows))

    def _rule_out(self, scores: Array, given: Array, rows: Rows) -> Array:
        scores[(given[:, None] >= 0) & (given[:, None] != np.arange(self.n_labels))] = -np.inf
        if self._allowed is not None:
            scores[(given[:, None] < 0) & ~self._allowed[self._positions(rows)]] = -np.inf
        return scores

    def _refuse_impossible(self, labels: Array, limits: Array) -> None:
        """Refuse limits that contradict the known labels."""
        k = self.n_labels
        given = np.where(labels >= 0, np.minimum(labels, k), k)
        least = cover(self.shares, given, self.offsets, k + 1)
        is_free = np.repeat((labels < 0)[:, None], k, axis=1)
        if self._allowed is not None:
            is_free &= self._allowed
        free = np.add.reduceat(self.shares[:, None] * is_free, self.offsets[:-1])
        is_full = ~np.logical_or.reduceat(labels < 0, self.offsets[:-1])  # nothing is left to impute
        low, high = limits[:, :, 0], limits[:, :, 1]
        wrong = (least[:, :k] > high + 1e-6) | (least[:, :k] + free < low - 1e-6)
        wrong |= ((low.sum(axis=1) > 1 + 1e-6) | (high.sum(axis=1) < 1 - 1e-6))[:, None]
        wrong &= ~is_full[:, None]
        if wrong.any():
            i, j = (int(index) for index in np.argwhere(wrong)[0])
            raise ValueError(
                f"the limits of image {i} cannot be met: label {self.classes[j]} must cover {low[i, j]:.1%} to "
                f"{high[i, j]:.1%} of it, but the known regions allow {least[i, j]:.1%} to "
                f"{least[i, j] + free[i, j]:.1%}; correct the limits, or the known regions"
            )

    def _cut_out(self, chosen: Array) -> tuple[Self, Array]:
        """An oracle of these regions and the pairs between them, and the image of each of its samples."""
        shape, inside, owner = keep_nodes(self.shape, chosen)
        labels, shares = self._true_labels(None)[chosen], self.shares[chosen]
        if self._loss_kind == "overlap":
            losses = region_losses("overlap", labels, shares, shape.starts, self.n_labels)
        else:
            losses = self._loss_table()[chosen]
        view = self._recut(
            shape.starts,
            shape=shape,
            edge_offsets=shape.edge_starts,
            table=self.table[chosen],
            shares=shares,
            pair_table=self.pair_table[inside],
            _labels=labels,
            _limits=None,
            _allowed=None,
            _losses=losses,
        )
        return view, owner


MIN_FOREGROUND = 0.02
"""The overlap loss divides by the area of a label, but at least by this share of the image."""


def region_losses(
    kind: str, labels: Array, shares: Array, offsets: Array, k: int, allowed: Array | None = None
) -> Array:
    """(regions, K): what each label of a region adds to the loss; 0 where the true label is unknown (−1), or for "area"
    where it is one of the allowed ones.

    "area" is the share of the image with wrong labels. "overlap" divides it by the share of the true foreground (all
    labels but the first): an upper bound of ``1 − IoU``, and equal to it where all errors are in the true foreground.
    """
    is_known = labels >= 0
    wrong = is_known[:, None] & (np.arange(k) != labels[:, None])
    if kind == "area":
        if allowed is not None:
            wrong |= ~is_known[:, None] & ~allowed
        return np.where(wrong, shares[:, None], 0.0)
    truth = np.where(is_known & (labels < k), labels, 0)
    covered = np.maximum(cover(shares * is_known, truth, offsets, k), MIN_FOREGROUND)
    images = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    one = 1 / covered[images, truth]
    other = 1 / covered[images]
    both = np.where(
        (truth == 0)[:, None], other, np.where(np.arange(k) == 0, one[:, None], 0.5 * (one[:, None] + other))
    )
    return np.where(wrong, shares[:, None] * both, 0.0)


@kernel
def _add_contrasts(
    starts: Array, edge_starts: Array, edges: Array, values: Array, code: Array, coef: Array, out: Array
) -> None:
    """``out −= coef[i] · values[e]`` for every pair e of image i whose two regions differ in their label."""
    for i in range(starts.size - 1):
        for e in range(edge_starts[i], edge_starts[i + 1]):
            if code[starts[i] + edges[e, 0]] != code[starts[i] + edges[e, 1]]:
                for j in range(values.shape[1]):
                    out[j] -= coef[i] * values[e, j]

"""The coreference oracles: left links, by an argmax per mention, and undirected forests, by Prim's algorithm."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, locate
from tacit.oracle import Assignment, Schema
from tacit.oracle.capabilities import Expectations
from tacit.oracle.cells import one_coef_each
from tacit.oracle.sharing import Batch, join_arrays
from tacit.oracle.slack_search import LossLevels, common_unit
from tacit.text.coreference import kernels
from tacit.text.coreference.oracle import NOTHING, RIGHT, LinkOracle, Packed, document_of, owners


class LeftOracle(LinkOracle):
    """Inference over left links; the code of a mention is the slot of its chosen row, 0 for "new"."""

    batches: ClassVar[dict[str, Batch]] = {"link_posterior": Batch(join_arrays, ("w", "rows"))}

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._best(w, rows, np.zeros(4), limit=self.packed.limit)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        self._clusters()
        bonus = np.array([0.0, -np.inf, -np.inf, -np.inf])
        preferred = NOTHING if prefer is None else self.read_preferred(prefer, rows)
        return self._best(w, rows, bonus, known=self._known_links, prefer=preferred)

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        self._clusters()
        return self._best(w, rows, np.outer(1.0 if factor is None else factor, self._kind_losses()))

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        value = np.empty(self.documents(rows).size)
        code = self._read(code, rows)
        kernels.sum_chosen(*self.layout(rows), self.packed.table, self.base, self.pad(w), code, value)
        return value

    def loss(self, code: Array, rows: Rows = None) -> Array:
        self._clusters()
        chosen = self.packed.starts[self._positions(rows)] + self._read(code, rows)
        return np.add.reduceat(self._kind_losses()[self.kind[chosen]], self._starts(rows)[:-1])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        coef = one_coef_each(coef, self.documents(rows).size)
        out = np.zeros(self._weight_positions[-1] + 1)
        code = self._read(code, rows)
        kernels.add_chosen(*self.layout(rows), self.packed.table, self.base, code, coef, out)
        return self.unpad(out)

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
        """See `tacit.oracle.capabilities.SumsOutputs`: a softmax per mention."""
        n = self.documents(rows).size
        coefs = (free, label, truth)
        if label is not None or truth is not None or augmented:
            self._clusters()
        bonus = (power if augmented else 0.0) * self._kind_losses()
        coef = np.array([np.broadcast_to(0.0 if c is None else np.asarray(c, dtype=float), n) for c in coefs])
        out = np.zeros(self._weight_positions[-1] + 1 if coef.any() else 0)
        log, scores = np.empty((3, n)), np.empty(int(self._full.max()))
        kernels.sum_rows(
            *self.layout(rows), self.packed.table, self.base, self.pad(w), self.kind, self._known_links,
            float(power), bonus, coef, log, out, scores,
        )  # fmt: skip
        free_log, label_log, truth_log = (None if c is None else own for c, own in zip(coefs, log, strict=True))
        return Expectations(free_log, label_log, truth_log, self.unpad(out) if out.size else None)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all left links of every document."""
        return cast(Array, self.expectations(w, rows, free=0.0).free)

    def link_posterior(self, w: Array, rows: Rows = None) -> Array:
        """The probability of every row of the documents: of each link, and of "new", under ``p ∝ exp s``."""
        out = np.empty(int(np.sum(self._full[self._positions(rows)])))
        kernels.row_posteriors(*self.layout(rows), self.packed.limit, self.packed.table, self.base, self.pad(w), out)
        return out

    def likeliest_parts(self, w: Array, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.SumsParts`: from left to right, each mention joins the most probable cluster.

        The probability of a cluster is the sum of those of the links to it; the best of them is the link.
        """
        code, value = np.empty(self._starts(rows)[-1], np.int64), np.empty(self.documents(rows).size)
        kernels.likeliest_rows(
            *self.layout(rows), self.packed.limit, self.packed.table, self.base, self.pad(w),
            np.empty(int(self._full.max())), code, value,
        )  # fmt: skip
        return Assignment(code.astype(self._code_type), value)

    def _best_right(self, values: Array) -> Array:
        """The first slot of every mention with its highest value."""
        tops = np.maximum.reduceat(values, self.packed.starts[:-1])
        hits = np.flatnonzero(values == np.repeat(tops, self._full))
        owner = np.repeat(np.arange(tops.size), self._full)[hits]
        first = np.unique(owner, return_index=True)[1]
        return np.asarray(hits[first] - self.packed.starts[:-1])

    def _best(
        self, w: Array, rows: Rows, bonus: Array, *, limit: Any = None, known: Array = NOTHING, prefer: Array = NOTHING
    ) -> Assignment:
        code, value = np.empty(self._starts(rows)[-1], np.int64), np.empty(self.documents(rows).size)
        kernels.best_rows(
            *self.layout(rows), self._full if limit is None else limit, self.packed.table, self.base, self.pad(w),
            self.kind, np.atleast_2d(bonus), known, prefer, code, value,
        )  # fmt: skip
        return Assignment(code.astype(self._code_type), value)

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`: a sum of one cost per mention."""
        self._clusters()
        costs = self._kind_losses()[self.kind]
        worst = np.maximum.reduceat(costs, self.packed.starts[:-1])[self._positions(rows)]
        return _levels(costs, np.add.reduceat(worst, self._starts(rows)[:-1]))

    def _kind_losses(self) -> Array:
        """The loss by kind of row."""
        return np.array([0.0, *self.costs])

    def _count_ways(self) -> Array:
        return self._full

    def _parents(self, code: Array, rows: Rows) -> Array:
        rows_chosen = self.packed.starts[self._positions(rows)] + code
        return np.asarray(self.packed.table[rows_chosen, 1], dtype=np.int64)

    def _code(self, parents: Array, rows: Rows) -> Array:
        slots = self.slots_of(self._own(rows), parents, rows)
        wrong = np.flatnonzero(slots < 0)
        if wrong.size:
            i, m = locate(self._starts(rows), int(wrong[0]))
            raise ValueError(
                f"mention {m} of document {i} must link to an earlier candidate, or to itself if it is new; got "
                f"{parents[wrong[0]]}"
            )
        return slots.astype(self._code_type)

    def _read_known(self, links: Array) -> Array:
        slots = np.where(links >= 0, self._code(np.where(links < 0, self._own(None), links), None), -1)
        chosen = self.packed.starts[:-1] + np.maximum(slots, 0)
        wrong = np.flatnonzero((slots >= 0) & (self.kind[chosen] != 0))
        if wrong.size and self._labels is not None:
            i, m = locate(self.offsets, int(wrong[0]))
            raise ValueError(f"hidden[{i}][{m}] is {links[wrong[0]]}, but y[{i}] has other clusters; correct one")
        return slots


def _levels(costs: Array, most: Array) -> LossLevels:
    """Levels of sums of these costs, all documents alike."""
    least = np.min(costs[costs > 0], initial=np.inf)
    return LossLevels(np.full_like(most, least), most, np.full_like(most, common_unit(costs)))


ROUNDING = 1e-12
"""The largest relative difference of two equal sums in another order."""


class ForestOracle(LinkOracle):
    """Inference over forests; the code of a mention is its parent, itself at the root of a tree.

    The root of every tree that is found is its first mention. The features of a link (i, j) are those of the pair less
    those of "new" for the later mention; a forest without links scores 0.
    """

    remedy = "use links='left', which has sums, or a learner that only needs maxima, such as tacit.LatentSVM"

    def __init__(
        self, packed: Packed, schema: Schema, clusters: Array | None, links: Array | None, costs: tuple[float, ...]
    ) -> None:
        is_link = packed.table[:, 0] != packed.table[:, 1]
        rows = np.flatnonzero(is_link)
        later = owners(packed)[rows]
        earlier = packed.offsets[document_of(packed)[later]] + packed.table[rows, 1]
        order = np.argsort(earlier, kind="stable")
        self._back_rows, self._back_mentions = rows[order], later[order]
        self._back_starts = np.concatenate([[0], np.cumsum(np.bincount(earlier, minlength=packed.n_mentions))])
        super().__init__(packed, schema, clusters, links, costs)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._grow(self._edges(w, rows, np.zeros(4), self.packed.limit), 0.0, rows)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        self._clusters()
        bonus = np.array([0.0, -np.inf, -np.inf, -np.inf])
        best = self._grow(self._edges(w, rows, bonus), -np.inf, rows)
        code, value = best.code.astype(np.int64), best.value
        if prefer is not None:
            preferred = self.read_preferred(prefer, rows)
            fits = self._agrees(preferred, rows)
            score = self.score(w, self._pick(fits, preferred, code, rows), rows)
            keep = fits & (score >= value - ROUNDING * np.maximum(1.0, np.abs(value)))
            code = self._pick(keep, preferred, code, rows)
        if self._known_links.size:
            known = self._known_links[self._positions(rows)]
            code = np.where(known >= 0, known, code)
            value = self.score(w, code, rows)
        return Assignment(code.astype(self._code_type), value)

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        self._clusters()
        missed, wrong, _ = self.costs
        bonus = np.outer(1.0 if factor is None else factor, [-missed, 0.0, wrong - missed, wrong - missed])
        best = self._grow(self._edges(w, rows, bonus), 0.0, rows)
        unlinked = missed * self._links(rows)
        return Assignment(best.code, best.value + (unlinked if factor is None else factor * unlinked))

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`: every missed link costs the same, and so does every wrong one."""
        self._clusters()
        missed, wrong, _ = self.costs
        most = missed * self._links(rows) + (wrong - missed) * (np.diff(self._starts(rows)) - 1.0)
        return _levels(np.array([missed, wrong - missed]), most)

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        later, slots = self._find_links(code, rows)
        return np.add.reduceat(self._row_scores(w, later, slots), self._starts(rows)[:-1])

    def loss(self, code: Array, rows: Rows = None) -> Array:
        self._clusters()
        missed, wrong, _ = self.costs
        later, slots = self._find_links(code, rows)
        kinds = self.kind[self.packed.starts[later] + slots]
        gains = np.where(slots == 0, 0.0, np.where(kinds == RIGHT, -missed, wrong - missed))
        return missed * self._links(rows) + np.add.reduceat(gains, self._starts(rows)[:-1])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        coef = one_coef_each(coef, self.documents(rows).size)
        later, slots = self._find_links(code, rows)
        out = np.zeros(self._weight_positions[-1] + 1)
        each = np.repeat(coef, np.diff(self._starts(rows))) * (slots > 0)
        layout = self._layout_of_links(later)
        for sign, chosen in ((1.0, slots), (-1.0, np.zeros_like(slots))):
            kernels.add_chosen(*layout, self.packed.table, self.base, chosen, sign * each, out)
        return self.unpad(out)

    def _best_right(self, values: Array) -> Array:
        return self._grow(values, -np.inf, None).code

    def _edges(self, w: Array, rows: Rows, bonus: Array, limit: Array | None = None) -> Array:
        """The scores of the links of these documents, by row of the table."""
        edge = np.empty(len(self.packed.table))
        kernels.edge_scores(
            *self.layout(rows), self._full if limit is None else limit, self.packed.table, self.base, self.pad(w),
            self.kind, np.atleast_2d(bonus), edge,
        )  # fmt: skip
        return edge

    def _grow(self, edge: Array, floor: float, rows: Rows) -> Assignment:
        code, value = np.empty(self._starts(rows)[-1], np.int64), np.empty(self.documents(rows).size)
        kernels.grow_forests(
            *self.layout(rows), self.packed.table, self._back_starts, self._back_rows, self._back_mentions, edge,
            floor, code, value,
        )  # fmt: skip
        return Assignment(code.astype(self._code_type), value)

    def _links(self, rows: Rows) -> Array:
        """n − k, the number of links in every document."""
        starts = self._starts(rows)
        return np.diff(starts) - 1.0 - np.maximum.reduceat(self._clusters(rows), starts[:-1])

    def _find_links(self, code: Array, rows: Rows) -> tuple[Array, Array]:
        """The later mention of the link of every mention to its parent, and the slot of the link; 0 for roots."""
        parents = self._read(code, rows)
        first = np.repeat(self.offsets[self.documents(rows)], np.diff(self._starts(rows)))
        own = self._own(rows)
        later, earlier = np.maximum(own, parents), np.minimum(own, parents)
        slots = self.slots_of(later, earlier, rows)
        wrong = np.flatnonzero(slots < 0)
        if wrong.size:
            i, m = locate(self._starts(rows), int(wrong[0]))
            raise ValueError(f"mention {m} of document {i} must link to a candidate, got {parents[wrong[0]]}")
        return first + later, np.where(own == parents, 0, slots)

    def _row_scores(self, w: Array, later: Array, slots: Array) -> Array:
        """The scores of chosen links."""
        value, layout, weights = np.zeros((2, later.size)), self._layout_of_links(later), self.pad(w)
        for out, chosen in zip(value, (slots, np.zeros_like(slots)), strict=True):
            kernels.sum_chosen(*layout, self.packed.table, self.base, weights, chosen, out)
        return np.where(slots > 0, value[0] - value[1], 0.0)

    def _layout_of_links(self, later: Array) -> tuple[Array, Array, Array]:
        """The first arguments of kernels for one link per document, by its later mention."""
        return np.arange(later.size), np.arange(later.size + 1), self.packed.starts[later]

    def _agrees(self, parents: Array, rows: Rows) -> Array:
        """Which documents have links that yield their true clusters."""
        starts = self._starts(rows)
        clusters = self._clusters(rows)
        try:
            made = self.clusters_of(parents, rows)
        except ValueError:  # of one document at least: the others may agree
            if starts.size == 2:
                return np.zeros(1, dtype=bool)
            own = zip(self.documents(rows), pairwise(starts), strict=True)
            return np.concatenate([self._agrees(parents[a:b], np.array([i])) for i, (a, b) in own])
        return np.logical_and.reduceat(made == clusters, starts[:-1])

    def _count_ways(self) -> Array:
        sizes = np.diff(self.packed.offsets)
        return np.repeat(sizes, sizes)

    def _parents(self, code: Array, rows: Rows) -> Array:
        return np.asarray(code, dtype=np.int64)

    def _code(self, parents: Array, rows: Rows) -> Array:
        self._find_links(parents, rows)
        return parents.astype(self._code_type)

    def _read_known(self, links: Array) -> Array:
        known = np.add.reduceat(links >= 0, self.offsets[:-1])
        partly = np.flatnonzero((known > 0) & (known < np.diff(self.offsets)))
        if partly.size:
            raise ValueError(f"hidden[{partly[0]}] has only some links; with links='forest' give all of them, or None")
        rows = np.flatnonzero(known)
        own = links[np.repeat(known > 0, np.diff(self.offsets))]
        self._find_links(own, rows)
        if self._labels is not None:
            wrong = np.flatnonzero(~self._agrees(own, rows))
            if wrong.size:
                i = rows[wrong[0]]
                raise ValueError(f"hidden[{i}] must yield the clusters y[{i}]; correct one of them")
        return links

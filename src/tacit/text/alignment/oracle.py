"""Inference for word alignment: maximum-weight bipartite matchings, many sentence pairs per call.

A code has 1 + I integers per sentence pair of I source words. The first is the label: 0 not parallel, 1 parallel. The
others are the partners of the source words: 0 for none, j + 1 for target word j.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from tacit.data.arrays import Array, Codes, Rows, checksum, positions_of, states_of
from tacit.data.parameters import is_not_negative, number, shorten
from tacit.data.ragged import Ragged
from tacit.oracle import Assignment, Schema
from tacit.oracle.capabilities import KnownPart
from tacit.oracle.cells import label_positions, one_coef_each
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.oracle.slack_search import LossLevels, common_unit
from tacit.text.alignment.links import read_pairs
from tacit.text.alignment.tables import KnownLinks, PairTables, is_unknown, read_known

CLASSES = np.array([-1, 1])
"""Not parallel, and parallel."""


class AlignmentOracle(PartsOracle):
    """Matchings of the words of sentence pairs.

    Parameters
    ----------
    tables : features of the word pairs
    schema : dimensions
    wrong_link : loss of a link that is not possible; a missed sure link costs 1
    labels : (n,) 0 for not parallel, 1 for parallel; None when predicting
    known : the gold links
    """

    nouns = Nouns("Alignment", "sentence pairs", "position")
    labels_parts = False

    def __init__(
        self,
        tables: PairTables,
        schema: Schema,
        *,
        wrong_link: float,
        labels: Array | None = None,
        known: KnownLinks | None = None,
    ) -> None:
        n_values = int(tables.shapes[:, 1].max()) + 1
        super().__init__(schema, code_offsets(tables.shapes), n_values, labels=labels, precision=tables.values.dtype)
        self.tables = tables
        self.wrong_link = wrong_link
        self.scale = 1.0 / np.sqrt(tables.shapes.prod(axis=1))
        self._rows = _table_rows(tables)
        self._links = read_known(None, tables) if known is None else known

    # maximise

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        best = self._match(self._scores(w, rows), rows)
        return self._better_label(best.value + w[-1], np.zeros(best.value.size), best.code, rows)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        chosen = self._samples(rows)
        is_parallel = self._true_labels(rows) == 1
        is_known = self._links.is_known[chosen]
        cells = self._cells(rows)
        scores = self._scores(w, rows)
        # sure links come first, whatever their score: as many of them as a matching can have
        sizes = self.tables.shapes[chosen]
        owner = np.repeat(np.arange(chosen.size), sizes.prod(axis=1))
        heights = np.zeros(chosen.size)
        np.maximum.at(heights, owner, np.abs(scores))
        lift = (1.0 + 2.0 * heights * sizes.min(axis=1))[owner]
        is_sure = self._links.is_sure[cells]
        lifted = np.where(is_known[owner], np.where(is_sure, scores + lift, 0.0), scores)
        code = self._match(lifted, rows).code
        starts = self._starts(rows)
        code[starts[:-1]] = is_parallel
        code[np.repeat(~is_parallel, np.diff(starts))] = 0
        value = self.score(w, code, rows)
        if prefer is not None:
            prefer = np.asarray(prefer)
            fits = self._fits(prefer, rows) & (self.score(w, np.maximum(prefer, 0), rows) >= value)
            code = self._pick(fits, prefer, code, rows)
        return Assignment(code.astype(self._code_type), value)

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`: a wrong label, or missed and wrong links."""
        losses, chosen = self._link_losses(rows, None), self._samples(rows)
        scale, is_known = self.scale[chosen], self._links.is_known[chosen]
        costs = np.array([1.0, self.wrong_link])
        wrong = self.wrong_link * scale * self.tables.shapes[chosen].min(axis=1)
        most = np.maximum(losses.other, losses.parallel + np.where(is_known, wrong, 0.0))
        least = np.where(is_known, costs[costs > 0].min() * scale, 1.0)
        return LossLevels(least, most, np.where(is_known, common_unit(costs) * scale, 1.0))

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        cells = self._cells(rows)
        losses = self._link_losses(rows, cells)
        if factor is not None:
            each = np.repeat(factor, self.tables.shapes[self._samples(rows)].prod(axis=1))
            losses = _Losses(factor * losses.other, factor * losses.parallel, each * losses.cells)
        best = self._match(self._scores(w, rows) + losses.cells, rows)
        return self._better_label(best.value + w[-1] + losses.parallel, losses.other, best.code, rows)

    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        """(rows, 2): 0, and the score of the best matching."""
        if np.isfinite(power):
            raise ValueError(f"matchings cannot be summed over, so power must be inf, got {power}")
        best = self._match(self._scores(w, rows), rows)
        return np.column_stack([np.zeros(best.value.size), best.value + w[-1]])

    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        best = self._match(self._scores(w, rows), rows)
        is_parallel = label_positions(labels, best.value.size, 2) == 1
        value = np.where(is_parallel, best.value + w[-1], -np.inf)
        return self._better_label(value, np.where(is_parallel, -np.inf, 0.0), best.code, rows)

    def draw(self, rng: np.random.Generator) -> Array:
        """The true labels with random links, as many as a matching can have; known links stay."""
        return self._impute_by(rng.random((self.tables.slots.size, 1)))

    def _impute_by(self, scores: Array) -> Array:
        """The true labels with the best links by these scores of the word pairs, a table of one column."""
        view = self._with(tables=self.tables._replace(values=scores), n_params=2, _precision=scores.dtype)
        return view.impute(np.array([1.0, 0.0])).code

    def proposals(self, most: int) -> list[Array]:
        """One start, from features that are higher in parallel sentences: see `tacit.oracle.capabilities`.

        Per feature, the mean over source words of the largest value is compared between the two labels. The
        differences, in standard deviations, are the weights of the imputation.
        """
        truth = self._true_labels(None)
        if most < 1 or truth.all() or not truth.any():
            return []
        tables = self.tables
        values = tables.values.astype(np.float64, copy=False)
        order = np.argsort(tables.slots, kind="stable")
        word = np.concatenate([[0], np.cumsum(tables.shapes[:, 0])])
        owner = np.repeat(np.arange(self.n_samples), np.diff(tables.offsets))
        row = word[owner] + (tables.slots - tables.bases[owner]) // tables.shapes[owner, 1]
        firsts = np.flatnonzero(np.diff(row[order], prepend=-1))
        best = np.maximum.reduceat(values[order], firsts, axis=0)
        each = owner[order][firsts]
        sums: Array = np.stack([np.bincount(each, column, minlength=self.n_samples) for column in best.T], axis=1)
        means = sums / np.bincount(each, minlength=self.n_samples)[:, None]
        deviation = means.std(axis=0)
        lift = means[truth == 1].mean(axis=0) - means[truth == 0].mean(axis=0)
        weights = np.where(deviation > 1e-12, lift / np.maximum(deviation, 1e-12), 0.0)
        scale = values.std(axis=0)
        weights = np.where(scale > 1e-12, weights / np.maximum(scale, 1e-12), 0.0)
        return [self._impute_by(((values - values.mean(axis=0)) @ weights)[:, None])]

    # measure

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        links = self._read_links(code, rows)
        table = self.tables.values[links.rows].astype(self._precision, copy=False)
        scores = (table @ self._link_weights(w)).astype(np.float64)
        total = np.bincount(links.owner, scores, minlength=links.labels.size) * self.scale[self._samples(rows)]
        return np.asarray(total + w[-1] * links.labels)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        links = self._read_links(code, rows)
        losses = self._link_losses(rows, None)
        cells = self._cell_losses(links.cells, self._samples(rows)[links.owner])
        parallel = losses.parallel + np.bincount(links.owner, cells, minlength=links.labels.size)
        return np.maximum(np.where(links.labels == 1, parallel, losses.other), 0.0)

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        links = self._read_links(code, rows)
        coef = one_coef_each(coef, links.labels.size)
        each = (coef * self.scale[self._samples(rows)])[links.owner]
        out = np.empty(self.n_params)
        out[:-1] = each @ self.tables.values[links.rows].astype(np.float64, copy=False)
        out[-1] = float((coef * links.labels).sum())
        return out

    # views

    def with_hidden(self, hidden: Any) -> Self:
        return self._with(_links=read_known(hidden, self.tables))

    def with_loss(self, losses: Any) -> Self:
        """The same sentence pairs with another `wrong_link`."""
        return self._with(wrong_link=number("losses", losses, "the loss of a wrong link, from 0", is_not_negative))

    def hidden_unknown(self) -> Array:
        is_open = ~self._links.is_known | self._links.is_open
        return np.flatnonzero((self._true_labels(None) == 1) & is_open)

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: the sentence pairs with links, and those that are not parallel."""
        truth = self._true_labels(None)
        chosen = np.flatnonzero(self._links.is_known | (truth == 0))
        if not self._links.is_known.any() or chosen.size == self.n_samples:
            return None
        return KnownPart(self.part(chosen), chosen)

    def part(self, chosen: Array) -> Self:
        """An oracle of some of the sentence pairs."""
        tables, known = self.tables, self._links
        rows, offsets = states_of(tables.offsets, chosen)
        cells, bases = states_of(tables.bases, chosen)
        shift = np.repeat(bases[:-1] - tables.bases[chosen], np.diff(offsets))
        own = PairTables(tables.values[rows], offsets, tables.shapes[chosen], bases, tables.slots[rows] + shift)
        return self._recut(
            code_offsets(own.shapes),
            tables=own,
            scale=self.scale[chosen],
            _rows=_table_rows(own),
            _labels=self._true_labels(None)[chosen],
            _links=KnownLinks(
                *(array[cells if array is known.is_sure or array is known.is_possible else chosen] for array in known)
            ),
        )

    def digest(self) -> str:
        return checksum(*self.tables, self._labels, *self._links, np.array(self.wrong_link))

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly: for scores and for matchings."""
        return float(self.tables.bases[-1]) * float(self.tables.values.shape[1] + 50)

    # codes

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        chosen, starts = self._samples(rows), self._starts(rows)
        labels = list(labels)
        entries = [None] * chosen.size if hidden is None else list(hidden)
        if len(labels) != chosen.size or len(entries) != chosen.size:
            sizes = f"{len(labels)} labels and {len(entries)} entries of hidden"
            raise ValueError(f"{sizes} for {chosen.size} sentence pairs; give one of each per pair")
        code = np.zeros(starts[-1], dtype=self._code_type)
        for k, (i, label, entry) in enumerate(zip(chosen.tolist(), labels, entries, strict=True)):
            if label not in (-1, 1):
                raise ValueError(f"label {k} must be 1 (parallel) or -1 (not parallel), got {shorten(label)}")
            if label == -1:
                continue
            if is_unknown(entry):
                raise ValueError(f"the links of sentence pair {k} are missing; only complete outputs have a code")
            pairs = read_pairs(entry)
            if (pairs >= self.tables.shapes[i]).any() or any(np.unique(column).size < len(pairs) for column in pairs.T):
                raise ValueError(
                    f"the links {shorten(pairs.tolist())} are not a matching of the {self.tables.shapes[i].tolist()} "
                    f"words of sentence pair {k}; a word has at most one partner"
                )
            code[starts[k]] = 1
            code[starts[k] + 1 + pairs[:, 0]] = pairs[:, 1] + 1
        self._read_links(code, rows)
        return code

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Ragged]:
        links = self._read_links(code, rows)
        counts = np.bincount(links.owner, minlength=links.labels.size)
        pairs = np.column_stack([links.source, links.target])
        return self.classes[links.labels], Ragged(pairs, np.concatenate([[0], np.cumsum(counts)]))

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        self._read_links(code, rows)
        return True

    def _read_links(self, code: Array, rows: Rows) -> _LinkList:
        """The links of a code, checked, as they index the table."""
        chosen, starts, code = self._samples(rows), self._starts(rows), self._read(code, rows)
        labels = code[starts[:-1]]
        is_link = code > 0
        is_link[starts[:-1]] = False
        linked = np.flatnonzero(is_link)
        owner = np.searchsorted(starts, linked, side="right") - 1
        source, target = linked - starts[owner] - 1, code[linked] - 1
        width = self.tables.shapes[chosen, 1][owner]
        if labels.max(initial=0) > 1 or (target >= width).any() or not labels[owner].all():
            raise ValueError("a code must have labels 0 or 1, and links to words of its sentence pair")
        cells = self.tables.bases[chosen][owner] + source * width + target
        marks = owner * (int(width.max(initial=0)) + 1) + target
        if np.unique(marks).size < marks.size:
            raise ValueError("a code must not link two source words to the same target word")
        found = self._rows[cells]
        if (found < 0).any():
            raise ValueError("a code must only link word pairs that have a row in X")
        return _LinkList(labels, owner, source, target, cells, found)

    # parts

    def _link_weights(self, w: Array) -> Array:
        """The weights of the features of a link: all but the intercept."""
        if w.shape != (self.n_params,):
            raise ValueError(f"w must have shape ({self.n_params},), got {w.shape}")
        return w[:-1].astype(self._precision, copy=False)

    def _scores(self, w: Array, rows: Rows) -> Array:
        """The scores of the word pairs of these rows; 0 for word pairs that are not in the table."""
        weights = self._link_weights(w)
        tables = self.tables
        own, chosen = positions_of(tables.offsets, rows), self._samples(rows)
        scores = tables.values[own].astype(self._precision, copy=False) @ weights
        lengths = np.diff(tables.offsets)[chosen]
        bases = np.concatenate([[0], np.cumsum(tables.shapes[chosen].prod(axis=1))])
        slots = tables.slots[own] + np.repeat(bases[:-1] - tables.bases[chosen], lengths)
        dense = np.zeros(bases[-1])
        dense[slots] = scores * np.repeat(self.scale[chosen], lengths)
        return dense

    def _match(self, dense: Array, rows: Rows) -> Assignment:
        """The best matching of every sentence pair, with scores above 0 only."""
        chosen, starts = self._samples(rows), self._starts(rows)
        shapes = self.tables.shapes[chosen]
        code, value = np.zeros(starts[-1], dtype=np.int64), np.zeros(chosen.size)
        gains = np.maximum(dense, 0.0)
        if not np.isfinite(gains.sum()):
            raise FloatingPointError("the scores of links overflow; scale the features, or lower C")
        begin = 0
        for k, (n_source, n_target) in enumerate(shapes.tolist()):
            matrix = gains[begin : begin + n_source * n_target].reshape(n_source, n_target)
            begin += n_source * n_target
            source, target = linear_sum_assignment(matrix, maximize=True)
            won = matrix[source, target]
            kept = won > 0
            code[starts[k] + 1 + source[kept]] = target[kept] + 1
            value[k] = won.sum()
        code[starts[:-1]] = 1
        return Assignment(code, value)

    def _better_label(self, parallel: Array, other: Array, code: Array, rows: Rows) -> Assignment:
        """The better label, with the links of ``code`` if that is "parallel"; ties go to "not parallel"."""
        is_parallel = parallel > other
        code[np.repeat(~is_parallel, np.diff(self._starts(rows)))] = 0
        return Assignment(code.astype(self._code_type), np.where(is_parallel, parallel, other))

    def _link_losses(self, rows: Rows, cells: Any) -> _Losses:
        truth, chosen = self._true_labels(rows), self._samples(rows)
        known = self._links
        missed = known.most[chosen] * self.scale[chosen]
        is_known = known.is_known[chosen]
        other = np.where(truth == 1, np.where(is_known, missed, 1.0), 0.0)
        parallel = np.where(truth == 1, np.where(is_known, missed, 0.0), 1.0)
        each = np.zeros(0)
        if cells is not None:
            sizes = self.tables.shapes[chosen].prod(axis=1)
            each = self._cell_losses(cells, np.repeat(chosen, sizes))
        return _Losses(other, parallel, each)

    def _cell_losses(self, cells: Any, owner: Array) -> Array:
        """What each link adds to the loss: −1 if it is sure, `wrong_link` if it is not possible."""
        known = self._links
        change = np.where(known.is_sure[cells], -1.0, np.where(known.is_possible[cells], 0.0, self.wrong_link))
        # word pairs without a row are never linked
        return np.asarray(np.where(known.is_known[owner] & (self._rows[cells] >= 0), change, 0.0) * self.scale[owner])

    def _fits(self, code: Array, rows: Rows) -> Array:
        """Which rows of a code have the true label and the known links."""
        chosen, starts = self._samples(rows), self._starts(rows)
        links = self._read_links(np.maximum(code, 0), rows)
        whole = np.minimum.reduceat(code, starts[:-1]) >= 0
        fits = whole & (links.labels == self._true_labels(rows))
        sure = np.bincount(links.owner, self._links.is_sure[links.cells], minlength=chosen.size)
        every = np.bincount(links.owner, minlength=chosen.size)
        is_known = self._links.is_known[chosen] & (links.labels == 1)
        return np.asarray(fits & (~is_known | ((sure == every) & (sure == self._links.most[chosen]))))

    def _samples(self, rows: Rows) -> Array:
        return np.arange(self.n_samples) if rows is None else np.arange(self.n_samples)[rows]

    def _cells(self, rows: Rows) -> Any:
        return positions_of(self.tables.bases, rows)


def code_offsets(shapes: Array) -> Array:
    """Where the sentence pairs begin in a code."""
    return np.concatenate([[0], np.cumsum(1 + shapes[:, 0])])


def _table_rows(tables: PairTables) -> Array:
    """The row of every word pair in the table of features, −1 if it has none."""
    rows = np.full(tables.bases[-1], -1)
    rows[tables.slots] = np.arange(tables.slots.size)
    return rows


class _Losses(NamedTuple):
    """The loss of "not parallel", of "parallel" without links, and what each link adds to the latter."""

    other: Array
    parallel: Array
    cells: Array


class _LinkList(NamedTuple):
    """The label of every row, and the links with their rows of the table."""

    labels: Array
    owner: Array
    source: Array
    target: Array
    cells: Array
    rows: Array

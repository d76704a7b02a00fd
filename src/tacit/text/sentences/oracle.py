"""Inference over documents: the best sentences for either label, many documents per call.

A code has one integer per row of a document's table: the label (0 or 1) for the first row, which is the document, and
whether it is chosen for every sentence.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self, cast

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, Codes, Rows, checksum, states_of
from tacit.data.labels import find_labels, is_missing
from tacit.data.parameters import entries, even_table, is_list, is_whole, shorten
from tacit.data.ragged import Ragged
from tacit.data.table import cut_rows
from tacit.oracle import Assignment, LossTable, Schema
from tacit.oracle.capabilities import KnownPart
from tacit.oracle.cells import label_positions, one_coef_each
from tacit.oracle.losses import check_losses
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.oracle.slack_search import LossLevels, sum_levels
from tacit.text.sentences.kernels import choose_best, choose_within

SIGNS = np.array([-1.0, 1.0])


class Budget(NamedTuple):
    """How much is chosen: ``counts`` sentences per document, or sentences of at most ``words`` words by ``lengths``."""

    counts: Any
    lengths: Any
    words: Any

    def of(self, rows: Any, chosen: Array) -> Budget:
        if self.counts is not None:
            return Budget(self.counts[chosen], None, None)
        return Budget(None, self.lengths[rows], self.words[chosen])


class SentencesOracle(PartsOracle):
    """The best sentences of documents.

    Parameters
    ----------
    documents : a table per document, the first row the document itself
    schema : classes and dimensions
    budget : how many sentences are chosen
    scale : (n,) factors of the sums over sentences
    labels : (n,) indices of the true labels, 2 for one that is not in the training data; None when predicting
    losses : by label
    hidden : (rows,) 1 for chosen sentences, 0 for others, −1 in documents where they are unknown
    """

    nouns = Nouns("Sentences", "documents", "row")
    labels_parts = False

    def __init__(
        self,
        documents: Ragged,
        schema: Schema,
        *,
        budget: Budget,
        scale: Array,
        labels: Array | None = None,
        losses: LossTable | None = None,
        hidden: Array | None = None,
    ) -> None:
        checked = None if losses is None else check_losses(losses, 2, len(documents), len(documents))
        super().__init__(schema, documents.offsets, 2, labels=labels, losses=checked, precision=documents.values.dtype)
        self.table = documents.values
        self.budget = budget
        self.scale = scale
        self._sparse = sparse.issparse(self.table)
        self._hidden = np.full(int(self.offsets[-1]), -1, dtype=np.int8) if hidden is None else hidden

    # maximise

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._better(self._options(w, rows), rows)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        options = self._options(w, rows)
        labels = self._true_labels(rows)
        own, starts = self._positions(rows), self._starts(rows)
        code = self._pick(labels == 1, options.chosen[1], options.chosen[0], rows)
        known = self._hidden[own]
        code = np.where(known >= 0, known, code).astype(np.int8)
        code[starts[:-1]] = labels
        value = self._score_code(options.scores, code, rows)
        if prefer is not None:
            prefer = np.asarray(prefer)
            read = self._read(np.maximum(prefer, 0), rows).astype(np.int8)
            agrees = (prefer >= 0) & ((known < 0) | (prefer == known))
            agrees[starts[:-1]] = prefer[starts[:-1]] == labels
            fits = np.logical_and.reduceat(agrees, starts[:-1]) & self._fits_budget(read, rows)
            fits &= self._score_code(options.scores, read, rows) >= value
            code = self._pick(fits, read, code, rows)
        return Assignment(code, value)

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`: of two labels, only the wrong one has a loss."""
        losses = self._label_losses(rows).T
        return sum_levels(losses, np.arange(len(losses)), np.arange(len(losses) + 1))

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        options = self._options(w, rows)
        losses = self._label_losses(rows)
        losses = losses if factor is None else factor * losses
        return self._better(options._replace(value=options.value + losses), rows)

    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        """(rows, 2): the score of either label with its best sentences."""
        if np.isfinite(power):
            raise ValueError(f"choices of sentences cannot be summed over, so power must be inf, got {power}")
        return self._options(w, rows).value.T

    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        options = self._options(w, rows)
        positions = label_positions(labels, options.value.shape[1], 2)
        other = np.where(positions == np.arange(2)[:, None], options.value, -np.inf)
        return self._better(options._replace(value=other), rows)

    def draw(self, rng: np.random.Generator) -> Array:
        """The true labels with random sentences; known sentences stay."""
        noise = rng.random(int(self.offsets[-1]))
        chosen = self._choose(noise, None)[0]
        code = np.where(self._hidden >= 0, self._hidden, chosen).astype(np.int8)
        code[self.offsets[:-1]] = self._true_labels(None)
        return code

    # measure

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        return self._score_code(self._row_scores(w, rows), self._read(code, rows), rows)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        labels = self._read(code, rows)[self._starts(rows)[:-1]]
        return self._label_losses(rows)[labels, np.arange(labels.size)]

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        return self._sum(self._coefficients(code, coef, rows), rows)

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """See `tacit.oracle.capabilities.SumsDifferences`: one product instead of two."""
        return self._sum(self._coefficients(code, coef, rows) - self._coefficients(target, coef, rows), rows)

    def sentence_scores(self, w: Array, rows: Rows = None) -> tuple[Array, Array]:
        """Polarity and subjectivity of every row: what it adds to the second class, and to its choice."""
        scores = self._row_scores(w, rows)
        each = np.repeat(self.scale[self._samples(rows)], np.diff(self._starts(rows)))
        return scores.polarity * each, scores.subjectivity * each

    # views

    def with_hidden(self, hidden: Any) -> Self:
        return self._with(_hidden=self.read_hidden(hidden))

    def with_loss(self, losses: LossTable) -> Self:
        return self._with(_losses=check_losses(losses, 2, self.n_samples, self.n_samples))

    def hidden_unknown(self) -> Array:
        self._true_labels(None)
        n_chosen = 0 if self.budget.counts is None else self.budget.counts
        is_open = np.diff(self.offsets) - 1 > n_chosen  # there is more than one choice
        return np.flatnonzero(is_open & (np.maximum.reduceat(self._hidden, self.offsets[:-1]) < 0))

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: the documents with known sentences."""
        unknown = np.zeros(self.n_samples, dtype=bool)
        unknown[self.hidden_unknown()] = True
        if unknown.all() or not unknown.any() or not (self._hidden >= 0).any():
            return None
        chosen = np.flatnonzero(~unknown)
        rows, offsets = states_of(self.offsets, chosen)
        losses = self._losses or LossTable(np.zeros((2, 1)), np.zeros(self.n_samples, np.int64))
        view = self._recut(
            offsets,
            table=self.table[rows],
            budget=self.budget.of(rows, chosen),
            scale=self.scale[chosen],
            _labels=self._true_labels(None)[chosen],
            _hidden=self._hidden[rows],
            _losses=losses.cut(chosen, chosen),
        )
        return KnownPart(view, chosen)

    def digest(self) -> str:
        losses = self._losses or (None, None)
        return checksum(self.table, self.offsets, self.scale, *self.budget, self._labels, self._hidden, *losses)

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly."""
        size = self.table.nnz if self._sparse else self.table.size
        return 3.0 * float(size) + 20.0 * float(self.offsets[-1])

    # codes

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        return bool(self._fits_budget(self._read(code, rows), rows).all())

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self._starts(rows)
        found = find_labels(self.classes, np.asarray(labels))
        if found.shape != (starts.size - 1,) or (found < 0).any():
            raise ValueError(f"labels must be one of {self.classes.tolist()} per document, got {shorten(labels)}")
        code = self.read_hidden(hidden, rows)
        open_ = np.maximum.reduceat(code, starts[:-1]) < 0
        if (open_ & (np.diff(starts) > 1)).any():
            i = int(np.argmax(open_ & (np.diff(starts) > 1)))
            raise ValueError(f"the sentences of document {i} are missing; only complete outputs have a code")
        code = np.maximum(code, 0)
        code[starts[:-1]] = found
        return code

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Ragged]:
        code, starts = self._read(code, rows), self._starts(rows)
        labels = code[starts[:-1]]
        is_chosen = code == 1
        is_chosen[starts[:-1]] = False
        positions = np.flatnonzero(is_chosen)
        owner = np.searchsorted(starts, positions, side="right") - 1
        counts = np.bincount(owner, minlength=labels.size)
        return self.classes[labels], Ragged(positions - starts[owner] - 1, np.concatenate([[0], np.cumsum(counts)]))

    def read_hidden(self, hidden: Any, rows: Rows = None) -> Array:
        """Read lists of chosen sentences as 1 or 0 per row, −1 where they are unknown."""
        starts = self._starts(rows)
        out = np.full(int(starts[-1]), -1, dtype=np.int8)
        if hidden is None:
            return out
        given = entries("hidden", hidden, "a list of the chosen sentences of every document, None if unknown")
        if len(given) != starts.size - 1:
            raise ValueError(f"hidden has {len(given)} entries for {starts.size - 1} documents; give one per document")
        for i, entry in enumerate(given):
            if not is_list(entry) and (is_missing(entry) or (is_whole(entry) and entry == -1)):
                continue
            n = int(starts[i + 1] - starts[i]) - 1
            positions = even_table(f"hidden[{i}]", entry)
            if positions.shape == (0,):
                positions = np.zeros(0, np.int64)
            if positions.ndim != 1 or positions.dtype.kind not in "iu" or ((positions < 0) | (positions >= n)).any():
                raise ValueError(
                    f"hidden[{i}] must be None or a list of chosen sentences, from 0 to {n - 1}, got {shorten(entry)}"
                )
            out[starts[i] : starts[i + 1]] = 0
            out[starts[i] + 1 + positions.astype(np.int64)] = 1
        known = np.maximum(out, 0)
        wrong = (np.maximum.reduceat(out, starts[:-1]) >= 0) & ~self._fits_budget(known, rows)
        if wrong.any():
            i = int(np.argmax(wrong))
            counts, _, words = self._budget_of(rows)
            limit = f"exactly {counts[i]} sentences" if counts is not None else f"at most {words[i]} words"
            raise ValueError(f"hidden[{i}] must choose {limit}, got {shorten(given[i])}")
        return out

    def _budget_of(self, rows: Rows) -> Budget:
        return self.budget.of(self._positions(rows), self._samples(rows))

    def _fits_budget(self, code: Array, rows: Rows) -> Array:
        """Which documents have as many chosen sentences as the budget allows."""
        starts, budget = self._starts(rows), self._budget_of(rows)
        is_sentence = np.ones(code.size, dtype=bool)
        is_sentence[starts[:-1]] = False
        if budget.counts is not None:
            return np.asarray(np.add.reduceat((code == 1) & is_sentence, starts[:-1], dtype=np.int64) == budget.counts)
        words = np.add.reduceat(np.where((code == 1) & is_sentence, budget.lengths, 0), starts[:-1])
        return np.asarray(words <= budget.words)

    # parts

    def _row_scores(self, w: Array, rows: Rows) -> _RowScores:
        views = self._views(w)
        weights = np.column_stack([views["polarity"], views["subjectivity"], views["document"]])
        own = self._positions(rows)
        table = cut_rows(self.table, own) if self._sparse else self.table[own]
        scores = table.astype(self._precision, copy=False) @ weights.astype(self._precision, copy=False)
        polarity, subjectivity, document = np.ascontiguousarray(np.asarray(scores, dtype=np.float64).T)
        return _RowScores(polarity, subjectivity, document[self._starts(rows)[:-1]] + views["intercept"][0])

    def _options(self, w: Array, rows: Rows) -> _Options:
        """The best sentences for either label, and its score with them."""
        scores = self._row_scores(w, rows)
        scale = self.scale[self._samples(rows)]
        chosen, values = [], []
        for sign in SIGNS:
            marks, total = self._choose(sign * scores.polarity + scores.subjectivity, rows)
            chosen.append(marks)
            values.append(scale * total + sign * scores.document)
        return _Options(scores, chosen, np.stack(values))

    def _choose(self, scores: Array, rows: Rows) -> tuple[Array, Array]:
        starts, budget = self._starts(rows), self._budget_of(rows)
        chosen, value = np.zeros(scores.size, dtype=np.int8), np.empty(starts.size - 1)
        if budget.counts is not None:
            choose_best(scores, starts, budget.counts, chosen, value)
        else:
            choose_within(scores, budget.lengths, starts, budget.words, chosen, value)
        return chosen, value

    def _better(self, options: _Options, rows: Rows) -> Assignment:
        """The better label with its sentences; ties go to the first."""
        starts = self._starts(rows)
        labels = (options.value[1] > options.value[0]).astype(np.int8)
        code = self._pick(labels == 1, options.chosen[1], options.chosen[0], rows)
        code[starts[:-1]] = labels
        return Assignment(code, options.value.max(axis=0))

    def _score_code(self, scores: _RowScores, code: Array, rows: Rows) -> Array:
        starts = self._starts(rows)
        signs = SIGNS[code[starts[:-1]]]
        each = (np.repeat(signs, np.diff(starts)) * scores.polarity + scores.subjectivity) * (code == 1)
        each[starts[:-1]] = 0.0
        total = self.scale[self._samples(rows)] * np.add.reduceat(each, starts[:-1])
        return np.asarray(total + signs * scores.document)

    def _coefficients(self, code: Array, coef: Array, rows: Rows) -> Array:
        """(rows, 3): the coefficients of every row of the table, by block."""
        code, starts = self._read(code, rows), self._starts(rows)
        coef = one_coef_each(coef, starts.size - 1)
        signs = SIGNS[code[starts[:-1]]]
        sizes = np.diff(starts)
        out = np.zeros((code.size, 3))
        out[:, 1] = np.repeat(coef * self.scale[self._samples(rows)], sizes) * (code == 1)
        out[starts[:-1], 1] = 0.0
        out[:, 0] = out[:, 1] * np.repeat(signs, sizes)
        out[starts[:-1], 2] = coef * signs
        return out

    def _sum(self, coefficients: Array, rows: Rows) -> Array:
        own = self._positions(rows)
        table = cut_rows(self.table, own) if self._sparse else self.table[own]
        total = np.asarray(table.T @ coefficients)
        out = np.empty(self.n_params)
        views = self._views(out)
        views["polarity"][:], views["subjectivity"][:], views["document"][:] = total.T
        views["intercept"][:] = coefficients[:, 2].sum()
        return out

    def _label_losses(self, rows: Rows) -> Array:
        """(2, rows)."""
        table, column = cast(LossTable, self._loss_table())
        if column is None:
            return table if rows is None else table[:, rows]
        return table[:, column if rows is None else column[rows]]

    def _samples(self, rows: Rows) -> Any:
        return slice(None) if rows is None else rows


class _RowScores(NamedTuple):
    """Polarity and subjectivity of every row, and the score of every document's own row with the intercept."""

    polarity: Array
    subjectivity: Array
    document: Array


class _Options(NamedTuple):
    """For either label the chosen sentences, and (2, rows) the scores."""

    scores: _RowScores
    chosen: list[Array]
    value: Array

"""The whole oracle of a problem whose outputs can be listed, from three linear maps."""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self, cast

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, check_offsets, positions_of, smallest_integers, span, states_of
from tacit.data.labels import find_labels, reject_unknown
from tacit.data.parameters import shorten
from tacit.oracle import cells
from tacit.oracle.capabilities import KnownPart, ScoresCells
from tacit.oracle.cell_sums import NOTHING, CellSums
from tacit.oracle.cells import label_positions, one_coef_each, take_rows
from tacit.oracle.contracts import TARGET, Assignment, KnownHidden, Oracle
from tacit.oracle.known_hidden import check_hidden, read_hidden
from tacit.oracle.losses import LossTable, PairLoss, Reference, check_losses
from tacit.oracle.task import CellDual


class _Block(NamedTuple):
    out: slice  # where the block's answers go
    rows: Rows  # which samples
    starts: Array  # how the block's states are cut


class EnumerableOracle(CellSums):
    """An oracle over cells (label, state): sample i owns states ``offsets[i]`` to ``offsets[i + 1]``, under each label.

    A subclass defines `scores`, its transpose `adjoint`, and `gather`; also `digest` if fits are to be resumed from
    checkpoints. Scores of cells that do not exist are −inf. The code of an output is ``state · n_labels + label``, with
    the state counted within the sample. Scores are computed for blocks of samples, about `block_cells` cells at a time,
    so memory stays bounded. Cost: O(cells) per pass beside the scores.

    Parameters
    ----------
    classes : labels as the user writes them
    offsets : (n + 1,) where each sample's states begin
    n_params : length of w
    labels : (n,) position of y_i in classes, `len(classes)` for a label never seen; None when predicting
    hidden : what is known of the state of each sample, as `read_hidden` takes it: the state, −1 where it is unknown, or
        those that are allowed; None for nothing
    losses : the loss of every output; None when predicting
    hidden_loss : a loss that depends on the hidden value, instead of ``losses``: it is measured against ``hidden``;
        when predicting, a function that makes it where an entropy needs it
    has_hidden : whether the state means something to the user
    """

    code_offsets: Array | None = None
    completes_labels = False
    rescalings: tuple[str, ...] = ("margin", "slack")
    _precision: Any = np.dtype(np.float64)  # of scores; `exact` raises it
    block_cells = 1 << 18
    """Scores computed at a time: a table of this size stays in a core's cache until it has been searched."""

    def __init__(
        self,
        classes: Array,
        offsets: Array,
        n_params: int,
        *,
        labels: Array | None = None,
        hidden: Any = None,
        losses: LossTable | None = None,
        hidden_loss: PairLoss | Callable[[], PairLoss] | None = None,
        has_hidden: bool = True,
    ) -> None:
        offsets = check_offsets(offsets, int(offsets[-1]), "the offsets of an oracle")
        self.classes = classes
        self.offsets = offsets
        self.n_params = n_params
        self.n_samples = offsets.size - 1
        self.n_labels = len(classes)
        self.has_hidden = has_hidden
        self._labels = _check_positions(labels, self.n_samples, self.n_labels)
        self._sizes = np.diff(offsets)
        self._hidden, self._allowed = _as_known(hidden, self._sizes)
        self._hidden_loss = hidden_loss
        self.loss_needs_hidden = hidden_loss is not None
        self._losses = None if losses is None else self._check_losses(losses)
        if hidden_loss is not None and labels is not None:
            self._losses = self._measure_losses(Reference(self._hidden, self._allowed))
        most_states = int(np.max(self._sizes, initial=1))
        self._code_type = smallest_integers(self.n_labels * most_states)
        self.block_states = max(1, self.block_cells // self.n_labels)
        self._whole = list(self._cut(slice(0, self.n_samples)))

    @abstractmethod
    def scores(self, w: Array, rows: Rows = None) -> Array:
        """(n_labels, states of the rows): the score of every cell, label-major, C-contiguous."""

    @abstractmethod
    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        """Σ over cells of V[label, state] Ψ(cell): the transpose of `scores`, of length n_params."""

    @abstractmethod
    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i Ψ(x_i, labels_i, states_i), one cell per row, states counted within the sample."""

    def with_hidden(self, hidden: Any) -> Self:
        """The same data with these hidden values known (−1: unknown)."""
        view = copy.copy(self)
        view._hidden, view._allowed = _as_known(hidden, np.diff(self.offsets))
        if self._hidden_loss is not None and self._labels is not None:
            view._losses = self._measure_losses(Reference(view._hidden, view._allowed))
        return view

    def _measure_losses(self, reference: Reference) -> LossTable:
        if self._labels is None or self._hidden_loss is None or callable(self._hidden_loss):
            raise ValueError("a loss on the hidden value needs labels: bind with y")
        table = self._hidden_loss.table(self.n_labels, self.offsets, self._labels, reference)
        return self._check_losses(LossTable(table, None))

    def _check_losses(self, losses: LossTable) -> LossTable:
        return check_losses(losses, self.n_labels, self.n_samples, int(self.offsets[-1]))

    def digest_arrays(self) -> tuple[Array | None, ...]:
        """The labels, known hidden values and losses as arrays: what a subclass includes in its `digest`."""
        table = self._losses or (None, None)
        known = self._labels, self._hidden, self._allowed, *table
        if self._hidden_loss is None or callable(self._hidden_loss) or self._labels is None:
            return known
        return *known, *self._hidden_loss.digest_arrays(self.n_labels, self.offsets, self._labels)

    def with_loss(self, losses: LossTable) -> Self:
        """The same data under another loss."""
        view = copy.copy(self)
        view._losses = self._check_losses(losses)
        return view

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        nothing = LossTable(np.zeros((self.n_labels, 1)), np.zeros(self.n_samples, np.int64))
        return self._argmax(w, rows, nothing)

    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        if rescaling not in ("margin", "slack"):
            raise ValueError(f"rescaling must be 'margin' or 'slack', got {shorten(rescaling)}")
        anchor = None
        if rescaling == "slack":
            if target is None:
                raise ValueError("slack rescaling needs a target: give target=codes, for example from `impute`")
            anchor = self.score(w, target, rows)
        return self._argmax(w, rows, self._loss_table(), anchor=anchor, rivals=rivals)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        labels = self._known_labels(rows)
        n = labels.size
        known = take_rows(self._hidden, rows)
        preferred = np.full(n, -1) if prefer is None else self._preferred_states(prefer, labels, rows)
        state, value = np.empty(n, np.int64), np.empty(n)
        for out, part, starts in self._blocks(rows):
            allowed = self._allowed_states(part)
            scores = self._check_scores(w, part, starts)
            cells.best_states(scores, starts, labels[out], known[out], allowed, preferred[out], state[out], value[out])
        return Assignment(self._join(labels, state), value)

    def known_labels(self) -> Array:
        """The position of every true label among the classes; an error where there is none."""
        return self._known_labels(None)

    def labels_of(self, code: Array) -> Array:
        """The position of the label of every output of a code among the classes."""
        return self.split(code)[0]

    def in_user_order(self, values: Array, labels: Array) -> Array:
        """Numbers by state as numbers by hidden value, in the order in which users count these under the labels."""
        return values

    def draw(self, rng: np.random.Generator) -> Array:
        """Codes with the true labels, hidden values drawn uniformly from those that are possible; known ones stay."""
        labels = self._known_labels(None)
        there = self._possible(labels, None)
        firsts = self.offsets[:-1]
        sizes = np.diff(self.offsets)
        rank = (rng.random(self.n_samples) * np.add.reduceat(there, firsts)).astype(np.int64)
        before = np.cumsum(there) - there
        hit = there & (before - np.repeat(before[firsts], sizes) == np.repeat(rank, sizes))
        state = np.where(self._hidden >= 0, self._hidden, np.flatnonzero(hit) - firsts)
        return self._join(labels, state)

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: the samples whose state is given, or the only one there is."""
        is_open = np.zeros(self.n_samples, dtype=bool)
        is_open[self.hidden_unknown()] = True
        if self._labels is None or not is_open.any():
            return None
        view = self.with_hidden(None)
        was_open = view.hidden_unknown()
        if is_open[was_open].all():  # none of those that could be unknown is known
            return None
        return KnownPart(cast(Oracle, self), np.where(is_open, -1, np.arange(self.n_samples)))

    def existing(self, labels: Array, rows: Rows = None) -> Array | None:
        """Which states of the rows exist under these labels, one per row: one boolean per state, or None for all.

        By default this scores at w = 0 and looks for −inf; a subclass that knows which cells exist overrides it.
        """
        parts = [np.empty(0, dtype=bool)]
        for out, part, starts in self._blocks(rows):
            scores = self._check_scores(np.zeros(self.n_params), part, starts)
            own = np.repeat(labels[out], np.diff(starts))
            parts.append(scores[own, np.arange(scores.shape[1])] > -np.inf)
        return np.concatenate(parts)

    def _possible(self, labels: Array, rows: Rows) -> Array:
        """Which states exist under these labels and are allowed."""
        there = self.existing(labels, rows)
        allowed = self._allowed_states(rows)
        if there is None:
            n_states = self.states(rows)
            size = n_states.stop - n_states.start if isinstance(n_states, slice) else len(n_states)
            there = np.ones(size, dtype=bool)
        return there & allowed if allowed.size else there

    def _allowed_states(self, rows: Rows) -> Array:
        """Which states of the rows are allowed; empty where none is ruled out."""
        return NOTHING if self._allowed is None else self._allowed[self.states(rows)]

    def best_hidden(self, w: Array, code: Array, k: int, rows: Rows = None) -> Assignment:
        """(n, k) codes and scores of the best hidden values under the labels of ``code``; −1 and −inf past the last."""
        labels = self.split(code, rows)[0]
        n = self._count(rows)
        codes, values = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf)
        for out, part, starts in self._blocks(rows):
            scores = self._check_scores(w, part, starts)
            for i, (a, b) in enumerate(itertools.pairwise((starts - starts[0]).tolist()), out.start):
                row = scores[labels[i], a:b]
                order = np.argsort(-row, kind="stable")[:k]
                order = order[row[order] > -np.inf]
                codes[i, : order.size] = order * self.n_labels + labels[i]
                values[i, : order.size] = row[order]
        return Assignment(codes, values)

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        label, state = self.split(code, rows)
        value = np.empty(label.size)
        for out, part, starts in self._blocks(rows):
            scores = self._check_scores(w, part, starts)
            value[out] = scores[label[out], starts[:-1] - starts[0] + state[out]]
        return value

    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.ScoresLabels`."""
        open_ = np.full(self._count(rows), -1)
        labels = label_positions(labels, open_.size, self.n_labels)
        state, value = np.empty(open_.size, np.int64), np.empty(open_.size)
        for out, part, starts in self._blocks(rows):
            scores = self._check_scores(w, part, starts)
            cells.best_states(scores, starts, labels[out], open_[out], NOTHING, open_[out], state[out], value[out])
        return Assignment(self._join(labels, state), value)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        label, state = self.split(code, rows)
        table, column = self._loss_table()
        if column is not None:
            return np.asarray(table.take(label * table.shape[1] + take_rows(column, rows)))
        return np.asarray(table[label, take_rows(self.offsets[:-1], rows) + state])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        label, state = self.split(code, rows)
        return self.gather(label, state, one_coef_each(coef, label.size), rows)

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if code.shape != (self.n_samples,) or code.dtype.kind != "i":
            return False
        return bool(((code >= TARGET) & (code < self.n_labels * np.diff(self.offsets))).all())

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        labels = np.asarray(labels)
        found = find_labels(self.classes, labels)
        reject_unknown(found, self.classes, labels)
        sizes = take_rows(np.diff(self.offsets), rows)
        state = np.zeros(found.size, np.int64)
        if self.has_hidden and hidden is not None:
            state = check_hidden(hidden, sizes)
            unknown = np.flatnonzero(state < 0)
            if unknown.size:
                raise ValueError(f"hidden[{unknown[0]}] is unknown (-1); only a complete output can be encoded")
        elif self.has_hidden and (sizes > 1).any():
            raise ValueError(f"sample {np.argmax(sizes > 1)} has {sizes.max()} hidden values: give hidden=")
        return self._join(found, state)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        label, state = self.split(code, rows)
        return self.classes[label], (state if self.has_hidden else None)

    def states(self, rows: Rows) -> Any:
        """The states of the chosen samples: a slice where the samples are consecutive, else an array."""
        return positions_of(self.offsets, rows)

    @property
    def operations(self) -> float:
        """Multiplications per pass, roughly: they decide into how many blocks the rows are cut."""
        return float(self.offsets[-1]) * self.n_params

    def dual(self, weights: Array, target: Array, start: Mapping[str, Any] | None = None) -> CellDual:
        """The dual point of a task with these c_i and targets, all weight on the targets, or that of ``start``."""
        return CellDual(cast(ScoresCells, self), weights, target, start)

    def loss_rows(self) -> tuple[Array, Array]:
        """The loss by state: ``table[column[state], label]``."""
        table, column = self._loss_table()
        if column is None:
            return np.ascontiguousarray(table.T), np.arange(table.shape[1])
        return np.ascontiguousarray(table.T), np.repeat(column, np.diff(self.offsets))

    def exact(self) -> Self:
        if self._precision == np.float64:
            return self
        view = copy.copy(self)
        view._precision = np.dtype(np.float64)
        return view

    def hidden_unknown(self) -> Array:
        several = np.flatnonzero((np.diff(self.offsets) > 1) & (self._hidden < 0))
        if self._labels is None or not several.size:
            return several
        labels = np.minimum(self._labels[several], self.n_labels - 1)
        if self.existing(labels[:1], several[:1]) is None and self._allowed is None:
            return several
        sizes = np.diff(self.offsets)[several]
        choices = np.add.reduceat(self._possible(labels, several), np.cumsum(sizes) - sizes)
        return several[choices > 1]

    def _argmax(
        self, w: Array, rows: Rows, losses: LossTable, *, anchor: Array | None = None, rivals: bool = False
    ) -> Assignment:
        n = self._count(rows)
        label, state, value = np.empty(n, np.int64), np.zeros(n, np.int64), np.empty(n)
        if not self.has_hidden and losses.column is not None and anchor is None and not rivals:
            columns = take_rows(losses.column, rows)
            for out, part, starts in self._blocks(rows):
                cells.best_labels(
                    self._check_scores(w, part, starts), losses.table, columns[out], label[out], value[out]
                )
            return Assignment(self._join(label, state), value)
        left_out = self._known_labels(rows) if rivals else np.full(n, -1)
        table, column = losses
        columns = left_out if column is None else take_rows(column, rows)
        anchors = value if anchor is None else anchor
        for out, part, starts in self._blocks(rows):
            cells.best_cells(
                self._check_scores(w, part, starts),
                starts,
                table if column is not None else np.ascontiguousarray(table[:, self.states(part)]),
                columns[out],
                column is None,
                anchor is not None,
                anchors[out],
                left_out[out],
                label[out],
                state[out],
                value[out],
            )
        return Assignment(self._join(label, state), value)

    def _blocks(self, rows: Rows) -> Iterator[_Block]:
        return iter(self._whole) if rows is None else self._cut(rows)

    def _cut(self, rows: slice | Array) -> Iterator[_Block]:
        """Blocks of consecutive entries of ``rows`` with at most `block_states` states, at least one sample each."""
        if isinstance(rows, slice):
            first, last = span(rows, self.n_samples)
            starts = self.offsets[first : last + 1]
        else:
            rows = np.asarray(rows)
            starts = states_of(self.offsets, rows)[1]
        i, n = 0, starts.size - 1
        while i < n:
            stop = int(np.searchsorted(starts, starts[i] + self.block_states, side="right")) - 1
            stop = min(max(stop, i + 1), n)
            part = slice(first + i, first + stop) if isinstance(rows, slice) else rows[i:stop]
            yield _Block(slice(i, stop), part, starts[i : stop + 1])
            i = stop

    def _count(self, rows: Rows) -> int:
        if rows is None:
            return self.n_samples
        if isinstance(rows, slice):
            first, last = span(rows, self.n_samples)
            return last - first
        return len(rows)

    def _known_labels(self, rows: Rows) -> Array:
        if self._labels is None:
            raise ValueError("these samples were bound without labels: bind(X, y, ...) with y to impute or compare")
        labels = take_rows(self._labels, rows)
        unseen = np.flatnonzero(labels >= self.n_labels)
        if unseen.size:
            i = np.arange(self.n_samples)[slice(None) if rows is None else rows][unseen[0]]
            raise ValueError(f"sample {i} has a label that training never saw; the classes are {self.classes.tolist()}")
        return labels

    def _loss_table(self) -> LossTable:
        if self._losses is None:
            raise ValueError("these samples were bound without labels, which a loss needs: bind with y")
        return self._losses

    def _preferred_states(self, prefer: Array, labels: Array, rows: Rows) -> Array:
        wished, state = self.split(np.maximum(prefer, 0), rows)
        return np.where((np.asarray(prefer) >= 0) & (wished == labels), state, -1)

    def split(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        """Labels (positions among the classes) and states of a code of these rows, checked: kernels index by them."""
        code = np.asarray(code, dtype=np.int64)
        sizes = take_rows(self._sizes, rows)
        if code.shape != sizes.shape:
            raise ValueError(f"code must have one integer per sample ({sizes.size}), got shape {code.shape}")
        label, state = np.empty(code.size, np.int64), np.empty(code.size, np.int64)
        wrong = cells.split_codes(code, sizes, self.n_labels, self.has_hidden, label, state)
        if wrong < 0:
            return label, state
        if code.min() < 0:
            raise ValueError(f"code[{np.argmin(code)}] is {code.min()}: replace TARGET by the target's own code")
        raise ValueError(f"code[{wrong}] is {code[wrong]}, which does not stand for an output of this sample")

    def _check_scores(self, w: Array, rows: Rows, starts: Array) -> Array:
        """The `scores`, their shape checked: kernels rely on it."""
        scores = self.scores(w, rows)
        if scores.shape != (self.n_labels, starts[-1] - starts[0]):
            raise ValueError(
                f"{type(self).__name__}.scores gives the shape {scores.shape} for {self.n_labels} labels and "
                f"{starts[-1] - starts[0]} states; it must give (labels, states)"
            )
        return scores

    def _join(self, label: Array, state: Array) -> Array:
        if not self.has_hidden:
            return label.astype(self._code_type)
        code = np.empty(label.size, self._code_type)
        cells.join_codes(label, state, self.n_labels, code)
        return code


def _check_positions(labels: Array | None, n: int, n_labels: int) -> Array | None:
    """Refuse labels that are not positions among the classes, or one behind them: kernels use them as indices."""
    if labels is None:
        return None
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be {n} positions among the classes, got {shorten(labels)}")
    if n and not 0 <= labels.min() <= labels.max() <= n_labels:
        raise ValueError(f"labels must be from 0 to {n_labels}, got {labels.min()} to {labels.max()}; see find_labels")
    return labels


def _as_known(hidden: Any, sizes: Array) -> KnownHidden:
    """What is known of the hidden values: None for nothing, or whatever `read_hidden` takes."""
    if hidden is None:
        return KnownHidden(np.full(sizes.size, -1))
    if not isinstance(hidden, KnownHidden):
        return read_hidden(hidden, sizes)
    hidden.check(sizes)
    return hidden

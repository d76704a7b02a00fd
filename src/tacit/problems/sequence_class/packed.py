"""Sequences with one label each, packed for inference: token scores of every label, known states, losses, codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.parameters import entries, even_table, shorten
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.oracle import TARGET, Assignment, LossTable, Schema
from tacit.oracle.cells import take_rows
from tacit.oracle.losses import check_losses
from tacit.oracle.parts import Nouns
from tacit.problems.chain.forward_backward import sum_paths
from tacit.problems.chain.moments import path_moments
from tacit.problems.chain.tokens import EXTRA, TokenOracle
from tacit.problems.chain.viterbi import viterbi


class Topology(NamedTuple):
    """Which paths exist: the same for all labels.

    ``pairs[i, j]`` says whether state j may follow state i; ``first`` and ``last`` say in which states a path may
    begin and end.
    """

    pairs: Array
    first: Array
    last: Array

    @property
    def is_free(self) -> bool:
        """Whether all paths exist."""
        return bool(self.pairs.all() and self.first.all() and self.last.all())


class PackedPaths(TokenOracle):
    """What inference reads: the scores of the states of every label for any rows, and what is known of them.

    Parameters
    ----------
    sequences : token features, those of shards read block by block
    schema : labels and dimensions
    topology : which paths exist
    labels : (n,) the position of every true label, the number of labels for one never seen; None when predicting
    losses : of every label, ``table[label, column[i]]``
    known_states : (tokens,) the true states, −1 where unknown; None where all are
    """

    nouns = Nouns("SequenceClass", "sequences", "token")
    labels_parts = False

    def __init__(
        self,
        sequences: Ragged | Shards,
        schema: Schema,
        *,
        topology: Topology,
        labels: Array | None = None,
        losses: LossTable | None = None,
        known_states: Array | None = None,
    ) -> None:
        self.n_states = topology.first.size
        self.topology = topology
        self._is_tied = len(schema.blocks["emission"]) == 2
        n_values = len(schema.classes) * self.n_states
        super().__init__(sequences, schema, n_values, labels)
        self._losses = None if losses is None else self._check_losses(losses)
        self._known_states = known_states

    def _split(self, code: Array, rows: Rows) -> tuple[Array, Array]:
        """The label of every sequence and the state of every token."""
        code, starts = self._read(code, rows), self._starts(rows)
        labels, states = np.divmod(code, self.n_states)
        own = labels[starts[:-1]]
        if (labels != np.repeat(own, np.diff(starts))).any():
            raise ValueError("a code must have one label per sequence; those of its tokens differ")
        return own, states

    def _check_losses(self, losses: LossTable) -> LossTable:
        return check_losses(losses, self.n_labels, self.n_samples, 0)

    def _label_losses(self, rows: Rows) -> Array:
        """(n, labels): the loss of every label."""
        table, column = self._loss_table()
        return np.ascontiguousarray(table[:, take_rows(column, rows)].T)

    def _take_known(self, rows: Rows) -> Array | None:
        return None if self._known_states is None else self._known_states[self._positions(rows)]

    def _known_under(self, labels: Array, truth: Array, known: Array, rows: Rows) -> Array:
        """The known states where these labels are the true ones, −1 elsewhere."""
        return np.where(np.repeat(labels == truth, np.diff(self._starts(rows))), known, TARGET)

    def _zeros(self) -> tuple[Array, Array]:
        k = self.n_states
        return np.zeros((self._n_values, self.table.shape[1])), np.zeros((self.n_labels, k, k))

    def _flat(self, emission: Array, transition: Array) -> Array:
        """The flat vector of sums by label and state."""
        out = np.empty(self.n_params)
        views = self._views(out)
        width = views["emission"].shape[-1]
        own = emission[:, :width].reshape(self.n_labels, self.n_states, width)
        views["emission"][:] = own.sum(axis=0) if self._is_tied else own
        views["transition"][:] = transition
        for column, name in enumerate([name for name in EXTRA if name in views], width):
            views[name][:] = emission[:, column].reshape(self.n_labels, self.n_states)
        return out

    def _columns(self, w: Array, label: int) -> Array:
        """(features, k): the weights of tokens under a label, in the precision of the scores."""
        views = self._views(w)
        emission = views["emission"] if self._is_tied else views["emission"][label]
        extra = [views[name][label][:, None] for name in EXTRA if name in views]
        return np.ascontiguousarray(np.hstack([emission, *extra]).T, dtype=self._precision)

    def _transition(self, w: Array, label: int) -> Array:
        return np.where(self.topology.pairs, self._views(w)["transition"][label], -np.inf)

    def _unary(self, columns: Array, rows: Rows, cuts: Array) -> Array:
        """(tokens, k): the scores of the states of these sequences, −inf where a path cannot begin or end."""
        unary = self._multiply(columns, rows)
        if not self.topology.is_free:
            unary[np.ix_(cuts[:-1], ~self.topology.first)] = -np.inf
            unary[np.ix_(cuts[1:] - 1, ~self.topology.last)] = -np.inf
        return unary

    def _by_label(
        self, w: Array, labels: Array, rows: Rows, known: Array | None = None
    ) -> Iterator[tuple[int, Array, Array, Array, Array]]:
        """The sequences of every label, block by block: label, places among the rows and among their tokens, scores,
        and cuts. Known states are the only ones left."""
        starts, all_rows = self._starts(rows), np.arange(self.n_samples)[slice(None) if rows is None else rows]
        for label in np.unique(labels).tolist():
            own = np.flatnonzero(labels == label)
            columns = self._columns(w, label)
            for out, _, part, cuts in self._blocks(all_rows[own]):
                places = own[out]
                tokens = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in places])
                unary = self._unary(columns, part, cuts)
                if known is not None:
                    self._clamp(unary, known[tokens])
                yield label, places, tokens, unary, cuts

    def _clamp(self, unary: Array, known: Array) -> None:
        unary[(known[:, None] >= 0) & (known[:, None] != np.arange(self.n_states))] = -np.inf

    def _best_paths(self, w: Array, labels: Array, rows: Rows, known: Array | None) -> Assignment:
        starts = self._starts(rows)
        code, value = np.empty(int(starts[-1]), dtype=np.int64), np.empty(starts.size - 1)
        for label, own, tokens, unary, cuts in self._by_label(w, labels, rows, known):
            path, found = self._viterbi(unary, cuts, self._transition(w, label))
            code[tokens], value[own] = label * self.n_states + path, found
        return Assignment(code.astype(self._code_type), value)

    def _viterbi(self, unary: Array, cuts: Array, transition: Array) -> tuple[Array, Array]:
        path, value = np.empty(len(unary), dtype=np.int64), np.empty(cuts.size - 1)
        nothing = np.zeros((1, self.n_states)), np.zeros(len(unary), dtype=np.int64)
        free = np.empty(0, dtype=np.int64), np.zeros((0, self.n_states), dtype=bool)
        viterbi(unary, cuts, transition, *nothing, *free, path, value)
        return path, value

    def _complete(self, affinity: Array) -> Array:
        """The path of every sequence with the highest sum of these numbers, known states kept, under its label."""
        labels, pairs = self._true_labels(None), np.where(self.topology.pairs, 0.0, -np.inf)
        affinity[np.ix_(self.offsets[:-1], ~self.topology.first)] = -np.inf
        affinity[np.ix_(self.offsets[1:] - 1, ~self.topology.last)] = -np.inf
        if self._known_states is not None:
            self._clamp(affinity, self._known_states)
        states = self._viterbi(affinity, self.offsets, pairs)[0]
        code = np.repeat(labels, np.diff(self.offsets)) * self.n_states + states
        return np.asarray(code.astype(self._code_type))

    def _scores_by_label(
        self, w: Array, rows: Rows, known: Array | None, power: float = np.inf, is_mean: bool = False
    ) -> Array:
        """(n, labels): the score of the best path of every label.

        Where ``power`` is finite, ``log Σ exp(power · s)``, or where ``is_mean`` E[s] under ``p ∝ exp(power · s)``.
        """
        values = np.empty((self._starts(rows).size - 1, self.n_labels))
        for out, _, part, cuts in self._blocks(rows):
            nothing, found = np.zeros(cuts.size - 1), np.empty(cuts.size - 1)
            for label in range(self.n_labels):
                unary, pairs = self._scores_under(w, label, part, cuts, known, rows, out)
                if np.isinf(power):
                    found = self._viterbi(unary, cuts, pairs)[1]
                elif is_mean:
                    empty = np.empty((0, 0)), np.empty((0, 0))
                    path_moments(unary, cuts, pairs, power, unary, pairs, 1.0, nothing, found, *empty)
                else:
                    sum_paths(power * unary, cuts, power * pairs, nothing, found, np.zeros(pairs.shape))
                values[out, label] = found
        return values

    def _scores_under(
        self, w: Array, label: int, part: Rows, cuts: Array, known: Array | None, rows: Rows, out: slice
    ) -> tuple[Array, Array]:
        """Scores of tokens and pairs of a block; states that are known not to be true score −inf if the label is."""
        unary = self._unary(self._columns(w, label), part, cuts)
        if known is not None:
            starts = self._starts(rows)
            is_true = np.repeat(self._true_labels(rows)[out] == label, np.diff(cuts))
            self._clamp(unary, np.where(is_true, known[starts[out.start] : starts[out.stop]], TARGET))
        return unary, self._transition(w, label)

    def _log_sums(self, w: Array, rows: Rows, power: float) -> Array:
        """(n, labels): log Σ_h exp(power · s)."""
        return self._scores_by_label(w, rows, None, power)

    def _add_expected(
        self,
        w: Array,
        rows: Rows,
        weights: Array,
        power: float,
        blocks: tuple[Array, Array],
        known: Array | None = None,
        is_mean: bool = False,
    ) -> None:
        """Add ``Σ weights[i, label] · E[Ψ]`` under ``p ∝ exp(power · s)`` to the blocks; where ``is_mean``, the
        gradients of E[s]."""
        emission, transition = blocks
        k = self.n_states
        for out, _, part, cuts in self._blocks(rows):
            for label in np.flatnonzero(weights[out].any(axis=0)).tolist():
                coef, found = np.ascontiguousarray(weights[out, label]), np.empty(cuts.size - 1)
                unary, pairs = self._scores_under(w, label, part, cuts, known, rows, out)
                if is_mean:
                    nodes: Any = np.zeros(unary.shape)
                    path_moments(unary, cuts, pairs, power, unary, pairs, 1.0, coef, found, nodes, transition[label])
                else:
                    nodes = sum_paths(power * unary, cuts, power * pairs, coef, found, transition[label])
                self._add_rows(nodes, part, emission[label * k : (label + 1) * k])

    def _own_log_sums(self, w: Array, labels: Array, rows: Rows, known: Array | None, power: float) -> Array:
        """(n,): log Σ exp(power · s) over the paths of one label per sequence."""
        logs = np.empty(labels.size)
        for label, own, _, unary, cuts in self._by_label(w, labels, rows, known):
            found, pairs = np.empty(own.size), power * self._transition(w, label)
            sum_paths(power * unary, cuts, pairs, np.zeros(own.size), found, np.zeros(pairs.shape))
            logs[own] = found
        return logs


def read_path(hidden: Any, sizes: Array, n_states: int) -> Array:
    """One state per token, as users write them: a Ragged, or a list per sequence; −1 or None where unknown."""
    if isinstance(hidden, Ragged):
        lengths, values = hidden.lengths, np.asarray(hidden.values)
    else:
        paths = entries("hidden", hidden, f"a list with one path per sequence ({sizes.size})", sizes.size)
        pairs = zip(paths, sizes, strict=True)
        rows = [np.full(int(size), -1) if row is None else even_table("a path", row) for row, size in pairs]
        odd = next((row for row in rows if row.dtype.kind not in "biuf"), None)
        if odd is not None:
            raise ValueError(f"hidden must hold whole numbers, −1 where a state is unknown, got {shorten(odd)}")
        lengths = np.array([row.shape[0] if row.ndim == 1 else -1 for row in rows], dtype=np.int64)
        values = np.concatenate(rows) if rows and (lengths >= 0).all() else np.empty(0)
    if lengths.size != sizes.size or (lengths != sizes).any():
        wrong = int(np.argmax(lengths != sizes)) if lengths.size == sizes.size else -1
        where = f"hidden[{wrong}]" if wrong >= 0 else "hidden"
        raise ValueError(f"{where} must have one state per token, −1 where it is unknown; None for a whole sequence")
    if values.dtype.kind not in "iu" or (values < -1).any() or (values >= n_states).any():
        raise ValueError(f"hidden states must be whole numbers from 0 to {n_states - 1}, or −1, got {shorten(values)}")
    return values.astype(np.int64)

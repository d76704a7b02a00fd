"""Sequences packed for inference: token features, weights as tables, known tags and losses, linear maps."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.table import Table
from tacit.oracle import TARGET, Assignment, LossTable, Schema
from tacit.oracle.cells import one_coef_each
from tacit.oracle.losses import check_losses
from tacit.oracle.parts import Nouns
from tacit.oracle.slack_search import LossLevels, sum_levels
from tacit.problems.chain.tags import States
from tacit.problems.chain.tokens import EXTRA, TokenOracle
from tacit.problems.chain.viterbi import add_pairs, path_scores, viterbi
from tacit.problems.row_sums import sum_rows


class PackedChains(TokenOracle):
    """What inference reads: scores of tokens and pairs for any rows, and what is known of their tags and states.

    Parameters
    ----------
    sequences : token features, those of shards read block by block
    schema : tags and dimensions
    allowed : (K, K) which tag may follow which
    labels : (tokens,) the true tags, −1 where missing, K for a tag that is not in the training data; None when
        predicting. Labels with a forbidden pair are refused
    losses : ``table[state, column[token]]``, or ``table[state, token]`` where column is None
    states : the states of the tags; None for one each
    known_states : (tokens,) the true states, −1 where unknown; None where all are
    """

    nouns = Nouns("Chain", "sequences", "token", "tag")

    def __init__(
        self,
        sequences: Ragged | Shards,
        schema: Schema,
        *,
        allowed: Array,
        labels: Array | None = None,
        losses: LossTable | None = None,
        states: States | None = None,
        known_states: Array | None = None,
    ) -> None:
        self.states = States(np.ones(len(schema.classes), dtype=np.int64)) if states is None else states
        self.n_states = self.states.n
        self.completes_labels = self.states.are_tags
        super().__init__(sequences, schema, self.n_states, labels)
        self._kept_columns: dict[str, tuple[Array, Array]] = {}
        self.allowed = allowed
        self._known_states = known_states
        self._losses = None if losses is None else self._check_losses(losses)
        self.costs = np.zeros((0, 0)) if losses is None else losses.table[:, self.states.tag_of].T
        """``costs[state, predicted state]``, the losses of tokens."""
        if labels is not None:
            self._reject_forbidden(labels)

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        value, code = np.empty(self._starts(rows).size - 1), self._read(code, rows)
        transition = self._transition(w)
        for out, tokens, part, starts in self._blocks(rows):
            path_scores(self._unary(w, part), starts, transition, code[tokens], value[out])
        return value

    def loss(self, code: Array, rows: Rows = None) -> Array:
        rows_of_loss, column = self.loss_rows(rows)
        return np.add.reduceat(rows_of_loss[column, self._read(code, rows)], self._starts(rows)[:-1])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        blocks = self._zeros()
        self._add_features(self._read(code, rows), coef, rows, *blocks)
        return self.flat(*blocks)

    def _zeros(self) -> tuple[Array, Array]:
        """Blocks of sums by state, and by pair of states."""
        k = self.n_states
        return np.zeros((k, self.table.shape[1])), np.zeros((k, k))

    def _add_features(self, code: Array, coef: Array, rows: Rows, emission: Array, transition: Array) -> None:
        """Add Σ_i coef_i Ψ(x_i, code_i) to the blocks."""
        starts = self._starts(rows)
        coef = one_coef_each(coef, starts.size - 1)
        sum_rows(self.table, code, self._positions(rows), np.repeat(coef, np.diff(starts)), emission)
        add_pairs(code, starts, coef, transition)

    def parts(self, w: Array) -> tuple[Array, Array]:
        """(K, features) weights of tokens, constant and boundary features last, and (K, K) of pairs."""
        views = self._views(w)
        extra = [views[name][:, None] for name in EXTRA if name in views]
        return np.hstack([views["emission"], *extra]), views["transition"]

    def flat(self, emission: Array, transition: Array) -> Array:
        """The flat vector of these weights: the inverse of `parts`."""
        out = np.empty(self.n_params)
        views = self._views(out)
        width = views["emission"].shape[1]
        views["emission"][:] = emission[:, :width]
        views["transition"][:] = transition
        for column, name in enumerate([name for name in EXTRA if name in views], width):
            views[name][:] = emission[:, column]
        return out

    def loss_rows(self, rows: Rows = None) -> tuple[Array, Array]:
        """Losses by rows: ``table[column[token], tag]``, the column of each token of these rows."""
        table, column = self._loss_table()
        tokens = self._positions(rows)
        if column is None:
            table = np.ascontiguousarray(table[:, tokens].T)
            return table, np.arange(table.shape[0])
        return np.ascontiguousarray(table.T), column[tokens]

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`."""
        return sum_levels(*self.loss_rows(rows), self._starts(rows))

    def _check_losses(self, losses: LossTable) -> LossTable:
        tokens = int(self.offsets[-1])
        return check_losses(losses, self.n_states, tokens, tokens)

    def _unary(self, w: Array, rows: Rows) -> Array:
        """(tokens, K): the emission scores of these sequences, a fresh table in double precision."""
        if isinstance(self.table, Table) and not w.any():  # every fit starts at zero: no rows are needed
            return np.zeros((int(self._starts(rows)[-1]), self.n_states))
        return self._multiply(self._columns(w), rows)

    def _columns(self, w: Array) -> Array:
        """(features, K): the weights of tokens, in the precision of the scores.

        A pass is made in blocks. For a sparse table the weights are transposed in memory, which takes as long as many
        tokens, so those of the last w are kept.
        """
        if not self._sparse:
            return self.parts(w)[0].astype(self._precision, copy=False).T
        last = self._kept_columns.get("last")
        if last is not None and last[1].dtype == self._precision and np.array_equal(last[0], w):
            return last[1]
        columns = np.ascontiguousarray(self.parts(w)[0].T, dtype=self._precision)
        self._kept_columns["last"] = w.copy(), columns
        return columns

    def _transition(self, w: Array) -> Array:
        return np.asarray(np.where(self.allowed, self._views(w)["transition"], -np.inf))

    def _evidence(self, rows: Rows, states: bool = True) -> Array:
        """What is known of every token, as `States.evidence` encodes it; of tags only, unless ``states``."""
        labels = self._true_labels(rows)
        known = self._known_states if states else None
        return self.states.evidence(labels, None if known is None else known[self._positions(rows)])

    def _is_single(self, given: Array) -> Array:
        """Whether the evidence of a token leaves one state."""
        return (given >= 0) & (given < self.n_states)

    def _clamp(self, unary: Array, given: Array) -> None:
        """Rule out the states that contradict the evidence."""
        unary[(given[:, None] >= 0) & ~self.states.possible[given]] = -np.inf

    def _complete(self, unary: Array, given: Array) -> Assignment:
        """The best completion of given tags by scores of single tags; of pairs, only `forbidden` counts."""
        code, value = np.empty(given.size, np.int64), np.empty(self.n_samples)
        nothing, column = np.zeros((1, self.n_states)), np.zeros(given.size, np.int64)
        transition = self._transition(np.zeros(self.n_params))
        viterbi(unary, self.offsets, transition, nothing, column, given, self.states.possible, code, value)
        return Assignment(code.astype(self._code_type), value)

    def _reject_forbidden(self, labels: Array) -> None:
        """Refuse labels that have a forbidden pair, or that no allowed tagging completes."""
        if self.allowed.all():
            return
        known = np.where(labels >= self.n_labels, TARGET, labels)
        value = self._complete(np.zeros((known.size, self.n_states)), self.states.evidence(known)).value
        if not np.isfinite(value).all():
            i = int(np.argmin(value))
            tags = known[self.offsets[i] : self.offsets[i + 1]]
            shown = [self.classes[tag].item() if tag >= 0 else None for tag in tags[:12]]
            raise ValueError(f"y[{i}], {shown}, has a pair of tags that is in forbidden; correct one of the two")

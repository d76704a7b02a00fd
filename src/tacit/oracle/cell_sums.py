"""Sums over cells (label, state): log-partitions, posteriors, Rényi scores, losses measured against posteriors."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self, cast

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle import cells
from tacit.oracle.capabilities import Expectations, Slacks, Visit
from tacit.oracle.cells import NO_LOSSES, spread_coefficients, take_rows
from tacit.oracle.entropies import EntropyCells, Order, read_order
from tacit.oracle.losses import LossTable, PairLoss, Reference
from tacit.oracle.renyi import rule_out

NOTHING = np.empty(0, dtype=bool)
"""Stands for: no state is ruled out."""


class CellSums(ABC):
    """What `tacit.oracle.EnumerableOracle` derives for learners that sum over outputs.

    One block of scores is held at a time. Every gradient is the `adjoint` of a table of weights, one per cell.
    """

    n_params: int
    n_labels: int
    n_outer: int = 1
    """Values of the outer kind of hidden value, where there are two: that of a state is ``state % n_outer``."""
    offsets: Array
    _labels: Array | None
    _hidden: Array
    _hidden_loss: PairLoss | Callable[[], PairLoss] | None
    _losses: LossTable | None
    _sizes: Array
    n_samples: int

    @abstractmethod
    def adjoint(self, V: Array, rows: Rows = None) -> Array: ...

    @abstractmethod
    def states(self, rows: Rows) -> Any: ...

    @abstractmethod
    def _blocks(self, rows: Rows) -> Iterator[Any]: ...

    @abstractmethod
    def _check_scores(self, w: Array, rows: Rows, starts: Array) -> Array: ...

    @abstractmethod
    def _count(self, rows: Rows) -> int: ...

    @abstractmethod
    def _known_labels(self, rows: Rows) -> Array: ...

    @abstractmethod
    def _allowed_states(self, rows: Rows) -> Array: ...

    @abstractmethod
    def _measure_losses(self, reference: Reference) -> LossTable: ...

    @abstractmethod
    def split(self, code: Array, rows: Rows = None) -> tuple[Array, Array]: ...

    @abstractmethod
    def _loss_table(self) -> LossTable: ...

    def visit_cells(self, w: Array, visit: Visit, rows: Rows = None) -> Array:
        """Call a function with the scores of every block; the sum of the `adjoint` of what it returns."""
        total = np.zeros(self.n_params)
        for _, part, starts in self._blocks(rows):
            V = visit(self._check_scores(w, part, starts), starts, part)
            if V is not None:
                total += self.adjoint(V, part)
        return total

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
        """See `tacit.oracle.capabilities.SumsOutputs`."""
        n = self._count(rows)
        coefs, has_features = spread_coefficients(n, free, label, truth)
        logs = [None if c is None else np.empty(n) for c in coefs]
        features = np.zeros(self.n_params) if has_features else None
        needs_label = label is not None or truth is not None
        labels = self._known_labels(rows) if needs_label else np.zeros(n, np.int64)
        known = take_rows(self._hidden, rows)
        for out, part, starts in self._blocks(rows):
            scores = self._check_scores(w, part, starts)
            V = np.zeros_like(scores) if coefs[0] is None else np.empty_like(scores)
            if coefs[0] is not None and logs[0] is not None:
                wished, losses = self._with_losses(scores, part) if augmented else (scores, NO_LOSSES)
                cells.subtract_highest(wished, starts, power, losses, logs[0][out], V)
                np.exp(V, out=V)
                cells.weigh_cells(starts, coefs[0][out], logs[0][out], V)
            for coef, log, is_truth in ((coefs[1], logs[1], False), (coefs[2], logs[2], True)):
                if coef is not None and log is not None:
                    allowed = self._allowed_states(part) if is_truth else NOTHING
                    given = known[out] if is_truth else np.full_like(known[out], -1)
                    cells.weigh_states(scores, starts, power, labels[out], given, allowed, coef[out], log[out], V)
            if features is not None:
                features += self.adjoint(V, part)
        return Expectations(logs[0], logs[1], logs[2], features)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all outputs of every row."""
        log = self.expectations(w, rows, free=0.0).free
        assert log is not None
        return log

    def hidden_posterior(
        self, w: Array, rows: Rows = None, *, power: float = 1.0, labels: Array | None = None
    ) -> Array:
        """See `tacit.oracle.capabilities.GivesPosteriors`."""
        is_true = labels is None
        labels = self._known_labels(rows) if labels is None else np.asarray(labels, dtype=np.int64)
        known = take_rows(self._hidden, rows) if is_true else np.full(labels.size, -1)
        parts = [np.empty(0)]
        for out, part, starts in self._blocks(rows):
            scores = self._check_scores(w, part, starts)
            sizes = np.diff(starts)
            V, log = np.zeros_like(scores, dtype=np.float64), np.empty(sizes.size)
            allowed, ones = self._allowed_states(part) if is_true else NOTHING, np.ones(sizes.size)
            cells.weigh_states(scores, starts, power, labels[out], known[out], allowed, ones, log, V)
            parts.append(V[np.repeat(labels[out], sizes), np.arange(V.shape[1])])
        return np.concatenate(parts)

    def output_posterior(self, w: Array, rows: Rows = None, *, power: float = 1.0) -> Array:
        """See `tacit.oracle.capabilities.GivesPosteriors`."""
        parts: list[Array] = [np.empty((0, self.n_labels))]
        for _, part, starts in self._blocks(rows):
            scores = self._check_scores(w, part, starts)
            V, log = np.empty(scores.shape), np.empty(starts.size - 1)
            cells.subtract_highest(scores, starts, power, NO_LOSSES, log, V)
            np.exp(V, out=V)
            cells.weigh_cells(starts, np.ones(starts.size - 1), log, V)
            parts.append(V.T)
        return np.concatenate(parts)

    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        """See `tacit.oracle.capabilities.ScoresLabels`."""
        value = np.empty((self._count(rows), self.n_labels))
        for out, part, starts in self._blocks(rows):
            scores = self._check_scores(w, part, starts)
            cells.best_by_label(scores, starts, value[out])
            if np.isfinite(power):
                cells.sum_by_label(scores, starts, power, value[out])
        return value

    def renyi_scores(self, w: Array, alpha: Order, rows: Rows = None) -> Array:
        """See `tacit.oracle.capabilities.ScoresEntropy`."""
        values = np.empty((self._count(rows), self.n_labels))
        for out, part, starts in self._blocks(rows):
            values[out] = self.score_entropy(self._check_scores(w, part, starts), starts, part, alpha).values
        return values

    def score_entropy(self, scores: Array, starts: Array, rows: Rows, alpha: Order) -> EntropyCells:
        """The scores of the labels of a block by an entropy, or by that of Rényi of this order."""
        entropy, n_states = read_order(alpha), int(starts[-1] - starts[0])
        if not entropy.takes_kinds:
            return cast(EntropyCells, entropy.score_cells(scores, starts, lambda: self._pair_tables(rows)))
        outer = [(np.arange(n_states) % self.n_outer, self.n_outer)] if len(entropy.orders) > 1 else []
        return cast(EntropyCells, entropy.score_cells(scores, starts, lambda: outer))

    @property
    def has_pair_tables(self) -> bool:
        """Whether there is a loss between the hidden values of a sample that does not depend on labels."""
        return callable(self._hidden_loss) or hasattr(self._hidden_loss, "of")

    def _pair_tables(self, rows: Rows) -> list[Array]:
        """The losses between the hidden values of each of these samples."""
        if callable(self._hidden_loss):
            self._hidden_loss = self._hidden_loss()
        table = cast(Any, self._hidden_loss).of
        return [table(int(i)) for i in np.arange(self.n_samples)[slice(None) if rows is None else rows]]

    def renyi_slacks(
        self, w: Array, coef: Array, alpha: Order, rows: Rows = None, *, rescaling: str = "margin"
    ) -> Slacks:
        """See `tacit.oracle.capabilities.ScoresEntropy`."""
        n = self._count(rows)
        labels = self._known_labels(rows)
        values, features = np.empty(n), np.zeros(self.n_params)
        for out, part, starts in self._blocks(rows):
            found = self.score_entropy(self.possible_scores(w, part, starts), starts, part, alpha)
            losses = self.label_losses(part, starts)
            values[out], weights = choose_rivals(found.values, losses, labels[out], coef[out], rescaling)
            if weights.any():
                features += self.adjoint(found.weigh(starts, weights), part)
        return Slacks(values, features)

    def measured_against(self, code: Array | None = None, *, posterior: Array | None = None) -> Self:
        """The same data, the loss measured against the hidden values of these outputs, or averaged over a
        distribution of them (see `hidden_posterior`); what is known stays known."""
        if self._hidden_loss is None:
            return self
        if (code is None) == (posterior is None):
            raise ValueError("give either code= or posterior= to measure the loss against, not both")
        states = self._hidden if code is None else self.split(code)[1]
        if posterior is not None and np.shape(posterior) != (self.offsets[-1],):
            raise ValueError(f"posterior must have {self.offsets[-1]} entries, got shape {np.shape(posterior)}")
        view = copy.copy(self)
        view._losses = self._measure_losses(Reference(states, None, posterior))
        return view

    def losses_of(self, code: Array) -> Array:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        loss, labels = self._pair_loss()
        return loss.of_outputs(self.n_labels, self.offsets, labels, self.split(code))

    def diversity(self, posterior: Array) -> tuple[Array, Array]:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        loss, labels = self._pair_loss()
        slope = loss.diversity_slope(self.n_labels, self.offsets, labels, posterior)
        return 0.5 * np.add.reduceat(posterior * slope, self.offsets[:-1]), slope

    def posterior_slope(self, w: Array, posterior: Array, values: Array, coef: Array) -> Array:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        labels, sizes = self._known_labels(None), self._sizes
        mean = np.add.reduceat(posterior * values, self.offsets[:-1])
        weights = np.repeat(coef, sizes) * posterior * (values - np.repeat(mean, sizes))
        total = np.zeros(self.n_params)
        for out, part, starts in self._blocks(None):
            own = weights[starts[0] : starts[-1]]
            V = np.zeros((self.n_labels, own.size))
            V[np.repeat(labels[out], np.diff(starts)), np.arange(own.size)] = own
            total += self.adjoint(V, part)
        return total

    def _pair_loss(self) -> tuple[PairLoss, Array]:
        if self._hidden_loss is None or callable(self._hidden_loss) or self._labels is None:
            raise ValueError("this needs a loss on the hidden value, and samples bound with y")
        return self._hidden_loss, self._known_labels(None)

    def possible_scores(self, w: Array, rows: Rows, starts: Array) -> Array:
        """The scores of a block, −inf for cells of the true label whose state is known not to be the true one."""
        return self.rule_out(self._check_scores(w, rows, starts), rows, starts)

    def rule_out(self, scores: Array, rows: Rows, starts: Array) -> Array:
        """These scores of a block, −inf for cells of the true label whose state is known not to be the true one."""
        given, allowed = take_rows(self._hidden, rows), self._allowed_states(rows)
        if allowed.size or (given >= 0).any():
            rule_out(scores, starts, self._known_labels(rows), given, allowed)
        return scores

    def label_losses(self, rows: Rows, starts: Array) -> Array:
        """(n, labels): the loss of every label; where it depends on the hidden value, the highest."""
        table, column = self._loss_table()
        if column is not None:
            return np.ascontiguousarray(table[:, take_rows(column, rows)].T)
        own = table[:, self.states(rows)]
        return np.maximum.reduceat(own, starts[:-1] - starts[0], axis=1).T

    def _with_losses(self, scores: Array, rows: Rows) -> tuple[Array, Array]:
        """The scores of a block and the (labels, samples) losses to add; those that depend on the state are added."""
        table, column = self._loss_table()
        if column is None:
            return scores + table[:, self.states(rows)], NO_LOSSES
        return scores, np.ascontiguousarray(table[:, take_rows(column, rows)], dtype=np.float64)


def choose_rivals(
    scores: Array, losses: Array, labels: Array, coef: Array, rescaling: str = "margin"
) -> tuple[Array, Array]:
    """``ξ_i = max(0, max_{y ≠ y_i} [ℓ_i(y) + score(y)] − score(y_i))``, and the weights of ``Σ coef_i ∂ξ_i``.

    With slack rescaling it is ``max(0, max_{y ≠ y_i} ℓ_i(y) [1 + score(y) − score(y_i)])``. Rivals that tie share the
    weight, which gives a better direction than any one of them: at w = 0 all of them tie. A label without any hidden
    value never competes. One that is true is an error: it could never be predicted.
    """
    rows = np.arange(labels.size)
    own = scores[rows, labels]
    if not np.isfinite(own).all():
        i = int(np.argmin(np.isfinite(own)))
        what = "no hidden value at all" if own[i] == -np.inf else "scores that are not finite"
        raise ValueError(
            f"a sample has {what} under its label (row {i} of {labels.size}); give it one, drop it, or scale the "
            "features"
        )
    is_slack = rescaling == "slack"
    wished = losses + scores
    if is_slack:
        exists = scores > -np.inf
        wished = np.where(exists, losses * (1 + np.where(exists, scores, 0.0) - own[:, None]), -np.inf)
    wished[rows, labels] = -np.inf
    rivals = np.argmax(wished, axis=1)
    slack = wished[rows, rivals] - (0.0 if is_slack else own)
    is_active = slack > 0
    ties = (wished == wished[rows, rivals][:, None]) & is_active[:, None]
    weights = ties * (coef / np.maximum(ties.sum(axis=1), 1))[:, None]
    if is_slack:
        weights *= losses
    weights[rows, labels] = -weights.sum(axis=1) if is_slack else np.where(is_active, -coef, 0.0)
    return np.maximum(slack, 0.0), weights

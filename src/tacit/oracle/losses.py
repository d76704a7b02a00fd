"""Losses of outputs: tables of one number per output, and losses that depend on the hidden value, Δ(y_i, h_i, y, h)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.data.arrays import Array, check_offsets, find_uneven
from tacit.data.kernels import kernel
from tacit.data.parameters import even_table, numbers, reason, shorten

MAX_PAIRS = 1 << 28
"""Losses between pairs of hidden values that are kept at the most: a gigabyte. Beyond that they are computed anew in
every pass, `PAIRS_AT_A_TIME`."""

PAIRS_AT_A_TIME = 1 << 26


class LossTable(NamedTuple):
    """The loss of every output: ``table[label, column[i]]`` for sample i, or ``table[label, state]`` if column is None.

    A cost matrix is ``table`` transposed with the true label of sample i as ``column[i]``; a loss that looks at the
    hidden value has one column per state.
    """

    table: Array
    column: Array | None

    def cut(self, states: Any, samples: Any) -> LossTable:
        """The losses of some samples, which have these states."""
        table, column = self
        return LossTable(table[:, states], None) if column is None else LossTable(table, column[samples])


def check_losses(losses: LossTable, n_labels: int, n_rows: int, n_states: int) -> LossTable:
    """The same losses as contiguous arrays; an error if one is not finite, or negative, or if they do not fit.

    There is one column per state, or one of those that there are for each row.
    """
    if not isinstance(losses, LossTable):
        raise TypeError(f"losses must be a tacit.oracle.LossTable, got {shorten(losses)}")
    table = np.ascontiguousarray(numbers("the loss table", losses.table))
    if table.ndim != 2 or len(table) != n_labels or (losses.column is None and table.shape[1] != n_states):
        raise ValueError(f"the loss table of shape {table.shape} must fit {n_labels} labels and {n_states} states")
    wrong = ~np.isfinite(table) | (table < 0)
    if wrong.any():
        raise ValueError(f"losses must be finite and not negative, got {table[wrong][0]}")
    if losses.column is None:
        return LossTable(table, None)
    column = even_table("the columns of a loss table", losses.column)
    is_whole = column.dtype.kind in "iu" and column.shape == (n_rows,)
    if not is_whole or not ((column >= 0) & (column < table.shape[1])).all():
        raise ValueError(f"the columns of a loss table must be {n_rows} numbers from 0 to {table.shape[1] - 1}")
    return LossTable(table, np.ascontiguousarray(column, dtype=np.int64))


class Reference(NamedTuple):
    """The hidden values that a loss is measured against.

    Parameters
    ----------
    states : (n,) the hidden value of each sample; −1 where it is unknown, and only the label counts
    allowed : one boolean per state, or None. Where the value is unknown but some are ruled out, the loss is measured
        to the nearest one that is allowed
    posterior : one probability per state, or None. With one, the loss is the mean over it, for all samples
    """

    states: Array
    allowed: Array | None = None
    posterior: Array | None = None


class PairLoss(Protocol):
    """Any Δ(y_i, h_i, y, h) of bound samples; what `EnumerableOracle` takes as ``hidden_loss``."""

    def table(self, n_labels: int, offsets: Array, labels: Array, reference: Reference) -> Array:
        """(n_labels, states): the loss of every cell against these labels and hidden values."""

    def of_outputs(self, n_labels: int, offsets: Array, labels: Array, said: tuple[Array, Array]) -> Array:
        """(states,): what the output ``said``, a label and a state of each sample, costs if this state is the true
        one."""

    def diversity_slope(self, n_labels: int, offsets: Array, labels: Array, posterior: Array) -> Array:
        """(states,): ``Σ_h' [Δ(y_i, h, y_i, h') + Δ(y_i, h', y_i, h)] P(h')``, the gradient of the mean loss between
        two hidden values that are drawn from the posterior."""

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        """Arrays that define this loss, for the oracle's `digest`."""


class HiddenLoss:
    """``Δ(y_i, h_i, y, h) = 1`` if ``y ≠ y_i``, else ``D_i[h_i, h]``; only the label counts where h_i is unknown.

    Samples of one kind share one table D, which is computed once; where all tables together take too much memory, a
    few at a time, in every pass.

    Parameters
    ----------
    kinds : (n,) the kind of every sample, from 0
    tables : one square table per kind, zero on its diagonal; or a function that makes that of a kind
    sizes : the side of the table of every kind, where they are made by a function
    digest : numbers that define tables that are made by a function
    """

    def __init__(
        self,
        kinds: Array,
        tables: Iterable[Array] | Callable[[int], Array],
        sizes: Array | None = None,
        digest: Array | None = None,
    ) -> None:
        self.kinds = np.asarray(kinds, dtype=np.int64)
        self.make = tables if callable(tables) else None
        parts = [] if callable(tables) else [np.asarray(table, dtype=np.float32) for table in tables]
        sides = [round(part.size**0.5) for part in parts] if sizes is None else sizes
        squares = np.asarray(sides, dtype=np.int64) ** 2
        self.starts = np.concatenate([[0], np.cumsum(squares)]).astype(np.int64)
        self.flat = np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0, np.float32)
        self.digest = np.empty(0) if digest is None else digest

    def of(self, i: int) -> Array:
        """D_i."""
        kind = int(self.kinds[i])
        if self.make is not None:
            return np.asarray(self.make(kind), dtype=np.float32)
        part = self.flat[self.starts[kind] : self.starts[kind + 1]]
        size = round(part.size**0.5)
        return part.reshape(size, size)

    def table(self, n_labels: int, offsets: Array, labels: Array, reference: Reference) -> Array:
        out = np.ones((n_labels, int(offsets[-1])))
        for rows, flat, starts in self._chunks(offsets):
            if reference.posterior is not None:
                fill_mean_losses(rows, flat, starts, offsets, labels, reference.posterior, out)
                continue
            fill_losses(rows, flat, starts, offsets, labels, reference.states, out)
            if reference.allowed is not None:
                fill_least_losses(rows, flat, starts, offsets, labels, reference.states, reference.allowed, out)
        return out

    def of_outputs(self, n_labels: int, offsets: Array, labels: Array, said: tuple[Array, Array]) -> Array:
        out = np.ones(int(offsets[-1]))
        for rows, flat, starts in self._chunks(offsets):
            fill_columns(rows, flat, starts, offsets, labels, *said, out)
        return out

    def diversity_slope(self, n_labels: int, offsets: Array, labels: Array, posterior: Array) -> Array:
        out = np.zeros(int(offsets[-1]))
        for rows, flat, starts in self._chunks(offsets):
            add_both_ways(rows, flat, starts, offsets, posterior, out)
        return out

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        return self.kinds, self.starts, self.flat, self.digest

    def _chunks(self, offsets: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Samples, the tables of their kinds, and where that of each begins: all, or a few kinds at a time."""
        sizes = np.diff(check_offsets(offsets, int(offsets[-1])))
        if self.kinds.size and not 0 <= self.kinds.min() <= self.kinds.max() < self.starts.size - 1:
            raise ValueError(f"kinds must be from 0 to {self.starts.size - 2}, one per table of the loss")
        if self.kinds.shape != sizes.shape or (np.diff(self.starts)[self.kinds] != sizes**2).any():
            raise ValueError("the tables of a loss on hidden values must have one (h, h) table per kind of sample")
        if self.make is None:
            yield np.arange(sizes.size), self.flat, self.starts[self.kinds]
            return
        order = np.argsort(self.kinds, kind="stable")
        sorted_kinds, first = self.kinds[order], 0
        n_kinds = self.starts.size - 1
        while first < n_kinds:
            last = int(np.searchsorted(self.starts, self.starts[first] + PAIRS_AT_A_TIME, side="right")) - 1
            last = min(max(last, first + 1), n_kinds)
            flat = np.concatenate([np.asarray(self.make(k), np.float32).ravel() for k in range(first, last)])
            if flat.size != self.starts[last] - self.starts[first]:
                raise ValueError("a function that makes tables of a loss must return one (h, h) table per kind")
            rows = order[np.searchsorted(sorted_kinds, first) : np.searchsorted(sorted_kinds, last)]
            yield rows, flat, self.starts[self.kinds[rows]] - self.starts[first]
            first = last


class CalledLoss:
    """A user's function ``(true label, true h, label, h)`` → loss; only the label counts where the true h is unknown.

    It is called once for every pair of outputs, and what it returns is kept, so it is for few hidden values. Samples of
    one label and as many hidden values share what is kept. What it returns is checked.
    """

    def __init__(self, function: Callable[[Any, Any, Any, Any], Any], classes: Array) -> None:
        self.function = function
        self.classes = classes.tolist()
        self._kept: dict[Any, Array] = {}

    def of_outputs(self, n_labels: int, offsets: Array, labels: Array, said: tuple[Array, Array]) -> Array:
        out = np.ones(int(offsets[-1]))
        for i, true in enumerate(labels.tolist()):
            own = slice(int(offsets[i]), int(offsets[i + 1]))
            if true < n_labels:
                label, state = int(said[0][i]), int(said[1][i])
                out[own] = [self._against(i, true, h, own)[label, state] for h in self._states(i, true, own)]
        return out

    def diversity_slope(self, n_labels: int, offsets: Array, labels: Array, posterior: Array) -> Array:
        out = np.zeros(int(offsets[-1]))
        for i, true in enumerate(labels.tolist()):
            own = slice(int(offsets[i]), int(offsets[i + 1]))
            if true < n_labels:
                chances = posterior[own]
                losses = np.array([self._against(i, true, h, own)[true] for h in self._states(i, true, own)])
                out[own] = losses @ chances + chances @ losses
        return out

    def _states(self, i: int, true: int, own: slice) -> range:
        """The states of a sample."""
        return range(own.stop - own.start)

    def table(self, n_labels: int, offsets: Array, labels: Array, reference: Reference) -> Array:
        out = np.ones((n_labels, int(offsets[-1])))
        for i, true in enumerate(labels.tolist()):
            own = slice(offsets[i], offsets[i + 1])
            if true >= n_labels:
                continue
            if reference.posterior is not None:
                chances = reference.posterior[own]
                out[:, own] = sum(chances[h] * self._against(i, true, int(h), own) for h in np.flatnonzero(chances))
            elif reference.states[i] >= 0:
                out[:, own] = self._against(i, true, int(reference.states[i]), own)
            elif reference.allowed is None or reference.allowed[own].all():
                out[true, own] = 0.0
            else:
                possible = np.flatnonzero(reference.allowed[own])
                out[:, own] = np.min([self._against(i, true, int(h), own) for h in possible], axis=0)
        return out

    def _against(self, i: int, true: int, h: int, own: slice) -> Array:
        """(labels, states of sample i): the loss of every output where the true hidden value is h; kept."""
        key = self._key(i, true, own), h
        if key not in self._kept:
            self._kept[key] = self._costs(i, true, h, own)
        return self._kept[key]

    def _key(self, i: int, true: int, own: slice) -> Any:
        """Samples of the same key share their losses."""
        return true, own.stop - own.start

    def _costs(self, i: int, true: int, h: int, own: slice) -> Array:
        size = own.stop - own.start
        truth = self.classes[true]
        costs = np.array([[self._call(i, truth, h, label, other) for other in range(size)] for label in self.classes])
        if costs[true, h] != 0:
            raise ValueError(
                f"loss({shorten(truth)}, {h}, {shorten(truth)}, {h}) is {costs[true, h]} for sample {i}; the truth "
                "must cost nothing"
            )
        return costs

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        """The losses against the first and against the last hidden values: all of them could take long."""
        last = np.diff(offsets) - 1
        return tuple(self.table(n_labels, offsets, labels, Reference(h)) for h in (np.zeros_like(last), last))

    def _call(self, i: int, *outputs: Any) -> float:
        try:
            answer = self.function(*outputs)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # from inside of the function
            raise TypeError(f"loss cannot be called as loss(y, h, label, other): {reason(error)}") from error
        try:
            value = float(answer)
        except (TypeError, ValueError):
            value = np.nan
        if not 0 <= value < np.inf:
            raise ValueError(f"loss{outputs} of sample {i} is {shorten(answer)}; a loss must be a finite number from 0")
        return value


def by_kind(keys: Iterable[bytes], table: Callable[[int], Array], size: Callable[[int], int]) -> HiddenLoss:
    """One table for every different key: ``table(i)`` computes that of sample i, ``size(i)`` its side."""
    order_of: dict[bytes, int] = {}
    kinds = np.array([order_of.setdefault(key, len(order_of)) for key in keys])
    firsts = np.unique(kinds, return_index=True)[1].tolist()
    sizes = np.array([size(i) for i in firsts], dtype=np.int64)
    if int((sizes**2).sum()) <= MAX_PAIRS:
        return HiddenLoss(kinds, [table(i) for i in firsts])
    marks = np.frombuffer(b"".join(order_of), dtype=np.uint8)
    return HiddenLoss(kinds, lambda kind: table(firsts[kind]), sizes, marks)


@kernel
def fill_losses(
    rows: Array, flat: Array, starts: Array, offsets: Array, labels: Array, states: Array, out: Array
) -> None:
    """Write the losses under the right label; those under wrong ones stay. Labels past the last are never right."""
    for r in range(rows.size):
        i = rows[r]
        if labels[i] >= out.shape[0]:
            continue
        first = offsets[i]
        size = offsets[i + 1] - first
        row = starts[r] + states[i] * size
        for h in range(size):
            out[labels[i], first + h] = 0.0 if states[i] < 0 else flat[row + h]


@kernel
def fill_least_losses(
    rows: Array, flat: Array, starts: Array, offsets: Array, labels: Array, states: Array, allowed: Array, out: Array
) -> None:
    """Where the hidden value is unknown, the least loss against those that are allowed, under the right label."""
    for r in range(rows.size):
        i = rows[r]
        if labels[i] >= out.shape[0] or states[i] >= 0:
            continue
        first = offsets[i]
        size = offsets[i + 1] - first
        for h in range(size):
            least = np.inf
            for other in range(size):
                if allowed[first + other] and flat[starts[r] + other * size + h] < least:
                    least = flat[starts[r] + other * size + h]
            out[labels[i], first + h] = least


@kernel
def fill_mean_losses(
    rows: Array, flat: Array, starts: Array, offsets: Array, labels: Array, posterior: Array, out: Array
) -> None:
    """The mean loss against a distribution over the hidden values of every sample, under the right label."""
    for r in range(rows.size):
        i = rows[r]
        if labels[i] >= out.shape[0]:
            continue
        first = offsets[i]
        size = offsets[i + 1] - first
        row = out[labels[i]]
        for h in range(size):
            row[first + h] = 0.0
        for other in range(size):
            chance = posterior[first + other]
            if chance == 0.0:
                continue
            losses = starts[r] + other * size
            for h in range(size):
                row[first + h] += chance * flat[losses + h]


@kernel
def fill_columns(
    rows: Array,
    flat: Array,
    starts: Array,
    offsets: Array,
    labels: Array,
    said_labels: Array,
    said_states: Array,
    out: Array,
) -> None:
    """The loss of one output of every sample against each of its hidden values; that of wrong labels stays."""
    for r in range(rows.size):
        i = rows[r]
        if said_labels[i] != labels[i]:
            continue
        first = offsets[i]
        size = offsets[i + 1] - first
        for h in range(size):
            out[first + h] = flat[starts[r] + h * size + said_states[i]]


@kernel
def add_both_ways(rows: Array, flat: Array, starts: Array, offsets: Array, posterior: Array, out: Array) -> None:
    """``(D + Dᵀ) P`` of every sample."""
    for r in range(rows.size):
        i = rows[r]
        first = offsets[i]
        size = offsets[i + 1] - first
        for h in range(size):
            chance = posterior[first + h]
            row = starts[r] + h * size
            total = 0.0
            for other in range(size):
                total += flat[row + other] * posterior[first + other]
                out[first + other] += chance * flat[row + other]
            out[first + h] += total


def read_costs(loss: Any, classes: Array, others: tuple[str, ...] = ()) -> Array:
    """``costs[true, predicted]`` from "0/1" or from a cost matrix in the order of the classes."""
    k = len(classes)
    if isinstance(loss, str):
        if loss != "0/1":
            names = ", ".join(map(repr, ("0/1", *others)))
            raise ValueError(f"loss must be {names} or a cost matrix, got {shorten(loss)}")
        return 1.0 - np.eye(k)
    why = find_uneven(loss)
    if why:
        raise ValueError(f"loss must be '0/1' or a cost matrix of numbers, rows of equal length: {why}")
    costs = numbers("loss", loss, "'0/1' or a cost matrix of numbers, rows of equal length")
    if costs.shape != (k, k):
        raise ValueError(
            f"the cost matrix has shape {costs.shape}, the data have {k} classes {shorten(classes.tolist())}; "
            "give one row per true and one column per predicted class, and classes=[...] if some may be absent"
        )
    if not np.isfinite(costs).all() or (costs < 0).any():
        i, j = np.argwhere(~np.isfinite(costs) | (costs < 0))[0]
        raise ValueError(f"loss[{i}, {j}] is {costs[i, j]}: costs must be finite and not negative")
    if costs.diagonal().any():
        i = int(np.flatnonzero(costs.diagonal())[0])
        raise ValueError(f"loss[{i}, {i}] is {costs[i, i]}: predicting the truth must cost nothing")
    return costs


def class_losses(loss: Any, classes: Array, labels: Array) -> LossTable:
    """The loss table of a cost matrix. A label that training never saw costs 1 under 0/1 loss."""
    costs = read_costs(loss, classes)
    if isinstance(loss, str):
        costs = np.vstack([costs, np.ones(len(classes))])
    elif (labels == len(classes)).any():
        i = int(np.argmax(labels == len(classes)))
        raise ValueError(
            f"y[{i}] is a label that training never saw, so the cost matrix lacks a row for it; "
            f"the classes are {shorten(classes.tolist())}: list all of them in classes=[...]"
        )
    return LossTable(costs.T, labels)

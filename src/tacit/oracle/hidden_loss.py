"""Losses that depend on the hidden value: Δ(y_i, h_i, y, h)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.arrays import Array
from tacit.inputs.parameters import shorten
from tacit.kernels import kernel

MAX_PAIRS = 1 << 28
"""Losses between pairs of hidden values that are kept at the most: a gigabyte."""


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

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        """Arrays that define this loss, for the oracle's `digest`."""


class HiddenLoss:
    """``Δ(y_i, h_i, y, h) = 1`` if ``y ≠ y_i``, else ``D_i[h_i, h]``; only the label counts where h_i is unknown.

    Samples of one kind share one table D, which is computed once.

    Parameters
    ----------
    kinds : (n,) the kind of every sample, from 0
    tables : one square table per kind, zero on its diagonal
    """

    def __init__(self, kinds: Array, tables: Iterable[Array]) -> None:
        parts = [np.asarray(table, dtype=np.float32) for table in tables]
        self.kinds = np.asarray(kinds, dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)
        self.flat = np.concatenate([part.ravel() for part in parts])

    def of(self, i: int) -> Array:
        """D_i, a view."""
        part = self.flat[self.starts[self.kinds[i]] : self.starts[self.kinds[i] + 1]]
        size = round(part.size**0.5)
        return part.reshape(size, size)

    def table(self, n_labels: int, offsets: Array, labels: Array, reference: Reference) -> Array:
        sizes = np.diff(offsets)
        if self.kinds.shape != sizes.shape or (np.diff(self.starts)[self.kinds] != sizes**2).any():
            raise ValueError("the tables of a loss on hidden values do not fit these samples: one (h, h) for each kind")
        out = np.ones((n_labels, int(offsets[-1])))
        starts = self.starts[self.kinds]
        if reference.posterior is not None:
            fill_mean_losses(self.flat, starts, offsets, labels, reference.posterior, out)
            return out
        fill_losses(self.flat, starts, offsets, labels, reference.states, out)
        if reference.allowed is not None:
            fill_least_losses(self.flat, starts, offsets, labels, reference.states, reference.allowed, out)
        return out

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        return self.kinds, self.starts, self.flat


class CalledLoss:
    """A user's function ``(true label, true h, label, h)`` → loss; only the label counts where the true h is unknown.

    It is called once per cell of every table, so it is for few hidden values. What it returns is checked.
    """

    def __init__(self, function: Callable[[Any, Any, Any, Any], Any], classes: Array) -> None:
        self.function = function
        self.classes = classes.tolist()

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
        """(labels, states of sample i): the loss of every output where the true hidden value is h."""
        size = own.stop - own.start
        truth = self.classes[true]
        costs = np.array([[self._called(i, truth, h, label, other) for other in range(size)] for label in self.classes])
        if costs[true, h] != 0:
            raise ValueError(
                f"loss({truth!r}, {h}, {truth!r}, {h}) is {costs[true, h]} for sample {i}; the truth must cost nothing"
            )
        return costs

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        """The losses against the first and against the last hidden values: all of them could take long."""
        last = np.diff(offsets) - 1
        return tuple(self.table(n_labels, offsets, labels, Reference(h)) for h in (np.zeros_like(last), last))

    def _called(self, i: int, *outputs: Any) -> float:
        answer = self.function(*outputs)
        try:
            value = float(answer)
        except (TypeError, ValueError):
            value = np.nan
        if not 0 <= value < np.inf:
            raise ValueError(
                f"loss{outputs} of sample {i} is {shorten(answer)}; losses are numbers, finite and not negative"
            )
        return value


def by_kind(keys: Iterable[bytes], table: Callable[[int], Array], size: Callable[[int], int]) -> HiddenLoss:
    """One table for every different key: ``table(i)`` computes that of sample i, ``size(i)`` its side."""
    place: dict[bytes, int] = {}
    kinds = [place.setdefault(key, len(place)) for key in keys]
    firsts = np.unique(kinds, return_index=True)[1].tolist()
    numbers = sum(size(i) ** 2 for i in firsts)
    if numbers > MAX_PAIRS:
        raise ValueError(
            f"losses between all pairs of hidden values need {numbers} numbers, above {MAX_PAIRS}: "
            "take fewer candidates per bag (a larger stride), or bags of equal boxes, which share theirs"
        )
    return HiddenLoss(np.array(kinds), [table(i) for i in firsts])


@kernel
def fill_losses(flat: Array, starts: Array, offsets: Array, labels: Array, states: Array, out: Array) -> None:
    """Write the losses under the right label; those under wrong ones stay. Labels past the last are never right."""
    for i in range(labels.size):
        if labels[i] >= out.shape[0]:
            continue
        first = offsets[i]
        size = offsets[i + 1] - first
        row = starts[i] + states[i] * size
        for h in range(size):
            out[labels[i], first + h] = 0.0 if states[i] < 0 else flat[row + h]


@kernel
def fill_least_losses(
    flat: Array, starts: Array, offsets: Array, labels: Array, states: Array, allowed: Array, out: Array
) -> None:
    """Where the hidden value is unknown, the least loss against those that are allowed, under the right label."""
    for i in range(labels.size):
        if labels[i] >= out.shape[0] or states[i] >= 0:
            continue
        first = offsets[i]
        size = offsets[i + 1] - first
        for h in range(size):
            least = np.inf
            for other in range(size):
                if allowed[first + other] and flat[starts[i] + other * size + h] < least:
                    least = flat[starts[i] + other * size + h]
            out[labels[i], first + h] = least


@kernel
def fill_mean_losses(flat: Array, starts: Array, offsets: Array, labels: Array, posterior: Array, out: Array) -> None:
    """The mean loss against a distribution over the hidden values of every sample, under the right label."""
    for i in range(labels.size):
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
            losses = starts[i] + other * size
            for h in range(size):
                row[first + h] += chance * flat[losses + h]

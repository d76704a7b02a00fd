"""Losses that look at the hidden value: Δ(y_i, h_i, y, h)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel

MOST_NUMBERS = 1 << 28
"""Of the pairwise losses that are kept: a gigabyte."""


class PairLoss(Protocol):
    """Any Δ(y_i, h_i, y, h) of bound samples; what `EnumerableOracle` takes as ``hidden_loss``."""

    def table(self, n_labels: int, offsets: Array, labels: Array, states: Array) -> Array:
        """(n_labels, states): the loss of every cell against these labels and hidden values (−1: unknown)."""

    def marks(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        """Arrays that tell this loss from another, for `digest`."""


class HiddenLoss:
    """``Δ(y_i, h_i, y, h) = 1`` if ``y ≠ y_i``, else ``D_i[h_i, h]``; only the label counts where h_i is unknown.

    Samples of one kind share one table D, which is computed once.

    Parameters
    ----------
    kinds : (n,) the kind of every sample, from 0
    tables : one square table a kind, zero on its diagonal
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

    def table(self, n_labels: int, offsets: Array, labels: Array, states: Array) -> Array:
        """(n_labels, states): the loss of every cell against these labels and hidden values (−1: unknown)."""
        sizes = np.diff(offsets)
        if self.kinds.shape != sizes.shape or (np.diff(self.starts)[self.kinds] != sizes**2).any():
            raise ValueError("the tables of a loss on hidden values do not fit these samples: one (h, h) for each kind")
        out = np.ones((n_labels, int(offsets[-1])))
        fill_losses(self.flat, self.starts[self.kinds], offsets, labels, states, out)
        return out

    def marks(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        return self.kinds, self.starts, self.flat


class CalledLoss:
    """A user's function ``(true label, true h, label, h)`` → loss; only the label counts where the true h is unknown.

    One call a cell for every table: for hidden values that are few. What it returns is checked.
    """

    def __init__(self, function: Callable[[Any, Any, Any, Any], Any], classes: Array) -> None:
        self.function = function
        self.classes = classes.tolist()

    def table(self, n_labels: int, offsets: Array, labels: Array, states: Array) -> Array:
        out = np.ones((n_labels, int(offsets[-1])))
        for i, (true, h) in enumerate(zip(labels.tolist(), states.tolist(), strict=True)):
            own = slice(offsets[i], offsets[i + 1])
            if true >= n_labels:
                continue
            if h < 0:
                out[true, own] = 0.0
                continue
            size = int(offsets[i + 1] - offsets[i])
            for k, label in enumerate(self.classes):
                out[k, own] = [self._called(i, self.classes[true], h, label, other) for other in range(size)]
            if out[true, offsets[i] + h] != 0:
                raise ValueError(
                    f"loss({self.classes[true]!r}, {h}, {self.classes[true]!r}, {h}) is "
                    f"{out[true, offsets[i] + h]} for sample {i}; the truth must cost nothing"
                )
        return out

    def marks(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        """What it costs against the first and against the last hidden values: not all, which could take long."""
        last = np.diff(offsets) - 1
        return tuple(self.table(n_labels, offsets, labels, states) for states in (np.zeros_like(last), last))

    def _called(self, i: int, *outputs: Any) -> float:
        answer = self.function(*outputs)
        try:
            value = float(answer)
        except (TypeError, ValueError):
            value = np.nan
        if not 0 <= value < np.inf:
            raise ValueError(f"loss{outputs} of sample {i} is {answer!r}; losses are numbers, finite and not negative")
        return value


def by_kind(keys: Iterable[bytes], table: Callable[[int], Array], size: Callable[[int], int]) -> HiddenLoss:
    """One table for every different key: ``table(i)`` computes that of sample i, ``size(i)`` its side."""
    place: dict[bytes, int] = {}
    kinds = [place.setdefault(key, len(place)) for key in keys]
    firsts = np.unique(kinds, return_index=True)[1].tolist()
    numbers = sum(size(i) ** 2 for i in firsts)
    if numbers > MOST_NUMBERS:
        raise ValueError(
            f"losses between all pairs of hidden values need {numbers} numbers, above {MOST_NUMBERS}: "
            "take fewer candidates a bag (a larger stride), or bags of equal boxes, which share theirs"
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

"""Hidden values of windows with types as users write them, and the loss between windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import has_length
from tacit.oracle.hidden_loss import Reference
from tacit.oracle.known_hidden import KnownHidden, from_masks, read_hidden, read_positions
from tacit.vision.boxes import overlap


def read_windows_and_types(hidden: Any, counts: Array, types: int) -> KnownHidden:
    """Known windows and types as known states; ``state = window · types + type``.

    Parameters
    ----------
    hidden : per sample a window, −1 if it is unknown; with several types a pair (window, type), either of which may be
        −1, or the window alone
    counts : windows per sample
    types : number of types

    >>> read_windows_and_types([(1, 0), (1, -1), (-1, -1)], np.array([2, 2, 2]), 2).allowed.reshape(3, 4)
    array([[ True,  True,  True,  True],
           [False, False,  True,  True],
           [ True,  True,  True,  True]])
    """
    if types == 1:
        return read_hidden(hidden, counts, "windows")
    pairs = read_positions(hidden, (counts.size, 2)) if _holds_pairs(hidden) else None
    if pairs is None:
        alone = read_positions(hidden, (counts.size,))
        pairs = np.column_stack([alone, np.full(counts.size, -1)])
    limits = np.column_stack([counts, np.full(counts.size, types)])
    wrong = np.flatnonzero(((pairs < -1) | (pairs >= limits)).any(axis=1))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"hidden[{i}] is {pairs[i].tolist()}, sample {i} has windows 0 to {counts[i] - 1} and types 0 to "
            f"{types - 1} (-1 for unknown)"
        )
    masks: list[Array | None] = []
    for (window, kind), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        mask = np.ones((count, types), dtype=bool)
        if window >= 0:
            mask &= (np.arange(count) == window)[:, None]
        if kind >= 0:
            mask &= np.arange(types) == kind
        masks.append(None if mask.all() else mask.ravel())
    return from_masks(masks, counts * types)


def _holds_pairs(hidden: Any) -> bool:
    """Whether samples have a pair each; the shapes are checked by who reads them."""
    if isinstance(hidden, list | tuple):
        return any(has_length(entry) for entry in hidden)
    return getattr(hidden, "ndim", 1) == 2


def join_hidden(states: Array | None, types: int) -> Array | None:
    """Windows, or (n, 2) windows and types, of states."""
    if states is None or types == 1:
        return states
    return np.column_stack(np.divmod(states, types))


def known_window(known: KnownHidden, offsets: Array, types: int) -> Array:
    """(n,) the window that all allowed states of a sample share; −1 where they share none."""
    out = np.where(known.states >= 0, known.states // types, -1)
    if known.allowed is None:
        return out
    counts = np.diff(offsets)
    of_sample = np.repeat(np.arange(counts.size), counts)
    window = (np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], counts)) // types
    low, high = np.full(counts.size, np.iinfo(np.int64).max), np.full(counts.size, -1)
    np.minimum.at(low, of_sample[known.allowed], window[known.allowed])
    np.maximum.at(high, of_sample[known.allowed], window[known.allowed])
    return np.where((out < 0) & (low == high), low, out)


class WindowLoss:
    """1 under a wrong label, else 1 − overlap with the true window, whatever the types; 0 where that is unknown.

    Parameters
    ----------
    boxes : (m, 4) the windows of all samples
    offsets : (n + 1,) where they begin
    types : number of types
    """

    def __init__(self, boxes: Array, offsets: Array, types: int) -> None:
        self.boxes = boxes
        self.windows = offsets
        self.types = types

    def table(self, n_labels: int, offsets: Array, labels: Array, reference: Reference) -> Array:
        out = np.ones((n_labels, int(offsets[-1])))
        if reference.posterior is not None:
            costs = self._mean_costs(reference.posterior)
        else:
            costs = self.costs(known_window(KnownHidden(reference.states, reference.allowed), offsets, self.types))
        own = np.repeat(labels, np.diff(offsets))
        is_known = own < n_labels
        out[own[is_known], np.flatnonzero(is_known)] = np.repeat(costs, self.types)[is_known]
        return out

    def of_outputs(self, n_labels: int, offsets: Array, labels: Array, said: tuple[Array, Array]) -> Array:
        label, state = said
        costs = np.repeat(self.costs(state // self.types), self.types)
        return np.asarray(np.where(np.repeat(label == labels, np.diff(offsets)), costs, 1.0))

    def spread(self, n_labels: int, offsets: Array, labels: Array, posterior: Array) -> Array:
        return np.repeat(2.0 * self._mean_costs(posterior), self.types)

    def costs(self, window: Array) -> Array:
        """(m,) 1 − the overlap of every window with the chosen one of its sample; 0 where none is chosen."""
        counts = np.diff(self.windows)
        true = self.boxes[self.windows[:-1] + np.maximum(window, 0)]
        shared = overlap(np.repeat(true, counts, axis=0), self.boxes)
        costs = np.where(np.repeat(window, counts) >= 0, 1.0 - shared, 0.0)
        known = np.flatnonzero(window >= 0)
        costs[self.windows[known] + window[known]] = 0.0
        return costs

    def _mean_costs(self, posterior: Array) -> Array:
        chance = posterior.reshape(-1, self.types).sum(axis=1)
        costs = np.zeros(len(self.boxes))
        for a, b in zip(self.windows[:-1].tolist(), self.windows[1:].tolist(), strict=True):
            likely = a + np.flatnonzero(chance[a:b] > 0)
            costs[a:b] = 1.0 - chance[likely] @ overlap(self.boxes[likely][:, None], self.boxes[None, a:b])
        return np.maximum(costs, 0.0)

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        return self.boxes, self.windows

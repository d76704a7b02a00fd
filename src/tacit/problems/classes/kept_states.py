"""One weight block for every pair of class and state, some pairs left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle import Schema
from tacit.oracle.digests import checksum
from tacit.problems.classes.state_blocks import StateBlocks


class KeptStates(StateBlocks):
    """`StateBlocks` of which each class has some states only, and perhaps a null state of score 0, hidden value −1.

    Parameters
    ----------
    views, schema, offsets : as in `StateBlocks`; offsets count the null state as the last one of every sample
    kept : (K, T) which states each class has
    has_null : (K,) which classes have the null state
    """

    def __init__(
        self, views: Array, schema: Schema, offsets: Array, kept: Array, has_null: Array, **supervision: Any
    ) -> None:
        self._null = bool(has_null.any())
        self._there = np.column_stack([kept, has_null]) if self._null else kept
        super().__init__(views, schema, offsets, **supervision)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        scores = super().scores(w, rows).reshape(self.n_labels, -1, self._states)
        if self._null:
            scores = np.concatenate([scores, np.zeros_like(scores[:, :, :1])], axis=2)
        if not self._there.all():
            scores[np.broadcast_to(~self._there[:, None, :], scores.shape)] = -np.inf
        return np.ascontiguousarray(scores).reshape(self.n_labels, -1)

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        if self._null:
            V = V.reshape(self.n_labels, -1, self._states + 1)[:, :, :-1].reshape(self.n_labels, -1)
        return super().adjoint(np.ascontiguousarray(V), rows)

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        samples = np.arange(self.n_samples)[slice(None) if rows is None else rows]
        is_null = states >= self._states
        own = np.where(is_null, 0, states)
        return self.sum_views(labels, samples * self._states + own, own, np.where(is_null, 0.0, coef))

    def existing(self, labels: Array, rows: Rows = None) -> Array:
        return self._there[labels].ravel()

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        labels, states = super().decode(code, rows)
        return labels, None if states is None else np.where(states >= self._states, -1, states)

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        if hidden is not None and self._null:
            given = np.asarray(hidden)
            hidden = np.where(given == -1, self._states, given)
        return super().encode(labels, hidden, rows)

    def digest(self) -> str:
        return checksum(self._rows, self.offsets, self._there, *self.digest_arrays())

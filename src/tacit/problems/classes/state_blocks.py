"""One weight block for every pair of class and state, or for some of these pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array, Rows, checksum
from tacit.data.parameters import plain_array, shorten
from tacit.oracle import EnumerableOracle, Schema
from tacit.problems.row_sums import add_rows


class StateBlocks(EnumerableOracle):
    """``s(y, h) = w_{y,h}·views[i, h] + b_{y,h}``, every sample having the same T states.

    Parameters
    ----------
    views : (n, T, d)
    schema : with the blocks weights (K, T, d) and perhaps intercept (K, T)
    offsets : 0, T, 2 T, …
    """

    def __init__(self, views: Array, schema: Schema, offsets: Array, **supervision: Any) -> None:
        n, T, d = views.shape
        shape = (len(schema.classes), T)
        if schema.blocks.get("weights") != (*shape, d) or schema.blocks.get("intercept", shape) != shape:
            found = shorten(dict(schema.blocks))
            raise ValueError(f"the schema's blocks {found} do not fit {shape[0]} classes × {T} states × {d} features")
        self._rows = np.ascontiguousarray(views, dtype=np.float64).reshape(n * T, d)
        self._columns = np.ascontiguousarray(views.transpose(1, 2, 0), dtype=np.float64)
        self._states = T
        self._blocks_of = schema.views
        self._has_intercept = "intercept" in schema.blocks
        super().__init__(schema.classes, offsets, schema.n_params, **supervision)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        parts = self._blocks_of(w)
        columns = self._columns if rows is None else self._columns[:, :, rows]
        scores = np.matmul(parts["weights"].transpose(1, 0, 2), columns)
        if self._has_intercept:
            scores += parts["intercept"].T[:, :, None]
        return np.ascontiguousarray(scores.transpose(1, 2, 0)).reshape(self.n_labels, -1)

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        by_state = np.ascontiguousarray(V.reshape(self.n_labels, -1, self._states).transpose(2, 0, 1))
        columns = self._columns if rows is None else self._columns[:, :, rows]
        parts["weights"][:] = np.matmul(by_state, columns.transpose(0, 2, 1)).transpose(1, 0, 2)
        if self._has_intercept:
            parts["intercept"][:] = by_state.sum(axis=2).T
        return out

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        firsts = self.offsets[:-1] if rows is None else self.offsets[:-1][rows]
        return self.sum_views(labels, firsts + states, states, coef)

    def sum_views(self, labels: Array, rows: Array, states: Array, coef: Array) -> Array:
        """Σ coef Ψ over cells (label, state), whose views are these ``rows`` of the table of all views."""
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        blocks = labels * self._states + states
        add_rows(self._rows, blocks, rows, coef, parts["weights"].reshape(-1, self._rows.shape[1]))
        if self._has_intercept:
            counts = np.bincount(blocks, coef, minlength=self.n_labels * self._states)
            parts["intercept"][:] = counts.reshape(self.n_labels, -1)
        return out

    def existing(self, labels: Array, rows: Rows = None) -> Array | None:
        return None  # every class has every state

    @property
    def operations(self) -> float:
        return float(self._rows.size * self.n_labels)

    def digest(self) -> str:
        return checksum(self._rows, self.offsets, *self.digest_arrays())


class KeptStates(StateBlocks):
    """`StateBlocks` where each class has only some states, and perhaps a null state of score 0, hidden value −1.

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
        self._exists = np.column_stack([kept, has_null]) if self._null else kept
        super().__init__(views, schema, offsets, **supervision)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        scores = super().scores(w, rows).reshape(self.n_labels, -1, self._states)
        if self._null:
            scores = np.concatenate([scores, np.zeros_like(scores[:, :, :1])], axis=2)
        if not self._exists.all():
            scores[np.broadcast_to(~self._exists[:, None, :], scores.shape)] = -np.inf
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
        return self._exists[labels].ravel()

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        labels, states = super().decode(code, rows)
        return labels, None if states is None else np.where(states >= self._states, -1, states)

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        if hidden is not None and self._null:
            given = plain_array(hidden)
            hidden = np.where(given == -1, self._states, given)
        return super().encode(labels, hidden, rows)

    def digest(self) -> str:
        return checksum(self._rows, self.offsets, self._exists, *self.digest_arrays())

"""Scores of all windows of all images, from maps of scores.

``s(y, h) = a_y·g(x) + b_{y,t} + Σ_p (u_p + v_{y,t,p})·φ_p(x, window)``, ``h = (window, type)``, where φ_p is what piece
p of the window pools of the map (`tacit.vision.maps.pooling`) and g is the mean of the map. Pooling is linear, so
weights are applied to the cells, and the resulting maps are pooled: O(cells·K·T·P·d + windows·K·T) per pass instead of
O(windows·K·T·P·d), and no row of features per window is ever made.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array, Rows, span
from tacit.data.ragged import states_of
from tacit.oracle import EnumerableOracle, Schema
from tacit.oracle.digests import checksum
from tacit.problems.shared.row_sums import add_rows
from tacit.vision.detection.known_windows import join_hidden, read_windows_and_types
from tacit.vision.maps.pooling import Pooling, plan_pooling, pool, spread
from tacit.vision.maps.window_maps import WindowMaps


class _Part(NamedTuple):
    """The maps and windows of some images."""

    table: Array
    cells: Array
    grids: Array
    plan: Pooling
    windows: Array
    means: Array


class WindowScores(EnumerableOracle):
    """The oracle of `Detection`; states of an image are its windows, each with every type.

    Parameters
    ----------
    maps : reduced maps and their windows
    schema : with the block window (K, T, P, d), and perhaps shared (P, d), image (K, d) and intercept (K, T)
    contrast, parts : of the pooling
    supervision : as in `EnumerableOracle`
    """

    def __init__(self, maps: WindowMaps, schema: Schema, contrast: str | None, parts: int, **supervision: Any) -> None:
        self._types = schema.blocks["window"][1]
        self._table = np.ascontiguousarray(maps.values)
        self._means = maps.means()
        self._cells = maps.offsets
        self._grids = maps.grids
        self._windows = maps.window_offsets
        self._plan = plan_pooling(maps.windows, maps.window_offsets, maps.sizes, maps.strides, contrast, parts)
        self._blocks_of = schema.views
        self._names = set(schema.blocks)
        self._precision = self._table.dtype
        super().__init__(schema.classes, maps.window_offsets * self._types, schema.n_params, **supervision)

    def _part(self, rows: Rows) -> _Part:
        if rows is None:
            rows = slice(0, self.n_samples)
        if isinstance(rows, slice):
            first, last = span(rows, self.n_samples)
            cells, windows = self._cells[first : last + 1], self._windows[first : last + 1]
            return _Part(
                self._table[cells[0] : cells[-1]],
                cells,
                self._grids[first:last],
                self._plan.take(slice(windows[0], windows[-1])),
                windows,
                self._means[first:last],
            )
        index = np.asarray(rows)
        places, cells = states_of(self._cells, index)
        chosen, windows = states_of(self._windows, index)
        return _Part(
            self._table[places], cells, self._grids[index], self._plan.take(chosen), windows, self._means[index]
        )

    def _window_weights(self, parts: dict[str, Array]) -> Array:
        """(P, K·T, d): the weights of every piece under every label and type."""
        weights = parts["window"]
        if "shared" in parts:
            weights = weights + parts["shared"]
        k, t, p, d = weights.shape
        return np.ascontiguousarray(weights.transpose(2, 0, 1, 3)).reshape(p, k * t, d)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        parts, own = self._blocks_of(w), self._part(rows)
        weights = self._window_weights(parts)
        pieces, channels, d = weights.shape
        maps = own.table @ weights.reshape(-1, d).T.astype(self._precision, copy=False)
        pooled = pool(
            maps.reshape(len(own.table), pieces, channels), own.cells, own.grids, own.plan, own.windows
        ).reshape(-1, self.n_labels, self._types)
        if "intercept" in self._names:
            pooled += parts["intercept"]
        scores = np.ascontiguousarray(pooled.transpose(1, 0, 2)).reshape(self.n_labels, -1)
        if "image" in self._names:
            whole = parts["image"] @ own.means.T
            scores += np.repeat(whole, np.diff(own.windows) * self._types, axis=1)
        return scores

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        own = self._part(rows)
        values = V.reshape(self.n_labels, -1, self._types).transpose(1, 0, 2)
        cells = spread(values.reshape(len(values), -1), own.cells, own.grids, own.plan, own.windows)
        sums = cells.reshape(len(cells), -1).T @ own.table
        out = self._filled(sums.reshape(cells.shape[1], self.n_labels, self._types, -1), values.sum(axis=0))
        if "image" in self._names:
            starts = (own.windows[:-1] - own.windows[0]) * self._types
            self._blocks_of(out)["image"][:] = np.add.reduceat(V, starts, axis=1) @ own.means
        return out

    def _filled(self, sums: Array, counts: Array) -> Array:
        """The flat vector of sums (P, K, T, d) of what windows pool, and of counts (K, T)."""
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        parts["window"][:] = sums.transpose(1, 2, 0, 3)
        if "shared" in parts:
            parts["shared"][:] = sums.sum(axis=(1, 2))
        if "intercept" in parts:
            parts["intercept"][:] = counts
        return out

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        own = self._part(rows)
        window, kind = np.divmod(states, self._types)
        plan = own.plan.take(own.windows[:-1] - own.windows[0] + window)
        n = len(labels)
        cells = spread(coef[:, None], own.cells, own.grids, plan, np.arange(n + 1))[:, :, 0]
        place, piece = np.nonzero(cells)
        block = np.repeat(labels * self._types + kind, np.diff(own.cells))[place]
        pieces, blocks = cells.shape[1], self.n_labels * self._types
        sums = np.zeros((pieces * blocks, own.table.shape[1]))
        add_rows(own.table, piece * blocks + block, place, cells[place, piece], sums)
        counts = np.bincount(labels * self._types + kind, coef, minlength=blocks).reshape(self.n_labels, self._types)
        out = self._filled(sums.reshape(pieces, self.n_labels, self._types, -1), counts)
        if "image" in self._names:
            add_rows(own.means, labels, np.arange(n), coef, self._blocks_of(out)["image"])
        return out

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        if self._types > 1 and hidden is not None:
            counts = np.diff(self._windows) if rows is None else np.diff(self._windows)[rows]
            known = read_windows_and_types(hidden, counts, self._types)
            hidden = known.states
        return super().encode(labels, hidden, rows)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        labels, states = super().decode(code, rows)
        return labels, join_hidden(states, self._types)

    def existing(self, labels: Array, rows: Rows = None) -> None:
        return None  # every class has every window

    @property
    def operations(self) -> float:
        return float(self._table.shape[0]) * self.n_params

    def exact(self) -> Self:
        if self._precision == np.float64:
            return self
        view = copy.copy(self)
        view._precision = np.dtype(np.float64)
        return view

    def digest(self) -> str:
        return checksum(self._table, self._cells, self._plan.inner, self.offsets, *self.digest_arrays())

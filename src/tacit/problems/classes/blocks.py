"""One weight block per class, shared by all hidden values: what `Multiclass` and `Candidates` have in common.

``Ψ(x, y, h)`` puts the row of features that h chooses into the block of class y, so all scores of all rows are one
matrix product, and a sum of features is one gather.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, Rows
from tacit.data.parameters import shorten
from tacit.oracle import EnumerableOracle, Schema
from tacit.oracle.digests import checksum
from tacit.problems.classes.dual import ClassDual
from tacit.problems.shared.row_sums import add_rows, add_sparse_rows, cut_rows

Blocks = dict[str, tuple[int, ...]]
"""Names and shapes of parts of w."""

SMALL_PRODUCT = 900_000
"""Below a million multiplications OpenBLAS skips packing, which is a third faster (34 against 49 µs on the digits).
Tables too small for threads to pay are cut to this size; larger ones gain more from BLAS's own threads."""


class ClassBlocks(EnumerableOracle):
    """Scores are ``W @ table.T + b``; see `EnumerableOracle` for the rest of the arguments.

    A dense table in memory is kept twice, by rows for `gather` and by columns for `scores` (twice as fast as one
    copy); a memory-mapped one is read in place, a sparse one is kept as it is.
    """

    def __init__(self, table: Any, schema: Schema, offsets: Array, **supervision: Any) -> None:
        shape = (len(schema.classes), table.shape[1])
        if schema.blocks.get("weights") != shape or schema.blocks.get("intercept", shape[:1]) != shape[:1]:
            raise ValueError(
                f"the schema's blocks {shorten(dict(schema.blocks))} do not fit {shape[0]} classes × {shape[1]} "
                "features"
            )
        self._sparse = sparse.issparse(table)
        self._blocks_of = schema.views
        self._has_intercept = "intercept" in schema.blocks
        self._keep(table)
        self._precision = self._rows.dtype
        per_state = max(1, len(schema.classes) * table.shape[1])
        if self._sparse:
            self.block_cells = 1 << 22  # a block of a sparse table costs more to cut out than to search
        elif per_state * table.shape[0] < 4 * SMALL_PRODUCT:
            self.block_cells = max(64, SMALL_PRODUCT // table.shape[1])
        super().__init__(schema.classes, offsets, schema.n_params, **supervision)

    def _keep(self, table: Any) -> None:
        """Keep the table in the layouts that passes read."""
        self._columns: Any = None
        if self._sparse:
            self._rows = table
        elif isinstance(table, np.memmap):
            self._rows = np.asarray(table)
            self._columns = self._rows.T
        else:
            self._rows = np.ascontiguousarray(table)
            self._columns = np.ascontiguousarray(table.T)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        parts = self._blocks_of(w)
        weights = parts["weights"].astype(self._precision, copy=False)
        states = self.states(rows)
        if not w.any():  # every descent asks there, and a product of zeros takes as long as any other
            size = states.stop - states.start if isinstance(states, slice) else len(states)
            return np.zeros((self.n_labels, size), self._precision)
        if self._sparse:
            scores = np.ascontiguousarray((cut_rows(self._rows, states) @ weights.T).T)
        else:
            scores = weights @ self._columns_of(states).astype(self._precision, copy=False)
        if self._has_intercept:
            scores += parts["intercept"].astype(scores.dtype)[:, None]
        return scores

    def _columns_of(self, states: Any) -> Array:
        """The rows of these states as columns."""
        columns: Array = self._columns[:, states]
        return columns

    def existing(self, labels: Array, rows: Rows = None) -> None:
        return None  # every class has every state

    @property
    def table(self) -> Any:
        """The feature rows, dense or CSR."""
        return self._rows

    @property
    def constant(self) -> float:
        """The feature that intercepts weigh: 1, or 0 where there are none."""
        return 1.0 if self._has_intercept else 0.0

    def parts(self, w: Array) -> tuple[Array, Array]:
        """(K, d) weights and (K,) intercepts, copies; zeros where there are none."""
        parts = self._blocks_of(w)
        intercept = parts["intercept"].copy() if self._has_intercept else np.zeros(self.n_labels)
        return parts["weights"].copy(), intercept

    def flat(self, weights: Array, intercept: Array) -> Array:
        """The flat vector of these weights: the inverse of `parts`."""
        out = np.empty(self.n_params)
        parts = self._blocks_of(out)
        parts["weights"][:] = weights
        if self._has_intercept:
            parts["intercept"][:] = intercept
        return out

    def dual(self, weights: Array, target: Array, start: Mapping[str, Any] | None = None) -> ClassDual:
        return ClassDual(self, weights, target, start)

    def exact(self) -> Self:
        if self._precision == np.float64:
            return self
        view = copy.copy(self)
        view._precision = np.dtype(np.float64)
        return view

    def digest(self) -> str:
        return checksum(self._rows, self.offsets, *self.digest_arrays())

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        states = self.states(rows)
        table = cut_rows(self._rows, states) if self._sparse else self._rows[states]
        parts["weights"][:] = (table.T @ V.T).T if self._sparse else V @ table
        if self._has_intercept:
            parts["intercept"][:] = V.sum(axis=1)
        return out

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        firsts = self.offsets[:-1] if rows is None else self.offsets[:-1][rows]
        return self.sum_cells(labels, firsts + states, coef)

    def sum_cells(self, labels: Array, absolute: Array, coef: Array) -> Array:
        """Σ coef Ψ(cell) over any cells, their states counted over all samples."""
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        if self._sparse:
            table = self._rows
            add_sparse_rows(table.data, table.indices, table.indptr, labels, absolute, coef, parts["weights"])
        else:
            self._add_rows(labels, absolute, coef, parts["weights"])
        if self._has_intercept:
            parts["intercept"][:] = np.bincount(labels, coef, minlength=self.n_labels)
        return out

    def _add_rows(self, labels: Array, absolute: Array, coef: Array, out: Array) -> None:
        """Add the rows of a dense table to the blocks of their labels, one after the other."""
        add_rows(self._rows, labels, absolute, coef, out)


def check_blocks(schema: Schema, needed: Blocks, optional: Blocks) -> None:
    """Refuse a schema whose blocks of weights are not those needed, and perhaps those that are optional.

    >>> check_blocks(Schema(np.arange(2), 3, {"weights": (2, 4)}), {"weights": (2, 3)}, {})
    Traceback (most recent call last):
    ...
    ValueError: the schema's blocks {'weights': (2, 4)} do not fit 2 classes × 3 features: {'weights': (2, 3)}
    """
    fits = all(schema.blocks.get(name) == shape for name, shape in needed.items()) and all(
        shape == (needed | optional).get(name) for name, shape in schema.blocks.items()
    )
    if not fits:
        raise ValueError(
            f"the schema's blocks {shorten(dict(schema.blocks))} do not fit {len(schema.classes)} classes × "
            f"{shorten(schema.n_features)} features: {shorten(needed)}"
        )

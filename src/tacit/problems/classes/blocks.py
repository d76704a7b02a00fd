"""One weight block per class, shared by all hidden values: what `Multiclass` and `Candidates` have in common.

``Ψ(x, y, h)`` puts the row of features that h chooses into the block of class y, so all scores of all rows are one
matrix product, and a sum of features is one gather.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, Rows, checksum
from tacit.data.parameters import shorten
from tacit.data.table import Table, lend
from tacit.oracle import EnumerableOracle, Schema
from tacit.oracle.capabilities import KeepsDual
from tacit.oracle.cells import one_coef_each, pair_cells, take_rows
from tacit.problems.classes.dual import ClassDual
from tacit.problems.row_sums import sum_rows

Listed = TypeVar("Listed", bound=EnumerableOracle)

Blocks = dict[str, tuple[int, ...]]
"""Names and shapes of parts of w."""

SMALL_PRODUCT = 900_000
"""Below a million multiplications OpenBLAS skips packing, which is a third faster (34 against 49 µs on the digits).
Tables too small for threads to pay are cut to this size; larger ones gain more from BLAS's own threads."""

MIN_IN_PLACE = 4_000_000
"""Multiplications from which on a block of a `Table` is multiplied as it is stored. Below a million, BLAS has
other kernels for rows than for columns, which round differently; a copy of so few rows is cheap."""


class ClassBlocks(EnumerableOracle):
    """Scores are ``W @ table.T + b``; see `EnumerableOracle` for the rest of the arguments.

    A dense table in memory is kept twice, by rows for `gather` and by columns for `scores` (twice as fast as one
    copy). A memory-mapped one is read in place, a sparse one is kept as it is. A `Table` is read in blocks, with the
    same bits, but without dual variables for visits of single samples: `tacit.solvers.FrankWolfe` keeps planes then.
    """

    def __init__(self, table: Any, schema: Schema, offsets: Array, **supervision: Any) -> None:
        shape = (len(schema.classes), table.shape[1])
        if schema.blocks.get("weights") != shape or schema.blocks.get("intercept", shape[:1]) != shape[:1]:
            found = shorten(dict(schema.blocks))
            raise ValueError(f"the schema's blocks {found} do not fit {shape[0]} classes × {shape[1]} features")
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
        if self._sparse or isinstance(table, Table):
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
        if not w.any():  # every descent starts at zero, and a product of zeros takes as long as any other
            size = states.stop - states.start if isinstance(states, slice) else len(states)
            return np.zeros((self.n_labels, size), self._precision)
        if self._columns is not None:
            scores = weights @ self._columns[:, states].astype(self._precision, copy=False)
        else:
            with lend(self._rows, states) as table:
                if self._sparse:
                    scores = np.ascontiguousarray((table @ weights.T).T)
                else:
                    scores = weights @ self._transpose(table, states).astype(self._precision, copy=False)
        if self._has_intercept:
            scores += parts["intercept"].astype(scores.dtype)[:, None]
        return np.asarray(scores)

    def _transpose(self, rows: Array, states: Any) -> Array:
        """Rows as columns, laid out so that a product has the bits of one in memory."""
        is_picked = not isinstance(states, slice)  # NumPy lays picked columns out in the same way
        is_large = self.n_labels * rows.size >= MIN_IN_PLACE
        if is_picked or (is_large and layouts_agree(self.n_labels, rows.shape[1], np.dtype(self._precision).str)):
            return rows.T
        return np.ascontiguousarray(rows.T)

    def existing(self, labels: Array, rows: Rows = None) -> None:
        return None  # every class has every state

    @property
    def table(self) -> Any:
        """The feature rows, dense or CSR."""
        return self._rows

    @property
    def constant(self) -> float:
        """The feature behind the intercepts: 1, or 0 without intercepts."""
        return 1.0 if self._has_intercept else 0.0

    def parts(self, w: Array) -> tuple[Array, Array]:
        """Copies of the (K, d) weights and the (K,) intercepts, which are zeros without intercepts."""
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

    @property
    def lacks(self) -> tuple[type, ...]:
        """Capabilities that are missing: single samples of a `Table` are not visited."""
        return (KeepsDual,) if isinstance(self._rows, Table) else ()

    @property
    def on_workers(self) -> Any:
        """A function that lets the workers that hold the rows compute for this oracle, or None."""
        return getattr(self._rows, "distribute", None)

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the samples from first to last (exclusive), to be sent to the worker with their rows."""
        part = cut_samples(self, first, last)
        part._rows = None
        return part

    def on_rows(self, table: Table) -> Self:
        """The same oracle with these rows."""
        view = copy.copy(self)
        view._keep(table)
        return view

    def digest(self) -> str:
        return checksum(self._rows, self.offsets, *self.digest_arrays())

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        states = self.states(rows)
        with lend(self._rows, states) as table:
            parts["weights"][:] = (table.T @ V.T).T if self._sparse else V @ table
        if self._has_intercept:
            parts["intercept"][:] = V.sum(axis=1)
        return out

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        firsts = self.offsets[:-1] if rows is None else self.offsets[:-1][rows]
        return self.sum_cells(labels, firsts + states, coef)

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """See `tacit.oracle.capabilities.SumsDifferences`: each row is read for both outputs at once."""
        n, has_hidden = self._count(rows), self.has_hidden
        code, target = (np.asarray(codes, dtype=np.int64) for codes in (code, target))
        if code.shape != (n,) or target.shape != (n,):
            raise ValueError(f"code and target must have one integer per sample ({n})")
        sizes, firsts = take_rows(self._sizes, rows), take_rows(self.offsets[:-1], rows)
        label, state, signed = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n)
        coef = one_coef_each(coef, n)
        size = pair_cells(code, target, sizes, firsts, self.n_labels, has_hidden, coef, label, state, signed)
        if size < 0:
            raise ValueError("code and target must stand for outputs of the samples whose coefficient is not 0")
        return self.sum_cells(label[:size], state[:size], signed[:size])

    def sum_cells(self, labels: Array, absolute: Array, coef: Array) -> Array:
        """Σ coef Ψ(cell) over any cells, their states counted over all samples."""
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        sum_rows(self._rows, labels, absolute, coef, parts["weights"])
        if self._has_intercept:
            parts["intercept"][:] = np.bincount(labels, coef, minlength=self.n_labels)
        return out


@cache
def layouts_agree(n_labels: int, width: int, dtype: str) -> bool:
    """Whether this BLAS rounds a large product in the same way for rows and for columns; tried out, once.

    A fit from memory multiplies columns. Where the two differ, blocks are copied, to get the same result.
    """
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((n_labels, width)).astype(dtype)
    smallest = MIN_IN_PLACE // (n_labels * width) + 1
    rows = rng.standard_normal((smallest + 16, width)).astype(dtype)
    columns = np.ascontiguousarray(rows.T)
    sizes = range(smallest, smallest + 16, 5)
    return all(np.array_equal(weights @ columns[:, :size], weights @ rows[:size].T) for size in sizes)


def cut_samples(oracle: Listed, first: int, last: int) -> Listed:
    """A copy with only the samples from first to last (exclusive): labels, losses, known hidden values.

    Its blocks are cut, and its codes are stored, as those of all samples. Features are not cut.
    """
    part: Any = copy.copy(oracle)
    whole: Any = oracle
    samples, states = slice(first, last), oracle.states(slice(first, last))
    part.offsets = oracle.offsets[first : last + 1] - oracle.offsets[first]
    part._sizes, part.n_samples = whole._sizes[samples], last - first
    part._labels = None if whole._labels is None else whole._labels[samples]
    part._hidden = whole._hidden[samples]
    part._allowed = None if whole._allowed is None else whole._allowed[states]
    part._hidden_loss = None
    if whole._losses is not None:
        part._losses = part._check_losses(whole._losses.cut(states, samples))
    part._whole = list(part._cut(slice(0, part.n_samples)))
    cut: Listed = part
    return cut


def check_blocks(schema: Schema, needed: Blocks, optional: Blocks) -> None:
    """Refuse a schema whose blocks of weights are not those needed, with or without the optional ones.

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

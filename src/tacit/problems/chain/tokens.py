"""Sequences whose tokens are rows of one table: features that every sequence has, and linear maps of the rows."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, Rows
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.table import Table, lend
from tacit.oracle import Schema
from tacit.oracle.parts import PartsOracle

EXTRA = ("intercept", "start", "stop")
"""Blocks of weights of features that every sequence has: columns behind those of the user."""


class TokenOracle(PartsOracle):
    """A base of oracles of sequences.

    Parameters
    ----------
    sequences : token features, those of shards read block by block
    schema : classes and dimensions
    n_values : how many values an integer of a code may have
    labels : as in `PartsOracle`
    """

    def __init__(self, sequences: Ragged | Shards, schema: Schema, n_values: int, labels: Array | None) -> None:
        self._schema = schema
        self.table: Any = add_extra_columns(sequences, schema)
        self._sparse = sparse.issparse(self.table)
        super().__init__(schema, sequences.offsets, n_values, labels=labels, precision=self.table.dtype)

    def _multiply(self, columns: Array, rows: Rows) -> Array:
        """(tokens, columns): the products of the rows of these sequences, a fresh table in double precision."""
        with lend(self.table, self._positions(rows)) as table:
            return np.ascontiguousarray(table.astype(self._precision, copy=False) @ columns, dtype=np.float64)

    def _add_rows(self, weights: Array, rows: Rows, out: Array) -> None:
        """Add Σ_t weights[t, k] x_t to ``out[k]``, over the tokens of these sequences."""
        with lend(self.table, self._positions(rows)) as table:
            out += np.asarray((table.T @ weights).T if self._sparse else weights.T @ table)

    @property
    def _width(self) -> float:
        """Features of a token, on average those that are not zero."""
        return float(self.table.nnz / self.table.shape[0] if self._sparse else self.table.shape[1])

    @property
    def _rows(self) -> Any:
        """The token features as the user gave them."""
        if isinstance(self.table, TokenTable):
            return self.table.rows
        width = self._schema.n_features
        return self.table if self._sparse or self.table.shape[1] == width else self.table[:, :width]

    @property
    def on_workers(self) -> Any:
        """A function that lets the workers that hold the rows compute for this oracle, or None."""
        return getattr(self.table, "distribute", None)

    def on_rows(self, rows: Table) -> Self:
        """The same oracle with these rows."""
        return self._with(table=TokenTable(rows, self.offsets, self._schema))


def add_extra_columns(sequences: Ragged | Shards, schema: Schema) -> Any:
    """The token table, with the columns of the `EXTRA` blocks that the schema has."""
    values = sequences.values
    if isinstance(values, Table):
        return TokenTable(values, sequences.offsets, schema)
    extra = extra_columns(sequences.offsets, schema, np.arange(values.shape[0])).astype(values.dtype)
    if not extra.shape[1]:
        return values
    if sparse.issparse(values):
        return sparse.csr_array(sparse.hstack([values, sparse.csr_array(extra)], format="csr"))
    return np.hstack([values, extra])


class TokenTable(Table):
    """Token features of a `Table`, and behind them the columns of features that every sequence has.

    Parameters
    ----------
    rows : the features
    offsets : where sequences begin
    schema : says which columns there are
    """

    def __init__(self, rows: Table, offsets: Array, schema: Schema) -> None:
        self.rows = rows
        self.dtype, self.distribute = rows.dtype, rows.distribute
        self.release, self.prefetch = rows.release, rows.prefetch  # type: ignore[method-assign]
        self._offsets, self._schema = offsets, schema
        self.shape = rows.shape[0], rows.shape[1] + extra_columns(offsets, schema, np.arange(0)).shape[1]

    def __getitem__(self, tokens: Any) -> Array:
        rows = self.rows[tokens]
        if self.shape[1] == self.rows.shape[1]:
            return rows
        indices = np.arange(tokens.start, tokens.stop) if isinstance(tokens, slice) else np.asarray(tokens)
        return np.hstack([rows, extra_columns(self._offsets, self._schema, indices).astype(self.dtype)])


def extra_columns(offsets: Array, schema: Schema, tokens: Array) -> Array:
    """(tokens, columns): the features that every sequence has, one column for each of the `EXTRA` blocks there are."""
    sequence = np.searchsorted(offsets, tokens, side="right") - 1
    columns = {
        "intercept": np.ones(tokens.size, dtype=bool),
        "start": tokens == offsets[:-1][sequence],
        "stop": tokens == offsets[1:][sequence] - 1,
    }
    names = [name for name in EXTRA if name in schema.blocks]
    return np.column_stack([columns[name] for name in names]) if names else np.zeros((tokens.size, 0), dtype=bool)


def group_tokens(table: Any, count: int, rng: np.random.Generator) -> Array:
    """The group of every token by k-means; fewer groups where fewer tokens differ."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if sparse.issparse(table):  # scikit-learn takes indices of 32 bits only
        indices = table.indices.astype(np.int32), table.indptr.astype(np.int32)
        table = sparse.csr_array((table.data, *indices), shape=table.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        groups = KMeans(count, n_init=3, random_state=int(rng.integers(2**31))).fit_predict(table)
    return np.asarray(groups)

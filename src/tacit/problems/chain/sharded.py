"""Chains whose token features are in shards: the same inference, to the bit, on rows that are read block by block."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.shards import Shards
from tacit.data.table import ShardedTable
from tacit.oracle import Schema
from tacit.oracle.capabilities import KeepsDual, LearnsOnline
from tacit.oracle.enumerable import one_coef_each
from tacit.problems.chain.oracle import ChainOracle
from tacit.problems.chain.packed import extra_columns
from tacit.problems.chain.viterbi import add_pairs
from tacit.problems.shared.row_sums import add_rows

TOKENS_AT_A_TIME = 1 << 15
"""Tokens that are read at a time for a sum of features."""


class ShardedChainOracle(ChainOracle):
    """The features are in a `ShardedTable`, read in place; its pages are given back after every block.

    It visits no single sequences, so it has neither dual variables nor passes that learn online.
    """

    def _keep(self, sequences: Shards, schema: Schema) -> Any:
        return TokenTable(sequences.values, sequences.offsets, schema)

    lacks = (KeepsDual, LearnsOnline)

    @property
    def on_workers(self) -> Any:
        """A function that lets workers answer for this oracle, where they have the rows; else None."""
        return getattr(self.table.rows, "distribute", None)

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the sequences from first to last (exclusive), to be sent to where their rows are."""
        tokens = self._places(slice(first, last))
        part = self._recut(self._starts(slice(first, last)), table=None)
        part._labels = None if self._labels is None else self._labels[tokens]
        part._known_states = None if self._known_states is None else self._known_states[tokens]
        if self._losses is not None:
            part._losses = self._losses.cut(tokens, tokens)
        return part

    def on_rows(self, rows: Any) -> Self:
        """The same oracle with these rows."""
        return self._changed(table=TokenTable(rows, self.offsets, self._schema))

    def _digested(self) -> Any:
        return self.table.rows

    def _unary(self, w: Array, rows: Rows) -> Array:
        tokens = self._places(rows)
        if not w.any():  # every fit asks there: no rows are needed, wherever they are
            return np.zeros((int(self._starts(rows)[-1]), self.n_states))
        if isinstance(tokens, slice):
            self.table.rows.fetch_behind(tokens.stop)
        unary = super()._unary(w, rows)
        self.table.rows.give_back_rows(tokens)
        return unary

    def _add_features(self, code: Array, coef: Array, rows: Rows, emission: Array, transition: Array) -> None:
        starts = self._starts(rows)
        coef = one_coef_each(coef, starts.size - 1)
        tokens = self._places(rows)
        weights = np.repeat(coef, np.diff(starts))
        for start in range(0, code.size, TOKENS_AT_A_TIME):
            own = slice(start, min(start + TOKENS_AT_A_TIME, code.size))
            if isinstance(tokens, slice):
                places: Any = slice(tokens.start + own.start, tokens.start + own.stop)
            else:
                places = tokens[own]
            table = self.table[places]
            add_rows(table, code[own], np.arange(len(table)), weights[own], emission)
            self.table.rows.give_back_rows(places)
        add_pairs(code, starts, coef, transition)

    def _add_expected(self, w: Array, rows: Rows, *more: Any) -> Array:
        log = super()._add_expected(w, rows, *more)
        self.table.rows.give_back_rows(self._places(rows))
        return log


class TokenTable:
    """Token features in shards, and behind them the columns of features that every sequence has.

    Parameters
    ----------
    rows : the features
    offsets : where sequences begin
    schema : says which columns there are
    """

    ndim = 2

    def __init__(self, rows: ShardedTable, offsets: Array, schema: Schema) -> None:
        self.rows = rows
        self.dtype = rows.dtype
        self._offsets, self._schema = offsets, schema
        self.shape = rows.shape[0], rows.shape[1] + extra_columns(offsets, schema, np.arange(0)).shape[1]

    def __getitem__(self, tokens: Any) -> Array:
        rows = self.rows[tokens]
        if self.shape[1] == self.rows.shape[1]:
            return rows
        places = np.arange(tokens.start, tokens.stop) if isinstance(tokens, slice) else np.asarray(tokens)
        return np.hstack([rows, extra_columns(self._offsets, self._schema, places).astype(self.dtype)])

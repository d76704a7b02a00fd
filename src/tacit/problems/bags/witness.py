"""One witness per bag of a class, and none in the background: the oracle of MI-SVM."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Rows, checksum, starts_of
from tacit.data.parameters import plain_array
from tacit.data.table import Table
from tacit.oracle import EnumerableOracle, Schema
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.known_hidden import read_hidden
from tacit.problems.classes.blocks import ClassBlocks, cut_samples


def foreground(table: Any, schema: Schema, offsets: Array) -> ClassBlocks:
    """Scores of all instances under all classes but the background, which is the first."""
    return ClassBlocks(table, Schema(schema.classes[1:], schema.n_features, schema.blocks), offsets)


class WitnessOracle(EnumerableOracle):
    """``s(y, h) = w_y·x_h + b_y``; the background, which is label 0, has one state of score 0, hidden value −1.

    Parameters
    ----------
    table, offsets : the instances, dense, CSR or a `Table`, and how they are cut into bags
    schema : classes, the background first, and a weight block for each of the others
    supervision : as in `EnumerableOracle`
    """

    def __init__(self, table: Any, schema: Schema, offsets: Array, **supervision: Any) -> None:
        self._foreground = foreground(table, schema, offsets)
        self._precision = self._foreground._precision
        self.block_cells = self._foreground.block_cells
        super().__init__(schema.classes, offsets, schema.n_params, **supervision)
        self._refuse_witnesses()

    def scores(self, w: Array, rows: Rows = None) -> Array:
        own = self._foreground.scores(w, rows)
        scores = np.concatenate([np.full_like(own[:1], -np.inf), own])
        scores[0, starts_of(self.offsets, rows)[:-1]] = 0.0
        return scores

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        return self._foreground.adjoint(np.ascontiguousarray(V[1:]), rows)

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        return self._foreground.gather(np.maximum(labels - 1, 0), states, np.where(labels == 0, 0.0, coef), rows)

    def existing(self, labels: Array, rows: Rows = None) -> Array:
        starts = starts_of(self.offsets, rows)
        exists = np.repeat(labels != 0, np.diff(starts))
        exists[starts[:-1]] = True
        return exists

    def with_hidden(self, hidden: Any) -> Self:
        view = super().with_hidden(hidden)
        view._refuse_witnesses()
        return view

    def exact(self) -> Self:
        view = super().exact()
        if view is not self:
            view._foreground = self._foreground.exact()
        return view

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        if hidden is not None:
            given, is_background = plain_array(hidden), np.asarray(labels) == self.classes[0]
            hidden = np.where(is_background & (given == -1), 0, given)
        return super().encode(labels, hidden, rows)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        labels, states = self.split(code, rows)
        return self.classes[labels], np.where(labels == 0, -1, states)

    def digest(self) -> str:
        return checksum(self.table, self.offsets, *self.digest_arrays())

    @property
    def table(self) -> Any:
        """The instances, dense or CSR."""
        return self._foreground.table

    @property
    def lacks(self) -> tuple[type, ...]:
        """Capabilities that are missing: see `ClassBlocks`."""
        return self._foreground.lacks

    @property
    def on_workers(self) -> Any:
        """A function that lets the workers that hold the rows compute for this oracle, or None."""
        return self._foreground.on_workers

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the bags from first to last (exclusive), to be sent to the worker with their rows."""
        part = cut_samples(self, first, last)
        part._foreground = self._foreground.part(first, last)
        return part

    def on_rows(self, table: Table) -> Self:
        """The same oracle with these rows."""
        view = copy.copy(self)
        view._foreground = self._foreground.on_rows(table)
        return view

    def _refuse_witnesses(self) -> None:
        """Refuse known witnesses of bags of the background, which have none."""
        if self._labels is None:
            return
        wrong = (self._labels == 0) & (self._hidden > 0)
        if self._allowed is not None:
            wrong |= (self._labels == 0) & ~self._allowed[self.offsets[:-1]]
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"hidden[{i}] names a witness, but bag {i} is {self.classes[0]!r}, the background, which has none; "
                "give -1, or say with background= which class has no witness"
            )


def read_witnesses(hidden: Any, sizes: Array) -> KnownHidden:
    """Known witnesses: per bag a position, −1 where it is unknown or there is none, or positions that are allowed."""
    return read_hidden(hidden, sizes, "instances")

"""What both oracles of `PerSample` share: bound data, and calls of the user's functions compared with the truth."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array, Rows, span
from tacit.data.labels import is_missing
from tacit.oracle import TARGET, Assignment
from tacit.oracle.cells import one_coef_each
from tacit.problems.per_sample.output_table import OutputTable
from tacit.problems.per_sample.user_functions import (
    Cost,
    Output,
    UserFunctions,
    as_column,
    as_samples,
    is_scalar,
    key_of,
)

ROUNDING = 1e-6
"""How far below the truth's value an answer may be, as a share of ‖w‖·‖Ψ‖: the user may compute in single precision."""

BLOCKS = 32
"""Features are summed in this many blocks of samples, so that a sum does not depend on how many workers share them."""


class Bound(NamedTuple):
    """Data bound by `PerSample`: what both oracles are built from, as a whole or for a shard of the samples."""

    functions: UserFunctions
    samples: list[Any]
    labels: list[Any] | None
    hidden: list[Any] | None
    classes: Array  # empty where labels are not single values
    memory: float
    first: int = 0
    n_labels: int | None = None
    approximate: bool = False

    def part(self, first: int, last: int) -> Bound:
        """The samples from first to last (exclusive)."""

        def cut(values: list[Any] | None) -> Any:
            return None if values is None else values[first:last]

        return self._replace(
            functions=UserFunctions(self.functions.functions, self.functions.hidden, self.functions.n_params),
            samples=self.samples[first:last],
            labels=cut(self.labels),
            hidden=cut(self.hidden),
            memory=self.memory * (last - first) / len(self.samples),
            first=self.first + first,
        )


class FunctionCalls:
    """What both oracles share: calls of the user's functions, row by row, and a comparison with the truth.

    A subclass knows codes: `_code(name, i, output)` and `_entries(code, rows)`, and has ``_truth``, the code of every
    true output, −1 where its hidden value is unknown.
    """

    code_offsets: Array | None = None
    completes_labels = False
    n_samples: int
    n_params: int
    _bound: Bound
    _table: OutputTable
    _truth: Array

    def _code(self, name: str, i: int, output: Output) -> int:
        raise NotImplementedError

    def _entries(self, code: Array, rows: Rows) -> Array:
        raise NotImplementedError

    def costs(self) -> dict[str, Cost]:
        """Calls of each of the user's functions so far in this process, and microseconds per call."""
        return self._bound.functions.costs()

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        return self._table.scores(w, self._entries(code, rows))

    def loss(self, code: Array, rows: Rows = None) -> Array:
        return self._table.losses(self._entries(code, rows))

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        entries = self._entries(code, rows)
        return self._table.sum(entries, one_coef_each(coef, entries.size))

    def exact(self) -> Self:
        return self

    def block_starts(self) -> Array:
        """Where the blocks begin in which features are summed, and where the last ends."""
        return np.unique(np.linspace(0, self.n_samples, BLOCKS + 1).astype(np.int64))

    def _indices(self, rows: Rows) -> Array:
        if rows is None or isinstance(rows, slice):
            return np.arange(*span(rows or slice(None), self.n_samples))
        return np.asarray(rows)

    def _shown(self, w: Array) -> Array:
        """The weights as the user's functions see them: as many as there are features, and not to be written to."""
        if np.shape(w) != (self.n_params,):
            raise ValueError(f"w has shape {np.shape(w)}, joint features have {self.n_params} numbers")
        return _read_only(w)

    def _known_truth(self) -> list[Any]:
        if self._bound.labels is None:
            raise ValueError("these samples were bound without labels: bind(X, y, ...) with y to impute or compare")
        return self._bound.labels

    def _call_argmax(self, w: Array, rows: Rows) -> Assignment:
        functions, samples, first, w = self._bound.functions, self._bound.samples, self._bound.first, self._shown(w)
        rows_ = self._indices(rows)
        code = [self._code("argmax", i, functions.argmax(first + i, samples[i], w)) for i in rows_.tolist()]
        return self._judged("argmax", w, np.array(code, np.int32), rows, augmented=False)

    def _call_augmented(self, w: Array, rows: Rows) -> Assignment:
        functions, samples, first, w = self._bound.functions, self._bound.samples, self._bound.first, self._shown(w)
        truth = self._known_truth()
        rows_ = self._indices(rows)
        code = [
            self._code("augmented", i, functions.augmented(first + i, samples[i], truth[i], w)) for i in rows_.tolist()
        ]
        return self._judged("augmented", w, np.array(code, np.int32), rows, augmented=True)

    def _call_impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        functions, samples, first, w = self._bound.functions, self._bound.samples, self._bound.first, self._shown(w)
        truth = self._known_truth()
        rows_ = self._indices(rows)
        code = self._truth[rows_].astype(np.int32)
        for k in np.flatnonzero(code < 0):
            i = int(rows_[k])
            h = functions.impute(first + i, samples[i], truth[i], w)
            code[k] = self._code("impute", i, (truth[i], h))
        value = self.score(w, code, rows)
        if prefer is None:
            return Assignment(code, value)
        preferred = self._wished(np.asarray(prefer), code, rows_)
        wanted = self.score(w, preferred, rows)
        self._refuse("impute", w, code, value, preferred, wanted, rows, "the hidden value held before")
        kept = wanted >= value
        return Assignment(np.where(kept, preferred, code), np.where(kept, wanted, value))

    def _wished(self, prefer: Array, code: Array, rows: Array) -> Array:
        """The preferred codes, where they have the true label and its hidden value is not given."""
        truth = self._known_truth()
        if prefer.shape != code.shape:
            raise ValueError(f"prefer has shape {prefer.shape} for {code.size} samples; it has one code per sample")
        usable = np.where(prefer == TARGET, code, prefer)
        entries = self._entries(usable, rows).tolist()
        outputs = self._table.outputs
        own = [key_of(outputs[e][0]) == key_of(truth[i]) for e, i in zip(entries, rows.tolist(), strict=True)]
        return np.where(np.array(own, bool) & (self._truth[rows] < 0), usable, code).astype(np.int32)

    def _judged(self, name: str, w: Array, code: Array, rows: Rows, augmented: bool) -> Assignment:
        """The answer with its value, unless the truth has a higher one."""
        value = self.score(w, code, rows)
        if augmented:
            value = value + self.loss(code, rows)
        truth = self._truth[self._indices(rows)]
        if (truth >= 0).any():
            usable = np.where(truth >= 0, truth, code)
            wanted = np.where(truth >= 0, self.score(w, usable, rows), -np.inf)  # the truth has no loss
            self._refuse(name, w, code, value, usable, wanted, rows, "the truth")
        return Assignment(code, value)

    def _refuse(
        self, name: str, w: Array, code: Array, value: Array, other: Array, wanted: Array, rows: Rows, what: str
    ) -> None:
        worse = np.flatnonzero(value < wanted)
        if not worse.size:
            return
        mine, theirs = self._entries(code, rows), self._entries(other, rows)
        room = ROUNDING * np.linalg.norm(w) * (self._table.norms(mine[worse]) + self._table.norms(theirs[worse]))
        worse = worse[value[worse] < wanted[worse] - room]
        if not worse.size:
            return
        k = int(worse[0])
        words = [self._bound.functions.name(*self._table.outputs[e]) for e in (mine[k], theirs[k])]
        measure = "score plus loss" if name == "augmented" else "score"
        raise ValueError(
            f"{name} of sample {self._bound.first + int(self._indices(rows)[k])} returned {words[0]}, whose {measure} "
            f"{value[k]:.6g} is below the {wanted[k]:.6g} of {what}, {words[1]}; {name} must return an output of the "
            f"highest {measure}, where the score is w @ joint_feature(...)"
        )


def pairs_of(oracle: FunctionCalls, labels: Any, hidden: Any, rows: Rows) -> list[tuple[int, Output]]:
    """Outputs as the user writes them, with their samples."""
    indices = oracle._indices(rows).tolist()
    labels = as_samples(labels, "labels")
    values = [None] * len(labels) if hidden is None else as_samples(hidden, "hidden")
    if len(labels) != len(indices) or len(values) != len(indices):
        raise ValueError(
            f"{len(labels)} labels and {len(values)} hidden values for {len(indices)} samples; give one each"
        )
    has_hidden = oracle._bound.functions.hidden
    if has_hidden and any(h is None for h in values):
        raise ValueError(f"hidden[{values.index(None)}] is unknown; only complete outputs have a code: give hidden=")
    return [(i, (y, h if has_hidden else None)) for i, y, h in zip(indices, labels, values, strict=True)]


def columns_of(table: OutputTable, entries: Array, has_hidden: bool) -> tuple[Array, Array | None]:
    outputs = [table.outputs[e] for e in entries.tolist()]
    return as_column([y for y, _ in outputs]), (as_column([h for _, h in outputs]) if has_hidden else None)


def refuse_costly_truth(oracle: Any, known: Array) -> None:
    """The truth must have no loss."""
    if not known.size:
        return
    losses = oracle.loss(oracle._truth[known], known)
    wrong = np.flatnonzero(losses != 0)
    if wrong.size:
        i = int(known[wrong[0]])
        bound = oracle._bound
        h = None if bound.hidden is None else bound.hidden[i]
        raise ValueError(
            f"loss of sample {bound.first + i} is {losses[wrong[0]]:g} for its own label "
            f"{bound.functions.name(bound.labels[i], h)}; the truth must have loss 0"
        )


def unknown(h: Any) -> bool:
    """Whether a hidden value is open: None, −1 or NaN.

    >>> unknown(-1), unknown(None), unknown("left"), unknown((0, -1))
    (True, True, False, False)
    """
    return is_missing(h) or (is_scalar(h) and not isinstance(h, str | bytes) and bool(h == -1))


def name_of(function: Any) -> str:
    """A function by its name; whatever else by its representation.

    >>> name_of(len), name_of([1, 2])
    ('len', '[1, 2]')
    """
    return str(getattr(function, "__qualname__", None) or repr(function))


def _read_only(w: Array) -> Array:
    """The weights as the user's functions see them: writing to them is an error at once, not a wrong result later."""
    view = np.asarray(w, dtype=np.float64).view()
    view.flags.writeable = False
    return view

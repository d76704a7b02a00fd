"""The oracle of `PerSample` with a list of outputs: enumeration, or the user's functions where given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import joblib
import numpy as np

from tacit.data.arrays import Array, Codes, Rows, checksum
from tacit.data.parameters import shorten
from tacit.oracle import Assignment, EnumerableOracle, LossTable
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.known_hidden import AnyOf, from_masks
from tacit.oracle.losses import CalledLoss
from tacit.problems.per_sample.called_oracle import Bound, FunctionCalls
from tacit.problems.per_sample.user_functions import Output, OutputTable, is_unknown, key_of, name_of


class ListedOracle(FunctionCalls, EnumerableOracle):
    """Outputs that the user lists: cells (label, hidden value) of an `EnumerableOracle`.

    Labels are the classes where they are single values, else they are counted within each sample. Maximisation is by
    enumeration, on features that are kept, except where the user gave a function for it.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        functions = bound.functions
        layouts = list(_layouts(bound))
        n_labels = bound.n_labels or len(bound.classes) or max(layout.n_labels for layout in layouts)
        offsets = np.concatenate([[0], np.cumsum([layout.n_states for layout in layouts])]).astype(np.int64)
        self._layouts = layouts
        self._table = OutputTable(functions, bound.samples, bound.labels, bound.memory, bound.first)
        self._cells = np.full((offsets[-1], n_labels), -1, np.int64)
        for i, layout in enumerate(layouts):
            entry = self._table.add(i, layout.outputs)
            self._cells[offsets[i] + layout.states, layout.labels] = entry + np.arange(len(layout.outputs))
        supervision: dict[str, Any] = {}
        if bound.labels is not None:
            true = [layout.label_of.get(key_of(y), n_labels) for layout, y in zip(layouts, bound.labels, strict=True)]
            supervision = {"labels": np.array(true, np.int64)}
            if "hidden_loss" in functions:
                supervision["hidden_loss"] = ListedLoss(functions.functions["hidden_loss"], layouts, bound)
            else:
                exists = self._cells >= 0
                losses = np.zeros(self._cells.shape)
                losses[exists] = self._table.losses(self._cells[exists])
                supervision["losses"] = LossTable(losses.T, None)
            if functions.hidden:
                supervision["hidden"] = self._read_known(bound.hidden)
        classes = bound.classes if len(bound.classes) else np.arange(n_labels)
        super().__init__(classes, offsets, functions.n_params or 0, has_hidden=functions.hidden, **supervision)
        self._truth = self._find_truth()
        self._refuse_costly_truth()

    def scores(self, w: Array, rows: Rows = None) -> Array:
        entries = self._cells[self.states(rows)].ravel()
        exists = entries >= 0
        scores = np.full(entries.size, -np.inf)
        scores[exists] = self._table.scores(w, entries[exists])
        return np.ascontiguousarray(scores.reshape(-1, self.n_labels).T)

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        entries = self._cells[self.states(rows)].ravel()
        exists = entries >= 0
        return self._table.sum(entries[exists], np.ascontiguousarray(V.T).ravel()[exists])

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        return self.features(self._join(labels, states), coef, rows)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        is_given = "argmax" in self._bound.functions
        return self._call_argmax(w, rows) if is_given else EnumerableOracle.predict(self, w, rows)

    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        if rescaling == "margin" and not rivals and "augmented" in self._bound.functions:
            return self._call_augmented(w, rows)
        return EnumerableOracle.predict_augmented(self, w, rows, target=target, rescaling=rescaling, rivals=rivals)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        if "impute" in self._bound.functions and self._allowed is None:
            self._known_labels(rows)
            return self._call_impute(w, rows, prefer)
        return EnumerableOracle.impute(self, w, rows, prefer)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        return EnumerableOracle.loss(self, code, rows)

    def with_loss(self, losses: LossTable) -> Self:
        """The same data under another loss; the user's loss-augmented argmax does not know it, so it is left out."""
        view = super().with_loss(losses)
        view._bound = self._bound._replace(functions=self._bound.functions.without("augmented"))
        return view

    def with_hidden(self, hidden: Any) -> Self:
        view = super().with_hidden(hidden)
        view._truth = view._find_truth()
        return view

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if not super().accepts(code):
            return False
        own = np.flatnonzero(code >= 0)
        label, state = self.split(code[own], own)
        return bool((self._cells[self.offsets[:-1][own] + state, label] >= 0).all())

    def existing(self, labels: Array, rows: Rows = None) -> Array:
        sizes = np.diff(self.offsets)[slice(None) if rows is None else rows]
        states = self._cells[self.states(rows)]
        return np.asarray(states[np.arange(len(states)), np.repeat(labels, sizes)] >= 0)

    @property
    def operations(self) -> float:
        return float(32 * self._cells.size)  # a rough number: features are kept without their zeros

    def hidden_unknown(self) -> Array:
        if not self.has_hidden or self._labels is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero((self._truth < 0) & (self._labels < self.n_labels))

    def digest(self) -> str:
        """Samples and labels by content, losses by value, functions by their answers on the truth."""
        bound = self._bound
        known = np.flatnonzero(self._truth >= 0)
        answers = self._table.norms(self._entries(self._truth[known], known))
        names = sorted(f"{name}={name_of(function)}" for name, function in bound.functions.functions.items())
        data = joblib.hash((bound.samples, bound.labels, bound.hidden, names))
        return f"{data}{checksum(self._cells, answers, *self.digest_arrays())}"

    def recipe(self, first: int, last: int) -> Any:
        """How another process builds the same oracle for some of the samples."""
        return partial(ListedOracle, self._bound._replace(n_labels=self.n_labels).part(first, last))

    @property
    def runs_python(self) -> bool:
        """Whether passes call Python functions, which hold the interpreter lock: processes, not threads."""
        functions = self._bound.functions
        if "hidden_loss" in functions:  # the recipe does not have the true hidden values
            return False
        return self._table.is_full or any(name in functions for name in ("argmax", "augmented", "impute"))

    def _code(self, name: str, i: int, output: Output) -> int:
        layout = self._layouts[i]
        number = layout.number_of.get((key_of(output[0]), key_of(output[1])))
        if number is None:
            returned, first = (self._bound.functions.name(*one) for one in (output, layout.outputs[0]))
            raise ValueError(
                f"{name} of sample {self._bound.first + i} returned {returned}, which is not among the "
                f"{len(layout.outputs)} outputs that are listed for it, such as {first}; list it, or correct {name}"
            )
        label, state = int(layout.labels[number]), int(layout.states[number])
        return state * self.n_labels + label if self.has_hidden else label

    def _entries(self, code: Array, rows: Rows) -> Array:
        label, state = self.split(code, rows)
        firsts = self.offsets[:-1] if rows is None else self.offsets[:-1][rows]
        return np.asarray(self._cells[firsts + state, label])

    def _read_known(self, hidden: list[Any] | None) -> KnownHidden | None:
        if hidden is None:
            return None
        return from_masks(
            [self._possible_states(i, h) for i, h in enumerate(hidden)],
            np.array([layout.n_states for layout in self._layouts]),
        )

    def _possible_states(self, i: int, h: Any) -> Array | None:
        """Which states of a sample a known hidden value, or several, stand for; None for all."""
        layout, label = self._layouts[i], self._known_truth()[i]
        mask = np.zeros(layout.n_states, dtype=bool)
        for value in h if isinstance(h, AnyOf) else (h,):
            number = layout.number_of.get((key_of(label), key_of(value)))
            if number is None and is_unknown(value):
                return None
            if number is None:
                what = f"outputs= does not list {self._bound.functions.name(label, value)} for this sample"
                raise ValueError(f"hidden[{self._bound.first + i}] is {shorten(h)}, but {what}; list it, or give -1")
            mask[layout.states[number]] = True
        return mask

    def _find_truth(self) -> Array:
        """The code of every true output, −1 where the hidden value is open or the label is not listed."""
        truth = np.full(self.n_samples, -1, np.int32)
        if self._labels is None:
            return truth
        for i in np.flatnonzero(self._labels < self.n_labels):
            label = int(self._labels[i])
            if not self.has_hidden:
                truth[i] = label
                continue
            own = slice(self.offsets[i], self.offsets[i + 1])
            states = np.flatnonzero((self._cells[own, label] >= 0) & (self._allowed is None or self._allowed[own]))
            given = int(self._hidden[i])
            if given >= 0 or states.size == 1:
                truth[i] = (given if given >= 0 else int(states[0])) * self.n_labels + label
        return truth

    def _known_labels(self, rows: Rows) -> Array:
        self._known_truth()
        labels = np.asarray(self._labels)[slice(None) if rows is None else rows]
        unlisted = np.flatnonzero(labels >= self.n_labels)
        if unlisted.size:
            i = int(self._indices(rows)[unlisted[0]])
            what = f"y[{self._bound.first + i}] is {shorten(self._known_truth()[i])}"
            raise ValueError(f"{what}, which outputs= does not list for this sample; list it, or drop the sample")
        return labels


class ListedLoss(CalledLoss):
    """A user's loss between two listed outputs; samples with the same list and label share it."""

    def __init__(self, function: Callable[..., Any], layouts: list[_Layout], bound: Bound) -> None:
        super().__init__(function, np.zeros(0))
        self.layouts, self.bound = layouts, bound
        self._lists = {id(layout): number for number, layout in enumerate(layouts)}

    def _key(self, i: int, true: int, own: slice) -> Any:
        return true, self._lists[id(self.layouts[i])]

    def _states(self, i: int, true: int, own: slice) -> range:
        return range(self.layouts[i].n_states)

    def _costs(self, i: int, true: int, h: int, own: slice) -> Array:
        layout, number = self.layouts[i], self.bound.first + i
        n_labels = max(int(layout.labels.max()) + 1, len(self.bound.classes), self.bound.n_labels or 0)
        costs = np.zeros((n_labels, layout.n_states))
        found = np.flatnonzero((layout.labels == true) & (layout.states == h))
        if not found.size:
            return costs  # the true label does not have this hidden value
        truth = layout.outputs[int(found[0])]
        for label, state, output in zip(layout.labels, layout.states, layout.outputs, strict=True):
            costs[label, state] = self._call(number, *truth, *output)
        if costs[true, h] != 0:
            raise ValueError(f"hidden_loss{(*truth, *truth)} of sample {number} must be 0, got {costs[true, h]}")
        return costs


class _Layout(NamedTuple):
    """The outputs of a sample as cells: ``labels[p]`` and ``states[p]`` of its p-th output."""

    outputs: list[Output]
    number_of: dict[Any, int]
    label_of: dict[Any, int]
    labels: Array
    states: Array
    n_labels: int
    n_states: int


def _layouts(bound: Bound) -> Iterator[_Layout]:
    """The cells of every sample; samples with the same list share them."""
    classes = {key_of(label): k for k, label in enumerate(bound.classes.tolist())}
    last: tuple[Any, _Layout] | None = None
    for i, x in enumerate(bound.samples):
        number = bound.first + i
        outputs = bound.functions.outputs(number, x)
        keys = [(key_of(y), key_of(h)) for y, h in outputs]
        if last is None or last[0] != keys:
            number_of = {key: p for p, key in enumerate(keys)}
            if len(number_of) < len(keys):
                twice = next(p for p, key in enumerate(keys) if number_of[key] != p)
                raise ValueError(f"outputs of sample {number} lists {bound.functions.name(*outputs[twice])} twice")
            label_of = dict(classes)
            for y, _ in keys:
                if y not in label_of and classes:
                    seen = shorten(list(classes))
                    raise ValueError(f"outputs of sample {number} has the label {shorten(y)}, but training had {seen}")
                label_of.setdefault(y, len(label_of))
            state_of: dict[Any, int] = {}
            for _, h in keys:
                state_of.setdefault(h, len(state_of))
            labels = np.array([label_of[y] for y, _ in keys], np.int64)
            states = np.array([state_of[h] for _, h in keys], np.int64)
            listed = {y: label_of[y] for y, _ in keys}
            last = keys, _Layout(outputs, number_of, listed, labels, states, len(label_of), len(state_of))
        yield last[1]

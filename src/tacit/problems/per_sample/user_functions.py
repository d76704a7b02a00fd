"""A user's functions for one sample: what they return is checked, timed and kept, and errors name the sample."""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, as_csr
from tacit.data.kernels import kernel
from tacit.data.labels import UNLABELLED, is_missing, read_labels
from tacit.data.parameters import list_entries, plain_array, reason, shorten

Output = tuple[Any, Any]
"""A label and a hidden value; the hidden value is None in problems without any."""

NOT_YET, NO_ROOM = -1, -2
"""Row numbers of features that were never needed, and of those that are beyond the memory limit."""


class Cost(NamedTuple):
    """How often a function was called, and the mean time of a call."""

    calls: int
    microseconds: float


class UserFunctions:
    """The functions of `PerSample`, called in the same way with and without hidden values.

    The shapes, numbers and pairs that they return are checked here. An exception that a function raises gets a note
    with the function and the sample. This adds about 0.5 µs per call.

    Parameters
    ----------
    functions : the functions that were given, by name
    hidden : whether outputs are pairs (label, hidden value)
    n_params : the length that joint features must have; None before it is known
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]], hidden: bool, n_params: int | None = None) -> None:
        self.functions = dict(functions)
        self.hidden = hidden
        self.n_params = n_params
        self._calls = dict.fromkeys(self.functions, 0)
        self._seconds = dict.fromkeys(self.functions, 0.0)

    def __contains__(self, name: str) -> bool:
        return name in self.functions

    def without(self, name: str) -> UserFunctions:
        """The same functions except one."""
        kept = {other: function for other, function in self.functions.items() if other != name}
        return UserFunctions(kept, self.hidden, self.n_params)

    def costs(self) -> dict[str, Cost]:
        """Calls and mean time of every function so far."""
        calls = {name: count for name, count in self._calls.items() if count}
        return {name: Cost(count, 1e6 * self._seconds[name] / count) for name, count in calls.items()}

    def feature(self, i: int, x: Any, y: Any, h: Any) -> Array:
        """Ψ(x, y, h), of length n_params, finite."""
        answer = self._call("joint_feature", i, x, *self._output(y, h))
        try:
            vector = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            found = f"{shorten(answer)} ({error})"
            raise ValueError(f"joint_feature of sample {i} must return a vector of numbers, got {found}") from error
        if vector.ndim != 1 or (self.n_params is not None and vector.size != self.n_params):
            length = "a vector" if self.n_params is None else f"a vector of {self.n_params} numbers, as for sample 0"
            found = f"the shape {vector.shape} for the output {self.name(y, h)}"
            raise ValueError(f"joint_feature of sample {i} must return {length}, got {found}")
        if not math.isfinite(vector.sum()) and not np.isfinite(vector).all():
            j = int(np.flatnonzero(~np.isfinite(vector))[0])
            found = f"{vector[j]} in entry {j} for the output {self.name(y, h)}"
            raise ValueError(f"joint_feature of sample {i} must be finite, got {found}; check the sample and divisions")
        return vector

    def cost(self, i: int, true: Any, y: Any, h: Any) -> float:
        """The loss of an output, finite and not negative; 0/1 on the label without a function."""
        if "loss" not in self.functions:
            return float(key_of(true) != key_of(y))
        answer = self._call("loss", i, true, *self._output(y, h))
        try:
            loss = float(answer)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"loss of sample {i} must return a number, got {shorten(answer)}") from error
        if not 0 <= loss < math.inf:
            found = f"{loss} for the output {self.name(y, h)}"
            raise ValueError(f"loss of sample {i} must be finite and not negative, got {found}")
        return loss

    def argmax(self, i: int, x: Any, w: Array) -> Output:
        """The user's prediction."""
        return self._read("argmax", i, self._call("argmax", i, x, w))

    def predict_augmented(self, i: int, x: Any, true: Any, w: Array) -> Output:
        """The user's loss-augmented inference."""
        return self._read("augmented", i, self._call("augmented", i, x, true, w))

    def impute(self, i: int, x: Any, y: Any, w: Array) -> Any:
        """The user's hidden value for a label."""
        h = self._call("impute", i, x, y, w)
        if h is None:
            raise ValueError(f"impute of sample {i} must return the hidden value of the highest score, got None")
        return h

    def outputs(self, i: int, x: Any) -> list[Output]:
        """The user's list of all outputs."""
        answer = self._call("outputs", i, x)
        try:
            listed = [self._read("outputs", i, output) for output in answer]
        except TypeError as error:
            raise ValueError(f"outputs of sample {i} must return a list, got {shorten(answer)}") from error
        if not listed:
            raise ValueError(f"outputs of sample {i} must return at least one output, got none")
        return listed

    def name(self, y: Any, h: Any) -> str:
        """An output for messages."""
        return shorten((y, h) if self.hidden else y)

    def _output(self, y: Any, h: Any) -> tuple[Any, ...]:
        return (y, h) if self.hidden else (y,)

    def _read(self, name: str, i: int, answer: Any) -> Output:
        if answer is None:
            raise ValueError(f"{name} of sample {i} must return {'(y, h)' if self.hidden else 'a label'}, got None")
        if not self.hidden:
            return answer, None
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            found = shorten(answer)
            raise ValueError(f"{name} of sample {i} must return pairs (y, h), since hidden=True, got {found}")
        return answer[0], answer[1]

    def _call(self, name: str, i: int, *arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            answer = self.functions[name](*arguments)
        except Exception as error:
            is_inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if isinstance(error, TypeError) and not is_inside:
                call = f"{len(arguments)} arguments, as PerSample(hidden={self.hidden}) requires"
                raise TypeError(f"{name} cannot be called with {call}: {reason(error)}") from error
            error.add_note(f"raised in {name} of PerSample, called for sample {i}")
            raise
        self._calls[name] += 1
        self._seconds[name] += time.perf_counter() - began
        return answer


class OutputTable:
    """The outputs that were listed or seen, one entry each, with their losses and features.

    Features are computed when first needed and kept, without zeros, as long as they fit into ``memory`` bytes; those
    beyond are computed each time. Safe for several threads: entries are only ever added.

    Parameters
    ----------
    functions : the user's functions, with the length of joint features
    samples : the x_i
    labels : the y_i, None when predicting; outputs have losses only where there are labels
    memory : bytes for features
    first : number of the first sample, for error messages
    """

    def __init__(
        self, functions: UserFunctions, samples: list[Any], labels: list[Any] | None, memory: float, first: int
    ) -> None:
        self.functions = functions
        self.samples = samples
        self.labels = labels
        self.first = first
        self.lock = threading.RLock()
        self.owners: list[int] = []
        self.outputs: list[Output] = []
        self._losses = _GrowingArray(np.float64)
        self._row_numbers = _GrowingArray(np.int64)
        self._data, self._indices = _GrowingArray(np.float64), _GrowingArray(np.int32)
        self._ends, self._norms = _GrowingArray(np.int64), _GrowingArray(np.float64)
        self._ends.append(0)
        self._room = memory

    def add(self, i: int, outputs: Sequence[Output], losses: Sequence[float] | None = None) -> int:
        """New entries for sample i; returns the first. Outputs are copied: the user's function may change its own."""
        if losses is None and self.labels is not None:
            losses = [self.functions.cost(self.first + i, self.labels[i], *output) for output in outputs]
        with self.lock:
            entry = len(self.owners)
            self.owners += [i] * len(outputs)
            self.outputs += [(_copy_mutable(y), _copy_mutable(h)) for y, h in outputs]
            self._losses.extend(np.full(len(outputs), np.nan) if losses is None else np.array(losses, np.float64))
            self._row_numbers.extend(np.full(len(outputs), NOT_YET))
            return entry

    def losses(self, entries: Array) -> Array:
        if self.labels is None:
            raise ValueError("losses need labels: call bind(X, y, ...) with y")
        return self._losses.values[entries]

    def feature(self, entry: int) -> Array:
        """Ψ of one entry, by the user's function."""
        i = self.owners[entry]
        return self.functions.feature(self.first + i, self.samples[i], *self.outputs[entry])

    def scores(self, w: Array, entries: Array) -> Array:
        """w·Ψ of every entry."""
        if np.shape(w) != (self.functions.n_params,):
            raise ValueError(f"w must have the shape ({self.functions.n_params},) of joint features, got {np.shape(w)}")
        rows = self._find(entries)
        out = np.empty(entries.size)
        dot_rows(self._data.buffer, self._indices.buffer, self._ends.buffer, rows, w, out)
        for k in np.flatnonzero(rows < 0):
            out[k] = self.feature(int(entries[k])) @ w
        return out

    def sum(self, entries: Array, coef: Array) -> Array:
        """Σ coef Ψ over entries."""
        wanted = np.flatnonzero(coef)
        rows = np.full(entries.size, NOT_YET)
        rows[wanted] = self._find(entries[wanted])
        out = np.zeros(self.functions.n_params or 0)
        add_rows(self._data.buffer, self._indices.buffer, self._ends.buffer, rows, coef, out)
        for k in np.flatnonzero(rows == NO_ROOM):
            out += coef[k] * self.feature(int(entries[k]))
        return out

    def norms(self, entries: Array) -> Array:
        """‖Ψ‖ of every entry, as a scale for rounding."""
        rows = self._find(entries)
        out = self._norms.values[np.maximum(rows, 0)] if len(self._norms) else np.zeros(entries.size)
        for k in np.flatnonzero(rows < 0):
            out[k] = np.linalg.norm(self.feature(int(entries[k])))
        return out

    @property
    def is_full(self) -> bool:
        """Whether some features are beyond the memory limit, so that every pass calls joint_feature again."""
        return self._room < 0

    def _find(self, entries: Array) -> Array:
        """The rows of the features of these entries; those never needed before are computed first."""
        rows = self._row_numbers.values[entries]
        missing = np.unique(entries[rows == NOT_YET])
        if not missing.size:
            return rows
        for entry in missing:
            vector = self.feature(int(entry))
            with self.lock:
                if self._row_numbers.values[entry] == NOT_YET:
                    self._row_numbers.values[entry] = self._keep(vector)
        return self._row_numbers.values[entries]

    def _keep(self, vector: Array) -> int:
        indices = vector.nonzero()[0]
        self._room -= 12 * indices.size + 16
        if self._room < 0:
            return NO_ROOM
        self._data.extend(vector[indices])
        self._indices.extend(indices)
        self._norms.append(math.sqrt(vector @ vector))
        self._ends.append(len(self._data))
        return len(self._ends) - 2


class _GrowingArray:
    """An array that grows at its end, in amortised constant time."""

    def __init__(self, dtype: Any) -> None:
        self.buffer = np.empty(64, dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> Array:
        return self.buffer[: self._size]

    def append(self, value: float) -> None:
        self._make_room(self._size + 1)
        self.buffer[self._size] = value
        self._size += 1

    def extend(self, values: Array) -> None:
        size = self._size + values.size
        self._make_room(size)
        self.buffer[self._size : size] = values
        self._size = size

    def _make_room(self, size: int) -> None:
        if size > self.buffer.size:
            larger = np.empty(max(size, 2 * self.buffer.size), self.buffer.dtype)
            larger[: self._size] = self.values
            self.buffer = larger


def _copy_mutable(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, (np.ndarray, list, dict, set)) else value


@kernel
def dot_rows(data: Array, indices: Array, ends: Array, rows: Array, w: Array, out: Array) -> None:
    """``out[k] = table[rows[k]]·w``; negative ones are skipped."""
    for k in range(rows.size):
        p = rows[k]
        if p < 0:
            continue
        total = 0.0
        for q in range(ends[p], ends[p + 1]):
            total += data[q] * w[indices[q]]
        out[k] = total


@kernel
def add_rows(data: Array, indices: Array, ends: Array, rows: Array, coef: Array, out: Array) -> None:
    """``out += coef[k] · table[rows[k]]`` for all k; negative ones are skipped."""
    for k in range(rows.size):
        p = rows[k]
        if p < 0:
            continue
        c = coef[k]
        for q in range(ends[p], ends[p + 1]):
            out[indices[q]] += c * data[q]


_PLAIN = (str, int, float, np.generic, bytes, type(None))


def key_of(value: Any) -> Any:
    """Something hashable that is equal for equal labels: arrays, lists and tuples of the same content agree.

    >>> key_of(np.array([[1, 2], [3, 4]])) == key_of([(1, 2), (3, 4)])
    True
    """
    if isinstance(value, np.ndarray | np.void):  # a record of named fields is a tuple of them
        return key_of(value.tolist())
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(key_of, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(map(key_of, value))
    if isinstance(value, dict):
        return frozenset((key_of(k), key_of(v)) for k, v in value.items())
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(
            f"outputs must be hashable, got the {type(value).__name__} {shorten(value)}; use numbers, strings, tuples "
            "or arrays, or give the class __eq__ and __hash__"
        ) from error
    return value


def is_scalar(value: Any) -> bool:
    """Whether a label is a single number or string."""
    return isinstance(value, _PLAIN) and value is not None and not isinstance(value, np.void)


def as_samples(X: Any, what: str = "X") -> list[Any]:
    """A container with one entry per sample as a list: list, array (its rows), Ragged, pandas Series, sparse rows."""
    if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__iter__") or getattr(X, "ndim", 1) == 0:
        raise ValueError(f"{what} must be a list or an array, one entry per sample, got a {type(X).__name__}")
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        raise ValueError(f"{what} must not have named columns; give {what}.to_numpy(), or a list of samples")
    if sparse.issparse(X):
        X = as_csr(X)
        return [X[i] for i in range(X.shape[0])]
    return list_entries(what, plain_array(X, what) if isinstance(X, np.ndarray) else X)


def as_labels(y: Any, n: int) -> tuple[list[Any], bool]:
    """One label per sample, and whether all are single numbers or strings; the error names the first that is wrong."""
    plain = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype != object
    labels = y if plain or y is None else as_samples(y, "y")
    if y is None or plain or all(isinstance(label, _PLAIN) for label in labels):
        return read_labels(labels, n).tolist(), True
    if len(labels) != n:
        raise ValueError(f"X has {n} samples, y has {len(labels)} labels; give one label per sample")
    missing = [i for i, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise ValueError(f"y[{missing[0]}] is missing; {UNLABELLED}")
    return labels, False


def as_column(values: list[Any]) -> Array:
    """Labels or hidden values as one array: of numbers or strings where all are, else of objects."""
    if all(is_scalar(value) for value in values) and len({isinstance(value, (str, bytes)) for value in values}) < 2:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # one by one: NumPy would stack arrays of equal length
        column[i] = value
    return column


def is_unknown(h: Any) -> bool:
    """Whether a hidden value is unknown: None, −1 or NaN.

    >>> is_unknown(-1), is_unknown(None), is_unknown("left"), is_unknown((0, -1))
    (True, True, False, False)
    """
    return is_missing(h) or (is_scalar(h) and not isinstance(h, str | bytes) and bool(h == -1))


def name_of(function: Any) -> str:
    """The name of a function; the representation of anything else.

    >>> name_of(len), name_of([1, 2])
    ('len', '[1, 2]')
    """
    return str(getattr(function, "__qualname__", None) or repr(function))

"""A user's functions for one sample, called with care: what they return is checked and timed, and every error names
the sample."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.labels import UNLABELLED, is_missing, read_labels
from tacit.data.parameters import reason, shorten

Output = tuple[Any, Any]
"""A label and a hidden value; the hidden value is None in problems without any."""


class Cost(NamedTuple):
    """How often a function was called, and what a call took on average."""

    calls: int
    microseconds: float


class UserFunctions:
    """The functions of `PerSample` under one face, whether or not there are hidden values.

    Answers are checked here for what can be told from the answer alone: shapes, numbers, pairs. An exception that a
    function raises goes through with a note on where it happened. About 0.5 µs on top of each call.

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
        """The same functions but one."""
        kept = {other: function for other, function in self.functions.items() if other != name}
        return UserFunctions(kept, self.hidden, self.n_params)

    def costs(self) -> dict[str, Cost]:
        """What every function took so far."""
        return {
            name: Cost(calls, 1e6 * self._seconds[name] / max(calls, 1)) for name, calls in self._calls.items() if calls
        }

    def feature(self, i: int, x: Any, y: Any, h: Any) -> Array:
        """Ψ(x, y, h), of length n_params, finite."""
        answer = self._call("joint_feature", i, x, *self._output(y, h))
        try:
            vector = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"joint_feature of sample {i} returned {shorten(answer)}, which is not a vector of numbers ({error})"
            ) from error
        if vector.ndim != 1 or (self.n_params is not None and vector.size != self.n_params):
            length = "one dimension" if self.n_params is None else f"the length {self.n_params} of the first sample's"
            raise ValueError(
                f"joint_feature of sample {i} returned shape {vector.shape} for the output {self.name(y, h)}; every "
                f"joint feature must have {length}"
            )
        if not math.isfinite(vector.sum()) and not np.isfinite(vector).all():
            j = int(np.flatnonzero(~np.isfinite(vector))[0])
            raise ValueError(
                f"joint_feature of sample {i} is {vector[j]} in entry {j} for the output {self.name(y, h)}; "
                "features must be finite: check the sample, or what the function divides by"
            )
        return vector

    def cost(self, i: int, true: Any, y: Any, h: Any) -> float:
        """The loss of an output, finite and not negative; 0/1 on the label if there is no function."""
        if "loss" not in self.functions:
            return float(key_of(true) != key_of(y))
        answer = self._call("loss", i, true, *self._output(y, h))
        try:
            loss = float(answer)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"loss of sample {i} returned {shorten(answer)}, which is not a number") from error
        if not 0 <= loss < math.inf:
            raise ValueError(
                f"loss of sample {i} is {loss} for the output {self.name(y, h)}; losses must be finite and not negative"
            )
        return loss

    def argmax(self, i: int, x: Any, w: Array) -> Output:
        """The user's prediction."""
        return self._read("argmax", i, self._call("argmax", i, x, w))

    def augmented(self, i: int, x: Any, true: Any, w: Array) -> Output:
        """The user's loss-augmented prediction."""
        return self._read("augmented", i, self._call("augmented", i, x, true, w))

    def impute(self, i: int, x: Any, y: Any, w: Array) -> Any:
        """The user's hidden value for a label."""
        h = self._call("impute", i, x, y, w)
        if h is None:
            raise ValueError(f"impute of sample {i} returned None; return the hidden value of the highest score")
        return h

    def outputs(self, i: int, x: Any) -> list[Output]:
        """The user's list of all outputs."""
        answer = self._call("outputs", i, x)
        try:
            listed = [self._read("outputs", i, output) for output in answer]
        except TypeError as error:
            raise ValueError(f"outputs of sample {i} returned {shorten(answer)}; return a list of outputs") from error
        if not listed:
            raise ValueError(f"outputs of sample {i} is empty; every sample needs at least one output")
        return listed

    def name(self, y: Any, h: Any) -> str:
        """An output in words."""
        return shorten((y, h) if self.hidden else y)

    def _output(self, y: Any, h: Any) -> tuple[Any, ...]:
        return (y, h) if self.hidden else (y,)

    def _read(self, name: str, i: int, answer: Any) -> Output:
        if answer is None:
            raise ValueError(f"{name} of sample {i} returned None; return {'(y, h)' if self.hidden else 'a label'}")
        if not self.hidden:
            return answer, None
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise ValueError(
                f"{name} of sample {i} returned {shorten(answer)}; with hidden=True an output is a pair (y, h)"
            )
        return answer[0], answer[1]

    def _call(self, name: str, i: int, *arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            answer = self.functions[name](*arguments)
        except Exception as error:
            is_inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if isinstance(error, TypeError) and not is_inside:
                raise TypeError(
                    f"{name} cannot be called with {len(arguments)} arguments, as PerSample(hidden={self.hidden}) does"
                    f": {reason(error)}"
                ) from error
            error.add_note(f"raised in {name} of PerSample, called for sample {i}")
            raise
        self._calls[name] += 1
        self._seconds[name] += time.perf_counter() - began
        return answer


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
            f"{shorten(value)} cannot be told from other outputs: a {type(value).__name__} has no hash; "
            "use numbers, strings, tuples or arrays, or give the class __eq__ and __hash__"
        ) from error
    return value


def is_scalar(value: Any) -> bool:
    """Whether a label is a single number or string."""
    return isinstance(value, _PLAIN) and value is not None and not isinstance(value, np.void)


def as_samples(X: Any, what: str = "X") -> list[Any]:
    """Whatever holds one thing a sample, as a list: list, array (its rows), Ragged, pandas Series, sparse rows."""
    if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__iter__") or getattr(X, "ndim", 1) == 0:
        raise ValueError(f"{what} must hold one entry per sample, got one {type(X).__name__}; give a list or an array")
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        raise ValueError(
            f"{what} is a table whose columns have names; give {what}.to_numpy() (one row per sample), "
            "or a list of samples"
        )
    if sparse.issparse(X):
        X = X.tocsr()
        return [X[i] for i in range(X.shape[0])]
    return list(X)


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

"""Outputs of samples with their features and losses, each computed once: what the oracles of `PerSample` work on."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.problems.per_sample.user_functions import Output, UserFunctions

NOT_YET, NO_ROOM = -1, -2
"""Places of features that were never asked for, and of those that the memory does not hold."""


class OutputTable:
    """Entries, one for each output of a sample that was listed or seen.

    Features are computed when first asked for and kept, zeros left out, as long as they fit into ``memory`` bytes;
    those beyond are computed anew each time. Safe for several threads: entries are only ever added.

    Parameters
    ----------
    functions : the user's functions, with the length of joint features
    samples : the x_i
    labels : the y_i, None when predicting; outputs have losses only where there are labels
    memory : bytes for features
    first : number of the first sample, for error messages of a shard
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
        self._losses = _Growing(np.float64)
        self._places = _Growing(np.int64)
        self._data, self._indices = _Growing(np.float64), _Growing(np.int32)
        self._ends, self._norms = _Growing(np.int64), _Growing(np.float64)
        self._ends.append(0)
        self._room = memory

    def add(self, i: int, outputs: Sequence[Output], losses: Sequence[float] | None = None) -> int:
        """New entries for sample i; returns the first. Outputs are copied: the user's function may change its own."""
        if losses is None and self.labels is not None:
            losses = [self.functions.cost(self.first + i, self.labels[i], *output) for output in outputs]
        with self.lock:
            entry = len(self.owners)
            self.owners += [i] * len(outputs)
            self.outputs += [(_copied(y), _copied(h)) for y, h in outputs]
            self._losses.extend(np.full(len(outputs), np.nan) if losses is None else np.array(losses, np.float64))
            self._places.extend(np.full(len(outputs), NOT_YET))
            return entry

    def losses(self, entries: Array) -> Array:
        if self.labels is None:
            raise ValueError("these samples were bound without labels, so outputs have no loss: bind with y")
        return self._losses.values[entries]

    def feature(self, entry: int) -> Array:
        """Ψ of one entry, by the user's function."""
        i = self.owners[entry]
        return self.functions.feature(self.first + i, self.samples[i], *self.outputs[entry])

    def scores(self, w: Array, entries: Array) -> Array:
        """w·Ψ of every entry."""
        if np.shape(w) != (self.functions.n_params,):
            raise ValueError(f"w has shape {np.shape(w)}, joint features have {self.functions.n_params} numbers")
        places = self._find(entries)
        out = np.empty(entries.size)
        dot_rows(self._data.buffer, self._indices.buffer, self._ends.buffer, places, w, out)
        for k in np.flatnonzero(places < 0):
            out[k] = self.feature(int(entries[k])) @ w
        return out

    def sum(self, entries: Array, coef: Array) -> Array:
        """Σ coef Ψ over entries."""
        wanted = np.flatnonzero(coef)
        places = np.full(entries.size, NOT_YET)
        places[wanted] = self._find(entries[wanted])
        out = np.zeros(self.functions.n_params or 0)
        add_rows(self._data.buffer, self._indices.buffer, self._ends.buffer, places, coef, out)
        for k in np.flatnonzero(places == NO_ROOM):
            out += coef[k] * self.feature(int(entries[k]))
        return out

    def norms(self, entries: Array) -> Array:
        """‖Ψ‖ of every entry, as a scale for rounding."""
        places = self._find(entries)
        out = self._norms.values[np.maximum(places, 0)] if len(self._norms) else np.zeros(entries.size)
        for k in np.flatnonzero(places < 0):
            out[k] = np.linalg.norm(self.feature(int(entries[k])))
        return out

    @property
    def is_full(self) -> bool:
        """Whether some features found no room, so that every pass calls joint_feature again."""
        return self._room < 0

    def _find(self, entries: Array) -> Array:
        """Where the features are kept, after those never asked for were computed."""
        places = self._places.values[entries]
        missing = np.unique(entries[places == NOT_YET])
        if not missing.size:
            return places
        for entry in missing:
            vector = self.feature(int(entry))
            with self.lock:
                if self._places.values[entry] == NOT_YET:
                    self._places.values[entry] = self._keep(vector)
        return self._places.values[entries]

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


class _Growing:
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


def _copied(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, (np.ndarray, list, dict, set)) else value


@kernel
def dot_rows(data: Array, indices: Array, ends: Array, places: Array, w: Array, out: Array) -> None:
    """``out[k] = row(places[k])·w``; negative places are skipped."""
    for k in range(places.size):
        p = places[k]
        if p < 0:
            continue
        total = 0.0
        for q in range(ends[p], ends[p + 1]):
            total += data[q] * w[indices[q]]
        out[k] = total


@kernel
def add_rows(data: Array, indices: Array, ends: Array, places: Array, coef: Array, out: Array) -> None:
    """``out += coef[k] · row(places[k])`` for all k; negative places are skipped."""
    for k in range(places.size):
        p = places[k]
        if p < 0:
            continue
        c = coef[k]
        for q in range(ends[p], ends[p + 1]):
            out[indices[q]] += c * data[q]

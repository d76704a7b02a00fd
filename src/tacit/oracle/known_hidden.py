"""What is known of the hidden values: the value itself, nothing, or a set that it is in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import is_missing
from tacit.data.parameters import as_array, is_list, is_whole, list_entries, shorten
from tacit.data.ragged import Ragged
from tacit.oracle.contracts import KnownHidden


class AnyOf(tuple[Any, ...]):
    """ "One of these": what to write for a hidden value that is known to be in a set.

    Plain lists and masks say the same where a hidden value is a number; `AnyOf` is for problems whose hidden values may
    be lists or tuples themselves.

    >>> AnyOf([3, 4, 5])
    AnyOf(3, 4, 5)
    """

    def __new__(cls, values: Iterable[Any]) -> AnyOf:
        return super().__new__(cls, values)

    def __repr__(self) -> str:
        return f"AnyOf{tuple(self)!r}"


def read_hidden(hidden: Any, sizes: Array, name: str = "values") -> KnownHidden:
    """Hidden values as users write them: per sample a position, −1 (None, NaN) for unknown, or those that are allowed.

    What is allowed is a list of positions, an `AnyOf`, or a mask with one boolean per value; a Ragged of either holds
    them for all samples. Errors name the first sample that does not fit, and call what it has by ``name``.

    >>> read_hidden([1, -1, [0, 2]], np.array([2, 2, 3])).states
    array([ 1, -1, -1])
    >>> read_hidden([1, -1, [0, 2]], np.array([2, 2, 3])).allowed[-3:]
    array([ True, False,  True])
    """
    if hasattr(hidden, "to_numpy"):
        hidden = hidden.to_numpy()
    sizes = np.asarray(sizes)
    if isinstance(hidden, Ragged) or not _is_plain(hidden):
        return _read_sets(list_entries("hidden", hidden), sizes, name)
    return KnownHidden(check_hidden(hidden, sizes, name))


def check_hidden(hidden: Any, sizes: Array, name: str = "values") -> Array:
    """Known hidden values as integers, −1 for unknown (None and NaN too); the error names the first out of range.

    >>> check_hidden([1, -1, None], np.array([2, 2, 2]))
    array([ 1, -1, -1])
    """
    given = read_positions(hidden, sizes.shape)
    wrong = np.flatnonzero((given < -1) | (given >= sizes))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"hidden[{i}] is {given[i]}, but sample {i} has {name} 0 to {sizes[i] - 1} (-1 for unknown)")
    return given


def read_positions(hidden: Any, shape: tuple[int, ...]) -> Array:
    """Integers of this shape, −1 for what is missing (None, NaN, NA).

    >>> read_positions([2.0, None], (2,))
    array([ 2, -1])
    """
    given = as_array(hidden)
    if given.shape != shape:
        raise ValueError(f"hidden has shape {given.shape} for {shape[0]} samples; give one value each, -1 if unknown")
    if given.dtype == object or given.dtype.kind == "f":
        values = [-1 if is_missing(v) else v for v in given.ravel().tolist()]
        given = np.array(values if all(map(_is_whole_number, values)) else "none").reshape(-1)
    if given.dtype.kind not in "iuf" or not (np.abs(given.astype(np.float64)) < 2**53).all():
        raise ValueError(f"hidden values must be positions (integers, -1 if unknown), got {shorten(hidden)}")
    return given.astype(np.int64).reshape(shape)


def from_masks(masks: list[Array | None], sizes: Array) -> KnownHidden:
    """Known values from one mask of possible states per sample (None: all of them); a mask of one state is its
    value."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    states = np.full(len(masks), -1, np.int64)
    allowed = np.ones(int(offsets[-1]), dtype=bool)
    for i, mask in enumerate(masks):
        if mask is None or mask.all():
            continue
        if not mask.any():
            raise ValueError(f"hidden[{i}] allows none of the {sizes[i]} values of sample {i}; allow one, or give -1")
        if np.count_nonzero(mask) == 1:
            states[i] = int(np.argmax(mask))
        else:
            allowed[offsets[i] : offsets[i + 1]] = mask
    return KnownHidden(states, None if allowed.all() else allowed)


def _read_sets(entries: list[Any], sizes: Array, name: str) -> KnownHidden:
    if len(entries) != sizes.size:
        raise ValueError(f"hidden has {len(entries)} entries for {sizes.size} samples; give one each, -1 if unknown")
    return from_masks([_mask(entry, int(sizes[i]), i, name) for i, entry in enumerate(entries)], sizes)


def _mask(entry: Any, size: int, i: int, name: str) -> Array | None:
    """Which values an entry allows; None for all."""
    if _is_single(entry):
        return np.arange(size) == entry if _is_position(entry, size, i, name) and entry != -1 else None
    values = as_array(list(entry))
    if values.dtype.kind == "b":
        if values.shape != (size,):
            raise ValueError(f"hidden[{i}] is a mask of {values.size} booleans, but sample {i} has {size} {name}")
        return values
    if values.ndim != 1 or not values.size or values.dtype.kind not in "iu":
        raise ValueError(
            f"hidden[{i}] is {shorten(entry)}; give a position, -1 if unknown, a list of positions that are allowed, "
            f"or a mask of {size} booleans"
        )
    wrong = values[(values < 0) | (values >= size)]
    if wrong.size:
        raise ValueError(f"hidden[{i}] allows {wrong[0]}, but sample {i} has {name} 0 to {size - 1}")
    return np.isin(np.arange(size), values)


def _is_position(entry: Any, size: int, i: int, name: str) -> bool:
    """Whether a single entry is a position, or unknown; an error that names the sample for anything else."""
    if is_missing(entry):
        return False
    if not _is_whole_number(entry):
        raise ValueError(f"hidden[{i}] must be a position (an integer, -1 if unknown), got {shorten(entry)}")
    if not -1 <= entry < size:
        raise ValueError(f"hidden[{i}] is {shorten(entry)}, but sample {i} has {name} 0 to {size - 1} (-1 for unknown)")
    return True


def _is_whole_number(value: Any) -> bool:
    """Whether a value is an integer, or a float that is one."""
    return is_whole(value) or (
        isinstance(value, float | np.floating) and bool(np.isfinite(value) and value == int(value))
    )


def _is_plain(hidden: Any) -> bool:
    """Whether every sample has a single value: without lists, masks or sets."""
    if isinstance(hidden, np.ndarray) and hidden.dtype != object:
        return hidden.ndim != 2 or hidden.dtype.kind != "b"
    if not is_list(hidden) or isinstance(hidden, str | bytes | dict):
        return True
    return all(_is_single(entry) for entry in hidden)


def _is_single(entry: Any) -> bool:
    """Whether an entry is one value, not a list, mask or set."""
    return isinstance(entry, str | bytes | dict) or not is_list(entry)

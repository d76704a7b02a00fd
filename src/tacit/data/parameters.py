"""Parameters as users write them, checked and turned into plain Python values where they are read.

A whole number may come as any integer type of NumPy, and arithmetic in a narrow one wraps: ``4 ** np.uint8(4)`` is 0. A
kernel would then write 256 entries to an empty table. So all parameters are read through these functions, which return
Python numbers.
"""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Sized
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.lines import one_line

if TYPE_CHECKING:
    from tacit.data.arrays import Array

LONGEST_SHOWN = 80
"""Characters of a user's value that a message repeats."""

MAX_WHOLE = 2**62
"""The largest whole number where a parameter has no other limit: what is added to it still has 64 bits."""


def whole_number(name: str, value: Any, least: int = 1, most: int | None = None, *, remedy: str = "") -> int:
    """A parameter that counts something, as a Python integer; booleans and floats are none.

    Parameters
    ----------
    name, value : of the parameter
    least, most : the range, both ends allowed; None for `MAX_WHOLE`
    remedy : what to do instead, put behind the message

    >>> 4 ** whole_number("background", np.uint8(4), 1, 8)
    256
    >>> whole_number("width", 2.0)
    Traceback (most recent call last):
    ...
    ValueError: width must be a whole number from 1, got width=2.0
    """
    if is_whole(value):
        whole = int(value)
        if least <= whole <= (MAX_WHOLE if most is None else most):
            return whole
    limits = f"from {least}" if most is None else f"from {least} to {most}"
    limits += f" to {MAX_WHOLE}" if most is None and is_whole(value) and value > MAX_WHOLE else ""
    raise ValueError(f"{name} must be a whole number {limits}, got {name}={shorten(value)}{remedy and '; ' + remedy}")


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of any width, and no boolean; a span of time is an integer to NumPy alone.

    >>> is_whole(np.int8(3)), is_whole(True), is_whole(3.0), is_whole(np.timedelta64(3))
    (True, False, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def number(name: str, value: Any, meaning: str, allows: Callable[[float], bool] = math.isfinite) -> float:
    """A parameter that measures something, as a Python float.

    Parameters
    ----------
    name, value : of the parameter
    meaning : what it must be, in words
    allows : whether a float is that; NaN never is

    >>> number("validation", np.float16(0.25), "a share between 0 and 1", lambda share: 0 < share < 1)
    0.25
    >>> number("validation", "some", "a share between 0 and 1", lambda share: 0 < share < 1)
    Traceback (most recent call last):
    ...
    ValueError: validation must be a share between 0 and 1, got validation='some'
    """
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64):
        try:
            measure = float(value)
        except OverflowError:  # an integer of more than 308 digits
            measure = math.nan
        if not math.isnan(measure) and allows(measure):
            return measure
    raise ValueError(f"{name} must be {meaning}, got {name}={shorten(value)}")


def is_positive(value: float) -> bool:
    """Above zero and finite."""
    return 0 < value < math.inf


def is_not_negative(value: float) -> bool:
    """Zero or above, and finite."""
    return 0 <= value < math.inf


def numbers(name: str, values: Any, meaning: str = "an array of numbers") -> Array:
    """Numbers as a float64 array of whatever shape they have; text, complex numbers and uneven rows are refused.

    >>> numbers("sample_weight", [1, 2])
    array([1., 2.])
    >>> numbers("sample_weight", ["heavy"])
    Traceback (most recent call last):
    ...
    ValueError: sample_weight must be an array of numbers, got ['heavy']
    """
    try:
        table = plain_array("none" if values is None else values, name)
        if table.dtype == object:
            table = table.astype(np.float64)
        if table.dtype.kind in "biuf":
            return table.astype(np.float64, copy=False)
    except ArrayError:
        raise
    except (TypeError, ValueError, OverflowError):  # no numbers, or rows of several lengths
        pass
    raise ValueError(f"{name} must be {meaning}, got {shorten(values)}")


def shape_of(values: Any) -> tuple[int, ...] | None:
    """The shape of an array or of nested lists; None for lists of several lengths, and for what is not an array.

    >>> shape_of([[1, 2], [3, 4]]), shape_of([[1], [2, 3]])
    ((2, 2), None)
    """
    try:
        return tuple(np.shape(values))
    except Exception:  # that of an object which turns itself into an array
        return None


class ArrayError(ValueError):
    """An array that cannot be used as it is: masked, repeated by broadcasting, or one whose methods raise."""


MAX_LETTERS = 1 << 28
"""Letters of an array of text: every entry takes the space of the longest, four bytes per letter."""

MAX_REPEATED = 1 << 26
"""Entries of an array that repeats a few by broadcasting: it takes no memory until it is copied."""


def plain_array(values: Any, name: str = "the array") -> Array:
    """Values as an array of NumPy's own class, which kernels and BLAS can take; not copied where it is one.

    An array with masked entries is refused, because the numbers below the mask mean nothing; so is one that repeats a
    few entries to more than `MAX_REPEATED`. A list of text with one very long entry would take `MAX_LETTERS` or more,
    and is refused too. Whatever a foreign ``__array__`` raises becomes an `ArrayError`. So does an object that claims
    more entries than fit into memory.

    >>> plain_array(np.ma.masked_array([1, 2], [False, True]), "X")
    Traceback (most recent call last):
    ...
    tacit.data.parameters.ArrayError: X has 1 masked entries; fill them, as in X.filled(0), or drop them
    """
    if isinstance(values, np.ma.MaskedArray):
        n_masked = int(np.ma.getmaskarray(values).sum())
        if n_masked:
            raise ArrayError(f"{name} has {n_masked} masked entries; fill them, as in X.filled(0), or drop them")
    if isinstance(values, list | tuple) and values and isinstance(values[0], str | bytes):
        longest = max(len(value) for value in values if isinstance(value, str | bytes))
        if longest * len(values) > MAX_LETTERS:
            raise ArrayError(f"{name} has an entry of {longest} letters, and {len(values)} entries; shorten it")
    try:
        found = np.asarray(values)
    except (ValueError, TypeError, OverflowError):  # of NumPy itself: callers say what is wrong
        raise
    except MemoryError as error:
        raise ArrayError(f"{name} does not fit into memory as an array; give fewer entries") from error
    except Exception as error:  # a foreign __array__, __len__ or __getitem__ may do anything
        raise ArrayError(f"{name} cannot be read as an array: {reason(error)}; give a list or an array") from error
    if is_endless(found):
        raise ArrayError(
            f"{name} repeats a few entries to the shape {found.shape} by broadcasting; give one entry per sample"
        )
    return found


def is_list(value: Any) -> bool:
    """Whether one can go through the entries of a value: arrays without dimensions and sparse tables only say so.

    An array that repeats a few entries without end is none; see `plain_array`.

    >>> is_list([3]), is_list(np.array([3])), is_list(np.array(3)), is_list(3)
    (True, True, False, False)
    """
    is_iterable = isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0 and not hasattr(value, "tocsr")
    return is_iterable and not is_endless(value)


def is_endless(value: Any) -> bool:
    """Whether something takes a few bytes, and gigabytes as a list."""
    if isinstance(value, np.ndarray):
        return value.size > MAX_REPEATED and 0 in value.strides
    return isinstance(value, range) and value.stop - value.start > MAX_REPEATED * max(value.step, 1)


def check_verbose(value: Any) -> None:
    """Refuse a parameter ``verbose`` that is neither a whole number from 0, nor True, False or None.

    >>> check_verbose(np.ones(2))
    Traceback (most recent call last):
    ...
    ValueError: verbose must be 0, 1 or 2, got verbose=[1.0, 1.0]
    """
    if value is not None and not isinstance(value, bool | np.bool_) and not (is_whole(value) and value >= 0):
        raise ValueError(f"verbose must be 0, 1 or 2, got verbose={shorten(value)}")


def is_hashable(value: Any) -> bool:
    """Whether a value can be looked up; a span of time without a unit has a hash method, which raises.

    >>> is_hashable((1, 2)), is_hashable([1, 2])
    (True, False)
    """
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True


def has_length(value: Any) -> bool:
    """Whether a value is a list whose entries can be counted before one goes through them: no iterator is.

    >>> has_length([3]), has_length(iter([3])), has_length(np.array(3))
    (True, False, False)
    """
    return is_list(value) and isinstance(value, Sized)


def entries(name: str, values: Any, meaning: str, count: int | None = None) -> list[Any]:
    """The entries of a list, of an array or of anything else that one can go through; text and dicts are refused.

    Parameters
    ----------
    name, values : of the parameter
    meaning : what it must be, in words
    count : how many entries it must have; None for any number

    >>> entries("gold", (3, None), "a list of links")
    [3, None]
    >>> entries("gold", np.array(3), "a list of links")
    Traceback (most recent call last):
    ...
    ValueError: gold must be a list of links, got an array of shape () of int64
    """
    if is_list(values) and not isinstance(values, str | bytes | bytearray | dict):
        listed = list_entries(name, values)
        if count is None or len(listed) == count:
            return listed
    raise ValueError(f"{name} must be {meaning}, got {shorten(values)}")


def list_entries(name: str, values: Any) -> list[Any]:
    """The entries of something that `is_list`; a foreign ``__len__`` or ``__iter__`` may claim or raise anything.

    >>> list_entries("X", range(3))
    [0, 1, 2]
    """
    if is_endless(values):
        raise ArrayError(f"{name} repeats a few entries to the shape {np.shape(values)}; give one entry per sample")
    try:
        return list(values)
    except Exception as error:
        raise ArrayError(f"{name} cannot be read as a list: {reason(error)}; give a list or an array") from error


def even_table(name: str, values: Any) -> Array:
    """Values as an array of whatever type; rows of several lengths are refused.

    >>> even_table("array", [[1], [2, 3]])
    Traceback (most recent call last):
    ...
    ValueError: array must have rows of one length, got [[1], [2, 3]]
    """
    try:
        return plain_array(values, name)
    except ArrayError:
        raise
    except ValueError as error:
        raise ValueError(f"{name} must have rows of one length, got {shorten(values)}") from error


def as_array(values: Any) -> Array:
    """Values as an array of whatever type; one of no shape where they make none, for who checks shapes to refuse."""
    try:
        return plain_array(values)
    except ArrayError:
        raise
    except (ValueError, OverflowError):
        return np.empty((), dtype=object)


def switch(name: str, value: Any) -> bool:
    """A parameter that is on or off.

    >>> switch("fit_intercept", np.True_)
    True
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {name}={shorten(value)}")


def one_of(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """A parameter that names one of a few ways; the value itself.

    >>> one_of("strands", "three", ("one", "both"))
    Traceback (most recent call last):
    ...
    ValueError: strands must be 'one' or 'both', got strands='three'
    """
    if (value is None or isinstance(value, str)) and value in allowed:
        return value
    *others, last = map(repr, allowed)
    listed = f"{', '.join(others)} or {last}" if others else last
    raise ValueError(f"{name} must be {listed}, got {name}={shorten(value)}")


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Where random numbers come from: a seed, a generator of scikit-learn's kind, or None for others each time.

    >>> random_numbers(np.uint8(7)).randint(100) == random_numbers(7).randint(100)
    True
    """
    from sklearn.utils import check_random_state

    if is_whole(random_state) or isinstance(random_state, np.timedelta64):
        random_state = whole_number("random_state", random_state, 0, 2**32 - 1)
    try:
        found: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:  # its message would repeat the whole value
        raise ValueError(
            f"random_state must be a whole number, None or a numpy.random.RandomState, got {shorten(random_state)}"
        ) from error
    return found


def file_path(name: str, value: Any) -> Path:
    """A parameter that is a path: a string or a path object that a file can have.

    >>> file_path("checkpoint", "fit\\0.state")
    Traceback (most recent call last):
    ...
    ValueError: checkpoint='fit\\x00.state' has a NUL character, which a path cannot have; name another file
    """
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text:
        raise TypeError(f"{name} must be a path, such as 'model.tacit', got {name}={shorten(value)}")
    if "\0" in text:
        raise ValueError(f"{name}={shorten(text)} has a NUL character, which a path cannot have; name another file")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}={shorten(text)} has something that is not a character; name another file") from error
    return Path(text)


class _Shortener(reprlib.Repr):
    """Looks at the first few entries of a container, however many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 8
        self.maxdict, self.maxlevel = 6, 4
        self.maxstring = self.maxother = self.maxlong = LONGEST_SHOWN

    def repr_ndarray(self, values: Any, level: int) -> str:
        if values.ndim == 0 or values.size > 8:
            return f"an array of shape {values.shape} of {values.dtype}"
        return self.repr1(values.tolist(), level)


_shortener = _Shortener()


def shorten(value: Any, most: int = LONGEST_SHOWN) -> str:
    """A value as messages show it: on one line, and cut where it is long. A message never holds a whole input.

    >>> shorten("ACGT" * 1000, 20)
    "'ACGTACG...ACGTACGT'"
    >>> shorten(list(range(10**6)))
    '[0, 1, 2, 3, 4, 5, 6, 7, ...]'
    """
    try:
        return one_line(_shortener.repr(value), most)
    except Exception:  # a user's __repr__ may do anything, and an error message must not fail
        return f"a {type(value).__name__}"


def reason(error: BaseException, most: int = 200) -> str:
    """What an error says, on one line, and cut where it is long; its kind where it says nothing.

    >>> reason(ValueError("no\tsuch")), reason(MemoryError())
    ('no such', 'MemoryError')
    """
    return one_line(str(error), most) or type(error).__name__


def is_list_of_text(value: Any) -> bool:
    """Whether a value is a list, tuple or array of strings.

    >>> is_list_of_text(["a", "b"]), is_list_of_text("ab"), is_list_of_text([1])
    (True, False, False)
    """
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and (value.dtype.kind == "U" or all(isinstance(v, str) for v in value.tolist()))
    return isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)

"""Specs: what a class declares of its parameters and of what it learns, and the one checker of both.

A spec is a function of a name and a value that returns the value, or raises an error with cause, value and remedy. A
class decorated with `estimator` declares each parameter in one line: type, default and spec. Its constructor follows,
and only stores, as scikit-learn wants it; parameters of bases come first, those for keywords last. What is learned is
listed in ``learned``. `check_parameters` runs before a fit, before a model is written and after it was read;
`check_learned` around files only, because a file may hold anything.

>>> from sklearn.base import BaseEstimator
>>> @estimator
... class Finder(BaseEstimator):
...     C: float = parameter(positive, default=1.0)
...     width: int | str = parameter(either("auto", whole(1, 99)), default="auto")
...     verbose: int = 1
>>> Finder(width=12)
Finder(width=12)
>>> check_parameters(Finder(width=0))
Traceback (most recent call last):
...
ValueError: width must be 'auto' or a whole number from 1 to 99, got width=0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, TypeVar, dataclass_transform

from tacit.data.arrays import is_table
from tacit.data.parameters import is_not_negative, is_positive, number, one_of, shorten, whole_number
from tacit.data.parameters import switch as switch  # a spec as it is

Spec = Callable[[str, Any], Any]
K = TypeVar("K", bound=type)


def parameter(spec: Spec, *, default: Any = MISSING) -> Any:
    """A parameter of an `estimator`: what it may be, and its default if it has one."""
    return field(default=default, metadata={"spec": spec})


@dataclass_transform(eq_default=False, field_specifiers=(parameter,))
def estimator(kind: K) -> K:
    """A class whose annotated attributes are the parameters of its constructor, which only stores them.

    Names that end in an underscore are learned, those that begin with one are internal: neither is a parameter. A
    property takes the place of a parameter of a base.
    """
    own = vars(kind).get("__annotations__", {})
    shown = {name: own[name] for name in own if name == "_" or "_" not in (name[0], name[-1])}
    computed = {name: ClassVar for name, value in vars(kind).items() if isinstance(value, property)}
    kind.__annotations__ = shown | computed
    dataclass(eq=False, repr=False)(kind)
    kind.__annotations__ = own
    return kind


def check_parameters(owner: Any) -> None:
    """Refuse parameters that the class of ``owner`` does not allow, and those that can be read only once."""
    for name, spec in parameters(type(owner)).items():
        value = getattr(owner, name)
        if isinstance(value, Iterator):
            raise TypeError(f"{name} is an iterator, which can be read only once; give a list")
        spec(name, value)


def parameters(kind: type) -> dict[str, Spec]:
    """The specs of the parameters of a class, in the order of its constructor."""
    listed = fields(kind) if is_dataclass(kind) else ()
    found = {one.name: one.metadata.get("spec") for one in listed}
    return {name: spec for name, spec in found.items() if spec is not None} | declared_specs(kind, "parameters")


def check_learned(owner: Any) -> None:
    """Refuse learned attributes that are missing, or that no fit could have made."""
    for name, spec in declared_specs(type(owner), "learned").items():
        if not hasattr(owner, name):
            raise ValueError(f"{name} is missing; a fitted {type(owner).__name__} has it")
        spec(name, getattr(owner, name))


def declared_specs(kind: type, which: str) -> dict[str, Spec]:
    """The specs of a class and of its bases; those of a class replace those of its bases."""
    found: dict[str, Spec] = {}
    for base in reversed(kind.__mro__):
        own: Mapping[str, Spec] = vars(base).get(which, {})
        found.update(own)
    return found


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    return number(name, value, "a positive number", is_positive)


def not_negative(name: str, value: Any) -> float:
    """A finite number from 0."""
    return number(name, value, "a number from 0", is_not_negative)


def finite(name: str, value: Any) -> float:
    """A number that is neither infinite nor NaN."""
    return number(name, value, "a finite number")


def any_number(name: str, value: Any) -> float:
    """A number, infinite ones too."""
    return number(name, value, "a number", lambda value: True)


def between(meaning: str, low: float, high: float, *, is_open: bool = False) -> Spec:
    """A number from low to high, or between them if the ends are not allowed; ``meaning`` says so in words.

    >>> between("a share between 0 and 1", 0, 1, is_open=True)("validation", 0.25)
    0.25
    """
    if is_open:
        return lambda name, value: number(name, value, meaning, lambda value: low < value < high)
    return lambda name, value: number(name, value, meaning, lambda value: low <= value <= high)


def above(meaning: str, low: float) -> Spec:
    """A finite number above another."""
    return between(meaning, low, math.inf, is_open=True)


share = between("a share from 0 to 1", 0, 1)
"""A number from 0 to 1."""

inner_share = between("a share between 0 and 1", 0, 1, is_open=True)
"""A number between 0 and 1."""

some_share = between("above 0 and at most 1", math.ulp(0.0), 1)
"""A number above 0 and up to 1."""


def whole(least: int = 1, most: int | None = None, *, remedy: str = "") -> Spec:
    """A whole number in a range, of any integer type."""
    return lambda name, value: whole_number(name, value, least, most, remedy=remedy)


def choice(*allowed: Any) -> Spec:
    """One of a few names."""
    return lambda name, value: one_of(name, value, allowed)


def optional(spec: Spec) -> Spec:
    """None, or what another spec allows."""
    return lambda name, value: None if value is None else spec(name, value)


def either(word: str, spec: Spec) -> Spec:
    """A word such as "auto", or what another spec allows; the message names both."""

    def check(name: str, value: Any) -> Any:
        if isinstance(value, str) and value == word:
            return value
        try:
            return spec(name, value)
        except ValueError as error:
            start = f"{name} must be "
            message = str(error)
            if message.startswith(start):
                message = f"{start}{word!r} or {message.removeprefix(start)}"
            raise ValueError(message) from None

    return check


def instance(kinds: type | tuple[type, ...], meaning: str, *, problem: type | None = None) -> Spec:
    """An object of a class; ``meaning`` names one. What has a method ``check`` is checked, too.

    A learner may have to be one of a ``problem``.

    >>> instance(dict, "a dict")("held_out_", [])
    Traceback (most recent call last):
    ...
    ValueError: held_out_ must be a dict, got held_out_=[]
    """

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise ValueError(f"{name} must be {meaning}, got {name}={shorten(value)}")
        if problem is not None and not isinstance(getattr(value, "problem", None), problem):
            raise ValueError(f"{name} must be a fitted learner of {problem.__name__}")
        if hasattr(value, "check"):
            value.check()
        return value

    return check


def table(*shape: int | None, kinds: str = "f") -> Spec:
    """An array of finite numbers of this shape; None stands for any size.

    >>> import numpy as np
    >>> table(None, 2)("pairs_", np.zeros((3, 1)))
    Traceback (most recent call last):
    ...
    ValueError: pairs_ must be an array of finite numbers of shape (any, 2), got ...
    """

    def check(name: str, value: Any) -> Any:
        fits = is_table(value, len(shape), kinds)
        if not fits or any(wanted not in (None, size) for wanted, size in zip(shape, value.shape, strict=True)):
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            shown = value.shape if hasattr(value, "shape") else None
            found = f"an array of shape {shown} of {value.dtype}" if shown is not None else shorten(value)
            raise ValueError(f"{name} must be an array of finite numbers of shape ({wanted}), got {name}={found}")
        return value

    return check

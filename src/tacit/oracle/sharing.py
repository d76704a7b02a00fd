"""How a method of an oracle is shared between blocks of rows: decorators of the methods of protocols.

`batch` methods answer for many rows, and the answer for all of them is joined from those for blocks. `view` methods
return an oracle of the same samples, to be shared in the same way. Any other method of a protocol is called once for
all samples: it is cheap, draws from one stream of random numbers, or must go through the samples one after the other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tacit.data.arrays import Array

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Batch:
    """How one method that answers for many rows is cut into blocks and joined again.

    Parameters
    ----------
    join : makes the answer for all rows from the answers for consecutive blocks
    arguments : the names of positional arguments, in order
    codes : arguments that are codes of the rows
    per_row : arguments with one entry per row
    """

    join: Callable[[Sequence[Any]], Any]
    arguments: tuple[str, ...]
    codes: tuple[str, ...] = ()
    per_row: tuple[str, ...] = ()


class View:
    """Marks a method that returns an oracle of the same samples."""


Sharing = Batch | View | None
"""How a method is shared; None where it is called once for all samples."""


def batch(
    join: Callable[[Sequence[Any]], Any], *, codes: tuple[str, ...] = (), per_row: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Declare a method that answers for many rows; see `Batch`, whose ``arguments`` are those of the method."""

    def declare(method: F) -> F:
        parameters = list(inspect.signature(method).parameters.values())[1:]
        names = tuple(one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD)
        method.sharing = Batch(join, names, codes, per_row)  # type: ignore[attr-defined]
        return method

    return declare


def view(method: F) -> F:
    """Declare a method that returns an oracle of the same samples."""
    method.sharing = View()  # type: ignore[attr-defined]
    return method


def join_arrays(parts: Sequence[Array]) -> Array:
    """Answers with one entry per row, or per token."""
    return np.concatenate(parts)


def join_tuples(parts: Sequence[Any]) -> Any:
    """Named tuples of such arrays: assignments, marginals."""
    return type(parts[0])(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def join_sums(parts: Sequence[Any]) -> Any:
    """Named tuples of such arrays and one sum of ``features``; a field that all parts lack stays None."""

    def join_field(name: str) -> Array | None:
        answers = [answer for part in parts if (answer := getattr(part, name)) is not None]
        join = add_in_order if name == "features" else join_arrays
        return join(answers) if answers else None

    return type(parts[0])(*(join_field(name) for name in parts[0]._fields))


def add_in_order(parts: Sequence[Array]) -> Array:
    """Sums of features."""
    total = np.array(parts[0], dtype=np.float64)
    for part in parts[1:]:
        total += part
    return total

"""Bags as users write them, lists of arrays, columns of pandas and Arrow, as rows and offsets for `tacit.Ragged`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, as_csr, find_uneven, locate
from tacit.data.parameters import ArrayError, plain_array, reason, shorten


def rows_of_list(samples: Iterable[Any]) -> tuple[Any, Array]:
    """Rows and offsets of a list of arrays, nested lists, sparse matrices, or lists of dicts.

    >>> rows_of_list([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]])[1]
    array([0, 1, 3])
    """
    parts: list[Any] = [as_csr(s) if sparse.issparse(s) else _rows_of_bag(s, i) for i, s in enumerate(samples)]
    if not parts:
        raise ValueError("no samples: the list is empty")
    width = max((p.ndim for p in parts), default=1)
    parts = [_widen(part, parts, width) if part.shape[0] == 0 else part for part in parts]
    offsets = np.cumsum([0] + [part.shape[0] for part in parts])
    return stack_rows(parts, "bag"), offsets


def _rows_of_bag(sample: Any, i: int) -> Array:
    try:
        rows = plain_array(sample, f"bag {i}")
        if rows.ndim == 1 and rows.dtype == object and any(isinstance(row, dict) for row in rows):
            return _as_dicts(rows, i)
        if rows.dtype == object:
            rows = np.array([np.asarray(row, dtype=np.float64) for row in rows])
    except ArrayError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"bag {i} is not a table of numbers: {find_uneven(sample) or reason(error)}") from error
    if rows.ndim == 0:
        raise ValueError(f"bag {i} is the single value {shorten(sample)}; a bag is an array of rows")
    if rows.dtype.kind not in "biuf" and rows.size:
        way_out = "WordFeatures of tacit.text turns words into features" if rows.dtype.kind in "SU" else "encode them"
        raise ValueError(f"bag {i} holds {rows.dtype}, not numbers (first: {shorten(rows.flat[0])}); {way_out}")
    return rows


def _as_dicts(rows: Array, i: int) -> Array:
    """Rows of named features, as they are."""
    other = next((j for j, row in enumerate(rows) if not isinstance(row, dict)), None)
    if other is not None:
        raise ValueError(
            f"bag {i} mixes dicts of features and others: row {other} is {shorten(rows[other])}; use dicts alone"
        )
    return rows


def _widen(empty: Any, parts: list[Any], width: int) -> Any:
    """An empty sample written as [] gets the row shape of its neighbours."""
    like = next((p for p in parts if p.shape[0] and p.ndim == width), empty)
    return empty if sparse.issparse(empty) else np.empty((0, *like.shape[1:]), dtype=like.dtype)


def stack_rows(parts: list[Any], word: str) -> Any:
    """Tables below each other; ``word`` names them in errors."""
    first = parts[0]
    for i, part in enumerate(parts):
        if part.shape[1:] != first.shape[1:]:
            raise ValueError(
                f"{word} {i} has rows of {_row(part)}, {word} 0 has rows of {_row(first)}; "
                "every row needs the same length"
            )
    if any(sparse.issparse(part) for part in parts):
        return as_csr(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts) if len(parts) > 1 else first


def _row(part: Any) -> str:
    return "one number" if part.ndim == 1 else f"{'×'.join(map(str, part.shape[1:]))} numbers"


def column_of_frame(series: Any, name: Any) -> Array:
    """A pandas column of numbers, nullable or not, as an array."""
    if getattr(series.dtype, "kind", "O") not in "biuf":
        raise ValueError(f"column {shorten(name)} holds {series.dtype}, not numbers; encode it or drop it")
    missing = np.flatnonzero(series.isna().to_numpy())
    if missing.size:
        raise ValueError(f"column {shorten(name)} is missing in row {missing[0]}; drop the row or fill the gap")
    plain = series.to_numpy()
    return np.asarray(plain if plain.dtype.kind in "biuf" else plain.astype(np.float64))


def rows_of_arrow(column: Any) -> tuple[Array, Array]:
    """Rows and offsets of a pyarrow list column, without a Python object per number."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "num_chunks"):
        column = column.chunk(0) if column.num_chunks == 1 else _join_chunks(column)
    if not hasattr(column, "flatten") or not hasattr(getattr(column, "type", None), "value_type"):
        raise TypeError(
            f"the pyarrow column must hold lists, got {getattr(column, 'type', type(column).__name__)}; "
            "pick one column of a table, and put single numbers into lists"
        )
    if column.null_count:
        row = next(i for i in range(len(column)) if not column[i].is_valid)
        raise ValueError(f"bag {row} is null; drop it or give it rows")
    lengths = np.asarray(column.value_lengths()) if hasattr(column, "value_lengths") else _fixed_lengths(column)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = column.flatten()
    if not hasattr(rows, "flatten") or not hasattr(rows.type, "value_type"):
        return _numbers(rows, offsets, 1), offsets
    if rows.null_count:
        row = next(i for i in range(len(rows)) if not rows[i].is_valid)
        raise ValueError(f"bag {locate(offsets, row)[0]} holds a row that is null; drop the row or fill it")
    widths = np.asarray(rows.value_lengths()) if hasattr(rows, "value_lengths") else _fixed_lengths(rows)
    width = int(widths[0]) if widths.size else 0
    other = np.flatnonzero(widths != width)
    if other.size:
        first, uneven = locate(offsets, 0)[0], locate(offsets, other[0])[0]
        raise ValueError(
            f"bag {uneven} has rows of {widths[other[0]]} numbers, bag {first} has rows of {width} numbers; "
            "every row needs the same length"
        )
    return _numbers(rows.flatten(), offsets, width).reshape(len(rows), width), offsets


def _join_chunks(column: Any) -> Any:
    import pyarrow

    return pyarrow.concat_arrays(column.chunks) if column.num_chunks else pyarrow.array([], column.type)


def _fixed_lengths(column: Any) -> Array:
    return np.full(len(column), column.type.list_size)


def _numbers(column: Any, offsets: Array, width: int) -> Array:
    """The flat numbers of a column whose rows have ``width`` of them."""
    if column.null_count:
        at = next(i for i in range(len(column)) if not column[i].is_valid)
        raise ValueError(f"bag {locate(offsets, at // max(width, 1))[0]} holds a number that is null; fill it first")
    numbers = np.asarray(column.to_numpy(zero_copy_only=False))
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"the lists of the pyarrow column must hold numbers, got {column.type}")
    return numbers

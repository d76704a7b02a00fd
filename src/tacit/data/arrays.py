"""The array types that the whole library speaks of."""

from __future__ import annotations

import copy
import re
import zlib
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tacit.data.parameters import ArrayError, is_endless, numbers, plain_array, reason, shorten

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = "slice | Array | None"
"""Which samples: None for all, a slice (never copies), or a sorted array of indices."""
Codes: TypeAlias = "Array | None"
"""The codes of one output per sample, or None."""


def span(rows: slice, n: int) -> tuple[int, int]:
    """First and last (exclusive) of a slice of step one among n samples."""
    first, last, step = rows.indices(n)
    if step != 1:
        raise ValueError(f"slices of rows must have step 1, got {step}; use an array of indices")
    return first, max(first, last)


def locate(offsets: Array, position: int) -> tuple[int, int]:
    """The sample that a position in the flat table belongs to, and the position in that sample.

    >>> locate(np.array([0, 2, 2, 5]), 3)
    (2, 1)
    """
    i = int(np.searchsorted(offsets, position, side="right")) - 1
    return i, int(position) - int(offsets[i])


def states_of(offsets: Array, index: Array) -> tuple[Array, Array]:
    """The rows of the chosen samples, one sample after the other, and the offsets that cut them.

    >>> states_of(np.array([0, 2, 5]), np.array([1, 0]))
    (array([2, 3, 4, 0, 1]), array([0, 3, 5]))
    """
    lengths = offsets[index + 1] - offsets[index]
    cuts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(cuts[-1]) + np.repeat(offsets[index] - cuts[:-1], lengths)
    return rows, cuts


def positions_of(offsets: Array, samples: Rows) -> Any:
    """The rows of the chosen samples: a slice where the samples are consecutive, else an array.

    >>> positions_of(np.array([0, 2, 5]), slice(1, 2)), positions_of(np.array([0, 2, 5]), np.array([1]))
    (slice(2, 5, None), array([2, 3, 4]))
    """
    if samples is None:
        return slice(0, int(offsets[-1]))
    if isinstance(samples, slice):
        first, last = span(samples, offsets.size - 1)
        return slice(int(offsets[first]), int(offsets[last]))
    return states_of(offsets, np.asarray(samples))[0]


def starts_of(offsets: Array, samples: Rows) -> Array:
    """The offsets that cut the rows of the chosen samples.

    >>> starts_of(np.array([0, 2, 5, 6]), slice(1, 3))
    array([0, 3, 4])
    """
    if samples is None:
        return offsets
    if isinstance(samples, slice):
        first, last = span(samples, offsets.size - 1)
        return np.asarray(offsets[first : last + 1] - offsets[first])
    return states_of(offsets, np.asarray(samples))[1]


def check_offsets(offsets: Any, n_rows: int, name: str = "offsets") -> Array:
    """Offsets that cut so many rows into samples, as int64; kernels read wherever they point, so others are refused.

    Neighbours are compared with each other: the difference of two int64 can wrap around and look harmless.

    >>> check_offsets([0, 2, 2, 5], 5)
    array([0, 2, 2, 5])
    """
    try:
        found = plain_array(offsets, name)
    except ArrayError:
        raise
    except (ValueError, TypeError, OverflowError):
        found = np.empty(())
    if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a non-empty vector of integers, got shape {found.shape} of {found.dtype}; "
            "[0, 2, 5] cuts five rows into samples of two and three"
        )
    found = found.astype(np.int64, copy=False)
    if found[0] != 0 or found[-1] != n_rows:
        raise ValueError(
            f"{name} run from {found[0]} to {found[-1]}, values have {n_rows} rows; "
            f"{name} must start at 0 and end at {n_rows}"
        )
    falls = np.flatnonzero(found[1:] < found[:-1])
    if falls.size:
        i = int(falls[0])
        raise ValueError(f"{name} fall at sample {i}: {found[i]} then {found[i + 1]}; sort them")
    return found


def smallest_integers(largest: int) -> np.dtype[Any]:
    """The narrowest signed integer type that holds -1 and ``largest``.

    >>> smallest_integers(9), smallest_integers(200)
    (dtype('int8'), dtype('int16'))
    """
    return np.result_type(np.int8, np.min_scalar_type(-max(largest, 1) - 1))


def as_csr(values: Any) -> Any:
    """A sparse matrix or a dense table as CSR with sorted, summed entries; the caller's object is left alone."""
    if not sparse.issparse(values):
        values = sparse.csr_array(numbers("the table", values))
    if values.dtype.kind not in "biuf":
        raise ValueError(f"the sparse matrix must hold numbers, got {values.dtype}; encode it first")
    values = _convert_numbers(copy.copy(values))  # SciPy's check trims the object that it checks
    try:
        _check_indices(values)
        matrix = sparse.csr_array(values)
        _check_indices(matrix)
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"the sparse matrix is damaged: {reason(error)}; build it again") from error
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _check_indices(matrix: Any) -> None:
    """Refuse indices outside of a sparse matrix: SciPy, which converts it, and kernels go where they say.

    SciPy's own check looks at differences of ``indptr``, which may wrap around.
    """
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
        check_offsets(matrix.indptr, int(matrix.indptr[-1]), "indptr")
    for indices, size in zip(matrix.coords, matrix.shape, strict=True) if matrix.format == "coo" else ():
        if len(indices) != len(matrix.data) or (len(indices) and not 0 <= indices.min() <= indices.max() < size):
            raise ValueError("coordinates are outside of its shape")


def _convert_numbers(matrix: Any) -> Any:
    """The same matrix with numbers that SciPy can calculate with: not of two bytes, nor of another byte order."""
    kind = np.dtype(np.float32) if matrix.dtype == np.float16 else matrix.dtype.newbyteorder("=")
    if kind != matrix.dtype and isinstance(getattr(matrix, "data", None), np.ndarray):
        matrix.data = matrix.data.astype(kind)
    return matrix


def first_non_finite(values: Any) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity of a 2-D table, dense or CSR; None if all is finite.

    >>> import numpy as np
    >>> first_non_finite(np.array([[1.0, 2.0], [3.0, np.nan]]))
    (1, 1)
    """
    data = values.data if sparse.issparse(values) else values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(data, dtype=np.float64)):
            return None
    if sparse.issparse(values):
        bad = np.flatnonzero(~np.isfinite(data))
        if not bad.size:
            return None
        return locate(values.indptr, bad[0])[0], int(values.indices[bad[0]])
    for start in range(0, values.shape[0], 1 << 14):
        found = np.argwhere(~np.isfinite(values[start : start + (1 << 14)]))
        if found.size:
            return start + int(found[0, 0]), int(found[0, 1])
    return None


def is_table(values: Any, ndim: int, kinds: str) -> bool:
    """Whether something is an array of so many dimensions, of numbers of these kinds, all finite, without a mask.

    Kernels take floats of 32 and 64 bits in the order of this machine's bytes, and no others.

    >>> is_table(np.ones(3), 1, "f"), is_table(np.array([np.nan]), 1, "f"), is_table([1.0], 1, "f")
    (True, False, False)
    >>> is_table(np.ma.masked_array([1.0, 2.0], [True, False]), 1, "f"), is_table(np.ones(3, np.float16), 1, "f")
    (False, False)
    """
    is_plain = isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray) and not is_endless(values)
    is_array = is_plain and values.ndim == ndim and values.dtype.kind in kinds and values.dtype.isnative
    if not is_array or values.dtype.kind not in "fc":
        return is_array
    return (values.dtype.kind == "c" or values.dtype.itemsize in (4, 8)) and bool(np.isfinite(values).all())


def find_uneven(rows: Any, name: str = "row") -> str | None:
    """What keeps nested lists from being a table, and its position, which NumPy does not say; None if nothing is found.

    >>> find_uneven([[1, 2], [3]])
    'row 1 has 1 entries, row 0 has 2; every row needs as many'
    >>> find_uneven([[1, 2], [3, [4]]])
    'row 1 holds [4] at position 1, where a single number is needed'
    """
    if not _is_list(rows) or not any(map(_is_list, rows)):
        return None
    sizes = [len(row) if _is_list(row) else -1 for row in rows]
    for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if size < 0:
            return f"{name} {i} is the single value {shorten(row)}; a {name} is a list of numbers"
        if size != sizes[0]:
            return f"{name} {i} has {size} entries, {name} 0 has {sizes[0]}; every {name} needs as many"
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            if _is_list(entry):
                return f"{name} {i} holds {shorten(entry)} at position {j}, where a single number is needed"
    return None


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def narrow(values: Any) -> Any:
    """Whole numbers in the smallest signed type that holds them; anything else as it is.

    >>> narrow(np.array([3, -1, 120])).dtype
    dtype('int8')
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind != "i" or not values.size:
        return values
    lowest, highest = np.min_scalar_type(values.min()), np.min_scalar_type(-1 - values.max())
    return values.astype(np.promote_types(lowest if lowest.kind == "i" else np.int8, highest), copy=False)


_NPY_MAGIC = re.compile(rb"\x93NUMPY[\x01-\x03]\x00")
_NPY_HEADER = re.compile(
    r"\{'descr': '([<>|][biufcUS]\d{1,9})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,18}(?:, |,)?)*)\), \}\s*"
)


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of the array in a .npy file, whether it is stored by columns, and its type: numbers or strings.

    NumPy's own function evaluates the header as Python. That may fail where threads of CPython 3.11 do it at once.

    >>> import io
    >>> np.save(file := io.BytesIO(), np.zeros((2, 3)))
    >>> read_npy_header(io.BytesIO(file.getvalue()))
    ((2, 3), False, dtype('float64'))
    """
    magic = file.read(8)
    if not _NPY_MAGIC.fullmatch(magic):
        raise ValueError("it does not begin as a .npy file")
    length = int.from_bytes(file.read(2 if magic[6] == 1 else 4), "little")
    header = file.read(min(length, 10_000)).decode("latin-1")
    if (found := _NPY_HEADER.fullmatch(header)) is None:
        raise ValueError(f"its header is {shorten(header)}, not that of an array of numbers or strings")
    shape = tuple(int(size) for size in found[3].split(",") if size.strip())
    return shape, found[2] == "True", np.dtype(found[1])


def checksum(*arrays: Any) -> str:
    """One checksum of several arrays, dense or CSR, shapes and types included. None counts as a value of its own.

    >>> checksum(np.arange(3), None) == checksum(np.arange(3), None) != checksum(None, np.arange(3))
    True
    """
    total = 0
    flat = [part for a in arrays for part in ((a.data, a.indices, a.indptr) if sparse.issparse(a) else (a,))]
    for array in flat:
        if hasattr(array, "add_to_checksum"):  # a table in shards: the same checksum as that of one in memory
            total = array.add_to_checksum(zlib.crc32(f"{array.dtype.str}{array.shape}False".encode(), total))
            continue
        values = np.ascontiguousarray(np.zeros(0) if array is None else array)
        total = zlib.crc32(f"{values.dtype.str}{values.shape}{array is None}".encode(), total)
        total = zlib.crc32(values.reshape(-1).view(np.uint8).data, total)
    return f"{total:08x}"


_POLYNOMIAL = 0xEDB88320  # of CRC-32, its bits reversed


def combine_crc32(first: int, second: int, length: int) -> int:
    """The CRC-32 of two byte strings, one after the other, from that of each and the length of the second.

    >>> combine_crc32(zlib.crc32(b"one "), zlib.crc32(b"shard"), 5) == zlib.crc32(b"one shard")
    True
    """
    shift, power = 1 << 31, 1 << 23  # the polynomials 1 and x⁸, by which a byte shifts what comes before it
    while length:
        if length & 1:
            shift = _multiply(power, shift)
        power = _multiply(power, power)
        length >>= 1
    return _multiply(shift, first) ^ second


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product

"""Archives: arrays and JSON in one uncompressed zip (NumPy's npz). Nothing in them is ever executed.

A file holds ``header.json`` with the format's number and a checksum, and one ``.npy`` per array, read with
``allow_pickle=False``. Nothing is compressed, so sizes can be checked before memory is taken. The parts together are no
larger than the file, an array is as large as its header says, and the JSON has at most `MAX_HEADER` bytes. Any other
file is refused.

The checksum finds damage, not malice: whoever can write a file can compute a new one. So the content is checked once
more by the code that restores something from it (`tacit.runtime.storage`, `tacit.runtime.checkpoint`).
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from tacit.data.arrays import Array, read_npy_header
from tacit.data.parameters import file_path, is_whole, reason, shorten
from tacit.data.unfinished import make_unfinished
from tacit.data.unfinished import remove_unfinished as remove_unfinished  # of archives, for who writes them
from tacit.exports import find_exported

FORMAT = 1
HEADER = "header.json"

MAX_HEADER = 1 << 25
"""Bytes of JSON in a file at the most: as Python objects they can take twenty times as much memory."""

K = TypeVar("K", bound=type)

_stored: dict[str, type] = {}
_records: set[type] = set()


class StorageError(ValueError):
    """A file that is not what it should be: truncated, changed, of another kind or of a newer format."""


class Stored:
    """Base of problems, learners and applications: a model file may hold those of tacit itself, see `storable`."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.__module__.startswith("tacit."):
            storable(cls)


def storable(kind: K) -> K:
    """Let model files hold things of this class of tacit, by its name; its method ``check`` refuses invalid values."""
    if not hasattr(kind, "check"):
        raise TypeError(f"{kind.__name__} must have a method `check`, which refuses what files may not hold")
    _stored.setdefault(kind.__name__, kind)
    return kind


def record(kind: K) -> K:
    """Let model files hold things of this class, which the learner that they belong to checks: lines of histories,
    penalties."""
    _records.add(kind)
    _stored.setdefault(kind.__name__, kind)
    return kind


def is_record(kind: type) -> bool:
    """Whether things of this class are checked by the learner that they belong to."""
    return kind in _records


def find_stored(name: str) -> type | None:
    """A class of tacit that model files may hold, by its name; its module is imported if a table of exports has it."""
    if not isinstance(name, str):
        return None
    if name not in _stored:
        find_exported(name)
    return _stored.get(name)


def write_archive(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write atomically: readers see the old file or the new one, never half of either.

    Where ``path`` is a symbolic link, the file that it names is replaced, and the link stays.
    """
    from tacit import __version__

    target = Path(os.path.realpath(file_path("path", path)))
    blobs = {f"{name}.npy": _npy(name, value) for name, value in arrays.items()}
    text = json.dumps({"format": FORMAT, "kind": kind, "tacit": __version__, **header})
    envelope = json.dumps({"checksum": _checksum(text, blobs.items()), "text": text})
    if len(envelope) > MAX_HEADER:
        raise StorageError(
            f"{len(envelope)} bytes of text, where at most {MAX_HEADER} are written; store labels and hidden values as "
            "numbers, or as arrays of strings"
        )
    try:
        temporary = make_unfinished(target.parent)
    except OSError as error:
        raise _explain(error, path, "written") from error
    try:
        with temporary.open("r+b") as stream:
            if os.path.exists(target):  # it keeps its permissions
                os.chmod(temporary, target.stat().st_mode & 0o777)
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(HEADER, envelope)
                for name, blob in blobs.items():
                    archive.writestr(name, blob)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _explain(error, path, "written") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """The kind of an archive, None for a file that is not an archive. Only the header is read, with its limits."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as stream:
            return str(_read_header(stream, str(path), blobs={})[0].get("kind"))
    except StorageError:
        return None
    except OSError as error:
        raise _explain(error, path, "read") from error


def read_archive(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read and check a file of the given kind; a `StorageError` says what is wrong with it."""
    file = file_path("path", path)
    where = str(file)
    if not os.path.isfile(file):
        raise FileNotFoundError(f"{shorten(where)} does not exist")
    blobs: dict[str, bytes] = {}
    try:
        with file.open("rb") as stream:
            header, text, seal = _read_header(stream, where, blobs, whole=True)
    except OSError as error:
        raise _explain(error, path, "read") from error
    if seal != _checksum(text, blobs.items()):
        raise StorageError(f"{shorten(where)} was changed after it was written (checksum differs); do not trust it")
    if header.get("kind") != kind:
        found = shorten(str(header.get("kind"))).strip("'")
        raise StorageError(f"{shorten(where)} is a {found}, not a {kind}")
    return header, {name.removesuffix(".npy"): read_array(blob, name, where) for name, blob in blobs.items()}


def _read_header(
    stream: IO[bytes], where: str, blobs: dict[str, bytes], whole: bool = False
) -> tuple[dict[str, Any], str, Any]:
    """The header, its text and the checksum; the other parts go to ``blobs`` if the whole file is wanted."""
    try:
        with zipfile.ZipFile(stream) as archive:
            _check_entries(archive.infolist(), os.fstat(stream.fileno()).st_size)
            if whole:
                blobs |= {name: archive.read(name) for name in archive.namelist() if name != HEADER}
            envelope = json.loads(archive.read(HEADER))
        text, seal = envelope["text"], envelope["checksum"]
        header = json.loads(text)
        if not is_whole(header["format"]) or not text.isascii():
            raise StorageError("its header is malformed")
        if header["format"] > FORMAT:
            raise StorageError(
                f"it has format {shorten(header['format'])}, written by tacit {shorten(header.get('tacit'))}; this "
                f"tacit reads formats up to {FORMAT}: upgrade it"
            )
    except StorageError as error:
        raise StorageError(f"{shorten(where)}: {error}") from error
    except Exception as error:  # parsers of zip and JSON raise whatever a malformed file makes them stumble over
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a position before the file is malformed too
            raise
        raise StorageError(
            f"{shorten(where)} is truncated or not a tacit file ({reason(error)}); delete it, or name another"
        ) from error
    return header, text, seal


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse parts that are not as tacit writes them: then all of them together are no larger than the file."""
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise StorageError("it has compressed parts, which tacit never writes; it was not made by tacit")
    if len({entry.filename for entry in entries}) < len(entries):
        raise StorageError("two of its parts have one name; it was not made by tacit")
    promised = sum(max(entry.file_size, entry.compress_size) for entry in entries)
    if promised > size:
        raise StorageError(f"its parts have {promised} bytes, the file has {size}; it was not made by tacit")
    if any(entry.filename == HEADER and entry.file_size > MAX_HEADER for entry in entries):
        raise StorageError(f"its header has more than {MAX_HEADER} bytes; it was not made by tacit")


def read_array(blob: bytes, name: str, where: str) -> Array:
    """An array of numbers or strings, exactly as large as its header says."""
    try:
        stream = io.BytesIO(blob)
        shape, is_column_major, dtype = read_npy_header(stream)
        if dtype.kind == "c" or dtype.itemsize == 0:
            raise StorageError(f"it holds {dtype}, where numbers and strings are written")
        if shape and 0 in shape and shape[0] != 0:
            raise StorageError(f"it has the shape {shorten(shape)}")
        promised, there = math.prod(shape) * dtype.itemsize, len(blob) - stream.tell()
        if promised != there:
            raise StorageError(f"it promises {promised} bytes and has {there}")
        array = np.frombuffer(blob, dtype, math.prod(shape), stream.tell())
        array = array.reshape(shape[::-1]).T if is_column_major else array.reshape(shape)
        array = array.astype(dtype.newbyteorder("="))
        if array.dtype.kind == "U" and array.size:
            points = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
            if (points > 0x10FFFF).any() or ((points >= 0xD800) & (points < 0xE000)).any():
                raise StorageError("it holds something that is not a character")
    except (ValueError, TypeError) as error:
        raise StorageError(
            f"{shorten(where)} holds a broken array, {shorten(name)} ({reason(error)}); delete the file, or "
            "name another"
        ) from error
    return array


def _explain(error: OSError, path: Any, done: str) -> OSError:
    """The same error with the user's path in it, and what could not be done."""
    message = f"{shorten(os.fspath(path))} could not be {done}: {error.strerror or error}"
    return OSError(error.errno, message) if error.errno else OSError(message)


def _npy(name: str, value: Array) -> bytes:
    stream = io.BytesIO()
    array = np.asarray(value)
    if array.dtype.kind not in "biufUS":
        raise StorageError(f"{name} holds Python objects, which cannot be saved: use numbers or strings")
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def _checksum(text: str, blobs: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name, blob in sorted(blobs):
        digest.update(name.encode())
        digest.update(blob)
    return digest.hexdigest()

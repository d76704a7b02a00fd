"""Archives: arrays and JSON in one uncompressed zip (NumPy's npz). Nothing in them is ever executed.

A file holds ``header.json`` with the format's number and a checksum, and one ``.npy`` per array, read with
``allow_pickle=False``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Array

FORMAT = 1
HEADER = "header.json"


class StorageError(ValueError):
    """A file that is not what it should be: truncated, changed, of another kind or of a newer format."""


def write_archive(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write atomically: readers see the old file or the new one, never half of either."""
    from tacit import __version__

    target = Path(path)
    blobs = {f"{name}.npy": _npy(name, value) for name, value in arrays.items()}
    text = json.dumps({"format": FORMAT, "kind": kind, "tacit": __version__, **header})
    seal = _checksum(text, blobs.items())
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            os.chmod(temporary, _mode(target))
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(HEADER, json.dumps({"checksum": seal, "text": text}))
                for name, blob in blobs.items():
                    archive.writestr(name, blob)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """The kind of an archive, None for a file that is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return str(json.loads(json.loads(archive.read(HEADER))["text"])["kind"])
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, RuntimeError, EOFError, OSError):
        return None


def read_archive(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read and check a file of the given kind; a `StorageError` says what is wrong with it."""
    where = str(path)
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {where!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise StorageError(
                    f"{where!r} has compressed parts, which tacit never writes; it was not made by tacit"
                )
            blobs = {entry.filename: archive.read(entry) for entry in entries}
        envelope = json.loads(blobs.pop(HEADER))
        text, seal = str(envelope["text"]), envelope["checksum"]
        header: dict[str, Any] = json.loads(text)
        if int(header["format"]) > FORMAT:
            raise StorageError(
                f"{where!r} has format {header['format']}, written by tacit {header.get('tacit')}; "
                f"this tacit reads formats up to {FORMAT}: upgrade it"
            )
    except StorageError:
        raise
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, RuntimeError, EOFError, OSError) as error:
        raise StorageError(
            f"{where!r} is truncated or not a tacit file ({error}); delete it, or name another"
        ) from error
    if seal != _checksum(text, blobs.items()):
        raise StorageError(f"{where!r} was changed after it was written (checksum differs); do not trust it")
    if header.get("kind") != kind:
        raise StorageError(f"{where!r} is a {header.get('kind')}, not a {kind}")
    try:
        arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(blob), allow_pickle=False)
            for name, blob in blobs.items()
        }
    except (ValueError, EOFError, MemoryError) as error:
        raise StorageError(f"{where!r} holds a broken array ({error})") from error
    return header, arrays


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, else those of any new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _npy(name: str, value: Array) -> bytes:
    stream = io.BytesIO()
    try:
        np.lib.format.write_array(stream, np.asarray(value), allow_pickle=False)
    except ValueError as error:
        raise StorageError(f"{name} holds Python objects, which cannot be saved: use numbers or strings") from error
    return stream.getvalue()


def _checksum(text: str, blobs: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name, blob in sorted(blobs):
        digest.update(name.encode())
        digest.update(blob)
    return digest.hexdigest()

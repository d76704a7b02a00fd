"""Model and checkpoint files: arrays and JSON in one uncompressed zip (NumPy's npz). Nothing in them is ever executed.

A file holds ``header.json`` with the format's number and a checksum, and one ``.npy`` per array, read with
``allow_pickle=False``. Objects are restored by name, and only tacit's own classes have one.
"""

from __future__ import annotations

import enum
import hashlib
import importlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.arrays import Array

FORMAT = 1
HEADER = "header.json"
_HOMES = ("tacit.learners", "tacit.problems", "tacit.solvers")


class StorageError(ValueError):
    """A file that is not what it should be: truncated, changed, of another kind or of a newer format."""


def save(path: str | os.PathLike[str], model: Any, facts: Mapping[str, Any]) -> None:
    """Write a fitted learner: its parameters and the learned ``facts``."""
    arrays: dict[str, Array] = {}
    header = {
        "learner": type(model).__name__,
        "params": _pack_params(model, arrays, "param"),
        "facts": {name: _pack(value, arrays, f"fact.{name}") for name, value in facts.items()},
    }
    write_archive(path, "model", header, arrays)


def load(path: str | os.PathLike[str], problem: Any = None) -> Any:
    """Restore a learner that `save` wrote. Loading never runs code from the file.

    Parameters
    ----------
    path : the file
    problem : needed, and only allowed, when the model was trained on a problem of your own; a solver of your own is
        not restored

    >>> import tempfile, tacit
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tacit.StructuredSVM(tacit.problems.Multiclass()).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/iris.tacit")
    ...     bool((tacit.load(f"{folder}/iris.tacit").predict(X) == model.predict(X)).all())
    True
    """
    header, arrays = read_archive(path, "model")
    try:
        params = {name: _unpack(value, arrays) for name, value in header["params"].items()}
        facts = {name: _unpack(value, arrays) for name, value in header["facts"].items()}
        kind = _own_class(header["learner"])
    except (KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{str(path)!r} is not a tacit model: {error!r} is missing or malformed") from error
    stored = params.get("problem")
    if isinstance(stored, _Foreign):
        if problem is None:
            raise StorageError(
                f"{str(path)!r} was trained on {stored.name}, which is not a class of tacit; "
                f"pass it: tacit.load(path, problem={stored.name}(...))"
            )
        if type(problem).__name__ != stored.name:
            raise StorageError(
                f"{str(path)!r} was trained on {stored.name}, got problem={type(problem).__name__}; pass the same"
            )
        params["problem"] = problem
    elif problem is not None:
        raise StorageError(f"{str(path)!r} holds its problem, {type(stored).__name__}: leave out problem=")
    params = {name: None if isinstance(value, _Foreign) else value for name, value in params.items()}
    try:
        model = kind(**params)
    except TypeError as error:
        raise StorageError(f"{str(path)!r} is not a tacit model: {error}") from error
    for name, value in facts.items():
        setattr(model, name, value)
    return model


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
    except (
        zipfile.BadZipFile,
        KeyError,
        TypeError,
        ValueError,
        NotImplementedError,
        EOFError,
        OSError,
    ) as error:
        raise StorageError(
            f"{where!r} is truncated or not a tacit file ({error}); write it again with save()"
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


class _Foreign:
    """The place of an object whose class is the user's."""

    def __init__(self, name: str) -> None:
        self.name = name


def _pack_params(owner: Any, arrays: dict[str, Array], path: str) -> dict[str, Any]:
    params = owner.get_params(deep=False)
    kept = {name: value for name, value in params.items() if name not in getattr(owner, "_not_saved", ())}
    return {name: _pack(value, arrays, f"{path}.{name}") for name, value in kept.items()}


def _pack(value: Any, arrays: dict[str, Array], path: str) -> Any:
    """JSON for plain values; arrays are set aside under a name; own objects become their class's name and parts."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, np.ndarray) and value.dtype == object and all(isinstance(v, str) for v in value.flat):
        return {"$strings": value.tolist()}
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"$array": path}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, enum.Enum):
        return {"$enum": type(value).__name__, "name": value.name}
    if isinstance(value, BaseEstimator):
        name = type(value).__name__
        if _find_class(name) is not type(value):
            return {"$foreign": name}
        return {"$object": name, "parts": _pack_params(value, arrays, path)}
    if hasattr(value, "_fields") or hasattr(value, "__dataclass_fields__"):
        fields = getattr(value, "_fields", None) or tuple(value.__dataclass_fields__)
        parts = {name: _pack(getattr(value, name), arrays, f"{path}.{name}") for name in fields}
        return {"$object": type(value).__name__, "parts": parts}
    if isinstance(value, (list, tuple)):
        items = [_pack(part, arrays, f"{path}.{i}") for i, part in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"$dict": {key: _pack(part, arrays, f"{path}.{key}") for key, part in value.items()}}
    if isinstance(value, Mapping):
        pairs = [[_pack(k, arrays, f"{path}.key"), _pack(v, arrays, f"{path}.value")] for k, v in value.items()]
        return {"$pairs": pairs}
    raise StorageError(f"{path} is {value!r}: a {type(value).__name__} cannot be saved; use numbers, strings or arrays")


def _unpack(value: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(value, list):
        return [_unpack(part, arrays) for part in value]
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        return arrays[value["$array"]]
    if "$enum" in value:
        return _own_class(value["$enum"])[value["name"]]
    if "$strings" in value:
        return np.array(value["$strings"], dtype=object)
    if "$foreign" in value:
        return _Foreign(value["$foreign"])
    if "$tuple" in value:
        return tuple(_unpack(part, arrays) for part in value["$tuple"])
    if "$dict" in value:
        return {key: _unpack(part, arrays) for key, part in value["$dict"].items()}
    if "$pairs" in value:
        return {_unpack(k, arrays): _unpack(v, arrays) for k, v in value["$pairs"]}
    kind = _own_class(value["$object"])
    return kind(**{name: _unpack(part, arrays) for name, part in value["parts"].items()})


def _own_class(name: str) -> Any:
    kind = _find_class(name)
    if kind is None:
        raise StorageError(f"the file names {name!r}, which is not a class that this tacit restores")
    return kind


def _find_class(name: str) -> Any:
    """A class that tacit itself exports, by its name."""
    from tacit.oracle import Schema

    if name == "Schema":
        return Schema
    for home in _HOMES:
        module = importlib.import_module(home)
        if name in module.__all__:
            found = getattr(module, name)
            return found if isinstance(found, type) else None
    return None

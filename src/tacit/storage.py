"""Model files: a learner's parameters and learned facts, restored by the names of tacit's own classes."""

from __future__ import annotations

import enum
import importlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.archive import StorageError, read_archive, write_archive
from tacit.arrays import Array
from tacit.ragged import Ragged

_HOMES = (
    "tacit.learners",
    "tacit.problems",
    "tacit.problems.image_rotations",
    "tacit.solvers",
    "tacit.pacing",
    "tacit.learners.latent_svm",
    "tacit.penalties",
    "tacit.running",
    "tacit.spectral",
)


def save(path: str | os.PathLike[str], model: Any, facts: Mapping[str, Any]) -> None:
    """Write a fitted learner: its parameters and the learned ``facts``."""
    name = type(model).__name__
    if _find_class(name) not in (None, type(model)):
        raise StorageError(f"{type(model)} has the name of a class of tacit, which tacit.load would restore; rename it")
    arrays: dict[str, Array] = {}
    header = {
        "learner": name,
        "params": _pack_params(model, arrays, "param"),
        "facts": {name: _pack(value, arrays, f"fact.{name}") for name, value in facts.items()},
    }
    write_archive(path, "model", header, arrays)


def load(path: str | os.PathLike[str], problem: Any = None, classes: Iterable[type] = ()) -> Any:
    """Restore a learner that `save` wrote. Loading never runs code from the file.

    Parameters
    ----------
    path : the file
    problem : needed, and only allowed, when the model was trained on a problem of your own; a solver of your own is
        not restored
    classes : classes of your own that the file may hold: a learner, the lines of its history

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
    unpack = _Unpacker(arrays, {kind.__name__: kind for kind in classes})
    try:
        kind = unpack.find_class(header["learner"])
        params = {name: unpack(value) for name, value in header["params"].items()}
        facts = {name: unpack(value) for name, value in header["facts"].items()}
        facts = {name: None if isinstance(value, _Foreign) else value for name, value in facts.items()}
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise StorageError(f"{str(path)!r} is not a tacit model: {error!r} is missing or malformed") from error
    if not hasattr(kind, "save"):
        raise StorageError(f"{str(path)!r} holds a {kind.__name__}, not a learner")
    stored = params.get("problem")
    if isinstance(stored, _Foreign):
        if problem is None:
            why = "which is not a class of tacit" if _find_class(stored.name) is None else "which holds your functions"
            raise StorageError(
                f"{str(path)!r} was trained on {stored.name}, {why}; "
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
        for name, value in facts.items():
            setattr(model, name, value)
    except (TypeError, AttributeError) as error:
        raise StorageError(f"{str(path)!r} is not a tacit model: {error}") from error
    return model


def is_own(thing: Any) -> bool:
    """Whether the thing is of a class that tacit itself exports, and holds no code, so that `load` can restore it."""
    return _find_class(type(thing).__name__) is type(thing) and not getattr(thing, "holds_functions", False)


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
    if isinstance(value, np.random.RandomState):
        return None
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ndarray) and value.dtype == object and all(isinstance(v, str) for v in value.flat):
        return {"$strings": value.tolist()}
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        return {"$objects": [_pack(part, arrays, f"{path}.{i}") for i, part in enumerate(value)]}
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"$array": path}
    if isinstance(value, Ragged):
        arrays[f"{path}.offsets"] = value.offsets
        boxes = _pack(value.boxes, arrays, f"{path}.boxes")
        return {"$ragged": _pack(value.values, arrays, f"{path}.values"), "offsets": f"{path}.offsets", "boxes": boxes}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, enum.Enum):
        return {"$enum": type(value).__name__, "name": value.name}
    if isinstance(value, BaseEstimator):
        name = type(value).__name__
        if not is_own(value):
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


class _Unpacker:
    """The inverse of `_pack`; classes are tacit's own, or among those that the user handed over."""

    def __init__(self, arrays: Mapping[str, Array], handed_over: Mapping[str, type]) -> None:
        self._arrays = arrays
        self._handed_over = handed_over

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self(part) for part in value]
        if not isinstance(value, dict):
            return value
        if "$array" in value:
            return self._arrays[value["$array"]]
        if "$ragged" in value:
            return Ragged(self(value["$ragged"]), self._arrays[value["offsets"]], self(value.get("boxes")))
        if "$enum" in value:
            return self.find_class(value["$enum"])[value["name"]]
        if "$strings" in value:
            return np.array(value["$strings"], dtype=object)
        if "$objects" in value:
            column = np.empty(len(value["$objects"]), dtype=object)
            for i, part in enumerate(value["$objects"]):
                column[i] = self(part)
            return column
        if "$foreign" in value:
            return _Foreign(value["$foreign"])
        if "$tuple" in value:
            return tuple(self(part) for part in value["$tuple"])
        if "$dict" in value:
            return {key: self(part) for key, part in value["$dict"].items()}
        if "$pairs" in value:
            return {self(k): self(v) for k, v in value["$pairs"]}
        kind = self.find_class(value["$object"])
        return kind(**{name: self(part) for name, part in value["parts"].items()})

    def find_class(self, name: str) -> Any:
        kind = _find_class(name) or self._handed_over.get(name)
        if kind is None:
            raise StorageError(
                f"the file names {name!r}, which is not a class that this tacit restores; if it is yours, hand it "
                f"over: tacit.load(path, classes=[{name}])"
            )
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

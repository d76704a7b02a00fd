"""Model files: a learner's parameters and learned attributes, restored by the names of tacit's own classes.

A file names classes of tacit and the values to build them with, and nothing else. It holds no code. No other class is
ever imported or built, except those that the caller of `load` hands over. Classes register themselves
(`tacit.runtime.archive.storable`), and every class that is built has a method ``check``, which refuses invalid values:
shapes, types, numbers that are not finite, ranges, parts that do not fit each other. So a file that was damaged or made
by hand raises a `StorageError` here, and never reaches a kernel.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, is_list, reason, shorten
from tacit.data.ragged import Ragged
from tacit.runtime import Status
from tacit.runtime.archive import StorageError, find_stored, is_record, read_archive, remove_unfinished, write_archive


def save(path: str | os.PathLike[str], model: Any, attributes: Mapping[str, Any]) -> None:
    """Write a fitted learner: its parameters and learned ``attributes``, by name."""
    target, name = file_path("path", path), type(model).__name__
    if find_stored(name) not in (None, type(model)):
        raise StorageError(f"{type(model)} has the name of a class of tacit, which tacit.load would restore; rename it")
    model.check()  # a model that could not be loaded again is not written
    arrays: dict[str, Array] = {}
    header = {
        "learner": name,
        "params": _pack_params(model, arrays, "param"),
        "facts": {name: _pack(value, arrays, f"fact.{name}") for name, value in attributes.items()},
    }
    remove_unfinished(target.parent)
    write_archive(target, "model", header, arrays)


def load(path: str | os.PathLike[str], problem: Any = None, classes: Iterable[type] = ()) -> Any:
    """Restore a learner that `save` wrote. Loading never runs code from the file.

    Parameters
    ----------
    path : the file
    problem : the problem, if the model was trained on one of your own; otherwise leave it out. A solver of your own is
        not restored
    classes : your own classes that the file may hold: a learner, the lines of its history

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
    where = shorten(str(path))
    unpack = _Unpacker(arrays, _handed_over(classes))
    try:
        kind = unpack.find_class(header["learner"])
        params = {name: unpack(value) for name, value in header["params"].items()}
        attributes = {name: unpack(value) for name, value in header["facts"].items()}
        attributes = {name: None if isinstance(value, _Foreign) else value for name, value in attributes.items()}
    except Exception as error:  # a file may name and nest anything
        raise StorageError(f"{where} is not a tacit model: {_reason(error)}") from error
    if not hasattr(kind, "save"):
        raise StorageError(f"{where} holds a {kind.__name__}, not a learner")
    _give_problem(params, problem, where)
    params = {name: None if isinstance(value, _Foreign) else value for name, value in params.items()}
    try:
        return _build(kind, params, attributes)
    except Exception as error:  # any part may refuse what the file holds
        raise StorageError(f"{where} is not a tacit model: {_reason(error)}; get the file again") from error


def _build(kind: Any, params: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """A fitted learner of parameters and learned attributes, checked."""
    model = kind(**params)
    for name, value in attributes.items():
        if not name.endswith("_") or name.startswith("_") or callable(getattr(kind, name, None)):
            raise StorageError(f"{shorten(name)} is not a learned attribute")
        setattr(model, name, value)
    model.check()
    return model


def _handed_over(classes: Iterable[type]) -> dict[str, type]:
    """The user's classes by name."""
    if isinstance(classes, type) or not is_list(classes):
        raise TypeError(f"classes must be a list of your own classes, such as [MyLearner], got {shorten(classes)}")
    listed = list(classes)
    wrong = [kind for kind in listed if not isinstance(kind, type)]
    if wrong:
        raise TypeError(f"classes must be a list of your own classes, but {shorten(wrong[0])} is not a class")
    return {kind.__name__: kind for kind in listed}


def _give_problem(params: dict[str, Any], problem: Any, where: str) -> None:
    """Put the user's problem where the file only names it; refuse one that is not needed, or of another class."""
    stored = params.get("problem")
    if isinstance(stored, _Foreign):
        if problem is None:
            why = "which is not a class of tacit" if find_stored(stored.name) is None else "which holds your functions"
            raise StorageError(
                f"{where} was trained on {stored.name}, {why}; pass it: tacit.load(path, problem={stored.name}(...))"
            )
        if type(problem).__name__ != stored.name:
            raise StorageError(
                f"{where} was trained on {stored.name}, got problem={type(problem).__name__}; pass the same"
            )
        params["problem"] = problem
    elif problem is not None:
        raise StorageError(f"{where} holds its problem, {type(stored).__name__}: leave out problem=")


def _reason(error: Exception) -> str:
    """What is wrong, on one short line."""
    is_lookup = isinstance(error, KeyError | AttributeError | IndexError)
    return f"{reason(error)} is missing or malformed" if is_lookup else reason(error)


def is_own(thing: Any) -> bool:
    """Whether `load` can restore the thing by itself: its class is `storable`, and it holds no functions."""
    return find_stored(type(thing).__name__) is type(thing) and not getattr(thing, "holds_functions", False)


class _Foreign:
    """The place of an object whose class is the user's."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise StorageError(f"{shorten(name)} is not the name of a class")
        self.name = shorten(name).strip("'")


def _pack_params(owner: Any, arrays: dict[str, Array], path: str) -> dict[str, Any]:
    params = owner.get_params(deep=False)
    kept = {name: value for name, value in params.items() if name not in getattr(owner, "_not_saved", ())}
    return {name: _pack(value, arrays, f"{path}.{name}") for name, value in kept.items()}


def _pack(value: Any, arrays: dict[str, Array], path: str) -> Any:
    """Turn a value into JSON. Arrays go to ``arrays`` under a name; tacit's objects become class name and parts."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.floating) else value.item()  # longdouble.item() is a longdouble
    if isinstance(value, np.random.RandomState):
        return None
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    is_column = isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1
    if is_column and all(isinstance(v, str) for v in value):
        return {"$strings": value.tolist()}
    if is_column:
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
    if isinstance(value, Status):
        return {"$status": value.name}
    if isinstance(value, slice):
        return {"$slice": [_pack(part, arrays, path) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, BaseEstimator):
        name = type(value).__name__
        if not is_own(value):
            return {"$foreign": name}
        value.check()
        if hasattr(value, "learned_attributes"):  # a fitted learner inside of an application
            facts = value.learned_attributes().items()
            return {
                "$fitted": name,
                "params": _pack_params(value, arrays, path),
                "facts": {name: _pack(part, arrays, f"{path}.{name}") for name, part in facts},
            }
        return {"$object": name, "parts": _pack_params(value, arrays, path)}
    if hasattr(value, "_fields") or hasattr(value, "__dataclass_fields__"):
        kind = type(value)
        if kind.__module__.startswith("tacit.") and not is_own(value):
            raise StorageError(
                f"{path} is a {kind.__name__}, which tacit.load does not restore: decorate it with storable"
            )
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
    raise StorageError(
        f"{path} is {shorten(value)}: a {type(value).__name__} cannot be saved; use numbers, strings or arrays"
    )


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
        if "$status" in value:
            return Status[value["$status"]]
        if "$slice" in value:
            start, stop, step = (part if part is None else int(part) for part in value["$slice"])
            return slice(start, stop, step)
        if "$strings" in value:
            if not all(isinstance(part, str) for part in value["$strings"]):
                raise StorageError("a column of strings holds something else")
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
        if "$fitted" in value:
            kind: Any = self.find_class(value["$fitted"])
            params, facts = ({name: self(part) for name, part in value[key].items()} for key in ("params", "facts"))
            return _build(kind, params, facts)
        kind = self.find_class(value["$object"])
        restore = getattr(kind, "from_old_parts", kind)  # of classes whose parameters were others before
        thing = restore(**{name: self(part) for name, part in value["parts"].items()})
        if not is_record(kind) and find_stored(kind.__name__) is kind:
            thing.check()
        return thing

    def find_class(self, name: str) -> Any:
        kind = find_stored(name) or self._handed_over.get(name)
        if kind is None:
            shown = shorten(name)
            raise StorageError(
                f"the file names {shown}, which is not a class that this tacit restores; if it is yours, hand it "
                f"over: tacit.load(path, classes=[{shown[1:-1]}])"
            )
        return kind

"""Labels as users write them, and their positions among the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from tacit.arrays import Array, find_uneven


def read_labels(y: Any, n: int) -> Array:
    """One label per sample, as an array; the error names what is wrong and where.

    >>> read_labels(["deer", "llama"], 2)
    array(['deer', 'llama'], dtype='<U5')
    """
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    labels = column_or_1d(_plain(y), warn=True)
    if len(labels) != n:
        raise ValueError(f"X has {n} samples, y has {len(labels)} labels; give one label per sample")
    if labels.dtype == object:
        missing = [i for i, label in enumerate(labels) if label is None or label != label]
        if missing:
            raise ValueError(f"y[{missing[0]}] is missing; drop the sample or label it")
        kinds = {isinstance(label, str): i for i, label in reversed(list(enumerate(labels)))}
        if len(kinds) > 1:
            i, j = sorted(kinds.values())
            raise ValueError(f"y mixes kinds: y[{i}] is {labels[i]!r}, y[{j}] is {labels[j]!r}; use one kind of label")
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        i = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"y[{i}] is {labels[i]}: Input y contains NaN or infinity; drop the sample or label it")
    return np.asarray(labels)


def read_classes(classes: Any, y: Any, n: int) -> Array:
    """The classes: those the user lists (y must be among them), or all that occur in y, sorted."""
    labels = read_labels(y, n)
    check_classification_targets(labels)
    if classes is None:
        found = np.unique(labels)
        if found.size < 2:
            raise ValueError(
                f"y holds only one class, {found.tolist()}: there is nothing to tell apart; add samples of another "
                "class, or list all classes with classes=[...]"
            )
        return found
    listed = np.array(_plain(classes).tolist())
    if listed.ndim != 1 or np.unique(listed).size != listed.size or listed.size < 2:
        raise ValueError(f"classes must be two or more different labels, got {classes!r}")
    reject_unknown(find_labels(listed, labels), listed, labels)
    return listed


def find_labels(classes: Array, labels: Array) -> Array:
    """The position of every label among the classes, −1 where it is none of them.

    >>> find_labels(np.array(["b", "a"]), np.array(["a", "c", "b"]))
    array([ 1, -1,  0])
    """
    if (classes.dtype.kind in "US") != (labels.dtype.kind in "US"):
        return np.full(len(labels), -1)
    order = np.argsort(classes, kind="stable")
    place = np.searchsorted(classes, labels, sorter=order)
    found = order[np.minimum(place, len(classes) - 1)]
    return np.where(classes[found] == labels, found, -1)


def reject_unknown(found: Array, classes: Array, labels: Array) -> None:
    """Raise an error that names the first label that is none of the classes."""
    unknown = np.flatnonzero(found < 0)
    if unknown.size:
        i = int(unknown[0])
        raise ValueError(
            f"y[{i}] is {labels[i].item()!r}, which is none of the classes {classes.tolist()}; "
            "drop the sample or list the label in classes=[...]"
        )


def _plain(values: Any) -> Array:
    if type(values).__module__.split(".")[0] == "pyarrow":
        values = values.to_pylist()
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if isinstance(values, (list, tuple)) and len({isinstance(v, str) for v in values}) > 1:
        return np.array(values, dtype=object)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"y does not hold one label per sample: {find_uneven(values, 'entry') or error}") from error

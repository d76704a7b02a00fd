"""Labels as users write them, and their positions among the classes."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from tacit.data.arrays import Array, find_uneven
from tacit.data.parameters import ArrayError, has_length, is_list, plain_array, reason, shorten


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or what pandas writes for it.

    >>> import pandas as pd
    >>> [is_missing(value) for value in (None, np.nan, pd.NA, pd.NaT, 0, "", np.zeros(2))]
    [True, True, True, True, False, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # comparing the former with itself is neither
        return True
    return isinstance(value, Number | np.generic) and bool(value != value)


def kind_of_label(value: Any) -> str:
    """What a single label is: "text", "bytes" or "number"; "" for what cannot be one.

    >>> [kind_of_label(value) for value in ("a", b"a", np.int8(3), True, (1, 2), None)]
    ['text', 'bytes', 'number', 'number', '', '']
    """
    if is_missing(value):
        return ""
    if isinstance(value, str | bytes):
        return "text" if isinstance(value, str) else "bytes"
    is_number = isinstance(value, bool | int | float) or (isinstance(value, np.generic) and value.dtype.kind in "biuf")
    return "number" if is_number else ""


MAX_GAPS = 100
"""Whole numbers between the lowest and the highest class, per class, up to which a table of all of them is made."""

UNLABELLED = (
    "drop the sample or label it. Learners for hidden values, such as tacit.LatentSVM, take None for a missing label "
    "that is one of the classes"
)
"""What to do about samples without a label: a loss is measured against the label, so alone they teach nothing."""


def read_labels(y: Any, n: int) -> Array:
    """One label per sample, as an array; the error names what is wrong and where.

    >>> read_labels(["deer", "llama"], 2)
    array(['deer', 'llama'], dtype='<U5')
    """
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    labels = _plain(y)
    if labels.ndim and len(labels) != n:  # before anything is copied: an array can repeat a label
        raise ValueError(f"X has {n} samples, y has {len(labels)} labels; give one label per sample")
    labels = column_or_1d(labels, warn=True)
    if len(labels) != n:
        raise ValueError(f"X has {n} samples, y has {len(labels)} labels; give one label per sample")
    if labels.dtype == object:
        labels = _of_one_kind(labels)
    if labels.dtype.kind not in "biufUS":
        raise ValueError(f"labels must be numbers or strings, but y holds {labels.dtype}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        i = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"y[{i}] is {labels[i]}: Input y contains NaN or infinity; {UNLABELLED}")
    return np.asarray(labels)


def read_classes(classes: Any, y: Any, n: int, least: int = 2) -> Array:
    """The classes: those the user lists (``least`` or more, y among them), or all that occur in y, sorted."""
    labels = read_labels(y, n)
    check_classification_targets(labels)
    if classes is None:
        found = np.unique(labels)
        if found.size < 2:
            raise ValueError(
                f"y holds only one class, {shorten(found)}: there is nothing to tell apart; add samples of another "
                "class, or list all classes with classes=[...]"
            )
        return found
    listed = read_listed(classes, least=least)
    reject_unknown(find_labels(listed, labels), listed, labels)
    return listed


def read_listed(classes: Any, word: str = "labels", least: int = 2) -> Array:
    """The parameter ``classes`` as an array: two or more different labels of one kind, or ``least=1``.

    >>> read_listed(["cat", "ant"])
    array(['cat', 'ant'], dtype='<U3')
    """
    items = [] if isinstance(classes, str | bytes) or not is_list(classes) else _plain(classes).tolist()
    kinds = {kind_of_label(item) for item in items} if isinstance(items, list) else {""}
    listed = plain_array(items, "classes") if len(kinds) == 1 and "" not in kinds else np.zeros(0)
    if listed.size < least or listed.dtype.kind not in "biufUS" or np.unique(listed).size != listed.size:
        count = "two" if least == 2 else "one"
        raise ValueError(f"classes must be {count} or more different {word}, got {shorten(classes)}")
    return listed


def check_listed(classes: Any, word: str = "labels", least: int = 2) -> None:
    """Refuse a parameter ``classes`` that is neither None nor a list of classes."""
    if classes is not None:
        read_listed(classes, word, least)


def find_labels(classes: Array, labels: Array) -> Array:
    """The position of every label among the classes, −1 where it is none of them.

    >>> find_labels(np.array(["b", "a"]), np.array(["a", "c", "b"]))
    array([ 1, -1,  0])
    """
    kinds = [kind if (kind := part.dtype.kind) in "US" else "number" for part in (classes, labels)]
    if kinds[0] != kinds[1] or not classes.size:
        return np.full(len(labels), -1)
    if all(part.dtype.kind in "iu" and np.can_cast(part.dtype, np.int64) for part in (classes, labels)):
        low, high = int(classes.min()), int(classes.max())
        if high - low < MAX_GAPS * classes.size:  # a table is several times faster than a search
            table = np.full(high - low + 1, -1)
            table[classes[::-1].astype(np.int64) - low] = np.arange(classes.size)[::-1]
            labels = labels.astype(np.int64, copy=False)
            inside = (labels >= low) & (labels <= high)
            if inside.all():
                return np.asarray(table[labels - low])
            return np.where(inside, table[np.where(inside, labels, low) - low], -1)
    order = np.argsort(classes, kind="stable")
    position = np.searchsorted(classes, labels, sorter=order)
    found = order[np.minimum(position, len(classes) - 1)]
    return np.where(classes[found] == labels, found, -1)


def reject_unknown(found: Array, classes: Array, labels: Array) -> None:
    """Raise an error that names the first label that is none of the classes."""
    unknown = np.flatnonzero(found < 0)
    if unknown.size:
        i = int(unknown[0])
        label = labels[i : i + 1].tolist()[0]
        raise ValueError(
            f"y[{i}] is {shorten(label)}, which is not one of the classes {shorten(classes.tolist())}; "
            "drop the sample or list the label in classes=[...]"
        )


def _of_one_kind(labels: Array) -> Array:
    """Labels that came as Python objects, as numbers or as strings."""
    missing = [i for i, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise ValueError(f"y[{missing[0]}] is missing; {UNLABELLED}")
    kinds = {kind_of_label(label): i for i, label in reversed(list(enumerate(labels)))}
    if "" in kinds:
        i = kinds[""]
        raise ValueError(f"y[{i}] is {shorten(labels[i])}; labels are numbers or strings, one per sample")
    if len(kinds) > 1:
        i, j = sorted(kinds.values())[:2]
        raise ValueError(
            f"y mixes kinds: y[{i}] is {shorten(labels[i])}, y[{j}] is {shorten(labels[j])}; use one kind of label"
        )
    return plain_array(labels.tolist(), "y")


def _plain(values: Any) -> Array:
    """An array of labels: of numbers or strings where all are alike, else of objects."""
    if type(values).__module__.split(".")[0] == "pyarrow":
        values = values.to_pylist()
    if hasattr(values, "to_numpy"):
        return plain_array(values.to_numpy(), "y")
    if isinstance(values, list | tuple) and len({isinstance(v, str) for v in values}) > 1:
        return _column(values)
    try:
        return plain_array(values, "y")
    except ArrayError:
        raise
    except OverflowError:  # numbers beyond any type
        return _column(list(values))
    except ValueError as error:
        why = find_uneven(values, "entry") or reason(error)
        raise ValueError(f"y does not hold one label per sample: {why}") from error


def _column(values: Any) -> Array:
    column = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # one by one: NumPy would stack entries of equal length
        column[i] = value
    return column


def find_missing(y: Any, takes_sequences: bool = False) -> Array:
    """Which labels are None, where the others are single numbers or strings, or sequences where those are taken.

    >>> find_missing(["a", None, "b"]), find_missing([["a", "b"], None])
    (array([False,  True, False]), array([False, False]))
    >>> find_missing([["a", "b"], None], takes_sequences=True)
    array([False,  True])
    """
    is_typed = getattr(y, "dtype", None) is not None and y.dtype != np.dtype(object)
    if isinstance(y, str | bytes) or hasattr(y, "offsets") or not has_length(y) or is_typed:
        return np.zeros(0, dtype=bool)
    is_missing = np.array([label is None for label in y], dtype=bool)
    is_known = takes_sequences or all(label is None or kind_of_label(label) for label in y)
    return is_missing if is_known and not is_missing.all() else np.zeros_like(is_missing)

"""Folds of samples, for learners that choose a parameter by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from tacit.data.arrays import Array
from tacit.data.labels import kind_of_label
from tacit.data.parameters import has_length, is_list, shorten
from tacit.data.ragged import Ragged


def splits(cv: Any, labels: Array | None, n: int) -> list[tuple[Array, Array]]:
    """Which samples train and which test, fold by fold."""
    told = f"cv must be a number of folds, a splitter of scikit-learn, or pairs of indices, got {shorten(cv)}"
    if isinstance(cv, str | bytes):  # which have a method split
        raise ValueError(told)
    if isinstance(cv, Iterable) and not hasattr(cv, "split"):
        cv = list(cv) if is_list(cv) else [cv]
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in cv):
            raise ValueError(told)
    try:
        folds = check_cv(cv, labels, classifier=labels is not None).split(np.zeros(n), labels)
        return [(np.arange(n)[train], np.arange(n)[test]) for train, test in folds]
    except (TypeError, IndexError) as error:
        raise ValueError(told) from error


def count_labels(y: Any) -> int:
    """How many samples are to be dealt into folds."""
    if not has_length(y):
        raise ValueError(f"y must hold one label per sample, got {shorten(y)}")
    return len(y)


def check_size(X: Any, n: int) -> None:
    """Refuse samples that folds of n cannot be cut from."""
    is_listed = has_length(X) and not isinstance(X, str | bytes | dict | set)
    size = X.shape[0] if getattr(X, "shape", ()) else len(X) if is_listed else -1
    if size != n:
        raise ValueError(f"X must hold one entry for each of the {n} labels, got {shorten(X)}")


def one_each(name: str, values: Any, n: int) -> Any:
    """The values, if there is one for each of n samples."""
    if not has_length(values) or isinstance(values, Set | dict) or len(values) != n:  # a set has no order
        raise ValueError(f"{name} must have one entry for each of the {n} samples, got {shorten(values)}")
    return values


def plain_labels(y: Any) -> Array | None:
    """The labels if each is a single number or string, so that folds can be stratified; else None."""
    if isinstance(y, Ragged):
        return None
    values = list(y)
    return np.array(values) if all(kind_of_label(value) for value in values) else None

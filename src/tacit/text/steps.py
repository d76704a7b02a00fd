"""Sequences of numbers, such as gestures and sensors: a CSV file with one row per time step, and features of steps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.data.parameters import is_list, shorten
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.reading import MAX_BYTES, find_file, quote
from tacit.data.specs import check_parameters, estimator, parameter, whole
from tacit.data.text_files import read_csv
from tacit.runtime.archive import storable
from tacit.text.tagged_words import TaggedWords
from tacit.text.words import Vocabulary

SEQUENCE = "sequence"
"""The column that says which sequence a row belongs to, if no other is named."""


@storable
@estimator
class StepFeatures(TransformerMixin, Vocabulary):  # type: ignore[misc]
    """Standardised numbers of a time step and of the steps around it, and a constant, for `tacit.problems.Chain`.

    Before the first step and after the last one, the numbers of that step are repeated.

    Parameters
    ----------
    window : how many steps on each side have features

    Attributes
    ----------
    mean_, scale_ : mean and standard deviation of every number in training
    n_columns_ : columns of the table

    >>> StepFeatures(window=1).fit_transform([[[0.0], [2.0]]])[0].tolist()
    [[-1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, 1.0, 1.0]]
    """

    window: int = parameter(whole(0, 20), default=2)

    def fit(self, X: Any, y: Any = None) -> StepFeatures:
        """Learn the mean and the scale of every number from sequences of steps."""
        check_parameters(self)
        values = _read(X).values
        self.mean_ = values.mean(axis=0)
        scale = values.std(axis=0)
        self.scale_ = np.where(scale > 0, scale, 1.0)
        self.n_columns_ = (2 * int(self.window) + 1) * values.shape[1] + 1
        return self

    def transform(self, X: Any) -> Ragged:
        """Make one table of features per sequence."""
        check_is_fitted(self, "n_columns_")
        steps = _read(X)
        if steps.values.shape[1] != self.mean_.size:
            raise ValueError(
                f"X must have {self.mean_.size} numbers per step as in training, got {steps.values.shape[1]}"
            )
        values = (steps.values - self.mean_) / self.scale_
        own = np.arange(len(values))
        first, last = (np.repeat(edge, steps.lengths) for edge in (steps.offsets[:-1], steps.offsets[1:] - 1))
        parts = [values[np.clip(own + by, first, last)] for by in range(-int(self.window), int(self.window) + 1)]
        return steps.with_values(np.hstack([*parts, np.ones((len(values), 1))]))

    def check(self) -> None:
        super().check()
        if hasattr(self, "n_columns_"):
            mean, scale = (np.asarray(own) for own in (self.mean_, self.scale_))
            is_right = mean.ndim == 1 and mean.dtype.kind == scale.dtype.kind == "f" and mean.shape == scale.shape
            if not is_right or not np.isfinite(mean).all() or not (np.isfinite(scale) & (scale > 0)).all():
                raise ValueError(f"mean_ and scale_ must be numbers, one per column, got {shorten(self.mean_)}")
            if self.n_columns_ != (2 * int(self.window) + 1) * mean.size + 1:
                raise ValueError(f"n_columns_ must fit to mean_ and window, got {shorten(self.n_columns_)}")


def is_numeric(X: Any) -> bool:
    """Whether sequences are of steps with numbers: arrays, or lists of lists of numbers.

    >>> is_numeric([[[0.5, 1.0]]]), is_numeric([["a", "b"]])
    (True, False)
    """
    if isinstance(X, Ragged):
        return X.values.dtype.kind in "fiu"
    first = next(iter(X), None) if is_list(X) else None
    if isinstance(first, np.ndarray):
        return first.dtype.kind in "fiu"
    step = next(iter(first), None) if isinstance(first, list | tuple) else None
    return isinstance(step, np.ndarray | list | tuple) and any(isinstance(value, int | float) for value in step)


def _read(X: Any) -> Ragged:
    steps = read_ragged(X, "sequence", "step")
    if not isinstance(steps.values, np.ndarray) or steps.values.ndim != 2:
        raise ValueError("X must have the same numbers for every step: arrays (steps, numbers)")
    return steps.with_values(np.asarray(steps.values, dtype=np.float64))


def read_steps(
    path: Any,
    *,
    tag: str | None = None,
    features: list[str] | None = None,
    sequence: str | None = None,
    is_tagged: bool = True,
    max_bytes: Any = MAX_BYTES,
) -> tuple[TaggedWords, list[str]]:
    """Read sequences of numbers and their tags from a CSV file with a header and one row per time step.

    Parameters
    ----------
    path : the file, perhaps packed (.csv.gz)
    tag : column of the tags; None takes "tag" or "label", if there is one. An empty tag is missing
    features : columns of numbers; None takes all others
    sequence : column with the name of the sequence; None takes "sequence", if there is one. A new name begins a new
        sequence
    is_tagged : whether the column of tags must be there
    max_bytes : bytes that are read at the most

    Returns arrays (steps, numbers) with their tags, and the names of the sequences.
    """
    file = find_file(path, "a CSV file of time steps")
    given = [name for name in (tag if is_tagged else None, sequence, *(features or ())) if name is not None]
    columns, rows = read_csv(file, tuple(given), max_bytes=max_bytes, delimiters=",;\t")
    tag = next((name for name in ([tag] if tag else ["tag", "label"]) if name in columns), None)
    if tag is None and is_tagged:
        raise ValueError(f"{quote(file)} is without a column 'tag' or 'label'; name the column of tags with --tag")
    sequence = sequence or (SEQUENCE if SEQUENCE in columns else None)
    chosen = features or [name for name in columns if name not in (tag, sequence)]
    if not chosen:
        raise ValueError(f"{quote(file)} is without columns of numbers; its columns are {shorten(columns)}")
    numbers = [columns.index(name) for name in chosen]
    steps: list[list[list[float]]] = []
    tags: list[list[str | None]] = []
    names: list[str] = []
    for line, row in rows:
        name = "1" if sequence is None else (row[columns.index(sequence)] or "")
        if not names or name != names[-1]:
            names.append(name)
            steps.append([])
            tags.append([])
        steps[-1].append([_number(row[k], file, line, columns[k]) for k in numbers])
        tags[-1].append(None if tag is None else (row[columns.index(tag)] or "").strip() or None)
    if not steps:
        raise ValueError(f"{quote(file)} is without rows; give one per time step")
    return TaggedWords([np.array(own) for own in steps], tags), names  # type: ignore[misc]


def _number(cell: str | None, file: Path, line: int, column: str) -> float:
    try:
        value = float(cell or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"{quote(file)}, line {line} has {shorten(cell)} in the column {column!r}, which is not a number; choose "
            "other columns with --features, or fill it in"
        )
    return value


def step_lines(names: list[str], tags: Any) -> str:
    """Predicted tags as a table: sequence, step (from 1) and tag."""
    lines = ["sequence\tstep\ttag\n"]
    for name, own in zip(names, tags, strict=True):
        lines += [f"{name}\t{step}\t{tag}\n" for step, tag in enumerate(own, 1)]
    return "".join(lines)

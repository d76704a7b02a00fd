"""Bags as users have them: lists, `Ragged`, columns of lists, and tables with a row per instance, frames or files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import is_missing
from tacit.data.parameters import entries, has_length, is_whole, shape_of, shorten
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.reading import MAX_BYTES, quote
from tacit.data.text_files import read_csv


class BagTable(NamedTuple):
    """Bags, and what a long table says about them.

    Parameters
    ----------
    bags : the instances
    labels : of the bags, if the table has a column of labels
    columns : the names of the features; None for lists
    bag_of_row : the bag of every row of the table; None for lists
    """

    bags: Ragged
    labels: list[Any] | None = None
    columns: list[str] | None = None
    bag_of_row: Array | None = None


def read_bags(X: Any, bag: Any = None, label: Any = None, columns: list[str] | None = None) -> BagTable:
    """Read bags in any form.

    Parameters
    ----------
    X : a list of tables, a `Ragged`, a column of lists, or a data frame of pandas, polars or pyarrow with a row per
        instance
    bag, label : of a data frame: the columns that tell bags apart, and that hold the label of the bag
    columns : of a data frame: the features; None for all other columns

    >>> import pandas as pd
    >>> table = pd.DataFrame({"id": ["b", "a", "b"], "x": [1.0, 2.0, 3.0], "y": [1, 0, 1]})
    >>> read_bags(table, "id", "y").labels
    [1, 0]
    """
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        if not isinstance(X, np.ndarray) and hasattr(X, "to_arrow"):  # a polars column of lists
            X = X.to_arrow()
        return BagTable(read_ragged(X, "bag", "instance"))
    frame = X if hasattr(X, "groupby") and hasattr(X, "iloc") else X.to_pandas()
    if bag is None:
        raise ValueError(
            f"X is a table with the columns {shorten(list(frame.columns))}: say which of them tells bags apart, "
            "BagClassifier(bag='id')"
        )
    for name in (bag, label, *(columns or [])):
        if not _is_hashable(name) or isinstance(name, np.ndarray):  # a masked entry is one
            raise TypeError(f"a column must be given by its name, got {shorten(name)}")
    for name in (bag, *(columns or [])):
        if name not in frame.columns:
            raise ValueError(f"the table has no column {shorten(name)}; it has {shorten(list(frame.columns))}")
    features = [name for name in frame.columns if name not in (bag, label)] if columns is None else columns
    bags = read_ragged(Ragged.from_frame(frame[[bag, *features]], bag), "bag", "instance")
    labels = None if label is None or label not in frame.columns else _labels_of_bags(frame, bag, label)
    code = frame.groupby(bag, sort=False, observed=True).ngroup().to_numpy()
    return BagTable(bags, labels, [str(name) for name in features], code)


def _is_hashable(value: Any) -> bool:
    """Whether a value has a hash: some say so, and raise."""
    try:
        hash(value)
    except Exception:
        return False
    return True


def labels_of_rows(y: Any, table: BagTable) -> Any:
    """One label per bag, where a long table came with one per row."""
    rows = table.bag_of_row
    n = len(table.bags)
    if rows is None or not has_length(y) or len(y) != rows.size or rows.size == n:
        return y
    values = list(y)
    firsts = np.unique(rows, return_index=True)[1]
    for row, own in enumerate(rows.tolist()):
        if values[row] != values[firsts[own]]:
            raise ValueError(
                f"y has {shorten(values[firsts[own]])} and {shorten(values[row])} for rows of bag {own}; give one "
                "label per bag"
            )
    return [values[first] for first in firsts]


def read_several(y: Any, n: int) -> Array | None:
    """A table of zeros and ones for several labels per bag; None for one label per bag."""
    shape: tuple[int, ...] = np.shape(y) if hasattr(y, "shape") else ()
    if not shape and isinstance(y, list) and y and all(isinstance(row, list | tuple | np.ndarray) for row in y):
        y = np.array(y) if len({len(row) for row in y}) == 1 else y
        shape = np.shape(y) if hasattr(y, "shape") else ()
    if len(shape) != 2 or shape[1] < 2:
        return None
    table = np.asarray(y)
    if shape[0] != n:
        raise ValueError(f"X has {n} bags, y has {shape[0]} rows; give one row per bag")
    if table.dtype.kind not in "biuf" or not np.isin(table, (0, 1)).all():
        raise ValueError("y must hold zeros and ones, a column per label, for several labels per bag")
    return table.astype(np.int64)


def read_hidden(hidden: Any, n: int, columns: int = 1) -> Array:
    """Known witnesses as an array that can be indexed: of whole numbers, or of objects."""
    if columns > 1 and shape_of(hidden) == (n, columns):
        return np.asarray(hidden)
    values = entries("hidden", hidden, "one entry per bag", n)
    if all(is_whole(value) for value in values):
        return np.array([int(value) for value in values])
    known = np.empty(n, dtype=object)
    for i, value in enumerate(values):
        known[i] = value
    return known


def _labels_of_bags(frame: Any, bag: Any, label: Any) -> list[Any]:
    """The label of every bag, in the order in which bags first appear; two labels within a bag are an error."""
    found = frame[label].groupby(frame[bag], sort=False, observed=True)
    uneven = found.nunique(dropna=False)
    if (uneven > 1).any():
        name = uneven.index[int(np.argmax(uneven.to_numpy() > 1))]
        own = frame[label][frame[bag] == name].unique().tolist()
        raise ValueError(f"bag {shorten(name)} has several labels, {shorten(own)}; give all of its rows the same")
    return [None if is_missing(one) else one.item() if hasattr(one, "item") else one for one in found.first()]


class BagFile(NamedTuple):
    """Bags of a file.

    Parameters
    ----------
    bags : the instances, in the order of the file within a bag
    names : of the bags, in the order in which they first appear
    labels : of the bags; None where the cell is empty, or the file has no such column
    columns : the names of the features
    lines : the line of every instance
    """

    bags: Ragged
    names: list[str]
    labels: list[str | None]
    columns: list[str]
    lines: list[int]


def read_bag_file(
    path: Path,
    bag: str,
    label: str | None = None,
    *,
    columns: list[str] | None = None,
    ignored: tuple[str, ...] = (),
    max_bytes: Any = MAX_BYTES,
) -> BagFile:
    """Read a CSV table with a header, perhaps gzipped; commas, semicolons or tabs separate its columns.

    Parameters
    ----------
    path : the file
    bag, label : the columns that tell bags apart, and that hold their labels; a missing column of labels is none known
    columns : the features; None for all other columns but those ``ignored``

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text("id,y,u\\nb,1,0.5\\na,0,1\\nb,1,2\\n")
    ...     found = read_bag_file(Path(folder) / "a.csv", "id", "y")
    >>> found.names, found.labels, found.bags[0].ravel().tolist()
    (['b', 'a'], ['1', '0'], [0.5, 2.0])
    """
    table = read_csv(path, (bag, *(columns or ())), max_bytes=max_bytes, delimiters=",;\t")
    other = {bag, label, *ignored}
    features = [name for name in table.columns if name not in other] if columns is None else columns
    twice = next((name for name in features if table.columns.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{quote(path)} has two columns {shorten(twice)}; rename one")
    if not features:
        raise ValueError(f"{quote(path)} has no column of features beside {shorten(sorted(filter(None, other)))}")
    at_bag = table.columns.index(bag)
    at_label = table.columns.index(label) if label in table.columns else None
    places = [table.columns.index(name) for name in features]
    positions: dict[str, int] = {}
    labels: list[str | None] = []
    rows, codes, lines = [], [], []
    for number, cells in table.rows:
        name = (cells[at_bag] or "").strip()
        if not name:
            raise ValueError(f"{quote(path)}, line {number}: the column {shorten(bag)} is empty; name the bag")
        own = (cells[at_label] or "").strip() or None if at_label is not None else None
        code = positions.setdefault(name, len(positions))
        if code == len(labels):
            labels.append(own)
        elif labels[code] != own:
            raise ValueError(
                f"{quote(path)}, line {number}: bag {shorten(name)} has the labels {shorten(labels[code])} and "
                f"{shorten(own)}; give all of its rows the same"
            )
        rows.append([_number(cells[place], features[k], path, number) for k, place in enumerate(places)])
        codes.append(code)
        lines.append(number)
    if not rows:
        raise ValueError(f"{quote(path)} has no rows under its header")
    order = np.argsort(codes, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    bags = Ragged(np.array(rows, dtype=np.float64)[order], offsets)
    return BagFile(bags, list(positions), labels, features, [lines[i] for i in order])


def _number(cell: str | None, column: str, path: Path, line: int) -> float:
    try:
        value = float(cell or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"{quote(path)}, line {line}: column {shorten(column)} must hold finite numbers, got {shorten(cell)}; "
            "encode it, or leave it out with --ignore"
        )
    return value

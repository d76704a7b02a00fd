"""Long tables in CSV files: a row per instance, a column that tells bags apart, a column of labels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.data.reading import MAX_BYTES, quote
from tacit.data.text_files import read_csv


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
    """Read a CSV table with a header, perhaps gzipped.

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
    table = read_csv(path, (bag, *(columns or ())), max_bytes=max_bytes)
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

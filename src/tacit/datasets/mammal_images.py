"""Six mammals with the HOG features of every window: the object detection data of Kumar, Packer & Koller 2010."""

from __future__ import annotations

import os
import zipfile
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import reason, shorten
from tacit.data.ragged import Ragged
from tacit.data.reading import MAX_BYTES, check_promise, find_file, find_folder, quote, unreadable
from tacit.data.text_files import read_csv
from tacit.runtime.archive import StorageError, read_array

_ARRAYS = {"hog": 2, "position": 2, "offsets": 1}
_COLUMNS = ("image", "class", "columns", "rows", "test_folds")


class Mammals(NamedTuple):
    """Bags of windows, classes, column and row of each window, and (n, 5) whether an image is in test folds 1 to 5."""

    X: Ragged
    y: Array
    position: Array
    is_test: Array


def mammals(folder: str | os.PathLike[str] | None = None, *, max_bytes: int = MAX_BYTES) -> Mammals:
    """271 images of six mammals; a window has the HOG features (Felzenszwalb et al. 2010) of a position, 1488 numbers.

    Parameters
    ----------
    folder : with ``hog.npz`` (hog, position, offsets) and ``images.csv`` (class, columns, rows, test_folds); None for
        ``mammals`` below the folder that the environment variable TACIT_DATA names
    max_bytes : larger files are refused before they are unpacked

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     position = np.array([[0, 0], [0, 1], [0, 0]])
    ...     np.savez(f"{folder}/hog.npz", hog=np.ones((3, 4), np.float16), position=position, offsets=[0, 2, 3])
    ...     with open(f"{folder}/images.csv", "w") as table:
    ...         _ = table.write("image,class,columns,rows,test_folds\\na,bison,1,2,\\nb,deer,1,1,15\\n")
    ...     data = mammals(folder)
    >>> data.X, data.is_test[1]
    (Ragged(2 samples, 1–2 rows each; 3 × 4 float32), array([ True, False, False, False,  True]))
    """
    home = find_folder(folder, "mammals")
    hog, position, offsets = _read_arrays(home / "hog.npz", max_bytes)
    rows = _read_rows(home / "images.csv", max_bytes)
    if len(rows) != offsets.size - 1 or len(position) != len(hog):
        raise ValueError(
            f"{quote(home)}: images.csv has {len(rows)} images, but hog.npz has {offsets.size - 1} bags, {len(hog)} "
            f"windows and {len(position)} positions; fetch both files again"
        )
    try:
        X = Ragged(hog.astype(np.float32), offsets)
    except ValueError as error:
        raise ValueError(f"{quote(home / 'hog.npz')} must hold bags of windows: {reason(error)}") from error
    for n_windows, row in zip(X.lengths.tolist(), rows, strict=True):
        if n_windows != int(row["columns"]) * int(row["rows"]):
            raise ValueError(
                f"{quote(home)}: image {shorten(row['image'])} has {n_windows} windows, but "
                f"{shorten(row['columns'])} columns × {shorten(row['rows'])} rows"
            )
    is_test = np.array([[str(fold) in row["test_folds"] for fold in range(1, 6)] for row in rows])
    return Mammals(X, np.array([row["class"] for row in rows]), position.astype(np.int64), is_test)


def _read_arrays(path: os.PathLike[str], max_bytes: int) -> tuple[Array, ...]:
    path = find_file(path, "the archive of windows")
    try:
        with zipfile.ZipFile(path) as packed:
            names = {f"{name}.npy" for name in _ARRAYS} & set(packed.namelist())
            missing = [name for name in _ARRAYS if f"{name}.npy" not in names]
            if missing:
                raise ValueError(f"array {missing[0]!r} is missing; it has {shorten(packed.namelist())}")
            check_promise(path, sum(entry.file_size for entry in packed.infolist()), max_bytes)
            found = tuple(read_array(packed.read(f"{name}.npy"), name, str(path)) for name in _ARRAYS)
    except StorageError:
        raise
    except PermissionError as error:
        raise unreadable(path, error) from error
    except Exception as error:  # a malformed zip file can raise anything
        raise ValueError(f"{quote(path)} is truncated or not the archive of windows: {reason(error)}") from error
    for (name, ndim), array in zip(_ARRAYS.items(), found, strict=True):
        if array.ndim != ndim or array.dtype.kind not in "iuf":
            raise ValueError(f"{quote(path)}: {name} needs {ndim} dimensions, got shape {array.shape}, {array.dtype}")
    return found


def _read_rows(path: os.PathLike[str], max_bytes: int) -> list[dict[str, str]]:
    path = find_file(path, "the table of images")
    table = read_csv(path, tuple(_COLUMNS), max_bytes=max_bytes)
    rows = []
    for number, cells in table.rows:
        row = {name: cell for name, cell in zip(table.columns, cells, strict=True) if cell is not None}
        is_whole = all(row.get(name, "").isdecimal() and len(row[name]) < 10 for name in ("columns", "rows"))
        if not is_whole or not set(_COLUMNS) <= set(row):
            raise ValueError(f"{quote(path)}, line {number} is {shorten(cells)}: truncated or changed")
        rows.append(row)
    return rows

"""Where the rows of a shard come from: files that every worker sees, or functions and graphs that make them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, check_offsets, combine_crc32, first_non_finite
from tacit.data.parameters import shorten
from tacit.data.shard_folder import Piece, as_rows, kind_of, open_part, read_manifest
from tacit.data.shards import Shards
from tacit.data.table import MappedArray, Table


@dataclass(frozen=True)
class FolderSource:
    """A shard of a folder. Only its path travels."""

    folder: Path
    number: int
    name: str

    def open(self) -> Piece:
        manifest = read_manifest(self.folder)
        shard = manifest.shards[self.number]
        files = {part: open_part(self.folder, shard, part) for part in shard.digests}
        offsets, boxes = (files[part].rows if part in files else None for part in ("offsets", "boxes"))
        if offsets is not None:
            offsets = check_offsets(offsets, len(files["values"].rows))
        return Piece(files["values"], offsets, boxes)

    def stamp(self) -> tuple[int, int] | None:
        """Size and time of the file of rows: while they stay, so do the rows."""
        shard = read_manifest(self.folder).shards[self.number]
        found = shard.path(self.folder, "values").stat()
        return found.st_size, found.st_mtime_ns


@dataclass(frozen=True)
class LoadedSource:
    """A shard that a function, or a Dask graph, makes; it is made again when its worker is lost."""

    load: Any
    name: str

    def open(self) -> Piece:
        is_graph = hasattr(self.load, "__dask_graph__")
        made = self.load.compute(scheduler="synchronous") if is_graph else self.load()
        if hasattr(made, "to_numpy") and hasattr(made, "columns"):
            made = made.to_numpy()
        if not isinstance(made, np.ndarray) and hasattr(made, "__iter__") and not hasattr(made, "offsets"):
            made = list(made)
        if type(made).__name__ == "Future":
            raise TypeError(
                "it is kept as a future on a worker, and could not be made again; give the collection before persist()"
            )
        return Piece(*as_rows(made, self.name))

    def stamp(self) -> tuple[int, int] | None:
        """None: only its rows tell whether they are the same."""
        return None


Source = FolderSource | LoadedSource


class Description(NamedTuple):
    """What this process has to know of a shard: all but its features.

    ``facts`` is what the problem says of its samples (`tacit.oracle.Problem.describe_rows`); ``first_row`` is
    (1, width), or (0, width) of an empty shard.
    """

    kind: str
    dtype: str
    width: int
    rows: int
    lengths: Array | None
    boxes: Array | None
    crc: int
    facts: Array | None
    stamp: tuple[int, int] | None
    first_row: Array


def describe(source: Source, look: Callable[[Table, Array], Array | None] | None = None) -> Description | str:
    """Read a shard once, where it is; a sentence where that fails, because errors of workers lose their words.

    ``look`` is `tacit.oracle.Problem.describe_rows`.
    """
    try:
        stamp = source.stamp()  # before the rows: a file that is changed while it is read has another one afterwards
        values, offsets, boxes = source.open()
    except Exception as error:
        if isinstance(source, FolderSource) and not os.path.isdir(source.folder):
            return (
                f"{source.name} cannot be read by a worker: it sees no folder {source.folder}; put the shards where "
                "all workers find them under the same path, or give loaders"
            )
        return f"{source.name} cannot be read by a worker: {type(error).__name__}: {error}"
    rows = values if isinstance(values, np.ndarray) else values.rows
    try:
        crc = walk(values, refuse_non_finite)
    except ValueError as error:
        return f"X contains NaN or infinity in {source.name}: {error}; drop the row or fill the gap"
    if isinstance(source, FolderSource):
        header = zlib.crc32(f"{rows.dtype.str}{rows.shape}".encode())
        if (
            f"{combine_crc32(header, crc, rows.nbytes):08x}"
            != read_manifest(source.folder).shards[source.number].digests["values"]
        ):
            return f"{source.name} has changed since it was written: its checksum is another; write the shards again"
    facts = None
    if look is not None and offsets is not None:
        try:
            facts = look(Table([values], max_resident=0), offsets)
        except ValueError as error:
            return f"{source.name} {error}"
    kind, lengths = kind_of(rows, offsets), None if offsets is None else np.diff(offsets)
    first_row = np.array(rows[:1])
    return Description(
        kind, rows.dtype.str, int(rows.shape[1]), len(rows), lengths, boxes, crc, facts, stamp, first_row
    )


def walk(values: Array | MappedArray, look: Callable[[int, Array], None] = lambda first, rows: None) -> int:
    """The checksum of the rows of a shard, read a few at a time, whose pages are given back; ``look`` sees them."""
    rows = values if isinstance(values, np.ndarray) else values.rows
    crc = 0
    step = max(1, (1 << 24) // max(1, rows.shape[1] * rows.itemsize))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        look(start, part)
        crc = zlib.crc32(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data, crc)
        if not isinstance(values, np.ndarray):
            values.release(start, start + len(part))
    return crc


def refuse_non_finite(first: int, rows: Array) -> None:
    """Name the row of the first NaN or infinity."""
    position = first_non_finite(rows)
    if position:
        raise ValueError(f"{rows[position]} in row {first + position[0]}, feature {position[1]}")


def read_sources(X: Any) -> list[Source]:
    """The shards of whatever a user has: see `tacit.dask.fit`."""
    if isinstance(X, Shards):
        X = X.folder
    if isinstance(X, str | os.PathLike):
        folder = Path(X).absolute()
        shards = read_manifest(folder).shards
        return [FolderSource(folder, k, f"shard {shard.name}") for k, shard in enumerate(shards)]
    parts: Sequence[Any]
    if hasattr(X, "to_delayed"):
        if getattr(X, "ndim", 1) == 2 and hasattr(X, "rechunk"):
            X = X.rechunk({1: -1})
        parts = np.ravel(np.asarray(X.to_delayed(), dtype=object)).tolist()
    elif isinstance(X, list | tuple):
        parts = X
    else:
        raise TypeError(
            f"X must be a dask.array, dask.dataframe or dask.bag, a list of delayed parts or of functions, or a folder "
            f"of shards; got {shorten(X)}"
        )
    for k, part in enumerate(parts):
        if not (callable(part) or hasattr(part, "__dask_graph__")):
            raise TypeError(f"part {k} of X is {shorten(part)}; give delayed parts or functions that return samples")
    if not parts:
        raise ValueError("no shards: X is an empty list")
    return [LoadedSource(part, f"part {k} of X") for k, part in enumerate(parts)]

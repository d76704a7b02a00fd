"""`Shards`: samples that stay on disk, or that loaders fetch."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Array, check_offsets
from tacit.data.parameters import file_path, is_list, plain_array, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.shard_folder import (
    Manifest,
    Shard,
    digest_array,
    new_folder,
    open_part,
    read_manifest,
    refuse_other_letters,
    samples_of,
    write_shards,
)
from tacit.data.table import MappedArray, Table


class Shards:
    """Samples in a folder of shards, mapped: a learner takes them as ``X``, with the same result as from memory.

    ``learner.fit(shards, y)`` reads them block by block and gives the pages back, so memory does not grow with the
    features; labels, hidden values and one number per sample stay in memory. Make them with `Ragged.to_shards`,
    `Shards.write` or `Shards.open`.

    Parameters
    ----------
    folder : where `Shards.write` put them

    >>> import tempfile
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> folder = tempfile.TemporaryDirectory()
    >>> Shards.write(folder.name, bags, shards=2)
    Shards(3 bags in 2 shards; 5 × 2 float64)
    >>> from tacit import LatentSVM
    >>> from tacit.problems import Candidates
    >>> model = LatentSVM(Candidates(), C=10).fit(Shards.open(folder.name), ["x", "y", "x"])
    >>> model.hidden_
    array([1, 0, 0])
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = file_path("folder", folder)
        self.manifest: Manifest = read_manifest(self.folder)
        self._checked: dict[Path, tuple[int, int]] = {}  # size and time of files whose contents were compared
        self._open()

    @staticmethod
    def open(source: Any, spool: Any = None) -> Shards:
        """Shards from a folder of them, from parquet files, or from loaders.

        Parameters
        ----------
        source : a folder of shards; parquet files, one or a list, with a single column of bags (lists of rows) or of
            rows; or loaders, a list of functions without arguments. A loader returns the samples of one shard: bags as
            `Ragged.of` takes them, or a table
        spool : a new folder for what parquet files and loaders hold. It is decoded once, because every pass of a fit
            reads it again. None for a temporary one, which goes with the shards
        """
        if isinstance(source, Shards):
            return source
        if isinstance(source, str | os.PathLike) and Path(source).suffix != ".parquet":
            return Shards(source)
        if not is_list(source) and not isinstance(source, str | os.PathLike) and not callable(source):
            raise TypeError(f"source must be a folder, parquet files or loaders, got {shorten(source)}")
        parts: Sequence[Any] = [source] if isinstance(source, str | os.PathLike) or callable(source) else list(source)
        if not parts:
            raise ValueError("no shards: the list is empty; give parquet files or loaders")
        loaders = [_loader(part, k) for k, part in enumerate(parts)]
        names = [str(part) if isinstance(part, str | os.PathLike) else f"loader {k}" for k, part in enumerate(parts)]
        folder = new_folder(tempfile.mkdtemp(prefix="tacit-shards-") if spool is None else spool)
        try:
            write_shards(folder, _load_each(loaders, names), names)
            shards = Shards(folder)
        except BaseException:
            if spool is None:
                shutil.rmtree(folder)
            raise
        if spool is None:
            weakref.finalize(shards, shutil.rmtree, folder, ignore_errors=True)
        return shards

    @staticmethod
    def write(folder: Any, X: Any, shards: int = 4) -> Shards:
        """Write samples to a new folder, in so many shards of about as many rows each, and open it.

        ``X`` are bags, as `Ragged.of` takes them, a table of numbers of which each row is a sample, or sequences of DNA
        as strings. Of these the case is not kept, and U is stored as T; other text is refused. The result of a fit does
        not depend on the number of shards.
        """
        is_table = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object
        samples: Any = plain_array(X, "X") if is_table else samples_of(X)
        if not is_table:
            refuse_other_letters(samples, X)  # here too, before there is a folder: the error counts sequences of X
        n = whole_number("shards", shards, 1, max(len(samples), 1), remedy="a shard has at least one sample")
        starts = np.arange(len(samples) + 1) if is_table else samples.offsets
        cuts = np.searchsorted(starts, np.linspace(0, starts[-1], n + 1))
        cuts = np.maximum.accumulate(np.clip(cuts, np.arange(n + 1), len(samples) - n + np.arange(n + 1)))
        cuts[-1] = len(samples)
        path = new_folder(folder)
        write_shards(path, (samples[cuts[k] : cuts[k + 1]] for k in range(n)))
        return Shards(path)

    def _open(self) -> None:
        """Map all files, and read how rows are cut into samples."""
        files = [open_part(self.folder, shard, "values") for shard in self.manifest.shards]
        for shard, file in zip(self.manifest.shards, files, strict=True):
            expected = (shard.rows, self.manifest.width)
            if file.rows.shape != expected or file.rows.dtype.str != self.manifest.dtype:
                raise ValueError(
                    f"shard {shard.name} has shape {file.rows.shape} of {file.rows.dtype}, its manifest says "
                    f"{expected} of {np.dtype(self.manifest.dtype)}; write the shards again"
                )
        self.values = Table(files)
        lengths = [np.ones(len(self.values), np.int64)]
        if not self.is_table:
            lengths = [self._lengths(shard) for shard in self.manifest.shards]
        self.offsets: Array = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)

    def _lengths(self, shard: Shard) -> Array:
        """Rows of each sample of a shard of bags."""
        offsets = open_part(self.folder, shard, "offsets").rows
        try:
            check_offsets(offsets, shard.rows)
            is_whole = offsets.size == shard.samples + 1
        except ValueError:
            is_whole = False
        if not is_whole:
            raise ValueError(f"shard {shard.name} is damaged: its offsets do not cut {shard.rows} rows into samples")
        return np.diff(offsets)

    @property
    def is_table(self) -> bool:
        """Whether each row is a sample."""
        return self.manifest.kind == "table"

    @property
    def shape(self) -> tuple[int, ...]:
        n = self.offsets.size - 1
        return (n, self.manifest.width) if self.is_table else (n,)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def lengths(self) -> Array:
        """Rows of each sample."""
        return np.diff(self.offsets)

    @cached_property
    def boxes(self) -> Array | None:
        """The box of every row, where the bags had some: in memory, because losses compare them all."""
        if "boxes" not in self.manifest.shards[0].digests:
            return None
        return np.concatenate([open_part(self.folder, shard, "boxes").rows for shard in self.manifest.shards])

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, key: Any) -> Any:
        raise TypeError("shards cannot be indexed; load them: shards.in_memory()[...]")

    def __repr__(self) -> str:
        rows, width = self.values.shape
        what = {"table": "rows", "bags": "bags", "letters": "sequences"}[self.manifest.kind]
        return f"Shards({len(self)} {what} in {len(self.manifest.shards)} shards; {rows} × {width} {self.dtype})"

    def in_memory(self) -> Any:
        """All samples in memory: a Ragged, or an array for a table."""
        values = np.concatenate(list(self.values.chunks()))
        if self.manifest.kind == "letters":
            return Ragged(values.ravel(), self.offsets)
        return values if self.is_table else Ragged(values, self.offsets, self.boxes)

    is_here = True
    """Whether this process can read the rows."""

    def name_of(self, sample: int) -> str:
        """The shard of a sample."""
        last = np.cumsum([shard.samples for shard in self.manifest.shards])
        return f"shard {self.manifest.shards[int(np.searchsorted(last, sample, side='right'))].name}"

    def verify(self) -> None:
        """Compare every file with its checksum, and refuse NaN and infinity; the error names the shard.

        A file that was compared before and has kept its size and time is not read again.
        """
        for shard in self.manifest.shards:
            for part, digest in shard.digests.items():
                path = shard.path(self.folder, part)
                if not os.path.isfile(path):
                    raise FileNotFoundError(f"shard {shard.name} is missing: {path} does not exist")
                facts = path.stat().st_size, path.stat().st_mtime_ns
                if self._checked.get(path) == facts:
                    continue
                file = open_part(self.folder, shard, part)
                if digest_array(file.rows, partial(_look, file, shard, part)) != digest:
                    raise ValueError(
                        f"shard {shard.name} has changed since it was written: {path.name} has another checksum than "
                        "its manifest; write the shards again"
                    )
                self._checked[path] = facts


def read_shards(shards: Shards, sample: str, row: str) -> Shards:
    """Check shards of samples of several rows: files as they were written, finite numbers, no empty sample."""
    if shards.manifest.kind != "bags":
        held = "a table" if shards.is_table else "letters"
        raise ValueError(f"these shards hold {held}, and {sample}s are needed; write them with Ragged.to_shards")
    empty = np.flatnonzero(shards.lengths == 0)
    if empty.size:
        raise ValueError(f"{sample} {empty[0]} has 0 {row}s; drop it or give it one")
    return _check_rows(shards, row)


def read_table_shards(shards: Shards) -> Shards:
    """Check shards of a table: files as they were written, finite numbers."""
    if not shards.is_table:
        raise ValueError(
            f"these shards hold {shards.manifest.kind}, and one row per sample is needed; write them with Shards.write"
        )
    return _check_rows(shards, "row")


def _check_rows(shards: Shards, row: str) -> Shards:
    if shards.values.shape[1] == 0:
        raise ValueError(f"{row}s have 0 feature(s) while a minimum of 1 is required")
    shards.verify()
    return shards


def _look(file: MappedArray, shard: Shard, part: str, first: int, rows: Array) -> None:
    """Name the shard and the row of a NaN or infinity, and give the pages of these rows back."""
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = part != "values" or np.isfinite(rows.sum(dtype=np.float64)) or np.isfinite(rows).all()
    if not is_finite:
        row, column = np.argwhere(~np.isfinite(rows))[0].tolist()
        raise ValueError(
            f"X contains NaN or infinity: {rows[row, column]} in shard {shard.name}, row {first + row}, feature "
            f"{column}; drop the row or fill the gap, and write the shards again"
        )
    file.release(first, first + len(rows))


def _loader(part: Any, k: int) -> Callable[[], Any]:
    """A function that returns the samples of a shard."""
    if callable(part):
        loader: Callable[[], Any] = part
        return loader
    if isinstance(part, str | os.PathLike) and Path(part).suffix == ".parquet":
        return lambda: read_parquet(Path(part))
    raise TypeError(f"shard {k} is {shorten(part)}; give a folder, parquet files, or functions that return samples")


def _load_each(loaders: Sequence[Callable[[], Any]], names: Sequence[str]) -> Iterator[Any]:
    for load, name in zip(loaders, names, strict=True):
        try:
            yield load()
        except Exception as error:
            raise ValueError(f"{name} could not be loaded: {type(error).__name__}: {error}") from error


def read_parquet(path: Path) -> Any:
    """The samples of a parquet file with a single column of lists: bags, or a table where entries are rows."""
    from pyarrow import parquet, types

    if not os.path.isfile(path):
        raise FileNotFoundError(f"{shorten(os.fspath(path))} does not exist")
    table = parquet.read_table(path)
    if table.num_columns != 1:
        raise ValueError(f"{path} has columns {shorten(table.column_names)}; one column of lists is needed")
    column = table.column(0)
    inner = column.type.value_type if hasattr(column.type, "value_type") else None
    if inner is not None and (types.is_floating(inner) or types.is_integer(inner)):
        lists = Ragged.of(column)
        if np.unique(lists.lengths).size > 1:
            lengths = shorten(np.unique(lists.lengths))
            raise ValueError(f"{path}: rows of a table have equal length, these have {lengths}")
        return lists.values.reshape(len(lists), -1)
    return Ragged.of(column)

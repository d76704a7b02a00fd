"""A folder of shards: NumPy files, and a manifest that says what they must hold."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.lines import one_line
from tacit.data.parameters import file_path, reason, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.table import MappedArray

MANIFEST = "shards.json"
FORMAT = "tacit shards 1"
CHUNK_BYTES = 1 << 24
MAX_NAME = 200
"""Letters of the name of a shard: what most systems allow in that of a file, less what is added to it."""


class Shard(NamedTuple):
    """One line of a manifest.

    ``digests`` has the checksum of every file, by what it holds: "values", and for bags "offsets" and perhaps "boxes".
    """

    name: str
    samples: int
    rows: int
    digests: dict[str, str]

    def path(self, folder: Path, part: str) -> Path:
        return folder / f"{self.name}.{part}.npy"


class Manifest(NamedTuple):
    """What all shards of a folder have in common, and the shards.

    ``kind`` is "bags" for samples of several rows, "table" where each row is a sample, "letters" for sequences.
    """

    kind: str
    dtype: str
    width: int
    shards: tuple[Shard, ...]

    def write(self, folder: Path) -> None:
        """Write the manifest last and at once: a folder without one is not complete."""
        text = {"format": FORMAT, **self._asdict(), "shards": [shard._asdict() for shard in self.shards]}
        part = folder / (MANIFEST + ".part")
        part.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
        part.replace(folder / MANIFEST)


TEXT_KINDS = "tacit.text_kinds"
"""The group of entry points under which a package says what strings in shards stand for."""


class TextKind(Protocol):
    """What strings in shards stand for, one byte per letter. A domain offers one by the entry point of `TEXT_KINDS`."""

    def check(self, letters: Array, offsets: Array, X: Any) -> Any:
        """Refuse what is not a letter; ``X`` are the samples as they were given, for the error."""

    def plain(self, letters: Array) -> Array:
        """The bytes that are stored: letters as they are compared."""


def manifest_or_file(path: Path) -> Path:
    """The file that stands for a path: of a folder of shards their list, with the checksums of all."""
    if not os.path.isdir(path):
        return path
    read_manifest(path)  # says what is wrong with it
    return path / MANIFEST


def new_folder(folder: Any) -> Path:
    """An empty folder to write to; one that holds anything is refused."""
    path = file_path("folder", folder)
    try:
        if path.is_dir() and any(path.iterdir()):
            raise FileExistsError(f"{_one_line(path)} is not empty; shards are written to a new folder")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno is None:
            raise
        message = f"no shards can be written to {_one_line(path)}: {error.strerror}"
        raise OSError(error.errno, message) from error
    return path


def write_shards(folder: Path, parts: Iterable[Any], names: Iterable[str] | None = None) -> Manifest:
    """One shard per part: a Ragged, or a table of which each row is a sample, stored as floats; or sequences of DNA.

    Widths and types must be alike, and letters those of DNA; the error names the shard.
    """
    shards: list[Shard] = []
    first: tuple[str, str, int, bool] | None = None
    labels = iter(names) if names is not None else None
    for k, part in enumerate(parts):
        shard_name = f"shard-{k:05d}"
        label = next(labels) if labels is not None else shard_name
        values, offsets, boxes = as_rows(part, label)
        if kind_of(values, offsets) == "letters":
            try:
                refuse_other_letters(samples_of(part), part)
            except ValueError as error:
                raise ValueError(f"{label}: {error}") from error
        now = kind_of(values, offsets), values.dtype.str, int(values.shape[1]), boxes is not None
        first = first or now
        if now != first:
            raise ValueError(f"{label} holds {say_kind(now)}, the first shard {say_kind(first)}; make them alike")
        files = {"values": values, "offsets": offsets, "boxes": boxes}
        shard = Shard(shard_name, len(values) if offsets is None else offsets.size - 1, len(values), {})
        for name, array in files.items():
            if array is not None:
                np.save(shard.path(folder, name), array, allow_pickle=False)
                shard.digests[name] = digest_array(array)
        shards.append(shard)
    if first is None:
        raise ValueError("no shards: give at least one")
    manifest = Manifest(first[0], first[1], first[2], tuple(shards))
    manifest.write(folder)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, checked."""
    path = folder / MANIFEST
    if not os.path.isfile(path):
        why = "is no folder that this process sees" if not os.path.isdir(folder) else f"has no {MANIFEST}"
        raise FileNotFoundError(f"{_one_line(folder)} {why}; write shards with Ragged.to_shards(folder)")
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
        if text["format"] != FORMAT or text["kind"] not in ("bags", "table", "letters"):
            raise ValueError(f"format {shorten(text['format'])}, kind {shorten(text['kind'])}")
        needed = {"values"} if text["kind"] == "table" else {"values", "offsets"}
        shards = tuple(_read_line(line, needed) for line in text["shards"])
        dtype = _read_type(text["dtype"], text["kind"])
        manifest = Manifest(text["kind"], dtype, whole_number("width", text["width"], 0), shards)
    except Exception as error:  # NumPy reads the name of a type with a parser that raises what it likes
        raise ValueError(
            f"{_one_line(path)} is not a manifest of shards ({reason(error)}); write the shards again"
        ) from error
    if not manifest.shards:
        raise ValueError(f"{_one_line(path)} lists no shards; write the shards again")
    return manifest


def open_part(folder: Path, shard: Shard, part: str) -> MappedArray:
    """A file of a shard, mapped; the error names the shard."""
    path = shard.path(folder, part)
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"shard {shard.name} is missing: {_one_line(path)} does not exist; write the shards again"
        )
    try:
        return MappedArray(path)
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(
            f"shard {shard.name} is damaged: {path.name}: {reason(error)}; write the shards again"
        ) from error


def digest_array(array: Array, look: Callable[[int, Array], None] = lambda first, rows: None) -> str:
    """A checksum of an array, computed a piece at a time; ``look`` sees each piece and its first row."""
    total = zlib.crc32(f"{array.dtype.str}{array.shape}".encode())
    step = max(1, CHUNK_BYTES // max(1, array.itemsize * int(np.prod(array.shape[1:]))))
    for start in range(0, len(array), step):
        piece = np.ascontiguousarray(array[start : start + step])
        total = zlib.crc32(piece.reshape(-1).view(np.uint8).data, total)
        look(start, piece)
    return f"{total:08x}"


class Piece(NamedTuple):
    """The rows of a shard, how they are cut into samples (None: each is one), and their boxes."""

    values: Any
    offsets: Array | None
    boxes: Array | None


def as_rows(part: Any, label: str) -> Piece:
    """The rows of a part, how they are cut into samples, and their boxes."""
    is_table = isinstance(part, np.ndarray) and part.ndim == 2 and part.dtype != object
    try:
        bags = None if is_table else samples_of(part)
        if bags is not None and bags.values.dtype == np.uint8 and bags.values.ndim == 1:
            return Piece(_text_kind().plain(bags.values)[:, None], bags.offsets, None)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{label}: {error}") from error
    values = part if bags is None else bags.values
    if sparse.issparse(values) or values.ndim != 2 or values.dtype.kind not in "biuf":
        what = "sparse rows" if sparse.issparse(values) else f"rows of shape {values.shape[1:]} of {values.dtype}"
        raise ValueError(f"{label} has {what}; shards hold dense rows of numbers")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    return Piece(values, None, None) if bags is None else Piece(values, bags.offsets, bags.boxes)


def samples_of(X: Any) -> Ragged:
    """Bags, as `Ragged.of` takes them, or strings as a Ragged of bytes."""
    strings = _strings_in(X)
    if strings is None:
        return Ragged.of(X)
    letters = [x.encode("latin-1", "replace") if isinstance(x, str) else x for x in strings]
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in letters])])
    return Ragged(np.frombuffer(b"".join(letters), np.uint8), offsets)


def refuse_other_letters(samples: Ragged, X: Any) -> None:
    """Refuse bytes that are not letters: stored, they would be others than were given. Other samples pass.

    ``X`` are the samples as they were given; the error shows the letter that is written there.
    """
    if samples.values.dtype == np.uint8 and samples.values.ndim == 1:
        strings = _strings_in(X)
        _text_kind().check(samples.values, samples.offsets, samples if strings is None else strings)


def _text_kind() -> TextKind:
    """What strings stand for; the core does not know."""
    offers = list(entry_points(group=TEXT_KINDS))
    if len(offers) != 1:
        names = ", ".join(offer.value for offer in offers) or "nothing that is installed"
        raise RuntimeError(
            f"{names} says what strings stand for (entry point {TEXT_KINDS}), and there must be one; reinstall tacit"
        )
    kind: TextKind = offers[0].load()
    return kind


def _strings_in(X: Any) -> Sequence[str | bytes] | None:
    """The strings of a list, array or pandas column of nothing else; None for all other things."""
    if type(X).__module__.split(".")[0] == "pandas" and getattr(X, "ndim", 0) == 1:
        X = X.to_numpy()
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "SUO":
        X = X.tolist()
    is_list = isinstance(X, list | tuple) and len(X) > 0
    return X if is_list and all(isinstance(x, str | bytes) for x in X) else None


def kind_of(values: Any, offsets: Array | None) -> str:
    """What rows are; see `Manifest`."""
    if offsets is None:
        return "table"
    return "letters" if values.dtype == np.uint8 else "bags"


def say_kind(found: tuple[str, str, int, bool]) -> str:
    """Kind, type and width of rows, and whether they have boxes, in words."""
    kind, dtype, width, has_boxes = found
    return f"{kind} of {width} × {np.dtype(dtype)}{' with boxes' if has_boxes else ''}"


def _one_line(path: Path) -> str:
    return one_line(str(path), 300)


def _read_type(name: Any, kind: str) -> str:
    dtype = np.dtype(str(name))
    if dtype not in ((np.uint8,) if kind == "letters" else (np.float32, np.float64)):
        raise ValueError(f"rows must be floats, or letters as uint8, got {shorten(name)}")
    return dtype.str


def _read_line(line: Any, needed: set[str]) -> Shard:
    digests = {str(name): str(digest) for name, digest in line["digests"].items()}
    name = str(line["name"])
    if not needed <= set(digests) or Path(name).name != name or len(name) > MAX_NAME:
        raise ValueError(f"the line of {shorten(name)} is not complete")
    samples, rows = (whole_number(part, line[part], 0) for part in ("samples", "rows"))
    return Shard(name, samples, rows, digests)

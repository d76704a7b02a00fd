"""Sequences from files: FASTA and FASTQ, plain or gz, and tables of sequences with labels or signals.

FASTA and FASTQ are read by dnaio, a record at a time.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, reason, shorten, whole_number
from tacit.data.reading import MAX_BYTES, named, opened, read_text, unreadable

_TABLE_ENDS = (".tsv", ".txt", ".csv", ".tab")
_LETTERS = frozenset("ACGTURYSWKMBDHVNacgturyswkmbdhvn")
_PROTEIN_ONLY = frozenset("EFILPQefilpq*")


class Sequences(NamedTuple):
    """Names and letters of sequences, in the order of their file."""

    names: list[str]
    letters: list[str]


class SequenceTable(NamedTuple):
    """Sequences with a number each: labels (two values) or signals (more)."""

    names: list[str]
    letters: list[str]
    values: Array

    @property
    def has_labels(self) -> bool:
        return np.unique(self.values).size <= 2


def is_table(path: Any) -> bool:
    """Whether the name of a file is that of a table, ``.gz`` aside.

    >>> is_table("peaks.tsv.gz"), is_table("peaks.fa.gz")
    (True, False)
    """
    place = file_path("path", path)
    return (place.with_suffix("") if place.suffix == ".gz" else place).suffix.lower() in _TABLE_ENDS


def iterate_sequences(path: Any) -> Iterator[tuple[str, str]]:
    """Name and letters of every record of a FASTA or FASTQ file, one after the other: memory stays small.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.fa").write_text(">first one\\nACGT\\nAC\\n>second\\nGGG\\n")
    ...     list(iterate_sequences(f"{folder}/a.fa"))
    [('first one', 'ACGTAC'), ('second', 'GGG')]
    """
    try:
        import dnaio
    except ImportError as error:
        raise ImportError('reading FASTA and FASTQ needs dnaio: pip install "tacit[dna]"') from error
    place = file_path("path", path)
    try:
        with opened(place) as stream:
            if not stream.read(1):
                raise ValueError(f"{named(place)} is empty; a FASTA file has lines >name and letters")
        with opened(place) as stream, dnaio.open(stream) as records:
            for record in records:
                yield record.name, record.sequence
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{named(place)} is truncated or not a gzip file ({reason(error)}); fetch it again") from error
    except OSError as error:
        raise unreadable(place, error) from error
    except (dnaio.FileFormatError, dnaio.UnknownFileFormat, UnicodeDecodeError) as error:
        raise ValueError(
            f"{named(place)} is neither FASTA nor FASTQ ({reason(error)}); tables of sequences end in .tsv"
        ) from error


def read_sequences_file(path: Any, *, max_bytes: int = MAX_BYTES) -> Sequences:
    """All sequences of a FASTA or FASTQ file, checked: DNA, none empty, at most ``max_bytes`` letters.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.fa").write_text(">p53\\nMEEPQSDPSV\\n")
    ...     read_sequences_file(f"{folder}/a.fa")
    Traceback (most recent call last):
    ...
    ValueError: '...a.fa', record 1 ('p53') has 'E' at position 1: this looks like protein, and motifs are looked ...
    """
    room = whole_number("max_bytes", max_bytes, 1)
    names, letters, total = [], [], 0
    for number, (name, sequence) in enumerate(iterate_sequences(path)):
        total += len(sequence)
        if total > room:
            raise ValueError(f"{named(path)} holds more than {room} letters; split it, or raise max_bytes=")
        check_letters(path, number, name, sequence)
        names.append(name)
        letters.append(sequence)
    if not names:
        raise ValueError(f"{named(path)} holds no sequence; a FASTA file has lines >name and letters")
    return Sequences(names, letters)


def read_sequence_table(path: Any, *, max_bytes: int = MAX_BYTES) -> SequenceTable:
    """Sequences and numbers from a table with tabs, commas or blanks between columns, with or without a header.

    The column of sequences is the first whose entries are all DNA, that of numbers the last one that holds numbers
    only; a column ``name`` or ``id`` of the header gives the names.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.tsv").write_text("sequence\\tsignal\\nACGT\\t1.5\\nCCGT\\t0.2\\nGGGG\\t7\\n")
    ...     read_sequence_table(f"{folder}/a.tsv").values
    array([1.5, 0.2, 7. ])
    """
    place = file_path("path", path)
    lines = [line for line in read_text(place, max_bytes=max_bytes).splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{named(place)} is empty; a line has a sequence and a label or a signal")
    mark = next((mark for mark in ("\t", ",") if mark in lines[0]), None)
    rows = [line.split(mark) for line in lines]
    n_columns = len(rows[0])
    uneven = next((i for i, row in enumerate(rows) if len(row) != n_columns), None)
    if uneven is not None:
        raise ValueError(
            f"{named(place)}, line {uneven + 1} has {len(rows[uneven])} columns, the first has {n_columns}; "
            "put tabs between columns"
        )
    has_header = not any(_is_dna(cell) for cell in rows[0])
    header = [cell.strip().lower() for cell in rows[0]] if has_header else []
    body = rows[1:] if has_header else rows
    columns = [[cell.strip() for cell in column] for column in zip(*body, strict=True)]
    sequence = next((j for j, column in enumerate(columns) if all(map(_is_dna, column))), None)
    if sequence is None:
        raise ValueError(f"{named(place)} has no column of DNA sequences; its first line is {shorten(lines[0])}")
    numbers = {
        j: values for j, column in enumerate(columns) if j != sequence and (values := _numbers(column)) is not None
    }
    if not numbers:
        raise ValueError(
            f"{named(place)} has no column of numbers beside the sequences: give labels (1 and 0) or signals; for "
            "sequences alone use FASTA"
        )
    wanted = [j for j, name in enumerate(header) if name in ("label", "signal", "y", "bound") and j in numbers]
    name = next((j for j, title in enumerate(header) if title in ("name", "id", "eventid")), None)
    names = [f"line {i + 1 + has_header}" for i in range(len(body))] if name is None else columns[name]
    return SequenceTable(names, columns[sequence], numbers[(wanted or list(numbers))[0]])


def check_letters(path: Any, number: int, name: str, sequence: str) -> None:
    """Refuse a record that is empty or no DNA, and say which."""
    if not sequence:
        raise ValueError(f"{named(path)}, record {number + 1} ({shorten(name)}) has no letters; drop it")
    if _LETTERS.issuperset(sequence):
        return
    place, letter = next((i, c) for i, c in enumerate(sequence) if c not in _LETTERS)
    what = (
        "this looks like protein, and motifs are looked for in DNA" if letter in _PROTEIN_ONLY else "no letter of DNA"
    )
    raise ValueError(
        f"{named(path)}, record {number + 1} ({shorten(name)}) has {letter!r} at position {place}: {what}; drop it, or "
        "write N for unknown bases"
    )


def _is_dna(cell: str) -> bool:
    cell = cell.strip()
    return len(cell) > 1 and _LETTERS.issuperset(cell)


def _numbers(column: list[str]) -> Array | None:
    try:
        values = np.array(column, dtype=np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None

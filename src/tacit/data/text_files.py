"""One reader for all text files: lines, tables and JSON under the same limits, in time linear in the bytes read.

A packed megabyte can hold gigabytes, and a byte of text can become a hundred bytes of Python objects. So three things
are limited beside the bytes of a file: the bytes of a line, and in proportion to ``max_bytes`` the number of lines and
the number of fields that are kept. A reader of a format asks a `TextReader` for lines, and tells it how many fields it
keeps.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tacit.data.parameters import reason, shorten, whole_number
from tacit.data.reading import MAX_BYTES, MAX_LINE, open_unpacked, quote, reading, too_large

BYTES_PER_LINE = 32
"""Bytes of ``max_bytes`` per line that is read: 256 MiB allow 8 million lines."""

BYTES_PER_FIELD = 8
"""Bytes of ``max_bytes`` per field that is kept: 256 MiB allow 33 million fields, about 2 GB of Python objects."""

FIELDS_PER_ROW = 4
"""Fields that a row of a table counts as beside its cells: what holds them together."""

FEWEST = 1 << 14
"""Lines, fields and bytes of a line that are allowed whatever ``max_bytes`` is."""


class TextReader:
    """The lines of a text file, one at a time, unpacked if its name ends in ``.gz``.

    Parameters
    ----------
    path : the file
    encoding : "utf-8" (a byte order mark at the start is left out) or "ascii"
    max_bytes : bytes that are read at the most; the limits of lines and fields follow from it

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_text("one two\\nthree\\n")
    ...     list(TextReader(Path(folder) / "a.txt").lines())
    [(1, 'one two'), (2, 'three')]
    """

    def __init__(self, path: Path, encoding: str = "utf-8", max_bytes: Any = MAX_BYTES) -> None:
        self.path = path
        self.encoding = encoding
        self.room = whole_number("max_bytes", max_bytes, 1, 1 << 62)
        self.max_lines = max(self.room // BYTES_PER_LINE, FEWEST)
        self.max_line = max(min(self.room // 8, MAX_LINE), FEWEST)
        self.max_fields = max(self.room // BYTES_PER_FIELD, FEWEST)
        self._fields = 0

    def lines(self, *, rare_ends: bool = False, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
        """Number and text of every line, without its end.

        Parameters
        ----------
        rare_ends : lines also end where `str.splitlines` ends them, not at line feeds alone
        keep_ends : lines keep their ends, and also end at carriage returns, as tables need it
        """
        number = 0
        for raw in self._raw_lines():
            text = self._decode(raw, number + 1)
            if keep_ends:
                parts = list(io.StringIO(text, newline="")) if "\r" in text else [text]
            else:
                text = text.removesuffix("\n").removesuffix("\r")
                parts = (text.splitlines() or [""]) if rare_ends else [text]
            for part in parts:
                number += 1
                if number > self.max_lines:
                    raise self._too_many("lines", self.max_lines)
                yield number, part

    def split(self, text: str, mark: str | None = None) -> list[str]:
        """The fields of a text, which are counted; without a mark, those between blanks."""
        fields = text.split(mark)
        self.count_fields(len(fields))
        return fields

    def count_fields(self, n: int) -> None:
        """Count fields that are kept; too many are refused."""
        self._fields += n
        if self._fields > self.max_fields:
            raise self._too_many("fields", self.max_fields)

    def _too_many(self, what: str, most: int) -> ValueError:
        return ValueError(
            f"{quote(self.path)} has more than {most} {what}, the limit for max_bytes={self.room}; split it, or raise "
            "max_bytes if you trust the file"
        )

    def _raw_lines(self) -> Iterator[bytes]:
        total = 0
        with reading(self.path), open_unpacked(self.path) as stream:
            while line := stream.readline(self.max_line + 1):
                total += len(line)
                if total > self.room:
                    raise too_large(self.path, self.room)
                if len(line) > self.max_line:
                    raise ValueError(
                        f"{quote(self.path)} has a line of more than {self.max_line} bytes; it is damaged, or not text"
                    )
                yield line

    def _decode(self, raw: bytes, number: int) -> str:
        try:
            text = raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            name = self.encoding.upper()
            raise ValueError(
                f"{quote(self.path)}, line {number} is not text in {name} ({reason(error)}); save the file as {name}"
            ) from error
        return text.removeprefix("\ufeff") if number == 1 else text


class CsvTable(NamedTuple):
    """A table with commas: the names of its columns, and its rows with the number of the line that each ends in.

    ``rows`` is an iterator: the file is read as it goes on. A row has as many cells as there are columns; those that
    are missing in the file are None. More cells are refused, unless those are empty.
    """

    columns: list[str]
    rows: Iterator[tuple[int, list[str | None]]]


def read_csv(
    path: Path,
    needed: tuple[str, ...],
    encoding: str = "utf-8",
    max_bytes: Any = MAX_BYTES,
    delimiters: str = ",",
    other_names: Mapping[str, str] | None = None,
) -> CsvTable:
    """A table with a header; one without a ``needed`` column is refused.

    Of ``delimiters``, the one that the header has most often separates columns. ``other_names`` maps other names of
    columns, in small letters, to ours, for columns that are missing by ours; capitals then do not matter.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text("file,contains\\na.png,yes\\nb.png\\n")
    ...     table = read_csv(Path(folder) / "a.csv", ("file", "contains"))
    ...     list(table.rows)
    [(2, ['a.png', 'yes']), (3, ['b.png', None])]
    """
    reader = TextReader(path, encoding, max_bytes)
    rows = _csv_rows(reader, delimiters)
    _, columns = next(rows, (0, []))
    for other, name in (other_names or {}).items():
        if name not in columns:
            columns = [name if column.strip().lower() == other else column for column in columns]
    missing = [name for name in needed if name not in columns]
    if missing:
        wanted = ",".join(needed)
        raise ValueError(
            f"{quote(path)} lacks the column {missing[0]!r}; its first line must have {wanted}, got {shorten(columns)}"
        )

    def even_rows() -> Iterator[tuple[int, list[str | None]]]:
        n = len(columns)
        for number, row in rows:
            reader.count_fields(n + FIELDS_PER_ROW)
            if any(cell.strip() for cell in row[n:]):
                raise ValueError(
                    f"{quote(path)}, line {number} has {len(row)} cells, but the header has {n}; put cells with "
                    "delimiters in double quotes, and write decimal points, not commas"
                )
            yield number, [*row[:n], *([None] * (n - len(row)))]

    return CsvTable(columns, even_rows())


def _csv_rows(reader: TextReader, delimiters: str) -> Iterator[tuple[int, list[str]]]:
    lines = (line for _, line in reader.lines(keep_ends=True))
    head = next(lines, "")
    parsed = csv.reader(itertools.chain([head], lines), delimiter=max(delimiters, key=head.count))
    while True:
        try:
            row = next(parsed, None)
        except csv.Error as error:
            raise ValueError(f"{quote(reader.path)} is not a CSV table ({reason(error)})") from error
        if row is None:
            return
        if row:
            yield parsed.line_num, row


def refuse_many_values(text: str, where: str, max_bytes: int = MAX_BYTES) -> None:
    """Refuse a JSON text whose values would take too much memory; see `parse_json`."""
    most = max(max_bytes // BYTES_PER_FIELD, FEWEST)
    if sum(text.count(mark) for mark in ",:[") + 4 * text.count("{") > most:
        raise ValueError(f"{where} has more than {most} values; split it, or raise max_bytes if you trust the file")


def parse_json(text: str, where: str, max_bytes: int = MAX_BYTES) -> Any:
    """The content of a JSON text, in which at most one value per `BYTES_PER_FIELD` of ``max_bytes`` is allowed.

    ``where`` names the text in errors. A mapping counts as four values, as it takes the memory of four.

    >>> parse_json('{"a": [1, 2]}', "the line")
    {'a': [1, 2]}
    >>> parse_json("9" * 5000, "the line")
    Traceback (most recent call last):
    ...
    ValueError: the line is truncated or not JSON (Exceeds the limit (4300 digits) for integer string conversion...)
    """
    refuse_many_values(text, where, max_bytes)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is truncated or not JSON ({reason(error)})") from error

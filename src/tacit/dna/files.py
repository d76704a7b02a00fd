"""Files of DNA: sequences (FASTA, FASTQ, tables) are read, motifs (MEME, JASPAR) read and written.

FASTA and FASTQ are read by dnaio, a record at a time.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.lines import one_line
from tacit.data.parameters import file_path, reason, shorten, whole_number
from tacit.data.reading import MAX_BYTES, GuardedStream, quote, reading
from tacit.data.text_files import BYTES_PER_LINE, FEWEST, TextReader

_TABLE_ENDS = (".tsv", ".txt", ".csv", ".tab")

_LETTERS = frozenset("ACGTURYSWKMBDHVNacgturyswkmbdhvn")

_AMINO_ACIDS = frozenset("ACDEFGHIKLMNPQRSTVWYBZJXUOacdefghiklmnpqrstvwybzjxuo")

_PROTEIN_ONLY = frozenset("EFILPQefilpq*")

LONGEST_NAME = 60
"""Letters of a motif's name."""

MAX_MOTIF_NAME = 1000
"""Letters of a motif's name that are read."""

MAX_SEQUENCE_NAME = 1 << 16
"""Letters of the name of a sequence in a file."""

MAX_SEQUENCE = 3 << 29
"""Bytes of one record of a FASTA file, 32 more per line: a chromosome of a thousand million letters."""

FASTA_HINT = "a FASTA file has a line >name before the letters of each sequence"

_NUMBER_SIGNS = frozenset("-+0123456789.eE \t\n\r\x0b\x0c")


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
    """Whether a file is a table by the ending of its name, ``.gz`` left out.

    >>> is_table("peaks.tsv.gz"), is_table("peaks.fa.gz")
    (True, False)
    """
    path = file_path("path", path)
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower() in _TABLE_ENDS


def iterate_sequences(
    path: Any, max_record: int | None = None, stream: GuardedStream | None = None
) -> Iterator[tuple[str, str]]:
    """Name and letters of every record of a FASTA or FASTQ file, one at a time, so that memory stays small.

    A record of more than ``max_record`` bytes is refused, `MAX_SEQUENCE` by default; each line counts 32 bytes more.
    ``stream`` has the bytes of the file where it is already open, and ``-`` is standard input.

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
    path = file_path("path", path)
    with reading(path), stream or GuardedStream(path, None, MAX_BYTES, b"\n>", max_record or MAX_SEQUENCE) as guard:
        yield from _iterate_records(guard, dnaio)


def _iterate_records(guard: GuardedStream, dnaio: Any) -> Iterator[tuple[str, str]]:
    path, start = guard.path, guard.first_byte()
    if not start:
        raise ValueError(f"{quote(path)} is empty; {FASTA_HINT}")
    if start not in (b">", b"@", b"#"):
        first = shorten(start.decode("latin-1"))
        raise ValueError(
            f"{quote(path)} is neither FASTA nor FASTQ: it begins with {first}; {FASTA_HINT}, and the name of a table "
            "must end in .tsv"
        )
    if start == b"@":
        guard.record_start = b"\n@"
    try:
        with io.BufferedReader(guard, 1 << 16) as stream, dnaio.open(stream) as records:
            for number, record in enumerate(records, 1):
                if len(record.name) > MAX_SEQUENCE_NAME:
                    raise ValueError(
                        f"{quote(path)}, record {number} has a name of {len(record.name)} letters, where at most "
                        f"{MAX_SEQUENCE_NAME} are read; shorten it"
                    )
                yield record.name, record.sequence
    except (dnaio.FileFormatError, dnaio.UnknownFileFormat, UnicodeDecodeError) as error:
        raise ValueError(
            f"{quote(path)} is neither FASTA nor FASTQ ({reason(error)}); the name of a table must end in .tsv"
        ) from error


def read_sequences_file(path: Any, *, max_bytes: int = MAX_BYTES, is_protein: bool = False) -> Sequences:
    """All sequences of a FASTA or FASTQ file. Each must be DNA, RNA or protein, and not empty.

    Together they have at most ``max_bytes`` letters. Names count as letters, and there may be one sequence per 32 of
    ``max_bytes``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.fa").write_text(">p53\\nMEEPQSDPSV\\n")
    ...     read_sequences_file(f"{folder}/a.fa")
    Traceback (most recent call last):
    ...
    ValueError: '...a.fa', record 1 ('p53'): 'E' at position 1 is not a DNA letter (this looks like protein: tacit ...
    """
    room = whole_number("max_bytes", max_bytes, 1)
    most = max(room // BYTES_PER_LINE, FEWEST)
    names, letters, total = [], [], 0
    for number, (name, sequence) in enumerate(iterate_sequences(path, min(3 * room + FEWEST, MAX_SEQUENCE))):
        total += len(sequence) + len(name)
        if total > room:
            raise ValueError(f"{quote(path)} holds more than {room} letters; split it or raise max_bytes")
        if number == most:
            raise ValueError(f"{quote(path)} holds more than {most} sequences; split it or raise max_bytes")
        if is_protein:
            sequence = sequence.removesuffix("*")  # the stop codon of a translated gene
        check_letters(path, number, name, sequence, is_protein)
        names.append(name)
        letters.append(sequence)
    if not names:
        raise ValueError(f"{quote(path)} holds 0 sequences; {FASTA_HINT}")
    return Sequences(names, letters)


def read_sequence_table(path: Any, *, max_bytes: int = MAX_BYTES) -> SequenceTable:
    """Sequences and numbers from a table with tabs, commas or blanks between columns, with or without a header.

    The column of sequences is the first whose entries are all DNA. The column of numbers is the first that holds only
    numbers, or the one that the header calls ``label``, ``signal``, ``y`` or ``bound``. A column ``name`` or ``id`` of
    the header gives the names.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.tsv").write_text("sequence\\tsignal\\nACGT\\t1.5\\nCCGT\\t0.2\\nGGGG\\t7\\n")
    ...     read_sequence_table(f"{folder}/a.tsv").values
    array([1.5, 0.2, 7. ])
    """
    path = file_path("path", path)
    reader = TextReader(path, max_bytes=max_bytes)
    first, mark, header = "", None, []
    columns: list[list[str]] = []
    line_numbers: list[int] = []
    first_number = 0
    for number, line in reader.lines(rare_ends=True):
        if not line.strip():
            continue
        if not first:
            first, first_number = line, number
            mark = next((mark for mark in ("\t", ",") if mark in line), None)
        row = [cell.strip() for cell in line.split(mark)]
        reader.count_fields(len(row))
        if not columns:
            columns = [[] for _ in row]
            if not any(_is_dna(cell) for cell in row):
                header = [cell.lower() for cell in row]
                continue
        if len(row) != len(columns):
            raise ValueError(
                f"{quote(path)}, line {number} has {len(row)} columns and line {first_number} has {len(columns)}; put "
                "tabs between columns"
            )
        line_numbers.append(number)
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
    if not first:
        raise ValueError(f"{quote(path)} is empty; a line must have a sequence and a label or a signal")
    sequence = next((j for j, column in enumerate(columns) if column and all(map(_is_dna, column))), None)
    if sequence is None:
        raise ValueError(f"{quote(path)} lacks a column of DNA sequences; its first line is {shorten(first)}")
    others = {j: _number_column(column) for j, column in enumerate(columns) if j != sequence}
    numbers = {j: values for j, values in others.items() if values is not None}
    if not numbers:
        raise ValueError(
            f"{quote(path)} lacks a column of numbers beside the sequences; add labels (1 and 0) or signals, or use "
            "FASTA for sequences alone"
        )
    wanted = [j for j, name in enumerate(header) if name in ("label", "signal", "y", "bound") and j in numbers]
    name = next((j for j, title in enumerate(header) if title in ("name", "id", "eventid")), None)
    names = [f"line {i}" for i in line_numbers] if name is None else columns[name]
    return SequenceTable(names, columns[sequence], numbers[(wanted or list(numbers))[0]])


def check_letters(path: Any, number: int, name: str, sequence: str, is_protein: bool = False) -> None:
    """Refuse a record that is empty or has other letters; the error names it."""
    record = f"{quote(path)}, record {number + 1} ({shorten(name)})"
    if not sequence:
        raise ValueError(f"{record} has 0 letters; drop it")
    allowed = _AMINO_ACIDS if is_protein else _LETTERS
    if not allowed.issuperset(sequence):
        position, letter = next((i, c) for i, c in enumerate(sequence) if c not in allowed)
        if is_protein:
            raise ValueError(
                f"{record}: {letter!r} at position {position} is not an amino acid letter; drop it, or write X for "
                "unknown residues"
            )
        protein = " (this looks like protein: tacit motif --alphabet protein)" * (letter in _PROTEIN_ONLY)
        raise ValueError(
            f"{record}: {letter!r} at position {position} is not a DNA letter{protein}; drop it, or write N for "
            "unknown bases"
        )


def _is_dna(cell: str) -> bool:
    cell = cell.strip()
    return len(cell) > 1 and _LETTERS.issuperset(cell)


def _number_column(column: list[str]) -> Array | None:
    try:
        values = np.array(column, dtype=np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


class Matrix(NamedTuple):
    """A motif: its name, and (width, 4) shares of A, C, G, T, or of protein (width, 20) shares of amino acids."""

    name: str
    shares: Array


def read_motifs(path: Any, *, max_bytes: int = MAX_BYTES) -> list[Matrix]:
    """The motifs of a file in the minimal MEME format, or in JASPAR's (counts or shares, with or without brackets).

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = [">MA1 Test", "A [ 9 1 ]", "C [ 0 1 ]", "G [ 1 8 ]", "T [ 0 0 ]"]
    ...     _ = (Path(folder) / "a.jaspar").write_text("\\n".join(lines))
    ...     read_motifs(f"{folder}/a.jaspar")[0].shares
    array([[0.9, 0. , 0.1, 0. ],
           [0.1, 0.1, 0.8, 0. ]])
    """
    path = file_path("path", path)
    is_meme = any(_is_motif_line(line) for _, line in TextReader(path, max_bytes=max_bytes).lines(rare_ends=True))
    reader = TextReader(path, max_bytes=max_bytes)
    found = (_read_meme if is_meme else _read_jaspar)(reader, path)
    if not found:
        raise ValueError(f"{quote(path)} holds 0 motifs; known motifs must be in the MEME or the JASPAR format")
    return found


def write_meme(
    motifs: Sequence[Matrix],
    background: Array,
    sites: Sequence[int],
    e_values: Sequence[float],
    letters: str = "ACGT",
) -> str:
    """Motifs in the minimal MEME format, which most tools read.

    >>> print(write_meme([Matrix("one", np.eye(4)[:1])], np.full(4, 0.25), [7], [0.01]).splitlines()[-1])
     1.000000  0.000000  0.000000  0.000000
    """
    strands = ["strands: + -", ""] if letters == "ACGT" else []
    lines = ["MEME version 4", "", f"ALPHABET= {letters}", "", *strands, "Background letter frequencies"]
    lines.append(" ".join(f"{letter} {share:.4f}" for letter, share in zip(letters, background, strict=True)))
    for motif, n, e in zip(motifs, sites, e_values, strict=True):
        name = clean_name(motif.name)
        lines += [
            "",
            f"MOTIF {name}",
            f"letter-probability matrix: alength= {len(letters)} w= {len(motif.shares)} nsites= {n} E= {e:.3g}",
        ]
        lines += ["".join(f" {share:.6f} " for share in row).rstrip() for row in motif.shares]
    return "\n".join(lines) + "\n"


def write_jaspar(motifs: Sequence[Matrix]) -> str:
    """Counts in the format of JASPAR.

    >>> print(write_jaspar([Matrix("one", np.array([[3.0, 0, 1, 0]]))]))
    >one
    A [ 3.00 ]
    C [ 0.00 ]
    G [ 1.00 ]
    T [ 0.00 ]
    <BLANKLINE>
    """
    lines = []
    for name, counts in motifs:
        lines.append(f">{clean_name(name)}")
        lines += [f"{b} [ {' '.join(f'{c:.2f}' for c in row)} ]" for b, row in zip("ACGT", counts.T, strict=True)]
    return "\n".join(lines) + "\n"


def clean_name(name: str) -> str:
    """A name that every format can hold: letters, digits and a few signs, no blanks.

    >>> clean_name("<script> 1\\n>x")
    '_script__1__x'
    """
    return re.sub(r"[^A-Za-z0-9_.:+-]", "_", name)[:LONGEST_NAME] or "motif"


def _is_motif_line(line: str) -> bool:
    """Whether a motif of a MEME file begins here."""
    word = line.lstrip()[:6]
    return word.startswith("MOTIF") and not (word[5:].isalnum() or word[5:] == "_")


def _read_meme(reader: TextReader, path: Path) -> list[Matrix]:
    found: list[Matrix] = []
    name: str | None = None
    has_matrix = has_ended = False
    rows: list[list[float]] = []

    def finish() -> None:
        if name is None:
            return
        if not has_matrix:
            raise ValueError(f"{quote(path)}: motif {shorten(name)} lacks a letter-probability matrix")
        found.append(Matrix(name, _shares(np.array(rows), name, path)))

    for _, line in reader.lines(rare_ends=True):
        if _is_motif_line(line):
            finish()
            name = _motif_name(line.lstrip()[5:], len(found))
            has_matrix, has_ended, rows = False, False, []
        elif not has_matrix:
            has_matrix = name is not None and line.lstrip().startswith("letter-probability matrix")
        elif not has_ended:
            numbers = _numbers(line)
            fits = numbers is not None and len(numbers) == (len(rows[0]) if rows else 20 if len(numbers) == 20 else 4)
            if fits and numbers is not None:
                reader.count_fields(len(numbers))
                rows.append(numbers)
            has_ended = len(rows) > 0 and not fits
    finish()
    return found


def _read_jaspar(reader: TextReader, path: Path) -> list[Matrix]:
    found: list[Matrix] = []
    name: str | None = None
    rows: list[list[float]] = []

    def finish() -> None:
        if name is None:
            return
        if len(rows) != 4 or len({len(row) for row in rows}) != 1:
            raise ValueError(f"{quote(path)}: motif {shorten(name)} must have rows A, C, G and T of equal length")
        found.append(Matrix(name, _shares(np.array(rows).T, name, path)))

    for _, line in reader.lines(rare_ends=True):
        if line.startswith(">"):
            finish()
            name, rows = _motif_name(line[1:], len(found)), []
        elif name is not None and (numbers := _jaspar_row(line)):
            reader.count_fields(len(numbers))
            rows.append(numbers)
    finish()
    return found


def _motif_name(text: str, n_before: int) -> str:
    """The name of a motif, as written; its number where it has none."""
    return one_line(text, MAX_MOTIF_NAME) or f"motif {n_before + 1}"


def _jaspar_row(line: str) -> list[float] | None:
    """The numbers of a line such as ``A [ 3 0 1 ]``; letter and brackets may be missing."""
    text = line.strip()
    if text[:1] in tuple("ACGTacgt"):
        text = text[1:].lstrip()
    text = text.removeprefix("[").removesuffix("]")
    return _numbers(text) if text and _NUMBER_SIGNS.issuperset(text) else None


def _numbers(line: str) -> list[float] | None:
    try:
        return [float(word) for word in line.split()] or None
    except ValueError:
        return None


def _shares(table: Array, name: str, path: Path) -> Array:
    is_right = table.ndim == 2 and table.size and np.isfinite(table).all() and (table >= 0).all()
    if not is_right or not (table.sum(axis=1) > 0).all():
        raise ValueError(f"{quote(path)}: motif {shorten(name)} has a position whose counts are all 0, or below 0")
    return np.asarray(table / table.sum(axis=1, keepdims=True))

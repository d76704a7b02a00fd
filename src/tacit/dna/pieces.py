"""Long sequences piece by piece: FASTA files of any size are read in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.lines import one_line
from tacit.data.parameters import file_path, shorten
from tacit.data.reading import GuardedStream, quote, reading
from tacit.dna.files import FASTA_HINT, MAX_SEQUENCE_NAME, check_letters, iterate_sequences
from tacit.dna.sequences import DNA, UNKNOWN, read_sequences

PIECE_LETTERS = 1 << 20
"""Letters of a piece, at most."""

_READ = 1 << 18
"""Bytes that are read at a time."""

_BLANKS = b"\r\n\t "


class Piece(NamedTuple):
    """Letters of a sequence: its name, where the piece starts (from 0), letter codes, whether the sequence ends."""

    name: str
    start: int
    codes: Array
    is_last: bool


def iterate_pieces(path: Any, most: int = PIECE_LETTERS) -> Iterator[Piece]:
    """The sequences of a FASTA or FASTQ file in pieces of up to ``most`` letters; ``-`` reads standard input.

    Memory does not grow with the length of a sequence or of a line. A byte that is not a DNA letter is an error that
    names record and position.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.fa").write_text(">chr1 long\\nACGT\\nAC\\n>chr2\\nGGG\\n")
    ...     [(p.name, p.start, p.codes.tolist(), p.is_last) for p in iterate_pieces(f"{folder}/a.fa", 4)]
    [('chr1 long', 0, [0, 1, 2, 3], False), ('chr1 long', 4, [0, 1], True), ('chr2', 0, [2, 2, 2], True)]
    """
    path = file_path("path", path)
    with reading(path), GuardedStream(path, None, max_line=1 << 62) as stream:
        start = stream.first_byte()
        if not start:
            raise ValueError(f"{quote(path)} is empty; {FASTA_HINT}")
        if start == b"@":
            yield from _cut_records(path, iterate_sequences(path, stream=stream), most)
        elif start == b">":
            yield from _iterate_fasta(path, iter(lambda: stream.read(_READ), b""), most)
        else:
            raise ValueError(f"{quote(path)} is neither FASTA nor FASTQ; {FASTA_HINT}")


def _cut_records(path: Path, records: Iterable[tuple[str, str]], most: int) -> Iterator[Piece]:
    """Pieces of records that are in memory."""
    for number, (name, letters) in enumerate(records):
        check_letters(path, number, name, letters)
        codes = read_sequences([letters]).values
        for first in range(0, codes.size, most):
            yield Piece(name, first, codes[first : first + most], first + most >= codes.size)


class _Record:
    """A record that is being read: its letters that were not returned yet, as codes."""

    def __init__(self, path: Path, number: int, name: str) -> None:
        self.path, self.number, self.name, self.start, self.size = path, number, name, 0, 0
        self.held: list[Array] = []

    def add(self, text: bytes) -> None:
        letters = np.frombuffer(text.translate(None, _BLANKS), np.uint8)
        codes = DNA.codes[letters]
        if codes.size and codes.max() == UNKNOWN:
            at = int(np.argmax(codes == UNKNOWN))
            raise ValueError(
                f"{quote(self.path)}, record {self.number} ({shorten(self.name)}): {chr(letters[at])!r} at position "
                f"{self.start + self.size + at} is not a DNA letter; drop it, or write N for unknown bases"
            )
        self.held.append(codes)
        self.size += codes.size

    def take(self, n: int, is_last: bool) -> Piece:
        """The next ``n`` letters."""
        codes = np.concatenate(self.held) if len(self.held) > 1 else self.held[0]
        piece = Piece(self.name, self.start, codes[:n], is_last)
        self.held, self.start, self.size = [codes[n:]], self.start + n, self.size - n
        return piece

    def finish(self) -> Piece:
        if not self.size:
            raise ValueError(f"{quote(self.path)}, record {self.number} ({shorten(self.name)}) has 0 letters; drop it")
        return self.take(self.size, True)


def _iterate_fasta(path: Path, blocks: Iterator[bytes], most: int) -> Iterator[Piece]:
    record: _Record | None = None
    header: bytes | None = None
    number, is_line_start = 0, True
    for block in blocks:
        at = 0
        while at < len(block):
            if header is not None:
                end = block.find(b"\n", at)
                header += block[at : end if end >= 0 else len(block)]
                if len(header) > MAX_SEQUENCE_NAME:
                    raise ValueError(
                        f"{quote(path)}, record {number + 1} has a name of more than {MAX_SEQUENCE_NAME} letters; "
                        "shorten it"
                    )
                if end < 0:
                    break
                number += 1
                name = header.decode("utf-8", "replace").strip()
                record, header, at, is_line_start = _Record(path, number, name), None, end + 1, True
            elif is_line_start and block[at] == ord(">"):
                if record is not None:
                    yield record.finish()
                header, at = b"", at + 1
            else:
                end = block.find(b"\n>", at)
                last = end + 1 if end >= 0 else len(block)
                assert record is not None
                record.add(block[at:last])
                at, is_line_start = last, block[last - 1] == ord("\n")
                while record.size > most:
                    yield record.take(most, False)
    if record is None or header is not None:
        raise ValueError(f"{quote(path)} ends in the name of a sequence; {FASTA_HINT}")
    yield record.finish()


def join_pieces(pieces: Iterable[Piece], width: int, most: int = PIECE_LETTERS) -> Iterator[tuple[list[Piece], Array]]:
    """Blocks of pieces, and the codes of each block with an `UNKNOWN` after every piece.

    A piece that continues a sequence starts ``width − 1`` letters earlier, so that every window is in one piece.
    """
    block: list[Piece] = []
    size = 0
    before = np.zeros(0, np.uint8)
    for piece in pieces:
        codes = np.concatenate([before, piece.codes]) if before.size else piece.codes
        block.append(Piece(one_line(piece.name, 200) or "unnamed", piece.start - before.size, codes, piece.is_last))
        before = np.zeros(0, np.uint8) if piece.is_last or width == 1 else codes[-(width - 1) :]
        size += codes.size
        if size >= most:
            yield block, _join(block)
            block, size = [], 0
    if block:
        yield block, _join(block)


def _join(block: list[Piece]) -> Array:
    end = np.array([UNKNOWN], np.uint8)
    return np.concatenate(list(chain.from_iterable((piece.codes, end) for piece in block)))

"""Regions of a genome: read from BED and narrowPeak files, and cut out of FASTA files."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, shorten, whole_number
from tacit.data.reading import MAX_BYTES, quote
from tacit.data.text_files import TextReader
from tacit.dna.pieces import iterate_pieces
from tacit.dna.sequences import DNA

_ENDS = (".bed", ".narrowpeak")

_SKIPPED = ("#", "track", "browser")

_NARROW_PEAK = 10
"""Columns of a narrowPeak file; the last has the summit, counted from the start of the peak."""


def is_regions(path: Any) -> bool:
    """Whether a file holds regions by the ending of its name, ``.gz`` left out.

    >>> is_regions("peaks.narrowPeak.gz"), is_regions("peaks.fa")
    (True, False)
    """
    path = file_path("path", path)
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower() in _ENDS


class Region(NamedTuple):
    """A part of a chromosome, half-open, positions from 0."""

    chromosome: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """As genome browsers write it, with the start from 0, as in BED."""
        return f"{self.chromosome}:{self.start}-{self.end}"


def cut_regions(path: Any, regions: list[Region]) -> tuple[list[int], list[str]]:
    """Cut regions out of a genome, in one pass over its FASTA file: which regions were found, and their letters.

    Regions that reach over the end of their chromosome are shortened; those of chromosomes that the file lacks, or
    beyond the end, are left out.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.fa").write_text(">chr1\\nACGTAC\\n>chr2\\nGGGTT\\n")
    ...     cut_regions(f"{folder}/a.fa", [Region("chr2", 2, 4), Region("chr1", 0, 3), Region("chr3", 0, 3)])
    ([0, 1], ['GT', 'ACG'])
    """
    by_chromosome: dict[str, list[int]] = {}
    for i, region in enumerate(regions):
        by_chromosome.setdefault(region.chromosome, []).append(i)
    starts = {name: np.array([regions[i].start for i in rows]) for name, rows in by_chromosome.items()}
    ends = {name: np.array([regions[i].end for i in rows]) for name, rows in by_chromosome.items()}
    parts: dict[int, list[Array]] = {}
    seen: set[str] = set()
    n_letters = 0
    for piece in iterate_pieces(path):
        name = (piece.name.split() or [""])[0]
        if name not in by_chromosome:
            continue
        if not piece.start and name in seen:
            raise ValueError(f"{quote(path)} has two sequences named {shorten(name)}; rename or drop one")
        seen.add(name)
        first, last = piece.start, piece.start + piece.codes.size
        for k in np.flatnonzero((starts[name] < last) & (ends[name] > first)).tolist():
            low, high = max(int(starts[name][k]), first), min(int(ends[name][k]), last)
            n_letters += high - low
            if n_letters > MAX_BYTES:
                raise ValueError(
                    f"{quote(path)}: the regions have more than {MAX_BYTES} letters together; give fewer of them, or "
                    "cut them shorter with a width"
                )
            parts.setdefault(by_chromosome[name][k], []).append(piece.codes[low - first : high - first].copy())
    found = sorted(parts)
    return found, [DNA.letters_of(np.concatenate(parts[i])).tobytes().decode("ascii") for i in found]


def read_regions(path: Any, width: int = 0, *, max_bytes: int = MAX_BYTES) -> list[Region]:
    """The regions of a BED or narrowPeak file; with ``width``, as many letters around the summit or else the middle.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.bed").write_text("track name=x\\nchr1\\t100\\t200\\tpeak\\n")
    ...     read_regions(f"{folder}/a.bed"), read_regions(f"{folder}/a.bed", 20)
    ([Region(chromosome='chr1', start=100, end=200)], [Region(chromosome='chr1', start=140, end=160)])
    """
    path = file_path("path", path)
    width = whole_number("width", width, 0, 1 << 30)
    reader = TextReader(path, max_bytes=max_bytes)
    found = []
    for number, line in reader.lines():
        if not line.strip() or line.startswith(_SKIPPED):
            continue
        cells = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
        reader.count_fields(len(cells))
        try:
            start, end = int(cells[1]), int(cells[2])
            summit = int(cells[9]) if len(cells) == _NARROW_PEAK else -1
        except (IndexError, ValueError):
            raise ValueError(
                f"{quote(path)}, line {number} is {shorten(line)}; a line must have a chromosome, a start and an end"
            ) from None
        if not 0 <= start < end:
            raise ValueError(f"{quote(path)}, line {number} goes from {start} to {end}; a start must be before its end")
        if width:
            middle = start + summit if 0 <= summit < end - start else (start + end) // 2
            start = max(middle - width // 2, 0)
            end = start + width
        found.append(Region(cells[0], start, end))
    if not found:
        raise ValueError(f"{quote(path)} holds 0 regions; a line must have a chromosome, a start and an end")
    return found


def read_peaks(path: Any, genome: Any, width: int) -> tuple[list[str], list[str], int]:
    """Names such as ``chr1:100-200`` and letters of the peaks of a file; and how many lie outside of the genome."""
    regions = list(dict.fromkeys(read_regions(path, width)))
    cut = zip(*cut_regions(genome, regions), strict=True)
    inside = [(i, own) for i, own in cut if 2 * len(own) >= regions[i].end - regions[i].start]
    if not inside:
        raise ValueError(
            f"{quote(genome)} lacks all chromosomes of {quote(path)}, such as {shorten(regions[0].chromosome)}; use "
            "the names of one genome assembly in both files"
        )
    return [regions[i].name for i, _ in inside], [own for _, own in inside], len(regions) - len(inside)

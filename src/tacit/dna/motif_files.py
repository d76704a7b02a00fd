"""Motifs in files: the minimal MEME format and JASPAR's, read and written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, shorten
from tacit.data.reading import MAX_BYTES, named, read_text

LONGEST_NAME = 60
"""Letters of a motif's name."""

_JASPAR_ROW = re.compile(r"^\s*([ACGTacgt])?\s*\[?([-+0-9.eE\s]+)\]?\s*$")


class Matrix(NamedTuple):
    """A motif: its name, and (width, 4) shares of A, C, G, T."""

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
    place = file_path("path", path)
    text = read_text(place, max_bytes=max_bytes)
    found = _read_meme(text, place) if re.search(r"^\s*MOTIF\b", text, re.M) else _read_jaspar(text, place)
    if not found:
        raise ValueError(f"{named(place)} holds no motif; known motifs come in the MEME or the JASPAR format")
    return found


def write_meme(motifs: Sequence[Matrix], background: Array, sites: Sequence[int], p_values: Sequence[float]) -> str:
    """Motifs in the minimal MEME format, which most tools read.

    >>> print(write_meme([Matrix("one", np.eye(4)[:1])], np.full(4, 0.25), [7], [0.01]).splitlines()[-1])
     1.000000  0.000000  0.000000  0.000000
    """
    lines = ["MEME version 4", "", "ALPHABET= ACGT", "", "strands: + -", "", "Background letter frequencies"]
    lines.append(" ".join(f"{letter} {share:.4f}" for letter, share in zip("ACGT", background, strict=True)))
    for motif, n, p in zip(motifs, sites, p_values, strict=True):
        name = clean_name(motif.name)
        lines += [
            "",
            f"MOTIF {name}",
            f"letter-probability matrix: alength= 4 w= {len(motif.shares)} nsites= {n} E= {p:.3g}",
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


def _read_meme(text: str, place: Path) -> list[Matrix]:
    found: list[Matrix] = []
    for part in re.split(r"^\s*MOTIF\b", text, flags=re.M)[1:]:
        lines = part.splitlines()
        name = " ".join(lines[0].split()) or f"motif {len(found) + 1}"
        start = next((i for i, line in enumerate(lines) if line.lstrip().startswith("letter-probability matrix")), None)
        if start is None:
            raise ValueError(f"{named(place)}: the motif {shorten(name)} has no letter-probability matrix")
        rows: list[list[float]] = []
        for line in lines[start + 1 :]:
            numbers = _numbers(line)
            if numbers is None or len(numbers) != 4:
                if rows:
                    break
                continue
            rows.append(numbers)
        found.append(Matrix(name, _shares(np.array(rows), name, place)))
    return found


def _read_jaspar(text: str, place: Path) -> list[Matrix]:
    found: list[Matrix] = []
    for part in re.split(r"^>", text, flags=re.M)[1:]:
        lines = part.splitlines()
        name = " ".join(lines[0].split()) or f"motif {len(found) + 1}"
        rows: list[list[float]] = []
        for line in lines[1:]:
            match = _JASPAR_ROW.match(line)
            numbers = None if match is None else _numbers(match[2])
            if numbers:
                rows.append(numbers)
        if len(rows) != 4 or len({len(row) for row in rows}) != 1:
            raise ValueError(
                f"{named(place)}: the motif {shorten(name)} does not have four rows of equal length, for A, C, G and T"
            )
        found.append(Matrix(name, _shares(np.array(rows).T, name, place)))
    return found


def _numbers(line: str) -> list[float] | None:
    try:
        return [float(word) for word in line.split()] or None
    except ValueError:
        return None


def _shares(table: Array, name: str, place: Path) -> Array:
    is_right = table.ndim == 2 and table.size and np.isfinite(table).all() and (table >= 0).all()
    if not is_right or not (table.sum(axis=1) > 0).all():
        raise ValueError(f"{named(place)}: the motif {shorten(name)} has a position without letters, or below zero")
    return np.asarray(table / table.sum(axis=1, keepdims=True))

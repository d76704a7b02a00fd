"""DNA with a motif: generated, and the protein-binding probes of UniPROBE."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array


class Planted(NamedTuple):
    """Sequences (a fixed-width array of bytes), labels −1 and 1, and where the motif was put: −1 in negatives."""

    X: Array
    y: Array
    hidden: Array


def planted_motif(
    n: int,
    length: int,
    motif: str,
    *,
    noise: float = 0.0,
    strands: str = "one",
    background: int | None = None,
    seed: int = 0,
) -> Planted:
    """Random sequences, every other one with a motif at a random start.

    Parameters
    ----------
    n, length : how many sequences, of how many letters
    motif : letters A, C, G, T
    noise : probability that a letter of a planted motif is drawn anew
    strands : "both" plants the reverse complement in half of the positives; hidden is then (n, 2), start and strand
    background : None for starts 0 … length − width; a number for those that `tacit.problems.Motif` looks at with this
        background and ``features="literature"``, which leaves out the last ones

    >>> X, y, start = planted_motif(4, 20, "GGGGGG", seed=1)
    >>> X[y == 1][0], start
    (np.bytes_(b'TTTGTCCGGGGGGACCTAGC'), array([-1,  7, -1,  9]))
    """
    letters = np.array(["ACGT".find(letter) for letter in motif.upper()])
    if letters.size == 0 or (letters < 0).any():
        raise ValueError(f"motif must be letters A, C, G and T, got {motif!r}")
    starts = length - letters.size + 1 if background is None else length - letters.size - background
    if starts < 1:
        raise ValueError(
            f"length={length} leaves no room for a motif of {letters.size} letters; give {length + 1 - starts} or more"
        )
    if strands not in ("one", "both"):
        raise ValueError(f"strands must be 'one' or 'both', got {strands!r}")
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, length))
    is_positive = np.arange(n) % 2 == 1
    start = rng.integers(0, starts, n)
    strand = rng.integers(0, 2, n) if strands == "both" else np.zeros(n, np.int64)
    planted = np.where(strand[:, None] == 0, letters, 3 - letters[::-1])
    planted = np.where(rng.random(planted.shape) < noise, rng.integers(0, 4, planted.shape), planted)
    places = start[:, None] + np.arange(letters.size)
    codes[np.flatnonzero(is_positive)[:, None], places[is_positive]] = planted[is_positive]
    X = np.frombuffer(b"ACGT", np.uint8)[codes].view(f"S{length}").ravel()
    hidden = np.where(is_positive, start, -1)
    if strands == "both":
        hidden = np.column_stack([hidden, np.where(is_positive, strand, -1)])
    return Planted(X, np.where(is_positive, 1, -1), hidden)


class Halves(NamedTuple):
    """The training and the test half of a fold: sequences (fixed-width arrays of bytes) and labels −1 and 1."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


def uniprobe(folder: str | os.PathLike[str], protein: str, fold: int) -> Halves:
    """Probes that bind a protein (1) and that do not (−1), split as in the experiments of Kumar, Packer & Koller 2010.

    Reads ``protein.tsv`` or ``protein.tsv.gz``: sequence, +1 or −1, and the digits of the folds (1 to 5) in whose
    training half the sequence is; the rest is the test half.

    Parameters
    ----------
    folder : where the files are
    protein : their name without ending, such as "052"
    fold : 1 to 5

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = ["ACGT\\t+1\\t13", "CCGT\\t-1\\t1", "TTTT\\t-1\\t25"]
    ...     _ = (Path(folder) / "007.tsv").write_text("\\n".join(lines))
    ...     uniprobe(folder, "007", fold=1).X_train
    array([b'ACGT', b'CCGT'], dtype='|S4')
    """
    if fold not in (1, 2, 3, 4, 5):
        raise ValueError(f"folds are 1 to 5, got fold={fold!r}")
    path = next((p for end in ("tsv.gz", "tsv") if (p := Path(folder) / f"{protein}.{end}").exists()), None)
    if path is None:
        found = sorted({p.name.split(".")[0] for p in Path(folder).glob("*.tsv*")})
        raise FileNotFoundError(
            f"{folder} has no {protein}.tsv or {protein}.tsv.gz; it has {', '.join(found) or 'no tsv file at all'}"
        )
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("ascii")
    rows = [line.split("\t") for line in text.splitlines()]
    wrong = [i for i, row in enumerate(rows) if len(row) != 3 or row[1] not in ("+1", "1", "-1")]
    if wrong:
        raise ValueError(
            f"{path}, line {wrong[0] + 1} is {rows[wrong[0]]}; a line has a sequence, +1 or -1, and the digits of folds"
        )
    X = np.array([row[0] for row in rows], dtype=bytes)
    y = np.array([int(row[1]) for row in rows])
    is_train = np.array([str(fold) in row[2] for row in rows])
    return Halves(X[is_train], y[is_train], X[~is_train], y[~is_train])

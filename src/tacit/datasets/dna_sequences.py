"""DNA with a motif: random sequences, and the protein-binding probes of UniPROBE."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import number, one_of, shorten, whole_number
from tacit.data.reading import MAX_BYTES, find_folder, find_packed, quote, read_bytes

_LINE = "a line must have a sequence, +1 or -1, and the digits of folds, with tabs between them"


class Planted(NamedTuple):
    """Sequences (a fixed-width array of bytes), labels −1 and 1, and the starts of the motif: −1 in negatives."""

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
    n, length : number of sequences, and of letters in each
    motif : letters A, C, G, T
    noise : probability that a letter of a planted motif is replaced by a random one
    strands : "both" plants the reverse complement in half of the positives; hidden is then (n, 2), start and strand
    background : None for starts 0 … length − width; a number for the starts of `tacit.problems.Motif` with this
        background and ``features="literature"``, which leaves out the last ones

    >>> X, y, start = planted_motif(4, 20, "GGGGGG", seed=1)
    >>> X[y == 1][0], start
    (np.bytes_(b'TTTGTCCTAGGGGGGCTAGC'), array([-1,  9, -1, 12]))
    """
    if not isinstance(motif, str) or not motif or set(motif.upper()) - set("ACGT"):
        raise ValueError(f"motif must be letters A, C, G and T, got {shorten(motif)}")
    letters = np.array(["ACGT".index(letter) for letter in motif.upper()])
    n, length = whole_number("n", n, 0, MAX_BYTES), whole_number("length", length, 1, MAX_BYTES)
    seed = whole_number("seed", seed, 0)
    number("noise", noise, "a probability", lambda chance: 0 <= chance <= 1)
    if n * length > MAX_BYTES:
        raise ValueError(f"{n} sequences of {length} letters have more than {MAX_BYTES} letters; draw fewer at a time")
    left_out = -1 if background is None else whole_number("background", background, 0)
    starts = length - letters.size - left_out
    if starts < 1:
        raise ValueError(
            f"length={length} is too short for a motif of {letters.size} letters; give {length + 1 - starts} or more"
        )
    one_of("strands", strands, ("one", "both"))
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, length))
    is_positive = np.arange(n) % 2 == 1
    start = rng.integers(0, starts, n)
    strand = rng.integers(0, 2, n) if strands == "both" else np.zeros(n, np.int64)
    planted = np.where(strand[:, None] == 0, letters, 3 - letters[::-1])
    planted = np.where(rng.random(planted.shape) < noise, rng.integers(0, 4, planted.shape), planted)
    positions = start[:, None] + np.arange(letters.size)
    codes[np.flatnonzero(is_positive)[:, None], positions[is_positive]] = planted[is_positive]
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


def uniprobe(folder: str | os.PathLike[str] | None, protein: str, fold: int, *, max_bytes: int = MAX_BYTES) -> Halves:
    """Probes that bind a protein (1) and that do not (−1), split as in the experiments of Kumar, Packer & Koller 2010.

    Reads ``protein.tsv`` or ``protein.tsv.gz``. A line has a sequence, +1 or −1, and the digits of the folds (1 to 5)
    in whose training half it is; the rest is the test half.

    Parameters
    ----------
    folder : where the files are; None for ``uniprobe`` below the folder that the environment variable TACIT_DATA names
    protein : name of a file without its ending, such as "052"
    fold : 1 to 5
    max_bytes : larger files are refused before they are unpacked

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = ["ACGT\\t+1\\t13", "CCGT\\t-1\\t1", "TTTT\\t-1\\t25"]
    ...     _ = (Path(folder) / "007.tsv").write_text("\\n".join(lines))
    ...     uniprobe(folder, "007", fold=1).X_train
    array([b'ACGT', b'CCGT'], dtype='|S4')
    """
    fold = whole_number("fold", fold, 1, 5)
    is_name = isinstance(protein, str) and protein == Path(protein).name and protein not in ("", "..")
    if not is_name or "\0" in protein:
        raise ValueError(f"protein must be a file name without ending, such as '052', got {shorten(protein)}")
    home = find_folder(folder, "uniprobe")
    found = ", ".join(sorted({p.name.split(".")[0] for p in home.glob("*.tsv*")})[:20]) or "nothing"
    path = find_packed(home, f"{protein}.tsv", f"choose one of: {found}")
    X, y, is_train = _read_probes(read_bytes(path, max_bytes), path, fold)
    return Halves(X[is_train], y[is_train], X[~is_train], y[~is_train])


def _read_probes(content: bytes, path: Path, fold: int) -> tuple[Array, Array, Array]:
    """Sequences, labels, and whether each is in the training half; all lines at once, without Python objects."""
    text = np.frombuffer(content.replace(b"\r\n", b"\n") + (b"" if content.endswith(b"\n") else b"\n"), np.uint8)
    if not content:
        raise ValueError(f"{quote(path)} is empty; {_LINE}")
    ends, tabs = np.flatnonzero(text == ord("\n")), np.flatnonzero(text == ord("\t"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    fields = np.diff(np.searchsorted(tabs, ends), prepend=0)
    _check_lines(fields != 2, text, starts, ends, path)
    first, second = tabs[0::2], tabs[1::2]
    sign, is_one = text[first + 1], text[second - 1] == ord("1")
    is_signed = (second - first == 3) & ((sign == ord("+")) | (sign == ord("-")))
    _check_lines(~(is_one & (is_signed | (second - first == 2))), text, starts, ends, path)
    pairs = np.column_stack([second, ends]).ravel()
    digits = np.add.reduceat((text >= ord("1")) & (text <= ord("5")), pairs, dtype=np.int64)[::2]
    odd = np.flatnonzero(((text <= ord(" ")) | (text > ord("~"))) & (text != ord("\t")) & (text != ord("\n")))
    lengths = first - starts
    wrong = (lengths == 0) | (digits != ends - second - 1)
    wrong[np.searchsorted(ends, odd)] = True
    _check_lines(wrong, text, starts, ends, path)
    width = int(lengths.max())
    if width * lengths.size > MAX_BYTES:
        raise ValueError(f"{quote(path)}: {lengths.size} sequences of up to {width} letters are too many; split it")
    step = np.zeros(text.size, np.int8)
    step[starts], step[first] = 1, -1
    letters = np.zeros((lengths.size, width), np.uint8)
    letters[np.arange(width) < lengths[:, None]] = text[np.cumsum(step, dtype=np.int8).view(bool)]
    is_train = np.add.reduceat(text == ord(str(fold)), pairs, dtype=np.int64)[::2] > 0
    return letters.view(f"S{width}").ravel(), np.where(sign == ord("-"), -1, 1), is_train


def _check_lines(wrong: Array, text: Array, starts: Array, ends: Array, path: Path) -> None:
    """Refuse wrong lines; the error names the first of them and shows its beginning."""
    if wrong.any():
        i = int(np.argmax(wrong))
        line = text[starts[i] : min(ends[i], starts[i] + 1000)].tobytes()
        raise ValueError(f"{quote(path)}, line {i + 1} is {shorten(line)}; {_LINE}")

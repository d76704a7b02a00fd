"""The strings of PAutomaC, the competition in learning probabilistic automata (Verwer, Eyraud & de la Higuera 2014)."""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import reason, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.reading import MAX_BYTES, find_file, find_folder, find_packed, quote
from tacit.data.text_files import TextReader


class Pautomac(NamedTuple):
    """One problem of the competition: strings of the symbols 0 … n_symbols − 1.

    Attributes
    ----------
    train : strings to learn from, drawn from a hidden automaton
    test : other strings, to be given probabilities
    solution : (test strings,) their true probabilities
    n_symbols : size of the alphabet, for ``SpectralAutomaton(alphabet=range(n_symbols))``: not all symbols need occur
    """

    train: Ragged
    test: Ragged
    solution: Array
    n_symbols: int


def pautomac(number: int, folder: str | os.PathLike[str] | None = None, *, max_bytes: int = MAX_BYTES) -> Pautomac:
    """A problem of PAutomaC by its number: training strings, test strings and the true probabilities of the latter.

    Parameters
    ----------
    number : 1 to 48 in the competition
    folder : with ``1.pautomac.train``, ``1.pautomac.test`` and ``1.pautomac_solution.txt``, plain or ``.gz``; None for
        ``pautomac`` below the folder that the environment variable TACIT_DATA names
    max_bytes : larger files are refused before they are unpacked

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "1.pautomac.train").write_text("3 2\\n2 0 1\\n0\\n1 1\\n")
    ...     _ = (Path(folder) / "1.pautomac.test").write_text("2 2\\n1 0\\n0\\n")
    ...     _ = (Path(folder) / "1.pautomac_solution.txt").write_text("2\\n0.25\\n0.5\\n")
    ...     data = pautomac(1, folder)
    >>> data.train, data.solution, data.n_symbols
    (Ragged(3 samples, 0–2 rows each; 3 int64: [0, 1], [], [1]), array([0.25, 0.5 ]), 2)
    """
    number = whole_number("number", number, 1, 10**6)
    home = find_folder(folder, "pautomac")
    numbers = {int(start) for file in home.glob("*.pautomac.train*") if (start := file.name.split(".")[0]).isdecimal()}
    remedy = f"choose a problem of: {', '.join(map(str, sorted(numbers))) or 'none'}"
    names = (f"{number}.pautomac{end}" for end in (".train", ".test", "_solution.txt"))
    paths = [find_packed(home, name, remedy) for name in names]
    (train, of_train), (test, of_test) = (read_pautomac(path, max_bytes) for path in paths[:2])
    solution = _read_solution(paths[2], max_bytes)
    if len(test) != len(solution):
        raise ValueError(
            f"{quote(home)}: problem {number} has {len(test)} test strings but {len(solution)} probabilities; fetch "
            "its files again"
        )
    return Pautomac(train, test, solution, max(of_train, of_test))


class PautomacStrings(NamedTuple):
    """Strings of the symbols 0 … n_symbols − 1."""

    strings: Ragged
    n_symbols: int


def read_pautomac(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> PautomacStrings:
    """One file of strings, unpacked if its name ends in ``.gz``; at most ``max_bytes`` are read.

    The first line has the number of strings and of symbols; each other line is a string, its length first.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "few").write_text("2 3\\n3 0 2 1\\n0\\n")
    ...     read_pautomac(f"{folder}/few").strings[0]
    array([0, 2, 1])
    """
    path = find_file(path, "a file of PAutomaC strings")
    reader = TextReader(path, "ascii", max_bytes)
    lines = reader.lines(rare_ends=True)
    where = f"{quote(path)}, line"
    first = next(lines, (1, ""))[1]
    head = _whole_numbers(reader, first, f"{where} 1")
    if len(head) != 2 or head[1] < 1:
        raise ValueError(
            f"{where} 1 is {shorten(first)}; a file of PAutomaC strings must begin with the number "
            "of strings and the number of symbols"
        )
    n, k = head
    if k > 2**31:
        raise ValueError(f"{where} 1: the number of symbols must be at most {2**31}, got {shorten(k)}")
    values, lengths = array("q"), array("q")
    for number, line in lines:
        row = _whole_numbers(reader, line, f"{where} {number}")
        if not row or row[0] != len(row) - 1:
            stated = shorten(row[0]) if row else "a missing number of"
            raise ValueError(f"{where} {number}: a string of {stated} symbols has {max(len(row) - 1, 0)} of them")
        wrong = next((symbol for symbol in row[1:] if not 0 <= symbol < k), None)
        if wrong is not None:
            raise ValueError(f"{where} {number} has the symbol {shorten(wrong)}; the first line allows 0 to {k - 1}")
        values.extend(row[1:])
        lengths.append(row[0])
    if len(lengths) != n:
        raise ValueError(f"{quote(path)} has {len(lengths)} strings, not {shorten(n)} as line 1 says: truncated")
    offsets = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)
    return PautomacStrings(Ragged(np.array(values, dtype=np.int64), offsets), k)


def _read_solution(path: Path, max_bytes: int) -> Array:
    lines = TextReader(path, "ascii", max_bytes).lines(rare_ends=True)
    try:
        expected, *values = (float(line) for _, line in lines)
    except ValueError as error:
        raise ValueError(f"{quote(path)} must be a list of probabilities: {reason(error)}") from error
    solution = np.array(values)
    if expected != solution.size:
        raise ValueError(f"{quote(path)} has {solution.size} probabilities, but line 1 says {expected:g}: truncated")
    wrong = np.flatnonzero(~((solution >= 0) & (solution <= 1)))
    if wrong.size:
        raise ValueError(f"{quote(path)}, line {wrong[0] + 2} must be a probability, got {solution[wrong[0]]}")
    return solution


def _whole_numbers(reader: TextReader, line: str, where: str) -> list[int]:
    try:
        return [int(word) for word in reader.split(line)]
    except ValueError as error:
        raise ValueError(f"{where} must be whole numbers, got {shorten(line)}") from error

"""The strings of PAutomaC, the competition in learning probabilistic automata (Verwer, Eyraud & de la Higuera 2014)."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.datasets.location import MOST_BYTES, find_file, find_folder
from tacit.ragged import Ragged


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


def pautomac(number: int, folder: str | os.PathLike[str] | None = None) -> Pautomac:
    """A problem of PAutomaC by its number: training strings, test strings and the true probabilities of the latter.

    Parameters
    ----------
    number : 1 to 48 in the competition
    folder : where ``1.pautomac.train``, ``1.pautomac.test`` and ``1.pautomac_solution.txt`` are, as they are or with
        ``.gz``; None for ``pautomac`` below the folder that the environment variable TACIT_DATA names

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "1.pautomac.train").write_text("3 2\\n2 0 1\\n0\\n1 1\\n")
    ...     _ = (Path(folder) / "1.pautomac.test").write_text("2 2\\n1 0\\n0\\n")
    ...     _ = (Path(folder) / "1.pautomac_solution.txt").write_text("2\\n0.25\\n0.5\\n")
    ...     data = pautomac(1, folder)
    >>> data.train, data.solution, data.n_symbols
    (Ragged(3 samples, 0–2 rows each; 3 int64), array([0.25, 0.5 ]), 2)
    """
    place = find_folder(folder, "pautomac")
    train, of_train = read_pautomac(_file(place, f"{number}.pautomac.train"))
    test, of_test = read_pautomac(_file(place, f"{number}.pautomac.test"))
    solution = _read_solution(_file(place, f"{number}.pautomac_solution.txt"))
    if len(test) != len(solution):
        raise ValueError(
            f"{str(place)!r}: problem {number} has {len(test)} test strings and {len(solution)} probabilities, which "
            "do not go together"
        )
    return Pautomac(train, test, solution, max(of_train, of_test))


class PautomacStrings(NamedTuple):
    """Strings of the symbols 0 … n_symbols − 1."""

    strings: Ragged
    n_symbols: int


def read_pautomac(path: str | os.PathLike[str]) -> PautomacStrings:
    """One file of strings, unpacked if its name ends in ``.gz``.

    The first line has the number of strings and of symbols; each other line is a string, its length first.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "few").write_text("2 3\\n3 0 2 1\\n0\\n")
    ...     read_pautomac(f"{folder}/few").strings[0]
    array([0, 2, 1])
    """
    place = find_file(path, "a file of PAutomaC strings")
    lines = _lines(place)
    where = f"{str(place)!r}, line"
    head = _whole_numbers(lines[0] if lines else "", f"{where} 1")
    if len(head) != 2 or head[1] < 1:
        raise ValueError(
            f"{where} 1 is {_start(lines)!r}; a file of PAutomaC strings begins with two numbers: how many strings, "
            "and how many symbols"
        )
    n, k = head
    if len(lines) - 1 != n:
        raise ValueError(f"{str(place)!r} promises {n} strings and has {len(lines) - 1}: truncated or changed")
    rows = [_whole_numbers(line, f"{where} {i + 2}") for i, line in enumerate(lines[1:])]
    for i, row in enumerate(rows):
        if not row or row[0] != len(row) - 1:
            promised = row[0] if row else "no length"
            raise ValueError(f"{where} {i + 2}: a string of {promised} symbols has {max(len(row) - 1, 0)} of them")
        wrong = next((symbol for symbol in row[1:] if not 0 <= symbol < k), None)
        if wrong is not None:
            raise ValueError(f"{where} {i + 2} has the symbol {wrong}; the first line allows 0 to {k - 1}")
    offsets = np.cumsum([0] + [len(row) - 1 for row in rows])
    values = np.array([symbol for row in rows for symbol in row[1:]], dtype=np.int64)
    return PautomacStrings(Ragged(values, offsets), k)


def _read_solution(place: Path) -> Array:
    lines = _lines(place)
    try:
        expected, *values = (float(line) for line in lines)
    except ValueError as error:
        raise ValueError(f"{str(place)!r} is not a list of probabilities: {error}") from error
    solution = np.array(values)
    if expected != solution.size:
        raise ValueError(f"{str(place)!r} promises {expected:g} probabilities and has {solution.size}: truncated")
    wrong = np.flatnonzero(~((solution >= 0) & (solution <= 1)))
    if wrong.size:
        raise ValueError(f"{str(place)!r}, line {wrong[0] + 2} is {solution[wrong[0]]}, not a probability")
    return solution


def _lines(place: Path) -> list[str]:
    """The lines of a text file, packed or not, of a size that fits into memory."""
    try:
        with gzip.open(place) if place.suffix == ".gz" else place.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise ValueError(f"{str(place)!r} has more than {MOST_BYTES} bytes; PAutomaC has a few million")
            return content.decode("ascii").splitlines()
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{str(place)!r} is truncated or not a gzip file ({error}); fetch it again") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(place)!r} is not a text of numbers ({error})") from error


def _whole_numbers(line: str, where: str) -> list[int]:
    try:
        return [int(word) for word in line.split()]
    except ValueError as error:
        raise ValueError(f"{where} is {line[:60]!r}, not whole numbers") from error


def _start(lines: list[str]) -> str:
    return lines[0][:60] if lines else ""


def _file(folder: Path, name: str) -> Path:
    for candidate in (folder / f"{name}.gz", folder / name):
        if candidate.is_file():
            return candidate
    numbers = sorted({int(file.name.split(".")[0]) for file in folder.glob("*.pautomac.train*") if _is_numbered(file)})
    has = f"it has the problems {', '.join(map(str, numbers))}" if numbers else "it has no *.pautomac.train at all"
    raise FileNotFoundError(f"{str(folder)!r} has neither {name}.gz nor {name}; {has}")


def _is_numbered(file: Path) -> bool:
    return file.name.split(".")[0].isdecimal()

"""Links between the words of two sentences: files of parallel text and of links, and how good links are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import as_array, is_list, one_of, shorten, whole_number
from tacit.data.ragged import Ragged

MAX_WORDS = 10_000
"""Words of a sentence, at the most: a position beyond is a mistake in a file, and would ask for too much memory."""


@dataclass(frozen=True, eq=False)
class Links:
    """Word links of one sentence pair: pairs (source position, target position), counted from 0.

    Parameters
    ----------
    sure : links that any good alignment has
    possible : links that are as good as none; the sure ones are always possible, whether they are listed or not

    >>> Links([(0, 0), (1, 2)], possible=[(1, 1)])
    Links(2 sure, 3 possible)
    """

    sure: Any
    possible: Any = ()

    def __post_init__(self) -> None:
        sure = read_pairs(self.sure)
        object.__setattr__(self, "sure", sure)
        object.__setattr__(self, "possible", sort_pairs(np.concatenate([sure, read_pairs(self.possible)])))

    def __repr__(self) -> str:
        return f"Links({len(self.sure)} sure, {len(self.possible)} possible)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Links):
            return False
        return np.array_equal(self.sure, other.sure) and np.array_equal(self.possible, other.possible)

    def __hash__(self) -> int:
        return hash((self.sure.tobytes(), self.possible.tobytes()))


def read_pairs(pairs: Any) -> Array:
    """(k, 2) different positions, sorted, from whatever lists them.

    >>> read_pairs([(1, 0), (0, 2), (1, 0)])
    array([[0, 2],
           [1, 0]])
    """
    listed = sorted(pairs) if isinstance(pairs, set | frozenset) else pairs
    if isinstance(listed, str | bytes | dict) or not is_list(listed):
        raise ValueError(f"links are pairs (source position, target position), got {shorten(pairs)}")
    table = as_array(listed)
    if table.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
        raise ValueError(f"links are pairs (source position, target position), got {shorten(pairs)}")
    if table.min() < 0 or table.max() >= MAX_WORDS:
        wrong = table[((table < 0) | (table >= MAX_WORDS)).any(axis=1)][0]
        raise ValueError(f"a link is {wrong.tolist()}; positions are counted from 0 and stay below {MAX_WORDS}")
    return sort_pairs(table.astype(np.int64))


def sort_pairs(pairs: Array) -> Array:
    """Different pairs in ascending order."""
    return np.unique(pairs, axis=0).reshape(-1, 2)


LINK = re.compile(r"(\d{1,6})([-p])(\d{1,6})")


def read_parallel(path: str | os.PathLike[str], target: Any = None) -> tuple[list[list[str]], list[list[str]]]:
    """Sentence pairs: lines ``source ||| target``, or two files with a sentence per line. Words stand between spaces.

    A sentence may be empty; nothing in it can be linked.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "text"
    ...     _ = path.write_text("la maison ||| the house\\n")
    ...     read_parallel(path)
    ([['la', 'maison']], [['the', 'house']])
    """
    lines = _lines(path)
    if target is not None:
        others = _lines(target)
        if len(lines) != len(others):
            raise ValueError(f"{path} has {len(lines)} lines and {target} has {len(others)}; they go line by line")
        return [line.split() for line in lines], [line.split() for line in others]
    source, targets = [], []
    for number, line in enumerate(lines, 1):
        parts = line.split("|||")
        if len(parts) != 2:
            raise ValueError(f"{path}, line {number}: 'source ||| target' expected, got {shorten(line)}")
        source.append(parts[0].split())
        targets.append(parts[1].split())
    if not source:
        raise ValueError(f"{path} has no lines; give one sentence pair per line: source ||| target")
    return source, targets


def read_links(path: str | os.PathLike[str], first: int = 1) -> list[Links]:
    """Links, one line per sentence pair: ``i-j`` is a sure link, ``ipj`` a possible one. An empty line has none.

    ``first`` is the number of the first word: 1 as in the files of shared tasks, 0 in Pharaoh's and GIZA's.
    """
    found = []
    for number, line in enumerate(_lines(path), 1):
        sure: list[tuple[int, int]] = []
        possible: list[tuple[int, int]] = []
        for entry in line.split():
            match = LINK.fullmatch(entry)
            pair = (int(match[1]) - first, int(match[3]) - first) if match else None
            if match is None or pair is None or min(pair) < 0 or max(pair) >= MAX_WORDS:
                raise ValueError(
                    f"{path}, line {number}: a link is written i-j (sure) or ipj (possible), words counted from "
                    f"{first}; got {shorten(entry)}"
                )
            (sure if match[2] == "-" else possible).append(pair)
        found.append(Links(sure, possible))
    return found


def format_links(links: Iterable[Any], first: int = 1) -> str:
    """Links as text, one line of ``i-j`` per sentence pair, the words counted from ``first``.

    >>> format_links([[(0, 0), (2, 1)], []])
    '1-1 3-2\\n\\n'
    """
    if isinstance(links, str | bytes | dict) or not is_list(links):
        raise ValueError(f"links are a list with the pairs of every sentence pair, got {shorten(links)}")
    first = whole_number("first", first, 0, 1)
    lines = [" ".join(f"{i + first}-{j + first}" for i, j in read_pairs(pairs).tolist()) for pairs in links]
    return "".join(line + "\n" for line in lines)


def write_links(path: str | os.PathLike[str], links: Iterable[Any], first: int = 1) -> None:
    """Write `format_links` to a file."""
    Path(path).write_text(format_links(links, first), encoding="utf-8")


def check_links(links: Sequence[Links], source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> None:
    """Refuse links to words that their sentences do not have, and name the line."""
    if len(links) != len(source):
        raise ValueError(f"{len(links)} lines of links for {len(source)} sentence pairs; give one line each")
    for number, (own, s, t) in enumerate(zip(links, source, target, strict=True), 1):
        outside = own.possible[(own.possible >= np.array([len(s), len(t)])).any(axis=1)]
        if outside.size:
            i, j = (outside[0] + 1).tolist()
            raise ValueError(
                f"line {number} links word {i} with word {j}, counted from 1, and the sentences have {len(s)} and "
                f"{len(t)} words"
            )


def _lines(path: Any) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text: {error.reason} at byte {error.start}; convert it") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


SYMMETRISATIONS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")


class AlignmentScores(NamedTuple):
    """Measures of links against sure and possible ones (Och & Ney 2003); the error rate is better when it is low."""

    error_rate: float
    precision: float
    recall: float


def alignment_scores(found: Sequence[Any], gold: Sequence[Any]) -> AlignmentScores:
    """Compare links with gold links, over all sentence pairs together.

    With found links A, sure ones S and possible ones P: precision ``|A∩P| / |A|``, recall ``|A∩S| / |S|``, error rate
    ``1 − (|A∩S| + |A∩P|) / (|A| + |S|)``. Where there is nothing to count, precision and recall are 1, the
    error 0.

    >>> alignment_scores([[(0, 0), (1, 2)]], [Links([(0, 0), (1, 1)], possible=[(1, 2)])])
    AlignmentScores(error_rate=0.25, precision=1.0, recall=0.5)
    """
    for name, given in (("found", found), ("gold", gold)):
        if not isinstance(given, list | tuple | np.ndarray | Ragged) or getattr(given, "ndim", 1) == 0:
            raise TypeError(f"{name} holds the links of each sentence pair, a list; got {shorten(given)}")
    if len(found) != len(gold):
        raise ValueError(f"links of {len(found)} sentence pairs, gold links of {len(gold)}; give as many of each")
    n_found = n_sure = found_sure = found_possible = 0
    for own, truth in zip(found, gold, strict=True):
        links = truth if isinstance(truth, Links) else Links(truth)
        pairs = _as_set(own)
        sure, possible = _as_set(links.sure), _as_set(links.possible)
        n_found += len(pairs)
        n_sure += len(sure)
        found_sure += len(pairs & sure)
        found_possible += len(pairs & possible)
    total = n_found + n_sure
    return AlignmentScores(
        1 - (found_sure + found_possible) / total if total else 0.0,
        found_possible / n_found if n_found else 1.0,
        found_sure / n_sure if n_sure else 1.0,
    )


def symmetrise(forward: Any, backward: Any, method: str = "grow-diag-final-and") -> Array:
    """Join the links of one sentence pair that two models of opposite directions found.

    "grow-diag" begins with what both found and adds neighbours that one of them found, while a word of them has no link
    yet; "-final" adds the other links of words without any, "-final-and" only where both words have none (Koehn, Och &
    Marcu 2003).

    >>> symmetrise([(0, 0), (1, 1)], [(0, 0), (2, 1)], "intersection").tolist()
    [[0, 0]]
    """
    one_of("method", method, SYMMETRISATIONS)
    first, second = _as_set(forward), _as_set(backward)
    if method == "union":
        return _as_array(first | second)
    kept = first & second
    if method == "intersection":
        return _as_array(kept)
    either = sorted(first | second)
    sources, targets = {i for i, _ in kept}, {j for _, j in kept}

    def add(i: int, j: int) -> None:
        kept.add((i, j))
        sources.add(i)
        targets.add(j)

    is_growing = True
    while is_growing:
        is_growing = False
        for i, j in either:
            if (i, j) in kept or (i in sources and j in targets):
                continue
            if any((i + a, j + b) in kept for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b):
                add(i, j)
                is_growing = True
    if method != "grow-diag":
        for links in (first, second):
            for i, j in sorted(links):
                free = (i not in sources, j not in targets)
                if all(free) if method.endswith("and") else any(free):
                    add(i, j)
    return _as_array(kept)


def _as_set(pairs: Any) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in read_pairs(pairs)}


def _as_array(pairs: set[tuple[int, int]]) -> Array:
    return sort_pairs(np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2))

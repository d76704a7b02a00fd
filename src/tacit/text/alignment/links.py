"""Word-alignment links: files of parallel text and of links, alignment error rate, symmetrisation."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import as_array, entries, file_path, is_list, one_of, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.reading import MAX_BYTES
from tacit.data.text_files import TextReader

MAX_WORDS = 10_000
"""The longest sentence, in words. A larger position is a mistake in a file, and would take too much memory."""


@dataclass(frozen=True, eq=False)
class Links:
    """Word links of one sentence pair: pairs (source position, target position), counted from 0.

    Parameters
    ----------
    sure : links that an alignment must have
    possible : links that are neither required nor wrong; sure links are always possible, listed or not

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
    """(k, 2) positions, sorted, without duplicates.

    >>> read_pairs([(1, 0), (0, 2), (1, 0)])
    array([[0, 2],
           [1, 0]])
    """
    listed = sorted(pairs) if isinstance(pairs, set | frozenset) else pairs
    is_listed = not isinstance(listed, str | bytes | dict) and is_list(listed)
    table = as_array(listed) if is_listed else np.zeros(1)
    if table.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
        raise ValueError(f"links must be pairs (source position, target position), got {shorten(pairs)}")
    if table.min() < 0 or table.max() >= MAX_WORDS:
        wrong = table[((table < 0) | (table >= MAX_WORDS)).any(axis=1)][0]
        raise ValueError(f"the positions of a link must be from 0 to {MAX_WORDS - 1}, got {wrong.tolist()}")
    return sort_pairs(table.astype(np.int64))


def sort_pairs(pairs: Array) -> Array:
    """Different pairs in ascending order."""
    return np.unique(pairs, axis=0).reshape(-1, 2)


LINK = re.compile(r"(\d{1,6})([-p])(\d{1,6})")

NO_LINKS = Links(())
"""Of a sentence pair without links."""

FIELDS_PER_LINE = 32
"""Fields that a line of links counts as: what its arrays take."""


def read_parallel(
    path: str | os.PathLike[str], target: Any = None, *, max_bytes: int = MAX_BYTES
) -> tuple[list[list[str]], list[list[str]]]:
    """Read sentence pairs: lines ``source ||| target``, or two files with one sentence per line.

    A tab may stand for ``|||``. Words are separated by spaces. A sentence may be empty; its pair is never linked. Files
    that end in ``.gz`` are unpacked; at most ``max_bytes`` of each are read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "text"
    ...     _ = path.write_text("la maison ||| the house\\n")
    ...     read_parallel(path)
    ([['la', 'maison']], [['the', 'house']])
    """
    seen: dict[str, str] = {}
    if target is not None:
        readers = [_open(one, max_bytes) for one in (path, target)]
        lines, others = ([_share(reader.split(line), seen) for _, line in reader.lines()] for reader in readers)
        if len(lines) != len(others):
            raise ValueError(f"{path} has {len(lines)} lines, but {target} has {len(others)}; give one line per pair")
        return lines, others
    source, targets = [], []
    reader = _open(path, max_bytes)
    for number, line in reader.lines():
        parts = line.split("|||" if "|||" in line else "\t") if line.strip() else ["", ""]
        if len(parts) != 2:
            raise ValueError(
                f"{path}, line {number} must be 'source ||| target', or have a tab between the two; got {shorten(line)}"
            )
        source.append(_share(reader.split(parts[0]), seen))
        targets.append(_share(reader.split(parts[1]), seen))
    if not source:
        raise ValueError(f"{path} is empty; give one sentence pair per line: source ||| target")
    return source, targets


def _share(words: list[str], seen: dict[str, str]) -> list[str]:
    """The words, each as the same object wherever it occurs: a long text takes a fifth of the memory."""
    return [seen.setdefault(word, word) for word in words]


def read_links(path: str | os.PathLike[str], first: int = 1, *, max_bytes: int = MAX_BYTES) -> list[Links]:
    """Read one line of links per sentence pair: ``i-j`` is a sure link, ``ipj`` a possible one.

    ``first`` is the number of the first word: 1 as in the files of shared tasks, 0 as in those of Pharaoh and GIZA. At
    most ``max_bytes`` are read.
    """
    found = []
    reader = _open(path, max_bytes)
    for number, line in reader.lines():
        if not line.strip():
            found.append(NO_LINKS)
            continue
        reader.count_fields(FIELDS_PER_LINE)
        sure: list[tuple[int, int]] = []
        possible: list[tuple[int, int]] = []
        for entry in reader.split(line):
            match = LINK.fullmatch(entry)
            pair = (int(match[1]) - first, int(match[3]) - first) if match else None
            if match is None or pair is None or min(pair) < 0 or max(pair) >= MAX_WORDS:
                raise ValueError(
                    f"{path}, line {number}: {shorten(entry)} is not a link; write i-j (sure) or ipj (possible), words "
                    f"counted from {first}"
                )
            (sure if match[2] == "-" else possible).append(pair)
        found.append(Links(sure, possible))
    return found


def format_links(links: Iterable[Any], first: int = 1) -> str:
    """Format links as text: one line of ``i-j`` per sentence pair, words counted from ``first``.

    >>> format_links([[(0, 0), (2, 1)], []])
    '1-1 3-2\\n\\n'
    """
    listed = entries("links", links, "a list with one entry per sentence pair")
    first = whole_number("first", first, 0, 1)
    lines = [" ".join(f"{i + first}-{j + first}" for i, j in read_pairs(pairs).tolist()) for pairs in listed]
    return "".join(line + "\n" for line in lines)


def write_links(path: str | os.PathLike[str], links: Iterable[Any], first: int = 1) -> None:
    """Write `format_links` to a file."""
    Path(path).write_text(format_links(links, first), encoding="utf-8")


def check_links(
    links: Sequence[Links],
    source: Sequence[Sequence[str]],
    target: Sequence[Sequence[str]],
    name: str = "",
    first: int = 1,
) -> None:
    """Refuse links to words that their sentences do not have; name the line, and the file if it is known."""
    if len(links) != len(source):
        raise ValueError(f"there are {len(links)} lines of links for {len(source)} sentence pairs; give one per pair")
    for number, (own, s, t) in enumerate(zip(links, source, target, strict=True), 1):
        outside = own.possible[(own.possible >= np.array([len(s), len(t)])).any(axis=1)]
        if outside.size:
            i, j = (outside[0] + first).tolist()
            raise ValueError(
                f"{name + ', ' if name else ''}line {number} links word {i} to word {j}, counted from {first}, but its "
                f"sentences have {len(s)} and {len(t)} words"
            )


def _open(path: Any, max_bytes: Any) -> TextReader:
    return TextReader(file_path("path", path), max_bytes=max_bytes)


SYMMETRISATIONS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")


class AlignmentScores(NamedTuple):
    """Alignment error rate (lower is better), precision and recall (Och & Ney 2003)."""

    error_rate: float
    precision: float
    recall: float


def alignment_scores(found: Sequence[Any], gold: Sequence[Any]) -> AlignmentScores:
    """Compare links with gold links: alignment error rate, precision and recall over all sentence pairs.

    With found links A, sure ones S and possible ones P: precision ``|A∩P| / |A|``, recall ``|A∩S| / |S|``, error rate
    ``1 − (|A∩S| + |A∩P|) / (|A| + |S|)``. If a denominator is 0, precision and recall are 1 and the error rate is 0.

    >>> alignment_scores([[(0, 0), (1, 2)]], [Links([(0, 0), (1, 1)], possible=[(1, 2)])])
    AlignmentScores(error_rate=0.25, precision=1.0, recall=0.5)
    """
    for name, given in (("found", found), ("gold", gold)):
        if not isinstance(given, list | tuple | np.ndarray | Ragged) or getattr(given, "ndim", 1) == 0:
            raise TypeError(f"{name} must be a list with the links of each sentence pair, got {shorten(given)}")
    if len(found) != len(gold):
        raise ValueError(f"found has {len(found)} sentence pairs, but gold has {len(gold)}; give as many of each")
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
    """Join the links of one sentence pair that two models of opposite directions found (Koehn, Och & Marcu 2003).

    "grow-diag" starts from the links that both found. It adds neighbouring links that one of them found, as long as
    either word is not yet linked. "-final" then adds other links with an unlinked word, "-final-and" only those with
    two.

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

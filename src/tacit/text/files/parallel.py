"""Files of parallel text and of word links."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.parameters import is_list, shorten, whole_number
from tacit.text.links import MAX_WORDS, Links, read_pairs

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

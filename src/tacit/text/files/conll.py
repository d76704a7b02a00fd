"""CoNLL-2012 files: one token per line, mentions as brackets in the last column."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, shorten
from tacit.text.files.documents import Document, read_documents

BEGIN = re.compile(r"#begin document \((?P<name>.*)\);(?: part (?P<part>\S+))?\s*$")
BRACKET = re.compile(r"^(\()?(\d+)(\))?$")
BLANKS = ("-", "_", "*", "")
"""What the last column may have where there is no mention."""

WORD_COLUMN = 3
LEAST_COLUMNS = 5


def read_conll(paths: Any) -> list[Document]:
    """The documents of CoNLL-2012 files, one after the other, with their mentions and clusters.

    Mentions come in the order of their starts, of two with the same start the longer first. Clusters are numbered in
    the order in which they occur, so that the numbers in a file mean nothing beyond being equal or not. The word is
    the fourth column, brackets such as ``(12|(3)`` are the last one; both tabs and blanks may separate columns.

    Parameters
    ----------
    paths : one path, or a list of them

    >>> import tempfile, pathlib
    >>> lines = ["#begin document (tale); part 0", *(f"tale 0 {i} {word} - {last}" for i, (word, last) in
    ...          enumerate([("Alice", "(4)"), ("saw", "-"), ("her", "(9|(4)"), ("sister", "9)")])), "", "#end document"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (path := pathlib.Path(folder, "tale.conll")).write_text("\\n".join(lines))
    ...     tale = read_conll(path)[0]
    >>> tale.name, tale.mentions.tolist(), tale.clusters.tolist()
    ('tale', [[0, 1], [2, 4], [2, 3]], [0, 1, 0])
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    return [document for path in listed for document in _read_file(file_path("path", path))]


def write_conll(path: Any, documents: Any) -> None:
    """Write documents with their clusters to one CoNLL-2012 file.

    What the other columns of a document held when `read_conll` read it is written as it was. Clusters are numbered in
    the order in which they occur.
    """
    lines = [line for document in read_documents(documents) for line in conll_lines(document)]
    file_path("path", path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def conll_lines(document: Document) -> Iterator[str]:
    """The lines of one document."""
    if document.clusters is None:
        raise ValueError(f"document {shorten(document.name)} has no clusters to write; see Document.with_clusters")
    brackets = _brackets(document)
    yield f"#begin document ({document.name}); part {document.part}"
    place = 0
    for sentence in document.sentences:
        for i, token in enumerate(sentence):
            front = f"{document.name or 'document'}\t{document.part}\t{i}\t{_one_word(token)}\t_\t"
            front = front if document.lines is None else document.lines[place]
            yield front + ("|".join(brackets[place]) or document.blank)
            place += 1
        yield ""
    yield "#end document"


class _Lines(NamedTuple):
    """One document as its file has it: a name, a part, and the numbered lines of every sentence."""

    name: str
    part: str
    sentences: list[list[tuple[int, str]]]


def _read_file(path: Path) -> Iterator[Document]:
    where = shorten(str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is no text in UTF-8 (byte {error.start}); convert it") from error
    found = False
    for part in _split(text.splitlines(), where):
        found = True
        yield _document(part, where)
    if not found:
        raise ValueError(f"{where} holds no document: a CoNLL-2012 file has lines '#begin document (name); part 0'")


def _split(lines: Sequence[str], where: str) -> Iterator[_Lines]:
    now: _Lines | None = None
    for number, line in enumerate(lines, 1):
        if line.startswith("#begin document"):
            if now is not None:
                raise ValueError(
                    f"{where}, line {number}: a document begins inside of another; '#end document' is missing"
                )
            match = BEGIN.match(line)
            if match is None:
                raise ValueError(f"{where}, line {number}: {shorten(line)}; write '#begin document (name); part 0'")
            now = _Lines(match["name"], match["part"] or "0", [[]])
        elif line.startswith("#end document"):
            if now is None:
                raise ValueError(f"{where}, line {number}: '#end document' without a beginning")
            yield now
            now = None
        elif line.startswith("#") and len(line.split()) < LEAST_COLUMNS:
            continue
        elif not line.strip():
            if now is not None and now.sentences[-1]:
                now.sentences.append([])
        elif now is None:
            raise ValueError(f"{where}, line {number}: {shorten(line)} stands outside of a document")
        else:
            now.sentences[-1].append((number, line))
    if now is not None:
        raise ValueError(f"{where}: document {shorten(now.name)} has no '#end document'; the file may be cut")


def _document(part: _Lines, where: str) -> Document:
    sentences: list[list[str]] = []
    fronts: list[str] = []
    spans: list[tuple[int, int, int]] = []
    blank = "-"
    for lines in part.sentences:
        words = []
        opened: dict[str, list[int]] = {}
        for number, line in lines:
            word, front, last = _columns(line, f"{where}, line {number}")
            place = len(fronts)
            words.append(word)
            fronts.append(front)
            if last in BLANKS:
                blank = last
                continue
            # what closes here was opened before: a mention of this token alone is written (3)
            for bracket in sorted(last.split("|"), key=lambda bracket: bracket.startswith("(")):
                match = BRACKET.match(bracket)
                if match is None or not (match[1] or match[3]):
                    raise ValueError(
                        f"{where}, line {number}: {shorten(last)} is no column of mentions, like (3, (3) or 3)"
                    )
                if match[1]:
                    opened.setdefault(match[2], []).append(place)
                if match[3]:
                    if not opened.get(match[2]):
                        raise ValueError(
                            f"{where}, line {number}: {shorten(bracket)} closes a mention that is not open"
                        )
                    spans.append((opened[match[2]].pop(), place + 1, int(match[2])))
        left = [number for number, starts in opened.items() if starts]
        if left:
            raise ValueError(
                f"{where}, line {lines[-1][0]}: a mention ({left[0]} is still open where its sentence ends"
            )
        if words:
            sentences.append(words)
    spans.sort(key=lambda span: (span[0], -span[1]))
    table = np.array(spans, dtype=object).reshape(-1, 3)
    seen: dict[int, int] = {}
    clusters = [seen.setdefault(number, len(seen)) for number in table[:, 2]]
    mentions = table[:, :2].astype(np.int64)
    return Document(sentences, mentions, clusters, part.name, part.part, tuple(fronts), blank)


def _columns(line: str, where: str) -> tuple[str, str, str]:
    """The word, everything in front of the last column, and the last column."""
    if "\t" in line:
        columns = line.split("\t")
        front, last = line[: len(line) - len(columns[-1])], columns[-1].strip()
    else:
        columns = line.split()
        last = columns[-1]
        front = line[: line.rstrip().rfind(last)]
    if len(columns) < LEAST_COLUMNS:
        raise ValueError(f"{where}: {len(columns)} columns, at least {LEAST_COLUMNS} are needed: {shorten(line)}")
    return columns[WORD_COLUMN], front, last


def _brackets(document: Document) -> list[list[str]]:
    """The brackets of every token: what closes, what opens and closes, what opens, the outermost first."""
    numbers = _numbered(document.clusters)
    closing: list[list[tuple[int, str]]] = [[] for _ in document.tokens]
    opening: list[list[tuple[int, str]]] = [[] for _ in document.tokens]
    for (start, end), number in zip(document.mentions.tolist(), numbers, strict=True):
        if end - start == 1:
            opening[start].append((-end, f"({number})"))
        else:
            opening[start].append((-end, f"({number}"))
            closing[end - 1].append((-start, f"{number})"))
    return [
        [text for _, text in sorted(closes, key=_first)] + [text for _, text in sorted(opens, key=_first)]
        for closes, opens in zip(closing, opening, strict=True)
    ]


def _first(entry: tuple[int, str]) -> int:
    return entry[0]


def _numbered(clusters: Array) -> Iterable[int]:
    seen: dict[int, int] = {}
    return [seen.setdefault(number, len(seen)) for number in clusters.tolist()]


def _one_word(token: str) -> str:
    """A token as a column can hold it."""
    return "_".join(token.split()) or "_"

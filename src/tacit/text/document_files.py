"""Files of documents with mentions: CoNLL-2012 and JSON lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.lines import json_line
from tacit.data.parameters import entries, file_path, reason, shorten
from tacit.data.reading import MAX_BYTES, read_text
from tacit.data.text_files import TextReader, parse_json, refuse_many_values
from tacit.text.documents import Document, first_occurrence, read_documents

BEGIN = re.compile(r"#begin document \((?P<name>.*)\);(?: part (?P<part>\S+))?\s*$")
BRACKET = re.compile(r"^(\()?(\d+)(\))?$")
BLANKS = ("-", "_", "*", "")
"""The last column of tokens outside of mentions."""

WORD_COLUMN = 3
LEAST_COLUMNS = 5
FIELDS_PER_TOKEN = 4
"""Fields that a line of a token counts as: what the word and the other columns take."""


def read_conll(paths: Any, *, max_bytes: int = MAX_BYTES) -> list[Document]:
    """Read documents with mentions and clusters from CoNLL-2012 files.

    Mentions are sorted by start, longer ones first. Clusters are numbered in the order in which they occur. The word is
    the fourth column, brackets such as ``(12|(3)`` are the last one; tabs or blanks separate columns.

    Parameters
    ----------
    paths : one path, or a list of them; files that end in ``.gz`` are unpacked
    max_bytes : bytes that are read of each file at the most

    >>> import tempfile, pathlib
    >>> lines = ["#begin document (tale); part 0", *(f"tale 0 {i} {word} - {last}" for i, (word, last) in
    ...          enumerate([("Alice", "(4)"), ("saw", "-"), ("her", "(9|(4)"), ("sister", "9)")])), "", "#end document"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (path := pathlib.Path(folder, "tale.conll")).write_text("\\n".join(lines))
    ...     tale = read_conll(path)[0]
    >>> tale.name, tale.mentions.tolist(), tale.clusters.tolist()
    ('tale', [[0, 1], [2, 4], [2, 3]], [0, 1, 0])
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else entries("paths", paths, "a path, or a list of paths")
    return [document for path in listed for document in _read_file(file_path("path", path), max_bytes)]


def write_conll(path: Any, documents: Any) -> None:
    """Write documents with their clusters to one CoNLL-2012 file.

    Documents of `read_conll` keep their other columns. Clusters are numbered in the order in which they occur.
    """
    lines = [line for document in read_documents(documents) for line in conll_lines(document)]
    file_path("path", path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def conll_lines(document: Document) -> Iterator[str]:
    """The lines of one document in a CoNLL-2012 file."""
    if document.clusters is None:
        raise ValueError(f"the clusters of document {shorten(document.name)} are unknown; see Document.with_clusters")
    brackets = _brackets(document)
    yield f"#begin document ({document.name}); part {document.part}"
    t = 0
    for sentence in document.sentences:
        for i, token in enumerate(sentence):
            word = "_".join(token.split()) or "_"
            front = f"{document.name or 'document'}\t{document.part}\t{i}\t{word}\t_\t"
            front = front if document.lines is None else document.lines[t]
            yield front + ("|".join(brackets[t]) or document.blank)
            t += 1
        yield ""
    yield "#end document"


class _Lines(NamedTuple):
    """One document of a file: name, part, and the numbered lines of every sentence."""

    name: str
    part: str
    sentences: list[list[tuple[int, str]]]


def _read_file(path: Path, max_bytes: Any) -> list[Document]:
    reader, where = TextReader(path, max_bytes=max_bytes), shorten(str(path))
    found = [_from_lines(part, where) for part in _split(reader, where)]
    if not found:
        raise ValueError(f"{where} must have lines '#begin document (name); part 0', as CoNLL-2012 files do")
    return found


def _split(reader: TextReader, where: str) -> Iterator[_Lines]:
    now: _Lines | None = None
    for number, line in reader.lines(rare_ends=True):
        if line.startswith("#begin document"):
            if now is not None:
                raise ValueError(f"{where}, line {number}: '#end document' is missing before '#begin document'")
            match = BEGIN.match(line)
            if match is None:
                raise ValueError(f"{where}, line {number}: write '#begin document (name); part 0', got {shorten(line)}")
            now = _Lines(match["name"], match["part"] or "0", [[]])
        elif line.startswith("#end document"):
            if now is None:
                raise ValueError(f"{where}, line {number}: '#begin document' is missing before '#end document'")
            yield now
            now = None
        elif line.startswith("#") and len(line.split()) < LEAST_COLUMNS:
            continue
        elif not line.strip():
            if now is not None and now.sentences[-1]:
                now.sentences.append([])
        elif now is None:
            raise ValueError(
                f"{where}, line {number}: {shorten(line)} is outside of a document; give CoNLL-2012, where "
                "lines '#begin document (name); part 0' and '#end document' are around each one"
            )
        else:
            reader.count_fields(FIELDS_PER_TOKEN)
            now.sentences[-1].append((number, line))
    if now is not None:
        raise ValueError(f"{where}: '#end document' of {shorten(now.name)} is missing; the file may be truncated")


def _from_lines(part: _Lines, where: str) -> Document:
    sentences: list[list[str]] = []
    fronts: list[str] = []
    spans: list[tuple[int, int, int]] = []
    blank = "-"
    for lines in part.sentences:
        words = []
        opened: dict[str, list[int]] = {}
        for number, line in lines:
            word, front, last = _columns(line, f"{where}, line {number}")
            t = len(fronts)
            words.append(word)
            fronts.append(front)
            if last in BLANKS:
                blank = last
                continue
            # closing brackets belong to earlier tokens: a mention of this token alone is written (3)
            for bracket in sorted(last.split("|"), key=lambda bracket: bracket.startswith("(")):
                match = BRACKET.match(bracket)
                if match is None or not (match[1] or match[3]):
                    raise ValueError(f"{where}, line {number}: {shorten(last)} must be brackets like (3, (3) or 3)")
                if match[1]:
                    opened.setdefault(match[2], []).append(t)
                if match[3]:
                    if not opened.get(match[2]):
                        raise ValueError(f"{where}, line {number}: the opening bracket of {bracket!r} is missing")
                    spans.append((opened[match[2]].pop(), t + 1, int(match[2])))
        left = [number for number, starts in opened.items() if starts]
        if left:
            raise ValueError(f"{where}, line {lines[-1][0]}: the sentence ends before the mention ({left[0]} is closed")
        if words:
            sentences.append(words)
    spans.sort(key=lambda span: (span[0], -span[1]))
    table = np.array(spans, dtype=object).reshape(-1, 3)
    seen: dict[int, int] = {}
    clusters = [seen.setdefault(number, len(seen)) for number in table[:, 2]]
    mentions = table[:, :2].astype(np.int64)
    return Document(sentences, mentions, clusters, part.name, part.part, tuple(fronts), blank)


def _columns(line: str, where: str) -> tuple[str, str, str]:
    """The word, everything before the last column, and the last column."""
    if "\t" in line:
        columns = line.split("\t")
        front, last = line[: len(line) - len(columns[-1])], columns[-1].strip()
    else:
        columns = line.split()
        last = columns[-1]
        front = line[: line.rstrip().rfind(last)]
    if len(columns) < LEAST_COLUMNS:
        raise ValueError(f"{where} must have at least {LEAST_COLUMNS} columns, got {len(columns)}: {shorten(line)}")
    return columns[WORD_COLUMN], front, last


def _brackets(document: Document) -> list[list[str]]:
    """The brackets of every token: closing ones first, then opening ones, the longest mention first."""
    numbers = first_occurrence(document.clusters).tolist()
    closing: list[list[tuple[int, str]]] = [[] for _ in document.tokens]
    opening: list[list[tuple[int, str]]] = [[] for _ in document.tokens]
    for (start, end), number in zip(document.mentions.tolist(), numbers, strict=True):
        if end - start == 1:
            opening[start].append((-end, f"({number})"))
        else:
            opening[start].append((-end, f"({number}"))
            closing[end - 1].append((-start, f"{number})"))
    return [
        [text for _, text in sorted(closes, key=itemgetter(0))] + [text for _, text in sorted(opens, key=itemgetter(0))]
        for closes, opens in zip(closing, opening, strict=True)
    ]


def read_json(path: Any, *, max_bytes: int = MAX_BYTES) -> list[Document]:
    """Read documents from a JSON file: one object, a list of objects, or one object per line.

    The keys are those of neural coreference systems: ``sentences`` (lists of tokens), ``clusters`` (lists of mentions)
    and ``doc_key``. A mention is the first and the last of its tokens, **both included**, counted through the document.
    ``mentions`` lists mentions without a cluster; a file without ``clusters`` has only those. Files that end in ``.gz``
    are unpacked; at most ``max_bytes`` are read.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tale.json")
    ...     write_json(path, [Document([["Alice", "saw", "her", "sister"]], [(0, 1), (2, 4), (2, 3)], [0, 1, 0])])
    ...     tale = read_json(path)[0]
    >>> tale.mentions.tolist(), tale.clusters.tolist()
    ([[0, 1], [2, 4], [2, 3]], [0, 1, 0])
    """
    file = file_path("path", path)
    where = shorten(str(file))
    text = read_text(file, max_bytes)
    refuse_many_values(text, where, max_bytes)
    try:
        found = parse_json(text, where, max_bytes)
        entries = found if isinstance(found, list) else [found]
    except ValueError:
        del text
        lines = TextReader(file, max_bytes=max_bytes).lines(rare_ends=True)
        try:
            entries = [parse_json(line, f"line {number}") for number, line in lines if line.strip()]
        except ValueError as error:
            raise ValueError(f"{where} is neither JSON nor JSON lines: {reason(error)}") from error
    if not entries:
        raise ValueError(f"{where} is empty; give at least one document")
    return [_from_json(entry, f"{where}, document {i}") for i, entry in enumerate(entries)]


def write_json(path: Any, documents: Any) -> None:
    """Write documents as JSON lines, in the form that `read_json` takes."""
    lines = [json_line(_entry(document)) for document in read_documents(documents)]
    file_path("path", path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _entry(document: Document) -> dict[str, Any]:
    spans = [[start, end - 1] for start, end in document.mentions.tolist()]
    entry: dict[str, Any] = {"doc_key": document.name, "sentences": [list(s) for s in document.sentences]}
    if document.clusters is None:
        return entry | {"mentions": spans}
    groups: dict[int, list[list[int]]] = {}
    for span, number in zip(spans, document.clusters.tolist(), strict=True):
        groups.setdefault(number, []).append(span)
    return entry | {"clusters": list(groups.values())}


def _from_json(entry: Any, where: str) -> Document:
    if not isinstance(entry, dict) or "sentences" not in entry:
        raise ValueError(f"{where} must have 'sentences', a list of lists of tokens; got {shorten(entry)}")
    if "clusters" not in entry and "mentions" not in entry:
        raise ValueError(f"{where} must have 'clusters' or 'mentions'")
    groups = [*_read_list(entry, "clusters", where), *([span] for span in _read_list(entry, "mentions", where))]
    spans, numbers = [], []
    for number, group in enumerate(groups):
        for span in group if isinstance(group, list) else [group]:
            is_pair = (
                isinstance(span, list) and len(span) == 2 and all(type(t) is int and abs(t) < 1 << 62 for t in span)
            )
            if not is_pair:
                raise ValueError(f"{where}: a mention must be [first token, last token], got {shorten(span)}")
            spans.append((span[0], span[1] + 1))
            numbers.append(number)
    order = sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1]))
    mentions = np.array([spans[i] for i in order], dtype=np.int64).reshape(-1, 2)
    clusters = [numbers[i] for i in order] if "clusters" in entry else None
    return Document(entry["sentences"], mentions, clusters, str(entry.get("doc_key", "")))


def _read_list(entry: dict[str, Any], key: str, where: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{where}: {key} must be a list, got {shorten(value)}")
    return value

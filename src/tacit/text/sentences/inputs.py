"""Documents from files of JSON lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

from tacit.data.parameters import shorten
from tacit.text.sentences.vectors import split_sentences


class DocumentFile(NamedTuple):
    """Documents, cut into sentences, with their labels (None where there is none) and names."""

    documents: list[list[str]]
    labels: list[str | None]
    names: list[str]


def read_document_file(path: Path) -> DocumentFile:
    """Read lines of JSON: an object with "text" or "sentences", with "label" unless it is unknown, perhaps with "id".

    A line whose label is missing or null is not learned from, but gets reasons too. Files may be gzipped.
    """
    opener: Any = gzip.open if path.suffix == ".gz" else open
    documents, labels, names = [], [], []
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"{path}, line {number} is no JSON: {shorten(line.strip())}") from error
                documents.append(_sentences(entry, path, number))
                label = entry.get("label")
                if label is not None and not isinstance(label, str | int | float):
                    raise ValueError(f"{path}, line {number}: a label is text or a number, got {shorten(label)}")
                labels.append(None if label is None else str(label))
                names.append(str(entry.get("id", f"document {number}")))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text: {error.reason} at byte {error.start}; convert it") from error
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is no complete gzip file: {error}") from error
    if not documents:
        raise ValueError(f'{path} has no documents; give one JSON object per line, with "text" and "label"')
    return DocumentFile(documents, labels, names)


def _sentences(entry: Any, path: Path, number: int) -> list[str]:
    given = entry.get("sentences", entry.get("text")) if isinstance(entry, dict) else None
    if isinstance(given, str):
        return split_sentences(given)
    if isinstance(given, list) and all(isinstance(sentence, str) for sentence in given):
        return list(given)
    raise ValueError(
        f'{path}, line {number}: an object with "text" (a string) or "sentences" (a list of strings) expected, got '
        f"{shorten(entry)}"
    )

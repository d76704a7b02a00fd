"""Documents as JSON: one object per line, or a list of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tacit.data.parameters import file_path, shorten
from tacit.text.files.documents import Document, read_documents


def read_json(path: Any) -> list[Document]:
    """The documents of a JSON file: one object, a list of objects, or one object per line.

    The keys are those that neural coreference systems use: ``sentences`` (lists of tokens), ``clusters`` (lists of
    mentions, a mention being its first and its last token among all tokens of the document, **both included**) and
    ``doc_key``. ``mentions`` lists mentions without a cluster; a file without ``clusters`` has only those.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tale.json")
    ...     write_json(path, [Document([["Alice", "saw", "her", "sister"]], [(0, 1), (2, 4), (2, 3)], [0, 1, 0])])
    ...     tale = read_json(path)[0]
    >>> tale.mentions.tolist(), tale.clusters.tolist()
    ([[0, 1], [2, 4], [2, 3]], [0, 1, 0])
    """
    source = file_path("path", path)
    where = shorten(str(source))
    try:
        text = source.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is no text in UTF-8 (byte {error.start}); convert it") from error
    try:
        try:
            found = json.loads(text)
            entries = found if isinstance(found, list) else [found]
        except json.JSONDecodeError:
            entries = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where} is neither JSON nor JSON lines: {error}") from error
    if not entries:
        raise ValueError(f"{where} holds no document")
    return [_document(entry, f"{where}, document {i}") for i, entry in enumerate(entries)]


def write_json(path: Any, documents: Any) -> None:
    """Write documents as JSON lines, in the form that `read_json` takes."""
    lines = [json.dumps(_entry(document), ensure_ascii=False) for document in read_documents(documents)]
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


def _document(entry: Any, where: str) -> Document:
    if not isinstance(entry, dict) or "sentences" not in entry:
        raise ValueError(f"{where} is {shorten(entry)}; it needs the key 'sentences', a list of lists of tokens")
    if "clusters" not in entry and "mentions" not in entry:
        raise ValueError(f"{where} has neither 'clusters' nor 'mentions'")
    groups = [*_listed(entry, "clusters", where), *([span] for span in _listed(entry, "mentions", where))]
    spans, numbers = [], []
    for number, group in enumerate(groups):
        for span in group if isinstance(group, list) else [group]:
            is_pair = isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)
            if not is_pair:
                raise ValueError(f"{where} has the mention {shorten(span)}; it is [first token, last token]")
            spans.append((span[0], span[1] + 1))
            numbers.append(number)
    order = sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1]))
    mentions = np.array([spans[i] for i in order], dtype=np.int64).reshape(-1, 2)
    clusters = [numbers[i] for i in order] if "clusters" in entry else None
    return Document(entry["sentences"], mentions, clusters, str(entry.get("doc_key", "")))


def _listed(entry: dict[str, Any], key: str, where: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{where}: {key} is {shorten(value)}, not a list")
    return value

"""Documents as sentences: their bags of words, and the files that they are read from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.data.parameters import entries, has_length, shorten
from tacit.data.ragged import Ragged
from tacit.data.reading import MAX_BYTES
from tacit.data.specs import check_parameters, estimator, parameter, switch, whole
from tacit.data.text_files import TextReader, parse_json, read_csv
from tacit.text.raw_text import RawText, is_raw_text, read_raw_text, split_text

WORD = re.compile(r"\w+|[^\w\s]+")

FIELDS_PER_DOCUMENT = 8
"""Fields that a document of a file counts as, beside its sentences: what its name and lists take."""

MAX_LETTERS = 50
"""The longest word that is counted."""


@estimator
class SentenceVectors(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Bags of words of a document and of each of its sentences, as rows of norm 1.

    A word that occurs weighs log((1 + n) / (1 + its documents)) + 1 of n documents (idf).

    A document is a text, which is split into sentences, or a list of sentences. The first row of its table is the whole
    document; the others are its sentences. A sentence without known words is a row of zeros.

    Parameters
    ----------
    min_documents : a word counts if this many documents have it
    with_lengths : put the number of words in front of every row, for ``Sentences(budget="words")``

    >>> vectors = SentenceVectors(min_documents=1)
    >>> vectors.fit_transform(["A fine film. See it!", ["Dull."]])
    Ragged(2 samples, 2–3 rows each; 5 × 8 sparse float64)
    """

    min_documents: int = parameter(whole(), default=2)
    with_lengths: bool = parameter(switch, default=False)

    def fit(self, X: Any, y: Any = None) -> SentenceVectors:
        """Learn the vocabulary."""
        check_parameters(self)
        least = int(self.min_documents)
        counts: Counter[str] = Counter()
        documents = read_documents(X)
        for sentences in documents:
            counts.update({word for sentence in sentences for word in split_words(sentence)})
        self.words_ = sorted(word for word, count in counts.items() if count >= least)
        if not self.words_:
            raise ValueError(f"no word occurs in {least} or more of {len(documents)} documents; lower min_documents")
        self.idf_ = 1.0 + np.log((1 + len(documents)) / (1 + np.array([counts[word] for word in self.words_])))
        return self

    def transform(self, X: Any) -> Ragged:
        """Make one table per document."""
        check_is_fitted(self, "words_")
        numbers = {word: number for number, word in enumerate(self.words_)}
        indices: list[int] = []
        indptr, offsets, lengths = [0], [0], []
        for sentences in read_documents(X):
            words = [split_words(sentence) for sentence in sentences]
            for own in ([word for sentence in words for word in sentence], *words):
                indices += sorted({numbers[word] for word in own if word in numbers})
                indptr.append(len(indices))
                lengths.append(len(own))
            offsets.append(offsets[-1] + 1 + len(sentences))
        each = np.diff(indptr)
        values = self.idf_[np.array(indices, dtype=np.int64)]
        squares = np.concatenate([[0.0], np.cumsum(values**2)])
        norms = np.sqrt(np.maximum(np.diff(squares[indptr]), 1.0))
        values = values / np.repeat(norms, each)
        table = sparse.csr_array(
            (values, np.array(indices, np.int32), np.array(indptr, np.int32)), shape=(len(each), len(self.words_))
        )
        if self.with_lengths:
            column = sparse.csr_array(np.array(lengths, dtype=np.float64)[:, None])
            table = sparse.csr_array(sparse.hstack([column, table], format="csr"))
        return Ragged(table, np.array(offsets))


def read_documents(X: Any) -> list[list[str]]:
    """Read documents as lists of sentences; texts are split.

    >>> read_documents(["One. Two? Three", ["as it is"]])
    [['One.', 'Two?', 'Three'], ['as it is']]
    """
    found = []
    for i, given in enumerate(entries("documents", X, "a list of texts or of lists of sentences")):
        if isinstance(given, str):
            found.append(find_sentences(given, f"document {i}")[0])
        elif has_length(given) and not isinstance(given, bytes | dict) and all(isinstance(s, str) for s in given):
            found.append([str(sentence) for sentence in given])
        else:
            raise ValueError(f"document {i} must be a text or a list of sentences, got {shorten(given)}")
    if not found:
        raise ValueError("the list of documents is empty; give at least one")
    return found


def find_sentences(text: str, where: str = "the document") -> tuple[list[str], list[tuple[int, int]]]:
    """The sentences of a text (`split_text`), and their characters.

    >>> find_sentences("Well. Is it 3.5 stars? No!")
    (['Well.', 'Is it 3.5 stars?', 'No!'], [(0, 5), (6, 22), (23, 26)])
    """
    try:
        return _cut(split_text(text))
    except ValueError as error:
        raise ValueError(f"{where}: {error}; or give a list of sentences") from error


def _cut(raw: RawText) -> tuple[list[str], list[tuple[int, int]]]:
    spans = [(int(own[0, 0]), int(own[-1, 1])) for own in raw.spans]
    return [raw.text[start:end] for start, end in spans], spans


def split_words(sentence: str) -> list[str]:
    """Split a sentence into words and punctuation marks, in lower case."""
    return [word for word in WORD.findall(sentence.lower()) if len(word) <= MAX_LETTERS]


class DocumentFile(NamedTuple):
    """Documents as lists of sentences, with their labels (None if unknown) and names.

    ``known`` has the decisive sentences of documents, as sorted positions; None where they are not known. ``spans`` has
    the characters of the sentences of texts; None for documents that come as lists of sentences. ``summaries``
    has reference summaries.
    """

    documents: list[list[str]]
    labels: list[str | None]
    names: list[str]
    known: list[list[int] | None]
    spans: list[list[tuple[int, int]] | None]
    summaries: list[str | None]


def read_document_file(path: Path, *, max_bytes: int = MAX_BYTES) -> DocumentFile:
    """Read one JSON object per line, with "text" or "sentences", and perhaps "label", "id", "known" and "summary".

    A file that ends in ``.csv`` or ``.tsv`` has these columns, but not "sentences" and "known". One that ends in
    ``.txt`` is one document without a label. Documents without a label are not learned from, but get reasons too. Files
    that end in ``.gz`` are unpacked; at most ``max_bytes`` are read.
    """
    if is_raw_text(path):
        sentences, characters = _cut(read_raw_text(path, max_bytes=max_bytes))
        return DocumentFile([sentences], [None], [path.name], [None], [characters], [None])
    documents, labels, names, known, summaries = [], [], [], [], []
    spans: list[list[tuple[int, int]] | None] = []
    reader = TextReader(path, max_bytes=max_bytes)
    for number, entry in _entries(reader):
        sentences, own = _sentences(entry, path, number)
        documents.append(sentences)
        spans.append(own)
        reader.count_fields(FIELDS_PER_DOCUMENT + len(sentences))
        label = entry.get("label")
        if label is not None and not isinstance(label, str | int | float):
            raise ValueError(f"{path}, line {number}: label must be text or a number, got {shorten(label)}")
        labels.append(None if label is None else str(label))
        summary = entry.get("summary")
        if summary is not None and not isinstance(summary, str):
            raise ValueError(f"{path}, line {number}: summary must be text, got {shorten(summary)}")
        summaries.append(summary)
        names.append(str(entry.get("id", f"document {number}")))
        known.append(_known_sentences(entry.get("known"), len(documents[-1]), f"{path}, line {number}"))
    if not documents:
        raise ValueError(f'{path} is without documents; give one JSON object per line, with "text" and "label"')
    return DocumentFile(documents, labels, names, known, spans, summaries)


def _entries(reader: TextReader) -> Iterator[tuple[int, Any]]:
    """The number of a line, and its document as a mapping."""
    if reader.path.name.removesuffix(".gz").endswith((".csv", ".tsv")):
        table = read_csv(reader.path, ("text",), max_bytes=reader.room, delimiters=",;\t")
        for number, row in table.rows:
            yield number, {name: cell for name, cell in zip(table.columns, row, strict=True) if cell}
        return
    for number, line in reader.lines():
        if line.strip():
            yield number, parse_json(line, f"{reader.path}, line {number}")


def _known_sentences(given: Any, n: int, where: str) -> list[int] | None:
    if given is None:
        return None
    is_whole = isinstance(given, list) and all(type(t) is int and 0 <= t < n for t in given)
    if not is_whole or len(set(given)) < len(given):
        raise ValueError(
            f"{where}: known must be a list of different sentences from 0 to {n - 1}, got {shorten(given)}"
        )
    return sorted(given)


def _sentences(entry: Any, path: Path, number: int) -> tuple[list[str], list[tuple[int, int]] | None]:
    """The sentences of a document, and their characters where it is a text."""
    given = entry.get("sentences", entry.get("text")) if isinstance(entry, dict) else None
    if isinstance(given, str):
        return find_sentences(given, f"{path}, line {number}")
    if isinstance(given, list) and all(isinstance(sentence, str) for sentence in given):
        return list(given), None
    raise ValueError(
        f'{path}, line {number} must be an object with "text" (a string) or "sentences" (a list of strings), got '
        f"{shorten(entry)}"
    )

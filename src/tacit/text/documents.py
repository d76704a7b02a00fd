"""Documents with mentions, for coreference resolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import as_array, entries, is_whole, shorten, whole_number


@dataclass(frozen=True, eq=False)
class Document:
    """Tokens, the mentions among them, and the coreference clusters of the mentions if they are known.

    Parameters
    ----------
    sentences : a list of sentences, each a list of tokens
    mentions : one pair (start, end) per mention: positions among all tokens of the document, the end not included. They
        are sorted by start, may be nested, and may occur twice
    clusters : one number per mention, the same for mentions of the same thing; None if they are unknown
    name, part : name and part of the document in files
    lines : the columns of a CoNLL file before the last one, one text per token; None for other sources
    blank : its last column for tokens outside of mentions

    >>> text = Document([["Alice", "saw", "her", "sister"]], [(0, 1), (2, 4), (2, 3)], [0, 1, 0])
    >>> text.words(1), text.clusters.tolist()
    (['her', 'sister'], [0, 1, 0])
    """

    sentences: Sequence[Sequence[str]]
    mentions: Any
    clusters: Any = None
    name: str = ""
    part: str = "0"
    lines: Sequence[str] | None = field(default=None, repr=False)
    blank: str = "-"

    def __post_init__(self) -> None:
        for name in ("name", "part", "blank"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"{name} of a document must be a string, got {shorten(value)}")
        where = f"document {shorten(self.name)}" if self.name else "a document"
        sentences = _read_sentences(self.sentences, where)
        object.__setattr__(self, "sentences", sentences)
        n_tokens = sum(map(len, sentences))
        object.__setattr__(self, "mentions", _read_spans(self.mentions, n_tokens, where))
        if self.clusters is not None:
            object.__setattr__(self, "clusters", _read_clusters(self.clusters, len(self.mentions), where))

    @cached_property
    def tokens(self) -> list[str]:
        """The tokens of all sentences."""
        return [token for sentence in self.sentences for token in sentence]

    @cached_property
    def sentence_of(self) -> Array:
        """The sentence that each token is in."""
        return np.repeat(np.arange(len(self.sentences)), [len(sentence) for sentence in self.sentences])

    def words(self, mention: int) -> list[str]:
        """The tokens of a mention."""
        start, end = self.mentions[whole_number("mention", mention, 0, len(self.mentions) - 1)]
        return self.tokens[start:end]

    def with_clusters(self, clusters: Any) -> Document:
        """The same text and mentions with these clusters."""
        return replace(self, clusters=clusters)

    def __len__(self) -> int:
        return len(self.mentions)


def first_occurrence(clusters: Array) -> Array:
    """Number clusters in the order in which they first occur: 0, 1, 2, …

    >>> first_occurrence(np.array([7, 3, 7, 9]))
    array([0, 1, 0, 2])
    """
    _, first, index = np.unique(clusters, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[index])


def previous_same(keys: Array) -> Array:
    """The index of the closest earlier entry with the same key, −1 if there is none.

    >>> previous_same(np.array([7, 3, 7, 7]))
    array([-1, -1,  0,  2])
    """
    order = np.argsort(keys, kind="stable")
    before = np.full(keys.size, -1)
    same = keys[order][1:] == keys[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def read_documents(documents: Any) -> list[Document]:
    """Check a list of documents; a single document counts as a list of one."""
    if isinstance(documents, Document):
        return [documents]
    listed = entries("documents", documents, "a list of tacit.text.Document")
    for i, document in enumerate(listed):
        if not isinstance(document, Document):
            raise TypeError(f"documents[{i}] must be a tacit.text.Document, got {shorten(document)}")
    return listed


def _read_sentences(sentences: Any, where: str) -> tuple[tuple[str, ...], ...]:
    listed = []
    for i, sentence in enumerate(entries(f"the text of {where}", sentences, "a list of sentences")):
        tokens = entries(f"sentence {i} of {where}", sentence, "a list of tokens")
        wrong = [token for token in tokens if not isinstance(token, str)]
        if wrong:
            raise ValueError(f"the tokens of sentence {i} of {where} must be strings, got {shorten(wrong[0])}")
        listed.append(tuple(tokens))
    return tuple(listed)


def _read_spans(mentions: Any, n_tokens: int, where: str) -> Array:
    listed = entries(f"mentions of {where}", mentions, "pairs (start, end) of tokens")
    if not listed:
        return np.zeros((0, 2), dtype=np.int64)
    spans = as_array(listed)
    if spans.ndim != 2 or spans.shape[1] != 2 or spans.dtype.kind not in "iu":
        raise ValueError(f"mentions of {where} must be pairs (start, end) of tokens, got {shorten(mentions)}")
    spans = spans.astype(np.int64)
    wrong = np.flatnonzero((spans[:, 0] < 0) | (spans[:, 1] <= spans[:, 0]) | (spans[:, 1] > n_tokens))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"mention {i} of {where} must be (start, end) with 0 <= start < end <= {n_tokens}, the number of tokens, "
            f"got {tuple(spans[i].tolist())}"
        )
    falls = np.flatnonzero(np.diff(spans[:, 0]) < 0)
    if falls.size:
        i = int(falls[0])
        raise ValueError(f"mention {i + 1} of {where} starts before mention {i}; sort mentions and clusters by start")
    return spans


def _read_clusters(clusters: Any, n: int, where: str) -> Array:
    numbers = as_array(clusters)
    if numbers.shape == (0,):
        numbers = numbers.astype(np.int64)
    if numbers.shape != (n,) or not all(is_whole(value) and -(2**63) <= value < 2**63 for value in numbers.tolist()):
        raise ValueError(f"clusters of {where} must be {n} whole numbers, one per mention; got {shorten(clusters)}")
    return numbers.astype(np.int64)

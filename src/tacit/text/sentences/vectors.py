"""Documents as tables of word counts for `tacit.problems.Sentences`, and the sentences that decide."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.data.parameters import has_length, is_list, shorten, switch, whole_number
from tacit.data.ragged import Ragged

WORD = re.compile(r"\w+|[^\w\s]+")
ENDS = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")

MAX_LETTERS = 50
"""Letters of a word that is counted; what is longer is no word."""


class SentenceVectors(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Which words occur in a document and in each of its sentences, as rows of length 1.

    A document is a text, which is cut into sentences, or a list of sentences. Its table begins with the row of the
    whole document; a row for every sentence follows. A sentence without a known word has a row of zeros.

    Parameters
    ----------
    min_documents : a word counts if this many documents have it
    with_lengths : put the number of words in front of every row, as ``Sentences(budget="words")`` takes it

    >>> vectors = SentenceVectors(min_documents=1)
    >>> vectors.fit_transform(["A fine film. See it!", ["Dull."]])
    Ragged(2 samples, 2–3 rows each; 5 × 8 sparse float64)
    """

    def __init__(self, min_documents: int = 2, with_lengths: bool = False) -> None:
        self.min_documents = min_documents
        self.with_lengths = with_lengths

    def fit(self, X: Any, y: Any = None) -> SentenceVectors:
        """Learn which words there are."""
        least = whole_number("min_documents", self.min_documents)
        switch("with_lengths", self.with_lengths)
        counts: Counter[str] = Counter()
        documents = read_documents(X)
        for sentences in documents:
            counts.update({word for sentence in sentences for word in split_words(sentence)})
        self.words_ = sorted(word for word, count in counts.items() if count >= least)
        if not self.words_:
            raise ValueError(f"no word occurs in {least} or more of {len(documents)} documents; lower min_documents")
        self._places = {word: place for place, word in enumerate(self.words_)}
        return self

    def transform(self, X: Any) -> Ragged:
        """A table per document."""
        check_is_fitted(self, "words_")
        places = getattr(self, "_places", None) or {word: place for place, word in enumerate(self.words_)}
        indices: list[int] = []
        indptr, offsets, lengths = [0], [0], []
        for sentences in read_documents(X):
            found = [[places[word] for word in split_words(sentence) if word in places] for sentence in sentences]
            sizes = [len(split_words(sentence)) for sentence in sentences]
            for own, size in zip([[p for f in found for p in f], *found], [sum(sizes), *sizes], strict=True):
                indices += sorted(set(own))
                indptr.append(len(indices))
                lengths.append(size)
            offsets.append(offsets[-1] + 1 + len(sentences))
        each = np.diff(indptr)
        values = np.repeat(1.0 / np.sqrt(np.maximum(each, 1)), each)
        table = sparse.csr_array(
            (values, np.array(indices, np.int32), np.array(indptr, np.int32)), shape=(len(each), len(self.words_))
        )
        if self.with_lengths:
            column = sparse.csr_array(np.array(lengths, dtype=np.float64)[:, None])
            table = sparse.csr_array(sparse.hstack([column, table], format="csr"))
        return Ragged(table, np.array(offsets))


def read_documents(X: Any) -> list[list[str]]:
    """Documents as lists of sentences; texts are cut.

    >>> read_documents(["One. Two? Three", ["as it is"]])
    [['One.', 'Two?', 'Three'], ['as it is']]
    """
    if isinstance(X, str | bytes | dict) or not is_list(X):
        raise ValueError(f"documents are a list of texts, or of lists of sentences; got {shorten(X)}")
    found = []
    for i, document in enumerate(X):
        if isinstance(document, str):
            found.append(split_sentences(document))
        elif (
            has_length(document)
            and not isinstance(document, bytes | dict)
            and all(isinstance(s, str) for s in document)
        ):
            found.append([str(sentence) for sentence in document])
        else:
            raise ValueError(f"document {i} is {shorten(document)}; give a text, or a list of sentences")
    if not found:
        raise ValueError("no documents: there is nothing to read")
    return found


def split_sentences(text: str) -> list[str]:
    """Sentences of a text, by their end marks and by lines.

    >>> split_sentences("Well. Is it 3.5 stars? No!")
    ['Well.', 'Is it 3.5 stars?', 'No!']
    """
    return [part.strip() for part in ENDS.split(text) if part and part.strip()]


def split_words(sentence: str) -> list[str]:
    """Words and marks in lower case."""
    return [word for word in WORD.findall(sentence.lower()) if len(word) <= MAX_LETTERS]


class Reason(NamedTuple):
    """A chosen sentence of a document.

    ``place`` counts sentences from 0. ``score`` is how much the sentence adds to the decision: above 0 it speaks for
    the label that was predicted. ``weight`` is how much it was worth to be chosen for this label.
    """

    place: int
    score: float
    weight: float


class Decision(NamedTuple):
    """What was predicted for a document, by how much, and from which sentences, the strongest first."""

    label: Any
    margin: float
    reasons: list[Reason]


def reasons(model: Any, X: Any) -> list[Decision]:
    """The sentences that a model of `tacit.problems.Sentences` chose, with their scores.

    Parameters
    ----------
    model : a fitted learner
    X : documents, in the form that it was fitted on

    >>> from tacit import LatentSVM
    >>> from tacit.problems import Sentences
    >>> good, bad, plot = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    >>> X = [[plot, good, plot], [plot, plot, bad], [plot, plot, good], [plot, bad, plot]]
    >>> model = LatentSVM(Sentences(share=0.5), C=100, init="weights").fit(X, ["+", "-", "+", "-"])
    >>> [reason.place for reason in reasons(model, X)[1].reasons]
    [1]
    """
    bind = getattr(model, "_bind", None)
    oracle: Any = bind(X) if callable(bind) and not isinstance(model, type) else None
    if not hasattr(oracle, "sentence_scores"):
        raise TypeError(f"reasons are for fitted models of tacit.problems.Sentences, got {shorten(model)}")
    w = model.coef_
    scores = oracle.label_scores(w)
    labels, chosen = oracle.decode(oracle.predict(w).code)
    polarity, subjectivity = oracle.sentence_scores(w)
    decisions = []
    for i, label in enumerate(labels.tolist()):
        sign = 1.0 if label == model.classes_[1] else -1.0
        rows = oracle.offsets[i] + 1 + chosen[i]
        found = [
            Reason(int(place), float(sign * polarity[row]), float(sign * polarity[row] + subjectivity[row]))
            for place, row in zip(chosen[i], rows, strict=True)
        ]
        found.sort(key=lambda reason: (-reason.score, reason.place))
        decisions.append(Decision(label, float(abs(scores[i, 1] - scores[i, 0])), found))
    return decisions

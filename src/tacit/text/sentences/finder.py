"""`ReasonFinder`: labels of documents, and the sentences that decide them."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.labels import read_classes, read_labels
from tacit.data.parameters import has_length, is_list, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import (
    check_parameters,
    choice,
    estimator,
    instance,
    parameter,
    positive,
    some_share,
    switch,
    whole,
)
from tacit.learners import LatentSVM
from tacit.learners.application import Application
from tacit.penalties import Prior
from tacit.problems import Sentences

POLARITY_OF_DOCUMENT = 0.3
"""The share of the whole document's weights that sentences begin with: a sentence says less than all of them."""

FOLDS = 5
"""For the accuracy on documents held out."""


@estimator
class ReasonFinder(Application):
    """Learn labels of documents, and which sentences they come from.

    A linear SVM on whole documents comes first. Its weights are what a latent SVM on `tacit.problems.Sentences` is
    pulled to (`tacit.penalties.Prior`): it begins with what whole documents say, and moves away where
    some sentences decide.

    Parameters
    ----------
    share : how much of a document speaks
    budget : whether the share counts "sentences" or "words"; with words the chosen sentences are an extractive summary
    C : weight of the loss
    min_documents : a word counts if this many documents have it
    random_state, n_jobs, verbose : as in `tacit.LatentSVM`

    Attributes
    ----------
    model_ : the fitted `tacit.LatentSVM`
    words_ : the words, in the order of the weights
    classes_ : the two labels
    held_out_ : accuracy on folds held out, of this model and of the linear SVM; None with fewer than ten documents of a
        label
    status_ : whether the fit was interrupted

    >>> texts = ["Plot. A fine film!", "Plot. A dull film!", "Fine. Plot.", "Dull. Plot."]
    >>> finder = ReasonFinder(share=0.5, min_documents=1, verbose=0).fit(texts, ["+", "-", "+", "-"])
    >>> [reason.place for reason in finder.reasons(["Plot. So dull!"])[0].reasons]
    [1]
    """

    learned: ClassVar = {
        "model_": instance(LatentSVM, "a fitted LatentSVM", problem=Sentences),
        "words_": instance(list, "a list of words"),
    }

    share: float = parameter(some_share, default=0.3)
    budget: str = parameter(choice("sentences", "words"), default="sentences")
    C: float = parameter(positive, default=100.0)
    min_documents: int = parameter(whole(), default=2)
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 1

    def check_learned(self) -> None:
        super().check_learned()
        if not all(isinstance(word, str) for word in self.words_):
            raise ValueError(f"words_ must be a list of words, got words_={shorten(self.words_)}")
        if self.model_.schema_.n_features != len(self.words_):
            raise ValueError(f"model_ has {self.model_.schema_.n_features} features for {len(self.words_)} words")
        if self.model_.problem.budget != self.budget:
            raise ValueError(f"model_ counts {self.model_.problem.budget}, budget is {shorten(self.budget)}")

    def fit(self, texts: Any, y: Any) -> ReasonFinder:
        """Learn from documents, texts or lists of sentences, and their labels."""
        self.check_parameters()
        documents = read_documents(texts)
        labels = read_labels(y, len(documents))
        classes = read_classes(None, labels, len(documents))
        if len(classes) != 2:
            raise ValueError(f"two labels are told apart, and there are {len(classes)}: {shorten(classes.tolist())}")
        vectors = SentenceVectors(int(self.min_documents), with_lengths=self.budget == "words").fit(documents)
        self.words_ = vectors.words_
        X = vectors.transform(documents)
        self.classes_ = classes
        self.held_out_ = self._test(X, labels)
        self.model_ = self._learn(X, labels)[0]
        self.status_ = self.model_.status_
        return self

    def predict(self, texts: Any) -> Array:
        """The label of every document."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(self._vectors(texts)))

    def reasons(self, texts: Any) -> list[Decision]:
        """What is predicted, and the chosen sentences with their scores; see `tacit.text.reasons`."""
        check_is_fitted(self)
        return reasons(self.model_, self._vectors(texts))

    def _vectors(self, texts: Any) -> Ragged:
        vectors = SentenceVectors(int(self.min_documents), with_lengths=self.budget == "words")
        vectors.words_ = self.words_
        return vectors.transform(texts)

    def _learn(self, X: Ragged, y: Array) -> tuple[LatentSVM, LinearSVC]:
        """A latent model that is pulled to a linear one, and the latter."""
        whole = LinearSVC(C=1.0, random_state=0).fit(self._whole(X), y)
        weights, intercept = whole.coef_[0], whole.intercept_
        centre = np.concatenate([POLARITY_OF_DOCUMENT * weights, np.zeros(weights.size), weights, intercept])
        problem = Sentences(share=self.share, budget=self.budget)
        oracle = problem.bind(X, y, problem.schema(X, y))
        first = oracle.decode(oracle.impute(centre).code)[1]
        model = LatentSVM(
            problem,
            C=self.C,
            penalty=Prior(centre),
            init=first,
            tol=1e-2,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        return model.fit(X, y), whole

    def _whole(self, X: Ragged) -> Any:
        """The rows of whole documents, without a column of lengths."""
        rows = X.values[X.offsets[:-1]]
        return rows[:, 1:] if self.budget == "words" else rows

    def _test(self, X: Ragged, y: Array) -> dict[str, float] | None:
        """Accuracies on documents that were held out."""
        counts = np.unique(y, return_counts=True)[1]
        if counts.min() < 2 * FOLDS:
            return None
        rng = np.random.default_rng(0)
        fold = np.empty(len(y), dtype=np.int64)
        for label in self.classes_:
            own = np.flatnonzero(y == label)
            fold[own] = rng.permutation(own.size) % FOLDS
        right = np.zeros((2, len(y)))
        for k in range(FOLDS):
            test = np.flatnonzero(fold == k)
            model, whole = self._learn(X[np.flatnonzero(fold != k)], y[fold != k])
            right[0, test] = model.predict(X[test]) == y[test]
            right[1, test] = whole.predict(self._whole(X[test])) == y[test]
        return {"this model": float(right[0].mean()), "linear SVM": float(right[1].mean())}


WORD = re.compile(r"\w+|[^\w\s]+")
ENDS = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")

MAX_LETTERS = 50
"""Letters of a word that is counted; what is longer is no word."""


@estimator
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

    min_documents: int = parameter(whole(), default=2)
    with_lengths: bool = parameter(switch, default=False)

    def fit(self, X: Any, y: Any = None) -> SentenceVectors:
        """Learn which words there are."""
        check_parameters(self)
        least = int(self.min_documents)
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

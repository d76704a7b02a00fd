"""`Summariser`: extractive summaries, learned from reference summaries or from labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import entries, shorten
from tacit.data.specs import estimator, instance, parameter, some_share, whole
from tacit.learners.application import Application
from tacit.text.sentences.finder import ReasonFinder
from tacit.text.sentences.vectors import SentenceVectors, read_documents, split_words

N_PLACES = 7
"""Features of sentences beside their words: see `_describe`."""

FOLDS, LEAST = 5, 10
"""Folds of the held-out test, and the fewest summaries for one."""

FIRST, OWN = "first sentences", "this model"


@estimator
class Summariser(Application):
    """Summarise documents by some of their sentences (extractive summarisation).

    With reference summaries, the sentences behind a summary are those whose words cover it best within the budget; a
    logistic regression on words and positions learns to choose them. Without references, `ReasonFinder` learns from
    labels, and the sentences that decide the label are the summary.

    Parameters
    ----------
    share : the share of the words of a document that its summary may have
    min_documents : a word counts if this many documents have it
    random_state, verbose : as in `tacit.LatentSVM`

    Attributes
    ----------
    source_ : what was learned from: "summaries" or "labels"
    held_out_ : by held-out documents, the quality of this model and of the baseline; None with too few documents. With
        summaries: F1 of the words that a summary shares with its reference (ROUGE-1), and of the first sentences

    >>> texts = [["Plot.", "So a fine film.", "End."], ["A start.", "Then much.", "So it is dull."]] * 3
    >>> model = Summariser(share=0.6, min_documents=1).fit(texts, ["So a fine film.", "So it is dull."] * 3)
    >>> model.predict([["First.", "More.", "So a dull film."]])
    [[2]]
    """

    learned: ClassVar = {
        "weights_": instance(np.ndarray, "one weight per feature"),
        "words_": instance(list, "a list of words"),
        "idf_": instance(np.ndarray, "one weight per word"),
        "finder_": instance((ReasonFinder, type(None)), "a fitted ReasonFinder, or None"),
    }

    finder_: ReasonFinder | None
    share: float = parameter(some_share, default=0.2)
    min_documents: int = parameter(whole(), default=2)
    random_state: Any = 0
    verbose: int = 1

    def fit(self, texts: Any, summaries: Any = None, y: Any = None) -> Summariser:
        """Learn from documents, and their summaries (None where unknown) or else their labels."""
        self.check_parameters()
        documents = read_documents(texts)
        references = _read_summaries(summaries, len(documents))
        known = [i for i, own in enumerate(references) if own is not None and documents[i]]
        if not known:
            return self._fit_labels(documents, y)
        documents, chosen = [documents[i] for i in known], [str(references[i]) for i in known]
        self.source_, self.finder_ = "summaries", None
        self.held_out_ = self._test(documents, chosen)
        self._learn(documents, chosen)
        return self

    @property
    def measure(self) -> str:
        """The name of what `held_out_` has."""
        return "ROUGE-1 F1" if self.source_ == "summaries" else "accuracy"

    def describe_gain(self) -> str:
        """A sentence that says so if the model is not better than its baseline; else empty."""
        own, others = (self.held_out_ or {}).get(OWN), [v for k, v in (self.held_out_ or {}).items() if k != OWN]
        if own is None or not others or own > max(others):
            return ""
        return "On held-out documents this model is not better than its baseline: take the baseline, or give more data."

    def predict(self, texts: Any) -> list[list[int]]:
        """The sentences of the summary of every document, as positions in its order."""
        check_is_fitted(self, "source_")
        documents = read_documents(texts)
        if self.finder_ is not None:
            return [sorted(reason.position for reason in own.reasons) for own in self.finder_.reasons(documents)]
        vectors = SentenceVectors(int(self.min_documents))
        vectors.words_, vectors.idf_ = self.words_, self.idf_
        found = []
        for own, table in zip(documents, vectors.transform(documents), strict=True):
            scores = _describe(own, table) @ self.weights_
            found.append(self._take(own, np.argsort(-scores, kind="stable").tolist()))
        return found

    def _fit_labels(self, documents: list[list[str]], y: Any) -> Summariser:
        labels = [None] * len(documents) if y is None else entries("y", y, "a label for each document", len(documents))
        known = [i for i, label in enumerate(labels) if label is not None]
        if not known:
            raise ValueError("there must be summaries or labels to learn from, got neither; add some")
        finder = ReasonFinder(
            share=self.share,
            budget="words",
            min_documents=self.min_documents,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        self.finder_ = finder.fit([documents[i] for i in known], [labels[i] for i in known])
        self.source_, self.held_out_ = "labels", finder.held_out_
        self.words_, self.idf_, self.weights_ = finder.words_, finder.idf_, np.zeros(len(finder.words_) + N_PLACES)
        return self

    def _learn(self, documents: list[list[str]], references: Sequence[str]) -> None:
        vectors = SentenceVectors(int(self.min_documents)).fit(documents)
        tables = vectors.transform(documents)
        rows = sparse.vstack([_describe(own, table) for own, table in zip(documents, tables, strict=True)])
        is_chosen = np.concatenate([self._cover(*pair) for pair in zip(documents, references, strict=True)])
        self.words_, self.idf_, self.weights_ = vectors.words_, vectors.idf_, np.zeros(rows.shape[1])
        if is_chosen.any() and not is_chosen.all():
            model = LogisticRegression(solver="liblinear", random_state=0).fit(sparse.csr_array(rows), is_chosen)
            self.weights_ = model.coef_[0]

    def _room(self, own: list[str]) -> int:
        return int(float(self.share) * sum(len(split_words(sentence)) for sentence in own) + 1e-9)

    def _take(self, own: list[str], order: Sequence[int]) -> list[int]:
        """Sentences in this order as long as they fit; the first one of them if none does."""
        room, kept = self._room(own), list[int]()
        for t in order:
            size = len(split_words(own[t]))
            if 0 < size <= room:
                kept.append(t)
                room -= size
        return sorted(kept or order[:1])

    def _cover(self, own: list[str], reference: str) -> Array:
        """Whether each sentence is behind the summary: greedily those that add most of its words, per word."""
        left, room = Counter(split_words(reference)), self._room(own)
        is_chosen = np.zeros(len(own), dtype=bool)
        words = [split_words(sentence) for sentence in own]
        while True:
            gains = [
                0.0 if is_chosen[t] or not w or len(w) > room else (Counter(w) & left).total() / len(w)
                for t, w in enumerate(words)
            ]
            best = int(np.argmax(gains))
            if gains[best] <= 0:
                return is_chosen
            is_chosen[best] = True
            room -= len(words[best])
            left -= Counter(words[best])

    def _test(self, documents: list[list[str]], references: list[str]) -> dict[str, float] | None:
        """ROUGE-1 of held-out documents, by this model and by the first sentences."""
        if len(documents) < LEAST:
            return None
        fold = np.random.default_rng(0).permutation(len(documents)) % FOLDS
        own: list[float] = []
        first: list[float] = []
        for k in range(FOLDS):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            other = Summariser(**self.get_params())
            other.source_, other.finder_ = "summaries", None
            other._learn([documents[i] for i in train], [references[i] for i in train])
            for i, chosen in zip(test, other.predict([documents[i] for i in test]), strict=True):
                lead = self._take(documents[i], range(len(documents[i])))
                for values, places in ((own, chosen), (first, lead)):
                    values.append(rouge_1(" ".join(documents[i][t] for t in places), references[i]))
        return {OWN: float(np.mean(own)), FIRST: float(np.mean(first))}

    def check_learned(self) -> None:
        super().check_learned()
        n = len(self.words_)
        are_words = all(isinstance(word, str) for word in self.words_)
        is_right = are_words and is_table(self.idf_, 1, "f") and self.idf_.shape == (n,)
        if not is_right or not is_table(self.weights_, 1, "f") or self.weights_.shape != (n + N_PLACES,):
            raise ValueError(f"words_, idf_ and weights_ must fit together, got words_={shorten(self.words_)}")
        if self.source_ not in ("summaries", "labels") or (self.finder_ is None) != (self.source_ == "summaries"):
            raise ValueError(f'source_ must be "summaries" or "labels", got {shorten(self.source_)}')


def rouge_1(summary: str, reference: str) -> float:
    """F1 of the words that two texts share, counted as often as both have them (Lin 2004).

    >>> rouge_1("a dull film", "a fine film")
    0.6666666666666666
    """
    words, others = Counter(split_words(summary)), Counter(split_words(reference))
    both = (words & others).total()
    return 2 * both / max(1, words.total() + others.total())


def _describe(own: list[str], table: Any) -> Any:
    """The words of sentences; first, second, last; place from 0 to 1; length; likeness to the document; constant."""
    n = len(own)
    place = np.arange(n)
    length = np.log1p([len(split_words(sentence)) for sentence in own]) / 5 if n else np.zeros(0)
    rows = sparse.csr_array(table)[1:]
    likeness = rows @ sparse.csr_array(table)[[0]].toarray().ravel()
    columns = [place == 0, place == 1, place == n - 1, place / max(n - 1, 1), length, likeness, np.ones(n)]
    return sparse.csr_array(sparse.hstack([rows, sparse.csr_array(np.column_stack(columns).astype(np.float64))]))


def _read_summaries(summaries: Any, n: int) -> list[str | None]:
    if summaries is None:
        return [None] * n
    listed = entries("summaries", summaries, "a text for each document, None where there is none", n)
    for i, own in enumerate(listed):
        if own is not None and not isinstance(own, str):
            raise ValueError(f"summaries[{i}] must be a text or None, got {shorten(own)}")
    return list(listed)

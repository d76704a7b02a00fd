"""`ReasonFinder`: labels of documents, and the sentences that decide them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.labels import read_classes, read_labels
from tacit.data.parameters import is_positive, number, one_of, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.learners import LatentSVM
from tacit.learners.application import Application
from tacit.penalties import Prior
from tacit.problems import Sentences
from tacit.text.sentences.vectors import Decision, SentenceVectors, read_documents, reasons

POLARITY_OF_DOCUMENT = 0.3
"""The share of the whole document's weights that sentences begin with: a sentence says less than all of them."""

FOLDS = 5
"""For the accuracy on documents held out."""


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

    def __init__(
        self,
        share: float = 0.3,
        budget: str = "sentences",
        C: float = 100.0,
        min_documents: int = 2,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 1,
    ) -> None:
        self.share = share
        self.budget = budget
        self.C = C
        self.min_documents = min_documents
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def check_parameters(self) -> None:
        number("share", self.share, "above 0 and at most 1", lambda share: 0 < share <= 1)
        one_of("budget", self.budget, ("sentences", "words"))
        number("C", self.C, "a positive number", is_positive)
        whole_number("min_documents", self.min_documents)

    def check_learned(self) -> None:
        if not isinstance(getattr(self, "model_", None), LatentSVM) or not isinstance(self.model_.problem, Sentences):
            raise ValueError("model_ is missing; a fitted ReasonFinder has it")
        self.model_.check()
        words = getattr(self, "words_", None)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"words_ lists the words, got {shorten(words)}")
        if self.model_.schema_.n_features != len(words):
            raise ValueError(f"model_ has {self.model_.schema_.n_features} features for {len(words)} words")
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

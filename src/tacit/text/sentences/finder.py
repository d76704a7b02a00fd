"""`ReasonFinder`: document labels, and the sentences that explain them."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array, is_table
from tacit.data.labels import read_classes, read_labels
from tacit.data.parameters import entries, is_whole, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import (
    choice,
    estimator,
    instance,
    parameter,
    positive,
    some_share,
    whole,
)
from tacit.learners import LatentSVM
from tacit.learners.application import Application
from tacit.learners.asking import Questions, ask
from tacit.learners.learner import Learner
from tacit.penalties import Prior
from tacit.problems import Sentences
from tacit.text.sentences.vectors import SentenceVectors, read_documents

POLARITY_OF_DOCUMENT = 0.3
"""The prior weights of sentences, as a share of those of whole documents."""

SELECTION_C = 0.3
"""Factor of the loss of the SVM whose weights choose sentences for readers."""

FOLDS = 5
"""Folds of the cross-validated accuracy."""


@estimator
class ReasonFinder(Application):
    """Learn document labels, and the sentences that explain them (rationales).

    A linear SVM on whole documents comes first. Its weights are the prior (`tacit.penalties.Prior`) of a latent SVM on
    `tacit.problems.Sentences`, which deviates from it where some sentences decide.

    Parameters
    ----------
    share : the share of a document that is chosen
    budget : whether the share counts "sentences" or "words"; the latter makes an extractive summary
    C : factor of the loss
    min_documents : a word counts if this many documents have it
    random_state, n_jobs, verbose : as in `tacit.LatentSVM`

    Attributes
    ----------
    model_ : the fitted `tacit.LatentSVM`
    words_ : the words, in the order of the weights
    selection_ : the weights of words by which sentences are chosen, see `learn_selection`; those of the model where
        decisive sentences were given
    classes_ : the two labels
    held_out_ : held-out accuracy of this model and of the linear SVM; None with fewer than ten documents of a label
    status_ : whether the fit was interrupted

    >>> texts = ["Plot. A fine film!", "Plot. A dull film!", "Fine. Plot.", "Dull. Plot."]
    >>> finder = ReasonFinder(share=0.5, min_documents=1, verbose=0).fit(texts, ["+", "-", "+", "-"])
    >>> [reason.position for reason in finder.reasons(["Plot. So dull!"])[0].reasons]
    [1]
    """

    learned: ClassVar = {
        "model_": instance(LatentSVM, "a fitted LatentSVM", problem=Sentences),
        "words_": instance(list, "a list of words"),
        "idf_": instance(np.ndarray, "one weight per word"),
        "selection_": instance(np.ndarray, "one weight per word"),
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
        if not is_table(self.idf_, 1, "f") or self.idf_.shape != (len(self.words_),) or (self.idf_ <= 0).any():
            raise ValueError(f"idf_ must have one weight above 0 per word, got idf_={shorten(self.idf_)}")
        if not is_table(self.selection_, 1, "f") or self.selection_.shape != self.idf_.shape:
            raise ValueError(f"selection_ must have one weight per word, got selection_={shorten(self.selection_)}")
        if self.model_.schema_.n_features != len(self.words_):
            raise ValueError(f"model_ must have {len(self.words_)} features, got {self.model_.schema_.n_features}")
        if self.model_.problem.budget != self.budget:
            raise ValueError(f"model_ must have the budget {shorten(self.budget)}, got {self.model_.problem.budget}")

    def fit(self, texts: Any, y: Any, hidden: Any = None) -> ReasonFinder:
        """Learn from documents, texts or lists of sentences, and their labels.

        ``hidden`` has the decisive sentences of documents where they are known: lists of positions, None elsewhere. A
        document may have fewer or more of them than are chosen.
        """
        self.check_parameters()
        documents = read_documents(texts)
        labels = read_labels(y, len(documents))
        hidden = None if hidden is None else _read_hidden(hidden, [len(own) for own in documents])
        classes = read_classes(None, labels, len(documents))
        if len(classes) != 2:
            raise ValueError(f"y must have two different labels, got {len(classes)}: {shorten(classes.tolist())}")
        X = self.vectors(documents)
        self.classes_ = classes
        self.held_out_ = self._test(X, labels, hidden)
        self.model_ = self.learn(X, labels, hidden)[0]
        self.selection_ = np.array(self.model_.weights_["polarity"])
        if hidden is None or all(own is None for own in hidden):
            self.selection_ = self.learn_selection(X, labels, self.model_)
        self.status_ = self.model_.status_
        return self

    def predict(self, texts: Any) -> Array:
        """The label of every document."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(self._vectors(texts)))

    def reasons(self, texts: Any) -> list[Decision]:
        """The predictions, and the chosen sentences with their scores; see `tacit.text.reasons`."""
        check_is_fitted(self)
        own = np.array_equal(self.selection_, self.model_.weights_["polarity"])
        return _list_reasons(self.model_, self._vectors(texts), None if own else self.selection_)

    def ask(self, texts: Any, y: Any, k: int = 20, *, hidden: Any = None, random_state: Any = 0) -> Questions:
        """The documents whose decisive sentences a person should mark, see `tacit.ask`; known ones are left out."""
        check_is_fitted(self)
        known = [i for i, own in enumerate([] if hidden is None else hidden) if own is not None]
        return ask(self.model_, self._vectors(texts), y, k, skip=known, random_state=random_state)

    def vectors(self, documents: list[list[str]]) -> Ragged:
        """The tables of documents to learn from; their words become ``words_``."""
        vectors = self._sentence_vectors().fit(documents)
        self.words_, self.idf_ = vectors.words_, vectors.idf_
        return vectors.transform(documents)

    def count_chosen(self, n_sentences: int) -> int:
        """The number of sentences that are chosen of so many, where the share counts sentences."""
        return int(np.ceil(float(self.share) * n_sentences - 1e-9))

    def _vectors(self, texts: Any) -> Ragged:
        vectors = self._sentence_vectors()
        vectors.words_, vectors.idf_ = self.words_, self.idf_
        return vectors.transform(texts)

    def _sentence_vectors(self) -> SentenceVectors:
        return SentenceVectors(int(self.min_documents), with_lengths=self.budget == "words")

    def learn(self, X: Ragged, y: Array, hidden: Any = None) -> tuple[LatentSVM, LinearSVC]:
        """Fit a latent SVM to tables of `vectors`, with a linear SVM as its prior; return both.

        Known sentences change the prior, by a logistic regression of chosen sentences against others. Where sentences
        are counted, they are also hidden values: too many are cut to those with the highest scores by the prior.
        """
        whole = LinearSVC(C=1.0, random_state=0).fit(self._whole(X), y)
        weights, intercept = whole.coef_[0], whole.intercept_
        polarity, subjectivity = POLARITY_OF_DOCUMENT * weights, np.zeros(weights.size)
        known = [] if hidden is None else [i for i, own in enumerate(hidden) if own is not None]
        if known:
            part = self._without_lengths(X[known])
            signs = np.where(y[known] == np.unique(y)[1], 1.0, -1.0)
            polarity, subjectivity = _learn_choice(part, signs, [hidden[i] for i in known], polarity)
            hidden = self._complete(X, hidden, known, signs, polarity, subjectivity)
        centre = np.concatenate([polarity, subjectivity, weights, intercept])
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
        return model.fit(X, y, hidden=hidden), whole

    def learn_selection(self, X: Ragged, y: Array, model: LatentSVM) -> Array:
        """The polarity by which sentences are chosen for readers: the weights of a linear SVM on the mean of sentences.

        Its score of a document is a sum of scores of sentences, which the SVM on whole documents does not have: there a
        word of five sentences counts once. The scale is that of the polarity of the model.
        """
        tables = self._without_lengths(X)
        is_sentence = np.ones(tables.values.shape[0])
        is_sentence[X.offsets[:-1]] = 0.0
        sums = sparse.csr_array((is_sentence, np.arange(is_sentence.size), X.offsets))
        rows = normalize(sums @ sparse.csr_array(tables.values))
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)  # as LinearSVC asks
        weights = LinearSVC(C=SELECTION_C, random_state=0).fit(rows, y).coef_[0]
        scale = np.linalg.norm(model.weights_["polarity"]) / max(float(np.linalg.norm(weights)), 1e-12)
        return np.asarray(scale * weights)

    def _complete(
        self, X: Ragged, hidden: Any, known: list[int], signs: Array, polarity: Array, subjectivity: Array
    ) -> list[list[int] | None] | None:
        """The known sentences, cut or completed to as many as are chosen; None for a budget of words."""
        if self.budget == "words":
            return None
        found: list[list[int] | None] = [None] * len(X)
        for i, sign in zip(known, signs.tolist(), strict=True):
            scores = X[i][1:] @ (sign * polarity + subjectivity)
            scores[hidden[i]] += 1e6
            best = np.argsort(-scores, kind="stable")[: self.count_chosen(scores.size)]
            found[i] = np.sort(best).tolist()
        return found

    def _whole(self, X: Ragged) -> Any:
        """The rows of whole documents, without the column of lengths."""
        return self._without_lengths(X).values[X.offsets[:-1]]

    def _without_lengths(self, X: Ragged) -> Ragged:
        return X if self.budget == "sentences" else X.with_values(sparse.csr_array(X.values[:, 1:]))

    def _test(self, X: Ragged, y: Array, hidden: Any) -> dict[str, float] | None:
        """Cross-validated accuracies of this model and of the linear SVM."""
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
            train = np.flatnonzero(fold != k)
            model, whole = self.learn(X[train], y[train], None if hidden is None else [hidden[i] for i in train])
            right[0, test] = model.predict(X[test]) == y[test]
            right[1, test] = whole.predict(self._whole(X[test])) == y[test]
        return {"this model": float(right[0].mean()), "linear SVM": float(right[1].mean())}


def _read_hidden(hidden: Any, sizes: list[int]) -> list[list[int] | None]:
    """Check lists of sentences, None for a document whose decisive sentences are not known."""
    meaning = "a list with the decisive sentences of each document, None where they are not known"
    found: list[list[int] | None] = []
    for i, (own, n) in enumerate(zip(entries("hidden", hidden, meaning, len(sizes)), sizes, strict=True)):
        if own is not None:
            own = entries(f"hidden[{i}]", own, "a list of sentences")
            if not all(is_whole(t) and 0 <= t < n for t in own) or len({int(t) for t in own}) < len(own):
                raise ValueError(f"hidden[{i}] must be different sentences from 0 to {n - 1}, got {shorten(own)}")
        found.append(None if own is None else sorted(int(t) for t in own))
    return found


KNOWN_C, KNOWN_PRIOR = 3.0, 3.0
"""Of the logistic regression of chosen sentences: factor of the loss, and of the column of prior polarities."""


def _learn_choice(X: Ragged, signs: Array, chosen: list[Any], polarity: Array) -> tuple[Array, Array]:
    """Weights (polarity, subjectivity) by which known sentences are chosen; as long as the prior polarity.

    If they do not rank the sentences of held-out documents better than the prior does, the prior stays.
    """
    is_sentence = np.ones(X.values.shape[0], dtype=bool)
    is_sentence[X.offsets[:-1]] = False
    rows, sign = X.values[is_sentence], np.repeat(signs, X.lengths - 1)
    owner = np.repeat(np.arange(len(X)), X.lengths - 1)
    is_chosen = np.concatenate([np.isin(np.arange(n - 1), own) for own, n in zip(chosen, X.lengths, strict=True)])
    base = sign * (rows @ polarity)
    if not base.std():
        return polarity, np.zeros_like(polarity)
    factor = KNOWN_PRIOR / base.std()
    parts = sparse.diags_array(sign) @ rows, rows, sparse.csr_array(factor * base[:, None])
    table = sparse.csr_array(sparse.hstack(parts))
    fold = np.random.default_rng(0).permutation(len(X))[owner] % FOLDS
    found = base.copy()
    for k in range(FOLDS):
        found[fold == k] = table[fold == k] @ _fit_choice(table[fold != k], is_chosen[fold != k])
    if _rank_within(found, is_chosen, owner) <= _rank_within(base, is_chosen, owner):
        return polarity, np.zeros_like(polarity)
    weights, d = _fit_choice(table, is_chosen), polarity.size
    learned, subjectivity = weights[:d] + weights[-1] * factor * polarity, weights[d:-1]
    scale = np.linalg.norm(polarity) / max(float(np.linalg.norm(learned)), 1e-12)
    return scale * learned, scale * subjectivity


def _fit_choice(table: Any, is_chosen: Array) -> Array:
    """Weights of a logistic regression of chosen sentences; those of the prior alone if there is nothing to learn."""
    if is_chosen.all() or not is_chosen.any():
        return np.append(np.zeros(table.shape[1] - 1), 1.0)
    return np.asarray(LogisticRegression(C=KNOWN_C, solver="liblinear", random_state=0).fit(table, is_chosen).coef_[0])


def _rank_within(scores: Array, is_chosen: Array, owner: Array) -> float:
    """Over pairs of a chosen and another sentence of the same document, the share with the higher score first."""
    right = pairs = 0.0
    for own in np.split(np.arange(owner.size), np.flatnonzero(np.diff(owner)) + 1):
        gaps = scores[own][is_chosen[own], None] - scores[own][~is_chosen[own]]
        right, pairs = right + np.count_nonzero(gaps > 0) + 0.5 * np.count_nonzero(gaps == 0), pairs + gaps.size
    return right / max(pairs, 1.0)


class Reason(NamedTuple):
    """A chosen sentence of a document.

    ``position`` counts sentences from 0. ``score`` is what the sentence adds to the decision: above 0 it speaks for the
    predicted label. Sentences were chosen by ``selection_score``: their polarity and subjectivity, in a `ReasonFinder`
    by its ``selection_``.
    """

    position: int
    score: float
    selection_score: float


class Decision(NamedTuple):
    """The predicted label of a document, its margin, and the chosen sentences, highest score first."""

    label: Any
    margin: float
    reasons: list[Reason]


def reasons(model: Any, X: Any) -> list[Decision]:
    """List the sentences that a model of `tacit.problems.Sentences` chose, with their scores.

    Parameters
    ----------
    model : a fitted learner
    X : documents, as in `fit`

    >>> from tacit import LatentSVM
    >>> from tacit.problems import Sentences
    >>> good, bad, plot = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    >>> X = [[plot, good, plot], [plot, plot, bad], [plot, plot, good], [plot, bad, plot]]
    >>> model = LatentSVM(Sentences(share=0.5), C=100, init="weights").fit(X, ["+", "-", "+", "-"])
    >>> [reason.position for reason in reasons(model, X)[1].reasons]
    [1]
    """
    if not isinstance(model, Learner) or not isinstance(model.problem, Sentences):
        raise TypeError(f"model must be a fitted learner of tacit.problems.Sentences, got {shorten(model)}")
    return _list_reasons(model, X, None)


def choose_sentences(model: Any, X: Any, labels: Array, selection: Array | None) -> tuple[Ragged, Array, Array]:
    """The best sentences for these labels; the polarity and subjectivity of every row.

    They are those of the model, or by other weights of polarity. Then rows, which have norm 1, are multiplied by the
    fourth root of their number of words: a longer sentence has more evidence.
    """
    w = model.coef_.copy()
    if selection is not None:
        model.schema_.views(w)["polarity"][:] = selection
        if model.problem.budget == "sentences":
            X = X.with_values(sparse.csr_array(X.values.multiply(np.diff(X.values.indptr)[:, None] ** 0.25)))
    oracle = model._bind(X)
    code = oracle.best_under(w, np.searchsorted(model.classes_, labels)).code
    return oracle.decode(code)[1], *oracle.sentence_scores(w)


def _list_reasons(model: Any, X: Any, selection: Array | None) -> list[Decision]:
    oracle = model._bind(X)
    w = model.coef_
    scores = oracle.label_scores(w)
    labels = oracle.decode(oracle.predict(w).code)[0]
    chosen, marks, subjectivity = choose_sentences(model, X, labels, selection)
    polarity = oracle.sentence_scores(w)[0]
    decisions = []
    for i, label in enumerate(labels.tolist()):
        sign = 1.0 if label == model.classes_[1] else -1.0
        rows = oracle.offsets[i] + 1 + chosen[i]
        found = [
            Reason(int(position), float(sign * polarity[row]), float(sign * marks[row] + subjectivity[row]))
            for position, row in zip(chosen[i], rows, strict=True)
        ]
        found.sort(key=lambda reason: (-reason.score, reason.position))
        decisions.append(Decision(label, float(abs(scores[i, 1] - scores[i, 0])), found))
    return decisions

"""`CoreferenceResolver`: coreference resolution, learned from documents with clusters; mentions are given or found."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.parameters import entries, random_numbers, shorten
from tacit.data.specs import choice, estimator, instance, parameter, positive, whole
from tacit.learners import HiddenCRF, LatentPerceptron
from tacit.learners.application import Application
from tacit.problems import Coreference
from tacit.runtime import Status
from tacit.text import Document, coreference_scores, mention_pairs
from tacit.text.coreference.detector import MentionFinder, drop_singletons, score_mentions
from tacit.text.coreference.pairs import FIRST_FEATURE, MentionPairs, PairTemplates, text_templates
from tacit.text.documents import read_documents

MIN_TESTED = 5
"""The fewest documents of which some are held out, to measure the quality."""

TEST_SHARE = 0.2


class Link(NamedTuple):
    """A link of a mention to an earlier one, explained.

    Attributes
    ----------
    mention, earlier : numbers of the two mentions in the document
    reasons : the features with the largest weights, as text, and their weights
    """

    mention: int
    earlier: int
    reasons: list[tuple[str, float]]


@estimator
class CoreferenceResolver(Application):
    """Coreference resolution: find the mentions of a text that are the same person or thing.

    Mentions are given, or found by a `MentionFinder` that learns from the same documents. Each links to an earlier one
    or begins a cluster; the links are hidden in training. A fit on 80 chapters of 2000 words takes 15 seconds, with the
    perceptron a few seconds.

    Parameters
    ----------
    learner : "crf", a hidden CRF that sums over links; or "perceptron", five times as fast
    epochs : passes of the perceptron
    C : factor of the likelihood, for "crf"
    mentions : "gold" resolves the mentions that documents have; "auto" finds mentions in their tokens
    candidates : how many mentions before a mention it may link to; mentions with the same words are always candidates
    random_state, n_jobs, verbose : as in `tacit.LatentPerceptron`

    Attributes
    ----------
    model_ : the fitted learner
    finder_ : the fitted `MentionFinder`; None with ``mentions="gold"``
    held_out_ : measures on a fifth of the documents, by a model of the others; empty for fewer than 5 documents. With
        ``mentions="auto"`` they are of found mentions. Those of given mentions are named ``gold ...``. Those of found
        mentions without clusters of one mention, on both sides, are named ``plain ...``
    status_ : why training stopped

    >>> from tacit.text import Document
    >>> tale = Document([["Alice", "saw", "Bob", "."], ["She", "greeted", "him", "."]],
    ...                 [(0, 1), (2, 3), (4, 5), (6, 7)], [0, 1, 0, 1])
    >>> CoreferenceResolver(verbose=0).fit([tale]).predict([tale])[0].tolist()
    [0, 1, 0, 1]
    """

    learned: ClassVar = {
        "model_": instance((LatentPerceptron, HiddenCRF), "a fitted learner of Coreference", problem=Coreference),
        "held_out_": instance(dict, "numbers by name"),
        "status_": instance(Status, "why training stopped"),
        "finder_": instance((MentionFinder, type(None)), "a fitted MentionFinder, or None"),
    }

    learner: str = parameter(choice("crf", "perceptron"), default="crf")
    epochs: int = parameter(whole(), default=6)
    C: float = parameter(positive, default=15.0)
    candidates: int = parameter(whole(), default=60)
    mentions: str = parameter(choice("gold", "auto"), default="gold")
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 1

    def check_learned(self) -> None:
        super().check_learned()
        names, sizes = text_templates()
        if list(self.model_.schema_.blocks.items()) != [(name, (n,)) for name, n in zip(names, sizes, strict=True)]:
            raise ValueError("model_ has other features than this version of tacit; train it again")
        if not all(isinstance(value, float | int) for value in self.held_out_.values()):
            raise ValueError(f"held_out_ must be numbers by name, got held_out_={shorten(self.held_out_)}")

    def fit(self, documents: Any, clusters: Any = None) -> CoreferenceResolver:
        """Learn from documents.

        Parameters
        ----------
        documents : a list of `tacit.text.Document`
        clusters : one list of numbers per document; None for those of the documents
        """
        self.check_parameters()
        texts = read_documents(documents)
        y = _read_clusters(texts, clusters)
        y = [own for own in y if len(own)]
        if not any(np.unique(own).size < len(own) for own in y):
            raise ValueError("the documents must have a cluster of two or more mentions to learn from")
        texts = [text for text in texts if len(text)]
        X = mention_pairs(texts, candidates=int(self.candidates))
        self.held_out_ = self._test(texts, X, y)
        self.finder_ = None if self.mentions == "gold" else self._finder().fit(texts)
        self.model_ = self._fit(X, y)
        self.status_ = self.model_.status_
        return self

    def resolve(self, documents: Any) -> list[Document]:
        """The documents with predicted clusters, and with predicted mentions if ``mentions="auto"``."""
        texts = read_documents(documents)
        if self.mentions == "auto" and self.finder_ is not None:
            texts = self.finder_.predict(texts)
        return [text.with_clusters(own) for text, own in zip(texts, self.predict(texts), strict=True)]

    def _finder(self) -> MentionFinder:
        return MentionFinder(random_state=self.random_state, verbose=self.verbose)

    def predict(self, documents: Any) -> list[Array]:
        """The clusters of the mentions that documents have: one number per mention, in the order of first occurrence.

        `resolve` finds mentions as well.
        """
        texts = read_documents(documents)
        found = [np.zeros(0, dtype=np.int64) for _ in texts]
        kept = [i for i, text in enumerate(texts) if len(text)]
        if kept:
            X = mention_pairs([texts[i] for i in kept], candidates=int(self.candidates))
            for i, clusters in zip(kept, self.model_.predict(X), strict=True):
                found[i] = np.asarray(clusters)
        return found

    def explain(self, document: Document, n_reasons: int = 3) -> list[Link]:
        """The links of one document, each with the features that have the largest weights."""
        if not len(document):
            return []
        X = mention_pairs([document], candidates=int(self.candidates))
        parents = self.model_.predict_hidden(X)[0]
        templates = PairTemplates(document)
        weights = list(self.model_.weights_.values())
        links = []
        for mention, earlier in enumerate(parents.tolist()):
            if earlier == mention:
                continue
            row = np.flatnonzero((X.values[:, 0] == mention) & (X.values[:, 1] == earlier))[0]
            values = X.values[row, FIRST_FEATURE:].astype(np.int64)
            worth = [float(w[v - 1]) if v else 0.0 for w, v in zip(weights, values, strict=True)]
            best = [t for t in np.argsort(worth)[::-1][:n_reasons].tolist() if worth[t] > 0]
            features = templates.explain(mention, earlier)
            links.append(Link(mention, earlier, [(f"{features[t][0]} ({features[t][1]})", worth[t]) for t in best]))
        return links

    def _fit(self, X: MentionPairs, y: list[Array]) -> Any:
        """Fit a learner, which stops before the optimum on purpose."""
        problem = Coreference(candidates=int(self.candidates))
        common: Any = {"n_jobs": self.n_jobs, "random_state": self.random_state, "verbose": self.verbose}
        if self.learner == "perceptron":
            learner: Any = LatentPerceptron(problem, epochs=int(self.epochs), **common)
        else:
            learner = HiddenCRF(problem, C=float(self.C), init="zero", tol=CRF_TOLERANCE, max_iter=MAX_STEPS, **common)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return learner.fit(X, y)

    def _test(self, texts: list[Document], X: MentionPairs, y: list[Array]) -> dict[str, float]:
        """Measures on held-out documents."""
        n = len(y)
        if n < MIN_TESTED:
            return {}
        seed = int(random_numbers(self.random_state).randint(2**31))
        order = np.random.default_rng(seed).permutation(n)
        n_tested = max(1, round(TEST_SHARE * n))
        tested, others = np.sort(order[:n_tested]), np.sort(order[n_tested:])
        model = self._fit(X[others], [y[i] for i in others])
        scores = coreference_scores([y[i] for i in tested], [np.asarray(c) for c in model.predict(X[tested])])
        words = [[" ".join(texts[i].words(m)).lower() for m in range(len(texts[i]))] for i in tested]
        same = [np.unique(own, return_inverse=True)[1] for own in words]
        usual = coreference_scores([y[i] for i in tested], same)["conll"]
        measures = {"documents": float(n_tested), "same words conll": float(usual)}
        if self.mentions == "gold":
            return measures | {name: float(value) for name, value in scores.items()}
        finder = self._finder().fit([texts[i] for i in others])
        gold = [texts[i].with_clusters(y[i]) for i in tested]
        found = finder.predict(gold)
        answers = [np.asarray(own) for own in model.predict(mention_pairs(found, candidates=int(self.candidates)))]
        joint = [text.with_clusters(own) for text, own in zip(found, answers, strict=True)]
        spans = score_mentions(gold, found)
        measures |= {"mention precision": spans.precision, "mention recall": spans.recall, "mention f1": spans.f1}
        plain = coreference_scores([*map(drop_singletons, gold)], [*map(drop_singletons, joint)])
        parts = {"": coreference_scores(gold, joint), "plain ": plain, "gold ": scores}
        return measures | {f"{part}{name}": float(own[name]) for part, own in parts.items() for name in own}


CRF_TOLERANCE = 1e-3
"""Relative tolerance of the likelihood: predictions no longer change below it."""

MAX_STEPS = 40
"""The most iterations of the hidden CRF; held-out measures no longer improve after so many."""


def _read_clusters(texts: list[Document], clusters: Any) -> list[Array]:
    if clusters is not None:
        listed = entries("clusters", clusters, "one list of cluster numbers per document")
        if len(listed) != len(texts):
            raise ValueError(f"there are {len(texts)} documents, but clusters for {len(listed)}; give them for each")
        texts = [text.with_clusters(own) for text, own in zip(texts, listed, strict=True)]
    for i, text in enumerate(texts):
        if text.clusters is None:
            raise ValueError(f"the clusters of document {i} are unknown; see Document.with_clusters")
    return [np.asarray(text.clusters) for text in texts]

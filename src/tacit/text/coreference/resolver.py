"""The coreference resolver: learn from documents whose clusters are known, and find those of others."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.parameters import random_numbers, shorten
from tacit.data.specs import choice, estimator, instance, parameter, positive, whole
from tacit.learners import HiddenCRF, LatentPerceptron
from tacit.learners.application import Application
from tacit.problems import Coreference
from tacit.runtime import Status
from tacit.text import Document, coreference_scores, mention_pairs
from tacit.text.coreference.pairs import FIRST_FEATURE, MentionPairs, PairTemplates, text_templates
from tacit.text.documents import read_documents

MIN_TESTED = 5
"""Documents from which on a part of them is held out first, to tell how good the model is."""

TEST_SHARE = 0.2


class Link(NamedTuple):
    """Why a mention belongs to an earlier one.

    Attributes
    ----------
    mention, earlier : their places in the document
    reasons : the features that speak most for the link, each in words and with its weight
    """

    mention: int
    earlier: int
    reasons: list[tuple[str, float]]


@estimator
class CoreferenceResolver(Application):
    """Find which mentions of a text belong together, having seen texts for which that is known.

    Mentions are given; what is learned is which of them are the same person or thing. Each mention links to an earlier
    one or begins a cluster. Links are never labelled: training chooses them anew wherever several would do. A fit on 80
    chapters of 2000 words takes a quarter of a minute, with the perceptron a few seconds.

    Parameters
    ----------
    learner : "crf", a hidden CRF that adds up the probabilities of links; or "perceptron", five times as quick
    epochs : passes of the perceptron
    C : weight of the likelihood, for "crf"
    candidates : how many mentions before a mention it may link to; mentions of the same words are never too far
    random_state, n_jobs, verbose : as in `tacit.LatentPerceptron`

    Attributes
    ----------
    model_ : the fitted learner
    held_out_ : measures on a fifth of the documents that a model of the others had not seen; empty for fewer than 5
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
    }

    learner: str = parameter(choice("crf", "perceptron"), default="crf")
    epochs: int = parameter(whole(), default=6)
    C: float = parameter(positive, default=15.0)
    candidates: int = parameter(whole(), default=60)
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 1

    def check_learned(self) -> None:
        super().check_learned()
        names, sizes = text_templates()
        if list(self.model_.schema_.blocks.items()) != [(name, (n,)) for name, n in zip(names, sizes, strict=True)]:
            raise ValueError("model_ was learned from other features than this version of tacit has; train it again")
        if not all(isinstance(value, float | int) for value in self.held_out_.values()):
            raise ValueError(f"held_out_ must be numbers by name, got held_out_={shorten(self.held_out_)}")

    def fit(self, documents: Any, clusters: Any = None) -> CoreferenceResolver:
        """Learn from documents.

        Parameters
        ----------
        documents : a list of `tacit.text.Document`
        clusters : one list of numbers per document; None for those that the documents hold
        """
        self.check_parameters()
        texts = read_documents(documents)
        y = _read_clusters(texts, clusters)
        kept = [i for i, text in enumerate(texts) if len(text)]
        if not any(np.unique(y[i]).size < len(y[i]) for i in kept):
            raise ValueError("no two mentions of these documents belong together: there is nothing to learn from")
        X = mention_pairs([texts[i] for i in kept], candidates=int(self.candidates))
        y = [y[i] for i in kept]
        self.held_out_ = self._test(X, y)
        self.model_ = self._fit(X, y)
        self.status_ = self.model_.status_
        return self

    def predict(self, documents: Any) -> list[Array]:
        """The clusters of every document: one number per mention, by first occurrence."""
        texts = read_documents(documents)
        found = [np.zeros(0, dtype=np.int64) for _ in texts]
        kept = [i for i, text in enumerate(texts) if len(text)]
        if kept:
            X = mention_pairs([texts[i] for i in kept], candidates=int(self.candidates))
            for i, clusters in zip(kept, self.model_.predict(X), strict=True):
                found[i] = np.asarray(clusters)
        return found

    def explain(self, document: Document, n_reasons: int = 3) -> list[Link]:
        """The links of one document, each with the features that speak most for it."""
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
            told = templates.explain(mention, earlier)
            links.append(Link(mention, earlier, [(f"{told[t][0]} ({told[t][1]})", worth[t]) for t in best]))
        return links

    def _fit(self, X: MentionPairs, y: list[Array]) -> Any:
        """A fitted learner. It stops before the optimum on purpose; `status_` tells whether it was cut short."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self._learner().fit(X, y)

    def _learner(self) -> Any:
        problem = Coreference(candidates=int(self.candidates))
        if self.learner == "perceptron":
            return LatentPerceptron(
                problem, epochs=int(self.epochs), n_jobs=self.n_jobs, random_state=self.random_state,
                verbose=self.verbose,
            )  # fmt: skip
        return HiddenCRF(
            problem, C=float(self.C), init="zero", tol=CRF_TOLERANCE, max_iter=MAX_STEPS, n_jobs=self.n_jobs,
            random_state=self.random_state, verbose=self.verbose,
        )  # fmt: skip

    def _test(self, X: MentionPairs, y: list[Array]) -> dict[str, float]:
        """Measures on documents that were held out from a fit."""
        n = len(y)
        if n < MIN_TESTED:
            return {}
        seed = int(random_numbers(self.random_state).randint(2**31))
        order = np.random.default_rng(seed).permutation(n)
        n_tested = max(1, round(TEST_SHARE * n))
        tested, others = np.sort(order[:n_tested]), np.sort(order[n_tested:])
        model = self._fit(X[others], [y[i] for i in others])
        scores = coreference_scores([y[i] for i in tested], [np.asarray(c) for c in model.predict(X[tested])])
        return {"documents": float(n_tested), **{name: float(value) for name, value in scores.items()}}


CRF_TOLERANCE = 1e-3
"""Relative slope at which the likelihood counts as solved: predictions no longer change."""

MAX_STEPS = 40
"""Steps of the hidden CRF: held-out measures are then as good as they get."""


def _read_clusters(texts: list[Document], clusters: Any) -> list[Array]:
    if clusters is not None:
        listed = list(clusters)
        if len(listed) != len(texts):
            raise ValueError(f"{len(texts)} documents, and clusters for {len(listed)}; give them for each")
        texts = [text.with_clusters(own) for text, own in zip(texts, listed, strict=True)]
    for i, text in enumerate(texts):
        if text.clusters is None:
            raise ValueError(f"document {i} has no clusters to learn from; see Document.with_clusters")
    return [np.asarray(text.clusters) for text in texts]

"""Mentions that mean the same, for `tacit coref`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.parameters import is_list, shorten, whole_number
from tacit.label.session import Learned, list_open
from tacit.text import Document, mention_pairs, read_conll, write_conll
from tacit.text.coreference.resolver import CoreferenceResolver
from tacit.text.documents import first_occurrence


class Clusters:
    """The clusters of a document per answer. Documents in which two mentions have one number are known."""

    name, quality_name = "coref", "held-out CoNLL score"
    nothing: Any = None

    def __init__(self, path: Path, *, seed: int = 0) -> None:
        self.documents: list[Document] = read_conll([path])
        self._known = {i: own for i, own in enumerate(self.documents) if _has_links(own)}
        self._open = [i for i, own in enumerate(self.documents) if i not in self._known and len(own) > 1]
        if not self._open:
            raise ValueError(
                f"{path} has no document whose clusters are open; give every mention a number of its own where they are"
            )
        self.items = [f"{i + 1} {self.documents[i].name} {self.documents[i].part}" for i in self._open]
        self._resolver = CoreferenceResolver(random_state=seed, verbose=0)

    def describe(self) -> dict[str, Any]:
        return {"kind": "clusters", "none": ""}

    def show(self, item: int) -> dict[str, Any]:
        own = self.documents[self._open[item]]
        return {"sentences": [list(part) for part in own.sentences], "mentions": own.mentions.tolist()}

    def check(self, item: int, answer: Any) -> list[int]:
        """One number per mention, in the order of their first occurrence."""
        n = len(self.documents[self._open[item]])
        if not is_list(answer) or len(answer) != n:
            raise ValueError(f"an answer must have a number per mention ({n}), got {shorten(answer)}")
        numbers = np.array([whole_number("a cluster", number, 0, 10**9) for number in answer])
        return [int(number) for number in first_occurrence(numbers)]

    def _collect(self, answers: Mapping[int, Any]) -> dict[int, Document]:
        given = {self._open[item]: self.documents[self._open[item]].with_clusters(own) for item, own in answers.items()}
        return dict(sorted({**self._known, **given}.items()))

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        known = list(self._collect(answers).values())
        open_ = list_open(len(self.items), answers, closed)
        texts = [self.documents[self._open[item]].with_clusters(None) for item in open_]
        if not any(_has_links(own) for own in known):
            guesses = {item: _same_words(own) for item, own in zip(open_, texts, strict=True)}
            return Learned(sorted(open_, key=lambda item: len(self.documents[self._open[item]])), guesses, None)
        self._resolver.fit(known)
        found = self._resolver.predict(texts) if texts else []
        guesses = {item: [int(number) for number in own] for item, own in zip(open_, found, strict=True)}
        unsure = dict(zip(open_, self._doubts(texts), strict=True))
        quality = self._resolver.held_out_.get("conll")
        return Learned(
            sorted(open_, key=lambda item: -unsure[item]), guesses, None if quality is None else float(quality)
        )

    def _doubts(self, texts: Sequence[Document]) -> list[float]:
        """The share of links per document that change when noise is added to the weights: doubts per mention."""
        if not texts:
            return []
        model = self._resolver.model_
        X = mention_pairs(list(texts), candidates=int(self._resolver.candidates))
        oracle = model._bind(X)
        rng = np.random.default_rng(0)
        best = oracle.predict(model.coef_).code
        scale = NOISE * float(np.linalg.norm(model.coef_)) / np.sqrt(model.coef_.size)
        changed = np.zeros(best.size)
        for _ in range(DRAWS):
            changed += oracle.predict(model.coef_ + scale * rng.standard_normal(model.coef_.size)).code != best
        parts = np.cumsum([len(text) for text in texts])[:-1]
        return [float(own.mean()) / DRAWS for own in np.split(changed, parts)]

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """resolved.conll: all documents with known clusters, what ``tacit coref`` learns from."""
        write_conll(folder / "resolved.conll", list(self._collect(answers).values()))
        return ["resolved.conll"]


DRAWS, NOISE = 4, 0.5
"""Perturbed weights, and the norm of the noise relative to that of the weights."""


def _has_links(document: Document) -> bool:
    return document.clusters is not None and np.unique(document.clusters).size < len(document)


def _same_words(document: Document) -> list[int]:
    """A first guess without a model: mentions with the same words are the same."""
    names: dict[str, int] = {}
    words = [" ".join(document.words(m)).lower() for m in range(len(document))]
    return [names.setdefault(own, len(names)) for own in words]

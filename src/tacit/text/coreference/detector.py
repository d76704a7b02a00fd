"""`MentionFinder`: find the mentions of documents, nested ones too, by one chain per level of nesting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.specs import estimator, instance, parameter, positive, whole
from tacit.learners.application import Application
from tacit.runtime import Status
from tacit.text.documents import Document, read_documents
from tacit.text.entities import find_entities
from tacit.text.tagger import Tagger

MIN_MENTIONS = 20
"""The fewest mentions of a level of nesting that it is learned from."""

INSIDE = "m"
"""The type of all mentions, as entities of a chain."""


class MentionScores(NamedTuple):
    """How many mentions there are, were found, and were found with exactly their tokens."""

    true: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        """Share of the found mentions that are right."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the true mentions that were found."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / (self.true + self.found) if self.true + self.found else 0.0


@estimator
class MentionFinder(Application):
    """Find the mentions of documents, learned from documents that have them.

    Mentions without another one inside are tagged first, by a `tacit.apps.Tagger`. A second tagger finds the mentions
    around those, with the tags of the first as features, and so on. Mentions that cross one another, or the end of a
    sentence, are not learned.

    Parameters
    ----------
    levels : the most levels of nesting
    C, epochs : as in `tacit.apps.Tagger`
    missed : cost of a token of a mention that is not found, relative to other mistakes
    random_state, verbose : as in `tacit.apps.Tagger`

    Attributes
    ----------
    taggers_ : one fitted tagger per level
    status_ : whether the fit was interrupted

    >>> tale = Document([["her", "sister", "saw", "Alice"]], [(0, 2), (0, 1), (3, 4)])
    >>> finder = MentionFinder(verbose=0).fit([tale] * 20)
    >>> finder.predict([Document([["her", "sister", "saw", "Tom"]], [])])[0].mentions.tolist()
    [[0, 2], [0, 1], [3, 4]]
    """

    learned: ClassVar = {"taggers_": instance(list, "a list of fitted taggers")}

    levels: int = parameter(whole(1, 10), default=4)
    C: float = parameter(positive, default=0.1)
    epochs: int = parameter(whole(), default=10)
    missed: float = parameter(positive, default=2.0)
    random_state: Any = 0
    verbose: int = 1

    def check_learned(self) -> None:
        super().check_learned()
        if not self.taggers_ or not all(isinstance(tagger, Tagger) for tagger in self.taggers_):
            raise ValueError(f"taggers_ must be fitted taggers, got taggers_={shorten(self.taggers_)}")

    def fit(self, documents: Any, y: Any = None) -> MentionFinder:
        """Learn from the mentions of documents."""
        self.check_parameters()
        texts = read_documents(documents)
        tags = [own for text in texts for own in _level_tags(text, int(self.levels))]
        words = [list(sentence) for text in texts for sentence in text.sentences]
        kept = [i for i, sentence in enumerate(words) if sentence]
        counts = [sum(tag[0] == "B" for i in kept for tag in tags[i][level]) for level in range(int(self.levels))]
        if not counts[0]:
            raise ValueError("the documents must have mentions to learn from, got none")
        n_levels = max(1, sum(count >= MIN_MENTIONS for count in counts))
        self.taggers_ = []
        X: list[list[Any]] = [words[i] for i in kept]
        for level in range(n_levels):
            tagger = Tagger(
                C=self.C, epochs=self.epochs, missed=self.missed, random_state=self.random_state, verbose=self.verbose
            )
            own = [tags[i][level] for i in kept]
            self.taggers_.append(tagger.fit(X, own))
            X = _with_tags(X, own)
        self.status_ = next((t.status_ for t in self.taggers_ if t.status_ is not Status.CONVERGED), Status.CONVERGED)
        return self

    def predict(self, documents: Any) -> list[Document]:
        """The documents with the mentions that were found; their own mentions and clusters are not used."""
        texts = read_documents(documents)
        words = [list(sentence) for text in texts for sentence in text.sentences]
        kept = [i for i, sentence in enumerate(words) if sentence]
        found: list[set[tuple[int, int]]] = [set() for _ in words]
        X: list[list[Any]] = [words[i] for i in kept]
        for tagger in self.taggers_ if kept else []:
            tags = [list(map(str, own)) for own in tagger.predict(X)]
            for i, own in zip(kept, tags, strict=True):
                found[i].update((start, end) for start, end, _ in find_entities(own))
            X = _with_tags(X, tags)
        results, sentence = [], 0
        for text in texts:
            spans, first = [], 0
            for tokens in text.sentences:
                spans += [(first + start, first + end) for start, end in found[sentence]]
                first += len(tokens)
                sentence += 1
            spans.sort(key=lambda span: (span[0], -span[1]))
            results.append(replace(text, mentions=spans, clusters=None))
        return results


def score_mentions(true: Sequence[Document], found: Sequence[Document]) -> MentionScores:
    """Compare the mentions of documents, by their tokens.

    >>> text = Document([["her", "sister"]], [(0, 2), (0, 1)])
    >>> score_mentions([text], [replace(text, mentions=[(0, 2)])])
    MentionScores(true=2, found=1, right=1)
    """
    counts = np.zeros(3, dtype=np.int64)
    for one, other in zip(true, found, strict=True):
        truth, guess = (set(map(tuple, text.mentions.tolist())) for text in (one, other))
        counts += [len(truth), len(guess), len(truth & guess)]
    return MentionScores(*counts.tolist())


def drop_singletons(document: Document) -> Document:
    """The document without the mentions that are alone in their cluster, as CoNLL-2012 scores it.

    >>> drop_singletons(Document([["a", "b", "c"]], [(0, 1), (1, 2), (2, 3)], [0, 1, 0])).mentions.tolist()
    [[0, 1], [2, 3]]
    """
    clusters: Array = np.asarray(document.clusters)
    numbers, inverse, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    kept = sizes[inverse] > 1 if numbers.size else np.zeros(0, dtype=bool)
    return replace(document, mentions=document.mentions[kept].tolist(), clusters=clusters[kept].tolist())


def _level_tags(document: Document, levels: int) -> list[list[list[str]]]:
    """Per sentence and level of nesting, the tags of its mentions; level 0 has nothing inside."""
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in document.sentences])])
    found = [[["O"] * len(sentence) for _ in range(levels)] for sentence in document.sentences]
    spans = sorted({(a, b) for a, b in document.mentions.tolist()}, key=lambda span: (span[1] - span[0], span[0]))
    of_sentence: dict[int, list[tuple[int, int, int]]] = {}
    for start, end in spans:
        sentence = int(np.searchsorted(starts, start, side="right")) - 1
        own = of_sentence.setdefault(sentence, [])
        if end > starts[sentence + 1] or any(a < start < b < end or start < a < end < b for a, b, _ in own):
            continue
        level = max((deep + 1 for a, b, deep in own if start <= a and b <= end), default=0)
        own.append((start, end, level))
        if level < levels:
            first = start - int(starts[sentence])
            size = end - start
            found[sentence][level][first : first + size] = [f"B-{INSIDE}", *[f"I-{INSIDE}"] * (size - 1)]
    return found


def _with_tags(X: list[list[Any]], tags: list[list[str]]) -> list[list[Any]]:
    """Tokens with one more column."""
    return [
        [(*(token if isinstance(token, tuple) else (token,)), tag) for token, tag in zip(sentence, own, strict=True)]
        for sentence, own in zip(X, tags, strict=True)
    ]

"""Tags of words, for `tacit tag`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.parameters import is_list, shorten
from tacit.label.session import Learned
from tacit.text.tagged_words import read_tagged, two_columns
from tacit.text.tagger import Tagger

FOLDS, MIN_TAGGED = 4, 8
"""Folds of the held-out accuracy, and sentences that it needs."""

EPOCHS = 5
ASKED = 50
"""Sentences that are put in order by their usefulness after each fit; the others follow."""


class Tags:
    """All tags of a sentence per answer. Sentences whose tags are all in the file are known from the beginning."""

    name, quality_name = "tag", "held-out accuracy of tags"
    nothing = None

    def __init__(self, path: Path, *, tags: Sequence[str] = (), seed: int = 0) -> None:
        given = read_tagged(path)
        self.words = [[str(word) for word in own] for own in given.words]
        self._given = {i: list(own) for i, own in enumerate(given.tags) if all(tag is not None for tag in own)}
        self._open = [i for i in range(len(self.words)) if i not in self._given]
        in_file = {str(tag) for own in given.tags for tag in own if tag is not None}
        self.tags = [*dict.fromkeys(tags), *sorted(in_file - set(tags))]
        if len(self.tags) < 2:
            raise ValueError(
                f"{path} must have two or more different tags, got {len(self.tags)}; name all of them, as in "
                "--tags N,V,D"
            )
        if not self._open:
            raise ValueError(f"{path} has all of its tags, so there is nothing to ask; write _ for a missing tag")
        self.items = [f"sentence {i + 1}" for i in self._open]
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        return {"kind": "tags", "tags": self.tags, "none": ""}

    def show(self, item: int) -> dict[str, Any]:
        return {"words": self.words[self._open[item]]}

    def check(self, item: int, answer: Any) -> list[str]:
        """One tag per word."""
        words = self.words[self._open[item]]
        if not is_list(answer) or len(answer) != len(words) or not all(tag in self.tags for tag in answer):
            raise ValueError(f"an answer must have a tag of {shorten(self.tags)} per word ({len(words)})")
        return [str(tag) for tag in answer]

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        known = self._complete_tags(answers)
        open_ = [item for item in range(len(self.items)) if item not in answers and item not in set(closed)]
        if len({tag for own in known.values() for tag in own}) < 2:
            shuffled = np.random.default_rng(self._seed).permutation(len(open_)).tolist()
            return Learned([open_[i] for i in shuffled], {}, None)
        rows = list(known)
        tagger = self._fit(rows, known)
        words = [self.words[self._open[item]] for item in open_]
        guesses, order = {}, list(open_)
        if open_:
            found = tagger.predict(words)
            guesses = {item: [str(tag) for tag in own] for item, own in zip(open_, found, strict=True)}
            first = [open_[i] for i in tagger.ask(words, ASKED, random_state=self._seed).rows.tolist()]
            order = list(dict.fromkeys([*first, *open_]))
        return Learned(order, guesses, self._test(rows, known))

    def _complete_tags(self, answers: Mapping[int, Any]) -> dict[int, list[str]]:
        """The tags of sentences that are completely tagged, by their position in the file."""
        return self._given | {self._open[item]: own for item, own in sorted(answers.items())}

    def _fit(self, rows: Sequence[int], known: Mapping[int, Any]) -> Tagger:
        tagger = Tagger(epochs=EPOCHS, random_state=self._seed, verbose=0)
        return tagger.fit([self.words[i] for i in rows], [known[i] for i in rows])

    def _test(self, rows: list[int], known: Mapping[int, Any]) -> float | None:
        """The accuracy of tags of held-out sentences, each held out once."""
        if len(rows) < MIN_TAGGED:
            return None
        right = total = 0
        for fold in range(FOLDS):
            train, test = [i for k, i in enumerate(rows) if k % FOLDS != fold], rows[fold::FOLDS]
            if len({tag for i in train for tag in known[i]}) < 2:
                return None
            found = self._fit(train, known).predict([self.words[i] for i in test])
            for i, own in zip(test, found, strict=True):
                right += sum(str(tag) == true for tag, true in zip(own, known[i], strict=True))
                total += len(known[i])
        return right / total

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """tagged.tsv: a word and its tag per line, what ``tacit tag`` reads."""
        known = self._complete_tags(answers)
        rows = sorted(known)
        text = two_columns([self.words[i] for i in rows], [known[i] for i in rows])
        (folder / "tagged.tsv").write_text(text, encoding="utf-8")
        return ["tagged.tsv"]

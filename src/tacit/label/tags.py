"""Tags of words, for `tacit tag`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.data.parameters import is_list, one_of, shorten
from tacit.label.session import ASKED, Learned, hold_out, list_open, put_asked_first, shuffle
from tacit.text.tagged_words import read_tagged, write_two_columns
from tacit.text.tagger import Tagger

EPOCHS = 5


class Tags:
    """All missing tags of a sentence per answer, or with ``single`` the tag of one word; tags in the file are known."""

    nothing = None
    quality_name = "held-out accuracy of tags"

    def __init__(self, path: Path, *, tags: Sequence[str] = (), single: bool = False, seed: int = 0) -> None:
        given = read_tagged(path)
        self.name = "tag, single words" if single else "tag"
        self.words = [[str(word) for word in own] for own in given.words]
        self._given = [list(own) for own in given.tags]
        missing = [(i, t) for i, own in enumerate(self._given) for t, tag in enumerate(own) if tag is None]
        in_file = Counter(str(tag) for own in given.tags for tag in own if tag is not None)
        frequent = sorted(in_file, key=lambda tag: (-in_file[tag], tag))  # the first nine have a key on the page
        self.tags = list(dict.fromkeys([*tags, *frequent]))
        if len(self.tags) < 2:
            raise ValueError(
                f"{path} must have two or more different tags, got {len(self.tags)}; name all of them, as in "
                "--tags N,V,D"
            )
        if not missing:
            raise ValueError(f"{path} has all of its tags, so there is nothing to ask; write _ for a missing tag")
        self._places: list[tuple[int, int | None]] = (
            [*missing] if single else [(i, None) for i in dict.fromkeys(i for i, _ in missing)]
        )
        self.items = [
            f"sentence {i + 1}" if t is None else f"sentence {i + 1}, word {t + 1}: {self.words[i][t]}"
            for i, t in self._places
        ]
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        return {"kind": "tags", "tags": self.tags, "none": ""}

    def show(self, item: int) -> dict[str, Any]:
        i, t = self._places[item]
        return {"words": self.words[i], "at": t}

    def check(self, item: int, answer: Any) -> Any:
        """One tag per word, or the tag of the word."""
        i, t = self._places[item]
        if t is not None:
            return one_of("the tag", answer, self.tags)
        n = len(self.words[i])
        if not is_list(answer) or len(answer) != n or not all(tag in self.tags for tag in answer):
            raise ValueError(f"an answer must have a tag of {shorten(self.tags)} per word ({n})")
        return [str(tag) for tag in answer]

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        known = self._collect(answers)
        open_ = list_open(len(self.items), answers, closed)
        if len({tag for own in known.values() for tag in own} - {None}) < 2:
            return Learned(shuffle(open_, self._seed), {}, None)
        tagger = self._fit(known)
        rows = sorted({self._places[item][0] for item in open_})
        guesses: dict[int, Any] = {}
        order = open_
        if rows:
            words = [self.words[i] for i in rows]
            found = {i: [str(tag) for tag in own] for i, own in zip(rows, tagger.predict(words), strict=True)}
            whole = {i: [tag or guess for tag, guess in zip(self._given[i], found[i], strict=True)] for i in rows}
            guesses = {item: whole[i] if t is None else whole[i][t] for item in open_ for i, t in [self._places[item]]}
            is_single = self._places[0][1] is not None
            y = [known.get(i, self._given[i]) for i in rows] if is_single else None
            asked = tagger.ask(words, ASKED, y=y, parts=is_single, random_state=self._seed)
            places = self._places if is_single else [i for i, _ in self._places]
            order = put_asked_first(open_, places, asked, rows)
        return Learned(order, guesses, self._test(known))

    def _collect(self, answers: Mapping[int, Any]) -> dict[int, list[str | None]]:
        """The known tags of sentences that have some, None for the others, by their position in the file."""
        known = {i: list(own) for i, own in enumerate(self._given) if any(own)}
        for item, answer in sorted(answers.items()):
            i, t = self._places[item]
            if t is None:
                known[i] = list(answer)
            else:
                known.setdefault(i, [None] * len(self.words[i]))[t] = answer
        return dict(sorted(known.items()))

    def _fit(self, known: Mapping[int, Any]) -> Tagger:
        tagger = Tagger(epochs=EPOCHS, random_state=self._seed, verbose=0)
        return tagger.fit([self.words[i] for i in known], list(known.values()))

    def _test(self, known: Mapping[int, Any]) -> float | None:
        """The accuracy of known tags of held-out sentences, each held out once."""
        right = total = 0
        for test in hold_out(list(known)):
            train = {i: own for i, own in known.items() if i not in set(test)}
            if len({tag for own in train.values() for tag in own} - {None}) < 2:
                return None
            found = self._fit(train).predict([self.words[i] for i in test])
            for i, own in zip(test, found, strict=True):
                right += sum(str(tag) == true for tag, true in zip(own, known[i], strict=True))
                total += sum(true is not None for true in known[i])
        return right / total if total else None

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """tagged.tsv: a word and its tag per line, ``_`` where it is missing, what ``tacit tag`` reads."""
        known = self._collect(answers)
        write_two_columns(folder / "tagged.tsv", [self.words[i] for i in known], list(known.values()))
        return ["tagged.tsv"]

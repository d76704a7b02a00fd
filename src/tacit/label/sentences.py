"""Sentences that decide the labels of documents, for `tacit reasons`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit import ask
from tacit.data.lines import json_line
from tacit.data.parameters import is_list, shorten, whole_number
from tacit.label.session import ASKED, Learned, hold_out, list_open, put_asked_first
from tacit.text.sentences.finder import ReasonFinder
from tacit.text.sentences.vectors import read_document_file


class DecisiveSentences:
    """The decisive sentences of a document per answer; documents without a label are not asked for."""

    name, quality_name = "reasons", "held-out share of right sentences"
    nothing: Any = None

    def __init__(self, path: Path, *, share: float = 0.3, seed: int = 0) -> None:
        self.data = read_document_file(path)
        self._finder = ReasonFinder(share=share, random_state=seed, verbose=0)
        labels = self.data.labels
        self._rows = [i for i, label in enumerate(labels) if label is not None]
        if len({labels[i] for i in self._rows}) != 2:
            raise ValueError(f"{path} must have documents with two different labels; add labels to its lines")
        self._y = np.array([labels[i] for i in self._rows])
        documents = [self.data.documents[i] for i in self._rows]
        self._X = self._finder.vectors(documents)
        self.counts = [self._finder.count_chosen(len(own)) for own in documents]
        self._open = [
            k for k, i in enumerate(self._rows) if self.data.known[i] is None and len(documents[k]) > self.counts[k]
        ]
        if not self._open:
            raise ValueError(f"{path} has no document with a label, open reasons and more sentences than are chosen")
        self.items = [self.data.names[self._rows[k]] for k in self._open]
        if len(set(self.items)) < len(self.items):
            self.items = [f"line {self._rows[k] + 1}, {name}" for k, name in zip(self._open, self.items, strict=True)]
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        return {"kind": "sentences", "none": "", "note": "The held-out share is of the sentences that were answered."}

    def show(self, item: int) -> dict[str, Any]:
        k = self._open[item]
        i = self._rows[k]
        return {"sentences": self.data.documents[i], "label": self.data.labels[i], "count": self.counts[k]}

    def check(self, item: int, answer: Any) -> list[int]:
        """One or more sentences."""
        last = len(self.data.documents[self._rows[self._open[item]]]) - 1
        if not is_list(answer) or not len(answer):
            raise ValueError(f"one or more sentences must be chosen, got {shorten(answer)}")
        return sorted({whole_number("a sentence", own, 0, last) for own in answer})

    def _collect(self, answers: Mapping[int, Any]) -> list[Any]:
        """What is known of each labelled document, from the file and from answers."""
        hidden: list[Any] = [self.data.known[i] for i in self._rows]
        for item, own in answers.items():
            hidden[self._open[item]] = own
        return hidden

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        hidden = self._collect(answers)
        model = self._finder.learn(self._X, self._y, hidden)[0]
        open_ = list_open(len(self.items), answers, closed)
        imputed = model.impute(self._X, self._y)
        guesses = {item: [int(t) for t in imputed[self._open[item]]] for item in open_}
        skip = sorted({*range(len(self._y))} - {self._open[item] for item in open_})
        questions = ask(model, self._X, self._y, ASKED, skip=skip, random_state=self._seed)
        order = put_asked_first(open_, self._open, questions, range(len(self._y)))
        return Learned(order, guesses, self._test(hidden))

    def _test(self, hidden: list[Any]) -> float | None:
        """The share of the sentences of held-out answers that the model chooses."""
        shares: list[float] = []
        for held in hold_out([k for k, own in enumerate(hidden) if own is not None]):
            given = [None if k in held else own for k, own in enumerate(hidden)]
            model = self._finder.learn(self._X, self._y, given)[0]
            rows = np.array(held)
            found = model.impute(self._X[rows], self._y[rows])
            shares += [len(set(own) & set(hidden[k])) / len(hidden[k]) for k, own in zip(rows, found, strict=True)]
        return float(np.mean(shares)) if shares else None

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """documents.jsonl: all documents, with the answers as "known", what ``tacit reasons`` reads."""
        known = dict(zip(self._rows, self._collect(answers), strict=True))
        lines = []
        for i, (sentences, label, name) in enumerate(zip(*self.data[:3], strict=True)):
            content: dict[str, Any] = {"id": name, "label": label, "sentences": sentences}
            if known.get(i) is not None:
                content["known"] = known[i]
            lines.append(json_line(content) + "\n")
        (folder / "documents.jsonl").write_text("".join(lines), encoding="utf-8")
        return ["documents.jsonl"]

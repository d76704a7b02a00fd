"""Sites of a motif in DNA sequences, for `tacit motif`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit import LatentSVM, ask
from tacit.data.arrays import Array
from tacit.data.parameters import is_list, shorten, whole_number
from tacit.dna.files import Matrix, write_meme
from tacit.dna.finder.files import cut_site, read_motif_input, tsv
from tacit.dna.sequences import read_sequences, shuffle_pairs, write_letters
from tacit.label.session import ASKED, Learned, hold_out, list_open, put_asked_first
from tacit.problems import Motif

TOP = 1000
"""Positives of a table with signals, as in `tacit motif`."""


class Sites:
    """One site per positive sequence: its start, and its strand."""

    name, quality_name = "motif", "held-out share of right sites"
    nothing: Any = None

    def __init__(self, path: Path, *, width: int = 10, seed: int = 0) -> None:
        data = read_motif_input(path, None, top=TOP, seed=seed)
        self.letters = [letters.upper() for letters in data.letters]
        self._is_positive = np.ones(len(self.letters), bool) if data.labels is None else data.labels == 1
        short = next((i for i, own in enumerate(self.letters) if len(own) < width), None)
        if short is not None:
            name = data.names[short]
            raise ValueError(f"{shorten(name)} has {len(self.letters[short])} letters; --width {width} must be shorter")
        own = self.letters
        if data.labels is None:
            own = own + write_letters(shuffle_pairs(read_sequences(self.letters), seed))
            self._is_positive = np.arange(len(own)) < len(self.letters)
        self._X, self._y = own, np.where(self._is_positive, 1, -1)
        self._rows = np.flatnonzero(self._is_positive).tolist()
        names = [data.names[i] for i in self._rows]
        is_plain = len(set(names)) == len(names)
        self.items = names if is_plain else [f"sequence {i + 1}, {data.names[i]}" for i in self._rows]
        self._names = names
        self.width, self._seed = width, seed

    def describe(self) -> dict[str, Any]:
        return {"kind": "sites", "none": "no site here", "note": "The share is of the sites that were answered."}

    def show(self, item: int) -> dict[str, Any]:
        return {"letters": self._X[self._rows[item]], "width": self.width, "strands": 2}

    def check(self, item: int, answer: Any) -> list[int]:
        """A start within the sequence, and a strand."""
        if not is_list(answer) or len(answer) != 2:
            raise ValueError(f"a site must be a start and a strand, got {shorten(answer)}")
        last = len(self._X[self._rows[item]]) - self.width
        return [whole_number("the start", answer[0], 0, last), whole_number("the strand", answer[1], 0, 1)]

    def _fit(self, known: Mapping[int, Any], closed: Sequence[int]) -> tuple[LatentSVM, Array, Array]:
        """The model, its rows, and what is known of them; sequences without a site are left out."""
        hidden = np.full((len(self._X), 2), -1)
        for item, site in known.items():
            hidden[self._rows[item]] = site
        rows = np.setdiff1d(np.arange(len(self._X)), [self._rows[item] for item in closed])
        problem = Motif(width=self.width, strands="both")
        model = LatentSVM(problem, C=100.0, tol=1e-2, unknown_weight=1.0, random_state=self._seed, verbose=0)
        model.fit([self._X[i] for i in rows], self._y[rows], hidden=hidden[rows])
        return model, rows, hidden[rows]

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        model, rows, hidden = self._fit(answers, closed)
        X = [self._X[i] for i in rows]
        open_ = list_open(len(self.items), answers, closed)
        imputed = dict(zip(rows.tolist(), model.impute(X, self._y[rows]), strict=True))
        guesses = {item: [int(part) for part in imputed[self._rows[item]]] for item in open_}
        skip = np.flatnonzero(self._y[rows] < 0)
        questions = ask(model, X, self._y[rows], ASKED, hidden=hidden, skip=skip, random_state=self._seed)
        order = put_asked_first(open_, self._rows, questions, rows)
        return Learned(order, guesses, self._test(answers, closed))

    def _test(self, answers: Mapping[int, Any], closed: Sequence[int]) -> float | None:
        """The share of held-out answers with the right start and strand."""
        folds, right = hold_out(sorted(answers)), 0
        for held in folds:
            model = self._fit({item: site for item, site in answers.items() if item not in held}, closed)[0]
            found = model.impute([self._X[self._rows[item]] for item in held], np.ones(len(held), np.int64))
            right += sum(own.tolist() == answers[item] for item, own in zip(held, found, strict=True))
        return right / len(answers) if folds else None

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """sites.tsv in the columns of ``tacit motif``, and motifs.meme, which ``tacit scan`` reads."""
        rows, sites = [], []
        for item, (start, strand) in sorted(answers.items()):
            site = cut_site(self._X[self._rows[item]], start, self.width, strand)
            sites.append(site)
            rows.append((1, self._names[item], start, start + self.width, "+-"[strand], "", site))
        header = ("motif", "sequence", "start", "end", "strand", "score", "site")
        (folder / "sites.tsv").write_text(tsv(header, rows), encoding="utf-8")
        counts = np.array([[sum(site[k] == letter for site in sites) for letter in "ACGT"] for k in range(self.width)])
        shares = (counts + 0.25) / (counts + 0.25).sum(axis=1, keepdims=True)
        text = write_meme([Matrix("answers", shares)], np.full(4, 0.25), [len(sites)], [0.0])
        (folder / "motifs.meme").write_text(text, encoding="utf-8")
        return ["sites.tsv", "motifs.meme"]

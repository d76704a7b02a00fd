"""What happens between answers: the model is fitted again in the background, and the questions are put in order."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit import Questions
from tacit.data.parameters import reason, shorten, whole_number
from tacit.data.reading import quote, read_text
from tacit.label.journal import ANSWER, KINDS, NONE, UNDO, Entry, Journal

SHOWN = 5
"""Questions that the page gets at a time."""

FLAT, ROUNDS = 0.005, 3
"""If the quality rose by less than this in so many rounds, the page says that more answers hardly pay."""


FOLDS, MIN_ANSWERED = 4, 8
"""Folds of the quality on held-out answers, and answers that it needs."""

ASKED = 50
"""Questions that are put in order by their usefulness after each fit; the others follow."""


class Learned(NamedTuple):
    """What a task learned from the answers so far.

    ``order`` has the items without an answer, the most useful first; ``guesses`` what the model would answer, by item;
    ``quality`` the quality on held-out answers, None with too few of them.
    """

    order: Sequence[int]
    guesses: Mapping[int, Any]
    quality: float | None


def list_open(n: int, answers: Mapping[int, Any], closed: Sequence[int]) -> list[int]:
    """The items, of ``n``, that have neither an answer nor were closed without one."""
    done = {*answers, *closed}
    return [item for item in range(n) if item not in done]


def put_asked_first(open_: Sequence[int], places: Sequence[Any], asked: Questions, rows: Any) -> list[int]:
    """The open items, those of the questions first.

    ``places`` has the sample of every item, or the pair of sample and part; ``rows`` the samples that were asked for.
    """
    at = {places[item]: item for item in open_}
    found: list[Any] = [int(rows[k]) for k in asked.rows]
    if asked.parts is not None:
        found = list(zip(found, asked.parts.tolist(), strict=True))
    return list(dict.fromkeys([*(at[place] for place in found if place in at), *open_]))


def shuffle(items: Sequence[int], seed: int) -> list[int]:
    """The items in a random order, for questions before there is a model."""
    return [items[i] for i in np.random.default_rng(seed).permutation(len(items)).tolist()]


def hold_out(items: Sequence[int]) -> list[list[int]]:
    """The items of each fold, to be held out in turn; no fold with too few items."""
    return [list(items[fold::FOLDS]) for fold in range(FOLDS)] if len(items) >= MIN_ANSWERED else []


class Task(Protocol):
    """What is asked: photos and boxes, sentences and tags.

    ``nothing`` is the answer that "none here" stands for; None where such an item is closed without an answer.
    """

    name: str
    quality_name: str
    items: list[str]
    nothing: Any

    def describe(self) -> dict[str, Any]:
        """What the page needs to know once."""

    def show(self, item: int) -> dict[str, Any]:
        """What the page shows of an item."""

    def check(self, item: int, answer: Any) -> Any:
        """The answer in its plain form; an error if it cannot be one."""

    def learn(self, answers: Mapping[int, Any], closed: Sequence[int]) -> Learned:
        """Fit again. ``closed`` has items that were skipped, or have nothing to answer."""

    def export(self, answers: Mapping[int, Any], folder: Path) -> list[str]:
        """Write the answers in formats that commands read; the names of the files."""


class Session:
    """One task, its journal, and what was learned so far; safe to call from several threads.

    Parameters
    ----------
    task : what is asked
    folder : for the journal and the exported answers
    batch : number of answers after which the model is fitted again
    """

    def __init__(self, task: Task, folder: Path, batch: int = 10) -> None:
        self.task, self.folder, self.batch = task, folder, batch
        self.journal = Journal(folder / "answers.jsonl", task.name)
        self._at = {name: i for i, name in enumerate(task.items)}
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._exporting = threading.Lock()
        self._learned = Learned(range(len(task.items)), {}, None)
        self._qualities = self._read_qualities()
        self._fitted_at, self._is_fitting, self._error = -1, False, ""
        self.answers()

    def answers(self) -> tuple[dict[int, Any], list[int]]:
        """The answers by item, and the items that are closed without one."""
        given, closed = {}, []
        for name, entry in self.journal.read().items():
            if name not in self._at:
                raise self._other_input(name, "which is not in the input")
            item = self._at[name]
            if entry.kind != ANSWER:
                closed.append(item)
                continue
            try:
                given[item] = self.task.check(item, entry.answer)
            except (ValueError, TypeError) as error:
                raise self._other_input(name, f"which does not fit it: {reason(error)}") from error
        return given, closed

    def _other_input(self, name: str, why: str) -> ValueError:
        return ValueError(
            f"{self.journal.path} has an answer for {shorten(name)}, {why}; give the same input and options, or choose "
            "another --out"
        )

    def answer(self, item: Any, kind: Any, answer: Any = None) -> None:
        """Write an answer to the disk; an error if it is not one."""
        item = whole_number("item", item, 0, len(self.task.items) - 1)
        if kind not in KINDS or kind == UNDO:
            raise ValueError(f"kind must be 'answer', 'skip' or 'none', got {shorten(kind)}")
        if kind == NONE and self.task.nothing is not None:
            kind, answer = ANSWER, self.task.nothing
        checked = self.task.check(item, answer) if kind == ANSWER else None
        with self._lock:
            self.journal.append(Entry(self.task.items[item], kind, checked))
        self.refit()

    def undo(self, item: Any = None) -> int | None:
        """Take an answer back: the last one to this item, or the last of all, also of an earlier session.

        Returns its item, or None where there is no answer. A page names the item, so that two pages do not take back
        the answers of each other.
        """
        if item is not None:
            item = whole_number("item", item, 0, len(self.task.items) - 1)
        with self._lock:
            now = self.journal.read()
            name = next(reversed(now), None) if item is None else self.task.items[item]
            if name is None or name not in now:
                return None
            self.journal.append(Entry(name, UNDO, None))
        return self._at[name]

    def refit(self, *, always: bool = False) -> None:
        """Begin to fit in the background, if a batch of answers is new; does not wait."""
        with self._lock:
            n = len(self.answers()[0])
            is_due = always or abs(n - self._fitted_at) >= self.batch
            if self._is_fitting or not is_due:
                return
            self._is_fitting = True
        threading.Thread(target=self._fit, daemon=True).start()

    def wait(self, timeout: float = 60.0) -> None:
        """Wait until no fit is running."""
        with self._wake:
            self._wake.wait_for(lambda: not self._is_fitting, timeout)

    def _fit(self) -> None:
        given, closed = self.answers()
        learned, error = None, ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learned = self.task.learn(given, closed)
            self.export()
        except Exception as raised:  # the page shows it; answers go on
            error = reason(raised)
        with self._wake:
            self._is_fitting, self._fitted_at, self._error = False, len(given), error
            if learned is not None:
                self._learned = learned
                if learned.quality is not None:
                    self._note_quality(len(given), round(float(learned.quality), 4))
            self._wake.notify_all()
        self.refit()

    def state(self, item: int | None = None) -> dict[str, Any]:
        """What the page shows: the next questions, progress, and the quality by number of answers.

        The question that a page shows at present, ``item``, stays the first until it is answered.
        """
        with self._lock:
            given, closed = self.answers()
            done = {*given, *closed}
            learned = self._learned
            present = [] if item is None or item in done else [item]
            order = dict.fromkeys([*present, *learned.order, *range(len(self.task.items))])
            following = [i for i in order if i not in done]
            questions = [
                {"item": i, "name": self.task.items[i], "guess": learned.guesses.get(i), **self.task.show(i)}
                for i in following[:SHOWN]
            ]
            return {
                "questions": questions,
                "answered": len(given),
                "closed": len(closed),
                "total": len(self.task.items),
                "qualities": list(self._qualities),
                "advice": self._advice(),
                "is_fitting": self._is_fitting,
                "error": self._error,
                "can_undo": bool(done),
            }

    @property
    def _quality_file(self) -> Path:
        return self.folder / "quality.tsv"

    def _read_qualities(self) -> list[tuple[int, float]]:
        """The qualities of earlier sessions, by number of answers."""
        if not self._quality_file.is_file():
            return []
        try:
            pairs = [line.split("\t") for line in read_text(self._quality_file).splitlines()[1:]]
            return sorted({int(n): float(quality) for n, quality in pairs}.items())
        except ValueError as error:
            words = f"{quote(self._quality_file)} must have two columns of numbers; remove the file"
            raise ValueError(words) from error

    def _note_quality(self, n: int, quality: float) -> None:
        self._qualities = sorted({**dict(self._qualities), n: quality}.items())
        rows = "".join(f"{answers}\t{own}\n" for answers, own in self._qualities)
        self._quality_file.write_text(f"answers\t{self.task.quality_name}\n{rows}", encoding="utf-8")

    def _advice(self) -> str:
        values = [quality for _, quality in self._qualities]
        if len(values) <= ROUNDS or max(values[-ROUNDS:]) - max(values[:-ROUNDS]) >= FLAT:
            return ""
        return f"The held-out quality did not rise in the last {ROUNDS} rounds: more answers hardly pay."

    def export(self) -> list[str]:
        """Write the answers so far in formats that commands read; the names of the files."""
        with self._exporting:
            given, _ = self.answers()
            return self.task.export(given, self.folder) if given else []

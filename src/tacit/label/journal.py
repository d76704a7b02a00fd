"""Answers on disk: a file of JSON lines that only grows, so that a killed process loses nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tacit.data.lines import json_line
from tacit.data.parameters import shorten
from tacit.data.reading import quote

ANSWER, SKIP, NONE, UNDO = "answer", "skip", "none", "undo"
KINDS = (ANSWER, SKIP, NONE, UNDO)
"""An answer; "cannot tell"; "there is none here"; and taking the last of these back."""


class Entry(NamedTuple):
    """One line of the journal: the item by name, what kind of answer it is, and the answer."""

    item: str
    kind: str
    answer: Any


class Journal:
    """The answers of one task. Several processes may append to one file; nothing in it is ever changed.

    Parameters
    ----------
    path : the file; it is made with the first line, which names the task
    task : what the answers are for; a file for another task is refused

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "answers.jsonl", "tag")
    ...     journal.append(Entry("sentence 1", "answer", ["D", "N"]))
    ...     journal.append(Entry("sentence 2", "skip", None))
    ...     journal.append(Entry("sentence 2", "undo", None))
    ...     journal.read()
    {'sentence 1': Entry(item='sentence 1', kind='answer', answer=['D', 'N'])}
    """

    def __init__(self, path: Path, task: str) -> None:
        self.path, self.task = path, task

    def append(self, entry: Entry) -> None:
        """Write one line; it is on the disk when this returns."""
        line = {"time": round(time.time(), 3), **entry._asdict()}
        with self._open() as stream:
            stream.write((json_line(line) + "\n").encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())

    def read(self) -> dict[str, Entry]:
        """The present answer to each item, the latest last."""
        by_item: dict[str, list[Entry]] = {}
        for entry in self.entries():
            own = by_item.pop(entry.item, [])
            by_item[entry.item] = [*own, entry] if entry.kind != UNDO else own[:-1]
        return {item: own[-1] for item, own in by_item.items() if own}

    def entries(self) -> list[Entry]:
        """All lines. One that a killed process left unfinished is passed over; a damaged one is an error."""
        if not self.path.is_file():
            return []
        lines = self.path.read_bytes().split(b"\n")
        found: list[Entry] = []
        for number, line in enumerate(lines, 1):
            content = _parse(line)
            if number == 1 and line and (content or {}).get("task") != self.task:
                raise ValueError(
                    f"{quote(self.path)} must hold answers for {self.task!r}, got {shorten(content)}; choose another "
                    "--out"
                )
            if content is None or number == 1:
                continue  # an empty line, or one that was being written when its process was killed
            entry = Entry(content.get("item", ""), content.get("kind", ""), content.get("answer"))
            if not isinstance(entry.item, str) or entry.kind not in KINDS:
                raise ValueError(f"line {number} of {quote(self.path)} must have an item and a kind; remove the line")
            found.append(entry)
        return found

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """The file at its end, locked; a line without its end gets one first."""
        with self.path.open("a+b") as stream:
            _lock(stream)
            size = stream.seek(0, os.SEEK_END)
            if not size:
                _sync_folder(self.path.parent)
                stream.write((json_line({"task": self.task, "version": 1}) + "\n").encode("utf-8"))
            else:
                stream.seek(size - 1)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")
            yield stream


def _parse(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None for a line that was not finished."""
    if not line.startswith(b"{"):
        return None  # without the cost of an exception: a damaged file may have millions of such lines
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _lock(stream: Any) -> None:
    """Wait until no other process writes; the lock ends with the file."""
    try:
        import fcntl
    except ImportError:  # Windows: one page per folder
        return
    fcntl.flock(stream, fcntl.LOCK_EX)


def _sync_folder(folder: Path) -> None:
    """Write to the disk that the folder has a new file."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows: folders cannot be opened
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)

"""The demonstration behind ``tacit demo``: one file a part, each learns something, reports it and draws it.

A part is a function that takes the folder for its pictures and returns its report, a few lines of text; a new one is
added to `PARTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.demo.motif import hidden_motif
from tacit.demo.turns import turned_digits
from tacit.plot import pyplot

PARTS: tuple[Callable[[Path], str], ...] = (hidden_motif, turned_digits)


def reports(folder: Path) -> Iterator[str]:
    """Run all parts in turn; the report of each as soon as it is ready."""
    pyplot()  # better to miss it now than after the work
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        yield part(folder)

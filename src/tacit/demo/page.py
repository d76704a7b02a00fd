"""The report of the demonstration: the tables that it prints, with its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit.report import Code, Page, Picture, Prose, Section

TITLES = ("A motif hidden in DNA", "Digits at a hidden turn")

PICTURES = {
    "found_motif.png": "The motif in sequences that the model had not seen, and its letters.",
    "motif.png": "How learning went down, and how alike the chosen windows became.",
    "turns.png": "Digits as they came, and turned back by the angle that was found.",
    "mean_digits.png": "The mean of every digit, before and after.",
}
"""What is on each picture."""

_OF_PART = (("found_motif.png", "motif.png"), ("turns.png", "mean_digits.png"))


def demo_page(texts: Sequence[str], folder: Path) -> Page:
    """The page, from the text of every part and the folder with the pictures."""
    sections = []
    for title, text, names in zip(TITLES, texts, _OF_PART, strict=True):
        pictures = [Picture((folder / name).read_bytes(), PICTURES[name], PICTURES[name]) for name in names]
        table = "\n".join(line for line in text.strip().splitlines() if not line.startswith("Picture"))
        sections.append(Section(title, [Code(table), *pictures]))
    note = "Part of every answer is hidden: where the motif lies, how far the digit is turned. Labels do not say it."
    return Page(
        "tacit: a demonstration",
        "Learning from data of which a part is never labelled",
        sections=[Section("What this is", [Prose(note)]), *sections],
    )

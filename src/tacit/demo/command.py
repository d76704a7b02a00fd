"""``tacit demo``: what tacit does, on generated data.

A part is a function that takes the folder for its pictures and returns a `PartReport`; a new one is added to `reports`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.commands import CommandRun, draw_to_files, examples, run_options

if TYPE_CHECKING:
    from tacit.demo.parts import PartReport
    from tacit.report import Page


@click.command(epilog=examples("tacit demo --out demo"))
@run_options(out="demo", is_drawn=False, is_parallel=False, overwrites=True)
def demo(run: CommandRun) -> None:
    """Show tacit on a motif hidden in DNA and on rotated digits (half a minute)."""
    draw_to_files()

    done = []
    with run.writing() as folder:
        run.note("fitting models to DNA sequences and to images of digits")
        for report in reports(folder.stage):
            done.append(report._replace(text=report.text.replace(str(folder.stage), str(run.out))))
            run.say(done[-1].text)
        found = " and ".join(report.found for report in done)
        quality = f"held-out error {' and '.join(f'{report.test_error:.1%}' for report in done)}"
        run.write_report(folder, demo_page([report.text for report in done], folder.stage), found, quality)
    run.say("")
    next_step = f"open {run.out / 'report.html'}; use your own sequences with: tacit motif POSITIVES NEGATIVES"
    run.finish(found, quality, next_step)


def reports(folder: Path) -> Iterator[PartReport]:
    """Run all parts, and yield the report of each as soon as it is ready."""
    from tacit.demo.parts import hidden_motif, rotated_digits
    from tacit.plot import pyplot

    pyplot()  # if matplotlib is missing, say so before the work
    folder.mkdir(parents=True, exist_ok=True)
    for part in (hidden_motif, rotated_digits):
        yield part(folder)


TITLES = ("A motif hidden in DNA", "Digits at a hidden rotation")

PICTURES = {
    "found_motif.png": "The motif in test sequences, and its letters.",
    "motif.png": "The objective by round, and how similar the chosen windows became.",
    "rotations.png": "Digits as given, and rotated back by the angle that was found.",
    "mean_digits.png": "The mean of every digit, before and after.",
}
"""What is on each picture."""

_OF_PART = (("found_motif.png", "motif.png"), ("rotations.png", "mean_digits.png"))


def demo_page(texts: Sequence[str], folder: Path) -> Page:
    """The page, from the text of every part and the folder with the pictures."""
    from tacit.report import Code, Page, Picture, Prose, Section

    sections = []
    for title, text, names in zip(TITLES, texts, _OF_PART, strict=True):
        pictures = [Picture((folder / name).read_bytes(), PICTURES[name], PICTURES[name]) for name in names]
        table = "\n".join(line for line in text.strip().splitlines() if not line.startswith("Picture"))
        sections.append(Section(title, [Code(table), *pictures]))
    note = "Part of every answer is hidden, and no label states it: the start of the motif, the angle of the digit."
    return Page(
        "tacit: a demonstration",
        "Learning with hidden variables from weak labels",
        sections=[Section("What this is", [Prose(note)]), *sections],
    )

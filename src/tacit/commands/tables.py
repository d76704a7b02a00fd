"""Tables that are opened in a spreadsheet: cells that would run as formulas are made text."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from tacit.commands.folder import OutputFolder
from tacit.commands.values import Number
from tacit.data.lines import one_line

FORMULA_SIGNS = tuple("=+-@\t\r＝＋－＠")
"""What a cell begins with that a spreadsheet runs, also in its wide forms."""


def protect_tables(folder: Path) -> None:
    """Rewrite every .tsv and .csv file of a folder with protected cells."""
    for path in sorted(folder.rglob("*")):
        mark = {".tsv": "\t", ".csv": ","}.get(path.suffix)
        if mark is None or not path.is_file():
            continue
        draft = path.with_name(f"{path.name}.part")
        with (
            path.open(encoding="utf-8", newline="" if mark == "," else "\n") as old,
            draft.open("w", encoding="utf-8", newline="") as new,
        ):
            if mark == ",":
                rows = csv.reader(old)
                csv.writer(new, lineterminator="\n").writerows([protect_cell(cell) for cell in row] for row in rows)
            else:
                for line in old:
                    cells = line.removesuffix("\n").split(mark)
                    new.write(mark.join(map(protect_cell, cells)) + ("\n" if line.endswith("\n") else ""))
        os.replace(draft, path)


def protect_cell(cell: str) -> str:
    """The cell with a ' before it, where it begins like a formula; numbers and single signs are none.

    >>> [protect_cell(cell) for cell in ("=1+1", "-0.5", "+", "@SUM(A1)", "chr1")]
    ["'=1+1", '-0.5', '+', "'@SUM(A1)", 'chr1']
    """
    if len(cell) < 2 or not cell.startswith(FORMULA_SIGNS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


QUESTIONS = "questions.tsv"


def ask_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option ``--ask`` of commands that can say which hidden values would help most."""
    words = f"Write {QUESTIONS}: this many {what}, the most useful first."
    return click.option("--ask", "n_asked", type=Number(int, 1), metavar="N", help=words)


def write_questions(
    folder: OutputFolder, items: Sequence[str], usefulness: Iterable[float], guesses: Sequence[str] | None = None
) -> None:
    """Write what to ask a person, the most useful first: item, usefulness, and the guess of the model, if any."""
    lines = ["\t".join(("item", "usefulness", *(() if guesses is None else ("guess",))))]
    for i, (item, useful) in enumerate(zip(items, usefulness, strict=True)):
        cells = [one_line(item), f"{useful:.6g}", *([] if guesses is None else [one_line(guesses[i])])]
        lines.append("\t".join(cells))
    folder.write_text(QUESTIONS, "\n".join(lines) + "\n")

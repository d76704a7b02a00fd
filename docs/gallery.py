"""The gallery: every picture that a page draws, with a link to its code; and the pages as notebooks."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from pictures import BLOCK, PAGES
from sphinx.util.docutils import SphinxDirective

PICTURE = re.compile(r"!\[(?P<words>[^]]*)\]\((?P<path>images/[\w./]+\.png)\)")
OWN = ("images/built/", "images/reports/")
NUMBERS = {
    "descent": "table 3.1: latent SVM",
    "places": "table 3.1: min-entropy",
    "rotated_back": "figure 2.3: the hidden angle, pairs 1-7, 3-8, 8-9",
    "group_norms": "figure 1: angles left, pairs 1-7, 2-7, 8-9",
    "states_path": "figure 2: accuracy by budget",
    "located_windows": "table 2.2: test loss",
    "window_chances": "figure 3.2: α = ∞",
    "hidden_classes": "Corel 5k: images browsed to meet 20 relevant ones",
    "logo": "figure 2.2: distance at convergence",
}
"""The row of papers.md with a paper's number and ours for the method of a picture."""
ROLE = re.compile(r"\{(?:py:)?\w+\}`~?([^`]+)`")


class Gallery(SphinxDirective):
    """A grid of the pictures of all pages; each leads to the Python above it."""

    def run(self) -> list[Any]:
        grid = nodes.container(classes=["gallery"])
        papers = (PAGES / "papers.md").read_text(encoding="utf-8")
        for page in sorted(PAGES.glob("*.md")):
            text = page.read_text(encoding="utf-8")
            self.env.note_dependency(str(page))
            for found in PICTURE.finditer(text):
                if found["path"].startswith(OWN):
                    row = read_row(papers, NUMBERS.get(Path(found["path"]).stem))
                    grid += self._tile(page.stem, read_title(text), found, row)
        return [grid]

    @staticmethod
    def _tile(page: str, title: str, found: re.Match[str], row: list[str]) -> Any:
        words = " ".join(found["words"].split())
        link = nodes.reference("", "", internal=True, refuri=f"{page}.html")
        link += nodes.image(uri=found["path"], alt=words)
        link += nodes.inline(text=title, classes=["gallery-title"])
        paragraph = nodes.paragraph("", "", link)
        texts = [words, *row]
        notes = [nodes.paragraph(text=own, classes=["gallery-words"]) for own in texts]
        return nodes.container("", paragraph, *notes, classes=["tile"])


def read_row(papers: str, what: str | None) -> list[str]:
    """What a paper reports, and what tacit gets; empty for a picture without numbers of a paper."""
    if what is None:
        return []
    _, claim, here, verdict, *_ = next(
        line.strip("| ").split(" | ")
        for line in papers.splitlines()
        if line.startswith(f"| {what} |")
    )
    return [
        f"The paper, {what}: {claim}.",
        f"Here: {here} ({verdict}).".replace("`", ""),
    ]


def read_title(text: str) -> str:
    """The title of a page."""
    return re.search(r"^# (.+)$", text, re.M)[1]


def write_notebooks(folder: Path) -> None:
    """Write every page with Python as a notebook: text between blocks, blocks as cells, without results."""
    folder.mkdir(parents=True, exist_ok=True)
    # some pages import it
    shutil.copy(PAGES / "figures.py", folder)
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if BLOCK.search(text):
            (folder / f"{page.stem}.ipynb").write_text(
                json.dumps(make_notebook(text), indent=1), encoding="utf-8"
            )


def make_notebook(text: str) -> dict[str, Any]:
    """The notebook of a page."""
    cells, end = [], 0
    for block in BLOCK.finditer(text):
        cells += [_text_cell(text[end : block.start()]), _code_cell(block)]
        end = block.end()
    cells.append(_text_cell(text[end:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [
        {"id": f"cell-{i}", **cell}
        for i, cell in enumerate(own for own in cells if own["source"])
    ]
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _text_cell(text: str) -> dict[str, Any]:
    """Plain Markdown: roles become code, pictures that the cells draw and lists of pages are left out."""
    text = re.sub(r"^```\{.*?^```$", "", text, flags=re.S | re.M)
    text = PICTURE.sub("", ROLE.sub(r"`\1`", text))
    return {
        "cell_type": "markdown",
        "metadata": {},
        "source": text.strip().splitlines(True),
    }


def _code_cell(block: re.Match[str]) -> dict[str, Any]:
    """A cell; a run of all cells goes on after an error that the page shows."""
    source = block["code"].strip().splitlines(True)
    raises = ["raises-exception"] if "Error: " in (block["shown"] or "") else []
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": raises},
        "outputs": [],
        "source": source,
    }

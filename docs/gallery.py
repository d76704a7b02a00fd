"""The gallery: every picture that a page draws, with a link to its code; and the pages as notebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from pictures import BLOCK, PAGES
from sphinx.util.docutils import SphinxDirective

PICTURE = re.compile(r"!\[(?P<words>[^]]*)\]\((?P<path>images/[\w./]+\.png)\)")
OWN = "images/built/"
ROLE = re.compile(r"\{(?:py:)?\w+\}`~?([^`]+)`")


class Gallery(SphinxDirective):
    """A grid of the pictures of all pages; each leads to the Python above it."""

    def run(self) -> list[Any]:
        grid = nodes.container(classes=["gallery"])
        for page in sorted(PAGES.glob("*.md")):
            text = page.read_text(encoding="utf-8")
            self.env.note_dependency(str(page))
            for found in PICTURE.finditer(text):
                if found["path"].startswith(OWN):
                    grid += self._tile(page.stem, read_title(text), found)
        return [grid]

    @staticmethod
    def _tile(page: str, title: str, found: re.Match[str]) -> Any:
        words = " ".join(found["words"].split())
        link = nodes.reference("", "", internal=True, refuri=f"{page}.html")
        link += nodes.image(uri=found["path"], alt=words)
        link += nodes.inline(text=title, classes=["gallery-title"])
        paragraph = nodes.paragraph("", "", link)
        return nodes.container(
            "",
            paragraph,
            nodes.paragraph(text=words, classes=["gallery-words"]),
            classes=["tile"],
        )


def read_title(text: str) -> str:
    """The title of a page."""
    return re.search(r"^# (.+)$", text, re.M)[1]


def write_notebooks(folder: Path) -> None:
    """Write every page with Python as a notebook: text between blocks, blocks as cells, without results."""
    folder.mkdir(parents=True, exist_ok=True)
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
        cells += [_text_cell(text[end : block.start()]), _code_cell(block["code"])]
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


def _code_cell(code: str) -> dict[str, Any]:
    source = code.strip().splitlines(True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }

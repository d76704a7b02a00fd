"""The pages stay true: their Python runs, top to bottom, and prints what they show.

A page is one module. Where a block of Python is followed by a block of text, the text is what it prints, or the last
line of the error that it raises; ``...`` stands for what differs from machine to machine.
"""

import contextlib
import doctest
import importlib
import io
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n+^```text\n(?P<shown>.*?)^```$)?", flags=re.S | re.M)
ROOMS = ("datasets", "oracle", "plot", "problems", "ranking", "solvers", "spectral", "testing", "text")
LONG_PAGES = {"motifs", "latent_svm"}
"""Pages whose Python takes more than five seconds."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=[pytest.mark.long] if page.stem in LONG_PAGES else []) for page in PAGES],
)
def test_the_python_of_a_page_runs_and_prints_what_it_shows(page, monkeypatch, tmp_path):
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # so that its classes can be pickled
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(DOCS)  # some draw with figures.py, which is beside them
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        printed = run(block["code"], module, f"{page.name}, block at line {line}", raises=block["shown"] is not None)
        shown = block["shown"] or ""
        assert doctest.OutputChecker().check_output(shown, printed, FLAGS), (
            f"{page.name}, line {line}: the page shows\n{shown}\nbut the code prints\n{printed}"
        )


def run(code, module, place, raises):
    """What a block prints, and the last line of its error where the page shows one."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, place, "exec"), module.__dict__)
    except Exception as error:
        if not raises:
            raise
        printed.write(traceback.format_exception_only(error)[-1])
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_picture_of_a_page_is_in_the_repository_or_saved_by_the_python_of_the_page(page):
    text = page.read_text(encoding="utf-8")
    code = "".join(block["code"] for block in BLOCK.finditer(text))
    for name in re.findall(r"!\[[^]]*\]\((\S+)\)", text):
        built = re.fullmatch(r"images/built/(.+)", name)
        assert f'savefig("{built[1]}"' in code if built else (DOCS / name).is_file(), name


def test_there_are_pages_with_examples():
    with_python = [page.stem for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]
    assert {"chains", "latent_svm", "motifs", "own_problem", "which_solver"} <= set(with_python)


@pytest.mark.parametrize(
    "home",
    [
        "tacit",
        *(
            f"tacit.{p}"
            for p in (
                "apps",
                "datasets",
                "oracle",
                "plot",
                "problems",
                "ranking",
                "report",
                "solvers",
                "spectral",
                "testing",
            )
        ),
    ],
)
def test_every_public_name_is_in_the_reference(home):
    module = importlib.import_module(home)
    names = [name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)]
    reference = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.rst"))
    assert [name for name in names if not re.search(rf":: {home}\.{name}\b", reference)] == []

"""The pages stay true: their Python runs, top to bottom, and prints what they show.

A page is one module. Where a block of Python is followed by a block of text, the text is what it prints, or the last
line of the error that it raises. Pages show real numbers; how far they may differ on other processors is said here.
``python tests/test_docs.py PAGE ...`` writes what the Python of a page prints into the page.
"""

import contextlib
import importlib
import io
import math
import re
import sys
import tempfile
import textwrap
import traceback
from pathlib import Path
from types import ModuleType

import pytest
from docutils.utils.math.latex2mathml import tex2mathml

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n+^```text\n(?P<shown>.*?)^```$)?", flags=re.S | re.M)
ROOMS = ("datasets", "oracle", "plot", "problems", "ranking", "solvers", "spectral", "testing", "text")
LONG_PAGES = {"motifs", "latent_svm"}
"""Pages whose Python takes more than five seconds."""
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w])")
RELATIVE = 0.02
"""How far a number with a decimal point may be from the one that a page shows; its last digit may differ by one."""
LOOSE = {
    ("hidden_states", "states for C"): 0.3,
    ("latent_svm", "changed"): 0.3,
    ("latent_svm", "kB"): 0.3,
    ("latent_svm", "samples in use"): 0.1,
    ("latent_svm", "scores of the best three"): 0.3,
    ("latent_svm", "start  objective"): math.inf,  # it has seconds
    ("motif_files", "p ="): math.inf,
    ("sequences", "without states"): 0.1,
    ("which_solver", "passes"): 0.2,
    ("own_problem", "µs each"): math.inf,
    ("own_problem", "times the time"): math.inf,
}
"""Blocks of a page, by a text that they show, whose numbers depend on the machine or on a local optimum."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=[pytest.mark.long] if page.stem in LONG_PAGES else []) for page in PAGES],
)
def test_the_python_of_a_page_runs_and_prints_what_it_shows(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(DOCS)  # some draw with figures.py, which is beside them
    text = page.read_text(encoding="utf-8")
    for block, printed in run_page(page, text):
        shown = block["shown"] or ""
        assert agree(shown, printed, tolerance(page, shown)), (
            f"{page.name}, line {line_of(block, text)}: the page shows\n{shown}\nbut the code prints\n{printed}"
        )


def run_page(page, text):
    """Yield every block of Python with what it prints."""
    module = ModuleType(f"page_{page.stem}")
    sys.modules[module.__name__] = module  # so that its classes can be pickled
    try:
        for block in BLOCK.finditer(text):
            title = f"{page.name}, block at line {line_of(block, text)}"
            yield block, run(block["code"], module, title, raises="Error: " in (block["shown"] or ""))
    finally:
        del sys.modules[module.__name__]


def line_of(block, text):
    return text.count("\n", 0, block.start()) + 2


def tolerance(page, shown):
    return next((loose for (stem, part), loose in LOOSE.items() if stem == page.stem and part in shown), None)


def agree(shown, printed, loose=None):
    """Whether two outputs have the same text, and numbers that agree.

    Numbers with a decimal point agree up to `RELATIVE` or one unit of their last digit, others if they are equal; with
    `loose` all agree up to that.
    """
    texts = ["".join(NUMBER.sub("#", text).split()) for text in (shown, printed)]
    numbers = [NUMBER.findall(text) for text in (shown, printed)]
    return texts[0] == texts[1] and all(close(*pair, loose) for pair in zip(*numbers, strict=True))


def close(shown, printed, loose):
    one, other = (float(text.replace("−", "-")) for text in (shown, printed))
    if loose is None and "." not in shown and "e" not in shown:
        return one == other
    mantissa, _, power = shown.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(power or 0)
    return abs(one - other) <= max((loose or RELATIVE) * abs(one), 1.01 * 10.0**-digits)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("0.87 of 5", "0.88 of 5", True),
        ("0.87 of 5", "0.90 of 5", False),
        ("0.87 of 5", "0.87 of 6", False),
        ("102.5 <= optimum", "101.5 <= optimum", True),
        ("[ 0.3 -1.1]", "[0.4  -1.1 ]", True),
        ("1.2e-56", "1.22e-56", True),
        ("1.2e-56", "1.2e-54", False),
        ("a 1.0", "b 1.0", False),
        ("float64", "float32", False),
        ("1 2", "1 2 3", False),
    ],
)
def test_numbers_of_a_page_may_differ_in_their_last_digits(shown, printed, same):
    assert agree(shown, printed) == same


def run(code, module, title, raises):
    """What a block prints, and the last line of its error where the page shows one."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, title, "exec"), module.__dict__)
    except Exception as error:
        if not raises:
            raise
        printed.write(traceback.format_exception_only(error)[-1])
    return printed.getvalue()


def write_outputs(page):
    """Put what the Python of a page prints into the page, where it is not what the page shows."""
    text = page.read_text(encoding="utf-8")
    changes = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block, printed in run_page(page, text):
            if block["shown"] is None or agree(block["shown"], printed, tolerance(page, block["shown"])):
                continue
            lines = [textwrap.fill(line, 118) if "Error: " in line else line.rstrip() for line in printed.splitlines()]
            changes.append((*block.span("shown"), "\n".join(lines) + "\n"))
    for first, last, printed in reversed(changes):
        text = text[:first] + printed + text[last:]
    page.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{page.name}: {len(changes)} outputs written\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_picture_of_a_page_is_in_the_repository_or_saved_by_the_python_of_the_page(page):
    text = page.read_text(encoding="utf-8")
    code = "".join(block["code"] for block in BLOCK.finditer(text))
    for name in re.findall(r"!\[[^]]*\]\((\S+)\)", text):
        built = re.fullmatch(r"images/built/(.+)", name)
        assert f'savefig("{built[1]}"' in code if built else (DOCS / name).is_file(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_formulas_of_a_page_become_mathml(page):
    text = re.sub(r"^```.*?^```$|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    for formula in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, flags=re.S):
        tex = "".join(formula)
        assert "<math" in tex2mathml(tex), tex
        # without braces, \frac12 x is drawn as 12 over x
        assert not re.search(r"frac(?!\{)", tex), tex


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_notebook_of_a_page_has_its_python_and_plain_markdown(page, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    text = page.read_text(encoding="utf-8")
    cells = importlib.import_module("gallery").make_notebook(text)["cells"]
    source = {kind: ["".join(c["source"]) for c in cells if c["cell_type"] == kind] for kind in ("code", "markdown")}
    assert source["code"] == [block["code"].strip() for block in BLOCK.finditer(text)]
    assert not re.search(r"\{(?:py:)?\w+\}`", "".join(source["markdown"]))


def test_a_report_of_every_command_is_on_a_page():
    shown = re.findall(r"\]\(images/reports/(\w+)\.png\)", "".join(p.read_text(encoding="utf-8") for p in PAGES))
    assert set(shown) == set(importlib.import_module("tacit.demo.example_files").EXAMPLES)


def test_papers_have_the_numbers_of_the_gallery(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    gallery = importlib.import_module("gallery")
    papers = (DOCS / "papers.md").read_text(encoding="utf-8")
    assert all(len(gallery.read_row(papers, what)) == 2 for what in gallery.NUMBERS.values())


def test_the_gallery_has_at_least_24_pictures():
    shown = re.findall(r"\]\(images/built/", "".join(page.read_text(encoding="utf-8") for page in PAGES))
    assert len(shown) >= 24


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
    listed = f"{home}.".removeprefix("tacit.")  # in an autosummary below `currentmodule:: tacit`
    assert [n for n in names if not re.search(rf":: {home}\.{n}\b|^   {listed}{n}$", reference, re.M)] == []


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS))
    for name in sys.argv[1:] or [page.stem for page in PAGES]:
        write_outputs(DOCS / f"{Path(name).stem}.md")

"""The examples run from anywhere, write where they are told, and use public names only."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda path: path.stem)
def run(request, tmp_path_factory):
    """An example that was run in one folder and told to write into another: both, and what it printed."""
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(request.param), "--out", str(there / "picture.png")],
        cwd=here,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return request.param.stem, here, there, done.stdout


@pytest.mark.long
def test_an_example_runs_from_anywhere_and_writes_where_it_is_told(run):
    _, here, there, printed = run
    assert plt.imread(there / "picture.png").std() > 0.05
    assert str(there / "picture.png") in printed
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_uses_public_names_only(example):
    for node in ast.walk(ast.parse(example.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tacit":
            public = importlib.import_module(node.module).__all__
            assert [alias.name for alias in node.names if alias.name not in public] == []


@pytest.mark.long
def test_short_words_finds_the_vowels(run):
    name, _, _, printed = run
    if name != "short_words":
        pytest.skip("another example")
    states = [line.split(": ")[1].split()[:4] for line in printed.splitlines() if line.startswith("state ")]
    assert len(states) == 4
    assert any(set(letters) <= set("aeiouy") for letters in states)

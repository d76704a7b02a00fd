"""`tools/prose.py` finds what it looks for, and nothing in plain text."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "prose.py"
spec = importlib.util.spec_from_file_location("prose", PATH)
prose = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prose)


@pytest.mark.parametrize(
    ("source", "keyword"),
    [
        ('raise ValueError(f"{x} is no letter of DNA")', "is not a"),
        ('def f():\n    """Two passes a sample."""', "per"),
        ('def f():\n    """As the user was told."""', "given"),
        ('option(help="A kmer of the motif.")', "k-mer"),
        ("def _moved():\n    pass", "participle"),
        ("class A:\n    def kept(self):\n        pass", "participle"),
        (f'"""{"word " * 36}."""', "36 words"),
    ],
)
def test_banned_forms_are_found(tmp_path, source, keyword):
    path = tmp_path / "module.py"
    path.write_text(source)
    (finding,) = prose.check_file(path)
    assert keyword in finding


def test_plain_text_and_examples_pass(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("There is no file. `told` is no longer here.\n\n```text\nx is no y\n```\n\n| a | per row |\n")
    assert not list(prose.check_file(path))
    path = tmp_path / "module.py"
    path.write_text('class A:\n    """One.\n\n    >>> "x is no y"\n    """\n    @property\n    def known(self): ...')
    assert not list(prose.check_file(path))

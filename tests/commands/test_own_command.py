"""A command of another distribution: found by its entry point, called through ``tacit``, and blamed by its name."""

import importlib
import sys

import pytest

from tacit.cli import main
from tests.closing import check_closing

MODULE = '''
import click
from tacit.commands import INPUT_FILE, run_options


@click.command(epilog="Example: tacit letters words.txt")
@click.argument("words", type=INPUT_FILE)
@run_options(out="letters", is_drawn=False)
def letters(run, words):
    """Count letters."""
    with run.writing(words) as folder:
        count = len(words.read_text())
        folder.write_text("count.txt", f"{count}")
        run.record(count=count)
    run.finish(f"{count} letters", "counted exactly", f"open {run.out}")


number = 42
'''


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution: a module, and the folder of metadata that pip would write."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(distribution="letter-counter", entry="letters = letter_counter:letters"):
        (tmp_path / "letter_counter.py").write_text(MODULE)
        folder = tmp_path / f"{distribution.replace('-', '_')}-1.2.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (folder / "entry_points.txt").write_text(f"[tacit.commands]\n{entry}\n")
        importlib.invalidate_caches()

    yield put
    sys.modules.pop("letter_counter", None)


@pytest.fixture
def words(tmp_path):
    (tmp_path / "words.txt").write_text("abc")
    return str(tmp_path / "words.txt")


def test_it_runs_with_the_shared_options(install, words, tmp_path, capsys):
    install()
    assert main(["letters", words, "--out", str(tmp_path / "out")]) == 0
    assert "3 letters" in check_closing(capsys.readouterr().out, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["count.txt", "run.json"]
    assert main(["letters", words, "--out", str(tmp_path / "out")]) == 3
    assert capsys.readouterr().err.startswith("tacit letters: ")


def test_help_lists_it_with_its_distribution_and_imports_nothing(install, capsys):
    install()
    assert main(["--help"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "letters" in line)
    assert "letter-counter 1.2" in line
    assert "letter_counter" not in sys.modules


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ("letters = letter_counter:gone", "AttributeError"),
        ("letters = no_such_module:letters", "no_such_module"),
        ("letters = letter_counter:number", "click.Command"),
    ],
)
def test_the_error_of_a_broken_one_names_its_distribution(install, entry, cause, capsys):
    install(entry=entry)
    assert main(["letters", "--help"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("tacit letters: ")
    assert cause in shown
    assert "letter-counter 1.2" in shown
    assert main(["completion", "bash"]) == 0, "other commands work"


def test_two_of_one_name_are_refused_and_names_of_tacit_are_its_own(install, capsys):
    install()
    install("letter-census", "letters = letter_counter:letters\nmotif = letter_counter:letters")
    assert main(["letters", "--help"]) == 1
    shown = capsys.readouterr().err
    assert "letter-counter 1.2" in shown
    assert "letter-census 1.2" in shown
    assert main(["motif", "--help"]) == 0
    assert "POSITIVES" in capsys.readouterr().out

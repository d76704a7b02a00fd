"""Import cost, the command line, the demonstration."""

import subprocess
import sys

import matplotlib.pyplot as plt
import pytest

import tacit
from tacit.cli import main
from tests.closing import check_closing


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_tacit_loads_next_to_nothing():
    loaded = python(
        "import sys, tacit; print(*sorted(m for m in sys.modules if m.split('.')[0] in "
        "('numba', 'sklearn', 'scipy', 'numpy', 'matplotlib', 'pandas', 'tqdm', 'daqp', 'click', 'jinja2')))"
    )
    assert loaded.split() == []


def test_importing_everything_compiles_nothing():
    code = (
        "import sys, tacit; [getattr(tacit, n) for n in tacit.__all__]; import tacit.problems, tacit.solvers;"
        "print('numba' in sys.modules, 'matplotlib' in sys.modules)"
    )
    assert python(code).split() == ["False", "False"]


def test_public_names():
    assert {"StructuredSVM", "load", "Ragged"} <= set(dir(tacit))
    assert callable(tacit.load)
    assert tacit.problems.Candidates
    assert tacit.solvers.Bundle
    with pytest.raises(AttributeError, match="nonsense"):
        _ = tacit.nonsense


def test_demo_finds_motif_and_rotations_and_writes_the_pictures(tmp_path, capsys, monkeypatch):
    """On half of its sequences, from half of its starts."""
    monkeypatch.setattr("tacit.demo.parts.N_SEQUENCES", 1000)
    monkeypatch.setattr("tacit.demo.parts.MOTIF_RUNS", 4)
    assert main(["demo", "--out", str(tmp_path / "new" / "out")]) == 0
    text = capsys.readouterr().out
    rows = {line[:24].strip(): line[24:].split() for line in text.splitlines() if line.rstrip()[-1:].isdigit()}
    test_error = {name: float(row[-3 if len(row) > 4 else -2].rstrip("%")) for name, row in rows.items()}
    for name in ("latent SVM, CCCP", "latent SVM, self-paced"):
        assert test_error[name] < test_error["6-mers"] < test_error["3-mers"]
        assert float(rows[name][-2].rstrip("%")) > 90  # starts found
    for name in ("found_motif.png", "motif.png", "rotations.png", "mean_digits.png"):
        image = plt.imread(tmp_path / "new" / "out" / name)
        assert image.shape[1] > 1000
        assert image.std() > 0.05
    assert (tmp_path / "new" / "out" / "report.html").read_text().count("data:image/png") == 4
    assert "held-out error" in check_closing(text, tmp_path / "new" / "out")
    plt.close("all")


def test_errors_on_the_command_line_are_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 3
    assert capsys.readouterr().err.startswith("tacit demo: ")
    assert main(["--version"]) == 0
    assert tacit.__version__ in capsys.readouterr().out


def test_the_package_runs_as_a_module():
    run = subprocess.run([sys.executable, "-m", "tacit", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"tacit {tacit.__version__}"

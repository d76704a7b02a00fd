"""Import cost, the command line, the demonstration."""

import subprocess
import sys

import matplotlib.pyplot as plt
import pytest

import tacit
from tacit.cli import main


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_tacit_loads_next_to_nothing():
    loaded = python(
        "import sys, tacit; print(*sorted(m for m in sys.modules if m.split('.')[0] in "
        "('numba', 'sklearn', 'scipy', 'numpy', 'matplotlib', 'pandas', 'tqdm', 'daqp')))"
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
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tacit.nonsense


def test_demo_finds_motifs_and_turns_and_writes_pictures(tmp_path, capsys, monkeypatch):
    """On half of its sequences, from half of its starts."""
    monkeypatch.setattr("tacit.demo.motif.N", 1000)
    monkeypatch.setattr("tacit.demo.motif.STARTS", 4)
    plt.close("all")
    folder = tmp_path / "new" / "out"
    assert main(["demo", "--out", str(folder)]) == 0
    motifs, turns = capsys.readouterr().out.split("Digits at a hidden turn")
    rows = {line[:24].strip(): line[24:].split() for line in motifs.splitlines() if line.rstrip()[-1:].isdigit()}
    test_error = {name: float(row[-3 if len(row) > 4 else -2].rstrip("%")) for name, row in rows.items()}
    for name in ("latent SVM, CCCP", "latent SVM, self-paced"):
        assert test_error[name] < test_error["words of 6 letters"] < test_error["words of 3 letters"]
        assert float(rows[name][-2].rstrip("%")) > 90  # places found
    image = plt.imread(folder / "motif.png")
    assert image.shape[1] > 1000
    assert image.std() > 0.05
    accuracy = {line[:26].strip(): float(line.split()[-1][:-1]) for line in turns.splitlines() if line.endswith("%")}
    for name in ("hidden turn, CCCP", "hidden turn, self-paced"):
        assert accuracy[name] > accuracy["no hidden turn"] + 8
    for name in ("turns.png", "mean_digits.png"):
        assert name in turns
        assert plt.imread(folder / name).std() > 0.1
    assert not plt.get_fignums()


def test_errors_on_the_command_line_are_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("tacit demo: ")
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert tacit.__version__ in capsys.readouterr().out

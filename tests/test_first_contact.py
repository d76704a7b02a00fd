"""Import cost, the command line, the pictures."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris

import tacit
from tacit import StructuredSVM, plot
from tacit.cli import main
from tacit.problems import Multiclass


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


def test_demo_shows_the_certificate_and_writes_the_picture(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "The optimum lies between" in text
    assert "textbook cutting plane" in text
    image = plt.imread(tmp_path / "out" / "digits.png")
    assert image.shape[1] > 1000
    assert image.std() > 0.05
    plt.close("all")


def test_errors_on_the_command_line_are_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("tacit demo: ")
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert tacit.__version__ in capsys.readouterr().out


def test_pictures_show_the_history():
    X, y = load_iris(return_X_y=True)
    model = StructuredSVM(Multiclass()).fit(X, y)
    ax = plot.convergence(model)
    objective, bound = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(objective, [s.objective for s in model.history_])
    np.testing.assert_array_equal(bound, [s.bound for s in model.history_])
    ax = plot.gap({"a": model, "b": model.history_}, tol=1e-3)
    assert len(ax.lines) == 3
    with pytest.raises(ValueError, match="call fit first"):
        plot.convergence(StructuredSVM(Multiclass()))
    plt.close("all")

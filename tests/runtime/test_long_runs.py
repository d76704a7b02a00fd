"""Ctrl-C, checkpoints and kill -9: the best model is never lost."""

import os
import signal
import sys
import threading
import time
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from tacit import LatentSVM, StructuredSVM, path
from tacit.problems import Candidates, Multiclass
from tacit.runtime import InterruptedFitError, Progress, loop
from tacit.solvers import Bundle, Status

RUN = """
import time
import numpy as np
from sklearn.datasets import load_digits
from tacit import StructuredSVM
from tacit.problems import Multiclass

X, y = load_digits(return_X_y=True)
steps, written = [], set()
def pause(step):
    steps.append(step.iteration)
    if step.iteration > 0:  # then there is a checkpoint
        written.add((folder / "state").stat().st_mtime_ns)
    if len(written) > 1:  # the second is of a later step than the first; a slow disk may take a while to it
        (folder / "reached").touch()
    time.sleep(seconds)
model = StructuredSVM(Multiclass(), checkpoint=folder / "state", resume=True, callbacks=[pause]).fit(X / 16, y)
found = np.append(model.coef_, [model.objective_, model.bound_, model.n_iter_])
np.savez(folder / "result.npz", first=steps[0], model=found)
"""


@pytest.fixture(scope="module")
def data(digits):
    return digits[0][:400], digits[1][:400]


def test_interrupt_keeps_the_best_model(data):
    def press(step):
        if step.iteration == 20:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = StructuredSVM(Multiclass(), callbacks=[press]).fit(*data)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == 20
    assert model.score(*data) > 0.5
    assert model.bound_ <= model.objective_
    # and the fit can go on
    model.set_params(callbacks=None, warm_start=True).fit(*data)
    assert model.status_ is Status.CONVERGED


class Press:
    """A callback that presses Ctrl-C in the fits that are numbered."""

    def __init__(self, *fits):
        self.fits, self.present = fits, -1

    def __deepcopy__(self, memo):
        return self  # a search copies the learner for each fit, and the fits are counted here

    def __call__(self, step):
        self.present += step.iteration == 0
        if self.present in self.fits and step.iteration == 3:
            raise KeyboardInterrupt


def test_in_a_search_a_fit_that_was_cut_short_is_no_score(data):
    search = GridSearchCV(StructuredSVM(Multiclass(), callbacks=[Press(1)]), {"C": [1, 10]}, cv=2)
    with pytest.warns(FitFailedWarning, match="search"), pytest.warns(UserWarning, match="finite"):
        search.fit(*data)
    assert np.isnan(search.cv_results_["split1_test_score"][0])
    assert np.isfinite(search.cv_results_["split0_test_score"]).all()
    assert search.best_params_ == {"C": 10}
    assert search.best_estimator_.status_ is Status.CONVERGED
    loop._last_press = -np.inf
    with pytest.raises(InterruptedFitError):
        cross_val_score(StructuredSVM(Multiclass(), callbacks=[Press(0)]), *data, cv=2, error_score="raise")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_ctrl_c_twice_ends_a_search_and_a_loop(data):
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(StructuredSVM(Multiclass(), callbacks=[Press(0, 1)]), *data, cv=3)
    loop._last_press = -np.inf
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        StructuredSVM(Multiclass(), callbacks=[Press(0)]).fit(*data)
    with pytest.raises(KeyboardInterrupt):
        StructuredSVM(Multiclass(), callbacks=[Press(0)]).fit(*data)


def test_ctrl_c_ends_a_path(data):
    with pytest.raises(KeyboardInterrupt), pytest.warns(ConvergenceWarning, match="interrupted"):
        path(StructuredSVM(Multiclass(), callbacks=[Press(1)]), *data, [1, 10, 100])


def test_one_press_inside_a_latent_fit_counts_once(bags):
    """It ends the convex task of an iteration and, with it, the fit: two runs of the loop, one press."""
    X, y, _ = bags
    lines = []

    class Pressed(Bundle):
        def step(self, task, state):
            if len(lines) == 2:
                raise KeyboardInterrupt
            return super().step(task, state)

    with pytest.warns(ConvergenceWarning, match="best"):
        model = LatentSVM(Candidates(), solver=Pressed(), tol=1e-6, init="hidden", callbacks=[lines.append]).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert len(model.history_) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent differently there")
@pytest.mark.skipif(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="Ctrl-C is ignored here: nohup, or &")
def test_a_real_signal_in_the_middle_of_a_step(data):
    StructuredSVM(Multiclass()).fit(*data)  # compiles, so that the signal falls into the loop
    for delay in (0.003, 0.01, 0.02):
        loop._last_press = -np.inf
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        begin = [lambda step, timer=timer: timer.start() if step.iteration == 5 else time.sleep(0.001)]
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = StructuredSVM(Multiclass(), callbacks=begin, tol=1e-9).fit(*data)
        timer.join()
        assert model.history_[-1].objective == model.objective_
        assert np.isfinite(model.coef_).all()
        assert model.bound_ <= model.objective_
        assert model.objective_ <= 100


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_run_resumes_to_the_same_result(tmp_path, start_process):
    """Killed at three random moments, and resumed: the result of an uninterrupted run."""
    rng = np.random.default_rng(0)
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    straight.mkdir()
    killed.mkdir()
    exec(RUN, {"folder": straight, "seconds": 0})
    for _ in range(3):
        process = start_process(RUN, folder=killed, seconds=0.02)
        while process.is_alive() and not (killed / "reached").exists():
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0.05, 0.4)))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        (killed / "reached").unlink()
    process = start_process(RUN, folder=killed, seconds=0)
    process.join(300)
    assert process.exitcode == 0
    whole, resumed = (np.load(folder / "result.npz") for folder in (straight, killed))
    assert whole["first"] == 0 < resumed["first"]
    np.testing.assert_allclose(resumed["model"], whole["model"], rtol=1e-6, atol=1e-9)


def test_a_stopped_run_resumes_where_it_was(data, tmp_path):
    path = tmp_path / "state"
    whole = StructuredSVM(Multiclass()).fit(*data)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        part = StructuredSVM(Multiclass(), max_iter=25, checkpoint=path).fit(*data)
    rest = StructuredSVM(Multiclass(), checkpoint=path, resume=True).fit(*data)
    assert rest.n_iter_ == whole.n_iter_ > part.n_iter_
    assert rest.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    np.testing.assert_allclose(rest.coef_, whole.coef_, atol=1e-8)
    assert [s.iteration for s in rest.history_] == list(range(whole.n_iter_ + 1))
    assert [s.objective for s in rest.history_[:26]] == [s.objective for s in part.history_]
    done = StructuredSVM(Multiclass(), checkpoint=path, resume=True).fit(*data)
    np.testing.assert_array_equal(done.coef_, rest.coef_)


def test_without_resume_a_run_starts_anew(data, tmp_path):
    path = tmp_path / "state"
    StructuredSVM(Multiclass(), checkpoint=path, resume=True).fit(*data)  # nothing there yet: starts
    again = StructuredSVM(Multiclass(), checkpoint=path, C=3).fit(*data)
    assert again.objective_ == pytest.approx(StructuredSVM(Multiclass(), C=3).fit(*data).objective_)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:-1], y[:-1], {}), "differs: samples: 400 then, 399 now\\."),
        (lambda X, y: (X, y[::-1], {}), "differs: labels\\."),
        (lambda X, y: (X * 1.001, y, {}), "differs: features, labels and losses\\."),
        (lambda X, y: (np.where(np.arange(400)[:, None] == 7, 0.0, X), y, {}), "differs: features, labels"),
        (lambda X, y: (X, y, {"C": 50.0}), "differs: C: .* then, 50.0 now\\."),
        (lambda X, y: (X * 1.001, y, {"C": 50.0}), "features.*C: "),
        (lambda X, y: (X, y, {"solver": Bundle(drop_after=7)}), "solver: "),
        (lambda X, y: (X, y, {"problem": Multiclass(fit_intercept=False)}), "problem: "),
        (lambda X, y: (X, y, {"class_weight": "balanced"}), "differs: sample weights\\."),
        (lambda X, y: (X, y, {"random_state": 1}), "seed: "),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(data, tmp_path, change, words):
    path = tmp_path / "state"
    StructuredSVM(Multiclass(), checkpoint=path).fit(*data)
    X, y, parameters = change(*data)
    model = StructuredSVM(**{"problem": Multiclass(), **parameters}, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


def test_a_file_that_is_no_checkpoint_is_never_overwritten(data, tmp_path):
    path = tmp_path / "model.tacit"
    StructuredSVM(Multiclass()).fit(*data).save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint"):
        StructuredSVM(Multiclass(), checkpoint=path).fit(*data)
    with pytest.raises(ValueError, match="checkpoint"):
        StructuredSVM(Multiclass(), checkpoint=path, resume=True).fit(*data)
    with pytest.raises(ValueError, match="checkpoint"):
        StructuredSVM(Multiclass(), checkpoint=tmp_path, resume=True).fit(*data)
    assert path.read_bytes() == before


def test_a_full_disk_costs_a_warning_not_the_run(data, tmp_path, monkeypatch):
    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.warns(UserWarning, match="no space"):
        model = StructuredSVM(Multiclass(), checkpoint=tmp_path / "state").fit(*data)
    assert model.status_ is Status.CONVERGED


def test_a_tighter_tolerance_may_go_on(data, tmp_path):
    path = tmp_path / "state"
    first = StructuredSVM(Multiclass(), checkpoint=path, tol=1e-2).fit(*data)
    second = StructuredSVM(Multiclass(), checkpoint=path, resume=True, tol=1e-4).fit(*data)
    assert second.gap_ <= 1e-4 * second.objective_
    assert second.n_iter_ > first.n_iter_


def test_bags_resume_too(bags, tmp_path):
    X, y, hidden = bags
    path = tmp_path / "state"
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        StructuredSVM(Candidates(), max_iter=5, checkpoint=path).fit(X, y, hidden=hidden)
    rest = StructuredSVM(Candidates(), checkpoint=path, resume=True).fit(X, y, hidden=hidden)
    assert rest.objective_ == pytest.approx(StructuredSVM(Candidates()).fit(X, y, hidden=hidden).objective_, rel=1e-9)


def test_plain_lines_for_logs(bags, capfd, monkeypatch):
    monkeypatch.setattr(loop, "LINE_EVERY", 0.0)
    X, y, _ = bags
    LatentSVM(Candidates(), n_init=2, tol=1e-2, verbose=2).fit(X, y)
    lines = capfd.readouterr().err.splitlines()
    assert any("start 1 of 2, objective" in line for line in lines)
    assert any("start 2 of 2, objective" in line for line in lines)
    assert all(line.startswith("tacit: ") for line in lines)


def test_a_notebook_has_a_bar_and_no_guess_of_the_time_left(monkeypatch):
    class Kernel:
        config: ClassVar = {"IPKernelApp": {}}

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Kernel))
    shown = Progress(1, None)
    assert shown.bar is not None
    assert shown.bar.total is None
    shown.close()
    assert Progress(0, None).bar is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert Progress(1, None).bar is None


def test_progress_is_silent_off_a_terminal(data, capfd):
    StructuredSVM(Multiclass(), verbose=1).fit(*data)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_progress_shows_objective_and_gap_on_a_terminal(data, monkeypatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    slow = [lambda step: time.sleep(0.05)]
    with pytest.warns(ConvergenceWarning):
        StructuredSVM(Multiclass(), callbacks=slow, max_iter=35).fit(*data)
    assert "objective" in screen.getvalue()
    assert "gap" in screen.getvalue()
    screen.truncate(0)
    with pytest.warns(ConvergenceWarning):
        StructuredSVM(Multiclass(), callbacks=slow, max_iter=35, verbose=0).fit(*data)
    assert screen.getvalue().strip("\x00") == ""

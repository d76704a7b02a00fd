"""Starts by successive halving: the selection, the same bits everywhere, Ctrl-C and checkpoints."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tacit import GroupNormSVM, IterativeLatentSVM, LatentSVM, Ragged, SelfPaced
from tacit.learners.descents.halving import FIRST_STEPS, LOOKAHEAD
from tacit.problems import Candidates
from tacit.runtime import Status
from tests.learners.test_smooth_start import make_bags


@pytest.fixture(scope="module")
def bags():
    return make_bags(1, n=60)


def fit(bags, kind=LatentSVM, problem=None, **more):
    settings = {"C": 10.0, "n_init": 10, "init": "hidden", "halving": True, "random_state": 0, "verbose": 0, **more}
    return kind(problem or Candidates(), **settings).fit(*bags)


@pytest.fixture(scope="module")
def halved(bags):
    return fit(bags)


def list_steps(run):
    """The objectives of a start; its first line is that of w = 0, which does not count as a step."""
    assert run.history[0].objective == pytest.approx(10.0)  # C times a loss of 1
    return [line.objective for line in run.history[1:]]


def test_few_starts_go_on_and_one_ends(halved):
    lengths = sorted((len(list_steps(run)) for run in halved.runs_), reverse=True)
    assert len(lengths) == 10
    for selections, most in enumerate((7, 4, 2, 1)):
        assert sum(length > FIRST_STEPS + selections for length in lengths) <= most
    assert halved.status_ is halved.runs_.best.status is Status.CONVERGED
    assert any(run.status is Status.STOPPED for run in halved.runs_)
    assert np.isfinite(halved.inner_gap_)


def test_a_start_that_went_on_is_the_same_as_without_halving(bags, halved):
    whole = fit(bags, halving=False)
    best = halved.runs_.index(halved.runs_.best)
    assert halved.objective_ == whole.runs_[best].objective
    assert [line.objective for line in halved.history_] == [line.objective for line in whole.runs_[best].history]
    for part, run in zip(halved.runs_, whole.runs_, strict=True):
        assert [line.objective for line in part.history] == [
            line.objective for line in run.history[: len(part.history)]
        ]


def test_those_that_go_on_were_lowest(halved):
    firsts = [list_steps(run)[:FIRST_STEPS] for run in halved.runs_]
    expected = [first[-1] - LOOKAHEAD * (first[-2] - first[-1]) for first in firsts]
    went_on = [k for k, run in enumerate(halved.runs_) if len(list_steps(run)) > FIRST_STEPS]
    others = [expected[k] for k in range(10) if k not in went_on and halved.runs_[k].status is Status.STOPPED]
    assert max(expected[k] for k in went_on) <= min(others)


def test_threads_and_shards_change_no_bit(bags, halved, tmp_path):
    assert np.array_equal(fit(bags, n_jobs=2).coef_, halved.coef_)
    shards = bags[0].to_shards(tmp_path / "bags", 3)
    assert np.array_equal(fit((shards, bags[1])).coef_, halved.coef_)


@pytest.mark.parametrize("stop", [1, 7, 30])
def test_a_stopped_fit_keeps_the_best_so_far_and_resumes_to_the_same_bits(bags, halved, tmp_path, stop):
    seen, state = [], {"checkpoint": tmp_path / "state"}

    def interrupt(line):
        seen.append(line)
        if len(seen) == stop:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        part = fit(bags, callbacks=[interrupt], **state)
    assert part.objective_ == min(line.objective for line in seen)
    resumed = fit(bags, resume=True, **state)
    assert np.array_equal(resumed.coef_, halved.coef_)
    assert [run.objective for run in resumed.runs_] == [run.objective for run in halved.runs_]
    assert [run.status for run in resumed.runs_] == [run.status for run in halved.runs_]


def test_a_checkpoint_of_halving_is_not_one_of_whole_starts(bags, tmp_path):
    state = {"checkpoint": tmp_path / "state", "max_iter": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(bags, **state)
    with pytest.raises(ValueError, match="halving"):
        fit(bags, resume=True, halving=False, **state)


def test_each_line_is_reported_once(bags):
    seen = []
    model = fit(bags, callbacks=[seen.append])
    assert len(seen) == sum(len(run.history) for run in model.runs_)


@pytest.mark.parametrize("kind", [IterativeLatentSVM, GroupNormSVM])
def test_other_learners_halve_too(bags, kind):
    model = fit(bags, kind, Candidates(loss="exact") if kind is IterativeLatentSVM else None, n_init=4)
    assert model.objective_ == min(run.objective for run in model.runs_)


def test_the_smooth_path_is_one_of_the_starts(bags):
    model = fit(bags, init="auto")
    assert model.objective_ <= fit(bags, init="auto", n_init=1, halving=False).objective_ + 1e-12


def test_a_pace_is_refused(bags):
    with pytest.raises(ValueError, match="pace"):
        fit(bags, pace=SelfPaced())


def test_one_start_needs_no_selection():
    X = Ragged(np.array([[0.0, 1.0], [5.0, 0.0], [0.0, 4.0]]), np.array([0, 2, 3]))
    model = LatentSVM(Candidates(), halving=True, verbose=0).fit(X, ["a", "b"])
    assert len(model.runs_) == 1

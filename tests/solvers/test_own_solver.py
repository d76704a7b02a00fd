"""A solver from outside of the package: that of the page docs/own_solver.md, with two methods and a state."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from tacit import LatentSVM, StructuredSVM, testing
from tacit.problems import Candidates, Multiclass
from tacit.runtime.archive import StorageError, read_archive, write_archive
from tacit.solvers import Bundle, Solver, minimise
from tacit.testing import check_solver
from tests.pages import run_block

AveragePlanes = run_block("own_solver.md")["AveragePlanes"]
X, Y = load_iris(return_X_y=True)


def test_it_writes_two_methods():
    own = {name for name in vars(AveragePlanes) if not name.startswith("_")}
    assert own == {"init", "step", "is_coarse"}


def test_it_certifies_on_every_problem():
    check_solver(AveragePlanes(), seeds=1)


def test_it_finds_the_optimum_of_the_bundle():
    task = testing.example_task(Multiclass(), seed=3, C=1.0)
    own, known = minimise(task, AveragePlanes(), tol=1e-2, max_iter=5000), minimise(task, Bundle(), tol=1e-6)
    assert own.bound <= known.objective * (1 + 1e-9)
    assert own.objective <= known.objective * 1.02


def test_a_latent_learner_takes_it():
    problem = Candidates()
    example = problem.example(np.random.default_rng(0))
    model = LatentSVM(problem, C=1, solver=AveragePlanes(), tol=0.05, verbose=0)
    assert np.isfinite(model.fit(example.X, example.y).objective_)


def test_it_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path):
    settings = {"C": 1, "solver": AveragePlanes(), "tol": 1e-3, "verbose": 0}
    with pytest.warns(ConvergenceWarning):
        StructuredSVM(Multiclass(), **settings, max_iter=7, checkpoint=tmp_path / "state").fit(X, Y)
    resumed = StructuredSVM(Multiclass(), **settings, checkpoint=tmp_path / "state", resume=True).fit(X, Y)
    straight = StructuredSVM(Multiclass(), **settings).fit(X, Y)
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)


def test_a_checkpoint_that_is_not_its_own_is_refused(tmp_path):
    path = tmp_path / "state"
    model = StructuredSVM(Multiclass(), C=1, solver=AveragePlanes(), tol=0.05, checkpoint=path, verbose=0).fit(X, Y)
    header, arrays = read_archive(path, "checkpoint")
    header = {name: value for name, value in header.items() if name not in ("format", "kind", "tacit")}
    for name, wrong in (("slope", np.zeros(3)), ("steps", np.array(-1)), ("offset", np.array(np.nan))):
        write_archive(path, "checkpoint", header, {**arrays, f"state.{name}": wrong})
        with pytest.raises(StorageError, match="resume=False"):
            model.set_params(resume=True).fit(X, Y)


def test_a_solver_that_lacks_a_method_says_so():
    class Half(Solver):
        def init(self, task, warm, rng):
            return None

    with pytest.raises(TypeError, match="step"):
        Half()
    with pytest.raises(TypeError, match="solver"):
        StructuredSVM(Multiclass(), solver=object()).fit(X, Y)

"""Every problem, solver and learner that tacit exports, found by walking its packages."""

import importlib
import inspect
import itertools
import pkgutil

import pytest
from sklearn.base import BaseEstimator

import tacit
from tacit import testing
from tacit.learners.learner import Learner
from tacit.oracle import Problem


def seeds(short, long):
    """How many random examples are drawn in the short and in the long run."""
    return pytest.mark.parametrize("seeds", [short, pytest.param(long, marks=pytest.mark.long)])


@seeds(10, long=25)
@pytest.mark.parametrize("problem", testing.problems(), ids=repr)
def test_problem_equals_its_enumeration(problem, seeds):
    testing.check_problem(problem, seeds)


@seeds(1, long=3)
@pytest.mark.parametrize("solver", testing.solvers(), ids=repr)
def test_solver_certifies_the_optimum(solver, seeds):
    testing.check_solver(solver, seeds)


KINDS = {"StructuredSVM", "LatentSVM", "HiddenCRF"}
"""One learner of each kind: hidden values known, imputed, summed over."""


def pairs():
    """Every learner on the plain form of every problem, every form with one learner of each kind; the rest is long."""
    problems = testing.problems()
    plain = {type(problem): problem for problem in reversed(problems)}
    for learner, problem in itertools.product(testing.learners(), problems):
        is_short = plain[type(problem)] is problem or learner.__name__ in KINDS
        name = f"{learner.__name__}-{problem!r}"
        yield pytest.param(learner, problem, id=name, marks=() if is_short else pytest.mark.long)


@pytest.mark.parametrize(("learner", "problem"), list(pairs()))
def test_learner_behaves(learner, problem):
    testing.check_learner(learner(problem))


def test_everything_that_is_written_is_exported_and_so_tested():
    """Classes of all modules, also of those in the rooms of domains."""
    written = {kind for module in pkgutil.walk_packages(tacit.__path__, "tacit.") for kind in own_classes(module.name)}
    outside = {Learner, Problem}

    def names(base):
        return {kind.__name__ for kind in written - outside if issubclass(kind, base)}

    assert {type(problem).__name__ for problem in testing.problems()} == names(Problem)
    assert {kind.__name__ for kind in testing.learners()} == names(Learner)
    solvers = {kind.__name__ for kind in written if kind.__module__.startswith("tacit.solvers") and is_solver(kind)}
    assert {type(solver).__name__ for solver in testing.solvers()} == solvers


def own_classes(module):
    """The public classes that can be made, of a module that defines them."""
    if module.endswith("__main__"):
        return
    for name, kind in inspect.getmembers(importlib.import_module(module), inspect.isclass):
        if kind.__module__ == module and not name.startswith("_") and not inspect.isabstract(kind):
            yield kind


def is_solver(kind):
    return issubclass(kind, BaseEstimator) and hasattr(kind, "init") and hasattr(kind, "step")

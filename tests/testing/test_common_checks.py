"""Every problem, solver and learner that tacit exports, found by walking its packages."""

import pytest

from tacit import testing


@pytest.mark.parametrize("problem", testing.problems(), ids=repr)
def test_problem_equals_its_enumeration(problem):
    testing.check_problem(problem, seeds=25)


@pytest.mark.parametrize("solver", testing.solvers(), ids=repr)
def test_solver_certifies_the_optimum(solver):
    testing.check_solver(solver)


@pytest.mark.parametrize("problem", testing.problems(), ids=repr)
@pytest.mark.parametrize("learner", testing.learners(), ids=lambda kind: kind.__name__)
def test_learner_behaves(learner, problem):
    testing.check_learner(learner(problem))


def test_discovery_finds_what_is_exported():
    from tacit import learners, problems

    assert {type(p).__name__ for p in testing.problems()} == set(problems.__all__) - {"rotations"}
    assert {kind.__name__ for kind in testing.learners()} == set(learners.__all__)
    assert "Bundle" in {type(s).__name__ for s in testing.solvers()}

"""`check_problem` must notice wrong problems and say what is wrong in words."""

from typing import Protocol

import numpy as np
import pytest

from tacit import StructuredSVM
from tacit.oracle import Oracle
from tacit.problems import Candidates, Multiclass
from tacit.problems.classes.blocks import ClassBlocks
from tacit.solvers import Bundle
from tacit.testing import check_learner, check_problem, check_solver, learner_checks


class WrongOracle(Multiclass):
    def bind(self, X, y, schema, *, hidden=None):
        oracle = super().bind(X, y, schema, hidden=hidden)
        oracle.__class__ = self.oracle
        return oracle


class ForgetsTheIntercept(ClassBlocks):
    def gather(self, labels, states, coef, rows=None):
        out = super().gather(labels, states, coef, rows)
        out[-self.n_labels :] = 0
        return out


class PredictsTheWorst(ClassBlocks):
    def predict(self, w, rows=None):
        return super().predict(-w, rows)


class IgnoresTheLoss(ClassBlocks):
    def predict_augmented(self, w, rows=None, **options):
        return self.predict(w, rows)


class IgnoresRows(ClassBlocks):
    def loss(self, code, rows=None):
        return super().loss(code, None if rows is None else slice(0, len(code)))


class WrongTranspose(ClassBlocks):
    def adjoint(self, V, rows=None):
        return 2 * super().adjoint(V, rows)


@pytest.mark.parametrize(
    ("oracle", "words"),
    [
        (ForgetsTheIntercept, "features"),
        (PredictsTheWorst, "predict"),
        (IgnoresTheLoss, "augmented"),
        (IgnoresRows, "loss\\(rows="),
        (WrongTranspose, "transpose"),
    ],
)
def test_a_wrong_oracle_is_described(oracle, words):
    problem = WrongOracle()
    problem.oracle = oracle
    with pytest.raises(AssertionError, match=words):
        check_problem(problem)


def test_a_wrong_specification_is_described():
    class TooShort(Multiclass):
        def example(self, rng):
            example = super().example(rng)
            return example._replace(joint_feature=lambda *a: example.joint_feature(*a)[:-1])

    with pytest.raises(AssertionError, match="n_params"):
        check_problem(TooShort())


def test_a_problem_that_remembers_data_is_described():
    class Remembers(Candidates):
        def __init__(self, loss="0/1", classes=None, fit_intercept=True, seen=None):
            super().__init__(loss, classes, fit_intercept)
            self.seen = seen

        def bind(self, X, y, schema, *, hidden=None):
            self.seen = len(X)
            return super().bind(X, y, schema, hidden=hidden)

    with pytest.raises(AssertionError, match="parameters"):
        check_problem(Remembers())


def test_listed_classes_may_be_an_array():
    check_problem(Multiclass(classes=np.array([0, 1, 2])))
    check_problem(Candidates(classes=np.array(["a", "b", "c"])))


class MyProblem(Multiclass):
    """A user's own problem."""


class MySVM(StructuredSVM):
    """A user's own learner."""


def test_checks_work_for_a_users_own_classes():
    check_learner(StructuredSVM(MyProblem()))
    check_learner(MySVM(MyProblem()))


class Flies(Oracle, Protocol):
    def fly(self): ...


def test_a_solver_that_runs_on_nothing_is_described():
    class Misspelt(Bundle):
        needs = (Flies,)

    with pytest.raises(AssertionError, match="fly"):
        check_solver(Misspelt())


def test_a_solver_with_a_wrong_bound_is_described():
    class Boastful(Bundle):
        def step(self, task, state):
            state = super().step(task, state)
            state.bound = 0.5 * (state.bound + state.best[1]) if state.bound > 0 else 0.0
            return state

    with pytest.raises(AssertionError, match="bound"):
        check_solver(Boastful())


class Silent(Multiclass):
    """It takes whatever it is given."""

    def schema(self, X, y):
        return super().schema(X, y) if len(np.unique(y)) > 1 else super().schema(np.eye(2), [0, 1])


class Crashes(Multiclass):
    def schema(self, X, y):
        return super().schema(X, y) if len(X) else [][0]


class NeverSaysTwo(Multiclass):
    def bind(self, X, y, schema, *, hidden=None):
        oracle = super().bind(X, y, schema, hidden=hidden)
        oracle.decode = lambda code: (np.zeros(len(code), dtype=int), None)
        return oracle


class Grows(Multiclass):
    def example(self, rng):
        example = super().example(rng)
        return example._replace(X=np.hstack([example.X, np.ones((len(example.X), int(rng.integers(10**6))))]))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Silent(), "^Silent.*one class"),
        (Crashes(), "^Crashes.*IndexError"),
        (NeverSaysTwo(), "^NeverSaysTwo.*predict"),
        (Grows(), "^Grows.*example"),
    ],
)
def test_a_wrong_problem_is_not_blamed_on_the_learner(problem, words, monkeypatch):
    monkeypatch.setattr(learner_checks, "MAX_DRAWS", 60)
    with pytest.raises(AssertionError, match=words):
        check_learner(StructuredSVM(problem))


def test_a_short_error_is_an_error():
    class Terse(Multiclass):
        def schema(self, X, y):
            if not len(X):
                raise ValueError("no samples")
            return super().schema(X, y)

    check_learner(StructuredSVM(Terse()))


def test_a_learner_without_history_is_described():
    class Forgets(StructuredSVM):
        def fit(self, X, y, **known):
            super().fit(X, y, **known)
            del self.history_
            return self

    with pytest.raises(AssertionError, match="history_"):
        check_learner(Forgets(Multiclass()))

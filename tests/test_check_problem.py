"""`check_problem` must notice wrong problems and say what is wrong in words."""

import numpy as np
import pytest

from tacit.problems import Candidates, Multiclass
from tacit.problems.class_blocks import ClassBlocks
from tacit.testing import check_problem


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
    def augmented(self, w, rows=None, **options):
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
        (ForgetsTheIntercept, "features: entry"),
        (PredictsTheWorst, "predict: entry"),
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
        def bind(self, X, y, schema, *, hidden=None):
            self.fit_intercept = np.bool_(False)
            return super().bind(X, y, schema, hidden=hidden)

    with pytest.raises(AssertionError):
        check_problem(Remembers())

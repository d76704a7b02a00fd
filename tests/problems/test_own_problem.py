"""A problem of a user's own, from the three linear maps alone: every learner works on it."""

import numpy as np
import pytest

from tacit import StructuredSVM
from tacit.oracle import CapabilityError, EnumerableOracle, Example, LossTable, Problem, Schema
from tacit.testing import check_learner, check_problem


def joint_feature(x, label, shift):
    """A signal that label 1 holds at a hidden shift, and a count of where it was found."""
    feature = np.zeros(x.size + 3)
    if label == 1:
        feature[: x.size] = np.roll(x, -shift)
        feature[x.size + shift] = 1
    return feature


class ShiftOracle(EnumerableOracle):
    def __init__(self, X, **supervision):
        self.psi = np.array([[joint_feature(x, label, h) for x in X for h in range(3)] for label in (0, 1)])
        super().__init__(np.array([0, 1]), 3 * np.arange(len(X) + 1), self.psi.shape[2], **supervision)

    def scores(self, w, rows=None):
        return self.psi[:, self.states(rows)] @ w

    def adjoint(self, V, rows=None):
        return np.einsum("ks,ksd->d", V, self.psi[:, self.states(rows)])

    def gather(self, labels, states, coef, rows=None):
        firsts = self.offsets[:-1] if rows is None else self.offsets[:-1][rows]
        return coef @ self.psi[labels, firsts + states]


class Shifted(Problem):
    def read(self, X):
        return np.asarray(X, dtype=float)

    def schema(self, X, y):
        return Schema(np.array([0, 1]), self.read(X).shape[1], {"signal": (X.shape[1],), "place": (3,)})

    def bind(self, X, y, schema, *, hidden=None):
        supervision = {"hidden": hidden}
        if y is not None:
            labels = np.asarray(y, dtype=np.int64)
            if len(labels) != len(X) or len(X) == 0 or len(np.unique(labels)) < 2:
                raise ValueError(f"one label per signal and both labels are needed, got {len(labels)} for {len(X)}")
            supervision |= {"labels": labels, "losses": LossTable(1 - np.eye(2), labels)}
        return ShiftOracle(self.read(X), **supervision)

    def example(self, rng):
        X = rng.integers(-2, 3, (5, 4)).astype(float)
        y = np.array([0, 1, *rng.integers(0, 2, 3)])
        outputs = [(label, h) for label in (0, 1) for h in range(3)]
        return Example(X, y, rng.integers(0, 3, 5), lambda x: outputs, joint_feature, lambda t, y, h: float(t != y))


def test_the_oracle_equals_enumeration():
    check_problem(Shifted(), seeds=20)


def test_learners_work_on_it():
    check_learner(StructuredSVM(Shifted()))


def test_hidden_shifts_are_found():
    rng = np.random.default_rng(0)
    y, shift = np.arange(60) % 2, rng.integers(0, 3, 60)
    X = rng.standard_normal((60, 6))
    for i in np.flatnonzero(y):
        X[i] += np.roll([4, -4, 4, 0, 0, 0], shift[i])
    model = StructuredSVM(Shifted()).fit(X[:40], y[:40], hidden=shift[:40])
    assert model.score(X[40:], y[40:]) > 0.9
    assert (model.impute(X[40:], y[40:])[1::2] == shift[41::2]).mean() > 0.8
    assert model.weights_["signal"].shape == (6,)


def test_what_it_lacks_is_named(tmp_path):
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(CapabilityError, match="digest"):
        StructuredSVM(Shifted(), checkpoint=tmp_path / "state").fit(X, y, hidden=[0, 0, 0, 0])

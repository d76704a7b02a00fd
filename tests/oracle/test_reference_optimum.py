"""What solvers are compared with: the optimum of tiny tasks, between two numbers that prove each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from tacit import testing
from tacit.problems import Candidates, Chain, Multiclass
from tacit.solvers import Bundle
from tacit.testing import enumeration
from tacit.testing.enumeration import bracket_optimum


def random_task(rng, repeat=False):
    """Differences and losses of five samples with up to six outputs, the first of them the target."""
    differences, losses = [], []
    for size in rng.integers(1, 7, 5):
        rows, costs = rng.standard_normal((size, 4)), rng.random(size)
        rows[0], costs[0] = 0, 0
        if repeat:  # outputs that cannot be told apart
            rows[-1], costs[-1] = rows[size // 2], costs[size // 2]
        differences.append(rows)
        losses.append(costs)
    return differences, losses


def objective(w, differences, losses, weights):
    slack = [(costs - rows @ w).max() for rows, costs in zip(differences, losses, strict=True)]
    return 0.5 * w @ w + sum(c * xi for c, xi in zip(weights, slack, strict=True))


@given(seed=st.integers(0, 10**6), C=st.sampled_from([1e-3, 1.0, 1e3]), repeat=st.booleans())
def test_no_point_is_better_than_the_bound(seed, C, repeat):
    rng = np.random.default_rng(seed)
    task = random_task(rng, repeat)
    weights = C * rng.random(5)
    found = bracket_optimum(*task, weights, precision=1e-9)
    assert found.objective == pytest.approx(objective(found.w, *task, weights), rel=1e-12)
    assert abs(found.gap) <= 1e-9 * found.objective
    for size in (1.0, 1e-2, 1e-4):
        moved = found.w + size * rng.standard_normal(4)
        assert objective(moved, *task, weights) >= found.bound * (1 - 1e-12)


def test_a_sample_without_weight_changes_nothing():
    differences, losses = random_task(np.random.default_rng(0))
    weights = np.array([1.0, 0.0, 2.0, 0.5, 1.0])
    kept = [0, 2, 3, 4]
    whole = bracket_optimum(differences, losses, weights, precision=1e-9)
    part = bracket_optimum([differences[i] for i in kept], [losses[i] for i in kept], weights[kept], precision=1e-9)
    assert whole.objective == pytest.approx(part.objective, rel=2e-9)


def test_two_classes_have_the_optimum_of_liblinear():
    rng = np.random.default_rng(0)
    X, signs = rng.standard_normal((20, 3)), np.where(np.arange(20) % 2, 1, -1)
    peer = LinearSVC(C=0.7, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, signs).coef_[0]
    differences = [np.stack([np.zeros(3), sign * x]) for x, sign in zip(X, signs, strict=True)]
    found = bracket_optimum(differences, [np.array([0.0, 1.0])] * 20, np.full(20, 0.7), precision=1e-9)
    np.testing.assert_allclose(found.w, peer, atol=1e-4)
    assert found.objective == pytest.approx(0.5 * peer @ peer + 0.7 * np.maximum(0, 1 - signs * (X @ peer)).sum())


def test_numbers_that_do_not_meet_are_an_error(monkeypatch):
    monkeypatch.setattr(enumeration, "MAX_STEPS", 3)
    with pytest.raises(ArithmeticError, match="features"):
        bracket_optimum(*random_task(np.random.default_rng(0)), np.full(5, 10.0), precision=1e-9)


class Boasting(Bundle):
    """Claims a lower bound that is too high by a share of it."""

    def __init__(self, share=0.0):
        super().__init__()
        self.share = share

    def finish(self, task, state):
        state = super().finish(task, state)
        state.bound += self.share * abs(state.bound)
        return state


def test_a_bound_above_the_optimum_is_found_out():
    """Even one that is too high by no more than the gap that was asked for."""
    with pytest.raises(AssertionError, match="bound"):
        testing.check_solver(Boasting(1e-4), seeds=1, tol=1e-4)


@pytest.mark.parametrize("problem", [Multiclass(), Candidates(), Chain()], ids=repr)
def test_enumeration_uses_the_target_of_every_sample(problem):
    example = problem.example(np.random.default_rng(3))
    table = testing.Enumeration(example)
    found = table.optimum(np.full(table.n, 2.0))
    slack = [
        max(loss + found.w @ (psi - features[table.target(i)]) for psi, loss in zip(features, losses, strict=True))
        for i, (features, losses) in enumerate(zip(table.features, table.losses, strict=True))
    ]
    assert found.objective == pytest.approx(0.5 * found.w @ found.w + 2 * sum(slack), rel=1e-12)

"""Bounds on latent objectives: never above the true optimum, and equal to it after a whole search."""

import itertools

import numpy as np
import pytest

from tacit import LatentSVM
from tacit.problems import Candidates, Motif
from tacit.testing import Enumeration
from tacit.testing.latent_bounds import LatentTable, bracket_latent


def small(problem, seed, C=3.0):
    example = problem.example(np.random.default_rng(seed))
    table = Enumeration(example)
    c = np.full(table.n, C / table.n)
    return example, LatentTable(table.features, table.losses, table.is_true, c)


def brute_force(table):
    """The lowest optimum of the convex tasks of all imputations."""
    choices = [np.flatnonzero(row) for row in table.is_true]
    return min(table.solve(np.array(hidden))[1] for hidden in itertools.product(*choices))


@pytest.mark.parametrize("problem", [Candidates(), Motif(2)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_a_search_finds_the_global_optimum(problem, seed):
    _, table = small(problem, seed)
    truth = brute_force(table)
    found = bracket_latent(table, np.zeros(table.features.shape[2]), max_nodes=400, max_steps=60)
    assert found.bound <= truth * (1 + 1e-6)
    assert found.objective >= truth * (1 - 1e-6)
    assert found.gap <= 1e-3 * truth


@pytest.mark.parametrize("steps", [1, 30])
@pytest.mark.parametrize("seed", range(4))
def test_a_bound_without_a_search_is_below_the_optimum(seed, steps):
    _, table = small(Candidates(), seed)
    w = np.random.default_rng(seed).standard_normal(table.features.shape[2])
    assert bracket_latent(table, w, max_steps=steps).bound <= brute_force(table) * (1 + 1e-6)


def test_more_nodes_never_lower_the_bound():
    _, table = small(Candidates(), 0, C=10.0)
    bounds = [bracket_latent(table, np.zeros(table.features.shape[2]), max_nodes=k).bound for k in (1, 5, 25)]
    assert bounds == sorted(bounds)


def test_objectives_are_those_of_the_learner():
    example, table = small(Candidates(), 1)
    model = LatentSVM(Candidates(), C=3.0, verbose=0).fit(example.X, example.y)
    assert table.objective(model.coef_) == pytest.approx(model.objective_, abs=1e-6)

"""The pure prior ½‖w − z‖²: the same optimum as an independent solver finds, for every solver of tacit."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tacit import StructuredSVM
from tacit.penalties import Prior, Quadratic
from tacit.problems import Multiclass
from tacit.solvers import Bundle, FrankWolfe, Subgradient
from tacit.testing import example_task
from tacit.testing.enumeration import Enumeration


def reference(problem, seed, centre, metric, C):
    """The optimum by SciPy, every constraint written out as a variable: a smooth problem with linear constraints."""
    table = Enumeration(problem.example(np.random.default_rng(seed)))
    n, d = table.n, centre.size
    rows, bounds = [], []
    for i in range(n):
        psi = table.features[i]
        for k in range(len(psi)):
            slack = np.zeros(n)
            slack[i] = 1
            rows.append(np.concatenate([psi[table.target(i)] - psi[k], slack]))
            bounds.append(table.losses[i][k])
    A, b = np.array(rows), np.array(bounds)

    def objective(v):
        away = v[:d] - centre
        return 0.5 * away @ (metric * away) + C / n * v[d:].sum()

    def slope(v):
        return np.concatenate([metric * (v[:d] - centre), np.full(n, C / n)])

    start = np.concatenate([centre, [max(b - A[:, :d] @ centre) + 1] * n])
    constraint = {"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A}
    found = minimize(objective, start, jac=slope, constraints=[constraint], options={"ftol": 1e-13, "maxiter": 500})
    return found.fun


@pytest.mark.parametrize("solver", [Bundle(), Bundle(proximal=False), FrankWolfe(), Subgradient()], ids=repr)
@pytest.mark.parametrize("metric", [1.0, 3.0])
def test_every_solver_finds_the_optimum_under_a_prior(solver, metric):
    problem = Multiclass()
    d = example_task(problem, seed=1).oracle.n_params
    centre = np.random.default_rng(5).standard_normal(d)
    example = problem.example(np.random.default_rng(1))
    tol = 1e-2 if isinstance(solver, Subgradient) else 1e-7
    model = StructuredSVM(
        problem, C=3.0, penalty=Prior(centre, metric), solver=solver, tol=tol, max_iter=100_000, verbose=0
    ).fit(example.X, example.y)
    expected = reference(problem, 1, centre, metric, 3.0)
    assert model.objective_ == pytest.approx(expected, rel=2 * tol, abs=1e-5)
    assert model.bound_ <= expected + 1e-5


def test_weights_that_the_data_do_not_touch_stay_at_the_centre():
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0]]), [1, 2]
    centre = np.array([0.3, 5.0, 0.2, -4.0])
    problem = Multiclass(fit_intercept=False)
    pulled = StructuredSVM(problem, C=1, penalty=Prior(centre), tol=1e-9, verbose=0).fit(X, y)
    assert pulled.weights_["weights"][:, 1] == pytest.approx([5.0, -4.0], abs=1e-3)
    halfway = StructuredSVM(problem, C=1, penalty=Quadratic(pull=1.0, centre=centre), tol=1e-9, verbose=0).fit(X, y)
    assert halfway.weights_["weights"][:, 1] == pytest.approx([2.5, -2.0], abs=1e-3)


def test_a_prior_of_another_size_is_refused():
    with pytest.raises(ValueError, match="centre"):
        StructuredSVM(Multiclass(fit_intercept=False), penalty=Prior([1.0, 2.0]), verbose=0).fit(
            [[1.0, 0], [0, 1]], [1, 2]
        )

"""Lower bounds on weights: optima against SciPy, with certificates that hold."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tacit import StructuredSVM, load
from tacit.oracle import Task
from tacit.penalties import Quadratic, without_bounds
from tacit.problems import Candidates, Chain, Multiclass
from tacit.solvers import Bundle, FrankWolfe, Subgradient, minimise
from tacit.solvers.simplex_qp import maximise_with_bounds
from tacit.testing import example_task
from tacit.testing.enumeration import Enumeration


def bounded(problem, seed, lower, C=5.0):
    task = example_task(problem, seed, C)
    return Task(task.oracle, task.weights, task.target, Quadratic(lower=lower))


def scipy_optimum(problem, seed, weights, lower):
    """Every output written out, slacks as variables: a smooth program for SLSQP, its objective computed anew."""
    table = Enumeration(problem.example(np.random.default_rng(seed)))
    differences = [psi[table.target(i)] - psi for i, psi in enumerate(table.features)]
    d, n = differences[0].shape[1], len(differences)

    def objective(w):
        slack = [np.max(loss - own @ w) for own, loss in zip(differences, table.losses, strict=True)]
        return 0.5 * w @ w + weights @ np.array(slack)

    rows = [
        {"type": "ineq", "fun": lambda v, i=i: v[d + i] - table.losses[i] + differences[i] @ v[:d]} for i in range(n)
    ]
    bounds = [(low if np.isfinite(low) else None, None) for low in np.broadcast_to(lower, d)] + [(None, None)] * n
    start = np.concatenate([np.zeros(d), [loss.max() for loss in table.losses]])
    found = minimize(
        lambda v: 0.5 * v[:d] @ v[:d] + weights @ v[d:],
        start,
        jac=lambda v: np.concatenate([v[:d], weights]),
        bounds=bounds,
        constraints=rows,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return objective(np.maximum(found.x[:d], np.broadcast_to(lower, d)))


@pytest.mark.parametrize("solver", [Bundle(), Bundle(proximal=False), FrankWolfe()], ids=repr)
@pytest.mark.parametrize("problem", [Multiclass(), Candidates(), Chain()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("lower", [0.0, -0.1])
def test_the_optimum_within_bounds_is_scipys(problem, solver, lower):
    task = bounded(problem, 1, lower)
    solution = minimise(task, solver, tol=1e-5, max_iter=20000)
    assert solution.status.name == "CONVERGED"
    assert (solution.w >= lower).all()
    reference = scipy_optimum(problem, 1, task.weights, lower)
    assert solution.bound <= reference * (1 + 1e-7)
    assert solution.objective == pytest.approx(reference, rel=1e-4)


def test_the_subgradient_projects():
    task = bounded(Candidates(), 1, 0.0, C=1.0)
    solution = minimise(task, Subgradient(), tol=0.03, max_iter=3000)
    exact = minimise(task, Bundle(), tol=1e-6)
    assert (solution.w >= 0).all()
    assert solution.bound <= exact.objective <= solution.objective * (1 + 1e-9)
    assert solution.objective <= 1.05 * exact.objective


def test_bounds_by_block_reach_a_learner(digits):
    X, y = digits[0][:200], digits[1][:200]
    free = StructuredSVM(Multiclass(), C=10, tol=1e-4).fit(X, y)
    model = StructuredSVM(Multiclass(), C=10, tol=1e-4, penalty=Quadratic(lower={"weights": 0.0})).fit(X, y)
    assert (model.weights_["weights"] >= 0).all()
    assert model.weights_["intercept"].min() < 0
    assert model.bound_ >= free.objective_ * (1 - 2e-4)  # fewer weights are allowed


@pytest.mark.parametrize("lower", [{"weights": 0.0}, {"intercept": np.array([0.0, -1.0, -np.inf])}])
def test_a_model_with_bounds_by_block_is_saved(tmp_path, lower):
    X, y = np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 3
    model = StructuredSVM(Multiclass(), penalty=Quadratic(lower=lower)).fit(X, y)
    model.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    ((name, bounds),) = lower.items()
    np.testing.assert_array_equal(again.penalty.lower[name], bounds)


@pytest.mark.parametrize("wrong", [1.0, np.nan, "none", [0.0, 2.0]])
def test_bounds_by_block_are_checked_without_the_blocks(wrong):
    with pytest.raises((ValueError, TypeError), match="lower"):
        Quadratic(lower={"weights": wrong}).check(9)


def test_the_small_program_closes_its_gap():
    rng = np.random.default_rng(0)
    for _ in range(30):
        m, d = rng.integers(2, 12), rng.integers(1, 9)
        slopes, offsets = 3 * rng.normal(size=(m, d)), rng.normal(size=m)
        penalty = Quadratic(rng.uniform(0.5, 2, d), lower=np.where(rng.random(d) < 0.6, 0.0, -np.inf))
        alpha = maximise_with_bounds(slopes, offsets, penalty, 0.0, 5.0, 1e-10)
        w = penalty.primal(alpha @ slopes)
        heights = slopes @ w + offsets
        assert heights.max() - alpha @ heights <= 1e-7
        assert without_bounds(penalty)[0].lower is None


@pytest.mark.parametrize(
    ("lower", "keyword"),
    [
        (1.0, "1.0"),
        (np.nan, "nan"),
        (np.zeros(3), "shape"),
        ({"wrong": 0.0}, "wrong"),
        ({"weights": np.zeros(2)}, "weights"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(digits, lower, keyword):
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(Multiclass(), penalty=Quadratic(lower=lower)).fit(digits[0][:50], digits[1][:50])

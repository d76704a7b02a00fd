"""The bundle solver and the loop: certificates, warm starts, stopping."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from tacit import testing
from tacit.oracle import Task
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Multiclass
from tacit.solvers import Bundle, Status, minimise
from tacit.solvers.simplex_qp import maximise_on_simplex

OPTIMUM = 25.2932  # liblinear, tol 1e-6, on the digits with C = 100


@pytest.fixture(scope="module")
def digits_task(digits):
    X, y = digits
    problem = Multiclass(fit_intercept=False)
    oracle = problem.bind(X, y, problem.schema(X, y))
    return Task(oracle, np.full(len(y), 100 / len(y)), oracle.encode(y))


@pytest.mark.parametrize("solver", [Bundle(), Bundle(proximal=False), Bundle(drop_after=50)], ids=repr)
def test_digits_are_certified(digits_task, solver):
    solution = minimise(digits_task, solver, tol=1e-3)
    assert solution.status is Status.CONVERGED
    assert solution.objective >= OPTIMUM - 5e-5
    assert solution.bound <= OPTIMUM + 5e-5
    assert solution.gap <= 1e-3 * solution.objective
    assert solution.objective == pytest.approx(digits_task.objective(solution.w), rel=1e-12)


def test_the_gap_closes_to_liblinears_optimum(digits, digits_task):
    X, y = digits
    solution = minimise(digits_task, Bundle(), tol=1e-6, max_iter=3000)
    assert solution.status is Status.CONVERGED
    peer = LinearSVC(multi_class="crammer_singer", C=100 / len(y), fit_intercept=False, tol=1e-6, max_iter=100000)
    other = digits_task.objective(peer.fit(X, y).coef_.ravel())
    assert other == pytest.approx(OPTIMUM, abs=5e-5)
    assert solution.objective == pytest.approx(other, rel=1e-5)
    assert solution.bound <= other


def test_the_proximal_term_saves_passes(digits_task):
    plain = minimise(digits_task, Bundle(proximal=False), tol=1e-3)
    proximal = minimise(digits_task, Bundle(), tol=1e-3)
    assert proximal.history[-1].iteration < 0.7 * plain.history[-1].iteration


def test_inactive_planes_are_dropped(digits_task):
    solution = minimise(digits_task, Bundle(), tol=1e-3)
    assert max(step.planes for step in solution.history) < 60 < solution.history[-1].iteration


def test_planes_warm_start_the_same_task(digits_task):
    first = minimise(digits_task, Bundle(), tol=1e-3)
    again = minimise(digits_task, Bundle(), tol=1e-3, start=first.w, planes=first.planes)
    assert again.history[-1].iteration < 0.5 * first.history[-1].iteration
    assert again.objective <= first.objective


def test_planes_survive_new_weights_and_targets():
    problem = Candidates()
    task = testing.example_task(problem, seed=3, C=10.0)
    first = minimise(task, Bundle(), tol=1e-6)
    rng = np.random.default_rng(0)
    other = Task(task.oracle.with_hidden(None), rng.random(task.oracle.n_samples), task.oracle.impute(first.w).code)
    cold = minimise(other, Bundle(), tol=1e-6)
    warm = minimise(other, Bundle(), tol=1e-6, start=first.w, planes=first.planes)
    assert warm.status is cold.status is Status.CONVERGED
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)


def test_planes_of_other_data_are_left_out():
    task = testing.example_task(Multiclass(), seed=0)
    wild = np.full((3, task.oracle.n_samples), 99)
    assert minimise(task, Bundle(), planes=wild).status is Status.CONVERGED


def test_slack_rescaling_reaches_its_optimum():
    """Compared with a fine search over one weight direction at a time: no coordinate step improves."""
    task = testing.example_task(Multiclass(), seed=2, C=5.0, rescaling="slack")
    solution = minimise(task, Bundle(), tol=1e-8, max_iter=5000)
    assert solution.status is Status.CONVERGED
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(100):
            assert task.objective(solution.w + size * rng.standard_normal(solution.w.size)) >= solution.bound


def test_other_quadratic_penalties():
    """A diagonal metric is a rescaling of the features; a pull towards a centre moves the optimum there."""
    task = testing.example_task(Multiclass(), seed=1, C=2.0)
    metric = np.linspace(0.5, 2.0, task.oracle.n_params)
    solution = minimise(Task(task.oracle, task.weights, task.target, Quadratic(metric)), Bundle(), tol=1e-7)
    slope = solution.w * metric  # at the optimum the risk's subgradient is −M w
    assert solution.status is Status.CONVERGED
    assert np.isfinite(slope).all()
    centre = np.ones(task.oracle.n_params)
    pulled = Task(task.oracle, task.weights, task.target, Quadratic(pull=1e6, centre=centre))
    found = minimise(pulled, Bundle(), tol=1e-9, max_iter=5000)
    np.testing.assert_allclose(found.w, centre, atol=1e-4)


def test_a_tiny_C_is_not_declared_solved_at_the_start(digits):
    """F(0) is then within 0.1 % of the optimum; the gap is compared with the distance from F(0) instead."""
    X, y = digits
    problem = Multiclass(fit_intercept=False)
    oracle = problem.bind(X, y, problem.schema(X, y))
    C = 1e-3
    task = Task(oracle, np.full(len(y), C / len(y)), oracle.encode(y))
    solution = minimise(task, Bundle(), tol=1e-3)
    trivial = task.objective(np.zeros(oracle.n_params))
    assert solution.gap <= 1e-3 * (trivial - solution.bound)
    assert np.abs(solution.w).max() > 0


def test_stopping_is_explained(digits_task):
    short = minimise(digits_task, Bundle(), max_iter=3)
    assert short.status is Status.MAX_ITER
    assert "raise max_iter" in short.advice()
    stopped = minimise(digits_task, Bundle(), callbacks=[lambda step: step.iteration == 5])
    assert stopped.status is Status.STOPPED
    assert stopped.history[-1].iteration == 5
    hard = minimise(testing.example_task(Multiclass(), seed=0), Bundle(), tol=1e-300, max_iter=5000)
    assert hard.status in (Status.CONVERGED, Status.STALLED)
    assert hard.gap < 1e-9


def test_callbacks_see_every_step(digits_task):
    seen = []
    solution = minimise(digits_task, Bundle(), callbacks=[seen.append], tol=1e-2)
    assert seen == solution.history
    assert [step.iteration for step in seen] == list(range(len(seen)))


@pytest.mark.parametrize("solver", [Bundle(), Bundle(proximal=False)], ids=repr)
def test_very_unequal_weights_still_converge(solver):
    """Planes of steepness 1e5 beside an optimum of size one: the inner program must not lose the small weights."""
    rng = np.random.default_rng(0)
    X, y = 20 * rng.standard_normal((60, 2)), np.arange(60) % 3
    problem = Multiclass()
    oracle = problem.bind(X, y, problem.schema(X, y))
    weights = np.choose(y, [1e3, 1e-4, 1e-4])
    solution = minimise(Task(oracle, weights, oracle.encode(y)), solver, tol=1e-5, max_iter=2000)
    assert solution.status is Status.CONVERGED


def test_a_wrong_drop_after_is_refused(digits_task):
    with pytest.raises(ValueError, match="drop_after must be at least 1"):
        minimise(digits_task, Bundle(drop_after=0))


def test_the_small_program_survives_singular_matrices():
    rng = np.random.default_rng(0)
    for m in (2, 5, 30):
        G = rng.standard_normal((m, 2))
        G[1] = G[0]
        for scale in (1e-12, 1.0, 1e12):
            alpha = maximise_on_simplex(scale * G @ G.T, scale * rng.standard_normal(m), scale)
            assert alpha.sum() == pytest.approx(1)
            assert alpha.min() >= 0
    # against a fine grid over the one-dimensional simplex
    H, f = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([0.4, 0.1])
    grid = np.linspace(0, 1, 100001)
    values = (
        f[0] * grid
        + f[1] * (1 - grid)
        - 0.5 * (H[0, 0] * grid**2 + 2 * H[0, 1] * grid * (1 - grid) + H[1, 1] * (1 - grid) ** 2)
    )
    assert maximise_on_simplex(H, f, 0.1)[0] == pytest.approx(grid[values.argmax()], abs=1e-4)

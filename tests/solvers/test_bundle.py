"""The bundle solver and the loop: certificates, warm starts, stopping."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from tacit import testing
from tacit.oracle import Task
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Multiclass
from tacit.solvers import Bundle, Status, WarmStart, bundle, minimise
from tacit.solvers.ball_bundle import minimise_in_ball
from tacit.solvers.bundle import MAX_PLANES
from tacit.solvers.loop import MAX_IDLE_STEPS
from tacit.solvers.simplex_qp import choose_start, maximise_by_active_set, maximise_on_simplex
from tacit.testing.enumeration import bracket_optimum

OPTIMUM = 25.2932  # liblinear, tol 1e-6, on the digits with C = 100, to four digits after the point


@pytest.fixture(scope="module")
def digits_task(digits):
    X, y = digits
    problem = Multiclass(fit_intercept=False)
    oracle = problem.bind(X, y, problem.schema(X, y))
    return Task(oracle, np.full(len(y), 100 / len(y)), oracle.encode(y), Quadratic())


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
    peer = LinearSVC(multi_class="crammer_singer", C=100 / len(y), fit_intercept=False, tol=1e-6, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
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


def test_planes_never_outgrow_the_cap():
    task = testing.example_task(Multiclass(), seed=0, C=100.0)
    state = Bundle().init(task, WarmStart(), None)
    code, plane = task.origin
    for i in range(3 * MAX_PLANES):
        state.add_if_new(code, plane._replace(offset=plane.offset - i), task.penalty)
        state.drop(np.full(state.n_planes, 1 / state.n_planes), after=10**6)
        assert state.n_planes <= MAX_PLANES


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
    other = Task(
        task.oracle.with_hidden(None), rng.random(task.oracle.n_samples), task.oracle.impute(first.w).code, Quadratic()
    )
    cold = minimise(other, Bundle(), tol=1e-6)
    warm = minimise(other, Bundle(), tol=1e-6, start=first.w, planes=first.planes)
    assert warm.status is cold.status is Status.CONVERGED
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)


def test_planes_of_other_data_are_left_out():
    task = testing.example_task(Multiclass(), seed=0)
    wild = np.full((3, task.oracle.n_samples), 99)
    assert minimise(task, Bundle(), planes=wild).status is Status.CONVERGED


def test_slack_rescaling_reaches_its_optimum():
    """No random step of any size goes below the bound, which is as good as the objective."""
    task = testing.example_task(Multiclass(), seed=2, C=5.0, rescaling="slack")
    solution = minimise(task, Bundle(), tol=1e-8, max_iter=5000)
    assert solution.status is Status.CONVERGED
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(100):
            assert task.objective(solution.w + size * rng.standard_normal(solution.w.size)) >= solution.bound


def test_a_metric_is_a_rescaling_of_the_features():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 3
    metric = np.array([0.25, 1.0, 4.0])
    problem = Multiclass(fit_intercept=False)
    schema = problem.schema(X, y)

    def solve(features, penalty):
        oracle = problem.bind(features, y, schema)
        task = Task(oracle, np.full(30, 0.5), oracle.encode(y), penalty)
        return minimise(task, Bundle(), tol=1e-8, max_iter=5000)

    stretched = solve(X, Quadratic(np.tile(metric, 3)))
    plain = solve(X / np.sqrt(metric), Quadratic())
    assert stretched.objective == pytest.approx(plain.objective, rel=1e-7)
    np.testing.assert_allclose(stretched.w * np.sqrt(np.tile(metric, 3)), plain.w, atol=1e-3)


def test_a_strong_pull_moves_the_optimum_to_its_centre():
    task = testing.example_task(Multiclass(), seed=1, C=2.0)
    centre = np.ones(task.oracle.n_params)
    pulled = Task(task.oracle, task.weights, task.target, Quadratic(pull=1e6, centre=centre))
    found = minimise(pulled, Bundle(), tol=1e-9, max_iter=5000)
    np.testing.assert_allclose(found.w, centre, atol=1e-4)


@pytest.mark.parametrize("stretch", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("C", [1e2, 1e5, 1e9])
def test_converged_means_within_tolerance(C, stretch):
    """F(0) may be 10⁸ times the optimum: rounding of the one excuses no gap of the other."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = stretch * (rng.standard_normal((30, 4)) + 3 * np.eye(4)[y])
    problem = Multiclass()
    oracle = problem.bind(X, y, problem.schema(X, y))
    solution = minimise(
        Task(oracle, np.full(30, C / 30), oracle.encode(y), Quadratic()), Bundle(), tol=1e-3, max_iter=500
    )
    if solution.status is Status.CONVERGED:
        assert solution.bound <= solution.objective
        assert solution.gap <= 1e-3 * solution.objective
    else:
        assert "scale or centre the features" in solution.advice() or "raise max_iter" in solution.advice()


@pytest.mark.parametrize("C", [1e4, 1e5, 1e6, 1e7])
def test_rounding_beyond_the_gap_is_never_called_converged(C):
    """Scores of 1 carry rounding of 1e-16, C times that is more than the optimum of 8e-11 here."""
    rng = np.random.default_rng(0)
    y = np.array([0, 1, 0, 1, 0, 1])
    X = rng.standard_normal((6, 2)) + 1e5
    X[:, 0] += np.where(y == 1, 3e5, 0)
    problem = Multiclass(fit_intercept=False)
    oracle = problem.bind(X, y, problem.schema(X, y))
    solution = minimise(Task(oracle, np.full(6, C / 6), oracle.encode(y), Quadratic()), Bundle(), tol=1e-3)
    wx = [[Fraction(v) for v in row] for row in solution.w.reshape(2, 2)]
    true = sum(v * v for row in wx for v in row) / 2
    for x, label in zip(X, y, strict=True):
        scores = [sum(Fraction(a) * b for a, b in zip(x, row, strict=True)) for row in wx]
        true += Fraction(C / 6) * max(0, 1 + scores[1 - label] - scores[label])
    if solution.status is Status.CONVERGED:
        assert solution.objective == pytest.approx(float(true), rel=2e-3)
    else:
        assert solution.status is Status.STALLED


def test_single_precision_that_suffices_is_converged():
    """In float32 the two planes look better than they are; in double precision the optimum is certified."""
    X, y = np.array([[7e5], [-3e5]], np.float32), np.array([0, 1])
    problem = Multiclass(fit_intercept=False)
    oracle = problem.bind(X, y, problem.schema(X, y))
    solution = minimise(Task(oracle, np.full(2, 50.0), oracle.encode(y), Quadratic()), Bundle(), tol=1e-3)
    assert solution.history[-1].iteration < 20
    assert solution.gap <= 2e-3 * solution.objective


def test_the_same_plane_is_kept_once():
    task = testing.example_task(Multiclass(), seed=0)
    state = Bundle().init(task, WarmStart(), None)
    before = state.n_planes
    state.evaluate(task, np.zeros(task.oracle.n_params))
    assert state.n_planes == before


def test_a_restored_state_holds_exactly_the_stored_planes():
    """Even planes that a new run would recognise as equal: a checkpoint must never be lost over one."""
    task = testing.example_task(Multiclass(), seed=0)
    state = Bundle().init(task, WarmStart(), None)
    state.append(*task.origin, task.penalty)
    again = Bundle().restore(task, {name: np.asarray(value) for name, value in state.snapshot().items()})
    assert again.n_planes == state.n_planes
    np.testing.assert_array_equal(again.gram, state.gram)


@pytest.mark.parametrize("offset", [0, 1e3, 1e5, 1e6])
def test_single_precision_never_lies(offset):
    """The objective is the true one, in double precision; what cannot be certified is not called converged."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = (rng.standard_normal((30, 4)) + 3 * np.eye(4)[y] + offset).astype(np.float32)
    problem = Multiclass()
    oracle = problem.bind(X, y, problem.schema(X, y))
    exact = problem.bind(X.astype(np.float64), y, problem.schema(X, y))
    weights = np.full(30, 100 / 30)
    solution = minimise(Task(oracle, weights, oracle.encode(y), Quadratic()), Bundle(), tol=1e-3, max_iter=500)
    true = Task(exact, weights, exact.encode(y), Quadratic()).objective(solution.w)
    assert solution.objective == pytest.approx(true, rel=1e-9)
    assert solution.bound <= true * (1 + 1e-9)
    assert solution.status is not Status.CONVERGED or solution.gap <= 2e-3 * true


def test_a_tiny_C_is_not_declared_solved_at_the_start(digits):
    """F(0) is then within 0.1 % of the optimum; the gap is compared with the distance from F(0) instead."""
    X, y = digits
    problem = Multiclass(fit_intercept=False)
    oracle = problem.bind(X, y, problem.schema(X, y))
    C = 1e-3
    task = Task(oracle, np.full(len(y), C / len(y)), oracle.encode(y), Quadratic())
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


def test_the_bound_goes_on_rising_where_the_classes_can_be_separated():
    """At a large C: a model that lost the plane of the right answers stalled here, a fifth of the objective away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 100))
    y = (X @ rng.normal(size=(100, 8))).argmax(axis=1)
    problem = Multiclass()
    oracle = problem.bind(X, y, problem.schema(X, y))
    task = Task(oracle, np.full(len(y), 1e5 / len(y)), oracle.encode(y), Quadratic())
    assert minimise(task, Bundle(), tol=1e-4, max_iter=700).status is Status.MAX_ITER


def test_advice_fits_the_precision(digits_task):
    solution = minimise(digits_task, Bundle(), max_iter=3)._replace(status=Status.STALLED)
    assert "double precision" not in solution.advice()
    assert "double precision" in solution._replace(in_single_precision=True).advice()


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
    solution = minimise(Task(oracle, weights, oracle.encode(y), Quadratic()), solver, tol=1e-5, max_iter=2000)
    assert solution.status is Status.CONVERGED


def test_a_wrong_drop_after_is_refused(digits_task):
    with pytest.raises(ValueError, match="drop_after"):
        minimise(digits_task, Bundle(drop_after=0))


def test_the_small_program_survives_singular_matrices():
    rng = np.random.default_rng(0)
    for m in (2, 5, 30):
        G = rng.standard_normal((m, 2))
        G[1] = G[0]
        for scale in (1e-12, 1.0, 1e12):
            slopes, f = np.sqrt(scale) * G, scale * rng.standard_normal(m)
            alpha = maximise_on_simplex(slopes, 1.0, slopes @ slopes.T, f, scale, 1e-7 * scale)
            heights = f - slopes @ (alpha @ slopes)
            assert alpha.sum() == pytest.approx(1)
            assert alpha.min() >= 0
            assert heights.max() - alpha @ heights <= 1e-7 * scale


@pytest.mark.parametrize("seed", range(40))
def test_the_small_program_keeps_its_digits(seed):
    """Duplicates, zero planes, steepness from 1e-3 to 1e6: the answer is as near to the maximum as was asked for."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(2, 40)), int(rng.integers(1, 30))
    slopes = rng.standard_normal((m, d)) * 10 ** rng.uniform(-3, 6, (m, 1))
    slopes[rng.integers(m)] = 0
    slopes[rng.integers(m)] = slopes[rng.integers(m)]
    f = 10 * rng.random(m)
    root = rng.uniform(0.5, 2, d)
    V = slopes / root
    highest = bracket_optimum([V], [f], np.ones(1), precision=1e-9)
    quick = maximise_on_simplex(slopes, root, V @ V.T, f, 1.0, 1e-8)
    careful = maximise_by_active_set(V, f, 1.0, 1e-12, np.zeros(m))
    for alpha, room in ((quick, 1e-8), (careful, 1e-12)):
        value = alpha @ f - 0.5 * (alpha @ V) @ (alpha @ V)
        assert alpha.sum() == pytest.approx(1)
        assert alpha.min() >= 0
        assert highest.bound - room <= value <= highest.objective + 1e-12 * abs(value)


def test_the_small_program_equals_a_fine_grid():
    slopes, f = np.array([[1.4, 0.1], [0.2, 0.9]]), np.array([0.4, 0.1])
    H = slopes @ slopes.T
    grid = np.linspace(0, 1, 100001)
    both = np.stack([grid, 1 - grid])
    values = f @ both - 0.5 * (both * (H @ both)).sum(axis=0)
    for alpha in (
        maximise_on_simplex(slopes, 1.0, H, f, 0.1, 1e-9),
        maximise_by_active_set(slopes, f, 0.1, 1e-12, np.zeros(2)),
    ):
        assert alpha[0] == pytest.approx(grid[values.argmax()], abs=1e-4)


def test_a_run_that_only_rounding_moves_ends_soon():
    """Features of 1e8: after some sixty steps neither model, best point nor bound change any more."""
    X, y = load_iris(return_X_y=True)
    problem = Multiclass()
    oracle = problem.bind(1e8 * X, y, problem.schema(1e8 * X, y))
    solution = minimise(Task(oracle, np.full(len(y), 1 / len(y)), oracle.encode(y), Quadratic()), Bundle(), tol=0.0)
    assert solution.status is Status.STALLED
    assert solution.history[-1].iteration < MAX_IDLE_STEPS


def test_a_search_in_a_ball_that_only_rounding_moves_ends_soon():
    rng = np.random.default_rng(0)
    slopes, offsets = 1e18 * rng.standard_normal((8, 3)), rng.standard_normal(8)

    def risk(w):
        heights = slopes @ w + offsets
        return float(heights.max()), slopes[np.argmax(heights)]

    found = minimise_in_ball(risk, np.zeros(3), 1e-38, gap=0.0, max_iter=500)
    assert found.evaluations < 100
    with np.errstate(over="ignore"), pytest.raises(FloatingPointError, match="overflow"):
        minimise_in_ball(lambda w: (1.0, np.full(3, 1e200)), np.zeros(3), gap=0.0)


def test_the_small_program_leaves_a_start_that_is_worse_than_one_plane():
    """Slopes of 1e30: a start on many dependent planes would first be taken apart, plane by plane."""
    rng = np.random.default_rng(0)
    V, f = 1e30 * rng.standard_normal((40, 3)), np.zeros(40)
    V[7] = 0.0
    many = np.full(40, 1 / 40)
    assert np.flatnonzero(choose_start(V, f, many)).tolist() == [7]
    assert np.flatnonzero(maximise_by_active_set(V, f, 1.0, 0.1, many)).tolist() == [7]
    opposite, half = np.array([[1.0], [-1.0]]), np.array([0.5, 0.5])
    assert (choose_start(opposite, np.zeros(2), half) == half).all()


def test_the_small_program_keeps_its_place_where_rounding_uses_up_every_weight():
    V, f = np.full((3, 1), 1e160), np.zeros(3)
    with np.errstate(all="ignore"):
        alpha = maximise_by_active_set(V, f, 1e-300, 1e-12, np.array([0.5, 0.5, 0.0]))
    assert np.isfinite(alpha).all()
    assert alpha.sum() == pytest.approx(1)


def test_planes_of_very_many_samples_stay_within_a_bound(digits_task, monkeypatch):
    monkeypatch.setattr(bundle, "MAX_PLANE_CODES", 25 * digits_task.target.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = minimise(digits_task, Bundle(drop_after=1000), tol=1e-9, max_iter=40)
    assert len(found.planes) <= 25
    assert found.bound - 5e-5 <= OPTIMUM <= found.objective + 5e-5

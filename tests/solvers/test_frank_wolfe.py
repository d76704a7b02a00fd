"""Frank–Wolfe and subgradient: certificates, dual variables, blocks, caches, warm starts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from tacit import StructuredSVM, testing
from tacit.oracle import Task
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Chain, Multiclass
from tacit.problems.chain import dual as chain_dual
from tacit.solvers import Bundle, FrankWolfe, Status, Subgradient, WarmStart, minimise

OPTIMUM = 25.2932  # liblinear, tol 1e-6, on the digits with C = 100, to four digits after the point
KINDS = [Multiclass, Candidates, Chain]


@pytest.fixture(scope="module")
def digits_task(digits):
    problem = Multiclass(fit_intercept=False)
    oracle = problem.bind(*digits, problem.schema(*digits))
    n = oracle.n_samples
    return Task(oracle, np.full(n, 100 / n), oracle.impute(np.zeros(oracle.n_params)).code, Quadratic())


@pytest.mark.parametrize("solver", [Bundle(), FrankWolfe(), FrankWolfe(gap_sampling=True), Subgradient()], ids=repr)
def test_every_solver_is_within_a_thousandth_on_the_digits(digits_task, solver):
    solution = minimise(digits_task, solver, tol=1e-3)
    assert solution.status is Status.CONVERGED
    assert solution.bound - 5e-5 <= OPTIMUM <= solution.objective + 5e-5
    assert solution.objective <= 1.001 * OPTIMUM


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "solver",
    [FrankWolfe(), FrankWolfe(block_size=2), FrankWolfe(block_size=1, cache=2), FrankWolfe(cache=0)],
    ids=repr,
)
def test_visits_keep_weights_and_losses_in_step(kind, solver):
    """w and offset after many visits are those of the dual weights; the gaps noted are not negative."""
    for seed in range(5):
        task = testing.example_task(kind.variants()[seed % 3], seed, C=5.0)
        dual = solver.init(task, WarmStart(), np.random.default_rng(0)).dual_point
        rng, gaps = np.random.default_rng(seed), np.full(dual.n_blocks, np.inf)
        for _ in range(5):
            before = dual.bound()
            total = dual.sweep(rng.permutation(dual.n_blocks), gaps)
            assert total >= 0
            assert (gaps >= 0).all()
            w, offset = dual.w.copy(), dual.offset
            dual.refresh()
            np.testing.assert_allclose(dual.w, w, atol=1e-9)
            assert dual.offset == pytest.approx(offset, abs=1e-9)
            assert dual.bound() >= before - 1e-9, "a visit never lowers the dual"


def test_averages_of_planes_have_valid_bounds():
    for seed in range(6):
        task = testing.example_task(Multiclass(), seed, C=20.0)
        optimum = minimise(task, Bundle(), tol=1e-8).objective
        solver = FrankWolfe(block_size=2)
        state = solver.init(task, WarmStart(), np.random.default_rng(0))
        for _ in range(8):
            state = solver.step(task, state)
            assert state.average.bound() <= optimum + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 10.0, 100.0]))
def test_solvers_agree_to_their_gaps(kind, seed, C):
    task = testing.example_task(kind.variants()[seed % 3], seed, C)
    first = minimise(task, Bundle(), tol=1e-7)
    second = minimise(task, FrankWolfe(), tol=1e-5, max_iter=5000)
    third = minimise(task, Subgradient(batch_size=1), tol=0.1, max_iter=100)
    for one in (first, second, third):
        for other in (first, second, third):
            assert one.objective >= other.bound - 1e-6 * max(1.0, other.objective)
    assert second.status is Status.CONVERGED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_size", [1, 2, 3, 100])
@pytest.mark.parametrize("cache", [0, 20])
def test_block_sizes_and_caches_do_not_change_the_optimum(kind, block_size, cache):
    for seed in range(4):
        task = testing.example_task(kind.variants()[0], seed, C=2.0)
        optimum = minimise(task, Bundle(), tol=1e-7)
        tol = 1e-4 if cache else 1e-2
        solution = minimise(task, FrankWolfe(block_size=block_size, cache=cache), tol=tol, max_iter=200)
        assert solution.status is Status.CONVERGED or not cache
        assert solution.bound <= optimum.objective * (1 + 1e-9)
        assert solution.objective == pytest.approx(optimum.objective, rel=2 * tol)


def test_blocks_take_other_penalties():
    task = testing.example_task(Multiclass(), 3)
    d = task.oracle.n_params
    penalty = Quadratic(metric=np.linspace(0.5, 2, d), pull=0.7, centre=np.linspace(-1, 1, d))
    task = Task(task.oracle, task.weights, task.target, penalty)
    reference = minimise(task, Bundle(), tol=1e-8)
    found = minimise(task, FrankWolfe(cache=5), tol=1e-5)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(reference.objective, rel=1e-4)


def test_a_cache_spares_oracle_calls(digits_task):
    solver = FrankWolfe(block_size=16, cache=5, sweeps=1)
    state = solver.init(digits_task, WarmStart(), np.random.default_rng(0))
    for _ in range(10):
        state = solver.step(digits_task, state)
    visits = 10 * state.dual_point.n_blocks
    assert 0 < state.dual_point.calls < 0.8 * visits


def test_weights_are_the_sum_of_the_dual_variables(digits):
    """w = Σ_i Σ_y α_i(y) (Ψ(x_i, y_i) − Ψ(x_i, y)), Σ_y α_i(y) = C/n: the lecture's §3, corrected."""
    X, y = digits
    model = StructuredSVM(Multiclass(fit_intercept=False), C=100, solver=FrankWolfe()).fit(X, y)
    alpha = model.dual_["alpha"]
    assert alpha.shape == (1797, 10)
    assert (alpha >= 0).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 100 / 1797, rtol=1e-9)
    truth = np.eye(10)[y] * (100 / 1797)
    np.testing.assert_allclose(model.weights_["weights"], (truth - alpha).T @ X, atol=1e-9)
    bound = (alpha * (1 - np.eye(10)[y])).sum() - 0.5 * model.coef_ @ model.coef_
    assert bound <= OPTIMUM + 5e-5


def test_weights_are_the_sum_of_the_dual_variables_with_hidden_states(bags):
    X, y, hidden = bags
    model = StructuredSVM(Candidates(), C=5, solver=FrankWolfe(), tol=1e-6).fit(X, y, hidden=hidden)
    oracle = Candidates().bind(X, y, model.schema_, hidden=hidden)
    target = oracle.impute(np.zeros(oracle.n_params)).code
    alpha = model.dual_["alpha"]
    w = oracle.features(target, np.full(40, 5 / 40)) - oracle.adjoint(np.ascontiguousarray(alpha.T))
    np.testing.assert_allclose(w, model.coef_, atol=1e-9)


def test_weights_are_the_sum_of_the_dual_variables_of_chains():
    task = testing.example_task(Chain(classes=["ant", "bee", "cat"]), 2, C=4.0)
    solution = minimise(task, FrankWolfe(), tol=1e-7)
    vertices, shares = solution.variables["vertices"], solution.variables["shares"]
    w = task.oracle.features(task.target, task.weights)
    for m in range(shares.shape[1]):
        w -= task.oracle.features(vertices[:, m], task.weights * shares[:, m])
    np.testing.assert_allclose(w, solution.w, atol=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


@pytest.mark.parametrize("problem", [Multiclass(), Candidates(), Multiclass(loss=[[0, 2, 1], [1, 0, 3], [4, 1, 0]])])
@pytest.mark.parametrize("solver", [Bundle(), FrankWolfe(cache=5), Subgradient(batch_size=1)], ids=repr)
def test_slack_rescaling_equals_enumeration(problem, solver):
    """The optimum with every constraint written out: ℓ·(1 + s(a) − s(target)) ≤ ξ for all outputs a."""
    for seed in range(4):
        task = testing.example_task(problem, seed, C=2.0, rescaling="slack")
        table = testing.Enumeration(problem.example(np.random.default_rng(seed)))
        for i in range(table.n):  # slack rescaling is margin rescaling with all features but the loss scaled by it
            t = table.target(i)
            table.features[i] = table.losses[i][:, None] * (table.features[i] - table.features[i][t])
        optimum = table.optimum(task.weights)
        tol = 0.03 if isinstance(solver, Subgradient) else 1e-4
        solution = minimise(task, solver, tol=tol, max_iter=500)
        room = 1e-9 * optimum.objective
        assert solution.bound <= optimum.objective + room
        assert optimum.bound - room <= solution.objective <= (1 + tol) * optimum.objective + room


def test_a_learner_with_slack_rescaling_weighs_the_margin(digits):
    X, y = digits
    costs = np.abs(np.subtract.outer(np.arange(10.0), np.arange(10.0)))
    with pytest.warns(UserWarning, match="slack"):
        margin = StructuredSVM(Multiclass(loss=costs), C=10).fit(X, y)
    slack = StructuredSVM(Multiclass(loss=costs), C=10, rescaling="slack").fit(X, y)
    assert slack.status_ is Status.CONVERGED
    assert np.linalg.norm(slack.coef_ - margin.coef_) > 0.1 * np.linalg.norm(margin.coef_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", [FrankWolfe(), FrankWolfe(block_size=2), Subgradient()], ids=repr)
def test_sample_weights_of_zero_leave_samples_out(kind, solver):
    task = testing.example_task(kind.variants()[0], 5, C=2.0)
    weights = task.weights.copy()
    weights[0] = 0
    without = Task(task.oracle, weights, task.target, Quadratic())
    reference = minimise(without, Bundle(), tol=1e-7)
    found = minimise(without, solver, tol=1e-2)
    assert found.bound - 1e-6 <= reference.objective <= found.objective + 1e-6
    assert found.objective == pytest.approx(reference.objective, rel=2e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dual_point_warm_starts_a_task_with_other_weights(kind):
    task = testing.example_task(kind.variants()[0], 4, C=2.0)
    first = minimise(task, FrankWolfe(), tol=1e-8)
    again = minimise(task, FrankWolfe(), tol=1e-7, start=first.w, dual=first.dual)
    assert again.history[-1].iteration == 0
    other = Task(task.oracle, 1.01 * task.weights, task.target, Quadratic())
    cold = minimise(other, FrankWolfe(), tol=1e-6)
    warm = minimise(other, FrankWolfe(), tol=1e-6, start=first.w, planes=first.planes, dual=first.dual)
    assert warm.history[0].gap < 0.2 * cold.history[0].gap
    assert warm.objective == pytest.approx(cold.objective, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", [FrankWolfe(), FrankWolfe(block_size=2)], ids=repr)
def test_planes_of_another_solver_start_it(kind, solver):
    task = testing.example_task(kind.variants()[0], 4, C=2.0)
    first = minimise(task, Bundle(), tol=1e-6)
    warm = minimise(task, solver, tol=1e-5, planes=first.planes, start=first.w)
    assert warm.history[0].gap < 1e-3 * warm.objective


def test_a_foreign_dual_point_is_not_used():
    task = testing.example_task(Chain(classes=["ant", "bee", "cat"]), 4)
    right = minimise(task, FrankWolfe(), tol=1e-6)
    wild = {"vertices": np.full_like(right.dual["vertices"], 99), "shares": right.dual["shares"]}
    for dual in (wild, {"alpha": np.zeros((3, 3))}, {"vertices": right.dual["vertices"], "shares": np.array([np.nan])}):
        assert minimise(task, FrankWolfe(), tol=1e-6, dual=dual).objective == pytest.approx(right.objective, rel=1e-5)


@pytest.mark.parametrize("solver", [FrankWolfe(), FrankWolfe(block_size=3, cache=2), Subgradient()], ids=repr)
@pytest.mark.parametrize("problem", [Candidates(), Chain()], ids=repr)
def test_the_same_seed_gives_the_same_result_and_a_resumed_run_too(problem, solver, bags, tmp_path):
    X, y, hidden = bags
    known = {"hidden": hidden}
    if isinstance(problem, Chain):
        y, known = [["in" if t == h else "out" for t in range(len(x))] for x, h in zip(X, hidden, strict=True)], {}
    settings = {"problem": problem, "C": 20.0, "solver": solver, "tol": 1e-9, "verbose": 0, "random_state": 3}

    def run(steps, **more):
        with pytest.warns(ConvergenceWarning):
            return StructuredSVM(**settings, max_iter=steps, **more).fit(X, y, **known)

    whole = run(8)
    assert np.array_equal(whole.coef_, run(8).coef_)
    state = tmp_path / "state"
    run(5, checkpoint=state)
    resumed = run(8, checkpoint=state, resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize("scale", [1e-4, 1e-7, 1e-9])
def test_tiny_features_keep_the_dual_weights_whole(scale):
    """The projection divides by ‖x‖²: found by review, a bound above the optimum at features of 1e-6."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)) * scale, rng.integers(0, 3, 40)
    X[:5] /= scale
    model = StructuredSVM(Multiclass(fit_intercept=False), C=10, solver=FrankWolfe(), tol=1e-4).fit(X, y)
    reference = StructuredSVM(Multiclass(fit_intercept=False), C=10, solver=Bundle(), tol=1e-4).fit(X, y)
    np.testing.assert_allclose(model.dual_["alpha"].sum(axis=1), 10 / 40, rtol=1e-9)
    assert model.bound_ <= reference.objective_ * (1 + 1e-9)
    assert reference.bound_ <= model.objective_ * (1 + 1e-9)


def _one_long_sequence(length, tags, C, seed=1):
    rng = np.random.default_rng(seed)
    problem = Chain(classes=list(range(tags)))
    X, y = [rng.standard_normal((length, 3))], [rng.integers(0, tags, length)]
    oracle = problem.bind(X, y, problem.schema(X, y))
    return Task(oracle, np.array([C]), oracle.impute(np.zeros(oracle.n_params)).code, Quadratic())


def test_slots_of_a_chain_grow_with_the_taggings_that_need_them():
    """One sequence that carries the whole task needs more taggings than there is room for at first."""
    task = _one_long_sequence(9, 4, 10.0)
    found = minimise(task, FrankWolfe(), tol=1e-3)
    reference = minimise(task, Bundle(), tol=1e-5)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(reference.objective, rel=2e-3)
    assert found.dual["shares"].shape[1] > chain_dual.FIRST_SLOTS


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_chain_out_of_room_still_certifies(monkeypatch, room):
    monkeypatch.setattr(chain_dual, "FIRST_SLOTS", room)
    monkeypatch.setattr(chain_dual, "MAX_SLOT_BYTES", 0)
    for seed in range(4):
        task = _one_long_sequence(8, 3, 5.0, seed)
        optimum = minimise(task, Bundle(), tol=1e-8).objective
        solver = FrankWolfe()
        state = solver.init(task, WarmStart(), np.random.default_rng(0))
        for _ in range(30):
            state = solver.step(task, state)
            assert state.bound <= optimum + 1e-9
        shares = state.dual_point.shares
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        w = task.oracle.features(task.target, task.weights)
        for m in range(shares.shape[1]):
            w -= task.oracle.features(state.dual_point.vertices[:, m], task.weights * shares[:, m])
        np.testing.assert_allclose(w, state.dual_point.w, atol=1e-9)


def test_dual_variables_outlive_a_warm_start(digits):
    X, y = digits
    model = StructuredSVM(Multiclass(), C=10, solver=FrankWolfe(), warm_start=True).fit(X[:300], y[:300])
    model.fit(X[:300], y[:300])
    assert model.dual_ is not None
    trivial = StructuredSVM(Multiclass(), C=1e-6, solver=FrankWolfe(), tol=0.1).fit(X[:300], y[:300])
    assert trivial.dual_ is not None


def test_gap_sampling_works_beside_samples_without_weight():
    task = testing.example_task(Chain(classes=["ant", "bee", "cat"]), 3, C=5.0)
    weights = task.weights.copy()
    weights[0] = 0
    task = Task(task.oracle, weights, task.target, Quadratic())
    solver = FrankWolfe(gap_sampling=True)
    state = solver.init(task, WarmStart(), np.random.default_rng(0))
    for _ in range(3):
        state = solver.step(task, state)
        assert not state.is_active[0]
    assert np.isfinite(state.gaps[state.is_active]).all()


def test_features_that_say_nothing_leave_the_losses():
    X, y = np.zeros((6, 2)), [0, 1, 2, 0, 1, 2]
    model = StructuredSVM(Multiclass(fit_intercept=False), C=3, solver=FrankWolfe()).fit(X, y)
    assert model.objective_ == pytest.approx(3)
    assert model.status_ is Status.CONVERGED


@pytest.mark.parametrize(
    ("solver", "keyword"),
    [
        (FrankWolfe(block_size=0), "block_size=0"),
        (FrankWolfe(cache=-1), "cache=-1"),
        (FrankWolfe(sweeps=0), "sweeps=0"),
        (Subgradient(batch_size=0), "batch_size=0"),
        (Subgradient(batch_size=2.5), "batch_size=2.5"),
        (FrankWolfe(block_size="x"), "block_size"),
        (FrankWolfe(gap_sampling="yes"), "gap_sampling"),
    ],
)
def test_parameters_out_of_range_are_refused(solver, keyword):
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(Multiclass(), solver=solver).fit(np.eye(3), [0, 1, 2])


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", [FrankWolfe(), FrankWolfe(gap_sampling=True), FrankWolfe(block_size=3)], ids=str)
@pytest.mark.parametrize(
    ("kind", "size"), [(np.float32, 1e20), (np.float32, 1e38), (np.float64, 1e154), (float, 1e300)]
)
def test_features_beyond_the_range_of_squares_get_the_error_of_the_other_solvers(kind, size, solver):
    """A certificate, or the error that says what to do: never a division by zero."""
    values = (size * np.random.default_rng(0).standard_normal((30, 3))).astype(kind)
    tags = np.arange(30).reshape(10, 3) % 3
    fits = (
        (Multiclass(), values, tags.ravel(), {}),
        (Multiclass(), sparse.csr_array(values), tags.ravel(), {}),
        (Candidates(), values.reshape(10, 3, 3), np.arange(10) % 2, {"hidden": np.zeros(10, int)}),
        (Chain(), values.reshape(10, 3, 3), tags, {}),
    )
    for problem, X, y, known in fits:
        try:
            model = StructuredSVM(problem, solver=solver, max_iter=20, C=1.0).fit(X, y, **known)
        except FloatingPointError as error:
            assert "overflow" in str(error)  # noqa: PT017
        else:
            assert size < 1e200
            assert np.isfinite(model.coef_).all()
            assert model.bound_ <= model.objective_ < np.inf


def test_a_cache_beyond_memory_is_refused():
    task = testing.example_task(Candidates())
    with pytest.raises(ValueError, match="cache"):
        minimise(task, FrankWolfe(block_size=1, cache=10**400), max_iter=1)

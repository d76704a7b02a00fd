"""The group norm: certified zeros, the same optimum as other methods, states that can be left out."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_digits, load_iris

import tacit
from tacit import GroupNormSVM, LatentSVM, StructuredSVM, group_norm_path
from tacit.oracle import CapabilityError, Task
from tacit.penalties import GroupNorm
from tacit.problems import Candidates, Chain, Multiclass, PerSample, SequenceClass, Transforms, rotations
from tacit.runtime import Status
from tacit.solvers import Bundle, FrankWolfe, minimise
from tacit.testing import enumeration


@pytest.fixture(scope="module")
def turned():
    """Digits 3 and 8 with eleven angles: samples, labels, problem."""
    digits = load_digits()
    some = np.isin(digits.target, [3, 8])
    problem = Transforms(rotations(-60, 60, 11), n_components=10, blocks="class and state")
    return digits.images[some] / 16, digits.target[some], problem


@pytest.fixture(scope="module")
def model(turned):
    X, y, problem = turned
    return GroupNormSVM(problem, C=20, n_init=2).fit(X, y)


def upright_task(turned, C=20.0, **norm):
    X, y, problem = turned
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    penalty = GroupNorm("label-state", **norm).on(schema)
    return Task(oracle, np.full(len(y), C / len(y)), oracle.encode(y, np.full(len(y), 5)), penalty)


# the penalty


def test_value_is_the_weighted_sum_of_norms():
    penalty = GroupNorm([1, 0, 1], weights=[2.0, 3.0])
    w = np.array([3.0, -5.0, 4.0])
    assert penalty.value(w) == pytest.approx(2 * 5 + 3 * 5)
    np.testing.assert_allclose(penalty.norms(w), [5, 5])


def test_proximal_step_minimises_by_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(5):
        penalty = GroupNorm([0, 0, 1, 1, 2], weights=rng.uniform(0.2, 2, 3))
        near = penalty.near(rng.standard_normal(5), 0.7).near(rng.standard_normal(5), 0.4)
        slope = rng.standard_normal(5)
        found = near.primal(slope)
        lowest = near.value(found) + slope @ found
        for start in rng.standard_normal((5, 5)):
            other = minimize(lambda w, n=near, s=slope: n.value(w) + s @ w, start, method="Nelder-Mead")
            assert lowest <= other.fun + 1e-9


def test_two_proximal_terms_are_one():
    penalty, rng = GroupNorm([0, 0, 1]), np.random.default_rng(1)
    a, b, w, v = rng.standard_normal((4, 3))
    joined = penalty.near(a, 0.5).near(b, 1.5)

    def apart(w):
        return penalty.value(w) + 0.25 * (w - a) @ (w - a) + 0.75 * (w - b) @ (w - b)

    assert joined.value(w) - joined.value(v) == pytest.approx(apart(w) - apart(v))


@pytest.mark.parametrize(
    ("groups", "weights", "keyword"),
    [
        ([0, 0, 2], 1.0, "gaps"),
        ([0, 0, -1], 1.0, "groups"),
        ([0, 0, 0.5], 1.0, "groups"),
        ("labels", 1.0, "labels"),
        ([0, 0, 1], 0.0, "0.0"),
        ([0, 0, 1], -1.0, "-1.0"),
        ([0, 0, 1], [1.0, np.nan], "nan"),
        ([0, 0, 1], [1.0, 2.0, 3.0], "3"),
        ([0, 0, 1], np.inf, "infinite"),
    ],
)
def test_impossible_groups_and_weights_are_refused(groups, weights, keyword):
    with pytest.raises(ValueError, match=keyword):
        GroupNorm(groups, weights).check(3)


def test_an_infinite_weight_switches_a_group_off(turned):
    X, y, problem = turned
    weights = np.ones(22)
    weights[5] = np.inf
    off = GroupNormSVM(problem, "label-state", weights, C=20).fit(X, y)
    assert off.group_norms_[5] == 0
    assert off.score(X, y) > 0.9


# certified optima


def test_bundle_agrees_with_a_smooth_reformulation(turned):
    """λ‖w_g‖ = min over η of ½(λ²‖w_g‖²/η + η): quadratic tasks with a metric, solved by the same bundle."""
    task = upright_task(turned)
    solution = minimise(task, Bundle(), tol=1e-5)
    penalty, eta = task.penalty, np.full(task.penalty.n_groups, 0.5)
    from tacit.penalties import Quadratic

    for _ in range(40):
        metric = penalty.of_groups(1 / np.maximum(eta, 1e-9))
        inner = minimise(Task(task.oracle, task.weights, task.target, Quadratic(metric)), Bundle(), tol=1e-4)
        eta = penalty.norms(inner.w)
    other = penalty.value(inner.w) + task.plane(task.predict_augmented(inner.w).code).value(inner.w)
    assert solution.bound <= other
    assert solution.objective == pytest.approx(other, rel=1e-3)


def test_no_point_is_below_the_certified_bound(turned):
    task = upright_task(turned, weights=0.7)
    solution = minimise(task, Bundle(), tol=1e-4)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            w = solution.w + scale * rng.standard_normal(solution.w.size) * (solution.w != 0)
            assert task.objective(w) >= solution.bound
    assert solution.objective - solution.bound <= 1e-4 * solution.objective


def test_a_zero_group_is_certified_by_its_dual_norm(turned):
    task = upright_task(turned)
    solution = minimise(task, Bundle(), tol=1e-6)
    slope = solution.variables["slope"]
    dual, norms = task.penalty.norms(slope), task.penalty.norms(solution.w)
    assert (dual <= 1 + 1e-12).all()
    assert (dual[norms > 0] > 1 - 1e-2).all()
    certified = dual < 0.99
    assert certified.sum() > 10
    assert not norms[certified].any()
    # w in a certified group can only cost: the objective grows at least by (λ − ‖v‖)‖w‖ above the bound
    rng = np.random.default_rng(0)
    group = int(np.flatnonzero(certified)[0])
    w = np.where(task.penalty.groups == group, rng.standard_normal(slope.size), solution.w)
    room = (1 - dual[group]) * np.linalg.norm(w[task.penalty.groups == group])
    assert task.objective(w) >= solution.bound + room


def test_zero_is_optimal_where_c_is_small(turned):
    task = upright_task(turned, C=0.3)
    solution = minimise(task, Bundle(), tol=1e-3)
    assert solution.status.name == "CONVERGED"
    assert not solution.w.any()


@pytest.mark.parametrize("C", [1.5, 1.75, 2.0, 2.5, 3.0, 4.0])
def test_a_tiny_proximal_weight_does_not_stick(turned, C):
    """Where the dual of a tiny proximal weight was not solved, the weight shrank all the more."""
    assert minimise(upright_task(turned, C), Bundle(), tol=1e-4).status is Status.CONVERGED


def test_a_warm_start_does_not_end_before_the_gap_is_small(turned):
    X, y, problem = turned
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    drawn = np.random.default_rng(1).integers(0, 11, len(y))
    weights = np.full(len(y), 1000 / len(y))
    task = Task(oracle, weights, oracle.encode(y, drawn), GroupNorm("label-state").on(schema))
    rough = minimise(task, Bundle(), tol=0.3)
    solution = minimise(task, Bundle(), tol=5e-3, start=rough.w)
    assert solution.status is Status.CONVERGED
    assert solution.gap <= 5e-3 * solution.objective


def test_families_of_features_are_switched_off_in_a_structured_svm():
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).standard_normal((len(X), 6))
    table = np.hstack([X - X.mean(axis=0), 0.1 * noise])
    families = np.array([0, 0, 1, 1, 2, 2, 2, 3, 3, 3])
    model = StructuredSVM(Multiclass(), C=15, penalty=GroupNorm(families)).fit(table, y)
    norms = np.linalg.norm(model.weights_["weights"], axis=0)
    assert not norms[4:].any()
    assert norms[2:4].any()
    assert model.gap_ <= 1e-3 * model.objective_
    assert model.score(table, y) > 0.9


def test_a_solver_without_proximal_steps_is_refused(turned):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(CapabilityError, match="FrankWolfe"):
        StructuredSVM(Multiclass(), penalty=GroupNorm(), solver=FrankWolfe()).fit(X, y)
    with pytest.raises(ValueError, match="proximal=True"):
        minimise(upright_task(turned), Bundle(proximal=False))


# the learner


def test_few_states_are_used_and_certified(model):
    zero = model.group_norms_ == 0
    assert 2 <= model.selected_states_.sum() <= 8
    assert model.selected_states_.shape == (2, 11)
    assert (model.dual_norms_[zero] <= 1).all()
    assert model.inner_gap_ <= 20 * 1e-3
    assert model.group_norms_.shape == (22,)


def test_pruned_and_unpruned_models_predict_the_same(turned, model):
    X, _, _ = turned
    pruned = model.prune()
    assert np.array_equal(pruned.predict(X), model.predict(X))
    assert pruned.coef_.size < model.coef_.size
    angles, fewer = model.schema_.facts["states"], pruned.schema_.facts["states"]
    before, after = angles[model.predict_hidden(X)], pruned.predict_hidden(X)
    assert (fewer[after[after >= 0]] == before[after >= 0]).all()
    np.testing.assert_allclose(pruned.decision_function(X), model.decision_function(X), atol=1e-12)


def test_a_zero_block_keeps_its_score_unless_the_null_state_is_dropped(turned):
    X, y, problem = turned
    model = GroupNormSVM(problem, C=20).fit(X, y)
    kept = model.selected_states_.copy()
    pruned, dropped = model.prune(), model.prune(drop_null=True)
    assert pruned.problem.null.all()
    assert not dropped.problem.null.any()
    scores = model._bind(X).label_scores(model.coef_)
    assert (scores[:, ~kept.all(axis=1)] >= 0).all()
    np.testing.assert_allclose(pruned._bind(X).label_scores(pruned.coef_), scores, atol=1e-12)
    assert (dropped._bind(X).label_scores(dropped.coef_) < 0).any()


def test_a_pruned_model_goes_into_a_file(turned, model, tmp_path):
    X, _, _ = turned
    pruned = model.prune()
    pruned.save(tmp_path / "pruned.tacit")
    loaded = tacit.load(tmp_path / "pruned.tacit")
    assert np.array_equal(loaded.predict(X), pruned.predict(X))
    assert np.array_equal(loaded.selected_states_, pruned.selected_states_)


def test_a_budget_keeps_so_many_states_per_label(turned, model):
    X, y, _ = turned
    small = model.budget(2, X, y)
    assert (small.problem.kept.sum(axis=1) == 2).all()
    assert (small.selected_states_.sum(axis=1) <= 2).all()
    assert small.score(X, y) > 0.95


def test_a_budget_beyond_all_states_keeps_them_all(turned, model):
    X, y, _ = turned
    assert model.budget(10**18, X, y).problem.kept.all()


def test_states_leave_one_at_a_time_and_end_no_worse_than_at_once(turned, model):
    X, y, _ = turned
    by_turns, at_once = model.budget(1, X, y), model.budget(1, X, y, at_once=True)
    assert (by_turns.problem.kept.sum(axis=1) == 1).all()
    assert (at_once.problem.kept.sum(axis=1) == 1).all()
    assert by_turns.objective_ <= at_once.objective_ * (1 + 1e-3)


def test_a_budget_may_count_the_states_of_all_labels(turned, model):
    X, y, _ = turned
    small = model.budget(3, X, y, per_label=False)
    assert small.problem.kept.sum() == 3
    assert small.problem.kept.any(axis=1).all()
    assert (small.n_init, small.warm_start) == (model.n_init, model.warm_start)
    with pytest.raises(ValueError, match="k=1"):
        model.budget(1, X, y, per_label=False)


def test_states_that_were_left_out_have_no_weights(turned, model):
    kept = model.selected_states_ & (np.arange(11) == np.argmax(model.selected_states_, axis=1)[:, None])
    problem, schema, w = model.problem.with_states(model.schema_, model.coef_, kept, False)
    views = schema.views(w)
    assert (views["weights"][~problem.kept] == 0).all()
    assert (views["intercept"][~problem.kept] == 0).all()
    assert np.array_equal(views["weights"][problem.kept], model.weights_["weights"][kept])


def test_subgradient_of_the_paper_agrees_on_the_objective(turned):
    X, y, problem = turned
    upright = np.full(len(y), 5)
    exact = GroupNormSVM(problem, C=20).fit(X, y, hidden=upright)
    rough = GroupNormSVM(problem, C=20, solver="subgradient", tol=1e-4).fit(X, y, hidden=upright)
    assert exact.objective_ - exact.gap_ <= rough.objective_ <= 1.01 * exact.objective_
    assert np.isnan(rough.dual_norms_).all()
    assert rough.selected_states_.sum() > exact.selected_states_.sum()  # it never reaches zero


def test_the_stop_rule_of_the_paper_ends_after_the_same_step(turned):
    """Algorithm 1 of Chen et al. (2011) written out: a step per pass, until |L(w_t) − L(w_{t−1})| / L(w_t) < ε."""
    X, y, problem = turned
    begin = LatentSVM(problem, C=1, verbose=0).fit(X, y)
    C, w = 20.0, begin.coef_.copy()
    oracle = problem.bind(X, y, begin.schema_).exact()
    norm = GroupNorm("label-state").on(begin.schema_)
    n, rises, values = len(y), 0, []
    while len(values) < 500:
        own, rival = oracle.impute(w), oracle.predict_augmented(w)
        slack = np.maximum(rival.value - own.value, 0)
        values.append(norm.value(w) + C / n * slack.sum())
        if len(values) > 1:
            rises += values[-1] > values[-2]
            if abs(values[-1] - values[-2]) / values[-1] < 2e-3:
                break
        lengths = norm.of_groups(norm.norms(w))
        slope = np.divide(w, lengths, out=np.zeros_like(w), where=lengths > 0)
        is_wrong = (slack > 0) * C / n
        slope += oracle.features(rival.code, is_wrong) - oracle.features(own.code, is_wrong)
        w = w - slope / (rises + 1)
    settings = {"C": C, "solver": "subgradient", "init": begin.weights_, "tol": 2e-3, "verbose": 0}
    model = GroupNormSVM(problem, stop="relative", **settings).fit(X, y)
    assert 2 < len(values) < 500
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ == -(-len(values) // 100)
    assert model.objective_ == pytest.approx(min(values), rel=1e-6)
    longer = GroupNormSVM(problem, **settings).fit(X, y)
    assert longer.objective_ < model.objective_


def test_the_stop_rule_of_the_paper_needs_its_steps(turned):
    X, y, problem = turned
    for settings in ({"solver": "auto"}, {"solver": Bundle()}):
        with pytest.raises(ValueError, match="stop"):
            GroupNormSVM(problem, stop="relative", **settings).fit(X, y)
    with pytest.raises(ValueError, match="stop"):
        GroupNormSVM(problem, stop="never").fit(X, y)


def test_a_group_per_weight_is_the_l1_norm():
    """The same optimum as a linear programme: w = a − b, minimise Σ (a + b) + (C/n) Σ ξ under all margins."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    model = StructuredSVM(Multiclass(), C=10, penalty=GroupNorm("weight"), tol=1e-7).fit(X, y)
    n, d = len(y), model.coef_.size
    rows, margins = [], []
    for i, (x, own) in enumerate(zip(X, y, strict=True)):
        for rival in set(range(3)) - {own}:
            psi = np.zeros((3, 5))
            psi[own] += [*x, 1]
            psi[rival] -= [*x, 1]
            psi = np.concatenate([psi[:, :4].ravel(), psi[:, 4]])
            rows.append(np.concatenate([-psi, psi, -np.eye(n)[i]]))
            margins.append(-1.0)
    costs = np.concatenate([np.ones(2 * d), np.full(n, 10 / n)])
    best = linprog(costs, A_ub=np.array(rows), b_ub=margins, bounds=(0, None))
    assert model.objective_ == pytest.approx(best.fun, rel=1e-5)
    assert model.bound_ <= best.fun * (1 + 1e-9)
    assert 0 < np.count_nonzero(model.coef_) < d


def test_subgradient_of_the_paper_refuses_features_that_overflow():
    def feature(x, y):
        return x if y else -x

    problem = PerSample(feature, outputs=[0, 1], blocks={"weights": (2, 1)})
    X = np.array([[0.5, -1.7e308], [-1.5, -0.1]])
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="scale"):
        GroupNormSVM(problem, solver="subgradient", max_iter=2).fit(X, [0, 1])


def test_groups_by_state_leave_a_state_for_both_labels(turned):
    X, y, problem = turned
    model = GroupNormSVM(problem, groups="state", C=20).fit(X, y)
    assert model.group_norms_.shape == (11,)
    assert (model.selected_states_[0] == model.selected_states_[1]).all()


@pytest.mark.parametrize("name", ["label-state", "state"])
@pytest.mark.parametrize(
    "problem",
    [
        Chain(classes=["ant", "bee"], states=2, fit_intercept=True, boundaries=True),
        SequenceClass(states=2, classes=["ant", "bee"], boundaries=True),
        SequenceClass(states=3, classes=["ant", "bee"], topology="left-to-right", skips=1),
    ],
    ids=["chain", "ergodic", "left-to-right"],
)
def test_optimum_over_states_of_sequences_agrees_with_all_listed_outputs(problem, name):
    """The convex task of given paths: all outputs are listed, and SciPy minimises over weights and slacks."""
    rng = np.random.default_rng(3)
    example = problem.example(rng)
    schema = problem.schema(example.X, example.y)
    oracle = problem.bind(example.X, example.y, schema)
    table, penalty = enumeration.Enumeration(example), GroupNorm(name).on(schema)
    task = Task(oracle, np.full(table.n, 3.0 / table.n), oracle.encode(example.y, example.hidden), penalty)
    solution = minimise(task, Bundle(), tol=1e-6)
    rows, losses, sample = [], [], []
    for i in range(table.n):
        features = np.asarray(table.features[i], dtype=float)
        target = example.joint_feature(example.X[i], example.y[i], example.hidden[i])
        rows.append(features - target)
        losses += [example.loss(example.y[i], *output) for output in example.outputs(example.X[i])]
        sample += [i] * len(features)
    A, eye = np.vstack(rows), np.eye(table.n)[sample]
    d, groups, eps = A.shape[1], penalty.group_of_each, 1e-4
    slopes = np.hstack([-A, eye])
    margins = {"type": "ineq", "fun": lambda v: slopes @ v - losses, "jac": lambda v: slopes}

    def smooth(v):
        norms = np.sqrt(np.bincount(groups, v[:d] ** 2) + eps**2)
        return norms.sum() + task.weights @ v[d:], np.r_[v[:d] / norms[groups], task.weights]

    start = np.r_[0.1 * rng.standard_normal(d), np.full(table.n, 100.0)]
    options = {"maxiter": 500, "ftol": 1e-9}
    found = minimize(smooth, start, jac=True, constraints=margins, method="SLSQP", options=options)
    assert solution.bound <= found.fun + 1e-6
    assert solution.objective == pytest.approx(found.fun, rel=1e-3, abs=2 * eps * penalty.n_groups)


def test_states_that_a_sequence_does_not_need_are_zero():
    """One phase of a label suffices, the other label has two: of four states per label few remain."""
    rng = np.random.default_rng(0)
    X, y = [], np.array(["flat", "step"] * 20)
    for label in y:
        cut = int(rng.integers(3, 7)) if label == "step" else 10
        X.append(np.eye(2)[np.r_[np.zeros(cut, int), np.ones(10 - cut, int)]] + 0.1 * rng.standard_normal((10, 2)))
    model = GroupNormSVM(SequenceClass(states=4), C=5).fit(X, y)
    assert model.selected_states_.shape == (2, 4)
    assert 1 <= model.selected_states_.sum() <= 4
    assert (model.dual_norms_[model.group_norms_ == 0] <= 1).all()
    assert model.score(X, y) == 1
    tags = [np.where(x[:, 1] > 0.5, "on", "off").tolist() for x in X]
    chain = GroupNormSVM(Chain(states=3, fit_intercept=True), groups="label-state", C=5).fit(X, tags)
    assert chain.selected_states_.shape == (2, 3)
    assert 1 <= chain.selected_states_.sum() <= 3
    assert chain.score(X, tags) > 0.99
    with pytest.raises(CapabilityError, match="with_states"):
        chain.prune()


def test_groups_that_the_problem_lacks_are_refused(turned):
    X, y, _ = turned
    with pytest.raises(ValueError, match="label-state"):
        GroupNormSVM(Transforms(rotations(-60, 60, 3), 5), groups="label-state").fit(X, y)
    bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]]]
    model = GroupNormSVM(Candidates(), C=10).fit(bags, ["x", "y"])
    with pytest.raises(CapabilityError, match="Candidates"):
        model.prune()


def test_hidden_values_of_states_that_were_left_out_are_refused(turned):
    X, y, problem = turned
    pruned = GroupNormSVM(problem, C=20, init="hidden", random_state=0).fit(X, y).prune()
    row, gone = np.argwhere(~pruned.problem.kept)[0]
    label = pruned.classes_[row]
    with pytest.raises(ValueError, match="state"):
        pruned.fit(X, y, hidden=np.where(y == label, gone, -1))


def test_resumed_fits_end_at_the_same_bits(turned, tmp_path):
    X, y, problem = turned
    for solver in ("auto", "subgradient"):
        settings = {"C": 5, "n_init": 2, "solver": solver, "verbose": 0}
        whole = GroupNormSVM(problem, **settings).fit(X, y)
        path = tmp_path / f"{solver}.state"
        lines = []

        def stop(line, seen=lines):
            seen.append(line)
            return len(seen) == 3

        with pytest.warns(UserWarning, match="callback"):
            GroupNormSVM(problem, **settings, checkpoint=path, callbacks=[stop]).fit(X, y)
        again = GroupNormSVM(problem, **settings, checkpoint=path, resume=True).fit(X, y)
        assert np.array_equal(again.coef_, whole.coef_)
        assert again.objective_ == whole.objective_


def test_path_has_fewer_states_at_smaller_c(turned):
    X, y, problem = turned
    models = group_norm_path(GroupNormSVM(problem), X, y, [1.5, 5, 50], cv=2)
    assert (np.diff(models.n_states) >= 0).all()
    assert models.n_states[0] < models.n_states[-1]
    assert models.scores.shape == (3, 2)
    assert models.sparsest(0.05).C <= models.best.C
    assert (models.prediction_seconds(X[:50], repeats=1) >= 0).all()
    with pytest.raises(TypeError, match=r"tacit\.path"):
        group_norm_path(LatentSVM(problem), X, y, [1.0])


def test_pictures_of_states(model, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs")
    from figures import group_norms

    from tacit import plot

    axes = group_norms(model)
    drawn = np.array([[bar.get_height() for bar in ax.patches] for ax in axes])
    np.testing.assert_allclose(drawn, model.group_norms_.reshape(2, 11))
    plot.pyplot().close("all")

"""Chains whose tags have hidden states."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

from tacit import HiddenCRF, LatentPerceptron, LatentSVM, Ragged, StructuredSVM
from tacit.oracle import CapabilityError, Task
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Chain
from tacit.solvers import FrankWolfe, Subgradient, WarmStart
from tacit.testing import check_problem

quiet = {"verbose": 0}


def make_sequences(seed=0, n=60):
    """Tags of two states each: "a" comes as feature 0 or 1, "b" as 2 or 3, and states alternate within a tag."""
    rng = np.random.default_rng(seed)
    X, y, hidden = [], [], []
    for _ in range(n):
        size = int(rng.integers(3, 8))
        state, path = int(rng.integers(4)), []
        for _ in range(size):
            path.append(state)
            state = (state ^ 1) if rng.random() < 0.7 else int(rng.integers(4))
        # features that no single weight vector per tag separates: states of one tag are opposite corners
        corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
        X.append(corners[path] + 0.3 * rng.standard_normal((size, 2)))
        y.append(["ab"[s // 2] for s in path])
        hidden.append(path)
    return X, y, hidden


def oracles(states, seed=0, missing=False, **options):
    X, y, _ = make_sequences(seed, 12)
    if missing:
        y = [[None if (i + t) % 3 == 0 else tag for t, tag in enumerate(tags)] for i, tags in enumerate(y)]
    problem = Chain(classes=["a", "b"], states=states, **options)
    schema = problem.schema(X, y)
    return problem.bind(X, y, schema), schema


@pytest.mark.parametrize("problem", [Chain(classes=["a", "b"], states=2), Chain(classes=[0, 1, 2], states={1: 3})])
def test_states_agree_with_brute_force(problem):
    check_problem(problem, seeds=3)


def test_missing_tags_and_states_agree_with_brute_force():
    oracle, _ = oracles(2, missing=True)
    w = np.random.default_rng(1).standard_normal(oracle.n_params)
    unary, ways = oracle._unary(w, None), oracle._views(w)["transition"]
    known = oracle._true_labels(None)
    truth = oracle.expectations(w, truth=np.zeros(oracle.n_samples)).truth
    best = oracle.impute(w)
    for i in range(oracle.n_samples):
        tokens = slice(oracle.offsets[i], oracle.offsets[i + 1])
        rows, tags = unary[tokens], known[tokens]
        scores = []
        for path in itertools.product(range(4), repeat=len(tags)):
            if all(tag < 0 or state // 2 == tag for state, tag in zip(path, tags, strict=True)):
                steps = sum(ways[a, b] for a, b in itertools.pairwise(path))
                scores.append(sum(rows[t, s] for t, s in enumerate(path)) + steps)
        assert np.isclose(best.value[i], max(scores))
        assert np.isclose(truth[i], logsumexp(scores))


@pytest.mark.parametrize("learner", [StructuredSVM, LatentSVM, HiddenCRF])
def test_one_state_per_tag_is_the_plain_chain_to_the_bit(learner):
    X, y, _ = make_sequences()
    plain = learner(Chain(fit_intercept=True), C=10, **quiet).fit(X, y)
    for states in (1, {"a": 1, "b": 1}):
        same = learner(Chain(fit_intercept=True, states=states), C=10, **quiet).fit(X, y)
        assert np.array_equal(plain.coef_, same.coef_)


def test_order_of_states_changes_nothing():
    oracle, schema = oracles(3, boundaries=True, fit_intercept=True)
    rng = np.random.default_rng(2)
    w = rng.standard_normal(oracle.n_params)
    order = np.concatenate([rng.permutation(3), 3 + rng.permutation(3)])
    moved = np.empty_like(w)
    for name, view in schema.views(w).items():
        part = view[order]
        schema.views(moved)[name][:] = part[:, order] if name == "transition" else part
    for method in ("predict", "predict_augmented", "impute"):
        ours, theirs = getattr(oracle, method)(w), getattr(oracle, method)(moved)
        assert np.allclose(ours.value, theirs.value)
        assert np.array_equal(oracle.decode(ours.code)[0].values, oracle.decode(theirs.code)[0].values)
        assert np.array_equal(ours.code, order[theirs.code])
    assert np.allclose(oracle.tag_posterior(w), oracle.tag_posterior(moved))
    assert np.allclose(oracle.log_partition(w), oracle.log_partition(moved))


def test_tag_posterior_sums_to_one_and_respects_given_tags():
    oracle, _ = oracles(2, missing=True)
    w = np.random.default_rng(3).standard_normal(oracle.n_params)
    free, given = oracle.tag_posterior(w), oracle.tag_posterior(w, is_given=True)
    known = oracle._true_labels(None)
    assert free.shape == (oracle.offsets[-1], 2)
    assert np.allclose(free.sum(axis=1), 1)
    assert np.allclose(given[known >= 0, known[known >= 0]], 1)


@pytest.mark.parametrize(
    "learner",
    [
        LatentSVM(Chain(states=2), C=60, **quiet),
        LatentSVM(Chain(states=2), C=60, init="k-means", **quiet),
        HiddenCRF(Chain(states=2), C=60, **quiet),
        HiddenCRF(Chain(states=2), C=60, rule="max", **quiet),
        LatentPerceptron(Chain(states=2), **quiet),
    ],
)
def test_states_are_found_where_tags_alone_cannot_be_told_apart(learner):
    X, y, hidden = make_sequences(0, 80)
    X_new, y_new, _ = make_sequences(1, 80)
    plain = StructuredSVM(Chain(), C=60, **quiet).fit(X, y)
    assert plain.score(X_new, y_new) < 0.8
    assert learner.fit(X, y).score(X_new, y_new) > 0.95
    found, truth = learner.impute(X, y).values, np.concatenate(hidden)
    for tag in (0, 1):  # states have no names of their own: either order will do
        own = truth // 2 == tag
        agree = np.mean(found[own] == truth[own])
        assert max(agree, 1 - agree) > 0.95


def test_known_states_make_a_structured_svm():
    X, y, hidden = make_sequences()
    model = StructuredSVM(Chain(states=2), C=60, **quiet).fit(X, y, hidden=hidden)
    assert model.status_.name == "CONVERGED"
    assert np.mean(model.predict_hidden(X).values == np.concatenate(hidden)) > 0.95


def test_partly_known_states_stay():
    X, y, hidden = make_sequences()
    known = [[s if t % 2 else -1 for t, s in enumerate(path)] for path in hidden]
    model = LatentSVM(Chain(states=2), C=60, **quiet).fit(X, y, hidden=known)
    for found, given in zip(model.hidden_, known, strict=True):
        assert all(g in (-1, f) for f, g in zip(found.tolist(), given, strict=True))


def test_missing_tags_are_imputed_below_states():
    X, y, _ = make_sequences(0, 80)
    gaps = [[None if (i + t) % 5 == 0 else tag for t, tag in enumerate(tags)] for i, tags in enumerate(y)]
    model = LatentSVM(Chain(states=2), C=60, **quiet).fit(X, gaps)
    tags = np.array(["a", "a", "b", "b"])[model.impute(X, gaps).values]
    assert np.mean(tags == np.concatenate(y)) > 0.95


def test_marginal_decoding_obeys_forbidden_pairs():
    X = [np.zeros((3, 1))]
    problem = Chain(classes=["a", "b"], states=2, forbidden=[("a", "b")])
    schema = problem.schema(X, [["b", "a", "a"]])
    oracle = problem.bind(X, None, schema)
    for seed in range(20):
        w = 3 * np.random.default_rng(seed).standard_normal(oracle.n_params)
        tags = oracle.decode(oracle.likeliest(w))[0].values.tolist()
        assert ("a", "b") not in set(itertools.pairwise(tags))


def test_online_pass_agrees_with_plain_python():
    oracle, _ = oracles(2, fit_intercept=True)
    rng = np.random.default_rng(4)
    n = oracle.n_samples
    order, steps = rng.integers(0, n, 40), rng.random(40)
    decays, shares = 1 - 0.3 * rng.random(40), rng.random(40)
    w = start = rng.standard_normal(oracle.n_params)
    total, mistakes = np.zeros_like(w), 0
    for s, step, decay, share in zip(order, steps, decays, shares, strict=True):
        row = slice(s, s + 1)
        worst, best = oracle.predict_augmented(w, row).code, oracle.impute(w, row).code
        move = oracle.features(best, np.ones(1), row) - oracle.features(worst, np.ones(1), row)
        mistakes += not np.array_equal(worst, best)
        w = decay * w + step * move
        total += share * w
    found = oracle.learn_online(start, order, steps, decays, shares, margin=1.0)
    assert np.allclose(found.w, w)
    assert np.allclose(found.total, total)
    assert found.mistakes == mistakes


def test_tiny_factors_of_decay_lose_nothing():
    oracle, _ = oracles(2)
    order, ones = np.zeros(50, dtype=int), np.ones(50)
    found = oracle.learn_online(np.ones(oracle.n_params), order, 0.1 * ones, 0.1 * ones, ones, margin=1.0)
    assert np.isfinite(found.w).all()
    assert np.isfinite(found.total).all()
    assert 0 < np.abs(found.w).max() < 10


def test_sparse_and_dense_features_give_one_model():
    from scipy import sparse

    X, y, _ = make_sequences()
    dense = LatentSVM(Chain(states=2), C=10, **quiet).fit(X, y)
    rows = [sparse.csr_array(x) for x in X]
    thin = LatentSVM(Chain(states=2), C=10, **quiet).fit(rows, y)
    assert np.isclose(dense.objective_, thin.objective_, rtol=1e-2)
    grouped = [LatentSVM(Chain(states=2), C=10, init="k-means", **quiet).fit(data, y) for data in (X, rows)]
    assert np.isclose(grouped[0].objective_, grouped[1].objective_, rtol=1e-2)


@pytest.mark.parametrize(
    ("states", "keyword"),
    [(0, "states=0"), ({"c": 2}, "'c'"), ({"a": -1}, "'a'"), ("two", "states='two'"), (10**6, "states")],
)
def test_wrong_numbers_of_states_are_refused(states, keyword):
    X, y, _ = make_sequences(0, 5)
    with pytest.raises((ValueError, TypeError), match=keyword):
        LatentSVM(Chain(states=states), **quiet).fit(X, y)


def test_wrong_hidden_states_are_refused():
    X, y = [np.ones((2, 1)), np.zeros((1, 1))], [["a", "b"], ["a"]]
    with pytest.raises(ValueError, match=r"hidden\[0\]\[1\].*2 to 3"):
        LatentSVM(Chain(states=2), **quiet).fit(X, y, hidden=[[0, 0], [1]])
    with pytest.raises(ValueError, match="hidden"):
        LatentSVM(Chain(states=2), **quiet).fit(X, y, hidden=[["x", "y"], ["z"]])


def test_warm_starts_need_sequences():
    with pytest.raises(CapabilityError, match="learn_online"):
        LatentSVM(Candidates(), init="warm", **quiet).fit([[[0.0], [1.0]], [[2.0]]], ["a", "b"])


def test_sequences_of_one_token():
    X = Ragged(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]] * 5), np.arange(21))
    y = [["a"], ["b"], ["a"], ["b"]] * 5
    for model in (LatentSVM(Chain(states=2), C=100, **quiet), HiddenCRF(Chain(states=2), C=100, **quiet)):
        assert model.fit(X, y).score(X, y) == 1.0


def test_stochastic_descent_finds_states_too():
    X, y, _ = make_sequences(0, 80)
    X_new, y_new, _ = make_sequences(1, 80)
    model = LatentSVM(Chain(states=2), C=60, solver=Subgradient(), **quiet).fit(X, y)
    assert model.score(X_new, y_new) > 0.95
    objectives = [line.objective for line in model.history_]
    assert model.objective_ == min(objectives)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "learner",
    [
        LatentSVM(Chain(states=2), C=60, solver=Subgradient(), max_iter=5, tol=1e-9, **quiet),
        LatentPerceptron(Chain(states=2), epochs=5, **quiet),
        StructuredSVM(Chain(), C=60, solver=Subgradient(), max_iter=5, **quiet),
    ],
)
def test_stochastic_fits_have_the_same_bits_resumed_and_with_threads(learner, tmp_path):
    X, y, _ = make_sequences(0, 30)
    whole = clone(learner).fit(X, y)
    assert np.array_equal(clone(learner).set_params(n_jobs=2).fit(X, y).coef_, whole.coef_)
    seen = []

    def stop(line):
        seen.append(line)
        return len(seen) == 3

    state = tmp_path / "fit.state"
    clone(learner).set_params(checkpoint=state, callbacks=[stop]).fit(X, y)
    resumed = clone(learner).set_params(checkpoint=state, resume=True).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_very_many_weights_choose_solvers_that_keep_few_vectors(monkeypatch):
    X, y, _ = make_sequences(0, 30)
    monkeypatch.setattr("tacit.solvers.bundle.MAX_PLANE_NUMBERS", 5)
    monkeypatch.setattr("tacit.learners.latent_svm.MAX_PLANE_NUMBERS", 5)
    assert type(StructuredSVM(Chain(), C=60, **quiet).fit(X, y).solver_) is FrankWolfe
    auto = LatentSVM(Chain(states=2), C=60, max_iter=4, **quiet).fit(X, y)
    asked = LatentSVM(Chain(states=2), C=60, max_iter=4, solver=Subgradient(), **quiet).fit(X, y)
    assert np.array_equal(auto.coef_, asked.coef_)


def test_averaging_has_a_lower_objective_than_the_last_point():
    X, y, _ = make_sequences(0, 60)
    problem = Chain(fit_intercept=True)
    oracle = problem.bind(X, y, problem.schema(X, y))
    task = Task(oracle, np.full(60, 1.0), oracle.impute(np.zeros(oracle.n_params)).code, Quadratic())
    solver = Subgradient()
    state = solver.init(task, WarmStart(), np.random.default_rng(0))
    for _ in range(10):
        state = solver.step(task, state)
    assert task.objective(state.mean) < task.objective(state.w)
    assert state.bound <= task.objective(state.mean)


def test_margin_of_the_perceptron_needs_single_samples():
    X, y, _ = make_sequences(0, 10)
    with pytest.raises(ValueError, match="batch_size"):
        LatentPerceptron(Chain(), margin=1.0, batch_size=5, **quiet).fit(X, y)
    with pytest.raises(CapabilityError, match="learn_online"):
        LatentPerceptron(Candidates(), margin=1.0, **quiet).fit([[[0.0], [1.0]], [[2.0]]], ["a", "b"])


@pytest.mark.parametrize("options", [{"states": 2}, {"states": {"a": 3}}, {"states": 3, "forbidden": [("a", "a")]}])
def test_the_best_few_taggings_agree_with_brute_force(options):
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((size, 2)) for size in (1, 2, 4, 5)]
    y = [(["a", "b"] * 3)[: len(x)] for x in X]
    model = LatentPerceptron(Chain(**options), epochs=1, **quiet).fit(X, y)
    model.coef_ = rng.standard_normal(model.coef_.size)
    oracle = model.problem.bind(X, None, model.schema_)
    unary, ways = oracle._unary(model.coef_, None), oracle._transition(model.coef_)
    tags, scores = model.predict_best(X, k=9)
    for i, first in enumerate(oracle.offsets[:-1]):
        rows = unary[first : oracle.offsets[i + 1]]
        best = {}
        for path in itertools.product(range(oracle.n_states), repeat=len(rows)):
            score = sum(rows[t, s] for t, s in enumerate(path)) + sum(ways[a, b] for a, b in itertools.pairwise(path))
            tagging = tuple("ab"[oracle.states.tag_of[s]] for s in path)
            best[tagging] = max(score, best.get(tagging, -np.inf))
        order = sorted((tagging for tagging in best if best[tagging] > -np.inf), key=best.get, reverse=True)[:9]
        assert [tuple(row) for row in tags[i]] == order
        assert np.allclose(scores[i], [best[tagging] for tagging in order])
    assert [row[0].tolist() for row in tags] == [row.tolist() for row in model.predict(X)]


def test_probabilities_of_tags_and_states_are_probabilities():
    X, y, _ = make_sequences(0, 30)
    model = HiddenCRF(Chain(states=2), C=10, **quiet).fit(X, y)
    assert np.allclose(model.predict_proba(X).values.sum(axis=1), 1)
    assert model.hidden_proba(X, y).values.shape == (sum(map(len, X)), 4)

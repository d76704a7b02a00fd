"""Entropies of taggings, and losses against completions of missing tags, compared with all taggings listed."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from tacit import DissimilaritySVM, HiddenCRF, LatentSVM, MinEntropySVM, Shards, StructuredSVM, load
from tacit.learners.descents.dissimilarity import Dissimilarity
from tacit.oracle import CapabilityError
from tacit.penalties import Quadratic
from tacit.problems import Chain
from tests.problems.test_chain_states import make_sequences

quiet = {"verbose": 0}


def with_gaps(y, step=3):
    return [[None if (i + t) % step == 0 else tag for t, tag in enumerate(tags)] for i, tags in enumerate(y)]


def bind(states=1, n=8, seed=0, gaps=3, **options):
    X, y, _ = make_sequences(seed, n)
    X, y = [x[:4] for x in X], [tags[:4] for tags in y]
    if gaps:
        y = with_gaps(y, gaps)
    problem = Chain(classes=["a", "b"], states=states, **options)
    return problem.bind(X, y, problem.schema(X, y))


def list_paths(oracle, w, i):
    """All paths of states of a sequence, their tags and scores."""
    tokens = slice(*oracle.offsets[i : i + 2])
    unary, pairs = oracle._unary(w, None)[tokens], oracle._transition(w)
    paths = np.array(list(itertools.product(range(oracle.n_states), repeat=len(unary))))
    scores = unary[np.arange(len(unary)), paths].sum(axis=1) + pairs[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    return paths, oracle.states.tag_of[paths], scores


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("states", [1, 2])
def test_slacks_with_missing_tags_agree_with_all_taggings(states, alpha):
    oracle = bind(states)
    w = np.random.default_rng(1).standard_normal(oracle.n_params)
    found = oracle.renyi_slacks(w, np.ones(oracle.n_samples), alpha)
    for i in range(oracle.n_samples):
        _, tags, scores = list_paths(oracle, w, i)
        known = oracle._true_labels(slice(i, i + 1))
        is_true = ((known < 0) | (known == tags)).all(axis=1)

        def score(among, scores=scores):
            s = scores[among]
            if alpha == 1:
                return float(np.exp(s - logsumexp(s)) @ s)
            return (logsumexp(alpha * s) - logsumexp(s)) / (alpha - 1)

        others = {tuple(row) for row in tags[~is_true]}
        wished = [((known >= 0) & (known != row)).sum() + score((tags == np.array(row)).all(axis=1)) for row in others]
        assert found.value[i] == pytest.approx(max(0.0, max(wished) - score(is_true)), abs=1e-9)
    assert found.bound == pytest.approx(found.value)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_slopes_with_missing_tags_agree_with_differences(alpha):
    oracle, rng = bind(2, fit_intercept=True, boundaries=True), np.random.default_rng(2)
    w, step = rng.standard_normal(oracle.n_params), 1e-6 * rng.standard_normal(oracle.n_params)
    coef = rng.random(oracle.n_samples)
    ahead, behind = (coef @ oracle.renyi_slacks(w + sign * step, coef, alpha).value for sign in (1, -1))
    assert (ahead - behind) / 2 == pytest.approx(oracle.renyi_slacks(w, coef, alpha).features @ step, rel=1e-4)


def test_a_search_that_ends_early_gives_bounds(monkeypatch):
    """Many states that nearly tie: the best paths are far above the entropies, so that bounds stay above values."""
    oracle = bind(6, gaps=0)
    w = 0.3 * np.random.default_rng(3).standard_normal(oracle.n_params)
    whole = oracle.renyi_slacks(w, np.ones(oracle.n_samples), 0.3)
    monkeypatch.setattr(type(oracle), "first_visited", 1)
    monkeypatch.setattr(type(oracle), "most_visited", 1)
    early = oracle.renyi_slacks(w, np.ones(oracle.n_samples), 0.3)
    assert (early.bound > early.value + 1e-6).any()
    assert (early.value <= whole.value + 1e-9).all()
    assert (whole.value <= early.bound + 1e-9).all()


def test_without_hidden_states_it_is_the_structured_svm():
    X, y, _ = make_sequences(0, 60)
    exact = StructuredSVM(Chain(), C=60, tol=1e-5, **quiet).fit(X, y)
    model = MinEntropySVM(Chain(), alpha=2.0, C=60, tol=1e-5, **quiet).fit(X, y)
    assert model.inference_gap_ == 0
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-3)


def test_order_infinity_is_the_latent_svm():
    X, y, _ = make_sequences(0, 60)
    settings = {"C": 60, "random_state": 0, **quiet}
    one = MinEntropySVM(Chain(states=2), alpha=np.inf, **settings).fit(X, y)
    other = LatentSVM(Chain(states=2), **settings).fit(X, y)
    assert one.objective_ == pytest.approx(other.objective_, rel=0.01)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_states_are_found_by_entropies(alpha, tmp_path):
    X, y, _ = make_sequences(0, 80)
    X_new, y_new, _ = make_sequences(1, 80)
    model = MinEntropySVM(Chain(states=2), alpha=alpha, C=60, **quiet).fit(X, with_gaps(y, 5))
    assert model.score(X_new, y_new) > 0.95
    assert model.inference_gap_ >= 0
    model.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    assert again.predict(X_new).values.tolist() == model.predict(X_new).values.tolist()


def test_entropies_have_the_same_bits_with_threads():
    X, y, _ = make_sequences(0, 60)
    one, two = (MinEntropySVM(Chain(states=2), C=60, n_jobs=jobs, **quiet).fit(X, y) for jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)


def test_what_entropies_of_chains_lack_is_refused():
    X, y, _ = make_sequences(0, 10)
    for params, keyword in (
        ({"rescaling": "slack"}, "margin"),
        ({"entropy": "havrda-charvat"}, "Rényi"),
        ({"entropy": "rao"}, "pair|table"),
        ({"solver": "cccp", "alpha": 2.0}, "lbfgs"),
    ):
        with pytest.raises(CapabilityError, match=keyword):
            MinEntropySVM(Chain(states=2), **params, **quiet).fit(X, y)
    model = MinEntropySVM(Chain(states=2), **quiet).fit(X, y)
    with pytest.raises(CapabilityError, match="renyi_scores"):
        model.label_entropy(X)


# Losses against completions of missing tags


@pytest.mark.parametrize("loss", ["hamming", [[0.0, 2.0], [0.5, 0.0]]], ids=["hamming", "costs"])
@pytest.mark.parametrize("states", [1, 2])
def test_losses_against_completions_agree_with_all_taggings(states, loss):
    oracle, rng = bind(states, loss=loss), np.random.default_rng(4)
    theta, code = rng.standard_normal((2, oracle.n_params))
    posterior, code = oracle.hidden_posterior(theta), oracle.predict(code).code
    mean = oracle.measured_against(posterior=posterior)
    imputed = oracle.measured_against(oracle.impute(theta).code)
    diversity, slope = oracle.diversity(posterior)
    losses = oracle.losses_of(code).reshape(-1, oracle.n_states)
    costs = np.array([[0.0, 1.0], [1.0, 0.0]] if loss == "hamming" else loss)
    for i in range(oracle.n_samples):
        row, tokens = slice(i, i + 1), slice(*oracle.offsets[i : i + 2])
        paths, tags, scores = list_paths(oracle, theta, i)
        known = oracle._true_labels(row)
        scores = np.where(((known < 0) | (known == tags)).all(axis=1), scores, -np.inf)
        chances = np.exp(scores - logsumexp(scores))
        own = costs[tags, oracle.states.tag_of[code[tokens]]].sum(axis=1)
        assert mean.loss(code[tokens], row)[0] == pytest.approx(chances @ own)
        assert imputed.loss(code[tokens], row)[0] == pytest.approx(own[np.argmax(scores)])
        assert losses[tokens][np.arange(len(known)), paths].sum(axis=1) == pytest.approx(own)
        pairs = costs[tags[:, None], tags[None]].sum(axis=2)
        assert diversity[i] == pytest.approx(chances @ pairs @ chances)
        expected = (pairs + pairs.T) @ chances
        assert slope.reshape(losses.shape)[tokens][np.arange(len(known)), paths].sum(axis=1) == pytest.approx(expected)


@pytest.mark.parametrize("states", [1, 2])
def test_slope_of_theta_agrees_with_differences(states):
    oracle, rng = bind(states, fit_intercept=True).exact(), np.random.default_rng(5)
    descent = Dissimilarity(
        oracle, rng.random(oracle.n_samples), Quadratic(), lambda task: None, 1e-3, 10, conditional=oracle, beta=0.3
    )
    w, theta = rng.standard_normal((2, oracle.n_params))
    step = 1e-6 * rng.standard_normal(oracle.n_params)
    ahead, behind = (descent.theta_objective(w, theta + sign * step)[0] for sign in (1, -1))
    assert (ahead - behind) / 2 == pytest.approx(descent.theta_objective(w, theta)[1] @ step, rel=1e-4)


def test_dissimilarity_never_rises_and_completes_tags():
    X, y, _ = make_sequences(0, 80)
    model = DissimilaritySVM(Chain(states=2), C=60, **quiet).fit(X, with_gaps(y, 5))
    totals = model.objective_parts_.sum(axis=1)
    assert (np.diff(totals[-3:]) <= 1e-9 * totals[0]).all()
    assert model.theta_.any()
    chances = model.conditional_proba(X, with_gaps(y, 5))
    assert chances.values.shape == (sum(map(len, X)), 2)
    assert np.allclose(chances.values.sum(axis=1), 1)
    right = np.array(["a", "b"])[chances.values.argmax(axis=1)] == np.concatenate(y)
    assert right.mean() > 0.9


def test_dissimilarity_of_complete_tags_is_the_latent_svm():
    X, y, _ = make_sequences(0, 40)
    settings = {"C": 60, "random_state": 0, **quiet}
    one, other = (kind(Chain(states=2), **settings).fit(X, y) for kind in (DissimilaritySVM, LatentSVM))
    assert np.array_equal(one.coef_, other.coef_)
    assert (one.conditional_proba(X, y).values.max(axis=1) == 1).all()


def test_dissimilarity_has_the_same_bits_with_threads_and_shards(tmp_path):
    X, y, _ = make_sequences(0, 30)
    settings = {"C": 20, "init": "weights", "max_iter": 4, "random_state": 0, **quiet}
    whole = DissimilaritySVM(Chain(), **settings)
    with pytest.warns(UserWarning, match="not converged"):
        whole.fit(X, with_gaps(y))
    shards = Shards.open([lambda: X[:11], lambda: X[11:]], spool=tmp_path)
    for data, jobs in ((X, 2), (shards, 1)):
        with pytest.warns(UserWarning, match="not converged"):
            other = DissimilaritySVM(Chain(), n_jobs=jobs, **settings).fit(data, with_gaps(y))
        assert np.array_equal(whole.coef_, other.coef_)
        assert np.array_equal(whole.theta_, other.theta_)


def test_a_conditional_of_sequences_has_the_features_of_the_problem():
    X, y, _ = make_sequences(0, 20)
    with pytest.raises(CapabilityError, match="known_labels"):
        DissimilaritySVM(Chain(), conditional=Chain(boundaries=True), **quiet).fit(X, with_gaps(y))


def test_hidden_crf_of_gaps_is_unchanged_by_posteriors():
    """`hidden_proba` of sequences stays a table of tags, and does not become a list of states."""
    X, y, _ = make_sequences(0, 20)
    model = HiddenCRF(Chain(), C=10, **quiet).fit(X, with_gaps(y))
    assert model.hidden_proba(X, with_gaps(y)).values.shape == (sum(map(len, X)), 2)


def test_what_has_no_score_per_tagging_says_so():
    X, y = [np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]]
    model = MinEntropySVM(Chain(), C=1, verbose=0).fit(X, y)
    with pytest.raises(CapabilityError, match="predict_best"):
        model.label_proba(X)
    with pytest.raises(CapabilityError, match="cv"):
        MinEntropySVM(Chain(), alpha="learn", cv=2, verbose=0).fit(X * 3, y * 3)

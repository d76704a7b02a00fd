"""The hidden CRF is the model that it is said to be: against scikit-learn, python-crfsuite, and enumeration."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import tacit
from tacit import HiddenCRF, Ragged
from tacit.oracle import CapabilityError
from tacit.problems import Candidates, Chain, Motif, Multiclass, PerSample
from tacit.runtime import Status, parallel
from tacit.runtime.blocks import smallest_blocks


@pytest.fixture
def sequences():
    """Thirty sequences of two to six tokens, three tags that follow the features."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 7, 30)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.standard_normal((offsets[-1], 3))
    return Ragged(values, offsets), Ragged(np.argmax(values + 0.5 * rng.standard_normal(values.shape), axis=1), offsets)


def test_on_classes_it_is_multinomial_logistic_regression(digits):
    X, y = digits[0][:300], digits[1][:300]
    model = HiddenCRF(Multiclass(fit_intercept=False), C=20.0, tol=1e-13).fit(X, y)
    peer = LogisticRegression(C=20.0 / len(y), fit_intercept=False, tol=1e-9, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.weights_["weights"], peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)
    assert model.bound_ <= model.objective_ <= model.bound_ * (1 + 1e-9)


@pytest.mark.parametrize("C", [5.0, 60.0])
def test_on_chains_it_is_a_linear_chain_crf(sequences, C):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = sequences
    X = X.with_values((X.values > 0).astype(float))  # it leaves out features whose sum is negative
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    every = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({"c2": len(y) / (2 * C), "max_iterations": 1000, "epsilon": 1e-7, "delta": 1e-12, **every})
    for x, tags in zip(X, y, strict=True):
        items = [{f"f{j}": float(value) for j, value in enumerate(row)} for row in x]
        trainer.append(pycrfsuite.ItemSequence(items), [str(tag) for tag in tags])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train("")
    theirs = C / len(y) * trainer.logparser.last_iteration["loss"]
    model = HiddenCRF(Chain(), C=C, tol=1e-10).fit(X, y)
    assert model.objective_ == pytest.approx(theirs, rel=1e-4)


def test_missing_tags_are_summed_over(sequences):
    X, y = sequences
    X, y = X[:6], y[:6]
    tags = [list(row) for row in y]
    for row in tags:
        row[1] = None
    model = HiddenCRF(Chain(), C=5.0, tol=1e-8, init="zero").fit(X, tags)
    emission, transition = model.weights_["emission"], model.weights_["transition"]

    def score(x, path):
        return sum(emission[t] @ row for t, row in zip(path, x, strict=True)) + sum(
            transition[a, b] for a, b in itertools.pairwise(path)
        )

    loss = 0.0
    for x, row in zip(X, tags, strict=True):
        paths = list(itertools.product(range(3), repeat=len(row)))
        fits = [all(tag is None or tag == t for tag, t in zip(row, path, strict=True)) for path in paths]
        scores = np.array([score(x, path) for path in paths])
        loss += logsumexp(scores) - logsumexp(scores[fits])
    assert model.objective_ == pytest.approx(0.5 * model.coef_ @ model.coef_ + 5.0 / 6 * loss, rel=1e-9)
    posterior = model.hidden_proba(X, tags)
    assert posterior[0].shape == (len(tags[0]), 3)
    np.testing.assert_allclose(posterior.values.sum(axis=1), 1.0)
    assert posterior[0][0].max() == 1.0
    assert posterior[0][1].max() < 1.0
    np.testing.assert_allclose(model.predict_proba(X).values.sum(axis=1), 1.0)


def test_probabilities_are_those_of_enumeration(bags):
    X, y, _ = bags
    model = HiddenCRF(Candidates(), C=20.0).fit(X, y)
    W, b = model.weights_["weights"], model.weights_["intercept"]
    scores = [W @ bag.T + b[:, None] for bag in X]
    np.testing.assert_allclose(model.predict_proba(X), [softmax([logsumexp(row) for row in s]) for s in scores])
    labels = np.searchsorted(model.classes_, y)
    for given, places in ((y, labels), (None, np.searchsorted(model.classes_, model.predict(X)))):
        found = model.hidden_proba(X, given)
        for i, place in enumerate(places):
            np.testing.assert_allclose(found[i], softmax(scores[i][place]))
    with pytest.raises(ValueError, match="label"):
        model.hidden_proba(X[:1], ["unicorn"])


def test_known_hidden_values_are_honoured_and_make_it_convex(bags):
    X, y, hidden = bags
    model = HiddenCRF(Candidates(), C=20.0, tol=1e-8, n_init=3).fit(X, y, hidden=hidden)
    assert len(model.runs_) == 1
    assert (model.hidden_ == hidden).all()
    assert model.gap_ <= 1e-7 * model.objective_
    partly = np.where(np.arange(len(y)) % 2, hidden, -1)
    assert (HiddenCRF(Candidates(), C=20.0).fit(X, y, hidden=partly).hidden_[1::2] == hidden[1::2]).all()


def test_em_never_lowers_the_likelihood_and_ends_where_lbfgs_does(bags):
    X, y, _ = bags
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        em = HiddenCRF(Candidates(), C=20.0, method="em", tol=1e-9, max_iter=300).fit(X, y)
    falls = -np.diff([line.objective for line in em.history_])
    assert (falls >= -1e-9).all()
    descent = HiddenCRF(Candidates(), C=20.0, tol=1e-10).fit(X, y)
    assert em.objective_ == pytest.approx(descent.objective_, rel=1e-4)


def test_hard_em_takes_the_best_hidden_value(bags):
    X, y, hidden = bags
    model = HiddenCRF(Candidates(), C=50.0, method="hard-em").fit(X, y)
    soft = HiddenCRF(Candidates(), C=50.0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert soft.objective_ < model.objective_ < model.history_[0].objective + 1e-9
    assert (model.hidden_ == hidden).mean() > 0.8


def test_one_hidden_value_makes_it_logistic_regression(digits):
    X, y = digits[0][:100], digits[1][:100]
    bags = Ragged(X, np.arange(101))
    alone = HiddenCRF(Multiclass(), C=10.0, tol=1e-10).fit(X, y)
    for method in ("lbfgs", "em", "hard-em"):
        model = HiddenCRF(Candidates(), C=10.0, method=method, tol=1e-10).fit(bags, y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-6), method


def test_both_rules_of_prediction_exist(bags):
    X, y, _ = bags
    model = HiddenCRF(Candidates(), C=1.0).fit(X, y)
    best = HiddenCRF(Candidates(), C=1.0, rule="max").fit(X, y)
    assert np.array_equal(model.coef_, best.coef_)
    assert (model.decision_function(X) > best.decision_function(X) - 1e-12).all()


def test_starts_differ_and_the_best_is_kept(bags):
    X, y, _ = bags
    model = HiddenCRF(Candidates(), C=100.0, n_init=4, init="hidden").fit(X, y)
    ends = [run.objective for run in model.runs_]
    assert len(ends) == 4
    assert model.objective_ == min(ends)
    assert len({run.history[0].objective for run in model.runs_}) == 4


def test_it_resumes_to_the_same_bits(bags, tmp_path):
    X, y, _ = bags
    for method, n_steps in (("lbfgs", 7), ("em", 2)):
        settings = {"C": 20.0, "method": method, "n_init": 2, "init": "hidden", "tol": 1e-6}
        whole = HiddenCRF(Candidates(), **settings).fit(X, y)
        keeping = {"checkpoint": tmp_path / method, "resume": True}
        count = itertools.count()

        def stop(line, count=count, n_steps=n_steps):
            return next(count) == n_steps

        with pytest.warns(ConvergenceWarning, match="callback"):
            HiddenCRF(Candidates(), **settings, **keeping, callbacks=[stop]).fit(X, y)
        resumed = HiddenCRF(Candidates(), **settings, **keeping).fit(X, y)
        assert np.array_equal(resumed.coef_, whole.coef_)
        assert [len(run.history) for run in resumed.runs_] == [len(run.history) for run in whole.runs_]


def test_it_goes_through_a_grid_search_and_a_file(bags, tmp_path):
    X, y, _ = bags
    search = GridSearchCV(HiddenCRF(Candidates()), {"C": [1.0, 30.0], "rule": ["sum", "max"]}, cv=2).fit(X, y)
    model = search.best_estimator_
    model.save(tmp_path / "model")
    loaded = tacit.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.history_ == model.history_


def test_a_path_over_C_starts_warm(bags):
    X, y, _ = bags
    models = tacit.path(HiddenCRF(Candidates(), tol=1e-6), X, y, [1.0, 2.0, 4.0])
    cold = HiddenCRF(Candidates(), C=4.0, tol=1e-6).fit(X, y)
    assert models[2].objective_ == pytest.approx(cold.objective_, rel=1e-3)
    assert models[2].n_iter_ < cold.n_iter_


def test_bad_parameters_and_problems_are_refused(bags):
    X, y, _ = bags
    for params, keyword in (
        ({"C": 0.0}, "C"),
        ({"tol": np.nan}, "tol"),
        ({"method": "magic"}, "method"),
        ({"rule": "mean"}, "rule"),
        ({"init": "best"}, "init"),
        ({"n_init": 0}, "n_init"),
    ):
        with pytest.raises(ValueError, match=keyword):
            HiddenCRF(Candidates(), **params).fit(X, y)
    problem = PerSample(lambda x, y: [x * y], lambda x, w: 1, augmented=lambda x, t, w: -t)
    with pytest.raises(CapabilityError, match="expectations"):
        HiddenCRF(problem).fit([1.0, 2.0], [-1, 1])


def test_equal_scores_give_equal_probabilities():
    X, y = Ragged(np.zeros((6, 2)), [0, 3, 6]), ["a", "b"]
    model = HiddenCRF(Candidates(fit_intercept=False)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), 0.5)
    np.testing.assert_allclose(model.hidden_proba(X).values, 1 / 3)


def test_samples_of_no_weight_can_fill_a_whole_block(bags):
    """A block of rows whose coefficients are all zero has no features to add."""
    X, y, _ = bags
    problem = Candidates()
    oracle = problem.bind(X, y, problem.schema(X, y))
    coef = np.where(np.arange(len(y)) < 20, 0.0, 1.0)
    w = np.linspace(-1, 1, oracle.n_params)
    with smallest_blocks(), parallel(oracle, 2) as shards:
        found = shards.expectations(w, free=coef).features
    np.testing.assert_allclose(found, oracle.expectations(w, free=coef).features)


def test_windows_of_motifs_keep_their_places():
    """Sequences are turned around inside; probabilities come back in the user's order."""
    rng = np.random.default_rng(0)
    letters = np.array(list("ACGT"))
    X = ["".join(rng.choice(letters, 12)) for _ in range(40)]
    y = np.arange(40) % 2
    places = rng.integers(0, 8, 40)
    X = [x[:p] + "TTGCA" + x[p + 5 :] if label else x for x, label, p in zip(X, y, places, strict=True)]
    model = HiddenCRF(Motif(5, background=1, strands="both"), C=50.0).fit(X, y)
    found = model.hidden_proba(X, y)
    for i in np.flatnonzero(y == 1):
        start, strand = model.impute(X, y)[i]
        assert found[i][2 * start + strand] == pytest.approx(found[i].max())

"""Min-entropy models: their scores, objective, solvers, and what they reduce to."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import tacit
from tacit import LatentSVM, MinEntropySVM, Ragged, SelfPaced, StructuredSVM
from tacit.learners.descents.entropy import EntropyMargins
from tacit.oracle import CapabilityError
from tacit.oracle.renyi import renyi_cells, renyi_weights
from tacit.problems import Candidates, Motif, Multiclass, Regions
from tacit.runtime import Status

ORDERS = (0.25, 0.999, 1.0, 1.001, 2.0, 1000.0, math.inf)


def renyi(scores, alpha):
    return renyi_cells(np.atleast_2d(scores), np.array([0, len(scores)]), alpha).values[0, 0]


@pytest.fixture
def samples(bags):
    X, y, _ = bags
    problem = Candidates()
    return problem.bind(X, y, problem.schema(X, y))


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_scores_are_continuous_through_one(scale):
    scores = scale * np.random.default_rng(0).standard_normal(9)
    middle = renyi(scores, 1.0)
    assert middle == pytest.approx(softmax(scores) @ scores, rel=1e-12)
    for step in (1e-14, 1e-12, 1e-10):
        assert renyi(scores, 1 - step) == pytest.approx(middle, abs=1e-9 * scale)
        assert renyi(scores, 1 + step) == pytest.approx(middle, abs=1e-9 * scale)
    edge = [renyi(scores, alpha) for alpha in (1.01 - 1e-12, 1.01 + 1e-12, 0.99 - 1e-12, 0.99 + 1e-12)]
    assert edge[0] == pytest.approx(edge[1], abs=1e-9 * scale)
    assert edge[2] == pytest.approx(edge[3], abs=1e-9 * scale)


@pytest.mark.parametrize("alpha", [1e-6, *ORDERS, 1e9])
def test_scores_are_finite_and_between_the_lowest_and_the_highest(alpha):
    for scale in (0.0, 1.0, 1e4):
        scores = scale * np.random.default_rng(1).standard_normal(7)
        value = renyi(scores, alpha)
        assert scores.min() - 1e-9 * scale - logsumexp(np.zeros(7)) <= value <= scores.max() + 1e-9
        weights = renyi_weights(renyi_cells(scores[None], np.array([0, 7]), alpha), np.array([0, 7]), np.ones((1, 1)))
        assert weights.sum() == pytest.approx(1.0)


def test_scores_do_not_change_when_every_hidden_value_is_there_twice():
    scores = np.array([0.3, -1.0, 2.0])
    for alpha in ORDERS:
        assert renyi(np.tile(scores, 2), alpha) == pytest.approx(renyi(scores, alpha), abs=1e-12)
        assert renyi(np.full(4, 1.5), alpha) == pytest.approx(1.5)
    assert renyi(scores, 1e-9) == pytest.approx(logsumexp(scores) - np.log(3), abs=1e-6)


@pytest.mark.parametrize("alpha", ORDERS)
def test_the_gradient_is_that_of_differences(samples, alpha):
    rng = np.random.default_rng(0)
    margins = EntropyMargins(samples, rng.random(samples.n_samples), alpha)
    w, step = rng.standard_normal(samples.n_params), 1e-6 * rng.standard_normal(samples.n_params)
    rise = (margins(w + step)[0] - margins(w - step)[0]) / 2
    assert margins(w)[1] @ step == pytest.approx(rise, rel=1e-5)


def test_the_entropy_decomposes_as_in_the_thesis(bags):
    """Kumar (2013), eq. 3.3: the entropy of the generalised distribution is that of P(h | y), minus log P(y)."""
    X, y, _ = bags
    for alpha in (0.25, 1.0, 2.0):
        model = MinEntropySVM(Candidates(), alpha=alpha, C=5.0).fit(X, y)
        W, b = model.weights_["weights"], model.weights_["intercept"]
        for i, bag in enumerate(X[:5]):
            scores = W @ bag.T + b[:, None]
            P = np.exp(scores - logsumexp(scores))
            for k, row in enumerate(P):
                given = row / row.sum()
                if alpha == 1:
                    entropy = -(given @ np.log(given))
                else:
                    entropy = np.log((given**alpha).sum()) / (1 - alpha)
                assert model.label_entropy(X[i : i + 1])[0, k] == pytest.approx(entropy - np.log(row.sum()))
        assert (model.predict(X) == model.classes_[np.argmin(model.label_entropy(X), axis=1)]).all()
        probabilities = model.label_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("alpha", ORDERS)
def test_the_slack_bounds_the_loss(samples, alpha):
    """Kumar (2013), proposition 1, at weights of any kind."""
    for seed in range(5):
        w = np.random.default_rng(seed).standard_normal(samples.n_params)
        slack = samples.renyi_slacks(w, np.ones(samples.n_samples), alpha).value
        labels = np.argmax(samples.renyi_scores(w, alpha), axis=1)
        loss = samples.loss(samples.best_under(w, labels).code)
        assert (slack >= loss - 1e-12).all()


def test_infinite_order_has_the_objective_of_the_latent_svm(bags, samples):
    """Kumar (2013), proposition 2."""
    X, y, _ = bags
    n = samples.n_samples
    for seed in range(3):
        w = np.random.default_rng(seed).standard_normal(samples.n_params)
        latent = samples.predict_augmented(w).value - samples.impute(w).value
        np.testing.assert_allclose(samples.renyi_slacks(w, np.ones(n), math.inf).value, latent, atol=1e-12)
    model = MinEntropySVM(Candidates(), alpha=math.inf, C=20.0, n_init=3, init="hidden").fit(X, y)
    latent = LatentSVM(Candidates(), C=20.0, n_init=3, init="hidden").fit(X, y)
    assert model.objective_ == pytest.approx(latent.objective_, rel=0.05)
    assert (np.diff([line.objective for line in model.history_]) <= 1e-9).all()


@pytest.mark.parametrize("alpha", [0.25, 1.0, 1000.0])
def test_solvers_agree_from_one_start(bags, alpha):
    X, y, _ = bags
    ends = {}
    for solver in ("lbfgs", "trust-region", "cccp"):
        if alpha == 1 and solver == "cccp":
            continue
        ends[solver] = MinEntropySVM(
            Candidates(), alpha=alpha, C=10.0, solver=solver, tol=1e-5, init="zero", max_iter=3000
        ).fit(X, y)
        falls = -np.diff([line.objective for line in ends[solver].history_])
        assert (falls >= -1e-9).all(), solver
    objectives = [model.objective_ for model in ends.values()]
    assert max(objectives) - min(objectives) <= 1e-4 * max(objectives)


@pytest.mark.parametrize("alpha", [0.25, 1.0, math.inf])
def test_one_hidden_value_makes_it_a_structured_svm(digits, alpha):
    X, y = digits[0][:80], digits[1][:80]
    svm = StructuredSVM(Multiclass(fit_intercept=False), C=5.0, tol=1e-5).fit(X, y)
    model = MinEntropySVM(Multiclass(fit_intercept=False), alpha=alpha, C=5.0, tol=1e-4).fit(X, y)
    assert model.objective_ == pytest.approx(svm.objective_, abs=5.0 * 1e-4)


def test_known_hidden_values_are_honoured(bags):
    X, y, hidden = bags
    partly = np.where(np.arange(len(y)) % 2, hidden, -1)
    for alpha in (0.5, math.inf):
        model = MinEntropySVM(Candidates(), alpha=alpha, C=20.0).fit(X, y, hidden=partly)
        assert (model.hidden_[1::2] == hidden[1::2]).all()
    oracle = Candidates().bind(X, y, model.schema_, hidden=hidden)
    W, b = model.weights_["weights"], model.weights_["intercept"]
    slack = oracle.renyi_slacks(model.coef_, np.ones(len(y)), 1.0).value
    labels = np.searchsorted(model.classes_, y)
    for i, bag in enumerate(X):
        scores = W @ bag.T + b[:, None]
        values = [1 + softmax(row) @ row for row in scores]
        values[labels[i]] = -np.inf
        assert slack[i] == pytest.approx(max(0.0, max(values) - scores[labels[i], hidden[i]]))


@pytest.mark.parametrize("alpha", [0.5, math.inf])
def test_self_paced_learning_begins_with_easy_samples_and_ends_with_all(bags, alpha):
    X, y, _ = bags
    model = MinEntropySVM(Candidates(), alpha=alpha, C=20.0, pace=SelfPaced(), init="hidden").fit(X, y)
    sizes = [line.samples_in for line in model.history_]
    assert min(sizes) < len(y)
    assert sizes[-1] == len(y)
    plain = MinEntropySVM(Candidates(), alpha=alpha, C=20.0, init="hidden").fit(X, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=0.2)


def test_cross_validation_chooses_order_and_C(bags):
    X, y, _ = bags
    model = MinEntropySVM(Candidates(), alpha="cv", alphas=[0.5, 1.0, math.inf], C=[1.0, 30.0], cv=2).fit(X, y)
    assert [(point.alpha, point.C) for point in model.curve_] == [
        (alpha, C) for C in (1.0, 30.0) for alpha in (0.5, 1.0, math.inf)
    ]
    best = max(point.score for point in model.curve_)
    assert any((model.alpha_, model.C_, best) == (point.alpha, point.C, point.score) for point in model.curve_)
    again = MinEntropySVM(Candidates(), alpha=model.alpha_, C=model.C_).fit(X, y)
    assert np.array_equal(again.coef_, model.coef_)


RESUMED = [
    {"alpha": 0.5},
    {"alpha": math.inf},
    {"alpha": 2.0, "solver": "trust-region"},
    {"alpha": 2.0, "solver": "cccp"},
    {"alpha": 0.5, "pace": SelfPaced()},
]


@pytest.mark.parametrize("settings", RESUMED, ids=str)
def test_it_resumes_to_the_same_bits(bags, tmp_path, settings):
    X, y, _ = bags
    settings = {"C": 20.0, "n_init": 2, "init": "hidden", "tol": 1e-2, **settings}
    whole = MinEntropySVM(Candidates(), **settings).fit(X, y)
    keeping = {"checkpoint": tmp_path / "state", "resume": True}
    count = itertools.count()
    n_steps = len(whole.runs_[0].history) + 1
    with pytest.warns(ConvergenceWarning, match="callback"):
        MinEntropySVM(Candidates(), **settings, **keeping, callbacks=[lambda line: next(count) == n_steps]).fit(X, y)
    resumed = MinEntropySVM(Candidates(), **settings, **keeping).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert resumed.objective_ == whole.objective_


def test_it_goes_through_a_grid_search_and_a_file(bags, tmp_path):
    X, y, _ = bags
    search = GridSearchCV(MinEntropySVM(Candidates()), {"alpha": [0.5, math.inf]}, cv=2).fit(X[:20], y[:20])
    model = MinEntropySVM(Candidates(), alpha="cv", alphas=[1.0, math.inf], cv=2).fit(X, y)
    for one in (search.best_estimator_, model):
        one.save(tmp_path / "model")
        loaded = tacit.load(tmp_path / "model")
        assert np.array_equal(loaded.label_entropy(X), one.label_entropy(X))
        assert loaded.curve_ == one.curve_
        assert (loaded.hidden_proba(X, y).values == one.hidden_proba(X, y).values).all()


def test_a_label_without_any_hidden_value_is_refused(samples):
    class Lacking(type(samples)):
        def scores(self, w, rows=None):
            scores = super().scores(w, rows).copy()
            scores[0] = -np.inf
            return scores

    lacking = object.__new__(Lacking)
    lacking.__dict__.update(samples.__dict__)
    with pytest.raises(ValueError, match="hidden"):
        lacking.renyi_slacks(np.zeros(samples.n_params), np.ones(samples.n_samples), 1.0)


def test_scores_that_overflow_are_refused(samples):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="finite"):
        samples.renyi_slacks(np.full(samples.n_params, 1e308), np.ones(samples.n_samples), 0.5)


def test_bad_parameters_and_problems_are_refused(bags):
    X, y, _ = bags
    for params, keyword in (
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"alpha": "auto"}, "auto"),
        ({"alpha": "cv", "alphas": [0.5, -1]}, "alphas"),
        ({"C": [1.0, 2.0]}, "cv"),
        ({"C": math.inf}, "C"),
        ({"solver": "newton"}, "solver"),
        ({"solver": "cccp", "alpha": 1.0}, "0.1"),
        ({"solver": "trust-region", "pace": SelfPaced()}, "pace"),
    ):
        with pytest.raises(ValueError, match=keyword):
            MinEntropySVM(Candidates(), **params).fit(X, y)
    with pytest.raises(TypeError, match="pace"):
        MinEntropySVM(Candidates(), pace=3).fit(X, y)
    regions = Regions().example(np.random.default_rng(0))
    with pytest.raises(CapabilityError, match="renyi_slacks"):
        MinEntropySVM(Regions()).fit(regions.X, regions.y)
    with pytest.raises(CapabilityError, match="loss='exact'"):
        MinEntropySVM(Candidates(loss="exact")).fit(X, y)
    with pytest.raises(CapabilityError, match="depends on the hidden"):
        MinEntropySVM(Candidates(loss="exact")).fit(X, y, hidden=[0] * len(y))
    model = MinEntropySVM(Candidates(), alpha=math.inf).fit(X, y)
    with pytest.raises(ValueError, match="alpha=inf"):
        model.label_proba(X)


def test_equal_scores_are_learned_from_without_a_nan():
    X, y = Ragged(np.zeros((6, 2)), [0, 3, 6]), ["a", "b"]
    for alpha in ORDERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MinEntropySVM(Candidates(fit_intercept=False), alpha=alpha).fit(X, y)
        assert not model.coef_.any()
        assert np.isfinite(model.label_entropy(X)).all()


@pytest.mark.parametrize(("solver", "alpha"), [("trust-region", 0.25), ("cccp", 0.25)])
def test_features_that_leave_no_digits_are_never_called_converged(solver, alpha):
    """Features of 9e18: dual methods find no point better than zero, and cannot tell how good it is."""
    X = Ragged(9.2e18 * np.array([[-0.5], [-1.0], [-1.0], [-1.0], [-0.9], [0.4], [0.3]]), [0, 2, 5, 7])
    model = MinEntropySVM(Candidates(fit_intercept=False), alpha=alpha, solver=solver, C=89.0, max_iter=4)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, [1, 0, 1])
    assert model.status_ is not Status.CONVERGED
    assert np.isfinite(model.objective_)


def test_motifs_are_found_by_every_order():
    rng = np.random.default_rng(0)
    letters = np.array(list("ACGT"))
    X = ["".join(rng.choice(letters, 15)) for _ in range(60)]
    y = np.arange(60) % 2
    X = [x[:6] + "TTGCAT" + x[12:] if label else x for x, label in zip(X, y, strict=True)]
    for alpha in (0.25, math.inf):
        model = MinEntropySVM(Motif(6, background=1), alpha=alpha, C=50.0).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert model.score(X, y) == 1.0
        assert (model.hidden_[y == 1] == 6).mean() > 0.9

"""Rules of multiple-instance learning."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import tacit
from tacit import HiddenCRF, LatentSVM, MinEntropySVM
from tacit.oracle import CapabilityError, EnumerableOracle, Example, LossTable, Problem, Schema
from tacit.problems import Bags
from tacit.testing import check_problem


def planted(n=60, size=5, shift=4.0, seed=0):
    rng = np.random.default_rng(seed)
    X, y, witness = rng.standard_normal((n, size, 3)), np.arange(n) % 2, rng.integers(size, size=n)
    X[np.arange(n), witness, 0] += shift * y
    return X, y, witness


@pytest.mark.parametrize("rule", ["witness", "instances"])
def test_the_smooth_form_has_the_likelihood_of_its_definition(rule):
    X, y, _ = planted(12, 3, 1.0)
    model = HiddenCRF(Bags(rule=rule), C=5, tol=1e-9).fit(X, y)

    def objective(w):
        s = X @ w[:3] + w[3]
        odds = np.exp(s).sum(axis=1) if rule == "witness" else np.prod(1 + np.exp(s), axis=1) - 1
        return 0.5 * w @ w - 5 / 12 * np.where(y == 1, np.log(odds / (1 + odds)), -np.log(1 + odds)).sum()

    best = minimize(objective, model.coef_, method="BFGS").fun
    assert model.objective_ == pytest.approx(objective(model.coef_), rel=1e-9)
    assert model.objective_ <= best + 1e-4


def test_mi_svm_has_hinge_losses_of_the_best_instance():
    X, y, _ = planted(20, 4, 2.0)
    model = LatentSVM(Bags(), C=10).fit(X, y)
    margins = (2 * y - 1) * (X @ model.coef_[:3] + model.coef_[3]).max(axis=1)
    expected = 0.5 * model.coef_ @ model.coef_ + 10 / 20 * np.maximum(0, 1 - margins).sum()
    assert model.objective_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.003, 3.0, math.inf])
def test_renyi_scores_of_sets_of_instances_are_those_of_their_definition(alpha):
    X, y, _ = planted(8, 3, 1.0)
    hidden = [[0, 2] if label else [] for label in y[:2]] + [1 if label else -1 for label in y[2:4]] + [-1] * 4
    problem = Bags(rule="instances")
    oracle = problem.bind(X, y, problem.schema(X, y), hidden=hidden)
    w, coef = np.array([0.7, -1.0, 0.4, -0.3]), np.arange(1.0, 9.0)

    def score(s, possible):
        totals = np.array([s[list(h)].sum() for h in possible])
        if math.isinf(alpha):
            return totals.max()
        if alpha == 1.003:  # a mean of E[s] over powers from 1 to alpha
            powers = np.linspace(1, alpha, 201)
            return np.mean([softmax(power * totals) @ totals for power in powers])
        return (
            softmax(totals) @ totals
            if alpha == 1
            else np.diff(logsumexp(np.outer([1, alpha], totals), axis=1))[0] / (alpha - 1)
        )

    def slacks(w):
        found = []
        for i in range(8):
            s = X[i] @ w[:3] + w[3]
            every = [h for size in (1, 2, 3) for h in itertools.combinations(range(3), size)]
            known = {list: lambda h, i=i: list(h) == hidden[i], int: lambda h, i=i: hidden[i] in (-1, *h)}
            own = [h for h in every if y[i] == 0 or known[type(hidden[i])](h)]
            found.append(max(0.0, 1 + (score(s, every) if y[i] == 0 else -score(s, own))))
        return np.array(found)

    found = oracle.renyi_slacks(w, coef, alpha)
    assert np.allclose(found.value, slacks(w), rtol=1e-6)
    for step in 1e-6 * np.eye(4):
        slope = (coef @ slacks(w + step) - coef @ slacks(w - step)) / 2e-6
        assert found.features @ step * 1e6 == pytest.approx(slope, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("alpha", [1.0, math.inf])
def test_a_min_entropy_model_finds_the_positive_instances(alpha, tmp_path):
    X, y, witness = planted()
    model = MinEntropySVM(Bags(rule="instances"), alpha=alpha, C=100).fit(X, y)
    assert model.score(*planted(seed=1)[:2]) >= 0.9
    found = model.predict_hidden(X)
    assert np.mean([witness[i] in found[i] for i in np.flatnonzero(y)]) > 0.9
    model.save(tmp_path / "model")
    assert np.array_equal(tacit.load(tmp_path / "model").predict(X), model.predict(X))
    with pytest.raises(CapabilityError, match="LatentSVM"):
        MinEntropySVM(Bags(rule="instances", max_share=0.5), alpha=alpha).fit(X, y)


@pytest.mark.parametrize("learner", [LatentSVM, MinEntropySVM])
def test_witnesses_are_found(learner, tmp_path):
    X, y, witness = planted()
    model = learner(Bags(), C=100).fit(X, y)
    found = model.predict_hidden(X)
    assert (found[y == 1] == witness[y == 1]).mean() > 0.9
    assert (found[y == 0] == -1).mean() > 0.9
    model.save(tmp_path / "model")
    assert np.array_equal(tacit.load(tmp_path / "model").predict_hidden(X), found)


def test_known_witnesses_stay():
    X, y, witness = planted(30, shift=0.5)
    hidden = np.where((np.arange(30) % 4 == 1), witness, -1)
    model = LatentSVM(Bags(), C=10, unknown_weight=1).fit(X, y, hidden=hidden)
    assert (model.hidden_[hidden >= 0] == hidden[hidden >= 0]).all()
    model = LatentSVM(Bags(rule="instances"), C=10, unknown_weight=1).fit(X, y, hidden=hidden)
    assert all(hidden[i] in model.hidden_[i] for i in np.flatnonzero(hidden >= 0))


def test_shares_bound_the_positive_instances():
    X, y, _ = planted(20, 4)
    model = LatentSVM(Bags(rule="instances", min_share=0.5, max_share=0.75), C=10).fit(X, y)
    assert {len(found) for found in model.impute(X, y)} <= {0, 2, 3}
    with pytest.raises(CapabilityError, match="expectations"):
        HiddenCRF(model.problem).fit(X, y)


def test_the_background_may_be_named():
    X, y, _ = planted()
    names = np.array(["inert", "active"])[y]
    assert LatentSVM(Bags(background="inert"), C=10).fit(X, names).classes_.tolist() == ["inert", "active"]
    with pytest.raises(ValueError, match="background"):
        LatentSVM(Bags(background="no"), C=10).fit(X, names)
    with pytest.raises(ValueError, match="witness"):
        LatentSVM(Bags(), C=10).fit(X, y, hidden=np.full(60, 1))


class OwnBags(Problem):
    """A user's problem of bags that does not say that its samples are not rows of a table."""

    def schema(self, X, y):
        return Schema(np.array([0, 1]), 2, {"weights": (2,)})

    def bind(self, X, y, schema, *, hidden=None):
        return OwnOracle(X, None if y is None else np.asarray(y), hidden)

    def example(self, rng):
        X = [rng.integers(-2, 3, (int(k), 2)).astype(float) for k in rng.integers(1, 4, 4)]
        hidden = np.array([int(rng.integers(len(x))) for x in X])

        def outputs(x):
            return [(label, h) for label in (0, 1) for h in range(len(x))]

        return Example(
            X, np.array([0, 1, 0, 1]), hidden, outputs, lambda x, y, h: y * x[h], lambda t, y, h: float(t != y)
        )


class OwnOracle(EnumerableOracle):
    def __init__(self, X, y, hidden):
        self.rows = np.concatenate([np.asarray(x) for x in X])
        offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])])
        given = {} if y is None else {"labels": y, "losses": LossTable(1 - np.eye(2), y)}
        super().__init__(np.array([0, 1]), offsets, 2, hidden=hidden, **given)

    def scores(self, w, rows=None):
        s = self.rows[self.states(rows)] @ w
        return np.stack([0 * s, s])

    def adjoint(self, V, rows=None):
        return V[1] @ self.rows[self.states(rows)]

    def gather(self, labels, states, coef, rows=None):
        firsts = self.offsets[:-1] if rows is None else self.offsets[:-1][rows]
        return (coef * labels) @ self.rows[firsts + states]


def test_a_problem_of_bags_need_not_say_that_they_are_not_a_table():
    check_problem(OwnBags())
    example = OwnBags().example(np.random.default_rng(0))
    model = LatentSVM(OwnBags()).fit(example.X, example.y)
    assert model.predict(example.X[:3]).shape == (3,)
    assert 0 <= model.score(example.X[::-1], example.y[::-1]) <= 1


def test_a_warning_names_the_feature_out_of_scale():
    X, y, _ = planted()
    X[..., 2] *= 1e6
    with pytest.warns(match="feature 2.*StandardScaler"):
        HiddenCRF(Bags(), max_iter=20).fit(X, y)

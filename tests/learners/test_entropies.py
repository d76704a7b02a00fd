"""Entropies beside Rényi's: against their definitions, written out, and against differences."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from tacit import MinEntropySVM
from tacit.learners.descents.entropy import EntropyMargins, LinearModel
from tacit.oracle import CapabilityError
from tacit.oracle.entropies import HavrdaCharvat, Rao, Renyi
from tacit.problems import Candidates, Chain, Motif

ENTROPIES = (
    *(Renyi(alpha, beta) for alpha in (0.7, 1.0, 2.0, math.inf) for beta in (0.5, 3.0)),
    *(HavrdaCharvat(alpha) for alpha in (0.3, 0.999999, 1.0, 1.000001, 2.0, 30.0)),
    Rao(),
)


def define(entropy, P, k, pairs):
    """The entropy of label k, from the probabilities (labels, hidden) of one sample and its definition."""
    own = P[k][P[k] > 0]
    if isinstance(entropy, Rao):
        total = 0.0
        for h, (label, other) in itertools.product(range(P.shape[1]), np.ndindex(*P.shape)):
            total += P[k, h] / P[k].sum() * P[label, other] * (pairs[h, other] if label == k else 1.0)
        return total
    alpha, beta = entropy.alpha, getattr(entropy, "beta", 1.0)
    if math.isinf(alpha):
        return -np.log(own.max())
    if alpha == 1:
        return -(own**beta @ np.log(own)) / (own**beta).sum()
    if isinstance(entropy, HavrdaCharvat):
        return math.log(2) * (1 - (own**alpha).sum() / own.sum()) / (1 - 2 ** (1 - alpha))
    return np.log((own ** (alpha + beta - 1)).sum() / (own**beta).sum()) / (1 - alpha)


@pytest.fixture
def samples(bags):
    X, y, _ = bags
    problem = Candidates(loss="exact")
    return problem.bind(X, y, problem.schema(X, y))


@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
def test_scores_are_those_of_the_definition(entropy):
    rng = np.random.default_rng(0)
    starts = np.array([0, 3, 4, 9])
    scores = rng.standard_normal((3, 9))
    scores[1, 0] = -np.inf
    tables = [rng.random((n, n)) for n in np.diff(starts)]  # not symmetric
    found = entropy.score_cells(scores, starts, lambda: tables).values
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        log = logsumexp(scores[:, a:b])
        P = np.exp(scores[:, a:b] - log)
        expected = [define(entropy, P, k, tables[i]) for k in range(3)]
        assert (log if entropy.is_shifted else 0.0) - found[i] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
def test_the_gradient_is_that_of_differences(samples, entropy):
    rng = np.random.default_rng(0)
    margins = EntropyMargins(samples, rng.random(samples.n_samples), entropy)
    w, step = rng.standard_normal(samples.n_params), 1e-6 * rng.standard_normal(samples.n_params)
    rise = (margins(w + step)[0] - margins(w - step)[0]) / 2
    assert margins(w)[1] @ step == pytest.approx(rise, rel=1e-5)
    model = LinearModel(margins, w)  # a tangent: exact at w, and of the same slope
    risk, slope = model(w)
    assert 0.5 * w @ w + risk == pytest.approx(margins(w)[0])
    np.testing.assert_allclose(w + slope, margins(w)[1], atol=1e-9)


@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
def test_large_scores_stay_finite(samples, entropy):
    w = 1e4 * np.random.default_rng(0).standard_normal(samples.n_params)
    slacks = samples.renyi_slacks(w, np.ones(samples.n_samples), entropy)
    assert np.isfinite(slacks.value).all()
    assert np.isfinite(slacks.features).all()


def test_limits_meet_renyi():
    scores, starts = np.random.default_rng(0).standard_normal((2, 5)), np.array([0, 5])
    log = logsumexp(scores)
    shannon = log - Renyi(1.0).score_cells(scores, starts, list).values
    assert -HavrdaCharvat(1.0).score_cells(scores, starts, list).values == pytest.approx(shannon)
    assert -HavrdaCharvat(1 + 1e-9).score_cells(scores, starts, list).values == pytest.approx(shannon, rel=1e-7)
    for alpha in (0.5, 1.0, 3.0, math.inf):
        renyi = Renyi(alpha).score_cells(scores, starts, list).values
        assert Renyi(alpha, beta=1 + 1e-12).score_cells(scores, starts, list).values == pytest.approx(renyi)
    gini = -HavrdaCharvat(2.0).score_cells(scores, starts, list).values / (2 * math.log(2))
    different = 1.0 - np.eye(5)
    assert -Rao().score_cells(scores, starts, lambda: [different]).values == pytest.approx(gini)


@pytest.mark.parametrize(
    "how", [{"entropy": "havrda-charvat"}, {"entropy": "mathai-rathie", "beta": 2.0}, {"entropy": "rao"}]
)
def test_models_learn_bags_and_descend(bags, how):
    X, y, _ = bags
    problem = Candidates(loss="exact" if how["entropy"] == "rao" else "0/1")
    model = MinEntropySVM(problem, C=20.0, **how).fit(X, y)
    assert model.score(X, y) > 0.9
    assert (np.diff([line.objective for line in model.history_]) <= 1e-9).all()
    assert (model.predict(X) == model.classes_[np.argmin(model.label_entropy(X), axis=1)]).all()


def test_motif_starts_give_rao_a_loss():
    X, y = ["ACGTAC", "TTGACA", "CCCTTT", "GGGAAA"], [1, 1, -1, -1]
    model = MinEntropySVM(Motif(3, loss="start"), entropy="rao", C=10.0).fit(X, y)
    entropy = model.label_entropy(X)
    assert ((entropy >= 0) & (entropy <= 1)).all()


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"entropy": "tsallis"}, "entropy"),
        ({"beta": 2.0}, "mathai-rathie"),
        ({"entropy": "mathai-rathie", "alpha": 0.5, "beta": 0.5}, "above 1"),
        ({"entropy": "havrda-charvat", "alpha": math.inf}, "finite"),
        ({"entropy": "rao", "alpha": 2.0}, "order"),
        ({"entropy": "rao", "solver": "cccp"}, "cccp"),
    ],
)
def test_what_an_entropy_cannot_do_is_refused(bags, how, word):
    with pytest.raises(ValueError, match=word):
        MinEntropySVM(Candidates(), **how).fit(*bags[:2])


def test_rao_needs_a_loss_between_hidden_values(bags):
    with pytest.raises(CapabilityError, match="between hidden values"):
        MinEntropySVM(Candidates(), entropy="rao").fit(*bags[:2])
    with pytest.raises(CapabilityError):
        MinEntropySVM(Chain(), entropy="rao").fit([[[0.0]], [[1.0]]], [[0], [1]])


COSTS = np.array([[0.0, 1.0, 4.0], [0.5, 0.0, 2.0], [3.0, 1.0, 0.0]])


@pytest.mark.parametrize("entropy", [Renyi(0.5), Renyi(1.0), Renyi(math.inf), HavrdaCharvat(2.0)], ids=str)
def test_slack_rescaling_multiplies_violations_by_losses(bags, entropy):
    X, y, _ = bags
    problem = Candidates(loss=COSTS)
    samples = problem.bind(X, y, problem.schema(X, y))
    rng, n = np.random.default_rng(0), samples.n_samples
    w, step = rng.standard_normal(samples.n_params), 1e-6 * rng.standard_normal(samples.n_params)
    truth, scores = samples.known_labels(), samples.renyi_scores(w, entropy)
    own = scores[np.arange(n), truth]
    written = [max(0, *(COSTS[t, k] * (1 + scores[i, k] - own[i]) for k in range(3))) for i, t in enumerate(truth)]
    found = samples.renyi_slacks(w, np.ones(n), entropy, rescaling="slack")
    np.testing.assert_allclose(found.value, written)
    margins = EntropyMargins(samples, rng.random(n), entropy, "slack")
    rise = (margins(w + step)[0] - margins(w - step)[0]) / 2
    assert margins(w)[1] @ step == pytest.approx(rise, rel=1e-5)
    loss = samples.loss(samples.best_under(w, np.argmax(scores, axis=1)).code)
    assert (found.value >= loss - 1e-12).all()


def test_solvers_agree_under_slack_rescaling(bags):
    X, y, _ = bags
    how = {"alpha": 2.0, "C": 5.0, "tol": 1e-5, "init": "zero", "max_iter": 3000, "rescaling": "slack"}
    ends = [
        MinEntropySVM(Candidates(loss=COSTS), solver=solver, **how).fit(X, y).objective_
        for solver in ("lbfgs", "trust-region", "cccp")
    ]
    assert max(ends) - min(ends) <= 1e-4 * max(ends)


def test_infinite_order_descends_under_slack_rescaling(bags):
    X, y, _ = bags
    model = MinEntropySVM(Candidates(loss=COSTS), alpha=math.inf, C=5.0, rescaling="slack").fit(X, y)
    samples = model.problem.bind(X, y, model.schema_)
    margins = EntropyMargins(samples, np.full(len(y), 5.0 / len(y)), math.inf, "slack")
    assert margins(model.coef_)[0] == pytest.approx(model.objective_)
    assert (np.diff([line.objective for line in model.history_]) <= 1e-9).all()

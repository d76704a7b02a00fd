"""An order of entropy for each kind of hidden value, and orders learned on held-out samples."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import tacit
from tacit import MinEntropySVM
from tacit.learners.descents.entropy import EntropyMargins, LinearModel
from tacit.learners.descents.held_out import TEMPERATURE, HeldOutFold, SmoothMargins, solve_curvature
from tacit.learners.descents.orders import learn_orders, read_grid
from tacit.oracle.entropies import Renyi
from tacit.oracle.nested import NestedRenyi
from tacit.problems import Candidates, Detection, Motif
from tacit.vision.maps.window_maps import WindowMaps

ORDERS = (0.3, 1.0, 1 + 1e-7, 2.0, 40.0, math.inf)
PAIRS = [pair for pair in itertools.product(ORDERS, ORDERS) if pair[0] != pair[1]]


def exponential_mean(values, chances, alpha):
    """log E[exp((α − 1) value)] / (α − 1), by its definition."""
    if math.isinf(alpha):
        return values.max()
    if abs(alpha - 1) < 1e-6:  # to first order in α − 1
        mean = chances @ values
        return mean + 0.5 * (alpha - 1) * (chances @ (values - mean) ** 2)
    return np.log(chances @ np.exp((alpha - 1) * values)) / (alpha - 1)


def define(P, kinds, orders):
    """log Z less the entropy of a label, from its probabilities P(y, h), the values of its kinds and their orders."""
    if not kinds:
        return exponential_mean(np.log(P), P / P.sum(), orders[0])
    parts = [[P[kinds[0] == a], [kind[kinds[0] == a] for kind in kinds[1:]]] for a in np.unique(kinds[0])]
    inner = np.array([define(*part, orders[1:]) for part in parts])
    mass = np.array([part[0].sum() for part in parts])
    return exponential_mean(inner, mass / mass.sum(), orders[0])


@pytest.fixture
def cells():
    """Scores of two labels and two samples, of which not all cells exist, and two kinds of hidden value."""
    rng = np.random.default_rng(0)
    scores = 2 * rng.standard_normal((2, 14))
    scores[1, [0, 4, 5, 13]] = -np.inf
    outer, middle = np.arange(14) % 2, rng.integers(3, size=14)
    scores[1, :8][outer[:8] == 1] = -np.inf  # no cell of that value at all
    return scores, np.array([0, 8, 14]), [(outer, 2), (middle, 3)]


@pytest.mark.parametrize("orders", [*PAIRS, (0.5, 1.0, math.inf), (3.0, 0.2, 1.0)], ids=str)
def test_scores_are_those_of_the_definition(cells, orders):
    scores, starts, kinds = cells
    kinds = kinds[: len(orders) - 1]
    found = NestedRenyi(orders).score_cells(scores, starts, lambda: kinds).values
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        log = logsumexp(scores[:, a:b])
        for k in range(2):
            exists = scores[k, a:b] > -np.inf
            P = np.exp(scores[k, a:b] - log)[exists]
            expected = define(P, [values[a:b][exists] for values, _ in kinds], orders)
            assert found[i, k] - log == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_it_is_the_entropy_of_the_page(cells):
    """log [Σ_a P(y, a)^α exp((1 − α) H_β(b | y, a)) / P(y)] / (1 − α), written with entropies."""
    scores, starts, kinds = cells
    alpha, beta = 0.5, 3.0
    found = NestedRenyi((alpha, beta)).score_cells(scores, starts, lambda: kinds[:1]).values
    own = scores[0, :8]
    log = logsumexp(scores[:, :8])
    P, total = np.exp(own - log), 0.0
    for a in (0, 1):
        part = P[kinds[0][0][:8] == a]
        inner = np.log(((part / part.sum()) ** beta).sum()) / (1 - beta)
        total += part.sum() ** alpha * np.exp((1 - alpha) * inner)
    assert log - found[0, 0] == pytest.approx(np.log(total / P.sum()) / (1 - alpha))


@pytest.mark.parametrize("alpha", [1e-6, *ORDERS, 1e9])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_equal_orders_are_one_order(cells, alpha, scale):
    scores, starts, kinds = cells
    single = Renyi(alpha).score_cells(scale * scores, starts, list)
    coef = np.random.default_rng(1).standard_normal(single.values.shape)
    for n_kinds in (0, 1, 2):
        found = NestedRenyi((alpha,) * (n_kinds + 1)).score_cells(scale * scores, starts, lambda n=n_kinds: kinds[:n])
        np.testing.assert_allclose(found.values, single.values, rtol=1e-8, atol=1e-10 * scale)
        np.testing.assert_allclose(found.own(coef), single.own(coef), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("orders", [(0.7,), (1.0,), (5.0,), *PAIRS], ids=str)
def test_derivatives_are_those_of_differences(cells, orders):
    scores, starts, kinds = cells
    kinds = kinds[: len(orders) - 1]

    def evaluate(scores, orders):
        return NestedRenyi(tuple(orders)).score_cells(scores, starts, lambda: kinds)

    rng = np.random.default_rng(2)
    found = evaluate(scores, orders)
    coef, step = rng.standard_normal(found.values.shape), 1e-6 * rng.standard_normal(scores.shape)
    ahead, behind = (evaluate(scores + sign * step, orders).values for sign in (1, -1))
    exists = np.isfinite(scores)
    slope = (found.own(coef) * step)[exists].sum()
    assert slope == pytest.approx((coef * (ahead - behind)).sum() / 2, rel=1e-5, abs=1e-12)
    for k, order in enumerate(orders):
        if math.isinf(order):
            assert not found.by_order()[k].any()
            continue
        up, down = (evaluate(scores, [*orders[:k], order + move, *orders[k + 1 :]]).values for move in (1e-4, -1e-4))
        np.testing.assert_allclose(found.by_order()[k], (up - down) / 2e-4, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("orders", [*PAIRS, (1e-6, 1e9)], ids=str)
def test_large_scores_stay_finite(cells, orders):
    scores, starts, kinds = cells
    found = NestedRenyi(orders).score_cells(1e5 * scores, starts, lambda: kinds[:1])
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.by_order()).all()
    weights = found.own(np.ones(found.values.shape))
    assert np.add.reduceat(weights, starts[:-1], axis=1) == pytest.approx(1.0, abs=1e-6)


def draw_stranded(n=40, seed=0):
    """Sequences with a motif on either strand in every other one."""
    rng = np.random.default_rng(seed)
    X = ["".join(rng.choice(list("ACGT"), 14)) for _ in range(n)]
    y = np.arange(n) % 2
    hidden = ["TTGCA", "TGCAA"]
    return [x[:4] + hidden[i % 4 // 2] + x[9:] if y[i] else x for i, x in enumerate(X)], y


def test_motif_has_strands_outside_and_starts_inside():
    X, y = draw_stranded(6)
    problem = Motif(5, background=1, strands="both")
    assert problem.hidden_kinds == ("strand", "start")
    model = MinEntropySVM(problem, alpha={"start": math.inf, "strand": 0.5}, C=5.0).fit(X, y)
    samples = problem.bind(X, y, model.schema_)
    w = np.random.default_rng(0).standard_normal(samples.n_params)
    for i in range(6):
        own = samples.scores(w, np.array([i]))[1]
        P = np.exp(own - logsumexp(samples.scores(w, np.array([i]))))
        expected = define(P, [np.arange(own.size) % 2], (0.5, math.inf)) + logsumexp(samples.scores(w, np.array([i])))
        assert samples.renyi_scores(w, model._entropy())[i, 1] == pytest.approx(expected)
    flipped = ["".join("TGCA"["ACGT".index(letter)] for letter in reversed(x)) for x in X]
    assert np.array_equal(model.label_entropy(flipped), model.label_entropy(X))


def test_detection_has_types_outside_and_windows_inside():
    rng = np.random.default_rng(0)
    X = WindowMaps.of_maps(rng.random((8, 3, 4, 2)), sizes=[(40, 30)] * 8, stride=10, pixels=[(10, 10)], step=1.0)
    y, problem = np.arange(8) % 2, Detection(types=3)
    assert (problem.hidden_kinds, Detection().hidden_kinds) == (("type", "window"), ("window",))
    samples = problem.bind(X, y, problem.schema(X, y))
    w = rng.standard_normal(samples.n_params)
    found = samples.renyi_scores(w, NestedRenyi((2.0, 0.5)))
    for i, k in itertools.product(range(8), range(2)):
        scores = samples.scores(w, np.array([i]))
        P = np.exp(scores[k] - logsumexp(scores))
        assert found[i, k] - logsumexp(scores) == pytest.approx(define(P, [np.arange(P.size) % 3], (2.0, 0.5)))
    margins = EntropyMargins(samples, rng.random(8), NestedRenyi((2.0, 0.5)))
    step = 1e-6 * rng.standard_normal(w.size)
    rise = (margins(w + step)[0] - margins(w - step)[0]) / 2
    assert margins(w)[1] @ step == pytest.approx(rise, rel=1e-5)
    risk, slope = LinearModel(margins, w)(w)
    assert 0.5 * w @ w + risk == pytest.approx(margins(w)[0])
    np.testing.assert_allclose(w + slope, margins(w)[1], atol=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "trust-region"])
def test_models_learn_with_orders_by_kind(tmp_path, solver):
    X, y = draw_stranded()
    problem = Motif(5, background=1, strands="both")
    alpha = {"strand": 1.0, "start": math.inf}
    model = MinEntropySVM(problem, alpha=alpha, C=50.0, solver=solver, n_init=2).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.alpha_ == alpha
    assert (np.diff([line.objective for line in model.history_]) <= 1e-9).all()
    assert (model.predict(X) == model.classes_[np.argmin(model.label_entropy(X), axis=1)]).all()
    np.testing.assert_allclose(model.label_proba(X).sum(axis=1), 1.0)
    model.save(tmp_path / "model")
    assert np.array_equal(tacit.load(tmp_path / "model").label_entropy(X), model.label_entropy(X))


def test_equal_orders_give_the_same_bits_as_one():
    X, y = draw_stranded()
    problem = Motif(5, background=1, strands="both")
    for alpha in (0.5, math.inf):
        by_kind = MinEntropySVM(problem, alpha={"strand": alpha, "start": alpha}, C=20.0).fit(X, y)
        assert np.array_equal(by_kind.coef_, MinEntropySVM(problem, alpha=alpha, C=20.0).fit(X, y).coef_)
    one_strand = MinEntropySVM(Motif(5, background=1), alpha={"start": 2.0}, C=20.0).fit(X, y)
    assert np.array_equal(one_strand.coef_, MinEntropySVM(Motif(5, background=1), alpha=2.0, C=20.0).fit(X, y).coef_)


def test_cross_validation_tries_orders_by_kind():
    X, y = draw_stranded()
    alphas = [{"start": 1.0, "strand": math.inf}, 2.0, 0.5]
    learner = MinEntropySVM(Motif(5, background=1, strands="both"), alpha="cv", alphas=alphas, cv=2, C=20.0)
    model = learner.fit(X, y)
    assert [point.alpha for point in model.curve_] == [0.5, 2.0, {"strand": math.inf, "start": 1.0}]
    assert model.alpha_ in [point.alpha for point in model.curve_]


def open_fold(X, y, problem, rescaling="margin", C=10.0):
    cut = len(y) * 2 // 3
    schema = problem.schema(X, y)
    train, test = (problem.bind(X[part], y[part], schema) for part in (slice(cut), slice(cut, None)))
    w = 0.1 * np.random.default_rng(3).standard_normal(train.n_params)
    return HeldOutFold(train, test, np.full(cut, C / cut), rescaling, w)


@pytest.fixture
def precise(monkeypatch):
    """Weights so near to their optimum that differences of refits have digits left."""
    monkeypatch.setattr("tacit.learners.descents.held_out.STATIONARY", 1e-13)


COSTS = np.array([[0.0, 1.0, 4.0], [0.5, 0.0, 2.0], [3.0, 1.0, 0.0]])


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_smooth_slacks_are_just_above_the_slacks(bags, rescaling):
    X, y, hidden = bags
    problem = Candidates(loss=COSTS)
    samples = problem.bind(X, y, problem.schema(X, y), hidden=np.where(np.arange(len(y)) % 2, hidden, -1))
    rng = np.random.default_rng(0)
    weights, w = rng.random(len(y)), rng.standard_normal(samples.n_params)
    margins = SmoothMargins(samples, weights, rescaling)
    sharp = EntropyMargins(samples, weights, 0.5, rescaling)(w)[0]
    found = margins(w, (0.5,), by_order=True)
    assert sharp < found.value <= sharp + weights.sum() * TEMPERATURE * COSTS.max() * math.log(3)
    step = 1e-6 * rng.standard_normal(w.size)
    rise = (margins(w + step, (0.5,)).value - margins(w - step, (0.5,)).value) / 2
    assert found.by_weights @ step == pytest.approx(rise, rel=1e-5)
    rise = (margins(w, (0.5 + 1e-5,)).value - margins(w, (0.5 - 1e-5,)).value) / 2e-5
    assert found.by_order[0] == pytest.approx(rise, rel=1e-5)


@pytest.mark.parametrize("order", [0.4, 1.0, 6.0])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_the_gradient_of_the_held_out_risk_is_that_of_refits(bags, precise, order, rescaling):
    X, y, _ = bags
    fold = open_fold(X, y, Candidates(loss=COSTS), rescaling)
    slope = fold((order,))[1]
    ahead, behind = (fold((order + move,))[0] for move in (0.01 * order, -0.01 * order))
    assert slope[0] == pytest.approx((ahead - behind) / (0.02 * order), rel=5e-3)
    direct = SmoothMargins(fold.test, np.full(fold.test.n_samples, 1 / fold.test.n_samples), rescaling, 0.0)
    assert abs(direct(fold.w, (order,), by_order=True).by_order[0] - slope[0]) > 0.1 * abs(
        slope[0]
    )  # weights move, too


def test_the_gradient_by_kind_is_that_of_refits(precise):
    X, y = draw_stranded(60)
    fold = open_fold(np.array(X), y, Motif(5, background=1, strands="both"))
    orders = np.array([0.7, 2.0])
    slope = fold(tuple(orders))[1]
    for k in range(2):
        move = 0.01 * orders * np.eye(2)[k]
        ahead, behind = (fold(tuple(orders + sign * move))[0] for sign in (1, -1))
        assert slope[k] == pytest.approx((ahead - behind) / (0.02 * orders[k]), rel=5e-3)


def test_a_gradient_that_is_not_precise_is_told(monkeypatch):
    monkeypatch.setattr("tacit.learners.descents.held_out.MAX_CONJUGATE", 1)
    with pytest.warns(ConvergenceWarning, match="alpha"):
        solve_curvature(lambda w: np.array([1.0, 50.0]) * w, np.zeros(2), np.ones(2))


def test_learned_orders_lower_the_held_out_objective(bags):
    X, y, _ = bags
    model = MinEntropySVM(Candidates(), alpha="learn", alphas=[0.5, 20.0], C=10.0, cv=2).fit(X, y)
    begins = [point for point in model.curve_ if point.alpha in (0.5, pytest.approx(20.0))]
    best = max(model.curve_, key=lambda point: point.score)
    assert len(model.curve_) > 4
    assert all(best.score > point.score for point in begins)
    assert (model.alpha_, model.C_) == (best.alpha, 10.0)
    again = MinEntropySVM(Candidates(), alpha=model.alpha_, C=10.0).fit(X, y)
    assert np.array_equal(again.coef_, model.coef_)


def test_orders_are_learned_by_kind():
    X, y = draw_stranded()
    learner = MinEntropySVM(
        Motif(5, background=1, strands="both"), alpha="learn", alphas={"start": 2.0, "strand": 1.0}, C=10.0, cv=2
    )
    curve = learn_orders(learner, X, y, None, None)
    assert list(curve[0].alpha) == ["strand", "start"]
    assert max(point.score for point in curve) > curve[0].score
    assert {*map(tuple, (point.alpha.values() for point in curve))} != {(1.0, 2.0)}


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"alpha": {"strand": 1.0}}, "'start'"),
        ({"alpha": {"strand": 1.0, "start": 1.0, "width": 1.0}}, "'start'"),
        ({"alpha": {}}, "'start'"),
        ({"alpha": {"strand": 1.0, "start": 0.0}}, "above 0"),
        ({"alpha": {"strand": 1.0, "start": "many"}}, "above 0"),
        ({"alpha": {"strand": 1.0, "start": 2.0}, "solver": "cccp"}, "cccp"),
        ({"alpha": {"strand": 1.0, "start": 2.0}, "entropy": "havrda-charvat"}, "renyi"),
        ({"alpha": "learn", "entropy": "mathai-rathie", "beta": 2.0}, "renyi"),
        ({"alpha": "learn", "alphas": [1.0, math.inf]}, "100"),
        ({"alpha": "learn", "alphas": {"strand": 1.0, "start": 1e-3}}, "0.05"),
        ({"alpha": "learnt"}, "learn"),
    ],
)
def test_what_orders_cannot_do_is_refused(how, word):
    X, y = draw_stranded(6)
    with pytest.raises(ValueError, match=word):
        MinEntropySVM(Motif(5, background=1, strands="both"), **how).fit(X, y)


def test_problems_of_one_kind_take_one_order(bags):
    with pytest.raises(ValueError, match="give a number"):
        MinEntropySVM(Candidates(), alpha={"window": 1.0}).fit(*bags[:2])
    with pytest.raises(ValueError, match="'start'"):
        MinEntropySVM(Motif(5), alpha={"strand": 1.0, "start": 2.0}).fit(*draw_stranded(6))
    assert read_grid(MinEntropySVM(Candidates(), alpha="learn"))[0] == [1.0]

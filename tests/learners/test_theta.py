"""Features and norms of θ, the distribution over hidden values in dissimilarity coefficients, other than those of w."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tacit import DissimilaritySVM, Ragged, load
from tacit.datasets import planted_motif
from tacit.learners.dissimilarity_svm import _in_order_of
from tacit.penalties import GroupNorm, Prior, Quadratic
from tacit.problems import Candidates, Motif
from tests.learners.test_dissimilarity import GRID, SHARED, bound, pair_of, place_objects


@pytest.fixture(scope="module")
def placed():
    return place_objects(45, 1)


def other_features(X, seed=0):
    """The same bags with three other features per window."""
    rng = np.random.default_rng(seed)
    values = X.values @ rng.standard_normal((8, 3)) + 0.1 * rng.standard_normal((len(X.values), 3))
    return Ragged(values, X.offsets).with_boxes([GRID] * len(X))


PENALTIES = {
    "metric": lambda d: Quadratic(np.linspace(0.5, 2, d)),
    "pull": lambda d: Quadratic(pull=0.5, centre=np.linspace(-1, 1, d)),
    "prior": lambda d: Prior(np.linspace(-1, 1, d), metric=2.0),
    "groups": lambda d: GroupNorm(np.arange(d) // 3, np.linspace(0.5, 2, d // 3)),
    "L1": lambda d: GroupNorm(np.arange(d)),
}


def penalty_by_hand(name, theta):
    """Ω(θ) as its formula."""
    d = theta.size
    line = np.linspace(-1, 1, d)
    if name == "metric":
        return 0.5 * np.sum(np.linspace(0.5, 2, d) * theta**2)
    if name == "pull":
        return 0.5 * np.sum(theta**2) + 0.25 * np.sum((theta - line) ** 2)
    if name == "prior":
        return np.sum((theta - line) ** 2)
    if name == "groups":
        return np.linspace(0.5, 2, d // 3) @ np.sqrt((theta.reshape(-1, 3) ** 2).sum(axis=1))
    return np.abs(theta).sum()


@pytest.mark.parametrize("name", PENALTIES)
def test_joint_objective_has_the_features_and_the_norm_of_theta(placed, name):
    X, y, _ = placed
    X, y = X[:6], y[:6]
    other = other_features(X)
    problem = Candidates(loss="overlap")
    schema, own = problem.schema(X, y), problem.schema(other, y)
    pair = pair_of(
        problem.bind(X, y, schema), problem.bind(other, y, own), theta_penalty=PENALTIES[name](own.n_params), J=0.2
    )
    rng = np.random.default_rng(3)
    w, theta = rng.standard_normal(schema.n_params), rng.standard_normal(own.n_params)

    def scores(schema, weights, bag):
        parts = schema.views(weights)
        return parts["weights"] @ np.asarray(bag).T + parts["intercept"][:, None]

    total, costs = 0.5 * w @ w + 0.2 * penalty_by_hand(name, theta), 1 - SHARED
    for i in range(6):
        chances = np.exp(scores(own, theta, other[i])[y[i]])
        chances /= chances.sum()
        mean = np.ones((3, 25))
        mean[y[i]] = chances @ costs
        s = scores(schema, w, X[i])
        total += 10 / 6 * ((s + mean).max() - s[y[i]].max() - 0.3 * chances @ costs @ chances)
    assert pair.joint_objective(w, pair.oracle.impute(w).code, theta) == pytest.approx(total, rel=1e-6)
    _, gradient = pair.theta_objective(w, theta)
    norm = 0.0 if pair.theta_penalty.is_quadratic else 0.2  # of norms the gradient leaves out the penalty
    for direction in rng.standard_normal((5, own.n_params)):
        step = 1e-5 * direction
        values = [
            pair.theta_objective(w, theta + sign * step)[0] - norm * penalty_by_hand(name, theta + sign * step)
            for sign in (1, -1)
        ]
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(gradient @ direction, rel=2e-4, abs=1e-4)


def test_proximal_steps_end_at_the_optimum_of_a_smooth_reformulation(placed):
    """θ = a − b with a, b ≥ 0 has the L1 norm Σ (a + b): SciPy minimises that within bounds.

    Scores are so large that θ does not change the most violated outputs: otherwise both may stop at a kink.
    """
    X, y, _ = placed
    oracle = bound(Candidates(loss="overlap"), X[:12], y[:12])
    d, J = oracle.n_params, 0.05
    pair = pair_of(oracle, theta_penalty=GroupNorm(np.arange(d)), J=J)
    w = 100 * np.random.default_rng(4).standard_normal(d)
    theta, best = np.zeros(d), np.inf
    for _ in range(40):
        value, gradient = pair.theta_objective(w, theta)
        assert value <= best
        theta, best = pair._proximal_steps(w, theta, value, gradient)

    def split(parts):
        theta = parts[:d] - parts[d:]
        value, gradient = pair.theta_objective(w, theta)
        return value + J * (parts.sum() - np.abs(theta).sum()), np.concatenate([gradient, -gradient]) + J

    found = minimize(split, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * d))
    assert best == pytest.approx(found.fun, abs=1e-5)
    assert 0 < np.count_nonzero(theta) < d
    gradient = pair.theta_objective(w, theta)[1]
    assert (np.abs(gradient[theta == 0]) <= J + 1e-5).all()
    np.testing.assert_allclose(gradient[theta != 0], -J * np.sign(theta[theta != 0]), atol=1e-5)


@pytest.mark.parametrize("kind", ["joint", "text"])
@pytest.mark.parametrize(
    "penalty", [GroupNorm("weight"), GroupNorm("feature"), Quadratic(lower=0.0), Prior(np.ones(27))], ids=type
)
def test_every_penalty_of_theta_takes_both_kinds_of_steps(placed, penalty, kind):
    X, y, _ = placed
    model = DissimilaritySVM(Candidates(loss="overlap"), C=10, J=0.3, theta_penalty=penalty, theta_step=kind).fit(X, y)
    objectives = np.array([line.objective for line in model.history_])
    if kind == "joint":
        assert (np.diff(objectives) <= 1e-9).all()
    assert (model.objective_parts_[:, 2] >= 0).all()
    np.testing.assert_allclose(model.objective_parts_.sum(axis=1)[-1], model.objective_, rtol=1e-9)
    if isinstance(penalty, GroupNorm):
        assert 0 < np.count_nonzero(model.theta_) < 27
    elif isinstance(penalty, Quadratic):
        assert (model.theta_ >= 0).all()
        assert model.theta_.any()
    else:
        assert abs(model.theta_.mean() - 1) < 0.5


@pytest.mark.parametrize("kind", ["joint", "text"])
def test_the_features_and_the_norm_of_w_given_again_change_no_bit(placed, kind):
    X, y, _ = placed
    settings = {"C": 10, "n_init": 2, "theta_step": kind}
    plain = DissimilaritySVM(Candidates(loss="overlap"), **settings).fit(X, y)
    same = DissimilaritySVM(Candidates(loss="overlap"), theta_penalty=Quadratic(), **settings).fit(X, y, theta_X=X)
    assert np.array_equal(plain.coef_, same.coef_)
    assert np.array_equal(plain.theta_, same.theta_)
    assert np.array_equal(plain.objective_parts_, same.objective_parts_)


def test_other_features_for_theta_are_kept_with_the_model(placed, tmp_path):
    X, y, _ = placed
    other = other_features(X)
    problem = Candidates(loss="overlap")
    model = DissimilaritySVM(problem, C=10, theta_penalty=GroupNorm("feature")).fit(X, y, theta_X=other)
    assert (model.coef_.size, model.theta_.size) == (3 * 9, 3 * 4)
    model.save(tmp_path / "pair.tacit")
    again = load(tmp_path / "pair.tacit")
    chances = again.conditional_proba(X, y, theta_X=other)
    parts = model.theta_schema_.views(model.theta_)
    for i in (0, 17):  # by hand
        scores = np.asarray(other[i]) @ parts["weights"][y[i]]
        np.testing.assert_allclose(chances[i].ravel(), np.exp(scores) / np.exp(scores).sum(), rtol=1e-5)
    assert np.array_equal(model.predict_hidden(X), again.predict_hidden(X))
    with pytest.raises(ValueError, match="theta_X"):
        model.conditional_proba(X, y)
    with pytest.raises(ValueError, match="theta_X"):
        model.conditional_proba(X, y, theta_X=other[:5])
    plain = model.fit(X, y)  # again, without
    assert not hasattr(plain, "theta_schema_")
    with pytest.raises(ValueError, match="theta_X"):
        plain.conditional_proba(X, y, theta_X=other)


def test_theta_may_have_another_problem_and_other_samples(placed):
    X, y, _ = placed
    other = other_features(X)
    model = DissimilaritySVM(Candidates(loss="overlap"), C=10, conditional=Candidates(fit_intercept=False))
    model.fit(X, y, theta_X=other)
    assert model.theta_.size == 3 * 3
    np.testing.assert_allclose([row.sum() for row in model.conditional_proba(X, y, theta_X=other)], 1)


@pytest.mark.parametrize(
    ("params", "theta_X", "keyword"),
    [
        ({}, lambda X: X[:44], "45"),
        ({"conditional": Candidates()}, lambda X: [np.ones((25 - (i == 7), 3)) for i in range(45)], "sample 7"),
        ({}, lambda X: Ragged(X.values, X.offsets), "theta_X: .* boxes"),
        ({"conditional": "delta"}, lambda X: X, "theta_X"),
        ({"theta_penalty": Quadratic(np.ones(4))}, lambda X: X, "metric"),
        ({"theta_penalty": GroupNorm("states")}, lambda X: X, "states"),
    ],
)
def test_features_and_penalties_of_theta_that_do_not_fit_are_refused(placed, params, theta_X, keyword):
    X, y, _ = placed
    with pytest.raises(ValueError, match=keyword):
        DissimilaritySVM(Candidates(loss="overlap"), **params).fit(X, y, theta_X=theta_X(X))


def test_what_is_no_penalty_of_theta_is_refused(placed):
    X, y, _ = placed
    with pytest.raises(TypeError, match="theta_penalty"):
        DissimilaritySVM(Candidates(loss="overlap"), theta_penalty="l1").fit(X, y)
    with pytest.raises(ValueError, match="theta_penalty"):
        DissimilaritySVM(Candidates(loss="overlap"), conditional="delta", theta_penalty=Quadratic()).fit(X, y)


def test_a_stopped_fit_resumes_only_with_the_same_features_for_theta(placed, tmp_path):
    X, y, _ = placed
    settings = {"C": 10, "theta_penalty": GroupNorm("feature"), "verbose": 0}
    whole = DissimilaritySVM(Candidates(loss="overlap"), **settings).fit(X, y, theta_X=other_features(X))
    lines, path = [], tmp_path / "pair.state"

    def stop(line):
        lines.append(line)
        return len(lines) == 5

    with pytest.warns(UserWarning, match="callback"):
        DissimilaritySVM(Candidates(loss="overlap"), **settings, checkpoint=path, callbacks=[stop]).fit(
            X, y, theta_X=other_features(X)
        )
    resumed = DissimilaritySVM(Candidates(loss="overlap"), **settings, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="features for θ"):
        resumed.fit(X, y, theta_X=other_features(X, seed=1))
    resumed.fit(X, y, theta_X=other_features(X))
    assert np.array_equal(resumed.theta_, whole.theta_)
    assert np.array_equal(resumed.coef_, whole.coef_)


def test_missing_labels_keep_the_features_for_theta_in_step(placed):
    X, y, _ = placed
    other = other_features(X)
    gaps = [None if i % 4 == 0 else label for i, label in enumerate(y.tolist())]
    model = DissimilaritySVM(Candidates(loss="overlap"), C=10).fit(X, gaps, theta_X=other)
    assert model.labels_.shape == (45,)
    assert model.theta_.size == 3 * 4
    with pytest.raises(ValueError, match="theta_X"):
        DissimilaritySVM(Candidates(loss="overlap"), C=10).fit(X, gaps, theta_X=other[:44])


def test_probabilities_are_in_the_order_of_hidden_values_on_both_strands():
    """A motif may keep a sequence as its reverse complement; users count starts and strands of what they gave."""
    X, y, _ = planted_motif(30, 14, "TGACC", seed=0)
    problem = Motif(width=5, background=1, strands="both", loss="start")
    model = DissimilaritySVM(problem, C=10, random_state=0).fit(X, y)
    twin = model.copy_fitted()
    twin.coef_ = model.theta_
    positive = y == model.classes_[1]
    best = np.array([row.argmax() for row in model.conditional_proba(X, y)])
    imputed = twin.impute(X, y)
    assert np.array_equal(best[positive], (2 * imputed[:, 0] + imputed[:, 1])[positive])
    rng = np.random.default_rng(0)
    rows = Ragged.from_list([rng.standard_normal((20, 2)) for _ in range(30)])
    own = DissimilaritySVM(problem, C=10, conditional=Candidates(classes=model.classes_.tolist())).fit(
        X, y, theta_X=rows
    )
    oracle, conditional = own._bind(X, y), Candidates().bind(rows, y, own.theta_schema_)
    theta = rng.standard_normal(conditional.n_params)
    ordered = _in_order_of(oracle, conditional, True)
    labels = oracle.known_labels()
    np.testing.assert_array_equal(
        oracle.in_user_order(ordered.hidden_posterior(theta), labels), conditional.hidden_posterior(theta)
    )
    posterior, values = ordered.hidden_posterior(theta), rng.standard_normal(600)
    np.testing.assert_allclose(
        ordered.posterior_slope(theta, posterior, values, np.ones(30)),
        conditional.posterior_slope(
            theta, oracle.in_user_order(posterior, labels), oracle.in_user_order(values, labels), np.ones(30)
        ),
    )

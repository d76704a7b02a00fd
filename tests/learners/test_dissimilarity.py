"""Dissimilarity coefficients: gradients, reductions to other learners, and a planted problem that it must win."""

import itertools

import numpy as np
import pytest

from tacit import (
    DissimilaritySVM,
    ImputedLossSVM,
    IterativeLatentSVM,
    LatentSVM,
    Ragged,
    SelfPaced,
    StructuredSVM,
    load,
)
from tacit.datasets import planted_motif
from tacit.learners.descents.descent import Descent
from tacit.learners.descents.dissimilarity import Dissimilarity
from tacit.oracle import CapabilityError, losses
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Motif, PerSample, Regions, Transcript, Transforms, rotations
from tacit.solvers import Bundle
from tacit.vision.boxes import overlap

SIDE = 5
GRID = np.array([(x, y, x + 4, y + 4) for y in range(0, 2 * SIDE, 2) for x in range(0, 2 * SIDE, 2)], float)
SHARED = overlap(GRID[:, None], GRID[None])


def place_objects(n, seed, strength=4.0):
    """Bags of 25 overlapping windows: a hidden one, mostly near the middle, has features of the class; others have a
    share of them by their overlap with it; all have noise."""
    rng = np.random.default_rng(seed)
    column, row = np.clip(np.round(rng.normal(2, 1, (n, 2))), 0, SIDE - 1).astype(int).T
    y, hidden = np.arange(n) % 3, row * SIDE + column
    rows = rng.standard_normal((n, len(GRID), 8)) + SHARED[hidden][:, :, None] * strength * np.eye(3, 8)[y][:, None]
    return Ragged.from_list(list(rows)).with_boxes([GRID] * n), y, hidden


@pytest.fixture(scope="module")
def placed():
    return place_objects(45, 1)


def bound(problem, X, y, hidden=None):
    return problem.bind(X, y, problem.schema(X, y), hidden=hidden)


def pair_of(oracle, conditional=None, C=10.0, **settings):
    """The procedure of a fit, without the fit."""
    weights = np.full(oracle.n_samples, C / oracle.n_samples)
    descent = Descent(oracle, weights, Quadratic(), lambda task: Bundle(), tol=1e-3, max_inner=1000)
    settings = {"J": 0.1, "beta": 0.3, **settings}
    return descent.convert(Dissimilarity, conditional=conditional or oracle, **settings)


# losses and posteriors


def test_losses_between_hidden_values_are_the_plain_formula(placed):
    X, y, _ = placed
    oracle = bound(Candidates(loss="overlap"), X, y)
    rng = np.random.default_rng(0)
    posterior = rng.random((45, 25))
    posterior /= posterior.sum(axis=1, keepdims=True)
    label, state = rng.integers(0, 3, 45), rng.integers(0, 25, 45)
    found = oracle.losses_of(oracle.encode(label, state)).reshape(45, 25)
    means, slope = oracle.diversity(posterior.ravel())
    costs = 1 - SHARED
    for i in range(45):
        np.testing.assert_allclose(found[i], costs[:, state[i]] if label[i] == y[i] else 1.0, atol=1e-6)
        assert means[i] == pytest.approx(posterior[i] @ costs @ posterior[i], abs=1e-6)
    np.testing.assert_allclose(slope.reshape(45, 25), posterior @ (costs + costs.T), atol=1e-5)


def test_tables_made_a_few_at_a_time_are_those_that_are_kept(placed, monkeypatch):
    X, y, hidden = placed
    kept = bound(Candidates(loss="overlap"), X, y)
    moved = X.with_boxes([GRID + 0.1 * i for i in range(45)])  # as many kinds as samples, the same losses
    monkeypatch.setattr(losses, "MAX_PAIRS", 1)
    monkeypatch.setattr(losses, "PAIRS_AT_A_TIME", 2000)
    made = bound(Candidates(loss="overlap"), moved, y)
    assert made._hidden_loss.make is not None
    assert made._hidden_loss.flat.size == 0
    posterior = kept.hidden_posterior(np.random.default_rng(0).standard_normal(kept.n_params))
    code = kept.encode(y, hidden)
    for name, argument in (("losses_of", code), ("diversity", posterior)):
        one, other = (np.hstack(getattr(o, name)(argument)) for o in (kept, made))
        np.testing.assert_allclose(one, other, atol=1e-5)
    one, other = (o.measured_against(posterior=posterior).loss(code) for o in (kept, made))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_function_gives_what_its_table_gives(placed):
    X, y, _ = placed
    costs = 1 - SHARED
    function = Candidates(loss=lambda true, h, label, other: float(costs[h, other]) if label == true else 1.0)
    rng = np.random.default_rng(1)
    oracles = [bound(problem, X, y) for problem in (Candidates(loss="overlap"), function)]
    posterior = oracles[0].hidden_posterior(rng.standard_normal(oracles[0].n_params))
    code = oracles[0].draw(rng)
    for ask in (
        lambda o: o.losses_of(code),
        lambda o: o.diversity(posterior)[1],
        lambda o: o.measured_against(posterior=posterior).predict_augmented(np.ones(o.n_params)).value,
    ):
        np.testing.assert_allclose(ask(oracles[0]), ask(oracles[1]), atol=1e-5)


def test_the_distance_of_starts_is_a_loss_of_motifs():
    X, y, start = planted_motif(20, 12, "TGAC", seed=0)
    for strands in ("one", "both"):
        problem = Motif(width=4, background=1, strands=strands, loss="start")
        known = start if strands == "one" else np.column_stack([start, np.where(start < 0, -1, 0)])
        oracle = bound(problem, X, y, hidden=known)
        negative, positive = problem.schema(X, y).classes
        for s in range(9):
            said = np.full(20, s) if strands == "one" else np.column_stack([np.full(20, s), np.zeros(20, int)])
            found = oracle.loss(oracle.encode(np.full(20, positive), said))
            expected = np.where(y == positive, np.minimum(abs(s - start) / 4, 1), 1)
            np.testing.assert_allclose(found, expected, atol=1e-6)
            if strands == "both":
                said[:, 1] = 1  # the other strand
                assert (oracle.loss(oracle.encode(np.full(20, positive), said)) == 1).all()
        nothing = np.full(20, -1) if strands == "one" else np.full((20, 2), -1)
        assert np.array_equal(oracle.loss(oracle.encode(np.full(20, negative), nothing)), (y == positive).astype(float))


def test_the_difference_of_angles_is_a_loss_of_transforms():
    X = np.random.default_rng(0).random((6, 4, 4))
    y, true = np.arange(6) % 2, np.array([0, 1, 2, 0, 1, 2])
    oracle = bound(Transforms(rotations(-30, 30, 3), loss="angle"), X, y, hidden=true)
    for label, state in itertools.product(range(2), range(3)):
        found = oracle.loss(oracle.encode(np.full(6, label), np.full(6, state)))
        np.testing.assert_allclose(found, np.where(label == y, abs(state - true) / 2, 1), atol=1e-6)
    with pytest.raises(ValueError, match="rotations"):
        Transforms([lambda X: X], loss="angle").schema(X, y)


def listed(**settings):
    """Two labels, three places; a sample is the three numbers at them."""
    return PerSample(
        lambda x, y, h: np.array([x[h // 10 - 1], 1.0]) * (1 if y == "up" else -1),
        outputs=[(y, h) for y in ("up", "down") for h in (10, 20, 30)],
        hidden=True,
        **settings,
    )


def test_a_users_loss_of_listed_outputs_sees_the_hidden_value():
    rng = np.random.default_rng(0)
    X, y = list(rng.standard_normal((12, 3))), ["up", "down"] * 6

    def loss(true, true_h, label, h):
        return 1.0 if label != true else abs(true_h - h) / 20

    problem = listed(hidden_loss=loss)
    known = [10, 20, 30, -1] * 3
    oracle = bound(problem, X, y, hidden=known)
    found = oracle.loss(oracle.encode(["up"] * 12, [30] * 12))
    expected = [1.0 if t == "down" else 0.0 if h == -1 else abs(h - 30) / 20 for t, h in zip(y, known, strict=True)]
    np.testing.assert_allclose(found, expected)
    model = DissimilaritySVM(problem, C=5).fit(X, y)
    assert set(model.predict_hidden(X)) <= {10, 20, 30}
    np.testing.assert_allclose([row.sum() for row in model.conditional_proba(X, y)], 1)
    with pytest.raises(TypeError, match="loss="):
        listed(hidden_loss=loss, loss=lambda true, y, h: 0.0).check()
    with pytest.raises(ValueError, match="loss"):
        DissimilaritySVM(listed(hidden_loss=lambda *outputs: 1.0)).fit(X, y)


# the objective


@pytest.mark.parametrize("loss", ["exact", "overlap"])
def test_gradient_of_theta_is_that_of_finite_differences(placed, loss):
    X, y, _ = placed
    oracle = bound(Candidates(loss=loss), X[:12], y[:12])
    pair, rng = pair_of(oracle), np.random.default_rng(2)
    w, theta = rng.standard_normal((2, oracle.n_params))
    _, gradient = pair.theta_objective(w, theta)
    for direction in rng.standard_normal((10, oracle.n_params)):
        step = 1e-5 * direction
        ahead, behind = (pair.theta_objective(w, theta + sign * step)[0] for sign in (1, -1))
        assert (ahead - behind) / 2e-5 == pytest.approx(gradient @ direction, rel=2e-4, abs=1e-4)


def test_joint_objective_is_its_definition(placed):
    X, y, _ = placed
    problem = Candidates(loss="overlap")
    schema = problem.schema(X[:6], y[:6])
    oracle = problem.bind(X[:6], y[:6], schema)
    pair, rng = pair_of(oracle, C=10.0), np.random.default_rng(3)
    w, theta = rng.standard_normal((2, oracle.n_params))

    def scores(weights, i):
        parts = schema.views(weights)
        return parts["weights"] @ np.asarray(X[i]).T + parts["intercept"][:, None]

    total, costs = 0.5 * w @ w + 0.05 * theta @ theta, 1 - SHARED
    for i in range(6):
        chances = np.exp(scores(theta, i)[y[i]])
        chances /= chances.sum()
        mean = np.ones((3, 25))
        mean[y[i]] = chances @ costs
        s = scores(w, i)
        total += 10 / 6 * ((s + mean).max() - s[y[i]].max() - 0.3 * chances @ costs @ chances)
    assert pair.joint_objective(w, oracle.impute(w).code, theta) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("loss", ["exact", "overlap"])
def test_joint_objective_never_rises(placed, loss):
    X, y, _ = placed
    model = DissimilaritySVM(Candidates(loss=loss), C=10, n_init=2).fit(X, y)
    for run in model.runs_:
        objectives = np.array([line.objective for line in run.history])
        assert (np.diff(objectives) <= 1e-9).all()
    np.testing.assert_allclose(model.objective_parts_.sum(axis=1)[-1], model.objective_, rtol=1e-9)
    assert len(model.objective_parts_) == model.n_iter_
    assert (model.objective_parts_[:, 1] <= 0).all()


def test_stochastic_steps_of_the_text_end_near(placed):
    X, y, _ = placed
    joint, text = (
        DissimilaritySVM(Candidates(loss="overlap"), C=10, theta_step=kind).fit(X, y) for kind in ("joint", "text")
    )
    assert 0.5 < text.objective_ / joint.objective_ < 2  # other local optima of the same objective
    assert text.objective_ == min(line.objective for line in text.history_)


# reductions


@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=str)
def test_a_loss_without_the_hidden_value_gives_the_latent_svm(placed, pace):
    X, y, _ = placed
    for problem in (Candidates(), Candidates(loss=[[0, 1, 2], [1, 0, 1], [3, 1, 0]])):
        settings = {"C": 10, "pace": pace, "n_init": 2, "random_state": 5}
        plain, pair = (kind(problem, **settings).fit(X, y) for kind in (LatentSVM, DissimilaritySVM))
        assert np.array_equal(plain.coef_, pair.coef_)
        assert [line.objective for line in plain.history_] == [line.objective for line in pair.history_]
        assert not pair.theta_.any()


def test_delta_gives_the_iterative_latent_svm(placed):
    X, y, _ = placed
    settings = {"C": 10, "n_init": 2}
    iterated = IterativeLatentSVM(Candidates(loss="overlap"), **settings).fit(X, y)
    delta = DissimilaritySVM(Candidates(loss="overlap"), conditional="delta", **settings).fit(X, y)
    assert np.array_equal(delta.coef_, iterated.coef_)
    chances = delta.conditional_proba(X, y)
    assert np.array_equal([row.argmax() for row in chances], delta.impute(X, y))
    assert all(row.max() == 1 for row in chances)


def test_given_hidden_values_make_it_a_structured_svm(placed):
    X, y, hidden = placed
    known, pair = (
        kind(Candidates(loss="overlap"), C=10, tol=1e-5).fit(X, y, hidden=hidden)
        for kind in (LatentSVM, DissimilaritySVM)
    )
    assert pair.objective_ == pytest.approx(known.objective_, abs=10 * 1e-5)
    assert pair.gap_ <= 10 * 1e-5


def test_known_hidden_values_are_honoured(placed):
    X, y, hidden = placed
    wrong = np.where(np.arange(45) % 2, (hidden + 1) % 25, -1)
    model = DissimilaritySVM(Candidates(loss="overlap"), C=10, unknown_weight=1.0).fit(X, y, hidden=wrong)
    assert np.array_equal(model.hidden_[1::2], wrong[1::2])
    chances = model.conditional_proba(X, y, hidden=wrong)
    assert all(chances[i][wrong[i]] == 1 for i in range(1, 45, 2))
    np.testing.assert_allclose([row.sum() for row in chances], 1)


# a planted problem


def place_with_decoy(n, seed):
    """Objects as above, of two classes, and in every bag a decoy far from it: a window alone, with a stronger cue."""
    rng = np.random.default_rng(seed)
    column, row = np.clip(np.round(rng.normal(2, 1, (n, 2))), 0, SIDE - 1).astype(int).T
    y, hidden = np.arange(n) % 2, row * SIDE + column
    rows = rng.standard_normal((n, len(GRID), 6)) + SHARED[hidden][:, :, None] * 4 * np.eye(2, 6)[y][:, None]
    for i in range(n):
        rows[i, rng.choice(np.flatnonzero(SHARED[hidden[i]] == 0))] += 5 * np.eye(6)[2 + y[i]]
    return Ragged.from_list(list(rows)).with_boxes([GRID] * n), y, hidden


def test_it_wins_where_single_estimates_of_hidden_values_mislead():
    """A decoy has the best score, the windows around the object have more of the probability: only a distribution over
    windows tells. All learners begin at the same windows; from random ones the others lose by more."""
    losses = {}
    for seed in range(6):
        X, y, _ = place_with_decoy(50, seed)
        X_test, y_test, truth = place_with_decoy(200, 100 + seed)
        oracle = bound(Candidates(), X, y)
        means = oracle.expectations(np.zeros(oracle.n_params), label=np.ones(50), free=-np.ones(50)).features
        init = oracle.split(oracle.impute(means).code)[1]
        for kind, loss in ((LatentSVM, "0/1"), (IterativeLatentSVM, "overlap"), (DissimilaritySVM, "overlap")):
            model = kind(Candidates(loss=loss), C=10, init=init).fit(X, y)
            right = model.predict(X_test) == y_test
            shared = SHARED[model.predict_hidden(X_test), truth]
            losses.setdefault(kind.__name__, []).append(1 - np.mean(right * shared))
    mean = {name: np.mean(values) for name, values in losses.items()}
    assert mean["DissimilaritySVM"] < 0.9 * min(mean["LatentSVM"], mean["IterativeLatentSVM"]), mean


# like the others


def test_theta_may_have_features_of_its_own(placed):
    X, y, _ = placed
    few = Candidates(loss="overlap", fit_intercept=False)
    model = DissimilaritySVM(Candidates(loss="overlap"), C=10, conditional=few).fit(X, y)
    assert model.theta_.size == 3 * 8
    assert model.coef_.size == 3 * 9
    np.testing.assert_allclose([row.sum() for row in model.conditional_proba(X, y)], 1)


def test_a_conditional_with_other_hidden_values_is_refused(placed):
    X, y, _ = placed

    class Halved(Candidates):
        def rows(self, X):
            return X.values[::25], np.arange(len(X) + 1)

    with pytest.raises(ValueError, match="conditional"):
        DissimilaritySVM(Candidates(loss="overlap"), conditional=Halved()).fit(X, y)


def test_files_keep_both_models(placed, tmp_path):
    X, y, _ = placed
    for conditional in (None, Candidates(fit_intercept=False), "delta"):
        model = DissimilaritySVM(Candidates(loss="overlap"), C=10, conditional=conditional).fit(X, y)
        model.save(tmp_path / "pair.tacit")
        again = load(tmp_path / "pair.tacit")
        assert np.array_equal(again.theta_, model.theta_)
        one, other = model.conditional_proba(X, y), again.conditional_proba(X, y)
        assert np.array_equal(one.values, other.values)
        assert np.array_equal(again.objective_parts_, model.objective_parts_)


@pytest.mark.parametrize("kind", ["joint", "text"])
def test_resumed_fits_end_at_the_same_bits(placed, tmp_path, kind):
    X, y, _ = placed
    settings = {"C": 10, "n_init": 2, "theta_step": kind, "verbose": 0}
    whole = DissimilaritySVM(Candidates(loss="overlap"), **settings).fit(X, y)
    seen = []
    path = tmp_path / "pair.state"

    def stop(line):
        seen.append(line)
        return len(seen) == 9

    with pytest.warns(UserWarning, match="callback"):
        DissimilaritySVM(Candidates(loss="overlap"), **settings, checkpoint=path, callbacks=[stop]).fit(X, y)
    again = DissimilaritySVM(Candidates(loss="overlap"), **settings, checkpoint=path, resume=True).fit(X, y)
    assert np.array_equal(again.coef_, whole.coef_)
    assert np.array_equal(again.theta_, whole.theta_)
    assert np.array_equal(again.objective_parts_, whole.objective_parts_)


def test_results_do_not_depend_on_threads(placed):
    X, y, _ = placed
    from tacit.runtime.blocks import smallest_blocks

    with smallest_blocks():
        models = [DissimilaritySVM(Candidates(loss="overlap"), C=10, n_jobs=n).fit(X[:9], y[:9]) for n in (1, 2)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].theta_, models[1].theta_)


def test_easy_samples_first(placed):
    X, y, _ = placed
    model = DissimilaritySVM(Candidates(loss="overlap"), C=10, pace=SelfPaced()).fit(X, y)
    assert min(line.samples_in for line in model.history_) < 45
    assert model.history_[-1].samples_in == 45
    assert model.status_.name == "CONVERGED"
    assert model.theta_.any()


@pytest.mark.parametrize(
    ("params", "keyword"),
    [
        ({"J": 0.0}, "J"),
        ({"beta": 1.0}, "beta"),
        ({"beta": -0.1}, "beta"),
        ({"conditional": "gauss"}, "conditional"),
        ({"conditional": 3}, "conditional"),
        ({"theta_step": "newton"}, "theta_step"),
        ({"rescaling": "slack"}, "rescaling"),
    ],
)
def test_wrong_parameters_are_refused(placed, params, keyword):
    X, y, _ = placed
    with pytest.raises(ValueError, match=keyword):
        DissimilaritySVM(Candidates(loss="overlap"), **params).fit(X, y)


def test_problems_without_posteriors_are_refused_only_where_they_are_needed():
    words = [[[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3, [[0.0, 1.0]] * 3 + [[1.0, 0.0]] * 3]
    model = DissimilaritySVM(Transcript(states=1), C=10).fit(words, [["a", "b"], ["b", "a"]])
    assert len(model.predict(words)) == 2
    with pytest.raises(CapabilityError, match="hidden_posterior"):
        model.conditional_proba(words, [["a", "b"], ["b", "a"]])


def test_unknown_regions_are_refused_where_no_distribution_over_them_is_known():
    """Without P_θ over regions this would be a latent SVM."""
    problem = Regions()
    example = problem.example(np.random.default_rng(0))
    complete = [list(labels) for labels in example.y]
    missing = [[None, *complete[0][1:]], *complete[1:]]
    with pytest.raises(CapabilityError, match="IterativeLatentSVM"):
        DissimilaritySVM(problem).fit(example.X, missing)
    settings = {"C": 5.0, "random_state": 0}
    delta = DissimilaritySVM(problem, conditional="delta", **settings).fit(example.X, missing)
    iterative = IterativeLatentSVM(problem, **settings).fit(example.X, missing)
    np.testing.assert_array_equal(delta.coef_, iterative.coef_)
    known = DissimilaritySVM(problem, **settings).fit(example.X, complete)
    assert known.objective_ == LatentSVM(problem, **settings).fit(example.X, complete).objective_


# the latent SVM of chapter 4


def test_an_imputed_loss_takes_one_convex_solve_per_imputation(placed):
    X, y, hidden = placed
    problem, C = Candidates(loss="overlap"), 100.0
    first = np.where(np.arange(len(y)) % 6, hidden, 0)
    model = ImputedLossSVM(problem, C=C, tol=1e-8, init=first, escape=False).fit(X, y)
    objectives, states = [], first
    open_ = problem.bind(X, y, model.schema_)
    for _ in range(len(model.history_)):  # the same by hand, with structured SVMs
        w = StructuredSVM(problem, C=C, tol=1e-8).fit(X, y, hidden=states).coef_
        states = open_.split(open_.impute(w).code)[1]
        samples = problem.bind(X, y, model.schema_, hidden=states)
        slack = samples.predict_augmented(w).value - samples.impute(w).value
        objectives.append(0.5 * w @ w + C * slack.mean())
    assert [line.objective for line in model.history_] == pytest.approx(objectives, rel=1e-3)
    assert model.objective_ == pytest.approx(min(line.objective for line in model.history_))


def test_an_imputed_loss_of_labels_alone_is_the_latent_svm(placed):
    X, y, _ = placed
    one, other = (kind(Candidates(), C=10, n_init=2).fit(X, y) for kind in (LatentSVM, ImputedLossSVM))
    assert np.array_equal(one.coef_, other.coef_)


def test_an_imputed_loss_has_no_pace(placed):
    with pytest.raises(ValueError, match="pace"):
        ImputedLossSVM(Candidates(loss="overlap"), pace=SelfPaced()).fit(*placed[:2])

"""Hidden classes of queries: the gradient is the whole one, the objective never rises, planted classes are found."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import tacit
from tacit import SelfPaced
from tacit.ranking import GlobalRanker, MixtureRanker, TransductiveRanker, Triplets
from tacit.ranking.mixture import Mixture
from tacit.ranking.mixture_ranker import with_constant
from tacit.ranking.oracle import RankingOracle
from tacit.ranking.ranker import read_training
from tacit.runtime.archive import StorageError, read_archive, write_archive


def planted(seed=0, n_queries=120, n_classes=2, per_query=10):
    """Rows whose grades follow opposed weights: X, y, group, query features that tell which weights, and classes."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n_classes, 4))
    weights -= weights.mean(axis=0)
    features = rng.standard_normal((n_queries, 3))
    classes = (features @ rng.standard_normal((3, n_classes))).argmax(axis=1)
    X = rng.standard_normal((n_queries * per_query, 4))
    scores = (X * weights[np.repeat(classes, per_query)]).sum(axis=1)
    return X, (scores > 0).astype(int), np.full(n_queries, per_query), features, classes


@pytest.fixture(scope="module")
def data():
    return planted()


@pytest.fixture(scope="module")
def fitted(data):
    X, y, group, features, _ = data
    return MixtureRanker(2, n_init=2).fit(X, y, group=group, query_features=features)


def objective_of(X, y, group, features, C=10.0):
    training = read_training(GlobalRanker(), X, y, None, group, features)
    return Mixture(training, with_constant(training.queries), C, 0.1)


def test_the_gradient_is_that_of_finite_differences(data):
    mixture = objective_of(*data[:4])
    rng = np.random.default_rng(1)
    Z, W = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    slopes = mixture.gradient(Z, W)
    step = 1e-6
    for number, slope in enumerate(slopes):
        for place in np.ndindex(slope.shape):
            points = [[Z.copy(), W.copy()] for _ in range(2)]
            points[0][number][place] += step
            points[1][number][place] -= step
            difference = (mixture.value(*points[0]) - mixture.value(*points[1])) / (2 * step)
            assert np.isclose(slope[place], difference, rtol=1e-4, atol=1e-4)


def test_the_value_is_that_of_listed_pairs(data):
    X, y, group, features, _ = data
    mixture = objective_of(X, y, group, features)
    rng = np.random.default_rng(2)
    Z, W = rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    scale = mixture.training.scale
    total = 0.0
    for q, a, b in Triplets.from_groups(y, group).to_array():
        gate = np.exp(W @ np.append(features[q], 1))
        weights = gate / gate.sum() @ Z
        total += max(0.0, 1 - (X[a] - X[b]) / scale @ weights)
    penalty = 0.5 * (Z**2).sum() + 0.05 * (W**2).sum()
    assert np.isclose(mixture.value(Z, W), penalty + 10 / mixture.training.size * total)


def test_the_numbering_of_classes_and_the_order_of_queries_change_no_value(data):
    X, y, group, features, _ = data
    mixture = objective_of(X, y, group, features)
    rng = np.random.default_rng(3)
    Z, W = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    order = [2, 0, 1]
    assert np.isclose(mixture.value(Z, W), mixture.value(Z[order], W[order]), rtol=1e-12)
    queries = rng.permutation(len(group))
    rows = (queries[:, None] * 10 + np.arange(10)).ravel()
    moved = objective_of(X[rows], y[rows], group, features[queries])
    assert np.isclose(mixture.value(Z, W), moved.value(Z, W), rtol=1e-9)


def test_planted_classes_are_found_and_rank_better_than_one_weight_vector(data, fitted):
    X, y, group, features, classes = data
    found = fitted.class_proba(query_features=features).argmax(axis=1)
    assert adjusted_rand_score(classes, found) > 0.9
    single = GlobalRanker().fit(X, y, group=group)
    assert single.score(X, y, group=group) < 0.75
    assert fitted.score(X, y, group=group, query_features=features) > 0.95
    shares = fitted.class_proba(query_features=features).sum(axis=0)
    assert shares[0] >= shares[1]


def test_the_objective_never_rises_within_a_start(fitted):
    for start in range(2):
        values = [line.objective for line in fitted.history_ if line.start == start]
        assert len(values) > 1
        assert (np.diff(values) <= 0).all()
    assert fitted.objective_ == min(line.objective for line in fitted.history_)


def test_one_class_is_the_global_ranker(data):
    X, y, group, features, _ = data
    one = MixtureRanker(1, tol=1e-6).fit(X, y, group=group, query_features=features)
    single = GlobalRanker(tol=1e-6).fit(X, y, group=group)
    assert np.isclose(one.objective_, single.objective_, rtol=1e-6)
    assert np.allclose(one.class_weights_[0], single.coef_, rtol=1e-2)


def test_auto_finds_the_planted_number_of_classes(data):
    X, y, group, features, _ = data
    ranker = MixtureRanker("auto", max_classes=3, n_init=2).fit(X, y, group=group, query_features=features)
    assert ranker.n_classes_ == 2
    assert ranker.validation_scores_.shape == (3,)
    assert ranker.validation_scores_[1] > ranker.validation_scores_[0] + 0.1


def test_the_same_seed_gives_the_same_ranker_and_a_file_brings_it_back(data, fitted, tmp_path):
    X, y, group, features, _ = data
    again = clone(fitted).fit(X, y, group=group, query_features=features)
    assert np.array_equal(again.class_weights_, fitted.class_weights_)
    fitted.save(tmp_path / "mixture.tacit")
    loaded = tacit.load(tmp_path / "mixture.tacit")
    ranking = fitted.rank(X, 3, group=group, query_features=features)
    assert np.array_equal(loaded.rank(X, 3, group=group, query_features=features), ranking)
    assert loaded.history_ == fitted.history_


def test_a_stopped_fit_resumes_to_the_same_bits(data, fitted, tmp_path):
    X, y, group, features, _ = data
    path = tmp_path / "state"
    stop = [lambda step: step.start == 1]
    part = MixtureRanker(2, n_init=2, checkpoint=path, callbacks=stop)
    part.fit(X, y, group=group, query_features=features)
    assert part.status_.name == "STOPPED"
    whole = MixtureRanker(2, n_init=2, checkpoint=path, resume=True).fit(X, y, group=group, query_features=features)
    assert np.array_equal(whole.class_weights_, fitted.class_weights_)
    assert np.array_equal(whole.gate_, fitted.gate_)


def test_terms_of_queries_are_means_of_listed_hinges_and_a_part_keeps_their_factor(data):
    X, y, group, features, _ = data
    mixture = objective_of(X, y, group, features)
    rng = np.random.default_rng(5)
    Z, W = rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    hinges = {}
    for q, a, b in Triplets.from_groups(y, group).to_array():
        gate = np.exp(W @ np.append(features[q], 1))
        hinge = 1 - (X[a] - X[b]) / mixture.training.scale @ (gate / gate.sum() @ Z)
        hinges.setdefault(q, []).append(max(0.0, hinge))
    np.testing.assert_allclose(mixture.query_terms(Z, W), [np.mean(hinges[q]) for q in sorted(hinges)])
    assert mixture.take(np.array([0, 3, 7])).weight == pytest.approx(mixture.weight)


def test_a_pace_lets_queries_in_and_ends_with_all(data):
    X, y, group, features, _ = data
    ranker = MixtureRanker(2, n_init=1, pace=SelfPaced(start=0.3)).fit(X, y, group=group, query_features=features)
    counts = [line.samples_in for line in ranker.history_]
    assert counts[0] == counts[1] == counts[-1] > min(counts)
    assert ranker.status_.name == "CONVERGED"


def test_a_stopped_paced_fit_resumes_to_the_same_bits(data, tmp_path):
    X, y, group, features, _ = data
    settings, path = {"n_classes": 2, "n_init": 1, "pace": SelfPaced(start=0.3)}, tmp_path / "state"
    whole = MixtureRanker(**settings).fit(X, y, group=group, query_features=features)
    stop = [lambda step: step.iteration == 3]
    MixtureRanker(**settings, checkpoint=path, callbacks=stop).fit(X, y, group=group, query_features=features)
    resumed = MixtureRanker(**settings, checkpoint=path, resume=True).fit(X, y, group=group, query_features=features)
    assert np.array_equal(resumed.gate_, whole.gate_)
    assert [line.samples_in for line in resumed.history_] == [line.samples_in for line in whole.history_]


def test_ctrl_c_keeps_the_best_so_far(data):
    X, y, group, features, _ = data

    def interrupt(step):
        if step.iteration == 1:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        ranker = MixtureRanker(2, callbacks=[interrupt]).fit(X, y, group=group, query_features=features)
    assert ranker.status_.name == "INTERRUPTED"
    assert ranker.score(X, y, group=group, query_features=features) > 0.5


def test_ctrl_c_within_a_convex_solve_ends_the_fit(data, fitted, monkeypatch):
    X, y, group, features, _ = data
    lines, calls, search = [], [], RankingOracle.predict_augmented

    def search_or_interrupt(*args, **options):
        calls.append(len(lines))
        if calls.count(2) == 3 and calls[-1] == 2:  # the solve after the second line is on its way
            raise KeyboardInterrupt
        return search(*args, **options)

    monkeypatch.setattr(RankingOracle, "predict_augmented", search_or_interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        ranker = MixtureRanker(2, n_init=2, callbacks=[lines.append]).fit(X, y, group=group, query_features=features)
    assert ranker.status_.name == "INTERRUPTED"
    assert [line.objective for line in ranker.history_] == [line.objective for line in fitted.history_[:2]]


def test_a_checkpoint_of_another_shape_is_refused(data, tmp_path):
    X, y, group, features, _ = data
    path = tmp_path / "state"
    MixtureRanker(2, n_init=1, checkpoint=path).fit(X, y, group=group, query_features=features)
    header, arrays = read_archive(path, "checkpoint")
    for name in ("W", "Z", "planes"):
        key = f"state.now.{name}"
        write_archive(path, "checkpoint", header, {**arrays, key: arrays[key][:, :-1]})
        with pytest.raises(StorageError, match=rf"\b{name}\b"):
            MixtureRanker(2, n_init=1, checkpoint=path, resume=True).fit(X, y, group=group, query_features=features)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_classes": 0}, "n_classes"),
        ({"n_classes": "some"}, "n_classes"),
        ({"gate_penalty": 0}, "gate_penalty"),
        ({"n_init": 1.5}, "n_init"),
        ({"validation": 1}, "validation"),
        ({"pace": SelfPaced(mu=1.0)}, "mu"),
        ({"pace": SelfPaced(warmup=50)}, "max_iter"),
    ],
)
def test_bad_parameters_are_refused(data, params, message):
    X, y, group, features, _ = data
    with pytest.raises(ValueError, match=message):
        MixtureRanker(**params).fit(X, y, group=group, query_features=features)


def test_queries_must_have_the_features_of_training(data, fitted):
    X, _, group, features, _ = data
    with pytest.raises(ValueError, match="features"):
        fitted.rank(X, 2, group=group)  # the means of rows have four
    with pytest.raises(ValueError, match="group"):
        fitted.decision_function(X)
    with pytest.raises(ValueError, match="query_features"):
        fitted.rank(X, 2, group=group, query_features=features[:5])


class TestTransductive:
    def test_all_neighbours_are_the_global_ranker(self, data):
        X, y, group, features, _ = data
        near = TransductiveRanker(n_neighbors=1000, tol=1e-5).fit(X, y, group=group, query_features=features)
        single = GlobalRanker(tol=1e-5).fit(X, y, group=group)
        weights = near.query_weights(features[:4])
        assert np.allclose(weights, single.coef_, rtol=2e-2, atol=1e-3)

    def test_neighbours_follow_planted_classes(self, data, tmp_path):
        X, y, group, features, _ = data
        near = TransductiveRanker(n_neighbors=8).fit(X, y, group=group, query_features=features)
        single = GlobalRanker().fit(X, y, group=group)
        some = {"X": X[:300], "y": y[:300], "group": group[:30], "query_features": features[:30]}
        score = near.score(**some)
        assert score > single.score(X, y, group=group) + 0.1
        near.save(tmp_path / "near.tacit")
        again = tacit.load(tmp_path / "near.tacit")
        assert again.score(**some) == score

    def test_neighbours_are_counted(self, data):
        X, y, group, features, _ = data
        with pytest.raises(ValueError, match="n_neighbors"):
            TransductiveRanker(n_neighbors=0).fit(X, y, group=group, query_features=features)

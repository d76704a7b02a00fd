"""Graded rows with query ids: pairs weighted by gain, scales by query, C by cross-validation over queries."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import tacit
from tacit.ranking import GlobalRanker, MixtureRanker, Relevances, TransductiveRanker, Triplets, measures
from tacit.ranking.oracle import RankingOracle
from tacit.ranking.selection import CS
from tests.ranking.rows import judged_rows, list_pairs


def retrieval(seed=0, n_queries=30, n_items=40):
    """Queries and items whose relevance is the likeness of two columns out of four."""
    rng = np.random.default_rng(seed)
    queries, items = rng.random((n_queries, 4)), rng.random((n_items, 4))
    truth = -np.abs(queries[:, None, :2] - items[None, :, :2]).sum(axis=2)
    relevances = Relevances({"right": [0, 1], "wrong": [2, 3]}, ["l1", "rbf"])
    return queries, items, truth, relevances


def weighted_hinge(X, pairs, gains, w):
    return sum((gains[a] - gains[b]) * max(0.0, 1 - X[a] @ w + X[b] @ w) for _, a, b in pairs)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_with_a_gain_the_loss_is_that_of_weighted_pairs(gain):
    X, y, group = judged_rows(3, grades=5)
    pairs, gains = list_pairs(y, group), y if gain == "linear" else 2**y - 1
    triplets = Triplets.from_groups(y, group, gain=gain)
    triplets.check()
    assert triplets.weight_per_query.sum() == sum(gains[a] - gains[b] for _, a, b in pairs)
    kept = triplets.take(np.flatnonzero(triplets.per_query))
    w = np.array([0.3, -0.2, 0.5, 1.0])
    oracle = RankingOracle(X[kept.items], kept)
    best = oracle.predict_augmented(w)
    assert oracle.accepts(best.code)
    assert np.isclose(best.value.sum(), weighted_hinge(X, pairs, gains, w))
    expected = sum((gains[a] - gains[b]) * (X[b] - X[a]) for _, a, b in pairs if X[a] @ w - X[b] @ w < 1)
    assert np.allclose(oracle.features(best.code, np.ones(oracle.n_samples)), expected)


def test_with_a_gain_the_optimum_is_that_of_liblinear_with_sample_weights():
    X, y, group = judged_rows(1, n_queries=40, grades=4)
    pairs, gains = np.array(list_pairs(y, group)), 2**y - 1
    weight = gains[pairs[:, 1]] - gains[pairs[:, 2]]
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    peer = LinearSVC(loss="hinge", C=20 / weight.sum(), fit_intercept=False, tol=1e-8, max_iter=100_000)
    w = peer.fit((X[pairs[:, 1]] - X[pairs[:, 2]]) * signs[:, None], signs, sample_weight=weight).coef_.ravel()
    optimum = 0.5 * w @ w + 20 / weight.sum() * weighted_hinge(X, pairs, gains, w)
    ranker = GlobalRanker(C=20, standardise=False, gain="exponential", tol=1e-5).fit(X, y, group=group)
    assert ranker.bound_ <= optimum * (1 + 1e-9)
    assert optimum * (1 - 1e-9) <= ranker.objective_ <= optimum * (1 + 2e-5)
    one_class = MixtureRanker(1, C=20, standardise=False, gain="exponential", verbose=0).fit(X, y, group=group)
    assert np.isclose(one_class.objective_, optimum, rtol=2e-3)


def test_query_ids_are_the_same_as_sizes_of_groups():
    X, y, group = judged_rows(2)
    qid = np.repeat([f"q{i}" for i in range(len(group))], group)
    ranker = GlobalRanker(gain="linear").fit(X, y, qid=qid)
    assert np.array_equal(ranker.coef_, GlobalRanker(gain="linear").fit(X, y, group=group).coef_)
    ranking = ranker.rank(X, 3, qid=qid)
    assert np.array_equal(ranking, ranker.rank(X, 3, group=group))
    assert ranker.score(X, y, qid=qid) == ranker.score(X, y, group=group)
    same = measures.ndcg(ranking, y, 3, qid=qid), measures.ndcg(ranking, y, 3, group=group)
    assert np.array_equal(*same, equal_nan=True)


@pytest.mark.parametrize(
    ("qid", "word"),
    [([1, 2, 1, 2], "adjacent"), ([1, 1, 2], "4 rows"), ([0.5, 1, 1, 1], "strings"), ([[1, 1, 2, 2]], "per row")],
)
def test_query_ids_that_say_nothing_are_refused(qid, word):
    with pytest.raises(ValueError, match=word):
        GlobalRanker().fit(np.ones((4, 2)), [0, 1, 0, 1], qid=qid)


@pytest.mark.parametrize(
    ("options", "arguments", "word"),
    [
        ({"gain": "exponential"}, {"y": [0, 31, 0, 1]}, "31"),
        ({"gain": "linear"}, {"y": [0, 0.5, 0, 1]}, "whole"),
        ({"gain": "log"}, {}, "gain"),
        ({"standardise": "rows"}, {}, "standardise"),
        ({"C": "auto"}, {}, "cv"),
        ({"C": "cv"}, {"group": [4]}, "two queries"),
        ({}, {"qid": [0, 0, 1, 1]}, "not both"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, arguments, word):
    given = {"y": [0, 1, 0, 1], "group": [2, 2], **arguments}
    with pytest.raises(ValueError, match=word):
        GlobalRanker(**options).fit(np.eye(4), **given)


@pytest.mark.parametrize("options", [{"gain": "linear"}, {"standardise": "query"}])
def test_options_of_judged_rows_are_refused_with_triplets(options):
    queries, items, truth, relevances = retrieval()
    with pytest.raises(ValueError, match="judged rows"):
        GlobalRanker(relevances, **options).fit(queries, items, Triplets.from_similarity(truth, top=4, others=6))


@pytest.mark.parametrize("gain", [None, "exponential"])
def test_C_is_the_best_on_held_out_queries(gain, tmp_path):
    """A hundred columns of noise and few queries: a weak penalty fits the noise."""
    rng = np.random.default_rng(0)
    X, group = rng.standard_normal((300, 100)), [10] * 30
    y = np.clip((X[:, 0] + rng.standard_normal(300)).round(), 0, 3)
    ranker = GlobalRanker(C="cv", gain=gain).fit(X, y, group=group)
    assert ranker.C_ == CS[ranker.cv_scores_.argmax()] < 100
    folds = np.random.RandomState(0).permutation(30) % 5
    at_one, j = [], int(np.flatnonzero(CS == 1.0)[0])
    for fold in range(5):
        kept, held = (np.repeat(part, 10) for part in (folds != fold, folds == fold))
        model = GlobalRanker(C=1.0, gain=gain, standardise=False).fit(X[kept] / ranker.scale_, y[kept], group=[10] * 24)
        Z = X[held] / ranker.scale_
        if gain is None:
            _, right, total = model.score_queries(Z, y[held], group=[10] * 6)
            at_one.extend(right / total)
        else:
            at_one.extend(measures.ndcg(model.rank(Z, 10, group=[10] * 6), y[held], 10, gain=gain, group=[10] * 6))
    assert np.isclose(np.nanmean(at_one), ranker.cv_scores_[j], atol=1e-3)
    ranker.save(tmp_path / "ranker.tacit")
    assert tacit.load(tmp_path / "ranker.tacit").C_ == ranker.C_


def test_scales_of_a_query_do_not_matter_when_each_is_divided_by_its_own():
    X, y, group = judged_rows(5, n_queries=20, longest=12)
    stretched = X * np.repeat(np.random.default_rng(1).uniform(0.1, 10, (20, 1)), group, axis=0)
    options = {"standardise": "query", "gain": "exponential", "C": 1.0}
    one, other = (GlobalRanker(**options).fit(table, y, group=group) for table in (X, stretched))
    assert np.allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    assert np.allclose(one.decision_function(X, group=group), other.decision_function(X, group=group), atol=1e-6)
    assert np.isclose(one.score(X, y, group=group), other.score(stretched, y, group=group))
    with pytest.raises(ValueError, match="group is missing"):
        one.decision_function(X)


def test_mixtures_and_neighbours_take_gains_and_choose_C():
    X, y, group = judged_rows(6, n_queries=20)
    for ranker in (MixtureRanker(2, n_init=1, verbose=0), TransductiveRanker(n_neighbors=5)):
        ranker.set_params(C="cv", gain="exponential", standardise="query").fit(X, y, group=group)
        assert ranker.C_ in CS
        assert ranker.rank(X, 2, group=group).shape == (20, 2)
    with pytest.raises(ValueError, match="auto"):
        MixtureRanker("auto", C="cv").fit(X, y, group=group)


def test_gains_that_do_not_follow_grades_are_refused():
    good = Triplets.from_groups([0, 1, 2], [3], gain="linear")
    for gains in (np.array([0, 2, 1]), np.array([0, 1]), np.array([-1, 0, 1]), np.array([1, 1, 2])):
        with pytest.raises(ValueError, match="gains"):
            Triplets(good.offsets, good.items, good.grades, gains=gains).check()

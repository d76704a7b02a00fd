"""Rankings from triplets: the objective is that of listed pairs, the optimum that of liblinear."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import LinearSVC

import tacit
from tacit.ranking import GlobalRanker, Relevances, Triplets, counting
from tacit.ranking.oracle import RankingOracle


def judged_rows(seed, n_queries=12, grades=3, m=4, longest=9):
    """Rows of several queries, some of which have one row, or rows of one grade only."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, longest, n_queries)
    y = rng.integers(0, grades, group.sum())
    X = rng.standard_normal((group.sum(), m)) + 0.7 * y[:, None] * np.linspace(-1, 1, m)
    return X, y, group


def list_pairs(y, group):
    """Query, better row and worse row of every triplet, by a plain loop."""
    starts = np.concatenate([[0], np.cumsum(group)])
    return [
        (q, a, b)
        for q in range(len(group))
        for a in range(starts[q], starts[q + 1])
        for b in range(starts[q], starts[q + 1])
        if y[a] > y[b]
    ]


def hinge(X, pairs, w):
    return sum(max(0.0, 1 - X[a] @ w + X[b] @ w) for _, a, b in pairs)


@pytest.mark.parametrize("grades", [2, 3, 7])
def test_the_loss_is_that_of_listed_pairs(grades):
    X, y, group = judged_rows(grades, grades=grades)
    pairs = list_pairs(y, group)
    triplets = Triplets.from_groups(y, group)
    assert len(triplets) == len(pairs)
    assert sorted(map(tuple, triplets.to_array().tolist())) == pairs
    kept = triplets.take(np.flatnonzero(triplets.per_query))
    w = np.array([0.3, -0.2, 0.5, 1.0])
    oracle = RankingOracle(X[kept.items], kept)
    best = oracle.augmented(w)
    assert np.isclose(best.value.sum(), hinge(X, pairs, w))
    active = [(a, b) for _, a, b in pairs if X[a] @ w - X[b] @ w < 1]
    assert oracle.loss(best.code).sum() == len(active)
    assert np.allclose(oracle.features(best.code, np.ones(oracle.n_samples)), sum(X[b] - X[a] for a, b in active))


def test_sorting_and_comparing_all_pairs_count_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    scores = np.round(rng.standard_normal(400) * 3) / 2  # many ties, and differences of exactly one
    triplets = Triplets.from_groups(rng.integers(0, 2, 400), [100, 100, 200])
    oracle = RankingOracle(np.zeros((400, 1)), triplets)
    listed = RankingOracle(np.zeros((400, 1)), Triplets.from_array(triplets.to_array()))
    for strict in (True, False):
        compared = oracle.count(scores, 1.0, strict)
        assert np.array_equal(compared[1], listed.count(scores, 1.0, strict)[1])
        sorted_code = np.zeros_like(compared[0])
        active = np.zeros(3, dtype=np.int64)
        with monkeypatch.context() as patch:
            patch.setattr(counting, "MAX_COMPARED", 0)
            counting.count_two_grades.plain(
                scores,
                triplets.offsets,
                triplets.grades,
                1.0,
                strict,
                oracle._better,
                oracle._worse,
                sorted_code,
                active,
            )
        assert np.array_equal(sorted_code, compared[0])
        graded = np.zeros_like(compared[0])
        counting.count_graded(
            scores, triplets.offsets, triplets.grades, triplets.n_grades, 1.0, strict,
            oracle._better, oracle._worse, graded, active,
        )  # fmt: skip
        assert np.array_equal(graded, compared[0])


def test_the_global_ranker_reaches_the_optimum_of_liblinear_on_pairs():
    X, y, group = judged_rows(1, n_queries=60)
    pairs = np.array(list_pairs(y, group))
    differences = X[pairs[:, 1]] - X[pairs[:, 2]]
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    peer = LinearSVC(loss="hinge", C=50 / len(pairs), fit_intercept=False, tol=1e-8, max_iter=100_000)
    w = peer.fit(differences * signs[:, None], signs).coef_.ravel()
    optimum = 0.5 * w @ w + 50 / len(pairs) * hinge(X, pairs, w)
    ranker = GlobalRanker(C=50, standardise=False, tol=1e-5).fit(X, y, group=group)
    assert ranker.status_.name == "CONVERGED"
    assert ranker.bound_ <= optimum * (1 + 1e-9)
    assert optimum * (1 - 1e-9) <= ranker.objective_ <= optimum * (1 + 2e-5)
    assert np.isclose(
        ranker.objective_, 0.5 * ranker.coef_ @ ranker.coef_ + 50 / len(pairs) * hinge(X, pairs, ranker.coef_)
    )
    assert ranker.n_triplets_ == len(pairs)


def retrieval(seed=0, n_queries=30, n_items=40):
    """Queries and items whose relevance is the likeness of two columns out of four."""
    rng = np.random.default_rng(seed)
    queries, items = rng.random((n_queries, 4)), rng.random((n_items, 4))
    truth = -np.abs(queries[:, None, :2] - items[None, :, :2]).sum(axis=2)
    relevances = Relevances({"right": [0, 1], "wrong": [2, 3]}, ["l1", "rbf"])
    return queries, items, truth, relevances


def test_implicit_and_listed_triplets_give_the_same_ranker():
    queries, items, truth, relevances = retrieval()
    implicit = Triplets.from_similarity(truth, top=4, others=6)
    one = GlobalRanker(relevances).fit(queries, items, implicit)
    other = GlobalRanker(relevances).fit(queries, items, implicit.to_array())
    assert len(implicit) == one.n_triplets_ == other.n_triplets_ == 30 * 24
    assert np.isclose(one.objective_, other.objective_, rtol=1e-9)
    assert np.allclose(one.coef_, other.coef_, rtol=1e-6)


def test_rank_finds_the_highest_scores_whatever_the_blocks():
    queries, items, truth, relevances = retrieval()
    ranker = GlobalRanker(relevances).fit(queries, items, Triplets.from_similarity(truth, top=4, others=6))
    scores = ranker.decision_function(queries)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :7]
    assert np.array_equal(ranker.rank(queries, 7), best)
    ranker.set_params(relevances__budget=1_000)
    assert np.array_equal(ranker.rank(queries, 7), best)
    itself = best[:, 0]
    assert np.array_equal(ranker.rank(queries, 6, itself=itself), best[:, 1:])
    assert (ranker.rank(queries, 41)[:, 40] == -1).all()


def test_the_relevances_of_pairs_are_those_of_scikit_learn():
    queries, items, _, _ = retrieval()
    relevances = Relevances(None, ["chi2", "intersection", "rbf", "cosine", "l1", "l2"])
    table = relevances.table(queries, items)
    q, i = np.unravel_index(np.arange(table.shape[0] * table.shape[1]), table.shape[:2])
    assert np.allclose(relevances.pairs(queries, items, q, i), table[q, i], atol=1e-7)
    assert np.allclose(table[:, :, 1], np.minimum(queries[:, None], items[None]).sum(axis=2))
    weights = np.random.default_rng(1).random((len(queries), 6))
    for rows, columns, block in relevances.set_params(budget=2_000).combined(queries, items, weights):
        assert np.allclose(block, np.einsum("qim,qm->qi", table[rows, columns], weights[rows]), atol=1e-7)


def test_a_ranker_is_an_estimator_and_comes_back_from_a_file(tmp_path):
    queries, items, truth, relevances = retrieval()
    triplets = Triplets.from_similarity(truth, top=4, others=6)
    ranker = clone(GlobalRanker(relevances, C=7)).fit(queries, items, triplets)
    ranker.save(tmp_path / "r.tacit")
    again = tacit.load(tmp_path / "r.tacit")
    assert again.get_params()["C"] == 7
    assert np.array_equal(again.rank(queries, 5), ranker.rank(queries, 5))
    assert again.status_ is ranker.status_
    assert len(again.history_) == len(ranker.history_)

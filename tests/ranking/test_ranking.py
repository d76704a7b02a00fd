"""Rankings from triplets: the objective is that of listed pairs, the optimum that of liblinear."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import tacit
from tacit.ranking import GlobalRanker, MixtureRanker, Relevances, Triplets, counting
from tacit.ranking.judgements import BLOCK_BYTES
from tacit.ranking.oracle import RankingOracle
from tacit.ranking.relevances import SIMILARITIES
from tacit.runtime.blocks import smallest_blocks
from tacit.solvers import Bundle, FrankWolfe, Subgradient
from tests.ranking.rows import judged_rows, list_pairs


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
    best = oracle.predict_augmented(w)
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
    for rows, columns, block in relevances.set_params(budget=2_000).score_blocks(queries, items, weights):
        assert np.allclose(block, np.einsum("qim,qm->qi", table[rows, columns], weights[rows]), atol=1e-7)


def test_a_ranker_is_an_estimator_and_comes_back_from_a_file(tmp_path):
    queries, items, truth, relevances = retrieval()
    triplets = Triplets.from_similarity(truth, top=4, others=6)
    ranker = clone(GlobalRanker(relevances, C=7)).fit(queries, items, triplets)
    ranker.save(tmp_path / "r.tacit")
    again = tacit.load(tmp_path / "r.tacit")
    assert again.get_params()["C"] == 7
    assert np.array_equal(again.rank(queries, 5), ranker.rank(queries, 5))
    cut = clone(ranker).set_params(relevances__families={"right": slice(0, 2), "wrong": slice(2, None)})
    cut.fit(queries, items, triplets).save(tmp_path / "cut.tacit")
    assert np.array_equal(tacit.load(tmp_path / "cut.tacit").rank(queries, 5), ranker.rank(queries, 5))
    assert again.status_ is ranker.status_
    assert len(again.history_) == len(ranker.history_)


def test_checkpoint_and_resume_end_at_the_same_bits(tmp_path):
    X, y, group = judged_rows(2, n_queries=80)
    whole = GlobalRanker(tol=1e-5).fit(X, y, group=group)
    path = tmp_path / "state"
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        GlobalRanker(tol=1e-5, max_iter=5, checkpoint=path).fit(X, y, group=group)
    resumed = GlobalRanker(tol=1e-5, checkpoint=path, resume=True).fit(X, y, group=group)
    assert np.array_equal(resumed.coef_, whole.coef_)
    with pytest.raises(ValueError, match="run"):
        GlobalRanker(C=1, checkpoint=path, resume=True).fit(X, y, group=group)


def test_a_callback_ends_the_fit_and_the_best_is_kept():
    X, y, group = judged_rows(2, n_queries=80)
    with pytest.warns(ConvergenceWarning, match="callback"):
        ranker = GlobalRanker(callbacks=[lambda step: step.iteration == 3]).fit(X, y, group=group)
    assert ranker.status_.name == "STOPPED"
    assert ranker.bound_ <= ranker.objective_


def test_threads_change_no_bit():
    X, y, group = judged_rows(4, n_queries=50)
    with smallest_blocks():
        one, two = (GlobalRanker(n_jobs=n).fit(X, y, group=group) for n in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)
    assert np.isclose(one.objective_, GlobalRanker(n_jobs=1).fit(X, y, group=group).objective_, rtol=1e-9)


def test_the_order_of_queries_and_items_changes_nothing():
    queries, items, truth, relevances = retrieval()
    triplets = Triplets.from_similarity(truth, top=4, others=6).to_array()
    rng = np.random.default_rng(5)
    new_query, new_item = rng.permutation(len(queries)), rng.permutation(len(items))  # where each one goes
    moved = np.column_stack([new_query[triplets[:, 0]], new_item[triplets[:, 1]], new_item[triplets[:, 2]]])
    one = GlobalRanker(relevances, tol=1e-6).fit(queries, items, triplets)
    other = GlobalRanker(relevances, tol=1e-6).fit(queries[np.argsort(new_query)], items[np.argsort(new_item)], moved)
    assert np.isclose(one.objective_, other.objective_, rtol=1e-6)
    assert np.array_equal(new_item[one.rank(queries[:5], 3)], other.rank(queries[:5], 3))


def test_duplicated_items_tie_and_the_first_is_ranked_first():
    queries, items, truth, relevances = retrieval()
    ranker = GlobalRanker(relevances).fit(queries, items, Triplets.from_similarity(truth, top=4, others=6))
    twice = np.concatenate([items, items])
    ranking = ranker.rank(queries, 80, twice)
    place = np.argsort(ranking, axis=1)
    assert (place[:, :40] + 1 == place[:, 40:]).all()


def test_queries_without_triplets_are_left_out_and_ranked_all_the_same():
    queries, items, truth, relevances = retrieval()
    triplets = Triplets.from_similarity(truth, top=4, others=6)
    array = triplets.to_array()
    some = Triplets.from_array(array[array[:, 0] % 2 == 0], n_queries=len(queries))
    ranker = GlobalRanker(relevances).fit(queries, items, some)
    alone = GlobalRanker(relevances).fit(queries[::2], items, triplets.take(np.arange(0, 30, 2)))
    assert np.isclose(ranker.objective_, alone.objective_, rtol=1e-9)
    assert ranker.rank(queries, 3).shape == (30, 3)


class TestTriplets:
    def test_the_best_are_above_others_that_are_all_less_relevant(self):
        relevance = np.random.default_rng(0).integers(0, 5, (20, 30)).astype(float)
        relevance[3] = 1.0  # all alike: nothing to learn from
        triplets = Triplets.from_relevance(relevance, top=4, others=5, itself=np.arange(20))
        q, a, b = triplets.to_array().T
        assert (relevance[q, a] > relevance[q, b]).all()
        assert 3 not in q
        assert not (a == q).any()
        assert not (b == q).any()
        assert len(triplets) <= 19 * 20

    def test_ties_at_the_edge_of_the_best_go_to_the_first_items(self):
        triplets = Triplets.from_relevance([[1.0, 1.0, 1.0, 0.0]], top=2, others=3)
        assert sorted(triplets.to_array().tolist()) == [[0, 0, 3], [0, 1, 3]]

    def test_the_seed_decides_whatever_the_blocks(self, monkeypatch):
        relevance = np.random.default_rng(0).random((20, 30))
        one = Triplets.from_relevance(relevance, top=4, others=5, random_state=3)
        monkeypatch.setattr("tacit.ranking.judgements.BLOCK_ENTRIES", 70)
        again = Triplets.from_relevance(relevance, top=4, others=5, random_state=3)
        other = Triplets.from_relevance(relevance, top=4, others=5, random_state=4)
        assert np.array_equal(one.to_array(), again.to_array())
        assert not np.array_equal(one.to_array(), other.to_array())
        by_function = Triplets.from_similarity(
            lambda rows: relevance[rows], n_queries=20, top=4, others=5, random_state=3
        )
        assert np.array_equal(one.to_array(), by_function.to_array())

    def test_unjudged_items_are_in_no_triplet(self):
        triplets = Triplets.from_relevance([[2.0, np.nan, 0.0, 1.0]])
        assert triplets.to_array().tolist() == [[0, 0, 2], [0, 0, 3], [0, 3, 2]]

    def test_tags_as_lists_and_as_indicators_are_the_same(self):
        lists = [["a", "b"], ["b"], ["c"], ["a", "b", "c"]]
        table = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
        one = Triplets.from_tags(lists, lists, top=1, others=2, itself=np.arange(4))
        other = Triplets.from_tags(table, table, top=1, others=2, itself=np.arange(4))
        assert np.array_equal(one.to_array(), other.to_array())
        assert one.to_array()[0, :2].tolist() == [0, 3]

    def test_a_file_of_judged_rows_has_the_triplets_of_its_grades(self, tmp_path):
        X, y, group = judged_rows(6)
        path = tmp_path / "rows.txt"
        dump_svmlight_file(X, y, str(path), query_id=np.repeat(np.arange(12), group))
        rows = Triplets.from_svmlight(path)
        assert np.allclose(rows.X, X)
        assert np.array_equal(rows.group, group)
        assert sorted(map(tuple, rows.triplets.to_array().tolist())) == list_pairs(y, group)
        dump_svmlight_file(X, y, str(path))
        with pytest.raises(ValueError, match="qid"):
            Triplets.from_svmlight(path)
        assert np.array_equal(Triplets.from_svmlight(path, sizes=group).group, group)

    def test_ten_million_are_a_few_arrays(self):
        grades = np.tile(np.repeat([1, 0], 100), 1000)
        triplets = Triplets.from_groups(grades, [200] * 1000)
        assert len(triplets) == 10_000_000
        assert triplets.items.nbytes + triplets.grades.nbytes + triplets.offsets.nbytes < 4_000_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"triplets": [[0, 1, 99]]}, "99"),
        ({"triplets": [[99, 1, 2]]}, "99"),
        ({"triplets": [[0, 1, 1]]}, "itself"),
        ({"triplets": [[0, 1]]}, "m, 3"),
        ({"triplets": np.zeros((0, 3), dtype=int)}, "empty"),
        ({"triplets": None}, "triplets"),
        ({"triplets": Triplets.from_relevance(np.ones((30, 40)))}, "triplets"),
        ({"triplets": Triplets.from_array([[0, 1, 2]])}, "30"),
        ({"queries": np.full((30, 4), np.nan)}, "nan"),
        ({"items": np.zeros((40, 3))}, "columns"),
        ({"items": "pictures"}, "items"),
        ({"group": [30]}, "group"),
        ({"C": -1}, "C=-1"),
        ({"tol": 0}, "tol"),
        ({"relevances": "cosine"}, "relevances"),
        ({"relevances": Relevances(None, ["cos"])}, "similarity"),
        ({"resume": True}, "checkpoint"),
        ({"solver": "fast"}, "solver"),
    ],
)
def test_bad_input_is_refused_with_its_cause(change, message):
    queries, items, truth, relevances = retrieval()
    given = {"queries": queries, "items": items, "triplets": Triplets.from_similarity(truth, top=4, others=6)}
    params = {"relevances": relevances}
    for name, value in change.items():
        (given if name in given or name == "group" else params)[name] = value
    with pytest.raises((ValueError, TypeError), match=message):
        GlobalRanker(**params).fit(given["queries"], given["items"], given["triplets"], group=given.get("group"))


def test_more_classes_than_queries_are_refused():
    queries, items, truth, relevances = retrieval()
    with pytest.raises(ValueError, match="n_classes=31"):
        MixtureRanker(31, relevances).fit(queries, items, Triplets.from_similarity(truth, top=4, others=6))


def test_tags_that_are_no_lists_are_refused():
    with pytest.raises(ValueError, match="query_tags"):
        Triplets.from_tags([np.array("sea")], [["sea"]])


def test_bad_relevances_are_refused():
    with pytest.raises(ValueError, match="nan"):
        Triplets.from_similarity([[1.0, np.nan]])
    with pytest.raises(ValueError, match="infinite"):
        Triplets.from_relevance([[1.0, np.inf]])
    with pytest.raises(ValueError, match="others"):
        Triplets.from_relevance([[1.0, 2.0]], top=1)
    with pytest.raises(ValueError, match="group"):
        GlobalRanker().fit(np.zeros((4, 2)), [0, 1, 0, 1], group=[3])
    with pytest.raises(ValueError, match="chi2"):
        Relevances(None, ["chi2"]).read([[-1.0]])
    with pytest.raises(MemoryError, match="budget"):
        Relevances(budget=1000).table(np.ones((30, 2)), np.ones((30, 2)))


def test_relevances_are_cached_on_disk_and_read_again(tmp_path, monkeypatch):
    queries, items, _, relevances = retrieval()
    plain = relevances.table(queries, items)
    cached = clone(relevances).set_params(cache=tmp_path / "blocks", budget=20_000)
    parts = [block.copy() for _, _, block in cached.blocks(queries, items)]
    assert len(list((tmp_path / "blocks").glob("*.npy"))) == len(parts) > 1
    monkeypatch.setattr("tacit.ranking.relevances.SIMILARITIES", dict.fromkeys(SIMILARITIES))  # computes nothing
    for rows, columns, block in cached.blocks(queries, items):
        assert np.array_equal(block, plain[rows, columns])
    with pytest.raises(TypeError):
        next(iter(cached.blocks(queries + 1, items)))  # other data, other files


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coef_", np.zeros(3)),
        ("coef_", np.full(4, np.nan)),
        ("scale_", np.zeros(4)),
        ("items_", {"right": np.zeros((3, 2))}),
        ("n_relevances_", 5),
        ("objective_", "low"),
        ("history_", 3),
    ],
)
def test_a_ranker_with_impossible_attributes_is_not_written(tmp_path, name, value):
    queries, items, truth, relevances = retrieval()
    ranker = GlobalRanker(relevances).fit(queries, items, Triplets.from_similarity(truth, top=4, others=6))
    setattr(ranker, name, value)
    with pytest.raises((ValueError, TypeError)):
        ranker.save(tmp_path / "r.tacit")
    assert not (tmp_path / "r.tacit").exists()


@pytest.mark.parametrize("solver", [Bundle(proximal=False), FrankWolfe(), Subgradient()], ids=repr)
def test_every_solver_certifies_the_same_optimum(solver):
    X, y, group = judged_rows(1, n_queries=30)
    best = GlobalRanker(C=10, tol=1e-6).fit(X, y, group=group)
    ranker = GlobalRanker(C=10, tol=1e-2, solver=solver).fit(X, y, group=group)
    assert ranker.status_.name == "CONVERGED"
    assert ranker.bound_ <= best.objective_
    assert best.bound_ <= ranker.objective_ <= 1.02 * best.objective_


@pytest.mark.parametrize("first", [0, 1])
def test_an_svmlight_file_of_many_blocks_is_read_as_scikit_learn_reads_it(first, tmp_path):
    rng = np.random.default_rng(first)
    X, y, qid = rng.standard_normal((6000, 7)), rng.integers(0, 3, 6000), np.repeat(np.arange(600), 10)
    X[rng.random(X.shape) < 0.5] = 0
    X[:3000, 4:] = 0  # the first blocks have fewer columns
    X[0, 0] = X[-1, -1] = 1.0
    dump_svmlight_file(X, y, str(tmp_path / "rows.txt"), query_id=qid, zero_based=not first)
    assert (tmp_path / "rows.txt").stat().st_size > 2 * BLOCK_BYTES
    expected = load_svmlight_file(str(tmp_path / "rows.txt"), query_id=True)
    found = Triplets.from_svmlight(tmp_path / "rows.txt")
    np.testing.assert_array_equal(found.X, expected[0].toarray())
    np.testing.assert_array_equal(found.y, expected[1])
    np.testing.assert_array_equal(found.group, np.full(600, 10))

"""Coreference: left links and forests against brute force and SciPy, candidates, features from text, learners."""

import itertools
import os

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import logsumexp

import tacit
from tacit import HiddenCRF, LatentPerceptron, LatentSVM, Ragged, SelfPaced
from tacit.oracle import CapabilityError
from tacit.problems import Coreference
from tacit.text import Document, MentionPairs, coreference_scores, mention_pairs, read_conll

TALE = Document(
    [
        ["Alice", "met", "Bob", "and", "his", "old", "dog", "."],
        ["She", "gave", "him", "a", "book", "."],
        ["The", "dog", "barked", "at", "Alice", "."],
    ],
    [(0, 1), (2, 3), (4, 7), (4, 5), (8, 9), (10, 11), (14, 16), (18, 19)],
    [0, 1, 2, 1, 0, 1, 2, 0],
)


def complete_tables(rng, n, n_values=3):
    """All pairs of n mentions with two templates of random values, as floats, so that scores are distinct."""
    pairs = np.array([(m, e) for m in range(n) for e in (m, *range(m))])
    return np.hstack([pairs, rng.integers(0, n_values + 1, (len(pairs), 2))])


def bind(problem, tables, y=None, hidden=None):
    X = Ragged.from_list(tables)
    schema = problem.schema(X, y if y is not None else [np.zeros(t[-1, 0] + 1, int) for t in tables])
    return problem.bind(X, y, schema, hidden=hidden)


def row_score(w, sizes, table, later, earlier):
    row = table[(table[:, 0] == later) & (table[:, 1] == earlier)][0]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return sum(w[starts[t] + v - 1] for t, v in enumerate(row[2:]) if v)


def clusters_of_edges(n, edges):
    """The smallest mention of every component."""
    made = list(range(n))
    for a, b in edges:
        low, high = sorted((made[a], made[b]))
        made = [low if number == high else number for number in made]
    return np.array(made)


def same_partition(a, b):
    return np.array_equal(np.asarray(a)[:, None] == a, np.asarray(b)[:, None] == b)


@pytest.mark.parametrize("seed", range(4))
def test_left_links_equal_brute_force_over_six_mentions(seed):
    rng = np.random.default_rng(seed)
    table, y = complete_tables(rng, 6), rng.integers(0, 3, 6)
    problem = Coreference(r=0.4)
    oracle = bind(problem, [table], [y])
    sizes = table[:, 2:].max(axis=0)
    w = rng.standard_normal(oracle.n_params)
    score = np.array([[row_score(w, sizes, table, m, e) if e <= m else 0 for e in range(6)] for m in range(6)])
    first = [m for m in range(6) if not (y[:m] == y[m]).any()]
    values, losses, is_right = [], [], []
    for parents in itertools.product(*(range(m + 1) for m in range(6))):
        values.append(sum(score[m, e] for m, e in enumerate(parents)))
        right = sum(y[m] == y[e] for m, e in enumerate(parents) if m != e)
        wrong = sum(y[m] != y[e] for m, e in enumerate(parents) if m != e)
        losses.append(6 - len(first) - right + 0.4 * wrong)  # n − k − Σ l(e)
        is_right.append(same_partition(clusters_of_edges(6, [(m, e) for m, e in enumerate(parents) if m != e]), y))
    values, losses, is_right = map(np.array, (values, losses, is_right))
    assert len(values) == 720
    assert oracle.predict(w).value[0] == pytest.approx(values.max())
    assert oracle.impute(w).value[0] == pytest.approx(values[is_right].max())
    assert oracle.predict_augmented(w).value[0] == pytest.approx((values + losses).max())
    assert oracle.log_partition(w)[0] == pytest.approx(logsumexp(values))
    sums = oracle.expectations(w, free=0.0, truth=0.0)
    assert sums.truth[0] == pytest.approx(logsumexp(values[is_right]))


@pytest.mark.parametrize("seed", range(2))
def test_forests_equal_brute_force_over_six_mentions(seed):
    rng = np.random.default_rng(seed)
    n = 6
    table, y = complete_tables(rng, n), rng.integers(0, 2, n)
    oracle = bind(Coreference("forest", r=0.4), [table], [y])
    sizes = table[:, 2:].max(axis=0)
    w = rng.standard_normal(oracle.n_params)
    edges = [(m, e) for m in range(n) for e in range(m)]
    worth = {(m, e): row_score(w, sizes, table, m, e) - row_score(w, sizes, table, m, m) for m, e in edges}
    best = {"predict": -np.inf, "impute": -np.inf, "predict_augmented": -np.inf}
    for kept in itertools.chain.from_iterable(itertools.combinations(edges, k) for k in range(n)):
        made = clusters_of_edges(n, list(kept))
        if n - len(kept) != len(set(made.tolist())):
            continue  # a circle
        value = sum(worth[edge] for edge in kept)
        loss = n - len(set(y)) - sum(1 if y[m] == y[e] else -0.4 for m, e in kept)
        best["predict"] = max(best["predict"], value)
        best["predict_augmented"] = max(best["predict_augmented"], value + loss)
        if same_partition(made, y):
            best["impute"] = max(best["impute"], value)
    for name, value in best.items():
        assert getattr(oracle, name)(w).value[0] == pytest.approx(value)


@pytest.mark.parametrize("seed", range(5))
def test_prim_grows_the_trees_of_scipy(seed):
    rng = np.random.default_rng(seed)
    n = 40
    pairs = np.array([(m, e) for m in range(n) for e in (m, *sorted(rng.choice(m, min(m, 6), replace=False)))])
    table = np.hstack([pairs, np.arange(1, len(pairs) + 1)[:, None]])
    y = np.zeros(n, int)
    problem = Coreference("forest")
    oracle = bind(problem, [table], [y])
    w = rng.standard_normal(oracle.n_params)
    w[pairs[:, 0] == pairs[:, 1]] = 0.0  # "new" is worth nothing
    is_link = pairs[:, 0] != pairs[:, 1]
    later, earlier = pairs[is_link].T
    for kept, floor in ((np.ones(len(later), bool), "impute"), (w[is_link] > 0, "predict")):
        # weights shifted below zero: SciPy takes a zero for no edge, and minimises
        costs = coo_array((-w[is_link][kept] - 100.0, (later[kept], earlier[kept])), shape=(n, n))
        tree = minimum_spanning_tree(costs.tocsr()).tocoo()
        assert getattr(oracle, floor)(w).value[0] == pytest.approx(float((-tree.data - 100.0).sum()))


def test_codes_with_a_circle_or_half_a_target_are_not_accepted():
    table = complete_tables(np.random.default_rng(0), 3)
    oracle = bind(Coreference("forest"), [table, table], [[0, 0, 0]] * 2)
    good = oracle.impute(np.zeros(oracle.n_params)).code
    assert oracle.accepts(good)
    assert oracle.accepts(np.array([-1, -1, -1, *good[3:]], dtype=good.dtype))
    assert not oracle.accepts(np.array([1, 2, 0, *good[3:]], dtype=good.dtype))  # 0 → 1 → 2 → 0
    assert not oracle.accepts(np.array([-1, 0, 0, *good[3:]], dtype=good.dtype))
    assert not oracle.accepts(np.array([7, 0, 0, *good[3:]], dtype=good.dtype))
    left = bind(Coreference(), [table, table], [[0, 0, 0]] * 2)
    assert left.accepts(left.predict(np.zeros(left.n_params)).code)
    assert not left.accepts(np.array([1, 0, 0, 0, 0, 0], dtype=np.int8))  # the first mention has no one to link to


@pytest.mark.parametrize("links", ["left", "forest"])
def test_imputing_prefers_the_present_links_where_they_tie(links):
    table = complete_tables(np.random.default_rng(0), 6)
    oracle = bind(Coreference(links), [table], [np.zeros(6, int)])
    zero = np.zeros(oracle.n_params)
    for seed in range(5):
        drawn = oracle.draw(np.random.default_rng(seed))
        assert np.array_equal(oracle.impute(zero, prefer=drawn).code, drawn)


def test_a_preferred_link_out_of_range_has_no_effect_on_other_documents():
    rng = np.random.default_rng(0)
    oracle = bind(Coreference("forest"), [complete_tables(rng, 6) for _ in range(3)], [np.zeros(6, int)] * 3)
    zero = np.zeros(oracle.n_params)
    drawn = oracle.draw(np.random.default_rng(3))
    assert not np.array_equal(oracle.impute(zero).code[6:], drawn[6:])
    wrong = drawn.astype(np.int64)
    wrong[2] = 99
    found = oracle.impute(zero, prefer=wrong).code
    assert np.array_equal(found[6:], drawn[6:])
    assert np.array_equal(found[:6], oracle.impute(zero).code[:6])


def test_known_links_stay_and_others_are_imputed():
    table = complete_tables(np.random.default_rng(0), 5)
    oracle = bind(Coreference(), [table], [np.zeros(5, int)], hidden=[[0, 0, -1, 1, -1]])
    for seed in range(5):
        w = np.random.default_rng(seed).standard_normal(oracle.n_params)
        found = oracle.decode(oracle.impute(w).code)[1][0]
        assert found[[0, 1, 3]].tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match=r"hidden\[0\]\[1\]"):
        bind(Coreference(), [table], [[0, 1, 0, 0, 0]], hidden=[[0, 0, -1, -1, -1]])
    with pytest.raises(ValueError, match="forest"):
        bind(Coreference("forest"), [table], [np.zeros(5, int)], hidden=[[0, 0, -1, -1, -1]])


def test_a_pruned_right_link_is_kept_in_training_and_never_predicted():
    words = [["Alice", *(f"thing{i}" for i in range(30)), "she"]]
    text = Document(words, [(i, i + 1) for i in range(32)], [0, *range(1, 31), 0])
    pairs = mention_pairs([text], candidates=5)
    problem = Coreference(candidates=5)
    schema = problem.schema(pairs, [text.clusters])
    oracle = problem.bind(pairs, [text.clusters], schema)
    assert oracle.decode(oracle.impute(np.zeros(oracle.n_params)).code)[0][0].tolist() == text.clusters.tolist()
    kept = np.zeros(oracle.n_params)
    code = oracle.impute(kept).code
    towards = oracle.features(code, np.ones(1))  # weights that favour exactly the kept link
    assert oracle.decode(oracle.predict(100 * towards).code)[1][0][-1] != 0
    assert oracle.loss(oracle.predict_augmented(towards * 100).code)[0] >= 0
    plain = Ragged(pairs.values, pairs.offsets)
    with pytest.raises(ValueError, match="mention_pairs"):
        problem.bind(plain, [text.clusters], problem.schema(plain, [text.clusters]))


@pytest.mark.parametrize(
    ("table", "keyword"),
    [
        ([[0, 0, 1], [2, 2, 1]], "row 1"),
        ([[1, 0, 1]], "row 0"),
        ([[0, 0, 1], [1, 1, 1], [1, 0, 2], [1, 0, 3]], "row 3"),
        ([[0, 0, -1]], "65535"),
        ([[0, 0, 1.5]], "65535"),
        ([[0, 0]], "features"),
    ],
)
def test_tables_that_are_no_pairs_are_refused(table, keyword):
    with pytest.raises(ValueError, match=keyword):
        Coreference().read([np.array(table)])


def test_bad_labels_and_parameters_are_refused():
    table = complete_tables(np.random.default_rng(0), 3)
    for y, keyword in (([[0, 1]], r"y\[0\]"), ([[0, 1, 2], [0]], "1 documents"), ([[0, 0.5, 1]], r"y\[0\]")):
        with pytest.raises(ValueError, match=keyword):
            bind(Coreference(), [table], y)
    for wrong in (Coreference(links="right"), Coreference(r=2.0), Coreference(candidates=0)):
        with pytest.raises(ValueError, match="must be"):
            LatentPerceptron(wrong).fit([TALE], [TALE.clusters])
    with pytest.raises(ValueError, match="mentions"):
        LatentPerceptron(Coreference()).fit([Document([["a"]], [])], [[]])
    with pytest.raises(CapabilityError, match=r"tacit\.LatentSVM"):
        HiddenCRF(Coreference("forest"), verbose=0).fit([TALE], [TALE.clusters])


LEARNERS = {
    "perceptron": lambda problem: LatentPerceptron(problem, average=False, verbose=0),
    "latent SVM": lambda problem: LatentSVM(problem, C=10, tol=0.05, verbose=0),
    "self-paced": lambda problem: LatentSVM(problem, C=10, tol=0.05, pace=SelfPaced(), verbose=0),
    "hidden CRF": lambda problem: HiddenCRF(problem, C=100, verbose=0),
}


@pytest.mark.parametrize("links", ["left", "forest"])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_learns_a_small_tale(links, name, tmp_path):
    if (links, name) == ("forest", "hidden CRF"):
        pytest.skip("forests have maxima only")
    texts = [TALE, Document([["Bob", "ran", "."], ["He", "fell", "."]], [(0, 1), (3, 4)], [0, 0])]
    y = [text.clusters for text in texts]
    model = LEARNERS[name](Coreference(links)).fit(texts, y)
    assert coreference_scores(y, list(model.predict(texts))).conll == 1.0
    assert model.score(texts, y) == 1.0
    links_found = model.predict_hidden(texts)
    assert links_found[1].tolist() == [0, 0]
    model.save(tmp_path / "model.tacit")
    loaded = tacit.load(tmp_path / "model.tacit")
    assert [c.tolist() for c in loaded.predict(texts)] == [c.tolist() for c in model.predict(texts)]


def test_probabilities_of_links_add_up_to_one():
    pairs = mention_pairs([TALE])
    problem = Coreference()
    oracle = problem.bind(pairs, None, problem.schema(pairs, [TALE.clusters]))
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    chances = oracle.link_posterior(w)
    assert np.add.reduceat(chances, oracle.packed.starts[:-1]) == pytest.approx(np.ones(len(TALE)))


@pytest.mark.parametrize("seed", range(5))
def test_the_likeliest_cluster_adds_up_its_links(seed):
    rng = np.random.default_rng(seed)
    table = complete_tables(rng, 7)
    oracle = bind(Coreference(), [table])
    w = rng.standard_normal(oracle.n_params)
    sizes = table[:, 2:].max(axis=0)
    made, total = [], 0.0
    for m in range(7):
        chance = np.exp([row_score(w, sizes, table, m, e) for e in range(m + 1)])
        mass = {m: chance[m]}
        for e in range(m):
            mass[made[e]] = mass.get(made[e], 0.0) + chance[e]
        made.append(max(mass, key=mass.get))
        total += np.log(mass[made[-1]] / chance.sum())
    found = oracle.likeliest_parts(w)
    assert same_partition(oracle.decode(found.code)[0][0], made)
    assert found.value[0] == pytest.approx(total)


def test_a_hidden_crf_adds_up_links_by_default():
    y = [TALE.clusters]
    model = HiddenCRF(Coreference(), C=10, verbose=0).fit([TALE], y)
    oracle = model.problem.bind(mention_pairs([TALE]), None, model.schema_)
    for rule, code in (("sum", oracle.likeliest_parts(model.coef_).code), ("max", oracle.predict(model.coef_).code)):
        assert model.set_params(rule=rule).predict([TALE])[0].tolist() == oracle.decode(code)[0][0].tolist()


def test_features_never_look_at_clusters():
    other = TALE.with_clusters([5, 5, 5, 5, 5, 5, 5, 5])
    assert np.array_equal(mention_pairs([TALE]).values, mention_pairs([other]).values)


def test_rows_made_for_one_pair_are_those_of_the_table():
    pairs = mention_pairs([TALE])
    rows = pairs[0].astype(np.int64)
    assert np.array_equal(pairs.makers[0](rows[:, 0], rows[:, 1]), rows[:, 2:])
    assert (rows[:, 2:].max(axis=0) <= pairs.sizes).all()


def test_odd_documents_have_pairs():
    single = Document([["Alice"]], [(0, 1)], [0])
    twice = Document([["Alice", "Smith"]], [(0, 2), (0, 2), (0, 1), (1, 2)], [0, 0, 0, 1])
    crossing = Document([["a", "b", "c"]], [(0, 2), (1, 3)], [0, 1])
    quotes = Document(
        [['"', "I", "am", ",", '"', "said", "he", '"', "you", "are", "she"]],
        [(1, 2), (6, 7), (8, 9), (10, 11)],
        [0, 0, 1, 2],
    )
    strange = Document([["\ud800", "", "<script>", "İ"]], [(0, 1), (1, 2), (2, 3), (3, 4)], [0, 1, 2, 3])
    texts = [single, twice, crossing, quotes, strange]
    y = [text.clusters for text in texts]
    model = LatentPerceptron(Coreference(), verbose=0).fit(texts, y)
    assert [len(c) for c in model.predict(texts)] == [1, 4, 2, 4, 4]


def test_thousands_of_mentions_take_little_memory():
    rng = np.random.default_rng(0)
    names = np.array([f"Name{i}" for i in range(50)])
    text = Document([list(rng.choice(names, 20)) for _ in range(150)], [(i, i + 1) for i in range(3000)])
    pairs = mention_pairs([text], candidates=40)
    assert len(pairs.values) < 3000 * (40 + 20 + 1)
    assert pairs.values.nbytes < 100 * len(pairs.values)
    problem = Coreference()
    oracle = problem.bind(pairs, [np.zeros(3000, int)], problem.schema(pairs, [np.zeros(3000, int)]))
    assert oracle.predict(np.zeros(oracle.n_params)).code.dtype == np.int8


def test_own_features_join_or_replace_those_from_text():
    def gap(document, later, earlier):
        return np.minimum(later - earlier, 3) + 1

    joined = mention_pairs([TALE], own=gap)
    alone = mention_pairs([TALE], own=gap, text=False)
    n = len(TALE)
    table = np.minimum(np.abs(np.subtract.outer(np.arange(n), np.arange(n))), 3) + 1
    assert np.array_equal(alone.values, mention_pairs([TALE], own=[table], text=False).values)
    assert np.array_equal(joined.values[:, -1], alone.values[:, -1])
    assert alone.templates == ("own 0",)
    assert alone.sizes == (4,)
    assert isinstance(alone[:1], MentionPairs)
    LatentPerceptron(Coreference(), verbose=0).fit(joined, [TALE.clusters])
    for own, keyword in ((lambda d, a, b: [0.5] * len(a), "65535"), ([np.zeros((2, 2))], "\\(8, 8\\)")):
        with pytest.raises(ValueError, match=keyword):
            mention_pairs([TALE], own=own)
    with pytest.raises(ValueError, match="own="):
        mention_pairs([TALE], text=False)


def test_a_chapter_of_litbank_is_resolved_better_than_by_string_match():
    if "TACIT_DATA" not in os.environ:
        pytest.skip("TACIT_DATA is not set, and the data are not part of the repository")
    from pathlib import Path

    paths = sorted((Path(os.environ["TACIT_DATA"]) / "litbank").glob("*.conll"))[:10]
    texts = read_conll(paths)
    y = [text.clusters for text in texts]
    model = LatentPerceptron(Coreference(), epochs=4, verbose=0).fit(texts[:8], y[:8])
    scores = coreference_scores(y[8:], list(model.predict(texts[8:])))
    words = [
        np.unique([" ".join(t.words(m)).lower() for m in range(len(t))], return_inverse=True)[1] for t in texts[8:]
    ]
    assert scores.conll > coreference_scores(y[8:], words).conll + 0.02


def test_rows_that_a_function_adds_cannot_point_outside_of_the_weights():
    """A right link beyond the window is made by ``makers``, whose values may exceed the declared sizes."""
    from tacit.text.coreference.oracle import FIRST_FEATURE, pack
    from tacit.text.coreference.pairs import MentionPairs

    values = np.array([[0, 0, 1], [1, 1, 1]], dtype=np.uint16)
    pairs = MentionPairs(values, [0, 2], ["one"], [1], [lambda later, earlier: np.full((later.size, 1), 60_000)])
    packed = pack(pairs, (1,), np.array([0, 0]))
    assert len(packed.table) == 3
    assert packed.table[:, FIRST_FEATURE:].max() == 1

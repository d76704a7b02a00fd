"""Chains against enumeration: Viterbi, marginals, log-partition, missing tags, and what is refused."""

import itertools
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.model_selection import GridSearchCV

from tacit import LatentSVM, Ragged, StructuredSVM, load
from tacit.oracle import CapabilityError, LossTable
from tacit.problems import Chain, Multiclass
from tacit.problems.chain.forward_backward import forward_backward
from tacit.problems.chain.viterbi import best_paths, viterbi
from tacit.runtime.blocks import smallest_blocks
from tacit.solvers import FrankWolfe
from tacit.testing import check_problem

X = [[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]]]
Y = [["a", "a", "b"], ["b", "b"], ["a"]]


@st.composite
def chains(draw):
    """Scores of a few short chains: whole numbers, so that ties are exact, some pairs of tags ruled out."""
    k = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    score = st.integers(-3, 3)
    unary = np.array(draw(st.lists(score, min_size=k * sum(lengths), max_size=k * sum(lengths))), float).reshape(-1, k)
    transition = np.array(draw(st.lists(score, min_size=k * k, max_size=k * k)), float).reshape(k, k)
    closed = np.array(draw(st.lists(st.booleans(), min_size=k * k, max_size=k * k))).reshape(k, k)
    transition[closed & ~np.eye(k, dtype=bool)] = -np.inf  # staying is allowed, so there is always a way
    return unary, np.concatenate([[0], np.cumsum(lengths)]), transition


def paths(unary, transition):
    """All taggings of one sequence and their scores, −inf included."""
    taggings = list(itertools.product(range(unary.shape[1]), repeat=len(unary)))
    scores = [
        sum(unary[t, j] for t, j in enumerate(tags)) + sum(transition[a, b] for a, b in itertools.pairwise(tags))
        for tags in taggings
    ]
    return np.array(taggings), np.array(scores)


def run_viterbi(unary, starts, transition, given=()):
    tokens, k = unary.shape
    code, value = np.empty(tokens, np.int64), np.empty(starts.size - 1)
    nothing, column = np.zeros((1, k)), np.zeros(tokens, np.int64)
    viterbi(
        unary.copy(),
        starts,
        transition,
        nothing,
        column,
        np.asarray(given, dtype=np.int64),
        np.eye(k, dtype=bool),
        code,
        value,
    )
    return code, value


def run_forward_backward(unary, starts, transition):
    tokens, k = unary.shape
    log_partition, nodes, edges = np.empty(starts.size - 1), np.zeros((tokens, k)), np.zeros((tokens, k, k))
    nothing = np.zeros(0), np.zeros((k, k))
    forward_backward(unary, starts, transition, log_partition, nodes, edges, *nothing)
    return log_partition, nodes, edges


@given(chains())
def test_viterbi_equals_enumeration(chain):
    unary, starts, transition = chain
    code, value = run_viterbi(*chain)
    for s, (a, b) in enumerate(itertools.pairwise(starts)):
        taggings, scores = paths(unary[a:b], transition)
        assert value[s] == scores.max()
        assert scores[(taggings == code[a:b]).all(axis=1)].item() == scores.max()


@given(chains(), st.integers(1, 9))
def test_the_best_few_paths_equal_enumeration(chain, m):
    unary, starts, transition = chain
    code, value = np.empty((len(unary), m), np.int64), np.empty((starts.size - 1, m))
    best_paths(unary, starts, transition, code, value)
    best, _ = run_viterbi(unary, starts, transition)
    np.testing.assert_array_equal(code[:, 0], best)
    for s, (first, last) in enumerate(itertools.pairwise(starts)):
        taggings, scores = paths(unary[first:last], transition)
        ends = np.sort(scores[np.isfinite(scores)])[::-1][:m]
        np.testing.assert_array_equal(value[s, : ends.size], ends)
        assert np.isneginf(value[s, ends.size :]).all()
        assert (code[first:last, ends.size :] == -1).all()
        found = code[first:last, : ends.size].T
        assert len({tuple(path) for path in found.tolist()}) == ends.size
        score_of = dict(zip(map(tuple, taggings.tolist()), scores, strict=True))
        assert [score_of[tuple(path)] for path in found.tolist()] == ends.tolist()


@given(chains(), st.integers(0, 2**31))
def test_given_tags_stay_and_the_rest_is_the_best_for_them(chain, seed):
    unary, starts, transition = chain
    tokens, k = unary.shape
    fixed = np.random.default_rng(seed).integers(-1, k, tokens)
    code, value = run_viterbi(*chain, fixed)
    for s, (a, b) in enumerate(itertools.pairwise(starts)):
        taggings, scores = paths(unary[a:b], transition)
        agree = ((fixed[a:b] < 0) | (taggings == fixed[a:b])).all(axis=1)
        assert value[s] == scores[agree].max()
        if np.isfinite(value[s]):
            assert ((fixed[a:b] < 0) | (code[a:b] == fixed[a:b])).all()


@given(chains(), st.sampled_from([1, 100, 400]))
def test_marginals_and_log_partition_equal_enumeration(chain, scale):
    unary, starts, transition = chain[0] * scale, chain[1], chain[2] * scale
    log_partition, nodes, edges = run_forward_backward(unary, starts, transition)
    for s, (a, b) in enumerate(itertools.pairwise(starts)):
        taggings, scores = paths(unary[a:b], transition)
        whole = logsumexp(scores)
        p = np.exp(scores - whole)
        assert log_partition[s] == pytest.approx(whole, rel=1e-10, abs=1e-10)
        for t in range(b - a):
            expected = np.bincount(taggings[:, t], p, minlength=unary.shape[1])
            np.testing.assert_allclose(nodes[a + t], expected, rtol=0, atol=1e-10)
            if t:
                pairs = np.zeros_like(transition)
                np.add.at(pairs, (taggings[:, t - 1], taggings[:, t]), p)
                np.testing.assert_allclose(edges[a + t], pairs, rtol=0, atol=1e-10)
        assert not edges[a].any()


@pytest.mark.parametrize("scale", [1, 100, 400])
def test_forward_backward_equals_log_space_on_long_chains(scale):
    """The reference is SciPy's logsumexp, step by step; naive scaling underflows at × 100."""
    rng = np.random.default_rng(0)
    k, size = 26, 300
    unary, transition = scale * rng.standard_normal((size, k)), scale * rng.standard_normal((k, k))
    forward, backward = np.empty((size, k)), np.zeros((size, k))
    forward[0] = unary[0]
    for t in range(1, size):
        forward[t] = unary[t] + logsumexp(forward[t - 1][:, None] + transition, axis=0)
    for t in range(size - 2, -1, -1):
        backward[t] = logsumexp(transition + (unary[t + 1] + backward[t + 1])[None], axis=1)
    log_partition, nodes, edges = run_forward_backward(unary, np.array([0, size]), transition)
    assert log_partition[0] == pytest.approx(logsumexp(forward[-1]), rel=1e-12)
    both = forward + backward
    np.testing.assert_allclose(nodes, np.exp(both - logsumexp(both, axis=1, keepdims=True)), rtol=0, atol=1e-10)
    pairs = forward[:-1, :, None] + transition[None] + (unary[1:] + backward[1:])[:, None, :]
    pairs = np.exp(pairs - logsumexp(pairs, axis=(1, 2), keepdims=True))
    np.testing.assert_allclose(edges[1:], pairs, rtol=0, atol=1e-10)
    np.testing.assert_allclose(edges[1:].sum(axis=1), nodes[1:], atol=1e-10)


def test_the_gradient_of_the_log_partition_is_the_mean_feature():
    """Finite differences, through the oracle: nodes and edges are the right marginals of the right scores."""
    rng = np.random.default_rng(1)
    problem = Chain(fit_intercept=True, boundaries=True)
    schema = problem.schema(X, Y)
    oracle = problem.bind(X, Y, schema)
    w = rng.standard_normal(oracle.n_params)
    _, nodes, edges = oracle.marginals(w)
    expected = np.zeros(oracle.n_params)
    for i in range(schema.n_params):
        step = np.zeros_like(w)
        step[i] = 1e-5
        change = oracle.log_partition(w + step) - oracle.log_partition(w - step)
        expected[i] = change.sum() / 2e-5
    views = schema.views(expected)
    tokens = np.concatenate([np.asarray(x) for x in X])
    np.testing.assert_allclose(views["emission"], nodes.T @ tokens, atol=1e-8)
    np.testing.assert_allclose(views["transition"], edges.sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(views["intercept"], nodes.sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(views["start"], nodes[[0, 3, 5]].sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(views["stop"], nodes[[2, 4, 5]].sum(axis=0), atol=1e-8)


@pytest.mark.parametrize("learner", [StructuredSVM, LatentSVM])
def test_a_learner_gives_probabilities_and_the_best_few_taggings(learner):
    """Against the scores of all taggings, written out."""
    model = learner(Chain(fit_intercept=True), C=10).fit(X, Y)
    weights, classes = model.weights_, model.classes_.tolist()
    probabilities, (tags, scores) = model.predict_proba(X), model.predict_best(X, k=5)
    for x, found, best, ends in zip(X, probabilities, tags, scores, strict=True):
        unary = np.array(x) @ weights["emission"].T + weights["intercept"]
        taggings, score = paths(unary, weights["transition"])
        p = np.exp(score - logsumexp(score))
        for t in range(len(x)):
            np.testing.assert_allclose(found[t], [p[taggings[:, t] == j].sum() for j in range(2)], atol=1e-12)
        assert len(best) == len(ends) == min(5, len(taggings))
        np.testing.assert_allclose(ends, np.sort(score)[::-1][:5])
        wanted = taggings[np.argsort(-score)[: len(best)]]
        assert best.tolist() == [[classes[j] for j in path] for path in wanted]
    assert [table[0].tolist() for table in tags] == [row.tolist() for row in model.predict(X)]
    assert model.predict_marginals(X)[0][0] == pytest.approx(dict(zip(classes, probabilities[0][0], strict=True)))


def test_the_same_probabilities_in_blocks_of_one_sequence():
    model = StructuredSVM(Chain(), C=10).fit(X, Y)
    whole = model.predict_proba(X).values, model.predict_best(X, k=2)[1]
    with smallest_blocks():
        cut = model.set_params(n_jobs=2).predict_proba(X).values, model.predict_best(X, k=2)[1]
    np.testing.assert_array_equal(whole[0], cut[0])
    np.testing.assert_array_equal(np.concatenate(whole[1]), np.concatenate(cut[1]))


def test_who_has_no_probabilities_says_so(digits):
    model = StructuredSVM(Multiclass(), C=1).fit(digits[0][:100], digits[1][:100])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(CapabilityError, match="predict_best"):
        model.predict_best(digits[0][:3])
    chain = StructuredSVM(Chain(), C=1).fit(X, Y)
    with pytest.raises(ValueError, match="memory"):
        chain.predict_best([np.zeros((10_000, 2))], k=10_000)


def test_sparse_and_dense_tokens_give_the_same_model():
    dense = StructuredSVM(Chain(fit_intercept=True, boundaries=True)).fit(X, Y)
    rows = sparse.csr_array(np.concatenate([np.asarray(x) for x in X]))
    thin = StructuredSVM(Chain(fit_intercept=True, boundaries=True)).fit(Ragged(rows, [0, 3, 5, 6]), Y)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-3)
    thin = StructuredSVM(Chain(), solver=FrankWolfe(), tol=1e-6).fit(Ragged(rows, [0, 3, 5, 6]), Y)
    dense = StructuredSVM(Chain(), solver=FrankWolfe(), tol=1e-6).fit(X, Y)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-5)


def test_missing_tags_are_imputed_and_known_ones_stay():
    model = StructuredSVM(Chain()).fit(X, Y)
    completed = model.impute(X, [["a", None, "b"], [None, "b"], [-1]])
    assert [tags.tolist() for tags in completed] == Y
    stubborn = model.impute(X, [["b", None, None], ["a", None], [None]])
    assert [tags[0] for tags in stubborn] == ["b", "a", "a"]


def test_missing_tags_cost_nothing_and_are_named_by_a_learner_that_needs_all():
    problem = Chain(classes=["a", "b"])
    gaps = [["a", None, "b"], ["b", "b"], [None]]
    oracle = problem.bind(X, gaps, problem.schema(X, gaps))
    assert oracle.hidden_unknown().tolist() == [0, 2]
    assert oracle.loss(oracle.encode([["b", "b", "b"], ["a", "b"], ["b"]])).tolist() == [1, 1, 0]
    full = oracle.with_hidden(oracle.impute(np.zeros(oracle.n_params)).code)
    assert full.hidden_unknown().size == 0
    with pytest.raises(ValueError, match=r"y\[0\]"):
        StructuredSVM(problem).fit(X, gaps)


def test_any_cost_of_a_position_can_be_given():
    problem = Chain(loss=[[0, 3], [1, 0]])
    oracle = problem.bind(X, Y, problem.schema(X, Y))
    assert oracle.loss(oracle.encode([["b", "b", "a"], ["b", "a"], ["b"]])).tolist() == [7, 1, 3]
    by_token = np.arange(12.0).reshape(2, 6)  # a table of its own for every token
    other = oracle.with_loss(LossTable(by_token, None))
    assert other.loss(oracle.encode([["a", "b", "a"], ["b", "a"], ["b"]])).tolist() == [0 + 7 + 2, 9 + 4, 11]
    found = other.predict_augmented(np.zeros(oracle.n_params))
    assert found.value.tolist() == [6 + 7 + 8, 9 + 10, 11]


def test_forbidden_pairs_are_never_predicted():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 8, 60)
    sequences = Ragged(rng.standard_normal((lengths.sum(), 3)), np.concatenate([[0], np.cumsum(lengths)]))
    problem = Chain(classes=["B", "I", "O"], forbidden=[("O", "I")])
    schema = problem.schema(sequences, [["O"] * n for n in lengths])
    oracle = problem.bind(sequences, None, schema)
    for seed in range(5):
        labels, _ = oracle.decode(oracle.predict(np.random.default_rng(seed).standard_normal(oracle.n_params)).code)
        assert not any(("O", "I") in itertools.pairwise(tags.tolist()) for tags in labels)
    with pytest.raises(ValueError, match=r"y\[0\].*forbidden"):
        problem.bind([[[0.0] * 3] * 2], [["O", "I"]], schema)
    with pytest.raises(ValueError, match="forbidden="):
        Chain(forbidden=[("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]).bind(X, Y, Chain().schema(X, Y))


def test_scores_are_the_share_of_right_tags():
    model = StructuredSVM(Chain()).fit(X, Y)
    assert model.score(X, Y) == 1.0
    assert model.score(X, [["b", "a", "b"], ["b", "b"], ["a"]]) == pytest.approx(5 / 6)
    assert model.score(X, [["b", None, "b"], ["b", "b"], ["a"]]) == pytest.approx(4 / 5)
    assert model.score(X, [["z", "a", "b"], ["b", "b"], ["a"]]) == pytest.approx(5 / 6), "a new tag is a wrong one"


def test_a_model_of_chains_can_be_searched_saved_and_used(tmp_path):
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 6, 40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.standard_normal((offsets[-1], 2))
    sequences, y = Ragged(values, offsets), Ragged((values[:, 0] > 0).astype(int), offsets)
    search = GridSearchCV(StructuredSVM(Chain(fit_intercept=True)), {"C": [1.0, 100.0]}, cv=3).fit(sequences, y)
    assert search.best_score_ > 0.9
    search.best_estimator_.save(tmp_path / "tagger.tacit")
    loaded = load(tmp_path / "tagger.tacit")
    assert np.array_equal(loaded.predict(sequences).values, search.predict(sequences).values)


@pytest.mark.parametrize(
    ("sequences", "tags", "message"),
    [
        ([[[1.0]], np.zeros((0, 1))], [["a"], []], "sequence 1"),
        (X, [["a", "a"], ["b", "b"], ["a"]], r"y\[0\]"),
        (X, Y[:2], "3.*y.*2"),
        (X, ["aab", "bb", "a"], "'aab'"),
        (X, [["a", "a", 3], ["b", "b"], ["a"]], r"y\[0\]\[2\]"),
        (X, [["a"] * 3, ["a"] * 2, ["a"]], "only one tag"),
        (X, [[None] * 3, [-1] * 2, [None]], "6.*missing"),
        ([[[1.0], [np.nan]], [[1.0]]], [[0, 1], [0]], "nan.*sequence 0, token 1, feature 0"),
        ([[1.0, 2.0]], [[0, 1]], "token"),
        (X, [[("a", 1), "b", "b"], ["b", "b"], ["a"]], r"y\[0\]\[0\].*\('a', 1\)"),
        (X, [[np.ones(2), 1, 1], [1, 1], [0]], r"y\[0\]\[0\]"),
        (X, [[0, 1.5, 0], [1, 1], [0]], r"y\[0\]\[1\].*1.5"),
    ],
)
def test_what_cannot_be_is_refused(sequences, tags, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Chain()).fit(sequences, tags)


def test_tags_outside_the_set_are_named():
    with pytest.raises(ValueError, match=r"y\[1\]\[1\].*'c'"):
        StructuredSVM(Chain(classes=["a", "b"])).fit(X, [["a", "a", "b"], ["b", "c"], ["a"]])
    model = StructuredSVM(Chain()).fit(X, Y)
    with pytest.raises(ValueError, match=r"y\[1\]\[1\]"):
        model.impute(X, [["a", "a", "b"], ["b", "c"], ["a"]])


def test_what_chains_cannot_do_is_said_before_any_work():
    with pytest.raises(ValueError, match="class_weight"):
        StructuredSVM(Chain(), class_weight="balanced").fit(X, Y)
    with pytest.raises(CapabilityError, match="label_scores"):
        StructuredSVM(Chain()).fit(X, Y).decision_function(X)
    with pytest.raises(ValueError, match="hidden="):
        StructuredSVM(Chain()).fit(X, Y, hidden=[0, 0, 0])


@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="TACIT_DATA is not set: the letters are not here")
@pytest.mark.parametrize("solver", ["auto", FrankWolfe()], ids=str)
def test_letters_are_read_better_than_by_the_averaged_perceptron(solver):
    """Train on fold 1, C = 0.1 a word: crfsuite's perceptron makes .2091 errors a character, L-BFGS .2000."""
    with np.load(os.path.join(os.environ["TACIT_DATA"], "letters", "letters.npz")) as data:
        words, tags = Ragged(data["pixels"], data["offsets"]), Ragged(data["letters"], data["offsets"])
        train, test = np.flatnonzero(data["folds"] == 1), np.flatnonzero(data["folds"] != 1)
    model = StructuredSVM(Chain(fit_intercept=True), C=0.1 * len(train), solver=solver, tol=0.01)
    model.fit(words[train], tags[train])
    assert model.gap_ <= 0.01 * model.objective_
    assert model.score(words[test], tags[test]) >= 1 - 0.2


def test_forbidden_pairs_that_are_no_pairs_are_refused():
    with pytest.raises(ValueError, match="forbidden"):
        StructuredSVM(Chain(forbidden=[np.array(3)])).fit([[[1.0], [2.0]]], [["a", "b"]])


@pytest.mark.parametrize("settings", [{}, {"states": 2}, {"states": {"bee": 2}, "forbidden": [("ant", "bee")]}])
def test_problems_without_given_classes_agree_with_their_own_examples(settings):
    check_problem(Chain(**settings))


def test_a_table_in_place_of_the_tags_of_a_sequence_is_read_as_one_goes_through_it():
    """The length of a data frame is that of its rows, and going through it gives its columns."""
    X = [np.zeros((2, 1)), np.ones((2, 1))]
    with pytest.raises(ValueError, match="tokens"):
        StructuredSVM(Chain(), verbose=0).fit(X, [["a", "b"], pd.DataFrame({"a": ["a", "b"]})])

"""SpectralTagger against sums over all paths of a small model: contexts of symbols, filtering; and average F1."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tacit import Ragged
from tacit.spectral import SpectralTagger, average_f1
from tacit.spectral.tagger.estimate import Windows, build_operators, find_basis

START = np.array([2, 1])  # of 3
MOVES = np.array([[3, 1], [1, 3]])  # of 4
SYMBOLS = np.array([[6, 3, 1], [1, 2, 7]])  # of 10, by state
TAGS = np.array([[[4, 1], [2, 3], [1, 4]], [[1, 4], [3, 2], [4, 1]]])  # of 5, by state and symbol


def weigh_path(states, x, y):
    """A probability times a whole number: products of counts, so that sums are exact."""
    moves = np.prod([MOVES[a, b] for a, b in itertools.pairwise(states)], dtype=int)
    return (
        START[states[0]]
        * moves
        * np.prod([SYMBOLS[s, a] * TAGS[s, a, b] for s, a, b in zip(states, x, y, strict=True)])
    )


def sum_tags(x):
    """P(y_t | x) of every token, by enumeration of all states and tags."""
    table = np.zeros((len(x), 2))
    for y in itertools.product(range(2), repeat=len(x)):
        weight = sum(weigh_path(states, x, y) for states in itertools.product(range(2), repeat=len(x)))
        table[np.arange(len(x)), y] += weight
    return table / table.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def exact_moments():
    """Every sequence of three pairs, and its probability."""
    X, y, times = [], [], []
    for x in itertools.product(range(3), repeat=3):
        for tags in itertools.product(range(2), repeat=3):
            X.append(x)
            y.append(tags)
            times.append(sum(weigh_path(states, x, tags) for states in itertools.product(range(2), repeat=3)))
    return X, y, np.array(times) / sum(times)


def fit_weighted(exact_moments, **options):
    """A fit to all sequences, each as often as its probability says."""
    X, y, probability = exact_moments
    times = np.round(probability * 100_000).astype(int)
    offsets = np.arange(times.sum() + 1) * 3
    parts = (Ragged(np.repeat(rows, times, axis=0).ravel(), offsets) for rows in (X, y))
    return SpectralTagger(2, smoothing=0, verbose=0, **options).fit(*parts)


def test_exact_moments_of_symbols_give_exact_operators(exact_moments):
    X, y, probability = exact_moments
    X, pairs = np.array(X), np.array(X) * 2 + np.array(y)
    windows = Windows(X[:, 0], pairs[:, 1], X[:, 2], probability, probability)
    basis = find_basis(windows, np.arange(6) // 2, 3, 2, seed=0)
    automaton = build_operators(windows, basis, 6, np.bincount(X[:, 0], probability))
    for path in itertools.product(range(6), repeat=4):
        state = automaton.initial
        for c in path:
            state = state @ automaton.operators[c]
        x, tags = [c // 2 for c in path], [c % 2 for c in path]
        weight = sum(weigh_path(states, x, tags) for states in itertools.product(range(2), repeat=4))
        assert np.isclose(state @ automaton.final, weight / (3 * 4**3 * 10**4 * 5**4), atol=1e-12)


@pytest.mark.parametrize("context", ["symbols", "pairs"])
def test_tags_are_those_of_sums_over_all_paths(exact_moments, context):
    model = fit_weighted(exact_moments, context=context)
    sequences = [(0,), (2, 0), (0, 1, 2), (1, 1, 0, 2), (2, 1, 0, 0, 1)]
    for x, found in zip(sequences, model.predict_proba([list(x) for x in sequences]), strict=True):
        assert np.allclose(found, sum_tags(x), atol=2e-3)  # counts are rounded to whole sequences
    for x, found in zip(sequences, model.filter_proba([list(x) for x in sequences]), strict=True):
        expected = [sum_tags(x[: t + 1])[-1] for t in range(len(x))]
        assert np.allclose(found, expected, atol=2e-3)


def test_a_filter_does_not_see_what_follows(exact_moments):
    model = fit_weighted(exact_moments, context="symbols")
    one, other = model.filter_proba([[0, 1, 2, 2], [0, 1, 0, 0]])
    assert np.array_equal(one[:2], other[:2])
    whole, filtered = model.predict_proba([[0, 1, 2, 2]])[0], one
    assert np.allclose(whole[-1], filtered[-1])  # nothing follows the last token
    assert not np.allclose(whole[0], filtered[0], atol=1e-3)


def test_a_filter_of_the_conditional_model_is_that_of_prefixes():
    rng = np.random.default_rng(0)
    X = [rng.integers(3, size=8).tolist() for _ in range(200)]
    y = [[(x + int(rng.random() < 0.2)) % 3 for x in row] for row in X]
    model = SpectralTagger(2, conditional=True).fit(X, y)
    prefixes = [X[0][: t + 1] for t in range(8)]
    ends = [table[-1] for table in model.predict_proba(prefixes)]
    assert np.allclose(model.filter_proba(X[:1])[0], ends)


def test_rare_symbols_share_a_context():
    rng = np.random.default_rng(0)
    X = [rng.zipf(1.5, 10).clip(1, 50).tolist() for _ in range(100)]
    model = SpectralTagger(20, context="symbols", size=5).fit(X, [[x % 2 for x in row] for row in X])
    assert model.rank_ <= 6
    assert SpectralTagger([2, 4], context="symbols").fit(X, [[x % 2 for x in row] for row in X]).context_ == "symbols"


def test_average_f1_is_the_macro_average_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, found = (np.array(["a", "b", "c", "d"])[rng.integers(0, top, (20, 6))] for top in (3, 4))
    expected = f1_score(y.ravel(), found.ravel(), average="macro")
    assert np.isclose(average_f1(list(y), list(found)), expected)
    assert np.isclose(average_f1(list(y), Ragged(found.ravel(), np.arange(21) * 6)), expected)
    missing = [[None, *row[1:]] for row in y.tolist()]
    assert np.isclose(
        average_f1(missing, list(found)), f1_score(y[:, 1:].ravel(), found[:, 1:].ravel(), average="macro")
    )


@pytest.mark.parametrize(
    ("y", "predicted", "word"),
    [([["a"]], [["a", "b"]], "tokens"), ([[None]], [["a"]], "known"), ([["a"]], [[None]], "missing")],
)
def test_average_f1_refuses_what_cannot_be_compared(y, predicted, word):
    with pytest.raises(ValueError, match=word):
        average_f1(y, predicted)

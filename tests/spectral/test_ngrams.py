"""Kneser–Ney n-grams against their definition, and their mixtures with automata."""

import collections
import itertools

import numpy as np
import pytest

from tacit import Ragged
from tacit.spectral import SpectralAutomaton, WeightedAutomaton
from tacit.spectral.next_symbol import average, fit_weights
from tacit.spectral.ngram import count_ngrams


def by_definition(strings, weights, k, order):
    """p(symbol, context) by Chen & Goodman (1999), from lists of n-grams."""
    begin, end = k + 1, k
    times = [collections.Counter() for _ in range(order + 1)]
    for string, weight in zip(strings, weights, strict=True):
        padded = (begin, *string, end)
        for length in range(1, order + 1):
            for i in range(len(padded) - length + 1):
                times[length][padded[i : i + length]] += weight
    counts, discounts = {}, {}
    for length in range(1, order + 1):
        counts[length] = {
            gram: n
            if length == order or gram[0] == begin
            else len({longer[0] for longer in times[length + 1] if longer[1:] == gram})
            for gram, n in times[length].items()
            if gram != (begin,)
        }
        n1, n2, n3, n4 = (sum(n == many for n in counts[length].values()) for many in (1, 2, 3, 4))
        discounts[length] = [0.5, 1.0, 1.5]
        if min(n1, n2, n3, n4) > 0:
            y = n1 / (n1 + 2 * n2)
            found = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
            discounts[length] = [d if 0 < d < i + 1 else [0.5, 1.0, 1.5][i] for i, d in enumerate(found)]

    def chance(symbol, context):
        length = len(context) + 1
        seen = {gram[-1]: n for gram, n in counts[length].items() if gram[:-1] == context}
        below = chance(symbol, context[1:]) if context else 1 / (k + 1)
        if not seen:
            return below
        taken = {s: min(n, discounts[length][min(int(np.ceil(n)), 3) - 1]) for s, n in seen.items()}
        own = seen.get(symbol, 0) - taken.get(symbol, 0)
        return (own + sum(taken.values()) * below) / sum(seen.values())

    return chance


@pytest.mark.parametrize(
    ("k", "n", "order", "longest"),
    [(2, 31, 3, 6), (4, 200, 4, 7), (3, 3, 2, 2), (1, 5, 3, 3), (5, 99, 1, 5), (3, 40, 6, 9)],
)
def test_chances_agree_with_the_definition(k, n, order, longest):
    rng = np.random.default_rng(n)
    strings = [rng.choice(k, rng.integers(0, longest), p=rng.dirichlet(np.ones(k))).tolist() for _ in range(n)]
    weights = rng.integers(1, 3, n) * (0.7 if n % 2 else 1.0)
    model = count_ngrams(Ragged.from_list([np.array(x, dtype=np.int32) for x in strings]), k, order, weights)
    model.check()
    chance = by_definition(strings, weights, k, order)
    for x in (x for length in range(4) for x in itertools.product(range(k), repeat=length)):
        context = (k + 1, *x)[-(order - 1) :] if order > 1 else ()
        codes, start = Ragged(np.array(x, dtype=np.int32), [0, len(x)]), np.array([model.start])
        row = model.next_proba(model.follow(codes, start, ends=False)[2])[0]
        np.testing.assert_allclose(row, [chance(s, context) for s in range(k + 1)], atol=1e-12)
        assert row.sum() == pytest.approx(1)
        assert model.follow(codes, start)[0][-1] == pytest.approx(row[-1])


def test_parts_that_do_not_fit_are_refused():
    model = count_ngrams(Ragged(np.array([0, 1, 0, 0, 1], dtype=np.int32), [0, 2, 5]), 2, 3)
    for name, wrong in (
        ("symbol", model.symbol + 9),
        ("first", model.first[::-1].copy()),
        ("suffix", model.suffix[::-1].copy()),
        ("suffix", np.zeros_like(model.suffix)),
        ("chance", model.chance * 1.1),
        ("backoff", model.backoff + 0.1),
        ("level", model.level - 1),
        ("n_symbols", 1),
        ("first", model.first[:-1]),
    ):
        with pytest.raises(ValueError, match=r"n-gram|must be"):
            model._replace(**{name: wrong}).check()


def test_learned_weights_have_the_highest_likelihood_of_all():
    rng = np.random.default_rng(0)
    chances, levels = rng.random((3, 500)), np.zeros(500, dtype=int)
    found = fit_weights(chances, None, np.ones(500))
    best = np.log(average(chances, found[levels].T)).sum()
    for other in rng.dirichlet(np.ones(3), 200):
        assert np.log(other @ chances).sum() <= best + 1e-3


def test_weights_are_those_of_the_level():
    levels = np.repeat([0, 5], 5000)
    chances = np.array([np.repeat([0.9, 0.1], 5000), np.repeat([0.1, 0.9], 5000)])
    weights = fit_weights(chances, levels, np.ones(10_000))
    assert weights[0, 0] > 0.95
    assert weights[5, 1] > 0.95


@pytest.fixture(scope="module")
def words():
    """Strings in which each symbol depends on the two before it: no small automaton has that, an n-gram does."""
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.full(7, 0.15), (8, 8))
    drawn = []
    for _ in range(4000):
        x = [7, 7]
        while len(x) < 30:
            s = int(rng.choice(7, p=0.9 * rows[x[-2], x[-1]] + 0.1 / 7))
            if s == 6:
                break
            x.append(s)
        drawn.append(x[2:])
    return drawn[:3000], drawn[3000:]


@pytest.mark.parametrize("refine", [None, "em"])
def test_a_mixture_is_not_worse_than_its_ngram(words, refine):
    train, fresh = words
    model = SpectralAutomaton([2, 5], refine=refine, max_iter=10, n_models=2, verbose=0).fit(train)
    ngram = model.distribution_.ngram
    codes = Ragged.from_list([np.array([list(model.symbols_).index(s) for s in x], dtype=np.int32) for x in fresh])
    chances = ngram.follow(codes, np.full(len(codes), ngram.start))[0]
    assert model.perplexity(fresh) <= np.exp(-np.log(chances).mean()) * 1.0005
    assert model.mixing_ > 0.3


def test_averaged_automata_are_better_than_one():
    """EM from different starts errs in different ways."""
    rng = np.random.default_rng(0)
    moves, emit = rng.dirichlet(np.full(12, 0.2), 12), rng.dirichlet(np.full(5, 0.3), 12)
    truth = WeightedAutomaton.from_hmm(np.full(12, 1 / 12), moves, emit, np.full(12, 0.1))
    train, fresh = truth.sample(2000, random_state=0), truth.sample(4000, random_state=1)
    one, three = (SpectralAutomaton(12, refine="em", n_models=n, verbose=0).fit(train) for n in (1, 3))
    assert len(three.distribution_.automata) > 1
    assert three.score(fresh) > one.score(fresh) > truth.log_prob(fresh).mean() - 0.5
    assert one.automaton_.n_states == three.automaton_.n_states == 12


def test_weights_of_strings_that_cannot_be_compared_are_equal():
    assert fit_weights(np.empty((2, 0)), None, np.empty(0))[0].tolist() == [0.5, 0.5]
    assert fit_weights(np.ones((2, 3)), np.zeros(3, dtype=int), np.zeros(3))[3].tolist() == [0.5, 0.5]

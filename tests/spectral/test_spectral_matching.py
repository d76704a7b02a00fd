"""Matching an HMM to the counts of windows: exact slopes, expected counts, and a better model without EM."""

import numpy as np
import pytest

from tacit.spectral import SpectralHMM, WeightedAutomaton
from tacit.spectral.recovery import _expect_windows, _expect_with_slopes, count_windows, is_small, match
from tacit.spectral.symbols import encode

N, K = 3, 4


def hidden_markov(seed, n=N, k=K):
    """Start, moves, emissions and stops of an HMM whose strings have about six symbols."""
    rng = np.random.default_rng(seed)
    return (
        rng.dirichlet(np.ones(n)),
        rng.dirichlet(np.full(n, 0.5), n),
        rng.dirichlet(np.full(k, 0.3), n),
        rng.uniform(0.1, 0.3, n),
    )


def leaving(start, moves, stop, empty):
    """What leaves the start and each state: moves to states, and the end last."""
    rows = np.vstack([(1 - empty) * start, (1 - stop)[:, None] * moves])
    return np.hstack([rows, np.append(empty, stop)[:, None]])


def framed(rows, emission):
    """The same with a state for the begin symbol and one for the end symbol."""
    n, k = emission.shape
    moves, emissions = np.zeros((n + 2, n + 2)), np.zeros((n + 2, k + 2))
    moves[:-1, 1:], emissions[1:-1, :k] = rows, emission
    emissions[0, k] = emissions[-1, k + 1] = 1
    return moves, emissions


def misfit(windows, rows, emission):
    return float(((windows.observed - _expect_windows(windows, *framed(rows, emission))) ** 2).sum())


@pytest.fixture(scope="module")
def drawn():
    """The HMM, and the windows of strings from it."""
    start, moves, emission, stop = hidden_markov(0)
    truth = WeightedAutomaton.from_hmm(start, moves, emission, stop, empty=0.1)
    strings = encode(truth.sample(50_000, random_state=0), truth.symbols)
    return leaving(start, moves, stop, 0.1), emission, count_windows(strings, K, N)


def test_slopes_agree_with_differences(drawn):
    _, _, windows = drawn
    start, moves, emission, stop = hidden_markov(1)
    moves, emissions = framed(leaving(start, moves, stop, 0.2), emission)
    values, slopes = _expect_with_slopes(windows, moves, emissions)
    np.testing.assert_allclose(values, _expect_windows(windows, moves, emissions))
    rng = np.random.default_rng(2)
    for _ in range(3):
        one, two = rng.standard_normal(moves.shape) * (moves > 0), rng.standard_normal(emissions.shape)
        there, back = (_expect_windows(windows, moves + e * one, emissions + e * two) for e in (1e-6, -1e-6))
        expected = (there - back).ravel() / 2e-6
        np.testing.assert_allclose(np.concatenate([one.ravel(), two.ravel()]) @ slopes, expected, atol=1e-6)


def test_windows_of_the_truth_are_those_counted(drawn):
    rows, emission, windows = drawn
    noise = windows.observed.size / 50_000
    assert misfit(windows, rows, emission) < 3 * noise
    start, moves, other, stop = hidden_markov(1)
    assert misfit(windows, leaving(start, moves, stop, 0.1), other) > 100 * noise


@pytest.mark.parametrize("seed", range(3))
def test_matching_finds_the_truth_from_nearby(drawn, seed):
    rows, emission, windows = drawn
    rng = np.random.default_rng(seed)
    near = [0.7 * part + 0.3 * rng.dirichlet(np.ones(part.shape[1]), len(part)) for part in (rows, emission)]
    found = match(windows, *near)
    assert misfit(windows, *found) < 0.05 * misfit(windows, *near)
    for one, given, before in zip(found, (rows, emission), near, strict=True):
        np.testing.assert_allclose(one.sum(axis=1), 1)
        assert one.min() > 0
        assert np.abs(one - given).max() < 0.3 * np.abs(before - given).max()


def test_without_em_the_model_is_nearly_as_good_as_the_truth():
    truth = WeightedAutomaton.from_hmm(*hidden_markov(3, 5, 8))
    train, test = truth.sample(10_000, random_state=0), truth.sample(4000, random_state=1)
    model = SpectralHMM(5, refine=None, verbose=0).fit(train)
    assert not model.history_
    assert model.perplexity(test) < 1.005 * truth.perplexity(test)


def test_models_too_large_to_match_are_still_learned(monkeypatch):
    import tacit.spectral.recovery as recovery

    truth = WeightedAutomaton.from_hmm(*hidden_markov(3, 5, 8))
    train, test = truth.sample(5000, random_state=0), truth.sample(2000, random_state=1)
    matched = SpectralHMM(5, refine=None, verbose=0).fit(train).perplexity(test)
    monkeypatch.setattr(recovery, "MAX_PRODUCTS", 1)
    assert not is_small(5, 8)
    alone = SpectralHMM(5, refine=None, verbose=0).fit(train).perplexity(test)
    assert matched < alone < 8

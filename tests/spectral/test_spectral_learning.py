"""SpectralAutomaton, SpectralHMM and EM: proper distributions, monotone likelihood, defined edges, clear errors."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tacit
from tacit import Ragged
from tacit.spectral import SpectralAutomaton, SpectralHMM, WeightedAutomaton
from tacit.spectral.em import Parameters, expect, improve, mix_with_average, smooth
from tacit.spectral.moments import Counting, Moments
from tacit.spectral.prefix_tree import grow
from tacit.spectral.recovery import recover
from tacit.spectral.spectral_hmm import best_paths
from tacit.spectral.symbols import encode

MODELS = {
    "ngram": SpectralAutomaton(4, smoothing="ngram", verbose=0),
    "normalise": SpectralAutomaton(4, smoothing="normalise", verbose=0),
    "project": SpectralAutomaton(4, smoothing="project", verbose=0),
    "em": SpectralAutomaton(4, refine="em", max_iter=10, verbose=0),
    "prefix": SpectralAutomaton(4, statistics="prefix", verbose=0),
    "string": SpectralAutomaton(4, statistics="string", verbose=0),
    "hmm": SpectralHMM(3, max_iter=10, verbose=0),
    "hmm, algebra": SpectralHMM(3, refine=None, verbose=0),
}


def truth():
    """Three states over "abc"; strings of about three symbols."""
    return WeightedAutomaton.from_hmm(
        [0.6, 0.3, 0.1],
        [[0.1, 0.8, 0.1], [0.2, 0.1, 0.7], [0.6, 0.3, 0.1]],
        [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]],
        [0.2, 0.5, 0.3],
        empty=0.05,
        symbols=["a", "b", "c"],
    )


@pytest.fixture(scope="module")
def data():
    return truth().sample(3000, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return {name: clone(model).fit(data) for name, model in MODELS.items()}


def all_strings(longest):
    return [list(x) for length in range(longest + 1) for x in itertools.product("abc", repeat=length)]


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_of_all_strings_and_longer_prefixes_sum_to_one(fitted, name):
    model = fitted[name]
    short = all_strings(4)
    chances = np.exp(model.score_samples(short))
    assert (chances >= 0).all()
    edge = [x for x in short if len(x) == 4]
    column = list(model.symbols_).index
    following = {tuple(x): row for x, row in zip(short, model.next_symbol_proba(short), strict=True)}
    begins = [np.prod([following[tuple(x[:t])][column(x[t])] for t in range(4)]) for x in edge]
    going_on = [p * (1 - following[tuple(x)][-1]) for x, p in zip(edge, begins, strict=True)]
    assert chances.sum() + sum(going_on) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_products_of_next_symbols(fitted, name):
    model, word = fitted[name], list("abca")
    column = list(model.symbols_).index
    rows = model.next_symbol_proba([word[:t] for t in range(5)])
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    steps = [rows[t, column(s)] for t, s in enumerate(word)] + [rows[4, -1]]
    assert model.score_samples([word])[0] == pytest.approx(np.log(steps).sum())


@pytest.mark.parametrize("name", MODELS)
def test_every_model_comes_close_to_the_truth(fitted, name):
    fresh = truth().sample(2000, random_state=1)
    best, naive = truth().perplexity(fresh), 4.0
    assert best * 0.99 < fitted[name].perplexity(fresh) < best + 0.35 * (naive - best)


def test_em_is_as_good_as_the_truth(fitted):
    fresh = truth().sample(5000, random_state=2)
    assert fitted["hmm"].perplexity(fresh) < 1.005 * truth().perplexity(fresh)


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_samples_and_the_names_of_symbols_do_not_matter(data, fitted, name):
    order = np.random.default_rng(0).permutation(len(data))
    shuffled = clone(MODELS[name]).fit([data[i] for i in order])
    other = {"a": "z", "b": "y", "c": "x"}
    renamed = clone(MODELS[name]).fit([[other[s] for s in word] for word in data])
    scores = fitted[name].score_samples(data[:200])
    np.testing.assert_allclose(shuffled.score_samples(data[:200]), scores, rtol=1e-6)
    again = renamed.score_samples([[other[s] for s in word] for word in data[:200]])
    np.testing.assert_allclose(again, scores, rtol=1e-6)


def missing(word):
    """What a word lacks to have every letter equally often."""
    times = [word.count(s) for s in "abc"]
    return [s for s, n in zip("abc", times, strict=True) for _ in range(max(times) - n)]


@pytest.mark.parametrize("name", MODELS)
def test_names_of_equally_frequent_symbols_do_not_matter(data, name):
    even = [[*word, *missing(word)] for word in data[:400]]
    other = {"a": "z", "b": "x", "c": "y"}
    one, two = clone(MODELS[name]).fit(even), clone(MODELS[name]).fit([[other[s] for s in word] for word in even])
    assert [other[s] for s in one.symbols_] == two.symbols_.tolist()
    scores = two.score_samples([[other[s] for s in word] for word in even[:100]])
    np.testing.assert_allclose(scores, one.score_samples(even[:100]), rtol=1e-6)


@pytest.mark.parametrize("name", ["ngram", "em", "hmm"])
def test_equal_seeds_give_equal_models(data, fitted, name):
    again = clone(MODELS[name]).fit(data)
    np.testing.assert_array_equal(again.score_samples(data[:50]), fitted[name].score_samples(data[:50]))


@pytest.mark.parametrize("name", MODELS)
def test_files_hold_the_model(data, fitted, name, tmp_path):
    fitted[name].save(tmp_path / "m.tacit")
    again = tacit.load(tmp_path / "m.tacit")
    np.testing.assert_array_equal(again.score_samples(data[:50]), fitted[name].score_samples(data[:50]))
    assert again.sample(3, random_state=0) == fitted[name].sample(3, random_state=0)


@pytest.mark.parametrize("name", ["normalise", "hmm"])
def test_a_weight_of_two_is_a_string_twice(data, name):
    few = data[:300]
    weights = np.ones(300)
    weights[:100] = 2
    once = clone(MODELS[name]).fit(few, sample_weight=weights)
    twice = clone(MODELS[name]).fit(few[:100] + few)
    np.testing.assert_allclose(once.score_samples(few), twice.score_samples(few), rtol=1e-5)


@pytest.mark.parametrize("name", ["ngram", "em", "hmm"])
def test_samples_follow_the_model(fitted, name):
    drawn = ["".join(x) for x in fitted[name].sample(20_000, random_state=0)]
    for word in ("", "a", "ab"):
        p = np.exp(fitted[name].score_samples([list(word)]))[0]
        assert drawn.count(word) / 20_000 == pytest.approx(p, abs=4 * np.sqrt(p / 20_000))


def test_sequences_of_any_kind_are_the_same(data):
    model = MODELS["normalise"]
    scores = clone(model).fit(data).score_samples(data[:20])
    joined = ["".join(word) for word in data]
    np.testing.assert_array_equal(clone(model).fit(joined).score_samples(joined[:20]), scores)
    numbers = Ragged.from_list([np.array(["abc".index(s) for s in word], dtype=int) for word in data])
    np.testing.assert_array_equal(clone(model).fit(numbers).score_samples(numbers[:20]), scores)


# Baum–Welch


def random_automaton(n, k, seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(n * k + 1), n)
    return Parameters(
        rng.dirichlet(np.ones(n)), np.ascontiguousarray(rows[:, :-1].reshape(n, k, n).transpose(1, 0, 2)), rows[:, -1]
    )


def test_expected_counts_agree_with_enumeration_of_paths():
    words = [[0, 1, 1], [0, 1], [], [1], [0, 1, 1]]
    automaton = random_automaton(3, 2, 0)
    initial, moves, final, total = np.zeros(3), np.zeros((2, 3, 3)), np.zeros(3), 0.0
    for word in words:
        paths = list(itertools.product(range(3), repeat=len(word) + 1))
        weights = []
        for path in paths:
            p = automaton.initial[path[0]] * automaton.final[path[-1]]
            for s, i, j in zip(word, path, path[1:], strict=False):
                p *= automaton.moves[s, i, j]
            weights.append(p)
        total += np.log(sum(weights))
        for path, p in zip(paths, np.array(weights) / sum(weights), strict=True):
            initial[path[0]] += p
            final[path[-1]] += p
            for s, i, j in zip(word, path, path[1:], strict=False):
                moves[s, i, j] += p
    counts = expect(grow(Ragged.from_list([np.array(w, dtype=int) for w in words])), automaton)
    np.testing.assert_allclose(counts.initial, initial)
    np.testing.assert_allclose(counts.moves, moves, atol=1e-12)
    np.testing.assert_allclose(counts.final, final)
    assert counts.log_likelihood == pytest.approx(total)


def test_a_cut_string_may_end_in_any_way():
    tree = grow(Ragged(np.array([0, 1, 1, 0, 1]), [0, 5]), longest=2)
    automaton = random_automaton(2, 2, 1)
    counts = expect(tree, automaton)
    begins = automaton.initial @ automaton.moves[0] @ automaton.moves[1]
    assert counts.log_likelihood == pytest.approx(np.log(begins.sum()))
    assert counts.final.sum() == 0


@pytest.mark.parametrize("seed", range(4))
def test_likelihood_never_falls(data, seed):
    codes = Ragged.from_list([np.array(["abc".index(s) for s in word], dtype=int) for word in data[:500]])
    fit = improve(grow(codes), random_automaton(5, 3, seed), max_iter=60, tol=0.0)
    values = [line.log_likelihood for line in fit.history]
    assert (np.diff(values) >= 0).all()
    assert values[-1] > values[0] + 0.1


def test_likelihood_of_hmms_never_falls(data):
    values = [line.log_likelihood for line in SpectralHMM(3, tol=0.0, verbose=0).fit(data[:500]).history_]
    assert len(values) > 10
    assert (np.diff(values) >= 0).all()
    assert values[-1] > values[0]


def test_long_strings_neither_under_nor_overflow():
    tree = grow(Ragged(np.tile([0, 1], 5_000), [0, 10_000]))
    counts = expect(tree, random_automaton(4, 2, 0))
    assert np.isfinite(counts.log_likelihood)
    assert counts.moves.sum() == pytest.approx(10_000)


def test_smoothed_and_softened_parameters_are_proper_and_leave_nothing_impossible():
    tree = grow(Ragged(np.array([0, 1, 0]), [0, 2, 3]))
    counts = expect(tree, random_automaton(3, 4, 0))
    for parameters in (smooth(counts, 1.0), mix_with_average(counts, 0.2)):
        automaton = WeightedAutomaton(*parameters)
        assert automaton.is_probabilistic
        assert (parameters.moves.sum(axis=2) > 0).all()


def test_interrupting_em_keeps_what_it_has(data, monkeypatch):
    import tacit.spectral.em as baum_welch

    calls = []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return expect(*args)

    monkeypatch.setattr(baum_welch, "expect", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = SpectralHMM(3, verbose=0, tol=0.0).fit(data)
    assert np.isfinite(model.score(data))
    calls.clear()
    with pytest.warns(UserWarning, match="interrupted"):
        model = SpectralAutomaton([2, 3], refine="em", tol=0.0, verbose=0).fit(data)
    assert np.isfinite(model.score(data))


# HMMs


def test_exact_counts_give_the_hmm_back():
    model = truth()
    hidden = model.to_hmm()
    listed = ["", "a", "b", "c", "ab", "ba", "cc"]
    substrings = model.to_substring()
    hankel = substrings.hankel(listed, listed)
    beginnings = model.prob(listed[1:], of="prefix")
    frequency = substrings.prob(["a", "b", "c"])
    found = recover(hankel, beginnings, frequency / frequency.sum(), 3, 0.5, np.random.RandomState(0))[0]
    order = [int(np.argmin(np.abs(found.emission - row).sum(axis=1))) for row in hidden.emissionprob]
    np.testing.assert_allclose(found.emission[order], hidden.emissionprob, atol=1e-5)
    moves = (1 - hidden.stopprob)[:, None] * hidden.transmat
    np.testing.assert_allclose(found.moves[np.ix_(order, order)], moves, atol=1e-5)
    np.testing.assert_allclose(found.start[order], 0.95 * hidden.startprob, atol=1e-5)


def test_hmm_matrices_are_those_hmmlearn_takes(fitted):
    model = fitted["hmm"]
    assert model.startprob_.shape == (3,)
    assert model.transmat_.shape == model.emissionprob_.shape == (3, 3)
    for rows in (model.startprob_[None], model.transmat_, model.emissionprob_):
        np.testing.assert_allclose(rows.sum(axis=1), 1)
    again = WeightedAutomaton.from_hmm(
        model.startprob_,
        model.transmat_,
        model.emissionprob_,
        model.stopprob_,
        empty=model.empty_,
        symbols=model.symbols_,
    )
    assert again.equivalent(model.automaton_)


def every_path(model, string):
    """The joint probability of a string and of every path of states, by the definition of the HMM."""
    codes = [list(model.symbols_).index(symbol) for symbol in string]
    chances = {}
    for path in itertools.product(range(len(model.startprob_)), repeat=len(string)):
        chance = (1 - model.empty_) * model.startprob_[path[0]] * model.emissionprob_[path[0], codes[0]]
        for t in range(1, len(path)):
            moved = (1 - model.stopprob_[path[t - 1]]) * model.transmat_[path[t - 1], path[t]]
            chance *= moved * model.emissionprob_[path[t], codes[t]]
        chances[path] = chance * model.stopprob_[path[-1]]
    return chances


def test_states_are_those_of_all_paths(fitted):
    model = fitted["hmm"]
    strings = [x for x in all_strings(4) if x]
    log_prob, paths = model.decode(strings)
    posterior = model.predict_proba(strings)
    for i, string in enumerate(strings):
        chances = every_path(model, string)
        best = max(chances, key=chances.get)
        assert np.exp(log_prob[i]) == pytest.approx(chances[best])
        assert chances[tuple(paths[i])] == pytest.approx(chances[best])
        total = sum(chances.values())
        assert total == pytest.approx(np.exp(model.score_samples([string])[0]))
        for t, row in enumerate(posterior[i]):
            expected = [sum(p for path, p in chances.items() if path[t] == state) / total for state in range(3)]
            np.testing.assert_allclose(row, expected, atol=1e-9)
    assert np.array_equal(model.predict(strings).values, paths.values)


def test_states_are_those_that_made_the_strings():
    """A sticky HMM with clear emissions: its own states come back, up to their names, far above chance."""
    rng = np.random.default_rng(0)
    strings, states = [], []
    for _ in range(2000):
        path = [int(rng.integers(2))]
        while rng.random() > 0.05:
            path.append(int(rng.random() < [0.1, 0.8][path[-1]]))
        states.append(path)
        strings.append(["ab"[int(rng.random() < [0.1, 0.9][state])] for state in path])
    model = SpectralHMM(2, verbose=0).fit(strings)
    found, truth = model.predict(strings).values, np.concatenate(states)
    right = max(np.mean(found == truth), np.mean(found != truth))
    known = WeightedAutomaton.from_hmm(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.1, 0.9]], [0.05, 0.05], symbols=["a", "b"]
    )
    best = best_paths(known.to_hmm(), encode(strings, known.symbols))[1].values  # what the truth itself would say
    assert right > np.mean(best == truth) - 0.01 > 0.85


def test_states_of_edges_are_defined(fitted):
    model = fitted["hmm"]
    log_prob, paths = model.decode([[], ["a", "z", "b"], ["a"]])
    assert paths.lengths.tolist() == [0, 3, 1]
    assert log_prob[0] == pytest.approx(np.log(model.empty_))
    assert log_prob[1] == -np.inf
    posterior = model.predict_proba([[], ["a", "z", "b"], ["a"]])
    np.testing.assert_allclose(posterior.values.sum(axis=1), 1)
    assert model.predict([[], []]).lengths.tolist() == [0, 0]
    long = model.decode([list("abcab") * 20_000])
    assert np.isfinite(long[0][0])
    with pytest.raises(NotFittedError):
        SpectralHMM(2).predict([["a"]])


@pytest.mark.parametrize("refine", ["em", None])
def test_states_come_in_the_order_of_their_visits(refine):
    """Whatever the start of the decomposition, or the processor, has found first."""
    start, stop = [0.2, 0.5, 0.3], [0.1, 0.2, 0.05]
    moves = [[0.1, 0.1, 0.8], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]
    emission = [[0.05, 0.05, 0.9], [0.05, 0.9, 0.05], [0.9, 0.05, 0.05]]
    strings = WeightedAutomaton.from_hmm(start, moves, emission, stop).sample(5000, random_state=0)
    for seed in range(3):
        model = SpectralHMM(3, refine=refine, random_state=seed, verbose=0).fit(strings)
        going_on = (1 - model.stopprob_)[:, None] * model.transmat_
        visits = np.linalg.solve((np.eye(3) - going_on).T, model.startprob_)
        assert visits.tolist() == sorted(visits, reverse=True)
        assert model.symbols_[model.emissionprob_.argmax(axis=1)].tolist() == [0, 1, 2]


# edges


def test_rank_above_what_there_is_is_what_there_is():
    with pytest.warns(UserWarning, match="n_states=50"):
        model = SpectralAutomaton(50, verbose=0).fit([["a", "b"], ["a"], ["a", "b"], ["b"]] * 10)
    assert model.n_states_ < 10
    assert SpectralAutomaton([50], verbose=0).fit([["a", "b"], ["a"]] * 9).n_states_ < 10  # a choice, no promise
    assert np.isfinite(model.score([["a", "b"]]))
    with pytest.raises(ValueError, match="n_states=50"):
        SpectralHMM(50, verbose=0).fit([["a", "b"], ["a"], ["a", "b"], ["b"]] * 10)


def test_one_symbol_and_empty_sequences():
    words = [["a"] * k for k in (0, 0, 1, 1, 1, 2, 2, 3)] * 10
    for model in (*MODELS.values(), SpectralHMM(1, verbose=0)):
        if isinstance(model, SpectralHMM) and model.n_states > 1:
            continue
        learned = clone(model).fit(words)
        assert np.exp(learned.score_samples([["a"] * k for k in range(60)])).sum() == pytest.approx(1, abs=1e-6)


def test_empty_sequences_alone():
    model = SpectralAutomaton(1, alphabet=["a"], verbose=0).fit([[], []])
    assert model.score_samples([[]])[0] > model.score_samples([["a"]])[0] > -np.inf
    with pytest.raises(ValueError, match="empty"):
        SpectralHMM(1, alphabet=["a"]).fit([[], []])


def test_strings_of_one_symbol_show_no_moves():
    with pytest.raises(ValueError, match="SpectralAutomaton"):
        SpectralHMM(1).fit([["a"], ["b"], []])
    model = SpectralAutomaton(1, verbose=0).fit([["a"], ["b"], []] * 10)
    assert np.exp(model.score_samples([["a"], ["b"], []])).sum() == pytest.approx(1, abs=0.05)


def test_a_single_sequence_is_enough():
    model = SpectralAutomaton(2, verbose=0).fit([["a", "b", "a"]])
    assert np.isfinite(model.score([["a", "b", "a"], ["b"]]))
    with pytest.raises(ValueError, match="validation"):
        SpectralAutomaton(verbose=0).fit([["a", "b", "a"]])


@pytest.mark.parametrize("name", MODELS)
def test_unseen_symbols_are_defined(fitted, name):
    model = fitted[name]
    assert model.score_samples([["a", "?"]])[0] == -np.inf
    rows = model.next_symbol_proba([["a", "?"], ["?"]])
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert (rows >= 0).all()


def test_symbols_listed_in_the_alphabet_are_possible():
    model = SpectralAutomaton(2, alphabet=["a", "b", "c"], verbose=0).fit([["a", "b"], ["a"]] * 20)
    assert -np.inf < model.score_samples([["c"]])[0] < model.score_samples([["a"]])[0]
    with pytest.raises(ValueError, match="'z'"):
        SpectralAutomaton(2, alphabet=["a", "b"]).fit([["a", "b"], ["z"]])


def test_bases_of_ones_own(data):
    lists = [["a"], ["b"], ["c"], ["a", "b"]]
    own = SpectralAutomaton(3, basis=(lists, lists), verbose=0).fit(data)
    assert own.singular_values_.size <= 5
    whole = SpectralAutomaton(3, basis="all", length=1, verbose=0).fit(data)
    assert own.score(data) == pytest.approx(whole.score(data), rel=0.05)
    with pytest.raises(ValueError, match="prefixes"):
        SpectralAutomaton(3, basis=([["x"]], lists)).fit(data)
    with pytest.raises(ValueError, match="suffixes"):
        SpectralAutomaton(3, basis=(lists, [])).fit(data)


def test_corrections_are_counted(fitted, data):
    model = fitted["normalise"]
    assert model.n_corrected_ == model.spectral_.count_improper(data)


def test_states_are_chosen_on_held_out_strings(data):
    model = SpectralAutomaton([1, 2, 3], verbose=0).fit(data)
    assert set(model.held_out_) == {1, 2, 3}
    assert model.n_states_ == max(model.held_out_, key=model.held_out_.get)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SpectralAutomaton(0), "n_states"),
        (SpectralAutomaton("many"), "n_states"),
        (SpectralAutomaton(2.5), "n_states"),
        (SpectralAutomaton(2, statistics="words"), "statistics='words'"),
        (SpectralAutomaton(2, smoothing="none"), "smoothing"),
        (SpectralAutomaton(2, refine="EM"), "refine='EM'"),
        (SpectralAutomaton(2, basis="some"), "basis"),
        (SpectralAutomaton(2, basis=[["a"]]), "basis"),
        (SpectralAutomaton(2, length=0), "length"),
        (SpectralAutomaton(2, validation=1.5), "validation"),
        (SpectralAutomaton(2, tol=-1), "tol"),
        (SpectralHMM(0), "n_states=0"),
        (SpectralHMM(2, refine="yes"), "refine"),
        (SpectralHMM(2, smoothing=np.nan), "smoothing"),
    ],
)
def test_wrong_parameters_are_named_before_any_work(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([["a", "b"]] * 10)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "empty"),
        ("abc", "str"),
        ([3, 4], "sequence 0"),
        ([["a"], ["b", 1]], "'a'"),
        ([[0.5, 1.0]], "0.5"),
        ([["a"], [None]], "None"),
        ([[], []], "empty"),
        ([[[1, 2], [3, 4]]], "symbol"),
    ],
)
@pytest.mark.parametrize("model", [SpectralAutomaton(2), SpectralHMM(2)])
def test_what_are_no_sequences_is_named(model, X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(model).fit(X)


def test_scoring_needs_a_fit():
    for model in MODELS.values():
        with pytest.raises(NotFittedError):
            model.score_samples([["a"]])


def test_moments_of_every_statistics_agree_on_plenty_of_data():
    strings = Ragged.from_list(
        [np.array(["abc".index(s) for s in x], dtype=int) for x in truth().sample(50_000, random_state=3)]
    )
    words = [["a"], ["a", "b"], []]
    for statistics in ("string", "prefix", "substring"):
        moments = Moments(strings, np.array(["a", "b", "c"]), None, Counting(statistics, 2, None, None, 0.0), 4, 0)
        np.testing.assert_allclose(moments.automaton(4).prob(words), truth().prob(words), atol=0.01)


def test_hmmlearn_gives_the_same_likelihood(data, fitted):
    hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed")
    ours = fitted["hmm"]
    peer = hmm.CategoricalHMM(3, n_features=3)
    peer.startprob_, peer.transmat_, peer.emissionprob_ = ours.startprob_, ours.transmat_, ours.emissionprob_
    never_stops = WeightedAutomaton.from_hmm(
        ours.startprob_, ours.transmat_, ours.emissionprob_, np.zeros(3), symbols=ours.symbols_
    )
    endless = WeightedAutomaton(
        never_stops.initial, never_stops.transitions, np.ones(4), ours.symbols_, statistics="prefix"
    )
    words = [word for word in data[:50] if word]
    codes = [np.array([[list(ours.symbols_).index(s)] for s in word]) for word in words]
    np.testing.assert_allclose(endless.log_prob(words), [peer.score(x) for x in codes])

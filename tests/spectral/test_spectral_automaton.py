"""Weighted automata against enumeration: values, conversions, minimal forms, HMMs, long strings, files."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import tacit
from tacit.data.ragged import Ragged
from tacit.spectral import WeightedAutomaton
from tacit.spectral.hankel import count
from tacit.spectral.prefix_tree import grow


def strings(k, longest):
    return [list(x) for length in range(longest + 1) for x in itertools.product(range(k), repeat=length)]


@pytest.fixture
def automaton():
    """Three states, two symbols, stops often."""
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(7), 3)
    rows = 0.5 * rows + 0.5 * np.eye(7)[6]
    moves = rows[:, :6].reshape(3, 2, 3).transpose(1, 0, 2)
    return WeightedAutomaton(rng.dirichlet(np.ones(3)), moves, rows[:, 6], symbols=["a", "b"])


def by_hand(automaton, word):
    vector = automaton.initial
    for letter in word:
        vector = vector @ automaton.transitions["ab".index(letter)]
    return vector @ automaton.final


def words(longest):
    return ["".join("ab"[s] for s in x) for x in strings(2, longest)]


def test_values_are_products_of_matrices(automaton):
    listed = words(5)
    np.testing.assert_allclose(automaton.prob(listed), [by_hand(automaton, word) for word in listed])
    np.testing.assert_allclose(np.exp(automaton.log_prob(listed)), automaton.value(listed))


def test_probabilities_of_all_strings_sum_to_one(automaton):
    assert automaton.is_probabilistic
    assert automaton.prob(words(14)).sum() == pytest.approx(1, abs=1e-4)


def test_prefixes_and_substrings_agree_with_enumeration(automaton):
    listed = words(13)
    chances = automaton.prob(listed)
    for short in ("", "a", "ba", "abb"):
        begins = sum(p for word, p in zip(listed, chances, strict=True) if word.startswith(short))
        occurs = sum(
            p * sum(word.startswith(short, i) for i in range(len(word) - len(short) + 1))
            for word, p in zip(listed, chances, strict=True)
        )
        assert automaton.prob([short], of="prefix")[0] == pytest.approx(begins, abs=1e-3)
        assert automaton.prob([short], of="substring")[0] == pytest.approx(occurs, abs=1e-2)


@pytest.mark.parametrize("one", ["to_string", "to_prefix", "to_substring"])
@pytest.mark.parametrize("two", ["to_string", "to_prefix", "to_substring"])
def test_conversions_undo_each_other(automaton, one, two):
    there = getattr(getattr(automaton, one)(), two)()
    np.testing.assert_allclose(there.to_string().prob(words(4)), automaton.prob(words(4)), rtol=1e-10)
    assert there.statistics == two.removeprefix("to_")


def test_an_automaton_that_never_stops_is_not_converted():
    loop = WeightedAutomaton([1.0], [[[1.0]]], [1.0])
    with pytest.raises(ValueError, match="spectral radius"):
        loop.to_prefix()


def test_next_symbols_agree_with_prefixes(automaton):
    chances = automaton.next_symbol_proba("ab")
    begins = automaton.prob(["ab", "aba", "abb"], of="prefix")
    np.testing.assert_allclose(chances[:2], begins[1:] / begins[0])
    np.testing.assert_allclose(chances[2], automaton.prob(["ab"])[0] / begins[0])
    assert chances.sum() == pytest.approx(1)


def test_nothing_follows_a_prefix_of_no_probability():
    only_a = WeightedAutomaton([1.0], [[[0.5]], [[0.0]]], [0.5], symbols=["a", "b"])
    with pytest.raises(ValueError, match="'b'"):
        only_a.next_symbol_proba("b")


def test_forward_and_backward_meet_everywhere(automaton):
    word = "abbab"
    (ahead, ahead_log), (back, back_log) = automaton.forward(word), automaton.backward(word)
    values = [a @ b * np.exp(s + t) for a, b, s, t in zip(ahead, back, ahead_log, back_log, strict=True)]
    np.testing.assert_allclose(values, by_hand(automaton, word))


def test_long_strings_do_not_underflow(automaton):
    long = Ragged(np.tile([0, 1], 50_000), [0, 100_000])
    numbered = WeightedAutomaton(automaton.initial, automaton.transitions, automaton.final)
    value = numbered.log_prob(long)[0]
    rate = np.log(np.abs(np.linalg.eigvals(automaton.transitions[0] @ automaton.transitions[1])).max())
    assert value == pytest.approx(50_000 * rate, rel=1e-4)
    vectors, logs = numbered.forward(long[0])
    assert np.isfinite(vectors).all()
    assert logs[-1] == pytest.approx(value, rel=1e-4)


def test_unseen_symbols_have_probability_zero(automaton):
    assert automaton.log_prob(["axb"])[0] == -np.inf
    assert automaton.prob(["x"])[0] == 0


def test_values_below_zero_are_shown_but_never_returned_as_probabilities():
    odd = WeightedAutomaton([1.0, 0.5], [[[0.2, 0.0], [0.0, -0.9]]], [0.6, 0.4])
    many = Ragged(np.zeros(6, dtype=int), [0, 1, 3, 6])
    assert (odd.value(many) < 0).any()
    assert (odd.prob(many) >= 0).all()
    assert not np.isnan(odd.log_prob(many)).any()
    assert odd.count_improper(many) == (odd.value(many) <= 0).sum()
    assert not odd.is_probabilistic


def test_automata_are_values(automaton):
    given = np.array([0.2, 0.3, 0.5])
    mine = WeightedAutomaton(given, automaton.transitions, automaton.final, ["a", "b"])
    given[0] = 9
    assert mine.initial[0] == 0.2
    for part in (mine.initial, mine.transitions, mine.final, mine.symbols, mine.to_prefix().final):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = part[1]


def test_expected_occurrences_may_be_above_one(automaton):
    often = automaton.to_substring()
    assert often.value([""])[0] > 1
    assert often.count_improper(["", "a"]) == 0


def test_samples_follow_the_distribution(automaton):
    drawn = ["".join(word) for word in automaton.sample(20_000, random_state=0)]
    for word in ("", "a", "b", "ab"):
        p = automaton.prob([word])[0]
        assert drawn.count(word) / 20_000 == pytest.approx(p, abs=4 * np.sqrt(p / 20_000))
    assert automaton.sample(5, random_state=1) == automaton.sample(5, random_state=1)


def test_sampling_what_never_stops_is_an_error():
    hardly = WeightedAutomaton([1.0], [[[1 - 1e-9]]], [1e-9])
    with pytest.raises(ValueError, match="max_length=50"):
        hardly.sample(2, random_state=0, max_length=50)


def test_perplexity_counts_ends(automaton):
    listed = ["ab", "", "b"]
    assert automaton.perplexity(listed) == pytest.approx(np.exp(-automaton.log_prob(listed).sum() / 6))


def test_a_change_of_basis_changes_nothing_but_the_basis(automaton):
    turn = np.random.default_rng(0).standard_normal((3, 3))
    back = np.linalg.inv(turn)
    other = WeightedAutomaton(
        automaton.initial @ turn, back @ automaton.transitions @ turn, back @ automaton.final, automaton.symbols
    )
    assert other.equivalent(automaton)
    assert other.to_prefix().equivalent(automaton)
    slightly = WeightedAutomaton(other.initial, other.transitions * 1.001, other.final, automaton.symbols)
    assert not slightly.equivalent(automaton)
    renamed = WeightedAutomaton(automaton.initial, automaton.transitions[::-1], automaton.final, ["b", "a"])
    assert renamed.equivalent(automaton)
    assert not WeightedAutomaton(automaton.initial, automaton.transitions, automaton.final).equivalent(automaton)


def test_minimising_drops_what_is_never_reached_or_never_counts(automaton):
    n = automaton.n_states
    moves = np.zeros((2, n + 2, n + 2))
    moves[:, :n, :n] = automaton.transitions
    moves[:, n, :n], moves[:, :n, n + 1] = 0.1, 0.1
    larger = WeightedAutomaton(
        np.append(automaton.initial, [0, 0]),
        moves,
        np.append(automaton.final, [0.3, 0]),
        ["a", "b"],
    )
    small = larger.minimise()
    assert small.n_states == n
    assert small.equivalent(automaton)


def test_hmms_and_automata_are_the_same_distribution():
    rng = np.random.default_rng(5)
    parts = rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(2), 2), rng.dirichlet(np.ones(3), 2), np.array([0.3, 0.6])
    model = WeightedAutomaton.from_hmm(*parts, empty=0.1)
    listed = Ragged.from_list([np.array(x, dtype=int) for x in strings(3, 4)])
    expected = [_hmm_by_paths(*parts, 0.1, x) for x in strings(3, 4)]
    np.testing.assert_allclose(model.prob(listed), expected)
    back = model.to_hmm()
    for found, given in zip(back, (*parts, 0.1), strict=True):
        np.testing.assert_allclose(found, given)


def _hmm_by_paths(start, move, emit, stop, empty, x):
    if not x:
        return empty
    total = 0.0
    for path in itertools.product(range(len(start)), repeat=len(x)):
        p = (1 - empty) * start[path[0]] * emit[path[0], x[0]]
        for a, b, s in zip(path, path[1:], x[1:], strict=False):
            p *= (1 - stop[a]) * move[a, b] * emit[b, s]
        total += p * stop[path[-1]]
    return total


def test_any_probabilistic_automaton_is_an_hmm(automaton):
    model = automaton.to_hmm()
    again = WeightedAutomaton.from_hmm(*model[:4], empty=model.empty, symbols=["a", "b"])
    np.testing.assert_allclose(again.prob(words(5)), automaton.prob(words(5)))
    with pytest.raises(ValueError, match="probabilistic"):
        WeightedAutomaton([1.0], [[[-0.5]]], [1.5]).to_hmm()


@pytest.mark.parametrize("n", [1, 3, 6])
def test_exact_hankel_matrices_give_the_automaton_back(n):
    rng = np.random.default_rng(n)
    rows = rng.dirichlet(np.full(3 * n + 1, 0.5), n)
    truth = WeightedAutomaton(
        rng.dirichlet(np.ones(n)), rows[:, :-1].reshape(n, 3, n).transpose(1, 0, 2), rows[:, -1] + 0.0
    )
    basis = Ragged.from_list([np.array(x, dtype=int) for x in strings(3, 3)])
    found = WeightedAutomaton.from_hankel(truth.hankel(basis, basis), n)
    assert found.n_states == n
    assert found.equivalent(truth, tol=1e-8)
    more = WeightedAutomaton.from_hankel(truth.hankel(basis, basis), n + 5)
    np.testing.assert_allclose(more.value(basis), truth.value(basis), atol=1e-8)


@pytest.mark.parametrize("statistics", ["string", "prefix", "substring"])
@pytest.mark.parametrize("size", [None, 6])
def test_hankel_counts_agree_with_counting_by_hand(statistics, size):
    rng = np.random.default_rng(0)
    data = [rng.integers(0, 3, rng.integers(0, 6)).tolist() for _ in range(60)]
    hankel = count(
        Ragged.from_list([np.array(x, dtype=int) for x in data]), 3, statistics=statistics, length=2, size=size
    )
    rows, columns = ([x.tolist() for x in part] for part in (hankel.prefixes, hankel.suffixes))
    assert size is None or max(len(rows), len(columns)) <= size

    def frequency(x):
        if statistics == "string":
            return np.mean([word == x for word in data])
        if statistics == "prefix":
            return np.mean([word[: len(x)] == x for word in data])
        return np.mean([sum(word[i : i + len(x)] == x for i in range(len(word) - len(x) + 1)) for word in data])

    np.testing.assert_allclose(hankel.block.toarray(), [[frequency(u + v) for v in columns] for u in rows])
    shifted = [[frequency([*u, s, *v]) for v in columns] for s in range(3) for u in rows]
    np.testing.assert_allclose(hankel.shifted.toarray(), shifted)


def test_prefix_trees_do_not_depend_on_the_order_of_strings():
    rng = np.random.default_rng(1)
    data = Ragged.from_list([rng.integers(0, 4, rng.integers(0, 7)) for _ in range(200)])
    order = rng.permutation(200)
    for options in ({}, {"longest": 3}, {"everywhere": True, "longest": 2}, {"reverse": True}):
        for one, two in zip(grow(data, **options), grow(data[order], **options), strict=True):
            np.testing.assert_array_equal(one, two)


def test_prefix_trees_outgrow_their_first_arrays():
    rng = np.random.default_rng(1)
    data = Ragged(rng.integers(0, 50, 300_000), np.arange(0, 300_001, 10))
    tree = grow(data)
    assert tree.parent.size == 1 + sum(len({tuple(x[:d]) for x in data.values.reshape(-1, 10)}) for d in range(1, 11))


def test_files_hold_the_automaton(automaton, tmp_path):
    automaton.save(tmp_path / "a.tacit")
    again = tacit.load(tmp_path / "a.tacit")
    np.testing.assert_array_equal(again.prob(words(3)), automaton.prob(words(3)))
    assert again.statistics == "string"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([1.0], [[0.5]], [0.5]), "transitions"),
        (([1.0, 0.0], [[[0.5]]], [0.5]), "initial"),
        (([1.0], [[[np.nan]]], [0.5]), "nan"),
        (([1.0], [[[0.5]]], [0.5], ["a", "b"]), "symbols"),
        (([1.0], [[[0.5]]], [0.5], ["a"], "words"), "statistics='words'"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        WeightedAutomaton(*parts)


def test_log_sum_of_a_mixture_is_a_direct_sum(automaton):
    other = WeightedAutomaton([1.0], [[[0.3]], [[0.3]]], [0.4], ["a", "b"])
    n = automaton.n_states
    moves = np.zeros((2, n + 1, n + 1))
    moves[:, :n, :n], moves[:, n:, n:] = automaton.transitions, other.transitions
    both = WeightedAutomaton(
        np.append(0.5 * automaton.initial, 0.5), moves, np.append(automaton.final, other.final), ["a", "b"]
    )
    listed = words(4)
    expected = logsumexp([automaton.log_prob(listed), other.log_prob(listed)], axis=0) - np.log(2)
    np.testing.assert_allclose(both.log_prob(listed), expected)


def test_wrong_calls_are_named(automaton):
    with pytest.raises(ValueError, match="of='word'"):
        automaton.prob(["a"], of="word")
    with pytest.raises(ValueError, match="prefixes"):
        automaton.hankel(["a"], [""])
    with pytest.raises(ValueError, match="transmat"):
        WeightedAutomaton.from_hmm([0.5, 0.5], [[1.0]], [[1.0], [1.0]], [0.1, 0.1])
    with pytest.raises(ValueError, match="row 0 of startprob"):
        WeightedAutomaton.from_hmm([0.5, 0.2], np.eye(2), [[1.0], [1.0]], [0.1, 0.1])
    with pytest.raises(ValueError, match="row 1 of emissionprob"):
        WeightedAutomaton.from_hmm([0.5, 0.5], np.eye(2), [[0.5, 0.5], [1.5, -0.5]], [0.1, 0.1])
    with pytest.raises(ValueError, match="stopprob"):
        WeightedAutomaton.from_hmm([0.5, 0.5], np.eye(2), [[1.0], [1.0]], [0.1, 1.1])
    for wrong in (-1, 1.5):
        with pytest.raises(ValueError, match=f"n_samples={wrong}"):
            automaton.sample(wrong)
    with pytest.raises(ValueError, match="distribution"):
        WeightedAutomaton([1.0], [[[0.0]]], [0.0]).sample(1)

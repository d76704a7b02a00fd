"""Pictures of strings and their hidden states show what they say, and say what they show."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tacit import plot
from tacit.plot.canvas import ORANGE
from tacit.spectral import SpectralAutomaton, SpectralHMM, WeightedAutomaton


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def hmm():
    return WeightedAutomaton.from_hmm(
        [1.0, 0.0], [[0.5, 0.5], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8]], [0.0, 0.4], symbols=["a", "b"]
    )


@pytest.fixture(scope="module")
def strings(hmm):
    return hmm.sample(300, random_state=0)


def test_singular_values_are_filled_up_to_what_is_used(strings):
    coin = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2]).sample(1000, random_state=0)
    model = SpectralAutomaton([1, 4], smoothing="normalise", verbose=0).fit(coin)
    assert (model.spectral_.n_states, model.singular_values_.size) == (1, 4)
    ax = plot.singular_values(model)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.singular_values_)
    assert len(ax.collections[0].get_offsets()) == 1
    assert [text.get_text().strip() for text in ax.texts] == ["1 state"]
    every = SpectralAutomaton(2, size=20, verbose=0).fit(strings)  # no more than two were computed: no choice to show
    ax = plot.singular_values(every)
    assert [text.get_text() for text in ax.texts] == ["all 2 are used"]
    assert len(ax.lines) == 1
    with pytest.raises(ValueError, match="singular_values_"):
        plot.singular_values(SpectralAutomaton())


def test_a_heat_map_has_the_values_of_the_block(hmm, strings):
    ax = plot.hankel_heat(hmm.hankel(["", "a"], ["", "b"]), hmm.symbols)
    shown = np.ma.filled(ax.images[0].get_array(), 0)
    np.testing.assert_allclose(shown, hmm.prob(["", "b", "a", "ab"]).reshape(2, 2))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["λ", "a"]
    assert ax.figure.axes[1].get_ylabel() == "probability of the string uv"
    ax = plot.hankel_heat(strings)
    names = [label.get_text() for label in ax.get_xticklabels()]
    pairs = sum(x[t : t + 2] == ["a", "b"] for x in strings for t in range(len(x) - 1))
    found = ax.images[0].get_array()[names.index("a"), names.index("b")]
    assert found == pytest.approx(pairs / len(strings))
    assert ax.figure.axes[1].get_ylabel() == "how often uv occurs per string"


def test_a_graph_has_a_circle_per_state_and_a_legend_for_all_it_draws(hmm, strings):
    ax = plot.automaton_graph(hmm)
    circles = [patch for patch in ax.patches if type(patch).__name__ == "Circle"]
    assert len(circles) == 3  # two states, and the ring of the one where strings end
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["a", "b"]
    starts = [text for text in ax.texts if getattr(text, "arrowprops", None) and text.arrowprops["color"] == ORANGE]
    assert len(starts) == 1
    legend = " ".join(text.get_text() for text in ax.get_legend().get_texts())
    for word in ("larger", "ring", "begin", "next state", "wider"):
        assert word in legend
    learned = plot.automaton_graph(SpectralHMM(2, verbose=0).fit(strings))
    assert {text.get_text() for text in learned.texts} >= {"a", "b"}


def test_arrows_of_other_automata_name_their_symbols():
    twice = WeightedAutomaton([1.0, 0], [[[0, 0.5], [0, 0]], [[0, 0], [0.5, 0]]], [0.5, 0.5], symbols=["x", "y"])
    words = {text.get_text() for text in plot.automaton_graph(twice).texts}
    assert words >= {"0", "1", "x", "y"}


def test_what_makes_no_picture_is_named(strings):
    with pytest.raises(ValueError, match="probabilistic"):
        plot.automaton_graph(SpectralAutomaton(2, verbose=0).fit(strings))
    rows = np.full((1, 13, 13), 0.9 / 13)
    with pytest.raises(ValueError, match="13"):
        plot.automaton_graph(WeightedAutomaton(np.full(13, 1 / 13), rows, np.full(13, 0.1)))

"""Pictures of retrieval show the numbers behind them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from tacit import plot
from tacit.plot.canvas import GREEN
from tacit.ranking import GlobalRanker, MixtureRanker, Relevances, Triplets
from tacit.ranking.measures import precision_recall


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def mixture():
    rng = np.random.default_rng(0)
    queries, items = rng.random((20, 4)), rng.random((30, 4))
    triplets = Triplets.from_similarity(-np.abs(queries[:, None] - items).sum(axis=2), top=3, others=5)
    relevances = Relevances({"left": [0, 1], "right": [2, 3]}, ["l1"])
    return MixtureRanker(2, relevances, n_init=1).fit(queries, items, triplets), queries


def test_curves_are_the_measured_ones():
    curve = precision_recall([[2, 0, 1]], [[1, 0, 1]])
    line = plot.precision_recall({"one": curve, "other": curve}).lines[0]
    assert np.array_equal(line.get_ydata(), curve[0])
    assert np.array_equal(line.get_xdata(), curve[1])


def test_weights_of_classes_are_shown_in_units_of_the_spread(mixture):
    ranker, queries = mixture
    ax = plot.class_weights(ranker)
    assert np.allclose(ax.images[0].get_array(), ranker.class_weights_ * ranker.scale_)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["left l1", "right l1"]
    shares = ranker.class_proba(queries)
    images = np.arange(20)[:, None, None] * np.ones((1, 3, 3))
    figure = plot.hidden_classes(ranker, images, shares, k=3)
    assert len(figure.axes) == 2 * 4
    first = [int(ax.images[0].get_array()[0, 0]) for ax in figure.axes[1:4]]
    assert first == np.argsort(-shares[:, 0], kind="stable")[:3].tolist()


def test_right_answers_are_framed():
    images = np.zeros((4, 3, 3))
    is_right = np.array([[True, False, False, True]])
    figure = plot.retrieval_sheet(images[:1], images, {"ranker": np.array([[3, 1, 0]])}, is_right, k=4)
    answers = figure.axes[2:]
    frames = [to_hex(ax.spines["left"].get_edgecolor()) == GREEN for ax in answers if ax.images]
    assert frames == [True, False, True]
    assert figure.axes[0].texts[0].get_text() == "ranker\n2 of 4"


def test_pictures_refuse_what_they_cannot_show(mixture):
    ranker, _ = mixture
    with pytest.raises(ValueError, match="curves"):
        plot.precision_recall({})
    with pytest.raises(ValueError, match="MixtureRanker"):
        plot.class_weights(GlobalRanker())
    with pytest.raises(ValueError, match="names"):
        plot.class_weights(ranker, ["one"])
    with pytest.raises(ValueError, match="probabilities"):
        plot.hidden_classes(ranker, np.zeros((3, 2, 2)), np.ones((3, 5)))
    with pytest.raises(ValueError, match="is_right"):
        plot.retrieval_sheet(np.zeros((1, 2, 2)), np.zeros((2, 2, 2)), {"a": np.array([[0]])}, [[True]])
    with pytest.raises(ValueError, match="7"):
        plot.retrieval_sheet(np.zeros((1, 2, 2)), np.zeros((2, 2, 2)), {"a": np.array([[7]])}, [[True, False]])

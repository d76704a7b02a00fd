"""Pictures: the numbers behind them against their definitions, and what is drawn."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from tacit import HiddenCRF, LatentSVM, SelfPaced, StructuredSVM, plot
from tacit.datasets import planted_motif
from tacit.dna.logos import effective_weights, letter_heights
from tacit.dna.plots import count_letters, hamming_distances, mean_distance, window_letters
from tacit.dna.sequences import DNA
from tacit.problems import Motif, Multiclass, SequenceClass

LETTERS = "".join(DNA.meaning)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def descents():
    """CCCP and self-paced, three starts each, on the same sequences with a noisy motif on both strands."""
    X, y, _ = planted_motif(300, 40, "GATTACAGGC", noise=0.1, strands="both", seed=3)
    model = LatentSVM(Motif(10, strands="both"), C=50, n_init=3, verbose=0)
    paces = {"CCCP": None, "self-paced": SelfPaced()}
    return {name: clone(model).set_params(pace=pace).fit(X, y) for name, pace in paces.items()}, X, y


def window(x, start, strand, width):
    """The letters of a window, read on its strand, by string operations alone."""
    text = x.decode()[start : start + width]
    return text if strand != 1 else text[::-1].translate(str.maketrans("ACGT", "TGCA"))


def distance_by_pairs(windows):
    pairs = [np.mean([a != b for a, b in zip(*pair, strict=True)]) for pair in itertools.combinations(windows, 2)]
    return np.mean(pairs)


def test_distance_is_the_mean_over_all_pairs():
    rng = np.random.default_rng(0)
    for n, width in ((2, 1), (3, 4), (17, 6), (40, 3)):
        letters = rng.choice(4, (n, width), p=[0.6, 0.2, 0.1, 0.1])
        windows = ["".join("ACGT"[i] for i in row) for row in letters]
        assert mean_distance(letters) == pytest.approx(distance_by_pairs(windows), abs=1e-12)
    assert mean_distance(np.zeros((5, 3), int)) == 0.0
    assert np.isnan(mean_distance(np.zeros((1, 3), int)))


def test_distance_of_ambiguous_letters_is_expected():
    """The mean over everything that the letters may stand for, pair by pair."""
    windows = ["AN", "RC", "AC", "NN"]
    letters = np.array([[LETTERS.index(letter) for letter in text] for text in windows])
    pairs = []
    for a, b in itertools.combinations(windows, 2):
        meant = [itertools.product(DNA.meaning[x], DNA.meaning[y]) for x, y in zip(a, b, strict=True)]
        pairs.append(np.mean([np.mean([x != y for x, y in bases]) for bases in meant]))
    assert mean_distance(letters) == pytest.approx(np.mean(pairs))


def test_windows_are_read_on_their_strand():
    X, y, hidden = planted_motif(40, 30, "GATTACA", strands="both", seed=1)
    letters = window_letters(X, hidden, 7)
    assert {"".join(LETTERS[i] for i in row) for row in letters} == {"GATTACA"}
    assert len(letters) == (y == 1).sum()
    assert [LETTERS[i] for i in DNA.complement] == list("TGCAYRSWMKVHDBN")
    np.testing.assert_array_equal(count_letters(letters).sum(axis=1), len(letters))


@pytest.mark.parametrize(("hidden", "keyword"), [([1, 2, 3], "shape"), ([0, 9], r"hidden\[1\]")])
def test_windows_refuse_hidden_values_of_other_sequences(hidden, keyword):
    with pytest.raises(ValueError, match=keyword):
        window_letters(["ACGTACGTACGT"] * 2, hidden, 4)


@pytest.mark.parametrize("name", ["CCCP", "self-paced"])
def test_hamming_distances_are_those_of_the_samples_in(descents, name):
    models, X, y = descents
    model = models[name]
    expected = []
    for line in model.history_:
        rows = np.flatnonzero(line.is_in & (y == 1))
        expected.append(distance_by_pairs([window(X[i], *line.hidden[i], 10) for i in rows]))
    np.testing.assert_allclose(hamming_distances(model, X), expected, atol=1e-12)


def test_self_paced_learning_begins_with_motifs_that_are_alike(descents):
    """Figure 2.2 of Kumar (2013): the distance falls when few samples are in, those whose motifs are alike."""
    models, X, _ = descents
    model = models["self-paced"]
    first = next(i for i, line in enumerate(model.history_) if not line.is_in.all())
    distances = hamming_distances(model, X)
    assert distances[first] < distances[first - 1]
    ax = plot.hamming(models, X)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), distances)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["CCCP", "self-paced"]


def test_hamming_refuses_what_has_no_motifs(descents):
    models, X, y = descents
    with pytest.raises(ValueError, match="300"):
        plot.hamming(models["CCCP"], X[:10])
    convex = StructuredSVM(Motif(10, strands="both"), C=1).fit(X, y, hidden=models["CCCP"].hidden_)
    with pytest.raises(ValueError, match="LatentSVM"):
        plot.hamming(convex, X)
    with pytest.raises(ValueError, match="Motif"):
        plot.hamming(LatentSVM(Motif(10)), X)


def test_descent_draws_the_history_of_every_start(descents):
    models, _, _ = descents
    upper, lower = plot.descent(models)
    assert len(upper.lines) == len(lower.lines) == 6
    bold = {line.get_label(): line for line in upper.lines if line.get_marker() == "o"}
    for name, model in models.items():
        np.testing.assert_array_equal(bold[name].get_ydata(), [line.objective for line in model.history_])
    samples = [line for line in lower.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(samples[1].get_ydata(), [s.samples_in for s in models["self-paced"].history_])
    assert min(samples[1].get_ydata()) < 300 == min(samples[0].get_ydata())
    alone, _ = plot.descent(models["CCCP"].runs_[1].history)
    assert len(alone.lines) == 1
    assert alone.get_legend() is None


def test_convergence_draws_objective_and_bound():
    X, y = load_iris(return_X_y=True)
    model = StructuredSVM(Multiclass()).fit(X, y)
    ax = plot.convergence(model)
    objective, bound = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(objective, [s.objective for s in model.history_])
    np.testing.assert_array_equal(bound, [s.bound for s in model.history_])
    ax = plot.gap({"a": model, "b": model.history_}, tol=1e-3)
    assert len(ax.lines) == 3
    assert len(plot.gap(dict.fromkeys(range(9), model)).lines) == 9


def test_gaps_of_several_solvers_are_drawn_by_seconds():
    X, y = load_iris(return_X_y=True)
    model = StructuredSVM(Multiclass(), C=10).fit(X, y)
    ax = plot.gap({"bundle": model}, by="seconds")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [s.seconds for s in model.history_])
    assert ax.get_xlabel() == "seconds"
    with pytest.raises(ValueError, match="hours"):
        plot.gap(model, by="hours")


def test_found_motifs_frames_what_is_predicted_and_underlines_the_truth(descents):
    models, X, _ = descents
    model = models["CCCP"]
    found = model.predict_hidden(X[:12])
    ax = plot.found_motifs(model, X[:12], truth=found)
    frames = sorted((frame.get_y(), frame.get_x()) for frame in ax.patches)
    holds_one = np.flatnonzero(found[:, 0] >= 0)
    assert 0 < len(holds_one) < 12
    np.testing.assert_allclose(frames, [(i - 0.42, found[i, 0] - 0.5) for i in holds_one])
    assert len(ax.lines) == len(holds_one)
    assert "".join(text.get_text() for text in ax.texts) == b"".join(X[:12]).decode()
    with pytest.raises(ValueError, match="shape"):
        plot.found_motifs(model, X[:12], truth=[1, 2, 3])


def test_a_history_of_the_other_kind_is_sent_to_its_picture(descents):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="fit"):
        plot.convergence(StructuredSVM(Multiclass()))
    with pytest.raises(ValueError, match="descent"):
        plot.gap(descents[0])
    with pytest.raises(ValueError, match="convergence"):
        plot.descent(StructuredSVM(Multiclass()).fit(X, y))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_effective_weights_are_the_nearest_additive_score(k):
    """By least squares over all windows and the letters after them that their k-mers reach."""
    width = 3
    rng = np.random.default_rng(k)
    motif, background = rng.standard_normal((width, 4)), rng.standard_normal(4**k)
    windows = np.array(list(itertools.product(range(4), repeat=width + k - 1)))
    words = [windows[:, j : j + k] @ 4 ** np.arange(k - 1, -1, -1) for j in range(width)]
    score = motif[np.arange(width), windows[:, :width]].sum(axis=1) - background[np.stack(words)].sum(axis=0)
    design = np.eye(4)[windows[:, :width]].reshape(len(windows), -1)
    fitted = design @ np.linalg.lstsq(design, score, rcond=None)[0]
    effective = effective_weights(motif, background)
    np.testing.assert_allclose(design @ effective.ravel(), fitted, atol=1e-10)


def test_effective_weights_do_not_see_what_window_and_background_share():
    """Weight on the first letter of k-mers, taken out where the motif adds it, changes no score."""
    rng = np.random.default_rng(0)
    motif, background, shared = rng.standard_normal((5, 4)), rng.standard_normal(64), 3 * rng.standard_normal(4)
    moved = effective_weights(motif + shared, background + np.repeat(shared, 16))
    np.testing.assert_allclose(moved, effective_weights(motif, background), atol=1e-12)


def test_logo_of_a_model_shows_what_it_finds(descents):
    models, X, y = descents
    best = min(models.values(), key=lambda model: model.objective_)
    counts = plot.found_letters(best, X, y)
    expected = window_letters(X, best.impute(X, y), 10)
    np.testing.assert_array_equal(counts, [[(column == i).sum() for i in range(4)] for column in expected.T])
    assert plot.found_letters(best, X).sum() == 10 * (best.predict(X) == 1).sum()
    for axes in (plot.logo(best, X, y), plot.logo(best, heights="weights")):
        assert len(axes.patches) == 40
        assert axes.get_title()


@pytest.mark.parametrize("strands", ["one", "both"])
def test_found_and_effective_letters_spell_the_planted_motif(strands):
    X, y, hidden = planted_motif(400, 40, "GATTACAGGC", noise=0.2, strands=strands, seed=4)
    model = StructuredSVM(Motif(10, strands=strands), C=10).fit(X, y, hidden=hidden)
    weights = effective_weights(model.weights_["motif"], model.weights_["background"])
    for table in (plot.found_letters(model, X, y), weights):
        assert "".join("ACGT"[i] for i in table.argmax(axis=1)) == "GATTACAGGC"


def test_bits_are_the_information_against_the_letters_of_all_sequences():
    shares = np.array([0.4, 0.1, 0.1, 0.4])
    values = letter_heights([[10, 0, 0, 0], [0, 10, 0, 0], [4, 1, 1, 4], [5, 5, 0, 0]], shares=shares)
    expected = [np.log2(2.5), np.log2(10), 0.0, 0.5 * np.log2(0.5 / 0.4) + 0.5 * np.log2(0.5 / 0.1)]
    np.testing.assert_allclose(values.sum(axis=1), expected, atol=1e-12)
    X = ["AAAATTTTCG", "AAAATTTTGC"]
    y = ["yes", "no"]
    model = StructuredSVM(Motif(2, background=1, classes=["no", "yes"]), C=1).fit(X, y, hidden=[4, -1])
    top = max(patch.get_path().get_extents().y1 for patch in plot.logo(model, X, y).patches)
    assert top == pytest.approx(np.log2(2.5))


@pytest.mark.parametrize("heights", ["weights", "bits"])
def test_logo_draws_four_letters_a_position(heights):
    table = np.random.default_rng(0).standard_normal((6, 4))
    axes = plot.logo(table if heights == "weights" else np.abs(table), heights=heights)
    assert len(axes.patches) == 24
    low, high = axes.get_ylim()
    for patch in axes.patches:
        box = patch.get_path().get_extents()
        assert low <= box.y0 <= box.y1 <= high


@pytest.mark.parametrize(
    ("motif", "heights", "keyword"),
    [
        (np.zeros((3, 5)), "bits", r"\(3, 5\)"),
        (np.full((2, 4), np.nan), "weights", "NaN"),
        (np.zeros((2, 4)), "entropy", "entropy"),
        (-np.eye(4), "bits", "-1"),
        (np.zeros((2, 4)), "bits", "bits"),
    ],
)
def test_logo_refuses(motif, heights, keyword):
    with pytest.raises(ValueError, match=keyword):
        plot.logo(motif, heights=heights)


def test_logo_refuses_half_of_what_it_needs(descents):
    models, X, y = descents
    with pytest.raises(ValueError, match="X, y"):
        plot.logo(models["CCCP"])
    with pytest.raises(ValueError, match="X"):
        plot.logo(np.ones((2, 4)), X)
    with pytest.raises(ValueError, match="positive"):
        plot.found_letters(models["CCCP"], X[y == -1], y[y == -1])
    with pytest.raises(ValueError, match="shares"):
        letter_heights([[1, 0, 0, 0]], shares=[0, 1, 1, 1])


def test_hidden_path_is_below_the_signal():
    """Rows are the states of the path; numbers are its durations, in tokens or seconds."""
    X = [np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), np.array([[1.0], [1.0], [0.0], [0.0]])]
    model = HiddenCRF(SequenceClass(states=2, topology="left-to-right"), C=100).fit(X, ["up", "down"])
    figure = plot.hidden_path(model, X[0])
    top, bottom = figure.axes
    assert top.get_title() == "up"
    assert [text.get_text() for text in bottom.texts] == ["3", "2"]
    np.testing.assert_allclose(bottom.images[0].get_array(), model.hidden_proba(X[:1])[0].T)
    seconds = plot.hidden_path(model, X[0], step=0.5).axes[1]
    assert [text.get_text() for text in seconds.texts] == ["1.5", "1"]
    with pytest.raises(ValueError, match="one sequence"):
        plot.hidden_path(model, [0.0, 1.0])
    with pytest.raises(ValueError, match="fit"):
        plot.hidden_path(HiddenCRF(SequenceClass()), X[0])

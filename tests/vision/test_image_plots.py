"""Pictures of windows and turns show what was found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.ndimage import rotate

from tacit import LatentSVM, Ragged, SelfPaced, StructuredSVM, plot
from tacit.plot.canvas import BLUE, ORANGE
from tacit.problems import Candidates, rotations
from tacit.vision.plots import coverage


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((60 * 4, 5))
    y, hidden = np.arange(60) % 2, rng.integers(0, 4, 60)
    values[np.arange(60) * 4 + hidden, y] += 3
    boxes = np.tile([[0, 0, 6, 6], [4, 0, 10, 6], [0, 4, 6, 10], [4, 4, 10, 10]], (60, 1))
    bags = Ragged(values, np.arange(61) * 4, boxes)
    models = {"CCCP": LatentSVM(Candidates(), C=5), "self-paced": LatentSVM(Candidates(), C=5, pace=SelfPaced())}
    return bags, {name: model.fit(bags, y) for name, model in models.items()}


def outlines(ax):
    """Colour and box of every outline; under all of them there are whole white ones, which show on any photo."""
    half = len(ax.lines) // 2
    assert [(line.get_color(), line.get_linestyle()) for line in ax.lines[:half]] == [("white", "-")] * half
    lines = ax.lines[half:]
    return [
        (to_hex(line.get_color()), (min(x), min(y), max(x), max(y)))
        for line in lines
        for x, y in [(line.get_xdata(), line.get_ydata())]
    ]


def test_windows_show_the_history_in_or_out_of_the_pace(fitted):
    bags, models = fitted
    history = models["self-paced"].history_
    middle = min(history, key=lambda step: step.samples_in)
    out = int(np.flatnonzero(~middle.is_in)[0])
    truth = np.full((60, 4), np.nan)
    truth[out] = [1, 1, 5, 5]
    figure = plot.found_windows(np.zeros((60, 10, 10)), bags, models, [out, 3], truth=truth)
    assert len(figure.axes) == 12
    first, mid, last = figure.axes[3:6]
    for ax, step in ((first, history[0]), (mid, middle), (last, history[-1])):
        (colour, box), (_, true_box) = outlines(ax)
        assert colour == (BLUE if step.is_in[out] else ORANGE)
        np.testing.assert_array_equal(box, bags.boxes[4 * out + step.hidden[out]])
        assert true_box == (1, 1, 5, 5)
    assert mid.get_title().endswith("out")
    assert len(outlines(figure.axes[6])) == 1


def test_windows_refuse_what_they_cannot_show(fitted):
    bags, models = fitted
    images = np.zeros((60, 10, 10))
    with pytest.raises(ValueError, match="with_boxes"):
        plot.found_windows(images, Ragged(bags.values, bags.offsets), models, [0])
    with pytest.raises(ValueError, match="60"):
        plot.found_windows(images, bags, models, [60])
    with pytest.raises(ValueError, match="models"):
        plot.found_windows(images, bags, {}, [0])
    convex = StructuredSVM(Candidates()).fit(bags, np.arange(60) % 2, hidden=np.zeros(60, int))
    for model, why in ((LatentSVM(Candidates()), "fit"), (convex, "LatentSVM")):
        with pytest.raises(ValueError, match=why):
            plot.found_windows(images, bags, {"x": model}, [0])


def shown(ax):
    return np.asarray(ax.images[0].get_array())


def test_rotated_images_are_rotated_and_means_are_means():
    rng = np.random.default_rng(0)
    images, hidden, y = rng.random((6, 9, 9)), np.array([0, 1, 2, 1, 0, 2]), np.array([5, 5, 5, 7, 7, 7])
    angles = rotations(-30, 30, 3)
    after = [rotate(image, angles.states[h], reshape=False, order=1) for image, h in zip(images, hidden, strict=True)]
    axes = plot.rotated_images(images, hidden, angles).axes
    for i in range(6):
        np.testing.assert_allclose(shown(axes[i]), images[i])
        np.testing.assert_allclose(shown(axes[6 + i]), after[i], atol=1e-9)
    assert axes[6].get_title() == "-30°"
    axes = plot.mean_images(images, y, hidden, angles).axes
    np.testing.assert_allclose(shown(axes[1]), images[3:].mean(axis=0))
    np.testing.assert_allclose(shown(axes[2]), np.mean(after[:3], axis=0), atol=1e-9)
    colours = np.stack([images, images / 2, images / 4], axis=3)
    axes = plot.rotated_images(colours, hidden, angles).axes
    np.testing.assert_allclose(shown(axes[6])[:, :, 1], after[0] / 2, atol=1e-9)
    bytes_ = np.round(255 * colours).astype(np.uint8)
    for shown_here in (plot.rotated_images(bytes_, hidden, angles), plot.mean_images(bytes_, y, hidden, angles)):
        assert all(shown(ax).max() <= 1 for ax in shown_here.axes)
    with pytest.raises(ValueError, match=r"hidden\[1\] is 3"):
        plot.rotated_images(images[:2], [0, 3], angles)
    with pytest.raises(ValueError, match="hidden"):
        plot.mean_images(images, y, [0, 1], angles)


def test_box_statistics_are_those_of_the_boxes():
    boxes, sizes = np.array([[0, 0, 5, 10], [5, 0, 10, 10], [0, 0, 20, 10]]), np.array([[10, 10], [10, 10], [20, 20]])
    figure = plot.box_statistics(boxes, sizes)
    left, right = figure.axes[:2]
    np.testing.assert_allclose(left.collections[0].get_offsets(), [[0.5, 1], [0.5, 1], [1, 0.5]])
    assert left.get_title() == "3 boxes, median 50% × 100%"
    np.testing.assert_allclose(np.unique(shown(right)), [1 / 3, 2 / 3])
    np.testing.assert_allclose(coverage(np.array([[0.0, 0.5, 1.0, 1.0]]), 2), [[0, 0], [1, 1]])
    with pytest.raises(ValueError, match="image 1"):
        plot.box_statistics(boxes[:2], [[5, 5], [-1, -1]])
    with pytest.raises(ValueError, match="shapes"):
        plot.box_statistics(boxes[:2], sizes)

"""Which hidden states a model uses, how many it needs, and how sure it is of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.plot.canvas import BLUE, GREEN, GREY, INK, ORANGE, by_name, plain_axes, pyplot, whole_numbers
from tacit.vision.plots import outline, show_image


def group_norms(model: Any, axes: Any = None) -> Any:
    """The norm of the weights of every hidden state, one row of bars per label; states that are zero have no bar.

    The picture is figure 1 of Chen, Batra, Freeman & Johnson (2011).

    Parameters
    ----------
    model : a fitted `tacit.GroupNormSVM` with groups by label and state
    axes : one matplotlib axes per label; None makes them

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import GroupNormSVM
    >>> from tacit.datasets import drawn_digits
    >>> from tacit.problems import Transforms, rotations
    >>> X, y, _ = drawn_digits(100)
    >>> problem = Transforms(rotations(-60, 60, 5), n_components=8, blocks="class and state")
    >>> len(group_norms(GroupNormSVM(problem, C=10).fit(X, y)))
    10
    """
    norms = norms_by_label(model)
    if axes is None:
        size = (6.4, 0.6 + 1.1 * len(norms))
        axes = pyplot().figure(figsize=size, layout="constrained").subplots(len(norms), 1, sharex=True, sharey=True)
    axes = [plain_axes(ax) for ax in np.ravel(axes)]
    states = model.schema_.facts["states"]
    width = 0.8 * (float(np.min(np.diff(np.sort(states)))) if len(states) > 1 else 1.0)
    for ax, label, own, color in zip(axes, model.classes_, norms, np.resize([BLUE, ORANGE], len(norms)), strict=True):
        ax.bar(states, own, width=width, color=color)
        ax.set_ylabel(str(label), rotation=0, ha="right", va="center")
        ax.plot(states[own == 0], np.zeros(np.count_nonzero(own == 0)), "x", color=GREY, ms=4, clip_on=False)
    axes[0].set_title(f"Norm of the weights per state: {np.count_nonzero(norms)} of {norms.size} are used (× is zero)")
    axes[-1].set_xlabel("hidden state")
    axes[-1].set_xticks(states)
    return axes


def norms_by_label(model: Any) -> Array:
    """(labels, states) norms of the weights of a fitted `tacit.GroupNormSVM`."""
    if not hasattr(model, "group_norms_"):
        raise ValueError(f"a fitted GroupNormSVM is needed, got {model!r}; call fit first")
    return np.asarray(model._by_label(model.group_norms_))


def states_path(paths: Any, X: Any, y: Any, axes: Any = None) -> Any:
    """Accuracy and prediction time against the number of states used, one point per value of C.

    Both are measured on X and y, which should be held out. The picture is figure 2 of Chen et al. (2011).

    Parameters
    ----------
    paths : what `tacit.group_norm_path` returns, or a dict of those by name
    X, y : samples to measure on
    axes : two matplotlib axes; None makes them

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import GroupNormSVM, group_norm_path
    >>> from tacit.datasets import drawn_digits
    >>> from tacit.problems import Transforms, rotations
    >>> X, y, _ = drawn_digits(100)
    >>> problem = Transforms(rotations(-60, 60, 5), n_components=8, blocks="class and state")
    >>> left, right = states_path(group_norm_path(GroupNormSVM(problem), X, y, [1, 10]), X, y)
    >>> left.get_ylabel(), right.get_xlabel()
    ('accuracy, %', 'states used')
    """
    if axes is None:
        axes = pyplot().figure(figsize=(8.6, 3.6), layout="constrained").subplots(1, 2)
    left, right = (plain_axes(ax) for ax in axes)
    for name, models, color in by_name(paths):
        order = np.argsort(models.n_states, kind="stable")
        used = models.n_states[order]
        left.plot(used, 100 * models.score(X, y)[order], "o-", color=color, ms=4, label=name)
        right.plot(used, 1e3 * models.prediction_seconds(X)[order], "o-", color=color, ms=4, label=name)
        if name:
            left.legend(frameon=False, labelcolor="linecolor", loc="lower right")
    left.set(xlabel="states used", ylabel="accuracy, %")
    right.set(xlabel="states used", ylabel="prediction, ms of CPU", ylim=(0, None))
    for ax in (left, right):
        whole_numbers(ax)
    return left, right


def window_chances(
    images: Sequence[Any],
    bags: Ragged,
    chances: Ragged,
    samples: Sequence[int],
    predicted: Any = None,
    truth: Any = None,
) -> Any:
    """Photos with P_θ over their windows: how likely every pixel is to lie in the hidden window.

    Beside each photo the same as a map, from white (0) to blue (1). The likeliest window is drawn blue, a predicted one
    orange, a true box dotted green.

    Parameters
    ----------
    images : one image per sample, as matplotlib shows them
    bags : their candidates, with boxes
    chances : one probability per candidate, such as `tacit.DissimilaritySVM.conditional_proba` gives them
    samples : which images to show
    predicted : (n,) the candidate that was predicted, as `predict_hidden` gives it
    truth : (n, 4) true boxes, if there are any

    >>> import matplotlib; matplotlib.use("Agg")
    >>> bags = Ragged.from_list([[[0.0], [5.0]]]).with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]])
    >>> figure = window_chances(np.zeros((1, 4, 6)), bags, Ragged(np.array([0.2, 0.8]), [0, 2]), [0])
    >>> len(figure.axes)
    2
    """
    if bags.boxes is None:
        raise ValueError("these bags carry no boxes; give them some with bags.with_boxes(...)")
    if not np.array_equal(chances.offsets, bags.offsets):
        raise ValueError("chances must hold one probability for every candidate of these bags")
    wrong = [i for i in samples if not 0 <= i < len(bags)]
    if wrong or not len(samples):
        raise ValueError(f"samples are some of 0 to {len(bags) - 1}, at least one, got {list(samples)}")
    heights = [0.25 + 2.6 * np.shape(images[i])[0] / np.shape(images[i])[1] for i in samples]
    figure, axes = pyplot().subplots(
        len(samples), 2, figsize=(5.6, sum(heights)), squeeze=False, layout="constrained", height_ratios=heights
    )
    for i, (left, right) in zip(samples, axes, strict=True):
        own = slice(int(bags.offsets[i]), int(bags.offsets[i + 1]))
        boxes, shares = bags.boxes[own], np.asarray(chances.values[own], dtype=np.float64)
        outlines = [(boxes[int(np.argmax(shares))], BLUE, "-")]
        if predicted is not None and int(predicted[i]) >= 0:
            outlines.append((boxes[int(predicted[i])], ORANGE, "-"))
        if truth is not None and np.isfinite(truth[i]).all():
            outlines.append((np.asarray(truth[i]), GREEN, ":"))
        show_image(left, images[i])
        outline(left, outlines)
        covered = pixel_chances(np.shape(images[i])[:2], boxes, shares)
        height, width = covered.shape
        right.imshow(covered, cmap="Blues", vmin=0, vmax=1, extent=(0, width, height, 0))
        right.set_axis_off()
        right.set_title(f"likeliest window: {shares.max():.0%}", fontsize=9, color=INK)
    return figure


def pixel_chances(shape: tuple[int, ...], boxes: Array, shares: Array) -> Array:
    """(height, width) the probability of every pixel to lie in a box that is drawn with these shares.

    >>> pixel_chances((1, 3), np.array([[0, 0, 2, 1], [1, 0, 3, 1]]), np.array([0.25, 0.75]))
    array([[0.25, 1.  , 0.75]])
    """
    total = np.zeros(shape)
    for (x0, y0, x1, y1), share in zip(np.round(boxes).astype(int).tolist(), shares.tolist(), strict=True):
        total[max(y0, 0) : y1, max(x0, 0) : x1] += share
    return total

"""How sure a model is of hidden values: entropies, probabilities of places, and the order of entropy that is best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.plot.canvas import BASES, BLUE, GREEN, GREY, INK, ORANGE, plain_axes, pyplot


def entropies_and_losses(model: Any, X: Any, y: Any) -> tuple[Array, Array]:
    """The entropy of the predicted label, and the loss of the prediction, of every sample.

    >>> from tacit import MinEntropySVM
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]]])
    >>> model = MinEntropySVM(Candidates(), C=10).fit(bags, [0, 1])
    >>> entropies_and_losses(model, bags, [0, 1])[1]
    array([0., 0.])
    """
    if not hasattr(model, "entropy"):
        raise ValueError(f"{type(model).__name__} has no entropy; fit a tacit.MinEntropySVM")
    oracle = model.problem.bind(model.problem.read(X), y, model.schema_)
    return model.entropy(X).min(axis=1), oracle.loss(model._answer(oracle))


def entropy_and_loss(model: Any, X: Any, y: Any, ax: Any = None, bins: int = 8) -> Any:
    """Entropy per sample against its loss: dots are samples, the line is the mean loss of equally many at a time.

    Parameters
    ----------
    model : a fitted `tacit.MinEntropySVM`
    X, y : samples and their labels, held out best
    ax : matplotlib axes; None makes them
    bins : points of the line

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import MinEntropySVM
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]]])
    >>> model = MinEntropySVM(Candidates(), C=10).fit(bags, [0, 1])
    >>> entropy_and_loss(model, bags, [0, 1]).get_ylabel()
    'loss'
    """
    entropies, losses = entropies_and_losses(model, X, y)
    ax = plain_axes(ax)
    jitter = np.random.default_rng(0).uniform(-0.02, 0.02, losses.size) * max(1.0, float(losses.max()))
    colors = np.where(losses > 0, ORANGE, BLUE)
    ax.scatter(entropies, losses + jitter, s=8, c=colors, alpha=0.4, linewidths=0)
    parts = np.array_split(np.argsort(entropies, kind="stable"), min(bins, losses.size))
    points = np.array([[entropies[part].mean(), losses[part].mean()] for part in parts])
    ax.plot(*points.T, color=INK, lw=2, marker="o", ms=4, label="mean loss")
    ax.legend(frameon=False, loc="center right")
    ax.set(xlabel="entropy of the predicted label, nats", ylabel="loss", title="The less sure, the more often wrong?")
    return ax


def order_curve(model: Any, ax: Any = None) -> Any:
    """The score of held-out folds by the order α of the entropy, one line per C; the chosen pair has a ring.

    Parameters
    ----------
    model : a `tacit.MinEntropySVM` that was fitted with ``alpha="cv"``
    ax : matplotlib axes; None makes them

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import MinEntropySVM
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]]] * 3)
    >>> model = MinEntropySVM(Candidates(), alpha="cv", alphas=[1, 2], cv=2).fit(bags, [0, 1] * 3)
    >>> [label.get_text() for label in order_curve(model).get_xticklabels()]
    ['1', '2']
    """
    curve = getattr(model, "curve_", None)
    if not curve:
        raise ValueError('there is no curve to draw: fit a tacit.MinEntropySVM with alpha="cv"')
    ax = plain_axes(ax)
    alphas = sorted({point.alpha for point in curve})
    for C, color in zip(sorted({point.C for point in curve}), (BLUE, ORANGE, GREY, INK, GREEN) * 9, strict=False):
        own = [point for point in curve if point.C == C]
        places = [alphas.index(point.alpha) for point in own]
        ax.errorbar(
            places, [p.score for p in own], [p.spread for p in own], color=color, marker="o", ms=4, capsize=3,
            label=f"C = {C:g}",
        )  # fmt: skip
    best = next(point for point in curve if (point.alpha, point.C) == (model.alpha_, model.C_))
    ax.plot(alphas.index(best.alpha), best.score, "o", ms=13, mfc="none", mec=GREEN, mew=2)
    ax.set_xticks(range(len(alphas)), ["∞" if np.isinf(alpha) else f"{alpha:g}" for alpha in alphas])
    ax.legend(frameon=False)
    ax.set(xlabel="order α of the entropy", ylabel="score of held-out folds", title="Which order of entropy?")
    return ax


def places_in_sequences(model: Any, X: Sequence[str], samples: Sequence[int], y: Any = None, truth: Any = None) -> Any:
    """The probability of every start of a motif, along sequences of DNA, one row each; a true start has a line.

    Parameters
    ----------
    model : a fitted `tacit.HiddenCRF` or `tacit.MinEntropySVM` of a `tacit.problems.Motif`
    X : sequences
    samples : which of them to show
    y : their labels; None for those that are predicted
    truth : true starts, −1 where there is none; None if they are unknown

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import HiddenCRF
    >>> from tacit.datasets import planted_motif
    >>> from tacit.problems import Motif
    >>> X, y, truth = planted_motif(40, 20, "GATTACA", seed=0)
    >>> len(places_in_sequences(HiddenCRF(Motif(7), C=50).fit(X, y), X, [0, 1], y, truth).axes)
    2
    """
    rows = list(samples)
    if not rows:
        raise ValueError("nothing to show: name at least one sample")
    chosen = [X[i] for i in rows]
    found = model.hidden_proba(chosen, None if y is None else [y[i] for i in rows])
    labels = model.predict(chosen) if y is None else [y[i] for i in rows]
    figure, axes = pyplot().subplots(len(rows), 1, figsize=(7.6, 1.15 * len(rows)), squeeze=False, layout="constrained")
    for i, sequence, probabilities, label, ax in zip(rows, chosen, found, labels, axes[:, 0], strict=True):
        plain_axes(ax)
        has_motif = label == model.classes_[1]
        by_start = np.reshape(probabilities, (-1, _strands(model))).sum(axis=1)
        ax.bar(np.arange(by_start.size), by_start if has_motif else 0 * by_start, color=BLUE, width=0.85)
        ax.set_xticks(range(len(sequence)), _letters(sequence), fontsize=7, family="monospace")
        for letter in ax.get_xticklabels():
            letter.set_color(BASES.get(letter.get_text(), INK))
        ax.set(ylim=(0, 1.05), yticks=[0, 1], xlim=(-0.8, len(sequence) - 0.2))
        ax.tick_params(length=0)
        if truth is not None and np.ravel(truth[i])[0] >= 0:
            ax.axvline(float(np.ravel(truth[i])[0]), color=GREEN, lw=2, ls=":")
        ax.set_title(f"sequence {i}, {label}" + ("" if has_motif else ": no motif"), fontsize=8, loc="left", pad=2)
    figure.suptitle("Where does the motif start? Bars: probability; green: truth", fontsize=10)
    return figure


def places_in_images(
    model: Any, images: Sequence[Any], bags: Ragged, samples: Sequence[int], y: Any = None, truth: Any = None
) -> Any:
    """The probability of every window, spread over the photo: where the model expects the object, and how surely.

    Parameters
    ----------
    model : a fitted `tacit.HiddenCRF` or `tacit.MinEntropySVM` of `tacit.problems.Candidates`
    images : one image per sample, as matplotlib shows them
    bags : their candidates, with boxes
    samples : which images to show
    y : labels of all samples; None for those that are predicted
    truth : (n, 4) true boxes, if there are any

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import HiddenCRF
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 2)
    >>> model = HiddenCRF(Candidates(), C=10).fit(bags, [0, 1])
    >>> len(places_in_images(model, np.zeros((2, 6, 6)), bags, [0, 1]).axes)
    2
    """
    if bags.boxes is None:
        raise ValueError("these bags carry no boxes; give them some with bags.with_boxes(...)")
    rows = np.asarray(list(samples), dtype=np.int64)
    if not rows.size:
        raise ValueError("nothing to show: name at least one sample")
    chosen: Any = bags[rows]
    labels = model.predict(chosen) if y is None else np.asarray(y)[rows]
    found = model.hidden_proba(chosen, labels)
    columns = min(rows.size, 4)
    lines = -(-rows.size // columns)
    figure, axes = pyplot().subplots(
        lines, columns, figsize=(2.3 * columns, 2.3 * lines), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[rows.size :]:
        ax.remove()
    for k, (i, ax) in enumerate(zip(rows, axes.flat, strict=False)):
        image = np.asarray(images[i])
        ax.imshow(image, cmap="gray" if image.ndim == 2 else None)
        heat = np.zeros(image.shape[:2])
        for (left, top, right, bottom), p in zip(chosen.boxes[chosen.offsets[k] :], found[k], strict=False):
            heat[int(top) : int(bottom), int(left) : int(right)] += p
        ax.imshow(heat, cmap="inferno", alpha=0.55, vmin=0, vmax=max(float(heat.max()), 1e-9))
        if truth is not None and np.isfinite(truth[i]).all():
            left, top, right, bottom = truth[i]
            ax.plot([left, right, right, left, left], [top, top, bottom, bottom, top], color=GREEN, lw=1.5, ls=":")
        entropy = -float(np.sum(found[k] * np.log(np.maximum(found[k], 1e-300))))
        ax.set_title(f"{labels[k]}: as sure as 1 of {np.exp(entropy):.1f}", fontsize=8)
        ax.set_axis_off()
    return figure


def _strands(model: Any) -> int:
    return 2 if getattr(model.problem, "strands", "one") == "both" else 1


def _letters(sequence: Any) -> list[str]:
    """The letters of a sequence, which may be a string, bytes, or the numbers of its characters."""
    return list(sequence if isinstance(sequence, str) else bytes(sequence).decode("ascii", "replace"))

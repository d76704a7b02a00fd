"""Figures of single papers that the pages draw; `tacit.plot` has what users call on their own models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.plot.canvas import (
    BASES,
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    by_name,
    plain_axes,
    pyplot,
    whole_numbers,
)


def group_norms(model: Any, axes: Any = None) -> Any:
    """The norm of the weights of every hidden state, one row of bars per label; states that are zero are crosses.

    The picture is figure 1 of Chen, Batra, Freeman & Johnson (2011).

    Parameters
    ----------
    model : a fitted `tacit.GroupNormSVM` with groups by label and state
    axes : one matplotlib axes per label; None makes them
    """
    norms = norms_by_label(model)
    if axes is None:
        size = (6.4, 0.6 + 1.1 * len(norms))
        axes = (
            pyplot()
            .figure(figsize=size, layout="constrained")
            .subplots(len(norms), 1, sharex=True, sharey=True)
        )
    axes = [plain_axes(ax) for ax in np.ravel(axes)]
    states = model.schema_.facts["states"]
    width = 0.8 * (float(np.min(np.diff(np.sort(states)))) if len(states) > 1 else 1.0)
    for ax, label, own, color in zip(
        axes, model.classes_, norms, np.resize([BLUE, ORANGE], len(norms)), strict=True
    ):
        ax.bar(states, own, width=width, color=color)
        ax.set_ylabel(str(label), rotation=0, ha="right", va="center")
        ax.plot(
            states[own == 0],
            np.zeros(np.count_nonzero(own == 0)),
            "x",
            color=GREY,
            ms=4,
            clip_on=False,
        )
    axes[0].set_title(
        f"Norm of the weights per state: {np.count_nonzero(norms)} of {norms.size} are used (× is zero)"
    )
    axes[-1].set_xlabel("hidden state")
    axes[-1].set_xticks(states)
    return axes


def norms_by_label(model: Any) -> Array:
    """(labels, states) norms of the weights of a fitted `tacit.GroupNormSVM`."""
    if not hasattr(model, "group_norms_"):
        raise ValueError(
            f"a fitted GroupNormSVM is needed, got {model!r}; call fit first"
        )
    return np.asarray(model._by_label(model.group_norms_))


def states_path(paths: Any, X: Any, y: Any, axes: Any = None) -> Any:
    """Accuracy and prediction time against the number of states used, one point per value of C.

    Both are measured on X and y, which should be held out. The picture is figure 2 of Chen et al. (2011).

    Parameters
    ----------
    paths : what `tacit.group_norm_path` returns, or a dict of those by name
    X, y : samples to measure on
    axes : two matplotlib axes; None makes them
    """
    if axes is None:
        axes = pyplot().figure(figsize=(8.6, 3.6), layout="constrained").subplots(1, 2)
    left, right = (plain_axes(ax) for ax in axes)
    for name, models, color in by_name(paths):
        order = np.argsort(models.n_states, kind="stable")
        used = models.n_states[order]
        left.plot(
            used, 100 * models.score(X, y)[order], "o-", color=color, ms=4, label=name
        )
        right.plot(
            used,
            1e3 * models.prediction_seconds(X)[order],
            "o-",
            color=color,
            ms=4,
            label=name,
        )
        if name:
            left.legend(frameon=False, labelcolor="linecolor", loc="lower right")
    left.set(xlabel="states used", ylabel="accuracy, %")
    right.set(xlabel="states used", ylabel="prediction, ms of CPU", ylim=(0, None))
    for ax in (left, right):
        whole_numbers(ax)
    return left, right


def entropies_and_losses(model: Any, X: Any, y: Any) -> tuple[Array, Array]:
    """The entropy of the predicted label, and the loss of the prediction, of every sample."""
    if not hasattr(model, "entropy"):
        raise ValueError(
            f"model must be a fitted tacit.MinEntropySVM, got {type(model).__name__}"
        )
    oracle = model.problem.bind(model.problem.read(X), y, model.schema_)
    return model.label_entropy(X).min(axis=1), oracle.loss(model._answer(oracle))


def entropy_and_loss(model: Any, X: Any, y: Any, ax: Any = None, bins: int = 8) -> Any:
    """Entropy per sample against its loss: dots are samples, the line is the mean loss of equally many at a time.

    Parameters
    ----------
    model : a fitted `tacit.MinEntropySVM`
    X, y : samples and their labels, held out best
    ax : matplotlib axes; None makes them
    bins : points of the line
    """
    entropies, losses = entropies_and_losses(model, X, y)
    ax = plain_axes(ax)
    jitter = np.random.default_rng(0).uniform(-0.02, 0.02, losses.size) * max(
        1.0, float(losses.max())
    )
    colors = np.where(losses > 0, ORANGE, BLUE)
    ax.scatter(entropies, losses + jitter, s=8, c=colors, alpha=0.4, linewidths=0)
    parts = np.array_split(np.argsort(entropies, kind="stable"), min(bins, losses.size))
    points = np.array([[entropies[part].mean(), losses[part].mean()] for part in parts])
    ax.plot(*points.T, color=INK, lw=2, marker="o", ms=4, label="mean loss")
    ax.legend(frameon=False, loc="center right")
    ax.set(
        xlabel="entropy of the predicted label, nats",
        ylabel="loss",
        title="The less sure, the more often wrong?",
    )
    return ax


def order_curve(model: Any, ax: Any = None) -> Any:
    """The score of held-out folds by the order α of the entropy, one line per C; the chosen pair has a ring.

    Parameters
    ----------
    model : a `tacit.MinEntropySVM` that was fitted with ``alpha="cv"``
    ax : matplotlib axes; None makes them
    """
    curve = getattr(model, "curve_", None)
    if not curve:
        raise ValueError(
            'model must be a tacit.MinEntropySVM fitted with alpha="cv": curve_ is empty'
        )
    ax = plain_axes(ax)
    alphas = sorted({point.alpha for point in curve})
    for C, color in zip(
        sorted({point.C for point in curve}),
        (BLUE, ORANGE, GREY, INK, GREEN) * 9,
        strict=False,
    ):
        own = [point for point in curve if point.C == C]
        places = [alphas.index(point.alpha) for point in own]
        ax.errorbar(
            places, [p.score for p in own], [p.std for p in own], color=color, marker="o", ms=4, capsize=3,
            label=f"C = {C:g}",
        )  # fmt: skip
    best = next(
        point for point in curve if (point.alpha, point.C) == (model.alpha_, model.C_)
    )
    ax.plot(
        alphas.index(best.alpha), best.score, "o", ms=13, mfc="none", mec=GREEN, mew=2
    )
    ax.set_xticks(
        range(len(alphas)),
        ["∞" if np.isinf(alpha) else f"{alpha:g}" for alpha in alphas],
    )
    ax.legend(frameon=False)
    ax.set(
        xlabel="order α of the entropy",
        ylabel="score of held-out folds",
        title="Which order of entropy?",
    )
    return ax


def motif_chances(
    model: Any,
    X: Sequence[str],
    samples: Sequence[int],
    y: Any = None,
    truth: Any = None,
) -> Any:
    """The probability of every start of a motif, along sequences of DNA, one row each; a true start has a line.

    Parameters
    ----------
    model : a fitted `tacit.HiddenCRF` or `tacit.MinEntropySVM` of a `tacit.problems.Motif`
    X : sequences
    samples : which of them to show
    y : their labels; None for those that are predicted
    truth : true starts, −1 where there is none; None if they are unknown
    """
    rows = list(samples)
    if not rows:
        raise ValueError("nothing to show: name at least one sample")
    chosen = [X[i] for i in rows]
    found = model.hidden_proba(chosen, None if y is None else [y[i] for i in rows])
    labels = model.predict(chosen) if y is None else [y[i] for i in rows]
    figure, axes = pyplot().subplots(
        len(rows),
        1,
        figsize=(7.6, 1.15 * len(rows)),
        squeeze=False,
        layout="constrained",
    )
    for i, sequence, probabilities, label, ax in zip(
        rows, chosen, found, labels, axes[:, 0], strict=True
    ):
        plain_axes(ax)
        has_motif = label == model.classes_[1]
        by_start = np.reshape(probabilities, (-1, _strands(model))).sum(axis=1)
        ax.bar(
            np.arange(by_start.size),
            by_start if has_motif else 0 * by_start,
            color=BLUE,
            width=0.85,
        )
        ax.set_xticks(
            range(len(sequence)), _letters(sequence), fontsize=7, family="monospace"
        )
        for letter in ax.get_xticklabels():
            letter.set_color(BASES.get(letter.get_text(), INK))
        ax.set(ylim=(0, 1.05), yticks=[0, 1], xlim=(-0.8, len(sequence) - 0.2))
        ax.tick_params(length=0)
        if truth is not None and np.ravel(truth[i])[0] >= 0:
            ax.axvline(float(np.ravel(truth[i])[0]), color=GREEN, lw=2, ls=":")
        ax.set_title(
            f"sequence {i}, {label}" + ("" if has_motif else ": no motif"),
            fontsize=8,
            loc="left",
            pad=2,
        )
    figure.suptitle(
        "Where does the motif start? Bars: probability; green: truth", fontsize=10
    )
    return figure


def _strands(model: Any) -> int:
    return 2 if getattr(model.problem, "strands", "one") == "both" else 1


def _letters(sequence: Any) -> list[str]:
    """The letters of a sequence, which may be a string, bytes, or the numbers of its characters."""
    return list(
        sequence
        if isinstance(sequence, str)
        else bytes(sequence).decode("ascii", "replace")
    )

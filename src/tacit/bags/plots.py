"""Pictures of bags: the scores of their instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.parameters import shorten
from tacit.plot.canvas import BLUE, GREY, INK, ORANGE, plain_axes

MAX_SHOWN = 60
"""Bags of a picture, at most: more cannot be read."""


def bag_witnesses(model: Any, X: Any, names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """The scores of all instances, a line per bag; the witness of every bag is a large dot.

    Parameters
    ----------
    model : a fitted `tacit.BagClassifier` of two classes
    X : at most 60 bags
    names : of the bags; None for their numbers
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import BagClassifier
    >>> X = np.random.default_rng(0).standard_normal((20, 3, 2))
    >>> X[::2, 1] += 5
    >>> model = BagClassifier(combine=False, rule="witness", C=100).fit(X, ["yes", "no"] * 10)
    >>> bag_witnesses(model, X[:4]).get_xlabel()
    'score of the instance for yes'
    """
    if not hasattr(model, "witnesses") or not hasattr(model, "classes_"):
        raise ValueError(f"model must be a fitted BagClassifier, got {shorten(model)}; call fit first")
    if model.per_label_ or len(model.classes_) != 2:
        raise ValueError(f"model must have two classes, got {shorten(list(model.classes_))}; use one of per_label_")
    scores, witnesses, labels = model.instance_scores(X), model.witnesses(X), model.predict(X)
    if len(scores) > MAX_SHOWN:
        raise ValueError(f"X must have at most {MAX_SHOWN} bags, got {len(scores)}; show a slice")
    shown = [str(i) for i in range(len(scores))] if names is None else [str(name) for name in names]
    if len(shown) != len(scores):
        raise ValueError(f"names must have one entry per bag, {len(scores)}, got {len(shown)}")
    ax = plain_axes(ax)
    ax.axvline(0, color=GREY, lw=0.8)
    for row, own in enumerate(scores):
        ax.scatter(own, np.full(len(own), row), s=14, color=BLUE, alpha=0.5, linewidths=0)
        if witnesses[row] >= 0:
            ax.scatter(own[witnesses[row]], row, s=46, color=ORANGE, edgecolors=INK, linewidths=0.5, zorder=3)
    ax.set_yticks(range(len(shown)), [f"{name}: {label}" for name, label in zip(shown, labels, strict=True)])
    ax.invert_yaxis()
    positive = model.classes_[1 - model._background]
    ax.set(xlabel=f"score of the instance for {positive}", title="Which instances decide")
    return ax

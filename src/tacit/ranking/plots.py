"""Pictures of retrieval: precision and recall, hidden classes of queries, images of queries and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, shorten, whole_number
from tacit.plot.canvas import BLUE, GREEN, GREY, INK, ORANGE, add_legend, by_name, plain_axes, pyplot

MAX_SHOWN = 40
"""Queries of a sheet, at most: more cannot be read."""


def precision_recall(curves: Mapping[str, Any], ax: Any = None) -> Any:
    """Mean precision against mean recall at each rank; one line per ranker.

    Parameters
    ----------
    curves : results of `tacit.ranking.measures.precision_recall` by name
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.ranking.measures import precision_recall as measure
    >>> precision_recall({"a ranker": measure([[2, 0, 1]], [[1, 0, 1]])}).get_xlabel()
    'recall'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError(f"curves must be a dict of (precision, recall) by ranker, got {shorten(curves)}")
    ax = plain_axes(ax)
    for name, pair, color in by_name(curves):
        precision, recall = _read_curve(name, pair)
        ax.plot(recall, precision, color=color, lw=1.8, label=name)
    ax.set(xlabel="recall", ylabel="precision", title="Precision and recall down the ranking", ylim=(0, None))
    add_legend(ax, curves)
    return ax


def _read_curve(name: Any, pair: Any) -> Array:
    """Precision and recall at each rank, as two rows."""
    found = [numbers(f"curves[{shorten(name)}]", own) for own in pair] if isinstance(pair, tuple | list) else []
    if len(found) != 2 or found[0].ndim != 1 or found[0].shape != found[1].shape:
        raise ValueError(
            f"curves[{shorten(name)}] must be (precision, recall), two vectors of one length, as "
            f"tacit.ranking.measures.precision_recall returns them; got {shorten(pair)}"
        )
    return np.stack(found)


def class_weights(ranker: Any, names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """The weights of each hidden class of queries, a row per class, times the standard deviation of the similarity.

    Parameters
    ----------
    ranker : a fitted `tacit.ranking.MixtureRanker`
    names : of the similarities; None for those of its items
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.ranking import MixtureRanker
    >>> X = np.random.default_rng(0).random((40, 2))
    >>> ranker = MixtureRanker(2, n_init=1).fit(X, X[:, 0] > 0.5, group=[5] * 8)
    >>> [label.get_text() for label in class_weights(ranker).get_yticklabels()]
    ['class 1', 'class 2']
    """
    weights, names = read_class_weights(ranker, names)
    ax = plain_axes(ax)
    most = max(float(np.abs(weights).max()), 1e-12)
    image = ax.imshow(weights, cmap="RdBu", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    ax.set_yticks(range(len(weights)), [f"class {g + 1}" for g in range(len(weights))])
    ax.set_xticks(range(len(names)), names, rotation=0 if max(map(len, names)) <= 3 else 60, ha="right")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label="weight × standard deviation of the similarity")
    ax.set_title("What each hidden class of queries looks at")
    return ax


def read_class_weights(ranker: Any, names: Sequence[str] | None = None) -> tuple[Array, list[str]]:
    """(classes, m) weights times the standard deviation of each similarity, and the names of the similarities."""
    if not hasattr(ranker, "class_weights_"):
        raise ValueError(f"ranker must be a fitted MixtureRanker, got {shorten(ranker)}; call fit first")
    weights = ranker.class_weights_ * ranker.scale_
    if names is None:
        items = ranker.items_
        columns = weights.shape[1]
        names = [f"{j}" for j in range(columns)] if items is None else ranker._relevances().names(items)
    if len(names) != weights.shape[1]:
        raise ValueError(f"names must have one entry per similarity, {weights.shape[1]}, got {len(names)}")
    return weights, list(names)


def hidden_classes(
    ranker: Any, images: Sequence[Any], probabilities: Any, names: Sequence[str] | None = None, k: int = 6
) -> Any:
    """A row per hidden class: the weights of the similarities, and the k queries that belong to it most clearly.

    Parameters
    ----------
    ranker : a fitted `tacit.ranking.MixtureRanker`
    images : one image per query, as matplotlib shows them
    probabilities : (queries, classes) of `MixtureRanker.class_proba`
    names : of the similarities; None for those of its items
    k : number of queries to show

    Returns the figure.
    """
    weights, names = read_class_weights(ranker, names)
    k = whole_number("k", k, 1, 50)
    shares = np.asarray(probabilities)
    if shares.shape != (len(images), len(weights)):
        needed = f"{(len(images), len(weights))} (images, classes)"
        raise ValueError(f"probabilities must have shape {needed}, as of class_proba, got {shares.shape}")
    k, n = min(k, len(images)), len(weights)
    most = 1.1 * max(float(np.abs(weights).max()), 1e-12)
    figure, axes = pyplot().subplots(
        n, k + 1, figsize=(3.4 + 1.05 * k, max(1.4, 0.2 * len(names)) * n + 0.4), squeeze=False, layout="constrained",
        width_ratios=[3.0] + [1.0] * k,
    )  # fmt: skip
    for g, line in enumerate(axes):
        bars, *photos = line
        bars.barh(np.arange(len(names)), weights[g], color=np.where(weights[g] < 0, ORANGE, BLUE), height=0.7)
        bars.set_yticks(np.arange(len(names)), names, fontsize=8)
        bars.set(xlim=(min(0.0, 1.1 * float(weights.min())), most), ylim=(len(names) - 0.5, -0.5))
        bars.spines[["top", "right"]].set_visible(False)
        share = shares.argmax(axis=1) == g
        bars.set_title(f"class {g + 1}: {share.mean():.0%} of the queries", fontsize=9, loc="left")
        for ax, q in zip(photos, np.argsort(-shares[:, g], kind="stable"), strict=False):
            _show(ax, images[q])
            ax.set_title(f"{shares[q, g]:.2f}", fontsize=8, color=INK)
    return figure


def retrieval_sheet(
    query_images: Sequence[Any],
    item_images: Sequence[Any],
    rankings: Mapping[str, Any],
    is_right: Any,
    queries: Sequence[int] | None = None,
    k: int = 10,
) -> Any:
    """Queries and their first k answers under each ranker; right answers are framed.

    Parameters
    ----------
    query_images, item_images : one image each, as matplotlib shows them
    rankings : by name of the ranker (queries, k or more) item numbers, as `rank` returns them
    is_right : (queries, items) which items are right for which query
    queries : which queries to show; None for the first six
    k : answers per query

    Returns the figure.
    """
    k = whole_number("k", k, 1, 50)
    right = np.asarray(is_right)
    shown = list(range(min(6, len(query_images)))) if queries is None else [int(q) for q in queries]
    if not rankings or not shown or len(shown) > MAX_SHOWN:
        raise ValueError(f"give at least one of rankings, and 1 to {MAX_SHOWN} queries, got {len(shown)}")
    if right.shape != (len(query_images), len(item_images)):
        needed = f"{(len(query_images), len(item_images))} (queries, items)"
        raise ValueError(f"is_right must have shape {needed}, got {right.shape}")
    orders = {name: _read_order(name, ranking, right.shape) for name, ranking in rankings.items()}
    rows = [(q, name) for q in shown for name in orders]
    figure, axes = pyplot().subplots(
        len(rows), k + 2, figsize=(0.85 * k + 2.6, 0.85 * len(rows) + 0.3), squeeze=False,
        width_ratios=[1.3, 1.15] + [1.0] * k, gridspec_kw={"wspace": 0.06, "hspace": 0.12},
    )  # fmt: skip
    figure.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01)
    for number, ((q, name), line) in enumerate(zip(rows, axes, strict=True)):
        label, photo, *answers = line
        label.axis("off")
        order = orders[name][q, :k]
        n_right = int(right[q, order[order >= 0]].astype(bool).sum())
        label.text(
            1.0, 0.5, f"{name}\n{n_right} of {k}", ha="right", va="center", fontsize=8, transform=label.transAxes
        )
        photo.axis("off")
        if number % len(orders) == 0:
            _show(photo, query_images[q])
            _frame(photo, INK, 2.0)
        for rank, ax in enumerate(answers):
            ax.axis("off")
            if rank < len(order) and order[rank] >= 0:
                _show(ax, item_images[order[rank]])
                is_hit = bool(right[q, order[rank]])
                _frame(ax, GREEN if is_hit else GREY, 3.0 if is_hit else 0.4)
    return figure


def _read_order(name: str, ranking: Any, shape: tuple[int, int]) -> Array:
    order = np.asarray(ranking)
    if order.ndim != 2 or order.dtype.kind not in "iu" or len(order) != shape[0]:
        raise ValueError(f"ranking {shorten(name)} must be (queries, k) item numbers, got {shorten(ranking)}")
    if order.size and not -1 <= order.min() <= order.max() < shape[1]:
        raise ValueError(f"ranking {shorten(name)} has item {order.max()}, but there are {shape[1]} items")
    return order


def _show(ax: Any, image: Any) -> None:
    ax.imshow(image, cmap="gray_r" if np.ndim(image) == 2 else None, interpolation="nearest")
    ax.axis("off")


def _frame(ax: Any, color: str, width: float) -> None:
    """Draw a frame around the axes, which are switched on for it."""
    ax.axis("on")
    ax.set(xticks=[], yticks=[])
    for line in ax.spines.values():
        line.set(visible=True, color=color, linewidth=width)

"""The hidden path of a sequence, below its signal."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, shorten
from tacit.data.specs import positive
from tacit.plot.canvas import BLUE, GREEN, GREY, INK, ORANGE, axes_grid

MAX_LINES = 4
"""Features that are drawn as lines; more become a table of shades."""


def hidden_path(model: Any, x: Any, step: float | None = None) -> Any:
    """Draw one sequence, and below it the path of hidden states that the model finds, with their durations.

    States that the path visits are rows. Where the model has probabilities of states, they are shades behind the path.

    Parameters
    ----------
    model : a fitted learner with a state per token: of `tacit.problems.SequenceClass`, `tacit.problems.Transcript`, or
        ``Chain(states=...)``
    x : (tokens, features) one sequence
    step : seconds from one token to the next; None counts tokens

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import LatentSVM
    >>> from tacit.problems import SequenceClass
    >>> up, down = [[0.0], [0.0], [1.0], [1.0]], [[1.0], [1.0], [0.0]]
    >>> model = LatentSVM(SequenceClass(states=2, topology="left-to-right"), C=100).fit([up, down], ["up", "down"])
    >>> figure = hidden_path(model, up)
    >>> figure.axes[0].get_title(), [text.get_text() for text in figure.axes[1].texts]
    ('up', ['2', '2'])
    """
    if not hasattr(model, "predict_hidden") or not hasattr(model, "coef_"):
        raise ValueError(f"model must be a fitted learner with hidden states, got {shorten(model)}; call fit first")
    table = numbers("x", x, "a table with one row per token").astype(np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"x must be one sequence, (tokens, features), got shape {table.shape}; give X[0], not X")
    scale = 1.0 if step is None else float(positive("step", step))
    path = np.asarray(model.predict_hidden([table])[0])
    if path.shape != (len(table),):
        raise ValueError(f"{type(model.problem).__name__} does not have a hidden state per token")
    name = np.asarray(model.predict([table])[0]).ravel().tolist()
    shown, row = np.unique(path, return_inverse=True)
    figure, axes = axes_grid(2, 1, (7.0, 4.2), sharex=True)
    top, bottom = axes[:, 0]
    _draw_signal(top, table, scale)
    top.set_title(_short_title(name))
    if hasattr(model, "hidden_proba"):
        chances = np.asarray(model.hidden_proba([table])[0])[:, shown]
        extent = (0, len(table) * scale, len(shown) - 0.5, -0.5)
        bottom.imshow(chances.T, aspect="auto", cmap="Blues", vmin=0, vmax=1.4, extent=extent, interpolation="nearest")
    edges = np.arange(len(table) + 1) * scale
    bottom.stairs(row, edges, baseline=None, color=ORANGE, lw=2)
    cuts = np.r_[0, np.flatnonzero(np.diff(path)) + 1, len(path)]
    for first, last in pairwise(cuts.tolist()):
        duration = f"{(last - first) * scale:.2g}" if step is not None else str(last - first)
        middle = (first + last) / 2 * scale
        bottom.annotate(duration, (middle, row[first]), (0, 3), textcoords="offset points", ha="center", fontsize=7)
    bottom.set_yticks(range(len(shown)), [str(state) for state in shown])
    bottom.set_ylim(len(shown) - 0.5, -0.7)
    bottom.set(xlabel="token" if step is None else "seconds", ylabel="hidden state", xlim=(0, len(table) * scale))
    return figure


def _draw_signal(ax: Any, table: Array, scale: float) -> None:
    """A few features as lines, many as shades."""
    if table.shape[1] <= MAX_LINES:
        time = (np.arange(len(table)) + 0.5) * scale
        for j, color in zip(range(table.shape[1]), (BLUE, INK, GREEN, GREY), strict=False):
            ax.plot(time, table[:, j], color=color, lw=1.2, marker=".", ms=4, label=f"feature {j}")
        if table.shape[1] > 1:
            ax.legend(fontsize=7, frameon=False)
        ax.set_ylabel("signal")
        return
    low, high = np.quantile(table, [0.02, 0.98])
    extent = (0, len(table) * scale, -0.5, table.shape[1] - 0.5)
    ax.imshow(table.T, origin="lower", aspect="auto", cmap="Greys", vmin=low, vmax=high, extent=extent)
    ax.set_ylabel("feature")


def _short_title(names: list[Any]) -> str:
    text = " ".join(str(name) for name in names)
    return text if len(text) <= 60 else f"{text[:57]}..."

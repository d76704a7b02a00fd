"""Pictures of what was learned and how. Needs matplotlib: ``pip install "tacit[plot]"``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.drawing import BLUE, GREY, INK, ORANGE, pyplot
from tacit.image_plots import box_statistics, found_windows, mean_images, turned_images

__all__ = [
    "box_statistics",
    "convergence",
    "found_windows",
    "gap",
    "images",
    "letter_heights",
    "logo",
    "mean_images",
    "pyplot",
    "turned_images",
]

BASES = {"A": "#2f9e44", "C": "#1f6fb4", "G": "#e8a200", "T": "#d03b2b"}


def convergence(model: Any, ax: Any = None) -> Any:
    """Objective and lower bound by step: the optimum lies in the shaded band.

    Parameters
    ----------
    model : a fitted learner, or a list of `tacit.solvers.Step`
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.solvers import Step
    >>> axes = convergence([Step(0, 0.0, 9.0, 0.0, 1), Step(1, 0.1, 5.0, 4.0, 2)])
    >>> axes.get_xlabel()
    'oracle passes'
    """
    steps = _steps(model)
    ax = _axes(ax)
    i, objective, bound = (np.array([getattr(s, name) for s in steps]) for name in ("iteration", "objective", "bound"))
    ax.fill_between(i, bound, objective, color=BLUE, alpha=0.12, lw=0)
    ax.plot(i, objective, color=BLUE, lw=1.8)
    ax.plot(i, bound, color=ORANGE, lw=1.8)
    last = float(objective[-1])
    seen = float(objective[min(len(objective) - 1, len(objective) // 6)])
    ax.set_ylim(max(0.0, last - 1.2 * max(seen - last, 0.05 * last)), last + 1.2 * max(seen - last, 0.05 * last))
    middle = len(i) // 3
    ax.annotate("objective", (i[middle], objective[middle]), (4, 8), textcoords="offset points", color=BLUE)
    ax.annotate("lower bound", (i[middle], bound[middle]), (4, -14), textcoords="offset points", color=ORANGE)
    ax.annotate(f"{last:.4g}", (i[-1], last), (4, 0), textcoords="offset points", va="center", color=INK)
    ax.set(xlabel="oracle passes", ylabel="objective", title="The optimum lies between the lines")
    return ax


def gap(models: Any, tol: float | None = None, ax: Any = None) -> Any:
    """The certified relative gap by step, on a logarithmic scale, for one model or for several by name.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.solvers import Step
    >>> axes = gap({"bundle": [Step(0, 0.0, 9.0, 0.0, 1), Step(1, 0.1, 5.0, 4.0, 2)]}, tol=1e-3)
    >>> axes.get_yscale()
    'log'
    """
    named = models if isinstance(models, Mapping) else {"": models}
    ax = _axes(ax)
    for color, (name, model) in zip((BLUE, GREY, ORANGE, INK), named.items(), strict=False):
        steps = _steps(model)
        share = np.array([s.gap / max(abs(s.objective), 1e-300) for s in steps])
        i = np.array([s.iteration for s in steps])
        ax.plot(i, np.where(share > 0, share, np.nan), color=color, lw=1.8, label=name)
    if any(named):
        ax.legend(frameon=False, labelcolor="linecolor", loc="upper right")
    if tol is not None:
        ax.axhline(tol, color=INK, lw=0.8, ls=":")
        ax.annotate(f"tol = {tol:g}", (0, tol), (2, 4), textcoords="offset points", color=INK)
    ax.set(yscale="log", xlabel="oracle passes", ylabel="gap / objective", title="Certified distance from the optimum")
    return ax


def images(weights: Array, titles: Sequence[Any], axes: Sequence[Any]) -> None:
    """Weight vectors as images, one per class: blue speaks for the class, red against it.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> images(np.eye(4).reshape(1, 4, 4), ["a"], [plt.subplots()[1]])
    """
    top = float(np.abs(weights).max()) or 1.0
    for ax, image, title in zip(axes, weights, titles, strict=True):
        ax.imshow(image, cmap="RdBu", vmin=-top, vmax=top)
        ax.set_title(str(title), fontsize=10, color=INK)
        ax.set_axis_off()


def logo(motif: Array, heights: str = "weights", ax: Any = None) -> Any:
    """A motif as a sequence logo (Schneider & Stephens 1990): letters stacked at each position, the strongest outside.

    Parameters
    ----------
    motif : (width, 4) weights of A, C, G, T by position, such as ``model.weights_["motif"]``
    heights : "weights" shows the weights less the mean of their position, in the model's own units: letters above the
        line speak for the motif, those below against it. "bits" reads them as log-odds: with p the softmax of a
        position's weights, a letter is p · (2 − entropy of p) high, of 2 bits at the most. That is the usual picture of
        counted letters, ``logo(np.log(counts), "bits")``; weights of a margin are small by C and width, not by
        information, so there it shows little
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> logo(np.log([[7, 1, 1, 1], [3, 2, 2, 3]]), "bits").get_ylabel()
    'bits'
    """
    values = letter_heights(motif, heights)
    plt = pyplot()
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    if ax is None:
        ax = plt.subplots(figsize=(max(3.0, 0.55 * len(values) + 1.0), 2.4), layout="constrained")[1]
    ax = _axes(ax)
    font = FontProperties(family="DejaVu Sans", weight="bold")
    glyphs = {letter: TextPath((0, 0), letter, size=1, prop=font) for letter in BASES}
    for position, column in enumerate(values):
        top = bottom = 0.0
        for i in np.argsort(np.abs(column), kind="stable"):
            height, letter = float(column[i]), "ACGT"[i]
            bottom += min(height, 0.0)
            box = glyphs[letter].get_extents()
            shape = Affine2D().translate(-box.x0, -box.y0).scale(0.92 / box.width, abs(height) / box.height)
            shape.translate(position + 0.54, top if height > 0 else bottom)
            ax.add_patch(PathPatch(shape.transform_path(glyphs[letter]), color=BASES[letter], lw=0))
            top += max(height, 0.0)
    ax.set_xlim(0.4, len(values) + 0.6)
    ax.set_xticks(range(1, len(values) + 1))
    ax.set_xlabel("position in the motif")
    if heights == "bits":
        ax.set(ylim=(0, 2), ylabel="bits")
        return ax
    low, high = (np.clip(values, *side).sum(axis=1) for side in ((None, 0.0), (0.0, None)))
    ax.set(ylim=(1.05 * low.min(), 1.05 * high.max() or 1.0), ylabel="weight less the mean")
    ax.axhline(0, color=INK, lw=0.8)
    return ax


def letter_heights(motif: Array, heights: str = "weights") -> Array:
    """(width, 4): how high `logo` draws A, C, G, T at every position; below zero for letters below the line.

    >>> letter_heights([[3.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    array([[ 2.,  0., -1., -1.],
           [ 0.,  0.,  0.,  0.]])
    >>> letter_heights([[50.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]], "bits").round(6)
    array([[2., 0., 0., 0.],
           [0., 0., 0., 0.]])
    """
    if heights not in ("weights", "bits"):
        raise ValueError(f"heights must be 'weights' or 'bits', got {heights!r}")
    weights = np.asarray(motif, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[1] != 4:
        raise ValueError(
            f"a motif is a table (width, 4) of weights of A, C, G and T, got shape {weights.shape}; "
            'model.weights_["motif"] is one'
        )
    known = weights if heights == "weights" else weights.max(axis=1)  # a letter never seen has the logarithm −inf
    if np.isnan(weights).any() or not np.isfinite(known).all():
        raise ValueError("the motif has weights that are no numbers: NaN or infinity")
    if heights == "weights":
        return np.asarray(weights - weights.mean(axis=1, keepdims=True))
    shares = np.exp(weights - weights.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    entropy = -(shares * np.log2(np.maximum(shares, 1e-300))).sum(axis=1, keepdims=True)
    return np.asarray(shares * np.maximum(2 - entropy, 0.0))


def _steps(model: Any) -> Any:
    steps = getattr(model, "history_", model)
    if not isinstance(steps, list) or not steps:
        raise ValueError(f"a fitted learner or a list of steps is needed, got {model!r}; call fit first")
    return steps


def _axes(ax: Any) -> Any:
    if ax is None:
        ax = pyplot().subplots(layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax

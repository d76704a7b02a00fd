"""What all pictures share: colours that colour-blind readers can distinguish, plain axes, models by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import Any

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, shorten

INK, BLUE, ORANGE, GREEN, GREY = "#222222", "#0072b2", "#d55e00", "#009e73", "#8a8a8a"
BASES = {"A": "#009e73", "C": "#0072b2", "G": "#e69f00", "T": "#d55e00"}
"""DNA letters in their customary colours, in the shades of Okabe & Ito."""


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "tacit[plot]"') from error
    return plt


def axes_grid(rows: int, columns: int, size: tuple[float, float], **more: Any) -> Any:
    """A figure and its axes, (rows, columns), without overlaps."""
    return pyplot().subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **more)


def plain_axes(ax: Any) -> Any:
    """The given axes, or new ones, without the lines at the top and at the right."""
    if ax is None:
        ax = pyplot().subplots(layout="constrained")[1]
    if not hasattr(ax, "spines"):
        raise TypeError(f"ax must be the axes of a matplotlib figure, or None for new ones, got {shorten(ax)}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def whole_numbers(ax: Any) -> None:
    """Put ticks of x at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def by_name(models: Any) -> Iterator[tuple[str, Any, str]]:
    """Name, model and colour of every model of a dict, or of a single model, whose name is empty.

    >>> [(name, color) for name, _, color in by_name({"a": 1, "b": 2})]
    [('a', '#0072b2'), ('b', '#d55e00')]
    """
    named = models if isinstance(models, Mapping) else {"": models}
    for (name, model), color in zip(named.items(), cycle((BLUE, ORANGE, GREY, INK, GREEN)), strict=False):
        yield str(name), model, color


def add_legend(ax: Any, models: Any, loc: str = "upper right") -> None:
    """Show the names of models in the colours of their lines, if there are names."""
    if isinstance(models, Mapping):
        ax.legend(frameon=False, labelcolor="linecolor", loc=loc)


def history_of(model: Any, holds: str, instead: str) -> Any:
    """The history of a fitted model, or ``model`` itself if it is a list; entries must have the attribute ``holds``."""
    lines = getattr(model, "history_", model)
    if not isinstance(lines, list) or not lines:
        raise ValueError(
            f"model must be a fitted learner or its history, got {shorten(model)}; call fit, and save it with history"
        )
    if not hasattr(lines[0], holds):
        raise ValueError(f"the history of {type(model).__name__} lacks {holds!r}; {instead}")
    wrong = [at for at, line in enumerate(lines) if type(line) is not type(lines[0])]
    if wrong:
        raise ValueError(f"line {wrong[0]} of the history is {shorten(lines[wrong[0]])}, unlike the first; remove it")
    return lines


def column(lines: Any, name: str) -> Array:
    """One number of every line of a history."""
    return numbers(f"{name} of the history", [getattr(line, name) for line in lines])

"""Charts as inline SVG: they scale, print, follow the reader's dark mode, and need no script.

Every text is escaped here, so names from files can go in as they are. Colours come from the style of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from tacit.data.arrays import Array
from tacit.report.axes import Axes, legend_rows
from tacit.report.page import show_number

MAX_POINTS = 400
"""Corners of a curve that are drawn: more than a screen has to show."""

_BAR, _LABEL = 24, 150


def line_chart(
    series: Mapping[str, tuple[Any, Any]],
    xlabel: str,
    ylabel: str,
    *,
    title: str = "",
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    diagonal: bool = False,
    whole_x: bool = False,
) -> Markup:
    """Curves in one pair of axes, at most five of them, named in a legend where there are several.

    Parameters
    ----------
    series : x and y of every curve, by name
    title : what the chart shows, for those who cannot see it
    x_range, y_range : of the axes; None for what the curves need
    diagonal : draw the line from corner to corner, as behind a ROC curve
    whole_x : x counts something: no ticks between whole numbers

    >>> svg = line_chart({"a < b": ([0, 1, 2], [3, 1, 2])}, "round", "objective")
    >>> "<polyline" in svg, "a < b" in svg
    (True, False)
    """
    curves = {name: _thin(np.asarray(x, float), np.asarray(y, float)) for name, (x, y) in series.items()}
    names = legend_rows(list(curves), is_shown=len(curves) > 1)
    axes = Axes(
        x_range or _extent([x for x, _ in curves.values()]),
        y_range or _with_room(_extent([y for _, y in curves.values()])),
        xlabel,
        ylabel,
        rows=len(names),
        whole_x=whole_x,
    )
    parts = [axes.draw_frame()]
    if diagonal:
        (x0, x1), (y0, y1) = axes.x_range, axes.y_range
        parts.append(axes.polyline([x0, x1], [y0, y1], "s3", dashed=True))
    for number, (x, y) in enumerate(curves.values()):
        parts.append(axes.polyline(x, y, f"s{number % 5}") if x.size > 1 else axes.dots(x, y, f"s{number % 5}", 4))
    return axes.finish([*parts, axes.draw_legend(names)], title or f"{ylabel} by {xlabel}")


def roc_chart(
    curves: Mapping[str, tuple[Any, Any]], *, xlabel: str = "false positives", ylabel: str = "true positives"
) -> Markup:
    """Receiver operating characteristics, shares from 0 to 1 on both axes, with the diagonal of a guess."""
    return line_chart(curves, xlabel, ylabel, title="ROC curves", x_range=(0.0, 1.0), y_range=(0.0, 1.0), diagonal=True)


def scatter_chart(
    series: Mapping[str, tuple[Any, Any]], xlabel: str, ylabel: str, *, title: str = "", radius: float = 2.5
) -> Markup:
    """Points in one pair of axes, by name."""
    points = {name: (np.asarray(x, float), np.asarray(y, float)) for name, (x, y) in series.items()}
    names = legend_rows(list(points), is_shown=len(points) > 1)
    axes = Axes(
        _with_room(_extent([x for x, _ in points.values()])),
        _with_room(_extent([y for _, y in points.values()])),
        xlabel,
        ylabel,
        rows=len(names),
    )
    dots = [axes.dots(x, y, f"s{number % 5}", radius) for number, (x, y) in enumerate(points.values())]
    return axes.finish([axes.draw_frame(), *dots, axes.draw_legend(names)], title or f"{ylabel} by {xlabel}")


def histogram(
    values: Mapping[str, Any],
    xlabel: str,
    *,
    bins: int = 30,
    x_range: tuple[float, float] | None = None,
    title: str = "",
) -> Markup:
    """How often values occur, as steps; several kinds of values share their bins, which cut the range evenly.

    >>> "<polyline" in histogram({"sites": [1.0, 2.0, 2.0]}, "position")
    True
    """
    kinds = {name: np.asarray(numbers, float) for name, numbers in values.items()}
    low, high = x_range or _extent(list(kinds.values()))
    edges = np.linspace(low, high, bins + 1)
    steps = {}
    for name, numbers in kinds.items():
        counts = np.histogram(numbers, edges)[0] / max(numbers.size, 1)
        steps[name] = np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(counts, 2), [0.0]])
    most = max((float(y.max()) for _, y in steps.values()), default=1.0)
    return line_chart(steps, xlabel, "share", title=title, x_range=(low, high), y_range=(0.0, most or 1.0))


def bar_chart(
    names: Sequence[str],
    values: Sequence[float],
    xlabel: str = "",
    *,
    intervals: Sequence[tuple[float, float]] | None = None,
    x_range: tuple[float, float] | None = None,
    title: str = "",
) -> Markup:
    """Horizontal bars with their numbers, and whiskers where there are intervals.

    >>> svg = bar_chart(["k-mers", "motif"], [0.91, 0.94], "AUROC", x_range=(0.5, 1.0))
    >>> svg.count("<rect")
    2
    """
    numbers = np.asarray(values, float)
    low, high = x_range or (min(0.0, float(numbers.min())), max(float(numbers.max()), 1e-12))
    width, height = 460, _BAR * len(names) + 40
    scale = (width - _LABEL - 50) / (high - low)
    place = np.clip((numbers - low) * scale, 0, None)
    parts = []
    for row, (name, value, length) in enumerate(zip(names, numbers, place, strict=True)):
        y = 6 + _BAR * row
        end = _LABEL + length
        parts.append(f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(_cut(name))}</text>')
        parts.append(f'<rect class="s0 fill" x="{_LABEL}" y="{y}" width="{length:.1f}" height="16" opacity="0.75"/>')
        if intervals is not None:
            left, right = ((np.clip(edge, low, high) - low) * scale + _LABEL for edge in intervals[row])
            parts.append(f'<path class="axis" d="M{left:.1f} {y + 8}H{right:.1f}M{right:.1f} {y + 4}v8"/>')
            end = max(end, right)
        parts.append(f'<text x="{end + 6:.1f}" y="{y + 13}">{show_number(float(value))}</text>')
    parts.append(
        f'<text class="soft" x="{width - 8}" y="{height - 12}" text-anchor="end">{escape(xlabel)}'
        f"{f' (the axis begins at {show_number(low)})' if low else ''}</text>"
    )
    shown = escape(title or xlabel)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{shown}"><title>{shown}</title>'
    return Markup(f"{head}{''.join(parts)}</svg>")


def _extent(columns: Sequence[Array]) -> tuple[float, float]:
    """The smallest and the largest finite number; a little room where they are one."""
    together = np.concatenate([*columns, np.zeros(0)])
    together = together[np.isfinite(together)]
    if not together.size:
        return 0.0, 1.0
    low, high = float(together.min()), float(together.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _with_room(extent: tuple[float, float]) -> tuple[float, float]:
    """A little more at both ends, so that nothing is drawn on the frame."""
    room = 0.04 * (extent[1] - extent[0])
    return extent[0] - room, extent[1] + room


def _thin(x: Array, y: Array) -> tuple[Array, Array]:
    """A curve with at most `MAX_POINTS` corners, its ends among them; what is not finite is left out."""
    kept = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if kept.size > MAX_POINTS:
        kept = kept[np.unique(np.linspace(0, kept.size - 1, MAX_POINTS).round().astype(int))]
    return x[kept], y[kept]


def _cut(text: str, most: int = 20) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

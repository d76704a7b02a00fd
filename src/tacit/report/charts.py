"""Charts as inline SVG: they scale, print, follow the reader's dark mode, and need no script.

Every text is escaped here, so names from files can go in as they are. Colours come from the style of the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from tacit.data.arrays import Array
from tacit.data.parameters import entries, number, numbers, shorten, whole_number
from tacit.report.page import show_number

MAX_POINTS = 400
"""Corners of a curve, at most: a screen does not show more."""

_BAR, _LABEL = 24, 150

WIDTH, HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM, _LEGEND_ROW = 58, 14, 12, 46, 18
_MAX_LEGEND = 34

CELL, LABEL = 26, 90
"""Pixels of a square, and of the space for names on the left."""

MAX_NAME, LETTER = 12, 8
"""Letters of a name that are shown, and pixels per letter."""


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
    """Up to five curves in one pair of axes, with a legend for several.

    Parameters
    ----------
    series : x and y of every curve, by name
    title : what the chart shows, for screen readers
    x_range, y_range : of the axes; None for the range of the curves
    diagonal : draw the diagonal, as for ROC curves
    whole_x : ticks of x at whole numbers only

    >>> svg = line_chart({"a < b": ([0, 1, 2], [3, 1, 2])}, "round", "objective")
    >>> "<polyline" in svg, "a < b" in svg
    (True, False)
    """
    curves = {name: _thin(x, y) for name, (x, y) in _read_series(series).items()}
    names = legend_rows(list(curves), is_shown=len(curves) > 1)
    axes = Axes(
        _read_range("x_range", x_range) or _extent([x for x, _ in curves.values()]),
        _read_range("y_range", y_range) or _widen(_extent([y for _, y in curves.values()])),
        xlabel,
        ylabel,
        rows=len(names),
        whole_x=whole_x,
    )
    parts = [axes.draw_frame()]
    if diagonal:
        (x0, x1), (y0, y1) = axes.x_range, axes.y_range
        parts.append(axes.polyline([x0, x1], [y0, y1], "s3", dashed=True))
    for i, (x, y) in enumerate(curves.values()):
        parts.append(axes.polyline(x, y, f"s{i % 5}") if x.size > 1 else axes.dots(x, y, f"s{i % 5}", 4))
    return axes.finish([*parts, axes.draw_legend(names)], title or f"{ylabel} by {xlabel}")


def roc_chart(
    curves: Mapping[str, tuple[Any, Any]], *, xlabel: str = "false positives", ylabel: str = "true positives"
) -> Markup:
    """Receiver operating characteristics: rates from 0 to 1 on both axes, and the diagonal of a random guess."""
    return line_chart(curves, xlabel, ylabel, title="ROC curves", x_range=(0.0, 1.0), y_range=(0.0, 1.0), diagonal=True)


def scatter_chart(
    series: Mapping[str, tuple[Any, Any]], xlabel: str, ylabel: str, *, title: str = "", radius: float = 2.5
) -> Markup:
    """Points in one pair of axes, by name."""
    points = _read_series(series)
    names = legend_rows(list(points), is_shown=len(points) > 1)
    axes = Axes(
        _widen(_extent([x for x, _ in points.values()])),
        _widen(_extent([y for _, y in points.values()])),
        xlabel,
        ylabel,
        rows=len(names),
    )
    dots = [axes.dots(x, y, f"s{i % 5}", radius) for i, (x, y) in enumerate(points.values())]
    return axes.finish([axes.draw_frame(), *dots, axes.draw_legend(names)], title or f"{ylabel} by {xlabel}")


def histogram(
    values: Mapping[str, Any],
    xlabel: str,
    *,
    bins: int = 30,
    x_range: tuple[float, float] | None = None,
    title: str = "",
) -> Markup:
    """A histogram as steps; several kinds of values share the bins, which have equal widths.

    >>> "<polyline" in histogram({"sites": [1.0, 2.0, 2.0]}, "position")
    True
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"values must be a dict of numbers by name, got {shorten(values)}")
    kinds = {name: _read_vector(f"values[{shorten(name)}]", own) for name, own in values.items()}
    low, high = _read_range("x_range", x_range) or _extent(list(kinds.values()))
    edges = np.linspace(low, high, whole_number("bins", bins, 1, 10_000) + 1)
    steps = {}
    for name, own in kinds.items():
        counts = np.histogram(own, edges)[0] / max(own.size, 1)
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
    """Horizontal bars with their numbers, and whiskers for intervals.

    >>> svg = bar_chart(["k-mers", "motif"], [0.91, 0.94], "AUROC", x_range=(0.5, 1.0))
    >>> svg.count("<rect")
    2
    """
    names = entries("names", names, "a list of names")
    lengths = _read_vector("values", values)
    if lengths.shape != (len(names),) or not lengths.size or not np.isfinite(lengths).all():
        raise ValueError(f"values must be {len(names)} finite numbers, one per name, got {shorten(values)}")
    if intervals is not None:
        intervals = [_read_interval(own) for own in entries("intervals", intervals, "one per bar", len(names))]
    low, high = _read_range("x_range", x_range) or (min(0.0, float(lengths.min())), max(float(lengths.max()), 1e-12))
    width, height = 460, _BAR * len(names) + 40
    scale = (width - _LABEL - 50) / (high - low)
    parts = []
    for row, (name, value) in enumerate(zip(map(str, names), lengths, strict=True)):
        length = max(0.0, (value - low) * scale)
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
    return _svg(parts, title or xlabel, width, height)


def confusion_chart(names: Sequence[str], counts: Any) -> Markup:
    """A confusion matrix ``counts[true, predicted]``: correct answers on the diagonal; the darker, the more frequent.

    Shades are shares of the row, so that rare labels show as well. The tooltip of a square has its numbers.

    >>> svg = confusion_chart(["cat", "dog"], [[8, 2], [0, 5]])
    >>> svg.count("<rect"), "2 of 10" in svg
    (3, True)
    """
    names = [str(name) for name in entries("names", names, "a list of names")]
    table, k = numbers("counts", counts), len(names)
    if table.shape != (k, k) or not (table >= 0).all() or not np.isfinite(table).all():
        raise ValueError(f"counts must be a table of {k} × {k} finite numbers from 0, got {shorten(counts)}")
    top = 14 + LETTER * min(max(map(len, names), default=0), MAX_NAME)
    width, height = LABEL + CELL * k + 10, top + CELL * k + 10
    corner = f'<text class="soft" x="{LABEL - 8}" y="{top - 8}" text-anchor="end" style="font-size:10px">'
    parts = [corner + "true \\ predicted</text>"]
    for j, name in enumerate(names):
        x, y = LABEL + CELL * (j + 0.5), top + CELL * (j + 0.65)
        shown = escape(name[:MAX_NAME])
        parts.append(f'<text x="{LABEL - 8}" y="{y:.0f}" text-anchor="end">{shown}</text>')
        parts.append(f'<text transform="translate({x + 4:.0f} {top - 8}) rotate(-90)">{shown}</text>')
    for i in range(k):
        total = float(table[i].sum())
        for j in range(k):
            if not table[i, j]:
                continue
            share = table[i, j] / total
            shade = 0.12 + 0.88 * share**0.5
            kind = "s0" if i == j else "s1"
            tooltip = f"{names[i]} predicted as {names[j]}: {show_number(table[i, j])} of {show_number(total)}"
            parts.append(
                f'<rect class="{kind} fill" x="{LABEL + CELL * j + 1}" y="{top + CELL * i + 1}" width="{CELL - 2}" '
                f'height="{CELL - 2}" opacity="{shade:.2f}"><title>{escape(tooltip)}</title></rect>'
            )
    return Markup(
        f'<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" '
        f'style="max-width: {width}px" role="img" aria-label="confusion matrix">{"".join(parts)}</svg>'
    )


@dataclass(frozen=True)
class Axes:
    """The axes of a chart of `WIDTH` × `HEIGHT` units.

    Parameters
    ----------
    x_range, y_range : the numbers at the ends of the axes
    xlabel, ylabel : their names
    rows : lines of the legend above
    whole_x : ticks of x at whole numbers only
    """

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    xlabel: str
    ylabel: str
    rows: int = 0
    whole_x: bool = False

    @property
    def _top(self) -> int:
        return _TOP + _LEGEND_ROW * self.rows

    def locate(self, x: Any, y: Any) -> tuple[Array, Array]:
        """The coordinates of points; those outside the axes are put on their edge."""
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        across = np.clip((np.asarray(x, float) - x0) / (x1 - x0), 0, 1)
        up = np.clip((np.asarray(y, float) - y0) / (y1 - y0), 0, 1)
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _BOTTOM - self._top)

    def polyline(self, x: Any, y: Any, series: str, dashed: bool = False) -> str:
        """A curve in the colour of a series."""
        corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(*self.locate(x, y), strict=True))
        return f'<polyline class="{series} stroke{" dashed" if dashed else ""}" points="{corners}"/>'

    def dots(self, x: Any, y: Any, series: str, radius: float) -> str:
        """Points in the colour of a series."""
        circles = "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius:g}"/>' for a, b in zip(*self.locate(x, y), strict=True)
        )
        return f'<g class="{series} fill" opacity="0.75">{circles}</g>'

    def draw_frame(self) -> str:
        """Lines at round numbers, with the numbers, and the names of the axes."""
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
        parts = []
        for tick in round_numbers(y0, y1):
            y = float(self.locate(x0, tick)[1])
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="soft" x="{_LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in round_numbers(x0, x1, whole=self.whole_x):
            x = float(self.locate(tick, y0)[0])
            parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
            parts.append(f'<text class="soft" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
        xlabel, ylabel = (escape(label) for label in (self.xlabel, self.ylabel))
        middle = (self._top + bottom) / 2
        parts += [
            f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>',
            f'<text x="{(_LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{xlabel}</text>',
            f'<text transform="translate(13 {middle:.0f}) rotate(-90)" text-anchor="middle">{ylabel}</text>',
        ]
        return "".join(parts)

    def draw_legend(self, rows: Sequence[str]) -> str:
        """One name per line, in the colour of its series."""
        heights = [_TOP + 4 + _LEGEND_ROW * number for number in range(len(rows))]
        return "".join(
            f'<text class="s{number % 5} fill" x="{_LEFT + 4}" y="{y}">{escape(row)}</text>'
            for number, (row, y) in enumerate(zip(rows, heights, strict=True))
        )

    def finish(self, parts: Sequence[str], title: str) -> Markup:
        """The chart; its parts are escaped already."""
        return _svg(parts, title, WIDTH, HEIGHT)


def _svg(parts: Sequence[str], title: str, width: int, height: int) -> Markup:
    shown = escape(title)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{shown}"><title>{shown}</title>'
    return Markup(f"{head}{''.join(parts)}</svg>")


def legend_rows(names: Sequence[str], is_shown: bool) -> list[str]:
    """The lines of a legend; long names are cut."""
    return [_cut(name, _MAX_LEGEND) for name in names] if is_shown else []


def round_numbers(low: float, high: float, *, about: int = 5, whole: bool = False) -> list[float]:
    """About five round numbers between two others.

    >>> round_numbers(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> round_numbers(0.0, 3.0, whole=True)
    [0.0, 1.0, 2.0, 3.0]
    """
    step = (high - low) / about
    power = 10.0 ** math.floor(math.log10(step))
    step = power * min(unit for unit in (1, 2, 5, 10) if unit * power >= step * 0.999)
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(number * step, digits) + 0.0 for number in range(first, last + 1)]


def _extent(columns: Sequence[Array]) -> tuple[float, float]:
    """The smallest and the largest finite number, half a unit further where they are equal."""
    together = np.concatenate([*columns, np.zeros(0)])
    together = together[np.isfinite(together)]
    if not together.size:
        return 0.0, 1.0
    low, high = float(together.min()), float(together.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _read_series(series: Any) -> dict[str, tuple[Array, Array]]:
    """x and y of every curve, by name: vectors of one length."""
    if not isinstance(series, Mapping):
        raise TypeError(f"series must be a dict of pairs (x, y) by name, got {shorten(series)}")
    found = {}
    for name, pair in series.items():
        x, y = (_read_vector(f"series[{shorten(name)}]", own) for own in entries("a series", pair, "a pair (x, y)", 2))
        if x.size != y.size:
            raise ValueError(f"x and y of {shorten(name)} must have one length, got {x.size} and {y.size}")
        found[str(name)] = x, y
    return found


def _read_vector(name: str, values: Any) -> Array:
    """A vector of numbers, which may be infinite or NaN."""
    found = numbers(name, values, "a list of numbers")
    if found.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got shape {found.shape}")
    return found


def _read_range(name: str, extent: Any) -> tuple[float, float] | None:
    """Two finite numbers, the first one below the second; None stays None."""
    if extent is None:
        return None
    low, high = (number(name, end, "finite numbers") for end in entries(name, extent, "a pair (low, high) or None", 2))
    if low >= high:
        raise ValueError(f"{name} must have its lower end first, got {low:g} and {high:g}")
    return low, high


def _read_interval(ends: Any) -> tuple[float, float]:
    low, high = (number("an interval", end, "two finite numbers") for end in entries("an interval", ends, "a pair", 2))
    return low, high


def _widen(extent: tuple[float, float]) -> tuple[float, float]:
    """A range that is a little wider, so that nothing is drawn on the frame."""
    margin = 0.04 * (extent[1] - extent[0])
    return extent[0] - margin, extent[1] + margin


def _thin(x: Array, y: Array) -> tuple[Array, Array]:
    """A curve with at most `MAX_POINTS` corners, its ends included; points that are not finite are left out."""
    kept = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if kept.size > MAX_POINTS:
        kept = kept[np.unique(np.linspace(0, kept.size - 1, MAX_POINTS).round().astype(int))]
    return x[kept], y[kept]


def _cut(text: str, most: int = 20) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

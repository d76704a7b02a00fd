"""A pair of axes in SVG: from numbers to places, ticks at round numbers, a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from tacit.data.arrays import Array

WIDTH, HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM, _LEGEND_ROW = 58, 14, 12, 46, 18
_MAX_LEGEND = 34


class Axes:
    """Where numbers lie in a chart of `WIDTH` × `HEIGHT` units.

    Parameters
    ----------
    x_range, y_range : the numbers at the ends of the axes
    xlabel, ylabel : what they measure
    rows : lines of the legend, which stands above
    whole_x : ticks of x at whole numbers only
    """

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        xlabel: str,
        ylabel: str,
        *,
        rows: int = 0,
        whole_x: bool = False,
    ) -> None:
        self.x_range, self.y_range = x_range, y_range
        self._labels = xlabel, ylabel
        self._top = _TOP + _LEGEND_ROW * rows
        self._whole_x = whole_x

    def places(self, x: Any, y: Any) -> tuple[Array, Array]:
        """Where points are drawn; what is outside of the axes is put on their edge."""
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        across = np.clip((np.asarray(x, float) - x0) / (x1 - x0), 0, 1)
        up = np.clip((np.asarray(y, float) - y0) / (y1 - y0), 0, 1)
        return (
            _LEFT + across * (WIDTH - _LEFT - _RIGHT),
            HEIGHT - _BOTTOM - up * (HEIGHT - _BOTTOM - self._top),
        )

    def polyline(self, x: Any, y: Any, series: str, dashed: bool = False) -> str:
        """A curve in the colour of a series."""
        corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(*self.places(x, y), strict=True))
        return f'<polyline class="{series} stroke{" dashed" if dashed else ""}" points="{corners}"/>'

    def dots(self, x: Any, y: Any, series: str, radius: float) -> str:
        """Points in the colour of a series."""
        circles = "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius:g}"/>' for a, b in zip(*self.places(x, y), strict=True)
        )
        return f'<g class="{series} fill" opacity="0.75">{circles}</g>'

    def draw_frame(self) -> str:
        """Lines at round numbers, with the numbers, and what the axes measure."""
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
        parts = []
        for tick in round_numbers(y0, y1):
            y = float(self.places(x0, tick)[1])
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="soft" x="{_LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in round_numbers(x0, x1, whole=self._whole_x):
            x = float(self.places(tick, y0)[0])
            parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
            parts.append(f'<text class="soft" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
        xlabel, ylabel = (escape(label) for label in self._labels)
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
        """The chart. Everything in it was escaped where it was made."""
        shown = escape(title)
        return Markup(
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{shown}"><title>{shown}</title>'
            f"{''.join(parts)}</svg>"
        )


def legend_rows(names: Sequence[str], is_shown: bool) -> list[str]:
    """The lines of a legend; long names are cut."""
    if not is_shown:
        return []
    return [name if len(name) <= _MAX_LEGEND else name[: _MAX_LEGEND - 1] + "…" for name in names]


def round_numbers(low: float, high: float, *, about: int = 5, whole: bool = False) -> list[float]:
    """About five numbers between two others that are easy to read.

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

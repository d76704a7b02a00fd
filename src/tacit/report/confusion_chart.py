"""A picture of which labels are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from tacit.report.page import show_number

CELL, LABEL = 26, 90
"""Pixels of a square, and of the room for names on the left."""

MAX_NAME, LETTER = 12, 8
"""Letters of a name that are shown, and pixels of a letter."""


def confusion_chart(names: Sequence[str], counts: Any) -> Markup:
    """Squares ``counts[true, called]``: right answers on the diagonal, mistakes the darker the more frequent.

    Shades are shares of the row, so that rare labels show as well; every square says its numbers when pointed at.

    >>> svg = confusion_chart(["cat", "dog"], [[8, 2], [0, 5]])
    >>> svg.count("<rect"), "2 of 10" in svg
    (3, True)
    """
    table = np.asarray(counts, dtype=np.float64)
    k = len(names)
    top = 14 + LETTER * min(max(map(len, names), default=0), MAX_NAME)
    width, height = LABEL + CELL * k + 10, top + CELL * k + 10
    parts = [f'<text class="soft" x="{LABEL - 8}" y="{top - 8}" text-anchor="end">true \\ called</text>']
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
            told = f"{names[i]} called {names[j]}: {show_number(table[i, j])} of {show_number(total)}"
            parts.append(
                f'<rect class="{kind} fill" x="{LABEL + CELL * j + 1}" y="{top + CELL * i + 1}" width="{CELL - 2}" '
                f'height="{CELL - 2}" opacity="{shade:.2f}"><title>{escape(told)}</title></rect>'
            )
    return Markup(
        f'<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" '
        f'style="max-width: {width}px" role="img" aria-label="which labels are taken for which">{"".join(parts)}</svg>'
    )

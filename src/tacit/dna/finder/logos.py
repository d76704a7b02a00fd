"""Sequence logos as SVG, letters drawn as shapes: they look the same everywhere, and need no font."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from tacit.data.arrays import Array

GLYPHS = {
    "A": "M0 0L.38 1H.62L1 0H.8L.71 .25H.29L.2 0ZM.35 .41H.65L.5 .84Z",
    "C": (
        "M1 .32C.97 .1 .8 0 .53 0C.2 0 0 .2 0 .5C0 .8 .2 1 .53 1C.8 1 .97 .9 1 .68L.79 .65C.76 .78 .67 .84 .53 .84"
        "C.32 .84 .21 .72 .21 .5C.21 .28 .32 .16 .53 .16C.67 .16 .76 .22 .79 .35Z"
    ),
    "G": (
        "M1 .13C.9 .05 .75 0 .55 0C.2 0 0 .2 0 .5C0 .8 .2 1 .55 1C.8 1 .95 .9 .99 .7L.78 .66C.75 .78 .67 .84 .55 .84"
        "C.33 .84 .21 .72 .21 .5C.21 .28 .33 .16 .56 .16C.65 .16 .73 .18 .79 .22V.36H.55V.52H1Z"
    ),
    "T": "M0 1H1V.84H.61V0H.39V.84H0Z",
}
"""Letters in a box of one by one, its origin at the lower left."""

COLOURS = {"A": "#009e73", "C": "#0072b2", "G": "#c98500", "T": "#d55e00"}

_WIDTH, _HEIGHT, _LEFT, _BELOW, _TOP = 26, 100, 40, 24, 8


def logo_svg(shares: Array, background: Array, *, standalone: bool, title: str = "sequence logo") -> Markup:
    """A logo to scale in bits: at each position the information of its letters against the background.

    Parameters
    ----------
    shares : (width, 4) of A, C, G, T
    background : (4,)
    standalone : for a file of its own, with colours in it; otherwise they follow the style of the page
    title : plain words of tacit's own

    >>> logo_svg(np.eye(4), np.full(4, 0.25), standalone=True).count("<path")
    4
    """
    p = shares / shares.sum(axis=1, keepdims=True)
    odds = np.divide(p, background, out=np.ones_like(p), where=p > 0)
    bits = np.maximum((p * np.log2(odds)).sum(axis=1), 0.0)
    most = max(2.0, float(np.ceil(bits.max() * 2) / 2))
    ink = ' fill="#444"' if standalone else ' class="soft"'
    line = ' stroke="#888"' if standalone else ' class="axis"'
    font = ' font-family="sans-serif" font-size="12"' if standalone else ""
    width = _LEFT + _WIDTH * len(p) + 6
    height = _TOP + _HEIGHT + _BELOW
    parts = [f'<line{line} x1="{_LEFT - 3}" x2="{_LEFT - 3}" y1="{_TOP}" y2="{_TOP + _HEIGHT}"/>']
    for tick in range(int(most) + 1):
        y = _TOP + _HEIGHT * (1 - tick / most)
        parts.append(f'<text{ink}{font} x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
    turned = f'transform="translate(12 {_TOP + _HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle"'
    parts.append(f"<text{ink}{font} {turned}>bits</text>")
    for position, column in enumerate(p):
        base = float(_TOP + _HEIGHT)
        for i in np.argsort(column, kind="stable"):
            tall = float(column[i] * bits[position]) * _HEIGHT / most
            if tall < 0.3:
                continue
            letter = "ACGT"[int(i)]
            colour = f'fill="{COLOURS[letter]}"' if standalone else f'style="fill:var(--base-{letter.lower()})"'
            x = _LEFT + _WIDTH * position + 1
            parts.append(
                f'<path {colour} fill-rule="evenodd" d="{GLYPHS[letter]}" '
                f'transform="translate({x} {base:.2f}) scale({_WIDTH - 2} {-tall:.2f})"/>'
            )
            base -= tall
        middle = _LEFT + _WIDTH * (position + 0.5)
        parts.append(f'<text{ink}{font} x="{middle}" y="{height - 8}" text-anchor="middle">{position + 1}</text>')
    size = f' width="{2 * width}" height="{2 * height}"' if standalone else f' style="max-width:{1.4 * width:.0f}px"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"{size} role="img">'
    if not standalone:
        head = head.replace(' xmlns="http://www.w3.org/2000/svg"', "")
    return Markup(f"{head}<title>{title}</title>{''.join(parts)}</svg>")

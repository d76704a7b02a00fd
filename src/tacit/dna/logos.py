"""Sequence logos, by matplotlib and as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from markupsafe import Markup

from tacit.data.arrays import Array
from tacit.data.parameters import numbers
from tacit.dna.plots import found_letters, motif_problem
from tacit.dna.sequences import DNA, read_sequences
from tacit.plot.canvas import BASES, INK, plain_axes, pyplot

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

COLOURS = {"A": "#009e73", "C": "#0072b2", "G": "#c98500", "T": "#d55e00", "U": "#d55e00"}

_AMINO_COLOURS = {
    **dict.fromkeys("AVLIMFW", "#1a1a1a"),
    **dict.fromkeys("GSTYCNQP", "#009e73"),
    **dict.fromkeys("KRH", "#0072b2"),
    **dict.fromkeys("DE", "#d55e00"),
}
"""Of amino acids: hydrophobic, polar, basic, acidic."""

_WIDTH, _HEIGHT, _LEFT, _BELOW, _TOP = 26, 100, 40, 24, 8


def logo(motif: Any, X: Any = None, y: Any = None, heights: str = "bits", ax: Any = None, letters: str = "ACGT") -> Any:
    """A motif as a sequence logo (Schneider & Stephens 1990): letters stacked at each position, the strongest outside.

    ``logo(model, X, y)`` shows what a model finds: the letters in the windows that it chooses, in bits.
    ``logo(model, heights="weights")`` shows what it looks for: the effective weights of letters in a window.
    ``model.weights_["motif"]`` alone is neither: choosing a window also removes from the score the background k-mers
    that start in it. Where those have weights, the motif's own weights look like another motif.

    Parameters
    ----------
    motif : a fitted model of `tacit.problems.Motif`; or a table (width, 4) for A, C, G, T, of counts or of weights
    X, y : sequences in whose windows letters are counted; without y those count that are predicted positive
    heights : "bits": a letter of share p at a position has the height p · Σ p log2(p / q). Here q are the shares of
        letters in all of X, a quarter each for a table. "weights": the effective weights (`effective_weights`) or those
        of the table, less the mean of their position; letters above the line are evidence for the motif, those below
        against it
    ax : matplotlib axes; None makes new ones
    letters : of the columns of a table, such as "ACGU" or the 20 amino acids

    >>> import matplotlib; matplotlib.use("Agg")
    >>> logo([[7, 1, 1, 1], [3, 2, 2, 3]]).get_ylabel()
    'information (bits)'
    """
    table, shares, title = _table(motif, X, y, heights)
    values = letter_heights(table, heights, shares, len(letters))
    if ax is None:
        size = (max(3.0, 0.55 * len(values) + 1.0), 2.4)
        ax = pyplot().subplots(figsize=size, layout="constrained")[1]
    ax = plain_axes(ax)
    _draw_letters(values, ax, letters)
    ax.set_xlim(0.4, len(values) + 0.6)
    ax.set_xticks(range(1, len(values) + 1))
    ax.set(xlabel="position in the motif", title=title)
    if heights == "bits":
        ax.set(ylim=(0, max(2.0, 1.02 * values.sum(axis=1).max())), ylabel="information (bits)")
        return ax
    low, high = (np.clip(values, *side).sum(axis=1) for side in ((None, 0.0), (0.0, None)))
    ax.set(ylim=(1.05 * low.min(), 1.05 * high.max() or 1.0), ylabel="weight less the mean")
    ax.axhline(0, color=INK, lw=0.8)
    return ax


def letter_heights(table: Any, heights: str = "bits", shares: Any = None, n_letters: int = 4) -> Array:
    """(width, 4): how high `logo` draws A, C, G, T at every position; below zero for letters below the line.

    Parameters
    ----------
    table : (width, 4) counts, for "bits", or weights
    heights : "bits" or "weights", as in `logo`
    shares : of A, C, G, T in the background; None is a quarter each
    n_letters : columns of the table, where they are other letters

    >>> letter_heights([[8, 0, 0, 0], [2, 2, 2, 2], [4, 4, 0, 0]])
    array([[2. , 0. , 0. , 0. ],
           [0. , 0. , 0. , 0. ],
           [0.5, 0.5, 0. , 0. ]])
    >>> letter_heights([[3.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]], "weights")
    array([[ 2.,  0., -1., -1.],
           [ 0.,  0.,  0.,  0.]])
    """
    if heights not in ("bits", "weights"):
        raise ValueError(f"heights must be 'bits' or 'weights', got {heights!r}")
    of = "A, C, G, T" if n_letters == 4 else f"{n_letters} letters"
    wanted = f"a fitted model or a table (width, {n_letters}) for {of}"
    table = numbers("motif", table, wanted)
    if table.ndim != 2 or table.shape[1] != n_letters:
        raise ValueError(f"motif must be {wanted}, got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("motif holds NaN or infinity; give the count 0 to a letter that never occurs")
    if heights == "weights":
        return np.asarray(table - table.mean(axis=1, keepdims=True))
    if (table < 0).any() or not table.any(axis=1).all():
        raise ValueError(
            f"heights='bits' needs counts of at least 0, and one above 0 per position, got {table.min():g}; for "
            "weights use heights='weights', for a fitted model logo(model, X, y)"
        )
    p = table / table.sum(axis=1, keepdims=True)
    q = _read_shares(shares, n_letters)
    if p[:, q == 0].any():
        raise ValueError(f"shares must be above 0 for all letters of the motif, got {q.tolist()} (A, C, G, T)")
    odds = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return np.asarray(p * np.maximum((p * np.log2(odds)).sum(axis=1, keepdims=True), 0.0))


def _table(motif: Any, X: Any, y: Any, heights: str) -> tuple[Any, Any, str]:
    """Counts or weights, the shares of letters in the background, and a title."""
    if not hasattr(motif, "problem"):
        if X is not None:
            raise ValueError(f"X needs a fitted model, but motif is a {type(motif).__name__}; leave out X")
        return motif, None, ""
    motif_problem(motif)
    if heights == "weights":
        weights = motif.weights_
        return effective_weights(weights["motif"], weights["background"]), None, "What a letter adds to the score"
    if X is None:
        raise ValueError(
            "the logo of a model counts letters in the windows that it finds; pass sequences, logo(model, X, y), or "
            "draw its weights, logo(model, heights='weights')"
        )
    counts = found_letters(motif, X, y)
    shares = np.bincount(read_sequences(X).values, minlength=len(DNA.shares)) @ DNA.shares
    return counts, shares, f"The motif found: letters in {counts[0].sum():.0f} chosen windows"


def _read_shares(shares: Any, n_letters: int) -> Array:
    q = np.full(n_letters, 1 / n_letters) if shares is None else np.asarray(shares, dtype=np.float64)
    if q.shape != (n_letters,) or not np.isfinite(q).all() or (q < 0).any() or not q.any():
        raise ValueError(f"shares must be four numbers from 0 for A, C, G and T, one of them above 0, got {shares!r}")
    return np.asarray(q / q.sum())


def stack_letters(heights: Array, least: float = 0.0, letters: str = "ACGT") -> Iterator[tuple[int, str, float, float]]:
    """Position, letter, where it stands and how high it is, of all letters of a logo: the smallest next to the line,
    those below zero under it; letters lower than ``least`` are left out.

    >>> list(stack_letters(np.array([[0.5, 1.5, 0.0, -0.25]]), least=0.1))
    [(0, 'T', -0.25, -0.25), (0, 'A', 0.0, 0.5), (0, 'C', 0.5, 1.5)]
    """
    for position, column in enumerate(heights):
        top = bottom = 0.0
        for i in np.argsort(np.abs(column), kind="stable"):
            height = float(column[i])
            if abs(height) < least:
                continue
            bottom += min(height, 0.0)
            yield position, letters[i], top if height > 0 else bottom, height
            top += max(height, 0.0)


def _draw_letters(heights: Array, ax: Any, letters: str) -> None:
    """The letters of a logo at the positions 1, 2, ... of axes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    font = FontProperties(family="DejaVu Sans", weight="bold")
    glyphs = {letter: TextPath((0, 0), letter, size=1, prop=font) for letter in letters}
    colours = BASES | {"U": BASES["T"]} if len(letters) == 4 else _AMINO_COLOURS
    for position, letter, bottom, height in stack_letters(heights, letters=letters):
        box = glyphs[letter].get_extents()
        shape = Affine2D().translate(-box.x0, -box.y0).scale(0.92 / box.width, abs(height) / box.height)
        shape.translate(position + 0.54, bottom)
        ax.add_patch(PathPatch(shape.transform_path(glyphs[letter]), color=colours[letter], lw=0))


def effective_weights(motif: Array, background: Array) -> Array:
    """(width, 4): what a letter in the window adds to the score, less the background k-mers that the window takes out.

    A window adds the motif's weights of its letters and takes out the weights of the k-mers that start in it. A k-mer
    joins several letters, so what one letter adds depends on the others. This is the mean over all that these could be,
    every base equally likely: the additive score that is nearest to the true one in the mean square.

    Parameters
    ----------
    motif : (width, 4), ``model.weights_["motif"]``
    background : (4^k,), ``model.weights_["background"]``

    >>> effective_weights(np.zeros((2, 4)), np.array([0.0, 0.0, 0.0, 4.0]))  # k-mers of one letter
    array([[ 0.,  0.,  0., -4.],
           [ 0.,  0.,  0., -4.]])
    """
    k = round(np.log2(background.size) / 2)
    kmers = background.reshape((4,) * k)
    letters = np.stack([kmers.mean(axis=tuple(j for j in range(k) if j != offset)) for offset in range(k)])
    letters[1:] -= kmers.mean()  # each k-mer has one mean weight to take out, not k
    taken = np.cumsum(letters, axis=0)
    return np.asarray(motif - taken[np.minimum(np.arange(len(motif)), k - 1)])


@cache
def _glyph(letter: str) -> str:
    """The outline of a letter in a box of one by one."""
    if letter in GLYPHS:
        return GLYPHS[letter]
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    path = TextPath((0, 0), letter, size=1, prop=FontProperties(family="DejaVu Sans", weight="bold"))
    box = path.get_extents()
    parts = []
    for points, code in path.iter_segments():
        scaled = (points.reshape(-1, 2) - (box.x0, box.y0)) / (box.width, box.height)
        numbers = " ".join(f"{value:.3f}" for value in scaled.ravel())
        parts.append("Z" if code == path.CLOSEPOLY else {1: "M", 2: "L", 3: "Q", 4: "C"}[int(code)] + numbers)
    return "".join(parts)


def logo_svg(
    shares: Array, background: Array, *, standalone: bool, title: str = "sequence logo", letters: str = "ACGT"
) -> Markup:
    """A logo to scale in bits: at each position the information of its letters against the background.

    Parameters
    ----------
    shares : (width, 4) of A, C, G, T
    background : (4,)
    standalone : for an SVG file, with colours; else these follow the style of the page
    title : is not escaped
    letters : of the columns

    >>> logo_svg(np.eye(4), np.full(4, 0.25), standalone=True).count("<path")
    4
    """
    heights = letter_heights(shares, "bits", background, len(letters))
    most = max(2.0, float(np.ceil(heights.sum(axis=1).max() * 2) / 2))
    scale = _HEIGHT / most
    ink = ' fill="#444"' if standalone else ' class="soft"'
    line = ' stroke="#888"' if standalone else ' class="axis"'
    font = ' font-family="sans-serif" font-size="12"' if standalone else ""
    width = _LEFT + _WIDTH * len(heights) + 6
    height = _TOP + _HEIGHT + _BELOW
    parts = [f'<line{line} x1="{_LEFT - 3}" x2="{_LEFT - 3}" y1="{_TOP}" y2="{_TOP + _HEIGHT}"/>']
    for tick in range(int(most) + 1):
        y = _TOP + _HEIGHT * (1 - tick / most)
        parts.append(f'<text{ink}{font} x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
    upwards = f'transform="translate(12 {_TOP + _HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle"'
    parts.append(f"<text{ink}{font} {upwards}>bits</text>")
    for position, letter, bottom, tall in stack_letters(heights, 0.3 / scale, letters):
        if letters == "ACGT" and not standalone:
            colour = f'style="fill:var(--base-{letter.lower()})"'
        else:
            colour = f'fill="{(COLOURS if len(letters) == 4 else _AMINO_COLOURS)[letter]}"'
        x, y = _LEFT + _WIDTH * position + 1, _TOP + _HEIGHT - scale * bottom
        parts.append(
            f'<path {colour} fill-rule="evenodd" d="{_glyph(letter)}" '
            f'transform="translate({x} {y:.2f}) scale({_WIDTH - 2} {-scale * tall:.2f})"/>'
        )
    for position in range(len(heights)):
        middle = _LEFT + _WIDTH * (position + 0.5)
        parts.append(f'<text{ink}{font} x="{middle}" y="{height - 8}" text-anchor="middle">{position + 1}</text>')
    size = f' width="{2 * width}" height="{2 * height}"' if standalone else f' style="max-width:{1.4 * width:.0f}px"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"{size} role="img">'
    if not standalone:
        head = head.replace(' xmlns="http://www.w3.org/2000/svg"', "")
    return Markup(f"{head}<title>{title}</title>{''.join(parts)}</svg>")

"""DNA motifs: what was found, as a sequence logo, and how alike the windows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.letters import MEANING
from tacit.dna.motif.sequences import SHARES, read_sequences
from tacit.dna.motif.windows import count_letters, effective_weights, mean_distance, window_letters
from tacit.plot.canvas import (
    BASES,
    BLUE,
    GREEN,
    GREY,
    INK,
    add_legend,
    by_name,
    history_of,
    plain_axes,
    pyplot,
    whole_numbers,
)
from tacit.problems import Motif


def logo(motif: Any, X: Any = None, y: Any = None, heights: str = "bits", ax: Any = None) -> Any:
    """A motif as a sequence logo (Schneider & Stephens 1990): letters stacked at each position, the strongest outside.

    ``logo(model, X, y)`` shows what a model finds: the letters in the windows that it chooses, in bits.
    ``logo(model, heights="weights")`` shows what it looks for: the effective weights of letters in a window.
    ``model.weights_["motif"]`` alone is neither: choosing a window also takes out of the score the background words
    that start in it, and where those carry weight, the motif's own weights look like another motif.

    Parameters
    ----------
    motif : a fitted model of `tacit.problems.Motif`; or a table (width, 4) for A, C, G, T, of counts or of weights
    X, y : sequences in whose windows the model's letters are counted, the training data or others; y may be None, then
        the sequences that are predicted to have a motif count
    heights : "bits": with p the shares of the letters at a position, a letter is p · Σ p log2(p / q) high, q being the
        shares of letters in all of X, a quarter each for a table. "weights": the effective weights (see
        `tacit.dna.motif.windows.effective_weights`) or those of the table, less the mean of their position;
        letters above the line speak for the motif, those below against it
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> logo([[7, 1, 1, 1], [3, 2, 2, 3]]).get_ylabel()
    'information (bits)'
    """
    table, shares, title = _table(motif, X, y, heights)
    values = letter_heights(table, heights, shares)
    if ax is None:
        size = (max(3.0, 0.55 * len(values) + 1.0), 2.4)
        ax = pyplot().subplots(figsize=size, layout="constrained")[1]
    ax = plain_axes(ax)
    _stack_letters(values, ax)
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


def letter_heights(table: Any, heights: str = "bits", shares: Any = None) -> Array:
    """(width, 4): how high `logo` draws A, C, G, T at every position; below zero for letters below the line.

    Parameters
    ----------
    table : (width, 4) counts, for "bits", or weights
    heights : "bits" or "weights", as in `logo`
    shares : of A, C, G, T where there is no motif; None is a quarter each

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
    numbers = np.asarray(table, dtype=np.float64)
    if numbers.ndim != 2 or numbers.shape[1] != 4:
        raise ValueError(
            f"a motif is a fitted model or a table (width, 4) for A, C, G and T, got shape {numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        raise ValueError("the table of the motif holds NaN or infinity; a letter that never occurs has the count 0")
    if heights == "weights":
        return np.asarray(numbers - numbers.mean(axis=1, keepdims=True))
    if (numbers < 0).any() or not numbers.any(axis=1).all():
        raise ValueError(
            f"bits are for counts, and the table has {numbers.min():g} or a position without any; "
            "for weights use heights='weights', for a fitted model logo(model, X, y)"
        )
    p = numbers / numbers.sum(axis=1, keepdims=True)
    q = _read_shares(shares)
    if p[:, q == 0].any():
        raise ValueError(f"a letter that occurs in the motif has the share 0 among {q.tolist()} (A, C, G, T)")
    odds = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return np.asarray(p * np.maximum((p * np.log2(odds)).sum(axis=1, keepdims=True), 0.0))


def found_letters(model: Any, X: Any, y: Any = None) -> Array:
    """(width, 4): how often A, C, G and T stand at each position of the windows that the model chooses in X.

    Parameters
    ----------
    model : fitted on a `tacit.problems.Motif`
    X, y : sequences and labels; with y the windows of all positives count, without it those of predicted ones

    >>> from tacit import StructuredSVM
    >>> from tacit.datasets import planted_motif
    >>> X, y, start = planted_motif(200, 30, "TGACTCA", noise=0.1, seed=0)
    >>> model = StructuredSVM(Motif(width=7), C=10).fit(X, y, hidden=start)
    >>> counts = found_letters(model, X, y)
    >>> "".join("ACGT"[i] for i in counts.argmax(axis=1)), counts.sum(axis=1)
    ('TGACTCA', array([100., 100., 100., 100., 100., 100., 100.]))
    """
    problem = _motif_problem(model)
    hidden = model.predict_hidden(X) if y is None else model.impute(X, y)
    letters = window_letters(X, hidden, problem.width)
    if not len(letters):
        raise ValueError("no sequence of X has a motif: none is of the positive class; pass the ones that are")
    return count_letters(letters)


def found_motifs(model: Any, X: Any, truth: Any = None, ax: Any = None) -> Any:
    """Sequences letter by letter, with the window that the model finds in each; one row per sequence.

    Sequences that are predicted to hold no motif stay grey. A few dozen rows are readable.

    Parameters
    ----------
    model : fitted on a `tacit.problems.Motif`
    X : sequences to look for the motif in
    truth : where the motif really starts, −1 where there is none, as hidden values go to ``fit``; underlined in green
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import StructuredSVM
    >>> from tacit.datasets import planted_motif
    >>> X, y, start = planted_motif(200, 30, "TGACTCA", noise=0.1, seed=0)
    >>> model = StructuredSVM(Motif(width=7), C=10).fit(X, y, hidden=start)
    >>> found_motifs(model, X[:8], truth=start[:8]).get_xlabel()
    'position in the sequence'
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    width, letters = _motif_problem(model).width, "".join(MEANING)
    sequences = read_sequences(X)
    found = _starts(model.predict_hidden(X), len(sequences))
    planted = None if truth is None else _starts(truth, len(sequences))
    longest = int(sequences.lengths.max())
    if ax is None:
        size = (max(4.0, 0.17 * longest + 0.8), 0.26 * len(sequences) + 1.1)
        ax = pyplot().subplots(figsize=size, layout="constrained")[1]
    ax = plain_axes(ax)
    ax.spines["left"].set_visible(False)
    for row, (codes, start) in enumerate(zip(sequences, found, strict=True)):
        for place, code in enumerate(codes):
            letter, is_inside = letters[code], 0 <= start <= place < start + width
            style = {"color": BASES.get(letter, INK), "weight": "bold"} if is_inside else {"color": GREY}
            ax.text(place, row, letter, ha="center", va="center", family="DejaVu Sans Mono", **style)
        if start >= 0:
            ax.add_patch(Rectangle((start - 0.5, row - 0.42), width, 0.84, fill=False, ec=BLUE, lw=1.6))
        if planted is not None and planted[row] >= 0:
            ax.plot([planted[row] - 0.4, planted[row] + width - 0.6], [row + 0.46] * 2, color=GREEN, lw=3)
    ax.set(xlim=(-1, longest), ylim=(len(sequences) - 0.4, -0.6), yticks=[], xlabel="position in the sequence")
    names: list[Any] = [Patch(fill=False, ec=BLUE, lw=1.6, label="found by the model")]
    if planted is not None:
        names.append(Line2D([], [], color=GREEN, lw=3, label="true place"))
    ax.legend(handles=names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax


def _starts(hidden: Any, n: int) -> Array:
    """(n,) starts, of hidden values that may have a strand each."""
    places = np.asarray(hidden)
    if places.shape not in ((n,), (n, 2)):
        raise ValueError(
            f"the places have shape {places.shape} for {n} sequences; give one start per sequence, or a start and a "
            "strand, -1 where there is no motif"
        )
    return np.asarray(places.reshape(n, -1)[:, 0], dtype=np.int64)


def hamming(models: Any, X: Any, ax: Any = None) -> Any:
    """The numbers of `hamming_distances` by outer iteration, for one model or for several by name.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import LatentSVM, SelfPaced
    >>> from tacit.datasets import planted_motif
    >>> X, y, _ = planted_motif(60, 20, "TGACTCA", seed=0)
    >>> paces = {"CCCP": None, "self-paced": SelfPaced()}
    >>> models = {name: LatentSVM(Motif(7), pace=pace).fit(X, y) for name, pace in paces.items()}
    >>> hamming(models, X).get_xlabel()
    'round'
    """
    ax = plain_axes(ax)
    for name, model, color in by_name(models):
        distances = hamming_distances(model, X)
        i = [line.iteration for line in model.history_]
        ax.plot(i, distances, color=color, lw=2, marker="o", ms=3.5, label=name)
    add_legend(ax, models)
    ax.set(xlabel="round", ylabel="share of letters that differ", title="How unlike each other the chosen windows are")
    whole_numbers(ax)
    return ax


def hamming_distances(model: Any, X: Any) -> Array:
    """How unlike the chosen motifs are, by outer iteration (Kumar, Packer & Koller 2010; Kumar 2013, figure 2.2).

    The mean Hamming distance over all pairs of windows, as a share of their letters (0.75 for random ones), among the
    positive samples that were in; of all positives, if the fit is not self-paced. Windows are those of
    ``model.history_``, as they were chosen at the end of an iteration; NaN where fewer than two samples were in.

    Parameters
    ----------
    model : a `tacit.LatentSVM` fitted on a `tacit.problems.Motif`
    X : its training sequences
    """
    problem = _motif_problem(model)
    lines = history_of(model, "hidden", "only a LatentSVM chooses its motifs anew in every iteration")
    sequences = read_sequences(X)
    distances = []
    for line in lines:
        if len(line.is_in) != len(sequences):
            raise ValueError(f"the model was fitted on {len(line.is_in)} samples, X has {len(sequences)}; pass those")
        rows = np.flatnonzero(line.is_in)
        distances.append(mean_distance(window_letters(sequences[rows], line.hidden[rows], problem.width)))
    return np.array(distances)


def _table(motif: Any, X: Any, y: Any, heights: str) -> tuple[Any, Any, str]:
    """Counts or weights, the shares of letters to compare counts with, and a title."""
    if not hasattr(motif, "problem"):
        if X is not None:
            raise ValueError(f"X goes with a fitted model, and {type(motif).__name__} is a table: leave X out")
        return motif, None, ""
    _motif_problem(motif)
    if heights == "weights":
        weights = motif.weights_
        return effective_weights(weights["motif"], weights["background"]), None, "What a letter adds to the score"
    if X is None:
        raise ValueError(
            "the logo of a model counts the letters of the windows that it finds: pass sequences, logo(model, X, y), "
            "or ask for what it looks for, logo(model, heights='weights')"
        )
    counts = found_letters(motif, X, y)
    shares = np.bincount(read_sequences(X).values, minlength=len(SHARES)) @ SHARES
    return counts, shares, f"The motif found: letters in {counts[0].sum():.0f} chosen windows"


def _motif_problem(model: Any) -> Motif:
    problem = getattr(model, "problem", None)
    if not isinstance(problem, Motif) or not hasattr(model, "coef_"):
        raise ValueError(f"a fitted model of tacit.problems.Motif is needed, got {model!r}")
    return problem


def _read_shares(shares: Any) -> Array:
    q = np.full(4, 0.25) if shares is None else np.asarray(shares, dtype=np.float64)
    if q.shape != (4,) or not np.isfinite(q).all() or (q < 0).any() or not q.any():
        raise ValueError(f"shares are four numbers, of A, C, G and T, none below zero and one above, got {shares!r}")
    return np.asarray(q / q.sum())


def _stack_letters(values: Array, ax: Any) -> None:
    """Letters of these heights at the positions 1, 2, ...; the smallest next to the line."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

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

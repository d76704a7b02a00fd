"""DNA motifs: what was found, sequence by sequence, and how alike the windows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.sequences import COMPLEMENT, MEANING, SHARES, read_sequences
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
    problem = motif_problem(model)
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

    width, letters = motif_problem(model).width, "".join(MEANING)
    sequences = read_sequences(X)
    found = _read_places(model.predict_hidden(X), len(sequences))[0]
    planted = None if truth is None else _read_places(truth, len(sequences))[0]
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
    problem = motif_problem(model)
    lines = history_of(model, "hidden", "only a LatentSVM chooses its motifs anew in every iteration")
    sequences = read_sequences(X)
    distances = []
    for line in lines:
        if len(line.is_in) != len(sequences):
            raise ValueError(f"the model was fitted on {len(line.is_in)} samples, X has {len(sequences)}; pass those")
        rows = np.flatnonzero(line.is_in)
        distances.append(mean_distance(window_letters(sequences[rows], line.hidden[rows], problem.width)))
    return np.array(distances)


def motif_problem(model: Any) -> Motif:
    problem = getattr(model, "problem", None)
    if not isinstance(problem, Motif) or not hasattr(model, "coef_"):
        raise ValueError(f"a fitted model of tacit.problems.Motif is needed, got {model!r}")
    return problem


def window_letters(X: Any, hidden: Any, width: int) -> Array:
    """(windows, width): the letter codes of the windows at the starts in ``hidden``, samples without one (−1) left out.

    Parameters
    ----------
    X : sequences, as `tacit.problems.Motif` takes them
    hidden : (n,) starts, or (n, 2) starts and strands; windows on strand 1 are read as their reverse complement

    >>> window_letters(["TTACGA", "CCCCCC", "TTACGA"], [2, -1, 3], 3)
    array([[0, 1, 2],
           [1, 2, 0]], dtype=uint8)
    >>> window_letters(["TTACGA"], [(2, 1)], 3)  # CGT
    array([[1, 2, 3]], dtype=uint8)
    """
    sequences = read_sequences(X)
    start, strand = _read_places(hidden, len(sequences))
    has_one = np.flatnonzero(start >= 0)
    past = has_one[start[has_one] + width > sequences.lengths[has_one]]
    if past.size:
        i = int(past[0])
        raise ValueError(
            f"hidden[{i}] is {start[i]}, and sequence {i} has {sequences.lengths[i]} letters: no window of {width} "
            "starts there; pass the sequences that the hidden values belong to"
        )
    first = sequences.offsets[:-1][has_one] + start[has_one]
    letters: Array = sequences.values[first[:, None] + np.arange(width)]
    is_reverse = strand[has_one] == 1
    letters[is_reverse] = COMPLEMENT[letters[is_reverse][:, ::-1]]
    return letters


def _read_places(hidden: Any, n: int) -> tuple[Array, Array]:
    """(n,) starts and strands, of hidden values that may have a strand each."""
    places = np.asarray(hidden)
    if places.shape not in ((n,), (n, 2)):
        raise ValueError(
            f"the places have shape {places.shape} for {n} sequences; give one start per sequence, or a start and a "
            "strand, -1 where there is no motif: the X of the fit goes with its hidden values"
        )
    places = places.reshape(n, -1).astype(np.int64)
    return places[:, 0], places[:, 1] if places.shape[1] == 2 else np.zeros(n, np.int64)


def count_letters(letters: Array) -> Array:
    """(width, 4): how often A, C, G and T stand at each position of aligned windows; N counts a quarter for each.

    >>> count_letters(np.array([[0, 1], [0, 14]]))
    array([[2.  , 0.  , 0.  , 0.  ],
           [0.25, 1.25, 0.25, 0.25]])
    """
    return np.asarray(_count_codes(letters) @ SHARES)


def mean_distance(letters: Array) -> float:
    """The mean Hamming distance over all pairs of aligned windows, as a share of their letters; NaN for less than two.

    0 where all windows are alike, 0.75 for random letters. Letters that stand for several bases differ with the
    probability that bases drawn from them do. O(windows · width): pairs are counted by letter, column by column.

    >>> mean_distance(np.array([[0, 1, 2], [0, 1, 3], [0, 2, 2]]))  # 1, 1 and 2 of three letters differ
    0.4444444444444444
    """
    n, width = letters.shape
    if n < 2 or width < 1:
        return float("nan")
    counts = _count_codes(letters)
    alike = ((counts @ SHARES) ** 2).sum() - (counts @ (SHARES**2).sum(axis=1)).sum()
    return float(1 - alike / (n * (n - 1.0) * width))


def _count_codes(letters: Array) -> Array:
    """(width, letters of the code): how often each stands at each position."""
    return np.stack([np.bincount(column, minlength=len(SHARES)) for column in letters.T]).astype(np.float64)

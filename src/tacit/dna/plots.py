"""Pictures of DNA motifs: the windows that were found in sequences, and how similar they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.sequences import DNA, read_sequences
from tacit.plot import canvas
from tacit.problems import Motif


def found_letters(model: Any, X: Any, y: Any = None) -> Array:
    """(width, 4): how often A, C, G and T occur at each position of the windows that the model chooses in X.

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
        raise ValueError("X must have sequences of the positive class, got none; pass those that have a motif")
    return count_letters(letters)


def found_motifs(model: Any, X: Any, truth: Any = None, ax: Any = None) -> Any:
    """Draw sequences letter by letter, one per row, with the window that the model finds in each.

    Sequences that are predicted negative stay grey. A few dozen rows are readable.

    Parameters
    ----------
    model : fitted on a `tacit.problems.Motif`
    X : sequences
    truth : true starts of the motif, as hidden values for ``fit`` (−1 without a motif); underlined in green
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

    width, letters = motif_problem(model).width, "".join(DNA.meaning)
    sequences = read_sequences(X)
    found = _read_starts(model.predict_hidden(X), len(sequences))[0]
    planted = None if truth is None else _read_starts(truth, len(sequences))[0]
    longest = int(sequences.lengths.max())
    if ax is None:
        size = (max(4.0, 0.17 * longest + 0.8), 0.26 * len(sequences) + 1.1)
        ax = canvas.pyplot().subplots(figsize=size, layout="constrained")[1]
    ax = canvas.plain_axes(ax)
    ax.spines["left"].set_visible(False)
    for row, (codes, start) in enumerate(zip(sequences, found, strict=True)):
        for position, code in enumerate(codes):
            letter, is_inside = letters[code], 0 <= start <= position < start + width
            style = (
                {"color": canvas.BASES.get(letter, canvas.INK), "weight": "bold"}
                if is_inside
                else {"color": canvas.GREY}
            )
            ax.text(position, row, letter, ha="center", va="center", family="DejaVu Sans Mono", **style)
        if start >= 0:
            ax.add_patch(Rectangle((start - 0.5, row - 0.42), width, 0.84, fill=False, ec=canvas.BLUE, lw=1.6))
        if planted is not None and planted[row] >= 0:
            ax.plot([planted[row] - 0.4, planted[row] + width - 0.6], [row + 0.46] * 2, color=canvas.GREEN, lw=3)
    ax.set(xlim=(-1, longest), ylim=(len(sequences) - 0.4, -0.6), yticks=[], xlabel="position in the sequence")
    names: list[Any] = [Patch(fill=False, ec=canvas.BLUE, lw=1.6, label="found by the model")]
    if planted is not None:
        names.append(Line2D([], [], color=canvas.GREEN, lw=3, label="true motif"))
    ax.legend(handles=names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax


def hamming(models: Any, X: Any, ax: Any = None) -> Any:
    """Draw `hamming_distances` by round, for one model or for several by name.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import LatentSVM, SelfPaced
    >>> from tacit.datasets import planted_motif
    >>> X, y, _ = planted_motif(60, 20, "TGACTCA", seed=0)
    >>> paces = {"CCCP": None, "self-paced": SelfPaced()}
    >>> models = {name: LatentSVM(Motif(7), pace=pace).fit(X, y) for name, pace in paces.items()}
    >>> hamming(models, X).get_xlabel()
    'round'
    """
    ax = canvas.plain_axes(ax)
    for name, model, color in canvas.by_name(models):
        distances = hamming_distances(model, X)
        i = [line.iteration for line in model.history_]
        ax.plot(i, distances, color=color, lw=2, marker="o", ms=3.5, label=name)
    ax.margins(y=0.2)
    canvas.add_legend(ax, models, loc="best")
    ax.set(xlabel="round", ylabel="share of letters that differ", title="How different the chosen windows are")
    canvas.whole_numbers(ax)
    return ax


def hamming_distances(model: Any, X: Any) -> Array:
    """How different the chosen windows are, by round (Kumar, Packer & Koller 2010; Kumar 2013, figure 2.2).

    The mean Hamming distance over all pairs of windows of positives, as a share of their letters (0.75 for random
    ones). In a self-paced fit only samples of the round count. Windows are those of ``model.history_``, chosen at the
    end of a round; NaN for fewer than two.

    Parameters
    ----------
    model : a `tacit.LatentSVM` fitted on a `tacit.problems.Motif`
    X : its training sequences
    """
    problem = motif_problem(model)
    lines = canvas.history_of(model, "hidden", "only a LatentSVM chooses windows in every round")
    sequences = read_sequences(X)
    distances = []
    for line in lines:
        if len(line.is_in) != len(sequences):
            raise ValueError(f"X must be the {len(line.is_in)} training sequences of the model, got {len(sequences)}")
        rows = np.flatnonzero(line.is_in)
        distances.append(mean_distance(window_letters(sequences[rows], line.hidden[rows], problem.width)))
    return np.array(distances)


def motif_problem(model: Any) -> Motif:
    problem = getattr(model, "problem", None)
    if not isinstance(problem, Motif) or not hasattr(model, "coef_"):
        raise ValueError(f"model must be fitted on a tacit.problems.Motif, got {model!r}")
    return problem


def window_letters(X: Any, hidden: Any, width: int) -> Array:
    """(windows, width): the letter codes of the windows at the starts in ``hidden``, without samples of start −1.

    Parameters
    ----------
    X : sequences, as for `tacit.problems.Motif`
    hidden : (n,) starts, or (n, 2) starts and strands; windows on strand 1 are read as their reverse complement

    >>> window_letters(["TTACGA", "CCCCCC", "TTACGA"], [2, -1, 3], 3)
    array([[0, 1, 2],
           [1, 2, 0]], dtype=uint8)
    >>> window_letters(["TTACGA"], [(2, 1)], 3)  # CGT
    array([[1, 2, 3]], dtype=uint8)
    """
    sequences = read_sequences(X)
    start, strand = _read_starts(hidden, len(sequences))
    has_one = np.flatnonzero(start >= 0)
    past = has_one[start[has_one] + width > sequences.lengths[has_one]]
    if past.size:
        i = int(past[0])
        raise ValueError(
            f"hidden[{i}] is {start[i]}, too large for a window of {width} in sequence {i} of {sequences.lengths[i]} "
            "letters; pass the sequences that the hidden values belong to"
        )
    first = sequences.offsets[:-1][has_one] + start[has_one]
    letters: Array = sequences.values[first[:, None] + np.arange(width)]
    is_reverse = strand[has_one] == 1
    letters[is_reverse] = DNA.complement[letters[is_reverse][:, ::-1]]
    return letters


def _read_starts(hidden: Any, n: int) -> tuple[Array, Array]:
    """(n,) starts and strands, from hidden values with or without strands."""
    windows = np.asarray(hidden)
    if windows.shape not in ((n,), (n, 2)):
        raise ValueError(
            f"hidden has shape {windows.shape} for {n} sequences; give one start per sequence, or a start and a strand "
            "(-1 without a motif), and the X that they belong to"
        )
    windows = windows.reshape(n, -1).astype(np.int64)
    return windows[:, 0], windows[:, 1] if windows.shape[1] == 2 else np.zeros(n, np.int64)


def count_letters(letters: Array) -> Array:
    """(width, 4): how often A, C, G and T occur at each position of aligned windows; N counts a quarter for each.

    >>> count_letters(np.array([[0, 1], [0, 14]]))
    array([[2.  , 0.  , 0.  , 0.  ],
           [0.25, 1.25, 0.25, 0.25]])
    """
    return np.asarray(_count_codes(letters) @ DNA.shares)


def mean_distance(letters: Array) -> float:
    """The mean Hamming distance over all pairs of aligned windows, as a share of their letters; NaN for fewer than two.

    It is 0 for equal windows and 0.75 for random letters. Letters that stand for several bases differ with the
    probability that bases drawn from them differ. O(windows · width), by counts of letters per column.

    >>> mean_distance(np.array([[0, 1, 2], [0, 1, 3], [0, 2, 2]]))  # 1, 1 and 2 of three letters differ
    0.4444444444444444
    """
    n, width = letters.shape
    if n < 2 or width < 1:
        return float("nan")
    counts = _count_codes(letters)
    alike = ((counts @ DNA.shares) ** 2).sum() - (counts @ (DNA.shares**2).sum(axis=1)).sum()
    return float(1 - alike / (n * (n - 1.0) * width))


def _count_codes(letters: Array) -> Array:
    """(width, letter codes): how often each letter occurs at each position."""
    return np.stack([np.bincount(column, minlength=len(DNA.shares)) for column in letters.T]).astype(np.float64)

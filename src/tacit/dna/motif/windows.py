"""What stands in the windows that a motif model chose: letters, how often, how far apart, and what they weigh."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.letters import MEANING
from tacit.dna.motif.sequences import SHARES, read_sequences

COMPLEMENT = np.array(
    [
        next(code for code, other in enumerate(MEANING.values()) if set(other) == set(bases.translate(swap)))
        for swap in [str.maketrans("ACGT", "TGCA")]
        for bases in MEANING.values()
    ],
    dtype=np.uint8,
)
"""``COMPLEMENT[code]``: the letter on the other strand, for all letters of the IUPAC code."""


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
    places = np.asarray(hidden)
    if places.shape not in ((len(sequences),), (len(sequences), 2)):
        raise ValueError(
            f"hidden has shape {places.shape} for {len(sequences)} sequences; give a start each, or a start and a "
            "strand, -1 where there is no motif: the X of the fit goes with its hidden values"
        )
    start, strand = (places, np.zeros(places.size)) if places.ndim == 1 else places.T
    has_one = np.flatnonzero(start >= 0)
    past = has_one[start[has_one] + width > sequences.lengths[has_one]]
    if past.size:
        i = int(past[0])
        raise ValueError(
            f"hidden[{i}] is {start[i]}, and sequence {i} has {sequences.lengths[i]} letters: no window of {width} "
            "starts there; pass the sequences that the hidden values belong to"
        )
    first = sequences.offsets[:-1][has_one] + start[has_one].astype(np.int64)
    letters: Array = sequences.values[first[:, None] + np.arange(width)]
    is_reverse = strand[has_one] == 1
    letters[is_reverse] = COMPLEMENT[letters[is_reverse][:, ::-1]]
    return letters


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


def effective_weights(motif: Array, background: Array) -> Array:
    """(width, 4): what a letter in the window adds to the score, less the background words that the window takes out.

    A window adds the motif's weights of its letters and takes out the weights of the words that start in it. Words join
    several letters, so what one letter adds depends on the others: this is the mean over all they could be, every base
    as likely, which is also the additive score that is nearest to the true one in the mean square.

    Parameters
    ----------
    motif : (width, 4), ``model.weights_["motif"]``
    background : (4^k,), ``model.weights_["background"]``

    >>> effective_weights(np.zeros((2, 4)), np.array([0.0, 0.0, 0.0, 4.0]))  # words of one letter
    array([[ 0.,  0.,  0., -4.],
           [ 0.,  0.,  0., -4.]])
    """
    k = round(np.log2(background.size) / 2)
    words = background.reshape((4,) * k)
    letters = np.stack([words.mean(axis=tuple(j for j in range(k) if j != offset)) for offset in range(k)])
    letters[1:] -= words.mean()  # each word has one mean weight to take out, not k
    taken = np.cumsum(letters, axis=0)
    return np.asarray(motif - taken[np.minimum(np.arange(len(motif)), k - 1)])


def _count_codes(letters: Array) -> Array:
    """(width, letters of the code): how often each stands at each position."""
    return np.stack([np.bincount(column, minlength=len(SHARES)) for column in letters.T]).astype(np.float64)

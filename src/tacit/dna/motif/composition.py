"""What a sequence is made of: how often each short word occurs in it, wherever that is."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.motif.words import find_words

COMPOSITION_SCALE = 3.0
"""Standard deviations of a share that count as 1. The penalty then holds composition back nine times as much as motifs,
which was best on training arrays of protein binding."""

_MAX_BLOCK_ENTRIES = 1 << 22
"""Counts that are held at a time."""


def word_shares(sequences: Ragged, longest: int, strands: int) -> Array:
    """(sequences, words): the share of every word among the words of its length, for all lengths from 1 to ``longest``.

    With two strands a word and its reverse complement are one. A letter that stands for several bases counts as each
    of them in part. A sequence that is shorter than a word has the share 0. O(letters · longest).

    >>> from tacit.dna.motif.sequences import read_sequences
    >>> word_shares(read_sequences(["AAAC"]), 1, 1)
    array([[0.75, 0.25, 0.  , 0.  ]])
    >>> word_shares(read_sequences(["AAAC", "GTTT"]), 1, 2)  # A or T, C or G
    array([[0.75, 0.25],
           [0.75, 0.25]])
    """
    return np.hstack([_shares_of_length(sequences, length, strands) for length in range(1, longest + 1)])


def standard_shares(sequences: Ragged, longest: int, strands: int) -> Array:
    """`word_shares` less what chance gives, every base as likely, in units of `COMPOSITION_SCALE` standard deviations.

    Words of all lengths, in sequences of all lengths, then weigh alike, and nothing has to be learned from the data. A
    word that is longer than a sequence counts 0.

    >>> from tacit.dna.motif.sequences import read_sequences
    >>> standard_shares(read_sequences(["AACC", "AAAA"]), 1, 2).round(2)  # A or T, C or G
    array([[ 0.  ,  0.  ],
           [ 0.67, -0.67]])
    """
    shares = word_shares(sequences, longest, strands)
    first = 0
    for length in range(1, longest + 1):
        kept, place = kept_words(length, strands)
        chance = np.bincount(place) / 4**length
        columns = shares[:, first : first + kept.size]
        n_words = np.maximum(sequences.lengths - length + 1, 0)[:, None]
        columns -= chance
        columns *= np.sqrt(n_words) / (COMPOSITION_SCALE * np.sqrt(chance * (1 - chance)))
        first += kept.size
    return shares


def count_shares(longest: int, strands: int) -> int:
    """How many words there are: the columns of `word_shares`.

    >>> count_shares(3, 2), count_shares(2, 1)
    (44, 20)
    """
    return sum(int(kept_words(length, strands)[1].max()) + 1 for length in range(1, longest + 1))


def kept_words(length: int, strands: int) -> tuple[Array, Array]:
    """The numbers of the words that are counted, and for every word the place of the one that it counts as."""
    numbers = np.arange(4**length)
    letters = numbers[:, None] // 4 ** np.arange(length - 1, -1, -1) % 4
    mirrored = (3 - letters[:, ::-1]) @ 4 ** np.arange(length - 1, -1, -1)
    kept, place = np.unique(np.minimum(numbers, mirrored) if strands == 2 else numbers, return_inverse=True)
    return kept, place


def _shares_of_length(sequences: Ragged, length: int, strands: int) -> Array:
    kept, place = kept_words(length, strands)
    words = find_words(sequences.values, sequences.offsets, length)
    n, n_kept = len(sequences), kept.size
    out = np.empty((n, n_kept))
    step = max(1, _MAX_BLOCK_ENTRIES // words.size)
    for first in range(0, n, step):
        block = slice(int(sequences.offsets[first]), int(sequences.offsets[min(first + step, n)]))
        lengths = sequences.lengths[first : first + step]
        owner = np.repeat(np.arange(lengths.size), lengths)
        ends = np.repeat(np.cumsum(lengths), lengths)
        inside = np.arange(owner.size) + length <= ends
        cells = owner[inside] * words.size + words.ids[block][inside]
        counts = np.bincount(cells, minlength=lengths.size * words.size).reshape(lengths.size, words.size)
        plain = words.fold(counts.astype(np.float64))
        folded = np.zeros((lengths.size, n_kept))
        np.add.at(folded.T, place, plain.T)
        out[first : first + step] = folded / np.maximum(lengths - length + 1, 1)[:, None]
    return out

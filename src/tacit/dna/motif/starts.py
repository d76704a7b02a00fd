"""Words that positive sequences hold more often than negative ones: where the descent of a motif is worth starting."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.motif.words import word_holders

LONGEST_WORD = 7
"""Letters of a word that is counted: 16,384 words, so that a few hundred sequences still tell them apart."""

LEAST_DIFFERENCE = 2
"""Letters in which a word differs from all better ones, in every alignment, to be worth a start of its own."""


def enriched_words(sequences: Ragged, is_positive: Array, width: int, strands: int, most: int) -> list[Array]:
    """The letters of up to ``most`` words, the most enriched first; none is another one shifted or nearly so.

    A word counts once per sequence, on either strand if there are two; words with ambiguous letters do not count.
    Enrichment is the difference of the two shares of sequences in standard deviations. O(letters · log letters).

    >>> from tacit.dna.motif.sequences import read_sequences
    >>> sequences = read_sequences(["TTGACTCATT", "CCTGACTCAC", "TTTTTTTTTT", "CCCCCCCCCC"])
    >>> words = enriched_words(sequences, np.array([True, True, False, False]), 7, 1, 1)
    >>> "".join("ACGT"[letter] for letter in words[0])
    'TGACTCA'
    """
    length = min(width, LONGEST_WORD)
    n_words = 4**length
    holder, word = word_holders(sequences, length, strands)
    n_positive = max(int(np.count_nonzero(is_positive)), 1)
    n_negative = max(is_positive.size - n_positive, 1)
    in_positive = np.bincount(word[is_positive[holder]], minlength=n_words)
    in_negative = np.bincount(word[~is_positive[holder]], minlength=n_words)
    share = (in_positive + in_negative + 1) / (is_positive.size + 2)
    spread = np.sqrt(share * (1 - share) * (1 / n_positive + 1 / n_negative))
    enrichment = (in_positive / n_positive - in_negative / n_negative) / spread
    return different_words(enrichment, length, strands, most)


def different_words(value: Array, length: int, strands: int, most: int) -> list[Array]:
    """The letters of up to ``most`` words of the highest value, above 0, none of them another one shifted or nearly so.

    >>> value = np.zeros(4**5)
    >>> value[[0b0001101100, 0b0001101111, 0b1010111110]] = 3, 2, 1  # ACGTA, ACGTT, GGTTG
    >>> ["".join("ACGT"[i] for i in word) for word in different_words(value, 5, 1, 2)]
    ['ACGTA', 'GGTTG']
    """
    letters = np.arange(4**length)[:, None] // 4 ** np.arange(length - 1, -1, -1) % 4
    chosen: list[Array] = []
    for candidate in np.argsort(-value, kind="stable"):
        if len(chosen) == most or value[candidate] <= 0:
            break
        own = letters[candidate]
        rivals = [*chosen, *((3 - other[::-1]) for other in chosen if strands == 2)]
        if all(_differ(own, other) >= LEAST_DIFFERENCE for other in rivals):
            chosen.append(own)
    return chosen


def _differ(one: Array, other: Array) -> int:
    """The least number of different letters over all alignments that overlap in all but two letters."""
    length = one.size
    counts = [np.count_nonzero(one != other)]
    for shift in range(1, min(3, length)):
        counts += [np.count_nonzero(one[shift:] != other[:-shift]), np.count_nonzero(other[shift:] != one[:-shift])]
    return int(min(counts))

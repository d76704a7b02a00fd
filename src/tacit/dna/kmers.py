"""K-mers of DNA as numbers: where they are, which are enriched, how often they occur, and motifs as a few of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.sequences import DNA, Alphabet

_MAX_MIXTURE_ENTRIES = 1 << 20
"""Numbers of a dense block of mixtures."""

LONGEST_PIECE = 5
"""Letters of a motif that one lookup scores: 4⁵ numbers, 8 kB, stay in a core's first cache."""

LONGEST_KMER = 7
"""Letters of an enriched k-mer: there are 16,384, which a few hundred sequences can still distinguish."""

LONGEST_PIECE_OF_PROTEIN, LONGEST_KMER_OF_PROTEIN = 2, 3
"""The same where there are 20 letters: 400 numbers, and 8,000 k-mers."""

LEAST_DIFFERENCE = 2
"""Letters in which a k-mer must differ from all better ones, in every alignment, to become another start."""

SEED_LENGTH = 6
"""Letters of an unexplained k-mer: there are 2,080, with a k-mer and its reverse complement counted as one."""

LEAST_HOLDERS = 5
"""Sequences that must hold a k-mer."""

COMPOSITION_SCALE = 3.0
"""Standard deviations of a share that count as 1. The penalty of composition is then nine times that of motifs, which
was best on training arrays of protein binding."""

_MAX_COUNTS = 1 << 22
"""Counts that are held at a time."""


@dataclass(frozen=True)
class Kmers:
    """``ids[p]``: the k-mer of ``length`` letters that starts at position p of all sequences together.

    Plain k-mers have the numbers 0 to 4^length − 1, in alphabetical order. K-mers with ambiguous letters that occur
    have the numbers after those, with their letters in ``spellings``. Their rows of ``mixtures`` have the probabilities
    of all plain k-mers, all bases that a letter stands for equally likely. Both are None where all letters are plain.
    Where a k-mer would reach past the end of its sequence, the number is meaningless.
    """

    ids: Array
    length: int
    spellings: Array | None = None
    mixtures: Any = None
    n_letters: int = 4

    @property
    def size(self) -> int:
        """The count of numbers: plain k-mers and those with ambiguous letters."""
        return int(self.n_letters**self.length) + (0 if self.spellings is None else self.spellings.size)

    def extend(self, weights: Array) -> Array:
        """(..., size): the expected weight of every k-mer, from the weights (..., 4^length) of the plain ones."""
        if self.mixtures is None:
            return np.ascontiguousarray(weights)
        flat = weights.reshape(-1, weights.shape[-1])
        both = np.hstack([flat, (self.mixtures @ flat.T).T])
        return both.reshape(*weights.shape[:-1], -1)

    def fold(self, sums: Array) -> Array:
        """The transpose of `extend`: sums by k-mer (..., size) as expected sums by plain k-mer."""
        if self.mixtures is None:
            return sums
        plain = self.n_letters**self.length
        flat = sums.reshape(-1, sums.shape[-1])
        both = flat[:, :plain] + (self.mixtures.T @ flat[:, plain:].T).T
        return np.asarray(both.reshape(*sums.shape[:-1], plain))


def find_kmers(codes: Array, offsets: Array, length: int, alphabet: Alphabet = DNA) -> Kmers:
    """The k-mers of sequences of letter codes, each at least ``length`` long; two bytes per position.

    >>> find_kmers(np.array([0, 1, 2, 3], np.uint8), np.array([0, 4]), 2).ids[:3]
    array([ 1,  6, 11], dtype=uint16)
    """
    size = alphabet.size
    ids: Array = np.zeros(codes.size, np.uint16 if size**length <= 1 << 16 else np.uint32)
    last = codes.size - length + 1
    for j in range(length):
        ids[:last] *= ids.dtype.type(size)
        ids[:last] += np.minimum(codes[j : last + j], size - 1)
    if codes.max(initial=0) < size:
        return Kmers(ids, length, n_letters=size)
    is_mixed = np.zeros(codes.size, bool)
    for j in range(length):
        is_mixed[:last] |= codes[j : last + j] >= size
    for j in range(1, length):
        is_mixed[offsets[1:] - j] = False  # such k-mers reach into the next sequence
    positions = np.flatnonzero(is_mixed)
    spelling = np.zeros(positions.size, np.int64)
    for j in range(length):
        spelling = spelling * len(alphabet.shares) + codes[positions + j]
    spellings, which = np.unique(spelling, return_inverse=True)
    if size**length + spellings.size > 1 << 16:
        ids = ids.astype(np.uint32)
    ids[positions] = size**length + which
    return Kmers(ids, length, spellings, _mixtures(spellings, length, alphabet), size)


def _mixtures(spellings: Array, length: int, alphabet: Alphabet) -> Any:
    """(spellings, letters^length), sparse: the probability of every plain k-mer, given ambiguous letters."""
    n_codes = len(alphabet.shares)
    letters = spellings[:, None] // n_codes ** np.arange(length - 1, -1, -1) % n_codes
    blocks = []
    step = max(1, _MAX_MIXTURE_ENTRIES // alphabet.size**length)
    for first in range(0, len(letters), step):
        block = letters[first : first + step]
        shares = np.ones((len(block), 1))
        for j in range(length):
            shares = (shares[:, :, None] * alphabet.shares[block[:, j]][:, None, :]).reshape(len(block), -1)
        blocks.append(sparse.csr_array(shares))
    return sparse.vstack(blocks, format="csr")


class Pieces(NamedTuple):
    """A motif cut into pieces of equal length, at least two of them; the last one overlaps where the width needs it."""

    length: int
    shifts: Array  # (pieces,) where each starts in the window
    covers: Array  # (pieces, length) the position in the motif that a letter of a piece speaks for, −1 for none
    n_letters: int = 4

    @classmethod
    def of(cls, width: int, n_letters: int = 4) -> Self:
        """As few pieces as possible, of at most `LONGEST_PIECE` letters.

        >>> Pieces.of(7).covers.tolist()
        [[0, 1, 2, 3], [-1, 4, 5, 6]]
        """
        count = ceil(width / (LONGEST_PIECE if n_letters == 4 else LONGEST_PIECE_OF_PROTEIN))
        length = ceil(width / count)
        shifts = np.minimum(np.arange(count) * length, width - length)
        covers = shifts[:, None] + np.arange(length)
        covers[1:][covers[1:] < np.arange(1, count)[:, None] * length] = -1
        if count == 1:
            shifts, covers = np.append(shifts, 0), np.vstack([covers, np.full((1, length), -1)])
        return cls(length, shifts, covers, n_letters)

    def tables(self, motif: Array) -> Array:
        """(pieces, 4^length): what every k-mer adds to the score, from the weights (width, 4)."""
        letters = np.vstack([motif, np.zeros((1, self.n_letters))])[self.covers]
        tables = np.zeros((len(self.shifts), 1))
        for j in range(self.length):
            tables = (tables[:, :, None] + letters[:, j, None, :]).reshape(len(self.shifts), -1)
        return tables

    def fold(self, sums: Array) -> Array:
        """The transpose of `tables`: sums by piece and k-mer as sums by motif position and letter."""
        n = self.n_letters
        out = np.zeros((int(self.covers.max()) + 2, n))
        for j in range(self.length):
            out[self.covers[:, j]] = sums.reshape(len(self.shifts), n**j, n, -1).sum(axis=(1, 3))
        return out[:-1]


def find_kmer_holders(sequences: Ragged, length: int, strands: int, alphabet: Alphabet = DNA) -> tuple[Array, Array]:
    """Which sequences hold which canonical k-mers: pairs of a sequence and a k-mer's number, each once.

    K-mers with ambiguous letters do not count.

    >>> find_kmer_holders(Ragged(np.array([0, 1, 0, 1], np.uint8), np.array([0, 4])), 2, 1)
    (array([0, 0]), array([1, 4]))
    """
    n_kmers = alphabet.size**length
    ids = find_kmers(sequences.values, sequences.offsets, length, alphabet).ids.astype(np.int64)
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    inside = np.arange(ids.size) + length <= np.repeat(sequences.offsets[1:], sequences.lengths)
    usable = inside & (ids < n_kmers)
    ids, owner = ids[usable], owner[usable]
    if strands == 2:
        kept, column = canonical_kmers(length, strands)
        ids = kept[column[ids]]
    return np.divmod(np.unique(owner * n_kmers + ids), n_kmers)


def find_enriched_kmers(
    sequences: Ragged, is_positive: Array, width: int, strands: int, most: int, alphabet: Alphabet = DNA
) -> list[Array]:
    """The letters of up to ``most`` k-mers, the most enriched first; none is nearly a shift of another one.

    A k-mer counts once per sequence, on either strand if there are two; k-mers with ambiguous letters do not count.
    Enrichment is the z-score of the difference of the two shares of sequences. O(letters · log letters).

    >>> from tacit.dna.sequences import read_sequences
    >>> sequences = read_sequences(["TTGACTCATT", "CCTGACTCAC", "TTTTTTTTTT", "CCCCCCCCCC"])
    >>> kmers = find_enriched_kmers(sequences, np.array([True, True, False, False]), 7, 1, 1)
    >>> "".join("ACGT"[letter] for letter in kmers[0])
    'TGACTCA'
    """
    length = min(width, LONGEST_KMER if alphabet.size == 4 else LONGEST_KMER_OF_PROTEIN)
    n_kmers = alphabet.size**length
    holder, kmer = find_kmer_holders(sequences, length, strands, alphabet)
    n_positive = max(int(np.count_nonzero(is_positive)), 1)
    n_negative = max(is_positive.size - n_positive, 1)
    in_positive = np.bincount(kmer[is_positive[holder]], minlength=n_kmers)
    in_negative = np.bincount(kmer[~is_positive[holder]], minlength=n_kmers)
    share = (in_positive + in_negative + 1) / (is_positive.size + 2)
    deviation = np.sqrt(share * (1 - share) * (1 / n_positive + 1 / n_negative))
    enrichment = (in_positive / n_positive - in_negative / n_negative) / deviation
    return choose_distinct_kmers(enrichment, length, strands, most, alphabet.size)


def find_unexplained_kmers(
    sequences: Ragged, residual: Array, variance: Array, strands: int, most: int, alphabet: Alphabet = DNA
) -> list[Array]:
    """The letters of up to ``most`` k-mers that a fitted model explains least, the most significant first.

    The score test of every k-mer as one more feature: Σ residual over its holders, divided by the standard deviation
    that this sum has if the model is right. None is nearly a shift of another one. O(letters).

    Parameters
    ----------
    sequences : letter codes
    residual, variance : per sequence, label (0 or 1) less probability p, and p(1 − p), times the sequence's weight
    strands : 1 or 2
    """
    length = SEED_LENGTH if alphabet.size == 4 else LONGEST_KMER_OF_PROTEIN
    holder, kmer = find_kmer_holders(sequences, length, strands, alphabet)
    n_kmers = alphabet.size**length
    score = np.bincount(kmer, residual[holder], n_kmers)
    of_sum = np.bincount(kmer, variance[holder], n_kmers)
    of_sum -= of_sum**2 / variance.sum()  # the intercept takes its part
    count = np.bincount(kmer, minlength=n_kmers)
    z = np.where(count >= LEAST_HOLDERS, score / np.sqrt(np.maximum(of_sum, 1e-12)), 0.0)
    return choose_distinct_kmers(z, length, strands, most, alphabet.size)


def choose_distinct_kmers(value: Array, length: int, strands: int, most: int, n_letters: int = 4) -> list[Array]:
    """The letters of up to ``most`` k-mers of the highest value above 0, none of them nearly a shift of another one.

    >>> value = np.zeros(4**5)
    >>> value[[0b0001101100, 0b0001101111, 0b1010111110]] = 3, 2, 1  # ACGTA, ACGTT, GGTTG
    >>> ["".join("ACGT"[i] for i in kmer) for kmer in choose_distinct_kmers(value, 5, 1, 2)]
    ['ACGTA', 'GGTTG']
    """
    letters = np.arange(n_letters**length)[:, None] // n_letters ** np.arange(length - 1, -1, -1) % n_letters
    chosen: list[Array] = []
    for candidate in np.argsort(-value, kind="stable"):
        if len(chosen) == most or value[candidate] <= 0:
            break
        own = letters[candidate]
        rivals = [*chosen, *((3 - other[::-1]) for other in chosen if strands == 2)]
        if all(_count_differences(own, other) >= LEAST_DIFFERENCE for other in rivals):
            chosen.append(own)
    return chosen


def _count_differences(one: Array, other: Array) -> int:
    """The least number of different letters over all alignments that overlap in all but two letters."""
    counts = [np.count_nonzero(one != other)]
    for shift in range(1, min(3, one.size)):
        counts += [np.count_nonzero(one[shift:] != other[:-shift]), np.count_nonzero(other[shift:] != one[:-shift])]
    return int(min(counts))


def kmer_shares(sequences: Ragged, longest: int, strands: int, alphabet: Alphabet = DNA) -> Array:
    """(sequences, k-mers): the share of every k-mer among those of its length, for all lengths from 1 to ``longest``.

    With two strands a k-mer and its reverse complement are one. A letter that stands for several bases counts as a
    part of each. In a sequence that is shorter than a k-mer its share is 0. O(letters · longest).

    >>> from tacit.dna.sequences import read_sequences
    >>> kmer_shares(read_sequences(["AAAC"]), 1, 1)
    array([[0.75, 0.25, 0.  , 0.  ]])
    >>> kmer_shares(read_sequences(["AAAC", "GTTT"]), 1, 2)  # A or T, C or G
    array([[0.75, 0.25],
           [0.75, 0.25]])
    """
    return np.hstack([_shares_of_length(sequences, length, strands, alphabet) for length in range(1, longest + 1)])


def standard_shares(sequences: Ragged, longest: int, strands: int, alphabet: Alphabet = DNA) -> Array:
    """`kmer_shares` less their expectation (equally likely bases), in `COMPOSITION_SCALE` standard deviations.

    K-mers and sequences of all lengths are then on one scale, which is not learned from data. A k-mer that is longer
    than a sequence counts 0.

    >>> from tacit.dna.sequences import read_sequences
    >>> standard_shares(read_sequences(["AACC", "AAAA"]), 1, 2).round(2)  # A or T, C or G
    array([[ 0.  ,  0.  ],
           [ 0.67, -0.67]])
    """
    shares = kmer_shares(sequences, longest, strands, alphabet)
    first = 0
    for length in range(1, longest + 1):
        kept, column = canonical_kmers(length, strands, alphabet.size)
        chance = np.bincount(column) / alphabet.size**length
        columns = shares[:, first : first + kept.size]
        n_kmers = np.maximum(sequences.lengths - length + 1, 0)[:, None]
        columns -= chance
        columns *= np.sqrt(n_kmers) / (COMPOSITION_SCALE * np.sqrt(chance * (1 - chance)))
        first += kept.size
    return shares


def count_shares(longest: int, strands: int, n_letters: int = 4) -> int:
    """The number of columns of `kmer_shares`.

    >>> count_shares(3, 2), count_shares(2, 1)
    (44, 20)
    """
    return sum(canonical_kmers(length, strands, n_letters)[0].size for length in range(1, longest + 1))


def canonical_kmers(length: int, strands: int, n_letters: int = 4) -> tuple[Array, Array]:
    """The numbers of the k-mers that are counted, and for every k-mer the index of the one that it counts as.

    With two strands a k-mer counts as its reverse complement where that comes first in the alphabet.
    """
    numbers = np.arange(n_letters**length)
    if strands == 1:
        return numbers, numbers
    letters = numbers[:, None] // 4 ** np.arange(length - 1, -1, -1) % 4
    mirrored = (3 - letters[:, ::-1]) @ 4 ** np.arange(length - 1, -1, -1)
    return np.unique(np.minimum(numbers, mirrored), return_inverse=True)


def _shares_of_length(sequences: Ragged, length: int, strands: int, alphabet: Alphabet) -> Array:
    kept, column = canonical_kmers(length, strands, alphabet.size)
    kmers = find_kmers(sequences.values, sequences.offsets, length, alphabet)
    n = len(sequences)
    out = np.empty((n, kept.size))
    step = max(1, _MAX_COUNTS // kmers.size)
    for first in range(0, n, step):
        block = slice(int(sequences.offsets[first]), int(sequences.offsets[min(first + step, n)]))
        lengths = sequences.lengths[first : first + step]
        owner = np.repeat(np.arange(lengths.size), lengths)
        ends = np.repeat(np.cumsum(lengths), lengths)
        inside = np.arange(owner.size) + length <= ends
        cells = owner[inside] * kmers.size + kmers.ids[block][inside]
        counts = np.bincount(cells, minlength=lengths.size * kmers.size).reshape(lengths.size, kmers.size)
        plain = kmers.fold(counts.astype(np.float64))
        folded = np.zeros((lengths.size, kept.size))
        np.add.at(folded.T, column, plain.T)
        out[first : first + step] = folded / np.maximum(lengths - length + 1, 1)[:, None]
    return out

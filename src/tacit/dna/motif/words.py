"""Words of DNA as numbers: the word that starts at every position, and what words with ambiguous letters stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.motif.sequences import SHARES

_MAX_BLOCK_ENTRIES = 1 << 20
"""Numbers of a dense block while mixtures are written out."""


@dataclass(frozen=True)
class Words:
    """``ids[p]``: the word of ``length`` letters that starts at position p of all sequences together.

    Plain words have the numbers 0 to 4^length − 1, in alphabetical order. Every word with ambiguous letters that occurs
    has a number after those, its letters in ``spellings`` and a row of ``mixtures``: the probability of each plain word
    when every base that a letter stands for is as likely. Where all letters are plain, both are None. Words that would
    reach past the end of their sequence have no meaning.
    """

    ids: Array
    length: int
    spellings: Array | None = None
    mixtures: Any = None

    @property
    def size(self) -> int:
        """How many numbers there are: plain words, then those with ambiguous letters."""
        return int(4**self.length) + (0 if self.spellings is None else self.spellings.size)

    def extend(self, weights: Array) -> Array:
        """(..., size): the expected weight of every word, from the weights (..., 4^length) of the plain ones."""
        if self.mixtures is None:
            return np.ascontiguousarray(weights)
        flat = weights.reshape(-1, weights.shape[-1])
        both = np.hstack([flat, (self.mixtures @ flat.T).T])
        return both.reshape(*weights.shape[:-1], -1)

    def fold(self, sums: Array) -> Array:
        """The transpose of `extend`: sums by word (..., size) as expected sums by plain word."""
        if self.mixtures is None:
            return sums
        plain = 4**self.length
        flat = sums.reshape(-1, sums.shape[-1])
        both = flat[:, :plain] + (self.mixtures.T @ flat[:, plain:].T).T
        return np.asarray(both.reshape(*sums.shape[:-1], plain))


def find_words(codes: Array, offsets: Array, length: int) -> Words:
    """The words of sequences given as letter codes, none shorter than a word; two bytes per position.

    >>> find_words(np.array([0, 1, 2, 3], np.uint8), np.array([0, 4]), 2).ids[:3]
    array([ 1,  6, 11], dtype=uint16)
    """
    ids = np.zeros(codes.size, np.uint16)
    last = codes.size - length + 1
    for j in range(length):
        ids[:last] <<= 2
        ids[:last] |= codes[j : last + j] & 3
    if codes.max(initial=0) <= 3:
        return Words(ids, length)
    is_mixed = np.zeros(codes.size, bool)
    for j in range(length):
        is_mixed[:last] |= codes[j : last + j] > 3
    for j in range(1, length):
        is_mixed[offsets[1:] - j] = False  # such words reach into the next sequence
    places = np.flatnonzero(is_mixed)
    spelling = np.zeros(places.size, np.int64)
    for j in range(length):
        spelling = spelling * len(SHARES) + codes[places + j]
    spellings, which = np.unique(spelling, return_inverse=True)
    if 4**length + spellings.size > 1 << 16:
        ids = ids.astype(np.uint32)
    ids[places] = 4**length + which
    return Words(ids, length, spellings, _mixtures(spellings, length))


def word_holders(sequences: Ragged, length: int, strands: int) -> tuple[Array, Array]:
    """Which sequences hold which words: pairs of a sequence and a word's number, each once.

    With two strands a word counts as its reverse complement where that comes first in the alphabet. Words with
    ambiguous letters do not count.

    >>> word_holders(Ragged(np.array([0, 1, 0, 1], np.uint8), np.array([0, 4])), 2, 1)
    (array([0, 0]), array([1, 4]))
    """
    n_words = 4**length
    ids = find_words(sequences.values, sequences.offsets, length).ids.astype(np.int64)
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    inside = np.arange(ids.size) + length <= np.repeat(sequences.offsets[1:], sequences.lengths)
    usable = inside & (ids < n_words)
    ids, owner = ids[usable], owner[usable]
    if strands == 2:
        numbers = np.arange(n_words)
        letters = numbers[:, None] // 4 ** np.arange(length - 1, -1, -1) % 4
        mirrored = (3 - letters[:, ::-1]) @ 4 ** np.arange(length - 1, -1, -1)
        ids = np.minimum(numbers, mirrored)[ids]
    holder, word = np.divmod(np.unique(owner * n_words + ids), n_words)
    return holder, word


def _mixtures(spellings: Array, length: int) -> Any:
    """(spellings, 4^length), sparse: the probability of every plain word given the letters of a word."""
    letters = spellings[:, None] // len(SHARES) ** np.arange(length - 1, -1, -1) % len(SHARES)
    blocks = []
    step = max(1, _MAX_BLOCK_ENTRIES >> (2 * length))
    for first in range(0, len(letters), step):
        block = letters[first : first + step]
        shares = np.ones((len(block), 1))
        for j in range(length):
            shares = (shares[:, :, None] * SHARES[block[:, j]][:, None, :]).reshape(len(block), -1)
        blocks.append(sparse.csr_array(shares))
    return sparse.vstack(blocks, format="csr")

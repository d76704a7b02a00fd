"""Words to begin a motif from: those that explain best what a model does not explain yet."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.motif.starts import different_words
from tacit.dna.motif.words import word_holders

SEED_LENGTH = 6
"""Letters of a word: 2,080 of them, a word and its reverse complement being one."""

LEAST_HOLDERS = 5
"""Sequences that must hold a word."""


def unexplained_words(sequences: Ragged, residual: Array, variance: Array, strands: int, most: int) -> list[Array]:
    """The letters of up to ``most`` words whose presence is most at odds with a fitted model, the strongest first.

    The score test of every word as one more feature: Σ residual over its holders, divided by the standard deviation
    that this sum has if the model is right. Words that are nearly another one are left out. O(letters).

    Parameters
    ----------
    sequences : letter codes
    residual, variance : per sequence, label (0 or 1) less probability p, and p(1 − p), times the sequence's weight
    strands : 1 or 2
    """
    holder, word = word_holders(sequences, SEED_LENGTH, strands)
    n_words = 4**SEED_LENGTH
    score = np.bincount(word, residual[holder], n_words)
    spread = np.bincount(word, variance[holder], n_words)
    spread -= spread**2 / variance.sum()  # the intercept takes its part
    count = np.bincount(word, minlength=n_words)
    z = np.where(count >= LEAST_HOLDERS, score / np.sqrt(np.maximum(spread, 1e-12)), 0.0)
    return different_words(z, SEED_LENGTH, strands, most)


def with_word(w: Array, letters: Array, blocks: dict[str, Array], motif: int, height: float = 0.5) -> Array:
    """The weights with a word in the middle of a motif: its letters speak for a site, all others against."""
    table = blocks["motif"][motif]
    places = (len(table) - letters.size) // 2 + np.arange(letters.size)
    table[:] = 0.0
    table[places] = -height
    table[places, letters] = height
    return w

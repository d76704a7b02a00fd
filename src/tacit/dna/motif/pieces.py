"""A motif as a few short words: one lookup scores five letters."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array

LONGEST_PIECE = 5
"""Letters of a motif that one lookup scores: 4⁵ numbers, 8 kB, stay in a core's first cache."""


class Pieces(NamedTuple):
    """A motif cut into pieces of equal length, at least two of them; the last one overlaps where the width needs it."""

    length: int
    places: Array  # (pieces,) where each begins in the window
    covers: Array  # (pieces, length) the position in the motif that a letter of a piece speaks for, −1 for none

    @classmethod
    def of(cls, width: int) -> Self:
        """The least number of pieces of at most `LONGEST_PIECE` letters.

        >>> Pieces.of(7).covers.tolist()
        [[0, 1, 2, 3], [-1, 4, 5, 6]]
        """
        count = ceil(width / LONGEST_PIECE)
        length = ceil(width / count)
        places = np.minimum(np.arange(count) * length, width - length)
        covers = places[:, None] + np.arange(length)
        covers[1:][covers[1:] < np.arange(1, count)[:, None] * length] = -1
        if count == 1:
            places, covers = np.append(places, 0), np.vstack([covers, np.full((1, length), -1)])
        return cls(length, places, covers)

    def tables(self, motif: Array) -> Array:
        """(pieces, 4^length): what every word adds to the score, from the weights (width, 4)."""
        letters = np.vstack([motif, np.zeros((1, 4))])[self.covers]
        tables = np.zeros((len(self.places), 1))
        for j in range(self.length):
            tables = (tables[:, :, None] + letters[:, j, None, :]).reshape(len(self.places), -1)
        return tables

    def fold(self, sums: Array) -> Array:
        """The transpose of `tables`: sums by piece and word as sums by motif position and letter."""
        out = np.zeros((int(self.covers.max()) + 2, 4))
        for j in range(self.length):
            out[self.covers[:, j]] = sums.reshape(len(self.places), 4**j, 4, -1).sum(axis=(1, 3))
        return out[:-1]

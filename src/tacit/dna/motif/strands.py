"""Two strands, one sequence: which of them is kept."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.motif.windows import COMPLEMENT


def orient(sequences: Ragged) -> tuple[Ragged, Array]:
    """Each sequence or its reverse complement, whichever comes first in the alphabet; and which were turned around.

    A sequence and its reverse complement are then the same data, and whatever is computed of them has the same bits.
    """
    values, offsets = sequences.values, sequences.offsets
    places, mirrored = np.arange(values.size), _mirrored(sequences)
    first = np.minimum.reduceat(np.where(values != mirrored, places, values.size), offsets[:-1])
    at = np.minimum(first, values.size - 1)
    is_flipped = (first < offsets[1:]) & (mirrored[at] < values[at])
    return sequences.with_values(np.where(np.repeat(is_flipped, sequences.lengths), mirrored, values)), is_flipped


def turn(sequences: Ragged, which: Array) -> Ragged:
    """These sequences with their reverse complements in the place of some."""
    values = np.where(np.repeat(which, sequences.lengths), _mirrored(sequences), sequences.values)
    return sequences.with_values(values)


def _mirrored(sequences: Ragged) -> Array:
    """The letters of the reverse complement of every sequence."""
    values, offsets = sequences.values, sequences.offsets
    places = np.repeat(offsets[:-1] + offsets[1:] - 1, sequences.lengths) - np.arange(values.size)
    mirrored: Array = COMPLEMENT[values[places]]
    return mirrored

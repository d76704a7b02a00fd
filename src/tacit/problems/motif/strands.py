"""Two strands, one sequence: which of them is kept."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.problems.motif.windows import COMPLEMENT
from tacit.ragged import Ragged


def orient(sequences: Ragged) -> tuple[Ragged, Array]:
    """Each sequence or its reverse complement, whichever comes first in the alphabet; and which were turned around.

    A sequence and its reverse complement are then the same data, and whatever is computed of them has the same bits.
    """
    values, offsets, lengths = sequences.values, sequences.offsets, sequences.lengths
    places = np.arange(values.size)
    mirrored = COMPLEMENT[values[np.repeat(offsets[:-1] + offsets[1:] - 1, lengths) - places]]
    first = np.minimum.reduceat(np.where(values != mirrored, places, values.size), offsets[:-1])
    at = np.minimum(first, values.size - 1)
    is_flipped = (first < offsets[1:]) & (mirrored[at] < values[at])
    return sequences.with_values(np.where(np.repeat(is_flipped, lengths), mirrored, values)), is_flipped

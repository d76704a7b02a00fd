"""Sequences as a motif finder learns from them: with labels or shuffles, with a flank, enough of each class."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.dna.motif.sequences import read_sequences
from tacit.dna.shuffled import shuffle_pairs
from tacit.problems import Motif

LEAST_SEQUENCES = 10
"""Sequences of each class without which nothing can be learned and tested."""


def read_classes(X: Any, y: Any, seed: int) -> tuple[Ragged, Array, Array]:
    """Letter codes, which sequences are positive, and the two labels. Shards are read into memory, a byte per letter.

    Without labels all are positive, and a shuffle of each, pairs of letters preserved, follows them as a negative.

    >>> sequences, is_positive, classes = read_classes(["ACGTTG", "CCAGTA"], None, seed=0)
    >>> len(sequences), is_positive.tolist(), classes.tolist()
    (4, [True, True, False, False], [-1, 1])
    """
    sequences = read_sequences(load_letters(X) if isinstance(X, Shards) else X)
    if y is None:
        shuffled = shuffle_pairs(sequences, seed)
        offsets = np.concatenate([sequences.offsets, sequences.offsets[-1] + shuffled.offsets[1:]])
        both = Ragged(np.concatenate([sequences.values, shuffled.values]), offsets)
        return both, np.arange(len(both)) < len(sequences), np.array([-1, 1])
    classes = Motif(1, 1, "one", "sites", n_motifs=1, overhang=0).schema(sequences, y).classes
    return sequences, np.asarray(y) == classes[1], classes


def load_letters(shards: Shards) -> Ragged:
    """The letters of shards of sequences, which are compared with their checksums first."""
    if shards.manifest.kind != "letters":
        raise ValueError(f"motifs are found in sequences, and {shards!r} holds numbers; write shards of sequences")
    shards.verify()
    letters: Ragged = shards.in_memory()
    return letters


def append_flank(sequences: Ragged, flank: str) -> Ragged:
    """Every sequence with the flank behind it.

    >>> write_letters(append_flank(read_sequences(["AC", "G"]), "TT"))
    ['ACTT', 'GTT']
    """
    if not flank:
        return sequences
    codes = read_sequences([flank]).values
    offsets = sequences.offsets + codes.size * np.arange(len(sequences) + 1)
    values = np.empty(int(offsets[-1]), np.uint8)
    is_flank = np.zeros(values.size, dtype=bool)
    is_flank[(offsets[1:, None] - codes.size + np.arange(codes.size)).ravel()] = True
    values[~is_flank] = sequences.values
    values[is_flank] = np.tile(codes, len(sequences))
    return Ragged(values, offsets)


def write_letters(sequences: Ragged) -> list[str]:
    """Letter codes as text.

    >>> write_letters(read_sequences(["acgu", "NN"]))
    ['ACGT', 'NN']
    """
    letters = np.frombuffer(b"ACGTRYSWKMBDHVN", np.uint8)[sequences.values].tobytes().decode("ascii")
    return [letters[a:b] for a, b in pairwise(sequences.offsets.tolist())]


def check_enough(is_positive: Array, is_held_out: Array) -> None:
    """Refuse classes that are too small to learn from one part and to test on the other."""
    for kind, name in ((True, "positive"), (False, "negative")):
        n = int((is_positive == kind).sum())
        if n < LEAST_SEQUENCES:
            raise ValueError(f"there are {n} {name} sequences; {LEAST_SEQUENCES} or more are needed to learn and test")
        both = {bool(held) for held in is_held_out[is_positive == kind]}
        if len(both) < 2:
            raise ValueError(f"the {name} sequences are copies of one another; nothing is left to test on")

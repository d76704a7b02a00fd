"""What `tacit motif` is given: files of sequences, with or without labels, as one list with names."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.data.arrays import Array
from tacit.data.lines import one_line
from tacit.data.reading import named
from tacit.data.shards import Shards
from tacit.dna.finder.sequences import load_letters, write_letters
from tacit.dna.motif.sequences import read_sequences
from tacit.dna.sequence_files import Sequences, is_table, read_sequence_table, read_sequences_file


@dataclass(frozen=True)
class MotifInput:
    """Sequences for `tacit.apps.MotifFinder`.

    Parameters
    ----------
    names, letters : of every sequence
    labels : 1 and −1; None where all are positive and shuffles are to be the negatives
    told : how they came about, in a sentence
    n_duplicates : sequences with the name of another one in their file
    """

    names: list[str]
    letters: list[str]
    labels: Array | None
    told: str
    n_duplicates: int


def read_motif_input(positives: Path, negatives: Path | None, *, top: int, seed: int) -> MotifInput:
    """Read one or two files.

    Parameters
    ----------
    positives : FASTA, FASTQ, a folder of shards (`tacit.Shards.write`), or a table of sequences with labels or signals
    negatives : FASTA, FASTQ, or a folder of shards; None for shuffles, or where the first file has both
    top : sequences with the strongest signal that are positive; as many of the others are drawn as negatives
    seed : of that draw
    """
    if not os.path.isdir(positives) and is_table(positives):
        if negatives is not None:
            raise ValueError(f"{named(positives)} is a table with both classes: leave out {named(negatives)}")
        return _from_table(positives, top, seed)
    first = _read_file_or_shards(positives)
    if negatives is None:
        return _finish(first.names, first.letters, None, f"{len(first.names)} sequences, and a shuffle of each")
    second = _read_file_or_shards(negatives)
    labels = np.repeat([1, -1], [len(first.names), len(second.names)])
    told = f"{len(first.names)} positive and {len(second.names)} negative sequences"
    both = _finish(first.names + second.names, first.letters + second.letters, labels, told)
    twice = sum(len(names) - len(set(names)) for names in (first.names, second.names))
    return replace(both, n_duplicates=twice)


def _read_file_or_shards(path: Path) -> Sequences:
    """Sequences of a file; those of a folder of shards have numbers for names."""
    if not os.path.isdir(path):
        return read_sequences_file(path)
    letters = write_letters(read_sequences(load_letters(Shards.open(path))))
    return Sequences([f"{path.name}:{number}" for number in range(1, len(letters) + 1)], letters)


def _from_table(path: Path, top: int, seed: int) -> MotifInput:
    table = read_sequence_table(path)
    if table.has_labels:
        values = np.unique(table.values)
        if values.size < 2:
            raise ValueError(f"{named(path)} has one label only, {values[0]:g}; give sequences of two classes")
        labels = np.where(table.values == values[1], 1, -1)
        n = int((labels == 1).sum())
        told = f"{n} sequences of label {values[1]:g} and {labels.size - n} of label {values[0]:g}"
        return _finish(table.names, table.letters, labels, told)
    order = np.argsort(-table.values, kind="stable")
    if order.size < 2 * top:
        raise ValueError(
            f"{named(path)} has {order.size} sequences, and --top {top} takes {top} as positives and as many of the "
            f"others as negatives; lower --top to {order.size // 2} or less"
        )
    drawn = np.random.default_rng(seed).choice(order[top:], top, replace=False)
    rows = np.concatenate([order[:top], np.sort(drawn)])
    told = f"the {top} sequences of the strongest signal, and {top} drawn from the {order.size - top} others"
    names, letters = [table.names[i] for i in rows], [table.letters[i] for i in rows]
    return _finish(names, letters, np.repeat([1, -1], top), told)


def _finish(names: list[str], letters: list[str], labels: Array | None, told: str) -> MotifInput:
    plain = [one_line(name, 200) or "unnamed" for name in names]
    return MotifInput(plain, letters, labels, told, len(plain) - len(set(plain)))

"""Width and C of a motif finder: read, and chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.dna.finder.descent import descend
from tacit.dna.finder.seeds import with_word
from tacit.dna.motif.sequences import read_sequences
from tacit.dna.motif.starts import enriched_words
from tacit.problems import Motif
from tacit.runtime import Status
from tacit.runtime.deadline import Deadline

MOST_MOTIFS = 5
"""Motifs that ``n_motifs="auto"`` looks for."""

STRENGTHS = (300.0, 1000.0, 3000.0)
"""C that are tried."""

FOLDS, STARTS, STEPS = 3, 1, 40
"""Of cross-validation: folds, words that a motif is begun from, and steps of a descent."""

MAX_LEARNED_FROM = 2000
"""Sequences that cross-validation uses."""

WIDTH_STEP = 2
"""Letters between widths of a range that are tried."""

LONGEST_MOTIF = 40


def read_widths(width: Any) -> tuple[int, int]:
    """The shortest and the longest width, of a number or a pair.

    >>> read_widths(10), read_widths((6, 14))
    ((10, 10), (6, 14))
    """
    if isinstance(width, tuple | list) and len(width) == 2:
        low = whole_number("width", width[0], 3, LONGEST_MOTIF)
        high = whole_number("width", width[1], 3, LONGEST_MOTIF)
        if low > high:
            raise ValueError(f"a range of widths goes from the shortest to the longest, got {shorten(width)}")
        return low, high
    one = whole_number("width", width, 3, LONGEST_MOTIF, remedy="or a pair such as (6, 14)")
    return one, one


def make_problem(finder: Any, n_motifs: int, width: int) -> Motif:
    """What a finder learns: a model of so many motifs."""
    overhang = min(int(finder.overhang), width - 1)
    return Motif(width, int(finder.composition_), finder.strands, "sites", n_motifs=n_motifs, overhang=overhang)


def count_strands(finder: Any) -> int:
    """Strands that a finder reads: 1 or 2."""
    return 1 if finder.strands == "one" else 2


def check_flank(flank: Any) -> None:
    """Refuse a flank that is no DNA."""
    if not isinstance(flank, str):
        raise ValueError(f"flank must be letters of DNA, got flank={shorten(flank)}")
    if flank:
        try:
            read_sequences([flank])
        except ValueError as error:
            raise ValueError(f"flank must be letters of DNA, got flank={shorten(flank)}: {error}") from error


def choose_settings(finder: Any, sequences: Ragged, labels: Array, seed: int, deadline: Deadline) -> tuple[int, float]:
    """C at the middle width, then the width, by the loss of one motif on sequences that it was not learned from."""
    widths, strengths = _choices(finder)
    if len(widths) == len(strengths) == 1:
        return widths[0], strengths[0]
    rng = np.random.default_rng(seed)
    if len(sequences) > MAX_LEARNED_FROM:
        rows = np.sort(rng.choice(len(sequences), MAX_LEARNED_FROM, replace=False))
        sequences, labels = sequences[rows], labels[rows]
    fold = rng.permutation(len(sequences)) % FOLDS
    width, C = middle_settings(finder)

    def loss(width: int, C: float) -> float:
        losses = [_fold_loss(finder, width, C, sequences, labels, fold == k, deadline) for k in range(FOLDS)]
        return float(np.mean(losses))

    if len(strengths) > 1:
        C = min(strengths, key=lambda C: loss(width, C))
    if len(widths) > 1:
        width = min(widths, key=lambda width: loss(width, C))
    return width, C


def middle_settings(finder: Any) -> tuple[int, float]:
    """Width and C in the middle of what is allowed."""
    widths, strengths = _choices(finder)
    return widths[len(widths) // 2], strengths[len(strengths) // 2]


def _choices(finder: Any) -> tuple[list[int], tuple[float, ...]]:
    low, high = read_widths(finder.width)
    widths = list(range(low, high + 1, WIDTH_STEP))
    return widths, STRENGTHS if finder.C == "auto" else (float(finder.C),)


def _fold_loss(
    finder: Any, width: int, C: float, sequences: Ragged, labels: Array, is_out: Array, deadline: Deadline
) -> float:
    """The mean loss on a fold of a motif learned from the others; infinite if there was no time."""
    train, test = np.flatnonzero(~is_out), np.flatnonzero(is_out)
    problem = make_problem(finder, 1, width)
    own, own_labels = sequences[train], labels[train]
    schema = problem.schema(own, own_labels)
    oracle = problem.bind(own, own_labels, schema)
    found = []
    for letters in enriched_words(own, own_labels, width, count_strands(finder), STARTS):
        w = np.zeros(schema.n_params)
        begin = with_word(w, letters, schema.views(w), 0)
        found.append(descend(oracle, own_labels, begin, C, max_iter=STEPS, deadline=deadline, n_jobs=finder.n_jobs))
        if found[-1].status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if found[-1].status is Status.STOPPED:
            return np.inf
    if not found:
        return np.inf
    w = min(found, key=lambda one: one.objective).w
    score = problem.bind(sequences[test], None, schema).label_scores(w)[:, 1]
    held = labels[test]
    loss = np.logaddexp(0.0, np.where(held, -score, score))
    return float(sum(loss[held == kind].mean() for kind in (True, False) if (held == kind).any()))

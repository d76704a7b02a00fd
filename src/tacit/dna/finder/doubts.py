"""Sequences in which a found motif may well lie elsewhere: what to check by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.finder.files import MotifInput
from tacit.dna.sequences import append_flank, read_sequences

STEP = 1e-3
"""Step of the central difference that takes the mean score from log-sums."""


class Doubts(NamedTuple):
    """Names of sequences, the entropies of their sites in nats, and the best site of the first motif in each."""

    names: list[str]
    usefulness: Array
    guesses: list[str]


def find_doubtful_sites(finder: Any, data: MotifInput, k: int) -> Doubts:
    """The k positive sequences whose sites are least certain, by the entropy of p(sites) ∝ exp(score).

    With ``L(t) = log Σ exp(t·score)`` over all sites, the entropy is ``L(1) − L'(1)``.
    """
    positive = np.arange(len(data.letters)) if data.labels is None else np.flatnonzero(data.labels == 1)
    own = read_sequences([data.letters[i] for i in positive], finder.letters_)
    sequences = append_flank(own, finder.flank, finder.letters_)
    oracle = finder.problem_.bind(sequences, np.full(positive.size, finder.classes_[1]), finder.schema_)
    sums = [
        oracle.expectations(finder.coef_, None, truth=0.0, power=power).truth for power in (1 - STEP, 1.0, 1 + STEP)
    ]
    entropies = np.maximum(sums[1] - (sums[2] - sums[0]) / (2 * STEP), 0.0)
    order = np.argsort(-entropies, kind="stable")[:k]
    m, sites = int(finder.motif_order_[0]), finder.sites_
    guesses = []
    for i in positive[order].tolist():
        start = int(sites.start[i, m])
        guesses.append(
            f"{start} {start + sites.width} {'+-'[int(sites.strand[i, m])]}" if sites.value[i, m] > 0 else ""
        )
    return Doubts([data.names[i] for i in positive[order]], entropies[order], guesses)

"""Whole-sweep kernels for models of sites: several motifs, each at most once per sequence.

A sequence is ``[starts[i], stops[i])`` of ``pieces``, the numbers of the short words that start at each position, as in
`tacit.dna.motif.kernels`. ``tables[motif, strand, piece, word]`` is what a piece adds to the score of a window. A
state is 0 for no site, and 1 + start · strands + strand otherwise; no site has the score 0.
"""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def best_sites(
    pieces: Array,
    starts: Array,
    stops: Array,
    tables: Array,
    places: Array,
    width: int,
    given: Array,
    preferred: Array,
    value: Array,
    state: Array,
) -> None:
    """The best site of every motif in every sequence, or none; ``value`` and ``state`` are (sequences, motifs).

    A ``given`` state (≥ 0) is scored as it is. Ties go to ``preferred`` where that is ≥ 0, else to no site, else to the
    first state.
    """
    strands = tables.shape[1]
    for i in range(starts.size):
        first = starts[i]
        n_starts = stops[i] - first - width + 1
        for m in range(tables.shape[0]):
            known = given[i, m]
            if known == 0:
                value[i, m] = 0.0
                state[i, m] = 0
                continue
            low, high = 0, n_starts
            top = 0.0
            where = 0
            if known > 0:
                low = (known - 1) // strands
                high = low + 1
                top = -np.inf
            for strand in range(strands):
                if known > 0 and (known - 1) % strands != strand:
                    continue
                one, two = tables[m, strand, 0], tables[m, strand, 1]
                ones = pieces[first : first + high]
                twos = pieces[first + places[1] : first + places[1] + high]
                for h in range(low, high):
                    v = one[ones[h]] + two[twos[h]]
                    for j in range(2, places.size):
                        v += tables[m, strand, j, pieces[first + places[j] + h]]
                    s = 1 + h * strands + strand
                    if v > top or (v == top and where > s):
                        top = v
                        where = s
            wish = preferred[i, m]
            if wish >= 0 and known < 0 and wish != where:
                v = 0.0
                if wish > 0:
                    h, strand = (wish - 1) // strands, (wish - 1) % strands
                    v = tables[m, strand, 0, pieces[first + h]] + tables[m, strand, 1, pieces[first + places[1] + h]]
                    for j in range(2, places.size):
                        v += tables[m, strand, j, pieces[first + places[j] + h]]
                if v >= top:
                    where = wish
            value[i, m] = top
            state[i, m] = where


@kernel
def add_sites(pieces: Array, starts: Array, places: Array, states: Array, coef: Array, piece_sums: Array) -> None:
    """Add ``coef[i]`` to the pieces of the sites of sequence i."""
    strands = piece_sums.shape[1]
    for i in range(starts.size):
        c = coef[i]
        if c == 0.0:
            continue
        for m in range(states.shape[1]):
            if states[i, m] > 0:
                start, strand = (states[i, m] - 1) // strands, (states[i, m] - 1) % strands
                for j in range(places.size):
                    piece_sums[m, strand, j, pieces[starts[i] + places[j] + start]] += c


@kernel
def sum_sites(
    pieces: Array,
    starts: Array,
    stops: Array,
    tables: Array,
    places: Array,
    width: int,
    power: float,
    given: Array,
    coef: Array,
    work: Array,
    logs: Array,
    piece_sums: Array,
) -> None:
    """``log Σ exp(power · score)`` over the states of every motif, no site among them, and the expected pieces times
    ``coef``. A ``given`` state is the only one. ``work`` has a number per state of the longest sequence."""
    strands = tables.shape[1]
    for i in range(starts.size):
        first = starts[i]
        n_starts = stops[i] - first - width + 1
        for m in range(tables.shape[0]):
            known = given[i, m]
            low, high = 1, 1 + n_starts * strands
            top = 0.0
            if known == 0:
                high = 1
            elif known > 0:
                low, high = known, known + 1
                top = -np.inf
            for s in range(low, high):
                h, strand = (s - 1) // strands, (s - 1) % strands
                v = 0.0
                for j in range(places.size):
                    v += tables[m, strand, j, pieces[first + places[j] + h]]
                work[s] = power * v
                if work[s] > top:
                    top = work[s]
            total = np.exp(-top) if known <= 0 else 0.0
            for s in range(low, high):
                work[s] = np.exp(work[s] - top)
                total += work[s]
            logs[i, m] = top + np.log(total)
            c = coef[i]
            if c == 0.0:
                continue
            for s in range(low, high):
                h, strand = (s - 1) // strands, (s - 1) % strands
                share = c * work[s] / total
                for j in range(places.size):
                    piece_sums[m, strand, j, pieces[first + places[j] + h]] += share

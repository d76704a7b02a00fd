"""Whole-sweep kernels that slide a motif along sequences.

A sequence is ``[starts[i], stops[i])`` of the k-mer numbers ``kmers`` (background) and ``pieces`` (motif): the k-mers
that start at each position. A motif is cut into pieces of equal length, the j-th at ``shifts[j]`` of the window, and
``tables[strand, j, piece]`` is what a piece adds to the score. So a window of ten letters costs two look-ups. There are
at least two pieces, the second empty where one is enough. Running sums of the background weights give the k-mers that
start inside a window by one difference. States count starts, and strands within starts.

``shape`` depends on the problem alone. It has the width of the motif, the last letters of a sequence at which no k-mer
is counted, the last starts that are not windows, and the length of a k-mer less 1. Where
k-mers are counted on both strands, ``reverse`` has the weights of their reverse complements, else it is empty. Read
backwards, those start inside a window where a k-mer *ends* in it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

Sequences: TypeAlias = tuple[Array, Array, Array, Array]
"""kmers, pieces, starts, stops"""

Triple: TypeAlias = tuple[Array, Array, Array]
"""Numbers by k-mer, by reverse complement and by piece; what is found per sequence; or pieces, starts, stops."""

Model: TypeAlias = Triple
"""weights, reverse, tables"""

Cut: TypeAlias = tuple[Array, Array]
"""shifts, shape"""

Motifs: TypeAlias = tuple[Array, Array, int]
"""tables, shifts, width"""


@kernel
def best_windows(
    sequences: Sequences, model: Model, cut: Cut, given: Array, preferred: Array, work: Array, found: Triple
) -> None:
    """The best window of every sequence, its score, and the score of background alone (``background_only``).

    A ``given`` state (≥ 0) is scored as it is. Ties go to ``preferred`` where that is ≥ 0, else to the first state.
    ``work`` has two rows for the longest sequence and one number more.
    """
    kmers, pieces, starts, stops = sequences
    (weights, reverse, tables), (shifts, shape) = model, cut
    background_only, value, state = found
    strands = tables.shape[0]
    width, lag = shape[0], shape[3]
    sums = work[0]
    after = work[0, width:]
    part = work[1]
    for i in range(starts.size):
        first = starts[i]
        length = stops[i] - first
        n_kmers = length - shape[1]
        n_starts = length - width + 1 - shape[2]
        own = kmers[first : first + n_kmers]
        total = 0.0
        sums[0] = 0.0
        if reverse.size == 0:
            for p in range(n_kmers):
                total += weights[own[p]]
                sums[p + 1] = total
            for p in range(n_kmers, length):
                sums[p + 1] = total
        else:
            for p in range(length):
                if p < n_kmers:
                    total += weights[own[p]]
                if p >= lag:
                    total += reverse[own[p - lag]]
                sums[p + 1] = total
        top = -np.inf
        where = 0
        for strand in range(strands):
            low, high = 0, n_starts
            if given[i] >= 0:
                if given[i] % strands != strand:
                    continue
                low = given[i] // strands
                high = low + 1
            for h in range(low, high):
                part[h] = total - (after[h] - sums[h])
            for j in range(2, shifts.size):
                table = tables[strand, j]
                ids = pieces[first + shifts[j] : first + shifts[j] + high]
                for h in range(low, high):
                    part[h] += table[ids[h]]
            one, two = tables[strand, 0], tables[strand, 1]
            ones = pieces[first : first + high]
            twos = pieces[first + shifts[1] : first + shifts[1] + high]
            best = -np.inf
            start = low
            for h in range(low, high):
                v = part[h] + one[ones[h]] + two[twos[h]]
                if v > best:
                    best = v
                    start = h
            s = start * strands + strand
            if best > top or (best == top and s < where):
                top = best
                where = s
        if preferred[i] >= 0 and given[i] < 0:
            h, strand = preferred[i] // strands, preferred[i] % strands
            v = total - (after[h] - sums[h])
            for j in range(2, shifts.size):
                v += tables[strand, j, pieces[first + shifts[j] + h]]
            v = v + tables[strand, 0, pieces[first + h]] + tables[strand, 1, pieces[first + shifts[1] + h]]
            if v >= top:
                where = preferred[i]
        background_only[i] = total
        value[i] = top
        state[i] = where


@kernel
def score_windows(sequences: Sequences, model: Model, cut: Cut, work: Array, scores: Array) -> None:
    """``scores[1, state]`` of every window, and in ``scores[0]`` that of background alone in each sequence's first."""
    kmers, pieces, starts, stops = sequences
    (weights, reverse, tables), (shifts, shape) = model, cut
    strands = tables.shape[0]
    width, lag = shape[0], shape[3]
    sums = work[0]
    cell = 0
    for i in range(starts.size):
        first = starts[i]
        length = stops[i] - first
        n_kmers = length - shape[1]
        total = 0.0
        sums[0] = 0.0
        for p in range(length):
            if p < n_kmers:
                total += weights[kmers[first + p]]
            if reverse.size > 0 and p >= lag:
                total += reverse[kmers[first + p - lag]]
            sums[p + 1] = total
        scores[0, cell] = total
        for h in range(length - width + 1 - shape[2]):
            for strand in range(strands):
                v = total - (sums[h + width] - sums[h])
                for j in range(2, shifts.size):
                    v += tables[strand, j, pieces[first + shifts[j] + h]]
                v = v + tables[strand, 0, pieces[first + h]] + tables[strand, 1, pieces[first + shifts[1] + h]]
                scores[1, cell] = v
                cell += 1


@kernel
def add_windows(sequences: Sequences, cut: Cut, labels: Array, states: Array, coef: Array, sums_of: Triple) -> None:
    """Add ``coef[i]`` to the k-mers outside the window of sample i, and to the pieces in it; no window at label 0."""
    kmers, pieces, starts, stops = sequences
    (shifts, shape), (kmer_sums, reverse_sums, piece_sums) = cut, sums_of
    strands = piece_sums.shape[0]
    width, lag = shape[0], shape[3]
    for i in range(starts.size):
        c = coef[i]
        if c == 0.0:
            continue
        first = starts[i]
        last = stops[i] - shape[1]
        start, stop = stops[i], stops[i]  # of a window that nothing is in
        if labels[i] == 1:
            start = first + states[i] // strands
            stop = start + width
            strand = states[i] % strands
            for j in range(shifts.size):
                piece_sums[strand, j, pieces[start + shifts[j]]] += c
        for p in range(first, min(start, last)):
            kmer_sums[kmers[p]] += c
        for p in range(stop, last):
            kmer_sums[kmers[p]] += c
        if reverse_sums.size > 0:
            for p in range(first, min(start - lag, last)):
                reverse_sums[kmers[p]] += c
            for p in range(max(first, stop - lag), last):
                reverse_sums[kmers[p]] += c


@kernel
def add_moves(
    sequences: Sequences, cut: Cut, labels: Array, states: Array, coef: Array, sign: float, sums_of: Triple
) -> None:
    """Add what a window changes against background alone, times ``sign * coef[i]``: minus k-mers, plus pieces."""
    kmers, pieces, starts, stops = sequences
    (shifts, shape), (kmer_sums, reverse_sums, piece_sums) = cut, sums_of
    strands = piece_sums.shape[0]
    width, lag = shape[0], shape[3]
    for i in range(starts.size):
        c = sign * coef[i]
        if c == 0.0 or labels[i] == 0:
            continue
        first = starts[i]
        last = stops[i] - shape[1]
        start = first + states[i] // strands
        strand = states[i] % strands
        for p in range(start, min(start + width, last)):
            kmer_sums[kmers[p]] -= c
        if reverse_sums.size > 0:
            for p in range(max(first, start - lag), min(start + width - lag, last)):
                reverse_sums[kmers[p]] -= c
        for j in range(shifts.size):
            piece_sums[strand, j, pieces[start + shifts[j]]] += c


@kernel
def add_all_windows(sequences: Sequences, cut: Cut, V: Array, work: Array, sums_of: Triple) -> None:
    """`add_windows` for all states at once: ``V[label, state]`` is the coefficient of a cell."""
    kmers, pieces, starts, stops = sequences
    (shifts, shape), (kmer_sums, reverse_sums, piece_sums) = cut, sums_of
    strands = piece_sums.shape[0]
    width, lag = shape[0], shape[3]
    sums = work[0]
    cell = 0
    for i in range(starts.size):
        first = starts[i]
        n_kmers = stops[i] - first - shape[1]
        n_starts = stops[i] - first - width + 1 - shape[2]
        background_only = V[0, cell]
        total = 0.0
        sums[0] = 0.0
        for h in range(n_starts):
            for strand in range(strands):
                c = V[1, cell]
                total += c
                cell += 1
                for j in range(shifts.size):
                    piece_sums[strand, j, pieces[first + shifts[j] + h]] += c
            sums[h + 1] = total
        for p in range(n_kmers):  # a k-mer counts unless it starts inside the window, or ends there read backwards
            inside = sums[min(p + 1, n_starts)] - sums[min(max(0, p - width + 1), n_starts)]
            kmer_sums[kmers[first + p]] += background_only + (total - inside)
            if reverse_sums.size > 0:
                q = p + lag
                inside = sums[min(q + 1, n_starts)] - sums[min(max(0, q - width + 1), n_starts)]
                reverse_sums[kmers[first + p]] += background_only + (total - inside)


@kernel
def best_sites(sequences: Triple, motifs: Motifs, given: Array, preferred: Array, value: Array, state: Array) -> None:
    """The best site of every motif in every sequence, or none; ``value`` and ``state`` are (sequences, motifs).

    A ``given`` state (≥ 0) is scored as it is. Ties go to ``preferred`` where that is ≥ 0, else to no site, else to the
    first state.
    """
    (pieces, starts, stops), (tables, shifts, width) = sequences, motifs
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
                twos = pieces[first + shifts[1] : first + shifts[1] + high]
                for h in range(low, high):
                    v = one[ones[h]] + two[twos[h]]
                    for j in range(2, shifts.size):
                        v += tables[m, strand, j, pieces[first + shifts[j] + h]]
                    s = 1 + h * strands + strand
                    if v > top or (v == top and where > s):
                        top = v
                        where = s
            wanted = preferred[i, m]
            if wanted >= 0 and known < 0 and wanted != where:
                v = 0.0
                if wanted > 0:
                    h, strand = (wanted - 1) // strands, (wanted - 1) % strands
                    v = tables[m, strand, 0, pieces[first + h]] + tables[m, strand, 1, pieces[first + shifts[1] + h]]
                    for j in range(2, shifts.size):
                        v += tables[m, strand, j, pieces[first + shifts[j] + h]]
                if v >= top:
                    where = wanted
            value[i, m] = top
            state[i, m] = where


@kernel
def add_sites(pieces: Array, starts: Array, shifts: Array, states: Array, coef: Array, piece_sums: Array) -> None:
    """Add ``coef[i]`` to the pieces of the sites of sequence i."""
    strands = piece_sums.shape[1]
    for i in range(starts.size):
        c = coef[i]
        if c == 0.0:
            continue
        for m in range(states.shape[1]):
            if states[i, m] > 0:
                start, strand = (states[i, m] - 1) // strands, (states[i, m] - 1) % strands
                for j in range(shifts.size):
                    piece_sums[m, strand, j, pieces[starts[i] + shifts[j] + start]] += c


@kernel
def sum_sites(
    sequences: Triple,
    motifs: Motifs,
    power: float,
    given: Array,
    coef: Array,
    work: Array,
    logs: Array,
    piece_sums: Array,
) -> None:
    """``log Σ exp(power · score)`` over the states of every motif, including that without a site, and expected pieces
    times ``coef``. A ``given`` state is the only one. ``work`` has a number per state of the longest sequence."""
    (pieces, starts, stops), (tables, shifts, width) = sequences, motifs
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
                for j in range(shifts.size):
                    v += tables[m, strand, j, pieces[first + shifts[j] + h]]
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
                for j in range(shifts.size):
                    piece_sums[m, strand, j, pieces[first + shifts[j] + h]] += share

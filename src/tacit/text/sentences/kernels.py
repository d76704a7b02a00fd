"""Compiled loops that choose the best sentences of documents."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def choose_best(scores: Array, offsets: Array, counts: Array, chosen: Array, value: Array) -> None:
    """Mark the ``counts[i]`` highest scores of every document, by partial sorting; ties go to the first sentences.

    The first entry of a document is the document itself, which is never marked. ``value`` gets the sums.
    """
    for i in range(offsets.size - 1):
        first, last, k = offsets[i] + 1, offsets[i + 1], counts[i]
        total = 0.0
        for t in range(first, last):
            chosen[t] = 0
        if k > 0:
            n = last - first
            own = scores[first:last]
            limit = np.partition(own, n - k)[n - k]
            above = 0
            for t in range(first, last):
                if scores[t] > limit:
                    above += 1
            ties = k - above
            for t in range(first, last):
                if scores[t] > limit or (scores[t] == limit and ties > 0):
                    if scores[t] == limit:
                        ties -= 1
                    chosen[t] = 1
                    total += scores[t]
        value[i] = total


@kernel
def choose_within(scores: Array, lengths: Array, offsets: Array, budgets: Array, chosen: Array, value: Array) -> None:
    """Mark the sentences with the highest sum of scores within the budget of words: an exact 0/1 knapsack.

    Sentences with scores of at most 0 are not chosen. O(sentences · budget) per document.
    """
    for i in range(offsets.size - 1):
        first, last, budget = offsets[i] + 1, offsets[i + 1], budgets[i]
        n = last - first
        best = np.zeros(budget + 1)
        took = np.zeros((n, budget + 1), np.uint8)
        for t in range(n):
            chosen[first + t] = 0
            size, gain = lengths[first + t], scores[first + t]
            if gain <= 0.0 or size > budget:
                continue
            for room in range(budget, size - 1, -1):
                if best[room - size] + gain > best[room]:
                    best[room] = best[room - size] + gain
                    took[t, room] = 1
        room, total = budget, 0.0
        for t in range(n - 1, -1, -1):
            if took[t, room]:
                chosen[first + t] = 1
                total += scores[first + t]
                room -= lengths[first + t]
        value[i] = total

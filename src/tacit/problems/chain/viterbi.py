"""The best path of every chain, and sums along given ones: ``unary[token, tag]``, cut into sequences by
``starts``, and ``transition[first, second]``.

A score of −inf rules a tag or a pair of tags out. Sequences have at least one token.
"""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def viterbi(
    unary: Array,
    starts: Array,
    transition: Array,
    loss: Array,
    column: Array,
    given: Array,
    possible: Array,
    code: Array,
    value: Array,
) -> None:
    """The best tags of every sequence by score plus ``loss[column[token], tag]``. Overwrites ``unary``.

    Where ``given`` is not empty, and ≥ 0, a token has one of the tags of ``possible[given[token]]``. Only maxima go
    forward, four tags at a time so that they stay in registers, and the way back looks for the tags that attain them: K
    comparisons a token instead of K² pointers. Of tags that tie, the first is taken.
    """
    k = transition.shape[0]
    best = np.empty(k)
    into = np.empty((k, k))  # into[second, first]
    for i in range(k):
        for j in range(k):
            into[j, i] = transition[i, j]
    for s in range(starts.size - 1):
        first, last = starts[s], starts[s + 1]
        for t in range(first, last):
            row = unary[t]
            extra = loss[column[t]]
            for j in range(k):
                row[j] += extra[j]
            if given.size and given[t] >= 0:
                fits = possible[given[t]]
                for j in range(k):
                    if not fits[j]:
                        row[j] = -np.inf
            if t == first:
                continue
            before = unary[t - 1]
            for j in range(k):
                best[j] = -np.inf
            i = 0
            while i + 4 <= k:
                a, b, c, d = before[i], before[i + 1], before[i + 2], before[i + 3]
                from_a, from_b, from_c, from_d = transition[i], transition[i + 1], transition[i + 2], transition[i + 3]
                for j in range(k):
                    u = a + from_a[j]
                    v = b + from_b[j]
                    x = c + from_c[j]
                    y = d + from_d[j]
                    u = v if v > u else u
                    x = y if y > x else x
                    u = x if x > u else u
                    best[j] = u if u > best[j] else best[j]
                i += 4
            while i < k:
                a = before[i]
                from_a = transition[i]
                for j in range(k):
                    u = a + from_a[j]
                    best[j] = u if u > best[j] else best[j]
                i += 1
            for j in range(k):
                row[j] += best[j]
        row = unary[last - 1]
        tag = 0
        for j in range(1, k):
            if row[j] > row[tag]:
                tag = j
        value[s] = row[tag]
        code[last - 1] = tag
        for t in range(last - 1, first, -1):
            before = unary[t - 1]
            ways = into[tag]
            for i in range(k):
                best[i] = before[i] + ways[i]
            a = best[0]
            b, c, d = a, a, a  # four chains of comparisons run side by side
            i = 0
            while i + 4 <= k:
                u, v, x, y = best[i], best[i + 1], best[i + 2], best[i + 3]
                a = u if u > a else a
                b = v if v > b else b
                c = x if x > c else c
                d = y if y > d else d
                i += 4
            while i < k:
                a = best[i] if best[i] > a else a
                i += 1
            a = b if b > a else a
            c = d if d > c else c
            a = c if c > a else a
            tag = 0
            while best[tag] < a:
                tag += 1
            code[t - 1] = tag


@kernel
def path_scores(unary: Array, starts: Array, transition: Array, code: Array, value: Array) -> None:
    """The score of one given path a sequence, added up in the order of `viterbi`."""
    for s in range(starts.size - 1):
        total = unary[starts[s], code[starts[s]]]
        for t in range(starts[s] + 1, starts[s + 1]):
            total = unary[t, code[t]] + (total + transition[code[t - 1], code[t]])
        value[s] = total


@kernel
def add_pairs(code: Array, starts: Array, coef: Array, out: Array) -> None:
    """``out[first, second] += coef[i]`` for every pair of neighbouring tags of sequence i."""
    for s in range(starts.size - 1):
        for t in range(starts[s] + 1, starts[s + 1]):
            out[code[t - 1], code[t]] += coef[s]

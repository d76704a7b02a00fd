"""Whole-sweep kernels over chains: ``unary[token, tag]``, cut into sequences by ``starts``, and
``transition[first, second]``.

A score of −inf rules a tag or a pair of tags out. Sequences have at least one token.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel

TINY = 1e-150
"""A sum of products above this has lost nothing to underflow; one below is computed anew in log space."""


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
def best_paths(unary: Array, starts: Array, transition: Array, code: Array, value: Array) -> None:
    """The best few paths of every sequence, as many as ``value`` has columns, the best first (Viterbi with lists).

    ``code[token, rank]`` and ``value[sequence, rank]``; −1 and −inf where a sequence has fewer paths. Every tag of a
    token keeps the best ways to it; those of the next token are merged from them. The best path is that of `viterbi`,
    ties included, and scores are added up in its order.
    """
    k, m = transition.shape[0], value.shape[1]
    longest = 1
    for s in range(starts.size - 1):
        if starts[s + 1] - starts[s] > longest:
            longest = starts[s + 1] - starts[s]
    ways = np.empty((longest, k, m))  # scores of the best ways to a tag, −inf past the last
    came = np.empty((longest, k, m), np.int64)  # the tag before and the rank there, as tag · m + rank
    taken = np.empty(k, np.int64)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        for j in range(k):
            for r in range(m):
                ways[0, j, r] = -np.inf
                came[0, j, r] = -1
            ways[0, j, 0] = unary[first, j]
        for t in range(1, size):
            for j in range(k):
                for i in range(k):
                    taken[i] = 0
                for r in range(m):
                    tag, best = -1, -np.inf
                    for i in range(k):
                        if taken[i] < m:
                            v = ways[t - 1, i, taken[i]] + transition[i, j]
                            if v > best:
                                tag, best = i, v
                    if tag < 0:
                        ways[t, j, r] = -np.inf
                        came[t, j, r] = -1
                    else:
                        ways[t, j, r] = unary[first + t, j] + best
                        came[t, j, r] = tag * m + taken[tag]
                        taken[tag] += 1
        for j in range(k):
            taken[j] = 0
        for r in range(m):
            tag, best = -1, -np.inf
            for j in range(k):
                if taken[j] < m and ways[size - 1, j, taken[j]] > best:
                    tag, best = j, ways[size - 1, j, taken[j]]
            value[s, r] = best
            if tag < 0:
                for t in range(size):
                    code[first + t, r] = -1
                continue
            place = tag * m + taken[tag]
            taken[tag] += 1
            for t in range(size - 1, -1, -1):
                code[first + t, r] = place // m
                place = came[t, place // m, place % m]


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


@kernel
def forward_backward(
    unary: Array,
    starts: Array,
    transition: Array,
    log_partition: Array,
    nodes: Array,
    edges: Array,
    coef: Array,
    pair_sums: Array,
) -> None:
    """Log-partition of every sequence; tag and pair probabilities where ``nodes`` and ``edges`` are not empty.

    Where ``coef`` is not empty, the pair probabilities of sequence s, times ``coef[s]``, are added to ``pair_sums``.

    Forward and backward sums are logarithms relative to the largest at their token, so long sequences lose nothing. The
    sum over the K tags before is taken as products of exponentials, and anew in log space where those underflow, so
    it is as good at scores of ±10⁵ as at ±1. Probabilities are normalised token by token.
    """
    k = transition.shape[0]
    top = np.full(k, -np.inf)  # the largest way into each tag
    for i in range(k):
        for j in range(k):
            if transition[i, j] > top[j]:
                top[j] = transition[i, j]
    ways = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            if transition[i, j] > -np.inf:
                ways[i, j] = math.exp(transition[i, j] - top[j])
    up = np.full(k, -np.inf)  # the largest way out of each tag
    for i in range(k):
        for j in range(k):
            if transition[i, j] > up[i]:
                up[i] = transition[i, j]
    back = np.zeros((k, k))  # back[j, i]: from second to first
    for i in range(k):
        for j in range(k):
            if transition[i, j] > -np.inf:
                back[j, i] = math.exp(transition[i, j] - up[i])
    longest = 1
    for s in range(starts.size - 1):
        if starts[s + 1] - starts[s] > longest:
            longest = starts[s + 1] - starts[s]
    forward = np.empty((longest, k))
    scratch = np.empty((k, k))
    weight = np.empty(k)
    total = np.empty(k)
    behind = np.empty(k)
    ahead = np.empty(k)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        scale = 0.0
        for t in range(size):
            row = unary[first + t]
            now = forward[t]
            if t == 0:
                for j in range(k):
                    now[j] = row[j]
            else:
                before = forward[t - 1]
                for j in range(k):
                    total[j] = 0.0
                for i in range(k):
                    e = math.exp(before[i])
                    if e > 0.0:
                        way = ways[i]
                        for j in range(k):
                            total[j] += e * way[j]
                for j in range(k):
                    if total[j] > TINY:
                        now[j] = row[j] + (top[j] + math.log(total[j]))
                    else:
                        high = -np.inf
                        for i in range(k):
                            v = before[i] + transition[i, j]
                            high = v if v > high else high
                        if high == -np.inf:
                            now[j] = -np.inf
                            continue
                        rest = 0.0
                        for i in range(k):
                            rest += math.exp(before[i] + transition[i, j] - high)
                        now[j] = row[j] + (high + math.log(rest))
            high = -np.inf
            for j in range(k):
                high = now[j] if now[j] > high else high
            if high > -np.inf:
                for j in range(k):
                    now[j] -= high
            scale += high
        rest = 0.0
        for j in range(k):
            rest += math.exp(forward[size - 1, j])
        log_partition[s] = scale + math.log(rest)
        if nodes.shape[0] == 0 or log_partition[s] == -np.inf:
            continue
        for j in range(k):
            behind[j] = 0.0  # log of the sum over all ways on from tag j, up to a constant
        for t in range(size - 1, -1, -1):
            now = forward[t]
            rest = 0.0
            high = -np.inf
            for j in range(k):
                v = now[j] + behind[j]
                high = v if v > high else high
            out = nodes[first + t]
            for j in range(k):
                out[j] = math.exp(now[j] + behind[j] - high)
                rest += out[j]
            for j in range(k):
                out[j] /= rest
            if t == 0:
                continue
            row = unary[first + t]
            high = -np.inf
            for j in range(k):
                ahead[j] = row[j] + behind[j]
                high = ahead[j] if ahead[j] > high else high
            for j in range(k):
                ahead[j] -= high
                weight[j] = math.exp(ahead[j])
            before = forward[t - 1]
            if edges.shape[0] > 0 or coef.size > 0:
                pair = edges[first + t] if edges.shape[0] > 0 else scratch
                high = -np.inf
                for j in range(k):
                    v = top[j] + ahead[j]
                    high = v if v > high else high
                for j in range(k):
                    total[j] = math.exp(top[j] + ahead[j] - high)
                rest = 0.0
                for i in range(k):
                    e = math.exp(before[i])
                    for j in range(k):
                        pair[i, j] = e * ways[i, j] * total[j]
                        rest += pair[i, j]
                if rest <= TINY:
                    high = -np.inf
                    for i in range(k):
                        for j in range(k):
                            v = before[i] + transition[i, j] + ahead[j]
                            high = v if v > high else high
                    rest = 0.0
                    for i in range(k):
                        for j in range(k):
                            pair[i, j] = math.exp(before[i] + transition[i, j] + ahead[j] - high)
                            rest += pair[i, j]
                for i in range(k):
                    for j in range(k):
                        pair[i, j] /= rest
                if coef.size > 0:
                    for i in range(k):
                        for j in range(k):
                            pair_sums[i, j] += coef[s] * pair[i, j]
            for i in range(k):
                total[i] = 0.0
            for j in range(k):
                e = weight[j]
                if e > 0.0:
                    way = back[j]
                    for i in range(k):
                        total[i] += e * way[i]
            for i in range(k):
                if total[i] > TINY:
                    behind[i] = up[i] + math.log(total[i])
                else:
                    high = -np.inf
                    for j in range(k):
                        v = transition[i, j] + ahead[j]
                        high = v if v > high else high
                    behind[i] = -np.inf
                    if high > -np.inf:
                        rest = 0.0
                        for j in range(k):
                            rest += math.exp(transition[i, j] + ahead[j] - high)
                        behind[i] = high + math.log(rest)
            high = -np.inf
            for i in range(k):
                high = behind[i] if behind[i] > high else high
            for i in range(k):
                behind[i] -= high


@kernel
def scaled_forward_backward(
    weights: Array, tops: Array, starts: Array, ways: Array, top: float, log_partition: Array, coef: Array, pairs: Array
) -> None:
    """`forward_backward` with plain products, for scores whose exponentials neither overflow nor underflow.

    ``weights[t, j]`` are exponentials of the scores of tags less ``tops[t]``, ``ways[i, j]`` those of pairs less
    ``top``; all are positive. Fills the log-partitions. Where ``coef`` is not empty, the weights become probabilities
    of tags times ``coef[s]``, and those of pairs, not yet multiplied by ``ways``, are added to ``pairs``.
    """
    k = ways.shape[0]
    longest = 1
    for s in range(starts.size - 1):
        if starts[s + 1] - starts[s] > longest:
            longest = starts[s + 1] - starts[s]
    back = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            back[j, i] = ways[i, j]
    forward = np.empty((longest, k))
    scales = np.empty(longest)
    behind = np.empty(k)
    ahead = np.empty(k)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        log = (size - 1) * top
        for t in range(size):
            now = forward[t]
            row = weights[first + t]
            if t == 0:
                for j in range(k):
                    now[j] = row[j]
            else:
                before = forward[t - 1]
                for j in range(k):
                    now[j] = 0.0
                for i in range(k):
                    share = before[i]
                    way = ways[i]
                    for j in range(k):
                        now[j] += share * way[j]
                for j in range(k):
                    now[j] *= row[j]
            total = 0.0
            for j in range(k):
                total += now[j]
            scales[t] = total
            log += tops[first + t] + math.log(total)
            for j in range(k):
                now[j] /= total
        log_partition[s] = log
        if coef.size == 0:
            continue
        for j in range(k):
            behind[j] = 1.0
        for t in range(size - 1, -1, -1):
            now = forward[t]
            row = weights[first + t]
            for j in range(k):
                ahead[j] = row[j] * behind[j] / scales[t]
                row[j] = coef[s] * now[j] * behind[j]
            if t == 0:
                continue
            before = forward[t - 1]
            for i in range(k):
                share = coef[s] * before[i]
                into = pairs[i]
                for j in range(k):
                    into[j] += share * ahead[j]
            for i in range(k):
                behind[i] = 0.0
            for j in range(k):
                share = ahead[j]
                way = back[j]
                for i in range(k):
                    behind[i] += share * way[i]

"""Sums over all paths of every chain: ``unary[token, tag]``, cut into sequences by ``starts``, and
``transition[first, second]``.

A score of −inf rules a tag or a pair of tags out. Sequences have at least one token.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

TINY = 1e-150
"""A sum of products above this has lost nothing to underflow; one below is computed again in log space."""


MAX_RANGE = 600.0
"""Differences of scores, along two neighbouring tokens, up to which products of exponentials stay far from underflow:
the smallest positive number is exp(−708)."""


LEAST_SHARE = 1e-200
"""The least share of the paths that may be left when paths must end in certain states: below, plain products would have
lost some of them to underflow."""


def sum_paths(
    unary: Array, starts: Array, transition: Array, coef: Array, log_partition: Array, pair_sums: Array
) -> Array | None:
    """Log-partitions; where a coefficient is not 0, also ``coef[s]`` times the probability of every tag of a token.

    Pair probabilities times ``coef[s]`` are added to ``pair_sums``. Overwrites ``unary``. Plain products are used where
    no exponential can underflow, and tags are ruled out at most at the ends of sequences; else logarithms.
    """
    has_features = bool(coef.any())
    own = np.ascontiguousarray(coef) if has_features else np.zeros(0)
    tops = np.empty(len(unary))
    widest = _find_tops(unary, starts, tops)
    finite = transition[np.isfinite(transition)]
    if finite.size and 2 * float(np.ptp(finite)) + 2 * widest < MAX_RANGE:
        is_open = finite.size == transition.size
        nodes = np.exp(unary - tops[:, None]) if not is_open else _exponentials(unary, tops)
        highest, pairs = float(finite.max()), np.zeros_like(transition)
        shares = np.exp(transition - highest)
        least = scaled_forward_backward(nodes, tops, starts, shares, highest, log_partition, own, pairs)
        if is_open or least > LEAST_SHARE:
            pair_sums += shares * pairs
            return nodes if has_features else None
    nodes = np.zeros((len(unary) if has_features else 0, unary.shape[1]))
    nothing = np.zeros((0, *transition.shape))
    forward_backward(unary, starts, transition, log_partition, nodes, nothing, own, pair_sums)
    return nodes * np.repeat(coef, np.diff(starts))[:, None] if has_features else None


def _exponentials(scores: Array, tops: Array) -> Array:
    """exp(scores − tops), in the memory of the scores."""
    scores -= tops[:, None]
    return np.asarray(np.exp(scores, out=scores))


@kernel
def _find_tops(unary: Array, starts: Array, tops: Array) -> float:
    """Fill the highest score of every token; the widest range of the scores of a token.

    It is infinite where a tag is ruled out inside of a sequence. At the ends, only the other tags count.
    """
    widest = 0.0
    for s in range(starts.size - 1):
        for t in range(starts[s], starts[s + 1]):
            row = unary[t]
            high, low = -np.inf, np.inf
            has_gap = False
            for j in range(row.size):
                v = row[j]
                high = v if v > high else high
                if v == -np.inf:
                    has_gap = True
                elif v < low:
                    low = v
            tops[t] = high
            is_end = t == starts[s] or t == starts[s + 1] - 1
            if high == -np.inf or (has_gap and not is_end):
                return np.inf
            widest = max(widest, high - low)
    return widest


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
    sum over the K tags before is taken as products of exponentials, and again in log space where those underflow, so
    it is as good at scores of ±10⁵ as at ±1. Probabilities are normalised token by token.
    """
    k = transition.shape[0]
    top, up = np.full(k, -np.inf), np.full(k, -np.inf)  # the largest score into each tag, and out of each
    for i in range(k):
        for j in range(k):
            if transition[i, j] > top[j]:
                top[j] = transition[i, j]
            if transition[i, j] > up[i]:
                up[i] = transition[i, j]
    ways, back = np.zeros((k, k)), np.zeros((k, k))  # back[j, i]: from second to first
    for i in range(k):
        for j in range(k):
            if transition[i, j] > -np.inf:
                ways[i, j] = math.exp(transition[i, j] - top[j])
                back[j, i] = math.exp(transition[i, j] - up[i])
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
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
            behind[j] = 0.0  # log of the sum over all paths on from tag j, up to a constant
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
) -> float:
    """`forward_backward` with plain products, for scores whose exponentials neither overflow nor underflow.

    ``weights[t, j]`` are exponentials of the scores of tags less ``tops[t]``, ``ways[i, j]`` those of pairs less
    ``top``. Fills the log-partitions. Where ``coef`` is not empty, the weights become probabilities of tags times
    ``coef[s]``, and those of pairs, not yet multiplied by ``ways``, are added to ``pairs``. Returns the least share of
    the paths that a token leaves, 0 where that underflows.
    """
    k = ways.shape[0]
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    back = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            back[j, i] = ways[i, j]
    least = 1.0
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
            if total == 0.0:
                return 0.0
            least = total if total < least else least
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
    return least

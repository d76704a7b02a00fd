"""Rényi scores of taggings, whose states are summed over, for `tacit.oracle.entropy_search`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.kernels import kernel
from tacit.oracle.renyi import NEAR_ONE, orders_near_one
from tacit.problems.chain.moments import path_moments

if TYPE_CHECKING:
    from tacit.problems.chain.oracle import ChainOracle
    from tacit.problems.chain.packed import PackedChains


class Near(NamedTuple):
    """What `score_near_one` returns."""

    value: Array
    slope: Array


def score_taggings(oracle: ChainOracle, w: Array, alpha: float, rows: Rows, tags: Array) -> Array:
    """(sequences, count): R_α of these taggings, (tokens, count)."""
    states, transition = oracle.states, oracle._transition(w)

    def sums(power: float) -> tuple[Array, Array]:
        log, mean = np.empty((2, oracle._starts(rows).size - 1, tags.shape[1]))
        for out, tokens, part, cuts in oracle._blocks(rows):
            given = oracle._unary(w, part), cuts, transition, states.first, states.counts, tags[tokens]
            sum_below(*given, power, log[out], mean[out])
        return log, mean

    if abs(alpha - 1) < NEAR_ONE:
        return np.asarray(sum(share * sums(power)[1] for power, share in zip(*orders_near_one(alpha), strict=True)))
    first, second = sums(1.0)[0], sums(alpha)[0]
    values, exists = np.full(first.shape, -np.inf), first > -np.inf
    values[exists] = (second[exists] - first[exists]) / (alpha - 1)
    return values


def score_near_one(oracle: ChainOracle, w: Array, alpha: float, rows: Rows, given: Array, coef: Array) -> Near:
    """R_α of what is given of every sequence, for α near 1, and Σ coef_i ∂R_α."""
    blocks, value = oracle._zeros(), np.zeros(coef.size)
    for power, share in zip(*orders_near_one(alpha), strict=True):
        value += share * add_means(oracle, w, rows, given, share * coef, power, blocks)
    return Near(value, oracle.flat(*blocks))


def add_means(
    oracle: PackedChains,
    w: Array,
    rows: Rows,
    given: Array,
    coef: Array,
    power: float,
    blocks: tuple[Array, Array],
    gain: Array | None = None,
) -> Array:
    """E[s] under ``p ∝ exp(power · s)`` of what is given; Σ coef_i ∂E[s] is added to the blocks.

    With ``gain``, one number per token and state, the mean and its gradient are those of the sum of gains.
    """
    emission, pair_sums = blocks
    mean, transition = np.empty(coef.size), oracle._transition(w)
    pair_gain = transition if gain is None else np.zeros_like(transition)
    for out, tokens, part, cuts in oracle._blocks(rows):
        unary = oracle._unary(w, part)
        oracle._clamp(unary, given[tokens])
        nodes = np.zeros(unary.shape)
        own = unary if gain is None else gain[tokens]
        gains = own, pair_gain, float(gain is None)
        path_moments(unary, cuts, transition, power, *gains, coef[out], mean[out], nodes, pair_sums)
        if coef[out].any():
            oracle._add_rows(nodes, part, emission)
    return mean


@kernel
def sum_below(
    unary: Array,
    starts: Array,
    transition: Array,
    first_state: Array,
    counts: Array,
    tags: Array,
    power: float,
    log: Array,
    mean: Array,
) -> None:
    """``log Σ exp(power·s)`` over the paths of states below given tags, and the mean score of these paths.

    ``tags[token, rank]`` has several taggings; −inf where one is −1. The sum forward carries the mean score.
    """
    most = 1
    for tag in range(counts.size):
        most = max(most, counts[tag])
    now, before = np.empty(most), np.empty(most)
    score, was = np.empty(most), np.empty(most)
    for s in range(starts.size - 1):
        for r in range(tags.shape[1]):
            log[s, r] = mean[s, r] = -np.inf
            if tags[starts[s], r] < 0:
                continue
            last = 0
            for t in range(starts[s], starts[s + 1]):
                begin, n = first_state[tags[t, r]], counts[tags[t, r]]
                for j in range(n):
                    own = unary[t, begin + j]
                    if t == starts[s]:
                        now[j], score[j] = power * own, own
                        continue
                    origin, m = first_state[last], counts[last]
                    high = -np.inf
                    for i in range(m):
                        high = max(high, before[i] + power * transition[origin + i, begin + j])
                    if high == -np.inf:
                        now[j], score[j] = -np.inf, 0.0
                        continue
                    total, moment = 0.0, 0.0
                    for i in range(m):
                        step = transition[origin + i, begin + j]
                        if before[i] > -np.inf and step > -np.inf:
                            e = math.exp(before[i] + power * step - high)
                            total += e
                            moment += e * (was[i] + step)
                    now[j], score[j] = power * own + high + math.log(total), own + moment / total
                last = tags[t, r]
                now, before = before, now
                score, was = was, score
            high = -np.inf
            for i in range(counts[last]):
                high = max(high, before[i])
            if high == -np.inf:
                continue
            total, moment = 0.0, 0.0
            for i in range(counts[last]):
                e = math.exp(before[i] - high)
                total += e
                moment += e * was[i]
            log[s, r], mean[s, r] = high + math.log(total), moment / total

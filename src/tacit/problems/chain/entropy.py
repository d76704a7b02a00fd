"""Rényi scores of taggings, whose states are summed over, and the search for the tagging of the highest one.

The sum below one tagging is cheap, but the tagging of the highest sum is hard to find in general. The score R_α of a
tagging is a mean of the scores of its paths, so that of its best path bounds it. Taggings are therefore visited by
their best paths, until the next one cannot have a higher R_α. Sums of many equal paths may leave the search open: it
ends after `MAX_TAGGINGS`, and the bound says how much may be missing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows, positions_of, starts_of
from tacit.data.kernels import kernel
from tacit.oracle import Assignment, CapabilityError
from tacit.oracle.capabilities import Slacks
from tacit.oracle.entropies import Order, Renyi, read_order
from tacit.oracle.renyi import NEAR_ONE, orders_near_one
from tacit.problems.chain.moments import path_moments
from tacit.problems.chain.viterbi import best_paths, best_taggings

if TYPE_CHECKING:
    from tacit.problems.chain.oracle import ChainOracle
    from tacit.problems.chain.packed import PackedChains
    from tacit.problems.chain.tags import States

FEW_TAGGINGS, MAX_TAGGINGS = 4, 256
"""Taggings of a sequence that are visited at first, and at most; four times as many in every round."""

ROUNDING = 1e-12
"""Share of a bound by which rounding may lower it."""


class Found(NamedTuple):
    """The tags of the highest R_α plus loss, that sum, and an upper bound of it, by sequence."""

    tags: Array
    value: Array
    bound: Array


def read_alpha(problem: str, alpha: Order) -> float:
    """The order of Rényi's entropy; others are refused, since sequences are summed by powers of their scores."""
    entropy = read_order(alpha)
    if not isinstance(entropy, Renyi) or entropy.beta != 1:
        raise CapabilityError(
            f"{problem} has Rényi entropies only: paths are summed by powers of their scores; use entropy='renyi'"
        )
    return entropy.alpha


def tagging_slacks(oracle: ChainOracle, w: Array, coef: Array, alpha: float, rows: Rows) -> Slacks:
    """``ξ_i = max(0, max_{y ≠ y_i} [ℓ_i(y) + R_α(y)] − R_α(y_i))``, a bound of it, and a subgradient of Σ coef_i ξ_i.

    A tagging that agrees with all known tags is not a rival. Where tags are missing, R_α(y_i) runs over their
    completions.
    """
    truth = oracle._evidence(rows)
    own = _score_given(oracle, w, alpha, rows, truth)
    found = search_taggings(oracle, w, alpha, rows, is_augmented=True)
    value = np.maximum(found.value - own, 0.0)
    weights, blocks = np.where(value > 0, coef, 0.0), oracle._zeros()
    if weights.any():
        _add_slopes(oracle, w, alpha, rows, oracle.states.evidence(found.tags), weights, blocks)
        _add_slopes(oracle, w, alpha, rows, truth, -weights, blocks)
    return Slacks(value, oracle.flat(*blocks), np.maximum(found.bound - own, 0.0))


def find_tagging(oracle: ChainOracle, w: Array, alpha: float, rows: Rows) -> Assignment:
    """The tagging of the highest R_α that is found, in its best states."""
    found = search_taggings(oracle, w, alpha, rows)
    return Assignment(oracle._viterbi(w, rows, given=oracle.states.evidence(found.tags)).code, found.value)


def search_taggings(oracle: ChainOracle, w: Array, alpha: float, rows: Rows, is_augmented: bool = False) -> Found:
    """The tagging of the highest R_α of every sequence; where ``is_augmented`` plus loss, and among rivals alone."""
    starts, samples = oracle._starts(rows), np.arange(oracle.n_samples)[slice(None) if rows is None else rows]
    found = Found(np.zeros(int(starts[-1]), np.int64), *np.full((2, samples.size), -np.inf))
    is_open, count = np.arange(samples.size), FEW_TAGGINGS
    while is_open.size:
        tags, value, bound = _best_of(oracle, w, alpha, samples[is_open], count, is_augmented)
        found.tags[positions_of(starts, is_open)], found.value[is_open], found.bound[is_open] = tags, value, bound
        left = bound > value + ROUNDING * (1 + np.abs(bound))
        is_open, count = is_open[left & (count < MAX_TAGGINGS)], 4 * count
    return found


def _best_of(oracle: ChainOracle, w: Array, alpha: float, rows: Array, count: int, is_augmented: bool) -> Found:
    """The best of the ``count`` taggings of the highest best paths, and a bound for all others."""
    states, starts = oracle.states, starts_of(oracle.offsets, rows)
    best, value, bound = np.zeros(int(starts[-1]), np.int64), *np.empty((2, rows.size))
    transition, tag_of = oracle._transition(w), states.tag_of.astype(np.int64)
    table, column = oracle.loss_rows(rows) if is_augmented else (np.zeros((1, states.n)), np.zeros(best.size, np.int64))
    truth = oracle._true_labels(rows) if is_augmented else None
    for out, tokens, part, cuts in oracle._blocks(rows):
        unary = oracle._unary(w, part)
        losses = table[column[tokens]]
        tags, tops = np.empty((len(unary), count), np.int64), np.empty((cuts.size - 1, count))
        if states.are_tags:
            best_paths(unary + losses, cuts, transition, tags, tops)
        else:
            best_taggings(unary + losses, cuts, transition, tag_of, states.n_tags, tags, tops)
        wrong = np.add.reduceat(np.take_along_axis(losses[:, states.first], np.maximum(tags, 0), axis=1), cuts[:-1])
        values = tops if math.isinf(alpha) else _score_all(unary, cuts, transition, states, tags, alpha) + wrong
        values = np.where(tops > -np.inf, values, -np.inf)
        if truth is not None:
            given = truth[tokens][:, None]
            values[~np.logical_or.reduceat((given >= 0) & (given != tags), cuts[:-1])] = -np.inf
        chosen = np.argmax(values, axis=1)
        best[tokens] = np.maximum(tags[np.arange(len(tags)), np.repeat(chosen, np.diff(cuts))], 0)
        value[out] = values[np.arange(len(values)), chosen]
        bound[out] = np.maximum(value[out], tops[:, -1])
    return Found(best, value, bound)


def _score_all(unary: Array, cuts: Array, transition: Array, states: States, tags: Array, alpha: float) -> Array:
    """(sequences, count): R_α of these taggings."""

    def sums(power: float) -> tuple[Array, Array]:
        log, mean = np.empty((2, cuts.size - 1, tags.shape[1]))
        sum_below(unary, cuts, transition, states.first, states.counts, tags, power, log, mean)
        return log, mean

    if abs(alpha - 1) < NEAR_ONE:
        return np.asarray(sum(share * sums(power)[1] for power, share in zip(*orders_near_one(alpha), strict=True)))
    first, second = sums(1.0)[0], sums(alpha)[0]
    values, exists = np.full(first.shape, -np.inf), first > -np.inf
    values[exists] = (second[exists] - first[exists]) / (alpha - 1)
    return values


def _score_given(oracle: ChainOracle, w: Array, alpha: float, rows: Rows, given: Array) -> Array:
    """R_α of what is known of every sequence, over all taggings and states that agree with it."""
    if math.isinf(alpha):
        return oracle._viterbi(w, rows, given=given).value
    nothing, blocks = np.zeros(oracle._starts(rows).size - 1), oracle._zeros()
    if abs(alpha - 1) < NEAR_ONE:
        orders = zip(*orders_near_one(alpha), strict=True)
        return np.asarray(sum(share * add_means(oracle, w, rows, given, nothing, p, blocks) for p, share in orders))
    first, second = (oracle._add_expected(w, rows, given, nothing, p, None, *blocks) for p in (1.0, alpha))
    return np.asarray((second - first) / (alpha - 1))


def _add_slopes(
    oracle: ChainOracle, w: Array, alpha: float, rows: Rows, given: Array, coef: Array, blocks: tuple[Array, Array]
) -> None:
    """Add Σ coef_i ∂R_α of what is given to the blocks."""
    own = np.flatnonzero(coef)
    part = np.arange(oracle.n_samples)[slice(None) if rows is None else rows][own]
    given, coef = given[positions_of(oracle._starts(rows), own)], np.ascontiguousarray(coef[own])
    if math.isinf(alpha):
        oracle._add_features(oracle._viterbi(w, part, given=given).code.astype(np.int64), coef, part, *blocks)
    elif abs(alpha - 1) < NEAR_ONE:
        for power, share in zip(*orders_near_one(alpha), strict=True):
            add_means(oracle, w, part, given, share * coef, power, blocks)
    else:
        oracle._add_expected(w, part, given, alpha / (alpha - 1) * coef, alpha, None, *blocks)
        oracle._add_expected(w, part, given, -1 / (alpha - 1) * coef, 1.0, None, *blocks)


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

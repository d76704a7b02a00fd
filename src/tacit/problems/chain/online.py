"""Learning from one sequence after the other: compiled passes over chains, with averaged weights.

The cost of a step is that of its sequence, and does not depend on the length of w. Decay is a common factor of all
weights, and the average is kept as its difference from a multiple of them (Collins 2002; Bottou 2012 for the factor).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.problems.chain.visits import Sequences

MIN_FACTOR = 1e-6
"""The common factor is multiplied into the weights when it gets smaller than this."""


class Weights(NamedTuple):
    """Weights as a pass changes them: ``w = factor · now``, and ``Σ share·w = total·now − lacking``.

    Attributes
    ----------
    emission, lacking_emission : (features, states)
    transition, lacking_transition : (states, states)
    scalars : factor and total
    """

    emission: Array
    lacking_emission: Array
    transition: Array
    lacking_transition: Array
    scalars: Array


class Schedule(NamedTuple):
    """One number per visit: the sequence, the step size at a mistake, the decay of w before it, and the share of the
    weights after the visit in the average."""

    order: Array
    steps: Array
    decays: Array
    shares: Array


@kernel
def learn_chains(
    schedule: Schedule,
    sequences: Sequences,
    allowed: Array,
    given: Array,
    possible: Array,
    margin: float,
    weights: Weights,
    lost: Array,
) -> int:
    """Visit sequences: predict, and move w towards the best truth and away from the prediction. Returns the mistakes.

    The prediction maximises score plus ``margin`` times the loss, the truth only the score, among the states that are
    ``possible[given[token]]``. ``lost[visit]`` becomes the loss of the prediction. One long function on purpose: see
    `visit_chains`.
    """
    order, steps, decays, shares = schedule
    values, indices, indptr, offsets, loss, column, _ = sequences
    emission, lacking_emission, transition, lacking_transition, scalars = weights
    d, k = emission.shape
    is_dense = indptr.size == 0

    longest = 1
    for s in range(offsets.size - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    unary = np.empty((longest, k))
    best = np.empty((longest, k))
    pair_scores = np.empty((k, k))
    code = np.empty(longest, dtype=np.int64)
    truth = np.empty(longest, dtype=np.int64)
    open_states = np.empty((longest, k), dtype=np.int64)
    n_open = np.empty(longest, dtype=np.int64)
    came = np.empty((longest, k), dtype=np.int64)
    factor, total = scalars[0], scalars[1]
    mistakes = 0

    for visit in range(order.size):
        s = order[visit]
        start, size = offsets[s], offsets[s + 1] - offsets[s]
        if steps[visit] == 0.0:
            factor *= decays[visit]
            total += shares[visit] * factor
            lost[visit] = 0.0
            continue
        for i in range(k):
            for j in range(k):
                pair_scores[i, j] = factor * transition[i, j] if allowed[i, j] else -np.inf

        # scores, and Viterbi with the loss
        for t in range(size):
            scores = unary[t]
            for j in range(k):
                scores[j] = 0.0
            first = (start + t) * d if is_dense else indptr[start + t]
            last = first + d if is_dense else indptr[start + t + 1]
            for p in range(first, last):
                v = values[p]
                if v != 0.0:
                    part = emission[p - first] if is_dense else emission[indices[p]]
                    for j in range(k):
                        scores[j] += v * part[j]
            extra = loss[column[start + t]]
            now = best[t]
            for j in range(k):
                scores[j] *= factor
            if t == 0:
                for j in range(k):
                    now[j] = scores[j] + margin * extra[j]
                continue
            before = best[t - 1]
            for j in range(k):
                now[j] = before[0] + pair_scores[0, j]
            for i in range(1, k):
                u = before[i]
                from_i = pair_scores[i]
                for j in range(k):
                    v = u + from_i[j]
                    now[j] = v if v > now[j] else now[j]
            for j in range(k):
                now[j] += scores[j] + margin * extra[j]
        tag = 0
        for j in range(1, k):
            if best[size - 1, j] > best[size - 1, tag]:
                tag = j
        code[size - 1] = tag
        for t in range(size - 1, 0, -1):
            before = best[t - 1]
            come = 0
            for i in range(1, k):
                if before[i] + pair_scores[i, tag] > before[come] + pair_scores[come, tag]:
                    come = i
            tag = come
            code[t - 1] = tag
        cost = 0.0
        for t in range(size):
            cost += loss[column[start + t], code[t]]
        lost[visit] = cost

        # the best truth: Viterbi among the few states that are possible
        is_single = True
        for t in range(size):
            g = given[start + t]
            if 0 <= g < k:
                n_open[t] = 1
                open_states[t, 0] = g
                truth[t] = g
                continue
            is_single = False
            n = 0
            for j in range(k):
                if g < 0 or possible[g, j]:
                    open_states[t, n] = j
                    n += 1
            n_open[t] = n
        if not is_single:
            for t in range(size):
                for a in range(n_open[t]):
                    j = open_states[t, a]
                    if t == 0:
                        best[t, j] = unary[t, j]
                        continue
                    come = open_states[t - 1, 0]
                    high = best[t - 1, come] + pair_scores[come, j]
                    for b in range(1, n_open[t - 1]):
                        i = open_states[t - 1, b]
                        v = best[t - 1, i] + pair_scores[i, j]
                        if v > high:
                            high, come = v, i
                    best[t, j] = unary[t, j] + high
                    came[t, j] = come
            tag = open_states[size - 1, 0]
            for a in range(1, n_open[size - 1]):
                j = open_states[size - 1, a]
                if best[size - 1, j] > best[size - 1, tag]:
                    tag = j
            truth[size - 1] = tag
            for t in range(size - 1, 0, -1):
                tag = came[t, tag]
                truth[t - 1] = tag

        # a perceptron moves at mistakes, a margin learner wherever the margin is violated
        is_mistake = cost > 0.0
        if margin > 0.0 and not is_mistake:
            for t in range(size):
                if code[t] != truth[t]:
                    is_mistake = True
        factor *= decays[visit]
        if factor < MIN_FACTOR:
            for f in range(d):
                for j in range(k):
                    emission[f, j] *= factor
            for i in range(k):
                for j in range(k):
                    transition[i, j] *= factor
            total /= factor
            factor = 1.0
        if is_mistake:
            mistakes += 1
            amount = steps[visit] / factor
            lack = amount * total
            for t in range(size):
                up, down = truth[t], code[t]
                if up != down:
                    first = (start + t) * d if is_dense else indptr[start + t]
                    last = first + d if is_dense else indptr[start + t + 1]
                    for p in range(first, last):
                        v = values[p]
                        f = p - first if is_dense else indices[p]
                        emission[f, up] += amount * v
                        emission[f, down] -= amount * v
                        lacking_emission[f, up] += lack * v
                        lacking_emission[f, down] -= lack * v
                if t > 0 and (up != down or truth[t - 1] != code[t - 1]):
                    transition[truth[t - 1], up] += amount
                    transition[code[t - 1], down] -= amount
                    lacking_transition[truth[t - 1], up] += lack
                    lacking_transition[code[t - 1], down] -= lack
        total += shares[visit] * factor
    scalars[0], scalars[1] = factor, total
    return mistakes

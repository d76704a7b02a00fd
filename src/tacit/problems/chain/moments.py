"""Means of sums along the paths of every chain, and their gradients, for Rényi scores near order 1 and posteriors.

Names are those of `tacit.problems.chain.forward_backward`.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def path_moments(
    unary: Array,
    starts: Array,
    transition: Array,
    power: float,
    gain: Array,
    pair_gain: Array,
    own: float,
    coef: Array,
    mean: Array,
    nodes: Array,
    pairs: Array,
) -> None:
    """The mean ``m = E[g]`` of the gains of the paths of every sequence under ``p ∝ exp(power·s)``, and its gradient.

    A path gains ``gain[token, tag]`` and ``pair_gain[first, second]``, as it scores by ``unary`` and ``transition``.
    ``E[1(tag) (own + power (g − m))]`` times ``coef[s]`` is written to ``nodes``, and the same of pairs of tags is
    added to ``pairs``. That is the gradient of m by scores if ``own`` is 0, or if it is 1 and gains are the scores.
    Forward and backward sums carry the mean gain of the paths that they sum over, as in Li & Eisner (2009).
    """
    k = transition.shape[0]
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    forward, ahead = np.empty((longest, k)), np.empty((longest, k))  # log-sums of the paths into a tag, and on from it
    before, after = np.empty((longest, k)), np.empty((longest, k))  # their mean gains
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        for t in range(size):
            for j in range(k):
                row = unary[first + t, j]
                if t == 0:
                    forward[t, j], before[t, j] = power * row, gain[first + t, j] if row > -np.inf else 0.0
                    continue
                high = -np.inf
                for i in range(k):
                    high = max(high, forward[t - 1, i] + power * transition[i, j])
                if high == -np.inf or row == -np.inf:
                    forward[t, j], before[t, j] = -np.inf, 0.0
                    continue
                total, moment = 0.0, 0.0
                for i in range(k):
                    v = forward[t - 1, i] + power * transition[i, j]
                    if v > -np.inf:
                        e = math.exp(v - high)
                        total += e
                        moment += e * (before[t - 1, i] + pair_gain[i, j])
                forward[t, j] = power * row + high + math.log(total)
                before[t, j] = gain[first + t, j] + moment / total
        for t in range(size - 1, -1, -1):
            for i in range(k):
                if t == size - 1:
                    ahead[t, i], after[t, i] = 0.0, 0.0
                    continue
                high = -np.inf
                for j in range(k):
                    high = max(high, power * (transition[i, j] + unary[first + t + 1, j]) + ahead[t + 1, j])
                if high == -np.inf:
                    ahead[t, i], after[t, i] = -np.inf, 0.0
                    continue
                total, moment = 0.0, 0.0
                for j in range(k):
                    v = power * (transition[i, j] + unary[first + t + 1, j]) + ahead[t + 1, j]
                    if v > -np.inf:
                        e = math.exp(v - high)
                        total += e
                        moment += e * (pair_gain[i, j] + gain[first + t + 1, j] + after[t + 1, j])
                ahead[t, i] = high + math.log(total)
                after[t, i] = moment / total
        high = -np.inf
        for j in range(k):
            high = max(high, forward[size - 1, j])
        total, moment = 0.0, 0.0
        for j in range(k):
            if forward[size - 1, j] > -np.inf:
                e = math.exp(forward[size - 1, j] - high)
                total += e
                moment += e * before[size - 1, j]
        log = high + math.log(total)
        mean[s] = moment / total
        if coef[s] == 0.0:
            continue
        for t in range(size):
            for j in range(k):
                v = forward[t, j] + ahead[t, j] - log
                if v > -np.inf:
                    away = before[t, j] + after[t, j] - mean[s]
                    nodes[first + t, j] = coef[s] * math.exp(v) * (own + power * away)
            for i in range(k if t > 0 else 0):
                for j in range(k):
                    v = forward[t - 1, i] + power * (transition[i, j] + unary[first + t, j]) + ahead[t, j] - log
                    if v > -np.inf:
                        away = before[t - 1, i] + pair_gain[i, j] + gain[first + t, j] + after[t, j] - mean[s]
                        pairs[i, j] += coef[s] * math.exp(v) * (own + power * away)

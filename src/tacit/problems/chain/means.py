"""Means over the paths of chains: losses against completions of missing tags, and Rényi scores of taggings."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.kernels import kernel
from tacit.oracle import LossTable
from tacit.oracle.renyi import NEAR_ONE, orders_near_one
from tacit.problems.chain.moments import path_moments
from tacit.problems.chain.packed import PackedChains


class MeansOfPaths(PackedChains):
    """What dissimilarity coefficients and Rényi entropies ask of chains.

    A posterior has one number per token and state, token after token. Losses are sums over tokens, so that means over
    completions need the probabilities of single states alone. Only the gradient by the weights of the distribution
    needs sums over paths.
    """

    loss_needs_hidden = False
    measures_completed = True
    """`measured_against` counts missing tags, too."""

    def measured_against(self, code: Array | None = None, *, posterior: Array | None = None) -> Self:
        """See `tacit.oracle.capabilities.MeasuresHidden`: missing tags are those of a code, or drawn from a posterior;
        known tags stay."""
        if (code is None) == (posterior is None):
            raise ValueError("give either code= or posterior= to measure the loss against, not both")
        if code is not None:
            shares = np.eye(self.n_states)[self._read(code)]
        else:
            shares = np.array(posterior, dtype=np.float64).reshape(int(self.offsets[-1]), self.n_states)
        labels = self._true_labels(None)
        known = labels >= 0
        shares[known] = np.eye(self.n_states)[self.states.first[labels[known]]]
        return self._with(_losses=LossTable(np.ascontiguousarray((shares @ self.costs).T), None))

    def losses_of(self, code: Array) -> Array:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        return np.ascontiguousarray(self.costs.T[self._read(code)]).ravel()

    def diversity(self, posterior: Array) -> tuple[Array, Array]:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        shares = np.reshape(posterior, (-1, self.n_states))
        slope = shares @ (self.costs + self.costs.T)
        return 0.5 * np.add.reduceat((shares * slope).sum(axis=1), self.offsets[:-1]), slope.ravel()

    def posterior_slope(self, w: Array, posterior: Array, values: Array, coef: Array) -> Array:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        has_gaps = np.logical_or.reduceat(self._true_labels(None) < 0, self.offsets[:-1])
        rows, blocks = np.flatnonzero(has_gaps), self._zeros()
        if rows.size:
            tokens, gain = self._positions(rows), np.reshape(values, (-1, self.n_states))
            given = self._evidence(None)[tokens]
            self._add_means(w, rows, given, np.ascontiguousarray(coef[rows]), 1.0, blocks, gain[tokens])
        return self.flat(*blocks)

    def _score_taggings(self, w: Array, alpha: float, rows: Rows, tags: Array) -> Array:
        """(sequences, count): R_α of these taggings, (tokens, count)."""
        states, transition = self.states, self._transition(w)

        def sums(power: float) -> tuple[Array, Array]:
            log, mean = np.empty((2, self._starts(rows).size - 1, tags.shape[1]))
            for out, tokens, part, cuts in self._blocks(rows):
                given = self._unary(w, part), cuts, transition, states.first, states.counts, tags[tokens]
                sum_below(*given, power, log[out], mean[out])
            return log, mean

        if abs(alpha - 1) < NEAR_ONE:
            return np.asarray(sum(share * sums(power)[1] for power, share in zip(*orders_near_one(alpha), strict=True)))
        first, second = sums(1.0)[0], sums(alpha)[0]
        values, exists = np.full(first.shape, -np.inf), first > -np.inf
        values[exists] = (second[exists] - first[exists]) / (alpha - 1)
        return values

    def _score_near_one(self, w: Array, alpha: float, rows: Rows, given: Array, coef: Array) -> tuple[Array, Array]:
        """R_α of what is given of every sequence, for α near 1, and Σ coef_i ∂R_α."""
        blocks, value = self._zeros(), np.zeros(coef.size)
        for power, share in zip(*orders_near_one(alpha), strict=True):
            value += share * self._add_means(w, rows, given, share * coef, power, blocks)
        return value, self.flat(*blocks)

    def _add_means(
        self,
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
        mean, transition = np.empty(coef.size), self._transition(w)
        pair_gain = transition if gain is None else np.zeros_like(transition)
        for out, tokens, part, cuts in self._blocks(rows):
            unary = self._unary(w, part)
            self._clamp(unary, given[tokens])
            nodes = np.zeros(unary.shape)
            own = unary if gain is None else gain[tokens]
            gains = own, pair_gain, float(gain is None)
            path_moments(unary, cuts, transition, power, *gains, coef[out], mean[out], nodes, pair_sums)
            if coef[out].any():
                self._add_rows(nodes, part, emission)
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

"""Tags of sequences under a paired automaton: marginals, the best tags, log-likelihoods.

Estimated operators can give negative values. These become zero and the others are scaled to sum to one. If none is
positive, a token has the tag frequencies of its symbol in training.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.spectral.tagger.estimate import PairedAutomaton

TINY = 1e-12
"""The probability of a state relative to its size, below which it is noise."""

MIXING = 1e-3
"""The share of plain frequencies in log-likelihoods: unseen combinations stay possible."""


class PairModel(NamedTuple):
    """A paired automaton and the pairs that it was learned from.

    Attributes
    ----------
    automaton : one operator per pair, then one per tag for an unknown symbol
    pairs : (pairs, 3): symbol, tag, and their count
    n_symbols, n_tags : sizes of the alphabets; the code of an unknown symbol is ``n_symbols``
    """

    automaton: PairedAutomaton
    pairs: Array
    n_symbols: int
    n_tags: int

    def posteriors(
        self, codes: Array, offsets: Array, best: Array | None = None, is_filter: bool = False
    ) -> tuple[Array, int]:
        """P(y_t | x) of every token, and the number of corrected tokens; the best tags go into ``best``.

        A filter has P(y_t | x_1 … x_t), which no later symbol changes.
        """
        a, out = self.automaton, np.empty((codes.size, self.n_tags))
        best = np.empty(0, np.int64) if best is None else best
        parts = self.operator_of(), a.operators, a.initial, a.final, a.middle, self.prior()
        return out, tag_posteriors(codes, offsets, *parts, out, best, is_filter)

    def likeliest_tags(self, codes: Array, offsets: Array) -> Array:
        """The likeliest tag of every token by itself."""
        return np.asarray(self.posteriors(codes, offsets)[0].argmax(axis=1))

    def best_tags(self, codes: Array, offsets: Array) -> Array:
        """The best tags of every sequence as a whole."""
        best = np.empty(codes.size, dtype=np.int64)
        self.posteriors(codes, offsets, best)
        return best

    def measure_error(self, codes: Array, labels: Array, offsets: Array) -> float:
        """The share of tokens whose likeliest tag is wrong."""
        return float(np.mean(self.likeliest_tags(codes, offsets) != labels))

    def joint_log_likelihoods(self, codes: Array, labels: Array, offsets: Array) -> Array:
        """log P(x, y) of every sequence; −1 is an unknown symbol or tag."""
        a, out = self.automaton, np.empty(offsets.size - 1)
        known = (codes >= 0) & (labels >= 0)
        pairs = np.where(known, self.operator_of()[np.where(known, codes, 0), np.where(known, labels, 0)], -1)
        shares = np.asarray(self.pairs[:, 2] / self.pairs[:, 2].sum())
        parts = a.operators[: len(shares)], a.initial, a.final, a.middle, shares
        joint_log_likelihoods(pairs.astype(np.int64), offsets, *parts, MIXING, out)
        return out

    def conditional_log_likelihoods(self, codes: Array, labels: Array, offsets: Array) -> Array:
        """log P(y | x) of every sequence; −1 is an unknown symbol."""
        a, out = self.automaton, np.empty(offsets.size - 1)
        codes = np.where(codes < 0, self.n_symbols, codes).astype(np.int64)
        parts = self.operator_of(), a.operators, a.initial, a.final, a.middle, self.prior()
        conditional_log_likelihoods(codes, labels.astype(np.int64), offsets, *parts, MIXING, out)
        return out

    def operator_of(self) -> Array:
        """``operator_of[symbol, tag]``: the operator of a pair; the last symbol is an unknown one."""
        operator_of = np.full((self.n_symbols + 1, self.n_tags), -1, dtype=np.int64)
        operator_of[self.pairs[:, 0], self.pairs[:, 1]] = np.arange(len(self.pairs))
        operator_of[-1] = len(self.pairs) + np.arange(self.n_tags)
        return operator_of

    def prior(self) -> Array:
        """The tag frequencies of every symbol; those of all symbols for an unknown one."""
        prior = np.zeros((self.n_symbols + 1, self.n_tags))
        prior[self.pairs[:, 0], self.pairs[:, 1]] = self.pairs[:, 2]
        prior[-1] = prior.sum(axis=0)
        prior[prior.sum(axis=1) == 0] = prior[-1]  # symbols without a count
        return np.asarray(prior / prior.sum(axis=1, keepdims=True))


@kernel
def tag_posteriors(
    symbols: Array, starts: Array, operator_of: Array, operators: Array, initial: Array, final: Array, middle: Array,
    prior: Array, out: Array, best: Array, is_filter: bool,
) -> int:  # fmt: skip
    """P(y_t | x) of every token into ``out``, and the best tags into ``best`` where that is not empty.

    With ``is_filter``, what follows a token is summed over: ``final`` stands for every future.

    ``operator_of[x, y]`` is the operator of a pair, −1 without one. The best tags are those of the Markov chain with
    the same probabilities of neighbouring tags. Returns the number of corrected tokens.
    """
    n, k = initial.size, operator_of.shape[1]
    longest = max(1, np.diff(starts).max())
    forward = np.empty((longest + 1, n))
    ahead = np.empty(n)
    behind = np.empty((k, n))  # A_x^y · (what follows), of every tag
    came = np.empty((longest, k), dtype=np.int64)
    after = np.empty((k, n))
    value = np.empty(k)
    score = np.empty((longest, k))
    pair = np.zeros((longest, k, k))
    corrected = 0
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        forward[0] = initial
        for t in range(size):
            x = symbols[first + t]
            now, after_now = forward[t], forward[t + 1]
            after_now[:] = 0.0
            for y in range(k):
                c = operator_of[x, y]
                if c >= 0:
                    for i in range(n):
                        u = now[i]
                        row = operators[c, i]
                        for j in range(n):
                            after_now[j] += u * row[j]
            mass, size_of = 0.0, 0.0
            for j in range(n):
                mass += after_now[j] * final[j]
                size_of += abs(after_now[j] * final[j])
            if not mass > TINY * size_of:  # the state is noise: continue from the average one
                after_now[:] = middle
                mass = 0.0
                for j in range(n):
                    mass += middle[j] * final[j]
                mass = mass if mass > 0.0 else 1.0
            for j in range(n):
                after_now[j] /= mass
        ahead[:] = final
        for t in range(size - 1, -1, -1):
            x = symbols[first + t]
            now = forward[t]
            total, is_wrong = 0.0, False
            for y in range(k):
                c = operator_of[x, y]
                value[y] = 0.0
                behind[y] = 0.0
                if c < 0:
                    continue
                for i in range(n):
                    row = operators[c, i]
                    dot = 0.0
                    for j in range(n):
                        dot += row[j] * ahead[j]
                    behind[y, i] = dot
                    value[y] += now[i] * dot
            for y in range(k):
                if value[y] < 0.0:
                    is_wrong = True
                    value[y] = 0.0
                total += value[y]
            if not (total > 0.0 and total < np.inf):
                is_wrong = True
                total = 0.0
                for y in range(k):
                    value[y] = prior[x, y]
                    total += value[y]
            corrected += is_wrong
            for y in range(k):
                out[first + t, y] = value[y] / total
            if is_filter:
                continue
            if best.size > 0 and t > 0:
                before, x_before = forward[t - 1], symbols[first + t - 1]
                for y in range(k):
                    c = operator_of[x_before, y]
                    after[y] = 0.0
                    if c >= 0:
                        for i in range(n):
                            u = before[i]
                            row = operators[c, i]
                            for j in range(n):
                                after[y, j] += u * row[j]
                for y in range(k):
                    for z in range(k):
                        dot = 0.0
                        for j in range(n):
                            dot += after[y, j] * behind[z, j]
                        pair[t, y, z] = dot if dot > 0.0 else 0.0
            mass, size_of = 0.0, 0.0
            for i in range(n):
                ahead[i] = 0.0
                for y in range(k):
                    ahead[i] += behind[y, i]
                mass += middle[i] * ahead[i]
                size_of += abs(middle[i] * ahead[i])
            if not mass > TINY * size_of:
                ahead[:] = final
            else:
                for i in range(n):
                    ahead[i] /= mass
        if best.size == 0:
            continue
        for y in range(k):
            score[0, y] = math.log(out[first, y] + 1e-300)
        for t in range(1, size):
            for z in range(k):
                score[t, z] = -np.inf
                came[t, z] = 0
            for y in range(k):
                total = 0.0
                for z in range(k):
                    total += pair[t, y, z]
                for z in range(k):
                    # a little of the token's marginal keeps every pair possible
                    step = pair[t, y, z] / total if total > 0.0 else out[first + t, z]
                    v = score[t - 1, y] + math.log(0.999 * step + 0.001 * out[first + t, z] + 1e-300)
                    if v > score[t, z]:
                        score[t, z] = v
                        came[t, z] = y
        tag = 0
        for y in range(1, k):
            if score[size - 1, y] > score[size - 1, tag]:
                tag = y
        best[first + size - 1] = tag
        for t in range(size - 1, 0, -1):
            tag = came[t, tag]
            best[first + t - 1] = tag
    return corrected


@kernel
def joint_log_likelihoods(
    pairs: Array, starts: Array, operators: Array, initial: Array, final: Array, middle: Array, shares: Array,
    mixing: float, out: Array,
) -> int:  # fmt: skip
    """log P(x, y) of every sequence, pair by pair: negative values become zero, the others are scaled to one and mixed
    with the ``shares`` of the pairs in training. Returns the number of corrected tokens; O(tokens · pairs · n)."""
    n, size_of = initial.size, operators.shape[0]
    ends = np.zeros((size_of, n))  # A_c · final
    for c in range(size_of):
        for i in range(n):
            for j in range(n):
                ends[c, i] += operators[c, i, j] * final[j]
    now, after = np.empty(n), np.empty(n)
    corrected = 0
    for s in range(starts.size - 1):
        now[:] = initial
        log = 0.0
        for t in range(starts[s], starts[s + 1]):
            own = pairs[t]
            if own < 0:
                log = -np.inf
                break
            total, chance, is_wrong = 0.0, 0.0, False
            for c in range(size_of):
                dot = 0.0
                for j in range(n):
                    dot += now[j] * ends[c, j]
                if dot > 0.0:
                    total += dot
                    if c == own:
                        chance = dot
                elif dot < 0.0:
                    is_wrong = True
            corrected += is_wrong
            chance = chance / total if total > 0.0 else shares[own]
            log += math.log((1 - mixing) * chance + mixing * shares[own])
            after[:] = 0.0
            for i in range(n):
                for j in range(n):
                    after[j] += now[i] * operators[own, i, j]
            mass, weight = 0.0, 0.0
            for j in range(n):
                mass += after[j] * final[j]
                weight += abs(after[j] * final[j])
            if not mass > TINY * weight:
                mass = 0.0
                for j in range(n):
                    after[j] = middle[j]
                    mass += middle[j] * final[j]
                mass = mass if mass > 0.0 else 1.0
            for j in range(n):
                now[j] = after[j] / mass
        out[s] = log
    return corrected


@kernel
def conditional_log_likelihoods(
    symbols: Array, tags: Array, starts: Array, operator_of: Array, operators: Array, initial: Array, final: Array,
    middle: Array, prior: Array, mixing: float, out: Array,
) -> None:  # fmt: skip
    """log P(y | x) of every sequence, tag by tag given those before and all symbols; mixed with ``prior``."""
    n, k = initial.size, operator_of.shape[1]
    longest = max(1, np.diff(starts).max())
    ahead = np.empty((longest + 1, n))
    now, after = np.empty(n), np.empty(n)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        ahead[size] = final
        for t in range(size - 1, -1, -1):
            mass, weight = 0.0, 0.0
            for i in range(n):
                ahead[t, i] = 0.0
                for y in range(k):
                    c = operator_of[symbols[first + t], y]
                    if c >= 0:
                        for j in range(n):
                            ahead[t, i] += operators[c, i, j] * ahead[t + 1, j]
                mass += middle[i] * ahead[t, i]
                weight += abs(middle[i] * ahead[t, i])
            is_lost = not mass > TINY * weight
            for i in range(n):
                ahead[t, i] = final[i] if is_lost else ahead[t, i] / mass
        now[:] = initial
        log = 0.0
        for t in range(size):
            x, own = symbols[first + t], tags[first + t]
            total, chance = 0.0, 0.0
            for y in range(k):
                c = operator_of[x, y]
                value = 0.0
                if c >= 0:
                    for i in range(n):
                        dot = 0.0
                        for j in range(n):
                            dot += operators[c, i, j] * ahead[t + 1, j]
                        value += now[i] * dot
                value = value if value > 0.0 else 0.0
                total += value
                if y == own:
                    chance = value
            chance = chance / total if total > 0.0 else prior[x, own]
            log += math.log((1 - mixing) * chance + mixing * prior[x, own])
            c = operator_of[x, own]
            mass, weight = 0.0, 0.0
            for j in range(n):
                after[j] = 0.0
                if c >= 0:
                    for i in range(n):
                        after[j] += now[i] * operators[c, i, j]
                mass += after[j] * final[j]
                weight += abs(after[j] * final[j])
            is_lost = not mass > TINY * weight
            for j in range(n):
                now[j] = middle[j] if is_lost else after[j] / mass
        out[s] = log

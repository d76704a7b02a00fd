"""Compiled passes over forests: the best tree with its states, and sums over all trees and states.

The states of two children are independent given the state of their parent and the rule, so a pair of children costs
O(states²): a hidden tree Markov model (Matsuzaki et al. 2005 have O(states³)). Passes repeat how a child is read: inner
functions for it made them 1.4 to 1.6 times as slow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.text.parsing.forests import Forest


class Weights(NamedTuple):
    """The blocks of w that depend on states.

    Attributes
    ----------
    rule : (rules,)
    left, right : (rules, states, states) by state of the parent, then of the child; of no rules with one state
    leaf : (leaf rules, states)
    word : (pairs of leaf rule and word, states)
    root : (symbols, states)
    """

    rule: Array
    left: Array
    right: Array
    leaf: Array
    word: Array
    root: Array


class Scored(NamedTuple):
    """Scores of forests that do not depend on states: by node and by pair of children; the word pair of every leaf."""

    node: Array
    pair: Array
    word: Array


@kernel
def best_trees(
    forest: Forest,
    scored: Scored,
    weights: Weights,
    power: float,
    known: Array,
    code: Array,
    starts: Array,
    value: Array,
) -> None:
    """The best tree of every forest and the states of its nodes, in preorder; all weights are multiplied by ``power``.

    ``known`` has a state per node, or minus the number of states of which it has one; it is empty where all have all.
    ``code`` has ``2 · (symbol · states + state)``, and one more for a leaf; the part of each sentence begins at
    ``starts``.
    """
    offsets, symbol, _, _, leaf, edges, lefts, rights, rules, is_top = forest
    node_score, pair_score, word = scored
    w_rule, w_left, w_right, w_leaf, w_word, w_root = weights
    k = w_leaf.shape[1]
    longest, deepest = 1, 1
    for s in range(offsets.size - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
        deepest = max(deepest, starts[s + 1] - starts[s])
    best = np.empty((longest, k))
    choice = np.empty((longest, k), dtype=np.int64)
    stack = np.empty((deepest + 2, 2), dtype=np.int64)
    for s in range(offsets.size - 1):
        base = offsets[s]
        for a in range(offsets[s], offsets[s + 1]):
            own, chosen = best[a - base], choice[a - base]
            for x in range(k):
                own[x], chosen[x] = -np.inf, -1
            if edges[a] == edges[a + 1]:
                for x in range(k):
                    own[x] = 0.0
                    if leaf[a] >= 0:
                        own[x] += power * w_leaf[leaf[a], x]
                    if word[a] >= 0:
                        own[x] += power * w_word[word[a], x]
            for e in range(edges[a], edges[a + 1]):
                left, right, r = best[lefts[e]], best[rights[e]], rules[e]
                score = pair_score[e]
                if r >= 0:
                    score += power * w_rule[r]
                for x in range(k):
                    first, second = left[0], right[0]
                    if k > 1:
                        if r >= 0:
                            first += power * w_left[r, x, 0]
                            second += power * w_right[r, x, 0]
                        for z in range(1, k):
                            u, v = left[z], right[z]
                            if r >= 0:
                                u += power * w_left[r, x, z]
                                v += power * w_right[r, x, z]
                            first = u if u > first else first
                            second = v if v > second else second
                    total = score + first + second
                    if total > own[x] or chosen[x] < 0:
                        own[x], chosen[x] = total, e
            for x in range(k):
                own[x] += node_score[a]
                if known.size > 0 and (known[a] != x if known[a] >= 0 else x >= -known[a]):
                    own[x] = -np.inf
        top, state, value[s] = -1, 0, -np.inf
        for a in range(offsets[s], offsets[s + 1]):
            if is_top[a]:
                for x in range(k):
                    total = best[a - base, x] + power * w_root[symbol[a], x]
                    if top < 0 or total > value[s]:
                        top, state, value[s] = a - base, x, total
        depth, at = 1, starts[s]
        stack[0, 0], stack[0, 1] = top, state
        while depth > 0:
            depth -= 1
            a, x = stack[depth, 0], stack[depth, 1]
            n = base + a
            is_leaf = edges[n] == edges[n + 1]
            code[at] = 2 * (symbol[n] * k + x) + (1 if is_leaf else 0)
            at += 1
            if is_leaf:
                continue
            e = choice[a, x]
            r = rules[e]
            first, second, y, z = -np.inf, -np.inf, -1, -1
            for v in range(k):
                one, two = best[lefts[e], v], best[rights[e], v]
                if k > 1 and r >= 0:
                    one += power * w_left[r, x, v]
                    two += power * w_right[r, x, v]
                if y < 0 or one > first:
                    first, y = one, v
                if z < 0 or two > second:
                    second, z = two, v
            stack[depth, 0], stack[depth, 1] = rights[e], z
            stack[depth + 1, 0], stack[depth + 1, 1] = lefts[e], y
            depth += 2


@kernel
def sum_trees(
    forest: Forest,
    scored: Scored,
    weights: Weights,
    power: float,
    known: Array,
    coef: Array,
    has_features: bool,
    logs: Array,
    nodes: Array,
    pairs: Array,
    sums: Weights,
) -> None:
    """log Σ exp over the trees and states of every forest. With features, the probabilities of nodes and of pairs of
    children, times the coefficient of the sentence, are added to ``nodes`` and ``pairs``, and expected counts of the
    blocks with states to ``sums``."""
    offsets, symbol, _, _, leaf, edges, lefts, rights, rules, is_top = forest
    node_score, pair_score, word = scored
    w_rule, w_left, w_right, w_leaf, w_word, w_root = weights
    s_rule, s_left, s_right, s_leaf, s_word, s_root = sums
    k = w_leaf.shape[1]
    longest = 1
    for s in range(offsets.size - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    inside, mass = np.empty((longest, k)), np.empty((longest, k))
    ones, twos = np.empty(k), np.empty(k)
    for s in range(offsets.size - 1):
        base = offsets[s]
        for a in range(offsets[s], offsets[s + 1]):
            own = inside[a - base]
            if edges[a] == edges[a + 1]:
                for x in range(k):
                    own[x] = 0.0
                    if leaf[a] >= 0:
                        own[x] += power * w_leaf[leaf[a], x]
                    if word[a] >= 0:
                        own[x] += power * w_word[word[a], x]
            else:
                for x in range(k):
                    # the sum of exponentials above the highest so far, which moves
                    highest, total = -np.inf, 0.0
                    for e in range(edges[a], edges[a + 1]):
                        r = rules[e]
                        score = pair_score[e]
                        if r >= 0:
                            score += power * w_rule[r]
                        left, right = inside[lefts[e]], inside[rights[e]]
                        if k == 1:
                            score += left[0] + right[0]
                        else:
                            top, other = -np.inf, -np.inf
                            for v in range(k):
                                one, two = left[v], right[v]
                                if r >= 0:
                                    one += power * w_left[r, x, v]
                                    two += power * w_right[r, x, v]
                                ones[v], twos[v] = one, two
                                top = one if one > top else top
                                other = two if two > other else other
                            if top == -np.inf or other == -np.inf:
                                continue
                            one, two = 0.0, 0.0
                            for v in range(k):
                                one += np.exp(ones[v] - top)
                                two += np.exp(twos[v] - other)
                            score += top + other + np.log(one * two)
                        if score == -np.inf:
                            continue
                        if score <= highest:
                            total += np.exp(score - highest)
                        else:
                            total = total * np.exp(highest - score) + 1.0
                            highest = score
                    own[x] = highest + np.log(total) if total > 0.0 else -np.inf
            for x in range(k):
                own[x] += node_score[a]
                if known.size > 0 and (known[a] != x if known[a] >= 0 else x >= -known[a]):
                    own[x] = -np.inf
        highest, total = -np.inf, 0.0
        for a in range(offsets[s], offsets[s + 1]):
            if is_top[a]:
                for x in range(k):
                    score = inside[a - base, x] + power * w_root[symbol[a], x]
                    highest = score if score > highest else highest
        for a in range(offsets[s], offsets[s + 1]):
            if is_top[a] and highest > -np.inf:
                for x in range(k):
                    total += np.exp(inside[a - base, x] + power * w_root[symbol[a], x] - highest)
        logs[s] = highest + np.log(total) if total > 0.0 else -np.inf
        if not has_features or coef[s] == 0.0 or logs[s] == -np.inf:
            continue
        c = coef[s]
        for a in range(offsets[s], offsets[s + 1]):
            for x in range(k):
                mass[a - base, x] = 0.0
                if is_top[a]:
                    p = np.exp(inside[a - base, x] + power * w_root[symbol[a], x] - logs[s])
                    mass[a - base, x] = p
                    s_root[symbol[a], x] += c * p
        for a in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            own = mass[a - base]
            whole = 0.0
            for x in range(k):
                whole += own[x]
            if whole == 0.0:
                continue
            nodes[a] += c * whole
            if edges[a] == edges[a + 1]:
                for x in range(k):
                    if leaf[a] >= 0:
                        s_leaf[leaf[a], x] += c * own[x]
                    if word[a] >= 0:
                        s_word[word[a], x] += c * own[x]
                continue
            for e in range(edges[a], edges[a + 1]):
                r = rules[e]
                score = pair_score[e] + node_score[a]
                if r >= 0:
                    score += power * w_rule[r]
                left, right = inside[lefts[e]], inside[rights[e]]
                share = 0.0
                for x in range(k):
                    if own[x] == 0.0:
                        continue
                    if k == 1:
                        p = own[0] * np.exp(score + left[0] + right[0] - inside[a - base, 0])
                        mass[lefts[e], 0] += p
                        mass[rights[e], 0] += p
                        share += p
                        continue
                    top, other = -np.inf, -np.inf
                    for v in range(k):
                        one, two = left[v], right[v]
                        if r >= 0:
                            one += power * w_left[r, x, v]
                            two += power * w_right[r, x, v]
                        ones[v], twos[v] = one, two
                        top = one if one > top else top
                        other = two if two > other else other
                    if top == -np.inf or other == -np.inf:
                        continue
                    one, two = 0.0, 0.0
                    for v in range(k):
                        ones[v], twos[v] = np.exp(ones[v] - top), np.exp(twos[v] - other)
                        one += ones[v]
                        two += twos[v]
                    p = own[x] * np.exp(score + top + other + np.log(one * two) - inside[a - base, x])
                    if p == 0.0:
                        continue
                    share += p
                    for v in range(k):
                        first, second = p * ones[v] / one, p * twos[v] / two
                        mass[lefts[e], v] += first
                        mass[rights[e], v] += second
                        if r >= 0:
                            s_left[r, x, v] += c * first
                            s_right[r, x, v] += c * second
                pairs[e] += c * share
                if r >= 0:
                    s_rule[r] += c * share

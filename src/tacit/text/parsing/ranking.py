"""The best few trees of forests, the states of each chosen to be best."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.text.parsing.forests import Forest
from tacit.text.parsing.inference import Scored, Weights

N_NAMES = (1 << 42) - 11
"""A prime, below which names of trees are: two of one sentence hardly ever share one."""

FREE = -1
"""The name of an empty place in a list."""


@kernel
def best_few_trees(
    forest: Forest, scored: Scored, weights: Weights, known: Array, code: Array, starts: Array, value: Array
) -> None:
    """The best different trees of every forest, the best first.

    Every node keeps its best trees for each of its states. A tree is known by a name, a hash of its nodes: of its
    assignments of states only the best is kept. So what a parent needs is among the best of its children.

    Parameters
    ----------
    forest, scored, weights, known : as in `best_trees`
    code : (nodes, k) filled as in `best_trees`, −1 where there are fewer trees
    starts : where the code of each sentence begins
    value : (sentences, k) scores, −inf where there are fewer trees
    """

    def insert_tree(values: Array, names: Array, links: Array, value: float, name: int, link: Array) -> None:
        # into a list sorted by value, the highest first; of two trees with one name the higher stays
        k = values.size
        at = k - 1
        for i in range(k):
            if names[i] == name:
                at = i
                break
        if value <= values[at]:
            return
        while at > 0 and value > values[at - 1]:
            values[at], names[at] = values[at - 1], names[at - 1]
            links[at] = links[at - 1]
            at -= 1
        values[at], names[at] = value, name
        links[at] = link

    offsets, symbol, _, _, leaf, edges, lefts, rights, rules, is_top = forest
    node_score, pair_score, word = scored
    w_rule, w_left, w_right, w_leaf, w_word, w_root = weights
    s, k = w_leaf.shape[1], code.shape[1]
    longest, deepest = 1, 1
    for i in range(offsets.size - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
        deepest = max(deepest, starts[i + 1] - starts[i])
    values, names = np.empty((longest, s, k)), np.empty((longest, s, k), dtype=np.int64)
    links = np.empty((longest, s, k, 5), dtype=np.int64)  # pair of children, state and place of the left and the right
    one_values, one_names, one_links = np.empty(k), np.empty(k, dtype=np.int64), np.empty((k, 5), dtype=np.int64)
    two_values, two_names, two_links = np.empty(k), np.empty(k, dtype=np.int64), np.empty((k, 5), dtype=np.int64)
    top_values, top_names, top_links = np.empty(k), np.empty(k, dtype=np.int64), np.empty((k, 5), dtype=np.int64)
    link = np.zeros(5, dtype=np.int64)
    stack = np.empty((deepest + 2, 3), dtype=np.int64)
    for i in range(offsets.size - 1):
        base = offsets[i]
        values[:], names[:] = -np.inf, FREE
        for n in range(offsets[i], offsets[i + 1]):
            a = n - base
            if edges[n] == edges[n + 1]:
                for x in range(s if known.size == 0 else -known[n]):
                    total = node_score[n]
                    if leaf[n] >= 0:
                        total += w_leaf[leaf[n], x]
                    if word[n] >= 0:
                        total += w_word[word[n], x]
                    values[a, x, 0], names[a, x, 0] = total, a
                continue
            for e in range(edges[n], edges[n + 1]):
                r = rules[e]
                score = pair_score[e] + node_score[n]
                if r >= 0:
                    score += w_rule[r]
                for x in range(s if known.size == 0 else -known[n]):
                    one_values[:], two_values[:] = -np.inf, -np.inf
                    one_names[:], two_names[:] = FREE, FREE
                    for z in range(s):
                        first, second = 0.0, 0.0
                        if s > 1 and r >= 0:
                            first, second = w_left[r, x, z], w_right[r, x, z]
                        link[0] = z
                        for t in range(k):
                            link[1] = t
                            if names[lefts[e], z, t] >= 0:
                                v = values[lefts[e], z, t] + first
                                insert_tree(one_values, one_names, one_links, v, names[lefts[e], z, t], link)
                            if names[rights[e], z, t] >= 0:
                                v = values[rights[e], z, t] + second
                                insert_tree(two_values, two_names, two_links, v, names[rights[e], z, t], link)
                    for t in range(k):
                        for u in range(k // (t + 1)):
                            if one_names[t] < 0 or two_names[u] < 0:
                                break
                            name = (one_names[t] * 1000003 + two_names[u] * 7919 + e * 104729 + n) % N_NAMES
                            name = (name ^ (name >> 13)) * 131071 % N_NAMES
                            link[0] = e - edges[base]
                            link[1], link[2] = one_links[t, 0], one_links[t, 1]
                            link[3], link[4] = two_links[u, 0], two_links[u, 1]
                            v = score + one_values[t] + two_values[u]
                            insert_tree(values[a, x], names[a, x], links[a, x], v, name, link)
        top_values[:], top_names[:] = -np.inf, FREE
        for n in range(offsets[i], offsets[i + 1]):
            if is_top[n]:
                for x in range(s):
                    for t in range(k):
                        if names[n - base, x, t] >= 0:
                            link[0], link[1], link[2] = n - base, x, t
                            v = values[n - base, x, t] + w_root[symbol[n], x]
                            insert_tree(top_values, top_names, top_links, v, names[n - base, x, t], link)
        for t in range(k):
            value[i, t] = top_values[t]
            at = starts[i]
            if top_names[t] < 0:
                code[at : starts[i + 1], t] = -1
                continue
            depth = 1
            stack[0, 0], stack[0, 1], stack[0, 2] = top_links[t, 0], top_links[t, 1], top_links[t, 2]
            while depth > 0:
                depth -= 1
                a, x, u = stack[depth, 0], stack[depth, 1], stack[depth, 2]
                is_leaf = edges[base + a] == edges[base + a + 1]
                code[at, t] = 2 * (symbol[base + a] * s + x) + (1 if is_leaf else 0)
                at += 1
                if not is_leaf:
                    e = edges[base] + links[a, x, u, 0]
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = rights[e], links[a, x, u, 3], links[a, x, u, 4]
                    depth += 1
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = lefts[e], links[a, x, u, 1], links[a, x, u, 2]
                    depth += 1

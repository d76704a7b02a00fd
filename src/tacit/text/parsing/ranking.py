"""Trees by rank and by sums over their states: the best few, those of the least expected loss and of least entropy."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.kernels import kernel
from tacit.oracle import Assignment
from tacit.oracle.entropy_search import SearchesEntropy
from tacit.text.parsing.forest_oracle import ForestOracle
from tacit.text.parsing.forests import Forest
from tacit.text.parsing.inference import Scored, Weights, best_trees
from tacit.text.parsing.packed import expect_right, label_table

MAX_NUMBERS = 1 << 27
"""Numbers that the lists of the best few trees may have."""

N_NAMES = (1 << 42) - 11
"""A prime, below which names of trees are: two of one sentence hardly ever share one."""

FREE = -1
"""The name of an empty place in a list."""

GUESS, MAX_ROUNDS, TINY = 0.8, 50, 1e-300
"""The F1 that the first tree is looked for with, rounds until it stays, and the smallest divisor."""


class RankedTrees(SearchesEntropy, ForestOracle):
    """The best few trees, and trees by sums over states. Parameters are those of `ForestOracle`.

    A label, which has no states, is written as a code of its best states.
    """

    most_visited = 64

    def best_outputs(self, w: Array, k: int, rows: Rows = None) -> Assignment:
        """The best k different trees of every row, each in its best states, the best first: codes (nodes of the rows,
        k) and scores (rows, k); −1 and −inf where a row has fewer. O(pairs · (states² k² + k²)) time."""
        most = self._most_ranked(rows)
        if k > most:
            raise ValueError(f"the best k={k} trees do not fit into memory; lower k to {most}, or give fewer sentences")
        return self._rank_labels(w, k, rows, is_augmented=False)

    def _most_ranked(self, rows: Rows) -> int:
        largest = int(np.diff(self._forest.forest.offsets).max(initial=1)) * self.n_states
        return max(1, MAX_NUMBERS // max(7 * largest, int(self._starts(rows)[-1])))

    def _rank_labels(self, w: Array, k: int, rows: Rows, is_augmented: bool) -> Assignment:
        starts, packed = self._starts(rows), self._forest
        k = min(k, self._most_ranked(rows))
        code, value = np.empty((int(starts[-1]), k), dtype=np.int64), np.empty((starts.size - 1, k))
        weights = self._weights(np.ascontiguousarray(w, dtype=np.float64))
        for out, part in self._parts(packed, rows):
            own, cuts = packed.take(part), starts[out.start : out.stop + 1]
            scored = self._score_parts(w, own)
            if is_augmented:
                scored.node[:] += self._truth_losses(own.forest, part)
            limits = self._state_limits(own.forest)
            best_few_trees(own.forest, scored, weights, limits, code[cuts[0] : cuts[-1]], cuts - cuts[0], value[out])
            if is_augmented:
                value[out] += self._true_spans().sizes[self._numbers(part)][:, None]
        return Assignment(code, value)

    def likeliest_parts(self, w: Array, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.SumsParts`: the trees of the highest F1 of spans, each in its best states.

        It is the F1 of expected numbers over all trees and states: ``2 E[right] / (E[true] + predicted)``. For a given
        F1 the best tree maximises ``Σ (2p − F1)`` over its spans, and the F1 of that tree is the next one, until it
        stays (Dinkelbach 1967). Goodman (1996) maximises ``Σ p``.
        """
        starts, n_symbols = self._starts(rows), self.grammar.n_symbols
        code, value = np.empty(int(starts[-1]), dtype=np.int64), np.empty(starts.size - 1)
        whole, counts, none = np.empty_like(value), np.zeros(self.n_params), np.empty(0, dtype=np.int64)
        shapes = (self.grammar.n_rows,), (0, 1, 1), (0, 1, 1), (len(self.grammar.leaves), 1)
        table = label_table(self.grammar)[1:]
        n_labels = table[1].sum(axis=1).astype(np.float64)
        zeros = Weights(*map(np.zeros, (*shapes, (self.vocabulary.pairs.size, 1), (n_symbols, 1))))
        for out, part in self._parts(self._forest, rows):
            own, cuts = self._forest.take(part), starts[out.start : out.stop + 1] - starts[out.start]
            forest, into = own.forest, code[starts[out.start] : starts[out.stop]]
            ones, limits = np.ones(cuts.size - 1), self._state_limits(forest)
            whole[out], posterior, pairs = self._sum_trees(w, own, ones, 1.0, counts, known=limits)
            right = expect_right(forest, posterior, *table)
            n_true = np.add.reduceat(n_labels[forest.symbol] * posterior, forest.offsets[:-1])
            f1 = np.full(cuts.size - 1, GUESS)
            for _ in range(MAX_ROUNDS):
                gains = 2.0 * right - np.repeat(f1, np.diff(forest.offsets)) * n_labels[forest.symbol]
                best_trees(forest, Scored(gains, 0.0 * pairs, own.word), zeros, 1.0, none, into, cuts, value[out])
                predicted = np.add.reduceat(n_labels[into >> 1], cuts[:-1])
                before, f1 = f1, (value[out] + f1 * predicted) / np.maximum(n_true + predicted, TINY)
                if np.allclose(f1, before, rtol=1e-12, atol=0.0):
                    break
        code = 2 * (code >> 1) * self.n_states + code % 2
        logs = self._sum_hidden(w, code, 1.0, np.zeros(value.size), rows)[0]
        return Assignment(self._best_hidden(w, code, rows).code, logs - whole)

    def _sum_hidden(self, w: Array, labels: Array, power: float, coef: Array, rows: Rows) -> tuple[Array, Array]:
        packed, out = self._unfold(labels, rows)[0], np.zeros(self.n_params)
        return self._add_expected(w, packed, coef, power, out, known=self._state_limits(packed.forest)), out

    def _best_hidden(self, w: Array, labels: Array, rows: Rows) -> Assignment:
        packed, starts = self._unfold(labels, rows)[0], self._starts(rows)
        code, value = np.empty(int(starts[-1]), dtype=np.int64), np.empty(starts.size - 1)
        scored, limits = self._score_parts(w, packed), self._state_limits(packed.forest)
        best_trees(packed.forest, scored, self._weights(w), 1.0, limits, code, starts, value)
        return Assignment(code.astype(self._code_type), value)

    def _label_loss(self, labels: Array, rows: Rows) -> Array:
        return self.loss(labels, rows)


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

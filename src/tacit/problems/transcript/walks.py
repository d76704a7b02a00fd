"""Best paths through automata, and sums over all of them: one frame per step."""

from __future__ import annotations

import math

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.problems.transcript.automata import Automata

TINY = 1e-250
"""A sum of products below this has lost terms to underflow, and is taken again in log space."""

TINY_SHARE = 1e-30
"""Probabilities below this are not followed back."""


@kernel
def best_walks(
    unary: Array,
    starts: Array,
    automata: Automata,
    which: Array,
    steps: Array,
    known: Array,
    factor: Array,
    code: Array,
    value: Array,
) -> None:
    """The best path of every sequence through its automaton, by score plus ``factor`` times the final score.

    ``unary[frame, state]`` and ``steps`` are scores. Where ``known`` is not empty, and ≥ 0, a frame has this state.
    Only maxima are kept, and the path back looks for the edges that attain them; of edges that tie, the first is taken.
    −inf where a sequence has no path.
    """
    room, longest = 1, 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
        room = max(room, automata.starts[which[s] + 1] - automata.starts[which[s]])
    table = np.empty((longest, room))
    for s in range(starts.size - 1):
        begin, size = starts[s], starts[s + 1] - starts[s]
        origin = automata.starts[which[s]]
        n = automata.starts[which[s] + 1] - origin
        for t in range(size):
            row, now, before = unary[begin + t], table[t], table[t - 1]
            must = known[begin + t] if known.size else -1
            for j in range(n):
                node = origin + j
                state = automata.state[node]
                now[j] = -np.inf
                if t < automata.low[node] or t >= automata.high[node] or (must >= 0 and must != state):
                    continue
                if t == 0:
                    if automata.first[node]:
                        now[j] = row[state]
                    continue
                best = -np.inf
                for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                    v = before[automata.source[e]] + steps[automata.score[e]]
                    best = v if v > best else best
                now[j] = row[state] + best
        best, at = -np.inf, -1
        for j in range(n):
            end = automata.final[origin + j]
            if end > -np.inf:
                v = table[size - 1, j] + factor[s] * end
                if v > best:
                    best, at = v, j
        value[s] = best
        if at < 0:
            continue
        for t in range(size - 1, -1, -1):
            node = origin + at
            code[begin + t] = automata.state[node]
            if t == 0:
                break
            best = -np.inf
            for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                v = table[t - 1, automata.source[e]] + steps[automata.score[e]]
                if v > best:
                    best, at = v, automata.source[e]


@kernel
def sum_walks(
    unary: Array,
    starts: Array,
    automata: Automata,
    which: Array,
    steps: Array,
    known: Array,
    factor: Array,
    coef: Array,
    log: Array,
    nodes: Array,
    step_sums: Array,
) -> None:
    """``log Σ exp s`` over all paths of every sequence; where ``nodes`` is not empty, expectations.

    ``coef[s]`` times the probability of every state at every frame is added to ``nodes``, that of every step to
    ``step_sums``. Sums go forward as logarithms. The sum over the edges into a node is taken as products of
    exponentials, and again in log space where those underflow. Probabilities come back along the edges: that of a node
    is shared among the edges into it by what each contributed.
    """
    room, longest = 1, 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
        room = max(room, automata.starts[which[s] + 1] - automata.starts[which[s]])
    top = -np.inf
    for e in range(steps.size):
        top = steps[e] if steps[e] > top else top
    ways = np.empty(steps.size)
    for e in range(steps.size):
        ways[e] = math.exp(steps[e] - top)
    table, tops = np.empty((longest, room)), np.empty(longest)
    weights = np.empty((longest, room))  # exponentials of the table, relative to the highest of each frame
    now_share, before_share = np.zeros(room), np.zeros(room)
    for s in range(starts.size - 1):
        begin, size = starts[s], starts[s + 1] - starts[s]
        origin = automata.starts[which[s]]
        n = automata.starts[which[s] + 1] - origin
        for t in range(size):
            row, now, before = unary[begin + t], table[t], table[t - 1]
            must = known[begin + t] if known.size else -1
            weight = weights[t - 1]
            if t > 0:
                for j in range(n):
                    weight[j] = math.exp(before[j] - tops[t - 1]) if before[j] > -np.inf else 0.0
            highest = -np.inf
            for j in range(n):
                node = origin + j
                state = automata.state[node]
                now[j] = -np.inf
                if t < automata.low[node] or t >= automata.high[node] or (must >= 0 and must != state):
                    continue
                if t == 0:
                    if automata.first[node]:
                        now[j] = row[state]
                else:
                    total = 0.0
                    for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                        total += weight[automata.source[e]] * ways[automata.score[e]]
                    if total > TINY:
                        now[j] = row[state] + (tops[t - 1] + top + math.log(total))
                    else:
                        high = -np.inf
                        for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                            high = max(high, before[automata.source[e]] + steps[automata.score[e]])
                        if high == -np.inf:
                            continue
                        total = 0.0
                        for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                            total += math.exp(before[automata.source[e]] + steps[automata.score[e]] - high)
                        now[j] = row[state] + (high + math.log(total))
                highest = now[j] if now[j] > highest else highest
            tops[t] = highest
            if highest == -np.inf:
                break
        high = -np.inf
        if tops[size - 1] > -np.inf and highest > -np.inf:
            for j in range(n):
                end = automata.final[origin + j]
                if end > -np.inf:
                    high = max(high, table[size - 1, j] + factor[s] * end)
        if high == -np.inf:
            log[s] = -np.inf
            continue
        total = 0.0
        for j in range(n):
            now_share[j] = 0.0
            end = automata.final[origin + j]
            if end > -np.inf:
                now_share[j] = math.exp(table[size - 1, j] + factor[s] * end - high)
                total += now_share[j]
        log[s] = high + math.log(total)
        if nodes.shape[0] == 0 or coef[s] == 0.0:
            continue
        for j in range(n):
            now_share[j] /= total
        for t in range(size - 1, -1, -1):
            out, before, weight = nodes[begin + t], table[t - 1], weights[t - 1]
            for j in range(n):
                before_share[j] = 0.0
            for j in range(n):
                share = now_share[j]
                if share < TINY_SHARE:
                    continue
                node = origin + j
                out[automata.state[node]] += coef[s] * share
                if t == 0:
                    continue
                first, last = automata.edge_starts[node], automata.edge_starts[node + 1]
                total = 0.0
                for e in range(first, last):
                    total += weight[automata.source[e]] * ways[automata.score[e]]
                if total > TINY:
                    for e in range(first, last):
                        part = share * (weight[automata.source[e]] * ways[automata.score[e]] / total)
                        before_share[automata.source[e]] += part
                        step_sums[automata.score[e]] += coef[s] * part
                    continue
                high = -np.inf
                for e in range(first, last):
                    high = max(high, before[automata.source[e]] + steps[automata.score[e]])
                total = 0.0
                for e in range(first, last):
                    total += math.exp(before[automata.source[e]] + steps[automata.score[e]] - high)
                for e in range(first, last):
                    part = share * math.exp(before[automata.source[e]] + steps[automata.score[e]] - high) / total
                    before_share[automata.source[e]] += part
                    step_sums[automata.score[e]] += coef[s] * part
            now_share, before_share = before_share, now_share

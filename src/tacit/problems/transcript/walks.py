"""Best paths through automata, and sums over all of them: one frame per step."""

from __future__ import annotations

import math

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.problems.transcript.automata import Automata

NEGLIGIBLE = 45.0
"""exp(−45) = 3·10⁻²⁰: terms of a sum that are so much below the largest are left out."""


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

    ``unary[frame, state]`` and ``steps`` are scores. Where ``known`` is not empty, and ≥ 0, a frame has this state. Only
    maxima are kept, and the path back looks for the edges that attain them; of edges that tie, the first is taken.
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
    ``step_sums``. Sums go forward as logarithms. Probabilities come back along the edges: that of a node is shared among
    the edges into it by what each contributed, so nothing underflows.
    """
    room, longest = 1, 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
        room = max(room, automata.starts[which[s] + 1] - automata.starts[which[s]])
    table = np.empty((longest, room))
    now_share, before_share = np.zeros(room), np.zeros(room)
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
                high = -np.inf
                for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                    v = before[automata.source[e]] + steps[automata.score[e]]
                    high = v if v > high else high
                if high == -np.inf:
                    continue
                total = 0.0
                for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                    v = before[automata.source[e]] + steps[automata.score[e]] - high
                    if v > -NEGLIGIBLE:
                        total += math.exp(v)
                now[j] = row[state] + (high + math.log(total))
        high = -np.inf
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
            for j in range(n):
                before_share[j] = 0.0
            out, before = nodes[begin + t], table[t - 1]
            for j in range(n):
                share = now_share[j]
                if share < TINY_SHARE:
                    continue
                node = origin + j
                out[automata.state[node]] += coef[s] * share
                if t == 0:
                    continue
                into = table[t, j] - unary[begin + t, automata.state[node]]
                for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                    v = before[automata.source[e]] + steps[automata.score[e]] - into
                    if v > -NEGLIGIBLE:
                        part = share * math.exp(v)
                        before_share[automata.source[e]] += part
                        step_sums[automata.score[e]] += coef[s] * part
            now_share, before_share = before_share, now_share

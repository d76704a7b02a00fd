"""Best paths through automata, the best few transcripts, and sums over all paths: one frame per step."""

from __future__ import annotations

import math

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.problems.transcript.automata import Automata

FREE = -1
"""The name of an empty place in a list of paths."""

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
def best_few_walks(
    unary: Array,
    starts: Array,
    automata: Automata,
    which: Array,
    steps: Array,
    factor: Array,
    n_per_label: int,
    silence: int,
    n_inside: int,
    code: Array,
    value: Array,
) -> None:
    """As `best_walks`, for the best paths of as many different transcripts as ``value`` has columns, the best first.

    Every node keeps the best paths to it with different labels so far, known by a name that is a hash of them: two
    transcripts of one recording hardly ever share one. What goes on from a node does not depend on the labels before,
    so the best transcripts are among those that are kept (Chow & Schwartz 1989). ``silence`` is the number of the state
    of silence, and steps from the number ``n_inside`` lead from one segment to the next. −1 and −inf where a recording
    has fewer transcripts.
    """

    def insert_path(scores: Array, names: Array, links: Array, score: float, name: int, link: int) -> None:
        # into a list sorted by score, the highest first; of two paths with one name the higher stays
        at = scores.size - 1
        for i in range(scores.size):
            if names[i] == name:
                at = i
                break
        if score <= scores[at]:
            return
        while at > 0 and score > scores[at - 1]:
            scores[at], names[at], links[at] = scores[at - 1], names[at - 1], links[at - 1]
            at -= 1
        scores[at], names[at], links[at] = score, name, link

    def write_label(name: int, state: int) -> int:
        # the name of one label more
        if state == silence:
            return name
        mixed = (name ^ (name >> 29)) * 6364136223846793005 + (state // n_per_label + 1) * 1442695040888963407
        return (mixed ^ (mixed >> 31)) & 0x7FFFFFFFFFFFFFFF

    k, room, longest = value.shape[1], 1, 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
        room = max(room, automata.starts[which[s] + 1] - automata.starts[which[s]])
    now, before = np.empty((room, k)), np.empty((room, k))
    names, old = np.empty((room, k), dtype=np.int64), np.empty((room, k), dtype=np.int64)
    links = np.empty((longest, room, k), dtype=np.int32)  # the node before, counted in its automaton, and its place
    top, top_names, top_links = np.empty(k), np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int32)
    for s in range(starts.size - 1):
        begin, size = starts[s], starts[s + 1] - starts[s]
        origin = automata.starts[which[s]]
        n = automata.starts[which[s] + 1] - origin
        for t in range(size):
            now, before, names, old = before, now, old, names
            for j in range(n):
                node = origin + j
                state = automata.state[node]
                now[j], names[j], links[t, j] = -np.inf, FREE, 0
                if t < automata.low[node] or t >= automata.high[node]:
                    continue
                if t == 0:
                    if automata.first[node]:
                        now[j, 0], names[j, 0] = unary[begin, state], write_label(0, state)
                    continue
                for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                    source = automata.source[e]
                    score = steps[automata.score[e]] + unary[begin + t, state]
                    is_new = automata.score[e] >= n_inside
                    for r in range(k):
                        v = before[source, r] + score
                        if v <= now[j, k - 1]:
                            break
                        name = write_label(old[source, r], state) if is_new else old[source, r]
                        insert_path(now[j], names[j], links[t, j], v, name, source * k + r)
        top[:], top_names[:] = -np.inf, FREE
        for j in range(n):
            end = automata.final[origin + j]
            if end > -np.inf:
                for r in range(k):
                    v = now[j, r] + factor[s] * end
                    if v <= top[k - 1]:
                        break
                    insert_path(top, top_names, top_links, v, names[j, r], j * k + r)
        for r in range(k):
            value[s, r] = top[r]
            if top[r] == -np.inf:
                code[begin : begin + size, r] = -1
                continue
            at = top_links[r]
            for t in range(size - 1, -1, -1):
                code[begin + t, r] = automata.state[origin + at // k]
                at = links[t, at // k, at % k]


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

"""Compiled inference in graphs with cycles: messages along chains of a dual decomposition, with an upper bound."""

from __future__ import annotations

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

import numpy as np  # isort: skip


@kernel
def pass_messages(
    chosen: Array,
    starts: Array,
    edge_starts: Array,
    edges: Array,
    unary: Array,
    agreement: Array,
    tables: Array,
    kinds: Array,
    messages: Array,
    worth: Array,
    precision: float,
    patience: float,
    max_sweeps: int,
    labels: Array,
    scores: Array,
    bounds: Array,
    sweeps: Array,
) -> None:
    """Labels of a high ``Σ_v unary[v, l_v] + Σ_e pair(l_a, l_b)``, and an upper bound of its maximum, per graph.

    Sequential tree-reweighted message passing (TRW-S, Kolmogorov 2006): coordinate descent on the dual of the linear
    program over locally consistent marginals, whose subproblems are chains of nodes in ascending order. A sweep goes
    through the nodes upwards and downwards. The bound never rises from sweep to sweep. Both directions also decode
    labels: a node takes its best label, given those before it and the messages of those after it. Of equal labels the
    first is taken. Single nodes are then changed as long as that improves the score.

    Parameters
    ----------
    chosen : the graphs
    starts, edge_starts : where the nodes and the edges of every graph begin, and the ends
    edges : (edges, 2) positions of nodes in their graph
    unary : (nodes, K) scores, −inf for labels that are ruled out; each node has one that is not
    agreement : (edges,) scores of equal labels; empty where ``tables`` has the scores of pairs
    tables, kinds : (kinds, K, K) scores of pairs, and the kind of every edge
    messages : (edges, K) in and out, zeros to begin with; at the end they go from later nodes to earlier ones
    worth : out, per node, what the last sweep added to the bound there
    precision : stop when bound and score differ by at most this share of their size
    patience : stop when two sweeps lower the bound by less than this share of the gap
    max_sweeps : stop after so many sweeps
    labels, scores, bounds, sweeps : out; per node, and per graph: their score, its bound and the number of sweeps
    """
    most = 1
    for i in chosen:
        most = max(most, starts[i + 1] - starts[i])
    k, is_potts = unary.shape[1], agreement.size > 0
    first, n_ahead = np.empty(most, dtype=np.int64), np.empty((most, 2), dtype=np.int64)
    label = np.empty(most, dtype=np.int64)
    belief, given, weighed = np.empty(k), np.empty(k), np.empty(k)
    following = np.empty(2 * max(len(edges), 1), dtype=np.int64)  # arcs 2e and 2e + 1 leave the two ends of edge e

    for i in chosen:
        base, n = starts[i], starts[i + 1] - starts[i]
        for v in range(n):
            first[v] = -1
            n_ahead[v, 0] = n_ahead[v, 1] = 0
        for e in range(edge_starts[i], edge_starts[i + 1]):
            a, b = edges[e, 0], edges[e, 1]
            following[2 * e], first[a] = first[a], 2 * e
            following[2 * e + 1], first[b] = first[b], 2 * e + 1
            n_ahead[min(a, b), 0] += 1
            n_ahead[max(a, b), 1] += 1

        best, bound, before, last, idle = -np.inf, np.inf, np.inf, np.inf, 0
        sweeps[i] = 0
        for _ in range(max_sweeps):
            sweeps[i] += 1
            new_bound = 0.0
            for direction in range(2):
                score = 0.0
                for step in range(n):
                    v = step if direction == 0 else n - 1 - step
                    row = unary[base + v]
                    for x in range(k):
                        belief[x] = given[x] = row[x]
                    arc = first[v]
                    while arc >= 0:
                        e, end = arc >> 1, arc & 1
                        u = edges[e, 1 - end]
                        message = messages[e]
                        if (u > v) == (direction == 0):
                            for x in range(k):
                                belief[x] += message[x]
                                given[x] += message[x]
                        else:
                            for x in range(k):
                                belief[x] += message[x]
                            if is_potts:
                                given[label[u]] += agreement[e]
                            elif end == 0:
                                for x in range(k):
                                    given[x] += tables[kinds[e], x, label[u]]
                            else:
                                for x in range(k):
                                    given[x] += tables[kinds[e], label[u], x]
                        arc = following[arc]
                    found = 0
                    for x in range(1, k):
                        if given[x] > given[found]:
                            found = x
                    label[v] = found
                    score += row[found]
                    top = belief[0]
                    for x in range(1, k):
                        top = belief[x] if belief[x] > top else top
                    new_bound += top if direction == 1 else 0.0
                    worth[base + v] = top
                    lowest = top - (last - best) - 1e-9 * abs(last)
                    for x in range(k):  # labels that cannot be better than the best labels so far
                        if belief[x] < lowest:
                            row[x] = belief[x] = -np.inf
                    share = 1.0 / max(n_ahead[v, 0], n_ahead[v, 1], 1)
                    arc = first[v]
                    while arc >= 0:
                        e, end = arc >> 1, arc & 1
                        u = edges[e, 1 - end]
                        message = messages[e]
                        if (u > v) != (direction == 0):
                            a, b = (found, label[u]) if end == 0 else (label[u], found)
                            if not is_potts:
                                score += tables[kinds[e], a, b]
                            elif a == b:
                                score += agreement[e]
                            arc = following[arc]
                            continue
                        for x in range(k):
                            weighed[x] = share * (belief[x] - top) - message[x]
                        if is_potts and agreement[e] >= 0.0:  # the highest message is that of the best label
                            high = weighed[0]
                            for x in range(1, k):
                                high = weighed[x] if weighed[x] > high else high
                            floor = -agreement[e]
                            for x in range(k):
                                own = weighed[x] - high
                                message[x] = own if own > floor else floor
                            high += agreement[e]
                            new_bound += high if direction == 1 else 0.0
                            worth[base + v] += high
                            arc = following[arc]
                            continue
                        if is_potts:
                            at = 0
                            for x in range(1, k):
                                at = x if weighed[x] > weighed[at] else at
                            other = -np.inf
                            for x in range(k):
                                other = weighed[x] if x != at and weighed[x] > other else other
                            own = weighed[at] + agreement[e]
                            for x in range(k):
                                message[x] = weighed[at]
                            message[at] = own if own > other else other
                        elif end == 0:
                            for x in range(k):
                                message[x] = -np.inf
                            for x in range(k):
                                pair, own = tables[kinds[e], x], weighed[x]
                                for z in range(k):
                                    value = own + pair[z]
                                    message[z] = value if value > message[z] else message[z]
                        else:
                            for z in range(k):
                                pair, high = tables[kinds[e], z], -np.inf
                                for x in range(k):
                                    value = weighed[x] + pair[x]
                                    high = value if value > high else high
                                message[z] = high
                        high = message[0]
                        for x in range(1, k):
                            high = message[x] if message[x] > high else high
                        for x in range(k):
                            message[x] -= high
                        new_bound += high if direction == 1 else 0.0
                        worth[base + v] += high
                        arc = following[arc]
                if score > best:
                    best = score
                    for v in range(n):
                        labels[base + v] = label[v]
            bound, last = min(bound, max(new_bound, best)), new_bound
            if bound - best <= precision * max(abs(bound), abs(best)):
                break
            idle = idle + 1 if before - bound < patience * (bound - best) else 0
            before = bound
            if idle >= 2:
                break
        bounds[i] = bound
        is_moving = bound > best  # single nodes take better labels, as long as there are any
        while is_moving:
            is_moving = False
            for v in range(n):
                for x in range(k):
                    given[x] = unary[base + v, x]
                arc = first[v]
                while arc >= 0:
                    e, end = arc >> 1, arc & 1
                    other_label = labels[base + edges[e, 1 - end]]
                    if is_potts:
                        given[other_label] += agreement[e]
                    else:
                        for x in range(k):
                            a, b = (x, other_label) if end == 0 else (other_label, x)
                            given[x] += tables[kinds[e], a, b]
                    arc = following[arc]
                own = labels[base + v]
                for x in range(k):
                    if given[x] > given[labels[base + v]]:
                        labels[base + v] = x
                gain = given[labels[base + v]] - given[own]
                if gain <= 1e-12 * abs(given[own]):
                    labels[base + v] = own
                else:
                    best += gain
                    is_moving = True
        scores[i] = best

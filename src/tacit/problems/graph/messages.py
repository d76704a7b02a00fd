"""Compiled inference in graphs with cycles: messages along chains of a dual decomposition, and a search behind them."""

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


@kernel
def search_labels(
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
    max_states: int,
    labels: Array,
    scores: Array,
    bounds: Array,
) -> None:
    """Better labels than those of messages, or proof that there are none, or a lower bound.

    Nodes get their labels in ascending order. The bound of the labels so far is their score plus the messages from
    later nodes, as the last sweep left them; labels whose bound is not above the best score are dropped. Of labels
    that agree at all nodes with later neighbours (the frontier) only the best are kept: dynamic programming over
    frontiers, restricted by bounds. Where more than ``max_states`` are left, those of the lowest bound are dropped,
    and the highest of the dropped bounds is the bound of the graph. A graph whose bound cannot become lower is left.

    Parameters
    ----------
    chosen ... worth : as in `pass_messages`, as it left them
    max_states : partial labellings that are kept
    labels, scores, bounds : in and out; per node, and per graph
    """
    most = 1
    for i in chosen:
        most = max(most, starts[i + 1] - starts[i])
    k, is_potts, size = unary.shape[1], agreement.size > 0, 16
    while size < 2 * max_states:
        size *= 2
    places = np.empty(size, dtype=np.int64)  # states by frontier: a hash table
    one, other = np.empty((max_states, most), dtype=np.int16), np.empty((max_states, most), dtype=np.int16)
    value, new_value = np.empty(max_states), np.empty(max_states)
    child_value, child = np.empty(max_states * k), np.empty(max_states * k, dtype=np.int64)
    gain, frontier, last = np.empty(k), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    first, behind, ahead = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(k)
    following = np.empty(2 * max(len(edges), 1), dtype=np.int64)
    for i in chosen:
        base, n = starts[i], starts[i + 1] - starts[i]
        best, bound, dropped = scores[i], bounds[i], scores[i]
        margin = 1e-11 * max(abs(best), abs(bound))
        for v in range(n):
            first[v], last[v] = -1, v
        for e in range(edge_starts[i], edge_starts[i + 1]):
            for end in range(2):
                v = edges[e, end]
                following[2 * e + end], first[v] = first[v], 2 * e + end
                last[v] = max(last[v], edges[e, 1 - end])
        now, new = one, other
        n_states, n_frontier = 1, 0
        value[0] = 0.0
        for v in range(n):
            value[0] += worth[base + v]
        for v in range(n):
            for x in range(k):
                ahead[x] = unary[base + v, x] - worth[base + v]
            n_behind, arc = 0, first[v]
            while arc >= 0:
                if edges[arc >> 1, 1 - (arc & 1)] > v:
                    for x in range(k):
                        ahead[x] += messages[arc >> 1, x]
                else:
                    behind[n_behind] = arc
                    n_behind += 1
                arc = following[arc]
            count = 0
            for s in range(n_states):
                for x in range(k):
                    gain[x] = ahead[x]
                expected = 0.0
                for j in range(n_behind):
                    e, end = behind[j] >> 1, behind[j] & 1
                    z = now[s, edges[e, 1 - end]]
                    expected += messages[e, z]
                    if is_potts:
                        gain[z] += agreement[e]
                    else:
                        for x in range(k):
                            gain[x] += tables[kinds[e], x, z] if end == 0 else tables[kinds[e], z, x]
                for x in range(k):
                    reached = value[s] + gain[x] - expected
                    if reached > best + margin:
                        child_value[count], child[count] = reached, s * k + x
                        count += 1
            least = -np.inf
            if count > max_states:
                least = np.partition(child_value[:count], count - max_states)[count - max_states]
            kept = 0
            for j in range(n_frontier):
                if last[frontier[j]] > v:
                    frontier[kept] = frontier[j]
                    kept += 1
            n_frontier = kept
            if last[v] > v:
                frontier[n_frontier] = v
                n_frontier += 1
            for at in range(size):
                places[at] = -1
            n_states, n_taken = 0, 0
            for c in range(count):
                reached, s, x = child_value[c], child[c] // k, child[c] % k
                if reached < least or n_taken == max_states:
                    dropped = max(dropped, reached)
                    continue
                n_taken += 1
                key = 17
                for j in range(n_frontier):
                    z = x if frontier[j] == v else now[s, frontier[j]]
                    key = ((key ^ z) * 1000003) & 0xFFFFFFFFFF
                at = (key ^ (key >> 17)) % size
                while places[at] >= 0:
                    is_same = True
                    for j in range(n_frontier):
                        z = x if frontier[j] == v else now[s, frontier[j]]
                        is_same = is_same and new[places[at], frontier[j]] == z
                    if is_same:
                        break
                    at = at + 1 if at + 1 < size else 0
                t = places[at]
                if t < 0:
                    t = places[at] = n_states
                    n_states += 1
                    new_value[t] = -np.inf
                if reached > new_value[t]:
                    new_value[t] = reached
                    for u in range(v):
                        new[t, u] = now[s, u]
                    new[t, v] = x
            now, new = new, now
            value, new_value = new_value, value
            if n_states == 0 or dropped >= bound:
                break
        if n_states > 0 and dropped < bound:
            scores[i] = value[0]
            for v in range(n):
                labels[base + v] = now[0, v]
        bounds[i] = min(bound, max(scores[i], dropped))

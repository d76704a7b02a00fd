"""Compiled search behind the messages: partial labellings in the order of nodes, as far as their bounds allow."""

from __future__ import annotations

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

import numpy as np  # isort: skip


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
    chosen ... worth : as in `tacit.problems.graph.messages.pass_messages`, as it left them
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

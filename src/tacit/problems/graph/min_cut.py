"""The compiled minimum cut, for many graphs in one call."""

from __future__ import annotations

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

import numpy as np  # isort: skip


@kernel
def cut_graphs(
    starts: Array, edge_starts: Array, edges: Array, gains: Array, ahead: Array, back: Array, taken: Array
) -> None:
    """Minimum cut: maximise ``Σ gains[r] t_r − Σ_e (ahead[e] t_a (1 − t_b) + back[e] (1 − t_a) t_b)`` over t in {0, 1}.

    A maximum flow from regions with a positive gain to those with a negative one, by Dinic's algorithm (1970): levels
    by breadth-first search, then flow along paths that go up one level per step. Every push uses up the capacity of a
    region or a pair exactly, so it ends in spite of rounding. Taken are the regions that the source still reaches: of
    equal maxima the one with the fewest regions.

    Parameters
    ----------
    starts, edge_starts : where the regions and the pairs of every image begin, and the ends
    edges : (pairs, 2) neighbours, counted within their image
    gains : per region
    ahead, back : per pair (a, b), not negative
    taken : out, per region, 0 or 1
    """
    most, most_edges = 1, 1
    for i in range(starts.size - 1):
        most = max(most, starts[i + 1] - starts[i])
        most_edges = max(most_edges, edge_starts[i + 1] - edge_starts[i])
    excess, drain = np.empty(most), np.empty(most)  # remaining capacity from the source, and to the sink
    first = np.empty(most, dtype=np.int64)  # the arcs of a region: a linked list
    following, head = np.empty(2 * most_edges, dtype=np.int64), np.empty(2 * most_edges, dtype=np.int64)
    room = np.empty(2 * most_edges)  # arcs 2e and 2e + 1 are the two directions of pair e
    level, at = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    queue, path = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)

    for i in range(starts.size - 1):
        base, n = starts[i], starts[i + 1] - starts[i]
        for v in range(n):
            g = gains[base + v]
            excess[v] = g if g > 0.0 else 0.0
            drain[v] = -g if g < 0.0 else 0.0
            first[v] = -1
        for e in range(edge_starts[i + 1] - edge_starts[i]):
            a, b = edges[edge_starts[i] + e, 0], edges[edge_starts[i] + e, 1]
            room[2 * e], room[2 * e + 1] = ahead[edge_starts[i] + e], back[edge_starts[i] + e]
            head[2 * e], head[2 * e + 1] = b, a
            following[2 * e], first[a] = first[a], 2 * e
            following[2 * e + 1], first[b] = first[b], 2 * e + 1

        while True:
            # levels: steps from the source through arcs with room
            size, is_open = 0, False
            for v in range(n):
                level[v] = -1
                at[v] = first[v]
                if excess[v] > 0.0:
                    level[v] = 0
                    queue[size] = v
                    size += 1
            done = 0
            while done < size:
                v = queue[done]
                done += 1
                if drain[v] > 0.0:
                    is_open = True
                arc = first[v]
                while arc >= 0:
                    u = head[arc]
                    if room[arc] > 0.0 and level[u] < 0:
                        level[u] = level[v] + 1
                        queue[size] = u
                        size += 1
                    arc = following[arc]
            if not is_open:
                break

            # flow along paths that go up one level per step, until none is left
            for source in range(n):
                depth, v = 0, source
                while excess[source] > 0.0:
                    if drain[v] > 0.0:
                        amount = min(excess[source], drain[v])
                        for k in range(depth):
                            amount = min(amount, room[path[k]])
                        excess[source] -= amount
                        drain[v] -= amount
                        retreat = depth
                        for k in range(depth - 1, -1, -1):
                            room[path[k]] -= amount
                            room[path[k] ^ 1] += amount
                            if room[path[k]] <= 0.0:
                                retreat = k
                        if retreat < depth:  # continue from the part of the path that is still open
                            depth = retreat
                            v = head[path[depth] ^ 1]
                        continue
                    arc = at[v]
                    while arc >= 0 and not (room[arc] > 0.0 and level[head[arc]] == level[v] + 1):
                        arc = following[arc]
                    at[v] = arc
                    if arc >= 0:
                        path[depth] = arc
                        depth += 1
                        v = head[arc]
                    elif depth > 0:  # dead end: one step back, and never here again
                        depth -= 1
                        v = head[path[depth] ^ 1]
                        at[v] = following[at[v]]
                    else:
                        break
        for v in range(n):
            taken[base + v] = 1 if level[v] >= 0 else 0

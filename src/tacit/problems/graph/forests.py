"""Compiled dynamic programming on graphs without cycles: the best labels, and sums over all of them."""

from __future__ import annotations

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

import numpy as np  # isort: skip


@kernel
def find_forests(
    starts: Array, edge_starts: Array, edges: Array, order: Array, parents: Array, is_forest: Array
) -> None:
    """Which graphs have no cycle, and for all graphs an order of nodes in which parents come before their children.

    Parameters
    ----------
    starts, edge_starts, edges : as in `tacit.problems.graph.messages.pass_messages`
    order : out, (nodes,) the nodes of a graph, roots and parents first, as positions in their graph
    parents : out, per node the arc to its parent, −1 for a root: 2e where the node is the first end of edge e, 2e + 1
        where it is the second
    is_forest : out, per graph
    """
    first = np.empty(max(starts[-1], 1), dtype=np.int64)
    following = np.empty(2 * max(len(edges), 1), dtype=np.int64)
    for i in range(starts.size - 1):
        base, n = starts[i], starts[i + 1] - starts[i]
        for v in range(base, base + n):
            first[v] = -1
            parents[v] = -2  # not reached yet
        for e in range(edge_starts[i], edge_starts[i + 1]):
            for end in range(2):
                v = base + edges[e, end]
                following[2 * e + end], first[v] = first[v], 2 * e + end
        size, n_roots = 0, 0
        for root in range(n):
            if parents[base + root] != -2:
                continue
            parents[base + root] = -1
            order[base + size] = root
            done, size, n_roots = size, size + 1, n_roots + 1
            while done < size:
                arc = first[base + order[base + done]]
                done += 1
                while arc >= 0:
                    u = edges[arc >> 1, 1 - (arc & 1)]
                    if parents[base + u] == -2:
                        parents[base + u] = arc ^ 1
                        order[base + size] = u
                        size += 1
                    arc = following[arc]
        is_forest[i] = edge_starts[i + 1] - edge_starts[i] == n - n_roots


@kernel
def maximise_forests(
    chosen: Array,
    starts: Array,
    edges: Array,
    order: Array,
    parents: Array,
    unary: Array,
    agreement: Array,
    tables: Array,
    kinds: Array,
    labels: Array,
    values: Array,
) -> None:
    """The labels of the highest score in graphs without cycles, and that score, by dynamic programming.

    The parameters are those of `find_forests` and `tacit.problems.graph.messages.pass_messages`; ``unary`` is changed:
    the best scores of the children are added. Of equal labels the first is taken.
    """
    k, is_potts = unary.shape[1], agreement.size > 0
    for i in chosen:
        base, n = starts[i], starts[i + 1] - starts[i]
        for step in range(n - 1, -1, -1):  # children before parents
            v = base + order[base + step]
            arc = parents[v]
            if arc < 0:
                continue
            e, end = arc >> 1, arc & 1
            into, own = unary[base + edges[e, 1 - end]], unary[v]
            if is_potts:
                at, other = 0, -np.inf
                for x in range(1, k):
                    at = x if own[x] > own[at] else at
                for x in range(k):
                    other = own[x] if x != at and own[x] > other else other
                for x in range(k):
                    rest, same = other if x == at else own[at], own[x] + agreement[e]
                    into[x] += same if same > rest else rest
                continue
            pair = tables[kinds[e]]
            for z in range(k):
                high = -np.inf
                for x in range(k):
                    value = own[x] + (pair[x, z] if end == 0 else pair[z, x])
                    high = value if value > high else high
                into[z] += high
        values[i] = 0.0
        for step in range(n):
            v = base + order[base + step]
            arc = parents[v]
            e, end = arc >> 1, arc & 1
            found, high = 0, -np.inf
            for x in range(k):
                value = unary[v, x]
                if arc >= 0:
                    z = labels[base + edges[e, 1 - end]]
                    if not is_potts:
                        value += tables[kinds[e], x, z] if end == 0 else tables[kinds[e], z, x]
                    elif x == z:
                        value += agreement[e]
                if value > high:
                    found, high = x, value
            labels[v] = found
            if arc < 0:
                values[i] += high


@kernel
def sum_forests(
    starts: Array,
    edges: Array,
    order: Array,
    parents: Array,
    unary: Array,
    agreement: Array,
    tables: Array,
    kinds: Array,
    coef: Array,
    logs: Array,
    nodes: Array,
    agreeing: Array,
    sums: Array,
) -> None:
    """``log Σ exp score`` over all labels of graphs without cycles, and probabilities, by sums and products.

    A child's probabilities given its parent are computed from logarithms, so scores of any size are safe.

    Parameters
    ----------
    starts ... kinds : as in `maximise_forests`; ``unary`` is changed
    coef : per graph, the factor of what is added to ``agreeing`` and ``sums``
    logs : out, per graph
    nodes : out, (nodes, K) probabilities of labels
    agreeing : out, per edge, the probability of equal labels times the factor; empty unless ``agreement`` is given
    sums : (kinds, K, K), to which the probabilities of pairs are added
    """
    k, is_potts = unary.shape[1], agreement.size > 0
    upward = np.empty((max(starts[-1], 1), k))
    for i in range(starts.size - 1):
        base, n = starts[i], starts[i + 1] - starts[i]
        logs[i] = 0.0
        for step in range(n - 1, -1, -1):
            v = base + order[base + step]
            arc, own = parents[v], unary[v]
            if arc < 0:
                high, total = own.max(), 0.0
                for x in range(k):
                    nodes[v, x] = np.exp(own[x] - high)
                    total += nodes[v, x]
                for x in range(k):
                    nodes[v, x] /= total
                logs[i] += high + np.log(total)
                continue
            e, end = arc >> 1, arc & 1
            into = unary[base + edges[e, 1 - end]]
            for z in range(k):
                high, total = -np.inf, 0.0
                for x in range(k):
                    pair = 0.0
                    if not is_potts:
                        pair = tables[kinds[e], x, z] if end == 0 else tables[kinds[e], z, x]
                    elif x == z:
                        pair = agreement[e]
                    value = own[x] + pair
                    if value > high:
                        total = total * np.exp(high - value) + 1.0
                        high = value
                    elif value > -np.inf:
                        total += np.exp(value - high)
                upward[v, z] = high + np.log(total)
                into[z] += upward[v, z]
        for step in range(n):
            v = base + order[base + step]
            arc = parents[v]
            if arc < 0:
                continue
            e, end = arc >> 1, arc & 1
            u = base + edges[e, 1 - end]
            for x in range(k):
                nodes[v, x] = 0.0
            for z in range(k):
                if nodes[u, z] == 0.0:
                    continue
                for x in range(k):
                    pair = 0.0
                    if not is_potts:
                        pair = tables[kinds[e], x, z] if end == 0 else tables[kinds[e], z, x]
                    elif x == z:
                        pair = agreement[e]
                    both = nodes[u, z] * np.exp(unary[v, x] + pair - upward[v, z])
                    nodes[v, x] += both
                    if not is_potts:
                        a, b = (x, z) if end == 0 else (z, x)
                        sums[kinds[e], a, b] += coef[i] * both
                    elif x == z:
                        agreeing[e] += coef[i] * both

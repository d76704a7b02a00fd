"""Links as parents: every mention names the mention that it hangs on, or itself where a cluster begins."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def number_clusters(starts: Array, parents: Array, clusters: Array) -> bool:
    """Write the clusters that parents make, numbered per document by first occurrence; False if there is a cycle.

    ``starts`` cuts the mentions of the call into documents; parents count from the first mention of a document.
    """
    for d in range(starts.size - 1):
        first, n = starts[d], starts[d + 1] - starts[d]
        number_of_root = np.full(n, -1)
        count = 0
        for m in range(n):
            root, steps = m, 0
            while parents[first + root] != root:
                root = parents[first + root]
                steps += 1
                if steps > n:
                    return False
            if number_of_root[root] < 0:
                number_of_root[root] = count
                count += 1
            clusters[first + m] = number_of_root[root]
    return True


@kernel
def find_slots(
    documents: Array, offsets: Array, starts: Array, table: Array, later: Array, earlier: Array, slots: Array
) -> None:
    """The place of the pair (later, earlier) among the rows of its later mention, −1 where there is none.

    One pair per mention of the documents, both places counted from the first mention of the document.
    """
    place = 0
    for d in range(documents.size):
        first = offsets[documents[d]]
        for _ in range(offsets[documents[d] + 1] - first):
            m = first + later[place]
            slots[place] = -1
            for row in range(starts[m], starts[m + 1]):
                if table[row, 1] == earlier[place]:
                    slots[place] = row - starts[m]
                    break
            place += 1


@kernel
def edge_scores(
    documents: Array,
    offsets: Array,
    starts: Array,
    limit: Array,
    table: Array,
    base: Array,
    weights: Array,
    kind: Array,
    bonus: Array,
    edge: Array,
) -> None:
    """What every link of these documents is worth: its score, less that of "new", plus ``bonus[kind]``.

    Links behind the ``limit`` of their mention, and those with a bonus of −inf, are worth −inf.
    """
    for d in range(documents.size):
        for m in range(offsets[documents[d]], offsets[documents[d] + 1]):
            first = starts[m]
            new = 0.0
            for t in range(2, table.shape[1]):
                new += weights[base[t] + table[first, t]]
            for row in range(first + 1, starts[m + 1]):
                v = bonus[kind[row]]
                if row - first >= limit[m] or v == -np.inf:
                    edge[row] = -np.inf
                    continue
                v -= new
                for t in range(2, table.shape[1]):
                    v += weights[base[t] + table[row, t]]
                edge[row] = v


@kernel
def grow_forests(
    documents: Array,
    offsets: Array,
    starts: Array,
    table: Array,
    back_starts: Array,
    back_rows: Array,
    back_mentions: Array,
    edge: Array,
    floor: float,
    code: Array,
    value: Array,
) -> None:
    """The heaviest forest of edges above ``floor``, by Prim's algorithm: parents, and the sum of the edges.

    A tree grows from its first mention by the heaviest edge out of it; when none is above the floor, the next tree
    begins. That is what Kruskal's algorithm keeps, without sorting. O(n² + edges) time, O(n) memory beside the edges.
    ``back_rows`` and ``back_mentions`` list, for every mention, the rows in which it is the earlier one, and the later
    mentions of those; mentions count through all documents.
    """
    place = 0
    for d in range(documents.size):
        first = offsets[documents[d]]
        n = offsets[documents[d] + 1] - first
        best = np.full(n, -np.inf)
        is_in = np.zeros(n, dtype=np.bool_)
        total, next_root = 0.0, 0
        for m in range(n):
            code[place + m] = m
        for _ in range(n):
            chosen, top = -1, floor
            for m in range(n):
                if not is_in[m] and best[m] > top:
                    chosen, top = m, best[m]
            if chosen < 0:
                while is_in[next_root]:
                    next_root += 1
                chosen = next_root
                code[place + chosen] = chosen
            else:
                total += top
            is_in[chosen] = True
            m = first + chosen
            for row in range(starts[m] + 1, starts[m + 1]):
                other = table[row, 1]
                if not is_in[other] and edge[row] > best[other]:
                    best[other] = edge[row]
                    code[place + other] = chosen
            for p in range(back_starts[m], back_starts[m + 1]):
                other = back_mentions[p] - first
                if not is_in[other] and edge[back_rows[p]] > best[other]:
                    best[other] = edge[back_rows[p]]
                    code[place + other] = chosen
        value[d] = total
        place += n

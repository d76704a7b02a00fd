"""Compiled loops over coreference links: left links (an argmax per mention) and forests."""

from __future__ import annotations

import math

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def best_rows(
    documents: Array, offsets: Array, starts: Array, limit: Array, table: Array, base: Array, weights: Array, kind:
    Array, bonus: Array, known: Array, prefer: Array, code: Array, value: Array,
) -> None:  # fmt: skip
    """Find the slot of every mention with the highest score plus its bonus, among its first ``limit`` slots.

    ``bonus[d, kind]`` is that of document d; one row of it stands for all. A bonus of −inf excludes rows. ``known`` (if
    not empty) fixes the slots that are ≥ 0. Ties go to the slot in ``prefer`` (if not empty), else to the first.
    """
    columns = table.shape[1]
    position = 0
    for d in range(documents.size):
        total = 0.0
        own = bonus[d if len(bonus) > 1 else 0]
        for m in range(offsets[documents[d]], offsets[documents[d] + 1]):
            first = starts[m]
            low, high = first, first + limit[m]
            if known.size > 0 and known[m] >= 0:
                low = first + known[m]
                high = low + 1
            best, chosen = -np.inf, low
            for row in range(low, high):
                v = own[kind[row]]
                if v == -np.inf:
                    continue
                for t in range(2, columns):
                    v += weights[base[t] + table[row, t]]
                if v > best or (v == best and prefer.size > 0 and prefer[position] == row - first):
                    best = v
                    chosen = row
            code[position] = chosen - first
            total += best
            position += 1
        value[d] = total


@kernel
def likeliest_rows(
    documents: Array, offsets: Array, starts: Array, limit: Array, table: Array, base: Array, weights: Array, scores:
    Array, code: Array, value: Array,
) -> None:  # fmt: skip
    """From left to right, add every mention to the most probable cluster so far, or begin a new one.

    The code is the best link to the chosen cluster, the value the log-probability of all choices. ``scores`` is a
    buffer for the rows of one mention.
    """
    columns = table.shape[1]
    position = 0
    for d in range(documents.size):
        first_mention = offsets[documents[d]]
        n = offsets[documents[d] + 1] - first_mention
        cluster = np.empty(n, dtype=np.int64)
        mass = np.zeros(n)
        total = 0.0
        for m in range(n):
            first = starts[first_mention + m]
            last = first + limit[first_mention + m]
            top = -np.inf
            for row in range(first, last):
                v = 0.0
                for t in range(2, columns):
                    v += weights[base[t] + table[row, t]]
                scores[row - first] = v
                if v > top:
                    top = v
            whole = 0.0
            for row in range(first, last):
                share = math.exp(scores[row - first] - top)
                whole += share
                mass[m if row == first else cluster[table[row, 1]]] += share
            chosen = m
            for row in range(first + 1, last):
                if mass[cluster[table[row, 1]]] > mass[chosen]:
                    chosen = cluster[table[row, 1]]
            total += math.log(mass[chosen] / whole)
            slot = 0
            for row in range(first + 1, last):
                if cluster[table[row, 1]] == chosen and (slot == 0 or scores[row - first] > scores[slot]):
                    slot = row - first
            mass[m] = 0.0
            for row in range(first + 1, last):
                mass[cluster[table[row, 1]]] = 0.0
            cluster[m] = chosen
            code[position] = slot
            position += 1
        value[d] = total


@kernel
def sum_chosen(
    documents: Array, offsets: Array, starts: Array, table: Array, base: Array, weights: Array, code: Array, value:
    Array,
) -> None:  # fmt: skip
    """Sum the scores of the chosen rows of every document."""
    position = 0
    for d in range(documents.size):
        total = 0.0
        for m in range(offsets[documents[d]], offsets[documents[d] + 1]):
            row = starts[m] + code[position]
            for t in range(2, table.shape[1]):
                total += weights[base[t] + table[row, t]]
            position += 1
        value[d] = total


@kernel
def add_chosen(
    documents: Array, offsets: Array, starts: Array, table: Array, base: Array, code: Array, coef: Array, out: Array
) -> None:
    """Add the features of chosen rows to ``out``, each times the coefficient of its document."""
    position = 0
    for d in range(documents.size):
        for m in range(offsets[documents[d]], offsets[documents[d] + 1]):
            row = starts[m] + code[position]
            for t in range(2, table.shape[1]):
                out[base[t] + table[row, t]] += coef[d]
            position += 1


@kernel
def sum_rows(
    documents: Array, offsets: Array, starts: Array, table: Array, base: Array, weights: Array, kind: Array, known:
    Array, power: float, bonus: Array, coef: Array, log: Array, out: Array, scores: Array,
) -> None:  # fmt: skip
    """Compute three log-partition functions per document, and their expected features, in one pass.

    ``log[0]`` sums over all rows of a mention, ``log[1]`` over those that agree with its cluster (kind 0), ``log[2]``
    over those of them that agree with ``known``. ``coef`` has the coefficients of the three. Expected features are
    added to ``out``, unless it is empty. ``bonus``, by kind, is added to the scores of the first. ``scores`` is a
    buffer for the rows of one mention.
    """
    columns = table.shape[1]
    for d in range(documents.size):
        for k in range(3):
            log[k, d] = 0.0
        for m in range(offsets[documents[d]], offsets[documents[d] + 1]):
            first, last = starts[m], starts[m + 1]
            only = known[m] if known.size > 0 else -1
            top, top_right, top_known = -np.inf, -np.inf, -np.inf
            for row in range(first, last):
                v = 0.0
                for t in range(2, columns):
                    v += weights[base[t] + table[row, t]]
                v *= power
                scores[row - first] = v
                top = max(top, v + bonus[kind[row]])
                if kind[row] == 0:
                    if v > top_right:
                        top_right = v
                    if (only < 0 or row - first == only) and v > top_known:
                        top_known = v
            total, right, agreed = 0.0, 0.0, 0.0
            for row in range(first, last):
                v = scores[row - first]
                total += math.exp(v + bonus[kind[row]] - top)
                if kind[row] == 0:
                    right += math.exp(v - top_right)
                    if only < 0 or row - first == only:
                        agreed += math.exp(v - top_known)
            log[0, d] += top + math.log(total)
            if right > 0.0:
                log[1, d] += top_right + math.log(right)
                log[2, d] += top_known + math.log(agreed)
            if out.size == 0:
                continue
            for row in range(first, last):
                v = scores[row - first]
                share = coef[0, d] * math.exp(v + bonus[kind[row]] - top) / total
                if kind[row] == 0 and right > 0.0:
                    share += coef[1, d] * math.exp(v - top_right) / right
                    if only < 0 or row - first == only:
                        share += coef[2, d] * math.exp(v - top_known) / agreed
                if share != 0.0:
                    for t in range(2, columns):
                        out[base[t] + table[row, t]] += share


@kernel
def row_posteriors(
    documents: Array, offsets: Array, starts: Array, limit: Array, table: Array, base: Array, weights: Array, out: Array
) -> None:
    """Compute the probability of every row among the first ``limit`` rows of its mention."""
    position = 0
    for d in range(documents.size):
        for m in range(offsets[documents[d]], offsets[documents[d] + 1]):
            first, begin, top, total = starts[m], position, -np.inf, 0.0
            for row in range(first, starts[m + 1]):
                v = -np.inf
                if row - first < limit[m]:
                    v = 0.0
                    for t in range(2, table.shape[1]):
                        v += weights[base[t] + table[row, t]]
                out[position] = v
                if v > top:
                    top = v
                position += 1
            for p in range(begin, position):
                out[p] = math.exp(out[p] - top)
                total += out[p]
            for p in range(begin, position):
                out[p] /= total


@kernel
def number_clusters(starts: Array, parents: Array, clusters: Array) -> bool:
    """Number the clusters of ``parents`` per document by first occurrence; return False if there is a cycle.

    ``starts`` is where documents begin; parents count from the first mention of a document.
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
    """Find the slot of the pair (later, earlier) among the rows of its later mention, −1 if there is none.

    There is one pair per mention; ``later`` and ``earlier`` count from the first mention of the document.
    """
    position = 0
    for d in range(documents.size):
        first = offsets[documents[d]]
        for _ in range(offsets[documents[d] + 1] - first):
            m = first + later[position]
            slots[position] = -1
            for row in range(starts[m], starts[m + 1]):
                if table[row, 1] == earlier[position]:
                    slots[position] = row - starts[m]
                    break
            position += 1


@kernel
def edge_scores(
    documents: Array, offsets: Array, starts: Array, limit: Array, table: Array, base: Array, weights: Array, kind:
    Array, bonus: Array, edge: Array,
) -> None:  # fmt: skip
    """Compute the score of every link, less that of "new", plus ``bonus[d, kind]`` of document d, or of the one row.

    Links beyond the ``limit`` of their mention, and those with a bonus of −inf, get −inf.
    """
    for d in range(documents.size):
        own = bonus[d if len(bonus) > 1 else 0]
        for m in range(offsets[documents[d]], offsets[documents[d] + 1]):
            first = starts[m]
            new = 0.0
            for t in range(2, table.shape[1]):
                new += weights[base[t] + table[first, t]]
            for row in range(first + 1, starts[m + 1]):
                v = own[kind[row]]
                if row - first >= limit[m] or v == -np.inf:
                    edge[row] = -np.inf
                    continue
                v -= new
                for t in range(2, table.shape[1]):
                    v += weights[base[t] + table[row, t]]
                edge[row] = v


@kernel
def grow_forests(
    documents: Array, offsets: Array, starts: Array, table: Array, back_starts: Array, back_rows: Array,
    back_mentions: Array, edge: Array, floor: float, code: Array, value: Array,
) -> None:  # fmt: skip
    """Find the maximum spanning forest of edges above ``floor``, by Prim's algorithm: parents, and the sum of edges.

    A tree grows from its first mention by the highest edge out of it. If none is above the floor, the next tree begins.
    O(n² + edges) time, O(n) memory. ``back_rows`` and ``back_mentions`` list, for every mention, the rows in which it
    is the earlier one, and their later mentions; mentions count through all documents.
    """
    position = 0
    for d in range(documents.size):
        first = offsets[documents[d]]
        n = offsets[documents[d] + 1] - first
        best = np.full(n, -np.inf)
        is_in = np.zeros(n, dtype=np.bool_)
        total, next_root = 0.0, 0
        for m in range(n):
            code[position + m] = m
        for _ in range(n):
            chosen, top = -1, floor
            for m in range(n):
                if not is_in[m] and best[m] > top:
                    chosen, top = m, best[m]
            if chosen < 0:
                while is_in[next_root]:
                    next_root += 1
                chosen = next_root
                code[position + chosen] = chosen
            else:
                total += top
            is_in[chosen] = True
            m = first + chosen
            for row in range(starts[m] + 1, starts[m + 1]):
                other = table[row, 1]
                if not is_in[other] and edge[row] > best[other]:
                    best[other] = edge[row]
                    code[position + other] = chosen
            for p in range(back_starts[m], back_starts[m + 1]):
                other = back_mentions[p] - first
                if not is_in[other] and edge[back_rows[p]] > best[other]:
                    best[other] = edge[back_rows[p]]
                    code[position + other] = chosen
        value[d] = total
        position += n

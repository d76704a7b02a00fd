"""Compiled loops over triplets: how many are violated, item by item, without listing them.

A query with n judged items has up to n²/4 triplets. Sorted by score, the lower items that violate the margin with an
item above are a range at one end, so their number comes from one sweep. That takes O(n log n) per query: Joachims 2005
for two grades; several grades need a Fenwick tree over the grades (Lee & Lin 2014).
"""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

MAX_COMPARED = 2_000_000
"""Pairs of a query up to which comparing all of them takes less time than sorting, because comparisons need no branches
and run several at a time. Measured with as many items on both sides: 3 against 15 µs per query at 10⁴ pairs, 135
against 220 at 10⁶, 1370 against 770 at 9 · 10⁶."""


@kernel
def score_rows(features: Array, offsets: Array, weights: Array, scores: Array) -> None:
    """The score of every row under the weights of its query."""
    for q in range(offsets.size - 1):
        for r in range(offsets[q], offsets[q + 1]):
            total = 0.0
            for j in range(features.shape[1]):
                total += features[r, j] * weights[q, j]
            scores[r] = total


@kernel
def sum_rows(features: Array, offsets: Array, coef: Array, sums: Array) -> None:
    """Σ coef_r · features_r over the rows of every query."""
    for q in range(offsets.size - 1):
        for j in range(features.shape[1]):
            sums[q, j] = 0.0
        for r in range(offsets[q], offsets[q + 1]):
            if coef[r] != 0.0:
                for j in range(features.shape[1]):
                    sums[q, j] += coef[r] * features[r, j]


@kernel
def count_two_grades(
    scores: Array, offsets: Array, grades: Array, margin: float, strict: bool, better: Array, worse: Array,
    code: Array, active: Array,
) -> None:  # fmt: skip
    """Violated triplets of every query whose items have grade 0 or 1: those with s_a − s_b < margin (≤ if not strict).

    ``code[better[r]]`` becomes in how many of them row r is the better item, ``code[worse[r]]`` in how many the worse;
    a row that cannot be one has −1 there. ``active[q]`` is their number. Few pairs are compared one by one, which takes
    less time than sorting; results are the same, because rounding of s_a − s_b keeps the order of both.
    """
    largest = 0
    for q in range(offsets.size - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
    high, low = np.empty(largest, np.float64), np.empty(largest, np.float64)
    high_rows, low_rows = np.empty(largest, np.int64), np.empty(largest, np.int64)
    lost = np.empty(largest, np.int64)
    for q in range(offsets.size - 1):
        n_high, n_low = 0, 0
        for r in range(offsets[q], offsets[q + 1]):
            if grades[r] > 0:
                high[n_high] = scores[r]
                high_rows[n_high] = r
                n_high += 1
            else:
                low[n_low] = scores[r]
                low_rows[n_low] = r
                n_low += 1
        total = 0
        if n_high == 0 or n_low == 0:
            active[q] = 0
            continue
        if n_high * n_low <= MAX_COMPARED:
            for j in range(n_low):
                lost[j] = 0
            for i in range(n_high):
                value, won = high[i], 0
                if strict:
                    for j in range(n_low):
                        is_active = 1 if value - low[j] < margin else 0
                        won += is_active
                        lost[j] += is_active
                else:
                    for j in range(n_low):
                        is_active = 1 if value - low[j] <= margin else 0
                        won += is_active
                        lost[j] += is_active
                code[better[high_rows[i]]] = won
                total += won
            for j in range(n_low):
                code[worse[low_rows[j]]] = lost[j]
        else:
            high[:n_high].sort()
            low[:n_low].sort()
            for i in range(n_high):
                value = scores[high_rows[i]]
                least, most = 0, n_low  # the first position from which items are within the margin
                while least < most:
                    middle = (least + most) // 2
                    difference = value - low[middle]
                    if difference < margin if strict else difference <= margin:
                        most = middle
                    else:
                        least = middle + 1
                code[better[high_rows[i]]] = n_low - least
                total += n_low - least
            for j in range(n_low):
                value = scores[low_rows[j]]
                least, most = 0, n_high  # the first position from which items are beyond it
                while least < most:
                    middle = (least + most) // 2
                    difference = high[middle] - value
                    if difference < margin if strict else difference <= margin:
                        least = middle + 1
                    else:
                        most = middle
                code[worse[low_rows[j]]] = least
        active[q] = total


@kernel
def count_graded(
    scores: Array, offsets: Array, grades: Array, n_grades: Array, margin: float, strict: bool, better: Array,
    worse: Array, code: Array, active: Array,
) -> None:  # fmt: skip
    """The same for any number of grades: 0, 1, … up to ``n_grades[q]``."""
    largest, most = 0, 0
    for q in range(offsets.size - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
        most = max(most, n_grades[q])
    tree = np.empty(most + 1, np.int64)
    for q in range(offsets.size - 1):
        first = offsets[q]
        n = offsets[q + 1] - first
        order = np.argsort(scores[first : first + n])
        total = 0
        # better items from the best score down: the worse ones that come within the margin only grow in number
        for g in range(n_grades[q] + 1):
            tree[g] = 0
        behind = n - 1
        for i in range(n - 1, -1, -1):
            a = first + order[i]
            while behind >= 0:
                b = first + order[behind]
                difference = scores[a] - scores[b]
                if not (difference < margin if strict else difference <= margin):
                    break
                g = grades[b] + 1
                while g <= n_grades[q]:
                    tree[g] += 1
                    g += g & -g
                behind -= 1
            found = 0
            g = grades[a]
            while g > 0:
                found += tree[g]
                g -= g & -g
            if better[a] >= 0:
                code[better[a]] = found
                total += found
        # worse items from the lowest score up, the same with the grades turned round
        for g in range(n_grades[q] + 1):
            tree[g] = 0
        ahead = 0
        for i in range(n):
            b = first + order[i]
            while ahead < n:
                a = first + order[ahead]
                difference = scores[a] - scores[b]
                if not (difference < margin if strict else difference <= margin):
                    break
                g = n_grades[q] - grades[a]
                while g <= n_grades[q]:
                    tree[g] += 1
                    g += g & -g
                ahead += 1
            found = 0
            g = n_grades[q] - 1 - grades[b]
            while g > 0:
                found += tree[g]
                g -= g & -g
            if worse[b] >= 0:
                code[worse[b]] = found
        active[q] = total


@kernel
def count_pairs(
    scores: Array, pair_offsets: Array, above: Array, below: Array, margin: float, strict: bool, better: Array,
    worse: Array, code: Array, active: Array,
) -> None:  # fmt: skip
    """The same for triplets that are listed one by one, as rows above and below; the code is zero before."""
    for q in range(pair_offsets.size - 1):
        total = 0
        for t in range(pair_offsets[q], pair_offsets[q + 1]):
            difference = scores[above[t]] - scores[below[t]]
            if difference < margin if strict else difference <= margin:
                code[better[above[t]]] += 1
                code[worse[below[t]]] += 1
                total += 1
        active[q] = total


@kernel
def row_coefficients(code: Array, offsets: Array, better: Array, worse: Array, coef: Array, out: Array) -> None:
    """coef_q · (times worse − times better) of every row: its coefficient in Σ_q coef_q Ψ_q."""
    for q in range(offsets.size - 1):
        for r in range(offsets[q], offsets[q + 1]):
            net = 0
            if worse[r] >= 0:
                net += code[worse[r]]
            if better[r] >= 0:
                net -= code[better[r]]
            out[r] = coef[q] * net


@kernel
def sum_hinges(
    code: Array, scores: Array, offsets: Array, better: Array, worse: Array, active: Array, values: Array
) -> None:
    """The hinge losses of the active triplets of every query, summed."""
    for q in range(offsets.size - 1):
        total = 0.0
        for r in range(offsets[q], offsets[q + 1]):
            if worse[r] >= 0:
                total += code[worse[r]] * scores[r]
            if better[r] >= 0:
                total -= code[better[r]] * scores[r]
        values[q] = active[q] + total


@kernel
def count_active(code: Array, offsets: Array, better: Array, active: Array) -> None:
    """The number of active triplets of a code, per query."""
    for q in range(offsets.size - 1):
        total = 0
        for r in range(offsets[q], offsets[q + 1]):
            if better[r] >= 0:
                total += code[better[r]]
        active[q] = total


@kernel
def keep_best(scores: Array, first: int, itself: Array, best: Array, items: Array) -> None:
    """Put a block of scores (queries, items) into the best k of every query, sorted; ties go to the earlier item.

    Blocks come in the order of their items; ``first`` is the number of the block's first one.
    """
    k = best.shape[1]
    for q in range(scores.shape[0]):
        lowest = best[q, k - 1]
        for i in range(scores.shape[1]):
            value = scores[q, i]
            if value > lowest and first + i != itself[q]:
                rank = k - 1
                while rank > 0 and best[q, rank - 1] < value:
                    best[q, rank] = best[q, rank - 1]
                    items[q, rank] = items[q, rank - 1]
                    rank -= 1
                best[q, rank] = value
                items[q, rank] = first + i
                lowest = best[q, k - 1]

"""Compiled visits to the dual variables of chains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

MAX_PAIRED_TOKENS = 8
"""Tokens in which two taggings differ up to which their distance is taken pair by pair of tokens."""


class Sequences(NamedTuple):
    """What a sweep reads and never changes.

    Attributes
    ----------
    values, indices, indptr : feature rows of all tokens, as CSR; ``indices`` and ``indptr`` are empty for dense rows
    offsets : where each sequence begins
    loss, column : ``loss[column[token], tag]``
    weight : (n,) of each sequence in the objective
    """

    values: Array
    indices: Array
    indptr: Array
    offsets: Array
    loss: Array
    column: Array
    weight: Array


class Model(NamedTuple):
    """The weights of the model, changed by a sweep: emission (features, tags), transition and allowed (tags, tags)."""

    emission: Array
    transition: Array
    allowed: Array


class Taggings(NamedTuple):
    """The dual variables, which a sweep changes: slot m of a sequence holds a tagging and its share.

    Attributes
    ----------
    vertices : (tokens, slots) tags
    shares : (n, slots), rows sum to one
    """

    vertices: Array
    shares: Array


@kernel
def visit_chains(
    order: Array,
    sequences: Sequences,
    model: Model,
    taggings: Taggings,
    gaps: Array,
    moved: Array,
    may_widen: bool,
    steps: int,
) -> float:
    """Visit sequences in this order: move weight between taggings, and the model in step.

    ``moved[0]`` sums the change of the losses, ``moved[1]`` counts visits that found no free slot; if it
    ``may_widen``, those move weight only between the taggings there are. Returns the sum of the gaps, NaN where
    numbers overflow.

    One long function on purpose: cut into compiled functions that call each other, sweeps over handwritten words took
    about a tenth longer.
    """
    values, indices, indptr, offsets, loss, column, c = sequences
    weights, transition, allowed = model
    vertices, shares = taggings

    d, tags = weights.shape
    slots = shares.shape[1]
    is_dense = indptr.size == 0

    # scratch memory, for the longest sequence
    longest = 1
    for s in range(offsets.size - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    pair_scores = np.empty((tags, tags))  # the transition scores, −inf where a pair is not allowed
    for i in range(tags):
        for j in range(tags):
            pair_scores[i, j] = transition[i, j] if allowed[i, j] else -np.inf
    unary = np.empty((longest, tags))  # emission scores
    best = np.empty((longest, tags))  # scores of Viterbi
    change = np.empty((longest, tags))  # how far the emissions of a token are to move
    code = np.empty(longest, dtype=np.int64)  # the most violated tagging
    up = np.empty(longest, dtype=np.int64)  # the tagging that gains weight
    down = np.empty(longest, dtype=np.int64)  # the tagging that loses it
    differ = np.empty(longest, dtype=np.int64)  # the tokens in which these two differ
    value = np.empty(slots)  # score and loss of each tagging
    lost = np.empty(slots)  # its loss
    row = np.zeros(d)  # the features of one token; zero between uses
    slope = np.empty((d, tags))  # the difference of the features of two taggings
    touched_features = np.empty(d, dtype=np.int64)
    is_touched = np.zeros(d, dtype=np.bool_)
    transition_slope = np.zeros((tags, tags))
    total = 0.0

    for s in order:
        gaps[s] = 0.0
        if c[s] == 0.0:
            continue
        start, size = offsets[s], offsets[s + 1] - offsets[s]

        # scores of the tokens, and Viterbi over them, losses included
        for t in range(size):
            scores = unary[t]
            for j in range(tags):
                scores[j] = 0.0
            first = (start + t) * d if is_dense else indptr[start + t]
            last = first + d if is_dense else indptr[start + t + 1]
            for p in range(first, last):
                v = values[p]
                if v != 0.0:
                    part = weights[p - first] if is_dense else weights[indices[p]]
                    for j in range(tags):
                        scores[j] += v * part[j]
            extra = loss[column[start + t]]
            now = best[t]
            if t == 0:
                for j in range(tags):
                    now[j] = scores[j] + extra[j]
                continue
            before = best[t - 1]
            for j in range(tags):
                now[j] = before[0] + pair_scores[0, j]
            for i in range(1, tags):
                u = before[i]
                from_i = pair_scores[i]
                for j in range(tags):
                    v = u + from_i[j]
                    now[j] = v if v > now[j] else now[j]
            for j in range(tags):
                now[j] += scores[j] + extra[j]

        # back along the most violated tagging: compare again what led to each tag
        tag = 0
        for j in range(1, tags):
            if best[size - 1, j] > best[size - 1, tag]:
                tag = j
        code[size - 1] = tag
        for t in range(size - 1, 0, -1):
            before = best[t - 1]
            come = 0
            for i in range(1, tags):
                if before[i] + pair_scores[i, tag] > before[come] + pair_scores[come, tag]:
                    come = i
            tag = come
            code[t - 1] = tag

        # the slot of that tagging: where it is already, else the one of the least weight
        slot, least = -1, 0
        for m in range(slots):
            if shares[s, m] < shares[s, least]:
                least = m
            if shares[s, m] > 0.0 and slot < 0:
                slot = m
                for t in range(size):
                    if vertices[start + t, m] != code[t]:
                        slot = -1
                        break
        is_crowded = slot < 0 and shares[s, least] > 0.0
        if slot < 0:
            slot = least
        if is_crowded:
            moved[1] += 1.0
        else:
            for t in range(size):
                vertices[start + t, slot] = code[t]

        # its value, added up along it
        top = 0.0
        for t in range(size):
            top += unary[t, code[t]] + loss[column[start + t], code[t]]
            if t > 0:
                top += transition[code[t - 1], code[t]]

        # pairwise steps: weight moves from the worst tagging that has some to the best one
        for step in range(steps):
            # values of the taggings, their mean by weight, the best and the worst of them
            held = 0.0
            high, low = -1, -1
            for m in range(slots):
                if shares[s, m] <= 0.0 and m != slot:
                    continue
                v, u = 0.0, 0.0
                for t in range(size):
                    j = vertices[start + t, m]
                    v += unary[t, j]
                    u += loss[column[start + t], j]
                    if t > 0:
                        v += transition[vertices[start + t - 1, m], j]
                value[m] = v + u
                lost[m] = u
                held += shares[s, m] * value[m]
                if high < 0 or value[m] > value[high]:
                    high = m
                if shares[s, m] > 0.0 and (low < 0 or value[m] < value[low]):
                    low = m

            # which two taggings, and what a unit of weight gains
            is_forced = step == 0 and is_crowded and not may_widen
            if is_forced:  # the least weight, all of it, moves to the new tagging, which takes its slot
                low = slot
                loss_of_up = 0.0
                for t in range(size):
                    up[t], down[t] = code[t], vertices[start + t, slot]
                    loss_of_up += loss[column[start + t], code[t]]
                gain = top - value[low]
            else:
                for t in range(size):
                    up[t], down[t] = vertices[start + t, high], vertices[start + t, low]
                loss_of_up = lost[high]
                gain = value[high] - value[low]
            if step == 0:
                gap = c[s] * (top - held)
                if not gap < np.inf:
                    return np.nan
                if gap <= 0.0:
                    break
                gaps[s] = gap
                total += gap
                for t in range(size):
                    for j in range(tags):
                        change[t, j] = 0.0
            if not gain > 0.0:
                break

            # the squared distance of their features: emissions, from pairs of tokens or from the sum itself
            count = 0
            for t in range(size):
                if up[t] != down[t]:
                    differ[count] = t
                    count += 1
            q = 0.0
            if count <= MAX_PAIRED_TOKENS:
                for x in range(count):
                    t = differ[x]
                    first = (start + t) * d if is_dense else indptr[start + t]
                    last = first + d if is_dense else indptr[start + t + 1]
                    for p in range(first, last):
                        row[p - first if is_dense else indices[p]] = values[p]
                    for y in range(x + 1):
                        r = differ[y]
                        agree = (up[t] == up[r]) + (down[t] == down[r]) - (up[t] == down[r]) - (down[t] == up[r])
                        if agree == 0:
                            continue
                        dot = 0.0
                        a = (start + r) * d if is_dense else indptr[start + r]
                        b = a + d if is_dense else indptr[start + r + 1]
                        for p in range(a, b):
                            dot += values[p] * row[p - a if is_dense else indices[p]]
                        q += agree * dot if y == x else 2.0 * agree * dot
                    for p in range(first, last):
                        row[p - first if is_dense else indices[p]] = 0.0
            else:
                touched = 0
                for x in range(count):
                    t = differ[x]
                    first = (start + t) * d if is_dense else indptr[start + t]
                    last = first + d if is_dense else indptr[start + t + 1]
                    for p in range(first, last):
                        j = p - first if is_dense else indices[p]
                        if not is_touched[j]:
                            is_touched[j] = True
                            touched_features[touched] = j
                            touched += 1
                            for k in range(tags):
                                slope[j, k] = 0.0
                        slope[j, up[t]] += values[p]
                        slope[j, down[t]] -= values[p]
                for x in range(touched):
                    j = touched_features[x]
                    is_touched[j] = False
                    for k in range(tags):
                        q += slope[j, k] * slope[j, k]

            # … and transitions
            for t in range(1, size):
                if up[t - 1] != down[t - 1] or up[t] != down[t]:
                    transition_slope[up[t - 1], up[t]] += 1.0
                    transition_slope[down[t - 1], down[t]] -= 1.0
            for t in range(1, size):  # every pair of tags is counted where it occurs first
                if up[t - 1] != down[t - 1] or up[t] != down[t]:
                    v = transition_slope[up[t - 1], up[t]]
                    q += v * v
                    transition_slope[up[t - 1], up[t]] = 0.0
                    v = transition_slope[down[t - 1], down[t]]
                    q += v * v
                    transition_slope[down[t - 1], down[t]] = 0.0
            if not q < np.inf:
                return np.nan

            # exact line search; the dual weights, losses and transitions move
            share = shares[s, low]
            if is_forced:
                for t in range(size):
                    vertices[start + t, slot] = code[t]
            else:
                if gain < c[s] * q * share:
                    share = gain / (c[s] * q)
                shares[s, high] += share
                shares[s, low] -= share
            amount = share * c[s]
            moved[0] += amount * (loss_of_up - lost[low])
            for x in range(count):
                t = differ[x]
                change[t, up[t]] += amount
                change[t, down[t]] -= amount
            for t in range(1, size):
                if up[t - 1] != down[t - 1] or up[t] != down[t]:
                    transition[up[t - 1], up[t]] -= amount
                    transition[down[t - 1], down[t]] += amount
                    pair_scores[up[t - 1], up[t]] = transition[up[t - 1], up[t]]
                    pair_scores[down[t - 1], down[t]] = transition[down[t - 1], down[t]]

            # emission scores after the move, for the next step
            if count > tags:  # the next visit recomputes scores, at a lower cost than their change
                break
            for x in range(count if step + 1 < steps else 0):
                t = differ[x]
                first = (start + t) * d if is_dense else indptr[start + t]
                last = first + d if is_dense else indptr[start + t + 1]
                for p in range(first, last):
                    row[p - first if is_dense else indices[p]] = values[p]
                for r in range(size):
                    dot = 0.0
                    a = (start + r) * d if is_dense else indptr[start + r]
                    b = a + d if is_dense else indptr[start + r + 1]
                    for p in range(a, b):
                        dot += values[p] * row[p - a if is_dense else indices[p]]
                    unary[r, up[t]] -= amount * dot
                    unary[r, down[t]] += amount * dot
                for p in range(first, last):
                    row[p - first if is_dense else indices[p]] = 0.0

        # the emission weights follow at the end of the visit
        if gaps[s] <= 0.0:
            continue
        for t in range(size):
            first = (start + t) * d if is_dense else indptr[start + t]
            last = first + d if is_dense else indptr[start + t + 1]
            is_still = True
            for j in range(tags):
                if change[t, j] != 0.0:
                    is_still = False
            if is_still:
                continue
            moves = change[t]
            for p in range(first, last):
                v = values[p]
                if v != 0.0:
                    part = weights[p - first] if is_dense else weights[indices[p]]
                    for j in range(tags):
                        part[j] -= v * moves[j]
    return total

"""The best path of every chain, the best few, and sums along given ones: ``unary[token, tag]``, cut into sequences by
``starts``, and ``transition[first, second]``.

A score of −inf rules a tag or a pair of tags out. Sequences have at least one token. Where several states share a tag,
taggings are ranked by their best path of states.
"""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def viterbi(
    unary: Array,
    starts: Array,
    transition: Array,
    loss: Array,
    column: Array,
    given: Array,
    possible: Array,
    code: Array,
    value: Array,
) -> None:
    """The best tags of every sequence by score plus ``loss[column[token], tag]``. Overwrites ``unary``.

    Where ``given`` is not empty, and ≥ 0, a token has one of the tags of ``possible[given[token]]``. Only maxima go
    forward, four tags at a time so that they stay in registers. The path back looks for the tags that attain them: K
    comparisons per token instead of K² pointers. Of tags that tie, the first is taken.
    """
    k = transition.shape[0]
    best = np.empty(k)
    into = np.empty((k, k))  # into[second, first]
    for i in range(k):
        for j in range(k):
            into[j, i] = transition[i, j]
    for s in range(starts.size - 1):
        first, last = starts[s], starts[s + 1]
        for t in range(first, last):
            row = unary[t]
            extra = loss[column[t]]
            for j in range(k):
                row[j] += extra[j]
            if given.size and given[t] >= 0:
                fits = possible[given[t]]
                for j in range(k):
                    if not fits[j]:
                        row[j] = -np.inf
            if t == first:
                continue
            before = unary[t - 1]
            for j in range(k):
                best[j] = -np.inf
            i = 0
            while i + 4 <= k:
                a, b, c, d = before[i], before[i + 1], before[i + 2], before[i + 3]
                from_a, from_b, from_c, from_d = transition[i], transition[i + 1], transition[i + 2], transition[i + 3]
                for j in range(k):
                    u = a + from_a[j]
                    v = b + from_b[j]
                    x = c + from_c[j]
                    y = d + from_d[j]
                    u = v if v > u else u
                    x = y if y > x else x
                    u = x if x > u else u
                    best[j] = u if u > best[j] else best[j]
                i += 4
            while i < k:
                a = before[i]
                from_a = transition[i]
                for j in range(k):
                    u = a + from_a[j]
                    best[j] = u if u > best[j] else best[j]
                i += 1
            for j in range(k):
                row[j] += best[j]
        row = unary[last - 1]
        tag = 0
        for j in range(1, k):
            if row[j] > row[tag]:
                tag = j
        value[s] = row[tag]
        code[last - 1] = tag
        for t in range(last - 1, first, -1):
            before = unary[t - 1]
            ways = into[tag]
            for i in range(k):
                best[i] = before[i] + ways[i]
            a = best[0]
            b, c, d = a, a, a  # four chains of comparisons run side by side
            i = 0
            while i + 4 <= k:
                u, v, x, y = best[i], best[i + 1], best[i + 2], best[i + 3]
                a = u if u > a else a
                b = v if v > b else b
                c = x if x > c else c
                d = y if y > d else d
                i += 4
            while i < k:
                a = best[i] if best[i] > a else a
                i += 1
            a = b if b > a else a
            c = d if d > c else c
            a = c if c > a else a
            tag = 0
            while best[tag] < a:
                tag += 1
            code[t - 1] = tag


@kernel
def path_scores(unary: Array, starts: Array, transition: Array, code: Array, value: Array) -> None:
    """The score of one given path per sequence, added up in the order of `viterbi`."""
    for s in range(starts.size - 1):
        total = unary[starts[s], code[starts[s]]]
        for t in range(starts[s] + 1, starts[s + 1]):
            total = unary[t, code[t]] + (total + transition[code[t - 1], code[t]])
        value[s] = total


@kernel
def add_pairs(code: Array, starts: Array, coef: Array, out: Array) -> None:
    """``out[first, second] += coef[i]`` for every pair of neighbouring tags of sequence i."""
    for s in range(starts.size - 1):
        for t in range(starts[s] + 1, starts[s + 1]):
            out[code[t - 1], code[t]] += coef[s]


@kernel
def best_paths(unary: Array, starts: Array, transition: Array, code: Array, value: Array) -> None:
    """The best few paths of every sequence, as many as ``value`` has columns, the best first (Viterbi with lists).

    ``code[token, rank]`` and ``value[sequence, rank]``; −1 and −inf where a sequence has fewer paths. Every tag of a
    token keeps the best paths to it; those of the next token are merged from them. The best path is that of `viterbi`,
    ties included, and scores are added up in its order.
    """
    k, m = transition.shape[0], value.shape[1]
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    ways = np.empty((longest, k, m))  # scores of the best paths to a tag, −inf past the last
    came = np.empty((longest, k, m), np.int64)  # the tag before and the rank there, as tag · m + rank
    taken = np.empty(k, np.int64)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        for j in range(k):
            for r in range(m):
                ways[0, j, r] = -np.inf
                came[0, j, r] = -1
            ways[0, j, 0] = unary[first, j]
        for t in range(1, size):
            for j in range(k):
                for i in range(k):
                    taken[i] = 0
                for r in range(m):
                    tag, best = -1, -np.inf
                    for i in range(k):
                        if taken[i] < m:
                            v = ways[t - 1, i, taken[i]] + transition[i, j]
                            if v > best:
                                tag, best = i, v
                    if tag < 0:
                        ways[t, j, r] = -np.inf
                        came[t, j, r] = -1
                    else:
                        ways[t, j, r] = unary[first + t, j] + best
                        came[t, j, r] = tag * m + taken[tag]
                        taken[tag] += 1
        for j in range(k):
            taken[j] = 0
        for r in range(m):
            tag, best = -1, -np.inf
            for j in range(k):
                if taken[j] < m and ways[size - 1, j, taken[j]] > best:
                    tag, best = j, ways[size - 1, j, taken[j]]
            value[s, r] = best
            if tag < 0:
                for t in range(size):
                    code[first + t, r] = -1
                continue
            entry = tag * m + taken[tag]
            taken[tag] += 1
            for t in range(size - 1, -1, -1):
                code[first + t, r] = entry // m
                entry = came[t, entry // m, entry % m]


@kernel
def best_taggings(
    unary: Array, starts: Array, transition: Array, tag_of: Array, n_tags: int, code: Array, value: Array
) -> None:
    """The best few taggings of every sequence, the best first; the score of one is that of its best path of states.

    ``code[token, rank]`` are tags; −1 and −inf where a sequence has fewer taggings. Every tagging that is found cuts
    what is left of its part of the search into taggings that agree with it up to some token and differ there. The best
    of each such part follows from the best paths on from every state, found once, and from the best paths along the
    tags before (Nilsson & Goldberger 2001). O(taggings · tokens · states²).
    """
    k, m = transition.shape[0], value.shape[1]
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    on = np.empty((longest, k))  # the best score of what follows a state
    after = np.empty((longest, k), np.int64)  # and the next state on that path
    score = np.empty((m, longest))  # the best of the part that leaves tagging r at token t, −inf for none
    leaves = np.empty((m, longest), np.int64)  # its state at that token
    barred = np.empty((m, longest, n_tags), np.bool_)  # the tags that it must not have there
    now, before = np.empty(k), np.empty(k)
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        for j in range(k):
            on[size - 1, j] = 0.0
        for t in range(size - 2, -1, -1):
            for i in range(k):
                best, come = -np.inf, 0
                for j in range(k):
                    v = transition[i, j] + (unary[first + t + 1, j] + on[t + 1, j])
                    if v > best:
                        best, come = v, j
                on[t, i] = best
                after[t, i] = come
        for r in range(m):
            # the best part that is left: where it leaves which tagging; the first one leaves none
            parent, fork, state = -1, 0, -1
            top = -np.inf
            if r == 0:
                for j in range(k):
                    if unary[first, j] + on[0, j] > top:
                        top, state = unary[first, j] + on[0, j], j
            else:
                for q in range(r):
                    for t in range(size):
                        if score[q, t] > top:
                            top, parent, fork, state = score[q, t], q, t, leaves[q, t]
            value[s, r] = top
            if state < 0:
                for t in range(size):
                    code[first + t, r] = -1
                    score[r, t] = -np.inf
                continue
            for t in range(size):
                if t < fork:
                    code[first + t, r] = code[first + t, parent]
                    score[r, t] = -np.inf  # these parts belong to the parent
                    continue
                code[first + t, r] = tag_of[state]
                if t + 1 < size:
                    state = after[t, state]
                for y in range(n_tags):
                    barred[r, t, y] = t == fork and parent >= 0 and barred[parent, fork, y]
                barred[r, t, code[first + t, r]] = True
            if parent >= 0:
                score[parent, fork] = -np.inf  # now cut into parts of this tagging
            # the best of each part: along its tags up to there, past the barred ones, and on
            for t in range(size):
                own = code[first + t, r]
                best, come = -np.inf, -1
                for j in range(k):
                    now[j] = -np.inf
                    if t == 0:
                        now[j] = unary[first, j]
                    elif tag_of[j] == own or t >= fork:
                        for i in range(k):
                            if before[i] > -np.inf and before[i] + transition[i, j] > now[j]:
                                now[j] = before[i] + transition[i, j]
                        now[j] += unary[first + t, j]
                    if t >= fork and not barred[r, t, tag_of[j]] and now[j] + on[t, j] > best:
                        best, come = now[j] + on[t, j], j
                if t >= fork:
                    score[r, t] = best
                    leaves[r, t] = come
                for j in range(k):
                    before[j] = now[j] if tag_of[j] == own else -np.inf

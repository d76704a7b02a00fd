"""The best few transcripts of every recording, each in its best alignment."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.problems.transcript.automata import Automata

FREE = -1
"""The name of an empty place in a list."""


@kernel
def best_few_walks(
    unary: Array,
    starts: Array,
    automata: Automata,
    which: Array,
    steps: Array,
    factor: Array,
    n_per_label: int,
    silence: int,
    n_inside: int,
    code: Array,
    value: Array,
) -> None:
    """As `best_walks`, for the best paths of as many different transcripts as ``value`` has columns, the best first.

    Every node keeps the best paths to it with different labels so far, known by a name that is a hash of them: two
    transcripts of one recording hardly ever share one. What goes on from a node does not depend on the labels before,
    so the best transcripts are among those that are kept (Chow & Schwartz 1989). ``silence`` is the number of the state
    of silence, and steps from the number ``n_inside`` lead from one segment to the next. −1 and −inf where a recording
    has fewer transcripts.
    """

    def insert_path(scores: Array, names: Array, links: Array, score: float, name: int, link: int) -> None:
        # into a list sorted by score, the highest first; of two paths with one name the higher stays
        at = scores.size - 1
        for i in range(scores.size):
            if names[i] == name:
                at = i
                break
        if score <= scores[at]:
            return
        while at > 0 and score > scores[at - 1]:
            scores[at], names[at], links[at] = scores[at - 1], names[at - 1], links[at - 1]
            at -= 1
        scores[at], names[at], links[at] = score, name, link

    def write_label(name: int, state: int) -> int:
        # the name of one label more
        if state == silence:
            return name
        mixed = (name ^ (name >> 29)) * 6364136223846793005 + (state // n_per_label + 1) * 1442695040888963407
        return (mixed ^ (mixed >> 31)) & 0x7FFFFFFFFFFFFFFF

    k, room, longest = value.shape[1], 1, 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
        room = max(room, automata.starts[which[s] + 1] - automata.starts[which[s]])
    now, before = np.empty((room, k)), np.empty((room, k))
    names, old = np.empty((room, k), dtype=np.int64), np.empty((room, k), dtype=np.int64)
    links = np.empty((longest, room, k), dtype=np.int32)  # the node before, counted in its automaton, and its place
    top, top_names, top_links = np.empty(k), np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int32)
    for s in range(starts.size - 1):
        begin, size = starts[s], starts[s + 1] - starts[s]
        origin = automata.starts[which[s]]
        n = automata.starts[which[s] + 1] - origin
        for t in range(size):
            now, before, names, old = before, now, old, names
            for j in range(n):
                node = origin + j
                state = automata.state[node]
                now[j], names[j], links[t, j] = -np.inf, FREE, 0
                if t < automata.low[node] or t >= automata.high[node]:
                    continue
                if t == 0:
                    if automata.first[node]:
                        now[j, 0], names[j, 0] = unary[begin, state], write_label(0, state)
                    continue
                for e in range(automata.edge_starts[node], automata.edge_starts[node + 1]):
                    source = automata.source[e]
                    score = steps[automata.score[e]] + unary[begin + t, state]
                    is_new = automata.score[e] >= n_inside
                    for r in range(k):
                        v = before[source, r] + score
                        if v <= now[j, k - 1]:
                            break
                        name = write_label(old[source, r], state) if is_new else old[source, r]
                        insert_path(now[j], names[j], links[t, j], v, name, source * k + r)
        top[:], top_names[:] = -np.inf, FREE
        for j in range(n):
            end = automata.final[origin + j]
            if end > -np.inf:
                for r in range(k):
                    v = now[j, r] + factor[s] * end
                    if v <= top[k - 1]:
                        break
                    insert_path(top, top_names, top_links, v, names[j, r], j * k + r)
        for r in range(k):
            value[s, r] = top[r]
            if top[r] == -np.inf:
                code[begin : begin + size, r] = -1
                continue
            at = top_links[r]
            for t in range(size - 1, -1, -1):
                code[begin + t, r] = automata.state[origin + at // k]
                at = links[t, at // k, at % k]

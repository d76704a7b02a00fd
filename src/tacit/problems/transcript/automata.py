"""Automata over frames: which states may follow which, for all transcripts or for one.

An automaton is written as segments, one for a label or a silence, and arcs between them. `expand` replaces the segment
of a label by its states from left to right. A path of as many nodes as there are frames, from a first node to one that
may end, is one alignment of one transcript; no two paths have the same states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

FOREVER = np.iinfo(np.int64).max


class Layout(NamedTuple):
    """States and steps that all transcripts share.

    The states of the first label come first; silence, if there is any, is the last state, and its label is the number
    of labels. The score of a step is one number: ``state · n_steps + step`` says which inside a label, and pairs of
    neighbouring segments follow.
    """

    n_labels: int
    n_per_label: int
    skips: int
    has_silence: bool

    @property
    def n_states(self) -> int:
        return self.n_labels * self.n_per_label + self.has_silence

    @property
    def n_segments(self) -> int:
        """Labels, and silence if there is any."""
        return self.n_labels + self.has_silence

    @property
    def n_steps(self) -> int:
        """Steps inside a label: to stay, to go to the next state, to pass over one, ..."""
        return 1 + min(1 + self.skips, self.n_per_label - 1)

    @property
    def n_scores(self) -> int:
        """Scores of steps: those inside labels and those between segments."""
        return self.n_states * self.n_steps + self.n_segments**2

    @property
    def least_frames(self) -> int:
        """Frames that a label takes at least.

        >>> Layout(2, 5, 1, True).least_frames
        3
        """
        return 1 + -(-(self.n_per_label - 1) // (1 + self.skips))

    def steps(self) -> Array:
        """(states, states): the number of the score of a step from one state to another, −1 where there is none."""
        label, place = np.divmod(np.arange(self.n_states), self.n_per_label)
        step = place[None, :] - place[:, None]
        inside = (label[:, None] == label[None, :]) & (step >= 0) & (step < self.n_steps)
        is_last = (place == self.n_per_label - 1) | (label == self.n_labels)
        can_leave = is_last[:, None] & (place == 0)[None, :]
        if self.n_per_label == 1:
            can_leave &= label[:, None] != label[None, :]
        if self.has_silence:
            can_leave[-1, -1] = False
        within = np.arange(self.n_states)[:, None] * self.n_steps + step
        between = self.n_states * self.n_steps + label[:, None] * self.n_segments + label[None, :]
        return np.where(inside, within, np.where(can_leave, between, -1))


class Segments(NamedTuple):
    """Automata as segments, all in one table.

    ``starts`` cuts the segments into automata. ``label`` is the number of labels for silence. A path may begin in a
    ``first`` segment and end in one whose ``final`` score is above −inf, which is added. A segment may be visited
    from frame ``low`` to frame ``high`` (exclusive). ``source[arc_starts[j]:arc_starts[j + 1]]`` are the segments that
    j may follow, counted from the first of their automaton.
    """

    starts: Array
    label: Array
    first: Array
    final: Array
    low: Array
    high: Array
    arc_starts: Array
    source: Array


class Automata(NamedTuple):
    """Automata as nodes, one per state of a segment; ``score`` numbers the scores of steps as `Layout` does."""

    starts: Array
    state: Array
    first: Array
    final: Array
    low: Array
    high: Array
    edge_starts: Array
    source: Array
    score: Array


def free_segments(layout: Layout) -> Segments:
    """One automaton of all transcripts with at least one label.

    Silence before the first label and silence after a label are two segments, since no path may end in the first.
    """
    n = layout.n_labels
    label = np.arange(n)
    if not layout.has_silence:
        sources = [_find_sources(label, j, layout) for j in range(n)]
        return link(np.array([0, n]), label, np.ones(n, dtype=bool), np.zeros(n), sources)
    label = np.append(label, [n, n])
    sources = [np.append(_find_sources(label[:n], j, layout), [n, n + 1]) for j in range(n)]
    sources += [np.zeros(0, dtype=np.int64), np.arange(n)]
    final = np.zeros(n + 2)
    final[n] = -np.inf
    return link(np.array([0, n + 2]), label, np.arange(n + 2) <= n, final, sources)


def tree_segments(layout: Layout, lexicon: list[Array]) -> tuple[Segments, Array]:
    """One automaton of the listed transcripts, as a tree of prefixes; and the entry that ends in each segment, or −1.

    ``final`` is 0 where an entry ends.
    """
    label: list[int] = []
    parent: list[int] = []
    ends: list[int] = []
    children: list[dict[int, int]] = []
    roots: dict[int, int] = {}
    for number, entry in enumerate(lexicon):
        level, above = roots, -1
        for one in entry.tolist():
            if one not in level:
                level[one] = len(label)
                label.append(one)
                parent.append(above)
                ends.append(-1)
                children.append({})
            above = level[one]
            level = children[above]
        ends[above] = number
    n = len(label)
    silence = {above: n + 1 + above for above in range(-1, n)} if layout.has_silence else {}
    sources: list[list[int]] = []
    for j in range(n):
        own = [] if parent[j] < 0 or (layout.n_per_label == 1 and label[parent[j]] == label[j]) else [parent[j]]
        sources.append(own + ([silence[parent[j]]] if silence else []))
    if silence:
        sources += [[]] + [[j] for j in range(n)]
    labels = np.array(label + [layout.n_labels] * len(silence), dtype=np.int64)
    entry_of = np.array(ends + ([-1, *ends] if silence else []), dtype=np.int64)
    first = np.array([above < 0 for above in parent] + [j == 0 for j in range(len(silence))], dtype=bool)
    final = np.where(entry_of >= 0, 0.0, -np.inf)
    found = link(np.array([0, labels.size]), labels, first, final, [np.array(s, dtype=np.int64) for s in sources])
    return found, entry_of


def link(starts: Array, label: Array, first: Array, final: Array, sources: list[Array]) -> Segments:
    """Segments that may be visited at all frames, with these arcs into each."""
    arc_starts = np.concatenate([[0], np.cumsum([len(s) for s in sources])]).astype(np.int64)
    low, high = np.zeros(label.size, dtype=np.int64), np.full(label.size, FOREVER)
    source = np.concatenate([np.zeros(0, dtype=np.int64), *sources])
    return Segments(np.asarray(starts, dtype=np.int64), label, first, final, low, high, arc_starts, source)


def _find_sources(label: Array, j: int, layout: Layout) -> Array:
    """The labels that label j may follow at once: with one state, not itself, which would look like staying."""
    return np.flatnonzero(label != j) if layout.n_per_label == 1 else np.arange(label.size)


def line_segments(layout: Layout, labels: Array, offsets: Array) -> Segments:
    """One automaton per transcript: its labels from left to right, silences between them where they exist."""
    sizes = np.diff(offsets)
    per = 1 + layout.has_silence
    starts = np.concatenate([[0], np.cumsum(per * sizes + layout.has_silence)]).astype(np.int64)
    total = int(starts[-1])
    label, first, final = np.full(total, layout.n_labels), np.zeros(total, dtype=bool), np.full(total, -np.inf)
    arc_starts, source = np.zeros(total + 1, dtype=np.int64), np.zeros(2 * total, dtype=np.int64)
    fill_lines(offsets, labels, starts, layout.n_per_label == 1, per, label, first, final, arc_starts, source)
    low, high = np.zeros(total, dtype=np.int64), np.full(total, FOREVER)
    return Segments(starts, label, first, final, low, high, arc_starts, source[: arc_starts[-1]])


@kernel
def fill_lines(
    offsets: Array,
    labels: Array,
    starts: Array,
    is_single: bool,
    per: int,
    label: Array,
    first: Array,
    final: Array,
    arc_starts: Array,
    source: Array,
) -> None:
    """Fill the arrays of `line_segments`; ``per`` is 2 with silences, 1 without."""
    count = 0
    for i in range(offsets.size - 1):
        begin = starts[i]
        size = starts[i + 1] - begin
        own = labels[offsets[i] : offsets[i + 1]]
        for j in range(size):
            is_label = per == 1 or j % 2 == 1
            m = j if per == 1 else j // 2  # the label, or the one behind the silence
            if is_label:
                label[begin + j] = own[m]
            first[begin + j] = m == 0
            if m == own.size - (1 if is_label else 0):
                final[begin + j] = 0.0
            if is_label and m > 0 and not (is_single and own[m] == own[m - 1]):
                source[count] = j - per
                count += 1
            if per == 2 and j > 0:
                source[count] = j - 1
                count += 1
            arc_starts[begin + j + 1] = count


def expand(layout: Layout, segments: Segments) -> Automata:
    """The automata of states: every segment of a label becomes its states from left to right."""
    k = layout.n_per_label
    sizes = np.where(segments.label == layout.n_labels, 1, k)
    begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    per_node = np.minimum(np.arange(k), layout.n_steps - 1) + 1
    n_edges = int(np.where(sizes == 1, 1, per_node.sum()).sum() + segments.source.size)
    total = int(begins[-1])
    segment = np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(total) - begins[segment]
    is_last = place == sizes[segment] - 1
    state = segments.label[segment] * k + place
    edges = np.zeros(total + 1, dtype=np.int64), np.zeros(n_edges, dtype=np.int32), np.zeros(n_edges, dtype=np.int32)
    numbers = k, layout.n_states, layout.n_steps, layout.n_segments
    expand_edges(segments, begins, *numbers, *edges)
    return Automata(
        begins[segments.starts],
        state,
        segments.first[segment] & (place == 0),
        np.where(is_last, segments.final[segment], -np.inf),
        segments.low[segment],
        segments.high[segment],
        *edges,
    )


@kernel
def expand_edges(
    segments: Segments,
    begins: Array,
    n_per_label: int,
    n_states: int,
    n_steps: int,
    n_segments: int,
    edge_starts: Array,
    source: Array,
    score: Array,
) -> None:
    """Fill the edges of `expand`, those into every node in the order of their sources inside its segment, then arcs."""
    count = 0
    base = n_states * n_steps
    for a in range(segments.starts.size - 1):
        origin = begins[segments.starts[a]]
        for j in range(segments.starts[a], segments.starts[a + 1]):
            size = begins[j + 1] - begins[j]
            label = segments.label[j]
            for p in range(size):
                node = begins[j] + p
                for step in range(min(p, n_steps - 1), -1, -1):
                    source[count] = node - step - origin
                    score[count] = (label * n_per_label + p - step) * n_steps + step
                    count += 1
                if p == 0:
                    for arc in range(segments.arc_starts[j], segments.arc_starts[j + 1]):
                        other = segments.starts[a] + segments.source[arc]
                        source[count] = begins[other + 1] - 1 - origin
                        score[count] = base + segments.label[other] * n_segments + label
                        count += 1
                edge_starts[node + 1] = count

"""Recordings packed for inference: scores, automata of transcripts and of edits, what is known of alignments."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows, positions_of, starts_of
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.oracle import TARGET, Assignment, Schema
from tacit.oracle.parts import Nouns
from tacit.problems.chain.tokens import TokenOracle
from tacit.problems.transcript.automata import (
    Automata,
    Layout,
    Segments,
    expand,
    free_segments,
    line_segments,
    tree_segments,
)
from tacit.problems.transcript.edits import edit_distances, edit_segments, join_segments
from tacit.problems.transcript.walks import best_walks, sum_walks

MEAN_ROUNDS = 10
"""Rounds of segmental k-means before a fit."""


class Known(NamedTuple):
    """What is known of alignments.

    Parameters
    ----------
    states : (frames,) the state of every frame, −1 where unknown
    windows : (labels of all transcripts, 4) the first and the last frame where each may begin, and where it may end
        (exclusive); −1 where unknown
    """

    states: Array | None
    windows: Array | None


class PackedTranscripts(TokenOracle):
    """What inference reads: scores of frames and steps, automata, and what is known; a code is a state per frame.

    Parameters
    ----------
    sequences : features of frames, those of shards read block by block
    schema : labels and dimensions
    layout : states and steps
    lexicon : the transcripts that may be predicted, as positions of labels; None for all
    max_edits : edits that the loss counts
    labels, label_offsets : the true transcripts, the number of labels for one never seen; None when predicting
    known : what is known of their alignments
    """

    nouns = Nouns("Transcript", "recordings", "frame")

    def __init__(
        self,
        sequences: Ragged | Shards,
        schema: Schema,
        *,
        layout: Layout,
        lexicon: list[Array] | None = None,
        max_edits: int = 1,
        labels: Array | None = None,
        label_offsets: Array | None = None,
        known: Known | None = None,
    ) -> None:
        self.layout = layout
        self.n_states = layout.n_states
        super().__init__(sequences, schema, self.n_states, labels)
        self.label_offsets = label_offsets
        self.max_edits = max_edits
        self._known = Known(None, None) if known is None else known
        self._steps_of = layout.steps()
        self.lexicon = lexicon
        self._entries: Array | None = None
        segments = free_segments(layout)
        if lexicon is not None:
            segments, self._entries = tree_segments(layout, lexicon)
        self._all_segments = segments
        self._all = expand(layout, segments)
        self._kept: dict[str, Any] = {}

    def _count(self, rows: Rows) -> int:
        return int(self._starts(rows).size - 1)

    def _transcripts(self, rows: Rows) -> tuple[Array, Array]:
        """The true labels of these rows, and where those of each begin."""
        if self._labels is None or self.label_offsets is None:
            self._true_labels(rows)  # which raises
        assert self.label_offsets is not None
        assert self._labels is not None
        if rows is None:
            return self._labels, self.label_offsets
        return self._labels[positions_of(self.label_offsets, rows)], starts_of(self.label_offsets, rows)

    def _most(self, sizes: Array) -> Array:
        """The most edits that the loss of transcripts of these lengths counts."""
        return np.full(sizes.size, self.max_edits)

    def _per_edit(self, rows: Rows, factor: Array | None) -> Array:
        """What an edit costs, or where entries are listed what their loss is multiplied with."""
        sizes = np.diff(self._transcripts(rows)[1])
        return (1.0 if factor is None else factor) / sizes

    def _lines(self, is_known: bool = True) -> Automata:
        """The automaton of every true transcript; without what is known of its timing, unless ``is_known``."""
        windows = self._known.windows if is_known else None
        name = "lines" if windows is None else "windows"
        if name not in self._kept:
            labels, offsets = self._transcripts(None)
            if (labels >= self.n_labels).any():
                i = int(np.searchsorted(offsets, np.argmax(labels >= self.n_labels), side="right")) - 1
                raise ValueError(f"y[{i}] has a label that training never saw; the labels are {self.classes.tolist()}")
            segments = line_segments(self.layout, labels, offsets)
            if windows is not None:
                segments = limit_segments(segments, windows, offsets, self.layout.has_silence)
            self._kept[name] = expand(self.layout, segments)
        found: Automata = self._kept[name]
        return found

    def _with_edits(self, rows: Rows) -> tuple[Automata, Array]:
        """Automata whose final scores are edits, and that of every row: one per transcript that occurs."""
        if "edits" not in self._kept:
            labels, offsets = self._transcripts(None)
            if self.lexicon is not None:
                kept, which = self._listed_with_edits(labels, offsets)
            else:
                numbers: dict[tuple[int, ...], int] = {}
                cuts = itertools.pairwise(offsets)
                which = np.array([numbers.setdefault(tuple(labels[a:b].tolist()), len(numbers)) for a, b in cuts])
                transcripts = [np.array(one, dtype=np.int64) for one in numbers]
                kept = join_segments([edit_segments(self.layout, one, self.max_edits) for one in transcripts])
            self._kept["edits"] = expand(self.layout, kept), which
        automata, which = self._kept["edits"]
        return automata, which[slice(None) if rows is None else rows]

    def _listed_with_edits(self, labels: Array, offsets: Array) -> tuple[Segments, Array]:
        assert self.lexicon is not None
        assert self._entries is not None
        flat = np.concatenate(self.lexicon)
        cuts = np.concatenate([[0], np.cumsum([one.size for one in self.lexicon])]).astype(np.int64)
        numbers: dict[tuple[int, ...], int] = {}
        parts: list[Segments] = []
        which = np.empty(offsets.size - 1, dtype=np.int64)
        for i in range(which.size):
            own = labels[offsets[i] : offsets[i + 1]]
            key = tuple(own.tolist())
            if key not in numbers:
                numbers[key] = len(parts)
                repeated = np.arange(cuts.size) * own.size
                edits = edit_distances(np.tile(own, cuts.size - 1), repeated, flat, cuts)
                limited = np.minimum(edits, self.max_edits)
                is_end = self._entries >= 0
                final = np.where(is_end, limited[self._entries].astype(float), -np.inf)
                parts.append(self._all_segments._replace(final=final))
            which[i] = numbers[key]
        return join_segments(parts), which

    def _known_states(self, rows: Rows) -> Array | None:
        return None if self._known.states is None else self._known.states[self._positions(rows)]

    def _agrees(self, code: Array, rows: Rows) -> Array:
        """Which rows of a code have the true transcript and what is known of its alignment."""
        value = np.empty(self._count(rows))
        starts = self._starts(rows)
        nothing, steps = np.zeros((code.size, self.n_states)), np.zeros(self.layout.n_scores)
        path = np.empty(code.size, dtype=np.int64)
        known, factor = self._known_states(rows), np.zeros(value.size)
        code = code.astype(np.int64)
        best_walks(nothing, starts, self._lines(), self._numbers(rows), steps, code, factor, path, value)
        fits = value > -np.inf
        if known is not None:
            fits &= np.logical_and.reduceat((known < 0) | (known == code), starts[:-1])
        return fits

    def _complete(self, affinity: Array) -> Array:
        """The alignment of every true transcript with the highest sum of these numbers."""
        code, value = np.empty(len(affinity), dtype=np.int64), np.empty(self.n_samples)
        known = self._known_states(None)
        known = np.empty(0, dtype=np.int64) if known is None else known
        steps = np.zeros(self.layout.n_scores)
        factor = np.zeros(self.n_samples)
        numbers = self._numbers(None)
        best_walks(affinity, self.offsets, self._lines(), numbers, steps, known, factor, code, value)
        return code.astype(self._code_type)

    def _best(
        self,
        w: Array,
        rows: Rows,
        automata: Automata,
        which: Array,
        known: Array | None = None,
        factor: Array | None = None,
    ) -> Assignment:
        starts = self._starts(rows)
        code, value = np.zeros(int(starts[-1]), dtype=np.int64), np.empty(starts.size - 1)
        factor = np.zeros(value.size) if factor is None else factor
        steps, nothing = self._step_scores(w), np.empty(0, dtype=np.int64)
        for out, frames, part, cuts in self._blocks(rows):
            own = nothing if known is None else known[frames]
            unary = self._unary(w, part)
            best_walks(unary, cuts, automata, which[out], steps, own, factor[out], code[frames], value[out])
        return Assignment(code.astype(self._code_type), value)

    def _sum(
        self,
        w: Array,
        rows: Rows,
        automata: Automata,
        which: Array,
        coef: Array,
        power: float,
        nodes: Array,
        step_sums: Array,
        known: Array | None = None,
    ) -> None:
        """Add probabilities of states, times the coefficients, to ``nodes``."""
        steps, nothing = power * self._step_scores(w), np.empty(0, dtype=np.int64)
        for out, frames, part, cuts in self._blocks(rows):
            own = nothing if known is None else known[frames]
            log, factor = np.empty(cuts.size - 1), np.zeros(cuts.size - 1)
            unary = power * self._unary(w, part)
            given = automata, which[out], steps, own, factor, coef[out]
            sum_walks(unary, cuts, *given, log, nodes[frames], step_sums)

    def _add_expected(
        self,
        w: Array,
        rows: Rows,
        automata: Automata,
        which: Array,
        coef: Array,
        power: float,
        blocks: tuple[Array, Array],
        known: Array | None = None,
        factor: Array | None = None,
    ) -> Array:
        """Log-sums over the paths of these automata; expected features times the coefficients are added."""
        emission, step_sums = blocks
        steps, nothing = power * self._step_scores(w), np.empty(0, dtype=np.int64)
        log = np.empty(coef.size)
        factor = np.zeros(coef.size) if factor is None else factor
        has_features = bool(coef.any())
        for out, frames, part, cuts in self._blocks(rows):
            own = nothing if known is None else known[frames]
            unary = self._unary(w, part)
            if power != 1.0:
                unary *= power
            nodes = np.zeros(unary.shape if has_features else (0, 0))
            given = automata, which[out], steps, own, factor[out], np.ascontiguousarray(coef[out])
            sum_walks(unary, cuts, *given, log[out], nodes, step_sums)
            if has_features:
                self._add_rows(nodes, part, emission)
        return log

    def _zeros(self) -> tuple[Array, Array]:
        return np.zeros((self.n_states, self.table.shape[1])), np.zeros(self.layout.n_scores)

    def _flat(self, emission: Array, steps: Array) -> Array:
        """The flat vector of sums by state and by step."""
        out = np.empty(self.n_params)
        views = self._views(out)
        width, cut = views["emission"].shape[1], self.n_states * self.layout.n_steps
        views["emission"][:] = emission[:, :width]
        views["step"][:] = steps[:cut].reshape(views["step"].shape)
        views["pair"][:] = steps[cut:].reshape(views["pair"].shape)
        if "intercept" in views:
            views["intercept"][:] = emission[:, width]
        return out

    def _step_scores(self, w: Array) -> Array:
        views = self._views(w)
        return np.concatenate([views["step"].ravel(), views["pair"].ravel()]).astype(np.float64)

    def _unary(self, w: Array, rows: Rows) -> Array:
        """(frames, states): the scores of states, a fresh table in double precision."""
        views = self._views(w)
        weights = views["emission"]
        if "intercept" in views:
            weights = np.hstack([weights, views["intercept"][:, None]])
        return self._multiply(weights.T.astype(self._precision, copy=False), rows)


def inside_frames(starts: Array) -> Array:
    """Which frames are not the first of their recording."""
    inside = np.ones(int(starts[-1]), dtype=bool)
    inside[starts[:-1]] = False
    return inside


def limit_segments(segments: Segments, windows: Array, offsets: Array, has_silence: bool) -> Segments:
    """The same lines, every label only where it may be, and others not where it must be.

    ``windows[label]`` has the first and the last frame where it may begin, and those where it may end (exclusive); −1
    where they are unknown.
    """
    low, high = segments.low.copy(), segments.high.copy()
    per = 1 + has_silence
    for i in np.flatnonzero(np.logical_or.reduceat((windows >= 0).any(axis=1), offsets[:-1])).tolist():
        begin, end = int(segments.starts[i]), int(segments.starts[i + 1])
        for m, (may, must, rests, over) in enumerate(windows[offsets[i] : offsets[i + 1]].tolist()):
            if may == TARGET:
                continue
            own = begin + per * m + has_silence
            low[own], high[own] = max(low[own], may), min(high[own], over)
            low[own + 1 : end] = np.maximum(low[own + 1 : end], rests)
            high[begin:own] = np.minimum(high[begin:own], must)
    return segments._replace(low=low, high=high)

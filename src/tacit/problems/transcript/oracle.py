"""Inference for transcripts: the best one, the best alignment of a given one, the best by score plus edits; sums."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, checksum
from tacit.data.labels import find_labels
from tacit.data.ragged import Ragged
from tacit.oracle import Assignment
from tacit.oracle.capabilities import Expectations
from tacit.oracle.cells import one_coef_each, spread_coefficients
from tacit.oracle.entropy_search import SearchesEntropy, powers_of
from tacit.oracle.slack_search import LossLevels
from tacit.problems.row_sums import sum_rows
from tacit.problems.transcript.automata import expand, line_segments
from tacit.problems.transcript.edits import edit_distances
from tacit.problems.transcript.packed import MEAN_ROUNDS, Known, PackedTranscripts, inside_frames
from tacit.problems.transcript.reading import read_transcripts
from tacit.problems.transcript.walks import best_few_walks, sum_walks

MAX_LINKS = 1 << 28
"""Links that the lists of the best few transcripts of one recording may have (1 GB)."""


class TranscriptOracle(SearchesEntropy, PackedTranscripts):
    """Best transcripts and alignments, and sums over them; a code is one state per frame.

    The parameters are those of `PackedTranscripts`. O(frames · (states · features + edges)) per pass.
    """

    # What every learner asks for

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._best(w, rows, self._all, np.zeros(self._count(rows), dtype=np.int64))

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        automata, which = self._with_edits(rows)
        return self._best(w, rows, automata, which, factor=self._per_edit(rows, factor))

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        best = self._best(w, rows, self._lines(), self._numbers(rows), known=self._known_states(rows))
        if prefer is None:
            return best
        prefer = np.asarray(prefer)
        value = self.score(w, np.maximum(prefer, 0), rows)  # which checks the code
        is_given = np.logical_and.reduceat(prefer >= 0, self._starts(rows)[:-1])
        fits = is_given & self._agrees(np.maximum(prefer, 0), rows) & (value >= best.value)
        return Assignment(self._pick(fits, prefer, best.code, rows), best.value)

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        code, value = self._read(code, rows), np.empty(self._count(rows))
        steps = np.append(self._step_scores(w), -np.inf)  # the last one for steps that do not exist
        for out, frames, part, cuts in self._blocks(rows):
            own = code[frames]
            single = self._unary(w, part)[np.arange(own.size), own]
            single[1:] += np.where(inside_frames(cuts)[1:], steps[self._steps_of[own[:-1], own[1:]]], 0.0)
            value[out] = np.add.reduceat(single, cuts[:-1])
        return value

    def loss(self, code: Array, rows: Rows = None) -> Array:
        found, cuts = self._collapse(self._read(code, rows), self._starts(rows))
        labels, starts = self._transcripts(rows)
        edits = edit_distances(labels, starts, found, cuts)
        return np.minimum(edits, self._most(np.diff(starts))) / np.diff(starts)

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        code, starts = self._read(code, rows), self._starts(rows)
        each = np.repeat(one_coef_each(coef, starts.size - 1), np.diff(starts))
        emission, steps = self._zeros()
        sum_rows(self.table, code, self._positions(rows), each, emission)
        here = np.flatnonzero(inside_frames(starts))
        numbers = self._steps_of[code[here - 1], code[here]]
        if (numbers < 0).any():
            raise ValueError("a code has a step between two states that does not exist; take codes from this oracle")
        return self._flat(emission, np.bincount(numbers, weights=each[here], minlength=steps.size))

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`."""
        sizes = np.diff(self._transcripts(rows)[1])
        return LossLevels(1 / sizes, self._most(sizes) / sizes, 1 / sizes)

    # Sums over alignments

    def expectations(
        self,
        w: Array,
        rows: Rows = None,
        *,
        free: Any = None,
        label: Any = None,
        truth: Any = None,
        power: float = 1.0,
        augmented: bool = False,
    ) -> Expectations:
        """See `tacit.oracle.capabilities.SumsOutputs`."""
        n = self._count(rows)
        coefs, has_features = spread_coefficients(n, free, label, truth)
        blocks = self._zeros()
        logs: list[Array | None] = [None, None, None]
        if coefs[0] is not None and augmented:
            automata, which = self._with_edits(rows)
            factor = power * self._per_edit(rows, None)
            logs[0] = self._add_expected(w, rows, automata, which, coefs[0], power, blocks, factor=factor)
        elif coefs[0] is not None:
            which = np.zeros(n, dtype=np.int64)
            logs[0] = self._add_expected(w, rows, self._all, which, coefs[0], power, blocks)
        if coefs[1] is not None:
            own = self._lines(is_known=False), self._numbers(rows)
            logs[1] = self._add_expected(w, rows, *own, coefs[1], power, blocks)
        if coefs[2] is not None:
            own, known = (self._lines(), self._numbers(rows)), self._known_states(rows)
            logs[2] = self._add_expected(w, rows, *own, coefs[2], power, blocks, known=known)
        return Expectations(logs[0], logs[1], logs[2], self._flat(*blocks) if has_features else None)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all transcripts and alignments."""
        found = self.expectations(w, rows, free=0.0).free
        assert found is not None
        return found

    def state_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(frames, states): the probability of every state; where ``is_given``, under the true transcript."""
        n = self._count(rows)
        automata = self._lines() if is_given else self._all
        which = self._numbers(rows) if is_given else np.zeros(n, dtype=np.int64)
        nodes = np.zeros((int(self._starts(rows)[-1]), self.n_states))
        known = self._known_states(rows) if is_given else None
        self._sum(w, rows, automata, which, np.ones(n), 1.0, nodes, self._zeros()[1], known=known)
        return nodes

    def tag_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(frames, labels): the probability of every label; silence comes last, where there is any."""
        first = np.arange(self.layout.n_segments) * self.layout.n_per_label
        return np.asarray(np.add.reduceat(self.state_posterior(w, rows, is_given), first, axis=1))

    def likeliest(self, w: Array, rows: Rows = None) -> Array:
        """The code of the best alignment of all: the transcript of the highest sum is out of reach."""
        return self.predict(w, rows).code

    # The best few transcripts, and entropies: a label is written as its best alignment

    most_visited = 64

    def best_outputs(self, w: Array, k: int, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.RanksOutputs`: the k best transcripts of every recording, the best first, each
        in its best alignment. O(frames · edges · k²) time at most, and O(longest · nodes · k) memory."""
        longest = int(np.diff(self._starts(rows)).max())
        most = max(1, MAX_LINKS // (longest * self._all.state.size))
        if k > most:
            raise ValueError(
                f"the best k={k} transcripts of {longest} frames do not fit into memory; lower k to {most}, or cut "
                "recordings"
            )
        return self._rank_labels(w, k, rows, is_augmented=False)

    def _rank_labels(self, w: Array, k: int, rows: Rows, is_augmented: bool) -> Assignment:
        starts = self._starts(rows)
        code, value = np.empty((int(starts[-1]), k), dtype=np.int64), np.empty((starts.size - 1, k))
        automata, which, factor = self._all, np.zeros(len(value), dtype=np.int64), np.zeros(len(value))
        if is_augmented:
            (automata, which), factor = self._with_edits(rows), self._per_edit(rows, None)
        steps, layout = self._step_scores(w), self.layout
        numbers = layout.n_per_label, layout.n_labels * layout.n_per_label, layout.n_states * layout.n_steps
        for out, frames, part, cuts in self._blocks(rows):
            given = self._unary(w, part), cuts, automata, which[out], steps, factor[out]
            best_few_walks(*given, *numbers, code[frames], value[out])
        return Assignment(code, value)

    def _sum_hidden(self, w: Array, labels: Array, power: float, coef: Array, rows: Rows) -> tuple[Array, Array]:
        lines = expand(self.layout, line_segments(self.layout, *self._collapse(labels, self._starts(rows))))
        blocks, which = self._zeros(), np.arange(self._count(rows))
        return self._add_expected(w, rows, lines, which, coef, power, blocks), self._flat(*blocks)

    def _score_labels(self, w: Array, labels: Array, alpha: float, rows: Rows) -> Array:
        n, k = self._count(rows), labels.shape[1]
        starts, nothing, frozen = self._starts(rows), np.empty(0, dtype=np.int64), np.zeros(n)
        copies = np.append((np.arange(k)[:, None] * starts[-1] + starts[:-1]).ravel(), k * starts[-1])
        found, cuts = self._collapse(labels.T.ravel(), copies)
        lines = expand(self.layout, line_segments(self.layout, found, cuts))
        scores, log = np.zeros((n, k)), np.empty(n)
        steps = self._step_scores(w)
        no_sums = np.zeros((0, 0)), np.zeros(steps.size)
        for out, _, part, own in self._blocks(rows):
            unary = self._unary(w, part)
            for power, share in powers_of(alpha):
                scaled, into = power * unary, log[out]
                for r in range(k):
                    given = lines, r * n + np.arange(n)[out], power * steps, nothing, frozen[out], frozen[out]
                    sum_walks(scaled, own, *given, into, *no_sums)
                    scores[out, r] += share * into
        return scores

    def _best_hidden(self, w: Array, labels: Array, rows: Rows) -> Assignment:
        code = labels.astype(self._code_type)
        return Assignment(code, self.score(w, code, rows))

    def _label_loss(self, labels: Array, rows: Rows) -> Array:
        return self.loss(labels, rows)

    def _is_true_label(self, labels: Array, rows: Rows) -> Array:
        found, cuts = self._collapse(labels, self._starts(rows))
        truth, starts = self._transcripts(rows)
        return np.asarray(edit_distances(truth, starts, found, cuts) == 0)

    # Where to start

    def draw(self, rng: np.random.Generator) -> Array:
        """A code with the true transcripts, aligned at random."""
        return self._complete(rng.random((int(self.offsets[-1]), self.n_states)))

    def proposals(self, most: int) -> list[Array]:
        """Every recording divided equally among silences and the states of its labels, then aligned to their means.

        Means of the frames of every state and alignments to the nearest means take turns (segmental k-means, Rabiner,
        Wilpon & Juang 1986). Without intercepts, the equal division alone.
        """
        code = self._divide()
        if "intercept" not in self._schema.blocks:
            return [code]
        w = np.zeros(self.n_params)
        views = self._views(w)
        for _ in range(MEAN_ROUNDS):
            sums = self._views(self.features(code, np.ones(self.n_samples)))
            count = sums["intercept"]
            means = sums["emission"] / np.maximum(count, 1)[:, None]
            views["emission"][count > 0] = means[count > 0]
            views["intercept"][:] = -0.5 * (views["emission"] ** 2).sum(axis=1)
            after = self.impute(w).code
            if np.array_equal(after, code):
                break
            code = after
        return [code]

    def _divide(self) -> Array:
        """The alignment nearest to an equal division of every recording among the nodes of its line."""
        lines, sizes = self._lines(), np.diff(self.offsets)
        affinity = np.zeros((int(self.offsets[-1]), self.n_states))
        for i, size in enumerate(sizes.tolist()):
            own = lines.state[lines.starts[i] : lines.starts[i + 1]]
            affinity[np.arange(size) + self.offsets[i], own[np.arange(size) * own.size // size]] = 1.0
        return self._complete(affinity)

    # Codes

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self._starts(rows)
        if hidden is None:
            raise ValueError("only complete outputs have a code: give hidden=, one state per frame")
        values = hidden.values if isinstance(hidden, Ragged) else np.concatenate([np.asarray(h) for h in hidden])
        code = self._read(values, rows)
        if not self._has_outputs(code, rows):
            raise ValueError("hidden has a path that no transcript has; give one state per frame, from left to right")
        found, cuts = self._collapse(code, starts)
        flat, own = read_transcripts(labels, starts.size - 1)
        if not np.array_equal(own, cuts) or not np.array_equal(find_labels(self.classes, flat), found):
            raise ValueError("labels and hidden disagree: the states of hidden are those of other labels")
        return code.astype(self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Ragged, Ragged]:
        code, starts = self._read(code, rows), self._starts(rows)
        found, cuts = self._collapse(code, starts)
        return Ragged(self.classes[found], cuts), Ragged(code, starts)

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        code, starts = self._read(code, rows), self._starts(rows)
        here = np.flatnonzero(inside_frames(starts))
        place, silence = code % self.layout.n_per_label, self.layout.n_labels * self.layout.n_per_label
        is_begin = (place == 0) | (code == silence)
        is_end = (place == self.layout.n_per_label - 1) | (code == silence)
        if not is_begin[starts[:-1]].all() or not is_end[starts[1:] - 1].all():
            return False
        if (self._steps_of[code[here - 1], code[here]] < 0).any():
            return False
        found, cuts = self._collapse(code, starts)
        if (np.diff(cuts) == 0).any():
            return False
        listed = None if self.lexicon is None else {tuple(entry.tolist()) for entry in self.lexicon}
        return listed is None or all(tuple(found[a:b].tolist()) in listed for a, b in itertools.pairwise(cuts))

    def _collapse(self, code: Array, starts: Array) -> tuple[Array, Array]:
        """The labels of all recordings, without silence, and where those of each begin."""
        k = self.layout.n_per_label
        label, place = np.divmod(code, k)
        begins = np.ones(code.size, dtype=bool)
        begins[1:] = (label[1:] != label[:-1]) | (place[1:] < place[:-1])
        begins[starts[:-1]] = True
        begins &= label < self.layout.n_labels
        count = np.concatenate([[0], np.cumsum(begins)])
        return label[begins], count[starts]

    # Views

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same data with the alignments of this code known; None leaves them as they are."""
        if hidden is None:
            return self._with()
        states = self._read(hidden)
        known = self._known.states
        if known is not None:
            states = np.where(known >= 0, known, states)
        return self._with(_known=Known(states, self._known.windows))

    def with_loss(self, losses: Any) -> Self:
        raise ValueError("losses of Transcript are edit distances, and cannot be replaced; leave them out")

    def hidden_unknown(self) -> Array:
        if self._known.states is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(np.logical_or.reduceat(self._known.states < 0, self.offsets[:-1]))

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the recordings from first to last (exclusive), to be sent to the worker with them."""
        rows = slice(first, last)
        part = self._recut(self._starts(rows), table=None, _kept={})
        if self._labels is not None and self.label_offsets is not None:
            a, b = int(self.label_offsets[first]), int(self.label_offsets[last])
            part._labels, part.label_offsets = self._labels[a:b], self.label_offsets[first : last + 1] - a
            windows = None if self._known.windows is None else self._known.windows[a:b]
            part._known = Known(self._known_states(rows), windows)
        return part

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly."""
        return float(self.offsets[-1]) * (self.n_states * self._width + 4.0 * self._all.source.size)

    def units(self) -> Array:
        """Every recording counts once: its loss is per label of its transcript already."""
        return np.ones(self.n_samples)

    def digest(self) -> str:
        lexicon = [] if self.lexicon is None else [np.array([entry.size, *entry]) for entry in self.lexicon]
        numbers = np.array([*self.layout, self.max_edits, len(lexicon)], dtype=np.int64)
        known = self._labels, self.label_offsets, *self._known
        return checksum(self._rows, self.offsets, numbers, *known, *lexicon)

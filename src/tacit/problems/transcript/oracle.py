"""Inference for transcripts: the best one, the best alignment of a given one, the best by score plus edits, and sums."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, Codes, Rows, checksum, positions_of, starts_of
from tacit.data.labels import find_labels
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.table import Table, lend
from tacit.oracle import TARGET, Assignment, Schema
from tacit.oracle.capabilities import Expectations
from tacit.oracle.cells import one_coef_each
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.oracle.slack_search import LossLevels
from tacit.problems.chain.packed import TokenTable, add_extra_columns
from tacit.problems.row_sums import sum_rows
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
from tacit.problems.transcript.reading import read_transcripts
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


class TranscriptOracle(PartsOracle):
    """Transcripts of frames; a code is one state per frame, from which the labels follow.

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
        self.table: Any = add_extra_columns(sequences, schema)
        self._schema = schema
        self._sparse = sparse.issparse(self.table)
        super().__init__(schema, sequences.offsets, self.n_states, labels=labels, precision=self.table.dtype)
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
            single[1:] += np.where(_inside(cuts)[1:], steps[self._steps_of[own[:-1], own[1:]]], 0.0)
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
        here = np.flatnonzero(_inside(starts))
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
        coefs = [
            None if c is None else np.broadcast_to(np.asarray(c, dtype=np.float64), n) for c in (free, label, truth)
        ]
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
        has_features = any(c is not None and c.any() for c in coefs)
        return Expectations(logs[0], logs[1], logs[2], self._flat(*blocks) if has_features else None)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all transcripts and alignments."""
        found = self.expectations(w, rows, free=0.0).free
        assert found is not None
        return found

    def state_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(frames, states): the probability of every state; where ``is_given``, under the true transcript."""
        n = self._count(rows)
        own = (self._lines(), self._numbers(rows)) if is_given else (self._all, np.zeros(n, dtype=np.int64))
        nodes = np.zeros((int(self._starts(rows)[-1]), self.n_states))
        known = self._known_states(rows) if is_given else None
        self._sum(w, rows, *own, np.ones(n), 1.0, nodes, self._zeros()[1], known=known)
        return nodes

    def tag_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(frames, labels): the probability of every label; silence comes last, where there is any."""
        first = np.arange(self.layout.n_segments) * self.layout.n_per_label
        return np.asarray(np.add.reduceat(self.state_posterior(w, rows, is_given), first, axis=1))

    def likeliest(self, w: Array, rows: Rows = None) -> Array:
        """The code of the best alignment of all: the transcript of the highest sum is out of reach."""
        return self.predict(w, rows).code

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
        here = np.flatnonzero(_inside(starts))
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
        return listed is None or all(
            tuple(found[a:b].tolist()) in listed for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        )

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
        raise ValueError("the loss of Transcript is the edit distance; it cannot be replaced")

    def hidden_unknown(self) -> Array:
        if self._known.states is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(np.logical_or.reduceat(self._known.states < 0, self.offsets[:-1]))

    @property
    def on_workers(self) -> Any:
        """A function that lets the workers that hold the rows compute for this oracle, or None."""
        return getattr(self.table, "distribute", None)

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

    def on_rows(self, rows: Table) -> Self:
        """The same oracle with these rows."""
        return self._with(table=TokenTable(rows, self.offsets, self._schema))

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly."""
        width = float(self.table.nnz / self.table.shape[0] if self._sparse else self.table.shape[1])
        return float(self.offsets[-1]) * (self.n_states * width + 4.0 * self._all.source.size)

    def units(self) -> Array:
        """Every recording counts once: its loss is per label of its transcript already."""
        return np.ones(self.n_samples)

    def digest(self) -> str:
        table = self.table.rows if isinstance(self.table, TokenTable) else self.table
        lexicon = [] if self.lexicon is None else [len(self.lexicon), *self.lexicon]
        numbers = np.array([*self.layout, self.max_edits], dtype=np.int64)
        known = self._labels, self.label_offsets, *self._known
        return checksum(table, self.offsets, numbers, *known, *(np.atleast_1d(one) for one in lexicon))

    # Parts

    def _count(self, rows: Rows) -> int:
        return int(self._starts(rows).size - 1)

    def _numbers(self, rows: Rows) -> Array:
        return np.arange(self.n_samples)[slice(None) if rows is None else rows]

    def _transcripts(self, rows: Rows) -> tuple[Array, Array]:
        """The true labels of these rows, and where those of each begin."""
        if self._labels is None or self.label_offsets is None:
            self._true_labels(rows)  # which raises
        assert self.label_offsets is not None and self._labels is not None
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
                raise ValueError(
                    f"y[{i}] has a label that training never saw; the labels are {self.classes.tolist()}"
                )
            segments = line_segments(self.layout, labels, offsets)
            if windows is not None:
                segments = _limit(segments, windows, offsets, self.layout.has_silence)
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
                cuts = zip(offsets[:-1], offsets[1:], strict=True)
                which = np.array([numbers.setdefault(tuple(labels[a:b].tolist()), len(numbers)) for a, b in cuts])
                transcripts = [np.array(one, dtype=np.int64) for one in numbers]
                kept = join_segments([edit_segments(self.layout, one, self.max_edits) for one in transcripts])
            self._kept["edits"] = expand(self.layout, kept), which
        automata, which = self._kept["edits"]
        return automata, which[slice(None) if rows is None else rows]

    def _listed_with_edits(self, labels: Array, offsets: Array) -> tuple[Segments, Array]:
        assert self.lexicon is not None and self._entries is not None
        flat = np.concatenate(self.lexicon)
        cuts = np.concatenate([[0], np.cumsum([one.size for one in self.lexicon])]).astype(np.int64)
        numbers: dict[tuple[int, ...], int] = {}
        parts = []
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
                with lend(self.table, self._positions(part)) as table:
                    emission += np.asarray((table.T @ nodes).T if self._sparse else nodes.T @ table)
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
        with lend(self.table, self._positions(rows)) as table:
            scores = table.astype(self._precision, copy=False) @ weights.T.astype(self._precision, copy=False)
        return np.ascontiguousarray(scores, dtype=np.float64)


def _inside(starts: Array) -> Array:
    """Which frames are not the first of their recording."""
    inside = np.ones(int(starts[-1]), dtype=bool)
    inside[starts[:-1]] = False
    return inside


def _limit(segments: Segments, windows: Array, offsets: Array, has_silence: bool) -> Segments:
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

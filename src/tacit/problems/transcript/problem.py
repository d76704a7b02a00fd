"""Transcription: a sequence of labels over a longer sequence of frames, whose alignment is hidden."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import check_listed, find_labels
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.shards import Shards, read_shards
from tacit.data.specs import estimator, parameter, switch, whole
from tacit.oracle import Example, Problem, Schema
from tacit.problems.classes.blocks import check_blocks
from tacit.problems.transcript.automata import Layout
from tacit.problems.transcript.oracle import TranscriptOracle
from tacit.problems.transcript.packed import Known
from tacit.problems.transcript.reading import (
    check_lengths,
    read_alignments,
    read_label_classes,
    read_lexicon,
    read_transcripts,
)

MAX_STATES = 4096
"""States of all labels together: a table of their pairs is kept."""


@estimator
class Transcript(Problem):
    """A sequence of labels per recording: ``s(y, h) = Σ_t w_{h_t}·x_t + Σ_t T[h_{t−1}, h_t]``, the alignment h hidden.

    For speech whose words are known but not their times, handwriting without cuts between letters, gestures in a row.
    ``X`` holds one table of features per recording, a row per frame; ``y`` one list of labels per recording, shorter
    than its frames. Every label has states that follow each other from left to right; frames may be silence before,
    between and behind labels. A hidden value is a state per frame: ``label · states + position``, silence last.

    The loss is the edit distance per label of y, edits above `max_edits` not counted, and loss-augmented inference is
    exact for it: automata count edits along every path (Schulz & Mihov 2002). The best transcript is that of the best
    alignment (Viterbi), which is exact as well.

    Parameters
    ----------
    states : states per label
    skips : states that a path may pass over in one step inside a label
    silence : whether frames may belong to no label
    lexicon : the transcripts that may be predicted, lists of labels; None for any labels in any number
    max_edits : edits that the loss counts. Inference for training visits more columns of the edit distance the more
        there are: its cost grows about threefold per edit
    classes : all labels, where the training data may lack some; None takes those of y, sorted
    fit_intercept : whether each state has an intercept, block "intercept"

    >>> from tacit import HiddenCRF
    >>> a, b, quiet = [[1.0, 0.0]] * 3, [[0.0, 1.0]] * 2, [[0.0, 0.0]] * 2
    >>> X, y = [quiet + a + b, b + a + a, a + quiet + b, b + quiet], [["a", "b"], ["b", "a"], ["a", "b"], ["b"]]
    >>> model = HiddenCRF(Transcript(states=1), C=100).fit(X, y)
    >>> [labels.tolist() for labels in model.predict([b + a + b])], model.impute([a + b], [["a", "b"]])[0].tolist()
    ([['b', 'a', 'b']], [0, 0, 0, 1, 1])
    """

    takes_table = False
    takes_shards = True

    states: int = parameter(whole(1, MAX_STATES), default=3)
    skips: int = parameter(whole(0, MAX_STATES), default=0)
    silence: bool = parameter(switch, default=True)
    lexicon: Any = None
    max_edits: int = parameter(whole(1, 100), default=1)
    classes: Any = None
    fit_intercept: bool = parameter(switch, default=True)

    def read(self, X: Any) -> Any:
        if isinstance(X, Shards):
            return read_shards(X, "recording", "frame")
        return read_ragged(X, "recording", "frame")

    def check(self) -> None:
        super().check()
        check_listed(self.classes, "labels")

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        needed, optional = self._blocks(self.layout(schema.classes), schema.n_features)
        check_blocks(schema, needed, optional)
        read_lexicon(self.lexicon, schema.classes)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        sequences = self.ensure_read(X)
        labels, offsets = read_transcripts(y, sequences.offsets.size - 1)
        classes = read_label_classes(self.classes, labels, offsets)
        read_lexicon(self.lexicon, classes)
        d = sequences.values.shape[1]
        needed, optional = self._blocks(self.layout(classes), d)
        return Schema(classes, d, needed | (optional if self.fit_intercept else {}))

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> TranscriptOracle:
        sequences = self.ensure_read(X)
        self.check_schema(schema)
        d = sequences.values.shape[1]
        if d != schema.n_features:
            raise ValueError(f"X has {d} features, but Transcript is expecting {schema.n_features} features as input")
        layout, lengths = self.layout(schema.classes), np.diff(sequences.offsets)
        lexicon = read_lexicon(self.lexicon, schema.classes)
        self._check_room(layout, lexicon, lengths)
        if y is None:
            if hidden is not None:
                raise ValueError("hidden needs y: an alignment is one of a transcript")
            return TranscriptOracle(sequences, schema, layout=layout, lexicon=lexicon, max_edits=int(self.max_edits))
        flat, offsets = read_transcripts(y, lengths.size)
        found = find_labels(schema.classes, flat)
        labels = np.where(found < 0, len(schema.classes), found).astype(np.int64)
        known = None
        if (found >= 0).all():
            check_lengths(layout, labels, offsets, lengths)
            self._check_listed(lexicon, labels, offsets, schema.classes)
            if hidden is not None:
                known = Known(*read_alignments(hidden, layout, labels, offsets, lengths))
        oracle = TranscriptOracle(
            sequences,
            schema,
            layout=layout,
            lexicon=lexicon,
            max_edits=int(self.max_edits),
            labels=labels,
            label_offsets=offsets,
            known=known,
        )
        if known is not None:
            self._check_known(oracle)
        return oracle

    def layout(self, classes: Array) -> Layout:
        """States and steps for these labels."""
        found = Layout(len(classes), int(self.states), int(self.skips), self.silence)
        if found.n_states > MAX_STATES:
            raise ValueError(f"all labels must have at most {MAX_STATES} states, got {found.n_states}; lower states=")
        return found

    def _blocks(self, layout: Layout, d: int) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        """Shapes of the blocks that weights have, and of the optional one."""
        n, pairs = layout.n_states, layout.n_segments
        return {"emission": (n, d), "step": (n, layout.n_steps), "pair": (pairs, pairs)}, {"intercept": (n,)}

    def _check_room(self, layout: Layout, lexicon: list[Array] | None, lengths: Array) -> None:
        """Refuse recordings that are too short for every transcript."""
        least = layout.least_frames * (1 if lexicon is None else min(entry.size for entry in lexicon))
        if (lengths < least).any():
            i = int(np.argmax(lengths < least))
            raise ValueError(
                f"X[{i}] has {lengths[i]} frames, but the shortest transcript takes {least} with "
                f"states={self.states} and skips={self.skips}; use fewer states, more skips, or leave the recording out"
            )

    def _check_listed(self, lexicon: list[Array] | None, labels: Array, offsets: Array, classes: Array) -> None:
        listed = None if lexicon is None else {tuple(entry.tolist()) for entry in lexicon}
        for i, (a, b) in enumerate(itertools.pairwise(offsets.tolist())):
            if listed is not None and tuple(labels[a:b].tolist()) not in listed:
                raise ValueError(
                    f"y[{i}], {classes[labels[a:b]].tolist()}, is not in the lexicon; add it, or leave it out"
                )

    def _check_known(self, oracle: TranscriptOracle) -> None:
        value = oracle.impute(np.zeros(oracle.n_params)).value
        if (value == -np.inf).any():
            i = int(np.argmin(value))
            raise ValueError(
                f"hidden[{i}] is not an alignment of y[{i}]; correct it, or write None where it is unknown"
            )

    def example(self, rng: np.random.Generator) -> Example:
        classes = np.array(["ant", "bee"] if self.classes is None else self.classes)
        layout, d = self.layout(classes), int(rng.integers(1, 3))
        lexicon = read_lexicon(self.lexicon, classes)
        listed = None if lexicon is None else [entry.tolist() for entry in lexicon]
        n, k, n_labels = layout.n_states, layout.n_per_label, layout.n_labels
        least = layout.least_frames * (2 if lexicon is None else max(entry.size for entry in lexicon))
        lengths = rng.integers(least, least + 2, 3)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        X = Ragged(rng.integers(-2, 3, (offsets[-1], d)).astype(rng.choice(["float64", "float32"])), offsets)

        def follows(a: int, b: int) -> bool:
            (first, i), (second, j) = divmod(a, k), divmod(b, k)
            if first == second and i <= j:
                return j - i <= 1 + layout.skips
            is_end = first == n_labels or i == k - 1
            return is_end and j == 0

        def write(path: Any) -> list[int]:
            found: list[int] = []
            for t, state in enumerate(path):
                is_new = t == 0 or state // k != path[t - 1] // k or state < path[t - 1]
                if is_new and state // k < n_labels:
                    found.append(state // k)
            return found

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            silence = n_labels * k
            found = []
            for path in itertools.product(range(n), repeat=len(x)):
                is_whole = path[0] % k == 0 or path[0] == silence
                is_whole &= path[-1] % k == k - 1 or path[-1] == silence
                if is_whole and all(follows(a, b) for a, b in itertools.pairwise(path)):
                    labels = write(path)
                    if labels and (listed is None or labels in listed):
                        found.append((classes[labels], np.array(path)))
            return found

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            path = h.tolist()
            emission, step = np.zeros((n, d)), np.zeros((n, layout.n_steps))
            pair = np.zeros((layout.n_segments, layout.n_segments))
            for frame, state in zip(np.asarray(x), path, strict=True):
                emission[state] += frame
            for a, b in itertools.pairwise(path):
                if a // k == b // k and a <= b:
                    step[a, b - a] += 1
                else:
                    pair[a // k, b // k] += 1
            counts = [np.bincount(path, minlength=n)] if self.fit_intercept else []
            return np.concatenate([emission.ravel(), step.ravel(), pair.ravel(), *counts])

        def loss(true: Any, label: Any, h: Any) -> float:
            return min(_count_edits(true.tolist(), label.tolist()), self.max_edits) / len(true)

        found = [outputs(x) for x in X]
        is_all = False
        while not is_all:
            chosen = [one[int(rng.integers(len(one)))] for one in found]
            sizes = [len(label) for label, _ in chosen]
            y = Ragged(np.concatenate([label for label, _ in chosen]), np.concatenate([[0], np.cumsum(sizes)]))
            is_all = self.classes is not None or np.unique(y.values).size == classes.size
        hidden = Ragged(np.concatenate([h for _, h in chosen]), offsets)
        return Example(X, y, hidden, outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(states=1),
            cls(states=2, silence=False, fit_intercept=False, max_edits=2),
            cls(states=3, skips=1, silence=False, classes=["ant", "bee"], max_edits=2),
            cls(states=2, classes=[5, 3], lexicon=[[3], [5], [3, 5]], max_edits=2),
        ]


def _count_edits(true: list[Any], found: list[Any]) -> int:
    """The edit distance by its definition."""
    if not true or not found:
        return max(len(true), len(found))
    if true[0] == found[0]:
        return _count_edits(true[1:], found[1:])
    return 1 + min(_count_edits(true[1:], found), _count_edits(true, found[1:]), _count_edits(true[1:], found[1:]))

"""The oracle of `Motif`: every start of every sequence, by tables of short words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.data.arrays import Array, Rows, checksum
from tacit.data.labels import find_labels, reject_unknown
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.dna.letters import letters_of
from tacit.dna.motif import kernels
from tacit.dna.motif.hidden import read_windows
from tacit.dna.sequences import orient, turn
from tacit.dna.words import Pieces, enriched_words, find_words
from tacit.oracle import TARGET, Assignment, EnumerableOracle, LossTable, Schema
from tacit.oracle.cells import one_coef_each
from tacit.oracle.known_hidden import KnownHidden


@dataclass(frozen=True)
class Layout:
    """Which windows and words of a sequence a model looks at.

    Parameters
    ----------
    width, background : letters of the motif, and of a background word
    strands : 1 or 2
    is_full : every window and every word; otherwise those of the code of Kumar, Packer & Koller (2010), which leaves
        out the last word and the last ``background`` + 1 windows
    """

    width: int
    background: int
    strands: int
    is_full: bool = True

    @property
    def is_symmetric(self) -> bool:
        """Whether words are counted on both strands, so that a sequence and its reverse complement are the same."""
        return self.is_full and self.strands == 2

    @property
    def shortest(self) -> int:
        """Letters that a sequence must have."""
        return max(self.width, self.background) if self.is_full else self.width + self.background + 1

    def count_starts(self, lengths: Any) -> Any:
        """How many windows sequences of these lengths have."""
        return lengths - self.width + 1 - self._left_out

    @property
    def _left_out(self) -> int:
        return 0 if self.is_full else self.background + 1

    def shape(self) -> Array:
        """What the kernels need of it; see `motif_kernels`."""
        without_word = self.background - 1 if self.is_full else self.background
        return np.array([self.width, without_word, self._left_out, self.background - 1])


class MotifOracle(EnumerableOracle):
    """Label 0 is background alone, label 1 has a state for every start and strand.

    Sums of words are the whole work: `find_words` numbers them once, two bytes per position for the background and two
    for the motif. The searches (`predict`, `augmented`, `impute`, `score`, `label_scores`) keep the best window while
    they slide and never write the table of scores, which is two to three times as fast.
    O(letters · ⌈width / 5⌉ · strands) per pass.

    Parameters
    ----------
    sequences : letter codes, from `read_sequences`
    schema : classes (negative, positive) and the blocks of w
    layout : which windows and words there are
    supervision : labels, hidden and losses, as in `EnumerableOracle`
    """

    def __init__(self, sequences: Ragged, schema: Schema, layout: Layout, **supervision: Any) -> None:
        width, strands = layout.width, layout.strands
        self._layout, self._strands = layout, strands
        self._shape = layout.shape()
        self._blocks_of = schema.views
        self._schema = schema
        self._labels_of: Array | None = supervision.get("labels")
        self._starts, self._stops = sequences.offsets[:-1], sequences.offsets[1:]
        self._pieces = Pieces.of(width)
        self._keep(sequences)
        self._longest = int(sequences.lengths.max())
        states = strands * layout.count_starts(sequences.lengths)
        offsets = np.concatenate([[0], np.cumsum(states)])
        if "hidden" in supervision:
            supervision["hidden"] = self._turned(supervision["hidden"], offsets)
        super().__init__(schema.classes, offsets, schema.n_params, **supervision)

    def _keep(self, sequences: Any) -> None:
        """Keep the sequences, each on the strand that comes first, and number their words."""
        self._flipped = np.zeros(len(sequences), dtype=bool)
        if self._layout.is_symmetric:
            sequences, self._flipped = orient(sequences)
        self._sequences: Ragged = sequences
        background = self._layout.background
        self._words = find_words(sequences.values, sequences.offsets, background)
        is_shared = self._pieces.length == background
        self._parts = self._words if is_shared else find_words(sequences.values, sequences.offsets, self._pieces.length)

    def _turned(self, known: KnownHidden, offsets: Array) -> KnownHidden:
        """States as the user counts them as states of the strand that is kept, or back: their order is reversed."""
        if not self._flipped.any():
            return known
        sizes = np.diff(offsets)
        is_state = self._flipped & (known.states >= 0)
        if self._labels_of is not None:
            is_state &= self._labels_of == 1
        states = np.where(is_state, sizes - 1 - known.states, known.states)
        if known.allowed is None:
            return KnownHidden(states)
        places = np.arange(int(offsets[-1]))
        mirrored = np.repeat(offsets[:-1] + offsets[1:] - 1, sizes) - places
        return KnownHidden(states, known.allowed[np.where(np.repeat(self._flipped, sizes), mirrored, places)])

    def scores(self, w: Array, rows: Rows = None) -> Array:
        sizes = np.diff(self.offsets) if rows is None else np.diff(self.offsets)[rows]
        scores = np.empty((2, int(sizes.sum())))
        scores[0] = -np.inf
        kernels.score_windows(
            *self._cut_words(rows),
            *self._tables(w),
            self._pieces.places,
            self._shape,
            self._work(),
            scores,
        )
        return scores

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        sums = self._zeros()
        V = np.ascontiguousarray(V, dtype=np.float64)
        kernels.add_all_windows(*self._cut_words(rows), self._pieces.places, self._shape, V, self._work(), *sums)
        return self._fold(*sums)

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        sums = self._zeros()
        kernels.add_windows(*self._cut_words(rows), self._pieces.places, self._shape, labels, states, coef, *sums)
        return self._fold(*sums)

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i (Ψ(x_i, code_i) − Ψ(x_i, target_i)): words outside both windows cancel, so O(width) per row."""
        coef = one_coef_each(coef, self._count(rows))
        return self._moved(self.split(code, rows), self.split(target, rows), coef, rows)

    def _moved(self, outputs: tuple[Any, Any], targets: tuple[Any, Any], coef: Array, rows: Rows) -> Array:
        """`difference` of outputs that are given as labels and states."""
        sums = self._zeros()
        cut, places = self._cut_words(rows), self._pieces.places
        for output, sign in ((outputs, 1.0), (targets, -1.0)):
            kernels.add_moves(*cut, places, self._shape, *output, coef, sign, *sums)
        return self._fold(*sums)

    def proposals(self, most: int) -> list[Array]:
        """Windows that look most like a word which positives hold more often than negatives, one word per start."""
        words = enriched_words(self._sequences, self._known_labels(None) == 1, self._layout.width, self._strands, most)
        codes = []
        for letters in words:
            w = np.zeros(self.n_params)
            middle = (self._layout.width - letters.size) // 2
            self._blocks_of(w)["motif"][middle + np.arange(letters.size), letters] = 1.0
            codes.append(self.impute(w).code)
        return codes

    def joint_moves(self, code: Array) -> list[Array]:
        """Codes with all motifs one, two or three letters further on, or back, as far as their sequences reach.

        A motif that was found a letter beside its place is a local optimum: no sample gains by moving alone.
        """
        labels, states = self.split(code)
        start, strand = np.divmod(states, self._strands)
        last = np.diff(self.offsets) // self._strands - 1
        free = (labels == 1) & (self._hidden < 0)
        codes = []
        for step in (1, -1, 2, -2, 3, -3):
            moved = np.clip(start + np.where(strand == 0, step, -step), 0, last)
            moved = moved * self._strands + strand
            if self._allowed is not None:
                free = free & self._allowed[self.offsets[:-1] + np.where(free, moved, 0)]
            codes.append(self._join(labels, np.where(free, moved, states)))
        return codes

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        if self._allowed is not None:
            return super().impute(w, rows, prefer)
        labels = self._known_labels(rows)
        given = np.where(labels == 1, _take(self._hidden, rows), 0)  # background alone has one state: nothing to search
        preferred = None if prefer is None else self._preferred_states(prefer, labels, rows)
        background_only, value, state = self._search(w, rows, given, preferred)
        return Assignment(self._join(labels, state), np.where(labels == 1, value, background_only))

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        labels, states = self.split(code, rows)
        background_only, value, _ = self._search(w, rows, states)
        return np.where(labels == 1, value, background_only)

    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        if np.isfinite(power):
            return super().label_scores(w, rows, power)
        return np.column_stack(self._search(w, rows)[:2])

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        return super().accepts(code) and not ((code > 0) & (code % 2 == 0)).any()

    def hidden_unknown(self) -> Array:
        several = (np.diff(self.offsets) > 1) & (self._hidden < 0)
        return np.flatnonzero(several if self._labels is None else several & (self._labels == 1))

    def existing(self, labels: Array, rows: Rows = None) -> Array:
        sizes = _take(np.diff(self.offsets), rows)
        there = np.repeat(labels == 1, sizes)
        there[np.cumsum(sizes) - sizes] = True  # background alone has one state
        return there

    @property
    def operations(self) -> float:
        return 4.0 * float(self.offsets[-1]) * (len(self._pieces.places) + 2)  # look-ups: slower than multiplications

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        labels = np.asarray(labels)
        found = find_labels(self.classes, labels)
        reject_unknown(found, self.classes, labels)
        sizes = _take(np.diff(self.offsets), rows)
        if hidden is None:
            states = np.where((found == 1) & (sizes > 1), -1, 0)
        else:
            states = read_windows(hidden, sizes // self._strands, self._strands, found, self.classes).states
            is_flipped = _take(self._flipped, rows) & (found == 1) & (states >= 0)
            states = np.where(is_flipped, sizes - 1 - states, states)
        unknown = np.flatnonzero(states < 0)
        if unknown.size:
            raise ValueError(
                f"sample {unknown[0]} is {shorten(labels[unknown[0]].item())}, and where its motif starts is unknown "
                "(-1): only complete outputs have a code"
            )
        return self._join(found, states)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        labels, states = self.split(code, rows)
        sizes = _take(np.diff(self.offsets), rows)
        states = np.where(_take(self._flipped, rows) & (labels == 1), sizes - 1 - states, states)
        hidden = states if self._strands == 1 else np.column_stack(np.divmod(states, 2))
        return self.classes[labels], np.where(labels == 1, hidden.T, -1).T

    def in_user_order(self, values: Array, labels: Array) -> Array:
        turned = self._flipped & (labels == 1)
        sizes, places = np.diff(self.offsets), np.arange(values.size)
        mirrored = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, sizes) - places
        return values[np.where(np.repeat(turned, sizes), mirrored, places)]

    def digest(self) -> str:
        sequences = self._sequences
        if self._flipped.any():  # turning twice gives the sequences as they came
            sequences = turn(sequences, self._flipped)
        letters = letters_of(sequences.values)[:, None]
        return checksum(letters, sequences.offsets, *self._settings(), *self.digest_arrays())

    def _settings(self) -> tuple[Array, Array]:
        """What belongs to the data beside letters and labels."""
        return np.append(self._shape, self._strands), self.offsets

    def _argmax(
        self,
        w: Array,
        rows: Rows,
        losses: LossTable,
        *,
        anchor: Array | None = None,
        rivals: bool = False,
    ) -> Assignment:
        if losses.column is None:
            return super()._argmax(w, rows, losses, anchor=anchor, rivals=rivals)
        background_only, value, state = self._search(w, rows)
        column = _take(losses.column, rows)
        background, motif = losses.table[0].take(column), losses.table[1].take(column)
        if anchor is None:
            background += background_only
            motif += value
        else:
            background *= 1 + background_only - anchor
            motif *= 1 + value - anchor
        has_motif = motif > background
        if rivals:
            has_motif = self._known_labels(rows) == 0
        best = np.where(has_motif, motif, background)
        return Assignment(self._join(has_motif.astype(np.int64), np.where(has_motif, state, 0)), best)

    def _search(
        self, w: Array, rows: Rows, given: Array | None = None, preferred: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Score of background alone, and score and state of the best window, of every row."""
        n = self._count(rows)
        free = np.full(n, TARGET)
        background_only, value, state = np.empty(n), np.empty(n), np.empty(n, np.int64)
        kernels.best_windows(
            *self._cut_words(rows),
            *self._tables(w),
            self._pieces.places,
            self._shape,
            free if given is None else given,
            free if preferred is None else preferred,
            self._work(),
            background_only,
            value,
            state,
        )
        return background_only, value, state

    def _cut_words(self, rows: Rows) -> tuple[Array, Array, Array, Array]:
        return self._words.ids, self._parts.ids, _take(self._starts, rows), _take(self._stops, rows)

    def _tables(self, w: Array) -> tuple[Array, Array, Array]:
        """The weight of every background word, of its reverse complement if that is counted too, and of every piece of
        the motif on each strand."""
        blocks = self._blocks_of(w)
        motifs = [blocks["motif"], blocks["motif"][::-1, ::-1]]  # A, C, G, T backwards are their complements
        tables = np.stack([self._pieces.tables(motif) for motif in motifs[: self._strands]])
        background = blocks["background"]
        reverse = self._words.extend(background[self._complements]) if self._layout.is_symmetric else np.zeros(0)
        return self._words.extend(background), reverse, self._parts.extend(tables)

    @cached_property
    def _complements(self) -> Array:
        """The number of the reverse complement of every plain word."""
        numbers = np.arange(4**self._layout.background).reshape((4,) * self._layout.background)
        return np.ascontiguousarray(numbers.transpose()[(slice(None, None, -1),) * numbers.ndim]).ravel()

    def _zeros(self) -> tuple[Array, Array, Array]:
        reverse = np.zeros(self._words.size if self._layout.is_symmetric else 0)
        pieces = np.zeros((self._strands, len(self._pieces.places), self._parts.size))
        return np.zeros(self._words.size), reverse, pieces

    def _fold(self, words: Array, reverse: Array, pieces: Array) -> Array:
        out = np.zeros(self.n_params)
        blocks = self._blocks_of(out)
        blocks["background"][:] = self._words.fold(words)
        if self._layout.is_symmetric:
            blocks["background"][:] += self._words.fold(reverse)[self._complements]
        plain = self._parts.fold(pieces)
        blocks["motif"][:] = self._pieces.fold(plain[0])
        if self._strands == 2:
            blocks["motif"][:] += self._pieces.fold(plain[1])[::-1, ::-1]
        return out

    def _work(self) -> Array:
        return np.empty((2, self._longest + 1))


def _take(values: Array, rows: Rows) -> Array:
    return values if rows is None else values[rows]

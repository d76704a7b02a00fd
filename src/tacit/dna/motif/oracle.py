"""The oracle of `Motif`: every start of every sequence, by tables of k-mers."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, checksum, positions_of, starts_of
from tacit.data.labels import find_labels, reject_unknown
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.table import Table
from tacit.dna.kmers import Kmers, Pieces, find_enriched_kmers, find_kmers
from tacit.dna.motif import kernels
from tacit.dna.motif.hidden import read_windows
from tacit.dna.sequences import DNA, find_flipped, lend_sequences, orient, reverse_complement
from tacit.oracle import TARGET, Assignment, CapabilityError, EnumerableOracle, LossTable, Schema
from tacit.oracle.cells import one_coef_each, take_rows
from tacit.oracle.contracts import KnownHidden
from tacit.problems.classes.blocks import cut_samples

MAX_KEPT = 50_000_000
"""Letters of blocks of shards whose k-mers stay numbered, at five bytes each. Numbering them again makes a pass two to
four times as long."""


@dataclass(frozen=True)
class Layout:
    """The windows and k-mers of a sequence that a model counts.

    Parameters
    ----------
    width, background : letters of the motif, and of a background k-mer
    strands : 1 or 2
    is_full : every window and every k-mer; otherwise those of the code of Kumar, Packer & Koller (2010), which leaves
        out the last k-mer and the last ``background`` + 1 windows
    """

    width: int
    background: int
    strands: int
    is_full: bool = True

    @property
    def is_symmetric(self) -> bool:
        """Whether k-mers are counted on both strands, so that a sequence and its reverse complement are the same."""
        return self.is_full and self.strands == 2

    @property
    def shortest(self) -> int:
        """The length of the shortest sequence."""
        return max(self.width, self.background) if self.is_full else self.width + self.background + 1

    def count_starts(self, lengths: Any) -> Any:
        """The number of windows of sequences of these lengths."""
        return lengths - self.width + 1 - self._left_out

    @property
    def _left_out(self) -> int:
        return 0 if self.is_full else self.background + 1

    def shape(self) -> Array:
        """The ``shape`` of the kernels."""
        without_kmer = self.background - 1 if self.is_full else self.background
        return np.array([self.width, without_kmer, self._left_out, self.background - 1])


class Numbered(NamedTuple):
    """K-mers of the background and of pieces of the motif by their numbers, and where sequences start and stop."""

    kmers: Kmers
    pieces: Kmers
    starts: Array
    stops: Array

    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """The ``sequences`` of the kernels."""
        return self.kmers.ids, self.pieces.ids, self.starts, self.stops


class MotifOracle(EnumerableOracle):
    """Label 0 is background alone, label 1 has a state for every start and strand.

    All work is sums over k-mers: `find_kmers` numbers them once, two bytes per position for the background and two for
    the motif. The searches (`predict`, `predict_augmented`, `impute`, `score`, `label_scores`) keep the
    best window while they slide and never write the table of scores, which is two to three times as fast.
    O(letters · ⌈width / 5⌉ · strands) per pass.

    Parameters
    ----------
    sequences : letter codes, from `read_sequences`, or shards of letters. A block of shards is numbered when it is
        needed; the first `MAX_KEPT` letters are kept, all others are numbered again in the next pass
    schema : classes (negative, positive) and the blocks of w
    layout : the windows and k-mers that count
    supervision : labels, hidden and losses, as in `EnumerableOracle`
    """

    def __init__(self, sequences: Ragged | Shards, schema: Schema, layout: Layout, **supervision: Any) -> None:
        width, strands = layout.width, layout.strands
        self._layout, self._strands = layout, strands
        self.n_outer = strands
        self._shape = layout.shape()
        self._blocks_of = schema.views
        self._schema = schema
        self._labels_of: Array | None = supervision.get("labels")
        self._pieces = Pieces.of(width)
        self._tiling = self._pieces.shifts, self._shape
        self._keep(sequences)
        self._longest = int(sequences.lengths.max())
        states = strands * layout.count_starts(sequences.lengths)
        offsets = np.concatenate([[0], np.cumsum(states)])
        if "hidden" in supervision:
            supervision["hidden"] = self._flip(supervision["hidden"], offsets)
        super().__init__(schema.classes, offsets, schema.n_params, **supervision)

    def _keep(self, sequences: Ragged | Shards) -> None:
        """Keep the sequences, each on the strand that comes first, and number their k-mers; those of shards later."""
        self._flipped = np.zeros(len(sequences), dtype=bool)
        self._letters: Table | None = None
        if isinstance(sequences, Shards):
            self._letters, self.row_offsets = sequences.values, sequences.offsets
            self._kept: dict[tuple[int, int], Numbered] = {}
            if self._layout.is_symmetric:
                known = getattr(sequences, "facts", None)
                self._flipped = find_flipped(self._letters, self.row_offsets) if known is None else known
            return
        if self._layout.is_symmetric:
            sequences, self._flipped = orient(sequences)
        self._sequences: Ragged = sequences
        self._all = self._number(sequences)

    def _number(self, sequences: Ragged) -> Numbered:
        """Number the k-mers of sequences that are on the strand that comes first."""
        values, offsets, background = sequences.values, sequences.offsets, self._layout.background
        kmers = find_kmers(values, offsets, background)
        pieces = kmers if self._pieces.length == background else find_kmers(values, offsets, self._pieces.length)
        return Numbered(kmers, pieces, offsets[:-1], offsets[1:])

    def _at(self, rows: Rows) -> Numbered:
        """The numbered k-mers of some sequences."""
        if self._letters is None:
            kmers, pieces, starts, stops = self._all
            return Numbered(kmers, pieces, take_rows(starts, rows), take_rows(stops, rows))
        span = slice(None) if rows is None else rows
        block = span.indices(self.n_samples)[:2] if isinstance(span, slice) else None
        if block in self._kept:
            return self._kept[block]
        letters, offsets = positions_of(self.row_offsets, rows), starts_of(self.row_offsets, rows)
        numbered = self._number(self._read(letters, offsets))
        if block is not None:
            kept = sum(int(own.stops[-1]) for own in list(self._kept.values()))
            if kept + int(offsets[-1]) <= MAX_KEPT:
                self._kept[block] = numbered
        return numbered

    def _read(self, letters: Any, offsets: Array) -> Ragged:
        """Sequences of the table, each on the strand that comes first."""
        assert self._letters is not None
        sequences = lend_sequences(self._letters, letters, offsets)
        return orient(sequences)[0] if self._layout.is_symmetric else sequences

    @property
    def on_workers(self) -> Any:
        """A function that lets workers compute for this oracle, if they have the letters; else None."""
        return getattr(self._letters, "distribute", None)

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the sequences from first to last (exclusive), for the worker that has their letters."""
        part = cut_samples(self, first, last)
        part._letters, part._kept = None, {}
        part.row_offsets = self.row_offsets[first : last + 1] - self.row_offsets[first]
        part._flipped = self._flipped[first:last]
        part._labels_of = part._labels
        return part

    def on_rows(self, table: Table) -> Self:
        """The same oracle with these letters."""
        view = copy.copy(self)
        view._letters, view._kept = table, {}
        return view

    def _flip(self, known: KnownHidden, offsets: Array) -> KnownHidden:
        """Convert states between the strand as given and the strand that is kept: their order is reversed."""
        if not self._flipped.any():
            return known
        sizes = np.diff(offsets)
        is_state = self._flipped & (known.states >= 0)
        if self._labels_of is not None:
            is_state &= self._labels_of == 1
        states = np.where(is_state, sizes - 1 - known.states, known.states)
        if known.allowed is None:
            return KnownHidden(states)
        positions = np.arange(int(offsets[-1]))
        mirrored = np.repeat(offsets[:-1] + offsets[1:] - 1, sizes) - positions
        return KnownHidden(states, known.allowed[np.where(np.repeat(self._flipped, sizes), mirrored, positions)])

    def scores(self, w: Array, rows: Rows = None) -> Array:
        sizes = np.diff(self.offsets) if rows is None else np.diff(self.offsets)[rows]
        scores = np.empty((2, int(sizes.sum())))
        scores[0] = -np.inf
        at = self._at(rows)
        kernels.score_windows(at.arrays(), self._tables(w, at), self._tiling, self._work(), scores)
        return scores

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        at = self._at(rows)
        sums = self._zeros(at)
        V = np.ascontiguousarray(V, dtype=np.float64)
        kernels.add_all_windows(at.arrays(), self._tiling, V, self._work(), sums)
        return self._fold(at, *sums)

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        at = self._at(rows)
        sums = self._zeros(at)
        kernels.add_windows(at.arrays(), self._tiling, labels, states, coef, sums)
        return self._fold(at, *sums)

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i (Ψ(x_i, code_i) − Ψ(x_i, target_i)): k-mers outside both windows cancel, so O(width) per row."""
        coef = one_coef_each(coef, self._count(rows))
        at = self._at(rows)
        sums = self._zeros(at)
        for output, sign in ((self.split(code, rows), 1.0), (self.split(target, rows), -1.0)):
            kernels.add_moves(at.arrays(), self._tiling, *output, coef, sign, sums)
        return self._fold(at, *sums)

    def proposals(self, most: int) -> list[Array]:
        """Windows that match a k-mer enriched in positives best, one k-mer per start."""
        if self.on_workers is not None:
            raise CapabilityError(
                "init='auto' of Motif needs the k-mers of all sequences, but these are on the workers; use "
                "init='hidden', or give hidden values to start from"
            )
        is_here = self._letters is None
        sequences = self._sequences if is_here else self._read(positions_of(self.row_offsets, None), self.row_offsets)
        kmers = find_enriched_kmers(sequences, self._known_labels(None) == 1, self._layout.width, self._strands, most)
        codes = []
        for letters in kmers:
            w = np.zeros(self.n_params)
            middle = (self._layout.width - letters.size) // 2
            self._blocks_of(w)["motif"][middle + np.arange(letters.size), letters] = 1.0
            codes.append(self.impute(w).code)
        return codes

    def joint_moves(self, code: Array) -> list[Array]:
        """Codes with all motifs shifted by one, two or three letters, within their sequences.

        A motif that is off by a letter is a local optimum: no sample gains by moving alone.
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

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        if self._allowed is not None:
            return super().impute(w, rows, prefer)
        labels = self._known_labels(rows)
        given = np.where(
            labels == 1, take_rows(self._hidden, rows), 0
        )  # background alone has one state: nothing to search
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
        sizes = take_rows(np.diff(self.offsets), rows)
        there = np.repeat(labels == 1, sizes)
        there[np.cumsum(sizes) - sizes] = True  # background alone has one state
        return there

    @property
    def operations(self) -> float:
        return 4.0 * float(self.offsets[-1]) * (len(self._pieces.shifts) + 2)  # look-ups: slower than multiplications

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        labels = np.asarray(labels)
        found = find_labels(self.classes, labels)
        reject_unknown(found, self.classes, labels)
        sizes = take_rows(np.diff(self.offsets), rows)
        if hidden is None:
            states = np.where((found == 1) & (sizes > 1), -1, 0)
        else:
            states = read_windows(hidden, sizes // self._strands, self._strands, found, self.classes).states
            is_flipped = take_rows(self._flipped, rows) & (found == 1) & (states >= 0)
            states = np.where(is_flipped, sizes - 1 - states, states)
        unknown = np.flatnonzero(states < 0)
        if unknown.size:
            raise ValueError(
                f"the start of the motif of sample {unknown[0]} ({shorten(labels[unknown[0]].item())}) is unknown "
                "(-1); a code needs complete outputs"
            )
        return self._join(found, states)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        labels, states = self.split(code, rows)
        sizes = take_rows(np.diff(self.offsets), rows)
        states = np.where(take_rows(self._flipped, rows) & (labels == 1), sizes - 1 - states, states)
        hidden = states if self._strands == 1 else np.column_stack(np.divmod(states, 2))
        return self.classes[labels], np.where(labels == 1, hidden.T, -1).T

    def in_user_order(self, values: Array, labels: Array) -> Array:
        flipped = self._flipped & (labels == 1)
        sizes, positions = np.diff(self.offsets), np.arange(values.size)
        mirrored = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, sizes) - positions
        return values[np.where(np.repeat(flipped, sizes), mirrored, positions)]

    def digest(self) -> str:
        if self._letters is not None:
            return checksum(self._letters, self.row_offsets, *self._settings(), *self.digest_arrays())
        sequences = self._sequences
        if self._flipped.any():  # twice gives the sequences as they came
            sequences = reverse_complement(sequences, self._flipped)
        letters = DNA.letters_of(sequences.values)[:, None]
        return checksum(letters, sequences.offsets, *self._settings(), *self.digest_arrays())

    def _settings(self) -> tuple[Array, Array]:
        """What identifies the data beside letters and labels."""
        return np.append(self._shape, self._strands), self.offsets

    def _argmax(
        self, w: Array, rows: Rows, losses: LossTable, *, anchor: Array | None = None, rivals: bool = False
    ) -> Assignment:
        if losses.column is None:
            return super()._argmax(w, rows, losses, anchor=anchor, rivals=rivals)
        background_only, value, state = self._search(w, rows)
        column = take_rows(losses.column, rows)
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
        """For every row the score of background alone, and score and state of the best window."""
        n = self._count(rows)
        if self._letters is not None and not w.any():  # all windows score 0: no letters are needed
            state = np.zeros(n, np.int64)
            for wished in (preferred, given):
                state = state if wished is None else np.where(wished >= 0, wished, state)
            return np.zeros(n), np.zeros(n), state
        free, at = np.full(n, TARGET), self._at(rows)
        given, preferred = (free if states is None else states for states in (given, preferred))
        found = np.empty(n), np.empty(n), np.empty(n, np.int64)
        kernels.best_windows(at.arrays(), self._tables(w, at), self._tiling, given, preferred, self._work(), found)
        return found

    def _tables(self, w: Array, at: Numbered) -> tuple[Array, Array, Array]:
        """The weights of background k-mers, of their reverse complements if counted, and of pieces on each strand."""
        blocks = self._blocks_of(w)
        strands = [self._pieces.tables(blocks["motif"])]
        if self._strands == 2:  # A, C, G, T backwards are their complements
            strands.append(self._pieces.tables(blocks["motif"][::-1, ::-1]))
        tables = np.stack(strands)
        background = blocks["background"]
        reverse = at.kmers.extend(background[self._complements]) if self._layout.is_symmetric else np.zeros(0)
        return at.kmers.extend(background), reverse, at.pieces.extend(tables)

    @cached_property
    def _complements(self) -> Array:
        """The number of the reverse complement of every plain k-mer."""
        numbers = np.arange(4**self._layout.background).reshape((4,) * self._layout.background)
        return np.ascontiguousarray(numbers.transpose()[(slice(None, None, -1),) * numbers.ndim]).ravel()

    def _zeros(self, at: Numbered) -> tuple[Array, Array, Array]:
        reverse = np.zeros(at.kmers.size if self._layout.is_symmetric else 0)
        pieces = np.zeros((self._strands, len(self._pieces.shifts), at.pieces.size))
        return np.zeros(at.kmers.size), reverse, pieces

    def _fold(self, at: Numbered, kmers: Array, reverse: Array, pieces: Array) -> Array:
        out = np.zeros(self.n_params)
        blocks = self._blocks_of(out)
        blocks["background"][:] = at.kmers.fold(kmers)
        if self._layout.is_symmetric:
            blocks["background"][:] += at.kmers.fold(reverse)[self._complements]
        plain = at.pieces.fold(pieces)
        blocks["motif"][:] = self._pieces.fold(plain[0])
        if self._strands == 2:
            blocks["motif"][:] += self._pieces.fold(plain[1])[::-1, ::-1]
        return out

    def _work(self) -> Array:
        return np.empty((2, self._longest + 1))

"""The oracle of `Motif`: every start of every sequence, by tables of short words."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.arrays import Array, Rows
from tacit.labels import find_labels, reject_unknown
from tacit.oracle import TARGET, Assignment, EnumerableOracle, LossTable, Schema
from tacit.oracle.enumerable import checksum, one_coef_each
from tacit.problems import motif_kernels as kernels
from tacit.problems.words import find_words
from tacit.ragged import Ragged

LONGEST_PIECE = 5
"""Letters of a motif that one lookup scores: 4⁵ numbers, 8 kB, stay in a core's first cache."""


class Pieces(NamedTuple):
    """A motif cut into pieces of equal length, at least two of them; the last one overlaps where the width needs it."""

    length: int
    places: Array  # (pieces,) where each begins in the window
    covers: Array  # (pieces, length) the position in the motif that a letter of a piece speaks for, −1 for none

    @classmethod
    def of(cls, width: int) -> Self:
        """The least number of pieces of at most `LONGEST_PIECE` letters.

        >>> Pieces.of(7).covers.tolist()
        [[0, 1, 2, 3], [-1, 4, 5, 6]]
        """
        count = ceil(width / LONGEST_PIECE)
        length = ceil(width / count)
        places = np.minimum(np.arange(count) * length, width - length)
        covers = places[:, None] + np.arange(length)
        covers[1:][covers[1:] < np.arange(1, count)[:, None] * length] = -1
        if count == 1:
            places, covers = np.append(places, 0), np.vstack([covers, np.full((1, length), -1)])
        return cls(length, places, covers)

    def tables(self, motif: Array) -> Array:
        """(pieces, 4^length): what every word adds to the score, from the weights (width, 4)."""
        letters = np.vstack([motif, np.zeros((1, 4))])[self.covers]
        tables = np.zeros((len(self.places), 1))
        for j in range(self.length):
            tables = (tables[:, :, None] + letters[:, j, None, :]).reshape(len(self.places), -1)
        return tables

    def fold(self, sums: Array) -> Array:
        """The transpose of `tables`: sums by piece and word as sums by motif position and letter."""
        out = np.zeros((int(self.covers.max()) + 2, 4))
        for j in range(self.length):
            out[self.covers[:, j]] = sums.reshape(len(self.places), 4**j, 4, -1).sum(axis=(1, 3))
        return out[:-1]


class MotifOracle(EnumerableOracle):
    """Label 0 is background alone, label 1 has a state for every start and strand.

    Sums of words are the whole work: `find_words` numbers them once, two bytes a position for the background and two
    for the motif. The searches (`predict`, `augmented`, `impute`, `score`, `label_scores`) keep the best window while
    they slide and never write the table of scores, which is two to three times as fast.
    O(letters · ⌈width / 5⌉ · strands) a pass.

    Parameters
    ----------
    sequences : letter codes, from `read_sequences`
    schema : classes (negative, positive) and the blocks of w
    width, background, strands : those of the problem, strands as a number
    facts : labels, hidden and losses, as in `EnumerableOracle`
    """

    def __init__(
        self, sequences: Ragged, schema: Schema, width: int, background: int, strands: int, **facts: Any
    ) -> None:
        self._width, self._background, self._strands = width, background, strands
        self._blocks_of = schema.views
        self._starts, self._stops = sequences.offsets[:-1], sequences.offsets[1:]
        self._pieces = Pieces.of(width)
        self._words = find_words(sequences.values, sequences.offsets, background)
        is_shared = self._pieces.length == background
        self._parts = self._words if is_shared else find_words(sequences.values, sequences.offsets, self._pieces.length)
        self._longest = int(sequences.lengths.max())
        states = strands * (sequences.lengths - width - background)
        offsets = np.concatenate([[0], np.cumsum(states)])
        super().__init__(schema.classes, offsets, schema.n_params, **facts)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        sizes = np.diff(self.offsets) if rows is None else np.diff(self.offsets)[rows]
        scores = np.empty((2, int(sizes.sum())))
        scores[0] = -np.inf
        kernels.score_windows(
            *self._cut_words(rows),
            *self._tables(w),
            self._pieces.places,
            self._width,
            self._background,
            self._work(),
            scores,
        )
        return scores

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        words, pieces = self._zeros()
        V = np.ascontiguousarray(V, dtype=np.float64)
        kernels.add_all_windows(
            *self._cut_words(rows), self._pieces.places, self._width, self._background, V, self._work(), words, pieces
        )
        return self._fold(words, pieces)

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        words, pieces = self._zeros()
        kernels.add_windows(
            *self._cut_words(rows),
            self._pieces.places,
            self._width,
            self._background,
            labels,
            states,
            coef,
            words,
            pieces,
        )
        return self._fold(words, pieces)

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i (Ψ(x_i, code_i) − Ψ(x_i, target_i)): the words outside both windows cancel, so O(width) a row."""
        words, pieces = self._zeros()
        ids, parts, starts, _ = self._cut_words(rows)
        coef = one_coef_each(coef, starts.size)
        for output, sign in ((code, 1.0), (target, -1.0)):
            kernels.add_moves(
                ids,
                parts,
                starts,
                self._pieces.places,
                self._width,
                *self.split(output, rows),
                coef,
                sign,
                words,
                pieces,
            )
        return self._fold(words, pieces)

    def shifted(self, code: Array) -> list[Array]:
        """Codes with all motifs one, two or three letters further on, or back, as far as their sequences reach."""
        labels, states = self.split(code)
        start, strand = np.divmod(states, self._strands)
        last = np.diff(self.offsets) // self._strands - 1
        free = labels == 1 if self._hidden is None else (labels == 1) & (self._hidden < 0)
        codes = []
        for step in (1, -1, 2, -2, 3, -3):
            moved = np.clip(start + np.where(strand == 0, step, -step), 0, last)
            codes.append(self._join(labels, np.where(free, moved * self._strands + strand, states)))
        return codes

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        labels = self._known_labels(rows)
        given = np.full(labels.size, -1) if self._hidden is None else _take(self._hidden, rows)
        given = np.where(labels == 1, given, 0)  # background alone has one state: nothing to search
        wish = None if prefer is None else self._wishes(prefer, labels, rows)
        nowhere, value, state = self._search(w, rows, given, wish)
        return Assignment(self._join(labels, state), np.where(labels == 1, value, nowhere))

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        labels, states = self.split(code, rows)
        nowhere, value, _ = self._search(w, rows, states)
        return np.where(labels == 1, value, nowhere)

    def label_scores(self, w: Array, rows: Rows = None) -> Array:
        return np.column_stack(self._search(w, rows)[:2])

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        return super().accepts(code) and not ((code > 0) & (code % 2 == 0)).any()

    def hidden_unknown(self) -> Array:
        several = np.diff(self.offsets) > 1
        if self._labels is not None:
            several &= self._labels == 1
        return np.flatnonzero(several if self._hidden is None else several & (self._hidden < 0))

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        labels = np.asarray(labels)
        found = find_labels(self.classes, labels)
        reject_unknown(found, self.classes, labels)
        sizes = _take(np.diff(self.offsets), rows)
        if hidden is None:
            states = np.where((found == 1) & (sizes > 1), -1, 0)
        else:
            states = read_windows(hidden, sizes // self._strands, self._strands, found, self.classes)
        unknown = np.flatnonzero(states < 0)
        if unknown.size:
            raise ValueError(
                f"sample {unknown[0]} is {labels[unknown[0]].item()!r}, and where its motif starts is unknown (-1): "
                "only complete outputs have a code"
            )
        return self._join(found, states)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        labels, states = self.split(code, rows)
        hidden = states if self._strands == 1 else np.column_stack(np.divmod(states, 2))
        return self.classes[labels], np.where(labels == 1, hidden.T, -1).T

    def digest(self) -> str:
        losses = (None, None) if self._losses is None else self._losses
        shape = np.array([self._width, self._background, self._strands])
        ids = self._words.ids, self._words.spellings, self._parts.ids, self._parts.spellings
        return checksum(*ids, shape, self.offsets, self._labels, self._hidden, *losses)

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
        nowhere, value, state = self._search(w, rows)
        column = _take(losses.column, rows)
        background, motif = losses.table[0].take(column), losses.table[1].take(column)
        if anchor is None:
            background += nowhere
            motif += value
        else:
            background *= 1 + nowhere - anchor
            motif *= 1 + value - anchor
        has_motif = motif > background
        if rivals:
            has_motif = self._known_labels(rows) == 0
        best = np.where(has_motif, motif, background)
        return Assignment(self._join(has_motif.astype(np.int64), np.where(has_motif, state, 0)), best)

    def _search(
        self, w: Array, rows: Rows, given: Array | None = None, wish: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Score of background alone, and score and state of the best window, of every row."""
        n = self._count(rows)
        free = np.full(n, TARGET)
        nowhere, value, state = np.empty(n), np.empty(n), np.empty(n, np.int64)
        kernels.best_windows(
            *self._cut_words(rows),
            *self._tables(w),
            self._pieces.places,
            self._width,
            self._background,
            free if given is None else given,
            free if wish is None else wish,
            self._work(),
            nowhere,
            value,
            state,
        )
        return nowhere, value, state

    def _cut_words(self, rows: Rows) -> tuple[Array, Array, Array, Array]:
        return self._words.ids, self._parts.ids, _take(self._starts, rows), _take(self._stops, rows)

    def _tables(self, w: Array) -> tuple[Array, Array]:
        """The weight of every background word, and of every piece of the motif on each strand."""
        blocks = self._blocks_of(w)
        motifs = [blocks["motif"], blocks["motif"][::-1, ::-1]]  # A, C, G, T backwards are their complements
        tables = np.stack([self._pieces.tables(motif) for motif in motifs[: self._strands]])
        return self._words.extend(blocks["background"]), self._parts.extend(tables)

    def _zeros(self) -> tuple[Array, Array]:
        return np.zeros(self._words.size), np.zeros((self._strands, len(self._pieces.places), self._parts.size))

    def _fold(self, words: Array, pieces: Array) -> Array:
        out = np.zeros(self.n_params)
        blocks = self._blocks_of(out)
        blocks["background"][:] = self._words.fold(words)
        plain = self._parts.fold(pieces)
        blocks["motif"][:] = self._pieces.fold(plain[0])
        if self._strands == 2:
            blocks["motif"][:] += self._pieces.fold(plain[1])[::-1, ::-1]
        return out

    def _work(self) -> Array:
        return np.empty((2, self._longest + 1))


def read_windows(hidden: Any, starts: Array, strands: int, labels: Array | None, classes: Array) -> Array:
    """The states of starts (and strands) as users write them: −1 where unknown, 0 for negatives.

    Parameters
    ----------
    hidden : (n,) starts, or with two strands (n, 2) starts and strands; −1, None or NaN for unknown and for negatives
    starts : (n,) how many each sample has
    labels : positions among the classes; None if they are unknown

    >>> read_windows([-1, 3, -1], np.array([5, 5, 5]), 1, np.array([0, 1, 1]), np.array(["free", "bound"]))
    array([ 0,  3, -1])
    """
    n = starts.size
    given = np.asarray(hidden)
    if given.shape != ((n,) if strands == 1 else (n, 2)):
        form = "one start each" if strands == 1 else "a start and a strand (0 or 1) each, shape (n, 2)"
        raise ValueError(f"hidden has shape {given.shape} for {n} samples; give {form}, -1 for unknown and negatives")
    if given.dtype == object:
        given = np.array([-1.0 if v is None else v for v in given.ravel().tolist()]).reshape(given.shape)
    if given.dtype.kind == "f":
        given = np.where(np.isnan(given), -1.0, given)
    if given.dtype.kind not in "iuf" or not np.array_equal(given, given.astype(np.int64)):
        raise ValueError(f"hidden starts are positions (integers, -1 if unknown), got {given[:3].tolist()} ...")
    given = given.astype(np.int64)
    start, strand = (given, np.where(given < 0, -1, 0)) if strands == 1 else given.T
    is_unknown = (start == -1) & (strand == -1)
    wrong = np.flatnonzero(~is_unknown & ((start < 0) | (start >= starts) | (strand < 0) | (strand >= strands)))
    if wrong.size:
        i = int(wrong[0])
        form = "0 or 1 as strand" if strands == 2 else ""
        raise ValueError(
            f"hidden[{i}] is {given[i].tolist()}, sample {i} has starts 0 to {starts[i] - 1}"
            f"{' and ' + form if form else ''} (-1 for unknown)"
        )
    states = np.where(is_unknown, -1, start * strands + strand)
    if labels is None:
        return states
    moved = np.flatnonzero((labels == 0) & ~is_unknown)
    if moved.size:
        i = int(moved[0])
        raise ValueError(
            f"hidden[{i}] is {given[i].tolist()}, but sample {i} is {classes[0].item()!r}, the negative class, which "
            f"has no motif: give -1; if it is the positive class, list it second: classes={classes[::-1].tolist()}"
        )
    return np.where(labels == 0, 0, states)


def _take(values: Array, rows: Rows) -> Array:
    return values if rows is None else values[rows]

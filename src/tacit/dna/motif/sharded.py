"""Motifs in sequences that are in shards: words are numbered block by block, with the same bits."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Rows, checksum, states_of
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.dna.letters import letter_codes
from tacit.dna.motif.oracle import MotifOracle
from tacit.dna.sequences import orient
from tacit.oracle import CapabilityError
from tacit.problems.classes.blocks import cut_samples

LETTERS_AT_A_TIME = 1 << 22
"""Letters that are read at a time where all sequences are looked at."""


MAX_KEPT = 50_000_000
"""Letters of blocks whose words stay numbered, at five bytes each. Numbering words anew in every pass makes it two to
four times as long."""


class ShardedMotifOracle(MotifOracle):
    """The letters are in a `Table`, one byte each. A block of sequences becomes a `MotifOracle`
    when it is asked; the first `MAX_KEPT` letters stay so, all others are numbered anew in the next pass."""

    def _keep(self, sequences: Shards) -> None:
        self._kept: dict[tuple[int, int], MotifOracle] = {}
        self._letters: Any = sequences.values
        self.row_offsets = sequences.offsets
        self._flipped = np.zeros(len(sequences), dtype=bool)
        if self._layout.is_symmetric:
            known = getattr(sequences, "facts", None)
            self._flipped = flips(sequences.values, sequences.offsets) if known is None else known

    @property
    def on_workers(self) -> Any:
        """A function that lets workers answer for this oracle, where they have the letters; else None."""
        return getattr(self._letters, "distribute", None)

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the sequences from first to last (exclusive), to be sent to where their letters are."""
        part = cut_samples(self, first, last)
        part._letters, part._kept = None, {}
        part.row_offsets = self.row_offsets[first : last + 1] - self.row_offsets[first]
        part._flipped = self._flipped[first:last]
        part._labels_of = part._labels
        part._starts, part._stops = part.row_offsets[:-1], part.row_offsets[1:]
        return part

    def on_rows(self, table: Any) -> Self:
        """The same oracle with these letters."""
        view = copy.copy(self)
        view._letters, view._kept = table, {}
        return view

    def scores(self, w: Array, rows: Rows = None) -> Array:
        return self._at(rows).scores(w)

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        return self._at(rows).adjoint(V)

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        return self._at(rows).gather(labels, states, coef)

    def _moved(self, outputs: tuple[Any, Any], targets: tuple[Any, Any], coef: Array, rows: Rows) -> Array:
        return self._at(rows)._moved(outputs, targets, coef, None)

    def _search(
        self, w: Array, rows: Rows, given: Array | None = None, preferred: Array | None = None
    ) -> tuple[Array, Array, Array]:
        if w.any():
            return self._at(rows)._search(w, None, given, preferred)
        state = np.zeros(self._count(rows), np.int64)  # all windows score 0: no letters are needed, wherever they are
        for wished in (preferred, given):
            state = state if wished is None else np.where(wished >= 0, wished, state)
        return np.zeros(state.size), np.zeros(state.size), state

    def proposals(self, most: int) -> list[Array]:
        if self.on_workers is not None:
            raise CapabilityError(
                "init='auto' of Motif compares the words of all sequences, which are on the workers; use "
                "init='hidden', or give the hidden values to begin with"
            )
        sequences = _read(self._letters, slice(0, int(self.row_offsets[-1])), self.row_offsets)
        self._sequences = orient(sequences)[0] if self._layout.is_symmetric else sequences
        try:
            return super().proposals(most)
        finally:
            del self._sequences

    def digest(self) -> str:
        return checksum(self._letters, self.row_offsets, *self._settings(), *self.digest_arrays())

    def _at(self, rows: Rows) -> MotifOracle:
        """The oracle of some sequences, made of their letters."""
        if rows is None:
            rows = slice(0, self.n_samples)
        if isinstance(rows, slice):
            first, last, _ = rows.indices(self.n_samples)
            if (first, last) in self._kept:
                return self._kept[first, last]
            letters: Any = slice(int(self.row_offsets[first]), int(self.row_offsets[last]))
            starts = self.row_offsets[first : last + 1] - self.row_offsets[first]
        else:
            letters, starts = states_of(self.row_offsets, np.asarray(rows))
        block = MotifOracle(_read(self._letters, letters, starts), self._schema, self._layout)
        if isinstance(letters, slice):
            self._letters.release(letters)
            kept = sum(int(own._stops[-1]) for own in list(self._kept.values()))
            if kept + letters.stop - letters.start <= MAX_KEPT:
                self._kept[first, last] = block
        return block


def flips(table: Any, offsets: Array) -> Array:
    """Which sequences of a table of letters are kept as their reverse complement; see `orient`."""
    at_once = np.searchsorted(offsets, np.arange(0, int(offsets[-1]), LETTERS_AT_A_TIME))
    cuts = np.unique(np.append(at_once, offsets.size - 1)).tolist()
    found = [np.zeros(0, dtype=bool)]
    for first, last in zip([0, *cuts[:-1]], cuts, strict=True):
        if last > first:
            letters = slice(int(offsets[first]), int(offsets[last]))
            found.append(orient(_read(table, letters, offsets[first : last + 1] - offsets[first]))[1])
            table.release(letters)
    return np.concatenate(found)


def _read(table: Any, letters: Any, offsets: Array) -> Ragged:
    return Ragged(letter_codes(table[letters].ravel()), offsets)

"""Find the sites of motifs in sequences of any number and length, with p-values and q-values, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import number
from tacit.dna.kmers import LONGEST_PIECE, Pieces
from tacit.dna.pieces import Piece, join_pieces
from tacit.dna.score_tails import STEPS, Background, log_odds, score_tail
from tacit.dna.sequences import read_sequences


class Hit(NamedTuple):
    """A site: motif (from 1), name of the sequence, start and end (from 0), strand, score and p-value."""

    motif: int
    name: str
    start: int
    end: int
    strand: str
    score: float
    p_value: float
    steps: int
    """The score in the steps of its p-value, for `Scanner.q_table`."""


class ScannedMotif(NamedTuple):
    """A motif to scan with: its name, and (width, 4) what every letter adds to the score of a site."""

    name: str
    weights: Array


class Scanner:
    """Finds motifs in sequences, with p-values and q-values.

    A window with a letter other than A, C, G, T does not have a score. The p-value of a site is the probability of
    its score in a random sequence with the dinucleotides of the background, computed exactly.

    Parameters
    ----------
    motifs : what to look for; `motifs_of` takes them from a fitted `tacit.apps.MotifFinder` or from matrices
    background : from `tacit.dna.score_tails.learn_background`, of sequences like those to be scanned
    p_value : sites with a p-value up to this are reported
    strands : 1 or 2

    Attributes
    ----------
    n_windows : (motifs,) windows with a score so far, strands counted

    >>> from tacit.dna.score_tails import learn_background
    >>> codes = read_sequences(["ACGTTGCAAC" * 100]).values
    >>> scanner = Scanner([ScannedMotif("one", np.eye(4)[[3, 2, 1]])], learn_background([codes]), p_value=0.1)
    >>> [(hit.start, hit.strand) for hit in scanner.scan([("x", "AANTGCNN")])]
    [(3, '+')]
    """

    def __init__(
        self, motifs: Sequence[ScannedMotif], background: Background, p_value: float = 1e-4, strands: int = 2
    ) -> None:
        number("p_value", p_value, "a probability above 0", lambda p: 0 < p <= 0.1)
        if not motifs:
            raise ValueError("motifs holds 0 motifs; fit a model on more sequences, or with n_motifs=1")
        self.motifs, self.strands, self.p_value = list(motifs), strands, float(p_value)
        self.width = max(len(motif.weights) for motif in motifs)
        self._tails = [score_tail(motif.weights, background) for motif in motifs]
        self._least = [int(np.argmax(tail.p_values <= p_value)) for tail in self._tails]
        self._lookups = [_Lookup.of(tail.steps, strands) for tail in self._tails]
        self._counts = np.zeros((len(motifs), STEPS + self.width + 1), np.int64)
        self.n_windows = np.zeros(len(motifs), np.int64)

    def scan(self, records: Iterable[tuple[str, str]]) -> Iterator[Hit]:
        """The sites in records of a name and letters, in their order."""
        yield from self.scan_pieces(Piece(name, 0, read_sequences([text]).values, True) for name, text in records)

    def scan_pieces(self, pieces: Iterable[Piece]) -> Iterator[Hit]:
        """The sites in pieces of sequences (`tacit.dna.pieces.iterate_pieces`), block by block."""
        for block, codes in join_pieces(pieces, self.width):
            yield from self._scan_block(block, codes)

    def q_table(self, motif: int) -> Array:
        """The q-value of every score of a motif (from 1), in steps: the share of false sites among those with at least
        this score (Storey & Tibshirani 2003). Call it when all sequences have been scanned."""
        p = self._tails[motif - 1].p_values
        tail = self._counts[motif - 1, : p.size][::-1].cumsum()[::-1]
        expected = p * self.n_windows[motif - 1]
        return np.minimum.accumulate(np.minimum(expected / np.maximum(tail, 1), 1.0))

    def expect(self, motif: int) -> float:
        """How many sites of a motif (from 1) random sequences would have in as many windows."""
        return float(self.n_windows[motif - 1] * self._tails[motif - 1].p_values[self._least[motif - 1]])

    def _scan_block(self, block: list[Piece], codes: Array) -> Iterator[Hit]:
        offsets = np.concatenate([[0], np.cumsum([piece.codes.size + 1 for piece in block])])
        is_new = np.array([piece.start == 0 for piece in block])
        free = np.empty(codes.size, np.int32)
        _count_known(codes, free)
        ids: dict[int, Array] = {}
        found = []
        for m, (lookup, motif) in enumerate(zip(self._lookups, self.motifs, strict=True)):
            if lookup.pieces.length not in ids:
                ids[lookup.pieces.length] = np.zeros(codes.size, np.uint16)
                _number_kmers(codes, lookup.pieces.length, ids[lookup.pieces.length])
            width = len(motif.weights)
            repeated = self._count_repeated(block, offsets, is_new, free, width)
            self.n_windows[m] += (int((free >= width).sum()) - repeated) * self.strands
            for strand in range(self.strands):
                at, steps = lookup.find(ids[lookup.pieces.length], free, strand, self._least[m])
                weights = motif.weights[::-1, ::-1] if strand else motif.weights
                score = weights[np.arange(width), codes[at[:, None] + np.arange(width)]].sum(axis=1)
                found.append((np.full(at.size, m), at, np.full(at.size, strand), steps, score))
        motif_, position, side, steps, score = (np.concatenate(part) for part in zip(*found, strict=True))
        owner = np.searchsorted(offsets, position, side="right") - 1
        for i in np.lexsort((motif_, side, position)):
            piece, m = block[owner[i]], int(motif_[i])
            width = len(self.motifs[m].weights)
            start = int(position[i] - offsets[owner[i]])
            if piece.start and start < self.width - width:
                continue  # found in the piece before
            self._counts[m, steps[i]] += 1
            first, p = start + piece.start, float(self._tails[m].p_values[steps[i]])
            yield Hit(m + 1, piece.name, first, first + width, "+-"[side[i]], float(score[i]), p, int(steps[i]))

    def _count_repeated(self, block: list[Piece], offsets: Array, is_new: Array, free: Array, width: int) -> int:
        """Windows of a narrow motif that lie in the overlap of two pieces, and were counted with the first."""
        total = 0
        for k in np.flatnonzero(~is_new).tolist():
            total += int((free[offsets[k] : offsets[k] + self.width - width] >= width).sum())
        return total


def motifs_of(source: Any, background: Background) -> list[ScannedMotif]:
    """The motifs of a fitted `tacit.apps.MotifFinder`, or of matrices (`tacit.dna.files.read_motifs`) as log-odds."""
    if isinstance(source, list):
        return [ScannedMotif(one.name, log_odds(one.shares, background.letters)) for one in source]
    from tacit.dna.finder.files import name_motifs

    weights = source.weights_["motif"][source.motif_order_]
    return [ScannedMotif(name, table) for name, table in zip(name_motifs(source.motifs_), weights, strict=True)]


class _Lookup(NamedTuple):
    """Tables of a motif on each strand, in pieces; ``rest`` has the highest score of the pieces that follow."""

    pieces: Pieces
    width: int
    tables: Array  # (strands, pieces, 4^length)
    rest: Array  # (strands, pieces)

    @classmethod
    def of(cls, steps: Array, strands: int) -> _Lookup:
        pieces = Pieces.of(len(steps))
        sides = [steps, steps[::-1, ::-1]][:strands]
        tables = np.stack([np.rint(pieces.tables(side.astype(np.float64))).astype(np.int32) for side in sides])
        highest = tables.max(axis=2)
        rest = highest[:, ::-1].cumsum(axis=1)[:, ::-1] - highest
        return cls(pieces, len(steps), tables, np.ascontiguousarray(rest))

    def find(self, ids: Array, free: Array, strand: int, least: int) -> tuple[Array, Array]:
        """Starts of windows with a score of at least ``least`` steps, and their scores."""
        room = 1 << 12
        while True:
            at, score = np.empty(room, np.int64), np.empty(room, np.int32)
            n = _find_windows(
                ids, free, self.width, self.pieces.shifts, self.tables[strand], self.rest[strand], least, at, score
            )
            if n <= room:
                return at[:n], score[:n]
            room = n


@kernel
def _count_known(codes: Array, out: Array) -> None:
    """How many letters from each position on are A, C, G or T."""
    n = 0
    for p in range(codes.size - 1, -1, -1):
        n = n + 1 if codes[p] < 4 else 0
        out[p] = n


@kernel
def _number_kmers(codes: Array, length: int, out: Array) -> None:
    """The number of the k-mer that starts at each position; meaningless where a letter is unknown."""
    mask = 4**length - 1
    number = 0
    for p in range(codes.size):
        number = ((number << 2) | (codes[p] & 3)) & mask
        if p >= length - 1:
            out[p - length + 1] = number


@kernel
def _find_windows(
    ids: Array, free: Array, width: int, shifts: Array, tables: Array, rest: Array, least: int, at: Array, out: Array
) -> int:
    """Sums of look-ups, piece by piece, as long as ``least`` can be reached; returns the number of windows found."""
    n, first, second = 0, tables[0], tables[1]
    enough, shift, after = least - rest[0], shifts[1], least - rest[1]
    for p in range(ids.size - width + 1):
        score = first[ids[p]]
        if score < enough:
            continue
        score += second[ids[p + shift]]
        if score < after or free[p] < width:
            continue
        for j in range(2, shifts.size):
            score += tables[j, ids[p + shifts[j]]]
            if score < least - rest[j]:
                break
        if score >= least:
            if n < at.size:
                at[n], out[n] = p, score
            n += 1
    return n


assert 4**LONGEST_PIECE <= 1 << 16, "numbers of k-mers have two bytes"

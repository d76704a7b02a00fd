"""The oracle of `MotifSites`: the composition of a sequence, and sites of several motifs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, checksum
from tacit.data.labels import find_labels, reject_unknown
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.dna.kmers import Pieces, find_enriched_kmers, find_kmers, standard_shares
from tacit.dna.motif import kernels
from tacit.dna.motif.hidden import SiteLayout, read_sites, write_sites
from tacit.dna.sequences import DNA, Alphabet, orient
from tacit.oracle import TARGET, Assignment, LossTable, Schema
from tacit.oracle.capabilities import Expectations
from tacit.oracle.cells import label_positions, one_coef_each, take_rows
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.losses import check_losses

MAX_STATES = 2**62
"""Combinations of sites per sequence, which are numbered by one integer, at most."""


class SiteOracle:
    """F(x, negative) = 0; F(x, positive, h) = composition + Σ over motifs of the score of its site, 0 without one.

    Motifs are independent given the label, so the best combination has the best site of each. A code is 0 for
    negatives. For positives it is one more than a number whose digits are the states of the motifs, the first the
    lowest; its base is the number of states of the sequence.
    O(letters · n_motifs · strands · ⌈width / 5⌉) per pass.

    Parameters
    ----------
    sequences : letter codes, from `read_sequences`
    schema : classes (negative, positive) and the blocks of w
    layout : sizes
    labels : (n,) positions among the classes, 2 for a label unseen in training; None when predicting
    losses : one table for all sequences
    hidden : (n, motifs) known states, −1 where unknown
    alphabet : of the sequences
    """

    code_offsets: Array | None = None
    completes_labels = False
    rescalings: tuple[str, ...] = ("margin", "slack")

    def __init__(
        self,
        sequences: Ragged,
        schema: Schema,
        layout: SiteLayout,
        *,
        labels: Array | None = None,
        losses: LossTable | None = None,
        hidden: Array | None = None,
        alphabet: Alphabet = DNA,
    ) -> None:
        self._alphabet = alphabet
        self.classes = schema.classes
        self.n_samples, self.n_params = len(sequences), schema.n_params
        self._views, self._layout = schema.views, layout
        self.has_tied_blocks = layout.n_motifs > 1
        self._flipped = np.zeros(self.n_samples, dtype=bool)
        if layout.strands == 2:
            sequences, self._flipped = orient(sequences)
        self._sequences = sequences
        self._composition = standard_shares(sequences, layout.longest, layout.strands, alphabet)
        padded = pad(sequences, layout.overhang, alphabet.any_code)
        self._starts, self._stops = padded.offsets[:-1], padded.offsets[1:]
        self._pieces = Pieces.of(layout.width, alphabet.size)
        self._parts = find_kmers(padded.values, padded.offsets, self._pieces.length, alphabet)
        self._sizes = 1 + layout.strands * layout.count_starts(sequences.lengths)
        if float(self._sizes.max()) ** layout.n_motifs >= MAX_STATES:
            raise ValueError(
                f"a sequence of {int(sequences.lengths.max())} letters has too many combinations of {layout.n_motifs} "
                "sites; cut it into shorter sequences, or lower n_motifs"
            )
        self._labels = labels
        self._losses = None if losses is None else check_losses(losses, 2, self.n_samples, 0)
        self._hidden = np.full((self.n_samples, layout.n_motifs), -1) if hidden is None else self._flip(hidden)

    # search

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        score, states = self._positive(w, rows)
        is_positive = score > 0
        return Assignment(self._join(is_positive, states, rows), np.where(is_positive, score, 0.0))

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        labels = self.known_labels(rows)
        preferred = None if prefer is None else self._preferred_states(prefer, labels, rows)
        given = np.where((labels == 1)[:, None], take_rows(self._hidden, rows), 0)  # without sites nothing is searched
        score, states = self._positive(w, rows, given, preferred)
        return Assignment(self._join(labels == 1, states, rows), np.where(labels == 1, score, 0.0))

    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        score, states = self._positive(w, rows)
        negative, positive = self._losses_of(rows)
        if rescaling == "margin":
            positive = positive + score
        elif target is None:
            raise ValueError("slack rescaling needs a target: pass target=")
        else:
            anchor = self.score(w, target, rows)
            negative, positive = negative * (1 - anchor), positive * (1 + score - anchor)
        is_positive = self.known_labels(rows) == 0 if rivals else positive > negative
        return Assignment(self._join(is_positive, states, rows), np.where(is_positive, positive, negative))

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        is_positive, states = self.split_sites(code, rows)
        return np.where(is_positive, self._positive(w, rows, states)[0], 0.0)

    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        if np.isfinite(power):
            score = self._sums(w, rows, power, self._free(rows), None)[0] / power
        else:
            score = self._positive(w, rows)[0]
        return np.column_stack([np.zeros(score.size), score])

    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        is_positive = label_positions(labels, take_rows(self._starts, rows).size, 2) == 1
        if not is_positive.any():
            return Assignment(np.zeros(is_positive.size, np.int64), np.zeros(is_positive.size))
        score, states = self._positive(w, rows)
        return Assignment(self._join(is_positive, states, rows), np.where(is_positive, score, 0.0))

    def loss(self, code: Array, rows: Rows = None) -> Array:
        negative, positive = self._losses_of(rows)
        return np.where(self.split_sites(code, rows)[0], positive, negative)

    # sums

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        is_positive, states = self.split_sites(code, rows)
        coef = one_coef_each(coef, is_positive.size) * is_positive
        sums = self._zeros()
        kernels.add_sites(self._parts.ids, take_rows(self._starts, rows), self._pieces.shifts, states, coef, sums)
        return self._fold(sums, coef, rows)

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i (Ψ(x_i, code_i) − Ψ(x_i, target_i)), summed by piece before letters."""
        sums, total = self._zeros(), np.zeros(take_rows(self._starts, rows).size)
        for output, sign in ((code, 1.0), (target, -1.0)):
            is_positive, states = self.split_sites(output, rows)
            signed = sign * one_coef_each(coef, is_positive.size) * is_positive
            kernels.add_sites(self._parts.ids, take_rows(self._starts, rows), self._pieces.shifts, states, signed, sums)
            total += signed
        return self._fold(sums, total, rows)

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
        n = take_rows(self._starts, rows).size
        asked = {"free": free, "label": label, "truth": truth}
        coefs = {kind: np.broadcast_to(np.asarray(c, float), n) for kind, c in asked.items() if c is not None}
        answers: dict[str, Array | None] = dict.fromkeys(asked)
        total = np.zeros(self.n_params)
        for kind, coef in coefs.items():
            given = take_rows(self._hidden, rows) if kind == "truth" else self._free(rows)
            score = self._sums(w, rows, power, given, None)[0]
            if kind == "free":
                negative, positive = self._losses_of(rows) if augmented else (0.0, 0.0)
                wished = power * positive + score
                total_log = np.logaddexp(power * negative, wished)
                answers[kind], share = total_log, np.exp(wished - total_log)
            else:
                is_positive = self.known_labels(rows) == 1
                answers[kind] = np.where(is_positive, score, 0.0)
                share = is_positive.astype(np.float64)
            if coef.any():
                total += self._sums(w, rows, power, given, coef * share)[1]
        has_features = any(c.any() for c in coefs.values())
        return Expectations(answers["free"], answers["label"], answers["truth"], total if has_features else None)

    # starts

    def draw(self, rng: np.random.Generator) -> Array:
        """The true labels, and a random site of every motif in every positive; known sites stay."""
        states = rng.integers(1, self._sizes[:, None], self._hidden.shape)
        states = np.where(self._hidden >= 0, self._hidden, states)
        return self._join(self.known_labels() == 1, states, None)

    def proposals(self, most: int) -> list[Array]:
        """Sites that match k-mers enriched in positives best: start s takes the s-th k-mer for its first motif, and the
        next k-mers for the others."""
        layout = self._layout
        is_positive = self.known_labels() == 1
        n_kmers = most + layout.n_motifs - 1
        kmers = find_enriched_kmers(self._sequences, is_positive, layout.width, layout.strands, n_kmers, self._alphabet)
        codes = []
        for first in range(max(len(kmers) - layout.n_motifs + 1, 0)):
            w = np.zeros(self.n_params)
            for motif, letters in zip(self._views(w)["motif"], kmers[first:], strict=False):
                motif[(layout.width - letters.size) // 2 + np.arange(letters.size), letters] = 1.0
            codes.append(self.impute(w).code)
        return codes[:most]

    def joint_moves(self, code: Array) -> Iterator[Array]:
        """All sites of one motif shifted by up to three letters, within their sequences."""
        is_positive, states = self.split_sites(code)
        strands = self._layout.strands
        last = (self._sizes - 1) // strands - 1
        for m in range(states.shape[1]):
            start, strand = np.divmod(states[:, m] - 1, strands)
            is_free = (states[:, m] > 0) & (self._hidden[:, m] < 0)
            for step in (1, -1, 2, -2, 3, -3):
                moved = np.clip(start + np.where(strand == 0, step, -step), 0, last)
                changed = states.copy()
                changed[:, m] = np.where(is_free, 1 + moved * strands + strand, states[:, m])
                yield self._join(is_positive, changed, None)

    # codes

    def split_sites(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        """Whether each output is positive, and the (n, motifs) states of its sites."""
        sizes = take_rows(self._sizes, rows)
        code = np.asarray(code)
        if code.shape != sizes.shape or code.dtype.kind not in "iu":
            raise ValueError(f"code must be one integer for each of {sizes.size} samples, got shape {code.shape}")
        if code.size and code.min() < 0:
            raise ValueError(f"code[{np.argmin(code)}] is {code.min()}; replace TARGET by the code of the target")
        outside = code > sizes**self._layout.n_motifs
        if outside.any():
            i = int(np.argmax(outside))
            raise ValueError(f"code[{i}] must be at most {sizes[i] ** self._layout.n_motifs}, got {code[i]}")
        rest = np.maximum(code.astype(np.int64) - 1, 0)
        states = np.empty((rest.size, self._layout.n_motifs), np.int64)
        for m in range(self._layout.n_motifs):
            rest, states[:, m] = np.divmod(rest, sizes)
        return code > 0, states

    def _join(self, is_positive: Array, states: Array, rows: Rows) -> Array:
        sizes = take_rows(self._sizes, rows)
        number = np.zeros(sizes.size, np.int64)
        for column in states.T[::-1]:
            number = number * sizes + column
        return np.where(is_positive, 1 + number, 0)

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if code.shape != (self.n_samples,) or code.dtype.kind not in "iu":
            return False
        return bool(((code >= TARGET) & (code <= self._sizes**self._layout.n_motifs)).all())

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        labels = np.asarray(labels)
        found = find_labels(self.classes, labels)
        reject_unknown(found, self.classes, labels)
        sizes = take_rows(self._sizes, rows)
        shape = (found.size, self._layout.n_motifs)
        states = np.full(shape, -1) if hidden is None else read_sites(hidden, sizes, self._layout, found, self.classes)
        states = self._flip(states, rows)
        unknown = np.flatnonzero(((states < 0) & (found == 1)[:, None]).any(axis=1))
        if unknown.size:
            raise ValueError(
                f"the sites of sample {unknown[0]} ({shorten(labels[unknown[0]].item())}) are unknown (-1); a code "
                "needs complete outputs"
            )
        return self._join(found == 1, states, rows)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        is_positive, states = self.split_sites(code, rows)
        hidden = write_sites(self._flip(states, rows), self._layout)
        return self.classes[is_positive.astype(np.int64)], np.where(is_positive, hidden.T, -1).T

    # views

    def with_hidden(self, hidden: Any) -> SiteOracle:
        twin = copy.copy(self)
        if hidden is None:
            twin._hidden = self._free(None)
        elif isinstance(hidden, KnownHidden):  # states, as in `split_sites`
            states = np.asarray(hidden.states)
            if states.size != self._hidden.size or states.dtype.kind not in "iu":
                raise ValueError(f"known sites have shape {states.shape} for {self.n_samples} sequences")
            states = states.reshape(self._hidden.shape)
            if not ((states >= -1) & (states < self._sizes[:, None])).all():
                raise ValueError("known sites lie outside their sequences; give the sequences that they belong to")
            twin._hidden = states
        else:
            twin._hidden = self._flip(read_sites(hidden, self._sizes, self._layout, self._labels, self.classes))
        return twin

    def with_loss(self, losses: Any) -> SiteOracle:
        twin = copy.copy(self)
        twin._losses = check_losses(losses, 2, self.n_samples, 0)
        return twin

    def exact(self) -> SiteOracle:
        return self

    def hidden_unknown(self) -> Array:
        is_open = (self._hidden < 0).any(axis=1)
        return np.flatnonzero(is_open if self._labels is None else is_open & (self._labels == 1))

    def digest(self) -> str:
        sizes = np.array(self._layout)
        losses = (None, None) if self._losses is None else self._losses
        known = self._labels, self._hidden, *losses
        return checksum(self._parts.ids, self._parts.spellings, self._composition, self._starts, sizes, *known)

    @property
    def operations(self) -> float:
        layout = self._layout
        sites = 4.0 * float(self._sizes.sum()) * layout.n_motifs * len(self._pieces.shifts)
        return sites + float(self._composition.size)

    # parts

    def _positive(
        self, w: Array, rows: Rows, given: Array | None = None, preferred: Array | None = None
    ) -> tuple[Array, Array]:
        """The score of the positive class with the best sites, and the states of these."""
        free = self._free(rows)
        value, state = np.empty(free.shape), np.empty(free.shape, np.int64)
        given = free if given is None else np.ascontiguousarray(given)
        kernels.best_sites(
            self._at(rows), self._motifs(w), given, free if preferred is None else preferred, value, state
        )
        return self._common(w, rows) + value.sum(axis=1), state

    def _sums(self, w: Array, rows: Rows, power: float, given: Array, coef: Array | None) -> tuple[Array, Array]:
        """``log Σ exp(power · score)`` of the positive class, and Σ coef · E[Ψ] under it (zeros for None)."""
        logs, sums, work = np.empty(given.shape), self._zeros(), np.empty(int(self._sizes.max()) + 1)
        weight, given = np.zeros(len(given)) if coef is None else coef, np.ascontiguousarray(given)
        kernels.sum_sites(self._at(rows), self._motifs(w), float(power), given, weight, work, logs, sums)
        features = np.zeros(0) if coef is None else self._fold(sums, coef, rows)
        return power * self._common(w, rows) + logs.sum(axis=1), features

    def _common(self, w: Array, rows: Rows) -> Array:
        """The score of composition and intercept."""
        blocks = self._views(w)
        return np.asarray(take_rows(self._composition, rows) @ blocks["composition"] + blocks["intercept"][0])

    def _at(self, rows: Rows) -> kernels.Triple:
        return self._parts.ids, take_rows(self._starts, rows), take_rows(self._stops, rows)

    def _motifs(self, w: Array) -> kernels.Motifs:
        motifs = self._views(w)["motif"]
        both = [motifs, motifs[:, ::-1, ::-1]][: self._layout.strands]  # A, C, G, T backwards are their complements
        tables = np.stack([[self._pieces.tables(strand[m]) for strand in both] for m in range(len(motifs))])
        return self._parts.extend(tables), self._pieces.shifts, self._layout.width

    def _zeros(self) -> Array:
        layout = self._layout
        return np.zeros((layout.n_motifs, layout.strands, len(self._pieces.shifts), self._parts.size))

    def _fold(self, sums: Array, coef: Array, rows: Rows) -> Array:
        out = np.zeros(self.n_params)
        blocks = self._views(out)
        plain = self._parts.fold(sums)
        for m in range(self._layout.n_motifs):
            blocks["motif"][m] = self._pieces.fold(plain[m, 0])
            if self._layout.strands == 2:
                blocks["motif"][m] += self._pieces.fold(plain[m, 1])[::-1, ::-1]
        blocks["composition"][:] = coef @ take_rows(self._composition, rows)
        blocks["intercept"][0] = coef.sum()
        return out

    def _free(self, rows: Rows) -> Array:
        return np.full((take_rows(self._starts, rows).size, self._layout.n_motifs), -1)

    def known_labels(self, rows: Rows = None) -> Array:
        if self._labels is None:
            raise ValueError("labels are unknown; pass y to bind")
        return take_rows(self._labels, rows)

    def _losses_of(self, rows: Rows) -> tuple[Array, Array]:
        """The loss of predicting negative and positive."""
        if self._losses is None or self._losses.column is None:
            raise ValueError("a loss needs labels; pass y to bind")
        column = take_rows(self._losses.column, rows)
        return self._losses.table[0].take(column), self._losses.table[1].take(column)

    def _preferred_states(self, prefer: Array, labels: Array, rows: Rows) -> Array:
        """States that win ties; −1 where the preferred output has another label, or is `TARGET`."""
        is_positive, states = self.split_sites(np.maximum(prefer, 0), rows)
        return np.where((is_positive & (labels == 1))[:, None], states, -1)

    def _flip(self, states: Array, rows: Rows = None) -> Array:
        """Convert states between the strand as given and the strand that is kept: their order is reversed."""
        sizes, flipped = take_rows(self._sizes, rows), take_rows(self._flipped, rows)
        return np.where(flipped[:, None] & (states > 0), sizes[:, None] - states, states)


def pad(sequences: Ragged, overhang: int, any_code: int = DNA.any_code) -> Ragged:
    """The same sequences with ``overhang`` letters N at both ends.

    >>> pad(Ragged(np.array([0, 1], np.uint8), np.array([0, 2])), 1).values
    array([14,  0,  1, 14], dtype=uint8)
    """
    if overhang == 0:
        return sequences
    offsets = sequences.offsets + 2 * overhang * np.arange(len(sequences) + 1)
    values = np.full(int(offsets[-1]), any_code, np.uint8)
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    values[np.arange(sequences.values.size) + (2 * owner + 1) * overhang] = sequences.values
    return Ragged(values, offsets)

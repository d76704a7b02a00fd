"""Inference for one label over a hidden chain: the best path of states under every label, and sums over all paths."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from tacit.data.arrays import Array, Codes, Rows, checksum
from tacit.data.labels import find_labels, reject_unknown
from tacit.data.ragged import Ragged
from tacit.oracle import Assignment, LossTable
from tacit.oracle.capabilities import Expectations, KnownPart
from tacit.oracle.cells import label_positions, one_coef_each, spread_coefficients
from tacit.oracle.listed_labels import ListsLabels
from tacit.problems.chain.forward_backward import forward_backward
from tacit.problems.chain.tokens import group_tokens
from tacit.problems.chain.viterbi import path_scores
from tacit.problems.row_sums import sum_rows
from tacit.problems.sequence_class.packed import PackedPaths, read_path


class PathOracle(PackedPaths, ListsLabels):
    """One label per sequence and a hidden state per token; a code has ``label · k + state`` for every token.

    Labels are listed, and the paths under a label are searched by Viterbi or summed by forward–backward:
    O(tokens · labels · k · (d + k)) per pass.

    The parameters are those of `PackedPaths`.
    """

    # What every learner asks for

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        labels, known = self._true_labels(rows), self._take_known(rows)
        best = self._best_paths(w, labels, rows, known)
        if prefer is None:
            return best
        prefer = np.asarray(prefer)
        value = self.score(w, np.maximum(prefer, 0), rows)  # which checks the code
        own, state = np.divmod(np.maximum(prefer, 0), self.n_states)
        is_same = (own == np.repeat(labels, np.diff(self._starts(rows)))) & (prefer >= 0)
        if known is not None:
            is_same &= (known < 0) | (known == state)
        fits = np.logical_and.reduceat(is_same, self._starts(rows)[:-1])
        return Assignment(self._pick(fits & (value >= best.value), prefer, best.code, rows), best.value)

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        labels, states = self._split(code, rows)
        value = np.empty(labels.size)
        for label, own, tokens, unary, cuts in self._by_label(w, labels, rows):
            found = np.empty(cuts.size - 1)
            path_scores(unary, cuts, self._transition(w, label), states[tokens], found)
            value[own] = found
        return value

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        labels, states = self._split(code, rows)
        code, starts = self._read(code, rows), self._starts(rows)
        coef = one_coef_each(coef, labels.size)
        each = np.repeat(coef, np.diff(starts))
        emission, transition = self._zeros()
        sum_rows(self.table, code, self._positions(rows), each, emission)
        inside = np.ones(code.size, dtype=bool)
        inside[starts[:-1]] = False
        here = np.flatnonzero(inside)
        cells = code[here] + (states[here - 1] + (code[here] // self.n_states) * (self.n_states - 1)) * self.n_states
        transition.ravel()[:] = np.bincount(cells, weights=each[here], minlength=transition.size)
        return self._flat(emission, transition)

    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.ScoresLabels`."""
        n = self._starts(rows).size - 1
        return self._best_paths(w, label_positions(labels, n, self.n_labels), rows, None)

    # Sums over paths

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
        n = self._starts(rows).size - 1
        coefs, has_features = spread_coefficients(n, free, label, truth)
        needs_label = label is not None or truth is not None
        labels = self._true_labels(rows) if needs_label else np.zeros(n, dtype=np.int64)
        samples, known = np.arange(n), self._take_known(rows)
        logs: list[Array | None] = [None, None, None]
        weights, own = np.zeros((n, self.n_labels)), np.zeros((n, self.n_labels))
        if coefs[0] is not None:
            sums = self._log_sums(w, rows, power)
            wished = sums + power * self._label_losses(rows) if augmented else sums
            whole = np.asarray(logsumexp(wished, axis=1))
            weights += coefs[0][:, None] * np.exp(wished - whole[:, None])
            logs[0] = whole
        for kind, given in ((1, None), (2, known)):
            coef = coefs[kind]
            if coef is not None:
                is_summed = coefs[0] is not None and given is None
                logs[kind] = sums[samples, labels] if is_summed else self._own_log_sums(w, labels, rows, given, power)
                (weights if given is None else own)[samples, labels] += coef
        blocks = self._zeros()
        self._add_expected(w, rows, weights, power, blocks)
        self._add_expected(w, rows, own, power, blocks, known)
        return Expectations(logs[0], logs[1], logs[2], self._flat(*blocks) if has_features else None)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all labels and paths."""
        return np.asarray(logsumexp(self._log_sums(w, rows, 1.0), axis=1))

    def state_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(tokens, k): the probability of every state, given the true label, or else the likeliest one."""
        labels = self._true_labels(rows) if is_given else np.argmax(self._log_sums(w, rows, 1.0), axis=1)
        known = self._take_known(rows) if is_given else None
        nodes = np.empty((int(self._starts(rows)[-1]), self.n_states))
        nothing = np.zeros((0, self.n_states, self.n_states)), np.zeros(0), np.zeros((self.n_states, self.n_states))
        for label, _, tokens, unary, cuts in self._by_label(w, labels, rows, known):
            found = np.zeros(unary.shape)
            forward_backward(unary, cuts, self._transition(w, label), np.empty(cuts.size - 1), found, *nothing)
            nodes[tokens] = found
        return nodes

    def likeliest(self, w: Array, rows: Rows = None) -> Array:
        """The code of the likeliest label, paths summed over, and of the best path under it."""
        return self.best_under(w, np.argmax(self._log_sums(w, rows, 1.0), axis=1), rows).code

    # Where to start

    def draw(self, rng: np.random.Generator) -> Array:
        """A code with the true labels; unknown states are drawn at random among the paths that exist."""
        return self._complete(rng.random((int(self.offsets[-1]), self.n_states)))

    def clusters(self, rng: np.random.Generator) -> Array:
        """A code with the true labels, the tokens of every label grouped by k-means of their features."""
        labels = np.repeat(self._true_labels(None), np.diff(self.offsets))
        affinity = np.zeros((labels.size, self.n_states))
        for label in range(self.n_labels):
            own = np.flatnonzero(labels == label)
            count = min(self.n_states, own.size)
            if count > 1:
                affinity[own, group_tokens(self.table[own], count, rng)] = 1.0
        return self._complete(affinity)

    def proposals(self, most: int) -> list[Array]:
        """Every sequence divided equally among the states; where any state may follow any other, `clusters`."""
        if self.topology.is_free:
            return [self.clusters(np.random.default_rng(0))]
        sizes = np.diff(self.offsets)
        place = (np.arange(int(self.offsets[-1])) - np.repeat(self.offsets[:-1], sizes) + 0.5) / np.repeat(sizes, sizes)
        return [self._complete(-np.abs(place[:, None] - (np.arange(self.n_states) + 0.5) / self.n_states))]

    # Codes

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        labels = np.asarray(labels)
        found = find_labels(self.classes, labels)
        reject_unknown(found, self.classes, labels)
        starts = self._starts(rows)
        if hidden is None and self.n_states > 1:
            raise ValueError("only complete outputs have a code: give hidden=, one state per token")
        states = np.zeros(int(starts[-1]), dtype=np.int64)
        if hidden is not None:
            states = read_path(hidden, np.diff(starts), self.n_states)
        if (states < 0).any():
            raise ValueError(f"only complete outputs have a code: the state of token {np.argmin(states)} is unknown")
        return (np.repeat(found, np.diff(starts)) * self.n_states + states).astype(self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Ragged]:
        labels, states = self._split(code, rows)
        return self.classes[labels], Ragged(states, self._starts(rows))

    def split(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        """See `tacit.oracle.capabilities.SplitsCodes`; the states are one per token."""
        return self._split(code, rows)

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        states, starts = self._split(code, rows)[1], self._starts(rows)
        inside = np.ones(states.size, dtype=bool)
        inside[starts[:-1]] = False
        pairs, first, last = self.topology
        ends = first[states[starts[:-1]]].all() and last[states[starts[1:] - 1]].all()
        return bool(ends and pairs[states[:-1][inside[1:]], states[1:][inside[1:]]].all())

    # Views

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same data with the states of this code known; None for nothing."""
        states = None if hidden is None else self._split(hidden, None)[1]
        if states is not None and self._known_states is not None:
            states = np.where(self._known_states >= 0, self._known_states, states)
        return self._with(_known_states=states)

    def with_loss(self, losses: LossTable) -> Self:
        return self._with(_losses=self._check_losses(losses))

    def hidden_unknown(self) -> Array:
        if self.n_states == 1:
            return np.empty(0, dtype=np.int64)
        if self._known_states is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(np.logical_or.reduceat(self._known_states < 0, self.offsets[:-1]))

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: the sequences whose states are all known."""
        unknown = self.hidden_unknown()
        if not 0 < unknown.size < self.n_samples:
            return None
        owner = np.arange(self.n_samples)
        owner[unknown] = -1
        return KnownPart(self, owner)

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the sequences from first to last (exclusive), to be sent to the worker with their rows."""
        rows = slice(first, last)
        part = self._recut(self._starts(rows), table=None)
        part._labels = None if self._labels is None else self._labels[rows]
        part._known_states = self._take_known(rows)
        if self._losses is not None:
            part._losses = self._losses.cut(rows, rows)
        return part

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly."""
        return float(self.offsets[-1]) * self._n_values * (self._width + self.n_states)

    def digest(self) -> str:
        known = self._labels, self._known_states, *(self._losses or (None, None))
        return checksum(self._rows, self.offsets, *self.topology, *known)

    def _slopes(
        self, w: Array, rows: Rows, weights: Array, power: float, known: Array | None, is_mean: bool = False
    ) -> Array:
        if math.isinf(power):
            total, labels = np.zeros(self.n_params), self._true_labels(rows)
            for label in range(self.n_labels):
                own = np.full(labels.size, label)
                given = None if known is None else self._known_under(own, labels, known, rows)
                total += self.features(self._best_paths(w, own, rows, given).code, weights[:, label], rows)
            return total
        blocks = self._zeros()
        self._add_expected(w, rows, weights, power, blocks, known, is_mean)
        return self._flat(*blocks)

"""The best taggings: prediction, loss-augmented prediction, imputation, the best few."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle import TARGET, Assignment, LossTable
from tacit.problems.chain.best_few import best_paths, best_taggings
from tacit.problems.chain.packed import PackedChains
from tacit.problems.chain.viterbi import viterbi

MAX_WAYS = 1 << 26
"""Numbers that the search for the best few taggings may keep (0.5 GB)."""


class ChainMaxima(PackedChains):
    """Viterbi over states."""

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._viterbi(w, rows)

    def _augmented(self, w: Array, rows: Rows) -> Assignment:
        return self._viterbi(w, rows, losses=self._loss_table())

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        given = self._given(rows)
        best = self._viterbi(w, rows, given=given)
        if prefer is None:
            return best
        prefer = np.asarray(prefer)
        value = self.score(w, np.maximum(prefer, 0), rows)
        agrees = (given < 0) | self.states.possible[given, np.maximum(prefer, 0)]
        fits = np.logical_and.reduceat((prefer >= 0) & agrees, self._starts(rows)[:-1])
        return Assignment(self._pick(fits & (value >= best.value), prefer, best.code, rows), best.value)

    def draw(self, rng: np.random.Generator) -> Array:
        """The known tags, missing tags and unknown states at random among those that are allowed."""
        given = self._given(None)
        return self._completed(rng.random((given.size, self.n_states)), given).code

    def clusters(self, rng: np.random.Generator) -> Array:
        """A code with the true tags, the tokens of every tag grouped by k-means of their features into its states."""
        from sklearn.cluster import KMeans

        given = self._given(None)
        affinity = np.zeros((given.size, self.n_states))
        for tag in np.flatnonzero(self.states.counts > 1):
            own = np.flatnonzero(given == self.n_states + tag)
            count = min(int(self.states.counts[tag]), own.size)
            if count > 1:
                groups = KMeans(count, n_init=3, random_state=int(rng.integers(2**31))).fit_predict(self.table[own])
                affinity[own, self.states.first[tag] + groups] = 1.0
        return self._completed(affinity, given).code

    def best_outputs(self, w: Array, k: int, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.RanksOutputs`; O(tokens · K² · k), and O(longest · K · k) memory.

        Where tags have states, the score of a tagging is that of its best path of states.
        """
        starts = self._starts(rows)
        tokens, longest = int(starts[-1]), int(np.diff(starts).max())
        most = max(1, MAX_WAYS // max(longest * self.n_labels, tokens))
        if k > most:
            raise ValueError(
                f"the best {k} taggings of {tokens} tokens with {self.n_labels} tags are more than fit into memory; "
                f"ask for at most {most}, or for fewer sequences at a time"
            )
        code, value = np.empty((tokens, k), dtype=np.int64), np.empty((starts.size - 1, k))
        transition = self._transition(w)
        for out, own, part, cuts in self._blocks(rows):
            unary = self._unary(w, part)
            if self.states.are_tags:
                best_paths(unary, cuts, transition, code[own], value[out])
            else:
                tag_of, n = self.states.tag_of.astype(np.int64), self.n_labels
                best_taggings(unary, cuts, transition, tag_of, n, code[own], value[out])
        return Assignment(code, value)

    def _viterbi(self, w: Array, rows: Rows, losses: LossTable | None = None, given: Array | None = None) -> Assignment:
        starts = self._starts(rows)
        code, value = np.empty(int(starts[-1]), dtype=np.int64), np.empty(starts.size - 1)
        transition = self._transition(w)
        table, column = np.zeros((1, self.n_states)), np.zeros(code.size, dtype=np.int64)
        if losses is not None:
            table, column = self.loss_rows(rows)
        clamp, possible = np.empty(0, dtype=np.int64), self.states.possible
        for out, tokens, part, cuts in self._blocks(rows):
            if given is not None:
                clamp = given[tokens]
            unary = self._unary(w, part)
            viterbi(unary, cuts, transition, table, column[tokens], clamp, possible, code[tokens], value[out])
        return Assignment(code.astype(self._code_type), value)

    def _completed(self, unary: Array, given: Array) -> Assignment:
        """The best completion of given tags by bare scores of tags, pairs counting only where they are forbidden."""
        code, value = np.empty(given.size, np.int64), np.empty(self.n_samples)
        nothing, column = np.zeros((1, self.n_states)), np.zeros(given.size, np.int64)
        transition = self._transition(np.zeros(self.n_params))
        viterbi(unary, self.offsets, transition, nothing, column, given, self.states.possible, code, value)
        return Assignment(code.astype(self._code_type), value)

    def _reject_forbidden(self, labels: Array) -> None:
        """The truth itself must be allowed, and missing tags must leave a way through."""
        if self.allowed.all():
            return
        known = np.where(labels >= self.n_labels, TARGET, labels)
        value = self._completed(np.zeros((known.size, self.n_states)), self.states.known(known)).value
        if not np.isfinite(value).all():
            i = int(np.argmin(value))
            tags = known[self.offsets[i] : self.offsets[i + 1]]
            shown = [self.classes[tag].item() if tag >= 0 else None for tag in tags[:12]]
            raise ValueError(
                f"y[{i}], {shown}, holds a pair of tags that `forbidden` rules out; correct one of the two"
            )

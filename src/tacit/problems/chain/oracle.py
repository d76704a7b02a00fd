"""Inference in chains: Viterbi and forward–backward over ragged sequences, views on them, and their codes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.labels import find_labels
from tacit.data.ragged import Ragged
from tacit.oracle import TARGET, LossTable, Schema
from tacit.oracle.capabilities import KnownPart, OnlinePass
from tacit.oracle.digests import checksum
from tacit.problems.chain.dual import ChainDual
from tacit.problems.chain.maxima import ChainMaxima
from tacit.problems.chain.online import Schedule, Weights, learn_chains
from tacit.problems.chain.states import read_states
from tacit.problems.chain.sums import ChainSums
from tacit.problems.chain.tags import read_tags
from tacit.problems.chain.visits import Sequences
from tacit.problems.chain.viterbi import viterbi
from tacit.problems.classes.dual import flat_rows

LONG_WEIGHTS = 375_000
"""Weights beyond which blocks of rows are made larger: each block answers with a sum of features as long as w."""


class ChainOracle(ChainMaxima, ChainSums):
    """Viterbi and forward–backward over ragged sequences; a code is one state per token.

    Where every tag has one state, states are tags. Otherwise the state is hidden below the tag: scores, codes and sums
    are those of states, losses and labels those of tags.

    The parameters are those of `PackedChains`. Labels that no allowed tagging has are refused.
    """

    def __init__(
        self, sequences: Ragged, schema: Schema, *, allowed: Array, labels: Array | None = None, **supervision: Any
    ) -> None:
        super().__init__(sequences, schema, allowed=allowed, labels=labels, **supervision)
        if labels is not None:
            self._reject_forbidden(labels)

    def likeliest(self, w: Array, rows: Rows = None) -> Array:
        """The code of the tags that are expected to be right most often (marginal decoding), in their best states.

        Every token gets its likeliest tag. Where pairs are forbidden, the tags of the highest sum of probabilities
        among those that are allowed.
        """
        sure = self.tag_posterior(w, rows)
        starts, states = self._starts(rows), self.states
        tags, value = np.empty(len(sure), np.int64), np.empty(starts.size - 1)
        ways = np.where(self.allowed[np.ix_(states.first, states.first)], 0.0, -np.inf)
        nothing, column = np.zeros((1, self.n_labels)), np.zeros(tags.size, np.int64)
        free = np.empty(0, np.int64), np.zeros((0, self.n_labels), dtype=bool)
        viterbi(sure, starts, ways, nothing, column, *free, tags, value)
        return self._viterbi(w, rows, given=states.known(tags)).code

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        code = self._read(code, rows)
        inside = np.ones(code.size, dtype=bool)
        inside[self._starts(rows)[:-1]] = False
        return bool(self.allowed[code[:-1][inside[1:]], code[1:][inside[1:]]].all())

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same data, the missing tags given by a code; None leaves them missing."""
        view = copy.copy(self)
        if hidden is not None:
            labels, code = self._known(None), self._read(hidden)
            view._labels = np.where(labels < 0, self.states.tag_of[code], labels)
            if not self.states.are_tags:
                given = self._given(None)
                view._known_states = np.where(self._is_single(given), given, code)
        return view

    def with_loss(self, losses: LossTable) -> Self:
        return self._changed(_losses=self._checked(losses))

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly; fewer where w is so long that blocks should be large."""
        width = float(self.table.nnz / self.table.shape[0] if self._sparse else self.table.shape[1])
        work = float(self.offsets[-1]) * self.n_states * (width + self.n_states)
        return work * min(1.0, LONG_WEIGHTS / self.n_params)

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: runs of consecutive known tags, each a sequence of its own."""
        labels = self._given(None)
        is_known = self._is_single(labels)
        if is_known.all() or not is_known.any():
            return None
        begins = is_known.copy()
        begins[1:] &= ~is_known[:-1]
        begins[self.offsets[:-1]] = is_known[self.offsets[:-1]]
        tokens = np.flatnonzero(is_known)
        view = self._recut(
            np.append(np.flatnonzero(begins[tokens]), tokens.size),
            table=self.table[tokens],
            _labels=self.states.tag_of[labels[tokens]],
            _known_states=None if self.states.are_tags else labels[tokens],
            _losses=self._loss_table().cut(tokens, tokens),
        )
        owner = np.repeat(np.arange(self.n_samples), np.diff(self.offsets))[tokens]
        return KnownPart(view, owner[view.offsets[:-1]])

    def hidden_unknown(self) -> Array:
        return np.flatnonzero(np.logical_or.reduceat(~self._is_single(self._given(None)), self.offsets[:-1]))

    def dual(self, weights: Array, target: Array, start: Mapping[str, Any] | None = None) -> ChainDual:
        """The dual point of a task with these c_i and targets, all weight on the targets, or that of ``start``."""
        return ChainDual(self, weights, target, start)

    def learn_online(
        self, w: Array, order: Array, steps: Array, decays: Array, shares: Array, *, margin: float, target: Any = None
    ) -> OnlinePass:
        """See `tacit.oracle.capabilities.LearnsOnline`; O(features of the visited tokens · states), and a few vectors
        of the length of w."""
        emission, transition = self.parts(w)
        columns = np.ascontiguousarray(emission.T)
        weights = Weights(columns, np.zeros_like(columns), transition.copy(), np.zeros_like(transition), np.ones(2))
        weights.scalars[1] = 0.0
        schedule = Schedule(np.asarray(order, dtype=np.int64), *(np.asarray(a, float) for a in (steps, decays, shares)))
        sequences = Sequences(*flat_rows(self.table), self.offsets, *self.loss_rows(), np.zeros(0))
        given = self._given(None) if target is None else self._read(target)
        lost = np.empty(schedule.order.size)
        possible = self.states.possible
        mistakes = learn_chains(schedule, sequences, self.allowed, given, possible, float(margin), weights, lost)
        factor, total = weights.scalars
        last = self.flat(factor * columns.T, factor * weights.transition)
        missing = weights.lacking_emission, weights.lacking_transition
        sums = self.flat((total * columns - missing[0]).T, total * weights.transition - missing[1])
        return OnlinePass(last, sums, lost, int(mistakes))

    def digest(self) -> str:
        below = () if self.states.are_tags else (self.states.counts, self._known_states)
        known = self.allowed, self._labels, *(self._losses or (None, None))
        return checksum(self._digested(), self.offsets, *known, *below)

    def units(self) -> Array:
        """The number of known tags of every sequence: what a mean loss is taken over."""
        return np.add.reduceat((self._known(None, unseen=True) != TARGET).astype(np.float64), self.offsets[:-1])

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self._starts(rows)
        tags = read_tags(labels, np.diff(starts))
        found = find_labels(self.classes, tags.values)
        wrong = np.flatnonzero(tags.missing | (found < 0))
        if wrong.size:
            raise ValueError(
                f"tag {wrong[0]} of these sequences is missing or unknown; only complete outputs have a code"
            )
        if self.states.are_tags:
            return found.astype(self._code_type)
        given = self.states.known(found, None if hidden is None else read_states(hidden, self.states, found, starts))
        if not self._is_single(given).all():
            t = int(np.argmin(self._is_single(given)))
            raise ValueError(f"token {t} of these sequences has no state; only complete outputs have a code")
        return given.astype(self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Ragged, Ragged | None]:
        code, starts = self._read(code, rows), self._starts(rows)
        hidden = None if self.states.are_tags else Ragged(code, starts)
        return Ragged(self.classes[self.states.tag_of[code]], starts), hidden

"""Inference in chains: Viterbi and forward–backward over ragged sequences, views on them, and their codes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, checksum
from tacit.data.labels import find_labels
from tacit.data.ragged import Ragged
from tacit.data.table import Table
from tacit.oracle import TARGET, Assignment, CapabilityError, LossTable
from tacit.oracle.capabilities import (
    Expectations,
    KeepsDual,
    KnownPart,
    LearnsOnline,
    MeasuresCompleted,
    OnlinePass,
)
from tacit.oracle.cells import spread_coefficients
from tacit.oracle.entropy_search import SearchesEntropy
from tacit.oracle.renyi import NEAR_ONE
from tacit.oracle.sharing import Batch, join_tuples
from tacit.problems.chain.dual import ChainDual
from tacit.problems.chain.forward_backward import forward_backward, sum_paths
from tacit.problems.chain.means import MeansOfPaths
from tacit.problems.chain.online import Schedule, Weights, learn_chains
from tacit.problems.chain.tags import read_states, read_tags
from tacit.problems.chain.tokens import group_tokens
from tacit.problems.chain.visits import Sequences
from tacit.problems.chain.viterbi import best_paths, best_taggings, viterbi
from tacit.problems.classes.dual import flat_rows

LONG_WEIGHTS = 375_000
"""Weights beyond which blocks of rows are made larger: each block returns a sum of features as long as w."""

MAX_NUMBERS = 1 << 26
"""Numbers that the search for the best few taggings may keep (0.5 GB)."""


class Marginals(NamedTuple):
    """What forward–backward gives: log Σ_y exp s(y) per sequence, and the probabilities of single tags and of pairs.

    ``nodes[t, j]`` is the probability of tag j at token t; ``edges[t, i, j]`` that of tag i at token t − 1 and j at t,
    zero at the first token of a sequence.
    """

    log_partition: Array
    nodes: Array
    edges: Array


class ChainOracle(SearchesEntropy, MeansOfPaths):
    """Viterbi and forward–backward over ragged sequences; a code is one state per token.

    Where every tag has one state, states are tags. Otherwise the state is hidden below the tag: scores, codes and sums
    are those of states, losses and labels those of tags.

    The parameters are those of `PackedChains`. A `Table` has neither dual variables nor online passes, since single
    sequences are visited in memory only.
    """

    batches: ClassVar[dict[str, Batch]] = {"marginals": Batch(join_tuples, ("w", "rows"))}

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._viterbi(w, rows)

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        if factor is not None:
            factor = np.repeat(factor, np.diff(self._starts(rows)))
        return self._viterbi(w, rows, losses=self.loss_rows(rows), factor=factor)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        given = self._evidence(rows)
        best = self._viterbi(w, rows, given=given)
        if prefer is None:
            return best
        prefer = np.asarray(prefer)
        value = self.score(w, np.maximum(prefer, 0), rows)
        agrees = (given < 0) | self.states.possible[given, np.maximum(prefer, 0)]
        fits = np.logical_and.reduceat((prefer >= 0) & agrees, self._starts(rows)[:-1])
        return Assignment(self._pick(fits & (value >= best.value), prefer, best.code, rows), best.value)

    def best_outputs(self, w: Array, k: int, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.RanksOutputs`; O(tokens · K² · k), and O(longest · K · k) memory.

        Where tags have states, the score of a tagging is that of its best path of states.
        """
        starts = self._starts(rows)
        tokens, longest = int(starts[-1]), int(np.diff(starts).max())
        most = max(1, MAX_NUMBERS // max(longest * self.n_labels, tokens))
        if k > most:
            what = f"the best k={k} taggings of {tokens} tokens with {self.n_labels} tags"
            raise ValueError(f"{what} do not fit into memory; lower k to {most}, or give fewer sequences at a time")
        tags, value = self._rank_labels(w, k, rows, is_augmented=False)
        return Assignment(np.where(tags < 0, tags, self.states.first[tags]), value)

    def likeliest(self, w: Array, rows: Rows = None) -> Array:
        """Marginal decoding: the code of the tags that are expected to be right most often, in their best states.

        Every token gets its likeliest tag. Where pairs are forbidden, the allowed tagging of the highest sum of
        probabilities is taken.
        """
        sure = self.tag_posterior(w, rows)
        starts, states = self._starts(rows), self.states
        tags, value = np.empty(len(sure), np.int64), np.empty(starts.size - 1)
        ways = np.where(self.allowed[np.ix_(states.first, states.first)], 0.0, -np.inf)
        nothing, column = np.zeros((1, self.n_labels)), np.zeros(tags.size, np.int64)
        free = np.empty(0, np.int64), np.zeros((0, self.n_labels), dtype=bool)
        viterbi(sure, starts, ways, nothing, column, *free, tags, value)
        return self._viterbi(w, rows, given=states.evidence(tags)).code

    def draw(self, rng: np.random.Generator) -> Array:
        """A code with the known tags; missing tags and unknown states are drawn at random among the allowed ones."""
        given = self._evidence(None)
        return self._complete(rng.random((given.size, self.n_states)), given).code

    def clusters(self, rng: np.random.Generator) -> Array:
        """A code with the true tags, the tokens of every tag grouped by k-means of their features into its states."""
        given = self._evidence(None)
        affinity = np.zeros((given.size, self.n_states))
        for tag in np.flatnonzero(self.states.counts > 1):
            own = np.flatnonzero(given == self.n_states + tag)
            count = min(int(self.states.counts[tag]), own.size)
            if count > 1:
                groups = group_tokens(self.table[own], count, rng)
                affinity[own, self.states.first[tag] + groups] = 1.0
        return self._complete(affinity, given).code

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ_y exp s(y) of every sequence."""
        return self._forward_backward(w, rows, nodes=False, edges=False).log_partition

    def marginals(self, w: Array, rows: Rows = None) -> Marginals:
        """Log-partition, state and pair probabilities under ``p ∝ exp s``; O(tokens · K²) memory for the pairs."""
        return self._forward_backward(w, rows, nodes=True, edges=True)

    def tag_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(tokens, K): the probability of every tag; where ``is_given``, given the tags of y that are not missing."""
        return self.states.tag_sums(self.state_posterior(w, rows, is_given))

    def state_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(tokens, states): `tag_posterior` of every state."""
        given = self._evidence(rows) if is_given else None
        return self._forward_backward(w, rows, nodes=True, edges=False, given=given).nodes

    def hidden_posterior(
        self, w: Array, rows: Rows = None, *, power: float = 1.0, labels: Array | None = None
    ) -> Array:
        """See `tacit.oracle.capabilities.GivesPosteriors`: the probability of every state of every token, given y."""
        if labels is not None:
            raise CapabilityError("Chain has posteriors of the known tags only; leave labels out")
        return self.state_posterior(power * w, rows, is_given=True).ravel()

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
        """See `tacit.oracle.capabilities.SumsOutputs`: a label with missing tags stands for all of its completions."""
        n = self._starts(rows).size - 1
        coefs, has_features = spread_coefficients(n, free, label, truth)
        blocks = self._zeros()
        labels = None if label is None else self._evidence(rows, states=False)
        truths = None if truth is None else self._evidence(rows)
        logs: list[Array | None] = []
        losses = self.loss_rows(rows) if augmented else None
        for coef, given, bonus in zip(coefs, (None, labels, truths), (losses, None, None), strict=True):
            logs.append(None if coef is None else self._add_expected(w, rows, given, coef, power, bonus, *blocks))
        return Expectations(logs[0], logs[1], logs[2], self.flat(*blocks) if has_features else None)

    # Entropies: a label is written with one tag per token

    def _rank_labels(self, w: Array, k: int, rows: Rows, is_augmented: bool) -> Assignment:
        starts = self._starts(rows)
        tags, value = np.empty((int(starts[-1]), k), dtype=np.int64), np.empty((starts.size - 1, k))
        transition, losses = self._transition(w), self.loss_rows(rows) if is_augmented else None
        for out, tokens, part, cuts in self._blocks(rows):
            unary = self._unary(w, part)
            if losses is not None:
                unary += losses[0][losses[1][tokens]]
            if self.states.are_tags:
                best_paths(unary, cuts, transition, tags[tokens], value[out])
            else:
                tag_of, n = self.states.tag_of.astype(np.int64), self.n_labels
                best_taggings(unary, cuts, transition, tag_of, n, tags[tokens], value[out])
        return Assignment(tags, value)

    def _sum_hidden(self, w: Array, labels: Array, power: float, coef: Array, rows: Rows) -> tuple[Array, Array]:
        blocks, given = self._zeros(), self.states.evidence(labels)
        return self._add_expected(w, rows, given, coef, power, None, *blocks), self.flat(*blocks)

    def _best_hidden(self, w: Array, labels: Array, rows: Rows) -> Assignment:
        return self._viterbi(w, rows, given=self.states.evidence(labels))

    def _label_loss(self, labels: Array, rows: Rows) -> Array:
        return self.loss(self.states.first[labels], rows)

    def _is_true_label(self, labels: Array, rows: Rows) -> Array:
        truth = self._true_labels(rows)
        return np.asarray(np.logical_and.reduceat((truth < 0) | (truth == labels), self._starts(rows)[:-1]))

    def _score_labels(self, w: Array, labels: Array, alpha: float, rows: Rows) -> Array:
        return self._score_taggings(w, alpha, rows, labels)

    def _score_truth(self, w: Array, alpha: float, rows: Rows) -> Array:
        if abs(alpha - 1) >= NEAR_ONE:
            return super()._score_truth(w, alpha, rows)
        given, nothing = self._evidence(rows), np.zeros(self._starts(rows).size - 1)
        return self._score_near_one(w, alpha, rows, given, nothing)[0]

    def _slope_of(self, w: Array, labels: Array, alpha: float, coef: Array, rows: Rows) -> Array:
        if abs(alpha - 1) >= NEAR_ONE:
            return super()._slope_of(w, labels, alpha, coef, rows)
        return self._score_near_one(w, alpha, rows, self.states.evidence(labels), coef)[1]

    def _slope_of_truth(self, w: Array, alpha: float, coef: Array, rows: Rows) -> Array:
        if abs(alpha - 1) >= NEAR_ONE:
            return super()._slope_of_truth(w, alpha, coef, rows)
        return self._score_near_one(w, alpha, rows, self._evidence(rows), coef)[1]

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self._starts(rows)
        tags = read_tags(labels, np.diff(starts))
        found = find_labels(self.classes, tags.values)
        wrong = np.flatnonzero(tags.missing | (found < 0))
        if wrong.size:
            raise ValueError(
                f"only complete outputs have a code: tag {wrong[0]} of these sequences is missing or unknown"
            )
        if self.states.are_tags:
            return found.astype(self._code_type)
        given = self.states.evidence(found, None if hidden is None else read_states(hidden, self.states, found, starts))
        if not self._is_single(given).all():
            t = int(np.argmin(self._is_single(given)))
            raise ValueError(f"only complete outputs have a code: the state of token {t} of these sequences is missing")
        return given.astype(self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Ragged, Ragged | None]:
        code, starts = self._read(code, rows), self._starts(rows)
        hidden = None if self.states.are_tags else Ragged(code, starts)
        return Ragged(self.classes[self.states.tag_of[code]], starts), hidden

    def units(self) -> Array:
        """The number of known tags of every sequence, the denominator of a mean loss."""
        return np.add.reduceat((self._true_labels(None, unseen=True) != TARGET).astype(np.float64), self.offsets[:-1])

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        code = self._read(code, rows)
        inside = np.ones(code.size, dtype=bool)
        inside[self._starts(rows)[:-1]] = False
        return bool(self.allowed[code[:-1][inside[1:]], code[1:][inside[1:]]].all())

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same data, the missing tags given by a code; None leaves them missing."""
        view = copy.copy(self)
        if hidden is not None:
            labels, code = self._true_labels(None), self._read(hidden)
            view._labels = np.where(labels < 0, self.states.tag_of[code], labels)
            if not self.states.are_tags:
                given = self._evidence(None)
                view._known_states = np.where(self._is_single(given), given, code)
        return view

    def with_loss(self, losses: LossTable) -> Self:
        return self._with(_losses=self._check_losses(losses))

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: runs of consecutive known tags, each a sequence."""
        labels = self._evidence(None)
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
        return np.flatnonzero(np.logical_or.reduceat(~self._is_single(self._evidence(None)), self.offsets[:-1]))

    def open_parts(self) -> Array:
        return np.flatnonzero(self._true_labels(None) < 0)

    def dual(self, weights: Array, target: Array, start: Mapping[str, Any] | None = None) -> ChainDual:
        """The dual point of a task with these c_i and targets, all weight on the targets, or that of ``start``."""
        return ChainDual(self, weights, target, start)

    def learn_online(
        self, w: Array, order: Array, steps: Array, decays: Array, shares: Array, *, margin: float, target: Any = None
    ) -> OnlinePass:
        """See `tacit.oracle.capabilities.LearnsOnline`; O(features of the visited tokens · states) time."""
        emission, transition = self.parts(w)
        columns = np.ascontiguousarray(emission.T)
        weights = Weights(columns, np.zeros_like(columns), transition.copy(), np.zeros_like(transition), np.ones(2))
        weights.scalars[1] = 0.0
        schedule = Schedule(np.asarray(order, dtype=np.int64), *(np.asarray(a, float) for a in (steps, decays, shares)))
        sequences = Sequences(*flat_rows(self.table), self.offsets, *self.loss_rows(), np.zeros(0))
        given = self._evidence(None) if target is None else self._read(target)
        lost = np.empty(schedule.order.size)
        possible = self.states.possible
        mistakes = learn_chains(schedule, sequences, self.allowed, given, possible, float(margin), weights, lost)
        factor, total = weights.scalars
        last = self.flat(factor * columns.T, factor * weights.transition)
        lacking = weights.lacking_emission, weights.lacking_transition
        sums = self.flat((total * columns - lacking[0]).T, total * weights.transition - lacking[1])
        return OnlinePass(last, sums, lost, int(mistakes))

    @property
    def lacks(self) -> tuple[type, ...]:
        """Capabilities that are missing: single sequences of a `Table` are not visited, and losses of complete tags are
        what they are."""
        visits = (KeepsDual, LearnsOnline) if isinstance(self.table, Table) else ()
        return visits if self._labels is not None and (self._labels < 0).any() else (*visits, MeasuresCompleted)

    def part(self, first: int, last: int) -> Self:
        """The same oracle of the sequences from first to last (exclusive), to be sent to the worker with their rows."""
        tokens = self._positions(slice(first, last))
        part = self._recut(self._starts(slice(first, last)), table=None)
        part._labels = None if self._labels is None else self._labels[tokens]
        part._known_states = None if self._known_states is None else self._known_states[tokens]
        if self._losses is not None:
            part._losses = self._losses.cut(tokens, tokens)
        return part

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly; fewer where w is so long that blocks should be large."""
        work = float(self.offsets[-1]) * self.n_states * (self._width + self.n_states)
        return work * min(1.0, LONG_WEIGHTS / self.n_params)

    def digest(self) -> str:
        states = () if self.states.are_tags else (self.states.counts, self._known_states)
        known = self.allowed, self._labels, *(self._losses or (None, None))
        return checksum(self._rows, self.offsets, *known, *states)

    def _viterbi(
        self, w: Array, rows: Rows, losses: Any = None, given: Array | None = None, factor: Array | None = None
    ) -> Assignment:
        """The best paths; with `loss_rows`, by score plus loss, that of every token times its factor if it has one."""
        starts = self._starts(rows)
        code, value = np.empty(int(starts[-1]), dtype=np.int64), np.empty(starts.size - 1)
        transition = self._transition(w)
        table, column = np.zeros((1, self.n_states)), np.zeros(code.size, dtype=np.int64)
        if losses is not None and factor is None:
            table, column = losses
        clamp, possible = np.empty(0, dtype=np.int64), self.states.possible
        for out, tokens, part, cuts in self._blocks(rows):
            if given is not None:
                clamp = given[tokens]
            unary = self._unary(w, part)
            if factor is not None:
                unary += losses[0][losses[1][tokens]] * factor[tokens, None]
            viterbi(unary, cuts, transition, table, column[tokens], clamp, possible, code[tokens], value[out])
        return Assignment(code.astype(self._code_type), value)

    def _add_expected(
        self,
        w: Array,
        rows: Rows,
        given: Array | None,
        coef: Array,
        power: float,
        losses: tuple[Array, Array] | None,
        emission: Array,
        transition: Array,
    ) -> Array:
        """Log-partitions of the taggings that agree with the given tags; expected features are added to the blocks.

        ``losses``, as `loss_rows` returns them, are added to the scores.
        """
        if given is not None and self._is_single(given).all():  # one tagging is left of every sequence
            self._add_features(given, coef, rows, emission, transition)
            return power * self.score(w, given, rows)
        transitions = np.where(self.allowed, power * self._views(w)["transition"], -np.inf)
        log = np.empty(coef.size)
        for out, tokens, part, cuts in self._blocks(rows):
            unary = self._unary(w, part)
            if losses is not None:
                unary += losses[0][losses[1][tokens]]
            if power != 1.0:
                unary *= power
            if given is not None:
                self._clamp(unary, given[tokens])
            nodes = sum_paths(unary, cuts, transitions, coef[out], log[out], transition)
            if nodes is not None:
                self._add_rows(nodes, part, emission)
        return log

    def _forward_backward(
        self, w: Array, rows: Rows, *, nodes: bool, edges: bool, given: Array | None = None
    ) -> Marginals:
        starts, k = self._starts(rows), self.n_states
        log_partition = np.empty(starts.size - 1)
        single = np.zeros((int(starts[-1]) if nodes else 0, k))
        pairs = np.zeros((int(starts[-1]) if edges else 0, k, k))
        nothing = np.zeros(0), np.zeros((k, k))
        transition = self._transition(w)
        for out, tokens, part, cuts in self._blocks(rows):
            unary = self._unary(w, part)
            if given is not None:
                self._clamp(unary, given[tokens])
            forward_backward(unary, cuts, transition, log_partition[out], single[tokens], pairs[tokens], *nothing)
        return Marginals(log_partition, single, pairs)

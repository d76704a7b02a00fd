"""Inference in chains: Viterbi and forward–backward over ragged sequences."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from tacit.arrays import Array, Rows, locate, smallest_integers, span
from tacit.inputs.labels import find_labels
from tacit.oracle import TARGET, Assignment, LossTable, Schema
from tacit.oracle.capabilities import Expectations, KnownPart, OnlinePass
from tacit.oracle.digests import checksum
from tacit.oracle.enumerable import one_coef_each
from tacit.oracle.losses import checked_losses
from tacit.problems.chain import kernels
from tacit.problems.chain.dual import ChainDual
from tacit.problems.chain.online import Schedule, Weights, learn_chains
from tacit.problems.chain.states import States, read_states
from tacit.problems.chain.tags import read_tags
from tacit.problems.chain.visits import Sequences
from tacit.problems.classes.dual import flat_rows
from tacit.problems.shared.margins import require_margins
from tacit.problems.shared.row_sums import add_rows, add_sparse_rows, cut_rows
from tacit.ragged import Ragged, states_of

EXTRA = ("intercept", "start", "stop")
"""Blocks of weights that belong to features which every sequence has: they are columns behind those of the user."""
MAX_WAYS = 1 << 26
"""Numbers that the search for the best few taggings may keep (0.5 GB)."""

LONG_WEIGHTS = 375_000
"""Weights beyond which blocks of rows are made larger: each block answers with a sum of features as long as w."""

MAX_SPREAD = 600.0
"""Differences of scores, along two neighbouring tokens, up to which products of exponentials stay far from underflow:
the smallest positive number is exp(−708)."""


class Marginals(NamedTuple):
    """What forward–backward gives: log Σ_y exp s(y) a sequence, and the probabilities of single tags and of pairs.

    ``nodes[t, j]`` is the probability of tag j at token t; ``edges[t, i, j]`` that of tag i at token t − 1 and j at t,
    zero at the first token of a sequence.
    """

    log_partition: Array
    nodes: Array
    edges: Array


class ChainOracle:
    """Viterbi and forward–backward over ragged sequences; a code is one state per token.

    Where every tag has one state, states are tags. Otherwise the state is hidden below the tag: scores, codes and sums
    are those of states, losses and labels those of tags.

    Parameters
    ----------
    sequences : token features
    schema : tags and dimensions
    allowed : (K, K) which tag may follow which
    labels : (tokens,) the true tags, −1 where missing, K for a tag that training never saw; None when predicting
    losses : ``table[state, column[token]]``, or ``table[state, token]`` where column is None
    states : the states of the tags; None for one each
    known_states : (tokens,) the true states, −1 where unknown; None where all are
    """

    rescalings: tuple[str, ...] = ("margin",)
    block_cells = 1 << 18
    """Scores computed at a time: a table of this size stays in a core's cache while it is searched."""

    def __init__(
        self,
        sequences: Ragged,
        schema: Schema,
        *,
        allowed: Array,
        labels: Array | None = None,
        losses: LossTable | None = None,
        states: States | None = None,
        known_states: Array | None = None,
    ) -> None:
        self.classes = schema.classes
        self.n_labels = len(schema.classes)
        self.states = States(np.ones(self.n_labels, dtype=np.int64)) if states is None else states
        self.n_states = self.states.n
        self.completes_labels = self.states.are_tags
        self.n_samples = len(sequences)
        self.n_params = schema.n_params
        self.code_offsets: Array | None = sequences.offsets
        self.offsets = sequences.offsets
        self.table = _extended(sequences, schema)
        self._sparse = sparse.issparse(self.table)
        self._turned: dict[str, tuple[Array, Array]] = {}
        self._precision = self.table.dtype
        self._views = schema.views
        self.allowed = allowed
        self._labels = labels
        self._known_states = known_states
        self._losses = None if losses is None else self._checked(losses)
        self._code_type = smallest_integers(self.n_states)
        if labels is not None:
            self._reject_forbidden(labels)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._viterbi(w, rows)

    def augmented(
        self,
        w: Array,
        rows: Rows = None,
        *,
        target: Array | None = None,
        rescaling: str = "margin",
        rivals: bool = False,
    ) -> Assignment:
        require_margins("Chain", rescaling, rivals)
        return self._viterbi(w, rows, losses=self._loss_table())

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        given = self._given(rows)
        best = self._viterbi(w, rows, given=given)
        if prefer is None:
            return best
        prefer = np.asarray(prefer)
        value = self.score(w, np.maximum(prefer, 0), rows)
        starts = self._starts(rows)
        agrees = (given < 0) | self.states.possible[given, np.maximum(prefer, 0)]
        fits = np.logical_and.reduceat((prefer >= 0) & agrees, starts[:-1])
        keep = np.repeat(fits & (value >= best.value), np.diff(starts))
        return Assignment(np.where(keep, prefer, best.code).astype(self._code_type), best.value)

    def draw(self, rng: np.random.Generator) -> Array:
        """The known tags, missing tags and unknown states at random among those that are allowed."""
        given = self._given(None)
        return self._completed(rng.random((given.size, self.n_states)), given).code

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        value, code = np.empty(self._starts(rows).size - 1), self._read(code, rows)
        transition = self._transition(w)
        for out, tokens, part, starts in self._blocks(rows):
            kernels.path_scores(self._unary(w, part), starts, transition, code[tokens], value[out])
        return value

    def loss(self, code: Array, rows: Rows = None) -> Array:
        rows_of_loss, column = self.loss_rows(rows)
        return np.add.reduceat(rows_of_loss[column, self._read(code, rows)], self._starts(rows)[:-1])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        k = self.n_states
        emission, transition = np.zeros((k, self.table.shape[1])), np.zeros((k, k))
        self._add_features(self._read(code, rows), coef, rows, emission, transition)
        return self.flat(emission, transition)

    def _add_features(self, code: Array, coef: Array, rows: Rows, emission: Array, transition: Array) -> None:
        """Add Σ_i coef_i Ψ(x_i, code_i) to the blocks."""
        starts = self._starts(rows)
        coef = one_coef_each(coef, starts.size - 1)
        tokens = self.tokens(rows)
        places = np.arange(tokens.start, tokens.stop) if isinstance(tokens, slice) else tokens
        weights = np.repeat(coef, np.diff(starts))
        if self._sparse:
            table = self.table
            add_sparse_rows(table.data, table.indices, table.indptr, code, places, weights, emission)
        else:
            add_rows(self.table, code, places, weights, emission)
        kernels.add_pairs(code, starts, coef, transition)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ_y exp s(y) of every sequence."""
        return self._forward_backward(w, rows, nodes=False, edges=False).log_partition

    def marginals(self, w: Array, rows: Rows = None) -> Marginals:
        """Log-partition, state and pair probabilities under ``p ∝ exp s``; O(tokens · K²) memory for the pairs. States
        are tags where each tag has one."""
        return self._forward_backward(w, rows, nodes=True, edges=True)

    def best_outputs(self, w: Array, k: int, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.RanksOutputs`; O(tokens · K² · k), and O(longest · K · k) memory."""
        if not self.states.are_tags:
            raise ValueError(
                "the best few paths of Chain(states=...) are paths of states, many of them with the same tags; use "
                "predict_proba, or a chain without states"
            )
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
            kernels.best_paths(self._unary(w, part), cuts, transition, code[own], value[out])
        return Assignment(code, value)

    def tag_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(tokens, K): the probability of every tag; where ``is_given``, given the tags of y that are not missing."""
        return self.states.tag_sums(self.state_posterior(w, rows, is_given))

    def state_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(tokens, states): `tag_posterior` of every state."""
        given = self._given(rows) if is_given else None
        nodes = np.zeros((int(self._starts(rows)[-1]), self.n_states))
        transition, log = self._transition(w), np.empty(self._starts(rows).size - 1)
        nothing = np.zeros((0, self.n_states, self.n_states)), np.zeros(0), np.zeros((self.n_states, self.n_states))
        for out, tokens, part, cuts in self._blocks(rows):
            unary = self._unary(w, part)
            if given is not None:
                self._clamp(unary, given[tokens])
            kernels.forward_backward(unary, cuts, transition, log[out], nodes[tokens], *nothing)
        return nodes

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
        kernels.viterbi(sure, starts, ways, nothing, column, *free, tags, value)
        return self._viterbi(w, rows, given=states.known(tags)).code

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

    def expectations(
        self,
        w: Array,
        rows: Rows = None,
        *,
        free: Any = None,
        label: Any = None,
        truth: Any = None,
        power: float = 1.0,
    ) -> Expectations:
        """See `tacit.oracle.capabilities.SumsOutputs`: a label with gaps stands for all of its completions."""
        n = self._starts(rows).size - 1
        coefs = [
            None if c is None else np.broadcast_to(np.asarray(c, dtype=np.float64), n) for c in (free, label, truth)
        ]
        has_features = any(c is not None and c.any() for c in coefs)
        k = self.n_states
        emission, transition = np.zeros((k, self.table.shape[1])), np.zeros((k, k))
        labels = None if label is None else self._given(rows, states=False)
        truths = None if truth is None else self._given(rows)
        logs: list[Array | None] = []
        for coef, given in zip(coefs, (None, labels, truths), strict=True):
            logs.append(None if coef is None else self._add_expected(w, rows, given, coef, power, emission, transition))
        return Expectations(logs[0], logs[1], logs[2], self.flat(emission, transition) if has_features else None)

    def _add_expected(
        self, w: Array, rows: Rows, given: Array | None, coef: Array, power: float, emission: Array, transition: Array
    ) -> Array:
        """Log-partitions of the taggings that agree with the given tags; expected features are added to the blocks."""
        if given is not None and self._is_single(given).all():  # one tagging is left of every sequence
            self._add_features(given, coef, rows, emission, transition)
            return power * self.score(w, given, rows)
        ways = power * self._views(w)["transition"]
        spread = 2 * float(np.ptp(ways)) if self.allowed.all() and given is None else np.inf
        ways = np.where(self.allowed, ways, -np.inf)
        log = np.empty(coef.size)
        has_features = bool(coef.any())
        nothing = np.zeros((0, self.n_states, self.n_states))
        for out, tokens, part, cuts in self._blocks(rows):
            unary = self._unary(w, part)
            if power != 1.0:
                unary *= power
            if given is not None:
                self._clamp(unary, given[tokens])
            weights = np.ascontiguousarray(coef[out]) if has_features else np.zeros(0)
            tops = unary.max(axis=1)
            if spread + 2 * float(np.max(tops - unary.min(axis=1), initial=0.0)) < MAX_SPREAD:
                nodes = _exponentials(unary, tops[:, None])
                highest, pairs = float(ways.max()), np.zeros_like(ways)
                shares = np.exp(ways - highest)
                kernels.scaled_forward_backward(nodes, tops, cuts, shares, highest, log[out], weights, pairs)
                transition += shares * pairs
            else:
                nodes = np.zeros((len(unary) if has_features else 0, self.n_states))
                kernels.forward_backward(unary, cuts, ways, log[out], nodes, nothing, weights, transition)
                if has_features:
                    nodes *= np.repeat(coef[out], np.diff(cuts))[:, None]
            if has_features:
                states = self.tokens(part)
                table = cut_rows(self.table, states) if self._sparse else self.table[states]
                emission += np.asarray((table.T @ nodes).T if self._sparse else nodes.T @ table)
        return log

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if code.shape != (self.offsets[-1],) or code.dtype.kind != "i":
            return False
        if not bool(((code >= TARGET) & (code < self.n_states)).all()):
            return False
        own = np.add.reduceat(code == TARGET, self.offsets[:-1])  # a sequence stands for its target as a whole or not
        if not bool(((own == 0) | (own == np.diff(self.offsets))).all()):
            return False
        inside = np.ones(code.size, dtype=bool)
        inside[self.offsets[:-1]] = False
        known = inside[1:] & (code[:-1] >= 0) & (code[1:] >= 0)
        return bool(self.allowed[code[:-1][known], code[1:][known]].all())

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
        view = copy.copy(self)
        view._losses = self._checked(losses)
        return view

    def _checked(self, losses: LossTable) -> LossTable:
        tokens = int(self.offsets[-1])
        return checked_losses(losses, self.n_states, tokens, tokens)

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
        table, column = self._loss_table()
        view = copy.copy(self)
        view.table = self.table[tokens]
        view.offsets = view.code_offsets = np.append(np.flatnonzero(begins[tokens]), tokens.size)
        view.n_samples = view.offsets.size - 1
        view._labels = self.states.tag_of[labels[tokens]]
        view._known_states = None if self.states.are_tags else labels[tokens]
        view._losses = LossTable(table[:, tokens], None) if column is None else LossTable(table, column[tokens])
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

    def exact(self) -> Self:
        if self._precision == np.float64:
            return self
        view = copy.copy(self)
        view._precision = np.dtype(np.float64)
        return view

    def digest(self) -> str:
        below = () if self.states.are_tags else (self.states.counts, self._known_states)
        return checksum(self.table, self.offsets, self.allowed, self._labels, *(self._losses or (None, None)), *below)

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

    def tokens(self, rows: Rows) -> Any:
        """The tokens of the chosen sequences: a slice where they are consecutive, else an array."""
        if rows is None:
            return slice(0, int(self.offsets[-1]))
        if isinstance(rows, slice):
            first, last = span(rows, self.n_samples)
            return slice(int(self.offsets[first]), int(self.offsets[last]))
        chosen: Array = states_of(self.offsets, np.asarray(rows))[0]
        return chosen

    def parts(self, w: Array) -> tuple[Array, Array]:
        """(K, features) weights of tokens, constant and boundary features last, and (K, K) of pairs."""
        views = self._views(w)
        extra = [views[name][:, None] for name in EXTRA if name in views]
        return np.hstack([views["emission"], *extra]), views["transition"]

    def flat(self, emission: Array, transition: Array) -> Array:
        """The flat vector of these weights: the inverse of `parts`."""
        out = np.empty(self.n_params)
        views = self._views(out)
        width = views["emission"].shape[1]
        views["emission"][:] = emission[:, :width]
        views["transition"][:] = transition
        for place, name in enumerate([name for name in EXTRA if name in views]):
            views[name][:] = emission[:, width + place]
        return out

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
            kernels.viterbi(unary, cuts, transition, table, column[tokens], clamp, possible, code[tokens], value[out])
        return Assignment(code.astype(self._code_type), value)

    def _completed(self, unary: Array, given: Array) -> Assignment:
        """The best completion of given tags by bare scores of tags, pairs counting only where they are forbidden."""
        code, value = np.empty(given.size, np.int64), np.empty(self.n_samples)
        nothing, column = np.zeros((1, self.n_states)), np.zeros(given.size, np.int64)
        transition = self._transition(np.zeros(self.n_params))
        kernels.viterbi(unary, self.offsets, transition, nothing, column, given, self.states.possible, code, value)
        return Assignment(code.astype(self._code_type), value)

    def _forward_backward(self, w: Array, rows: Rows, nodes: bool, edges: bool) -> Marginals:
        starts, k = self._starts(rows), self.n_states
        log_partition = np.empty(starts.size - 1)
        single = np.zeros((int(starts[-1]) if nodes else 0, k))
        pairs = np.zeros((int(starts[-1]) if edges else 0, k, k))
        nothing = np.zeros(0), np.zeros((k, k))
        transition = self._transition(w)
        for out, tokens, part, cuts in self._blocks(rows):
            kernels.forward_backward(
                self._unary(w, part), cuts, transition, log_partition[out], single[tokens], pairs[tokens], *nothing
            )
        return Marginals(log_partition, single, pairs)

    def _unary(self, w: Array, rows: Rows) -> Array:
        """(tokens, K): the emission scores of these sequences, a fresh table in double precision."""
        weights = self._columns(w)
        tokens = self.tokens(rows)
        table = cut_rows(self.table, tokens) if self._sparse else self.table[tokens]
        return np.ascontiguousarray(table.astype(self._precision, copy=False) @ weights, dtype=np.float64)

    def _columns(self, w: Array) -> Array:
        """(features, K): the weights of tokens, in the precision of the scores.

        A pass is made in blocks. For a sparse table the weights are turned round in memory, which takes as long as many
        tokens, so those of the last w are kept; comparing is cheap beside.
        """
        if not self._sparse:
            return self.parts(w)[0].astype(self._precision, copy=False).T
        last = self._turned.get("last")
        if last is not None and last[1].dtype == self._precision and np.array_equal(last[0], w):
            return last[1]
        columns = np.ascontiguousarray(self.parts(w)[0].T, dtype=self._precision)
        self._turned["last"] = w.copy(), columns
        return columns

    def _transition(self, w: Array) -> Array:
        return np.asarray(np.where(self.allowed, self._views(w)["transition"], -np.inf))

    def _starts(self, rows: Rows) -> Array:
        """Where the sequences begin in a code of these rows, and its length."""
        if rows is None:
            return np.asarray(self.offsets)
        if isinstance(rows, slice):
            first, last = span(rows, self.n_samples)
            return np.asarray(self.offsets[first : last + 1] - self.offsets[first])
        return np.asarray(states_of(self.offsets, np.asarray(rows))[1])

    def _blocks(self, rows: Rows) -> Iterator[tuple[slice, slice, Rows, Array]]:
        """Consecutive sequences of about `block_cells` scores: their places in an answer, in a code, rows and cuts."""
        starts = self._starts(rows)
        room = max(1, self.block_cells // self.n_states)
        first = 0 if rows is None else rows.indices(self.n_samples)[0] if isinstance(rows, slice) else None
        i, n = 0, starts.size - 1
        while i < n:
            stop = int(np.searchsorted(starts, starts[i] + room, side="right")) - 1
            stop = min(max(stop, i + 1), n)
            part = rows[i:stop] if first is None else slice(first + i, first + stop)  # type: ignore[index]
            yield slice(i, stop), slice(int(starts[i]), int(starts[stop])), part, starts[i : stop + 1] - starts[i]
            i = stop

    def loss_rows(self, rows: Rows = None) -> tuple[Array, Array]:
        """Losses by rows: ``table[column[token], tag]``, the column of each token of these rows."""
        table, column = self._loss_table()
        tokens = self.tokens(rows)
        if column is None:
            table = np.ascontiguousarray(table[:, tokens].T)
            return table, np.arange(table.shape[0])
        return np.ascontiguousarray(table.T), column[tokens]

    def _loss_table(self) -> LossTable:
        if self._losses is None:
            raise ValueError("these sequences were bound without tags, so outputs have no loss: bind with y")
        return self._losses

    def _known(self, rows: Rows, unseen: bool = False) -> Array:
        if self._labels is None:
            raise ValueError("these sequences were bound without tags: bind(X, y, ...) with y to impute or compare")
        labels: Array = self._labels[self.tokens(rows)]
        if not unseen and (labels >= self.n_labels).any():
            t = int(np.argmax(self._labels >= self.n_labels))
            i, place = locate(self.offsets, t)
            raise ValueError(f"y[{i}][{place}] is a tag that training never saw; the tags are {self.classes.tolist()}")
        return labels

    def _given(self, rows: Rows, states: bool = True) -> Array:
        """What is known of every token, as `States.known` writes it; without what is known of states, if so asked."""
        labels = self._known(rows)
        known = self._known_states if states else None
        return self.states.known(labels, None if known is None else known[self.tokens(rows)])

    def _is_single(self, given: Array) -> Array:
        """Whether only one state is left of a token of which this is known."""
        return (given >= 0) & (given < self.n_states)

    def _clamp(self, unary: Array, given: Array) -> None:
        """Rule out the states other than those that are possible."""
        unary[(given[:, None] >= 0) & ~self.states.possible[given]] = -np.inf

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

    def _read(self, code: Array, rows: Rows = None) -> Array:
        """The tags of a code of these rows; kernels go where they say."""
        code = np.asarray(code, dtype=np.int64)
        tokens = self._starts(rows)[-1]
        if code.shape != (tokens,):
            raise ValueError(f"a code of shape {code.shape} for {tokens} tokens in all; it has one number per token")
        if code.size and code.min() < 0:
            raise ValueError(f"code[{np.argmin(code)}] is {code.min()}: replace TARGET by the target's own code")
        if code.size and code.max() >= self.n_states:
            what = "tags" if self.states.are_tags else "states"
            raise ValueError(f"code[{np.argmax(code)}] is {code.max()}, there are {self.n_states} {what}")
        return code


def _exponentials(scores: Array, tops: Array) -> Array:
    """exp(scores − tops), in the memory of the scores."""
    scores -= tops
    return np.asarray(np.exp(scores, out=scores))


def _extended(sequences: Ragged, schema: Schema) -> Any:
    """The token table, with the columns of the `EXTRA` blocks that the schema has."""
    names = [name for name in EXTRA if name in schema.blocks]
    if not names:
        return sequences.values
    values, offsets = sequences.values, sequences.offsets
    extra = np.zeros((values.shape[0], len(names)), dtype=values.dtype)
    places = {"intercept": slice(None), "start": offsets[:-1], "stop": offsets[1:] - 1}
    for column, name in enumerate(names):
        extra[places[name], column] = 1
    if sparse.issparse(values):
        return sparse.csr_array(sparse.hstack([values, sparse.csr_array(extra)], format="csr"))
    return np.hstack([values, extra])

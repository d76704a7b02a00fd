"""Sums over all taggings: log-partitions, probabilities of tags and states, expected features."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle.capabilities import Expectations
from tacit.oracle.sharing import Batch, join_tuples
from tacit.problems.chain.forward_backward import forward_backward, scaled_forward_backward
from tacit.problems.chain.packed import PackedChains
from tacit.problems.shared.row_sums import cut_rows

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


class ChainSums(PackedChains):
    """Forward–backward over states."""

    batches: ClassVar[dict[str, Batch]] = {"marginals": Batch(join_tuples, ("w", "rows"))}

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ_y exp s(y) of every sequence."""
        return self._forward_backward(w, rows, nodes=False, edges=False).log_partition

    def marginals(self, w: Array, rows: Rows = None) -> Marginals:
        """Log-partition, state and pair probabilities under ``p ∝ exp s``; O(tokens · K²) memory for the pairs. States
        are tags where each tag has one."""
        return self._forward_backward(w, rows, nodes=True, edges=True)

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
            forward_backward(unary, cuts, transition, log[out], nodes[tokens], *nothing)
        return nodes

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
                scaled_forward_backward(nodes, tops, cuts, shares, highest, log[out], weights, pairs)
                transition += shares * pairs
            else:
                nodes = np.zeros((len(unary) if has_features else 0, self.n_states))
                forward_backward(unary, cuts, ways, log[out], nodes, nothing, weights, transition)
                if has_features:
                    nodes *= np.repeat(coef[out], np.diff(cuts))[:, None]
            if has_features:
                states = self._places(part)
                table = cut_rows(self.table, states) if self._sparse else self.table[states]
                emission += np.asarray((table.T @ nodes).T if self._sparse else nodes.T @ table)
        return log

    def _forward_backward(self, w: Array, rows: Rows, nodes: bool, edges: bool) -> Marginals:
        starts, k = self._starts(rows), self.n_states
        log_partition = np.empty(starts.size - 1)
        single = np.zeros((int(starts[-1]) if nodes else 0, k))
        pairs = np.zeros((int(starts[-1]) if edges else 0, k, k))
        nothing = np.zeros(0), np.zeros((k, k))
        transition = self._transition(w)
        for out, tokens, part, cuts in self._blocks(rows):
            forward_backward(
                self._unary(w, part), cuts, transition, log_partition[out], single[tokens], pairs[tokens], *nothing
            )
        return Marginals(log_partition, single, pairs)


def _exponentials(scores: Array, tops: Array) -> Array:
    """exp(scores − tops), in the memory of the scores."""
    scores -= tops
    return np.asarray(np.exp(scores, out=scores))

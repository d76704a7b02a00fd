"""Operators of pairs from counts, and their smoothing: what few data leave open, coarser counts decide.

With a strength of s, every pair is given s visits more in which it behaves like its tag, and every tag s visits more in
which it forgets how it was reached: what follows then depends on the tag alone, as in a Markov chain of tags. At last
everything is given one visit more that goes on from the average state, so that nothing becomes impossible. With growing
data all three vanish; with s without bounds the model is the hidden Markov model whose states are the contexts of tags.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.spectral.tagger.counts import PairCounts, count_pairs, find_windows
from tacit.spectral.tagger.operators import PairedAutomaton, build_operators, find_basis

AVERAGE_VISITS = 1.0
"""Visits of the average state that are counted behind every tag besides the data."""


class Estimate(NamedTuple):
    """What the counts say before they are smoothed.

    Attributes
    ----------
    counts : the pairs
    automaton : their operators
    behind : (tags, rank) the mean state behind every tag; None for a conditional model
    singular_values : of H
    """

    counts: PairCounts
    automaton: PairedAutomaton
    behind: Array | None
    singular_values: Array

    def cut(self, rank: int) -> Estimate:
        """The same with fewer hidden dimensions."""
        a = self.automaton
        automaton = PairedAutomaton(a.initial[:rank], a.operators[:, :rank, :rank], a.final[:rank], a.middle[:rank])
        behind = None if self.behind is None else self.behind[:, :rank]
        return Estimate(self.counts, automaton, behind, self.singular_values[:rank])

    def smoothed(self, strength: float) -> PairedAutomaton:
        """The automaton of this strength, operators of an unknown symbol last."""
        counts, automaton = self.counts, self.automaton
        is_conditional = self.behind is None
        if not strength > 0:
            return counts.with_unknown(automaton, is_conditional)
        scale = np.ones(counts.n_pairs)
        if is_conditional:  # operators given x, as those of x and y together
            of_symbol = np.bincount(counts.symbol, counts.times, minlength=counts.n_symbols)
            scale = of_symbol[counts.symbol] / counts.times.sum()
        operators = automaton.operators * scale[:, None, None]
        seen = np.bincount(counts.tag, counts.times, minlength=counts.n_tags)
        final, middle = automaton.final, automaton.middle / (automaton.middle @ automaton.final)
        for tag in range(counts.n_tags):
            mine = np.flatnonzero(counts.tag == tag)
            of_tag = operators[mine].sum(axis=0)
            if self.behind is not None:
                forgetful = np.outer(of_tag @ final, self.behind[tag])
                of_tag += strength / (strength + seen[tag]) * (forgetful - of_tag)
            weight = strength / (strength + counts.times[mine])
            part = operators[mine] * (1 - weight)[:, None, None]
            part += (weight * counts.times[mine] / seen[tag])[:, None, None] * of_tag
            if self.behind is not None:
                share = AVERAGE_VISITS / (AVERAGE_VISITS + seen[tag])
                part += share * ((part @ final)[:, :, None] * middle - part)
            operators[mine] = part
        return counts.with_unknown(automaton._replace(operators=operators / scale[:, None, None]), is_conditional)


def estimate(
    codes: Array,
    labels: Array,
    offsets: Array,
    n_symbols: int,
    n_tags: int,
    rank: int,
    seed: int,
    *,
    context: str,
    size: int,
    conditional: Any,
) -> Estimate:
    """Count, find the basis, build the operators: one pass over the data."""
    counts = count_pairs(codes, labels, n_symbols, n_tags)
    found = find_windows(counts, offsets, context, size, conditional)
    basis = find_basis(found.windows, found.context, found.n_contexts, rank, seed)
    automaton = build_operators(found.windows, basis, counts.n_pairs, found.first)
    behind = None if conditional else np.asarray(found.following @ basis.right)
    return Estimate(counts, automaton, behind, basis.singular_values)

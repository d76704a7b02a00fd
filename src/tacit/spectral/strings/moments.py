"""What the estimators count in strings, once, and the automata of any rank that follow from it."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.spectral.automata.automaton import WeightedAutomaton
from tacit.spectral.automata.operators import Factors, factorise, operators
from tacit.spectral.strings.hankel import Hankel, count
from tacit.spectral.strings.next_symbol import NextSymbol, next_symbol
from tacit.spectral.strings.ngram import ngram, ngram_order
from tacit.spectral.strings.prefix_tree import PrefixTree, grow


class Counting(NamedTuple):
    """What to count: the fields are parameters of `SpectralAutomaton`."""

    statistics: str
    length: int
    size: int | None
    basis: tuple[Ragged, Ragged] | None
    scaling: float


class Moments:
    """Counts of strings over an alphabet, each made when it is first asked for.

    Parameters
    ----------
    strings : codes
    symbols : the alphabet
    weights : of the strings, None is one for all
    counting : what to count
    rank : the largest that will be asked for
    seed : of the SVD of large blocks
    """

    def __init__(
        self, strings: Ragged, symbols: Array, weights: Array | None, counting: Counting, rank: int, seed: int
    ) -> None:
        self.strings, self.symbols, self.weights = strings, symbols, weights
        self.counting, self.rank, self.seed = counting, rank, seed

    @functools.cached_property
    def hankel(self) -> Hankel:
        return count(
            self.strings,
            len(self.symbols),
            statistics=self.counting.statistics,
            length=self.counting.length,
            size=self.counting.size,
            basis=self.counting.basis,
            weights=self.weights,
        )

    @functools.cached_property
    def factors(self) -> Factors:
        return factorise(self.hankel, self.rank, scaling=self.counting.scaling, seed=self.seed)

    @functools.cached_property
    def tree(self) -> PrefixTree:
        return grow(self.strings, self.weights)

    @functools.cached_property
    def table(self) -> Array:
        """The n-gram of the strings."""
        return ngram(self.strings, len(self.symbols), ngram_order(len(self.symbols)), self.weights)

    def automaton(self, rank: int) -> WeightedAutomaton:
        """The spectral automaton of whole strings, as it is: its values may be negative."""
        initial, transitions, final = operators(self.hankel, self.factors, rank)
        rest = np.eye(initial.size) - transitions.sum(axis=0)
        if self.counting.statistics != "string":
            final = rest @ final
        if self.counting.statistics == "substring":
            initial = initial @ rest
        return WeightedAutomaton(initial, transitions, final, self.symbols)

    def next_symbol(self, rank: int, mixing: float) -> NextSymbol:
        """The spectral automaton with next-symbol distributions that are proper.

        The weight of a prefix and the average state are read off counts as well: inverting I − Σ_σ A_σ, the exact way,
        would fail where noise makes the automaton's values sum to infinity.
        """
        automaton = self.automaton(rank)
        initial, _, final = operators(self.hankel, self.factors, rank)
        is_string, is_substring = (self.counting.statistics == kind for kind in ("string", "substring"))
        going_on = self.factors.rows[:rank] @ self.hankel.row_totals if is_string else final
        everywhere = initial if is_substring else self.hankel.column_totals @ self.factors.columns[:, :rank]
        parts = (automaton.initial, automaton.transitions, automaton.final)
        return next_symbol(*parts, going_on, everywhere, self.table, mixing)

"""What all densities over strings share once they are fitted: scores, next symbols, samples, files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, random_numbers, shorten, switch, whole_number
from tacit.learners.learner import read_weights, without_history
from tacit.runtime import storage
from tacit.spectral.automata.automaton import WeightedAutomaton
from tacit.spectral.strings.next_symbol import MAX_DRAWN, NextSymbol, of_probabilities
from tacit.spectral.strings.symbols import decode, encode, read_sequences

MAX_COUNT = 1e100
"""How often a string may count: sums of products of larger numbers overflow."""


class StringDensity(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the estimators: `fit` of a subclass sets `symbols_`, `automaton_` and `distribution_`."""

    symbols_: Array
    automaton_: WeightedAutomaton
    distribution_: NextSymbol | None

    def score_samples(self, X: Any) -> Array:
        """The natural logarithm of every sequence's probability; −inf for one with a symbol outside `symbols_`."""
        check_is_fitted(self)
        strings = encode(X, self.symbols_)
        if self.distribution_ is None:
            return self.automaton_.log_prob_of_codes(strings)
        return self.distribution_.log_prob(strings)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the sequences."""
        return float(self.score_samples(X).mean())

    def perplexity(self, X: Any) -> float:
        """exp(−mean log-probability a symbol), the end of each sequence counted as one."""
        sequences = read_sequences(X)
        units = sequences.values.shape[0] + len(sequences)
        return float(np.exp(-self.score_samples(sequences).sum() / units))

    def next_symbol_proba(self, X: Any) -> Array:
        """(sequences, symbols + 1): the probability of each symbol of `symbols_` after the sequence, and of its end,
        last.

        A symbol that was never seen tells nothing about what follows: the state starts afresh after it.
        """
        check_is_fitted(self)
        return self._next().next_proba(encode(X, self.symbols_))

    def predict_next(self, X: Any) -> list[Any]:
        """The most probable symbol after each sequence; None where it is the end."""
        best = self.next_symbol_proba(X).argmax(axis=1)
        listed = [*self.symbols_.tolist(), None]
        return [listed[i] for i in best]

    def sample(self, n_samples: int = 1, *, random_state: Any = None, max_length: int = 100_000) -> list[list[Any]]:
        """Sequences drawn from the distribution."""
        check_is_fitted(self)
        n_samples = whole_number("n_samples", n_samples, 0, MAX_DRAWN)
        strings = self._next().sample(n_samples, random_numbers(random_state), max_length)
        return decode(strings, self.symbols_)

    def save(self, path: str | os.PathLike[str], history: bool = True) -> None:
        """Write the fitted model to a file that `tacit.load` reads: arrays and JSON, no pickle.

        ``history=False`` leaves out the lines of `history_`.
        """
        check_is_fitted(self)
        switch("history", history)
        facts = {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}
        storage.save(path, self, facts if history else without_history(facts))

    def check(self) -> None:
        """Refuse parameters and learned facts that cannot be: what `tacit.load` asks of a model from a file."""
        missing = [name for name in ("symbols_", "automaton_", "distribution_") if not hasattr(self, name)]
        if missing:
            raise ValueError(f"{missing[0]} is missing; a fitted {type(self).__name__} has it")
        self._check()
        symbols, automaton = self.symbols_, self.automaton_
        if not isinstance(symbols, np.ndarray) or symbols.ndim != 1 or symbols.dtype.kind not in "iuU":
            raise ValueError(f"symbols_ is {shorten(symbols)}, no vector of symbols")
        automata = [automaton] if getattr(self, "spectral_", None) is None else [automaton, self.spectral_]
        for one in automata:
            if not isinstance(one, WeightedAutomaton) or not np.array_equal(one.symbols, symbols):
                raise ValueError(f"{shorten(one)} is no automaton of the symbols {shorten(symbols)}")
        if self.distribution_ is None:
            if not automaton.is_probabilistic:
                raise ValueError("automaton_ is not one of probabilities, and there is no distribution_")
        elif not isinstance(self.distribution_, NextSymbol) or len(self.distribution_.transitions) != len(symbols):
            raise ValueError(f"distribution_ is no distribution over strings of {len(symbols)} symbols")
        else:
            self.distribution_.check()
        self._check_facts()

    @abstractmethod
    def _check(self) -> Any:
        """Refuse parameters that cannot be."""

    @abstractmethod
    def _check_facts(self) -> None:
        """Refuse what else was learned, if it cannot be."""

    def _next(self) -> NextSymbol:
        """Next-symbol distributions of the model."""
        if self.distribution_ is not None:
            return self.distribution_
        automaton = self.automaton_
        uniform = np.full((1, len(self.symbols_) + 1), 1 / (len(self.symbols_) + 1))
        return of_probabilities(automaton.initial, automaton.transitions, automaton.final, uniform, 0.0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "automaton_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def read_counts(sample_weight: Any, n: int) -> Array | None:
    """How often each of n strings counts: finite and not negative; None is once each."""
    if sample_weight is None:
        return None
    largest = float(numbers("sample_weight", sample_weight).max(initial=0.0))
    shares = read_weights(sample_weight, n)
    if largest > MAX_COUNT:
        raise ValueError(
            f"sample_weight says how often a string counts, and {largest:.3g} times is too often for sums of products; "
            f"scale the weights to at most {MAX_COUNT:g}"
        )
    return shares * largest

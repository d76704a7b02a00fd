"""`SpectralAutomaton`: a density estimator over strings; and `StringDensity`, the base it shares with `SpectralHMM`."""

from __future__ import annotations

import os
import warnings
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from tacit.data.arrays import Array
from tacit.data.parameters import entries, is_list, is_whole, numbers, random_numbers, shorten, switch, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import (
    any_number,
    between,
    choice,
    estimator,
    inner_share,
    instance,
    not_negative,
    optional,
    parameter,
    share,
    table,
    whole,
)
from tacit.learners.application import Application
from tacit.learners.learner import without_history
from tacit.learners.preparation import read_weights
from tacit.runtime import storage
from tacit.spectral import selection
from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.em import EMStep, check_steps
from tacit.spectral.hankel import STATISTICS
from tacit.spectral.moments import Counting, Moments
from tacit.spectral.next_symbol import MAX_DRAWN, NextSymbol, constant_weights, of_probabilities
from tacit.spectral.ngram import count_ngrams
from tacit.spectral.prefix_tree import sort_order
from tacit.spectral.symbols import decode, encode, read_alphabet, read_sequences

MAX_COUNT = 1e100
"""The largest weight of a string: sums of products of larger numbers overflow."""

MAX_SCALING = 10.0
"""The largest power of a frequency: with larger ones rare contexts overflow."""

AUTO = (2, 5, 10, 20, 40, 60, 80, 110, 150)
"""The numbers of states that ``n_states="auto"`` tries, as long as the held-out likelihood grows."""


def _check_symbols(name: str, value: Any) -> None:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "iuU":
        raise ValueError(f"{name} must be a vector of symbols, got {shorten(value)}")


class StringDensity(Application):
    """Base of the estimators: `fit` of a subclass sets `symbols_`, `automaton_` and `distribution_`."""

    symbols_: Array
    automaton_: WeightedAutomaton
    distribution_: NextSymbol | None
    spectral_: WeightedAutomaton
    n_corrected_: int
    singular_values_: Array
    history_: list[EMStep]

    _not_saved = ()
    learned: ClassVar = {
        "symbols_": _check_symbols,
        "automaton_": instance(WeightedAutomaton, "a WeightedAutomaton"),
        "distribution_": optional(instance(NextSymbol, "a distribution over strings")),
        "n_corrected_": whole(0),
        "singular_values_": table(None),
        "history_": check_steps,
    }

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
        """exp(−mean log-probability per symbol), with the end of a sequence as a symbol."""
        sequences = read_sequences(X)
        units = sequences.values.shape[0] + len(sequences)
        return float(np.exp(-self.score_samples(sequences).sum() / units))

    def next_symbol_proba(self, X: Any) -> Array:
        """(sequences, symbols + 1) probabilities of the symbols of `symbols_` after each sequence, the end last.

        After a symbol that training never saw, the average state is used.
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
        learned = self.learned_attributes()
        storage.save(path, self, learned if history else without_history(learned))

    def check_learned(self) -> None:
        super().check_learned()
        automata = [self.automaton_] if getattr(self, "spectral_", None) is None else [self.automaton_, self.spectral_]
        for one in automata:
            if not isinstance(one, WeightedAutomaton) or not np.array_equal(one.symbols, self.symbols_):
                raise ValueError(f"automata must have the symbols {shorten(self.symbols_)}, got {shorten(one)}")
        if self.distribution_ is None and not self.automaton_.is_probabilistic:
            raise ValueError("automaton_ must be probabilistic if distribution_ is None")
        if self.distribution_ is not None and self.distribution_.n_symbols != len(self.symbols_):
            raise ValueError(f"distribution_ must be over strings of {len(self.symbols_)} symbols")

    def _next(self) -> NextSymbol:
        """Next-symbol distributions of the model."""
        if self.distribution_ is not None:
            return self.distribution_
        automaton = self.automaton_
        alone = of_probabilities(automaton.initial, automaton.transitions, automaton.final)
        empty = Ragged(np.empty(0, dtype=np.int32), np.zeros(2, dtype=np.int64))
        ngram = count_ngrams(empty, len(self.symbols_), 1)
        return NextSymbol((alone,), ngram, constant_weights(1, 0.0))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "automaton_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _list_ranks(n_states: Any) -> list[Any]:
    """The ranks to try."""
    ranks: Any = AUTO if isinstance(n_states, str) and n_states == "auto" else n_states
    return list(ranks) if is_list(ranks) else [ranks]


def _check_ranks(name: str, value: Any) -> None:
    ranks = _list_ranks(value)
    if not ranks or not all(is_whole(rank) and rank >= 1 for rank in ranks):
        raise ValueError(f"{name} must be a whole number from 1, a list of them or 'auto', got {shorten(value)}")


def _check_basis(name: str, value: Any) -> None:
    if isinstance(value, str):
        if value not in ("frequent", "all"):
            raise ValueError(f"{name} must be 'frequent', 'all' or (prefixes, suffixes), got {shorten(value)}")
    elif not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name} must be two lists of strings, (prefixes, suffixes), got {shorten(value)}")


def _check_held_out(name: str, value: Any) -> None:
    instance(dict, "a dict")(name, value)
    for rank, likelihood in value.items():
        whole_number(f"a rank of {name}", rank)
        any_number(f"a value of {name}", likelihood)


@estimator
class SpectralAutomaton(StringDensity):
    """A distribution over strings, learned by the spectral method.

    The states of a weighted automaton (`WeightedAutomaton`) are singular vectors of a Hankel matrix, the counts of
    substrings. That takes seconds for millions of strings, without iterations or local optima (Hsu, Kakade & Zhang
    2009; Bailly, Denis & Ralaivola 2009; Balle et al. 2014). Counts are noisy, so some strings have values below zero.
    `smoothing` turns the automaton into a distribution, which sums to one over all strings.

    Parameters
    ----------
    n_states : rank of the automaton; lowered with a warning if the strings have a smaller rank. A list, or "auto",
        selects by held-out likelihood
    basis : rows and columns of the Hankel matrix. "frequent": the ``size`` most frequent strings of up to ``length``
        symbols. "all": all of up to ``length`` that occur. Or two lists of strings, prefixes and suffixes
    length, size : of the basis
    statistics : what is counted: whole "string"s, "prefix"es or "substring"s
    scaling : rows and columns are divided by this power of their frequency; 0.5 suits HMMs with few symbols
    smoothing : how the automaton becomes a distribution. "ngram": next-symbol weights are normalised, and averaged with
        those of further automata and of a Kneser–Ney n-gram; shares and the order of the n-gram are selected on
        held-out strings. "normalise": one automaton, and a share of 0.001 for the n-gram. "project": prefixes are
        clustered by their states into a probabilistic automaton of ``n_states`` states
    refine : None, or "em": Baum–Welch from the projected automaton, with the number of steps selected on held-out
        strings. Then "ngram" averages it with automata from other starts and the n-gram, if that helps on held-out ones
    max_iter, tol : of EM: steps at most, and the least rise of the log-likelihood per symbol
    n_models : automata that "ngram" averages, at most. Without EM they are those of the best ranks; with EM also of the
        same rank from other starts, and each takes about as long as the first
    validation : share of the strings that is held out for selection; the model is then learned from all strings
    alphabet : the symbols to expect; None for those that occur. Strings with other symbols have probability zero
    random_state : of the split, the clusters and large SVDs
    verbose : 1 shows progress of EM on a terminal or in a notebook, 2 writes plain lines

    Attributes
    ----------
    automaton_ : the automaton: probabilistic after "project" or EM, else ``spectral_``
    spectral_ : the automaton of the spectral method
    distribution_ : the next-symbol distributions that score strings; None where ``automaton_`` scores them
    symbols_ : the alphabet, the most frequent symbol first; the columns of `next_symbol_proba`
    n_states_, mixing_, n_iter_ : the selected rank, the mean share of the n-gram, the EM steps
    n_corrected_ : number of training strings whose spectral value is not a probability: not above zero, or above one
    held_out_ : the mean held-out log-likelihood per string, by number of states
    history_ : log-likelihood by EM step, first of the strings that are not held out, then of all
    singular_values_ : of the Hankel matrix

    >>> words = [list("ab") * k + ["c"] for k in (0, 1, 1, 2, 2, 2, 3)] * 20
    >>> model = SpectralAutomaton(n_states=3, random_state=0).fit(words)
    >>> model.predict_next([["a"], ["a", "b", "c"]])
    ['b', None]
    >>> bool(np.exp(model.score_samples([["a", "b", "c"]]))[0] > 0.2)
    True
    """

    n_states: Any = parameter(_check_ranks, default="auto")
    _: KW_ONLY
    basis: Any = parameter(_check_basis, default="frequent")
    length: int = parameter(whole(), default=6)
    size: int = parameter(whole(), default=1000)
    statistics: str = parameter(choice(*STATISTICS), default="substring")
    scaling: float = parameter(between(f"a number from 0 to {MAX_SCALING:g}", 0, MAX_SCALING), default=0.0)
    smoothing: str = parameter(choice(*selection.SMOOTHINGS), default="ngram")
    refine: str | None = parameter(choice("em", None), default=None)
    max_iter: int = parameter(whole(), default=60)
    tol: float = parameter(not_negative, default=1e-6)
    n_models: int = parameter(whole(), default=3)
    validation: float = parameter(inner_share, default=0.2)
    alphabet: Any = None
    random_state: Any = 0
    verbose: int = 1
    learned: ClassVar = {"n_states_": whole(), "n_iter_": whole(0), "mixing_": share, "held_out_": _check_held_out}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpectralAutomaton:
        """Learn from sequences: lists of symbols, words, arrays, or a Ragged; y is ignored."""
        self.check_parameters()
        ranks = [int(rank) for rank in _list_ranks(self.n_states)]
        strings, symbols, weights = read_strings(X, self.alphabet, sample_weight)
        order = sort_order(strings)
        strings, weights = strings[order], _take(weights, order)
        rng = random_numbers(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        counting, recipe = self._counting(symbols), self._recipe(seed)
        with threadpool_limits(1):
            whole = Moments(strings, symbols, weights, counting, max(ranks), seed)
            choice = selection.choose_without_held_out(ranks[0], recipe)
            if len(ranks) > 1 or recipe.projects or self.smoothing == "ngram":
                kept, held = self._split(len(strings), len(ranks) > 1, rng)
                if held.size:
                    part = Moments(strings[kept], symbols, _take(weights, kept), counting, max(ranks), seed)
                    held_out = selection.HeldOut(strings[held], _take(weights, held))
                    choice = selection.choose(part, held_out, ranks, recipe)
            model = selection.build(whole, choice, recipe)
            self._keep(whole, choice, model)
        return self

    def _keep(self, whole: Moments, choice: selection.Choice, model: selection.Model) -> None:
        self.symbols_ = whole.symbols
        self.spectral_ = whole.automaton(choice.ranks[0])
        self.automaton_, self.distribution_ = model.automaton, model.distribution
        self.n_states_ = model.automaton.n_states
        self.mixing_ = 0.0 if model.distribution is None else choice.mixing
        self.n_iter_ = len(model.history)
        self.held_out_ = choice.held_out
        self.history_ = model.history
        self.singular_values_ = whole.factors.singular_values
        self.n_corrected_ = self.spectral_.count_improper_codes(whole.strings)
        if model.interrupted:
            warnings.warn("interrupted: the best model so far is kept; fit again for a better one", stacklevel=3)
        if is_whole(self.n_states) and self.n_states_ < int(self.n_states):
            warnings.warn(
                f"n_states={self.n_states} is lowered to {self.n_states_}, the rank of the counts; lower it, give more "
                "strings, or raise length and size",
                stacklevel=3,
            )

    def _counting(self, symbols: Array) -> Counting:
        size = int(self.size) if isinstance(self.basis, str) and self.basis == "frequent" else None
        basis = None if isinstance(self.basis, str) else self._read_basis(symbols)
        return Counting(self.statistics, int(self.length), size, basis, float(self.scaling))

    def _read_basis(self, symbols: Array) -> tuple[Ragged, Ragged]:
        """The given prefixes and suffixes as codes; those with unknown symbols do not occur and are left out."""
        parts = []
        for name, part in zip(("prefixes", "suffixes"), self.basis, strict=True):
            if not isinstance(part, Ragged):
                part = entries(f"basis {name}", part, "a list of strings")
            if len(part) == 0:
                raise ValueError(f"basis {name} must not be empty; give at least one string, or basis='frequent'")
            codes = encode(part, symbols)
            known = [i for i in range(len(codes)) if (codes[i] >= 0).all()]
            if not any(codes.lengths[i] for i in known):
                raise ValueError(
                    f"basis {name} must have strings of symbols that occur, such as {symbols[:10].tolist()}, got "
                    f"{shorten(list(part)[:3])}"
                )
            parts.append(codes[known])
        return parts[0], parts[1]

    def _recipe(self, seed: int) -> selection.Recipe:
        steps = int(self.max_iter), float(self.tol)
        return selection.Recipe(self.smoothing, self.refine, *steps, int(self.n_models), seed, self.verbose)

    def _split(self, n: int, must: bool, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Strings to learn from and strings to hold out; none of the latter if there are too few."""
        size = round(float(self.validation) * n)
        if size == 0 or size == n:
            if must:
                raise ValueError(
                    f"validation={self.validation:g} of {n} strings holds out {size}, too few to select n_states; give "
                    "more strings, another validation, or one n_states"
                )
            return np.arange(n), np.empty(0, dtype=np.int64)
        order = rng.permutation(n)
        return np.sort(order[size:]), np.sort(order[:size])


def read_strings(X: Any, alphabet: Any, sample_weight: Any) -> tuple[Ragged, Array, Array | None]:
    """Codes of the sequences, the symbols, and the weights."""
    sequences = read_sequences(X)
    weights = _read_counts(sample_weight, len(sequences))
    symbols = read_alphabet(alphabet, sequences)
    return encode(sequences, symbols), symbols, weights


def _read_counts(sample_weight: Any, n: int) -> Array | None:
    """The weights of n strings: finite and not negative; None for one each."""
    if sample_weight is None:
        return None
    largest = float(numbers("sample_weight", sample_weight).max(initial=0.0))
    shares = read_weights(sample_weight, n)
    if largest > MAX_COUNT:
        raise ValueError(f"sample_weight must be at most {MAX_COUNT:g}, got {largest:.3g}; divide all by a constant")
    return shares * largest


def _take(weights: Array | None, rows: Array) -> Array | None:
    return None if weights is None else weights[rows]

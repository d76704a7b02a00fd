"""`SpectralAutomaton`: a density estimator over strings, by spectral learning and optionally EM."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import (
    entries,
    is_list,
    is_not_negative,
    is_whole,
    number,
    one_of,
    random_numbers,
    shorten,
    whole_number,
)
from tacit.data.ragged import Ragged
from tacit.spectral.automata.density import StringDensity, read_counts
from tacit.spectral.automata.selection import NGRAM_SHARE, SMOOTHINGS, Choice, HeldOut, Model, Recipe, build, choose
from tacit.spectral.em import check_steps
from tacit.spectral.strings.hankel import STATISTICS
from tacit.spectral.strings.moments import Counting, Moments
from tacit.spectral.strings.prefix_tree import sorting
from tacit.spectral.strings.symbols import encode, read_alphabet, read_sequences

MAX_SCALING = 10.0
"""The largest power of a frequency: beyond, rare contexts overflow."""

AUTO = (2, 5, 10, 20, 40, 60)
"""The numbers of states that ``n_states="auto"`` tries."""


class SpectralAutomaton(StringDensity):
    """A distribution over strings, learned by the spectral method.

    Counts of substrings make a Hankel matrix, its singular vectors the states of a weighted automaton
    (`WeightedAutomaton`): no iteration, no local optimum, seconds for millions of strings (Hsu, Kakade & Zhang 2009;
    Bailly, Denis & Ralaivola 2009; Balle et al. 2014). Counts are noisy, so the automaton gives some strings values
    below zero. `smoothing` makes a proper distribution of it; what it returns always sums to one over all strings.

    Parameters
    ----------
    n_states : rank of the automaton, or what the strings allow where that is less, with a warning; a list to choose
        from by held-out likelihood, or "auto"
    basis : rows and columns of the Hankel matrix: "frequent" (the ``size`` most frequent strings of up to ``length``
        symbols), "all" (all of up to ``length`` that occur), or two lists of strings, prefixes and suffixes
    length, size : of the basis
    statistics : what is counted: whole "string"s, "prefix"es or "substring"s
    scaling : power of their frequency by which rows and columns are divided; 0.5 suits HMMs with few symbols
    smoothing : how the result becomes a distribution:
        "ngram" normalises next-symbol weights and mixes them with an n-gram, its share chosen on held-out strings;
        "normalise" does without the n-gram (a thousandth of it remains, so that nothing is impossible);
        "project" groups prefixes by their states into a probabilistic automaton of ``n_states`` states
    refine : None, or "em": Baum–Welch from the projected automaton, with the number of steps chosen on held-out
        strings; "ngram" then mixes what comes out with an n-gram, where that helps
    max_iter, tol : of EM: steps at the most, and the least rise of the log-likelihood a symbol
    validation : share of the strings that is held out for choices; the model is then learned anew from all
    alphabet : the symbols to expect; None is those that occur. Strings with other symbols have probability zero
    random_state : of the split, the groups and large SVDs
    verbose : 1 shows progress of EM on a terminal or in a notebook, 2 writes plain lines

    Attributes
    ----------
    automaton_ : the automaton: probabilistic after "project" or EM, else as the spectral method gives it
    spectral_ : the automaton as the spectral method gives it
    distribution_ : the next-symbol distributions that strings are scored with; None where ``automaton_`` alone is it
    symbols_ : the alphabet, the most frequent symbol first; the columns of `next_symbol_proba`
    n_states_, mixing_, n_iter_ : what was chosen: the rank, the share of the n-gram, the EM steps
    n_corrected_ : how many training strings have a spectral value that is no probability: zero, below, or above one
    held_out_ : the mean held-out log-likelihood a string by number of states
    history_ : log-likelihood by EM step, first of the strings that are not held out, then of all
    singular_values_ : of the Hankel matrix

    >>> words = [list("ab") * k + ["c"] for k in (0, 1, 1, 2, 2, 2, 3)] * 20
    >>> model = SpectralAutomaton(n_states=3, random_state=0).fit(words)
    >>> model.predict_next([["a"], ["a", "b", "c"]])
    ['b', None]
    >>> bool(np.exp(model.score_samples([["a", "b", "c"]]))[0] > 0.2)
    True
    """

    def __init__(
        self,
        n_states: Any = "auto",
        *,
        basis: Any = "frequent",
        length: int = 6,
        size: int = 1000,
        statistics: str = "substring",
        scaling: float = 0.0,
        smoothing: str = "ngram",
        refine: str | None = None,
        max_iter: int = 60,
        tol: float = 1e-6,
        validation: float = 0.2,
        alphabet: Any = None,
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.n_states = n_states
        self.basis = basis
        self.length = length
        self.size = size
        self.statistics = statistics
        self.scaling = scaling
        self.smoothing = smoothing
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.validation = validation
        self.alphabet = alphabet
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpectralAutomaton:
        """Learn from sequences: lists of symbols, words, arrays, or a Ragged; y is ignored."""
        ranks = self._check()
        sequences = read_sequences(X)
        weights = read_counts(sample_weight, len(sequences))
        symbols = read_alphabet(self.alphabet, sequences)
        strings = encode(sequences, symbols)
        order = sorting(strings)
        strings, weights = strings[order], _at(weights, order)
        rng = random_numbers(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        counting, recipe = self._counting(symbols), self._recipe(seed)
        with threadpool_limits(1):
            whole = Moments(strings, symbols, weights, counting, max(ranks), seed)
            choice, trial, interrupted = Choice(ranks[0], mixing=NGRAM_SHARE), None, False
            if len(ranks) > 1 or recipe.projects or self.smoothing == "ngram":
                kept, held = self._split(len(strings), len(ranks) > 1, rng)
                choice = Choice(ranks[0])
                if held.size:
                    part = Moments(strings[kept], symbols, _at(weights, kept), counting, max(ranks), seed)
                    held_out = HeldOut(strings[held], _at(weights, held))
                    choice, trial, interrupted = choose(part, held_out, ranks, recipe)
            if interrupted and trial is not None:
                model = trial.model(choice, interrupted)
            else:
                model = build(whole, choice, trial, recipe)
            self._keep(whole, choice, model)
        return self

    def _keep(self, whole: Moments, choice: Choice, model: Model) -> None:
        self.symbols_ = whole.symbols
        self.spectral_ = whole.automaton(choice.rank)
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
                f"n_states={self.n_states} became {self.n_states_}: the counts of these strings tell no more states "
                f"apart; ask for {self.n_states_}, give more strings, or raise length and size",
                stacklevel=3,
            )

    def _counting(self, symbols: Array) -> Counting:
        size = int(self.size) if isinstance(self.basis, str) and self.basis == "frequent" else None
        given = None if isinstance(self.basis, str) else self._given(symbols)
        return Counting(self.statistics, int(self.length), size, given, float(self.scaling))

    def _given(self, symbols: Array) -> tuple[Ragged, Ragged]:
        """The user's prefixes and suffixes as codes; those with unknown symbols cannot occur and are left out."""
        parts = []
        for name, part in zip(("prefixes", "suffixes"), self.basis, strict=True):
            if not isinstance(part, Ragged):
                part = entries(f"basis {name}", part, "a list of strings")
            if len(part) == 0:
                raise ValueError(f"basis {name} is an empty list; give one string or more, or basis='frequent'")
            codes = encode(part, symbols)
            known = [i for i in range(len(codes)) if (codes[i] >= 0).all()]
            if not any(codes.lengths[i] for i in known):
                raise ValueError(
                    f"no string of basis {name} is of symbols that occur: {shorten(list(part)[:3])} …; the symbols are "
                    f"{symbols[:10].tolist()}"
                )
            parts.append(codes[known])
        return parts[0], parts[1]

    def _recipe(self, seed: int) -> Recipe:
        return Recipe(self.smoothing, self.refine, int(self.max_iter), float(self.tol), seed, self.verbose)

    def _split(self, n: int, must: bool, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Rows to learn from and rows to hold out; none of the latter where there are too few."""
        size = round(float(self.validation) * n)
        if size == 0 or size == n:
            if must:
                raise ValueError(
                    f"a choice of n_states needs held-out strings, and {self.validation:g} of {n} is {size}; give "
                    "more strings, another validation=, or one n_states"
                )
            return np.arange(n), np.empty(0, dtype=np.int64)
        order = rng.permutation(n)
        return np.sort(order[size:]), np.sort(order[:size])

    def _check_facts(self) -> None:
        whole_number("n_states_", self.n_states_)
        whole_number("n_iter_", self.n_iter_, 0)
        whole_number("n_corrected_", self.n_corrected_, 0)
        number("mixing_", self.mixing_, "a share from 0 to 1", lambda share: 0 <= share <= 1)
        if not is_table(self.singular_values_, 1, "f"):
            raise ValueError(f"singular_values_ is {shorten(self.singular_values_)}, no vector of numbers")
        check_steps(self.history_)
        if not isinstance(self.held_out_, dict):
            raise ValueError(f"held_out_ is {shorten(self.held_out_)}, no dict")
        for rank, value in self.held_out_.items():
            whole_number("a rank of held_out_", rank)
            number("a value of held_out_", value, "a number", lambda likelihood: True)

    def _check(self) -> list[int]:
        """The ranks to try; an error for parameters that cannot be."""
        ranks: Any = AUTO if isinstance(self.n_states, str) and self.n_states == "auto" else self.n_states
        ranks = list(ranks) if is_list(ranks) else [ranks]
        if not ranks or not all(is_whole(rank) and rank >= 1 for rank in ranks):
            raise ValueError(
                f"n_states is a whole number from 1, a list of them or 'auto', got {shorten(self.n_states)}"
            )
        for name, allowed in (("statistics", STATISTICS), ("smoothing", SMOOTHINGS), ("refine", ("em", None))):
            one_of(name, getattr(self, name), allowed)
        for name in ("length", "size", "max_iter"):
            whole_number(name, getattr(self, name))
        number("validation", self.validation, "a share between 0 and 1", lambda share: 0 < share < 1)
        number("scaling", self.scaling, f"a number from 0 to {MAX_SCALING:g}", lambda power: 0 <= power <= MAX_SCALING)
        number("tol", self.tol, "a number from 0", is_not_negative)
        if isinstance(self.basis, str):
            if self.basis not in ("frequent", "all"):
                raise ValueError(f"basis must be 'frequent', 'all' or (prefixes, suffixes), got {shorten(self.basis)}")
        elif not isinstance(self.basis, (tuple, list)) or len(self.basis) != 2:
            raise ValueError("a basis of your own is two lists of strings, (prefixes, suffixes)")
        return [int(rank) for rank in ranks]


def _at(weights: Array | None, rows: Array) -> Array | None:
    return None if weights is None else weights[rows]

"""Weighted automata: ``f(x_1 … x_m) = α_1ᵀ A_{x_1} … A_{x_m} α_∞``."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import number, numbers, one_of, random_numbers, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.runtime import storage
from tacit.runtime.archive import storable
from tacit.spectral.hankel import STATISTICS, Hankel, factorise, forward_space, largest_gap, operators
from tacit.spectral.hidden_markov import (
    HiddenMarkovModel,
    build_automaton,
    check_distributions,
    expand_by_arrival,
    factor_by_state,
)
from tacit.spectral.next_symbol import MAX_DRAWN, draw
from tacit.spectral.symbols import check_codes, decode, encode, read_sequences

SUM_TOLERANCE = 1e-9
"""Rounding error that sums of probabilities may have."""


@storable
@dataclass(frozen=True, eq=False)
class WeightedAutomaton:
    """A function on strings, ``f(x) = initialᵀ transitions[x_1] … transitions[x_m] final``.

    Immutable: its arrays are read-only copies, and methods return new automata. `statistics` says what f is: the
    probability of a string, of a prefix, or the expected number of occurrences ("substring", f(λ) = E|x| + 1).
    An automaton need not be a distribution: spectral estimates are below zero for some strings. Of such a value `prob`
    is 0 and `log_prob` −inf; `value` returns it and `count_improper` counts it.
    Sequences are lists of symbols; one with a symbol outside `symbols` has f = 0. Products are rescaled at every step,
    so strings of any length neither underflow nor overflow; O(length · n²).

    Parameters
    ----------
    initial : (n,) α_1
    transitions : (symbols, n, n) A_σ
    final : (n,) α_∞
    symbols : the symbol of every transition matrix; None numbers them from 0
    statistics : "string", "prefix" or "substring"

    >>> coin = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"])
    >>> coin.prob([["a", "b"], []]).round(6), coin.prob(["a"], of="prefix").round(6)
    (array([0.03, 0.2 ]), array([0.3]))
    >>> coin.next_symbol_proba("ab").round(6)
    array([0.3, 0.5, 0.2])
    """

    initial: Any
    transitions: Any
    final: Any
    symbols: Any = None
    statistics: str = "string"

    def __post_init__(self) -> None:
        names = ("initial", "transitions", "final")
        parts = {name: np.array(numbers(name, getattr(self, name)), order="C") for name in names}
        initial, transitions, final = parts.values()
        n = initial.size
        if transitions.ndim != 3 or transitions.shape[0] == 0:
            raise ValueError(f"transitions must have shape (symbols, n, n), one matrix each, got {transitions.shape}")
        if initial.shape != (n,) or final.shape != (n,) or transitions.shape[1:] != (n, n) or n == 0:
            raise ValueError(
                "initial, transitions and final must have shapes (n,), (symbols, n, n) and (n,), got "
                f"{initial.shape}, {transitions.shape} and {final.shape}"
            )
        for name, part in parts.items():
            for position in np.argwhere(~np.isfinite(part)).tolist():
                raise ValueError(f"{name}{position} is {part[tuple(position)]}; give finite numbers")
        symbols = np.arange(len(transitions)) if self.symbols is None else read_sequences([self.symbols]).values.copy()
        if symbols.shape != (len(transitions),) or np.unique(symbols).size != symbols.size:
            raise ValueError(f"symbols must be {len(transitions)}, one per transition, got {shorten(self.symbols)}")
        one_of("statistics", self.statistics, STATISTICS)
        for name, value in {**parts, "symbols": symbols}.items():
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        return int(self.initial.size)

    @property
    def is_probabilistic(self) -> bool:
        """Whether no weight is negative and the weights that leave a state sum to one."""
        leaving = self.transitions.sum(axis=(0, 2)) + self.final
        return bool(
            self.statistics == "string"
            and min(self.initial.min(), self.transitions.min(), self.final.min()) >= 0
            and abs(self.initial.sum() - 1) < SUM_TOLERANCE
            and np.abs(leaving - 1).max() < SUM_TOLERANCE
        )

    def value(self, sequences: Any, of: str | None = None) -> Array:
        """f of every sequence, which may be below zero or above one."""
        sign, log_size = self._sign_and_log(encode(sequences, self.symbols), of)
        with np.errstate(over="ignore"):
            return np.asarray(sign * np.exp(log_size))

    def log_prob(self, sequences: Any, of: str | None = None) -> Array:
        """The natural logarithm of the probability of every sequence, −inf where f is zero or below.

        Parameters
        ----------
        sequences : lists of symbols
        of : "string" (the whole sequence), "prefix" (strings that begin with it) or "substring" (expected
            occurrences); None for the automaton's own `statistics`
        """
        return self.log_prob_of_codes(encode(sequences, self.symbols), of)

    def log_prob_of_codes(self, strings: Ragged, of: str | None = None) -> Array:
        """`log_prob` of strings of the numbers of symbols, −1 for an unseen one."""
        sign, log_size = self._sign_and_log(strings, of)
        return np.where(sign > 0, log_size, -np.inf)

    def prob(self, sequences: Any, of: str | None = None) -> Array:
        """The probability of every sequence, 0 where f is below zero; see `log_prob`."""
        return np.asarray(np.exp(self.log_prob(sequences, of)))

    def count_improper(self, sequences: Any) -> int:
        """The number of sequences whose f is not a probability: not above zero, or above one.

        Expected occurrences ("substring") may be above one.
        """
        return self.count_improper_codes(encode(sequences, self.symbols))

    def count_improper_codes(self, strings: Ragged) -> int:
        """`count_improper` of strings of the numbers of symbols."""
        sign, log_size = self._sign_and_log(strings, None)
        most = np.inf if self.statistics == "substring" else SUM_TOLERANCE
        return int(((sign <= 0) | (log_size > most)).sum())

    def perplexity(self, sequences: Any) -> float:
        """exp(−mean log-probability per symbol), with the end of a sequence as a symbol; infinite at probability 0."""
        strings = encode(sequences, self.symbols)
        total = self.to_string().log_prob_of_codes(strings).sum()
        return float(np.exp(-total / (strings.values.shape[0] + len(strings))))

    def next_symbol_proba(self, prefix: Any) -> Array:
        """The distribution of the symbol after a prefix: one entry per symbol, in the order of `symbols`, the end last.

        Entries below zero are set to zero and the rest is scaled to sum to one. A prefix of probability zero is an
        error.
        """
        entries = np.maximum(self._ahead() @ self.to_string().forward(prefix)[0][-1], 0.0)
        if entries.sum() == 0:
            raise ValueError(f"prefix {shorten(prefix)} has probability zero, so its next symbol is not defined")
        return np.asarray(entries / entries.sum())

    def forward(self, sequence: Any) -> tuple[Array, Array]:
        """(length + 1, n) vectors and their logarithms: ``vectors[t]·exp(logs[t]) = α_1ᵀ A_{x_1} … A_{x_t}``."""
        codes = encode([sequence], self.symbols).values
        vectors, logs = np.empty((codes.size + 1, self.n_states)), np.empty(codes.size + 1)
        follow_string(codes, self.initial, self.transitions, vectors, logs)
        return vectors, logs

    def backward(self, sequence: Any) -> tuple[Array, Array]:
        """`forward` from the end: ``vectors[t]·exp(logs[t]) = A_{x_{t+1}} … A_{x_m} α_∞``."""
        codes = np.ascontiguousarray(encode([sequence], self.symbols).values[::-1])
        vectors, logs = np.empty((codes.size + 1, self.n_states)), np.empty(codes.size + 1)
        follow_string(codes, self.final, np.ascontiguousarray(self.transitions.transpose(0, 2, 1)), vectors, logs)
        return vectors[::-1], logs[::-1]

    def sample(self, n_samples: int = 1, *, random_state: Any = None, max_length: int = 100_000) -> list[list[Any]]:
        """Draw strings, symbol by symbol from `next_symbol_proba`.

        >>> coin = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"])
        >>> coin.sample(3, random_state=0)
        [['b', 'b', 'b', 'b', 'b', 'b', 'b'], ['b', 'b'], ['b', 'b']]
        """
        n_samples = whole_number("n_samples", n_samples, 0, MAX_DRAWN)
        ahead = self._ahead()

        def chances(state: tuple[Array]) -> Array:
            return np.asarray(np.maximum(state[0] @ ahead.T, 0.0))

        def follow(state: tuple[Array], choice: Array) -> tuple[Array]:
            states = state[0]
            for s in np.unique(choice):
                states[choice == s] = states[choice == s] @ self.transitions[s]
            return (states / np.maximum(np.abs(states).max(axis=1, keepdims=True), 1e-300),)

        start = (np.tile(self.to_string().initial, (n_samples, 1)),)
        strings = draw(start, chances, follow, n_samples, random_numbers(random_state), max_length)
        return decode(strings, self.symbols)

    def to_string(self) -> WeightedAutomaton:
        """The automaton of whole strings; exact."""
        return self._convert("string")

    def to_prefix(self) -> WeightedAutomaton:
        """The automaton of prefixes: the probability that a string begins with one; exact.

        With A = Σ_σ A_σ, a string automaton has ``α_∞ ← (I − A)⁻¹ α_∞``. The spectral radius of A must be below one.
        """
        return self._convert("prefix")

    def to_substring(self) -> WeightedAutomaton:
        """The automaton of expected numbers of occurrences, f(λ) = E|x| + 1; exact, see `to_prefix`."""
        return self._convert("substring")

    def minimise(self, tol: float = 1e-10) -> WeightedAutomaton:
        """The same function with the fewest states: the space that forward and backward vectors span.

        Parameters
        ----------
        tol : singular values below this share of the largest count as zero

        >>> twice = WeightedAutomaton([0.5, 0.5], [[[0.3, 0.0], [0.0, 0.3]]], [0.7, 0.7])
        >>> small = twice.minimise()
        >>> small.n_states, small.equivalent(twice)
        (1, True)
        """
        tol = number("tol", tol, "a number from 0 to 1", lambda share: 0 <= share <= 1)
        reached = self._project(forward_space(self.initial, self.transitions, tol))
        return reached._project(forward_space(reached.final, reached.transitions.transpose(0, 2, 1), tol))

    def equivalent(self, other: WeightedAutomaton, tol: float = 1e-8) -> bool:
        """Whether two automata are the same function, in any basis of their states.

        They are compared on strings whose vectors span both; equality there implies equality on all strings. ``tol`` is
        relative to the largest value there.
        """
        if not isinstance(other, WeightedAutomaton):
            raise TypeError(f"other must be a WeightedAutomaton, got {shorten(other)}")
        if set(self.symbols.tolist()) != set(other.symbols.tolist()):
            return False
        order = encode([self.symbols], other.symbols).values
        mine, theirs = self.to_string(), other.to_string()
        gap, size = largest_gap(
            (mine.initial, mine.transitions, mine.final), (theirs.initial, theirs.transitions[order], theirs.final)
        )
        return bool(gap <= tol * size)

    def hankel(self, prefixes: Any, suffixes: Any) -> Hankel:
        """The exact Hankel matrices of the automaton's own values; the empty string comes first in both lists.

        >>> coin = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"])
        >>> coin.hankel(["", "a"], ["", "b"]).block.toarray().round(3)
        array([[0.2 , 0.1 ],
               [0.06, 0.03]])
        """
        rows, columns = (encode(strings, self.symbols) for strings in (prefixes, suffixes))
        for name, part in (("prefixes", rows), ("suffixes", columns)):
            if part.values.min(initial=0) < 0:
                raise ValueError(f"{name} must have symbols of {shorten(self.symbols.tolist())}; leave out others")
            if part.lengths[0] or (part.lengths[1:] == 0).any():
                raise ValueError(
                    f"{name} must begin with the empty string and contain it once, got {decode(part, self.symbols)[:3]}"
                )
        left = np.array([_product(self.initial, self.transitions, row) for row in rows])
        back = self.transitions.transpose(0, 2, 1)
        right = np.array([_product(self.final, back, column[::-1]) for column in columns])
        shifted = np.concatenate(left @ self.transitions @ right.T)
        return Hankel(rows, columns, sparse.csr_array(left @ right.T), sparse.csr_array(shifted), self.statistics)

    @classmethod
    def from_hankel(cls, hankel: Hankel, n_states: int, symbols: Any = None) -> WeightedAutomaton:
        """The spectral method on a Hankel block: an automaton of ``n_states`` states, or as many as its rank allows."""
        n_states = whole_number("n_states", n_states)
        factors = factorise(hankel, n_states)
        return cls(*operators(hankel, factors, n_states), symbols, hankel.statistics)

    def to_hmm(self) -> HiddenMarkovModel:
        """The same distribution as a hidden Markov model; the automaton must be probabilistic.

        States that emit the same wherever they are reached from stay one state; otherwise an HMM state is a symbol and
        the state that it led to.
        """
        if not self.is_probabilistic:
            raise ValueError(
                "to_hmm needs a probabilistic automaton: no negative weight, weights that leave a state sum to one; "
                "use SpectralAutomaton(smoothing='project')"
            )
        parts = self.initial, self.transitions, self.final
        return factor_by_state(*parts) or expand_by_arrival(*parts)

    @classmethod
    def from_hmm(
        cls, startprob: Any, transmat: Any, emissionprob: Any, stopprob: Any, *, empty: float = 0.0, symbols: Any = None
    ) -> WeightedAutomaton:
        """The automaton of an HMM whose strings end; the fields are those of `HiddenMarkovModel`.

        >>> model = WeightedAutomaton.from_hmm([1.0], [[1.0]], [[0.3, 0.7]], [0.5], symbols=["a", "b"])
        >>> model.prob(["b", "ab"])
        array([0.35 , 0.0525])
        """
        given = {"startprob": startprob, "transmat": transmat, "emissionprob": emissionprob, "stopprob": stopprob}
        start, move, emit, stop = (numbers(name, part) for name, part in given.items())
        empty = number("empty", empty, "a probability", lambda chance: 0 <= chance <= 1)
        n = start.size
        if start.shape != (n,) or move.shape != (n, n) or emit.ndim != 2 or len(emit) != n or stop.shape != (n,):
            raise ValueError(
                "startprob, transmat, emissionprob and stopprob must have shapes (n,), (n, n), (n, symbols) and (n,), "
                f"got {start.shape}, {move.shape}, {emit.shape} and {stop.shape}"
            )
        check_distributions(startprob=start[None], transmat=move, emissionprob=emit)
        if not ((stop >= 0) & (stop <= 1)).all():
            raise ValueError(f"stopprob must be probabilities from 0 to 1, got {shorten(stop)}")
        moves = np.vstack([(1 - empty) * start, (1 - stop)[:, None] * move])
        leaving = np.column_stack([moves, np.append(empty, stop)])
        return cls(*build_automaton(leaving, emit), symbols)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the automaton to a file that `tacit.load` reads: arrays and JSON, no pickle."""
        storage.save(path, self, {})

    def check(self) -> None:
        """Refuse nothing: the constructor has checked the parts, and they are read-only."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name, for the storage of models."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return f"WeightedAutomaton({self.n_states} states, {len(self.symbols)} symbols, of {self.statistics})"

    def _sign_and_log(self, strings: Ragged, of: str | None) -> tuple[Array, Array]:
        """The sign and the logarithm of the size of f, for codes."""
        me = self if of is None else self._convert(one_of("of", of, STATISTICS))
        check_codes(strings, len(self.symbols))
        sign, log_size = np.empty(len(strings)), np.empty(len(strings))
        evaluate_strings(strings.values, strings.offsets, me.initial, me.transitions, me.final, sign, log_size)
        return sign, log_size

    def _project(self, basis: Array) -> WeightedAutomaton:
        """The automaton whose states are those of an orthonormal basis, (n, r)."""
        transitions = basis.T @ self.transitions @ basis
        return replace(self, initial=self.initial @ basis, transitions=transitions, final=basis.T @ self.final)

    def _ahead(self) -> Array:
        """(symbols + 1, n): its product with a state is the weights of the next symbols and of the end."""
        ending, going_on = self.to_string().final, self.to_prefix().final
        return np.vstack([self.transitions @ going_on, ending])

    def _convert(self, of: str) -> WeightedAutomaton:
        if of == self.statistics:
            return self
        rest = np.eye(self.n_states) - self.transitions.sum(axis=0)
        initial, final = self.initial, self.final
        if self.statistics == "string" or of == "substring":
            radius = float(np.abs(np.linalg.eigvals(self.transitions.sum(axis=0))).max())
            if radius >= 1:
                raise ValueError(
                    f"the spectral radius of the summed transitions must be below 1 for a {of} automaton, got "
                    f"{radius:.6g}: strings do not end; lower n_states, or raise the stop probabilities of an HMM"
                )
        if self.statistics == "substring":
            initial = initial @ rest
        if of == "substring":
            initial = np.linalg.solve(rest.T, initial)
        if self.statistics != "string" and of == "string":
            final = rest @ final
        if self.statistics == "string" and of != "string":
            final = np.linalg.solve(rest, final)
        return replace(self, initial=initial, final=final, statistics=of)


def _product(vector: Array, transitions: Array, codes: Array) -> Array:
    for code in codes:
        vector = vector @ transitions[code]
    return vector


@kernel
def evaluate_strings(
    codes: Array, offsets: Array, initial: Array, transitions: Array, final: Array, sign: Array, log_size: Array
) -> None:
    """f(x) of every string, as its sign (−1, 0, 1) and the logarithm of its size; unseen symbols make it zero."""
    n = initial.size
    row, following = np.empty(n), np.empty(n)
    for i in range(offsets.size - 1):
        total = 0.0
        row[:] = initial
        for t in range(offsets[i], offsets[i + 1]):
            s = codes[t]
            largest = 0.0
            following[:] = 0.0
            if s >= 0:
                for k in range(n):
                    weight = row[k]
                    if weight != 0.0:
                        for j in range(n):
                            following[j] += weight * transitions[s, k, j]
                for j in range(n):
                    largest = max(largest, abs(following[j]))
            if largest == 0.0:
                row[:] = 0.0
                break
            total += np.log(largest)
            inverse = 1.0 / largest
            for j in range(n):
                row[j] = following[j] * inverse
        value = 0.0
        for j in range(n):
            value += row[j] * final[j]
        sign[i] = np.sign(value)
        log_size[i] = total + np.log(abs(value)) if value != 0.0 else -np.inf


@kernel
def follow_string(codes: Array, initial: Array, transitions: Array, out: Array, log_scale: Array) -> None:
    """``out[t]·exp(log_scale[t])`` is initialᵀ A_{x_1} … A_{x_t}; rows of out are zero or have one as largest entry."""
    n = initial.size
    for t in range(codes.size + 1):
        out[t] = 0.0
        if t == 0:
            out[0] = initial
        elif codes[t - 1] >= 0:
            for k in range(n):
                weight = out[t - 1, k]
                for j in range(n):
                    out[t, j] += weight * transitions[codes[t - 1], k, j]
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(out[t, j]))
        log_scale[t] = log_scale[t - 1] if t > 0 else 0.0
        if largest > 0.0:
            log_scale[t] += np.log(largest)
            inverse = 1.0 / largest
            for j in range(n):
                out[t, j] *= inverse

"""Distributions over strings from automata that may have negative values, by the conditional of the next symbol.

After a prefix, an automaton gives each symbol and the end a weight. Weights below zero are set to zero and the rest is
scaled to sum to one, then mixed with an n-gram, so that every string has a probability above zero. The product of these
conditionals is a distribution over strings. Where the weight of a prefix itself is not positive, its state is replaced
by the average state after its last symbol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.kernels import kernel
from tacit.data.parameters import number, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.runtime.archive import storable
from tacit.spectral.symbols import check_codes

TINY = 1e-6
"""A prefix whose conditional weight is below this counts as impossible under the automaton."""

MAX_TABLE_ENTRIES = 2_000_000
"""Entries of a table, at most; so the order is 3 for up to 124 symbols, 2 for up to 1,413, else 1."""

MAX_DRAWN = 10_000_000
"""Strings per call, at most: all of them are in memory at once."""


@storable
class NextSymbol(NamedTuple):
    """A distribution over strings by its next symbols.

    Attributes
    ----------
    initial : (n,) state before the first symbol, scaled so that initial · going_on = 1
    transitions : (symbols, n, n)
    ahead : (symbols + 1, n) the product with a state is the weights of the next symbols and of the end
    going_on : (n,) the product with a state is the weight of the prefix
    fresh : (symbols + 1, n) the average state after each symbol, and after an unknown one
    table : (contexts, symbols + 1) of the n-gram
    mixing : share of the n-gram
    """

    initial: Array
    transitions: Array
    ahead: Array
    going_on: Array
    fresh: Array
    table: Array
    mixing: float

    def check(self) -> None:
        """Refuse parts that are not those of a distribution."""
        for name, part in zip(self._fields[:-1], self[:-1], strict=True):
            if not (isinstance(part, np.ndarray) and is_table(part, part.ndim, "f") and part.dtype == np.float64):
                raise ValueError(f"{name} must be an array of finite float64 numbers, got {shorten(part)}")
        self._check_shapes()
        number("mixing", self.mixing, "a share from 0 to 1", lambda share: 0 <= share <= 1)
        if self.table.min() < 0 or np.abs(self.table.sum(axis=1) - 1).max() > 1e-6:
            raise ValueError("rows of table must be probabilities that sum to one")

    def _check_shapes(self) -> None:
        """Refuse shapes that do not fit each other: kernels rely on them."""
        n, k = np.size(self.initial), len(self.transitions)
        needed = ((n,), (k, n, n), (k + 1, n), (n,), (k + 1, n), (len(self.table), k + 1))
        found = tuple(np.shape(part) for part in self[:-1])
        if found != needed or not n or not k or not len(self.table):
            raise ValueError(f"parts of a distribution over strings must have shapes {needed}, got {found}")

    def log_prob(self, strings: Ragged) -> Array:
        """The logarithm of the probability of codes; −inf for those with an unseen symbol."""
        return np.asarray(self.log_probs(strings, np.array([self.mixing]))[0])

    def log_probs(self, strings: Ragged, mixings: Array) -> Array:
        """The same for several shares of the n-gram, (shares, strings)."""
        out = np.zeros((mixings.size, len(strings)))
        self._follow(strings, mixings, out)
        return out

    def next_proba(self, strings: Ragged) -> Array:
        """(strings, symbols + 1) probabilities of the next symbol, the end last; unseen symbols are ignored."""
        states, contexts = self._follow(strings, np.empty(0), np.empty((0, len(strings))))
        return self._chances(states, contexts)

    def sample(self, n_samples: int, rng: np.random.RandomState, max_length: int) -> Ragged:
        """Strings drawn symbol by symbol."""

        def follow(state: tuple[Array, Array], choice: Array) -> tuple[Array, Array]:
            strings = Ragged(choice.astype(np.int32), np.arange(choice.size + 1))
            return self._walk(strings, *state, np.empty(0), np.empty((0, choice.size)))

        start = self._start(n_samples)
        return draw(start, lambda state: self._chances(*state), follow, n_samples, rng, max_length)

    def _start(self, n: int) -> tuple[Array, Array]:
        return np.tile(self.initial, (n, 1)), np.full(n, len(self.table) - 1, dtype=np.int64)

    def _follow(self, strings: Ragged, mixings: Array, out: Array) -> tuple[Array, Array]:
        return self._walk(strings, *self._start(len(strings)), mixings, out, ends=True)

    def _walk(
        self, strings: Ragged, states: Array, contexts: Array, mixings: Array, out: Array, ends: bool = False
    ) -> tuple[Array, Array]:
        """States and contexts after the strings; with ``ends``, adds the log-probability of each to ``out``."""
        self._check_shapes()
        check_codes(strings, len(self.transitions))
        states, contexts = states.copy(), contexts.copy()
        model = (self.transitions, self.ahead, self.going_on, self.fresh, self.table)
        _follow_strings(strings.values, strings.offsets, *model, mixings, ends, states, contexts, out)
        return states, contexts

    def _chances(self, states: Array, contexts: Array) -> Array:
        weights = np.maximum(states @ self.ahead.T, 0.0)
        total = weights.sum(axis=1, keepdims=True)
        known = total > 0
        share = np.where(known, self.mixing, 1.0)
        return np.asarray((1 - share) * weights / np.where(known, total, 1.0) + share * self.table[contexts])


def next_symbol(
    initial: Array, transitions: Array, final: Array, going_on: Array, everywhere: Array, table: Array, mixing: float
) -> NextSymbol:
    """The distribution of an automaton over strings.

    Parameters
    ----------
    initial, transitions, final : the string automaton
    going_on : final vector of the prefix automaton
    everywhere : initial vector of the substring automaton, the sum of the states after all prefixes
    table, mixing : an n-gram, and its share
    """
    ahead = np.vstack([transitions @ going_on, final])
    states = np.vstack([everywhere @ transitions, everywhere[None]])
    weights = states @ going_on
    start = initial @ going_on
    usable = weights > TINY * max(abs(float(everywhere @ going_on)), 1e-300)
    fresh = np.where(usable[:, None], states / np.where(usable, weights, 1.0)[:, None], 0.0)
    initial = initial / start if start > TINY else fresh[-1]
    return NextSymbol(initial, transitions, ahead, going_on, fresh, table, mixing)


def of_probabilities(initial: Array, transitions: Array, final: Array, table: Array, mixing: float) -> NextSymbol:
    """`next_symbol` of a probabilistic automaton: every prefix has weight one, the average state is uniform."""
    ones = np.ones(initial.size)
    return next_symbol(initial, transitions, final, ones, ones, table, mixing)


def draw(
    state: Any,
    chances: Callable[[Any], Array],
    follow: Callable[[Any, Array], Any],
    n_samples: int,
    rng: np.random.RandomState,
    max_length: int,
) -> Ragged:
    """Draw strings, one symbol of all of them at a time.

    ``chances(state)`` has a row of weights per string that goes on, the end last; ``follow(state, symbols)`` is the
    next state. A state is a tuple of arrays with one row per string.
    """
    max_length = whole_number("max_length", max_length, 0)
    alive = np.arange(n_samples)
    drawn: list[tuple[Array, Array]] = []
    while alive.size:
        if len(drawn) > max_length:
            raise ValueError(
                f"{alive.size} of {n_samples} strings are longer than max_length={max_length}; raise it, or check the "
                "final weights of the model"
            )
        sums = chances(state).cumsum(axis=1)
        if not sums[:, -1].all():
            raise ValueError("the automaton is not a distribution: all next symbols of a prefix have weight zero")
        choice = (sums <= rng.random_sample((alive.size, 1)) * sums[:, -1:]).sum(axis=1)
        stays = choice < sums.shape[1] - 1
        alive, choice = alive[stays], choice[stays]
        drawn.append((alive, choice))
        state = follow(tuple(part[stays] for part in state), choice)
    owners, codes = (np.concatenate([part[k] for part in drawn] or [np.empty(0, dtype=np.int64)]) for k in (0, 1))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n_samples))])
    return Ragged(codes[np.argsort(owners, kind="stable")], offsets)


@kernel
def _follow_strings(
    codes: Array, offsets: Array, transitions: Array, ahead: Array, going_on: Array, fresh: Array, table: Array,
    mixings: Array, ends: bool, states: Array, contexts: Array, out: Array,
) -> None:  # fmt: skip
    """Walk every string from its state and context on, and write those at its end there."""
    n, k = states.shape[1], transitions.shape[0]
    state, moved = np.empty(n), np.empty(n)
    for i in range(offsets.size - 1):
        context = contexts[i]
        state[:] = states[i]
        for t in range(offsets[i], offsets[i + 1] + (1 if ends else 0)):
            s = codes[t] if t < offsets[i + 1] else k
            if mixings.size:
                total, mine = 0.0, 0.0
                for a in range(k + 1):
                    weight = 0.0
                    for j in range(n):
                        weight += state[j] * ahead[a, j]
                    if weight > 0.0:
                        total += weight
                        if a == s:
                            mine = weight
                for m in range(mixings.size):
                    if s < 0:
                        out[m, i] = -np.inf
                    elif total > 0.0:
                        chance = (1 - mixings[m]) * mine / total + mixings[m] * table[context, s]
                        out[m, i] += np.log(chance) if chance > 0.0 else -np.inf
                    else:
                        out[m, i] += np.log(table[context, s])
            if t == offsets[i + 1]:
                break
            weight = 0.0
            if s >= 0:
                moved[:] = 0.0
                for a in range(n):
                    share = state[a]
                    for j in range(n):
                        moved[j] += share * transitions[s, a, j]
                for j in range(n):
                    weight += moved[j] * going_on[j]
            if weight > 1e-6:
                for j in range(n):
                    state[j] = moved[j] / weight
            else:
                for j in range(n):
                    state[j] = fresh[s if s >= 0 else k, j]
            context = (context * (k + 1) + (s if s >= 0 else k)) % table.shape[0]
        contexts[i] = context
        states[i] = state


def ngram_order(n_symbols: int) -> int:
    """The order of the n-gram for an alphabet of this size.

    >>> [ngram_order(k) for k in (20, 125, 5000)]
    [3, 2, 1]
    """
    return max([order for order in (2, 3) if (n_symbols + 1) ** order <= MAX_TABLE_ENTRIES], default=1)


def ngram(strings: Ragged, n_symbols: int, order: int, weights: Array | None = None) -> Array:
    """(contexts, symbols + 1) probabilities of the next symbol, the end last; rows sum to one, no entry is zero.

    A context is the last order − 1 symbols as the digits of a number to the base symbols + 1; the digit ``n_symbols``
    is "before the string". Each order is interpolated with the one below (Witten & Bell 1991). The lowest adds half an
    occurrence to every symbol.

    >>> ngram(Ragged([0, 1, 0], [0, 2, 3]), 2, 2).round(2)
    array([[0.19, 0.37, 0.44],
           [0.19, 0.12, 0.69],
           [0.79, 0.08, 0.13]])
    """
    base = n_symbols + 1
    symbols, contexts = _with_ends(strings, n_symbols, order)
    weight = np.repeat(np.ones(len(strings)) if weights is None else weights, strings.lengths + 1)
    table = np.bincount(symbols, weight, minlength=base) + 0.5
    table = (table / table.sum())[None]
    for length in range(1, order):
        keys = contexts % base**length * base + symbols
        counts = np.bincount(keys, weight, minlength=base ** (length + 1)).reshape(-1, base)
        kinds = np.maximum((counts > 0).sum(axis=1, keepdims=True), 1)
        table = (counts + kinds * np.tile(table, (base, 1))) / (counts.sum(axis=1, keepdims=True) + kinds)
    return np.asarray(table)


def _with_ends(strings: Ragged, n_symbols: int, order: int) -> tuple[Array, Array]:
    """All symbols with the end of every string as the symbol ``n_symbols``, and the context of each."""
    base, lengths = n_symbols + 1, strings.lengths
    ends = strings.offsets[1:] + np.arange(len(strings))
    symbols = np.full(strings.values.size + len(strings), n_symbols, dtype=np.int64)
    inside = np.ones(symbols.size, dtype=bool)
    inside[ends] = False
    symbols[inside] = strings.values
    position = np.arange(symbols.size) - np.repeat(ends - lengths, lengths + 1)
    contexts = np.zeros(symbols.size, dtype=np.int64)
    for back in range(order - 1, 0, -1):
        digit = np.full(symbols.size, n_symbols, dtype=np.int64)
        known = np.flatnonzero(position >= back)
        digit[known] = symbols[known - back]
        contexts = contexts * base + digit
    return symbols, contexts

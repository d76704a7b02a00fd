"""Distributions over strings by the conditional of the next symbol: automata, and a Kneser–Ney n-gram, mixed.

After a prefix, an automaton gives each symbol and the end a weight. Weights below zero are set to zero and the rest is
scaled to sum to one, so an automaton may have negative values. Where the weight of a prefix itself is not positive, its
state is replaced by the average state after its last symbol. The conditionals of several automata and of an n-gram are
averaged with weights that depend on how often the context of the n-gram occurred. Their product is a distribution over
strings, and every string of known symbols has a probability above zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.kernels import kernel
from tacit.data.parameters import shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.runtime.archive import storable
from tacit.spectral.ngram import MAX_LEVEL, NGram
from tacit.spectral.symbols import check_codes

TINY = 1e-6
"""A prefix whose conditional weight is below this counts as impossible under the automaton."""

MAX_DRAWN = 10_000_000
"""Strings per call, at most: all of them are in memory at once."""

BLOCK = 1_000_000
"""Symbols that are scored at once: this bounds memory."""

WEIGHT_STEPS, LEVEL_PRIOR = 40, 10.0
"""EM steps for the weights of a mixture, and the symbols with the overall weights that each level is given before."""


@storable
class Conditional(NamedTuple):
    """The next-symbol distributions of one automaton.

    Attributes
    ----------
    initial : (n,) state before the first symbol, scaled so that initial · going_on = 1
    transitions : (symbols, n, n)
    ahead : (symbols + 1, n) the product with a state is the weights of the next symbols and of the end
    going_on : (n,) the product with a state is the weight of the prefix
    fresh : (symbols + 1, n) the average state after each symbol, and after an unknown one
    """

    initial: Array
    transitions: Array
    ahead: Array
    going_on: Array
    fresh: Array

    def check(self) -> None:
        """Refuse parts that are not those of an automaton."""
        for name, part in zip(self._fields, self, strict=True):
            if not (isinstance(part, np.ndarray) and is_table(part, part.ndim, "f") and part.dtype == np.float64):
                raise ValueError(f"{name} must be an array of finite float64 numbers, got {shorten(part)}")
        self.check_shapes()

    def check_shapes(self) -> None:
        """Refuse shapes that do not fit each other: kernels rely on them."""
        n, k = np.size(self.initial), len(self.transitions)
        needed = ((n,), (k, n, n), (k + 1, n), (n,), (k + 1, n))
        found = tuple(np.shape(part) for part in self)
        if found != needed or not n or not k:
            raise ValueError(f"parts of a distribution over strings must have shapes {needed}, got {found}")

    def follow(self, strings: Ragged, states: Array, ends: bool = True) -> tuple[Array, Array]:
        """The probability of every symbol of the strings, with their ends; and the states after them.

        It is −1 where the automaton gives no next symbol a weight above zero, and 0 for an unseen symbol.
        """
        self.check_shapes()
        check_codes(strings, len(self.transitions))
        states = states.copy()
        chances = np.empty(strings.values.size + (len(strings) if ends else 0))
        proper = min(self.initial.min(), self.transitions.min(), self.ahead.min(), self.fresh.min()) >= 0
        total = self.ahead.sum(axis=0) if proper else np.empty(0)
        model = self.transitions, self.ahead, total, self.going_on, self.fresh
        _follow(strings.values, strings.offsets, *model, ends, states, chances)
        return chances, states

    def next_proba(self, states: Array) -> Array:
        """(states, symbols + 1) probabilities of the next symbol, the end last; rows of −1 where there are none."""
        weights = np.maximum(states @ self.ahead.T, 0.0)
        total = weights.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, weights / np.where(total > 0, total, 1.0), -1.0))


@storable
class NextSymbol(NamedTuple):
    """A distribution over strings: next-symbol distributions of automata and of an n-gram, averaged.

    Attributes
    ----------
    automata : of every automaton, its next-symbol distributions
    ngram : of contexts that occurred
    weights : (levels, automata + 1) of the automata and, last, of the n-gram, by the level of the n-gram's context
    """

    automata: tuple[Conditional, ...]
    ngram: NGram
    weights: Array

    def check(self) -> None:
        """Refuse parts that are not those of a distribution."""
        automata, ngram, weights = self
        if not isinstance(automata, tuple) or not all(isinstance(part, Conditional) for part in automata):
            raise ValueError(f"automata must be a tuple of next-symbol distributions, got {shorten(automata)}")
        if not isinstance(ngram, NGram):
            raise ValueError(f"ngram must be an n-gram model, got {shorten(ngram)}")
        ngram.check()
        for part in automata:
            part.check()
        if any(len(part.transitions) != self.n_symbols for part in automata):
            raise ValueError(f"automata must be over strings of {self.n_symbols} symbols, as the n-gram is")
        if not (isinstance(weights, np.ndarray) and is_table(weights, 2, "f") and weights.dtype == np.float64):
            raise ValueError(f"weights must be a table of finite float64 numbers, got {shorten(weights)}")
        if weights.shape != (MAX_LEVEL + 1, len(automata) + 1):
            raise ValueError(f"weights must have shape {(MAX_LEVEL + 1, len(automata) + 1)}, got {weights.shape}")
        if weights.min() < 0 or np.abs(weights.sum(axis=1) - 1).max() > 1e-6:
            raise ValueError("rows of weights must be shares that sum to one")

    @property
    def n_symbols(self) -> int:
        return int(self.ngram.n_symbols)

    def log_prob(self, strings: Ragged) -> Array:
        """The logarithm of the probability of codes; −inf for those with an unseen symbol."""
        out = np.empty(len(strings))
        for rows in _cut(strings):
            block = strings[rows]
            chances, levels = self.follow_parts(block)
            with np.errstate(divide="ignore"):
                logs = np.log(average(chances, self.weights[levels].T))
            out[rows] = np.add.reduceat(logs, block.offsets[:-1] + np.arange(len(block)))
        return out

    def follow_parts(self, strings: Ragged) -> tuple[Array, Array]:
        """(automata + 1, symbols and ends) probabilities under each part, the n-gram last; and levels of contexts."""
        contexts, *states = self._start(len(strings))
        own, levels, _ = self.ngram.follow(strings, contexts)
        found = [part.follow(strings, state)[0] for part, state in zip(self.automata, states, strict=True)]
        return np.array([*found, own]), levels

    def next_proba(self, strings: Ragged) -> Array:
        """(strings, symbols + 1) probabilities of the next symbol, the end last; unseen symbols are ignored."""
        return self._chances(self._walk(strings, self._start(len(strings))))

    def sample(self, n_samples: int, rng: np.random.RandomState, max_length: int) -> Ragged:
        """Strings drawn symbol by symbol."""

        def follow(state: tuple[Array, ...], choice: Array) -> tuple[Array, ...]:
            return self._walk(Ragged(choice.astype(np.int32), np.arange(choice.size + 1)), state)

        return draw(self._start(n_samples), self._chances, follow, n_samples, rng, max_length)

    def _start(self, n: int) -> tuple[Array, ...]:
        """The context of the n-gram and the states of the automata before n strings."""
        contexts = np.full(n, self.ngram.start, dtype=np.int64)
        return contexts, *(np.tile(part.initial, (n, 1)) for part in self.automata)

    def _walk(self, strings: Ragged, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """Context and states after the strings."""
        contexts, *states = state
        after = [part.follow(strings, own, ends=False)[1] for part, own in zip(self.automata, states, strict=True)]
        return self.ngram.follow(strings, contexts, ends=False)[2], *after

    def _chances(self, state: tuple[Array, ...]) -> Array:
        contexts, *states = state
        found = [part.next_proba(own) for part, own in zip(self.automata, states, strict=True)]
        weights = self.weights[self.ngram.level[contexts]].T
        return average(np.array([*found, self.ngram.next_proba(contexts)]), weights[:, :, None])


def average(chances: Array, weights: Array) -> Array:
    """The weighted mean of the parts that are defined; of the last part if their weights are zero."""
    weights = np.where(chances >= 0, weights, 0.0)
    total = weights.sum(axis=0)
    return np.asarray(np.where(total > 0, (weights * chances).sum(axis=0) / np.where(total > 0, total, 1), chances[-1]))


def fit_weights(chances: Array, levels: Array | None, times: Array) -> Array:
    """The weights of `NextSymbol` with the highest likelihood of held-out symbols, by EM.

    First the same weights everywhere; then, given levels, the weights of each level, with the first ones as prior.

    Parameters
    ----------
    chances : (parts, symbols) the probability of every symbol under each part
    levels : (symbols,) of the contexts, or None
    times : (symbols,) how often each counts

    >>> fit_weights(np.array([[0.5, 0.5], [0.1, 0.1]]), None, np.ones(2))[0].round(3)
    array([1., 0.])
    """
    chances = np.maximum(chances, 0.0)
    overall = np.full(len(chances), 1 / len(chances))
    for _ in range(WEIGHT_STEPS):
        joint = overall[:, None] * chances
        shares = (joint * (times / np.maximum(joint.sum(axis=0), 1e-300))).sum(axis=1)
        if not shares.any():
            break
        overall = shares / shares.sum()
    weights = np.tile(overall, (MAX_LEVEL + 1, 1))
    if levels is None:
        return weights
    for _ in range(WEIGHT_STEPS):
        joint = weights[levels].T * chances
        joint *= times / np.maximum(joint.sum(axis=0), 1e-300)
        weights = np.column_stack([np.bincount(levels, row, minlength=MAX_LEVEL + 1) for row in joint])
        weights = weights + LEVEL_PRIOR * overall
        weights /= weights.sum(axis=1, keepdims=True)
    return weights


def constant_weights(n_automata: int, share: float) -> Array:
    """The same weights at every level: this share for the n-gram, the rest in equal parts for the automata."""
    return np.tile([(1 - share) / n_automata] * n_automata + [share], (MAX_LEVEL + 1, 1))


def conditional(initial: Array, transitions: Array, final: Array, going_on: Array, everywhere: Array) -> Conditional:
    """The next-symbol distributions of an automaton.

    Parameters
    ----------
    initial, transitions, final : the string automaton
    going_on : final vector of the prefix automaton
    everywhere : initial vector of the substring automaton, the sum of the states after all prefixes
    """
    ahead = np.vstack([transitions @ going_on, final])
    states = np.vstack([everywhere @ transitions, everywhere[None]])
    weights = states @ going_on
    start = initial @ going_on
    usable = weights > TINY * max(abs(float(everywhere @ going_on)), 1e-300)
    fresh = np.where(usable[:, None], states / np.where(usable, weights, 1.0)[:, None], 0.0)
    initial = initial / start if start > TINY else fresh[-1]
    return Conditional(initial, transitions, ahead, going_on, fresh)


def of_probabilities(initial: Array, transitions: Array, final: Array) -> Conditional:
    """`conditional` of a probabilistic automaton: every prefix has weight one, the average state is uniform."""
    ones = np.ones(initial.size)
    return conditional(initial, transitions, final, ones, ones)


def _cut(strings: Ragged) -> Iterator[slice]:
    """Slices of about `BLOCK` symbols."""
    begin = 0
    while begin < len(strings):
        end = int(np.searchsorted(strings.offsets, strings.offsets[begin] + BLOCK, side="right")) - 1
        end = min(max(end, begin + 1), begin + BLOCK, len(strings))
        yield slice(begin, end)
        begin = end


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
def _follow(
    codes: Array, offsets: Array, transitions: Array, ahead: Array, total_ahead: Array, going_on: Array, fresh: Array,
    ends: bool, states: Array, chances: Array,
) -> None:  # fmt: skip
    """Walk every string from its state on; ``total_ahead`` is the sum of ``ahead`` if no weight can be negative."""
    n, k = states.shape[1], transitions.shape[0]
    state, moved = np.empty(n), np.empty(n)
    at = 0
    for i in range(offsets.size - 1):
        state[:] = states[i]
        for t in range(offsets[i], offsets[i + 1] + (1 if ends else 0)):
            s = codes[t] if t < offsets[i + 1] else k
            if ends:
                total, mine = 0.0, 0.0
                if total_ahead.size:
                    for j in range(n):
                        total += state[j] * total_ahead[j]
                        mine += state[j] * ahead[s, j]
                else:
                    for a in range(k + 1):
                        weight = 0.0
                        for j in range(n):
                            weight += state[j] * ahead[a, j]
                        if weight > 0.0:
                            total += weight
                            if a == s:
                                mine = weight
                chances[at] = 0.0 if s < 0 else mine / total if total > 0.0 else -1.0
                at += 1
            if t == offsets[i + 1]:
                break
            weight = 0.0
            if s >= 0:
                moved[:] = 0.0
                for a in range(n):
                    share = state[a]
                    if share != 0.0:
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
        states[i] = state

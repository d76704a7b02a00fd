"""Hidden Markov models whose strings end, and the equivalent probabilistic automata."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array


class HiddenMarkovModel(NamedTuple):
    """An HMM whose strings end: a state emits a symbol, then the string stops or moves to another state.

    Attributes
    ----------
    startprob : (n,) the state of the first symbol
    transmat : (n, n) the next state, if the string goes on; rows sum to one
    emissionprob : (n, symbols)
    stopprob : (n,) probability that the string ends after a symbol of this state
    empty : probability of the empty string
    """

    startprob: Array
    transmat: Array
    emissionprob: Array
    stopprob: Array
    empty: float


def check_distributions(**parts: Array) -> None:
    """Refuse rows that are not distributions."""
    for name, rows in parts.items():
        wrong = ~(np.isfinite(rows).all(axis=1) & (rows >= 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) < 1e-6))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"row {at} of {name} must be probabilities that sum to one, got sum {rows[at].sum():.6g} and minimum "
                f"{rows[at].min():.6g}"
            )


def build_automaton(leaving: Array, emission: Array) -> tuple[Array, Array, Array]:
    """The automaton of an HMM, its state 0 the start: ``A_σ[i, j] = leaving[i, j]·emission[j, σ]`` with j from 1.

    Parameters
    ----------
    leaving : (n + 1, n + 1) probabilities of the next state after the start (row 0) and each state, the end last
    emission : (n, symbols)

    Returns
    -------
    initial (n + 1,), transitions (symbols, n + 1, n + 1), final (n + 1,)

    >>> initial, transitions, final = build_automaton(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.2, 0.8]]))
    >>> transitions[1], final
    (array([[0. , 0.8],
           [0. , 0.4]]), array([0. , 0.5]))
    """
    n, k = emission.shape
    transitions = np.zeros((k, n + 1, n + 1))
    transitions[:, :, 1:] = leaving[None, :, :-1] * emission.T[:, None, :]
    return np.eye(n + 1)[0], transitions, leaving[:, -1]


def sum_moves(transitions: Array, states: Any = slice(1, None)) -> tuple[Array, Array]:
    """Moves into the states that emit, all but the start: (n, states) by source, (symbols, states) by symbol."""
    return transitions.sum(axis=0)[:, states], transitions[:, :, states].sum(axis=1)


def factor_by_state(initial: Array, transitions: Array, final: Array) -> HiddenMarkovModel | None:
    """The HMM of an automaton with one start state, never entered again, whose ``A_σ[i, j] = T[i, j]·O[j, σ]``.

    None if the automaton is not of this form.
    """
    start = int(np.argmax(initial))
    if initial[start] != 1 or transitions[:, :, start].any():
        return None
    others = np.flatnonzero(np.arange(initial.size) != start)
    moves, emission = sum_moves(transitions, others)
    entered = moves.sum(axis=0)
    emission = emission / np.where(entered > 0, entered, 1.0)
    emission[:, entered == 0] = 1 / len(transitions)
    if not np.allclose(transitions[:, :, others], moves[None] * emission[:, None, :], rtol=0, atol=1e-12):
        return None
    going = np.ascontiguousarray(moves[others])
    return HiddenMarkovModel(
        _scale_rows(moves[start]), _scale_rows(going), emission.T.copy(), final[others].copy(), float(final[start])
    )


def expand_by_arrival(initial: Array, transitions: Array, final: Array) -> HiddenMarkovModel:
    """The HMM of any probabilistic automaton: its states are the pairs of a symbol and the state after it."""
    k, n = transitions.shape[:2]
    symbol, state = (part.ravel() for part in np.indices((k, n)))
    start = (initial @ transitions).ravel()
    moves = transitions.transpose(1, 0, 2).reshape(n, k * n)[state]
    used = np.flatnonzero((start > 0) | (moves > 0).any(axis=0))
    emission = np.zeros((used.size, k))
    emission[np.arange(used.size), symbol[used]] = 1.0
    return HiddenMarkovModel(
        _scale_rows(start[used]),
        _scale_rows(moves[np.ix_(used, used)]),
        emission,
        final[state[used]],
        float(initial @ final),
    )


def _scale_rows(weights: Array) -> Array:
    """Rows scaled to sum to one; a row of zeros becomes uniform, as it is never used."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / weights.shape[-1]))

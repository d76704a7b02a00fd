"""The hidden states behind strings under an HMM: the most probable path, and the probability of each state."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.problems.chain.forward_backward import forward_backward
from tacit.problems.chain.viterbi import viterbi
from tacit.spectral.hmm.hidden_markov import HiddenMarkovModel
from tacit.spectral.strings.symbols import UNSEEN


def best_paths(model: HiddenMarkovModel, strings: Ragged) -> tuple[Array, Ragged]:
    """The most probable path of states of every string, by Viterbi, and the log-probability of both together.

    O(symbols · n²). A symbol that the model does not know says nothing about its state; a string with one has
    probability zero, hence −inf. Of paths that tie, the first is taken.

    >>> moves, stop = np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0.0, 0.5])
    >>> model = HiddenMarkovModel(np.array([1.0, 0.0]), moves, np.eye(2), stop, 0.0)
    >>> log_prob, paths = best_paths(model, Ragged(np.array([0, 0, 1]), [0, 3]))
    >>> paths[0], np.exp(log_prob).round(6)
    (array([0, 0, 1]), array([0.125]))
    """
    unary, transition, filled = _scores(model, strings)
    states, value = np.zeros(len(unary), dtype=np.int64), np.empty(filled.size - 1)
    free, column = np.zeros((1, len(transition))), np.zeros(len(unary), np.int64)
    nothing = np.empty(0, np.int64), np.zeros((0, len(transition)), dtype=bool)
    if states.size:
        viterbi(unary, filled, transition, free, column, *nothing, states, value)
    return _of_all(model, strings, value), Ragged(states, strings.offsets)


def state_proba(model: HiddenMarkovModel, strings: Ragged) -> Ragged:
    """The probability of each state at each symbol, given the whole string, by forward–backward; O(symbols · n²).

    Rows of a string that has no probability at all are zero.

    >>> model = HiddenMarkovModel(np.array([0.5, 0.5]), np.eye(2), np.array([[0.9, 0.1], [0.1, 0.9]]), np.ones(2), 0.0)
    >>> state_proba(model, Ragged(np.array([0]), [0, 1]))[0].round(6)
    array([[0.9, 0.1]])
    """
    unary, transition, filled = _scores(model, strings)
    nodes = np.zeros(unary.shape)
    if len(nodes):
        no_edges, no_sums = np.empty((0, 1, 1)), (np.zeros(0), np.zeros(transition.shape))
        forward_backward(unary, filled, transition, np.empty(filled.size - 1), nodes, no_edges, *no_sums)
    return Ragged(nodes, strings.offsets)


def _scores(model: HiddenMarkovModel, strings: Ragged) -> tuple[Array, Array, Array]:
    """Logarithms as the kernels of chains take them: of states at symbols, of moves; and where strings begin.

    Empty strings have no place in them.
    """
    filled = np.append(strings.offsets[:-1][strings.lengths > 0], strings.offsets[-1])
    with np.errstate(divide="ignore"):
        emission, start, stop = (np.log(part) for part in (model.emissionprob.T, model.startprob, model.stopprob))
        transition = np.log((1 - model.stopprob)[:, None] * model.transmat)
        start += np.log(1 - model.empty)
    codes = strings.values
    unary = np.where((codes == UNSEEN)[:, None], 0.0, emission[codes])
    unary[filled[:-1]] += start
    unary[filled[1:] - 1] += stop
    return np.ascontiguousarray(unary), np.ascontiguousarray(transition), filled


def _of_all(model: HiddenMarkovModel, strings: Ragged, value: Array) -> Array:
    """Log-probabilities of all strings, the empty ones among them, from those of the others."""
    with np.errstate(divide="ignore"):
        out = np.full(len(strings), np.log(model.empty))
    out[strings.lengths > 0] = value
    unseen = np.concatenate([[0], np.cumsum(strings.values == UNSEEN)])
    return np.where(np.diff(unseen[strings.offsets]) > 0, -np.inf, out)

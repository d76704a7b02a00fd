"""Rényi scores over the cells ``scores[label, state]`` of a block of samples, and their gradients.

``R_α(y) = [log Σ_h exp(α s) − log Σ_h exp s] / (α − 1)`` is what is left of the Rényi entropy of order α of the
hidden value, ``H_α = log Z − R_α``, when the part that all labels share is taken away (Kumar 2013, eq. 3.1–3.4). It is
``max_h s`` for α = ∞ and ``E_p[s]`` under ``p = softmax s`` for α = 1, and always lies between the lowest and the
highest score. Its gradient is ``Σ_h c(h) Ψ(h)`` with ``c = (α p_α − p_1) / (α − 1)``, ``p_t = softmax(t s)``: weights
that sum to 1, some of which may be negative.

Scores are taken relative to the highest of their label, so that neither large scores nor large α overflow. Near α = 1
the quotient is replaced by the integral that it is a mean of, ``R_α = mean over t in [1, α] of E_{p_t}[s]``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.oracle.cells import best_by_label

NEAR_ONE = 0.01
"""So near to α = 1 the quotient would lose more than two digits, and the integral is taken; its integrand is smooth
there, and eight nodes are exact to rounding."""

_NODES, _SHARES = np.polynomial.legendre.leggauss(8)
_NODES, _SHARES = 0.5 * (_NODES + 1), 0.5 * _SHARES


class RenyiCells(NamedTuple):
    """Rényi scores of a block, and what their gradients are made of."""

    values: Array
    """(n, labels): R_α, −inf for a label without any hidden value."""
    first: Array
    """(labels, states): exponentials of the scores, relative to the highest; for α = ∞ or near 1 the scores."""
    second: Array
    """(labels, states): exponentials of α times the scores, relative to the highest; empty for α = ∞ or near 1."""
    alpha: float


def renyi_cells(scores: Array, starts: Array, alpha: float) -> RenyiCells:
    """R_α of every sample and label of a block.

    >>> cells = renyi_cells(np.array([[1.0, 3.0, 2.0]]), np.array([0, 2, 3]), 1.0)
    >>> cells.values.ravel().round(4), renyi_weights(cells, np.array([0, 2, 3]), np.ones((2, 1))).round(4)
    (array([2.7616, 2.    ]), array([[-0.0908,  1.0908,  1.    ]]))
    """
    values = np.empty((starts.size - 1, scores.shape[0]))
    nothing = np.empty((0, 0))
    best_by_label(scores, starts, values)
    if math.isinf(alpha):
        return RenyiCells(values, scores, nothing, alpha)
    first = np.empty(scores.shape)
    _centre(scores, starts, values, first)
    if abs(alpha - 1) < NEAR_ONE:
        _add_mean_scores(first, starts, *orders_near_one(alpha), values)
        return RenyiCells(values, first, nothing, alpha)
    second = np.exp(alpha * first)
    np.exp(first, out=first)
    _add_quotients(first, second, starts, alpha, values)
    return RenyiCells(values, first, second, alpha)


def renyi_weights(cells: RenyiCells, starts: Array, coef: Array) -> Array:
    """``coef[i, label] · c(h)`` for every cell: the adjoint of it is ``Σ coef ∂R_α``."""
    out = np.zeros(cells.first.shape)
    coef = np.ascontiguousarray(coef, dtype=np.float64)
    if math.isinf(cells.alpha):
        _weigh_highest(cells.first, starts, cells.values, coef, out)
    elif cells.second.size == 0 and cells.first.size:
        _weigh_mean(cells.first, starts, *orders_near_one(cells.alpha), coef, out)
    else:
        _weigh_quotients(cells.first, cells.second, starts, cells.alpha, coef, out)
    return out


def orders_near_one(alpha: float) -> tuple[Array, Array]:
    """The nodes of the integral from 1 to α and their shares; one is enough where both ends are the same."""
    if alpha == 1:
        return np.ones(1), np.ones(1)
    return 1 + (alpha - 1) * _NODES, _SHARES


@kernel
def _centre(scores: Array, starts: Array, tops: Array, out: Array) -> None:
    """``out = scores − tops``, the highest score of each sample under each label; −inf where there is none."""
    base = starts[0]
    for k in range(scores.shape[0]):
        row = scores[k]
        into = out[k]
        for i in range(starts.size - 1):
            for j in range(starts[i] - base, starts[i + 1] - base):
                into[j] = row[j] - tops[i, k] if row[j] > -np.inf else -np.inf


@kernel
def _add_quotients(first: Array, second: Array, starts: Array, alpha: float, values: Array) -> None:
    base = starts[0]
    for k in range(first.shape[0]):
        one, two = first[k], second[k]
        for i in range(starts.size - 1):
            if values[i, k] == -np.inf:
                continue
            a, b = 0.0, 0.0
            for j in range(starts[i] - base, starts[i + 1] - base):
                a += one[j]
                b += two[j]
            values[i, k] += math.log(b / a) / (alpha - 1)


@kernel
def _weigh_quotients(first: Array, second: Array, starts: Array, alpha: float, coef: Array, out: Array) -> None:
    base = starts[0]
    for k in range(first.shape[0]):
        one, two, into = first[k], second[k], out[k]
        for i in range(starts.size - 1):
            if coef[i, k] == 0.0:
                continue
            a, b = 0.0, 0.0
            for j in range(starts[i] - base, starts[i + 1] - base):
                a += one[j]
                b += two[j]
            if a == 0.0:
                continue
            c = coef[i, k] / (alpha - 1)
            for j in range(starts[i] - base, starts[i + 1] - base):
                into[j] = c * (alpha * two[j] / b - one[j] / a)


@kernel
def _weigh_highest(scores: Array, starts: Array, tops: Array, coef: Array, out: Array) -> None:
    base = starts[0]
    for k in range(scores.shape[0]):
        for i in range(starts.size - 1):
            if coef[i, k] == 0.0 or tops[i, k] == -np.inf:
                continue
            j = starts[i] - base
            while scores[k, j] < tops[i, k]:
                j += 1
            out[k, j] = coef[i, k]


@kernel
def _add_mean_scores(centred: Array, starts: Array, powers: Array, shares: Array, values: Array) -> None:
    """Add Σ_t share_t E_{p_t}[s] to the highest scores in ``values``."""
    base = starts[0]
    for k in range(centred.shape[0]):
        row = centred[k]
        for i in range(starts.size - 1):
            if values[i, k] == -np.inf:
                continue
            total = 0.0
            for t in range(powers.size):
                mass, moment = 0.0, 0.0
                for j in range(starts[i] - base, starts[i + 1] - base):
                    if row[j] > -np.inf:
                        e = math.exp(powers[t] * row[j])
                        mass += e
                        moment += e * row[j]
                total += shares[t] * moment / mass
            values[i, k] += total


@kernel
def _weigh_mean(centred: Array, starts: Array, powers: Array, shares: Array, coef: Array, out: Array) -> None:
    """``coef · Σ_t share_t p_t (1 + t (s − E_{p_t}[s]))``."""
    base = starts[0]
    for k in range(centred.shape[0]):
        row = centred[k]
        for i in range(starts.size - 1):
            if coef[i, k] == 0.0:
                continue
            for t in range(powers.size):
                mass, moment = 0.0, 0.0
                for j in range(starts[i] - base, starts[i + 1] - base):
                    if row[j] > -np.inf:
                        e = math.exp(powers[t] * row[j])
                        mass += e
                        moment += e * row[j]
                if mass == 0.0:
                    continue
                for j in range(starts[i] - base, starts[i + 1] - base):
                    if row[j] > -np.inf:
                        p = math.exp(powers[t] * row[j]) / mass
                        out[k, j] += coef[i, k] * shares[t] * p * (1 + powers[t] * (row[j] - moment / mass))


@kernel
def rule_out(scores: Array, starts: Array, truth: Array, given: Array, allowed: Array) -> None:
    """Cells of the true label whose state is known not to be the true one score −inf from here on."""
    base = starts[0]
    for i in range(starts.size - 1):
        row = scores[truth[i]]
        for j in range(starts[i] - base, starts[i + 1] - base):
            if given[i] >= 0:
                if j - (starts[i] - base) != given[i]:
                    row[j] = -np.inf
            elif allowed.size > 0 and not allowed[j]:
                row[j] = -np.inf

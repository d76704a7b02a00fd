"""Entropies of the generalised distributions ``P(y, ·)`` of every label: scores by cells, and their gradients.

``P(y, h) = exp s(y, h) / Z`` adds up to ``P(y)`` over the hidden values. An entropy turns the cells of a block into one
score per label, the higher the less uncertain. Its gradient is made of weights on the label's own cells, and of a share
of the gradient of ``log Z``. Rényi entropies lack that share: all labels have the same log Z, which cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from tacit.data.arrays import Array
from tacit.oracle import cells
from tacit.oracle.renyi import RenyiCells, renyi_cells, renyi_weights

PairTables = Callable[[], "list[Array]"]
"""The losses between the hidden values of every sample of a block: tables (h, h)."""


class EntropyCells(NamedTuple):
    """Scores of labels, and what their gradients are made of."""

    values: Array
    """(n, labels): higher is less uncertain; −inf for a label without any hidden value."""
    own: Callable[[Array], Array]
    """From coefficients (n, labels) to the weights (labels, states) of every label's own cells."""
    share: Array | None = None
    """(n, labels): the share of −∂ log Z in the gradient; None where there is none."""
    posterior: Array | None = None
    """(labels, states): P(y, h), the weights of ∂ log Z."""
    by_order: Callable[[], Array] | None = None
    """Gives (orders, n, labels), the derivatives by the orders, where they are known."""

    def weigh(self, starts: Array, coef: Array) -> Array:
        """The weights of all cells in the gradient of ``Σ coef · score``."""
        V = self.own(coef)
        return (
            V
            if self.share is None
            else V - np.repeat((coef * self.share).sum(axis=1), np.diff(starts)) * self.posterior
        )


class Entropy(Protocol):
    """An entropy of generalised distributions."""

    is_shifted: ClassVar[bool]
    """Whether scores lack the log Z that all labels share: the entropy is log Z − score, else −score."""
    takes_kinds: ClassVar[bool]
    """Whether it takes the kinds of hidden values in place of losses between these."""

    def score_cells(self, scores: Array, starts: Array, pairs: Any) -> EntropyCells:
        """The scores of the labels of a block."""


Order = float | Entropy
"""What oracles take: the order of a Rényi entropy, or another entropy."""


def read_order(order: Order) -> Any:
    """An entropy as it is, an order as that of Rényi.

    >>> read_order(2.0)
    Renyi(alpha=2.0, beta=1.0)
    """
    return Renyi(float(order)) if isinstance(order, int | float) else order


@dataclass(frozen=True)
class Renyi:
    """Order α and type β (Mathai & Rathie 1975): ``H = log [Σ_h P^(α+β−1) / Σ_h P^β] / (1 − α)``; Rényi's at β = 1.

    ``H = log Z − R_{α,β}``, and ``R_{α,β}(s) = R_{1+(α−1)/β}(β s) / β`` with the Rényi score of `tacit.oracle.renyi`,
    stable at α → 1 and ∞ as that is. It needs α + β > 1. Type β is order α of probabilities to the power β.

    >>> found = Renyi(1.0, beta=2.0).score_cells(np.array([[0.0, 1.0]]), np.array([0, 2]), list)
    >>> round(float(found.values[0, 0]), 4)  # the mean of the scores under softmax(2 s)
    0.8808
    """

    alpha: float
    beta: float = 1.0

    is_shifted: ClassVar[bool] = True
    takes_kinds: ClassVar[bool] = False

    @property
    def powers(self) -> tuple[float, float]:
        """α + β − 1 and β."""
        return self.alpha if self.beta == 1 else self.alpha + self.beta - 1, self.beta

    def find(self, scores: Array, starts: Array) -> RenyiCells:
        """The Rényi cells of the scores times β."""
        if self.beta == 1:
            return renyi_cells(scores, starts, self.alpha)
        return renyi_cells(self.beta * scores, starts, 1 + (self.alpha - 1) / self.beta)

    def score_cells(self, scores: Array, starts: Array, pairs: PairTables) -> EntropyCells:
        found = self.find(scores, starts)
        values = found.values if self.beta == 1 else found.values / self.beta
        return EntropyCells(values, lambda coef: renyi_weights(found, starts, coef))


@dataclass(frozen=True)
class HavrdaCharvat:
    """``T = ln 2 · [1 − Σ_h P^α / Σ_h P] / [1 − 2^(1−α)]`` (Havrda & Charvát 1967), in nats: ln 2 for a fair coin.

    It is a growing function of the Rényi entropy H of the same order, ``T = u(α) [1 − e^((1−α) H)] / (α − 1)``, and
    equal to it at α = 1. So it orders labels alike, but its margins differ: for α > 1 it is at most
    ``ln 2 / (1 − 2^(1−α))``. Above ``(1 − α) H = 300`` it goes on as its tangent, so that nothing overflows.

    >>> coin = np.zeros((1, 2)), np.array([0, 2])
    >>> [round(-float(HavrdaCharvat(a).score_cells(*coin, list).values[0, 0]), 4) for a in (0.5, 1.0, 1000.0)]
    [0.6931, 0.6931, 0.6931]
    """

    alpha: float

    is_shifted: ClassVar[bool] = False
    takes_kinds: ClassVar[bool] = False

    def score_cells(self, scores: Array, starts: Array, pairs: PairTables) -> EntropyCells:
        posterior, log = find_posterior(scores, starts)
        found = renyi_cells(scores, starts, self.alpha)
        entropy = np.where(np.isfinite(found.values), log[:, None] - found.values, 0.0)
        away = self.alpha - 1
        unit = away * math.log(2) / -math.expm1(-away * math.log(2)) if away else 1.0
        bent = np.minimum(-away * entropy, MAX_EXPONENT)
        slope = unit * np.exp(bent)
        value = unit * -np.expm1(bent) / away if away else entropy
        value = value + slope * (entropy + bent / away if away else 0.0)
        values = np.where(np.isfinite(found.values), -value, -np.inf)
        return EntropyCells(values, lambda coef: renyi_weights(found, starts, coef * slope), slope, posterior)


MAX_EXPONENT = 300.0
"""Squares of exponentials of this are still finite."""


@dataclass(frozen=True)
class Rao:
    """``Q(y) = Σ_h P(h | y) Σ_(y', h') P(y', h') Δ``, Δ being D(h, h') under the label y, 1 under another (Rao 1982).

    It is the loss that is expected of the label with a hidden value that is drawn, ``1 − P(y) [1 − E D(h, h')]``. For
    one label it is Rao's quadratic entropy, with D = 1 for h ≠ h' ``1 − Σ_h P² / Σ_h P``.

    >>> pairs = lambda: [1.0 - np.eye(2)]
    >>> -Rao().score_cells(np.zeros((1, 2)), np.array([0, 2]), pairs).values
    array([[0.5]])
    """

    is_shifted: ClassVar[bool] = False
    takes_kinds: ClassVar[bool] = False

    def score_cells(self, scores: Array, starts: Array, pairs: PairTables) -> EntropyCells:
        posterior, _ = find_posterior(scores, starts)
        sizes = np.diff(starts)
        log_label = np.empty((sizes.size, len(scores)))
        cells.best_by_label(scores, starts, log_label)
        exists = np.isfinite(log_label)
        tops = np.repeat(np.where(exists, log_label, 0.0), sizes, axis=0).T
        given = np.exp(scores - tops)
        firsts = starts[:-1] - starts[0]
        sums = np.add.reduceat(given, firsts, axis=1).T
        given /= np.repeat(np.where(exists, sums, 1.0), sizes, axis=0).T
        mass = np.add.reduceat(posterior, firsts, axis=1).T
        both = np.empty(given.shape)  # (D + Dᵀ) P(· | y)
        for first, size, table in zip(firsts.tolist(), sizes.tolist(), pairs(), strict=True):
            part = given[:, first : first + size]
            both[:, first : first + size] = part @ table + part @ table.T
        diversity = 0.5 * np.add.reduceat(given * both, firsts, axis=1).T
        share = mass * (1 - diversity)

        def own(coef: Array) -> Array:
            by_cell = np.repeat(np.stack([coef * mass, 1 + diversity]), sizes, axis=1).transpose(0, 2, 1)
            return np.asarray(by_cell[0] * given * (by_cell[1] - both))

        return EntropyCells(np.where(exists, share - 1, -np.inf), own, share, posterior)


def find_posterior(scores: Array, starts: Array) -> tuple[Array, Array]:
    """P(y, h) of every cell of a block, and log Z of every sample."""
    V, log = np.empty(scores.shape), np.empty(starts.size - 1)
    cells.subtract_highest(scores, starts, 1.0, cells.NO_LOSSES, log, V)
    np.exp(V, out=V)
    cells.weigh_cells(starts, np.ones(starts.size - 1), log, V)
    return V, log

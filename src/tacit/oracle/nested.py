"""Rényi scores with an order for each kind of hidden value, and their derivatives by scores and by orders.

``R_α(s) = log E[exp((α − 1) s)] / (α − 1)`` is an exponential mean of the scores s(y, h) under P(h | y). Where hidden
values have several kinds, ``h = (a, b)``, such means are nested: ``r(a)`` is the mean of order α_b of the scores
``s(a, ·)`` under P(b | y, a). The score of the label is the mean of order α_a of r under P(a | y). If all orders
are equal, this is R_α of the pairs, by the law of total expectation. What it scores is the entropy
``log [Σ_a P(y, a)^α_a exp((1 − α_a) H_α_b(b | y, a)) / P(y)] / (1 − α_a)``, which is log Z less the score.

Near α = 1 logarithms and exponentials are of numbers near 1 and 0, so nothing cancels; elsewhere they are relative to
the highest, so nothing overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.oracle.entropies import EntropyCells

OuterKinds = Callable[[], list[tuple[Array, int]]]
"""Of all kinds but the last, the outermost first: the value of every state of a block, and how many values there are"""

_NODES, _SHARES = np.polynomial.legendre.leggauss(8)
_NODES, _SHARES = 0.5 * (_NODES + 1), 0.5 * _SHARES


@dataclass(frozen=True)
class NestedRenyi:
    """An order for each kind of hidden value, the outermost first; a single order is that of Rényi.

    >>> strand = np.array([0, 1, 0, 1]), 2
    >>> scores, starts = np.array([[1.0, 3.0, 2.0, 0.0]]), np.array([0, 4])
    >>> found = NestedRenyi((1.0, np.inf)).score_cells(scores, starts, lambda: [strand])
    >>> round(float(found.values[0, 0]), 4)  # the mean of 2 and 3, the best scores of the strands
    2.676
    """

    orders: tuple[float, ...]

    is_shifted: ClassVar[bool] = True
    takes_kinds: ClassVar[bool] = True

    def score_cells(self, scores: Array, starts: Array, kinds: OuterKinds) -> EntropyCells:
        levels: list[Level] = []
        logs = values = scores
        for order, (parent, n_groups) in zip(self.orders[::-1], find_groups(starts, kinds()), strict=True):
            levels.append(Level.of(logs, values, parent, n_groups, order))
            logs, values = levels[-1].group_logs, levels[-1].means
        return EntropyCells(
            np.ascontiguousarray(values.T),
            lambda coef: weigh_levels(levels, coef),
            by_order=lambda: differentiate_orders(levels, starts.size - 1),
        )


class Level(NamedTuple):
    """Exponential means over the items of groups: of cells, or of groups of a level further in. Shapes are (labels,
    items) and (labels, groups)."""

    logs: Array
    """The logarithm of the weight of every item."""
    values: Array
    """What is averaged."""
    parent: Array
    """(items,) the group of every item."""
    order: float
    group_logs: Array
    """The logarithm of the sum of weights."""
    means: Array
    """−inf for a group without items."""
    prior: Array
    """The share of an item in the weight of its group, which is the derivative of group_logs by logs."""
    by_value: Array
    """The derivative of the mean by the value of an item."""
    by_log: Array
    """The derivative of the mean by the logarithm of the weight of an item."""

    @classmethod
    def of(cls, logs: Array, values: Array, parent: Array, n_groups: int, order: float) -> Level:
        """The means, and what their gradients are made of."""
        sums = tuple(np.empty((len(logs), n_groups)) for _ in range(2))
        parts = tuple(np.zeros(logs.shape) for _ in range(3))
        logs, values = np.ascontiguousarray(logs), np.ascontiguousarray(values)
        _average(logs, values, parent, order - 1, *sums, *parts)
        return cls(logs, values, parent, order, *sums, *parts)

    def by_order(self) -> Array:
        """(labels, groups): the derivative of the means by the order; 0 at ∞."""
        out = np.zeros(self.means.shape)
        if math.isfinite(self.order):
            nodes = _NODES, _SHARES
            _differentiate(self.logs, self.values, self.parent, self.order - 1, self.by_value, self.means, nodes, out)
        return out


def find_groups(starts: Array, kinds: list[tuple[Array, int]]) -> list[tuple[Array, int]]:
    """Level by level, the innermost first: the group of every item and the number of groups. The groups of the last
    level are the samples."""
    n = starts.size - 1
    group = np.repeat(np.arange(n), np.diff(starts))
    sizes = [n]
    for value, count in kinds:
        group = group * count + value
        sizes.append(sizes[-1] * count)
    levels = [(group, sizes[-1])]
    for (_, count), size in zip(kinds[::-1], sizes[:0:-1], strict=True):
        levels.append((np.arange(size) // count, size // count))
    return levels


def weigh_levels(levels: list[Level], coef: Array) -> Array:
    """(labels, cells): the weights of all cells in the gradient of ``Σ coef · score``."""
    by_value = np.ascontiguousarray(coef.T)
    by_log = np.zeros(by_value.shape)
    for level in levels[::-1]:
        above = by_value[:, level.parent]
        by_log = above * level.by_log + by_log[:, level.parent] * level.prior
        by_value = above * level.by_value
    return by_value + by_log  # both are the score at the cells


def differentiate_orders(levels: list[Level], n: int) -> Array:
    """(orders, n, labels): the derivatives of the scores by the orders, the outermost first."""
    out = []
    above = np.ones((len(levels[0].logs), n))
    for level in levels[::-1]:
        out.append((above * level.by_order()).reshape(len(above), n, -1).sum(axis=2).T)
        above = above[:, level.parent] * level.by_value
    return np.stack(out)


@kernel
def _average(
    logs: Array,
    values: Array,
    parent: Array,
    away: float,
    group_logs: Array,
    means: Array,
    prior: Array,
    by_value: Array,
    by_log: Array,
) -> None:
    """The logarithm of ``E[exp(away · value)]``, divided by ``away``, of every group; and its gradient by item."""
    n_groups = group_logs.shape[1]
    for k in range(logs.shape[0]):
        log, value = logs[k], values[k]
        top, high, low = np.full(n_groups, -np.inf), np.full(n_groups, -np.inf), np.full(n_groups, np.inf)
        for j in range(parent.size):
            if log[j] > -np.inf:
                g = parent[j]
                top[g] = max(top[g], log[j])
                high[g] = max(high[g], value[j])
                low[g] = min(low[g], value[j])
        mass, mean, peak = np.zeros(n_groups), np.zeros(n_groups), np.full(n_groups, -np.inf)
        for j in range(parent.size):
            if log[j] > -np.inf:
                g = parent[j]
                e = math.exp(log[j] - top[g])
                prior[k, j] = e
                mass[g] += e
                mean[g] += e * (value[j] - high[g])
                peak[g] = max(peak[g], log[j] - top[g] + away * (value[j] - high[g]))
        for g in range(n_groups):
            group_logs[k, g] = top[g] + math.log(mass[g]) if mass[g] > 0 else -np.inf
            mean[g] = mean[g] / mass[g] if mass[g] > 0 else 0.0
        for j in range(parent.size):
            if log[j] > -np.inf:
                prior[k, j] /= mass[parent[j]]
        if away == np.inf:
            is_found = np.zeros(n_groups, np.bool_)
            for j in range(parent.size):
                g = parent[j]
                if log[j] > -np.inf and value[j] == high[g] and not is_found[g]:
                    is_found[g] = True
                    by_value[k, j] = 1.0
            means[k] = high
            continue
        total = np.zeros(n_groups)
        for j in range(parent.size):
            if log[j] > -np.inf:
                g = parent[j]
                if abs(away) * (high[g] - low[g]) <= 1:
                    total[g] += prior[k, j] * math.expm1(away * (value[j] - high[g] - mean[g]))
                else:
                    by_value[k, j] = math.exp(log[j] - top[g] + away * (value[j] - high[g]) - peak[g])
                    total[g] += by_value[k, j]
        for g in range(n_groups):
            if top[g] == -np.inf:
                means[k, g] = -np.inf
            elif away == 0:
                means[k, g] = high[g] + mean[g]
            elif abs(away) * (high[g] - low[g]) <= 1:
                means[k, g] = high[g] + mean[g] + math.log1p(total[g]) / away
            else:
                means[k, g] = high[g] + (peak[g] + math.log(total[g]) - math.log(mass[g])) / away
        for j in range(parent.size):
            if log[j] > -np.inf:
                g = parent[j]
                if abs(away) * (high[g] - low[g]) <= 1:
                    rest = value[j] - means[k, g]
                    by_value[k, j] = prior[k, j] * math.exp(away * rest)
                    by_log[k, j] = prior[k, j] * (rest if away == 0 else math.expm1(away * rest) / away)
                else:
                    by_value[k, j] /= total[g]
                    by_log[k, j] = (by_value[k, j] - prior[k, j]) / away


@kernel
def _differentiate(
    logs: Array,
    values: Array,
    parent: Array,
    away: float,
    tilted: Array,
    means: Array,
    nodes: tuple[Array, Array],
    out: Array,
) -> None:
    """``∂ mean / ∂ order = ∫ x Var_x dx`` over [0, 1], the variance of the values under weights times ``exp(x · away ·
    value)``; far from order 1 it is ``(E − mean) / away``, E under the ``tilted`` weights of x = 1."""
    n_groups = out.shape[1]
    for k in range(logs.shape[0]):
        log, value = logs[k], values[k]
        high, low, top = np.full(n_groups, -np.inf), np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
        for j in range(parent.size):
            if log[j] > -np.inf:
                g = parent[j]
                high[g] = max(high[g], value[j])
                low[g] = min(low[g], value[j])
                top[g] = max(top[g], log[j])
        for j in range(parent.size):
            g = parent[j]
            if log[j] > -np.inf and abs(away) * (high[g] - low[g]) > 1:
                out[k, g] += tilted[k, j] * (value[j] - means[k, g]) / away
        for t in range(nodes[0].size):
            x = nodes[0][t]
            mass, mean, square = np.zeros(n_groups), np.zeros(n_groups), np.zeros(n_groups)
            for j in range(parent.size):
                g = parent[j]
                if log[j] > -np.inf and abs(away) * (high[g] - low[g]) <= 1:
                    rest = value[j] - means[k, g]
                    e = math.exp(log[j] - top[g] + x * away * rest)
                    mass[g] += e
                    mean[g] += e * rest
                    square[g] += e * rest * rest
            for g in range(n_groups):
                if mass[g] > 0:
                    out[k, g] += nodes[1][t] * x * (square[g] / mass[g] - (mean[g] / mass[g]) ** 2)

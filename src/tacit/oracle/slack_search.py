"""Slack rescaling for outputs that cannot be listed: the largest product of loss and violation, by scaled losses.

No dynamic program is known for ``max_a ℓ(a) v(a)`` with the violation ``v(a) = 1 + s(a) − s(t)``. But margin
rescaling with the loss times λ, ``max_a [s(a) + λ ℓ(a)]``, gives two things for every λ (Sarawagi & Gupta 2008). Its
output has a product, which is a lower bound of the maximum. And all outputs are below the line ``v = top − λ ℓ``, which
gives an upper bound. A search over λ raises the one and lowers the other. They meet if the largest product on the
concave hull of the points (ℓ, v) is that of an output. Otherwise a gap is left, and it is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows, positions_of, span, starts_of
from tacit.oracle.contracts import Assignment

if TYPE_CHECKING:
    from tacit.oracle.capabilities import ScalesLoss

MAX_QUESTIONS = 30
"""Values of λ that are tried per sample; the bounds hold after any number. Ten are rarely needed."""

CLOSE = 1e-9
"""A relative gap that is not worth another question."""

ROUNDING = 1e-12
"""Two sums within this share of each other are the same."""

MAX_DIVISOR, MAX_COMPARED = 100, 100_000
"""A common unit of losses is the smallest loss divided by a number up to the first one. It is looked for in tables of
up to so many losses: larger ones are of areas, which have none."""


class LossLevels(NamedTuple):
    """What is known of the losses of all outputs, one number per sample each.

    Parameters
    ----------
    least : the smallest loss above 0, or a lower bound of it
    most : the largest loss, or an upper bound of it; 0 where every output has the loss 0
    unit : all losses are multiples of it; 0 where no such number is known
    """

    least: Array
    most: Array
    unit: Array


def sum_levels(table: Array, column: Array, starts: Array) -> LossLevels:
    """The levels of sums of losses over parts, ``table[column[part], label]``, the parts of samples cut by ``starts``.

    >>> sum_levels(np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]), np.array([1, 0, 2]), np.array([0, 2, 3]))
    LossLevels(least=array([ 2., inf]), most=array([5., 0.]), unit=array([1., 1.]))
    """
    least = np.where(table > 0, table, np.inf).min(axis=1)[column]
    most = table.max(axis=1)[column]
    unit = np.full(starts.size - 1, common_unit(table))
    return LossLevels(np.minimum.reduceat(least, starts[:-1]), np.add.reduceat(most, starts[:-1]), unit)


def common_unit(losses: Array) -> float:
    """The largest number that all losses are multiples of, up to rounding; 0.0 if none is found.

    >>> [common_unit(np.array(losses)) for losses in ([0.0, 1.0, 1.5, 0.5], [2.0, 3.0], [1.0, 2**0.5])]
    [0.5, 1.0, 0.0]
    """
    if losses.size > MAX_COMPARED:
        return 0.0
    values = np.unique(losses[losses > 0])
    if not values.size:
        return 1.0
    ratios = values / values[0]
    for divisor in range(1, MAX_DIVISOR + 1):
        multiples = divisor * ratios
        if (np.abs(multiples - np.round(multiples)) <= ROUNDING * multiples).all():
            return float(values[0] / divisor)
    return 0.0


def search_slack(oracle: ScalesLoss, w: Array, target: Array, rows: Rows = None) -> Assignment:
    """The output of the largest product that is found for every row, and an **upper bound** of the largest there is.

    Where all products that are found are 0 or less, the output is the target. About three to six passes of
    `ScalesLoss.predict_scaled`, each for the rows whose bounds have not met.
    """
    search = _Search(oracle.loss_levels(rows), np.asarray(oracle.score(w, target, rows)) - 1.0)
    samples = np.arange(*span(rows or slice(None), oracle.n_samples)) if not isinstance(rows, np.ndarray) else rows
    starts = starts_of(oracle.offsets, rows)
    code = np.array(target)
    for _ in range(MAX_QUESTIONS):
        open_rows = search.open_rows()
        if not open_rows.size:
            break
        asked = rows if open_rows.size == samples.size else samples[open_rows]
        factor = search.factors(open_rows)
        answer = oracle.predict_scaled(w, factor, asked)
        better = search.add(open_rows, factor, answer.value, oracle.loss(answer.code, asked))
        own = positions_of(starts_of(starts, open_rows), np.flatnonzero(better))
        code[positions_of(starts, open_rows[better])] = answer.code[own]
    return Assignment(code, search.bound)


class _Search:
    """The search of all rows at once.

    Points are (loss, violation). Each row keeps a point left of the largest product on the hull, and one right of it:
    the sign of ``violation − λ · loss`` says which it is. The hull between the two is below their lines.

    Parameters
    ----------
    levels : of the losses
    truth : (n,) the score of the target, less 1: violations are scores less this
    """

    def __init__(self, levels: LossLevels, truth: Array) -> None:
        n = truth.size
        self.truth, self.levels = truth, levels
        self.found = np.zeros(n)
        self.bound = np.where(levels.most > 0, np.finfo(np.float64).max, 0.0)
        self.is_final = levels.most <= 0
        self.left, self.right = _Lines(n, np.zeros(n)), _Lines(n, levels.most.astype(np.float64))

    def open_rows(self) -> Array:
        """The rows that another question can help."""
        return np.flatnonzero(~self.is_final & (self.bound - self.found > CLOSE * self.bound))

    def factors(self, rows: Array) -> Array:
        """The next λ of every row.

        The first one is the inverse of the least loss: if the target wins there, no output has a violation above 0.
        Next comes one that is certain to be on the other side, and then the slope between the two points.
        """
        left, right, least = self.left, self.right, self.levels.least[rows]
        has_left, has_right = left.is_known[rows], right.is_known[rows]
        rise = left.violation[rows] - right.violation[rows]
        width = right.loss[rows] - left.loss[rows]
        slope = rise / np.where(width > 0, width, 1.0)
        beyond = np.where(has_left, left.top[rows], 1.0) / least
        return np.where(has_left & has_right, np.maximum(slope, 0.0), np.where(has_right, 0.0, beyond))

    def add(self, rows: Array, factor: Array, value: Array, loss: Array) -> Array:
        """Take in the answers of these rows; returns where the output is the best one so far."""
        top = value - self.truth[rows]
        violation = top - factor * loss
        product = loss * violation
        better = product > self.found[rows]
        self.found[rows] = np.where(better, product, self.found[rows])
        left, right = self.left, self.right
        both = left.is_known[rows] & right.is_known[rows]
        chord = left.violation[rows] + factor * left.loss[rows]
        is_inside = (loss > left.loss[rows]) & (loss < right.loss[rows])
        is_edge = both & (~is_inside | (top <= chord + ROUNDING * np.abs(chord)))  # the hull has no point above it
        is_left = violation > factor * loss
        for lines, here in ((left, is_left), (right, ~is_left)):
            lines.put(rows[is_edge], factor[is_edge], top[is_edge])
            own = ~is_edge & here
            lines.put(rows[own], factor[own], top[own], loss[own], violation[own])
        self.is_final[rows[is_edge]] = True
        self._lower_bounds(rows)
        return np.asarray(better)

    def _lower_bounds(self, rows: Array) -> None:
        """The largest product of a loss and the lower of the two lines, among the losses that there can be.

        Beyond the two points no product is larger than theirs. Each product is concave in the loss.
        """
        left, right, (least, most, unit) = self.left, self.right, (level[rows] for level in self.levels)
        low, high = np.maximum(left.loss[rows], least), np.minimum(right.loss[rows], most)
        slopes = np.array([left.factor[rows], right.factor[rows]])
        tops = np.array([left.top[rows], right.top[rows]])

        def product(losses: Array) -> Array:
            with np.errstate(invalid="ignore"):
                return np.asarray(losses * np.min(tops - slopes * losses, axis=0))

        with np.errstate(divide="ignore", invalid="ignore"):
            peaks = np.vstack([tops / (2 * slopes), (tops[1] - tops[0]) / (slopes[1] - slopes[0])])
        candidates = np.clip(np.where(np.isnan(peaks), np.inf, peaks), low, np.maximum(low, high))
        values = np.array([product(losses) for losses in candidates])
        best = candidates[values.argmax(axis=0), np.arange(rows.size)]
        step = np.where(unit > 0, unit, 1.0)
        below = np.where(unit > 0, np.floor(best / step) * step, best)
        nearest = (np.clip(losses, low, np.maximum(low, high)) for losses in (below, below + unit))
        largest = np.maximum(*(product(losses) for losses in nearest))
        bound = np.maximum(self.found[rows], np.where(low <= high * (1 + ROUNDING), largest, 0.0))
        self.bound[rows] = np.minimum(self.bound[rows], bound)


class _Lines:
    """One line per row that no output is above, ``violation = top − factor · loss``, and the output that is on it."""

    def __init__(self, n: int, loss: Array) -> None:
        self.is_known = np.zeros(n, dtype=bool)
        self.factor, self.top = np.zeros(n), np.full(n, np.inf)
        self.loss, self.violation = loss, np.zeros(n)

    def put(self, rows: Array, factor: Array, top: Array, *point: Array) -> None:
        """Replace the lines of these rows, and their points if there are new ones."""
        self.factor[rows], self.top[rows], self.is_known[rows] = factor, top, True
        if point:
            self.loss[rows], self.violation[rows] = point

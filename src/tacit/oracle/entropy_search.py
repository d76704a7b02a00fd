"""The label of the highest Rényi score where labels cannot be listed: taggings, transcripts and trees.

The sum over the hidden values of one label is cheap, but the label of the highest sum is hard to find in general. The
score R_α of a label is a mean of the scores of its hidden values, so that the best of these bounds it. Labels are
therefore visited by their best hidden values, until the next one cannot have a higher R_α. Sums of many equal terms may
leave the search open: it ends after `most_visited` labels, and the bound says how much may be missing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cache
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from tacit.data.arrays import Array, Rows, positions_of
from tacit.oracle.capabilities import Slacks, SumsOutputs
from tacit.oracle.contracts import Assignment, CapabilityError, Oracle
from tacit.oracle.entropies import Order, Renyi, read_order
from tacit.oracle.parts import PartsOracle
from tacit.oracle.renyi import NEAR_ONE

ROUNDING = 1e-12
"""Share of a bound by which rounding may lower it."""

STEP, REACH = 0.02, 3
"""Near order 1, log-sums are taken at this many powers on either side, so far apart. R is then off by at most 1e-9 if
two scores compete, and rounding costs two digits."""


class Found(NamedTuple):
    """The label of the highest R_α plus loss of every row, part after part, that sum, and an upper bound of it."""

    labels: Array
    value: Array
    bound: Array


class SearchesEntropy(PartsOracle):
    """Slacks and predictions of min-entropy models, from ranked labels and from sums over the hidden values of one.

    A subclass says in `_rank_labels` which labels have the best hidden values. A label is written with one integer per
    part, as the subclass likes: its own code of the best hidden value, or without the hidden part. It also sums over
    the hidden values of a label (`_sum_hidden`), and knows its loss and whether it is the true one.
    """

    first_visited: ClassVar[int] = 4
    most_visited: ClassVar[int] = 256
    """Labels of a sample that are visited at first, and at most; four times as many in every round."""

    @abstractmethod
    def _rank_labels(self, w: Array, k: int, rows: Rows, is_augmented: bool) -> Assignment:
        """The k labels with the best hidden values, (parts, k), the best first, and the scores of these values, (rows,
        k): plus the loss where ``is_augmented``. −1 and −inf where a row has fewer."""

    @abstractmethod
    def _sum_hidden(self, w: Array, labels: Array, power: float, coef: Array, rows: Rows) -> tuple[Array, Array]:
        """``log Σ_h exp(power · s(y, h))`` of one label per row, and ``Σ_i coef_i E[Ψ]`` under ``p ∝ exp(power·s)``."""

    @abstractmethod
    def _best_hidden(self, w: Array, labels: Array, rows: Rows) -> Assignment:
        """The best outputs with these labels."""

    @abstractmethod
    def _label_loss(self, labels: Array, rows: Rows) -> Array:
        """The loss of one label per row."""

    @abstractmethod
    def _is_true_label(self, labels: Array, rows: Rows) -> Array:
        """Which labels agree with all that is known of the true ones, and so are not rivals of them."""

    def renyi_slacks(
        self, w: Array, coef: Array, alpha: Order, rows: Rows = None, *, rescaling: str = "margin"
    ) -> Slacks:
        """See `tacit.oracle.capabilities.GivesEntropySlacks`. R_α(y_i) runs over the completions of what is known."""
        name = self.nouns.problem
        if rescaling != "margin":
            raise CapabilityError(f"{name} has entropies with margin rescaling only; use rescaling='margin'")
        order = read_alpha(name, alpha)
        own = self._score_truth(w, order, rows)
        found = self._search_labels(w, order, rows, is_augmented=True)
        value = np.maximum(found.value - own, 0.0)
        slopes, weights = np.zeros(self.n_params), np.where(value > 0, coef, 0.0)
        part = np.flatnonzero(weights)
        if part.size:
            rivals = found.labels[positions_of(self._starts(rows), part)]
            part, weights = self._numbers(rows)[part], weights[part]
            slopes = self._slope_of(w, rivals, order, weights, part) - self._slope_of_truth(w, order, weights, part)
        return Slacks(value, slopes, np.maximum(found.bound - own, 0.0))

    def least_entropy(self, w: Array, alpha: Order, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.FindsLeastEntropy`."""
        found = self._search_labels(w, read_alpha(self.nouns.problem, alpha), rows, is_augmented=False)
        return Assignment(self._best_hidden(w, found.labels, rows).code, found.value)

    def _search_labels(self, w: Array, alpha: float, rows: Rows, is_augmented: bool) -> Found:
        """The label of the highest R_α of every row; where ``is_augmented`` plus loss, and among rivals alone."""
        starts, samples = self._starts(rows), self._numbers(rows)
        found = Found(np.zeros(int(starts[-1]), np.int64), *np.full((2, samples.size), -np.inf))
        is_open, count = np.arange(samples.size), self.first_visited
        while is_open.size:
            labels, value, bound = self._best_of(w, alpha, samples[is_open], count, is_augmented)
            found.labels[positions_of(starts, is_open)] = labels
            found.value[is_open], found.bound[is_open] = value, bound
            left = bound > value + ROUNDING * (1 + np.abs(np.where(np.isfinite(bound), bound, 0.0)))  # no rivals: −inf
            is_open, count = is_open[left & (count < self.most_visited)], 4 * count
        return found

    def _best_of(self, w: Array, alpha: float, rows: Array, count: int, is_augmented: bool) -> Found:
        """The best of the ``count`` labels with the best hidden values, and a bound for all others."""
        labels, tops = self._rank_labels(w, count, rows, is_augmented)
        labels = np.where(labels < 0, labels[:, :1], labels)
        values = tops
        if not math.isinf(alpha):
            values = self._score_labels(w, labels, alpha, rows)
            if is_augmented:
                values = values + np.column_stack([self._label_loss(one, rows) for one in labels.T])
            values = np.where(tops > -np.inf, values, -np.inf)
        if is_augmented:
            is_true = np.column_stack([self._is_true_label(one, rows) for one in labels.T])
            values = np.where(is_true, -np.inf, values)
        chosen = np.argmax(values, axis=1)
        value = values[np.arange(rows.size), chosen]
        sizes = np.diff(self._starts(rows))
        best = labels[np.arange(len(labels)), np.repeat(chosen, sizes)]
        return Found(best, value, np.maximum(value, tops[:, -1]))

    def _score_labels(self, w: Array, labels: Array, alpha: float, rows: Rows) -> Array:
        """(rows, k): R_α of k labels per row."""
        nothing = np.zeros(self._numbers(rows).size)
        found = []
        for one in labels.T:
            label = np.ascontiguousarray(one)
            sums = [share * self._sum_hidden(w, label, p, nothing, rows)[0] for p, share in powers_of(alpha)]
            found.append(sum(sums))
        return np.column_stack(found)

    def _slope_of(self, w: Array, labels: Array, alpha: float, coef: Array, rows: Rows) -> Array:
        """Σ coef_i ∂R_α of one label per row."""
        if math.isinf(alpha):
            return cast(Oracle, self).features(self._best_hidden(w, labels, rows).code, coef, rows)
        parts = [self._sum_hidden(w, labels, p, share * p * coef, rows)[1] for p, share in powers_of(alpha)]
        return np.asarray(sum(parts))

    def _score_truth(self, w: Array, alpha: float, rows: Rows) -> Array:
        """R_α of what is known of every row, over all labels and hidden values that agree with it."""
        if math.isinf(alpha):
            return cast(Oracle, self).impute(w, rows).value
        return np.asarray(sum(share * self._sum_truth(w, p, 0.0, rows).truth for p, share in powers_of(alpha)))

    def _slope_of_truth(self, w: Array, alpha: float, coef: Array, rows: Rows) -> Array:
        if math.isinf(alpha):
            return cast(Oracle, self).features(cast(Oracle, self).impute(w, rows).code, coef, rows)
        parts = [self._sum_truth(w, p, share * p * coef, rows).features for p, share in powers_of(alpha)]
        return np.asarray(sum(parts))

    def _sum_truth(self, w: Array, power: float, coef: Any, rows: Rows) -> Any:
        return cast(SumsOutputs, self).expectations(w, rows, truth=coef, power=power)


def read_alpha(problem: str, alpha: Order) -> float:
    """The order of Rényi's entropy; others are refused, since hidden values are summed by powers of their scores."""
    entropy = read_order(alpha)
    if not isinstance(entropy, Renyi) or entropy.beta != 1:
        raise CapabilityError(
            f"{problem} has Rényi entropies only: its hidden values are summed by powers of their scores; use "
            "entropy='renyi'"
        )
    return entropy.alpha


@cache
def powers_of(alpha: float) -> list[tuple[float, float]]:
    """Powers p and shares of them: ``R_α = Σ share · log Σ_h exp(p · s)``, for finite α.

    Near α = 1, where R_α is the mean slope of the log-sum between 1 and α, it is that of the polynomial through the
    log-sums at six or seven powers.

    >>> powers_of(2.0)
    [(1.0, -1.0), (2.0, 1.0)]
    >>> [(p, round(share, 2)) for p, share in powers_of(1.0)][:3]
    [(0.94, -0.83), (0.96, 7.5), (0.98, -37.5)]
    """
    if abs(alpha - 1) >= NEAR_ONE:
        return [(1.0, -1 / (alpha - 1)), (alpha, 1 / (alpha - 1))]
    at, found = (alpha - 1) / STEP, []
    nodes = np.arange(-REACH, REACH + 1)
    for node in nodes.tolist():
        others = nodes[nodes != node]
        polynomial = np.poly(others) / np.prod(node - others)  # one at its own node, zero at the others
        share = float(np.polyval(polynomial[:-1], at)) / STEP
        if share != 0.0:
            found.append((round(1 + STEP * node, 12), share))
    return found

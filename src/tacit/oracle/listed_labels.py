"""What oracles share whose outputs have several parts under one label per sample: the labels can be listed."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np

from tacit.data.arrays import Array, Codes, Rows
from tacit.data.parameters import shorten
from tacit.oracle.capabilities import ScalesLoss, Slacks
from tacit.oracle.cell_sums import choose_rivals
from tacit.oracle.contracts import Assignment
from tacit.oracle.entropies import Order
from tacit.oracle.entropy_search import read_alpha
from tacit.oracle.parts import PartsOracle
from tacit.oracle.renyi import NEAR_ONE, orders_near_one
from tacit.oracle.slack_search import LossLevels, sum_levels


class ListsLabels(PartsOracle):
    """Inference that visits every label: predictions, losses, rivals, slack rescaling, and Rényi scores.

    A subclass writes `best_under`, `split`, the losses of labels, and scores of labels with their gradients.
    """

    rescalings: tuple[str, ...] = ("margin", "slack")

    @property
    def lacks(self) -> tuple[type, ...]:
        """Capabilities that are missing: slack rescaling is exact, without a search over multiples of the loss."""
        return (ScalesLoss,)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        scores, choose = self._search(w, rows)
        return Assignment(choose(np.argmax(scores, axis=1)), scores.max(axis=1))

    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        if rescaling not in self.rescalings:
            raise ValueError(f"rescaling must be 'margin' or 'slack', got {shorten(rescaling)}")
        losses = self._label_losses(rows)
        scores, choose = self._search(w, rows)
        values = scores + losses
        if rescaling == "slack":
            if target is None:
                raise ValueError("slack rescaling needs a target: give target=codes, for example from `impute`")
            values = losses * (1 + scores - self.score(w, target, rows)[:, None])
        if rivals:
            values[np.arange(len(values)), self._true_labels(rows)] = -np.inf
        return Assignment(choose(np.argmax(values, axis=1)), values.max(axis=1))

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        losses = self._label_losses(rows)
        scores, choose = self._search(w, rows)
        values = scores + (losses if factor is None else factor[:, None] * losses)
        return Assignment(choose(np.argmax(values, axis=1)), values.max(axis=1))

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        losses = self._label_losses(rows)
        return sum_levels(losses, np.arange(len(losses)), np.arange(len(losses) + 1))

    def loss(self, code: Array, rows: Rows = None) -> Array:
        labels = self.split(code, rows)[0]
        return np.asarray(self._label_losses(rows)[np.arange(labels.size), labels])

    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        """See `tacit.oracle.capabilities.ScoresLabels`."""
        scores = self._scores_by_label(w, rows, None, power)
        return scores if np.isinf(power) else scores / power

    def renyi_scores(self, w: Array, alpha: Order, rows: Rows = None) -> Array:
        """See `tacit.oracle.capabilities.ScoresEntropy`."""
        return self._renyi_scores(w, rows, read_alpha(self.nouns.problem, alpha), None)

    def renyi_slacks(
        self, w: Array, coef: Array, alpha: Order, rows: Rows = None, *, rescaling: str = "margin"
    ) -> Slacks:
        """See `tacit.oracle.capabilities.GivesEntropySlacks`."""
        order, known = read_alpha(self.nouns.problem, alpha), self._take_known(rows)
        scores = self._renyi_scores(w, rows, order, known)
        value, weights = choose_rivals(scores, self._label_losses(rows), self._true_labels(rows), coef, rescaling)
        if not weights.any():
            return Slacks(value, np.zeros(self.n_params))
        if math.isinf(order):
            return Slacks(value, self._slopes(w, rows, weights, math.inf, known))
        if abs(order - 1) < NEAR_ONE:
            nodes = zip(*orders_near_one(order), strict=True)
            return Slacks(
                value, reduce(add, (self._slopes(w, rows, share * weights, p, known, True) for p, share in nodes))
            )
        slope = self._slopes(w, rows, order / (order - 1) * weights, order, known)
        return Slacks(value, slope + self._slopes(w, rows, -1 / (order - 1) * weights, 1.0, known))

    def _renyi_scores(self, w: Array, rows: Rows, alpha: float, known: Array | None) -> Array:
        if math.isinf(alpha):
            return self._scores_by_label(w, rows, known)
        if abs(alpha - 1) >= NEAR_ONE:
            first, second = (self._scores_by_label(w, rows, known, power) for power in (1.0, alpha))
            return (second - first) / (alpha - 1)
        orders = zip(*orders_near_one(alpha), strict=True)
        return reduce(add, (share * self._scores_by_label(w, rows, known, power, True) for power, share in orders))

    def _search(self, w: Array, rows: Rows) -> tuple[Array, Callable[[Array], Array]]:
        """(n, labels) the best score under every label, and what gives the codes of the best outputs under chosen
        ones."""
        return self.label_scores(w, rows), lambda labels: self.best_under(w, labels, rows).code

    @abstractmethod
    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.ScoresLabels`."""

    @abstractmethod
    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        """See `tacit.oracle.Oracle`."""

    @abstractmethod
    def split(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        """See `tacit.oracle.capabilities.SplitsCodes`; what is hidden is one number per part."""

    @abstractmethod
    def _label_losses(self, rows: Rows) -> Array:
        """(n, labels): the loss of every label."""

    @abstractmethod
    def _take_known(self, rows: Rows) -> Array | None:
        """What is known of the hidden values of these rows, which holds under the true label; None for nothing."""

    @abstractmethod
    def _scores_by_label(
        self, w: Array, rows: Rows, known: Array | None, power: float = np.inf, is_mean: bool = False
    ) -> Array:
        """(n, labels): the best score of every label. Where ``power`` is finite ``log Σ_h exp(power · s)``, or where
        ``is_mean`` E[s] under ``p ∝ exp(power · s)``."""

    @abstractmethod
    def _slopes(
        self, w: Array, rows: Rows, weights: Array, power: float, known: Array | None, is_mean: bool = False
    ) -> Array:
        """``Σ weights[i, label] · E[Ψ]`` under ``p ∝ exp(power · s)``; where ``is_mean``, the gradients of E[s]."""

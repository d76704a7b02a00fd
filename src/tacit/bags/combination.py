"""Calibrated probabilities from the scores of several models: multinomial logistic regression on held-out scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from tacit.data.arrays import Array
from tacit.data.specs import table
from tacit.runtime.archive import storable


@storable
@dataclass(frozen=True)
class Combination:
    """``log p(y) ∝ Σ_m a_m s_m(y) + b_y`` with slopes ``a_m ≥ 0``; one model alone is calibrated as by Platt (1999).

    Parameters
    ----------
    slopes : (models,) factors of the scores
    intercepts : (classes,)
    """

    slopes: Array
    intercepts: Array

    @classmethod
    def fit(cls, scores: Array, y: Array, weights: Array, *, pull: float, centre: float | Array = 0.0) -> Combination:
        """Fit to held-out scores.

        Parameters
        ----------
        scores : (models, n, classes)
        y : (n,) positions of the true labels
        weights : of the samples
        pull, centre : the penalty ``½ pull Σ_m (a_m − centre)²``, beside the sum of log-losses
        """
        scores = _centre(scores)
        size = np.maximum(np.sqrt(np.mean(scores**2, axis=(1, 2))), 1e-12)
        m, n, k = scores.shape
        weights = weights * n / weights.sum()
        targets = smooth_targets(y, weights, k)

        def objective(p: Array) -> tuple[float, Array]:
            a, b = p[:m], p[m:]
            z = np.tensordot(a, scores, 1) + b
            log_p = z - logsumexp(z, axis=1, keepdims=True)
            slope = weights[:, None] * (np.exp(log_p) - targets)
            value = -float((weights[:, None] * targets * log_p).sum()) + 0.5 * pull * float(((a - centre) ** 2).sum())
            value += 1e-6 * float(b @ b + (a * size) @ (a * size))
            down = np.tensordot(scores, slope, 2) + pull * (a - centre) + 2e-6 * a * size**2
            return value / n, np.concatenate([down, slope.sum(axis=0) + 2e-6 * b]) / n

        start = np.concatenate([np.full(m, centre) if np.any(centre) else 1 / (m * size), np.zeros(k)])
        bounds = [(0.0, None)] * m + [(None, None)] * k
        found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B").x
        return cls(found[:m], found[m:])

    def log_probabilities(self, scores: Array) -> Array:
        """(n, classes) of (models, n, classes) scores."""
        z = np.tensordot(self.slopes, _centre(scores), 1) + self.intercepts
        return np.asarray(z - logsumexp(z, axis=1, keepdims=True))

    def check(self) -> None:
        """Refuse what no fit could have made."""
        table(None)("slopes", self.slopes)
        table(None)("intercepts", self.intercepts)
        if (self.slopes < 0).any():
            raise ValueError(f"slopes must not be negative, got {self.slopes.min()}")


def smooth_targets(y: Array, weights: Array, k: int) -> Array:
    """(n, k) targets a little off 0 and 1, as by Platt (1999): the fewer bags of a class, the further."""
    counts = np.bincount(y, weights, k)
    own = (counts[y] + 1) / (counts[y] + 2)
    targets = np.repeat(((1 - own) / (k - 1))[:, None], k, axis=1)
    targets[np.arange(y.size), y] = own
    return np.asarray(targets)


def log_loss(log_probabilities: Array, y: Array, weights: Array) -> float:
    """The mean of −log p of the true labels."""
    return float(-(weights * log_probabilities[np.arange(y.size), y]).sum() / weights.sum())


def held_out_loss(scores: Array, y: Array, weights: Array) -> tuple[float, Combination]:
    """The log-loss of (n, classes) held-out scores after calibration, by which settings are chosen."""
    own = Combination.fit(scores[None], y, weights, pull=0.0)
    return log_loss(own.log_probabilities(scores[None]), y, weights), own


def held_out_losses(
    scores: Array, y: Array, weights: Array, folds: Iterable[tuple[Array, Array]], **prior: Any
) -> Array:
    """(n,) −log p of the true labels by combinations that did not see the sample; ``prior`` as in `Combination.fit`."""
    found = np.zeros(y.size)
    for train, test in folds:
        fitted = Combination.fit(scores[:, train], y[train], weights[train], **prior)
        found[test] = -fitted.log_probabilities(scores[:, test])[np.arange(test.size), y[test]]
    return found


def spread_classes(difference: Any) -> Array:
    """(n, 2) scores of two classes from the score of the second minus that of the first."""
    half = 0.5 * np.asarray(difference, dtype=np.float64)
    return np.stack([-half, half], axis=1)


def _centre(scores: Array) -> Array:
    return np.asarray(scores - scores.mean(axis=2, keepdims=True))

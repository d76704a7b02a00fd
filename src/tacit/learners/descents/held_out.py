"""The held-out objective of min-entropy models as a function of the orders of entropy, and its gradient.

The weights depend on the orders: ``w(α)`` minimises ``F(w, α)``, the objective of the training samples. So the gradient
of a held-out risk ``L(w(α), α)`` is ``∂L/∂α − ∂²F/∂α∂w [∂²F/∂w²]⁻¹ ∂L/∂w``, by implicit differentiation (Bengio 2000;
Pedregosa 2016). It needs second derivatives, and hinges have none where they bend. Hence both objectives have smooth
slacks here: ``τ log(1 + Σ_{y ≠ y_i} exp(violation / τ))``, at most ``τ log K`` above the slack for K labels.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array, Rows
from tacit.oracle.entropies import Renyi
from tacit.oracle.nested import NestedRenyi
from tacit.runtime import parallel
from tacit.solvers.quasi_newton import Function, begin, step

TEMPERATURE = 0.1
"""τ as a share of the highest loss."""

STATIONARY = 1e-9
"""Weights are optimal when half the squared slope is at most this share of the objective."""

MAX_STEPS = 1000
"""Steps of L-BFGS per order, at most."""

RESIDUAL, MAX_CONJUGATE = 1e-4, 200
"""When conjugate gradients end: the relative residual, and the steps at most."""

MOVE = 1e-5
"""How far differences of gradients move the weights, relative to these."""


class Derivatives(NamedTuple):
    """A value, and its gradients by the weights and by the orders; the last is 0 where it was not asked for."""

    value: float
    by_weights: Array
    by_order: Array


@dataclass(frozen=True)
class SmoothMargins:
    """``½ p ‖w‖² + Σ_i c_i ξ_i`` with smooth slacks of Rényi scores, p being 1 or, for a held-out risk, 0."""

    oracle: Any
    weights: Array
    rescaling: str
    penalty: float = 1.0

    def __call__(self, w: Array, orders: tuple[float, ...], *, by_order: bool = False) -> Derivatives:
        oracle = self.oracle
        labels, losses = oracle.known_labels(), oracle.label_losses(None, oracle.offsets)
        warmth = TEMPERATURE * max(float(losses.max()), np.finfo(float).tiny)
        is_plain = len(orders) == 1 and not by_order  # the same, and faster
        entropy: Any = Renyi(orders[0]) if is_plain else NestedRenyi(orders)
        slack, order_slopes = np.empty(labels.size), np.zeros((len(orders), labels.size))

        def visit(scores: Array, starts: Array, rows: Rows) -> Array:
            scores = oracle.rule_out(scores, rows, starts)
            found = oracle.score_entropy(scores, starts, rows, entropy)
            each = np.arange(starts.size - 1), labels[rows]
            exists = np.isfinite(found.values)
            scale = losses[rows] if self.rescaling == "slack" else np.ones(exists.shape)
            margins = np.where(exists, found.values, 0.0) - found.values[each][:, None]
            violations = scale * (1 + margins) if self.rescaling == "slack" else losses[rows] + margins
            violations = np.where(exists, violations, -np.inf)
            violations[each] = 0.0  # no violation at all
            total = logsumexp(violations / warmth, axis=1)
            coef = self.weights[rows][:, None] * scale * np.exp(violations / warmth - total[:, None])
            coef[each] = 0.0
            coef[each] = -coef.sum(axis=1)
            slack[rows] = warmth * total
            if by_order:
                order_slopes[:, rows] = (coef * found.by_order()).sum(axis=2)
            return np.asarray(found.weigh(starts, coef))

        slope = oracle.visit_cells(w, visit)
        value = 0.5 * self.penalty * float(w @ w) + float(self.weights @ slack)
        return Derivatives(value, self.penalty * w + slope, order_slopes.sum(axis=1))


@dataclass
class HeldOutFold:
    """A part of the samples to learn from, and one to measure: called with orders, the held-out risk and its gradient.

    The weights of the last call are where the next one begins.
    """

    train: Any
    test: Any
    weights: Array
    rescaling: str
    w: Array
    n_jobs: int | None = None

    def __call__(self, orders: tuple[float, ...]) -> tuple[float, Array]:
        n = self.test.n_samples
        with parallel(self.train, self.n_jobs) as train, parallel(self.test, self.n_jobs) as test:
            objective = SmoothMargins(train, self.weights, self.rescaling)
            self.w = minimise(lambda w: objective(w, orders)[:2], self.w)
            risk = SmoothMargins(test, np.full(n, 1 / n), self.rescaling, penalty=0.0)(self.w, orders, by_order=True)
            move = solve_curvature(lambda w: objective(w, orders).by_weights, self.w, risk.by_weights)
            change = differ(lambda w: objective(w, orders, by_order=True).by_order, self.w, move)
        return risk.value, risk.by_order - change


def minimise(function: Function, w: Array) -> Array:
    """The weights at the end of a descent by L-BFGS."""
    point = begin(function, w)
    for _ in range(MAX_STEPS):
        if point.is_stuck or 0.5 * point.slope**2 <= STATIONARY * abs(point.value):
            break
        point = step(function, point)
    return point.w


def solve_curvature(gradient: Any, w: Array, right: Array) -> Array:
    """``[∂²F/∂w²]⁻¹ right`` by conjugate gradients; products with the Hessian are differences of gradients.

    >>> curvature = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> solve_curvature(lambda w: curvature @ w, np.zeros(2), np.array([3.0, 4.0])).round(6)
    array([1., 1.])
    """
    hessian = LinearOperator((w.size, w.size), lambda v: differ(gradient, w, np.ravel(v)), dtype=np.float64)
    found, steps = cg(hessian, right, rtol=RESIDUAL, maxiter=MAX_CONJUGATE)
    if steps:
        rest = float(np.linalg.norm(hessian @ found - right) / np.linalg.norm(right))
        warnings.warn(
            f"the gradient by alpha is not precise: after {steps} steps of conjugate gradients {100 * rest:.2g} % are "
            "left; lower C, or scale the features",
            ConvergenceWarning,
            stacklevel=2,
        )
    return np.asarray(found)


def differ(function: Any, w: Array, direction: Array) -> Array:
    """The derivative of a function of the weights along a direction, by a central difference."""
    length = float(np.linalg.norm(direction))
    if length == 0:
        return np.zeros_like(function(w))
    move = MOVE * max(1.0, float(np.linalg.norm(w))) / length
    return np.asarray((function(w + move * direction) - function(w - move * direction)) / (2 * move))

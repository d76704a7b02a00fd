"""The objective of min-entropy models, and the convex models of it that trust regions and CCCP minimise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.kernels import kernel
from tacit.oracle.cell_sums import choose_rivals
from tacit.oracle.renyi import renyi_cells, renyi_weights


@dataclass(frozen=True)
class EntropyMargins:
    """``½‖w‖² + Σ_i c_i ξ_i`` with ``ξ_i = max(0, max_{y ≠ y_i} [Δ(y_i, y) + R_α(y)] − R_α(y_i))``.

    The margin is against other labels alone: ξ_i ≥ 0 is a constraint of its own (Kumar 2013, eq. 3.9).
    """

    oracle: Any
    weights: Array
    alpha: float

    def __call__(self, w: Array) -> tuple[float, Array]:
        found = self.oracle.renyi_slacks(w, self.weights, self.alpha)
        return 0.5 * float(w @ w) + float((self.weights * found.value).sum()), w + found.features

    def slack(self, w: Array) -> Array:
        """ξ_i(w) of every sample."""
        value: Array = self.oracle.renyi_slacks(w, np.zeros(self.weights.size), self.alpha).value
        return value

    def of(self, oracle: Any, weights: Array) -> EntropyMargins:
        """The same objective of other samples, or with other hidden values known."""
        return EntropyMargins(oracle, weights, self.alpha)


class LinearModel:
    """The risk Σ c_i ξ_i with every R_α(y) replaced by its tangent at ``w``: convex, and exact at ``w``.

    The weights of all cells are kept: memory grows with their number.
    """

    def __init__(self, margins: EntropyMargins, w: Array) -> None:
        oracle = margins.oracle
        self.margins = margins
        self.labels, self.losses = oracle.known_labels(), oracle.label_losses(None, oracle.offsets)
        n_labels = self.losses.shape[1]
        self.tangents = np.empty((n_labels, int(oracle.offsets[-1])))
        self.constants = np.empty((oracle.n_samples, n_labels))
        oracle.visit_cells(w, self._begin)

    def _begin(self, scores: Array, starts: Array, rows: Rows) -> None:
        oracle = self.margins.oracle
        scores = oracle.rule_out(scores, rows, starts)
        found = renyi_cells(scores, starts, self.margins.alpha)
        V = renyi_weights(found, starts, np.ones(found.values.shape))
        linear = np.empty(found.values.shape)
        _sum_weighted(scores, starts, V, linear)
        self.tangents[:, oracle.states(rows)] = V
        self.constants[rows] = np.where(np.isfinite(found.values), found.values - linear, -np.inf)

    def __call__(self, w: Array) -> tuple[float, Array]:
        """The modelled risk and a subgradient."""
        slack = np.empty(self.labels.size)

        def visit(scores: Array, starts: Array, rows: Rows) -> Array:
            V = np.ascontiguousarray(self.tangents[:, self.margins.oracle.states(rows)])
            linear = np.empty((starts.size - 1, V.shape[0]))
            _sum_weighted(scores, starts, V, linear)
            weights = self.margins.weights[rows]
            values = linear + self.constants[rows]
            slack[rows], _, coef = choose_rivals(values, self.losses[rows], self.labels[rows], weights)
            return np.asarray(V * np.repeat(coef, np.diff(starts), axis=0).T)

        slope = self.margins.oracle.visit_cells(w, visit)
        return float((self.margins.weights * slack).sum()), slope


class ConvexModel:
    """The risk with only its concave parts replaced by their tangents at ``w``: convex, above the risk, exact at ``w``.

    ``R_α = P − N`` with ``P = log Σ exp(p s) / |α − 1|`` and ``N = log Σ exp(q s) / |α − 1|``, both convex; p, q are
    α, 1 for α > 1 and 1, α below. A rival label keeps P and has N replaced, the true one the other way round. At α = 1
    and α = ∞ there is no such difference.
    """

    def __init__(self, margins: EntropyMargins, w: Array) -> None:
        oracle, alpha = margins.oracle, margins.alpha
        self.margins = margins
        self.powers = (alpha, 1.0) if alpha > 1 else (1.0, alpha)
        self.labels, self.losses = oracle.known_labels(), oracle.label_losses(None, oracle.offsets)
        n_labels = self.losses.shape[1]
        self.tangents = np.empty((n_labels, int(oracle.offsets[-1])))
        self.constants = np.empty((oracle.n_samples, n_labels))
        oracle.visit_cells(w, self._begin)

    def _begin(self, scores: Array, starts: Array, rows: Rows) -> None:
        oracle = self.margins.oracle
        scores = oracle.rule_out(scores, rows, starts)
        powers = self._powers(self.labels[rows], scores.shape[0], is_tangent=True)
        values, V = self._sum_powers(scores, starts, powers)
        linear = np.empty(values.shape)
        _sum_weighted(scores, starts, V, linear)
        self.tangents[:, oracle.states(rows)] = V
        self.constants[rows] = np.where(np.isfinite(values), values - linear, 0.0)

    def __call__(self, w: Array) -> tuple[float, Array]:
        """The modelled risk and a subgradient."""
        slack = np.empty(self.labels.size)

        def visit(scores: Array, starts: Array, rows: Rows) -> Array:
            oracle, labels = self.margins.oracle, self.labels[rows]
            scores = oracle.rule_out(scores, rows, starts)
            T = np.ascontiguousarray(self.tangents[:, oracle.states(rows)])
            linear = np.empty((starts.size - 1, T.shape[0]))
            _sum_weighted(scores, starts, T, linear)
            values, V = self._sum_powers(scores, starts, self._powers(labels, T.shape[0]))
            values = values - linear - self.constants[rows]
            places = np.arange(labels.size)
            values[places, labels] *= -1  # of the true label, N − tangent of P: what is subtracted
            weights = self.margins.weights[rows]
            slack[rows], _, coef = choose_rivals(values, self.losses[rows], labels, weights)
            coef[places, labels] *= -1
            return np.asarray((V - T) * np.repeat(coef, np.diff(starts), axis=0).T)

        slope = self.margins.oracle.visit_cells(w, visit)
        return float((self.margins.weights * slack).sum()), slope

    def _powers(self, labels: Array, n_labels: int, is_tangent: bool = False) -> Array:
        """(n, labels): p for rivals and q for the true label; the other way round for what tangents replace."""
        rival, own = self.powers[::-1] if is_tangent else self.powers
        powers = np.full((labels.size, n_labels), rival)
        powers[np.arange(labels.size), labels] = own
        return powers

    def _sum_powers(self, scores: Array, starts: Array, powers: Array) -> tuple[Array, Array]:
        """log Σ exp(power · s) / |α − 1| by sample and label, and the weights of its gradient by cell."""
        values, weights = np.empty(powers.shape), np.zeros(scores.shape)
        _log_sums(scores, starts, powers, abs(self.margins.alpha - 1), values, weights)
        return values, weights


@kernel
def _log_sums(scores: Array, starts: Array, powers: Array, share: float, values: Array, weights: Array) -> None:
    """``log Σ exp(powers[i, label] · s) / share`` by sample and label, and the weights of its gradient by cell."""
    base = starts[0]
    for k in range(scores.shape[0]):
        row, into = scores[k], weights[k]
        for i in range(starts.size - 1):
            power = powers[i, k]
            first, last = starts[i] - base, starts[i + 1] - base
            top = -np.inf
            for j in range(first, last):
                top = row[j] if row[j] > top else top
            values[i, k] = -np.inf
            if top == -np.inf:
                continue
            total = 0.0
            for j in range(first, last):
                into[j] = math.exp(power * (row[j] - top))
                total += into[j]
            for j in range(first, last):
                into[j] *= power / (total * share)
            values[i, k] = (power * top + math.log(total)) / share


@kernel
def _sum_weighted(scores: Array, starts: Array, V: Array, out: Array) -> None:
    """``out[i, label] = Σ_h V · score`` over the states of sample i; cells of weight 0 do not count, −inf or not."""
    base = starts[0]
    for k in range(scores.shape[0]):
        for i in range(starts.size - 1):
            total = 0.0
            for j in range(starts[i] - base, starts[i + 1] - base):
                if V[k, j] != 0.0:
                    total += V[k, j] * scores[k, j]
            out[i, k] = total

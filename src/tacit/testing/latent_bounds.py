"""How far a latent objective is from its global optimum: a lower bound on small problems, every output written out.

The objective is ``F(w) = ½‖w‖² + Σ_i c_i ξ_i(w)``, ``ξ_i = max_a [ℓ_i(a) + w·Ψ_i(a)] − max_h w·Ψ_i(h)``, h being the
outputs with the true label. The second maximum is not convex. Each sample gets a share α_i of the penalty and weights
of its own, which multipliers u_i with Σ u_i = 0 pull together:

``min F ≥ Σ_i min_h min_w [½ α_i ‖w‖² + u_i·w + c_i (max_a [ℓ_i(a) + w·Ψ_i(a)] − w·Ψ_i(h))]``.

This replaces the terms of a sample by their convex envelope. The inner minimum is bounded by its dual, whose variables
need not be optimal, and the multipliers need not be either: every number is a valid bound. Subgradient steps raise it,
and a branch-and-bound search over sets of hidden values raises it further, to the optimum if there is time.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.testing.enumeration import bracket_optimum

INNER_STEPS = 25
"""Steps of accelerated projected gradients on the dual of the samples, per step of the multipliers."""

PATIENCE = 10
"""After so many steps of the multipliers without a better bound, their length is halved."""


class LatentBracket(NamedTuple):
    """``bound`` ≤ min F ≤ ``objective``, the second the value of F at ``w``; and how many nodes were searched."""

    bound: float
    objective: float
    w: Array
    n_nodes: int

    @property
    def gap(self) -> float:
        return self.objective - self.bound


class LatentTable:
    """All outputs of a small latent problem: features, losses, and which have the true label, one array per sample.

    Parameters
    ----------
    features : for each sample (outputs, d), the Ψ_i(a)
    losses : for each sample (outputs,), the ℓ_i(a)
    is_true : for each sample (outputs,), whether an output has the true label
    weights : (n,) the c_i
    """

    def __init__(
        self, features: Sequence[Array], losses: Sequence[Array], is_true: Sequence[Array], weights: Array
    ) -> None:
        n, size, d = len(features), max(len(rows) for rows in features), features[0].shape[1]
        self.weights = np.asarray(weights, dtype=np.float64)
        self.features = np.zeros((n, size, d))
        self.losses, self.exists = np.zeros((n, size)), np.zeros((n, size), dtype=bool)
        self.is_true = np.zeros((n, size), dtype=bool)
        for i, (rows, loss, true) in enumerate(zip(features, losses, is_true, strict=True)):
            own = slice(0, len(rows))
            self.features[i, own], self.losses[i, own], self.is_true[i, own] = rows, loss, true
            self.exists[i, own] = True
        self.gram = self.features @ self.features.transpose(0, 2, 1)
        highest = np.linalg.eigvalsh(self.gram)[:, -1]
        self.lengths = n * self.weights**2 * np.maximum(highest, 1e-12)  # of the gradient of the dual, α_i = 1/n

    def objective(self, w: Array) -> float:
        """F at w."""
        return float(0.5 * w @ w + self.weights @ self._slack(w)[0])

    def _slack(self, w: Array) -> tuple[Array, Array]:
        scores = self.features @ w
        best = np.where(self.exists, self.losses + scores, -np.inf).max(axis=1)
        true = np.where(self.is_true, scores, -np.inf)
        return best - true.max(axis=1), true.argmax(axis=1)

    def solve(self, hidden: Array) -> tuple[float, float, Array]:
        """Bound, objective and weights of the convex task with one true output per sample."""
        rows = np.arange(len(hidden))
        differences = self.features[rows, hidden][:, None] - self.features
        own = [(differences[i, self.exists[i]], self.losses[i, self.exists[i]]) for i in rows]
        found = bracket_optimum([one for one, _ in own], [loss for _, loss in own], self.weights, precision=1e-6)
        return found.bound, found.objective, found.w


class _Node(NamedTuple):
    """A part of the search: the true outputs that are allowed, its bound, the multipliers and dual variables."""

    allowed: Array
    bound: float
    u: Array
    mu: Array


def bracket_latent(table: LatentTable, w: Array, *, max_nodes: int = 1, max_steps: int = 200) -> LatentBracket:
    """A lower bound on the latent objective of all w, and the lowest objective that was seen.

    Parameters
    ----------
    table : all outputs
    w : weights to begin with, such as those of a fit
    max_nodes : nodes of the search; 1 is the bound without branching
    max_steps : steps of the multipliers per node

    >>> bags = [np.array([[1.0], [-1.0], [0.0]]), np.array([[2.0], [1.0], [0.0]])]
    >>> losses, is_true = [np.array([0.0, 0.0, 1.0])] * 2, [np.array([True, True, False])] * 2
    >>> table = LatentTable(bags, losses, is_true, np.full(2, 1.0))
    >>> found = bracket_latent(table, np.zeros(1), max_nodes=20)
    >>> found.bound <= 0.5 <= found.objective, round(found.gap, 3)
    (True, 0.0)
    """
    best_w = np.asarray(w, dtype=np.float64)
    best = table.objective(best_w)
    root = _begin(table, best_w)
    root, best, best_w = _raise_bound(table, root, best, best_w, max_steps)
    queue: list[tuple[float, int, _Node]] = [(root.bound, 0, root)]
    n_nodes, closed = 1, np.inf
    while queue and n_nodes < max_nodes and queue[0][0] < best - 1e-6 * abs(best):
        node = heapq.heappop(queue)[2]
        for allowed in _split(table, node):
            n_nodes += 1
            if (allowed.sum(axis=1) == 1).all():  # convex: solved as a whole
                bound, objective, found = table.solve(allowed.argmax(axis=1))
                value = table.objective(found)
                if min(objective, value) < best:
                    best, best_w = value, found
                closed = min(closed, max(bound, node.bound))
                continue
            child = node._replace(allowed=allowed)
            child, best, best_w = _raise_bound(table, child, best, best_w, max_steps)
            heapq.heappush(queue, (child.bound, n_nodes, child))
    bound = min([closed, best, *(entry[0] for entry in queue)])
    return LatentBracket(bound, best, best_w, n_nodes)


def _begin(table: LatentTable, w: Array) -> _Node:
    """The root: multipliers by which the samples agree on w, where they have the hidden values of w."""
    n, size, _ = table.features.shape
    scores = np.where(table.exists, table.losses + table.features @ w, -np.inf)
    hidden = table._slack(w)[1]
    mu = np.zeros((n, size, size))
    mu[np.arange(n), :, scores.argmax(axis=1)] = 1.0
    rows = np.arange(n)
    pull = table.weights[:, None] * (table.features[rows, scores.argmax(axis=1)] - table.features[rows, hidden])
    u = -(w / n + pull)
    return _Node(table.is_true.copy(), -np.inf, u - u.mean(axis=0), mu)


def _raise_bound(
    table: LatentTable, node: _Node, best: float, best_w: Array, max_steps: int
) -> tuple[_Node, float, Array]:
    """The node with a better bound, after steps of the multipliers; and the lowest objective seen."""
    u, mu, share, since = node.u, node.mu, 1.0, 0
    found = node
    for _ in range(max_steps):
        values, own, mu = _minimise_samples(table, node.allowed, u, mu)
        bound, mean = float(values.sum()), own.mean(axis=0)
        objective = table.objective(mean)
        if objective < best:
            best, best_w = objective, mean
        since += 1
        if bound > found.bound:
            found, since = _Node(node.allowed, bound, u, mu), 0
        elif since >= PATIENCE:
            share, since, u = 0.5 * share, 0, found.u
        slope = own - mean
        length = float((slope**2).sum())
        if found.bound >= best - 1e-6 * abs(best) or length < 1e-18 or share < 1e-3:
            break
        u = u + share * (best - bound) / length * slope
    return found, best, best_w


def _minimise_samples(table: LatentTable, allowed: Array, u: Array, mu: Array) -> tuple[Array, Array, Array]:
    """Lower bounds on the terms of all samples, the weights at which each is attained, and the dual variables.

    For each sample and true output h: max over μ in the simplex of ``c ℓ·μ − ‖u + c (Ψᵀμ − Ψ(h))‖² / 2α``.
    """
    n, c = len(table.weights), table.weights[:, None]
    scale = float(n)
    linear = np.einsum("iad,id->ia", table.features, u)
    fixed = c[:, :, None] * table.losses[:, None] - scale * c[:, :, None] * (
        linear[:, None, :] - c[:, :, None] * table.gram
    )

    def gradient(point: Array) -> Array:
        return np.asarray(fixed - scale * c[:, :, None] ** 2 * (point @ table.gram))

    momentum, ahead = 1.0, mu
    step = 1 / table.lengths[:, None, None]
    for _ in range(INNER_STEPS):
        after = _project(ahead + step * gradient(ahead), table.exists)
        following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead = after + (momentum - 1) / following * (after - mu)
        mu, momentum = after, following
    norm = (
        (u**2).sum(axis=1)[:, None]
        + 2 * c * (np.einsum("iha,ia->ih", mu, linear) - linear)
        + c**2
        * (
            np.einsum("iha,iha->ih", mu @ table.gram, mu)
            - 2 * np.einsum("iha,iha->ih", mu, table.gram)
            + np.einsum("ihh->ih", table.gram)
        )
    )
    values = c * np.einsum("iha,ia->ih", mu, table.losses) - 0.5 * scale * norm
    values = np.where(allowed, values, np.inf)
    rows, hidden = np.arange(n), values.argmin(axis=1)
    mixed = np.einsum("ia,iad->id", mu[rows, hidden], table.features)
    own = -scale * (u + c * (mixed - table.features[rows, hidden]))
    return values[rows, hidden], own, mu


def _project(points: Array, exists: Array) -> Array:
    """The nearest points of the simplex over the outputs that exist."""
    points = np.where(exists[:, None], points, -np.inf)
    ordered = -np.sort(-points, axis=-1)
    sums = np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=-1) - 1
    counts = np.arange(1, points.shape[-1] + 1)
    n_positive = (ordered * counts > sums).sum(axis=-1, keepdims=True)
    threshold = np.take_along_axis(sums, n_positive - 1, axis=-1) / n_positive
    return np.asarray(np.maximum(points - threshold, 0.0))


def _split(table: LatentTable, node: _Node) -> list[Any]:
    """Two parts of a node: the sample whose terms disagree most takes the output that is best now, or one of others."""
    values, own, _ = _minimise_samples(table, node.allowed, node.u, node.mu)
    w = own.mean(axis=0)
    scores = table.features @ w
    best = np.where(table.exists, table.losses + scores, -np.inf).max(axis=1)
    true = np.where(node.allowed, scores, -np.inf)
    terms = 0.5 * (w @ w) / len(own) + node.u @ w + table.weights * (best - true.max(axis=1))
    gaps = np.where(node.allowed.sum(axis=1) > 1, terms - values, -np.inf)
    i = int(gaps.argmax())
    h = int(true[i].argmax())
    one, others = node.allowed.copy(), node.allowed.copy()
    one[i] = False
    one[i, h] = True
    others[i, h] = False
    return [one, others]

"""The best labels of regions: one minimum cut for two labels, messages for more; within limits of area."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array, states_of
from tacit.problems.graph import inference
from tacit.problems.graph.inference import Pairs, Shape, ends
from tacit.problems.graph.min_cut import cut_graphs

BISECTIONS = 25
"""Trials of the price of a label: each is one cut of the images that are not within their limits yet."""
ROUNDS = 3
"""Passes over the labels where there are more than two: the price of one changes the shares of others."""
ROOM = 1e-9
"""Tolerance of limits, for rounding of areas."""


def best_labels(graphs: Shape, scores: Array, costs: Array) -> Array:
    """The labels that maximise ``Σ_r scores[r, l_r] − Σ_e costs[e] [l_a ≠ l_b]``, for costs that are not negative.

    Exact for two labels (Greig et al. 1989), where ties go to the first label. For more labels the best that messages
    and search find, see `tacit.problems.graph.inference`. A score of −inf rules a label out; one label must be left.

    >>> graphs = Shape.of(np.array([0, 3]), np.array([0, 2]), np.array([[0, 1], [1, 2]]))
    >>> scores = np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 3.0]])
    >>> best_labels(graphs, scores, np.full(2, 1.0)), best_labels(graphs, scores, np.full(2, 0.1))
    (array([1, 1, 1]), array([1, 0, 1]))
    """
    k = scores.shape[1]
    if k == 1:
        return np.zeros(len(scores), dtype=np.int64)
    if k == 2:
        return _cut(graphs, _difference(scores, costs), costs, costs)
    return inference.best_labels(graphs, np.array(scores), Pairs.potts(costs, k)).labels


def _difference(scores: Array, costs: Array) -> Array:
    """Score of the second label minus the first; where one is ruled out, a number that outweighs all others."""
    ruled_out = ~np.isfinite(scores)
    if not ruled_out.any():
        return np.ascontiguousarray(scores[:, 1] - scores[:, 0])
    finite = np.where(ruled_out, 0.0, scores)
    most = 1.0 + float(np.abs(finite).sum() + costs.sum())
    return np.where(ruled_out[:, 1], -most, np.where(ruled_out[:, 0], most, finite[:, 1] - finite[:, 0]))


def _cut(graphs: Shape, gains: Array, ahead: Array, back: Array) -> Array:
    taken = np.empty(len(gains), dtype=np.int64)
    cut_graphs(graphs.starts, graphs.edge_starts, graphs.edges, gains, ahead, back, taken)
    return taken


def label_values(graphs: Shape, scores: Array, costs: Array, labels: Array) -> Array:
    """The sum that `best_labels` maximises, of every image, for these labels."""
    a, b = ends(graphs)
    images = np.repeat(np.arange(len(graphs.starts) - 1), np.diff(graphs.edge_starts))
    lost = np.bincount(images, costs * (labels[a] != labels[b]), len(graphs.starts) - 1)
    return np.asarray(np.add.reduceat(scores[np.arange(len(labels)), labels], graphs.starts[:-1]) - lost)


def violations(shares: Array, labels: Array, starts: Array, limits: Array) -> Array:
    """By how much the worst label of every image misses its limits; 0 where all are met."""
    covered = cover(shares, labels, starts, limits.shape[1])
    miss = np.maximum(limits[:, :, 0] - covered, covered - limits[:, :, 1]).max(axis=1)
    return np.where(miss > ROOM, miss, 0.0)


def cover(shares: Array, labels: Array, starts: Array, k: int) -> Array:
    """(images, labels): the share of every label."""
    images = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    flat = np.bincount(images * k + labels, shares, (len(starts) - 1) * k)
    return np.asarray(flat.reshape(-1, k))


def best_within_limits(graphs: Shape, scores: Array, costs: Array, shares: Array, limits: Array) -> Array:
    """Labels of a high score whose shares meet the limits, or come as near as was found.

    Where the best labels do not meet them, a label gets a price per area (the Lagrange multiplier of its limit), found
    by bisection. With two labels, the labels for each price are the best of their share. Shares that no price leads to
    are reached by changing single regions, those that cost least per area first.
    """
    labels = best_labels(graphs, scores, costs)
    limits = _join_limits(limits)
    n, k = limits.shape[:2]
    prices = np.zeros((n, k))
    for _ in range(ROUNDS if k > 2 else 1):
        for label in range(1 if k == 2 else 0, k):
            covered, (low, high) = cover(shares, labels, graphs.starts, k)[:, label], limits[:, label].T
            missing = np.flatnonzero((covered < low - ROOM) | (covered > high + ROOM))
            if missing.size:
                _set_price(graphs, scores, costs, shares, limits, label, missing, prices, labels)
        if not violations(shares, labels, graphs.starts, limits).any():
            break
    for i in np.flatnonzero(violations(shares, labels, graphs.starts, limits)):
        own = slice(graphs.starts[i], graphs.starts[i + 1])
        labels[own] = _move_single_regions(labels[own], scores[own], shares[own], limits[i])
    return labels


def _join_limits(limits: Array) -> Array:
    """For two labels, the limits of the first as limits of the second, and the tighter of both."""
    if limits.shape[1] != 2:
        return limits
    joined = limits.copy()
    joined[:, 1, 0] = np.maximum(limits[:, 1, 0], 1 - limits[:, 0, 1])
    joined[:, 1, 1] = np.minimum(limits[:, 1, 1], 1 - limits[:, 0, 0])
    joined[:, 0] = 1 - joined[:, 1, ::-1]
    return joined


def _set_price(
    graphs: Shape,
    scores: Array,
    costs: Array,
    shares: Array,
    limits: Array,
    label: int,
    images: Array,
    prices: Array,
    labels: Array,
) -> None:
    """Find the price of a label that brings these images within their limits; ``prices`` and ``labels`` change."""
    starts = graphs.starts
    is_low = cover(shares, labels, starts, limits.shape[1])[images, label] < limits[images, label, 0]
    near, far = prices[images, label].copy(), _highest_prices(graphs, scores, costs, shares, images)
    far = np.where(is_low, far, -far)
    part, rows, pairs = _select_images(graphs, images)
    best, bound = labels[rows].copy(), limits[images, label]
    owner = np.repeat(np.arange(images.size), np.diff(part.starts))
    reached, mark = np.zeros(images.size, dtype=bool), far.copy()
    for _ in range(BISECTIONS):
        trial = 0.5 * (near + far)
        priced = scores[rows] + shares[rows, None] * prices[images][owner]
        priced[:, label] = scores[rows, label] + shares[rows] * trial[owner]
        found = best_labels(part, priced, costs[pairs])
        covered = np.bincount(owner, shares[rows] * (found == label), images.size)
        enough = np.where(is_low, covered >= bound[:, 0] - ROOM, covered <= bound[:, 1] + ROOM)
        within = enough & (covered >= bound[:, 0] - ROOM) & (covered <= bound[:, 1] + ROOM)
        take = within | (enough & ~reached)
        best = np.where(take[owner], found, best)
        reached |= within
        mark = np.where(take, trial, mark)
        near, far = np.where(enough, near, trial), np.where(enough, trial, far)
        if np.all(np.abs(far - near) <= 1e-6 * np.abs(far)):
            break
    labels[rows] = best
    prices[images, label] = mark


def _highest_prices(graphs: Shape, scores: Array, costs: Array, shares: Array, images: Array) -> Array:
    """A price per area at which every region takes, or leaves, a label."""
    a, b = ends(graphs)
    held = np.bincount(a, costs, len(scores)) + np.bincount(b, costs, len(scores))
    finite = np.where(np.isfinite(scores), scores, np.nan)
    span = np.nanmax(finite, axis=1) - np.nanmin(finite, axis=1)
    return np.asarray(1e-9 + np.maximum.reduceat((span + held) / shares, graphs.starts[:-1])[images]) * 1.01


def _select_images(graphs: Shape, images: Array) -> tuple[Shape, Array, Array]:
    """The graphs of some images, and their regions and pairs."""
    rows, starts = states_of(graphs.starts, images)
    pairs, edge_starts = states_of(graphs.edge_starts, images)
    return graphs.select(rows, pairs, images, starts, edge_starts), rows, pairs


def _move_single_regions(labels: Array, scores: Array, shares: Array, limits: Array) -> Array:
    """The labels of one image, single regions changed until all limits are met, or no change improves that."""
    labels, k = labels.copy(), limits.shape[0]
    every = np.arange(labels.size)
    for _ in range(2 * labels.size):
        covered = np.bincount(labels, shares, k)
        miss = np.maximum(limits[:, 0] - covered, covered - limits[:, 1])
        worst = int(np.argmax(miss))
        if miss[worst] <= ROOM:
            break
        best = (np.inf, 0, 0)
        targets = [worst] if covered[worst] < limits[worst, 0] else [j for j in range(k) if j != worst]
        for j in targets:
            able = labels != j if j == worst else labels == worst
            after = (
                covered[None, :]
                - shares[:, None] * (labels[:, None] == np.arange(k))
                + np.where(np.arange(k) == j, shares[:, None], 0.0)
            )
            nearer = np.maximum(limits[:, 0] - after, after - limits[:, 1]).max(axis=1) < miss[worst] - ROOM
            able &= nearer & np.isfinite(scores[:, j])
            if able.any():
                price = np.where(able, (scores[every, labels] - scores[:, j]) / shares, np.inf)
                r = int(np.argmin(price))
                best = min(best, (float(price[r]), r, j))
        if not np.isfinite(best[0]):
            break
        labels[best[1]] = best[2]
    return labels

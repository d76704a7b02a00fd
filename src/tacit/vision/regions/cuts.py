"""The best labels of regions: one minimum cut for two labels, alpha-expansion for more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.vision.regions import kernels

MAX_SWEEPS = 20
"""Sweeps of alpha-expansion over all labels, at the most; three to five are usual."""


class Graphs(NamedTuple):
    """The pairs of neighbours of some images: ``starts`` and ``edge_starts`` cut regions and pairs into images."""

    starts: Array
    edge_starts: Array
    edges: Array

    @property
    def ends(self) -> tuple[Array, Array]:
        """The two regions of every pair, counted over all images."""
        shift = np.repeat(self.starts[:-1], np.diff(self.edge_starts))
        return self.edges[:, 0] + shift, self.edges[:, 1] + shift


def best_labels(graphs: Graphs, scores: Array, costs: Array) -> Array:
    """The labels that maximise ``Σ_r scores[r, l_r] − Σ_e costs[e] [l_a ≠ l_b]``, for costs that are not negative.

    Exact for two labels (Greig et al. 1989), where ties go to the first label. For more labels alpha-expansion (Boykov,
    Veksler & Zabih 2001): the sum of what is lost on regions and on pairs is at most twice the least possible, and no
    step to one label, for any set of regions, is better. Scores of −inf rule a label out; one must be left.

    >>> graphs = Graphs(np.array([0, 3]), np.array([0, 2]), np.array([[0, 1], [1, 2]]))
    >>> scores = np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 3.0]])
    >>> best_labels(graphs, scores, np.full(2, 1.0)), best_labels(graphs, scores, np.full(2, 0.1))
    (array([1, 1, 1]), array([1, 0, 1]))
    """
    k = scores.shape[1]
    if k == 1:
        return np.zeros(len(scores), dtype=np.int64)
    if k == 2:
        return _cut(graphs, _difference(scores, costs), costs, costs)
    return _expand(graphs, scores, costs)


def _difference(scores: Array, costs: Array) -> Array:
    """What the second label gains; where one is ruled out, more than all else can outweigh."""
    ruled_out = ~np.isfinite(scores)
    if not ruled_out.any():
        return np.ascontiguousarray(scores[:, 1] - scores[:, 0])
    finite = np.where(ruled_out, 0.0, scores)
    most = 1.0 + float(np.abs(finite).sum() + costs.sum())
    return np.where(ruled_out[:, 1], -most, np.where(ruled_out[:, 0], most, finite[:, 1] - finite[:, 0]))


def _cut(graphs: Graphs, gains: Array, ahead: Array, back: Array) -> Array:
    taken = np.empty(len(gains), dtype=np.int64)
    kernels.cut_graphs(graphs.starts, graphs.edge_starts, graphs.edges, gains, ahead, back, taken)
    return taken


def _expand(graphs: Graphs, scores: Array, costs: Array) -> Array:
    a, b = graphs.ends
    labels = scores.argmax(axis=1)
    rows = np.arange(len(labels))
    images = np.repeat(np.arange(len(graphs.starts) - 1), np.diff(graphs.starts))
    value = _values(graphs, scores, costs, labels)
    for _ in range(MAX_SWEEPS):
        before = labels
        for alpha in range(scores.shape[1]):
            own, apart = scores[rows, labels], labels[a] != labels[b]
            # of a pair, (take alpha at a, at b): none A, b only B, a only C, both 0
            A, B, C = costs * apart, costs * (labels[a] != alpha), costs * (labels[b] != alpha)
            gains = _difference(np.column_stack([own, scores[:, alpha]]), costs)
            gains -= np.bincount(a, C - A, len(gains)) - np.bincount(b, C, len(gains))
            taken = _cut(graphs, gains, np.zeros_like(costs), B + C - A)
            moved = np.where(taken == 1, alpha, labels)
            risen = _values(graphs, scores, costs, moved)
            better = risen > value + 1e-12 * np.abs(value)
            labels = np.where(better[images], moved, labels)
            value = np.where(better, risen, value)
        if np.array_equal(labels, before):
            break
    return np.asarray(labels)


def _values(graphs: Graphs, scores: Array, costs: Array, labels: Array) -> Array:
    """The maximised sum of every image."""
    a, b = graphs.ends
    images = np.repeat(np.arange(len(graphs.starts) - 1), np.diff(graphs.edge_starts))
    lost = np.bincount(images, costs * (labels[a] != labels[b]), len(graphs.starts) - 1)
    return np.asarray(np.add.reduceat(scores[np.arange(len(labels)), labels], graphs.starts[:-1]) - lost)

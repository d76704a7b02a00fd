"""The compiled steps of alpha-expansion, for the graphs of many images in one call, and sums of features of pairs."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def propose_expansion(
    starts: Array,
    edge_starts: Array,
    edges: Array,
    scores: Array,
    costs: Array,
    labels: Array,
    alpha: int,
    failures: Array,
    gains: Array,
    back: Array,
) -> None:
    """The cut that gives the label ``alpha`` to the best set of regions of every image: ``gains`` and ``back`` of
    `cut_graphs`, without ``ahead``.

    Nothing can be gained in an image without a region whose own change would pay if all pairs that it now divides
    became equal. Such images, and those where the last K labels failed, get a cut that takes nothing.
    """
    k = scores.shape[1]
    for i in range(starts.size - 1):
        base, most, hope = starts[i], 1.0, False
        for e in range(edge_starts[i], edge_starts[i + 1]):
            back[e] = 0.0
            most += costs[e]
        if failures[i] < k:
            for r in range(base, starts[i + 1]):
                gains[r] = 0.0
                if scores[r, alpha] > -np.inf:
                    most += abs(scores[r, alpha]) + abs(scores[r, labels[r]])
            for e in range(edge_starts[i], edge_starts[i + 1]):
                a, b = base + edges[e, 0], base + edges[e, 1]
                if labels[a] != labels[b]:
                    gains[a] += costs[e]
                    gains[b] += costs[e]
            for r in range(base, starts[i + 1]):
                if labels[r] != alpha and scores[r, alpha] - scores[r, labels[r]] + gains[r] > 0.0:
                    hope = True
        for r in range(base, starts[i + 1]):
            if not hope:
                gains[r] = -1.0
            elif scores[r, alpha] > -np.inf:
                gains[r] = scores[r, alpha] - scores[r, labels[r]]
            else:
                gains[r] = -most
        if hope:
            for e in range(edge_starts[i], edge_starts[i + 1]):
                a, b = base + edges[e, 0], base + edges[e, 1]
                # take alpha at (a, b): none costs A, b only B, a only C, both 0
                A = costs[e] if labels[a] != labels[b] else 0.0
                B = costs[e] if labels[a] != alpha else 0.0
                C = costs[e] if labels[b] != alpha else 0.0
                gains[a] -= C - A
                gains[b] += C
                back[e] = B + C - A


@kernel
def accept_expansion(
    starts: Array,
    edge_starts: Array,
    edges: Array,
    scores: Array,
    costs: Array,
    labels: Array,
    alpha: int,
    taken: Array,
    failures: Array,
) -> None:
    """Give ``alpha`` to the taken regions of every image whose score rises by that, in place; count the failures."""
    for i in range(starts.size - 1):
        base, old, new = starts[i], 0.0, 0.0
        for r in range(base, starts[i + 1]):
            old += scores[r, labels[r]]
            new += scores[r, alpha] if taken[r] == 1 else scores[r, labels[r]]
        for e in range(edge_starts[i], edge_starts[i + 1]):
            a, b = base + edges[e, 0], base + edges[e, 1]
            if labels[a] != labels[b]:
                old -= costs[e]
            if (alpha if taken[a] == 1 else labels[a]) != (alpha if taken[b] == 1 else labels[b]):
                new -= costs[e]
        failures[i] += 1
        if new > old + 1e-12 * abs(old):
            failures[i] = 0
            for r in range(base, starts[i + 1]):
                if taken[r] == 1:
                    labels[r] = alpha


@kernel
def add_contrasts(
    starts: Array, edge_starts: Array, edges: Array, values: Array, code: Array, coef: Array, out: Array
) -> None:
    """``out −= coef[i] · values[e]`` for every pair e of image i whose two regions differ in their label."""
    for i in range(starts.size - 1):
        for e in range(edge_starts[i], edge_starts[i + 1]):
            if code[starts[i] + edges[e, 0]] != code[starts[i] + edges[e, 1]]:
                for j in range(values.shape[1]):
                    out[j] -= coef[i] * values[e, j]

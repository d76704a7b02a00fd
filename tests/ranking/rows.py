"""Judged rows of several queries, and their triplets by a plain loop."""

import numpy as np


def judged_rows(seed, n_queries=12, grades=3, m=4, longest=9):
    """Rows of several queries, some of which have one row, or rows of one grade only."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, longest, n_queries)
    y = rng.integers(0, grades, group.sum())
    X = rng.standard_normal((group.sum(), m)) + 0.7 * y[:, None] * np.linspace(-1, 1, m)
    return X, y, group


def list_pairs(y, group):
    """Query, better row and worse row of every triplet, by a plain loop."""
    starts = np.concatenate([[0], np.cumsum(group)])
    return [
        (q, a, b)
        for q in range(len(group))
        for a in range(starts[q], starts[q + 1])
        for b in range(starts[q], starts[q + 1])
        if y[a] > y[b]
    ]

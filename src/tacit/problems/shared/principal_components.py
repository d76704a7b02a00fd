"""Principal components by one pass over blocks of samples: the same bits from memory and from files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from tacit.arrays import Array

SAMPLES_AT_A_TIME = 1024
"""Samples per block. It is part of the result: sums of other blocks round in another way."""


def sample_blocks(table: Any) -> Iterator[Array]:
    """The rows of a table, in memory or in shards, a block at a time."""
    n = table.shape[0]
    for first in range(0, n, SAMPLES_AT_A_TIME):
        last = min(first + SAMPLES_AT_A_TIME, n)
        yield np.asarray(table[first:last])
        if hasattr(table, "give_back"):
            table.give_back(first, last)


def principal_components(table: Any, kept: int) -> tuple[Array, Array]:
    """The mean of the rows of a table, and the (kept, d) directions of largest variance, in double precision.

    From the eigenvectors of the covariance, which is summed up block by block: O(n·d² + d³), and d² numbers of memory.
    The largest entry of every component is positive, as scikit-learn has it.
    """
    n, d = table.shape
    total, products = np.zeros(d), np.zeros((d, d))
    for rows in sample_blocks(table):
        block = rows.astype(np.float64)
        total += block.sum(axis=0)
        products += block.T @ block
    mean = total / n
    covariance = (products - n * np.outer(mean, mean)) / max(n - 1, 1)
    components = np.ascontiguousarray(linalg.eigh(covariance, driver="evr")[1][:, ::-1][:, :kept].T)
    largest = components[np.arange(kept), np.abs(components).argmax(axis=1)]
    return mean, components * np.sign(largest)[:, None]

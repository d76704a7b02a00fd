"""Principal components by one pass over blocks of samples: the same bits from memory, from files and from workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from tacit.data.arrays import Array
from tacit.runtime.threads import one_blas_thread

SAMPLES_AT_A_TIME = 1024
"""Samples per block. It is part of the result: sums of other blocks round in another way."""

BLOCKS_PER_SUM = 16
"""Blocks that are summed up before they are added to the rest: a sum of products is as large as a thousand samples, and
fewer of them come home from workers."""


class Moments(NamedTuple):
    """The sum of some rows, less one and the same row each, and that of the outer products of these differences."""

    total: Array
    products: Array


def sample_blocks(table: Any) -> Iterator[Array]:
    """The rows of a table, in memory or in shards, a block at a time."""
    n = table.shape[0]
    for first in range(0, n, SAMPLES_AT_A_TIME):
        last = min(first + SAMPLES_AT_A_TIME, n)
        yield np.asarray(table[first:last])
        if hasattr(table, "give_back"):
            table.give_back(first, last)


def sum_moments(table: Any, origin: Array) -> Moments:
    """The moments of all rows of a table that is one sum of blocks, measured from ``origin``."""
    d = table.shape[1]
    total, products = np.zeros(d), np.zeros((d, d))
    for rows in sample_blocks(table):
        block = np.ascontiguousarray(rows, np.float64) - origin
        total += block.sum(axis=0)
        products += block.T @ block
    return Moments(total, products)


def principal_components(table: Any, kept: int) -> tuple[Array, Array]:
    """The mean of the rows of a table, and the (kept, d) directions of largest variance, in double precision.

    From the eigenvectors of the covariance, which is summed up block by block: O(n·d² + d³), and d² numbers of memory.
    Rows are measured from the first one: squares of numbers that lie far from zero would drown what they differ by. The
    largest entry of every component is positive, as scikit-learn has it. A table whose rows are elsewhere has
    ``moments(size, origin)``, which sums them up there, so many rows at a time.
    """
    n, d = table.shape
    size = SAMPLES_AT_A_TIME * BLOCKS_PER_SUM
    total, products = np.zeros(d), np.zeros((d, d))
    first = table.first_row if hasattr(table, "first_row") else table[0:1]
    origin = np.asarray(first, dtype=np.float64).ravel()
    with one_blas_thread:  # several change the last bits
        for part in table.moments(size, origin) if hasattr(table, "moments") else _moments_here(table, size, origin):
            total += part.total
            products += part.products
        shift = total / n
        covariance = (products - n * np.outer(shift, shift)) / max(n - 1, 1)
        components = np.ascontiguousarray(linalg.eigh(covariance, driver="evr")[1][:, ::-1][:, :kept].T)
    largest = components[np.arange(kept), np.abs(components).argmax(axis=1)]
    return origin + shift, components * np.sign(largest)[:, None]


def _moments_here(table: Any, size: int, origin: Array) -> Iterator[Moments]:
    for first in range(0, table.shape[0], size):
        last = min(first + size, table.shape[0])
        yield sum_moments(table[first:last], origin)
        if hasattr(table, "give_back"):
            table.give_back(first, last)

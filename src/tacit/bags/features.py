"""Numbers of instances and of whole bags: scaled columns, statistics per bag, similarities to landmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.data.specs import table
from tacit.runtime.archive import storable

MAX_DEVIATIONS = 3.0
"""Scaled values beyond this are cut. Features with heavy tails would decide all distances between bags otherwise."""

BLOCK_CELLS = 1 << 22
"""Similarities that are in memory at a time."""

STATISTICS = ("mean", "deviation", "min", "max", "count")


@storable
@dataclass(frozen=True)
class Scaler:
    """Columns of mean 0 and standard deviation 1, cut at ±3. Sparse columns keep their zeros.

    A sparse column is divided by the root mean square of its entries that are not zero.

    Parameters
    ----------
    centre, scale : what is subtracted from every column, and what it is divided by then

    >>> Scaler.fit(np.array([[0.0], [2.0]]))(np.array([[3.0], [99.0]]))
    array([[2.],
           [3.]])
    """

    centre: Array
    scale: Array

    @classmethod
    def fit(cls, values: Any) -> Scaler:
        """The scaler of a table, dense or CSR."""
        if sparse.issparse(values):
            columns = values.tocsc()
            counts = np.maximum(np.diff(columns.indptr), 1)
            squares = np.asarray(columns.multiply(columns).sum(axis=0)).ravel()
            return cls(np.zeros(values.shape[1]), _not_zero(np.sqrt(squares / counts)))
        centre, scale = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
        return cls(centre, _not_zero(np.where(scale > 1e-12 * np.abs(centre), scale, 0.0)))

    def __call__(self, values: Any) -> Any:
        """The scaled table; a dense one becomes sparse if the scaler was fitted on a sparse one, and the reverse."""
        if sparse.issparse(values):
            if self.centre.any():
                return self(values.toarray())
            table = sparse.csr_array(values, dtype=np.float64, copy=True)
            table.data = np.clip(table.data / self.scale[table.indices], -MAX_DEVIATIONS, MAX_DEVIATIONS)
            return table
        return np.clip((values - self.centre) / self.scale, -MAX_DEVIATIONS, MAX_DEVIATIONS)

    def check(self) -> None:
        """Refuse what no fit could have made."""
        table(None)("centre", self.centre)
        table(self.centre.size)("scale", self.scale)
        if (self.scale <= 0).any():
            raise ValueError("scale must have positive numbers")


def bag_statistics(bags: Ragged, names: Sequence[str] = STATISTICS) -> Any:
    """Statistics of every column over the instances of a bag, side by side; the count is the logarithm of the size.

    Parameters
    ----------
    bags : with dense or sparse instances; those of sparse ones are sparse
    names : of "mean", "deviation", "min", "max" and "count"

    >>> bag_statistics(Ragged.from_list([[[1.0], [3.0]], [[5.0]]]), ["mean", "max"])
    array([[2., 3.],
           [5., 5.]])
    """
    made = _sparse_statistics(bags) if sparse.issparse(bags.values) else _dense_statistics(bags)
    parts = [made[name]() for name in names]
    if any(sparse.issparse(part) for part in parts):
        table = sparse.csr_array(sparse.hstack(parts, format="csr"))
        if max(table.nnz, *table.shape) < 2**31:  # trees of scikit-learn take no others
            table.indices, table.indptr = table.indices.astype(np.int32), table.indptr.astype(np.int32)
        return table
    return np.hstack(parts)


def count_columns(width: int, names: Sequence[str] = STATISTICS) -> int:
    """How many columns have statistics of this width; −1 for a width that none have."""
    count = int("count" in names)
    columns, rest = divmod(width - count, len(names) - count)
    return -1 if rest else columns


def _dense_statistics(bags: Ragged) -> dict[str, Callable[[], Any]]:
    values, starts, sizes = np.asarray(bags.values, dtype=np.float64), bags.offsets[:-1], bags.lengths[:, None]

    def mean() -> Any:
        return np.add.reduceat(values, starts) / sizes

    def deviation() -> Any:
        centred = values - np.repeat(mean(), bags.lengths, axis=0)
        return np.sqrt(np.add.reduceat(centred**2, starts) / sizes)

    return {
        "mean": mean,
        "deviation": deviation,
        "min": lambda: np.minimum.reduceat(values, starts),
        "max": lambda: np.maximum.reduceat(values, starts),
        "count": lambda: np.log(sizes),
    }


def _sparse_statistics(bags: Ragged) -> dict[str, Callable[[], Any]]:
    n, d = len(bags), bags.values.shape[1]
    rows = sparse.csr_array(bags.values, dtype=np.float64)
    bag_of_row = np.repeat(np.arange(n), bags.lengths)
    shares = sparse.csr_array((1.0 / bags.lengths[bag_of_row], (bag_of_row, np.arange(bag_of_row.size))))

    def mean() -> Any:
        return sparse.csr_array(shares @ rows)

    def deviation() -> Any:
        centre = mean()
        spread = sparse.csr_array(shares @ rows.multiply(rows) - centre.multiply(centre))
        spread.data = np.sqrt(np.maximum(spread.data, 0.0))
        return spread

    def extreme(best: Any) -> Any:
        cells = np.repeat(bag_of_row, np.diff(rows.indptr)) * d + rows.indices
        order = np.argsort(cells, kind="stable")
        values = rows.data[order]
        keys, starts, counts = np.unique(cells[order], return_index=True, return_counts=True)
        top = best.reduceat(values, starts) if values.size else values
        top = np.where(counts < bags.lengths[keys // d], best(top, 0.0), top)
        return sparse.csr_array((top, (keys // d, keys % d)), shape=(n, d))

    return {
        "mean": mean,
        "deviation": deviation,
        "min": lambda: extreme(np.minimum),
        "max": lambda: extreme(np.maximum),
        "count": lambda: sparse.csr_array(np.log(bags.lengths)[:, None]),
    }


def similarities(rows: Any, landmarks: Array, gamma: float) -> Array:
    """``exp(−gamma ‖a − b‖²)`` of every row and every landmark, (rows, landmarks)."""
    return np.exp(-gamma * squared_distances(rows, landmarks))


def squared_distances(rows: Any, landmarks: Array) -> Array:
    """Squared Euclidean distances of the rows of two tables, the first of them dense or sparse."""
    squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
    norms = np.asarray(squares.sum(axis=1)).reshape(-1, 1)
    return np.asarray(np.maximum(norms + (landmarks * landmarks).sum(axis=1) - 2 * (rows @ landmarks.T), 0.0))


def typical_distance(landmarks: Array) -> float:
    """The median of the squared distances between landmarks that differ, 1 if none do."""
    found = squared_distances(landmarks, landmarks)
    found = found[np.triu_indices(len(found), 1)]
    found = found[found > 1e-9]
    return float(np.median(found)) if found.size else 1.0


def whiten(landmarks: Array, gamma: float) -> Array:
    """A matrix M such that ``similarities(rows, landmarks, gamma) @ M`` are Nyström features of the RBF kernel."""
    values, vectors = np.linalg.eigh(similarities(landmarks, landmarks, gamma))
    kept = values > 1e-6 * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def cut_blocks(bags: Ragged, cells_per_row: int) -> Iterator[tuple[slice, Ragged]]:
    """Bags in blocks, whose rows have at most `BLOCK_CELLS` cells together, or one bag each."""
    most, first = max(BLOCK_CELLS // max(cells_per_row, 1), 1), 0
    while first < len(bags):
        last = int(np.searchsorted(bags.offsets, bags.offsets[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield slice(first, last), bags[first:last]
        first = last


def as_dense(rows: Any) -> Array:
    """A table as an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _not_zero(scale: Array) -> Array:
    return np.where(scale > 0, scale, 1.0)

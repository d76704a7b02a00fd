"""`Relevances`: elementary relevances of items for a query, by the similarities of several families of features.

A similarity has two forms, of listed pairs and of all pairs of two tables. Higher is more similar.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise

from tacit.data.arrays import Array, as_csr, first_non_finite
from tacit.data.kernels import kernel
from tacit.data.parameters import file_path, is_hashable, numbers, one_of, shorten
from tacit.data.specs import check_parameters, estimator, optional, parameter, positive, whole
from tacit.data.table import MappedArray
from tacit.oracle import checksum
from tacit.runtime.archive import storable

Tables = dict[str, Array]
"""The features of queries or items, one table per family."""

ALL = "features"
"""The name of the only family, where a table is not divided."""

MAX_NOTHING = 1e-300
"""Norms and sums below this count as zero."""


@storable
@estimator
class Relevances(BaseEstimator):  # type: ignore[misc]
    """Elementary relevance functions ``k_{q,a} ∈ R^m``: every similarity of every family of features is one.

    A ranker learns a weight for each. They are computed in blocks, in training only for the items of triplets; a
    queries × items × m array is made only if it fits the budget.

    Parameters
    ----------
    families : None for one family of all columns, or columns by name: ``{"colour": slice(0, 64), "shape": [64, 65]}``.
        Queries and items may also be dicts of tables; the families are then those tables, None for all of them
    similarities : names for every family, or names by family, out of "chi2" (−Σ (x−y)²/(x+y)), "intersection"
        (Σ min(x, y)), "rbf" (exp(−γ‖x−y‖²)), "cosine", "l1" and "l2" (negative distances)
    gamma : of "rbf"; None for 1 / number of columns
    budget : bytes that a block of relevances may take
    cache : a folder in which `blocks` stores what it computed, as .npy files; None stores nothing

    >>> relevances = Relevances({"left": [0], "right": [1]}, ["l1", "cosine"])
    >>> relevances.names([[0.0, 1.0]])
    ['left l1', 'left cosine', 'right l1', 'right cosine']
    >>> relevances.table([[0.0, 1.0]], [[2.0, 2.0], [1.0, 3.0]])[0]
    array([[-2.,  0., -1.,  1.],
           [-1.,  0., -2.,  1.]])
    """

    families: Any = None
    similarities: Any = ("cosine", "l1", "l2")
    _: KW_ONLY
    gamma: float | None = parameter(optional(positive), default=None)
    budget: int = parameter(whole(1000), default=256_000_000)
    cache: Any = None

    def check(self) -> None:
        """Refuse invalid parameters."""
        check_parameters(self)
        if self.cache is not None:
            file_path("cache", self.cache)
        by_family = self.similarities.values() if isinstance(self.similarities, Mapping) else [self.similarities]
        for names in by_family:
            if isinstance(names, str) or not isinstance(names, list | tuple) or not names:
                raise ValueError(f"similarities must be a list of names, or one by family, got {shorten(names)}")
            for name in names:
                one_of("a similarity", name, tuple(SIMILARITIES))

    def read(self, features: Any, name: str = "features") -> Tables:
        """Check features of queries or items and cut them into families."""
        self.check()
        if isinstance(features, Mapping):
            chosen = features if self.families is None else {key: features.get(key) for key in self._listed_families()}
            tables = {str(key): read_table(f"{name}[{shorten(key)}]", table) for key, table in chosen.items()}
        else:
            table = read_table(name, features)
            tables = {ALL: table} if self.families is None else self._split_families(table, name)
        if not tables or len({len(table) for table in tables.values()}) > 1:
            sizes = {key: len(table) for key, table in tables.items()}
            raise ValueError(f"{name} must have families with the same number of rows, got rows {shorten(sizes)}")
        for family, kind in self._functions(tables):
            if kind == "chi2" and tables[family].size and tables[family].min() < 0:
                raise ValueError(f"{name}: family {shorten(family)} has negative values, but chi2 needs counts; use l2")
        return tables

    def names(self, queries: Any) -> list[str]:
        """The names of the m relevances, family and similarity, in their order."""
        return [f"{family} {kind}" for family, kind in self._functions(self.read(queries))]

    def pairs(self, queries: Any, items: Any, which_query: Any, which_item: Any) -> Array:
        """(pairs, m) the relevances of listed pairs of a query and an item."""
        left, right = self._read_both(queries, items)
        functions = self._functions(left)
        which_query, which_item = np.asarray(which_query), np.asarray(which_item)
        out = np.empty((which_query.size, len(functions)))
        widest = max(table.shape[1] for table in left.values())
        step = max(1, int(self.budget) // (32 * max(widest, 1)))
        for start in range(0, which_query.size, step):
            rows = slice(start, start + step)
            for family, table in left.items():
                x, y = table[which_query[rows]], right[family][which_item[rows]]
                for j, (of, kind) in enumerate(functions):
                    if of == family:
                        out[rows, j] = SIMILARITIES[kind][1](x, y, self.gamma)
        return _check_finite(out)

    def score_blocks(self, queries: Any, items: Any, weights: Any) -> Iterator[tuple[slice, slice, Array]]:
        """Scores ``Σ_j weights[q, j] k_{q,a}(j)``, block by block: queries, items, and a table of them.

        Items come in order for each block of queries. At most two similarities are in memory at once.
        """
        left, right = self._read_both(queries, items)
        functions = self._functions(left)
        weights = numbers("weights", weights)
        shape = (count_rows(left), len(functions))
        if weights.shape != shape:
            raise ValueError(f"weights must have shape {shape} (queries, relevances), got {weights.shape}")
        for rows, columns in self._block_slices(left, right, 3):
            total = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
            for j, (family, kind) in enumerate(functions):
                if weights[rows, j].any():
                    part = SIMILARITIES[kind][0](left[family][rows], right[family][columns], self.gamma)
                    part *= weights[rows, j, None]
                    total += part
            yield rows, columns, _check_finite(total)

    def blocks(self, queries: Any, items: Any) -> Iterator[tuple[slice, slice, Array]]:
        """All relevances, block by block: queries, items, and a (queries, items, m) array within the budget.

        With ``cache`` a block that was computed before is read from its file.
        """
        left, right = self._read_both(queries, items)
        functions = self._functions(left)
        cache = self._open_cache(left, right)
        for rows, columns in self._block_slices(left, right, len(functions)):
            block = cache.read(rows, columns) if cache else None
            if block is None:
                block = np.empty((rows.stop - rows.start, columns.stop - columns.start, len(functions)))
                for j, (family, kind) in enumerate(functions):
                    block[:, :, j] = SIMILARITIES[kind][0](left[family][rows], right[family][columns], self.gamma)
                _check_finite(block)
                if cache:
                    cache.write(rows, columns, block)
            yield rows, columns, block

    def table(self, queries: Any, items: Any) -> Array:
        """(queries, items, m) all relevances at once, if they fit the budget."""
        left, right = self._read_both(queries, items)
        shape = (count_rows(left), count_rows(right), len(self._functions(left)))
        if 8 * int(np.prod(shape, dtype=object)) > int(self.budget):
            raise MemoryError(
                f"{shape[0]} × {shape[1]} × {shape[2]} relevances do not fit the budget of {self.budget} bytes; "
                "use blocks(), score_blocks() or pairs(), or raise budget"
            )
        out = np.empty(shape)
        for rows, columns, block in self.blocks(left, right):
            out[rows, columns] = block
        return out

    def _read_both(self, queries: Any, items: Any) -> tuple[Tables, Tables]:
        left, right = self._read_again(queries, "queries"), self._read_again(items, "items")
        if left.keys() != right.keys():
            raise ValueError(f"queries have families {shorten(sorted(left))}, but items {shorten(sorted(right))}")
        for family, table in left.items():
            if table.shape[1] != right[family].shape[1]:
                widths = f"{table.shape[1]} columns, items {right[family].shape[1]}"
                raise ValueError(f"family {family}: queries have {widths}; give the same features of both")
        return left, right

    def _read_again(self, features: Any, name: str) -> Tables:
        return features if isinstance(features, ReadTables) else ReadTables(self.read(features, name))

    def _block_slices(self, left: Tables, right: Tables, per_pair: int) -> Iterator[tuple[slice, slice]]:
        n, n_items = count_rows(left), count_rows(right)
        entries = max(1, int(self.budget) // (8 * per_pair))
        height = min(max(n, 1), 256)
        width = max(1, min(n_items, entries // height))
        height = max(1, min(max(n, 1), entries // max(width, 1)))
        for start in range(0, n, height):
            for first in range(0, n_items, width):
                yield slice(start, min(start + height, n)), slice(first, min(first + width, n_items))

    def _functions(self, tables: Tables) -> list[tuple[str, str]]:
        """Family and similarity of each relevance."""
        if not isinstance(self.similarities, Mapping):
            return [(family, kind) for family in tables for kind in self.similarities]
        missing = [family for family in tables if family not in self.similarities]
        if missing:
            raise ValueError(f"similarities lack the family {shorten(missing[0])}; name at least one for it")
        return [(family, kind) for family in tables for kind in self.similarities[family]]

    def _listed_families(self) -> list[Any]:
        is_listed = not isinstance(self.families, str) and isinstance(self.families, Mapping | list | tuple)
        if not is_listed or not all(map(is_hashable, self.families)):
            raise ValueError(f"families must be columns by name, or names of tables, got {shorten(self.families)}")
        return list(self.families)

    def _split_families(self, table: Array, name: str) -> Tables:
        if not isinstance(self.families, Mapping):
            raise ValueError(
                f"{name} is one table, so families must be columns by name, got {shorten(self.families)}; "
                "or give a dict of tables"
            )
        tables = {}
        for family, columns in self.families.items():
            try:
                part = table[:, columns if isinstance(columns, slice) else np.asarray(columns)]
            except (IndexError, ValueError, TypeError, OverflowError) as error:  # the columns may be anything
                raise ValueError(f"family {shorten(family)}: {name} lacks the columns {shorten(columns)}") from error
            if part.ndim != 2 or not part.shape[1]:
                raise ValueError(f"family {shorten(family)} must have at least one column, got {shorten(columns)}")
            tables[str(family)] = np.ascontiguousarray(part)
        return tables

    def _open_cache(self, left: Tables, right: Tables) -> _Cache | None:
        if self.cache is None:
            return None
        settings = repr((self._functions(left), self.gamma))
        key = (
            checksum(*left.values()) + checksum(*right.values()) + checksum(np.frombuffer(settings.encode(), np.uint8))
        )
        return _Cache(Path(file_path("cache", self.cache)), key)


class ReadTables(dict[str, Array]):
    """Features that `Relevances.read` has already checked."""


class _Cache:
    """Blocks in a folder. Names of files contain a checksum of the data, so other data have other files."""

    def __init__(self, folder: Path, key: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.key = folder, key

    def path(self, rows: slice, columns: slice) -> Path:
        return self.folder / f"{self.key}-{rows.start}-{rows.stop}-{columns.start}-{columns.stop}.npy"

    def read(self, rows: slice, columns: slice) -> Array | None:
        path = self.path(rows, columns)
        if not path.is_file():
            return None
        try:
            block = MappedArray(path).rows
        except (ValueError, TypeError):  # a truncated file: the block is computed and written again
            return None
        right_size = block.ndim == 3 and block.shape[:2] == (rows.stop - rows.start, columns.stop - columns.start)
        return block if right_size and block.dtype == np.float64 else None

    def write(self, rows: slice, columns: slice, block: Array) -> None:
        """Write to a temporary name first, so that another process never reads half a block."""
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            np.save(file, block, allow_pickle=False)
        os.replace(name, self.path(rows, columns))


def read_table(name: str, values: Any, rows: str = "one row each") -> Array:
    """A finite dense table with at least one column."""
    if values is None:
        raise ValueError(f"{name} is missing; give a table of features, {rows}")
    if sparse.issparse(values):
        values = as_csr(values).toarray()
    table = np.ascontiguousarray(numbers(name, values, f"a table of numbers, {rows}"))
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"{name} must be a table of features, {rows}, got shape {table.shape}")
    position = first_non_finite(table)
    if position is not None:
        raise ValueError(f"{name}[{position[0]}, {position[1]}] is {table[position]}; replace it or drop the row")
    return table


def count_rows(tables: Tables) -> int:
    """How many queries or items there are."""
    return len(next(iter(tables.values())))


def _check_finite(values: Array) -> Array:
    if not np.isfinite(np.sum(values)):
        raise FloatingPointError("a similarity overflows; scale the features down")
    return values


def _intersection(X: Array, Y: Array, gamma: float | None) -> Array:
    out = np.empty((len(X), len(Y)))
    _sum_minima(X, Y, out)
    return out


@kernel
def _sum_minima(X: Array, Y: Array, out: Array) -> None:
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0.0
            for c in range(X.shape[1]):
                total += X[i, c] if X[i, c] < Y[j, c] else Y[j, c]
            out[i, j] = total


def _paired_rbf(x: Array, y: Array, gamma: float | None) -> Array:
    return np.asarray(np.exp(-(1 / x.shape[1] if gamma is None else gamma) * ((x - y) ** 2).sum(axis=1)))


def _paired_chi2(x: Array, y: Array, gamma: float | None) -> Array:
    total = x + y
    parts = np.divide((x - y) ** 2, total, out=np.zeros_like(total), where=total > MAX_NOTHING)
    return np.asarray(-parts.sum(axis=1))


def _paired_cosine(x: Array, y: Array, gamma: float | None) -> Array:
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return np.asarray(np.divide((x * y).sum(axis=1), norms, out=np.zeros(len(x)), where=norms > MAX_NOTHING))


Table = Callable[[Array, Array, float | None], Array]
SIMILARITIES: Mapping[str, tuple[Table, Table]] = {
    "chi2": (lambda X, Y, _: np.asarray(pairwise.additive_chi2_kernel(X, Y)), _paired_chi2),
    "intersection": (_intersection, lambda x, y, _: np.asarray(np.minimum(x, y).sum(axis=1))),
    "rbf": (lambda X, Y, gamma: np.asarray(pairwise.rbf_kernel(X, Y, gamma=gamma)), _paired_rbf),
    "cosine": (lambda X, Y, _: np.asarray(pairwise.cosine_similarity(X, Y)), _paired_cosine),
    "l1": (lambda X, Y, _: -np.asarray(pairwise.manhattan_distances(X, Y)), lambda x, y, _: -np.abs(x - y).sum(axis=1)),
    "l2": (
        lambda X, Y, _: -np.asarray(pairwise.euclidean_distances(X, Y)),
        lambda x, y, _: -np.sqrt(((x - y) ** 2).sum(axis=1)),
    ),
}
"""Functions of X, Y and γ, by name: (rows of X, rows of Y) all pairs, and (rows,) row i of X with row i of Y."""

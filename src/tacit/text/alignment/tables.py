"""Sentence pairs as tables of word pairs, and the links that are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from tacit.data.arrays import Array, locate
from tacit.data.labels import is_missing
from tacit.data.parameters import entries, is_list, is_whole
from tacit.data.ragged import Ragged, read_ragged
from tacit.text.alignment.links import MAX_WORDS, Links

MAX_CELLS = 1 << 28
"""The most word pairs of all sentence pairs together (2 GB of scores)."""


class PairTables(NamedTuple):
    """Features of word pairs, and the matrix that each sentence pair's rows belong to.

    Parameters
    ----------
    values : (rows, d) features
    offsets : where the rows of each sentence pair begin
    shapes : (n, 2) words of the source and of the target sentence
    bases : (n + 1,) where the cells of each matrix begin, source word after source word
    slots : (rows,) the cell of every row
    """

    values: Array
    offsets: Array
    shapes: Array
    bases: Array
    slots: Array


def read_tables(X: Any) -> Ragged:
    """Read sentence pairs from tables of rows (source, target, features...), or from arrays (I, J, d)."""
    if not isinstance(X, Ragged) and is_list(X) and not hasattr(X, "columns"):
        X = [_as_rows(pair) for pair in X]
    return read_ragged(X, "sentence pair", "word pair")


def _as_rows(pair: Any) -> Any:
    """Turn an array (I, J, d) into rows that begin with the two positions; return anything else unchanged."""
    if not isinstance(pair, np.ndarray) or pair.ndim != 3 or pair.dtype.kind not in "biuf":
        return pair
    n_source, n_target, d = pair.shape
    positions = np.stack(np.meshgrid(np.arange(n_source), np.arange(n_target), indexing="ij"), axis=-1).reshape(-1, 2)
    kind = pair.dtype if pair.dtype.kind == "f" else np.dtype(np.float64)
    return np.hstack([positions.astype(kind), pair.reshape(-1, d).astype(kind, copy=False)])


def pack_tables(pairs: Ragged) -> PairTables:
    """Check the positions in the first two columns, and find the cell of every row."""
    table, offsets = pairs.values, pairs.offsets
    if table.ndim != 2 or table.shape[1] < 3:
        raise ValueError(
            "word pairs must be rows (source position, target position, features...), as tacit.text.WordPairs makes "
            f"them; got rows of shape {table.shape[1:]}"
        )
    if not isinstance(table, np.ndarray):
        raise ValueError("word pairs must be a dense table, got a sparse one; call toarray() on it")
    positions = table[:, :2]
    wrong = ~((positions >= 0) & (positions < MAX_WORDS) & (positions == np.floor(positions)))
    if wrong.any():
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        i, own = locate(offsets, row)
        raise ValueError(
            f"row {own} of sentence pair {i} begins with {positions[row].tolist()}; it must begin with the positions "
            f"of its two words, whole numbers from 0 to {MAX_WORDS - 1}"
        )
    positions = positions.astype(np.int64)
    shapes = 1 + np.maximum.reduceat(positions, offsets[:-1], axis=0)
    bases = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
    if bases[-1] > MAX_CELLS:
        raise ValueError(f"X has {bases[-1]} word pairs, but the limit is {MAX_CELLS}; fit on less text")
    owner = np.repeat(np.arange(len(pairs)), np.diff(offsets))
    slots = bases[owner] + positions[:, 0] * shapes[owner, 1] + positions[:, 1]
    order = np.sort(slots)
    twice = np.flatnonzero(order[1:] == order[:-1])
    if twice.size:
        row = int(np.flatnonzero(slots == order[twice[0]])[1])
        raise ValueError(f"sentence pair {owner[row]} has the word pair {positions[row].tolist()} twice; drop one row")
    return PairTables(np.ascontiguousarray(table[:, 2:]), offsets, shapes, bases, slots)


class KnownLinks(NamedTuple):
    """The gold links, by sentence pair and by cell.

    Parameters
    ----------
    is_known : (n,) whether the links of a sentence pair are known
    is_sure, is_possible : (cells,) all False where nothing is known
    most : (n,) how many sure links a matching can have; 0 where nothing is known
    is_open : (n,) whether several matchings have as many, so that the matching is still hidden
    """

    is_known: Array
    is_sure: Array
    is_possible: Array
    most: Array
    is_open: Array


def read_known(given: Any, tables: PairTables) -> KnownLinks:
    """Read one entry per sentence pair: `Links`, a list of pairs (all sure), or None or −1 for unknown."""
    n = len(tables.shapes)
    if isinstance(given, KnownLinks):
        return given
    listed = [None] * n if given is None else entries("hidden", given, "a list of links, None where unknown")
    if len(listed) != n:
        raise ValueError(f"hidden has {len(listed)} entries for {n} sentence pairs; give one per pair, None if unknown")
    is_known = np.zeros(n, dtype=bool)
    is_sure, is_possible = np.zeros((2, tables.bases[-1]), dtype=bool)
    most, is_open = np.zeros(n), np.zeros(n, dtype=bool)
    has_row = np.zeros(tables.bases[-1], dtype=bool)
    has_row[tables.slots] = True
    for i, entry in enumerate(listed):
        if is_unknown(entry):
            continue
        try:
            links = entry if isinstance(entry, Links) else Links(entry)
        except ValueError as error:
            raise ValueError(f"hidden[{i}]: {error}") from error
        is_known[i] = True
        is_sure[_cells(links.sure, tables, i)] = True
        is_possible[_cells(links.possible, tables, i)] = True
        own = slice(tables.bases[i], tables.bases[i + 1])
        is_sure[own] &= has_row[own]
        matrix = is_sure[own].reshape(tables.shapes[i])
        most[i] = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
        is_open[i] = most[i] < np.count_nonzero(matrix)
    return KnownLinks(is_known, is_sure, is_possible, most, is_open)


def is_unknown(entry: Any) -> bool:
    """Whether an entry stands for unknown links: None, NaN or −1."""
    if isinstance(entry, Links) or is_list(entry):
        return False
    return is_missing(entry) or (is_whole(entry) and entry == -1)


def _cells(pairs: Array, tables: PairTables, i: int) -> Array:
    """The cells of the links of one sentence pair; raise if a word does not exist."""
    outside = pairs[(pairs >= tables.shapes[i]).any(axis=1)]
    if outside.size:
        n_source, n_target = tables.shapes[i].tolist()
        raise ValueError(
            f"hidden[{i}] links the words {outside[0].tolist()}, counted from 0, but its sentences have {n_source} and "
            f"{n_target} words"
        )
    return np.asarray(tables.bases[i] + pairs[:, 0] * tables.shapes[i, 1] + pairs[:, 1])

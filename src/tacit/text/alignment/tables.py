"""Tables of word pairs: which rows belong to which cell of a sentence pair's matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.parameters import is_list
from tacit.data.ragged import Ragged, read_ragged
from tacit.text.links import MAX_WORDS

MAX_CELLS = 1 << 28
"""Cells of the matrices of all sentence pairs, at the most (2 GB of scores)."""


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
    """Sentence pairs as users have them: tables of rows (source, target, features...), or arrays (I, J, d)."""
    if not isinstance(X, Ragged) and is_list(X) and not hasattr(X, "columns"):
        X = [_as_rows(pair) for pair in X]
    return read_ragged(X, "sentence pair", "word pair")


def _as_rows(pair: Any) -> Any:
    """An array (I, J, d) as rows that begin with the two positions; anything else as it is."""
    if not isinstance(pair, np.ndarray) or pair.ndim != 3 or pair.dtype.kind not in "biuf":
        return pair
    n_source, n_target, d = pair.shape
    places = np.stack(np.meshgrid(np.arange(n_source), np.arange(n_target), indexing="ij"), axis=-1).reshape(-1, 2)
    kind = pair.dtype if pair.dtype.kind == "f" else np.dtype(np.float64)
    return np.hstack([places.astype(kind), pair.reshape(-1, d).astype(kind, copy=False)])


def pack_tables(pairs: Ragged) -> PairTables:
    """Check the positions in the first two columns, and find the cell of every row."""
    table, offsets = pairs.values, pairs.offsets
    if table.ndim != 2 or table.shape[1] < 3:
        raise ValueError(
            f"word pairs are rows (source position, target position, features...), got {table.shape[1:]} numbers per "
            "row; tacit.text.WordPairs makes them"
        )
    if not isinstance(table, np.ndarray):
        raise ValueError("word pairs are a dense table, and this one is sparse; call toarray() on it")
    places = table[:, :2]
    wrong = ~((places >= 0) & (places < MAX_WORDS) & (places == np.floor(places)))
    if wrong.any():
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        i, place = locate(offsets, row)
        raise ValueError(
            f"row {place} of sentence pair {i} begins with {places[row].tolist()}: the first two numbers of a row are "
            f"the positions of its words, whole numbers from 0 to {MAX_WORDS - 1}"
        )
    places = places.astype(np.int64)
    shapes = 1 + np.maximum.reduceat(places, offsets[:-1], axis=0)
    bases = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
    if bases[-1] > MAX_CELLS:
        raise ValueError(f"{bases[-1]} word pairs are too many for one fit, {MAX_CELLS} are possible; split the text")
    owner = np.repeat(np.arange(len(pairs)), np.diff(offsets))
    slots = bases[owner] + places[:, 0] * shapes[owner, 1] + places[:, 1]
    order = np.sort(slots)
    twice = np.flatnonzero(order[1:] == order[:-1])
    if twice.size:
        row = int(np.flatnonzero(slots == order[twice[0]])[1])
        raise ValueError(
            f"sentence pair {owner[row]} lists the words {places[row].tolist()} twice; give each pair of words one row"
        )
    return PairTables(np.ascontiguousarray(table[:, 2:]), offsets, shapes, bases, slots)

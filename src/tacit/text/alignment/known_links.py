"""What is known of the links of sentence pairs, cell by cell."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from tacit.data.arrays import Array
from tacit.data.labels import is_missing
from tacit.data.parameters import is_list, shorten
from tacit.data.ragged import Ragged
from tacit.text.alignment.tables import PairTables
from tacit.text.links import Links


class KnownLinks(NamedTuple):
    """Gold links of those sentence pairs that have some.

    Parameters
    ----------
    is_known : (n,) whether the links of a sentence pair are known
    is_sure, is_possible : (cells,) by cell; all False where nothing is known
    most : (n,) how many sure links a matching can have; 0 where nothing is known
    is_open : (n,) whether several matchings have as many, so that it is hidden which one is meant
    """

    is_known: Array
    is_sure: Array
    is_possible: Array
    most: Array
    is_open: Array


def read_known(given: Any, tables: PairTables) -> KnownLinks:
    """From one entry per sentence pair: `Links`, a list of pairs (all of them sure), or None or −1 for unknown."""
    n = len(tables.shapes)
    if isinstance(given, KnownLinks):
        return given
    if given is not None and (isinstance(given, str | bytes | dict) or not is_list(given)):
        raise ValueError(f"hidden holds links, one entry per sentence pair, None where unknown; got {shorten(given)}")
    entries = [None] * n if given is None else list(given)
    if len(entries) != n:
        raise ValueError(f"hidden has {len(entries)} entries for {n} sentence pairs; give one each, None if unknown")
    is_known = np.zeros(n, dtype=bool)
    is_sure, is_possible = np.zeros((2, tables.bases[-1]), dtype=bool)
    most, is_open = np.zeros(n), np.zeros(n, dtype=bool)
    has_row = np.zeros(tables.bases[-1], dtype=bool)
    has_row[tables.slots] = True
    for i, entry in enumerate(entries):
        if _is_unknown(entry):
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


def _is_unknown(entry: Any) -> bool:
    if isinstance(entry, Links) or is_list(entry):
        return False
    return is_missing(entry) or (isinstance(entry, int | np.integer) and int(entry) == -1)


def _cells(pairs: Array, tables: PairTables, i: int) -> Array:
    """The cells of links of one sentence pair; an error where a word does not exist."""
    outside = pairs[(pairs >= tables.shapes[i]).any(axis=1)]
    if outside.size:
        n_source, n_target = tables.shapes[i].tolist()
        raise ValueError(
            f"hidden[{i}] links the words {outside[0].tolist()}, and its sentences have {n_source} and "
            f"{n_target} words, counted from 0"
        )
    return np.asarray(tables.bases[i] + pairs[:, 0] * tables.shapes[i, 1] + pairs[:, 1])


def as_entries(hidden: Any) -> Any:
    """Entries that can be replaced one by one."""
    return list(hidden) if isinstance(hidden, Ragged) or is_list(hidden) else hidden

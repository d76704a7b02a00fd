"""Interpolated n-grams: what to expect of the next symbol when only the last one or two are known."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged

MAX_TABLE_ENTRIES = 2_000_000
"""Entries of a table at the most, so the order falls for large alphabets: 3 to 124 symbols, 2 to 1,413, else 1."""


def ngram_order(n_symbols: int) -> int:
    """How many symbols, the predicted one included, the table for an alphabet of this size looks at.

    >>> [ngram_order(k) for k in (20, 125, 5000)]
    [3, 2, 1]
    """
    return max([order for order in (2, 3) if (n_symbols + 1) ** order <= MAX_TABLE_ENTRIES], default=1)


def ngram(strings: Ragged, n_symbols: int, order: int, weights: Array | None = None) -> Array:
    """(contexts, symbols + 1) probabilities of the next symbol, the end last; rows sum to one, no entry is zero.

    A context is the last order − 1 symbols as the digits of a number to the base symbols + 1, the digit ``n_symbols``
    standing for "before the string". Each order is interpolated with the one below (Witten & Bell 1991); the lowest
    counts every symbol half a time more.

    >>> ngram(Ragged([0, 1, 0], [0, 2, 3]), 2, 2).round(2)
    array([[0.19, 0.37, 0.44],
           [0.19, 0.12, 0.69],
           [0.79, 0.08, 0.13]])
    """
    base = n_symbols + 1
    symbols, contexts = _with_ends(strings, n_symbols, order)
    weight = np.repeat(np.ones(len(strings)) if weights is None else weights, strings.lengths + 1)
    table = np.bincount(symbols, weight, minlength=base) + 0.5
    table = (table / table.sum())[None]
    for length in range(1, order):
        keys = contexts % base**length * base + symbols
        counts = np.bincount(keys, weight, minlength=base ** (length + 1)).reshape(-1, base)
        kinds = np.maximum((counts > 0).sum(axis=1, keepdims=True), 1)
        table = (counts + kinds * np.tile(table, (base, 1))) / (counts.sum(axis=1, keepdims=True) + kinds)
    return np.asarray(table)


def _with_ends(strings: Ragged, n_symbols: int, order: int) -> tuple[Array, Array]:
    """All symbols with the end of every string as the symbol ``n_symbols``, and the context of each."""
    base, lengths = n_symbols + 1, strings.lengths
    ends = strings.offsets[1:] + np.arange(len(strings))
    symbols = np.full(strings.values.size + len(strings), n_symbols, dtype=np.int64)
    inside = np.ones(symbols.size, dtype=bool)
    inside[ends] = False
    symbols[inside] = strings.values
    place = np.arange(symbols.size) - np.repeat(ends - lengths, lengths + 1)
    contexts = np.zeros(symbols.size, dtype=np.int64)
    for back in range(order - 1, 0, -1):
        digit = np.full(symbols.size, n_symbols, dtype=np.int64)
        known = np.flatnonzero(place >= back)
        digit[known] = symbols[known - back]
        contexts = contexts * base + digit
    return symbols, contexts

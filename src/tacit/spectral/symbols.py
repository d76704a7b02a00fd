"""Sequences of symbols as users write them, and their codes, the numbers 0 … k − 1."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.labels import find_labels
from tacit.data.parameters import has_length, is_list, reason, shorten
from tacit.data.ragged import Ragged

UNSEEN = -1
"""The code of a symbol that is not in the alphabet."""


def read_sequences(sequences: Any) -> Ragged:
    """Read sequences of strings or integers: lists of lists, words, arrays, a Ragged, a pandas Series.

    A string is the sequence of its letters. Sequences may be empty.

    >>> read_sequences([["go", "left"], [], ["go"]])
    Ragged(3 samples, 0–2 rows each; 3 <U4: ['go', 'left'], [], ['go'])
    >>> read_sequences(["abba", "b"]).values.tolist()
    ['a', 'b', 'b', 'a', 'b']
    """
    if isinstance(sequences, Ragged):
        flat, offsets = sequences.values, sequences.offsets
    else:
        if type(sequences).__module__.split(".")[0] == "pyarrow":
            sequences = sequences.to_pylist()
        if isinstance(sequences, str | bytes | dict) or not is_list(sequences):
            raise TypeError(f"sequences must be a list, got {type(sequences).__name__}; pass one as [sequence]")
        parts = [_read_sequence(sequence, i) for i, sequence in enumerate(sequences)]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        flat = _join(parts)
    if len(offsets) < 2:
        raise ValueError("sequences are empty; give at least one")
    if flat.ndim != 1:
        raise ValueError(f"a symbol must be one string or integer, got rows of shape {flat.shape[1:]}")
    return Ragged(_check_symbols(flat, offsets), offsets)


def read_alphabet(alphabet: Any, sequences: Ragged) -> Array:
    """The given symbols, which must contain all that occur; or all that occur, the most frequent first.

    Equally frequent ones are sorted by their positions, so that the result does not depend on the names of symbols.

    >>> read_alphabet(None, read_sequences(["cab", "bc", "b"])).tolist()
    ['b', 'c', 'a']
    """
    if alphabet is None:
        found, codes, times = np.unique(sequences.values, return_inverse=True, return_counts=True)
        positions = np.arange(codes.size) - np.repeat(sequences.offsets[:-1], sequences.lengths)
        found = found[np.lexsort((np.bincount(codes, positions, minlength=found.size), -times))]
        if found.size == 0:
            raise ValueError("all sequences are empty; add others, or list the symbols in alphabet=[...]")
        return found
    listed = read_sequences([alphabet]).values
    if listed.size == 0 or np.unique(listed).size != listed.size:
        raise ValueError(f"alphabet must be one or more different symbols, got {shorten(alphabet)}")
    codes = find_labels(listed, sequences.values)
    if sequences.values.size and codes.min() < 0:
        at = int(np.argmin(codes))
        i, t = locate(sequences.offsets, at)
        raise ValueError(
            f"{shorten(sequences.values[at].item())} at position {t} of sequence {i} is not in "
            f"alphabet={shorten(alphabet)}; add it there or drop the sequence"
        )
    return np.asarray(listed)


def encode(sequences: Any, symbols: Array) -> Ragged:
    """The codes of sequences, `UNSEEN` for symbols that the alphabet lacks.

    >>> encode(["cab"], np.array(["a", "b"])).values
    array([-1,  0,  1], dtype=int32)
    """
    strings = read_sequences(sequences)
    codes = find_labels(symbols, strings.values) if strings.values.size else np.empty(0)
    return Ragged(codes.astype(np.int32), strings.offsets)


def check_codes(strings: Ragged, n_symbols: int) -> None:
    """Refuse codes that are not symbols: kernels use them as indices."""
    codes = strings.values
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise ValueError(f"codes of symbols must be whole numbers, one per symbol, got {shorten(strings)}")
    if codes.size and not UNSEEN <= int(codes.min()) <= int(codes.max()) < n_symbols:
        found = f"{codes.min()} to {codes.max()}"
        raise ValueError(f"codes must be from {UNSEEN} (unseen) to {n_symbols - 1} (the last symbol), got {found}")


def decode(strings: Ragged, symbols: Array) -> list[list[Any]]:
    """Codes as lists of symbols."""
    flat = symbols[strings.values].tolist()
    return [flat[a:b] for a, b in itertools.pairwise(strings.offsets)]


def _read_sequence(sequence: Any, i: int) -> Any:
    if isinstance(sequence, str):
        return list(sequence)
    if isinstance(sequence, bytes | dict) or not has_length(sequence):
        raise TypeError(
            f"sequence {i} must be a list of symbols, got {shorten(sequence)}; pass a single one as [sequence]"
        )
    return sequence


def _join(parts: list[Any]) -> Array:
    """All symbols one after the other; one kind for all of them."""
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        arrays = [part for part in parts if part.size]
        kinds = {part.dtype.kind for part in arrays}
        if kinds <= set("iu") or kinds == {"U"}:
            return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
    symbols = list(itertools.chain.from_iterable(parts))
    if len({isinstance(symbol, str) for symbol in symbols}) > 1:
        text, other = (next(s for s in symbols if isinstance(s, str) is kind) for kind in (True, False))
        raise ValueError(f"sequences must have strings only or integers only, got {shorten(text)} and {shorten(other)}")
    if not symbols:
        return np.empty(0, dtype=np.int64)
    try:
        return np.array(symbols)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"a symbol must be one string or integer: {reason(error)}") from error


def _check_symbols(flat: Array, offsets: Array) -> Array:
    """Symbols as strings or integers; whole floats become integers."""
    if flat.size == 0 or flat.dtype.kind in "iuU":
        return flat
    if flat.dtype.kind == "O" and all(isinstance(symbol, str) for symbol in flat):
        return flat.astype(np.str_)
    if flat.dtype.kind == "b":
        return flat.astype(np.int64)
    if flat.dtype.kind == "f":
        whole = (np.abs(flat) < 2**53) & (flat == np.floor(flat))
        if whole.all():
            return flat.astype(np.int64)
        at = int(np.argmin(whole))
    else:
        wrong = [not isinstance(symbol, (str, int, np.integer)) for symbol in flat]
        at = int(np.argmax(wrong))
    i, t = locate(offsets, at)
    raise ValueError(
        f"{shorten(flat[at])} at position {t} of sequence {i} is not a string or an integer; bin real numbers first "
        "(for example with KBinsDiscretizer), and drop missing ones"
    )

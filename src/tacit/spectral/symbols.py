"""Sequences of symbols as users write them, and the numbers 0 … k − 1 that stand for the symbols inside."""

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
    """Sequences of strings or integers, as they are: lists of lists, words, arrays, a Ragged, a pandas Series.

    A string is the sequence of its letters. Sequences may be empty.

    >>> read_sequences([["go", "left"], [], ["go"]])
    Ragged(3 samples, 0–2 rows each; 3 <U4)
    >>> read_sequences(["abba", "b"]).values.tolist()
    ['a', 'b', 'b', 'a', 'b']
    """
    if isinstance(sequences, Ragged):
        flat, offsets = sequences.values, sequences.offsets
    else:
        if type(sequences).__module__.split(".")[0] == "pyarrow":
            sequences = sequences.to_pylist()
        if isinstance(sequences, str | bytes | dict) or not is_list(sequences):
            raise TypeError(
                f"a list of sequences expected, got one {type(sequences).__name__}; for a single one pass [sequence]"
            )
        parts = [_read_sequence(sequence, i) for i, sequence in enumerate(sequences)]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        flat = _join(parts)
    if len(offsets) < 2:
        raise ValueError("no sequences: the list is empty; give at least one")
    if flat.ndim != 1:
        raise ValueError(f"a symbol is one string or integer, these sequences hold rows of shape {flat.shape[1:]}")
    return Ragged(_check_symbols(flat, offsets), offsets)


def read_alphabet(alphabet: Any, sequences: Ragged) -> Array:
    """The symbols: those the user lists, which must contain all that occur, or all that occur, the most frequent first.

    By frequency, and equally frequent ones by how late they stand, as then another name for a symbol changes nothing.

    >>> read_alphabet(None, read_sequences(["cab", "bc", "b"])).tolist()
    ['b', 'c', 'a']
    """
    if alphabet is None:
        found, codes, times = np.unique(sequences.values, return_inverse=True, return_counts=True)
        places = np.arange(codes.size) - np.repeat(sequences.offsets[:-1], sequences.lengths)
        found = found[np.lexsort((np.bincount(codes, places, minlength=found.size), -times))]
        if found.size == 0:
            raise ValueError(
                "all sequences are empty, so there is no symbol to learn; add others, or list symbols in alphabet=[...]"
            )
        return found
    listed = read_sequences([alphabet]).values
    if listed.size == 0 or np.unique(listed).size != listed.size:
        raise ValueError(f"alphabet must be one or more different symbols, got {shorten(alphabet)}")
    codes = find_labels(listed, sequences.values)
    if sequences.values.size and codes.min() < 0:
        at = int(np.argmin(codes))
        i, t = locate(sequences.offsets, at)
        raise ValueError(
            f"sequence {i} has {shorten(sequences.values[at].item())} at place {t}, which is not in "
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
    """Refuse codes that are not symbols: kernels go where they say."""
    codes = strings.values
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise ValueError(f"codes of symbols are whole numbers, one per place, got {shorten(strings)}")
    if codes.size and not UNSEEN <= int(codes.min()) <= int(codes.max()) < n_symbols:
        raise ValueError(
            f"codes of {n_symbols} symbols run from {UNSEEN} (not seen) to {n_symbols - 1}, these from {codes.min()} "
            f"to {codes.max()}"
        )


def decode(strings: Ragged, symbols: Array) -> list[list[Any]]:
    """Codes as lists of symbols."""
    flat = symbols[strings.values].tolist()
    return [flat[a:b] for a, b in itertools.pairwise(strings.offsets)]


def _read_sequence(sequence: Any, i: int) -> Any:
    if isinstance(sequence, str):
        return list(sequence)
    if isinstance(sequence, bytes | dict) or not has_length(sequence):
        raise TypeError(
            f"sequence {i} is {shorten(sequence)}; a sequence is a list of symbols: for a single one pass [sequence]"
        )
    return sequence


def _join(parts: list[Any]) -> Array:
    """All symbols one after the other; one kind for all of them."""
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        arrays = [part for part in parts if part.size]
        if (
            not arrays
            or {part.dtype.kind for part in arrays} <= set("iu")
            or {part.dtype.kind for part in arrays} == {"U"}
        ):
            return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
    symbols = list(itertools.chain.from_iterable(parts))
    kinds = {isinstance(symbol, str) for symbol in symbols}
    if len(kinds) > 1:
        text, other = (next(s for s in symbols if isinstance(s, str) is kind) for kind in (True, False))
        raise ValueError(f"the sequences mix {shorten(text)} and {shorten(other)}; use strings or integers throughout")
    if not symbols:
        return np.empty(0, dtype=np.int64)
    try:
        return np.array(symbols)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"a symbol is one string or integer: {reason(error)}") from error


def _check_symbols(flat: Array, offsets: Array) -> Array:
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
        f"sequence {i} has {shorten(flat[at])} at place {t}; symbols are strings or integers: bin real numbers first "
        "(KBinsDiscretizer, say), and drop what is missing"
    )

"""DNA as users write it: strings in lists, arrays and columns, packed once into one array of letter codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.parameters import is_list, shorten
from tacit.data.ragged import Ragged
from tacit.dna.letters import MEANING, UNKNOWN, first_unknown, known_codes

SHARES = np.array([[(base in bases) / len(bases) for base in "ACGT"] for bases in MEANING.values()])
"""``SHARES[code]``: the probability of A, C, G and T when every base that a letter stands for is as likely."""


def read_sequences(X: Any) -> Ragged:
    """Letter codes of all sequences, one byte a letter; the error names sequence, position and letter.

    Takes a list, tuple, pandas or Arrow column of str or bytes, a NumPy array of fixed-width strings ('S' or 'U',
    read through their buffer, without a Python object for any sequence), or a `Ragged` of ASCII bytes. Case does not
    matter, and U is T. What comes back can be read again.

    >>> read_sequences(["ACGT", b"nu"]).values
    array([ 0,  1,  2,  3, 14,  3], dtype=uint8)
    """
    if isinstance(X, Ragged):
        if X.values.dtype != np.uint8 or X.values.ndim != 1:
            raise ValueError(f"a Ragged of sequences holds one byte (uint8) a letter, this one holds {X!r}")
        if X.values.size and X.values.max() < len(MEANING):
            return X
        letters, offsets = X.values, X.offsets
    else:
        X = _plain(X)
        letters, lengths = _fixed(X) if isinstance(X, np.ndarray) else _joined(X)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets.size == 1:
        raise ValueError("no sequences: X holds 0 samples, a minimum of 1 is required")
    return Ragged(known_codes(letters, offsets, X), offsets)


def check_letters(shards: Any) -> None:
    """Refuse shards that hold what is no letter of DNA; the error names the shard."""
    before = 0
    for rows in shards.values.chunks():
        place = first_unknown(rows)
        if place is not None:
            i, position = locate(shards.offsets, before + place)
            raise ValueError(
                f"{shards.name_of(i)} has {chr(rows.ravel()[place])!r} at position {position} of sequence {i}, "
                f"which is no letter of DNA; letters are {''.join(MEANING)} and U: drop the sequence or write N, and "
                "write the shards again"
            )
        before += len(rows)


def _plain(X: Any) -> Any:
    """A list of str or bytes, or a 1-D array of fixed-width strings."""
    if isinstance(X, (str, bytes)):
        raise ValueError(f"X is a single string, {X[:20]!r}; for one sequence pass [sequence]")
    if type(X).__module__.split(".")[0] == "pyarrow":
        return X.to_pylist()
    if isinstance(X, dict | set) or not is_list(X):
        raise TypeError(f"X is a list of sequences, got {shorten(X)}")
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if isinstance(X, np.ndarray):
        if X.ndim != 1:
            raise ValueError(f"X has shape {X.shape}; sequences are strings, one per sample: pass X[:, 0] for a column")
        return X if X.dtype.kind in "SU" else X.tolist()
    return list(X)


def _fixed(X: Array) -> tuple[Array, Array]:
    """Bytes and lengths of fixed-width strings, through their buffer."""
    lengths = np.strings.str_len(X).astype(np.int64)
    width = X.dtype.itemsize // (4 if X.dtype.kind == "U" else 1)
    if X.size == 0 or width == 0:
        return np.zeros(0, np.uint8), lengths
    X = np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))
    if X.dtype.kind == "U":
        points = X.view(np.uint32).reshape(X.size, width)
        letters = np.minimum(points, UNKNOWN).astype(np.uint8)
    else:
        letters = X.view(np.uint8).reshape(X.size, width)
    if (lengths == width).all():
        return letters.reshape(-1), lengths
    return letters[np.arange(width) < lengths[:, None]], lengths


def _joined(X: list[Any]) -> tuple[Array, Array]:
    """Bytes and lengths of a list of strings."""
    if not all(isinstance(sequence, (str, bytes)) for sequence in X):
        i = next(i for i, sequence in enumerate(X) if not isinstance(sequence, (str, bytes)))
        raise ValueError(f"X[{i}] is {shorten(X[i])}, not a sequence; drop it or write it as a string of letters")
    lengths = np.fromiter(map(len, X), np.int64, len(X))
    if all(isinstance(sequence, str) for sequence in X):
        text = "".join(X).encode("latin-1", "replace")
    else:
        text = b"".join(s.encode("latin-1", "replace") if isinstance(s, str) else s for s in X)
    return np.frombuffer(text, np.uint8), lengths

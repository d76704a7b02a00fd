"""Letters of DNA, IUPAC codes among them, and their codes: one byte each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array, locate

MEANING = {
    **{letter: letter for letter in "ACGT"},
    **{"R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}
"""What every letter of the IUPAC code stands for. A letter's code is its place here: A, C, G, T are 0 to 3."""

UNKNOWN = 255
"""The code of what is no letter of DNA."""

_CODE = np.full(256, UNKNOWN, np.uint8)

for _code, _letter in enumerate(MEANING):
    _CODE[[ord(_letter), ord(_letter.lower())]] = _code

_CODE[[ord("U"), ord("u")]] = _CODE[ord("T")]

SHARES = np.array([[(base in bases) / len(bases) for base in "ACGT"] for bases in MEANING.values()])
"""``SHARES[code]``: the probability of A, C, G and T when every base that a letter stands for is as likely."""

COMPLEMENT = np.array(
    [
        next(code for code, other in enumerate(MEANING.values()) if set(other) == set(bases.translate(swap)))
        for swap in [str.maketrans("ACGT", "TGCA")]
        for bases in MEANING.values()
    ],
    dtype=np.uint8,
)
"""``COMPLEMENT[code]``: the letter on the other strand, for all letters of the IUPAC code."""


def known_codes(letters: Array, offsets: Array, X: Any) -> Array:
    """The codes of ASCII letters; what is no letter of DNA is refused, as it is written in ``X``.

    Parameters
    ----------
    letters : (m,) bytes of all sequences
    offsets : where sequences begin
    X : the sequences as the user gave them

    >>> known_codes(np.frombuffer(b"ACg", np.uint8), np.array([0, 3]), ["ACg"])
    array([0, 1, 2], dtype=uint8)
    """
    codes = _CODE[letters]
    if codes.max(initial=0) == UNKNOWN:
        place = int(np.argmax(codes == UNKNOWN))
        i, position = locate(offsets, place)
        letter = X[i][position]
        letter = letter if isinstance(letter, str) else chr(letter)
        raise ValueError(
            f"sequence {i} has {letter!r} at position {position}, which is no letter of DNA; "
            f"letters are {''.join(MEANING)} and U, in either case: drop the sequence or write N for unknown bases"
        )
    return codes


def letter_codes(letters: Array) -> Array:
    """The codes of ASCII letters, all of which were checked."""
    return _CODE[letters]


def first_unknown(letters: Array) -> int | None:
    """The place of the first byte that is no letter of DNA."""
    wrong = np.flatnonzero(_CODE[letters.ravel()] == UNKNOWN)
    return int(wrong[0]) if wrong.size else None


def letters_of(codes: Array) -> Array:
    """The ASCII letters of codes: the inverse of `letter_codes`, in upper case and with T for U."""
    return np.frombuffer("".join(MEANING).encode(), np.uint8)[codes]


class DnaText:
    """Sequences in shards: see `tacit.data.shard_folder.TextKind`."""

    @staticmethod
    def check(letters: Array, offsets: Array, X: Any) -> Array:
        return known_codes(letters, offsets, X)

    @staticmethod
    def plain(letters: Array) -> Array:
        """Letters in upper case, and T for U: as sequences are compared."""
        upper = np.where((letters >= ord("a")) & (letters <= ord("z")), letters - 32, letters).astype(np.uint8)
        return np.where(upper == ord("U"), np.uint8(ord("T")), upper)


DNA_TEXT = DnaText()

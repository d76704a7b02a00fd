"""How alike two words are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

SPELLING = ("edit distance", "common prefix", "identical", "identical and long", "both digits", "both punctuation",
            "one punctuation")  # fmt: skip
"""What `compare_spelling` measures."""

MAX_LETTERS = 40
"""Letters of a word that are compared: what is longer is an address, not a word."""

LONG = 4
"""Letters from which on two identical words are hardly a coincidence."""


def compare_spelling(first: Sequence[str], second: Sequence[str]) -> Array:
    """(words, 7): for each pair of words, at the same place of the two lists, what `SPELLING` lists.

    Edit distance and common prefix are shares: 1 for words without a common letter, and for one that begins the other.

    >>> compare_spelling(["nation", "12"], ["national", "13"])[:, :3].round(2)
    array([[0.25, 1.  , 0.  ],
           [0.5 , 0.5 , 0.  ]])
    """
    out = np.zeros((len(first), len(SPELLING)))
    if not len(first):
        return out
    left, right = (_letters(words) for words in (first, second))
    _edit_distances(*left, *right, out[:, :2])
    kinds = [
        (_is_number(a), _is_number(b), _is_punctuation(a), _is_punctuation(b))
        for a, b in zip(first, second, strict=True)
    ]
    number_a, number_b, mark_a, mark_b = np.array(kinds, dtype=bool).T
    out[:, 2] = [a == b for a, b in zip(first, second, strict=True)]
    out[:, 3] = out[:, 2] * (left[1] >= LONG)
    out[:, 4] = number_a & number_b
    out[:, 5] = mark_a & mark_b
    out[:, 6] = mark_a ^ mark_b
    return out


def _is_number(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _is_punctuation(word: str) -> bool:
    return not any(letter.isalnum() for letter in word)


def _letters(words: Sequence[str]) -> tuple[Array, Array]:
    """(words, MAX_LETTERS) code points, 0 behind the end, and lengths, 1 at the least."""
    cut = [word[:MAX_LETTERS] for word in words]
    table = np.array(cut, dtype=f"<U{MAX_LETTERS}")
    codes = table.view(np.uint32).reshape(len(cut), MAX_LETTERS).astype(np.int64)
    return codes, np.maximum([len(word) for word in cut], 1)


@kernel
def _edit_distances(left: Array, left_length: Array, right: Array, right_length: Array, out: Array) -> None:
    """Levenshtein distance over the longer length, and common prefix over the shorter one, pair by pair."""
    for pair in range(left.shape[0]):
        m, n = left_length[pair], right_length[pair]
        previous = np.arange(n + 1)
        present = np.empty(n + 1, np.int64)
        for i in range(m):
            present[0] = i + 1
            for j in range(n):
                best = previous[j] + (0 if left[pair, i] == right[pair, j] else 1)
                if previous[j + 1] + 1 < best:
                    best = previous[j + 1] + 1
                if present[j] + 1 < best:
                    best = present[j] + 1
                present[j + 1] = best
            previous, present = present, previous
        prefix = 0
        shorter = m if m < n else n
        while prefix < shorter and left[pair, prefix] == right[pair, prefix]:
            prefix += 1
        out[pair, 0] = previous[n] / (m if m > n else n)
        out[pair, 1] = prefix / shorter

"""Spelling of word pairs: edit distance, common prefix, digits and punctuation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

WORD_KINDS = ("both digits", "both punctuation", "one punctuation")
SPELLING = ("edit distance", "common prefix", "identical", "identical and long", *WORD_KINDS)
"""What `compare_spelling` measures."""

MAX_LETTERS = 40
"""Letters of a word that are compared; what is longer is an address rather than a word."""

LONG = 4
"""Letters from which on two identical words are unlikely by chance."""


def compare_spelling(left: Sequence[str], right: Sequence[str], first: Array, second: Array) -> Array:
    """(pairs, 7): what `SPELLING` lists, for the words ``left[first[k]]`` and ``right[second[k]]``.

    Edit distance is divided by the longer word, the common prefix by the shorter one. O(letters) per pair, in compiled
    code.

    >>> compare_spelling(["nation", "12"], ["national", "13"], np.arange(2), np.arange(2))[:, :3].round(2)
    array([[0.25, 1.  , 0.  ],
           [0.5 , 0.5 , 0.  ]])
    """
    out = np.zeros((first.size, len(SPELLING)))
    if not first.size:
        return out
    letters, others = _letters(left), _letters(right)
    _edit_distances(*letters, first, *others, second, out[:, :2])
    numbers = {word: k for k, word in enumerate(right)}
    same = np.array([numbers.get(word, -1) for word in left])
    codes = np.array([numbers[word] for word in right])
    is_number, is_mark = (
        [np.array([test(word) for word in words], dtype=bool)[rows] for words, rows in ((left, first), (right, second))]
        for test in (_is_number, _is_punctuation)
    )
    out[:, 2] = same[first] == codes[second]
    out[:, 3] = out[:, 2] * (letters[1][first] >= LONG)
    out[:, 4] = is_number[0] & is_number[1]
    out[:, 5] = is_mark[0] & is_mark[1]
    out[:, 6] = is_mark[0] ^ is_mark[1]
    return out


def _is_number(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _is_punctuation(word: str) -> bool:
    return not any(letter.isalnum() for letter in word)


def _letters(words: Sequence[str]) -> tuple[Array, Array]:
    """(words, MAX_LETTERS) code points, padded with 0, and lengths, at least 1."""
    cut = [word[:MAX_LETTERS] for word in words]
    table = np.array(cut, dtype=f"<U{MAX_LETTERS}")
    codes = table.view(np.uint32).reshape(len(cut), MAX_LETTERS).astype(np.int64)
    return codes, np.maximum([len(word) for word in cut], 1)


@kernel
def _edit_distances(
    left: Array, left_length: Array, first: Array, right: Array, right_length: Array, second: Array, out: Array
) -> None:
    """Levenshtein distance over the longer length, and common prefix over the shorter one, pair by pair."""
    for pair in range(first.size):
        a, b = first[pair], second[pair]
        m, n = left_length[a], right_length[b]
        previous = np.arange(n + 1)
        present = np.empty(n + 1, np.int64)
        for i in range(m):
            present[0] = i + 1
            for j in range(n):
                best = previous[j] + (0 if left[a, i] == right[b, j] else 1)
                if previous[j + 1] + 1 < best:
                    best = previous[j + 1] + 1
                if present[j] + 1 < best:
                    best = present[j] + 1
                present[j + 1] = best
            previous, present = present, previous
        prefix = 0
        shorter = m if m < n else n
        while prefix < shorter and left[a, prefix] == right[b, prefix]:
            prefix += 1
        out[pair, 0] = previous[n] / (m if m > n else n)
        out[pair, 1] = prefix / shorter

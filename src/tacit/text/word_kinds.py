"""What a word says about itself: its lower-case form, its shape, its first and last letters."""

from __future__ import annotations

from collections.abc import Callable

SHORTEST_STEM = 1
"""An affix leaves at least so many letters of its word: shorter words are known by their whole form already."""


def word_shape(word: str) -> str:
    """Capitals as X, other letters as x, digits as 9, runs of the same cut to two.

    >>> word_shape("McDonald's"), word_shape("1,024"), word_shape("U.S.")
    ("XxXxx'x", '9,99', 'X.X.')
    """
    shape: list[str] = []
    for letter in word:
        kind = "9" if letter.isdigit() else letter if not letter.isalpha() else "X" if letter.isupper() else "x"
        if len(shape) < 2 or shape[-1] != kind or shape[-2] != kind:
            shape.append(kind)
    return "".join(shape)


def prefix(size: int) -> Callable[[str], str | None]:
    """A function that gives the first letters of a word in lower case, None for a word that is too short.

    >>> prefix(2)("Under"), prefix(2)("is")
    ('un', None)
    """
    return lambda word: word[:size].lower() if len(word) >= size + SHORTEST_STEM else None


def suffix(size: int) -> Callable[[str], str | None]:
    """A function that gives the last letters of a word in lower case, None for a word that is too short.

    >>> suffix(3)("Going"), suffix(3)("sea")
    ('ing', None)
    """
    return lambda word: word[-size:].lower() if len(word) >= size + SHORTEST_STEM else None

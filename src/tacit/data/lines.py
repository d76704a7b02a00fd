"""Text on one line, for messages: no array, no NumPy, so that the command line starts quickly."""

from __future__ import annotations


def one_line(text: str, most: int = 200) -> str:
    """Text on one line, its middle left out where it is long; what a terminal would act on is shown as it is written.

    >>> one_line("far  too long a line", 12)
    'far ... line'
    >>> one_line("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    text = " ".join(text.split())
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    if len(text) <= most:
        return text
    half = max(0, most - 3) // 2
    return f"{text[:half]}...{text[-(most - 3 - half) :]}"

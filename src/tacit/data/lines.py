"""Text on one line, for messages: no array, no NumPy, so that the command line starts quickly."""

from __future__ import annotations

import json
import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that are not seen but act: controls, marks of direction, halves of pairs, line ends."""


def json_line(content: object) -> str:
    """One line of JSON, in which characters that act on a terminal or an editor are escaped; a parser reads the same.

    >>> json_line({"id": "a\\x1b[31m", "text": "é"})
    '{"id": "a\\\\u001b[31m", "text": "é"}'
    """
    text = json.dumps(content, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if unicodedata.category(c) not in _UNSEEN else json.dumps(c)[1:-1] for c in text)


def one_line(text: str, most: int = 200) -> str:
    """Text on one line, its middle left out where it is long; what a terminal would act on is shown as it is written.

    >>> one_line("far  too long a line", 12)
    'far ... line'
    >>> one_line("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    if len(text) > 100 * most + 10_000:  # the middle is left out anyway, and splitting it takes ten times as much
        text = text[: 50 * most + 5000] + " " + text[-(50 * most + 5000) :]
    text = " ".join(text.split())
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    if len(text) <= most:
        return text
    half = max(0, most - 3) // 2
    return f"{text[:half]}...{text[-(most - 3 - half) :]}"

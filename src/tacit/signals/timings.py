"""Times of words as files: CTM lines and Praat's TextGrid."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.data.lines import one_line
from tacit.data.parameters import entries, is_not_negative, number, shorten
from tacit.signals.transcriber import Word


def format_ctm(name: str, words: Sequence[Word]) -> str:
    """Lines ``recording channel start duration word``, as NIST's tools read them.

    >>> print(format_ctm("a", [Word("one", 0.5, 0.75)]), end="")
    a 1 0.500 0.250 one
    """
    recording = "_".join(one_line(str(name)).split())
    return "".join(
        f"{recording} 1 {word.start:.3f} {word.stop - word.start:.3f} {'_'.join(one_line(word.name).split())}\n"
        for word in _read_words(words)
    )


def format_textgrid(words: Sequence[Word], seconds: float) -> str:
    """A TextGrid with one tier of words; silence has empty text.

    >>> print(format_textgrid([Word("one", 0.5, 0.75)], 1.0).splitlines()[-1].strip())
    text = ""
    """
    seconds = number("seconds", seconds, "the length of the recording", is_not_negative)
    parts: list[Word] = []
    end = 0.0
    for word in _read_words(words):
        start, stop = max(word.start, end), min(max(word.stop, end), seconds)
        if start > end:
            parts.append(Word("", end, start))
        parts.append(Word(word.name, start, stop))
        end = stop
    if end < seconds:
        parts.append(Word("", end, seconds))
    lines = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        "xmin = 0",
        f"xmax = {seconds:.4f}",
        "tiers? <exists>",
        "size = 1",
        "item []:",
        "    item [1]:",
        '        class = "IntervalTier"',
        '        name = "words"',
        "        xmin = 0",
        f"        xmax = {seconds:.4f}",
        f"        intervals: size = {len(parts)}",
    ]
    for i, part in enumerate(parts, 1):
        text = one_line(part.name).replace('"', '""')
        lines += [
            f"        intervals [{i}]:",
            f"            xmin = {part.start:.4f}",
            f"            xmax = {part.stop:.4f}",
            f'            text = "{text}"',
        ]
    return "\n".join(lines) + "\n"


def _read_words(words: Sequence[Word]) -> list[Word]:
    """Words as records of a text and two numbers."""
    found = []
    for i, word in enumerate(entries("words", words, "a list of tacit.signals.Word")):
        if not isinstance(word, tuple) or len(word) != 3 or not isinstance(word[0], str):
            raise ValueError(f"words[{i}] must be a tacit.signals.Word, got {shorten(word)}")
        times = [number(f"words[{i}]", time, "a word with times in seconds", is_not_negative) for time in word[1:]]
        found.append(Word(word[0], *times))
    return found

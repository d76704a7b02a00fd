"""Files of recordings: wav, and times of words as CTM lines and Praat's TextGrid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array, first_non_finite
from tacit.data.lines import one_line
from tacit.data.parameters import entries, is_not_negative, number, reason, shorten
from tacit.data.reading import MAX_BYTES, check_promise, find_file, quote


class Recording(NamedTuple):
    """One channel of sound, as numbers from −1 to 1, and its samples per second."""

    samples: Array
    rate: int


class Word(NamedTuple):
    """One word of a recording: its name, and the seconds where it begins and ends."""

    name: str
    start: float
    stop: float


def read_wav(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Recording:
    """Read a wav file of one channel: whole numbers of 8 to 32 bits, or floats; a file of more than ``max_bytes`` is
    refused.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy.io import wavfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wavfile.write(Path(folder) / "a.wav", 8000, np.array([0, 16384, -32768], dtype=np.int16))
    ...     recording = read_wav(Path(folder) / "a.wav")
    >>> recording.rate, recording.samples.tolist()
    (8000, [0.0, 0.5, -1.0])
    """
    from scipy.io import wavfile

    file = find_file(path, "a wav file")
    check_promise(file, file.stat().st_size, max_bytes)
    try:
        rate, samples = wavfile.read(file)
    except Exception as error:  # SciPy raises many types for damaged files
        raise ValueError(f"{quote(file)} is not a wav file that can be read: {reason(error)}") from error
    if samples.ndim != 1:
        raise ValueError(
            f"{quote(file)} has {samples.shape[1]} channels, but one is needed; mix them, for example with "
            "sox in.wav out.wav remix 1,2"
        )
    values = np.array(samples, dtype=np.float64)
    if samples.dtype.kind == "u":
        values /= 128
        values -= 1
    elif samples.dtype.kind == "i":
        values /= np.iinfo(samples.dtype).max + 1.0
    wrong = first_non_finite(values[:, None])
    if wrong is not None:
        raise ValueError(f"{quote(file)} has {values[wrong[0]]} at sample {wrong[0]}; all samples must be finite")
    return Recording(values, int(rate))


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

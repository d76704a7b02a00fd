"""Recordings in wav files."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array, first_non_finite
from tacit.data.parameters import reason
from tacit.data.reading import MAX_BYTES, check_promise, find_file, quote


class Recording(NamedTuple):
    """One channel of sound, as numbers from −1 to 1, and its samples per second."""

    samples: Array
    rate: int


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

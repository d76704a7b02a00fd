"""Recordings in wav files."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten


class Recording(NamedTuple):
    """One channel of sound, as numbers from −1 to 1, and its samples per second."""

    samples: Array
    rate: int


def read_wav(path: str | os.PathLike[str]) -> Recording:
    """Read a wav file of one channel: whole numbers of 8 to 32 bits, or floats.

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

    if not os.path.isfile(path):
        raise FileNotFoundError(f"{os.fspath(path)} is not a file; give the path of a wav file")
    try:
        rate, samples = wavfile.read(path)
    except Exception as error:  # SciPy raises many types for damaged files
        raise ValueError(f"{os.fspath(path)} is not a wav file that can be read: {shorten(str(error))}") from None
    if samples.ndim != 1:
        raise ValueError(
            f"{os.fspath(path)} has {samples.shape[1]} channels, but one is needed; mix them, for example with "
            "sox in.wav out.wav remix 1,2"
        )
    if samples.dtype.kind == "u":
        samples = samples.astype(np.float64) / 128 - 1
    elif samples.dtype.kind == "i":
        samples = samples.astype(np.float64) / (np.iinfo(samples.dtype).max + 1.0)
    return Recording(np.asarray(samples, dtype=np.float64), int(rate))

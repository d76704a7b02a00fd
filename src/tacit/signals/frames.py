"""Short-time spectra on the mel scale, their cepstra and differences (Davis & Mermelstein 1980)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.fft import dct, next_fast_len, rfft
from scipy.signal import get_window

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, numbers, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import between, choice, switch

FLOOR = 1e-10
"""The least energy of a band, relative to the loudest of its recording: silence must not become −∞."""

MAX_AMPLITUDE = 1e100
"""The largest number of a signal: powers of larger ones overflow."""

BLOCK = 1 << 22
"""Numbers of frames whose spectra are computed at once."""

MAX_NUMBERS = 1 << 30
"""Numbers of all frames of a recording, which overlap: a long window with a short step makes many."""

MAX_BANK = 1 << 26
"""Numbers of the table of bands and frequencies."""

SPEECH_DB = 30.0
"""Frames at most so many decibels below the loudest ones of their recording count as speech."""

MAX_DEVIATIONS = 3.0
"""Features normalised over speech are cut off here: quiet frames would be much further away."""

KNEE = 0.8
"""Share of the highest frequency up to which a warp multiplies all frequencies."""


def cut_frames(
    signals: Any,
    rate: float,
    *,
    kind: str = "mfcc",
    window: float = 0.025,
    step: float = 0.010,
    n_mels: int = 26,
    low: float = 0.0,
    high: float | None = None,
    n_coefficients: int = 13,
    deltas: int = 1,
    normalise: bool | str = True,
    groups: Any = None,
    squares: bool = False,
    warp: float = 1.0,
) -> Ragged:
    """Turn signals into sequences of feature vectors, one per frame.

    Parameters
    ----------
    signals : a list of recordings, each a vector of numbers (one channel)
    rate : samples per second, the same for all
    kind : "mfcc" (cepstral coefficients of the mel spectrum) or "log-mel" (the logarithms of its bands)
    window, step : length of a frame, and time from one frame to the next, in seconds
    n_mels : bands of the mel scale
    low, high : lowest and highest frequency of the bands, in Hz; None for half of the rate
    n_coefficients : cepstral coefficients that are kept, for "mfcc"
    deltas : how many times differences over five frames are added, as slopes and curvatures: 0, 1 or 2
    normalise : whether every feature has mean 0 and standard deviation 1 within its recording, so that loudness and
        microphone matter less. "speech" takes mean and deviation of the frames within 30 dB of the loudest ones alone,
        and cuts features off at 3 deviations: then pauses and their noise matter less, too
    groups : one name per recording, such as its speaker: every feature is normalised over all recordings of a group
        together, so that what differs between sounds of one speaker stays
    squares : whether ``(x² − 1) / √2`` of every feature x is added, with mean 0 and deviation 1 where x is normal:
        linear scores can then equal the logarithm of a Gaussian density of independent features
    warp : factor of all frequencies below about 0.8 of the highest. Copies of training recordings with factors such as
        0.85 and 1.15 stand for other lengths of the vocal tract (Jaitly & Hinton 2013)

    >>> time = np.arange(8000) / 8000
    >>> found = cut_frames([np.sin(2 * np.pi * 440 * time), np.sin(2 * np.pi * 880 * time[:4000])], 8000)
    >>> found
    Ragged(2 samples, 48–98 rows each; 146 × 26 float64)
    """
    rate = between("a number above 0", 1e-9, 1e12)("rate", rate)
    choice("mfcc", "log-mel")("kind", kind)
    if not (isinstance(normalise, str) and normalise == "speech"):
        switch("normalise", normalise)
    switch("squares", squares)
    warp = between("a number from 0.5 to 2", 0.5, 2.0)("warp", warp)
    deltas = whole_number("deltas", deltas, 0, 2)
    n_mels = whole_number("n_mels", n_mels, 2, 1024)
    n_coefficients = whole_number("n_coefficients", n_coefficients, 1, 1024)
    low = between(f"a frequency from 0 to below {rate / 2:g} Hz", 0.0, rate / 2)("low", low)
    top = between(f"a frequency from 0 to {rate / 2:g} Hz, half of the rate", 0.0, rate / 2)(
        "high", rate / 2 if high is None else high
    )
    if low >= top:
        raise ValueError(f"low must be below high, {top:g} Hz, got {low:g} Hz")
    if kind == "mfcc" and n_coefficients > n_mels:
        raise ValueError(f"n_coefficients must be at most n_mels, {n_mels}, got {n_coefficients}")
    size, hop = _samples("window", window, rate), _samples("step", step, rate)
    recordings = [_check(signal, i, size, hop, rate) for i, signal in enumerate(_list(signals))]
    group_of = _read_groups(groups, len(recordings), normalise)
    taper = get_window("hamming", size)
    length = next_fast_len(max(size, 2 * n_mels), real=True)
    if n_mels * length > MAX_BANK:
        raise ValueError(f"n_mels={n_mels} bands of a window of {size} samples need too much memory; lower one of them")
    bank = mel_bank(rate, length, n_mels, low, top, warp)
    tables, counted = [], []
    for signal in recordings:
        energy = _energies(signal, taper, length, hop, bank)
        table = np.log(np.maximum(energy, FLOOR * max(float(energy.max()), np.finfo(float).tiny)))
        counted.append(_find_speech(table) if normalise == "speech" else np.ones(len(table), dtype=bool))
        if kind == "mfcc":
            table = dct(table, type=2, norm="ortho", axis=1)[:, :n_coefficients]
        parts = [table]
        for _ in range(deltas):
            parts.append(_slopes(parts[-1]))
        tables.append(np.hstack(parts))
    if normalise:
        _normalise(tables, counted, group_of)
    if normalise == "speech":
        tables = [np.clip(table, -MAX_DEVIATIONS, MAX_DEVIATIONS) for table in tables]
    if squares:
        tables = [np.hstack([table, (table**2 - 1) / np.sqrt(2)]) for table in tables]
    return Ragged.from_list(tables)


def mel_bank(
    rate: float, length: int, n_mels: int, low: float = 0.0, high: float | None = None, warp: float = 1.0
) -> Array:
    """(bands, frequencies): triangles that are equally wide on the mel scale, 2595 log₁₀(1 + f / 700).

    Frequencies are multiplied by ``warp`` up to a knee, from which a line leads to the highest, which stays.

    >>> bank = mel_bank(8000, 256, 10)
    >>> bank.shape, bool((bank.max(axis=1) > 0).all())
    ((10, 129), True)
    """
    first, last = (2595 * np.log10(1 + f / 700) for f in (low, rate / 2 if high is None else high))
    edges = 700 * (10 ** (np.linspace(first, last, n_mels + 2) / 2595) - 1)
    if not (np.diff(edges) > 0).all():
        raise ValueError(f"high must be further above low={low:g} Hz: {n_mels} bands between them have no width")
    frequencies = np.arange(length // 2 + 1) * rate / length
    if warp != 1.0:
        knee = KNEE * rate / 2 * min(warp, 1.0)
        frequencies = np.interp(frequencies, [0.0, knee / warp, rate / 2], [0.0, knee, rate / 2])
    rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    bank = np.maximum(0, np.minimum(rising, falling))
    empty = np.flatnonzero(~bank.any(axis=1))  # narrower than the distance of two frequencies: take the nearest
    bank[empty, np.argmin(np.abs(frequencies - edges[1:-1][empty, None]), axis=1)] = 1.0
    return np.asarray(bank)


def _find_speech(table: Array) -> Array:
    """Which frames are nearly as loud as the loudest ones, by the mean of the logarithms of their bands."""
    loudness = table.mean(axis=1)
    return np.asarray(loudness >= np.quantile(loudness, 0.98) - SPEECH_DB * np.log(10) / 10)


def _normalise(tables: list[Array], counted: list[Array], group_of: Array) -> None:
    """Give every feature mean 0 and standard deviation 1 over the frames that count, of all recordings of a group."""
    for group in range(int(group_of.max()) + 1):
        own = np.flatnonzero(group_of == group)
        values = np.vstack([tables[i][counted[i]] for i in own])
        mean, spread = values.mean(axis=0), values.std(axis=0)
        for i in own:
            tables[i] = (tables[i] - mean) / np.where(spread > 1e-12, spread, 1.0)


def _read_groups(groups: Any, n: int, normalise: bool | str) -> Array:
    """The number of the group of every recording: its own where none are given."""
    if groups is None:
        return np.arange(n)
    if not normalise:
        raise ValueError("groups says what is normalised together, but normalise is False; leave one of the two out")
    if not has_length(groups) or len(groups) != n:
        raise ValueError(f"groups must hold one name per recording ({n}), got {shorten(groups)}")
    return np.unique([str(name) for name in groups], return_inverse=True)[1]


def _energies(signal: Array, taper: Array, length: int, hop: int, bank: Array) -> Array:
    """(frames, bands): the power of every band in every frame, computed block by block."""
    cut = np.lib.stride_tricks.sliding_window_view(signal, taper.size)[::hop]
    n = max(1, BLOCK // length)
    blocks = [_spectra(cut[i : i + n], taper, length) @ bank.T for i in range(0, len(cut), n)]
    return np.concatenate(blocks)


def _spectra(frames: Array, taper: Array, length: int) -> Array:
    """(frames, frequencies): the power of every frequency of every frame."""
    return np.asarray(np.abs(rfft(frames * taper, length, axis=1)) ** 2)


def _slopes(table: Array) -> Array:
    """The slope of the least-squares line through five frames; frames at the ends are repeated."""
    padded = np.pad(table, ((2, 2), (0, 0)), mode="edge")
    n = len(table)
    return np.asarray((padded[3 : n + 3] - padded[1 : n + 1] + 2 * (padded[4:] - padded[:n])) / 10)


def _samples(name: str, seconds: Any, rate: float) -> int:
    between("a number of seconds above 0", 1e-9, 1e6)(name, seconds)
    count = round(float(seconds) * rate)
    if count < 2:
        raise ValueError(f"{name} must last at least 2 samples, got {seconds} s at {rate:g} samples per second")
    return count


def _list(signals: Any) -> Sequence[Any]:
    if isinstance(signals, np.ndarray) and signals.ndim == 1 and signals.dtype != object:
        raise ValueError("signals must be a list of recordings, got one vector; give [signal]")
    if not has_length(signals) or not len(signals):
        raise ValueError(f"signals must be a list of recordings, got {shorten(signals)}")
    return list(signals)


def _check(signal: Any, i: int, size: int, hop: int, rate: float) -> Array:
    values = numbers(f"signals[{i}]", signal, "a vector of numbers").astype(np.float64)
    if values.ndim == 2:
        raise ValueError(f"signals[{i}] has {values.shape} numbers, but one channel is needed; mix its channels")
    if values.ndim != 1:
        raise ValueError(f"signals[{i}] must be a vector of numbers, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"signals[{i}] has NaN or infinite numbers at sample {int(np.argmin(np.isfinite(values)))}")
    if values.size < size:
        have, need = values.size / rate, size / rate
        raise ValueError(f"signals[{i}] lasts {have:.3g} s, less than one frame of {need:.3g} s; use a shorter window")
    if max(values.max(), -values.min()) > MAX_AMPLITUDE:
        raise ValueError(f"signals[{i}] has too large numbers, above {MAX_AMPLITUDE:g}; scale it to −1 to 1")
    if (values.size - size) // hop * size > MAX_NUMBERS:
        raise ValueError(
            f"signals[{i}] has {values.size} samples, too many for a window of {size} and a step of {hop} samples; "
            "use a shorter window or a longer step"
        )
    return values

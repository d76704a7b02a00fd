"""Connected digits of a speaker who is not in the training data: what frames are normalised over, and warped copies."""

from __future__ import annotations

import importlib.util
import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.connected_digits import PENALTIES, STATES, Loop, _cut, _join
from benchmarks.harness import Page, Skipped, real_data
from benchmarks.spoken_digits import FRAMES, RATE, WARPS
from tacit import LatentSVM, Ragged
from tacit.problems import Transcript
from tacit.problems.transcript.edits import error_rate
from tacit.signals import cut_frames

NORMALISED: dict[str, Any] = {"all frames": True, "speech": "speech"}
C, MAX_ITER, MAX_ITER_WARPED = 100.0, 8, 6


def run() -> Page:
    if importlib.util.find_spec("hmmlearn") is None:
        raise Skipped("hmmlearn is not installed")
    page = Page(
        "Connected spoken digits of new speakers",
        "The strings of connected_digits.md, one speaker left out of training. Features are normalised over all frames "
        "of a speaker, or over those within 30 dB of the loudest ones (`normalise='speech'`), without labels. "
        "Transcript has 8 states per digit and skips=1; LatentSVM has C = 100 and ends after at most 8 iterations. The "
        "HMM is that of connected_digits.md; its insertion penalty is chosen on another speaker of the training part. "
        "'Warped' adds copies of the training recordings with "
        "frequencies times 0.85 and 1.15, and LatentSVM then ends after at most 6 iterations. Word error (%) by edit "
        "distance.",
        ["model", "normalised over", "word error", "per speaker", "CPU s per fit"],
    )
    with np.load(real_data() / "digits_spoken" / "digits.npz") as data:
        samples, offsets, digit, speaker = (data[name] for name in ("samples", "offsets", "digit", "speaker"))
    signals = [samples[a:b].astype(float) for a, b in pairwise(offsets)]
    people = np.unique(speaker, return_inverse=True)[1]
    joined = [_join(signals, digit, speaker, np.flatnonzero(people == p), p) for p in range(people.max() + 1)]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, over in NORMALISED.items():
            strings = _cut(joined, normalise=over)
            singles = cut_frames(signals, RATE, groups=speaker, normalise=over, **FRAMES)
            page.rows.append(_measure("HMM of digits, in a loop", name, [strings], ([singles], digit, people)))
            page.rows.append(_measure("Transcript, LatentSVM", name, [strings]))
        copies = [_cut(joined, normalise="speech", warp=warp) for warp in WARPS]
        several = [cut_frames(signals, RATE, groups=speaker, normalise="speech", warp=warp, **FRAMES) for warp in WARPS]
        own = several, digit, people
        page.rows.append(_measure("HMM of digits, in a loop, warped", "speech", copies, own))
        page.rows.append(_measure("Transcript, LatentSVM, warped", "speech", copies))
    page.notes += [
        "Speakers are in alphabetical order: george, jackson, lucas, nicolas. The 30 dB, the limit of three deviations "
        "and C were chosen with george and lucas held out, among four settings. Jackson and nicolas were tested for "
        "this page alone, but for connected_digits.md before. The warped HMM was measured "
        "last, in a run of its own.",
        "Aim: below half of the HMM's word error. Missed: the warped Transcript is below the HMM, not below half of "
        "it.",
    ]
    return page


def _measure(model: str, name: str, copies: list[list[Any]], singles: Any = None) -> tuple[Any, ...]:
    strings, words, wrong, seconds = copies[0], 0, 0.0, 0.0
    rates = []
    for held, test in enumerate(strings):
        train = [p for p in range(len(strings)) if p != held]
        began = time.process_time()
        if singles is None:
            X = Ragged.concatenate([copy[p].rich for copy in copies for p in train])
            y = [digits for _ in copies for p in train for digits in strings[p].y]
            most = MAX_ITER if len(copies) == 1 else MAX_ITER_WARPED
            fitted: Any = LatentSVM(Transcript(states=STATES, skips=1), C=C, tol=1e-3, max_iter=most, verbose=0)
            found = fitted.fit(X, y).predict(test.rich)
        else:
            found = _fit_loop(strings, held, train, *singles).predict(test.plain)
        seconds = time.process_time() - began
        rates.append(error_rate(test.y, found))
        words, wrong = words + sum(map(len, test.y)), wrong + rates[-1] * sum(map(len, test.y))
    each = ", ".join(f"{100 * rate:.1f}" for rate in rates)
    row = (model, name, f"{100 * wrong / words:.1f}", each, f"{seconds:.0f}")
    print(row, flush=True)
    return row


def _fit_loop(
    strings: list[Any], held: int, train: list[int], copies: list[Ragged], y: np.ndarray, people: np.ndarray
) -> Loop:
    """The HMM, with the penalty that is best for one of the training speakers."""
    inner = (held + 1) % len(strings)
    others = [p for p in train if p != inner]

    def fit(parts: list[int], penalty: float) -> Loop:
        rows = np.flatnonzero(np.isin(people, parts))
        X = Ragged.concatenate([copy[rows] for copy in copies])
        return Loop(penalty).fit(X, np.tile(y[rows], len(copies)), [strings[p] for p in parts])

    first = fit(others, 0.0)
    lost = [error_rate(strings[inner].y, first.with_penalty(p).predict(strings[inner].plain)) for p in PENALTIES]
    return fit(train, PENALTIES[int(np.argmin(lost))])

"""Single digits of speakers who are not in the training data, with settings that all training speakers choose."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, Skipped, keep, real_data
from benchmarks.spoken_digits import (
    FRAMES,
    LEARNERS,
    RATE,
    STATES,
    WARPS,
    GaussianHMMs,
    _error,
    _logistic,
    _means,
    _sequence,
)
from tacit.signals import cut_frames

PATHS: dict[str, Sequence[float]] = {"C": (0.01, 0.1, 1.0, 10.0), "states": STATES}
SHOWN = "LatentSVM", "LatentSVM, smooth start"


def run() -> Page:
    if importlib.util.find_spec("hmmlearn") is None:
        raise Skipped("hmmlearn is not installed")
    page = Page(
        "Single spoken digits of new speakers",
        "The recordings, frames and models of spoken_digits.md, one of four speakers left out. There, one training "
        "speaker chooses between C = 10 and 50; here all three do, each left out of training in turn, without warped "
        "copies, and C goes down to 0.01. Then the model learns from the three speakers with warped copies. ± is half "
        "of a 95 % interval, binomial. 'Inner error': mean over the pairs of speakers left out, at the best C and at "
        "C = 10, 8 states; 'inner objective': the training objective there. Must: below the HMM and the mean of the "
        "frames.",
        [
            "model",
            "error, speaker left out",
            "per speaker",
            "chosen",
            "inner error, best C",
            "inner error, C = 10",
            "inner objective, C = 0.1; 10",
        ],
    )
    with np.load(real_data() / "digits_spoken" / "digits.npz") as data:
        samples, offsets, digit, speaker = (data[name] for name in ("samples", "offsets", "digit", "speaker"))
    signals = [samples[a:b].astype(float) for a, b in pairwise(offsets)]
    plain = [cut_frames(signals, RATE, groups=speaker, warp=warp, **FRAMES) for warp in WARPS]
    rich = [cut_frames(signals, RATE, groups=speaker, squares=True, warp=warp, **FRAMES) for warp in WARPS]
    people = np.unique(speaker, return_inverse=True)[1]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows: dict[str, tuple[Callable[..., Any], dict[str, Sequence[float]], Any]] = {
            "Gaussian HMM per digit (hmmlearn)": (GaussianHMMs, {"states": STATES}, plain),
            "logistic regression, mean and deviation": (
                _logistic,
                {"C": (0.01, 0.1, 1.0, 10.0)},
                [_means(frames) for frames in plain],
            ),
        }
        for name in SHOWN:
            rows[f"SequenceClass, {name}"] = _sequence(LEARNERS[name]), PATHS, rich
        for name, (make, grid, copies) in rows.items():
            page.rows.append(_row(name, make, grid, copies, digit, people))
            print(page.rows[-1], flush=True)
    page.notes += [
        "Speakers are in alphabetical order: george, jackson, lucas, nicolas. All four were tested before, for "
        "spoken_digits.md, and each also chooses settings where another one is tested. C below 10 was tried because "
        "the inner errors of the smooth start were higher there, although its objective was half of that of the usual "
        "start.",
        "Why the smooth start has more errors on spoken_digits.md: at C = 10 it reaches half of the objective, but has "
        "more errors on other speakers. At C = 0.1 both starts end nearly equally low. With settings chosen by all "
        "training speakers, it is as good as the HMM; the intervals overlap. The usual start is worse here than there "
        "(18.0), where C = 10 or 50 was chosen: a possible reason is that the inner fits have no warped copies.",
    ]
    return page


def _row(
    name: str,
    make: Callable[..., Any],
    grid: dict[str, Sequence[float]],
    copies: Sequence[Any],
    y: np.ndarray,
    people: np.ndarray,
) -> tuple[Any, ...]:
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    count = int(people.max()) + 1
    inner = np.full((len(settings), count, count), np.nan)  # setting, speaker left out, speaker tested
    objectives = np.full((len(settings), count, count), np.nan)
    for number, one in enumerate(settings):
        for a, b in combinations(range(count), 2):
            key = name, *one.values(), a, b
            kept = keep("single_speakers", key, lambda s=one, p=(a, b): _pair(make(**s), copies[0], y, people, *p))
            inner[number, b, a], inner[number, a, b], objectives[number, a, b] = kept
    errors, chosen = np.zeros(count), []
    for held in range(count):
        best = settings[int(np.argmin(np.nanmean(inner[:, held], axis=1)))]
        chosen.append(" × ".join(f"{value:g}" for value in best.values()))
        rows, tested = np.flatnonzero(people != held), np.flatnonzero(people == held)
        key = name, *best.values(), held
        errors[held] = keep(
            "single_speakers", key, lambda s=best, r=rows, t=tested: [_error(make(**s), copies, y, r, t)[0]]
        )[0]
    sizes = np.bincount(people)
    rate = float(errors @ sizes / sizes.sum())
    wrong = np.nanmean(inner, axis=(1, 2))
    at = [settings.index({"C": C, "states": 8}) if "C" in grid and "states" in grid else None for C in (0.1, 10.0)]
    lost = [float(np.nanmean(objectives[i])) for i in at if i is not None]
    return (
        name,
        f"{100 * rate:.1f} ± {196 * np.sqrt(rate * (1 - rate) / sizes.sum()):.1f}",
        ", ".join(f"{100 * error:.1f}" for error in errors),
        f"{'×'.join(grid)}: {'; '.join(chosen)}",
        f"{100 * wrong.min():.1f}",
        "–" if at[1] is None else f"{100 * wrong[at[1]]:.1f}",
        "; ".join(f"{value:.3f}" for value in lost) or "–",
    )


def _pair(model: Any, frames: Any, y: np.ndarray, people: np.ndarray, a: int, b: int) -> list[float]:
    """The errors on two speakers of a model that learned from the others, and its objective."""
    rows = np.flatnonzero((people != a) & (people != b))
    model.fit(frames[rows], y[rows])
    wrong = [float(np.mean(model.predict(frames[people == one]) != y[people == one])) for one in (a, b)]
    return [*wrong, float(getattr(model, "objective_", np.nan))]

"""Spoken digits, a hidden state per frame: latent learners, Gaussian HMM, DTW, and the mean of the frames."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, Skipped, real_data
from tacit import HiddenCRF, LatentSVM, MinEntropySVM, Ragged, SelfPaced
from tacit.data.kernels import kernel
from tacit.problems import SequenceClass
from tacit.signals import cut_frames

RATE = 8000
FRAMES = {"step": 0.02, "low": 60.0, "high": 3420.0}
WARPS = (1.0, 0.85, 1.15)
STATES = (4, 8)
GRID = {"C": (10.0, 50.0), "states": STATES}
FOLDS = 3

LEARNERS: dict[str, Callable[..., Any]] = {
    "LatentSVM": lambda problem, C: LatentSVM(problem, C=C, tol=1e-2),
    "LatentSVM, self-paced": lambda problem, C: LatentSVM(problem, C=C, tol=1e-2, pace=SelfPaced()),
    "LatentSVM, smooth start": lambda problem, C: LatentSVM(problem, C=C, tol=1e-2, init="smooth"),
    "MinEntropySVM, order 1": lambda problem, C: MinEntropySVM(problem, C=C, alpha=1.0, tol=1e-2),
    "HiddenCRF": lambda problem, C: HiddenCRF(problem, C=C, tol=1e-3, max_iter=50),
}


def run() -> Page:
    if importlib.util.find_spec("hmmlearn") is None:
        raise Skipped("hmmlearn is not installed")
    page = Page(
        "Single spoken digits",
        "1,200 recordings of ten digits by four speakers. Frames of 25 ms every 20 ms: 13 cepstral coefficients of "
        "bands from 60 to 3,420 Hz and their slopes, normalised over all recordings of a speaker, without labels. "
        "SequenceClass and the logistic regression also see the squares. Left-to-right states with skips=1; the HMM "
        "has the same topology, diagonal covariances and 15 steps of EM. Error (%) on unseen recordings: in three "
        "random folds, and with one speaker left out, for which training recordings also come with frequencies times "
        "0.85 and 1.15. States and C are chosen per fold on one part of the training data, another random fold or "
        "another speaker, without warped copies. ± is half of a 95 % interval, binomial. Must: below the HMM and the "
        "mean of the frames in both; aim: at most 2 % in random folds. CPU seconds of the fits on one training set.",
        ["model", "random folds", "speaker left out", "per speaker", "chosen, speaker left out", "CPU s per fit"],
    )
    with np.load(real_data() / "digits_spoken" / "digits.npz") as data:
        samples, offsets, digit, speaker = (data[name] for name in ("samples", "offsets", "digit", "speaker"))
    signals = [samples[a:b].astype(float) for a, b in pairwise(offsets)]
    plain = [cut_frames(signals, RATE, groups=speaker, warp=warp, **FRAMES) for warp in WARPS]
    rich = [cut_frames(signals, RATE, groups=speaker, squares=True, warp=warp, **FRAMES) for warp in WARPS]
    alone = [cut_frames(signals, RATE, squares=True, warp=warp, **FRAMES) for warp in WARPS]
    folds = np.random.default_rng(0).permutation(len(digit)) % FOLDS
    people = np.unique(speaker, return_inverse=True)[1]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in LEARNERS.items():
            page.rows.append(_row(f"SequenceClass, {name}", _sequence(make), GRID, rich, digit, folds, people))
        page.rows.append(
            _row(
                "the same CRF, every recording normalised by itself",
                _sequence(LEARNERS["HiddenCRF"]),
                GRID,
                alone,
                digit,
                folds,
                people,
            )
        )
        page.rows.append(
            _row("Gaussian HMM per digit (hmmlearn)", GaussianHMMs, {"states": STATES}, plain, digit, folds, people)
        )
        means = [_means(frames) for frames in plain]
        page.rows.append(
            _row(
                "logistic regression, mean and deviation",
                _logistic,
                {"C": (0.1, 1.0, 10.0)},
                means,
                digit,
                folds,
                people,
            )
        )
        page.rows.append(_row("nearest neighbour by DTW", Nearest, {"C": (1.0,)}, plain, digit, folds, people))
    page.notes += [
        "The options of the frames (bands, normalisation, squares, warps) were chosen while two of the four speakers, "
        "lucas and george, were held out, and one random third: about fifteen settings were seen. Speakers jackson and "
        "nicolas were seen once before. Speakers are in alphabetical order: george, jackson, lucas, nicolas.",
        "A recording of an unknown speaker must be normalised by itself: the row of that CRF says what it costs.",
    ]
    page.notes.append(
        "Met in random folds by all learners, and with a speaker left out by all but the smooth start; the intervals "
        "of the learners and of the HMM overlap there. In random folds DTW, which keeps all recordings, has fewer "
        "errors."
    )
    return page


def _row(
    name: str,
    make: Callable[..., Any],
    grid: dict[str, Sequence[float]],
    copies: Sequence[Any],
    y: np.ndarray,
    folds: np.ndarray,
    people: np.ndarray,
) -> tuple[Any, ...]:
    cells: list[str] = []
    chosen: list[str] = []
    seconds = 0.0
    for part, n_copies in ((folds, 1), (people, len(WARPS))):
        count = int(part.max()) + 1
        errors, chosen = np.zeros(count), []
        for held in range(count):
            inner = (held + 1) % count
            fit_rows = np.flatnonzero((part != held) & (part != inner))
            settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
            if len(settings) > 1:
                inner_rows = np.flatnonzero(part == inner)
                lost = [_error(make(**s), copies[:1], y, fit_rows, inner_rows)[0] for s in settings]
                best = settings[int(np.argmin(lost))]
            else:
                best = settings[0]
            chosen.append(" × ".join(f"{value:g}" for value in best.values()))
            rows = np.flatnonzero(part != held)
            errors[held], seconds = _error(make(**best), copies[:n_copies], y, rows, np.flatnonzero(part == held))
        sizes = np.bincount(part)
        rate = float(errors @ sizes / sizes.sum())
        cells.append(f"{100 * rate:.1f} ± {196 * np.sqrt(rate * (1 - rate) / sizes.sum()):.1f}")
    each = ", ".join(f"{100 * error:.1f}" for error in errors)
    found = (
        name,
        *cells,
        each,
        f"{'×'.join(grid)}: {'; '.join(chosen)}" if len(settings) > 1 else "–",
        f"{seconds:.1f}",
    )
    print(found, flush=True)
    return found


def _error(
    model: Any, copies: Sequence[Any], y: np.ndarray, rows: np.ndarray, tested: np.ndarray
) -> tuple[float, float]:
    """Share of wrong labels, and processor seconds of the fit on all copies of the training recordings."""
    if isinstance(copies[0], Ragged):
        train: Any = Ragged.from_list([frames for copy in copies for frames in copy[rows]])
    else:
        train = np.vstack([copy[rows] for copy in copies])
    began = time.process_time()
    model.fit(train, np.tile(y[rows], len(copies)))
    seconds = time.process_time() - began
    return float(np.mean(model.predict(copies[0][tested]) != y[tested])), seconds


def _sequence(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda C, states: make(SequenceClass(states=states, topology="left-to-right", skips=1), C)


def _logistic(C: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2000))


def _means(frames: Ragged) -> np.ndarray:
    """Mean and deviation of every feature, and their squares."""
    table = np.array([np.r_[x.mean(axis=0), x.std(axis=0)] for x in frames])
    return np.hstack([table, table**2])


class GaussianHMMs:
    """One HMM per label, left-to-right or ergodic; the label of the highest likelihood is predicted."""

    def __init__(self, states: int, topology: str = "left-to-right") -> None:
        self.states, self.topology = states, topology

    def fit(self, X: Ragged, y: np.ndarray) -> GaussianHMMs:
        from hmmlearn.hmm import GaussianHMM

        k = self.states
        step = np.arange(k)[None, :] - np.arange(k)[:, None]
        ways = np.where(step == 0, 0.7, np.where((step > 0) & (step < 3), 0.15, 0.0))
        self.classes = np.unique(y)
        self.models = []
        for label in self.classes:
            own = [X[i] for i in np.flatnonzero(y == label)]
            values = np.vstack(own)
            if self.topology == "ergodic":  # begins with k-means
                model = GaussianHMM(k, "diag", n_iter=15, min_covar=0.01, random_state=0)
                self.models.append(model.fit(values, [len(x) for x in own]))
                continue
            state = np.concatenate([np.arange(len(x)) * k // len(x) for x in own])
            model = GaussianHMM(k, "diag", n_iter=15, init_params="", params="tmc", random_state=0)
            model.startprob_, model.transmat_ = np.eye(k)[0], ways / ways.sum(axis=1, keepdims=True)
            model.means_ = np.array([values[state == j].mean(axis=0) for j in range(k)])
            model.covars_ = np.array([values[state == j].var(axis=0) + 0.01 for j in range(k)])
            self.models.append(model.fit(values, [len(x) for x in own]))
        return self

    def predict(self, X: Ragged) -> np.ndarray:
        scores = [[model.score(x) for model in self.models] for x in X]
        return np.asarray(self.classes[np.argmax(scores, axis=1)])


class Nearest:
    """The label of the nearest training recording by dynamic time warping, per step of the path."""

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X: Ragged, y: np.ndarray) -> Nearest:
        self.X, self.y = X, y
        return self

    def predict(self, X: Ragged) -> np.ndarray:
        nearest = np.empty(len(X), dtype=np.int64)
        find_nearest(X.values, X.offsets, self.X.values, self.X.offsets, nearest)
        return np.asarray(self.y[nearest])


@kernel
def find_nearest(
    first: np.ndarray, first_starts: np.ndarray, second: np.ndarray, second_starts: np.ndarray, nearest: np.ndarray
) -> None:
    """Dynamic time warping of all pairs, squared distances of frames, by the sum of both lengths."""
    longest = 1
    for j in range(second_starts.size - 1):
        longest = max(longest, second_starts[j + 1] - second_starts[j])
    before, now = np.empty(longest + 1), np.empty(longest + 1)
    for i in range(first_starts.size - 1):
        least = np.inf
        for j in range(second_starts.size - 1):
            n, m = first_starts[i + 1] - first_starts[i], second_starts[j + 1] - second_starts[j]
            for b in range(m + 1):
                before[b] = np.inf
            before[0] = 0.0
            for a in range(n):
                now[0] = np.inf
                row = first[first_starts[i] + a]
                for b in range(m):
                    other = second[second_starts[j] + b]
                    distance = 0.0
                    for f in range(row.size):
                        distance += (row[f] - other[f]) * (row[f] - other[f])
                    now[b + 1] = distance + min(before[b], before[b + 1], now[b])
                for b in range(m + 1):
                    before[b] = now[b]
            if before[m] / (n + m) < least:
                least = before[m] / (n + m)
                nearest[i] = j

"""Connected digits, only the digits known: word error and boundaries of Transcript, of an HMM, of equal division."""

from __future__ import annotations

import importlib.util
import time
import warnings
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, Skipped, keep, real_data
from benchmarks.spoken_digits import FRAMES, RATE, GaussianHMMs
from tacit import HiddenCRF, LatentSVM, Ragged
from tacit.problems import Transcript
from tacit.problems.transcript.automata import Layout, expand, free_segments, line_segments
from tacit.problems.transcript.edits import error_rate
from tacit.problems.transcript.walks import best_walks
from tacit.signals import cut_frames

STATES, FOLDS = 8, 3
SILENCE = (0.05, 0.3)
HALF_WINDOW = 0.0125
PENALTIES = (0.0, 20.0, 40.0, 80.0, 160.0)
CRF_DIVIDED, CRF_CUT = "CRF of frames, strings divided equally", "CRF of frames, recordings cut"


def _crf(problem: Transcript, C: float) -> HiddenCRF:
    return HiddenCRF(problem, C=C, tol=1e-3, max_iter=60, verbose=0)


LEARNERS: dict[str, tuple[Any, tuple[float, ...]]] = {
    CRF_DIVIDED: (_crf, (0.001, 0.01, 0.1, 1.0)),
    CRF_CUT: (_crf, (0.01, 0.1, 1.0)),
    "LatentSVM": (
        lambda problem, C: LatentSVM(problem, C=C, tol=1e-3, max_iter=15, verbose=0),
        (100.0, 1000.0),
    ),
    "HiddenCRF": (_crf, (10.0, 100.0)),
}


class Strings(NamedTuple):
    """Joined recordings: frames with and without squares, digits, and seconds where each begins and ends."""

    rich: Ragged
    plain: Ragged
    y: list[np.ndarray]
    bounds: list[np.ndarray]
    silent: np.ndarray
    """Which of all frames lie in the silence that was put in: known for test and for the HMM's silence alone."""


def run() -> Page:
    if importlib.util.find_spec("hmmlearn") is None:
        raise Skipped("hmmlearn is not installed")
    page = Page(
        "Connected spoken digits",
        "Three to seven recordings of one speaker, joined with 50 to 300 ms of noise as quiet as their quietest "
        "samples before, between and behind them; 1,200 recordings, each used once, about 240 strings. Learners know "
        "the digits, not their times. Frames as in spoken_digits.md. Transcript has 8 states per digit, skips=1 and "
        "silence. The HMM: one Gaussian HMM per digit (hmmlearn, the same topology) trained on single recordings of "
        "the training part, joined in a loop with a silence state, whose mean and variance come from the silence of "
        "the training strings; its insertion penalty and every C are chosen on another fold or speaker of the "
        "training part. A CRF of frames learns from one state per frame: it is HiddenCRF on Transcript with all "
        "alignments given, so a conditional random field over the states of the same automaton, decoded by dynamic "
        "programming over all transcripts. 'Strings divided equally': every digit of a training string has equally "
        "many frames, a ninth of them silence, the others divided among its states. 'Recordings cut': the frames of "
        "every recording are divided among the states of its digit, and the others are silence; it knows what the HMM "
        "knows. Word error (%) by edit distance; boundary error: median distance (ms) of begins and ends of digits "
        "from those of the recordings, the digits of test strings given. Equal division knows their number alone. Aim: "
        "word error below half of the HMM's, median boundary error at most 40 ms.",
        ["model", "word error, random folds", "ms", "word error, speaker left out", "ms", "chosen", "CPU s per fit"],
    )
    with np.load(real_data() / "digits_spoken" / "digits.npz") as data:
        samples, offsets, digit, speaker = (data[name] for name in ("samples", "offsets", "digit", "speaker"))
    signals = [samples[a:b].astype(float) for a, b in pairwise(offsets)]
    folds = np.random.default_rng(0).permutation(len(digit)) % FOLDS
    people = np.unique(speaker, return_inverse=True)[1]
    singles = cut_frames(signals, RATE, groups=speaker, **FRAMES)
    cells: dict[str, list[Any]] = {name: [] for name in ("HMM", "equal division", *LEARNERS)}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in (folds, people):
            strings = [_join(signals, digit, speaker, np.flatnonzero(part == p), p) for p in range(part.max() + 1)]
            strings = _cut(strings)
            for name in cells:
                measure = partial(_measure, name, strings, singles, digit, part)
                cells[name].append(keep("connected_digits", (name, part.max() + 1), measure))
                print(name, cells[name][-1], flush=True)
    names = {"HMM": "HMM of digits trained on singles, in a loop"}
    for name, (random, left) in cells.items():
        label = names.get(name, f"Transcript, {name}" if name in ("LatentSVM", "HiddenCRF") else name)
        chosen = "–" if not random[2] else f"{random[2]}; {left[2]}"
        page.rows.append((label, random[0], random[1], left[0], left[1], chosen, f"{left[3]:.0f}"))
    page.notes += [
        "The number of states, the learners' tolerances and the silence were chosen on one random third against "
        "another; so two of the three random folds were validation data before. For a speaker left out, a run with "
        "warped frequencies was begun after this table and stopped: the HMM then had 30.0 % word errors.",
        "Met in random folds by LatentSVM, in words and times. Missed with a speaker left out: neither learner has "
        "half of the HMM's word error. The HMM knows single recordings and silence.",
        "The CRFs of frames came last; C = 10 and 100 were seen on one third against another first, and had more "
        "errors there. The rows of the HMM and of equal division were measured again with them, and are the same as "
        "before; those of LatentSVM and HiddenCRF are of the run before. With C = 10 as well, LatentSVM has 1.3 % and "
        "31 ms in random folds.",
        "MinEntropySVM is not in the table. Its search visits up to 64 transcripts per string and pass: 40 strings "
        "took 5.8 CPU seconds (order 1, 6,924 frames), and 36 of the 40 searches were still open.",
        "Features are normalised over all strings of a speaker, without labels, as in spoken_digits.md.",
    ]
    return page


def _join(
    signals: list[np.ndarray], digit: np.ndarray, speaker: np.ndarray, rows: np.ndarray, seed: int
) -> list[tuple[Any, ...]]:
    """Strings of these recordings: signal, digits, speaker, seconds of begins and ends."""
    rng, found = np.random.default_rng(seed), []
    for who in np.unique(speaker[rows]):
        own = rng.permutation(rows[speaker[rows] == who])
        while own.size >= 3:
            size = int(rng.integers(3, 8))
            size = own.size if own.size - size < 3 and own.size <= 7 else min(size, own.size)
            chosen, own = own[:size], own[size:]
            quiet = float(np.median([np.sort(np.abs(signals[i]))[:200].mean() for i in chosen]))
            parts, bounds, time_ = [], [], 0
            for i in (*chosen, None):
                parts.append(quiet * rng.standard_normal(int(rng.uniform(*SILENCE) * RATE)))
                time_ += parts[-1].size
                if i is not None:
                    bounds.append((time_ / RATE, (time_ + signals[i].size) / RATE))
                    parts.append(signals[i])
                    time_ += signals[i].size
            found.append((np.concatenate(parts), digit[chosen], who, np.array(bounds)))
    return found


def _cut(parts: list[list[tuple[Any, ...]]], **options: Any) -> list[Any]:
    """Frames of the strings of every part, normalised over all strings of a speaker."""
    everything = [one for part in parts for one in part]
    signals, groups = [one[0] for one in everything], [one[2] for one in everything]
    plain = cut_frames(signals, RATE, groups=groups, **FRAMES, **options)
    rich = cut_frames(signals, RATE, groups=groups, squares=True, **FRAMES, **options)
    cuts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    found = []
    for part, a, b in zip(parts, cuts[:-1], cuts[1:], strict=True):
        bounds, silent = [one[3] for one in part], []
        for own, size in zip(bounds, plain[a:b].lengths, strict=True):
            middle = np.arange(size) * FRAMES["step"] + HALF_WINDOW
            inside = (middle[:, None] > own[:, 0] - 0.02) & (middle[:, None] < own[:, 1] + 0.02)
            silent.append(~inside.any(axis=1))
        found.append(Strings(rich[a:b], plain[a:b], [one[1] for one in part], bounds, np.concatenate(silent)))
    return found


def _measure(name: str, strings: list[Any], singles: Ragged, digit: np.ndarray, part: np.ndarray) -> tuple[Any, ...]:
    """Word error and median boundary error over all held-out parts, what was chosen, and seconds of the last fit."""
    count = len(strings)
    y: list[Any] = []
    found: list[Any] = []
    distances: list[float] = []
    chosen, seconds = [], 0.0
    for held in range(count):
        test, inner = strings[held], (held + 1) % count
        if name == "equal division":
            for own, size in zip(test.bounds, test.plain.lengths, strict=True):
                edges = np.linspace(0, size * FRAMES["step"], len(own) + 1)
                distances += np.abs(np.column_stack([edges[:-1], edges[1:]]) - own).ravel().tolist()
            continue
        fit_parts = [p for p in range(count) if p not in (held, inner)]
        options = PENALTIES if name == "HMM" else LEARNERS[name][1]
        lost = []
        began = time.process_time()
        models: dict[float, Any] = {}
        for option in options:
            if name == "HMM" and models:
                models[option] = next(iter(models.values())).with_penalty(option)
            else:
                models[option] = _fit(name, option, [strings[p] for p in fit_parts], singles, digit, part, fit_parts)
            lost.append(error_rate(strings[inner].y, models[option].predict(_frames(name, strings[inner]))))
        print(name, held, dict(zip(options, lost, strict=True)), flush=True)
        best = options[int(np.argmin(lost))]
        chosen.append(f"{best:g}")
        train = [p for p in range(count) if p != held]
        began = time.process_time()
        model = _fit(name, best, [strings[p] for p in train], singles, digit, part, train)
        seconds = time.process_time() - began
        y += test.y
        found += list(model.predict(_frames(name, test)))
        paths = model.impute(_frames(name, test), test.y)
        for path, own in zip(paths, test.bounds, strict=True):
            edges = _segments(path) * FRAMES["step"] + HALF_WINDOW - FRAMES["step"] / 2
            distances += np.abs(edges - own).ravel().tolist()
    words = f"{100 * error_rate(y, found):.1f}" if y else "–"
    return words, f"{1000 * float(np.median(distances)):.0f}", ", ".join(chosen), seconds


def _frames(name: str, strings: Any) -> Ragged:
    return strings.plain if name == "HMM" else strings.rich


def _fit(
    name: str, option: float, strings: list[Any], singles: Ragged, digit: np.ndarray, part: np.ndarray, parts: list[int]
) -> Any:
    if name == "HMM":
        rows = np.flatnonzero(np.isin(part, parts))
        return Loop(option).fit(singles[rows], digit[rows], strings)
    X = Ragged.concatenate([one.rich for one in strings])
    y = [digits for one in strings for digits in one.y]
    hidden = None
    if name == CRF_DIVIDED:
        hidden = [_divide(digits, size) for digits, size in zip(y, X.lengths, strict=True)]
    if name == CRF_CUT:
        bounds = [own for one in strings for own in one.bounds]
        hidden = [_cut_by_hand(*own) for own in zip(y, X.lengths, bounds, strict=True)]
    return LEARNERS[name][0](Transcript(states=STATES, skips=1), option).fit(X, y, hidden=hidden)


def _divide(digits: np.ndarray, size: int) -> np.ndarray:
    """A state per frame: every digit has equally many frames, a ninth of them silence, the others for its states."""
    path = np.full(size, 10 * STATES)
    for digit, (begin, end) in zip(digits, pairwise(np.linspace(0, size, len(digits) + 1).astype(int)), strict=True):
        first = begin + (end - begin) // (STATES + 1)
        path[first:end] = _states_of(digit, end - first)
    return path


def _cut_by_hand(digits: np.ndarray, size: int, bounds: np.ndarray) -> np.ndarray:
    """A state per frame: the frames of every recording divided equally among the states of its digit, else silence."""
    path = np.full(size, 10 * STATES)
    for digit, (begin, end) in zip(digits, bounds, strict=True):
        first, last = (round((edge - HALF_WINDOW + FRAMES["step"] / 2) / FRAMES["step"]) for edge in (begin, end))
        path[first:last] = _states_of(digit, last - first)
    return path


def _states_of(digit: int, size: int) -> np.ndarray:
    return digit * STATES + np.rint(np.linspace(0, STATES - 1, size)).astype(int)


def _segments(path: np.ndarray) -> np.ndarray:
    """First frame of every digit, and the one behind its last."""
    label, place = np.divmod(np.asarray(path), STATES)
    begins = np.r_[True, (label[1:] != label[:-1]) | (place[1:] < place[:-1])]
    cuts = np.r_[np.flatnonzero(begins), label.size]
    return np.array([(a, b) for a, b in pairwise(cuts.tolist()) if label[a] < 10])


class Loop:
    """Gaussian HMMs of digits joined in a loop with a silence state, decoded by the automata of Transcript."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty
        self.layout = Layout(10, STATES, 1, True)

    def fit(self, X: Ragged, y: np.ndarray, strings: list[Any]) -> Loop:
        self.models = GaussianHMMs(STATES).fit(X, y).models
        quiet = np.vstack([one.plain.values[one.silent] for one in strings])
        self.silence = quiet.mean(axis=0), quiet.var(axis=0) + 0.01
        return self

    def with_penalty(self, penalty: float) -> Loop:
        other = Loop(penalty)
        other.models, other.silence = self.models, self.silence
        return other

    def predict(self, X: Ragged) -> list[np.ndarray]:
        automata = expand(self.layout, free_segments(self.layout))
        paths = self._walk(X, automata, np.zeros(len(X), dtype=np.int64))
        found = []
        for path in paths:
            label, place = np.divmod(path, STATES)
            begins = np.r_[True, (label[1:] != label[:-1]) | (place[1:] < place[:-1])]
            found.append(label[begins & (label < 10)])
        return found

    def impute(self, X: Ragged, y: list[np.ndarray]) -> Ragged:
        offsets = np.concatenate([[0], np.cumsum([len(one) for one in y])]).astype(np.int64)
        automata = expand(self.layout, line_segments(self.layout, np.concatenate(y).astype(np.int64), offsets))
        return self._walk(X, automata, np.arange(len(X)))

    def _walk(self, X: Ragged, automata: Any, which: np.ndarray) -> Ragged:
        means = np.vstack([model.means_ for model in self.models] + [self.silence[0]])
        spreads = np.vstack([model.covars_.diagonal(axis1=1, axis2=2) for model in self.models] + [self.silence[1]])
        unary = np.empty((len(X.values), len(means)))
        for j, (mean, spread) in enumerate(zip(means, spreads, strict=True)):
            unary[:, j] = -0.5 * (((X.values - mean) ** 2 / spread) + np.log(2 * np.pi * spread)).sum(axis=1)
        layout = self.layout
        inside = np.zeros((layout.n_states, layout.n_steps))
        with np.errstate(divide="ignore"):
            for label, model in enumerate(self.models):
                for p in range(STATES):
                    for step in range(min(layout.n_steps, STATES - p)):
                        inside[label * STATES + p, step] = np.log(model.transmat_[p, p + step])
        inside[-1, 0] = np.log(0.9)
        pairs = np.full((11, 11), -self.penalty)
        pairs[:, 10] = np.log(0.1)
        steps = np.concatenate([inside.ravel(), pairs.ravel()])
        code, value = np.zeros(len(unary), dtype=np.int64), np.empty(len(X))
        best_walks(unary, X.offsets, automata, which, steps, np.empty(0, np.int64), np.zeros(len(X)), code, value)
        return Ragged(code, X.offsets)

"""Handwritten words as columns of pixels, without cuts between letters, beside the chain over cut letters."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import HiddenCRF, LatentSVM, Ragged, StructuredSVM
from tacit.problems import Chain, Transcript, error_rate

HEIGHT, WIDTH = 16, 8
CONTEXT = 3
"""Columns to the left and to the right that a frame also sees."""
TOL = 0.1

LEARNERS: dict[str, Any] = {
    "HiddenCRF": lambda problem, C: HiddenCRF(problem, C=C, max_iter=60),
    "LatentSVM": lambda problem, C: LatentSVM(problem, C=C, tol=TOL, max_iter=6),
}

OPTIONS: dict[str, list[tuple[int, float]]] = {
    "HiddenCRF": [(4, 0.1), (4, 0.3), (5, 0.1), (5, 0.3), (6, 0.3)],
    "LatentSVM": [(5, 0.1), (5, 0.3)],
}
"""States per letter, and C per word."""


def cut_columns(words: Ragged) -> Ragged:
    """The columns of every word that have ink, each with its neighbours; where a letter ends is not kept."""
    frames = []
    for word in words:
        columns = word.reshape(-1, HEIGHT, WIDTH).transpose(0, 2, 1).reshape(-1, HEIGHT).astype(float)
        columns = columns[columns.any(axis=1)]
        padded = np.pad(columns, ((CONTEXT, CONTEXT), (0, 0)))
        frames.append(np.hstack([padded[j : j + len(columns)] for j in range(2 * CONTEXT + 1)]))
    return Ragged.from_list(frames)


def run() -> Page:
    page = Page(
        "Letters: words as columns of pixels",
        "Train on fold 1 (704 words), test on the rest. A frame is a column of a word that has ink, with three columns "
        "to its left and right; where letters begin and end is not given. Transcript has left-to-right states with "
        "skips=1 and no silence. States and C per word are chosen on a random third of the training words. Letter "
        "error: edit distance by number of letters. Baselines: every word divided equally among its letters, each "
        "piece stretched to eight columns and read by logistic regression, the number of letters known, or guessed "
        "from the width; the chain and the logistic regression of cut letters know all cuts. One thread.",
        ["model", "cuts between letters", "chosen", "letter error (%)", "CPU s of the fit"],
    )
    with np.load(real_data() / "letters" / "letters.npz") as data:
        words, tags = Ragged(data["pixels"], data["offsets"]), Ragged(data["letters"], data["offsets"])
        train, test = np.flatnonzero(data["folds"] == 1), np.flatnonzero(data["folds"] != 1)
    columns = cut_columns(words)
    y, y_test = [list(word) for word in tags[train]], [list(word) for word in tags[test]]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, options in OPTIONS.items():
            setting, (error, seconds) = _choose(name, options, columns, tags, train, test)
            chosen = f"{setting[0]} states, C {setting[1]:g}"
            page.rows.append((f"Transcript, {name}", "hidden", chosen, f"{100 * error:.1f}", f"{seconds:.0f}"))
            print(page.rows[-1], flush=True)
        for name, cuts, error in _baselines(words, columns, tags, train, test, y, y_test):
            page.rows.append((name, cuts, "–", f"{100 * error:.1f}", "–"))
    page.notes += [
        "Context, states and C were looked for inside of fold 1, about ten settings; the test words were read once per "
        "row.",
        f"LatentSVM ends at a gap of {TOL:g} C: its loss-augmented search over 26 letters takes most of the time.",
    ]
    return page


def _choose(
    name: str, options: Any, columns: Ragged, tags: Ragged, train: np.ndarray, test: np.ndarray
) -> tuple[tuple[int, float], tuple[float, float]]:
    """The best setting on a third of the training words, and the test error and seconds of the fit on all of them."""
    order = np.random.default_rng(0).permutation(train)
    inner, held = np.sort(order[: 2 * len(order) // 3]), np.sort(order[2 * len(order) // 3 :])
    lost = [_error(name, one, columns, tags, inner, held)[0] for one in options]
    print(name, dict(zip(options, lost, strict=True)), flush=True)
    best = options[int(np.argmin(lost))]
    return best, _error(name, best, columns, tags, train, test)


def _error(
    name: str, setting: tuple[int, float], columns: Ragged, tags: Ragged, train: np.ndarray, test: np.ndarray
) -> tuple[float, float]:
    states, C = setting
    model = LEARNERS[name](Transcript(states=states, skips=1, silence=False), C * len(train))
    began = time.process_time()
    model.fit(columns[train], [list(word) for word in tags[train]])
    seconds = time.process_time() - began
    return error_rate([list(word) for word in tags[test]], model.predict(columns[test])), seconds


def _baselines(
    words: Ragged, columns: Ragged, tags: Ragged, train: np.ndarray, test: np.ndarray, y: list[Any], y_test: list[Any]
) -> list[tuple[str, str, float]]:
    known, sizes = [len(word) for word in y_test], [len(word) for word in y]
    letters = np.concatenate(y)
    width = float(columns[train].lengths.sum()) / len(letters)
    guessed = [max(1, round(n / width)) for n in columns[test].lengths]
    divided = LogisticRegression(C=0.1, max_iter=300).fit(_divide(columns[train], sizes), letters)
    found = []
    for cuts, counts in (("equal, number known", known), ("equal, number guessed", guessed)):
        read = np.split(divided.predict(_divide(columns[test], counts)), np.cumsum(counts)[:-1])
        found.append(("equal division, logistic regression", cuts, error_rate(y_test, read)))
    cut = LogisticRegression(C=0.1, max_iter=300).fit(words[train].values, letters)
    error = float(np.mean(cut.predict(words[test].values) != np.concatenate(y_test)))
    found.append(("logistic regression of cut letters", "known", error))
    chain = StructuredSVM(Chain(fit_intercept=True), C=0.2 * len(train), tol=1e-2).fit(words[train], tags[train])
    found.append(("Chain of cut letters, StructuredSVM", "known", 1 - chain.score(words[test], tags[test])))
    return found


def _divide(columns: Ragged, counts: list[int]) -> np.ndarray:
    """Every word cut into so many equal pieces, each stretched to the width of a letter."""
    middle = slice(CONTEXT * HEIGHT, (CONTEXT + 1) * HEIGHT)
    pieces = []
    for word, count in zip(columns, counts, strict=True):
        place = (np.arange(count * WIDTH) + 0.5) / (count * WIDTH) * len(word)
        pieces.append(word[place.astype(int), middle].reshape(count, -1))
    return np.concatenate(pieces)

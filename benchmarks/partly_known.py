"""Hidden values that are known for some samples: is learning from all samples better than from the known part alone?"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.harness import Page, real_data
from benchmarks.localisation import interval
from tacit import IterativeLatentSVM, LatentSVM, Ragged, windows
from tacit.datasets import boxes_csv, find_folder
from tacit.problems import Candidates, Chain
from tacit.vision.boxes import nearest, overlap, predict_boxes

SIZES = {
    "pets": [(32, 32), (48, 48), (64, 64), (96, 96)],
    "caltech": [(64, 80), (120, 48), (120, 72)],
}
"""(width, height) of windows: roughly those of the objects."""
SHARES = (0.05, 0.1, 0.2, 0.5)
STRIDE, SPLITS = 16, 3
TEST_WORDS = 2000
BAGS, TEST_BAGS, DRAWS = 300, 600, 4
KNOWN_BAGS = (5, 10, 30, 100)
COLUMNS = ("alone", "drawn", "alike", "default")


def run() -> Page:
    page = Page(
        "Hidden values that are partly known",
        "Boxes for a share of the photos (pets: the two breeds with the most photos; caltech: three classes; windows "
        "of HOG as on the page of localisation, C = 100), and tags for a share of the letters (704 handwritten words, "
        f"C/n = 0.1). Mean IoU on test photos, {SPLITS} splits of 60 % and 40 %, and share of right letters in "
        f"{TEST_WORDS} other words, {SPLITS} draws of what is known; ± half of a 95 % interval. 'Known part alone' "
        "throws the other samples away, 'drawn' begins with random hidden values, 'default' with a model of the known "
        "part, and chooses the weight of the unknown samples by hidden values and labels that it holds back. 'All "
        "alike' begins there too, with weight 1. Rows of labels have the share of right labels. Bags of digits: "
        f"{BAGS} bags of four digits, one of which, from 0 to 4, is the label, and {TEST_BAGS} test bags; {DRAWS} "
        "draws. C is that of the other pages; nothing was chosen on test data.",
        [
            "data",
            "known",
            "known part alone",
            "drawn",
            "all alike",
            "default",
            "its weight of unknown samples",
            "default, s per fit",
        ],
    )
    real_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".* samples aside")
        for known in KNOWN_BAGS:
            _digits(page, known)
        for name in ("pets", "caltech"):
            _photos(page, name, "0/1")
        _letters(page)
    return page


def _photos(page: Page, name: str, loss: str) -> None:
    folder = find_folder(None, name)
    files, y, truth, _ = boxes_csv(folder / "boxes.csv")
    if name == "pets":
        kinds, counts = np.unique(y, return_counts=True)
        keep = np.isin(y, kinds[np.argsort(-counts, kind="stable")[:2]])
        files, y, truth = np.asarray(files)[keep], y[keep], truth[keep]
    cache = Path(tempfile.gettempdir()) / "tacit-windows"
    bags = windows([folder / str(file) for file in files], SIZES[name], STRIDE, cache=cache)
    best = nearest(bags, truth).hidden
    kind = LatentSVM if loss == "0/1" else IterativeLatentSVM
    models = _learners(kind, Candidates(loss=loss))
    for share in SHARES:
        scores, labels = _empty(), _empty()
        chosen, seconds = [], []
        for split, (train, test) in enumerate(
            StratifiedShuffleSplit(SPLITS, test_size=0.4, random_state=0).split(files, y)
        ):
            hidden = _some(best[train], y[train], share, split)
            for learner, model in models.items():
                began = time.process_time()
                model.fit(bags[train], y[train], hidden=hidden)
                if learner == "default":
                    seconds.append(time.process_time() - began)
                    chosen.append(model.unknown_weight_)
                found = predict_boxes(model, bags[test]).boxes
                scores[learner].append(float(overlap(found, truth[test]).mean()))
                labels[learner].append(model.score(bags[test], y[test]))
        what = f"{name}, {kind.__name__} ({loss})"
        _add_row(page, f"{what}, IoU", f"{share:.0%}", scores, chosen, seconds)
        _add_row(page, f"{what}, labels", f"{share:.0%}", labels, chosen, seconds)


def _learners(kind: Any, problem: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"C": 100.0, "random_state": 0, "verbose": 0}
    return {
        "alone": kind(problem, unknown_weight=0.0, **settings),
        "drawn": kind(problem, init="hidden", unknown_weight=1.0, **settings),
        "alike": kind(problem, unknown_weight=1.0, **settings),
        "default": kind(problem, **settings),
    }


def _empty() -> dict[str, list[float]]:
    return {name: [] for name in COLUMNS}


def _digits(page: Page, known: int) -> None:
    models = _learners(LatentSVM, Candidates())
    labels, positions = _empty(), _empty()
    chosen, seconds = [], []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        (bags, y, truth), (new, y_new, truth_new) = digit_bags(BAGS, rng), digit_bags(TEST_BAGS, rng)
        hidden = np.full(BAGS, -1)
        some = rng.choice(BAGS, known, replace=False)
        hidden[some] = truth[some]
        for learner, model in models.items():
            began = time.process_time()
            model.fit(bags, y, hidden=hidden)
            if learner == "default":
                seconds.append(time.process_time() - began)
                chosen.append(model.unknown_weight_)
            labels[learner].append(model.score(new, y_new))
            positions[learner].append(model.score_hidden(new, y_new, truth_new))
    _add_row(page, "bags of digits, labels", f"{known} of {BAGS}", labels, chosen, seconds)
    _add_row(page, "bags of digits, hidden values", f"{known} of {BAGS}", positions, chosen, seconds)


def digit_bags(n: int, rng: np.random.Generator, size: int = 4) -> tuple[Ragged, np.ndarray, np.ndarray]:
    """Bags of scikit-learn's digits with one digit from 0 to 4, which is the label: (bags, labels, its position)."""
    X, digit = load_digits(return_X_y=True)
    y, position = rng.integers(0, 5, n), rng.integers(0, size, n)
    rows = rng.choice(np.flatnonzero(digit >= 5), (n, size))
    rows[np.arange(n), position] = [rng.choice(np.flatnonzero(digit == label)) for label in y]
    return Ragged(X[rows.ravel()] / 16, size * np.arange(n + 1)), y, position


def _some(values: np.ndarray, y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Known for a share of the samples of every class, at least two of each; −1 elsewhere."""
    rng = np.random.default_rng(seed)
    known = np.full(values.size, -1)
    for label in np.unique(y):
        own = rng.permutation(np.flatnonzero(y == label))[: max(2, round(share * np.count_nonzero(y == label)))]
        known[own] = values[own]
    return known


def _letters(page: Page) -> None:
    data = np.load(real_data() / "letters" / "letters.npz")
    words, tags = (
        Ragged(data["pixels"].astype(np.float32), data["offsets"]),
        Ragged(data["letters"].astype(np.int64), data["offsets"]),
    )
    first = data["folds"] == data["folds"].min()
    train, test = np.flatnonzero(first), np.flatnonzero(~first)[:TEST_WORDS]
    problem = Chain(fit_intercept=True, classes=list(range(26)))
    settings: dict[str, Any] = {"C": 0.1 * len(train), "tol": 1e-2, "random_state": 0, "verbose": 0}
    for share in SHARES:
        scores, seconds = _empty(), []
        for draw in range(SPLITS):
            truth = tags[train]
            known = np.random.default_rng(draw).random(truth.values.size) < share
            y = truth.with_values(np.where(known, truth.values, -1))
            for learner, init in (("drawn", "hidden"), ("default", "auto")):
                began = time.process_time()
                model = LatentSVM(problem, init=init, **settings).fit(words[train], y)
                if learner == "default":
                    seconds.append(time.process_time() - began)
                scores[learner].append(model.score(words[test], tags[test]))
            scores["alike"].append(scores["default"][-1])  # the weight of sequences is always 1
            alone = LatentSVM(problem, max_iter=1, **settings)
            scores["alone"].append(_known_alone(alone, words[train], y).score(words[test], tags[test]))
        _add_row(page, "letters, LatentSVM", f"{share:.0%}", scores, [1.0] * SPLITS, seconds)


def _known_alone(model: LatentSVM, words: Ragged, y: Ragged) -> LatentSVM:
    """A structured SVM on the runs of known tags: what the default start begins with."""
    model.fit(words, y)
    oracle = model.problem.bind(words, y, model.schema_)
    known = oracle.known_part()
    pieces = Ragged(known.oracle.table[:, :-1], known.oracle.offsets)
    tags = Ragged(known.oracle._labels, known.oracle.offsets)
    return LatentSVM(model.problem, C=model.C, tol=model.tol, verbose=0).fit(pieces, tags)


def _add_row(
    page: Page, name: str, known: str, scores: dict[str, list[float]], chosen: list[float], seconds: list[float]
) -> None:
    cells = [interval(np.array(scores[learner]), 3) for learner in COLUMNS]
    weights = ", ".join(f"{weight:g}" for weight in chosen)
    page.rows.append((name, known, *cells, weights, f"{np.mean(seconds):.1f}"))
    print(page.rows[-1], flush=True)

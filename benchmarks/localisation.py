"""Photos with a label each: where is the animal, the plane, the face? Windows on a grid, boxes only for the score."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import IterativeLatentSVM, LatentSVM, SelfPaced, StructuredSVM, windows
from tacit.boxes import nearest, overlap, predict_boxes
from tacit.datasets import boxes_csv, find_folder
from tacit.problems import Candidates, Multiclass

SIZES = {
    "pets": [(32, 32), (48, 48), (64, 64), (96, 96)],
    "caltech": [(64, 80), (120, 48), (120, 72)],
}
"""(width, height): roughly those of the objects, as in Kumar (2013), who takes one size for all."""
STRIDE, SPLITS, C = 16, 5, 100.0
Scores = dict[str, list[tuple[float, float, float]]]


def run() -> Page:
    page = Page(
        "Localisation by labels alone: pets and caltech",
        f"480 photos of six breeds (a box around the head) and 300 of planes, faces and motorbikes. Windows every "
        f"{STRIDE} pixels ({', '.join(f'{name}: {_listed(sizes)}' for name, sizes in SIZES.items())}), each a HOG of "
        f"4 × 4 cells; C = {C:g}; "
        f"{SPLITS} splits of 60 % to learn from and 40 % to test on, stratified. Learners see labels only, except the "
        "one that is given the nearest window of every training box. `centre` starts from the window nearest to the "
        "middle half of the image, else from random ones. Mean ± half of a 95 % interval (Student's t over the "
        "splits), on test images.",
        ["data", "learner", "IoU ≥ 0.5, %", "mean IoU", "class accuracy, %", "CPU seconds per fit"],
    )
    real_data()
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in SIZES:
            _measure(page, name)
    page.notes.append(
        "Labels alone do not localise here: a window that tells breeds, planes or faces apart need not be the one that "
        "somebody drew, and guessing the middle of the photo is as good or better. Given boxes help at once."
    )
    return page


def _measure(page: Page, name: str) -> None:
    folder = find_folder(None, name)
    files, y, truth, _ = boxes_csv(folder / "boxes.csv")
    paths = [folder / file for file in files]
    cache = Path(tempfile.gettempdir()) / "tacit-windows"
    bags = windows(paths, SIZES[name], STRIDE, cache=cache)
    whole = windows(paths, [(10_000, 10_000)], STRIDE, cache=cache)
    best = nearest(bags, truth)
    frame, middle = whole.boxes, whole.boxes[:, 2:] / 2
    assert frame is not None
    centre = np.hstack([middle / 2, middle * 1.5])
    scores: Scores = {}
    seconds: dict[str, list[float]] = {}
    for train, test in StratifiedShuffleSplit(SPLITS, test_size=0.4, random_state=0).split(files, y):
        for learner, model in _models(nearest(bags, centre).hidden[train]).items():
            known = {"hidden": best.hidden[train]} if learner.startswith("boxes") else {}
            began = time.process_time()
            model.fit(bags[train], y[train], **known)
            seconds.setdefault(learner, []).append(time.process_time() - began)
            found = predict_boxes(model, bags[test])
            scores.setdefault(learner, []).append(_score(found.boxes, truth[test], found.y == y[test]))
        plain = StructuredSVM(Multiclass(), C=C).fit(whole.values[train], y[train])
        right = plain.predict(whole.values[test]) == y[test]
        for learner, guess in (("whole image", frame), ("centre box", centre)):
            scores.setdefault(f"no learner of boxes: {learner}", []).append(_score(guess[test], truth[test], right))
    for learner, rows in sorted(scores.items(), key=lambda item: not item[0].startswith("no")):
        hits, shared, right = np.array(rows).T
        cost = f"{np.mean(seconds[learner]):.1f}" if learner in seconds else "–"
        page.rows.append((name, learner, interval(100 * hits), interval(shared, 3), interval(100 * right), cost))
    page.notes.append(
        f"{name}: {bags.lengths.mean():.0f} windows an image on average, {bags.lengths.max()} at the most; the best of "
        f"them has a mean IoU of {best.overlap.mean():.3f} with the box, and {np.mean(best.overlap >= 0.5):.1%} of the "
        "images have one of at least 0.5: no learner can do better. The class accuracy beside the two guesses is that "
        "of a multiclass SVM on the HOG of the whole image."
    )


def _models(centre: np.ndarray) -> dict[str, Any]:
    settings: dict[str, Any] = {"C": C, "random_state": 0}
    return {
        "LatentSVM, CCCP": LatentSVM(Candidates(), **settings),
        "LatentSVM, self-paced": LatentSVM(Candidates(), pace=SelfPaced(), **settings),
        "LatentSVM, CCCP, centre": LatentSVM(Candidates(), init=centre, **settings),
        "LatentSVM, self-paced, centre": LatentSVM(Candidates(), init=centre, pace=SelfPaced(), **settings),
        "IterativeLatentSVM, overlap, centre": IterativeLatentSVM(Candidates(loss="overlap"), init=centre, **settings),
        "IterativeLatentSVM, exact, centre": IterativeLatentSVM(Candidates(loss="exact"), init=centre, **settings),
        "boxes given: StructuredSVM, overlap": StructuredSVM(Candidates(loss="overlap"), **settings),
    }


def _score(found: np.ndarray, truth: np.ndarray, right: np.ndarray) -> tuple[float, float, float]:
    shared = overlap(found, truth)
    return float(np.mean(shared >= 0.5)), float(shared.mean()), float(right.mean())


def _listed(sizes: list[tuple[int, int]]) -> str:
    return ", ".join(f"{w} × {h}" for w, h in sizes)


def interval(values: np.ndarray, digits: int = 1) -> str:
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):.{digits}f} ± {half:.{digits}f}"

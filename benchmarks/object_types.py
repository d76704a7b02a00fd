"""An object of several types: boxes drawn, types hidden. Three classes as one object, six breeds as one."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from benchmarks.localisation import interval
from tacit import LatentSVM, StructuredSVM, window_maps
from tacit.datasets import boxes_csv, find_folder
from tacit.problems import Detection
from tacit.vision.boxes import overlap
from tacit.vision.detection import nearest_windows
from tacit.vision.maps import GradientMap
from tacit.vision.window_types import start_types

SPLITS = {"caltech": 7, "pets": 3}
EVERY = {"caltech": 1, "pets": 2}
"""Every such photo is taken: six breeds take long."""
PARTS, C, LARGE_C, TOLERANCE = 4, 300.0, 1000.0, 1e-2


def run() -> Page:
    page = Page(
        "Hidden types of an object",
        "All photos are one object, its box is drawn in training, and its type is hidden: caltech's planes, faces and "
        f"motorbikes as one, six breeds of pets as one (every second photo). HOG maps, {PARTS} × {PARTS} pieces per "
        f"window, a weight block per type beside a shared one, loss 1 − IoU, C = {C:g}; 60 % to learn from and 40 % to "
        f"test on, {SPLITS['caltech']} and {SPLITS['pets']} splits, stratified. *Types given*: a structured SVM whose "
        "types in training are the classes; otherwise a latent SVM learns them, from clusters of boxes, from aspect "
        "ratios, or at random. Adjusted Rand index of types and classes. Mean ± half of a 95 % interval over the "
        "splits; p of a paired t-test of the mean IoU against one type.",
        ["data", "types", "start", "IoU ≥ 0.5, %", "mean IoU", "p", "Rand, training", "Rand, test", "CPU seconds"],
    )
    real_data()
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in SPLITS:
            _measure(page, name)
    page.notes.append(
        f"C = {C:g} and the pieces were chosen on one other split of caltech (another seed, so its photos are in these "
        "splits too), where three types from clusters had a Rand index in training of 0.00 with C = 1, 0.75 with 10, "
        "0.89 with 100, 0.94 with 300 and 0.95 with 1000. One type with a larger C is in the table, because a single "
        "block of weights might need one. Nothing was chosen on pets. No type has to be told from the others for a "
        "good box, so types of test photos follow the classes less than those of photos whose boxes are known."
    )
    return page


def _measure(page: Page, name: str) -> None:
    folder = find_folder(None, name)
    files, y, truth, _ = boxes_csv(folder / "boxes.csv")
    files, y, truth = files[:: EVERY[name]], y[:: EVERY[name]], truth[:: EVERY[name]]
    cache = Path(tempfile.gettempdir()) / "tacit-maps"
    maps = window_maps([folder / file for file in files], GradientMap(), cache=cache, verbose=0)
    truth = np.clip(truth, 0, np.tile(maps.sizes, 2))
    classes = np.unique(y, return_inverse=True)[1]
    k = int(classes.max()) + 1
    ways: list[tuple[int, str]] = [(1, "–"), (1, f"C = {LARGE_C:g}"), (k, "types given")]
    ways += [*((t, "clusters") for t in (2, 3, 4, 6)), (k, "aspect"), (k, "random")]
    rows: dict[Any, list[tuple[float, ...]]] = {}
    for train, test in StratifiedShuffleSplit(SPLITS[name], test_size=0.4, random_state=0).split(y, y):
        for types, start in ways:
            began = time.process_time()
            found, learned, new = _fit(maps, truth, classes, train, test, types, start)
            shared = overlap(found, truth[test])
            rand = [adjusted_rand_score(classes[train], learned), adjusted_rand_score(classes[test], new)]
            score = (np.mean(shared >= 0.5), shared.mean(), *rand, time.process_time() - began)
            rows.setdefault((types, start), []).append(score)
        print(name, {way: np.round(values[-1], 3).tolist() for way, values in rows.items()}, flush=True)
    single = np.array(rows[1, "–"])[:, 1]
    for (types, start), values in rows.items():
        hits, shared, learned, new, seconds = np.array(values).T
        is_one = types == 1
        p = "–" if start == "–" else f"{stats.ttest_rel(shared, single).pvalue:.2g}"
        rand = ("–", "–") if is_one else (interval(learned, 2), interval(new, 2))
        page.rows.append(
            (name, types, start, interval(100 * hits), interval(shared, 3), p, *rand, f"{seconds.mean():.1f}")
        )


def _fit(
    maps: Any, truth: np.ndarray, classes: np.ndarray, train: np.ndarray, test: np.ndarray, types: int, start: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The boxes found in test photos, and the types in training and test."""
    some, one = maps[train], np.zeros(len(train), int)
    windows = nearest_windows(some, truth[train])
    problem = Detection(
        parts=PARTS, types=types, loss="overlap", classes=[0], shared=types > 1, fit_intercept=types > 1
    )
    settings: dict[str, Any] = {"C": LARGE_C if start.startswith("C") else C, "tol": TOLERANCE, "verbose": 0}
    if types == 1:
        model: Any = StructuredSVM(problem, **settings).fit(some, one, hidden=windows)
    elif start == "types given":
        model = StructuredSVM(problem, **settings).fit(some, one, hidden=np.column_stack([windows, classes[train]]))
    else:
        begin = np.column_stack([windows, start_types(some, truth[train], types, start)])
        model = LatentSVM(problem, init=begin, **settings).fit(some, one, hidden=windows)
    hidden = model.predict_hidden(maps[test]).reshape(len(test), -1)
    learned = np.reshape(model.hidden_, (len(train), -1))
    found = maps.windows[maps.window_offsets[:-1][test] + hidden[:, 0]]
    return found, learned[:, -1] if types > 1 else one, hidden[:, -1] if types > 1 else np.zeros(len(test), int)

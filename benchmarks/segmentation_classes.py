"""Segmentation into 23 classes: neighbours against single regions, weak labels beside masks, generic labels."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import Page, real_data
from tacit import StructuredSVM, regions
from tacit.vision.photos import read_image
from tacit.vision.regions.class_labels import VOID, read_class_names
from tacit.vision.segmentation.class_segmenter import (
    MAX_ITER,
    TOL,
    class_problem,
    complete_images,
    count_confusions,
    informed_images,
    label_classes,
    learn_classes,
    score_classes,
)

NAMES = (
    *("building", "grass", "tree", "cow", "horse", "sheep", "sky", "mountain", "aeroplane", "water", "face", "car"),
    *("bicycle", "flower", "sign", "bird", "book", "chair", "road", "cat", "dog", "body", "boat"),
)
GROUND = ("building", "grass", "tree", "sky", "mountain", "water", "road")
GENERIC = {"some ground": GROUND, "some object": tuple(name for name in NAMES if name not in GROUND)}
SCALE, MIN_SIZE = 100.0, 100
FOLDS = 3
MAIN_FOLDS = 3
"""Folds that are tested."""
FACTOR = 0.3
"""C per training photo."""
FRACTIONS = (10, 20, 40)
MIN_BOX = 60
"""Pixels of a part of a class that gets a box."""
DRAWS = 2000
CHOICES_OF_LOGISTIC = (0.01, 0.1, 1.0)

COLUMNS = ["masks", "what is learned from", "folds", "accuracy, %", "class accuracy, %", "against", "difference",
           "difference of class accuracy", "CPU s per fit"]  # fmt: skip
SETTING = f"""\
355 photos of 240 pixels (MSRC v2), 23 classes and void, in {FOLDS} folds (`default_rng(1).permutation(355)`). Photos \
are cut by Felzenszwalb & Huttenlocher with scale {SCALE:g} and at least {MIN_SIZE} pixels. Accuracy is over all test \
pixels with a class; class accuracy is the mean over classes of their share of right pixels; both in percent, of all \
test photos of the folds together. ± is half of a 95 % interval of {DRAWS} bootstrap draws of test photos; \
differences are paired by photo. C is {FACTOR} per training photo, masks and weak photos alike; gap {TOL:g}; at most \
{MAX_ITER} convex tasks with weak labels. 'Masks for p %' gives \
masks to the first p % of a random order of the training photos. The rest has the list of its classes and a box around \
every connected part of a class of at least {MIN_BOX} pixels, or what the row says. Logistic regression is on single \
regions with the same features bent by tanh, weighted by area, with its own C by cross-validation over training \
photos."""

LOOKS = """\
Looks at test photos: how photos are cut (two settings), C (10, 30, 100 and 300 in all) and the weight of weak photos \
were chosen on a split of another permutation, seed 0: 71 photos were looked at for C and for logistic regression, \
then 70 of the remaining 284 for the rest. These photos are among the photos of the folds below, training or test, so \
all rows are a little too good, logistic regression as much as the others. The first two folds below were looked at \
three times: again when inference with upper bounds replaced alpha-expansion, and when the third was added. Nothing \
was chosen by what they showed."""


def run() -> Page:
    page = Page("Segmentation into classes from mixed weak labels", SETTING, COLUMNS)
    page.notes.append(LOOKS)
    data, results = Data(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two convex tasks end at max_iter
        for fold in range(MAIN_FOLDS):
            for name, fit in main_rows(data, fold).items():
                results[name, fold] = data.result(fold, name, fit)
    rivals = {"SVM, single regions": "logistic regression", "SVM, pairs of neighbours": "SVM, single regions"}
    for share in FRACTIONS:
        rivals[f"{share} %: masks, boxes and image labels"] = f"{share} %: masks alone"
    add_rows(page, results, rivals)
    one, other = "SVM, pairs of neighbours", "logistic regression"
    both = (np.concatenate([results[name, fold]["counts"] for fold in range(MAIN_FOLDS)]) for name in (one, other))
    page.notes.append(f"{one} − {other}: {' and '.join(differences(*both))} points of accuracy and of class accuracy.")
    for fold in range(MAIN_FOLDS):
        median, most, share = results[one, fold]["gaps"]
        page.notes.append(
            f"{one}, fold {fold + 1}: (bound − score) / |score| of the loss-augmented training photos at the learned "
            f"weights has the median {median:.4%} and the largest value {most:.2%} (aim: median ≤ 0.1 %). `gap_` is "
            f"{share:.2%} of the objective."
        )
    page.notes.append("Features of a network are in `segmentation_network`, other learners in `segmentation_methods`.")
    return page


def add_rows(page: Page, results: dict[tuple[str, int], Any], rivals: dict[str, str]) -> None:
    """A row per name of the results, which are by name and fold."""
    for name in dict.fromkeys(name for name, _ in results):
        folds = [fold for other, fold in results if other == name]
        own = [results[name, fold] for fold in folds]
        counts = np.concatenate([each["counts"] for each in own])
        cells = scores(counts)
        rival = rivals.get(name)
        against = ["–", "–", "–"]
        if rival is not None:
            shared = [fold for fold in folds if (rival, fold) in results]
            other = np.concatenate([results[rival, fold]["counts"] for fold in shared])
            against = [rival, *differences(counts[: len(other)], other)]
        seconds = np.mean([each["seconds"] for each in own])
        masks, _, words = name.rpartition(": ")
        page.rows.append((masks or "100 %", words, str(len(folds)), *cells, *against, f"{seconds:.0f}"))


class Data:
    """Photos as regions, masks, boxes and folds; results are kept in a folder, so that a stopped run goes on."""

    def __init__(self) -> None:
        folder = real_data() / "msrc"
        files = sorted((folder / "images").iterdir())
        values = [np.asarray(read_image(folder / "labels" / f"{file.stem}.png")).astype(np.int64) for file in files]
        self.masks = [np.where(own == 0, VOID, own - 1) for own in values]
        self.cache = Path(tempfile.gettempdir()) / "tacit-regions"
        self.files = files
        self.graphs = regions(files, scale=SCALE, min_size=MIN_SIZE, cache=self.cache, verbose=0)
        self.classes = read_class_names(NAMES, GENERIC)
        self.folds = np.array_split(np.random.default_rng(1).permutation(len(files)), FOLDS)
        self.results = Path(tempfile.gettempdir()) / "tacit-segmentation-classes"
        self.results.mkdir(exist_ok=True)

    def train(self, fold: int) -> np.ndarray:
        """Training photos with any class, in a random order."""
        rest = np.concatenate([own for number, own in enumerate(self.folds) if number != fold])
        order = np.random.default_rng(10 + fold).permutation(rest)
        return np.array([i for i in order if (self.masks[i] >= 0).any()])

    def result(self, fold: int, name: str, fit: Callable[[], Any]) -> dict[str, Any]:
        path = self.results / f"{fold} {name}.npz".replace(":", "")
        if not path.exists():
            began = time.process_time()
            model = fit()
            seconds = time.process_time() - began
            test = self.folds[fold]
            found = self.graphs[test].paint(model.predict(self.graphs[test]))
            k = self.classes.size
            counts = [count_confusions([own], [self.masks[i]], k) for own, i in zip(found, test, strict=True)]
            np.savez(path, counts=np.array(counts), seconds=seconds, gaps=_gaps(model, self, self.train(fold)))
            print(fold, name, *scores(np.array(counts)), f"{seconds:.0f} s", flush=True)
        with np.load(path) as kept:
            return {"counts": kept["counts"], "seconds": float(kept["seconds"]), "gaps": kept["gaps"].tolist()}

    def boxes(self, i: int) -> dict[str, list[list[int]]]:
        """A box around every connected part of every class."""
        from skimage.measure import label, regionprops

        found: dict[str, list[list[int]]] = {}
        for c in np.unique(self.masks[i][self.masks[i] >= 0]):
            for part in regionprops(label(self.masks[i] == c)):
                if part.area >= MIN_BOX:
                    top, left, bottom, right = part.bbox
                    found.setdefault(NAMES[c], []).append([left, top, right, bottom])
        return found

    def contains(self, i: int) -> list[str]:
        return [NAMES[c] for c in np.unique(self.masks[i][self.masks[i] >= 0])]


def main_rows(data: Data, fold: int) -> dict[str, Callable[[], Any]]:
    train = data.train(fold)
    rows: dict[str, Callable[[], Any]] = {
        "logistic regression": lambda: Logistic(data).fit(train),
        "SVM, single regions": lambda: fit_all(data, train, pairwise=False),
        "SVM, pairs of neighbours": lambda: fit_all(data, train),
    }
    for share in FRACTIONS:
        n = round(share / 100 * len(train))
        rows[f"{share} %: masks alone"] = lambda n=n: fit_all(data, train[:n])
        rows[f"{share} %: masks, boxes and image labels"] = lambda n=n: fit_weak(data, train, n)
    return rows


def fit_all(data: Data, train: np.ndarray, pairwise: bool = True) -> Any:
    X, y, _ = label_classes(data.graphs[train], [data.masks[i] for i in train], None, None, data.classes)
    problem = class_problem(data.classes, "area").set_params(pairwise=pairwise)
    return StructuredSVM(problem, C=FACTOR * len(train), tol=TOL, verbose=0).fit(X, y)


def fit_weak(
    data: Data,
    train: np.ndarray,
    n: int,
    learner: Any = None,
    has_boxes: bool = True,
    has_lists: bool = True,
    **settings: Any,
) -> Any:
    """The first n photos have masks, the others boxes, lists of their classes, or both."""
    masks = [data.masks[i] if place < n else None for place, i in enumerate(train)]
    boxes = [data.boxes(i) if place >= n and has_boxes else None for place, i in enumerate(train)]
    contains = [data.contains(i) if place >= n and has_lists else None for place, i in enumerate(train)]
    X, y, _ = label_classes(data.graphs[train], masks, boxes, contains, data.classes)
    known = complete_images(y, masks)
    weak = informed_images(y, known) / known.size
    if learner is not None:
        problem = class_problem(data.classes, "area", weak)
        total = FACTOR * known.size * (1 + weak)
        return learner(problem, C=total, tol=TOL, verbose=0, **settings).fit(X, y)
    return learn_classes(X, y, known, data.classes, FACTOR * known.size, weak, verbose=0, **settings)


def _gaps(model: Any, data: Data, train: np.ndarray) -> tuple[float, float, float]:
    """The median and the largest relative gap of inference on complete training photos, and that of the fit."""
    if not isinstance(model, StructuredSVM):
        return np.nan, np.nan, np.nan
    X, y, _ = label_classes(data.graphs[train], [data.masks[i] for i in train], None, None, data.classes)
    oracle = model.problem.bind(X, y, model.schema_)
    found = oracle.predict_augmented(model.coef_)
    attained = oracle.score(model.coef_, found.code) + oracle.loss(found.code)
    gaps = np.maximum(found.value - attained, 0) / np.abs(attained)
    return float(np.median(gaps)), float(gaps.max()), model.gap_ / model.objective_


class Logistic:
    """Logistic regression on single regions, weighted by area."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def fit(self, train: np.ndarray) -> Logistic:
        masks = [self.data.masks[i] for i in train]
        X, y, _ = label_classes(self.data.graphs[train], masks, None, None, self.data.classes)
        folds = np.array_split(np.arange(len(train)), 3)
        right = [sum(self._try(X, y, fold, C) for fold in folds) for C in CHOICES_OF_LOGISTIC]
        self._learn(X, np.concatenate(list(y)), CHOICES_OF_LOGISTIC[int(np.argmax(right))])
        return self

    def _try(self, X: Any, y: Any, fold: np.ndarray, C: float) -> float:
        rest = np.setdiff1d(np.arange(len(X)), fold)
        self._learn(X[rest], np.concatenate(list(y[rest])), C)
        labels = self.model.predict(self._bent(X[fold]))
        return float(X[fold].areas @ (labels == np.concatenate(list(y[fold]))))

    def predict(self, graphs: Any) -> Any:
        return graphs.nodes.with_values(self.model.predict(self._bent(graphs)))

    def _learn(self, X: Any, labels: np.ndarray, C: float) -> None:
        self.scaler = StandardScaler().fit(X.values)
        self.model = LogisticRegression(C=C, max_iter=300)
        self.model.fit(self._bent(X), labels, sample_weight=X.shares * X.lengths.mean())

    def _bent(self, graphs: Any) -> np.ndarray:
        return np.tanh(self.scaler.transform(graphs.values))


def _both(counts: np.ndarray) -> np.ndarray:
    scores = score_classes(counts)
    return 100 * np.array([scores.accuracy, np.nanmean(scores.class_accuracy)])


def _draws(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, n, (DRAWS, n))


def scores(counts: np.ndarray) -> list[str]:
    drawn = np.array([_both(counts[rows].sum(axis=0)) for rows in _draws(len(counts))])
    return [_interval(mean, own) for mean, own in zip(_both(counts.sum(axis=0)), drawn.T, strict=True)]


def differences(counts: np.ndarray, rival: np.ndarray) -> list[str]:
    means = _both(counts.sum(axis=0)) - _both(rival.sum(axis=0))
    drawn = np.array([_both(counts[rows].sum(axis=0)) - _both(rival[rows].sum(axis=0)) for rows in _draws(len(counts))])
    return [_interval(mean, own, sign="+") for mean, own in zip(means, drawn.T, strict=True)]


def _interval(mean: float, drawn: np.ndarray, sign: str = "") -> str:
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{mean:{sign}.1f} ± {(high - low) / 2:.1f}"

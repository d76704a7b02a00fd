"""How a `Segmenter` learns several classes: the model, the choice of C, and scores per class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.learners import IterativeLatentSVM, StructuredSVM
from tacit.vision.regions.class_labels import Classes, leave_out_void, mark_classes, read_class_names
from tacit.vision.regions.graphs import RegionGraphs
from tacit.vision.regions.labels import RegionLabels, weak_labels
from tacit.vision.regions.problem import Regions

FACTORS = (0.1, 0.3, 1.0)
"""Values of C that are compared, relative to the number of masks."""
FOLDS = 3
MIN_MASKS = 6
"""With fewer masks, values of C are not compared."""
QUANTILE = 0.1
"""Of the shares of a class in masks: the least share in images whose label or box names it."""
TOL = 5e-2
MAX_ITER = 2
"""Convex tasks of a fit with weak labels. The first rounds of imputation bring almost all of the gain."""


class ClassScores(NamedTuple):
    """Scores from counts of pixels, by true class (rows) and found class (columns).

    ``accuracy`` is over all pixels, ``class_accuracy`` and ``iou`` have one number per class, NaN where the class
    occurs neither in the truth nor (for ``iou``) in what was found.
    """

    accuracy: float
    class_accuracy: Array
    iou: Array


def count_confusions(found: Sequence[Array], masks: Sequence[Any], k: int) -> Array:
    """(K, K) pixels by true and found class; pixels without a class in the mask do not count.

    >>> count_confusions([np.array([[0, 1, 1]])], [np.array([[0, 1, -2]])], 2).tolist()
    [[1, 0], [0, 1]]
    """
    counts = np.zeros((k, k), dtype=np.int64)
    for own, mask in zip(found, masks, strict=True):
        truth = np.asarray(mask)
        known = (truth >= 0) & (truth < k)
        pairs = truth[known].astype(np.int64) * k + own[known]
        counts += np.bincount(pairs, minlength=k * k).reshape(k, k)
    return counts


def score_classes(counts: Array) -> ClassScores:
    """Accuracy and intersection over union, from `count_confusions`.

    >>> score_classes(np.array([[3, 1], [0, 4]])).iou.round(2)
    array([0.75, 0.8 ])
    """
    right, true, found = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    either = true + found - right
    share = np.where(true > 0, right / np.maximum(true, 1), np.nan)
    overlap = np.where(either > 0, right / np.maximum(either, 1), np.nan)
    return ClassScores(float(right.sum() / max(true.sum(), 1)), share, overlap)


def class_problem(classes: Classes, loss: str, weak: float = 1.0) -> Regions:
    """The problem of a Segmenter with classes: their numbers as labels."""
    return Regions(labels=tuple(range(classes.size)), weak=weak, loss=loss)


def label_classes(
    graphs: RegionGraphs, masks: Sequence[Any], boxes: Any, contains: Any, classes: Classes, quantile: float = QUANTILE
) -> tuple[RegionGraphs, RegionLabels, RegionLabels]:
    """What a Segmenter learns from: graphs without void regions, their weak labels, and the labels of all regions."""
    members = {name: [classes.names[c] for c in own] for name, own in classes.generic.items()}
    y = weak_labels(graphs, masks, boxes, contains, (quantile, 1.0), classes.names, members)
    _, void = mark_classes(graphs, masks, classes)
    return (*leave_out_void(graphs, y, void), y)


def complete_images(y: RegionLabels, masks: Sequence[Any]) -> Array:
    """The images whose masks leave no region unknown, void aside."""
    pairs = zip(y, masks, strict=True)
    return np.flatnonzero([mask is not None and bool((np.asarray(own) >= 0).all()) for own, mask in pairs])


def informed_images(y: RegionLabels, known: Array) -> int:
    """How many of the other images are not without any label: a known region, a set of labels, or a limit."""
    has_word = np.array([bool((np.asarray(own) >= 0).any()) for own in y])
    for limit in y.limits.values():
        has_word |= limit[:, 0] > 0
    for table in y.allowed.values():
        has_word |= ~np.logical_and.reduceat(table.values, table.offsets[:-1])
    has_word[known] = False
    return int(has_word.sum())


def learn_classes(
    graphs: RegionGraphs, y: RegionLabels, known: Array, classes: Classes, C: float, weak: float, **settings: Any
) -> StructuredSVM | IterativeLatentSVM:
    """The model of graphs without void regions.

    ``C`` is the factor of the loss on the ``known`` images, ``weak`` that of all others relative to them; ``settings``
    are those of the learner, and ``loss``.
    """
    loss = settings.pop("loss", "area")
    settings = {"tol": TOL, **settings}
    if known.size == len(graphs) or not weak:
        return StructuredSVM(class_problem(classes, loss), C=C, **settings).fit(graphs[known], y[known])
    total = C * (1 + weak)  # so that masks have the factor that they have alone
    settings = {"max_iter": MAX_ITER, **settings}
    return IterativeLatentSVM(class_problem(classes, loss, weak), C=total, **settings).fit(graphs, y)


def fit_classes(app: Any, graphs: RegionGraphs, masks: Sequence[Any], boxes: Any, contains: Any) -> None:
    """Fit a Segmenter with classes to images that are cut into regions; it sets what the Segmenter learned."""
    classes = read_class_names(app.classes, app.generic)
    X, y, _ = label_classes(graphs, masks, boxes, contains, classes)
    known = complete_images(y, masks)
    if not known.size:
        raise ValueError("masks must have at least one complete mask (void aside); draw one")
    if np.unique(np.concatenate([np.asarray(y[i]) for i in known])).size < 2:
        raise ValueError(f"all {known.size} complete masks have one class alone; draw one with two classes")
    drawn = [masks[i] for i in known]
    app.C_, app.confusion_ = choose_class_C(app, graphs[known], X[known], y[known], drawn, classes)
    scores = score_classes(app.confusion_)
    is_unknown = not app.confusion_.any()
    app.accuracy_ = np.nan if is_unknown else scores.accuracy
    app.iou_ = np.nan if is_unknown else float(np.nanmean(scores.iou))
    marked = [np.maximum(own, 0) for own in mark_classes(graphs[known], drawn, classes)[0]]
    best = score_classes(count_confusions(graphs[known].paint(marked), drawn, classes.size))
    app.ceiling_ = np.array([best.accuracy, float(np.nanmean(best.iou))])
    truths = np.concatenate([np.asarray(mask).ravel() for mask in drawn])
    counts = np.bincount(truths[(truths >= 0) & (truths < classes.size)], minlength=classes.size)
    app.shares_ = counts / max(int(counts.sum()), 1)
    app.weak_ = informed_images(y, known) / known.size if isinstance(app.weak, str) else float(app.weak)
    shared = {"n_jobs": app.n_jobs, "verbose": int(app.verbose), "loss": app.loss}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*max_iter.*")  # few iterations are meant
        app.model_ = learn_classes(X, y, known, classes, app.C_, app.weak_, **shared)
    app.box_model_, app.box_limits_, app.box_images_ = None, np.empty(0), np.empty(0, dtype=np.int64)


def choose_class_C(
    app: Any, graphs: RegionGraphs, X: RegionGraphs, y: RegionLabels, masks: Sequence[Any], classes: Classes
) -> tuple[float, Array]:
    """The C for these masks: of `FACTORS` times their number, the one with the best accuracy on held-out masks; and the
    counts of pixels by true and found class there. Fewer than `MIN_MASKS` are not held out: C is their number."""
    n, k = len(graphs), classes.size
    candidates = [factor * n for factor in FACTORS] if isinstance(app.C, str) else [float(app.C)]
    if n < MIN_MASKS:
        return (float(n) if isinstance(app.C, str) else float(app.C)), np.zeros((k, k), dtype=np.int64)
    folds = np.array_split(np.random.default_rng(app.random_state).permutation(n), FOLDS)
    best, counts = candidates[0], np.zeros((k, k), dtype=np.int64)
    for C in candidates:
        own = np.zeros((k, k), dtype=np.int64)
        for fold in folds:
            rest = np.setdiff1d(np.arange(n), fold)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a poor C may not converge, and is not chosen
                model = learn_classes(
                    X[rest], y[rest], np.arange(rest.size), classes, C, 0.0, loss=app.loss, n_jobs=app.n_jobs, verbose=0
                )
            own += count_confusions(graphs[fold].paint(model.predict(graphs[fold])), [masks[i] for i in fold], k)
        if np.trace(own) > np.trace(counts) or not counts.any():
            best, counts = C, own
    return float(best), counts


def keep_drawn(found: Array, mask: Any, classes: Classes) -> Array:
    """Found labels of pixels, with the classes of a given mask, which may be None, where it has one."""
    if mask is None:
        return found
    table = np.asarray(mask)
    return np.where((table >= 0) & (table < classes.size), table, found)

"""The ways to weigh windows: the principal component of a class, a latent SVM on labels, a detector from boxes.

Each returns weights of `Detection` on maps that are reduced already: (K, d) by class, or (d,) shared by all. Where
windows have ``parts × parts`` pieces, d counts the features of all pieces.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit import LatentSVM, StructuredSVM
from tacit.data.arrays import Array
from tacit.runtime import Status
from tacit.vision.boxes import overlap
from tacit.vision.detection import Detection
from tacit.vision.maps.window_maps import WindowMaps
from tacit.vision.window_types import start_types

CENTRE = 0.6
"""Sides of the centre box, as shares of those of the image."""
LATENT_C = 10.0
"""Small, so that a latent SVM keeps near its start: cross-validation on labels would choose C too large to localise."""
SHARED_C = (3.0, 10.0, 30.0, 100.0)
TOLERANCE = 1e-2
TEMPERATURE = 0.25
"""Of the probability of windows, as a share of the usual spread of their scores."""
NEAR = 0.25
"""Windows that overlap the best one by so much have a say in where the box is."""
SAME = 0.5
"""Windows that overlap by so much show the same thing."""
LABEL_WINDOWS: dict[str, Any] = {
    "sizes": (0.22, 0.3, 0.42, 0.6, 0.8),
    "aspects": (0.75, 1.0, 1.33),
    "step": 0.4,
    "shape": 1.0,
}
"""Where nothing was drawn, windows are shaped as the photo is: labels alone do not teach the shape of an object."""


def centre_boxes(sizes: Array, share: float = CENTRE) -> Array:
    """(n, 4) the box in the middle of every image.

    >>> centre_boxes(np.array([[100, 50]]))
    array([[20., 10., 80., 40.]])
    """
    half = np.asarray(sizes) / 2.0
    return np.hstack([half * (1 - share), half * (1 + share)])


def learn_components(maps: WindowMaps, labels: Array, n_classes: int) -> Array:
    """(K, d): the direction in which the cells of each class vary most, positive in the middle of its images.

    What the images of a class have in common is the object, and where there is none is background, so the first
    principal component separates the two (Wei et al. 2017, "Deep descriptor transforming").
    """
    out = np.zeros((n_classes, maps.values.shape[1]))
    of_cell = np.repeat(labels, maps.lengths)
    is_middle = middle_cells(maps)
    for k in range(n_classes):
        own = of_cell == k
        if np.count_nonzero(own) < 2:
            continue
        cells = maps.values[own].astype(np.float64)
        cells -= cells.mean(axis=0)
        direction = np.linalg.eigh(cells.T @ cells)[1][:, -1]
        along = cells @ direction
        middle = is_middle[own]
        if middle.any() and not middle.all() and along[middle].mean() < along[~middle].mean():
            direction = -direction
        out[k] = direction
    return out


def middle_cells(maps: WindowMaps) -> Array:
    """(cells,) whether the middle of a cell is in the middle half of its image, both ways."""
    grids = np.repeat(maps.grids, maps.lengths, axis=0)
    place = np.arange(maps.values.shape[0]) - np.repeat(maps.offsets[:-1], maps.lengths)
    row, column = np.divmod(place, grids[:, 1])
    y, x = (row + 0.5) / grids[:, 0], (column + 0.5) / grids[:, 1]
    return np.asarray((np.abs(y - 0.5) < 0.25) & (np.abs(x - 0.5) < 0.25))


class LatentWindows(NamedTuple):
    """Weights (K, d) of a latent SVM, and the windows of its first, middle and last iteration."""

    weights: Array
    windows: tuple[Array, Array, Array]
    model: Any

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C cut the learner short."""
        return self.model.status_ is Status.INTERRUPTED


def learn_latent(
    maps: WindowMaps,
    y: Array,
    start: Array,
    *,
    known: Array | None = None,
    C: float = LATENT_C,
    parts: int = 1,
    **settings: Any,
) -> LatentWindows:
    """A latent SVM on labels, started from windows; those that are ``known`` (−1 elsewhere) stay."""
    model = LatentSVM(Detection(parts=parts), C=C, init=start, tol=TOLERANCE, unknown_weight=1.0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(maps, y, hidden=known)
    history = model.history_
    first, middle = (np.asarray(history[i].hidden) for i in (0, len(history) // 2))
    weights = model.weights_["window"]
    return LatentWindows(weights.reshape(len(weights), -1), (first, middle, np.asarray(model.hidden_)), model)


class SharedWindows(NamedTuple):
    """Weights (d,) that all classes share, and whether Ctrl-C cut their learner short."""

    weights: Array
    is_interrupted: bool


def learn_shared(maps: WindowMaps, windows: Array, C: float, parts: int = 1, **settings: Any) -> SharedWindows:
    """One detector for all classes from drawn boxes; the loss is 1 − their overlap with a window."""
    y = np.zeros(len(maps), int)
    problem = Detection(parts=parts, loss="overlap", classes=[0], fit_intercept=False)
    model = StructuredSVM(problem, C=C, tol=TOLERANCE, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(maps, y, hidden=windows)
    return SharedWindows(np.asarray(model.weights_["window"].ravel()), model.status_ is Status.INTERRUPTED)


class TypeWindows(NamedTuple):
    """Weights (T, d) of hidden types, those (d,) that they share, and whether Ctrl-C cut their learner short."""

    own: Array
    shared: Array
    is_interrupted: bool


def learn_types(
    maps: WindowMaps, boxes: Array, windows: Array, types: int, C: float, parts: int = 1, **settings: Any
) -> TypeWindows:
    """Hidden types of the object, and what they share, from drawn boxes.

    A latent SVM whose windows are known and whose types are not; it starts from clusters of the boxes.
    """
    start = start_types(maps, boxes, types, random_state=settings.get("random_state", 0))
    problem = Detection(parts=parts, types=types, loss="overlap", classes=[0], shared=True, fit_intercept=False)
    model = LatentSVM(problem, C=C, init=np.column_stack([windows, start]), tol=TOLERANCE, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(maps, np.zeros(len(maps), int), hidden=windows)
    own, shared = model.weights_["window"].reshape(types, -1), np.asarray(model.weights_["shared"].ravel())
    return TypeWindows(own, shared, model.status_ is Status.INTERRUPTED)


def window_scores(maps: WindowMaps, weights: Array) -> Array:
    """(m,) the score of every window; ``weights`` (n, d) has one row per image, or (d,) one for all."""
    from tacit.vision.maps.pooling import plan_pooling, pool

    features = maps.values.shape[1]
    kinds, which = np.unique(np.atleast_2d(weights), axis=0, return_inverse=True)  # one per class, not per image
    pieces = kinds.shape[1] // features
    cells = maps.values @ kinds.reshape(-1, features).T.astype(maps.values.dtype)
    own = np.repeat(np.broadcast_to(which.ravel(), (len(maps),)), maps.lengths)
    cells = cells.reshape(-1, len(kinds), pieces)[np.arange(len(cells)), own]
    plan = plan_pooling(maps.windows, maps.window_offsets, maps.sizes, maps.strides, "ring", math.isqrt(pieces))
    return pool(cells[:, :, None], maps.offsets, maps.grids, plan, maps.window_offsets)[:, 0]


def best_windows(maps: WindowMaps, weights: Array) -> Array:
    """(n,) the window of the highest score in every image."""
    return _first_top(maps, window_scores(maps, weights))


def _first_top(maps: WindowMaps, scores: Array) -> Array:
    tops = np.maximum.reduceat(scores, maps.window_offsets[:-1])
    is_top = scores == np.repeat(tops, maps.window_counts)
    places = np.flatnonzero(is_top)
    first = np.searchsorted(places, maps.window_offsets[:-1])
    return np.asarray(places[first] - maps.window_offsets[:-1])


def best_types(maps: WindowMaps, scores: Array) -> Array:
    """(n,) the type of the object in every image, by scores (m, T): that of its best window."""
    best = maps.window_offsets[:-1] + _first_top(maps, scores.max(axis=1))
    return np.asarray(scores[best].argmax(axis=1))


def boxes_of(maps: WindowMaps, windows: Array) -> Array:
    """(n, 4) the boxes of chosen windows."""
    return np.asarray(maps.windows[maps.window_offsets[:-1] + windows])


def measure_temperature(maps: WindowMaps, scores: Array) -> float:
    """The difference of scores that makes a window e times as likely as another: a share of their usual spread."""
    spread = np.sqrt(np.add.reduceat(scores**2, maps.window_offsets[:-1]) / maps.window_counts)
    return float(max(TEMPERATURE * spread.mean(), 1e-12))


def settle_boxes(maps: WindowMaps, scores: Array, temperature: float) -> tuple[Array, Array]:
    """The box of every image, (n, 4), and how sure it is, (n,) from 0 to 1.

    Windows come in a few sizes and steps, and the object lies between them. So the box is the mean of the best window
    and of those around it, each weighted by its probability. How sure it is, is the share of probability on windows
    that overlap the best one by half or more.

    Parameters
    ----------
    maps : with windows
    scores : (m,) of all windows
    temperature : of `measure_temperature`

    >>> maps = WindowMaps.of_maps([np.ones((3, 4, 2))], [(40, 30)], 10, windows=[[[0, 0, 20, 20], [4, 0, 24, 20]]])
    >>> settle_boxes(maps, np.array([1.0, 1.0]), 0.5)
    (array([[ 2.,  0., 22., 20.]]), array([1.]))
    """
    starts, counts = maps.window_offsets[:-1], maps.window_counts
    tops = np.repeat(np.maximum.reduceat(scores, starts), counts)
    best = np.repeat(boxes_of(maps, _first_top(maps, scores)), counts, axis=0)
    shared = overlap(best, maps.windows)
    chance = np.exp((scores - tops) / temperature)
    near = chance * (shared >= NEAR)
    boxes = np.add.reduceat(near[:, None] * maps.windows, starts) / np.add.reduceat(near, starts)[:, None]
    return np.asarray(boxes), np.add.reduceat(chance * (shared >= SAME), starts) / np.add.reduceat(chance, starts)


def find_boxes(maps: WindowMaps, weights: Array) -> Array:
    """(n, 4) the boxes by weights (n, d) or (d,) of windows, of many images at once."""
    scores = window_scores(maps, weights)
    return settle_boxes(maps, scores, measure_temperature(maps, scores))[0]


def mean_overlap(found: Array, drawn: Array) -> float:
    """Mean intersection over union, of images with a drawn box."""
    known = ~np.isnan(drawn).any(axis=1)
    return float(overlap(found[known], drawn[known]).mean())

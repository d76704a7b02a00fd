"""Detectors of the object: the principal component of a class, a latent SVM on labels, a detector from drawn boxes.

One of them is chosen on drawn boxes, or, where none is drawn, by how often two of them agree. Each has weights of
`Detection` on reduced maps: (K, d) by class, or (d,) shared by all. Where windows have ``parts × parts`` pieces, d
counts the features of all pieces.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit import LatentSVM, StructuredSVM
from tacit.data.arrays import Array
from tacit.data.labels import find_labels
from tacit.runtime import Status
from tacit.vision.boxes import overlap
from tacit.vision.detection import Detection, nearest_windows
from tacit.vision.maps.window_maps import (
    SAME,
    WindowMaps,
    best_windows,
    boxes_of,
    find_boxes,
    measure_temperature,
    window_scores,
)
from tacit.vision.window_types import start_types

MIN_AGREEMENT = 0.5
"""Share of the photos of a class in which two methods must find the same box for the class to be trusted."""
MIN_AGREED = 8
"""Least number of photos in which two methods agree to learn a detector from them."""
AGREED_C = 3.0
MIN_DRAWN = 4
"""Least number of drawn boxes to hold some out for the choice."""
FOLDS = 4
MAX_CHOOSING = 60
"""Drawn boxes that the choice uses at most, evenly spaced: more take long and change little."""
ENOUGH_GAIN = 0.01
"""Mean overlap by which the latent step must help on held-out boxes to be taken."""
CENTRE = 0.6
"""Sides of the centre box, as shares of those of the image."""
LATENT_C = 10.0
"""Small, so that a latent SVM stays near its start: a C chosen by cross-validation on labels localises badly."""
SHARED_C = (3.0, 10.0, 30.0, 100.0)
TOLERANCE = 1e-2
LABEL_WINDOWS: dict[str, Any] = {
    "sizes": (0.22, 0.3, 0.42, 0.6, 0.8),
    "aspects": (0.75, 1.0, 1.33),
    "step": 0.4,
    "shape": 1.0,
}
"""Without drawn boxes, windows have the shape of the photo: labels alone do not teach the shape of an object."""


class Recipe(NamedTuple):
    """The weights that were chosen, and why.

    Attributes
    ----------
    own, shared : (K, T, d) and (d,) weights of windows, by class and type of the object
    method : how they were learned
    evidence : the numbers that the choice was made by, by name
    advice : one sentence
    steps : windows (n,) of the training photos at the first, a middle and the last step
    others : windows of the training photos by methods that were not chosen
    is_interrupted : whether Ctrl-C stopped any learner that these weights, or their choice, come from
    """

    own: Array
    shared: Array
    method: str
    evidence: dict[str, Any]
    advice: str
    steps: dict[str, Array]
    others: dict[str, Array]
    is_interrupted: bool = False


def choose_detector(
    maps: WindowMaps,
    y: Array,
    classes: Array,
    drawn: Array,
    settings: dict[str, Any],
    types: int = 1,
    tries_latent: bool = True,
) -> Recipe:
    """The detector for these photos.

    Parameters
    ----------
    maps : reduced maps with windows
    y, classes : the class of every photo, and all classes
    drawn : (n, 4) drawn boxes, NaN where there is none
    settings : verbose, n_jobs and random_state of learners, and parts: pieces of a window across, and down
    types : hidden types of the object; more than one needs drawn boxes
    tries_latent : whether a latent SVM may refine the detector of drawn boxes
    """
    unit = mean_length(maps)  # so that C means the same for any features
    maps = maps.with_values((maps.values / unit).astype(maps.values.dtype))
    search = _Search(maps, y, classes, drawn, settings)
    found = search.learn_from_labels() if search.known.size < 2 else search.learn_from_boxes(types, tries_latent)
    return found._replace(own=found.own / unit, shared=found.shared / unit, is_interrupted=search.is_interrupted)


def mean_length(maps: WindowMaps) -> float:
    """The mean norm of the cells' features."""
    return max(float(np.sqrt((maps.values.astype(np.float64) ** 2).sum(axis=1)).mean()), 1e-12)


class _Search:
    """The data that detectors are learned from, as in `choose_detector`, and whether Ctrl-C stopped one of them."""

    def __init__(self, maps: WindowMaps, y: Array, classes: Array, drawn: Array, settings: dict[str, Any]) -> None:
        self.maps, self.y, self.classes, self.drawn = maps, y, classes, drawn
        self.labels = find_labels(classes, y)
        self.known = np.flatnonzero(~np.isnan(drawn).any(axis=1))
        self.start = nearest_windows(maps, centre_boxes(maps.sizes))
        self.settings, self.quiet = settings, settings | {"verbose": 0}
        self.is_interrupted = False

    def fit_shared(self, rows: Array, windows: Array, C: float) -> Array:
        """Weights (d,) of `learn_shared` from the windows of some photos."""
        weights, is_interrupted = learn_shared(self.maps[rows], windows[rows], C, **self.quiet)
        self.is_interrupted |= is_interrupted
        return weights

    def fit_latent(self, start: Array, settings: dict[str, Any], known: Array | None = None) -> LatentWindows:
        """`learn_latent` on all photos."""
        found = learn_latent(self.maps, self.y, start, known=known, C=LATENT_C, **settings)
        self.is_interrupted |= found.is_interrupted
        return found

    def mean_overlap(self, rows: Array, weights: Array) -> float:
        """The mean IoU of held-out boxes with those that weights (n, d) or (d,) find."""
        return float(overlap(find_boxes(self.maps[rows], weights), self.drawn[rows]).mean())

    def learn_from_labels(self) -> Recipe:
        """Two methods side by side, and a detector that is learned from the boxes on which they agree.

        The principal component finds what the photos of a class share, the latent SVM what separates classes. Where
        both agree, the box counts as drawn, and one detector for all classes is learned from such boxes. It learns what
        all classes have in common, which labels cannot teach, and corrects errors of both methods. Classes in which the
        two mostly disagree keep the latent SVM, which stays near the middle of the photo.
        """
        maps, labels, n_classes = self.maps, self.labels, len(self.classes)
        components = learn_components(maps, labels, n_classes)
        latent = self.fit_latent(self.start, self.settings)
        by_component = best_windows(maps, components[labels])
        by_latent = best_windows(maps, latent.weights[labels])
        agrees = overlap(boxes_of(maps, by_component), boxes_of(maps, by_latent)) >= SAME
        by_class = np.bincount(labels, agrees, n_classes) / np.maximum(np.bincount(labels, minlength=n_classes), 1)
        is_trusted = by_class >= MIN_AGREEMENT
        agreed = np.flatnonzero(agrees & is_trusted[labels])
        own, shared, method = latent.weights, np.zeros(maps.values.shape[1]), "latent"
        if agreed.size >= MIN_AGREED:
            shared = self.fit_shared(agreed, by_component, AGREED_C)
            own = np.where(is_trusted[:, None], 0.0, _match_scale(maps, latent.weights, shared, labels) - shared)
            method = "agreed" if is_trusted.all() else "agreed and latent"
        share = float(np.mean(agrees))
        doubtful = ", ".join(map(str, self.classes[~is_trusted]))
        advice = (
            f"learned from labels alone; two methods agree in {share:.0%} of the photos. Drawing boxes in a dozen of "
            "the photos that the report lists would help most"
        )
        evidence: dict[str, Any] = {
            "agreement of component and latent SVM": share,
            "boxes taken for drawn": int(agreed.size),
        }
        evidence |= {"classes in which they disagree": doubtful} if doubtful else {}
        others = {"component": by_component, "latent SVM": by_latent}
        return Recipe(own[:, None], shared, method, evidence, advice, latent.steps, others)

    def learn_from_boxes(self, types: int, tries_latent: bool) -> Recipe:
        """The shared detector first; the latent step only where it helps on held-out boxes.

        The latent step is not tried with types, nor with windows of several pieces, which are for hand-made features:
        with these, labels do not teach where the object is.
        """
        maps, known = self.maps, self.known
        windows = nearest_windows(maps, self.drawn)
        evidence: dict[str, Any] = {"photos with drawn boxes": int(known.size)}
        C, takes_latent = SHARED_C[1], False
        if known.size >= MIN_DRAWN:
            some = known[:: -(-known.size // MAX_CHOOSING)]
            C, by_C = self._choose_C(windows, some)
            evidence |= by_C
            if tries_latent and types == 1 and self.settings.get("parts", 1) == 1:
                by_shared, by_latent = self._try_latent(windows, some, C)
                evidence |= {"held-out mean IoU, shared": by_shared, "held-out mean IoU, shared and latent": by_latent}
                takes_latent = by_latent > by_shared + ENOUGH_GAIN
        advice = _advise(evidence, known.size, len(maps))
        shared = self.fit_shared(known, windows, C)
        best = best_windows(maps, shared)
        steps = {"first": self.start, "middle": best, "last": best}
        if types > 1:
            by_type = learn_types(maps[known], self.drawn[known], windows[known], types, C, **self.quiet)
            self.is_interrupted |= by_type.is_interrupted
            own = np.repeat(by_type.own[None], len(self.classes), axis=0)
            return Recipe(own, by_type.shared, "types", evidence, advice, steps, {})
        if takes_latent:
            latent = self.fit_latent(np.where(windows >= 0, windows, best), self.settings, known=windows)
            none = np.zeros_like(shared)
            method, others = "shared and latent", {"shared": best}
            return Recipe(latent.weights[:, None], none, method, evidence, advice, latent.steps, others)
        own = np.zeros((len(self.classes), 1, shared.size))
        return Recipe(own, shared, "shared", evidence, advice, steps, {})

    def _choose_C(self, windows: Array, known: Array) -> tuple[float, dict[str, Any]]:
        """The C of the shared detector by four-fold cross-validation on drawn boxes, and the IoU with half of them."""
        count = min(FOLDS, known.size)
        folds = [(np.delete(known, np.s_[k::count]), known[k::count]) for k in range(count)]
        by_C, by_half = np.zeros(len(SHARED_C)), 0.0
        for train, test in folds:
            for j, C in enumerate(SHARED_C):
                by_C[j] += self.mean_overlap(test, self.fit_shared(train, windows, C)) / count
        best = int(np.argmax(by_C))
        for train, test in folds:
            by_half += self.mean_overlap(test, self.fit_shared(train[::2], windows, SHARED_C[best])) / count
        evidence = {
            "C of the shared detector": SHARED_C[best],
            "held-out mean IoU": float(by_C[best]),
            "held-out mean IoU with half of the boxes": float(by_half),
        }
        return SHARED_C[best], evidence

    def _try_latent(self, windows: Array, known: Array, C: float) -> tuple[float, float]:
        """Mean IoU of held-out boxes by the shared detector, and by a latent SVM that starts from it.

        A latent SVM takes as long as all the rest, so one fold decides: every second box is held out.
        """
        train, test = known[::2], known[1::2]
        shared = self.fit_shared(train, windows, C)
        given = np.full(len(self.maps), -1)
        given[train] = windows[train]
        start = np.where(given >= 0, given, best_windows(self.maps, shared))
        latent = self.fit_latent(start, self.quiet, known=given)
        return self.mean_overlap(test, shared), self.mean_overlap(test, latent.weights[self.labels[test]])


def _match_scale(maps: WindowMaps, weights: Array, shared: Array, labels: Array) -> Array:
    """Weights (K, d), scaled so that their scores have the temperature of those of the shared weights."""
    theirs = measure_temperature(maps, window_scores(maps, weights[labels]))
    return np.asarray(weights * measure_temperature(maps, window_scores(maps, shared)) / theirs)


def _advise(evidence: dict[str, Any], drawn: int, photos: int) -> str:
    if "held-out mean IoU" not in evidence:
        return f"{drawn} boxes are too few to test on; draw {MIN_DRAWN} or more, first in photos that the report lists"
    now, half = evidence["held-out mean IoU"], evidence["held-out mean IoU with half of the boxes"]
    gain = now - half
    summary = f"learned from {drawn} boxes. Held-out mean IoU: {now:.2f} with all of them, {half:.2f} with half of them"
    if drawn >= photos:
        return f"{summary}; every photo has a drawn box"
    if gain < ENOUGH_GAIN:
        return f"{summary}. Drawing more boxes would hardly raise it"
    more = min(drawn, photos - drawn)
    return f"{summary}. Drawing {more} more boxes would probably raise it by {gain / 2:.2f} to {gain:.2f}"


def centre_boxes(sizes: Array, share: float = CENTRE) -> Array:
    """(n, 4) a box in the middle of every image.

    >>> centre_boxes(np.array([[100, 50]]))
    array([[20., 10., 80., 40.]])
    """
    half = np.asarray(sizes) / 2.0
    return np.hstack([half * (1 - share), half * (1 + share)])


def learn_components(maps: WindowMaps, labels: Array, n_classes: int) -> Array:
    """(K, d): the direction in which the cells of each class vary most, positive in the middle of its images.

    Images of a class share the object, and differ in the background, so the first principal component separates the
    two (Wei et al. 2017, "Deep descriptor transforming").
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
    """(cells,) whether the middle of a cell is in the middle half of its image, across and down."""
    grids = np.repeat(maps.grids, maps.lengths, axis=0)
    position = np.arange(maps.values.shape[0]) - np.repeat(maps.offsets[:-1], maps.lengths)
    row, column = np.divmod(position, grids[:, 1])
    y, x = (row + 0.5) / grids[:, 0], (column + 0.5) / grids[:, 1]
    return np.asarray((np.abs(y - 0.5) < 0.25) & (np.abs(x - 0.5) < 0.25))


class LatentWindows(NamedTuple):
    """Weights (K, d) of a latent SVM, the windows of its first, middle and last iteration, and whether it stopped."""

    weights: Array
    steps: dict[str, Array]
    is_interrupted: bool


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
    """A latent SVM on labels that starts from given windows; ``known`` windows (−1 for unknown) stay fixed."""
    model = LatentSVM(Detection(parts=parts), C=C, init=start, tol=TOLERANCE, unknown_weight=1.0, **settings)
    is_interrupted = _fit_quietly(model, maps, y, known)
    first, middle = (np.asarray(model.history_[i].hidden) for i in (0, len(model.history_) // 2))
    weights = model.weights_["window"]
    steps = {"first": first, "middle": middle, "last": np.asarray(model.hidden_)}
    return LatentWindows(weights.reshape(len(weights), -1), steps, is_interrupted)


def learn_shared(maps: WindowMaps, windows: Array, C: float, parts: int = 1, **settings: Any) -> tuple[Array, bool]:
    """One detector for all classes from drawn boxes; the loss is 1 − IoU of window and box.

    Returns weights (d,), and whether Ctrl-C stopped the learner.
    """
    problem = Detection(parts=parts, loss="overlap", classes=[0], fit_intercept=False)
    model = StructuredSVM(problem, C=C, tol=TOLERANCE, **settings)
    is_interrupted = _fit_quietly(model, maps, np.zeros(len(maps), int), windows)
    return np.asarray(model.weights_["window"].ravel()), is_interrupted


def hold_out_scores(
    maps: WindowMaps, training: WindowMaps, drawn: Array, C: float, others: Array, **settings: Any
) -> tuple[Array, Array]:
    """Scores of windows by shared detectors, each learned without the photos that it scores.

    Parameters
    ----------
    maps : reduced maps with windows
    training : the same maps with the windows to learn from
    drawn : (n, 4) a drawn box per photo, NaN where there is none
    C : of the detectors
    others : photos without a box that are scored by a detector of all boxes
    settings : of `learn_shared`

    Returns the photos that were scored, and the scores of their windows, photo after photo.
    """
    unit = mean_length(maps)
    scaled, training = (own.with_values((own.values / unit).astype(own.values.dtype)) for own in (maps, training))
    windows, known = nearest_windows(training, drawn), np.flatnonzero(~np.isnan(drawn).any(axis=1))
    count = min(FOLDS, known.size)
    parts = [(np.delete(known, np.s_[k::count]), known[k::count]) for k in range(count)] + [(known, others)]
    rows, scores = [], []
    for train, test in parts:
        if len(test):
            weights, _ = learn_shared(training[train], windows[train], C, **settings)
            rows.append(test)
            scores.append(window_scores(scaled[test], weights))
    return np.concatenate(rows), np.concatenate(scores)


class TypeWindows(NamedTuple):
    """Weights (T, d) of hidden types, those (d,) that they share, and whether Ctrl-C stopped their learner."""

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
    is_interrupted = _fit_quietly(model, maps, np.zeros(len(maps), int), windows)
    own, shared = model.weights_["window"].reshape(types, -1), np.asarray(model.weights_["shared"].ravel())
    return TypeWindows(own, shared, is_interrupted)


def _fit_quietly(model: LatentSVM | StructuredSVM, maps: WindowMaps, y: Array, windows: Array | None) -> bool:
    """Fit without warnings of convergence; returns whether Ctrl-C stopped it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(maps, y, hidden=windows)
    return model.status_ is Status.INTERRUPTED

"""Which detector for which photos: chosen on what was drawn, or on how far two methods agree where nothing was."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_labels
from tacit.vision.boxes import overlap
from tacit.vision.detection import nearest_windows
from tacit.vision.detectors import (
    SAME,
    SHARED_C,
    best_windows,
    boxes_of,
    centre_boxes,
    find_boxes,
    learn_components,
    learn_latent,
    learn_shared,
    learn_types,
    mean_overlap,
    measure_temperature,
    window_scores,
)
from tacit.vision.maps.window_maps import WindowMaps

MIN_AGREEMENT = 0.5
"""Share of the photos of a class in which two methods must place the same box for the class to be trusted."""
MIN_AGREED = 8
"""Photos in which two methods agree from which on a detector is learned from them."""
AGREED_C = 3.0
MIN_DRAWN = 4
"""Drawn boxes from which on some are held out to choose by."""
FOLDS = 4
MAX_CHOOSING = 60
"""Drawn boxes that the choice is made on at the most, evenly spread: more take long and change little."""
ENOUGH_GAIN = 0.01
"""Mean overlap by which the latent step must help on held-out boxes to be taken."""


class Recipe(NamedTuple):
    """The weights that were chosen, and why.

    Attributes
    ----------
    own, shared : (K, T, d) and (d,) weights of windows, by class and type of the object
    method : how they were learned
    evidence : numbers behind the choice, by name
    advice : one sentence
    steps : windows (n,) of the training photos at the first, a middle and the last step
    others : windows of the training photos by methods that were not taken
    is_interrupted : whether Ctrl-C cut short any learner that these weights, or their choice, come from
    """

    own: Array
    shared: Array
    method: str
    evidence: dict[str, Any]
    advice: str
    steps: dict[str, Array]
    others: dict[str, Array]
    is_interrupted: bool


def choose_detector(
    maps: WindowMaps,
    y: Array,
    classes: Array,
    drawn: Array,
    latent_C: float,
    settings: dict[str, Any],
    types: int = 1,
) -> Recipe:
    """The detector for these photos.

    Parameters
    ----------
    maps : reduced maps with windows
    y, classes : the class of every photo, and all classes
    drawn : (n, 4) drawn boxes, NaN where there is none
    latent_C : weight of the loss of the latent SVM
    settings : verbose, n_jobs and random_state of learners, and parts: pieces of a window across, and down
    types : hidden types of the object; more than one needs drawn boxes
    """
    labels = find_labels(classes, y)
    known = np.flatnonzero(~np.isnan(drawn).any(axis=1))
    unit = mean_length(maps)  # C means the same for any features, then
    maps = maps.with_values((maps.values / unit).astype(maps.values.dtype))
    if known.size < 2:
        found = _from_labels(maps, y, labels, classes, latent_C, settings)
    else:
        found = _from_boxes(maps, y, labels, len(classes), drawn, known, latent_C, settings, types)
    return found._replace(own=found.own / unit, shared=found.shared / unit)


def mean_length(maps: WindowMaps) -> float:
    """The mean length of the cells' features."""
    return max(float(np.sqrt((maps.values.astype(np.float64) ** 2).sum(axis=1)).mean()), 1e-12)


def _from_labels(
    maps: WindowMaps, y: Array, labels: Array, classes: Array, latent_C: float, settings: dict[str, Any]
) -> Recipe:
    """Two methods side by side, and a detector that is learned from the boxes on which they agree.

    The principal component finds what the photos of a class share, the latent SVM what tells classes apart. Where both
    say the same, the box counts as drawn, and one detector for all classes is learned from such boxes: a label
    cannot teach what all classes have in common, and the detector makes up for errors of both. Classes in
    which the two mostly disagree keep the latent SVM, which stays near the middle of the photo.
    """
    n_classes = len(classes)
    components = learn_components(maps, labels, n_classes)
    start = nearest_windows(maps, centre_boxes(maps.sizes))
    latent = learn_latent(maps, y, start, C=latent_C, **settings)
    by_component = best_windows(maps, components[labels])
    by_latent = best_windows(maps, latent.weights[labels])
    agrees = overlap(boxes_of(maps, by_component), boxes_of(maps, by_latent)) >= SAME
    by_class = np.bincount(labels, agrees, n_classes) / np.maximum(np.bincount(labels, minlength=n_classes), 1)
    is_trusted = by_class >= MIN_AGREEMENT
    agreed = np.flatnonzero(agrees & is_trusted[labels])
    own, shared, method = latent.weights, np.zeros(maps.values.shape[1]), "latent"
    was_cut = latent.is_interrupted
    if agreed.size >= MIN_AGREED:
        detector = learn_shared(maps[agreed], by_component[agreed], AGREED_C, **(settings | {"verbose": 0}))
        shared, was_cut = detector.weights, was_cut or detector.is_interrupted
        own = np.where(is_trusted[:, None], 0.0, _as_sharp(maps, latent.weights, shared, labels) - shared)
        method = "agreed" if is_trusted.all() else "agreed and latent"
    share = float(np.mean(agrees))
    doubtful = ", ".join(map(str, classes[~is_trusted]))
    advice = (
        f"learned from labels alone; two methods agree in {share:.0%} of the photos. Draw boxes in a dozen of those "
        "that the report lists: that helps more than anything else"
    )
    evidence: dict[str, Any] = {
        "agreement of component and latent SVM": share,
        "boxes taken for drawn": int(agreed.size),
    }
    evidence |= {"classes in which they disagree": doubtful} if doubtful else {}
    return Recipe(
        own[:, None],
        shared,
        method,
        evidence,
        advice,
        dict(zip(("first", "middle", "last"), latent.windows, strict=True)),
        {"component": by_component, "latent SVM": by_latent},
        was_cut,
    )


def _as_sharp(maps: WindowMaps, weights: Array, shared: Array, labels: Array) -> Array:
    """Weights (K, d), scaled so that their scores spread as much as those of the shared ones do."""
    theirs = measure_temperature(maps, window_scores(maps, weights[labels]))
    return np.asarray(weights * measure_temperature(maps, window_scores(maps, shared)) / theirs)


def _from_boxes(
    maps: WindowMaps,
    y: Array,
    labels: Array,
    n_classes: int,
    drawn: Array,
    known: Array,
    latent_C: float,
    settings: dict[str, Any],
    types: int,
) -> Recipe:
    """The shared detector first; the latent step only where it helps on held-out boxes.

    It is never tried with types, nor with windows of several pieces, which are for hand-made features: labels teach
    these nothing about places.
    """
    quiet = settings | {"verbose": 0}
    windows = nearest_windows(maps, drawn)
    start = nearest_windows(maps, centre_boxes(maps.sizes))
    evidence: dict[str, Any] = {"drawn boxes": int(known.size)}
    C, takes_latent, was_cut = SHARED_C[1], False, False
    if known.size >= MIN_DRAWN:
        some = known[:: -(-known.size // MAX_CHOOSING)]
        C, by_C, was_cut = _choose_C(maps, drawn, windows, some, quiet)
        evidence |= by_C
    if known.size >= MIN_DRAWN and types == 1 and settings.get("parts", 1) == 1:
        helped = _held_out_latent(maps, y, labels, drawn, windows, some, C, latent_C, quiet)
        evidence |= {"held-out mean IoU, shared": helped[0], "held-out mean IoU, shared and latent": helped[1]}
        takes_latent, was_cut = helped[1] > helped[0] + ENOUGH_GAIN, was_cut or helped[2]
    shared, is_cut = learn_shared(maps[known], windows[known], C, **quiet)
    was_cut = was_cut or is_cut
    by_shared = best_windows(maps, shared)
    own, method, others = np.zeros((n_classes, shared.size)), "shared", {}
    steps = {"first": start, "middle": by_shared, "last": by_shared}
    if types > 1:
        found = learn_types(maps[known], drawn[known], windows[known], types, C, **quiet)
        own, was_cut = np.repeat(found.own[None], n_classes, axis=0), was_cut or found.is_interrupted
        advice = _advise(evidence, known.size, len(maps))
        return Recipe(own, found.shared, "types", evidence, advice, steps, {}, was_cut)
    if takes_latent:
        begin = np.where(windows >= 0, windows, by_shared)
        latent = learn_latent(maps, y, begin, known=windows, C=latent_C, **settings)
        others, method = {"shared": by_shared}, "shared and latent"
        own, shared = latent.weights, np.zeros_like(shared)
        steps = dict(zip(("first", "middle", "last"), latent.windows, strict=True))
        was_cut = was_cut or latent.is_interrupted
    advice = _advise(evidence, known.size, len(maps))
    return Recipe(own[:, None], shared, method, evidence, advice, steps, others, was_cut)


def _folds(known: Array) -> list[tuple[Array, Array]]:
    """Pairs of boxes to learn from and boxes held out, every fourth box in turn."""
    count = min(FOLDS, known.size)
    return [(np.delete(known, np.s_[k::count]), known[k::count]) for k in range(count)]


def _choose_C(
    maps: WindowMaps, drawn: Array, windows: Array, known: Array, quiet: dict[str, Any]
) -> tuple[float, dict[str, Any], bool]:
    """The C of the shared detector by held-out boxes; how much half of them would have reached; whether it was cut."""
    was_cut = False
    by_C = np.zeros(len(SHARED_C))
    by_half = 0.0
    folds = _folds(known)
    for train, test in folds:
        for j, C in enumerate(SHARED_C):
            u, is_cut = learn_shared(maps[train], windows[train], C, **quiet)
            was_cut = was_cut or is_cut
            by_C[j] += mean_overlap(find_boxes(maps[test], u), drawn[test]) / len(folds)
    best = int(np.argmax(by_C))
    for train, test in folds:
        u, is_cut = learn_shared(maps[train[::2]], windows[train[::2]], SHARED_C[best], **quiet)
        was_cut = was_cut or is_cut
        by_half += mean_overlap(find_boxes(maps[test], u), drawn[test]) / len(folds)
    evidence = {
        "C of the shared detector": SHARED_C[best],
        "held-out mean IoU": float(by_C[best]),
        "held-out mean IoU with half of the boxes": float(by_half),
    }
    return SHARED_C[best], evidence, was_cut


def _held_out_latent(
    maps: WindowMaps,
    y: Array,
    labels: Array,
    drawn: Array,
    windows: Array,
    known: Array,
    C: float,
    latent_C: float,
    quiet: dict[str, Any],
) -> tuple[float, float, bool]:
    """Mean overlap of held-out boxes by the shared detector, and after a latent SVM from it; and whether it was cut.

    A latent SVM takes as long as all else, so one fold decides: every second box is held out.
    """
    train, test = known[::2], known[1::2]
    u, is_cut = learn_shared(maps[train], windows[train], C, **quiet)
    by_shared = best_windows(maps, u)
    given = np.full(len(maps), -1)
    given[train] = windows[train]
    latent = learn_latent(maps, y, np.where(given >= 0, given, by_shared), known=given, C=latent_C, **quiet)
    return (
        mean_overlap(find_boxes(maps[test], u), drawn[test]),
        mean_overlap(find_boxes(maps[test], latent.weights[labels[test]]), drawn[test]),
        is_cut or latent.is_interrupted,
    )


def _advise(evidence: dict[str, Any], drawn: int, photos: int) -> str:
    if "held-out mean IoU" not in evidence:
        return f"{drawn} boxes are too few to test on; draw {MIN_DRAWN} or more, best those that the report lists"
    now, half = evidence["held-out mean IoU"], evidence["held-out mean IoU with half of the boxes"]
    gain = now - half
    told = f"learned from {drawn} boxes: held-out mean IoU {now:.2f}, {half:.2f} with half of them"
    if drawn >= photos:
        return f"{told}; every photo has its box"
    if gain < ENOUGH_GAIN:
        return f"{told}: more boxes are hardly worth drawing"
    more = min(drawn, photos - drawn)
    return f"{told}: {more} more boxes are worth drawing, for about {gain / 2:.2f} to {gain:.2f} more"

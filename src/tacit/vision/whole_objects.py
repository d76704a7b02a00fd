"""Boxes around whole objects, from labels alone: two maps of the object, and the median of the boxes that they suggest.

The principal component of the cells of a class (Wei et al. 2017) shows what its photos have in common; the activation
map (Zhou et al. 2016) shows what separates the class from the others. The first fails where the background is common
too, the second finds the part that separates. Both are cut at several thresholds, alone and as their mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import ndimage

from tacit.data.arrays import Array
from tacit.vision.boxes import overlap
from tacit.vision.detectors import learn_components
from tacit.vision.maps.window_maps import WindowMaps

DEVIATIONS = (-0.2, 0.0, 0.2, 0.4)
"""Thresholds of the component and of the mean map, in standard deviations of the cells of the class."""
RANGES = (0.2, 0.3, 0.4, 0.5)
"""Thresholds of the activation map, as shares of its range in the photo: its scale differs from photo to photo."""
ACTIVATION_C = 1000.0
EDGE_PENALTY = 0.05
EDGE = 0.02
"""A box within this share of the photo's side reaches its edge, which lowers the confidence: maps that fail often cover
the photo to its edge."""
FINER = 4
"""Boxes are cut from maps that are interpolated to this many points per cell and direction."""


class WholeBoxes(NamedTuple):
    """Boxes of photos, (n, 4), their confidence, (n,) from 0 to 1, and boxes by either map alone."""

    boxes: Array
    scores: Array
    by_component: Array
    by_activation: Array


def learn_maps(maps: WindowMaps, labels: Array, n_classes: int) -> Array:
    """(K, 2, d + 1): weights and offset of component and activation map, by class.

    The cells of the photos of a class have mean 0 and standard deviation 1 in both. With one class there is no
    activation map, and its weights are 0.

    Parameters
    ----------
    maps : reduced maps
    labels : (n,) the class of every photo, from 0
    n_classes : K
    """
    out = np.zeros((n_classes, 2, maps.values.shape[1] + 1))
    out[:, 0, :-1] = learn_components(maps, labels, n_classes)
    out[:, 1, :-1] = _learn_activations(maps.means().astype(np.float64), labels, n_classes)
    of_cell = np.repeat(labels, maps.lengths)
    for k in range(n_classes):
        cells = maps.values[of_cell == k] @ out[k, :, :-1].T
        if len(cells):
            scale = np.maximum(cells.std(axis=0), 1e-12) if n_classes > 1 else np.array([cells[:, 0].std() or 1.0, 1.0])
            out[k, :, -1] = -cells.mean(axis=0)
            out[k] /= scale[:, None]
    return out


def _learn_activations(means: Array, labels: Array, n_classes: int) -> Array:
    """(K, d) weights of a classifier of whole photos, applied to cells."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(labels)) < 2:
        return np.zeros((n_classes, means.shape[1]))
    centred = means - means.mean(axis=0)
    scale = max(float(np.sqrt((centred**2).sum(axis=1).mean())), 1e-12)
    model = LogisticRegression(C=ACTIVATION_C, max_iter=2000).fit(centred / scale, labels)
    weights = model.coef_ if len(model.classes_) > 2 else np.vstack([-model.coef_, model.coef_])
    out = np.zeros((n_classes, means.shape[1]))
    out[model.classes_] = weights
    return out


def find_whole_objects(maps: WindowMaps, labels: Array, weights: Array) -> WholeBoxes:
    """The box of the object of every photo, and its confidence.

    The confidence is the mean of two numbers: the mean IoU of the box with all those that it is the median of, and the
    IoU of the boxes by either map alone. It is lower for a box that reaches edges of the photo.

    Parameters
    ----------
    maps : reduced maps
    labels : (n,) the class of every photo, from 0
    weights : (K, 2, d + 1) of `learn_maps`
    """
    out = np.zeros((len(maps), 3, 4))
    scores = np.zeros(len(maps))
    has_activation = bool(np.any(weights[:, 1]))
    for i, label in enumerate(labels.tolist()):
        size = maps.sizes[i]
        first, second, third = suggest_boxes(maps, i, weights[label])
        boxes = np.concatenate([first, second, third]) if has_activation else first
        box = np.median(boxes, axis=0)
        out[i] = box, np.median(first, axis=0), np.median(second if has_activation else first, axis=0)
        stable = float(overlap(boxes, np.broadcast_to(box, boxes.shape)).mean())
        agreed = float(overlap(out[i, 1:2], out[i, 2:3])[0]) if has_activation else stable
        margin = np.concatenate([box[:2], size - box[2:]]) / np.tile(size, 2)
        scores[i] = np.clip((stable + agreed) / 2 - EDGE_PENALTY * np.count_nonzero(margin < EDGE), 0.0, 1.0)
    return WholeBoxes(out[:, 0], scores, out[:, 1], out[:, 2])


def suggest_boxes(maps: WindowMaps, i: int, weights: Array) -> tuple[Array, Array, Array]:
    """The boxes of photo i by its component, by its activation map, and by the mean of both, one per threshold."""
    size = maps.sizes[i]
    component, activation = fine_maps(maps, i, weights)
    levels = float(activation.min()) + np.array(RANGES) * float(np.ptp(activation))
    mean = (component + activation) / 2
    cuts = ((component, DEVIATIONS), (activation, levels.tolist()), (mean, DEVIATIONS))
    first, second, third = (np.array([box_above(values, t, size) for t in above]) for values, above in cuts)
    return first, second, third


def fine_maps(maps: WindowMaps, i: int, weights: Array) -> tuple[Array, Array]:
    """Component and activation map of photo i, interpolated, by weights (2, d + 1) of its class."""
    cells = maps.values[maps.offsets[i] : maps.offsets[i + 1]]
    both = (cells @ weights[:, :-1].T + weights[:, -1]).reshape(*maps.grids[i], 2)
    size, stride = maps.sizes[i], float(maps.strides[i])
    return _interpolate(both[:, :, 0], size, stride), _interpolate(both[:, :, 1], size, stride)


def _interpolate(cells: Array, size: Array, stride: float) -> Array:
    """A map with `FINER` points per cell and direction, cut to its photo."""
    fine = ndimage.zoom(cells, FINER, order=1, grid_mode=True, mode="nearest")
    columns, rows = np.maximum(np.round(size / stride * FINER), 1).astype(int)
    return np.asarray(fine[:rows, :columns])


def box_above(values: Array, threshold: float, size: Array) -> Array:
    """(4,) the box of the largest connected part of a map above a threshold; all of the photo where there is none.

    >>> box_above(np.array([[0, 1, 0, 0], [0, 1, 0, 1]]), 0.5, np.array([40, 20]))
    array([10.,  0., 20., 20.])
    """
    parts, count = ndimage.label(values > threshold, np.ones((3, 3)))
    if not count:
        return np.array([0.0, 0.0, *size])
    largest = int(np.argmax(np.bincount(parts.ravel())[1:]))
    rows, columns = ndimage.find_objects(parts)[largest]
    step = size / np.array(values.shape[::-1])
    return np.asarray(np.array([columns.start, rows.start, columns.stop, rows.stop]) * np.tile(step, 2))

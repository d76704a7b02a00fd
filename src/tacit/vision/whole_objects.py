"""Boxes around whole objects, from labels alone: three maps of the object, and the median of the boxes they suggest.

The principal component of the cells of a class (Wei et al. 2017) shows what its photos have in common. The activation
map (Zhou et al. 2016) shows what separates the class from the others. The centre map shows what is in the middle of
photos rather than at their edges. They fail in different ways: where the background is common too, where a part or the
source of the photos separates, and where objects are off the middle. Boxes are cut from the component, from its means
with each of the others, and from the mean of all three, at five thresholds each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import ndimage

from tacit.data.arrays import Array
from tacit.vision.boxes import overlap
from tacit.vision.detectors import learn_components
from tacit.vision.maps.window_maps import WindowMaps

DEVIATIONS = (-0.2, 0.0, 0.2, 0.4, 0.6)
"""Thresholds of maps, in standard deviations of the cells of the class."""
MIX = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]])
"""The maps that boxes are cut from, as means of component, activation map and centre map."""
ACTIVATION_C = 1000.0
CENTRE_WIDTH = 0.22
"""Standard deviation of the bell around the middle of photos that the centre map learns, as a share of their sides."""
RIDGE = 0.1
"""Penalty of the centre map, as a share of the mean variance of features."""
FINER = 4
"""Boxes are cut from maps that are interpolated to this many points per cell and direction."""
N_MAPS = 3


class WholeBoxes(NamedTuple):
    """Boxes of photos, (n, 4), their confidence, (n,) from 0 to 1, and boxes by component and activation map alone."""

    boxes: Array
    scores: Array
    by_component: Array
    by_activation: Array


def learn_maps(maps: WindowMaps, labels: Array, n_classes: int, is_object: Array | None = None) -> Array:
    """(K, 3, d + 1): weights and offset of component, activation map and centre map, by class.

    The cells of the photos of a class have mean 0 and standard deviation 1 in all maps. With one class there is no
    activation map: the component takes its place.

    Parameters
    ----------
    maps : reduced maps
    labels : (n,) the class of every photo, from 0
    n_classes : K
    is_object : (K,) whether photos of a class show an object; None for all
    """
    of_cell = np.repeat(labels, maps.lengths)
    out = np.zeros((n_classes, N_MAPS, maps.values.shape[1] + 1))
    out[:, 0, :-1] = learn_components(maps, labels, n_classes)
    out[:, 1, :-1] = _learn_activations(maps.means().astype(np.float64), labels, n_classes)
    if not out[:, 1].any():
        out[:, 1] = out[:, 0]
    shown = np.ones(n_classes, dtype=bool) if is_object is None else is_object
    out[:, 2, :-1] = _learn_centre(maps, shown[of_cell] if shown[labels].any() else np.ones(len(of_cell), dtype=bool))
    for k in range(n_classes):
        cells = maps.values[of_cell == k] @ out[k, :, :-1].T
        if len(cells):
            out[k, :, -1] = -cells.mean(axis=0)
            out[k] /= np.maximum(cells.std(axis=0), 1e-12)[:, None]
    return out


def _learn_activations(means: Array, labels: Array, n_classes: int) -> Array:
    """(K, d) weights of a classifier of whole photos, applied to cells."""
    from sklearn.linear_model import LogisticRegression

    out = np.zeros((n_classes, means.shape[1]))
    if len(np.unique(labels)) < 2:
        return out
    centred = means - means.mean(axis=0)
    scale = max(float(np.sqrt((centred**2).sum(axis=1).mean())), 1e-12)
    model = LogisticRegression(C=ACTIVATION_C, max_iter=2000).fit(centred / scale, labels)
    out[model.classes_] = model.coef_ if len(model.classes_) > 2 else np.vstack([-model.coef_, model.coef_])
    return out


def _learn_centre(maps: WindowMaps, chosen: Array) -> Array:
    """(d,) weights of a ridge regression on the chosen cells: how near a cell is to the middle of its photo."""
    grids = np.repeat(maps.grids, maps.lengths, axis=0)
    place = np.stack(np.divmod(np.arange(len(maps.values)) - np.repeat(maps.offsets[:-1], maps.lengths), grids[:, 1]))
    offset = (place.T + 0.5) / grids - 0.5
    target = np.exp(-0.5 * (offset**2).sum(axis=1) / CENTRE_WIDTH**2)[chosen]
    cells = maps.values[chosen].astype(np.float64)
    cells -= cells.mean(axis=0)
    spread = cells.T @ cells
    ridge = max(RIDGE * float(np.trace(spread)) / len(spread), 1e-12)
    return np.asarray(np.linalg.solve(spread + ridge * np.eye(len(spread)), cells.T @ (target - target.mean())))


def find_whole_objects(maps: WindowMaps, labels: Array, weights: Array) -> WholeBoxes:
    """The box of the object of every photo, and its confidence: the mean IoU of the box with those it is the median of.

    Parameters
    ----------
    maps : reduced maps
    labels : (n,) the class of every photo, from 0
    weights : (K, 3, d + 1) of `learn_maps`
    """
    out, scores = np.zeros((len(maps), 3, 4)), np.zeros(len(maps))
    for i, label in enumerate(labels.tolist()):
        layers = fine_maps(maps, i, weights[label])
        boxes = np.concatenate([boxes_above(np.tensordot(row, layers, 1), maps.sizes[i]) for row in MIX])
        box = np.median(boxes, axis=0)
        alone = (np.median(boxes_above(layer, maps.sizes[i]), axis=0) for layer in layers[:2])
        out[i] = box, *alone
        scores[i] = overlap(boxes, np.broadcast_to(box, boxes.shape)).mean()
    return WholeBoxes(out[:, 0], scores, out[:, 1], out[:, 2])


def fine_maps(maps: WindowMaps, i: int, weights: Array) -> Array:
    """(3, rows, columns): the maps of photo i with `FINER` points per cell and direction, cut to the photo.

    ``weights`` (3, d + 1) are those of its class.
    """
    cells = maps.values[maps.offsets[i] : maps.offsets[i + 1]]
    coarse = (weights[:, :-1] @ cells.T + weights[:, -1:]).reshape(-1, *maps.grids[i])
    fine = ndimage.zoom(coarse, (1, FINER, FINER), order=1, grid_mode=True, mode="nearest")
    columns, rows = np.maximum(np.round(maps.sizes[i] / float(maps.strides[i]) * FINER), 1).astype(int)
    return np.asarray(fine[:, :rows, :columns])


def boxes_above(values: Array, size: Array) -> Array:
    """The boxes of a map at each of `DEVIATIONS`."""
    return np.array([box_above(values, threshold, size) for threshold in DEVIATIONS])


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

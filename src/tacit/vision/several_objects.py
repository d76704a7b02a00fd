"""Several objects per photo: windows after non-maximum suppression, and a model of which of them are objects.

The scores of windows of one photo rank them, but do not say how many are objects. So a logistic regression on a few
facts of each proposed box learns from the drawn boxes whether the box is right. Its probability is the confidence of
the box, and a threshold on it, chosen on the same boxes, is the count. Scores of a photo with drawn boxes come from a
detector that was learned without this photo, so the confidence is not that of training data.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.vision.boxes import average_precision, overlap
from tacit.vision.maps.window_maps import SAME, WindowMaps

MAX_CONSIDERED = 400
"""Windows per photo that non-maximum suppression looks at, the best first."""
MAX_PROPOSED = 20
"""Boxes that are proposed per photo."""
MAX_SHARED = 0.4
"""A window with a larger IoU with a better one is suppressed."""
MIN_OTHER = 0.25
"""Least IoU of a window with another object to be left out of training."""
HIT = 0.5
"""Least IoU of a box with an object that it finds."""
LOGISTIC_C = 1.0
FACTS = (
    *("score", "below the best of the photo", "log area", "squared log area", "log aspect", "edges", "rank", "best"),
    "nested",
)
"""What is known of a proposed box: its columns. Nested: what it has in common with a better one, as a share of the
smaller of the two; such boxes often show parts of one object."""


class Detections(NamedTuple):
    """Boxes in photos: the photo of each (m,), its class, the box (m, 4), and its confidence from 0 to 1.

    Boxes of a photo are together, the most confident first.
    """

    owners: Array
    y: Array
    boxes: Array
    scores: Array

    def take(self, chosen: Array) -> Detections:
        """Some of the boxes."""
        return Detections(*(column[chosen] for column in self))


class Proposals(NamedTuple):
    """Boxes after non-maximum suppression, by photo, the best first; and what is known of each (m, facts)."""

    owners: Array
    boxes: Array
    facts: Array


def propose_boxes(maps: WindowMaps, scores: Array, temperature: float) -> Proposals:
    """The best windows of every photo that do not overlap, each moved to the mean of those around it.

    >>> windows = [[0, 0, 20, 20], [4, 0, 24, 20], [20, 10, 40, 30]]
    >>> maps = WindowMaps.of_maps([np.ones((3, 4, 2))], [(40, 30)], 10, windows=[windows])
    >>> propose_boxes(maps, np.array([1.0, 1.0, 0.5]), 0.5).boxes.tolist()
    [[2.0, 0.0, 22.0, 20.0], [20.0, 10.0, 40.0, 30.0]]
    """
    owners, boxes, facts = [], [], []
    for i in range(len(maps)):
        own = slice(maps.window_offsets[i], maps.window_offsets[i + 1])
        kept, moved = _suppress(maps.windows[own], scores[own], temperature)
        values, size = scores[own][kept], maps.sizes[i].astype(np.float64)
        sides = np.maximum(moved[:, 2:] - moved[:, :2], 1e-9) / size
        area, aspect = np.log(sides.prod(axis=1)), np.log(sides[:, 0] / sides[:, 1])
        edges = (moved[:, :2] <= 0.01 * size).sum(axis=1) + (moved[:, 2:] >= 0.99 * size).sum(axis=1)
        rank = np.arange(len(kept))
        columns = [values / temperature, (values - values[0]) / temperature, area, area**2, aspect]
        facts.append(np.column_stack([*columns, edges, np.log1p(rank), rank == 0, _nested_shares(moved)]))
        owners.append(np.full(len(kept), i))
        boxes.append(moved)
    return Proposals(np.concatenate(owners), np.concatenate(boxes), np.concatenate(facts))


def _suppress(windows: Array, scores: Array, temperature: float) -> tuple[Array, Array]:
    """Positions of the windows that stay, the best first, and their boxes."""
    order = np.argsort(-scores, kind="stable")[:MAX_CONSIDERED]
    boxes, values = windows[order].astype(np.float64), scores[order]
    shared = overlap_table(boxes, boxes)
    is_open = np.ones(len(order), dtype=bool)
    kept: list[int] = []
    while is_open.any() and len(kept) < MAX_PROPOSED:
        best = int(np.argmax(is_open))
        kept.append(best)
        is_open &= shared[best] <= MAX_SHARED
        is_open[best] = False
    below = values - values[kept][:, None]
    near = (shared[kept] >= SAME) & (below <= 0)  # better windows belong to better boxes
    chance = np.exp(np.clip(below / temperature, -700.0, 0.0)) * near
    return order[kept], (chance @ boxes) / chance.sum(axis=1, keepdims=True)


def _nested_shares(boxes: Array) -> Array:
    """Per box the largest share of the smaller of it and an earlier one that they have in common."""
    sides = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    areas = np.maximum((boxes[:, 2:] - boxes[:, :2]).prod(axis=1), 1e-9)
    shares = np.maximum(sides, 0.0).prod(axis=2) / np.minimum(areas[:, None], areas)
    return np.asarray(np.tril(shares, -1).max(axis=1))


def overlap_table(one: Array, other: Array) -> Array:
    """(m, k) the IoU of every box with every other.

    >>> overlap_table(np.array([[0, 0, 2, 2]]), np.array([[0, 0, 2, 2], [1, 0, 3, 2]])).round(2).tolist()
    [[1.0, 0.33]]
    """
    m, k = len(one), len(other)
    if not m or not k:
        return np.zeros((m, k))
    return overlap(np.repeat(one, k, axis=0), np.tile(other, (m, 1))).reshape(m, k)


class ObjectModel(NamedTuple):
    """Weights of the facts of a proposed box and an offset, the least probability of an object, and scores of both on
    drawn boxes."""

    weights: Array
    threshold: float
    evidence: dict[str, Any]

    def rate(self, proposals: Proposals) -> Array:
        """The probability that each proposed box is an object."""
        return probabilities(proposals.facts, self.weights)


def probabilities(facts: Array, weights: Array) -> Array:
    """Of the logistic model, weights (facts + 1,) with the offset last."""
    return np.asarray(1 / (1 + np.exp(-np.clip(facts @ weights[:-1] + weights[-1], -50, 50))))


def learn_objects(proposals: Proposals, truths: Sequence[Array]) -> ObjectModel:
    """Which proposed boxes are objects, from the drawn boxes of each photo (an empty table where there is none).

    The threshold has the highest F1 on these boxes. Where all proposed boxes are right, or none is, the probability is
    their share.
    """
    from sklearn.linear_model import LogisticRegression

    is_right = match_boxes(proposals.owners, proposals.boxes, -proposals.facts[:, 6], truths)
    weights = np.zeros(proposals.facts.shape[1] + 1)
    if is_right.all() or not is_right.any():
        weights[-1] = 5.0 if is_right.all() else -5.0
    else:
        middle, scale = proposals.facts.mean(axis=0), np.maximum(proposals.facts.std(axis=0), 1e-9)
        model = LogisticRegression(C=LOGISTIC_C, max_iter=1000).fit((proposals.facts - middle) / scale, is_right)
        weights[:-1] = model.coef_[0] / scale
        weights[-1] = float(model.intercept_[0]) - float(weights[:-1] @ middle)
    found = probabilities(proposals.facts, weights)
    threshold = _best_threshold(proposals, found, truths)
    keep = found >= threshold
    scores = score_detections(proposals.owners[keep], proposals.boxes[keep], found[keep], truths)
    everything = score_detections(proposals.owners, proposals.boxes, found, truths)
    evidence = {f"held-out {name}": scores[name] for name in ("recall", "precision")}
    evidence["held-out average precision"] = everything["average precision"]
    return ObjectModel(weights, threshold, evidence)


def match_boxes(owners: Array, boxes: Array, scores: Array, truths: Sequence[Array]) -> Array:
    """Whether each box finds an object: IoU of `HIT` or more with a true box of its photo that no better box found."""
    is_right = np.zeros(len(owners), dtype=bool)
    order = np.argsort(-scores, kind="stable")
    taken = [np.zeros(len(own), dtype=bool) for own in truths]
    for at in order.tolist():
        own = truths[int(owners[at])]
        if not len(own):
            continue
        shared = overlap(np.broadcast_to(boxes[at], own.shape), own)
        shared[taken[int(owners[at])]] = 0.0
        best = int(np.argmax(shared))
        if shared[best] >= HIT:
            is_right[at] = taken[int(owners[at])][best] = True
    return is_right


def score_detections(owners: Array, boxes: Array, scores: Array, truths: Sequence[Array]) -> dict[str, float]:
    """Recall and precision at an IoU of one half, average precision, and the numbers of boxes.

    ``truths`` has the true boxes of every photo, (k, 4).

    >>> truths = [np.array([[0, 0, 2, 2.0], [5, 5, 9, 9]]), np.zeros((0, 4))]
    >>> found = score_detections(np.array([0, 1]), np.array([[0, 0, 2, 2.0]] * 2), np.array([0.9, 0.5]), truths)
    >>> found["recall"], found["precision"], found["average precision"]
    (0.5, 0.5, 0.5)
    """
    n_objects = sum(map(len, truths))
    if not n_objects:
        return {"objects": 0, "boxes": len(owners)}
    is_right = match_boxes(owners, boxes, scores, truths)
    return {
        "objects": n_objects,
        "boxes": len(owners),
        "recall": float(is_right.sum() / n_objects),
        "precision": float(is_right.mean()) if len(owners) else 0.0,
        "average precision": average_precision(scores, is_right, n_objects) if len(owners) else 0.0,
    }


def _best_threshold(proposals: Proposals, found: Array, truths: Sequence[Array]) -> float:
    is_right = match_boxes(proposals.owners, proposals.boxes, found, truths)
    order = np.argsort(-found, kind="stable")
    hits = np.cumsum(is_right[order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + max(sum(map(len, truths)), 1))
    best = int(np.argmax(f1)) if hits[-1] else 0
    after = found[order][min(best + 1, len(order) - 1)]
    return float((found[order][best] + after) / 2)


def read_truths(boxes: Any, n: int) -> list[Array]:
    """The drawn boxes of every photo, (k, 4) each, from a table (n, 4) with NaN, or a list of tables or None.

    >>> [len(own) for own in read_truths([[[0, 0, 1, 1], [1, 1, 2, 2]], None, [0, 0, 1, 1]], 3)]
    [2, 0, 1]
    """
    if boxes is None:
        return [np.zeros((0, 4))] * n
    if len(boxes) != n:
        raise ValueError(f"boxes must have {n} entries, one per photo, got {len(boxes)}")
    out = []
    for i, own in enumerate(boxes):
        try:
            table = np.asarray([] if own is None else own, dtype=np.float64)
            table = table.reshape(-1, 4)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the boxes of photo {i} must be rows of four numbers") from error
        table = table[~np.isnan(table).any(axis=1)]
        if len(table) and not (np.isfinite(table).all() and (table[:, :2] < table[:, 2:]).all()):
            raise ValueError(f"a box of photo {i} is empty or not finite; corners are left, top, right, bottom")
        out.append(table)
    return out


def leave_out_other_objects(maps: WindowMaps, truths: Sequence[Array]) -> WindowMaps:
    """The maps without windows that show another object than the largest of their photo.

    A detector learns that the window of the drawn box is better than all others. Windows of other objects are not
    worse, so they are left out.
    """
    keep = np.ones(len(maps.windows), dtype=bool)
    for i, own in enumerate(truths):
        if len(own) > 1:
            cut = slice(maps.window_offsets[i], maps.window_offsets[i + 1])
            shared = overlap_table(maps.windows[cut].astype(np.float64), own)
            largest = int(np.argmax((own[:, 2:] - own[:, :2]).prod(axis=1)))
            others = np.delete(shared, largest, axis=1).max(axis=1)
            keep[cut] = (others < MIN_OTHER) | (others <= shared[:, largest])
    counts = np.add.reduceat(keep, maps.window_offsets[:-1])
    out = copy.copy(maps)
    out.windows, out.window_offsets = maps.windows[keep], np.concatenate([[0], np.cumsum(counts)])
    return out


def largest_boxes(truths: Sequence[Array]) -> Array:
    """(n, 4) the largest box of every photo, NaN where there is none."""
    out = np.full((len(truths), 4), np.nan)
    for i, own in enumerate(truths):
        if len(own):
            out[i] = own[int(np.argmax((own[:, 2:] - own[:, :2]).prod(axis=1)))]
    return out

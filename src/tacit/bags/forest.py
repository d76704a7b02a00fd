"""A random forest on bag statistics, kept as plain arrays, so that it can be saved without a pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.bags.features import as_dense, bag_statistics, count_columns, cut_blocks
from tacit.bags.samples import Samples
from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.data.specs import table
from tacit.runtime.archive import storable

TREES = 200

MAX_DRAWN = 5000
"""Bags that a tree learns from, at most: the time is linear in the number of bags then."""

FLOOR = 0.01
"""Added to probabilities before their logarithm is taken."""


@storable
@dataclass(frozen=True)
class ForestModel:
    """A random forest (Breiman 2001) on mean, deviation, minimum, maximum and count of every column of a bag.

    Parameters
    ----------
    roots : (trees,) the node that a tree begins with
    feature : (nodes,) the compared statistic, −1 in leaves
    threshold : (nodes,) values up to it go left
    left, right : (nodes,) the next nodes
    value : (nodes, classes) shares of the classes
    width : number of statistics
    """

    roots: Array
    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array
    width: int

    name = "forest"

    @property
    def n_features(self) -> int:
        return count_columns(self.width)

    @property
    def n_classes(self) -> int:
        return int(self.value.shape[1])

    def scores(self, bags: Ragged) -> Array:
        """(n, classes) logarithms of the mean shares of the trees."""
        found = []
        for _, block in cut_blocks(bags, self.width):
            rows = as_dense(bag_statistics(block)).astype(np.float32)
            total = np.zeros((len(block), self.value.shape[1]))
            for root in self.roots.tolist():
                total += self.value[self._leaves(rows, root)]
            found.append(total / len(self.roots))
        return np.log(np.concatenate(found) + FLOOR)

    def _leaves(self, rows: Array, root: int) -> Array:
        node, each = np.full(len(rows), root), np.arange(len(rows))
        while True:
            feature = self.feature[node]
            inner = feature >= 0
            if not inner.any():
                return node
            goes_left = rows[each, np.maximum(feature, 0)] <= self.threshold[node]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)

    def check(self) -> None:
        """Refuse what no fit could have made: nodes come after their parents, so that every walk ends."""
        n = np.size(self.feature)
        for name in ("feature", "left", "right"):
            table(n, kinds="i")(name, getattr(self, name))
        table(None, kinds="i")("roots", self.roots)
        table(n)("threshold", self.threshold)
        table(n, None)("value", self.value)
        inner, own = self.feature >= 0, np.arange(n)
        if (
            not self.roots.size
            or (self.feature >= self.width).any()
            or (self.roots < 0).any()
            or (self.roots >= n).any()
        ):
            raise ValueError(f"a forest must have features below {self.width}, and roots among its nodes")
        for part in (self.left, self.right):
            if (part[inner] <= own[inner]).any() or (part[inner] >= n).any():
                raise ValueError("the nodes of a forest must come after their parents")
        if (self.value < 0).any():
            raise ValueError("value must not be negative")


def fit_forest(samples: Samples) -> tuple[ForestModel, Array]:
    """Grow a forest on all bags; its held-out scores are those of trees that did not see the bag."""
    from sklearn.ensemble import RandomForestClassifier

    trial = samples.trial()
    model = _grow(RandomForestClassifier, trial, oob=True)
    shares = np.zeros((len(trial.y), samples.n_classes))
    with np.errstate(invalid="ignore"):
        shares[:, model.classes_] = np.nan_to_num(model.oob_decision_function_, nan=1.0 / samples.n_classes)
    if trial is not samples:
        model = _grow(RandomForestClassifier, samples, oob=False)
    return _as_arrays(model, samples.n_classes), np.log(shares + FLOOR)


def _grow(kind: Any, samples: Samples, oob: bool) -> Any:
    rows = bag_statistics(samples.bags)
    most = MAX_DRAWN if len(samples.y) > MAX_DRAWN else None
    forest = kind(TREES, max_samples=most, random_state=samples.seed, n_jobs=1)
    forest.fit(rows, samples.y, sample_weight=samples.weights)
    if oob:
        forest.oob_decision_function_ = _out_of_bag(forest, rows, len(samples.y))
    return forest


def _out_of_bag(forest: Any, rows: Any, n: int) -> Array:
    """Mean shares of the trees that did not draw a bag; those of the classes for a bag that all of them drew."""
    from scipy import sparse

    table = sparse.csr_array(rows, dtype=np.float32) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float32)
    total, count = np.zeros((n, forest.n_classes_)), np.zeros(n)
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        outside = np.ones(n, dtype=bool)
        outside[drawn] = False
        total[outside] += tree.predict_proba(table[outside], check_input=False)
        count[outside] += 1
    return np.asarray(np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], 1.0 / forest.n_classes_))


def _as_arrays(forest: Any, n_classes: int) -> ForestModel:
    trees = [tree.tree_ for tree in forest.estimators_]
    roots = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])[:-1]]).astype(np.int64)
    first = np.repeat(roots, [tree.node_count for tree in trees])
    value = np.zeros((first.size, n_classes))
    shares = np.concatenate([tree.value[:, 0, :] for tree in trees])
    value[:, forest.classes_] = shares / shares.sum(axis=1, keepdims=True)
    feature = np.concatenate([tree.feature for tree in trees]).astype(np.int64)
    left, right = (
        np.concatenate([getattr(tree, side) for tree in trees]) for side in ("children_left", "children_right")
    )
    is_inner = feature >= 0
    return ForestModel(
        roots,
        np.where(is_inner, feature, -1),
        np.where(is_inner, np.concatenate([tree.threshold for tree in trees]), 0.0),
        np.where(is_inner, left + first, 0),
        np.where(is_inner, right + first, 0),
        value,
        int(forest.n_features_in_),
    )

"""Models of the whole bag: ridge regression on RBF kernels of its statistics or instances, and a random forest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy import sparse

from tacit.bags.combination import held_out_loss
from tacit.bags.features import (
    Scaler,
    as_dense,
    bag_statistics,
    count_columns,
    cut_blocks,
    similarities,
    typical_distance,
    whiten,
)
from tacit.bags.samples import Samples
from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, positive, table
from tacit.runtime.archive import storable

KINDS: dict[str, tuple[str, ...]] = {
    "extremes": ("min", "max"),
    "statistics": ("mean", "deviation", "min", "max", "count"),
    "set": (),
    "nearest": (),
}
"""The statistics that a kernel compares; none for kernels of instances."""

MAX_LANDMARKS, MAX_CELLS = 400, 20_000_000
"""Bags, or instances, that others are compared with, and numbers that they may have together."""

GAMMAS = 2.0 ** np.arange(-4, 3)
"""Tried widths of the RBF kernel, divided by the typical squared distance."""

RIDGES = 4.0 ** np.arange(-6, 4)
"""Tried penalties, for features of mean squared norm 1."""

TREES = 200

MAX_DRAWN = 5000
"""Bags that a tree learns from, at most: the time is linear in the number of bags then."""

FLOOR = 0.01
"""Added to probabilities before their logarithm is taken."""


@storable
@dataclass(frozen=True)
class KernelModel:
    """Scores that are linear in the similarities of a bag to landmarks.

    - "extremes", "statistics": an RBF kernel of scaled statistics of bags;
    - "set": the normalised set kernel, the mean of an RBF kernel over all pairs of instances (Gärtner, Flach, Kowalczyk
      & Smola 2002);
    - "nearest": the similarity of the nearest instance to every landmark, as in MILES (Chen, Bi & Wang 2006).

    Parameters
    ----------
    kind : see above
    scaler : of statistics, or of instances
    landmarks : (m, p) statistics of bags, or instances, scaled
    gamma : of the RBF kernel
    mapping : (m, r) from similarities to features
    coef, intercept : (r, classes) and (classes,)
    """

    kind: str
    scaler: Scaler
    landmarks: Array
    gamma: float
    mapping: Array
    coef: Array
    intercept: Array

    @property
    def name(self) -> str:
        return self.kind

    @property
    def n_features(self) -> int:
        width = int(self.scaler.scale.size)
        return count_columns(width, KINDS[self.kind]) if KINDS[self.kind] else width

    @property
    def n_classes(self) -> int:
        return int(self.intercept.size)

    def scores(self, bags: Ragged) -> Array:
        """(n, classes)"""
        found = [self.features(block) @ self.coef for _, block in cut_blocks(bags, len(self.landmarks))]
        return np.asarray(np.concatenate(found) + self.intercept)

    def features(self, bags: Ragged) -> Array:
        """(n, r) features of some bags."""
        return self.map_similarities(self.pool(bags, self.gamma))

    def pool(self, bags: Ragged, gamma: float) -> Array:
        """(n, m) similarities of bags to landmarks."""
        if KINDS[self.kind]:
            return similarities(self.scaler(bag_statistics(bags, KINDS[self.kind])), self.landmarks, gamma)
        each = similarities(self.scaler(bags.values), self.landmarks, gamma)
        if self.kind == "nearest":
            return np.asarray(np.maximum.reduceat(each, bags.offsets[:-1]))
        return np.asarray(np.add.reduceat(each, bags.offsets[:-1]) / bags.lengths[:, None])

    def map_similarities(self, pooled: Array) -> Array:
        """(n, r) features from similarities."""
        found = pooled @ self.mapping
        if self.kind == "set":
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
        return np.asarray(found)

    def check(self) -> None:
        """Refuse what no fit could have made."""
        choice(*KINDS)("kind", self.kind)
        self.scaler.check()
        positive("gamma", self.gamma)
        table(None, self.scaler.scale.size)("landmarks", self.landmarks)
        table(len(self.landmarks), None)("mapping", self.mapping)
        table(self.mapping.shape[1], None)("coef", self.coef)
        table(self.coef.shape[1])("intercept", self.intercept)


def fit_kernel_model(kind: str, samples: Samples) -> tuple[KernelModel, Array]:
    """Choose gamma and the penalty on held-out bags; return the model of all bags and its (n, classes) held-out scores.

    The choice is made on at most `tacit.bags.samples.MAX_CHOICE` bags: the scores are of those.
    """
    trial = samples.trial()
    model = _begin(kind, trial.bags, samples)
    best: tuple[float, float, float, Array] | None = None
    typical = typical_distance(model.landmarks)
    for gamma in (GAMMAS / typical).tolist():
        pooled = np.concatenate([model.pool(block, gamma) for _, block in cut_blocks(trial.bags, len(model.landmarks))])
        features = _with_gamma(model, gamma, pooled).map_similarities(pooled)
        scores = np.zeros((RIDGES.size, len(trial.y), samples.n_classes))
        for train, test in trial.folds():
            moments = Moments.of(features[train], trial.targets[train], trial.weights[train]).decompose()
            for i, ridge in enumerate(RIDGES):
                coef, intercept = moments.solve(float(ridge))
                scores[i, test] = features[test] @ coef + intercept
        for own, ridge in zip(scores, RIDGES.tolist(), strict=True):
            loss = held_out_loss(own, trial.y, trial.weights)[0]
            if best is None or loss < best[0]:
                best = loss, gamma, ridge, own
    assert best is not None
    _, gamma, ridge, held_out = best
    return _refit(model, gamma, ridge, samples), held_out


def _begin(kind: str, bags: Ragged, samples: Samples) -> KernelModel:
    """Landmarks and scaling; nothing is learned yet."""
    rows = bag_statistics(bags, KINDS[kind]) if KINDS[kind] else bags.values
    scaler = Scaler.fit(rows)
    most = max(min(MAX_LANDMARKS, MAX_CELLS // rows.shape[1]), 20)
    landmarks = as_dense(scaler(rows[samples.draw(rows.shape[0], most)]))
    nothing = np.zeros((0, samples.n_classes))
    return KernelModel(kind, scaler, landmarks, 1.0, np.zeros((len(landmarks), 0)), nothing, nothing.sum(axis=0))


def _with_gamma(model: KernelModel, gamma: float, pooled: Array) -> KernelModel:
    """The model with another gamma, and features of mean squared norm 1."""
    if model.kind != "nearest":
        return replace(model, gamma=gamma, mapping=whiten(model.landmarks, gamma))
    size = np.sqrt(np.maximum(pooled.var(axis=0).sum(), 1e-12))
    return replace(model, gamma=gamma, mapping=np.eye(len(model.landmarks)) / size)


def _refit(model: KernelModel, gamma: float, ridge: float, samples: Samples) -> KernelModel:
    """Learn from all bags with the chosen settings, block by block."""
    trial = samples.trial().bags
    pooled = np.concatenate([model.pool(block, gamma) for _, block in cut_blocks(trial, len(model.landmarks))])
    model = _with_gamma(model, gamma, pooled)
    blocks = cut_blocks(samples.bags, len(model.landmarks))
    parts = (Moments.of(model.features(own), samples.targets[rows], samples.weights[rows]) for rows, own in blocks)
    coef, intercept = reduce(add, parts).decompose().solve(ridge)
    return replace(model, coef=coef, intercept=intercept)


@dataclass(frozen=True)
class Moments:
    """Weighted sums of features and targets: what ridge regression with an intercept needs.

    Parameters
    ----------
    total : the sum of the weights
    features, targets : (r,) and (K,) weighted sums
    gram, cross : (r, r) and (r, K) weighted sums of products
    """

    total: float
    features: Array
    targets: Array
    gram: Array
    cross: Array

    @classmethod
    def of(cls, features: Array, targets: Array, weights: Array) -> Moments:
        """The sums of some bags."""
        weighted = features * weights[:, None]
        total = float(weights.sum())
        return cls(total, weighted.sum(axis=0), weights @ targets, weighted.T @ features, weighted.T @ targets)

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))

    def decompose(self) -> Decomposed:
        """Prepare for several penalties."""
        mean, target = self.features / self.total, self.targets / self.total
        gram = self.gram - self.total * np.outer(mean, mean)
        values, vectors = np.linalg.eigh(gram)
        cross = vectors.T @ (self.cross - self.total * np.outer(mean, target))
        return Decomposed(mean, target, np.maximum(values, 0.0), vectors, cross)


@dataclass(frozen=True)
class Decomposed:
    """Ridge regression in the basis of the eigenvectors of the features' covariance."""

    mean: Array
    target: Array
    values: Array
    vectors: Array
    cross: Array

    def solve(self, ridge: float) -> tuple[Array, Array]:
        """Coefficients and intercepts."""
        coef = self.vectors @ (self.cross / (self.values + ridge)[:, None])
        return coef, self.target - self.mean @ coef


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

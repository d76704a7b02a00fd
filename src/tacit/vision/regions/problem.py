"""Segmentation as a problem: labels of image regions, with neighbours that prefer the same label."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import check_listed, find_labels
from tacit.data.parameters import numbers
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, estimator, not_negative, parameter, switch
from tacit.oracle import TARGET, Example, Problem, Schema
from tacit.problems.chain.tags import read_tag_classes
from tacit.problems.classes.blocks import check_blocks
from tacit.vision.regions.graphs import RegionGraph, RegionGraphs
from tacit.vision.regions.labels import read_allowed, read_limits, read_region_labels
from tacit.vision.regions.oracle import RegionOracle, region_losses

MAX_SCALE = 1e6
"""Largest scale of a feature."""


@estimator
class Regions(Problem):
    """Segmentation: a label for every region, ``s(y) = Σ_r a_r w_{y_r}·x_r − Σ_{(r,q)} v·f_rq [y_r ≠ y_q]``, v ≥ 0.

    ``X`` is a `tacit.RegionGraphs`, as `tacit.regions` makes it from images: features x_r and share of the area a_r per
    region, contrast features f per pair of neighbours (a conditional random field). The weights v of pairs are never
    negative: neighbours prefer the same label, and the best labels of two are an exact minimum cut. With more labels
    inference finds upper bounds, as in `tacit.problems.Graph`: ``gap_`` contains what they leave open,
    ``inference_gap_``.

    ``y`` has one label per region. −1 (or None) is unknown, without loss; `impute` fills it in. A `RegionLabels`, as
    `tacit.weak_labels` makes it from masks, boxes and image labels, limits the share of an image that a label covers.
    It also limits the labels that an unknown region may have; any other label of such a region is an error.
    O(regions · K · d) and one cut per image and pass.

    Parameters
    ----------
    labels : all labels, the background first, where the training data may lack some; None for those of y, sorted
    pairwise : whether there are weights of pairs; without them every region is labelled by itself
    weak : factor of all images with unknown regions together, relative to all completely labelled images; 0 leaves
        them out
    loss : "area", the share of the image with wrong labels; or "overlap", that divided by the share of the true
        foreground, an upper bound of 1 − IoU
    fit_intercept : whether each label has a weight of a constant feature, block "intercept"
    standardise : whether the features of regions are scaled to mean 0 and standard deviation 1 over all training
        images, whatever their sample weights, and then to (−1, 1) by tanh. The range of a feature is uncertain in a few
        images. The constant feature is then the largest norm of a row of features: with 1, its weight would be too
        costly, and labels that are rare in masks would be found too often
    scales : per feature, a factor of its standardised values; None for 1 each. A factor of 2 makes the weights of a
        feature cost a quarter: give larger factors to reliable features

    >>> from tacit import RegionGraphs, StructuredSVM
    >>> X = RegionGraphs.from_list([([[3.0], [0.1], [2.5]], [1, 1, 1], [[0, 1], [1, 2]], [[1.0], [1.0]])] * 3)
    >>> model = StructuredSVM(Regions(), C=1000).fit(X, [[1, 0, 1]] * 3)
    >>> model.predict(X)[0].tolist(), model.weights_["pairwise"]
    ([1, 0, 1], array([0.]))
    """

    reads_once = True
    takes_table = False

    labels: Any = None
    pairwise: bool = parameter(switch, default=True)
    weak: float = parameter(not_negative, default=1.0)
    loss: str = parameter(choice("area", "overlap"), default="area")
    fit_intercept: bool = parameter(switch, default=True)
    standardise: bool = parameter(switch, default=True)
    scales: Any = None

    def read(self, X: Any) -> RegionGraphs:
        images = RegionGraphs.of(X)
        if not len(images):
            raise ValueError("X has 0 samples (images), a minimum of 1 is required")
        return images

    def check(self) -> None:
        super().check()
        check_listed(self.labels, "labels")
        if self.scales is not None and not self.standardise:
            raise ValueError("scales needs standardise=True; else multiply the features by them yourself")

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        k, d = len(schema.classes), schema.n_features
        n_pairs = schema.blocks.get("pairwise", (1,))
        check_blocks(schema, {"unary": (k, d)}, {"intercept": (k,), "pairwise": n_pairs})
        for name in ("mean", "scale", "factor") if self.standardise else ():
            learned: Any = schema.facts.get(name)
            if np.shape(learned) != (d,):
                raise ValueError(f"{name} of the {d} features is missing in the schema; fit again")

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        images = self.ensure_read(X)
        classes = read_tag_classes(self.labels, read_region_labels(y, images.lengths), images.offsets)
        k, d = len(classes), images.nodes.values.shape[1]
        read_limits(y, classes, len(images))
        read_allowed(y, classes, images.lengths)
        blocks: dict[str, tuple[int, ...]] = {"unary": (k, d)}
        if self.fit_intercept:
            blocks["intercept"] = (k,)
        if self.pairwise:
            blocks["pairwise"] = (images.edge_values.shape[1],)
        if not self.standardise:
            return Schema(classes, d, blocks)
        return Schema(classes, d, blocks, _standards(images.nodes.values) | {"factor": self._factors(d)})

    def lower_bounds(self, schema: Schema) -> dict[str, float]:
        """See `tacit.oracle.Problem.lower_bounds`: neighbours never prefer different labels."""
        return {"pairwise": 0.0} if "pairwise" in schema.blocks else {}

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> RegionOracle:
        images = self.ensure_read(X)
        self.check_schema(schema)
        d, q = images.nodes.values.shape[1], images.edge_values.shape[1]
        if d != schema.n_features:
            raise ValueError(f"X has {d} features, but Regions is expecting {schema.n_features} features as input")
        if "pairwise" in schema.blocks and len(images.edges) and schema.blocks["pairwise"] != (q,):
            raise ValueError(
                f"pairs of neighbours have {q} features, but Regions is expecting {schema.blocks['pairwise'][0]}"
            )
        if hidden is not None:
            raise ValueError("hidden must be None for Regions; write −1 (or None) for unknown labels in y")
        supervision: dict[str, Any] = {}
        if y is not None:
            tags, k = read_region_labels(y, images.lengths), len(schema.classes)
            found = find_labels(schema.classes, tags.values)
            labels = np.where(tags.missing, TARGET, np.where(found < 0, k, found))
            allowed = read_allowed(y, schema.classes, images.lengths)
            supervision = {
                "labels": labels,
                "limits": read_limits(y, schema.classes, len(images)),
                "allowed": allowed,
                "losses": region_losses(self.loss, labels, images.shares, images.offsets, k, allowed),
            }
        pairs = images.edge_values if len(images.edges) else np.zeros((0, *schema.blocks.get("pairwise", (1,))))
        weighted = self._multiply_by_area(images, schema)
        return RegionOracle(images, weighted, schema, pairs, loss=self.loss, weak=float(self.weak), **supervision)

    def _multiply_by_area(self, images: RegionGraphs, schema: Schema) -> Array:
        """The features of regions, and a constant with fit_intercept, times the share of the area."""
        table, constant = images.nodes.values, 1.0
        if self.standardise:
            mean, scale, factor = (np.asarray(schema.facts[name]) for name in ("mean", "scale", "factor"))
            table, constant = np.tanh((table - mean) / scale) * factor, float(np.linalg.norm(factor))
        if self.fit_intercept:
            table = np.hstack([table, np.full((len(table), 1), constant)])
        return np.asarray((table * images.shares[:, None]).astype(images.nodes.dtype))

    def _factors(self, d: int) -> Array:
        """The checked scales of all features."""
        if self.scales is None:
            return np.ones(d)
        factors = numbers("scales", self.scales, "one number from 0 per feature").astype(np.float64)
        if factors.shape != (d,):
            raise ValueError(f"scales must be {d} numbers, one per feature, got shape {factors.shape}")
        wrong = np.flatnonzero(~((factors >= 0) & (factors <= MAX_SCALE)))
        if wrong.size:
            raise ValueError(f"scales[{wrong[0]}] must be from 0 to {MAX_SCALE:g}, got {factors[wrong[0]]}")
        return factors

    def example(self, rng: np.random.Generator) -> Example:
        classes = np.array(["ground", "horse"] if self.labels is None else self.labels)
        k, d, q = len(classes), int(rng.integers(1, 3)), int(rng.integers(1, 3))
        graphs = []
        for size in rng.integers(1, 5 if k == 2 else 4, int(rng.integers(3, 5))):
            pairs = [pair for pair in itertools.combinations(range(size), 2) if rng.random() < 0.7]
            edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            values = rng.integers(-2, 3, (size, d)).astype(np.float64)
            areas = rng.integers(1, 4, size).astype(float)
            graphs.append(RegionGraph(values, areas, edges, rng.integers(0, 3, (len(pairs), q)).astype(float)))
        graphs[0] = graphs[0]._replace(edges=np.zeros((0, 2), dtype=np.int64), edge_values=np.zeros((0, q)))
        X = RegionGraphs.from_list(graphs)
        if len(X.edges) == 0:
            q = 1
        standards = _standards(X.nodes.values)
        position = {label: j for j, label in enumerate(classes.tolist())}

        def outputs(x: RegionGraph) -> list[tuple[Any, Any]]:
            return [(classes[list(own)], None) for own in itertools.product(range(k), repeat=len(x.values))]

        def joint_feature(x: RegionGraph, label: Any, h: Any) -> Array:
            unary, intercept, pairwise = np.zeros((k, d)), np.zeros(k), np.zeros(q)
            own = _codes(label, position)
            for row, area, j in zip(x.values, x.areas / x.areas.sum(), own, strict=True):
                scaled = np.tanh((row - standards["mean"]) / standards["scale"]) if self.standardise else row
                unary[j] += area * scaled
                intercept[j] += area * (np.sqrt(d) if self.standardise else 1.0)
            for (a, b), values in zip(x.edges, x.edge_values, strict=True):
                if own[a] != own[b]:
                    pairwise -= values
            parts = [unary.ravel()]
            if self.fit_intercept:
                parts.append(intercept)
            if self.pairwise:
                parts.append(pairwise)
            return np.concatenate(parts)

        def loss(true: Any, label: Any, h: Any) -> float:
            areas = next(
                x.areas / x.areas.sum() for i, x in enumerate(X) if y[i] is true or np.shares_memory(y[i], true)
            )
            table = region_losses(self.loss, _codes(true, position), areas, np.array([0, len(areas)]), k)
            return float(table[np.arange(len(areas)), _codes(label, position)].sum())

        y = Ragged(classes[rng.integers(0, k, int(X.offsets[-1]))], X.offsets)
        return Example(X, y, None, outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(labels=["ground", "horse"], standardise=False),
            cls(labels=[3, 1, 2], pairwise=False, fit_intercept=False, standardise=False),
            cls(labels=[3, 1, 2], loss="overlap", standardise=False),
        ]


def _codes(labels: Any, position: dict[Any, int]) -> Array:
    return np.array([position[label] for label in labels.tolist()])


def _standards(values: Array) -> dict[str, Array]:
    """Mean and standard deviation of every feature; 1 for the deviation of a constant feature."""
    mean, scale = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    return {"mean": mean, "scale": np.where(scale > 1e-9 * (1 + np.abs(mean)), scale, 1.0)}

"""Object detection by windows on feature maps: the problem and its oracle, which scores all windows of all images.

Pooling is linear: weights are applied to the cells, and the resulting maps are pooled (`tacit.vision.maps.pooling`).
With P pieces per window that takes O(cells·K·T·P·d + windows·K·T) per pass instead of O(windows·K·T·P·d), and never a
row of features per window.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.decomposition import PCA

from tacit.data.arrays import Array, Rows, checksum, is_table, span, states_of
from tacit.data.labels import read_classes
from tacit.data.parameters import shorten, whole_number
from tacit.data.specs import choice, estimator, optional, parameter, switch, whole
from tacit.oracle import EnumerableOracle, Example, LossTable, PairLoss, Schema
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.losses import Reference
from tacit.problems.classes.blocks import check_blocks
from tacit.problems.classes.problem import ClassProblem
from tacit.problems.row_sums import add_rows
from tacit.vision.boxes import nearest
from tacit.vision.maps.photo_maps import MapShards
from tacit.vision.maps.pooling import CONTRASTS, Pooling, plan_pooling, pool, pool_adjoint
from tacit.vision.maps.window_maps import WindowMaps, read_window_maps
from tacit.vision.window_types import WindowLoss, join_hidden, known_window, read_windows_and_types

MAX_PCA_CELLS = 60_000
"""Cells that principal components are learned from at most; every k-th cell is taken where there are more."""
CELLS_AT_A_TIME = 1 << 14
"""Cells that are reduced together."""


@estimator
class Detection(ClassProblem):
    """Weakly supervised object detection: an image has a label; the window and the type of the object are hidden.

    ``s(y, h) = a_y·g(x) + b_{y,t} + (u + v_{y,t})·φ(x, window)`` with ``h = (window, type)``. φ is what the window
    pools of a feature map (its contrast to the surroundings), and g is the mean of the map. u is shared by all classes
    and types, v belongs to one. Images come as `WindowMaps`, or from disk as `MapShards`. The hidden value is the
    position of the window, with several types the pair (window, type); −1 where one of them is unknown.
    O(cells·K·T·d + windows·K·T) per pass.

    Drawn boxes are known windows (`tacit.vision.boxes.nearest`). If all are drawn and the types are hidden, `LatentSVM`
    learns the types (Felzenszwalb et al. 2010); if the types are known too, `StructuredSVM` suffices.

    Parameters
    ----------
    contrast : "ring", "image" or None: what is pooled of a window, see `tacit.vision.maps.pooling`
    parts : pieces of a window across, and down, each with its own weights
    types : weight blocks per class, for kinds of an object that look different
    n_components : principal components of the cells to keep; None for the cells as they are
    shared : whether there is a term u that all classes and types share
    image_term : whether the whole image has a term a_y, which decides on labels together with the windows
    loss : "0/1", a cost matrix, or "overlap": 1 for a wrong label, and 1 − intersection over union (IoU) of the windows
        for the right one, whatever the type. Where the true window is unknown only the label counts
    classes : all labels; list the single label of problems in which only the window is predicted
    fit_intercept : whether every class and type has an intercept, penalised like the other weights

    >>> from tacit import LatentSVM
    >>> rng = np.random.default_rng(0)
    >>> maps = 0.1 * rng.random((20, 3, 4, 2))
    >>> y = np.arange(20) % 2
    >>> maps[np.arange(20), 1, np.arange(20) % 4, y] += 1  # the cell that shows the label
    >>> X = WindowMaps.of_maps(maps, sizes=[(40, 30)] * 20, stride=10, pixels=[(10, 10)], step=1.0)
    >>> model = LatentSVM(Detection(), C=100, n_init=3).fit(X, y)
    >>> bool((model.predict(X) == y).all()), X.boxes_as_bags.boxes[model.hidden_[0]]
    (True, array([ 0., 10., 10., 20.]))
    """

    hidden_losses = ("overlap",)
    min_classes = 1
    takes_table = False

    contrast: str | None = parameter(choice(*CONTRASTS), default="ring")
    parts: int = parameter(whole(1, 8), default=1)
    types: int = parameter(whole(1, 1000), default=1)
    n_components: int | None = parameter(optional(whole()), default=None)
    shared: bool = parameter(switch, default=False)
    image_term: bool = parameter(switch, default=False)
    loss: Any = "0/1"
    classes: Any = None
    fit_intercept: bool = True

    def check(self) -> None:
        super().check()
        if callable(self.loss):
            raise TypeError("loss of Detection must be '0/1', 'overlap' or a cost matrix, not a function")

    @property
    def hidden_kinds(self) -> tuple[str, ...]:
        return ("window",) if self.types == 1 else ("type", "window")

    def read(self, X: Any) -> WindowMaps | MapShards:
        if isinstance(X, MapShards):
            X.shards.verify()
            return X
        return read_window_maps(X)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        maps = self.ensure_read(X)
        classes = read_classes(self.classes, y, len(maps), self.min_classes)
        self.check_loss(classes)
        facts: dict[str, Any] = {}
        width = maps.values.shape[1]
        if self.n_components is not None:
            facts = self._learn_components(maps)
            width = int(self.n_components)
        k, t = len(classes), int(self.types)
        blocks = self._blocks(k, t, int(self.parts) ** 2, width)
        return Schema(classes, maps.values.shape[1], blocks, facts)

    def _blocks(self, k: int, t: int, pieces: int, width: int) -> dict[str, tuple[int, ...]]:
        blocks: dict[str, tuple[int, ...]] = {"window": (k, t, pieces, width)}
        if self.shared:
            blocks["shared"] = (pieces, width)
        if self.image_term:
            blocks["image"] = (k, width)
        if self.fit_intercept:
            blocks["intercept"] = (k, t)
        return blocks

    def _learn_components(self, maps: WindowMaps | MapShards) -> dict[str, Any]:
        kept = whole_number("n_components", self.n_components)
        cells, d = maps.values.shape
        if kept > min(cells, d):
            raise ValueError(f"n_components={kept} must be at most {min(cells, d)} for {cells} cells of {d} numbers")
        chosen = maps.values[np.arange(0, cells, max(1, -(-cells // MAX_PCA_CELLS)))]
        solver = "covariance_eigh" if len(chosen) > d else "full"
        pca = PCA(kept, svd_solver=solver).fit(chosen.astype(np.float64))
        return {"mean": pca.mean_, "components": pca.components_}

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        k, width = len(schema.classes), schema.n_features
        components, mean = schema.facts.get("components"), schema.facts.get("mean")
        if (components is None) != (self.n_components is None):
            raise ValueError(f"n_components={self.n_components} does not match the schema; fit again")
        if components is not None:
            fits = is_table(components, 2, "f") and is_table(mean, 1, "f") and mean.shape == (width,)  # type: ignore[union-attr]
            if not fits or components.shape != (self.n_components, width):
                raise ValueError("the principal components of the schema do not match its features; fit again")
            width = len(components)
        check_blocks(schema, self._blocks(k, int(self.types), int(self.parts) ** 2, width), {})
        self.check_loss(schema.classes)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> WindowScores:
        maps = self.ensure_read(X)
        self.check()
        self.check_schema(schema)
        if maps.values.shape[1] != schema.n_features:
            raise ValueError(
                f"X has {maps.values.shape[1]} features, but Detection is expecting {schema.n_features} features as "
                "input; make X with the feature maps of the fit"
            )
        maps = maps.with_values(self.reduce(maps.values, schema))
        offsets = maps.window_offsets * int(self.types)
        supervision = self.read_supervision(maps, y, schema, offsets, hidden)
        if "hidden_loss" in supervision and "hidden" in supervision and y is not None:
            window = known_window(supervision["hidden"], offsets, int(self.types))
            if (window >= 0).all():  # imputed types cannot change this loss: it is measured once
                loss, labels = supervision.pop("hidden_loss"), supervision["labels"]
                table = loss.table(len(schema.classes), offsets, labels, Reference(*supervision["hidden"]))
                supervision["losses"] = LossTable(table, None)
        return WindowScores(maps, schema, self.contrast, int(self.parts), **supervision)

    @staticmethod
    def reduce(values: Any, schema: Schema) -> Array:
        """The cells that weights apply to: their principal components, where the schema has some.

        ``values`` is an array, or the table of `MapShards`, which is read in blocks.
        """
        components = schema.facts.get("components")
        if components is None:
            return values if isinstance(values, np.ndarray) else np.concatenate(list(values.chunks()))
        mean = (components @ schema.facts["mean"]).astype(values.dtype)
        rotation = components.T.astype(values.dtype)
        reduced = np.empty((len(values), len(components)), values.dtype)
        for first in range(0, len(values), CELLS_AT_A_TIME):  # also in memory: other blocks round differently
            last = min(first + CELLS_AT_A_TIME, len(values))
            reduced[first:last] = values[first:last] @ rotation - mean
            if not isinstance(values, np.ndarray):
                values.release(slice(first, last))
        return reduced

    def known_hidden(self, hidden: Any, offsets: Array) -> KnownHidden:
        return read_windows_and_types(hidden, np.diff(offsets) // int(self.types), int(self.types))

    def hidden_loss(self, X: WindowMaps, offsets: Array) -> PairLoss:
        return WindowLoss(X.windows, X.window_offsets, int(self.types))

    def example(self, rng: np.random.Generator) -> Example:
        n, d, types, pieces = int(rng.integers(3, 6)), 2, int(self.types), int(self.parts) ** 2
        maps, windows, sizes = [], [], []
        for _ in range(n):
            rows, columns = rng.integers(2, 4, 2)
            maps.append(rng.standard_normal((rows, columns, d)))  # whole numbers would give ties but for rounding
            sizes.append((4 * columns, 4 * rows))
            count = int(rng.integers(1, 4))
            low, high = 0.4 * rng.random((count, 2)), 0.6 + 0.4 * rng.random((count, 2))
            windows.append(np.hstack([low, high]) * np.tile(sizes[-1], 2))
        X = WindowMaps.of_maps(maps, sizes, 4.0, windows)
        classes = np.array([1, 2, 7] if self.classes is None else self.classes)
        states = [(h, t) for h in range(3) for t in range(types)]
        hidden = [states[int(rng.integers(len(own) * types))] for own in windows]
        plain = self.specify(X, np.zeros(n, int), classes, rng)
        position = {label: k for k, label in enumerate(classes.tolist())}
        shape = (len(classes), types)

        def joint_feature(x: WindowMaps, label: Any, h: Any) -> Array:
            window, kind = (int(h), 0) if types == 1 else map(int, h)
            row = x.pool_windows(self.contrast, int(self.parts)).values[window].reshape(pieces, d)
            parts = {name: np.zeros(size) for name, size in self._blocks(*shape, pieces, d).items()}
            parts["window"][position[label], kind] = row
            if self.shared:
                parts["shared"][:] = row
            if self.image_term:
                parts["image"][position[label]] = x.means()[0]
            if self.fit_intercept:
                parts["intercept"][position[label], kind] = 1
            return np.concatenate([part.ravel() for part in parts.values()])

        def outputs(x: WindowMaps) -> list[tuple[Any, Any]]:
            values = [(h, t) for h in range(len(x.windows)) for t in range(types)]
            return [(label, h if types > 1 else h[0]) for label in classes.tolist() for h in values]

        known = np.array(hidden if types > 1 else [window for window, _ in hidden])
        return plain._replace(hidden=known, outputs=outputs, joint_feature=joint_feature)

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(),
            cls(contrast=None, parts=2, shared=True, image_term=True),
            cls(contrast="image", types=2, shared=True, fit_intercept=False),
        ]


def nearest_windows(maps: WindowMaps, boxes: Any) -> Array:
    """(n,) the window of every image with the highest overlap with a drawn box (n, 4); −1 where there is none.

    >>> maps = WindowMaps.of_maps([np.ones((3, 4, 2))], [(40, 30)], 10, windows=[[[0, 0, 20, 20], [20, 0, 40, 20]]])
    >>> nearest_windows(maps, [[22, 0, 40, 20]])
    array([1])
    """
    if not isinstance(maps, WindowMaps):
        raise TypeError(f"maps must be WindowMaps, got {shorten(maps)}")
    return nearest(maps.boxes_as_bags, boxes).hidden


class _Part(NamedTuple):
    """The maps and windows of some images."""

    table: Array
    cells: Array
    grids: Array
    plan: Pooling
    windows: Array
    means: Array


class WindowScores(EnumerableOracle):
    """The oracle of `Detection`; states of an image are its windows, each with every type.

    Parameters
    ----------
    maps : reduced maps and their windows
    schema : with the block window (K, T, P, d), and optionally shared (P, d), image (K, d) and intercept (K, T)
    contrast, parts : of the pooling
    supervision : as in `EnumerableOracle`
    """

    def __init__(self, maps: WindowMaps, schema: Schema, contrast: str | None, parts: int, **supervision: Any) -> None:
        self._types = self.n_outer = schema.blocks["window"][1]
        self.has_tied_blocks = self._types > 1
        self._table = np.ascontiguousarray(maps.values)
        self._means = maps.means()
        self._cells = maps.offsets
        self._grids = maps.grids
        self._windows = maps.window_offsets
        self._plan = plan_pooling(maps.windows, maps.window_offsets, maps.sizes, maps.strides, contrast, parts)
        self._blocks_of = schema.views
        self._names = set(schema.blocks)
        self._precision = self._table.dtype
        super().__init__(schema.classes, maps.window_offsets * self._types, schema.n_params, **supervision)

    def _part(self, rows: Rows) -> _Part:
        if rows is None:
            rows = slice(0, self.n_samples)
        if isinstance(rows, slice):
            first, last = span(rows, self.n_samples)
            cells, windows = self._cells[first : last + 1], self._windows[first : last + 1]
            return _Part(
                self._table[cells[0] : cells[-1]],
                cells,
                self._grids[first:last],
                self._plan.take(slice(windows[0], windows[-1])),
                windows,
                self._means[first:last],
            )
        index = np.asarray(rows)
        positions, cells = states_of(self._cells, index)
        chosen, windows = states_of(self._windows, index)
        table, plan = self._table[positions], self._plan.take(chosen)
        return _Part(table, cells, self._grids[index], plan, windows, self._means[index])

    def _window_weights(self, parts: dict[str, Array]) -> Array:
        """(P, K·T, d): the weights of every piece under every label and type."""
        weights = parts["window"]
        if "shared" in parts:
            weights = weights + parts["shared"]
        k, t, p, d = weights.shape
        return np.ascontiguousarray(weights.transpose(2, 0, 1, 3)).reshape(p, k * t, d)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        parts, own = self._blocks_of(w), self._part(rows)
        weights = self._window_weights(parts)
        pieces, channels, d = weights.shape
        maps = own.table @ weights.reshape(-1, d).T.astype(self._precision, copy=False)
        maps = maps.reshape(len(own.table), pieces, channels)
        pooled = pool(maps, own.cells, own.grids, own.plan, own.windows).reshape(-1, self.n_labels, self._types)
        if "intercept" in self._names:
            pooled += parts["intercept"]
        scores = np.ascontiguousarray(pooled.transpose(1, 0, 2)).reshape(self.n_labels, -1)
        if "image" in self._names:
            whole = parts["image"] @ own.means.T
            scores += np.repeat(whole, np.diff(own.windows) * self._types, axis=1)
        return scores

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        own = self._part(rows)
        values = V.reshape(self.n_labels, -1, self._types).transpose(1, 0, 2)
        cells = pool_adjoint(values.reshape(len(values), -1), own.cells, own.grids, own.plan, own.windows)
        sums = cells.reshape(len(cells), -1).T @ own.table
        out = self._pack(sums.reshape(cells.shape[1], self.n_labels, self._types, -1), values.sum(axis=0))
        if "image" in self._names:
            starts = (own.windows[:-1] - own.windows[0]) * self._types
            self._blocks_of(out)["image"][:] = np.add.reduceat(V, starts, axis=1) @ own.means
        return out

    def _pack(self, sums: Array, counts: Array) -> Array:
        """The flat weight-shaped vector of pooled sums (P, K, T, d) and of counts (K, T)."""
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        parts["window"][:] = sums.transpose(1, 2, 0, 3)
        if "shared" in parts:
            parts["shared"][:] = sums.sum(axis=(1, 2))
        if "intercept" in parts:
            parts["intercept"][:] = counts
        return out

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        own = self._part(rows)
        window, kind = np.divmod(states, self._types)
        plan = own.plan.take(own.windows[:-1] - own.windows[0] + window)
        n = len(labels)
        cells = pool_adjoint(coef[:, None], own.cells, own.grids, plan, np.arange(n + 1))[:, :, 0]
        cell, piece = np.nonzero(cells)
        block = np.repeat(labels * self._types + kind, np.diff(own.cells))[cell]
        pieces, blocks = cells.shape[1], self.n_labels * self._types
        sums = np.zeros((pieces * blocks, own.table.shape[1]))
        add_rows(own.table, piece * blocks + block, cell, cells[cell, piece], sums)
        counts = np.bincount(labels * self._types + kind, coef, minlength=blocks).reshape(self.n_labels, self._types)
        out = self._pack(sums.reshape(pieces, self.n_labels, self._types, -1), counts)
        if "image" in self._names:
            add_rows(own.means, labels, np.arange(n), coef, self._blocks_of(out)["image"])
        return out

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        if self._types > 1 and hidden is not None:
            counts = np.diff(self._windows) if rows is None else np.diff(self._windows)[rows]
            hidden = read_windows_and_types(hidden, counts, self._types).states
        return super().encode(labels, hidden, rows)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        labels, states = super().decode(code, rows)
        return labels, join_hidden(states, self._types)

    def existing(self, labels: Array, rows: Rows = None) -> None:
        return None  # every class has every window

    @property
    def operations(self) -> float:
        return float(self._table.shape[0]) * self.n_params

    def digest(self) -> str:
        return checksum(self._table, self._cells, self._plan.inner, self.offsets, *self.digest_arrays())

"""Any pairwise model: labels of the nodes of graphs, with weights of pairs of any sign, and hidden nodes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from tacit.data.arrays import Array, locate
from tacit.data.graphs import GraphLabels, GraphParts, Graphs
from tacit.data.labels import check_listed, find_labels, kind_of_label, read_listed
from tacit.data.parameters import entries, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, estimator, parameter, switch
from tacit.oracle import TARGET, Example, Problem, Schema
from tacit.oracle.losses import read_costs
from tacit.problems.chain.tags import Tags, read_tag_classes, read_tags
from tacit.problems.classes.blocks import check_blocks
from tacit.problems.graph.oracle import GraphOracle


@estimator
class Graph(Problem):
    """Labels of the nodes of graphs, ``s(y) = Σ_v w_{y_v}·x_v + Σ_{(u,v)} f_uv·W[y_u, y_v]`` (pairwise Markov field).

    ``X`` is a `tacit.Graphs`: features x per node, pairs of nodes as edges, features f per edge. ``y`` has a label per
    node. −1 (or None) is unknown, a set such as ``{"cat", "dog"}`` says which labels are possible; both are hidden, and
    `impute` chooses. `tacit.GraphLabels` also has labels that must occur somewhere in a graph. Nodes whose label is
    never known are hidden nodes.

    Inference is exact on graphs without cycles (dynamic programming), and for two labels whose pairs attract (minimum
    cut). Elsewhere it is a dual decomposition into chains, which gives an upper bound of the best score. Learners use
    the bound, so ``objective_`` is never too low, and ``gap_`` contains what inference leaves open
    (``inference_gap_``). O(nodes · K · d + edges · K²) per pass and sweep; K in place of K² with ``pairs="potts"``.

    Parameters
    ----------
    pairs : weights of pairs, of any sign: "potts", one per edge feature for equal labels; "symmetric", one per edge
        feature and unordered pair of labels; "directional", one per edge feature and ordered pair; None for none
    labels : all labels, where the training data may lack some; None for those of y, sorted
    label_sets : per type of node (``types`` of `tacit.Graphs`) the list of its labels; hidden nodes have states as
        labels. None where all nodes may have all labels
    loss : "hamming", the number of nodes with a wrong label, or a cost matrix ``loss[true, predicted]`` that is summed
        over nodes. Labels outside a set of possible ones are wrong; unknown labels cost nothing
    fit_intercept : whether each label has a weight of a constant feature, block "intercept"

    >>> from tacit import Graphs, StructuredSVM
    >>> X = Graphs.grids([[[[1.0], [0.2]], [[-0.3], [-1.0]]]] * 2)
    >>> model = StructuredSVM(Graph(pairs="potts"), C=100).fit(X, [["up", "up", "down", "down"]] * 2)
    >>> model.predict(X)[0].tolist(), model.gap_ < 0.01
    (['up', 'up', 'down', 'down'], True)
    """

    reads_once = True
    takes_table = False
    has_marginals = True

    pairs: str | None = parameter(choice("potts", "symmetric", "directional", None), default="symmetric")
    labels: Any = None
    label_sets: Any = None
    loss: Any = "hamming"
    fit_intercept: bool = parameter(switch, default=True)

    def read(self, X: Any) -> Graphs:
        graphs = Graphs.of(X)
        if not len(graphs):
            raise ValueError("X has 0 samples (graphs), a minimum of 1 is required")
        return graphs

    def check(self) -> None:
        super().check()
        check_listed(self.labels, "labels")
        if self.label_sets is not None:
            if self.labels is not None:
                raise ValueError("labels and label_sets exclude each other; list all labels in label_sets")
            self._label_sets()

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        k, d = len(schema.classes), schema.n_features
        found = schema.blocks.get("pairs")
        optional: dict[str, tuple[int, ...]] = {"intercept": (k,)}
        if found:
            optional["pairs"] = (found[0], *self._pair_shape(k))
        check_blocks(schema, {"unary": (k, d)}, optional)
        self._costs(schema.classes)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        graphs = self.ensure_read(X)
        labels = GraphLabels.of(y)
        classes = self._classes(labels, _read_node_labels(labels, graphs.lengths), graphs.offsets)
        self._costs(classes)
        self._possible(graphs, classes)
        k, d = len(classes), graphs.nodes.values.shape[1]
        blocks: dict[str, tuple[int, ...]] = {"unary": (k, d)}
        if self.fit_intercept:
            blocks["intercept"] = (k,)
        if self.pairs is not None:
            blocks["pairs"] = (graphs.edge_values.shape[1], *self._pair_shape(k))
        return Schema(classes, d, blocks)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> GraphOracle:
        graphs = self.ensure_read(X)
        self.check_schema(schema)
        d, q = graphs.nodes.values.shape[1], graphs.edge_values.shape[1]
        if d != schema.n_features:
            raise ValueError(f"X has {d} features, but Graph is expecting {schema.n_features} features as input")
        if "pairs" in schema.blocks and len(graphs.edges) and schema.blocks["pairs"][0] != q:
            raise ValueError(f"edges have {q} features, but Graph is expecting {schema.blocks['pairs'][0]}")
        if hidden is not None:
            raise ValueError("hidden must be None for Graph; write −1 (or None) for unknown labels in y")
        if "pairs" in schema.blocks and not len(graphs.edges):
            graphs = graphs[:]
            graphs.edge_values = np.zeros((0, schema.blocks["pairs"][0]))
        possible = self._possible(graphs, schema.classes)
        supervision = {} if y is None else self._supervision(GraphLabels.of(y), graphs, schema.classes, possible)
        table = graphs.nodes.values
        if "intercept" in schema.blocks:
            table = np.hstack([table, np.ones((len(table), 1), dtype=table.dtype)])
        return GraphOracle(graphs, table, schema, possible, **supervision)

    def _supervision(self, y: GraphLabels, graphs: Graphs, classes: Array, possible: Array) -> dict[str, Any]:
        """What is known of the labels, checked, and the losses."""
        tags, k = _read_node_labels(y, graphs.lengths), len(classes)
        found = find_labels(classes, tags.values)
        labels = np.where(tags.missing, TARGET, np.where(found < 0, k, found))
        is_known = (labels >= 0) & (labels < k)
        wrong = np.flatnonzero(is_known & ~possible[graphs.types, np.where(is_known, labels, 0)])
        if wrong.size:
            i, v = locate(graphs.offsets, wrong[0])
            kind = int(graphs.types[wrong[0]])
            raise ValueError(
                f"node {v} of graph {i} has the label {shorten(classes[labels[wrong[0]]].item())}, which is not among "
                f"label_sets[{kind}] of its type; correct the label or the type"
            )
        costs = self._costs(classes)
        losses = np.zeros((labels.size, k))
        losses[is_known] = costs[labels[is_known]]
        losses[labels == k] = 1.0
        allowed = None
        if (y.set_of >= 0).any():
            members = np.array([self._members(own, classes) for own in y.sets])
            allowed = np.ones((labels.size, k), dtype=bool)
            has_set = y.set_of >= 0
            allowed[has_set] = members[y.set_of[has_set]]
            nothing = np.flatnonzero(~(allowed & possible[graphs.types]).any(axis=1))
            if nothing.size:
                i, v = locate(graphs.offsets, nothing[0])
                raise ValueError(
                    f"no label of the set of node {v} of graph {i} is possible: it has "
                    f"{shorten(y.sets[y.set_of[nothing[0]]])}, of its type are "
                    f"{shorten(classes[possible[graphs.types[nothing[0]]]].tolist())}"
                )
            nearest = np.array([costs[own].min(axis=0) for own in members])
            losses[has_set] = nearest[y.set_of[has_set]]
        present = None
        if any(y.present):
            present = np.array([self._members(own, classes) for own in y.present])
            self._refuse_absent(present, labels, graphs, possible, allowed, classes)
        return {"labels": labels, "allowed": allowed, "present": present, "losses": losses}

    def _members(self, own: Any, classes: Array) -> Array:
        """Which labels a set has; refuses others."""
        mask = np.zeros(len(classes), dtype=bool)
        for label in own:
            at = find_labels(classes, np.array([label]))[0] if kind_of_label(label) else -1
            if at < 0:
                raise ValueError(
                    f"a set of labels of y has {shorten(label)}, which is not among {shorten(classes.tolist())}; "
                    "list it in labels=[...]"
                )
            mask[at] = True
        return mask

    def _refuse_absent(
        self, present: Array, labels: Array, graphs: Graphs, possible: Array, allowed: Array | None, classes: Array
    ) -> None:
        """Refuse labels that must occur, and cannot."""
        able = possible[graphs.types].copy()
        if allowed is not None:
            able &= allowed
        able = np.where((labels >= 0)[:, None], labels[:, None] == np.arange(len(classes)), able)
        missing = np.argwhere(present & ~np.logical_or.reduceat(able, graphs.offsets[:-1]))
        if missing.size:
            i, x = missing[0]
            raise ValueError(f"label {classes[x]} must occur in graph {i}, but none of its nodes may have it")
        counts = np.add.reduceat(able, graphs.offsets[:-1])
        for i in np.flatnonzero((present & (counts < present.sum(axis=1)[:, None])).any(axis=1)):
            held = np.flatnonzero(present[i])
            own = able[graphs.offsets[i] : graphs.offsets[i + 1], held]
            if np.count_nonzero(maximum_bipartite_matching(csr_array(own)) >= 0) < held.size:
                raise ValueError(
                    f"labels {shorten(classes[held].tolist())} must occur in graph {i}, but the nodes that may have "
                    "them are too few; give one node per label"
                )

    def _label_sets(self) -> list[Array]:
        sets = entries("label_sets", self.label_sets, "a list of labels per type of node")
        if not sets:
            raise ValueError("label_sets must have the labels of at least one type of node, got an empty list")
        return [read_listed(own, "labels", least=1) for own in sets]

    def _classes(self, y: GraphLabels, tags: Tags, offsets: Array) -> Array:
        listed = self.labels
        named = [*itertools.chain.from_iterable(y.sets), *itertools.chain.from_iterable(y.present)]
        if self.label_sets is not None:
            listed = list(dict.fromkeys(itertools.chain.from_iterable(own.tolist() for own in self._label_sets())))
        elif listed is None and named:
            known = {*tags.values[~tags.missing].tolist(), *named}
            if len({isinstance(label, str) for label in known}) > 1:
                raise ValueError(f"labels of y must be all numbers or all text, got {shorten(sorted(known, key=repr))}")
            listed = sorted(known)
        with _in_words_of_graphs():
            return read_tag_classes(listed, tags, offsets)

    def _possible(self, graphs: Graphs, classes: Array) -> Array:
        """(types, K): which labels the nodes of each type may have."""
        n_types = int(graphs.types.max(initial=0)) + 1
        if self.label_sets is None:
            if n_types > 1:
                raise ValueError(f"X has nodes of {n_types} types; give label_sets=[...], the labels of each")
            return np.ones((1, len(classes)), dtype=bool)
        sets = self._label_sets()
        if n_types > len(sets):
            raise ValueError(f"X has nodes of type {n_types - 1}, but label_sets has {len(sets)} types")
        return np.array([np.isin(classes, own) for own in sets])

    def _pair_shape(self, k: int) -> tuple[int, ...]:
        return {"potts": (), "symmetric": (k * (k + 1) // 2,), "directional": (k, k)}.get(self.pairs or "potts", ())

    def _costs(self, classes: Array) -> Array:
        if isinstance(self.loss, str) and self.loss != "hamming":
            raise ValueError(f"loss must be 'hamming' or a cost matrix, got {shorten(self.loss)}")
        return read_costs("0/1" if isinstance(self.loss, str) else self.loss, classes)

    def example(self, rng: np.random.Generator) -> Example:
        sets = None if self.label_sets is None else self._label_sets()
        classes = np.array(["ant", "bee", "cat"] if self.labels is None else self.labels)
        if sets is not None:
            classes = np.array(list(dict.fromkeys(itertools.chain.from_iterable(own.tolist() for own in sets))))
        k, d, q = len(classes), int(rng.integers(1, 3)), int(rng.integers(1, 3))
        costs, parts = self._costs(classes), []
        for size in rng.integers(1, 4, int(rng.integers(3, 5))):
            edges = [
                (v, int(rng.integers(v))) if rng.random() < 0.5 else (int(rng.integers(v)), v)
                for v in range(1, size)
                if rng.random() < 0.8
            ]
            values = rng.integers(-2, 3, (size, d)).astype(np.float64)
            kinds = rng.integers(0, 1 if sets is None else len(sets), size)
            table = np.array(edges, dtype=np.int64).reshape(-1, 2)
            parts.append((values, table, rng.integers(-1, 2, (len(edges), q)).astype(float), kinds))
        X = Graphs.from_list(parts)
        q = X.edge_values.shape[1]
        possible = self._possible(X, classes)
        index = {label: j for j, label in enumerate(classes.tolist())}

        def outputs(x: GraphParts) -> list[tuple[Any, Any]]:
            own = [np.flatnonzero(possible[kind]) for kind in x.types]
            return [(classes[list(labels)], None) for labels in itertools.product(*own)]

        def joint_feature(x: GraphParts, label: Any, h: Any) -> Array:
            unary, intercept, pairs = np.zeros((k, d)), np.zeros(k), np.zeros((q, k, k))
            own = [index[one] for one in label.tolist()]
            for row, j in zip(x.values, own, strict=True):
                unary[j] += row
                intercept[j] += 1
            for (a, b), values in zip(x.edges, x.edge_values, strict=True):
                pairs[:, own[a], own[b]] += values
            features = [unary.ravel()]
            if self.fit_intercept:
                features.append(intercept)
            if self.pairs == "potts":
                features.append(np.trace(pairs, axis1=1, axis2=2))
            elif self.pairs == "symmetric":
                low, high = np.triu_indices(k)
                features.append((pairs + pairs.transpose(0, 2, 1) - pairs * np.eye(k))[:, low, high].ravel())
            elif self.pairs == "directional":
                features.append(pairs.ravel())
            return np.concatenate(features)

        def loss(true: Any, label: Any, h: Any) -> float:
            return float(sum(costs[index[a], index[b]] for a, b in zip(true.tolist(), label.tolist(), strict=True)))

        flat = [int(rng.choice(np.flatnonzero(possible[kind]))) for kind in X.types]
        if self.labels is None and sets is None:  # all labels must occur, or the schema would have fewer
            flat[:k] = rng.permutation(k).tolist()
        return Example(X, Ragged(classes[flat], X.offsets), None, outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(pairs="potts", labels=["ant", "bee", "cat"]),
            cls(pairs="symmetric", labels=[3, 1, 2], fit_intercept=False),
            cls(pairs="directional", labels=["ant", "bee"], loss=[[0, 2], [1, 0]]),
            cls(pairs="directional", label_sets=[["ant", "bee"], ["hill", "hive", "web"]]),
            cls(pairs=None, labels=["ant", "bee", "cat"]),
        ]


def _read_node_labels(y: GraphLabels, lengths: Array) -> Tags:
    """One label per node, and which are missing."""
    with _in_words_of_graphs():
        return read_tags(y.labels, lengths)


@contextlib.contextmanager
def _in_words_of_graphs() -> Iterator[None]:
    """Errors of readers of sequences, with the words graph, node and label."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        for word, ours in (("token", "node"), ("sequence", "graph"), ("tag", "label")):
            message = message.replace(word, ours)
        raise ValueError(message) from error

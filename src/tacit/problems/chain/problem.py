"""Sequence tagging by first-order chains: a tag for every token of a sequence, missing tags allowed."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.labels import check_listed, find_labels, kind_of_label
from tacit.data.parameters import has_length, is_list, shorten
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.shards import Shards, read_shards
from tacit.data.specs import estimator, parameter, switch
from tacit.oracle import TARGET, Example, LossTable, Problem, Schema
from tacit.oracle.losses import read_costs
from tacit.problems.chain.oracle import ChainOracle
from tacit.problems.chain.tags import States, check_states, read_counts, read_states, read_tag_classes, read_tags
from tacit.problems.classes.blocks import check_blocks


@estimator
class Chain(Problem):
    """Sequence tagging, ``s(y) = Σ_t w_{y_t}·x_t + Σ_t T[y_{t−1}, y_t]`` (Taskar et al. 2003; Lafferty et al. 2001).

    For part-of-speech tagging, named entities and the like. ``X`` holds one table of token features per sequence, dense
    or sparse: a list of arrays, a `tacit.Ragged`, ... ``y`` holds one tag per token: lists of numbers or strings, or a
    Ragged. A tag that is −1, None or NaN is missing: it is hidden, costs nothing, and `impute` fills it in.
    O(tokens · K · (d + K)) per pass.

    Parameters
    ----------
    loss : "hamming" (the number of wrong tags), or a cost matrix ``loss[true, predicted]`` that is summed over tokens
    classes : all tags, where the training data may lack some; None takes those of y, sorted
    fit_intercept : whether each tag has an intercept, the weight of a constant feature; block "intercept"
    boundaries : whether the first and the last tag of a sequence have weights of their own, blocks "start" and "stop"
    forbidden : pairs of tags (first, second) that never follow each other, such as ("O", "I")
    states : hidden states below each tag: one number for all tags, or a number by tag (1 where none is given). Scores
        and weights are then those of states; losses still compare tags. A hidden value is a row of the weights, the
        states of the first tag coming first; `fit` takes known ones as ``hidden``, one per token, −1 where unknown
        (Morency, Quattoni & Darrell 2007)

    >>> from tacit import StructuredSVM
    >>> X = [[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]]]
    >>> model = StructuredSVM(Chain(), C=100).fit(X, [["a", "a", "b"], ["b", "b"], ["a"]])
    >>> model.predict(X)[0].tolist(), model.weights_["transition"].shape
    (['a', 'a', 'b'], (2, 2))
    """

    reads_once = True
    takes_table = False
    has_marginals = True
    takes_shards = True

    loss: Any = "hamming"
    classes: Any = None
    fit_intercept: bool = parameter(switch, default=False)
    boundaries: bool = parameter(switch, default=False)
    forbidden: Any = None
    states: Any = 1

    def read(self, X: Any) -> Any:
        if isinstance(X, Shards):
            return read_shards(X, "sequence", "token")
        return read_ragged(X, "sequence", "token")

    def check(self) -> None:
        super().check()
        check_listed(self.classes, "tags")
        check_states(self.states)

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        k = self._states(schema.classes).n
        check_blocks(
            schema,
            {"emission": (k, schema.n_features), "transition": (k, k)},
            {"intercept": (k,), "start": (k,), "stop": (k,)},
        )
        self._costs(schema.classes)
        self._allowed_pairs(schema.classes)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        sequences = self.ensure_read(X)
        classes = read_tag_classes(self.classes, read_tags(y, sequences.lengths), sequences.offsets)
        self._costs(classes)
        self._allowed_pairs(classes)
        states = self._states(classes)
        k, counts = states.n, states.counts
        blocks: dict[str, tuple[int, ...]] = {"emission": (k, sequences.values.shape[1]), "transition": (k, k)}
        if self.fit_intercept:
            blocks["intercept"] = (k,)
        if self.boundaries:
            blocks |= {"start": (k,), "stop": (k,)}
        has_table = not states.are_tags and bool((counts == counts[0]).all())
        facts = {"states": np.arange(counts[0])} if has_table else {}
        return Schema(classes, sequences.values.shape[1], blocks, facts)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> ChainOracle:
        sequences = self.ensure_read(X)
        self.check_schema(schema)
        d = sequences.values.shape[1]
        if d != schema.n_features:
            raise ValueError(f"X has {d} features, but Chain is expecting {schema.n_features} features as input")
        states = self._states(schema.classes)
        if hidden is not None and states.are_tags:
            raise ValueError("hidden= needs Chain(states=...); for missing tags, write -1 or None in y")
        allowed = self._allowed_pairs(schema.classes, int(sequences.lengths.max()))
        allowed = np.ascontiguousarray(allowed[states.tag_of][:, states.tag_of])
        supervision: dict[str, Any] = {"states": states}
        if y is not None:
            tags = read_tags(y, sequences.lengths)
            found = find_labels(schema.classes, tags.values)
            supervision["labels"] = np.where(tags.missing, TARGET, np.where(found < 0, len(schema.classes), found))
            losses = self._losses(schema.classes, supervision["labels"], sequences.offsets)
            supervision["losses"] = LossTable(losses.table[states.tag_of], losses.column)
            if hidden is not None:
                labels = supervision["labels"]
                supervision["known_states"] = read_states(hidden, states, labels, sequences.offsets)
        return ChainOracle(sequences, schema, allowed=allowed, **supervision)

    def example(self, rng: np.random.Generator) -> Example:
        classes = np.array(["ant", "bee", "cat"] if self.classes is None else self.classes)
        d = int(rng.integers(1, 3))
        lengths = rng.integers(1, 4, int(rng.integers(3, 5)))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        values = rng.integers(-2, 3, (offsets[-1], d)).astype(rng.choice(["float64", "float32"]))
        costs, allowed = self._costs(classes), self._allowed_pairs(classes)
        states = self._states(classes)
        n, tag_of = states.n, states.tag_of
        index = {label: j for j, label in enumerate(classes.tolist())}

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            paths = [
                list(path)
                for path in itertools.product(range(n), repeat=len(x))
                if all(allowed[tag_of[a], tag_of[b]] for a, b in itertools.pairwise(path))
            ]
            return [(classes[tag_of[path]], None if states.are_tags else np.array(path)) for path in paths]

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            emission, transition = np.zeros((n, np.shape(x)[1])), np.zeros((n, n))
            path = [index[tag] for tag in label.tolist()] if h is None else h.tolist()
            for token, j in zip(np.asarray(x), path, strict=True):
                emission[j] += token
            for a, b in itertools.pairwise(path):
                transition[a, b] += 1
            parts: list[Array] = [emission.ravel(), transition.ravel()]
            if self.fit_intercept:
                parts.append(np.bincount(path, minlength=n))
            if self.boundaries:
                parts += [np.eye(n)[path[0]], np.eye(n)[path[-1]]]
            return np.concatenate(parts)

        def loss(true: Any, label: Any, h: Any) -> float:
            return float(sum(costs[index[a], index[b]] for a, b in zip(true.tolist(), label.tolist(), strict=True)))

        X = Ragged(values, offsets)
        paths = [outputs(x) for x in X]
        is_whole = False
        while not is_whole:  # tags that are not given as classes must all occur, or the schema would have fewer
            chosen = [path[int(rng.integers(len(path)))] for path in paths]
            y = Ragged(np.concatenate([tags for tags, _ in chosen]), offsets)
            is_whole = self.classes is not None or len(np.unique(y.values)) == len(classes)
        hidden = None if states.are_tags else Ragged(np.concatenate([h for _, h in chosen]), offsets)
        return Example(X, y, hidden, outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        costs = [[0, 1, 3], [2, 0, 0.5], [1, 1, 0]]
        return [
            cls(classes=["ant", "bee", "cat"]),
            cls(loss=costs, classes=["cat", "ant", "bee"], fit_intercept=True, boundaries=True),
            cls(classes=[3, 1, 2], forbidden=[(1, 2), (3, 3)]),
            cls(classes=["ant", "bee"], states=2, fit_intercept=True, boundaries=True),
            cls(classes=["ant", "bee", "cat"], states={"bee": 2}, forbidden=[("ant", "bee")]),
        ]

    def _states(self, classes: Array) -> States:
        return States(read_counts(self.states, classes))

    def _costs(self, classes: Array) -> Array:
        if isinstance(self.loss, str) and self.loss != "hamming":
            raise ValueError(f"loss must be 'hamming' or a cost matrix, got {shorten(self.loss)}")
        return read_costs("0/1" if isinstance(self.loss, str) else self.loss, classes)

    def _losses(self, classes: Array, labels: Array, offsets: Array) -> LossTable:
        """Columns: the true tags, then "never seen in training" (always wrong), then "missing" (costs nothing)."""
        k = len(classes)
        if not isinstance(self.loss, str) and (labels == k).any():
            i, t = locate(offsets, int(np.argmax(labels == k)))
            remedy = f"list all tags in classes=[...], not only {shorten(classes.tolist())}"
            raise ValueError(f"y[{i}][{t}] is a tag that is not in the training data, nor in the cost matrix; {remedy}")
        table = np.hstack([self._costs(classes).T, np.ones((k, 1)), np.zeros((k, 1))])
        return LossTable(table, np.where(labels == TARGET, k + 1, labels))

    def _allowed_pairs(self, classes: Array, longest: int = 1) -> Array:
        """``allowed[first, second]``; refuses pairs that leave no tagging of the longest sequence."""
        k = len(classes)
        allowed = np.ones((k, k), dtype=bool)
        if self.forbidden is not None and (isinstance(self.forbidden, str) or not has_length(self.forbidden)):
            raise ValueError(f"forbidden must list pairs of tags (first, second), got {shorten(self.forbidden)}")
        tags = classes.tolist()
        for pair in self.forbidden if self.forbidden is not None else ():
            if not isinstance(pair, list | tuple | np.ndarray) or not is_list(pair) or len(pair) != 2:
                raise ValueError(f"forbidden must list pairs of tags (first, second), got {shorten(pair)}")
            if any(not kind_of_label(tag) or tag not in tags for tag in pair):
                raise ValueError(f"forbidden has the pair {shorten(pair)}, but the tags are {shorten(tags)}")
            allowed[tags.index(pair[0]), tags.index(pair[1])] = False
        reached = np.ones(k, dtype=bool)
        for t in range(1, min(longest, k + 1)):  # a path of more than k tags has a cycle, so it can go on
            reached = np.asarray((reached[:, None] & allowed).any(axis=0))
            if not reached.any():
                pairs = shorten(self.forbidden)
                raise ValueError(f"forbidden={pairs} rules out all sequences of {t + 1} tags; allow more pairs")
        return allowed

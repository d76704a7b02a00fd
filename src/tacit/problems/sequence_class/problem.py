"""Sequence classification: one label over a hidden chain of states."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_labels, read_classes, read_labels
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.shards import Shards, read_shards
from tacit.data.specs import choice, estimator, parameter, switch, whole
from tacit.oracle import Example, Schema
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.losses import class_losses, read_costs
from tacit.problems.classes.blocks import check_blocks
from tacit.problems.classes.problem import ClassProblem
from tacit.problems.sequence_class.oracle import PathOracle
from tacit.problems.sequence_class.packed import Topology, read_path

MAX_STATES = 1024
"""States per label: inference takes their square per token."""


@estimator
class SequenceClass(ClassProblem):
    """One label per sequence, and a hidden state per token: ``s(y, h) = Σ_t w_{y,h_t}·x_t + Σ_t T_y[h_{t−1}, h_t]``.

    For gestures, actions, spoken words and other signals whose phases are not labelled (Quattoni et al. 2007; Yu &
    Joachims 2009). ``X`` holds one table of features per sequence, a row per token or frame: a list of arrays, a
    `tacit.Ragged`, ... ``y`` holds one label per sequence. Every label has its own states, unless they are tied.

    Parameters
    ----------
    states : hidden states per label
    topology : "ergodic", where any state may follow any other, or "left-to-right", where a path begins in the first
        state, ends in the last, and never goes back
    skips : states that a left-to-right path may pass over in one step
    tied : whether all labels share the emission weights of their states; transitions stay those of the label
    loss : "0/1", or a cost matrix ``loss[true, predicted]``
    classes : all labels, where the training data may lack some; None takes those of y, sorted
    fit_intercept : whether each state of a label has an intercept, block "intercept"
    boundaries : whether the first and the last state of a path have weights of their own, blocks "start" and "stop"

    >>> from tacit import LatentSVM
    >>> up, down = [[0.0], [0.0], [1.0], [1.0]], [[1.0], [1.0], [0.0]]
    >>> model = LatentSVM(SequenceClass(states=2, topology="left-to-right"), C=100).fit([up, down], ["up", "down"])
    >>> model.predict([down, up]).tolist(), model.predict_hidden([up])[0].tolist()
    (['down', 'up'], [0, 0, 1, 1])
    """

    takes_table = False
    takes_shards = True

    states: int = parameter(whole(1, MAX_STATES), default=2)
    topology: str = parameter(choice("ergodic", "left-to-right"), default="ergodic")
    skips: int = parameter(whole(0, MAX_STATES), default=0)
    tied: bool = parameter(switch, default=False)
    loss: Any = "0/1"
    classes: Any = None
    fit_intercept: bool = True
    boundaries: bool = parameter(switch, default=False)

    def read(self, X: Any) -> Any:
        if isinstance(X, Shards):
            return read_shards(X, "sequence", "token")
        return read_ragged(X, "sequence", "token")

    def check(self) -> None:
        super().check()
        if self.skips and self.topology == "ergodic":
            raise ValueError(f"skips={self.skips} needs topology='left-to-right': in 'ergodic' any state may follow")

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        size, k, d = len(schema.classes), int(self.states), schema.n_features
        needed: dict[str, tuple[int, ...]] = {
            "emission": (k, d) if self.tied else (size, k, d),
            "transition": (size, k, k),
        }
        check_blocks(schema, needed, dict.fromkeys(("intercept", "start", "stop"), (size, k)))
        self.check_loss(schema.classes)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        sequences = self.ensure_read(X)
        classes = read_classes(self.classes, y, sequences.offsets.size - 1)
        self.check_loss(classes)
        size, k, d = len(classes), int(self.states), sequences.values.shape[1]
        blocks: dict[str, tuple[int, ...]] = {
            "emission": (k, d) if self.tied else (size, k, d),
            "transition": (size, k, k),
        }
        names = ["intercept"] * self.fit_intercept + ["start", "stop"] * self.boundaries
        facts = {} if self.tied else {"states": np.arange(k)}
        return Schema(classes, d, blocks | dict.fromkeys(names, (size, k)), facts)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> PathOracle:
        sequences = self.ensure_read(X)
        self.check_schema(schema)
        d = sequences.values.shape[1]
        if d != schema.n_features:
            raise ValueError(
                f"X has {d} features, but SequenceClass is expecting {schema.n_features} features as input"
            )
        self._check_lengths(sequences.lengths)
        supervision: dict[str, Any] = {}
        if hidden is not None:
            supervision["known_states"] = self._known_states(hidden, sequences.offsets)
        if y is not None:
            found = find_labels(schema.classes, read_labels(y, sequences.offsets.size - 1))
            supervision["labels"] = np.where(found < 0, len(schema.classes), found)
            supervision["losses"] = class_losses(self.loss, schema.classes, supervision["labels"])
        return PathOracle(sequences, schema, topology=self.paths(), **supervision)

    def paths(self) -> Topology:
        """Which paths of states exist."""
        k = int(self.states)
        if self.topology == "ergodic":
            return Topology(np.ones((k, k), dtype=bool), np.ones(k, dtype=bool), np.ones(k, dtype=bool))
        step = np.arange(k)[None, :] - np.arange(k)[:, None]
        return Topology((step >= 0) & (step <= 1 + int(self.skips)), np.arange(k) == 0, np.arange(k) == k - 1)

    def known_hidden(self, hidden: Any, offsets: Array) -> KnownHidden:
        raise NotImplementedError

    @property
    def _least(self) -> int:
        """The tokens of the shortest path."""
        if self.topology == "ergodic":
            return 1
        return 1 - (1 - int(self.states)) // (1 + int(self.skips))

    def _check_lengths(self, lengths: Array) -> None:
        """Refuse sequences that are too short to pass all states from left to right."""
        least = self._least
        if (lengths < least).any():
            i = int(np.argmax(lengths < least))
            raise ValueError(
                f"X[{i}] has {lengths[i]} tokens, but a left-to-right path through {self.states} states with "
                f"skips={self.skips} has at least {least}; use fewer states, more skips, or leave the sequence out"
            )

    def _known_states(self, hidden: Any, offsets: Array) -> Array:
        """The known states of all tokens, checked: some path must agree with them."""
        known = read_path(hidden, np.diff(offsets), int(self.states))
        pairs, first, last = self.paths()
        for i, (a, b) in enumerate(itertools.pairwise(offsets.tolist())):
            own = known[a:b]
            reached = first & _agrees(own[0], int(self.states))
            for state in own[1:]:
                reached = (reached[:, None] & pairs).any(axis=0) & _agrees(state, int(self.states))
            if not (reached & last).any():
                raise ValueError(
                    f"hidden[{i}] has no path with topology={self.topology!r} and skips={self.skips}; correct the "
                    "states, or write −1 where they are unknown"
                )
        return known

    def example(self, rng: np.random.Generator) -> Example:
        classes = np.array(["down", "up"] if self.classes is None else self.classes)
        d, k = int(rng.integers(1, 3)), int(self.states)
        lengths = rng.integers(self._least, self._least + 3, int(rng.integers(3, 5)))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        X = Ragged(rng.integers(-2, 3, (offsets[-1], d)).astype(rng.choice(["float64", "float32"])), offsets)
        y = np.concatenate([classes, rng.choice(classes, lengths.size)])[: lengths.size]
        costs, index = read_costs(self.loss, classes), {label: j for j, label in enumerate(classes.tolist())}
        pairs, first, last = self.paths()

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            paths = [
                np.array(path)
                for path in itertools.product(range(k), repeat=len(x))
                if first[path[0]] and last[path[-1]] and all(pairs[a, b] for a, b in itertools.pairwise(path))
            ]
            return [(label, path) for label in classes.tolist() for path in paths]

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            own, size, path = index[label], len(classes), h.tolist()
            emission, transition = np.zeros((size, k, d)), np.zeros((size, k, k))
            for token, state in zip(np.asarray(x), path, strict=True):
                emission[own, state] += token
            for a, b in itertools.pairwise(path):
                transition[own, a, b] += 1
            parts: list[Array] = [(emission.sum(axis=0) if self.tied else emission).ravel(), transition.ravel()]
            counts = {"intercept": path} if self.fit_intercept else {}
            counts |= {"start": path[:1], "stop": path[-1:]} if self.boundaries else {}
            for states in counts.values():
                table = np.zeros((size, k))
                np.add.at(table[own], states, 1)
                parts.append(table.ravel())
            return np.concatenate(parts)

        def loss(true: Any, label: Any, h: Any) -> float:
            return float(costs[index[true], index[label]])

        chosen = [[h for label, h in outputs(x) if label == own] for x, own in zip(X, y.tolist(), strict=True)]
        hidden = Ragged(np.concatenate([paths[int(rng.integers(len(paths)))] for paths in chosen]), offsets)
        return Example(X, y, hidden, outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(),
            cls(states=3, topology="left-to-right", skips=1, boundaries=True, fit_intercept=False),
            cls(states=2, tied=True, loss=[[0, 1, 2], [2, 0, 1], [1, 1, 0]], classes=[3, 1, 2]),
        ]


def _agrees(state: int, k: int) -> Array:
    return np.ones(k, dtype=bool) if state < 0 else np.arange(k) == state

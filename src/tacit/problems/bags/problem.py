"""Multiple-instance learning under the rules of the field: which instances make a bag positive."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_labels, kind_of_label
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import between, choice, estimator, parameter
from tacit.oracle import Example, Oracle, Problem, Schema
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.losses import read_costs
from tacit.problems.bags.instances import Bounds, InstancesOracle
from tacit.problems.bags.witness import WitnessOracle, read_witnesses
from tacit.problems.candidates import Candidates
from tacit.problems.classes.blocks import check_blocks

RULES = ("witness", "instances", "both")


@estimator
class Bags(Candidates):
    """Bags of instances with one label per bag: multiple-instance learning.

    One class is the background (the negative class), the others have positive instances. The rule says which:

    - "witness": one instance carries the class, ``s(y, h) = w_y·x_h + b_y``, and the background has none, ``s = 0``.
      With `tacit.LatentSVM` and two classes it is MI-SVM (Andrews, Tsochantaridis & Hofmann 2003). The hidden value is
      the position of the witness, −1 for the background.
    - "instances": every instance has a hidden label, at least one is positive, ``s(y, h) = Σ_{j∈h} (w_y·x_j + b_y)``.
      With `tacit.LatentSVM` it is the structured form of mi-SVM, with one slack per bag. With `tacit.HiddenCRF` it is
      the noisy-or model, ``p(background) = Π_j 1 / (1 + exp s_j)`` (Maron & Lozano-Pérez 1998). The hidden value is the
      list of positive instances. O(n log n) more per bag of n instances.
    - "both": one instance carries the label, whichever it is, as in `Candidates`.

    Bags come in the forms that `Candidates` takes. Several labels per bag are one problem per label: their objective is
    a sum over labels, and `tacit.BagClassifier` fits them so. O(rows·K·d) per pass.

    Parameters
    ----------
    rule : see above
    background : the class without positive instances; None takes the first class. It comes first in `classes_`
    min_share, max_share : of rule "instances": bounds on the share of positive instances of a bag that is not
        background, at least one. With bounds there are maxima but not sums
    loss : "0/1" or a cost matrix ``loss[true, predicted]`` in the order of the classes, the background first
    classes : all labels, where the training data may lack some; None takes those of y, sorted
    fit_intercept : whether each class has an intercept, penalised like the other weights

    >>> from tacit import LatentSVM
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0]], [[6.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [0.0, 1.0]]]
    >>> model = LatentSVM(Bags(), C=100).fit(bags, ["yes", "no", "yes", "no"])
    >>> model.predict(bags), model.predict_hidden(bags)
    (array(['yes', 'no', 'yes', 'no'], dtype='<U3'), array([ 1, -1,  0, -1]))
    """

    hidden_losses: tuple[str, ...] = ()

    rule: str = parameter(choice(*RULES), default="witness")
    background: Any = None
    min_share: float = parameter(between("a share of instances", 0, 1), default=0.0)
    max_share: float = parameter(between("a share of instances", 0, 1), default=1.0)

    @property
    def holds_functions(self) -> bool:
        return False

    @property
    def _sees_hidden(self) -> bool:
        return False

    def check(self) -> None:
        super().check()
        if self.min_share > self.max_share:
            raise ValueError(f"min_share must be at most max_share, got {self.min_share} and {self.max_share}")
        if self.rule != "instances" and (self.min_share, self.max_share) != (0.0, 1.0):
            raise ValueError(f"min_share and max_share need rule='instances', got rule={self.rule!r}")

    def check_schema(self, schema: Schema) -> None:
        Problem.check_schema(self, schema)
        k = len(schema.classes) - (self.rule != "both")
        check_blocks(schema, {"weights": (k, schema.n_features)}, {"intercept": (k,)})
        self.check_loss(schema.classes)

    def schema(self, X: Any, y: Any) -> Schema:
        found = super().schema(X, y)
        position = 0
        if self.background is not None:
            is_label = bool(kind_of_label(self.background))
            position = int(find_labels(found.classes, np.array([self.background]))[0]) if is_label else -1
            if position < 0:
                raise ValueError(
                    f"background must be one of the classes {shorten(found.classes.tolist())}, got "
                    f"{shorten(self.background)}"
                )
        if self.rule == "both":
            return found
        classes = np.concatenate([found.classes[[position]], np.delete(found.classes, position)])
        blocks = {name: (shape[0] - 1, *shape[1:]) for name, shape in found.blocks.items()}
        return Schema(classes, found.n_features, blocks)

    def known_hidden(self, hidden: Any, offsets: Array) -> KnownHidden:
        return read_witnesses(hidden, np.diff(offsets))

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> Oracle:
        if self.rule == "both":
            return super().bind(X, y, schema, hidden=hidden)
        X = self.ensure_read(X)
        self.check_schema(schema)
        table, offsets = self.rows(X)
        self._check_width(table, schema)
        if self.rule == "witness":
            return WitnessOracle(table, schema, offsets, **self.read_supervision(X, y, schema, offsets, hidden))
        supervision = self.read_supervision(X, y, schema, offsets, None)
        del supervision["has_hidden"]
        oracle = InstancesOracle(table, schema, offsets, bounds=self._bounds(np.diff(offsets)), **supervision)
        return oracle if hidden is None else oracle.with_hidden(hidden)

    def _bounds(self, sizes: Array) -> Bounds:
        """How many instances of a bag may be positive: shares are rounded to whole instances, inwards if possible."""
        low = np.maximum(np.ceil(self.min_share * sizes - 1e-9), 1).astype(np.int64)
        return Bounds(low, np.maximum(np.floor(self.max_share * sizes + 1e-9).astype(np.int64), low))

    def example(self, rng: np.random.Generator) -> Example:
        if self.rule == "both":
            return super().example(rng)
        sizes, d = rng.integers(1, 4, int(rng.integers(3, 6))), int(rng.integers(1, 3))
        values = rng.integers(-2, 3, (int(sizes.sum()), d)).astype(rng.choice(["float64", "float32"]))
        bags = Ragged(values, np.concatenate([[0], np.cumsum(sizes)]))
        known = [1, 2, 7] if self.classes is None else list(self.classes)
        first = known[0] if self.background is None else self.background
        labels = [first, *(label for label in known if label != first)]
        y = np.array([*sorted(known), *rng.choice(known, len(bags))][: len(bags)])
        costs = read_costs(self.loss, np.array(labels))

        def values_of(x: Any, label: Any) -> list[Any]:
            if label == first:
                return [-1] if self.rule == "witness" else [[]]
            if self.rule == "witness":
                return list(range(len(x)))
            low, high = (int(bound[0]) for bound in self._bounds(np.array([len(x)])))
            counts = range(low, high + 1)
            return [list(chosen) for count in counts for chosen in itertools.combinations(range(len(x)), count)]

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            weights, intercepts = np.zeros((len(labels), d)), np.zeros(len(labels))
            for j in h if isinstance(h, list) else [h] if h >= 0 else []:
                weights[labels.index(label)] += x[j]
                intercepts[labels.index(label)] += 1
            parts = [weights[1:].ravel(), intercepts[1:]] if self.fit_intercept else [weights[1:].ravel()]
            return np.concatenate(parts)

        hidden = np.empty(len(bags), dtype=object)
        for i, label in enumerate(y.tolist()):
            options = values_of(bags[i], label)
            hidden[i] = options[int(rng.integers(len(options)))]
        return Example(
            bags,
            y,
            hidden.astype(np.int64) if self.rule == "witness" else hidden,
            lambda x: [(label, h) for label in labels for h in values_of(x, label)],
            joint_feature,
            lambda true, label, h: float(costs[labels.index(true), labels.index(label)]),
        )

    @classmethod
    def variants(cls) -> list[Self]:
        costs = [[0, 1, 3], [2, 0, 0.75], [1, 1, 0]]
        return [
            cls(),
            cls(fit_intercept=False, background=7),
            cls(loss=costs, classes=[7, 1, 2]),
            cls(rule="instances"),
            cls(rule="instances", min_share=0.4, max_share=0.7, background=2),
            cls(rule="both"),
        ]

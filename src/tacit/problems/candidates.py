"""Multiple-instance learning: the label of a bag is known, which of its candidates carries it is hidden."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.boxes import overlap
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.shards import Shards, read_shards
from tacit.oracle import Example, HiddenLoss, PairLoss, Schema
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.known_hidden import read_hidden
from tacit.oracle.losses import by_kind
from tacit.problems.classes.problem import TableProblem


class Candidates(TableProblem):
    """Each sample is a bag of candidate vectors (boxes, windows, sentences); ``s(y, h) = w_y·x_h + b_y``.

    This is multiple-instance learning, where candidates are called instances.
    The hidden value is the position of the candidate within its bag. Bags come as a list of arrays, an object array, a
    pandas Series, a pyarrow list column, a 3-D array or a `tacit.Ragged`; candidates are dense or sparse rows.
    O(rows·K·d) per pass.

    Parameters
    ----------
    loss : "0/1" or a cost matrix ``loss[true, predicted]`` in the order of the classes; or one that looks at the
        candidate too. "exact" costs 1 unless both label and candidate are right. "overlap" costs 1 under a wrong label
        and 1 − IoU of the candidates' boxes under the right one (see `Ragged.with_boxes`). A function
        ``(true label, true candidate, label, candidate)`` costs what it returns. Where the true candidate is unknown,
        these count the label only
    classes : all labels, where the training data may lack some; None takes those of y, sorted
    fit_intercept : whether each class has an intercept, penalised like the other weights

    >>> from tacit import StructuredSVM
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0]], [[6.0, 0.0], [1.0, 1.0]]]
    >>> model = StructuredSVM(Candidates(), C=100).fit(bags, ["x", "y", "x"], hidden=[1, 0, 0])
    >>> model.predict(bags), model.predict_hidden(bags)
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    """

    hidden_losses: tuple[str, ...] = ("exact", "overlap")
    takes_table = False
    has_smooth_start = True

    def read(self, X: Any) -> Any:
        if isinstance(X, Shards):
            return read_shards(X, "bag", "candidate")
        return read_ragged(X, "bag", "candidate")

    def rows(self, X: Ragged) -> tuple[Any, Array]:
        return X.values, X.offsets

    def known_hidden(self, hidden: Any, offsets: Array) -> KnownHidden:
        return read_hidden(hidden, np.diff(offsets))

    def schema(self, X: Any, y: Any) -> Schema:
        self._require_boxes(self.ensure_read(X))
        return super().schema(X, y)

    def hidden_loss(self, X: Ragged, offsets: Array) -> PairLoss:
        if self.loss == "exact":
            return exact_loss(X.lengths)
        self._require_boxes(X)
        return overlap_loss(X)

    def _require_boxes(self, X: Ragged) -> None:
        if isinstance(self.loss, str) and self.loss == "overlap" and X.boxes is None:
            remedy = "add them with Ragged.of(bags).with_boxes(...), or make bags with tacit.windows"
            raise ValueError(f"loss='overlap' needs bags with boxes; {remedy}")

    def example(self, rng: np.random.Generator) -> Example:
        sizes, d = rng.integers(1, 4, int(rng.integers(3, 6))), int(rng.integers(1, 3))
        values = rng.integers(-2, 3, (int(sizes.sum()), d)).astype(rng.choice(["float64", "float32"]))
        bags = Ragged(values, np.concatenate([[0], np.cumsum(sizes)]))
        classes = np.array([1, 2, 7] if self.classes is None else self.classes)
        return self.specify(bags, rng.integers(sizes), classes, rng)

    @classmethod
    def variants(cls) -> list[Self]:
        costs = [[0, 1, 3], [2, 0, 0.75], [1, 1, 0]]
        return [cls(), cls(fit_intercept=False), cls(loss=costs, classes=[7, 1, 2])]


def exact_loss(sizes: Array) -> HiddenLoss:
    """0 for the right hidden value, 1 for any other."""
    return by_kind((b"%d" % size for size in sizes), lambda i: 1.0 - np.eye(sizes[i]), lambda i: int(sizes[i]))


def overlap_loss(bags: Ragged) -> HiddenLoss:
    """1 − intersection over union of the boxes of two candidates; bags of equal boxes share their table."""
    boxes = bags.boxes
    assert boxes is not None

    def own(i: int) -> Array:
        return boxes[bags.offsets[i] : bags.offsets[i + 1]]

    return by_kind(
        (own(i).tobytes() for i in range(len(bags))),
        lambda i: 1.0 - overlap(own(i)[:, None], own(i)[None]),
        lambda i: int(bags.lengths[i]),
    )

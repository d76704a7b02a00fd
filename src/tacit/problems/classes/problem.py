"""Classification: labels, losses and known hidden values of problems with one weight block per class."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags

from tacit.data.arrays import Array
from tacit.data.labels import check_listed, find_labels, read_classes, read_labels
from tacit.data.specs import estimator, switch
from tacit.oracle import Example, Oracle, PairLoss, Problem, Schema
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.losses import CalledLoss, class_losses, read_costs
from tacit.problems.classes.blocks import ClassBlocks, check_blocks


class ClassProblem(Problem):
    """Classification: labels, losses and known hidden values. A subclass reads the input and binds it."""

    reads_once = True
    min_classes = 2
    """The least number of classes that `classes` may list."""

    loss: Any
    classes: Any
    fit_intercept: bool
    parameters = {"fit_intercept": switch}

    def check(self) -> None:
        super().check()
        check_listed(self.classes, least=self.min_classes)

    @abstractmethod
    def known_hidden(self, hidden: Any, offsets: Array) -> KnownHidden:
        """What is known of hidden values, checked."""

    has_hidden = True
    hidden_losses: tuple[str, ...] = ()
    """Names of losses that look at the hidden value."""

    def hidden_loss(self, X: Any, offsets: Array) -> PairLoss:
        """The loss on the hidden value that ``loss`` names, for these samples."""
        raise NotImplementedError

    @property
    def holds_functions(self) -> bool:
        """Whether a file of a model lacks a part of the problem, because it is the user's function."""
        return callable(self.loss)

    @property
    def _sees_hidden(self) -> bool:
        named = isinstance(self.loss, str) and self.loss in self.hidden_losses
        return named or (callable(self.loss) and self.has_hidden)

    def read_supervision(self, X: Any, y: Any, schema: Schema, offsets: Array, hidden: Any) -> dict[str, Any]:
        """The arguments of an oracle beside features: labels, losses, known hidden values."""
        supervision: dict[str, Any] = {"has_hidden": self.has_hidden}
        if hidden is not None:
            supervision["hidden"] = self.known_hidden(hidden, offsets)
        if y is not None:
            found = find_labels(schema.classes, read_labels(y, offsets.size - 1))
            supervision["labels"] = np.where(found < 0, len(schema.classes), found)
            if self._sees_hidden:
                called = CalledLoss(self.loss, schema.classes) if callable(self.loss) else None
                supervision["hidden_loss"] = called or self.hidden_loss(X, offsets)
            else:
                supervision["losses"] = class_losses(self.loss, schema.classes, supervision["labels"])
        elif self._sees_hidden and not callable(self.loss):
            supervision["hidden_loss"] = partial(self.hidden_loss, X, offsets)
        return supervision

    def check_loss(self, classes: Array) -> None:
        """Refuse a loss that is not valid."""
        if not self._sees_hidden:
            read_costs(self.loss, classes, self.hidden_losses)

    def specify(self, X: Any, hidden: Any, classes: Array, rng: np.random.Generator) -> Example:
        """The plain-Python specification of these samples, with random labels: each class once, then any."""
        y = np.concatenate([classes, rng.choice(classes, len(X))])[: len(X)]
        costs = read_costs("0/1" if self._sees_hidden else self.loss, classes)
        index = {label: k for k, label in enumerate(classes.tolist())}

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            row = np.asarray(x if h is None else x[h])
            weights, intercepts = np.zeros((len(classes), row.size)), np.zeros(len(classes))
            weights[index[label]] = row
            intercepts[index[label]] = 1
            return np.concatenate([weights.ravel(), intercepts]) if self.fit_intercept else weights.ravel()

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            values = [None] if hidden is None else range(len(x))
            return [(label, h) for label in classes.tolist() for h in values]

        def loss(true: Any, label: Any, h: Any) -> float:
            return float(costs[index[true], index[label]])

        return Example(X, y, hidden, outputs, joint_feature, loss)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        return tags


@estimator
class TableProblem(ClassProblem):
    """Classes of samples whose features are rows of a table; a subclass says how rows form samples."""

    takes_shards = True

    loss: Any = "0/1"
    classes: Any = None
    fit_intercept: bool = True

    @abstractmethod
    def rows(self, X: Any) -> tuple[Any, Array]:
        """The table of feature rows of checked input, dense or CSR, and the offsets that cut it into samples."""

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        k = len(schema.classes)
        check_blocks(schema, {"weights": (k, schema.n_features)}, {"intercept": (k,)})
        self.check_loss(schema.classes)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        table, offsets = self.rows(self.ensure_read(X))
        classes = read_classes(self.classes, y, offsets.size - 1)
        self.check_loss(classes)
        blocks: dict[str, tuple[int, ...]] = {"weights": (len(classes), table.shape[1])}
        if self.fit_intercept:
            blocks["intercept"] = (len(classes),)
        return Schema(classes, table.shape[1], blocks)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> Oracle:
        X = self.ensure_read(X)
        self.check_schema(schema)
        table, offsets = self.rows(X)
        self._check_width(table, schema)
        return ClassBlocks(table, schema, offsets, **self.read_supervision(X, y, schema, offsets, hidden))

    def _check_width(self, table: Any, schema: Schema) -> None:
        """Refuse rows of another width than those of training."""
        name, d = type(self).__name__, table.shape[1]
        if d != schema.n_features:
            raise ValueError(f"X has {d} features, but {name} is expecting {schema.n_features} features as input")

"""One weight block per class, shared by all hidden values: what `Multiclass` and `Candidates` have in common.

``Ψ(x, y, h)`` puts the row of features that h chooses into the block of class y, so all scores of all rows are one
matrix product, and a sum of features is one gather.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import ClassifierTags

from tacit.arrays import Array, Rows, find_uneven
from tacit.kernels import kernel
from tacit.labels import check_listed, find_labels, read_classes, read_labels
from tacit.oracle import EnumerableOracle, Example, LossTable, Oracle, PairLoss, Problem, Schema
from tacit.oracle.digests import checksum
from tacit.oracle.hidden_loss import CalledLoss
from tacit.oracle.known_hidden import KnownHidden
from tacit.parameters import numbers, shorten, switch
from tacit.problems.class_dual import ClassDual

Blocks = dict[str, tuple[int, ...]]
"""Names and shapes of parts of w."""

SMALL_PRODUCT = 900_000
"""Below a million multiplications OpenBLAS skips packing, which is a third faster (34 against 49 µs on the digits).
Tables too small for threads to pay are cut to this size; larger ones gain more from BLAS's own threads."""


class ClassProblem(Problem):
    """Classification: what labels, losses and known hidden values mean. A subclass reads the input and binds it."""

    reads_once = True

    def __init__(self, loss: Any = "0/1", classes: Any = None, fit_intercept: bool = True) -> None:
        self.loss = loss
        self.classes = classes
        self.fit_intercept = fit_intercept

    def check(self) -> None:
        switch("fit_intercept", self.fit_intercept)
        check_listed(self.classes)

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

    def bound_facts(self, X: Any, y: Any, schema: Schema, offsets: Array, hidden: Any) -> dict[str, Any]:
        """What an oracle is told about its samples beside their features: labels, losses, known hidden values."""
        facts: dict[str, Any] = {"has_hidden": self.has_hidden}
        if hidden is not None:
            facts["hidden"] = self.known_hidden(hidden, offsets)
        if y is not None:
            found = find_labels(schema.classes, read_labels(y, offsets.size - 1))
            facts["labels"] = np.where(found < 0, len(schema.classes), found)
            if self._sees_hidden:
                called = CalledLoss(self.loss, schema.classes) if callable(self.loss) else None
                facts["hidden_loss"] = called or self.hidden_loss(X, offsets)
            else:
                facts["losses"] = class_losses(self.loss, schema.classes, facts["labels"])
        return facts

    def check_loss(self, classes: Array) -> None:
        """Refuse a loss that cannot be."""
        if not self._sees_hidden:
            read_costs(self.loss, classes, self.hidden_losses)

    def specify(self, X: Any, hidden: Any, classes: Array, rng: np.random.Generator) -> Example:
        """The plain-Python specification of these samples, with random labels: all classes first, then any."""
        y = np.concatenate([classes, rng.choice(classes, len(X))])[: len(X)]
        costs = read_costs("0/1" if self._sees_hidden else self.loss, classes)
        place = {label: k for k, label in enumerate(classes.tolist())}

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            row = np.asarray(x if h is None else x[h])
            weights, intercepts = np.zeros((len(classes), row.size)), np.zeros(len(classes))
            weights[place[label]] = row
            intercepts[place[label]] = 1
            return np.concatenate([weights.ravel(), intercepts]) if self.fit_intercept else weights.ravel()

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            values = [None] if hidden is None else range(len(x))
            return [(label, h) for label in classes.tolist() for h in values]

        def loss(true: Any, label: Any, h: Any) -> float:
            return float(costs[place[true], place[label]])

        return Example(X, y, hidden, outputs, joint_feature, loss)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        return tags


class TableProblem(ClassProblem):
    """Classes of samples that are rows of a table as they come: a subclass says how rows form samples."""

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
        table, offsets = self.rows(self.checked(X))
        classes = read_classes(self.classes, y, offsets.size - 1)
        self.check_loss(classes)
        blocks: dict[str, tuple[int, ...]] = {"weights": (len(classes), table.shape[1])}
        if self.fit_intercept:
            blocks["intercept"] = (len(classes),)
        return Schema(classes, table.shape[1], blocks)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> Oracle:
        X = self.checked(X)
        self.check_schema(schema)
        table, offsets = self.rows(X)
        name = type(self).__name__
        if table.shape[1] != schema.n_features:
            raise ValueError(
                f"X has {table.shape[1]} features, but {name} is expecting {schema.n_features} features as input"
            )
        return ClassBlocks(table, schema, offsets, **self.bound_facts(X, y, schema, offsets, hidden))


class ClassBlocks(EnumerableOracle):
    """Scores are ``W @ table.T + b``; see `EnumerableOracle` for the rest of the arguments.

    A dense table in memory is kept twice, by rows for `gather` and by columns for `scores` (twice as fast as one
    copy); a memory-mapped one is read in place, a sparse one is kept as it is.
    """

    def __init__(self, table: Any, schema: Schema, offsets: Array, **facts: Any) -> None:
        shape = (len(schema.classes), table.shape[1])
        if schema.blocks.get("weights") != shape or schema.blocks.get("intercept", shape[:1]) != shape[:1]:
            raise ValueError(
                f"the schema's blocks {dict(schema.blocks)} do not fit {shape[0]} classes × {shape[1]} features"
            )
        self._sparse = sparse.issparse(table)
        self._blocks_of = schema.views
        self._has_intercept = "intercept" in schema.blocks
        if self._sparse:
            self._rows = table
            self._columns = None
        elif isinstance(table, np.memmap):
            self._rows = np.asarray(table)
            self._columns = self._rows.T
        else:
            self._rows = np.ascontiguousarray(table)
            self._columns = np.ascontiguousarray(table.T)
        self._precision = self._rows.dtype
        per_state = max(1, len(schema.classes) * table.shape[1])
        if self._sparse:
            self.block_cells = 1 << 22  # a block of a sparse table costs more to cut out than to search
        elif per_state * table.shape[0] < 4 * SMALL_PRODUCT:
            self.block_cells = max(64, SMALL_PRODUCT // table.shape[1])
        super().__init__(schema.classes, offsets, schema.n_params, **facts)

    def scores(self, w: Array, rows: Rows = None) -> Array:
        parts = self._blocks_of(w)
        weights = parts["weights"].astype(self._precision, copy=False)
        states = self.states(rows)
        if not w.any():  # every descent asks there, and a product of zeros takes as long as any other
            size = states.stop - states.start if isinstance(states, slice) else len(states)
            return np.zeros((self.n_labels, size), self._precision)
        if self._columns is None:
            scores = np.ascontiguousarray((cut_rows(self._rows, states) @ weights.T).T)
        else:
            scores = weights @ self._columns[:, states].astype(self._precision, copy=False)
        if self._has_intercept:
            scores += parts["intercept"].astype(scores.dtype)[:, None]
        return scores

    def existing(self, labels: Array, rows: Rows = None) -> None:
        return None  # every class has every state

    @property
    def table(self) -> Any:
        """The feature rows, dense or CSR."""
        return self._rows

    @property
    def constant(self) -> float:
        """The feature that intercepts weigh: 1, or 0 where there are none."""
        return 1.0 if self._has_intercept else 0.0

    def parts(self, w: Array) -> tuple[Array, Array]:
        """(K, d) weights and (K,) intercepts, copies; zeros where there are none."""
        parts = self._blocks_of(w)
        intercept = parts["intercept"].copy() if self._has_intercept else np.zeros(self.n_labels)
        return parts["weights"].copy(), intercept

    def flat(self, weights: Array, intercept: Array) -> Array:
        """The flat vector of these weights: the inverse of `parts`."""
        out = np.empty(self.n_params)
        parts = self._blocks_of(out)
        parts["weights"][:] = weights
        if self._has_intercept:
            parts["intercept"][:] = intercept
        return out

    def dual(self, weights: Array, target: Array, start: Mapping[str, Any] | None = None) -> ClassDual:
        return ClassDual(self, weights, target, start)

    def exact(self) -> Self:
        if self._precision == np.float64:
            return self
        view = copy.copy(self)
        view._precision = np.dtype(np.float64)
        return view

    def digest(self) -> str:
        return checksum(self._rows, self.offsets, *self.known_marks())

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        states = self.states(rows)
        table = cut_rows(self._rows, states) if self._sparse else self._rows[states]
        parts["weights"][:] = (table.T @ V.T).T if self._sparse else V @ table
        if self._has_intercept:
            parts["intercept"][:] = V.sum(axis=1)
        return out

    def gather(self, labels: Array, states: Array, coef: Array, rows: Rows = None) -> Array:
        firsts = self.offsets[:-1] if rows is None else self.offsets[:-1][rows]
        return self.sum_cells(labels, firsts + states, coef)

    def sum_cells(self, labels: Array, absolute: Array, coef: Array) -> Array:
        """Σ coef Ψ(cell) over any cells, their states counted over all samples."""
        out = np.zeros(self.n_params)
        parts = self._blocks_of(out)
        if self._sparse:
            table = self._rows
            add_sparse_rows(table.data, table.indices, table.indptr, labels, absolute, coef, parts["weights"])
        else:
            add_rows(self._rows, labels, absolute, coef, parts["weights"])
        if self._has_intercept:
            parts["intercept"][:] = np.bincount(labels, coef, minlength=self.n_labels)
        return out


def check_blocks(schema: Schema, needed: Blocks, optional: Blocks) -> None:
    """Refuse a schema whose blocks of weights are not those needed, and perhaps those that are optional.

    >>> check_blocks(Schema(np.arange(2), 3, {"weights": (2, 4)}), {"weights": (2, 3)}, {})
    Traceback (most recent call last):
    ...
    ValueError: the schema's blocks {'weights': (2, 4)} do not fit 2 classes × 3 features: {'weights': (2, 3)}
    """
    fits = all(schema.blocks.get(name) == shape for name, shape in needed.items()) and all(
        shape == (needed | optional).get(name) for name, shape in schema.blocks.items()
    )
    if not fits:
        raise ValueError(
            f"the schema's blocks {shorten(dict(schema.blocks))} do not fit {len(schema.classes)} classes × "
            f"{schema.n_features} features: {needed}"
        )


def read_costs(loss: Any, classes: Array, others: tuple[str, ...] = ()) -> Array:
    """``costs[true, predicted]`` from "0/1" or from a cost matrix in the order of the classes."""
    k = len(classes)
    if isinstance(loss, str):
        if loss != "0/1":
            names = ", ".join(map(repr, ("0/1", *others)))
            raise ValueError(f"loss must be {names} or a cost matrix, got {shorten(loss)}")
        return 1.0 - np.eye(k)
    why = find_uneven(loss)
    if why:
        raise ValueError(f"loss must be '0/1' or a cost matrix of numbers, rows of equal length: {why}")
    costs = numbers("loss", loss, "'0/1' or a cost matrix of numbers, rows of equal length")
    if costs.shape != (k, k):
        raise ValueError(
            f"the cost matrix has shape {costs.shape}, the data have {k} classes {shorten(classes.tolist())}; "
            "give one row per true and one column per predicted class, and classes=[...] if some may be absent"
        )
    if not np.isfinite(costs).all() or (costs < 0).any():
        i, j = np.argwhere(~np.isfinite(costs) | (costs < 0))[0]
        raise ValueError(f"loss[{i}, {j}] is {costs[i, j]}: costs must be finite and not negative")
    if costs.diagonal().any():
        i = int(np.flatnonzero(costs.diagonal())[0])
        raise ValueError(f"loss[{i}, {i}] is {costs[i, i]}: predicting the truth must cost nothing")
    return costs


def class_losses(loss: Any, classes: Array, labels: Array) -> LossTable:
    """The loss table of a cost matrix. A label that training never saw costs 1 under 0/1 loss."""
    costs = read_costs(loss, classes)
    if isinstance(loss, str):
        costs = np.vstack([costs, np.ones(len(classes))])
    elif (labels == len(classes)).any():
        i = int(np.argmax(labels == len(classes)))
        raise ValueError(
            f"y[{i}] is a label that training never saw, and a cost matrix has no row for it; "
            f"the classes are {shorten(classes.tolist())}: list all of them in classes=[...]"
        )
    return LossTable(costs.T, labels)


def cut_rows(table: Any, states: Any) -> Any:
    """Rows of a CSR table; consecutive ones share its memory."""
    if not isinstance(states, slice):
        return table[states]
    if states == slice(0, table.shape[0]):
        return table
    indptr = table.indptr[states.start : states.stop + 1]
    part = slice(indptr[0], indptr[-1])
    shape = (states.stop - states.start, table.shape[1])
    return sparse.csr_array((table.data[part], table.indices[part], indptr - indptr[0]), shape=shape)


@kernel
def add_rows(table: Array, labels: Array, states: Array, coef: Array, out: Array) -> None:
    """``out[labels[i]] += coef[i] · table[states[i]]`` for all i."""
    width = table.shape[1]
    for i in range(labels.size):
        c = coef[i]
        if c == 0.0:
            continue
        row = table[states[i]]
        into = out[labels[i]]
        for j in range(width):
            into[j] += c * row[j]


@kernel
def add_sparse_rows(
    data: Array, indices: Array, indptr: Array, labels: Array, states: Array, coef: Array, out: Array
) -> None:
    """`add_rows` for a CSR table."""
    for i in range(labels.size):
        c = coef[i]
        if c == 0.0:
            continue
        into = out[labels[i]]
        for p in range(indptr[states[i]], indptr[states[i] + 1]):
            into[indices[p]] += c * data[p]

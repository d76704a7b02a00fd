"""Document classification with hidden rationales: the label is known, the sentences that decide it are hidden."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.labels import check_listed, find_labels, read_classes, read_labels
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged, read_ragged
from tacit.data.specs import choice, estimator, parameter, some_share
from tacit.oracle import Example, Problem, Schema
from tacit.oracle.losses import class_losses, read_costs
from tacit.problems.classes.blocks import check_blocks
from tacit.text.sentences.oracle import SIGNS, Budget, SentencesOracle

MAX_BUDGET_WORDS = 100_000
"""The largest budget in words: the knapsack takes as many steps per sentence."""


@estimator
class Sentences(Problem):
    """Documents whose label depends on some of their sentences, the rationales (Yessenalina, Yue & Cardie 2010).

    ``s(y, h) = Σ_{t ∈ h} (±polarity·x_t + subjectivity·x_t) / √|h| ± (document·x_0 + b)``, + for the second of two
    classes and − for the first. The hidden value h is the set of chosen sentences: the `share` with the highest scores,
    by partial sorting. With ``budget="words"`` it is the best set within a share of the words, by an exact knapsack.
    `tacit.text.reasons` lists them for a fitted model.

    ``X`` has one table per document, dense or sparse: the first row is the document itself, every other row one of its
    sentences (`tacit.text.SentenceVectors` makes them). A document may be without sentences. With ``budget="words"``
    the first column is the number of words of a row. Hidden values are lists of chosen sentences, counted from 0.
    O(numbers in the table) per pass.

    Parameters
    ----------
    share : the share of a document that is chosen, above 0 and at most 1. Of n sentences ⌈share · n⌉ are chosen
    budget : whether the share counts "sentences" or "words"
    loss : "0/1" or a cost matrix ``loss[true, predicted]``
    classes : the two labels; None takes those of y, sorted

    >>> from tacit import LatentSVM
    >>> good, bad, plot = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    >>> X = [[plot, good, plot], [plot, plot, bad], [plot, plot, good], [plot, bad, plot]]  # the first row: all of it
    >>> model = LatentSVM(Sentences(share=0.5), C=100, init="weights").fit(X, ["+", "-", "+", "-"])
    >>> model.predict(X), [chosen.tolist() for chosen in model.predict_hidden(X)]
    (array(['+', '-', '+', '-'], dtype='<U1'), [[0], [1], [1], [0]])
    """

    reads_once = True
    takes_table = False

    share: float = parameter(some_share, default=0.3)
    budget: str = parameter(choice("sentences", "words"), default="sentences")
    loss: Any = "0/1"
    classes: Any = parameter(lambda name, value: check_listed(value), default=None)

    def read(self, X: Any) -> Ragged:
        return read_ragged(X, "document", "sentence")

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        d = schema.n_features
        blocks: dict[str, tuple[int, ...]] = dict.fromkeys(("polarity", "subjectivity", "document"), (d,))
        blocks["intercept"] = (1,)
        check_blocks(schema, blocks, {})
        if len(schema.classes) != 2:
            raise ValueError(f"Sentences must have two classes, got {shorten(schema.classes)}")
        read_costs(self.loss, schema.classes)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        documents = self.ensure_read(X)
        classes = read_classes(self.classes, y, len(documents))
        if len(classes) != 2:
            raise ValueError(
                f"Sentences must have two classes, got {len(classes)}: {shorten(classes.tolist())}; merge some, or fit "
                "one model per class"
            )
        read_costs(self.loss, classes)
        d = self._features(documents.values).shape[1]
        if d < 1:
            raise ValueError("the rows of X must have at least one feature beside their number of words")
        return Schema(classes, d, {"polarity": (d,), "subjectivity": (d,), "document": (d,), "intercept": (1,)})

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> SentencesOracle:
        self.check()
        documents = self.ensure_read(X)
        self.check_schema(schema)
        features = self._features(documents.values)
        d = features.shape[1]
        if d != schema.n_features:
            raise ValueError(f"X has {d} features, but Sentences is expecting {schema.n_features} features as input")
        facts: dict[str, Any] = {}
        if y is not None:
            found = find_labels(schema.classes, read_labels(y, len(documents)))
            facts["labels"] = np.where(found < 0, 2, found)
            facts["losses"] = class_losses(self.loss, schema.classes, facts["labels"])
        budget, scale = self._budgets(documents)
        oracle = SentencesOracle(
            documents.with_values(features) if features is not documents.values else documents,
            schema,
            budget=budget,
            scale=scale,
            **facts,
        )
        return oracle if hidden is None else oracle.with_hidden(hidden)

    def _features(self, values: Any) -> Any:
        """The table without the column of lengths."""
        if self.budget != "words":
            return values
        part = values[:, 1:]
        return sparse.csr_array(part) if sparse.issparse(part) else np.ascontiguousarray(part)

    def _budgets(self, documents: Ragged) -> tuple[Budget, Array]:
        """The budget of every document, and 1/√ of the number of sentences in it, roughly."""
        n = documents.lengths - 1
        counts = np.ceil(float(self.share) * n - 1e-9).astype(np.int64)
        scale = 1.0 / np.sqrt(np.maximum(counts, 1))
        if self.budget != "words":
            return Budget(counts, None, None), scale
        column = documents.values[:, [0]]
        lengths = np.asarray(column.toarray() if sparse.issparse(column) else column, dtype=np.float64).ravel()
        wrong = (lengths < 0) | (lengths != np.floor(lengths)) | (lengths > MAX_BUDGET_WORDS)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"row {row} begins with {lengths[row]:g}; with budget='words' it must begin with its number of words, "
                f"from 0 to {MAX_BUDGET_WORDS}"
            )
        whole = lengths.astype(np.int64)
        sentences = whole.copy()
        sentences[documents.offsets[:-1]] = 0
        words = np.floor(float(self.share) * np.add.reduceat(sentences, documents.offsets[:-1]) + 1e-9)
        if words.max() > MAX_BUDGET_WORDS:
            raise ValueError(f"a document has a budget of {words.max():g} words, above {MAX_BUDGET_WORDS}; lower share")
        return Budget(None, whole, words.astype(np.int64)), scale

    def example(self, rng: np.random.Generator) -> Example:
        classes = np.array(["bad", "good"] if self.classes is None else self.classes)
        n, d = int(rng.integers(3, 6)), 2
        sizes = rng.integers(1, 6, n)
        sizes[0] = 1
        values = rng.integers(-2, 3, (sizes.sum(), d)).astype(rng.choice(["float64", "float32"]))
        has_words = self.budget == "words"
        if has_words:
            values = np.hstack([rng.integers(0, 4, (sizes.sum(), 1)).astype(values.dtype), values])
        X = Ragged(values, np.concatenate([[0], np.cumsum(sizes)]))
        y = np.concatenate([classes, rng.choice(classes, n)])[:n]
        costs = read_costs(self.loss, classes)

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            x = np.asarray(x, dtype=np.float64)
            n = len(x) - 1
            k = int(np.ceil(self.share * n - 1e-9))
            if has_words:
                room = np.floor(self.share * x[1:, 0].sum() + 1e-9)
                every = [c for size in range(n + 1) for c in itertools.combinations(range(n), size)]
                sets = [c for c in every if x[1:, 0][list(c)].sum() <= room]
            else:
                sets = list(itertools.combinations(range(n), k))
            return [(label, np.array(c, dtype=np.int64)) for label in classes for c in sets]

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            x = np.asarray(x, dtype=np.float64)
            sign = SIGNS[classes.tolist().index(label)]
            k = max(1, int(np.ceil(self.share * (len(x) - 1) - 1e-9)))
            rows = x[:, 1:] if has_words else x
            total = rows[1:][list(h)].sum(axis=0) / np.sqrt(k)
            return np.concatenate([sign * total, total, sign * rows[0], [sign]])

        def loss(true: Any, label: Any, h: Any) -> float:
            return float(costs[classes.tolist().index(true), classes.tolist().index(label)])

        chosen = [outputs(x)[int(rng.integers(len(outputs(x))))][1] for x in X]
        hidden = Ragged(np.concatenate(chosen), np.cumsum([0] + [len(own) for own in chosen]))
        return Example(X, y, hidden, outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        return [cls(), cls(share=0.7, loss=[[0, 2], [1, 0]], classes=["neg", "pos"]), cls(share=0.5, budget="words")]

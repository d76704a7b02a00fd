"""Word alignment: the label says whether two sentences are parallel; the matching of their words is hidden."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, is_list, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import estimator, not_negative, parameter
from tacit.oracle import Example, Problem, Schema
from tacit.problems.classes.blocks import check_blocks
from tacit.text.alignment.links import Links
from tacit.text.alignment.oracle import CLASSES, AlignmentOracle
from tacit.text.alignment.tables import pack_tables, read_known, read_tables


@estimator
class Alignment(Problem):
    """Word alignment: ``s(1, h) = Σ_{(i,j) ∈ h} w·f_ij / √(I·J) + b``, ``s(−1) = 0``.

    The label says whether two sentences are translations of each other (1) or not (−1). The hidden value is a matching
    of the I words of the one and the J words of the other: every word has at most one partner. To learn the labels, a
    model has to learn which words translate each other.

    ``X`` has one table per sentence pair, with one row per word pair that may be linked: source position, target
    position, and features (`tacit.text.WordPairs` makes them); or an array (I, J, d). ``y`` has 1 and −1. Known links
    go into ``hidden``, or into y instead of the 1: a `tacit.Links`, or a list of pairs; None where they are unknown.
    Sentence pairs with and without links may be mixed.

    Where links are known, the target is the best matching with as many sure links as possible. Its loss is 1 per missed
    sure link and `wrong_link` per link that is not possible, divided by √(I·J) as the score is. "Not parallel" costs as
    much as no link at all. Where links are unknown, the loss is 0/1. Inference is exact
    (`scipy.optimize.linear_sum_assignment`), in O(I·J·(d + min(I, J))) per sentence pair and pass. Taskar,
    Lacoste-Julien & Klein (2005) have the case that all links are known.

    Parameters
    ----------
    wrong_link : loss of a link that is not possible; a missed sure link costs 1

    >>> from tacit import LatentSVM
    >>> likely = np.array([[[0.9], [0.1]], [[0.2], [0.7]]])  # two words each, and one feature: 1 for translations
    >>> X = [likely, likely[:, ::-1], 0.3 * likely, 0.2 * likely]
    >>> model = LatentSVM(Alignment(), C=100).fit(X, [1, 1, -1, -1])
    >>> model.predict(X), model.predict_hidden(X)[1].tolist()
    (array([ 1,  1, -1, -1]), [[0, 1], [1, 0]])
    """

    reads_once = True
    takes_table = False

    wrong_link: float = parameter(not_negative, default=0.25)

    def read(self, X: Any) -> Ragged:
        return read_tables(X)

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        check_blocks(schema, {"weights": (schema.n_features,), "intercept": (1,)}, {})
        if not np.array_equal(schema.classes, CLASSES):
            raise ValueError(f"the classes of an Alignment must be -1 and 1, got {shorten(schema.classes)}")

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        pairs = self.ensure_read(X)
        d = pack_tables(pairs).values.shape[1]
        labels, _ = _split(y, len(pairs))
        if not labels.any():
            raise ValueError("every label in y is -1 (not parallel); give some parallel sentence pairs (1)")
        return Schema(CLASSES, d, {"weights": (d,), "intercept": (1,)})

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> AlignmentOracle:
        self.check()
        tables = pack_tables(self.ensure_read(X))
        self.check_schema(schema)
        n, d = len(tables.shapes), tables.values.shape[1]
        if d != schema.n_features:
            raise ValueError(f"X has {d} features, but Alignment is expecting {schema.n_features} features as input")
        labels = None
        given = list(hidden) if isinstance(hidden, Ragged) or is_list(hidden) else hidden
        if y is not None:
            labels, links = _split(y, n)
            given = _join(given, links)
        known = read_known(given, tables)
        if labels is not None:
            wrong = np.flatnonzero((labels == 0) & known.is_known)
            for i in wrong.tolist():
                if known.most[i] > 0:
                    raise ValueError(f"y[{i}] is -1 (not parallel), but hidden[{i}] has links; drop them")
            known.is_known[wrong] = False
        return AlignmentOracle(tables, schema, wrong_link=float(self.wrong_link), labels=labels, known=known)

    def example(self, rng: np.random.Generator) -> Example:
        n, d = int(rng.integers(3, 6)), 2
        shapes = rng.integers(1, 4, (n, 2))
        shapes[0] = 1, 2
        kind = rng.choice(["float64", "float32"])
        tables = [np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 2) for shape in shapes]
        sizes = np.array([len(table) for table in tables])
        values = np.hstack([np.concatenate(tables), rng.integers(-2, 3, (sizes.sum(), d))]).astype(kind)
        X = Ragged(values, np.concatenate([[0], np.cumsum(sizes)]))
        y = np.concatenate([[1, -1], rng.choice([-1, 1], n)])[:n]
        nothing = np.zeros((0, 2), dtype=np.int64)

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            n_source, n_target = (int(column.max()) + 1 for column in np.asarray(x)[:, :2].T)
            return [(-1, nothing), *((1, links) for links in _matchings(n_source, n_target))]

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            x = np.asarray(x, dtype=np.float64)
            if label == -1:
                return np.zeros(d + 1)
            n_source, n_target = x[:, :2].max(axis=0) + 1
            rows = [int(np.flatnonzero((x[:, :2] == link).all(axis=1))[0]) for link in h]
            return np.append(x[rows, 2:].sum(axis=0) / np.sqrt(n_source * n_target), 1.0)

        def loss(true: Any, label: Any, h: Any) -> float:
            return float(true != label)

        links = [outputs(x)[int(rng.integers(1, 3))][1] if y[i] == 1 else nothing for i, x in enumerate(X)]
        hidden = Ragged(np.concatenate(links), np.cumsum([0] + [len(own) for own in links]))
        return Example(X, y, hidden, outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        return [cls(), cls(wrong_link=1.0)]


def _matchings(n_source: int, n_target: int) -> list[Array]:
    """All matchings of these numbers of words, as sorted pairs."""
    return [
        np.column_stack([source, target]).astype(np.int64).reshape(-1, 2)
        for size in range(min(n_source, n_target) + 1)
        for source in itertools.combinations(range(n_source), size)
        for target in itertools.permutations(range(n_target), size)
    ]


def _split(y: Any, n: int) -> tuple[Array, list[Any]]:
    """Split y into labels (0 for −1) and links; an entry that is `Links` has the label 1."""
    listed = entries("y", y, "a list of 1 (parallel), -1 (not parallel) or tacit.Links")
    if len(listed) != n:
        raise ValueError(f"X has {n} sentence pairs, but y has {len(listed)} labels; give one per sentence pair")
    labels = np.zeros(n, dtype=np.int64)
    for i, entry in enumerate(listed):
        is_number = isinstance(entry, int | float | np.number) and not isinstance(entry, bool)
        if not isinstance(entry, Links) and not (is_number and entry in (-1, 1)):
            raise ValueError(f"y[{i}] must be 1 (parallel), -1 (not parallel) or tacit.Links, got {shorten(entry)}")
        labels[i] = isinstance(entry, Links) or entry == 1
    return labels, [entry if isinstance(entry, Links) else None for entry in listed]


def _join(hidden: Any, links: list[Any]) -> Any:
    """Join the known links of ``hidden`` and of y."""
    if not any(entry is not None for entry in links):
        return hidden
    if hidden is None:
        return links
    if not isinstance(hidden, list) or len(hidden) != len(links):
        return hidden
    for i, (own, other) in enumerate(zip(hidden, links, strict=True)):
        if own is not None and other is not None:
            raise ValueError(f"y[{i}] and hidden[{i}] both have links; drop one of them")
    return [other if own is None else own for own, other in zip(hidden, links, strict=True)]

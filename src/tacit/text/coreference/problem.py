"""Coreference resolution: clusters of mentions, with hidden links between them."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import is_list
from tacit.data.ragged import Ragged
from tacit.data.specs import between, choice, estimator, parameter, whole
from tacit.oracle import Example, Problem, Schema
from tacit.text.coreference.link_oracles import ForestOracle, LeftOracle
from tacit.text.coreference.oracle import mention_offsets, pack, read_clusters, read_links
from tacit.text.coreference.pairs import FIRST_FEATURE, MentionPairs, mention_pairs, read_pairs
from tacit.text.documents import Document, first_occurrence, read_documents


@estimator
class Coreference(Problem):
    """Coreference resolution with hidden links: ``s(y, h) = Σ_{(i, j) ∈ h} w·x_ij`` (Yu & Joachims 2009).

    ``X`` has documents (`tacit.text.Document`), or tables of pairs (`tacit.text.mention_pairs`). ``y`` has one number
    per mention, the same for mentions of the same thing. Hidden values are links: the mention that each mention links
    to, itself if it is new, −1 if it is unknown.

    With ``links="left"`` every mention links to one earlier mention or is new, so inference is an argmax or a softmax
    per mention: O(pairs · templates) per pass. With ``"forest"`` the links are an undirected spanning forest, found by
    Prim's algorithm, in O(n²) more per document of n mentions; it has maxima only.

    The loss of n mentions in k clusters is n − k, less 1 per right link, plus r per wrong link. So with left links a
    missed link costs 1, a wrong link 1 + r, and a link on the first mention of a cluster r.

    Parameters
    ----------
    links : "left" or "forest"
    r : loss of a wrong link, from 0 to 1; large values lead to fewer links
    candidates : how many mentions before a mention it may link to, if X are documents; mentions with the same words are
        candidates at any distance

    >>> from tacit import LatentPerceptron
    >>> from tacit.text import Document
    >>> sentences = [["Alice", "saw", "Bob", "."], ["She", "greeted", "him", "."]]
    >>> tale = Document(sentences, [(0, 1), (2, 3), (4, 5), (6, 7)])
    >>> other = Document([["Bob", "left", "."], ["He", "ran", "."]], [(0, 1), (3, 4)])
    >>> model = LatentPerceptron(Coreference()).fit([tale, other], [[0, 1, 0, 1], [0, 0]])
    >>> model.predict([tale])[0].tolist(), model.predict_hidden([tale])[0].tolist()
    ([0, 1, 0, 1], [0, 1, 0, 1])
    """

    reads_once = True
    takes_table = False
    has_smooth_start = True

    links: str = parameter(choice("left", "forest"), default="left")
    r: float = parameter(between("a number from 0 to 1", 0, 1), default=0.5)
    candidates: int = parameter(whole(), default=60)

    def read(self, X: Any) -> Ragged:
        if isinstance(X, MentionPairs) or not _holds_documents(X):
            return read_pairs(X)
        self.check()
        return read_pairs(mention_pairs(read_documents(X), candidates=int(self.candidates)))

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        if len(schema.classes) or len(schema.blocks) != schema.n_features:
            raise ValueError("a schema of Coreference must have one block of weights per template, and no classes")
        if any(len(shape) != 1 for shape in schema.blocks.values()):
            raise ValueError("every block of a schema of Coreference must be a vector")

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        pairs = self.ensure_read(X)
        read_clusters(y, mention_offsets(pairs))
        if isinstance(pairs, MentionPairs):
            names, sizes = pairs.templates, pairs.sizes
        else:
            sizes = tuple(np.maximum(pairs.values[:, FIRST_FEATURE:].max(axis=0), 1).tolist())
            names = tuple(f"template {t}" for t in range(len(sizes)))
        blocks = {name: (n,) for name, n in zip(names, sizes, strict=True)}
        return Schema(np.zeros(0, dtype=np.int64), len(names), blocks)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> LeftOracle | ForestOracle:
        self.check()
        pairs = self.ensure_read(X)
        self.check_schema(schema)
        width = pairs.values.shape[1] - FIRST_FEATURE
        names = list(schema.blocks)
        if width != schema.n_features or (isinstance(pairs, MentionPairs) and list(pairs.templates) != names):
            raise ValueError(f"X must have the {schema.n_features} templates of training, got {width} templates")
        offsets = mention_offsets(pairs)
        clusters = None if y is None else read_clusters(y, offsets)
        links = None if hidden is None else read_links(hidden, offsets)
        sizes = tuple(shape[0] for shape in schema.blocks.values())
        packed = pack(pairs, sizes, clusters, links if self.links == "left" else None)
        r = float(self.r)
        kind = LeftOracle if self.links == "left" else ForestOracle
        return kind(packed, schema, clusters, links, (1.0, 1.0 + r, r))

    def example(self, rng: np.random.Generator) -> Example:
        is_left = self.links == "left"
        tables, clusters, links = [], [], []
        sizes = rng.integers(1, 4, 2)
        for n in rng.integers(1, 5, int(rng.integers(2, 4))):
            rows = [[m, e] for m in range(n) for e in (m, *range(m)) if m - e < 3 or rng.random() < 0.7]
            tables.append(np.hstack([np.array(rows), rng.integers(0, sizes + 1, (len(rows), 2))]))
        tables[0][0, FIRST_FEATURE:] = sizes  # every value occurs
        starts = np.concatenate([[0], np.cumsum(sizes)])

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            return [(_clusters(parents), parents) for parents in (_left_links(x) if is_left else _forests(x))]

        def joint_feature(x: Any, label: Any, parents: Any) -> Array:
            psi = np.zeros(starts[-1])
            for m, parent in enumerate(parents.tolist()):
                later, earlier = max(m, parent), min(m, parent)
                _count(psi, starts, x, later, earlier, 1.0 if is_left or m != parent else 0.0)
                if not is_left and m != parent:
                    _count(psi, starts, x, later, later, -1.0)
            return psi

        def loss(true: Any, label: Any, parents: Any) -> float:
            total = float(len(true) - len(set(true.tolist())))
            for m, parent in enumerate(parents.tolist()):
                if m != parent:
                    total += -1.0 if true[m] == true[parent] else float(self.r)
            return total

        for table in tables:
            label, parents = outputs(table)[int(rng.integers(len(outputs(table))))]
            clusters.append(label)
            links.append(parents)
        X, y = Ragged.from_list(tables), Ragged.from_list(clusters)
        return Example(X, y, Ragged.from_list(links), outputs, joint_feature, loss)

    @classmethod
    def variants(cls) -> list[Self]:
        return [cls(), cls(links="forest", r=1.0)]


def _holds_documents(X: Any) -> bool:
    return isinstance(X, Document) or (
        isinstance(X, list | tuple | np.ndarray) and is_list(X) and len(X) > 0 and isinstance(X[0], Document)
    )


def _clusters(parents: Array) -> Array:
    """The clusters of links: follow them to the root."""
    roots = []
    for m in range(len(parents)):
        while parents[m] != m:
            m = int(parents[m])
        roots.append(m)
    return first_occurrence(np.array(roots))


def _left_links(x: Array) -> list[Array]:
    choices: list[list[int]] = [[] for _ in range(int(x[:, 0].max()) + 1)]
    for m, e in x[:, :FIRST_FEATURE].tolist():
        choices[int(m)].append(int(e))
    return [np.array(parents) for parents in itertools.product(*choices)]


def _forests(x: Array) -> list[Array]:
    """All forests of candidate links, the root of a tree its first mention."""
    n = int(x[:, 0].max()) + 1
    edges = [(int(m), int(e)) for m, e in x[:, :FIRST_FEATURE].tolist() if m != e]
    found = []
    for chosen in itertools.product((False, True), repeat=len(edges)):
        kept = [edge for edge, is_in in zip(edges, chosen, strict=True) if is_in]
        parents = np.full(n, -1)
        n_links = 0
        for root in range(n):
            if parents[root] >= 0:
                continue
            parents[root] = root
            queue = [root]
            for m in queue:
                for a, b in kept:
                    other = b if a == m else a if b == m else -1
                    if other >= 0 and parents[other] < 0:
                        parents[other] = m
                        n_links += 1
                        queue.append(other)
        if n_links == len(kept):  # otherwise there is a cycle
            found.append(parents)
    return found


def _count(psi: Array, starts: Array, x: Array, later: int, earlier: int, coef: float) -> None:
    """Add the indicators of one pair."""
    row = next(row for row in x if row[0] == later and row[1] == earlier)
    for t, value in enumerate(row[FIRST_FEATURE:].tolist()):
        if value:
            psi[starts[t] + int(value) - 1] += coef

"""What both kinds of links share: packed pairs, weights by value, clusters of links."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from tacit.data.arrays import Array, Rows, locate, span
from tacit.data.parameters import numbers, shorten
from tacit.data.ragged import Ragged
from tacit.oracle import Schema
from tacit.oracle.digests import checksum
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.text.coreference.packing import Packed, kinds_of, read_clusters, read_links
from tacit.text.coreference.trees import find_slots, number_clusters
from tacit.text.mentions.pairs import FIRST_FEATURE


class LinkOracle(PartsOracle):
    """Clusters of mentions, explained by links. A code has one integer per mention, cut by documents.

    Parameters
    ----------
    packed : the pairs
    schema : one block of weights per template
    clusters : (mentions,) the true clusters; None when predicting
    links : (mentions,) the known links, −1 where unknown
    costs : the loss of a missed link, of a wrong one in its place, and of a link on a first mention
    """

    nouns = Nouns("Coreference", "documents", "mention", "cluster")
    link_kind: ClassVar[str]

    def __init__(
        self, packed: Packed, schema: Schema, clusters: Array | None, links: Array | None, costs: tuple[float, ...]
    ) -> None:
        self.packed = packed
        self._full = np.diff(packed.starts)
        super().__init__(schema, packed.offsets, self._count_values(), labels=clusters)
        sizes = np.array([shape[0] for shape in schema.blocks.values()])
        # a place in front of each block holds the weight of the value 0, which is 0
        self.base = np.concatenate([np.zeros(FIRST_FEATURE), np.cumsum([0, *(sizes[:-1] + 1)])]).astype(np.int64)
        self._weight_places = np.concatenate(
            [b + 1 + np.arange(n) for b, n in zip(self.base[FIRST_FEATURE:], sizes, strict=True)]
        )
        self.costs = tuple(float(cost) for cost in costs)
        self.kind = np.zeros(len(packed.table), np.uint8) if clusters is None else kinds_of(packed, clusters)
        self._known_links = self._read_known(links)

    @abstractmethod
    def _read_known(self, links: Array | None) -> Array:
        """The code of what is known, −1 elsewhere; empty where nothing is."""

    @abstractmethod
    def _parents(self, code: Array, rows: Rows) -> Array:
        """The links of a code, as parents."""

    @abstractmethod
    def _code(self, parents: Array, rows: Rows) -> Array:
        """The code of links that are given as parents; an error where one is no candidate."""

    @abstractmethod
    def _count_values(self) -> int:
        """How many values the code of a mention may have at most."""

    def _clusters(self, rows: Rows = None) -> Array:
        """The true clusters of these mentions; an error where the documents were bound without them."""
        return self._known(rows, unseen=True)

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same documents, their links given by a code; those that are known already stay."""
        return (
            self
            if hidden is None
            else self._changed(_known_links=self._with_known(self._read(hidden)).astype(np.int64))
        )

    def with_loss(self, losses: Any) -> Self:
        """The same documents under other costs: of a missed link, a wrong one, and a link on a first mention."""
        costs = numbers("losses", losses)
        if costs.shape != (3,) or not (np.isfinite(costs).all() and (costs >= 0).all()):
            raise ValueError(f"losses are three numbers from 0, got {shorten(losses)}")
        return self._changed(costs=tuple(costs.tolist()))

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        self.clusters_of(code, rows)
        return True

    def hidden_unknown(self) -> Array:
        """Documents in which a mention has several right links, and it is not known which."""
        self._clusters()
        is_open = np.add.reduceat(self.kind == 0, self.packed.starts[:-1]) > 1
        if self._known_links.size:
            is_open &= self._known_links < 0
        return np.flatnonzero(np.logical_or.reduceat(is_open, self.offsets[:-1]))

    def digest(self) -> str:
        packed = self.packed
        return checksum(packed.table, packed.starts, packed.offsets, self.kind, self._known_links, np.array(self.costs))

    def units(self) -> Array:
        """The number of mentions per document: what a mean loss is taken over."""
        return np.diff(self.offsets).astype(np.float64)

    @property
    def operations(self) -> float:
        """Additions of one pass, roughly."""
        return float(self.packed.table.size)

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self._starts(rows)
        clusters = read_clusters(labels, starts)
        if hidden is None:
            raise ValueError("only links have a code: give hidden, the mention that each mention links to")
        parents = read_links(hidden, starts)
        if (parents < 0).any():
            i, m = locate(starts, int(np.argmin(parents)))
            raise ValueError(f"hidden[{i}][{m}] is unknown; only complete links have a code")
        code = self._code(parents, rows)
        wrong = np.flatnonzero(self.clusters_of(code, rows) != clusters)
        if wrong.size:
            i, m = locate(starts, int(wrong[0]))
            raise ValueError(
                f"the links hidden[{i}] make other clusters than those given: mention {m} is in another one"
            )
        return code

    def decode(self, code: Array, rows: Rows = None) -> tuple[Ragged, Ragged]:
        """Clusters, numbered by first occurrence, and links: the mention that each links to, itself if it is new."""
        code = self._read(code, rows)
        starts = self._starts(rows)
        return Ragged(self.clusters_of(code, rows), starts), Ragged(self._parents(code, rows), starts)

    def clusters_of(self, code: Array, rows: Rows = None) -> Array:
        """The clusters that the links of a code make."""
        parents = self._parents(self._read(code, rows), rows)
        clusters = np.empty(parents.size, dtype=np.int64)
        if not number_clusters(self._starts(rows), parents, clusters):
            raise ValueError("the links of a code go in a circle; they must be a forest")
        return clusters

    def documents(self, rows: Rows) -> Array:
        """The documents of a call."""
        if rows is None or isinstance(rows, slice):
            return np.arange(*span(rows or slice(None), self.n_samples))
        return np.asarray(rows, dtype=np.int64)

    def padded(self, w: Array) -> Array:
        """The weights by value, 0 for the value 0 of every template."""
        if np.shape(w) != (self.n_params,):
            raise ValueError(f"w has shape {np.shape(w)}, and {self.n_params} weights are needed")
        out = np.zeros(self._weight_places[-1] + 1)
        out[self._weight_places] = w
        return out

    def unpadded(self, sums: Array) -> Array:
        """The inverse of `padded`."""
        return np.asarray(sums[self._weight_places])

    def layout(self, rows: Rows) -> tuple[Array, Array, Array]:
        """The documents of a call, and where mentions and rows begin: the first arguments of every kernel."""
        return self.documents(rows), self.packed.offsets, self.packed.starts

    def _own(self, rows: Rows) -> Array:
        """The number of every mention in its document."""
        starts = self._starts(rows)
        return np.asarray(np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts)))

    def _with_known(self, code: Array) -> Array:
        """A code of all documents with the links that are known."""
        known = self._known_links
        return np.asarray(np.where(known >= 0, known, code) if known.size else code, dtype=self._code_type)

    def slots_of(self, later: Array, earlier: Array, rows: Rows) -> Array:
        """The place of one pair per mention among the rows of its later mention, −1 where it is no candidate."""
        slots = np.empty(later.size, dtype=np.int64)
        find_slots(*self.layout(rows), self.packed.table, later, earlier, slots)
        return slots

    def _read(self, code: Array, rows: Rows = None) -> Array:
        code = super()._read(code, rows)
        most = self._most(rows)
        if (code >= most).any():
            m = int(np.argmax(code >= most))
            raise ValueError(f"code[{m}] is {code[m]}, and mention {m} has only {most[m]} ways to link")
        return code

    def read_wishes(self, prefer: Any, rows: Rows) -> Array:
        """Links that win ties, one number per mention; those that no mention has are left to who compares them."""
        wished, n = np.asarray(prefer, dtype=np.int64), int(self._starts(rows)[-1])
        if wished.shape != (n,):
            raise ValueError(
                f"prefer has shape {wished.shape} for documents of {n} mentions; it has one number per mention"
            )
        return wished

    @abstractmethod
    def _most(self, rows: Rows) -> Array:
        """How many values the code of each mention may have."""

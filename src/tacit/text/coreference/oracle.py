"""What both kinds of links share: packed pairs, weights by value, clusters of links."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from tacit.data.arrays import Array, Rows, locate, span
from tacit.data.parameters import numbers, shorten
from tacit.data.ragged import Ragged, states_of
from tacit.oracle import TARGET, Assignment, Schema
from tacit.oracle.digests import checksum
from tacit.problems.shared.margins import require_margins
from tacit.text.coreference.packing import Packed, kinds_of, read_clusters, read_links
from tacit.text.coreference.trees import find_slots, number_clusters
from tacit.text.mentions.pairs import FIRST_FEATURE


class LinkOracle(ABC):
    """Clusters of mentions, explained by links. A code has one integer per mention, cut by documents.

    Parameters
    ----------
    packed : the pairs
    schema : one block of weights per template
    clusters : (mentions,) the true clusters; None when predicting
    links : (mentions,) the known links, −1 where unknown
    costs : the loss of a missed link, of a wrong one in its place, and of a link on a first mention
    """

    completes_labels = False
    rescalings: tuple[str, ...] = ("margin",)
    link_kind: ClassVar[str]

    def __init__(
        self, packed: Packed, schema: Schema, clusters: Array | None, links: Array | None, costs: tuple[float, ...]
    ) -> None:
        self.packed = packed
        self.n_samples = packed.offsets.size - 1
        self.n_params = schema.n_params
        self.code_offsets: Array | None = packed.offsets
        self.offsets = packed.offsets
        sizes = np.array([shape[0] for shape in schema.blocks.values()])
        # a place in front of each block holds the weight of the value 0, which is 0
        self.base = np.concatenate([np.zeros(FIRST_FEATURE), np.cumsum([0, *(sizes[:-1] + 1)])]).astype(np.int64)
        self._places = np.concatenate(
            [b + 1 + np.arange(n) for b, n in zip(self.base[FIRST_FEATURE:], sizes, strict=True)]
        )
        self._clusters = clusters
        self.costs = tuple(float(cost) for cost in costs)
        self.kind = np.zeros(len(packed.table), np.uint8) if clusters is None else kinds_of(packed, clusters)
        self._full = np.diff(packed.starts)
        self._known = self._read_known(links)

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
    def _augmented(self, w: Array, rows: Rows) -> Assignment:
        """The best links by score plus loss."""

    def augmented(
        self,
        w: Array,
        rows: Rows = None,
        *,
        target: Array | None = None,
        rescaling: str = "margin",
        rivals: bool = False,
    ) -> Assignment:
        require_margins("Coreference", rescaling, rivals)
        self.known_clusters()
        return self._augmented(w, rows)

    def known_clusters(self) -> Array:
        """The true clusters of all mentions; an error where the documents were bound without them."""
        if self._clusters is None:
            raise ValueError("these documents were bound without clusters: bind(X, y, ...) with y to impute or compare")
        return self._clusters

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same documents, their links given by a code; those that are known already stay."""
        view = copy.copy(self)
        if hidden is not None:
            code = self.read_code(hidden)
            view._known = code if not self._known.size else np.where(self._known >= 0, self._known, code)
        return view

    def with_loss(self, losses: Any) -> Self:
        """The same documents under other costs: of a missed link, a wrong one, and a link on a first mention."""
        costs = numbers("losses", losses)
        if costs.shape != (3,) or not (np.isfinite(costs).all() and (costs >= 0).all()):
            raise ValueError(f"losses are three numbers from 0, got {shorten(losses)}")
        view = copy.copy(self)
        view.costs = tuple(costs.tolist())
        return view

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if code.shape != (self.offsets[-1],) or code.dtype.kind != "i" or (code < TARGET).any():
            return False
        own = np.add.reduceat(code == TARGET, self.offsets[:-1])  # a document stands for its target as a whole or not
        if not bool(((own == 0) | (own == np.diff(self.offsets))).all()):
            return False
        rows = np.flatnonzero(own == 0)
        if not rows.size:
            return True
        try:
            self.clusters_of(code[states_of(self.offsets, rows)[0]], rows)
        except ValueError:
            return False
        return True

    def hidden_unknown(self) -> Array:
        """Documents in which a mention has several right links, and it is not known which."""
        self.known_clusters()
        is_open = np.add.reduceat(self.kind == 0, self.packed.starts[:-1]) > 1
        if self._known.size:
            is_open &= self._known < 0
        return np.flatnonzero(np.logical_or.reduceat(is_open, self.offsets[:-1]))

    def exact(self) -> Self:
        return self

    def digest(self) -> str:
        packed = self.packed
        return checksum(packed.table, packed.starts, packed.offsets, self.kind, self._known, np.array(self.costs))

    def units(self) -> Array:
        """The number of mentions per document: what a mean loss is taken over."""
        return np.diff(self.offsets).astype(np.float64)

    @property
    def operations(self) -> float:
        """Additions of one pass, roughly."""
        return float(self.packed.table.size)

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self.starts(rows)
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
        code = self.read_code(code, rows)
        starts = self.starts(rows)
        return Ragged(self.clusters_of(code, rows), starts), Ragged(self._parents(code, rows), starts)

    def clusters_of(self, code: Array, rows: Rows = None) -> Array:
        """The clusters that the links of a code make."""
        parents = self._parents(self.read_code(code, rows), rows)
        clusters = np.empty(parents.size, dtype=np.int64)
        if not number_clusters(self.starts(rows), parents, clusters):
            raise ValueError("the links of a code go in a circle; they must be a forest")
        return clusters

    def documents(self, rows: Rows) -> Array:
        """The documents of a call."""
        if rows is None:
            return np.arange(self.n_samples)
        if isinstance(rows, slice):
            return np.arange(*span(rows, self.n_samples))
        return np.asarray(rows, dtype=np.int64)

    def starts(self, rows: Rows) -> Array:
        """Where the documents begin in a code of these rows, and its length."""
        if rows is None:
            return np.asarray(self.offsets)
        sizes = np.diff(self.offsets)[self.documents(rows)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def padded(self, w: Array) -> Array:
        """The weights by value, 0 for the value 0 of every template."""
        if np.shape(w) != (self.n_params,):
            raise ValueError(f"w has shape {np.shape(w)}, and {self.n_params} weights are needed")
        out = np.zeros(self._places[-1] + 1)
        out[self._places] = w
        return out

    def unpadded(self, sums: Array) -> Array:
        """The inverse of `padded`."""
        return np.asarray(sums[self._places])

    def layout(self, rows: Rows) -> tuple[Array, Array, Array]:
        """The documents of a call, and where mentions and rows begin: the first arguments of every kernel."""
        return self.documents(rows), self.packed.offsets, self.packed.starts

    def mentions(self, rows: Rows) -> Array:
        """The mentions of a call, counted through all documents."""
        return np.asarray(states_of(self.offsets, self.documents(rows))[0])

    def slots_of(self, later: Array, earlier: Array, rows: Rows) -> Array:
        """The place of one pair per mention among the rows of its later mention, −1 where it is no candidate."""
        slots = np.empty(later.size, dtype=np.int64)
        find_slots(*self.layout(rows), self.packed.table, later, earlier, slots)
        return slots

    def read_code(self, code: Array, rows: Rows = None) -> Array:
        """A code of these rows, checked: kernels go where it says."""
        code = np.asarray(code, dtype=np.int64)
        mentions = self.mentions(rows)
        if code.shape != mentions.shape:
            raise ValueError(
                f"a code of shape {code.shape} for documents of {mentions.size} mentions; it has one number per mention"
            )
        if code.size and code.min() < 0:
            raise ValueError(f"code[{np.argmin(code)}] is {code.min()}: replace TARGET by the target's own code")
        most = self._most(mentions)
        if (code >= most).any():
            m = int(np.argmax(code >= most))
            raise ValueError(f"code[{m}] is {code[m]}, and mention {m} has only {most[m]} ways to link")
        return code

    def read_wishes(self, prefer: Any, rows: Rows) -> Array:
        """Links that win ties, one number per mention; those that no mention has are left to who compares them."""
        wished = np.asarray(prefer, dtype=np.int64)
        if wished.shape != self.mentions(rows).shape:
            raise ValueError(
                f"prefer has shape {wished.shape} for documents of {self.mentions(rows).size} mentions; it has one "
                "number per mention"
            )
        return wished

    @abstractmethod
    def _most(self, mentions: Array) -> Array:
        """How many values the code of each mention may have."""

"""The base of both coreference oracles: packed pairs, weights by value, clusters of links."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Rows, checksum, locate, span
from tacit.data.parameters import as_array, is_list, is_whole, numbers, shorten
from tacit.data.ragged import Ragged
from tacit.oracle import Schema
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.text.coreference.kernels import find_slots, number_clusters
from tacit.text.coreference.pairs import FIRST_FEATURE, MentionPairs
from tacit.text.documents import first_occurrence, previous_same

NOTHING = np.zeros(0, dtype=np.int64)


class LinkOracle(PartsOracle):
    """Clusters of mentions with hidden links. A code has one integer per mention.

    Parameters
    ----------
    packed : the pairs
    schema : one block of weights per template
    clusters : (mentions,) the true clusters; None when predicting
    links : (mentions,) the known links, −1 where unknown
    costs : the loss of a missed link, of a wrong link, and of a link on the first mention of a cluster
    """

    nouns = Nouns("Coreference", "documents", "mention", "cluster")

    def __init__(
        self, packed: Packed, schema: Schema, clusters: Array | None, links: Array | None, costs: tuple[float, ...]
    ) -> None:
        self.packed = packed
        self._full = np.diff(packed.starts)
        self._n_ways = self._count_ways()
        super().__init__(schema, packed.offsets, int(self._n_ways.max()), labels=clusters)
        sizes = np.array([shape[0] for shape in schema.blocks.values()])
        # each block is preceded by the weight of the value 0, which is 0
        self.base = np.concatenate([np.zeros(FIRST_FEATURE), np.cumsum([0, *(sizes[:-1] + 1)])]).astype(np.int64)
        self._weight_positions = np.concatenate(
            [b + 1 + np.arange(n) for b, n in zip(self.base[FIRST_FEATURE:], sizes, strict=True)]
        )
        self.costs = tuple(float(cost) for cost in costs)
        self.kind = np.zeros(len(packed.table), np.uint8) if clusters is None else kinds_of(packed, clusters)
        is_known = links is not None and bool((links >= 0).any())
        self._known_links = self._read_known(links) if is_known else NOTHING

    @abstractmethod
    def _read_known(self, links: Any) -> Array:
        """The code of partly known links, −1 where they are unknown."""

    @abstractmethod
    def _parents(self, code: Array, rows: Rows) -> Array:
        """The parent of every mention in a code."""

    @abstractmethod
    def _code(self, parents: Array, rows: Rows) -> Array:
        """The code of parents; raise if one is not a candidate."""

    @abstractmethod
    def _best_right(self, values: Array) -> Array:
        """The code of the best links by a value per row; −inf excludes rows."""

    def draw(self, rng: np.random.Generator) -> Array:
        """Random right links; known links stay."""
        self._clusters()
        return self._with_known(self._best_right(np.where(self.kind == RIGHT, rng.random(self.kind.size), -np.inf)))

    def proposals(self, most: int) -> list[Array]:
        """One start: links to the closest mentions of the cluster."""
        self._clusters()
        closeness = self.packed.table[:, 1].astype(float) - self.packed.table[:, 0]
        return [self._with_known(self._best_right(np.where(self.kind == RIGHT, closeness, -np.inf)))][:most]

    @abstractmethod
    def _count_ways(self) -> Array:
        """(mentions,) how many values the code of each mention may have."""

    def _clusters(self, rows: Rows = None) -> Array:
        """The true clusters of these mentions; raise if the documents were bound without them."""
        return self._true_labels(rows, unseen=True)

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same documents with the links of a code; known links stay."""
        if hidden is None:
            return self
        return self._with(_known_links=self._with_known(self._read(hidden)).astype(np.int64))

    def with_loss(self, losses: Any) -> Self:
        """The same documents with other `costs`."""
        costs = numbers("losses", losses)
        if costs.shape != (3,) or not (np.isfinite(costs).all() and (costs >= 0).all()):
            raise ValueError(f"losses must be three numbers from 0, got {shorten(losses)}")
        return self._with(costs=tuple(costs.tolist()))

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        self.clusters_of(code, rows)
        return True

    def hidden_unknown(self) -> Array:
        """Documents with a mention that has several right links, and none of them is known."""
        self._clusters()
        is_open = np.add.reduceat(self.kind == 0, self.packed.starts[:-1]) > 1
        if self._known_links.size:
            is_open &= self._known_links < 0
        return np.flatnonzero(np.logical_or.reduceat(is_open, self.offsets[:-1]))

    def digest(self) -> str:
        packed = self.packed
        return checksum(packed.table, packed.starts, packed.offsets, self.kind, self._known_links, np.array(self.costs))

    def units(self) -> Array:
        """The number of mentions per document, for mean losses."""
        return np.diff(self.offsets).astype(np.float64)

    @property
    def operations(self) -> float:
        """Additions of one pass, roughly."""
        return float(self.packed.table.size)

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self._starts(rows)
        clusters = read_clusters(labels, starts)
        if hidden is None:
            raise ValueError("hidden must be the mention that each mention links to, as only links have a code")
        parents = read_links(hidden, starts)
        if (parents < 0).any():
            i, m = locate(starts, int(np.argmin(parents)))
            raise ValueError(f"hidden[{i}][{m}] is unknown; only complete links have a code")
        code = self._code(parents, rows)
        wrong = np.flatnonzero(self.clusters_of(code, rows) != clusters)
        if wrong.size:
            i, m = locate(starts, int(wrong[0]))
            raise ValueError(f"hidden[{i}] links mention {m} to another cluster than its label; correct one of them")
        return code

    def decode(self, code: Array, rows: Rows = None) -> tuple[Ragged, Ragged]:
        """Clusters, numbered by first occurrence, and the mention that each mention links to: itself if it is new."""
        code = self._read(code, rows)
        starts = self._starts(rows)
        return Ragged(self.clusters_of(code, rows), starts), Ragged(self._parents(code, rows), starts)

    def clusters_of(self, code: Array, rows: Rows = None) -> Array:
        """The clusters of a code."""
        parents = self._parents(self._read(code, rows), rows)
        clusters = np.empty(parents.size, dtype=np.int64)
        if not number_clusters(self._starts(rows), parents, clusters):
            raise ValueError("the links of a code must be a forest, got a cycle")
        return clusters

    def documents(self, rows: Rows) -> Array:
        """The documents of a call."""
        if rows is None or isinstance(rows, slice):
            return np.arange(*span(rows or slice(None), self.n_samples))
        return np.asarray(rows, dtype=np.int64)

    def pad(self, w: Array) -> Array:
        """Insert a weight of 0 for the value 0 of every template."""
        if np.shape(w) != (self.n_params,):
            raise ValueError(f"w must have shape ({self.n_params},), got {np.shape(w)}")
        out = np.zeros(self._weight_positions[-1] + 1)
        out[self._weight_positions] = w
        return out

    def unpad(self, sums: Array) -> Array:
        """The inverse of `pad`."""
        return np.asarray(sums[self._weight_positions])

    def layout(self, rows: Rows) -> tuple[Array, Array, Array]:
        """The first arguments of every kernel: the documents of a call, and where mentions and rows begin."""
        return self.documents(rows), self.packed.offsets, self.packed.starts

    def _own(self, rows: Rows) -> Array:
        """The number of every mention in its document."""
        starts = self._starts(rows)
        return np.asarray(np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts)))

    def _with_known(self, code: Array) -> Array:
        """A code of all documents with its known links replaced."""
        known = self._known_links
        return np.asarray(np.where(known >= 0, known, code) if known.size else code, dtype=self._code_type)

    def slots_of(self, later: Array, earlier: Array, rows: Rows) -> Array:
        """The slot of one pair per mention among the rows of its later mention, −1 if it is not a candidate."""
        slots = np.empty(later.size, dtype=np.int64)
        find_slots(*self.layout(rows), self.packed.table, later, earlier, slots)
        return slots

    def _read(self, code: Array, rows: Rows = None) -> Array:
        code = super()._read(code, rows)
        most = self._n_ways[self._positions(rows)]
        if (code >= most).any():
            m = int(np.argmax(code >= most))
            raise ValueError(f"code[{m}] must be below {most[m]}, the number of possible links, got {code[m]}")
        return code

    def read_preferred(self, prefer: Any, rows: Rows) -> Array:
        """Read the links that win ties, one number per mention; numbers out of range have no effect."""
        preferred, n = np.asarray(prefer, dtype=np.int64), int(self._starts(rows)[-1])
        if preferred.shape != (n,):
            raise ValueError(f"prefer must have shape ({n},), one number per mention, got {preferred.shape}")
        return preferred


RIGHT, MISSED, WRONG, NEEDLESS = range(4)
"""The kinds of a row: right; "new" for a mention that is not the first of its cluster; a link of such a mention to
another cluster; a link of the first mention of a cluster."""


@dataclass(frozen=True)
class Packed:
    """Pairs in flat arrays.

    Parameters
    ----------
    table : (rows, 2 + templates) uint16: later and earlier mention, and values
    starts : where the rows of every mention begin, and where the last end
    offsets : where the mentions of every document begin, and where the last end
    limit : how many rows of every mention are used in prediction; the others were added for training
    """

    table: Array
    starts: Array
    offsets: Array
    limit: Array

    @property
    def n_mentions(self) -> int:
        return int(self.offsets[-1])


def pack(pairs: Ragged, sizes: tuple[int, ...], clusters: Array | None = None, links: Array | None = None) -> Packed:
    """Pack checked pairs; a mention without a right link gets one, if `MentionPairs` can make it.

    Parameters
    ----------
    pairs : as `tacit.text.coreference.pairs.read_pairs` returns them
    sizes : the number of values of each feature; larger values, which training did not have, become 0
    clusters : one number per mention of all documents; None when predicting
    links : the known link of every mention: an earlier mention, itself if it is new, −1 if it is unknown
    """
    table = _limit_values(pairs.values, sizes)
    starts = np.append(np.flatnonzero(table[:, 0] == table[:, 1]), len(table))
    packed = Packed(np.ascontiguousarray(table), starts, mention_offsets(pairs), np.diff(starts))
    if clusters is None:
        return packed
    packed = _with_rows(packed, pairs, _missing_links(packed, clusters, links))
    return replace(packed, table=_limit_values(packed.table, sizes))  # rows of `makers` may have any value


def _limit_values(table: Array, sizes: tuple[int, ...]) -> Array:
    """The rows with 0 for feature values beyond their number: kernels use values as indices."""
    features = table[:, FIRST_FEATURE:]
    if features.size and (features.max(axis=0) > np.array(sizes)).any():
        table = table.copy()
        table[:, FIRST_FEATURE:][features > np.array(sizes)] = 0
    return table


def mention_offsets(pairs: Ragged) -> Array:
    """Where the mentions of every document begin."""
    is_new = pairs.values[:, 0] == pairs.values[:, 1]
    return np.concatenate([[0], np.cumsum(np.add.reduceat(is_new, pairs.offsets[:-1]))]).astype(np.int64)


def _missing_links(packed: Packed, clusters: Array, links: Array | None) -> Array:
    """The link that must be added for every mention, −1 for none."""
    owner = owners(packed)
    first = packed.offsets[document_of(packed)]
    earlier = packed.table[:, 1].astype(np.int64)
    is_link = packed.table[:, 0] != packed.table[:, 1]
    right = is_link & (clusters[owner] == clusters[first[owner] + earlier])
    previous = closest_before(clusters, packed.offsets)
    needs = (np.add.reduceat(right, packed.starts[:-1]) == 0) & (previous >= 0)
    missing = np.where(needs, previous - first, -1)
    if links is not None:
        known = np.where(links == np.arange(links.size) - first, -1, links)  # every mention has the link to itself
        has = np.add.reduceat(is_link & (earlier == known[owner]), packed.starts[:-1]) > 0
        missing = np.where((known >= 0) & ~has, known, np.where(known >= 0, -1, missing))
    return np.asarray(missing)


def _with_rows(packed: Packed, pairs: Ragged, missing: Array) -> Packed:
    """Add these links after the other rows of their mentions."""
    mentions = np.flatnonzero(missing >= 0)
    if not mentions.size:
        return packed
    makers = pairs.makers if isinstance(pairs, MentionPairs) else None
    document = document_of(packed)[mentions]
    if makers is None:
        i, later = int(document[0]), int(mentions[0] - packed.offsets[document[0]])
        raise ValueError(
            f"mention {later} of document {i} lacks a right link; add the row ({later}, {missing[mentions[0]]}), or "
            "use tacit.text.mention_pairs"
        )
    added = np.empty((mentions.size, packed.table.shape[1]), dtype=np.uint16)
    added[:, 1] = missing[mentions]
    for i in np.unique(document):
        own = np.flatnonzero(document == i)
        added[own, 0] = mentions[own] - packed.offsets[i]
        added[own, FIRST_FEATURE:] = makers[i](added[own, 0].astype(np.int64), added[own, 1].astype(np.int64))
    table = np.insert(packed.table, packed.starts[mentions + 1], added, axis=0)
    starts = packed.starts + np.concatenate([[0], np.cumsum(missing >= 0)])
    return Packed(table, starts, packed.offsets, packed.limit)


def kinds_of(packed: Packed, clusters: Array) -> Array:
    """The kind of every row: `RIGHT`, `MISSED`, `WRONG` or `NEEDLESS`."""
    owner = owners(packed)
    first = packed.offsets[document_of(packed)]
    is_new = packed.table[:, 0] == packed.table[:, 1]
    same = clusters[owner] == clusters[first[owner] + packed.table[:, 1].astype(np.int64)]
    has_earlier = (closest_before(clusters, packed.offsets) >= 0)[owner]
    kind = np.where(
        is_new, np.where(has_earlier, MISSED, RIGHT), np.where(same, RIGHT, np.where(has_earlier, WRONG, NEEDLESS))
    )
    return kind.astype(np.uint8)


def owners(packed: Packed) -> Array:
    """The mention that each row belongs to."""
    return np.repeat(np.arange(packed.n_mentions), np.diff(packed.starts))


def document_of(packed: Packed) -> Array:
    """The document that each mention belongs to."""
    return np.repeat(np.arange(packed.offsets.size - 1), np.diff(packed.offsets))


def closest_before(clusters: Array, offsets: Array) -> Array:
    """The closest earlier mention of the same cluster of the same document, −1 if there is none.

    >>> closest_before(np.array([0, 1, 0, 0, 1]), np.array([0, 3, 5]))
    array([-1, -1,  0, -1, -1])
    """
    document = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return previous_same(document * (clusters.max(initial=0) + 1) + clusters)


def read_clusters(y: Any, offsets: Array) -> Array:
    """Read one number per mention of all documents; number clusters per document by first occurrence."""
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    parts = _per_document(y, offsets, "y", "clusters")
    return np.concatenate([first_occurrence(part) for part in parts])


def read_links(hidden: Any, offsets: Array) -> Array:
    """Read the known links of all mentions, −1 for unknown; −1 or None stands for all links of a document."""
    listed = list(hidden) if is_list(hidden) else [hidden]
    sizes = np.diff(offsets)
    if len(listed) == sizes.size:
        listed = [
            np.full(n, -1) if entry is None or (is_whole(entry) and entry == -1) else entry
            for entry, n in zip(listed, sizes, strict=True)
        ]
    links = np.concatenate(_per_document(listed, offsets, "hidden", "links"))
    wrong = np.flatnonzero((links < -1) | (links >= np.repeat(sizes, sizes)))
    if wrong.size:
        i, m = locate(offsets, int(wrong[0]))
        raise ValueError(f"hidden[{i}][{m}] must be a mention from 0 to {sizes[i] - 1}, or -1, got {links[wrong[0]]}")
    return links


def _per_document(values: Any, offsets: Array, name: str, what: str) -> list[Array]:
    sizes = np.diff(offsets)
    listed = list(values) if is_list(values) and not isinstance(values, str | bytes | dict) else []
    if len(listed) != sizes.size:
        raise ValueError(f"X has {sizes.size} documents, but {name} has {len(listed)}; give the {what} of each")
    parts = []
    for i, entry in enumerate(listed):
        part = as_array(entry)
        if part.dtype.kind == "f" and part.size and np.isfinite(part).all() and (part == part // 1).all():
            part = part.astype(np.int64)
        if part.shape != (sizes[i],) or part.dtype.kind not in "iu":
            raise ValueError(f"{name}[{i}] must be {sizes[i]} whole numbers, one per mention, got {shorten(entry)}")
        parts.append(part.astype(np.int64))
    return parts

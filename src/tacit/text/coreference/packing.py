"""Pairs of all documents in flat arrays, with what choosing each of them would mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.parameters import is_list, is_whole, shorten
from tacit.data.ragged import Ragged
from tacit.text.files.documents import first_occurrence
from tacit.text.mentions.pairs import FIRST_FEATURE, MentionPairs

RIGHT, MISSED, WRONG, NEEDLESS = range(4)
"""The kinds of a row: it agrees with the clusters; it makes a mention new that has an earlier one in its cluster; it
links such a mention to another cluster; it links the first mention of a cluster."""


@dataclass(frozen=True)
class Packed:
    """Pairs in flat arrays.

    Parameters
    ----------
    table : (rows, 2 + templates) uint16: later and earlier mention, and values
    starts : where the rows of every mention begin, and where the last end
    offsets : where the mentions of every document begin, and where the last end
    limit : how many rows of every mention prediction may choose from; those behind were added for training
    """

    table: Array
    starts: Array
    offsets: Array
    limit: Array

    @property
    def n_mentions(self) -> int:
        return int(self.offsets[-1])


def pack(pairs: Ragged, sizes: tuple[int, ...], clusters: Array | None = None, links: Array | None = None) -> Packed:
    """Pack checked pairs; a mention none of whose links is right gets one, if the pairs know how to make it.

    Parameters
    ----------
    pairs : as `tacit.text.mentions.pairs.read_pairs` returns them
    sizes : values of each feature; larger ones were never seen in training, and count as nothing
    clusters : one number per mention of all documents; None when predicting
    links : the earlier mention that every mention is known to link to, itself if it is new, −1 if nothing is known
    """
    table = pairs.values
    features = table[:, FIRST_FEATURE:]
    if features.size and (features.max(axis=0) > np.array(sizes)).any():
        table = table.copy()
        table[:, FIRST_FEATURE:][features > np.array(sizes)] = 0
    is_new = table[:, 0] == table[:, 1]
    starts = np.append(np.flatnonzero(is_new), len(table))
    offsets = np.concatenate([[0], np.cumsum(np.add.reduceat(is_new, pairs.offsets[:-1]))]).astype(np.int64)
    packed = Packed(np.ascontiguousarray(table), starts, offsets, np.diff(starts))
    if clusters is None:
        return packed
    return _with_rows(packed, pairs, _missing_links(packed, clusters, links))


def _missing_links(packed: Packed, clusters: Array, links: Array | None) -> Array:
    """The earlier mention that must be added for every mention, −1 for none."""
    owner = owners(packed)
    first = packed.offsets[document_of(packed)]
    earlier = packed.table[:, 1].astype(np.int64)
    is_link = packed.table[:, 0] != packed.table[:, 1]
    right = is_link & (clusters[owner] == clusters[first[owner] + earlier])
    previous = closest_before(clusters, packed.offsets)
    needs = (np.add.reduceat(right, packed.starts[:-1]) == 0) & (previous >= 0)
    missing = np.where(needs, previous - first, -1)
    if links is not None:
        wished = np.where(links == np.arange(links.size) - first, -1, links)  # itself: new, which every mention has
        has = np.add.reduceat(is_link & (earlier == wished[owner]), packed.starts[:-1]) > 0
        missing = np.where((wished >= 0) & ~has, wished, np.where(wished >= 0, -1, missing))
    return np.asarray(missing)


def _with_rows(packed: Packed, pairs: Ragged, missing: Array) -> Packed:
    """The same pairs, with these links added behind those of their mentions."""
    mentions = np.flatnonzero(missing >= 0)
    if not mentions.size:
        return packed
    makers = pairs.makers if isinstance(pairs, MentionPairs) else None
    document = document_of(packed)[mentions]
    if makers is None:
        i, later = int(document[0]), int(mentions[0] - packed.offsets[document[0]])
        raise ValueError(
            f"mention {later} of document {i} can link to none of its cluster: the pair "
            f"({later}, {missing[mentions[0]]}) is not among the rows; add it, or let "
            "tacit.text.mentions.pairing make the rows"
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
    """What choosing each row would mean: `RIGHT`, `MISSED`, `WRONG` or `NEEDLESS`, one byte per row."""
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
    """The closest earlier mention of the same cluster of the same document, −1 where there is none.

    >>> closest_before(np.array([0, 1, 0, 0, 1]), np.array([0, 3, 5]))
    array([-1, -1,  0, -1, -1])
    """
    document = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    order = np.lexsort((np.arange(clusters.size), clusters, document))
    same = (np.diff(clusters[order]) == 0) & (np.diff(document[order]) == 0)
    before = np.full(clusters.size, -1)
    before[order[1:][same]] = order[:-1][same]
    return before


def read_clusters(y: Any, offsets: Array) -> Array:
    """One number per mention of all documents, numbered in every document by first occurrence."""
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    parts = _per_document(y, offsets, "y", "clusters")
    return np.concatenate([first_occurrence(part) for part in parts])


def read_links(hidden: Any, offsets: Array) -> Array:
    """The known links of all mentions, −1 for unknown; a document may have −1 or None in place of its links."""
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
        raise ValueError(f"hidden[{i}][{m}] is {links[wrong[0]]}; document {i} has mentions 0 to {sizes[i] - 1}")
    return links


def _per_document(values: Any, offsets: Array, name: str, what: str) -> list[Array]:
    sizes = np.diff(offsets)
    listed = list(values) if is_list(values) and not isinstance(values, str | bytes | dict) else []
    if len(listed) != sizes.size:
        raise ValueError(f"X has {sizes.size} documents, {name} has {len(listed)}; give the {what} of each")
    parts = []
    for i, entry in enumerate(listed):
        try:
            part = np.asarray(entry)
        except ValueError:
            part = np.empty(())
        if part.dtype.kind == "f" and part.size and np.isfinite(part).all() and (part == part // 1).all():
            part = part.astype(np.int64)
        if part.shape != (sizes[i],) or part.dtype.kind not in "iu":
            raise ValueError(
                f"{name}[{i}] is {shorten(entry)}, and document {i} has {sizes[i]} mentions; give one whole number each"
            )
        parts.append(part.astype(np.int64))
    return parts

"""Motifs that lie on top of each other: two windows on one site that is longer than a motif."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.finder.settings import LONGEST_MOTIF
from tacit.dna.finder.shapes import FoundMotif, Overlap, Sites

LEAST_SHARE = 0.5
"""The share of a motif's sites that must lie at one distance from those of another to be called an overlap."""

COPY_CORRELATION, MOST_BITS_OUTSIDE = 0.75, 0.25
"""A motif is a copy of another one if their letters are as alike as this where they overlap, and if it has less than
this share of its information elsewhere."""


def mark_overlaps(
    motifs: Sequence[FoundMotif], order: Sequence[int], sites: Sites, is_positive: Array
) -> list[FoundMotif]:
    """The motifs, each with the one before it that its sites lie on, if there is such a one.

    Parameters
    ----------
    motifs : in the order in which they are shown
    order : the column of ``sites`` of each
    sites, is_positive : of all sequences
    """
    has_site = [(sites.value[:, m] > motif.least_score) & is_positive for m, motif in zip(order, motifs, strict=True)]
    marked = []
    for place, (m, motif) in enumerate(zip(order, motifs, strict=True)):
        found = [find_overlap(sites, has_site[k], has_site[place], m, order[k], number=k + 1) for k in range(place)]
        best = max((one for one in found if one is not None), key=lambda one: one.share, default=None)
        marked.append(replace(motif, overlap=best))
    return marked


def find_copies(motifs: Sequence[FoundMotif], sites: Sites, is_positive: Array) -> set[int]:
    """Motifs, counted from 0, that only repeat one before them: the same sites and letters, hardly any beyond.

    A penalised motif is weaker than the best one, so that a second copy of it predicts better; it tells nothing new.
    """
    marked = mark_overlaps(motifs, range(len(motifs)), sites, is_positive)
    return {
        m
        for m, motif in enumerate(marked)
        if motif.overlap is not None and _repeats(motif, motif.overlap, motifs[motif.overlap.motif - 1])
    }


def _repeats(motif: FoundMotif, found: Overlap, other: FoundMotif) -> bool:
    """Whether a motif that overlaps another one has the same letters, and hardly any outside of it."""
    shares, bits = motif.probabilities, motif.bits_by_position
    if found.is_turned:
        shares, bits = shares[::-1, ::-1], bits[::-1]
    place = np.arange(motif.width) + found.offset
    inside = (place >= 0) & (place < other.width)
    ours, theirs = shares[inside].ravel(), other.probabilities[place[inside]].ravel()
    alike = float(np.corrcoef(ours, theirs)[0, 1]) >= COPY_CORRELATION
    return alike and float(bits[~inside].sum()) < MOST_BITS_OUTSIDE * motif.bits


def find_overlap(sites: Sites, earlier: Array, later: Array, m: int, other: int, number: int) -> Overlap | None:
    """Whether most sites of motif ``m`` lie on those of the motif ``other``, at one distance.

    Both sides count, because a palindrome is found on either strand; the side and strand that are told are the usual
    ones.

    Parameters
    ----------
    sites : of all motifs in all sequences
    earlier, later : which sequences hold a site of ``other``, and one of ``m``
    m, other : columns of ``sites``
    number : of the other motif, as it is shown

    >>> start = np.array([[10, 14], [20, 24], [33, 29], [5, 40]])
    >>> strand = np.array([[0, 0], [0, 0], [1, 1], [0, 0]])
    >>> sites, everywhere = Sites(start, strand, np.ones((4, 2)), 8), np.ones(4, dtype=bool)
    >>> find_overlap(sites, everywhere, everywhere, 1, 0, number=1)
    Overlap(motif=1, offset=4, is_turned=False, share=0.75)
    """
    rows = np.flatnonzero(earlier & later)
    if not rows.size:
        return None
    shift = sites.start[rows, m] - sites.start[rows, other]
    shift = np.where(sites.strand[rows, other] == 1, -shift, shift)
    is_turned = sites.strand[rows, m] != sites.strand[rows, other]
    distance = np.abs(shift)
    counts = np.bincount(distance[distance < sites.width], minlength=1)
    if counts.max() < LEAST_SHARE * later.sum():
        return None
    usual = distance == counts.argmax()
    kinds, times = np.unique(np.column_stack([shift, is_turned])[usual], axis=0, return_counts=True)
    offset, turned = kinds[times.argmax()].tolist()
    return Overlap(number, int(offset), bool(turned), float(counts.max() / later.sum()))


def tell_overlap(motif: FoundMotif) -> str:
    """What a reader should know about an overlap; nothing if there is none."""
    found = motif.overlap
    if found is None:
        return ""
    turned = ", on the other strand" if found.is_turned else ""
    told = f"overlaps motif {found.motif} at offset {found.offset:+d}{turned} in {found.share:.0%} of its sites"
    whole = motif.width + abs(found.offset)
    if not found.offset:
        return f"{told}: another form of the same site"
    return f"{told}: probably one longer site" + (f", try width {whole}" if whole <= LONGEST_MOTIF else "")

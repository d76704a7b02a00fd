"""Motifs as position weight matrices (PWM): letters at their sites, consensus, and overlaps with other motifs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import (
    check_parameters,
    choice,
    instance,
    not_negative,
    optional,
    parameter,
    share,
    switch,
    table,
    whole,
)
from tacit.dna.sequences import ALPHABETS, DNA, Alphabet
from tacit.runtime.archive import storable

LONGEST_MOTIF = 40

__all__ = ["FoundMotif", "Overlap"]

PSEUDOCOUNT = 1.0
"""Pseudocounts that are added to each position, in the proportions of the background."""

NEGATIVES_WITH_SITE = 0.1
"""The share of negative sequences whose best site counts as a site."""

LONGEST_OFFSET = 100
"""Largest distance, in letters, of two sites that overlap: motifs are shorter."""

LEAST_SHARE = 0.5
"""An overlap: at least this share of a motif's sites lies at one distance from those of another motif."""

COPY_CORRELATION, MOST_BITS_OUTSIDE = 0.75, 0.25
"""A motif is a copy of another one if their letters correlate by at least the first number where they overlap, and if
less than the second share of its information lies outside the overlap."""


LEAST_BITS = 0.15
"""Information of a conserved position against the letters of all sequences."""

PART_BITS = 1.0
"""Information of each of the two parts that a gap separates."""

LEAST_SPACER = 2
"""Positions without information that make a gap."""


class Spacer(NamedTuple):
    """A gap of a motif: the first of its positions, and how many they are."""

    start: int
    length: int


class Sites(NamedTuple):
    """The best site of every motif in every sequence: (sequences, motifs) each. ``start`` counts from the first letter
    of the sequence, and may be negative; ``value`` is 0 without a site."""

    start: Array
    strand: Array
    value: Array
    width: int

    def of_motif(self, m: int) -> Sites:
        """The sites of one motif."""
        return Sites(self.start[:, [m]], self.strand[:, [m]], self.value[:, [m]], self.width)


@storable
@dataclass(frozen=True)
class Overlap:
    """Most sites of a motif lie on those of another one, at one distance.

    Parameters
    ----------
    motif : the number of the other motif, from 1
    offset : letters from the start of its site to the start of ours, along its strand, where it is most frequent
    on_other_strand : whether our site is then on the other strand
    share : of our sites at this distance, on either side
    """

    motif: int = parameter(whole())
    offset: int = parameter(whole(-LONGEST_OFFSET, LONGEST_OFFSET))
    on_other_strand: bool = parameter(switch)
    share: float = parameter(share)

    @classmethod
    def from_old_parts(cls, is_turned: bool = False, **parts: Any) -> Overlap:
        """An overlap of a model file, also of one where ``on_other_strand`` is called ``is_turned``."""
        return cls(**{"on_other_strand": is_turned, **parts})

    check = check_parameters


@storable
@dataclass(frozen=True)
class FoundMotif:
    """A motif that was found.

    Parameters
    ----------
    counts : (width, letters) how often A, C, G, T occur at each position of the sites in positive sequences
    background : (letters,) shares of A, C, G, T in all sequences
    consensus : one letter of the IUPAC code per position
    least_score : that a site must exceed: nine of ten negative sequences are without one
    p_value : on held-out sequences, given composition and the motifs before it
    e_value : p-value times the number of motifs tested: how many would be as good by chance
    is_significant : whether ``e_value`` is below alpha
    sites : number of positive sequences with a site
    in_positives, in_negatives : shares of sequences with a site
    agreement : the share of starts that ended at this motif
    overlap : with an earlier motif; None without one
    alphabet : "dna", "rna" or "protein"
    """

    counts: Array = parameter(table(None, None))
    background: Array = parameter(table(None))
    consensus: str = parameter(instance(str, "one letter per position"))
    least_score: float = parameter(not_negative)
    p_value: float = parameter(share)
    e_value: float = parameter(not_negative)
    is_significant: bool = parameter(switch)
    sites: int = parameter(whole(0))
    in_positives: float = parameter(share)
    in_negatives: float = parameter(share)
    agreement: float = parameter(share)
    overlap: Overlap | None = parameter(optional(instance(Overlap, "an Overlap")), default=None)
    alphabet: str = parameter(choice(*ALPHABETS), default="dna")

    @classmethod
    def from_old_parts(cls, **parts: Any) -> FoundMotif:
        """A motif of a model file, also of one whose p-value was already multiplied by the number of motifs."""
        return cls(**{"e_value": parts["p_value"], **parts})

    @property
    def width(self) -> int:
        return len(self.counts)

    @property
    def probabilities(self) -> Array:
        """(width, letters): shares of the letters, all above 0."""
        counts = self.counts + PSEUDOCOUNT * self.background
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    @property
    def bits_by_position(self) -> Array:
        """(width,): information against the background."""
        p = self.probabilities
        return np.asarray((p * np.log2(p / np.maximum(self.background, 1e-9))).sum(axis=1))

    @property
    def bits(self) -> float:
        """Information of all positions together."""
        return float(self.bits_by_position.sum())

    @property
    def spacer(self) -> Spacer | None:
        """The gap between two parts of the motif; None without one."""
        return find_spacer(self.bits_by_position)

    def check(self) -> None:
        """Refuse what no fit could have made."""
        check_parameters(self)
        if (self.counts < 0).any():
            raise ValueError(f"counts must not be below 0, got {shorten(self.counts)}")
        letters = ALPHABETS[self.alphabet]
        if self.counts.shape[1] != letters.size:
            raise ValueError(f"counts must have {letters.size} columns ({self.alphabet}), got {self.counts.shape[1]}")
        if self.background.size != letters.size or not (self.background > 0).all():
            raise ValueError(f"background must be {letters.size} shares above 0, got {shorten(self.background)}")
        if len(self.consensus) != len(self.counts) or not set(self.consensus) <= set(letters.meaning):
            raise ValueError(
                f"consensus must be one letter ({self.alphabet}) per position, got {shorten(self.consensus)}"
            )


def find_best_sites(problem: Any, schema: Any, w: Array, sequences: Ragged) -> Sites:
    """The best site of every motif in every sequence, positive or negative."""
    oracle = problem.bind(sequences, None, schema)
    code = oracle.best_under(w, np.ones(len(sequences), np.int64)).code
    hidden = oracle.decode(code)[1].reshape(len(sequences), schema.blocks["motif"][0], -1)
    start = hidden[..., 0]
    strand = hidden[..., 1] if hidden.shape[-1] == 2 else np.zeros_like(start)
    has_site = start >= 0
    start = np.where(has_site, start - problem.overhang, 0)
    alphabet = ALPHABETS[problem.alphabet]
    letters = site_letters(sequences, start, strand, problem.width, alphabet)
    value = np.einsum("nmwc,mwc->nm", alphabet.shares[letters], schema.views(w)["motif"])
    return Sites(start, strand * has_site, np.where(has_site, value, 0.0), int(problem.width))


def site_letters(sequences: Ragged, start: Array, strand: Array, width: int, alphabet: Alphabet = DNA) -> Array:
    """(sequences, motifs, width) letter codes of windows, N outside the sequence, read along their strand."""
    positions = start[..., None] + np.arange(width)
    inside = (positions >= 0) & (positions < sequences.lengths[:, None, None])
    flat = sequences.offsets[:-1][:, None, None] + np.where(inside, positions, 0)
    codes = np.where(inside, sequences.values[flat], alphabet.any_code)
    if not alphabet.has_complement:
        return codes
    return np.where(strand[..., None] == 1, alphabet.complement[codes[..., ::-1]], codes)


def describe_motif(
    sequences: Ragged,
    sites: Sites,
    is_positive: Array,
    m: int,
    p_value: float = 1.0,
    agreement: float = 0.0,
    alpha: float = 0.0,
    n_tested: int = 1,
    alphabet: Alphabet = DNA,
) -> FoundMotif:
    """Describe a motif by its sites in the positive sequences."""
    least = max(0.0, float(np.quantile(sites.value[~is_positive, m], 1 - NEGATIVES_WITH_SITE)))
    has_site = sites.value[:, m] > least
    rows = np.flatnonzero(has_site & is_positive)
    one = slice(m, m + 1)
    width = sites.width
    letters = site_letters(sequences[rows], sites.start[rows, one], sites.strand[rows, one], width, alphabet)[:, 0]
    background = share_letters(sequences, alphabet)
    counts = alphabet.shares[letters].sum(axis=0) if rows.size else np.tile(background, (width, 1))
    shares = (counts + background) / (counts + background).sum(axis=1, keepdims=True)
    return FoundMotif(
        counts=np.asarray(counts, dtype=np.float64),
        background=background,
        consensus=write_consensus(shares, alphabet),
        least_score=least,
        p_value=float(p_value),
        e_value=float(p_value) * n_tested,
        is_significant=bool(p_value * n_tested < alpha),
        sites=int(rows.size),
        in_positives=float(has_site[is_positive].mean()),
        in_negatives=float(has_site[~is_positive].mean()),
        agreement=float(agreement),
        alphabet=alphabet.name,
    )


def share_letters(sequences: Ragged, alphabet: Alphabet = DNA) -> Array:
    """(letters,): shares of the plain letters, of DNA on both strands; all above 0."""
    counts = np.bincount(sequences.values, minlength=len(alphabet.shares)) @ alphabet.shares
    counts = counts + counts[::-1] if alphabet.has_complement else counts
    return np.asarray((counts + 1.0) / (counts.sum() + alphabet.size))


def write_consensus(shares: Array, alphabet: Alphabet = DNA) -> str:
    """One letter per position, by the rule of Cavener (1987).

    This is a letter that has half of the sites and twice as many as the second, or the one for two letters that have
    three quarters. Else it is N, for protein X.

    >>> write_consensus(np.array([[0.9, 0.1, 0, 0], [0.4, 0, 0.4, 0.2], [0.25, 0.25, 0.25, 0.25]]))
    'ARN'
    """
    names = {frozenset(bases): letter for letter, bases in alphabet.meaning.items()}
    plain, unknown = alphabet.letters, list(alphabet.meaning)[-1]
    letters = []
    for column in shares:
        first, second = np.argsort(-column, kind="stable")[:2]
        if column[first] > 0.5 and column[first] > 2 * column[second]:
            letters.append(plain[first])
        elif column[first] + column[second] > 0.75:
            letters.append(names.get(frozenset((plain[first], plain[second])), unknown))
        else:
            letters.append(unknown)
    return "".join(letters)


def mark_overlaps(
    motifs: Sequence[FoundMotif], order: Sequence[int], sites: Sites, is_positive: Array
) -> list[FoundMotif]:
    """The motifs, each with its largest overlap with an earlier one; ``order`` has their columns in ``sites``."""
    has_site = [(sites.value[:, m] > motif.least_score) & is_positive for m, motif in zip(order, motifs, strict=True)]
    marked = []
    for i, (m, motif) in enumerate(zip(order, motifs, strict=True)):
        found = [find_overlap(sites, has_site[k], has_site[i], m, order[k], number=k + 1) for k in range(i)]
        best = max((one for one in found if one is not None), key=lambda one: one.share, default=None)
        marked.append(replace(motif, overlap=best))
    return marked


def find_copies(motifs: Sequence[FoundMotif], sites: Sites, is_positive: Array) -> set[int]:
    """Motifs, counted from 0, that only repeat an earlier one: the same sites and letters, hardly any beyond.

    The penalty weakens a motif, so a second copy of it predicts better without adding a motif.
    """
    marked = mark_overlaps(motifs, range(len(motifs)), sites, is_positive)
    return {
        m
        for m, motif in enumerate(marked)
        if motif.overlap is not None and _repeats(motif, motif.overlap, motifs[motif.overlap.motif - 1])
    }


def _repeats(motif: FoundMotif, found: Overlap, other: FoundMotif) -> bool:
    """Whether a motif that overlaps another one has the same letters there, and hardly any others."""
    shares, bits = motif.probabilities, motif.bits_by_position
    if found.on_other_strand:
        shares, bits = shares[::-1, ::-1], bits[::-1]
    position = np.arange(motif.width) + found.offset
    inside = (position >= 0) & (position < other.width)
    ours, theirs = shares[inside].ravel(), other.probabilities[position[inside]].ravel()
    alike = float(np.corrcoef(ours, theirs)[0, 1]) >= COPY_CORRELATION
    return alike and float(bits[~inside].sum()) < MOST_BITS_OUTSIDE * motif.bits


def find_overlap(sites: Sites, earlier: Array, later: Array, m: int, other: int, number: int) -> Overlap | None:
    """Whether most sites of motif ``m`` lie on those of the motif ``other``, at one distance.

    Both sides count, because a palindrome is found on either strand; the most frequent side and strand are returned.

    Parameters
    ----------
    sites : of all motifs in all sequences
    earlier, later : which sequences hold a site of ``other``, and one of ``m``
    m, other : columns of ``sites``
    number : of the other motif, from 1

    >>> start = np.array([[10, 14], [20, 24], [33, 29], [5, 40]])
    >>> strand = np.array([[0, 0], [0, 0], [1, 1], [0, 0]])
    >>> sites, everywhere = Sites(start, strand, np.ones((4, 2)), 8), np.ones(4, dtype=bool)
    >>> find_overlap(sites, everywhere, everywhere, 1, 0, number=1)
    Overlap(motif=1, offset=4, on_other_strand=False, share=0.75)
    """
    rows = np.flatnonzero(earlier & later)
    if not rows.size:
        return None
    shift = sites.start[rows, m] - sites.start[rows, other]
    shift = np.where(sites.strand[rows, other] == 1, -shift, shift)
    on_other_strand = sites.strand[rows, m] != sites.strand[rows, other]
    distance = np.abs(shift)
    counts = np.bincount(distance[distance < sites.width], minlength=1)
    if counts.max() < LEAST_SHARE * later.sum():
        return None
    usual = distance == counts.argmax()
    kinds, times = np.unique(np.column_stack([shift, on_other_strand])[usual], axis=0, return_counts=True)
    offset, is_other = kinds[times.argmax()].tolist()
    return Overlap(number, int(offset), bool(is_other), float(counts.max() / later.sum()))


def describe_overlap(motif: FoundMotif) -> str:
    """A sentence about the overlap of a motif; empty without one."""
    found = motif.overlap
    if found is None:
        return ""
    strand = ", on the other strand" if found.on_other_strand else ""
    text = f"overlaps motif {found.motif} at offset {found.offset:+d}{strand} in {found.share:.0%} of its sites"
    whole = motif.width + abs(found.offset)
    if not found.offset:
        return f"{text}: probably a variant of the same site"
    return f"{text}: probably one longer site" + (f"; try --width {whole}" if whole <= LONGEST_MOTIF else "")


def find_spacer(bits: Array) -> Spacer | None:
    """The longest run of positions without information between two parts that have some; None without one.

    >>> find_spacer(np.array([1.5, 1.8, 0.0, 0.05, 0.02, 1.2, 1.0]))
    Spacer(start=2, length=3)
    """
    strong = np.flatnonzero(bits >= LEAST_BITS)
    if strong.size < 2:
        return None
    gaps = np.diff(strong) - 1
    k = int(gaps.argmax())
    parts = bits[: strong[k] + 1].sum(), bits[strong[k + 1] :].sum()
    return Spacer(int(strong[k]) + 1, int(gaps[k])) if gaps[k] >= LEAST_SPACER and min(parts) >= PART_BITS else None


def describe_spacer(motif: FoundMotif) -> str:
    """A sentence about the gap of a motif; empty without one."""
    gap = motif.spacer
    if gap is None:
        return ""
    first, second = motif.consensus[: gap.start], motif.consensus[gap.start + gap.length :]
    return f"has two parts, {first.lstrip('NX')} and {second.rstrip('NX')}, with a spacer of {gap.length} letters"

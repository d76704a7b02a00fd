"""Motifs of many sets of sequences: each set has a finder, similar motifs are one row, and every set is a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import fisher_exact

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.finder.known import find_correlation
from tacit.dna.finder.shapes import FoundMotif, find_best_sites
from tacit.dna.sequences import append_flank, read_sequences, shuffle

SAME_MOTIF = 0.75
"""Correlation from which motifs of two sets are one row."""


class SharedMotif(NamedTuple):
    """A motif and the sets that it was found in.

    Parameters
    ----------
    motif : as it was found with the lowest E-value
    home : the set in which that was
    column : its number among the motifs of that set, from 0
    found_in : all sets in which a similar motif was found
    """

    motif: FoundMotif
    home: int
    column: int
    found_in: tuple[int, ...]


class Cell(NamedTuple):
    """One motif in one set.

    Parameters
    ----------
    share : of sequences with a site
    expected : the same in shuffles of the set; None where these were not made
    p_value : where the motif was found, that of the finder; elsewhere of Fisher's exact test, one-sided, against
        shuffles; None where the set was used to learn the motif
    """

    share: float
    expected: float | None
    p_value: float | None


def merge_motifs(finders: Sequence[Any]) -> list[SharedMotif]:
    """The motifs of all finders, similar ones together, the most significant first."""
    found = [(motif, i, m) for i, finder in enumerate(finders) for m, motif in enumerate(finder.motifs_)]
    found.sort(key=lambda one: (one[0].e_value, one[1], one[2]))
    rows: list[SharedMotif] = []
    for motif, i, m in found:
        sides = 2 if motif.alphabet == "dna" else 1
        alike = [find_correlation(row.motif.probabilities, motif.probabilities, sides) for row in rows]
        if alike and max(alike) >= SAME_MOTIF:
            k = int(np.argmax(alike))
            rows[k] = rows[k]._replace(found_in=tuple(sorted({*rows[k].found_in, i})))
        else:
            rows.append(SharedMotif(motif, i, m, (i,)))
    return rows


def compare_sets(
    rows: Sequence[SharedMotif],
    finders: Sequence[Any],
    sets: Sequence[Sequence[str]],
    against: str = "shuffles",
    seed: int = 0,
) -> list[list[Cell]]:
    """A row per motif and a cell per set.

    Parameters
    ----------
    rows : from `merge_motifs`
    finders : one per set
    sets : the sequences of each
    against : "shuffles", or "others" where finders learned from the other sets as negatives
    seed : of the shuffles
    """
    alphabet = finders[0].letters_
    letters = [read_sequences(list(one), alphabet) for one in sets]
    shuffled = [shuffle(one, seed, alphabet) for one in letters] if against == "shuffles" else []
    table = []
    for row in rows:
        finder, cells = finders[row.home], []
        for j, own in enumerate(letters):
            has_site = hold_site(finder, row, own)
            share = float(has_site.mean())
            p = row.motif.p_value if j == row.home else None
            if against != "shuffles":
                cells.append(Cell(share, None, p))
                continue
            by_chance = hold_site(finder, row, shuffled[j])
            if j != row.home:
                counts = [[part.sum(), part.size - part.sum()] for part in (has_site, by_chance)]
                p = float(fisher_exact(counts, alternative="greater").pvalue)
            cells.append(Cell(share, float(by_chance.mean()), p))
        table.append(cells)
    return table


def hold_site(finder: Any, row: SharedMotif, sequences: Ragged) -> Array:
    """(sequences,): which hold a site of a motif, as the finder of its home counts them."""
    with_flank = append_flank(sequences, finder.flank, finder.letters_)
    sites = find_best_sites(finder.problem_, finder.schema_, finder.coef_, with_flank)
    return np.asarray(sites.value[:, finder.motif_order_[row.column]] > row.motif.least_score)

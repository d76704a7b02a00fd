"""Significance tests and AUROC intervals on held-out sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import norm, rankdata

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.kmers import kmer_shares
from tacit.dna.sequences import DNA, Alphabet, orient

LEAST_ROWS = {3: 440, 2: 40}
"""By the length of k-mers: held-out sequences of the smaller class from which a motif is tested given their shares."""

SEPARATING_LENGTHS = 0.9
"""AUROC of the lengths above which a warning is given."""

SEPARATING_GC = 0.7
"""AUROC of the shares of G and C above which a warning is given."""

_RIDGE = 1e-3

_STEPS = 50


class Auroc(NamedTuple):
    """The area under the ROC curve, and its 95 % interval (DeLong et al. 1988)."""

    value: float
    low: float
    high: float


def auroc(score: Array, is_positive: Array) -> Auroc:
    """How often a positive has a higher score than a negative; ties count half.

    >>> auroc(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False])).value
    0.75
    """
    positive, negative = score[is_positive], score[~is_positive]
    ranks = rankdata(score)  # for each positive and negative its share of pairs that are in the right order:
    up = (ranks[is_positive] - rankdata(positive)) / negative.size
    down = 1 - (ranks[~is_positive] - rankdata(negative)) / positive.size
    value = float(up.mean())
    deviation = np.sqrt(sum(part.var(ddof=1) / part.size for part in (up, down) if part.size > 1))
    reach = norm.ppf(0.975) * float(deviation)
    return Auroc(value, max(value - reach, 0.0), min(value + reach, 1.0))


def motif_p_value(
    score: Array, others: Array, sequences: Ragged, is_positive: Array, strands: int, alphabet: Alphabet = DNA
) -> float:
    """The p-value of a motif on held-out sequences, given other motifs, composition and lengths.

    With few peptides the squares of the shares are left out: twenty more covariates would hide every motif.

    Parameters
    ----------
    score : (sequences,) of its best site
    others : (sequences, motifs) the same for the other motifs
    sequences, is_positive : held out
    strands : 1 or 2
    alphabet : of the sequences
    """
    rows = min(int(is_positive.sum()), int((~is_positive).sum()))
    usable = (length for length, least in LEAST_ROWS.items() if rows >= least and alphabet.size == 4)
    longest = next(usable, 1)
    given = [kmer_shares(sequences, longest, strands, alphabet), np.log(sequences.lengths)[:, None], others]
    if alphabet.size == 4 or rows >= LEAST_ROWS[2] * alphabet.size:
        given.append(kmer_shares(sequences, 1, strands, alphabet)[:, :-1] ** 2)
    return given_p_value(score, np.hstack(given), is_positive)


def share_masks(sequences: Ragged, is_positive: Array, seed: int, alphabet: Alphabet = DNA) -> Ragged:
    """The sequences, each also masked where one of the other class, drawn at random, is masked.

    Masked letters are fewer windows, so the best one is worse. With shared masks this is so in both classes. Letters
    that stand for several count as masked.

    >>> from tacit.dna.sequences import read_sequences, write_letters
    >>> write_letters(share_masks(read_sequences(["ACGT", "TNNA"]), np.array([True, False]), 0))
    ['ANNT', 'TNNA']
    """
    is_masked = sequences.values >= alphabet.size
    if not is_masked.any():
        return sequences
    rng = np.random.default_rng(seed)
    partner = np.empty(len(sequences), np.int64)
    for kind in (True, False):
        partner[is_positive == kind] = rng.choice(np.flatnonzero(is_positive != kind), int((is_positive == kind).sum()))
    of_letter = np.repeat(partner, sequences.lengths)
    place = np.arange(is_masked.size) - np.repeat(sequences.offsets[:-1], sequences.lengths)
    inside = place < sequences.lengths[of_letter]
    also = inside & is_masked[sequences.offsets[of_letter] + np.where(inside, place, 0)]
    return sequences.with_values(np.where(also, alphabet.any_code, sequences.values).astype(np.uint8))


def separation_warnings(lengths: float, gc: float) -> list[str]:
    """Warnings where lengths, or shares of G and C, alone separate the classes: by their AUROC.

    >>> separation_warnings(0.5, 0.55)
    []
    """
    lengths, gc = max(lengths, 1 - lengths), max(gc, 1 - gc)
    found = []
    if lengths >= SEPARATING_LENGTHS:
        found.append(
            f"the lengths of the sequences alone separate the classes (AUROC {lengths:.2f}); motifs are tested given "
            "the length, so hardly any can be significant: cut all sequences to one length"
        )
    if gc >= SEPARATING_GC:
        found.append(
            f"the shares of G and C alone separate the classes (AUROC {gc:.2f}); motifs are tested given composition, "
            "but matched negatives are better: --match-gc"
        )
    return found


def given_p_value(score: Array, covariates: Array, is_positive: Array) -> float:
    """The p-value of a motif: do sequences with a better site have higher odds of being positive, given covariates?

    The one-sided score test of one more feature in a logistic regression on the covariates. For weak motifs and many
    sequences it equals the Wald test; unlike that, it is valid where a motif separates the classes without error. The
    regression fits labels by chance too, so its variance is multiplied by n / (n − number of covariates).

    Parameters
    ----------
    score : (n,) the score of the best site, learned from other sequences
    covariates : (n, d) composition, and the scores of earlier motifs
    is_positive : (n,)

    >>> rng = np.random.default_rng(0)
    >>> label = np.arange(400) % 2 == 1
    >>> composition = rng.standard_normal((400, 3))
    >>> bool(given_p_value(label + rng.standard_normal(400), composition, label) < 1e-6)
    True
    """
    if np.ptp(score) == 0 or is_positive.all() or not is_positive.any():
        return 1.0
    scale = covariates.std(axis=0)
    table = (covariates - covariates.mean(axis=0)) / np.where(scale > 1e-12, scale, 1.0)
    table = np.column_stack([np.ones(score.size), table])
    probability = _fit_logistic(table, is_positive.astype(np.float64))
    variance = probability * (1 - probability)
    x = (score - score.mean()) / score.std()
    weighted = table * variance[:, None]
    inside = np.linalg.lstsq(weighted.T @ table + _RIDGE * np.eye(table.shape[1]), weighted.T @ x, rcond=None)[0]
    rest = x - table @ inside
    freedom = score.size - int(np.linalg.matrix_rank(table))
    deviation = np.sqrt(float(variance @ rest**2) * score.size / max(freedom, 1))
    if freedom < 1 or not deviation > 0:
        return 1.0
    p = float(norm.sf(float((is_positive - probability) @ rest) / deviation))
    return max(p, float(np.finfo(np.float64).tiny))


def _fit_logistic(table: Array, y: Array) -> Array:
    """Probabilities of a logistic regression with a tiny penalty, by Newton's method."""
    w = np.zeros(table.shape[1])
    penalty = np.full(w.size, _RIDGE)
    penalty[0] = 0.0
    for _ in range(_STEPS):
        p = expit(table @ w)
        variance = np.maximum(p * (1 - p), 1e-10)
        slope = table.T @ (y - p) - penalty * w
        step = np.linalg.solve((table * variance[:, None]).T @ table + np.diag(penalty + 1e-9), slope)
        w += step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return np.asarray(expit(table @ w))


def choose_held_out(
    sequences: Ragged, is_positive: Array, held_out: float, seed: int, alphabet: Alphabet = DNA
) -> Array:
    """Which sequences are held out: a share of each class; copies of a sequence, on either strand, stay together."""
    keys = [codes.tobytes() for codes in (orient(sequences)[0] if alphabet.has_complement else sequences)]
    _, group = np.unique(np.array(keys, dtype=object), return_inverse=True)
    n_groups = int(group.max()) + 1
    draw = np.random.default_rng(seed).permutation(n_groups)
    is_held = np.zeros(is_positive.size, dtype=bool)
    for kind in (True, False):
        rows = np.flatnonzero(is_positive == kind)
        order = rows[np.argsort(draw[group[rows]], kind="stable")]
        cut = round(held_out * rows.size)
        chosen = set(group[order[:cut]].tolist())
        is_held[rows] = [g in chosen for g in group[rows].tolist()]
    held_groups = set(group[is_held].tolist())  # also a group with both labels stays together
    return np.array([g in held_groups for g in group.tolist()])

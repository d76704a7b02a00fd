"""What a motif finder learns: a model of sites (width and C by cross-validation), one of k-mers, and their blend."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit.data.arrays import Array
from tacit.data.parameters import shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.dna.finder.shapes import LONGEST_MOTIF
from tacit.dna.kmers import canonical_kmers, find_enriched_kmers, find_kmers, kmer_shares
from tacit.dna.motif.sites import MotifSites
from tacit.dna.sequences import ALPHABETS, DNA, Alphabet, shuffle
from tacit.learners import LatentLogistic, LatentSVM
from tacit.oracle import Schema
from tacit.runtime import Status
from tacit.runtime.loop import Deadline

STRENGTHS = (300.0, 1000.0, 3000.0)
"""Values of C that are tried."""

FOLDS, STEPS = 3, 40
"""Of cross-validation: folds, and steps of a descent."""

MAX_LEARNED_FROM = 2000
"""Sequences that cross-validation uses, at most."""

MAX_STEPS = 80
"""Steps per start of a descent."""

TOLERANCE = 1e-9
"""A start ends when ten steps lower the objective by less than this share of C."""

FIRST_WIDTH = 10
"""Width that "auto" starts from."""

WIDTH_STEP = 2
"""Letters between two widths of a range that are tried."""

KMER_LENGTHS = (3, 4, 5, 6)

KMER_LENGTHS_OF_PROTEIN = (1, 2, 3)

KMER_STRENGTHS = (1e-3, 1e-2, 1e-1)
"""Values of C of the logistic regression on k-mers that are tried."""

MAX_KMER_SEQUENCES = 20_000
"""Sequences that the regression learns from, at most: more cost time and memory and gain nothing."""

SHUFFLES = 4
"""Shuffles of every positive that the regression learns from, where shuffles are the negatives. Four instead of one
raised its AUROC by .007 to .009 on held-out peaks."""

_BLOCK_LETTERS = 1 << 18
"""Letters whose k-mers are counted at a time."""


def make_problem(finder: Any, n_motifs: int, width: int) -> MotifSites:
    """The problem that a finder learns."""
    overhang = min(int(finder.overhang), width - 1)
    strands = "one" if count_strands(finder) == 1 else "both"
    return MotifSites(width, int(finder.composition_), strands, n_motifs, overhang, finder.alphabet)


def count_strands(finder: Any) -> int:
    """The number of strands that a finder reads: 1 or 2; RNA and protein are read in one direction."""
    return 1 if finder.strands == "one" or finder.alphabet != "dna" else 2


def read_widths(width: Any) -> tuple[int, int]:
    """The shortest and the longest width that is tried first, of a number, a pair, or "auto".

    >>> read_widths(10), read_widths((6, 14)), read_widths("auto")
    ((10, 10), (6, 14), (10, 10))
    """
    if isinstance(width, str) and width == "auto":
        return FIRST_WIDTH, FIRST_WIDTH
    if isinstance(width, tuple | list) and len(width) == 2:
        low = whole_number("width", width[0], 3, LONGEST_MOTIF)
        high = whole_number("width", width[1], 3, LONGEST_MOTIF)
        if low > high:
            raise ValueError(f"width must go from the shortest to the longest, got width={shorten(width)}")
        return low, high
    one = whole_number("width", width, 3, LONGEST_MOTIF, remedy="a pair such as (6, 14), or 'auto'")
    return one, one


class Descent(NamedTuple):
    """Where a descent ended: weights, objective ½‖w‖² + C · mean loss and its history; why it ended."""

    w: Array
    objective: float
    history: list[float]
    status: Status


def descend(
    problem: MotifSites, sequences: Ragged, is_positive: Array, init: Array, C: float, **limits: Any
) -> Descent:
    """Learn from these weights by `tacit.LatentLogistic`; the classes count equally.

    ``limits`` are its ``max_iter``, ``n_jobs`` and ``callbacks``. After Ctrl-C, or when a callback asks to stop, the
    best so far is returned; `KeyboardInterrupt` without one.

    >>> from tacit.datasets import planted_motif
    >>> from tacit.dna.sequences import read_sequences
    >>> X, y, _ = planted_motif(200, 30, "TGACTCA", seed=0)
    >>> problem, sequences = MotifSites(7), read_sequences(X)
    >>> schema = problem.schema(sequences, y == 1)
    >>> w = start_from_kmer(schema, np.array(["ACGT".index(c) for c in "TGACTCA"]), 0)
    >>> descend(problem, sequences, y == 1, w, C=100.0).objective < 50
    True
    """
    views = problem.schema(sequences, is_positive).views
    settings = {"tol": TOLERANCE, "max_iter": MAX_STEPS, "class_weight": "balanced", "verbose": 0, **limits}
    learner = LatentLogistic(problem, C=C, init=[views(init)], **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few steps are enough
        learner.fit(sequences, is_positive)
    history = [line.objective for line in learner.history_]
    return Descent(learner.coef_, learner.objective_, history, learner.status_)


def polish(
    problem: MotifSites, sequences: Ragged, is_positive: Array, found: Descent, C: float, n_jobs: int | None
) -> Descent:
    """The same motifs, refitted by a latent SVM that starts from their sites."""
    y = np.where(is_positive, 1, -1)
    oracle = problem.bind(sequences, y, problem.schema(sequences, y))
    hidden = oracle.decode(oracle.impute(found.w).code)[1]
    learner = LatentSVM(problem, C=C, init=hidden, tol=1e-2, n_jobs=n_jobs, verbose=0)
    learner.fit(sequences, y)
    history = [line.objective for line in learner.history_]
    return Descent(learner.coef_, learner.objective_, history, learner.status_)


def start_from_kmer(schema: Schema, letters: Array, motif: int, w: Array | None = None, height: float = 0.5) -> Array:
    """Weights with a k-mer in the middle of a motif: its letters have the weight ``height``, all others −``height``.

    ``w`` has the weights of the earlier motifs, of composition and intercept; None for zeros.
    """
    grown = np.zeros(schema.n_params)
    motifs = schema.views(grown)["motif"]
    if w is not None:
        size = motifs.size - motifs[0].size
        motifs[:-1] = w[:size].reshape(motifs[:-1].shape)
        grown[motifs.size :] = w[size:]
    table = motifs[motif]
    positions = (len(table) - letters.size) // 2 + np.arange(letters.size)
    table[positions] = -height
    table[positions, letters] = height
    return grown


def choose_settings(finder: Any, sequences: Ragged, labels: Array, seed: int, deadline: Deadline) -> tuple[int, float]:
    """Choose C at the middle width, then the width, by the held-out loss of a model of one motif."""
    widths, strengths = _choices(finder)
    if len(widths) == len(strengths) == 1:
        return widths[0], strengths[0]
    rng = np.random.default_rng(seed)
    if len(sequences) > MAX_LEARNED_FROM:
        rows = np.sort(rng.choice(len(sequences), MAX_LEARNED_FROM, replace=False))
        sequences, labels = sequences[rows], labels[rows]
    fold = rng.permutation(len(sequences)) % FOLDS
    width, C = middle_settings(finder)

    def loss(width: int, C: float) -> float:
        losses = [_fold_loss(finder, width, C, sequences, labels, fold == k, deadline) for k in range(FOLDS)]
        return float(np.mean(losses))

    if len(strengths) > 1:
        C = min(strengths, key=lambda C: loss(width, C))
    if len(widths) > 1:
        width = min(widths, key=lambda width: loss(width, C))
    return width, C


def middle_settings(finder: Any) -> tuple[int, float]:
    """The middle of the widths and of the C that are allowed."""
    widths, strengths = _choices(finder)
    return widths[len(widths) // 2], strengths[len(strengths) // 2]


def _choices(finder: Any) -> tuple[list[int], tuple[float, ...]]:
    low, high = read_widths(finder.width)
    widths = list(range(low, high + 1, WIDTH_STEP))
    return widths, STRENGTHS if finder.C == "auto" else (float(finder.C),)


def _fold_loss(
    finder: Any, width: int, C: float, sequences: Ragged, labels: Array, is_out: Array, deadline: Deadline
) -> float:
    """The mean loss on one fold of a motif learned from the others; infinite when the time is over."""
    train, test = np.flatnonzero(~is_out), np.flatnonzero(is_out)
    problem = make_problem(finder, 1, width)
    own, own_labels = sequences[train], labels[train]
    schema = problem.schema(own, own_labels)
    kmers = find_enriched_kmers(own, own_labels, width, count_strands(finder), 1, ALPHABETS[finder.alphabet])
    if not kmers:
        return np.inf
    init = start_from_kmer(schema, kmers[0], 0)
    found = descend(problem, own, own_labels, init, C, max_iter=STEPS, n_jobs=finder.n_jobs, callbacks=[deadline])
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if found.status is Status.STOPPED:
        return np.inf
    score = problem.bind(sequences[test], None, schema).label_scores(found.w)[:, 1]
    return balanced_loss(score, labels[test])


def balanced_loss(score: Array, labels: Array) -> float:
    """The mean logistic loss of the positives plus that of the negatives."""
    loss = np.logaddexp(0.0, np.where(labels, -score, score))
    return float(sum(loss[labels == kind].mean() for kind in (True, False) if (labels == kind).any()))


class KmerModel(NamedTuple):
    """A logistic regression on counts of k-mers: weights, intercept, and the C of the fit."""

    weights: Array
    intercept: float
    C: float = KMER_STRENGTHS[1]

    def score(self, sequences: Ragged, strands: int, alphabet: Alphabet = DNA) -> Array:
        """The log-odds of the positive class."""
        scores = np.empty(len(sequences))
        for rows in _blocks(sequences):
            scores[rows] = count_kmers(sequences[rows], strands, alphabet) @ self.weights + self.intercept
        return scores


def learn_kmers(
    sequences: Ragged,
    is_positive: Array,
    strands: int,
    seed: int,
    strengths: Sequence[float] = KMER_STRENGTHS,
    shuffles: int = 1,
    alphabet: Alphabet = DNA,
) -> KmerModel:
    """A logistic regression with C by three-fold cross-validation; the classes count equally.

    Where the negatives are shuffles of the positives, the last fit learns from ``shuffles`` of each.
    """
    rng = np.random.default_rng(seed)
    if len(sequences) > MAX_KMER_SEQUENCES:
        rows = np.sort(rng.choice(len(sequences), MAX_KMER_SEQUENCES, replace=False))
        sequences, is_positive = sequences[rows], is_positive[rows]
    table = count_kmers(sequences, strands, alphabet)
    least = int(min(is_positive.sum(), (~is_positive).sum()))
    strength = strengths[len(strengths) // 2]
    if least >= 3 and len(strengths) > 1:
        folds = StratifiedKFold(3, shuffle=True, random_state=seed)
        quality = [
            cross_val_score(_regression(C), table, is_positive, cv=folds, scoring="neg_log_loss").mean()
            for C in strengths
        ]
        strength = strengths[int(np.argmax(quality))]
    positives = sequences[np.flatnonzero(is_positive)]
    room = (MAX_KMER_SEQUENCES - len(sequences)) // max(len(positives), 1)
    for k in range(min(shuffles - 1, room)):
        more = shuffle(positives, (seed + k + 1) % 2**32, alphabet)
        table = sparse.vstack([table, count_kmers(more, strands, alphabet)], format="csr")
        is_positive = np.append(is_positive, np.zeros(len(more), dtype=bool))
    model = _regression(strength).fit(table, is_positive)
    return KmerModel(model.coef_[0], float(model.intercept_[0]), strength)


def count_kmers(sequences: Ragged, strands: int, alphabet: Alphabet = DNA) -> sparse.csr_array:
    """(sequences, k-mers), sparse: how often every k-mer occurs, with two strands together with its reverse complement.

    K-mers with ambiguous letters do not count.

    >>> from tacit.dna.sequences import read_sequences
    >>> count_kmers(read_sequences(["AAAA", "TTTT"]), 2).toarray()[:, 0]
    array([2., 2.])
    """
    blocks = _blocks(sequences)
    return sparse.csr_array(sparse.vstack([_count_block(sequences[rows], strands, alphabet) for rows in blocks]))


def _count_block(sequences: Ragged, strands: int, alphabet: Alphabet) -> sparse.csr_array:
    n, parts = len(sequences), []
    owner = np.repeat(np.arange(n), sequences.lengths)
    ends = np.repeat(sequences.offsets[1:], sequences.lengths)
    for length in choose_lengths(alphabet):
        kept, column = canonical_kmers(length, strands, alphabet.size)
        ids = find_kmers(sequences.values, sequences.offsets, length, alphabet).ids.astype(np.int64)
        usable = (np.arange(ids.size) + length <= ends) & (ids < alphabet.size**length)
        cells = (owner[usable].astype(np.int32), column[ids[usable]].astype(np.int32))
        parts.append(sparse.coo_array((np.ones(int(usable.sum())), cells), shape=(n, kept.size)))
    return sparse.csr_array(sparse.hstack(parts))


def choose_lengths(alphabet: Alphabet) -> tuple[int, ...]:
    """The lengths of the k-mers that are counted."""
    return KMER_LENGTHS if alphabet.size == 4 else KMER_LENGTHS_OF_PROTEIN


def count_kmer_columns(strands: int, alphabet: Alphabet = DNA) -> int:
    """The number of columns of `count_kmers`."""
    return sum(canonical_kmers(length, strands, alphabet.size)[0].size for length in choose_lengths(alphabet))


def _regression(C: float) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=1000, class_weight="balanced")


def _blocks(sequences: Ragged) -> list[slice]:
    cuts = np.searchsorted(sequences.offsets, np.arange(0, sequences.values.size + _BLOCK_LETTERS, _BLOCK_LETTERS))
    cuts = np.unique(np.clip(cuts, 0, len(sequences)))
    if cuts[-1] != len(sequences):
        cuts = np.append(cuts, len(sequences))
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)]


def blend(motifs: Array, kmers: Array, labels: Array, seed: int) -> tuple[Array, Array]:
    """The sum of both scores that predicts the held-out labels best, each fold with coefficients from the others.

    Returns these scores, and the coefficients from all folds: intercept, motifs, k-mers. None is negative.
    """
    fold = np.random.default_rng(seed).permutation(labels.size) % 5
    scores = np.empty(labels.size)
    for k in range(5):
        own = fold == k
        weights = _blend_weights(motifs[~own], kmers[~own], labels[~own])
        scores[own] = weights[0] + weights[1] * motifs[own] + weights[2] * kmers[own]
    return scores, _blend_weights(motifs, kmers, labels)


def _blend_weights(motifs: Array, kmers: Array, labels: Array) -> Array:
    """Where both together would have a negative coefficient, the better one of the two by itself."""
    table, found = np.column_stack([np.ones(labels.size), motifs, kmers]), [np.array([0.0, 1.0, 0.0])]
    for columns in ([1, 2], [1], [2]):
        model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=500).fit(table[:, columns], labels)
        weights = np.zeros(3)
        weights[0], weights[columns] = model.intercept_[0], model.coef_[0]
        if (model.coef_[0] >= 0).all():
            if len(columns) == 2:
                return weights
            found.append(weights)
    return min(found[1:] or found, key=lambda own: balanced_loss(table @ own, labels))


def score_composition(
    sequences: Ragged, is_positive: Array, train: Array, test: Array, strands: int, alphabet: Alphabet = DNA
) -> Array:
    """The score of held-out sequences by their composition alone, learned from the others."""
    shares = kmer_shares(sequences, 3 if alphabet.size == 4 else 1, strands, alphabet)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, class_weight="balanced", max_iter=500))
    return np.asarray(model.fit(shares[train], is_positive[train]).decision_function(shares[test]))

"""Motifs and words together, and composition alone: what a motif is compared with."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.motif.composition import word_shares


def blend(motifs: Array, words: Array, labels: Array, seed: int) -> tuple[Array, Array]:
    """Scores of both, weighted so that they predict the held-out labels best: each fold with weights from the others.

    Returns these scores, and the weights from all: intercept, motifs, words. None is negative.
    """
    fold = np.random.default_rng(seed).permutation(labels.size) % 5
    scores = np.empty(labels.size)
    for k in range(5):
        own = fold == k
        weights = _blend_weights(motifs[~own], words[~own], labels[~own])
        scores[own] = weights[0] + weights[1] * motifs[own] + weights[2] * words[own]
    return scores, _blend_weights(motifs, words, labels)


def _blend_weights(motifs: Array, words: Array, labels: Array) -> Array:
    for columns in ((1, 2), (1,), (2,)):
        table = np.column_stack([np.ones(labels.size), motifs, words])[:, columns]
        model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=500).fit(table, labels)
        if (model.coef_[0] >= 0).all():
            weights = np.zeros(3)
            weights[list(columns)] = model.coef_[0]
            weights[0] = model.intercept_[0]
            return weights
    return np.array([0.0, 1.0, 0.0])


def score_composition(sequences: Ragged, is_positive: Array, train: Array, test: Array, strands: int) -> Array:
    """The score of held-out sequences by what they are made of, learned from the others."""
    shares = word_shares(sequences, 3, strands)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, class_weight="balanced", max_iter=500))
    return np.asarray(model.fit(shares[train], is_positive[train]).decision_function(shares[test]))

"""How much samples whose hidden value is unknown should count beside those whose value is known.

A latent step can lose what the known part had learned: imputed values are wrong, and there are many of them. So the
known part decides: some of its hidden values are held back, and the weight that predicts them best is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.oracle import KnownHidden, loss_needs_hidden

CHOICES = (0.0, 0.1, 1.0)
"""Weights that are compared: none, a tenth, and as much as a known one. Of equal ones the largest is taken."""

FOLDS = 3


def choose_unknown_weight(
    oracle: Any, weights: Array, learn: Callable[[Any, Array], Array], rng: np.random.Generator
) -> float:
    """The one of `CHOICES` with the lowest error on hidden values that were held back.

    Parameters
    ----------
    oracle : samples some of whose hidden values are known (an `EnumerableOracle`)
    weights : (n,) the c_i
    learn : the weights w that an oracle and its c_i lead to
    rng : draws the folds
    """
    known = np.setdiff1d(np.arange(oracle.n_samples), oracle.hidden_unknown())
    informative = np.intersect1d(known, oracle.with_hidden(None).hidden_unknown())
    if informative.size < 2 * FOLDS:
        return 1.0
    folds = np.array_split(rng.permutation(informative), FOLDS)
    states = oracle.split(oracle.impute(np.zeros(oracle.n_params)).code)[1]
    errors = np.zeros(len(CHOICES))
    for fold in folds:
        given = np.full(oracle.n_samples, -1)
        given[known] = states[known]
        given[fold] = -1
        train = oracle.with_hidden(KnownHidden(given))
        is_unknown = np.ones(oracle.n_samples, dtype=bool)
        is_unknown[known] = False
        for place, choice in enumerate(CHOICES):
            factor = np.where(is_unknown, choice, 1.0)
            factor[fold] = 0.0
            w = learn(train, weigh_anew(weights, factor))
            errors[place] += _error(oracle, train, w, np.sort(fold), states)
    best = np.flatnonzero(errors <= errors.min() * (1 + 1e-9))
    return CHOICES[int(best[-1])]


def weigh_anew(weights: Array, factor: Array) -> Array:
    """Weights times a factor each, as much in all as before: with a factor of 0 a sample is left out."""
    changed = weights * factor
    return np.asarray(changed * (float(weights.sum()) / max(float(changed.sum()), 1e-300)))


def _error(oracle: Any, train: Any, w: Array, rows: Array, states: Array) -> float:
    """The loss of predictions on rows that were held back; where it counts labels alone, wrong hidden values beside."""
    loss = float(oracle.loss(oracle.predict(w, rows).code, rows).sum())
    if loss_needs_hidden(oracle):
        return loss
    found = oracle.split(train.impute(w, rows).code, rows)[1]
    return loss + float(np.count_nonzero(found != states[rows]))

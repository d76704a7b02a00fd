"""How much samples whose hidden value is unknown should count beside those whose value is known.

A latent step can lose what the known part had learned: imputed values are wrong, and there are many of them. So the
known part decides: some of its hidden values are held back, and the weight that predicts them best is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.oracle import KnownHidden, loss_needs_hidden

CHOICES = (0.0, 0.1, 1.0)
"""Weights that are compared: none, a tenth, and as much as a known one."""

FOLDS = 3

CLEAR_GAIN = 2.0
"""Standard errors by which a weight must beat 0. With one, weights were chosen that lost up to .03 of the IoU."""


def choose_unknown_weight(
    oracle: Any, weights: Array, learn: Callable[[Any, Array], Array], rng: np.random.Generator
) -> float:
    """The one of `CHOICES` with the lowest error on hidden values that were held back.

    It is 0, and the known part is all there is, unless another one is better by more than `CLEAR_GAIN` standard errors:
    few held back values say little. Fewer than two per fold say nothing.

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
        return CHOICES[0]
    folds = np.array_split(rng.permutation(informative), FOLDS)
    states = oracle.split(oracle.impute(np.zeros(oracle.n_params)).code)[1]
    errors: list[list[Array]] = [[] for _ in CHOICES]
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
            w = learn(train, rescale_weights(weights, factor))
            errors[place].append(_errors(oracle, train, w, np.sort(fold), states))
    per_sample = np.array([np.concatenate(parts) for parts in errors])
    best = int(np.argmin(per_sample.mean(axis=1)))
    gain = per_sample[0] - per_sample[best]
    is_clear = gain.mean() > CLEAR_GAIN * gain.std(ddof=1) / np.sqrt(gain.size)
    return CHOICES[best if is_clear else 0]


def rescale_weights(weights: Array, factor: Array) -> Array:
    """Weights times a factor each, as much in all as before: with a factor of 0 a sample is left out."""
    changed = weights * factor
    return np.asarray(changed * (float(weights.sum()) / max(float(changed.sum()), 1e-300)))


def _errors(oracle: Any, train: Any, w: Array, rows: Array, states: Array) -> Array:
    """The losses of predictions on rows that were held back; where they count labels alone, wrong hidden values
    beside."""
    loss: Array = oracle.loss(oracle.predict(w, rows).code, rows)
    if loss_needs_hidden(oracle):
        return loss
    found = oracle.split(train.impute(w, rows).code, rows)[1]
    return np.asarray(loss + (found != states[rows]))

"""Do Rényi scores, posteriors and expected losses agree with enumeration?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from tacit.data.arrays import Array
from tacit.testing.enumeration import Enumeration, assert_that, same

ORDERS = (0.25, 0.999, 1.0, 1.001, 2.0, 1000.0, np.inf)
"""Orders of entropy that are compared, with the difficult neighbourhood of 1."""


def check_entropies(name: str, oracle: Any, table: Enumeration, rng: np.random.Generator) -> None:
    """Compare with enumeration at scores of size 1, 100 and 10⁴, and gradients with differences; raise if they differ.

    >>> from tacit.problems import Multiclass
    >>> example = Multiclass().example(np.random.default_rng(0))
    >>> oracle = Multiclass().bind(example.X, example.y, Multiclass().schema(example.X, example.y))
    >>> check_entropies("Multiclass", oracle, Enumeration(example), np.random.default_rng(1))
    """
    oracle = oracle.exact()
    direction = rng.standard_normal(oracle.n_params)
    labels = [_labels(table, i) for i in range(table.n)]
    for scale in (1.0, 100.0, 1e4):
        w = scale * direction
        scores = [psi.astype(float) @ w for psi in table.features]
        for alpha in ORDERS:
            found = oracle.renyi_slacks(w, np.ones(table.n), alpha).value
            expected = [_slack(labels[i], scores[i], alpha) for i in range(table.n)]
            what = f"{name}.renyi_slacks(alpha={alpha}) at scores of {scale:g}"
            _compare(what, np.array(expected) / scale, found / scale)
        posterior = oracle.output_posterior(w)
        sums = np.add.reduceat(posterior.sum(axis=1), oracle.offsets[:-1])
        _compare(f"{name}.output_posterior at scores of {scale:g}, its sums", np.ones(table.n), sums)
        means = [softmax(scores[i]) @ table.losses[i] for i in range(table.n)]
        _compare(f"{name}.expected_losses at scores of {scale:g}", means, oracle.expected_losses(w)[0])
    _check_gradients(name, oracle, direction, rng)


class _Label(NamedTuple):
    """One label of a sample: where its outputs are among all, its highest loss, and whether it is the true one."""

    places: Array
    loss: float
    is_true: bool


def _labels(table: Enumeration, i: int) -> list[_Label]:
    found: list[tuple[Any, list[int]]] = []
    for place, (label, _) in enumerate(table.outputs[i]):
        own = next((places for other, places in found if same(label, other)), None)
        if own is None:
            found.append((label, [place]))
        else:
            own.append(place)
    places = [np.array(own) for _, own in found]
    return [_Label(own, table.losses[i][own].max(), bool(table.is_true[i][own].all())) for own in places]


def _slack(labels: list[_Label], scores: Array, alpha: float) -> float:
    """ξ_i from the outputs of a sample, written out."""
    entropies = [_renyi(scores[label.places], alpha) for label in labels]
    pairs = list(zip(labels, entropies, strict=True))
    wished = [label.loss + entropy for label, entropy in pairs if not label.is_true]
    truth = next(entropy for label, entropy in pairs if label.is_true)
    return max(0.0, max(wished) - truth) if wished else 0.0


def _renyi(scores: Array, alpha: float) -> float:
    """R_α of a few scores, by its definition."""
    top = float(scores.max())
    if np.isinf(alpha):
        return top
    away = scores - top
    if alpha == 1:
        return top + float(softmax(away) @ away)
    return top + float(logsumexp(alpha * away) - logsumexp(away)) / (alpha - 1)


def _check_gradients(name: str, oracle: Any, w: Array, rng: np.random.Generator) -> None:
    coef = rng.random(oracle.n_samples)
    step = 1e-6 * rng.standard_normal(oracle.n_params)
    for alpha in ORDERS:
        ahead, behind = (coef @ oracle.renyi_slacks(w + sign * step, coef, alpha).value for sign in (1, -1))
        slope = oracle.renyi_slacks(w, coef, alpha).features @ step
        assert_that(
            np.isclose((ahead - behind) / 2, slope, rtol=1e-3, atol=1e-9),
            f"{name}.renyi_slacks(alpha={alpha}): the slacks rise by {(ahead - behind) / 2}, features say {slope}",
        )
    ahead, behind = (coef @ oracle.expected_losses(w + sign * step)[0] for sign in (1, -1))
    slope = oracle.expected_losses(w, coef=coef)[1] @ step
    assert_that(
        np.isclose((ahead - behind) / 2, slope, rtol=1e-3, atol=1e-9),
        f"{name}.expected_losses: they rise by {(ahead - behind) / 2}, features say {slope}",
    )


def _compare(what: str, expected: Any, found: Any) -> None:
    wrong = np.flatnonzero(~np.isclose(expected, found, rtol=1e-5, atol=1e-5))
    if wrong.size:
        i = int(wrong[0])
        raise AssertionError(f"{what}: sample {i} has {found[i]}, enumeration gives {np.asarray(expected)[i]}")

"""The transition and emission matrices of an HMM, read off the counts of short substrings.

With contexts u before and v after a place, ``H_σ(u, v) = Σ_i a_i(u)·O[i, σ]·b_i(v)`` and
``H(u, v) = Σ_j a_j(u)·c_j(v)``: c_j(v) is the probability that state j emits v from here on, and
``b_i = Σ_j T[i, j]·c_j`` the same one step later. Projected on the top n singular vectors of H, the matrices of all σ
share A and B (`decompose`): O is the middle factor, C follows from H and A, T from B and C, the start from the
beginnings of the strings.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.spectral.automata.operators import thin_svd, weigh
from tacit.spectral.hmm.joint_diagonal import Decomposition, decompose
from tacit.spectral.strings.hankel import Hankel

RESTARTS, MAX_SWEEPS, MAX_OFFERED = 12, 150, 4
"""Random starts of the decomposition, its sweeps at the most, and how many of the best are offered."""


class Recovered(NamedTuple):
    """Matrices as algebra gives them, negative entries and all; a row of ``moves`` lacks the stop probability."""

    start: Array
    moves: Array
    emission: Array
    error: float


def recover(
    hankel: Hankel, beginnings: Array, frequency: Array, n_states: int, scaling: float, rng: np.random.RandomState
) -> list[Recovered]:
    """HMMs of ``n_states`` states that fit the Hankel matrices of substrings, the best few first.

    Parameters
    ----------
    beginnings : how often strings begin with each suffix of the basis
    frequency : of the symbols; rare ones are noisy and weigh less
    scaling : power of their frequency by which contexts are divided
    """
    block, shifted = hankel.block[:, 1:], hankel.shifted[:, 1:]
    if not block.shape[1]:
        raise ValueError("the basis holds the empty string alone, which tells no states apart; raise size or length")
    rows, columns = weigh(block, scaling)
    weighted = sparse.diags_array(rows) @ block @ sparse.diags_array(columns)
    left, singular, right = thin_svd(weighted, n_states, 0)
    if singular.size < n_states or singular[-1] <= 1e-10 * singular[0]:
        rank = int((singular > 1e-10 * singular[0]).sum())
        raise ValueError(
            f"n_states={n_states} is above the rank {rank} of the substring counts: so many states cannot be told "
            f"apart; lower it to {rank} or less, or raise length"
        )
    ahead = (shifted @ (columns[:, None] * right)).reshape(hankel.n_symbols, block.shape[0], n_states)
    tensor = np.matmul(left.T * rows, ahead).transpose(1, 0, 2)
    if not tensor.any():
        raise ValueError(
            "no string of the counts has two symbols in a row, so moves between states do not show; give longer "
            "strings, or use SpectralAutomaton"
        )
    weights = (frequency + 1e-3) ** -0.5
    found = _different(decompose(tensor * weights[None, :, None], rng, RESTARTS, MAX_SWEEPS))[:MAX_OFFERED]
    single = hankel.suffixes.lengths[1:] == 1
    return [
        _matrices(
            terms, weights, left, singular, right / columns[:, None], right * columns[:, None], single, beginnings
        )
        for terms in found
    ]


def _different(found: list[Decomposition]) -> list[Decomposition]:
    """One of each: starts that end at the same place have the same error."""
    return found[:1] + [one for before, one in itertools.pairwise(found) if one.error > (1 + 1e-3) * before.error]


def _matrices(
    terms: Decomposition,
    weights: Array,
    left: Array,
    singular: Array,
    right: Array,
    projector: Array,
    single: Array,
    beginnings: Array,
) -> Recovered:
    """Undo the scales that a decomposition leaves open: emissions sum to one, and so do futures of one symbol."""
    emission = terms.middle / weights[:, None]
    total = np.maximum(emission.sum(axis=0), 1e-300)
    later = (terms.right * total).T
    now = np.linalg.lstsq(terms.left, np.diag(singular), rcond=None)[0]
    mass = now @ right[single].sum(axis=0)
    mass = np.where(np.abs(mass) > 1e-12, mass, 1.0)[:, None]
    inverse = np.linalg.pinv(now / mass)
    return Recovered(beginnings @ projector @ inverse, later / mass @ inverse, (emission / total).T, terms.error)

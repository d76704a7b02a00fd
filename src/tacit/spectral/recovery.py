"""The transition and emission matrices of an HMM, computed from the counts of short substrings.

With contexts u before and v after a position, ``H_σ(u, v) = Σ_i a_i(u)·O[i, σ]·b_i(v)`` and
``H(u, v) = Σ_j a_j(u)·c_j(v)``: c_j(v) is the probability that state j emits v from here on, and
``b_i = Σ_j T[i, j]·c_j`` the same one step later. Projected on the top n singular vectors of H, the matrices of all σ
share A and B (`decompose`): a tensor decomposition. O is the middle factor, C follows from H and A, T from B and C, the
start probabilities from the beginnings of the strings.

This solution is consistent, but noisy. `match` moves T and O from it to a nearby HMM that expects the counted windows
of symbols, by Levenberg–Marquardt (the generalised method of moments: Hansen 1982). Strings are padded with a begin and
an end symbol, so starts and stops are moves like others. A window is a context u, a symbol σ and a context v after it.
An HMM with transitions T and emissions O expects
``M_σ(u, v) = Σ_j e_j(u)·O[j, σ]·g_j(v)`` of them, where ``e(ua) = (e(u)∘O_a)·T`` and ``g(av) = T·(O_a∘g(v))``. Contexts
are made disjoint (u counts only where no longer context of the basis fits), so that cells are independent counts.
Divided by the square roots of their frequencies they have equal variance; they are projected on the top singular
vectors. The cost does not depend on the number of strings.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.spectral.hankel import Hankel, count, scale_factors, thin_svd

RESTARTS, MAX_SWEEPS, MAX_OFFERED = 12, 150, 4
"""Random starts of the decomposition, its sweeps at most, and how many of the best are returned."""
MAX_CONTEXT_LENGTH, CONTEXTS_PER_SYMBOL = 3, 5
"""The largest length of contexts, and their number per symbol or state, whichever are more."""
MAX_STEPS, MIN_RELATIVE_FALL = 15, 3e-3
"""Steps at most, and the relative fall of the squared error below which they end."""
UNIFORM_SHARE = 1e-4
"""Share of the uniform distribution in every row, before and after the fit: the gradient at zero is zero."""
MAX_PRODUCTS = 4_000_000_000
"""Products of slopes per step, at most: they grow with the sixth power of the number of states."""


class Recovered(NamedTuple):
    """Matrices that may have negative entries; a row of ``moves`` lacks the stop probability."""

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
    frequency : of the symbols; rare ones are noisy and have smaller factors
    scaling : contexts are divided by this power of their frequency
    """
    block, shifted = hankel.block[:, 1:], hankel.shifted[:, 1:]
    if not block.shape[1]:
        raise ValueError("size or length leave only the empty string in the basis; raise them")
    rows, columns = scale_factors(block, scaling)
    weighted = sparse.diags_array(rows) @ block @ sparse.diags_array(columns)
    left, singular, right = thin_svd(weighted, n_states, 0)
    if singular.size < n_states or singular[-1] <= 1e-10 * singular[0]:
        rank = int((singular > 1e-10 * singular[0]).sum())
        raise ValueError(
            f"n_states={n_states} must not exceed the rank of the substring counts, {rank}; lower it, or raise length"
        )
    ahead = (shifted @ (columns[:, None] * right)).reshape(hankel.n_symbols, block.shape[0], n_states)
    tensor = np.matmul(left.T * rows, ahead).transpose(1, 0, 2)
    if not tensor.any():
        raise ValueError(
            "all strings have at most one symbol, so transitions cannot be learned; give longer strings, or use "
            "SpectralAutomaton"
        )
    weights = (frequency + 1e-3) ** -0.5
    found = _drop_repeats(decompose(tensor * weights[None, :, None], rng, RESTARTS, MAX_SWEEPS))[:MAX_OFFERED]
    single = hankel.suffixes.lengths[1:] == 1
    return [
        _undo_scales(
            terms, weights, left, singular, right / columns[:, None], right * columns[:, None], single, beginnings
        )
        for terms in found
    ]


def _drop_repeats(found: list[Decomposition]) -> list[Decomposition]:
    """Drop equal solutions of several starts: they have the same error."""
    return found[:1] + [one for before, one in itertools.pairwise(found) if one.error > (1 + 1e-3) * before.error]


def _undo_scales(
    terms: Decomposition, weights: Array, left: Array, singular: Array, right: Array, projector: Array,
    single: Array, beginnings: Array,
) -> Recovered:  # fmt: skip
    """Fix the scales that a decomposition leaves open: emissions sum to one, and so do futures of one symbol."""
    emission = terms.middle / weights[:, None]
    total = np.maximum(emission.sum(axis=0), 1e-300)
    later = (terms.right * total).T
    now = np.linalg.lstsq(terms.left, np.diag(singular), rcond=None)[0]
    mass = now @ right[single].sum(axis=0)
    mass = np.where(np.abs(mass) > 1e-12, mass, 1.0)[:, None]
    inverse = np.linalg.pinv(now / mass)
    return Recovered(beginnings @ projector @ inverse, later / mass @ inverse, (emission / total).T, terms.error)


class Decomposition(NamedTuple):
    """``M[:, σ] ≈ left · diag(middle[σ]) · rightᵀ``, middle not negative; error is the relative Frobenius distance."""

    left: Array
    middle: Array
    right: Array
    error: float


def decompose(tensor: Array, rng: np.random.RandomState, restarts: int, sweeps: int) -> list[Decomposition]:
    """Decompositions of an (n, symbols, n) tensor into n terms from several starts, the best first.

    Anandkumar, Ge, Hsu, Kakade & Telgarsky (2014) show that such a decomposition is unique for an HMM whose transition
    and emission matrices have full rank. With exact matrices the eigenvectors of one combination suffice. With noise,
    alternating least squares over all of them, from there and from random starts, is far better.
    """
    n = tensor.shape[0]
    found = [_sweep(tensor, *_eigen_start(tensor, rng), sweeps)]
    for _ in range(restarts):
        middle = rng.dirichlet(np.full(tensor.shape[1], 0.5), n).T
        found.append(_sweep(tensor, middle, rng.standard_normal((n, n)), sweeps))
    return sorted(found, key=lambda result: result.error)


def _eigen_start(tensor: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Middle and right factors from the eigenvectors of the random combination with the best separated eigenvalues."""
    whole = np.linalg.pinv(tensor.sum(axis=1))
    best, vectors = -np.inf, np.eye(tensor.shape[0])
    for _ in range(20):
        values, candidate = np.linalg.eig(np.tensordot(rng.standard_normal(tensor.shape[1]), tensor, (0, 1)) @ whole)
        apart = np.abs(values[:, None] - values) + np.diag(np.full(values.size, np.inf))
        quality = apart.min() / (1e-12 + np.abs(values).max()) - np.abs(values.imag).max() / np.abs(values).max()
        if quality > best:
            best, vectors = quality, candidate
    left = np.linalg.pinv(vectors)
    scaled = np.einsum("ip,psq,qr,ri->si", left, tensor, whole, vectors).real
    right = (left @ tensor.sum(axis=1)).real.T
    return np.maximum(scaled, 0.0), right


def _sweep(tensor: Array, middle: Array, right: Array, sweeps: int) -> Decomposition:
    """Alternating least squares, the middle factor clipped at zero, until it converges."""
    n, k, _ = tensor.shape
    by_left = tensor.reshape(n, -1)
    by_middle = tensor.transpose(1, 0, 2).reshape(k, -1)
    by_right = tensor.transpose(2, 0, 1).reshape(n, -1)
    size = np.linalg.norm(tensor)
    left, error = np.eye(n), np.inf
    for sweep in range(sweeps):
        left = _solve(by_left, middle, right)
        left /= np.maximum(np.linalg.norm(left, axis=0), 1e-300)
        right = _solve(by_right, left, middle)
        right /= np.maximum(np.linalg.norm(right, axis=0), 1e-300)
        middle = _solve(by_middle, left, right)
        signs = np.where(middle.sum(axis=0) < 0, -1.0, 1.0)
        middle, right = np.maximum(middle * signs, 0.0), right * signs
        if sweep % 10 == 9:
            before, error = error, float(np.linalg.norm(by_middle - middle @ _pairs(left, right).T) / size)
            if before - error < 1e-6 * error or error < 1e-13:
                break
    return Decomposition(left, middle, right, error)


def _solve(unfolded: Array, one: Array, two: Array) -> Array:
    """The factor that fits best, given the two others."""
    gram = (one.T @ one) * (two.T @ two)
    ridge = 1e-12 * max(float(np.trace(gram)), 1e-300)
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), (unfolded @ _pairs(one, two)).T).T


def _pairs(one: Array, two: Array) -> Array:
    """The products of all rows of two factors, one column per term (Khatri–Rao product)."""
    return np.asarray((one[:, None, :] * two[None]).reshape(-1, one.shape[1]))


class Contexts(NamedTuple):
    """One side of the windows: each context is a shorter one and a symbol more.

    Attributes
    ----------
    shorter, symbol : of each context; −1 for the empty one, which is the first
    levels : the contexts of each length from 1
    compress : (contexts, r) projection of the contexts to r numbers
    """

    shorter: Array
    symbol: Array
    levels: list[Array]
    compress: Array


class Windows(NamedTuple):
    """Counted windows in compressed form; ``observed`` is (r, symbols, r), each symbol times its ``weights``."""

    before: Contexts
    after: Contexts
    observed: Array
    weights: Array


def is_small(n_states: int, n_symbols: int) -> bool:
    """Whether `match` takes only seconds for a model of this size.

    >>> is_small(10, 20), is_small(16, 20), is_small(20, 20)
    (True, True, False)
    """
    n, k = n_states + 2, n_symbols + 2
    return (n * (n + k)) ** 2 * k * n * n <= MAX_PRODUCTS


def count_windows(strings: Ragged, n_symbols: int, n_states: int, weights: Array | None = None) -> Windows:
    """The windows of all strings; O(symbols of the strings)."""
    size = CONTEXTS_PER_SYMBOL * max(n_symbols + 2, n_states)
    padded = _pad_with_ends(strings, n_symbols)
    hankel = count(padded, n_symbols + 2, statistics="substring", length=MAX_CONTEXT_LENGTH, size=size, weights=weights)
    prefixes, suffixes = ([tuple(row.tolist()) for row in part] for part in (hankel.prefixes, hankel.suffixes))
    rows = _subtract_longer([text[1:] for text in prefixes], prefixes)
    columns = _subtract_longer([text[:-1] for text in suffixes], suffixes)
    block = rows @ hankel.block @ columns.T
    least = 1 / float(len(strings) if weights is None else weights.sum())
    row_weights, column_weights = (_inverse_sqrt(np.asarray(block.sum(axis=axis)).ravel(), least) for axis in (1, 0))
    weighted = sparse.diags_array(row_weights) @ block @ sparse.diags_array(column_weights)
    left, _, right = thin_svd(weighted, n_states + 2, 0)
    left, right = rows.T @ (row_weights[:, None] * left), columns.T @ (column_weights[:, None] * right)
    single = hankel.prefixes.lengths == 1
    frequency = np.zeros(n_symbols + 2)
    frequency[[text[0] for text in prefixes if len(text) == 1]] = hankel.block[:, [0]].toarray().ravel()[single]
    frequency[n_symbols] = 0.0
    symbol_weights = _inverse_sqrt(frequency, least)
    shifted = (hankel.shifted @ right).reshape(n_symbols + 2, len(prefixes), -1)
    return Windows(
        _contexts([text[:-1] for text in prefixes], [text[-1:] for text in prefixes], prefixes, left),
        _contexts([text[1:] for text in suffixes], [text[:1] for text in suffixes], suffixes, right),
        np.ascontiguousarray(np.matmul(left.T, shifted).transpose(1, 0, 2)) * symbol_weights[:, None],
        symbol_weights,
    )


def match(windows: Windows, leaving: Array, emission: Array) -> tuple[Array, Array]:
    """The nearby HMM that fits the windows best, or this one if none fits better.

    Parameters
    ----------
    leaving : (n + 1, n + 1) probabilities of the next state after the start (row 0) and each state, the end last
    emission : (n, symbols)
    """
    n, k = emission.shape
    moves, emissions = np.zeros((n + 2, n + 2)), np.zeros((n + 2, k + 2))
    moves[:-1, 1:], emissions[1:-1, :k] = _smooth(leaving), _smooth(emission)
    emissions[0, k] = emissions[-1, k + 1] = 1.0
    free = np.flatnonzero(np.concatenate([moves.ravel() > 0, (emissions > 0).ravel()]))
    values, slopes = _expect_with_slopes(windows, moves, emissions)
    damping = 1e-2
    for _ in range(MAX_STEPS):
        gap = windows.observed - values
        misfit = float((gap**2).sum())
        roots = np.sqrt(moves), np.sqrt(emissions)
        steep = slopes[free]
        products = np.zeros((len(slopes), len(slopes) + 1))  # inner products of slopes, and with the gap
        products[free[:, None], free], products[free, -1] = steep @ steep.T, steep @ gap.ravel()
        half = _by_roots(roots, products)[free]
        gram, pull = _by_roots(roots, half[:, :-1].T)[free], half[:, -1]
        found = None
        while found is None and damping < 1e6:
            ridge = damping * (np.diag(gram) + 1e-2 * np.trace(gram) / free.size + 1e-300)
            change = np.zeros(moves.size + emissions.size)
            change[free] = np.linalg.solve(gram + np.diag(ridge), pull)
            there = _step(roots[0], change[: moves.size]), _step(roots[1], change[moves.size :])
            reached = float(((windows.observed - _expect_windows(windows, *there)) ** 2).sum())
            if reached < misfit:
                found = there
            else:
                damping *= 4
        if found is None:
            break
        moves, emissions = found
        damping = max(damping / 4, 1e-6)
        if misfit - reached < MIN_RELATIVE_FALL * misfit:
            break
        values, slopes = _expect_with_slopes(windows, moves, emissions)
    return _smooth(moves[:-1, 1:]), _smooth(emissions[1:-1, :k])


def _expect_windows(windows: Windows, moves: Array, emissions: Array) -> Array:
    """(r, symbols, r) compressed windows that an HMM expects."""
    visits = np.linalg.inv(np.eye(len(moves)) - moves)[0]
    before = windows.before.compress.T @ _grow(windows.before, visits, moves, emissions)
    after = windows.after.compress.T @ _grow(windows.after, np.ones(len(moves)), moves.T, emissions)
    return np.asarray((before[:, None] * (windows.weights * emissions).T) @ after.T)


def _expect_with_slopes(windows: Windows, moves: Array, emissions: Array) -> tuple[Array, Array]:
    """`_expect_windows`, and its slopes (n² + n·symbols, r·symbols·r) by every move and emission."""
    n, k = emissions.shape
    inverse = np.linalg.inv(np.eye(n) - moves)
    visits, ones = inverse[0], np.ones(n)
    by_visits = (visits[:, None, None] * inverse[None]).reshape(n * n, n)
    (before, d_before), (after, d_after) = (
        (side.compress.T @ vectors, np.matmul(side.compress.T, slopes))
        for side, (vectors, slopes) in (
            (windows.before, _slopes(windows.before, visits, by_visits, moves, emissions)),
            (windows.after, _slopes(windows.after, ones, np.zeros((n * n, n)), moves.T, emissions)),
        )
    )
    d_after[: n * n] = d_after[np.arange(n * n).reshape(n, n).T.ravel()]
    weighted = (windows.weights * emissions).T
    emitting = before[:, None] * weighted
    ahead = (weighted[:, None] * after).reshape(-1, n)
    slopes = (d_before.reshape(-1, n) @ ahead.T).reshape(len(d_before), -1, len(after))
    slopes += np.matmul(emitting.reshape(-1, n), d_after.transpose(0, 2, 1))
    by_emission = slopes[n * n :].reshape(n, k, len(before), k, len(after))
    for symbol, weight in enumerate(windows.weights):
        by_emission[:, symbol, :, symbol] += weight * np.einsum("rj,cj->jrc", before, after)
    return emitting @ after.T, slopes.reshape(len(slopes), -1)


def _grow(side: Contexts, first: Array, matrix: Array, emissions: Array) -> Array:
    """(contexts, n) vectors, from that of the empty context on: ``x(longer) = (x(shorter)∘O_symbol)·matrix``."""
    vectors = np.empty((side.shorter.size, first.size))
    vectors[0] = first
    for at in side.levels:
        vectors[at] = (vectors[side.shorter[at]] * emissions[:, side.symbol[at]].T) @ matrix
    return vectors


def _slopes(side: Contexts, first: Array, by_first: Array, matrix: Array, emissions: Array) -> tuple[Array, Array]:
    """`_grow`, and its slopes (n² + n·symbols, contexts, n) by every entry of matrix and emissions."""
    n, k = emissions.shape
    vectors = _grow(side, first, matrix, emissions)
    slopes = np.zeros((n * n + n * k, *vectors.shape))
    slopes[: n * n, 0] = by_first
    states = np.arange(n)
    for at in side.levels:
        shorter, symbol = side.shorter[at], side.symbol[at]
        emitted = emissions[:, symbol].T
        change = slopes[:, shorter] * emitted
        by_emission = change[n * n :].reshape(n, k, at.size, n)
        for state in states:
            by_emission[state, symbol, np.arange(at.size), state] += vectors[shorter, state]
        change = change @ matrix
        by_matrix = change[: n * n].reshape(n, n, at.size, n)
        by_matrix[:, states, :, states] += (vectors[shorter] * emitted).T
        slopes[:, at] = change
    return vectors, slopes


def _by_roots(roots: tuple[Array, Array], slopes: Array) -> Array:
    """Slopes by the square roots of distributions, the rows of both tables, from those by their entries."""
    found = []
    for root, part in zip(roots, np.split(slopes, [roots[0].size]), strict=True):
        rows = part.reshape(*root.shape, -1)
        found.append((2 * root[..., None] * (rows - np.square(root)[:, None] @ rows)).reshape(part.shape))
    return np.concatenate(found)


def _step(roots: Array, change: Array) -> Array:
    """The distributions with square roots ``roots + change``; rows of zeros stay."""
    rows = (roots + change.reshape(roots.shape)) ** 2
    return np.asarray(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300))


def _smooth(rows: Array) -> Array:
    """Distributions with a little of the uniform one."""
    return np.asarray((1 - UNIFORM_SHARE) * rows + UNIFORM_SHARE / rows.shape[1])


def _inverse_sqrt(frequency: Array, least: float) -> Array:
    """One over the square root of frequencies; zero for what never occurs."""
    return np.where(frequency > 1e-12, 1 / np.sqrt(np.maximum(frequency, 0.0) + least), 0.0)


def _pad_with_ends(strings: Ragged, n_symbols: int) -> Ragged:
    """Strings with the symbols ``n_symbols`` before and ``n_symbols + 1`` after them."""
    offsets = strings.offsets + 2 * np.arange(len(strings) + 1)
    values = np.empty(int(offsets[-1]), dtype=np.int32)
    inside = np.ones(values.size, dtype=bool)
    for ends, symbol in ((offsets[:-1], n_symbols), (offsets[1:] - 1, n_symbols + 1)):
        values[ends] = symbol
        inside[ends] = False
    values[inside] = strings.values
    return Ragged(values, offsets)


def _subtract_longer(shorter: list[tuple[int, ...]], contexts: list[tuple[int, ...]]) -> sparse.csr_array:
    """A matrix that subtracts the counts of longer contexts: its product with counts is those of each context alone."""
    index = {text: i for i, text in enumerate(contexts)}
    longer = np.array([i for i, text in enumerate(contexts) if text], dtype=np.int64)
    within = np.array([index[shorter[i]] for i in longer], dtype=np.int64)
    size = (len(contexts), len(contexts))
    return sparse.csr_array(sparse.eye_array(*size) - sparse.csr_array((np.ones(longer.size), (within, longer)), size))


def _contexts(
    shorter: list[tuple[int, ...]], symbol: list[tuple[int, ...]], contexts: list[tuple[int, ...]], compress: Array
) -> Contexts:
    index = {text: i for i, text in enumerate(contexts)}
    lengths = np.array([len(text) for text in contexts])
    return Contexts(
        np.array([index[one] if text else -1 for one, text in zip(shorter, contexts, strict=True)]),
        np.array([one[0] if one else -1 for one in symbol]),
        [np.flatnonzero(lengths == length) for length in range(1, MAX_CONTEXT_LENGTH + 1)],
        compress,
    )

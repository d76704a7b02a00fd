"""Hankel matrices of strings: counting them in one pass over a prefix tree, and the automata that follow.

``H(u, v) = f(uv)`` and ``H_σ(u, v) = f(uσv)`` for prefixes u and suffixes v of a basis. f is the frequency of whole
strings, of prefixes or of substrings, divided by the number of strings, so H and H_σ have one denominator. Each uv is
one node of a prefix tree, so every entry is read once, on the way up from its node: O(nodes · longest suffix).

With the top n singular vectors, ``H ≈ U S Vᵀ``: ``A_σ = (HV)⁺ H_σ V``, ``α_1ᵀ = h_{λ,S} V``, ``α_∞ = (HV)⁺ h_{P,λ}``
(Hsu, Kakade & Zhang 2009; Bailly, Denis & Ralaivola 2009; Balle, Carreras, Luque & Quattoni 2014). Rows and columns may
be scaled first. That leaves the automaton of exact values as it is, and improves that of counts: rare ones are noisy.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.ragged import Ragged
from tacit.spectral.prefix_tree import PrefixTree, find, grow, hash_nodes

STATISTICS = ("string", "prefix", "substring")

MAX_DENSE_SIZE = 700
"""Rows or columns up to which a dense SVD is faster than an iterative one."""

Parts: TypeAlias = tuple[Array, Array, Array]
"""Initial vector, transition matrices and final vector of an automaton."""


class Hankel(NamedTuple):
    """A block of a Hankel matrix and its shifts.

    Attributes
    ----------
    prefixes, suffixes : the basis, one string of symbols per row or column; the first of each is the empty string
    block : (prefixes, suffixes) sparse, H
    shifted : (symbols · prefixes, suffixes) sparse, all H_σ one under the other
    statistics : what f is
    row_totals : of counts: the share of strings that begin with each prefix; for substrings its occurrences per string
    column_totals : Σ_u f(uv) over all u, for strings and prefixes; for substrings the occurrences of v per string
    """

    prefixes: Ragged
    suffixes: Ragged
    block: Any
    shifted: Any
    statistics: str
    row_totals: Array | None = None
    column_totals: Array | None = None

    @property
    def n_symbols(self) -> int:
        return int(self.shifted.shape[0] // self.block.shape[0])


def count(
    strings: Ragged,
    n_symbols: int,
    *,
    statistics: str = "prefix",
    length: int = 3,
    size: int | None = None,
    basis: tuple[Ragged, Ragged] | None = None,
    weights: Array | None = None,
) -> Hankel:
    """Count the Hankel block of strings over the symbols 0 … n_symbols − 1.

    Parameters
    ----------
    length : the largest length of prefixes and suffixes of the basis
    size : the number of each, at most; the most frequent ones are used. None for all that occur
    basis : given prefixes and suffixes instead; those that never occur are left out, the empty string is added
    weights : of the strings; None for one each

    >>> hankel = count(Ragged([0, 1, 0, 1, 1], [0, 2, 4, 4, 5]), 2, statistics="string", length=1)
    >>> hankel.block.toarray()
    array([[0.25, 0.25],
           [0.  , 0.5 ],
           [0.25, 0.  ]])
    """
    total = float(len(strings) if weights is None else weights.sum())
    rows_reach, columns_reach = (
        (length, length) if basis is None else (int(part.lengths.max(initial=0)) for part in basis)
    )
    everywhere = statistics == "substring"
    tree = grow(strings, weights, longest=rows_reach + columns_reach + 1, everywhere=everywhere)
    backward = grow(strings, weights, longest=columns_reach, everywhere=statistics != "string", reverse=True)
    rows = _choose(tree, rows_reach, size) if basis is None else _find_basis(tree, basis[0])
    columns = _choose(backward, columns_reach, size) if basis is None else _find_basis(backward, _reverse(basis[1]))
    value = (tree.ending if statistics == "string" else tree.passing) / total
    entries = _entries(tree, value, rows, *_prune(backward, columns))
    heights = rows.size, n_symbols * rows.size
    block, shifted = (
        sparse.csr_array((values, (at, to)), shape=(height, columns.size))
        for (at, to, values), height in zip(entries, heights, strict=True)
    )
    basis = _read_strings(tree, rows), _reverse(_read_strings(backward, columns))
    totals = tree.passing[rows] / total, backward.passing[columns] / total
    return Hankel(*basis, block, shifted, statistics, *totals)


def _choose(tree: PrefixTree, length: int, size: int | None) -> Array:
    """The nodes down to this depth, or about ``size`` of them, the most frequent; the root first.

    Equally frequent strings of one length are all kept or all dropped, so the order of symbols does not matter.
    """
    nodes = np.flatnonzero((tree.depth <= length) & (tree.passing > 0))[1:]
    nodes = nodes[np.lexsort((nodes, tree.depth[nodes], -tree.passing[nodes]))]
    if size is not None and nodes.size >= size:
        kept = size - 1
        like = (tree.passing[nodes] == tree.passing[nodes[kept]]) & (tree.depth[nodes] == tree.depth[nodes[kept]])
        nodes = nodes[: int(np.argmax(like)) or kept]
    return np.concatenate([[0], nodes])


def _find_basis(tree: PrefixTree, strings: Ragged) -> Array:
    """The nodes of a user's strings, the root first, each once."""
    nodes = np.concatenate([[0], find(tree, strings)])
    nodes = nodes[nodes >= 0]
    return np.asarray(nodes[np.sort(np.unique(nodes, return_index=True)[1])])


def _prune(backward: PrefixTree, columns: Array) -> tuple[Array, Array, Array]:
    """Parent, symbol and column (−1 if none) of the nodes on the path to a suffix of the basis."""
    wanted = np.zeros(backward.parent.size, dtype=bool)
    front = columns
    while front.size:
        wanted[front] = True
        front = np.unique(backward.parent[front])
        front = front[front >= 0]
        front = front[~wanted[front]]
    kept = np.flatnonzero(wanted)
    rank = np.full(wanted.size + 1, -1, dtype=np.int32)
    rank[kept] = np.arange(kept.size)
    column = np.full(kept.size, -1, dtype=np.int32)
    column[rank[columns]] = np.arange(columns.size)
    return rank[backward.parent[kept]], backward.symbol[kept], column


def _entries(
    tree: PrefixTree, value: Array, rows: Array, parent: Array, symbol: Array, column: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Rows, columns and values of H and of the stacked H_σ."""
    row = np.full(tree.parent.size, -1, dtype=np.int32)
    row[rows] = np.arange(rows.size)
    table = np.full(1 << (2 * parent.size).bit_length(), -1, dtype=np.int32)
    hash_nodes(parent, symbol, table)
    nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0)
    shared = (tree.parent, tree.symbol, value, row, rows.size, parent, symbol, column, table)
    sizes = _walk(*shared, *nothing, *nothing)
    block, shifted = (
        (np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int32), np.empty(n)) for n in (int(n) for n in sizes)
    )
    _walk(*shared, *block, *shifted)
    return block, shifted


@kernel
def _walk(
    parent: Array, symbol: Array, value: Array, row: Array, n_rows: int, suffix_parent: Array, suffix_symbol: Array,
    column: Array, table: Array, block_row: Array, block_column: Array, block_value: Array, shifted_row: Array,
    shifted_column: Array, shifted_value: Array,
) -> tuple[int, int]:  # fmt: skip
    """Up from every node: each ancestor splits it into a prefix and a suffix. Only counts if the outputs are empty."""
    mask = table.size - 1
    n_block, n_shifted = 0, 0
    for node in range(parent.size):
        if value[node] == 0.0:
            continue
        above, suffix = node, 0
        while True:
            if column[suffix] >= 0:
                if row[above] >= 0:
                    if block_row.size:
                        block_row[n_block] = row[above]
                        block_column[n_block] = column[suffix]
                        block_value[n_block] = value[node]
                    n_block += 1
                if above > 0 and row[parent[above]] >= 0:
                    if shifted_row.size:
                        shifted_row[n_shifted] = np.int64(symbol[above]) * n_rows + row[parent[above]]
                        shifted_column[n_shifted] = column[suffix]
                        shifted_value[n_shifted] = value[node]
                    n_shifted += 1
            if above == 0:
                break
            s = symbol[above]
            mixed = np.uint64(suffix) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(s) * np.uint64(0xC2B2AE3D27D4EB4F)
            slot = np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(mask))
            while table[slot] >= 0 and (suffix_parent[table[slot]] != suffix or suffix_symbol[table[slot]] != s):
                slot = (slot + 1) & mask
            if table[slot] < 0:
                break
            suffix = table[slot]
            above = parent[above]
    return n_block, n_shifted


def _read_strings(tree: PrefixTree, nodes: Array) -> Ragged:
    """The strings of nodes."""
    offsets = np.concatenate([[0], np.cumsum(tree.depth[nodes])]).astype(np.int64)
    values = np.empty(offsets[-1], dtype=np.int32)
    at = nodes.copy()
    for step in range(int(tree.depth[nodes].max(initial=0))):
        on = np.flatnonzero(tree.depth[nodes] > step)
        values[offsets[on + 1] - 1 - step] = tree.symbol[at[on]]
        at[on] = tree.parent[at[on]]
    return Ragged(values, offsets)


def _reverse(strings: Ragged) -> Ragged:
    """Every string read from its end."""
    starts, ends = strings.offsets[:-1], strings.offsets[1:]
    mirror = np.repeat(starts + ends - 1, strings.lengths) - np.arange(strings.values.shape[0])
    return Ragged(strings.values[mirror], strings.offsets)


class Factors(NamedTuple):
    """A Hankel block by the top singular vectors of its scaled form.

    Attributes
    ----------
    rows : (r, prefixes) ``S⁻¹ Uᵀ`` times the row factors: (HV)⁺
    columns : (suffixes, r) V times the column factors
    singular_values : (r,), of the scaled block, falling
    shifted : (symbols, prefixes, r) ``H_σ V``
    """

    rows: Array
    columns: Array
    singular_values: Array
    shifted: Array


def factorise(hankel: Hankel, rank: int, *, scaling: float = 0.0, seed: int = 0) -> Factors:
    """The factors of rank ``rank``, or of the rank of the block if that is less.

    Parameters
    ----------
    scaling : rows and columns are divided by this power of their sums; with ½ the singular values are canonical
        correlations
    seed : of the start of the iterative SVD, for large blocks
    """
    row_scale, column_scale = scale_factors(hankel.block, scaling)
    block = sparse.diags_array(row_scale) @ hankel.block @ sparse.diags_array(column_scale)
    left, singular, right = thin_svd(block, rank, seed)
    real = singular > 1e-12 * max(singular[0], 1e-300)
    left, singular, right = left[:, real], singular[real], right[:, real]
    columns = column_scale[:, None] * right
    n_prefixes = hankel.block.shape[0]
    shifted = (hankel.shifted @ columns).reshape(hankel.n_symbols, n_prefixes, -1)
    return Factors((left / singular).T * row_scale, columns, singular, shifted)


def operators(hankel: Hankel, factors: Factors, rank: int) -> Parts:
    """Initial vector, transition matrices and final vector of the automaton of the Hankel block's own statistics."""
    rows, columns = factors.rows[:rank], factors.columns[:, :rank]
    transitions = np.matmul(rows, factors.shifted[:, :, :rank])
    initial = np.asarray(hankel.block[[0]] @ columns).ravel()
    return initial, np.ascontiguousarray(transitions), rows @ hankel.block[:, [0]].toarray().ravel()


def scale_factors(block: Any, scaling: float) -> tuple[Array, Array]:
    """One over a power of the sums of rows and of columns; a little is added, so that rare ones stay bounded."""
    sums = np.asarray(block.sum(axis=1)).ravel(), np.asarray(block.sum(axis=0)).ravel()
    rows, columns = ((total + 5e-5 * total.max()) ** -scaling for total in sums)
    return rows, columns


def thin_svd(block: Any, rank: int, seed: int) -> tuple[Array, Array, Array]:
    """The top singular triplets, the largest first, with signs that do not depend on the algorithm."""
    smaller = min(block.shape)
    if smaller <= MAX_DENSE_SIZE or rank >= smaller:
        left, singular, right = np.linalg.svd(block.toarray(), full_matrices=False)
    else:
        start = np.random.default_rng(seed).standard_normal(smaller)
        left, singular, right = svds(block, k=rank, v0=start)
    order = np.argsort(-singular, kind="stable")[:rank]
    left, singular, right = left[:, order], singular[order], right[order].T
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(order.size)])
    return left * signs, singular, right * signs


def forward_space(initial: Array, transitions: Array, tol: float) -> Array:
    """(n, r) orthonormal basis of the span of ``initialᵀ A_w`` over all strings w; at least one column.

    Singular values up to ``tol``, of vectors scaled to length one, count as zero.
    """
    size = np.linalg.norm(initial)
    if size == 0:
        return np.eye(initial.size)[:, :1]
    spanned = (initial / size)[:, None]
    scale = max(float(np.linalg.norm(transitions, axis=(1, 2)).max()), 1e-300)
    while spanned.shape[1] < initial.size:
        moved = (np.einsum("ir,sij->jsr", spanned, transitions) / scale).reshape(initial.size, -1)
        new = moved - spanned @ (spanned.T @ moved)
        left, singular, _ = np.linalg.svd(new, full_matrices=False)
        fresh = left[:, singular > tol]
        if not fresh.shape[1]:
            break
        spanned = np.linalg.qr(np.hstack([spanned, fresh]))[0]
    return np.asarray(spanned)


def largest_gap(one: Parts, two: Parts) -> tuple[float, float]:
    """The largest difference of two automata, and their largest value, over strings that span both."""
    n = one[0].size
    initial, final = np.concatenate([one[0], two[0]]), np.concatenate([one[2], two[2]])
    transitions = np.zeros((len(one[1]), initial.size, initial.size))
    transitions[:, :n, :n], transitions[:, n:, n:] = one[1], two[1]
    rows = _find_spanning(initial, transitions)
    columns = _find_spanning(final, transitions.transpose(0, 2, 1))
    blocks = [rows @ columns.T, *(rows @ matrix @ columns.T for matrix in transitions)]
    halves = [(rows[:, :n] @ columns[:, :n].T, rows[:, n:] @ columns[:, n:].T)]
    halves += [
        (rows[:, :n] @ a @ columns[:, :n].T, rows[:, n:] @ b @ columns[:, n:].T)
        for a, b in zip(one[1], two[1], strict=True)
    ]
    gap = max(float(np.abs(f - g).max()) for f, g in halves)
    return gap, max(float(np.abs(block).max()) for block in blocks)


def _find_spanning(initial: Array, transitions: Array) -> Array:
    """Vectors of the shortest strings that span the reachable space."""
    chosen, basis = [initial], _add_direction(initial, np.empty((0, initial.size)))
    front = [initial]
    while front and len(basis) < initial.size:
        following = []
        for vector in front:
            for matrix in transitions:
                moved = vector @ matrix
                grown = _add_direction(moved, basis)
                if len(grown) > len(basis):
                    basis = grown
                    chosen.append(moved)
                    following.append(moved)
        front = following
    return np.array(chosen)


def _add_direction(vector: Array, basis: Array) -> Array:
    """The orthonormal rows of the basis, and one more if the vector is not in their span."""
    size = np.linalg.norm(vector)
    rest = vector - basis.T @ (basis @ vector)
    rest -= basis.T @ (basis @ rest)
    if size == 0 or np.linalg.norm(rest) <= 1e-7 * size:
        return basis
    return np.vstack([basis, rest / np.linalg.norm(rest)])

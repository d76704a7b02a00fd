"""Weighted automata over pairs (x, y) from counts of three neighbouring pairs, and their smoothing.

With contexts p before a pair c and q after it: ``H[p, q] = P(p_{t−1}, q_t)`` and ``H_c[p, q] = P(p_{t−1}, c_t = c,
q_{t+1})`` over the same windows with the same denominator. With the top n singular vectors V of H:
``A_c = (HV)⁺ H_c V``, ``α_1ᵀ = h_1ᵀ V`` with the contexts h_1 of first pairs, ``α_∞ = (HV)⁺ h_P`` with h_P the row sums
of H. The matrices H_c are never stored: every window adds one outer product of two vectors of length n to the operator
of its pair. Rows and columns of H are first divided by the roots of their sums. That changes nothing for exact values,
and reduces the noise of rare contexts.

After this scaling the sampling noise of N windows is about 1/√N per cell. So the noise of r rows and c columns has
singular values of up to ``τ = (√r + √c)/√N``. A direction with a singular value σ is inverted as ``σ/(σ² + τ²)``, as in
ridge regression, and a rank above that of the model adds little noise. The first direction, where σ is one, is exact.
With growing data τ vanishes.

Smoothing backs off to coarser counts. With a strength of s, every pair is given s visits more in which it behaves like
its tag. Every tag is given s visits more after which the state depends on the tag alone, as in a Markov chain of tags.
Every pair is also given one visit that continues from the average state, so that probabilities stay above zero. With
growing data all three vanish; for s → ∞ the model is the HMM whose states are the contexts of tags, but for τ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from tacit.data.arrays import Array
from tacit.data.kernels import kernel

MAX_DENSE = 400
"""Contexts up to which a full SVD is computed; for more, a randomised one of the top vectors."""

NEGLIGIBLE = 1e-10
"""Singular values below this share of the largest are rounding errors: the rank excludes them."""

MIN_TIMES = 10
"""Occurrences from which a pair is a context of its own. Two rare contexts that only occur next to each other have the
largest possible singular value, one, after scaling: with many of them the top vectors of H are noise."""

AVERAGE_VISITS = 1.0
"""Visits of the average state that are counted after every tag, in addition to the data."""


class Estimate(NamedTuple):
    """Operators of the counts before smoothing.

    Attributes
    ----------
    counts : the pairs
    automaton : their operators
    behind : (tags, rank) the mean state after every tag; None for a conditional model
    singular_values : of H
    """

    counts: PairCounts
    automaton: PairedAutomaton
    behind: Array | None
    singular_values: Array

    def cut(self, rank: int) -> Estimate:
        """The same with fewer hidden dimensions."""
        a = self.automaton
        automaton = PairedAutomaton(a.initial[:rank], a.operators[:, :rank, :rank], a.final[:rank], a.middle[:rank])
        behind = None if self.behind is None else self.behind[:, :rank]
        return Estimate(self.counts, automaton, behind, self.singular_values[:rank])

    def smooth(self, strength: float) -> PairedAutomaton:
        """The automaton smoothed with this strength, operators of an unknown symbol last."""
        counts, automaton = self.counts, self.automaton
        is_conditional = self.behind is None
        if not strength > 0:
            return counts.with_unknown(automaton, is_conditional)
        scale = np.ones(counts.n_pairs)
        if is_conditional:  # operators given x become those of x and y together
            of_symbol = np.bincount(counts.symbol, counts.times, minlength=counts.n_symbols)
            scale = of_symbol[counts.symbol] / counts.times.sum()
        operators = automaton.operators * scale[:, None, None]
        seen = np.bincount(counts.tag, counts.times, minlength=counts.n_tags)
        final, middle = automaton.final, automaton.middle / (automaton.middle @ automaton.final)
        for tag in range(counts.n_tags):
            mine = np.flatnonzero(counts.tag == tag)
            of_tag = operators[mine].sum(axis=0)
            if self.behind is not None:
                markov = np.outer(of_tag @ final, self.behind[tag])
                of_tag += strength / (strength + seen[tag]) * (markov - of_tag)
            weight = strength / (strength + counts.times[mine])
            part = operators[mine] * (1 - weight)[:, None, None]
            part += (weight * counts.times[mine] / seen[tag])[:, None, None] * of_tag
            if self.behind is not None:
                share = AVERAGE_VISITS / (AVERAGE_VISITS + seen[tag])
                part += share * ((part @ final)[:, :, None] * middle - part)
            operators[mine] = part
        return counts.with_unknown(automaton._replace(operators=operators / scale[:, None, None]), is_conditional)


def estimate(
    codes: Array, labels: Array, offsets: Array, n_symbols: int, n_tags: int, rank: int, seed: int, *, context: str,
    size: int, conditional: Any,
) -> Estimate:  # fmt: skip
    """Count, find the basis, build the operators: one pass over the data."""
    counts = count_pairs(codes, labels, n_symbols, n_tags)
    found = find_windows(counts, offsets, context, size, conditional)
    noise = float(np.linalg.norm(found.windows.weight))  # 1/√N for N windows of equal weight
    basis = find_basis(found.windows, found.context, found.n_contexts, rank, seed, noise)
    automaton = build_operators(found.windows, basis, counts.n_pairs, found.first)
    behind = None if conditional else np.asarray(found.following @ basis.right)
    return Estimate(counts, automaton, behind, basis.singular_values)


class PairCounts(NamedTuple):
    """The pairs that occur.

    Attributes
    ----------
    pair : (tokens,) the number of the pair of every token
    symbol, tag, times : (pairs,) and the count of each
    n_symbols, n_tags : sizes of the alphabets
    """

    pair: Array
    symbol: Array
    tag: Array
    times: Array
    n_symbols: int
    n_tags: int

    @property
    def n_pairs(self) -> int:
        return int(self.symbol.size)

    def table(self) -> Array:
        """(pairs, 3): symbol, tag, count."""
        return np.column_stack([self.symbol, self.tag, self.times]).astype(np.int64)

    def with_unknown(self, automaton: PairedAutomaton, is_conditional: bool) -> PairedAutomaton:
        """Append the operators of an unknown symbol, one per tag: the sum over symbols that occur once, or over all."""
        times = np.bincount(self.symbol, self.times, minlength=self.n_symbols)
        rare = times[self.symbol] <= 1
        rare = rare if rare.any() else np.ones(self.n_pairs, dtype=bool)
        weight = times[self.symbol][rare] / times[self.symbol][rare].sum() if is_conditional else np.ones(rare.sum())
        scaled, tags = automaton.operators[rare] * weight[:, None, None], self.tag[rare]
        unknown = [scaled[tags == tag].sum(axis=0)[None] for tag in range(self.n_tags)]
        return automaton._replace(operators=np.concatenate([automaton.operators, *unknown]))


class Found(NamedTuple):
    """Windows, the context of every pair, the number of contexts, the shares of contexts of first pairs, and
    ``following[tag, context]``, the shares of contexts after a tag."""

    windows: Windows
    context: Array
    n_contexts: int
    first: Array
    following: Any


def count_pairs(codes: Array, labels: Array, n_symbols: int, n_tags: int) -> PairCounts:
    """Number the pairs of symbols and tags that occur.

    >>> count_pairs(np.array([0, 1, 0]), np.array([1, 0, 1]), 2, 2).table().tolist()
    [[0, 1, 2], [1, 0, 1]]
    """
    both = codes * n_tags + labels
    times = np.bincount(both, minlength=n_symbols * n_tags)
    present = np.flatnonzero(times)
    number = np.full(times.size, -1, dtype=np.int64)
    number[present] = np.arange(present.size)
    return PairCounts(number[both], present // n_tags, present % n_tags, times[present], n_symbols, n_tags)


def find_windows(counts: PairCounts, offsets: Array, context: str, size: int, conditional: Any) -> Found:
    """The windows of all sequences of three pairs or more, with their weights.

    Parameters
    ----------
    counts : the pairs of the tokens
    offsets : of the sequences
    context : "tags"; "pairs": the ``size`` most frequent pairs, of those that occur `MIN_TIMES` times, others by their
        tag; or "symbols": the ``size`` most frequent symbols, others together
    conditional : False, True, or "markov"
    """
    of_pair, n_contexts = _contexts(counts, context, size)
    pair = counts.pair
    is_middle = np.ones(pair.size, dtype=bool)
    is_middle[offsets[:-1]] = False
    is_middle[offsets[1:] - 1] = False
    middle = np.flatnonzero(is_middle)
    if not middle.size:
        raise ValueError("all sequences have less than three symbols; add longer ones, or use a classifier of symbols")
    at = of_pair[pair]
    first = np.bincount(at[offsets[:-1]], minlength=n_contexts) / (offsets.size - 1)
    flat = np.full(middle.size, 1 / middle.size)
    weight, of_three = flat, flat
    if conditional:
        x = counts.symbol[pair]
        weight, of_three, start = _weights_given_symbols(x, offsets, middle, counts.n_symbols, conditional == "markov")
        first = np.bincount(at[offsets[:-1]], start, minlength=n_contexts) / start.sum()
    windows = Windows(at[middle - 1], pair[middle], at[middle + 1], weight, of_three)
    return Found(windows, of_pair, n_contexts, first, _find_following(counts, offsets, at, n_contexts))


def _find_following(counts: PairCounts, offsets: Array, at: Array, n_contexts: int) -> Any:
    """(tags, contexts) shares of the contexts after each tag; all contexts after a tag that only ends sequences."""
    has_next = np.ones(at.size, dtype=bool)
    has_next[offsets[1:] - 1] = False
    here = np.flatnonzero(has_next)
    tag = counts.tag[counts.pair[here]]
    times = np.bincount(tag, minlength=counts.n_tags)
    shares = 1 / np.maximum(times, 1)[tag]
    following = sparse.coo_array((shares, (tag, at[here + 1])), shape=(counts.n_tags, n_contexts)).tocsr()
    if times.all():
        return following
    average = np.bincount(at, minlength=n_contexts) / at.size
    return following + sparse.csr_array((times == 0)[:, None] * average)


def _contexts(counts: PairCounts, context: str, size: int) -> tuple[Array, int]:
    if context == "tags":
        return counts.tag.astype(np.int64), counts.n_tags
    if context == "symbols":
        times = np.bincount(counts.symbol, counts.times, minlength=counts.n_symbols)
        of_symbol = np.minimum(np.argsort(np.argsort(-times, kind="stable")), size)  # the rank by frequency
        return of_symbol[counts.symbol], min(int(np.count_nonzero(times)), size + 1)
    size = min(size, int(np.count_nonzero(counts.times >= MIN_TIMES)))
    if counts.n_pairs <= size:
        return np.arange(counts.n_pairs), counts.n_pairs
    frequent = np.sort(np.argsort(-counts.times, kind="stable")[:size])
    of_pair = size + counts.tag.astype(np.int64)
    of_pair[frequent] = np.arange(size)
    return of_pair, size + counts.n_tags


def _weights_given_symbols(
    x: Array, offsets: Array, middle: Array, n_symbols: int, is_markov: bool
) -> tuple[Array, Array, Array]:
    """Weights of windows in H, in the operators (which are given x_t), and of first pairs.

    If symbols are a Markov chain, a symbol depends on the tags around it, and a conditional operator would count that
    twice. Weights ``q(x_t)/p(x_t | x_{t−1})``, with q uniform, correct for it.
    """
    ones = np.ones(middle.size)
    if not is_markov:
        times = np.bincount(x[middle], minlength=n_symbols)
        return ones / middle.size, 1 / times[x[middle]], np.ones(offsets.size - 1)
    inside = np.ones(x.size, dtype=bool)
    inside[offsets[:-1]] = False
    later = np.flatnonzero(inside)
    steps, step_times = np.unique(x[later - 1] * n_symbols + x[later], return_counts=True)
    left = np.bincount(x[later - 1], minlength=n_symbols)

    def ratio(at: Array) -> Array:
        """q(x_t) / p(x_t | x_{t−1}) of these tokens."""
        times = step_times[np.searchsorted(steps, x[at - 1] * n_symbols + x[at])]
        return np.asarray(left[x[at - 1]] / (n_symbols * times))

    into, out = ratio(middle), ratio(middle + 1)
    three = into * out
    starts = x[offsets[:-1]]
    start_times = np.bincount(starts, minlength=n_symbols)
    total = np.bincount(x[middle], three, minlength=n_symbols)
    return into / into.sum(), three / total[x[middle]], starts.size / (n_symbols * start_times[starts])


class Windows(NamedTuple):
    """Three neighbouring pairs each, and their weights in H and in the operators; both sum to about one.

    Attributes
    ----------
    before, after : contexts of the pairs before and after
    pair : the pair in the middle
    weight, weight_of_three : of the window in H, and in the operator of its pair
    """

    before: Array
    pair: Array
    after: Array
    weight: Array
    weight_of_three: Array


class PairedAutomaton(NamedTuple):
    """``f(c_1 … c_m) = initialᵀ A_{c_1} … A_{c_m} final``, and the average state ``middle`` inside sequences."""

    initial: Array
    operators: Array
    final: Array
    middle: Array

    @property
    def rank(self) -> int:
        return int(self.initial.size)


class Basis(NamedTuple):
    """The top singular vectors: ``left`` (n, rows) is (HV)⁺ with noise damped, ``right`` (columns, n) is V; best
    directions first."""

    left: Array
    right: Array
    rows: Array
    columns: Array
    singular_values: Array


def find_basis(
    windows: Windows, context: Array, n_contexts: int, rank: int, seed: int, noise: float = 0.0
) -> Basis:  # fmt: skip
    """The singular vectors of H; ``context[pair]`` is the context of a pair for its neighbours.

    ``noise`` is the standard deviation of a scaled cell of H, zero where H is exact.
    """
    cells = windows.before, context[windows.pair]
    H = sparse.coo_array((windows.weight, cells), shape=(n_contexts, n_contexts)).tocsr()
    rows, columns = np.asarray(H.sum(axis=1)).ravel(), np.asarray(H.sum(axis=0)).ravel()
    row_scale, column_scale = _inverse_root(rows), _inverse_root(columns)
    scaled = sparse.csr_array(sparse.diags_array(row_scale) @ H @ sparse.diags_array(column_scale))
    if n_contexts <= MAX_DENSE:
        U, values, Vt = np.linalg.svd(scaled.toarray(), full_matrices=False)
    else:
        U, values, Vt = randomized_svd(scaled, min(rank, n_contexts), n_oversamples=10, n_iter=2, random_state=seed)
    n = max(1, min(rank, int((values > NEGLIGIBLE * values[0]).sum())))
    values = values[:n]
    level = noise * (np.sqrt(np.count_nonzero(rows)) + np.sqrt(np.count_nonzero(columns)))
    inverse = values / (values**2 + level**2)
    inverse[0] = 1 / values[0]
    left = (U[:, :n] * inverse).T * row_scale
    return Basis(left, Vt[:n].T * column_scale[:, None], rows, columns, values)


def build_operators(windows: Windows, basis: Basis, n_pairs: int, first: Array) -> PairedAutomaton:
    """The automaton of a basis; ``first`` has the share of first pairs of each context. O(windows · n²)."""
    n = basis.left.shape[0]
    operators = np.zeros((n_pairs, n, n))
    left, right = np.ascontiguousarray(basis.left.T), np.ascontiguousarray(basis.right)
    small = np.uint16 if n_pairs <= 1 << 16 else np.int64  # numpy sorts 16-bit numbers by counting
    order = np.argsort(windows.pair.astype(small, copy=False), kind="stable")
    _add_products(order, *windows[:3], windows.weight_of_three, left, right, operators)
    return PairedAutomaton(first @ right, operators, basis.left @ basis.rows, basis.columns @ right)


@kernel
def _add_products(
    order: Array, before: Array, pair: Array, after: Array, weight: Array, left: Array, right: Array, out: Array
) -> None:
    """``out[pair] += weight · left[before] ⊗ right[after]`` of every window, pair by pair.

    Four windows of one pair at a time, so that its operator is read and written once for all of them.
    """
    n = left.shape[1]
    at = 0
    while at < order.size:
        t = order[at]
        c = pair[t]
        into = out[c]
        if at + 4 <= order.size and pair[order[at + 3]] == c:
            t1, t2, t3 = order[at + 1], order[at + 2], order[at + 3]
            a, a1, a2, a3 = left[before[t]], left[before[t1]], left[before[t2]], left[before[t3]]
            b, b1, b2, b3 = right[after[t]], right[after[t1]], right[after[t2]], right[after[t3]]
            for i in range(n):
                share, share1 = weight[t] * a[i], weight[t1] * a1[i]
                share2, share3 = weight[t2] * a2[i], weight[t3] * a3[i]
                row = into[i]
                for j in range(n):
                    row[j] += (share * b[j] + share1 * b1[j]) + (share2 * b2[j] + share3 * b3[j])
            at += 4
            continue
        a = left[before[t]]
        b = right[after[t]]
        for i in range(n):
            share = weight[t] * a[i]
            row = into[i]
            for j in range(n):
                row[j] += share * b[j]
        at += 1


def _inverse_root(sums: Array) -> Array:
    return np.asarray(np.where(sums > 0, 1 / np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0))

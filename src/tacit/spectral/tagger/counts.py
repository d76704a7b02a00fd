"""Counts of pairs (x, y), and the windows of three neighbouring pairs that operators are learned from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.spectral.tagger.operators import PairedAutomaton, Windows


class PairCounts(NamedTuple):
    """The pairs that occur.

    Attributes
    ----------
    pair : (tokens,) which pair every token is
    symbol, tag, times : (pairs,) and how often each occurs
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
        """The operators of an unknown symbol behind the others, one per tag: the sum over the rarest symbols.

        A symbol that training never saw is most like those that it saw once; where there are none, like all.
        """
        times = np.bincount(self.symbol, self.times, minlength=self.n_symbols)
        rare = times[self.symbol] <= 1
        rare = rare if rare.any() else np.ones(self.n_pairs, dtype=bool)
        weight = times[self.symbol][rare] / times[self.symbol][rare].sum() if is_conditional else np.ones(rare.sum())
        unknown = _sum_by(automaton.operators[rare] * weight[:, None, None], self.tag[rare], self.n_tags)
        return automaton._replace(operators=np.concatenate([automaton.operators, unknown]))


class Found(NamedTuple):
    """Windows, the context of every pair, how many contexts there are, the shares of those of first pairs, and
    ``following[tag, context]``, the shares of those behind a tag."""

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
    offsets : where the sequences begin
    context : "tags", or "pairs": the ``size`` most frequent pairs, others by their tag
    conditional : False, True, or "markov"
    """
    of_pair, n_contexts = _contexts(counts, context, size)
    pair = counts.pair
    is_middle = np.ones(pair.size, dtype=bool)
    is_middle[offsets[:-1]] = False
    is_middle[offsets[1:] - 1] = False
    middle = np.flatnonzero(is_middle)
    if not middle.size:
        raise ValueError(
            "no sequence has three symbols or more, so nothing shows how they follow each other; add longer ones, or "
            "use a classifier of single symbols"
        )
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
    """(tags, contexts) shares of what follows each tag, from all neighbours: the first ones too, which no window has
    in its second half. Behind a tag that only ends sequences anything may follow."""
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

    Symbols that are a Markov chain tell of the tags around them, and a conditional operator would count that as the
    state's doing. Weights ``q(x_t)/p(x_t | x_{t−1})``, with q uniform, undo it.
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
        place = np.searchsorted(steps, x[at - 1] * n_symbols + x[at])
        return np.asarray(left[x[at - 1]] / (n_symbols * step_times[place]))

    into, out = ratio(middle), ratio(middle + 1)
    three = into * out
    starts = x[offsets[:-1]]
    start_times = np.bincount(starts, minlength=n_symbols)
    total = np.bincount(x[middle], three, minlength=n_symbols)
    return into / into.sum(), three / total[x[middle]], starts.size / (n_symbols * start_times[starts])


def _sum_by(operators: Array, group: Array, n_groups: int) -> Array:
    out = np.zeros((n_groups, *operators.shape[1:]))
    for g in range(n_groups):
        out[g] = operators[group == g].sum(axis=0)
    return out

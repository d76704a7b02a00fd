"""The word pairs of parallel text: which there are, and how many sentence pairs each is in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.text.alignment.corpus import Text, split_blocks

BLOCK_CELLS = 1 << 20
"""About the number of word pairs that are laid out at a time."""

MAX_KEPT = 1 << 21
"""The most word pairs that are kept whatever they are; of more, only those above `MIN_ASSOCIATION` are."""

MIN_ASSOCIATION = 0.03
"""Of the cosine of two words: sentence pairs with both, over the geometric mean of those with either. A word that
occurs once may translate words that occur in up to 1,000 sentence pairs."""

MAX_COUNTED = 1 << 22
"""The most word pairs that are counted at a time, which bounds the memory; of more, three quarters stay, those with the
highest cosines."""


class WordPairIndex(NamedTuple):
    """Different word pairs, source · n_target + target, sorted; those of a source word begin at ``begins``."""

    keys: Array
    begins: Array
    n_target: int

    def find(self, source: Array, target: Array) -> Array:
        """The position of every word pair, −1 for one that is not there. A word −1 is outside the vocabulary."""
        found = np.empty(source.size, dtype=np.int64)
        _find(self.keys, self.begins, self.n_target, source, target, found)
        return found

    def swap(self) -> tuple[WordPairIndex, Array]:
        """The index with source and target swapped, and where its word pairs are in this one."""
        n_source = self.begins.size - 1
        source, target = np.divmod(self.keys, self.n_target)
        keys = target * n_source + source
        order = np.argsort(keys)
        return index_word_pairs(keys[order], self.n_target, n_source), order


def index_word_pairs(keys: Array, n_source: int, n_target: int) -> WordPairIndex:
    """The index of sorted word pairs."""
    return WordPairIndex(keys, np.searchsorted(keys, np.arange(n_source + 1) * n_target), n_target)


class WordPairCounts(NamedTuple):
    """In how many sentence pairs words and word pairs occur.

    Parameters
    ----------
    source, target : by word
    together : by word pair of the index
    """

    source: Array
    target: Array
    together: Array

    def look_up(self, source: Array, target: Array, position: Array) -> tuple[Array, Array, Array]:
        """Counts of the two words, and their Dice coefficient, for every word pair."""
        n_source = np.where(source >= 0, self.source[source], 0)
        n_target = np.where(target >= 0, self.target[target], 0)
        together = (
            np.where(position >= 0, self.together[position], 0) if self.together.size else np.zeros(position.size)
        )
        return n_source, n_target, 2 * together / np.maximum(n_source + n_target, 1)


def count_word_pairs(text: Text, n_source: int, n_target: int) -> tuple[WordPairIndex, WordPairCounts]:
    """The word pairs of a text, and their counts, in bounded memory: of a long text, those that may be translations."""
    n_cells = np.diff(text.source_begins) * np.diff(text.target_begins)
    of_source, of_target = _count_words(text, 0, n_source), _count_words(text, 2, n_target)
    last_seen = np.full(n_source, -1), np.full(n_target, -1)
    found, waiting = _Counted(np.zeros(0, np.int64), np.zeros(0, np.int64)), list[_Counted]()

    def association(counted: _Counted) -> Array:
        source, target = np.divmod(counted.keys, n_target)
        return np.asarray(counted.counts / np.sqrt(of_source[source] * of_target[target]))

    for first, last in split_blocks(n_cells, BLOCK_CELLS):
        keys = np.empty(int(n_cells[first:last].sum()), dtype=np.int64)
        size = _list_word_pairs(*text, first, last, n_target, *last_seen, keys)
        waiting.append(_count_equal(keys[:size]))
        if last == n_cells.size or sum(own.keys.size for own in waiting) > max(found.keys.size // 2, BLOCK_CELLS):
            found, waiting = _join([found, *waiting]), []
            if found.keys.size > MAX_COUNTED:
                likely = np.argsort(-association(found), kind="stable")[: 3 * MAX_COUNTED // 4]
                found = found.select(np.sort(likely))
    if found.keys.size > MAX_KEPT:
        found = found.select(association(found) >= MIN_ASSOCIATION)
    index = index_word_pairs(found.keys, n_source, n_target)
    return index, WordPairCounts(of_source, of_target, found.counts)


class _Counted(NamedTuple):
    """Sorted word pairs and their counts."""

    keys: Array
    counts: Array

    def select(self, chosen: Array) -> _Counted:
        return _Counted(self.keys[chosen], self.counts[chosen])


def _count_equal(keys: Array) -> _Counted:
    keys = np.sort(keys)
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return _Counted(keys[firsts], np.diff(firsts, append=keys.size))


def _join(parts: list[_Counted]) -> _Counted:
    keys, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")  # linear, as the parts are sorted
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return _Counted(keys[firsts], np.add.reduceat(counts[order], firsts) if keys.size else counts)


def _count_words(text: Text, side: int, n_words: int) -> Array:
    """In how many sentences each word of a side occurs."""
    counts = np.zeros(n_words, dtype=np.int64)
    _count_sentences(text[side], text[side + 1], np.full(n_words, -1), counts)
    return counts


@kernel
def _count_sentences(words: Array, begins: Array, last_seen: Array, counts: Array) -> None:
    for n in range(begins.size - 1):
        for k in range(begins[n], begins[n + 1]):
            if last_seen[words[k]] != n:
                last_seen[words[k]] = n
                counts[words[k]] += 1


@kernel
def _list_word_pairs(
    source: Array,
    s_begins: Array,
    target: Array,
    t_begins: Array,
    first: int,
    last: int,
    n_target: int,
    source_seen: Array,
    target_seen: Array,
    out: Array,
) -> int:
    """The word pairs of some sentence pairs, each once per sentence pair; their number."""
    size = 0
    longest = 0
    for n in range(first, last):
        longest = max(longest, t_begins[n + 1] - t_begins[n])
    others = np.empty(longest, np.int64)
    for n in range(first, last):
        n_others = 0
        for j in range(t_begins[n], t_begins[n + 1]):
            if target_seen[target[j]] != n:
                target_seen[target[j]] = n
                others[n_others] = target[j]
                n_others += 1
        for i in range(s_begins[n], s_begins[n + 1]):
            if source_seen[source[i]] != n:
                source_seen[source[i]] = n
                for j in range(n_others):
                    out[size] = source[i] * n_target + others[j]
                    size += 1
    return size


@kernel
def _find(keys: Array, begins: Array, n_target: int, source: Array, target: Array, out: Array) -> None:
    for k in range(source.size):
        out[k] = -1
        if source[k] < 0 or target[k] < 0:
            continue
        key, low, high = source[k] * n_target + target[k], begins[source[k]], begins[source[k] + 1] - 1
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < key:
                low = middle + 1
            else:
                high = middle
        if low <= high and keys[low] == key:
            out[k] = low

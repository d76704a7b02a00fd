"""IBM model 1 with a diagonal prior: translation probabilities from parallel sentences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import digamma
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import has_length, is_list, shorten
from tacit.data.specs import between, check_parameters, estimator, not_negative, parameter, positive, whole
from tacit.text.alignment.links import MAX_WORDS

MAX_ROUNDS = 1000
"""The most iterations of EM: the model no longer changes after so many."""

MAX_KEPT = 1 << 21
"""The most word pairs that are kept whatever their probability; of more, only those above `LEAST_GIVEN` are."""

LEAST_GIVEN = 1e-9

BLOCK_CELLS = 1 << 20
"""About the number of word pairs that are laid out at a time."""

Corpus = Sequence[Sequence[str]]
"""Sentences as sequences of words."""


@estimator
class IBM1(BaseEstimator):  # type: ignore[misc]
    """Translation probabilities t(target word | source word) by EM (Brown et al. 1993).

    Every target word was produced by one hidden source word of its sentence, or by none. The prior probability of a
    source word at relative position i/I is proportional to ``exp(−diagonal·|i/I − j/J|)`` (Dyer, Chahuneau & Smith
    2013). The M-step is that of variational Bayes with a prior of ``alpha`` per translation, so that rare words do not
    align to everything. O(word pairs) per iteration.

    Parameters
    ----------
    diagonal : how much the prior prefers the diagonal; 0 is the plain model
    null : the share of target words that no source word produced
    alpha : the Dirichlet prior of every translation, above 0
    n_iter : iterations of EM, at most 1,000; a few dozen are enough

    >>> model = IBM1(diagonal=0.0).fit(["la maison", "la fleur", "maison"], ["the house", "the flower", "house"])
    >>> model.posteriors(["la fleur"], ["the flower"])[0].argmax(axis=0)
    array([0, 1])
    """

    diagonal: float = parameter(not_negative, default=6.0)
    null: float = parameter(between("a share from 0, below 1", 0, math.nextafter(1, 0)), default=0.1)
    alpha: float = parameter(positive, default=0.01)
    n_iter: int = parameter(whole(1, MAX_ROUNDS), default=10)

    def fit(self, source: Any, target: Any) -> IBM1:
        """Learn from sentence pairs: a list of sentences, and the list of their translations."""
        check_parameters(self)
        sources, targets = read_pairs_of_sentences(source, target)
        self.source_types_, self.target_types_ = number_types(sources), number_types(targets)
        text = number_text(sources, targets, self.source_types_, self.target_types_)
        self.table_ = self.learn(text, len(self.source_types_), len(self.target_types_))
        return self

    def posteriors(self, source: Any, target: Any) -> list[Array]:
        """(I, J) per sentence pair: the probability that a source word (row) produced a target word (column)."""
        check_is_fitted(self)
        sources, targets = read_pairs_of_sentences(source, target)
        cells = lay_out(sources, targets, self.source_types_, self.target_types_)
        parts = np.split(self.posterior(cells, self.table_), cells.bases[1:-1])
        return [own.reshape(shape) for own, shape in zip(parts, cells.shapes.tolist(), strict=True)]

    def align(self, source: Any, target: Any) -> list[Array]:
        """(links, 2) per sentence pair: every target word with its most probable source word."""
        found = []
        for posterior in self.posteriors(source, target):
            best = posterior.argmax(axis=0)
            is_linked = posterior.max(axis=0) > 1 - posterior.sum(axis=0)
            found.append(np.column_stack([best, np.arange(best.size)])[is_linked])
        return found

    def learn(self, text: Text, n_source: int, n_target: int, kinds: Array | None = None) -> Translations:
        """Run EM on numbered sentence pairs; words are numbers below the two sizes.

        ``kinds`` are the word pairs of `word_pairs_of`, if they are known. O(word pairs · log(word pairs)) per
        iteration, in one pass through the text.
        """
        kinds = word_pairs_of(text, n_target) if kinds is None else kinds
        begins = np.searchsorted(kinds, np.arange(n_source + 1) * n_target)
        of_source, alpha = np.repeat(np.arange(n_source), np.diff(begins)), float(self.alpha)
        given = np.full(kinds.size, 1.0 / n_target)
        alone = np.full(n_target, 1.0 / n_target)
        totals: Array = np.zeros(n_source)
        counts, none = np.empty(kinds.size), np.empty(n_target)
        for _ in range(int(self.n_iter)):
            _expect(*text, kinds, begins, given, alone, float(self.diagonal), float(self.null), counts, none)
            totals = np.bincount(of_source, counts, minlength=n_source)
            given[:] = counts
            given += alpha
            digamma(given, out=given)
            given -= digamma(totals + alpha * n_target)[of_source]
            np.exp(given, out=given)
            alone = np.exp(digamma(none + alpha) - digamma(none.sum() + alpha * n_target))
        unseen = np.exp(digamma(alpha) - digamma(totals + alpha * n_target))
        unseen[totals == 0] = 1.0 / n_target
        if kinds.size > MAX_KEPT:
            is_kept = given > LEAST_GIVEN
            kinds, given = kinds[is_kept], given[is_kept]
        return Translations(kinds, given, unseen, alone, n_target)

    def posterior(self, cells: Cells, table: Translations) -> Array:
        """The posterior of every word pair; the rest of each column is for no source word."""
        joint = self._prior(cells) * table.look_up(cells)
        column = cells.columns()
        word = np.zeros(int(column[-1]) + 1, dtype=np.int64)
        word[column] = cells.target
        nothing = float(self.null) * np.where(word >= 0, table.alone[word], 1.0 / table.n_target)
        evidence = np.bincount(column, joint) + nothing
        return np.asarray(joint / np.maximum(evidence, 1e-300)[column])

    def _prior(self, cells: Cells) -> Array:
        factor = np.exp(-float(self.diagonal) * cells.gap())
        column = cells.columns()
        return np.asarray((1 - float(self.null)) * factor / np.bincount(column, factor)[column])


class Text(NamedTuple):
    """Sentence pairs as numbers of words, one sentence after the other, and where the sentences begin."""

    source: Array
    source_begins: Array
    target: Array
    target_begins: Array

    def swap(self) -> Text:
        """The same text with source and target swapped."""
        return Text(self.target, self.target_begins, self.source, self.source_begins)

    def where(self, is_included: Array) -> Text:
        """The sentence pairs for which this holds."""
        parts = []
        for words, begins in (self[:2], self[2:]):
            sizes = np.diff(begins)
            parts += [words[np.repeat(is_included, sizes)], np.concatenate([[0], np.cumsum(sizes[is_included])])]
        return Text(*parts)


class Translations(NamedTuple):
    """Translation probabilities t(target | source), of word pairs that occurred and of all others.

    Parameters
    ----------
    kinds : the word pairs that occurred, source · n_target + target, sorted
    given : their probabilities
    unseen : by source word, the probability of a target word that never occurred with it
    alone : by target word, the probability that no source word produces it
    n_target : number of target words
    """

    kinds: Array
    given: Array
    unseen: Array
    alone: Array
    n_target: int

    def look_up(self, cells: Cells) -> Array:
        """t of every word pair; words outside the vocabulary translate to all words alike."""
        keys = cells.source * self.n_target + cells.target
        position = np.minimum(np.searchsorted(self.kinds, keys), max(self.kinds.size - 1, 0))
        is_inside = (cells.source >= 0) & (cells.target >= 0)
        found = is_inside & (self.kinds[position] == keys) if self.kinds.size else np.zeros(keys.size, dtype=bool)
        rest = np.where(cells.source >= 0, self.unseen[cells.source], 1.0 / self.n_target)
        return np.asarray(np.where(found, self.given[position] if self.kinds.size else 0.0, rest))


class Cells(NamedTuple):
    """All word pairs of many sentence pairs, one after the other, source word after source word.

    Parameters
    ----------
    shapes : (n, 2) words of the two sentences
    bases : (n + 1,) where the word pairs of each sentence pair begin
    owner : the sentence pair of each word pair
    i, j : positions in the two sentences, from 0
    source, target : numbers of the words' types, −1 for a type that is not in the vocabulary
    """

    shapes: Array
    bases: Array
    owner: Array
    i: Array
    j: Array
    source: Array
    target: Array

    def columns(self) -> Array:
        """The number of the target token of every word pair, through all sentences."""
        return np.asarray((np.cumsum(self.shapes[:, 1]) - self.shapes[:, 1])[self.owner] + self.j)

    def rows(self) -> Array:
        """The number of the source token of every word pair, through all sentences."""
        return np.asarray((np.cumsum(self.shapes[:, 0]) - self.shapes[:, 0])[self.owner] + self.i)

    def gap(self) -> Array:
        """The distance of a word pair from the diagonal, as a share of the sentence."""
        lengths = self.shapes[self.owner]
        return np.asarray(np.abs((self.i + 0.5) / lengths[:, 0] - (self.j + 0.5) / lengths[:, 1]))


def read_sentences(sentences: Any, name: str = "source") -> list[list[str]]:
    """Read sentences as lists of words, from lists of words or lines of text.

    >>> read_sentences(["la maison", ["the", "house"]])
    [['la', 'maison'], ['the', 'house']]
    """
    if isinstance(sentences, str | bytes | dict) or not is_list(sentences):
        raise ValueError(
            f"{name} must be a list of sentences: lines of text or lists of words; got {shorten(sentences)}"
        )
    found = []
    for i, sentence in enumerate(sentences):
        words = sentence.split() if isinstance(sentence, str) else sentence
        if isinstance(words, bytes | dict) or not has_length(words) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{name}[{i}] must be a line of text or a list of words, got {shorten(sentence)}")
        if len(words) > MAX_WORDS:
            raise ValueError(f"{name}[{i}] has {len(words)} words, but the limit is {MAX_WORDS}; split it")
        found.append([str(word) for word in words])
    return found


def read_both(source: Any, target: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Two lists of sentences of equal length, some of which may be empty."""
    sources, targets = read_sentences(source, "source"), read_sentences(target, "target")
    if len(sources) != len(targets):
        raise ValueError(f"source has {len(sources)} sentences, but target has {len(targets)}; give as many of each")
    return sources, targets


def read_pairs_of_sentences(source: Any, target: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Two lists of sentences of equal length, none of them empty."""
    sources, targets = read_both(source, target)
    if not sources:
        raise ValueError("source and target are empty; give at least one sentence pair")
    for name, sentences in (("source", sources), ("target", targets)):
        if [] in sentences:
            raise ValueError(f"{name}[{sentences.index([])}] is empty; drop this sentence pair")
    return sources, targets


def number_types(sentences: Corpus) -> dict[str, int]:
    """Number the different words in the order of first use; upper and lower case are the same."""
    types: dict[str, int] = {}
    for words in sentences:
        for word in words:
            types.setdefault(word.lower(), len(types))
    return types


def number_text(source: Corpus, target: Corpus, source_types: dict[str, int], target_types: dict[str, int]) -> Text:
    """Sentence pairs as numbers of their words."""
    parts = []
    for sentences, types in ((source, source_types), (target, target_types)):
        words = (types.get(word.lower(), -1) for sentence in sentences for word in sentence)
        parts += [np.fromiter(words, np.int64), np.concatenate([[0], np.cumsum([len(own) for own in sentences])])]
    return Text(*parts)


def word_pairs_of(text: Text, n_target: int) -> Array:
    """The different word pairs that occur together, source · n_target + target, sorted. Memory: 8 bytes per pair."""
    n_cells = np.diff(text.source_begins) * np.diff(text.target_begins)
    found, waiting = np.zeros(0, dtype=np.int64), list[Array]()
    for first, last in split_blocks(n_cells, BLOCK_CELLS):
        keys = np.empty(int(n_cells[first:last].sum()), dtype=np.int64)
        _list_word_pairs(*text, first, last, n_target, keys)
        waiting.append(np.unique(keys))
        if last == n_cells.size or sum(map(len, waiting)) > max(found.size, BLOCK_CELLS):
            found = np.unique(np.concatenate([found, *waiting]))
            waiting = []
    return found


def split_blocks(sizes: Array, most: int) -> list[tuple[int, int]]:
    """Cut rows of these sizes into blocks of about ``most`` together, as first and last row (not included).

    >>> split_blocks(np.array([3, 3, 3, 9]), 6)
    [(0, 2), (2, 3), (3, 4)]
    """
    numbers = (np.cumsum(sizes) - 1) // most
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [sizes.size]]).tolist()
    return list(itertools.pairwise(cuts))


@kernel
def _list_word_pairs(
    source: Array, s_begins: Array, target: Array, t_begins: Array, first: int, last: int, n_target: int, out: Array
) -> None:
    k = 0
    for n in range(first, last):
        for i in range(s_begins[n], s_begins[n + 1]):
            for j in range(t_begins[n], t_begins[n + 1]):
                out[k] = source[i] * n_target + target[j]
                k += 1


@kernel
def _expect(
    source: Array,
    s_begins: Array,
    target: Array,
    t_begins: Array,
    kinds: Array,
    begins: Array,
    given: Array,
    alone: Array,
    diagonal: float,
    null: float,
    counts: Array,
    none: Array,
) -> None:
    """The E-step: expected counts of word pairs, and of target words without a source word."""
    counts[:] = 0.0
    none[:] = 0.0
    n_target = alone.size
    longest = 0
    for n in range(s_begins.size - 1):
        longest = max(longest, s_begins[n + 1] - s_begins[n])
    place, joint = np.empty(longest, np.int64), np.empty(longest)
    for n in range(s_begins.size - 1):
        n_s, n_t = s_begins[n + 1] - s_begins[n], t_begins[n + 1] - t_begins[n]
        for j in range(n_t):
            word = target[t_begins[n] + j]
            total, evidence = 0.0, 0.0
            for i in range(n_s):
                own = source[s_begins[n] + i]
                key, low, high = own * n_target + word, begins[own], begins[own + 1] - 1
                while low < high:
                    middle = (low + high) // 2
                    if kinds[middle] < key:
                        low = middle + 1
                    else:
                        high = middle
                factor = np.exp(-diagonal * abs((i + 0.5) / n_s - (j + 0.5) / n_t))
                place[i] = low
                joint[i] = factor * given[low]
                total += factor
                evidence += joint[i]
            share = (1 - null) / total
            nothing = null * alone[word]
            evidence = max(share * evidence + nothing, 1e-300)
            none[word] += nothing / evidence
            for i in range(n_s):
                counts[place[i]] += share * joint[i] / evidence


def lay_out(source: Corpus, target: Corpus, source_types: dict[str, int], target_types: dict[str, int]) -> Cells:
    """All word pairs of these sentence pairs."""
    shapes = np.array([(len(s), len(t)) for s, t in zip(source, target, strict=True)], dtype=np.int64)
    sizes = shapes.prod(axis=1)
    bases = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(shapes)), sizes)
    within = np.arange(bases[-1]) - bases[owner]
    i, j = np.divmod(within, shapes[owner, 1])
    flat = []
    for sentences, types, position, column in ((source, source_types, i, 0), (target, target_types, j, 1)):
        numbers = np.array([types.get(word.lower(), -1) for words in sentences for word in words], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(shapes[:, column])])
        flat.append(numbers[starts[owner] + position])
    return Cells(shapes, bases, owner, i, j, *flat)


def group_duplicates(source: Corpus, target: Corpus) -> Array:
    """Group sentence pairs; pairs that share a source or a target sentence are in one group.

    >>> group_duplicates([["a"], ["b"], ["a"]], [["x"], ["y"], ["z"]]).tolist()
    [0, 1, 0]
    """
    n = len(source)
    kinds: dict[tuple[int, str], int] = {}
    keys = [(side, " ".join(words).lower()) for side, text in enumerate((source, target)) for words in text]
    nodes = n + np.array([kinds.setdefault(key, len(kinds)) for key in keys], dtype=np.int64)
    size = n + len(kinds)
    edges = sparse.coo_array((np.ones(2 * n), (np.tile(np.arange(n), 2), nodes)), shape=(size, size))
    groups = sparse.csgraph.connected_components(edges.tocsr(), directed=False)[1][:n]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def deal_folds(groups: Array, folds: int, rng: np.random.Generator) -> Array:
    """Assign sentence pairs to folds of about equal size, without splitting a group."""
    order = rng.permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)
    fold_of_group = np.empty(order.size, dtype=np.int64)
    filled = np.zeros(min(folds, order.size))
    for group in order[np.argsort(-sizes[order], kind="stable")]:  # the largest first, so that folds stay even
        fold_of_group[group] = int(filled.argmin())
        filled[fold_of_group[group]] += sizes[group]
    return np.asarray(fold_of_group[groups])

"""IBM model 1 with a diagonal prior: translation probabilities from parallel sentences."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.specs import between, check_parameters, estimator, not_negative, parameter, positive, whole
from tacit.text.alignment.corpus import Text, lay_out, number_text, number_types, read_pairs_of_sentences
from tacit.text.alignment.counts import WordPairIndex, count_word_pairs

MAX_ROUNDS = 1000
"""The most iterations of EM: the model no longer changes after so many."""


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
        self.index_ = count_word_pairs(text, len(self.source_types_), len(self.target_types_))[0]
        self.table_ = self.learn(text, self.index_)
        return self

    def posteriors(self, source: Any, target: Any) -> list[Array]:
        """(I, J) per sentence pair: the probability that a source word (row) produced a target word (column)."""
        check_is_fitted(self)
        sources, targets = read_pairs_of_sentences(source, target)
        cells = lay_out(sources, targets, self.source_types_, self.target_types_)
        given = self.table_.look_up(cells.source, cells.target, self.index_.find(cells.source, cells.target))
        parts = np.split(
            self.posterior(given, self.table_, cells.gap(), cells.columns(), cells.target), cells.bases[1:-1]
        )
        return [own.reshape(shape) for own, shape in zip(parts, cells.shapes.tolist(), strict=True)]

    def align(self, source: Any, target: Any) -> list[Array]:
        """(links, 2) per sentence pair: every target word with its most probable source word."""
        found = []
        for posterior in self.posteriors(source, target):
            best = posterior.argmax(axis=0)
            is_linked = posterior.max(axis=0) > 1 - posterior.sum(axis=0)
            found.append(np.column_stack([best, np.arange(best.size)])[is_linked])
        return found

    def learn(self, text: Text, index: WordPairIndex) -> Translations:
        """Run EM on numbered sentence pairs; word pairs that are not in the index do not translate each other.

        O(word pairs · log(translations of a word)) per iteration, in one pass through the text.
        """
        n_source, n_target = index.begins.size - 1, index.n_target
        of_source, alpha = np.repeat(np.arange(n_source), np.diff(index.begins)), float(self.alpha)
        given = np.full(index.keys.size, 1.0 / n_target)
        alone = np.full(n_target, 1.0 / n_target)
        totals: Array = np.zeros(n_source)
        counts, none = np.empty(index.keys.size), np.empty(n_target)
        for _ in range(int(self.n_iter)):
            _expect(*text, *index[:2], given, alone, float(self.diagonal), float(self.null), counts, none)
            totals = np.bincount(of_source, counts, minlength=n_source)
            given[:] = counts
            given += alpha
            digamma(given, out=given)
            given -= digamma(totals + alpha * n_target)[of_source]
            np.exp(given, out=given)
            alone = np.exp(digamma(none + alpha) - digamma(none.sum() + alpha * n_target))
        unseen = np.exp(digamma(alpha) - digamma(totals + alpha * n_target))
        unseen[totals == 0] = 1.0 / n_target
        return Translations(given, unseen, alone)

    def posterior(self, given: Array, table: Translations, gap: Array, group: Array, target: Array) -> Array:
        """The posterior of every word pair; the rest of each target token, the ``group``, is for no source word.

        ``given`` has the translation probabilities of the word pairs, ``gap`` their distances from the diagonal, and
        ``target`` their target words.
        """
        factor = np.exp(-float(self.diagonal) * gap)
        joint = (1 - float(self.null)) * factor / np.bincount(group, factor)[group] * given
        word = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
        word[group] = target
        nothing = float(self.null) * np.where(word >= 0, table.alone[word], 1.0 / table.alone.size)
        evidence = np.bincount(group, joint) + nothing
        return np.asarray(joint / np.maximum(evidence, 1e-300)[group])


class Translations(NamedTuple):
    """Translation probabilities t(target | source).

    Parameters
    ----------
    given : by word pair of an index
    unseen : by source word, the probability of a target word that is not in the index with it
    alone : by target word, the probability that no source word produces it
    """

    given: Array
    unseen: Array
    alone: Array

    def look_up(self, source: Array, target: Array, position: Array) -> Array:
        """t of every word pair; words outside the vocabulary translate to all words alike."""
        rest = np.where(source >= 0, self.unseen[source], 1.0 / self.alone.size)
        return np.asarray(np.where(position >= 0, self.given[position], rest) if self.given.size else rest)


@kernel
def _expect(
    source: Array,
    s_begins: Array,
    target: Array,
    t_begins: Array,
    keys: Array,
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
                    if keys[middle] < key:
                        low = middle + 1
                    else:
                        high = middle
                factor = np.exp(-diagonal * abs((i + 0.5) / n_s - (j + 0.5) / n_t))
                total += factor
                place[i], joint[i] = -1, 0.0
                if low <= high and keys[low] == key:
                    place[i] = low
                    joint[i] = factor * given[low]
                evidence += joint[i]
            share = (1 - null) / total
            nothing = null * alone[word]
            evidence = max(share * evidence + nothing, 1e-300)
            none[word] += nothing / evidence
            for i in range(n_s):
                if place[i] >= 0:
                    counts[place[i]] += share * joint[i] / evidence

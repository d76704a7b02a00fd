"""IBM model 1 with a diagonal prior: which word translates which, from sentence pairs alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import is_not_negative, number, whole_number
from tacit.text.alignment.corpus import Cells, lay_out, number_types, read_pairs_of_sentences

MAX_ROUNDS = 1000
"""Rounds of EM, at the most: every one is run, and none changes anything after so many."""


class IBM1(BaseEstimator):  # type: ignore[misc]
    """Translation probabilities t(target word | source word) by EM (Brown et al. 1993).

    Every target word was produced by one source word of its sentence, or by none. Which one is hidden: a source word at
    relative position i/I is as likely as ``exp(−diagonal·|i/I − j/J|)`` says, before words are looked at (Dyer,
    Chahuneau & Smith 2013). The maximisation step is that of variational Bayes with a prior of ``alpha`` per
    translation, which keeps rare words from collecting what is left over. O(word pairs) per iteration.

    Parameters
    ----------
    diagonal : how much the prior prefers the diagonal; 0 is the plain model
    null : the share of target words that no source word produced
    alpha : the prior of every translation, above 0
    n_iter : rounds of EM, at most 1,000: a few dozen settle it

    >>> model = IBM1(diagonal=0.0).fit(["la maison", "la fleur", "maison"], ["the house", "the flower", "house"])
    >>> model.posteriors(["la fleur"], ["the flower"])[0].argmax(axis=0)
    array([0, 1])
    """

    def __init__(self, diagonal: float = 6.0, null: float = 0.1, alpha: float = 0.01, n_iter: int = 10) -> None:
        self.diagonal = diagonal
        self.null = null
        self.alpha = alpha
        self.n_iter = n_iter

    def check(self) -> None:
        number("diagonal", self.diagonal, "a number from 0", is_not_negative)
        number("null", self.null, "a share from 0, below 1", lambda share: 0 <= share < 1)
        number("alpha", self.alpha, "a number above 0", lambda alpha: alpha > 0)
        whole_number("n_iter", self.n_iter, 1, MAX_ROUNDS)

    def fit(self, source: Any, target: Any) -> IBM1:
        """Learn from sentence pairs: two lists of sentences, of which one translates the other."""
        self.check()
        sources, targets = read_pairs_of_sentences(source, target)
        self.source_types_, self.target_types_ = number_types(sources), number_types(targets)
        cells = lay_out(sources, targets, self.source_types_, self.target_types_)
        self.table_ = self.learn(cells, len(self.source_types_), len(self.target_types_))
        return self

    def posteriors(self, source: Any, target: Any) -> list[Array]:
        """(I, J) per sentence pair: how likely the source word in a row produced the target word in a column."""
        check_is_fitted(self)
        sources, targets = read_pairs_of_sentences(source, target)
        cells = lay_out(sources, targets, self.source_types_, self.target_types_)
        return cells.matrices(self.posterior(cells, self.table_))

    def align(self, source: Any, target: Any) -> list[Array]:
        """(links, 2) per sentence pair: every target word with the source word that most likely produced it."""
        found = []
        for posterior in self.posteriors(source, target):
            best = posterior.argmax(axis=0)
            is_linked = posterior.max(axis=0) > 1 - posterior.sum(axis=0)
            found.append(np.column_stack([best, np.arange(best.size)])[is_linked])
        return found

    def learn(self, cells: Cells, n_source: int, n_target: int, included: Array | None = None) -> Translations:
        """EM on the word pairs of those sentence pairs that are ``included``; words are numbers below the two sizes."""
        keys = cells.source * n_target + cells.target
        column, prior = cells.columns(), self._prior(cells)
        if included is not None:
            own = included[cells.owner]
            keys, column, prior = keys[own], column[own], prior[own]
            column = np.unique(column, return_inverse=True)[1]
        kinds, kind = np.unique(keys, return_inverse=True)
        words = cells.target if included is None else cells.target[own]
        n_columns = int(column.max(initial=-1)) + 1
        word_of_column = np.zeros(n_columns, dtype=np.int64)
        word_of_column[column] = words
        of_source, alpha = kinds // n_target, float(self.alpha)
        given = np.full(kinds.size, 1.0 / n_target)
        alone = np.full(n_target, 1.0 / n_target)
        totals: Array = np.zeros(n_source)
        for _ in range(int(self.n_iter)):
            joint = prior * given[kind]
            nothing = float(self.null) * alone[word_of_column]
            evidence = np.maximum(np.bincount(column, joint, minlength=n_columns) + nothing, 1e-300)
            counts = np.bincount(kind, joint / evidence[column], minlength=kinds.size)
            none = np.bincount(word_of_column, nothing / evidence, minlength=n_target)
            totals = np.bincount(of_source, counts, minlength=n_source)
            given = np.exp(digamma(counts + alpha) - digamma(totals + alpha * n_target)[of_source])
            alone = np.exp(digamma(none + alpha) - digamma(none.sum() + alpha * n_target))
        unseen = np.exp(digamma(alpha) - digamma(totals + alpha * n_target))
        unseen[totals == 0] = 1.0 / n_target
        return Translations(kinds, given, unseen, alone, n_target)

    def posterior(self, cells: Cells, table: Translations) -> Array:
        """The posterior of every word pair; that no source word produced the target word takes the rest."""
        joint = self._prior(cells) * table.look_up(cells)
        column = cells.columns()
        word = np.zeros(int(column[-1]) + 1, dtype=np.int64)
        word[column] = cells.target
        nothing = float(self.null) * np.where(word >= 0, table.alone[word], 1.0 / table.n_target)
        evidence = np.bincount(column, joint) + nothing
        return np.asarray(joint / np.maximum(evidence, 1e-300)[column])

    def _prior(self, cells: Cells) -> Array:
        weight = np.exp(-float(self.diagonal) * cells.gap())
        column = cells.columns()
        return np.asarray((1 - float(self.null)) * weight / np.bincount(column, weight)[column])


class Translations(NamedTuple):
    """What EM learned: t(target | source) of the word pairs that occurred, and of all others.

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
        """t of every word pair; words outside of the vocabulary translate to anything."""
        keys = cells.source * self.n_target + cells.target
        place = np.minimum(np.searchsorted(self.kinds, keys), max(self.kinds.size - 1, 0))
        is_inside = (cells.source >= 0) & (cells.target >= 0)
        found = is_inside & (self.kinds[place] == keys) if self.kinds.size else np.zeros(keys.size, dtype=bool)
        rest = np.where(cells.source >= 0, self.unseen[cells.source], 1.0 / self.n_target)
        return np.asarray(np.where(found, self.given[place] if self.kinds.size else 0.0, rest))

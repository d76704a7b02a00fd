"""`WordAligner`: links between the words of parallel sentences, learned from "parallel or not" alone, or from some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import entries, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import estimator, instance, not_negative, parameter, positive, whole
from tacit.learners import LatentSVM
from tacit.learners.application import Application
from tacit.problems import Alignment
from tacit.runtime import Status
from tacit.text.alignment.ibm1 import deal_folds, group_duplicates, read_both
from tacit.text.alignment.links import AlignmentScores, Links, alignment_scores, check_links
from tacit.text.alignment.word_pairs import NAMES, WordPairs

LEAST_PAIRS = 4
"""Sentence pairs with words in both sentences, without which nothing can be learned."""

LEAST_TESTED = 20
"""Sentence pairs with gold links from which on the error rate is measured on folds that were held out."""

TEST_FOLDS = 5

MAX_WEAK_SHARE = 3.0
"""How much sentence pairs without links can weigh against those with links."""


@estimator
class WordAligner(Application):
    """Align the words of parallel sentences.

    Without gold links it learns from the text alone: sentences that belong together against sentences paired anew, with
    the alignment as the hidden value. Gold links of some or all sentence pairs make it better; the others are still
    learned from.

    Parameters
    ----------
    C : weight of the loss
    weak_weight : where gold links are given: how many sentence pairs with links those without are worth together, the
        ones paired anew included. With many gold links they count for less and less; if every pair has links, they are
        left out
    wrong_link : what a link outside of the possible ones costs, where a missed sure link costs 1
    mismatched : sentences that every sentence is paired with anew
    folds : of the cross-fitted features, see `tacit.text.WordPairs`
    random_state, n_jobs, verbose : as in `tacit.LatentSVM`

    Attributes
    ----------
    links_ : the links of the sentence pairs of the fit, pairs of positions from 0
    scores_ : of these links the score of each, in the same order; above 0
    model_ : the fitted `tacit.LatentSVM`
    accuracy_ : the share of sentence pairs of the fit that are told right, parallel or not
    held_out_ : error rate, precision and recall on folds held out, if there are enough gold links; else None
    status_ : whether the fit was interrupted

    >>> source = ["la maison", "la fleur", "une maison", "une fleur bleue", "la maison bleue", "une rue bleue"]
    >>> target = ["the house", "the flower", "a house", "a blue flower", "the blue house", "a blue street"]
    >>> aligner = WordAligner(folds=3, verbose=0).fit(source, target)
    >>> aligner.links_[0].tolist()
    [[0, 0], [1, 1]]
    """

    C: float = parameter(positive, default=100.0)
    weak_weight: float = parameter(not_negative, default=15.0)
    wrong_link: float = parameter(not_negative, default=0.25)
    mismatched: int = parameter(whole(1, 100), default=1)
    folds: int = parameter(whole(2), default=10)
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 1
    learned: ClassVar = {
        "model_": instance(LatentSVM, "a fitted LatentSVM", problem=Alignment),
        "tables_": instance(dict, "tables by name"),
    }

    def check_learned(self) -> None:
        super().check_learned()
        if self.model_.schema_.n_features != len(NAMES):
            raise ValueError(f"model_ has {self.model_.schema_.n_features} features, word pairs have {len(NAMES)}")
        self._restored()

    def fit(self, source: Any, target: Any, gold: Any = None) -> WordAligner:
        """Learn from sentence pairs, and align them.

        Parameters
        ----------
        source, target : sentences, as lines of words between spaces or as lists of words
        gold : per sentence pair its `tacit.Links`, or None where they are unknown
        """
        self.check_parameters()
        sources, targets = read_both(source, target)
        links = _read_gold(gold, sources, targets)
        used = [i for i in range(len(sources)) if sources[i] and targets[i]]
        if len(used) < LEAST_PAIRS:
            raise ValueError(
                f"{len(used)} sentence pairs have words on both sides, and {LEAST_PAIRS} or more are needed"
            )
        self._sentences = [sources[i] for i in used], [targets[i] for i in used]
        own = [links[i] for i in used]
        pairs = WordPairs(folds=self.folds, random_state=self.random_state)
        X = pairs.fit_transform(*self._sentences)
        wrong, chosen = pairs.mismatched(int(self.mismatched))
        everything = np.arange(len(used))
        self.model_ = self._learn(X, own, wrong, everything)
        self.status_ = self.model_.status_
        self.tables_ = pairs.exported_tables()
        self.held_out_ = self._test(X, own, wrong, chosen)
        found, scores = self._align(X)
        counts = np.zeros(len(sources), dtype=np.int64)
        counts[used] = found.lengths
        offsets = np.concatenate([[0], np.cumsum(counts)])
        self.links_ = Ragged(found.values, offsets)
        self.scores_ = Ragged(scores, offsets)
        told = self.model_.score(X, np.ones(len(used))), self.model_.score(wrong, -np.ones(len(wrong)))
        self.accuracy_ = float(np.average(told, weights=[len(used), len(wrong)]))
        return self

    def predict(self, source: Any, target: Any) -> Ragged:
        """The links of new sentence pairs, pairs of positions from 0."""
        check_is_fitted(self)
        sources, targets = read_both(source, target)
        used = [i for i in range(len(sources)) if sources[i] and targets[i]]
        counts = np.zeros(len(sources), dtype=np.int64)
        if not used:
            return Ragged(np.zeros((0, 2), dtype=np.int64), np.zeros(len(sources) + 1, dtype=np.int64))
        X = self._restored().transform([sources[i] for i in used], [targets[i] for i in used])
        found = self._align(X)[0]
        counts[used] = found.lengths
        return Ragged(found.values, np.concatenate([[0], np.cumsum(counts)]))

    def _restored(self) -> WordPairs:
        return WordPairs(folds=self.folds, random_state=self.random_state).restore_tables(self.tables_)

    def _learn(self, X: Ragged, gold: Sequence[Links | None], wrong: Ragged, rows: Array) -> LatentSVM:
        """A model of these sentence pairs, with links where there are some, and of others that are not parallel."""
        y: list[Any] = [1 if gold[i] is None else gold[i] for i in rows]
        is_gold = np.array([gold[i] is not None for i in rows])
        data = Ragged.concatenate([X[rows], wrong])
        weights, total = self.sample_weights(data, is_gold, len(wrong))
        model = LatentSVM(
            Alignment(wrong_link=self.wrong_link),
            C=float(self.C) * total,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        return model.fit(data, y + [-1] * len(wrong), sample_weight=weights)

    def sample_weights(self, data: Ragged, is_gold: Array, n_wrong: int) -> tuple[Array, float]:
        """Weights of all sentence pairs, and their sum.

        Those with links have the weight 1 together, by their size, since a long sentence has more links to learn from;
        those without have `weak_weight` by the number of pairs with links. Where there are no links at all, every one
        weighs the same.
        """
        is_known = np.concatenate([is_gold, np.zeros(n_wrong, dtype=bool)])
        if not is_known.any():
            return np.ones(is_known.size), 1.0
        weights = np.sqrt(data.lengths)
        n_gold = int(np.count_nonzero(is_gold))
        share = 0.0 if is_gold.all() else min(float(self.weak_weight) / n_gold, MAX_WEAK_SHARE)
        own = np.where(is_known, weights / weights[is_known].sum(), share / max(int(np.count_nonzero(~is_known)), 1))
        return own, 1.0 + share

    def _align(self, X: Ragged) -> tuple[Ragged, Array]:
        """The best matching of every sentence pair, and the score of each link, before it is divided by √(I·J)."""
        found = self.model_.impute(X, np.ones(len(X)))
        width = 1 + int(X.values[:, :2].max(initial=0))
        owner = np.repeat(np.arange(len(X)), X.lengths)
        keys = (owner * width + X.values[:, 0].astype(np.int64)) * width + X.values[:, 1].astype(np.int64)
        asked = np.repeat(np.arange(len(X)), found.lengths)
        wanted = (asked * width + found.values[:, 0]) * width + found.values[:, 1]
        order = np.argsort(keys)
        rows = order[np.searchsorted(keys[order], wanted)]
        return found, X.values[rows, 2:] @ self.model_.weights_["weights"]

    def _test(self, X: Ragged, gold: Sequence[Links | None], wrong: Ragged, chosen: Array) -> dict[str, float] | None:
        """Error rate, precision and recall of links that the model did not learn from."""
        known = np.flatnonzero([links is not None for links in gold])
        if known.size < LEAST_TESTED or self.status_ is Status.INTERRUPTED:
            return None
        groups = group_duplicates(*self._sentences)
        fold = deal_folds(groups, TEST_FOLDS, np.random.default_rng(0))
        found, truth = [], []
        for k in range(int(fold.max()) + 1):
            own = np.flatnonzero((fold != k)[chosen[:, 0]] & (fold != k)[chosen[:, 1]])
            tested = known[fold[known] == k]
            train = np.flatnonzero(fold != k)
            if not tested.size or not own.size or not any(gold[int(i)] is not None for i in train):
                continue
            model = self._learn(X, gold, wrong[own], train)
            found += list(model.impute(X[tested], np.ones(tested.size)))
            truth += [gold[i] for i in tested]
        return AlignmentScores(*alignment_scores(found, truth))._asdict() if found else None


def _read_gold(gold: Any, source: list[list[str]], target: list[list[str]]) -> list[Links | None]:
    if gold is None:
        return [None] * len(source)
    meaning = f"Links or None for each of {len(source)} sentence pairs"
    links = entries("gold", gold, meaning, len(source))
    if not all(entry is None or isinstance(entry, Links) for entry in links):
        raise ValueError(f"gold must be {meaning}, got {shorten(gold)}")
    check_links([Links([]) if entry is None else entry for entry in links], source, target)
    return links

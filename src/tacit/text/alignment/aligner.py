"""`WordAligner`: word alignment of parallel text, learned with or without gold links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import entries, random_numbers, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import estimator, instance, not_negative, parameter, positive, whole
from tacit.learners import LatentSVM
from tacit.learners.application import Application
from tacit.problems import Alignment
from tacit.runtime import Status
from tacit.runtime.blocks import map_threads
from tacit.text.alignment.corpus import deal_folds, group_duplicates, read_both, split_blocks
from tacit.text.alignment.links import AlignmentScores, Links, alignment_scores, check_links
from tacit.text.alignment.word_pairs import NAMES, WordPairs

MIN_PAIRS = 4
"""The fewest sentence pairs, with words in both sentences, to learn from."""

MIN_TESTED = 20
"""The fewest sentence pairs with gold links for which the error rate is measured on held-out folds."""

TEST_FOLDS = 5

MAX_CELLS = 1 << 20
"""The most word pairs of a text of which all sentence pairs are learned from. Of a longer text, tables of translations
are from all of it but a sample, and the model is learned from the sample."""

MIN_SIZE = 64
"""A short sentence pair counts as so many word pairs: pairing sentences anew takes the square of their number."""

MAX_WEAK_SHARE = 3.0
"""The largest share of the loss of sentence pairs without links, relative to those with links."""


@estimator
class WordAligner(Application):
    """Align the words of parallel sentences.

    Without gold links it learns from weak supervision: translations against mismatched sentences, with the alignment as
    the hidden value. Gold links of some or all sentence pairs improve it; the other pairs are used, too.

    Parameters
    ----------
    C : factor of the loss
    weak_weight : if there are gold links: the sample weight of all sentence pairs without links together, mismatched
        ones included, in sentence pairs with links. If every pair has links, the others are left out
    wrong_link : loss of a link that is not possible; a missed sure link costs 1
    mismatched : how many wrong translations every sentence is paired with
    folds : number of folds of the cross-fitted features, see `tacit.text.WordPairs`
    random_state, n_jobs, verbose : as in `tacit.LatentSVM`

    Attributes
    ----------
    links_ : the links of the sentence pairs of the fit, pairs of positions from 0
    scores_ : the score of each link, above 0
    model_ : the fitted `tacit.LatentSVM`
    accuracy_ : accuracy of "parallel or not" on the sentence pairs of the fit, mismatched ones included
    held_out_ : error rate, precision and recall on held-out folds; None with fewer than 20 sentence pairs with links
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
            raise ValueError(f"model_ must have {len(NAMES)} features, got {self.model_.schema_.n_features}")
        self._restore_features()

    def fit(self, source: Any, target: Any, gold: Any = None) -> WordAligner:
        """Learn from sentence pairs, and align them.

        Parameters
        ----------
        source, target : sentences, as lines of text or as lists of words
        gold : the `tacit.Links` of every sentence pair, None where they are unknown
        """
        self.check_parameters()
        sources, targets = read_both(source, target)
        links = _read_gold(gold, sources, targets)
        used = [i for i in range(len(sources)) if sources[i] and targets[i]]
        if len(used) < MIN_PAIRS:
            raise ValueError(f"only {len(used)} sentence pairs have words on both sides; give {MIN_PAIRS} or more")
        n_used, sizes = len(used), _sizes(sources, targets, used)
        if sizes.sum() > MAX_CELLS:
            used = _drop_repeated(sources, targets, links, used)
            sizes = _sizes(sources, targets, used)
        own, text = [links[i] for i in used], ([sources[i] for i in used], [targets[i] for i in used])
        rows = np.arange(len(used)) if sizes.sum() <= MAX_CELLS else self._sample(sizes, own)
        pairs, X = self._features(text, rows)
        wrong, chosen = pairs.transform_mismatched(int(self.mismatched))
        self._sentences = [text[0][i] for i in rows], [text[1][i] for i in rows]
        own = [own[i] for i in rows]
        self.model_ = self._learn(X, own, wrong, np.arange(len(X)))
        self.status_ = self.model_.status_
        self.tables_ = pairs.export_tables()
        self.held_out_ = self._test(X, own, wrong, chosen)
        accuracies = self.model_.score(X, np.ones(len(X))), self.model_.score(wrong, -np.ones(len(wrong)))
        self.accuracy_ = float(np.average(accuracies, weights=[len(X), len(wrong)]))
        if len(X) < n_used:
            self.links_, self.scores_ = self.predict_scores(sources, targets)
            return self
        found, scores = self._align(X)
        self.links_ = _insert_empty(found, used, len(sources))
        self.scores_ = self.links_.with_values(scores)
        return self

    def _sample(self, sizes: Array, gold: list[Links | None]) -> Array:
        """Sentence pairs to learn from: those with links first, at random, about `MAX_CELLS` / 4 word pairs."""
        order = np.random.default_rng(int(random_numbers(self.random_state).randint(2**31))).permutation(sizes.size)
        order = order[np.argsort([gold[i] is None for i in order], kind="stable")]
        return np.sort(order[: max(MIN_PAIRS, int(np.searchsorted(np.cumsum(sizes[order]), MAX_CELLS // 4)))])

    def _features(self, text: tuple[list[list[str]], list[list[str]]], rows: Array) -> tuple[WordPairs, Ragged]:
        """Features of some sentence pairs: cross-fitted if they are all, else by tables from the others."""
        settings = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        if rows.size == len(text[0]):
            pairs = WordPairs(folds=self.folds, **settings)
            return pairs, pairs.fit_transform(*text)
        seen = [{tuple(side[i]) for i in rows} for side in text]
        pairs_of_text = list(zip(*text, strict=True))
        others = [i for i, (s, t) in enumerate(pairs_of_text) if tuple(s) not in seen[0] and tuple(t) not in seen[1]]
        if len(others) < MIN_PAIRS:
            raise ValueError(
                f"only {len(others)} sentence pairs share no sentence with the {rows.size} that are learned from; give "
                "text with fewer repeated sentences"
            )
        pairs = WordPairs(folds=0, **settings).fit(*([side[i] for i in others] for side in text))
        return pairs, pairs.adopt(*([side[i] for i in rows] for side in text))

    def predict(self, source: Any, target: Any) -> Ragged:
        """The links of new sentence pairs, pairs of positions from 0."""
        return self.predict_scores(source, target)[0]

    def predict_scores(self, source: Any, target: Any) -> tuple[Ragged, Ragged]:
        """The links of new sentence pairs, and the score of each link, above 0."""
        check_is_fitted(self)
        sources, targets = read_both(source, target)
        used = [i for i in range(len(sources)) if sources[i] and targets[i]]
        if not used:
            links = Ragged(np.zeros((0, 2), dtype=np.int64), np.zeros(len(sources) + 1, dtype=np.int64))
            return links, links.with_values(np.zeros(0))
        pairs = self._restore_features()
        sizes = np.array([len(sources[i]) * len(targets[i]) for i in used])
        blocks = [used[a:b] for a, b in split_blocks(sizes, MAX_CELLS // 8)]

        def align(rows: list[int]) -> tuple[Ragged, Array]:
            return self._align(pairs.transform([sources[i] for i in rows], [targets[i] for i in rows]))

        parts = list(map_threads(align, blocks, self.n_jobs))
        found = Ragged.concatenate([links for links, _ in parts])
        links = _insert_empty(found, used, len(sources))
        return links, links.with_values(np.concatenate([scores for _, scores in parts]))

    def _restore_features(self) -> WordPairs:
        return WordPairs(folds=self.folds, random_state=self.random_state).restore_tables(self.tables_)

    def _learn(self, X: Ragged, gold: Sequence[Links | None], wrong: Ragged, rows: Array) -> LatentSVM:
        """Fit a model to these sentence pairs, with or without links, and to mismatched ones."""
        y: list[Any] = [1 if gold[i] is None else gold[i] for i in rows]
        is_gold = np.array([gold[i] is not None for i in rows])
        data = Ragged.concatenate([X if rows.size == len(X) else X[rows], wrong])
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
        """The sample weights of all sentence pairs, and their sum.

        Pairs with links have the weight 1 together, by their size: a long sentence has more links to learn from. Pairs
        without links have `weak_weight` over the number of pairs with links together. Without any links all weights are
        equal.
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
        """The best matching of every sentence pair, and the score of each link before the division by √(I·J)."""
        found = self.model_.impute(X, np.ones(len(X)))
        width = 1 + int(X.values[:, :2].max(initial=0))
        owner = np.repeat(np.arange(len(X)), X.lengths)
        keys = (owner * width + X.values[:, 0].astype(np.int64)) * width + X.values[:, 1].astype(np.int64)
        linked = np.repeat(np.arange(len(X)), found.lengths)
        wanted = (linked * width + found.values[:, 0]) * width + found.values[:, 1]
        order = np.argsort(keys)
        rows = order[np.searchsorted(keys[order], wanted)]
        return found, X.values[rows, 2:] @ self.model_.weights_["weights"]

    def _test(self, X: Ragged, gold: Sequence[Links | None], wrong: Ragged, chosen: Array) -> dict[str, float] | None:
        """Error rate, precision and recall on held-out folds."""
        known = np.flatnonzero([links is not None for links in gold])
        if known.size < MIN_TESTED or self.status_ is Status.INTERRUPTED:
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


def _sizes(sources: list[list[str]], targets: list[list[str]], used: list[int]) -> Array:
    """The word pairs of sentence pairs; a short one counts as `MIN_SIZE`."""
    return np.array([max(len(sources[i]) * len(targets[i]), MIN_SIZE) for i in used])


def _drop_repeated(
    sources: list[list[str]], targets: list[list[str]], links: list[Links | None], used: list[int]
) -> list[int]:
    """The first of equal sentence pairs, and all with links."""
    first: dict[Any, int] = {}
    for i in used:
        first.setdefault((tuple(sources[i]), tuple(targets[i])), i)
    chosen = set(first.values())
    return [i for i in used if i in chosen or links[i] is not None]


def _insert_empty(found: Ragged, used: list[int], n: int) -> Ragged:
    """The links of ``n`` sentence pairs, of which only those ``used`` have some."""
    counts = np.zeros(n, dtype=np.int64)
    counts[used] = found.lengths
    return Ragged(found.values, np.concatenate([[0], np.cumsum(counts)]))


def _read_gold(gold: Any, source: list[list[str]], target: list[list[str]]) -> list[Links | None]:
    if gold is None:
        return [None] * len(source)
    meaning = f"Links or None for each of {len(source)} sentence pairs"
    links = entries("gold", gold, meaning, len(source))
    if not all(entry is None or isinstance(entry, Links) for entry in links):
        raise ValueError(f"gold must be {meaning}, got {shorten(gold)}")
    check_links([Links([]) if entry is None else entry for entry in links], source, target)
    return links

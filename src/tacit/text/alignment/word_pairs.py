"""Features of word pairs for `tacit.problems.Alignment`: translation tables, positions, spelling, frequency.

Translation tables are learned from the same sentence pairs that they describe. A table that was fitted on a sentence
pair leaks that it is parallel: it translates rare words of that pair to each other. So tables are **cross-fitted**:
sentence pairs are split into folds, and each fold is described by tables from the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import random_numbers, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import check_parameters, estimator, parameter, whole
from tacit.runtime.blocks import map_threads
from tacit.text.alignment.corpus import (
    Cells,
    Text,
    deal_folds,
    group_duplicates,
    lay_out,
    number_text,
    number_types,
    read_pairs_of_sentences,
)
from tacit.text.alignment.counts import WordPairCounts, WordPairIndex, count_word_pairs, index_word_pairs
from tacit.text.alignment.ibm1 import IBM1, Translations
from tacit.text.alignment.spelling import SPELLING, compare_spelling

POSTERIORS = ("forward", "backward", "both ways", "stems forward", "stems backward", "stems both ways", "joint")
RANKS = ("best of row and column", "rank", "neighbours", "neighbour of stems", "Dice", "Dice of stems")
COUNTS = ("source unseen", "target unseen", "both rare", "frequency difference")
TABLE_FEATURES = (*POSTERIORS, *RANKS, *COUNTS)
"""Features from translation tables and counts, which are cross-fitted."""

STEM_LETTERS = 4
"""Letters of a word that count as its stem."""

POSITIONS = ("distance from diagonal", "squared distance", "both first", "both last", "always")
"""Features of positions."""

NAMES = (*TABLE_FEATURES, *SPELLING, "spelling if rare", *POSITIONS)
"""All features, in their order."""

_VOCABULARIES = ("source_types_", "target_types_", "source_stems_", "target_stems_")
_TABLES = ("words", "stems")


@estimator
class WordPairs(BaseEstimator):  # type: ignore[misc]
    """Features of word pairs, as `tacit.problems.Alignment` takes them.

    `fit_transform` describes the sentence pairs that it learns from, with cross-fitted tables. `transform_mismatched`
    pairs their sentences at random, as negative examples. `transform` describes new sentence pairs.

    Parameters
    ----------
    folds : number of folds for cross-fitting; 0 disables it, for comparison
    diagonal, n_iter : parameters of the `IBM1` models
    random_state : seed of the folds and of the random pairs
    n_jobs : number of threads; the tables are the same for any number

    >>> pairs = WordPairs(folds=2)
    >>> X = pairs.fit_transform(["la maison", "la fleur"], ["the house", "the flower"])
    >>> len(X), X[0].shape == (4, 2 + len(pairs.feature_names_))
    (2, True)
    """

    folds: int = parameter(whole(0), default=10)
    diagonal: float = 6.0
    n_iter: int = 6
    random_state: Any = 0
    n_jobs: int | None = None

    def check(self) -> None:
        check_parameters(self)
        check_parameters(self._model())

    def fit(self, source: Any, target: Any) -> WordPairs:
        """Learn translation tables from sentence pairs: one per fold, and one from all for new sentences."""
        self.check()
        sources, targets = read_pairs_of_sentences(source, target)
        rng = np.random.default_rng(int(random_numbers(self.random_state).randint(2**31)))
        self.source_types_, self.target_types_ = number_types(sources), number_types(targets)
        words = number_text(sources, targets, self.source_types_, self.target_types_)
        self.source_stems_, of_source = _number_stems(self.source_types_)
        self.target_stems_, of_target = _number_stems(self.target_types_)
        stems = words._replace(source=of_source[words.source], target=of_target[words.target])
        self.groups_ = group_duplicates(sources, targets)
        self.feature_names_ = list(NAMES)
        folds = min(int(self.folds), int(self.groups_.max()) + 1)
        folds = folds if folds >= 2 else 0
        self.fold_ = deal_folds(self.groups_, folds, rng) if folds else np.zeros(len(sources), dtype=np.int64)
        self._sentences, self._rng = (sources, targets), rng
        texts = [words, stems]
        self._tables = [self._learn([text.where(self.fold_ != fold) for text in texts]) for fold in range(folds)]
        self._whole = self._learn(texts)
        return self

    def fit_transform(self, source: Any, target: Any) -> Ragged:
        """`fit`, and return the features of the sentence pairs, each from tables that were fitted without it."""
        self.fit(source, target)
        return self.describe(np.arange(len(self.fold_)), np.arange(len(self.fold_)))

    def adopt(self, source: Any, target: Any) -> Ragged:
        """Describe other sentence pairs; `transform_mismatched` and `describe` are then about them."""
        X = self.transform(source, target)
        self._sentences = read_pairs_of_sentences(source, target)
        self.groups_, self.fold_ = group_duplicates(*self._sentences), np.zeros(len(X), dtype=np.int64)
        return X

    def transform_mismatched(self, per_pair: int = 1) -> tuple[Ragged, Array]:
        """Pair sentences of the fit with translations of others, of about the same length and from the same fold.

        Returns the features, and the pairs (source sentence, target sentence), `per_pair` for every sentence. The
        tables of a fold were fitted without both sentences, as for a true pair. A sentence without another group in its
        fold is left out.
        """
        check_is_fitted(self)
        chosen = self._choose_mismatched(whole_number("per_pair", per_pair))
        if not len(chosen):
            raise ValueError("all sentence pairs share a sentence, so none can be mismatched; give more text")
        return self.describe(chosen[:, 0], chosen[:, 1]), chosen

    def transform(self, source: Any, target: Any) -> Ragged:
        """The features of new sentence pairs, by tables from all sentence pairs of `fit`."""
        check_is_fitted(self)
        sources, targets = read_pairs_of_sentences(source, target)
        layout = self._lay_out(sources, targets)
        return self._rows(layout.cells, self._table_features(layout, self._whole), sources, targets)

    def describe(self, sources: Array, targets: Array) -> Ragged:
        """The features of paired sentences of the fit, by number; the tables leave out the fold of the source."""
        source, target = (
            [side[i] for i in chosen] for side, chosen in zip(self._sentences, (sources, targets), strict=True)
        )
        layout = self._lay_out(source, target)
        cells = layout.cells
        if not self._tables:
            return self._rows(cells, self._table_features(layout, self._whole), source, target)
        features = np.empty((cells.owner.size, len(TABLE_FEATURES)))
        fold = self.fold_[sources]
        for number, tables in enumerate(self._tables):
            own = np.flatnonzero(fold == number)
            if own.size:
                part = self._lay_out([source[i] for i in own], [target[i] for i in own])
                features[np.isin(cells.owner, own)] = self._table_features(part, tables)
        return self._rows(cells, features, source, target)

    def export_tables(self) -> dict[str, Any]:
        """What `transform` needs, as lists and arrays, for `restore_tables`."""
        check_is_fitted(self)
        words = {name: list(getattr(self, name)) for name in _VOCABULARIES}
        return words | {name: _export(table) for name, table in zip(_TABLES, self._whole, strict=True)}

    def restore_tables(self, given: Any) -> WordPairs:
        """Check exported tables, which may be from a file, and make them ready to `transform`."""
        self.check()
        sizes = []
        for name in _VOCABULARIES:
            words = given[name]
            if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
                raise ValueError(f"{name} of the tables must be a list of words, got {shorten(words)}")
            setattr(self, name, {word: number for number, word in enumerate(words)})
            sizes.append(len(words))
        tables = [_restore(given[name], *sizes[2 * k : 2 * k + 2]) for k, name in enumerate(_TABLES)]
        self._whole, self._tables = (tables[0], tables[1]), []
        self.feature_names_ = list(NAMES)
        return self

    def _choose_mismatched(self, per_pair: int) -> Array:
        sources, targets = self._sentences
        lengths = np.array([len(words) for words in targets])
        pairs = []
        for i in range(len(sources)):
            others = np.flatnonzero((self.fold_ == self.fold_[i]) & (self.groups_ != self.groups_[i]))
            away = np.abs(np.log(lengths[others] / lengths[i])) + 0.1 * self._rng.random(others.size)
            pairs += [(i, int(j)) for j in others[np.argsort(away, kind="stable")[:per_pair]]]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def _model(self) -> IBM1:
        return IBM1(diagonal=self.diagonal, n_iter=self.n_iter)

    def _lay_out(self, source: list[list[str]], target: list[list[str]]) -> _Layout:
        return _Layout(
            lay_out(source, target, self.source_types_, self.target_types_),
            lay_out(_stems(source), _stems(target), self.source_stems_, self.target_stems_),
        )

    def _learn(self, texts: list[Text]) -> tuple[_Table, _Table]:
        """The tables of words and of stems; each direction is one task, for threads."""
        model = self._model()
        sizes = [len(getattr(self, name)) for name in _VOCABULARIES]
        counted = [count_word_pairs(*task) for task in zip(texts, sizes[::2], sizes[1::2], strict=True)]
        ways = []
        for text, (index, _) in zip(texts, counted, strict=True):
            swapped, order = index.swap()
            ways += [(text, index, np.arange(0)), (text.swap(), swapped, order)]
        learned = list(map_threads(lambda way: _sort_given(model.learn(*way[:2]), way[2]), ways, self.n_jobs))
        words, stems = (_Table(*own, *learned[2 * k : 2 * k + 2]) for k, own in enumerate(counted))
        return words, stems

    def _table_features(self, layout: _Layout, tables: tuple[_Table, _Table]) -> Array:
        """(word pairs, features): what `TABLE_FEATURES` lists."""
        cells = layout.cells
        (forward, backward), (source_count, target_count, dice) = self._look_up(cells, tables[0])
        (stem_forward, stem_backward), (_, _, stem_dice) = self._look_up(layout.stems, tables[1])
        both, stem_both = np.sqrt(forward * backward), np.sqrt(stem_forward * stem_backward)
        joint = (both + stem_both) / 2
        best_row, best_column = _group_maximum(joint, cells.rows()), _group_maximum(joint, cells.columns())
        is_best = (joint >= best_row) & (joint >= best_column)
        rank = joint / np.maximum(np.maximum(best_row, best_column), 1e-12)
        rare = (source_count <= 1) & (target_count <= 1)
        frequency = np.abs(np.log1p(source_count) - np.log1p(target_count)) / 5
        posteriors = forward, backward, both, stem_forward, stem_backward, stem_both, np.sqrt(both * stem_both)
        ranks = is_best, rank, _neighbours(cells, both), _neighbours(cells, stem_both), dice, stem_dice
        counts = source_count == 0, target_count == 0, rare, frequency
        return np.column_stack([*posteriors, *ranks, *counts])

    def _look_up(self, cells: Cells, table: _Table) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        """Posteriors of both directions; counts of the words, and Dice coefficients."""
        model, source, target, gap = self._model(), cells.source, cells.target, cells.gap()
        position = table.pairs.find(source, target)
        forward = table.forward.look_up(source, target, position)
        backward = table.backward.look_up(target, source, position)
        posteriors = (
            model.posterior(forward, table.forward, gap, cells.columns(), target),
            model.posterior(backward, table.backward, gap, cells.rows(), source),
        )
        return posteriors, table.counts.look_up(source, target, position)

    def _rows(self, cells: Cells, features: Array, source: list[list[str]], target: list[list[str]]) -> Ragged:
        spelling = _spelling(cells, source, target)
        gap = cells.gap()
        n_source, n_target = cells.shapes[cells.owner].T
        rare = (1 - spelling[:, 0]) * features[:, TABLE_FEATURES.index("both rare")]
        is_first, is_last = (cells.i == 0) & (cells.j == 0), (cells.i == n_source - 1) & (cells.j == n_target - 1)
        positions = gap, gap**2, is_first, is_last, np.ones(gap.size)
        return Ragged(np.column_stack([cells.i, cells.j, features, spelling, rare, *positions]), cells.bases)


def _sort_given(table: Translations, order: Array) -> Translations:
    """The table with its word pairs in the places ``order``; as it is if that is empty."""
    if not order.size:
        return table
    given = np.empty_like(table.given)
    given[order] = table.given
    return table._replace(given=given)


def _export(table: _Table) -> dict[str, Any]:
    """The arrays of one table by name."""
    pairs, counts, forward, backward = table
    return {"pairs": pairs.keys, **counts._asdict()} | {
        f"{way} {name}": values
        for way, own in (("forward", forward), ("backward", backward))
        for name, values in own._asdict().items()
    }


def _restore(part: dict[str, Any], n_source: int, n_target: int) -> _Table:
    """The arrays of one table, checked: kernels rely on their sizes."""
    keys = np.asarray(part["pairs"])
    if keys.ndim != 1 or keys.dtype.kind != "i" or (np.diff(keys) <= 0).any():
        raise ValueError("the word pairs of a table must be ascending whole numbers")
    if keys.size and (keys[0] < 0 or keys[-1] >= n_source * n_target):
        raise ValueError("the word pairs of a table must be from its vocabulary")
    index = index_word_pairs(keys.astype(np.int64, copy=False), n_source, n_target)

    def read(name: str, size: int) -> Array:
        values = np.asarray(part[name])
        if values.dtype.kind not in "if" or not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(f"{name} of a table must be counts or probabilities, got {shorten(values)}")
        if values.shape != (size,):
            raise ValueError(f"{name} of a table must be {size} numbers, got {values.shape}")
        return values

    counts = WordPairCounts(read("source", n_source), read("target", n_target), read("together", keys.size))
    forward, backward = (
        Translations(read(f"{way} given", keys.size), read(f"{way} unseen", first), read(f"{way} alone", second))
        for way, first, second in (("forward", n_source, n_target), ("backward", n_target, n_source))
    )
    return _Table(index, counts, forward, backward)


class _Layout(NamedTuple):
    """The word pairs of sentence pairs, as words and as stems."""

    cells: Cells
    stems: Cells


class _Table(NamedTuple):
    """Of words or of stems: their pairs, counts, and translation probabilities of both directions."""

    pairs: WordPairIndex
    counts: WordPairCounts
    forward: Translations
    backward: Translations


def _stems(sentences: list[list[str]]) -> list[list[str]]:
    """The first letters of every word, as inflected forms of a word share them."""
    return [[word.lower()[:STEM_LETTERS] for word in words] for words in sentences]


def _number_stems(types: dict[str, int]) -> tuple[dict[str, int], Array]:
    """Numbers of the stems of words, in the order of first use, and the number of each word's stem."""
    stems: dict[str, int] = {}
    numbers = [stems.setdefault(word[:STEM_LETTERS], len(stems)) for word in types]
    return stems, np.array(numbers, dtype=np.int64)


def _group_maximum(values: Array, groups: Array) -> Array:
    """The largest value of each group, for every member."""
    best = np.zeros(int(groups.max()) + 1)
    np.maximum.at(best, groups, values)
    return np.asarray(best[groups])


def _neighbours(cells: Cells, values: Array) -> Array:
    """The mean of the two neighbours on the diagonal, 0 for those outside."""
    n_source, n_target = cells.shapes[cells.owner].T
    own = np.arange(values.size)
    before = np.where((cells.i > 0) & (cells.j > 0), values[np.maximum(own - n_target - 1, 0)], 0.0)
    is_inside = (cells.i < n_source - 1) & (cells.j < n_target - 1)
    after = np.where(is_inside, values[np.minimum(own + n_target + 1, values.size - 1)], 0.0)
    return np.asarray((before + after) / 2)


def _spelling(cells: Cells, source: list[list[str]], target: list[list[str]]) -> Array:
    """Spelling features of every word pair; each pair of different words is compared once."""
    sides = []
    for sentences, number in ((source, cells.rows()), (target, cells.columns())):
        types = number_types(sentences)
        tokens = np.array([types[word.lower()] for words in sentences for word in words])
        sides.append((list(types), tokens[number]))
    (left, first), (right, second) = sides
    kinds, kind = np.unique(first * len(right) + second, return_inverse=True)
    return compare_spelling(left, right, *np.divmod(kinds, len(right)))[kind]

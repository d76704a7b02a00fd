"""Features of word pairs for `tacit.problems.Alignment`: translation tables, positions, spelling, frequency.

Translation tables are learned from the same sentence pairs that they describe. A table that was fitted on a sentence
pair leaks that it is parallel: it translates rare words of that pair to each other. So tables are **cross-fitted**:
sentence pairs are split into folds, and each fold is described by tables from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import random_numbers, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import check_parameters, estimator, parameter, whole
from tacit.runtime.blocks import map_threads
from tacit.text.alignment import ibm1
from tacit.text.alignment.ibm1 import IBM1, Cells, Text, Translations, number_types, read_pairs_of_sentences

POSTERIORS = ("forward", "backward", "both ways", "stems forward", "stems backward", "stems both ways", "joint")
RANKS = ("best of row and column", "rank", "neighbours", "neighbour of stems", "Dice", "Dice of stems")
COUNTS = ("source unseen", "target unseen", "both rare", "frequency difference")
TABLE_FEATURES = (*POSTERIORS, *RANKS, *COUNTS)
"""Features from translation tables and counts, which are cross-fitted."""

WORD_KINDS = ("both digits", "both punctuation", "one punctuation")
SPELLING = ("edit distance", "common prefix", "identical", "identical and long", *WORD_KINDS)
"""What `compare_spelling` measures."""

MAX_LETTERS = 40
"""Letters of a word that are compared; what is longer is an address rather than a word."""

LONG = 4
"""Letters from which on two identical words are unlikely by chance."""

STEM_LETTERS = 4
"""Letters of a word that count as its stem."""

POSITIONS = ("distance from diagonal", "squared distance", "both first", "both last", "always")
"""Features of positions."""

NAMES = (*TABLE_FEATURES, *SPELLING, "spelling if rare", *POSITIONS)
"""All features, in their order."""

_VOCABULARIES = ("source_types_", "target_types_", "source_stems_", "target_stems_")


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
        self.source_stems_, self.target_stems_ = number_types(_stems(sources)), number_types(_stems(targets))
        self.groups_ = ibm1.group_duplicates(sources, targets)
        self.feature_names_ = list(NAMES)
        folds = min(int(self.folds), int(self.groups_.max()) + 1)
        folds = folds if folds >= 2 else 0
        self.fold_ = ibm1.deal_folds(self.groups_, folds, rng) if folds else np.zeros(len(sources), dtype=np.int64)
        self._sentences, self._rng = (sources, targets), rng
        texts = [
            ibm1.number_text(sources, targets, self.source_types_, self.target_types_),
            ibm1.number_text(_stems(sources), _stems(targets), self.source_stems_, self.target_stems_),
        ]
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
        self.groups_, self.fold_ = ibm1.group_duplicates(*self._sentences), np.zeros(len(X), dtype=np.int64)
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
        return words | {
            part: {name: value for name, value in table._asdict().items() if name != "n_target"}
            for part, table in self._whole._asdict().items()
        }

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
        n_source, n_target, n_source_stems, n_target_stems = sizes
        shapes = (n_source, n_target), (n_source_stems, n_target_stems)
        parts: list[Any] = []
        for (first, second), names in zip(shapes, (_Tables._fields[:3], _Tables._fields[3:]), strict=True):
            parts.append(Translations(**_read_table(given[names[0]], first * second, first, second), n_target=second))
            parts.append(Translations(**_read_table(given[names[1]], first * second, second, first), n_target=first))
            parts.append(_Counts(**_read_table(given[names[2]], first * second, first, second)))
        self._whole, self._tables = _Tables(*parts), []
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
            ibm1.lay_out(source, target, self.source_types_, self.target_types_),
            ibm1.lay_out(_stems(source), _stems(target), self.source_stems_, self.target_stems_),
        )

    def _learn(self, texts: list[Text]) -> _Tables:
        """The tables of words and of stems; each is one task, for threads."""
        model = self._model()
        sizes = (len(self.source_types_), len(self.target_types_)), (len(self.source_stems_), len(self.target_stems_))
        tasks: list[Any] = []
        for text, (n_source, n_target) in zip(texts, sizes, strict=True):
            tasks += [
                (model.learn, text, n_source, n_target),
                (model.learn, text.swap(), n_target, n_source),
                (_count_sentences, text, n_source, n_target),
            ]
        return _Tables(*map_threads(lambda task: task[0](*task[1:]), tasks, self.n_jobs))

    def _table_features(self, layout: _Layout, tables: _Tables) -> Array:
        """(word pairs, features): what `TABLE_FEATURES` lists."""
        cells, stems = layout
        forward, backward = self._posteriors(cells, tables.forward, tables.backward)
        stem_forward, stem_backward = self._posteriors(stems, tables.stem_forward, tables.stem_backward)
        both, stem_both = np.sqrt(forward * backward), np.sqrt(stem_forward * stem_backward)
        joint = (both + stem_both) / 2
        best_row, best_column = _group_maximum(joint, cells.rows()), _group_maximum(joint, cells.columns())
        is_best = (joint >= best_row) & (joint >= best_column)
        rank = joint / np.maximum(np.maximum(best_row, best_column), 1e-12)
        source_count, target_count, dice = tables.counts.look_up(cells)
        stem_dice = tables.stem_counts.look_up(stems)[2]
        rare = (source_count <= 1) & (target_count <= 1)
        frequency = np.abs(np.log1p(source_count) - np.log1p(target_count)) / 5
        posteriors = forward, backward, both, stem_forward, stem_backward, stem_both, np.sqrt(both * stem_both)
        ranks = is_best, rank, _neighbours(cells, both), _neighbours(cells, stem_both), dice, stem_dice
        counts = source_count == 0, target_count == 0, rare, frequency
        return np.column_stack([*posteriors, *ranks, *counts])

    def _posteriors(self, cells: Cells, forward: Translations, backward: Translations) -> tuple[Array, Array]:
        model = self._model()
        found = model.posterior(_swap_sides(cells), backward)
        order = cells.bases[cells.owner] + cells.j * cells.shapes[cells.owner, 0] + cells.i
        return model.posterior(cells, forward), np.asarray(found[order])

    def _rows(self, cells: Cells, features: Array, source: list[list[str]], target: list[list[str]]) -> Ragged:
        spelling = _spelling(cells, source, target)
        gap = cells.gap()
        n_source, n_target = cells.shapes[cells.owner].T
        rare = (1 - spelling[:, 0]) * features[:, TABLE_FEATURES.index("both rare")]
        is_first, is_last = (cells.i == 0) & (cells.j == 0), (cells.i == n_source - 1) & (cells.j == n_target - 1)
        positions = gap, gap**2, is_first, is_last, np.ones(gap.size)
        return Ragged(np.column_stack([cells.i, cells.j, features, spelling, rare, *positions]), cells.bases)


def _read_table(part: Any, n_kinds: int, first: int, second: int) -> dict[str, Array]:
    """The arrays of one table, checked: kernels rely on their sizes."""
    lengths = {"unseen": first, "alone": second, "source": first, "target": second}
    kinds = np.asarray(part["kinds"])
    if kinds.ndim != 1 or kinds.dtype.kind != "i" or (np.diff(kinds) <= 0).any():
        raise ValueError("the word pairs of a table must be ascending whole numbers")
    if not kinds.size or kinds[0] < 0 or kinds[-1] >= n_kinds:
        raise ValueError("the word pairs of a table must be from its vocabulary")
    for name, values in part.items():
        values = np.asarray(values)
        if values.dtype.kind not in "if" or not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(f"{name} of a table must be counts or probabilities, got {shorten(values)}")
        if values.shape != (lengths.get(name, kinds.size),):
            raise ValueError(f"{name} of a table must be {lengths.get(name, kinds.size)} numbers, got {values.shape}")
    return {name: np.asarray(values) for name, values in part.items()}


class _Layout(NamedTuple):
    """The word pairs of sentence pairs, as words and as stems."""

    cells: Cells
    stems: Cells


class _Tables(NamedTuple):
    forward: Translations
    backward: Translations
    counts: _Counts
    stem_forward: Translations
    stem_backward: Translations
    stem_counts: _Counts


class _Counts(NamedTuple):
    """The number of sentence pairs in which words and word pairs occur."""

    source: Array
    target: Array
    kinds: Array
    together: Array

    def look_up(self, cells: Cells) -> tuple[Array, Array, Array]:
        """Counts of the two words, and their Dice coefficient, for every word pair."""
        source = np.where(cells.source >= 0, self.source[cells.source], 0)
        target = np.where(cells.target >= 0, self.target[cells.target], 0)
        keys = cells.source * self.target.size + cells.target
        found = np.minimum(np.searchsorted(self.kinds, keys), self.kinds.size - 1)
        is_found = (self.kinds[found] == keys) & (cells.source >= 0) & (cells.target >= 0)
        together = np.where(is_found, self.together[found], 0)
        return source, target, 2 * together / np.maximum(source + target, 1)


MIN_DICE = 0.01
"""Of many word pairs (`MAX_KEPT`), those below are not kept, so that their Dice coefficient is 0."""


def _count_sentences(text: Text, n_source: int, n_target: int) -> _Counts:
    kinds = ibm1.word_pairs_of(text, n_target)
    together = np.zeros(kinds.size, dtype=np.int64)
    counts = np.zeros(n_source, dtype=np.int64), np.zeros(n_target, dtype=np.int64)
    begins = np.searchsorted(kinds, np.arange(n_source + 1) * n_target)
    _count_pairs(*text, kinds, begins, n_target, *counts, together)
    if kinds.size > ibm1.MAX_KEPT:
        dice = 2 * together / (counts[0][kinds // n_target] + counts[1][kinds % n_target])
        kinds, together = kinds[dice >= MIN_DICE], together[dice >= MIN_DICE]
    return _Counts(*counts, kinds, together)


@kernel
def _count_pairs(
    source: Array,
    s_begins: Array,
    target: Array,
    t_begins: Array,
    kinds: Array,
    begins: Array,
    n_target: int,
    of_source: Array,
    of_target: Array,
    together: Array,
) -> None:
    """In how many sentence pairs words, and pairs of words, occur."""
    for n in range(s_begins.size - 1):
        sources = np.unique(source[s_begins[n] : s_begins[n + 1]])
        targets = np.unique(target[t_begins[n] : t_begins[n + 1]])
        for word in targets:
            of_target[word] += 1
        for own in sources:
            of_source[own] += 1
            low = begins[own]
            for word in targets:
                high = begins[own + 1] - 1
                while low < high:
                    middle = (low + high) // 2
                    if kinds[middle] < own * n_target + word:
                        low = middle + 1
                    else:
                        high = middle
                together[low] += 1


def _stems(sentences: list[list[str]]) -> list[list[str]]:
    """The first letters of every word, as inflected forms of a word share them."""
    return [[word[:STEM_LETTERS] for word in words] for words in sentences]


def _swap_sides(cells: Cells) -> Cells:
    """The same word pairs with source and target swapped, target word after target word."""
    order = np.lexsort((cells.i, cells.j, cells.owner))
    i, j, source, target = (column[order] for column in (cells.i, cells.j, cells.source, cells.target))
    return Cells(cells.shapes[:, ::-1], cells.bases, cells.owner, j, i, target, source)


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
    return _compare(left, right, *np.divmod(kinds, len(right)))[kind]


def compare_spelling(first: Sequence[str], second: Sequence[str]) -> Array:
    """(words, 7): what `SPELLING` lists, for ``first[k]`` and ``second[k]``.

    Edit distance is divided by the longer word, the common prefix by the shorter one.

    >>> compare_spelling(["nation", "12"], ["national", "13"])[:, :3].round(2)
    array([[0.25, 1.  , 0.  ],
           [0.5 , 0.5 , 0.  ]])
    """
    own = np.arange(len(first))
    return _compare(first, second, own, own)


def _compare(left: Sequence[str], right: Sequence[str], first: Array, second: Array) -> Array:
    """`compare_spelling` of ``left[first[k]]`` and ``right[second[k]]``; O(letters) per pair, in compiled code."""
    out = np.zeros((first.size, len(SPELLING)))
    if not first.size:
        return out
    letters, others = _letters(left), _letters(right)
    _edit_distances(*letters, first, *others, second, out[:, :2])
    numbers = {word: k for k, word in enumerate(right)}
    same = np.array([numbers.get(word, -1) for word in left])
    codes = np.array([numbers[word] for word in right])
    is_number, is_mark = (
        [np.array([test(word) for word in words], dtype=bool)[rows] for words, rows in ((left, first), (right, second))]
        for test in (_is_number, _is_punctuation)
    )
    out[:, 2] = same[first] == codes[second]
    out[:, 3] = out[:, 2] * (letters[1][first] >= LONG)
    out[:, 4] = is_number[0] & is_number[1]
    out[:, 5] = is_mark[0] & is_mark[1]
    out[:, 6] = is_mark[0] ^ is_mark[1]
    return out


def _is_number(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _is_punctuation(word: str) -> bool:
    return not any(letter.isalnum() for letter in word)


def _letters(words: Sequence[str]) -> tuple[Array, Array]:
    """(words, MAX_LETTERS) code points, padded with 0, and lengths, at least 1."""
    cut = [word[:MAX_LETTERS] for word in words]
    table = np.array(cut, dtype=f"<U{MAX_LETTERS}")
    codes = table.view(np.uint32).reshape(len(cut), MAX_LETTERS).astype(np.int64)
    return codes, np.maximum([len(word) for word in cut], 1)


@kernel
def _edit_distances(
    left: Array, left_length: Array, first: Array, right: Array, right_length: Array, second: Array, out: Array
) -> None:
    """Levenshtein distance over the longer length, and common prefix over the shorter one, pair by pair."""
    for pair in range(first.size):
        a, b = first[pair], second[pair]
        m, n = left_length[a], right_length[b]
        previous = np.arange(n + 1)
        present = np.empty(n + 1, np.int64)
        for i in range(m):
            present[0] = i + 1
            for j in range(n):
                best = previous[j] + (0 if left[a, i] == right[b, j] else 1)
                if previous[j + 1] + 1 < best:
                    best = previous[j + 1] + 1
                if present[j] + 1 < best:
                    best = present[j] + 1
                present[j + 1] = best
            previous, present = present, previous
        prefix = 0
        shorter = m if m < n else n
        while prefix < shorter and left[a, prefix] == right[b, prefix]:
            prefix += 1
        out[pair, 0] = previous[n] / (m if m > n else n)
        out[pair, 1] = prefix / shorter

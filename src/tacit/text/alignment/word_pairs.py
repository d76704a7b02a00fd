"""Features of word pairs for `tacit.problems.Alignment`: translation tables, positions, spelling, frequency.

Tables of which word translates which are learned from the same sentence pairs that they describe. A table that has seen
a sentence pair knows that it is parallel: rare words that occur only there are bound to each other. Then "parallel or
not" is learned from this memory, and not from what translates what. So tables are **cross-fitted**: the sentence pairs
are dealt into folds, and each fold is described by tables from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import random_numbers, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import check_parameters, estimator, parameter, whole
from tacit.text.alignment.ibm1 import (
    IBM1,
    Cells,
    Translations,
    deal_folds,
    group_duplicates,
    lay_out,
    number_types,
    read_pairs_of_sentences,
)

LEXICAL = (
    "forward", "backward", "both ways", "stems forward", "stems backward", "stems both ways", "joint",
    "best of row and column", "rank", "neighbours", "neighbour of stems", "Dice", "Dice of stems",
    "source unseen", "target unseen", "both rare", "frequency difference",
)  # fmt: skip
"""Features from tables and counts, which are cross-fitted."""

SPELLING = ("edit distance", "common prefix", "identical", "identical and long", "both digits", "both punctuation",
            "one punctuation")  # fmt: skip
"""What `compare_spelling` measures."""

MAX_LETTERS = 40
"""Letters of a word that are compared: what is longer is an address, not a word."""

LONG = 4
"""Letters from which on two identical words are hardly a coincidence."""

STEM_LETTERS = 4
"""Letters of a word that count as its stem."""

PLACES = ("distance from diagonal", "squared distance", "both first", "both last", "always")
"""Features of positions."""

NAMES = (*LEXICAL, *SPELLING, "spelling if rare", *PLACES)
"""All features, in their order."""


_VOCABULARIES = ("source_types_", "target_types_", "source_stems_", "target_stems_")


@estimator
class WordPairs(BaseEstimator):  # type: ignore[misc]
    """Tables of word pairs, as `tacit.problems.Alignment` takes them.

    `fit_transform` describes the sentence pairs that it learns from, with cross-fitted tables; `mismatched` pairs their
    sentences anew, as examples of what is not parallel; `transform` describes new sentence pairs.

    Parameters
    ----------
    folds : each fold of the sentence pairs is described by tables from the others. 0 does without cross-fitting, which
        is there to show what it is good for
    diagonal, n_iter : of the `IBM1` models
    random_state : decides how sentence pairs are dealt into folds, and paired anew

    >>> pairs = WordPairs(folds=2)
    >>> X = pairs.fit_transform(["la maison", "la fleur"], ["the house", "the flower"])
    >>> len(X), X[0].shape == (4, 2 + len(pairs.feature_names_))
    (2, True)
    """

    folds: int = parameter(whole(0), default=10)
    diagonal: float = 6.0
    n_iter: int = 6
    random_state: Any = 0

    def check(self) -> None:
        check_parameters(self)
        check_parameters(self._model())

    def fit(self, source: Any, target: Any) -> WordPairs:
        """Learn tables from sentence pairs: one for each fold, and one from all for new sentences."""
        self.check()
        sources, targets = read_pairs_of_sentences(source, target)
        rng = np.random.default_rng(int(random_numbers(self.random_state).randint(2**31)))
        self.source_types_, self.target_types_ = number_types(sources), number_types(targets)
        self.source_stems_, self.target_stems_ = number_types(_stems(sources)), number_types(_stems(targets))
        self.groups_ = group_duplicates(sources, targets)
        self.feature_names_ = list(NAMES)
        n_groups = int(self.groups_.max()) + 1
        folds = min(int(self.folds), n_groups)
        is_cut = folds >= 2
        self.fold_ = deal_folds(self.groups_, folds, rng) if is_cut else np.zeros(len(sources), dtype=np.int64)
        self._sentences = sources, targets
        self._rng = rng
        layout = self._lay_out(sources, targets)
        everything = np.ones(len(sources), dtype=bool)
        left_out = range(folds) if is_cut else range(0)
        self._tables = [self._learn(layout, self.fold_ != fold) for fold in left_out]
        self._whole = self._learn(layout, everything)
        return self

    def fit_transform(self, source: Any, target: Any) -> Ragged:
        """`fit`, and the sentence pairs described by tables that did not see them."""
        self.fit(source, target)
        return self.describe(np.arange(len(self.fold_)), np.arange(len(self.fold_)))

    def mismatched(self, per_pair: int = 1) -> tuple[Ragged, Array]:
        """Sentences of the fit paired with translations of others, of about the same length and of the same fold.

        Returns the features, and the pairs (source sentence, target sentence), `per_pair` for every sentence. In one
        fold both sentences are new to its tables, as those of a true pair are. A sentence whose fold has no other group
        is left out.
        """
        check_is_fitted(self)
        chosen = self._mismatch(whole_number("per_pair", per_pair))
        if not len(chosen):
            raise ValueError("all sentence pairs share a sentence, so none can be paired anew; give more text")
        return self.describe(chosen[:, 0], chosen[:, 1]), chosen

    def transform(self, source: Any, target: Any) -> Ragged:
        """New sentence pairs, described by tables of all that `fit` saw."""
        check_is_fitted(self)
        sources, targets = read_pairs_of_sentences(source, target)
        layout = self._lay_out(sources, targets)
        return self._rows(layout.cells, self._lexical(layout, self._whole), sources, targets)

    def describe(self, sources: Array, targets: Array) -> Ragged:
        """Sentences of the fit, by number, paired; described by the tables that did not see the source's fold."""
        source, target = (
            [side[i] for i in chosen] for side, chosen in zip(self._sentences, (sources, targets), strict=True)
        )
        layout = self._lay_out(source, target)
        cells = layout.cells
        if not self._tables:
            return self._rows(cells, self._lexical(layout, self._whole), source, target)
        lexical = np.empty((cells.owner.size, len(LEXICAL)))
        fold = self.fold_[sources]
        for number, tables in enumerate(self._tables):
            own = np.flatnonzero(fold == number)
            if own.size:
                part = self._lay_out([source[i] for i in own], [target[i] for i in own])
                lexical[np.isin(cells.owner, own)] = self._lexical(part, tables)
        return self._rows(cells, lexical, source, target)

    def exported_tables(self) -> dict[str, Any]:
        """What `transform` needs, as lists and arrays: `restore_tables` takes it back."""
        check_is_fitted(self)
        words = {name: list(getattr(self, name)) for name in _VOCABULARIES}
        return words | {
            part: {name: value for name, value in table._asdict().items() if name != "n_target"}
            for part, table in self._whole._asdict().items()
        }

    def restore_tables(self, given: Any) -> WordPairs:
        """Make this ready to `transform` with tables that were exported; they are checked, for a file may hold
        anything."""
        self.check()
        sizes = []
        for name in _VOCABULARIES:
            words = given[name]
            if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
                raise ValueError(f"{name} of the tables is a list of words")
            setattr(self, name, {word: number for number, word in enumerate(words)})
            sizes.append(len(words))
        n_source, n_target, n_source_stems, n_target_stems = sizes
        shapes = (n_source, n_target), (n_source_stems, n_target_stems)
        parts: list[Any] = []
        for (first, second), names in zip(shapes, (_Tables._fields[:3], _Tables._fields[3:]), strict=True):
            parts.append(Translations(**_checked(given[names[0]], first * second, first, second), n_target=second))
            parts.append(Translations(**_checked(given[names[1]], first * second, second, first), n_target=first))
            parts.append(_Counts(**_checked(given[names[2]], first * second, first, second)))
        self._whole, self._tables = _Tables(*parts), []
        self.feature_names_ = list(NAMES)
        return self

    def _mismatch(self, per_pair: int) -> Array:
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

    def _learn(self, layout: _Layout, included: Array) -> _Tables:
        model = self._model()
        sizes = (len(self.source_types_), len(self.target_types_)), (len(self.source_stems_), len(self.target_stems_))
        parts: list[Any] = []
        for cells, (n_source, n_target) in zip(layout, sizes, strict=True):
            parts += [
                model.learn(cells, n_source, n_target, included),
                model.learn(_turned(cells), n_target, n_source, included),
                _count_sentences(cells, n_source, n_target, included),
            ]
        return _Tables(*parts)

    def _lexical(self, layout: _Layout, tables: _Tables) -> Array:
        """(word pairs, lexical features)."""
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
        return np.column_stack(
            [
                forward, backward, both, stem_forward, stem_backward, stem_both, np.sqrt(both * stem_both),
                is_best, rank, _neighbours(cells, both), _neighbours(cells, stem_both), dice, stem_dice,
                source_count == 0, target_count == 0, rare, frequency,
            ]
        )  # fmt: skip

    def _posteriors(self, cells: Cells, forward: Translations, backward: Translations) -> tuple[Array, Array]:
        model, turned = self._model(), _turned(cells)
        return model.posterior(cells, forward), _back(cells, model.posterior(turned, backward))

    def _rows(self, cells: Cells, lexical: Array, source: list[list[str]], target: list[list[str]]) -> Ragged:
        spelling = _spelling(cells, source, target)
        gap = cells.gap()
        n_source, n_target = cells.shapes[cells.owner].T
        rare = (1 - spelling[:, 0]) * lexical[:, LEXICAL.index("both rare")]
        places = np.column_stack(
            [
                gap,
                gap**2,
                (cells.i == 0) & (cells.j == 0),
                (cells.i == n_source - 1) & (cells.j == n_target - 1),
                np.ones(gap.size),
            ]
        )
        return Ragged(np.column_stack([cells.i, cells.j, lexical, spelling, rare, places]), cells.bases)


def _checked(part: Any, n_kinds: int, first: int, second: int) -> dict[str, Array]:
    """The arrays of one table; kernels rely on their sizes."""
    lengths = {"unseen": first, "alone": second, "source": first, "target": second}
    kinds = np.asarray(part["kinds"])
    if kinds.ndim != 1 or kinds.dtype.kind != "i" or (np.diff(kinds) <= 0).any():
        raise ValueError("the word pairs of a table are ascending whole numbers")
    if not kinds.size or kinds[0] < 0 or kinds[-1] >= n_kinds:
        raise ValueError("the word pairs of a table are none of its vocabulary")
    for name, values in part.items():
        values = np.asarray(values)
        if values.dtype.kind not in "if" or not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(f"{name} of a table holds what is no count or probability")
        if values.shape != (lengths.get(name, kinds.size),):
            raise ValueError(f"{name} of a table has shape {values.shape}, not {lengths.get(name, kinds.size)} numbers")
    return {name: np.asarray(values) for name, values in part.items()}


class _Layout(NamedTuple):
    """The word pairs of sentence pairs, and the same with stems in place of words."""

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
    """In how many sentence pairs words and pairs of words occur."""

    source: Array
    target: Array
    kinds: Array
    together: Array

    def look_up(self, cells: Cells) -> tuple[Array, Array, Array]:
        """Counts of the two words, and their Dice coefficient, for every word pair."""
        source = np.where(cells.source >= 0, self.source[cells.source], 0)
        target = np.where(cells.target >= 0, self.target[cells.target], 0)
        keys = cells.source * self.target.size + cells.target
        place = np.minimum(np.searchsorted(self.kinds, keys), self.kinds.size - 1)
        is_found = (self.kinds[place] == keys) & (cells.source >= 0) & (cells.target >= 0)
        together = np.where(is_found, self.together[place], 0)
        return source, target, 2 * together / np.maximum(source + target, 1)


def _count_sentences(cells: Cells, n_source: int, n_target: int, included: Array) -> _Counts:
    own = included[cells.owner]
    owner, source, target = cells.owner[own], cells.source[own], cells.target[own]
    counts = [
        np.bincount(np.unique(owner * size + words) % size, minlength=size)
        for words, size in ((source, n_source), (target, n_target))
    ]
    pairs = source * n_target + target
    kinds, kind = np.unique(pairs, return_inverse=True)
    together = np.bincount(np.unique(owner * kinds.size + kind) % kinds.size, minlength=kinds.size)
    return _Counts(counts[0], counts[1], kinds, together)


def _stems(sentences: list[list[str]]) -> list[list[str]]:
    """The first letters of every word: inflected words have few forms each, and share their beginnings."""
    return [[word[:STEM_LETTERS] for word in words] for words in sentences]


def _turned(cells: Cells) -> Cells:
    """The same word pairs in the other direction, target word after target word."""
    order = np.lexsort((cells.i, cells.j, cells.owner))
    i, j, source, target = (column[order] for column in (cells.i, cells.j, cells.source, cells.target))
    return Cells(cells.shapes[:, ::-1], cells.bases, cells.owner, j, i, target, source)


def _back(cells: Cells, values: Array) -> Array:
    """Numbers of turned word pairs in the order of the others."""
    place = cells.bases[cells.owner] + cells.j * cells.shapes[cells.owner, 0] + cells.i
    return np.asarray(values[place])


def _group_maximum(values: Array, groups: Array) -> Array:
    """The largest value of each group, for every member."""
    best = np.zeros(int(groups.max()) + 1)
    np.maximum.at(best, groups, values)
    return np.asarray(best[groups])


def _neighbours(cells: Cells, values: Array) -> Array:
    """The mean of the two cells before and after on the diagonal; 0 beyond the edges."""
    n_source, n_target = cells.shapes[cells.owner].T
    place = np.arange(values.size)
    before = np.where((cells.i > 0) & (cells.j > 0), values[np.maximum(place - n_target - 1, 0)], 0.0)
    after = np.where(
        (cells.i < n_source - 1) & (cells.j < n_target - 1),
        values[np.minimum(place + n_target + 1, values.size - 1)],
        0.0,
    )
    return np.asarray((before + after) / 2)


def _spelling(cells: Cells, source: list[list[str]], target: list[list[str]]) -> Array:
    """Spelling of every word pair; each pair of types is compared once."""
    sides = []
    for sentences, place in ((source, cells.rows()), (target, cells.columns())):
        types = number_types(sentences)
        tokens = np.array([types[word.lower()] for words in sentences for word in words])
        sides.append((list(types), tokens[place]))
    (left, first), (right, second) = sides
    kinds, kind = np.unique(first * len(right) + second, return_inverse=True)
    table = compare_spelling(
        [left[k // len(right)] for k in kinds.tolist()], [right[k % len(right)] for k in kinds.tolist()]
    )
    return np.asarray(table[kind])


def compare_spelling(first: Sequence[str], second: Sequence[str]) -> Array:
    """(words, 7): for each pair of words, at the same place of the two lists, what `SPELLING` lists.

    Edit distance and common prefix are shares: 1 for words without a common letter, and for one that begins the other.

    >>> compare_spelling(["nation", "12"], ["national", "13"])[:, :3].round(2)
    array([[0.25, 1.  , 0.  ],
           [0.5 , 0.5 , 0.  ]])
    """
    out = np.zeros((len(first), len(SPELLING)))
    if not len(first):
        return out
    left, right = (_letters(words) for words in (first, second))
    _edit_distances(*left, *right, out[:, :2])
    kinds = [
        (_is_number(a), _is_number(b), _is_punctuation(a), _is_punctuation(b))
        for a, b in zip(first, second, strict=True)
    ]
    number_a, number_b, mark_a, mark_b = np.array(kinds, dtype=bool).T
    out[:, 2] = [a == b for a, b in zip(first, second, strict=True)]
    out[:, 3] = out[:, 2] * (left[1] >= LONG)
    out[:, 4] = number_a & number_b
    out[:, 5] = mark_a & mark_b
    out[:, 6] = mark_a ^ mark_b
    return out


def _is_number(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _is_punctuation(word: str) -> bool:
    return not any(letter.isalnum() for letter in word)


def _letters(words: Sequence[str]) -> tuple[Array, Array]:
    """(words, MAX_LETTERS) code points, 0 behind the end, and lengths, 1 at the least."""
    cut = [word[:MAX_LETTERS] for word in words]
    table = np.array(cut, dtype=f"<U{MAX_LETTERS}")
    codes = table.view(np.uint32).reshape(len(cut), MAX_LETTERS).astype(np.int64)
    return codes, np.maximum([len(word) for word in cut], 1)


@kernel
def _edit_distances(left: Array, left_length: Array, right: Array, right_length: Array, out: Array) -> None:
    """Levenshtein distance over the longer length, and common prefix over the shorter one, pair by pair."""
    for pair in range(left.shape[0]):
        m, n = left_length[pair], right_length[pair]
        previous = np.arange(n + 1)
        present = np.empty(n + 1, np.int64)
        for i in range(m):
            present[0] = i + 1
            for j in range(n):
                best = previous[j] + (0 if left[pair, i] == right[pair, j] else 1)
                if previous[j + 1] + 1 < best:
                    best = previous[j + 1] + 1
                if present[j] + 1 < best:
                    best = present[j] + 1
                present[j + 1] = best
            previous, present = present, previous
        prefix = 0
        shorter = m if m < n else n
        while prefix < shorter and left[pair, prefix] == right[pair, prefix]:
            prefix += 1
        out[pair, 0] = previous[n] / (m if m > n else n)
        out[pair, 1] = prefix / shorter

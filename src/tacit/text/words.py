"""Features of words in their sentences, for part-of-speech tagging and the like."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import entries, is_list_of_text, is_whole, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import check_parameters, estimator, optional, parameter, whole
from tacit.runtime.archive import storable

MAX_COLUMNS = 1 << 30
"""The most columns of hashed features."""

MAX_EXTRA = 1000
"""The most columns beside the word."""

BEFORE, AFTER = "<s>", "</s>"
"""Padding before the first and after the last word of a sentence."""

NEIGHBOUR_KINDS = ("lower", "shape", "suffix 3")
"""Features of the words next to a word; words further away only have the lower-case form."""

WordFunction = Callable[[str], str | None]


class Template(NamedTuple):
    """A kind of feature (such as "suffix 3") of the word at an offset: −1 is the word before."""

    kind: str
    offset: int


class Vocabulary(BaseEstimator):  # type: ignore[misc]
    """Base of classes that learn a vocabulary: how they are saved and checked."""

    def check(self) -> None:
        """Refuse what no fit could have made: `tacit.load` calls it on a model from a file."""
        check_parameters(self)

    def learned_attributes(self) -> dict[str, Any]:
        """What is saved beside the parameters."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}


@storable
@estimator
class WordFeatures(TransformerMixin, Vocabulary):  # type: ignore[misc]
    """Sparse features of words in their sentences, for `tacit.problems.Chain`.

    The features of a word are itself, its lower-case form, its shape (``Xx``, ``9,99``), prefixes and suffixes, and the
    lower-case forms of its neighbours. The words next to it also have their shape and last three letters. Every
    template gives a word one column or none. Each is computed once per different word.

    Parameters
    ----------
    prefixes, suffixes : the longest prefix and suffix; 0 for none
    window : how many words on each side have features
    min_count : how often a feature must occur in training to get a column; hashed features always have one
    extra : number of further columns per word. Tokens are then tuples of a word and so many strings. Each is a feature
        of the word and of the words next to it; an empty string is not a feature
    columns : None numbers the features of the training sentences and leaves out others. A number hashes all features
        into so many columns: nothing is learned, and different features may share a column

    Attributes
    ----------
    n_columns_ : columns of the table
    vocabularies_ : per template, the column of every value; empty if features are hashed

    >>> features = WordFeatures(window=1).fit([["Dogs", "bark"], ["Cats", "purr"]])
    >>> table = features.transform([["Dogs", "purr"]])
    >>> table.values.shape[0], table.offsets.tolist(), "lower[-1]=dogs" in features.get_feature_names_out()
    (2, [0, 2], True)
    """

    prefixes: int = parameter(whole(0, 20), default=3)
    suffixes: int = parameter(whole(0, 20), default=4)
    window: int = parameter(whole(0, 20), default=2)
    min_count: int = parameter(whole(), default=1)
    columns: int | None = parameter(optional(whole(1, MAX_COLUMNS)), default=None)
    extra: int = parameter(whole(0, MAX_EXTRA), default=0)

    def fit(self, X: Any, y: Any = None) -> WordFeatures:
        """Number the features of these sentences, each a list of words."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Ragged:
        """`fit`, and return the features of the same sentences."""
        check_parameters(self)
        words, ids, offsets = number_words(X, int(self.extra))
        self.vocabularies_: dict[str, dict[str, int]] = {}
        width = 0
        for template, values, codes in () if self.columns else self._template_codes(words, ids, offsets):
            counts = np.bincount(codes[codes >= 0], minlength=len(values))
            kept = np.flatnonzero(counts >= int(self.min_count))
            self.vocabularies_[_name(template)] = {values[v]: width + i for i, v in enumerate(kept.tolist())}
            width += kept.size
        self.n_columns_ = int(self.columns or max(width, 1))
        return self._make_table(words, ids, offsets)

    def transform(self, X: Any) -> Ragged:
        """Make one sparse table of features per sentence."""
        check_is_fitted(self, "n_columns_")
        return self._make_table(*number_words(X, int(self.extra)))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns, such as ``suffix 3[0]=ing``; hashed columns are numbered."""
        check_is_fitted(self, "n_columns_")
        names = np.array([f"column {i}" for i in range(self.n_columns_)], dtype=object)
        for template, vocabulary in self.vocabularies_.items():
            for value, column in vocabulary.items():
                names[column] = f"{template}={value}"
        return names

    def check(self) -> None:
        super().check()
        if not hasattr(self, "n_columns_"):
            return
        width = whole_number("n_columns_", self.n_columns_, 1, MAX_COLUMNS)
        expected = [] if self.columns is not None else [_name(template) for template in self._templates()]
        if not isinstance(self.vocabularies_, dict) or list(self.vocabularies_) != expected:
            raise ValueError(f"vocabularies_ must have one entry per template, got {shorten(self.vocabularies_)}")
        for vocabulary in self.vocabularies_.values():
            columns = vocabulary.values() if isinstance(vocabulary, dict) else [None]
            if not all(is_whole(column) and 0 <= column < width for column in columns):
                raise ValueError(f"the columns in vocabularies_ must be from 0 to {width - 1}")

    def _templates(self) -> list[Template]:
        kinds = ["word", "lower", "shape"]
        kinds += [f"prefix {size}" for size in range(1, int(self.prefixes) + 1)]
        kinds += [f"suffix {size}" for size in range(1, int(self.suffixes) + 1)]
        templates = [Template(kind, 0) for kind in kinds]
        for far in range(1, int(self.window) + 1):
            near = [kind for kind in NEIGHBOUR_KINDS if far == 1 or kind == "lower"]
            templates += [Template(kind, offset) for offset in (-far, far) for kind in near]
        near_offsets = (0, -1, 1) if self.window else (0,)
        templates += [Template(f"extra {e}", o) for e in range(1, int(self.extra) + 1) for o in near_offsets]
        return templates

    def _template_codes(self, words: Sequence[str], ids: Array, offsets: Array) -> Iterable[Any]:
        """Yield every template with its values, and the index of the value of each word; −1 for none."""
        kinds: dict[str, tuple[list[str], Array]] = {}
        neighbours = {0: ids}
        for template in self._templates():
            if template.kind not in kinds:
                kinds[template.kind] = _values_of_words(template.kind, words)
            values, of_word = kinds[template.kind]
            if template.offset not in neighbours:
                neighbours[template.offset] = _shift_words(ids, offsets, template.offset, len(words))
            outside = [len(values), len(values) + 1]
            codes = np.concatenate([of_word, outside])[neighbours[template.offset]]
            yield template, [*values, BEFORE, AFTER], codes

    def _make_table(self, words: Sequence[str], ids: Array, offsets: Array) -> Ragged:
        columns = np.full((ids.size, len(self._templates())), -1, dtype=np.int64)
        for t, (template, values, codes) in enumerate(self._template_codes(words, ids, offsets)):
            if self.columns is None:
                vocabulary = self.vocabularies_[_name(template)]
                column = np.array([*(vocabulary.get(value, -1) for value in values), -1])
            else:
                start = zlib.crc32(_name(template).encode())
                hashes = [zlib.crc32(value.encode("utf-8", "surrogatepass"), start) for value in values]
                column = np.array([*(h % self.n_columns_ for h in hashes), -1])
            columns[:, t] = column[codes]
        return Ragged(_indicator_table(columns, self.n_columns_), offsets)


def number_words(X: Any, extra: int = 0) -> tuple[list[Any], Array, Array]:
    """The different words in the order of first use, the index of every word among them, and where sentences begin.

    With ``extra``, words are tuples of a word and so many other strings.
    """
    if isinstance(X, Ragged):
        X = list(X)
    sentences = entries("X", X, "a list of sentences, each a list of words")
    if not sentences:
        raise ValueError("X is empty; give at least one sentence")
    numbers: dict[Any, int] = {}
    flat: list[int] = []
    sizes = np.empty(len(sentences), dtype=np.int64)
    for i, sentence in enumerate(sentences):
        if extra:
            _check_tuples(sentence, i, 1 + extra)
        elif not is_list_of_text(sentence):
            raise ValueError(f"X[{i}] must be a list of strings, the words of a sentence; got {shorten(sentence)}")
        sizes[i] = len(sentence)
        if not sizes[i]:
            raise ValueError(f"X[{i}] is empty; leave out empty sentences")
        flat.extend([numbers.setdefault(word, len(numbers)) for word in sentence])
    return list(numbers), np.array(flat, dtype=np.int64), np.concatenate([[0], np.cumsum(sizes)])


def _check_tuples(sentence: Any, i: int, size: int) -> None:
    """Refuse a sentence that is not a list of tuples of so many strings."""
    if not isinstance(sentence, list | tuple):
        raise ValueError(f"X[{i}] must be a list of tuples, the tokens of a sentence; got {shorten(sentence)}")
    for token in sentence:
        if not isinstance(token, tuple) or len(token) != size or not all(isinstance(part, str) for part in token):
            raise ValueError(
                f"X[{i}] must have tokens of {size} strings, a word and {size - 1} more columns; got {shorten(token)}"
            )


def _name(template: Template) -> str:
    return f"{template.kind}[{template.offset}]"


def _values_of_words(name: str, words: Sequence[Any]) -> tuple[list[str], Array]:
    """The different values of a kind of feature, and the index of the value of every word; −1 for none."""
    kind, _, size = name.partition(" ")
    if words and isinstance(words[0], tuple):
        words = [word[int(size) if kind == "extra" else 0] for word in words]
    plain: dict[str, WordFunction] = {"word": str, "lower": str.lower, "shape": word_shape}
    plain["extra"] = lambda value: value or None
    function = plain[kind] if kind in plain else {"prefix": prefix, "suffix": suffix}[kind](int(size))
    numbers: dict[str, int] = {}
    found = [-1 if (value := function(word)) is None else numbers.setdefault(value, len(numbers)) for word in words]
    return list(numbers), np.array(found, dtype=np.int64)


def _shift_words(ids: Array, offsets: Array, by: int, outside: int) -> Array:
    """The word at this offset; ``outside`` before the first word of a sentence, ``outside + 1`` after the last."""
    at = np.arange(ids.size) + by
    first, last = np.repeat(offsets[:-1], np.diff(offsets)), np.repeat(offsets[1:], np.diff(offsets))
    inside = ids[np.clip(at, 0, ids.size - 1)]
    return np.where(at < first, outside, np.where(at >= last, outside + 1, inside))


def _indicator_table(columns: Array, width: int) -> Any:
    """A CSR table with a one for every column that a row lists, and a two for a column that it lists twice."""
    named = columns >= 0
    indptr = np.concatenate([[0], np.cumsum(named.sum(axis=1))])
    indices = columns[named]
    small = np.int32 if max(width, indices.size) < 2**31 else np.int64
    return sparse.csr_array((np.ones(indices.size), indices.astype(small), indptr.astype(small)), (len(columns), width))


SHORTEST_STEM = 1
"""The fewest letters beside a prefix or suffix; the whole form already describes shorter words."""


def word_shape(word: str) -> str:
    """The shape of a word: capitals as X, other letters as x, digits as 9, runs cut to two.

    >>> word_shape("McDonald's"), word_shape("1,024"), word_shape("U.S.")
    ("XxXxx'x", '9,99', 'X.X.')
    """
    shape: list[str] = []
    for letter in word:
        kind = "9" if letter.isdigit() else letter if not letter.isalpha() else "X" if letter.isupper() else "x"
        if len(shape) < 2 or shape[-1] != kind or shape[-2] != kind:
            shape.append(kind)
    return "".join(shape)


def prefix(size: int) -> WordFunction:
    """A function that returns the first letters of a word in lower case, None for a word that is too short.

    >>> prefix(2)("Under"), prefix(2)("is")
    ('un', None)
    """
    return lambda word: word[:size].lower() if len(word) >= size + SHORTEST_STEM else None


def suffix(size: int) -> WordFunction:
    """A function that returns the last letters of a word in lower case, None for a word that is too short.

    >>> suffix(3)("Going"), suffix(3)("sea")
    ('ing', None)
    """
    return lambda word: word[-size:].lower() if len(word) >= size + SHORTEST_STEM else None

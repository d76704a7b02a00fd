"""One container for bags, sequences and documents: all rows in one flat table, cut into samples by offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array, Rows, as_csr, check_offsets, find_uneven, locate, span
from tacit.data.bags import column_of_frame, rows_of_arrow, rows_of_list, stack_rows
from tacit.data.parameters import is_hashable, is_list, is_whole, numbers, reason, shorten


class MapRows(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer, fitted on the rows of all bags together and applied to each row.

    Put it in front of a bag learner in a pipeline, with a scaler or a PCA; `Ragged.map` is its short name. Rows may
    also be dicts of named features, as crfsuite takes them: `DictVectorizer` or `FeatureHasher` makes sparse rows.

    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> bags = Ragged.from_list([[[1.0], [2.0]], [[6.0]]])
    >>> Ragged.map(StandardScaler()).fit_transform(bags)[1].round(3)
    array([[1.389]])
    >>> from sklearn.feature_extraction import DictVectorizer
    >>> sentences = [[{"word": "it", "first": True}, {"word": "rains"}], [{"word": "it"}]]
    >>> Ragged.map(DictVectorizer()).fit_transform(sentences)
    Ragged(2 samples, 1–2 rows each; 3 × 3 sparse float64)
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> MapRows:
        """Fit a copy of the transformer on all rows; the labels of bags are not passed on."""
        bags = Ragged.of(X)
        self.transformer_ = clone(self.transformer).fit(bags.values)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Ragged:
        """`fit` and then `transform`; in one pass over the rows where the transformer has a quicker way for both."""
        self.transformer_ = clone(self.transformer)
        if not hasattr(self.transformer_, "fit_transform"):
            return self.fit(X).transform(X)
        return Ragged.of(X).map_rows(self.transformer_.fit_transform)

    def transform(self, X: Any) -> Ragged:
        """The same bags, every row transformed."""
        check_is_fitted(self)
        return Ragged.of(X).map_rows(self.transformer_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class _ShortName:
    """``map``, short for two things: `Ragged.map` is the pipeline step `MapRows`, ``bags.map`` is `bags.map_rows`."""

    def __get__(self, bags: Ragged | None, owner: type) -> Any:
        return MapRows if bags is None else bags.map_rows


class Ragged:
    """Rows of many samples in one table: sample ``i`` is ``values[offsets[i]:offsets[i + 1]]``.

    It behaves like a one-dimensional array of samples: ``shape == (n,)``, integers give one sample (a view),
    slices and index arrays give a Ragged; so `train_test_split`, `cross_val_score` and `GridSearchCV` take it
    whole. Slices of step one share memory. `values` may be dense, scipy-sparse or memory-mapped, and is never
    copied by the constructor.

    Parameters
    ----------
    values : array of shape (rows,) or (rows, d), or scipy-sparse of shape (rows, d)
    offsets : integers, from 0 to the number of rows, never falling; one more than there are samples
    boxes : (rows, 4) where in an image every row comes from, (x_min, y_min, x_max, y_max); None for rows without one

    >>> import numpy as np
    >>> bags = Ragged(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    >>> bags.shape, bags[1].shape, len(bags[[1, 0, 1]])
    ((2,), (2, 2), 3)
    """

    map = _ShortName()

    def __init__(self, values: Any, offsets: Any, boxes: Any = None) -> None:
        if sparse.issparse(values):
            values = as_csr(values)
        elif not isinstance(values, np.ndarray):
            try:
                values = np.asarray(values)
            except ValueError as error:
                raise ValueError(f"values are no table of rows: {find_uneven(values) or reason(error)}") from error
        if values.ndim == 0:
            raise ValueError("values must have at least one dimension (rows), got a single number")
        offsets = check_offsets(offsets, values.shape[0])
        self.values = values
        self.offsets = offsets
        self.boxes: Array | None = None if boxes is None else _as_boxes(boxes, offsets)

    @property
    def shape(self) -> tuple[int]:
        return (self.offsets.size - 1,)

    @property
    def ndim(self) -> int:
        return 1

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def lengths(self) -> Array:
        """Rows of each sample."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            key = _only_key(key)
        if key is Ellipsis:
            return self
        if isinstance(key, bool) or is_whole(key):
            if not -len(self) <= key < len(self):
                raise IndexError(f"sample {shorten(key)} does not exist: there are {len(self)}")
            i = range(len(self))[key]
            return self.values[self.offsets[i] : self.offsets[i + 1]]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                stop = max(start, stop)
                low, high = self.offsets[start], self.offsets[stop]
                own = None if self.boxes is None else self.boxes[low:high]
                return Ragged(self.values[low:high], self.offsets[start : stop + 1] - low, own)
            key = np.arange(start, stop, step)
        index = _as_index(key, len(self))
        rows, offsets = states_of(self.offsets, index)
        return Ragged(self.values[rows], offsets, None if self.boxes is None else self.boxes[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        out = np.empty(len(self), dtype=object)
        for i in range(len(self)):
            out[i] = self[i]
        return out

    def __repr__(self) -> str:
        kind = "sparse " if sparse.issparse(self.values) else ""
        width = "" if self.values.ndim == 1 else f" × {'×'.join(map(str, self.values.shape[1:]))}"
        lengths = self.lengths
        span = f", {lengths.min()}–{lengths.max()} rows each" if len(self) else ""
        return f"Ragged({len(self)} samples{span}; {self.values.shape[0]}{width} {kind}{self.dtype})"

    def map_rows(self, transformer: Any) -> Ragged:
        """Apply a fitted transformer, or a plain function of the row table, to all rows at once.

        A transformer that is not fitted yet is copied and fitted on these rows first. Rows stay rows: a
        result with another number of rows is an error. In a pipeline, `MapRows` does the same to each new X.

        >>> Ragged.from_list([[[1.0], [2.0]], [[6.0]]]).map_rows(np.negative)[1]
        array([[-6.]])
        """
        if not hasattr(transformer, "transform"):
            if not callable(transformer) or isinstance(transformer, type):
                raise TypeError(
                    f"map needs a transformer with transform(), or a function of the rows; got {shorten(transformer)}"
                )
            values = transformer(self.values)
        else:
            try:
                check_is_fitted(transformer)
            except NotFittedError:
                transformer = clone(transformer).fit(self.values)
            values = transformer.transform(self.values)
        if not sparse.issparse(values):
            values = np.asarray(values)
        if values.shape[:1] != (self.values.shape[0],):
            raise ValueError(
                f"the transformer turned {self.values.shape[0]} rows into shape {values.shape}; map keeps every row"
            )
        return self.with_values(values)

    def with_values(self, values: Any) -> Ragged:
        """The same samples and boxes with other rows, one for each of these."""
        return Ragged(values, self.offsets, self.boxes)

    def with_boxes(self, boxes: Any) -> Ragged:
        """The same samples with a box for every row: one table of all, or a list of one table per sample.

        >>> bags = Ragged.from_list([[[1.0], [2.0]], [[6.0]]])
        >>> bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]], [[0, 0, 4, 4]]])[1:].boxes
        array([[0., 0., 4., 4.]])
        """
        if isinstance(boxes, list | tuple) and not all(np.ndim(_as_box_list(own)) == 1 for own in boxes):
            boxes = self._joined_boxes([_as_box_list(own) for own in boxes])
        return Ragged(self.values, self.offsets, boxes)

    def _joined_boxes(self, tables: list[Any]) -> Array:
        """One table of boxes from one per sample."""
        if len(tables) != len(self):
            raise ValueError(
                f"{len(tables)} tables of boxes for {len(self)} samples; give one each, or one of all rows"
            )
        for i, own in enumerate(tables):
            if own is None or np.shape(own) not in ((self.lengths[i], 4), *([(0,)] if not self.lengths[i] else [])):
                shape = "several lengths" if own is None else f"shape {np.shape(own)}"
                raise ValueError(f"sample {i} has {self.lengths[i]} rows and boxes of {shape}; give (rows, 4)")
        return np.concatenate([np.reshape(own, (-1, 4)) for own in tables])

    def to_shards(self, folder: Any, shards: int = 4) -> Any:
        """Write the samples to a new folder, in so many shards, and open it: a `tacit.Shards`, for data beyond memory.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(Ragged.from_list([[[1.0], [2.0]], [[6.0]]]).to_shards(folder, shards=2))
        Shards(2 bags in 2 shards; 3 × 1 float64)
        """
        from tacit.data.shards import Shards

        return Shards.write(folder, self, shards)

    @staticmethod
    def concatenate(parts: Iterable[Ragged]) -> Ragged:
        """The samples of several Ragged, one after the other.

        >>> len(Ragged.concatenate([Ragged([1, 2], [0, 2]), Ragged([3], [0, 1])]))
        2
        """
        if isinstance(parts, Ragged) or not is_list(parts):
            raise TypeError(f"a list of Ragged expected, got {shorten(parts)}; write [first, second]")
        bags = [Ragged.of(part) for part in parts]
        if not bags:
            raise ValueError("nothing to concatenate: give at least one Ragged")
        starts = np.cumsum([0] + [part.values.shape[0] for part in bags])
        offsets = [part.offsets[:-1] + start for part, start in zip(bags, starts[:-1], strict=True)]
        boxes = [part.boxes for part in bags if part.boxes is not None]
        if boxes and len(boxes) < len(bags):
            raise ValueError(f"{len(boxes)} of {len(bags)} parts have boxes; give all of them boxes, or none")
        return Ragged(
            stack_rows([part.values for part in bags], "part"),
            np.concatenate([*offsets, starts[-1:]]),
            np.concatenate(boxes) if boxes else None,
        )

    @staticmethod
    def from_list(samples: Iterable[Any]) -> Ragged:
        """Stack a list of arrays (rows,) or (rows, d), of nested lists, of sparse matrices, or of lists of dicts.

        >>> Ragged.from_list([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]])
        Ragged(2 samples, 1–2 rows each; 3 × 2 float64)
        """
        if isinstance(samples, str | bytes | dict) or not is_list(samples):
            raise TypeError(f"a list of bags expected, got {shorten(samples)}")
        return Ragged(*rows_of_list(samples))

    @staticmethod
    def from_frame(frame: Any, bag: str) -> Ragged:
        """A pandas table with one row per candidate: ``bag`` names the column that tells the bags apart.

        Bags come in the order in which they first appear (``frame[bag].unique()``), rows keep their order
        within a bag, and every other column is a number.

        >>> import pandas as pd
        >>> table = pd.DataFrame({"id": ["b", "a", "b"], "x": [1.0, 2.0, 3.0]})
        >>> Ragged.from_frame(table, bag="id")[0].ravel()
        array([1., 3.])
        """
        if not hasattr(frame, "columns") or not hasattr(frame, "groupby"):
            raise TypeError(f"a pandas table expected, got {shorten(frame)}; use Ragged.of for lists")
        if not is_hashable(bag) or bag not in frame.columns:
            raise ValueError(f"no column {shorten(bag)} in the frame; its columns are {shorten(list(frame.columns))}")
        missing = np.flatnonzero(frame[bag].isna().to_numpy())
        if missing.size:
            raise ValueError(f"column {shorten(bag)} is missing in row {missing[0]}: every row belongs to a bag")
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise ValueError(f"two columns are named {shorten(twice)}; rename one")
        table = frame.drop(columns=bag)
        columns = [column_of_frame(table[name], name) for name in table.columns]
        codes = frame.groupby(bag, sort=False, observed=True).ngroup().to_numpy()
        order = np.argsort(codes, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
        values = np.column_stack(columns) if columns else np.empty((len(frame), 0))
        return Ragged(values[order], offsets)

    @staticmethod
    def of(samples: Any) -> Ragged:
        """Whatever a user has: a Ragged (returned as it is), a list, an object array, a pandas Series, a pyarrow
        list column, or a 3-D array of equal bags."""
        if isinstance(samples, Ragged):
            return samples
        if type(samples).__module__.split(".")[0] == "pyarrow":
            return Ragged(*rows_of_arrow(samples))
        if hasattr(samples, "in_memory"):
            raise TypeError(f"bags in memory expected, got {samples!r}; write shards.in_memory()")
        if isinstance(samples, np.ndarray) and samples.dtype != object and samples.ndim >= 2:
            n, rows = samples.shape[:2]
            return Ragged(samples.reshape(n * rows, *samples.shape[2:]), np.arange(n + 1) * rows)
        if sparse.issparse(samples) or isinstance(samples, (str, bytes, dict)) or hasattr(samples, "columns"):
            raise TypeError(
                f"bags expected, got one {type(samples).__name__}; give a list of arrays, "
                "Ragged(values, offsets) or Ragged.from_frame(df, bag=...)"
            )
        if not is_list(samples):
            raise TypeError(f"bags expected, got {shorten(samples)}; give a list of arrays, or Ragged(values, offsets)")
        return Ragged.from_list(samples)


def _as_box_list(own: Any) -> Any:
    """An entry of a list of boxes as an array; None where it is none."""
    try:
        return np.asarray(own)
    except ValueError:
        return None


def _as_boxes(boxes: Any, offsets: Array) -> Array:
    table = numbers("boxes", boxes, "four numbers per row: x_min, y_min, x_max, y_max")
    if table.shape != (offsets[-1], 4):
        raise ValueError(
            f"boxes have shape {table.shape} for {offsets[-1]} rows; give four numbers per row: x_min, y_min, x_max, "
            "y_max"
        )
    good = np.isfinite(table).all(axis=1) & (table[:, 0] < table[:, 2]) & (table[:, 1] < table[:, 3])
    if not good.all():
        row = int(np.argmin(good))
        i, place = locate(offsets, row)
        raise ValueError(
            f"the box of sample {i}, row {place} is {table[row].tolist()}; x_min must be below x_max and "
            "y_min below y_max"
        )
    return table


def states_of(offsets: Array, index: Array) -> tuple[Array, Array]:
    """The rows of the chosen samples, one sample after the other, and the offsets that cut them.

    >>> states_of(np.array([0, 2, 5]), np.array([1, 0]))
    (array([2, 3, 4, 0, 1]), array([0, 3, 5]))
    """
    lengths = offsets[index + 1] - offsets[index]
    cuts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(cuts[-1]) + np.repeat(offsets[index] - cuts[:-1], lengths)
    return rows, cuts


def places_of(offsets: Array, samples: Rows) -> Any:
    """The rows of the chosen samples: a slice where the samples are consecutive, else an array.

    >>> places_of(np.array([0, 2, 5]), slice(1, 2)), places_of(np.array([0, 2, 5]), np.array([1]))
    (slice(2, 5, None), array([2, 3, 4]))
    """
    if samples is None:
        return slice(0, int(offsets[-1]))
    if isinstance(samples, slice):
        first, last = span(samples, offsets.size - 1)
        return slice(int(offsets[first]), int(offsets[last]))
    return states_of(offsets, np.asarray(samples))[0]


def starts_of(offsets: Array, samples: Rows) -> Array:
    """The offsets that cut the rows of the chosen samples.

    >>> starts_of(np.array([0, 2, 5, 6]), slice(1, 3))
    array([0, 3, 4])
    """
    if samples is None:
        return offsets
    if isinstance(samples, slice):
        first, last = span(samples, offsets.size - 1)
        return np.asarray(offsets[first : last + 1] - offsets[first])
    return states_of(offsets, np.asarray(samples))[1]


def _only_key(key: tuple[Any, ...]) -> Any:
    kept = [part for part in key if part is not Ellipsis]
    if len(kept) > 1:
        raise IndexError(f"a Ragged has one dimension, got {len(kept)} indices {shorten(key)}; index `values` for rows")
    return kept[0] if kept else Ellipsis


def _as_index(key: Any, n: int) -> Array:
    try:
        index = np.asarray(key)
    except ValueError:
        index = np.empty((), dtype=object)
    if index.dtype == bool:
        if index.shape != (n,):
            raise IndexError(f"a mask for {n} samples must have shape ({n},), got {index.shape}")
        return np.flatnonzero(index)
    if index.size == 0:
        return np.zeros(0, dtype=np.int64)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise IndexError(f"index with integers, slices, masks or vectors of integers, not {shorten(key)}")
    outside = np.flatnonzero((index < -n) | (index >= n))
    if outside.size:
        raise IndexError(f"sample {index[outside[0]]} does not exist: there are {n}")
    return np.where(index < 0, index + n, index)

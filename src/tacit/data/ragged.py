"""One container for bags, sequences and documents: all rows in one flat table, cut into samples by offsets."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array, as_csr, check_offsets, find_uneven, first_non_finite, locate, states_of
from tacit.data.bags import column_of_frame, rows_of_arrow, rows_of_list, stack_rows
from tacit.data.boxes import check_boxes
from tacit.data.parameters import ArrayError, as_array, is_hashable, is_list, is_whole, plain_array, reason, shorten

SHOWN_SAMPLES, SHOWN_ROWS = 3, 5
"""How much of a Ragged is printed."""


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
        elif type(values) not in (np.ndarray, np.memmap):
            try:
                values = plain_array(values, "values")
            except ArrayError:
                raise
            except ValueError as error:
                raise ValueError(f"values must be a table: {find_uneven(values) or reason(error)}") from error
        if values.ndim == 0:
            raise ValueError("values must have at least one dimension (rows), got a single number")
        offsets = check_offsets(offsets, values.shape[0])
        self.values = values
        self.offsets = offsets
        self.boxes: Array | None = None if boxes is None else check_boxes(boxes, offsets)

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
        index = as_index(key, len(self))
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
        return f"Ragged({len(self)} samples{span}; {self.values.shape[0]}{width} {kind}{self.dtype}{self._preview()})"

    def _preview(self) -> str:
        """The first samples, where a row is one value."""
        if self.values.ndim != 1 or not len(self):
            return ""
        more = ["…"] if len(self) > SHOWN_SAMPLES else []
        return ": " + ", ".join([shorten(self[i].tolist()) for i in range(min(len(self), SHOWN_SAMPLES))] + more)

    def _repr_html_(self) -> str:
        """A table of the first samples, for notebooks."""
        lines = ["<tr><th>sample</th><th>rows</th><th>first rows</th></tr>"]
        for i in range(min(len(self), SHOWN_SAMPLES)):
            rows = self[i][:SHOWN_ROWS]
            rows = rows.toarray() if sparse.issparse(rows) else rows
            shown = "<br>".join(html.escape(shorten(row)) for row in rows.tolist())
            lines.append(f"<tr><td>{i}</td><td>{self.lengths[i]}</td><td>{shown}</td></tr>")
        kind = html.escape(repr(self).removesuffix(self._preview() + ")") + ")")
        return f"<table><caption>{kind}</caption>{''.join(lines)}</table>"

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
            raise TypeError(f"parts must be a list of Ragged, such as [first, second], got {shorten(parts)}")
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
            raise TypeError(f"samples must be a list of bags, got {shorten(samples)}")
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
            raise TypeError(f"frame must be a pandas DataFrame, got {shorten(frame)}; use Ragged.of for lists")
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
            raise TypeError(f"bags must be in memory, got {samples!r}; write shards.in_memory()")
        if isinstance(samples, np.ndarray) and samples.dtype != object and samples.ndim >= 2:
            samples = plain_array(samples, "X")
            n, rows = samples.shape[:2]
            return Ragged(samples.reshape(n * rows, *samples.shape[2:]), np.arange(n + 1) * rows)
        if sparse.issparse(samples) or isinstance(samples, (str, bytes, dict)) or hasattr(samples, "columns"):
            raise TypeError(
                f"samples must be bags, got one {type(samples).__name__}; give a list of arrays, "
                "Ragged(values, offsets) or Ragged.from_frame(df, bag=...)"
            )
        if not is_list(samples):
            raise TypeError(
                f"samples must be bags, got {shorten(samples)}; give a list of arrays, or Ragged(values, offsets)"
            )
        return Ragged.from_list(samples)


def read_ragged(X: Any, sample: str, row: str) -> Ragged:
    """Check samples of at least one row each, finite numbers throughout; errors use the words ``sample`` and ``row``.

    >>> read_ragged([[[1, 2]], [[3, 4], [5, 6]]], "bag", "candidate")
    Ragged(2 samples, 1–2 rows each; 3 × 2 float64)
    """
    samples = Ragged.of(X)
    if len(samples) == 0:
        raise ValueError(f"no {sample}s: X holds 0 samples, a minimum of 1 is required")
    if samples.values.ndim == 1 and samples.values.size and isinstance(samples.values[0], dict):
        raise ValueError(
            f"{row}s are dicts of features, and numbers are needed; put a vectoriser in front: "
            "make_pipeline(Ragged.map(DictVectorizer()), model)"
        )
    if samples.values.ndim != 2:
        raise ValueError(
            f"every {row} must be a vector of numbers, these {sample}s have rows of shape {samples.values.shape[1:]}; "
            f"for a single {sample} pass [{sample}], and {sample}.reshape(-1, 1) makes numbers into {row}s"
        )
    empty = np.flatnonzero(samples.lengths == 0)
    if empty.size:
        raise ValueError(f"{sample} {empty[0]} has 0 {row}s; drop it or give it one")
    if samples.values.shape[1] == 0:
        raise ValueError(f"{row}s have 0 feature(s) while a minimum of 1 is required")
    if samples.dtype not in (np.float64, np.float32):
        if samples.dtype.kind not in "biuf":
            raise ValueError(f"{row}s hold {samples.dtype}, not numbers; encode them first (DictVectorizer, say)")
        kind = np.float32 if samples.dtype == np.float16 else np.float64
        samples = samples.with_values(samples.values.astype(kind))
    position = first_non_finite(samples.values)
    if position:
        i, t = locate(samples.offsets, position[0])
        raise ValueError(
            f"X contains NaN or infinity: {samples.values[position]} in {sample} {i}, {row} {t}, "
            f"feature {position[1]}; drop the {row} or fill the gap"
        )
    return samples


def _as_box_list(own: Any) -> Any:
    """An entry of a list of boxes as an array; None where it is none."""
    try:
        return np.asarray(own)
    except ValueError:
        return None


def _only_key(key: tuple[Any, ...]) -> Any:
    kept = [part for part in key if part is not Ellipsis]
    if len(kept) > 1:
        raise IndexError(f"a Ragged has one dimension, got {len(kept)} indices {shorten(key)}; index `values` for rows")
    return kept[0] if kept else Ellipsis


def as_index(key: Any, n: int) -> Array:
    """The positions that a mask or a list of integers selects among n samples."""
    index = as_array(key)
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

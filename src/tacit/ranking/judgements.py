"""Where triplets come from: graded relevances, tags, similarities, files of judged rows."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, as_csr
from tacit.data.parameters import (
    even_table,
    file_path,
    has_length,
    is_list,
    numbers,
    one_of,
    plain_array,
    random_numbers,
    shorten,
    whole_number,
)
from tacit.data.reading import MAX_BYTES, GuardedStream, reading
from tacit.data.text_files import BYTES_PER_LINE, FEWEST, TextReader
from tacit.ranking.counting import keep_best

BLOCK_ENTRIES = 4_000_000
"""Relevances of one block, at most."""

MAX_NUMBER = 2**31 - 1
"""The highest number that a query or an item can have."""


MAX_GRADE = 30
"""The highest grade whose gain is 2^grade − 1, as in LightGBM."""

MAX_GAIN = 2**MAX_GRADE - 1
"""The highest gain of an item."""


class Graded(NamedTuple):
    """Items of queries and their grades 0, 1, … within the query; ``offsets`` is where those of each query begin."""

    offsets: Array
    items: Array
    grades: Array


def read_whole_numbers(values: Any) -> Array:
    """An array of whole numbers from −1 up to `MAX_NUMBER`; an empty one of floats for anything else, to be refused."""
    try:
        table = plain_array(values)
    except (ValueError, TypeError, OverflowError):  # rows of several lengths
        return np.zeros((0, 0, 0))
    if table.dtype.kind not in "iu" or (table.size and not -1 <= table.min() <= table.max() <= MAX_NUMBER):
        return np.zeros((0, 0, 0))
    return table.astype(np.int64)


def read_itself(itself: Any, n_queries: int, n_items: int) -> Array:
    """Per query its own number among the items, −1 where it is not among them."""
    if itself is None:
        return np.full(n_queries, -1, dtype=np.int64)
    own = read_whole_numbers(itself)
    if own.shape != (n_queries,) or own.dtype.kind not in "iu":
        raise ValueError(f"itself must be {n_queries} item numbers, one per query, -1 for none, got {shorten(itself)}")
    if own.size and not -1 <= own.min() <= own.max() < n_items:
        raise ValueError(f"itself has item {own.max()}, but items are numbered from 0 to {n_items - 1}")
    return own.astype(np.int64)


def read_groups(y: Any, group: Any) -> tuple[Array, Array]:
    """Grades of rows, and where the rows of each query begin."""
    grades = numbers("y", y, "one grade per row")
    if grades.ndim != 1 or not np.isfinite(grades).all():
        raise ValueError(f"y must be one finite grade per row, got {shorten(y)}")
    return grades, read_group_offsets(group, grades.size)


def read_group_offsets(group: Any, n_rows: int) -> Array:
    """Where the rows of each query begin, from the number of rows per query."""
    sizes = read_whole_numbers(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or sizes.min(initial=0) < 0:
        raise ValueError(f"group must be the number of rows per query, whole numbers from 0, got {shorten(group)}")
    if sizes.sum() != n_rows:
        raise ValueError(f"group sums to {sizes.sum()}, but there are {n_rows} rows; give the rows of every query")
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def read_query_sizes(group: Any, qid: Any, rows: Any) -> Any:
    """The number of rows per query: ``group`` as it is, or counted from one query id per row.

    >>> read_query_sizes(None, ["a", "a", "b"], range(3))
    array([2, 1])
    """
    if qid is None:
        return group
    if group is not None:
        raise ValueError("give either group (rows per query) or qid (a query id per row), not both")
    ids = even_table("qid", qid)
    if ids.ndim != 1 or not (ids.dtype.kind in "iuUS" or all(isinstance(name, str) for name in ids.tolist())):
        raise ValueError(f"qid must be one query id per row, whole numbers or strings, got {shorten(qid)}")
    n = rows.shape[0] if hasattr(rows, "shape") and rows.shape else len(rows) if has_length(rows) else ids.size
    if ids.size != n:
        raise ValueError(f"qid has {ids.size} ids, but there are {n} rows; give one id per row")
    starts = np.flatnonzero(np.concatenate([np.ones(min(n, 1), dtype=bool), ids[1:] != ids[:-1]]))
    names, times = np.unique(ids[starts], return_counts=True)
    if names.size != starts.size:
        apart = names[times.argmax()]
        raise ValueError(
            f"rows of query {shorten(apart.item())} must be adjacent; sort rows, grades and qid by np.argsort(qid)"
        )
    return np.diff(np.append(starts, n))


def read_gains(grades: Array, gain: str | None) -> Array | None:
    """The gain of every row as a whole number: the grade, or 2^grade − 1; None for no gain."""
    if gain is None:
        return None
    one_of("gain", gain, ("linear", "exponential"))
    most = MAX_GRADE if gain == "exponential" else MAX_GAIN
    wrong = np.flatnonzero((grades != np.round(grades)) | (grades < 0) | (grades > most))
    if wrong.size:
        raise ValueError(
            f"gain={gain!r} needs grades that are whole numbers from 0 to {most}, got {grades[wrong[0]]:g}; round them"
        )
    whole = grades.astype(np.int64)
    return whole if gain == "linear" else (np.int64(1) << whole) - 1


def tag_relevance(query_tags: Any, item_tags: Any, overlap: str = "jaccard") -> tuple[Callable[[slice], Array], Any]:
    """How much the tags of queries and items overlap: a function of a slice of queries, and the shape of the table.

    >>> rows, shape = tag_relevance([["sea", "sky"]], [["sky"], ["sea", "sky"], []])
    >>> rows(slice(0, 1)), shape
    (array([[0.5, 1. , 0. ]]), (1, 3))
    """
    one_of("overlap", overlap, ("jaccard", "count"))
    queries, items = _indicators(query_tags, item_tags)
    sizes = np.asarray(items.sum(axis=1)).ravel()

    def rows(block: slice) -> Array:
        own = queries[block]
        common = np.asarray((own @ items.T).todense(), dtype=np.float64)
        if overlap == "count":
            return common
        union = np.asarray(own.sum(axis=1)).ravel()[:, None] + sizes - common
        return np.asarray(common / np.maximum(union, 1.0))

    return rows, (queries.shape[0], items.shape[0])


BLOCK_BYTES = 1 << 17
"""Bytes of the lines of an svmlight file that are read together."""

MAX_NUMBERS = 1 << 28
"""Rows times features of an svmlight file: its table takes 2 GiB."""


def read_svmlight(path: Any, sizes: Any = None, max_bytes: Any = MAX_BYTES) -> tuple[Array, Array, Array]:
    """The rows of an svmlight file with query ids, or with the number of rows per query in ``sizes``."""
    target = file_path("path", path)
    if not target.is_file():
        raise FileNotFoundError(f"{shorten(str(target))} is not a file; check the path")
    room = whole_number("max_bytes", max_bytes, 1, 1 << 62)
    most = max(room // BYTES_PER_LINE, FEWEST)
    try:
        with reading(target), io.BufferedReader(GuardedStream(target, room, max_lines=most), 1 << 16) as stream:
            X, y, qid = _load_svmlight(stream)
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(f"{shorten(str(target))} is not an svmlight file: {shorten(str(error))}") from error
    if sizes is None:
        if qid.size != y.size or not qid.size:
            raise ValueError(f"{shorten(str(target))} has lines without qid:; give the rows per query as sizes=")
        try:
            group = read_query_sizes(None, qid, y)
        except ValueError as error:
            raise ValueError(f"{shorten(str(target))}: {error}") from error
    else:
        group = _read_sizes(sizes)
    if X.shape[0] * X.shape[1] > MAX_NUMBERS:
        raise ValueError(
            f"{shorten(str(target))} has {X.shape[0]} rows of {X.shape[1]} features, more than {MAX_NUMBERS} numbers; "
            "number the features from 1 without gaps, or split the file"
        )
    values = X.toarray()
    if not np.isfinite(values).all():
        raise ValueError(f"{shorten(str(target))} contains NaN or infinity; replace them by numbers")
    return values, y, group


def _load_svmlight(stream: Any) -> tuple[Any, Array, Array]:
    """Features, grades and query ids, block by block: scikit-learn copies all query ids for every line."""
    from sklearn.datasets import load_svmlight_file

    parts = [
        load_svmlight_file(io.BytesIO(b"".join(lines)), query_id=True, zero_based=True)
        for lines in iter(lambda: stream.readlines(BLOCK_BYTES), [])
    ]
    parts = parts or [load_svmlight_file(io.BytesIO(b""), query_id=True)]
    tables, grades, ids = zip(*parts, strict=True)
    width = max(table.shape[1] for table in tables)
    for table in tables:
        table.resize((table.shape[0], width))
    table = sparse.vstack(tables, format="csr")
    is_from_one = table.indices.size and table.indices.min() > 0
    return table[:, 1:] if is_from_one else table, np.concatenate(grades), np.concatenate(ids)


def _read_sizes(sizes: Any) -> Array:
    if not isinstance(sizes, str) and not hasattr(sizes, "__fspath__"):
        return read_whole_numbers(sizes)
    reader = TextReader(file_path("sizes", sizes))
    text = [word for _, line in reader.lines() for word in reader.split(line)]
    if not all(word.isdecimal() and len(word) < 18 for word in text):
        raise ValueError(f"{shorten(str(sizes))} must contain one whole number per query")
    return np.array([int(word) for word in text], dtype=np.int64)


def _indicators(query_tags: Any, item_tags: Any) -> tuple[Any, Any]:
    """Both sets of tags as sparse 0/1 matrices with the same columns."""
    tables = [tags for tags in (query_tags, item_tags) if hasattr(tags, "shape") and len(tags.shape) == 2]
    if len(tables) == 2:
        queries, items = (as_csr(tags) for tags in tables)
        if queries.shape[1] != items.shape[1]:
            raise ValueError(
                f"query_tags has {queries.shape[1]} columns and item_tags {items.shape[1]}; give both the same tags"
            )
        return tuple((matrix != 0).astype(np.int64).tocsr() for matrix in (queries, items))
    from sklearn.preprocessing import MultiLabelBinarizer

    lists = [_tag_lists(name, tags) for name, tags in (("query_tags", query_tags), ("item_tags", item_tags))]
    binarizer = MultiLabelBinarizer(sparse_output=True).fit([*lists[0], *lists[1]])
    return tuple(as_csr(binarizer.transform(tags)).astype(np.int64) for tags in lists)


def _tag_lists(name: str, tags: Any) -> list[list[str]]:
    is_listed = is_list(tags) and not isinstance(tags, str | bytes)
    listed: list[Any] = list(tags) if is_listed else [None]
    for i, entry in enumerate(listed):
        if isinstance(entry, str | bytes) or not is_list(entry):
            raise ValueError(f"{name}[{i}] must be a list of tags, got {shorten(entry)}; or give an indicator matrix")
    return [[str(tag) for tag in entry] for entry in listed]


def check_rows(similarity: Callable[[slice], Any]) -> Callable[[slice], Array]:
    """The same function, which refuses rows that are not finite numbers."""

    def rows(block: slice) -> Array:
        table = numbers("similarity", similarity(block), "a (queries, items) table of numbers")
        if table.ndim != 2:
            raise ValueError(f"similarity must be a (queries, items) table, got shape {table.shape}")
        if not np.isfinite(table).all():
            q, i = np.argwhere(~np.isfinite(table))[0]
            raise ValueError(f"similarity[{(block.start or 0) + q}, {i}] is {table[q, i]}; give finite numbers")
        return table

    return rows


def sample_items(
    relevance: Callable[[slice], Array],
    shape: tuple[int, int],
    counts: tuple[Any, Any],
    itself: Array,
    random_state: Any,
    least: float = -np.inf,
) -> Graded:
    """The best K items of each query, and L that are drawn from the less relevant ones."""
    n_top, n_others = whole_number("top", counts[0]), whole_number("others", counts[1])
    n, n_items = shape
    rng = random_numbers(random_state)
    parts: list[tuple[Array, Array, Array]] = []
    step = max(1, BLOCK_ENTRIES // max(n_items, 1))
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        values = np.array(relevance(block), dtype=np.float64)
        values[np.isnan(values)] = -np.inf
        own = itself[block]
        values[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
        above = np.where(values > least, values, -np.inf)
        best, items = _best(above, min(n_top, n_items))
        lowest = np.where(items >= 0, best, np.inf).min(axis=1, initial=np.inf)[:, None]
        is_other = (values < lowest) & (values > -np.inf)
        keys = np.where(is_other, rng.random_sample(values.shape), -np.inf)
        others = _best(keys, min(n_others, n_items))[1]
        both = np.hstack([items, others])
        grades = np.repeat([1, 0], [items.shape[1], others.shape[1]])
        has_both = (items >= 0).any(axis=1, keepdims=True) & (others >= 0).any(axis=1, keepdims=True)
        is_in = (both >= 0) & has_both
        parts.append((is_in.sum(axis=1), both[is_in], np.broadcast_to(grades, both.shape)[is_in]))
    empty = (np.zeros(0, dtype=np.int64),) * 3
    sizes, items, grades = (np.concatenate(column) for column in zip(*(parts or [empty]), strict=True))
    return Graded(np.concatenate([[0], np.cumsum(sizes)]), items, grades)


def _best(values: Array, k: int) -> tuple[Array, Array]:
    """The k highest values of each row and where they are, −inf and −1 where there are fewer."""
    best, items = np.full((len(values), k), -np.inf), np.full((len(values), k), -1, dtype=np.int64)
    if k and len(values):
        keep_best(values, 0, np.full(len(values), -1, dtype=np.int64), best, items)
    return best, items


def grade_all(table: Array, itself: Array) -> Graded:
    """Grades of all items that were judged, queries themselves left out."""
    judged = ~np.isnan(table)
    judged[np.flatnonzero(itself >= 0), itself[itself >= 0]] = False
    offsets = np.concatenate([[0], np.cumsum(judged.sum(axis=1))])
    return grade_within_queries(offsets, np.nonzero(judged)[1], table[judged])


def grade_within_queries(offsets: Array, items: Array, relevance: Array) -> Graded:
    """Relevances of listed items turned into grades 0, 1, … within each query."""
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    order = np.lexsort((relevance, owner))
    value, query = relevance[order], owner[order]
    rises = np.concatenate([[False], (value[1:] > value[:-1]) & (query[1:] == query[:-1])])
    steps = np.cumsum(rises)
    first = offsets[:-1][query] if query.size else query
    grades = np.empty(items.size, dtype=np.int64)
    grades[order] = steps - steps[first] if query.size else steps
    return Graded(offsets, np.asarray(items, dtype=np.int64), grades)

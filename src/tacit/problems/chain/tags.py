"""Tags of sequences as users write them: one per token, some of them missing."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.labels import find_labels, is_missing, kind_of_label, read_listed
from tacit.data.parameters import has_length, is_list, shorten
from tacit.data.ragged import Ragged


class Tags(NamedTuple):
    """The tags of all tokens in one array, and which of them are missing."""

    values: Array
    missing: Array


def read_tags(y: Any, lengths: Array) -> Tags:
    """One tag per token: lists of lists, arrays, strings, a Ragged, a pandas Series; −1, None and NaN are missing.

    >>> tags = read_tags([["a", None], ["b"]], np.array([2, 1]))
    >>> tags.values.tolist(), tags.missing.tolist()
    (['a', '', 'b'], [False, True, False])
    """
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    if isinstance(y, Ragged):
        sizes, flat = y.lengths, y.values
    else:
        if type(y).__module__.split(".")[0] == "pyarrow":
            y = y.to_pylist()
        if isinstance(y, str | bytes | dict) or not is_list(y):
            raise ValueError(f"y is {shorten(y)}; give one sequence of tags for each sequence of X")
        sequences = [_sequence(tags, i) for i, tags in enumerate(y)]
        sizes = np.array([len(tags) for tags in sequences], dtype=np.int64)
        flat = _flat(sequences)
    if len(sizes) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences, y has {len(sizes)}; give one sequence of tags for each")
    wrong = np.flatnonzero(sizes != lengths)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"X[{i}] has {lengths[i]} tokens, y[{i}] has {sizes[i]} tags; give one tag per token, -1 if unknown"
        )
    if flat.ndim != 1:
        raise ValueError(f"a tag is one number or string, y holds rows of shape {flat.shape[1:]}")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return _without_gaps(flat, offsets)


def read_tag_classes(classes: Any, tags: Tags, offsets: Array) -> Array:
    """The tags that there are: those the user lists (y must be among them), or all that occur in y, sorted."""
    known = tags.values[~tags.missing]
    if classes is None:
        if known.size == 0:
            raise ValueError(
                f"all {tags.missing.size} tags of y are missing (-1, None or NaN), so there is nothing to learn from; "
                "give some of them, of two kinds or more"
            )
        found = np.unique(known)
        if found.size < 2:
            raise ValueError(
                f"y holds only one tag, {shorten(found)}: there is nothing to tell apart; add sequences with another "
                "tag, or list all tags with classes=[...]"
            )
        return found
    listed = read_listed(classes, "tags")
    unknown = np.flatnonzero((find_labels(listed, tags.values) < 0) & ~tags.missing)
    if unknown.size:
        i, t = locate(offsets, unknown[0])
        raise ValueError(
            f"y[{i}][{t}] is {shorten(tags.values[unknown[0]].item())}, which is none of the tags "
            f"{shorten(listed.tolist())}; correct it, write -1 if it is unknown, or list it in classes=[...]"
        )
    return listed


def _sequence(tags: Any, i: int) -> Any:
    if isinstance(tags, str | bytes | dict) or not has_length(tags):
        raise ValueError(f"y[{i}] is {shorten(tags)}; a sequence has one tag per token: write a list of them")
    if isinstance(tags, np.ndarray) and tags.ndim != 1:
        raise ValueError(f"y[{i}] has shape {tags.shape}; a sequence has one tag per token, so it has one dimension")
    return tags


def _flat(sequences: list[Any]) -> Array:
    kinds = {tags.dtype.kind.replace("u", "i") if isinstance(tags, np.ndarray) else "" for tags in sequences}
    if len(kinds) == 1 and kinds <= set("iUS"):
        return np.concatenate(sequences)
    items = list(itertools.chain.from_iterable(sequences))
    flat = np.empty(len(items), dtype=object)
    for t, item in enumerate(items):  # an array of equal tuples would become two-dimensional
        flat[t] = item
    return flat


def _without_gaps(flat: Array, offsets: Array) -> Tags:
    """Numbers or strings throughout; the place of a missing tag holds any of them."""
    if flat.dtype == object and set(map(type, flat)) in ({str}, {int}):
        flat = np.array(flat.tolist())  # all strings, or all integers, which needs no look at each of them
    if flat.dtype.kind in "US":
        return Tags(flat, np.zeros(flat.size, dtype=bool))
    if flat.dtype.kind in "iu":
        return Tags(flat, flat == -1)
    values = list(flat)
    kinds = [kind_of_label(v) for v in values]
    gaps = [is_missing(v) or (kind == "number" and v == -1) for v, kind in zip(values, kinds, strict=True)]
    missing = np.array(gaps, dtype=bool)
    odd = [t for t, kind in enumerate(kinds) if not kind and not missing[t]]
    if odd:
        i, place = locate(offsets, odd[0])
        raise ValueError(
            f"y[{i}][{place}] is {shorten(values[odd[0]])}; tags are whole numbers or strings, one per token"
        )
    known = [t for t in range(len(values)) if not missing[t]]
    other = [t for t in known if kinds[t] != kinds[known[0]]]
    if other:
        i, place = locate(offsets, other[0])
        raise ValueError(
            f"y mixes kinds: y[{i}][{place}] is {shorten(values[other[0]])}, another tag is "
            f"{shorten(values[known[0]])}; use one kind of tag"
        )
    filler = {"text": "", "bytes": b""}.get(kinds[known[0]] if known else "", -1)
    filled = np.array([filler if gone else v for v, gone in zip(values, missing, strict=True)])
    if filled.dtype.kind == "f" and not (whole := (filled == np.round(filled)) & (np.abs(filled) < 2**53)).all():
        t = int(np.argmin(whole))
        i, place = locate(offsets, t)
        raise ValueError(f"y[{i}][{place}] is {shorten(values[t])}; tags are whole numbers or strings")
    if filled.dtype.kind not in "iufbUS":
        raise ValueError(f"tags are whole numbers or strings, got {shorten(values)}")
    return Tags(filled.astype(np.int64) if filled.dtype.kind == "f" else filled, missing)

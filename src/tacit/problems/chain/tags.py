"""Tags of sequences as users write them, one per token, some of them missing; and the hidden states below tags."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sized
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.labels import find_labels, is_missing, kind_of_label, read_listed
from tacit.data.parameters import has_length, is_list, list_entries, plain_array, shorten, whole_number
from tacit.data.ragged import Ragged

MAX_STATES = 4096
"""States of all tags together: inference takes their square per token."""


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
            raise ValueError(f"y must hold one sequence of tags per sequence of X, got {shorten(y)}")
        if isinstance(y, np.ndarray):
            y = plain_array(y, "y")
        sequences = [_sequence(tags, i) for i, tags in enumerate(y)]
        sizes = np.array([len(tags) for tags in sequences], dtype=np.int64)
        flat = _flat(sequences)
    if len(sizes) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences, y has {len(sizes)}; give one sequence of tags for each")
    wrong = np.flatnonzero(sizes != lengths)
    if wrong.size:
        i = int(wrong[0])
        sides = f"X[{i}] has {lengths[i]} tokens, y[{i}] has {sizes[i]} tags"
        raise ValueError(f"{sides}; give one tag per token, -1 if unknown")
    if flat.ndim != 1:
        raise ValueError(f"a tag must be one number or string, got rows of shape {flat.shape[1:]}")
    return _split_missing(flat, np.concatenate([[0], np.cumsum(sizes)]))


def read_tag_classes(classes: Any, tags: Tags, offsets: Array) -> Array:
    """All tags: those the user lists (y must be among them), or those that occur in y, sorted."""
    known = tags.values[~tags.missing]
    if classes is None:
        if known.size == 0:
            count = tags.missing.size
            raise ValueError(f"all {count} tags of y are missing (-1, None or NaN); give at least two different tags")
        found = np.unique(known)
        if found.size < 2:
            remedy = "add sequences with another tag, or list all tags with classes=[...]"
            raise ValueError(f"y has only one tag, {shorten(found)}; {remedy}")
        return found
    listed = read_listed(classes, "tags")
    unknown = np.flatnonzero((find_labels(listed, tags.values) < 0) & ~tags.missing)
    if unknown.size:
        i, t = locate(offsets, unknown[0])
        raise ValueError(
            f"y[{i}][{t}] is {shorten(tags.values[unknown[0]].item())}, which is not among the tags "
            f"{shorten(listed.tolist())}; correct it, write -1 if it is unknown, or list it in classes=[...]"
        )
    return listed


def _sequence(tags: Any, i: int) -> Any:
    if isinstance(tags, str | bytes | dict) or not has_length(tags):
        raise ValueError(f"y[{i}] must be a list with one tag per token, got {shorten(tags)}")
    if isinstance(tags, np.ndarray):
        tags = plain_array(tags, f"y[{i}]")
    if isinstance(tags, np.ndarray) and tags.ndim != 1:
        raise ValueError(f"y[{i}] must have one dimension, one tag per token, got the shape {tags.shape}")
    # the length of a table is that of its rows, but one goes through its columns
    return tags if isinstance(tags, np.ndarray | list | tuple) else list_entries(f"y[{i}]", tags)


def _flat(sequences: list[Any]) -> Array:
    kinds = {tags.dtype.kind.replace("u", "i") if isinstance(tags, np.ndarray) else "" for tags in sequences}
    if len(kinds) == 1 and kinds <= set("iUS"):
        return np.concatenate(sequences)
    items = list(itertools.chain.from_iterable(sequences))
    flat = np.empty(len(items), dtype=object)
    for t, item in enumerate(items):  # an array of equal tuples would become two-dimensional
        flat[t] = item
    return flat


def _split_missing(flat: Array, offsets: Array) -> Tags:
    """All numbers or all strings, with any value where a tag is missing; and which are missing."""
    if flat.dtype == object and set(map(type, flat)) in ({str}, {int}):
        flat = plain_array(flat.tolist(), "y")  # all strings, or all integers: each need not be checked
    if flat.dtype.kind in "US":
        return Tags(flat, np.zeros(flat.size, dtype=bool))
    if flat.dtype.kind in "iu":
        return Tags(flat, flat == -1)
    values = list(flat)
    kinds = [kind_of_label(v) for v in values]
    is_gap = [is_missing(v) or (kind == "number" and v == -1) for v, kind in zip(values, kinds, strict=True)]
    missing = np.array(is_gap, dtype=bool)
    odd = [t for t, kind in enumerate(kinds) if not kind and not missing[t]]
    if odd:
        i, t = locate(offsets, odd[0])
        raise ValueError(f"y[{i}][{t}] must be a whole number or a string, got {shorten(values[odd[0]])}")
    known = [t for t in range(len(values)) if not missing[t]]
    other = [t for t in known if kinds[t] != kinds[known[0]]]
    if other:
        i, t = locate(offsets, other[0])
        kinds_met = f"y[{i}][{t}] is {shorten(values[other[0]])}, another tag is {shorten(values[known[0]])}"
        raise ValueError(f"tags must be all numbers or all strings: {kinds_met}")
    filler = {"text": "", "bytes": b""}.get(kinds[known[0]] if known else "", -1)
    filled = np.array([filler if gone else v for v, gone in zip(values, missing, strict=True)])
    if filled.dtype.kind == "f" and not (whole := (filled == np.round(filled)) & (np.abs(filled) < 2**53)).all():
        first = int(np.argmin(whole))
        i, t = locate(offsets, first)
        raise ValueError(f"y[{i}][{t}] must be a whole number or a string, got {shorten(values[first])}")
    if filled.dtype.kind not in "iufbUS":
        raise ValueError(f"tags must be whole numbers or strings, got {shorten(values)}")
    return Tags(filled.astype(np.int64) if filled.dtype.kind == "f" else filled, missing)


class States:
    """The states of all tags in one row, those of the first tag first; with one state per tag, states are tags.

    What is known of a token, its evidence, is one integer: a state (below ``n``), a tag any of whose states is possible
    (``n`` plus the tag), or −1 for nothing.

    Parameters
    ----------
    counts : (K,) how many states each tag has

    >>> states = States(np.array([1, 2]))
    >>> states.tag_of.tolist(), states.evidence(np.array([0, 1, -1])).tolist(), states.possible[4].tolist()
    ([0, 1, 1], [0, 4, -1], [False, True, True])
    """

    def __init__(self, counts: Array) -> None:
        self.counts = np.asarray(counts, dtype=np.int64)
        self.n = int(self.counts.sum())
        self.n_tags = self.counts.size
        self.are_tags = self.n == self.n_tags
        self.tag_of = np.repeat(np.arange(self.n_tags), self.counts)
        self.first = np.cumsum(self.counts) - self.counts

    @cached_property
    def possible(self) -> Array:
        """``possible[evidence, state]``: whether a token with this evidence may be in this state."""
        of_tag = self.tag_of[None, :] == np.arange(self.n_tags)[:, None]
        return np.ascontiguousarray(np.vstack([np.eye(self.n, dtype=bool), of_tag]))

    def evidence(self, labels: Array, states: Array | None = None) -> Array:
        """What is known of every token, from its tag (−1 where missing) and its state (−1 where unknown)."""
        if self.are_tags:
            return labels
        only = (self.counts == 1)[labels]
        by_tag = np.where(labels < 0, -1, np.where(only, self.first[labels], self.n + labels))
        return by_tag if states is None else np.where(states >= 0, states, by_tag)

    def tag_sums(self, table: Array) -> Array:
        """Sums of the columns of the states of each tag."""
        return table if self.are_tags else np.add.reduceat(table, self.first, axis=1)


def read_counts(states: Any, classes: Array) -> Array:
    """How many states each tag has: one number for all, or a number by tag; 1 for a tag that is not named.

    >>> read_counts({"b": 3}, np.array(["a", "b"])).tolist()
    [1, 3]
    """
    if isinstance(states, Mapping):
        tags = classes.tolist()
        for tag in states:
            if not kind_of_label(tag) or tag not in tags:
                raise ValueError(f"states has the tag {shorten(tag)}, but the tags are {shorten(tags)}")
        counts = np.array([whole_number(f"states[{shorten(tag)}]", states.get(tag, 1)) for tag in tags])
    else:
        counts = np.full(len(classes), whole_number("states", states))
    if counts.sum() > MAX_STATES:
        raise ValueError(f"all tags together must have at most {MAX_STATES} states, got {counts.sum()}; lower states=")
    return counts


def check_states(states: Any) -> None:
    """Refuse numbers of states that are wrong for all data."""
    if not isinstance(states, Mapping):
        whole_number("states", states)
        return
    for tag, count in states.items():
        whole_number(f"states[{shorten(tag)}]", count)


def read_states(hidden: Any, states: States, labels: Array, offsets: Array) -> Array:
    """Known states as the user gives them: one whole number per token, −1 where unknown, in agreement with the tags."""
    try:
        given = read_tags(hidden, np.diff(offsets))
    except ValueError as error:
        raise ValueError(f"hidden must hold one state per token, -1 where it is unknown: {error}") from error
    if given.values.dtype.kind not in "iu":
        raise ValueError("hidden must hold one whole number per token: its state, -1 where it is unknown")
    found = np.where(given.missing, -1, given.values)
    inside = (found >= -1) & (found < states.n)
    tag = states.tag_of[np.where(inside & (found >= 0), found, 0)]
    wrong = np.flatnonzero(~inside | ((found >= 0) & (labels >= 0) & (tag != labels)))
    if wrong.size:
        i, t = locate(offsets, wrong[0])
        label = int(labels[wrong[0]])
        which = f"from 0 to {states.n - 1}"
        if 0 <= label < states.n_tags:
            first = int(states.first[label])
            which = f"of its tag, from {first} to {first + int(states.counts[label]) - 1}"
        raise ValueError(f"hidden[{i}][{t}] is {found[wrong[0]]}; give a state {which}, or -1")
    return found


def average_f1(y: Any, predicted: Any) -> float:
    """The mean over tags of F1, the harmonic mean of precision and recall: rare tags count as much as frequent ones.

    Tags that occur neither in ``y`` nor in ``predicted`` are left out, and so are tokens whose tag in ``y`` is missing.

    Parameters
    ----------
    y : the true tags of every sequence
    predicted : the tags that a model predicts, of the same lengths

    >>> round(average_f1([["N", "V", "N"], ["V"]], [["N", "N", "N"], ["V"]]), 3)
    0.733
    """
    if not is_list(predicted) or not all(is_list(tags) and isinstance(tags, Sized) for tags in predicted):
        raise ValueError(f"predicted must be a list with the tags of every sequence, got {shorten(predicted)}")
    lengths = predicted.lengths if isinstance(predicted, Ragged) else np.array([len(tags) for tags in predicted])
    true, found = read_tags(y, lengths), read_tags(predicted, lengths)
    known = ~true.missing
    if not known.any():
        raise ValueError("y has no known tag, so F1 is not defined; give the true tags of some tokens")
    if found.missing[known].any():
        raise ValueError("predicted has missing tags; give the tags that a model predicts, one per token")
    of_y, of_model = true.values[known], found.values[known]
    tags = np.unique(np.concatenate([of_y, of_model]))
    rows, columns = find_labels(tags, of_y), find_labels(tags, of_model)
    right = np.bincount(rows[rows == columns], minlength=tags.size)
    both = np.bincount(rows, minlength=tags.size) + np.bincount(columns, minlength=tags.size)
    return float(np.mean(2 * right / both))

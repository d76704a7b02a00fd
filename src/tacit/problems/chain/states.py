"""Hidden states below the tags of a chain: how many each tag has, and which of them a token may be in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.labels import kind_of_label
from tacit.data.parameters import shorten, whole_number
from tacit.problems.chain.tags import read_tags

MAX_STATES = 4096
"""States of all tags together: inference takes their square per token."""


class States:
    """The states of all tags in one row, those of the first tag first; with one state per tag, states are tags.

    What is known of a token is one integer: a state (below ``n``), a tag any of whose states is possible (``n`` plus
    the tag), or −1 for nothing.

    Parameters
    ----------
    counts : (K,) how many states each tag has

    >>> states = States(np.array([1, 2]))
    >>> states.tag_of.tolist(), states.known(np.array([0, 1, -1])).tolist(), states.possible[4].tolist()
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
        """``possible[known, state]``: whether a token of which this is known may be in this state."""
        of_tag = self.tag_of[None, :] == np.arange(self.n_tags)[:, None]
        return np.ascontiguousarray(np.vstack([np.eye(self.n, dtype=bool), of_tag]))

    def known(self, labels: Array, states: Array | None = None) -> Array:
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
                raise ValueError(f"states names the tag {shorten(tag)}, but the tags are {shorten(tags)}")
        counts = np.array([whole_number(f"states[{shorten(tag)}]", states.get(tag, 1)) for tag in tags])
    else:
        counts = np.full(len(classes), whole_number("states", states))
    if counts.sum() > MAX_STATES:
        raise ValueError(f"{counts.sum()} states in all are too many: inference takes their square per token; at most "
                         f"{MAX_STATES} are allowed, so lower states")  # fmt: skip
    return counts


def check_states(states: Any) -> None:
    """Refuse numbers of states that no data could make right."""
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
        raise ValueError(f"hidden holds one state per token, -1 where it is unknown: {error}") from error
    if given.values.dtype.kind not in "iu":
        raise ValueError("hidden holds one state per token: a whole number, -1 where it is unknown")
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

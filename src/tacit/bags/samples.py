"""Labelled bags on their way into the models: positions of labels, weights, folds, and the part that choices see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import is_whole
from tacit.data.ragged import Ragged

MAX_CHOICE = 1000
"""Bags that settings are chosen on, and weights of models: more are drawn from, so that choices take a fixed time."""

FOLDS = 5
"""Folds of the bags that settings are chosen on."""


@dataclass(frozen=True)
class Samples:
    """Bags with labels.

    Parameters
    ----------
    bags : the bags
    y : (n,) positions of the labels
    weights : (n,) with a mean of 1
    n_classes : how many there are
    hidden : known witnesses in the form of `tacit.problems.Bags`, or None
    seed : of all that is drawn
    """

    bags: Ragged
    y: Array
    weights: Array
    n_classes: int
    hidden: Any
    seed: int

    @cached_property
    def targets(self) -> Array:
        """(n, classes) with 1 at the true label and −1 elsewhere."""
        return np.where(self.y[:, None] == np.arange(self.n_classes), 1.0, -1.0)

    def take(self, index: Array) -> Samples:
        """Some of the bags."""
        hidden = None if self.hidden is None else self.hidden[index]
        return replace(self, bags=self.bags[index], y=self.y[index], weights=self.weights[index], hidden=hidden)

    def without_sets(self) -> Samples:
        """The same without witnesses of which only a set is known."""
        if self.hidden is None or self.hidden.dtype != object:
            return self
        known = [int(value) if is_whole(value) else -1 for value in self.hidden]
        return replace(self, hidden=np.array(known))

    def known_witnesses(self, background: int) -> Array:
        """(n,) the witnesses that are known of bags that are not background, −1 for others."""
        if self.hidden is None:
            return np.full(len(self.y), -1)
        return np.where(self.y == background, -1, self.without_sets().hidden)

    def trial(self) -> Samples:
        """At most `MAX_CHOICE` bags, classes in proportion but at least two of each."""
        return self.at_most(MAX_CHOICE)

    def at_most(self, most: int) -> Samples:
        """At most so many bags, drawn from all."""
        if len(self.y) <= most:
            return self
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(self.y))
        rank = np.empty(len(self.y))
        for label in range(self.n_classes):
            own = order[self.y[order] == label]
            rank[own] = np.where(np.arange(own.size) < 2, -1.0, (np.arange(own.size) + 0.5) / own.size)
        return self.take(np.sort(np.argsort(rank, kind="stable")[:most]))

    def folds(self) -> Iterator[tuple[Array, Array]]:
        """Stratified folds: positions for training and for testing."""
        rng = np.random.default_rng(self.seed + 1)
        counts = np.bincount(self.y, minlength=self.n_classes)
        n_folds = int(min(FOLDS, counts[counts > 0].min()))
        fold, start = np.empty(len(self.y), dtype=np.int64), 0
        for label in range(self.n_classes):
            own = np.flatnonzero(self.y == label)
            fold[own] = (rng.permutation(own.size) + start) % n_folds
            start += own.size
        for k in range(n_folds):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def draw(self, n: int, most: int) -> Array:
        """Positions of at most ``most`` of n rows, sorted."""
        if n <= most:
            return np.arange(n)
        return np.sort(np.random.default_rng(self.seed + 2).permutation(n)[:most])

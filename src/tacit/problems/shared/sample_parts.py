"""Some samples of an oracle without their rows, to be sent to where the rows are."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from tacit.oracle import EnumerableOracle

Listed = TypeVar("Listed", bound=EnumerableOracle)


def cut_samples(oracle: Listed, first: int, last: int) -> Listed:
    """A copy that knows of the samples from first to last (exclusive) alone: labels, losses, known hidden values.

    Its blocks are cut, and its codes are stored, as those of all samples. What holds features is not cut.
    """
    part: Any = copy.copy(oracle)
    whole: Any = oracle
    states = oracle.states(slice(first, last))
    part.offsets = oracle.offsets[first : last + 1] - oracle.offsets[first]
    part._sizes, part.n_samples = whole._sizes[first:last], last - first
    part._labels = None if whole._labels is None else whole._labels[first:last]
    part._hidden = whole._hidden[first:last]
    part._allowed = None if whole._allowed is None else whole._allowed[states]
    part._hidden_loss = None
    if whole._losses is not None:
        part._losses = part._checked(whole._losses.cut(states, slice(first, last)))
    part._whole = list(part._cut(slice(0, part.n_samples)))
    cut: Listed = part
    return cut

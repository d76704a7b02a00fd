"""Quality of tags: F1 by tag, averaged."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from tacit.data.labels import find_labels
from tacit.data.parameters import is_list, shorten
from tacit.data.ragged import Ragged
from tacit.problems.chain.tags import read_tags


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

"""Pairs of mentions as tables of indicators: what the problem `tacit.problems.Coreference` learns from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, locate
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged

FIRST_FEATURE = 2
"""Columns in front of the features: the later mention, and the earlier one."""

MAX_VALUE = 2**16 - 1
"""The largest number that a column holds: mentions of a document and values of a feature are counted up to here."""

RowMaker = Callable[[Array, Array], Array]
"""The feature columns of pairs (later, earlier) of one document; both are the same for "new"."""


class MentionPairs(Ragged):
    """One table of pairs per document, as `tacit.text.mentions.pairing` makes them.

    A row is a mention, an earlier mention that it may link to, and one value per template (0: nothing). The first row
    of a mention has the mention itself in both places, and stands for "it is new". Columns are uint16.

    Parameters
    ----------
    values, offsets : as in `tacit.Ragged`
    templates : the name of every feature column
    sizes : how many values each has: 1 to size
    makers : one function per document that gives the features of any pair, so that a pair which was pruned can be
        added in training; None where there is none
    """

    def __init__(
        self,
        values: Any,
        offsets: Any,
        templates: Sequence[str],
        sizes: Sequence[int],
        makers: Sequence[RowMaker] | None = None,
    ) -> None:
        super().__init__(values, offsets)
        self.templates = tuple(templates)
        self.sizes = tuple(int(size) for size in sizes)
        self.makers = None if makers is None else tuple(makers)

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        if not isinstance(part, Ragged) or part is self:
            return part
        key = key[0] if isinstance(key, tuple) else key
        chosen = np.arange(len(self))[key if isinstance(key, slice) else np.asarray(key)]
        makers = None if self.makers is None else [self.makers[i] for i in chosen.astype(np.int64)]
        return MentionPairs(part.values, part.offsets, self.templates, self.sizes, makers)

    def __repr__(self) -> str:
        return f"MentionPairs({len(self)} documents, {self.values.shape[0]} pairs, {len(self.templates)} templates)"


def read_pairs(X: Any) -> Ragged:
    """Check tables of pairs: whole numbers, every mention's rows together, "new" first, then earlier mentions.

    >>> read_pairs([[[0, 0, 1], [1, 1, 2], [1, 0, 3]]])
    Ragged(1 samples, 3–3 rows each; 3 × 3 uint16)
    """
    pairs = Ragged.of(X)
    if len(pairs) == 0:
        raise ValueError("no documents: X holds 0 samples, a minimum of 1 is required")
    values = pairs.values
    if sparse.issparse(values):
        raise TypeError("pairs of mentions are a table of whole numbers, got a sparse one; give X.toarray()")
    if values.ndim != 2 or values.shape[1] <= FIRST_FEATURE:
        raise ValueError(
            f"a pair is a later mention, an earlier one, and at least one feature, got rows of shape {values.shape[1:]}"
        )
    if values.dtype != np.uint16:
        if (
            values.dtype.kind not in "biuf"
            or not ((values >= 0) & (values <= MAX_VALUE) & (values == values // 1)).all()
        ):
            raise ValueError(f"pairs are tables of whole numbers from 0 to {MAX_VALUE}, got {shorten(values)}")
        pairs = pairs.with_values(values.astype(np.uint16))
    _check_order(pairs)
    return pairs


def _check_order(pairs: Ragged) -> None:
    """Refuse tables whose rows are not in the order that kernels rely on."""
    empty = np.flatnonzero(pairs.lengths == 0)
    if empty.size:
        raise ValueError(f"document {empty[0]} has no mentions; leave it out")
    later, earlier = pairs.values[:, 0].astype(np.int64), pairs.values[:, 1].astype(np.int64)
    begins = np.zeros(later.size, dtype=bool)
    begins[pairs.offsets[:-1]] = True
    before = np.roll(later, 1)
    is_new = later == earlier
    follows = np.where(
        is_new, later == np.where(begins, 0, before + 1), (later == before) & (earlier < later) & ~begins
    )
    wrong = np.flatnonzero(~follows)
    if not wrong.size:
        # a pair that stands twice would be two outputs with one meaning
        owner = np.cumsum(is_new)
        order = np.lexsort((earlier, owner))
        twice = (np.diff(owner[order]) == 0) & (np.diff(earlier[order]) == 0)
        wrong = order[1:][twice]
    if wrong.size:
        i, row = locate(pairs.offsets, int(wrong[0]))
        raise ValueError(
            f"row {row} of document {i} is the pair ({later[wrong[0]]}, {earlier[wrong[0]]}), which does not stand "
            "there: the rows of mention m are (m, m) for 'new' and then (m, e) once for every earlier mention e that "
            "it may link to; the mentions come in order, from 0"
        )

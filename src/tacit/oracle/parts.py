"""The base of oracles whose outputs have several parts: a tag per token, a link per mention, a label per region."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, check_offsets, locate, positions_of, smallest_integers, starts_of
from tacit.data.parameters import shorten
from tacit.oracle.capabilities import ScalesLoss
from tacit.oracle.contracts import TARGET, Assignment, Schema
from tacit.oracle.slack_search import LossLevels, search_slack


class Nouns(NamedTuple):
    """What errors call things: the problem, its samples, a part of an output, a label."""

    problem: str
    samples: str
    part: str
    label: str = "label"


class PartsOracle(ABC):
    """What oracles share whose codes have one integer per part, sample after sample, cut by ``code_offsets``.

    A subclass writes `predict`, `impute`, `score`, `loss`, `features` and what else of `tacit.oracle.Oracle` is not
    here. Its outputs cannot be listed, so slack rescaling is a search over multiples of the loss, see
    `tacit.oracle.slack_search`. Views are copies: see `_with`.

    Parameters
    ----------
    schema : classes and dimensions
    offsets : where the parts of each sample begin, and where the last end
    n_values : how many values an integer of a code may have
    labels : the true labels, one per part or (``labels_parts`` False) one per sample: −1 where missing, the number of
        classes for one that training never saw; None when predicting
    losses : of every output, as the subclass keeps them; None where there are none
    precision : what scores are computed in
    """

    nouns: ClassVar[Nouns]
    labels_parts: ClassVar[bool] = True
    completes_labels: bool = False
    slack_obstacle: str = ""
    """Why slack rescaling is impossible; empty where it is offered."""
    n_states: int
    block_cells = 1 << 18
    """Scores computed at a time: a table of this size stays in a core's cache while it is searched."""

    def __init__(
        self,
        schema: Schema,
        offsets: Array,
        n_values: int,
        *,
        labels: Array | None = None,
        losses: Any = None,
        precision: Any = np.float64,
    ) -> None:
        offsets = check_offsets(offsets, int(offsets[-1]), "the offsets of an oracle")
        self.classes = schema.classes
        self.n_labels = len(schema.classes)
        self.n_samples = offsets.size - 1
        self.n_params = schema.n_params
        self.offsets = offsets
        self.code_offsets: Array | None = offsets
        self._views = schema.views
        self._n_values = n_values
        self._code_type = smallest_integers(n_values)
        self._labels = labels
        self._losses = losses
        self._precision = np.dtype(precision)

    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        name = self.nouns.problem
        if rivals:
            raise ValueError(f"{name} lacks inference for rivals: its outputs cannot be listed; use rivals=False")
        if rescaling == "margin":
            return self._predict_augmented(w, rows)
        if rescaling != "slack":
            raise ValueError(f"rescaling must be 'margin' or 'slack', got {shorten(rescaling)}")
        if self.slack_obstacle:
            raise ValueError(f"{name} lacks slack rescaling: {self.slack_obstacle}; use margin rescaling")
        if target is None:
            raise ValueError("slack rescaling needs a target: give target=codes, for example from `impute`")
        return search_slack(cast(ScalesLoss, self), w, target, rows)

    @property
    def rescalings(self) -> tuple[str, ...]:
        return ("margin",) if self.slack_obstacle else ("margin", "slack")

    def predict_scaled(self, w: Array, factor: Array, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.ScalesLoss`."""
        return self._predict_augmented(w, rows, factor)

    @abstractmethod
    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`."""

    @abstractmethod
    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        """The best outputs by score plus loss, the loss of every row times its factor if there are any."""

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if code.shape != (self.offsets[-1],) or code.dtype.kind != "i" or (code < TARGET).any():
            return False
        own = np.add.reduceat(code == TARGET, self.offsets[:-1])  # a sample stands for its target as a whole or not
        if not bool(((own == 0) | (own == np.diff(self.offsets))).all()):
            return False
        rows = np.flatnonzero(own == 0)
        try:
            return not rows.size or self._has_outputs(code[positions_of(self.offsets, rows)], rows)
        except ValueError:
            return False

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        """Whether these rows have the outputs of a code; an error of `_read` says no, too."""
        self._read(code, rows)
        return True

    def exact(self) -> Self:
        double = np.dtype(np.float64)
        return self if self._precision == double else self._with(_precision=double)

    def _with(self, **attributes: Any) -> Self:
        """The same oracle with other values of some attributes."""
        view = copy.copy(self)
        vars(view).update(attributes)
        return view

    def _recut(self, offsets: Array, **attributes: Any) -> Self:
        """An oracle of other samples, cut by these offsets."""
        return self._with(n_samples=offsets.size - 1, offsets=offsets, code_offsets=offsets, **attributes)

    def _blocks(self, rows: Rows) -> Iterator[tuple[slice, slice, Rows, Array]]:
        """For oracles that search tables of scores: blocks of about `block_cells` of them. Slices of the answer and of
        the code, rows, and cuts."""
        starts = self._starts(rows)
        room = max(1, self.block_cells // self.n_states)
        first = 0 if rows is None else rows.indices(self.n_samples)[0] if isinstance(rows, slice) else None
        i, n = 0, starts.size - 1
        while i < n:
            stop = int(np.searchsorted(starts, starts[i] + room, side="right")) - 1
            stop = min(max(stop, i + 1), n)
            part = rows[i:stop] if first is None else slice(first + i, first + stop)  # type: ignore[index]
            yield slice(i, stop), slice(int(starts[i]), int(starts[stop])), part, starts[i : stop + 1] - starts[i]
            i = stop

    def _starts(self, rows: Rows) -> Array:
        """Where the samples begin in a code of these rows, and its length."""
        return starts_of(self.offsets, rows)

    def _positions(self, rows: Rows) -> Any:
        """The parts of these rows among those of all samples: a slice where they are consecutive, else an array."""
        return positions_of(self.offsets, rows)

    def _numbers(self, rows: Rows) -> Array:
        """The numbers of these rows among all samples."""
        return np.arange(self.n_samples)[slice(None) if rows is None else rows]

    def _read(self, code: Array, rows: Rows = None) -> Array:
        """A code of these rows as int64, checked: kernels go where it says."""
        code, length = np.asarray(code), int(self._starts(rows)[-1])
        nouns = self.nouns
        if code.shape != (length,) or (length and code.dtype.kind not in "iu"):
            raise ValueError(
                f"a code of shape {code.shape} and type {code.dtype} for {nouns.samples} of {length} {nouns.part}s; it "
                f"has one whole number per {nouns.part}"
            )
        if length and code.min() < 0:
            raise ValueError(f"code[{np.argmin(code)}] is {code.min()}: replace TARGET by the target's own code")
        if length and code.max() >= self._n_values:
            raise ValueError(
                f"code[{np.argmax(code)}] is {code.max()}, and a {nouns.part} has one of {self._n_values} values"
            )
        return code.astype(np.int64, copy=False)

    def _pick(self, is_first: Array, first: Array, second: Array, rows: Rows) -> Array:
        """The first code in the rows where that is so, the second elsewhere."""
        chosen = np.where(np.repeat(is_first, np.diff(self._starts(rows))), first, second)
        return np.asarray(chosen.astype(self._code_type, copy=False))

    def _true_labels(self, rows: Rows, unseen: bool = False) -> Array:
        """The true labels of these rows; where ``unseen``, labels that training never saw may be among them."""
        nouns, labels = self.nouns, self._labels
        if labels is None:
            raise ValueError(
                f"these {nouns.samples} were bound without {nouns.label}s: bind(X, y, ...) with y to impute or compare"
            )
        if self.labels_parts:
            found = labels[self._positions(rows)]
        else:
            found = labels if rows is None else labels[rows]
        if not unseen and (found >= self.n_labels).any():
            first = int(np.argmax(labels >= self.n_labels))
            where = "[{}][{}]".format(*locate(self.offsets, first)) if self.labels_parts else f"[{first}]"
            raise ValueError(
                f"y{where} is a {nouns.label} that training never saw; the {nouns.label}s are {self.classes.tolist()}"
            )
        return np.asarray(found)

    def _loss_table(self) -> Any:
        if self._losses is None:
            nouns = self.nouns
            raise ValueError(
                f"these {nouns.samples} were bound without {nouns.label}s, which a loss needs: bind with y"
            )
        return self._losses

"""How the answer of an oracle is joined from those for blocks of its rows: one table for threads and processes.

The result is the same to the bit for any ``n_jobs``. Rounding depends on the order of a sum, and the last bits of a
matrix product on its size. So the blocks depend on the data alone, never on how many workers share them; every block is
computed by the same calls; and sums of blocks are added in their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.data.arrays import Array, Rows, span
from tacit.oracle import CapabilityError
from tacit.oracle.capabilities import Expectations, KnownPart, Slacks

BLOCK_OPERATIONS = 6_000_000
"""Multiplications per block of rows, at least: about two milliseconds, thirty times the cost of a call."""

_block_operations = BLOCK_OPERATIONS

MAX_BLOCKS = 64
"""Blocks of rows at the most, as long as they have no more than `MAX_OPERATIONS`."""

MAX_OPERATIONS = 100_000_000
"""Multiplications per block at the most. Workers share a pass by blocks, and hundreds of them are for much data."""


@dataclass(frozen=True)
class Batch:
    """How one method that answers for many rows is cut into blocks and joined again.

    Parameters
    ----------
    join : makes the answer for all rows from the answers for consecutive blocks
    arguments : the names of positional arguments, in order
    codes : arguments that are codes of the rows
    per_row : arguments with one entry per row
    """

    join: Callable[[Sequence[Any]], Any]
    arguments: tuple[str, ...]
    codes: tuple[str, ...] = ()
    per_row: tuple[str, ...] = ()


def join_arrays(parts: Sequence[Array]) -> Array:
    """Answers with one entry per row, or per token."""
    return np.concatenate(parts)


def join_tuples(parts: Sequence[Any]) -> Any:
    """Named tuples of such arrays: assignments, marginals."""
    return type(parts[0])(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def add_in_order(parts: Sequence[Array]) -> Array:
    """Sums of features."""
    total = np.array(parts[0], dtype=np.float64)
    for part in parts[1:]:
        total += part
    return total


def join_expectations(parts: Sequence[Expectations]) -> Expectations:
    """Log-sums row by row, and one sum of features: of a block whose coefficients are all 0 there are none to add."""

    def joined(kind: str, join: Callable[[Sequence[Array]], Array]) -> Array | None:
        answers = [getattr(part, kind) for part in parts if getattr(part, kind) is not None]
        return join(answers) if answers else None

    free, label, truth = (joined(kind, join_arrays) for kind in ("free", "label", "truth"))
    return Expectations(free, label, truth, joined("features", add_in_order))


def join_slacks(parts: Sequence[Slacks]) -> Slacks:
    value, rival, features = zip(*parts, strict=True)
    return Slacks(join_arrays(value), join_arrays(rival), add_in_order(features))


def join_expected_losses(parts: Sequence[tuple[Array, Array | None]]) -> tuple[Array, Array | None]:
    sums = [features for _, features in parts if features is not None]
    return join_arrays([losses for losses, _ in parts]), add_in_order(sums) if sums else None


BATCHES: Mapping[str, Batch] = {
    "predict": Batch(join_tuples, ("w", "rows")),
    "impute": Batch(join_tuples, ("w", "rows", "prefer"), codes=("prefer",)),
    "augmented": Batch(join_tuples, ("w", "rows"), codes=("target",)),
    "score": Batch(join_arrays, ("w", "code", "rows"), codes=("code",)),
    "loss": Batch(join_arrays, ("code", "rows"), codes=("code",)),
    "features": Batch(add_in_order, ("code", "coef", "rows"), codes=("code",), per_row=("coef",)),
    "difference": Batch(add_in_order, ("code", "target", "coef", "rows"), codes=("code", "target"), per_row=("coef",)),
    "label_scores": Batch(join_arrays, ("w", "rows", "power")),
    "best_under": Batch(join_tuples, ("w", "labels", "rows"), per_row=("labels",)),
    "ranked": Batch(join_tuples, ("w", "code", "k", "rows"), codes=("code",)),
    "expectations": Batch(join_expectations, ("w", "rows"), per_row=("free", "label", "truth")),
    "hidden_posterior": Batch(join_arrays, ("w", "rows"), per_row=("labels",)),
    "tag_posterior": Batch(join_arrays, ("w", "rows")),
    "state_posterior": Batch(join_arrays, ("w", "rows")),
    "likeliest": Batch(join_arrays, ("w", "rows")),
    "output_posterior": Batch(join_arrays, ("w", "rows")),
    "expected_losses": Batch(join_expected_losses, ("w", "rows"), per_row=("coef",)),
    "renyi_scores": Batch(join_arrays, ("w", "alpha", "rows")),
    "renyi_weights": Batch(join_arrays, ("w", "alpha", "rows")),
    "renyi_slacks": Batch(join_slacks, ("w", "coef", "alpha", "rows"), per_row=("coef",)),
    "visit_cells": Batch(add_in_order, ("w", "visit", "rows")),
    "log_partition": Batch(join_arrays, ("w", "rows")),
    "marginals": Batch(join_tuples, ("w", "rows")),
    "best_outputs": Batch(join_tuples, ("w", "k", "rows")),
}
"""All methods that answer for many rows. An oracle that has others declares them in ``batches``, a mapping like
this."""

VIEWS = ("exact", "with_hidden", "with_loss", "measured_against")
"""Methods that return an oracle of the same samples, to be cut in the same way."""

WHOLE = (
    "accepts", "decode", "digest", "draw", "dual", "encode", "hidden_unknown", "joint_moves", "known_part", "probe",
    "proposals", "learn_online", "clusters", "regions", "sample_factors", "units", "known_labels", "labels_of",
    "in_user_order", "rule_out", "label_losses", "block_starts", "costs", "learn", "loss_rows",
    "news", "recipe", "split", "states",
    "losses_of", "spread", "posterior_slope",
)  # fmt: skip
"""Methods that are called once for all samples: they are cheap, draw from one stream of random numbers, or must go
through the samples one after the other."""


def batch_of(oracle: Any, name: str) -> Batch | None:
    """How a method is cut; None where it is called once for all samples; an error where that is not declared."""
    own: Mapping[str, Batch | None] = getattr(oracle, "batches", {})
    if name in own:
        return own[name]
    if name in BATCHES:
        return BATCHES[name]
    if name in WHOLE or not callable(getattr(oracle, name)):
        return None
    raise CapabilityError(
        f"{type(oracle).__name__}.{name} is not declared, so nobody knows how to share it among threads or processes; "
        f"say so in the oracle's class: batches = {{{name!r}: tacit.runtime.Batch(...)}}, or None in its place to call "
        "it once for all samples"
    )


class RowBlocks:
    """A call of a batch method, cut into blocks of rows.

    Parameters
    ----------
    oracle : whose method it is
    batch : how it is cut
    positional, named : the arguments of the call
    """

    def __init__(self, oracle: Any, batch: Batch, positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.batch = batch
        self.arguments = dict(zip(batch.arguments, positional, strict=False)) | dict(named)
        self.rows: Rows = self.arguments.get("rows")
        if self.rows is None or isinstance(self.rows, slice):
            self.first, last = span(self.rows or slice(None), oracle.n_samples)
            self.n = last - self.first
        else:
            self.first, self.n = 0, len(self.rows)
        self._offsets: Array | None = getattr(oracle, "code_offsets", None)

    def cut(self, cuts: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The arguments of the call for each block; ``cuts`` are places among the rows of the call."""
        code_cuts = self._code_places(cuts)
        for (a, b), (start, stop) in zip(pairwise(cuts), pairwise(code_cuts), strict=True):
            own = dict(self.arguments)
            consecutive = self.rows is None or isinstance(self.rows, slice)
            own["rows"] = slice(self.first + a, self.first + b) if consecutive else np.asarray(self.rows)[a:b]
            for name in self.batch.codes:
                if own.get(name) is not None:
                    own[name] = own[name][start:stop]
            for name in self.batch.per_row:
                if isinstance(own.get(name), np.ndarray) and own[name].ndim:
                    own[name] = own[name][a:b]
            yield own

    def indices(self) -> Array:
        """The samples of the call."""
        if self.rows is None or isinstance(self.rows, slice):
            return np.arange(self.first, self.first + self.n)
        return np.asarray(self.rows)

    def _code_places(self, cuts: Sequence[int]) -> Sequence[int]:
        if self._offsets is None:
            return cuts
        lengths = np.diff(self._offsets)
        if self.rows is not None:
            lengths = lengths[self.rows]
        return [int(place) for place in np.concatenate([[0], np.cumsum(lengths)])[list(cuts)]]


class Sharded(ABC):
    """An oracle whose batch methods are answered block by block; a subclass says by whom.

    What answers for many rows is in the table of this module; everything else goes to the oracle itself.
    """

    def __init__(self, oracle: Any) -> None:
        self.oracle = oracle
        self.n_samples: int = oracle.n_samples
        self.n_params: int = oracle.n_params

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "oracle":
            raise AttributeError(name)
        value = getattr(self.oracle, name)
        if name in VIEWS:
            return lambda *positional, **named: self._view(value(*positional, **named))
        if name == "known_part":
            return lambda: self._known_part(value())
        batch = batch_of(self.oracle, name)
        if batch is not None:
            value = value if self._is_whole() else partial(self._answer, name, batch)
            self.__dict__[name] = value  # asked for again and again, in every step of a solver
        return value

    def _is_whole(self) -> bool:
        """Whether all rows are one block, so that there is nothing to share."""
        return False

    def _known_part(self, part: KnownPart | None) -> KnownPart | None:
        """The known part, shared in the same way where it is known of the same samples."""
        return part._replace(oracle=self) if part is not None and part.oracle is self.oracle else part

    def _view(self, oracle: Any) -> Any:
        return self if oracle is self.oracle else self._wrap(oracle)

    @abstractmethod
    def _wrap(self, oracle: Any) -> Any:
        """Another oracle of the same samples, shared in the same way."""

    @abstractmethod
    def _answer(self, name: str, batch: Batch, *positional: Any, **named: Any) -> Any:
        """The answer of a batch method, joined from those for its blocks."""


@contextmanager
def smallest_blocks() -> Iterator[None]:
    """Blocks of one row or a few as long as this lasts: for tests on few samples, which would be one block."""
    global _block_operations
    before, _block_operations = _block_operations, 1
    try:
        yield
    finally:
        _block_operations = before


def block_cuts(oracle: Any, n_rows: int) -> list[int]:
    """Where the blocks of a call for so many rows begin, and where the last ends. It depends on the data alone."""
    share = n_rows / max(oracle.n_samples, 1)
    total = share * operations(oracle)
    n_blocks = max(int(min(max(min(total // _block_operations, MAX_BLOCKS), total // MAX_OPERATIONS), n_rows)), 1)
    return [n_rows * block // n_blocks for block in range(n_blocks + 1)]


def operations(oracle: Any) -> float:
    """Multiplications of one pass over all samples, roughly: what the oracle says, or one per weight and sample."""
    return float(getattr(oracle, "operations", oracle.n_samples * oracle.n_params))

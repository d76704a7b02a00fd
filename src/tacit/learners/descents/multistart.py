"""A fit of several starts, one after the other: the best is kept, and a checkpoint holds all of it.

A `Method` says how a start proceeds, a `DescentState` is its state. The types of a state's fields say how a checkpoint
keeps and checks them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, get_args, get_type_hints

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import shorten
from tacit.runtime import Status
from tacit.runtime.archive import record
from tacit.runtime.checkpoint import Checkpoint, stored_array, stored_number

MAX_STARTS = 100_000
"""The largest n_init: a fit keeps a record of each start."""


@record
class Run(NamedTuple):
    """One start of a fit: how it ended, and its history. Printed, it is a table of its iterations.

    >>> Run(18.6, Status.CONVERGED, [])
    Run: objective 18.6, converged after 0 iterations
    """

    objective: float
    status: Status
    history: list[Any]

    def __repr__(self) -> str:
        n = len(self.history)
        head = f"Run: objective {self.objective:.6g}, {self.status.value} after {n} iteration{'' if n == 1 else 's'}"
        names = [name for name in self.history[0]._fields if name not in ("is_in", "hidden")] if n else []
        lines = [tuple(_short(name, getattr(line, name)) for name in names) for line in self.history]
        return head + _table(tuple(name.replace("_", " ") for name in names), lines)


@record
class RunTable(list[Run]):
    """All starts of a fit, a list. Printed, it is a table of where they ended.

    >>> RunTable([Run(18.6, Status.CONVERGED, []), Run(23.1, Status.MAX_ITER, [])])
    2 starts, the lowest objective is that of start 1
    start  objective  status     iterations  seconds
        1       18.6  converged           0     0.00
        2       23.1  max_iter            0     0.00
    """

    _fields = ("runs",)

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        super().__init__(runs)

    @property
    def runs(self) -> list[Run]:
        """The same as a plain list: what a model file keeps."""
        return list(self)

    @property
    def best(self) -> Run:
        """The start with the lowest objective, the first of equals."""
        return min(self, key=lambda run: run.objective)

    def __repr__(self) -> str:
        if not self:
            return "0 starts"
        best = min(range(len(self)), key=lambda i: self[i].objective)
        head = f"{len(self)} start{'' if len(self) == 1 else 's'}, the lowest objective is that of start {best + 1}"
        lines = [
            (f"{i}", f"{run.objective:.6g}", run.status.value, f"{len(run.history)}", f"{_seconds(run.history):.2f}")
            for i, run in enumerate(self, 1)
        ]
        return head + _table(("start", "objective", "status", "iterations", "seconds"), lines)


def _short(name: str, value: float) -> str:
    return f"{value}" if isinstance(value, int) else f"{value:.2f}" if name == "seconds" else f"{value:.6g}"


def _seconds(history: Sequence[Any]) -> float:
    return history[-1].seconds if history else 0.0


def _table(names: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """Lines under their names, numbers aligned to the right and words to the left; empty without lines."""
    if not lines:
        return ""
    widths = [max(len(line[i]) for line in (names, *lines)) for i in range(len(names))]
    pads = [str.ljust if name == "status" else str.rjust for name in names]
    rows = [[pad(part, n) for pad, part, n in zip(pads, row, widths, strict=True)] for row in (names, *lines)]
    return "".join("\n" + "  ".join(row).rstrip() for row in rows)


# the state of a start


class Sizes(Protocol):
    """What stored arrays are checked against: an oracle."""

    n_samples: int
    n_params: int

    def accepts(self, code: Array) -> bool:
        """Whether a code is of these samples."""


Check = Callable[[str, Array, Sizes], None]


def _must(what: str, holds: Callable[[Array, Sizes], bool], may_be_empty: bool = False) -> Check:
    """The check of a stored array, and what it must do to pass."""

    def check(name: str, values: Array, sizes: Sizes) -> None:
        if not (may_be_empty and not values.size) and not holds(values, sizes):
            raise ValueError(f"{name} must {what.format(sizes=sizes)}, got {shorten(values)}")

    return check


def _is_weights(values: Array, sizes: Sizes) -> bool:
    return is_table(values, 1, "f") and values.dtype == np.float64 and values.size == sizes.n_params


def _is_code(values: Array, sizes: Sizes) -> bool:
    return sizes.accepts(values) and values.min() >= 0


_WEIGHTS, _CODES = "be {sizes.n_params} finite numbers in double precision", "hold outputs of these samples"

Weights = Annotated[Array, _must(_WEIGHTS, _is_weights)]
"""One number per weight of the model."""

Codes = Annotated[Array, _must(_CODES, _is_code)]
"""The code of an output for all samples. Kernels index by it: an invalid one would read outside of the data."""

OptionalWeights = Annotated[Array, _must(_WEIGHTS, _is_weights, may_be_empty=True)]
OptionalCodes = Annotated[Array, _must(_CODES, _is_code, may_be_empty=True)]
"""The same, or empty."""

Planes = Annotated[Array, _must(_CODES, lambda codes, sizes: codes.ndim == 2 and all(map(sizes.accepts, codes)))]
"""One code per plane."""

_MASK = "be a mask of {sizes.n_samples} samples"

Mask = Annotated[Array, _must(_MASK, lambda mask, sizes: is_table(mask, 1, "b") and mask.size == sizes.n_samples)]
"""One truth value per sample."""

Numbers = Annotated[
    Array, _must("be finite numbers", lambda values, _: values.dtype == np.float64 and bool(np.isfinite(values).all()))
]
"""Finite numbers of any shape."""

Words = Annotated[Array, _must("be a list of text", lambda words, _: words.dtype.kind == "U" and words.ndim == 1)]
"""A list of words."""


@dataclass(frozen=True)
class DescentState:
    """The state of a start: all that the rest of it depends on, so that a resumed one ends with the same bits.

    A subclass adds fields. Their types are ``int`` (from 0), ``float`` (not NaN), ``bool``, or one of the array types
    above.
    """

    objective: float = np.inf
    iteration: int = 0
    is_done: bool = False
    is_solved: bool = True  # whether the last convex task reached its gap, or the slope is small

    def as_result(self) -> Any:
        """The same without what only the next step needs."""
        return self


S = TypeVar("S", bound=DescentState)


@cache
def _field_types(kind: Any) -> dict[str, Any]:
    """The type of every field of a state: int, float, bool, or the check of an array."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: (get_args(hints[field.name]) or (hints[field.name],))[-1] for field in fields(kind)}


def restore_state(kind: Any, parts: Mapping[str, Any], sizes: Sizes) -> Any:
    """A state from its stored fields, refused unless each is what its type says."""
    values: dict[str, Any] = {}
    for name, check in _field_types(kind).items():
        value = parts.get(name)
        if not isinstance(value, np.ndarray):
            raise ValueError(f"{name} is missing")
        if check in (int, float, bool):
            least = 0 if check is int else -np.inf
            if value.dtype.kind not in {int: "iu", float: "f", bool: "b"}[check]:
                raise ValueError(f"{name} must be of type {check.__name__}, got {shorten(value)}")
            values[name] = check(stored_number(parts, name, least))
            continue
        if not value.ndim:
            raise ValueError(f"{name} must be an array, got {shorten(value)}")
        check(name, value, sizes)
        values[name] = value
    return kind(**values)


class Method(Generic[S]):
    """How a start proceeds: what stays the same in it. A step returns a new state and leaves the old one whole.

    A subclass names its `state` and the `line_type` of its history, a named tuple whose fields are those of the state
    of the same name, and ``seconds``.
    """

    state: ClassVar[type[Any]]
    line_type: ClassVar[Any]

    @property
    def sizes(self) -> Sizes:
        """What stored states are checked against; by default the method's ``oracle``."""
        return self.oracle  # type: ignore[attr-defined,no-any-return]

    def step(self, now: S) -> S:
        """The next state. If its ``iteration`` is the old one, nothing was learned, and the history gets no line."""
        raise NotImplementedError

    def better(self, best: S | None, now: S) -> S:
        """The result of a start that is cut short now, given that of one step before."""
        return now

    def check(self, state: S) -> None:
        """Refuse a stored state whose fields have the right types but do not fit each other."""

    def line(self, now: S, seconds: float) -> Any:
        """The line of the history for a state."""
        names = self.line_type._fields
        return self.line_type(*(seconds if name == "seconds" else getattr(now, name) for name in names))

    def line_arrays(self, now: S) -> Mapping[str, Array]:
        """What a checkpoint keeps of a line beside its numbers."""
        return {}

    def restore_line(self, numbers: Mapping[str, float], arrays: Mapping[str, Array], now: S) -> Any:
        """A line from its numbers and arrays; ``now`` is the present state."""
        return self.line_type(**numbers)


@dataclass(frozen=True)
class Record(Generic[S]):
    """The starts that ended and the best of them; the present one, its result if it were cut short, its history."""

    state: S
    seed: int
    history: tuple[Any, ...] = ()
    result: S | None = None
    runs: tuple[Run, ...] = ()
    best: S | None = None
    arrays: tuple[Mapping[str, Array], ...] = ()  # of all lines of all starts, for checkpoints

    @property
    def n_iterations(self) -> int:
        """Of all starts."""
        return sum(len(run.history) for run in self.runs) + len(self.history)

    def end_start(self, status: Status, following: S | None = None) -> Record[S]:
        """The record after the end of the present start; another one begins at ``following``, or none."""
        is_cut = status in (Status.MAX_ITER, Status.STOPPED, Status.INTERRUPTED)
        end = self.result if is_cut and self.result is not None else self.state
        return Record(
            self.state if following is None else following,
            self.seed,
            runs=(*self.runs, Run(end.objective, status, list(self.history))),
            best=end.as_result() if self.best is None or end.objective < self.best.objective else self.best,
            arrays=self.arrays,
        )


class Ended(NamedTuple):
    """A fit that ended: the state of the best start, all starts, and why it ended."""

    state: Any
    runs: RunTable
    status: Status
    n_iterations: int
    n_starts: int


class MultiStart(Generic[S]):
    """All starts of a fit, one after the other, as a `tacit.runtime.Process` over records.

    Parameters
    ----------
    method : how a start proceeds
    first : the first state of a start, given the seed of the fit and its number
    n_starts, max_iter : the number of starts, and the maximum number of steps per start
    checkpoint : where a record is kept, and read from if it is to be resumed
    """

    def __init__(
        self,
        method: Method[S],
        first: Callable[[int, int], S],
        n_starts: int,
        max_iter: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.method, self.first = method, first
        self.n_starts, self.max_iter, self.checkpoint = n_starts, max_iter, checkpoint
        self._clock = time.perf_counter()

    def begin(self, seed: int) -> Record[S]:
        """The first record of a fit, or the one that the checkpoint holds."""
        saved = None if self.checkpoint is None else self.checkpoint.read()
        if saved is None or self.checkpoint is None:
            return Record(self.first(seed, 0), seed)
        with self.checkpoint.restoring():
            return self.restore(saved)

    def step(self, then: Record[S]) -> Record[S]:
        status = self.status(then)
        if status is not None:
            start = len(then.runs) + 1
            following = self.first(then.seed, start) if start < self.n_starts else None
            self._clock = time.perf_counter()
            return then.end_start(status, following)
        now = self.method.step(then.state)
        if now.iteration == then.state.iteration:
            return replace(then, state=now)
        arrays = (*then.arrays, self.method.line_arrays(now)) if self.checkpoint is not None else ()
        line = self.method.line(now, time.perf_counter() - self._clock)
        result = self.method.better(then.result, now).as_result()
        return replace(then, state=now, history=(*then.history, line), result=result, arrays=arrays)

    def report(self, record: Record[S]) -> Any:
        return record.history[-1] if record.history else None

    def describe(self, record: Record[S]) -> tuple[int, str]:
        start = f"start {min(len(record.runs) + 1, self.n_starts)} of {self.n_starts}, " if self.n_starts > 1 else ""
        if not record.history:
            return record.n_iterations, start.rstrip(", ")
        line = record.history[-1]
        samples = f", {line.samples_in} samples in" if hasattr(line, "is_in") else ""
        return record.n_iterations, f"{start}objective {line.objective:.5g}{samples}"

    def verdict(self, record: Record[S]) -> Status | None:
        return Status.CONVERGED if len(record.runs) == self.n_starts else None

    def status(self, record: Record[S]) -> Status | None:
        """Why the present start ends; None while it goes on. It has at least one line of history."""
        if record.state.is_done and record.history:
            return Status.CONVERGED if record.state.is_solved else Status.STALLED
        return Status.MAX_ITER if len(record.history) >= self.max_iter else None

    def conclude(self, record: Record[S], status: Status) -> Ended:
        """The result of a fit. A start that was cut short counts with its result so far.

        The status is that of the best start, unless the fit was cut short.
        """
        is_cut = status in (Status.STOPPED, Status.INTERRUPTED)
        n_iterations = record.n_iterations
        if is_cut and record.history:
            record = record.end_start((self.status(record) if status is Status.INTERRUPTED else None) or status)
        if not record.runs:
            raise KeyboardInterrupt  # nothing was learned yet
        runs = RunTable(record.runs)
        return Ended(record.best, runs, status if is_cut else runs.best.status, n_iterations, self.n_starts)

    def snapshot(self, record: Record[S]) -> dict[str, Any]:
        histories = [*(run.history for run in record.runs), record.history]
        lines = [line for history in histories for line in history]
        states = {"now": record.state, "best": record.best, "result": record.result}
        names = list(_number_fields(self.method.line_type))
        return {
            **{f"{key}.{name}": value for key, state in states.items() if state for name, value in vars(state).items()},
            "seed": record.seed,
            "objectives": np.array([run.objective for run in record.runs]),
            "statuses": np.array([run.status.name for run in record.runs], dtype="U12"),
            "owners": np.repeat(np.arange(len(histories)), [len(history) for history in histories]),
            "lines": np.array([[getattr(line, name) for name in names] for line in lines], dtype=np.float64).reshape(
                len(lines), len(names)
            ),
            **{f"line.{name}": np.array([kept[name] for kept in record.arrays]) for name in (*record.arrays, {})[0]},
        }

    def restore(self, saved: Mapping[str, Any]) -> Record[S]:
        """The record that a snapshot was taken of; refused unless it fits these samples."""
        state, statuses = self._state(saved, "now."), saved["statuses"]
        if len(statuses) > self.n_starts or (len(statuses) and "best.objective" not in saved):
            raise ValueError(f"best is missing, or more than {self.n_starts} starts have ended: {len(statuses)}")
        kinds = _number_fields(self.method.line_type)
        names = [name.removeprefix("line.") for name in saved if name.startswith("line.")]
        kept = [{name: saved[f"line.{name}"][i] for name in names} for i in range(len(saved["owners"]))]
        if names and any(len(saved[f"line.{name}"]) != len(kept) for name in names):
            raise ValueError("each line of the history must have its arrays")
        histories: list[list[Any]] = [[] for _ in range(len(statuses) + 1)]
        for owner, numbers, arrays in zip(saved["owners"].tolist(), saved["lines"].tolist(), kept, strict=True):
            pairs = zip(kinds.items(), numbers, strict=True)
            line = self.method.restore_line({name: kind(value) for (name, kind), value in pairs}, arrays, state)
            histories[owner].append(line)
        objectives = stored_array(saved, "objectives", statuses.shape)
        ends = zip(objectives.tolist(), statuses.tolist(), histories, strict=False)
        self._clock = time.perf_counter() - _seconds(histories[-1])
        return Record(
            state,
            int(stored_number(saved, "seed", 0)),
            tuple(histories[-1]),
            self._state(saved, "result.") if "result.objective" in saved else None,
            tuple(Run(objective, Status[name], lines) for objective, name, lines in ends),
            self._state(saved, "best.") if "best.objective" in saved else None,
            tuple(kept),
        )

    def _state(self, saved: Mapping[str, Any], prefix: str) -> S:
        parts = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
        state: S = restore_state(self.method.state, parts, self.method.sizes)
        self.method.check(state)
        return state


@cache
def _number_fields(line_type: Any) -> dict[str, Any]:
    """The fields of a line that are numbers, with their types."""
    return {name: kind for name, kind in get_type_hints(line_type).items() if kind in (int, float)}


def warn_unless_converged(
    learner: Any, ended: Ended, stalled: str = "", steps: str = "iterations", scale: str = ""
) -> None:
    """Warn of a fit that did not converge, and say what to do; ``stalled`` is for those that can stall, ``scale`` says
    which feature is out of scale, if any."""
    in_starts = f" in {len(ended.runs)} of {ended.n_starts} starts" if ended.n_starts > 1 else ""
    last = f"objective {ended.runs.best.objective:.6g} after {ended.n_iterations} {steps}{in_starts}"
    cause, _, remedy = stalled.partition("; ")
    advice = {
        Status.MAX_ITER: f"not converged: {last}; {scale or 'raise max_iter or tol'}",
        Status.STALLED: f"{cause}: {last}; {scale or remedy}",
        Status.STOPPED: f"stopped by a callback: {last}",
        Status.INTERRUPTED: f"interrupted: {last}; the best model so far is kept",
    }.get(ended.status)
    if advice is not None:
        warnings.warn(f"{type(learner).__name__}: {advice}", ConvergenceWarning, stacklevel=3)

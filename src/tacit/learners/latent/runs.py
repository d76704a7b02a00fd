"""A fit of several runs: the present one, the best so far, and what a checkpoint keeps of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.data.arrays import Array, narrow
from tacit.learners.fitted_attributes import check_position
from tacit.learners.latent.descent import Iteration, Position
from tacit.runtime import Status
from tacit.runtime.checkpoint import stored, stored_number


class Run(NamedTuple):
    """One start of a latent SVM: how it ended, and its history. Printed, it is a table of its iterations.

    >>> Run(18.6, Status.CONVERGED, [])
    Run: objective 18.6, converged after 0 iterations
    """

    objective: float
    status: Status
    history: list[Iteration]

    def __repr__(self) -> str:
        n = len(self.history)
        head = f"Run: objective {self.objective:.6g}, {self.status.value} after {n} iteration{'' if n == 1 else 's'}"
        names = [name for name in self.history[0]._fields if name not in ("is_in", "hidden")] if n else []
        lines = [tuple(_short(name, getattr(line, name)) for name in names) for line in self.history]
        return head + _table(tuple(name.replace("_", " ") for name in names), lines)


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

    def __repr__(self) -> str:
        if not self:
            return "0 starts"
        best = min(range(len(self)), key=lambda i: self[i].objective)
        head = f"{len(self)} start{'' if len(self) == 1 else 's'}, the lowest objective is that of start {best + 1}"
        lines = [
            (f"{i}", f"{run.objective:.6g}", run.status.value, f"{len(run.history)}", f"{_seconds(run):.2f}")
            for i, run in enumerate(self, 1)
        ]
        return head + _table(("start", "objective", "status", "iterations", "seconds"), lines)


def _short(name: str, value: float) -> str:
    return f"{value}" if isinstance(value, int) else f"{value:.2f}" if name == "seconds" else f"{value:.6g}"


def _seconds(run: Run) -> float:
    return run.history[-1].seconds if run.history else 0.0


def _table(names: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """Lines under their names, numbers to the right and words to the left; nothing where there are no lines."""
    if not lines:
        return ""
    widths = [max(len(line[i]) for line in (names, *lines)) for i in range(len(names))]
    is_word = [name == "status" for name in names]
    rows = [
        "  ".join(
            part.ljust(width) if word else part.rjust(width)
            for part, width, word in zip(row, widths, is_word, strict=True)
        )
        for row in (names, *lines)
    ]
    return "\n" + "\n".join(row.rstrip() for row in rows)


class RunProcedure(Protocol):
    """What a run executes: a `Descent`, or rounds of descents."""

    def of_run(self, start: int, seed: int) -> RunProcedure:
        """The same for another run."""

    def step(self, now: Any) -> Any:
        """The next position."""

    def better(self, best: Any, now: Any) -> Any:
        """The result of a run that is cut short now."""

    def line(self, now: Any, seconds: float) -> Iteration:
        """The line of the history for a position."""

    def restored(self, parts: dict[str, Any]) -> Any:
        """A position from its stored parts."""


@dataclass(frozen=True)
class Record:
    """The runs that ended and the best of them, the present run, its best position and its history.

    While a pace is on, the objective may rise: a run that is cut short gives its lowest position, not its last.
    """

    position: Position
    seed: int
    history: tuple[Iteration, ...] = ()
    lowest: Position | None = None
    runs: tuple[Run, ...] = ()
    best: Position | None = None
    targets: tuple[Array, ...] = ()  # of all iterations of all runs, to restore the hidden values of their history

    @property
    def n_iterations(self) -> int:
        """Of all runs."""
        return sum(len(run.history) for run in self.runs) + len(self.history)

    def ended(self, status: Status, following: Position | None = None) -> Record:
        """The present run has ended; another one starts at ``following``, or none."""
        is_cut = status in (Status.MAX_ITER, Status.STOPPED, Status.INTERRUPTED)
        end = self.lowest if is_cut and self.lowest is not None else self.position
        is_better = self.best is None or end.objective < self.best.objective
        return Record(
            position=self.position if following is None else following,
            seed=self.seed,
            runs=(*self.runs, Run(end.objective, status, list(self.history))),
            best=_without_planes(end) if is_better else self.best,
            targets=self.targets,
        )


class Runs:
    """All starts of a fit, one after the other, as a `tacit.runtime.Process` over records.

    Parameters
    ----------
    procedure : what a run executes, a `RunProcedure`
    first : makes the first position of a run, given its procedure
    n_starts, max_iter : the number of runs, and of outer iterations per run at the most
    keeps_targets : whether targets are kept for snapshots
    """

    def __init__(
        self, procedure: Any, first: Callable[[Any], Position], n_starts: int, max_iter: int, keeps_targets: bool
    ) -> None:
        self.procedure = procedure
        self.first = first
        self.n_starts, self.max_iter = n_starts, max_iter
        self.keeps_targets = keeps_targets
        self._clock = time.perf_counter()

    def begin(self, seed: int, saved: Mapping[str, Any] | None = None) -> Record:
        """The first run at its start, or where a snapshot was taken."""
        return Record(self.first(self.procedure.of_run(0, seed)), seed) if saved is None else self._restored(saved)

    def step(self, record: Record) -> Record:
        status = self.status(record)
        if status is None:
            return self._advanced(record)
        start = len(record.runs) + 1
        following = self.first(self.procedure.of_run(start, record.seed)) if start < self.n_starts else None
        self._clock = time.perf_counter()
        return record.ended(status, following)

    def report(self, record: Record) -> Iteration | None:
        return record.history[-1] if record.history else None

    def describe(self, record: Record) -> tuple[int, str]:
        start = f"start {min(len(record.runs) + 1, self.n_starts)} of {self.n_starts}, " if self.n_starts > 1 else ""
        if not record.history:
            return record.n_iterations, start.rstrip(", ")
        line = record.history[-1]
        return record.n_iterations, f"{start}objective {line.objective:.5g}, {line.samples_in} samples in"

    def verdict(self, record: Record) -> Status | None:
        return Status.CONVERGED if len(record.runs) == self.n_starts else None

    def status(self, record: Record) -> Status | None:
        """Why the present run ends; None while it goes on."""
        if record.position.is_done:
            return Status.CONVERGED if record.position.is_solved else Status.STALLED
        return Status.MAX_ITER if len(record.history) >= self.max_iter else None

    def snapshot(self, record: Record) -> dict[str, Any]:
        histories = [*(run.history for run in record.runs), record.history]
        lines = [line for history in histories for line in history]
        parts: dict[str, Any] = {}
        for prefix, position in (("now.", record.position), ("best.", record.best), ("lowest.", record.lowest)):
            if position is not None:
                parts |= {prefix + name: value for name, value in vars(position).items()}
        n = record.position.is_in.size
        return {
            **parts,
            "seed": record.seed,
            "objectives": np.array([run.objective for run in record.runs]),
            "statuses": np.array([run.status.name for run in record.runs], dtype="U12"),
            "owners": np.repeat(np.arange(len(histories)), [len(history) for history in histories]),
            "lines": np.array([line[:-2] for line in lines], dtype=np.float64).reshape(
                len(lines), len(Iteration._fields) - 2
            ),
            "is_in": np.packbits(np.array([line.is_in for line in lines], dtype=bool).reshape(-1, n), axis=1),
            "targets": np.array(record.targets),
        }

    def _advanced(self, then: Record) -> Record:
        procedure = self.procedure.of_run(len(then.runs), then.seed)
        now = procedure.step(then.position)
        line = procedure.line(now, time.perf_counter() - self._clock)
        if line.is_in.all() and then.history and then.history[-1].is_in.all():
            line = line._replace(is_in=then.history[-1].is_in)  # one mask for many lines
        return replace(
            then,
            position=now,
            history=(*then.history, line),
            lowest=_without_planes(procedure.better(then.lowest, now)),
            targets=(*then.targets, narrow(now.target)) if self.keeps_targets else then.targets,
        )

    def _restored(self, saved: Mapping[str, Any]) -> Record:
        position = self._position(saved, "now.")
        if len(saved["statuses"]) and "best.w" not in saved:
            raise ValueError("runs have ended, and the best of them is missing")
        histories: list[list[Iteration]] = [[] for _ in range(len(saved["statuses"]) + 1)]
        masks = np.unpackbits(saved["is_in"], axis=1, count=position.is_in.size).astype(bool)
        for owner, numbers, is_in, target in zip(saved["owners"], saved["lines"], masks, saved["targets"], strict=True):
            histories[owner].append(self._line(position, numbers, is_in, target))
        objectives = stored(saved, "objectives", saved["statuses"].shape)
        ends = zip(objectives.tolist(), saved["statuses"].tolist(), histories, strict=False)
        self._clock = time.perf_counter() - (histories[-1][-1].seconds if histories[-1] else 0.0)
        return Record(
            position=position,
            seed=int(stored_number(saved, "seed", 0)),
            history=tuple(histories[-1]),
            lowest=self._position(saved, "lowest.") if "lowest.w" in saved else None,
            runs=tuple(Run(objective, Status[name], lines) for objective, name, lines in ends),
            best=self._position(saved, "best.") if "best.w" in saved else None,
            targets=tuple(saved["targets"]),
        )

    def _position(self, saved: Mapping[str, Any], prefix: str) -> Position:
        parts = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
        position: Position = self.procedure.restored(
            {name: value if value.ndim else value.item() for name, value in parts.items()}
        )
        check_position(position, parts, getattr(self.procedure, "descent", self.procedure).oracle)
        return position

    def _line(self, like: Position, numbers: Array, is_in: Array, target: Array) -> Iteration:
        i, seconds, objective, gap, changed, _ = numbers.tolist()
        then = replace(
            like,
            target=target.astype(like.target.dtype),
            is_in=is_in,
            objective=objective,
            gap=gap,
            changed=int(changed),
            iteration=int(i),
        )
        line: Iteration = self.procedure.line(then, seconds)
        return line


def _without_planes(position: Position) -> Position:
    """The same position without its planes, which only the next step needs."""
    return replace(position, planes=position.planes[:0])

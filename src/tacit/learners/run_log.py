"""Where a fit of several runs is, what it has seen, and how that is kept on disk."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import Array, narrow
from tacit.learners.cccp import Descent, Iteration, Position
from tacit.learners.loaded_facts import check_position
from tacit.solvers import Status
from tacit.solvers.checkpoint import Checkpoint, stored, stored_number


class Run(NamedTuple):
    """One start of a latent SVM: how it ended, and its history."""

    objective: float
    status: Status
    history: list[Iteration]


@dataclass(frozen=True)
class Record:
    """The runs that ended and the best of them, the present run, its best position and its history.

    While a pace is on, the objective may rise: a run that is cut short gives its lowest position, not its last.
    """

    position: Position
    history: tuple[Iteration, ...] = ()
    lowest: Position | None = None
    runs: tuple[Run, ...] = ()
    best: Position | None = None
    targets: tuple[Array, ...] = ()  # of every iteration of every run, to know their hidden values again

    @property
    def n_iterations(self) -> int:
        """Of all runs."""
        return sum(len(run.history) for run in self.runs) + len(self.history)


class RunLog:
    """Takes the steps of a fit and remembers them. All that changes is one record, replaced as a whole: an interrupted
    step leaves the one before."""

    def __init__(self, descent: Descent, checkpoint: Checkpoint | None) -> None:
        self._descent = descent
        self._checkpoint = checkpoint
        self._clock = time.perf_counter()
        self.record: Record

    @property
    def descent(self) -> Descent:
        """That of the present start."""
        return replace(self._descent, start=self.start)

    @property
    def start(self) -> int:
        """The number of the present run."""
        return len(self.record.runs)

    @property
    def seconds(self) -> float:
        """Of the present run."""
        return time.perf_counter() - self._clock

    def open(self, position: Position) -> None:
        """The first run begins."""
        self.record = Record(position)
        self._clock = time.perf_counter()

    def advance(self) -> Iteration:
        then = self.record
        now = self.descent.step(then.position)
        line = self.descent.line(now, self.seconds)
        if line.is_in.all() and then.history and then.history[-1].is_in.all():
            line = line._replace(is_in=then.history[-1].is_in)  # one mask for many lines
        self.record = replace(
            then,
            position=now,
            history=(*then.history, line),
            lowest=_bare(self.descent.better(then.lowest, now)),
            targets=then.targets if self._checkpoint is None else (*then.targets, narrow(now.target)),
        )
        return line

    def turn(self, status: Status, start: Position | None = None) -> None:
        """The present run has ended; another one starts, or none."""
        then = self.record
        is_cut = status in (Status.MAX_ITER, Status.STOPPED, Status.INTERRUPTED)
        end = then.lowest if is_cut and then.lowest is not None else then.position
        is_better = then.best is None or end.objective < then.best.objective
        self.record = Record(
            position=then.position if start is None else start,
            runs=(*then.runs, Run(end.objective, status, list(then.history))),
            best=_bare(end) if is_better else then.best,
            targets=then.targets,
        )
        self._clock = time.perf_counter()

    def write(self) -> None:
        """Keep the record in the checkpoint, if there is one."""
        if self._checkpoint is not None:
            self._checkpoint.write(self._snapshot())

    def resume(self) -> bool:
        """Go back to where the checkpoint is; False if there is none."""
        saved = None if self._checkpoint is None else self._checkpoint.read()
        if saved is None or self._checkpoint is None:
            return False
        with self._checkpoint.restoring():
            self._restore(saved)
        return True

    def _restore(self, saved: dict[str, Any]) -> None:
        self._descent = replace(self._descent, seed=int(stored_number(saved, "seed", 0)))
        position = self._position(saved, "now.")
        histories: list[list[Iteration]] = [[] for _ in range(len(saved["statuses"]) + 1)]
        masks = np.unpackbits(saved["is_in"], axis=1, count=position.is_in.size).astype(bool)
        for owner, numbers, is_in, target in zip(saved["owners"], saved["lines"], masks, saved["targets"], strict=True):
            histories[owner].append(self._line(position, numbers, is_in, target))
        objectives = stored(saved, "objectives", saved["statuses"].shape)
        ends = zip(objectives.tolist(), saved["statuses"].tolist(), histories, strict=False)
        self.record = Record(
            position=position,
            history=tuple(histories[-1]),
            lowest=self._position(saved, "lowest.") if "lowest.w" in saved else None,
            runs=tuple(Run(objective, Status[name], lines) for objective, name, lines in ends),
            best=self._position(saved, "best.") if "best.w" in saved else None,
            targets=tuple(saved["targets"]),
        )
        self._clock = time.perf_counter() - (histories[-1][-1].seconds if histories[-1] else 0.0)

    def _snapshot(self) -> dict[str, Any]:
        record = self.record
        histories = [*(run.history for run in record.runs), record.history]
        lines = [line for history in histories for line in history]
        parts: dict[str, Any] = {}
        for prefix, position in (("now.", record.position), ("best.", record.best), ("lowest.", record.lowest)):
            if position is not None:
                parts |= {prefix + name: value for name, value in vars(position).items()}
        n = record.position.is_in.size
        return {
            **parts,
            "seed": self._descent.seed,
            "objectives": np.array([run.objective for run in record.runs]),
            "statuses": np.array([run.status.name for run in record.runs], dtype="U12"),
            "owners": np.repeat(np.arange(len(histories)), [len(history) for history in histories]),
            "lines": np.array([line[:-2] for line in lines], dtype=np.float64).reshape(
                len(lines), len(Iteration._fields) - 2
            ),
            "is_in": np.packbits(np.array([line.is_in for line in lines], dtype=bool).reshape(-1, n), axis=1),
            "targets": np.array(record.targets),
        }

    def _position(self, saved: dict[str, Any], prefix: str) -> Position:
        parts = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
        position = self._descent.restored({name: v if v.ndim else v.item() for name, v in parts.items()})
        check_position(position, parts, self._descent.oracle)
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
        return self._descent.line(then, seconds)


def _bare(position: Position) -> Position:
    """Without its planes, which only the next step needs."""
    return replace(position, planes=position.planes[:0])

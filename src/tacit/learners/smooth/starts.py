"""A fit of several starts, each a descent by gradients: the best is kept, and a checkpoint holds all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.latent.runs import Run
from tacit.learners.smooth.places import Method, Place, SmoothStep
from tacit.runtime import Progress, Status, run
from tacit.runtime.checkpoint import Checkpoint, stored, stored_number

_NUMBERS = ("objective", "slope", "iteration", "evaluations", "samples_in", "is_done", "is_solved")


@dataclass(frozen=True)
class Record:
    """The starts that ended and the best of them, and the present one with its history."""

    place: Place
    seed: int
    history: tuple[SmoothStep, ...] = ()
    runs: tuple[Run, ...] = ()
    best: Place | None = None

    @property
    def n_iterations(self) -> int:
        """Of all starts."""
        return sum(len(run.history) for run in self.runs) + len(self.history)

    def ended(self, status: Status, following: Place | None = None) -> Record:
        """The present start has ended; another one begins at ``following``, or none."""
        is_better = self.best is None or self.place.objective < self.best.objective
        return Record(
            self.place if following is None else following,
            self.seed,
            runs=(*self.runs, Run(self.place.objective, status, list(self.history))),  # type: ignore[arg-type]
            best=self.place if is_better else self.best,
        )


class Starts:
    """All starts of a fit, one after the other, as a `tacit.runtime.Process` over records.

    Parameters
    ----------
    method : how a start descends
    first : the weights that a start begins with, given its number and the seed of the fit
    n_starts, max_iter : the number of starts, and of steps per start at the most
    """

    def __init__(self, method: Method, first: Callable[[int, int], Array], n_starts: int, max_iter: int) -> None:
        self.method, self.first = method, first
        self.n_starts, self.max_iter = n_starts, max_iter
        self._clock = time.perf_counter()

    def begin(self, seed: int, saved: Mapping[str, Any] | None = None) -> Record:
        """The first start, or where a snapshot was taken."""
        return Record(self._begun(0, seed), seed) if saved is None else self._restored(saved)

    def _begun(self, start: int, seed: int) -> Place:
        return self.method.begin(self.first(start, seed))

    def step(self, record: Record) -> Record:
        status = self.status(record)
        if status is None:
            now = self.method.step(record.place)
            line = now.line(time.perf_counter() - self._clock)
            return replace(record, place=now, history=(*record.history, line))
        start = len(record.runs) + 1
        following = self._begun(start, record.seed) if start < self.n_starts else None
        self._clock = time.perf_counter()
        return record.ended(status, following)

    def report(self, record: Record) -> SmoothStep | None:
        return record.history[-1] if record.history else None

    def describe(self, record: Record) -> tuple[int, str]:
        start = f"start {min(len(record.runs) + 1, self.n_starts)} of {self.n_starts}, " if self.n_starts > 1 else ""
        return record.n_iterations, f"{start}objective {record.place.objective:.5g}"

    def verdict(self, record: Record) -> Status | None:
        return Status.CONVERGED if len(record.runs) == self.n_starts else None

    def status(self, record: Record) -> Status | None:
        """Why the present start ends; None while it goes on. It has one line of history at the least."""
        if record.place.is_done and record.history:
            return Status.CONVERGED if record.place.is_solved else Status.STALLED
        return Status.MAX_ITER if len(record.history) >= self.max_iter else None

    def snapshot(self, record: Record) -> dict[str, Any]:
        histories = [run.history for run in record.runs] + [list(record.history)]
        lines = [line for history in histories for line in history]
        kept = {"now": record.place} | ({} if record.best is None else {"best": record.best})
        return {
            **{f"{name}.{part}": value for name, place in kept.items() for part, value in _parts(place).items()},
            "seed": record.seed,
            "objectives": np.array([run.objective for run in record.runs]),
            "statuses": np.array([run.status.name for run in record.runs], dtype="U12"),
            "owners": np.repeat(np.arange(len(histories)), [len(history) for history in histories]),
            "lines": np.array(lines, dtype=np.float64).reshape(len(lines), len(SmoothStep._fields)),
        }

    def _restored(self, saved: Mapping[str, Any]) -> Record:
        place = self._place(saved, "now.")
        histories: list[list[Any]] = [[] for _ in range(len(saved["statuses"]) + 1)]
        for owner, numbers in zip(saved["owners"].tolist(), saved["lines"].tolist(), strict=True):
            iteration, seconds, objective, slope, evaluations, samples_in = numbers
            line = SmoothStep(int(iteration), seconds, objective, slope, int(evaluations), int(samples_in))
            histories[owner].append(line)
        objectives = stored(saved, "objectives", saved["statuses"].shape)
        ends = zip(objectives.tolist(), saved["statuses"].tolist(), histories, strict=False)
        runs = tuple(Run(objective, Status[name], lines) for objective, name, lines in ends)
        if runs and "best.w" not in saved:
            raise ValueError("starts have ended, and the best of them is missing")
        self._clock = time.perf_counter() - (histories[-1][-1].seconds if histories[-1] else 0.0)
        best = self._place(saved, "best.") if "best.w" in saved else None
        return Record(place, int(stored_number(saved, "seed", 0)), tuple(histories[-1]), runs, best)

    def _place(self, saved: Mapping[str, Any], prefix: str) -> Place:
        parts = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
        numbers: dict[str, Any] = {name: stored_number(parts, name) for name in _NUMBERS}
        for name in ("iteration", "evaluations", "samples_in"):
            numbers[name] = int(numbers[name])
        for name in ("is_done", "is_solved"):
            numbers[name] = bool(numbers[name])
        memory = {name.removeprefix("memory."): value for name, value in parts.items() if name.startswith("memory.")}
        self.method.check(memory)
        return Place(stored(parts, "w", (self.method.n_params,)), memory=memory, **numbers)


def run_starts(learner: Any, starts: Starts, seed: int, checkpoint: Checkpoint | None) -> tuple[Record, Status]:
    """Run all starts, from the checkpoint where there is one: the record with the best of them, and why it ended."""
    saved = None if checkpoint is None else checkpoint.read()
    if saved is None or checkpoint is None:
        record = starts.begin(seed)
    else:
        with checkpoint.restoring():
            record = starts.begin(seed, saved)
    kept: dict[str, Any] = {"callbacks": learner.callbacks or (), "progress": Progress(learner.verbose, None)}
    record, status = run(starts, record, checkpoint=checkpoint, **kept)
    return _finish(starts, record, status), status


def _finish(starts: Starts, record: Record, status: Status) -> Record:
    """The record of a fit that ended; a start that was cut short counts as it is."""
    if status not in (Status.STOPPED, Status.INTERRUPTED) or not record.history:
        if not record.runs:
            raise KeyboardInterrupt  # nothing was learned yet
        return record
    return record.ended((starts.status(record) if status is Status.INTERRUPTED else None) or status)


def _parts(place: Place) -> dict[str, Any]:
    numbers = {name: getattr(place, name) for name in _NUMBERS}
    return {"w": place.w, **numbers, **{f"memory.{name}": value for name, value in place.memory.items()}}

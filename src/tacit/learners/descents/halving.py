"""Starts by successive halving: all begin, few go on, one ends; so that ten cost about as much as three.

Source: Karnin, Koren & Somekh (2013); Jamieson & Talwalkar (2016).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from tacit.learners.descents.multistart import DescentState, Ended, Method, MultiStart, Record, RunTable
from tacit.runtime import Status
from tacit.runtime.checkpoint import Checkpoint, stored_array, stored_number

S = TypeVar("S", bound=DescentState)

FIRST_STEPS, SHARE, LOOKAHEAD = 2, 0.7, 0.5
"""Steps of every start before the first selection, and the share of the starts that go on after it and after each step
from there: those with the lowest objectives minus a share of the last decrease, because a start that still falls fast
may end lower. Chosen by objectives and CPU time of ten starts on five data sets (`benchmarks/halving.py`). Four first
steps, and half of the starts every two steps, cost the time of four or five starts; they ended lower on three sets and
higher on two."""


@dataclass(frozen=True)
class Race(Generic[S]):
    """All starts that have begun, a record each; which are still in, whose turn it is, and the number of selections."""

    records: tuple[Record[S], ...]
    seed: int
    is_in: tuple[int, ...]
    turn: int = 0
    n_selections: int = 0
    has_line: bool = False  # whether the last step made a line of a history

    @property
    def n_iterations(self) -> int:
        """Of all starts."""
        return sum(len(record.history) for record in self.records)


class Halving(Generic[S]):
    """The starts of a fit by successive halving, as a `tacit.runtime.Process` over races.

    Every start makes two steps. Then the worst are left out after each step, until one start goes to its end.

    Parameters
    ----------
    method, first, n_starts, max_iter, checkpoint : as in `MultiStart`
    """

    def __init__(
        self,
        method: Method[S],
        first: Callable[[int, int], S],
        n_starts: int,
        max_iter: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.first, self.n_starts, self.checkpoint = first, n_starts, checkpoint
        self._single = MultiStart(method, first, 1, max_iter, checkpoint)

    def begin(self, seed: int) -> Race[S]:
        """The first race of a fit, or the one that the checkpoint holds."""
        saved = None if self.checkpoint is None else self.checkpoint.read()
        if saved is None or self.checkpoint is None:
            return Race((Record(self.first(seed, 0), seed),), seed, tuple(range(self.n_starts)))
        with self.checkpoint.restoring():
            return self.restore(saved)

    def step(self, then: Race[S]) -> Race[S]:
        """One step of the start whose turn it is; if it may not go on now, the turn of the next one."""
        if self._is_waiting(then, then.turn):
            return self._next_turn(then)
        k, record = then.turn, then.records[then.turn]
        after = self._single.step(record)
        records = (*then.records[:k], after, *then.records[k + 1 :])
        return replace(then, records=records, has_line=len(after.history) > len(record.history))

    def _is_waiting(self, race: Race[S], k: int) -> bool:
        """Whether a start has ended, or made its steps until the next selection; a smooth path is not interrupted."""
        record = race.records[k]
        if getattr(record.state, "n_powers", 0):
            return False
        limit = math.inf if len(race.is_in) == 1 else FIRST_STEPS + race.n_selections
        return self._single.status(record) is not None or _count_steps(record) >= limit

    def _next_turn(self, then: Race[S]) -> Race[S]:
        """The race with the turn of the next start; after the last one, of the first that was selected."""
        later = [k for k in then.is_in if k > then.turn]
        if later:
            records = then.records
            if later[0] == len(records):
                records = (*records, Record(self.first(then.seed, later[0]), then.seed))
            self._set_clock(records[later[0]])
            return replace(then, records=records, turn=later[0], has_line=False)
        ranked = sorted(then.is_in, key=lambda k: (self._extrapolate(then.records[k]), k))
        is_in = tuple(sorted(ranked[: max(1, int(SHARE * len(ranked)))]))
        records = tuple(
            record if k in is_in else replace(record, state=record.state.as_result())
            for k, record in enumerate(then.records)
        )
        self._set_clock(records[is_in[0]])
        return Race(records, then.seed, is_in, is_in[0], then.n_selections + 1)

    def _extrapolate(self, record: Record[S]) -> float:
        """The objective that a start is compared by: what it has, less a share of its last decrease if it goes on."""
        objective = float(_objective(record))
        if self._single.status(record) is not None or len(record.history) < 2:
            return objective
        before, after = (line.objective for line in record.history[-2:])
        return objective - LOOKAHEAD * max(0.0, float(before - after))

    def _set_clock(self, record: Record[S]) -> None:
        """Go on with the seconds of a start."""
        self._single._clock = time.perf_counter() - (record.history[-1].seconds if record.history else 0.0)

    def report(self, race: Race[S]) -> Any:
        return race.records[race.turn].history[-1] if race.has_line else None

    def describe(self, race: Race[S]) -> tuple[int, str]:
        start = f"start {race.turn + 1} of {self.n_starts}, {len(race.is_in)} go on"
        objective = _objective(race.records[race.turn])
        return race.n_iterations, f"{start}, objective {objective:.5g}" if math.isfinite(objective) else start

    def verdict(self, race: Race[S]) -> Status | None:
        is_last = len(race.is_in) == 1
        return Status.CONVERGED if is_last and self._single.status(race.records[race.turn]) is not None else None

    def conclude(self, race: Race[S], status: Status) -> Ended:
        """The result of a fit; starts that were not selected are stopped, with their best result so far."""
        is_cut = status in (Status.STOPPED, Status.INTERRUPTED)
        records = [record for record in race.records if record.history]
        if not records:
            raise KeyboardInterrupt  # nothing was learned yet
        others = status if is_cut else Status.STOPPED
        ends = [record.end_start(self._single.status(record) or others) for record in records]
        runs = RunTable(run for record in ends for run in record.runs)
        best = min(ends, key=lambda record: record.runs[0].objective)
        return Ended(best.best, runs, status if is_cut else runs.best.status, race.n_iterations, self.n_starts)

    def snapshot(self, race: Race[S]) -> dict[str, Any]:
        parts = {
            f"start{k}.{name}": value
            for k, record in enumerate(race.records)
            for name, value in self._single.snapshot(record).items()
        }
        return {
            **parts,
            "seed": race.seed,
            "n_begun": len(race.records),
            "is_in": np.array(race.is_in, np.int64),
            "turn": race.turn,
            "n_selections": race.n_selections,
        }

    def restore(self, saved: Mapping[str, Any]) -> Race[S]:
        """The race that a snapshot was taken of; refused unless it fits these samples."""
        n_begun, turn = int(stored_number(saved, "n_begun", 1)), int(stored_number(saved, "turn", 0))
        is_in = tuple(int(k) for k in stored_array(saved, "is_in", np.shape(saved["is_in"]), "i"))
        in_order = list(is_in) == sorted(set(is_in)) and set(is_in) <= set(range(self.n_starts))
        if n_begun > self.n_starts or turn >= n_begun or turn not in is_in or not in_order:
            raise ValueError(f"turn must be one of {self.n_starts} starts that has begun and is in, got {turn}")
        if n_begun < self.n_starts and len(is_in) < self.n_starts:
            raise ValueError(f"n_begun must be {self.n_starts} after a selection, got {n_begun}")
        records = []
        for k in range(n_begun):
            mark = f"start{k}."
            own = {name.removeprefix(mark): value for name, value in saved.items() if name.startswith(mark)}
            records.append(self._single.restore(own))
        self._set_clock(records[turn])
        n_selections = int(stored_number(saved, "n_selections", 0))
        return Race(tuple(records), int(stored_number(saved, "seed", 0)), is_in, turn, n_selections)


def _count_steps(record: Record[Any]) -> int:
    """The steps of a start; those at w = 0 do not count, because there all starts have one objective."""
    return int(getattr(record.state, "n_warm", len(record.history)))


def _objective(record: Record[Any]) -> float:
    """The objective that a start would end with now."""
    return math.inf if record.result is None else float(record.result.objective)

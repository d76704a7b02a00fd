"""The one loop: it runs convex solvers, latent descents, EM, and whatever else proceeds in steps.

A `Process` defines a step, what to report about it, when to stop, and what a checkpoint must hold. The loop does
everything else: callbacks, progress, checkpoints, and Ctrl-C, after which the state before the interrupted step is
returned (`tacit.runtime.interruption` says when it is not).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from tacit.runtime.interruption import accept_press, one_run
from tacit.runtime.progress import Progress
from tacit.runtime.status import Status

S = TypeVar("S")


class Process(Protocol[S]):
    """Something that proceeds in steps. A step returns a new state and never changes the old one."""

    def step(self, state: S) -> S:
        """The next state; the one given stays whole, so that an interrupted step loses nothing."""

    def report(self, state: S) -> Any:
        """What callbacks are called with: the latest line of the history. None where nothing is new."""

    def describe(self, state: S) -> tuple[int, str]:
        """The number of the step and a few words, for the progress bar."""

    def verdict(self, state: S) -> Status | None:
        """Why to stop; None to go on."""

    def snapshot(self, state: S) -> Mapping[str, Any]:
        """Everything needed to go on from here in another process: arrays and numbers."""


class Keeper(Protocol):
    """Where snapshots go: a `tacit.runtime.checkpoint.Checkpoint`."""

    def is_due(self) -> bool:
        """Whether it is time for another one."""

    def write(self, snapshot: Mapping[str, Any]) -> None:
        """Keep it."""


def run(
    process: Process[S],
    state: S,
    *,
    callbacks: Iterable[Callable[[Any], Any]] = (),
    progress: Progress | None = None,
    checkpoint: Keeper | None = None,
) -> tuple[S, Status]:
    """Take steps until the process says stop, a callback returns True (exactly), or Ctrl-C.

    Returns the last whole state and why it is the last. A checkpoint is written when it is due, and at the end.

    >>> class Halving:
    ...     def step(self, state): return state / 2
    ...     def report(self, state): return state
    ...     def describe(self, state): return 0, f"at {state}"
    ...     def verdict(self, state): return Status.CONVERGED if state < 1 else None
    ...     def snapshot(self, state): return {"state": state}
    >>> run(Halving(), 10.0, callbacks=[lambda value: value == 2.5])
    (2.5, <Status.STOPPED: 'stopped'>)
    """
    callbacks = tuple(callbacks)
    clock = time.perf_counter()
    with one_run() as is_outermost:
        return _run(process, state, callbacks, progress, checkpoint, clock, is_outermost)


def _run(
    process: Process[S],
    state: S,
    callbacks: tuple[Callable[[Any], Any], ...],
    progress: Progress | None,
    checkpoint: Keeper | None,
    clock: float,
    is_outermost: bool,
) -> tuple[S, Status]:
    try:
        while True:
            line = process.report(state)
            answers = [] if line is None else [callback(line) for callback in callbacks]
            if progress is not None:
                progress.show(time.perf_counter() - clock, *process.describe(state))
            status = Status.STOPPED if any(answer is True for answer in answers) else process.verdict(state)
            if checkpoint is not None and (status is not None or checkpoint.is_due()):
                checkpoint.write(process.snapshot(state))
            if status is not None:
                return state, status
            state = process.step(state)
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.write(process.snapshot(state))
        if is_outermost:
            accept_press()
        return state, Status.INTERRUPTED
    finally:
        if progress is not None:
            progress.close()

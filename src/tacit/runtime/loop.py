"""The one loop: it runs convex solvers, latent descents, EM, and whatever else proceeds in steps.

A `Process` defines a step, what to report about it, when to stop, and what a checkpoint must hold. The loop does
everything else: callbacks, progress, checkpoints, and Ctrl-C. Pressed once, that ends the fit with the best model so
far: the state before the interrupted step is returned. Pressed twice, it ends everything. Inside a search or a
cross-validation of scikit-learn a fit that was cut short must not be scored as if it were whole: it raises
`InterruptedFitError`. scikit-learn then writes down NaN for this fit and goes on, or ends with ``error_score="raise"``.
"""

from __future__ import annotations

import enum
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from tacit.data.parameters import check_verbose, entries, is_positive, is_whole, number, shorten

LINE_EVERY = 5.0
"""Seconds between two plain lines of progress."""

SECOND_PRESS = 2.0
"""Seconds within which a second Ctrl-C means: end everything."""

SEARCHES = "sklearn.model_selection._validation"
"""The module from which searches and cross-validation call ``fit``."""

_depth: ContextVar[int] = ContextVar("depth", default=0)
_last_press = -float("inf")

S = TypeVar("S")


class Status(enum.Enum):
    """Why something iterative stopped: a solver, a learner."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STALLED = "stalled"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"


class InterruptedFitError(RuntimeError):
    """Ctrl-C during a fit inside a search: there is no whole model to score."""


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
    callbacks: Iterable[Callable[[Any], Any]] | None = None,
    verbose: int = 0,
    total: int | None = None,
    checkpoint: Keeper | None = None,
) -> tuple[S, Status]:
    """Take steps until the process says stop, a callback returns True (exactly), or Ctrl-C.

    Returns the last whole state and why it is the last. A checkpoint is written when it is due, and at the end.
    ``verbose`` and ``total`` are those of `Progress`.

    >>> class Halving:
    ...     def step(self, state): return state / 2
    ...     def report(self, state): return state
    ...     def describe(self, state): return 0, f"at {state}"
    ...     def verdict(self, state): return Status.CONVERGED if state < 1 else None
    ...     def snapshot(self, state): return {"state": state}
    >>> run(Halving(), 10.0, callbacks=[lambda value: value == 2.5])
    (2.5, <Status.STOPPED: 'stopped'>)
    """
    callbacks, progress = _read_callbacks(callbacks), Progress(verbose, total)
    clock = time.perf_counter()
    token = _depth.set(_depth.get() + 1)
    try:
        while True:
            line = process.report(state)
            answers = [] if line is None else [callback(line) for callback in callbacks]
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
        if _depth.get() == 1:  # inside no other run, so that Ctrl-C ends a fit and not a part of one
            _accept_press()
        return state, Status.INTERRUPTED
    finally:
        _depth.reset(token)
        progress.close()


def _read_callbacks(callbacks: Any) -> tuple[Callable[[Any], Any], ...]:
    """The functions of a parameter ``callbacks``, checked before any work."""
    listed = () if callbacks is None else tuple(entries("callbacks", callbacks, "a list of functions, or None"))
    wrong = next((callback for callback in listed if not callable(callback)), None)
    if wrong is not None:
        raise TypeError(f"callbacks must be functions of a step, got {shorten(wrong)}")
    return listed


def _accept_press() -> None:
    """Called where Ctrl-C ends a fit. Returns if the best model so far may be kept.

    Raises `KeyboardInterrupt` at the second press within `SECOND_PRESS` seconds, and `InterruptedFitError` inside a
    search.
    """
    global _last_press
    now = time.monotonic()
    is_second, _last_press = now - _last_press < SECOND_PRESS, now
    if is_second:
        raise KeyboardInterrupt
    if _is_in_search():
        raise InterruptedFitError(
            "Ctrl-C: this fit was cut short, and a search does not score it; press Ctrl-C twice to end the search"
        )


def _is_in_search() -> bool:
    """Whether scikit-learn fits in order to score."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == SEARCHES:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class Progress:
    """A tqdm bar on a terminal or in a notebook (``verbose=1``), plain lines anywhere (``verbose=2``).

    Parameters
    ----------
    verbose : 0 for none, 1 for a bar where somebody can see it, 2 for a line every few seconds, for logs
    total : how many steps there will be; None where that is unknown: then the remaining time is not shown
    """

    def __init__(self, verbose: int, total: int | None) -> None:
        check_verbose(verbose)
        self.bar: Any = None
        self._writes_lines = is_whole(verbose) and verbose >= 2
        self._total = total
        self._shown = 0.0
        if verbose and not self._writes_lines and (_is_terminal() or _is_notebook()):
            from tqdm.auto import tqdm

            self.bar = tqdm(total=total, delay=1.0, unit="step", leave=False)

    def show(self, seconds: float, step: int, text: str) -> None:
        """Draw the bar again, at most ten times per second, or write a line."""
        if self._writes_lines and seconds - self._shown >= LINE_EVERY and sys.stderr is not None:
            self._shown = seconds
            steps = f"step {step}" if self._total is None else f"step {step} of {self._total}"
            sys.stderr.write(f"tacit: {seconds:.0f} s, {steps}, {text}\n")
            sys.stderr.flush()
        if self.bar is None or seconds - self._shown < 0.1:
            return
        self._shown = seconds
        self.bar.n = step
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update(0)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    """Whether this is a kernel of Jupyter, which shows bars of its own."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and "IPKernelApp" in running.config


class Deadline:
    """A callback of any learner that ends the fit when its seconds have passed; the best model so far is kept.

    The seconds begin when it is made. Several fits may share one: what is left of the time is theirs together.

    Parameters
    ----------
    seconds : how long; None for ever

    >>> Deadline(None)("a line of a history"), Deadline(1e-9).has_passed()
    (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        limit = None if seconds is None else number("time_budget", seconds, "a number of seconds above 0", is_positive)
        self._end = None if limit is None else time.monotonic() + limit

    def has_passed(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def __call__(self, line: Any) -> bool:
        """True, which stops a fit, when the time has passed."""
        return self.has_passed()

"""Many cases in processes of their own: a crash or a hang costs one case, not the campaign."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

SECONDS = 10.0
"""What one case may take of a processor. A case that takes longer is called once more, because the first call may have
compiled."""

WAITING = 300.0
"""What one case may take by the clock: many times as much, since others may be at work on the same machine."""

PATIENCE = 600.0
"""Seconds without a sign of life after which a process is ended."""

MEMORY = 4 << 30
"""Bytes of address space that a process may take: a file or a parameter that asks for more is a raw error."""

CHECKED_KERNELS = Path(__file__).parents[2] / ".pytest_cache" / "kernels-with-bounds-checks"
"""Where Numba keeps kernels that check every index: its cache does not tell them from others of the same code."""

CRASH, HANG = "crash", "hang"


@dataclass
class Report:
    """How many cases ended in which way, and the raw ones with their names."""

    counts: Counter = field(default_factory=Counter)
    raw: list[tuple[str, str]] = field(default_factory=list)

    def add(self, case: str, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if kind not in ("clean", "clear"):
            self.raw.append((case, f"{kind}: {text}"))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def __str__(self) -> str:
        kinds = ("clean", "clear", "raw", CRASH, HANG)
        return f"{self.total} inputs: " + ", ".join(f"{self.counts[kind]} {kind}" for kind in kinds)


def cases(names: list[str], first: int, count: int) -> list[tuple[str, int]]:
    """Targets in turn, each with the next seed."""
    return [(names[i % len(names)], i) for i in range(first, first + count)]


def run(todo: list[tuple[str, int]], *, verbose: bool = False, bounds_checks: bool = False) -> Report:
    """Run cases in a process, and in another one after each crash or hang.

    With ``bounds_checks``, kernels raise an IndexError where they would read or write outside of an array: a raw error.
    """
    if bounds_checks:
        with mock.patch.dict(os.environ, {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(CHECKED_KERNELS)}):
            return run(todo, verbose=verbose)
    report = Report()
    context = multiprocessing.get_context("spawn")
    began, shown = time.monotonic(), time.monotonic()
    while todo:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, todo), daemon=True)
        process.start()
        theirs.close()
        done, present = 0, todo[0]
        for kind, case, text in _answers(ours, process):
            present = case
            if kind == "begin":
                continue
            report.add(f"{case[0]}:{case[1]}", kind, text)
            done += 1
            if verbose and kind not in ("clean", "clear"):
                print(*report.raw[-1], flush=True)  # noqa: T201
            if verbose and time.monotonic() - shown > 60:
                shown = time.monotonic()
                print(f"{report} in {shown - began:.0f} s", flush=True)  # noqa: T201
        process.join()
        todo = todo[done:]
        if todo and process.exitcode != 0:
            kind = HANG if process.exitcode == -15 else CRASH
            report.add(f"{present[0]}:{present[1]}", kind, f"exit code {process.exitcode}")
            todo = todo[1:]
            if verbose:
                print(*report.raw[-1], flush=True)  # noqa: T201
    return report


def _answers(connection, process) -> Iterator[tuple[str, tuple[str, int], str]]:
    """What a process tells, until it ends; one that is silent for too long is ended."""
    while True:
        if not connection.poll(PATIENCE):
            process.terminate()
            return
        try:
            yield connection.recv()
        except EOFError:
            return


def _work(connection, todo: list[tuple[str, int]]) -> None:
    faulthandler.enable()
    _limit_memory()
    for name, seed in todo:
        connection.send(("begin", (name, seed), ""))
        kind, text = run_case(name, seed)
        connection.send((kind, (name, seed), text))


def run_case(name: str, seed: int, *, shows_error: bool = False) -> tuple[str, str]:
    """One case, judged; a slow one twice."""
    from tests.fuzz.draws import Draw
    from tests.fuzz.targets import TARGETS
    from tests.fuzz.verdicts import judge

    for attempt in range(2):
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),  # an odd name is a path too, and may be written to
            contextlib.redirect_stdout(None),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            draw = Draw(name, seed, Path(folder))
            began, clock = time.process_time(), time.monotonic()
            verdict = judge(lambda draw=draw: TARGETS[name](draw), shows_error)
            seconds, waited = time.process_time() - began, time.monotonic() - clock
        is_slow = seconds > SECONDS or waited > WAITING
        if not is_slow or attempt:
            break
    if is_slow:
        return HANG, f"{seconds:.0f} s of work, {waited:.0f} s by the clock, then {verdict.kind}: {verdict.text}"
    return verdict


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

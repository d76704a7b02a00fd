"""The actors of a fit, one per worker: rows of some blocks, and the oracles that answer for them.

An actor is built from where its rows come from, and built again when its worker is lost.
"""

from __future__ import annotations

import asyncio
import ctypes
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tacit.dask.sources import Source, walk
from tacit.data.arrays import Array
from tacit.data.table import MAX_RESIDENT, Table
from tacit.oracle import Oracle
from tacit.oracle.capabilities import SumsDifferences
from tacit.oracle.contracts import capability, take_code
from tacit.problems.views import Moments, sum_moments
from tacit.runtime.blocks import one_blas_thread

MAX_NAMED = 12
"""Oracles and tasks that a worker remembers; the oldest goes first, and is sent again when it is asked for."""

MALLOC_SETTINGS = {-1: 1 << 28, -3: 1 << 25}
"""Bytes of freed memory that a worker keeps (M_TRIM_THRESHOLD), and the size from which on an array gets pages of its
own (M_MMAP_THRESHOLD; 32 MB is the most that glibc takes)."""

MAX_RESIDENT_SHARE = 0.1
"""Of the memory that a worker may use, the part that mapped rows may take; a nanny acts from 60 % on."""

POLL = 2.0
"""Seconds after which a call that has no answer yet looks whether its worker is still there."""

MAX_SILENCE = 60.0
"""Seconds without a sign of life after which a worker counts as lost: its shard is built elsewhere."""

MAX_LOSSES = 5
"""Times that one call may lose its worker before it gives up."""

WAIT_FOR_WORKERS = 60.0
"""Seconds to wait for a worker where none is left."""

MAX_REACH = 5.0
"""Seconds in which a worker must answer a call that does not go through the scheduler; if not, all calls do."""


class Span(NamedTuple):
    """The rows from first to last (exclusive) of a source, whose rows have this checksum, and its file this stamp."""

    source: Source
    first: int
    last: int
    crc: int
    stamp: tuple[int, int] | None


class TaskPart(NamedTuple):
    """The weights and targets of a convex task, of the samples of one actor.

    ``is_masked`` says whether samples at their target are left out of sums: where a sample has one code. ``kept`` has
    sums of features of the targets of blocks, which stay the same where none is left out.
    """

    weights: Array
    target: Array
    is_masked: bool
    kept: dict[int, Array]


class Question(NamedTuple):
    """A method that an actor is to answer for all blocks of a call.

    ``names`` are the oracle that is asked, and perhaps the task; ``shared`` and ``calls`` arguments of all blocks, and
    of each; ``sent`` what names stand for, as far as the worker may not know it.
    """

    names: Sequence[str]
    method: str
    shared: Any
    calls: Any
    sent: Mapping[str, Any]


class Answer(NamedTuple):
    """``status`` is "ok", "unknown" (``value`` lists the names that must be sent) or "error" (``value`` says why)."""

    status: str
    value: Any


class WorkerLostError(Exception):
    """The worker of an actor is gone, or silent."""


class Actors:
    """Actors on the workers of a client.

    Parameters
    ----------
    client : the client
    shards : the rows of each actor
    """

    def __init__(self, client: Any, shards: Sequence[Sequence[Span]]) -> None:
        self.client = client
        self.shards = shards
        self._actors: list[Any] = [None] * len(shards)
        self._homes = [""] * len(shards)
        self._is_crowded, self._looked = False, 0.0
        self.n_rebuilt = 0
        homes = self._addresses()
        self._is_direct = client.sync(self._reach, homes[: len(shards)])
        futures = [self._submit(k, homes[k % len(homes)]) for k in range(len(shards))]
        for k, future in enumerate(futures):
            try:
                self._actors[k] = self._wait(k, future)
            except WorkerLostError:
                self._build(k)

    def call(self, questions: Mapping[int, bytes]) -> dict[int, bytes]:
        """Ask actors at once, each its question. Lost actors are built again, and asked once more."""
        self._use_idle_worker()
        answers: dict[int, bytes] = {}
        waiting = dict(questions)
        for _ in range(MAX_LOSSES):
            found = self.client.sync(self._ask_all, waiting)
            answers |= {k: answer for k, answer in found.items() if answer is not None}
            waiting = {k: question for k, question in waiting.items() if found[k] is None}
            if not waiting:
                return answers
            for k in waiting:
                self._build(k)
        names = ", ".join(span.source.name for span in self.shards[min(waiting)])
        raise RuntimeError(f"the worker that holds {names} was lost {MAX_LOSSES} times in one round; see its log")

    def close(self) -> None:
        """Let the workers drop their rows."""
        self._actors = []

    async def _ask_all(self, questions: Mapping[int, bytes]) -> dict[int, bytes | None]:
        """The answers of actors; None of those that are lost. The scheduler is asked once per poll for all of them."""
        calls = {k: asyncio.ensure_future(self._post(k, question)) for k, question in questions.items()}
        waiting = set(calls)
        while waiting:
            await asyncio.wait([calls[k] for k in waiting], timeout=POLL)
            waiting = {k for k in waiting if not calls[k].done()}
            known = await self._live_workers() if waiting else set()
            for k in [k for k in waiting if self._homes[k] not in known]:
                calls[k].cancel()
                waiting.remove(k)
        return {k: self._read(k, call) for k, call in calls.items()}

    def _read(self, k: int, call: asyncio.Future[Any]) -> bytes | None:
        """The answer of an actor; None where it is lost."""
        if not call.done() or call.cancelled() or call.exception() is not None:
            return None  # an actor returns its own errors: this one is of the connection
        reply = call.result()
        if reply["status"] == "OK":
            answer: bytes = reply["result"]
            return answer
        error = reply.get("exception")
        if "after shutdown" in str(error):  # the worker is closing, and takes no more calls
            return None
        names = ", ".join(span.source.name for span in self.shards[k])
        raise RuntimeError(f"a worker could not answer for {names}: {type(error).__name__}: {error}")

    async def _post(self, k: int, question: bytes) -> Any:
        """Call an actor: what `distributed.Actor` does, without a thread per call, and past the scheduler."""
        from distributed.actor import ProxyRPC
        from distributed.protocol import to_serialize

        home, client = self._homes[k], self.client
        rpc = client.rpc(home) if self._is_direct else ProxyRPC(client.scheduler, home)
        return await rpc.actor_execute(
            function="answer", actor=self._actors[k].key, args=[to_serialize(question)], kwargs={}
        )

    async def _reach(self, homes: Sequence[str]) -> bool:
        """Whether this process can connect to the workers; where it cannot, the scheduler passes messages on."""
        try:
            await asyncio.wait_for(asyncio.gather(*(self.client.rpc(home).identity() for home in homes)), MAX_REACH)
        except (TimeoutError, OSError):
            return False
        return True

    def _wait(self, k: int, future: Any) -> Any:
        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                if not self._is_alive(self._homes[k]):
                    raise WorkerLostError from None
            except Exception as error:  # the constructor of an actor keeps its own errors
                raise WorkerLostError from error

    def _build(self, k: int) -> None:
        """Build the actor again, on the worker with the fewest."""
        for _ in range(MAX_LOSSES):
            lost = self._homes[k]
            homes = self._addresses(lost)
            home = min(homes, key=lambda home: (home == lost, self._homes.count(home)))
            names = ", ".join(span.source.name for span in self.shards[k])
            if lost:
                warnings.warn(f"worker {lost} was lost; {names} moves to {home}", RuntimeWarning, stacklevel=6)
            self.n_rebuilt += 1
            try:
                self._actors[k] = self._wait(k, self._submit(k, home))
            except WorkerLostError:
                continue
            self._is_crowded = self._homes.count(home) > 1
            return
        raise RuntimeError(f"{names} could not be built on any worker")

    def _submit(self, k: int, home: str) -> Any:
        self._homes[k] = home
        return self.client.submit(
            ShardActor, self.shards[k], workers=[home], allow_other_workers=False, actor=True, pure=False
        )

    def _use_idle_worker(self) -> None:
        """Where a worker has several actors and another has none, because it came back, move one."""
        if not self._is_crowded or time.monotonic() - self._looked < POLL:
            return
        self._looked = time.monotonic()
        idle = [home for home in self._addresses() if home not in self._homes]
        crowded = [k for k, home in enumerate(self._homes) if self._homes.count(home) > 1]
        self._is_crowded = bool(crowded)
        if not idle or not crowded:
            return
        k, before = crowded[0], self._homes[crowded[0]]
        try:
            self._actors[k] = self._wait(k, self._submit(k, idle[0]))
        except WorkerLostError:  # it went again: the old one still works
            self._homes[k] = before

    def _addresses(self, lost: str = "") -> list[str]:
        """The workers, without one that was lost and is dead; where there are none, some time for one to come."""
        deadline = time.monotonic() + WAIT_FOR_WORKERS
        while time.monotonic() < deadline:
            homes = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
            homes = [home for home in homes if home != lost or self._is_alive(home)]
            if homes:
                return homes
            time.sleep(0.2)
        raise RuntimeError("the cluster has no workers; start some, and fit again")

    def _is_alive(self, home: str) -> bool:
        return home in self.client.sync(self._live_workers)

    async def _live_workers(self) -> set[str]:
        """The workers that have shown a sign of life."""
        known = (await self.client.scheduler.identity(n_workers=-1))["workers"]
        now = time.time()
        return {home for home, facts in known.items() if now - facts.get("last_seen", now) < MAX_SILENCE}


class ShardActor:
    """Rows of consecutive samples on one worker.

    Parameters
    ----------
    spans : where the rows come from
    """

    def __init__(self, spans: Sequence[Span]) -> None:
        if is_nannied():
            tune_malloc()
        self._named: dict[str, Any] = {}
        self._error = ""
        try:
            self._table = Table([_cut(span, _open(span)) for span in spans], max_resident=most_resident())
        except Exception as error:  # an error here would be reported as a lost worker
            self._error = f"{type(error).__name__}: {error}"

    def answer(self, question: bytes) -> bytes:
        """Answer a `Question`, both as one string of bytes: Dask sends every array of a message for itself, and a
        message of a hundred small ones took 20 ms. Errors, also those of functions of users, are answers."""
        from distributed.protocol.pickle import loads

        try:
            return pickle.dumps(self._answer(*loads(question)), protocol=5)
        except Exception as error:
            return pickle.dumps(Answer("error", f"{type(error).__name__}: {error}"), protocol=5)

    def _answer(self, names: Sequence[str], method: str, shared: Any, calls: Any, sent: Mapping[str, Any]) -> Answer:
        if self._error:
            return Answer("error", self._error)
        for name, value in sent.items():
            if hasattr(value, "on_rows"):
                value = value.on_rows(self._table)
            self._named[name] = value
        missing = [name for name in names if name not in self._named]
        if missing:
            return Answer("unknown", missing)
        for name in names:
            self._named[name] = self._named.pop(name)  # the latest comes last
        while len(self._named) > MAX_NAMED:
            del self._named[next(iter(self._named))]
        oracle, *task = (self._named[name] for name in names)
        work = partial(WITH_TASK[method], oracle, *task) if task else getattr(oracle, method)
        with one_blas_thread:
            return Answer("ok", [work(**shared, **call) for call in calls])


def tangent(oracle: Oracle, task: TaskPart, w: Array, rescaling: str, rows: slice) -> tuple[Array, Array, Array, Array]:
    """The best outputs of a block at w, their values, and the two sums of features that make its plane."""
    target = take_code(oracle, task.target, rows)
    if rescaling == "margin":
        code, value = oracle.predict_augmented(w, rows)
    else:
        code, value = oracle.predict_augmented(w, rows, target=target, rescaling=rescaling)
    return code, value, *_sums(oracle, task, code, rescaling, rows)


def slopes(oracle: Oracle, task: TaskPart, codes: Array, rescaling: str, rows: slice) -> list[tuple[Array, Array]]:
    """The two sums of features of several planes."""
    return [_sums(oracle, task, code, rescaling, rows) for code in codes]


def _sums(oracle: Oracle, task: TaskPart, code: Array, rescaling: str, rows: slice) -> tuple[Array, Array]:
    """What `tacit.oracle.Task.plane` subtracts from each other: sums of features of the outputs, and of the targets."""
    target, weights = take_code(oracle, task.target, rows), task.weights[rows]
    coef = weights if rescaling == "margin" else weights * oracle.loss(code, rows)
    if task.is_masked:
        coef = coef * (code != target)
    summing = capability(oracle, SumsDifferences)
    if summing is not None:
        return summing.difference(code, target, coef, rows), np.zeros(0)
    best = oracle.features(code, coef, rows)
    if task.is_masked or rescaling != "margin":
        return best, oracle.features(target, coef, rows)
    if rows.start not in task.kept:
        task.kept[rows.start] = oracle.features(target, coef, rows)
    return best, task.kept[rows.start]


WITH_TASK: dict[str, Callable[..., Any]] = {"tangent": tangent, "slopes": slopes}
"""Questions about a task."""


def is_nannied() -> bool:
    """Whether this worker was started by a nanny: a worker without one may live in the process of the user."""
    from distributed import get_worker

    try:
        return get_worker().nanny is not None
    except ValueError:  # no worker is at work here
        return False


def most_resident() -> int:
    """Bytes of mapped rows whose pages may stay: a nanny counts them as memory of its worker, so they are few of it."""
    from distributed import get_worker

    try:
        limit = get_worker().memory_manager.memory_limit
    except ValueError:  # no worker is at work here
        limit = None
    return MAX_RESIDENT if limit is None else min(MAX_RESIDENT, int(MAX_RESIDENT_SHARE * limit))


def tune_malloc() -> None:
    """Let the allocator of this process keep memory that was freed, where it is that of glibc.

    Dask tells its workers to hand every freed array back to the system, and then each new one is made of fresh pages:
    that took two fifths of the CPU of a pass.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for setting, size in MALLOC_SETTINGS.items():
            mallopt(setting, size)


def moments_of(sums: Sequence[Sequence[Span]], origin: Array) -> list[Moments]:
    """The sums that principal components need, each of the rows of some spans; every source is opened once."""
    opened: dict[str, Any] = {}
    found = []
    with one_blas_thread:
        for spans in sums:
            for span in spans:
                if span.source.name not in opened:
                    opened[span.source.name] = _open(span)
            rows = [_cut(span, opened[span.source.name]) for span in spans]
            found.append(sum_moments(Table(rows, max_resident=0), origin))
    return found


def _open(span: Span) -> Any:
    """All rows of the source of a span, which must be those that were described."""
    values = span.source.open().values
    is_same_file = span.stamp is not None and span.stamp == span.source.stamp()
    if not is_same_file and walk(values) != span.crc:
        raise ValueError(f"{span.source.name} was loaded again and gave other rows; the fit cannot go on")
    return values


def _cut(span: Span, values: Any) -> Any:
    if not isinstance(values, np.ndarray):
        return values.part(span.first, span.last)
    is_whole = span.last - span.first == len(values)
    return values if is_whole else values[span.first : span.last].copy()
